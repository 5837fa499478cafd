//! Stop orders: in no book until a recorded trade triggers them.

use tickwire_book::Books;
use tickwire_market::{ClientOrderId, InstrumentId, Nanos, Price, Side};
use tickwire_trading::ReportKind;

use super::own::Waiting;
use super::{Listener, SimVenue, report};

impl SimVenue {
    /// Puts a stop order where it waits; one whose trigger the last trade has passed is triggered by that.
    pub(super) fn wait(&mut self, at: Nanos, instrument: InstrumentId, mut waiting: Waiting) {
        let id = waiting.own.id;
        let last = self.last_sales.get(instrument.index()).copied().flatten();
        waiting.is_triggered = last.is_some_and(|last| waiting.is_triggered_by(last));
        if waiting.is_triggered {
            self.triggered.push_back((at, instrument, id));
        }
        self.open += 1;
        self.of_mut(instrument).stops.push(waiting);
    }

    pub(super) fn take_waiting(&mut self, instrument: InstrumentId, id: ClientOrderId) -> Option<Waiting> {
        let stops = &mut self.of(instrument)?.stops;
        let at = stops.iter().position(|waiting| waiting.own.id == id)?;
        let taken = stops.remove(at);
        self.triggered.retain(|(.., other)| *other != id);
        self.open -= 1;
        Some(taken)
    }

    /// Somebody has traded, as the recording says. Of the stop orders that this triggers, those act first
    /// whose trigger was passed first, then those that came first; purchases before sales.
    pub(crate) fn sold(&mut self, at: Nanos, instrument: InstrumentId, price: Price) {
        if let Some(last) = self.last_sales.get_mut(instrument.index()) {
            *last = Some(price);
        }
        let Some(Some(own)) = self.own.get_mut(instrument.index()) else {
            return;
        };
        if own.stops.is_empty() {
            return;
        }
        let stops = own.stops.iter_mut();
        let mut met: Vec<&mut Waiting> = stops
            .filter(|waiting| !waiting.is_triggered && waiting.is_triggered_by(price))
            .collect();
        met.sort_by_key(|waiting| match waiting.own.side {
            Side::Bid => (0, waiting.trigger.raw()),
            Side::Ask => (1, waiting.trigger.raw().saturating_neg()),
        });
        for waiting in met {
            waiting.is_triggered = true;
            self.triggered.push_back((at, instrument, waiting.own.id));
        }
    }

    /// When the next stop order that was triggered acts: behind everything of that time.
    #[inline]
    pub(crate) fn next_triggered(&self) -> Option<(Nanos, InstrumentId)> {
        self.triggered
            .front()
            .map(|(at, instrument, _)| (*at, *instrument))
    }

    /// The next one acts: it trades, or rests. `can_trade`: one that may not waits no more.
    pub(crate) fn trigger(
        &mut self,
        at: Nanos,
        books: (&Books, InstrumentId),
        can_trade: bool,
        tell: &mut impl Listener,
    ) {
        let Some((_, instrument, id)) = self.triggered.pop_front() else {
            return;
        };
        let Some(waiting) = self.take_waiting(instrument, id) else {
            return;
        };
        tell.report(at, report(id, None, ReportKind::Triggered));
        match can_trade {
            true => self.enter(at, waiting.own, waiting.limit, instrument, books, tell),
            false => tell.report(at, report(id, None, ReportKind::Cancelled)),
        }
        self.settle(instrument);
    }
}
