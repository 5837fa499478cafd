//! The report of a run: what held, the table of all cases, what was published beside it, pictures group by group, then what the
//! figures need beside them: notes, clock, machine, configuration.

use std::collections::BTreeMap;

use crate::record::{Case, Probe, RunRecord};
use crate::{Histogram, Report, Table, format_count, format_ns};

/// How many cases a picture shows; a group of more is cut into several.
const CURVES: usize = 8;

/// Everything about a run, for the terminal, a document or a browser.
pub fn report_of(record: &RunRecord) -> Report {
    let mut report = Report::new(&format!("Tickwire lab: {}", record.scenario));
    if !record.about.is_empty() {
        report = report.paragraph(&record.about);
    }
    report = report.table(check_table(record));
    let histograms: Vec<Histogram> = record.cases.iter().map(|case| case.histogram(0)).collect();
    if !record.cases.is_empty() {
        report = report.heading("Results").table(case_table(record, &histograms));
    }
    for table in &record.tables {
        report = report.table(table.clone());
    }
    if !record.published.is_empty() {
        report = report.heading("Beside it");
    }
    for published in &record.published {
        report = report
            .table(published.table.clone())
            .paragraph(&published.differs);
    }
    report = groups(report, record, &histograms);
    report = others(report, record);
    for case in record.cases.iter().filter(|case| case.over_time) {
        let series = case.series();
        report = report
            .heading(&format!("Over time: {}", case.name))
            .timeseries(&case.name, &series)
            .heat_map(&case.name, &series);
    }
    report = report.heading("What the figures need beside them");
    for note in &record.notes {
        report = report.paragraph(note);
    }
    report = report
        .facts("The run", &run_facts(record))
        .facts("Clock and probes", &probe_facts(&record.probe));
    report = report.facts("Machine", &record.host);
    for warning in &record.host_warnings {
        report = report.paragraph(&format!("Note: {warning}."));
    }
    report.listing("Configuration, with defaults", &record.scenario_toml)
}

/// What a terminal shows at the end of a run: tables, the checks that failed, notes.
pub fn terminal_summary(record: &RunRecord) -> String {
    let histograms: Vec<Histogram> = record.cases.iter().map(|case| case.histogram(0)).collect();
    let mut parts = vec![case_table(record, &histograms).to_text()];
    parts.extend(record.tables.iter().map(Table::to_text));
    for published in &record.published {
        parts.push(format!("{}{}\n", published.table.to_text(), published.differs));
    }
    parts.push(match record.failures().as_slice() {
        [] => format!("checks: all {} held\n", record.checks.len()),
        failed => {
            let failed = RunRecord {
                checks: failed.iter().map(|check| (*check).clone()).collect(),
                ..RunRecord::default()
            };
            check_table(&failed).to_text()
        }
    });
    parts.extend((!record.notes.is_empty()).then(|| format!("{}\n", record.notes.join("\n"))));
    parts.join("\n")
}

/// Percentile curves, distributions and histograms of each group.
fn groups(mut report: Report, record: &RunRecord, histograms: &[Histogram]) -> Report {
    let mut order: Vec<&str> = Vec::new();
    let mut members: BTreeMap<&str, Vec<(&str, &Histogram)>> = BTreeMap::new();
    for (case, histogram) in record.cases.iter().zip(histograms) {
        if !order.contains(&case.group.as_str()) {
            order.push(&case.group);
        }
        members
            .entry(&case.group)
            .or_default()
            .push((&case.label, histogram));
    }
    for group in order {
        let all = &members[group];
        report = report.heading(group);
        for (part, shown) in all.chunks(CURVES).enumerate() {
            let title = match all.len() > CURVES {
                true => format!("{group} ({})", part + 1),
                false => group.to_owned(),
            };
            report = report
                .percentiles(&format!("Percentiles: {title}"), shown)
                .cumulative(&format!("Cumulative distribution: {title}"), shown)
                .histogram(&format!("Distribution: {title}"), shown);
        }
    }
    report
}

/// The measures beyond the first, and what each is.
fn others(mut report: Report, record: &RunRecord) -> Report {
    let mut meanings: BTreeMap<&str, &str> = BTreeMap::new();
    for measure in record.cases.iter().flat_map(|case| &case.measures) {
        meanings.insert(&measure.name, &measure.what);
    }
    if meanings.is_empty() {
        return report;
    }
    let explained = meanings.iter().fold(
        Table::new("What each measure is", &["", "meaning"]),
        |table, (name, what)| table.row([*name, *what]),
    );
    let several: Vec<&Case> = record
        .cases
        .iter()
        .filter(|case| case.measures.len() > 1)
        .collect();
    if !several.is_empty() {
        let columns = ["", "measure", "min", "p50", "p99", "p99.9", "max", "count"];
        let mut table = Table::new("Every measure", &columns);
        for case in several {
            for (i, measure) in case.measures.iter().enumerate() {
                let s = case.histogram(i).summary();
                let times = [s.min, s.p50, s.p99, s.p99_9, s.max].map(format_ns);
                let cells = [case.name.clone(), measure.name.clone()].into_iter().chain(times);
                table = table.row(cells.chain([format_count(s.count)]));
            }
        }
        report = report.heading("Measures").table(table);
    }
    report.table(explained)
}

fn check_table(record: &RunRecord) -> Table {
    let failed = record.failures().len();
    let title = match (record.checks.len(), failed) {
        (0, _) => "Checks: none".to_owned(),
        (all, 0) => format!("Checks: all {all} held"),
        (all, failed) => format!("CHECKS FAILED: {failed} of {all}"),
    };
    record
        .checks
        .iter()
        .fold(Table::new(&title, &["", "held", "found"]), |table, check| {
            let held = if check.passed { "yes" } else { "NO" };
            table.row([check.name.as_str(), held, &check.found])
        })
}

fn case_table(record: &RunRecord, histograms: &[Histogram]) -> Table {
    let columns = [
        "",
        "measure",
        "min",
        "mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "stddev",
        "count",
        "p50 of repetitions",
        "shared memory before, after",
        "taken by the host",
    ];
    let mut table = Table::new("Latency, all repetitions together", &columns);
    for (case, histogram) in record.cases.iter().zip(histograms) {
        let s = histogram.summary();
        let mean = histogram.mean().round() as u64;
        let times = [s.min, mean, s.p50, s.p90, s.p99, s.p99_9, s.max].map(format_ns);
        let medians = case
            .repetitions
            .iter()
            .filter_map(|r| Some(r.summaries.first()?.p50));
        let medians: Vec<u64> = medians.collect();
        let spread = match (medians.iter().min(), medians.iter().max()) {
            (Some(low), Some(high)) => format!("{} to {}", format_ns(*low), format_ns(*high)),
            _ => String::new(),
        };
        let states = case.repetitions.iter().filter_map(|r| r.shared_memory_ns);
        let states: Vec<String> = states.map(|(a, b)| format!("{a}, {b}")).collect();
        let stolen = case.repetitions.iter().filter_map(|r| r.stolen_ppm);
        let stolen: Vec<String> = stolen
            .map(|ppm| format!("{:.2} %", f64::from(ppm) / 10_000.0))
            .collect();
        let cells = [case.name.clone(), case.measures[0].name.clone()];
        let last = [
            format_ns(histogram.stdev().round() as u64),
            format_count(s.count),
            spread,
            states.join("; "),
            stolen.join("; "),
        ];
        table = table.row(cells.into_iter().chain(times).chain(last));
    }
    table
}

fn run_facts(record: &RunRecord) -> Vec<(String, String)> {
    let mut facts = vec![
        (
            "scenario".to_owned(),
            format!("{} ({})", record.scenario, record.kind),
        ),
        ("begun".to_owned(), record.started.clone()),
        ("command".to_owned(), record.command.clone()),
        ("version".to_owned(), record.version.clone()),
        (
            "built from".to_owned(),
            record.commit.clone().unwrap_or_else(|| "not known".to_owned()),
        ),
    ];
    facts.extend(record.facts.iter().cloned());
    facts
}

fn probe_facts(probe: &Probe) -> Vec<(String, String)> {
    let tenths = |t: u64| format!("{}.{} ns", t / 10, t % 10);
    let (least, median) = probe.cost_tenths_ns;
    let mut facts = vec![
        ("stamps from".to_owned(), probe.source.clone()),
        (
            "a stamp costs".to_owned(),
            format!("{} at least, {} in the median", tenths(least), tenths(median)),
        ),
        (
            "two stamps in a row are apart".to_owned(),
            format!("{} ns: so much of each span is the probe's own", probe.apart_ns),
        ),
        ("step of the clock".to_owned(), format!("{} ns", probe.step_ns)),
        (
            "drift against the kernel's clock".to_owned(),
            format!("{} parts per billion", probe.drift_ppb),
        ),
        (
            "error of a span of 10 µs".to_owned(),
            format!("{} ns", probe.error_ns(10_000)),
        ),
    ];
    facts.extend(probe.warning.iter().map(|w| ("warning".to_owned(), w.clone())));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Check, Measure, Published};

    fn record() -> RunRecord {
        let mut cases = Vec::new();
        for i in 0..10u64 {
            let name = format!("tcp, way {i}");
            let mut case = Case::new(&name, Measure::new("RTT/2", "Half of the round trip."))
                .measure(Measure::new("inside", "From receive to send."))
                .in_group("tcp", &format!("way {i}"))
                .over_time(i == 0);
            let mut recorder = case.recorder(100);
            (0..100).for_each(|k| recorder.record(k * 1_000, &[1_000 + i * k, 300], &[]));
            let mut repetition = recorder.finish([("sent", 100)]);
            repetition.shared_memory_ns = Some((55, 240));
            repetition.stolen_ppm = Some(12_300);
            case.repetitions.push(repetition);
            cases.push(case);
        }
        RunRecord {
            scenario: "quadra".to_owned(),
            kind: "quadra".to_owned(),
            about: "Exchange & trader.".to_owned(),
            command: "tickwire lab run quadra".to_owned(),
            checks: vec![Check {
                name: "every order answered".to_owned(),
                passed: false,
                found: "3 of 100 lost".to_owned(),
            }],
            notes: vec!["Loopback: not root.".to_owned()],
            published: vec![Published {
                table: Table::new("Published <2013>", &["", "p50"]).row(["poll", "1 µs"]),
                differs: "Another machine.".to_owned(),
            }],
            cases,
            scenario_toml: "name = \"quadra\"\n".to_owned(),
            ..RunRecord::default()
        }
    }

    #[test]
    fn a_failed_check_comes_first_and_the_published_table_with_what_differs() {
        let text = report_of(&record()).to_text();
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
        assert!(at("CHECKS FAILED: 1 of 1") < at("Latency, all repetitions"));
        assert!(at("Latency, all repetitions") < at("Published <2013>"));
        assert!(at("Published <2013>") < at("Another machine."));
        assert!(
            text.contains("55, 240") && text.contains("1.23 %") && text.contains("Half of the round trip.")
        );
    }

    #[test]
    fn ten_cases_of_a_group_are_shown_in_pictures_of_eight_and_two() {
        let html = report_of(&record()).to_html();
        // Three pictures for each part of the group, two over time for the one case that wants them.
        assert_eq!(html.matches("<svg").count(), 2 * 3 + 2);
        assert!(html.contains("Percentiles: tcp (2)") && html.contains("Over time: tcp, way 0"));
        assert!(!html.contains("NaN"));
    }

    #[test]
    fn a_run_without_cases_is_no_error() {
        assert!(
            report_of(&RunRecord::default())
                .to_text()
                .contains("Checks: none")
        );
    }
}
