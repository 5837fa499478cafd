//! What is in recordings of market data: `tickwire inspect`.
//!
//! ```text
//! files ─► [`tickwire_replay::replay::survey`]: protocols, channels, lines and ports, by content
//!       ─► played through channels and books: messages, symbols, times, rates, gaps, duplicates, damage
//!       ─► [`Inspection`]: text, JSON, and the configuration ([`written`]) that `replay`, `feed` and a strategy's program need
//! ```
//! Captures, raw ITCH files, DBN and LOBSTER are read. Nothing is guessed: what packets do not say (which of
//! a venue's sisters sent them, where its servers of recovery are) is named as such in the configuration.
//!
//! ```
//! use clap::Parser;
//! use tickwire_inspect::{InspectArgs, inspect};
//! use tickwire_runtime::signal::StopFlag;
//!
//! #[derive(Parser)]
//! struct Cli {
//!     #[command(flatten)]
//!     inspect: InspectArgs,
//! }
//!
//! // Two lines of a LOBSTER message file: time of day, type, order, size, price in 0.0001, direction.
//! let path = std::env::temp_dir().join(format!("AAPL_inspect_{}_message_10.csv", std::process::id()));
//! std::fs::write(&path, "34200.1,1,1,100,5853300,1\n34200.2,1,2,50,5859400,-1\n")?;
//! let cli = Cli::parse_from(["example", path.to_str().expect("text")]);
//! let found = inspect(&cli.inspect, &StopFlag::install()?)?;
//! assert_eq!((found.channels[0].protocol, found.rates.messages), ("lobster", 2));
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use tickwire_book::{Books, BooksConfig, OrderView};
use tickwire_console::failure::Failure;
use tickwire_market::{
    Counter, Counters, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, OrderId, PointValue, Symbol,
    Venue,
};
use tickwire_replay::played::{Follow, Keep, Play};
use tickwire_replay::replay::{self, Fed, FedChannel, MakePlay, RecordsFile, ReplayArgs, Survey};
use tickwire_runtime::capture::FrameCounts;
use tickwire_runtime::files;
use tickwire_runtime::signal::StopFlag;
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring::Reception;

mod rates;
mod shown;
pub mod written;

pub use rates::{Peak, Rates};

/// The arguments of `tickwire inspect`.
#[derive(clap::Args, Debug)]
pub struct InspectArgs {
    /// Captures (pcap, pcapng), raw ITCH 5.0 files, DBN files, LOBSTER message files, or archives of events;
    /// gzip and zstd are recognised; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write the configuration (TOML) that `replay`, `feed` and a strategy's program read
    #[arg(long, value_name = "FILE")]
    pub write_config: Option<PathBuf>,
    /// The venue, where several speak one protocol and packets do not say which (repeatable, one a protocol)
    #[arg(long, value_name = "VENUE", value_parser = venue)]
    pub venue: Vec<Venue>,
    /// What the payloads are; recognised from the packets to each group unless given
    #[arg(long, value_enum, value_name = "P")]
    pub protocol: Option<Protocol>,
    /// FAST template file of MOEX, or `builtin` (repeatable: the first that reads a packet whole is taken)
    #[arg(long, value_name = "FILE")]
    pub templates: Vec<PathBuf>,
    /// Symbols to list, those with the most events first; 0 lists all. JSON has all of them
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub symbols: usize,
    /// Results as JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

fn venue(name: &str) -> Result<Venue, String> {
    Venue::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Venue::ALL.iter().map(|v| v.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

/// How much is told of one instrument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolCount {
    /// As the venue calls it; `#` and its number where the recording does not say.
    pub symbol: String,
    /// Index of its channel in [`Inspection::channels`].
    pub channel: usize,
    /// What messages say about it, one by one: an order, an execution, a level, a quote, a status. Of a DBN
    /// or LOBSTER file: its records.
    pub events: u64,
}

/// What was found out of one channel beside its counters.
#[derive(Debug)]
pub struct ChannelRates {
    /// The venue's messages, once each, in time.
    pub rates: Rates,
    /// Instruments that the venue named.
    pub instruments: usize,
}

/// Everything that was found.
pub struct Inspection {
    /// The files, in the order in which they were named.
    pub files: Vec<PathBuf>,
    /// What every channel carries; its counters say gaps, duplicates and damage.
    pub channels: Vec<FedChannel>,
    /// In the same order: their rates.
    pub by_channel: Vec<ChannelRates>,
    /// All channels together.
    pub rates: Rates,
    /// Every instrument that anything was told of, most events first.
    pub symbols: Vec<SymbolCount>,
    /// What became of the frames of captures.
    pub frames: FrameCounts,
    /// What the first reading found: the channels by their addresses, and destinations of none.
    pub survey: Survey,
    /// Why books made of it are not to be relied on: damage, gaps, a beginning in mid-session.
    pub fault: Option<String>,
}

impl Inspection {
    /// The configuration for it; see [`written`].
    pub fn config(&self, args: &InspectArgs) -> written::Written {
        written::of(&self.survey, &args.venue, &args.templates)
    }

    /// The counters of all channels together.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        self.channels.iter().for_each(|c| all.merge(&c.counters));
        all
    }
}

/// Runs `tickwire inspect`: reads the files, prints what is in them, and writes the configuration.
///
/// # Errors
/// A file that cannot be read, a signal, a configuration that cannot be written; and, after everything is
/// printed, damage or gaps that make books of it unreliable.
pub fn run(args: &InspectArgs, stop: &StopFlag) -> Result<(), Failure> {
    let found = inspect(args, stop)?;
    let config = found.config(args);
    match args.json {
        true => println!("{:#}", found.to_json(&config)),
        false => print!("{}", found.to_text(args.symbols, &config)),
    }
    if let Some(path) = &args.write_config {
        if config.feeds.is_empty() {
            return Err(Failure::check(format!(
                "no configuration was written to {}: the recording has no channel that one could name{}",
                path.display(),
                config
                    .left_out
                    .first()
                    .map_or(String::new(), |why| format!(" ({why})")),
            )));
        }
        files::replace(path, config.text.as_bytes(), true)
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))?;
        if !args.json {
            println!("written: {}", path.display());
        }
    }
    match found.fault {
        Some(fault) => Err(Failure::check(fault)),
        None => Ok(()),
    }
}

/// Reads the files, twice: what is in them.
///
/// # Errors
/// As [`run`], but for what is printed.
pub fn inspect(args: &InspectArgs, stop: &StopFlag) -> Result<Inspection, Failure> {
    let gathered = Rc::new(RefCell::new(Gathered::default()));
    let mut make = Make(gathered.clone());
    let replayed = ReplayArgs {
        protocol: args.protocol,
        templates: args.templates.clone(),
        ..ReplayArgs::of(args.files.clone())
    };
    let Fed {
        fault,
        survey,
        channels,
        frames,
        ..
    } = replay::feed(&replayed, stop, &mut make)?;
    let mut gathered = gathered.borrow_mut();
    let mut symbols = Vec::new();
    let mut by_channel = Vec::new();
    for (channel, (fed, seen)) in channels.iter().zip(&mut gathered.channels).enumerate() {
        let names: HashMap<InstrumentId, Symbol> = fed.directory.iter().map(|(s, id)| (*id, *s)).collect();
        let told = seen.events.iter().enumerate().filter(|(_, events)| **events > 0);
        symbols.extend(told.map(|(at, events)| {
            let id = InstrumentId(at as u32);
            SymbolCount {
                symbol: names.get(&id).map_or_else(|| format!("#{at}"), Symbol::to_string),
                channel,
                events: *events,
            }
        }));
        by_channel.push(ChannelRates {
            rates: std::mem::take(&mut seen.rates).end(),
            instruments: fed.directory.len(),
        });
    }
    symbols.sort_unstable_by(|a, b| (b.events, &a.symbol, a.channel).cmp(&(a.events, &b.symbol, b.channel)));
    Ok(Inspection {
        files: args.files.clone(),
        channels,
        by_channel,
        rates: std::mem::take(&mut gathered.rates).end(),
        symbols,
        frames,
        survey: survey.unwrap_or_default(),
        fault,
    })
}

/// What is counted while the recordings are played.
#[derive(Default)]
struct Gathered {
    channels: Vec<Seen>,
    rates: Rates,
}

/// Of one channel.
#[derive(Default)]
struct Seen {
    /// By number of the instrument.
    events: Vec<u64>,
    /// Messages counted so far.
    messages: u64,
    rates: Rates,
}

impl Seen {
    fn event(&mut self, instrument: InstrumentId) {
        if instrument == InstrumentId::WHOLE_FEED {
            return;
        }
        let at = instrument.index();
        if self.events.len() <= at {
            self.events.resize(at + 1, 0);
        }
        self.events[at] += 1;
    }
}

impl Gathered {
    fn note(&mut self, channel: usize, now: Nanos, bytes: usize, messages: u64) {
        let seen = &mut self.channels[channel];
        seen.messages += messages;
        seen.rates.note(now, bytes, messages);
        self.rates.note(now, bytes, messages);
    }
}

/// Makes channels that are counted.
struct Make(Rc<RefCell<Gathered>>);

impl Make {
    fn watched(&self) -> Watched {
        let mut gathered = self.0.borrow_mut();
        gathered.channels.push(Seen::default());
        Watched {
            gathered: self.0.clone(),
            channel: gathered.channels.len() - 1,
        }
    }
}

/// One channel of them.
struct Watched {
    gathered: Rc<RefCell<Gathered>>,
    channel: usize,
}

/// Of a channel that packets are played into.
struct Packets {
    watched: Watched,
    seen: Seen,
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
        let keep = Packets {
            watched: self.watched(),
            seen: Seen::default(),
        };
        replay::kept(feed, number, reception, name, books, Box::new(keep))
    }

    fn records(&mut self, file: RecordsFile) -> Result<Box<dyn Play>, Failure> {
        let counted = Counted {
            watched: self.watched(),
            books: Books::new(file.books()),
        };
        Ok(file.into_play(counted))
    }

    fn is_for_channels(&self) -> bool {
        true
    }
}

impl Keep for Packets {
    fn event(&mut self, event: &MarketEvent, books: &mut Books) {
        books.apply(event);
        // What the channel itself says of the feed is no message about an instrument.
        if !matches!(
            event.kind,
            EventKind::Gap | EventKind::Recovered | EventKind::EndOfGroup | EventKind::Definition
        ) {
            self.seen.event(event.instrument);
        }
    }

    fn defined(&mut self, _: &Instrument) {}

    fn packet(&mut self, now: Nanos, bytes: usize, counters: &dyn Fn() -> Counters) {
        let messages = counters().get(Counter::Messages);
        let new = messages.saturating_sub(self.seen.messages);
        self.seen.messages = messages;
        self.watched
            .gathered
            .borrow_mut()
            .note(self.watched.channel, now, bytes, new);
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        let mut gathered = self.watched.gathered.borrow_mut();
        gathered.channels[self.watched.channel].events = std::mem::take(&mut self.seen.events);
    }
}

/// Of a file of records, with its books.
struct Counted {
    watched: Watched,
    books: Books,
}

impl Follow for Counted {
    const HEARS_EXECUTIONS: bool = false;

    fn record(&mut self, now: Nanos, instrument: Option<InstrumentId>) {
        let mut gathered = self.watched.gathered.borrow_mut();
        gathered.note(self.watched.channel, now, 0, 1);
        if let Some(id) = instrument {
            gathered.channels[self.watched.channel].event(id);
        }
    }

    fn event(&mut self, event: &MarketEvent) {
        self.books.apply(event);
    }

    fn defined(&mut self, _: &Instrument, _: Option<PointValue>) {}

    fn order(&self, order: OrderId) -> Option<OrderView> {
        self.books.order(order)
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        at(&self.books);
    }
}
