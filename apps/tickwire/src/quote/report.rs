//! What a quoting run leaves behind, and how it is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tickwire_lab::{Histogram, Table, format_count};

use super::pricing::Priced;

/// One option at the end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct QuoteRow {
    pub(crate) symbol: String,
    /// Contracts bought less sold, by quotes.
    pub(crate) position: i64,
    /// The same, by orders of the electronic eye.
    #[serde(default)]
    pub(crate) eye: i64,
    /// Contracts believed to be quoted, bid and ask.
    pub(crate) live: [u32; 2],
}

/// What the quoter leaves behind.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct QuoterResults {
    pub(crate) underlying: String,
    /// Counter id → value.
    pub(crate) counters: BTreeMap<String, u64>,
    pub(crate) quotes: Vec<QuoteRow>,
    /// Mass quotes, or requests about orders where quotes are orders, and their bytes.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Orders of the electronic eye.
    #[serde(default)]
    pub(crate) eye_orders: u64,
    /// Executions that the venue said twice, and that count once.
    #[serde(default)]
    pub(crate) repeated_fills: u64,
    /// Answers that could not be read.
    pub(crate) unread_answers: u64,
    /// How often quoting stopped, by reason.
    pub(crate) pulls: BTreeMap<String, u64>,
    /// From a packet's receipt to the last mass quote that it caused, nanoseconds.
    pub(crate) packet_to_quotes: Histogram,
    pub(crate) priced: Priced,
    /// How the time was taken and the process ran.
    pub(crate) host: Vec<(String, String)>,
}

/// What the quoter alone prints.
pub(crate) fn summary(r: &QuoterResults) -> String {
    let latency = Table::latencies(
        "packet to quotes, inside",
        &[("receipt to last mass quote sent", &r.packet_to_quotes)],
    );
    let mut position = Table::new("position", &["option", "by quotes", "by the eye"]);
    for row in r.quotes.iter().filter(|row| (row.position, row.eye) != (0, 0)) {
        position = position.row([row.symbol.clone(), row.position.to_string(), row.eye.to_string()]);
    }
    if r.priced.underlying != 0 {
        let held = r.priced.underlying.to_string();
        position = position.row([r.underlying.clone(), String::new(), held]);
    }
    let p = &r.priced;
    let pulls: Vec<String> = r.pulls.iter().map(|(why, n)| format!("{why} {n}")).collect();
    let eye = match r.eye_orders {
        0 => String::new(),
        orders => format!(
            "the eye: {} orders, {} contracts bought, {} sold; hedges: {} contracts bought, {} sold\n",
            format_count(orders),
            format_count(p.eye_contracts[0]),
            format_count(p.eye_contracts[1]),
            format_count(p.hedged[0]),
            format_count(p.hedged[1]),
        ),
    };
    format!(
        "{}\n{}\n{} quote messages, {} bytes; {} fills, {} contracts bought, {} sold; pulled: {}\n\
         in points: cash {:.2}, value {:.2}, together {:.2}; edge of the fills {:.2}; delta {:.2}, gamma {:.4}, vega {:.0}\n\
         {eye}{} ladders made{}\n",
        latency.to_text(),
        position.to_text(),
        format_count(r.messages),
        format_count(r.bytes),
        format_count(p.fills),
        format_count(p.contracts[0]),
        format_count(p.contracts[1]),
        if pulls.is_empty() {
            "never".to_string()
        } else {
            pulls.join(", ")
        },
        p.cash,
        p.value,
        p.cash + p.value,
        p.edge,
        p.delta,
        p.gamma,
        p.vega,
        format_count(p.ladders),
        match p.memory_kib[..] {
            [first, .., last] => format!(
                "; memory {first} KiB after a minute, {last} after {}",
                p.memory_kib.len()
            ),
            _ => String::new(),
        }
    )
}
