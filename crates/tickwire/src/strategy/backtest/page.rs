//! The page of a backtest: what came of it, in tables and plots.

use tickwire_backtest::Fill;
use tickwire_lab::{Axis, Mark, Plotted, Report, Scale, Table};
use tickwire_market::Side;

use super::BacktestResult;
use super::shown::{AFTER, doubts_of, instruments_of, mark_out, money, requests_of, verdict_of};

/// Fills that a plot shows at most, evenly chosen.
const SHOWN_MAX: usize = 4_000;

/// Seconds since the recording's first event.
fn seconds(done: &BacktestResult, at: tickwire_market::Nanos) -> f64 {
    at.since(done.summary.span[0]) as f64 / 1e9
}

fn thinned<T: Clone>(all: &[T]) -> Vec<T> {
    let step = all.len().div_ceil(SHOWN_MAX).max(1);
    all.iter().step_by(step).cloned().collect()
}

pub(super) fn of(done: &BacktestResult) -> Report {
    let s = &done.summary;
    let mut report = Report::new("Backtest").paragraph(&verdict_of(done));
    let time = Axis {
        label: "seconds of the recording",
        scale: Scale::Number,
    };
    let money_axis = Axis {
        label: "P&L less fees",
        scale: Scale::Number,
    };
    let curve = done
        .curve
        .iter()
        .map(|(at, gain)| (seconds(done, *at), *gain as f64 / 1e9));
    let mut high = f64::MIN;
    let curve: Vec<(f64, f64)> = curve.collect();
    let below = curve.iter().map(|(at, gain)| {
        high = high.max(*gain);
        (*at, gain - high)
    });
    let below: Vec<(f64, f64)> = below.collect();
    let line = |name, points| Plotted {
        name,
        mark: Mark::Line,
        points,
    };
    if !curve.is_empty() {
        report = report
            .lines(
                "P&L",
                "What was traded, valued at the middle of the book, less fees: after each fill and once a second.",
                time,
                money_axis,
                &[line("P&L", curve)],
            )
            .lines(
                "Drawdown",
                "How far the P&L is below its highest until then.",
                time,
                Axis {
                    label: "below the high",
                    ..money_axis
                },
                &[line("drawdown", below)],
            );
    }
    report = report.table(instruments_of(done));
    report = fills(report, done, time);
    report = report.facts("Requests", &requests_of(done));
    let doubts: Vec<(String, String)> = doubts_of(done);
    if !doubts.is_empty() {
        report = report.facts(
            "Doubts: where another rule of filling would have given another result",
            &doubts,
        );
    }
    if !done.figures.is_empty() {
        let figures = done
            .figures
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()));
        report = report.facts("Figures of the strategy", &figures.collect::<Vec<_>>());
    }
    if !done.notes.is_empty() {
        report = report.listing("Notes of the strategy", &done.notes.join("\n"));
    }
    let hash = format!("{:016x}", s.hash);
    report.facts("The run", &[("hash", hash), ("events", s.events.to_string())])
}

/// Where fills were, what was before them in their queues, and where the market went.
fn fills(mut report: Report, done: &BacktestResult, time: Axis<'_>) -> Report {
    if done.fills.is_empty() {
        return report.paragraph("No order was filled.");
    }
    let number = |label| Axis {
        label,
        scale: Scale::Number,
    };
    // Prices of different instruments have no axis in common.
    let mut traded: Vec<_> = done.summary.instruments.iter().collect();
    traded.sort_by_key(|i| std::cmp::Reverse(i.traded[0] + i.traded[1]));
    if let Some(most) = traded.first() {
        let of: Vec<Fill> = done
            .fills
            .iter()
            .filter(|fill| fill.instrument == most.instrument)
            .copied()
            .collect();
        let of = thinned(&of);
        let side = |side: Side| {
            let fills = of.iter().filter(|fill| fill.side == side);
            fills
                .map(|fill| (seconds(done, fill.at), fill.price.raw() as f64 / 1e9))
                .collect()
        };
        let dots = |name, points| Plotted {
            name,
            mark: Mark::Dots,
            points,
        };
        let middles = of.iter().filter_map(|fill| {
            let mid = fill.mid?;
            Some((seconds(done, fill.at), mid.raw() as f64 / 1e9))
        });
        report = report.lines(
            &format!("Fills of {}", most.symbol),
            "Price of each fill, and the middle of the book when it was matched; of the instrument that was traded most.",
            time,
            number("price"),
            &[
                dots("bought", side(Side::Bid)),
                dots("sold", side(Side::Ask)),
                Plotted {
                    name: "middle",
                    mark: Mark::Line,
                    points: middles.collect(),
                },
            ],
        );
    }
    let kinds: [Vec<Fill>; 2] = [true, false].map(|is_maker| {
        let fills = done.fills.iter().filter(|fill| fill.is_maker == is_maker);
        fills.copied().collect()
    });
    let after = AFTER.map(str::to_string);
    let of_kind = |fills: &Vec<Fill>| {
        (0..AFTER.len())
            .map(|horizon| mark_out(fills, horizon).unwrap_or(f64::NAN))
            .collect::<Vec<f64>>()
    };
    report = report.bars(
        "After fills",
        "Where the middle of the book went after fills, in basis points of the price by quantity: above 0 it went our way.",
        "after",
        number("basis points"),
        &after,
        &[("as maker", of_kind(&kinds[0])), ("as taker", of_kind(&kinds[1]))],
    );
    let queued: Vec<(f64, f64)> = thinned(&kinds[0])
        .iter()
        .map(|fill| (seconds(done, fill.at), fill.queue_at_entry as f64))
        .collect();
    if !queued.is_empty() {
        report = report.lines(
            "Queue at entry",
            "How much stood before an order when it came to rest, of each fill as maker.",
            time,
            number("quantity ahead"),
            &[Plotted {
                name: "ahead",
                mark: Mark::Dots,
                points: queued,
            }],
        );
    }
    let mut table = Table::new(
        "the last 100 fills",
        &["time", "order", "side", "quantity", "price", "", "ahead at entry"],
    );
    for fill in done.fills.iter().rev().take(100) {
        table = table.row([
            format!("{:.6}", seconds(done, fill.at)),
            fill.order.0.to_string(),
            if fill.side == Side::Bid { "buy" } else { "sell" }.to_string(),
            fill.qty.0.to_string(),
            fill.price.to_string(),
            if fill.is_maker { "maker" } else { "taker" }.to_string(),
            fill.queue_at_entry.to_string(),
        ]);
    }
    let fees: i128 = done.summary.instruments.iter().map(|i| i.fees).sum();
    report.folded(table).paragraph(&format!("Fees: {}.", money(fees)))
}
