//! Two runs of a day, thing by thing.

use std::collections::BTreeMap;
use std::fmt;

use tickwire_lab::Histogram;

use crate::record::Record;
use crate::software::{Done, Told};
use crate::stimulus::Stimulus;

/// Something that is not the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The message, 0 where none is meant.
    pub seq: u64,
    /// What.
    pub text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seq {
            0 => f.write_str(&self.text),
            seq => write!(f, "message {seq}: {}", self.text),
        }
    }
}

/// What a comparison came to.
#[derive(Debug)]
pub struct Comparison {
    /// Frames compared, byte for byte.
    pub orders: u64,
    /// Tops of the book compared.
    pub tops: u64,
    /// Levels compared.
    pub levels: u64,
    /// Counters compared.
    pub counters: u64,
    /// Orders that both stopped.
    pub stopped: u64,
    /// Clocks of the run.
    pub clocks: u64,
    /// The first of them, in turn; then how many there are.
    pub differences: Vec<Difference>,
    /// All of them.
    pub differing: u64,
    /// Clocks from a packet's last word to the first word of the order that it caused.
    pub latency: BTreeMap<u64, u64>,
}

/// So many differences are kept.
const KEPT: usize = 100;

impl Comparison {
    /// The same as a histogram of the lab's, in nanoseconds at a clock rate.
    pub fn histogram(&self, mhz: f64) -> Histogram {
        let mut histogram = Histogram::new();
        for (clocks, count) in &self.latency {
            let ns = (*clocks as f64 * 1_000.0 / mhz).round();
            histogram.record_n(ns as u64, *count);
        }
        histogram
    }

    /// Average of the latencies, in clocks; `None` without an order.
    pub fn average(&self) -> Option<f64> {
        let count: u64 = self.latency.values().sum();
        let sum: u64 = self.latency.iter().map(|(clocks, count)| clocks * count).sum();
        (count > 0).then(|| sum as f64 / count as f64)
    }

    /// The clocks that so many of all latencies do not pass.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let count: u64 = self.latency.values().sum();
        let wanted = (quantile * count as f64).ceil().max(1.0) as u64;
        let mut so_far = 0;
        self.latency.iter().find_map(|(clocks, n)| {
            so_far += n;
            (so_far >= wanted).then_some(*clocks)
        })
    }

    fn say(&mut self, seq: u64, text: impl FnOnce() -> String) {
        self.differing += 1;
        if self.differences.len() < KEPT {
            self.differences.push(Difference { seq, text: text() });
        }
    }
}

/// Compares what the software did with what the core did.
pub fn compare(stimulus: &Stimulus, software: &Done, core: &Record) -> Comparison {
    let mut found = Comparison {
        orders: 0,
        tops: 0,
        levels: 0,
        counters: 0,
        stopped: core.stopped.min(software.stopped),
        clocks: stimulus.clocks,
        differences: Vec::new(),
        differing: 0,
        latency: BTreeMap::new(),
    };
    tops(&mut found, software, core);
    levels(&mut found, software, core);
    orders(&mut found, software, core);
    counters(&mut found, stimulus, software, core);
    found.differences.sort_by_key(|difference| difference.seq);
    found
}

fn show(told: &Told) -> String {
    let side = |(price, qty): (u32, u64)| match qty {
        0 => "none".to_string(),
        _ => format!("{qty} @ {}.{:04}", price / 10_000, price % 10_000),
    };
    let live = if told.is_live { "" } else { " (stale)" };
    format!("bid {} ask {}{live}", side(told.top[0]), side(told.top[1]))
}

fn tops(found: &mut Comparison, software: &Done, core: &Record) {
    let pairs = software.told.iter().zip(&core.told);
    for (expected, told) in pairs {
        found.tops += 1;
        // A change of trust has no message of its own.
        let is_same = expected.top == told.top && expected.is_live == told.is_live;
        if !is_same {
            found.say(expected.seq, || {
                format!(
                    "top of the book: software {}, core {} (message {})",
                    show(expected),
                    show(told),
                    told.seq
                )
            });
        }
    }
    if software.told.len() != core.told.len() {
        let (expected, told) = (software.told.len(), core.told.len());
        found.say(0, || {
            format!(
                "the strategy was told of the book {expected} times in software, {told} times in the core"
            )
        });
    }
}

fn levels(found: &mut Comparison, software: &Done, core: &Record) {
    if software.rungs.len() != core.changes.len() {
        let (expected, told) = (software.rungs.len(), core.changes.len());
        found.say(0, || {
            format!("levels changed {expected} times in software, {told} times in the core")
        });
    }
    for (n, (expected, change)) in software.rungs.iter().zip(&core.changes).enumerate() {
        found.levels += 1;
        let place = (expected.seq, expected.side, expected.price);
        if place != (change.seq, change.side, change.price) {
            found.say(expected.seq, || {
                format!("a level: software {expected:?}, core {change:?}")
            });
            continue;
        }
        // A replacement at the same price changes its level twice; what counts is how it is afterwards.
        let is_between = software
            .rungs
            .get(n + 1)
            .is_some_and(|next| (next.seq, next.side, next.price) == place);
        let is_same = (expected.qty, expected.orders) == (change.qty, change.orders);
        if !is_same && !change.is_far && !is_between {
            found.say(expected.seq, || {
                format!("a level: software {expected:?}, core {change:?}")
            });
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn orders(found: &mut Comparison, software: &Done, core: &Record) {
    if software.sent.len() != core.frames.len() {
        let (expected, left) = (software.sent.len(), core.frames.len());
        found.say(0, || {
            format!("{expected} orders left in software, {left} in the core")
        });
    }
    if core.passed.len() != core.frames.len() {
        let (passed, left) = (core.passed.len(), core.frames.len());
        found.say(0, || {
            format!("{passed} orders passed the core's gate, {left} frames left")
        });
    }
    for ((expected, frame), (_, seq)) in software.sent.iter().zip(&core.frames).zip(&core.passed) {
        found.orders += 1;
        if expected.frame[..] != frame.bytes[..] {
            found.say(expected.seq, || {
                format!(
                    "an order's frame:\n  software {}\n  core     {}",
                    hex(&expected.frame),
                    hex(&frame.bytes)
                )
            });
        } else if expected.seq != *seq {
            found.say(expected.seq, || {
                format!("an order of another message: in the core of {seq}")
            });
        }
        if let Some(arrived) = software.arrived.get(&expected.seq) {
            *found
                .latency
                .entry(frame.cycle.saturating_sub(*arrived))
                .or_default() += 1;
        }
    }
}

fn counters(found: &mut Comparison, stimulus: &Stimulus, software: &Done, core: &Record) {
    let blocked: u64 = core.registers[16..26].iter().map(|n| u64::from(*n)).sum();
    let line = |n: usize| u64::from(core.registers[32 + 8 * n]);
    let fcs = |n: usize| u64::from(core.registers[34 + 8 * n]);
    let mut pairs = vec![
        (
            "changes of the book",
            software.changes,
            u64::from(core.registers[4]),
        ),
        (
            "orders that left",
            software.sent.len() as u64,
            u64::from(core.registers[5]),
        ),
        ("orders stopped", software.stopped, blocked),
        ("orders stopped, one by one", software.stopped, core.stopped),
        (
            "position",
            u64::from(software.held as u32),
            u64::from(core.registers[7]),
        ),
        ("faults", 0, u64::from(core.registers[1])),
    ];
    for (n, name) in ["line A", "line B", "software's line"].into_iter().enumerate() {
        pairs.push((name, stimulus.frames[n], line(n)));
        pairs.push((name, stimulus.damaged[n], fcs(n)));
    }
    for (name, expected, counted) in pairs {
        found.counters += 1;
        if expected != counted {
            found.say(0, || {
                format!("{name}: {expected} in software, {counted} in the core")
            });
        }
    }
}
