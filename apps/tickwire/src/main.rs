//! The program `tickwire`: its command line, and which library does what.
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

mod beside;
mod cli;
mod decode;
#[cfg(test)]
mod documented;
mod fix;
mod manual;
mod quoter_demo;
mod reconcile;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tickwire_runtime::signal::StopFlag;

use tickwire_console::failure::Failure;
use tickwire_control::http::Served;
use tickwire_control::notice::Notice;
use tickwire_desk::{risk, vol};
use tickwire_feedd::FeedArgs;
use tickwire_node::{trader, watchdog};
use tickwire_player as play;
use tickwire_replay::replay;
use tickwire_simulator::journal;
use tickwire_venues::{channels, wiring};
use tickwire_views::{self as views, host};

use self::cli::Command;
use tickwire::config::Config;
use tickwire::demo::{self, DemoKind};
use tickwire::sides;
use tickwire_venues::protocol::Protocol;

fn main() -> ExitCode {
    tickwire_runtime::alloc::end_without_memory();
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
    let done = tickwire_console::run(|| {
        tickwire_control::client::trust(cli.owner.as_deref()).and_then(|()| run(&cli.command))
    });
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
    tickwire_control::process::heed_environment()?;
    let stop = StopFlag::install().map_err(|e| Failure::system(format!("cannot catch signals: {e}")))?;
    let done = match command {
        Command::Demo(args) => match args.what {
            DemoKind::Trader => demo::run(args, &stop),
            DemoKind::Quoter => quoter_demo::run(args, &stop),
        },
        Command::Exchange(args) if args.venue.is_some() => Err(beside::lab()),
        Command::Exchange(args) => sides::exchange(args, &stop),
        Command::Trade(args) => match (&args.config, args.tell, &args.socket) {
            _ if args.venue.is_some() => Err(beside::lab()),
            (Some(config), ..) => {
                sides::side(config, args.results.as_deref(), args.child_of, |c, results| {
                    trader::run(&c.node(), results, args.child_of.is_some(), &stop)
                })
            }
            (None, Some(word), Some(socket)) => trader::tell(socket, word),
            (None, None, Some(socket)) if args.say.is_some() => {
                trader::say(socket, args.say.as_deref().unwrap_or_default())
            }
            _ => Err(Failure::config(
                "give --config FILE, or --tell WHAT or --say WORDS with --socket SOCKET",
            )),
        },
        Command::Quote(args) => match (&args.config, args.tell, &args.socket) {
            (Some(config), ..) => {
                sides::side(config, args.results.as_deref(), args.child_of, |c, results| {
                    tickwire_quoterd::run(&c.quote(), results, (args.child_of.is_some(), args.force), &stop)
                })
            }
            (None, Some(word), Some(socket)) => tickwire_quoterd::tell(socket, word),
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
        Command::Export(args) => tickwire_export::run(args, &stop),
        Command::Archive(args) => tickwire_export::archive::run(args, &stop),
        Command::Jobs { command } => tickwire::jobs::command(command, &stop),
        Command::Mirror { command } => tickwire_aeron::run(command, &stop),
        Command::Inspect(args) => tickwire_inspect::run(args, &stop),
        Command::Record(args) => tickwire_record::run(args, &stop),
        Command::Replay(args) => replay::run(args, &stop),
        Command::Play(args) => play::run(args, &stop),
        Command::New(args) => tickwire::strategy::new(args, &stop),
        Command::Strategy { command } => tickwire::strategy::file::run(command, &stop),
        Command::Decode(args) => decode::run(args),
        Command::Fix(args) => fix::run(args, &stop),
        Command::Vol(args) => vol::run(args),
        Command::Host { command } => host::run(command, &stop),
        Command::Lab(_) | Command::Bench(_) => Err(beside::lab()),
        Command::Risk(args) => risk::run(args),
        Command::Config { file, feed } => print_config(file.as_deref(), *feed),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { folder } => manual::pages(folder),
        Command::Counters => {
            print!("{}", tickwire_control::summary::counter_list());
            Ok(())
        }
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
    let programs = config.daemon.programs.clone();
    let metrics = move |address, folder: &Path| metrics(address, folder, &programs);
    tickwire_feedd::run(args, &config, &metrics, stop)
}

/// The metrics endpoint of a region, and the page, with other programs of these folders.
fn metrics(address: SocketAddr, folder: &Path, programs: &[PathBuf]) -> Result<Box<dyn Served>, Failure> {
    let server = views::MetricsServer::bind(address, folder)?.with_programs(programs)?;
    Ok(Box::new(server))
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
