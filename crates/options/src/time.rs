//! Time as options see it: how much of a year is left, by the calendar and in business time, and what money
//! costs for that long.
//!
//! Business time gives nights, weekends, holidays and events the share of a day's movement they have: theta
//! then falls where the market moves, and a straddle quoted on Friday is worth on Monday what it should be.
//! It is a function of two instants: nothing here asks a clock.

use alloc::vec::Vec;
use core::fmt;
use tickwire_market::Nanos;

/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// How years are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DayCount {
    /// Actual days over 365, whatever the year (ISDA 2006 §4.16(d), "Actual/365 (Fixed)").
    Actual365,
    /// Actual days over 360 (ISDA 2006 §4.16(e)): money markets.
    Actual360,
}

impl DayCount {
    /// Years from one instant to another, by nanoseconds; negative if it is the earlier one.
    pub fn years(self, from: Nanos, to: Nanos) -> f64 {
        let basis = match self {
            DayCount::Actual365 => 365.0,
            DayCount::Actual360 => 360.0,
        };
        seconds(from, to) / DAY_S as f64 / basis
    }
}

/// From one instant to another, exact to the nanosecond for some months and to 1e-16 of itself beyond.
fn seconds(from: Nanos, to: Nanos) -> f64 {
    (i128::from(to.0) - i128::from(from.0)) as f64 / Nanos::SECOND as f64
}

/// Something that moves the market at one instant: figures, an election, earnings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimedEvent {
    /// When.
    pub at: Nanos,
    /// Its variance, in ordinary trading days; 0 to 250.
    pub days: f64,
}

/// What a [`BusinessClock`] is made of.
#[derive(Clone, PartialEq, Debug)]
pub struct BusinessConfig {
    /// The exchange's time is UTC plus this many seconds; −86,400 to 86,400. One offset: over a change of
    /// clocks the session is off by an hour, which moves the value of time by an hour's share until the
    /// offset is set anew.
    pub utc_offset_s: i32,
    /// When the session opens and closes, in seconds of the local day; 0 <= open < close <= 86,400.
    pub session_s: (u32, u32),
    /// Which part of a trading day's variance the session has; the night has the rest. 0 to 1.
    pub session_share: f64,
    /// A day of a weekend, in trading days; 0 to 1.
    pub weekend_days: f64,
    /// A holiday on a weekday, in trading days; 0 to 1.
    pub holiday_days: f64,
    /// Holidays as days since 1970-01-01, local, in any order.
    pub holidays: Vec<i32>,
    /// Events, in any order.
    pub events: Vec<TimedEvent>,
    /// Trading days that make a year; 1 to 366.
    pub days_per_year: f64,
}

impl Default for BusinessConfig {
    /// Chicago in winter, 8:30 to 15:00, four fifths of a day's variance in the session, a tenth of a day for
    /// a day off.
    fn default() -> Self {
        BusinessConfig {
            utc_offset_s: -6 * 3600,
            session_s: (30_600, 54_000),
            session_share: 0.8,
            weekend_days: 0.1,
            holiday_days: 0.1,
            holidays: Vec::new(),
            events: Vec::new(),
            // 52.18 weeks of 5 days and 2 tenths.
            days_per_year: 271.3,
        }
    }
}

/// Which value of a [`BusinessConfig`] is out of its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidClock(pub &'static str);

impl fmt::Display for InvalidClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "business time: {} is out of its range", self.0)
    }
}

impl core::error::Error for InvalidClock {}

/// Measures business time between instants.
#[derive(Clone, Debug)]
pub struct BusinessClock {
    config: BusinessConfig,
}

impl BusinessClock {
    /// Checks the configuration.
    pub fn new(mut config: BusinessConfig) -> Result<BusinessClock, InvalidClock> {
        let is_share = |x: f64| (0.0..=1.0).contains(&x);
        let (open, close) = config.session_s;
        let rules = [
            ("utc_offset_s", i64::from(config.utc_offset_s).abs() <= DAY_S),
            ("session_s", open < close && i64::from(close) <= DAY_S),
            ("session_share", is_share(config.session_share)),
            ("weekend_days", is_share(config.weekend_days)),
            ("holiday_days", is_share(config.holiday_days)),
            (
                "events",
                config.events.iter().all(|e| (0.0..=250.0).contains(&e.days)),
            ),
            ("days_per_year", (1.0..=366.0).contains(&config.days_per_year)),
        ];
        if let Some((name, _)) = rules.iter().find(|(_, is_good)| !is_good) {
            return Err(InvalidClock(name));
        }
        config.holidays.sort_unstable();
        Ok(BusinessClock { config })
    }

    /// What it was made of, holidays in order.
    pub fn config(&self) -> &BusinessConfig {
        &self.config
    }

    /// Business days from one instant to another, 0 if the second is not later; an event counts when it is
    /// later than `from` and not later than `to`. Takes time in proportion to the calendar days between.
    pub fn days(&self, from: Nanos, to: Nanos) -> f64 {
        if to.0 <= from.0 {
            return 0.0;
        }
        let ((first, from_s), (last, to_s)) = (self.local(from), self.local(to));
        let mut sum = 0.0;
        for day in first..=last {
            let begin = if day == first { from_s } else { 0.0 };
            let end = if day == last { to_s } else { DAY_S as f64 };
            sum += self.within(day, end) - self.within(day, begin);
        }
        let is_between = |event: &&TimedEvent| event.at.0 > from.0 && event.at.0 <= to.0;
        sum + self
            .config
            .events
            .iter()
            .filter(is_between)
            .map(|event| event.days)
            .sum::<f64>()
    }

    /// Business years: [`BusinessClock::days`] over the days of a year. What models take as time.
    pub fn years(&self, from: Nanos, to: Nanos) -> f64 {
        self.days(from, to) / self.config.days_per_year
    }

    /// The local day, since 1970-01-01, and the seconds gone of it.
    fn local(&self, at: Nanos) -> (i64, f64) {
        let second = (at.0 / Nanos::SECOND) as i64 + i64::from(self.config.utc_offset_s);
        let nanos = (at.0 % Nanos::SECOND) as f64 / Nanos::SECOND as f64;
        (second.div_euclid(DAY_S), second.rem_euclid(DAY_S) as f64 + nanos)
    }

    /// Business days from the beginning of a day to this second of it.
    fn within(&self, day: i64, second: f64) -> f64 {
        let c = &self.config;
        let part = second / DAY_S as f64;
        // 1970-01-01 was a Thursday.
        if (day + 3).rem_euclid(7) >= 5 {
            return c.weekend_days * part;
        }
        if i32::try_from(day).is_ok_and(|day| c.holidays.binary_search(&day).is_ok()) {
            return c.holiday_days * part;
        }
        let (open, close) = (f64::from(c.session_s.0), f64::from(c.session_s.1));
        let session = (second.clamp(open, close) - open) / (close - open);
        let night_s = DAY_S as f64 - (close - open);
        if night_s == 0.0 {
            return session;
        }
        let night = (second.min(open) + (second - close).max(0.0)) / night_s;
        c.session_share * session + (1.0 - c.session_share) * night
    }
}

/// What money costs by time: zero rates, continuously compounded, linear in rate·time between points and flat
/// beyond them.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// One rate for every time.
    pub fn flat(rate: f64) -> Curve {
        Curve(alloc::vec![(1.0, rate)])
    }

    /// From points `(years, rate)`, years above 0 and rising, rates finite. None if there is no point, or
    /// they are not like that.
    pub fn new(points: &[(f64, f64)]) -> Option<Curve> {
        let is_rising = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let is_good = points
            .iter()
            .all(|(years, rate)| years.is_finite() && *years > 0.0 && rate.is_finite());
        (is_rising && is_good && !points.is_empty()).then(|| Curve(points.to_vec()))
    }

    /// The zero rate for this many years.
    pub fn rate(&self, years: f64) -> f64 {
        let after = self.0.partition_point(|point| point.0 < years);
        match (
            after.checked_sub(1).and_then(|before| self.0.get(before)),
            self.0.get(after),
        ) {
            (Some(&(t0, r0)), Some(&(t1, r1))) => {
                let share = (years - t0) / (t1 - t0);
                (r0 * t0 + (r1 * t1 - r0 * t0) * share) / years
            }
            (Some(&(_, rate)), None) | (None, Some(&(_, rate))) => rate,
            (None, None) => 0.0,
        }
    }

    /// The discount factor of a payment in this many years.
    pub fn discount(&self, years: f64) -> f64 {
        libm::exp(-self.rate(years) * years)
    }
}

/// The continuously compounded rate of a simple one, `1 + simple·years` being what one becomes.
pub fn continuous(simple: f64, years: f64) -> f64 {
    if years == 0.0 {
        simple
    } else {
        libm::log1p(simple * years) / years
    }
}

/// The rate of a year of one kind for time counted in another: models take one time, so with business time
/// the rate has to discount as the calendar does. 0 where no time is left.
pub fn rate_per(rate: f64, calendar_years: f64, years: f64) -> f64 {
    if years > 0.0 {
        rate * calendar_years / years
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    /// Monday 2026-11-16, 00:00 in Chicago.
    const MONDAY: i64 = 20_773;
    fn at(day: i64, second: i64) -> Nanos {
        Nanos(((MONDAY + day) * DAY_S + second + 6 * 3600) as u64 * Nanos::SECOND)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn a_week_is_five_days_and_what_the_weekend_has() {
        let clock = BusinessClock::new(BusinessConfig::default()).unwrap();
        near(clock.days(at(0, 0), at(1, 0)), 1.0);
        near(clock.days(at(0, 0), at(7, 0)), 5.2);
        near(clock.days(at(0, 30_600), at(0, 54_000)), 0.8);
        near(clock.days(at(0, 54_000), at(1, 30_600)), 0.2);
        // From Friday's close to Monday's opening: two nights' halves and a weekend.
        let evening = 0.2 * 32_400.0 / 63_000.0;
        let morning = 0.2 * 30_600.0 / 63_000.0;
        near(clock.days(at(4, 54_000), at(7, 30_600)), evening + 0.2 + morning);
        near(clock.days(at(3, 5), at(3, 5)), 0.0);
        near(clock.days(at(3, 5), at(2, 5)), 0.0);
        near(clock.years(at(0, 0), at(7, 0)), 5.2 / 271.3);
    }

    #[test]
    fn holidays_and_events_count_once_and_in_their_place() {
        let config = BusinessConfig {
            holidays: vec![(MONDAY + 3) as i32],
            events: vec![TimedEvent {
                at: at(1, 50_000),
                days: 0.7,
            }],
            ..BusinessConfig::default()
        };
        let clock = BusinessClock::new(config).unwrap();
        near(clock.days(at(3, 0), at(4, 0)), 0.1);
        near(clock.days(at(1, 0), at(2, 0)), 1.7);
        near(
            clock.days(at(1, 50_000), at(2, 0)) + clock.days(at(1, 0), at(1, 50_000)),
            1.7,
        );
        assert!(clock.days(at(1, 50_000), at(2, 0)) < 0.7);
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let bad = |change: fn(&mut BusinessConfig)| {
            let mut config = BusinessConfig::default();
            change(&mut config);
            BusinessClock::new(config).err().map(|e| e.0)
        };
        assert_eq!(bad(|c| c.utc_offset_s = 100_000), Some("utc_offset_s"));
        assert_eq!(bad(|c| c.session_s = (5, 5)), Some("session_s"));
        assert_eq!(bad(|c| c.session_share = f64::NAN), Some("session_share"));
        assert_eq!(bad(|c| c.weekend_days = -0.1), Some("weekend_days"));
        assert_eq!(bad(|c| c.holiday_days = 2.0), Some("holiday_days"));
        assert_eq!(bad(|c| c.days_per_year = 0.0), Some("days_per_year"));
        assert_eq!(
            bad(|c| c.events.push(TimedEvent {
                at: Nanos(0),
                days: -1.0
            })),
            Some("events")
        );
        assert_eq!(bad(|_| ()), None);
    }

    #[test]
    fn day_counts_and_rates() {
        near(DayCount::Actual365.years(at(0, 0), at(365, 0)), 1.0);
        near(DayCount::Actual360.years(at(0, 0), at(36, 0)), 0.1);
        near(DayCount::Actual365.years(at(1, 0), at(0, 0)), -1.0 / 365.0);
        let curve = Curve::new(&[(0.25, 0.04), (1.0, 0.05)]).unwrap();
        near(curve.rate(0.1), 0.04);
        near(curve.rate(2.0), 0.05);
        near(curve.rate(0.25), 0.04);
        near(curve.rate(0.5), (0.01 + 0.04 / 3.0) / 0.5);
        near(curve.discount(1.0), (-0.05f64).exp());
        near(Curve::flat(0.03).rate(0.0), 0.03);
        assert!(Curve::new(&[]).is_none() && Curve::new(&[(1.0, 0.1), (0.5, 0.1)]).is_none());
        near(rate_per(0.05, 0.2, 0.1), 0.1);
        near((continuous(0.05, 0.5) * 0.5).exp(), 1.025);
    }

    proptest! {
        #[test]
        fn time_adds_up_and_never_runs_backwards(a in 0i64..40_000_000, b in 0i64..40_000_000, c in 0i64..40_000_000) {
            let clock = BusinessClock::new(BusinessConfig::default()).unwrap();
            let mut s = [a, b, c];
            s.sort_unstable();
            let [a, b, c] = s.map(|s| at(0, s));
            let (first, second, whole) = (clock.days(a, b), clock.days(b, c), clock.days(a, c));
            prop_assert!(first >= 0.0 && second >= 0.0);
            prop_assert!((first + second - whole).abs() < 1e-9);
        }
    }
}
