//! The little of SVG that the plots need: shapes with classes (colours are the page's business) and
//! logarithmic scales.

use std::fmt::{Display, Write};

use crate::format::escape;

/// An SVG document in the making.
pub(crate) struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// How a text stands to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Svg {
        Svg {
            body: String::new(),
            width,
            height,
        }
    }

    fn push(&mut self, element: impl Display) {
        writeln!(self.body, "{element}").expect("writing to a string");
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let (x, y, anchor, text) = (at.0, at.1, anchor.name(), escape(text));
        self.push(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.push(format_args!(
            r#"<polyline class="{class}" points="{}"/>"#,
            points.join(" ")
        ));
    }

    pub(crate) fn circle(&mut self, class: &str, at: (f64, f64), radius: f64) {
        self.push(format_args!(
            r#"<circle class="{class}" cx="{:.1}" cy="{:.1}" r="{radius}"/>"#,
            at.0, at.1
        ));
    }

    /// A rectangle from corner to corner, with a text that shows when pointed at.
    pub(crate) fn rect(&mut self, class: &str, from: (f64, f64), to: (f64, f64), hint: &str) {
        let (x, y, width, height) = (from.0, from.1, (to.0 - from.0).max(0.0), (to.1 - from.1).max(0.0));
        let hint = if hint.is_empty() {
            String::new()
        } else {
            format!("<title>{}</title>", escape(hint))
        };
        self.push(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}">{hint}</rect>"#
        ));
    }

    /// The document, to stand in a page.
    pub(crate) fn finish(self, label: &str) -> String {
        let Svg { body, width, height } = self;
        let label = escape(label);
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{label}\">\n{body}</svg>\n"
        )
    }
}

/// Values on a logarithmic axis, as positions between `from` and `to`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// A scale that holds `low..=high` with a little room at the upper end. Values below 1 are shown as 1.
    pub(crate) fn new(low: f64, high: f64, from: f64, to: f64) -> LogScale {
        let low = low.max(1.0).log10();
        let high = high.max(1.0).log10().max(low + 0.3);
        LogScale {
            low,
            high: high + (high - low) * 0.03,
            from,
            to,
        }
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = (value.max(1.0).log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Values worth a line: powers of ten, with 2 and 5 between them where there is room, only some powers
    /// where there is none.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.floor() as i32, self.high.ceil() as i32);
        let per_decade: &[f64] = if self.high - self.low < 2.6 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let step = if last - first > 8 { 2 } else { 1 };
        let decades = (first..=last).filter(|decade| decade % step == 0);
        let all = decades.flat_map(|decade| per_decade.iter().map(move |m| m * 10f64.powi(decade)));
        let inside = |value: &f64| (self.low - 1e-9..=self.high + 1e-9).contains(&value.log10());
        all.filter(inside).collect()
    }

    pub(crate) fn low_value(&self) -> f64 {
        10f64.powf(self.low)
    }

    pub(crate) fn high_value(&self) -> f64 {
        10f64.powf(self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_scale_keeps_its_ends_and_clamps_what_lies_outside() {
        let scale = LogScale::new(10.0, 1e6, 100.0, 200.0);
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9 && (scale.at(0.0) - 100.0).abs() < 1e-9);
        assert!(scale.at(1e6) < 200.0 && scale.at(1e6) > 195.0 && scale.at(1e12) <= 200.0);
        assert_eq!(scale.ticks(), [1e1, 1e2, 1e3, 1e4, 1e5, 1e6]);
    }

    #[test]
    fn a_narrow_range_gets_finer_ticks_and_an_empty_one_some_width() {
        let near = |a: &[f64], b: &[f64]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6 * b)
        };
        assert!(near(
            &LogScale::new(100.0, 900.0, 0.0, 1.0).ticks(),
            &[100.0, 200.0, 500.0]
        ));
        let narrow = LogScale::new(100.0, 100.0, 0.0, 1.0);
        assert!(narrow.at(190.0) > narrow.at(100.0));
    }

    #[test]
    fn texts_are_escaped() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("t", (1.0, 2.0), Anchor::Middle, "<a & b>");
        svg.rect("r", (0.0, 0.0), (1.0, 1.0), "\"x\"");
        let text = svg.finish("l<");
        assert!(
            text.contains("&lt;a &amp; b&gt;")
                && text.contains("<title>&quot;x&quot;</title>")
                && text.contains("\"l&lt;\"")
        );
    }
}
