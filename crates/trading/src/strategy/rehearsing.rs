//! Orders that are rehearsed: an order leaves once in thousands of packets, and by then what it needs, code
//! and data, has left the caches. A thread with time to spare goes through it, and takes it back.

use tickwire_market::{BookState, Cause, Counter, InstrumentId, Nanos, Qty, Side, TimeInForce};

use super::{Conductor, Context, Markets, OrderPort, Strategy};

impl<S: Strategy> Conductor<S> {
    /// The instrument whose order is rehearsed at present; `None` before the strategy has one.
    #[inline]
    pub fn rehearsed(&self) -> Option<InstrumentId> {
        let watch = self.rehearsals / 2 % self.watches.len().max(1);
        self.watches.get(watch).map(|watch| watch.instrument)
    }

    /// From now on events of a book that changes ([`EventKind`](tickwire_market::EventKind): an order or a
    /// level that comes or goes) are rehearsed: what they do up to the strategy's callback is done, and the
    /// strategy is not called. Whether they can be: not within a group of messages whose changes wait to be
    /// told.
    pub fn begin_rehearsal(&mut self) -> bool {
        self.is_rehearsing = self.dirty.is_empty();
        self.is_rehearsing
    }

    /// The events that come are the venue's again.
    pub fn end_rehearsal(&mut self) {
        self.is_rehearsing = false;
    }

    /// Does with an order that the strategy could enter what entering it would, up to the message's bytes,
    /// and takes it back: no byte leaves, no number is used, nothing is counted against a limit, and the
    /// strategy is not asked. Each time it is one of another subscribed instrument, or of its other side: one
    /// unit at the price at which it would trade at once, immediate or cancel. Whether there was one to
    /// rehearse: there is none while an order is armed, of a book that is not live or has no such side, and
    /// where the port cannot rehearse.
    ///
    /// For a loop that has nothing else to do.
    pub fn rehearse(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) -> bool {
        if self.watches.is_empty() || self.state.armed.is_some() {
            return false;
        }
        self.rehearsals = self.rehearsals.wrapping_add(1);
        let watch = &self.watches[self.rehearsals / 2 % self.watches.len()];
        let (instrument, top) = (watch.instrument, *watch.shown());
        let side = match self.rehearsals.is_multiple_of(2) {
            true => Side::Bid,
            false => Side::Ask,
        };
        let state = &mut self.state;
        let may_enter = state.may_enter.get(instrument.index()).copied();
        // Whatever else there is than the way of most orders is not rehearsed, and would not be taken back.
        if may_enter != Some(true) || state.orders.waiting() > 0 || top.state != BookState::Live {
            return false;
        }
        let (Some((price, _)), Some(order), Some(position)) = (
            top.best(!side),
            state.orders.before_next(),
            state.positions.at(instrument).copied(),
        ) else {
            return false;
        };
        if !port.begin_rehearsal() {
            return false;
        }
        let checks = state.risk.before_order(instrument);
        let mut context = Context {
            now,
            cause: Cause::default(),
            markets,
            live: instrument,
            state,
            port,
        };
        let entered = context.limit(instrument, (side, Qty(1), price), TimeInForce::ImmediateOrCancel);
        context.port.end_rehearsal();
        let has_left = matches!(entered, Some(Ok(_)));
        let state = &mut self.state;
        if has_left {
            state.counters.take_back(Counter::OrdersSent);
        }
        state.orders.forget(order);
        state.positions.restore(instrument, position);
        state.risk.restore(instrument, checks);
        has_left
    }
}
