//! The metrics page of one reading: OpenMetrics 1.0 text, or Prometheus's text format 0.0.4, as the one who
//! asks prefers.
//!
//! Every counter of the one table is a counter of its own name, `tickwire_<id>_total`, with the table's
//! sentence as its help; the packets of lines A and B are `tickwire_line_packets_total` with the label
//! `line`. Metrics of a source carry `feed`, `source` (the channel), `venue`; latencies per message type are
//! per feed, for there are many.

use std::fmt::{Display, Write};

use tickwire_market::Counter;

use super::model::{ARRIVALS, Condition, Distribution, Reading, Room, Source, State};
use super::top::kinds_of;

/// How the page is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's text format 0.0.4, which every scraper reads. It has neither units nor types of states
    /// and information, which are gauges in it, and a counter's type stands at the name with `_total`.
    Text,
}

impl Format {
    /// What a header field `Accept` prefers (RFC 9110 §12.5.1): the older format unless OpenMetrics is named
    /// and not liked less.
    pub(crate) fn accepted(accept: &str) -> Format {
        let quality = |wanted: &str| {
            accept.split(',').find_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                let is_it = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(wanted));
                let q = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
                // A quality that is no number is as good as none.
                is_it.then(|| q.and_then(|q| q.parse::<f32>().ok()).unwrap_or(1.0))
            })
        };
        match quality("application/openmetrics-text") {
            Some(open) if open > 0.0 && open >= quality("text/plain").unwrap_or(0.0) => Format::OpenMetrics,
            _ => Format::Text,
        }
    }

    /// The header field `Content-Type` of the answer.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Upper ends of the histogram buckets in nanoseconds: 63 ns, 127 ns, … 1.07 s. One less than powers of two,
/// where a bucket of the region ends too: no latency is counted in the wrong one.
const BOUNDS_NS: [u64; 25] = {
    let mut bounds = [0; 25];
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = (1 << (at + 6)) - 1;
        at += 1;
    }
    bounds
};

/// The page. Without a reading it says that there is none.
pub(crate) fn page(reading: Option<&Reading>, format: Format) -> String {
    let mut out = Exposition {
        text: String::with_capacity(64 * 1024),
        format,
    };
    out.family("tickwire_build", "info", "", "The version of the program.");
    out.sample(
        "tickwire_build_info",
        &[("version", env!("CARGO_PKG_VERSION"))],
        1,
    );
    out.family(
        "tickwire_region_readable",
        "gauge",
        "",
        "1 when the region could be read, else 0 and nothing else is told.",
    );
    out.sample("tickwire_region_readable", &[], u8::from(reading.is_some()));
    if let Some(reading) = reading {
        daemon(&mut out, reading);
        sources(&mut out, reading);
        counters(&mut out, reading);
        kinds(&mut out, reading);
        latencies(&mut out, reading);
    }
    match format {
        Format::OpenMetrics => out.text + "# EOF\n",
        Format::Text => out.text,
    }
}

fn daemon(out: &mut Exposition, reading: &Reading) {
    let daemon = &reading.daemon;
    out.family("tickwire_daemon_state", "stateset", "", "How the daemon does.");
    for condition in Condition::ALL {
        let labels = [("tickwire_daemon_state", condition.name())];
        out.sample(
            "tickwire_daemon_state",
            &labels,
            u8::from(condition == daemon.condition),
        );
    }
    let gauges = [
        (
            "tickwire_start_time_seconds",
            "seconds",
            "When the daemon started, since the epoch.",
            seconds(daemon.generation),
        ),
        (
            "tickwire_heartbeat_age_seconds",
            "seconds",
            "Age of the daemon's last heartbeat; one comes every 100 ms.",
            seconds(daemon.heartbeat_age_ns),
        ),
        (
            "tickwire_region_bytes",
            "bytes",
            "Size of the shared memory.",
            daemon.memory_bytes.to_string(),
        ),
    ];
    for (name, unit, help, value) in gauges {
        out.family(name, "gauge", unit, help);
        out.sample(name, &[], value);
    }
    let rooms = [
        ("tickwire_book_slots", "Slots of books", daemon.books),
        (
            "tickwire_super_book_slots",
            "Slots of consolidated books",
            daemon.super_books,
        ),
    ];
    for (name, what, Room { used, of }) in rooms {
        for (suffix, says, value) in [("used", "that are taken", used), ("room", "there are", of)] {
            let name = format!("{name}_{suffix}");
            out.family(&name, "gauge", "", &format!("{what} {says}."));
            out.sample(&name, &[], value);
        }
    }
    out.family(
        "tickwire_ring_records",
        "counter",
        "",
        "Records written to the ring of a feed thread.",
    );
    for (at, ring) in daemon.rings.iter().enumerate() {
        out.sample(
            "tickwire_ring_records_total",
            &[("thread", &at.to_string())],
            ring.used,
        );
    }
}

/// The labels of everything about a source.
fn labels(source: &Source) -> [(&str, &str); 3] {
    [
        ("feed", &source.feed),
        ("source", &source.name),
        ("venue", source.venue),
    ]
}

fn sources(out: &mut Exposition, reading: &Reading) {
    out.family(
        "tickwire_source_state",
        "stateset",
        "",
        "Whether the books of a channel can be trusted.",
    );
    for source in &reading.sources {
        for state in State::ALL {
            let [feed, name, venue] = labels(source);
            let labels = [feed, name, venue, ("tickwire_source_state", state.name())];
            out.sample("tickwire_source_state", &labels, u8::from(state == source.state));
        }
    }
    out.family(
        "tickwire_next_sequence",
        "gauge",
        "",
        "Number of the message that a channel waits for.",
    );
    for source in &reading.sources {
        out.sample("tickwire_next_sequence", &labels(source), source.next_seq);
    }
    let last = "tickwire_last_packet_timestamp_seconds";
    out.family(
        last,
        "gauge",
        "seconds",
        "When a channel's last packet was received, since the epoch; absent before the first.",
    );
    for source in reading.sources.iter().filter(|source| source.last_packet_ns > 0) {
        out.sample(last, &labels(source), seconds(source.last_packet_ns));
    }
    out.family(
        "tickwire_book_updates",
        "counter",
        "",
        "Books written to shared memory.",
    );
    for source in &reading.sources {
        out.sample("tickwire_book_updates_total", &labels(source), source.updates);
    }
    out.family(
        "tickwire_books_refused",
        "counter",
        "",
        "Books not shown because every slot was taken.",
    );
    for source in &reading.sources {
        out.sample("tickwire_books_refused_total", &labels(source), source.refused);
    }
}

fn counters(out: &mut Exposition, reading: &Reading) {
    // One family for both lines: `_b` at the end of a name would be a unit, of bytes.
    let lines = [(Counter::PacketsA, "A"), (Counter::PacketsB, "B")];
    out.family(
        "tickwire_line_packets",
        "counter",
        "",
        "Datagrams received, by line.",
    );
    for (counter, line) in lines {
        for source in &reading.sources {
            let [feed, name, venue] = labels(source);
            out.sample(
                "tickwire_line_packets_total",
                &[feed, name, venue, ("line", line)],
                source.counters.get(counter),
            );
        }
    }
    for counter in Counter::ALL {
        if lines.iter().any(|(other, _)| other == counter) {
            continue;
        }
        let spec = counter.spec();
        let family = format!("tickwire_{}", spec.id);
        out.family(&family, "counter", "", spec.sentence);
        let sample = format!("{family}_total");
        for source in &reading.sources {
            out.sample(&sample, &labels(source), source.counters.get(*counter));
        }
    }
}

fn kinds(out: &mut Exposition, reading: &Reading) {
    let of = |feed: &str| {
        (
            kinds_of(reading.of_feed(feed)),
            reading.of_feed(feed).next().map_or("", |s| s.venue),
        )
    };
    let told = [
        (
            "tickwire_type_messages",
            "Messages of a type, as the venue writes it.",
            false,
        ),
        (
            "tickwire_type_filtered",
            "Of them, dropped before decoding because nobody had subscribed.",
            true,
        ),
    ];
    for (family, help, filtered) in told {
        out.family(family, "counter", "", help);
        let sample = format!("{family}_total");
        for feed in reading.feeds() {
            let (kinds, venue) = of(feed);
            for kind in kinds {
                let labels = [("feed", feed), ("venue", venue), ("type", kind.name.as_str())];
                out.sample(&sample, &labels, if filtered { kind.filtered } else { kind.seen });
            }
        }
    }
    let family = "tickwire_type_latency_seconds";
    out.family(
        family,
        "histogram",
        "seconds",
        "Packet in memory to book visible, by message type.",
    );
    for feed in reading.feeds() {
        let (kinds, venue) = of(feed);
        for kind in kinds.iter().filter(|kind| !kind.latency.is_empty()) {
            let labels = [("feed", feed), ("venue", venue), ("type", kind.name.as_str())];
            out.histogram(family, &labels, &kind.latency);
        }
    }
}

fn latencies(out: &mut Exposition, reading: &Reading) {
    /// Which of a source's distributions.
    type Of = fn(&Source) -> &Distribution;
    let told: [(&str, &str, Of); 2] = [
        (
            "tickwire_latency_seconds",
            "Packet in memory to book visible.",
            |s| &s.latency,
        ),
        (
            "tickwire_super_latency_seconds",
            "Packet in memory to consolidated book visible.",
            |s| &s.super_latency,
        ),
    ];
    for (family, help, of) in told {
        out.family(family, "histogram", "seconds", help);
        for source in &reading.sources {
            out.histogram(family, &labels(source), of(source));
        }
    }
    let helps = [
        "On the wire, by the network card's clock, to the hook of its driver; absent where the card does not say.",
        "At the hook of the network driver to packet in memory; absent where lines come by sockets.",
        "The kernel's receive time to packet in memory; absent where that time is not asked for.",
    ];
    for (at, (part, help)) in ARRIVALS.into_iter().zip(helps).enumerate() {
        let family = format!("tickwire_{part}_latency_seconds");
        out.family(&family, "histogram", "seconds", help);
        // What was not measured is no histogram of zeros.
        let measured = reading.sources.iter().filter(|s| !s.arrivals[at].is_empty());
        for source in measured {
            out.histogram(&family, &labels(source), &source.arrivals[at]);
        }
    }
}

/// Nanoseconds as seconds, exact.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Text of the exposition format.
struct Exposition {
    text: String,
    format: Format,
}

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        let out = &mut self.text;
        let (name, kind) = match (self.format, kind) {
            (Format::Text, "counter") => (format!("{name}_total"), kind),
            (Format::Text, "info") => (format!("{name}_info"), "gauge"),
            (Format::Text, "stateset") => (name.to_owned(), "gauge"),
            _ => (name.to_owned(), kind),
        };
        let _ = writeln!(out, "# TYPE {name} {kind}");
        if !unit.is_empty() && self.format == Format::OpenMetrics {
            let _ = writeln!(out, "# UNIT {name} {unit}");
        }
        let _ = write!(out, "# HELP {name} ");
        match self.format {
            Format::OpenMetrics => escape(out, help),
            // Quotes stand as they are there.
            Format::Text => out.push_str(&help.replace('\\', "\\\\").replace('\n', "\\n")),
        }
        out.push('\n');
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let out = &mut self.text;
        out.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            out.push(if at == 0 { '{' } else { ',' });
            out.push_str(label);
            out.push_str("=\"");
            escape(out, value);
            out.push('"');
        }
        if !labels.is_empty() {
            out.push('}');
        }
        let _ = writeln!(out, " {value}");
    }

    fn histogram(&mut self, family: &str, labels: &[(&str, &str)], latency: &Distribution) {
        let bucket = format!("{family}_bucket");
        let mut up_to = |bound: &str, count: u64| {
            let with_bound: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound)]).collect();
            self.sample(&bucket, &with_bound, count);
        };
        for bound in BOUNDS_NS {
            up_to(seconds(bound).trim_end_matches('0'), latency.up_to(bound));
        }
        up_to("+Inf", latency.count());
        self.sample(&format!("{family}_sum"), labels, seconds(latency.sum_ns));
        self.sample(&format!("{family}_count"), labels, latency.count());
    }
}

/// `escaped-string` of the format: a backslash before a backslash and a quote, `\n` for a line feed.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
