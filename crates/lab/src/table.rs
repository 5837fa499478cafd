//! Tables: for the terminal, for Markdown, for HTML. The first column is text, the others are numbers and
//! stand right.

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use tickwire_market::Counters;

use crate::format::{escape, format_count, format_ns_of};
use crate::histogram::{Histogram, Summary};

/// As many columns as a table wants: for files, which nobody's terminal breaks.
pub const WHOLE: usize = usize::MAX;
/// Words longer than this are broken where a terminal is too narrow for them.
const WORD: usize = 24;

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
        let empty = Table::new(title, &Summary::columns(&[""], &["count"]));
        histograms.iter().fold(empty, |table, (name, histogram)| {
            let s = histogram.summary();
            let times = s.times().map(|ns| format_ns_of(s.count, ns));
            table.row(
                [(*name).to_owned()]
                    .into_iter()
                    .chain(times)
                    .chain([format_count(s.count)]),
            )
        })
    }

    /// A line per counter that is not 0 everywhere, a column per set of counters, and what each counter
    /// means.
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

    /// Whether a column holds words, which are set to the left: the first one, and those in which any cell
    /// begins with anything but a digit or a sign, or is as long as a sentence.
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

    /// For a terminal of so many columns ([`WHOLE`] for a file): title, rule, aligned columns.
    ///
    /// A table that is too wide has its words broken into several lines, widest columns first. When that is
    /// not enough, what does not fit follows below as a table of its own, with the first column again.
    /// Nothing is left out.
    pub fn to_text(&self, columns: usize) -> String {
        let wanted = self.widths();
        let title = broken(&self.title, columns).join("\n");
        // Two characters before every column.
        let taken = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
        if taken(&wanted) <= columns {
            let all: Vec<usize> = (0..wanted.len()).collect();
            return format!("{title}\n{}", self.part(&all, &wanted));
        }
        let least: Vec<usize> = (0..wanted.len()).map(|i| self.least(i, wanted[i])).collect();
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for i in 1..wanted.len().max(1) {
            let with = |part: &[usize]| part.iter().map(|&i| least[i] + 2).sum::<usize>();
            match parts.last_mut() {
                _ if i == wanted.len() => {}
                Some(part) if with(part) + least[i] + 2 <= columns => part.push(i),
                _ => parts.push(vec![0, i]),
            }
        }
        if parts.is_empty() {
            parts.push(vec![0]);
        }
        let shown = parts.iter().map(|part| {
            // The cap that fits: every column gets what it wants up to it, and what it needs at least.
            let capped = |cap: usize| -> Vec<usize> {
                part.iter().map(|&i| wanted[i].min(cap.max(least[i]))).collect()
            };
            let widest = part.iter().map(|&i| wanted[i]).max().unwrap_or(0);
            let cap = (1..=widest).rev().find(|&cap| taken(&capped(cap)) <= columns);
            let mut widths = capped(cap.unwrap_or(0));
            // What the cap leaves over goes to the first that can use it.
            let mut left = columns.saturating_sub(taken(&widths));
            for (width, &i) in widths.iter_mut().zip(part) {
                let more = left.min(wanted[i] - *width);
                *width += more;
                left -= more;
            }
            self.part(part, &widths)
        });
        format!("{title}\n{}", shown.collect::<Vec<_>>().join("\n"))
    }

    /// The least width a column can have: numbers and short words are never broken.
    fn least(&self, column: usize, wanted: usize) -> usize {
        let is_words = self.is_words(column);
        let cells = self.rows.iter().map(|row| &row[column]).filter(|_| is_words);
        let words = cells
            .chain([&self.columns[column]])
            .flat_map(|cell| cell.split(' '))
            .map(|word| word.chars().count());
        match is_words {
            true => words.max().unwrap_or(0).min(WORD).min(wanted),
            false => {
                let numbers = self.rows.iter().map(|row| row[column].chars().count());
                numbers.chain(words.map(|word| word.min(WORD))).max().unwrap_or(0)
            }
        }
    }

    /// Some of the columns, each as wide as is said.
    fn part(&self, columns: &[usize], widths: &[usize]) -> String {
        let row = |cells: &[String]| {
            let cells: Vec<Vec<String>> = columns
                .iter()
                .zip(widths)
                .map(|(&i, &width)| broken(&cells[i], width))
                .collect();
            let mut out = String::new();
            for at in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let mut line = String::new();
                for ((lines, &width), &i) in cells.iter().zip(widths).zip(columns) {
                    let cell = lines.get(at).map_or("", String::as_str);
                    match self.is_words(i) {
                        true => write!(line, "  {cell:<width$}"),
                        false => write!(line, "  {cell:>width$}"),
                    }
                    .expect("writing to a string");
                }
                out.push_str(line.trim_end());
                out.push('\n');
            }
            out
        };
        let mut out = String::new();
        if self.columns.iter().any(|column| !column.is_empty()) {
            let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
            out.push_str(&row(&self.columns));
            out.push_str(&format!("  {rule}\n"));
        }
        self.rows.iter().for_each(|cells| out.push_str(&row(cells)));
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

/// A cell in lines of at most `width` characters, broken at spaces, and within a word that is longer than
/// that. What follows the first line of a cell that begins with a name and two spaces stands under the text
/// behind them.
pub(crate) fn broken(cell: &str, width: usize) -> Vec<String> {
    if cell.chars().count() <= width || width == 0 {
        return vec![cell.to_owned()];
    }
    let name = cell
        .find("  ")
        .map_or(0, |at| at + cell[at..].len() - cell[at..].trim_start().len());
    let indent = cell[..name].chars().count();
    let indent = if indent <= width / 2 { indent } else { 0 };
    let (mut lines, mut line) = (Vec::new(), cell[..name].to_owned());
    let mut length = cell[..name].chars().count();
    let mut is_new = true;
    for word in cell[name..].split(' ') {
        let mut word = word;
        loop {
            let count = word.chars().count();
            let gap = usize::from(!is_new);
            if length + gap + count <= width {
                line.extend(std::iter::repeat_n(' ', gap));
                line.push_str(word);
                length += gap + count;
                is_new = false;
                break;
            }
            // A word that fits no line begins where it is and goes on below.
            let room = width.saturating_sub(length + gap);
            if count > width - indent && room > 0 {
                let at = word.char_indices().nth(room).map_or(word.len(), |(at, _)| at);
                line.extend(std::iter::repeat_n(' ', gap));
                line.push_str(&word[..at]);
                word = &word[at..];
            }
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            length = indent;
            is_new = true;
        }
    }
    lines.push(line);
    lines
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
        let text = t.to_text(WHOLE);
        assert!(text.contains("a      1  One.\n"), "{text}");
        assert!(
            t.to_html()
                .contains("<td>22</td><td class=\"words\">Twenty-two.</td>")
        );
        assert!(t.to_markdown().contains("|:--|--:|:--|"));
    }

    #[test]
    fn text_aligns_by_characters_not_by_bytes() {
        let expected = "Latency\n              p50  count\n  ──────────────────────\n  book µ    35 ns     10\n  a|b <   1.20 µs\n";
        assert_eq!(table().to_text(WHOLE), expected);
        assert_eq!(table().to_text(24), expected);
    }

    /// Whatever the width, every line fits (as far as numbers and short words can), and every word is there
    /// in its order.
    #[test]
    fn a_table_fits_the_width_and_loses_nothing() {
        let wide = Table::new("settings", &["setting", "now", "costs", "changed by"])
            .row([
                "idle-states",
                "12",
                "up to 200 µs until a core that slept answers",
                "the kernel's command line: idle=poll",
            ])
            .row([
                "smt",
                "3",
                "shares a core's execution units with whatever runs beside it",
                "/sys/devices/system/cpu/smt/control",
            ]);
        let natural = wide.to_text(WHOLE);
        let letters = |text: &str| {
            let mut letters: Vec<char> = text.chars().filter(|c| !c.is_whitespace() && *c != '─').collect();
            letters.sort_unstable();
            letters
        };
        for columns in 60..140 {
            let text = wide.to_text(columns);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{columns}: {text}");
            assert_eq!(letters(&text), letters(&natural), "{columns}: {text}");
        }
    }

    #[test]
    fn columns_that_do_not_fit_follow_below_with_the_first_one_again() {
        let columns = ["", "first", "second", "third"];
        let table = Table::new("t", &columns).row(["name", "1234567890", "1234567890", "1234567890"]);
        assert_eq!(
            table.to_text(32),
            "t\n             first      second\n  ────────────────────────────\n  name  1234567890  1234567890\n\n             \
             third\n  ────────────────\n  name  1234567890\n"
        );
    }

    #[test]
    fn a_named_text_goes_on_under_its_text() {
        assert_eq!(broken("cpu  one two three", 12), ["cpu  one two", "     three"]);
        assert_eq!(broken("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(broken("a bcdefgh", 4), ["a bc", "defg", "h"]);
        assert_eq!(broken("short", 9), ["short"]);
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
