//! `backtest`: recordings through the same channels and books as live, into a strategy and a simulated venue.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tickwire_backtest::{
    BacktestConfig, Fees, Fill, FillModel, GhostConfig, GhostResult, KeptOrder, Nobody, StrategyResult,
    Summary, Why,
};
use tickwire_console::failure::Failure;
use tickwire_market::{Counters, InstrumentId, Nanos, Symbol, Venue};
use tickwire_replay::replay::{self, Fed, ReplayArgs};
use tickwire_runtime::signal::StopFlag;
use tickwire_trading::strategy::{ConductorConfig, Strategy, Subscription};

use super::BacktestArgs;
use crate::config::Config;

mod channels;
mod page;
mod section;
mod shown;
mod sweep;

use channels::{Make, Shared};
pub use section::BacktestSection;
use section::latencies;
use shown::{fills_csv, to_json, to_text};

/// One run's result.
#[derive(Clone, Debug)]
pub struct BacktestResult {
    /// What came of it.
    pub summary: Summary,
    /// Every fill, in the order of the venue's time.
    pub fills: Vec<Fill>,
    /// Every order that reached the venue, where [`tested`] ran it.
    pub orders: Vec<KeptOrder>,
    /// What was counted.
    pub counters: Counters,
    /// Symbols of the instruments that were traded or watched.
    pub symbols: BTreeMap<InstrumentId, Symbol>,
    /// By strategy, with its name.
    pub each: Vec<(String, StrategyResult)>,
    /// The strategies' own numbers, by name.
    pub figures: Vec<(String, i64)>,
    /// The first notes of the strategies.
    pub notes: Vec<String>,
    /// Notes that were not kept.
    pub notes_lost: u64,
    /// How long it took.
    pub took: Duration,
    /// Why the recording is not to be relied on, if it is not.
    pub fault: Option<String>,
    /// Books of which the recording does not have the beginning.
    pub partial: usize,
    /// The gain over time, in 1e-9 units.
    pub curve: Vec<(Nanos, i128)>,
    /// What became of ghosts.
    pub ghosts: Option<GhostResult>,
}

/// Runs a strategy as `backtest` does, and gives the result instead of printing it; orders are kept. A fault
/// of the recording is in the result. `sweep`, `fills`, `report`, `json` and `ghosts` of the arguments are
/// not looked at.
///
/// # Errors
/// The configuration, the parameters or the files are wrong; somebody asked to stop.
pub fn tested<S: Strategy + DeserializeOwned + 'static>(
    args: &BacktestArgs,
    stop: &StopFlag,
) -> Result<BacktestResult, Failure> {
    let mut config = Config::load(&args.config)?;
    super::chosen(&mut config, args.strategy.as_deref())?;
    set(&mut config, &args.set)?;
    let args = BacktestArgs {
        ghosts: None,
        ..args.clone()
    };
    one::<S>(&args, &config, true, stop)
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
        let done = one::<Ghostly>(args, &config, false, stop)?;
        return tell_ghosts(args, &done);
    }
    let done = one::<S>(args, &config, false, stop)?;
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
fn tell_ghosts(args: &BacktestArgs, done: &BacktestResult) -> Result<(), Failure> {
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
    keeps_orders: bool,
    stop: &StopFlag,
) -> Result<BacktestResult, Failure> {
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
        Box::new(Some((entering, settings, ghosts, keeps_orders))),
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
    let mut done = BacktestResult {
        summary,
        fills: test.fills().to_vec(),
        orders: test.orders().to_vec(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_toml_reads_them_and_text_without_quotes_is_text() {
        assert_eq!(value_of("10"), toml::Value::Integer(10));
        assert_eq!(value_of("0.5"), toml::Value::Float(0.5));
        assert_eq!(value_of("true"), toml::Value::Boolean(true));
        assert_eq!(value_of("AAPL"), toml::Value::String("AAPL".into()));
        assert_eq!(value_of("\"10\""), toml::Value::String("10".into()));
    }
}
