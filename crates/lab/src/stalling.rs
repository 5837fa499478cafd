//! A system under test whose latency is known: in virtual time, to compute what a measurement must find.

use crate::{Histogram, Schedule, scenario::Shape};

/// Does one piece of work after the other, each in `service`; every `stall_every`-th takes `stall` longer.
/// All in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stalling {
    /// Time for each piece of work.
    pub service: u64,
    /// Which one stalls: every so-manieth, the last of so many; 0 for none.
    pub stall_every: u64,
    /// For how long.
    pub stall: u64,
}

impl Stalling {
    /// How long the `n`-th piece of work (from 0) takes by itself.
    pub fn takes(&self, n: u64) -> u64 {
        let stalls = self.stall_every > 0 && (n + 1).is_multiple_of(self.stall_every);
        self.service + if stalls { self.stall } else { 0 }
    }

    /// The latencies that a load of `count` pieces of work must be found to have, on a machine that disturbs
    /// nothing.
    pub fn measured(&self, shape: Shape, count: u64, interval: u64) -> Histogram {
        let mut schedule = Schedule::new(shape, 0, interval);
        let mut histogram = Histogram::new();
        let (mut now, mut free_at) = (0u64, 0u64);
        for n in 0..count {
            now = now.max(schedule.due());
            let from = schedule.take(now);
            let done = now.max(free_at) + self.takes(n);
            free_at = done;
            histogram.record(done - from);
            schedule.answered(done);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_felt_by_those_behind_it_in_an_open_loop_only() {
        let system = Stalling {
            service: 10,
            stall_every: 100,
            stall: 1_000,
        };
        let open = system.measured(Shape::Open, 100_000, 100);
        let closed = system.measured(Shape::Closed, 100_000, 100);
        // One in a hundred stalls; the eleven behind it wait 920, 830, 740 ... 20 (none behind the last).
        let above = |h: &Histogram| h.values().filter(|v| v.0 > 10).map(|v| v.1).sum::<u64>();
        assert_eq!((above(&open), above(&closed)), (1_000 + 11 * 999, 1_000));
        assert_eq!((closed.at_quantile(0.99), closed.at_quantile(0.995)), (10, 1_010));
        assert_eq!((open.at_quantile(0.99), open.at_quantile(0.95)), (920, 560));
    }
}
