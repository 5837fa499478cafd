//! A feed thread: its channels, received or played from recordings, their books, and what the control thread
//! asks between two packets.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tickwire_book::{Books, BooksConfig, Relay};
use tickwire_feed::{Line, Pattern};
use tickwire_market::{Counter, Counters, Nanos};
use tickwire_receive::SocketOptions;
use tickwire_receive::receiver::{Consumer, Receiver, SourceFacts, SpareTime, Taken, sockets_of};
use tickwire_runtime::capture::CaptureReader;
use tickwire_runtime::clock::tsc;
use tickwire_runtime::udp::Stamping;
use tickwire_runtime::wait::WaitStrategy;
use tickwire_shm::{Region, SourceWriter};

use super::channel_books::{ChannelBooks, ThreadShared};
use super::command::CommandQueue;
use super::rehearsal::{Rehearsal, Rehearsed};
use super::thread_books::ThreadBooks;
use super::{Halt, Notice};
use tickwire_console::failure::Failure;
use tickwire_console::health::{count_waits, follow_clock};
use tickwire_replay::tape::Speed;
use tickwire_replay::tape::{End, Frame, Stopping, Tape};
use tickwire_venues::channels::{FeedConfig, FeedFile};
use tickwire_venues::receiver::ReceiverSection;
use tickwire_venues::receiver::books_config;
use tickwire_venues::wait::Wait;
use tickwire_venues::wiring::Reception;

/// How often counters are shown, in nanoseconds.
const REPORT_NS: u64 = 100 * Nanos::MILLI;
/// How far recorded time goes on until timers of channels without packets are looked at.
const RECORDED_TICK_NS: u64 = Nanos::MILLI;

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
    /// How many datagrams a call takes off a socket at most.
    pub receive_batch: u32,
    /// How often a packet is rehearsed where the thread never sleeps, nanoseconds; 0 for never.
    pub rehearse_ns: u64,
    pub recorded: Option<&'p Recorded>,
    /// Of all spinning threads, to choose how to wait.
    pub threads: usize,
}

impl ThreadPlan<'_> {
    /// How the thread waits. One core is left to everybody else.
    fn waiting(&self) -> WaitStrategy {
        self.wait.strategy(self.threads + 1)
    }

    /// Its time to rehearse, if it has any: it waits for packets, without sleeping.
    pub(crate) fn spare_time(&self) -> Option<SpareTime> {
        let spare = SpareTime::new(self.waiting(), self.rehearse_ns);
        spare.filter(|_| self.recorded.is_none())
    }
}

/// Books that say what each event did to them.
fn tracked_books(c: &ReceiverSection, facts: &SourceFacts) -> Books {
    Books::new(BooksConfig {
        instruments: c.max_instruments.saturating_add(1),
        tracked: true,
        ..books_config(c, facts.venue, facts.depth)
    })
}

/// Everything on a feed thread.
pub(crate) struct FeedThread<'p, 'r> {
    plan: ThreadPlan<'p>,
    region: Region<'r, AtomicU64>,
    receiver: Receiver<ThreadBooks<'r>>,
    books: ThreadBooks<'r>,
    commands: CommandQueue,
    halt: Halt,
    /// How often the system's clock was set.
    clock_steps: u64,
    /// In which packets are rehearsed, of each channel in turn.
    spare: Option<SpareTime>,
}

impl<'p, 'r> FeedThread<'p, 'r> {
    /// Pins the calling thread, joins every group, makes every book.
    pub(crate) fn start(
        plan: ThreadPlan<'p>,
        region: Region<'r, AtomicU64>,
        rows: Vec<Option<SourceWriter<'r, AtomicU64>>>,
        shared: ThreadShared<'r>,
        commands: CommandQueue,
        halt: Halt,
        aside: Option<Region<'r, AtomicU64>>,
    ) -> Result<FeedThread<'p, 'r>, Failure> {
        tickwire_control::process::pin(plan.core)?;
        let sockets: usize = plan
            .sources
            .iter()
            .map(|source| sockets_of(&source.feed, source.channel))
            .sum();
        let receiver = Receiver::empty(plan.waiting(), sockets);
        let mut thread = FeedThread {
            books: ThreadBooks::new(shared, plan.kernel_stamps),
            plan,
            region,
            receiver,
            commands,
            halt,
            clock_steps: 0,
            spare: None,
        };
        thread.open(Vec::new(), rows)?;
        if let Some(aside) = aside {
            thread.rehearse_in(aside);
        }
        if thread.plan.recorded.is_none() {
            for line in thread.receiver.hook(thread.plan.receiver)? {
                let _ = thread.books.shared.notices.try_send(Notice::Receiving(line));
            }
        }
        for warning in thread.receiver.warnings() {
            let _ = thread.books.shared.notices.try_send(Notice::Warning(warning));
        }
        Ok(thread)
    }

    /// Packets are rehearsed from now on in such a region ([`Room::region`](super::rehearsal::Room::region)).
    fn rehearse_in(&mut self, aside: Region<'r, AtomicU64>) {
        let of = |(facts, source): (&SourceFacts, &SourcePlan)| Rehearsed {
            venue: facts.venue,
            depth: facts.depth,
            relay: source.relay,
        };
        let channels: Vec<_> = self
            .receiver
            .facts()
            .iter()
            .zip(&self.plan.sources)
            .map(of)
            .collect();
        let rehearsal = Rehearsal::new(&self.books.shared, aside, &channels);
        self.books.rehearse_with(rehearsal);
        self.spare = self.plan.spare_time();
    }

    /// No packet has come: the code of one channel's way is kept in the caches, and what its next packet will
    /// need.
    #[inline]
    fn idle(&mut self, now: Nanos) {
        let Some(turn) = self.spare.as_mut().and_then(|spare| spare.take(now)) else {
            return;
        };
        let source = turn % self.plan.sources.len().max(1);
        let receiver = &mut self.receiver;
        self.books
            .rehearse(source, now, |books| receiver.rehearse(source, now, books));
        receiver.fetch(source);
    }

    /// Makes the channels, with the books of the day before, or with a new row each; joins their groups
    /// unless they are played.
    fn open(
        &mut self,
        before: Vec<ChannelBooks<'r>>,
        mut rows: Vec<Option<SourceWriter<'r, AtomicU64>>>,
    ) -> Result<(), Failure> {
        let plan = &self.plan;
        let stamping = match plan.kernel_stamps {
            true => Stamping::Kernel,
            false => Stamping::Off,
        };
        let mut before = before.into_iter();
        for (at, source) in plan.sources.iter().enumerate() {
            // Hundreds of channels take seconds; whoever stops the daemon does not wait for the rest.
            if self.halt.is_stopping() {
                break;
            }
            let section = &plan.receiver.shared_by(source.feed.channels.len());
            let mut reception = match plan.recorded {
                Some(_) => Reception::recorded(section.max_instruments, section.max_orders, None),
                None => Reception::new(section),
            };
            let wants_all = plan.symbols.contains(&Pattern::ALL);
            reception.symbols = (!wants_all).then(Vec::new);
            let place = (usize::from(source.feed_number), source.channel);
            let facts = self.receiver.add(&source.feed, place, &reception)?;
            let books = tracked_books(section, facts);
            let books = match (before.next(), rows.get_mut(at).and_then(Option::take)) {
                (Some(mut channel), _) => {
                    channel.restart(books, &mut self.books.shared);
                    channel
                }
                (None, Some(row)) => ChannelBooks::new(self.region, row, books, source.relay),
                (None, None) => break,
            };
            self.books.add(books, source.feed_number, source.silence_ns);
            self.books.keep_quota(source.quota.clone());
            if plan.recorded.is_none() {
                let options = SocketOptions {
                    receive_buffer: section.receive_buffer,
                    stamping,
                    batch: plan.receive_batch,
                };
                self.receiver.join_one(at, &source.feed, options)?;
            }
            self.books.begin((!wants_all).then(|| plan.symbols.clone()));
            self.receiver.visit_one(at, Nanos::ZERO, &mut self.books);
            if let Some(why) = self.books.refused() {
                return Err(Failure::config(format!("daemon.symbols: {why}")));
            }
        }
        Ok(())
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
        let (mut next_report, mut looks) = (Nanos::ZERO, 0_u32);
        while !self.halt.is_stopping() {
            let taken = self.receiver.receive(&mut self.books);
            let now = self.books.now();
            self.receiver.links(now, &mut self.books);
            self.pass_time(now);
            if self.commands.has_command() {
                self.serve(now);
            }
            if now >= next_report {
                // Everything slow, ten times a second; the clock follows the kernel's once a second.
                next_report = now.after(REPORT_NS);
                looks += 1;
                if looks.is_multiple_of(10) {
                    follow_clock(&mut self.books.shared.clock, &mut self.clock_steps);
                }
                self.report();
            }
            // Behind a packet another one may wait: that is no time to spare.
            if taken == Taken::Nothing {
                self.idle(now);
            }
            // Others may wait behind what was taken.
            self.receiver.wait(now, (taken != Taken::Nothing).then_some(now));
        }
        Ok(())
    }

    /// Timers that are due, and silence. This thread may have stood still: a channel whose packets lie in its
    /// sockets is not silent.
    fn pass_time(&mut self, now: Nanos) {
        self.receiver.timers(now, &mut self.books);
        let read = self.receiver.read_up_to(now);
        for number in 0..self.receiver.facts().len() {
            let source = self.receiver.source(number);
            self.books
                .note_silence(number, read, source.last_packet(), source.state());
        }
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
            self.receiver.timers(end, &mut self.books);
            self.books.finish();
        }
        self.report();
        // The control thread empties the line all the time.
        let counts = tape.skipped();
        let loss = counts.loss().filter(|_| is_whole);
        let _ = self.books.shared.notices.send(Notice::Played(Box::new(counts)));
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
        let report_ticks = self.books.shared.clock.span_ticks(REPORT_NS);
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
                self.pass_time(now);
            }
            let line = found.line.unwrap_or(Line::Retransmit);
            self.receiver
                .deliver(at, now, (found.port, line), udp.payload, &mut self.books);
            if tsc() >= next_report {
                next_report = tsc() + report_ticks;
                self.report();
            }
        }
        Ok(())
    }

    /// Another pass over the recordings: new channels and books in the old places.
    fn start_again(&mut self) -> Result<(), Failure> {
        let before = self.books.take_channels();
        self.receiver.clear();
        self.open(before, Vec::new())
    }

    fn serve(&mut self, now: Nanos) {
        let (receiver, books) = (&mut self.receiver, &mut self.books);
        self.commands.serve(|command| match command.deed.is_question() {
            // Filters in front of the channels need not be opened for it.
            true => books.command(command, |books| receiver.count(books)),
            false => books.command(command, |books| receiver.visit(now, books)),
        });
    }

    fn report(&mut self) {
        let mut own = Counters::default();
        own.add(Counter::HandOverWaits, self.books.shared.supers.waits());
        count_waits(&mut own, self.receiver.waiter.errors());
        own.add(Counter::ClockSteps, self.clock_steps);
        self.books.set_counters(own);
        self.receiver.look(&mut self.books);
    }
}
