//! Price levels: of each ladder an array of keys in ascending order, and of each level the queue of its
//! orders.
//!
//! ```text
//!  head:   best key, its queue, how many levels              four to a cache line: a book
//!  ladder: [key, queue] ... [best key, queue]                 searched for a price behind the best only
//!  queue:  volume, orders, first and last order               two to a cache line
//! ```
//! A queue stays where it is while its level is in the book, so that an order names it by its number: one
//! that leaves searches the ladder only if its level becomes empty.

use alloc::vec::Vec;

use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader, persist};

use super::NIL;

/// What is asked of a ladder most.
#[derive(Clone, Copy)]
struct Head {
    /// Of the best level; `i64::MIN`, which no price has, of an empty ladder.
    key: i64,
    queue: u32,
    levels: u32,
}

const EMPTY: Head = Head {
    key: i64::MIN,
    queue: NIL,
    levels: 0,
};

/// A price level's place in its ladder.
#[derive(Clone, Copy)]
pub(super) struct Rung {
    pub(super) key: i64,
    pub(super) queue: u32,
}

/// The orders of a price level.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Queue {
    key: i64,
    pub(super) volume: u64,
    /// Of one that is no level's: the next such.
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) orders: u32,
    /// How many of them may have a reserve.
    pub(super) icebergs: u32,
}

const _: () = assert!(size_of::<Head>() == 16 && size_of::<Rung>() == 16 && size_of::<Queue>() == 32);

/// All ladders.
pub(super) struct Ladders {
    heads: Vec<Head>,
    rungs: Vec<Vec<Rung>>,
    /// Of all ladders; those that are no level's are a list from `free` on.
    queues: Vec<Queue>,
    free: u32,
}

impl Ladders {
    /// Empty ladders with room for so many levels each.
    pub(super) fn new(levels: impl Iterator<Item = usize> + Clone) -> Ladders {
        let rungs: Vec<Vec<Rung>> = levels.clone().map(Vec::with_capacity).collect();
        Ladders {
            heads: alloc::vec![EMPTY; rungs.len()],
            rungs,
            queues: Vec::with_capacity(levels.sum()),
            free: NIL,
        }
    }

    /// Levels in ascending order of their keys: the best is the last.
    #[inline]
    pub(super) fn of(&self, ladder: usize) -> &[Rung] {
        &self.rungs[ladder]
    }

    /// How many levels.
    #[inline]
    pub(super) fn depth(&self, ladder: usize) -> usize {
        self.heads[ladder].levels as usize
    }

    /// The key of the best level; `i64::MIN`, which no price has, if there is none.
    #[inline]
    pub(super) fn best(&self, ladder: usize) -> i64 {
        self.heads[ladder].key
    }

    /// The orders of the best level.
    #[inline]
    pub(super) fn best_queue(&self, ladder: usize) -> Option<&Queue> {
        self.queues.get(self.heads[ladder].queue as usize)
    }

    /// The first order of the best level.
    #[inline]
    pub(super) fn first(&self, ladder: usize) -> Option<u32> {
        self.best_queue(ladder).map(|queue| queue.head)
    }

    #[inline]
    pub(super) fn queue_of(&self, rung: &Rung) -> &Queue {
        &self.queues[rung.queue as usize]
    }

    #[inline]
    pub(super) fn queue_mut(&mut self, queue: u32) -> &mut Queue {
        &mut self.queues[queue as usize]
    }

    /// Whether there is such a level.
    pub(super) fn has(&self, ladder: usize, key: i64) -> bool {
        key == self.heads[ladder].key || find(&self.rungs[ladder], key).is_ok()
    }

    /// The queue of a level, which is made when missing.
    #[inline]
    pub(super) fn level(&mut self, ladder: usize, key: i64) -> u32 {
        let head = self.heads[ladder];
        if key == head.key {
            return head.queue;
        }
        let at = match key > head.key {
            true => head.levels as usize,
            false => match find(&self.rungs[ladder], key) {
                Ok(at) => return self.rungs[ladder][at].queue,
                Err(at) => at,
            },
        };
        self.insert(ladder, at, key)
    }

    fn insert(&mut self, ladder: usize, at: usize, key: i64) -> u32 {
        let new = Queue {
            key,
            volume: 0,
            head: NIL,
            tail: NIL,
            orders: 0,
            icebergs: 0,
        };
        let queue = match self.free {
            NIL => {
                self.queues.push(new);
                self.queues.len() as u32 - 1
            }
            free => {
                let vacant = core::mem::replace(&mut self.queues[free as usize], new);
                self.free = vacant.head;
                free
            }
        };
        self.rungs[ladder].insert(at, Rung { key, queue });
        self.tell_head(ladder);
        queue
    }

    /// A level has no order any more.
    pub(super) fn remove(&mut self, ladder: usize, queue: u32) {
        let emptied = &mut self.queues[queue as usize];
        let at = find(&self.rungs[ladder], emptied.key);
        self.rungs[ladder].remove(at.expect("a resting order has its level"));
        emptied.head = self.free;
        self.free = queue;
        self.tell_head(ladder);
    }

    fn tell_head(&mut self, ladder: usize) {
        let rungs = &self.rungs[ladder];
        self.heads[ladder] = rungs.last().map_or(EMPTY, |best| Head {
            key: best.key,
            queue: best.queue,
            levels: rungs.len() as u32,
        });
    }

    /// All queues in use right after loading: their numbers, and what they are.
    pub(super) fn loaded(&self) -> impl Iterator<Item = (u32, &Queue)> + '_ {
        (0..).zip(&self.queues)
    }
}

/// Where `key` is (`Ok`) or belongs (`Err`). Looks at the best few first: most changes are there.
#[inline]
fn find(rungs: &[Rung], key: i64) -> Result<usize, usize> {
    /// They are counted without a branch on any of them: where an order stands is not predictable.
    const NEAR: usize = 4;
    let Some((rest, near)) = rungs.split_last_chunk::<NEAR>() else {
        return rungs.binary_search_by_key(&key, |rung| rung.key);
    };
    let better = near.iter().map(|rung| usize::from(rung.key > key)).sum::<usize>();
    if better == NEAR {
        return rest.binary_search_by_key(&key, |rung| rung.key);
    }
    let at = NEAR - 1 - better;
    match near[at].key == key {
        true => Ok(rest.len() + at),
        false => Err(rest.len() + at + 1),
    }
}

persist!(value struct Queue { key, volume, head, tail, orders, icebergs });

/// Ladder by ladder the queues. Loaded, they have numbers in this order.
impl Persist for Ladders {
    fn save(&self, out: &mut Bytes) {
        (self.rungs.len() as u64).save(out);
        for rungs in &self.rungs {
            (rungs.len() as u64).save(out);
            rungs.iter().for_each(|rung| self.queue_of(rung).save(out));
        }
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        if u64::read(from)? != self.rungs.len() as u64 {
            return Err(Damaged);
        }
        self.queues.clear();
        self.free = NIL;
        for ladder in 0..self.rungs.len() {
            let rungs = &mut self.rungs[ladder];
            rungs.clear();
            for _ in 0..from.length()? {
                let queue = Queue::read(from)?;
                rungs.push(Rung {
                    key: queue.key,
                    queue: self.queues.len() as u32,
                });
                self.queues.push(queue);
            }
            if !rungs.is_sorted_by(|a, b| a.key < b.key) {
                return Err(Damaged);
            }
            self.tell_head(ladder);
        }
        Ok(())
    }
}
