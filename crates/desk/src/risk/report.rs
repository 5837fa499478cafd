//! The report for people: tables in the terminal, tables and plots in one page.

use tickwire_lab::{Axis, Mark, Plotted, Report, Scale, Table, grouped};
use tickwire_market::{Nanos, Price};
use tickwire_trading::portfolio::{Explained, LimitUse, MarkBy, RiskRow, SeriesKept, Slide};

use super::day::stamp;
use super::snapshot::{SmileView, Snapshot};

/// For the terminal.
pub fn text(snapshot: &Snapshot) -> String {
    let mut report = gains(snapshot, overview(snapshot));
    report = risk(snapshot, report);
    report = match &snapshot.slide {
        Ok(slide) => report.table(slide_table(snapshot, slide)),
        Err(why) => report.paragraph(&format!("No scenario grid: {why}.")),
    };
    report = report.table(strike_table(snapshot));
    report = report.heading("Market making").table(mark_out_table(snapshot));
    obligations(snapshot, report)
        .table(positions(snapshot))
        .to_text(tickwire_console::terminal::width())
}

/// One page: it loads nothing and runs no script.
pub fn html(snapshot: &Snapshot) -> String {
    let mut report = gains(snapshot, overview(snapshot));
    report = history_plot(snapshot, report);
    report = risk(snapshot, report);
    report = match &snapshot.slide {
        Ok(slide) => slide_plot(snapshot, slide, report),
        Err(why) => report.paragraph(&format!("No scenario grid: {why}.")),
    };
    report = strike_plots(snapshot, report);
    report = report.heading("Volatility");
    for smile in &snapshot.smiles {
        report = smile_plot(smile, report);
    }
    report = report.heading("Market making").table(mark_out_table(snapshot));
    obligations(snapshot, report).table(positions(snapshot)).to_html()
}

/// 1e-9 money as units, with cents.
fn money(nano: i128) -> String {
    grouped(units(nano), 2)
}

fn units(nano: i128) -> f64 {
    nano as f64 / Price::ONE_RAW as f64
}

fn overview(snapshot: &Snapshot) -> Report {
    let [.., theo] = &snapshot.gains;
    let worst = match &snapshot.slide {
        Ok(slide) => worst_cell(snapshot, slide),
        Err(_) => "–".to_owned(),
    };
    let over = snapshot
        .limits
        .iter()
        .filter(|row| row.share().is_some_and(|share| share > 1.0));
    let over: Vec<&str> = over.map(|row| row.name).collect();
    Report::new(&snapshot.title).facts(
        "At a glance",
        &[
            ("at", stamp(snapshot.at)),
            (
                "P&L by theoretical value",
                format!("{} {}", money(theo.net()), snapshot.currency),
            ),
            ("P&L by market mid", by_market(snapshot)),
            (
                "to look at",
                match &snapshot.warnings[..] {
                    [] => "nothing".to_owned(),
                    warnings => warnings.join("; "),
                },
            ),
            ("worst scenario", worst),
            (
                "limits passed",
                if over.is_empty() {
                    "none".to_owned()
                } else {
                    over.join(", ")
                },
            ),
        ],
    )
}

fn by_market(snapshot: &Snapshot) -> String {
    let market = &snapshot.market;
    match market.gain.unmarked {
        0 => format!("{} {}", money(market.gain.net()), snapshot.currency),
        unmarked => format!("not known: {unmarked} positions have neither mid nor theoretical value"),
    }
}

fn worst_cell(snapshot: &Snapshot, slide: &Slide) -> String {
    let cell = slide.worst;
    let (spot, vol) = (percent(cell.spot, 1), points(cell.vol));
    format!(
        "{} {} at {spot}, volatility {vol}",
        grouped(cell.gain, 0),
        snapshot.currency
    )
}

/// A share with its sign: `+2.0 %`.
fn percent(share: f64, decimals: usize) -> String {
    let sign = if share > 0.0 { "+" } else { "" };
    format!("{sign}{} %", grouped(100.0 * share, decimals))
}

/// A move of volatility, in points.
fn points(vol: f64) -> String {
    let sign = if vol > 0.0 { "+" } else { "" };
    format!("{sign}{}", grouped(100.0 * vol, 1))
}

fn gains(snapshot: &Snapshot, report: Report) -> Report {
    let mut by = Table::new(
        &format!("P&L of the day, {}", snapshot.currency),
        &["marked by", "gross", "fees", "net", "positions without"],
    );
    for (mark, gain) in MarkBy::ALL.iter().zip(&snapshot.gains) {
        let net = if gain.unmarked == 0 {
            money(gain.net())
        } else {
            String::new()
        };
        let gross = if gain.unmarked == 0 {
            money(gain.gross)
        } else {
            String::new()
        };
        by = by.row([
            mark.name().to_owned(),
            gross,
            money(gain.fees),
            net,
            gain.unmarked.to_string(),
        ]);
    }
    let market = &snapshot.market;
    let of = |nano: i128| match market.gain.unmarked {
        0 => money(nano),
        _ => String::new(),
    };
    by = by.row([
        "mid, else the worse of last mid and theo".to_owned(),
        of(market.gain.gross),
        money(market.gain.fees),
        of(market.gain.net()),
        market.without_mid.to_string(),
    ]);
    let mut parts = Table::new(
        &format!("Where it comes from, {}", snapshot.currency),
        &["part", "P&L"],
    );
    for (name, part) in Explained::NAMES.iter().zip(snapshot.explained.parts()) {
        parts = parts.row([(*name).to_owned(), money(part)]);
    }
    parts = parts.row([
        "total by theoretical value".to_owned(),
        money(snapshot.explained.total()),
    ]);
    report.heading("P&L").table(by).table(parts)
}

/// Seconds since the midnight (UTC) before the first of them.
fn clock(first: Nanos, at: Nanos) -> f64 {
    let midnight = first.0 / Nanos::DAY * Nanos::DAY;
    (at.0 - midnight) as f64 / Nanos::SECOND as f64
}

fn history_plot(snapshot: &Snapshot, report: Report) -> Report {
    let Some(&(first, _)) = snapshot.history.first() else {
        return report;
    };
    let series = |of: &dyn Fn(&Explained) -> i128| -> Vec<(f64, f64)> {
        let points = snapshot.history.iter();
        points
            .map(|(at, explained)| (clock(first, *at), units(of(explained))))
            .collect()
    };
    let mut plotted = vec![Plotted {
        name: "total",
        mark: Mark::Line,
        points: series(&Explained::total),
    }];
    for (n, name) in Explained::NAMES.iter().enumerate() {
        plotted.push(Plotted {
            name,
            mark: Mark::Line,
            points: series(&|explained| explained.parts()[n]),
        });
    }
    let x = Axis {
        label: "time, UTC",
        scale: Scale::Time,
    };
    let label = format!("P&L, {}", snapshot.currency);
    let y = Axis {
        label: &label,
        scale: Scale::Number,
    };
    const HOW: &str = "The P&L by theoretical value since the start, and the parts that it is the sum of.";
    report.lines("P&L over time", HOW, x, y, &plotted)
}

fn risk(snapshot: &Snapshot, report: Report) -> Report {
    let title = format!(
        "Greeks: delta and gamma in futures, vega, volga per volatility point, theta per day, rho per 1 %, in {}",
        snapshot.currency
    );
    let mut table = Table::new(
        &title,
        &[
            "expiry",
            "contracts",
            "gross",
            "delta",
            "gamma",
            "vega",
            "vega √t",
            "theta",
            "rho",
            "vanna",
            "volga",
        ],
    );
    let names = snapshot.expiries.iter().map(String::as_str);
    let rows = names.zip(&snapshot.risk.expiries);
    let others = [
        ("underlying", &snapshot.risk.underlying),
        ("total", &snapshot.risk.total),
    ];
    for (name, row) in rows.chain(others) {
        table = table.row(risk_cells(name, row));
    }
    let mut limits = Table::new("Limits in use", &["limit", "in use", "of", "share"]);
    for row in &snapshot.limits {
        limits = limits.row(limit_cells(row));
    }
    report.heading("Risk").table(table).table(limits)
}

fn risk_cells(name: &str, row: &RiskRow) -> [String; 11] {
    [
        name.to_owned(),
        row.position.to_string(),
        row.gross.to_string(),
        grouped(row.delta, 2),
        grouped(row.gamma, 4),
        grouped(row.vega, 0),
        grouped(row.weighted_vega, 0),
        grouped(row.theta, 0),
        grouped(row.rho, 0),
        grouped(row.vanna, 3),
        grouped(row.volga, 1),
    ]
}

fn limit_cells(row: &LimitUse) -> [String; 4] {
    let decimals = if row.name == "gamma" { 4 } else { 0 };
    let (limit, share) = match row.share() {
        Some(share) => (grouped(row.limit, decimals), format!("{:.0} %", 100.0 * share)),
        None => (String::new(), String::new()),
    };
    [row.name.to_owned(), grouped(row.used, decimals), limit, share]
}

/// The place of the worst cell.
fn worst_place(slide: &Slide) -> Option<usize> {
    slide.gains.iter().position(|gain| *gain == slide.worst.gain)
}

fn slide_table(snapshot: &Snapshot, slide: &Slide) -> Table {
    let title = format!(
        "Scenarios: moves of the underlying by moves of volatility in points, {}; * the worst",
        snapshot.currency
    );
    let heads: Vec<String> = slide.vols.iter().map(|vol| points(*vol)).collect();
    let columns: Vec<&str> = ["spot"]
        .into_iter()
        .chain(heads.iter().map(String::as_str))
        .collect();
    let worst = worst_place(slide);
    let mut table = Table::new(&title, &columns);
    for (row, spot) in slide.spots.iter().enumerate() {
        let from = row * slide.vols.len();
        let cells = slide.gains[from..from + slide.vols.len()].iter().enumerate();
        let cells = cells.map(|(column, gain)| {
            let mark = if worst == Some(from + column) { "*" } else { "" };
            format!("{}{mark}", grouped(*gain, 0))
        });
        table = table.row([percent(*spot, 1)].into_iter().chain(cells));
    }
    table
}

fn slide_plot(snapshot: &Snapshot, slide: &Slide, report: Report) -> Report {
    let columns: Vec<String> = slide.vols.iter().map(|vol| points(*vol)).collect();
    let rows: Vec<String> = slide.spots.iter().map(|spot| percent(*spot, 1)).collect();
    let title = format!("Scenarios, {}", snapshot.currency);
    const HOW: &str =
        "P&L if the underlying and all volatilities had moved, by full revaluation; the worst is framed.";
    report.gains(
        &title,
        HOW,
        ("volatility, points", &columns),
        ("underlying", &rows),
        &slide.gains,
        worst_place(slide),
    )
}

fn strike_table(snapshot: &Snapshot) -> Table {
    let mut columns = vec!["strike".to_owned()];
    for name in &snapshot.expiries {
        columns.extend([name.clone(), format!("{name} gamma")]);
    }
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new("Contracts and gamma by strike", &columns);
    for row in &snapshot.strikes {
        let cells = row.cells.iter().flat_map(|cell| match cell.position {
            0 => [String::new(), String::new()],
            position => [position.to_string(), grouped(cell.gamma, 4)],
        });
        table = table.row([format!("{:.0}", row.strike)].into_iter().chain(cells));
    }
    table
}

fn strike_plots(snapshot: &Snapshot, report: Report) -> Report {
    let strikes: Vec<String> = snapshot
        .strikes
        .iter()
        .map(|row| format!("{:.0}", row.strike))
        .collect();
    let series = |of: &dyn Fn(usize, usize) -> f64| -> Vec<(&str, Vec<f64>)> {
        let names = snapshot.expiries.iter().enumerate();
        names
            .map(|(n, name)| (name.as_str(), (0..strikes.len()).map(|row| of(row, n)).collect()))
            .collect()
    };
    let cell = |row: usize, n: usize| snapshot.strikes[row].cells[n];
    let y = |label| Axis {
        label,
        scale: Scale::Number,
    };
    report
        .bars(
            "Contracts by strike",
            "Calls and puts together, bought less sold.",
            "strike",
            y("contracts"),
            &strikes,
            &series(&|row, n| cell(row, n).position as f64),
        )
        .bars(
            "Gamma by strike",
            "Change of delta, in futures, for a point of the underlying.",
            "strike",
            y("gamma"),
            &strikes,
            &series(&|row, n| cell(row, n).gamma),
        )
}

fn smile_plot(smile: &SmileView, report: Report) -> Report {
    let line = smile
        .strikes
        .iter()
        .map(|point| (point.strike, point.vol))
        .collect();
    let dots = |of: &dyn Fn(&super::snapshot::SmilePoint) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = smile.strikes.iter();
        points
            .filter_map(|point| Some((point.strike, of(point)?)))
            .collect()
    };
    let atm = smile.near_the_money().unwrap_or(0.0);
    let atm = if smile.is_normal {
        grouped(atm, 2)
    } else {
        format!("{} %", grouped(100.0 * atm, 2))
    };
    let title = format!(
        "{}: forward {}, {} days, {atm} near the money",
        smile.expiry,
        grouped(smile.forward, 2),
        grouped(smile.days, 2)
    );
    let x = Axis {
        label: "strike",
        scale: Scale::Number,
    };
    let y = Axis {
        label: "volatility",
        scale: if smile.is_normal {
            Scale::Number
        } else {
            Scale::Percent
        },
    };
    let plotted = [
        Plotted {
            name: "ours",
            mark: Mark::Line,
            points: line,
        },
        Plotted {
            name: "bid",
            mark: Mark::Dots,
            points: dots(&|point| point.bid),
        },
        Plotted {
            name: "offer",
            mark: Mark::Dots,
            points: dots(&|point| point.ask),
        },
    ];
    const HOW: &str =
        "Our volatilities, and those implied by the market's bids and offers of options out of the money.";
    report.lines(&title, HOW, x, y, &plotted)
}

fn mark_out_table(snapshot: &Snapshot) -> Table {
    let mut table = Table::new(
        "Mark-outs: the middle price after our fills, less what was paid",
        &["after", "fills", "contracts", "points a contract", "of them lost"],
    );
    let with_edge = snapshot
        .fills
        .iter()
        .filter_map(|(_, fill)| Some((fill.edge?, fill.qty.0)));
    let (edge, contracts, fills) = with_edge.fold((0_i128, 0_u64, 0), |(sum, all, n), (edge, qty)| {
        (
            sum + i128::from(edge) * i128::from(qty),
            all + u64::from(qty),
            n + 1,
        )
    });
    let each = |sum: i128, contracts: u64| match contracts {
        0 => String::new(),
        _ => grouped(units(sum) / contracts as f64, 4),
    };
    table = table.row([
        "at once: edge".to_owned(),
        fills.to_string(),
        contracts.to_string(),
        each(edge, contracts),
        String::new(),
    ]);
    for horizon in &snapshot.horizons {
        let adverse = match horizon.contracts {
            0 => String::new(),
            _ => format!("{:.1} %", f64::from(horizon.adverse_bp()) / 100.0),
        };
        table = table.row([
            format!("{} s", horizon.after_ns / Nanos::SECOND),
            horizon.fills.to_string(),
            horizon.contracts.to_string(),
            each(horizon.earned, horizon.contracts),
            adverse,
        ]);
    }
    table
}

fn obligations(snapshot: &Snapshot, report: Report) -> Report {
    let Some(measured) = &snapshot.obligations else {
        return report.paragraph("Quoting obligations: not measured.");
    };
    let (promised, kept) = (&measured.config, &measured.kept);
    let bp = |bp: u32| format!("{:.2} %", f64::from(bp) / 100.0);
    let row = |what: &str, kept: String, promised: String| [what.to_owned(), kept, promised];
    let verdict = if kept.is_kept { "kept" } else { "not kept" };
    let table = Table::new(
        &format!("Quoting obligations: {verdict}"),
        &["", "kept", "promised"],
    )
    .row(row(
        "time with enough series",
        bp(kept.time_bp),
        bp(promised.time_min_bp),
    ))
    .row(row(
        "series, on average",
        bp(kept.series_bp),
        bp(promised.series_min_bp),
    ))
    .row(row(
        "width, on average",
        points_of(kept.width),
        points_of(promised.width_max),
    ))
    .row(row(
        "size, on average",
        grouped(kept.size_centi as f64 / 100.0, 2),
        promised.size_min.to_string(),
    ))
    .row(row(
        "measured",
        format!("{} s", grouped(kept.observed_ns as f64 / 1e9, 0)),
        String::new(),
    ));
    report.table(table).table(least_kept(&measured.series))
}

/// Options of which least was kept, those first.
const LEAST_KEPT_MAX: usize = 10;

fn least_kept(series: &[(String, SeriesKept)]) -> Table {
    let mut worst: Vec<&(String, SeriesKept)> = series.iter().collect();
    worst.sort_by_key(|(_, kept)| (kept.valid_bp, kept.two_sided_bp));
    let title = match series.len() {
        0..=LEAST_KEPT_MAX => "Obligations by option".to_owned(),
        all => format!("Obligations by option: the {LEAST_KEPT_MAX} of {all} that kept least"),
    };
    let bp = |bp: u32| format!("{:.2} %", f64::from(bp) / 100.0);
    let columns = [
        "option",
        "as promised",
        "bid and offer",
        "width, on average",
        "size, on average",
    ];
    let mut table = Table::new(&title, &columns);
    for (symbol, kept) in worst.into_iter().take(LEAST_KEPT_MAX) {
        table = table.row([
            symbol.clone(),
            bp(kept.valid_bp),
            bp(kept.two_sided_bp),
            points_of(kept.width),
            grouped(kept.size_centi as f64 / 100.0, 2),
        ]);
    }
    table
}

fn positions(snapshot: &Snapshot) -> Table {
    let title = format!("Positions, P&L before fees in {}", snapshot.currency);
    let mut table = Table::new(
        &title,
        &[
            "instrument",
            "contracts",
            "bought",
            "sold",
            "theo",
            "mid",
            "last",
            "settle",
            "P&L by theo",
        ],
    );
    for holding in &snapshot.holdings {
        let mark = |by: MarkBy| holding.marks[by as usize].map_or(String::new(), points_of);
        let gain = holding.gains[MarkBy::Theo as usize];
        table = table.row([
            holding.symbol.clone(),
            holding.position.qty.to_string(),
            holding.position.traded[0].to_string(),
            holding.position.traded[1].to_string(),
            mark(MarkBy::Theo),
            mark(MarkBy::Mid),
            mark(MarkBy::Last),
            mark(MarkBy::Settle),
            money(gain.gross),
        ]);
    }
    table
}

/// A price to four decimals: theoretical values have nine.
fn points_of(price: Price) -> String {
    grouped(units(price.raw().into()), 4)
}
