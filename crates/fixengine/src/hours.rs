//! When sessions are open: QuickFIX's StartTime, EndTime, LogonTime, LogoutTime, the days of each, Weekdays
//! and TimeZone as periods in UTC.
//!
//! A time of day that does not exist on a day (clocks go forward) is as much later; one that exists twice is
//! the first of the two. Periods are computed for some weeks ahead and anew before they end.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use tickwire_fix::{Period, Schedule, SessionId};
use tickwire_market::Nanos;

use crate::cfg::{Section, sections};
use crate::engine::Table;

/// Days computed ahead, and how many of them are left when more are.
const DAYS_AHEAD: i64 = 40;
const DAYS_LEFT: u64 = 10;
const DAY_NS: u64 = 86_400 * Nanos::SECOND;

/// The rules of a session's hours.
#[derive(Clone, Debug)]
pub struct Calendar {
    zone: TimeZone,
    start: Moment,
    end: Moment,
    /// From when on and until when one may be logged on, if not all the time.
    logon: Option<(Moment, Moment)>,
    /// On which days, of a session from one day to another.
    logon_days: Option<(Weekday, Weekday)>,
    days: Days,
}

/// A time of day, of the session's zone unless it has one of its own.
#[derive(Clone, Debug)]
struct Moment {
    time: Time,
    zone: Option<TimeZone>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Days {
    /// Begins on each of these days.
    Of(Vec<Weekday>),
    /// From one day of the week to another.
    Week(Weekday, Weekday),
}

const WEEK: [(Weekday, &str); 7] = [
    (Weekday::Monday, "monday"),
    (Weekday::Tuesday, "tuesday"),
    (Weekday::Wednesday, "wednesday"),
    (Weekday::Thursday, "thursday"),
    (Weekday::Friday, "friday"),
    (Weekday::Saturday, "saturday"),
    (Weekday::Sunday, "sunday"),
];

/// A day by its name or at least its first two letters.
fn weekday(text: &str) -> Option<Weekday> {
    let text = text.trim().to_ascii_lowercase();
    let found = WEEK
        .iter()
        .find(|(_, name)| text.len() >= 2 && name.starts_with(&text));
    found.map(|(day, _)| *day)
}

/// `HH:MM:SS`.
fn time(text: &str) -> Option<Time> {
    let parts: Vec<i8> = text.split(':').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    match parts[..] {
        [hour, minute, second] => Time::new(hour, minute, second, 0).ok(),
        _ => None,
    }
}

/// `HH:MM:SS`, or `HH:MM:SS US/Central` as QuickFIX/J has it.
fn moment(text: &str) -> Option<Moment> {
    let (clock, zone) = match text.split_once(char::is_whitespace) {
        Some((clock, zone)) => (clock, Some(TimeZone::get(zone.trim()).ok()?)),
        None => (text, None),
    };
    time(clock).map(|time| Moment { time, zone })
}

impl Calendar {
    /// Hours by QuickFIX's settings, one a line: `StartTime=08:00:00`, `EndTime=17:30:00`,
    /// `TimeZone=Europe/Zurich`, `Weekdays=Mon,Tue,Wed,Thu,Fri`. `None` where they say that it is always
    /// open.
    ///
    /// # Errors
    /// A setting is wrong: its line, from 1, and what would do.
    pub fn of(settings: &str) -> Result<Option<Calendar>, String> {
        let all = sections(&format!("[SESSION]\n{settings}"), |_| None);
        let Some(section) = all.sessions.first() else {
            return Ok(None);
        };
        section.check_names(false);
        let calendar = Calendar::read(section);
        match all.remarks.borrow().mistakes.first() {
            Some(mistake) => Err(format!("{}: {}", mistake.line.saturating_sub(1), mistake.what)),
            None => Ok(calendar),
        }
    }

    /// What a section says; `None` for a session that is always open, and for mistakes, which the section is
    /// told.
    pub(crate) fn read(section: &Section) -> Option<Calendar> {
        let clock = "HH:MM:SS, perhaps with a time zone behind it";
        let [start, end, logon, logout] =
            ["StartTime", "EndTime", "LogonTime", "LogoutTime"].map(|key| section.parsed(key, clock, moment));
        let [start_day, end_day, logon_day, logout_day] = ["StartDay", "EndDay", "LogonDay", "LogoutDay"]
            .map(|key| section.parsed(key, "a day of the week", weekday));
        let list = |text: &str| text.split([',', ';']).map(weekday).collect::<Option<Vec<_>>>();
        let weekdays = section.parsed("Weekdays", "days of the week with commas between", list);
        let local = section.flag("UseLocalTime", false);
        let named = section.parsed("TimeZone", "a zone such as America/New_York", |name| {
            TimeZone::get(name).ok()
        });
        if section.flag("NonStopSession", false) {
            return None;
        }
        let wrong = |what: &str| {
            section.wrong(section.line, what);
            None
        };
        let has_days = start_day.or(end_day).or(logon_day).or(logout_day).is_some() || weekdays.is_some();
        let (start, end) = match (start, end) {
            (Some(start), Some(end)) => (start, end),
            (None, None) if !has_days && logon.is_none() && logout.is_none() => return None,
            (None, None) => {
                return wrong("days of a session, LogonTime and LogoutTime need StartTime and EndTime");
            }
            _ => return wrong("StartTime and EndTime go together"),
        };
        let days = match (start_day, end_day, weekdays) {
            (None, None, None) => Days::Of(WEEK.map(|(day, _)| day).to_vec()),
            (None, None, Some(days)) => Days::Of(days),
            (Some(start), Some(end), None) => Days::Week(start, end),
            (Some(_), Some(_), Some(_)) => return wrong("give Weekdays, or StartDay and EndDay"),
            _ => return wrong("StartDay and EndDay go together"),
        };
        let logon_days = match (logon_day, logout_day, &days) {
            (None, None, Days::Of(_)) => None,
            (logon_day, logout_day, Days::Week(first, last)) => {
                Some((logon_day.unwrap_or(*first), logout_day.unwrap_or(*last)))
            }
            _ => return wrong("LogonDay and LogoutDay are for sessions from StartDay to EndDay"),
        };
        let logon = match (logon, logout) {
            (None, None) if logon_day.or(logout_day).is_none() => None,
            // What is not said is as the session's own.
            (logon, logout) => Some((
                logon.unwrap_or_else(|| start.clone()),
                logout.unwrap_or_else(|| end.clone()),
            )),
        };
        let zone = match (named, local) {
            (Some(_), true) => return wrong("give TimeZone or UseLocalTime=Y, not both"),
            (Some(zone), false) => zone,
            (None, true) => TimeZone::system(),
            (None, false) => TimeZone::UTC,
        };
        Some(Calendar {
            zone,
            start,
            end,
            logon,
            logon_days,
            days,
        })
    }

    /// The periods around a time.
    fn schedule(&self, now: Nanos) -> Option<Schedule> {
        let mut periods: Vec<Period> = Vec::new();
        let today = Timestamp::from_nanosecond(now.0.into())
            .map(|t| self.zone.to_datetime(t).date())
            .unwrap_or_default();
        for ahead in -8..DAYS_AHEAD {
            let Some(period) = today.checked_add(ahead.days()).ok().and_then(|d| self.period(d)) else {
                continue;
            };
            // Clocks that go back may make a period begin before the one before it has ended.
            let start = periods
                .last()
                .map_or(period.start, |last| last.end.max(period.start));
            if start < period.end {
                periods.push(Period {
                    start,
                    logon_start: period.logon_start.max(start),
                    ..period
                });
            }
        }
        Schedule::new(periods).ok()
    }

    /// The period that begins on a day.
    fn period(&self, day: Date) -> Option<Period> {
        let wraps = self.end.time <= self.start.time;
        let (begins, length) = match &self.days {
            Days::Of(days) => (days.contains(&day.weekday()), i64::from(wraps)),
            Days::Week(first, last) => {
                let days = i64::from(first.until(*last));
                let length = if days == 0 && wraps { 7 } else { days };
                (day.weekday() == *first, length)
            }
        };
        let at = |day: Date, moment: &Moment| {
            let zone = moment.zone.as_ref().unwrap_or(&self.zone);
            let instant = zone.to_ambiguous_timestamp(day.to_datetime(moment.time));
            let ns = instant.compatible().ok()?.as_nanosecond();
            u64::try_from(ns).ok().map(Nanos)
        };
        let last = day.checked_add(length.days()).ok()?;
        let mut period = Period::new(at(day, &self.start)?, at(last, &self.end)?);
        if let Some((logon, logout)) = &self.logon {
            // The first of that time, and of that weekday if one is wanted, within the session.
            let first = |moment: &Moment, on: Option<Weekday>, from: Nanos, before: Nanos| {
                (0..=length.max(1))
                    .filter_map(|ahead| day.checked_add(ahead.days()).ok())
                    .filter(|day| on.is_none_or(|on| day.weekday() == on))
                    .filter_map(|day| at(day, moment))
                    .find(|instant| (from..before).contains(instant))
            };
            let (on, off) = self.logon_days.unzip();
            period.logon_start = first(logon, on, period.start, period.end).unwrap_or(period.start);
            let from = period.logon_start.after(1);
            period.logon_end = first(logout, off, from, period.end).unwrap_or(period.end);
        }
        (begins && period.start < period.end).then_some(period)
    }
}

/// A session's hours as time goes on.
pub(crate) struct Timetable {
    session: SessionId,
    calendar: Calendar,
    schedule: Option<Schedule>,
    /// When the session is to be told again.
    due: Nanos,
}

impl Timetable {
    pub(crate) fn new(session: SessionId, calendar: Calendar) -> Timetable {
        Timetable {
            session,
            calendar,
            schedule: None,
            due: Nanos::ZERO,
        }
    }

    /// Whose hours they are.
    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// The system's clock was set: the hours are told anew.
    pub(crate) fn clock_set(&mut self) {
        (self.due, self.schedule) = (Nanos::ZERO, None);
    }

    /// Tells the session its hours when they have changed. Hours are of UTC, `wall`, which may be set; `now`
    /// is the session's own time.
    pub(crate) fn tell(&mut self, session_now: Nanos, wall: Nanos, table: &mut Table) {
        let now = wall;
        if now < self.due {
            return;
        }
        let ends = self.schedule.as_ref().and_then(Schedule::ends);
        if ends.is_none_or(|end| end.since(now) < DAYS_LEFT * DAY_NS) {
            self.schedule = self.calendar.schedule(now);
        }
        let hours = self.schedule.as_ref().map(|s| s.at(now)).unwrap_or_default();
        table.session_mut(self.session).set_hours(session_now, hours);
        let tomorrow = now.after(DAY_NS);
        let change = self.schedule.as_ref().and_then(|s| s.next_change(now));
        self.due = change.map_or(tomorrow, |t| t.min(tomorrow));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(text: &str) -> Result<Option<Calendar>, String> {
        Calendar::of(text)
    }

    fn at(text: &str) -> Nanos {
        let time: Timestamp = text.parse().unwrap();
        Nanos(u64::try_from(time.as_nanosecond()).unwrap())
    }

    /// The period at or after an instant.
    fn period(calendar: &Calendar, now: &str) -> Period {
        let hours = calendar.schedule(at(now)).unwrap().at(at(now));
        hours.current.or(hours.next).unwrap()
    }

    fn check(rules: &str, cases: &[(&str, &str, &str)]) {
        let calendar = calendar(rules).unwrap().unwrap();
        for (now, start, end) in cases {
            let expected = Period::new(at(start), at(end));
            assert_eq!(period(&calendar, now), expected, "{rules:?} at {now}");
        }
    }

    #[test]
    fn one_may_be_logged_on_for_a_part_of_the_session_overnight_too() {
        let window = |rules: &str, now: &str| {
            let period = period(&calendar(rules).unwrap().unwrap(), now);
            (period.logon_start, period.logon_end)
        };
        let day = "StartTime=08:00:00\nEndTime=18:00:00\nLogonTime=09:00:00\nLogoutTime=17:30:00";
        let expected = (at("2026-11-23T09:00:00Z"), at("2026-11-23T17:30:00Z"));
        assert_eq!(window(day, "2026-11-23T10:00:00Z"), expected);
        let night = "StartTime=18:00:00\nEndTime=17:00:00\nLogonTime=02:00:00\nLogoutTime=16:00:00";
        let expected = (at("2026-11-24T02:00:00Z"), at("2026-11-24T16:00:00Z"));
        assert_eq!(window(night, "2026-11-23T20:00:00Z"), expected);
        // What is not said is as the session's own.
        let half = "StartTime=08:00:00\nEndTime=18:00:00\nLogonTime=09:00:00";
        let expected = (at("2026-11-23T09:00:00Z"), at("2026-11-23T18:00:00Z"));
        assert_eq!(window(half, "2026-11-23T10:00:00Z"), expected);
        // A week's session: in from Sunday evening on, out on Friday before the end.
        let week = "StartDay=sun\nEndDay=fri\nStartTime=17:00:00\nEndTime=17:00:00\nLogonDay=mon\nLogonTime=01:00:00\n\
                    LogoutDay=friday\nLogoutTime=16:30:00";
        let expected = (at("2026-11-23T01:00:00Z"), at("2026-11-27T16:30:00Z"));
        assert_eq!(window(week, "2026-11-24T10:00:00Z"), expected);
        for rules in [
            "LogonTime=09:00:00\nLogoutTime=10:00:00",
            "StartTime=08:00:00\nEndTime=18:00:00\nLogonDay=mon",
        ] {
            assert!(calendar(rules).is_err(), "{rules}");
        }
    }

    #[test]
    fn a_time_may_have_a_zone_of_its_own() {
        check(
            "StartTime=08:00:00 US/Central\nEndTime=17:00:00 America/New_York",
            &[(
                "2026-11-23T15:00:00Z",
                "2026-11-23T14:00:00Z",
                "2026-11-23T22:00:00Z",
            )],
        );
    }

    #[test]
    fn days_in_new_york_follow_its_clocks_over_both_changes() {
        check(
            "StartTime=09:30:00\nEndTime=16:00:00\nTimeZone=America/New_York\nWeekdays=Mon,Tue,Wed,Thu,Fri",
            &[
                (
                    "2026-03-06T12:00:00Z",
                    "2026-03-06T14:30:00Z",
                    "2026-03-06T21:00:00Z",
                ),
                // Friday evening: the next one is Monday's, an hour earlier in UTC.
                (
                    "2026-03-06T22:00:00Z",
                    "2026-03-09T13:30:00Z",
                    "2026-03-09T20:00:00Z",
                ),
                (
                    "2026-10-30T23:00:00Z",
                    "2026-11-02T14:30:00Z",
                    "2026-11-02T21:00:00Z",
                ),
            ],
        );
    }

    #[test]
    fn a_day_from_midnight_to_midnight_has_23_or_25_hours_when_clocks_change() {
        check(
            "StartTime=00:00:00\nEndTime=00:00:00\nTimeZone=America/New_York",
            &[
                (
                    "2026-03-08T12:00:00Z",
                    "2026-03-08T05:00:00Z",
                    "2026-03-09T04:00:00Z",
                ),
                (
                    "2026-11-01T12:00:00Z",
                    "2026-11-01T04:00:00Z",
                    "2026-11-02T05:00:00Z",
                ),
            ],
        );
        // Without a zone: UTC.
        check(
            "StartTime=00:00:00\nEndTime=00:00:00",
            &[(
                "2026-03-08T12:00:00Z",
                "2026-03-08T00:00:00Z",
                "2026-03-09T00:00:00Z",
            )],
        );
    }

    #[test]
    fn a_time_that_does_not_exist_is_later_and_one_that_exists_twice_is_the_first() {
        check(
            "StartTime=02:30:00\nEndTime=12:00:00\nTimeZone=America/New_York",
            &[(
                "2026-03-08T06:00:00Z",
                "2026-03-08T07:30:00Z",
                "2026-03-08T16:00:00Z",
            )],
        );
        check(
            "StartTime=01:30:00\nEndTime=12:00:00\nTimeZone=America/New_York",
            &[(
                "2026-11-01T05:00:00Z",
                "2026-11-01T05:30:00Z",
                "2026-11-01T17:00:00Z",
            )],
        );
    }

    #[test]
    fn a_week_and_a_night_go_over_their_ends() {
        check(
            "StartDay=Sunday\nEndDay=Fri\nStartTime=17:00:00\nEndTime=17:00:00\nTimeZone=America/New_York",
            &[
                (
                    "2026-03-05T00:00:00Z",
                    "2026-03-01T22:00:00Z",
                    "2026-03-06T22:00:00Z",
                ),
                (
                    "2026-03-07T00:00:00Z",
                    "2026-03-08T21:00:00Z",
                    "2026-03-13T21:00:00Z",
                ),
            ],
        );
        check(
            "StartTime=22:00:00\nEndTime=06:00:00\nTimeZone=Asia/Tokyo",
            &[(
                "2026-06-01T20:00:00Z",
                "2026-06-01T13:00:00Z",
                "2026-06-01T21:00:00Z",
            )],
        );
        check(
            "StartDay=Mon\nEndDay=Mon\nStartTime=08:00:00\nEndTime=08:00:00",
            &[(
                "2026-06-03T00:00:00Z",
                "2026-06-01T08:00:00Z",
                "2026-06-08T08:00:00Z",
            )],
        );
    }

    #[test]
    fn schedules_that_cannot_be_say_why() {
        for (text, what) in [
            ("StartTime=08:00:00", "go together"),
            ("StartTime=8\nEndTime=09:00:00", "HH:MM:SS"),
            (
                "StartTime=08:00:00\nEndTime=09:00:00\nTimeZone=Mars/Base",
                "a zone such as",
            ),
            (
                "StartTime=08:00:00\nEndTime=09:00:00\nStartDay=Mon",
                "go together",
            ),
            (
                "StartTime=08:00:00\nEndTime=09:00:00\nWeekdays=Mon,Xx",
                "days of the week",
            ),
            ("Weekdays=Mon", "need StartTime"),
        ] {
            let error = calendar(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
        assert!(
            calendar("NonStopSession=Y\nStartTime=08:00:00\nEndTime=09:00:00")
                .unwrap()
                .is_none()
        );
        assert!(calendar("").unwrap().is_none());
    }
}
