//! What a user sees at the end of a run: tables in the terminal, one HTML file for the browser.

use std::collections::BTreeMap;

use tickwire_lab::{Histogram, Report, Table, format_count};
use tickwire_market::{Counter, Counters};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::host::Host;

use crate::config::{Config, Waiting};
use tickwire_control::results::{BookComparison, ExchangeResults, OrderComparison, TraderResults};

/// Both sides of a demo and what comparing them found.
pub(crate) struct Run<'a> {
    pub(crate) config: &'a Config,
    pub(crate) exchange: &'a ExchangeResults,
    pub(crate) trader: &'a TraderResults,
    pub(crate) books: &'a BookComparison,
    pub(crate) orders: &'a OrderComparison,
}

/// Under which name a report says how the measured thread waits.
const WAITING: &str = "waiting";

/// From the exchange's view: first transmission of the packet to arrival of the order.
const OUTSIDE: &str = "outside";

impl Run<'_> {
    /// The result first, then how it came about; with `is_verbose`, what the trader has counted.
    pub(crate) fn to_text(&self, is_verbose: bool) -> String {
        let mut text = format!("{}\n", self.result());
        for line in self.verdict().iter().chain([&self.waiting()]) {
            text += &format!("  {line}\n");
        }
        text += &format!(
            "\n{}",
            self.latency_table().to_text(tickwire_console::terminal::width())
        );
        if is_verbose {
            text += &format!(
                "\n{}",
                counter_table_of(&self.trader.counters).to_text(tickwire_console::terminal::width())
            );
        }
        text
    }

    /// What is wrong, a clause each; nothing where both sides agree.
    pub(crate) fn faults(&self) -> Vec<String> {
        let (books, orders) = (self.books, self.orders);
        let mut faults = Vec::new();
        if books.differences > 0 {
            faults.push(format!(
                "{} of {} price levels differ between exchange and trader",
                books.differences, books.levels
            ));
        }
        if books.levels == 0 {
            faults.push("the exchange's books are empty, so nothing was compared".to_owned());
        }
        if !orders.unaccounted.is_empty() {
            faults.push(format!("{} orders are unaccounted for", orders.unaccounted.len()));
        }
        if orders.orders == 0 {
            faults.push(format!(
                "no order was sent, though the close waited {} s for one, so the path was not measured; give a higher --rate",
                self.config.exchange.overtime_s
            ));
        }
        if self.exchange.unmatched_causes > 0 {
            faults.push(format!(
                "{} orders name a cause that was never published",
                self.exchange.unmatched_causes
            ));
        }
        faults
    }

    fn result(&self) -> String {
        let faults = self.faults();
        match faults.is_empty() {
            true => format!(
                "PASSED: {} messages over {}, {} orders: books and orders of exchange and trader agree",
                format_count(self.exchange.messages),
                self.config.feed[0].protocol(),
                format_count(self.orders.orders as u64),
            ),
            false => format!("FAILED: {}", faults.join("; ")),
        }
    }

    /// How the trader waited for packets, and why so.
    fn waiting(&self) -> String {
        let fact = |name: &str| self.trader.host.iter().find(|(fact, _)| fact == name);
        let value = |name: &str| fact(name).map_or("not known", |(_, value)| value.as_str());
        format!("trader: on core {}, {}", value("core"), value(WAITING))
    }

    pub(crate) fn to_html(&self) -> String {
        let latencies = self.latencies();
        let outside = [(OUTSIDE, &self.exchange.packet_to_order)];
        let inside: Vec<_> = latencies
            .iter()
            .copied()
            .filter(|(n, _)| *n == "total")
            .chain(outside)
            .collect();
        let mut report = Report::new("Tickwire demo: tick to trade")
            .paragraph(&self.result())
            .paragraph(&self.description())
            .facts("Machine and run", &self.trader.host)
            .table(self.latency_table())
            .paragraph(READING)
            .percentiles("Percentiles, per stage", &latencies)
            .histogram("Distribution", &inside)
            .timeseries(
                "Packet to order over time, as the exchange saw it",
                &self.exchange.packet_to_order_series,
            )
            .timeseries("Inside the trader over time", &self.trader.total_series)
            .heading("Correctness");
        for line in self.verdict() {
            report = report.paragraph(&line);
        }
        for difference in self
            .books
            .examples
            .iter()
            .chain(self.orders.unaccounted.iter().take(5))
        {
            report = report.paragraph(difference);
        }
        report
            .table(counter_table_of(&self.trader.counters))
            .listing("Configuration", &self.config.to_toml())
            .to_html()
    }

    fn latencies(&self) -> Vec<(&str, &Histogram)> {
        let stages = self.trader.stages.iter().map(|(name, h)| (name.as_str(), h));
        stages
            .chain([(OUTSIDE, &self.exchange.packet_to_order)])
            .collect()
    }

    fn latency_table(&self) -> Table {
        Table::latencies("tick to trade, per order", &self.latencies())
    }

    fn description(&self) -> String {
        let c = self.config;
        format!(
            "{} instruments, {} messages at {} per second on average, {} s, seed {}; loss {} and {}, duplication {} and {}, reordering {} and {} on lines A and B. {}",
            c.exchange.symbols.0,
            format_count(self.exchange.messages),
            format_count(c.exchange.rate.0.into()),
            c.exchange.duration_s.0,
            c.exchange.seed,
            c.exchange.line_a.loss.0,
            c.exchange.line_b.loss.0,
            c.exchange.line_a.duplicate.0,
            c.exchange.line_b.duplicate.0,
            c.exchange.line_a.reorder.0,
            c.exchange.line_b.reorder.0,
            "Open loop: the exchange publishes by the clock, whether the trader keeps up or not."
        )
    }

    fn verdict(&self) -> Vec<String> {
        let e = self.exchange;
        let statuses: Vec<String> = self
            .orders
            .by_status
            .iter()
            .map(|(status, n)| format!("{} {}", format_count(*n as u64), status_name(*status)))
            .collect();
        let mut lines = vec![
            format!(
                "feed: {} messages published; {} and {} datagrams sent on lines A and B, {} and {} lost there; {} retransmissions",
                format_count(e.messages),
                format_count(e.datagrams[0]),
                format_count(e.datagrams[1]),
                format_count(e.dropped[0]),
                format_count(e.dropped[1]),
                format_count(e.retransmissions)
            ),
            format!(
                "orders: {} sent ({}); position {}",
                format_count(self.orders.orders as u64),
                statuses.join(", "),
                self.trader.position
            ),
        ];
        lines.push(match self.books.differences {
            0 => format!(
                "books: equal, {} levels of {} instruments compared",
                format_count(self.books.levels as u64),
                self.books.instruments
            ),
            n => format!(
                "BOOKS DIFFER at {n} of {} levels; first: {}",
                self.books.levels,
                self.books.examples.join("; ")
            ),
        });
        lines.push(match self.orders.unaccounted.as_slice() {
            [] => "orders: every one accounted for on both sides".to_string(),
            [first, ..] => format!(
                "ORDERS UNACCOUNTED FOR: {}; first: {first}",
                self.orders.unaccounted.len()
            ),
        });
        lines
    }
}

const READING: &str = "receive: from the kernel's receive timestamp to the return of the receive call; decode: to the event \
    (sequencing, line arbitration, and the messages before it in the same packet included); book: order book update; decide: \
    rule and pre-trade checks; encode: FIX message; send: the send call, in which a loopback network delivers the order to the \
    other side; outside: from the exchange's clock reading before the packet's first transmission to the one after it received \
    the order, both on the exchange's own core.";

fn status_name(status: char) -> &'static str {
    match status {
        'A' => "unanswered",
        '0' => "open",
        '1' => "partially filled",
        '2' => "filled",
        '4' => "cancelled",
        '8' => "rejected",
        _ => "of unknown status",
    }
}

/// What the trader alone prints.
pub(crate) fn trader_summary(r: &TraderResults) -> String {
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
pub(crate) fn exchange_summary(r: &ExchangeResults) -> String {
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
pub(crate) fn counter_table(counters: &Counters) -> String {
    counter_table_of(&tickwire_control::results::counters_by_id(counters))
        .to_text(tickwire_console::terminal::width())
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

fn counter_table_of(by_id: &BTreeMap<String, u64>) -> Table {
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
pub(crate) fn counter_list() -> String {
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

pub(crate) fn percentile_table(histograms: &[(&str, &Histogram)]) -> String {
    Table::latencies("", histograms).to_text(tickwire_console::terminal::width())
}

pub(crate) fn summary_json(h: &Histogram) -> serde_json::Value {
    let s = h.summary();
    serde_json::json!({
        "min": s.min, "p50": s.p50, "p90": s.p90, "p99": s.p99, "p99_9": s.p99_9, "max": s.max, "count": s.count,
    })
}

/// Machine, pinning, clock, load shape and command: what a figure needs beside it.
pub(crate) fn host(clock: &Clock, waiting: Option<&Waiting>) -> Vec<(String, String)> {
    let machine = Host::describe(clock);
    let mut facts = vec![(
        "version".to_string(),
        format!("tickwire {}", env!("TICKWIRE_VERSION")),
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
        add(WAITING, waiting.to_string());
    }
    add("core", tickwire_runtime::affinity::current_core().to_string());
    // Arguments only: the path of the program says nothing about the run.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    add("command", format!("tickwire {}", arguments.join(" ")));
    facts
}

/// Memory of this process that is in use, KiB: VmRSS of proc(5). `None` where there is no such file.
pub(crate) fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}
