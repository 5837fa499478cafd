//! A surface as tables and pictures.

use tickwire_lab::{Axis, Mark, Plotted, Report, Scale, Table};
use tickwire_market::Nanos;
use tickwire_options::surface::{Curve, Surface};
use tickwire_options::time::rate_per;
use tickwire_options::{Kind, Terms, black76};

use super::file::{Expiry, VolFile};

/// Deviations to each side of the forward that strikes and pictures reach where the file names no strikes.
const REACH: f64 = 2.5;
/// Points of a picture's line.
const STEPS: u32 = 120;

/// Every expiry, or one: a table of expiries, one of strikes for each, and their smiles.
pub(super) fn report(
    file: &VolFile,
    surface: &Surface,
    only: Option<usize>,
    strikes: u32,
    now: Nanos,
) -> Report {
    let shown: Vec<(usize, &Expiry)> = file
        .expiries()
        .iter()
        .enumerate()
        .filter(|(place, _)| only.is_none_or(|only| only == *place))
        .collect();
    let mut expiries = Table::new(
        "Expiries",
        &[
            "",
            "years",
            "forward",
            "at the money",
            "straddle",
            "slope",
            "put wing",
            "call wing",
            "pivot",
            "float",
            "nudges",
            "curve",
        ],
    );
    let mut smiles = Vec::new();
    let mut tables = Vec::new();
    for (place, expiry) in &shown {
        let (Some(smile), Some(forward)) = (surface.smile(*place), surface.forward(*place)) else {
            continue;
        };
        let c = smile.controls();
        let curve = match smile.curve() {
            Curve::Svi(_) => "svi",
            Curve::Wing(_) => "wing",
        };
        expiries = expiries.row([
            expiry.name.clone(),
            format!("{:.5}", smile.years()),
            format!("{forward:.2}"),
            percent(smile.atm(forward)),
            format!("{:.3}", smile.straddle(forward)),
            percent(c.slope),
            percent(c.put_wing),
            percent(c.call_wing),
            format!("{:+.4}", c.pivot),
            format!("{}", c.float),
            smile.nudges().len().to_string(),
            curve.to_string(),
        ]);
        let deviation = smile.atm(forward) * smile.years().sqrt();
        let at = |u: f64| forward * (u * deviation).exp();
        let on_curve = |u: f64| (at(u), smile.vol(at(u), forward));
        let steps = (0..=STEPS).map(|n| on_curve(REACH * (2.0 * f64::from(n) / f64::from(STEPS) - 1.0)));
        smiles.push(Plotted {
            name: &expiry.name,
            mark: Mark::Line,
            points: steps.collect(),
        });
        if !expiry.quotes.is_empty() {
            smiles.push(Plotted {
                name: "quoted",
                mark: Mark::Dots,
                points: expiry
                    .quotes
                    .iter()
                    .map(|(strike, vol, _)| (*strike, *vol))
                    .collect(),
            });
        }
        let listed = if expiry.strikes.is_empty() {
            around(forward, at(REACH) - at(-REACH), strikes)
        } else {
            expiry.strikes.clone()
        };
        let [years, calendar] = file.years(*place, now).unwrap_or([smile.years(); 2]);
        let rate = rate_per(expiry.rate, calendar, years);
        tables.push(strikes_table(&expiry.name, surface, *place, &listed, rate));
    }
    let mut report = Report::new("Volatilities").facts(
        "Surface",
        &[
            ("version", file.log.version.to_string()),
            ("front future", format!("{:.2}", surface.front())),
        ],
    );
    report = report.table(expiries);
    for table in tables {
        report = report.table(table);
    }
    let strike = Axis {
        label: "strike",
        scale: Scale::Number,
    };
    let vol = Axis {
        label: "volatility",
        scale: Scale::Percent,
    };
    const HOW: &str = "Volatility by strike, up to two and a half deviations from the forward; dots are quoted volatilities.";
    report.lines("Smiles", HOW, strike, vol, &smiles)
}

/// With sign, in percent.
fn percent(vol: f64) -> String {
    format!("{:.3} %", 100.0 * vol)
}

/// Round strikes, so many over a span around the forward.
fn around(forward: f64, span: f64, count: u32) -> Vec<f64> {
    let rough = span / f64::from(count.max(2) - 1);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|times| times * power)
        .into_iter()
        .min_by(|a, b| (a - rough).abs().total_cmp(&(b - rough).abs()))
        .unwrap_or(rough);
    let middle = (forward / step).round();
    let half = i64::from(count.max(1) / 2);
    (-half..=half)
        .map(|n| (middle + n as f64) * step)
        .filter(|strike| *strike > 0.0)
        .collect()
}

fn strikes_table(name: &str, surface: &Surface, place: usize, strikes: &[f64], rate: f64) -> Table {
    let mut table = Table::new(
        &format!("Strikes of {name}"),
        &["", "volatility", "nudge", "call", "delta", "put", "delta"],
    );
    let (Some(smile), Some(forward)) = (surface.smile(place), surface.forward(place)) else {
        return table;
    };
    for &strike in strikes {
        let vol = smile.vol(strike, forward);
        let of = |kind: Kind| {
            let greeks = black76::greeks(&Terms {
                forward,
                strike,
                years: smile.years(),
                vol,
                rate,
                kind,
            });
            match greeks {
                Ok(greeks) => [format!("{:.3}", greeks.price), format!("{:+.3}", greeks.delta)],
                Err(why) => [why.to_string(), String::new()],
            }
        };
        let nudge = smile.nudges().iter().find(|(at, _)| *at == strike);
        let nudge = nudge.map_or(String::new(), |(_, by)| format!("{:+.3} %", 100.0 * by));
        let ([call, call_delta], [put, put_delta]) = (of(Kind::Call), of(Kind::Put));
        table = table.row([
            format!("{strike}"),
            percent(vol),
            nudge,
            call,
            call_delta,
            put,
            put_delta,
        ]);
    }
    table
}
