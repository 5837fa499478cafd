//! `backtest`: recordings through the same channels and books as live, into a strategy and a simulated venue.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tickwire_backtest::{
    Backtest, BacktestConfig, Entrant, Fees, Fill, FillModel, GhostConfig, GhostResult, Ghosts, HORIZONS,
    Latency, LatencyConfig, Nobody, StrategyResult, Summary, TimedLatency, Why,
};
use tickwire_book::{Books, BooksConfig, Depth, OrderView};
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_lab::{Histogram, Table, parse_hgrm};
use tickwire_market::{
    Counter, Counters, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos, OrderId,
    PointValue, Port, Price, SeqNo, Side, Symbol, Venue,
};
use tickwire_runtime::signal::StopFlag;
use tickwire_trading::strategy::{ConductorConfig, Strategy, Subscription};

use super::BacktestArgs;
use crate::config::Config;
use tickwire_console::failure::Failure;
use tickwire_replay::played::{Cost, Follow, Play};
use tickwire_replay::replay::ReplayArgs;
use tickwire_replay::replay::{self, Fed, MakePlay, RecordsFile};
use tickwire_venues::channels::FeedConfig;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

mod page;
mod sweep;

/// How a strategy is backtested.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct BacktestSection {
    /// How orders are filled: `queue` (a place in the recorded queue), `matching` (recorded orders and ours
    /// in one engine) or `touch` (whole, as soon as the price is touched).
    pub fill: Model,
    /// From the place where the recording was made to the strategy, nanoseconds.
    pub feed_ns: u64,
    /// From a decision to the matching engine, nanoseconds.
    pub entry_ns: u64,
    /// The same of a cancellation.
    pub cancel_ns: u64,
    /// From the matching engine back, nanoseconds.
    pub response_ns: u64,
    /// What the venue takes for a share or contract of an order that rested, in its currency; below 0 it
    /// pays.
    pub maker_fee: Fee,
    /// The same of an order that took.
    pub taker_fee: Fee,
    /// What one unit of price is worth for one unit of quantity, where the feed does not say: 50 for a future
    /// on an index with 50 a point.
    pub point_value: Fee,
    /// Times drawn in the place of `feed_ns`: as `entry_histogram`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed_histogram: Option<PathBuf>,
    /// Times drawn in the place of `entry_ns`, and of `cancel_ns` where that has none of its own: a `.hgrm`
    /// file, HdrHistogram's text format in microseconds; from where this file lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_histogram: Option<PathBuf>,
    /// The same in the place of `cancel_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_histogram: Option<PathBuf>,
    /// The same in the place of `response_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_histogram: Option<PathBuf>,
    /// Times as they were measured, order by order: CSV with `time_ns` and one or more of `feed_ns`,
    /// `entry_ns`, `cancel_ns`, `response_ns`. Each holds until the next one's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_latencies: Option<PathBuf>,
    /// Of what is drawn.
    pub seed: u64,
}

impl Default for BacktestSection {
    fn default() -> Self {
        BacktestSection {
            fill: Model::Queue,
            feed_ns: 0,
            entry_ns: 20_000,
            cancel_ns: 20_000,
            response_ns: 20_000,
            maker_fee: Fee(Price::ZERO),
            taker_fee: Fee(Price::ZERO),
            point_value: Fee(Price::from_raw(Price::ONE_RAW)),
            feed_histogram: None,
            entry_histogram: None,
            cancel_histogram: None,
            response_histogram: None,
            recorded_latencies: None,
            seed: 1,
        }
    }
}

/// A fill model by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    Queue,
    Matching,
    Touch,
}

impl From<Model> for FillModel {
    fn from(model: Model) -> FillModel {
        match model {
            Model::Queue => FillModel::Queue,
            Model::Matching => FillModel::Matching,
            Model::Touch => FillModel::Touch,
        }
    }
}

/// Money for one unit, as a decimal number in quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fee(Price);

impl TryFrom<String> for Fee {
    type Error = String;
    fn try_from(text: String) -> Result<Fee, String> {
        let parsed = Price::parse(text.as_bytes());
        parsed
            .map(Fee)
            .map_err(|e| format!("a fee is a decimal number in quotes such as \"0.003\" or \"-0.002\": {e}"))
    }
}

impl From<Fee> for String {
    fn from(fee: Fee) -> String {
        fee.0.to_string()
    }
}

/// One run's result.
struct Done {
    summary: Summary,
    fills: Vec<Fill>,
    counters: Counters,
    symbols: BTreeMap<InstrumentId, Symbol>,
    /// By strategy, with its name.
    each: Vec<(String, StrategyResult)>,
    figures: Vec<(String, i64)>,
    notes: Vec<String>,
    notes_lost: u64,
    took: Duration,
    fault: Option<String>,
    /// Books of which the recording does not have the beginning.
    partial: usize,
    /// The gain over time, in 1e-9 units.
    curve: Vec<(Nanos, i128)>,
    ghosts: Option<GhostResult>,
}

/// Notes of the strategy that are shown.
const NOTES_SHOWN: usize = 20;

pub(super) fn run<S: Strategy + DeserializeOwned + 'static>(
    args: &BacktestArgs,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let mut config = Config::load(&args.config)?;
    super::chosen(&mut config, args.strategy.as_deref())?;
    set(&mut config, &args.set)?;
    if !args.sweep.is_empty() {
        return sweep::run::<S>(args, &config, stop);
    }
    if args.ghosts.is_some() {
        config.strategy.clear();
        config.strategies.clear();
        let done = one::<Ghostly>(args, &config, stop)?;
        return tell_ghosts(args, &done);
    }
    let done = one::<S>(args, &config, stop)?;
    let write = |path: &Path, text: String| {
        tickwire_runtime::files::write(path, text)
            .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))
    };
    if let Some(path) = &args.fills {
        write(path, fills_csv(&done))?;
    }
    if let Some(path) = &args.report {
        write(path, page::of(&done).to_html())?;
    }
    match args.json {
        true => println!("{:#}", to_json(&done)),
        false => print!("{}", to_text(&done)),
    }
    match done.fault {
        Some(fault) => Err(Failure::check(fault)),
        None => Ok(()),
    }
}

/// No strategy: ghosts are put in from outside.
#[derive(Deserialize)]
struct Ghostly {}

impl Strategy for Ghostly {
    fn subscriptions(&self) -> Vec<Subscription> {
        Nobody.subscriptions()
    }
}

/// What became of the ghosts.
fn tell_ghosts(args: &BacktestArgs, done: &Done) -> Result<(), Failure> {
    let found = done.ghosts.clone().unwrap_or_default();
    let first = found.first.iter().map(|d| {
        serde_json::json!({
            "order": d.order.0,
            "symbol": done.symbols.get(&d.instrument).map(Symbol::to_string),
            "time_ns": d.at.0,
            "filled": d.really,
            "ghost_filled": d.got,
            "by": d.by.0,
            "why": d.why.name(),
        })
    });
    let whys: serde_json::Map<String, serde_json::Value> = Why::ALL
        .into_iter()
        .map(|why| (why.name().to_owned(), found.whys[why as usize].into()))
        .collect();
    if args.json {
        let json = serde_json::json!({
            "events": done.summary.events,
            "orders": found.orders,
            "ghosts": found.ghosts,
            "passed_over": found.passed_over,
            "filled": found.filled[0],
            "fills": found.filled[1],
            "different": found.different,
            "whys": whys,
            "first": first.collect::<Vec<_>>(),
            "books_partial": done.partial,
            "fault": done.fault,
        });
        println!("{json:#}");
    } else {
        println!(
            "{} of {} recorded orders entered again as ours ({} came while their book was not live or crossed); {} of them were filled, by {} fills; \
             {} got other fills than their orders",
            found.ghosts, found.orders, found.passed_over, found.filled[0], found.filled[1], found.different
        );
        for d in &found.first {
            let symbol = done.symbols.get(&d.instrument).map(Symbol::to_string);
            println!(
                "  order {} of {} at {}: filled {}, its ghost {}, by order {}: {}",
                d.order.0,
                symbol.unwrap_or_default(),
                d.at.0,
                d.really,
                d.got,
                d.by.0,
                d.why.name()
            );
        }
        for why in Why::ALL.into_iter().filter(|why| found.whys[*why as usize] > 0) {
            println!("  {}: {}", why.name(), found.whys[why as usize]);
        }
    }
    match (&done.fault, found.different) {
        (Some(fault), _) => Err(Failure::check(fault.clone())),
        (None, 0) => Ok(()),
        (None, different) => Err(Failure::check(format!(
            "{different} of {} ghosts did not get the fills of their orders: trades out of the order of price and time, or a mistake here",
            found.ghosts
        ))),
    }
}

/// Parameters in the place of the file's.
pub(super) fn set(config: &mut Config, words: &[String]) -> Result<(), Failure> {
    for word in words {
        let (name, value) = named(word, "--set")?;
        let several = config
            .strategies
            .iter_mut()
            .map(|section| &mut section.parameters);
        let mut tables: Vec<&mut toml::Table> = several.collect();
        if tables.is_empty() {
            tables.push(&mut config.strategy);
        }
        for table in tables {
            table.insert(name.to_string(), value_of(value));
        }
    }
    Ok(())
}

fn named<'a>(word: &'a str, option: &str) -> Result<(&'a str, &'a str), Failure> {
    word.split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| {
            Failure::config(format!(
                "{option} {word:?}: give a parameter and a value, as lot=100"
            ))
        })
}

/// A value as it would stand in a TOML file; what is none is text.
fn value_of(text: &str) -> toml::Value {
    let table: Result<toml::Table, _> = format!("v = {text}").parse();
    table
        .ok()
        .and_then(|mut table| table.remove("v"))
        .unwrap_or_else(|| toml::Value::String(text.to_string()))
}

/// One run.
fn one<S: Strategy + DeserializeOwned + 'static>(
    args: &BacktestArgs,
    config: &Config,
    stop: &StopFlag,
) -> Result<Done, Failure> {
    let hosted = super::strategies::<S>(config, &args.config)?;
    let names: Vec<String> = hosted.iter().map(|one| one.name.clone()).collect();
    let entering = hosted.into_iter().map(|one| {
        let conductor = ConductorConfig {
            max_orders: one.max_orders,
            risk: one.risk,
            ..ConductorConfig::default()
        };
        Ok((one.strategy, conductor, venues_of(&one.name, one.feeds, config)?))
    });
    let entering = entering.collect::<Result<Vec<_>, Failure>>()?;
    let section = &config.backtest;
    let settings = BacktestConfig {
        fill: section.fill.into(),
        latency: latencies(section, args)?,
        fees: Fees {
            maker: section.maker_fee.0.raw(),
            taker: section.taker_fee.0.raw(),
        },
        seed: section.seed,
        conductor: ConductorConfig::default(),
        is_grouped: Vec::new(),
        less_is_executed: Vec::new(),
    };
    let ghosts = args.ghosts.map(|every| GhostConfig {
        every,
        one_at_a_time: settings.fill == FillModel::Matching,
        ..GhostConfig::default()
    });
    let shared = Rc::new(RefCell::new(Shared::Gathering(
        Box::new(Some((entering, settings, ghosts))),
        Vec::new(),
    )));
    let mut make = Make {
        shared: shared.clone(),
        point: section.point_value.0.raw().max(1),
    };
    let begun = Instant::now();
    let replayed = ReplayArgs {
        config: args.feeds.clone(),
        protocol: args.protocol,
        templates: args.templates.clone(),
        ..ReplayArgs::of(args.files.clone())
    };
    let fed = catch_unwind(AssertUnwindSafe(|| replay::feed(&replayed, stop, &mut make)));
    let Fed { fault, partial, .. } = match fed {
        Ok(fed) => fed?,
        Err(panic) => {
            if let Ok(shared) = shared.try_borrow()
                && let Shared::Running(test, _) = &*shared
            {
                let ran = test.conductors().nth(test.running());
                let callback = ran.map_or("none", |ran| ran.callback());
                match names.len() {
                    1 => eprintln!("the strategy panicked in {callback}"),
                    _ => eprintln!("strategy {} panicked in {callback}", names[test.running()]),
                }
            }
            resume_unwind(panic)
        }
    };
    let mut shared = shared.borrow_mut();
    let (test, ghosts) = shared.run();
    let ghosts = ghosts.as_ref().map(|ghosts| ghosts.result().clone());
    let took = begun.elapsed();
    let summary = test.finish();
    let mut done = Done {
        summary,
        fills: test.fills().to_vec(),
        counters: test.counters(),
        symbols: test
            .conductors()
            .flat_map(|one| one.instruments())
            .map(|(id, symbol, _)| (id, symbol))
            .collect(),
        each: names.iter().cloned().zip(test.results_of_each()).collect(),
        figures: Vec::new(),
        notes: Vec::new(),
        notes_lost: 0,
        took,
        fault,
        partial,
        curve: test.curve().to_vec(),
        ghosts,
    };
    let mut figures = Vec::new();
    for (one, of) in test.conductors().zip(&names) {
        one.strategy().figures(&mut |name, value| match names.len() {
            1 => figures.push((name.to_string(), value)),
            _ => figures.push((format!("{of}: {name}"), value)),
        });
    }
    done.figures = figures;
    let mut notes = Vec::new();
    done.notes_lost = test.take_notes(|note| {
        if notes.len() < NOTES_SHOWN {
            notes.push(format!("{}  {} {}", note.at.0, note.text, note.value));
        }
    });
    done.notes = notes;
    Ok(done)
}

/// How long everything takes.
fn latencies(section: &BacktestSection, args: &BacktestArgs) -> Result<LatencyConfig, Failure> {
    let beside = |file: &Path| args.config.parent().unwrap_or(Path::new("")).join(file);
    let read = |file: &Path| {
        let path = beside(file);
        std::fs::read_to_string(&path)
            .map_err(|e| Failure::config(format!("cannot read {}: {e}", path.display())))
    };
    let of = |ns: u64, file: Option<&PathBuf>| -> Result<Latency, Failure> {
        let Some(file) = file else {
            return Ok(Latency::Constant(ns));
        };
        let values = parse_hgrm(&read(file)?);
        let values = values.map_err(|e| Failure::config(format!("{}: {e}", beside(file).display())))?;
        Ok(Latency::Drawn(values))
    };
    let cancel = section
        .cancel_histogram
        .as_ref()
        .or(section.entry_histogram.as_ref());
    let mut all = LatencyConfig {
        feed: of(section.feed_ns, section.feed_histogram.as_ref())?,
        entry: of(section.entry_ns, section.entry_histogram.as_ref())?,
        cancel: of(section.cancel_ns, cancel)?,
        response: of(section.response_ns, section.response_histogram.as_ref())?,
    };
    if let Some(file) = &section.recorded_latencies {
        recorded(&read(file)?, &mut all)
            .map_err(|e| Failure::config(format!("{}: {e}", beside(file).display())))?;
    }
    Ok(all)
}

/// Latencies as they were measured, in the place of others.
fn recorded(text: &str, all: &mut LatencyConfig) -> Result<(), String> {
    let mut lines = text.lines().enumerate();
    let head = lines.next().map_or("", |(_, line)| line);
    let names: Vec<&str> = head.split(',').map(str::trim).collect();
    let known = ["feed_ns", "entry_ns", "cancel_ns", "response_ns"];
    if let Some(odd) = names
        .iter()
        .find(|name| **name != "time_ns" && !known.contains(name))
    {
        return Err(format!(
            "line 1: {odd:?} is no column: time_ns, {}",
            known.join(", ")
        ));
    }
    let time = names.iter().position(|name| *name == "time_ns");
    let time = time.ok_or("line 1: the first line names the columns, of which time_ns is one")?;
    let mut rows = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let row: Result<Vec<Option<u64>>, String> =
            line.split(',')
                .map(|field| match field.trim() {
                    "" => Ok(None),
                    field => field.parse().map(Some).map_err(|_| {
                        format!("line {}: {field:?} is no whole number of nanoseconds", number + 1)
                    }),
                })
                .collect();
        let row = row?;
        if row.len() != names.len() || row[time].is_none() {
            return Err(format!(
                "line {}: {} fields, where line 1 names {}, time_ns among them",
                number + 1,
                row.len(),
                names.len()
            ));
        }
        rows.push(row);
    }
    let places = [&mut all.feed, &mut all.entry, &mut all.cancel, &mut all.response];
    for (name, place) in known.into_iter().zip(places) {
        let Some(column) = names.iter().position(|have| *have == name) else {
            continue;
        };
        let measured = rows.iter().filter_map(|row| {
            Some(TimedLatency {
                at: Nanos(row[time]?),
                ns: row[column]?,
            })
        });
        *place = Latency::recorded(measured.collect());
    }
    Ok(())
}

/// A strategy that is to be played to: with its limits, and the venues that it hears, if not all.
type Entering<S> = (S, ConductorConfig, Option<Vec<Venue>>);

/// What a backtest is made of once the feeds are known.
type Begun<S> = (Vec<Entering<S>>, BacktestConfig, Option<GhostConfig>);

/// The venues of the feeds that a strategy names.
fn venues_of(name: &str, feeds: Option<Vec<String>>, config: &Config) -> Result<Option<Vec<Venue>>, Failure> {
    let Some(feeds) = feeds else {
        return Ok(None);
    };
    let venues = feeds.iter().map(|feed| {
        let named = config.feed.iter().find(|known| match &known.name {
            Some(name) => name == feed,
            None => known.venue.name() == feed,
        });
        let unknown = || Failure::config(format!("strategy {name}: there is no feed {feed}"));
        named.map(|known| known.venue).ok_or_else(unknown)
    });
    venues.collect::<Result<Vec<_>, _>>().map(Some)
}

/// A feed: its books, whether it tells match events, and whether what becomes less was executed.
type FeedOf = (BooksConfig, bool, bool);

/// Channels are made first, then the backtest over all of them.
#[expect(clippy::large_enum_variant, reason = "there is one of it in a run")]
enum Shared<S> {
    Gathering(Box<Option<Begun<S>>>, Vec<FeedOf>),
    Running(Box<Backtest<S>>, Option<Ghosts>),
}

impl<S: Strategy> Shared<S> {
    fn run(&mut self) -> (&mut Backtest<S>, &mut Option<Ghosts>) {
        if let Shared::Gathering(begun, feeds) = self
            && let Some((entering, mut config, ghosts)) = begun.take()
        {
            let most = feeds
                .iter()
                .map(|(books, ..)| books.instruments)
                .max()
                .unwrap_or(2);
            config.conductor.instrument_bits = most.max(2).next_power_of_two().trailing_zeros();
            config.is_grouped = feeds.iter().map(|(_, is_grouped, _)| *is_grouped).collect();
            config.less_is_executed = feeds.iter().map(|(.., is_executed)| *is_executed).collect();
            let ghosts = ghosts.map(|ghosts| {
                Ghosts::new(GhostConfig {
                    less_is_executed: config.less_is_executed.clone(),
                    ..ghosts
                })
            });
            let wanted = entering
                .iter()
                .flat_map(|(strategy, ..)| strategy.subscriptions());
            let consolidates = wanted
                .into_iter()
                .any(|s| matches!(s, Subscription::Consolidated(_)));
            let entrants = entering.into_iter().map(|(strategy, conductor, venues)| Entrant {
                strategy,
                conductor,
                hears: feeds
                    .iter()
                    .map(|(books, ..)| venues.as_ref().is_none_or(|venues| venues.contains(&books.venue)))
                    .collect(),
            });
            let entrants = entrants.collect();
            let books = feeds.iter().map(|(books, ..)| {
                Books::new(BooksConfig {
                    tracked: consolidates,
                    ..*books
                })
            });
            let books = books.collect();
            let test = Backtest::of_several(entrants, books, config);
            *self = Shared::Running(Box::new(test), ghosts);
        }
        match self {
            Shared::Running(test, ghosts) => (test, ghosts),
            Shared::Gathering(..) => unreachable!("it was made just now"),
        }
    }
}

/// Makes channels that play into the backtest.
struct Make<S> {
    shared: Rc<RefCell<Shared<S>>>,
    /// What a point is worth where nobody says it, in 1e-9.
    point: i64,
}

/// A file of records.
struct Follower<S> {
    shared: Rc<RefCell<Shared<S>>>,
    feed: usize,
    point: i64,
}

impl<S: Strategy> Follow for Follower<S> {
    const HEARS_EXECUTIONS: bool = true;

    fn event(&mut self, event: &MarketEvent) {
        match self.shared.borrow_mut().run() {
            (test, Some(ghosts)) => ghosts.on_event(test, self.feed, event),
            (test, None) => test.on_event(self.feed, event),
        }
    }

    fn defined(&mut self, instrument: &Instrument, point: Option<PointValue>) {
        let point = point.map_or(self.point, |point| point.raw());
        let mut shared = self.shared.borrow_mut();
        shared.run().0.define(self.feed, instrument, Some(point));
    }

    fn order(&self, order: OrderId) -> Option<OrderView> {
        match &*self.shared.borrow() {
            Shared::Running(test, _) => test.books(self.feed).order(order),
            Shared::Gathering(..) => None,
        }
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        if let Shared::Running(test, _) = &*self.shared.borrow() {
            at(test.books(self.feed));
        }
    }
}

impl<S: Strategy + 'static> MakePlay for Make<S> {
    fn channel(
        &mut self,
        feed: &FeedConfig,
        number: usize,
        reception: &Reception,
        name: String,
        books: BooksConfig,
    ) -> Result<Box<dyn Play>, Failure> {
        let tested = Boxed {
            shared: self.shared.clone(),
            is_grouped: feed.protocol().tells_match_events(),
            less_is_executed: feed.protocol() == Protocol::Moex,
            point: self.point,
            name,
            books,
        };
        wiring::with_channel(feed, number, reception, tested)?
    }

    fn records(&mut self, file: RecordsFile) -> Result<Box<dyn Play>, Failure> {
        if !file.is_by_order() {
            return Err(Failure::config(format!(
                "{}: of DBN, files of market by order (mbo) can be backtested on",
                file.name()
            )));
        }
        let sizes = BooksConfig {
            depth: Depth::ByOrder,
            ..file.books()
        };
        // Records say where a match event ends.
        let feed = add_feed(&self.shared, file.name(), (sizes, true, false))?;
        Ok(file.into_play(Follower {
            shared: self.shared.clone(),
            feed,
            point: self.point,
        }))
    }

    fn is_for_channels(&self) -> bool {
        true
    }
}

struct Boxed<S> {
    shared: Rc<RefCell<Shared<S>>>,
    is_grouped: bool,
    less_is_executed: bool,
    point: i64,
    name: String,
    books: BooksConfig,
}

/// One more feed, before the first packet of any.
fn add_feed<S>(shared: &RefCell<Shared<S>>, name: &str, feed: FeedOf) -> Result<usize, Failure> {
    match &mut *shared.borrow_mut() {
        Shared::Gathering(_, feeds) => {
            feeds.push(feed);
            Ok(feeds.len() - 1)
        }
        Shared::Running(..) => Err(Failure::config(format!(
            "{name}: files of several kinds cannot be backtested on together"
        ))),
    }
}

impl<S: Strategy + 'static> WithChannel for Boxed<S> {
    type Output = Result<Box<dyn Play>, Failure>;

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Self::Output {
        let books = BooksConfig {
            // The place of an order in its queue is known only where the queues are.
            depth: match depth {
                Depth::Aggregated => Depth::ByOrder,
                other => other,
            },
            venue: channel.venue(),
            ..self.books
        };
        let kind = (books, self.is_grouped, self.less_is_executed);
        let feed = add_feed(&self.shared, &self.name, kind)?;
        Ok(Box::new(Tested {
            channel,
            shared: self.shared,
            feed,
            point: self.point,
            known: vec![false; books.instruments as usize],
            news: Vec::new(),
            cost: Cost {
                name: self.name,
                packets: 0,
                bytes: 0,
                per_packet: Histogram::new(),
                busy_ticks: 0,
            },
        }))
    }
}

/// One channel of a backtest.
struct Tested<C, S> {
    channel: C,
    shared: Rc<RefCell<Shared<S>>>,
    feed: usize,
    point: i64,
    /// Which instruments the strategy's side was told of.
    known: Vec<bool>,
    /// Those that the packet under way has named for the first time, or defined.
    news: Vec<InstrumentId>,
    cost: Cost,
}

/// Where a channel's events go.
struct Sink<'a, S> {
    test: &'a mut Backtest<S>,
    ghosts: &'a mut Option<Ghosts>,
    feed: usize,
    known: &'a mut [bool],
    news: &'a mut Vec<InstrumentId>,
}

impl<S: Strategy> EventSink for Sink<'_, S> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        if let Some(known) = self.known.get_mut(event.instrument.index())
            && (!*known || event.kind == EventKind::Definition)
        {
            *known = true;
            self.news.push(event.instrument);
        }
        match self.ghosts {
            None => self.test.on_event(self.feed, event),
            Some(ghosts) => ghosts.on_event(self.test, self.feed, event),
        }
    }

    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.test.upcoming(self.feed, instrument, order_id);
    }
}

impl<C: Channel, S: Strategy> Tested<C, S> {
    fn play(&mut self, bytes: usize, play: impl FnOnce(&mut C, &mut Sink<'_, S>)) {
        let mut shared = self.shared.borrow_mut();
        let (test, ghosts) = shared.run();
        let mut sink = Sink {
            test: &mut *test,
            ghosts,
            feed: self.feed,
            known: &mut self.known,
            news: &mut self.news,
        };
        play(&mut self.channel, &mut sink);
        for id in self.news.drain(..) {
            match self.channel.instrument(id) {
                Some(instrument) => {
                    let point = self
                        .channel
                        .point_value(id)
                        .map_or(self.point, |point| point.raw());
                    test.define(self.feed, instrument, Some(point));
                }
                None => self.known[id.index()] = false,
            }
        }
        self.cost.packets += 1;
        self.cost.bytes += bytes as u64;
    }
}

impl<C: Channel, S: Strategy> Play for Tested<C, S> {
    fn on_datagram(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8]) {
        self.play(bytes.len(), |channel, sink| {
            if channel.poll_timeout().is_some_and(|t| t <= now) {
                channel.handle_timeout(now, sink);
            }
            channel.on_datagram(now, port, line, bytes, sink);
        });
    }

    fn on_message(&mut self, now: Nanos, message: &[u8]) {
        self.play(message.len() + 2, |channel, sink| {
            channel.on_message(now, message, sink)
        });
    }

    fn finish(&mut self, _now: Nanos) {
        // A day of patience that runs out is no time of the recording: what waits for it is missing, and the
        // state says so.
    }

    fn take_shown(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn state(&self) -> FeedState {
        self.channel.state()
    }

    fn next_seq(&self) -> SeqNo {
        self.channel.next_seq()
    }

    fn counters(&self) -> Counters {
        let mut all = self.channel.counters();
        self.look(&mut |books| all.merge(books.counters()));
        all
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        if let Shared::Running(test, _) = &*self.shared.borrow() {
            at(test.books(self.feed));
        }
    }

    fn directory(&self) -> BTreeMap<Symbol, InstrumentId> {
        let mut known = BTreeMap::new();
        self.channel
            .instruments(&mut |i| _ = known.insert(i.symbol, i.id));
        known
    }

    fn cost(&self) -> &Cost {
        &self.cost
    }
}

/// Money of 1e-9 units with two decimals, rounded half away from zero.
fn money(nanos: i128) -> String {
    let cents = (nanos.unsigned_abs() + 5_000_000) / 10_000_000;
    let sign = if nanos < 0 && cents > 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents / 100, cents % 100)
}

/// The mean of what the market did after fills, in parts of 100 of the price: above 0 it went the way of the
/// fill.
fn mark_out(fills: &[Fill], horizon: usize) -> Option<f64> {
    let known = fills.iter().filter_map(|fill| {
        let later = fill.mark_outs[horizon]?.raw() as f64;
        let price = fill.price.raw() as f64;
        let sign = if fill.side == Side::Bid { 1.0 } else { -1.0 };
        (price != 0.0).then(|| (sign * (later - price) / price * 1e4, f64::from(fill.qty.0)))
    });
    let (sum, weight) = known.fold((0.0, 0.0), |(sum, all), (basis, qty)| {
        (sum + basis * qty, all + qty)
    });
    (weight > 0.0).then(|| sum / weight)
}

const AFTER: [&str; 3] = ["100 ms", "1 s", "10 s"];
const _: () = assert!(HORIZONS.len() == AFTER.len());

/// The whole in one line.
fn verdict_of(done: &Done) -> String {
    let s = &done.summary;
    let fees: i128 = s.instruments.iter().map(|i| i.fees).sum();
    let seconds = s.span[1].since(s.span[0]) as f64 / 1e9;
    format!(
        "P&L {}   fees {}   drawdown {}   {} orders, {} fills ({} as maker)   {} events in {seconds:.3} s of the recording",
        money(s.gain),
        money(fees),
        money(s.drawdown),
        s.requests[0],
        s.fills[0],
        s.fills[1],
        s.events,
    )
}

fn instruments_of(done: &Done) -> Table {
    let mut table = Table::new(
        "instruments",
        &[
            "",
            "position",
            "bought",
            "sold",
            "mark",
            "P&L before fees",
            "fees",
        ],
    );
    for i in &done.summary.instruments {
        table = table.row([
            i.symbol.to_string(),
            i.position.to_string(),
            i.traded[0].to_string(),
            i.traded[1].to_string(),
            i.mark.to_string(),
            money(i.gain),
            money(i.fees),
        ]);
    }
    table
}

/// Requests by what became of them, and what was stopped by which check.
fn requests_of(done: &Done) -> Vec<(String, String)> {
    let s = &done.summary;
    let mut all = vec![
        ("new".to_string(), s.requests[0].to_string()),
        ("replaced".to_string(), s.requests[1].to_string()),
        ("cancelled".to_string(), s.requests[2].to_string()),
        ("refused by the venue".to_string(), s.rejects.to_string()),
    ];
    for (counter, count) in done.counters.iter() {
        if count > 0 && counter != Counter::OrdersSent {
            all.push((counter.spec().label.to_string(), count.to_string()));
        }
    }
    all
}

fn doubts_of(done: &Done) -> Vec<(String, String)> {
    let doubts = done.summary.doubts.named().into_iter();
    let some = doubts.filter(|(_, count)| *count > 0);
    some.map(|(what, count)| (what.to_string(), count.to_string()))
        .collect()
}

fn to_text(done: &Done) -> String {
    let s = &done.summary;
    let mut text = verdict_of(done);
    text.push('\n');
    let table = instruments_of(done);
    let _ = write!(text, "\n{}", table.to_text(tickwire_console::terminal::width()));
    if done.each.len() > 1 {
        let mut table = Table::new("strategies", &["", "P&L", "fills", "as maker"]);
        for (name, of) in &done.each {
            table = table.row([
                name.clone(),
                money(of.gain),
                of.fills[0].to_string(),
                of.fills[1].to_string(),
            ]);
        }
        let _ = write!(text, "\n{}", table.to_text(tickwire_console::terminal::width()));
    }
    let mut table = Table::new(
        "after fills, basis points by quantity (above 0: the market went our way)",
        &["", "as maker", "as taker"],
    );
    let by_kind = |is_maker| {
        done.fills
            .iter()
            .filter(|f| f.is_maker == is_maker)
            .copied()
            .collect::<Vec<_>>()
    };
    let kinds = [by_kind(true), by_kind(false)];
    for (horizon, name) in AFTER.into_iter().enumerate() {
        let shown = |fills: &Vec<Fill>| mark_out(fills, horizon).map_or(String::new(), |x| format!("{x:.2}"));
        table = table.row([name.to_string(), shown(&kinds[0]), shown(&kinds[1])]);
    }
    let _ = write!(text, "\n{}", table.to_text(tickwire_console::terminal::width()));
    let requests = requests_of(done);
    let requests = requests.iter().map(|(what, count)| format!("{count} {what}"));
    let _ = writeln!(text, "\nrequests: {}", requests.collect::<Vec<_>>().join(", "));
    if s.requests == [0; 3] {
        let symbols: Vec<_> = done.symbols.values().take(10).map(Symbol::to_string).collect();
        let more = match done.symbols.len() - symbols.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(
            text,
            "the strategy asked for nothing; the files have {}{more}",
            symbols.join(", ")
        );
    }
    for (name, value) in &done.figures {
        let _ = writeln!(text, "{name}: {value}");
    }
    for note in &done.notes {
        let _ = writeln!(text, "note {note}");
    }
    if done.notes_lost > 0 {
        let _ = writeln!(text, "{} further notes were dropped", done.notes_lost);
    }
    let doubts = doubts_of(done);
    if done.partial > 0 {
        let _ = writeln!(
            text,
            "the recording begins in mid-session: {} books lack the orders that were entered before it, and queues look shorter than they were",
            done.partial
        );
    }
    if !doubts.is_empty() {
        let _ = writeln!(
            text,
            "doubts: where another rule of filling would have given another result"
        );
        for (what, count) in doubts {
            let _ = writeln!(text, "  {count:>8}  {what}");
        }
    }
    let rate = s.events as f64 / done.took.as_secs_f64().max(1e-9) / 1e6;
    let _ = writeln!(
        text,
        "hash {:016x}   {rate:.2} million events/s, reading the files and both passes over them included",
        s.hash
    );
    text
}

fn to_json(done: &Done) -> serde_json::Value {
    let s = &done.summary;
    let instruments = s.instruments.iter().map(|i| {
        serde_json::json!({
            "symbol": i.symbol.to_string(),
            "position": i.position,
            "bought": i.traded[0],
            "sold": i.traded[1],
            "mark": i.mark.to_string(),
            "gain": money(i.gain),
            "fees": money(i.fees),
        })
    });
    let strategies = done.each.iter().map(|(name, of)| {
        let positions = of
            .instruments
            .iter()
            .map(|i| (i.symbol.to_string(), i.position.into()));
        serde_json::json!({
            "name": name,
            "gain": money(of.gain),
            "fills": of.fills[0],
            "fills_as_maker": of.fills[1],
            "positions": positions.collect::<serde_json::Map<_, _>>(),
        })
    });
    let doubts: serde_json::Map<_, _> = s
        .doubts
        .named()
        .into_iter()
        .map(|(name, count)| (name.to_string(), count.into()))
        .collect();
    serde_json::json!({
        "events": s.events,
        "from_ns": s.span[0].0,
        "to_ns": s.span[1].0,
        "gain": money(s.gain),
        "drawdown": money(s.drawdown),
        "orders": s.requests[0],
        "replacements": s.requests[1],
        "cancellations": s.requests[2],
        "rejects": s.rejects,
        "fills": s.fills[0],
        "fills_as_maker": s.fills[1],
        "instruments": instruments.collect::<Vec<_>>(),
        "strategies": strategies.collect::<Vec<_>>(),
        "counters": tickwire_control::results::counters_by_id(&done.counters),
        "figures": done.figures.iter().cloned().map(|(name, value)| (name, value.into())).collect::<serde_json::Map<_, _>>(),
        "doubts": doubts,
        "books_partial": done.partial,
        "fault": done.fault,
        "hash": format!("{:016x}", s.hash),
    })
}

/// Every fill, one a line.
fn fills_csv(done: &Done) -> String {
    let mut text = String::from(
        "time_ns,order,symbol,side,qty,price,maker,queue_at_entry,mid,mid_100ms,mid_1s,mid_10s\n",
    );
    let shown = |price: Option<Price>| price.map_or(String::new(), |price| price.to_string());
    for f in &done.fills {
        let symbol = done
            .symbols
            .get(&f.instrument)
            .map_or(String::new(), |s| s.to_string());
        let side = if f.side == Side::Bid { "buy" } else { "sell" };
        let _ = writeln!(
            text,
            "{},{},{symbol},{side},{},{},{},{},{},{},{},{}",
            f.at.0,
            f.order.0,
            f.qty.0,
            f.price,
            u8::from(f.is_maker),
            f.queue_at_entry,
            shown(f.mid),
            shown(f.mark_outs[0]),
            shown(f.mark_outs[1]),
            shown(f.mark_outs[2]),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_rounded_to_cents_and_keeps_its_sign() {
        let shown = [
            0,
            1,
            5_000_000,
            -4_999_999,
            -5_000_000,
            1_234_567_890_123,
            -2_000_000_000,
        ]
        .map(money);
        assert_eq!(
            shown,
            ["0.00", "0.00", "0.01", "0.00", "-0.01", "1234.57", "-2.00"]
        );
    }

    #[test]
    fn parameters_are_read_as_toml_reads_them_and_text_without_quotes_is_text() {
        assert_eq!(value_of("10"), toml::Value::Integer(10));
        assert_eq!(value_of("0.5"), toml::Value::Float(0.5));
        assert_eq!(value_of("true"), toml::Value::Boolean(true));
        assert_eq!(value_of("AAPL"), toml::Value::String("AAPL".into()));
        assert_eq!(value_of("\"10\""), toml::Value::String("10".into()));
    }

    #[test]
    fn a_fee_is_a_decimal_number_and_says_so() {
        let parse = |text: &str| toml::from_str::<BacktestSection>(text);
        assert_eq!(
            parse("maker_fee = \"-0.002\"").map(|s| s.maker_fee.0.raw()),
            Ok(-2_000_000)
        );
        let error = parse("maker_fee = \"much\"").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("a fee is a decimal number"), "{error}");
    }
}
