//! `tickwire risk`: positions, gain and risk of a portfolio of options, from files; the same reports as those of a live quoter.
//!
//! ```text
//! portfolio.toml ─► file.rs ─┐
//! fills, marks, quotes (CSV) ─► input.rs ─┴► day.rs: everything in order of time ─► Snapshot ─► report.rs: text, HTML
//!                                                                                          └─► tables.rs: CSV files
//! ```

mod day;
mod file;
mod input;
pub(crate) mod report;
pub(crate) mod snapshot;
pub(crate) mod tables;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use day::Day;
use file::RiskFile;

/// What `tickwire risk` is told.
#[derive(Args, Debug)]
pub(crate) struct RiskArgs {
    /// The portfolio: instruments, expiries, markets of the day, limits
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// What was bought and sold, as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) fills: Option<PathBuf>,
    /// Prices of instruments over the day, as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) marks: Option<PathBuf>,
    /// Our own quotes over the day, as CSV
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) quotes: Option<PathBuf>,
    /// What to make, several by commas: text on standard output, csv and html in the folder
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "text",
        value_name = "F"
    )]
    pub(crate) format: Vec<Format>,
    /// Folder of the CSV files and of risk.html
    #[arg(long, value_name = "DIR", default_value = "tickwire-risk")]
    pub(crate) out: PathBuf,
}

/// What a report can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Tables for the terminal
    Text,
    /// A file per table
    Csv,
    /// One page with plots, which loads nothing and runs no script
    Html,
}

pub(crate) fn run(args: &RiskArgs) -> Result<(), Failure> {
    let file = RiskFile::load(&args.config)?;
    let mut day = Day::new(&file).map_err(|e| Failure::config(format!("{}: {e}", args.config.display())))?;
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
        .map_err(|e| Failure::config(format!("{}: {e}", args.config.display())))?;
    for format in &args.format {
        match format {
            Format::Text => print!("{}", report::text(&snapshot)),
            Format::Csv => {
                for (name, text) in tables::all(&snapshot) {
                    write(&args.out, name, &text)?;
                }
            }
            Format::Html => write(&args.out, "risk.html", &report::html(&snapshot))?,
        }
    }
    Ok(())
}

fn text_of(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(name);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
    eprintln!("{}", path.display());
    Ok(())
}
