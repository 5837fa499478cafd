//! The hot loop: one packet from the wire to an order, as calls in order.
//!
//! ```text
//! recv ─► FeedHandler::on_packet ─► HotPath::on_event ─► Books::apply ─► TickToTrade::on_update ─► Session::encode ─► send
//!         (sequence, lines, decode)                       (book)          (rule, risk)              (FIX)
//! ```
//! Everything happens on the calling thread, inside the call that took the packet: no queue, no hand-over.
//! Nothing here allocates, locks or logs after it is set up; the tests of `bench.rs` run it with an armed
//! allocator.

use std::collections::BTreeMap;
use std::io;

use tickwire_book::{Applied, Books};
use tickwire_fix::{Again, NewOrder, OrderTemplate, SendError, Session, Status};
use tickwire_lab::{Probes, Stage};
use tickwire_market::{
    EventFlags, EventKind, EventSink, InstrumentId, Level, MarketEvent, Nanos, OrderId, OrderIntent, Side,
    Symbol, TradingStatus,
};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_trading::TickToTrade;
use tickwire_trading::strategy::Consolidated;

/// Where order bytes go: a connection, or memory in tests and benchmarks.
pub trait OrderOut {
    /// Sends one message. What the connection does not take at once is kept and sent later, in order.
    ///
    /// # Errors
    /// The connection's; it is lost then.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// An order entry session and where its bytes go.
pub struct OrderSession<O> {
    /// The session.
    pub fix: Session,
    /// Where the bytes go.
    pub out: O,
    /// The first failure of the connection; the loop ends the connection on it.
    pub failure: Option<io::Error>,
}

impl<O: OrderOut> OrderSession<O> {
    /// A session that nothing was sent over yet.
    pub fn new(fix: Session, out: O) -> OrderSession<O> {
        OrderSession {
            fix,
            out,
            failure: None,
        }
    }

    /// Sends what the session has to say. A failure is for the loop to see, as one of the hot path is.
    pub fn transmit(&mut self) {
        let mut chunk = [0_u8; 4096];
        while let Some(bytes) = self.fix.poll_transmit(&mut chunk) {
            if let Err(error) = self.out.send(bytes) {
                self.failure.get_or_insert(error);
                return;
            }
        }
    }

    /// Whether both sides are logged on.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.fix.status() == Status::Active
    }
}

/// Books, rule, order entry sessions and probes of one trading thread. Without `STAMPED`, no stage is timed:
/// what the stamps themselves cost can be told by comparing.
pub struct HotPath<O, const STAMPED: bool = true, R = TickToTrade> {
    /// The books of each channel.
    pub books: Vec<Books>,
    /// Books over all of them, where a strategy wants some.
    pub consolidated: Option<Consolidated>,
    /// The channel whose packet is in hand.
    pub source: usize,
    /// What decides: the built-in rule, or strategies.
    pub rule: R,
    /// What the built-in rule trades, over the first session.
    pub symbol: Symbol,
    /// The order entry sessions.
    pub sessions: Vec<OrderSession<O>>,
    /// The built-in rule's order as bytes with room for what differs; `None` until its instrument is known. A
    /// strategy has one per instrument of its own.
    pub template: Option<OrderTemplate>,
    /// Begun by whoever takes the packet, with the receive stage.
    pub probes: Probes,
    /// Samples of the probes before the packet in hand.
    pub samples: usize,
    /// Turns ticks of the processor into nanoseconds.
    pub clock: Clock,
    /// Orders that passed every check but could not be encoded; they were withdrawn.
    pub withdrawn: u64,
    /// Bids and asks of a channel's instruments as they stood when these closed.
    pub at_close: BTreeMap<(usize, InstrumentId), [Vec<Level>; 2]>,
}

impl<O: OrderOut, const STAMPED: bool> EventSink for HotPath<O, STAMPED> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        if matches!(event.kind, EventKind::Status | EventKind::Clear) {
            self.note_status(event);
            self.keep_at_close(event);
        }
        let books = &mut self.books[self.source];
        if !self.rule.watches(event.instrument) {
            books.apply(event);
            return;
        }
        stamp::<STAMPED>(&mut self.probes, Stage::Decode);
        let Applied::Update(update) = books.apply(event) else {
            return; // of a book that is found to be wrong the channel tells: see `distrust`
        };
        stamp::<STAMPED>(&mut self.probes, Stage::Book);
        let Some(intent) = self.rule.on_update(event.recv_ts, update) else {
            return;
        };
        let decided = tsc();
        if STAMPED {
            self.probes.mark(Stage::Decide, decided);
        }
        let now = self.clock.nanos_at(decided);
        let OrderSession { fix, out, failure } = &mut self.sessions[0];
        match encode(fix, &mut self.template, now, &intent) {
            Ok(bytes) => {
                stamp::<STAMPED>(&mut self.probes, Stage::Encode);
                let sent = out.send(bytes);
                stamp::<STAMPED>(&mut self.probes, Stage::Send);
                if STAMPED {
                    self.probes.commit(event.seq.0);
                }
                if let Err(error) = sent {
                    failure.get_or_insert(error);
                }
            }
            Err(_) => self.withdraw(&intent),
        }
    }

    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.books[self.source].upcoming(instrument, order_id);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books[self.source].next_distrusted()
    }
}

impl<O, const STAMPED: bool> HotPath<O, STAMPED> {
    /// Tells the rule whether there is trading.
    #[cold]
    fn note_status(&mut self, event: &MarketEvent) {
        match event.kind {
            EventKind::Status => self.rule.on_status(event.instrument, event.status),
            // What was said before is void: a recovery may have brought the morning, and the snapshot that
            // goes on from there nothing of the opening.
            _ if event.instrument == InstrumentId::WHOLE_FEED => self.rule.forget_statuses(),
            _ => {}
        }
    }

    /// An order that was decided but not encoded must not count as open.
    #[cold]
    fn withdraw(&mut self, intent: &OrderIntent) {
        self.withdrawn += 1;
        if let OrderIntent::New { id, .. } = intent {
            self.rule.withdraw(*id);
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

/// The bytes of an order, from the prepared message. It is kept for no resend: one that a lost connection has
/// swallowed is of another moment's price, and what became of it is asked for.
#[inline]
fn encode<'t>(
    session: &mut Session,
    template: &'t mut Option<OrderTemplate>,
    now: Nanos,
    intent: &OrderIntent,
) -> Result<&'t [u8], SendError> {
    let (Some(template), Some(order)) = (template.as_mut(), NewOrder::of(intent)) else {
        return Err(SendError::NotLoggedOn);
    };
    template.send(session, now, &order, Again::GapFill)
}
