//! Timers: which order's life is over. A hierarchical timing wheel (Varghese and Lauck, 1987): three rings of
//! 1,024 slots with ticks of 131 µs, 134 ms and 137 s. Entries and removals cost a cache miss or two however
//! many there are; a binary heap of some hundred thousand lives took half of the generator's time.

use alloc::vec;
use alloc::vec::Vec;

use tickwire_persist::persist;

const TICK_BITS: u32 = 17;
const SLOT_BITS: u32 = 10;
const SLOTS: u64 = 1 << SLOT_BITS;
const LEVELS: usize = 3;
const NIL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    tick: u64,
    id: u64,
    next: u32,
}

/// Identifiers with a time each, given back a tick (131 µs) late at most, in the order of ticks.
pub(crate) struct Wheel {
    nodes: Vec<Node>,
    capacity: usize,
    free: u32,
    /// Heads of lists, level by level.
    slots: Vec<u32>,
    /// Entries of ticks below `current`.
    ready: u32,
    current: u64,
    len: usize,
}

impl Wheel {
    pub(crate) fn new(capacity: usize) -> Wheel {
        Wheel {
            nodes: Vec::with_capacity(capacity),
            capacity,
            free: NIL,
            slots: vec![NIL; LEVELS << SLOT_BITS],
            ready: NIL,
            current: 0,
            len: 0,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    /// Room must have been checked with [`Wheel::is_full`].
    pub(crate) fn push(&mut self, now: u64, due: u64, id: u64) {
        debug_assert!(!self.is_full());
        if self.len == 0 {
            // Nothing to keep in order: start from here instead of turning through an empty past.
            self.current = self.current.max(now >> TICK_BITS);
        }
        let node = Node {
            tick: due >> TICK_BITS,
            id,
            next: NIL,
        };
        let at = match self.free {
            NIL => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
            at => {
                self.free = self.nodes[at as usize].next;
                self.nodes[at as usize] = node;
                at
            }
        };
        self.len += 1;
        self.place(at);
    }

    /// One entry whose time has passed; with `early` the first one there is, whatever its time.
    pub(crate) fn pop(&mut self, now: u64, early: bool) -> Option<u64> {
        while self.ready == NIL {
            if self.len == 0 || (self.current >= now >> TICK_BITS && !early) {
                return None;
            }
            self.turn();
        }
        let at = self.ready;
        let Node { id, next, .. } = self.nodes[at as usize];
        self.ready = next;
        self.nodes[at as usize].next = self.free;
        self.free = at;
        self.len -= 1;
        Some(id)
    }

    /// Moves on by a tick: what was in its slot is ready.
    fn turn(&mut self) {
        let slot = (self.current % SLOTS) as usize;
        self.ready = core::mem::replace(&mut self.slots[slot], NIL);
        self.current += 1;
        if !self.current.is_multiple_of(SLOTS) {
            return; // no slot of a coarser ring begins here
        }
        for level in (1..LEVELS).rev() {
            let unit = self.current >> (SLOT_BITS * level as u32);
            if unit << (SLOT_BITS * level as u32) == self.current {
                let slot = (level << SLOT_BITS) + (unit % SLOTS) as usize;
                let mut at = core::mem::replace(&mut self.slots[slot], NIL);
                while at != NIL {
                    let next = self.nodes[at as usize].next;
                    self.place(at);
                    at = next;
                }
            }
        }
    }

    /// Into the finest ring that reaches that far; the coarsest takes everything beyond.
    fn place(&mut self, at: u32) {
        let farthest = self.current + (1 << (SLOT_BITS * LEVELS as u32)) - 1;
        let tick = self.nodes[at as usize].tick.clamp(self.current, farthest);
        let ahead = tick - self.current;
        let level = (0..LEVELS as u32 - 1).find(|level| ahead >> (SLOT_BITS * (level + 1)) == 0);
        let level = level.unwrap_or(LEVELS as u32 - 1);
        let slot = ((level as usize) << SLOT_BITS) + ((tick >> (SLOT_BITS * level)) % SLOTS) as usize;
        self.nodes[at as usize].next = self.slots[slot];
        self.slots[slot] = at;
    }
}

persist!(value struct Node { tick, id, next });
persist!(struct Wheel { nodes, free, slots, ready, current, len } not { capacity });

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;
    use tickwire_testdata::Rng;

    #[test]
    fn gives_back_what_is_due_and_nothing_else_in_the_order_of_ticks() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut wheel = Wheel::new(1_000);
            let mut set = BTreeSet::new();
            let mut now = rng.below(1 << 50);
            for id in 0..30_000 {
                if !wheel.is_full() && rng.chance(2, 3) {
                    let bits = 10 + rng.below(32);
                    let ahead = rng.below(1 << bits);
                    wheel.push(now, now + ahead, id);
                    set.insert(((now + ahead) >> TICK_BITS, id));
                }
                let bits = rng.below(33);
                now += rng.below(1 << bits);
                while let Some(id) = wheel.pop(now, false) {
                    let first = *set.first().expect("something is due");
                    assert!(
                        set.remove(&(first.0, id)),
                        "seed {seed}: {id} is of the first tick"
                    );
                }
                assert!(
                    set.first().is_none_or(|(tick, _)| *tick >= now >> TICK_BITS),
                    "seed {seed}"
                );
            }
        }
    }

    #[test]
    fn gives_the_first_ones_early_when_asked() {
        let mut wheel = Wheel::new(3);
        let second = 1_000_000_000;
        wheel.push(0, 900 * second, 3);
        wheel.push(0, 10 * second, 1);
        wheel.push(0, 200 * second, 2);
        assert!(wheel.is_full());
        assert_eq!(wheel.pop(0, false), None);
        let early: Vec<_> = core::iter::from_fn(|| wheel.pop(0, true)).collect();
        assert_eq!(early, [1, 2, 3]);
        wheel.push(0, 5 * second, 4);
        assert_eq!(wheel.pop(0, true), Some(4), "time already gone past");
    }
}
