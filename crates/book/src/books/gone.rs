//! Orders of books without queues that were cleared: they stay where they are, and are nobody's.

use super::Books;
use crate::ladder::Book;
use crate::order_index::{CLEARS, Slot};
use tickwire_market::OrderId;

impl Books {
    /// Every order of a book without queues is gone from here on; its slot is left as it is until another
    /// order needs it.
    pub(super) fn let_orders_go(&mut self, book: usize) {
        self.may_have_gone = true;
        let clears = &mut self.books[book].clears;
        *clears = clears.wrapping_add(1);
        // The count begins anew: orders of its first round would be taken for those that come now.
        if *clears == 0 {
            self.orders
                .release_all_if(|slot| slot.instrument() as usize == book);
        }
    }

    /// A resting order's slot.
    pub(crate) fn find(&self, id: OrderId) -> Option<u32> {
        let index = self.orders.find(id)?;
        let is_gone = is_gone(self.by_order, &self.books, self.orders.slot(index));
        (!is_gone).then_some(index)
    }

    /// Those who are gone leave the table, for one that finds no room there: once for all that were cleared
    /// since the last time.
    #[cold]
    pub(super) fn take_gone_out(&mut self) {
        self.may_have_gone = false;
        let (by_order, books) = (self.by_order, &self.books);
        self.orders
            .release_moved_if(|slot| is_gone(by_order, books, slot));
    }
}

/// Whether an order rested in its book before that was cleared.
#[inline(always)]
pub(super) fn is_gone(by_order: bool, books: &[Book], slot: &Slot) -> bool {
    let book = books.get(slot.instrument() as usize);
    !by_order && book.is_none_or(|book| slot.links[CLEARS] != book.clears)
}

#[cfg(test)]
mod tests {
    use super::super::{Applied, BooksConfig};
    use super::*;
    use tickwire_market::{EventKind, InstrumentId, MarketEvent, Price, Volume};

    /// An order of before as many clears as can be counted is not taken for one of now.
    #[test]
    fn a_count_of_clears_that_begins_anew_brings_no_order_back() {
        let mut books = Books::new(BooksConfig {
            instruments: 2,
            orders: 4,
            levels: 8,
            ..BooksConfig::default()
        });
        let order = |id| MarketEvent {
            instrument: InstrumentId(1),
            order_id: OrderId(id),
            qty: Volume(1),
            price: Price::from_raw(5),
            ..MarketEvent::default()
        };
        let clear = MarketEvent {
            kind: EventKind::Clear,
            instrument: InstrumentId(1),
            ..MarketEvent::default()
        };
        // One in the window, one in the table.
        books.apply(&order(1));
        books.apply(&order(5));
        books.books[1].clears = u32::MAX;
        books.apply(&order(2));
        books.apply(&clear);
        assert_eq!(books.books[1].clears, 0);
        for id in [1, 2, 5] {
            assert!(books.order(OrderId(id)).is_none(), "{id}");
        }
        assert!(matches!(books.apply(&order(1)), Applied::Update(_)));
        assert!(books.order(OrderId(1)).is_some());
    }
}
