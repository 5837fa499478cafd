//! What came of a backtest, as text, JSON and CSV.

use std::fmt::Write;

use tickwire_backtest::{Fill, HORIZONS};
use tickwire_lab::Table;
use tickwire_market::{Counter, Price, Side, Symbol};

use super::BacktestResult;

/// Money of 1e-9 units with two decimals, rounded half away from zero.
pub(super) fn money(nanos: i128) -> String {
    let cents = (nanos.unsigned_abs() + 5_000_000) / 10_000_000;
    let sign = if nanos < 0 && cents > 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents / 100, cents % 100)
}

/// The mean of what the market did after fills, in parts of 100 of the price: above 0 it went the way of the
/// fill.
pub(super) fn mark_out(fills: &[Fill], horizon: usize) -> Option<f64> {
    let known = fills.iter().filter_map(|fill| {
        let later = fill.mark_outs[horizon]?.raw() as f64;
        let price = fill.price.raw() as f64;
        let sign = if fill.side == Side::Bid { 1.0 } else { -1.0 };
        (price != 0.0).then(|| (sign * (later - price) / price * 1e4, f64::from(fill.qty.0)))
    });
    let (sum, weight) = known.fold((0.0, 0.0), |(sum, all), (basis, qty)| {
        (sum + basis * qty, all + qty)
    });
    (weight > 0.0).then(|| sum / weight)
}

pub(super) const AFTER: [&str; 3] = ["100 ms", "1 s", "10 s"];
const _: () = assert!(HORIZONS.len() == AFTER.len());

/// The whole in one line.
pub(super) fn verdict_of(done: &BacktestResult) -> String {
    let s = &done.summary;
    let fees: i128 = s.instruments.iter().map(|i| i.fees).sum();
    let seconds = s.span[1].since(s.span[0]) as f64 / 1e9;
    format!(
        "P&L {}   fees {}   drawdown {}   {} orders, {} fills ({} as maker)   {} events in {seconds:.3} s of the recording",
        money(s.gain),
        money(fees),
        money(s.drawdown),
        s.requests[0],
        s.fills[0],
        s.fills[1],
        s.events,
    )
}

pub(super) fn instruments_of(done: &BacktestResult) -> Table {
    let mut table = Table::new(
        "instruments",
        &[
            "",
            "position",
            "bought",
            "sold",
            "mark",
            "P&L before fees",
            "fees",
        ],
    );
    for i in &done.summary.instruments {
        table = table.row([
            i.symbol.to_string(),
            i.position.to_string(),
            i.traded[0].to_string(),
            i.traded[1].to_string(),
            i.mark.to_string(),
            money(i.gain),
            money(i.fees),
        ]);
    }
    table
}

/// Requests by what became of them, and what was stopped by which check.
pub(super) fn requests_of(done: &BacktestResult) -> Vec<(String, String)> {
    let s = &done.summary;
    let mut all = vec![
        ("new".to_string(), s.requests[0].to_string()),
        ("replaced".to_string(), s.requests[1].to_string()),
        ("cancelled".to_string(), s.requests[2].to_string()),
        ("refused by the venue".to_string(), s.rejects.to_string()),
    ];
    for (counter, count) in done.counters.iter() {
        if count > 0 && counter != Counter::OrdersSent {
            all.push((counter.spec().label.to_string(), count.to_string()));
        }
    }
    all
}

pub(super) fn doubts_of(done: &BacktestResult) -> Vec<(String, String)> {
    let doubts = done.summary.doubts.named().into_iter();
    let some = doubts.filter(|(_, count)| *count > 0);
    some.map(|(what, count)| (what.to_string(), count.to_string()))
        .collect()
}

pub(super) fn to_text(done: &BacktestResult) -> String {
    let s = &done.summary;
    let mut text = verdict_of(done);
    text.push('\n');
    let table = instruments_of(done);
    let _ = write!(text, "\n{}", table.to_text(tickwire_console::terminal::width()));
    if done.each.len() > 1 {
        let mut table = Table::new("strategies", &["", "P&L", "fills", "as maker"]);
        for (name, of) in &done.each {
            table = table.row([
                name.clone(),
                money(of.gain),
                of.fills[0].to_string(),
                of.fills[1].to_string(),
            ]);
        }
        let _ = write!(text, "\n{}", table.to_text(tickwire_console::terminal::width()));
    }
    let mut table = Table::new(
        "after fills, basis points by quantity (above 0: the market went our way)",
        &["", "as maker", "as taker"],
    );
    let by_kind = |is_maker| {
        done.fills
            .iter()
            .filter(|f| f.is_maker == is_maker)
            .copied()
            .collect::<Vec<_>>()
    };
    let kinds = [by_kind(true), by_kind(false)];
    for (horizon, name) in AFTER.into_iter().enumerate() {
        let shown = |fills: &Vec<Fill>| mark_out(fills, horizon).map_or(String::new(), |x| format!("{x:.2}"));
        table = table.row([name.to_string(), shown(&kinds[0]), shown(&kinds[1])]);
    }
    let _ = write!(text, "\n{}", table.to_text(tickwire_console::terminal::width()));
    let requests = requests_of(done);
    let requests = requests.iter().map(|(what, count)| format!("{count} {what}"));
    let _ = writeln!(text, "\nrequests: {}", requests.collect::<Vec<_>>().join(", "));
    if s.requests == [0; 3] {
        let symbols: Vec<_> = done.symbols.values().take(10).map(Symbol::to_string).collect();
        let more = match done.symbols.len() - symbols.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(
            text,
            "the strategy asked for nothing; the files have {}{more}",
            symbols.join(", ")
        );
    }
    for (name, value) in &done.figures {
        let _ = writeln!(text, "{name}: {value}");
    }
    for note in &done.notes {
        let _ = writeln!(text, "note {note}");
    }
    if done.notes_lost > 0 {
        let _ = writeln!(text, "{} further notes were dropped", done.notes_lost);
    }
    let doubts = doubts_of(done);
    if done.partial > 0 {
        let _ = writeln!(
            text,
            "the recording begins in mid-session: {} books lack the orders that were entered before it, and queues look shorter than they were",
            done.partial
        );
    }
    if !doubts.is_empty() {
        let _ = writeln!(
            text,
            "doubts: where another rule of filling would have given another result"
        );
        for (what, count) in doubts {
            let _ = writeln!(text, "  {count:>8}  {what}");
        }
    }
    let rate = s.events as f64 / done.took.as_secs_f64().max(1e-9) / 1e6;
    let _ = writeln!(
        text,
        "hash {:016x}   {rate:.2} million events/s, reading the files and both passes over them included",
        s.hash
    );
    text
}

pub(super) fn to_json(done: &BacktestResult) -> serde_json::Value {
    let s = &done.summary;
    let instruments = s.instruments.iter().map(|i| {
        serde_json::json!({
            "symbol": i.symbol.to_string(),
            "position": i.position,
            "bought": i.traded[0],
            "sold": i.traded[1],
            "mark": i.mark.to_string(),
            "gain": money(i.gain),
            "fees": money(i.fees),
        })
    });
    let strategies = done.each.iter().map(|(name, of)| {
        let positions = of
            .instruments
            .iter()
            .map(|i| (i.symbol.to_string(), i.position.into()));
        serde_json::json!({
            "name": name,
            "gain": money(of.gain),
            "fills": of.fills[0],
            "fills_as_maker": of.fills[1],
            "positions": positions.collect::<serde_json::Map<_, _>>(),
        })
    });
    let doubts: serde_json::Map<_, _> = s
        .doubts
        .named()
        .into_iter()
        .map(|(name, count)| (name.to_string(), count.into()))
        .collect();
    serde_json::json!({
        "events": s.events,
        "from_ns": s.span[0].0,
        "to_ns": s.span[1].0,
        "gain": money(s.gain),
        "drawdown": money(s.drawdown),
        "orders": s.requests[0],
        "replacements": s.requests[1],
        "cancellations": s.requests[2],
        "rejects": s.rejects,
        "fills": s.fills[0],
        "fills_as_maker": s.fills[1],
        "instruments": instruments.collect::<Vec<_>>(),
        "strategies": strategies.collect::<Vec<_>>(),
        "counters": tickwire_control::results::counters_by_id(&done.counters),
        "figures": done.figures.iter().cloned().map(|(name, value)| (name, value.into())).collect::<serde_json::Map<_, _>>(),
        "doubts": doubts,
        "books_partial": done.partial,
        "fault": done.fault,
        "hash": format!("{:016x}", s.hash),
    })
}

/// Every fill, one a line.
pub(super) fn fills_csv(done: &BacktestResult) -> String {
    let mut text = String::from(
        "time_ns,order,symbol,side,qty,price,maker,queue_at_entry,mid,mid_100ms,mid_1s,mid_10s\n",
    );
    let shown = |price: Option<Price>| price.map_or(String::new(), |price| price.to_string());
    for f in &done.fills {
        let symbol = done
            .symbols
            .get(&f.instrument)
            .map_or(String::new(), |s| s.to_string());
        let side = if f.side == Side::Bid { "buy" } else { "sell" };
        let _ = writeln!(
            text,
            "{},{},{symbol},{side},{},{},{},{},{},{},{},{}",
            f.at.0,
            f.order.0,
            f.qty.0,
            f.price,
            u8::from(f.is_maker),
            f.queue_at_entry,
            shown(f.mid),
            shown(f.mark_outs[0]),
            shown(f.mark_outs[1]),
            shown(f.mark_outs[2]),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_rounded_to_cents_and_keeps_its_sign() {
        let shown = [
            0,
            1,
            5_000_000,
            -4_999_999,
            -5_000_000,
            1_234_567_890_123,
            -2_000_000_000,
        ]
        .map(money);
        assert_eq!(
            shown,
            ["0.00", "0.00", "0.01", "0.00", "-0.01", "1234.57", "-2.00"]
        );
    }
}
