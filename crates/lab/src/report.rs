//! A report: paragraphs, facts, tables and plots in the order they were added; for the terminal, for a
//! document, for a browser.

use std::fmt::Write;

use crate::chart::{self, Axis, Plotted};
use crate::format::escape;
use crate::plot::{self, COLOURS, SHADES};
use crate::table::broken;
use crate::{Histogram, Series, Table};

/// One piece of a report.
#[derive(Clone, Debug)]
enum Part {
    Heading(String),
    Paragraph(String),
    /// Left as it is: a command, a configuration file.
    Listing(String, String),
    Facts(String, Vec<(String, String)>),
    Table(Table),
    /// A table that a browser shows when it is asked for.
    Folded(Table),
    /// A title, a sentence on how to read it, the picture.
    Plot(String, &'static str, String),
}

/// A report in the making.
///
/// ```
/// use tickwire_lab::{Histogram, Report, Table};
/// let mut total = Histogram::new();
/// [900, 1_100, 7_000].into_iter().for_each(|ns| total.record(ns));
/// let report = Report::new("Tick to trade")
///     .paragraph("One pinned core, loopback, 60 seconds.")
///     .table(Table::latencies("Latency", &[("total", &total)]))
///     .percentiles("Percentiles", &[("total", &total)]);
/// assert!(report.to_html().starts_with("<!DOCTYPE html>"));
/// ```
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    parts: Vec<Part>,
}

impl Report {
    /// An empty report.
    pub fn new(title: &str) -> Report {
        Report {
            title: title.to_owned(),
            parts: Vec::new(),
        }
    }

    fn with(mut self, part: Part) -> Report {
        self.parts.push(part);
        self
    }

    /// Begins a section.
    pub fn heading(self, text: &str) -> Report {
        self.with(Part::Heading(text.to_owned()))
    }

    /// Adds a paragraph of plain text.
    pub fn paragraph(self, text: &str) -> Report {
        self.with(Part::Paragraph(text.to_owned()))
    }

    /// Adds text to be shown as it is, line by line: a command, a configuration.
    pub fn listing(self, title: &str, text: &str) -> Report {
        self.with(Part::Listing(title.to_owned(), text.to_owned()))
    }

    /// Adds names and values: host, clock, configuration.
    pub fn facts(self, title: &str, facts: &[(impl AsRef<str>, impl AsRef<str>)]) -> Report {
        let owned = facts
            .iter()
            .map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()));
        self.with(Part::Facts(title.to_owned(), owned.collect()))
    }

    /// Adds a table.
    pub fn table(self, table: Table) -> Report {
        self.with(Part::Table(table))
    }

    /// Adds a table that few readers want: in a browser it is folded under its title.
    pub fn folded(self, table: Table) -> Report {
        self.with(Part::Folded(table))
    }

    /// Adds a percentile curve of several histograms (up to eight are told apart by colour).
    pub fn percentiles(self, title: &str, histograms: &[(&str, &Histogram)]) -> Report {
        const HOW: &str = "Read: so many percent of all were not slower than this. Each step to the right is another nine; \
                           the curve ends at the maximum.";
        self.with(Part::Plot(
            title.to_owned(),
            HOW,
            plot::percentile_curve(title, histograms),
        ))
    }

    /// Adds a histogram, one panel for each of several.
    pub fn histogram(self, title: &str, histograms: &[(&str, &Histogram)]) -> Report {
        const HOW: &str =
            "How often each latency occurred. Both axes are logarithmic; the dashed line is the median.";
        self.with(Part::Plot(
            title.to_owned(),
            HOW,
            plot::histogram(title, histograms),
        ))
    }

    /// Adds the cumulative distribution of several histograms (up to eight are told apart by colour).
    pub fn cumulative(self, title: &str, histograms: &[(&str, &Histogram)]) -> Report {
        const HOW: &str = "What share of all was not slower than each latency, up to the 99.95th percentile; names in the order of the medians.";
        self.with(Part::Plot(
            title.to_owned(),
            HOW,
            plot::cumulative(title, histograms),
        ))
    }

    /// Adds a heat map: time, latency, and how many.
    pub fn heat_map(self, title: &str, series: &Series) -> Report {
        const HOW: &str = "How many latencies of each size there were in each span of time; shades go by the logarithm of the count.";
        self.with(Part::Plot(title.to_owned(), HOW, plot::heat_map(title, series)))
    }

    /// Adds latency over time.
    pub fn timeseries(self, title: &str, series: &Series) -> Report {
        const HOW: &str = "Median, 99th percentile and maximum of each span of time, and below how many were measured in it.";
        self.with(Part::Plot(title.to_owned(), HOW, plot::timeseries(title, series)))
    }

    /// Adds lines and dots over two linear axes; `how` is a sentence on how to read them.
    pub fn lines(
        self,
        title: &str,
        how: &'static str,
        x_axis: Axis<'_>,
        y_axis: Axis<'_>,
        series: &[Plotted<'_>],
    ) -> Report {
        let picture = chart::lines(title, x_axis, y_axis, series);
        self.with(Part::Plot(title.to_owned(), how, picture))
    }

    /// Adds a table of gains and losses in colours: `values` row by row, `marked` the one with a frame.
    pub fn gains(
        self,
        title: &str,
        how: &'static str,
        columns: (&str, &[String]),
        rows: (&str, &[String]),
        values: &[f64],
        marked: Option<usize>,
    ) -> Report {
        let picture = chart::cells(title, columns, rows, values, marked);
        self.with(Part::Plot(title.to_owned(), how, picture))
    }

    /// Adds bars, up or down, by category; a colour a series (up to eight are told apart).
    pub fn bars(
        self,
        title: &str,
        how: &'static str,
        x_label: &str,
        y_axis: Axis<'_>,
        categories: &[String],
        series: &[(&str, Vec<f64>)],
    ) -> Report {
        let picture = chart::bars(title, x_label, y_axis, categories, series);
        self.with(Part::Plot(title.to_owned(), how, picture))
    }

    /// For a terminal of so many columns ([`WHOLE`](crate::WHOLE) for a file); plots are left out.
    pub fn to_text(&self, columns: usize) -> String {
        let parts = self.parts.iter().filter_map(|part| match part {
            Part::Heading(text) => Some(format!("{text}\n{}\n", "─".repeat(text.chars().count()))),
            Part::Paragraph(text) => Some(format!("{}\n", broken(text, columns).join("\n"))),
            Part::Listing(title, text) => Some(format!("{title}\n{}", indented(text))),
            Part::Facts(title, facts) => Some(facts_table(title, facts).to_text(columns)),
            Part::Table(table) | Part::Folded(table) => Some(table.to_text(columns)),
            Part::Plot(..) => None,
        });
        let rule = "═".repeat(self.title.chars().count());
        [format!("{}\n{rule}\n", self.title)]
            .into_iter()
            .chain(parts)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// For a Markdown document; plots are left out.
    pub fn to_markdown(&self) -> String {
        let parts = self.parts.iter().filter_map(|part| match part {
            Part::Heading(text) => Some(format!("## {text}\n")),
            Part::Paragraph(text) => Some(format!("{text}\n")),
            Part::Listing(title, text) => Some(format!("**{title}**\n\n```\n{}\n```\n", text.trim_end())),
            Part::Facts(title, facts) => Some(facts_list(title, facts)),
            Part::Table(table) | Part::Folded(table) => Some(table.to_markdown()),
            Part::Plot(..) => None,
        });
        [format!("# {}\n", self.title)]
            .into_iter()
            .chain(parts)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// One file for a browser: nothing is loaded from anywhere, no script runs; light or dark as the reader's
    /// system is.
    pub fn to_html(&self) -> String {
        let mut body = String::new();
        for part in &self.parts {
            body.push_str(&part_html(part));
        }
        let title = escape(&self.title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n",
            colour_classes()
        )
    }
}

fn part_html(part: &Part) -> String {
    match part {
        Part::Heading(text) => format!("<h2>{}</h2>\n", escape(text)),
        Part::Paragraph(text) => format!("<p>{}</p>\n", escape(text)),
        Part::Listing(title, text) => format!(
            "<figure><figcaption>{}</figcaption><pre>{}</pre></figure>\n",
            escape(title),
            escape(text.trim_end())
        ),
        Part::Facts(title, facts) => {
            let row = |(name, value): &(String, String)| {
                format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value))
            };
            let rows: String = facts.iter().map(row).collect();
            format!(
                "<figure><figcaption>{}</figcaption><dl>\n{rows}</dl></figure>\n",
                escape(title)
            )
        }
        Part::Table(table) => table.to_html(),
        Part::Folded(table) => format!(
            "<details><summary>{}</summary>\n{}</details>\n",
            escape(table.title()),
            table.to_html()
        ),
        Part::Plot(title, how, svg) => format!(
            "<figure class=\"plot\"><figcaption>{}<small>{}</small></figcaption>\n{svg}</figure>\n",
            escape(title),
            escape(how)
        ),
    }
}

fn facts_table(title: &str, facts: &[(String, String)]) -> Table {
    // Values are text: padded by hand, since tables put all but their first column to the right.
    let width = facts
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0);
    facts
        .iter()
        .fold(Table::new(title, &[""]), |table, (name, value)| {
            table.row([format!("{name:<width$}  {value}")])
        })
}

fn facts_list(title: &str, facts: &[(String, String)]) -> String {
    let mut out = format!("**{title}**\n\n");
    for (name, value) in facts {
        writeln!(out, "- {name}: {value}").expect("writing to a string");
    }
    out
}

fn indented(text: &str) -> String {
    text.trim_end()
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect()
}

/// `.c0 { --c: var(--s0) }` and so on; shades of heat maps likewise.
fn colour_classes() -> String {
    let colours = (0..COLOURS).map(|i| format!(".c{i} {{ --c: var(--s{i}) }}\n"));
    let shades = (1..=SHADES).map(|i| {
        let opacity = 0.06 + 0.94 * i as f64 / SHADES as f64;
        format!(".h{i} {{ fill-opacity: {opacity:.2} }}\n")
    });
    colours.chain(shades).collect()
}

/// Colours that stay apart for colour-blind readers, on light and on dark ground.
const STYLE: &str = "
:root {
  color-scheme: light dark;
  --ground: #fbfbf9; --panel: #ffffff; --ink: #1c1c1a; --soft: #63625e; --grid: #e6e5e0; --edge: #dddcd6; --shade: rgba(0, 0, 0, .22);
  --s0: #2a78d6; --s1: #eb6834; --s2: #179c6b; --s3: #c58600; --s4: #d65f8f; --s5: #00767a; --s6: #4a3aa7; --s7: #d9363b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #161615; --panel: #1e1e1c; --ink: #eeede8; --soft: #a3a29b; --grid: #31302d; --edge: #383734; --shade: rgba(0, 0, 0, .7);
    --s0: #4c96ec; --s1: #e8743f; --s2: #2fb583; --s3: #d79a1e; --s4: #e07ba4; --s5: #35b0b3; --s6: #a097ee; --s7: #ea6a6a;
  }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1180px; margin: 0 auto; padding: 32px 20px 64px }
h1 { font-size: 26px; margin: 0 0 8px } h2 { font-size: 19px; margin: 36px 0 8px }
p { max-width: 72ch; margin: 8px 0 }
figure { margin: 20px 0; padding: 14px 16px; background: var(--panel); border: 1px solid var(--edge); border-radius: 8px }
figcaption { font-weight: 600; margin-bottom: 8px }
figcaption small { display: block; font-weight: 400; color: var(--soft) }
figure > div, pre { overflow-x: auto }
/* A shadow at the edge behind which there is more. */
figure.table > div {
  background: linear-gradient(to right, var(--panel) 40%, transparent) left / 40px 100% no-repeat local,
    linear-gradient(to left, var(--panel) 40%, transparent) right / 40px 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) left / 14px 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) right / 14px 100% no-repeat scroll;
  scrollbar-width: thin;
}
details { margin: 20px 0 } summary { cursor: pointer; font-weight: 600 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100% }
th, td { padding: 4px 8px; text-align: right; white-space: nowrap; border-top: 1px solid var(--grid) }
th.words, td.words { text-align: left; white-space: normal; min-width: 8ch; max-width: 64ch; overflow-wrap: break-word }
thead th { color: var(--soft); font-weight: 500; border-top: 0 }
th:first-child { text-align: left; font-weight: 500; white-space: normal; min-width: 16ch; max-width: 44ch }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 18px; margin: 0 }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
pre { margin: 0; font: 13px/1.45 ui-monospace, monospace }
svg { display: block; width: 100%; height: auto; font: 12px system-ui, sans-serif }
.grid { stroke: var(--grid); stroke-width: 1 } .base, .tickmark { stroke: var(--soft); stroke-width: 1 }
.tick { fill: var(--soft); font-size: 11px } .axis { fill: var(--soft) }
.curve { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round }
.dot { fill: var(--c) } .bar { fill: var(--c) } .rate { fill: var(--soft); opacity: .45 }
.heat { fill: var(--s0) } .loss { fill: var(--s1) } .figure { fill: var(--ink); font-size: 11px }
.frame { fill: none; stroke: var(--ink); stroke-width: 2 }
.leader { stroke: var(--c); stroke-width: 1; stroke-dasharray: 2 2; opacity: .7 }
.label { fill: var(--c); font-weight: 600 }
.median { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 4 3 }
.hit { fill: transparent } .hit:hover { fill: var(--ink); opacity: .08 } .bar:hover { opacity: .7 }
@media print { figure { break-inside: avoid } }
";

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut total = Histogram::new();
        (1..2_000).for_each(|i| total.record(i * i));
        let mut series = Series::default();
        (0..2_000).for_each(|i| series.push(i * 1_000_000, 500 + i % 97));
        Report::new("Tick <to> trade")
            .heading("Results")
            .paragraph("Books agree & no order is lost.")
            .facts("Host", &[("processor", "Example <9000>"), ("cores", "2")])
            .listing("Command", "tickwire demo --seed 1\n")
            .table(Table::latencies("Latency", &[("total", &total)]))
            .percentiles("Percentiles", &[("total", &total)])
            .histogram("Histogram", &[("total", &total)])
            .timeseries("Over time", &series)
            .cumulative("Cumulative", &[("total", &total)])
            .heat_map("Heat map", &series)
    }

    #[test]
    fn the_page_is_one_file_that_loads_nothing_and_escapes_everything() {
        let html = report().to_html();
        for foreign in ["http:", "https:", "src=", "href=", "<script", "@import", "url("] {
            assert!(!html.contains(foreign), "{foreign}");
        }
        assert!(html.contains("<h1>Tick &lt;to&gt; trade</h1>") && html.contains("Example &lt;9000&gt;"));
        assert_eq!(html.matches("<svg").count(), 5);
        for tag in ["figure", "table", "svg", "main", "dl", "text", "rect"] {
            assert_eq!(
                html.matches(&format!("<{tag}")).count(),
                html.matches(&format!("</{tag}>")).count(),
                "{tag}"
            );
        }
        assert!(!html.contains("NaN"));
    }

    #[test]
    fn text_and_markdown_say_the_same_without_pictures() {
        let text = report().to_text(crate::WHOLE);
        assert!(
            text.starts_with("Tick <to> trade\n═══════════════\n\nResults\n───────\n"),
            "{text}"
        );
        assert!(
            text.contains("  processor  Example <9000>\n  cores      2\n"),
            "{text}"
        );
        assert!(text.contains("  tickwire demo --seed 1\n") && text.contains("p99.9"));
        let markdown = report().to_markdown();
        assert!(
            markdown.starts_with("# Tick <to> trade\n\n## Results\n\nBooks agree"),
            "{markdown}"
        );
        assert!(markdown.contains("- cores: 2\n") && markdown.contains("```\ntickwire demo --seed 1\n```"));
        assert!(!text.contains("<svg") && !markdown.contains("<svg"));
    }
}
