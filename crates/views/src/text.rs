//! Lines of text with a tone, and tables of them: the same page goes to a pipe as plain text and to a
//! terminal with colours.
//!
//! What matters is said in words; a tone only repeats it.

use std::fmt::Write;

use tickwire_console::terminal;

/// What a piece of text is like; how it looks is the terminal's business ([`Tone::escape`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    /// Names, headings.
    Strong,
    /// Less important.
    Faint,
    Good,
    /// Look at it.
    Warning,
    /// Do not trust what stands here.
    Loud,
    Bid,
    Ask,
}

impl Tone {
    /// The name of its class in a picture ([`Page::to_svg`]).
    fn class(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Strong => "strong",
            Tone::Faint => "faint",
            Tone::Good => "good",
            Tone::Warning => "warning",
            Tone::Loud => "loud",
            Tone::Bid => "bid",
            Tone::Ask => "ask",
        }
    }

    /// Select Graphic Rendition (ECMA-48 8.3.117); every one is ended by `ESC [ 0 m`.
    fn escape(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Strong => "\x1b[1m",
            Tone::Faint => "\x1b[2m",
            Tone::Good => "\x1b[32m",
            Tone::Warning => "\x1b[33m",
            Tone::Loud => "\x1b[1;37;41m",
            Tone::Bid => "\x1b[36m",
            Tone::Ask => "\x1b[35m",
        }
    }
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Line(Vec<(Tone, String)>);

impl Line {
    pub(crate) fn new() -> Line {
        Line::default()
    }

    pub(crate) fn plain(text: impl Into<String>) -> Line {
        Line::new().then(Tone::Plain, text)
    }

    pub(crate) fn toned(tone: Tone, text: impl Into<String>) -> Line {
        Line::new().then(tone, text)
    }

    /// With one more piece.
    pub(crate) fn then(mut self, tone: Tone, text: impl Into<String>) -> Line {
        let text = text.into();
        if !text.is_empty() {
            self.0.push((tone, text));
        }
        self
    }

    /// With another line behind it.
    fn join(mut self, other: Line) -> Line {
        self.0.extend(other.0);
        self
    }

    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// Cut to `width` characters, the last one `…` if anything is missing.
    fn cut(&self, width: usize) -> Line {
        if self.width() <= width {
            return self.clone();
        }
        let mut left = width.saturating_sub(1);
        let mut line = Line::new();
        for (tone, text) in &self.0 {
            let kept: String = text.chars().take(left).collect();
            left -= kept.chars().count();
            line = line.then(*tone, kept);
        }
        line.then(Tone::Plain, if width > 0 { "…" } else { "" })
    }

    /// Its pieces, each at its column; `y` is the baseline. Every piece is as wide as its characters,
    /// whatever the font.
    fn push_svg(&self, out: &mut String, y: usize) {
        let mut column = 0;
        for (tone, text) in &self.0 {
            let (width, x) = (text.chars().count(), MARGIN as f64 + column as f64 * CELL);
            column += width;
            let length = width as f64 * CELL;
            if *tone == Tone::Loud {
                let top = y - ROW + 5;
                writeln!(
                    out,
                    "<rect class=\"alarm\" x=\"{x:.1}\" y=\"{top}\" width=\"{length:.1}\" height=\"{ROW}\"/>"
                )
                .expect("writing to a string");
            }
            if !text.trim().is_empty() {
                writeln!(
                    out,
                    "<text class=\"{}\" x=\"{x:.1}\" y=\"{y}\" textLength=\"{length:.1}\">{}</text>",
                    tone.class(),
                    escaped(text)
                )
                .expect("writing to a string");
            }
        }
    }

    fn push_plain(&self, out: &mut String) {
        let from = out.len();
        self.0.iter().for_each(|(_, text)| out.push_str(text));
        let end = from + out[from..].trim_end().len();
        out.truncate(end);
    }

    fn push_escaped(&self, out: &mut String, with_colours: bool) {
        for (tone, text) in &self.0 {
            match tone.escape() {
                "" => out.push_str(text),
                _ if !with_colours => out.push_str(text),
                escape => write!(out, "{escape}{text}\x1b[0m").expect("writing to a string"),
            }
        }
    }
}

/// Width of a character, height of a line and space around a page in a picture, in pixels.
const CELL: f64 = 8.4;
const ROW: usize = 19;
const MARGIN: usize = 16;

/// What the tones look like in a picture, on light and on dark ground.
const SVG_STYLE: &str = "
text { font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1c1c1a; white-space: pre }
.ground { fill: #fbfbf9; stroke: #dddcd6 }
.alarm { fill: #c4262e }
.strong { font-weight: bold }
text.faint { fill: #6a6964 }
text.good { fill: #12734f }
text.warning { fill: #8a5d00 }
text.loud { fill: #ffffff; font-weight: bold }
text.bid { fill: #00666a }
text.ask { fill: #9c2f63 }
@media (prefers-color-scheme: dark) {
  text { fill: #eeede8 }
  .ground { fill: #161615; stroke: #383734 }
  text.faint { fill: #9c9b94 }
  text.good { fill: #2fb583 }
  text.warning { fill: #d79a1e }
  text.bid { fill: #35b0b3 }
  text.ask { fill: #e07ba4 }
}
";

/// Text as XML wants it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Page(pub Vec<Line>);

impl Page {
    pub(crate) fn new() -> Page {
        Page::default()
    }

    pub(crate) fn line(&mut self, line: Line) {
        self.0.push(line);
    }

    pub(crate) fn blank(&mut self) {
        self.0.push(Line::new());
    }

    pub(crate) fn lines(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.0.extend(lines);
    }

    /// For a pipe or a file: whole lines, no escapes.
    pub(crate) fn to_plain(&self) -> String {
        let mut out = String::new();
        for line in &self.0 {
            line.push_plain(&mut out);
            out.push('\n');
        }
        out
    }

    /// For a terminal of `columns` x `rows`: from its upper left corner, every line cut to the width and
    /// cleared to its end, everything below cleared (ECMA-48 CUP, EL, ED). Nothing scrolls: the last line has
    /// no line feed.
    pub(crate) fn to_screen(&self, columns: usize, rows: usize) -> String {
        self.drawn(columns, rows, terminal::takes_colours())
    }

    /// The same with colours, whatever the environment of a test says.
    #[cfg(test)]
    pub(crate) fn coloured(&self, columns: usize, rows: usize) -> String {
        self.drawn(columns, rows, true)
    }

    /// A picture of the page: an SVG that loads nothing, light or dark as its reader's system is. `title` is
    /// read to those who do not see it.
    pub(crate) fn to_svg(&self, title: &str) -> String {
        let columns = self.0.iter().map(Line::width).max().unwrap_or(0);
        let (width, height) = (
            2 * MARGIN + (columns as f64 * CELL).ceil() as usize,
            2 * MARGIN + ROW * self.0.len(),
        );
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xml:space=\"preserve\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n<style>{SVG_STYLE}</style>\n\
             <rect class=\"ground\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
            width - 1,
            height - 1,
            title = escaped(title)
        );
        for (at, line) in self.0.iter().enumerate() {
            line.push_svg(&mut out, MARGIN + ROW * at + ROW - 5);
        }
        out.push_str("</svg>\n");
        out
    }

    fn drawn(&self, columns: usize, rows: usize, with_colours: bool) -> String {
        let mut out = String::from("\x1b[H");
        for (at, line) in self.0.iter().take(rows).enumerate() {
            if at > 0 {
                out.push_str("\r\n");
            }
            line.cut(columns).push_escaped(&mut out, with_colours);
            out.push_str("\x1b[K");
        }
        out.push_str("\x1b[J");
        out
    }
}

/// A column of a [`Grid`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    right: bool,
    /// When there is too little room, the column with the lowest goes first; those of 9 stay.
    keep: u8,
}

impl Column {
    pub(crate) const fn words(name: &'static str, keep: u8) -> Column {
        Column {
            name,
            right: false,
            keep,
        }
    }

    pub(crate) const fn number(name: &'static str, keep: u8) -> Column {
        Column {
            name,
            right: true,
            keep,
        }
    }
}

/// A table that gives up columns when it has too little room.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<(Tone, String)>>,
}

impl Grid {
    pub(crate) fn new(columns: &[Column]) -> Grid {
        Grid {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has not a cell for every column.
    pub(crate) fn row(&mut self, cells: Vec<(Tone, String)>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for every column");
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The heading and the rows in at most `width` characters, if giving up columns can do it.
    pub(crate) fn lines(&self, width: usize) -> Vec<Line> {
        let widths = self.widths();
        let shown = self.shown(&widths, width);
        let heading = shown.iter().map(|&at| {
            let column = self.columns[at];
            cell(Tone::Faint, column.name, widths[at], column.right)
        });
        let rows = self.rows.iter().map(|row| {
            let cells = shown.iter().map(|&at| {
                let (tone, text) = &row[at];
                cell(*tone, text, widths[at], self.columns[at].right)
            });
            spaced(cells)
        });
        std::iter::once(spaced(heading)).chain(rows).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |at: usize| self.rows.iter().map(move |row| row[at].1.chars().count()).max();
        self.columns
            .iter()
            .enumerate()
            .map(|(at, column)| widest(at).unwrap_or(0).max(column.name.chars().count()))
            .collect()
    }

    /// The columns that fit. A column in which nothing stands is not shown at all.
    fn shown(&self, widths: &[usize], width: usize) -> Vec<usize> {
        let said = |at: &usize| {
            self.rows.is_empty()
                || self.columns[*at].keep == 9
                || self.rows.iter().any(|row| !row[*at].1.is_empty())
        };
        let mut shown: Vec<usize> = (0..self.columns.len()).filter(said).collect();
        let taken = |shown: &[usize]| {
            shown.iter().map(|&at| widths[at]).sum::<usize>() + 2 * shown.len().saturating_sub(1)
        };
        while taken(&shown) > width {
            // The last of the least important ones.
            let first_to_go = shown.iter().rev().min_by_key(|&&at| self.columns[at].keep);
            match first_to_go.copied() {
                Some(at) if self.columns[at].keep < 9 => shown.retain(|&other| other != at),
                _ => break,
            }
        }
        shown
    }
}

fn cell(tone: Tone, text: &str, width: usize, right: bool) -> Line {
    let padding = " ".repeat(width.saturating_sub(text.chars().count()));
    match right {
        true => Line::plain(padding).then(tone, text),
        false => Line::toned(tone, text).then(Tone::Plain, padding),
    }
}

fn spaced(cells: impl Iterator<Item = Line>) -> Line {
    cells.enumerate().fold(Line::new(), |line, (at, cell)| {
        line.then(Tone::Plain, if at > 0 { "  " } else { "" }).join(cell)
    })
}

/// A span of time for people: `450 ms`, `12 s`, `3 min 20 s`, `2 h 03 min`, `4 d 11 h`.
pub(crate) fn span(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    match s {
        0 => tickwire_lab::format_ns(ns),
        1..60 => format!("{s} s"),
        60..3_600 => format!("{} min {:02} s", s / 60, s % 60),
        3_600..86_400 => format!("{} h {:02} min", s / 3_600, s / 60 % 60),
        _ => format!("{} d {:02} h", s / 86_400, s / 3_600 % 24),
    }
}

/// Time of day of a stamp: in UTC for one since the epoch, in the venue's own time for one since its
/// midnight.
pub(crate) fn time_of_day(ns: u64) -> String {
    let s = ns / 1_000_000_000 % 86_400;
    format!(
        "{:02}:{:02}:{:02}.{:06}",
        s / 3_600,
        s / 60 % 60,
        s % 60,
        ns / 1_000 % 1_000_000
    )
}

/// Bytes with three digits: `640 B`, `58.3 MiB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let (mut value, mut unit) = (n as f64 / 1024.0, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// A rate per second, whole from ten on.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 9.95 => tickwire_lab::format_count(r.round() as u64),
        r if r > 0.0 => format!("{r:.1}"),
        _ => "0".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(&[
            Column::words("feed", 9),
            Column::number("packets/s", 5),
            Column::number("gaps", 7),
            Column::words("note", 1),
        ]);
        let plain = |cells: [&str; 4]| cells.map(|cell| (Tone::Plain, cell.to_string())).to_vec();
        grid.row(plain(["nasdaq", "1200", "0", "fine"]));
        grid.row(plain(["bzx", "900", "12", ""]));
        grid
    }

    fn text(lines: Vec<Line>) -> String {
        Page(lines).to_plain()
    }

    #[test]
    fn a_grid_aligns_and_gives_up_the_least_important_columns_first() {
        let g = grid();
        assert_eq!(
            text(g.lines(80)),
            "feed    packets/s  gaps  note\nnasdaq       1200     0  fine\nbzx           900    12\n"
        );
        assert_eq!(
            text(g.lines(28)),
            "feed    packets/s  gaps\nnasdaq       1200     0\nbzx           900    12\n"
        );
        assert_eq!(text(g.lines(22)), "feed    gaps\nnasdaq     0\nbzx       12\n");
        assert_eq!(text(g.lines(1)), "feed\nnasdaq\nbzx\n");
    }

    #[test]
    fn a_column_in_which_nothing_stands_is_not_shown() {
        let mut grid = Grid::new(&[Column::words("feed", 9), Column::words("note", 5)]);
        grid.row(vec![(Tone::Plain, "bzx".into()), (Tone::Plain, String::new())]);
        assert_eq!(text(grid.lines(80)), "feed\nbzx\n");
    }

    #[test]
    fn a_screen_is_cut_to_its_size_and_never_scrolls() {
        let mut page = Page::new();
        page.line(Line::toned(Tone::Loud, "STALE").then(Tone::Plain, " nasdaq since 3 s"));
        page.line(Line::plain("second"));
        page.line(Line::plain("third"));
        assert_eq!(
            page.drawn(10, 2, true),
            "\x1b[H\x1b[1;37;41mSTALE\x1b[0m nas…\x1b[K\r\nsecond\x1b[K\x1b[J"
        );
        assert_eq!(page.to_plain(), "STALE nasdaq since 3 s\nsecond\nthird\n");
        assert_eq!(page.drawn(0, 0, true), "\x1b[H\x1b[J");
        assert_eq!(
            page.drawn(10, 2, false),
            "\x1b[HSTALE nas…\x1b[K\r\nsecond\x1b[K\x1b[J"
        );
    }

    #[test]
    fn a_picture_has_every_piece_at_its_column() {
        let mut page = Page::new();
        page.line(Line::toned(Tone::Loud, " STALE ").then(Tone::Plain, " a<b"));
        page.blank();
        page.line(Line::plain("   ").then(Tone::Bid, "187.24"));
        let svg = page.to_svg("AAPL & others");
        for piece in [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"125\" height=\"89\"",
            "<title>AAPL &amp; others</title>",
            "<rect class=\"alarm\" x=\"16.0\" y=\"16\" width=\"58.8\" height=\"19\"/>",
            "<text class=\"loud\" x=\"16.0\" y=\"30\" textLength=\"58.8\"> STALE </text>",
            "<text class=\"plain\" x=\"74.8\" y=\"30\" textLength=\"33.6\"> a&lt;b</text>",
            "<text class=\"bid\" x=\"41.2\" y=\"68\" textLength=\"50.4\">187.24</text>\n</svg>",
        ] {
            assert!(svg.contains(piece), "{piece} is not in {svg}");
        }
        assert!(Page::new().to_svg("").contains("height=\"32\""));
    }

    #[test]
    fn quantities_read_well() {
        for (ns, text) in [
            (450_000_000, "450 ms"),
            (12_900_000_000, "12 s"),
            (200_000_000_000, "3 min 20 s"),
            (7_380_000_000_000, "2 h 03 min"),
            (385_200_000_000_000, "4 d 11 h"),
        ] {
            assert_eq!(span(ns), text);
        }
        assert_eq!(
            time_of_day(1_000_000_000 * (86_400 * 3 + 3_661) + 12_345_678),
            "01:01:01.012345"
        );
        for (n, text) in [
            (640, "640 B"),
            (1024, "1.00 KiB"),
            (61_130_000, "58.3 MiB"),
            (1 << 30, "1.00 GiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        assert_eq!([0.0, 0.25, 9.94, 12.6].map(rate), ["0", "0.2", "9.9", "13"]);
    }
}
