//! The report for programs: a CSV file per table, numbers as they are.

use std::fmt::Write;

use tickwire_market::{Price, Side};
use tickwire_trading::portfolio::{Explained, MarkBy};

use super::day::stamp;
use super::snapshot::{Promised, Snapshot};

/// Every file: name and text.
pub fn all(snapshot: &Snapshot) -> Vec<(&'static str, String)> {
    vec![
        ("positions.csv", positions(snapshot)),
        ("gain.csv", gain(snapshot)),
        ("explained.csv", explained(snapshot)),
        ("greeks.csv", greeks(snapshot)),
        ("scenarios.csv", scenarios(snapshot)),
        ("strikes.csv", strikes(snapshot)),
        ("limits.csv", limits(snapshot)),
        ("obligations.csv", obligations(snapshot)),
        ("obligations-options.csv", obligations_by_option(snapshot)),
        ("markouts.csv", mark_outs(snapshot)),
        ("volatility.csv", volatility(snapshot)),
    ]
}

/// A line of values by commas.
fn line(out: &mut String, values: &[String]) {
    // Symbols and titles of the portfolio file could hold anything.
    let quoted = |value: &String| match value.contains([',', '"', '\n']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.clone(),
    };
    let values: Vec<String> = values.iter().map(quoted).collect();
    writeln!(out, "{}", values.join(",")).expect("writing to a string");
}

/// 1e-9 units as a decimal, exact.
fn exact(nano: i128) -> String {
    let (sign, whole) = (if nano < 0 { "-" } else { "" }, nano.unsigned_abs());
    let one = Price::ONE_RAW as u128;
    let text = format!("{sign}{}.{:09}", whole / one, whole % one);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn price(price: Option<Price>) -> String {
    price.map_or(String::new(), |price| price.to_string())
}

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn positions(snapshot: &Snapshot) -> String {
    let mut out = "symbol,contracts,bought,sold,cost_points,last,mid,settle,theo,gain_theo,fees\n".to_owned();
    for holding in &snapshot.holdings {
        let (position, gain) = (&holding.position, holding.gains[MarkBy::Theo as usize]);
        let mut cells = vec![
            holding.symbol.clone(),
            position.qty.to_string(),
            position.traded[0].to_string(),
            position.traded[1].to_string(),
            exact(position.cost),
        ];
        cells.extend(holding.marks.map(price));
        cells.extend([exact(gain.gross), exact(gain.fees)]);
        line(&mut out, &cells);
    }
    out
}

fn gain(snapshot: &Snapshot) -> String {
    let mut out = "marked_by,gross,fees,net,positions_without\n".to_owned();
    for (by, gain) in MarkBy::ALL.iter().zip(&snapshot.gains) {
        let cells = [
            by.name().to_owned(),
            exact(gain.gross),
            exact(gain.fees),
            exact(gain.net()),
            gain.unmarked.to_string(),
        ];
        line(&mut out, &cells);
    }
    let market = &snapshot.market;
    let cells = [
        "market".to_owned(),
        exact(market.gain.gross),
        exact(market.gain.fees),
        exact(market.gain.net()),
        market.without_mid.to_string(),
    ];
    line(&mut out, &cells);
    out
}

fn explained(snapshot: &Snapshot) -> String {
    let mut out = format!("time,{},total\n", Explained::NAMES.join(","));
    for (at, explained) in &snapshot.history {
        let mut cells = vec![stamp(*at)];
        cells.extend(explained.parts().map(exact));
        cells.push(exact(explained.total()));
        line(&mut out, &cells);
    }
    out
}

fn greeks(snapshot: &Snapshot) -> String {
    let mut out =
        "expiry,contracts,gross,delta,gamma,vega,vega_weighted,theta_day,rho_1pct,vanna,volga\n".to_owned();
    let names = snapshot
        .expiries
        .iter()
        .map(String::as_str)
        .zip(&snapshot.risk.expiries);
    let others = [
        ("underlying", &snapshot.risk.underlying),
        ("total", &snapshot.risk.total),
    ];
    for (name, row) in names.chain(others) {
        let mut cells = vec![name.to_owned(), row.position.to_string(), row.gross.to_string()];
        let values = [
            row.delta,
            row.gamma,
            row.vega,
            row.weighted_vega,
            row.theta,
            row.rho,
            row.vanna,
            row.volga,
        ];
        cells.extend(values.map(|value| value.to_string()));
        line(&mut out, &cells);
    }
    out
}

fn scenarios(snapshot: &Snapshot) -> String {
    let mut out = "spot_move,volatility_move,gain,is_worst\n".to_owned();
    let Ok(slide) = &snapshot.slide else { return out };
    for (n, gain) in slide.gains.iter().enumerate() {
        let (spot, vol) = (n / slide.vols.len(), n % slide.vols.len());
        let is_worst = *gain == slide.worst.gain;
        let cells = [slide.spots[spot], slide.vols[vol], *gain].map(|value| value.to_string());
        line(
            &mut out,
            &[&cells[..], &[u8::from(is_worst).to_string()]].concat(),
        );
    }
    out
}

fn strikes(snapshot: &Snapshot) -> String {
    let mut out = "strike,expiry,contracts,gamma\n".to_owned();
    for row in &snapshot.strikes {
        for (cell, name) in row.cells.iter().zip(&snapshot.expiries) {
            let cells = [
                format!("{:.0}", row.strike),
                name.clone(),
                cell.position.to_string(),
                cell.gamma.to_string(),
            ];
            line(&mut out, &cells);
        }
    }
    out
}

fn limits(snapshot: &Snapshot) -> String {
    let mut out = "limit,in_use,of,share\n".to_owned();
    for row in &snapshot.limits {
        let limit = row.share().map(|_| row.limit);
        let cells = [
            row.name.to_owned(),
            row.used.to_string(),
            number(limit),
            number(row.share()),
        ];
        line(&mut out, &cells);
    }
    out
}

fn obligations(snapshot: &Snapshot) -> String {
    let mut out = "measured_ns,enough_ns,time_bp,series_bp,width,size,is_kept\n".to_owned();
    if let Some(Promised { kept, .. }) = &snapshot.obligations {
        let cells = [
            kept.observed_ns.to_string(),
            kept.enough_ns.to_string(),
            kept.time_bp.to_string(),
            kept.series_bp.to_string(),
            kept.width.to_string(),
            (kept.size_centi as f64 / 100.0).to_string(),
            u8::from(kept.is_kept).to_string(),
        ];
        line(&mut out, &cells);
    }
    out
}

fn obligations_by_option(snapshot: &Snapshot) -> String {
    let mut out = "symbol,two_sided_bp,valid_bp,width,size\n".to_owned();
    for (symbol, kept) in snapshot.obligations.iter().flat_map(|promised| &promised.series) {
        let cells = [
            symbol.clone(),
            kept.two_sided_bp.to_string(),
            kept.valid_bp.to_string(),
            kept.width.to_string(),
            (kept.size_centi as f64 / 100.0).to_string(),
        ];
        line(&mut out, &cells);
    }
    out
}

fn mark_outs(snapshot: &Snapshot) -> String {
    let mut out = "time,symbol,side,quantity,price,edge".to_owned();
    for horizon in &snapshot.horizons {
        let seconds = horizon.after_ns / tickwire_market::Nanos::SECOND;
        write!(out, ",mid_{seconds}s,earned_{seconds}s").expect("writing to a string");
    }
    out.push('\n');
    for (symbol, fill) in &snapshot.fills {
        let side = if fill.side == Side::Bid { "buy" } else { "sell" };
        let points = |raw: Option<i64>| raw.map_or(String::new(), |raw| exact(raw.into()));
        let mut cells = vec![
            stamp(fill.at),
            symbol.clone(),
            side.to_owned(),
            fill.qty.to_string(),
            fill.price.to_string(),
            points(fill.edge),
        ];
        for horizon in 0..fill.mids.len() {
            cells.extend([price(fill.mids[horizon]), points(fill.earned(horizon))]);
        }
        line(&mut out, &cells);
    }
    out
}

fn volatility(snapshot: &Snapshot) -> String {
    let mut out = "expiry,forward,days,strike,volatility,bid,offer\n".to_owned();
    for smile in &snapshot.smiles {
        for point in &smile.strikes {
            let cells = [
                smile.expiry.clone(),
                smile.forward.to_string(),
                smile.days.to_string(),
                point.strike.to_string(),
                point.vol.to_string(),
                number(point.bid),
                number(point.ask),
            ];
            line(&mut out, &cells);
        }
    }
    out
}

#[cfg(test)]
mod unit {
    use super::exact;

    #[test]
    fn money_is_written_to_the_last_digit() {
        for (nano, text) in [
            (0, "0"),
            (-1, "-0.000000001"),
            (12_500_000_000, "12.5"),
            (-3_000_000_000, "-3"),
        ] {
            assert_eq!(exact(nano), text);
        }
    }
}
