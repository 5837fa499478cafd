//! Where a feed pushes its events.

use crate::{EventKind, InstrumentId, MarketEvent, MessageType, OrderId, Price, Side};

/// A message that lies a few messages ahead in the same packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Upcoming {
    /// The instrument it is about.
    pub instrument: InstrumentId,
    /// The order it is about; of a feed that says levels, 0.
    pub order_id: OrderId,
    /// Whether the message says itself at which price it changes the book, as that of a new order does, and
    /// one about a level. If not, side and price are anything: a flag and no `Option`, as which of the two a
    /// message is nobody can foresee, and an `Option` is made by a branch.
    pub says_where: bool,
    /// The side that it changes.
    pub side: Side,
    /// The price at which it changes it.
    pub price: Price,
}

impl Upcoming {
    /// What an event that lies ahead says of itself.
    #[inline(always)]
    pub fn of(event: &MarketEvent) -> Upcoming {
        Upcoming {
            instrument: event.instrument,
            order_id: event.order_id,
            says_where: matches!(event.kind, EventKind::Add | EventKind::Level),
            side: event.side,
            price: event.price,
        }
    }

    /// A message about an order that rests already, whose price it does not say.
    #[inline(always)]
    pub fn resting(instrument: InstrumentId, order_id: OrderId) -> Upcoming {
        Upcoming {
            instrument,
            order_id,
            says_where: false,
            side: Side::Bid,
            price: Price::ZERO,
        }
    }
}

/// A consumer of market events, statically dispatched: books, recorders, shared memory, tests.
pub trait EventSink {
    /// One event, in sequence, once.
    fn on_event(&mut self, event: &MarketEvent);

    /// The events that follow, up to the next call, are those of a message of this type; once for every
    /// decoded message with events. One without events is told of or not. What a channel says of itself, as a
    /// gap, belongs to no message and is announced by none: [`MarketEvent::instrument`] 0, or kind `Gap`,
    /// `Recovered` or `Clear`.
    #[inline]
    fn on_message(&mut self, kind: MessageType) {
        let _ = kind;
    }

    /// Such a message lies a few messages ahead in the same packet: a book may fetch its cache lines now.
    /// What is said may be wrong; ignoring it is always correct.
    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        let _ = next;
    }

    /// Such a message has come as the only one of its packet, and is told of next: a book may fetch its cache
    /// lines now, so that they are not waited for one after the other. Its instrument is
    /// [`InstrumentId::WHOLE_FEED`] where that is not known yet. What is said may be wrong; ignoring it is
    /// always correct.
    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        let _ = next;
    }

    /// The next book that is wrong, as what came does not fit it or could not be read; the feed asks after
    /// every packet until there is none, marks the book and has it made right. `Books::next_distrusted`
    /// answers this. Default: none.
    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        None
    }
}

/// Any sink, called through its table: for what is not on the hot path (gaps, snapshots, timers), so that it
/// is compiled once and not once for every sink.
///
/// ```
/// use tickwire_market::{DynSink, EventSink, MarketEvent};
/// let mut events = 0;
/// let mut count = |_: &MarketEvent| events += 1;
/// DynSink(&mut count).on_event(&MarketEvent::default());
/// assert_eq!(events, 1);
/// ```
pub struct DynSink<'a>(pub &'a mut dyn EventSink);

// Every method of the trait, those with a default too: the test below counts them.
impl EventSink for DynSink<'_> {
    fn on_event(&mut self, event: &MarketEvent) {
        self.0.on_event(event);
    }

    fn on_message(&mut self, kind: MessageType) {
        self.0.on_message(kind);
    }

    fn upcoming(&mut self, next: Upcoming) {
        self.0.upcoming(next);
    }

    fn arriving(&mut self, next: Upcoming) {
        self.0.arriving(next);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.0.next_distrusted()
    }
}

impl<F: FnMut(&MarketEvent)> EventSink for F {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self(event)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    /// A method that [`super::DynSink`] did not hand on would be lost off the hot path only, where nobody
    /// looks.
    #[test]
    fn any_sink_hands_on_every_method() {
        let text = include_str!("sink.rs");
        let methods = |opening: &str| {
            let block = text.split_once(opening).expect("the block").1;
            let block = block.split_once("\n}\n").expect("its end").0;
            let names = block
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix("fn "));
            let mut names: std::vec::Vec<&str> = names.filter_map(|line| line.split('(').next()).collect();
            names.sort_unstable();
            names
        };
        let all = methods("\npub trait EventSink {\n");
        assert!(all.len() >= 3);
        assert_eq!(methods("\nimpl EventSink for DynSink<'_> {\n"), all);
    }
}
