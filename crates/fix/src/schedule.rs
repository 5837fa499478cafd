//! When a session may be logged on, and when its numbers begin anew: instants, computed by whoever knows time
//! zones.
//!
//! A day with a change of summer time is as long as it is: nothing here counts hours.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use tickwire_market::Nanos;
use tickwire_persist::persist;

/// One session period: sequence numbers run from its start to its end. Instants in UTC, ends exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Period {
    /// When numbers begin with 1.
    pub start: Nanos,
    /// When it is over.
    pub end: Nanos,
    /// From when on one may be logged on; not before `start`.
    pub logon_start: Nanos,
    /// When one is logged out; not after `end`.
    pub logon_end: Nanos,
}

impl Period {
    /// A period in which one may be logged on all the time.
    pub const fn new(start: Nanos, end: Nanos) -> Period {
        Period {
            start,
            end,
            logon_start: start,
            logon_end: end,
        }
    }

    /// Whether an instant lies in it.
    pub fn contains(&self, at: Nanos) -> bool {
        self.start <= at && at < self.end
    }

    /// Whether one may be logged on at an instant.
    pub fn admits(&self, at: Nanos) -> bool {
        self.logon_start <= at && at < self.logon_end
    }

    fn is_in_order(&self) -> bool {
        self.start <= self.logon_start && self.logon_start < self.logon_end && self.logon_end <= self.end
    }
}

/// What a session needs to know of its schedule at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hours {
    /// The period that is now.
    pub current: Option<Period>,
    /// The one after it, or after now.
    pub next: Option<Period>,
}

/// A schedule's periods in order, as far ahead as they were computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    periods: Box<[Period]>,
}

/// Periods that are no schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotASchedule {
    /// Which one is wrong, from 0: its own instants are not in order, or it begins before the one before it
    /// ended.
    pub period: usize,
}

impl fmt::Display for NotASchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "session period {} is not in order, or begins before the one before it ended",
            self.period
        )
    }
}

impl core::error::Error for NotASchedule {}

impl Schedule {
    /// A schedule of these periods.
    ///
    /// # Errors
    /// They are not in order, or overlap. One may begin the instant the one before it ends.
    pub fn new(periods: Vec<Period>) -> Result<Schedule, NotASchedule> {
        for (at, period) in periods.iter().enumerate() {
            let follows = at == 0 || periods[at - 1].end <= period.start;
            if !follows || !period.is_in_order() {
                return Err(NotASchedule { period: at });
            }
        }
        Ok(Schedule {
            periods: periods.into_boxed_slice(),
        })
    }

    /// The period at an instant and the one after it.
    pub fn at(&self, now: Nanos) -> Hours {
        let following = self.periods.partition_point(|p| p.end <= now);
        let mut rest = self.periods[following..].iter().copied();
        let first = rest.next();
        match first {
            Some(period) if period.contains(now) => Hours {
                current: first,
                next: rest.next(),
            },
            _ => Hours {
                current: None,
                next: first,
            },
        }
    }

    /// When [`Schedule::at`] will answer something else; `None` behind its last period, which is when more
    /// must be computed.
    pub fn next_change(&self, now: Nanos) -> Option<Nanos> {
        let hours = self.at(now);
        hours.current.map(|p| p.end).or(hours.next.map(|p| p.start))
    }

    /// The end of the last period.
    pub fn ends(&self) -> Option<Nanos> {
        self.periods.last().map(|p| p.end)
    }
}

persist!(value struct Period { start, end, logon_start, logon_end });
persist!(value struct Hours { current, next });

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn period(start: u64, end: u64) -> Period {
        Period::new(Nanos(start), Nanos(end))
    }

    #[test]
    fn the_period_of_an_instant_is_found_and_its_ends_are_exclusive() {
        let (a, b, c) = (period(10, 20), period(20, 30), period(40, 50));
        let schedule = Schedule::new(vec![a, b, c]).unwrap();
        let cases = [
            (0, None, Some(a), Some(10)),
            (10, Some(a), Some(b), Some(20)),
            (19, Some(a), Some(b), Some(20)),
            (20, Some(b), Some(c), Some(30)),
            (30, None, Some(c), Some(40)),
            (49, Some(c), None, Some(50)),
            (50, None, None, None),
        ];
        for (now, current, next, change) in cases {
            assert_eq!(schedule.at(Nanos(now)), Hours { current, next }, "{now}");
            assert_eq!(schedule.next_change(Nanos(now)), change.map(Nanos), "{now}");
        }
        assert_eq!(schedule.ends(), Some(Nanos(50)));
        assert_eq!(Schedule::new(vec![]).unwrap().at(Nanos(1)), Hours::default());
    }

    #[test]
    fn what_is_out_of_order_is_refused_by_its_place() {
        let inside_out = Period {
            logon_start: Nanos(15),
            logon_end: Nanos(12),
            ..period(10, 20)
        };
        let too_late = Period {
            logon_end: Nanos(21),
            ..period(10, 20)
        };
        let cases = [
            (vec![period(20, 10)], 0),
            (vec![inside_out], 0),
            (vec![too_late], 0),
            (vec![period(10, 20), period(19, 30)], 1),
        ];
        for (periods, at) in cases {
            assert_eq!(Schedule::new(periods).unwrap_err(), NotASchedule { period: at });
        }
    }
}
