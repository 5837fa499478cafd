//! `tickwire check cacti`: one line of `name:value` pairs, as a Cacti "Script/Command" data input method with
//! several outputs reads it. Names have at most 19 of `A-Za-z0-9_`: that is what a data source of RRDtool may
//! be called.

use tickwire_market::{Counter, Counters};

use super::model::{Distribution, Reading, State};
use super::top::summed;

/// The outputs before the counters: name and what it is, for the documentation and its test.
pub(crate) const FIGURES: [(&str, &str); 11] = [
    ("up", "1 when the daemon runs, 0 when it does not"),
    ("sources", "channels of feeds"),
    ("live", "of them live"),
    ("building", "of them not complete yet"),
    ("stale", "of them stale"),
    ("ended", "of them ended"),
    ("updates", "updates of books since the start"),
    ("latency_count", "messages with a latency since the start"),
    ("latency_mean_ns", "mean latency since the start, nanoseconds"),
    ("latency_p99_ns", "99th percentile since the start, nanoseconds"),
    ("latency_max_ns", "the longest since the start, nanoseconds"),
];

/// The line for a reading, already cut down to the feed asked for; `up` says whether its daemon runs.
pub(crate) fn line(reading: &Reading, up: bool) -> String {
    let count = |state: State| reading.sources.iter().filter(|s| s.state == state).count() as u64;
    let mut latency = Distribution::default();
    reading
        .sources
        .iter()
        .for_each(|source| latency.add(&source.latency));
    let updates = reading.sources.iter().map(|source| source.updates).sum();
    let figures = [
        u64::from(up),
        reading.sources.len() as u64,
        count(State::Live),
        count(State::Building),
        count(State::Stale),
        count(State::Ended),
        updates,
        latency.count(),
        latency.mean_ns(),
        latency.at_quantile(0.99),
        latency.max_ns,
    ];
    pairs(
        figures.map(|figure| figure.to_string()),
        &summed(reading.sources.iter()),
    )
}

/// Without a daemon: `U`, which RRDtool stores as unknown, for everything but `up`.
pub(crate) fn line_without_reading() -> String {
    let mut figures = FIGURES.map(|_| "U".to_string());
    figures[0] = "0".into();
    let counters = Counter::ALL
        .iter()
        .map(|counter| format!("{}:U", counter.spec().id));
    let figures = FIGURES
        .iter()
        .zip(figures)
        .map(|((name, _), value)| format!("{name}:{value}"));
    figures.chain(counters).collect::<Vec<_>>().join(" ") + "\n"
}

fn pairs(figures: [String; FIGURES.len()], counters: &Counters) -> String {
    let figures = FIGURES
        .iter()
        .zip(figures)
        .map(|((name, _), value)| format!("{name}:{value}"));
    let counters = counters
        .iter()
        .map(|(counter, value)| format!("{}:{value}", counter.spec().id));
    figures.chain(counters).collect::<Vec<_>>().join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;

    #[test]
    fn names_fit_a_data_source_of_rrdtool_and_are_unique() {
        let (_, reading) = examples::two_readings();
        let line = line(&reading, true);
        let mut names: Vec<&str> = line
            .split_whitespace()
            .map(|pair| pair.split_once(':').unwrap().0)
            .collect();
        for name in &names {
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            assert!(plain && (1..=19).contains(&name.len()), "{name}");
        }
        assert_eq!(names.len(), FIGURES.len() + Counter::ALL.len());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIGURES.len() + Counter::ALL.len());
    }

    #[test]
    fn values_are_those_of_the_reading_and_unknown_without_one() {
        let (_, reading) = examples::two_readings();
        // A new counter in the table is no change of the form.
        let some = |line: String| {
            let kept = |pair: &&str| {
                let name = pair.split(':').next().unwrap_or("");
                FIGURES.iter().any(|(figure, _)| *figure == name) || ["messages", "gaps"].contains(&name)
            };
            line.split_whitespace().filter(kept).collect::<Vec<_>>().join(" ") + "\n"
        };
        super::super::golden::compare("cacti.txt", &some(line(&reading, true)));
        super::super::golden::compare("cacti_absent.txt", &some(line_without_reading()));
    }
}
