//! What a run says at its end: tables for the terminal, figures for files, the machine it ran on.

use std::collections::BTreeMap;

use tickwire_lab::{Histogram, Table, format_count};
use tickwire_market::{Counter, Counters};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::host::Host;

use crate::results::{ExchangeResults, TraderResults};

/// Under which name a report says how the measured thread waits.
pub const WAITING: &str = "waiting";

/// From the exchange's view: first transmission of the packet to arrival of the order.
pub const OUTSIDE: &str = "outside";

/// What the trader alone prints.
pub fn trader_summary(r: &TraderResults) -> String {
    let stages: Vec<_> = r.stages.iter().map(|(name, h)| (name.as_str(), h)).collect();
    format!(
        "{}\n{}\n{} orders, position {}\n",
        Table::latencies("tick to trade, per order", &stages).to_text(tickwire_console::terminal::width()),
        counter_table_of(&r.counters).to_text(tickwire_console::terminal::width()),
        r.orders.len(),
        r.position
    )
}

/// What the exchange alone prints.
pub fn exchange_summary(r: &ExchangeResults) -> String {
    format!(
        "{}\n{} messages published, {} and {} datagrams on lines A and B ({} and {} lost on purpose), {} retransmissions, {} orders\n",
        Table::latencies("as the exchange saw it", &[(OUTSIDE, &r.packet_to_order)])
            .to_text(tickwire_console::terminal::width()),
        format_count(r.messages),
        format_count(r.datagrams[0]),
        format_count(r.datagrams[1]),
        format_count(r.dropped[0]),
        format_count(r.dropped[1]),
        format_count(r.retransmissions),
        r.orders.len()
    )
}

/// Counters that are not zero.
pub fn counter_table(counters: &Counters) -> String {
    counter_table_of(&crate::results::counters_by_id(counters)).to_text(tickwire_console::terminal::width())
}

/// The counters every report shows even when they are zero: what went wrong, or did not.
const ALWAYS: [Counter; 9] = [
    Counter::PacketsA,
    Counter::PacketsB,
    Counter::Messages,
    Counter::PacketsDuplicate,
    Counter::Gaps,
    Counter::MessagesRecovered,
    Counter::MessagesLost,
    Counter::Malformed,
    Counter::BookRejects,
];

/// The counters of a run as a table: those that are not zero, and always those that say what went wrong or
/// did not. `by_id` has values by the counter's identifier ([`Counter::spec`]); one that is missing counts as 0.
pub fn counter_table_of(by_id: &BTreeMap<String, u64>) -> Table {
    let mut table = Table::new("counters", &["", "value", "meaning"]);
    for counter in Counter::ALL {
        let spec = counter.spec();
        let value = by_id.get(spec.id).copied().unwrap_or(0);
        if value > 0 || ALWAYS.contains(counter) {
            table = table.row([
                spec.id.to_string(),
                format_count(value),
                spec.sentence.to_string(),
            ]);
        }
    }
    table
}

/// `tickwire counters`.
pub fn counter_list() -> String {
    let mut table = Table::new("counters", &["id", "unit", "meaning"]);
    for counter in Counter::ALL {
        let spec = counter.spec();
        table = table.row([
            spec.id.to_string(),
            format!("{:?}", spec.unit).to_lowercase(),
            spec.sentence.to_string(),
        ]);
    }
    table.to_text(tickwire_console::terminal::width())
}

/// Histograms of nanoseconds by name as one table of percentiles, for a terminal of the width at hand.
pub fn percentile_table(histograms: &[(&str, &Histogram)]) -> String {
    Table::latencies("", histograms).to_text(tickwire_console::terminal::width())
}

/// Percentiles and count of a histogram as JSON, in the histogram's unit: `min`, `p50`, `p90`, `p99`,
/// `p99_9`, `max`, `count`.
pub fn summary_json(h: &Histogram) -> serde_json::Value {
    let s = h.summary();
    serde_json::json!({
        "min": s.min, "p50": s.p50, "p90": s.p90, "p99": s.p99, "p99_9": s.p99_9, "max": s.max, "count": s.count,
    })
}

/// Machine, pinning, clock, load shape and command: what a figure needs beside it.
pub fn host(clock: &Clock, waiting: Option<String>) -> Vec<(String, String)> {
    let machine = Host::describe(clock);
    let mut facts = vec![(
        "version".to_string(),
        format!("tickwire {}", tickwire_console::version().text),
    )];
    facts.extend(
        machine
            .facts()
            .iter()
            .map(|(name, value)| (name.to_string(), value.clone())),
    );
    facts.extend(machine.warnings().iter().map(|w| ("note".to_string(), w.clone())));
    let mut add = |name: &str, value: String| facts.push((name.to_string(), value));
    if let Some(waiting) = waiting {
        add(WAITING, waiting);
    }
    add("core", tickwire_runtime::affinity::current_core().to_string());
    // Arguments only: the path of the program says nothing about the run.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    add("command", format!("tickwire {}", arguments.join(" ")));
    facts
}

/// Memory of this process that is in use, KiB: VmRSS of proc(5). `None` where there is no such file.
pub fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}
