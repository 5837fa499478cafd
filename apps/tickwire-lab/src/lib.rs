//! The program `tickwire-lab`: everything that is measured.
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

mod bench;
mod cep;
mod cli;
mod feedbench;
mod fix;
mod lab;
mod publishbench;
mod scale;
mod wirebench;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_runtime::alloc;
use tickwire_runtime::signal::StopFlag;

use cli::{BenchArgs, Cli, Command, FixCommand};

/// The whole program, with the arguments of the process.
pub fn main() -> ExitCode {
    tickwire_console::set_version(tickwire_console::Version {
        text: env!("TICKWIRE_VERSION"),
        commit: option_env!("TICKWIRE_COMMIT"),
    });
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // The terminal or pipe may be gone: then there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    // Before anything else: no thread is pinned yet.
    let done = tickwire_console::run(|| {
        tickwire_control::process::heed_environment()?;
        let stop = StopFlag::install().map_err(|e| Failure::system(format!("cannot catch signals: {e}")))?;
        run(&cli.command, &stop)
    });
    match done.and_then(|()| tickwire_console::out::failure().map_or(Ok(()), Err)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tickwire: {failure}");
            ExitCode::from(failure.code as u8)
        }
    }
}

/// The program's commands and options: for the tests of what the pages show.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// The profile of Cargo that this program was built with, and `+pgo` behind it with a record of a training
/// run.
const PROFILE: &str = env!("TICKWIRE_PROFILE");

/// What a reader of figures must know of a program that was built with `profile`, as a sentence; `None` where
/// it is what is handed on.
fn not_what_ships(profile: &str) -> Option<String> {
    let difference = match profile {
        "dist+pgo" => return None,
        "dist" => "without the record of a training run",
        "release" => "which builds quickly",
        _ => "which is no optimised build of the whole program",
    };
    let ships = match profile {
        "dist" => " and takes up to three tenths less time for a packet",
        "release" => " and takes up to a third less time for a packet",
        _ => "",
    };
    Some(format!(
        "This program was built with the profile `{profile}`, {difference}; what is handed on is built by `cargo xtask pgo`{ships}."
    ))
}

/// The three of them measure one thread: the core is chosen before anything is made.
fn bench(args: &BenchArgs) -> Result<(), Failure> {
    if let Some(core) = args.core {
        let core =
            i32::try_from(core).map_err(|_| Failure::config(format!("--core {core}: there is none")))?;
        tickwire_control::process::pin(core)?;
    }
    // As daemons and traders do; the curves are of memory as it is touched.
    if args.scale.is_empty() {
        alloc::populate_large_blocks();
        if !alloc::prefault_asked_for().map_err(Failure::config)? {
            let name = alloc::PREFAULT_VARIABLE;
            eprintln!("warning: {name} is 0: page faults fall into what is measured");
        }
    }
    match args.feed.is_empty() {
        _ if !args.scale.is_empty() => scale::run(args),
        _ if args.publish => publishbench::run(args),
        true => bench::run(args),
        false => feedbench::run(args),
    }
}

fn run(command: &Command, stop: &StopFlag) -> Result<(), Failure> {
    if matches!(command, Command::Lab { .. } | Command::Bench(_)) {
        // Who builds without optimising knows it.
        let is_optimised = ["release", "dist"].contains(&PROFILE);
        if let Some(sentence) = not_what_ships(PROFILE).filter(|_| is_optimised) {
            warn(format_args!("{sentence}"));
        }
    }
    match command {
        Command::Lab { command } => lab::run(command, stop),
        Command::Bench(args) => bench(args),
        Command::Fix {
            command: FixCommand::Bench(args),
        } => fix::bench::run(args, stop),
        Command::Fix {
            command: FixCommand::Trader(args),
        } => fix::rig::trade(args, stop),
        Command::Ticks(args) => cep::ticks::run(args, stop),
        Command::Exchange(args) => lab::exchange_alone(&scenario(args.config.as_deref())?, stop),
        Command::Trade(args) => lab::trader_alone(&scenario(args.config.as_deref())?, stop),
    }
}

/// The scenario of a side that is started alone.
fn scenario(file: Option<&std::path::Path>) -> Result<std::path::PathBuf, Failure> {
    file.map(Into::into)
        .ok_or_else(|| Failure::config("give the scenario with --config FILE"))
}
