//! The levels behind the windows: for every side of every book an array sorted by price with the best at the
//! end, in blocks of one preallocated pool.
//!
//! A block that is full moves to one of twice the size, one that is an eighth full to one of half the size;
//! blocks are split and merged in the buddy manner.

use super::{Book, BookSide, LevelPool, NO_QUEUE, Queue, Rung, join};
use crate::books::BookError;
use crate::buddies::CLASSES;
use crate::changes::ChangeKind;
use core::ops::Range;

/// Levels of the smallest block: 128 bytes. The largest is 4,096 times that: 32,768 levels of one side.
pub(super) const BLOCK: usize = 8;
/// How many levels next to the window are counted before the rest is bisected.
const WALK: usize = 16;

/// The block that a side's levels behind the window are in.
#[derive(Clone, Copy, Default)]
pub(super) struct Block {
    base: u32,
    /// 0: no block yet; else class + 1.
    size: u8,
}

impl Block {
    /// Levels it holds: 0, 8, 16, ...
    fn capacity(self) -> usize {
        ((BLOCK << self.size) >> 1) & !(BLOCK - 1)
    }
}

impl LevelPool {
    fn block(&self, on: BookSide) -> Block {
        self.blocks[on.book][on.side as usize]
    }

    /// Where the levels behind the window are.
    #[inline]
    pub(super) fn range(&self, at: &Book, on: BookSide) -> Range<usize> {
        let base = self.blocks[on.book][on.side as usize].base as usize;
        base..base + at.behind[on.side as usize] as usize
    }

    /// Where the queue of such a level is.
    pub(super) fn queue_behind(&self, position: usize) -> usize {
        self.places.as_flattened().as_flattened().len() + position
    }

    /// How many levels are better than such a one.
    pub(super) fn rank_behind(&self, at: &Book, on: BookSide, position: usize) -> usize {
        let before = at.len(on.side) - at.behind[on.side as usize] as usize;
        before + self.range(at, on).end - 1 - position
    }

    /// Where the level with this key is (`Ok`) or belongs (`Err`).
    pub(super) fn find_behind(&self, at: &Book, on: BookSide, key: i64) -> Result<usize, usize> {
        let range = self.range(at, on);
        match walk(&self.rungs[range.clone()], key) {
            Ok(found) => Ok(range.start + found),
            Err(found) => Err(range.start + found),
        }
    }

    /// [`LevelPool::add`] behind the window: where the level's queue is.
    #[inline(never)]
    pub(super) fn add_behind(
        &mut self,
        at: &mut Book,
        on: BookSide,
        key: i64,
        added: u64,
    ) -> Result<usize, BookError> {
        let position = match self.find_behind(at, on, key) {
            Ok(position) => {
                join(&mut self.rungs[position].sums, added)?;
                self.note_behind(ChangeKind::Changed, at, on, position);
                position
            }
            Err(position) => self.insert_behind(at, on, position, Rung { key, sums: added })?,
        };
        Ok(self.queue_behind(position))
    }

    /// [`LevelPool::take`] behind the window.
    #[inline(never)]
    pub(super) fn take_behind(&mut self, at: &mut Book, on: BookSide, key: i64, taken: u64) {
        if let Ok(position) = self.find_behind(at, on, key) {
            self.rungs[position].sums -= taken;
            if self.rungs[position].orders() == 0 {
                self.remove_behind(at, on, position);
            } else {
                self.note_behind(ChangeKind::Changed, at, on, position);
            }
        }
    }

    /// [`LevelPool::set`] behind the window.
    #[inline(never)]
    pub(super) fn set_behind(
        &mut self,
        at: &mut Book,
        on: BookSide,
        rung: Rung,
    ) -> Result<(u64, u32), BookError> {
        let position = match self.find_behind(at, on, rung.key) {
            Ok(position) => position,
            Err(_) if rung.qty() == 0 => return Err(BookError::UnknownLevel),
            Err(position) => {
                self.insert_behind(at, on, position, rung)?;
                return Ok((0, 0));
            }
        };
        let old = self.rungs[position];
        if rung.qty() == 0 {
            self.remove_behind(at, on, position);
        } else {
            self.rungs[position] = rung;
            self.note_behind(ChangeKind::Changed, at, on, position);
        }
        Ok((old.qty(), old.orders()))
    }

    fn insert_behind(
        &mut self,
        at: &mut Book,
        on: BookSide,
        position: usize,
        rung: Rung,
    ) -> Result<usize, BookError> {
        let from_base = position - self.range(at, on).start;
        self.reserve_behind(at, on, 1)?;
        let range = self.range(at, on);
        let position = range.start + from_base;
        self.move_behind(position..range.end, position + 1);
        self.rungs[position] = rung;
        let queue = self.queue_behind(position);
        self.set_queue(queue, NO_QUEUE);
        at.behind[on.side as usize] += 1;
        at.len[on.side as usize] += 1;
        self.note_behind(ChangeKind::Inserted, at, on, position);
        Ok(position)
    }

    fn remove_behind(&mut self, at: &mut Book, on: BookSide, position: usize) {
        self.rungs[position].sums = 0;
        self.note_behind(ChangeKind::Removed, at, on, position);
        let end = self.range(at, on).end;
        self.move_behind(position + 1..end, position);
        at.behind[on.side as usize] -= 1;
        at.len[on.side as usize] -= 1;
        self.shrink_behind(at, on);
    }

    /// A level that is better than all that are behind the window comes there; there is room for it.
    pub(super) fn push_behind(&mut self, at: &mut Book, on: BookSide, rung: Rung, queue: Queue) {
        let end = self.range(at, on).end;
        self.rungs[end] = rung;
        let place = self.queue_behind(end);
        self.set_queue(place, queue);
        at.behind[on.side as usize] += 1;
    }

    /// Takes away the best level behind the window.
    pub(super) fn pop_behind(&mut self, at: &mut Book, on: BookSide) -> Option<(Rung, Queue)> {
        let range = self.range(at, on);
        let rung = *self.rungs[range.clone()].last()?;
        at.behind[on.side as usize] -= 1;
        Some((rung, self.queue(self.queue_behind(range.end - 1))))
    }

    fn note_behind(&mut self, kind: ChangeKind, at: &Book, on: BookSide, position: usize) {
        let (rank, rung) = (self.rank_behind(at, on, position), self.rungs[position]);
        self.log.note(kind, on.side, || (rank, rung));
    }

    /// Moves levels and their queues.
    fn move_behind(&mut self, from: Range<usize>, to: usize) {
        self.rungs.copy_within(from.clone(), to);
        if !self.queues.is_empty() {
            let queue = |position| self.queue_behind(position);
            let (from, to) = (queue(from.start)..queue(from.end), queue(to));
            self.queues.copy_within(from, to);
        }
    }

    /// A queue; that of nobody where queues are not kept.
    pub(super) fn queue(&self, place: usize) -> Queue {
        self.queues.get(place).copied().unwrap_or(NO_QUEUE)
    }

    pub(super) fn set_queue(&mut self, place: usize, queue: Queue) {
        if let Some(at) = self.queues.get_mut(place) {
            *at = queue;
        }
    }

    /// Makes room for so many more levels. What is there is as before when there is none.
    pub(super) fn reserve_behind(&mut self, at: &Book, on: BookSide, more: usize) -> Result<(), BookError> {
        let len = at.behind[on.side as usize] as usize + more;
        while len > self.block(on).capacity() {
            self.resize(at, on, self.block(on).size + 1)?;
        }
        Ok(())
    }

    /// Moves to a smaller block what has become too little for its own.
    pub(super) fn shrink_behind(&mut self, at: &Book, on: BookSide) {
        let len = at.behind[on.side as usize] as usize;
        while len * 8 < self.block(on).capacity() && self.block(on).size > 1 {
            // A smaller block may be missing only if the pool is exhausted: then the levels stay where they
            // are.
            if self.resize(at, on, self.block(on).size - 1).is_err() {
                return;
            }
        }
    }

    /// Moves the levels behind a window to a block of another size.
    #[cold]
    fn resize(&mut self, at: &Book, on: BookSide, size: u8) -> Result<(), BookError> {
        if size as usize > CLASSES {
            return Err(BookError::Full);
        }
        let block = self.free.take(size as usize - 1).ok_or(BookError::Full)?;
        let base = block as usize * BLOCK;
        self.move_behind(self.range(at, on), base);
        self.give_back(on);
        self.blocks[on.book][on.side as usize] = Block {
            base: base as u32,
            size,
        };
        Ok(())
    }

    /// Gives a side's block back.
    pub(super) fn give_back(&mut self, on: BookSide) {
        let block = core::mem::take(&mut self.blocks[on.book][on.side as usize]);
        if block.size > 0 {
            self.free.give(block.base / BLOCK as u32, block.size as usize - 1);
        }
    }
}

/// Where the key is among levels in ascending key order (`Ok`) or belongs (`Err`), looking at the
/// nearest to the end first.
#[inline(always)]
fn walk(rungs: &[Rung], key: i64) -> Result<usize, usize> {
    let (far, near) = rungs.split_at(rungs.len().saturating_sub(WALK));
    // All are counted: a branch on each would be one that nobody can predict.
    let better = near.iter().map(|rung| (rung.key > key) as usize).sum::<usize>();
    if better == WALK {
        return bisect(far, key);
    }
    match rungs[..rungs.len() - better].last() {
        Some(rung) if rung.key == key => Ok(rungs.len() - better - 1),
        _ => Err(rungs.len() - better),
    }
}

/// The same by halving.
#[cold]
fn bisect(rungs: &[Rung], key: i64) -> Result<usize, usize> {
    rungs.binary_search_by(|rung| rung.key.cmp(&key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_key_is_found_or_belongs_where_halving_says() {
        for len in 0..3 * WALK as i64 {
            let rungs: Vec<Rung> = (0..len).map(|i| Rung { key: 2 * i, sums: 1 }).collect();
            for key in -1..=2 * len {
                assert_eq!(walk(&rungs, key), bisect(&rungs, key), "{key} among {len}");
            }
        }
    }
}
