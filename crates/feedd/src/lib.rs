//! `tickwire feed`: the daemon that keeps books in shared memory for other programs.
//!
//! ```text
//! feed threads   sockets | recordings ─► Unit (Channel ─► Desk) ─► sources, books, rings ──► shared memory ─► readers
//! super thread   rings of levels ─────► SuperDesk ──────────────► consolidated books ────────────►┘
//! this thread    heartbeat, control socket, metrics, latency files, the service manager, signals
//! ```
//! The feed threads own everything on the hot path; this one starts them, asks them over a bounded line, and ends them.
//!
//! ```
//! use std::path::Path;
//! use tickwire_console::failure::Failure;
//! use tickwire_feedd::{DaemonConfig, FeedArgs, ServeMetrics, SuperBooksPlace};
//! use tickwire_runtime::signal::StopFlag;
//!
//! let text = r#"
//!     [daemon]
//!     symbols = ["AAPL", "MSFT*"]
//!     book_levels = 5
//!     ring = "events"
//!
//!     [[feed]]
//!     venue = "nasdaq"
//!     [[feed.channel]]
//!     name = "1"
//!     live = { a = "239.192.1.1:30001", b = "239.192.2.1:30001" }
//! "#;
//! let config: DaemonConfig = toml::from_str(text)?;
//! config.check(Path::new("feeds.toml"), text)?;
//! assert!(config.daemon.ring.has_events());
//! let threads = config.daemon.threads(&config.feed);
//! assert_eq!(threads[0].feeds, ["nasdaq"]);
//! assert_eq!(config.daemon.super_books_place(threads.len()), SuperBooksPlace::Inline);
//!
//! /// The daemon in a program of one's own, until a signal ends it. No metrics are served.
//! fn serve(config: &DaemonConfig) -> Result<(), Failure> {
//!     let args = FeedArgs {
//!         config: "feeds.toml".into(),
//!         folder: None,
//!         replay: Vec::new(),
//!         speed: tickwire_replay::tape::Speed::Times(1.0),
//!         passes: 1,
//!         exit: false,
//!     };
//!     let no_metrics: &ServeMetrics = &|_, _| Err(Failure::config("nothing serves metrics here"));
//!     let stop = StopFlag::install().map_err(|e| Failure::system(e.to_string()))?;
//!     tickwire_feedd::run(&args, config, no_metrics, &stop)
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod command;
mod config;
pub mod desk;
mod latency;
mod quota;
pub mod supers;
mod thread;
pub mod unit;

pub use config::{DaemonConfig, DaemonSection, RingContent, SuperBooksPlace};

use std::cell::RefCell;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tickwire_book::super_books::{SOURCES_MAX, Source};
use tickwire_book::{Relay, SuperConfig};
use tickwire_feed::{DayUse, Pattern};
use tickwire_lab::Table;
use tickwire_market::{Counter, MarketEvent, Nanos, Symbol};
use tickwire_runtime::capture::FrameCounts;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::shared::{REGION_FILE, SharedMemory, monotonic};
use tickwire_runtime::signal::StopFlag;
use tickwire_runtime::spsc::{self, Consumer};
use tickwire_runtime::users::Peer;
use tickwire_runtime::wait::{WaitStrategy, Waiter};
use tickwire_shm::{Identity, Reader, Region, RegionConfig, RegionState, SourceIdentity, SourceWriter};

use command::{ChannelAnswer, Command, CommandDesk, CommandLine, Deed, command_line};
use desk::Common;
use quota::QuotaFile;
use supers::{HandOver, RING_EVENTS, SuperDesk, Supers};
use thread::{FeedThread, Recorded, SourcePlan, ThreadPlan};
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_control::http::Served;
use tickwire_control::notify::Notifier;
use tickwire_control::process::Held;
use tickwire_control::socket::{Answer, ControlSocket, Request};
use tickwire_replay::tape::Speed;
use tickwire_replay::tape::Stopping;
use tickwire_venues::channels::FeedFile;

/// The arguments of `tickwire feed`.
#[derive(clap::Args, Debug)]
pub struct FeedArgs {
    /// Configuration file (TOML): feeds and `[daemon]`; see examples/daemon.toml
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Folder of shared memory and control socket; else TICKWIRE_FOLDER, else daemon.folder of the file, else /run/tickwire for root and
    /// $XDG_RUNTIME_DIR/tickwire for others
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Captures to play instead of receiving (repeatable), by group and port
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub replay: Vec<PathBuf>,
    /// Speed of --replay: `max`, or a multiple of the capture's own
    #[arg(long, default_value = "1", value_name = "X", value_parser = tickwire_replay::tape::parse_speed, requires = "replay")]
    pub speed: Speed,
    /// Play the captures so often, each time as a new day
    #[arg(long = "loop", default_value_t = 1, value_name = "N", requires = "replay", value_parser = clap::value_parser!(u32).range(1..))]
    pub passes: u32,
    /// End after the last capture instead of keeping the books there
    #[arg(long, requires = "replay")]
    pub exit: bool,
}

/// Makes what answers at an address with what the region in a folder says.
pub type ServeMetrics = dyn Fn(SocketAddr, &Path) -> Result<Box<dyn Served>, Failure>;

/// Between two looks at everything that this thread does.
const TICK: Duration = Duration::from_millis(50);
/// How long a feed thread may take for a command.
const COMMAND_PATIENCE: Duration = Duration::from_secs(5);
/// Histograms set aside for the kinds of message of a channel; a channel with more shares those of others.
const KINDS_PER_SOURCE: u32 = 40;
/// Shares set aside for a consolidated book on average.
const SHARES_PER_SUPER: u32 = 256;
/// Notices that may wait for this thread; further ones are dropped but for the counters that say the same.
const NOTICES_MAX: usize = 64;
/// Refusals that are said by name; all are counted.
const NAMED_MAX: u32 = 10;
/// What is said of a channel's recovery when a counter has grown.
const RECOVERY_SAID: [(Counter, &str); 3] = [
    (
        Counter::RequestsHeld,
        "requests wait because a quota of the venue is used up; see the feed's recovery keys in docs/feed-daemon.md",
    ),
    (
        Counter::ServerChanges,
        "a recovery server was silent, refused or answered what cannot be right; the other one is asked now",
    ),
    (
        Counter::RecoveriesFailed,
        "not recovered by recovery.deadline_ms: its books stay marked stale, and it is tried again after recovery.retry_ms",
    ),
];

/// Whether everything is to end: by a signal, or because somebody asked for it.
#[derive(Clone, Debug)]
pub struct Halt {
    signals: StopFlag,
    asked: Arc<AtomicBool>,
}

impl Halt {
    /// Not asked for yet; a signal that `signals` catches asks for it too.
    pub fn new(signals: &StopFlag) -> Halt {
        Halt {
            signals: signals.clone(),
            asked: Arc::default(),
        }
    }

    fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }
}

impl Stopping for Halt {
    #[inline]
    fn is_stopping(&self) -> bool {
        self.asked.load(Ordering::Relaxed) || self.signals.is_set()
    }
}

/// What other threads tell this one.
#[derive(Debug)]
pub enum Notice {
    /// A feed thread has joined every group.
    Ready,
    /// A feed thread has played every recording: what became of the frames.
    Played(Box<FrameCounts>),
    /// A book of a source has no slot.
    NoBookSlot(u16, Symbol),
    /// A consolidated book has no slot.
    NoSuperSlot(Symbol),
    /// Anything else worth a line.
    Warning(String),
}

/// Runs the daemon to its end.
///
/// `serve_metrics` makes what answers at `daemon.metrics`, from the region in the folder.
///
/// # Errors
/// Why it ended, or could not begin.
pub fn run(
    args: &FeedArgs,
    config: &DaemonConfig,
    serve_metrics: &ServeMetrics,
    signals: &StopFlag,
) -> Result<(), Failure> {
    let clock = Clock::calibrate();
    if let Some(warning) = clock.warning() {
        eprintln!("warning: {warning}");
    }
    tickwire_runtime::alloc::populate_large_blocks();
    let folder = config.daemon.folder(args.folder.as_deref());
    let recorded = recorded_of(args, config)?;
    let plan = Plan::new(config)?;
    let held = Held::take(&folder, config.access.sharing()?)?;
    let system = |e: &dyn std::fmt::Display| Failure::system(e.to_string());
    let layout = plan.region.layout().map_err(|e| Failure::config(e.to_string()))?;
    let memory =
        SharedMemory::create_in(held.folder()?, REGION_FILE, layout.bytes()).map_err(|e| system(&e))?;
    let words: &[AtomicU64] = memory.words();
    let identity = Identity {
        generation: clock.now(),
        pid: std::process::id(),
    };
    let region = Region::format(words, &plan.region, identity).map_err(|e| Failure::config(e.to_string()))?;
    region.stamp_epoch(clock.epoch_ns());
    let halt = Halt::new(signals);
    let quotas = recorded
        .is_none()
        .then(|| QuotaFile::open(quota::path_in(&folder)));
    if let Some(quotas) = &quotas {
        plan.restore_quotas(quotas);
    }
    let daemon = Daemon {
        args,
        config,
        serve_metrics,
        plan: &plan,
        folder,
        held: &held,
        quotas: RefCell::new(quotas),
        clock,
        words,
        region,
        halt,
    };
    std::thread::scope(|scope| daemon.run(scope, recorded.as_ref(), &memory))
}

/// The recordings to play instead of receiving.
fn recorded_of(args: &FeedArgs, config: &DaemonConfig) -> Result<Option<Recorded>, Failure> {
    if args.replay.is_empty() {
        return Ok(None);
    }
    let routes = FeedFile::new(config.feed.clone()).map_err(|fault| Failure::config(fault.to_string()))?;
    Ok(Some(Recorded {
        files: args.replay.clone(),
        speed: args.speed,
        passes: args.passes,
        routes,
    }))
}

/// Which channel is which source, on which thread, and how large the region is.
struct Plan {
    /// By feed thread.
    threads: Vec<Vec<SourcePlan>>,
    identities: Vec<SourceIdentity>,
    region: RegionConfig,
    supers: SuperConfig,
    place: SuperBooksPlace,
    symbols: Vec<Pattern>,
}

impl Plan {
    fn new(config: &DaemonConfig) -> Result<Plan, Failure> {
        let daemon = &config.daemon;
        let sections = daemon.threads(&config.feed);
        let has_rings = daemon.ring != RingContent::Off;
        let mut plan = Plan {
            threads: vec![Vec::new(); sections.len()],
            identities: Vec::new(),
            region: RegionConfig::default(),
            supers: SuperConfig::default(),
            place: daemon.super_books_place(sections.len()),
            symbols: daemon
                .symbols
                .iter()
                .map(|text| text.parse())
                .collect::<Result<_, _>>()
                .map_err(|e| Failure::config(format!("daemon.symbols: {e}")))?,
        };
        let mut sources = Vec::new();
        for (number, feed) in config.feed.iter().enumerate() {
            tickwire_venues::wiring::check_published(feed.protocol())?;
            let Some(thread) = sections
                .iter()
                .position(|t| t.feeds.iter().any(|f| f == feed.name()))
            else {
                continue;
            };
            let is_national = !feed.protocol().has_depth();
            for channel in 0..feed.channels.len() {
                let source = plan.identities.len() as u16;
                plan.identities.push(SourceIdentity {
                    name: feed.channel_name(channel),
                    feed_name: feed.name().into(),
                    protocol: feed.protocol().name().into(),
                    feed: number as u8,
                    venue: Some(feed.venue),
                    ring: has_rings.then_some(thread as u32),
                });
                sources.push(Source {
                    feed: number as u8,
                    is_national,
                });
                plan.threads[thread].push(SourcePlan {
                    source,
                    feed: feed.clone(),
                    feed_number: number as u8,
                    channel,
                    silence_ns: u64::from(feed.silence_ms.unwrap_or(daemon.silence_ms)) * Nanos::MILLI,
                    quota: quota::Cell::default(),
                    relay: match (plan.place, is_national, feed.is_consolidated()) {
                        (SuperBooksPlace::Off, _, _) | (_, false, false) => None,
                        (_, true, _) => Some(Relay::National),
                        (_, false, true) => Some(Relay::Levels),
                    },
                });
            }
        }
        if plan.identities.len() > SOURCES_MAX {
            return Err(Failure::config(format!(
                "{} channels; a daemon takes at most {SOURCES_MAX}",
                plan.identities.len()
            )));
        }
        let count = plan.identities.len() as u32;
        let supers = match plan.place {
            SuperBooksPlace::Off => 0,
            _ => daemon.super_slots,
        };
        plan.region = RegionConfig {
            feeds: config.feed.len() as u32,
            sources: count,
            histograms: count * (2 + u32::from(daemon.kernel_stamps) + KINDS_PER_SOURCE),
            books: daemon.books,
            book_levels: daemon.book_levels,
            supers,
            super_shares: daemon.super_shares,
            rings: if has_rings { sections.len() as u32 } else { 0 },
            ring_records: daemon.ring_records,
        };
        plan.supers = SuperConfig {
            sources,
            symbols: supers,
            members: daemon.books.max(1),
            shares: supers.saturating_mul(SHARES_PER_SUPER),
        };
        Ok(plan)
    }
}

impl Plan {
    /// What every channel used of its day's quotas, by name.
    fn day_uses(&self) -> impl Iterator<Item = (&str, DayUse)> + Clone {
        let sources = self.threads.iter().flatten();
        sources.map(|s| {
            (
                self.identities[usize::from(s.source)].name.as_str(),
                s.quota.load(),
            )
        })
    }

    /// Gives every channel what an earlier run used.
    fn restore_quotas(&self, file: &QuotaFile) {
        for source in self.threads.iter().flatten() {
            let name = &self.identities[usize::from(source.source)].name;
            source.quota.store(file.used(name));
        }
    }
}

/// A started daemon.
struct Daemon<'d, 'r> {
    args: &'d FeedArgs,
    config: &'d DaemonConfig,
    serve_metrics: &'d ServeMetrics,
    plan: &'d Plan,
    folder: PathBuf,
    held: &'d Held,
    /// What is used of daily quotas; `None` where nobody is asked.
    quotas: RefCell<Option<QuotaFile>>,
    clock: Clock,
    words: &'r [AtomicU64],
    region: Region<'r, AtomicU64>,
    halt: Halt,
}

/// The threads and the lines to them.
struct Running<'scope> {
    lines: Vec<CommandLine>,
    feeds: Vec<ScopedJoinHandle<'scope, Result<(), Failure>>>,
    supers: Option<ScopedJoinHandle<'scope, ()>>,
    notices: Receiver<Notice>,
}

impl<'d, 'r: 'd> Daemon<'d, 'r> {
    fn run<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        recorded: Option<&'scope Recorded>,
        memory: &SharedMemory,
    ) -> Result<(), Failure>
    where
        'd: 'scope,
        'r: 'scope,
    {
        let mut running = self.start(scope, recorded);
        let outcome = self.control(&mut running, memory);
        self.halt.ask();
        let mut ended = outcome;
        for thread in running.feeds {
            let result = thread.join().unwrap_or_else(|_| {
                Err(Failure::system(
                    "a feed thread ended by a fault of the program; please report what stands above",
                ))
            });
            ended = ended.and(result);
        }
        if let Some(supers) = running.supers
            && supers.join().is_err()
        {
            ended = ended.and(Err(Failure::system(
                "the thread of consolidated books ended by a fault of the program; please report what stands above",
            )));
        }
        if let Some(quotas) = self.quotas.take() {
            quotas.close(self.plan.day_uses());
        }
        self.region.set_state(RegionState::Ended);
        if let Err(e) = self.write_latencies() {
            eprintln!("warning: {e}");
        }
        ended
    }

    /// Starts every thread.
    fn start<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        recorded: Option<&'scope Recorded>,
    ) -> Running<'scope>
    where
        'd: 'scope,
        'r: 'scope,
    {
        let (config, plan) = (self.config, self.plan);
        let (notice_sender, notices) = sync_channel(NOTICES_MAX);
        let sections = config.daemon.threads(&config.feed);
        let rows: Vec<SourceWriter<'r, AtomicU64>> = (0..)
            .zip(&plan.identities)
            .map(|(source, identity)| {
                let mut row = self.region.source(source, identity);
                if config.daemon.kernel_stamps {
                    row.time_kernel();
                }
                row
            })
            .collect();
        let latencies: Vec<Option<u32>> = rows.iter().map(SourceWriter::super_latency).collect();
        let mut rows: Vec<Option<SourceWriter<'r, AtomicU64>>> = rows.into_iter().map(Some).collect();
        let threads = sections.len() + usize::from(plan.place == SuperBooksPlace::Thread);
        let mut running = Running {
            lines: Vec::new(),
            feeds: Vec::new(),
            supers: None,
            notices,
        };
        let mut consumers: Vec<Consumer<MarketEvent>> = Vec::new();
        for (index, section) in sections.into_iter().enumerate() {
            let (line, desk) = command_line();
            running.lines.push(line);
            let supers = match plan.place {
                SuperBooksPlace::Thread => {
                    let (ring, consumer) = spsc::ring(RING_EVENTS);
                    consumers.push(consumer);
                    Some(HandOver {
                        ring,
                        halt: self.halt.clone(),
                        waits: 0,
                    })
                }
                _ => None,
            };
            let thread = ThreadPlan {
                index,
                core: section.core,
                wait: section.wait,
                sources: plan.threads[index].clone(),
                receiver: &config.receiver,
                symbols: plan.symbols.clone(),
                kernel_stamps: config.daemon.kernel_stamps,
                recorded,
                threads,
            };
            let own_rows = thread
                .sources
                .iter()
                .map(|source| rows[usize::from(source.source)].take())
                .collect();
            let start = FeedStart {
                thread,
                region: self.region,
                rows: own_rows,
                supers,
                super_config: (plan.place == SuperBooksPlace::Inline).then(|| plan.supers.clone()),
                latencies: latencies.clone(),
                content: config.daemon.ring,
                clock: self.clock.clone(),
                notices: notice_sender.clone(),
                commands: desk,
                halt: self.halt.clone(),
            };
            let builder = std::thread::Builder::new().name(format!("feed {}", index + 1));
            let handle = builder.spawn_scoped(scope, move || start.run());
            running
                .feeds
                .push(handle.expect("the system has room for a thread"));
        }
        if plan.place == SuperBooksPlace::Thread {
            let (super_config, region) = (plan.supers.clone(), self.region);
            let (clock, halt, core) = (self.clock.clone(), self.halt.clone(), config.daemon.super_core);
            let waiting = DaemonSection::super_books_wait(running.feeds.len());
            let is_spinning = waiting.strategy == WaitStrategy::Spin;
            if let Some(warning) = config.daemon.super_books_warning(running.feeds.len()) {
                eprintln!("warning: {warning}");
            }
            let builder = std::thread::Builder::new().name("consolidated".into());
            let handle = builder.spawn_scoped(scope, move || {
                if let Err(failure) = tickwire_control::process::pin(core) {
                    let _ = notice_sender.try_send(Notice::Warning(failure.message));
                }
                let desk = SuperDesk::new(super_config, region, &latencies, clock, notice_sender);
                desk.run(consumers, is_spinning, &halt);
            });
            running.supers = Some(handle.expect("the system has room for a thread"));
        }
        running
    }

    /// Waits until every thread is ready, says so, and looks after everything slow until the end.
    fn control(&self, running: &mut Running<'_>, memory: &SharedMemory) -> Result<(), Failure> {
        let mut waiting = running.feeds.len();
        while waiting > 0 {
            match running.notices.recv_timeout(TICK) {
                Ok(Notice::Ready) => waiting -= 1,
                Ok(notice) => self.say(&notice, &mut 0),
                Err(_) if running.feeds.iter().any(ScopedJoinHandle::is_finished) => return Ok(()),
                Err(_) => {}
            }
            self.interrupted()?;
        }
        let system = |e: &dyn std::fmt::Display| Failure::system(e.to_string());
        let metrics = self.config.daemon.metrics;
        let metrics = metrics
            .map(|address| (self.serve_metrics)(address, &self.folder))
            .transpose()?;
        self.region.heartbeat(monotonic());
        self.region.set_state(RegionState::Ready);
        memory.publish().map_err(|e| system(&e))?;
        let mut waiter = Waiter::new(WaitStrategy::Poll);
        let gate = self.config.access.gate()?;
        let mut control = ControlSocket::bind(self.held.folder()?, gate, &mut waiter)?;
        let notifier = Notifier::from_environment();
        print!("{}", self.opening());
        notifier.say(&format!("READY=1\nSTATUS={}\n", self.status_line()));
        let outcome = self.look_after(running, memory, &mut waiter, &mut control, metrics, &notifier);
        notifier.say("STOPPING=1\n");
        outcome
    }

    fn look_after(
        &self,
        running: &mut Running<'_>,
        memory: &SharedMemory,
        waiter: &mut Waiter,
        control: &mut ControlSocket,
        mut metrics: Option<Box<dyn Served>>,
        notifier: &Notifier,
    ) -> Result<(), Failure> {
        let latency_every = Duration::from_secs(self.config.daemon.latency_every_s.into());
        let (mut next_status, mut next_latency) = (Instant::now(), Instant::now() + latency_every);
        let (mut played, mut named, mut frames) = (0, 0, None);
        let mut recovery_said = vec![[0; RECOVERY_SAID.len()]; self.plan.identities.len()];
        loop {
            waiter.wait(TICK.as_nanos() as u64);
            self.region.heartbeat(monotonic());
            let mut desk = ControlDesk {
                daemon: self,
                lines: &running.lines,
                stop: false,
            };
            control.serve(waiter, &mut desk);
            if desk.stop {
                return Ok(());
            }
            if let Some(metrics) = &mut metrics {
                metrics.poll();
            }
            while let Ok(notice) = running.notices.try_recv() {
                match notice {
                    // Every thread reads all of the recordings: one account is everybody's.
                    Notice::Played(counts) => {
                        played += 1;
                        frames = Some(counts);
                    }
                    notice => self.say(&notice, &mut named),
                }
            }
            let is_over = self.args.exit && played == running.feeds.len();
            if is_over {
                self.print_summary(frames.as_deref());
            }
            if is_over || running.feeds.iter().any(ScopedJoinHandle::is_finished) {
                return Ok(());
            }
            if let Some(quotas) = self.quotas.borrow_mut().as_mut() {
                quotas.keep(self.plan.day_uses());
            }
            self.interrupted()?;
            if memory.is_cut() {
                return Err(Failure::system(format!(
                    "{} was made shorter while it is in use: what readers see cannot be trusted any more; start the feed handler again",
                    memory.path().display()
                )));
            }
            let now = Instant::now();
            if now >= next_status {
                next_status = now + Duration::from_secs(1);
                self.say_recovery(&mut recovery_said);
                notifier.say(&format!("STATUS={}\n", self.status_line()));
            }
            if now >= next_latency {
                next_latency = now + latency_every;
                if let Err(e) = self.write_latencies() {
                    warn(format_args!("{e}"));
                }
            }
        }
    }

    /// Being told to stop is the daemon's normal end: it says so and leaves everything in order.
    fn interrupted(&self) -> Result<(), Failure> {
        match self.halt.signals.reason() {
            Some(reason) => Err(Failure::interrupted(format!(
                "{reason}; the region says that it ended"
            ))),
            None => Ok(()),
        }
    }

    fn say(&self, notice: &Notice, named: &mut u32) {
        let name = |source: u16| self.plan.identities[usize::from(source)].name.as_str();
        let text = match notice {
            Notice::Ready | Notice::Played(_) => return,
            Notice::Warning(text) => text.clone(),
            Notice::NoBookSlot(source, symbol) => format!(
                "no room to show the book of {symbol} on {}: daemon.books = {} is too few",
                name(*source),
                self.config.daemon.books
            ),
            Notice::NoSuperSlot(symbol) => format!(
                "no room to show the consolidated book of {symbol}: daemon.super_slots = {} is too few",
                self.config.daemon.super_slots
            ),
        };
        if matches!(notice, Notice::NoBookSlot(..) | Notice::NoSuperSlot(_)) {
            *named += 1;
            match *named {
                NAMED_MAX => warn(format_args!("further books without room are counted, not named")),
                n if n > NAMED_MAX => return,
                _ => {}
            }
        }
        warn(format_args!("{text}"));
    }

    /// Says what recovery could not do since the last time.
    fn say_recovery(&self, said: &mut [[u64; RECOVERY_SAID.len()]]) {
        let Some(reader) = self.reader() else { return };
        for (source, said) in (0..).zip(said) {
            let Ok(counters) = reader.counters(source) else {
                continue;
            };
            let name = &self.plan.identities[usize::from(source)].name;
            for ((counter, text), said) in RECOVERY_SAID.iter().zip(said) {
                let count = counters.get(*counter);
                if count > *said {
                    warn(format_args!("{name}: {text} ({count} times so far)"));
                }
                *said = count;
            }
        }
    }

    /// What is said once everything is ready.
    fn opening(&self) -> String {
        let sections = self.config.daemon.threads(&self.config.feed);
        let mut table = Table::new(
            "feeds",
            &["", "protocol", "channels", "thread", "core", "consolidated books"],
        );
        for (at, section) in sections.iter().enumerate() {
            for feed in self
                .config
                .feed
                .iter()
                .filter(|f| section.feeds.iter().any(|n| n == f.name()))
            {
                let part = match (
                    self.plan.place,
                    feed.protocol().has_depth(),
                    feed.is_consolidated(),
                ) {
                    (SuperBooksPlace::Off, _, _) | (_, true, false) => "-",
                    (_, false, _) => "national best",
                    (_, true, true) => "share",
                };
                table = table.row([
                    feed.name().to_string(),
                    feed.protocol().to_string(),
                    feed.channels.len().to_string(),
                    (at + 1).to_string(),
                    core_name(section.core),
                    part.to_string(),
                ]);
            }
        }
        let mut text = table.to_text(tickwire_console::terminal::width());
        text += &match self.plan.place {
            SuperBooksPlace::Thread => format!(
                "consolidated books: on a thread of their own, core {} ({})\n",
                core_name(self.config.daemon.super_core),
                self.config.daemon.super_books_reason(sections.len())
            ),
            SuperBooksPlace::Off => "consolidated books: none\n".to_string(),
            SuperBooksPlace::Auto | SuperBooksPlace::Inline => {
                format!(
                    "consolidated books: on the feed thread ({})\n",
                    self.config.daemon.super_books_reason(sections.len())
                )
            }
        };
        text += &format!(
            "folder: {} ({} MiB)\nmetrics: {}\n",
            self.folder.display(),
            self.region.layout().bytes() >> 20,
            self.config
                .daemon
                .metrics
                .map_or("none".to_string(), |address| format!("http://{address}/metrics"))
        );
        text
    }

    fn reader(&self) -> Option<Reader<'r, AtomicU64>> {
        Reader::attach(self.words).ok()
    }

    /// Channels by state, as a manager shows it.
    fn status_line(&self) -> String {
        let counts = self.state_counts();
        format!(
            "{} live, {} stale, {} building, {} ended",
            counts[1], counts[2], counts[0], counts[3]
        )
    }

    /// Channels building, live, stale, ended.
    fn state_counts(&self) -> [u32; 4] {
        let mut counts = [0; 4];
        if let Some(reader) = self.reader() {
            for source in 0..self.plan.identities.len() as u16 {
                counts[reader.source_state(source) as usize] += 1;
            }
        }
        counts
    }

    /// What `--exit` leaves: every channel as it was when the last recording had been played.
    fn print_summary(&self, frames: Option<&FrameCounts>) {
        let Some(reader) = self.reader() else { return };
        let columns = [
            "",
            "state",
            "next",
            "packets",
            "messages",
            "gaps",
            "messages lost",
            "books",
        ];
        let (mut table, mut packets, mut books) = (Table::new("played", &columns), 0, 0);
        for source in reader.sources() {
            let counters = reader.counters(source.number).ok();
            let count = |counter: Counter| {
                counters
                    .as_ref()
                    .map_or("".into(), |c| c.get(counter).to_string())
            };
            packets += source.totals.packets;
            books += source.totals.books;
            table = table.row([
                source.name.clone(),
                format!("{:?}", source.state),
                source.next_seq.to_string(),
                source.totals.packets.to_string(),
                count(Counter::Messages),
                count(Counter::Gaps),
                count(Counter::MessagesLost),
                source.totals.books.to_string(),
            ]);
        }
        let frames = frames.filter(|counts| counts.total() > 0 || !counts.mended().is_empty());
        let text = format!(
            "{}{packets} packets into {books} books; channels: {}\n{}",
            table.to_text(tickwire_console::terminal::width()),
            self.status_line(),
            frames.map(|counts| format!("{counts}\n")).unwrap_or_default()
        );
        // Whoever does not read it has seen enough.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }

    fn write_latencies(&self) -> Result<(), Failure> {
        let (Some(folder), Some(reader)) = (&self.config.daemon.latency_files, self.reader()) else {
            return Ok(());
        };
        let failed = |e: std::io::Error| {
            Failure::system(format!(
                "cannot write latency files into {}: {e}; see daemon.latency_files",
                folder.display()
            ))
        };
        tickwire_runtime::files::create_folders(folder).map_err(failed)?;
        for file in latency::files(&reader, self.clock.now()) {
            file.write(folder).map_err(failed)?;
        }
        Ok(())
    }
}

fn core_name(core: i32) -> String {
    match core {
        ..0 => "any".into(),
        core => core.to_string(),
    }
}

/// What a feed thread is started with.
struct FeedStart<'p, 'r> {
    thread: ThreadPlan<'p>,
    region: Region<'r, AtomicU64>,
    rows: Vec<Option<SourceWriter<'r, AtomicU64>>>,
    supers: Option<HandOver>,
    super_config: Option<SuperConfig>,
    latencies: Vec<Option<u32>>,
    content: RingContent,
    clock: Clock,
    notices: SyncSender<Notice>,
    commands: CommandDesk,
    halt: Halt,
}

impl FeedStart<'_, '_> {
    /// Memory is taken here, on the thread that uses it.
    fn run(self) -> Result<(), Failure> {
        tickwire_control::process::pin(self.thread.core)?;
        let notices = self.notices;
        let supers = match (self.supers, self.super_config) {
            (Some(hand_over), _) => Supers::Behind(hand_over),
            (None, Some(config)) => Supers::Inline(Box::new(SuperDesk::new(
                config,
                self.region,
                &self.latencies,
                self.clock.clone(),
                notices.clone(),
            ))),
            (None, None) => Supers::Off,
        };
        let has_ring = self.content != RingContent::Off;
        let common = Common {
            ring: has_ring.then(|| self.region.ring(self.thread.index as u32)),
            content: self.content,
            supers,
            clock: self.clock,
            notices: notices.clone(),
        };
        let thread = FeedThread::start(
            self.thread,
            self.region,
            self.rows,
            common,
            self.commands,
            self.halt,
        )?;
        // There is room: nothing but warnings came before.
        let _ = notices.send(Notice::Ready);
        thread.run()
    }
}

/// Answers the clients of the control socket.
struct ControlDesk<'a, 'd, 'r> {
    daemon: &'a Daemon<'d, 'r>,
    lines: &'a [CommandLine],
    stop: bool,
}

impl<'d, 'r: 'd> Answer for ControlDesk<'_, 'd, 'r> {
    type Request = Request;
    const WHO: &'static str = "a feed handler";

    fn answer(&mut self, request: Request, _: &Peer) -> Result<Value, String> {
        match request {
            Request::Subscribe { patterns, feed } => self.ask(Deed::Subscribe, &patterns, feed.as_deref()),
            Request::Unsubscribe { patterns, feed } => {
                self.ask(Deed::Unsubscribe, &patterns, feed.as_deref())
            }
            Request::Subscriptions { feed } => self.ask(Deed::List, &[], feed.as_deref()),
            Request::Status {} => Ok(self.status()),
            Request::Stop {} => {
                self.stop = true;
                Ok(json!({ "says": "ending" }))
            }
        }
    }
}

impl<'d, 'r: 'd> ControlDesk<'_, 'd, 'r> {
    fn status(&self) -> Value {
        let counts = self.daemon.state_counts();
        json!({
            "pid": std::process::id(),
            "channels": { "building": counts[0], "live": counts[1], "stale": counts[2], "ended": counts[3] },
            "says": self.daemon.status_line(),
        })
    }

    /// Has every feed thread do a command.
    fn ask(&self, deed: Deed, patterns: &[String], feed: Option<&str>) -> Result<Value, String> {
        let feeds = &self.daemon.config.feed;
        let feed = match feed {
            None => None,
            Some(name) => match feeds.iter().position(|f| f.name() == name) {
                Some(number) => Some(number as u8),
                None => {
                    let names: Vec<&str> = feeds.iter().map(|f| f.name()).collect();
                    return Err(format!(
                        "no feed has the name {name:?}; there are {}",
                        names.join(", ")
                    ));
                }
            },
        };
        if patterns.is_empty() && deed != Deed::List {
            return Err("no pattern; name symbols, or * for all".into());
        }
        let patterns: Vec<Pattern> = patterns
            .iter()
            .map(|text| text.parse().map_err(|e| format!("{text:?}: {e}")))
            .collect::<Result<_, String>>()?;
        let command = Command {
            deed,
            patterns,
            feed,
            answers: Vec::new(),
        };
        let mut answers = Vec::new();
        for line in self.lines {
            let beat = || self.daemon.region.heartbeat(monotonic());
            answers.extend(line.ask(command.clone(), COMMAND_PATIENCE, beat)?.answers);
        }
        self.state_after(deed, &answers)
    }

    /// What is subscribed to after a command, feed by feed, and what the command did.
    fn state_after(&self, deed: Deed, answers: &[ChannelAnswer]) -> Result<Value, String> {
        let mut list = Vec::new();
        let (mut matched, mut changed, mut refused) = (0, 0, None);
        for (number, feed) in self.daemon.config.feed.iter().enumerate() {
            let own: Vec<&ChannelAnswer> = answers.iter().filter(|a| usize::from(a.feed) == number).collect();
            let Some(first) = own.first() else { continue };
            let sum = |of: fn(&ChannelAnswer) -> u64| own.iter().map(|a| of(a)).sum::<u64>();
            let of_kind = |wanted: bool| -> Vec<String> {
                let rules = first.rules.iter().filter(|rule| rule.wanted == wanted);
                rules.map(|rule| rule.pattern.to_string()).collect()
            };
            let rules: Vec<String> = first
                .rules
                .iter()
                .map(|rule| format!("{}{}", if rule.wanted { '+' } else { '-' }, rule.pattern))
                .collect();
            let (seen, filtered) = (sum(|a| a.seen.seen), sum(|a| a.seen.filtered));
            let mut entry = json!({
                "feed": feed.name(),
                "patterns": of_kind(true),
                "except": of_kind(false),
                "rules": rules,
                "instruments": sum(|a| a.instruments.into()),
                "seen": seen,
                "filtered": filtered,
                "passed": seen - filtered,
            });
            if deed != Deed::List {
                let (named, joined) = (sum(|a| a.matched.into()), sum(|a| a.changed.into()));
                entry["matched"] = named.into();
                entry["changed"] = joined.into();
                entry["unchanged"] = named.saturating_sub(joined).into();
                matched += named;
                changed += joined;
            }
            refused = refused.or_else(|| {
                own.iter()
                    .find_map(|a| a.refused.as_ref().map(|e| format!("feed {}: {e}", feed.name())))
            });
            list.push(entry);
        }
        if let Some(e) = refused {
            return Err(e);
        }
        let mut answer = json!({ "subscriptions": list });
        if deed != Deed::List {
            let verb = if deed == Deed::Subscribe {
                "joining"
            } else {
                "leaving"
            };
            answer["says"] = format!(
                "{matched} known instruments match, {changed} {verb}, {} as before",
                matched.saturating_sub(changed)
            )
            .into();
        }
        Ok(answer)
    }
}
