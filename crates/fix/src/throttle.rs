//! Message rates: a token bucket, kept as the one instant at which it will be full again.

use tickwire_market::Nanos;
use tickwire_persist::persist;

/// What happens to a message beyond the rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Excess {
    /// It waits: ours before it is transmitted, the peer's before it is read (TCP then slows the peer down).
    Delay,
    /// Ours is refused ([`crate::SendError::Throttled`]); the peer's is answered with a BusinessMessageReject
    /// (up to 4.1 a Reject) and its number used.
    Reject,
    /// Logout and the end of the connection.
    Disconnect,
}

/// A bound on application messages in one direction: in any second at most `burst + per_second` of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Throttle {
    /// Messages per second over time, 1 to 1,000,000,000.
    pub per_second: u32,
    /// Messages at once after a pause, from 1 on.
    pub burst: u32,
    /// What happens beyond.
    pub excess: Excess,
}

/// Tokens as time: each message takes `interval_ns`, and at most `slack_ns` may be owed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    interval_ns: u64,
    slack_ns: u64,
    /// When nothing will be owed any more.
    full_at: Nanos,
    /// When it was last asked.
    last: Nanos,
}

impl Bucket {
    pub(crate) fn new(throttle: Throttle) -> Bucket {
        let interval_ns = (Nanos::SECOND / u64::from(throttle.per_second.max(1))).max(1);
        Bucket {
            interval_ns,
            slack_ns: interval_ns * u64::from(throttle.burst.max(1) - 1),
            full_at: Nanos::ZERO,
            last: Nanos::ZERO,
        }
    }

    /// When the next message is within the rate; not in the future if it is now.
    #[inline]
    pub(crate) fn free_at(&self, now: Nanos) -> Nanos {
        Nanos(self.owed_until(now).0.saturating_sub(self.slack_ns))
    }

    #[inline]
    pub(crate) fn admits(&self, now: Nanos) -> bool {
        self.free_at(now) <= now
    }

    /// Takes a token, one that is not there yet if need be; when the message is within the rate.
    #[inline]
    pub(crate) fn take(&mut self, now: Nanos) -> Nanos {
        let within = self.free_at(now).max(now);
        self.full_at = self.owed_until(now).max(now).after(self.interval_ns);
        self.last = now;
        within
    }

    /// A clock that was set back by more than a second leaves no debt, or messages would wait for as long.
    #[inline]
    fn owed_until(&self, now: Nanos) -> Nanos {
        match self.last.0.saturating_sub(now.0) > Nanos::SECOND {
            true => now,
            false => self.full_at,
        }
    }
}

persist!(struct Bucket { full_at, last } not { interval_ns, slack_ns });

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(per_second: u32, burst: u32) -> Bucket {
        Bucket::new(Throttle {
            per_second,
            burst,
            excess: Excess::Delay,
        })
    }

    #[test]
    fn a_burst_passes_then_the_rate_holds() {
        let start = Nanos(1_795_226_141 * Nanos::SECOND);
        let mut bucket = bucket(10, 3);
        for _ in 0..3 {
            assert!(bucket.admits(start));
            assert_eq!(bucket.take(start), start);
        }
        assert!(!bucket.admits(start));
        assert_eq!(bucket.free_at(start), start.after(100 * Nanos::MILLI));
        let later = start.after(100 * Nanos::MILLI);
        assert_eq!(bucket.take(later), later);
        assert!(!bucket.admits(later));
        // A pause gives the burst back and no more.
        let later = start.after(60 * Nanos::SECOND);
        let at_once = (0..10).take_while(|_| {
            let admits = bucket.admits(later);
            bucket.take(later);
            admits
        });
        assert_eq!(at_once.count(), 3);
    }

    #[test]
    fn in_any_second_there_are_at_most_the_burst_and_the_rate() {
        let mut bucket = bucket(50, 20);
        let mut passed: [u64; 2_000] = [0; 2_000];
        let mut count = 0;
        for ms in 0..10_000_u64 {
            let now = Nanos(1_000 * Nanos::SECOND).after(ms * Nanos::MILLI);
            while bucket.admits(now) && count < passed.len() {
                bucket.take(now);
                passed[count] = ms;
                count += 1;
            }
        }
        assert!((500..=520).contains(&count), "{count}");
        for from in 0..count {
            let within = passed[from..count]
                .iter()
                .filter(|ms| **ms < passed[from] + 1_000)
                .count();
            assert!(within <= 70, "{within} from {} ms on", passed[from]);
        }
    }

    #[test]
    fn a_clock_set_back_does_not_stop_the_messages() {
        let mut bucket = bucket(10, 1);
        bucket.take(Nanos(2_000_000 * Nanos::SECOND));
        let now = Nanos(1_000_000 * Nanos::SECOND);
        assert_eq!(bucket.take(now), now);
        assert!(!bucket.admits(now));
        assert!(bucket.admits(now.after(100 * Nanos::MILLI)));
    }
}
