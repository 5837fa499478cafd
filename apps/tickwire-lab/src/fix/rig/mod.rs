//! A trade by FIX from end to end: a simulator sends market data, a trader in a process of its own decides
//! and sends orders, a venue reports them. Driven by the scenario `fix` of the lab; `tickwire fix trader` is
//! our trader, `peers/interop` has another engine's.
//!
//! ```text
//!  this process                                      a process of its own
//!  market ── W, X ── TCP ──────────────────────────► engine ─► algorithm ─┐
//!  venue  ◄─ D ───── TCP ─────────────────────────── engine ◄─────────────┘
//!         ── 8 ───── TCP ──────────────────────────► engine
//! ```
//! Market and venue share a thread, as they shared a machine in the published test. What a trader must do is
//! in [`trader`]; stamps of both processes are readings of one counter.

mod market;
mod simulator;
mod stamps;
mod trader;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tickwire_lab::Histogram;
use tickwire_runtime::child::ChildGuard;
use tickwire_runtime::clock::{Clock, ClockSource};
use tickwire_runtime::signal::StopFlag;

use super::bench;
use super::{ended, load, quiet};
use simulator::Simulator;
pub(crate) use stamps::Stamps;
use tickwire_console::failure::{Code, Failure};
use tickwire_fixengine::settings::Wanted;
pub(crate) use trader::run as trade;

/// The messages of this trade, session messages included, in QuickFIX's format: what traders validate
/// against.
const DICTIONARY: &str = include_str!("../../../../../examples/lab/fix-trade.xml");
/// What the simulator's file of the dictionary is called beside the traders' configurations.
const DICTIONARY_FILE: &str = "fix-trade.xml";

/// What the trader says.
const TRADER_LOG: &str = "trader.log";

/// The only instrument.
const SYMBOL: &str = "WIRE";
/// SenderCompIDs.
const MARKET: &str = "MARKET";
const VENUE: &str = "VENUE";
const TRADER: &str = "TRADER";

/// How long a trader may take to start, log on twice and subscribe.
const START_NS: u64 = 60_000_000_000;
/// How long it may take to write its stamps and end.
const END: Duration = Duration::from_secs(60);
/// Orders of a repetition that are kept with their stamps; of more, one in so many.
const KEPT_MAX: u64 = 2_000_000;

/// So many messages a second for so long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// Market data messages a second.
    pub(crate) rate: u64,
    /// Nanoseconds.
    pub(crate) span_ns: u64,
}

impl Step {
    /// Messages of it.
    pub(crate) fn messages(self) -> u64 {
        (u128::from(self.rate) * u128::from(self.span_ns) / 1_000_000_000) as u64
    }
}

/// What the simulator does.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    /// One message in so many moves the best offer, by chance, and so leads to an order.
    pub(crate) order_every: u64,
    /// Entries of a message.
    pub(crate) entries: usize,
    pub(crate) seed: u64,
    /// Orders at the beginning that are checked but not recorded.
    pub(crate) warm_up: u64,
    /// How long an order is waited for when all was sent.
    pub(crate) timeout_ns: u64,
    /// A trader that is further behind than this is sent no more, in this step or after it. A queue that only
    /// grows says nothing new, and takes hours to go.
    pub(crate) behind_max_ns: u64,
    /// What is expected wrongly on purpose.
    pub(crate) fault: Fault,
}

impl Plan {
    pub(crate) fn messages(&self) -> u64 {
        self.steps.iter().map(|step| step.messages()).sum()
    }

    /// One order in so many is kept with its stamps.
    pub(crate) fn kept_every(&self) -> u64 {
        (self.messages() / self.order_every).div_ceil(KEPT_MAX).max(1)
    }
}

/// What the simulator expects wrongly on purpose, in one order of a hundred: to see that the run fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// Nothing.
    #[default]
    None,
    /// An order that no message leads to: it is lost.
    LoseOrder,
    /// Another price.
    WrongPrice,
}

/// Whose engine trades.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Engines {
    /// Ours, never asleep.
    Tickwire,
    /// Ours, asleep in poll() while there is nothing.
    TickwireBlocking,
    /// QuickFIX C++, which has no other way than to sleep.
    QuickfixCpp,
    /// QuickFIX/J, likewise.
    QuickfixJ,
}

impl Engines {
    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engines::Tickwire => "Tickwire, spinning",
            Engines::TickwireBlocking => "Tickwire, blocking",
            Engines::QuickfixCpp => "QuickFIX C++",
            Engines::QuickfixJ => "QuickFIX/J",
        }
    }

    /// The file that is looked for, of an engine that is not ours.
    fn file(self) -> Option<&'static str> {
        match self {
            Engines::Tickwire | Engines::TickwireBlocking => None,
            Engines::QuickfixCpp => Some("quickfix-trader"),
            Engines::QuickfixJ => Some("quickfixj-trader"),
        }
    }

    /// The program, or a sentence how to get it. `folder` is looked in alone where it is given.
    pub(crate) fn program(self, folder: &Path) -> Result<PathBuf, String> {
        let own =
            std::env::current_exe().map_err(|e| format!("this program's own file is not known: {e}"))?;
        let Some(file) = self.file() else {
            return Ok(own);
        };
        let given = !folder.as_os_str().is_empty();
        let beside = own
            .parent()
            .and_then(Path::parent)
            .map(|target| target.join("peers"));
        let places = match given {
            true => vec![folder.to_path_buf()],
            false => beside
                .into_iter()
                .chain([PathBuf::from("target/peers")])
                .collect(),
        };
        let found = places
            .iter()
            .map(|place| place.join(file))
            .find(|path| path.is_file());
        found.ok_or_else(|| {
            format!(
                "NOT MEASURED: {}: its trader, {file}, is not there; `cargo xtask lab-peers` builds it into target/peers",
                self.name()
            )
        })
    }
}

/// How a trader runs.
#[derive(Clone, Debug)]
pub(crate) struct Running<'a> {
    pub(crate) engine: Engines,
    pub(crate) program: &'a Path,
    /// Messages kept in a file, or in memory.
    pub(crate) stores: bool,
    /// Messages checked against the dictionary, all rules on.
    pub(crate) validates: bool,
    pub(crate) simulator_core: Option<usize>,
    pub(crate) trader_core: Option<usize>,
    /// For configurations, stores and stamps.
    pub(crate) folder: &'a Path,
}

/// An order that was kept: what the simulator knows of it, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// MsgSeqNum of the market data message that caused it.
    pub(crate) seq: u64,
    /// Market data messages that were due and not yet dealt with when it came.
    pub(crate) depth: u64,
    /// The step of its message.
    pub(crate) step: usize,
    /// When its message was due; what latency counts from.
    pub(crate) intended: u64,
    /// Before the call that sent it.
    pub(crate) sent: u64,
    /// After the call that received the order.
    pub(crate) arrived: u64,
    /// Before the call that sent the report.
    pub(crate) reported: u64,
}

/// What was seen of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepSeen {
    /// Messages sent.
    pub(crate) sent: u64,
    /// Of them, due but not sent when the step was over: the connection, or the simulator, had no room.
    pub(crate) behind: u64,
    /// From its begin to the last message sent, ticks.
    pub(crate) lasted: u64,
    /// The trader was so far behind that the rest was not sent, see [`Plan::behind_max_ns`].
    pub(crate) is_given_up: bool,
    /// Orders that came.
    pub(crate) orders: u64,
    /// Due minus dealt with, at each order's arrival: messages, not nanoseconds.
    pub(crate) depth: Histogram,
    /// The same in eight parts of the step's time: sum and count.
    pub(crate) parts: [(u64, u64); 8],
    /// Message due to order arrived, ticks converted to nanoseconds, all orders.
    pub(crate) latency: Histogram,
}

impl StepSeen {
    /// The mean depth of a part, `None` if no order came in it.
    pub(crate) fn depth_of(&self, part: usize) -> Option<u64> {
        let (sum, count) = self.parts[part];
        sum.checked_div(count)
    }
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) begun: u64,
    pub(crate) kept: Vec<Kept>,
    /// The trader's stamps, by rising `seq`; of another engine without those it does not give.
    pub(crate) stamps: Vec<Stamps>,
    pub(crate) steps: Vec<StepSeen>,
    pub(crate) messages: u64,
    /// Orders expected, arrived, never arrived.
    pub(crate) expected: u64,
    pub(crate) orders: u64,
    pub(crate) lost: u64,
    /// Orders with a wrong price, side or symbol, or that nothing led to, and the first of them in words.
    pub(crate) wrong: u64,
    pub(crate) first_wrong: Option<String>,
    /// Bytes of a market data message, an order, a report.
    pub(crate) lengths: [usize; 3],
    /// How long each side had no core from the first message to the last order, nanoseconds, by role.
    pub(crate) run_delays_ns: Vec<(String, u64)>,
    /// It was ended before its time.
    pub(crate) interrupted: bool,
}

/// Runs a trader through a plan.
pub(crate) fn measure(
    plan: &Plan,
    running: &Running<'_>,
    clock: &Clock,
    stop: &StopFlag,
) -> Result<Measured, Failure> {
    tickwire_runtime::files::create_folders(running.folder)
        .map_err(|e| Failure::system(format!("cannot create {}: {e}", running.folder.display())))?;
    write(&running.folder.join(DICTIONARY_FILE), DICTIONARY)?;
    let core = core_line(running.simulator_core);
    let text = format!(
        "[DEFAULT]\nConnectionType=acceptor\nUseDataDictionary=N\nHeartBtInt=30\nBeginString=FIX.4.4\nTargetCompID={TRADER}\n\
         SocketAcceptPort=0\nAllowedRemoteAddresses=127.0.0.1\nResetOnLogon=Y\nWaitStrategy=spin\n{core}\
         [SESSION]\nSenderCompID={MARKET}\n[SESSION]\nSenderCompID={VENUE}\n"
    );
    let config = running.folder.join("simulator.cfg");
    write(&config, &text)?;
    let mut engine = quiet(load(&config, Wanted::All)?)?;
    let port = engine.addresses()[0].port();
    let (mut child, stamps) = start(plan, running, port, clock)?;
    let mut simulator = Simulator::new(plan, clock, &engine, &mut child);
    let outcome = ended(engine.run(&mut simulator, stop));
    let interrupted = matches!(&outcome, Err(failure) if failure.code == Code::Interrupted);
    if !interrupted {
        outcome?;
    }
    let mut measured = simulator.finish(interrupted)?;
    if interrupted && measured.begun == 0 {
        // The trader may never have logged on: then no logout ends it.
        return Ok(measured);
    }
    let name = running.engine.name();
    let status = child
        .wait_for(END)
        .map_err(|e| Failure::system(format!("waiting for the trader: {e}")))?;
    match status {
        Some(status) if status.success() => measured.stamps = stamps::read(&stamps, clock)?,
        // Ctrl-C has ended the trader as well; what it wrote is what there is.
        _ if interrupted => measured.stamps = stamps::read(&stamps, clock).unwrap_or_default(),
        Some(status) => {
            return Err(Failure::system(format!(
                "the trader ({name}) ended with {status}"
            )));
        }
        None => {
            return Err(Failure::system(format!(
                "the trader ({name}) did not end after its logout"
            )));
        }
    }
    // Results have the figures; stores and raw stamps would be large.
    let _ = std::fs::remove_dir_all(running.folder);
    Ok(measured)
}

/// As many bytes both ways as an order and its report by the same kind of connection, and nothing else:
/// `count` round trips, waiting as that engine does.
pub(crate) fn floor(
    engine: Engines,
    lengths: (usize, usize),
    count: u64,
    cores: [Option<usize>; 2],
) -> Result<Histogram, Failure> {
    bench::bare(engine != Engines::Tickwire, cores, count, lengths)
}

fn core_line(core: Option<usize>) -> String {
    core.map_or(String::new(), |core| format!("ThreadCore={core}\n"))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    tickwire_runtime::files::write(path, text)
        .map_err(|e| Failure::system(format!("cannot write {}: {e}", path.display())))
}

/// Starts the trader; its process, and where its stamps will be.
fn start(
    plan: &Plan,
    running: &Running<'_>,
    port: u16,
    clock: &Clock,
) -> Result<(ChildGuard, PathBuf), Failure> {
    let folder = std::path::absolute(running.folder)
        .map_err(|e| Failure::system(format!("{}: {e}", running.folder.display())))?;
    let ours = matches!(running.engine, Engines::Tickwire | Engines::TickwireBlocking);
    let own_keys = match running.engine {
        Engines::Tickwire => format!("WaitStrategy=spin\n{}", core_line(running.trader_core)),
        Engines::TickwireBlocking => format!("WaitStrategy=block\n{}", core_line(running.trader_core)),
        Engines::QuickfixCpp | Engines::QuickfixJ => "SocketNodelay=Y\nSocketTcpNoDelay=Y\n".to_owned(),
    };
    let store = match running.stores {
        true => format!("FileStorePath={}\n", folder.join("store").display()),
        false => String::new(),
    };
    let dictionary = match running.validates || !ours {
        true => format!(
            "UseDataDictionary=Y\nDataDictionary={}\n",
            folder.join(DICTIONARY_FILE).display()
        ),
        false => "UseDataDictionary=N\n".to_owned(),
    };
    let text = format!(
        "[DEFAULT]\nConnectionType=initiator\nBeginString=FIX.4.4\nSenderCompID={TRADER}\nHeartBtInt=30\nReconnectInterval=1\n\
         ResetOnLogon=Y\nStartTime=00:00:00\nEndTime=00:00:00\nSocketConnectHost=127.0.0.1\n\
         SocketConnectPort={port}\n{dictionary}{store}{own_keys}\
         [SESSION]\nTargetCompID={MARKET}\n[SESSION]\nTargetCompID={VENUE}\n"
    );
    let (config, stamps) = (folder.join("trader.cfg"), folder.join("trader.stamps"));
    write(&config, &text)?;
    let room = plan.messages() / plan.order_every / plan.kept_every() * 2 + 1_000;
    let mut command = Command::new(running.program);
    if ours {
        command.args(["fix", "trader", "--config"]).arg(&config);
        command.arg("--stamps").arg(&stamps);
        command.args(["--keep-every", &plan.kept_every().to_string()]);
        command.args(["--keep-at-most", &room.to_string()]);
        command.args(["--child-of", &std::process::id().to_string()]);
    } else {
        let source = match clock.source() {
            ClockSource::Tsc => "tsc",
            ClockSource::Kernel => "kernel",
        };
        let core = running
            .trader_core
            .map_or("-".to_owned(), |core| core.to_string());
        command.arg(&config).arg(&stamps);
        command.args([&plan.kept_every().to_string(), &room.to_string(), source, &core]);
    }
    let log = folder.join(TRADER_LOG);
    let log = tickwire_runtime::files::create(&log)
        .map_err(|e| Failure::system(format!("cannot write {}: {e}", log.display())))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let child = ChildGuard::spawn(&mut command).map_err(|e| {
        Failure::system(format!(
            "the trader does not start: {}: {e}",
            running.program.display()
        ))
    })?;
    Ok((child, stamps))
}
