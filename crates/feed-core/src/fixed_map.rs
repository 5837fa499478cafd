//! A table of fixed size: 64-bit numbers to small values. Open addressing, linear probing, at most half full.
//!
//! Beside every slot stands a byte: 0 for an empty one, else a part of its key's hash. A key that is not
//! there is mostly told so by this byte alone, and a whole line of slots fits into one or two bytes' reach:
//! looking in vain, which is what a filter does most, touches no slot.
//!
//! 64 numbers in a row stand in 64 slots beside each other: orders are numbered upwards, so that those of the
//! last moments share a line of bytes and lines of slots.

use alloc::{boxed::Box, vec};
use core::hint::black_box;

/// Numbers to values.
pub struct FixedMap<V> {
    /// One for each slot.
    tags: Box<[u8]>,
    slots: Box<[(u64, V)]>,
    /// 64 less the bits of a slot's number.
    shift: u32,
    len: usize,
    max: usize,
}

/// The table has no room for another key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// Where a key was found; good until the next insertion or removal.
#[derive(Clone, Copy)]
pub struct Slot(usize);

impl<V: Copy + Default> FixedMap<V> {
    /// A table with room for at least `entries`; for none at all if that is 0. All memory it will ever use is
    /// taken here.
    pub fn new(entries: usize) -> FixedMap<V> {
        let size = (entries * 2).next_power_of_two().max(2);
        FixedMap {
            tags: vec![0; size].into(),
            slots: vec![(0, V::default()); size].into(),
            shift: u64::BITS - size.trailing_zeros(),
            len: 0,
            max: if entries == 0 { 0 } else { size / 2 },
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.tags.fill(0);
        self.len = 0;
    }

    /// Where a key stands.
    #[inline(always)]
    pub fn find(&self, key: u64) -> Option<Slot> {
        self.probe(key).ok()
    }

    /// What stands there.
    #[inline(always)]
    pub fn at(&self, place: Slot) -> &V {
        &self.slots[place.0].1
    }

    /// What stands there, to be changed.
    #[inline(always)]
    pub fn at_mut(&mut self, place: Slot) -> &mut V {
        &mut self.slots[place.0].1
    }

    /// A key's value.
    #[inline(always)]
    pub fn get(&self, key: u64) -> Option<&V> {
        self.find(key).map(|place| self.at(place))
    }

    /// Sets a value; what it was before.
    #[inline(always)]
    pub fn insert(&mut self, key: u64, value: V) -> Result<Option<V>, Full> {
        match self.probe(key) {
            Ok(place) => Ok(Some(core::mem::replace(self.at_mut(place), value))),
            Err(_) if self.len >= self.max => Err(Full),
            Err(Slot(at)) => {
                self.tags[at] = self.home(key).1;
                self.slots[at] = (key, value);
                self.len += 1;
                Ok(None)
            }
        }
    }

    /// Reads where a key is, or would be, so that it is in the caches: for a thread that waits.
    pub fn fetch(&self, key: u64) {
        let (slot, _) = self.home(key);
        black_box((self.tags[slot], self.slots[slot].0));
    }

    /// Takes a value out.
    #[inline(always)]
    pub fn remove(&mut self, key: u64) -> Option<V> {
        self.find(key).map(|place| self.remove_at(place))
    }

    /// Takes the value of a key that was found out.
    #[inline(always)]
    pub fn remove_at(&mut self, place: Slot) -> V {
        let mask = self.slots.len() - 1;
        let value = self.slots[place.0].1;
        self.len -= 1;
        let (mut hole, mut next) = (place.0, (place.0 + 1) & mask);
        while self.tags[next] != 0 {
            // An entry may move back into the hole unless its own slot lies between the two.
            let home = self.home(self.slots[next].0).0;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.slots[hole] = self.slots[next];
                self.tags[hole] = self.tags[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.tags[hole] = 0;
        value
    }

    /// Every key with its value: a walk over the whole table.
    pub fn each(&self, mut each: impl FnMut(u64, &V)) {
        let taken = self.tags.iter().zip(&self.slots).filter(|(tag, _)| **tag != 0);
        taken.for_each(|(_, (key, value))| each(*key, value));
    }

    /// Takes out all values but those that are to be kept: a walk over the whole table.
    pub fn retain(&mut self, keep: impl Fn(&V) -> bool) {
        let mut at = 0;
        while at < self.slots.len() {
            // What takes the place of one taken out is looked at next.
            if self.tags[at] != 0 && !keep(&self.slots[at].1) {
                self.remove_at(Slot(at));
            } else {
                at += 1;
            }
        }
    }

    /// Where the key is, or would be: half of the slots are empty, so that the search ends.
    #[inline(always)]
    fn probe(&self, key: u64) -> Result<Slot, Slot> {
        let mask = self.slots.len() - 1;
        let (mut slot, wanted) = self.home(key);
        loop {
            match self.tags[slot] {
                0 => return Err(Slot(slot)),
                tag if tag == wanted && self.slots[slot].0 == key => return Ok(Slot(slot)),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The slot where the search for a key begins, and the byte beside it, which is never 0. The key's last
    /// bits are the slot's place among 64.
    #[inline(always)]
    fn home(&self, key: u64) -> (usize, u8) {
        let (hash, last) = (hash(key / RUN), key % RUN);
        let slot = ((hash >> self.shift) ^ last) as usize & (self.slots.len() - 1);
        (slot, ((hash >> 24) ^ last) as u8 | 0x80)
    }
}

/// How many numbers in a row stand beside each other.
const RUN: u64 = 64;

/// Spreads numbers that come in runs and text that differs in its first letters only: the high bits depend on
/// all bits.
#[inline(always)]
fn hash(key: u64) -> u64 {
    (key ^ key >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15)
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
        for round in 0..100_000 {
            // Runs of numbers, and numbers all over.
            let key = rng.below(100).wrapping_mul([1, u64::MAX / 99][round / 50_000]);
            let value = rng.next_u64();
            match rng.below(4) {
                0 => assert_eq!(table.remove(key), map.remove(&key)),
                1 => assert_eq!(table.get(key), map.get(&key)),
                2 => {
                    let found = table.find(key).map(|place| table.at_mut(place));
                    assert_eq!(found, map.get_mut(&key));
                }
                _ if map.len() < 64 || map.contains_key(&key) => {
                    assert_eq!(table.insert(key, value), Ok(map.insert(key, value)));
                }
                _ => assert_eq!(table.insert(key, value), Err(Full)),
            }
            if round == 50_000 {
                table.clear();
                map.clear();
            }
            if round % 1000 == 999 {
                table.retain(|value| value % 3 != 0);
                map.retain(|_, value| *value % 3 != 0);
                for (key, value) in &map {
                    assert_eq!(table.get(*key), Some(value));
                }
            }
        }
    }

    #[test]
    fn a_full_table_refuses_and_every_number_can_be_a_key() {
        let mut table = FixedMap::new(0);
        assert_eq!((table.insert(7, 1), table.get(7)), (Err(Full), None));
        let mut table = FixedMap::new(4);
        for key in [0, u64::MAX] {
            assert_eq!((table.insert(key, key), table.get(key)), (Ok(None), Some(&key)));
            assert_eq!((table.remove(key), table.get(key)), (Some(key), None));
        }
    }

    /// Symbols are padded text, orders are counted: neither may fill runs of slots.
    #[test]
    fn symbols_of_few_letters_and_counted_orders_are_found_in_few_steps() {
        let letters = |n: u64| {
            u64::from_be_bytes([
                b'A' + (n / 26) as u8,
                b'A' + (n % 26) as u8,
                32,
                32,
                32,
                32,
                32,
                32,
            ])
        };
        let steps = |keys: &mut dyn Iterator<Item = u64>| {
            let mut table = FixedMap::new(1024);
            let keys: std::vec::Vec<u64> = keys.collect();
            keys.iter()
                .for_each(|&key| assert_eq!(table.insert(key, 0_u32), Ok(None)));
            let mask = table.slots.len() - 1;
            let of = |key| {
                let at = table.find(key).expect("it was inserted").0;
                at.wrapping_sub(table.home(key).0) & mask
            };
            let steps = keys.iter().map(|&key| of(key));
            (
                steps.clone().sum::<usize>() / keys.len(),
                steps.max().unwrap_or(0),
            )
        };
        for (name, (mean, most)) in [
            ("symbols", steps(&mut (0..676).map(letters))),
            ("in strides", steps(&mut (0..1024).map(|n| 36 * 36 * n))),
            (
                "every third",
                steps(&mut (0..1024).map(|n| 0x0B1D_568F_775B_4005 + 3 * n)),
            ),
        ] {
            assert!(mean <= 1 && most <= 64, "{name}: {mean} steps, {most} at most");
        }
        // Two runs with the same 64 slots stand behind each other.
        let (mean, most) = steps(&mut (0..1024).map(|n| 0x0B1D_568F_775B_4005 + n));
        assert!(
            mean <= 64 && most <= 256,
            "in a row: {mean} steps, {most} at most"
        );
    }
}
