//! The wire's numbers of orders that were modified: the engine gives them a new one, PITCH does not.

use alloc::vec::Vec;

use tickwire_market::OrderId;
use tickwire_persist::persist;

use crate::index::OrderIndex;

/// Engine's number → the number it was added under. Room for a number of orders from the start; when more
/// than ever before are in the book at once it doubles, which takes memory.
pub(super) struct Numbers {
    /// Engine's number → place among the originals.
    places: OrderIndex,
    originals: Vec<OrderId>,
    /// Places that are not in use.
    free: Vec<u32>,
}

impl Numbers {
    pub(super) fn new(orders: usize) -> Numbers {
        let orders = orders.max(1);
        Numbers {
            places: OrderIndex::new(orders),
            originals: Vec::with_capacity(orders),
            free: Vec::with_capacity(orders),
        }
    }

    /// The number on the wire: its own, unless it was modified.
    pub(super) fn of(&self, id: OrderId) -> OrderId {
        let place = self.places.get(id.0);
        let original = place.and_then(|place| self.originals.get(place as usize));
        original.copied().unwrap_or(id)
    }

    /// `old` goes on as `new`, under the number it had.
    pub(super) fn modify(&mut self, old: OrderId, new: OrderId) {
        if let Some(place) = self.places.get(old.0) {
            self.places.remove(old.0);
            return self.places.insert(new.0, place);
        }
        let place = match self.free.pop() {
            Some(place) => {
                self.originals[place as usize] = old;
                place
            }
            None => {
                if self.originals.len() == self.originals.capacity() {
                    self.grow();
                }
                self.originals.push(old);
                self.originals.len() as u32 - 1
            }
        };
        self.places.insert(new.0, place);
    }

    /// It left the book.
    pub(super) fn forget(&mut self, id: OrderId) {
        if let Some(place) = self.places.get(id.0) {
            self.places.remove(id.0);
            self.free.push(place);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let orders = self.originals.len() * 2;
        let mut places = OrderIndex::new(orders);
        self.places
            .iter()
            .for_each(|(id, place)| places.insert(id, place));
        self.places = places;
        self.originals.reserve_exact(orders - self.originals.len());
        self.free.reserve_exact(orders);
    }
}

persist!(struct Numbers { places, originals, free });

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use tickwire_testdata::Rng;

    #[test]
    fn an_order_keeps_its_first_number_through_modifications_however_many_there_are() {
        let mut rng = Rng::new(5);
        let mut numbers = Numbers::new(4);
        let mut map: BTreeMap<OrderId, OrderId> = BTreeMap::new();
        let mut live: Vec<OrderId> = (1..=300).map(OrderId).collect();
        for step in 0..50_000_u64 {
            let at = rng.below(live.len() as u64) as usize;
            let (old, new) = (live[at], OrderId(301 + step));
            live[at] = new;
            if rng.below(3) == 0 {
                // It leaves, and another one comes.
                numbers.forget(old);
                map.remove(&old);
            } else {
                numbers.modify(old, new);
                let original = map.remove(&old).unwrap_or(old);
                map.insert(new, original);
            }
            let probe = live[rng.below(live.len() as u64) as usize];
            let expected = map.get(&probe).copied().unwrap_or(probe);
            assert_eq!(numbers.of(probe), expected, "step {step}");
        }
        assert!(map.len() > 100, "more than there was room for");
        assert_eq!(numbers.originals.len() - numbers.free.len(), map.len());
    }
}
