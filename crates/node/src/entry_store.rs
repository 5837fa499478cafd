//! Where an order entry session has its numbers, in memory or beyond the process.

use tickwire_fix::{MemoryStore, NotKept, Store, StoreFailed};
use tickwire_market::Nanos;

/// Where an order entry session has its numbers.
pub enum EntryStore {
    /// In memory: they end with the process.
    Memory(MemoryStore),
    /// Wherever else: in a file, most often.
    Lasting(Lasting),
}

/// A store that outlives the process, whose peer is asked again for what was taken and is written nowhere.
/// The store keeps how far the peer had come: a process that ends before it has heard that again is followed
/// by one that still knows.
pub struct Lasting {
    store: Box<dyn Store + Send>,
    /// Below it while the peer says again what it had said.
    next_in: u64,
}

impl EntryStore {
    /// A store that outlives the process; everything of the peer up to the number `heard` is written.
    pub fn lasting(store: Box<dyn Store + Send>, heard: u64) -> EntryStore {
        let next_in = store.next_in().min(heard + 1);
        EntryStore::Lasting(Lasting { store, next_in })
    }
}

impl Store for EntryStore {
    #[inline]
    fn next_out(&self) -> u64 {
        match self {
            EntryStore::Memory(store) => store.next_out(),
            EntryStore::Lasting(lasting) => lasting.store.next_out(),
        }
    }

    #[inline]
    fn next_in(&self) -> u64 {
        match self {
            EntryStore::Memory(store) => store.next_in(),
            EntryStore::Lasting(lasting) => lasting.next_in,
        }
    }

    fn reached(&self) -> u64 {
        match self {
            EntryStore::Memory(store) => store.reached(),
            EntryStore::Lasting(lasting) => lasting.store.reached().max(lasting.next_in),
        }
    }

    #[inline]
    fn set_next_out(&mut self, seq: u64) {
        match self {
            EntryStore::Memory(store) => store.set_next_out(seq),
            EntryStore::Lasting(lasting) => lasting.store.set_next_out(seq),
        }
    }

    #[inline]
    fn set_next_in(&mut self, seq: u64) {
        match self {
            EntryStore::Memory(store) => store.set_next_in(seq),
            EntryStore::Lasting(lasting) => {
                lasting.next_in = seq;
                if seq > lasting.store.next_in() {
                    lasting.store.set_next_in(seq);
                }
            }
        }
    }

    fn append(&mut self, seq: u64, message: &[u8]) -> Result<(), StoreFailed> {
        match self {
            EntryStore::Memory(store) => store.append(seq, message),
            EntryStore::Lasting(lasting) => lasting.store.append(seq, message),
        }
    }

    fn get(&mut self, seq: u64) -> Option<&[u8]> {
        match self {
            EntryStore::Memory(store) => store.get(seq),
            EntryStore::Lasting(lasting) => lasting.store.get(seq),
        }
    }

    fn next_kept(&mut self, from: u64) -> Option<u64> {
        match self {
            EntryStore::Memory(store) => store.next_kept(from),
            EntryStore::Lasting(lasting) => lasting.store.next_kept(from),
        }
    }

    fn not_kept(&self, from: u64, to: u64) -> Option<NotKept> {
        match self {
            EntryStore::Memory(store) => store.not_kept(from, to),
            EntryStore::Lasting(lasting) => lasting.store.not_kept(from, to),
        }
    }

    #[inline]
    fn settle(&mut self) -> Result<(), StoreFailed> {
        match self {
            EntryStore::Memory(store) => store.settle(),
            EntryStore::Lasting(lasting) => lasting.store.settle(),
        }
    }

    fn reset(&mut self) {
        match self {
            EntryStore::Memory(store) => store.reset(),
            EntryStore::Lasting(lasting) => {
                lasting.store.reset();
                lasting.next_in = lasting.store.next_in();
            }
        }
    }

    fn period(&self) -> Nanos {
        match self {
            EntryStore::Memory(store) => store.period(),
            EntryStore::Lasting(lasting) => lasting.store.period(),
        }
    }

    fn set_period(&mut self, start: Nanos) {
        match self {
            EntryStore::Memory(store) => store.set_period(start),
            EntryStore::Lasting(lasting) => lasting.store.set_period(start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_again_leaves_how_far_the_peer_had_come() {
        let mut before = MemoryStore::new(8, 1 << 10);
        before.set_next_in(130);
        let mut store = EntryStore::lasting(Box::new(before), 100);
        assert_eq!((store.next_in(), store.reached()), (101, 130));
        // It has heard a part of it when its process ends.
        store.set_next_in(120);
        assert_eq!((store.next_in(), store.reached()), (120, 130));
        let EntryStore::Lasting(Lasting { store: kept, .. }) = store else {
            panic!("it was made lasting");
        };
        assert_eq!(kept.next_in(), 130, "the next process knows");
        let mut store = EntryStore::lasting(kept, 100);
        assert_eq!((store.next_in(), store.reached()), (101, 130));
        store.set_next_in(131);
        assert_eq!((store.next_in(), store.reached()), (131, 131));
        store.reset();
        assert_eq!((store.next_in(), store.reached()), (1, 1));
    }
}
