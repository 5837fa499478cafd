//! Order id → slot.
//!
//! An engine numbers its orders upwards, and most are gone after some thousands more. So the lower bits of an
//! id are its place in a *window* of slot numbers that the ids go round and round: neighbours in time are
//! neighbours in memory, and nothing is hashed. When a new order needs the place of one that has stood for a
//! whole round, the old one moves to a table: open addressing, fixed capacity, linear probing, deletion by
//! shifting back (no tombstones).

use alloc::vec;
use alloc::vec::Vec;

use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader};

/// Where an order of the window stands.
#[derive(Clone, Copy)]
struct Place {
    /// Its slot + 1; 0 is an empty place.
    slot: u32,
    /// What its id has above the window's bits.
    round: u32,
}

const EMPTY: Place = Place { slot: 0, round: 0 };

/// See the module's description.
pub(crate) struct OrderWindow {
    places: Vec<Place>,
    bits: u32,
    /// No id above this was ever in the table.
    moved_max: u64,
    moved: OrderIndex,
}

impl OrderWindow {
    /// Room for `capacity` ids, whatever they are; twice as many that follow each other stand in the window.
    pub(crate) fn new(capacity: usize) -> OrderWindow {
        let places = (capacity.max(8) * 2).next_power_of_two();
        OrderWindow {
            places: vec![EMPTY; places],
            bits: places.trailing_zeros(),
            moved_max: 0,
            moved: OrderIndex::new(capacity),
        }
    }

    #[inline]
    fn home(&self, id: u64) -> usize {
        id as usize & (self.places.len() - 1)
    }

    /// The place of an id that is in the window, and its slot.
    #[inline]
    fn find(&self, id: u64) -> Option<(usize, u32)> {
        let home = self.home(id);
        let place = self.places[home];
        let is_it = place.slot != 0 && u64::from(place.round) == id >> self.bits;
        is_it.then(|| (home, place.slot - 1))
    }

    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        match self.find(id) {
            Some((_, slot)) => Some(slot),
            None if id > self.moved_max => None,
            None => self.moved.get(id),
        }
    }

    /// `id` must be new and not 0, and fewer than `capacity` ids present: the engine's slab has as many
    /// slots.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64, slot: u32) {
        let home = self.home(id);
        let standing = self.places[home];
        let Ok(round) = u32::try_from(id >> self.bits) else {
            return self.insert_moved(id, slot);
        };
        if standing.slot != 0 {
            let old = u64::from(standing.round) << self.bits | home as u64;
            self.insert_moved(old, standing.slot - 1);
        }
        self.places[home] = Place {
            slot: slot + 1,
            round,
        };
    }

    #[cold]
    fn insert_moved(&mut self, id: u64, slot: u32) {
        self.moved.insert(id, slot);
        self.moved_max = self.moved_max.max(id);
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: u64) {
        match self.find(id) {
            Some((home, _)) => self.places[home] = EMPTY,
            None => self.remove_moved(id),
        }
    }

    #[cold]
    fn remove_moved(&mut self, id: u64) {
        self.moved.remove(id);
    }

    /// Every id and its slot: those of the window by place, then those of the table, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let taken = self.taken().map(|(at, place)| {
            let id = u64::from(place.round) << self.bits | at as u64;
            (id, place.slot - 1)
        });
        taken.chain(self.moved.iter())
    }

    fn taken(&self) -> impl Iterator<Item = (usize, &Place)> + '_ {
        let places = self.places.iter().enumerate();
        places.filter(|(_, place)| place.slot != 0)
    }
}

/// Each order in the window or the table as it was: what is loaded goes on like what was saved.
impl Persist for OrderWindow {
    fn save(&self, out: &mut Bytes) {
        // How many is known in the end: looking at all places twice takes twice as long.
        let start = out.len();
        let mut count = 0_u64;
        count.save(out);
        for (at, place) in self.taken() {
            (at as u64, place.slot, place.round).save(out);
            count += 1;
        }
        out[start..start + size_of::<u64>()].copy_from_slice(&count.to_le_bytes());
        self.moved_max.save(out);
        self.moved.save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.places.fill(EMPTY);
        for _ in 0..u64::read(from)? {
            let (at, slot, round) = <(usize, u32, u32)>::read(from)?;
            let place = self.places.get_mut(at).ok_or(Damaged)?;
            if slot == 0 || place.slot != 0 {
                return Err(Damaged);
            }
            *place = Place { slot, round };
        }
        self.moved_max.load(from)?;
        self.moved.load(from)
    }
}

#[derive(Clone, Copy)]
struct Entry {
    /// 0 is an empty place: order ids start at 1.
    id: u64,
    slot: u32,
}

/// The table alone.
pub(crate) struct OrderIndex {
    entries: Vec<Entry>,
    len: usize,
    shift: u32,
}

impl OrderIndex {
    /// Room for `capacity` ids at a load of at most one half.
    pub(crate) fn new(capacity: usize) -> OrderIndex {
        let places = (capacity.max(8) * 2).next_power_of_two();
        OrderIndex {
            entries: vec![Entry { id: 0, slot: 0 }; places],
            len: 0,
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
        self.len += 1;
    }

    /// Every id and its slot, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.taken().map(|(_, entry)| (entry.id, entry.slot))
    }

    /// Looks no further than the last.
    fn taken(&self) -> impl Iterator<Item = (usize, &Entry)> + '_ {
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, entry)| entry.id != 0).take(self.len)
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
        self.len -= 1;
    }
}

/// Each entry with its place, so that a table that was loaded is the one that was saved.
impl Persist for OrderIndex {
    fn save(&self, out: &mut Bytes) {
        (self.len as u64).save(out);
        self.taken()
            .for_each(|(at, entry)| (at as u32, entry.id, entry.slot).save(out));
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.entries.fill(Entry { id: 0, slot: 0 });
        self.len = 0;
        for _ in 0..u64::read(from)? {
            let (at, id, slot) = <(u32, u64, u32)>::read(from)?;
            let entry = self.entries.get_mut(at as usize).ok_or(Damaged)?;
            if id == 0 || entry.id != 0 {
                return Err(Damaged);
            }
            *entry = Entry { id, slot };
            self.len += 1;
        }
        // A search ends at an empty place.
        match self.len * 2 <= self.entries.len() {
            true => Ok(()),
            false => Err(Damaged),
        }
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

    /// Ids that ascend, with holes of every size, and orders that stand for many rounds of the window.
    #[test]
    fn a_window_agrees_with_a_map_whatever_stands_for_long() {
        let mut rng = Rng::new(8);
        let mut index = OrderWindow::new(64);
        let mut map = BTreeMap::new();
        let mut last = 0;
        for step in 0..200_000 {
            if map.len() < 64 && rng.below(2) == 0 {
                last += match rng.below(100) {
                    0 => 1 << rng.below(45),
                    1..10 => 1 + rng.below(200),
                    _ => 1,
                };
                index.insert(last, step);
                map.insert(last, step);
            } else if map.len() > 40 {
                // The oldest, the newest, or any.
                let nth = match rng.below(4) {
                    0 => 0,
                    1 => map.len() - 1,
                    _ => rng.below(map.len() as u64) as usize,
                };
                let id = *map.keys().nth(nth).unwrap();
                index.remove(id);
                map.remove(&id);
            }
            let bits = rng.below(60);
            let below = rng.below(1 << bits);
            let aliased = last ^ 1 << rng.below(64);
            for probe in [0, last, last.saturating_sub(below), aliased] {
                assert_eq!(index.get(probe), map.get(&probe).copied(), "step {step}");
            }
            if step % 1000 == 0 {
                let mut bytes = Bytes::new();
                index.save(&mut bytes);
                let mut again = OrderWindow::new(64);
                let mut reader = StateReader::new(&bytes);
                again.load(&mut reader).expect("whole");
                assert!(reader.is_empty() && again.iter().eq(index.iter()));
                let all: BTreeMap<u64, u32> = again.iter().collect();
                assert_eq!(all, map, "step {step}");
                index = again;
            }
        }
        assert!(index.moved_max > 0 && last > 1 << 40);
    }
}
