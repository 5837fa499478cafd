//! Order id → slot: an open-addressing table of fixed capacity, linear probing, deletion by shifting back (no
//! tombstones).

use alloc::vec;
use alloc::vec::Vec;

use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader};

#[derive(Clone, Copy)]
struct Entry {
    /// 0 is an empty place: order ids start at 1.
    id: u64,
    slot: u32,
}

pub(crate) struct OrderIndex {
    entries: Vec<Entry>,
    shift: u32,
}

impl OrderIndex {
    /// Room for `capacity` ids at a load of at most one half.
    pub(crate) fn new(capacity: usize) -> OrderIndex {
        let places = (capacity.max(8) * 2).next_power_of_two();
        OrderIndex {
            entries: vec![Entry { id: 0, slot: 0 }; places],
            shift: 64 - places.trailing_zeros(),
        }
    }

    fn home(&self, id: u64) -> usize {
        (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    fn find(&self, id: u64) -> Option<usize> {
        let mask = self.entries.len() - 1;
        let mut at = self.home(id);
        loop {
            match self.entries[at].id {
                0 => return None,
                found if found == id => return Some(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        if id == 0 {
            None
        } else {
            self.find(id).map(|at| self.entries[at].slot)
        }
    }

    /// `id` must be new and not 0, and fewer than `capacity` ids present: the engine's slab has as many
    /// slots.
    pub(crate) fn insert(&mut self, id: u64, slot: u32) {
        let mask = self.entries.len() - 1;
        let mut at = self.home(id);
        while self.entries[at].id != 0 {
            at = (at + 1) & mask;
        }
        self.entries[at] = Entry { id, slot };
    }

    /// Every id and its slot, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let taken = self.entries.iter().filter(|entry| entry.id != 0);
        taken.map(|entry| (entry.id, entry.slot))
    }

    pub(crate) fn remove(&mut self, id: u64) {
        let Some(mut hole) = self.find(id) else { return };
        let mask = self.entries.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry.id == 0 {
                break;
            }
            // An entry may move into the hole if its home does not lie after the hole on the way to its
            // place.
            let wanted = self.home(entry.id);
            if (at.wrapping_sub(wanted) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole].id = 0;
    }
}

/// Each entry with its place, so that a table that was loaded is the one that was saved.
impl Persist for OrderIndex {
    fn save(&self, out: &mut Bytes) {
        (self.iter().count() as u64).save(out);
        let taken = self.entries.iter().enumerate().filter(|(_, entry)| entry.id != 0);
        taken.for_each(|(at, entry)| (at as u32, entry.id, entry.slot).save(out));
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.entries.fill(Entry { id: 0, slot: 0 });
        for _ in 0..u64::read(from)? {
            let (at, id, slot) = <(u32, u64, u32)>::read(from)?;
            *self.entries.get_mut(at as usize).ok_or(Damaged)? = Entry { id, slot };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use tickwire_testdata::Rng;

    #[test]
    fn agrees_with_a_map_at_full_load() {
        let mut rng = Rng::new(7);
        let mut index = OrderIndex::new(64);
        let mut map = BTreeMap::new();
        for step in 0..200_000 {
            let id = 1 + rng.below(200);
            if map.contains_key(&id) {
                index.remove(id);
                map.remove(&id);
            } else if map.len() < 64 {
                index.insert(id, step);
                map.insert(id, step);
            }
            let probe = rng.below(202);
            assert_eq!(index.get(probe), map.get(&probe).copied(), "step {step}");
        }
    }
}
