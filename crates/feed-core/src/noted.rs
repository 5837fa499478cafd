//! Orders that a decoder has met, for a filter in front of it that has to know them.

use alloc::vec::Vec;
use tickwire_market::OrderId;

/// Orders of wanted instruments that were added, until somebody asks for them: where messages name an order
/// and no instrument, a filter in front of the channel follows orders, and is told of those that it has not
/// seen itself.
#[derive(Clone, Debug, Default)]
pub struct NotedOrders {
    orders: Vec<OrderId>,
    room: usize,
    is_short: bool,
}

impl NotedOrders {
    /// Nothing is noted.
    pub const fn none() -> NotedOrders {
        NotedOrders {
            orders: Vec::new(),
            room: 0,
            is_short: false,
        }
    }

    /// Room for so many; of more it is only known that there were more, see [`NotedOrders::take_short`].
    pub fn with_room(room: usize) -> NotedOrders {
        NotedOrders {
            orders: Vec::with_capacity(room),
            room,
            is_short: false,
        }
    }

    /// An order of a wanted instrument was added.
    #[inline(always)]
    pub fn note(&mut self, order: OrderId) {
        if self.orders.len() < self.room {
            self.orders.push(order);
        } else {
            self.is_short = true;
        }
    }

    /// How many are noted.
    pub fn len(&self) -> usize {
        self.orders.len()
    }

    /// Whether none is noted.
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Forgets all but the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.orders.truncate(len);
    }

    /// Takes them out.
    pub fn drain(&mut self) -> impl Iterator<Item = OrderId> + '_ {
        self.orders.drain(..)
    }

    /// Whether there were more than there is room for since this was asked last: those that rest are to be
    /// asked for ([`crate::Prefiltered::resting`]).
    pub fn take_short(&mut self) -> bool {
        core::mem::take(&mut self.is_short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_room_for_is_told() {
        let mut noted = NotedOrders::with_room(2);
        noted.note(OrderId(1));
        noted.note(OrderId(2));
        assert!(!noted.take_short());
        noted.note(OrderId(3));
        assert_eq!(noted.len(), 2);
        noted.truncate(1);
        assert!(noted.take_short() && !noted.take_short());
        assert!(noted.drain().eq([OrderId(1)]) && noted.is_empty());
    }
}
