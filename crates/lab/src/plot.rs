//! The pictures of a latency report: percentile curve, histogram, cumulative distribution, latency over time
//! as lines and as a heat map. Latency is always on a logarithmic axis: a tail a thousand times the median
//! must not flatten everything else.

use crate::format::{format_count, format_ns};
use crate::histogram::Histogram;
use crate::series::{Bin, Series};
use crate::svg::{Anchor, LogScale, Svg};

pub(crate) const WIDTH: f64 = 900.0;
pub(crate) const LEFT: f64 = 64.0;
const RIGHT: f64 = 96.0;
pub(crate) const TOP: f64 = 14.0;
pub(crate) const PLOT_RIGHT: f64 = WIDTH - RIGHT;
/// Least distance between two labels.
const LABEL_HEIGHT: f64 = 15.0;
/// How many colours the page has; more curves than that repeat them.
pub(crate) const COLOURS: usize = 8;

pub(crate) fn colour(i: usize) -> usize {
    i % COLOURS
}

/// Horizontal lines with latencies at their left.
fn latency_grid(svg: &mut Svg, y: &LogScale) {
    for tick in y.ticks() {
        let at = y.at(tick);
        svg.line("grid", (LEFT, at), (PLOT_RIGHT, at));
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &short_ns(tick));
    }
}

/// An axis value without needless decimals: `100 ns`, `2 µs`, `2.5 s`.
fn short_ns(ns: f64) -> String {
    let text = format_ns(ns.round() as u64);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Latency by percentile, with equal room for each further nine: the axis is 1/(1-p), logarithmic.
pub(crate) fn percentile_curve(title: &str, histograms: &[(&str, &Histogram)]) -> String {
    let shown: Vec<&(&str, &Histogram)> = histograms
        .iter()
        .filter(|(_, histogram)| !histogram.is_empty())
        .collect();
    let (height, bottom) = (400.0, 40.0);
    let mut svg = Svg::new(WIDTH, height);
    let (Some(low), Some(high)) = (
        shown.iter().map(|(_, h)| h.at_quantile(0.0)).min(),
        shown.iter().map(|(_, h)| h.max()).max(),
    ) else {
        return nothing(title);
    };
    let y = LogScale::new(low as f64, high as f64, height - bottom, TOP);
    let most = shown.iter().map(|(_, h)| h.count()).max().unwrap_or(1) as f64;
    let x = LogScale::new(1.0, most.max(100.0), LEFT, PLOT_RIGHT);
    latency_grid(&mut svg, &y);
    for (label, inverse) in percentile_ticks(x.high_value()) {
        svg.line("grid", (x.at(inverse), TOP), (x.at(inverse), height - bottom));
        svg.text(
            "tick",
            (x.at(inverse), height - bottom + 18.0),
            Anchor::Middle,
            &label,
        );
    }
    svg.text(
        "axis",
        ((LEFT + PLOT_RIGHT) / 2.0, height - 4.0),
        Anchor::Middle,
        "percentile",
    );
    let mut ends = Vec::new();
    for (i, (name, histogram)) in shown.iter().enumerate() {
        let points = curve(histogram, &x, &y);
        ends.push((
            i,
            name.to_string(),
            *points
                .last()
                .expect("a histogram that is not empty has a maximum"),
        ));
        svg.polyline(&format!("curve c{}", colour(i)), &points);
    }
    for (i, (_, histogram)) in shown.iter().enumerate() {
        markers(&mut svg, colour(i), histogram, &x, &y);
    }
    label_ends(&mut svg, &ends, height - bottom);
    svg.finish(title)
}

/// `(label, 1/(1-p))` of the percentiles worth a line.
fn percentile_ticks(highest: f64) -> Vec<(String, f64)> {
    let mut ticks = vec![("0 %".to_owned(), 1.0), ("50 %".to_owned(), 2.0)];
    for nines in 1..=12 {
        let inverse = 10f64.powi(nines);
        if inverse > highest {
            break;
        }
        let label = match nines {
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            _ => format!("99.{} %", "9".repeat(nines as usize - 2)),
        };
        ticks.push((label, inverse));
    }
    ticks
}

fn curve(histogram: &Histogram, x: &LogScale, y: &LogScale) -> Vec<(f64, f64)> {
    const STEPS: u32 = 300;
    let count = histogram.count() as f64;
    let mut points: Vec<(f64, f64)> = (0..STEPS)
        .map(|step| {
            let inverse = count.powf(f64::from(step) / f64::from(STEPS));
            (
                x.at(inverse),
                y.at(histogram.at_quantile(1.0 - 1.0 / inverse) as f64),
            )
        })
        .collect();
    points.push((x.at(count), y.at(histogram.max() as f64)));
    points
}

/// Dots at the percentiles people quote, with the figure when pointed at.
fn markers(svg: &mut Svg, colour: usize, histogram: &Histogram, x: &LogScale, y: &LogScale) {
    for (name, inverse) in [("p50", 2.0), ("p90", 10.0), ("p99", 100.0), ("p99.9", 1_000.0)] {
        if inverse < histogram.count() as f64 {
            let value = histogram.at_quantile(1.0 - 1.0 / inverse);
            let at = (x.at(inverse), y.at(value as f64));
            svg.circle(&format!("dot c{colour}"), at, 3.0);
            let hint = format!("{name}: {}", format_ns(value));
            svg.rect("hit", (at.0 - 7.0, at.1 - 7.0), (at.0 + 7.0, at.1 + 7.0), &hint);
        }
    }
}

/// Names at the right, in their series' colours, beside the ends of their curves, moved apart where they
/// would overlap.
pub(crate) fn label_ends(svg: &mut Svg, ends: &[(usize, String, (f64, f64))], lowest: f64) {
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by(|&a, &b| ends[a].2.1.total_cmp(&ends[b].2.1));
    let mut ys: Vec<f64> = Vec::new();
    for &i in &order {
        let above = ys.last().map_or(f64::MIN, |y| y + LABEL_HEIGHT);
        ys.push(ends[i].2.1.max(above));
    }
    // Those pushed below the plot push back upwards.
    let mut limit = lowest;
    for y in ys.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - LABEL_HEIGHT;
    }
    for (&i, &y) in order.iter().zip(&ys) {
        let (series, name, end) = &ends[i];
        svg.line(
            &format!("leader c{}", colour(*series)),
            *end,
            (PLOT_RIGHT + 8.0, y),
        );
        svg.text(
            &format!("label c{}", colour(*series)),
            (PLOT_RIGHT + 12.0, y + 4.0),
            Anchor::Start,
            name,
        );
    }
}

/// How often each latency occurred, both axes logarithmic; one panel per histogram over a common latency
/// axis.
pub(crate) fn histogram(title: &str, histograms: &[(&str, &Histogram)]) -> String {
    let shown: Vec<&(&str, &Histogram)> = histograms
        .iter()
        .filter(|(_, histogram)| !histogram.is_empty())
        .collect();
    let (Some(low), Some(high)) = (
        shown.iter().map(|(_, h)| h.min()).min(),
        shown.iter().map(|(_, h)| h.max()).max(),
    ) else {
        return nothing(title);
    };
    let (panel, gap, bottom) = (if shown.len() == 1 { 260.0 } else { 92.0 }, 14.0, 40.0);
    let height = TOP + shown.len() as f64 * (panel + gap) - gap + bottom;
    let mut svg = Svg::new(WIDTH, height);
    let x = LogScale::new(low as f64 * 0.9, high as f64, LEFT, PLOT_RIGHT);
    for tick in x.ticks() {
        svg.line("grid", (x.at(tick), TOP), (x.at(tick), height - bottom));
        svg.text(
            "tick",
            (x.at(tick), height - bottom + 18.0),
            Anchor::Middle,
            &short_ns(tick),
        );
    }
    svg.text(
        "axis",
        ((LEFT + PLOT_RIGHT) / 2.0, height - 4.0),
        Anchor::Middle,
        "latency",
    );
    for (i, (name, histogram)) in shown.iter().enumerate() {
        let top = TOP + i as f64 * (panel + gap);
        histogram_panel(&mut svg, i, histogram, &x, top, top + panel);
        svg.text(
            &format!("label c{}", colour(i)),
            (PLOT_RIGHT + 12.0, top + 14.0),
            Anchor::Start,
            name,
        );
        let notes = [
            format!("p50 {}", format_ns(histogram.at_quantile(0.5))),
            format!("n = {}", format_count(histogram.count())),
        ];
        for (note, y) in notes.iter().zip([30.0, 45.0]) {
            svg.text("tick", (PLOT_RIGHT + 12.0, top + y), Anchor::Start, note);
        }
    }
    svg.finish(title)
}

/// What share of all is not slower than each latency: a line a histogram over a common logarithmic axis.
pub(crate) fn cumulative(title: &str, histograms: &[(&str, &Histogram)]) -> String {
    let shown: Vec<&(&str, &Histogram)> = histograms
        .iter()
        .filter(|(_, histogram)| !histogram.is_empty())
        .collect();
    // Up to the last but one in a thousand: beyond that the percentile curve shows more.
    let (Some(low), Some(high)) = (
        shown.iter().map(|(_, h)| h.min()).min(),
        shown.iter().map(|(_, h)| h.at_quantile(0.9995)).max(),
    ) else {
        return nothing(title);
    };
    let (height, bottom) = (340.0, 40.0);
    let mut svg = Svg::new(WIDTH, height);
    let x = LogScale::new(low as f64 * 0.9, high as f64, LEFT, PLOT_RIGHT);
    let y = |share: f64| height - bottom - share * (height - bottom - TOP);
    for tick in x.ticks() {
        svg.line("grid", (x.at(tick), TOP), (x.at(tick), height - bottom));
        let at = (x.at(tick), height - bottom + 18.0);
        svg.text("tick", at, Anchor::Middle, &short_ns(tick));
    }
    for percent in [0u32, 25, 50, 75, 100] {
        let at = y(f64::from(percent) / 100.0);
        svg.line("grid", (LEFT, at), (PLOT_RIGHT, at));
        let text = format!("{percent} %");
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &text);
    }
    let middle = ((LEFT + PLOT_RIGHT) / 2.0, height - 4.0);
    svg.text("axis", middle, Anchor::Middle, "latency");
    for (i, (_, histogram)) in shown.iter().enumerate() {
        let mut points = vec![(x.at(histogram.min() as f64), y(0.0))];
        for step in 0..=240 {
            let share = f64::from(step) / 240.0 * 0.9995;
            points.push((x.at(histogram.at_quantile(share) as f64), y(share)));
        }
        svg.polyline(&format!("curve c{}", colour(i)), &points);
    }
    // Beside their medians the names would lie over the lines: a legend instead, in the order of the medians.
    let mut order: Vec<usize> = (0..shown.len()).collect();
    order.sort_by_key(|&i| shown[i].1.at_quantile(0.5));
    for (line, &i) in order.iter().enumerate() {
        let at = (PLOT_RIGHT + 12.0, TOP + 12.0 + line as f64 * LABEL_HEIGHT);
        svg.text(&format!("label c{}", colour(i)), at, Anchor::Start, shown[i].0);
    }
    svg.finish(title)
}

fn histogram_panel(svg: &mut Svg, i: usize, histogram: &Histogram, x: &LogScale, top: f64, bottom: f64) {
    const BINS: usize = 140;
    let (low, high) = (x.low_value(), x.high_value());
    let edge = |bin: usize| low * (high / low).powf(bin as f64 / BINS as f64);
    let mut counts = [0u64; BINS];
    for (value, count) in histogram.values() {
        let share = (value.max(1) as f64 / low).log10() / (high / low).log10();
        counts[((share * BINS as f64) as usize).min(BINS - 1)] += count;
    }
    // From half an occurrence, so that a single one is visible.
    let most = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    let y = LogScale::new(1.0, 2.0 * most, bottom, top);
    for tick in y
        .ticks()
        .into_iter()
        .filter(|tick| tick.log10().fract() == 0.0 && *tick <= most)
    {
        let at = y.at(2.0 * tick);
        svg.line("grid", (LEFT, at), (PLOT_RIGHT, at));
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &short_count(tick));
    }
    svg.line("base", (LEFT, bottom), (PLOT_RIGHT, bottom));
    for (bin, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (from, to) = (edge(bin), edge(bin + 1));
        let hint = format!(
            "{} to {}: {}",
            format_ns(from as u64),
            format_ns(to as u64),
            format_count(count)
        );
        let corner = (x.at(from), y.at(2.0 * count as f64));
        svg.rect(
            &format!("bar c{}", colour(i)),
            corner,
            (x.at(to) - 0.8, bottom),
            &hint,
        );
    }
    let median = x.at(histogram.at_quantile(0.5) as f64);
    svg.line("median", (median, top), (median, bottom));
}

/// `1`, `10`, `1k`, `100k`, `10M`.
fn short_count(count: f64) -> String {
    match count as u64 {
        c if c >= 1_000_000_000 => format!("{}G", c / 1_000_000_000),
        c if c >= 1_000_000 => format!("{}M", c / 1_000_000),
        c if c >= 1_000 => format!("{}k", c / 1_000),
        c => c.to_string(),
    }
}

/// Median, 99th percentile and maximum of each of 200 spans of time, and how many latencies each has.
pub(crate) fn timeseries(title: &str, series: &Series) -> String {
    const BINS: usize = 200;
    let bins = series.bins(BINS);
    let (Some(low), Some(high)) = (
        bins.iter().map(|bin| bin.p50).min(),
        bins.iter().map(|bin| bin.max).max(),
    ) else {
        return nothing(title);
    };
    let (height, bottom, strip) = (380.0, 40.0, 54.0);
    let strip_top = height - bottom - strip;
    let mut svg = Svg::new(WIDTH, height);
    let y = LogScale::new(low as f64 * 0.8, high as f64, strip_top - 16.0, TOP);
    latency_grid(&mut svg, &y);
    let at = |bin: usize| LEFT + (PLOT_RIGHT - LEFT) * bin as f64 / BINS as f64;
    time_axis(&mut svg, series.span_ns(), height - bottom);
    for bin in &bins {
        svg.circle("dot c2", (at(bin.index) + 2.0, y.at(bin.max as f64)), 1.8);
    }
    for (i, value) in [(1, (|bin| bin.p99) as fn(&Bin) -> u64), (0, |bin| bin.p50)] {
        for run in bins.chunk_by(|a, b| b.index == a.index + 1) {
            let points: Vec<_> = run
                .iter()
                .map(|bin| (at(bin.index) + 2.0, y.at(value(bin) as f64)))
                .collect();
            match points.as_slice() {
                [alone] => svg.circle(&format!("dot c{i}"), *alone, 1.8),
                points => svg.polyline(&format!("curve c{i}"), points),
            }
        }
    }
    let last = bins.last().expect("there is a lowest one");
    let end =
        |i: usize, name: &str, value: u64| (i, name.to_owned(), (at(last.index) + 2.0, y.at(value as f64)));
    let ends = [
        end(0, "p50", last.p50),
        end(1, "p99", last.p99),
        end(2, "max", last.max),
    ];
    label_ends(&mut svg, &ends, strip_top - 16.0);
    rate_strip(
        &mut svg,
        &bins,
        series.span_ns() as f64 / BINS as f64,
        at,
        (strip_top, height - bottom),
    );
    svg.finish(title)
}

/// How many latencies of each size there were in each span of time: the darker, the more.
pub(crate) fn heat_map(title: &str, series: &Series) -> String {
    const COLUMNS: usize = 90;
    const ROWS: usize = 36;
    let (Some(low), Some(high)) = (
        series.points().iter().map(|p| p.1).min(),
        series.points().iter().map(|p| p.1).max(),
    ) else {
        return nothing(title);
    };
    let (height, bottom) = (320.0, 40.0);
    let mut svg = Svg::new(WIDTH, height);
    let y = LogScale::new(low as f64 * 0.95, high as f64, height - bottom, TOP);
    let span = series.span_ns() as f64 + 1.0;
    let cell_width = (PLOT_RIGHT - LEFT) / COLUMNS as f64;
    let cell_height = (height - bottom - TOP) / ROWS as f64;
    let mut counts = vec![0u64; COLUMNS * ROWS];
    for &(at, latency) in series.points() {
        let column = (at as f64 / span * COLUMNS as f64) as usize;
        let row = ((y.at(latency as f64) - TOP) / cell_height) as usize;
        counts[column.min(COLUMNS - 1) * ROWS + row.min(ROWS - 1)] += 1;
    }
    latency_grid(&mut svg, &y);
    time_axis(&mut svg, series.span_ns(), height - bottom);
    let most = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    for (cell, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let from = (
            LEFT + (cell / ROWS) as f64 * cell_width,
            TOP + (cell % ROWS) as f64 * cell_height,
        );
        // A single one is seen beside thousands: by the logarithm of the count, in steps.
        let shade = 1 + ((count as f64).ln_1p() / most.ln_1p() * 7.99) as usize;
        let to = (from.0 + cell_width, from.1 + cell_height);
        svg.rect(&format!("heat h{}", shade.min(SHADES)), from, to, "");
    }
    for shade in 1..=SHADES {
        let top = TOP + (SHADES - shade) as f64 * 14.0;
        let corner = (PLOT_RIGHT + 12.0, top);
        svg.rect(
            &format!("heat h{shade}"),
            corner,
            (PLOT_RIGHT + 26.0, top + 13.0),
            "",
        );
        // The most that has this shade.
        let count = ((shade as f64 / 7.99 * most.ln_1p()).exp_m1()).min(most);
        if shade == 1 || shade == SHADES || shade == SHADES / 2 {
            let at = (PLOT_RIGHT + 32.0, top + 11.0);
            svg.text("tick", at, Anchor::Start, &short_count(count.max(1.0)));
        }
    }
    svg.finish(title)
}

/// How many shades a heat map has.
pub(crate) const SHADES: usize = 8;

fn time_axis(svg: &mut Svg, span_ns: u64, y: f64) {
    let seconds = span_ns as f64 / 1e9;
    let raw = seconds / 8.0;
    let decade = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * decade)
        .into_iter()
        .find(|step| *step >= raw)
        .unwrap_or(raw);
    let ticks = (seconds / step).floor() as u32;
    for tick in 0..=ticks {
        let at = LEFT + (PLOT_RIGHT - LEFT) * (f64::from(tick) * step / seconds).min(1.0);
        svg.line("tickmark", (at, y), (at, y + 4.0));
        svg.text(
            "tick",
            (at, y + 18.0),
            Anchor::Middle,
            &short_ns(f64::from(tick) * step * 1e9),
        );
    }
    svg.text(
        "axis",
        ((LEFT + PLOT_RIGHT) / 2.0, y + 36.0),
        Anchor::Middle,
        "time since the start",
    );
}

fn rate_strip(
    svg: &mut Svg,
    bins: &[Bin],
    bin_ns: f64,
    at: impl Fn(usize) -> f64,
    (top, bottom): (f64, f64),
) {
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(1);
    svg.line("base", (LEFT, bottom), (PLOT_RIGHT, bottom));
    svg.text(
        "tick",
        (LEFT - 8.0, top + 10.0),
        Anchor::End,
        &format!("{}/s", short_rate(most as f64 * 1e9 / bin_ns)),
    );
    svg.text("tick", (PLOT_RIGHT + 12.0, bottom - 2.0), Anchor::Start, "rate");
    for bin in bins {
        let bar_top = bottom - (bottom - top) * bin.count as f64 / most as f64;
        svg.rect(
            "rate",
            (at(bin.index), bar_top),
            (at(bin.index + 1) - 0.6, bottom),
            "",
        );
        let from = format_ns((bin.index as f64 * bin_ns) as u64);
        let hint = format!(
            "at {from}: {} measured, p50 {}, p99 {}, max {}",
            format_count(bin.count),
            format_ns(bin.p50),
            format_ns(bin.p99),
            format_ns(bin.max)
        );
        svg.rect("hit", (at(bin.index), TOP), (at(bin.index + 1), bottom), &hint);
    }
}

/// Two digits of a rate: `12`, `340`, `1.2k`.
fn short_rate(rate: f64) -> String {
    match rate {
        r if r >= 1e6 => format!("{:.1}M", r / 1e6),
        r if r >= 1e3 => format!("{:.1}k", r / 1e3),
        r => format!("{r:.0}"),
    }
}

pub(crate) fn nothing(title: &str) -> String {
    let mut svg = Svg::new(WIDTH, 60.0);
    svg.text(
        "axis",
        (WIDTH / 2.0, 34.0),
        Anchor::Middle,
        "nothing was measured",
    );
    svg.finish(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_values_have_no_needless_decimals() {
        for (ns, text) in [
            (100.0, "100 ns"),
            (2_000.0, "2 µs"),
            (50_000_000.0, "50 ms"),
            (1e9, "1 s"),
            (2_500.0, "2.5 µs"),
        ] {
            assert_eq!(short_ns(ns), text);
        }
    }

    #[test]
    fn percentile_ticks_add_a_nine_at_a_time_up_to_the_sample_count() {
        let labels: Vec<String> = percentile_ticks(10_000.0)
            .into_iter()
            .map(|(label, _)| label)
            .collect();
        assert_eq!(labels, ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
    }

    #[test]
    fn every_plot_survives_none_one_and_equal_values() {
        let (empty, mut one, mut same) = (Histogram::new(), Histogram::new(), Histogram::new());
        one.record(0);
        same.record_n(5_000, 1_000_000);
        let mut point = Series::default();
        point.push(0, 0);
        for histograms in [
            vec![],
            vec![("empty", &empty)],
            vec![("one", &one)],
            vec![("one", &one), ("same", &same)],
        ] {
            for text in [
                percentile_curve("t", &histograms),
                histogram("t", &histograms),
                cumulative("t", &histograms),
            ] {
                assert!(
                    text.ends_with("</svg>\n") && !text.contains("NaN") && !text.contains("inf"),
                    "{text}"
                );
            }
        }
        for series in [Series::default(), point] {
            for text in [timeseries("t", &series), heat_map("t", &series)] {
                assert!(
                    text.ends_with("</svg>\n") && !text.contains("NaN") && !text.contains("inf"),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn a_heat_map_shades_by_how_many_and_a_cumulative_curve_climbs_from_left_to_right() {
        let mut series = Series::default();
        (0..1_000).for_each(|i| series.push(i * 1_000, if i == 500 { 90_000 } else { 1_000 }));
        let text = heat_map("t", &series);
        // A cell in each column, one for the one that was slow, and the legend.
        assert_eq!(text.matches("class=\"heat h").count(), 90 + 1 + SHADES);
        let mut histogram = Histogram::new();
        (1..1_000).for_each(|i| histogram.record(i * 100));
        let text = cumulative("t", &[("x", &histogram)]);
        let points = text.split("points=\"").nth(1).expect("a curve").split('"').next();
        let xs: Vec<f64> = points
            .expect("points")
            .split(' ')
            .map(|p| p.split(',').next().expect("x").parse().expect("a number"))
            .collect();
        assert!(xs.len() > 100 && xs.windows(2).all(|w| w[0] <= w[1]));
    }
}
