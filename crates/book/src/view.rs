//! Reading a book.

use crate::books::worse;
use crate::ladder::{Book, BookSide};
use crate::order_index::{NEXT, NONE, PREV};
use crate::{Books, Depth, Digest, key_of, price_of};
use tickwire_market::{BookState, BookUpdate, InstrumentId, Level, OrderId, Price, Qty, SeqNo, Side, Volume};

/// One book, for reading.
#[derive(Clone, Copy)]
pub struct BookRef<'a> {
    books: &'a Books,
    index: usize,
}

/// A resting order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderView {
    /// Its id.
    pub id: OrderId,
    /// Its instrument.
    pub instrument: InstrumentId,
    /// Its side.
    pub side: Side,
    /// Its price.
    pub price: Price,
    /// What is left of it.
    pub qty: Qty,
}

/// What stands before an order in its level's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueuePosition {
    /// How many orders.
    pub orders_ahead: u32,
    /// Their quantities together.
    pub qty_ahead: Volume,
}

impl<'a> BookRef<'a> {
    pub(crate) fn new(books: &'a Books, instrument: InstrumentId) -> Option<BookRef<'a>> {
        (instrument.index() < books.books.len()).then_some(BookRef {
            books,
            index: instrument.index(),
        })
    }

    /// The instrument.
    pub fn instrument(&self) -> InstrumentId {
        InstrumentId(self.index as u32)
    }

    /// Whether the book can be trusted now.
    pub fn state(&self) -> BookState {
        worse(self.books.feed, self.own_state())
    }

    /// The book's own state: [`BookState::Stale`] when it has a gap, or had no room, of its own, whatever the
    /// feed as a whole is.
    pub fn own_state(&self) -> BookState {
        self.books.books[self.index].own.state()
    }

    /// The sequence number of the last event that touched the book.
    pub fn seq(&self) -> SeqNo {
        self.books.books[self.index].seq
    }

    /// The top of the book as an update that changes nothing; its receive time is not kept and 0.
    pub fn update(&self) -> BookUpdate {
        let book = &self.books.books[self.index];
        let best = Side::BOTH.map(|side| book.top(side).level(side));
        BookUpdate {
            seq: book.seq,
            venue_ts: book.venue_ts,
            instrument: self.instrument(),
            venue: self.books.config().venue,
            state: self.state(),
            price: best.map(|level| level.price),
            qty: best.map(|level| level.qty),
            ..BookUpdate::default()
        }
    }

    /// The best level of a side, `None` when it is empty.
    pub fn best(&self, side: Side) -> Option<Level> {
        let book = &self.books.books[self.index];
        (book.len(side) > 0).then(|| book.top(side).level(side))
    }

    #[inline(always)]
    fn side(&self, side: Side) -> (&'a Book, BookSide) {
        let book = self.index;
        (&self.books.books[book], BookSide { book, side })
    }

    /// The levels of a side, best first.
    pub fn levels(&self, side: Side) -> impl ExactSizeIterator<Item = Level> + 'a {
        let (book, on) = self.side(side);
        self.books.levels.levels(book, on)
    }

    /// The levels of a side at a price and worse, best first.
    #[inline]
    pub fn levels_from(&self, side: Side, price: Price) -> impl ExactSizeIterator<Item = Level> + use<'a> {
        let (book, on) = self.side(side);
        let key = key_of(side, price);
        self.books.levels.levels_from(book, on, key)
    }

    /// Whether neither side has a level.
    pub fn is_empty(&self) -> bool {
        Side::BOTH
            .iter()
            .all(|&side| self.books.books[self.index].len(side) == 0)
    }

    /// The orders of one level, first in the queue first. Empty unless the books are kept by order.
    pub fn orders(&self, side: Side, price: Price) -> impl Iterator<Item = OrderView> + 'a {
        let books = self.books;
        let (book, on) = self.side(side);
        let first = books.levels.first(book, on, key_of(side, price));
        let known = |index: u32| (index != NONE).then_some(index);
        core::iter::successors(known(first), move |&index| known(books.orders.links(index)[NEXT]))
            .map(|index| books.view(index))
    }

    /// Adds the book to a digest: nothing when it has no level.
    pub fn digest_into(&self, digest: &mut Digest) {
        if self.is_empty() {
            return;
        }
        digest.book(self.instrument());
        for side in Side::BOTH {
            self.levels(side).for_each(|level| digest.level(side, &level));
        }
    }

    /// Adds every order in queue order to a digest, which finds differences in priority too.
    pub fn digest_queues_into(&self, digest: &mut Digest) {
        for side in Side::BOTH {
            for level in self.levels(side) {
                self.orders(side, level.price)
                    .for_each(|order| digest.order(order.id, order.qty.into()));
            }
        }
    }
}

impl Books {
    fn view(&self, index: u32) -> OrderView {
        let slot = self.orders.slot(index);
        OrderView {
            id: slot.id(),
            instrument: InstrumentId(slot.instrument()),
            side: slot.side(),
            price: price_of(slot.side(), slot.key),
            qty: Qty(slot.qty),
        }
    }

    /// A resting order, `None` when no order has this id.
    pub fn order(&self, id: OrderId) -> Option<OrderView> {
        self.find(id).map(|index| self.view(index))
    }

    /// What stands before an order in its queue: walks the queue up to it. `None` when there is no such order
    /// or the books are not kept by order.
    pub fn queue_position(&self, id: OrderId) -> Option<QueuePosition> {
        if self.config().depth != Depth::ByOrder {
            return None;
        }
        let mut position = QueuePosition::default();
        let mut index = self.orders.links(self.orders.find(id)?)[PREV];
        while index != NONE {
            position.orders_ahead += 1;
            let ahead = self.orders.slot(index);
            position.qty_ahead += Qty(ahead.qty);
            index = self.orders.links(index)[PREV];
        }
        Some(position)
    }
}
