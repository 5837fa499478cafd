//! What an event did to the books, said in levels: what a consolidated book, or any other copy of the levels,
//! has to hear.

use crate::{Applied, Books, Change};
use tickwire_market::{
    BookState, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Price, Side, UpdateFlags,
};

/// [`Applied`] without the top of the book: keeps no hold of the books.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A book changed, in this way.
    Update(InstrumentId, UpdateFlags),
    /// All books did.
    Feed(BookState),
    /// It was not about a book.
    None,
    /// It could not be applied.
    Rejected(crate::BookError),
}

impl Applied<'_> {
    /// The outcome alone.
    #[inline]
    pub fn outcome(&self) -> Outcome {
        match *self {
            Applied::Update(update) => Outcome::Update(update.instrument, update.changed),
            Applied::Feed(state) => Outcome::Feed(state),
            Applied::None => Outcome::None,
            Applied::Rejected(error) => Outcome::Rejected(error),
        }
    }
}

/// What a feed is to the consolidated books.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Relay {
    /// A venue: its levels are shares.
    #[default]
    Levels,
    /// A consolidated feed (SIP): its quotes are the national best and pass as they are.
    National,
}

impl Books {
    /// Says what the last event did in the vocabulary of [`crate::SuperBooks`]. Call it right after
    /// [`Books::apply`] of the same event, with its outcome; the books must be
    /// [`crate::BooksConfig::tracked`], else every change is told as a whole book.
    ///
    /// | the event | what is said |
    /// |---|---|
    /// | changed levels | a `Level` for each of [`Books::changes`], [`EventFlags::LAST`] on the last one if the event had it |
    /// | cleared a book, or more than can be said | [`Books::relay_book`] |
    /// | `Gap` `Recovered` `Clear` `Status` `Trade` | the same; no `Recovered` of a book that had no room |
    /// | `TradeBreak` | the same, with the quantity that [`crate::InstrumentStates::apply`] has put into it |
    /// | a printable `Execute` | after the levels a `Trade` at its price |
    /// | found no room ([`crate::BookError::Full`]) | what was done, then a `Gap` of the instrument |
    /// | any other rejection | a `Gap` of the instrument; after it the trade of a printable `Execute` |
    /// | `Imbalance` `Definition` `EndOfGroup`, a participant's `Quote` | nothing |
    #[inline]
    pub fn relay<S: EventSink>(&self, event: &MarketEvent, outcome: Outcome, relay: Relay, sink: &mut S) {
        match outcome {
            Outcome::Update(..) if event.kind == EventKind::Quote && relay == Relay::National => {
                sink.on_event(event)
            }
            Outcome::Update(instrument, _) => match event.kind {
                // A book that had no room is recovered by a clear and by nothing else.
                EventKind::Recovered if self.is_stale(instrument) => {}
                EventKind::Gap | EventKind::Recovered => sink.on_event(event),
                _ => {
                    self.relay_levels(event, instrument, sink);
                    self.relay_execution(event, instrument, sink);
                }
            },
            Outcome::Rejected(crate::BookError::Full) => {
                let instrument = self.last_instrument();
                self.relay_levels(event, instrument, sink);
                sink.on_event(&about(event, EventKind::Gap, instrument));
            }
            Outcome::Feed(_) => sink.on_event(event),
            Outcome::None => match event.kind {
                EventKind::Status | EventKind::Trade | EventKind::TradeBreak => sink.on_event(event),
                _ => {}
            },
            Outcome::Rejected(_) => {
                if event.instrument != InstrumentId::WHOLE_FEED && self.is_stale(event.instrument) {
                    sink.on_event(&about(event, EventKind::Gap, event.instrument));
                }
                self.relay_execution(event, event.instrument, sink);
            }
        }
    }

    /// Says a whole book: `Clear`, every level as a `Level`, and a `Gap` when the book has one. The stamps
    /// are those of `event`.
    #[cold]
    pub fn relay_book<S: EventSink>(&self, event: &MarketEvent, instrument: InstrumentId, sink: &mut S) {
        let Some(book) = self.book(instrument) else { return };
        sink.on_event(&about(event, EventKind::Clear, instrument));
        for side in Side::BOTH {
            for level in book.levels(side) {
                sink.on_event(&MarketEvent {
                    side,
                    price: level.price,
                    qty: level.qty,
                    order_count: level.orders,
                    ..about(event, EventKind::Level, instrument)
                });
            }
        }
        if book.own_state() == BookState::Stale {
            sink.on_event(&about(event, EventKind::Gap, instrument));
        }
    }

    /// Says everything, for a listener that comes late: `Clear` of the whole feed, each book that has levels
    /// or a gap, and the state of the feed as `Recovered` or `Gap`; nothing of the state while the books are
    /// building.
    pub fn relay_all<S: EventSink>(&self, event: &MarketEvent, sink: &mut S) {
        let whole = InstrumentId::WHOLE_FEED;
        sink.on_event(&about(event, EventKind::Clear, whole));
        for book in self.iter() {
            if !book.is_empty() || book.own_state() == BookState::Stale {
                self.relay_book(event, book.instrument(), sink);
            }
        }
        match self.feed_state() {
            BookState::Live => sink.on_event(&about(event, EventKind::Recovered, whole)),
            BookState::Stale => sink.on_event(&about(event, EventKind::Gap, whole)),
            BookState::Building => {}
        }
    }

    /// At what price an execution was: its own if it says one, else that of the order, which [`Books::apply`]
    /// must have just found.
    #[inline]
    pub fn executed_at(&self, event: &MarketEvent) -> Option<Price> {
        if event.flags.has(EventFlags::AT_OTHER_PRICE) {
            return Some(event.price);
        }
        self.changes().first().map(|change| change.price)
    }

    fn is_stale(&self, instrument: InstrumentId) -> bool {
        self.book(instrument)
            .is_some_and(|book| book.own_state() == BookState::Stale)
    }

    #[inline(always)]
    fn relay_levels<S: EventSink>(&self, event: &MarketEvent, instrument: InstrumentId, sink: &mut S) {
        if self.is_rebuilt() {
            return self.relay_book(event, instrument, sink);
        }
        let Some((last, others)) = self.changes().split_last() else {
            return;
        };
        let mut said = about(event, EventKind::Level, instrument);
        said.flags = EventFlags(event.flags.0 & PASSED.0 & !EventFlags::LAST.0);
        for change in others {
            fill(&mut said, change);
            sink.on_event(&said);
        }
        fill(&mut said, last);
        said.flags = EventFlags(event.flags.0 & PASSED.0);
        sink.on_event(&said);
    }

    /// A printable execution is a trade for who has no orders.
    #[inline(always)]
    fn relay_execution<S: EventSink>(&self, event: &MarketEvent, instrument: InstrumentId, sink: &mut S) {
        let is_print = event.kind == EventKind::Execute && !event.flags.has(EventFlags::NOT_PRINTABLE);
        if is_print && instrument != InstrumentId::WHOLE_FEED {
            // The price of an order that is not in the book is not known either: the volume counts.
            sink.on_event(&MarketEvent {
                price: self.executed_at(event).unwrap_or_default(),
                qty: event.qty,
                ref_id: event.ref_id,
                flags: EventFlags::NO_SIDE,
                ..about(event, EventKind::Trade, instrument)
            });
        }
    }
}

/// The conditions that a level has of the event that changed it.
const PASSED: EventFlags = EventFlags::LAST
    .with(EventFlags::SNAPSHOT)
    .with(EventFlags::RETRANSMITTED);

#[inline(always)]
fn fill(said: &mut MarketEvent, change: &Change) {
    said.side = change.side;
    said.price = change.price;
    said.qty = change.qty;
    said.order_count = change.orders;
}

#[inline(always)]
fn about(event: &MarketEvent, kind: EventKind, instrument: InstrumentId) -> MarketEvent {
    MarketEvent {
        seq: event.seq,
        venue_ts: event.venue_ts,
        recv_ts: event.recv_ts,
        venue: event.venue,
        instrument,
        kind,
        ..MarketEvent::default()
    }
}
