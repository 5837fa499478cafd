//! Recordings as tables: `tickwire export`.
//!
//! ```text
//! files ─► [`tickwire_replay::replay::feed`]: channels, books ─► rows of a [`Schema`] ─► CSV, DBN, LOBSTER, Parquet or Arrow
//! shared memory of a daemon ─► books, kept here ──────────────┘└─► books, or rows in batches: [`reader`]
//! ```
//! Captures, raw ITCH files, DBN (`mbo`) and LOBSTER are read, with the schemas and names of DBN. Prices are
//! exact: decimals of nine places in CSV, `DECIMAL(18, 9)` in Parquet. Rows of a book that may be wrong
//! (after a gap, before its beginning) have the bit [`schema::flags::MAYBE_BAD_BOOK`] in `flags`.
//!
//! ```
//! use clap::Parser;
//! use tickwire_export::{ExportArgs, Schema, batch::Value, csv, export};
//! use tickwire_runtime::signal::StopFlag;
//!
//! #[derive(Parser)]
//! struct Cli {
//!     #[command(flatten)]
//!     export: ExportArgs,
//! }
//!
//! let folder = std::env::temp_dir();
//! let path = folder.join(format!("AAPL_export_{}_message_10.csv", std::process::id()));
//! std::fs::write(&path, "34200.1,1,1,100,5853300,1\n34200.2,3,1,100,5853300,1\n")?;
//! let out = folder.join(format!("export-{}.csv", std::process::id()));
//! let words = ["example", path.to_str().expect("text"), "--format", "csv", "--out", out.to_str().expect("text")];
//! let (done, _) = export(&Cli::parse_from(words).export, &StopFlag::install()?)?;
//! assert_eq!(done.rows, 2);
//! let rows = csv::read(&std::fs::read(&out)?[..], &Schema::Mbo.columns())?;
//! assert_eq!(rows[0][7], Value::Price(Some(585_330_000_000)));
//! # std::fs::remove_file(&path)?;
//! # std::fs::remove_file(&out)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

use std::cell::RefCell;
use std::fmt::Write;
use std::path::PathBuf;
use std::rc::Rc;

use tickwire_book::{Books, BooksConfig, Depth, OrderView};
use tickwire_console::failure::Failure;
use tickwire_market::{
    Counters, Instrument, InstrumentId, MarketEvent, Nanos, OrderId, PointValue, Symbol, Venue,
};
use tickwire_replay::played::{Follow, Keep, Play};
use tickwire_replay::replay::{self, Fed, MakePlay, RecordsFile, ReplayArgs};
use tickwire_runtime::signal::StopFlag;
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring::Reception;

pub mod archive;
#[cfg(feature = "arrow")]
pub mod arrow;
pub mod batch;
mod consolidated;
pub mod csv;
mod dbn;
mod live;
mod lobster;
mod looks;
mod out;
#[cfg(feature = "tables")]
pub mod parquet;
pub mod reader;
mod recording;
mod rows;
pub mod schema;

pub use live::LiveArgs;
pub use out::{Done, Format};
pub use recording::RecordingArgs;
pub use rows::publisher;
pub use schema::Schema;

use consolidated::Consolidated;
use out::Out;
use rows::{Making, Rows};

/// The arguments of `tickwire export`.
#[derive(clap::Args, Debug)]
pub struct ExportArgs {
    /// Captures (pcap, pcapng), raw ITCH 5.0 files, DBN files of mbo, LOBSTER message files, or archives of
    /// events; gzip and zstd are recognised; - is standard input
    #[arg(required_unless_present = "live", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The daemon that runs, instead of files.
    #[command(flatten)]
    pub live: LiveArgs,
    /// The file to write, or the folder with --partition
    #[arg(short, long, value_name = "PATH")]
    pub out: PathBuf,
    /// What rows tell
    #[arg(long, value_enum, default_value = "mbo", value_name = "SCHEMA")]
    pub schema: Schema,
    /// The form of the files; told by the ending of --out unless given
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// A file for every date, venue and symbol: date=…/venue=…/symbol=…; the same command goes on where it
    /// was ended
    #[arg(long)]
    pub partition: bool,
    /// Only these symbols (repeatable)
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Vec<String>,
    /// Only rows received from then on: 2026-01-05T14:30:00Z, or nanoseconds since the epoch
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<u64>,
    /// Only rows received before then
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<u64>,
    /// The day, in the venue's time zone, of files whose times have none (ITCH, LOBSTER): 2026-01-05
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub date: Option<jiff::civil::Date>,
    /// How the files are read.
    #[command(flatten)]
    pub recording: RecordingArgs,
}

fn time(text: &str) -> Result<u64, String> {
    if let Ok(ns) = text.parse() {
        return Ok(ns);
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| {
        "give a time with its zone, such as 2026-01-05T14:30:00Z, or nanoseconds since the epoch".to_string()
    })?;
    u64::try_from(time.as_nanosecond()).map_err(|_| "times begin in 1970".into())
}

fn date(text: &str) -> Result<jiff::civil::Date, String> {
    text.parse().map_err(|_| "give a date such as 2026-01-05".into())
}

/// Runs `tickwire export`: writes the tables and says how many rows they have.
///
/// # Errors
/// A file that cannot be read or written, a signal (nothing has its final name then but whole partitions);
/// and, after everything is written, damage or gaps in the recording: the rows of books that may be wrong are
/// marked.
pub fn run(args: &ExportArgs, stop: &StopFlag) -> Result<(), Failure> {
    let (done, fault) = export(args, stop)?;
    println!(
        "{} rows of {}, {} of them marked as of a book that may be wrong; {} files written, {} were there already",
        done.rows,
        args.schema.name(),
        done.marked,
        done.files,
        done.kept
    );
    match fault {
        Some(fault) => Err(Failure::check(format!(
            "{fault}; rows of such books have bit 4 (maybe bad book) in flags"
        ))),
        None => Ok(()),
    }
}

/// Writes the tables: what was written, and why some of it is not to be relied on, if so.
///
/// # Errors
/// As [`run`], but for damage and gaps.
pub fn export(args: &ExportArgs, stop: &StopFlag) -> Result<(Done, Option<String>), Failure> {
    let name = args
        .out
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let format = match (args.format, args.out.extension().and_then(|e| e.to_str())) {
        (Some(format), _) => format,
        (None, Some("csv")) if name.contains("_message_") => Format::Lobster,
        (None, Some("csv")) => Format::Csv,
        (None, Some("dbn")) => Format::Dbn,
        (None, Some("parquet")) => Format::Parquet,
        (None, Some("arrow" | "feather")) => Format::Arrow,
        _ => {
            return Err(Failure::config(
                "give --format csv, dbn, parquet or arrow, or a file that ends so",
            ));
        }
    };
    let span = [args.from.unwrap_or(0), args.to.unwrap_or(u64::MAX)];
    let what = what(args, format)?;
    let out = Out::new(&args.out, args.schema, (format, args.partition), span, &what)?;
    if args.live.live {
        let (done, fault, left_out) = live::export(args, out, stop)?;
        for name in &left_out {
            eprintln!("{name}");
        }
        return Ok((done, fault));
    }
    let replayed = args.recording.replay(&args.files, &args.symbol);
    let (done, read) = fill(&replayed, (args.schema, args.date), out, stop)?;
    for name in &read.left_out {
        eprintln!("{name}");
    }
    Ok((done, read.fed.fault))
}

/// How a recording was read.
struct ReadAll {
    fed: Fed,
    /// Channels without orders, of which orders were asked for.
    left_out: Vec<String>,
}

/// Reads files into rows of a schema, and these into `out`.
fn fill(
    replayed: &ReplayArgs,
    (schema, date): (Schema, Option<jiff::civil::Date>),
    out: Out,
    stop: &StopFlag,
) -> Result<(Done, ReadAll), Failure> {
    let shared = Rc::new(RefCell::new(out));
    let mut make = Make {
        out: shared.clone(),
        consolidated: Rc::default(),
        schema,
        date,
        refused: Vec::new(),
    };
    let fed = replay::feed(replayed, stop, &mut make)?;
    let left_out = make.refused;
    let is_all = !left_out.is_empty() && left_out.len() == shared.borrow().venues.len();
    if is_all {
        return Err(none_of(schema));
    }
    let done = shared.borrow_mut().finish(stop)?;
    Ok((done, ReadAll { fed, left_out }))
}

/// Rows and archives have one name for a number, and a venue that gives numbers anew every day has several.
/// `what` to do with each day.
fn renumbered(feed: &str, before: Symbol, now: &Instrument, what: &str) -> Failure {
    Failure::config(format!(
        "{feed}: instrument {} was {before} and is {} now: the recordings are of several days that number instruments anew; {what} each day by itself",
        now.id.0, now.symbol
    ))
}

/// Nobody has what was asked for.
fn none_of(schema: Schema) -> Failure {
    Failure::config(match schema {
        Schema::Cmbp1 => "there are consolidated feeds alone; give --schema mbp-1 or another one",
        _ => "no feed here tells orders; give --schema mbp-10 or another one",
    })
}

/// What is exported: a text that differs where the rows may.
fn what(args: &ExportArgs, format: Format) -> Result<String, Failure> {
    let mut text = format!(
        "tickwire export 1\nschema {}\nformat {format:?}\n",
        args.schema.name()
    );
    for path in args
        .files
        .iter()
        .chain(&args.recording.config)
        .chain(&args.recording.templates)
    {
        if path.as_os_str() == tickwire_venues::channels::BUILT_IN {
            continue;
        }
        if path.as_os_str() == "-" {
            if args.partition {
                return Err(Failure::config(
                    "--partition goes on where it was ended, which standard input cannot: give a file",
                ));
            }
            continue;
        }
        let about = std::fs::metadata(path)
            .map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))?;
        let modified = about
            .modified()
            .ok()
            .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        _ = writeln!(
            text,
            "file {} {} {}",
            path.display(),
            about.len(),
            modified.map_or(0, |at| at.as_nanos())
        );
    }
    _ = writeln!(
        text,
        "symbols {:?} from {:?} to {:?} date {:?} protocol {:?}",
        args.symbol, args.from, args.to, args.date, args.recording.protocol
    );
    Ok(text)
}

/// Makes channels whose events become rows.
struct Make {
    out: Rc<RefCell<Out>>,
    consolidated: Rc<RefCell<Consolidated>>,
    schema: Schema,
    date: Option<jiff::civil::Date>,
    /// Channels without orders, of which orders were asked for.
    refused: Vec<String>,
}

impl Make {
    fn rows(&self, venue: Venue, tells_groups: bool) -> Rows {
        let mut out = self.out.borrow_mut();
        out.venues.push(venue);
        Rows::new(Making {
            schema: self.schema,
            channel: out.venues.len() - 1,
            venue,
            tells_groups,
            date: self.date,
        })
    }

    /// Rows of a channel on their way out; `None`: it does not tell what was asked for, and is named among
    /// those left out.
    fn writing(&mut self, venue: Venue, protocol: Protocol, name: &str) -> Option<Writing> {
        let rows = self.rows(venue, protocol.tells_match_events());
        let why = match self.schema {
            Schema::Mbo if protocol.depth() == Depth::ByPrice => {
                "tells levels, not orders: it has no mbo, and is left out (see --schema mbp-10)"
            }
            Schema::Cmbp1 if !protocol.has_depth() => {
                "is consolidated itself, and takes no part in cmbp-1 (see --schema mbp-1)"
            }
            _ => {
                return Some(Writing {
                    channel: self.out.borrow().venues.len() - 1,
                    rows,
                    out: self.out.clone(),
                    consolidated: self.consolidated.clone(),
                    books: None,
                });
            }
        };
        self.refused.push(format!("{name} {why}"));
        None
    }
}

/// A channel without orders, of which orders were asked for.
struct Nothing;

impl Keep for Nothing {
    fn event(&mut self, event: &MarketEvent, books: &mut Books) {
        books.apply(event);
    }
}

/// A channel's rows, on their way out.
struct Writing {
    rows: Rows,
    channel: usize,
    out: Rc<RefCell<Out>>,
    consolidated: Rc<RefCell<Consolidated>>,
    /// Of files of records, which have no books for it.
    books: Option<Box<Books>>,
}

impl Writing {
    /// An instrument has a name; another one that it had before.
    fn name(&mut self, instrument: &Instrument) -> Option<Symbol> {
        self.rows.defined(instrument);
        let mut out = self.out.borrow_mut();
        out.names.insert(self.channel, instrument.id, instrument.symbol)
    }

    /// The packet is over: its instruments have names now.
    fn hand_over(&mut self) {
        if self.rows.pending.is_empty() && self.rows.tops.is_empty() {
            return;
        }
        let mut out = self.out.borrow_mut();
        if !self.rows.tops.is_empty() {
            let who = (self.channel, self.rows.publisher);
            let (tops, rows) = (&self.rows.tops, &mut self.rows.pending);
            self.consolidated
                .borrow_mut()
                .take(who, tops, &mut out.names, rows);
            self.rows.tops.clear();
        }
        out.take(&self.rows.pending);
        self.rows.pending.clear();
        if let Some(unfit) = self.rows.unfit.take()
            && !out.has_failed()
        {
            out.fail(Failure::check(unfit));
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.rows.flush();
        self.hand_over();
    }
}

impl Keep for Writing {
    fn event(&mut self, event: &MarketEvent, books: &mut Books) {
        self.rows.event(event, books);
    }

    fn defined(&mut self, instrument: &Instrument) {
        if let Some(before) = self.name(instrument) {
            let mut out = self.out.borrow_mut();
            let feed = out.venues[self.channel].name();
            out.fail(renumbered(feed, before, instrument, "export"));
        }
    }

    fn packet(&mut self, _: Nanos, _: usize, _: &dyn Fn() -> Counters) {
        self.hand_over();
    }
}

impl Follow for Writing {
    const HEARS_EXECUTIONS: bool = true;

    fn record(&mut self, _: Nanos, _: Option<InstrumentId>) {
        self.hand_over();
    }

    fn event(&mut self, event: &MarketEvent) {
        if let Some(books) = &mut self.books {
            self.rows.event(event, books);
        }
    }

    fn defined(&mut self, instrument: &Instrument, _: Option<PointValue>) {
        // A file of records may name what was asked for first, and each instrument by a definition later.
        self.name(instrument);
    }

    fn order(&self, order: OrderId) -> Option<OrderView> {
        self.books.as_ref()?.order(order)
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        if let Some(books) = &self.books {
            at(books);
        }
    }
}

impl MakePlay for Make {
    fn channel(
        &mut self,
        feed: &FeedConfig,
        number: usize,
        reception: &Reception,
        name: String,
        books: BooksConfig,
    ) -> Result<Box<dyn Play>, Failure> {
        let keep: Box<dyn Keep> = match self.writing(feed.venue, feed.protocol(), &name) {
            None => Box::new(Nothing),
            Some(writing) => Box::new(writing),
        };
        replay::kept(feed, number, reception, name, books, keep)
    }

    fn records(&mut self, file: RecordsFile) -> Result<Box<dyn Play>, Failure> {
        if !file.is_by_order() {
            return Err(Failure::config(format!(
                "{}: of DBN, files of market by order (mbo) can be exported; others are in their schema already",
                file.name()
            )));
        }
        let books = file.books();
        let rows = self.rows(books.venue, true);
        let writing = Writing {
            channel: self.out.borrow().venues.len() - 1,
            rows,
            out: self.out.clone(),
            consolidated: self.consolidated.clone(),
            books: Some(Box::new(Books::new(books))),
        };
        Ok(file.into_play(writing))
    }

    fn is_for_channels(&self) -> bool {
        true
    }
}
