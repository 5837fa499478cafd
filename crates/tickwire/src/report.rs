//! What a user sees at the end of a run: tables in the terminal, one HTML file for the browser.

use tickwire_lab::{Histogram, Report, Table, format_count};

use crate::config::Config;
use tickwire_control::results::{BookComparison, ExchangeResults, OrderComparison, TraderResults};
use tickwire_control::summary;

/// Both sides of a demo and what comparing them found.
pub(crate) struct Run<'a> {
    pub config: &'a Config,
    pub exchange: &'a ExchangeResults,
    pub trader: &'a TraderResults,
    pub books: &'a BookComparison,
    pub orders: &'a OrderComparison,
}

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
                summary::counter_table_of(&self.trader.counters).to_text(tickwire_console::terminal::width())
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
        format!("trader: on core {}, {}", value("core"), value(summary::WAITING))
    }

    pub(crate) fn to_html(&self) -> String {
        let latencies = self.latencies();
        let outside = [(summary::OUTSIDE, &self.exchange.packet_to_order)];
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
            .table(summary::counter_table_of(&self.trader.counters))
            .listing("Configuration", &self.config.to_toml())
            .to_html()
    }

    fn latencies(&self) -> Vec<(&str, &Histogram)> {
        let stages = self.trader.stages.iter().map(|(name, h)| (name.as_str(), h));
        stages
            .chain([(summary::OUTSIDE, &self.exchange.packet_to_order)])
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

const READING: &str = "receive: from the kernel's receive timestamp to the return of the receive call, of packets by sockets; of \
    those by AF_XDP hook: from the driver's hook to user space, and wire: from the wire, by the card's clock, to the hook; what was \
    not measured has no line; decode: to the event \
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
