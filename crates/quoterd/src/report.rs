//! What a quoting run leaves behind, and how it is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tickwire_lab::{Histogram, Table, format_count, grouped};
use tickwire_market::Counter;

use super::pricing::Priced;
use tickwire_desk::risk::LossMark;

/// One option at the end.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct QuoteRow {
    pub symbol: String,
    /// Contracts bought less sold, by quotes.
    pub position: i64,
    /// The same, by orders of the electronic eye.
    #[serde(default)]
    pub eye: i64,
    /// Contracts believed to be quoted, bid and ask.
    pub live: [u32; 2],
}

/// What the quoter leaves behind.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct QuoterResults {
    /// Symbol of the future.
    pub underlying: String,
    /// Counter id → value.
    pub counters: BTreeMap<String, u64>,
    /// By option.
    pub quotes: Vec<QuoteRow>,
    /// Mass quotes, or requests about orders where quotes are orders, and their bytes.
    pub messages: u64,
    /// Of all quote messages.
    pub bytes: u64,
    /// Orders of the electronic eye.
    #[serde(default)]
    pub eye_orders: u64,
    /// Executions that the venue said twice, and that count once.
    #[serde(default)]
    pub repeated_fills: u64,
    /// Answers that could not be read.
    pub unread_answers: u64,
    /// How often quoting stopped, by reason.
    pub pulls: BTreeMap<String, u64>,
    /// From a packet's receipt to the last mass quote that it caused, nanoseconds.
    pub packet_to_quotes: Histogram,
    /// What the pricing thread leaves behind.
    pub priced: Priced,
    /// How the time was taken and the process ran.
    pub host: Vec<(String, String)>,
}

/// Positions that are listed: the largest by what they are worth.
const POSITIONS_MAX: usize = 10;

/// What the quoter alone prints: what was gained and how it stands first, then what was sent and how fast,
/// then the largest positions.
pub fn summary(r: &QuoterResults) -> String {
    format!("{}\n{}\n{}", counted(r), latency(r), positions(r))
}

/// What a demonstration prints of it: with `is_verbose` everything, else gains and latency.
pub fn demo_summary(r: &QuoterResults, is_verbose: bool) -> String {
    match is_verbose {
        true => summary(r),
        false => format!("{}\n{}", money(r), latency(r)),
    }
}

fn latency(r: &QuoterResults) -> String {
    let latency = Table::latencies(
        "packet to quotes, inside",
        &[("receipt to last mass quote sent", &r.packet_to_quotes)],
    );
    latency.to_text(tickwire_console::terminal::width())
}

/// Gains, then what was sent and traded.
fn counted(r: &QuoterResults) -> String {
    let pulls: Vec<String> = r.pulls.iter().map(|(why, n)| format!("{why} {n}")).collect();
    let p = &r.priced;
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
    let memory = match p.memory_kib[..] {
        [first, .., last] => format!(
            "; memory {first} KiB after a minute, {last} after {}",
            p.memory_kib.len()
        ),
        _ => String::new(),
    };
    format!(
        "{}{} quote messages, {} bytes; {} fills, {} contracts bought, {} sold; pulled: {}; {}\n{eye}{} ladders made{memory}\n",
        money(r),
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
        off_market(r),
        format_count(p.ladders),
    )
}

/// Gain by both marks, the loss limit, Greeks.
fn money(r: &QuoterResults) -> String {
    let p = &r.priced;
    let c = &p.currency;
    let [theo, market] = p.gains();
    let mut text = format!(
        "{}: P&L {} {c} by theoretical value, {} {c} by market mid; edge of the fills {} {c}\n",
        r.underlying,
        signed(theo),
        signed(market),
        signed(p.edge * p.point),
    );
    if p.without_mid.0 > 0 {
        text.push_str(&format!(
            "  {} positions, {} contracts, have no market mid: each counts at the worse of its last mid and its theoretical value\n",
            p.without_mid.0,
            format_count(p.without_mid.1)
        ));
    }
    if p.differs() {
        text.push_str(&format!(
            "  warning: the two differ by {} {c}, more than {} (quoter.risk.mark_difference_max)\n",
            grouped((theo - market).abs(), 2),
            format_count(p.difference_max)
        ));
    }
    text.push_str(&match p.loss_max {
        0 => "loss limit: none (quoter.limits.loss_max)\n".to_string(),
        most => format!(
            "loss limit: {} of {} {c} in use, judged by {}\n",
            grouped((-p.judged()).max(0.0), 2),
            format_count(most),
            match p.loss_by {
                LossMark::Worse => "the worse of both",
                LossMark::Theo => "theoretical value",
                LossMark::Market => "market mid",
            }
        ),
    });
    let net: i64 = p.positions.iter().sum();
    // A future's delta is one: what an option's is in futures, by what a point of each is worth.
    let size = if p.underlying_size > 0.0 {
        p.underlying_size
    } else {
        1.0
    };
    text.push_str(&format!(
        "risk: {net} option contracts, {} of {}; delta {} and gamma {} in futures, vega {} {c} a volatility point\n",
        p.underlying,
        r.underlying,
        grouped(p.delta / size, 2),
        // A point of the feed is small: one in a thousand of it.
        format_args!("{:.6}", p.gamma / size),
        signed(p.vega * p.point / 100.0),
    ));
    text
}

/// Money with its sign.
fn signed(money: f64) -> String {
    let sign = if money > 0.0 { "+" } else { "" };
    format!("{sign}{}", grouped(money, 2))
}

/// How often options were pulled because of their market.
fn off_market(r: &QuoterResults) -> String {
    let times = |counter: Counter, what: &str| {
        let count = r.counters.get(counter.spec().id).copied().unwrap_or(0);
        (count > 0).then(|| format!("{what} {}", format_count(count)))
    };
    let all: Vec<String> = [
        (Counter::QuotesCrossing, "crossing"),
        (Counter::QuotesTooGood, "too good"),
        (Counter::QuotesOffMid, "off the mid"),
        (Counter::QuotesNoMarket, "no market"),
    ]
    .into_iter()
    .filter_map(|(counter, what)| times(counter, what))
    .collect();
    match all.is_empty() {
        true => "no option was off its market".to_string(),
        false => format!("options off their market: {}", all.join(", ")),
    }
}

/// The largest positions, with what they are worth by both marks.
fn positions(r: &QuoterResults) -> String {
    let p = &r.priced;
    let worth = |at: usize, held: i64| held as f64 * p.theos.get(at).copied().unwrap_or(0.0) * p.point;
    let mut held: Vec<(usize, &QuoteRow, i64)> = (0..)
        .zip(&r.quotes)
        .map(|(at, row)| (at, row, row.position + row.eye))
        .filter(|(.., held)| *held != 0)
        .collect();
    held.sort_by(|a, b| worth(b.0, b.2).abs().total_cmp(&worth(a.0, a.2).abs()));
    let all = held.len();
    let title = match all {
        0..=POSITIONS_MAX => "positions".to_string(),
        _ => format!("positions: the {POSITIONS_MAX} largest of {all}"),
    };
    let by_theo = format!("worth by value, {}", p.currency);
    let by_mid = format!("by market mid, {}", p.currency);
    let mut table = Table::new(&title, &["option", "by quotes", "by the eye", &by_theo, &by_mid]);
    for (at, row, held) in held.iter().take(POSITIONS_MAX) {
        let mid = p.mids.get(*at).copied().flatten();
        table = table.row([
            row.symbol.clone(),
            row.position.to_string(),
            row.eye.to_string(),
            grouped(worth(*at, *held), 2),
            mid.map_or("no mid".to_string(), |mid| {
                grouped(*held as f64 * mid * p.point, 2)
            }),
        ]);
    }
    if p.underlying != 0 {
        let contracts = p.underlying.to_string();
        table = table.row([
            r.underlying.clone(),
            String::new(),
            contracts,
            String::new(),
            String::new(),
        ]);
    }
    let rest: i64 = held.iter().skip(POSITIONS_MAX).map(|(.., held)| held.abs()).sum();
    let mut text = table.to_text(tickwire_console::terminal::width());
    if rest > 0 {
        text.push_str(&format!(
            "\n{} more positions hold {} contracts; all of them are in quoter.json, and in `tickwire risk --socket` while it runs\n",
            all - POSITIONS_MAX,
            format_count(rest as u64)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hundred options of half a dollar a point, as CME's E-mini has them.
    fn results() -> QuoterResults {
        let row = |n: usize| QuoteRow {
            symbol: format!("O{n}"),
            position: n as i64 - 100,
            eye: 0,
            live: [0; 2],
        };
        let mut results = QuoterResults {
            underlying: "ESX6".to_string(),
            quotes: (0..200).map(row).collect(),
            ..QuoterResults::default()
        };
        results.priced = Priced {
            positions: (0..200).map(|n| n - 100).collect(),
            cash: 1_000.0,
            value: 24_000.0,
            market_value: -401_000.0,
            without_mid: (2, 30),
            point: 0.5,
            currency: "USD".to_string(),
            loss_max: 250_000,
            difference_max: 50_000,
            underlying_size: 1.0,
            vega: 913_903_355.0,
            theos: vec![100.0; 200],
            mids: vec![Some(90.0); 200],
            ..Priced::default()
        };
        results
    }

    #[test]
    fn what_it_earned_comes_first_in_money_and_the_largest_positions_last() {
        let text = summary(&results()).replace('\u{202f}', ",");
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "ESX6: P&L +12,500.00 USD by theoretical value, -200,000.00 USD by market mid; edge of the fills 0.00 USD"
        );
        for part in [
            "  2 positions, 30 contracts, have no market mid",
            "warning: the two differ by 212,500.00 USD",
            "loss limit: 200,000.00 of 250,000 USD in use, judged by the worse of both",
            // A volatility point of 913,903,355 for a whole 1.00 of volatility, at half a dollar.
            "vega +4,569,516.78 USD a volatility point",
            "the 10 largest of 199",
            "189 more positions",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // A contract worth 100 points, half a dollar each: 100 sold.
        assert!(text.contains("-5,000.00") && text.contains("-4,500.00"), "{text}");
        assert!(text.lines().count() < 40, "{text}");
    }
}
