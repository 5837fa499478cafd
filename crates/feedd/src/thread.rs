//! A feed thread: its channels, the loop that receives them, and the loop that plays recordings into them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tickwire_book::{Books, BooksConfig, Depth, Relay};
use tickwire_feed::{Channel, Line, Pattern};
use tickwire_market::{Counter, Counters, Nanos};
use tickwire_runtime::capture::CaptureReader;
use tickwire_runtime::clock::tsc;
use tickwire_runtime::udp::DATAGRAM_BYTES_MAX;
use tickwire_runtime::udp::Stamping;
use tickwire_runtime::wait::{WaitStrategy, Waiter};
use tickwire_shm::{Region, SourceWriter};

use super::command::CommandDesk;
use super::desk::{Common, Desk};
use super::unit::{Look, Station, Unit};
use super::{Halt, Notice};
use tickwire_console::failure::Failure;
use tickwire_console::health::{count_waits, follow_clock};
use tickwire_receive::intake::Intake;
use tickwire_replay::tape::Speed;
use tickwire_replay::tape::{End, Frame, Stopping, Tape};
use tickwire_venues::channels::{FeedConfig, FeedFile};
use tickwire_venues::receiver::ReceiverSection;
use tickwire_venues::receiver::books_config;
use tickwire_venues::wait::Wait;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

/// How often counters are shown, in nanoseconds.
const REPORT_NS: u64 = 100 * Nanos::MILLI;
/// How often a spinning thread looks at recovery groups and connections.
const THOROUGH_NS: u64 = 50 * Nanos::MICRO;
/// The longest sleep: a command is done within this.
const NAP_NS: u64 = Nanos::MILLI;
/// How far recorded time goes on until timers of channels without packets are looked at.
const RECORDED_TICK_NS: u64 = Nanos::MILLI;
/// A thread with more sockets than this asks the kernel which of them have input, instead of all of them.
const SPIN_SOCKETS: usize = 8;

/// One channel of a feed thread.
#[derive(Clone)]
pub(crate) struct SourcePlan {
    /// Its number in shared memory.
    pub source: u16,
    pub feed: FeedConfig,
    /// The feed's number.
    pub feed_number: u8,
    /// Which of the feed's channels.
    pub channel: usize,
    pub silence_ns: u64,
    /// What it used of its day's quotas.
    pub quota: super::quota::Cell,
    pub relay: Option<Relay>,
}

/// Recordings in the place of sockets.
pub(crate) struct Recorded {
    pub files: Vec<PathBuf>,
    pub speed: Speed,
    /// How often they are played.
    pub passes: u32,
    pub routes: FeedFile,
}

/// What a feed thread is made from.
pub(crate) struct ThreadPlan<'p> {
    pub index: usize,
    pub core: i32,
    pub wait: Wait,
    pub sources: Vec<SourcePlan>,
    pub receiver: &'p ReceiverSection,
    /// Subscribed to before the first packet.
    pub symbols: Vec<Pattern>,
    /// The kernel's receive times are asked for.
    pub kernel_stamps: bool,
    pub recorded: Option<&'p Recorded>,
    /// Of all spinning threads, to choose how to wait.
    pub threads: usize,
}

/// Makes a channel with its books and sockets.
struct Build<'a, 'r> {
    plan: &'a SourcePlan,
    receiver: &'a ReceiverSection,
    /// A desk of the day before; without one, a new row.
    desk: Option<Desk<'r>>,
    row: Option<SourceWriter<'r, AtomicU64>>,
    region: Region<'r, AtomicU64>,
    intake: Option<Intake>,
    common: &'a mut Common<'r>,
}

impl<'r> WithChannel for Build<'_, 'r> {
    type Output = Option<Box<dyn Station<'r> + 'r>>;

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Self::Output {
        let books = tracked_books(self.receiver, &channel, depth);
        let desk = match (self.desk, self.row) {
            (Some(mut desk), _) => {
                desk.restart(books, self.common);
                desk
            }
            (None, Some(row)) => Desk::new(self.region, row, books, self.plan.relay),
            (None, None) => return None,
        };
        let mut unit = Unit::new(
            channel,
            desk,
            self.intake,
            self.plan.feed_number,
            self.plan.silence_ns,
        );
        unit.keep_quota(self.plan.quota.clone());
        Some(Box::new(unit))
    }
}

/// Books that say what each event did to them.
pub(crate) fn tracked_books<C: Channel>(c: &ReceiverSection, channel: &C, depth: Depth) -> Books {
    Books::new(BooksConfig {
        instruments: c.max_instruments.saturating_add(1),
        tracked: true,
        ..books_config(c, channel.venue(), depth)
    })
}

/// Channels before their first packet.
fn stations<'r>(
    plan: &ThreadPlan<'_>,
    region: Region<'r, AtomicU64>,
    before: Vec<Desk<'r>>,
    mut rows: Vec<Option<SourceWriter<'r, AtomicU64>>>,
    waiter: &mut Waiter,
    common: &mut Common<'r>,
    halt: &Halt,
) -> Result<Vec<Box<dyn Station<'r> + 'r>>, Failure> {
    let mut before = before.into_iter();
    let mut made = Vec::with_capacity(plan.sources.len());
    for (at, source) in plan.sources.iter().enumerate() {
        // Hundreds of channels take seconds; whoever stops the daemon does not wait for the rest.
        if halt.is_stopping() {
            break;
        }
        let receiver = &plan.receiver.shared_by(source.feed.channels.len());
        let intake = match plan.recorded {
            Some(_) => None,
            None => {
                let ports = source.feed.channels[source.channel].ports(&source.feed.interface);
                let stamping = match plan.kernel_stamps {
                    true => Stamping::Kernel,
                    false => Stamping::OnDemand,
                };
                let buffer_bytes = receiver.receive_buffer;
                Some(Intake::join_stamped(&ports, buffer_bytes, stamping, waiter)?)
            }
        };
        let mut reception = match plan.recorded {
            Some(_) => Reception::recorded(receiver.max_instruments, receiver.max_orders, None),
            None => Reception::new(receiver),
        };
        let wants_all = plan.symbols.contains(&Pattern::ALL);
        reception.symbols = (!wants_all).then(Vec::new);
        let build = Build {
            plan: source,
            receiver,
            desk: before.next(),
            row: rows.get_mut(at).and_then(Option::take),
            region,
            intake,
            common,
        };
        let Some(mut station) = wiring::with_channel(&source.feed, source.channel, &reception, build)? else {
            continue;
        };
        if !wants_all {
            station
                .subscribe(Nanos::ZERO, &plan.symbols, common)
                .map_err(|e| Failure::config(format!("daemon.symbols: {e}")))?;
        }
        made.push(station);
    }
    Ok(made)
}

/// Everything on a feed thread.
pub(crate) struct FeedThread<'p, 'r> {
    plan: ThreadPlan<'p>,
    region: Region<'r, AtomicU64>,
    stations: Vec<Box<dyn Station<'r> + 'r>>,
    common: Common<'r>,
    waiter: Waiter,
    /// Whether a wait may sleep.
    sleeps: bool,
    commands: CommandDesk,
    halt: Halt,
    /// How often the system's clock was set.
    clock_steps: u64,
}

impl<'p, 'r> FeedThread<'p, 'r> {
    /// Pins the calling thread, joins every group, makes every book.
    pub(crate) fn start(
        plan: ThreadPlan<'p>,
        region: Region<'r, AtomicU64>,
        rows: Vec<Option<SourceWriter<'r, AtomicU64>>>,
        mut common: Common<'r>,
        commands: CommandDesk,
        halt: Halt,
    ) -> Result<FeedThread<'p, 'r>, Failure> {
        tickwire_control::process::pin(plan.core)?;
        let sockets: usize = plan.sources.iter().map(sockets_of).sum();
        // One core is left to everybody else.
        let spins = plan.wait.strategy(plan.threads + 1) == WaitStrategy::Spin;
        // Many sockets: the kernel is asked which have input, without sleeping.
        let strategy = match spins && sockets <= SPIN_SOCKETS {
            true => WaitStrategy::Spin,
            false => WaitStrategy::Poll,
        };
        let mut waiter = Waiter::new(strategy);
        let stations = stations(&plan, region, Vec::new(), rows, &mut waiter, &mut common, &halt)?;
        for warning in stations.iter().filter_map(|station| station.warning()) {
            let _ = common.notices.try_send(Notice::Warning(warning));
        }
        Ok(FeedThread {
            plan,
            region,
            stations,
            common,
            waiter,
            sleeps: !spins,
            commands,
            halt,
            clock_steps: 0,
        })
    }

    /// Receives, or plays, until everything ends.
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let outcome = match self.plan.recorded {
            None => self.receive(),
            Some(recorded) => self.play(recorded),
        };
        self.report();
        outcome
    }

    fn receive(&mut self) -> Result<(), Failure> {
        let mut buffer = vec![0_u8; DATAGRAM_BYTES_MAX];
        let (mut next_report, mut next_thorough, mut looks) = (Nanos::ZERO, Nanos::ZERO, 0_u32);
        while !self.halt.is_stopping() {
            let now = self.common.clock.now();
            let is_thorough = self.sleeps || now >= next_thorough;
            if is_thorough {
                next_thorough = now.after(THOROUGH_NS);
            }
            let mut look = Look {
                waiter: &self.waiter,
                buffer: &mut buffer,
                is_thorough,
            };
            let (mut any, mut due) = (false, NAP_NS);
            for station in &mut self.stations {
                any |= station.poll(&mut look, &mut self.common);
            }
            let now = self.common.clock.now();
            for station in &mut self.stations {
                station.on_time(now, &mut self.common);
                let timeout = station.poll_timeout().map_or(NAP_NS, |t| t.since(now));
                due = due.min(timeout);
            }
            if self.commands.has_command() {
                self.serve(now);
            }
            if now >= next_report {
                // Everything slow, ten times a second; the clock follows the kernel's once a second.
                next_report = now.after(REPORT_NS);
                looks += 1;
                if looks.is_multiple_of(10) {
                    follow_clock(&mut self.common.clock, &mut self.clock_steps);
                }
                self.report();
            }
            let due = if any || !self.sleeps { 0 } else { due };
            self.waiter.wait(due);
        }
        Ok(())
    }

    fn play(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        let mut tape = Tape::new(recorded.speed);
        let (mut damage, mut is_whole) = (None, true);
        'passes: for pass in 0..recorded.passes {
            if pass > 0 {
                self.start_again()?;
                tape.rewind();
            }
            for file in &recorded.files {
                match self.play_file(&mut tape, recorded, file) {
                    Ok(()) => {}
                    Err(End::Interrupted) => {
                        is_whole = false;
                        break 'passes;
                    }
                    Err(End::Damaged(message)) => damage = Some(message),
                    Err(End::Failed(failure)) => return Err(failure),
                }
            }
            // What still waits for the other line will not come any more.
            let end = tape.last().after(Nanos::DAY);
            for station in &mut self.stations {
                station.finish(end, &mut self.common);
            }
        }
        self.report();
        // The control thread empties the line all the time.
        let counts = tape.skipped();
        let loss = counts.loss().filter(|_| is_whole);
        let _ = self.common.notices.send(Notice::Played(Box::new(counts)));
        while !self.halt.is_stopping() {
            if self.commands.has_command() {
                self.serve(tape.last());
                self.report();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        match damage.or_else(|| loss.map(|loss| format!("not everything was played: {loss}"))) {
            Some(message) => Err(Failure::check(message)),
            None => Ok(()),
        }
    }

    fn play_file(&mut self, tape: &mut Tape, recorded: &Recorded, file: &Path) -> Result<(), End> {
        let mut reader = CaptureReader::open(file)?;
        let places: HashMap<(usize, usize), usize> = self
            .plan
            .sources
            .iter()
            .enumerate()
            .map(|(at, source)| ((usize::from(source.feed_number), source.channel), at))
            .collect();
        let (mut next_report, mut next_tick) = (tsc(), Nanos::ZERO);
        let report_ticks = self.common.clock.span_ticks(REPORT_NS);
        while let Some(Frame { now, udp }) = tape.frame(&mut reader)? {
            let Ok(udp) = udp else { continue };
            let Some(found) = recorded.routes.find(udp.destination) else {
                continue;
            };
            let Some(&at) = places.get(&(found.feed, found.channel)) else {
                continue;
            };
            loop {
                if self.halt.is_stopping() {
                    return Err(End::Interrupted);
                }
                if self.commands.has_command() {
                    self.serve(now);
                }
                if tape.is_due(now) {
                    break;
                }
            }
            if now >= next_tick {
                next_tick = now.after(RECORDED_TICK_NS);
                for station in &mut self.stations {
                    station.on_time(now, &mut self.common);
                }
            }
            let line = found.line.unwrap_or(Line::Retransmit);
            self.stations[at].on_datagram(now, found.port, line, udp.payload, &mut self.common);
            if tsc() >= next_report {
                next_report = tsc() + report_ticks;
                self.report();
            }
        }
        Ok(())
    }

    /// Another pass over the recordings: new channels and books in the old places.
    fn start_again(&mut self) -> Result<(), Failure> {
        let before = self
            .stations
            .drain(..)
            .map(|station| station.into_desk())
            .collect();
        self.stations = stations(
            &self.plan,
            self.region,
            before,
            Vec::new(),
            &mut self.waiter,
            &mut self.common,
            &self.halt,
        )?;
        Ok(())
    }

    fn serve(&mut self, now: Nanos) {
        let (stations, common) = (&mut self.stations, &mut self.common);
        self.commands.serve(|command| {
            for station in stations.iter_mut() {
                station.command(now, command, common);
            }
        });
    }

    fn report(&mut self) {
        let mut own = Counters::default();
        own.add(Counter::HandOverWaits, self.common.supers.waits());
        count_waits(&mut own, self.waiter.errors());
        own.add(Counter::ClockSteps, self.clock_steps);
        // The thread's own counts stand in its first channel.
        for station in &mut self.stations {
            station.report(&own);
            own = Counters::default();
        }
    }
}

fn sockets_of(source: &SourcePlan) -> usize {
    let ports = source.feed.channels[source.channel].ports(&source.feed.interface);
    ports.groups.iter().flatten().flatten().count() + 1
}
