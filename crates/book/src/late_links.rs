//! Links of the queues that are known and not written yet.
//!
//! An order that comes or leaves says to its neighbours who stands beside them now. Nothing of them is read,
//! but their cache lines are seldom near: a store that misses holds up all stores behind it. So a link's line
//! is asked for when the link is made, and the link is written some links later, when the line has come. Who
//! reads a slot's links asks here first.

use crate::order_index::Slot;
use crate::prefetch;

/// How many links wait: those of about five messages.
const LATE: usize = 8;
/// Slots of the same lower bits share a mark.
const MARKS: usize = 512;

/// What is to be written into one of a slot's links.
#[derive(Clone, Copy)]
struct Link {
    slot: u32,
    which: u8,
    value: u32,
}

/// The last few links, round robin. As many wait always: in the beginning those of a slot that is no order's.
pub(crate) struct LateLinks {
    links: [Link; LATE],
    turn: usize,
    /// By slot, how many of its links and of others with these lower bits wait.
    marks: [u8; MARKS],
    nobody: u32,
}

impl LateLinks {
    /// `nobody`: the slot that is no order's and may be written to.
    pub(crate) fn new(nobody: u32) -> LateLinks {
        let mut this = LateLinks {
            links: [Link {
                slot: nobody,
                which: 0,
                value: 0,
            }; LATE],
            turn: 0,
            marks: [0; MARKS],
            nobody,
        };
        this.forget();
        this
    }

    /// What waits is not written any more.
    pub(crate) fn forget(&mut self) {
        self.links.fill(Link {
            slot: self.nobody,
            which: 0,
            value: 0,
        });
        self.marks = [0; MARKS];
        self.marks[self.nobody as usize % MARKS] = LATE as u8;
    }

    /// The slot that is no order's.
    #[inline(always)]
    pub(crate) fn nobody(&self) -> u32 {
        self.nobody
    }

    /// A slot's link gets this value; the one that has waited longest is written.
    #[inline(always)]
    pub(crate) fn put(&mut self, slots: &mut [Slot], slot: u32, which: usize, value: u32) {
        prefetch::fetch_near(slots, slot as usize);
        let link = Link {
            slot,
            which: which as u8,
            value,
        };
        self.marks[slot as usize % MARKS] += 1;
        let due = core::mem::replace(&mut self.links[self.turn % LATE], link);
        self.turn = self.turn.wrapping_add(1);
        self.marks[due.slot as usize % MARKS] -= 1;
        slots[due.slot as usize].links[due.which as usize & 1] = due.value;
    }

    /// Whether links of a slot may wait.
    #[inline(always)]
    pub(crate) fn may_hold(&self, slot: u32) -> bool {
        self.marks[slot as usize % MARKS] != 0
    }

    /// Those that wait, in the order in which they are to be written.
    fn waiting(&self) -> impl Iterator<Item = &Link> {
        let (newer, older) = self.links.split_at(self.turn % LATE);
        older.iter().chain(newer)
    }

    /// Writes all that wait.
    #[cold]
    pub(crate) fn settle(&mut self, slots: &mut [Slot]) {
        self.waiting()
            .for_each(|due| slots[due.slot as usize].links[due.which as usize & 1] = due.value);
        self.forget();
    }

    /// A slot's links as they are when all is written.
    pub(crate) fn read(&self, slots: &[Slot], slot: u32) -> [u32; 2] {
        let mut links = slots[slot as usize].links;
        if self.may_hold(slot) {
            self.waiting()
                .filter(|due| due.slot == slot)
                .for_each(|due| links[due.which as usize & 1] = due.value);
        }
        links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order_index::Slot;
    use alloc::vec;
    use tickwire_market::{OrderId, Side};

    #[test]
    fn links_read_as_if_each_had_been_written_at_once() {
        const SLOTS: usize = 1_500;
        let mut slots = vec![Slot::new(OrderId(0), 0, Side::Bid, 0, 1); SLOTS + 1];
        let mut late = LateLinks::new(SLOTS as u32);
        let mut expected = vec![slots[0].links; SLOTS];
        let mut seed = 5u64;
        for n in 0..20_000u32 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // Near ones, and such as share a mark.
            let slot = (seed >> 33) % 6 + (seed >> 40) % 3 * MARKS as u64;
            let which = (seed >> 50) as usize % 2;
            late.put(&mut slots, slot as u32, which, n);
            expected[slot as usize][which] = n;
            for (at, links) in expected.iter().enumerate().filter(|(at, _)| at % MARKS < 6) {
                assert_eq!(late.read(&slots, at as u32), *links);
                assert!(late.may_hold(at as u32) || slots[at].links == *links);
            }
            if n % 97 == 0 {
                late.settle(&mut slots);
                assert!((0..SLOTS).all(|at| at % MARKS == SLOTS % MARKS || !late.may_hold(at as u32)));
                assert!(
                    slots
                        .iter()
                        .zip(&expected)
                        .all(|(slot, links)| slot.links == *links)
                );
            }
        }
        late.put(&mut slots, 0, 0, 7);
        late.forget();
        assert_ne!(late.read(&slots, 0)[0], 7);
    }
}
