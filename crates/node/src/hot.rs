//! The hot loop: one packet from the wire to an order, as calls in order.
//!
//! ```text
//! recv ─► FeedHandler::on_packet ─► HotPath::on_event ─► Books::apply ─► Conductor::on_event ─► Session::encode ─► send
//!         (sequence, lines, decode)                       (book)          (strategy, risk)        (FIX)
//! ```
//! Everything happens on the calling thread, inside the call that took the packet: no queue, no hand-over.
//! Nothing here allocates, locks or logs after it is set up; the tests of `bench.rs` run it with an armed
//! allocator.

use std::collections::BTreeMap;
use std::io;

use tickwire_book::Books;
use tickwire_fix::{MemoryStore, Session, SessionConfig, Status, Store};
use tickwire_kernelpath::{NotArmed, Shooting, Waits};
use tickwire_lab::{Departed, Probes, Stage};
use tickwire_market::{
    EventFlags, EventKind, InstrumentId, Level, MarketEvent, Nanos, SeqNo, Side, TradingStatus,
};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_trading::BestOffer;
use tickwire_trading::strategy::{Consolidated, Once};

use crate::departures::Departure;
use crate::entry_store::EntryStore;
use crate::gather::Gathered;
use crate::live::Live;
use crate::record::Record;
use crate::session::Returning;

/// Where order bytes go: a connection, or memory in tests and benchmarks.
pub trait OrderOut {
    /// Sends one message. What the connection does not take at once is kept and sent later, in order.
    ///
    /// # Errors
    /// The connection's; it is lost then.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Sends one message as early as it can be sent; [`OrderOut::settle`] is to follow at once, or behind
    /// others that are launched at once, with what can be done afterwards. Launched and settled, a message is
    /// sent as by [`OrderOut::send`].
    ///
    /// # Errors
    /// The connection's; it is lost then.
    #[inline]
    fn launch(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes)
    }

    /// Does with a message that is rehearsed what [`OrderOut::launch`] does before anything leaves, so that
    /// what the next one needs, code and data, is in the caches. Nothing leaves, now or later, and nothing is
    /// counted. For a loop that has nothing else to do. Does nothing where there is nothing between a message
    /// and the call that sends it.
    #[inline]
    fn rehearse(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }

    /// Whether a program could be given a message now.
    ///
    /// # Errors
    /// Why not.
    fn may_arm(&mut self) -> Result<(), NotArmed> {
        Err(NotArmed::ByKernel)
    }

    /// Has a program send a message by itself, when what it waits for is said.
    ///
    /// # Errors
    /// Why it cannot be; nothing has changed.
    fn arm(&mut self, waits: &Waits, bytes: &[u8]) -> Result<(), NotArmed> {
        let _ = (waits, bytes);
        Err(NotArmed::ByKernel)
    }

    /// Takes what is armed back, and says what became of it; `None` if nothing was armed.
    ///
    /// # Errors
    /// The connection's; it is lost then.
    fn disarm(&mut self) -> io::Result<Option<Shooting>> {
        Ok(None)
    }

    /// What became of what is armed, without taking it back; `None` while it waits.
    ///
    /// # Errors
    /// The connection's; it is lost then.
    #[inline]
    fn shooting(&mut self) -> io::Result<Option<Shooting>> {
        Ok(None)
    }

    /// What was launched last is the order of a sample
    /// ([`Probes::commit`](tickwire_lab::Probes::commit)), whose departure is to be told.
    #[inline]
    fn note(&mut self, sample: usize) {
        let _ = sample;
    }

    /// An order that was noted and is known to have left; none where nothing is stamped.
    #[inline]
    fn departure(&mut self, clock: &Clock, now: Nanos) -> Option<Departure> {
        let _ = (clock, now);
        None
    }

    /// Does what [`OrderOut::launch`] has left.
    ///
    /// # Errors
    /// The connection's; it is lost then.
    #[inline]
    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A session of orders and quotes: its store may outlive the process.
pub type EntrySession = Session<EntryStore>;

/// A session with numbers of its own, in memory.
pub fn session_in_memory(config: SessionConfig) -> EntrySession {
    let store = MemoryStore::new(config.store_messages, config.store_bytes);
    Session::with_store(config, EntryStore::Memory(store))
}

/// An order entry session and where its bytes go.
pub struct OrderSession<O> {
    /// The session.
    pub fix: EntrySession,
    /// Where the bytes go.
    pub out: O,
    /// The first failure of the connection; the loop ends the connection on it.
    pub failure: Option<io::Error>,
    /// Mass quotes of the packet in hand.
    pub(crate) gathered: Gathered,
    /// Executions that were booked.
    pub once: Once,
    /// The order that leaves by itself.
    armed: Option<Armed>,
    /// Nothing is traded over it yet.
    pub(crate) returning: Option<Returning>,
    /// Where executions are kept beyond the process.
    pub(crate) record: Option<Record>,
    /// What the venue has said since a process before this one was torn off is to come yet.
    pub(crate) awaits_rest: bool,
}

/// A message in the hands of a program.
#[derive(Clone, Copy, Debug)]
struct Armed {
    seq: SeqNo,
    bytes: usize,
    /// What became of it.
    told: Option<Shooting>,
}

impl<O: OrderOut> OrderSession<O> {
    /// A session that nothing was sent over yet.
    pub fn new(fix: EntrySession, out: O) -> OrderSession<O> {
        OrderSession {
            fix,
            out,
            failure: None,
            gathered: Gathered::new(),
            once: Once::default(),
            armed: None,
            returning: None,
            record: None,
            awaits_rest: false,
        }
    }

    /// Has a program send a message with this number, which the session holds for it.
    ///
    /// # Errors
    /// Why it cannot be; the number is free again.
    pub fn arm(&mut self, waits: &Waits, (bytes, seq): (&[u8], SeqNo)) -> Result<(), NotArmed> {
        let armed = self.out.arm(waits, bytes);
        match armed {
            Ok(()) => {
                self.armed = Some(Armed {
                    seq,
                    bytes: bytes.len(),
                    told: None,
                });
            }
            Err(_) => {
                self.fix.withdraw(seq);
            }
        }
        armed
    }

    /// What is armed is taken back, unless it has left: to be called before anything else is sent over the
    /// session, or may be.
    #[inline]
    pub fn release_armed(&mut self, now: Nanos) {
        if self.armed.is_some_and(|armed| armed.told.is_none()) {
            self.end_arming(now, true);
        }
    }

    /// What became of what was armed, told once.
    #[inline]
    pub fn shooting(&mut self, now: Nanos) -> Option<Shooting> {
        let armed = self.armed?;
        if armed.told.is_none() {
            self.end_arming(now, false);
        }
        let told = self.armed?.told?;
        self.armed = None;
        Some(told)
    }

    #[cold]
    fn end_arming(&mut self, now: Nanos, takes_back: bool) {
        let asked = match takes_back {
            true => self.out.disarm(),
            false => self.out.shooting(),
        };
        let Some(armed) = &mut self.armed else { return };
        let told = match asked {
            Ok(Some(told)) => told,
            Ok(None) if takes_back => Shooting::Back,
            Ok(None) => return,
            Err(error) => {
                // Whether it has left is for the venue to say.
                self.failure.get_or_insert(error);
                Shooting::Fired { at_ns: 0, by: 0 }
            }
        };
        armed.told = Some(told);
        match told {
            Shooting::Fired { .. } => self.fix.held_left(now, armed.bytes),
            _ => {
                self.fix.withdraw(armed.seq);
            }
        }
    }

    /// Sends what the session has to say. A failure is for the loop to see, as one of the hot path is.
    pub fn transmit(&mut self) {
        let mut chunk = [0_u8; 4096];
        while let Some(bytes) = self.fix.poll_transmit(&mut chunk) {
            self.send(bytes);
            if self.failure.is_some() {
                return;
            }
        }
    }

    /// Says how far the venue was heard, to who keeps what was traded; with `has_ended`, that nothing is open
    /// and nothing more is done.
    pub(crate) fn note_heard(&self, has_ended: bool) {
        if let Some(record) = &self.record {
            let seq = self.fix.store().next_in().saturating_sub(1);
            match has_ended {
                true => record.ended(seq),
                false => record.heard(seq),
            }
        }
    }

    /// Whether both sides are logged on.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.fix.status() == Status::Active
    }
}

/// Books, strategies, order entry sessions and probes of one trading thread. Without `STAMPED`, no stage is
/// timed: what the stamps themselves cost can be told by comparing.
pub struct HotPath<O, const STAMPED: bool = true, R = Live<BestOffer>> {
    /// The books of each channel.
    pub books: Vec<Books>,
    /// Books over all of them, where a strategy wants some.
    pub consolidated: Option<Consolidated>,
    /// The channel whose packet is in hand.
    pub source: usize,
    /// What decides: strategies, the built-in rule one of them.
    pub rule: R,
    /// The order entry sessions.
    pub sessions: Vec<OrderSession<O>>,
    /// Begun by whoever takes the packet, with the receive stage.
    pub probes: Probes,
    /// Samples of the probes before the packet in hand.
    pub samples: usize,
    /// When the packet in hand was taken.
    pub received: Nanos,
    /// What is sent has the time of the event that it follows, not the clock's: no stage is timed then.
    pub by_event_time: bool,
    /// Turns ticks of the processor into nanoseconds.
    pub clock: Clock,
    /// Bids and asks of a channel's instruments as they stood when these closed.
    pub at_close: BTreeMap<(usize, InstrumentId), [Vec<Level>; 2]>,
}

impl<O: OrderOut, const STAMPED: bool, R> HotPath<O, STAMPED, R> {
    /// Sends the mass quotes that are held: of the packet in hand nothing follows.
    #[inline]
    pub fn let_go(&mut self) {
        for session in &mut self.sessions {
            session.let_go();
        }
    }

    /// Notes which orders of a session are known to have left by now.
    #[inline]
    pub fn note_departures(&mut self, session: usize, now: Nanos) {
        let (out, clock) = (&mut self.sessions[session].out, &self.clock);
        while let Some(departure) = out.departure(clock, now) {
            let [driver, card] = [departure.driver, departure.card];
            let ticks = |at: Option<Nanos>| at.map_or(0, |at| clock.tsc_at(at));
            let departed = Departed {
                driver: ticks(driver),
                card: ticks(card),
            };
            self.probes.depart(departure.sample, departed);
        }
    }
}

impl<O, const STAMPED: bool, R> HotPath<O, STAMPED, R> {
    /// On some venues (NYSE) the close empties the books: what stood in one before is kept to be compared. A
    /// book that is cleared is not traded on, so memory may be taken.
    #[cold]
    pub fn keep_at_close(&mut self, event: &MarketEvent) {
        // A snapshot clears to say everything again: that is no end, and may come in mid-session.
        let is_end = match event.kind {
            EventKind::Clear => !event.flags.has(EventFlags::SNAPSHOT),
            _ => event.status == TradingStatus::Closed,
        };
        if is_end
            && let Some(book) = self.books[self.source].book(event.instrument)
            && !book.is_empty()
        {
            let levels = Side::BOTH.map(|side| book.levels(side).collect());
            self.at_close.insert((self.source, event.instrument), levels);
        }
    }
}

/// Notes the time at which a stage was reached; nothing without `STAMPED`.
#[inline(always)]
pub fn stamp<const STAMPED: bool>(probes: &mut Probes, stage: Stage) {
    if STAMPED {
        probes.mark(stage, tsc());
    }
}
