//! Two fixed tables: security number to position, order to priority. Open addressing, linear probing, at most
//! half full.

use crate::fixed_map::FixedMap;
use alloc::{boxed::Box, vec};

/// Spreads numbers that come in runs.
#[inline(always)]
fn slot_of(key: u64, mask: usize) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask
}

fn slots(entries: usize) -> usize {
    (entries.max(1) * 2).next_power_of_two()
}

/// Security numbers, which may be any 32 bits, to positions from 1 on in order of appearance. Nothing is ever
/// removed.
pub(super) struct Securities {
    /// Number and position; position 0 is an empty slot.
    slots: Box<[(i32, u32)]>,
    len: u32,
    max: u32,
}

impl Securities {
    pub(super) fn new(max: u32) -> Securities {
        Securities {
            slots: vec![(0, 0); slots(max as usize)].into(),
            len: 0,
            max,
        }
    }

    /// How many there are: positions go from 1 to this.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline(always)]
    pub(super) fn find(&self, security: i32) -> Option<u32> {
        match self.slots[self.probe(security)] {
            (_, 0) => None,
            (_, position) => Some(position),
        }
    }

    /// Its position, a new one if need be; `None` when all are taken.
    pub(super) fn enter(&mut self, security: i32) -> Option<u32> {
        let slot = self.probe(security);
        if self.slots[slot].1 == 0 {
            if self.len == self.max {
                return None;
            }
            self.len += 1;
            self.slots[slot] = (security, self.len);
        }
        Some(self.slots[slot].1)
    }

    /// Where the number is, or would be.
    #[inline(always)]
    fn probe(&self, security: i32) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = slot_of(u64::from(security.cast_unsigned()), mask);
        while self.slots[slot].1 != 0 && self.slots[slot].0 != security {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

/// Priorities of resting orders, to know whether a change keeps the place in the queue. When full, orders are
/// left out: a change of theirs then counts as one that loses the place.
pub(super) struct Priorities(FixedMap<(u64, u32)>);

impl Priorities {
    pub(super) fn new(orders: u32) -> Priorities {
        Priorities(FixedMap::new(orders as usize))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Sets the priority of an order of an instrument; what it was before, if known.
    pub(super) fn set(&mut self, order: u64, priority: u64, index: usize) -> Option<u64> {
        let before = self.0.insert(order, (priority, index as u32)).ok().flatten();
        before.map(|(priority, _)| priority)
    }

    /// Forgets an instrument's orders, of which nothing will be heard. Not for the hot path.
    pub(super) fn forget(&mut self, index: usize) {
        self.0.retain(|(_, of)| *of != index as u32);
    }

    pub(super) fn remove(&mut self, order: u64) {
        self.0.remove(order);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use tickwire_testdata::Rng;

    #[test]
    fn priorities_are_those_of_a_map() {
        let (mut table, mut map, mut rng) = (Priorities::new(64), BTreeMap::new(), Rng::new(3));
        for _ in 0..100_000 {
            let (order, priority) = (rng.below(100), rng.next_u64());
            if rng.chance(1, 2) && (map.len() < 64 || map.contains_key(&order)) {
                assert_eq!(table.set(order, priority, 1), map.insert(order, priority));
            } else {
                table.remove(order);
                map.remove(&order);
            }
        }
    }

    #[test]
    fn a_full_table_leaves_orders_out_and_securities_keep_their_positions() {
        let mut table = Priorities::new(0);
        assert_eq!((table.set(7, 1, 1), table.set(7, 2, 1)), (None, None));
        let mut securities = Securities::new(2);
        assert_eq!(
            (securities.enter(-5), securities.enter(0), securities.enter(9)),
            (Some(1), Some(2), None)
        );
        assert_eq!(
            (securities.enter(-5), securities.find(0), securities.find(9)),
            (Some(1), Some(2), None)
        );
    }
}
