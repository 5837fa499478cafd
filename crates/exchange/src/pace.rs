//! When the next message of a session is due: a configured mean rate, with bursts.

use crate::random::Random;

/// The shape of the load over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaceConfig {
    /// Mean messages per second, 1 to 10,000,000.
    pub rate: u32,
    /// How many times faster than the mean messages follow each other in a burst; 1 is no bursts.
    pub burst_factor: u32,
    /// Which part of all messages comes in bursts, in percent, below 100.
    pub burst_percent: u32,
    /// Messages of a burst, on average.
    pub burst_length: u32,
}

impl Default for PaceConfig {
    fn default() -> PaceConfig {
        PaceConfig {
            rate: 50_000,
            burst_factor: 20,
            burst_percent: 30,
            burst_length: 200,
        }
    }
}

/// Arrival times: exponential gaps with one mean in bursts and another between them.
pub(crate) struct Pace {
    random: Random,
    /// Mean gaps in 1/1024 ns: calm, burst.
    gaps: [u64; 2],
    /// Mean messages of a phase: calm, burst.
    lengths: [u64; 2],
    bursting: bool,
    left: u64,
    due: u64,
    /// Parts of a nanosecond not yet in `due`.
    rest: u64,
}

const FINE: u64 = 1024;

impl Pace {
    pub(crate) fn new(config: PaceConfig, seed: u64, start: u64) -> Pace {
        let gap = 1_000_000_000 * FINE / u64::from(config.rate.clamp(1, 10_000_000));
        let share = u64::from(config.burst_percent.min(99));
        let factor = u64::from(config.burst_factor.max(1));
        let burst = gap / factor;
        // share * burst + (100 - share) * calm = 100 * gap
        let calm = (100 * gap - share * burst) / (100 - share);
        let length = u64::from(config.burst_length.max(1));
        // Without bursts the calm lasts for ever.
        let calm_length = (length * (100 - share))
            .checked_div(share)
            .unwrap_or(u64::MAX / 8);
        let lengths = [calm_length, length];
        let mut random = Random::new(seed ^ 0x70AC_E000);
        let left = random.between(1, lengths[0].min(1 << 32) * 2);
        Pace {
            random,
            gaps: [calm, burst],
            lengths,
            bursting: false,
            left,
            due: start,
            rest: 0,
        }
    }

    /// When the next message is due.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Moves on after `messages`; true when a burst began or ended.
    pub(crate) fn spend(&mut self, messages: u64) -> bool {
        let gap = self
            .random
            .exponential(self.gaps[usize::from(self.bursting)])
            .saturating_mul(messages);
        self.rest += gap;
        self.due += self.rest / FINE;
        self.rest %= FINE;
        self.left = self.left.saturating_sub(messages);
        if self.left > 0 {
            return false;
        }
        self.bursting = !self.bursting;
        self.left = self
            .random
            .between(1, self.lengths[usize::from(self.bursting)] * 2);
        true
    }

    /// The next message is not due before `now`.
    pub(crate) fn resume(&mut self, now: u64) {
        self.due = self.due.max(now);
    }

    pub(crate) fn is_bursting(&self) -> bool {
        self.bursting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_kept_with_and_without_bursts() {
        for config in [
            PaceConfig::default(),
            PaceConfig {
                burst_percent: 0,
                ..PaceConfig::default()
            },
        ] {
            let mut pace = Pace::new(config, 3, 1_000);
            for _ in 0..1_000_000 {
                pace.spend(1);
            }
            let seconds_milli = (pace.due() - 1_000) / 1_000_000;
            assert!(
                (19_000..21_000).contains(&seconds_milli),
                "1 M messages at 50,000/s: {seconds_milli} ms"
            );
        }
    }
}
