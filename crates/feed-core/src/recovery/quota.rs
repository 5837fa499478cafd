//! How often something may be done, counted so that a limit is never passed, wherever the venue's own spans
//! begin.

use tickwire_market::Nanos;

/// A span is counted in so many parts; the part that is half over counts whole.
const PARTS: usize = 64;
/// When a day of the venue begins, after midnight UTC.
const DAY_BEGINS_NS: u64 = 7 * 3600 * Nanos::SECOND;

/// At most `max` in *any* span of a length. 0: as often as one likes.
#[derive(Clone, Debug)]
pub(super) struct Span {
    part_ns: u64,
    max: u32,
    /// By number of the part, modulo their count: the current one and all that the span before now touches.
    parts: [u32; PARTS + 1],
    /// Number of the current part.
    part: u64,
    used: u32,
}

impl Span {
    pub(super) fn new(span_ns: u64, max: u32) -> Span {
        Span {
            part_ns: span_ns.div_ceil(PARTS as u64).max(1),
            max,
            parts: [0; PARTS + 1],
            part: 0,
            used: 0,
        }
    }

    fn index(part: u64) -> usize {
        (part % (PARTS as u64 + 1)) as usize
    }

    /// Forgets what is out of the span. A clock that goes back changes nothing.
    fn advance(&mut self, now: Nanos) {
        let part = now.0 / self.part_ns;
        if part > self.part + PARTS as u64 {
            (self.parts, self.used) = ([0; PARTS + 1], 0);
            self.part = part;
        }
        while self.part < part {
            self.part += 1;
            let old = &mut self.parts[Span::index(self.part)];
            self.used -= core::mem::take(old);
        }
    }

    /// How many are left now.
    pub(super) fn left(&mut self, now: Nanos) -> u32 {
        self.advance(now);
        match self.max {
            0 => u32::MAX,
            max => max.saturating_sub(self.used),
        }
    }

    /// When the next one may be done: `now`, or later.
    pub(super) fn ready_at(&mut self, now: Nanos) -> Nanos {
        if self.left(now) > 0 {
            return now;
        }
        // The oldest part that counts is over when the span has passed it.
        let oldest = self.part.saturating_sub(PARTS as u64);
        let first = (oldest..=self.part).find(|&part| self.parts[Span::index(part)] > 0);
        let first = first.unwrap_or(self.part);
        Nanos((first + PARTS as u64 + 1).saturating_mul(self.part_ns)).max(now.after(1))
    }

    pub(super) fn take(&mut self, now: Nanos) {
        self.advance(now);
        self.parts[Span::index(self.part)] += 1;
        self.used += 1;
    }

    /// The last one taken was not done.
    pub(super) fn give_back(&mut self) {
        let part = &mut self.parts[Span::index(self.part)];
        if *part > 0 {
            *part -= 1;
            self.used -= 1;
        }
    }

    /// The venue says that nothing is left.
    pub(super) fn exhaust(&mut self, now: Nanos) {
        self.advance(now);
        let rest = self.max.saturating_sub(self.used);
        self.parts[Span::index(self.part)] += rest;
        self.used += rest;
    }
}

/// What has been used of a day's quotas: to be kept over a restart, as the venue counts on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DayUse {
    /// The day: days since 1970, each from 07:00 UTC on.
    pub day: u32,
    /// Requests sent in it.
    pub requests: u32,
    /// Snapshots begun in it.
    pub snapshots: u32,
}

impl DayUse {
    /// The day of the venue that `now` is in.
    pub fn day_of(now: Nanos) -> u32 {
        (now.0.saturating_sub(DAY_BEGINS_NS) / Nanos::DAY) as u32
    }

    /// When a day is over.
    fn end(day: u32) -> Nanos {
        Nanos((u64::from(day) + 1) * Nanos::DAY + DAY_BEGINS_NS)
    }
}

/// At most `max` in a day of the venue. 0: as often as one likes.
#[derive(Clone, Debug)]
pub(super) struct Day {
    max: u32,
    day: u32,
    used: u32,
}

impl Day {
    pub(super) fn new(max: u32) -> Day {
        Day { max, day: 0, used: 0 }
    }

    /// A clock that goes back changes nothing.
    fn advance(&mut self, now: Nanos) {
        let day = DayUse::day_of(now);
        if day > self.day {
            (self.day, self.used) = (day, 0);
        }
    }

    pub(super) fn left(&mut self, now: Nanos) -> u32 {
        self.advance(now);
        match self.max {
            0 => u32::MAX,
            max => max.saturating_sub(self.used),
        }
    }

    pub(super) fn ready_at(&mut self, now: Nanos) -> Nanos {
        match self.left(now) {
            0 => DayUse::end(self.day),
            _ => now,
        }
    }

    pub(super) fn take(&mut self, now: Nanos) {
        self.advance(now);
        self.used = self.used.saturating_add(1);
    }

    pub(super) fn give_back(&mut self) {
        self.used = self.used.saturating_sub(1);
    }

    pub(super) fn exhaust(&mut self, now: Nanos) {
        self.advance(now);
        self.used = self.used.max(self.max);
    }

    /// The day and what was used of it.
    pub(super) fn used(&self) -> (u32, u32) {
        (self.day, self.used)
    }

    /// What an earlier run of the program used.
    pub(super) fn restore(&mut self, day: u32, used: u32) {
        match day.cmp(&self.day) {
            core::cmp::Ordering::Greater => (self.day, self.used) = (day, used),
            core::cmp::Ordering::Equal => self.used = self.used.saturating_add(used),
            core::cmp::Ordering::Less => {}
        }
    }
}

/// The quotas of requests together.
#[derive(Clone, Debug)]
pub(super) struct Quotas {
    interval_ns: u64,
    last: Option<Nanos>,
    second: Span,
    minute: Span,
    day: Day,
}

impl Quotas {
    pub(super) fn new(interval_ns: u64, per_second: u32, per_minute: u32, per_day: u32) -> Quotas {
        Quotas {
            interval_ns,
            last: None,
            second: Span::new(Nanos::SECOND, per_second),
            minute: Span::new(60 * Nanos::SECOND, per_minute),
            day: Day::new(per_day),
        }
    }

    /// When the next one may be done: `now`, or later.
    pub(super) fn ready_at(&mut self, now: Nanos) -> Nanos {
        let paced = self
            .last
            .map_or(now, |last| last.after(self.interval_ns).max(now));
        paced
            .max(self.second.ready_at(now))
            .max(self.minute.ready_at(now))
            .max(self.day.ready_at(now))
    }

    /// Whether a quota, not the pace, holds the next one back.
    pub(super) fn is_used_up(&mut self, now: Nanos) -> bool {
        self.second.left(now) == 0 || self.minute.left(now) == 0 || self.day.left(now) == 0
    }

    pub(super) fn take(&mut self, now: Nanos) {
        self.last = Some(now);
        self.second.take(now);
        self.minute.take(now);
        self.day.take(now);
    }

    pub(super) fn give_back(&mut self) {
        self.second.give_back();
        self.minute.give_back();
        self.day.give_back();
    }

    /// How long `requests` more take at least, by quotas and pace alone, nanoseconds; `None`: longer than the
    /// day.
    pub(super) fn time_of(&mut self, now: Nanos, requests: u64) -> Option<u64> {
        if requests > u64::from(self.day.left(now)) {
            return None;
        }
        let of = |span: &mut Span, span_ns: u64| {
            let beyond = requests.saturating_sub(u64::from(span.left(now)));
            match beyond {
                0 => 0,
                _ => beyond
                    .div_ceil(u64::from(span.max.max(1)))
                    .saturating_mul(span_ns),
            }
        };
        let second = of(&mut self.second, Nanos::SECOND);
        let minute = of(&mut self.minute, 60 * Nanos::SECOND);
        let paced = requests.saturating_sub(1).saturating_mul(self.interval_ns);
        Some(paced.max(second).max(minute))
    }

    pub(super) fn day(&mut self) -> &mut Day {
        &mut self.day
    }

    pub(super) fn day_used(&self) -> (u32, u32) {
        self.day.used()
    }

    /// The venue says that a span's quota is used up: a second, a minute, or else the day.
    pub(super) fn exhaust(&mut self, now: Nanos, span_ns: u64) {
        match span_ns {
            Nanos::SECOND => self.second.exhaust(now),
            0..60_000_000_001 => self.minute.exhaust(now),
            _ => self.day.exhaust(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_span_wherever_it_begins_holds_more_than_its_quota() {
        extern crate std;
        let mut rng = tickwire_testdata::Rng::new(5);
        for max in [1, 3, 320] {
            let mut span = Span::new(Nanos::SECOND, max);
            let (mut now, mut done) = (Nanos(rng.below(Nanos::SECOND)), std::vec::Vec::new());
            for _ in 0..5_000 {
                now = match rng.below(3) {
                    0 => now.after(rng.below(20 * Nanos::MILLI)),
                    _ => span.ready_at(now),
                };
                if span.ready_at(now) == now {
                    span.take(now);
                    done.push(now);
                }
            }
            for (at, first) in done.iter().enumerate() {
                if let Some(last) = done.get(at + max as usize) {
                    assert!(
                        last.since(*first) >= Nanos::SECOND,
                        "{max} and one more from {first:?}"
                    );
                }
            }
            let most = done.last().unwrap().since(done[0]) / Nanos::SECOND * u64::from(max);
            assert!(
                done.len() as u64 * 20 >= most * 10,
                "half of the quota is used at least"
            );
        }
    }

    #[test]
    fn a_day_begins_at_seven_and_what_an_earlier_run_used_counts() {
        let at = |days: u64, hours: u64| Nanos(days * Nanos::DAY + hours * 3600 * Nanos::SECOND);
        let mut day = Day::new(3);
        day.restore(100, 2);
        assert_eq!(day.left(at(100, 8)), 1);
        day.take(at(100, 8));
        assert_eq!((day.left(at(101, 6)), day.ready_at(at(101, 6))), (0, at(101, 7)));
        assert_eq!(day.left(at(101, 7)), 3);
        // A clock set back gives nothing back.
        day.take(at(101, 7));
        assert_eq!(day.left(at(100, 8)), 2);
    }
}
