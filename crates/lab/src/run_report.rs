//! The report of a run: what held, the table of all cases, what was published beside it, pictures group by
//! group, then what the figures need beside them: notes, clock, machine, configuration.

use std::collections::BTreeMap;

use crate::record::{Case, Check, Probe, RunRecord};
use crate::{Histogram, Report, Table, format_count, format_ns, format_ns_of};

/// How many cases a picture shows; a group of more is cut into several.
const CURVES: usize = 8;

/// Everything about a run, for the terminal, a document or a browser.
pub fn report_of(record: &RunRecord) -> Report {
    let mut report = Report::new(&format!("Tickwire lab: {}", record.scenario));
    if !record.about.is_empty() {
        report = report.paragraph(&record.about);
    }
    report = report.paragraph(&verdict(record));
    if !record.failures().is_empty() {
        report = report.table(check_table("Failed checks", &record.failures()));
    }
    let histograms: Vec<Histogram> = record.cases.iter().map(|case| case.histogram(0)).collect();
    if !record.cases.is_empty() {
        report = report
            .heading("Results")
            .table(case_table(record, &histograms))
            .table(condition_table(record, &histograms));
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
    let passed: Vec<&Check> = record.checks.iter().filter(|check| check.passed).collect();
    if !passed.is_empty() {
        report = report.folded(check_table(
            &format!("Checks that held: {}", passed.len()),
            &passed,
        ));
    }
    report.listing("Configuration, with defaults", &record.scenario_toml)
}

/// What a terminal of so many columns shows at the end of a run: tables, the checks that failed, notes.
pub fn terminal_summary(record: &RunRecord, columns: usize) -> String {
    let histograms: Vec<Histogram> = record.cases.iter().map(|case| case.histogram(0)).collect();
    let mut parts = vec![
        format!("{}\n", verdict(record)),
        case_table(record, &histograms).to_text(columns),
        condition_table(record, &histograms).to_text(columns),
    ];
    parts.extend(record.tables.iter().map(|table| table.to_text(columns)));
    for published in &record.published {
        parts.push(format!(
            "{}{}\n",
            published.table.to_text(columns),
            published.differs
        ));
    }
    if !record.failures().is_empty() {
        parts.push(check_table("Failed checks", &record.failures()).to_text(columns));
    }
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
                let times = [s.min, s.p50, s.p99, s.p99_9, s.max].map(|ns| format_ns_of(s.count, ns));
                let cells = [case.name.clone(), measure.name.clone()].into_iter().chain(times);
                table = table.row(cells.chain([format_count(s.count)]));
            }
        }
        report = report.heading("Measures").table(table);
    }
    report.table(explained)
}

/// In a line, whether everything held.
fn verdict(record: &RunRecord) -> String {
    match (record.checks.len(), record.failures().len()) {
        (0, _) => "Checks: none".to_owned(),
        (all, 0) => format!("Checks: all {all} held"),
        (all, failed) => format!("CHECKS FAILED: {failed} of {all}"),
    }
}

fn check_table(title: &str, checks: &[&Check]) -> Table {
    checks
        .iter()
        .fold(Table::new(title, &["", "held", "found"]), |table, check| {
            let held = if check.passed { "yes" } else { "NO" };
            table.row([check.name.as_str(), held, &check.found])
        })
}

fn case_table(record: &RunRecord, histograms: &[Histogram]) -> Table {
    let columns = ["", "min", "mean", "p50", "p90", "p99", "p99.9", "max", "count"];
    let has_reasons = record.cases.iter().any(|case| case.why_unmeasured().is_some());
    // Only where there is something to say.
    let columns: Vec<&str> = columns
        .into_iter()
        .chain(has_reasons.then_some("not measured, because"))
        .collect();
    let mut table = Table::new("Latency, all repetitions together", &columns);
    for (case, histogram) in record.cases.iter().zip(histograms) {
        let s = histogram.summary();
        let mean = histogram.mean().round() as u64;
        let times = [s.min, mean, s.p50, s.p90, s.p99, s.p99_9, s.max].map(|ns| format_ns_of(s.count, ns));
        let why = has_reasons.then(|| case.why_unmeasured().unwrap_or_default().to_owned());
        let cells = [case.name.clone()].into_iter().chain(times);
        table = table.row(cells.chain([format_count(s.count)]).chain(why));
    }
    table
}

/// How steady the figures are, and what the machine did meanwhile.
fn condition_table(record: &RunRecord, histograms: &[Histogram]) -> Table {
    let columns = [
        "",
        "measure",
        "stddev",
        "p50 of repetitions",
        "shared memory before, after",
        "taken by the host",
        "waited for a core",
    ];
    let mut table = Table::new(
        "How steady, and what the machine did meanwhile, repetition by repetition",
        &columns,
    );
    for (case, histogram) in record.cases.iter().zip(histograms) {
        let measured = case.repetitions.iter().filter_map(|r| r.summaries.first());
        let medians = measured
            .filter(|summary| summary.count > 0)
            .map(|summary| summary.p50);
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
        let delays = case.repetitions.iter().filter(|r| !r.run_delays_ns.is_empty());
        let delays: Vec<String> = delays
            .map(|r| {
                let each = r.run_delays_ns.iter();
                each.map(|(role, ns)| format!("{role} {}", format_ns(*ns)))
                    .collect::<Vec<_>>()
                    .join(", ")
            })
            .collect();
        table = table.row([
            case.name.clone(),
            case.measures[0].name.clone(),
            format_ns_of(histogram.count(), histogram.stdev().round() as u64),
            spread,
            states.join("; "),
            stolen.join("; "),
            delays.join("; "),
        ]);
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
            repetition.run_delays_ns = vec![("trader".to_owned(), 2_500_000)];
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
        let text = report_of(&record()).to_text(crate::WHOLE);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
        assert!(at("CHECKS FAILED: 1 of 1") < at("Latency, all repetitions"));
        assert!(at("Latency, all repetitions") < at("Published <2013>"));
        assert!(at("Published <2013>") < at("Another machine."));
        assert!(
            text.contains("55, 240") && text.contains("1.23 %") && text.contains("Half of the round trip.")
        );
    }

    #[test]
    fn a_case_that_was_not_measured_is_blank_with_the_reason_everywhere() {
        let mut record = record();
        let mut failed = Case::new("floor", Measure::new("RTT/2", "Half."));
        failed.unmeasured = Some("the bare trader: Broken pipe".to_owned());
        record.cases.push(failed);
        let report = report_of(&record);
        for text in [
            report.to_text(crate::WHOLE),
            report.to_markdown(),
            report.to_html(),
            terminal_summary(&record, crate::WHOLE),
        ] {
            assert!(text.contains("the bare trader: Broken pipe"), "{text}");
        }
        let row = |text: &str| -> String {
            let line = text
                .lines()
                .find(|line| line.contains("floor") && line.contains("Broken pipe"));
            line.expect("a row").to_owned()
        };
        assert!(
            !row(&report.to_text(crate::WHOLE)).contains("0 ns"),
            "{}",
            row(&report.to_text(crate::WHOLE))
        );
        assert!(row(&report.to_markdown()).contains("| floor |  |  |  |  |  |  |  | 0 |"));
        let manifest = record.files().swap_remove(0).1;
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
        assert_eq!(
            manifest["cases"][10]["unmeasured"],
            "the bare trader: Broken pipe"
        );
        // A repetition without a sample has no figures either, and reads back.
        let none = Histogram::new().summary();
        let text = serde_json::to_string(&none).expect("JSON");
        assert_eq!(
            text,
            r#"{"min":null,"p50":null,"p90":null,"p99":null,"p99_9":null,"max":null,"count":0}"#
        );
        assert_eq!(serde_json::from_str::<crate::Summary>(&text).expect("read"), none);
    }

    #[test]
    fn results_come_before_the_checks_that_held_which_are_folded() {
        let mut record = record();
        record.checks.extend((0..126).map(|i| Check {
            name: format!("held {i}"),
            passed: true,
            found: "so".to_owned(),
        }));
        let html = report_of(&record).to_html();
        let at = |what: &str| html.find(what).unwrap_or_else(|| panic!("no {what}"));
        assert!(
            at("CHECKS FAILED: 1 of 127") < at("3 of 100 lost") && at("3 of 100 lost") < at("<h2>Results")
        );
        assert!(at("<h2>Results") < at("<details") && at("<details") < at("held 0"));
        assert!(html.contains("trader 2.50 ms"));
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
                .to_text(crate::WHOLE)
                .contains("Checks: none")
        );
    }
}
