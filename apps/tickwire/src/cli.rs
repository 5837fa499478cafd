//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use tickwire_aeron::MirrorCommand;
use tickwire_desk::risk::RiskArgs;
use tickwire_desk::vol::VolArgs;
use tickwire_export::ExportArgs;
use tickwire_export::archive::ArchiveArgs;
use tickwire_feedd::FeedArgs;
use tickwire_inspect::InspectArgs;
use tickwire_player::PlayArgs;
use tickwire_record::RecordArgs;
use tickwire_replay::replay::ReplayArgs;
use tickwire_simulator::journal::JournalArgs;
use tickwire_venues::protocol::Protocol;
use tickwire_views::host::HostCommand;
use tickwire_views::{
    BookArgs, CheckCommand, LatencyArgs, StatsArgs, SubscribeArgs, SubscriptionsArgs, TopArgs,
};

use tickwire::demo::DemoArgs;
use tickwire::sides::{ExchangeArgs, SideArgs};
use tickwire::strategy::NewArgs;

use crate::decode::Payloads;
use tickwire_quoterd::QuoterWord;

/// Market data in, books, orders out, measured.
#[derive(Parser, Debug)]
#[command(
    name = "tickwire",
    version = env!("TICKWIRE_VERSION"),
    max_term_width = 110,
    arg_required_else_help = true,
    after_help = "\
Exit codes:
  0    done, and everything that was checked held
  1    a check failed: books differ, an order is unaccounted for, damaged input
  2    wrong command line or configuration
  3    the operating system refused something, or a file cannot be read
  4    the other side went away before the end, or no daemon answers
  130  ended by Ctrl-C or SIGTERM
`tickwire check nagios` answers 0 to 3 as monitoring plugins do: OK, WARNING, CRITICAL, UNKNOWN.

Start with:  tickwire demo"
)]
pub(crate) struct Cli {
    /// Trust what this user of the machine runs, beside what you and root run: regions and control sockets;
    /// else TICKWIRE_OWNER
    #[arg(long, global = true, value_name = "USER")]
    pub(crate) owner: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Exchange and trader, or quoter, on this machine: multicast in, orders out, books compared, latency
    /// reported
    #[command(after_help = "\
Example:
  tickwire demo --loss 0.01 --seconds 10
  tickwire demo --feed mdp3 --loss 0.01
  tickwire demo quoter --symbols 64 --rate 5000
  tickwire demo quoter --entry orders   for a venue that takes no mass quotes
  tickwire demo --dir out && xdg-open out/report.html")]
    Demo(DemoArgs),
    /// The simulated exchange: publishes every configured feed by multicast, serves its recovery, takes
    /// orders by FIX and OUCH
    #[command(after_help = "\
Ready when it prints its ports (standard error): \"listening: order entry on port 26404, OUCH on port 26405, ...\".
With exchange.journal in the file it goes on where it was, however it ended; see `tickwire journal --help`.

Examples:
  tickwire exchange -c examples/demo.toml
      (and in another terminal: tickwire trade -c examples/demo.toml)
  tickwire exchange -c examples/exchange.toml
      every kind of instrument, FIX of several versions, OUCH, a journal
  tickwire exchange -c examples/cme.toml --write-capture cme.pcap
  tickwire exchange --socket $XDG_RUNTIME_DIR/tickwire-exchange --tell halt AAPL
      the running one of examples/exchange.toml")]
    Exchange(ExchangeArgs),
    /// What is in the journal of an exchange, and whether it makes the market that it says
    #[command(after_help = "\
Exit codes: 0 all is well, 1 a replay did not make what was noted, 2 not a journal, 3 the file cannot be read.

Examples:
  tickwire journal exchange.journal
      how much of what is in it
  tickwire journal exchange.journal --verify
      replays it and compares the state hashes noted in it
  tickwire journal exchange.journal --orders
      every client order and what became of it, as CSV
  tickwire journal exchange.journal --config
      the configuration it was written with")]
    Journal(JournalArgs),
    /// Our record of a day's executions against the venue's, from files
    #[command(after_help = "\
Files of either side: `fills` of a quoter's state folder, FIX message logs and stores (ours, or those of a drop copy), the journal of \
an exchange. Executions are compared by ExecID; what the venue took back counts no more.

Exit codes: 0 they agree, 1 they differ or there is nothing to compare, 2 a file is damaged, 3 a file cannot be read.

Examples:
  tickwire reconcile --own state/fills --venue exchange.journal --session QUOTER
  tickwire reconcile --own log/FIX.4.4-TRADER-VENUE.messages.log --venue dropcopy.log")]
    Reconcile(ReconcileArgs),
    /// Writes a package for a trading rule of your own: source, parameters, and a capture of the simulated
    /// exchange to try it on
    #[command(after_help = "\
The package needs Rust; `cargo run --release -- backtest -c strategy.toml sample.pcap` in it builds and backtests. \
docs/write-a-strategy.md goes on from there.

Example:
  tickwire new my-strategy --tickwire .
      in a checkout of Tickwire")]
    New(NewArgs),
    /// A strategy in one file of the strategy language: checks, formats, tests, explains, backtests and runs
    /// it, and makes a core in hardware of it
    #[command(after_help = "\
Example:
  tickwire strategy test examples/strategies/*.tw

docs/language.md is the language; examples/strategies has ten files.")]
    Strategy {
        #[command(subcommand)]
        command: tickwire::strategy::file::FileCommand,
    },
    /// The trader: receives both lines, keeps the books, applies the rule, sends orders
    #[command(after_help = "\
It cancels what is open when it is killed (--tell kill, or the kill file of [controls]), stopped, or ends for any other reason, and asks the \
venue what became of it. docs/controls.md has every control before a trade.

Examples:
  tickwire trade -c examples/demo.toml
      (and in another terminal: tickwire exchange -c examples/demo.toml)
  tickwire trade --socket FOLDER --tell kill
      the running one whose file says trader.control = FOLDER
  tickwire trade --socket FOLDER --say disarm
      a word to its strategies, which know what it means")]
    Trade(SideArgs),
    /// Watches a trader or quoter from a process of its own, and has the venue cancel everything when it does
    /// not turn any more
    #[command(after_help = "\
It reads the count that the other process keeps in shared memory (controls.beat), and has a session of its own at the venue ([watchdog]), \
which must be let cancel for the firm. docs/controls.md.

Example:
  tickwire watchdog -c examples/options.toml

Exit codes: 2 the configuration is wrong, 130 Ctrl-C.")]
    Watchdog(WatchdogArgs),
    /// The options quoter: the future's packets in, mass quotes of every option on it out, within limits
    #[command(after_help = "\
It quotes what the venue has defined on quoter.underlying, over FIX, and pulls every quote when the feed has a gap, the underlying \
jumps, an answer is late, a limit is reached, or it is stopped. docs/quoter.md.

Examples:
  tickwire quote -c examples/options.toml
      (and in another terminal: tickwire exchange -c examples/options.toml)
  tickwire demo quoter
      both, and what they say compared
  tickwire quote --tell pull --socket $XDG_RUNTIME_DIR/tickwire-quoter

Exit codes: 0 the session ended and nothing is quoted any more, 2 the configuration is wrong, 3 the system refused, 4 the venue went away \
or did not answer, 130 Ctrl-C (after every quote was cancelled).")]
    Quote(QuoteArgs),
    /// The feed handler as a daemon: books, consolidated books, events and statistics in shared memory for
    /// other programs
    #[command(after_help = "\
Examples:
  tickwire feed -c examples/daemon.toml
      (and in another terminal: tickwire exchange -c examples/daemon.toml)
  tickwire feed -c examples/whole-market.toml --replay day.pcap.zst --speed 3 \\
      --exit
  tickwire feed -c feeds.toml --folder $XDG_RUNTIME_DIR/second")]
    Feed(FeedArgs),
    /// The shared memory of a feed handler on other hosts, by Aeron: books and every event, late joiners
    /// included
    #[command(after_help = "\
On the host of the feed handler `publish`, on every other `receive`: programs there read the same shared memory by the same readers. \
Needs a program that was built with --features aeron. docs/mirror.md is a guide of ten minutes.

Examples:
  tickwire mirror publish --channel 'aeron:udp?endpoint=224.20.30.41:40456|interface=10.77.0.1/24'
  tickwire mirror receive --channel 'aeron:udp?endpoint=224.20.30.41:40456|interface=10.77.0.2/24'
      and then: tickwire top

Exit codes: 2 wrong arguments, or a program that was built without Aeron, 3 the system or Aeron refused, 130 Ctrl-C.")]
    Mirror {
        #[command(subcommand)]
        command: MirrorCommand,
    },
    /// What is in recordings: protocols, lines, channels, symbols, rates, gaps, damage, and the configuration
    /// for them
    #[command(after_help = "\
The files are read twice: first to find out by content which destinations are lines and recovery ports of one channel, then through \
channels and books. docs/inspect.md.

Examples:
  tickwire inspect day.pcap.zst
  tickwire inspect a.pcap b.pcap --write-config feeds.toml --venue edgx
      and then: tickwire replay -c feeds.toml a.pcap b.pcap
  tickwire inspect 01302020.NASDAQ_ITCH50.gz --symbols 0
  tickwire inspect day.pcap --json | jq '.channels[].counters.gaps'

Exit codes: 0 shown, 1 shown, but damage, gaps or a late beginning make its books unreliable, 2 wrong arguments, 3 a file cannot be \
read or written, 130 Ctrl-C.")]
    Inspect(InspectArgs),
    /// Records multicast groups to pcapng with the kernel's stamps in nanoseconds
    #[command(after_help = "\
Files are FOLDER/NAME-20260105T143000-000001.pcapng, 0600, readable while they are written and after a kill; NAME.index.jsonl has a \
line for every one that is done. Each group is an interface of the capture. What the disk does not take waits in --queue, then in the \
kernel's buffers, and is lost and counted by group beyond that. Only the groups are recorded, not connections to servers of recovery. \
docs/record.md.

Examples:
  tickwire record -c examples/whole-market.toml --out day --compress
  tickwire record 239.192.1.1:30001 239.192.2.1:30001 --interface eth1 \\
      --out day --rotate-time 3600 --rotate-size 4096
  tickwire record -c feeds.toml --out day --spin --core 3 --stat 5
      and then: tickwire inspect day/*.pcapng

Exit codes: 0 recorded (--seconds or --packets are over), 1 recorded, but packets were lost (by group), 2 wrong arguments, \
3 a group, the folder or the disk refused, 130 Ctrl-C (everything received is recorded).")]
    Record(RecordArgs),
    /// Recordings as tables in the schemas of DBN: CSV, DBN, Parquet, Arrow or LOBSTER, one file or one for
    /// every date, venue and symbol
    #[command(after_help = "\
Prices are exact decimals. Rows of a book that may be wrong have bit 4 in flags. A file has its name only when it is whole. \
docs/export.md.

Examples:
  tickwire export day.pcap --out day.csv
  tickwire export day.pcap --schema mbp-10 --symbol AAPL --out aapl.csv
  tickwire export 01302020.NASDAQ_ITCH50.gz --date 2020-01-30 --out tables \\
      --partition --format parquet
  tickwire export day.pcap --schema ohlcv-1m --out bars.csv \\
      --from 2026-01-05T14:30:00Z --to 2026-01-05T21:00:00Z
  tickwire export --live --schema trades --seconds 3600 --out hour.csv

Exit codes: 0 written, 1 written, but damage or gaps make some rows doubtful (they are marked), 2 wrong arguments, or a format that this \
program was built without, 3 a file cannot be read or written, 130 Ctrl-C (the same command with --partition goes on).")]
    Export(ExportArgs),
    /// Recordings as archives of events: read many times faster by replay, inspect, export and backtests
    #[command(after_help = "\
Lines are arbitrated and messages decoded once; an event takes some 16 bytes. Blocks have checksums, the index has times and instruments. \
The file has its name only when it is whole. docs/archive.md.

Examples:
  tickwire archive day.pcap.zst --out day.events
  tickwire archive -c feeds.toml day/*.pcapng --out day.events
      and then: tickwire replay day.events --book AAPL

Exit codes: 0 written, 1 written, but damage or gaps make its books unreliable, 2 wrong arguments, 3 a file cannot be read or written, \
130 Ctrl-C.")]
    Archive(ArchiveArgs),
    /// One command over many files and values, as jobs that any engine can run
    #[command(after_help = "\
A job is a command line of this program and the file that it leaves behind. Killed, it is run again; done, it is not; of two workers with \
one job the second waits for the first. docs/jobs.md.

Examples:
  tickwire jobs plan year/*.pcap.zst --out tables -- export {file} --schema mbo --out {out}.parquet > jobs.jsonl
  tickwire jobs run jobs.jsonl
  tickwire jobs plan day.events --out sweep --set edge=0.01,0.02,0.03 -- \
      strategy backtest quoter.tw -c backtest.toml {file} --set edge={edge} --json > jobs.jsonl

Exit codes: 0 done, 1 some jobs failed (each line says why), 2 wrong arguments, 3 a file cannot be read or written, 130 Ctrl-C.")]
    Jobs {
        #[command(subcommand)]
        command: tickwire::jobs::JobsCommand,
    },
    /// Drives captures through the feed handler and the books
    #[command(after_help = "\
Examples:
  tickwire replay capture.pcap.zst
      both lines and gaps as recorded, at full speed
  tickwire replay 01302020.NASDAQ_ITCH50.gz
      a raw ITCH 5.0 file, 2-byte length framing
  tickwire replay capture.pcap --speed 3 --book AAPL
      at three times the capture's speed, AAPL's book at the end
  tickwire replay capture.pcap --step
      one packet per Enter key
  tickwire replay -c examples/whole-market.toml day.pcap.zst
      every configured feed at once, a table per feed")]
    Replay(ReplayArgs),
    /// Sends captures to the network as they were recorded, faster, or one packet at a time with the orders
    /// waited for
    #[command(after_help = "\
Examples:
  tickwire play day.pcap.zst
      every datagram to its own group, by loopback, at its own speed
  tickwire play --multiplier 3 --limit 50000000 --stat 5 day.pcap
  tickwire play a.pcap b.pcap --pps 100000 --loop 10 --preload
      two captures merged by time
  tickwire play day.pcap --map '239.1.1.1:3000=239.9.9.9:4000' \\
      --map '239.1.1.2:*=239.9.9.8:*' --interface veth0
  tickwire play moex.pcap --one-at-a-time 127.0.0.1:9878 --samples moex.csv \\
      --protocol moex --templates builtin

Pacing: the thread sleeps while a packet is far off and spins over the last 200 us; how late each packet was is shown as a \
distribution. A late packet does not move those behind it. Give it a core of its own (--core).

One at a time: a system under test connects by TCP (and logs on by FIX 4.4, or with --orders bytes says nothing), then each packet \
is sent, the order it causes is waited for, and answered as expired. N-1 is from last byte sent (taken before the call that sends) \
to first byte received; 1-1, from first byte to first byte, is computed for Ethernet of 10 Gbit/s.

Safe by default: without --interface NAME, what would leave this machine by anything but loopback or a veth pair is refused.

Exit codes: 0 played, 1 a capture is damaged or holds nothing to play, 2 wrong arguments or a destination that is refused, \
3 the network or a file refused, 4 the system under test went away, 130 Ctrl-C (what was sent is shown).")]
    Play(PlayArgs),
    /// Prints one JSON object per message, every field named as in the specification
    #[command(after_help = "\
Examples:
  tickwire decode capture.pcap | head
      the protocol is recognised from the packets
  tickwire decode day.itch.gz --type A --limit 10
  tickwire decode -c examples/whole-market.toml day.pcap.zst
      several feeds, told by group and port
  tickwire decode moex.pcap --protocol moex --templates FIX50SP2-2020-Nov.xml
  tickwire decode session.pcap --protocol ilink3
      order entry of CME, from TCP streams

Exit codes: 0 every packet and message was decoded, 1 some were not or a file is damaged, 2 wrong arguments, or the protocol is not \
clear, 3 a file cannot be read.")]
    Decode(DecodeArgs),
    /// FIX sessions of every version, set up by QuickFIX configuration files
    #[command(after_help = "\
Example:
  tickwire fix acceptor -c executor.cfg")]
    Fix(FixArgs),
    /// What harms latency on this machine, what it costs, and changing it with a way back
    #[command(after_help = "\
Examples:
  tickwire host check
  tickwire host explain idle-states
  sudo tickwire host tune --cores 2-3
  sudo tickwire host undo")]
    Host {
        #[command(subcommand)]
        command: HostCommand,
    },
    /// The latency lab: measurements as scenario files, run by one command each, kept, shown and compared
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  tickwire lab list
  tickwire lab run quadra
  tickwire lab compare tickwire-lab/before tickwire-lab/after \\
      --fail-above 1.05 --at p99"
    )]
    Lab(Passed),
    /// Positions, gain and risk of a portfolio of options, from files or of a running quoter: tables, CSV, a
    /// page with plots
    #[command(after_help = "\
The portfolio file (TOML) lists futures, expiries with their strikes, positions of the day before, markets of the day (front, forwards, \
volatilities) and limits; docs/risk.md describes it, examples/risk/portfolio.toml is one. The other files are CSV with a header that names their \
columns, in any order; times are as 2026-11-20T14:30:00.5Z, prices decimal, empty is none:
  --fills   time,symbol,side,quantity,price[,theo][,forward]
      side is buy or sell; theo and forward: value and forward at that time
  --marks   time,symbol[,bid][,ask][,last][,settle]
      what is not said is as before
  --quotes  time,symbol,bid,bid_quantity,ask,ask_quantity
      our own quotes, for obligations

Examples:
  tickwire risk -c examples/risk/portfolio.toml --fills examples/risk/fills.csv
  tickwire risk -c examples/risk/portfolio.toml \\
      --fills examples/risk/fills.csv --marks examples/risk/marks.csv \\
      --format html,csv --out report
  tickwire risk -c examples/risk/portfolio.toml --fills fills.csv \\
      --quotes examples/risk/quotes.csv --format text | less
  tickwire risk --socket $XDG_RUNTIME_DIR/tickwire-quoter --format text
      the account of a running quoter

Exit codes: 0 shown, 1 a CSV file is wrong (line and column are named), 2 wrong arguments or portfolio file, 3 a file cannot be read or \
written, 4 no quoter answers.")]
    Risk(RiskArgs),
    /// Checks a configuration file and prints it with every default filled in
    #[command(after_help = "\
Example:
  tickwire config examples/demo.toml
  tickwire config --feed mdp3 > cme.toml        a configuration to begin with")]
    Config {
        /// The file; without it, the defaults are printed.
        file: Option<PathBuf>,
        /// Of the defaults, those for this protocol
        #[arg(long, value_enum, default_value_t = Protocol::Itch50, value_name = "P", conflicts_with = "file")]
        feed: Protocol,
    },
    /// Completions of commands and options for a shell, on standard output
    #[command(after_help = "\
Where they belong: bash ~/.local/share/bash-completion/completions/tickwire, zsh a file _tickwire in a folder of fpath, fish
~/.config/fish/completions/tickwire.fish, PowerShell a file that the profile reads.

Example:
  tickwire completions zsh > ~/.zfunc/_tickwire")]
    Completions {
        /// The shell
        #[arg(value_enum, value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Writes a manual page of every command into a folder
    #[command(after_help = "\
As every file of the program they are for the own user alone until somebody else says so.

Example:
  tickwire man man && install -m 644 man/*.1 /usr/local/share/man/man1")]
    Man {
        /// The folder
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Lists every counter: id, unit, meaning
    #[command(after_help = "\
Example:
  tickwire counters")]
    Counters,
    /// Measures the path of a packet in memory: decode, decode + book, packet bytes to order bytes
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  tickwire bench
  tickwire bench --messages 20000000 --symbols 8500 --core 1
  tickwire bench --publish --messages 500000
      packet -> book visible in shared memory, feed by feed
  tickwire bench --feed all --messages 500000
      decode -> event, books, filtered, packet -> order, feed by feed"
    )]
    Bench(Passed),
    /// A symbol's book, live in the terminal: the consolidated book with each venue's share, or the venues'
    /// own ladders
    #[command(after_help = "\
Examples:
  tickwire book AAPL
      the consolidated book: q quits, Tab turns to each feed's own ladder
  tickwire book AAPL --feed nasdaq --feed bzx
  tickwire book AAPL --once --levels 3
  tickwire book AAPL --json | jq .super.best
  tickwire book AAPL --svg book.svg
      a picture of it, for a document or a ticket

Exit codes: 0 shown, 2 no such symbol or feed, 3 the shared memory cannot be read, 4 no daemon, 130 Ctrl-C.
A live view waits for a daemon that is not there, and follows one that is started again.")]
    Book(BookArgs),
    /// The daemon, live in the terminal: feeds, states, rates, latencies, gaps, subscriptions, memory
    #[command(after_help = "\
Examples:
  tickwire top
  tickwire top --interval 5
  tickwire top --once
  tickwire top --svg top.svg

Exit codes: 0 shown, 3 the shared memory cannot be read, 4 no daemon, 130 Ctrl-C.")]
    Top(TopArgs),
    /// The daemon's statistics once: rates, latencies, every counter, every message type
    #[command(after_help = "\
Examples:
  tickwire stats
  tickwire stats --interval 10
  tickwire stats --interval 0 --json | jq '.sources[].counters.gaps'

Exit codes: 0 shown, 3 the shared memory cannot be read, 4 no daemon.")]
    Stats(StatsArgs),
    /// Latency per feed, per message type and over all: averages and percentiles, from files or from the
    /// running daemon
    #[command(after_help = "\
Examples:
  tickwire latency
      the running daemon's histograms
  tickwire latency out/latency_*.txt
      files that the daemon wrote (latency_files in [daemon])
  tickwire latency monday/latency_bzx.txt tuesday/latency_bzx.txt --json

Exit codes: 0 shown, 1 a file is damaged, 3 a file or the shared memory cannot be read, 4 no daemon.")]
    Latency(LatencyArgs),
    /// Answers for monitoring systems
    #[command(after_help = "\
Examples:
  tickwire check nagios --critical p99=50 --warning gaps=10
  tickwire check cacti --feed bzx")]
    Check {
        #[command(subcommand)]
        command: CheckCommand,
    },
    /// Volatilities of options: a file with its edits, or those of a running quoter
    #[command(after_help = "\
Examples:
  tickwire vol show -f examples/quoter/two-expiries.toml
  tickwire vol edit -f vol.toml atm 2026-03-20 +0.005
      rewrites what changed, and adds a line to vol.toml.log
  tickwire vol undo -f vol.toml
  tickwire vol edit -s $XDG_RUNTIME_DIR/tickwire-quoter atm 2026-03-20 +0.005

Every edit: tickwire vol edit --help. Exit codes: 0 done, 1 refused (everything is as it was), 2 wrong command line or file, \
3 the system refused, 4 no quoter answers.")]
    Vol(VolArgs),
    /// Subscribes the running daemon to more symbols
    #[command(after_help = "\
Examples:
  tickwire subscribe AAPL 'BRK.?'
  tickwire subscribe 'Z*' --feed bzx
  tickwire subscribe '*'                       everything

Exit codes: 0 done, 2 a pattern or a feed is wrong, 3 no permission, 4 no daemon.")]
    Subscribe(SubscribeArgs),
    /// Ends subscriptions of the running daemon, by the patterns they were made with
    #[command(after_help = "\
Example:
  tickwire unsubscribe 'Z*' --feed bzx

Exit codes: 0 done, 2 a pattern or a feed is wrong, 3 no permission, 4 no daemon.")]
    Unsubscribe(SubscribeArgs),
    /// What the running daemon is subscribed to, feed by feed
    #[command(after_help = "\
Example:
  tickwire subscriptions --json
  tickwire subscriptions --statistics   what was seen, dropped and passed of each")]
    Subscriptions(SubscriptionsArgs),
}

/// Reads a command line. A value may begin with a minus sign: whether it may be negative is for the option to
/// say, in its own words, and not for a search for an option called `-0`.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = with_signs(Cli::command());
    let mut matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn with_signs(command: clap::Command) -> clap::Command {
    let signed = |arg: clap::Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(signed).mut_subcommands(with_signs)
}

#[derive(Args, Debug)]
pub(crate) struct WatchdogArgs {
    /// Configuration file (TOML) of the process to watch; see examples/options.toml
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct QuoteArgs {
    /// Configuration file (TOML) with `[quoter]`; see examples/options.toml
    #[arg(short, long, value_name = "FILE", required_unless_present = "tell")]
    pub(crate) config: Option<PathBuf>,
    /// Folder for the results
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Volatilities that the market of the options contradicts are meant (quoter.market)
    #[arg(long, conflicts_with = "tell")]
    pub(crate) force: bool,
    /// Tells a running quoter something, through its control socket (quoter.control)
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        requires = "socket",
        conflicts_with = "config"
    )]
    pub(crate) tell: Option<QuoterWord>,
    /// That socket, or its folder
    #[arg(long, value_name = "SOCKET", requires = "tell")]
    pub(crate) socket: Option<PathBuf>,
    /// End with this process and tell it about progress in JSON (used by `demo`)
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) child_of: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct ReconcileArgs {
    /// Our record: files of the day (repeatable)
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) own: Vec<PathBuf>,
    /// The venue's: its drop copy, its journal, what it sent us (repeatable)
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) venue: Vec<PathBuf>,
    /// Only FIX messages that have this CompID at one end
    #[arg(long, value_name = "COMPID")]
    pub(crate) session: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct DecodeArgs {
    /// Captures (pcap, pcapng), raw ITCH 5.0 files, DBN files or LOBSTER message files; gzip and zstd are
    /// recognised
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only messages of this type (repeatable): as the venue writes it (A, 0x21, 46, QF, 3610), or its name
    #[arg(long = "type", value_name = "T")]
    pub(crate) types: Vec<String>,
    /// Stop after this many messages
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// What the payloads are; without it, told by --config, else recognised from the first packets to each
    /// group
    #[arg(long, value_enum, value_name = "P", conflicts_with = "config")]
    pub(crate) protocol: Option<Payloads>,
    /// Feeds by group and port (TOML, see examples/): names feed, channel and line of every packet
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// FAST template file of MOEX (repeatable: the first that reads a packet whole is taken)
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub(crate) templates: Vec<PathBuf>,
    /// Which release of NYSE's XDP packets are of; without it, told by the messages themselves, and marked
    /// where they do not
    #[arg(long, value_enum, value_name = "V", conflicts_with = "config")]
    pub(crate) xdp: Option<tickwire_venues::protocol::XdpRelease>,
    /// Print the header of every packet too, as an object with "Header"
    #[arg(long)]
    pub(crate) headers: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FixArgs {
    #[command(subcommand)]
    pub(crate) command: FixCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum FixCommand {
    /// Takes connections; sends orders back as they came, which is what acceptance suites and first tries
    /// want, or plays a script
    #[command(after_help = "\
Examples:
  tickwire fix acceptor -c examples/fix/acceptor.cfg
      its sessions, on loopback unless SocketAcceptAddress says otherwise
  tickwire fix acceptor -c venue.cfg --script fills.txt
      answers as the script says; its steps: tickwire fix initiator --help
  tickwire fix acceptor -c venue.cfg --folder $XDG_RUNTIME_DIR/venue \\
      --metrics 127.0.0.1:9465
      (then: tickwire stats --folder $XDG_RUNTIME_DIR/venue)

Exit codes: 0 done, 1 the script met something else, 2 configuration or script are wrong, 3 the system refused, 4 nobody logged on \
in time, 130 Ctrl-C (after logging out).")]
    Acceptor(FixSessionArgs),
    /// Connects and logs on; then sends and shows messages as they are typed, or plays a script
    #[command(after_help = concat!("\
Examples:
  tickwire fix initiator -c examples/fix/initiator.cfg
      a prompt
  tickwire fix initiator -c examples/fix/initiator.cfg \\
      --script examples/fix/orders.txt
  echo 'order buy 100 AAPL 187.25' | tickwire fix initiator \\
      -c examples/fix/initiator.cfg

Steps of a script, one a line, # begins a comment; at the prompt too:
", include_str!("fix/steps.txt"), "

Exit codes: 0 done, 1 the script met something else, 2 configuration or script are wrong, 3 the system refused, 4 no logon in time, \
130 Ctrl-C (after logging out)."))]
    Initiator(FixSessionArgs),
    /// What the stores of a configuration's sessions hold; sets sequence numbers
    #[command(after_help = "\
Examples:
  tickwire fix store -c executor.cfg
  tickwire fix store -c executor.cfg --session TW44 --next-in 1 --next-out 1")]
    Store(FixStoreArgs),
    /// What every setting of QuickFIX C++, QuickFIX/J and QuickFIX/n, and our own, does here
    #[command(after_help = "\
Examples:
  tickwire fix settings
  tickwire fix settings HeartBtInt SSL")]
    Settings(FixSettingsArgs),
    /// Prints a dictionary that is built in, in QuickFIX's XML format: to be extended by a venue's own fields
    #[command(after_help = "\
Examples:
  tickwire fix dictionary                              their names
  tickwire fix dictionary FIX.4.4 > venue.xml")]
    Dictionary(FixDictionaryArgs),
    /// Messages of stores and message logs for people: names of tags and values, filtered, followed, or as
    /// JSON
    #[command(after_help = "\
Examples:
  tickwire fix log log/FIX.4.4-TRADER-VENUE.messages.current.log
  tickwire fix log store/*.store --type D --type 8 --field 55=AAPL
  tickwire fix log -f log/*.messages.current.log --session VENUE --since 14:30
  tickwire fix log old.log -d FIX44.xml --json | jq 'select(.type == \"8\")'

A file is a store (FileStorePath), a message log of ours or QuickFIX's, or any text with messages in it, one a line. Passwords (554, 925) \
and raw data (96) are shown as ***.

Exit codes: 0 shown, 1 a store is damaged, 2 the command line or a dictionary is wrong, 3 a file cannot be read.")]
    Log(FixLogArgs),
    /// Measures an order's round trip over loopback: two whole sessions with their stores, beside bare TCP in
    /// the same run
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  tickwire fix bench
  tickwire fix bench --wait spin --cores 0,1 --orders 50000 --rounds 9

Exit codes: 0 measured, 1 an order was not answered rightly, 2 the command line is wrong, 3 the system refused, 130 Ctrl-C."
    )]
    Bench(Passed),
    /// Subscribes to market data in FIX and buys whenever the best offer has changed: the trader of
    /// `tickwire lab run fix`
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  tickwire fix trader -c trader.cfg
      two sessions; the one that has the market data is MARKET
  tickwire fix trader -c trader.cfg --stamps trader.stamps
      notes when each order's message came, was decided on and answered

The configuration is QuickFIX's, with two sessions, one of them with TargetCompID=MARKET. It ends with the venue's Logout.

Exit codes: 0 the venue logged out, 1 a message could not be read or an order not be sent, 2 the configuration is wrong, 3 the system \
refused, 130 Ctrl-C (after logging out)."
    )]
    Trader(Passed),
}

/// The arguments of a command that another program of ours does.
#[derive(Args, Debug)]
pub(crate) struct Passed {
    /// What the program `tickwire-lab` reads; --help shows it
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct FixLogArgs {
    /// Stores and message logs
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Dictionary for names (QuickFIX's XML; repeatable: the first that knows a tag is taken)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) dictionary: Vec<PathBuf>,
    /// Only messages of this MsgType (repeatable)
    #[arg(long = "type", value_name = "T")]
    pub(crate) types: Vec<String>,
    /// Only messages with this value, by tag or name (repeatable: all must be there)
    #[arg(long, value_name = "TAG=VALUE")]
    pub(crate) field: Vec<String>,
    /// Only messages from or to this comp id
    #[arg(long, value_name = "COMPID")]
    pub(crate) session: Option<String>,
    /// Only these sequence numbers: 5, 5-9 or 5-
    #[arg(long, value_name = "RANGE")]
    pub(crate) seq: Option<String>,
    /// Only from this time on, UTC: 20261121-14:30:00, its beginning, or a time of day (14:30)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only up to this time; 14:30 is that whole minute
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Go on with what is added to the files, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// End after this many messages
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// One JSON object a line
    #[arg(long, conflicts_with = "raw")]
    pub(crate) json: bool,
    /// One message a line, | for separators
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FixStoreArgs {
    /// QuickFIX configuration file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Settings that nobody knows, an application's own, are warnings instead of errors
    #[arg(long)]
    pub(crate) allow_unknown: bool,
    /// Only the session with this TargetCompID
    #[arg(long, value_name = "COMPID")]
    pub(crate) session: Option<String>,
    /// Set the number of the next message sent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) next_out: Option<u64>,
    /// Set the number of the next message expected
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) next_in: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct FixSettingsArgs {
    /// Only those whose names have one of these in them, in any case
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct FixDictionaryArgs {
    /// FIX.4.0 to FIX.5.0SP2 or FIXT.1.1
    #[arg(value_name = "VERSION")]
    pub(crate) version: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct FixSessionArgs {
    /// QuickFIX configuration file: sections `[DEFAULT]` and `[SESSION]`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Settings that nobody knows, an application's own, are warnings instead of errors
    #[arg(long)]
    pub(crate) allow_unknown: bool,
    /// Plays these steps and ends
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Shows at the end what each session did and how long each step of a message took; SIGUSR1 shows it at
    /// any time
    #[arg(long)]
    pub(crate) stats: bool,
    /// Shows states, counters and latencies of the sessions in this folder, for
    /// `tickwire stats --folder DIR`, `top` and `check`
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Serves them to Prometheus, at http://ADDRESS/metrics
    #[arg(long, value_name = "ADDRESS:PORT", requires = "folder")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_with_a_minus_sign_is_a_value_of_every_option() {
        let parse = |line: &str| parse(line.split(' ').map(OsString::from));
        let cli = parse("tickwire demo --loss -0.1 --reorder -0.001").unwrap();
        let Command::Demo(demo) = cli.command else {
            panic!()
        };
        assert_eq!((demo.loss, demo.reorder), (-0.1, -1e-3));
        let why = tickwire::demo::impairment(&demo).unwrap_err().message;
        assert!(why.contains("--loss: -0.1"), "{why}");
        let why = parse("tickwire demo --rate -5").unwrap_err().to_string();
        assert!(why.contains("invalid value '-5' for '--rate <N>'"), "{why}");
        let why = parse("tickwire demo --sedd 1").unwrap_err().to_string();
        assert!(why.contains("--seed"), "{why}");
    }

    #[test]
    fn every_command_has_an_example() {
        let cli = Cli::command();
        cli.clone().debug_assert();
        for c in cli.get_subcommands() {
            let help = c.get_after_help().map(|h| h.to_string()).unwrap_or_default();
            assert!(help.contains("Example"), "{} has no example", c.get_name());
        }
    }
}
