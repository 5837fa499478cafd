//! Numbers found by key: linear probing in a table that is never more than half full and from which nothing
//! is removed.

use crate::order_index::NONE;
use crate::touched;
use alloc::vec::Vec;

pub(super) struct Table {
    slots: Vec<(u64, u32)>,
}

impl Table {
    /// Room for so many numbers.
    pub(super) fn new(capacity: usize) -> Table {
        let slots = (capacity * 2).next_power_of_two().max(2);
        Table {
            slots: touched((0, NONE), slots),
        }
    }

    /// The number under a key for which `is_it` holds.
    #[inline(always)]
    pub(super) fn find(&self, key: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.start(key);
        loop {
            match self.slots[at] {
                (_, NONE) => return None,
                (found, number) if found == key && is_it(number) => return Some(number),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Enters a number that is not there; the caller keeps to the capacity.
    pub(super) fn insert(&mut self, key: u64, number: u32) {
        let mut at = self.start(key);
        while self.slots[at].1 != NONE {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = (key, number);
    }

    #[inline(always)]
    fn start(&self, key: u64) -> usize {
        let mixed = (key ^ key >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize & (self.slots.len() - 1)
    }
}
