//! What the venue has of our orders and quotes. Of quotes it is asked while we trade: one QuoteStatusRequest
//! (a) after the other, each quote in its turn.
//!
//! An answer is compared where nothing about quotes left between the question and it: the venue answers in
//! the order of our messages, and what it said before the answer has been heard. One that differs, or does
//! not come, is counted and told ([`super::QuoteEventKind::Differs`], [`super::QuoteEventKind::Unanswered`]):
//! what is to be done about it is the strategy's to say.

use tickwire_market::{Cause, ClientOrderId, Nanos, OrderIntent, Qty, Side};

use super::context::State;
use super::{Conductor, Markets, OrderPort, QuoteEvent, QuoteEventKind, QuoteIntent, Rejected, Strategy};

/// An answer that takes longer is not coming.
const ANSWER_MAX_NS: u64 = 4 * Nanos::SECOND;
/// The least time between two questions.
const GAP_MIN_NS: u64 = 20 * Nanos::MILLI;

/// A question.
#[derive(Clone, Copy, Debug)]
struct Question {
    id: ClientOrderId,
    place: u16,
    at: Nanos,
}

/// See the module's description. Without [`Conductor::reconcile_quotes`] nothing is asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Reconciling {
    /// How often each quote is asked about, in nanoseconds; 0 is never.
    every_ns: u64,
    next_at: Nanos,
    place: u16,
    asked: Option<Question>,
    compared: u64,
    differences: u64,
    /// Executions that are sent again are held, see [`Conductor::hold_what_is_sent_again`].
    pub(super) holds_again: bool,
}

impl Reconciling {
    fn gap_ns(&self, quotes: u16) -> u64 {
        (self.every_ns / u64::from(quotes.max(1))).max(GAP_MIN_NS)
    }

    /// When something is to be done.
    pub(super) fn due(&self) -> Option<Nanos> {
        match self.asked {
            _ if self.every_ns == 0 => None,
            Some(asked) => Some(asked.at.after(ANSWER_MAX_NS)),
            None => Some(self.next_at),
        }
    }

    /// The connection is gone, and the question with it.
    pub(super) fn forget(&mut self) {
        self.asked = None;
    }
}

impl<S: Strategy> Conductor<S> {
    /// The request to cancel an order, for a host that sends it: `None` if it is not open, is to take the
    /// place of another and has no answer yet, or was asked for already.
    pub fn cancel_one(&mut self, cause: Cause, id: ClientOrderId) -> Option<OrderIntent> {
        self.state.orders.get(id).filter(|order| !order.is_replacing())?;
        let order = self.state.orders.request_cancel(id)?;
        Some(OrderIntent::Cancel {
            id: self.state.orders.issue_id(),
            target: order.id,
            venue_id: order.venue_id,
            instrument: order.instrument,
            side: order.side,
            qty: order.qty,
            cause,
        })
    }

    /// A request to cancel an order came to nothing, by what the venue says of the order: it may be asked for
    /// again.
    pub fn forget_cancel(&mut self, id: ClientOrderId) {
        self.state.orders.forget_cancel(id);
    }

    /// Has the venue asked about each quote every so many nanoseconds, or as often as 50 questions a second
    /// allow; 0 asks nothing. For sessions of FIX 4.4 and later, whose requests have a number (649).
    pub fn reconcile_quotes(&mut self, now: Nanos, every_ns: u64) {
        self.state.reconciling.every_ns = every_ns;
        self.state.reconciling.next_at = now.after(self.state.reconciling.gap_ns(self.state.quotes.count()));
    }

    /// Answers about quotes that were compared, and those that differed or did not come.
    pub fn reconciled_quotes(&self) -> [u64; 2] {
        [
            self.state.reconciling.compared,
            self.state.reconciling.differences,
        ]
    }

    /// Time has passed: asks about the next quote, or misses an answer.
    #[cold]
    pub(super) fn reconcile(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) {
        let late = self
            .state
            .reconciling
            .asked
            .take_if(|asked| now >= asked.at.after(ANSWER_MAX_NS));
        if let Some(late) = late {
            self.state.reconciling.differences += 1;
            return self.tell_reconciled(now, late.place, QuoteEventKind::Unanswered, markets, port);
        }
        let refused = self.state.ask_next(now, port);
        if refused == Some(Rejected::Unsupported) {
            // It never will be.
            self.state.reconciling.every_ns = 0;
        }
    }

    /// What the venue has of a quote that it was asked about.
    pub(super) fn reconciled(
        &mut self,
        now: Nanos,
        id: ClientOrderId,
        left: [Qty; 2],
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        let Some(asked) = self.state.reconciling.asked.take_if(|asked| asked.id == id) else {
            return;
        };
        let Some(own) = self.state.quotes.at(asked.place) else {
            return;
        };
        // Something left since, or is under way: the answer is of another moment.
        if self.state.orders.last_id() != id || own.asked.is_some() || own.cancel.is_some() {
            return;
        }
        self.state.reconciling.compared += 1;
        let ours = Side::BOTH.map(|side| own.live[side as usize].left);
        let kind = match ours == left {
            true => QuoteEventKind::Confirmed,
            false => {
                self.state.reconciling.differences += 1;
                QuoteEventKind::Differs(left)
            }
        };
        self.tell_reconciled(now, asked.place, kind, markets, port);
    }

    fn tell_reconciled(
        &mut self,
        now: Nanos,
        place: u16,
        kind: QuoteEventKind,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        let Some(quote) = self.state.quotes.at(place).copied() else {
            return;
        };
        let event = QuoteEvent { quote, kind };
        self.call("on_own_quote", now, Cause::default(), markets, port, |s, ctx| {
            s.on_own_quote(ctx, &event)
        });
    }
}

impl State {
    /// Asks about the next quote, if it is its turn and nothing of it is under way; why it could not be
    /// asked.
    fn ask_next(&mut self, now: Nanos, port: &mut dyn OrderPort) -> Option<Rejected> {
        let count = self.quotes.count();
        let asking = &mut self.reconciling;
        if asking.asked.is_some() || now < asking.next_at {
            return None;
        }
        asking.next_at = now.after(asking.gap_ns(count));
        if count == 0 || !self.risk.has_session() {
            return None;
        }
        asking.place = (asking.place + 1) % count;
        let place = asking.place;
        let own = self.quotes.at(place)?;
        if own.asked.is_some() || own.cancel.is_some() || self.quotes.cancelling.is_some() {
            return None;
        }
        let entry = own.entry();
        let id = self.orders.issue_id();
        match port.quote(now, &QuoteIntent::Status { id, entry }) {
            Ok(()) => {
                self.reconciling.asked = Some(Question { id, place, at: now });
                None
            }
            Err(error) => Some(error),
        }
    }
}
