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

    /// The next book that is wrong, as what came does not fit it or could not be read; the feed asks after every packet until there is
    /// none, marks the book and has it made right. `Books::next_distrusted` answers this. Default: none.
    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        None
    }
}

impl<F: FnMut(&MarketEvent)> EventSink for F {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self(event)
    }
}
