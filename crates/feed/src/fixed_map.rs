//! A table of fixed size: 64-bit numbers to small values. Open addressing, linear probing, at most half full.

use alloc::{boxed::Box, vec};

/// Numbers to values. `u64::MAX` cannot be a key.
pub(crate) struct FixedMap<V> {
    /// Key plus 1 and value; 0 is an empty slot.
    slots: Box<[(u64, V)]>,
    len: usize,
}

/// The table is half full, or the key is the one that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

impl<V: Copy + Default> FixedMap<V> {
    /// A table with room for at least `entries`; for none at all if that is 0. All memory it will ever use is taken here.
    pub(crate) fn new(entries: usize) -> FixedMap<V> {
        let size = if entries == 0 {
            1
        } else {
            (entries * 2).next_power_of_two()
        };
        FixedMap {
            slots: vec![(0, V::default()); size].into(),
            len: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill((0, V::default()));
        self.len = 0;
    }

    #[inline(always)]
    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        let key = key.wrapping_add(1);
        let slot = &self.slots[self.probe(key)];
        (key != 0 && slot.0 == key).then_some(&slot.1)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let key = key.wrapping_add(1);
        let at = self.probe(key);
        let slot = &mut self.slots[at];
        (key != 0 && slot.0 == key).then_some(&mut slot.1)
    }

    /// Sets a value; what it was before.
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: u64, value: V) -> Result<Option<V>, Full> {
        let key = key.wrapping_add(1);
        let at = self.probe(key);
        if key != 0 && self.slots[at].0 == key {
            return Ok(Some(core::mem::replace(&mut self.slots[at].1, value)));
        }
        if key == 0 || self.len >= self.slots.len() / 2 {
            return Err(Full);
        }
        self.slots[at] = (key, value);
        self.len += 1;
        Ok(None)
    }

    /// Takes a value out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, key: u64) -> Option<V> {
        let (key, mask) = (key.wrapping_add(1), self.slots.len() - 1);
        let mut hole = self.probe(key);
        if key == 0 || self.slots[hole].0 != key {
            return None;
        }
        let value = self.slots[hole].1;
        self.len -= 1;
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            if self.slots[next].0 == 0 {
                break;
            }
            // An entry may move back into the hole unless its own slot lies between the two.
            let home = slot_of(self.slots[next].0, mask);
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.slots[hole] = self.slots[next];
                hole = next;
            }
        }
        self.slots[hole].0 = 0;
        Some(value)
    }

    /// Where the key is, or would be: half of the slots are empty, so that the search ends.
    #[inline(always)]
    fn probe(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = slot_of(key, mask);
        while self.slots[slot].0 != 0 && self.slots[slot].0 != key {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

/// Spreads numbers that come in runs.
#[inline(always)]
fn slot_of(key: u64, mask: usize) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & mask
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use tickwire_testdata::Rng;

    #[test]
    fn values_are_those_of_a_map() {
        let (mut table, mut map, mut rng) = (FixedMap::new(64), BTreeMap::new(), Rng::new(3));
        for _ in 0..100_000 {
            let (key, value) = (rng.below(100), rng.next_u64());
            match rng.below(4) {
                0 => assert_eq!(table.remove(key), map.remove(&key)),
                1 => assert_eq!(table.get(key), map.get(&key)),
                2 => assert_eq!(table.get_mut(key), map.get_mut(&key)),
                _ if map.len() < 64 || map.contains_key(&key) => {
                    assert_eq!(table.insert(key, value), Ok(map.insert(key, value)));
                }
                _ => assert_eq!(table.insert(key, value), Err(Full)),
            }
        }
    }

    #[test]
    fn a_full_table_and_the_impossible_key_are_refused() {
        let mut table = FixedMap::new(0);
        assert_eq!((table.insert(7, 1), table.get(7)), (Err(Full), None));
        let mut table = FixedMap::new(4);
        assert_eq!(
            (table.insert(u64::MAX, 1), table.get(u64::MAX)),
            (Err(Full), None)
        );
        assert_eq!(table.remove(u64::MAX), None);
    }
}
