//! How long things take.

use tickwire_market::Nanos;

/// A time that something takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Latency {
    /// Always so many nanoseconds.
    Constant(u64),
    /// Drawn from a distribution: nanoseconds with how often they were measured, as a histogram of the lab
    /// says. Without any, 0.
    Drawn(Vec<(u64, u64)>),
    /// As it was measured, order by order, on the day of the recording: each holds from its time until the
    /// next one's. Without any, 0.
    Recorded(Vec<TimedLatency>),
}

/// What was measured of one order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimedLatency {
    /// When it was sent, in the time of the recording.
    pub at: Nanos,
    /// How long it took, in nanoseconds.
    pub ns: u64,
}

impl Latency {
    /// Latencies that were measured order by order, in any order.
    pub fn recorded(mut measured: Vec<TimedLatency>) -> Latency {
        measured.sort_unstable();
        Latency::Recorded(measured)
    }

    /// Whether it is always 0.
    pub fn is_none(&self) -> bool {
        match self {
            Latency::Constant(ns) => *ns == 0,
            Latency::Drawn(values) => values.iter().all(|(ns, count)| *ns == 0 || *count == 0),
            Latency::Recorded(values) => values.iter().all(|value| value.ns == 0),
        }
    }
}

/// The times of a simulated venue. The recording's times are taken for the venue's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LatencyConfig {
    /// From the place where the recording was made to the strategy; events do not pass each other. Default 0:
    /// the strategy stands where the recording was made.
    pub feed: Latency,
    /// From a new order or a replacement to the matching engine. Default 0.
    pub entry: Latency,
    /// From a cancellation to the matching engine. Default 0.
    pub cancel: Latency,
    /// From the matching engine to the strategy. Default 0.
    pub response: Latency,
}

impl Default for LatencyConfig {
    fn default() -> LatencyConfig {
        LatencyConfig {
            feed: Latency::Constant(0),
            entry: Latency::Constant(0),
            cancel: Latency::Constant(0),
            response: Latency::Constant(0),
        }
    }
}

/// Draws times, the same ones for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Draw {
    state: u64,
}

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw { state: seed }
    }

    /// A time for what is sent at `now`.
    #[inline]
    pub(crate) fn take(&mut self, latency: &Latency, now: Nanos) -> u64 {
        match latency {
            Latency::Constant(ns) => *ns,
            Latency::Drawn(values) => {
                let total: u64 = values.iter().map(|(_, count)| count).sum();
                let mut at = self.next().checked_rem(total).unwrap_or(0);
                for (ns, count) in values {
                    if at < *count {
                        return *ns;
                    }
                    at -= count;
                }
                0
            }
            Latency::Recorded(values) => {
                let next = values.partition_point(|value| value.at <= now);
                // Before the first measurement it is the best guess.
                let holds = values.get(next.saturating_sub(1));
                holds.map_or(0, |value| value.ns)
            }
        }
    }

    /// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_drawn_as_often_as_they_were_measured_and_alike_for_one_seed() {
        let measured = Latency::Drawn(vec![(10, 1), (20, 3), (500, 0)]);
        let times = |seed| {
            let mut draw = Draw::new(seed);
            (0..4_000)
                .map(|_| draw.take(&measured, Nanos::ZERO))
                .collect::<Vec<_>>()
        };
        let drawn = times(7);
        assert_eq!(drawn, times(7));
        assert_ne!(drawn, times(8));
        let tens = drawn.iter().filter(|ns| **ns == 10).count();
        assert!(
            (800..1_200).contains(&tens),
            "{tens} of 4,000, where 1,000 are expected"
        );
        assert!(drawn.iter().all(|ns| [10, 20].contains(ns)));
        assert_eq!(Draw::new(1).take(&Latency::Drawn(vec![]), Nanos::ZERO), 0);
    }

    #[test]
    fn what_was_measured_holds_from_its_time_until_the_next() {
        let at = |at, ns| TimedLatency { at: Nanos(at), ns };
        let measured = Latency::recorded(vec![at(200, 9), at(100, 5), at(300, 2)]);
        let mut draw = Draw::new(1);
        let taken = [0, 99, 100, 199, 200, 299, 300, 9_000].map(|now| draw.take(&measured, Nanos(now)));
        assert_eq!(taken, [5, 5, 5, 5, 9, 9, 2, 2]);
        assert_eq!(draw.take(&Latency::recorded(vec![]), Nanos(5)), 0);
    }
}
