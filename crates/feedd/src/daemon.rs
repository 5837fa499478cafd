//! The daemon's main thread: starts the feed threads, looks after everything slow, and ends them.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use tickwire_book::SuperConfig;
use tickwire_console::failure::Failure;
use tickwire_console::warn;
use tickwire_control::http::Served;
use tickwire_control::notify::Notifier;
use tickwire_control::process::FolderLock;
use tickwire_control::socket::ControlSocket;
use tickwire_market::{MarketEvent, Nanos};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::shared::{SharedMemory, monotonic};
use tickwire_runtime::spsc::{self, Consumer};
use tickwire_runtime::wait::{WaitStrategy, Waiter};
use tickwire_shm::{Region, RegionConfig, RegionState, SourceWriter};

use crate::answers::ControlAnswers;
use crate::channel_books::ThreadShared;
use crate::command::{CommandLine, CommandQueue, command_line};
use crate::config::{DaemonConfig, DaemonSection, LatencyOf, RingContent, SuperBooksPlace};
use crate::plan::Plan;
use crate::quota::QuotaFile;
use crate::rehearsal::Room;
use crate::report::RECOVERY_SAID;
use crate::supers::{HandOver, RING_EVENTS, SuperPublisher, Supers};
use crate::thread::{FeedThread, Recorded, ThreadPlan};
use crate::{FeedArgs, Halt, Notice, ServeMetrics};

/// Between two looks at everything that this thread does.
const TICK: Duration = Duration::from_millis(50);
/// Notices that may wait for this thread; further ones are dropped but for the counters that say the same.
const NOTICES_MAX: usize = 64;

/// A started daemon.
pub(crate) struct Daemon<'d, 'r> {
    pub(crate) args: &'d FeedArgs,
    pub(crate) config: &'d DaemonConfig,
    pub(crate) serve_metrics: &'d ServeMetrics,
    pub(crate) plan: &'d Plan,
    pub(crate) folder: PathBuf,
    pub(crate) held: &'d FolderLock,
    /// What is used of daily quotas; `None` where nobody is asked.
    pub(crate) quotas: RefCell<Option<QuotaFile>>,
    pub(crate) clock: Clock,
    pub(crate) words: &'r [AtomicU64],
    pub(crate) region: Region<'r, AtomicU64>,
    pub(crate) halt: Halt,
}

/// The threads and the lines to them.
struct Running<'scope> {
    lines: Vec<CommandLine>,
    feeds: Vec<ScopedJoinHandle<'scope, Result<(), Failure>>>,
    supers: Option<ScopedJoinHandle<'scope, ()>>,
    notices: Receiver<Notice>,
}

impl Running<'_> {
    /// Whether a feed thread is over. It ends by itself at a failure, which `join` gives, and by a signal,
    /// which it may see before the control thread does: whoever finds it over asks [`Daemon::interrupted`]
    /// afterwards.
    fn has_ended(&self) -> bool {
        self.feeds.iter().any(ScopedJoinHandle::is_finished)
    }
}

impl<'d, 'r: 'd> Daemon<'d, 'r> {
    pub(crate) fn run<'scope>(
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
                if super::plan::times_hook(config) {
                    row.time_hook();
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
            let (line, commands) = command_line();
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
                receive_batch: config.daemon.receive_batch,
                rehearse_ns: u64::from(config.daemon.rehearse_us) * Nanos::MICRO,
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
                like: plan.region,
                rows: own_rows,
                supers,
                super_config: (plan.place == SuperBooksPlace::Inline).then(|| plan.supers.clone()),
                latencies: latencies.clone(),
                content: config.daemon.ring,
                latency_of: config.daemon.latency_of,
                clock: self.clock.clone(),
                notices: notice_sender.clone(),
                commands,
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
                let books = SuperPublisher::new(super_config, region, &latencies, clock, notice_sender);
                books.run(consumers, is_spinning, &halt);
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
                Err(_) if running.has_ended() => return self.interrupted(),
                Err(_) => {}
            }
            self.interrupted()?;
        }
        let system = |e: &dyn std::fmt::Display| Failure::system(e.to_string());
        let metrics = self.config.daemon.metrics;
        let metrics = metrics
            .map(|address| (self.serve_metrics)(address, &self.folder))
            .transpose()?;
        let mut waiter = Waiter::new(WaitStrategy::Poll);
        let gate = self.config.access.gate()?;
        // The region last: who finds it may subscribe at once.
        let mut control = ControlSocket::bind(self.held.folder()?, gate, &mut waiter)?;
        self.region.heartbeat(monotonic());
        self.region.set_state(RegionState::Ready);
        memory.publish().map_err(|e| system(&e))?;
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
            let mut answers = ControlAnswers {
                daemon: self,
                lines: &running.lines,
                stop: false,
            };
            control.serve(waiter, &mut answers);
            if answers.stop {
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
            if is_over {
                return Ok(());
            }
            if running.has_ended() {
                return self.interrupted();
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
}

/// What a feed thread is started with.
struct FeedStart<'p, 'r> {
    thread: ThreadPlan<'p>,
    region: Region<'r, AtomicU64>,
    /// Its sizes.
    like: RegionConfig,
    rows: Vec<Option<SourceWriter<'r, AtomicU64>>>,
    supers: Option<HandOver>,
    super_config: Option<SuperConfig>,
    latencies: Vec<Option<u32>>,
    content: RingContent,
    latency_of: LatencyOf,
    clock: Clock,
    notices: SyncSender<Notice>,
    commands: CommandQueue,
    halt: Halt,
}

impl FeedStart<'_, '_> {
    /// Memory is taken here, on the thread that uses it.
    fn run(self) -> Result<(), Failure> {
        tickwire_control::process::pin(self.thread.core)?;
        let notices = self.notices;
        let supers = match (self.supers, self.super_config) {
            (Some(hand_over), _) => Supers::Behind(hand_over),
            (None, Some(config)) => Supers::Inline(Box::new(SuperPublisher::new(
                config,
                self.region,
                &self.latencies,
                self.clock.clone(),
                notices.clone(),
            ))),
            (None, None) => Supers::Off,
        };
        let has_ring = self.content != RingContent::Off;
        let shared = ThreadShared {
            ring: has_ring.then(|| self.region.ring(self.thread.index as u32)),
            content: self.content,
            latency_of: self.latency_of,
            supers,
            clock: self.clock,
            notices: notices.clone(),
        };
        let channels = self.thread.sources.len();
        let spare = self.thread.spare_time();
        let room = spare.map(|_| Room::new(channels, &self.like));
        let thread = FeedThread::start(
            self.thread,
            self.region,
            self.rows,
            shared,
            self.commands,
            self.halt,
            room.as_ref().map(Room::region),
        )?;
        // There is room: nothing but warnings came before.
        let _ = notices.send(Notice::Ready);
        thread.run()
    }
}
