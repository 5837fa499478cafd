//! `tickwire risk`: positions, gain and risk of a portfolio of options, from files; the same reports as those
//! of a live quoter.
//!
//! ```text
//! portfolio.toml ─► file.rs ─┐
//! fills, marks, quotes (CSV) ─► input.rs ─┴► day.rs: everything in order of time ─► Snapshot ─► report.rs: text, HTML
//!                                                                                          └─► tables.rs: CSV files
//! ```

mod day;
mod file;
mod input;
mod loss;
pub mod report;
pub mod snapshot;
pub mod tables;
#[cfg(test)]
mod tests;

pub use loss::LossMark;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use day::Day;
use file::RiskFile;
use snapshot::Snapshot;
use tickwire_console::failure::Failure;

/// What `tickwire risk` is told.
#[derive(Args, Debug)]
pub struct RiskArgs {
    /// The portfolio: instruments, expiries, markets of the day, limits
    #[arg(
        short = 'c',
        long = "config",
        value_name = "FILE",
        required_unless_present = "socket"
    )]
    pub config: Option<PathBuf>,
    /// The account of a running quoter instead: its control socket, or the folder of that (quoter.control)
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["config", "fills", "marks", "quotes"])]
    pub socket: Option<PathBuf>,
    /// What was bought and sold, as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub fills: Option<PathBuf>,
    /// Prices of instruments over the day, as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub marks: Option<PathBuf>,
    /// Our own quotes over the day, as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub quotes: Option<PathBuf>,
    /// What to make, several by commas: text on standard output, csv and html in the folder
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "text",
        value_name = "F"
    )]
    pub format: Vec<Format>,
    /// Folder of the CSV files and of risk.html
    #[arg(long, value_name = "DIR", default_value = "tickwire-risk")]
    pub out: PathBuf,
}

/// What a report can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Tables for the terminal
    #[default]
    Text,
    /// A file per table
    Csv,
    /// One page with plots, which loads nothing and runs no script
    Html,
}

/// Runs `tickwire risk`: reads the files, or asks a running quoter (`args.socket`), and prints or writes
/// every format asked for.
///
/// # Errors
/// A portfolio file or a CSV file that cannot be read or contradicts itself, with its line and field; a
/// quoter that does not answer; a report that cannot be written.
pub fn run(args: &RiskArgs) -> Result<(), Failure> {
    if let Some(socket) = &args.socket {
        return args.format.iter().try_for_each(|format| {
            let asked = serde_json::json!({ "do": "risk", "format": format });
            let answer = tickwire_control::client::ask_quoter(socket, &asked)?;
            let says = answer["says"].as_str().unwrap_or_default();
            show(*format, says, &args.out)
        });
    }
    let path = args.config.as_deref().unwrap_or(Path::new(""));
    let file = RiskFile::load(path)?;
    let mut day = Day::new(&file).map_err(|e| Failure::config(format!("{}: {e}", path.display())))?;
    for (path, kind) in [
        (&args.fills, input::Kind::Fills),
        (&args.marks, input::Kind::Marks),
        (&args.quotes, input::Kind::Quotes),
    ] {
        if let Some(path) = path {
            let read = input::read(kind, &text_of(path)?, &day.symbols);
            day.add(read.map_err(|e| Failure::check(format!("{}: {e}", path.display())))?);
        }
    }
    let snapshot = day
        .run(&file)
        .map_err(|e| Failure::config(format!("{}: {e}", path.display())))?;
    args.format
        .iter()
        .try_for_each(|format| show(*format, &shown(&snapshot, *format), &args.out))
}

/// A report as text; of tables, an object of their names.
pub fn shown(snapshot: &Snapshot, format: Format) -> String {
    match format {
        Format::Text => report::text(snapshot),
        Format::Csv => {
            let tables = tables::all(snapshot).into_iter();
            let tables = tables.map(|(name, text)| (name.to_string(), text.into()));
            serde_json::Value::Object(tables.collect()).to_string()
        }
        Format::Html => report::html(snapshot),
    }
}

/// Prints a report, or writes it.
fn show(format: Format, text: &str, out: &Path) -> Result<(), Failure> {
    match format {
        Format::Text => print!("{text}"),
        Format::Csv => {
            let tables: BTreeMap<String, String> = serde_json::from_str(text)
                .map_err(|e| Failure::check(format!("the tables cannot be read: {e}")))?;
            for (name, text) in &tables {
                // A name of ours, and no path.
                let name = Path::new(name).file_name().unwrap_or_default();
                write(out, &name.to_string_lossy(), text)?;
            }
        }
        Format::Html => write(out, "risk.html", text)?,
    }
    Ok(())
}

fn text_of(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    tickwire_runtime::files::create_folders(folder)
        .and_then(|()| tickwire_runtime::files::write(&path, text))
        .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
    eprintln!("{}", path.display());
    Ok(())
}
