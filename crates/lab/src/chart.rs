//! Pictures of figures that are no latencies: lines and dots over linear axes, a table of gains and losses in
//! colours, bars.
//!
//! Latencies are drawn by `plot.rs`, over logarithmic axes.

use crate::plot::{LEFT, PLOT_RIGHT, SHADES, TOP, WIDTH, colour, label_ends, nothing};
use crate::svg::{Anchor, Svg};

/// How the values of an axis are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// As numbers.
    Number,
    /// Shares, as per cent: 0.15 is `15 %`.
    Percent,
    /// Seconds since midnight, as `14:30`.
    Time,
}

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// What it says beside it.
    pub label: &'a str,
    /// How its values are written.
    pub scale: Scale,
}

/// How the points of a series are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Joined by a line, in the order they come.
    Line,
    /// A dot each.
    Dots,
}

/// Points with a name. Those that are no numbers are left out.
#[derive(Clone, Debug)]
pub struct Plotted<'a> {
    /// Its name, beside its end.
    pub name: &'a str,
    /// How they are shown.
    pub mark: Mark,
    /// `(x, y)`.
    pub points: Vec<(f64, f64)>,
}

/// Values on a linear axis, as positions between `from` and `to`.
#[derive(Clone, Copy, Debug)]
struct LinearScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LinearScale {
    /// Holds all values, with a little room at both ends; `None` without any.
    fn over(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Option<LinearScale> {
        let low = values.clone().reduce(f64::min)?;
        let high = values.reduce(f64::max)?;
        // Values that are all alike get a range as wide as themselves.
        let room = match 0.04 * (high - low) {
            room if room > 0.0 => room,
            _ => (0.02 * high.abs()).max(1e-9),
        };
        Some(LinearScale {
            low: low - room,
            high: high + room,
            from,
            to,
        })
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// About `count` values worth a line, by a step that `scale` writes well, and how many decimals tell them
    /// apart.
    fn ticks(&self, count: f64, scale: Scale) -> (Vec<f64>, usize) {
        let raw = (self.high - self.low) / count;
        let step = match scale {
            Scale::Time => [
                1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0,
            ]
            .into_iter()
            .find(|step| *step >= raw)
            .unwrap_or(28_800.0),
            Scale::Number | Scale::Percent => {
                let decade = 10f64.powf(raw.log10().floor());
                let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade);
                steps.into_iter().find(|step| *step >= raw * 0.999).unwrap_or(raw)
            }
        };
        let shown = if scale == Scale::Percent {
            100.0 * step
        } else {
            step
        };
        let decimals = (-shown.log10().floor()).clamp(0.0, 9.0) as usize;
        let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
        let many = (last - first).clamp(-1.0, 100.0) as i64;
        ((0..=many).map(|n| (first + n as f64) * step).collect(), decimals)
    }
}

/// A value as an axis writes it.
fn written(value: f64, scale: Scale, decimals: usize) -> String {
    // No "-0".
    let value = if value.abs() < 1e-12 { 0.0 } else { value };
    match scale {
        Scale::Number => grouped(value, decimals),
        Scale::Percent => format!("{:.decimals$} %", 100.0 * value),
        Scale::Time => {
            let seconds = value.round() as i64;
            let (h, m, s) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
            if s == 0 {
                format!("{h:02}:{m:02}")
            } else {
                format!("{h:02}:{m:02}:{s:02}")
            }
        }
    }
}

/// A number with its thousands set apart by narrow spaces: `-12 345.50`; a dash for what is none.
pub fn grouped(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |(w, f)| (w, f));
    let is_zero = text.bytes().all(|b| b == b'0' || b == b'.');
    let mut out = String::from(if value < 0.0 && !is_zero { "-" } else { "" });
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Lines and dots over two linear axes.
pub(crate) fn lines(title: &str, x_axis: Axis<'_>, y_axis: Axis<'_>, series: &[Plotted<'_>]) -> String {
    let (height, bottom) = (380.0, 44.0);
    let good = |p: &&(f64, f64)| p.0.is_finite() && p.1.is_finite();
    let all = series.iter().flat_map(|s| s.points.iter().filter(good));
    let scales = LinearScale::over(all.clone().map(|p| p.0), LEFT, PLOT_RIGHT).zip(LinearScale::over(
        all.map(|p| p.1),
        height - bottom,
        TOP,
    ));
    let Some((x, y)) = scales else {
        return nothing(title);
    };
    let mut svg = Svg::new(WIDTH, height);
    horizontal_grid(&mut svg, &y, y_axis);
    let (ticks, decimals) = x.ticks(9.0, x_axis.scale);
    for tick in ticks {
        let at = x.at(tick);
        svg.line("grid", (at, TOP), (at, height - bottom));
        let text = written(tick, x_axis.scale, decimals);
        svg.text("tick", (at, height - bottom + 18.0), Anchor::Middle, &text);
    }
    let middle = ((LEFT + PLOT_RIGHT) / 2.0, height - 6.0);
    svg.text("axis", middle, Anchor::Middle, x_axis.label);
    let mut ends = Vec::new();
    for (i, one) in series.iter().enumerate() {
        let points = one.points.iter().filter(good).map(|p| (x.at(p.0), y.at(p.1)));
        let points: Vec<(f64, f64)> = points.collect();
        let Some(&last) = points.last() else { continue };
        match (one.mark, points.as_slice()) {
            (Mark::Line, [_, _, ..]) => svg.polyline(&format!("curve c{}", colour(i)), &points),
            (_, dots) => {
                let class = format!("dot c{}", colour(i));
                dots.iter().for_each(|&at| svg.circle(&class, at, 2.6));
            }
        }
        ends.push((i, one.name.to_owned(), last));
    }
    label_ends(&mut svg, &ends, height - bottom);
    svg.finish(title)
}

/// Horizontal lines with values at their left, and one at 0 if that is in between.
fn horizontal_grid(svg: &mut Svg, y: &LinearScale, axis: Axis<'_>) {
    let (ticks, decimals) = y.ticks(6.0, axis.scale);
    for tick in ticks {
        let at = y.at(tick);
        svg.line("grid", (LEFT, at), (PLOT_RIGHT, at));
        let text = written(tick, axis.scale, decimals);
        svg.text("tick", (LEFT - 8.0, at + 4.0), Anchor::End, &text);
    }
    if y.low < 0.0 && y.high > 0.0 {
        svg.line("base", (LEFT, y.at(0.0)), (PLOT_RIGHT, y.at(0.0)));
    }
    svg.text("axis", (LEFT, TOP - 2.0), Anchor::Start, axis.label);
}

/// A table of gains and losses: `values` row by row, the stronger the colour the larger; `marked` has a
/// frame.
pub(crate) fn cells(
    title: &str,
    (column_label, columns): (&str, &[String]),
    (row_label, rows): (&str, &[String]),
    values: &[f64],
    marked: Option<usize>,
) -> String {
    if columns.is_empty() || rows.is_empty() || values.len() != columns.len() * rows.len() {
        return nothing(title);
    }
    let (cell_height, head, left) = (21.0, 44.0, 76.0);
    let cell_width = (WIDTH - left - 12.0) / columns.len() as f64;
    let mut svg = Svg::new(WIDTH, head + cell_height * rows.len() as f64 + 14.0);
    svg.text("axis", ((left + WIDTH) / 2.0, 14.0), Anchor::Middle, column_label);
    svg.text("axis", (left - 10.0, head - 10.0), Anchor::End, row_label);
    let middle = |column: usize| left + (column as f64 + 0.5) * cell_width;
    for (n, column) in columns.iter().enumerate() {
        svg.text("tick", (middle(n), head - 10.0), Anchor::Middle, column);
    }
    let most = values
        .iter()
        .filter(|v| v.is_finite())
        .fold(0.0_f64, |m, v| m.max(v.abs()));
    for (at, value) in values.iter().enumerate() {
        let (row, column) = (at / columns.len(), at % columns.len());
        let from = (left + column as f64 * cell_width, head + row as f64 * cell_height);
        let to = (from.0 + cell_width - 1.5, from.1 + cell_height - 1.5);
        if column == 0 {
            let place = (left - 10.0, from.1 + cell_height - 6.5);
            svg.text("tick", place, Anchor::End, &rows[row]);
        }
        // In half of the shades, so that figures stay readable on them.
        let shade = if most > 0.0 && value.is_finite() {
            (value.abs() / most * (SHADES / 2) as f64).ceil().max(1.0) as usize
        } else {
            1
        };
        let sign = if *value < 0.0 { "loss" } else { "heat" };
        let hint = format!("{}, {}: {}", rows[row], columns[column], grouped(*value, 0));
        svg.rect(&format!("{sign} h{shade}"), from, to, &hint);
        if marked == Some(at) {
            svg.rect("frame", from, to, &hint);
        }
        let place = (middle(column) - 0.75, from.1 + cell_height - 6.5);
        svg.text("figure", place, Anchor::Middle, &short(*value));
    }
    svg.finish(title)
}

/// A figure that fits a cell: `-12.3k`.
fn short(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "–".to_owned(),
        v if v >= 9.995e8 => format!("{:.2}G", value / 1e9),
        v if v >= 9.995e5 => format!("{:.2}M", value / 1e6),
        v if v >= 9.995e2 => format!("{:.1}k", value / 1e3),
        v if v < 0.5 => "0".to_owned(),
        _ => format!("{value:.0}"),
    }
}

/// Bars up and down from 0, those of a category beside each other, a colour a series.
pub(crate) fn bars(
    title: &str,
    x_label: &str,
    y_axis: Axis<'_>,
    categories: &[String],
    series: &[(&str, Vec<f64>)],
) -> String {
    let (height, bottom) = (320.0, 44.0);
    let values = || {
        series
            .iter()
            .flat_map(|(_, v)| v.iter().copied().filter(|v| v.is_finite()))
    };
    let all = values().chain([0.0]).collect::<Vec<f64>>();
    let scale = LinearScale::over(all.iter().copied(), height - bottom, TOP);
    let (Some(y), true) = (scale, values().next().is_some() && !categories.is_empty()) else {
        return nothing(title);
    };
    let mut svg = Svg::new(WIDTH, height);
    horizontal_grid(&mut svg, &y, y_axis);
    svg.line("base", (LEFT, y.at(0.0)), (PLOT_RIGHT, y.at(0.0)));
    let step = (PLOT_RIGHT - LEFT) / categories.len() as f64;
    let width = 0.8 * step / series.len() as f64;
    let every = categories.len().div_ceil(16);
    for (n, category) in categories.iter().enumerate() {
        let left = LEFT + n as f64 * step + 0.1 * step;
        if n.is_multiple_of(every) {
            let place = (left + 0.4 * step, height - bottom + 18.0);
            svg.text("tick", place, Anchor::Middle, category);
        }
        for (i, (name, values)) in series.iter().enumerate() {
            let value = values.get(n).copied().filter(|v| v.is_finite() && *v != 0.0);
            let Some(value) = value else { continue };
            let (from, to) = (y.at(value.max(0.0)), y.at(value.min(0.0)));
            let x = left + i as f64 * width;
            let hint = format!("{category}, {name}: {}", grouped(value, 4));
            let corner = (x + (width - 0.5).max(0.5), to.max(from + 0.5));
            svg.rect(&format!("bar c{}", colour(i)), (x, from), corner, &hint);
        }
    }
    for (i, (name, _)) in series.iter().enumerate() {
        let place = (PLOT_RIGHT + 12.0, TOP + 12.0 + 15.0 * i as f64);
        svg.text(&format!("label c{}", colour(i)), place, Anchor::Start, name);
    }
    let middle = ((LEFT + PLOT_RIGHT) / 2.0, height - 6.0);
    svg.text("axis", middle, Anchor::Middle, x_label);
    svg.finish(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Axis<'static> = Axis {
        label: "x",
        scale: Scale::Number,
    };

    #[test]
    fn axes_are_written_as_they_are_read() {
        for (value, scale, decimals, text) in [
            (0.155, Scale::Percent, 1, "15.5 %"),
            (52_200.0, Scale::Time, 0, "14:30"),
            (52_205.0, Scale::Time, 0, "14:30:05"),
            (-1_234_567.5, Scale::Number, 1, "-1\u{202f}234\u{202f}567.5"),
            (-1e-15, Scale::Number, 2, "0.00"),
        ] {
            assert_eq!(written(value, scale, decimals), text);
        }
        assert_eq!(grouped(-0.004, 2), "0.00");
        for (value, text) in [
            (0.2, "0"),
            (-999.0, "-999"),
            (-12_345.0, "-12.3k"),
            (2.5e6, "2.50M"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn ticks_are_round_and_within() {
        let scale = LinearScale::over([4_790.0, 5_230.0].into_iter(), 0.0, 100.0).expect("values");
        let (ticks, decimals) = scale.ticks(6.0, Scale::Number);
        assert_eq!(
            (ticks, decimals),
            (vec![4_800.0, 4_900.0, 5_000.0, 5_100.0, 5_200.0], 0)
        );
        assert!(scale.at(4_790.0) < scale.at(5_230.0) && scale.at(1e9) <= 100.0);
    }

    #[test]
    fn every_chart_survives_none_one_and_no_numbers() {
        let plotted = |points: &[(f64, f64)]| Plotted {
            name: "a",
            mark: Mark::Line,
            points: points.to_vec(),
        };
        let names = |n: usize| (0..n).map(|i| format!("<{i}>")).collect::<Vec<_>>();
        let texts = [
            lines("t", X, X, &[]),
            lines("t", X, X, &[plotted(&[])]),
            lines("t", X, X, &[plotted(&[(1.0, 1.0)])]),
            lines("t", X, X, &[plotted(&[(1.0, f64::NAN), (2.0, f64::INFINITY)])]),
            lines("t", X, X, &[plotted(&[(1.0, 0.0), (2.0, 0.0)])]),
            cells("t", ("c", &[]), ("r", &[]), &[], None),
            cells("t", ("c", &names(2)), ("r", &names(1)), &[f64::NAN, 0.0], Some(1)),
            bars("t", "x", X, &[], &[]),
            bars("t", "x", X, &names(1), &[("a", vec![0.0])]),
            bars("t", "x", X, &names(3), &[("a", vec![-1.0, f64::NAN])]),
        ];
        for text in texts {
            assert!(text.ends_with("</svg>\n"), "{text}");
            assert!(
                !text.contains("NaN") && !text.contains("inf") && !text.contains("<0>"),
                "{text}"
            );
        }
    }

    #[test]
    fn losses_and_gains_have_their_colours_and_the_marked_cell_a_frame() {
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        let text = cells(
            "t",
            ("c", &names(3)),
            ("r", &names(2)),
            &[-4e3, -1.0, 0.0, 1.0, 2e3, 4e3],
            Some(0),
        );
        assert_eq!(
            (text.matches("\"loss h").count(), text.matches("\"heat h").count()),
            (2, 4)
        );
        assert!(text.contains("class=\"loss h4\"") && text.contains("class=\"frame\""));
        assert!(text.contains("-4.0k") && text.contains("<title>1, 2: 4\u{202f}000</title>"));
    }
}
