//! Tables: for the terminal, for Markdown, for HTML. The first column is text, the others are numbers and stand right.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use tickwire_market::Counters;

use crate::format::{escape, format_count, format_ns_of};
use crate::histogram::Histogram;

/// A table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(title: &str, columns: &[&str]) -> Table {
        Table {
            title: title.to_owned(),
            columns: columns.iter().map(|&c| c.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// With one more row; missing cells are empty.
    ///
    /// # Panics
    /// With more cells than columns.
    pub fn row(mut self, cells: impl IntoIterator<Item = impl Into<String>>) -> Table {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert!(
            row.len() <= self.columns.len(),
            "{} cells for {} columns",
            row.len(),
            self.columns.len()
        );
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
        self
    }

    /// One more row, of another table [like](Table::is_like) this one.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Whether it has the same title and columns.
    pub(crate) fn is_like(&self, other: &Table) -> bool {
        (&self.title, &self.columns) == (&other.title, &other.columns)
    }

    /// A line per histogram: min, p50, p90, p99, p99.9, max, count.
    pub fn latencies(title: &str, histograms: &[(&str, &Histogram)]) -> Table {
        let empty = Table::new(title, &["", "min", "p50", "p90", "p99", "p99.9", "max", "count"]);
        histograms.iter().fold(empty, |table, (name, histogram)| {
            let s = histogram.summary();
            let times = [s.min, s.p50, s.p90, s.p99, s.p99_9, s.max].map(|ns| format_ns_of(s.count, ns));
            table.row(
                [(*name).to_owned()]
                    .into_iter()
                    .chain(times)
                    .chain([format_count(s.count)]),
            )
        })
    }

    /// A line per counter that is not 0 everywhere, a column per set of counters, and what each counter means.
    pub fn counters(title: &str, sets: &[(&str, &Counters)]) -> Table {
        let names = sets.iter().map(|(name, _)| *name);
        let columns: Vec<&str> = [""].into_iter().chain(names).collect();
        let mut table = Table::new(title, &columns);
        for &counter in tickwire_market::Counter::ALL {
            let values: Vec<u64> = sets.iter().map(|(_, counters)| counters.get(counter)).collect();
            if values.iter().any(|&value| value != 0) {
                let label = counter.spec().label.to_owned();
                table = table.row([label].into_iter().chain(values.into_iter().map(format_count)));
            }
        }
        table
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its rows, all of the same length.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Whether a column holds words, which are set to the left: the first one, and those in which any cell begins with
    /// anything but a digit or a sign, or is as long as a sentence.
    fn is_words(&self, column: usize) -> bool {
        const SENTENCE: usize = 30;
        let numeric = |cell: &String| {
            cell.is_empty()
                || cell.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                    && cell.chars().count() < SENTENCE
        };
        column == 0 || !self.rows.iter().all(|row| numeric(&row[column]))
    }

    fn widths(&self) -> Vec<usize> {
        let cell_width = |cell: &String| cell.chars().count();
        (0..self.columns.len())
            .map(|i| {
                self.rows
                    .iter()
                    .map(|row| cell_width(&row[i]))
                    .max()
                    .unwrap_or(0)
                    .max(cell_width(&self.columns[i]))
            })
            .collect()
    }

    /// For the terminal: title, rule, aligned columns.
    pub fn to_text(&self) -> String {
        let widths = self.widths();
        let line = |cells: &[String]| {
            let mut out = String::new();
            for (i, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
                match self.is_words(i) {
                    true => write!(out, "  {cell:<width$}"),
                    false => write!(out, "  {cell:>width$}"),
                }
                .expect("writing to a string");
            }
            out.trim_end().to_owned() + "\n"
        };
        let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        let mut out = format!("{}\n", self.title);
        if self.columns.iter().any(|column| !column.is_empty()) {
            out.push_str(&line(&self.columns));
            out.push_str(&format!("  {rule}\n"));
        }
        self.rows.iter().for_each(|row| out.push_str(&line(row)));
        out
    }

    /// For a Markdown document: bold title and a table.
    pub fn to_markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let aligned = (0..self.columns.len()).map(|i| if self.is_words(i) { ":--" } else { "--:" });
        let mut out = format!("**{}**\n\n{}", self.title, line(&self.columns));
        out.push_str(&format!("|{}|\n", aligned.collect::<Vec<_>>().join("|")));
        self.rows.iter().for_each(|row| out.push_str(&line(row)));
        out
    }

    /// For a page: a `figure` with the title as its caption.
    pub(crate) fn to_html(&self) -> String {
        let cells = |tag: &str, cells: &[String]| -> String {
            let cell = |(i, text): (usize, &String)| match i {
                0 => format!("<th scope=\"row\">{}</th>", escape(text)),
                _ if self.is_words(i) => format!("<{tag} class=\"words\">{}</{tag}>", escape(text)),
                _ => format!("<{tag}>{}</{tag}>", escape(text)),
            };
            format!(
                "<tr>{}</tr>\n",
                cells.iter().enumerate().map(cell).collect::<String>()
            )
        };
        let mut out = format!(
            "<figure class=\"table\"><figcaption>{}</figcaption><div><table>\n",
            escape(&self.title)
        );
        if self.columns.iter().any(|column| !column.is_empty()) {
            out.push_str(&format!("<thead>{}</thead>\n", cells("th", &self.columns)));
        }
        out.push_str("<tbody>");
        self.rows.iter().for_each(|row| out.push_str(&cells("td", row)));
        out.push_str("</tbody></table></div></figure>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_market::Counter;

    fn table() -> Table {
        Table::new("Latency", &["", "p50", "count"])
            .row(["book µ", "35 ns", "10"])
            .row(["a|b <", "1.20 µs"])
    }

    #[test]
    fn columns_of_words_are_set_to_the_left() {
        let t = Table::new("", &["", "value", "meaning"])
            .row(["a", "1", "One."])
            .row(["b", "22", "Twenty-two."]);
        assert!(t.to_text().contains("a      1  One.\n"), "{}", t.to_text());
        assert!(
            t.to_html()
                .contains("<td>22</td><td class=\"words\">Twenty-two.</td>")
        );
        assert!(t.to_markdown().contains("|:--|--:|:--|"));
    }

    #[test]
    fn text_aligns_by_characters_not_by_bytes() {
        let expected = "Latency\n              p50  count\n  ──────────────────────\n  book µ    35 ns     10\n  a|b <   1.20 µs\n";
        assert_eq!(table().to_text(), expected);
    }

    #[test]
    fn markdown_and_html_escape_what_would_break_them() {
        let markdown = "**Latency**\n\n|  | p50 | count |\n|:--|--:|--:|\n| book µ | 35 ns | 10 |\n| a\\|b < | 1.20 µs |  |\n";
        assert_eq!(table().to_markdown(), markdown);
        assert!(
            table()
                .to_html()
                .contains("<th scope=\"row\">a|b &lt;</th><td>1.20 µs</td><td></td>")
        );
    }

    #[test]
    fn what_was_not_measured_is_blank_and_not_nought() {
        let mut some = Histogram::new();
        some.record(0);
        let table = Table::latencies("", &[("some", &some), ("none", &Histogram::new())]);
        assert_eq!(table.rows()[0][1], "0 ns");
        assert_eq!(table.rows()[1], ["none", "", "", "", "", "", "", "0"]);
    }

    #[test]
    fn counters_that_are_zero_everywhere_are_left_out() {
        let (mut a, b) = (Counters::default(), Counters::default());
        a.add(Counter::Gaps, 1_500);
        let table = Table::counters("Counters", &[("trader", &a), ("exchange", &b)]);
        assert_eq!(table.rows(), [["gaps", "1\u{202f}500", "0"]]);
    }
}
