//! A strategy of one's own as a program: what [`main`] makes of it.

mod backtest;
pub mod file;
mod hardware;
mod new;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use serde::de::DeserializeOwned;
use tickwire_runtime::signal::StopFlag;
use tickwire_trading::strategy::{Strategy, Subscription};

use crate::config::{Config, StrategySection};
use crate::demo::{DemoArgs, DemoKind};
use crate::sides::{self, ExchangeArgs, SideArgs};
use tickwire_console::failure::Failure;
use tickwire_node::live::{Hosting, Live};
use tickwire_node::settings::risk_of;
use tickwire_node::trader;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::values::{DurationS, Rate, Symbols};

pub use backtest::{BacktestResult, BacktestSection, tested};
pub use new::new;

/// The arguments of `tickwire new`.
#[derive(clap::Args, Debug)]
pub struct NewArgs {
    /// Folder to write, which must not be there; its last part is the package's name
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Checkout of Tickwire that the package depends on
    #[arg(long, value_name = "FOLDER")]
    pub tickwire: PathBuf,
}

/// A trading rule, from recordings to the wire.
#[derive(Parser, Debug)]
#[command(
    arg_required_else_help = true,
    max_term_width = 110,
    after_help = "\
Exit codes:
  0    done
  1    the recording cannot be relied on: it is damaged, or messages are missing; or a ghost did not get its order's fills
  2    wrong command line, configuration or parameters
  3    the operating system refused something, or a file cannot be read
  101  the strategy panicked
  130  ended by Ctrl-C or SIGTERM"
)]
struct Own {
    #[command(subcommand)]
    command: OwnCommand,
}

#[derive(Subcommand, Debug)]
enum OwnCommand {
    /// Runs the strategy on recorded market data, in virtual time
    #[command(after_help = "\
Files are captures (pcap, pcapng) of every feed, files of ITCH 5.0 messages, DBN files of market by order, or a LOBSTER message file with its order \
book; gzip and zstd too. [backtest] of the configuration says how orders \
are filled, how long they take and what they cost; [trader.risk] and [controls] are the limits; [strategy] are the parameters.

Examples:
  backtest -c strategy.toml sample.pcap
  backtest -c strategy.toml --set lot=200 --fills fills.csv day.pcap.zst
  backtest -c strategy.toml es.definition.dbn.zst es.mbo.dbn.zst
  backtest -c strategy.toml AMZN_2012-06-21_34200000_57600000_message_10.csv AMZN_2012-06-21_34200000_57600000_orderbook_10.csv
  backtest -c strategy.toml --report page.html day.pcap.zst
  backtest -c strategy.toml --sweep lot=100,200,400 --sweep edge=1,2 --results sweep.jsonl day.pcap.zst
  backtest -c strategy.toml --ghosts day.pcap.zst")]
    Backtest(BacktestArgs),
    /// Runs the strategy live: multicast in, orders out over FIX
    #[command(after_help = "\
It hears every channel of every [[feed]], and trades over the session of [order_entry], or of the [[session]] that names the feed, within [trader.risk] \
and [controls]; [[strategies]] are several in one process. It cancels what is open when it ends for whatever reason, when market data is silent, and when it is killed (`tickwire trade --tell kill`, or the kill file).

Example:
  run -c strategy.toml")]
    Run(RunArgs),
    /// Runs the strategy against the simulated exchange, over sockets of this machine
    #[command(after_help = "\
The exchange runs as a process of its own; at the end books and orders of both sides are compared, as `tickwire demo` does.

Example:
  sim -c strategy.toml --seconds 10 --loss 0.01
  sim -c strategy.toml --feed itch50 --feed pitch")]
    Sim(SimArgs),
    #[command(hide = true)]
    Exchange(ExchangeArgs),
    #[command(hide = true)]
    Trade(SideArgs),
    /// Writes a capture of the simulated exchange, to try the strategy on
    #[command(after_help = "\
Example:
  sample sample.pcap --feed mdp3 --seconds 5
  sample both.pcap --feed itch50 --feed pitch")]
    Sample(SampleArgs),
    /// Reads the configuration and the parameters, and says what is wrong with them
    #[command(after_help = "\
Example:
  check -c strategy.toml")]
    Check(CheckArgs),
}

#[derive(Args, Debug)]
struct RunArgs {
    /// Configuration (TOML)
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Folder for books, orders and latencies at the end
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct SimArgs {
    /// Parameters and limits (TOML)
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// A parameter in the place of the file's (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// The feed between exchange and strategy; given several times, an exchange for each, every one with its
    /// own order entry session
    #[arg(long, value_enum, default_values_t = [Protocol::Itch50], value_name = "P")]
    feed: Vec<Protocol>,
    /// Length of the trading session in seconds
    #[arg(long, default_value_t = 15.0, value_name = "S")]
    seconds: f64,
    /// Market data messages per second
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    rate: u32,
    /// Number of instruments
    #[arg(long, default_value_t = 200, value_name = "N")]
    symbols: u32,
    /// Share of packets lost on each line, independently (0.01 is 1 %)
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    loss: f64,
    /// Seed of order flow and loss
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Folder for configuration, results and report
    #[arg(long, default_value = "sim", value_name = "DIR")]
    dir: PathBuf,
    /// Show what the strategy's side has counted, too
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Args, Debug)]
struct SampleArgs {
    /// Capture to write (pcap)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The feed; given several times, feeds of one market, with a matching engine for each venue
    #[arg(long, value_enum, default_values_t = [Protocol::Itch50], value_name = "P")]
    feed: Vec<Protocol>,
    /// Length of the session in seconds
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    seconds: f64,
    /// Market data messages per second
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    rate: u32,
    /// Number of instruments
    #[arg(long, default_value_t = 20, value_name = "N")]
    symbols: u32,
    /// Seed of the order flow
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

#[derive(Args, Debug)]
struct CheckArgs {
    /// Configuration (TOML)
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

/// What a backtest is told.
#[derive(Args, Clone, Debug)]
pub struct BacktestArgs {
    /// Captures (pcap, pcapng), files of ITCH 5.0 messages, DBN files of market by order (and of definitions
    /// before them), or a LOBSTER message file and its order book; gzip and zstd are recognised
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Parameters, limits and the venue of the backtest (TOML)
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Feeds by group and port (TOML): both lines, several feeds in one capture; without it they are
    /// recognised
    #[arg(long, value_name = "FILE")]
    pub feeds: Option<PathBuf>,
    /// What the payloads are; without it, told by --feeds, else recognised from the first packets to each
    /// group
    #[arg(long, value_enum, value_name = "P", conflicts_with = "feeds")]
    pub protocol: Option<Protocol>,
    /// FAST template file of MOEX (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "feeds")]
    pub templates: Vec<PathBuf>,
    /// One alone, of a file with several strategies; without it, all of them together
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<String>,
    /// A parameter in the place of the file's (repeatable)
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Every one of these values of a parameter, and with several of these every combination, on all cores
    #[arg(long, value_name = "NAME=V1,V2,...")]
    pub sweep: Vec<String>,
    /// Keep every combination's result in this file, a line of JSON each; those that are in it already are
    /// not run again
    #[arg(long, value_name = "FILE", requires = "sweep")]
    pub results: Option<PathBuf>,
    /// Write every fill as CSV: with the quantity that was ahead when the order came to rest, and the middle
    /// of the book later
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    pub fills: Option<PathBuf>,
    /// Write a page with tables and plots (HTML)
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    pub report: Option<PathBuf>,
    /// Instead of the strategy's orders, enter every N-th recorded order again as ours and see whether it
    /// gets its real fills
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", conflicts_with_all = ["sweep", "fills", "report"])]
    pub ghosts: Option<u64>,
    /// Results as JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// The commands of a strategy's program, for the test of what the pages show.
///
/// # Errors
/// What is wrong with them.
pub fn takes(words: Vec<OsString>) -> Result<(), clap::Error> {
    Own::command().try_get_matches_from(words).map(|_| ())
}

/// The whole program of a strategy: its `main` is `fn main() -> ExitCode { tickwire::main::<MyStrategy>() }`.
/// The strategy is read from the table `[strategy]` of the configuration: give its run-time state
/// `#[serde(skip)]`, and its parameters `#[serde(deny_unknown_fields)]` so that a misspelt one is said.
pub fn main<S: Strategy + DeserializeOwned + 'static>() -> ExitCode {
    tickwire_runtime::alloc::end_without_memory();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments.first().map(PathBuf::from).unwrap_or_default();
    let name = name.file_name().map(|name| name.to_string_lossy().into_owned());
    let own = Own::command().name(name.clone().unwrap_or_default().leak() as &str);
    let parsed = own
        .try_get_matches_from(arguments)
        .and_then(|matches| Own::from_arg_matches(&matches));
    let own = match parsed {
        Ok(own) => own,
        Err(error) => {
            // The terminal or pipe may be gone: then there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    let done = tickwire_console::run(|| command::<S>(&own.command));
    match done.and_then(|()| tickwire_console::out::failure().map_or(Ok(()), Err)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}: {failure}", name.unwrap_or_default());
            ExitCode::from(failure.code as u8)
        }
    }
}

fn command<S: Strategy + DeserializeOwned + 'static>(command: &OwnCommand) -> Result<(), Failure> {
    // Before anything else: no thread is pinned yet.
    tickwire_control::process::heed_environment()?;
    let stop = StopFlag::install().map_err(|e| Failure::system(format!("cannot catch signals: {e}")))?;
    match command {
        OwnCommand::Backtest(args) => backtest::run::<S>(args, &stop),
        OwnCommand::Run(args) => {
            sides::side(&args.config, args.results.as_deref(), None, |config, results| {
                live::<S>(config, &args.config, results, false, &stop)
            })
        }
        OwnCommand::Sim(args) => sim::<S>(args, &stop),
        OwnCommand::Exchange(args) => sides::exchange(args, &stop),
        OwnCommand::Trade(args) => {
            let file = args.config.clone().unwrap_or_default();
            sides::side(
                &file,
                args.results.as_deref(),
                args.child_of,
                |config, results| live::<S>(config, &file, results, args.child_of.is_some(), &stop),
            )
        }
        OwnCommand::Check(args) => check::<S>(args),
        OwnCommand::Sample(args) => sample(args, &stop),
    }
}

/// The strategies of a configuration: that of `[strategy]`, or those of `[[strategies]]`.
fn strategies<S: DeserializeOwned>(config: &Config, file: &Path) -> Result<Vec<Hosting<S>>, Failure> {
    let hosting = |strategy: S, section: Option<&StrategySection>| {
        let risk = section.and_then(|section| section.risk.as_ref());
        let risk = risk.unwrap_or(&config.trader.risk);
        Hosting {
            name: section.map_or("strategy", |section| &section.name).to_string(),
            strategy,
            feeds: section.and_then(|section| section.feeds.clone()),
            sessions: section.and_then(|section| section.sessions.clone()),
            on_every_event: false,
            ends_with_session: false,
            max_orders: risk.max_orders,
            risk: risk_of(&config.controls, risk),
        }
    };
    if config.strategies.is_empty() {
        let strategy = parameters(&config.strategy, file, "[strategy]")?;
        return Ok(vec![hosting(strategy, None)]);
    }
    let sections = config.strategies.iter().map(|section| {
        let place = format!("[[strategies]] {}", section.name);
        let strategy = parameters(&section.parameters, file, &place)?;
        Ok(hosting(strategy, Some(section)))
    });
    sections.collect()
}

/// A configuration with one of its strategies alone, if one is named.
fn chosen(config: &mut Config, name: Option<&str>) -> Result<(), Failure> {
    let names: Vec<&str> = config.strategies.iter().map(|s| s.name.as_str()).collect();
    let place = match (name, names.len()) {
        (None, _) => return Ok(()),
        (Some(name), _) => names.iter().position(|known| *known == name),
    };
    let Some(place) = place else {
        return Err(Failure::config(format!(
            "there is no strategy of the name that --strategy says: {}",
            if names.is_empty() {
                "there is one, in [strategy]".into()
            } else {
                names.join(", ")
            }
        )));
    };
    let section = config.strategies.swap_remove(place);
    config.strategies.clear();
    config.strategy = section.parameters;
    if let Some(risk) = section.risk {
        config.trader.risk = risk;
    }
    Ok(())
}

/// The trading thread, with the strategy in the place of the rule.
fn live<S: Strategy + DeserializeOwned + 'static>(
    config: &Config,
    file: &Path,
    results: Option<&Path>,
    is_child: bool,
    stop: &StopFlag,
) -> Result<(), Failure> {
    let rule = Live::hosting(strategies::<S>(config, file)?);
    trader::run_rule(&config.node(), results, is_child, stop, rule)
}

/// Exchange and strategy as two processes, as `tickwire demo` has exchange and trader.
fn sim<S: Strategy + DeserializeOwned>(args: &SimArgs, stop: &StopFlag) -> Result<(), Failure> {
    let mut own = Config::load(&args.config)?;
    backtest::set(&mut own, &args.set)?;
    strategies::<S>(&own, &args.config)?;
    let demo = DemoArgs {
        what: DemoKind::Trader,
        feed: args.feed.first().copied().unwrap_or(Protocol::Itch50),
        seconds: args.seconds,
        rate: args.rate,
        symbols: args.symbols,
        loss: args.loss,
        duplicate: 0.0,
        reorder: 0.0,
        entry: tickwire_quoterd::QuoteEntry::MassQuotes,
        seed: args.seed,
        dir: args.dir.clone(),
        verbose: args.verbose,
    };
    crate::demo::run_with(&demo, &args.feed, stop, |config| {
        config.strategy = own.strategy;
        config.strategies = own.strategies;
        config.trader.risk = own.trader.risk;
        config.controls = own.controls;
        config.exchange.orders_min = 0;
    })
}

/// A session of the simulated exchange, as a capture of both lines.
fn sample(args: &SampleArgs, stop: &StopFlag) -> Result<(), Failure> {
    let usage = |what: &'static str| move |e: String| Failure::config(format!("--{what}: {e}"));
    for feed in &args.feed {
        tickwire_venues::wiring::check_published(*feed)?;
    }
    let mut config = Config::of_protocols(&args.feed);
    config.exchange.symbols = Symbols::try_from(f64::from(args.symbols)).map_err(usage("symbols"))?;
    config.exchange.rate = Rate::try_from(f64::from(args.rate)).map_err(usage("rate"))?;
    config.exchange.duration_s = DurationS::try_from(args.seconds).map_err(usage("seconds"))?;
    config.exchange.seed = args.seed;
    config.check().map_err(Failure::config)?;
    tickwire_simulator::recording::write(&config.market(), &args.file, None, None, stop)
}

fn check<S: Strategy + DeserializeOwned>(args: &CheckArgs) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    let hosted = strategies::<S>(&config, &args.config)?;
    let is_one = hosted.len() == 1;
    let each = hosted.iter().flat_map(|hosted| {
        hosted
            .strategy
            .subscriptions()
            .into_iter()
            .map(|s| (&hosted.name, s))
    });
    for (name, subscription) in each {
        if !is_one {
            print!("{name} ");
        }
        match subscription {
            Subscription::Symbol(symbol) => println!("subscribes to {symbol}"),
            Subscription::Consolidated(symbol) => {
                println!("subscribes to {symbol} and its consolidated book")
            }
            Subscription::All => println!("subscribes to everything"),
        }
    }
    println!(
        "{}: the configuration and the parameters can be read",
        args.config.display()
    );
    Ok(())
}

/// A strategy with these parameters.
fn parameters<S: DeserializeOwned>(table: &toml::Table, file: &Path, place: &str) -> Result<S, Failure> {
    S::deserialize(toml::Value::Table(table.clone())).map_err(|e| {
        Failure::config(format!(
            "{}: {place}: {}",
            file.display(),
            e.to_string().trim_end()
        ))
    })
}
