//! How long requests and reports take.

/// A time that something takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Latency {
    /// Always so many nanoseconds.
    Constant(u64),
    /// Drawn from a distribution: nanoseconds with how often they were measured, as a histogram of the lab says. Without any, 0.
    Drawn(Vec<(u64, u64)>),
}

/// The times of a simulated venue, as seen from the place where the recording was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LatencyConfig {
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

    pub(crate) fn take(&mut self, latency: &Latency) -> u64 {
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
            (0..4_000).map(|_| draw.take(&measured)).collect::<Vec<_>>()
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
        assert_eq!(Draw::new(1).take(&Latency::Drawn(vec![])), 0);
    }
}
