//! `tickwire check nagios`: one line and an exit code, as the Monitoring Plugins Development Guidelines
//! (v1.2, "Plugin Output for Nagios", "Performance data", "Threshold and Ranges") ask for.
//!
//! ```text
//! TICKWIRE CRITICAL - 1 of 8 sources stale: bzx 3 | 'heartbeat'=0.034s;1;5;0 'stale'=1;0;0;0;8 …
//! ```
//! 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN: the check itself could not be made.

use std::fmt;
use std::str::FromStr;

use tickwire_market::Counter;

use super::model::{Condition, Interval, Reading, State};

/// What a check found. The order is that of severity, but for UNKNOWN, which no measurement gives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Verdict {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "OK",
            Verdict::Warning => "WARNING",
            Verdict::Critical => "CRITICAL",
            Verdict::Unknown => "UNKNOWN",
        }
    }
}

/// A range of values that are well; the guidelines' `[@]start:end`. `10` is 0 to 10, `10:` is 10 and more,
/// `~:10` is 10 and less, `10:20` is within, `@10:20` is without.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    start: f64,
    end: f64,
    inverted: bool,
}

impl Range {
    pub const fn up_to(end: f64) -> Range {
        Range {
            start: 0.0,
            end,
            inverted: false,
        }
    }

    /// Whether a value is one to raise an alert for.
    fn alerts(&self, value: f64) -> bool {
        let within = value >= self.start && value <= self.end;
        within == self.inverted
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let wrong = || format!("{text:?} is no range: give 10, 10:, ~:10, 10:20 or @10:20");
        let number = |text: &str| {
            text.parse::<f64>()
                .ok()
                .filter(|n| n.is_finite())
                .ok_or_else(wrong)
        };
        let (inverted, range) = match text.strip_prefix('@') {
            Some(range) => (true, range),
            None => (false, text),
        };
        let (start, end) = match range.split_once(':') {
            None => (0.0, number(range)?),
            Some((start, end)) => {
                let start = match start {
                    "~" => f64::NEG_INFINITY,
                    "" => 0.0,
                    start => number(start)?,
                };
                (
                    start,
                    if end.is_empty() {
                        f64::INFINITY
                    } else {
                        number(end)?
                    },
                )
            }
        };
        if start > end {
            return Err(format!("{text:?}: the start is above the end"));
        }
        Ok(Range { start, end, inverted })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.inverted {
            f.write_str("@")?;
        }
        match self.start {
            s if s == f64::NEG_INFINITY => f.write_str("~:")?,
            0.0 if self.end.is_finite() => {}
            s => write!(f, "{s}:")?,
        }
        match self.end.is_finite() {
            true => write!(f, "{}", self.end),
            false => Ok(()),
        }
    }
}

/// What can be given a threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Seconds since the daemon's last heartbeat.
    Heartbeat,
    /// Sources that are stale.
    Stale,
    /// Sources that are not complete yet.
    Building,
    /// Seconds since the last packet of the source that has been quiet longest.
    Age,
    /// Gaps per minute.
    Gaps,
    /// Messages given up per minute.
    Lost,
    /// Datagrams per minute that the kernel dropped.
    KernelDrops,
    /// 99th percentile, packet to book, in microseconds.
    P99,
    /// Books for which there was no room.
    Refused,
}

impl Metric {
    pub const ALL: [Metric; 9] = [
        Metric::Heartbeat,
        Metric::Stale,
        Metric::Building,
        Metric::Age,
        Metric::Gaps,
        Metric::Lost,
        Metric::KernelDrops,
        Metric::P99,
        Metric::Refused,
    ];

    /// On the command line and in the performance data.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Heartbeat => "heartbeat",
            Metric::Stale => "stale",
            Metric::Building => "building",
            Metric::Age => "age",
            Metric::Gaps => "gaps",
            Metric::Lost => "lost",
            Metric::KernelDrops => "kernel_drops",
            Metric::P99 => "p99",
            Metric::Refused => "refused",
        }
    }

    /// Unit of measurement of the performance data.
    const fn unit(self) -> &'static str {
        match self {
            Metric::Heartbeat | Metric::Age => "s",
            Metric::P99 => "us",
            _ => "",
        }
    }

    /// The ranges where the command line gives none. Quiet feeds and slow machines are for the user to judge.
    const fn usual(self) -> [Option<Range>; 2] {
        match self {
            Metric::Heartbeat => [Some(Range::up_to(1.0)), Some(Range::up_to(5.0))],
            Metric::Stale => [Some(Range::up_to(0.0)), Some(Range::up_to(0.0))],
            Metric::Building | Metric::Lost | Metric::KernelDrops | Metric::Refused => {
                [Some(Range::up_to(0.0)), None]
            }
            Metric::Age | Metric::Gaps | Metric::P99 => [None, None],
        }
    }

    /// What an alert says.
    fn complaint(self, value: f64, reading: &Reading) -> String {
        let named = |state: State| {
            let names: Vec<&str> = reading
                .sources
                .iter()
                .filter(|source| source.state == state)
                .map(|source| source.name.as_str())
                .collect();
            format!(
                "{} of {} sources {}: {}",
                names.len(),
                reading.sources.len(),
                state.name(),
                names.join(", ")
            )
        };
        match self {
            Metric::Heartbeat => format!("no heartbeat for {value:.1} s"),
            Metric::Stale if value > 0.0 => named(State::Stale),
            Metric::Building if value > 0.0 => named(State::Building),
            Metric::Stale | Metric::Building => format!("{value} sources {}", self.name()),
            Metric::Age => {
                let quiet = reading
                    .sources
                    .iter()
                    .filter(|s| s.last_packet_ns > 0)
                    .min_by_key(|s| s.last_packet_ns);
                format!(
                    "no packet for {value:.1} s from {}",
                    quiet.map_or("any source", |s| &s.name)
                )
            }
            Metric::Gaps => format!("{value:.0} gaps per minute"),
            Metric::Lost => format!("{value:.0} messages lost per minute"),
            Metric::KernelDrops => format!("the kernel drops {value:.0} datagrams per minute"),
            Metric::P99 => format!("p99 latency {value:.1} us"),
            Metric::Refused => format!("no room for {value:.0} books"),
        }
    }
}

/// A threshold of the command line: `gaps=10`, `p99=~:50`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Threshold {
    pub metric: Metric,
    pub range: Range,
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        let names = Metric::ALL.map(Metric::name).join(", ");
        let (name, range) = text
            .split_once('=')
            .ok_or_else(|| format!("give METRIC=RANGE; metrics are {names}"))?;
        let metric = Metric::ALL
            .into_iter()
            .find(|metric| metric.name() == name)
            .ok_or_else(|| format!("there is no metric {name:?}; metrics are {names}"))?;
        Ok(Threshold {
            metric,
            range: range.parse()?,
        })
    }
}

/// What to alert on; the last of several for one metric counts.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Thresholds {
    pub warning: Vec<Threshold>,
    pub critical: Vec<Threshold>,
}

impl Thresholds {
    fn of(&self, metric: Metric) -> [Option<Range>; 2] {
        let given = |list: &[Threshold]| list.iter().rev().find(|t| t.metric == metric).map(|t| t.range);
        let (warning, critical) = (given(&self.warning), given(&self.critical));
        if warning.is_none() && critical.is_none() {
            return metric.usual();
        }
        [warning, critical]
    }
}

/// The line and the exit code.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Answer {
    pub verdict: Verdict,
    pub text: String,
}

impl Answer {
    /// Without a reading: the daemon is not there, or it cannot be told.
    pub(crate) fn without_reading(verdict: Verdict, why: &str) -> Answer {
        Answer {
            verdict,
            text: line(verdict, why, ""),
        }
    }
}

/// A line break or a `|` would end the text; the guidelines leave no way to write them.
fn line(verdict: Verdict, says: &str, performance: &str) -> String {
    let says: String = says
        .chars()
        .map(|c| if c == '|' || c.is_control() { ' ' } else { c })
        .collect();
    match performance {
        "" => format!("TICKWIRE {} - {says}\n", verdict.name()),
        data => format!("TICKWIRE {} - {says} | {data}\n", verdict.name()),
    }
}

/// Judges a reading, already cut down to the feeds asked for.
pub(crate) fn check(reading: &Reading, interval: Option<&Interval>, thresholds: &Thresholds) -> Answer {
    let mut found: Vec<(Verdict, String)> = Vec::new();
    let mut performance: Vec<String> = Vec::new();
    match reading.daemon.condition {
        Condition::Dead => found.push((
            Verdict::Critical,
            format!("the daemon, pid {}, is dead", reading.daemon.pid),
        )),
        Condition::Ended => found.push((Verdict::Critical, "the daemon has ended".into())),
        Condition::Starting => found.push((Verdict::Warning, "the daemon is starting".into())),
        Condition::Ready | Condition::Silent => {}
    }
    if reading.sources.is_empty() {
        found.push((Verdict::Warning, "there is no source".into()));
    }
    for metric in Metric::ALL {
        let [warning, critical] = thresholds.of(metric);
        let value = value(metric, reading, interval);
        if let Some(value) = value {
            let alerts = |range: Option<Range>| range.is_some_and(|range| range.alerts(value));
            let verdict = match (alerts(warning), alerts(critical)) {
                (_, true) => Verdict::Critical,
                (true, false) => Verdict::Warning,
                (false, false) => Verdict::Ok,
            };
            if verdict > Verdict::Ok {
                found.push((verdict, metric.complaint(value, reading)));
            }
        }
        performance.push(datum(metric, value, warning, critical, reading));
    }
    // The worst first; among equals, the order above.
    found.sort_by_key(|(verdict, _)| std::cmp::Reverse(*verdict));
    let verdict = found.first().map_or(Verdict::Ok, |(verdict, _)| *verdict);
    let says: Vec<String> = match found.is_empty() {
        true => vec![all_is_well(reading, interval)],
        false => found.into_iter().map(|(_, text)| text).collect(),
    };
    Answer {
        verdict,
        text: line(verdict, &says.join("; "), &performance.join(" ")),
    }
}

fn all_is_well(reading: &Reading, interval: Option<&Interval>) -> String {
    let messages = interval.map(|interval| {
        let done = interval.of_all(reading.sources.iter());
        let rate = interval.per_second(done.counters.get(Counter::Messages));
        format!(", {rate:.0} messages per second")
    });
    let ended = reading.sources.iter().filter(|s| s.state == State::Ended).count();
    let ended = if ended > 0 {
        format!(", {ended} of them ended")
    } else {
        String::new()
    };
    let (feeds, sources) = (reading.feeds().len(), reading.sources.len());
    format!(
        "{feeds} feeds, {sources} sources{ended}{}",
        messages.unwrap_or_default()
    )
}

/// `'label'=value[unit];[warn];[crit];[min];[max]`; `U` for what could not be told.
fn datum(
    metric: Metric,
    value: Option<f64>,
    warning: Option<Range>,
    critical: Option<Range>,
    reading: &Reading,
) -> String {
    let text = value.map_or("U".to_string(), |value| match metric {
        Metric::Heartbeat | Metric::Age | Metric::P99 => format!("{value:.3}"),
        _ => format!("{value:.0}"),
    });
    let range = |range: Option<Range>| range.map_or(String::new(), |range| range.to_string());
    let most = match metric {
        Metric::Stale | Metric::Building => format!(";{}", reading.sources.len()),
        _ => String::new(),
    };
    format!(
        "'{}'={text}{};{};{};0{most}",
        metric.name(),
        metric.unit(),
        range(warning),
        range(critical)
    )
}

fn value(metric: Metric, reading: &Reading, interval: Option<&Interval>) -> Option<f64> {
    let count = |state: State| Some(reading.sources.iter().filter(|s| s.state == state).count() as f64);
    let per_minute = |counter: Counter| {
        let interval = interval?;
        let done = interval.of_all(reading.sources.iter());
        Some(interval.per_second(done.counters.get(counter)) * 60.0)
    };
    match metric {
        Metric::Heartbeat => Some(reading.daemon.heartbeat_age_ns as f64 / 1e9),
        Metric::Stale => count(State::Stale),
        Metric::Building => count(State::Building),
        Metric::Age => {
            let running = reading
                .sources
                .iter()
                .filter(|s| s.last_packet_ns > 0 && s.state != State::Ended);
            let oldest = running.map(|s| s.last_packet_ns).min()?;
            Some(reading.now_ns.saturating_sub(oldest) as f64 / 1e9)
        }
        Metric::Gaps => per_minute(Counter::Gaps),
        Metric::Lost => per_minute(Counter::MessagesLost),
        Metric::KernelDrops => per_minute(Counter::KernelDrops),
        Metric::P99 => {
            let done = interval?.of_all(reading.sources.iter());
            (!done.latency.is_empty()).then(|| done.latency.at_quantile(0.99) as f64 / 1e3)
        }
        Metric::Refused => Some(reading.sources.iter().map(|s| s.refused).sum::<u64>() as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    fn range(text: &str) -> Range {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_are_those_of_the_guidelines() {
        // The table of "Threshold and Ranges".
        for (text, alerts, fine) in [
            ("10", [-0.1, 10.1], [0.0, 10.0]),
            ("10:", [9.9, -5.0], [10.0, 1e9]),
            ("~:10", [10.1, 1e9], [-1e9, 10.0]),
            ("10:20", [9.9, 20.1], [10.0, 20.0]),
            ("@10:20", [10.0, 20.0], [9.9, 20.1]),
        ] {
            let range = range(text);
            assert!(alerts.iter().all(|&v| range.alerts(v)), "{text}");
            assert!(!fine.iter().any(|&v| range.alerts(v)), "{text}");
            assert_eq!(range.to_string(), text);
        }
        for wrong in ["", "x", "20:10", "1:2:3", "@", "inf", "nan:3"] {
            assert!(wrong.parse::<Range>().is_err(), "{wrong}");
        }
        assert!("gaps".parse::<Threshold>().unwrap_err().contains("METRIC=RANGE"));
        assert!(
            "speed=1"
                .parse::<Threshold>()
                .unwrap_err()
                .contains("kernel_drops")
        );
    }

    #[test]
    fn all_is_well() {
        let (before, after) = examples::two_readings();
        let interval = Interval::between(&before, &after);
        let answer = check(&after, interval.as_ref(), &Thresholds::default());
        super::super::golden::compare("nagios_ok.txt", &answer.text);
        assert_eq!(answer.verdict, Verdict::Ok);
    }

    #[test]
    fn the_worst_finding_decides_and_stands_first() {
        let (before, mut after) = examples::two_readings();
        after.sources[0].state = State::Building;
        after.sources[1].state = State::Stale;
        after.daemon.heartbeat_age_ns = 2_500_000_000;
        let interval = Interval::between(&before, &after);
        let answer = check(&after, interval.as_ref(), &Thresholds::default());
        super::super::golden::compare("nagios_stale.txt", &answer.text);
        assert_eq!(answer.verdict, Verdict::Critical);
    }

    #[test]
    fn a_threshold_of_the_command_line_takes_the_place_of_both_usual_ones() {
        let (_, mut reading) = examples::two_readings();
        reading.sources[1].state = State::Stale;
        let thresholds = Thresholds {
            warning: vec!["stale=0".parse().unwrap()],
            critical: vec![],
        };
        assert_eq!(check(&reading, None, &thresholds).verdict, Verdict::Warning);
        let thresholds = Thresholds {
            warning: vec![],
            critical: vec!["stale=1".parse().unwrap()],
        };
        assert_eq!(check(&reading, None, &thresholds).verdict, Verdict::Ok);
    }

    #[test]
    fn each_metric_can_alert() {
        let (before, mut after) = examples::two_readings();
        after.sources[0].counters.add(Counter::Gaps, 3);
        after.sources[0].counters.add(Counter::MessagesLost, 5);
        after.sources[0].counters.add(Counter::KernelDrops, 7);
        after.sources[0].refused = 2;
        let interval = Interval::between(&before, &after);
        for metric in Metric::ALL {
            let never: Threshold = format!("{}=@0:", metric.name()).parse().unwrap();
            let thresholds = Thresholds {
                warning: vec![],
                critical: vec![never],
            };
            let answer = check(&after, interval.as_ref(), &thresholds);
            assert_eq!(answer.verdict, Verdict::Critical, "{}", answer.text);
        }
    }

    #[test]
    fn a_daemon_that_is_gone_is_critical_and_one_that_starts_is_a_warning() {
        let (_, reading) = examples::two_readings();
        for (condition, verdict) in [
            (Condition::Dead, Verdict::Critical),
            (Condition::Ended, Verdict::Critical),
            (Condition::Starting, Verdict::Warning),
        ] {
            let mut reading = reading.clone();
            reading.daemon.condition = condition;
            assert_eq!(check(&reading, None, &Thresholds::default()).verdict, verdict);
        }
        let answer = Answer::without_reading(Verdict::Critical, "no | daemon\nhere");
        assert_eq!(answer.text, "TICKWIRE CRITICAL - no   daemon here\n");
    }
}
