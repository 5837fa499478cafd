//! The loop of a thread that trades, around a hot path: market data, the order link, timers. Trader,
//! strategies and quoter have this one; what a process does beside is its [`Desk`].
//!
//! ```text
//! begins ─► receive ─► timers ─► received ─► each line: bytes ─► said ─► turned ─► links ─► idle ─► look ─► wait
//! ```

use std::io;

use tickwire_console::health::{follow_clock, follow_if_set};
use tickwire_market::{Counter, Counters, Nanos};
use tickwire_receive::receiver::{Consumer, Receiver, SpareTime, Taken};
use tickwire_runtime::clock::Clock;
use tickwire_runtime::tcp::Received;
use tickwire_runtime::udp::DATAGRAM_BYTES_MAX;
use tickwire_venues::wait::Waiting;

use crate::controls::beat::Beat;
use crate::hot::HotPath;
use crate::link::{Entry, Link};
use crate::session::{self, Said};
use crate::trader::Rule;
use tickwire_console::failure::Failure;
use tickwire_control::notice::Notice;

/// Between two looks at everything slow.
const LOOK_NS: u64 = 100 * Nanos::MILLI;
/// Quotes that one message may name, unless the process says how many.
pub const NAMED_MAX: usize = 512;

/// What a [`Host`] drives: a hot path, or what a process has around one.
pub trait Path<const STAMPED: bool>: Consumer<Successor = Self> {
    /// What decides.
    type Rule: Rule + 'static;

    /// The hot path.
    fn hot(&self) -> &HotPath<Entry, STAMPED, Self::Rule>;
    /// The same to change.
    fn hot_mut(&mut self) -> &mut HotPath<Entry, STAMPED, Self::Rule>;
}

/// One order entry session's connection. What the session itself knows lies in the hot path.
pub struct Line {
    /// What it is called in messages.
    pub name: String,
    /// The connection, lost and made again.
    pub link: Link,
    /// The field in which the venue's Logon confirms that it cancels what is open when the connection is
    /// lost.
    pub cancels_tag: u32,
    /// The venue has ended it in good order: nothing more is heard over it.
    pub is_ended: bool,
}

impl Line {
    /// A connection that is there.
    pub fn new(name: &str, link: Link, cancels_tag: u32) -> Line {
        Line {
            name: name.to_string(),
            link,
            cancels_tag,
            is_ended: false,
        }
    }
}

/// What every thread that trades has: its hot path, its sockets, its order links.
pub struct Host<P: Path<STAMPED>, const STAMPED: bool> {
    /// The hot path with what is around it.
    pub path: P,
    /// The channels with their sockets.
    pub receiver: Receiver<P>,
    /// How the thread waits.
    pub waiting: Waiting,
    /// The order entry sessions, as the hot path has them.
    pub lines: Vec<Line>,
    /// The count by which another process sees that this one turns.
    pub beat: Option<Beat>,
    /// How often the system's clock was set.
    pub clock_steps: u64,
    /// Quotes that a message names.
    pub named: Vec<u64>,
    /// What a venue sends is read into it.
    buffer: Vec<u8>,
    /// What strategies are offered.
    spare: Option<SpareTime>,
}

/// What a process does beside its hot path, in the loop of [`run`].
pub trait Desk<const STAMPED: bool>: Sized {
    /// What is driven.
    type Path: Path<STAMPED>;

    /// The host's part.
    fn host(&self) -> &Host<Self::Path, STAMPED>;
    /// The same to change.
    fn host_mut(&mut self) -> &mut Host<Self::Path, STAMPED>;
    /// Whether the run is over.
    fn is_over(&self) -> bool;
    /// A turn of the loop begins, before anything is read in it.
    fn begins(&mut self, now: Nanos);
    /// What market data was there has been taken, and what was due on its side is done.
    fn received(&mut self) {}
    /// Bytes of a line's venue are there and are taken next.
    fn answered(&mut self, line: usize, now: Nanos) {
        let _ = (line, now);
    }
    /// The venue of a line has said something that is not a strategy's.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn said(&mut self, line: usize, now: Nanos, said: Said) -> Result<(), Failure>;
    /// The venue has closed a line's connection.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn closed(&mut self, line: usize, now: Nanos) -> Result<(), Failure>;
    /// A line's connection has failed.
    fn failed(&mut self, line: usize, now: Nanos, error: &io::Error);
    /// Every line was heard.
    fn turned(&mut self, now: Nanos);
    /// Ten times a second, everything slow.
    ///
    /// # Errors
    /// Why the run cannot go on.
    fn look(&mut self, now: Nanos) -> Result<(), Failure>;
}

impl<P: Path<STAMPED>, const STAMPED: bool> Host<P, STAMPED> {
    /// A host whose channels are joined and whose lines are connected.
    pub fn new(path: P, receiver: Receiver<P>, waiting: Waiting, lines: Vec<Line>) -> Host<P, STAMPED> {
        Host {
            path,
            receiver,
            waiting,
            lines,
            beat: None,
            clock_steps: 0,
            named: Vec::with_capacity(NAMED_MAX),
            buffer: vec![0; DATAGRAM_BYTES_MAX],
            spare: None,
        }
    }

    /// Makes room for messages that name so many quotes, [`NAMED_MAX`] at least.
    pub fn name_up_to(&mut self, quotes: usize) {
        self.named.reserve(quotes);
    }

    /// Offers strategies time to spare every so many microseconds
    /// ([`Strategy::on_idle`](tickwire_trading::strategy::Strategy::on_idle)); 0 for never. Only a thread
    /// that never sleeps has time to spare.
    pub fn offer_time(&mut self, every_us: u32) {
        self.spare = SpareTime::new(self.waiting.strategy, u64::from(every_us) * Nanos::MICRO);
    }

    /// The thread's clock.
    pub fn clock(&self) -> &Clock {
        &self.path.hot().clock
    }

    /// A line's connection is lost: nothing that was held for it leaves by another one.
    pub fn drop_connection(&mut self, line: usize, now: Nanos, why: String) {
        let own = &mut self.lines[line];
        let session = &mut self.path.hot_mut().sessions[line];
        session.drop_held();
        // Its number is watched no longer before it may be another file's.
        own.link.lost(now, why, &mut self.receiver.waiter);
        own.link.close(&mut session.out);
    }

    /// Makes a line's lost connection again when that is due; whether there is a new one, over which the
    /// logon has left.
    ///
    /// # Errors
    /// It was tried as often as it may be.
    pub fn mend(&mut self, line: usize, now: Nanos) -> Result<bool, Failure> {
        let own = &mut self.lines[line];
        let Some(stream) = own.link.mend(now, &mut self.receiver.waiter)? else {
            return Ok(false);
        };
        let hot = self.path.hot_mut();
        let session = &mut hot.sessions[line];
        session.replace(own.link.entry_again(stream));
        if hot.rule.pre_arms()
            && let Some(trigger) = self.receiver.trigger()
        {
            session.out.use_trigger(trigger);
        }
        session.fix.handle_connected(now);
        session.transmit();
        Ok(true)
    }

    /// Where the run stands, for whoever started this process.
    pub fn tell_progress(&self, started: Nanos, now: Nanos, orders: u64) {
        Notice::Progress {
            seconds: now.since(started) as f64 / 1e9,
            messages: self.receiver.counters().get(Counter::Messages),
            orders,
        }
        .send();
    }

    /// Everything that channels, sockets, books, strategies and sessions have counted.
    pub fn counters(&self) -> Counters {
        let hot = self.path.hot();
        let mut all = self.receiver.counters();
        for books in &hot.books {
            all.merge(books.counters());
        }
        all.merge(&hot.rule.counters());
        for session in &hot.sessions {
            all.merge(session.fix.counters());
        }
        all.add(Counter::ClockSteps, self.clock_steps);
        all
    }

    /// The clock follows the kernel's: once a second, and at once where it was set (`is_set`).
    fn follow_clock(&mut self, is_set: bool) {
        let hot = self.path.hot_mut();
        let has_moved = match is_set {
            true => follow_if_set(&mut hot.clock, &mut self.clock_steps),
            false => follow_clock(&mut hot.clock, &mut self.clock_steps),
        };
        if has_moved {
            let offset = hot.clock.wall_offset_ns();
            for session in &mut hot.sessions {
                session.fix.set_wall_offset(offset);
            }
        }
    }

    #[inline]
    fn idle(&mut self, now: Nanos) {
        if let Some(turn) = self.spare.as_mut().and_then(|spare| spare.take(now)) {
            P::Rule::on_idle(self.path.hot_mut(), now);
            if let Some(source) = P::Rule::begin_rehearsal(self.path.hot_mut()) {
                if !self.receiver.rehearse(source, now, &mut self.path) {
                    P::Rule::rehearse_events(self.path.hot_mut(), now);
                }
                P::Rule::end_rehearsal(self.path.hot_mut());
            }
            self.receiver.fetch(turn);
        }
    }
}

/// Turns until the run is over.
///
/// # Errors
/// Those of the desk, and a link that cannot be made again.
pub fn run<D: Desk<STAMPED>, const STAMPED: bool>(desk: &mut D) -> Result<(), Failure> {
    let mut next_look = Nanos::ZERO;
    let mut looks = 0_u32;
    while !desk.is_over() {
        let host = desk.host_mut();
        if let Some(beat) = &host.beat {
            beat.turn();
        }
        let now = host.path.now();
        desk.begins(now);
        let host = desk.host_mut();
        let taken = host.receiver.receive(&mut host.path);
        let now = host.path.now();
        host.receiver.timers(now, &mut host.path);
        desk.received();
        for line in 0..desk.host().lines.len() {
            hear(desk, line, now)?;
            let session = &mut desk.host_mut().path.hot_mut().sessions[line];
            if let Some(error) = session.failure.take() {
                desk.failed(line, now, &error);
            }
        }
        desk.turned(now);
        let host = desk.host_mut();
        host.receiver.links(now, &mut host.path);
        // Behind a packet another one may wait: that is no time to spare.
        if taken == Taken::Nothing {
            host.idle(now);
        }
        if now >= next_look {
            // The clock follows the kernel's once a second.
            next_look = now.after(LOOK_NS);
            looks += 1;
            if looks.is_multiple_of(10) {
                host.follow_clock(false);
            }
            desk.look(now)?;
        }
        let host = desk.host_mut();
        let sooner = host.path.hot().rule.next_timer();
        host.receiver.wait(now, sooner);
    }
    Ok(())
}

/// What a line's venue has sent, and what its session has to do by now.
///
/// # Errors
/// Those of the desk.
#[inline]
pub fn hear<D: Desk<STAMPED>, const STAMPED: bool>(
    desk: &mut D,
    line: usize,
    now: Nanos,
) -> Result<(), Failure> {
    let host = desk.host_mut();
    if host.lines[line].is_ended {
        // A stamp that nobody reads would wake this thread for ever.
        host.path.hot_mut().note_departures(line, now);
        host.path.hot_mut().sessions[line].pass(now);
        return Ok(());
    }
    let own = &mut host.path.hot_mut().sessions[line];
    let received = match own.out.recv(&mut host.buffer) {
        Ok(Received::Nothing) => {
            host.path.hot_mut().note_departures(line, now);
            // The peer is not silent as long as something of it is unread: this thread may have had no core
            // for long.
            events(desk, line, now)?;
            desk.host_mut().path.hot_mut().sessions[line].pass(now);
            return Ok(());
        }
        Ok(Received::Bytes(bytes)) => bytes.len(),
        Ok(Received::Closed) => return desk.closed(line, now),
        Err(error) => {
            desk.failed(line, now, &error);
            return Ok(());
        }
    };
    host.follow_clock(true);
    desk.answered(line, now);
    let buffer = std::mem::take(&mut desk.host_mut().buffer);
    let taken = session::take_bytes(
        desk,
        |desk| &mut desk.host_mut().path.hot_mut().sessions[line],
        now,
        &buffer[..received],
        |desk| {
            events(desk, line, now)?;
            Ok(desk.host().lines[line].link.is_up())
        },
    );
    desk.host_mut().buffer = buffer;
    taken
}

/// What a line's session has to say.
///
/// # Errors
/// Those of the desk.
pub fn events<D: Desk<STAMPED>, const STAMPED: bool>(
    desk: &mut D,
    line: usize,
    now: Nanos,
) -> Result<(), Failure> {
    loop {
        let host = desk.host_mut();
        let Some(said) = host.path.hot_mut().next_said(line, now, &mut host.named) else {
            return Ok(());
        };
        desk.said(line, now, said)?;
    }
}
