//! Packets that are rehearsed: one that moves a book a strategy wants comes once in thousands, and by then
//! what its events need, code and data, has left the caches. A thread with time to spare takes two events of
//! its own along the whole way, from the sink to the strategy's door, into a book that nobody reads.

use tickwire_book::{Books, BooksConfig, Depth, prefetch};
use tickwire_market::{
    BookState, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, OrderId, Price, Side,
    Venue, Volume,
};
use tickwire_trading::strategy::Strategy;

use super::{Live, Mark};
use crate::hot::{HotPath, OrderOut};

/// Orders and levels that rehearsals need at once, and some more.
const ROOM: u32 = 1 << 10;
/// Between the best bid and the best offer of a rehearsed book.
const SPREAD: i64 = Price::from_4dp(400).raw();
/// The best offer of a rehearsed book.
const ASK: Price = Price::from_4dp(100_0000);

/// The books of a channel's rehearsals: while one goes on, they stand in the place of the channel's own,
/// which no rehearsed event reaches.
pub(super) struct Scratch {
    books: Books,
    /// The instrument whose events are rehearsed, by its number on the channel: the first that a strategy
    /// subscribed to.
    instrument: Option<InstrumentId>,
    /// Orders that were rehearsed.
    orders: u64,
}

impl Scratch {
    /// Books like these, empty, with room for rehearsals alone.
    fn beside(books: &Books) -> Scratch {
        Scratch {
            books: Books::new(BooksConfig {
                orders: ROOM,
                levels: ROOM,
                initial: BookState::Live,
                ..*books.config()
            }),
            instrument: None,
            orders: 0,
        }
    }

    /// From now on events of this instrument are rehearsed, unless another one's are already.
    pub(super) fn take(&mut self, instrument: InstrumentId) {
        let config = *self.books.config();
        if self.instrument.is_some() || instrument.0 >= config.instruments {
            return;
        }
        self.instrument = Some(instrument);
        // A bid and an offer that stay, so that what is rehearsed has something to move.
        for (side, price) in [(Side::Ask, ASK), (Side::Bid, Price::from_raw(ASK.raw() - SPREAD))] {
            let [stands, other] = self.events(instrument, Nanos::ZERO, side, price);
            self.books.apply(&stands);
            if stands.kind == EventKind::Quote {
                self.books.apply(&other);
            }
        }
    }

    /// A level or an order that enters, and leaves again.
    fn events(&mut self, instrument: InstrumentId, now: Nanos, side: Side, price: Price) -> [MarketEvent; 2] {
        let config = self.books.config();
        self.orders += 1;
        let (enters, leaves) = match config.depth {
            Depth::Aggregated | Depth::ByOrder => (EventKind::Add, EventKind::Delete),
            Depth::ByPrice if matches!(config.venue, Venue::Cqs | Venue::Uqdf) => {
                (EventKind::Quote, EventKind::Quote)
            }
            Depth::ByPrice => (EventKind::Level, EventKind::Level),
        };
        let event = MarketEvent {
            kind: enters,
            venue: config.venue,
            instrument,
            recv_ts: now,
            order_id: OrderId(self.orders),
            side,
            price,
            qty: Volume(100),
            order_count: 1,
            flags: EventFlags::LAST,
            ..MarketEvent::default()
        };
        let gone = MarketEvent {
            kind: leaves,
            qty: Volume::ZERO,
            order_count: 0,
            ..event
        };
        match enters {
            // The best of both sides, a tick apart from the one before.
            EventKind::Quote => [1, 2].map(|nth| MarketEvent {
                price: Price::from_raw(ASK.raw() - SPREAD),
                ask_price: Price::from_raw(ASK.raw() - nth * SPREAD / 4),
                ask_qty: Volume(100),
                ..event
            }),
            _ => [event, gone],
        }
    }
}

/// Takes memory for rehearsals beside the books of every channel.
pub(super) fn prepare<O, S: Strategy, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Live<S>>) {
    hot.rule.scratch = hot.books.iter().map(Scratch::beside).collect();
    let by_channel = hot.rule.marks.chunks(1 << hot.rule.bits);
    for (scratch, marks) in hot.rule.scratch.iter_mut().zip(by_channel) {
        if let Some(first) = marks.iter().position(|mark| *mark == Mark::Watched) {
            scratch.take(InstrumentId(first as u32));
        }
    }
}

/// Has what the next packet of an instrument that is wanted will need fetched: an offer that is better by
/// half the spread enters a book of its own, and leaves it. No strategy is asked, no order is sent, and the
/// channel's books stay as they are. Each time it is another channel's turn.
///
/// Not where consolidated books are kept, which would take the offer for one.
pub(super) fn rehearse<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
) {
    for hosted in &hot.rule.hosted {
        if let Some(instrument) = hosted.conductor.rehearsed() {
            let local = InstrumentId(instrument.0 & ((1 << hot.rule.bits) - 1));
            if let Some(books) = hot.books.get(instrument.index() >> hot.rule.bits) {
                books.fetch(local);
            }
        }
    }
    prefetch::fetch_value(hot);
    for session in &hot.sessions {
        prefetch::fetch_value(session);
    }
    hot.rule.turn = hot.rule.turn.wrapping_add(1);
    let source = hot.rule.turn % hot.rule.scratch.len().max(1);
    let Some((scratch, instrument)) = hot
        .rule
        .scratch
        .get_mut(source)
        .and_then(|scratch| scratch.instrument.map(|instrument| (scratch, instrument)))
    else {
        return;
    };
    let index = (source << hot.rule.bits) | instrument.index();
    if hot.consolidated.is_some() || hot.rule.marks.get(index) != Some(&Mark::Watched) {
        return;
    }
    let events = scratch.events(
        instrument,
        now,
        Side::Ask,
        Price::from_raw(ASK.raw() - SPREAD / 2),
    );
    let mut hosted = hot.rule.hosted.iter_mut();
    if hosted.all(|hosted| hosted.conductor.begin_rehearsal()) {
        let before = std::mem::replace(&mut hot.source, source);
        std::mem::swap(&mut hot.books[source], &mut hot.rule.scratch[source].books);
        for event in &events {
            hot.on_event(event);
        }
        std::mem::swap(&mut hot.books[source], &mut hot.rule.scratch[source].books);
        hot.source = before;
    }
    for hosted in &mut hot.rule.hosted {
        hosted.conductor.end_rehearsal();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_book::Applied;
    use tickwire_market::UpdateFlags;

    #[test]
    fn each_kind_of_book_can_be_rehearsed_without_end() {
        for (venue, depth) in [
            (Venue::Nasdaq, Depth::Aggregated),
            (Venue::Cme, Depth::ByOrder),
            (Venue::Nyse, Depth::ByPrice),
            (Venue::Cqs, Depth::ByPrice),
        ] {
            let books = Books::new(BooksConfig {
                venue,
                depth,
                instruments: 3,
                orders: 8,
                levels: 8,
                initial: BookState::Building,
                tracked: true,
            });
            let mut scratch = Scratch::beside(&books);
            scratch.take(InstrumentId(3));
            assert_eq!(scratch.instrument, None, "there is no such book");
            scratch.take(InstrumentId(2));
            scratch.take(InstrumentId(1));
            assert_eq!(scratch.instrument, Some(InstrumentId(2)), "the first one stays");
            let is_quoted = matches!(venue, Venue::Cqs);
            for round in 0..2 * u64::from(ROOM) {
                let price = Price::from_raw(ASK.raw() - SPREAD / 2);
                for event in scratch.events(InstrumentId(2), Nanos(round), Side::Ask, price) {
                    let Applied::Update(update) = scratch.books.apply(&event) else {
                        panic!("{venue:?}, round {round}: {event:?}");
                    };
                    assert_eq!(update.state, BookState::Live);
                    assert!(
                        update.changed.has(UpdateFlags::BEST_ASK_PRICE),
                        "{venue:?}, {round}"
                    );
                }
                let book = scratch.books.book(InstrumentId(2)).unwrap();
                let levels = Side::BOTH.map(|side| book.levels(side).len());
                assert!(levels == [1; 2], "{venue:?}, round {round}: {levels:?}");
                assert!(is_quoted || book.best(Side::Ask).unwrap().price == ASK);
            }
        }
    }
}
