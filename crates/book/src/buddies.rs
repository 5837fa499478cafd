//! Blocks of a preallocated pool, in sizes that double: what every ladder stands in.

use crate::order_index::NONE;
use alloc::vec;
use alloc::vec::Vec;

/// Block sizes are `1 << class` units; the largest is 4,096 of them.
pub(crate) const CLASSES: usize = 13;

/// A free or used block of the pool.
#[derive(Clone, Copy)]
struct Block {
    next: u32,
    prev: u32,
    /// Class of the free block that starts here, else [`USED`].
    free: u8,
}

const USED: u8 = u8::MAX;

/// A buddy allocator of numbered blocks: bounded, deterministic, merges what is free.
pub(crate) struct Buddies {
    blocks: Vec<Block>,
    heads: [u32; CLASSES],
    /// Blocks from here on were never handed out.
    high: u32,
}

impl Buddies {
    pub(crate) fn new(count: usize) -> Buddies {
        let mut this = Buddies {
            blocks: vec![
                Block {
                    next: NONE,
                    prev: NONE,
                    free: USED
                };
                count
            ],
            heads: [NONE; CLASSES],
            high: 0,
        };
        let top = 1 << (CLASSES - 1);
        // Last first, so that the lowest blocks are handed out first.
        for start in (0..count.div_ceil(top)).rev().map(|i| i * top) {
            this.carve(start, (count - start).min(top));
        }
        this
    }

    /// Splits `len` blocks from an aligned start into free blocks of falling size.
    fn carve(&mut self, start: usize, len: usize) {
        let mut at = start;
        for class in (0..CLASSES).rev() {
            if len & (1 << class) != 0 {
                self.push(at as u32, class);
                at += 1 << class;
            }
        }
    }

    fn push(&mut self, block: u32, class: usize) {
        let head = core::mem::replace(&mut self.heads[class], block);
        self.blocks[block as usize] = Block {
            next: head,
            prev: NONE,
            free: class as u8,
        };
        if head != NONE {
            self.blocks[head as usize].prev = block;
        }
    }

    fn unlink(&mut self, block: u32, class: usize) {
        let Block { next, prev, .. } = self.blocks[block as usize];
        match prev {
            NONE => self.heads[class] = next,
            prev => self.blocks[prev as usize].next = next,
        }
        if next != NONE {
            self.blocks[next as usize].prev = prev;
        }
        self.blocks[block as usize].free = USED;
    }

    /// A block of a class, split off a larger one if need be.
    pub(crate) fn take(&mut self, class: usize) -> Option<u32> {
        let from = (class..CLASSES).find(|&c| self.heads[c] != NONE)?;
        let block = self.heads[from];
        self.unlink(block, from);
        for half in (class..from).rev() {
            self.push(block + (1 << half), half);
        }
        self.high = self.high.max(block + (1 << class));
        Some(block)
    }

    /// Blocks that a pool has to have for the same calls to have the same answers: what was handed out, as
    /// one block or in whole blocks of the largest class.
    pub(crate) fn needed(&self) -> usize {
        let (high, top) = (self.high as usize, 1 << (CLASSES - 1));
        match high {
            0 => 0,
            1.. if high < top => high.next_power_of_two(),
            _ => high.next_multiple_of(top),
        }
    }

    /// Returns a block; with its free buddy it becomes a larger one.
    pub(crate) fn give(&mut self, block: u32, class: usize) {
        let (mut block, mut class) = (block, class);
        while class + 1 < CLASSES {
            let buddy = block ^ (1 << class);
            if self
                .blocks
                .get(buddy as usize)
                .is_none_or(|b| b.free != class as u8)
            {
                break;
            }
            self.unlink(buddy, class);
            block &= !(1 << class);
            class += 1;
        }
        self.push(block, class);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_of_what_was_needed_answers_the_same() {
        let calls = |buddies: &mut Buddies, held_max: usize, largest: usize| {
            let (mut seed, mut held, mut answers) = (11u64, Vec::new(), Vec::new());
            for _ in 0..50_000 {
                seed = seed
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let random = (seed >> 33) as usize;
                if random % 3 < 2 && held.len() < held_max {
                    let class = (random / 3 % largest).checked_ilog2().unwrap_or(0) as usize;
                    let block = buddies.take(class).expect("there is room");
                    answers.push(block);
                    held.push((block, class));
                } else if !held.is_empty() {
                    let (block, class) = held.swap_remove(random % held.len());
                    buddies.give(block, class);
                }
            }
            answers
        };
        for (held_max, largest, needed) in [(1, 1, 1), (20, 4, 64), (40, 16, 1_024), (900, 300, 4_096 * 32)] {
            let mut large = Buddies::new(1 << 20);
            let answers = calls(&mut large, held_max, largest);
            assert!(large.needed() <= needed, "{}", large.needed());
            assert!(calls(&mut Buddies::new(large.needed()), held_max, largest) == answers);
        }
        assert_eq!(Buddies::new(8).needed(), 0);
    }

    #[test]
    fn blocks_never_overlap_and_merge_back_into_the_whole() {
        let count = 4096 + 64 + 3;
        let mut buddies = Buddies::new(count);
        let mut seed = 7u64;
        let mut held: Vec<(u32, usize)> = Vec::new();
        for _ in 0..20_000 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let random = (seed >> 33) as usize;
            if random % 3 < 2 && held.len() < 600 {
                if let Some(block) = buddies.take(random / 3 % 5) {
                    held.push((block, random / 3 % 5));
                }
            } else if !held.is_empty() {
                let (block, class) = held.swap_remove(random % held.len());
                buddies.give(block, class);
            }
        }
        let mut owner = vec![false; count];
        for &(block, class) in &held {
            for owned in &mut owner[block as usize..][..1 << class] {
                assert!(
                    !core::mem::replace(owned, true),
                    "part of block {block} handed out twice"
                );
            }
        }
        for (block, class) in held {
            buddies.give(block, class);
        }
        assert!(buddies.take(CLASSES - 1).is_some());
        assert!(buddies.take(6).is_some());
        assert!(buddies.take(1).is_some() && buddies.take(0).is_some() && buddies.take(0).is_none());
    }
}
