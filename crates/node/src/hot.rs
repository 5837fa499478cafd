//! The hot loop: one packet from the wire to an order, as calls in order.
//!
//! ```text
//! recv ─► FeedHandler::on_packet ─► HotPath::on_event ─► Books::apply ─► TickToTrade::on_update ─► Session::encode ─► send
//!         (sequence, lines, decode)                       (book)          (rule, risk)              (FIX)
//! ```
//! Everything happens on the calling thread, inside the call that took the packet: no queue, no hand-over. Nothing here
//! allocates, locks or logs after it is set up; the tests of `bench.rs` run it with an armed allocator.

use std::collections::BTreeMap;
use std::io;

use tickwire_book::{Applied, Books};
use tickwire_fix::{NewOrder, OrderTemplate, SendError, Session};
use tickwire_lab::{Probes, Stage};
use tickwire_market::{
    EventFlags, EventKind, EventSink, InstrumentId, Level, MarketEvent, Nanos, OrderId, OrderIntent, Side,
    TradingStatus,
};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_trading::TickToTrade;

/// Where order bytes go: a connection, or memory in tests and benchmarks.
pub trait OrderOut {
    /// Sends one message. What the connection does not take at once is kept and sent later, in order.
    ///
    /// # Errors
    /// The connection's; it is lost then.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// Books, rule, order entry session and probes of one trading thread. Without `STAMPED`, no stage is timed: what the stamps
/// themselves cost can be told by comparing.
pub struct HotPath<O, const STAMPED: bool = true, R = TickToTrade> {
    /// The books of the channel.
    pub books: Books,
    /// What decides: the built-in rule, or a strategy.
    pub rule: R,
    /// The order entry session.
    pub session: Session,
    /// The built-in rule's order as bytes with room for what differs; `None` until its instrument is known. A strategy has one per instrument
    /// of its own.
    pub template: Option<OrderTemplate>,
    /// Where the bytes go.
    pub out: O,
    /// Begun by whoever takes the packet, with the receive stage.
    pub probes: Probes,
    /// Turns ticks of the processor into nanoseconds.
    pub clock: Clock,
    /// The first failure of the connection; the loop ends on it.
    pub failure: Option<io::Error>,
    /// Orders that passed every check but could not be encoded; they were withdrawn.
    pub withdrawn: u64,
    /// Bids and asks of instruments as they stood when these closed.
    pub at_close: BTreeMap<InstrumentId, [Vec<Level>; 2]>,
}

impl<O: OrderOut, const STAMPED: bool> EventSink for HotPath<O, STAMPED> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        if matches!(event.kind, EventKind::Status | EventKind::Clear) {
            self.note_status(event);
            self.keep_at_close(event);
        }
        if !self.rule.watches(event.instrument) {
            self.books.apply(event);
            return;
        }
        stamp::<STAMPED>(&mut self.probes, Stage::Decode);
        let Applied::Update(update) = self.books.apply(event) else {
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
        match encode(&mut self.session, &mut self.template, now, &intent) {
            Ok(bytes) => {
                stamp::<STAMPED>(&mut self.probes, Stage::Encode);
                let sent = self.out.send(bytes);
                stamp::<STAMPED>(&mut self.probes, Stage::Send);
                if STAMPED {
                    self.probes.commit(event.seq.0);
                }
                if let Err(error) = sent {
                    self.failure.get_or_insert(error);
                }
            }
            Err(_) => self.withdraw(&intent),
        }
    }

    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.books.upcoming(instrument, order_id);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books.next_distrusted()
    }
}

impl<O, const STAMPED: bool> HotPath<O, STAMPED> {
    /// Tells the rule whether there is trading.
    #[cold]
    fn note_status(&mut self, event: &MarketEvent) {
        match event.kind {
            EventKind::Status => self.rule.on_status(event.instrument, event.status),
            // What was said before is void: a recovery may have brought the morning, and the snapshot that goes on from there nothing of
            // the opening.
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
    /// On some venues (NYSE) the close empties the books: what stood in one before is kept to be compared. A book that is cleared is not traded
    /// on, so memory may be taken.
    #[cold]
    pub fn keep_at_close(&mut self, event: &MarketEvent) {
        // A snapshot clears to say everything again: that is no end, and may come in mid-session.
        let is_end = match event.kind {
            EventKind::Clear => !event.flags.has(EventFlags::SNAPSHOT),
            _ => event.status == TradingStatus::Closed,
        };
        if is_end
            && let Some(book) = self.books.book(event.instrument)
            && !book.is_empty()
        {
            let levels = Side::BOTH.map(|side| book.levels(side).collect());
            self.at_close.insert(event.instrument, levels);
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

/// The bytes of an order, from the prepared message. It is kept for no resend: one that a lost connection has swallowed is of another moment's price,
/// and what became of it is asked for.
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
    session.encode_passing_order(now, template, &order)
}
