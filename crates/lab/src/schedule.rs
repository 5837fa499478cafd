//! When work is offered: the times of a load, and what a latency counts from.
//!
//! An open loop offers work at times fixed beforehand. Where the system (or the machine) stalls, what should
//! have been offered meanwhile is offered late, and its latency still counts from the time intended: that is
//! how coordinated omission is corrected. Gil Tene, "How NOT to Measure Latency" (2013).

use crate::scenario::Shape;

/// The times of a load, in ticks or nanoseconds, whatever the caller counts in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schedule {
    shape: Shape,
    interval: u64,
    next: u64,
}

impl Schedule {
    /// The first at `start`, the others an `interval` apart. With [`Shape::OneAtATime`] there is no interval.
    pub fn new(shape: Shape, start: u64, interval: u64) -> Schedule {
        let interval = if shape == Shape::OneAtATime { 0 } else { interval };
        Schedule {
            shape,
            interval,
            next: start,
        }
    }

    /// When the next is intended.
    #[inline]
    pub fn due(&self) -> u64 {
        self.next
    }

    /// Whether the next may be offered while an earlier one is unanswered.
    #[inline]
    pub fn overlaps(&self) -> bool {
        self.shape == Shape::Open
    }

    /// Takes the next: the time that its latency counts from, when it is offered at `now`. That is the time
    /// intended of an open loop and the time of offering of any other.
    #[inline]
    pub fn take(&mut self, now: u64) -> u64 {
        match self.shape {
            Shape::Open => {
                let intended = self.next;
                self.next += self.interval;
                intended
            }
            Shape::Closed | Shape::OneAtATime => now,
        }
    }

    /// Hears that the last one taken was answered, or given up, at `now`.
    #[inline]
    pub fn answered(&mut self, now: u64) {
        if self.shape != Shape::Open {
            self.next = now + self.interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    /// A system that takes `service` for each piece of work, one after the other, and stands still from
    /// `stall.0` for `stall.1`.
    struct Server {
        service: u64,
        stall: (u64, u64),
        free_at: u64,
    }

    impl Server {
        /// When work that is offered at `at` is done.
        fn done(&mut self, at: u64) -> u64 {
            let begin = at.max(self.free_at);
            let (from, lasts) = self.stall;
            let work = begin..begin + self.service;
            let held = if work.end > from && work.start < from + lasts {
                from + lasts - work.start.max(from)
            } else {
                0
            };
            self.free_at = work.end + held;
            self.free_at
        }
    }

    /// Runs `n` pieces of work in virtual time: latencies as the schedule counts them.
    fn run(shape: Shape, n: u64, interval: u64, server: &mut Server) -> Histogram {
        let mut schedule = Schedule::new(shape, 0, interval);
        let mut histogram = Histogram::new();
        // One connection: what an open loop offers while the system stands still is offered when it can be.
        let mut now = 0;
        for _ in 0..n {
            now = now.max(schedule.due());
            let from = schedule.take(now);
            let done = server.done(now);
            histogram.record(done - from);
            schedule.answered(done);
            if !schedule.overlaps() {
                now = done;
            }
        }
        histogram
    }

    fn server() -> Server {
        // 100 s at one in a millisecond, each of 1 µs, and one stall of 10 s in the middle.
        Server {
            service: 1_000,
            stall: (45_000_000_000, 10_000_000_000),
            free_at: 0,
        }
    }

    #[test]
    fn an_open_loop_charges_a_stall_to_all_that_should_have_happened_and_a_closed_one_to_one() {
        let ms = 1_000_000;
        let open = run(Shape::Open, 100_000, ms, &mut server());
        let closed = run(Shape::Closed, 100_000, ms, &mut server());
        // Of 100 s, 10 are a stall: a tenth of all waits, evenly from 0 to 10 s. The 90th percentile is where
        // waiting begins, the 95th in its middle, the 99th at nine tenths of it.
        let near = |found: u64, expected: u64| found.abs_diff(expected) <= expected / 200;
        assert_eq!(open.at_quantile(0.85), 1_000);
        assert!(
            near(open.at_quantile(0.95), 5_000 * ms),
            "{}",
            open.at_quantile(0.95)
        );
        assert!(
            near(open.at_quantile(0.99), 9_000 * ms),
            "{}",
            open.at_quantile(0.99)
        );
        // The closed loop saw one slow answer in 100 000.
        assert_eq!(closed.at_quantile(0.99), 1_000);
        assert_eq!(closed.at_quantile(0.99999), 1_000);
        assert!(near(closed.max(), 10_000 * ms), "{}", closed.max());
    }

    #[test]
    fn without_a_stall_both_measure_the_service_time() {
        let quiet = || Server {
            service: 700,
            stall: (0, 0),
            free_at: 0,
        };
        for shape in [Shape::Open, Shape::Closed, Shape::OneAtATime] {
            let histogram = run(shape, 1_000, 1_000, &mut quiet());
            assert_eq!((histogram.min(), histogram.max()), (700, 700), "{shape:?}");
        }
    }

    #[test]
    fn a_system_slower_than_the_load_has_latency_that_grows_for_ever_and_only_an_open_loop_shows_it() {
        let slow = || Server {
            service: 2_000,
            stall: (0, 0),
            free_at: 0,
        };
        let open = run(Shape::Open, 1_000, 1_000, &mut slow());
        let closed = run(Shape::Closed, 1_000, 1_000, &mut slow());
        // The n-th waits for n others by 1 µs each.
        assert_eq!((open.min(), open.max()), (2_000, 2_000 + 999 * 1_000));
        assert_eq!(closed.max(), 2_000);
    }

    #[test]
    fn one_at_a_time_offers_the_next_as_soon_as_it_is_answered() {
        let mut schedule = Schedule::new(Shape::OneAtATime, 5, 1_000);
        assert_eq!((schedule.due(), schedule.take(7)), (5, 7));
        schedule.answered(90);
        assert_eq!((schedule.due(), schedule.overlaps()), (90, false));
    }
}
