//! Packet to order, as it was measured in 2017 with packets of the Moscow currency market: one packet at a
//! time by UDP multicast, the FIX order that it causes by TCP ([`sockets`]), by sockets and past them, and
//! the same in memory ([`memory`]). And with ticks that an order can be prepared for ([`ticks`]).
//!
//! The packets are the simulator's ([`Log`]): an order log in FAST whose every entry is known from the engine
//! that made it; or recorded ones ([`Log::recorded`]). What must come back is worked out from that by a naive
//! book and a naive rule, which never see a packet: an order that is wrong, missing or too many fails the
//! run.

pub(crate) mod core;
mod floor;
mod lane;
mod log;
pub(crate) mod memory;
mod recorded;
pub(crate) mod sockets;
pub(crate) mod ticks;

pub(crate) use lane::Measured;
pub(crate) use log::{Checker, ENTRIES_MAX, Log, LogConfig, SIZES, SYMBOL};
pub(crate) use recorded::RecordedConfig;

use std::fmt;

use tickwire_lab::Summary;

/// What the published table says of a series, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Row {
    pub(crate) count: u64,
    pub(crate) min: u64,
    pub(crate) avg: f64,
    pub(crate) max: u64,
    pub(crate) stddev: f64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p95: u64,
    pub(crate) p97: u64,
    pub(crate) p99: u64,
    pub(crate) p99_9: u64,
}

impl Row {
    /// Of exact values, by nearest rank; all 0 if there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = u64>) -> Row {
        let mut sorted: Vec<u64> = values.into_iter().collect();
        sorted.sort_unstable();
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Row::default();
        };
        let n = sorted.len() as f64;
        let avg = sorted.iter().map(|&v| v as f64).sum::<f64>() / n;
        let variance = sorted.iter().map(|&v| (v as f64 - avg).powi(2)).sum::<f64>() / n;
        let at = |q: f64| sorted[((q * n).ceil().max(1.0) as usize - 1).min(sorted.len() - 1)];
        Row {
            count: sorted.len() as u64,
            min,
            avg,
            max,
            stddev: variance.sqrt(),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p97: at(0.97),
            p99: at(0.99),
            p99_9: at(0.999),
        }
    }

    /// As the lab's other tables have them.
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            min: self.min,
            p50: self.p50,
            p90: self.p90,
            p99: self.p99,
            p99_9: self.p99_9,
            max: self.max,
            count: self.count,
        }
    }

    /// As the published table has them: min, avg, max, stddev, p95, p97, p99, p99.9; then what that has not:
    /// p50 and the count.
    pub(crate) fn cells(&self) -> [String; 10] {
        [
            self.min.to_string(),
            format!("{:.0}", self.avg),
            self.max.to_string(),
            format!("{:.0}", self.stddev),
            self.p95.to_string(),
            self.p97.to_string(),
            self.p99.to_string(),
            self.p99_9.to_string(),
            self.p50.to_string(),
            self.count.to_string(),
        ]
    }
}

/// The columns of [`Row::cells`], behind the name.
pub(crate) const COLUMNS: [&str; 11] = [
    "ns", "min", "avg", "max", "stddev", "p95", "p97", "p99", "p99.9", "p50", "packets",
];

/// The published table: CEPappliance and Solarflare TCPDirect, tick to trade, 2017.
pub(crate) const PUBLISHED: [(&str, [u32; 8]); 3] = [
    (
        "Solarflare TCPDirect (server)",
        [1411, 1637, 2638, 150, 2022, 2116, 2303, 2619],
    ),
    (
        "CEPappliance ALU (FPGA)",
        [1050, 1125, 1620, 45, 1251, 1320, 1415, 1549],
    ),
    (
        "CEPappliance WIRE (FPGA)",
        [561, 640, 1163, 45, 768, 825, 907, 1087],
    ),
];

/// What differs from the published measurement, for every report.
pub(crate) const DIFFERS: &str = "Published: two machines and 10 Gbit/s Ethernet, the server with a kernel-bypass card and a hard-coded \
decoder without checks, the appliance an FPGA; times by the measuring side's own hardware. Ours: one machine, the kernel's own loopback, \
both ends on its cores, times by the driver's time stamp counter from before the call that sends until after the call that received; \
the product's whole path, with every check. The packets are the simulator's, in the project's own template set unless the exchange's \
is given; a packet of more than 1,472 bytes is one datagram here and would be fragments on Ethernet. The bare floor is what this host \
takes for the same datagrams in and the same bytes out with no work between, measured in the same run by turns.";

/// An order that was not as it had to be.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Wrong {
    /// Its packet, from 1.
    pub(crate) packet: u64,
    pub(crate) what: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet {}: {}", self.packet, self.what)
    }
}

/// Problems found: the first few, and how many.
#[derive(Clone, Default, Debug)]
pub(crate) struct Problems {
    pub(crate) first: Vec<Wrong>,
    pub(crate) count: u64,
}

impl Problems {
    pub(crate) fn add(&mut self, packet: u64, what: impl Into<String>) {
        self.count += 1;
        if self.first.len() < 5 {
            self.first.push(Wrong {
                packet,
                what: what.into(),
            });
        }
    }

    /// One sentence.
    pub(crate) fn found(&self, orders: u64) -> String {
        let first: Vec<String> = self.first.iter().map(Wrong::to_string).collect();
        match self.count {
            0 => format!("{orders} orders, each with the right price, none besides"),
            n => format!("{n} problems among {orders} orders: {}", first.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_sorting_says() {
        let row = Row::of((1..=1_000).rev());
        assert_eq!((row.min, row.max, row.count), (1, 1_000, 1_000));
        assert_eq!(
            (row.p50, row.p95, row.p97, row.p99, row.p99_9),
            (500, 950, 970, 990, 999)
        );
        assert!((row.avg - 500.5).abs() < 1e-9 && (row.stddev - 288.675).abs() < 1e-3);
        assert_eq!(Row::of([]), Row::default());
    }
}
