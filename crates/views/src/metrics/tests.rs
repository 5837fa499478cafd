//! The metrics page against a strict reader of the OpenMetrics 1.0 text format, and against the Grafana
//! dashboard.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{examples, golden};
use super::*;

/// A sample: name, labels in order, value.
pub(crate) type Sample = (String, Vec<(String, String)>, f64);

/// What a page holds.
#[derive(Default, Debug)]
pub(crate) struct Parsed {
    /// Family → type.
    families: BTreeMap<String, String>,
    helps: BTreeMap<String, String>,
    pub samples: Vec<Sample>,
}

/// Suffixes that samples of a type may have (OpenMetrics 1.0, "Metric types").
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "counter" => &["_total"],
        "info" => &["_info"],
        "histogram" => &["_bucket", "_sum", "_count"],
        "gauge" | "stateset" => &[""],
        other => panic!("type {other}"),
    }
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(first) && text.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// The text of a quoted value and what follows the quote.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, c @ ('"' | '\\'))) => c,
                other => panic!("escape {other:?}"),
            }),
            c => value.push(c),
        }
    }
    panic!("no end of quotes: {text}");
}

fn sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).expect("a name");
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Vec::new();
    if let Some(mut list) = rest.strip_prefix('{') {
        loop {
            let (label, quoted) = list.split_once("=\"").expect("label=\"value\"");
            assert!(is_name(label), "{line}");
            let (value, after) = unquote(quoted);
            labels.push((label.to_string(), value));
            match after.strip_prefix(',') {
                Some(more) => list = more,
                None => {
                    rest = after.strip_prefix('}').expect("an end of labels");
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').expect("one space");
    assert!(!value.contains(' '), "no timestamps here: {line}");
    (name.to_string(), labels, value.parse().expect("a number"))
}

/// Reads a page, refusing whatever the format does not allow.
pub(crate) fn parse(page: &str) -> Parsed {
    let body = page.strip_suffix("# EOF\n").expect("# EOF at the end");
    let mut parsed = Parsed::default();
    let mut family = String::new();
    let mut seen = BTreeSet::new();
    for line in body.lines() {
        let Some(about) = line.strip_prefix("# ") else {
            let (name, labels, value) = sample(line);
            let kind = &parsed.families[&family];
            let fits = suffixes(kind)
                .iter()
                .any(|suffix| name == format!("{family}{suffix}"));
            assert!(fits, "{name} lies under {family}, a {kind}");
            assert!(seen.insert((name.clone(), labels.clone())), "twice: {line}");
            let unique: BTreeSet<_> = labels.iter().map(|(label, _)| label).collect();
            assert_eq!(unique.len(), labels.len(), "{line}");
            if kind == "stateset" {
                assert!(
                    (value == 0.0 || value == 1.0) && labels.last().unwrap().0 == family,
                    "{line}"
                );
            }
            parsed.samples.push((name, labels, value));
            continue;
        };
        let mut words = about.splitn(3, ' ');
        let (what, name, says) = (
            words.next().unwrap(),
            words.next().unwrap(),
            words.next().unwrap(),
        );
        match what {
            "TYPE" => {
                assert!(is_name(name) && !name.ends_with("_total"), "{line}");
                assert!(
                    parsed.families.insert(name.into(), says.into()).is_none(),
                    "a family lies in one place: {line}"
                );
                family = name.into();
            }
            "UNIT" => assert!(family == name && name.ends_with(&format!("_{says}")), "{line}"),
            "HELP" => {
                assert_eq!(family, name, "{line}");
                let (says, rest) = unquote_help(says);
                assert!(rest.is_empty());
                parsed.helps.insert(name.into(), says);
            }
            other => panic!("{other} in {line}"),
        }
    }
    for (family, kind) in &parsed.families {
        if kind == "histogram" {
            histograms(family, &parsed.samples);
        }
    }
    parsed
}

/// Help is escaped like a quoted value, without the quotes.
fn unquote_help(text: &str) -> (String, &str) {
    let quoted = format!("{text}\"");
    let (says, rest) = unquote(&quoted);
    assert!(rest.is_empty());
    (says, "")
}

/// Buckets ascend, counts do not fall, the last one is `+Inf` and the count.
fn histograms(family: &str, samples: &[Sample]) {
    type Labels = Vec<(String, String)>;
    let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (name, labels, value) in samples {
        if *name == format!("{family}_bucket") {
            let (bound, others) = labels.split_last().expect("labels");
            assert_eq!(bound.0, "le");
            let bound = if bound.1 == "+Inf" {
                f64::INFINITY
            } else {
                bound.1.parse().expect("a bound")
            };
            buckets.entry(others.to_vec()).or_default().push((bound, *value));
        } else if *name == format!("{family}_count") {
            counts.insert(labels.clone(), *value);
        }
    }
    assert_eq!(buckets.len(), counts.len(), "{family}");
    for (labels, list) in buckets {
        assert!(
            list.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1),
            "{family} {labels:?}"
        );
        let last = list.last().expect("buckets");
        assert!(
            last.0 == f64::INFINITY && last.1 == counts[&labels],
            "{family} {labels:?}"
        );
    }
}

#[test]
fn the_page_is_what_is_expected_and_a_strict_reader_accepts_it() {
    let (_, after) = examples::two_readings();
    let text = page(Some(&after), Format::OpenMetrics);
    // A new counter in the table is no change of the form.
    let left_out = |line: &str| {
        let others = Counter::ALL
            .iter()
            .map(|c| c.spec().id)
            .filter(|id| !["messages", "gaps"].contains(id));
        others.into_iter().any(|id| {
            let family = format!("tickwire_{id}");
            line.split(['{', ' '])
                .any(|word| word == family || word == format!("{family}_total"))
        })
    };
    let form: String = text
        .split_inclusive('\n')
        .filter(|line| !left_out(line))
        .collect();
    golden::compare("metrics.txt", &form);
    let parsed = parse(&text);
    // Abbreviated units as promtool knows them (client_golang, promlint, unitAbbreviations): none is a word
    // of a name.
    const UNITS: [&str; 15] = [
        "s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d", "c",
    ];
    for (name, ..) in &parsed.samples {
        assert!(!name.split('_').any(|word| UNITS.contains(&word)), "{name}");
    }
    let lines = |line: &str| -> Vec<f64> {
        let of_line = parsed.samples.iter().filter(|(name, labels, _)| {
            name == "tickwire_line_packets_total" && labels[3] == ("line".to_string(), line.to_string())
        });
        of_line.map(|sample| sample.2).collect()
    };
    let counted = |counter| -> Vec<f64> {
        let sources = after.sources.iter();
        sources
            .map(|source| source.counters.get(counter) as f64)
            .collect()
    };
    assert_eq!(lines("A"), counted(Counter::PacketsA));
    assert_eq!(lines("B"), counted(Counter::PacketsB));
    for counter in Counter::ALL {
        if [Counter::PacketsA, Counter::PacketsB].contains(counter) {
            continue;
        }
        let spec = counter.spec();
        let family = format!("tickwire_{}", spec.id);
        assert_eq!(parsed.helps[&family], spec.sentence);
        let told: Vec<&Sample> = parsed
            .samples
            .iter()
            .filter(|(name, ..)| *name == format!("{family}_total"))
            .collect();
        assert_eq!(told.len(), after.sources.len());
        for (sample, source) in told.iter().zip(&after.sources) {
            assert_eq!(sample.2, source.counters.get(*counter) as f64);
            assert_eq!(sample.1[1], ("source".to_string(), source.name.clone()));
        }
    }
}

#[test]
fn buckets_hold_what_their_bounds_say() {
    let mut latency = Distribution::default();
    for ns in [63, 64, 127, 128, 255, (1 << 30) - 1, 1 << 30] {
        latency.record(ns);
    }
    let mut out = Exposition {
        text: "# TYPE t_seconds histogram\n".into(),
        format: Format::OpenMetrics,
    };
    out.histogram("t_seconds", &[("feed", "x")], &latency);
    let text = out.text + "# EOF\n";
    let parsed = parse(&text);
    let bucket = |bound: &str| {
        parsed
            .samples
            .iter()
            .find(|(_, labels, _)| labels.iter().any(|l| l.1 == bound))
            .unwrap()
            .2
    };
    assert_eq!(
        ["0.000000063", "0.000000127", "0.000000255", "1.073741823", "+Inf"].map(bucket),
        [1.0, 3.0, 5.0, 6.0, 7.0]
    );
}

#[test]
fn names_from_outside_are_escaped() {
    let (_, mut reading) = examples::two_readings();
    reading.sources[0].name = "a\"b\\c\nd".into();
    let parsed = parse(&page(Some(&reading), Format::OpenMetrics));
    assert!(
        parsed
            .samples
            .iter()
            .any(|(_, labels, _)| labels.iter().any(|l| l.1 == "a\"b\\c\nd"))
    );
}

#[test]
fn without_a_region_the_page_says_so() {
    let parsed = parse(&page(None, Format::OpenMetrics));
    let readable: Vec<f64> = parsed
        .samples
        .iter()
        .filter(|s| s.0 == "tickwire_region_readable")
        .map(|s| s.2)
        .collect();
    assert_eq!(readable, [0.0]);
}

/// Words of a query that are metrics: those that begin with the project's prefix.
fn metrics_of(query: &str) -> Vec<String> {
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with("tickwire_"))
        .map(String::from)
        .collect()
}

/// Every `expr` and every `query` of a dashboard, wherever it lies.
fn queries(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                match value {
                    serde_json::Value::String(text) if name == "expr" || name == "query" => {
                        found.push(text.clone())
                    }
                    value => queries(value, found),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| queries(item, found)),
        _ => {}
    }
}

#[test]
fn every_metric_and_label_of_the_dashboard_is_exported() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/grafana-tickwire.json"
    );
    let dashboard: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (_, after) = examples::two_readings();
    let parsed = parse(&page(Some(&after), Format::OpenMetrics));
    let exported: BTreeSet<&str> = parsed.samples.iter().map(|(name, ..)| name.as_str()).collect();
    let labels: BTreeSet<&str> = parsed
        .samples
        .iter()
        .flat_map(|s| &s.1)
        .map(|(label, _)| label.as_str())
        .collect();
    let mut found = Vec::new();
    queries(&dashboard, &mut found);
    let used: BTreeSet<String> = found.iter().flat_map(|query| metrics_of(query)).collect();
    assert!(used.len() >= 12, "{used:?}");
    for metric in &used {
        // The name of a state set is the name of one of its labels too.
        assert!(
            exported.contains(metric.as_str()),
            "{metric} is in the dashboard but not exported"
        );
    }
    for query in &found {
        for list in query
            .split("by (")
            .skip(1)
            .chain(query.split("label_values(").skip(1))
        {
            let list = list.split(')').next().unwrap();
            for label in list
                .split(',')
                .map(str::trim)
                .filter(|l| !l.starts_with("tickwire_"))
            {
                assert!(labels.contains(label), "label {label} of {query} is not exported");
            }
        }
    }
}

mod promql;

/// What a dashboard's variables stand for.
fn filled(query: &str) -> String {
    query.replace("$__rate_interval", "1m").replace("$feed", ".*")
}

#[test]
fn every_query_of_the_dashboard_is_promql() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/grafana-tickwire.json"
    );
    let dashboard: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut found = Vec::new();
    queries(&dashboard, &mut found);
    let expressions: Vec<&String> = found.iter().filter(|q| !q.starts_with("label_values(")).collect();
    assert!(expressions.len() > 20, "{expressions:?}");
    for query in expressions {
        if let Err(why) = promql::check(&filled(query)) {
            panic!("{query}: {why}");
        }
    }
    for wrong in [
        "a + 2 * on (b) group_left () c",
        "sum by (a (b)",
        "rate(a)",
        "rate(a[1m]",
        "a{b=c}",
        "a == ",
        "sum(a) b",
        "histogram_quantile(a)",
    ] {
        assert!(promql::check(wrong).is_err(), "{wrong} is no query");
    }
}

#[test]
fn the_text_format_says_the_same_samples_by_its_own_rules() {
    let (_, after) = examples::two_readings();
    let open = parse(&page(Some(&after), Format::OpenMetrics));
    let text = page(Some(&after), Format::Text);
    assert!(
        !text.contains("# EOF") && !text.contains("# UNIT"),
        "OpenMetrics only"
    );
    let (mut kinds, mut samples) = (BTreeMap::new(), Vec::new());
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(rest) => {
                let (name, kind) = rest.split_once(' ').expect("name and type");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(kinds.insert(name, kind).is_none(), "{name} twice");
            }
            None if line.starts_with("# HELP ") => {}
            None => samples.push(sample(line)),
        }
    }
    assert_eq!(samples, open.samples);
    for (name, ..) in &samples {
        let is_typed = kinds.contains_key(name.as_str())
            || ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|suffix| name.strip_suffix(suffix))
                .any(|family| kinds.get(family) == Some(&"histogram"));
        assert!(is_typed, "{name} has no type");
    }
}

#[test]
fn who_asks_for_open_metrics_gets_it_and_everybody_else_the_older_format() {
    for (accept, format) in [
        ("", Format::Text),
        ("*/*", Format::Text),
        ("text/plain", Format::Text),
        ("application/openmetrics-text", Format::OpenMetrics),
        (
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            Format::OpenMetrics,
        ),
        (
            "application/openmetrics-text; q=0.3, text/plain; q=0.9",
            Format::Text,
        ),
        ("application/openmetrics-text;q=0", Format::Text),
        ("APPLICATION/OpenMetrics-Text;q=nonsense", Format::OpenMetrics),
    ] {
        assert_eq!(Format::accepted(accept), format, "{accept:?}");
    }
}
