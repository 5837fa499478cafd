//! When market data is silent.
//!
//! A venue that has nothing to say sends a heartbeat from time to time: after a second of silence on most,
//! after thirty on CME. A busy channel that says nothing for a quarter of a second is broken long before
//! that. So the limit follows what the channel does: three times the longest pause of the last ten to twenty
//! seconds, at least [`SilenceConfig::least_ns`], at most [`SilenceConfig::most_ns`]. A pause counts as no
//! longer than the limit it passed, so that one outage lets the limit grow threefold at most, and a channel
//! that is truly quiet is believed after one or two pulls.

use tickwire_market::Nanos;

/// For how long a pause is remembered at least; at most twice as long.
const REMEMBERED_NS: u64 = 10 * Nanos::SECOND;
/// The limit, in longest pauses.
const PAUSES: u64 = 3;

/// Within what the longest silence that is believed lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SilenceConfig {
    /// However busy the channel is, in nanoseconds. Default 250 ms.
    pub least_ns: u64,
    /// However quiet it is, in nanoseconds: some intervals of the venue's heartbeats. As much as `least_ns`:
    /// that, whatever the channel does. 0: silence is never looked at. Default 2.5 s.
    pub most_ns: u64,
}

impl Default for SilenceConfig {
    fn default() -> SilenceConfig {
        SilenceConfig {
            least_ns: 250 * Nanos::MILLI,
            most_ns: 2_500 * Nanos::MILLI,
        }
    }
}

/// Listens to the pauses between packets.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    config: SilenceConfig,
    /// The last packet; zero before the first.
    heard: Nanos,
    limit_ns: u64,
    /// The longest pause of the present span of [`REMEMBERED_NS`], and of the one before.
    longest: [u64; 2],
    since: Nanos,
}

impl Silence {
    /// One that has heard nothing, which is no silence yet.
    pub fn new(config: SilenceConfig) -> Silence {
        Silence {
            config,
            heard: Nanos::ZERO,
            limit_ns: config.least_ns.min(config.most_ns),
            longest: [0; 2],
            since: Nanos::ZERO,
        }
    }

    /// A packet came.
    #[inline]
    pub fn on_packet(&mut self, now: Nanos) {
        let pause = now.since(self.heard);
        if self.heard == Nanos::ZERO {
            self.since = now;
        } else if pause > self.longest[0] || now.since(self.since) > REMEMBERED_NS {
            self.remember(now, pause);
        }
        self.heard = now;
    }

    #[cold]
    fn remember(&mut self, now: Nanos, pause: u64) {
        if now.since(self.since) > REMEMBERED_NS {
            self.longest = [0, self.longest[0]];
            self.since = now;
        }
        self.longest[0] = self.longest[0].max(pause.min(self.limit_ns));
        let longest = self.longest[0].max(self.longest[1]);
        self.limit_ns = longest
            .saturating_mul(PAUSES)
            .max(self.config.least_ns)
            .min(self.config.most_ns);
    }

    /// What was not heard until now is not counted.
    pub fn restart(&mut self, now: Nanos) {
        if self.heard != Nanos::ZERO {
            self.heard = now;
        }
    }

    /// Whether nothing came for longer than is believed.
    #[inline]
    pub fn is_silent(&self, now: Nanos) -> bool {
        self.limit_ns > 0 && self.heard != Nanos::ZERO && now.since(self.heard) > self.limit_ns
    }

    /// When the last packet came; zero before the first.
    pub(crate) fn heard(&self) -> Nanos {
        self.heard
    }

    /// The longest pause that is believed now, nanoseconds; `None`: any.
    pub fn limit_ns(&self) -> Option<u64> {
        (self.limit_ns > 0).then_some(self.limit_ns)
    }
}

/// A silence that is believed when two looks in a row have found the same one. The thread that looks may have
/// stood still itself: what came meanwhile lies in the sockets, and is read between the two.
#[derive(Clone, Copy, Debug, Default)]
pub struct TwoLooks {
    before: Option<Nanos>,
}

impl TwoLooks {
    /// A look, which found nothing or something that was heard last at that time, too long ago. Whether the
    /// look before found the same.
    #[inline]
    pub fn confirm(&mut self, silent_since: Option<Nanos>) -> bool {
        let before = core::mem::replace(&mut self.before, silent_since);
        silent_since.is_some() && silent_since == before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = Nanos::MILLI;

    fn at(ms: u64) -> Nanos {
        Nanos(1_000 * Nanos::SECOND + ms * MS)
    }

    /// Packets so far apart, from one moment to another; the last one's.
    fn packets(silence: &mut Silence, from: u64, to: u64, apart: u64) -> u64 {
        let mut now = from;
        while now + apart <= to {
            now += apart;
            silence.on_packet(at(now));
        }
        now
    }

    #[test]
    fn nothing_is_silent_before_the_first_packet_and_a_busy_channel_after_a_quarter_of_a_second() {
        let mut silence = Silence::new(SilenceConfig::default());
        assert!(!silence.is_silent(at(1_000_000)));
        silence.restart(at(5));
        assert!(!silence.is_silent(at(1_000_000)));
        let last = packets(&mut silence, 10, 30_000, 20);
        assert!(!silence.is_silent(at(last + 250)));
        assert!(silence.is_silent(at(last + 251)));
    }

    #[test]
    fn a_quiet_channel_is_believed_after_two_pulls_and_within_the_venues_heartbeats() {
        let mut silence = Silence::new(SilenceConfig::default());
        let (mut silent, mut now) = (0, 0);
        silence.on_packet(at(now));
        for _ in 0..60 {
            now += 1_000;
            silent += u32::from(silence.is_silent(at(now)));
            silence.on_packet(at(now));
        }
        assert_eq!(silent, 2, "250 ms, then 750, then 2250");
        assert_eq!(silence.limit_ns(), Some(2_500 * MS));
        assert!(silence.is_silent(at(now + 2_501)));
    }

    #[test]
    fn an_outage_does_not_make_the_next_one_last() {
        let mut silence = Silence::new(SilenceConfig::default());
        let last = packets(&mut silence, 0, 20_000, 10);
        silence.on_packet(at(last + 60_000));
        assert_eq!(silence.limit_ns(), Some(750 * MS));
        // And it is forgotten.
        packets(&mut silence, last + 60_000, last + 81_000, 10);
        assert_eq!(silence.limit_ns(), Some(250 * MS));
    }

    #[test]
    fn a_fixed_limit_is_one_and_none_is_none() {
        let fixed = SilenceConfig {
            least_ns: 40 * MS,
            most_ns: 40 * MS,
        };
        let mut silence = Silence::new(fixed);
        packets(&mut silence, 0, 5_000, 1_000);
        assert_eq!(silence.limit_ns(), Some(40 * MS));
        let mut never = Silence::new(SilenceConfig {
            least_ns: 0,
            most_ns: 0,
        });
        never.on_packet(at(1));
        assert!(!never.is_silent(at(1_000_000_000)));
        assert_eq!(never.limit_ns(), None);
    }

    #[test]
    fn what_nobody_listened_to_is_no_silence() {
        let mut silence = Silence::new(SilenceConfig::default());
        let last = packets(&mut silence, 0, 1_000, 10);
        silence.restart(at(last + 5_000));
        assert!(!silence.is_silent(at(last + 5_250)));
        assert!(silence.is_silent(at(last + 5_251)));
    }

    #[test]
    fn a_silence_is_believed_at_the_second_look_and_another_one_anew() {
        let mut looks = TwoLooks::default();
        let found = [
            None,
            Some(1),
            Some(1),
            Some(1),
            None,
            Some(1),
            Some(900),
            Some(900),
        ];
        let believed = found.map(|since| looks.confirm(since.map(at)));
        assert_eq!(believed, [false, false, true, true, false, false, false, true]);
    }
}
