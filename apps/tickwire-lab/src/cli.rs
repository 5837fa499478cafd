//! The command line of `tickwire-lab`: what `tickwire` passes on to it, by the same names.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use tickwire::sides::{ExchangeArgs, SideArgs};
use tickwire_simulator::session::Packing;
use tickwire_venues::protocol::Protocol;

use crate::lab::LabCommand;
use crate::scale::Curve;

/// What Tickwire measures, and how fast it is.
#[derive(Parser, Debug)]
#[command(
    name = "tickwire-lab",
    version = env!("CARGO_PKG_VERSION"),
    max_term_width = 110,
    arg_required_else_help = true,
    after_help = "\
`tickwire lab`, `tickwire bench`, `tickwire fix bench` and `tickwire fix trader` start this program, which lies beside `tickwire`.

Exit codes:
  0    done, and everything that was checked held
  1    a check failed, or a regression
  2    wrong command line, scenario or configuration
  3    the operating system refused something, or a file cannot be read
  4    the other side went away before the end
  130  ended by Ctrl-C or SIGTERM

Start with:  tickwire-lab lab list"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// The latency lab: measurements as scenario files, run by one command each, kept, shown and compared
    #[command(after_help = "\
Examples:
  tickwire lab list
  tickwire lab run quadra
  tickwire lab compare tickwire-lab/before tickwire-lab/after \\
      --fail-above 1.05 --at p99")]
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Measures the path of a packet in memory: decode, decode + book, packet bytes to order bytes
    #[command(after_help = "\
Examples:
  tickwire bench
  tickwire bench --messages 20000000 --symbols 8500 --core 1
  tickwire bench --publish --messages 500000
      packet -> book visible in shared memory, feed by feed
  tickwire bench --feed all --messages 500000
      decode -> event, books, filtered, packet -> order, feed by feed
  tickwire bench --scale orders --up-to 100000000
      what a change of the books takes, and an order of memory, as orders grow")]
    Bench(BenchArgs),
    /// FIX sessions, measured
    #[command(after_help = "\
Example:
  tickwire fix bench --wait spin")]
    Fix {
        #[command(subcommand)]
        command: FixCommand,
    },
    /// The exchange of a scenario, alone: for the other side on another machine
    #[command(after_help = "\
Example:
  tickwire exchange --venue quadra -c examples/lab/quadra.toml")]
    Exchange(ExchangeArgs),
    /// The trader of the scenario `cep` with `market = "itch"`: buys whenever its instrument is offered at
    /// its limit or below
    #[command(after_help = "\
Examples:
  tickwire-lab ticks -c trade.toml
      with the configuration that `tickwire lab run cep` has written into its folder
  tickwire-lab ticks --armed -c trade.toml
      by an order that lies at the hook of the network driver

It ends by Ctrl-C, or with the session.

Exit codes: 0 the session is over, 2 the configuration is wrong, 3 the system refused, 4 the session was lost, 130 Ctrl-C.")]
    Ticks(TicksArgs),
    /// The trader of a scenario, alone
    #[command(after_help = "\
Example:
  tickwire trade --venue quadra -c examples/lab/quadra.toml")]
    Trade(SideArgs),
}

#[derive(Subcommand, Debug)]
pub(crate) enum FixCommand {
    /// Measures an order's round trip over loopback: two whole sessions with their stores, beside bare TCP in
    /// the same run
    #[command(after_help = "\
Examples:
  tickwire fix bench
  tickwire fix bench --wait spin --cores 0,1 --orders 50000 --rounds 9

Exit codes: 0 measured, 1 an order was not answered rightly, 2 the command line is wrong, 3 the system refused, 130 Ctrl-C.")]
    Bench(FixBenchArgs),
    /// Subscribes to market data in FIX and buys whenever the best offer has changed: the trader of
    /// `tickwire lab run fix`
    #[command(after_help = "\
Examples:
  tickwire fix trader -c trader.cfg
      two sessions; the one that has the market data is MARKET
  tickwire fix trader -c trader.cfg --stamps trader.stamps
      notes when each order's message came, was decided on and answered

The configuration is QuickFIX's, with two sessions, one of them with TargetCompID=MARKET. It ends with the venue's Logout.

Exit codes: 0 the venue logged out, 1 a message could not be read or an order not be sent, 2 the configuration is wrong, 3 the system \
refused, 130 Ctrl-C (after logging out).")]
    Trader(FixTraderArgs),
}

fn parse_rounds(text: &str) -> Result<usize, String> {
    let rounds = text.parse().ok().filter(|n| (1..=1_000).contains(n));
    rounds.ok_or("a number from 1 to 1000".into())
}

#[derive(Args, Clone, Debug)]
pub(crate) struct BenchArgs {
    /// Messages of the generated session
    #[arg(long, default_value_t = 2_000_000, value_name = "N")]
    pub(crate) messages: u64,
    /// Instruments of the generated session: 2,000, with --feed and --publish 1,000, unless given
    #[arg(long, value_name = "N")]
    pub(crate) symbols: Option<u32>,
    /// Seed of the session
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) seed: u64,
    /// Core to pin to
    #[arg(long, value_name = "N")]
    pub(crate) core: Option<usize>,
    /// Repetitions; the table shows the median run
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub(crate) runs: usize,
    /// Measure these feeds side by side instead (repeatable; `all` for every protocol); with --scale filter
    /// and hook: of these feeds
    #[arg(long, value_name = "P", value_parser = parse_feed)]
    pub(crate) feed: Vec<FeedChoice>,
    /// Measure from packet to shared memory instead: books, rings, consolidated books (every protocol unless --feed
    /// says which)
    #[arg(long)]
    pub(crate) publish: bool,
    /// With --publish: how full the packets are (repeatable; both unless given)
    #[arg(long, value_name = "P", requires = "publish")]
    pub(crate) packets: Vec<Packing>,
    /// Write a raw ITCH 5.0 file of the session instead of measuring (for peers to read the same input)
    #[arg(long, value_name = "FILE")]
    pub(crate) write_session: Option<PathBuf>,
    /// How figures grow with sizes instead: one table a curve (repeatable)
    #[arg(long, value_name = "CURVE", value_enum, conflicts_with_all = ["publish", "write_session"])]
    pub(crate) scale: Vec<Curve>,
    /// With --scale: the largest size
    #[arg(long, value_name = "N", requires = "scale", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) up_to: Option<u64>,
}

#[cfg(test)]
impl BenchArgs {
    /// A session that is over in a moment.
    pub(crate) fn small() -> BenchArgs {
        BenchArgs {
            messages: 8_000,
            symbols: Some(20),
            seed: 5,
            core: None,
            runs: 1,
            feed: Vec::new(),
            publish: false,
            packets: Vec::new(),
            write_session: None,
            scale: Vec::new(),
            up_to: None,
        }
    }
}

/// Feeds to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedChoice {
    All,
    One(Protocol),
}

fn parse_feed(text: &str) -> Result<FeedChoice, String> {
    use clap::ValueEnum;
    match text {
        "all" => Ok(FeedChoice::All),
        _ => Protocol::from_str(text, false).map(FeedChoice::One).map_err(|_| {
            let names = Protocol::ALL.map(Protocol::name).join(", ");
            format!("there are all, {names}")
        }),
    }
}

#[derive(Args, Debug)]
pub(crate) struct FixBenchArgs {
    /// Orders of a round
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) orders: u64,
    /// Rounds, taking turns with those of bare TCP
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = parse_rounds)]
    pub(crate) rounds: usize,
    /// Only this way of waiting, `spin` or `block`; both without
    #[arg(long, value_name = "HOW", value_parser = ["spin", "block"])]
    pub(crate) wait: Option<String>,
    /// Cores of the side that sends orders and of the other
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1)]
    pub(crate) cores: Vec<usize>,
}

#[derive(Args, Debug)]
pub(crate) struct TicksArgs {
    /// Configuration file of a trader (TOML)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Arm each order at the hook; needs trader.send = "delegated" and receiver.backend = "xdp"
    #[arg(long)]
    pub(crate) armed: bool,
    /// Folder that the configuration lies in
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// The process that started this one, and with which it ends
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) child_of: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct FixTraderArgs {
    /// QuickFIX configuration file: sections `[DEFAULT]` and `[SESSION]`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Writes the stamps of orders to this file at the end: records of seven numbers of 64 bits, as
    /// docs/lab.md says
    #[arg(long, value_name = "FILE")]
    pub(crate) stamps: Option<PathBuf>,
    /// Of one order in so many
    #[arg(long, default_value_t = 1, value_name = "N", requires = "stamps", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_every: u64,
    /// Of at most so many
    #[arg(long, default_value_t = 1_000_000, value_name = "N", requires = "stamps")]
    pub(crate) keep_at_most: usize,
    /// The process that started this one, and with which it ends
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) child_of: Option<u32>,
}
