//! When the next message of a session is due: a configured mean rate, with bursts.

use crate::random::Random;
use tickwire_market::Nanos;
use tickwire_persist::persist;

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
    /// Which part of all messages follows another one about the same instrument, fifty times sooner than the
    /// mean, in percent, at most 90. 0, the default: a seed gives the stream it always gave.
    pub cluster_percent: u32,
}

impl PaceConfig {
    /// [`PaceConfig::cluster_percent`] with which arrivals cluster as in recorded names.
    pub const RECORDED_CLUSTERS: u32 = 50;
}

impl Default for PaceConfig {
    fn default() -> PaceConfig {
        PaceConfig {
            rate: 50_000,
            burst_factor: 20,
            burst_percent: 30,
            burst_length: 200,
            cluster_percent: 0,
        }
    }
}

/// Arrival times: exponential gaps with one mean in bursts and another between them, and shorter ones within
/// a cluster.
pub(crate) struct Pace {
    random: Random,
    /// Mean gaps in 1/1024 ns: calm, burst; in each to a message that begins a cluster, and to one that
    /// follows.
    gaps: [[u64; 2]; 2],
    /// Mean messages of a phase: calm, burst.
    lengths: [u64; 2],
    bursting: bool,
    left: u64,
    cluster_ppm: u32,
    following: bool,
    due: u64,
    /// Parts of a nanosecond not yet in `due`.
    rest: u64,
}

const FINE: u64 = 1024;
/// How many times sooner than the mean a message comes that follows another.
const FOLLOWS_SOONER: u64 = 50;

/// Gaps with the mean `gap` of which `share` percent are so many times shorter: the long ones' mean, the
/// short ones'.
fn split(gap: u64, share: u64, times: u64) -> [u64; 2] {
    let short = gap / times;
    // share * short + (100 - share) * long = 100 * gap
    [(100 * gap - share * short) / (100 - share), short]
}

impl Pace {
    pub(crate) fn new(config: PaceConfig, seed: u64, start: u64) -> Pace {
        let gap = 1_000_000_000 * FINE / u64::from(config.rate.clamp(1, 10_000_000));
        let share = u64::from(config.burst_percent.min(99));
        let factor = u64::from(config.burst_factor.max(1));
        let clusters = config.cluster_percent.min(90);
        let gaps = split(gap, share, factor).map(|gap| split(gap, clusters.into(), FOLLOWS_SOONER));
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
            gaps,
            lengths,
            bursting: false,
            left,
            cluster_ppm: clusters * 10_000,
            following: false,
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
        self.following = self.random.ppm(self.cluster_ppm);
        let mean = self.gaps[usize::from(self.bursting)][usize::from(self.following)];
        let gap = self.random.exponential(mean).saturating_mul(messages);
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

    /// Whether the next message follows the last one.
    pub(crate) fn is_following(&self) -> bool {
        self.following
    }
}

/// How many steps a loop of snapshots or definitions may lie behind its schedule and still make them up.
const LOOP_BEHIND_MAX: u64 = 64;

/// When a loop takes its next step. It keeps to its schedule, not to when it was asked: a publisher that had
/// no processor for a while makes up for the steps, up to [`LOOP_BEHIND_MAX`], so that a turn of the loop
/// takes as long as its configuration says.
pub(crate) fn loop_due(due: Nanos, now: Nanos, interval_ns: u64) -> Nanos {
    if due == Nanos::ZERO {
        return now.after(interval_ns);
    }
    let floor = Nanos(now.0.saturating_sub(LOOP_BEHIND_MAX * interval_ns));
    due.after(interval_ns).max(floor)
}

persist!(struct Pace { random, bursting, left, following, due, rest } not { gaps, lengths, cluster_ppm });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_rate_is_kept_with_and_without_bursts_and_clusters() {
        for config in [
            PaceConfig::default(),
            PaceConfig {
                burst_percent: 0,
                ..PaceConfig::default()
            },
            PaceConfig {
                cluster_percent: PaceConfig::RECORDED_CLUSTERS,
                ..PaceConfig::default()
            },
            PaceConfig {
                burst_percent: 0,
                cluster_percent: 100,
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

    #[test]
    fn a_loop_keeps_its_schedule_and_makes_up_for_a_bounded_part_of_what_it_missed() {
        assert_eq!(
            loop_due(Nanos::ZERO, Nanos(5_000), 10),
            Nanos(5_010),
            "its first step"
        );
        assert_eq!(
            loop_due(Nanos(5_010), Nanos(5_017), 10),
            Nanos(5_020),
            "late by less than a step"
        );
        assert_eq!(
            loop_due(Nanos(5_010), Nanos(5_310), 10),
            Nanos(5_020),
            "thirty steps to make up for"
        );
        assert_eq!(
            loop_due(Nanos(5_010), Nanos(9_000), 10),
            Nanos(8_360),
            "no more than 64 of them"
        );
    }
}
