//! Tickwire: market data off the wire, books, a decision, an order back on the wire, and how fast that was.
//!
//! A trading rule of your own is a [`Strategy`](prelude::Strategy) and one line: `tickwire::main::<MyStrategy>()`.
//!
//! ```no_run
//! use serde::Deserialize;
//! use std::process::ExitCode;
//! use tickwire::prelude::*;
//!
//! #[derive(Deserialize)]
//! struct Taker {
//!     symbol: String,
//!     lot: u32,
//! }
//!
//! impl Strategy for Taker {
//!     fn subscriptions(&self) -> Vec<Subscription> {
//!         vec![Subscription::symbol(&self.symbol)]
//!     }
//!
//!     fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
//!         if let Some(offer) = change.new_best_price(Side::Ask) {
//!             let _ = ctx.buy_now(change.instrument, self.lot, offer);
//!         }
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     tickwire::main::<Taker>()
//! }
//! ```
//! `docs/write-a-strategy.md` goes from nothing to a backtest. The program `tickwire` itself is [`cli`].
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

mod bench;
mod cep;
mod cli;
mod config;
mod decode;
mod demo;
#[cfg(test)]
mod documented;
mod feedbench;
mod fix;
mod lab;
mod publishbench;
mod quote;
mod reconcile;
mod report;
mod strategy;
mod wirebench;

pub use strategy::main;

/// What a strategy is written with.
pub mod prelude {
    pub use tickwire_market::{
        BookState, BookUpdate, ClientOrderId, Instrument, InstrumentId, Level, MarketEvent, Nanos, Price,
        Qty, Side, Symbol, TimeInForce, TradingStatus, Volume,
    };
    pub use tickwire_trading::strategy::{
        BookChange, Context, NotSent, OrderEvent, Strategy, Subscription, Ticket, TimerId, Trade,
    };
    pub use tickwire_trading::{Order, OrderState, Position, ReportKind, RiskReject};
}

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use tickwire_runtime::affinity::Cores;
use tickwire_runtime::signal::StopFlag;

use tickwire_console::failure::Failure;
use tickwire_control::http::Served;
use tickwire_control::notice::Notice;
use tickwire_control::process::tie_to;
use tickwire_desk::{risk, vol};
use tickwire_feedd::FeedArgs;
use tickwire_node::{trader, watchdog};
use tickwire_player as play;
use tickwire_replay::replay;
use tickwire_simulator::{journal, operator, recording, venue};
use tickwire_venues::{channels, wiring};
use tickwire_views::{self as views, host};

use self::cli::{Command, ExchangeArgs};
use config::Config;
use tickwire_venues::protocol::Protocol;

#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

/// The program `tickwire`, with the arguments of the process.
pub fn cli() -> ExitCode {
    tickwire_console::set_version(tickwire_console::Version {
        text: env!("TICKWIRE_VERSION"),
        commit: option_env!("TICKWIRE_COMMIT"),
    });
    let cli = match self::cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            let code = views::usage_code(&error, std::env::args_os().nth(1).as_deref());
            // The terminal or pipe may be gone: then there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let is_child = match &cli.command {
        Command::Exchange(args) => args.child_of.is_some(),
        Command::Trade(args) => args.child_of.is_some(),
        Command::Quote(args) => args.child_of.is_some(),
        _ => false,
    };
    let done = tickwire_control::client::trust(cli.owner.as_deref()).and_then(|()| run(&cli.command));
    tickwire_console::finish();
    let done = done.and_then(|code| tickwire_console::out::failure().map_or(Ok(code), Err));
    match done {
        Ok(code) => code,
        Err(failure) => {
            if is_child {
                // The parent says it, with the child's name.
                Notice::Failed {
                    message: failure.message.clone(),
                }
                .send();
            } else {
                eprintln!("tickwire: {failure}");
            }
            ExitCode::from(failure.code as u8)
        }
    }
}

fn run(command: &Command) -> Result<ExitCode, Failure> {
    // Before anything else: no thread is pinned yet.
    Cores::count();
    let stop = StopFlag::install().map_err(|e| Failure::system(format!("cannot catch signals: {e}")))?;
    let done = match command {
        Command::Demo(args) => demo::run(args, &stop),
        Command::Exchange(args) => exchange(args, &stop),
        Command::Trade(args) => match (&args.config, args.tell, &args.socket) {
            (Some(config), ..) if args.venue.is_some() => lab::trader_alone(config, &stop),
            (Some(config), ..) => side(config, args.results.as_deref(), args.child_of, |c, results| {
                trader::run(&c.node(), results, args.child_of.is_some(), &stop)
            }),
            (None, Some(word), Some(socket)) => trader::tell(socket, word),
            _ => Err(Failure::config(
                "give --config FILE, or --tell WHAT with --socket SOCKET",
            )),
        },
        Command::Quote(args) => match (&args.config, args.tell, &args.socket) {
            (Some(config), ..) => side(config, args.results.as_deref(), args.child_of, |c, results| {
                quote::run(c, results, (args.child_of.is_some(), args.force), &stop)
            }),
            (None, Some(word), Some(socket)) => quote::tell(socket, word),
            _ => Err(Failure::config(
                "give --config FILE, or --tell WHAT with --socket SOCKET",
            )),
        },
        Command::Watchdog(args) => {
            Config::load(&args.config).and_then(|config| watchdog::run(&config.node(), &stop))
        }
        Command::Journal(args) => journal::run(args),
        Command::Reconcile(args) => reconcile::run(args),
        Command::Feed(args) => feed(args, &stop),
        Command::Replay(args) => replay::run(args, &stop),
        Command::Play(args) => play::run(args, &stop),
        Command::New(args) => strategy::new(args, &stop),
        Command::Decode(args) => decode::run(args),
        Command::Fix(args) => fix::run(args, &stop),
        Command::Vol(args) => vol::run(args),
        Command::Host { command } => host::run(command, &stop),
        Command::Lab { command } => lab::run(command, &stop),
        Command::Risk(args) => risk::run(args),
        Command::Config { file, feed } => print_config(file.as_deref(), *feed),
        Command::Counters => {
            print!("{}", tickwire_control::summary::counter_list());
            Ok(())
        }
        Command::Bench(args) if args.publish => publishbench::run(args),
        Command::Bench(args) if !args.feed.is_empty() => feedbench::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Book(args) => views::book(args, &stop),
        Command::Top(args) => views::top(args, &stop),
        Command::Stats(args) => views::stats(args, &stop),
        Command::Latency(args) => views::latency(args),
        Command::Check { command } => return views::check(command, &stop),
        Command::Subscribe(args) => views::subscribe(args, true),
        Command::Unsubscribe(args) => views::subscribe(args, false),
        Command::Subscriptions(args) => views::subscriptions(args),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Runs the feed handler.
fn feed(args: &FeedArgs, stop: &StopFlag) -> Result<(), Failure> {
    let config = Config::load(&args.config)?.daemon();
    let text = std::fs::read_to_string(&args.config)
        .map_err(|e| Failure::config(format!("cannot read {}: {e}", args.config.display())))?;
    config.check(&args.config, &text)?;
    tickwire_feedd::run(args, &config, &|address, folder| metrics(address, folder), stop)
}

/// The metrics endpoint of a region.
fn metrics(address: SocketAddr, folder: &Path) -> Result<Box<dyn Served>, Failure> {
    views::MetricsServer::bind(address, folder).map(|server| Box::new(server) as Box<dyn Served>)
}

/// Runs an exchange, records what it would send, or says something to one.
fn exchange(args: &ExchangeArgs, stop: &StopFlag) -> Result<(), Failure> {
    let config = match (&args.config, &args.socket) {
        (Some(config), _) => config,
        (None, Some(socket)) => return operator::tell(socket, &args.tell),
        (None, None) => {
            return Err(Failure::config(
                "give --config FILE, or --tell WHAT with --socket SOCKET",
            ));
        }
    };
    if args.venue.is_some() {
        return lab::exchange_alone(config, stop);
    }
    side(
        config,
        args.results.as_deref(),
        args.child_of,
        |c, results| match &args.write_capture {
            Some(path) => recording::write(&c.market(), path, args.packets, results, stop),
            None => venue::run(&c.market(), results, args.child_of.is_some(), stop),
        },
    )
}

/// Runs one side of a session from its configuration.
fn side(
    config: &Path,
    results: Option<&Path>,
    child_of: Option<u32>,
    run: impl FnOnce(&Config, Option<&Path>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Some(parent) = child_of {
        tie_to(parent)?;
    }
    let config = Config::load(config)?;
    if let Some(dir) = results {
        tickwire_runtime::files::create_folders(dir).map_err(|e| {
            Failure::system(format!("cannot create the results folder {}: {e}", dir.display()))
        })?;
    }
    run(&config, results)
}

fn print_config(file: Option<&std::path::Path>, feed: Protocol) -> Result<(), Failure> {
    wiring::check_published(feed)?;
    let mut config = file.map_or_else(|| Ok(Config::of_protocol(feed)), Config::load)?;
    for feed in &mut config.feed {
        let protocol = feed.protocol();
        feed.recovery = Some(channels::RecoverySection::whole(feed.recovery, protocol));
    }
    print!("{}", config.without_passwords().to_toml());
    Ok(())
}
