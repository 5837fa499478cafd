//! `tickwire feed`: the daemon that keeps books in shared memory for other programs.
//!
//! ```text
//! feed threads   sockets | recordings ─► Receiver ─► ThreadBooks ─► sources, books, rings ──► shared memory ─► readers
//! super thread   rings of levels ──────► SuperPublisher ─────────► consolidated books ───────────►┘
//! this thread    heartbeat, control socket, metrics, latency files, the service manager, signals
//! ```
//! The feed threads own everything on the hot path; this one starts them, asks them over a bounded line, and
//! ends them.
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
//! let config: DaemonConfig = tickwire_console::settings::read(text)?;
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

mod answers;
pub mod channel_books;
pub mod command;
mod config;
mod daemon;
mod latency;
mod plan;
mod quota;
pub mod rehearsal;
mod report;
mod statistics;
pub mod supers;
mod thread;
pub mod thread_books;

pub use config::{DaemonConfig, DaemonSection, LatencyOf, RingContent, SuperBooksPlace};

use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tickwire_market::Symbol;
use tickwire_runtime::capture::FrameCounts;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::shared::{REGION_FILE, SharedMemory};
use tickwire_runtime::signal::StopFlag;
use tickwire_shm::{Identity, Region};

use daemon::Daemon;
use plan::Plan;
use quota::QuotaFile;
use thread::Recorded;
use tickwire_console::failure::Failure;
use tickwire_control::http::Served;
use tickwire_control::process::FolderLock;
use tickwire_replay::tape::Speed;
use tickwire_replay::tape::Stopping;
use tickwire_venues::channels::FeedFile;

/// The arguments of `tickwire feed`.
#[derive(clap::Args, Debug)]
pub struct FeedArgs {
    /// Configuration file (TOML): feeds and `[daemon]`; see examples/daemon.toml
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Folder of shared memory and control socket; else TICKWIRE_FOLDER, else daemon.folder of the file, else
    /// /run/tickwire for root and $XDG_RUNTIME_DIR/tickwire for others
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
    /// How an interface's lines are received.
    Receiving(String),
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
    let held = FolderLock::take(&folder, config.access.sharing()?)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use tickwire_console::failure::Code;

    /// A feed thread that polls sees that it is to stop, and is over, long before the control thread looks
    /// again.
    #[test]
    fn a_daemon_that_is_told_to_stop_says_so_whoever_hears_of_it_first() {
        let text = r#"
            [[feed]]
            venue = "nasdaq"
            [[feed.channel]]
            name = "1"
            live = { a = "239.192.78.1:30781" }

            [[daemon.thread]]
            wait = "poll"
            feeds = ["nasdaq"]
        "#;
        let config: DaemonConfig = tickwire_console::settings::read(text).expect("it is read");
        let folder = std::env::temp_dir().join(format!("tickwire-stopped-{}", std::process::id()));
        let args = FeedArgs {
            config: "feeds.toml".into(),
            folder: Some(folder.clone()),
            replay: Vec::new(),
            speed: Speed::Max,
            passes: 1,
            exit: false,
        };
        let no_metrics: &ServeMetrics = &|_, _| Err(Failure::config("nothing serves metrics here"));
        for _ in 0..3 {
            let stop = StopFlag::new();
            // The last daemon's stays, for those who want to see how it ended.
            let _ = std::fs::remove_file(folder.join("region"));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !folder.join("region").exists() {
                        std::hint::spin_loop();
                    }
                    let control = UnixStream::connect(folder.join("control"));
                    // The control thread waits by now, most times; whether it does must not matter.
                    std::thread::sleep(Duration::from_millis(20));
                    stop.stop();
                    control.expect("who finds the region finds the control socket");
                });
                let failure = run(&args, &config, no_metrics, &stop).expect_err("it was told to stop");
                assert_eq!(failure.code, Code::Interrupted, "{}", failure.message);
            });
        }
        std::fs::remove_dir_all(folder).expect("the daemon has left it");
    }
}
