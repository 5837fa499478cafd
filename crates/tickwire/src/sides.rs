//! The two sides of a session as processes: the exchange, and who trades on it.

use std::path::{Path, PathBuf};

use tickwire_console::failure::Failure;
use tickwire_control::process::tie_to;
use tickwire_node::trader::TraderWord;
use tickwire_runtime::signal::StopFlag;
use tickwire_simulator::{operator, recording, venue};

use crate::config::Config;

/// Venues that are not made of a matching engine and feeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum SimpleVenue {
    /// A message at a set interval, an order for each: the exchange of `tickwire lab run quadra`
    Quadra,
}

/// The arguments of `tickwire exchange`.
#[derive(clap::Args, Debug)]
pub struct ExchangeArgs {
    /// Configuration file (TOML); see examples/demo.toml
    #[arg(short, long, value_name = "FILE", required_unless_present = "tell")]
    pub config: Option<PathBuf>,
    /// Folder for the results
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Be this simple venue instead: `quadra`, where FILE is a scenario of that kind (docs/lab.md)
    #[arg(long, value_enum, value_name = "V", conflicts_with_all = ["results", "child_of", "write_capture"])]
    pub venue: Option<SimpleVenue>,
    /// Tells a running exchange something, through its control socket (exchange.control): status, halt
    /// SYMBOL, call SYMBOL, resume SYMBOL, break NUMBER [erroneous|consent|supervisory], lose PACKETS [a|b],
    /// disconnect, close
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 1..=3,
        requires = "socket",
        conflicts_with_all = ["config", "results", "venue", "write_capture"]
    )]
    pub tell: Vec<String>,
    /// That socket, or its folder
    #[arg(long, value_name = "SOCKET", requires = "tell")]
    pub socket: Option<PathBuf>,
    /// Write what would be sent by multicast into this pcap file instead, in virtual time, and end; - is
    /// standard output. The lines' losses, duplicates and late packets apply; what both lose comes late on
    /// line A
    #[arg(long, value_name = "FILE", conflicts_with = "child_of")]
    pub write_capture: Option<PathBuf>,
    /// Of a capture: cut the session after so many packets, both lines counted, without a close
    #[arg(long, value_name = "N", requires = "write_capture")]
    pub packets: Option<u64>,
    /// End with this process and tell it about progress in JSON (used by `demo`)
    #[arg(long, hide = true, value_name = "PID")]
    pub child_of: Option<u32>,
}

/// The arguments of `tickwire trade`.
#[derive(clap::Args, Debug)]
pub struct SideArgs {
    /// Configuration file (TOML); see examples/demo.toml
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["tell", "say"])]
    pub config: Option<PathBuf>,
    /// Folder for the results of this side
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Be the trader of this simple venue instead: `quadra`, where FILE is a scenario of that kind
    /// (docs/lab.md)
    #[arg(long, value_enum, value_name = "V", conflicts_with_all = ["results", "child_of"])]
    pub venue: Option<SimpleVenue>,
    /// Tells a running trader something, through its control socket (trader.control)
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        requires = "socket",
        conflicts_with = "config"
    )]
    pub tell: Option<TraderWord>,
    /// Says something to every strategy of a running trader, in words of its own (`on_command`)
    #[arg(
        long,
        value_name = "WORDS",
        requires = "socket",
        conflicts_with_all = ["config", "tell"]
    )]
    pub say: Option<String>,
    /// That socket, or its folder
    #[arg(long, value_name = "SOCKET", conflicts_with = "config")]
    pub socket: Option<PathBuf>,
    /// End with this process and tell it about progress in JSON (used by `demo`)
    #[arg(long, hide = true, value_name = "PID")]
    pub child_of: Option<u32>,
}

/// Runs an exchange, records what it would send, or says something to one.
pub fn exchange(args: &ExchangeArgs, stop: &StopFlag) -> Result<(), Failure> {
    let config = match (&args.config, &args.socket) {
        (Some(config), _) => config,
        (None, Some(socket)) => return operator::tell(socket, &args.tell),
        (None, None) => {
            return Err(Failure::config(
                "give --config FILE, or --tell WHAT with --socket SOCKET",
            ));
        }
    };
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
pub fn side(
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
