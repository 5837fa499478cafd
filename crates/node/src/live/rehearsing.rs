//! Packets that are rehearsed: one that moves a book a strategy wants comes once in thousands, and by then
//! what its events need, code and data, has left the caches. A thread with time to spare takes two events of
//! its own along the whole way, from the sink to the strategy's door, into a book that nobody reads.

use tickwire_book::{Books, BooksConfig, Depth, prefetch};
use tickwire_market::{
    BookState, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, OrderId, Price, Side,
    Symbol, Venue, Volume,
};
use tickwire_trading::strategy::{Consolidated, OrderPort, Strategy};

use super::port::Port;
use super::{Live, Mark};
use crate::hot::{EntrySession, HotPath, OrderOut};

/// Orders and levels that rehearsals need at once, and some more.
const ROOM: u32 = 1 << 10;
/// Between the best bid and the best offer of a rehearsed book.
const SPREAD: i64 = Price::from_4dp(400).raw();
/// Bytes of the code by which an order is sent, on x86-64: a rehearsed one does not go through all of it.
const SENDING_CODE: usize = 704;
/// The same of the code by which a session has sent one: [`EntrySession::committing`].
const COMMITTING_CODE: usize = 512;
/// The best offer of a rehearsed book.
const ASK: Price = Price::from_4dp(100_0000);

/// What is rehearsed, by channel. While a rehearsal goes on, its books stand in the place of the channels'
/// own, which no rehearsed event reaches.
#[derive(Default)]
pub(super) struct Rehearsals {
    books: Vec<Books>,
    /// Over them, where consolidated books are kept.
    consolidated: Option<Consolidated>,
    /// The instrument whose events are rehearsed, by its number on the channel: the first that a strategy
    /// subscribed to.
    instruments: Vec<Option<InstrumentId>>,
    /// Orders that were rehearsed.
    pub(super) orders: u64,
    /// How often a packet was rehearsed.
    pub(super) turn: usize,
    /// What the path's source was before the rehearsal that goes on.
    source: usize,
}

impl Rehearsals {
    /// Beside these books, with room for rehearsals alone.
    fn beside(books: &[Books], consolidated: Option<&Consolidated>) -> Rehearsals {
        let empty = |books: &Books| {
            Books::new(BooksConfig {
                orders: ROOM,
                levels: ROOM,
                initial: BookState::Live,
                ..*books.config()
            })
        };
        Rehearsals {
            books: books.iter().map(empty).collect(),
            consolidated: consolidated.map(Consolidated::for_rehearsals),
            instruments: vec![None; books.len()],
            ..Rehearsals::default()
        }
    }

    /// From now on events of this instrument are rehearsed, unless another one's of the channel are already.
    /// `consolidated`: the strategies' consolidated books; an instrument that is in one of them is in the one
    /// of rehearsals, too.
    pub(super) fn take(
        &mut self,
        source: usize,
        instrument: InstrumentId,
        consolidated: Option<&Consolidated>,
    ) {
        let Some(None) = self.instruments.get(source) else {
            return;
        };
        let config = *self.books[source].config();
        if instrument.0 >= config.instruments {
            return;
        }
        self.instruments[source] = Some(instrument);
        // A bid and an offer that stay, so that what is rehearsed has something to move.
        for (side, price) in [(Side::Ask, ASK), (Side::Bid, Price::from_raw(ASK.raw() - SPREAD))] {
            let [stands, other] = self.events(&config, instrument, Nanos::ZERO, (side, price));
            self.books[source].apply(&stands);
            if stands.kind == EventKind::Quote {
                self.books[source].apply(&other);
            }
        }
        let is_member = consolidated.is_some_and(|all| all.has(source, instrument));
        if let (true, Some(all), Some(symbol)) =
            (is_member, &mut self.consolidated, Symbol::new(b"REHEARSED"))
        {
            // All channels have one symbol, of two of one venue the first: its other events are the books'.
            let _ = all.define(Nanos::ZERO, source, (instrument, &symbol), &self.books[source]);
            all.forget(source);
        }
    }

    /// A level or an order that enters, and leaves again.
    fn events(
        &mut self,
        config: &BooksConfig,
        instrument: InstrumentId,
        now: Nanos,
        (side, price): (Side, Price),
    ) -> [MarketEvent; 2] {
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

/// Takes memory for rehearsals beside the books of every channel: a line of the caches for each of its
/// instruments, and some 100 KiB.
pub(super) fn prepare<O, S: Strategy, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Live<S>>) {
    let mut rehearsals = Rehearsals::beside(&hot.books, hot.consolidated.as_ref());
    for (source, marks) in hot.rule.marks.chunks(1 << hot.rule.bits).enumerate() {
        if let Some(first) = marks.iter().position(|mark| *mark == Mark::Watched) {
            rehearsals.take(source, InstrumentId(first as u32), hot.consolidated.as_ref());
        }
    }
    hot.rule.rehearsals = rehearsals;
}

/// Where a rehearsed offer enters: better by half the spread.
const OFFER: Price = Price::from_raw(ASK.raw() - SPREAD / 2);

/// Of which instrument of the source in hand packets are rehearsed, an offer at which price.
pub(super) fn rehearsed<O, S: Strategy, const STAMPED: bool>(
    hot: &HotPath<O, STAMPED, Live<S>>,
) -> Option<(InstrumentId, Price)> {
    let instrument = *hot.rule.rehearsals.instruments.get(hot.source)?;
    Some((instrument?, OFFER))
}

/// Has what the next packet of an instrument that is wanted will need fetched, of another channel each time:
/// until [`end`], books of rehearsals stand in the place of the channels', and no strategy is asked and no
/// order sent. An offer that is better by half the spread may enter its book meanwhile, and leave it. The
/// channel whose turn it is; `None`, and nothing is begun, if nothing of it is rehearsed.
#[inline]
pub(super) fn begin<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
) -> Option<usize> {
    let rehearsals = &mut hot.rule.rehearsals;
    rehearsals.turn = rehearsals.turn.wrapping_add(1);
    fetch(hot);
    let rehearsals = &mut hot.rule.rehearsals;
    let source = rehearsals.turn % rehearsals.instruments.len().max(1);
    let instrument = (*rehearsals.instruments.get(source)?)?;
    let index = (source << hot.rule.bits) | instrument.index();
    if hot.rule.marks.get(index) != Some(&Mark::Watched) {
        return None;
    }
    let mut hosted = hot.rule.hosted.iter_mut();
    if !hosted.all(|hosted| hosted.conductor.begin_rehearsal()) {
        end_of_all(hot);
        return None;
    }
    hot.rule.rehearsals.source = std::mem::replace(&mut hot.source, source);
    change_books(hot);
    Some(source)
}

/// Books of rehearsals stand in the place of the channels', or these again.
#[inline]
fn change_books<O, S: Strategy, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Live<S>>) {
    let rehearsals = &mut hot.rule.rehearsals;
    std::mem::swap(&mut hot.books, &mut rehearsals.books);
    if hot.consolidated.is_some() {
        std::mem::swap(&mut hot.consolidated, &mut rehearsals.consolidated);
    }
}

/// In a rehearsal: an offer enters and leaves.
pub(super) fn events<O: OrderOut, S: Strategy, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, Live<S>>,
    now: Nanos,
) {
    let rehearsals = &mut hot.rule.rehearsals;
    let Some(&Some(instrument)) = rehearsals.instruments.get(hot.source) else {
        return;
    };
    let config = *hot.books[hot.source].config();
    for event in &rehearsals.events(&config, instrument, now, (Side::Ask, OFFER)) {
        hot.on_event(event);
    }
}

/// What [`begin`] began is over.
#[inline]
pub(super) fn end<O: OrderOut, S: Strategy, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Live<S>>) {
    change_books(hot);
    hot.source = hot.rule.rehearsals.source;
    end_of_all(hot);
}

#[inline]
fn end_of_all<O: OrderOut, S: Strategy, const STAMPED: bool>(hot: &mut HotPath<O, STAMPED, Live<S>>) {
    for hosted in &mut hot.rule.hosted {
        hosted.conductor.end_rehearsal();
    }
}

/// Fetches what a rehearsal does not touch: the path itself, the code that sends, a session in its turn, and
/// the books of the instruments whose orders are rehearsed.
fn fetch<O: OrderOut, S: Strategy, const STAMPED: bool>(hot: &HotPath<O, STAMPED, Live<S>>) {
    prefetch::fetch_value(hot);
    prefetch::fetch_code(
        <Port<'_, O, S, STAMPED> as OrderPort>::send as *const (),
        SENDING_CODE,
    );
    prefetch::fetch_code(EntrySession::committing(), COMMITTING_CODE);
    if let Some(all) = &hot.consolidated {
        prefetch::fetch_value(all);
    }
    if let Some(session) = hot
        .sessions
        .get(hot.rule.rehearsals.turn % hot.sessions.len().max(1))
    {
        prefetch::fetch_value(session);
    }
    for hosted in &hot.rule.hosted {
        hosted.conductor.fetch();
        if let Some(instrument) = hosted.conductor.rehearsed()
            && let Some(books) = hot.books.get(instrument.index() >> hot.rule.bits)
        {
            prefetch::fetch_value(books);
            books.fetch(InstrumentId(instrument.0 & ((1 << hot.rule.bits) - 1)));
        }
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
            let mut rehearsals = Rehearsals::beside(&[books], None);
            rehearsals.take(1, InstrumentId(1), None);
            rehearsals.take(0, InstrumentId(3), None);
            assert_eq!(rehearsals.instruments, [None], "there is no such book");
            let it = InstrumentId(2);
            rehearsals.take(0, it, None);
            rehearsals.take(0, InstrumentId(1), None);
            assert_eq!(rehearsals.instruments, [Some(it)], "the first one stays");
            let config = *rehearsals.books[0].config();
            let offer = (Side::Ask, OFFER);
            for round in 0..2 * u64::from(ROOM) {
                for event in rehearsals.events(&config, it, Nanos(round), offer) {
                    let Applied::Update(update) = rehearsals.books[0].apply(&event) else {
                        panic!("{venue:?}, round {round}: {event:?}");
                    };
                    assert_eq!(update.state, BookState::Live);
                    assert!(
                        update.changed.has(UpdateFlags::BEST_ASK_PRICE),
                        "{venue:?}, {round}"
                    );
                }
                let book = rehearsals.books[0].book(it).unwrap();
                let levels = Side::BOTH.map(|side| book.levels(side).len());
                assert!(levels == [1; 2], "{venue:?}, round {round}: {levels:?}");
                assert!(venue == Venue::Cqs || book.best(Side::Ask).unwrap().price == ASK);
            }
        }
    }
}
