//! Where a feed pushes its events.

use crate::{InstrumentId, MarketEvent, MessageType, OrderId};

/// A consumer of market events, statically dispatched: books, recorders, shared memory, tests.
pub trait EventSink {
    /// One event, in sequence, once.
    fn on_event(&mut self, event: &MarketEvent);

    /// The events that follow, up to the next call, are those of a message of this type; once for every decoded message with
    /// events. One without events is told of or not. What a channel says of itself, as a gap, belongs to no message and is
    /// announced by none: [`MarketEvent::instrument`] 0, or kind `Gap`, `Recovered` or `Clear`.
    #[inline]
    fn on_message(&mut self, kind: MessageType) {
        let _ = kind;
    }

    /// A message about this order lies a few messages ahead in the same packet: a book may fetch its cache lines now.
    /// Says nothing about what the message does; ignoring it is always correct.
    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        let _ = (instrument, order_id);
    }
}

/// Any sink, called through its table: for what is not on the hot path (gaps, snapshots, timers), so that it is compiled once and
/// not once for every sink.
///
/// ```
/// use tickwire_market::{DynSink, EventSink, MarketEvent};
/// let mut events = 0;
/// let mut count = |_: &MarketEvent| events += 1;
/// DynSink(&mut count).on_event(&MarketEvent::default());
/// assert_eq!(events, 1);
/// ```
pub struct DynSink<'a>(pub &'a mut dyn EventSink);

impl EventSink for DynSink<'_> {
    fn on_event(&mut self, event: &MarketEvent) {
        self.0.on_event(event);
    }

    fn on_message(&mut self, kind: MessageType) {
        self.0.on_message(kind);
    }

    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.0.upcoming(instrument, order_id);
    }
}

impl<F: FnMut(&MarketEvent)> EventSink for F {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self(event)
    }
}
