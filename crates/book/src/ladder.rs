//! Price levels: for every side of every book an array sorted by price with the best at the end, in blocks of
//! one preallocated pool.
//!
//! Most events touch one of the best few levels, so the search walks backwards from the end and an insertion
//! or removal moves a few neighbours only. Far from the best a binary search takes over: no level costs more
//! than its logarithm to find. A block that is full moves to one of twice the size, one that is an eighth
//! full to one of half the size; blocks are split and merged in the buddy manner.

use crate::books::BookError;
use crate::buddies::{Buddies, CLASSES};
use crate::changes::{ChangeKind, ChangeLog};
use crate::order_index::{NEXT, NONE, OrderIndex, PREV, Slot};
use crate::prefetch;
use crate::touched;
use alloc::vec::Vec;
use tickwire_market::{BookState, Level, Nanos, Price, SeqNo, Side, UpdateFlags, Volume};

/// Levels of the smallest block: 128 bytes. The largest is 4,096 times that: 32,768 levels of one side.
const BLOCK: usize = 8;
/// How many levels behind the best are looked at together.
const NEAR: usize = 4;
/// How many levels behind these are counted before the rest is bisected.
const WALK: usize = 16;
/// How many levels are moved by a loop.
const SHORT: usize = 6;

/// Bits of the order count in [`Rung::sums`]; the other 44 hold the quantity.
const COUNT_BITS: u32 = 20;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
/// The most orders of a level.
pub(crate) const ORDERS_MAX: u32 = COUNT_MAX as u32;
/// The largest quantity of a level: 1.7e13.
pub(crate) const QTY_MAX: u64 = (1 << (64 - COUNT_BITS)) - 1;

/// One level, four to a cache line: its sort key, and its quantity and order count in one word, so that an
/// order comes or goes with one addition.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rung {
    pub(crate) key: i64,
    sums: u64,
}

impl Rung {
    #[inline]
    pub(crate) fn qty(self) -> u64 {
        self.sums >> COUNT_BITS
    }

    #[inline]
    pub(crate) fn orders(self) -> u32 {
        (self.sums & COUNT_MAX) as u32
    }
}

/// First and last order of a level, by slot number.
#[derive(Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
}

impl Queue {
    /// `follows` comes where there is no order before, `precedes` where there is none behind. Most levels
    /// have few orders, and where in the queue one stands is not predictable: no branch.
    #[inline(always)]
    fn set_ends(&mut self, [after, before]: [u32; 2], [follows, precedes]: [u32; 2]) {
        self.head = if before == NONE { follows } else { self.head };
        self.tail = if after == NONE { precedes } else { self.tail };
    }
}

const NO_QUEUE: Queue = Queue {
    head: NONE,
    tail: NONE,
};

/// What stands against a book alone.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Own {
    /// Nothing.
    Live,
    /// A gap: until the instrument's `Recovered`, or a clear.
    Stale,
    /// There was no room for an order or a level, which it misses from then on, whatever is recovered: until
    /// it is cleared.
    Full,
}

impl Own {
    #[inline(always)]
    pub(crate) fn state(self) -> BookState {
        match self {
            Own::Live => BookState::Live,
            Own::Stale | Own::Full => BookState::Stale,
        }
    }
}

/// A book: one cache line that holds both best levels and says where the levels behind them are. Two events
/// of five touch a best level only and then need no other line of the book.
///
/// ```text
///  0 key[bid] 8 key[ask]  16 sums[bid] 24 sums[ask]  32 base[2]  40 len[2] 44 size[2] 46 own 47 shown  48 seq 56 venue_ts
/// ```
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Book {
    /// The best levels, those of [`nothing`] where a side is empty. The last place of a ladder's block is
    /// theirs but not kept up.
    key: [i64; 2],
    sums: [u64; 2],
    base: [u32; 2],
    /// Levels, the best included.
    len: [u16; 2],
    /// 0: no block yet; else class + 1.
    size: [u8; 2],
    /// The book's own state, before that of the feed as a whole is taken into account.
    pub(crate) own: Own,
    /// The state last told.
    pub(crate) shown: BookState,
    /// Of the last event.
    pub(crate) seq: SeqNo,
    /// Of the last event.
    pub(crate) venue_ts: Nanos,
}

const _: () = assert!(core::mem::size_of::<Rung>() == 16 && core::mem::size_of::<Book>() == 64);

impl Book {
    pub(crate) fn new(shown: BookState) -> Book {
        Book {
            key: Side::BOTH.map(|side| nothing(side).key),
            sums: [0; 2],
            base: [0; 2],
            len: [0; 2],
            size: [0; 2],
            own: Own::Live,
            shown,
            seq: SeqNo(0),
            venue_ts: Nanos(0),
        }
    }

    #[inline(always)]
    fn range(&self, side: Side) -> core::ops::Range<usize> {
        let base = self.base[side as usize] as usize;
        base..base + self.len[side as usize] as usize
    }

    /// Levels its block holds: 0, 8, 16, ...
    #[inline(always)]
    fn capacity(&self, side: Side) -> usize {
        ((BLOCK << self.size[side as usize]) >> 1) & !(BLOCK - 1)
    }

    /// How many levels a side has.
    #[inline(always)]
    pub(crate) fn len(&self, side: Side) -> usize {
        self.len[side as usize] as usize
    }

    #[inline(always)]
    fn top(&self, side: Side) -> Rung {
        Rung {
            key: self.key[side as usize],
            sums: self.sums[side as usize],
        }
    }

    #[inline(always)]
    fn set_top(&mut self, side: Side, rung: Rung) {
        self.key[side as usize] = rung.key;
        self.sums[side as usize] = rung.sums;
    }

    /// Key and quantity of the best level; a quantity of 0 and the key of price 0 when the side is empty.
    #[inline(always)]
    pub(crate) fn best(&self, side: Side) -> (i64, u64) {
        (self.key[side as usize], self.top(side).qty())
    }
}

/// The levels of all books.
pub(crate) struct LevelPool {
    rungs: Vec<Rung>,
    /// Empty unless queues are kept; else one per rung.
    queues: Vec<Queue>,
    blocks: Buddies,
    /// What the event in hand did.
    pub(crate) log: ChangeLog,
}

impl LevelPool {
    /// `queues`: a level's orders are kept in a queue; `tracked`: changes are written down.
    pub(crate) fn new(levels: usize, queues: bool, tracked: bool) -> LevelPool {
        let blocks = levels.div_ceil(BLOCK);
        LevelPool {
            rungs: touched(Rung::default(), blocks * BLOCK),
            queues: touched(NO_QUEUE, if queues { blocks * BLOCK } else { 0 }),
            blocks: Buddies::new(blocks),
            log: ChangeLog::new(tracked),
        }
    }

    /// Levels that a pool has to have for the same events to find room.
    pub(crate) fn needed(&self) -> usize {
        self.blocks.needed() * BLOCK
    }

    /// Where the level with this key is (`Ok`), or where it belongs (`Err`), as an index into the pool.
    fn search(&self, at: &Book, side: Side, key: i64) -> Result<usize, usize> {
        let range = at.range(side);
        let best = at.key[side as usize];
        if key == best && !range.is_empty() {
            return Ok(range.end - 1);
        }
        if range.is_empty() || key > best {
            return Err(range.end);
        }
        self.search_behind(range.start, range.end - 1, key)
    }

    /// The same among the levels behind the best.
    #[inline(always)]
    fn search_behind(&self, start: usize, end: usize, key: i64) -> Result<usize, usize> {
        let rungs = &self.rungs[start..end];
        // The nearest few are counted without a branch on any of them: where an order stands is not
        // predictable.
        let Some((rest, nearest)) = rungs.split_last_chunk::<NEAR>() else {
            return walk(rungs, key).map(|i| start + i).map_err(|i| start + i);
        };
        let better = nearest
            .iter()
            .map(|rung| (rung.key > key) as usize)
            .sum::<usize>();
        if better == NEAR {
            return walk(rest, key).map(|i| start + i).map_err(|i| start + i);
        }
        let i = NEAR - 1 - better;
        let at = start + rest.len() + i;
        if nearest[i].key == key {
            Ok(at)
        } else {
            Err(at + 1)
        }
    }

    /// The sums of a level, wherever it is kept.
    #[inline(always)]
    fn sums<'a>(&'a mut self, at: &'a mut Book, side: Side, position: usize) -> &'a mut u64 {
        if position + 1 == at.range(side).end {
            &mut at.sums[side as usize]
        } else {
            &mut self.rungs[position].sums
        }
    }

    /// Adds one order's quantity to a level, which is made when missing: the level's position and what is
    /// different.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        at: &mut Book,
        side: Side,
        key: i64,
        qty: u32,
    ) -> Result<(usize, UpdateFlags), BookError> {
        let added = (qty as u64) << COUNT_BITS | 1;
        let best = at.top(side);
        if best.sums == 0 || key > best.key {
            return Ok((self.push(at, side, Rung { key, sums: added })?, best_price(side)));
        }
        if key == best.key {
            join(&mut at.sums[side as usize], added)?;
            self.log.note(ChangeKind::Changed, side, 0, at.top(side));
            return Ok((at.range(side).end - 1, best_qty(side)));
        }
        let range = at.range(side);
        let position = match self.search_behind(range.start, range.end - 1, key) {
            Ok(position) => {
                join(&mut self.rungs[position].sums, added)?;
                let (rank, rung) = (range.end - 1 - position, self.rungs[position]);
                self.log.note(ChangeKind::Changed, side, rank, rung);
                position
            }
            Err(position) => self.insert_behind(at, side, position, Rung { key, sums: added })?,
        };
        Ok((position, UpdateFlags::DEPTH))
    }

    /// Takes quantity from the level of a resting order, and one order from its count when the order is gone;
    /// an empty level goes too. What is different.
    #[inline(always)]
    pub(crate) fn take(&mut self, at: &mut Book, side: Side, key: i64, qty: u32, gone: bool) -> UpdateFlags {
        let range = at.range(side);
        if key == at.key[side as usize] {
            return self.take_at(at, side, range.end.wrapping_sub(1), true, qty, gone);
        }
        match self.search_behind(range.start, range.end - 1, key) {
            Ok(position) => self.take_at(at, side, position, false, qty, gone),
            Err(_) => UpdateFlags::DEPTH,
        }
    }

    /// The same of the level at this position, the best one or not.
    #[inline(always)]
    fn take_at(
        &mut self,
        at: &mut Book,
        side: Side,
        position: usize,
        is_best: bool,
        qty: u32,
        gone: bool,
    ) -> UpdateFlags {
        let taken = (qty as u64) << COUNT_BITS | gone as u64;
        let sums = match is_best {
            true => &mut at.sums[side as usize],
            false => &mut self.rungs[position].sums,
        };
        debug_assert!(
            *sums >> COUNT_BITS >= taken >> COUNT_BITS && *sums & COUNT_MAX >= taken & COUNT_MAX,
            "more leaves a level than stands there"
        );
        *sums -= taken;
        match (*sums & COUNT_MAX != 0, is_best) {
            (true, true) => {
                self.log.note(ChangeKind::Changed, side, 0, at.top(side));
                best_qty(side)
            }
            (true, false) => {
                let (rank, rung) = (at.range(side).end - 1 - position, self.rungs[position]);
                self.log.note(ChangeKind::Changed, side, rank, rung);
                UpdateFlags::DEPTH
            }
            (false, true) => {
                self.pop(at, side);
                best_price(side)
            }
            (false, false) => {
                self.remove_behind(at, side, position);
                UpdateFlags::DEPTH
            }
        }
    }

    /// Makes a level that is not there.
    fn insert(&mut self, at: &mut Book, side: Side, position: usize, rung: Rung) -> Result<usize, BookError> {
        if position == at.range(side).end {
            self.push(at, side, rung)
        } else {
            self.insert_behind(at, side, position, rung)
        }
    }

    /// Makes a level that is better than the best.
    #[inline(always)]
    fn push(&mut self, at: &mut Book, side: Side, rung: Rung) -> Result<usize, BookError> {
        if at.len(side) == at.capacity(side) {
            self.resize(at, side, at.size[side as usize] + 1)?;
        }
        let range = at.range(side);
        if !range.is_empty() {
            self.rungs[range.end - 1] = at.top(side);
        }
        debug_assert!(
            range.is_empty() || rung.key > at.key[side as usize],
            "the best is the last"
        );
        at.set_top(side, rung);
        if !self.queues.is_empty() {
            self.queues[range.end] = NO_QUEUE;
        }
        at.len[side as usize] += 1;
        self.log.note(ChangeKind::Inserted, side, 0, rung);
        Ok(range.end)
    }

    #[inline(always)]
    fn insert_behind(
        &mut self,
        at: &mut Book,
        side: Side,
        position: usize,
        rung: Rung,
    ) -> Result<usize, BookError> {
        let mut position = position;
        if at.len(side) == at.capacity(side) {
            let from_base = position - at.range(side).start;
            self.resize(at, side, at.size[side as usize] + 1)?;
            position = at.range(side).start + from_base;
        }
        let end = at.range(side).end;
        shift_up(&mut self.rungs, position, end - 1);
        self.rungs[position] = rung;
        if !self.queues.is_empty() {
            shift_up(&mut self.queues, position, end);
            self.queues[position] = NO_QUEUE;
        }
        at.len[side as usize] += 1;
        debug_assert!(self.is_in_order(at, side, position), "levels out of order");
        self.log.note(ChangeKind::Inserted, side, end - position, rung);
        Ok(position)
    }

    /// Whether a level is better than the one before it, and worse than the one behind.
    fn is_in_order(&self, at: &Book, side: Side, position: usize) -> bool {
        let range = at.range(side);
        let key = |at_: usize| match at_ + 1 == range.end {
            true => at.key[side as usize],
            false => self.rungs[at_].key,
        };
        let is_above = position == range.start || key(position - 1) < key(position);
        is_above && (position + 1 >= range.end || key(position) < key(position + 1))
    }

    fn remove(&mut self, at: &mut Book, side: Side, position: usize) {
        if position + 1 == at.range(side).end {
            self.pop(at, side);
        } else {
            self.remove_behind(at, side, position);
        }
    }

    /// Removes the best level.
    #[inline(always)]
    fn pop(&mut self, at: &mut Book, side: Side) {
        let range = at.range(side);
        let next = if range.len() > 1 {
            self.rungs[range.end - 2]
        } else {
            nothing(side)
        };
        let gone = Rung {
            sums: 0,
            ..at.top(side)
        };
        self.log.note(ChangeKind::Removed, side, 0, gone);
        at.set_top(side, next);
        self.shorten(at, side);
    }

    #[inline(always)]
    fn remove_behind(&mut self, at: &mut Book, side: Side, position: usize) {
        let end = at.range(side).end;
        let gone = Rung {
            sums: 0,
            ..self.rungs[position]
        };
        self.log.note(ChangeKind::Removed, side, end - 1 - position, gone);
        shift_down(&mut self.rungs, position, end - 1);
        if !self.queues.is_empty() {
            shift_down(&mut self.queues, position, end);
        }
        self.shorten(at, side);
    }

    #[inline(always)]
    fn shorten(&mut self, at: &mut Book, side: Side) {
        at.len[side as usize] -= 1;
        if (at.len(side) * 8 < at.capacity(side)) & (at.size[side as usize] > 1) {
            // A smaller block may be missing only if the pool is exhausted: then the ladder stays where it
            // is.
            let _ = self.resize(at, side, at.size[side as usize] - 1);
        }
    }

    /// Moves a ladder to a block of another size.
    #[cold]
    fn resize(&mut self, at: &mut Book, side: Side, size: u8) -> Result<(), BookError> {
        if size as usize > CLASSES {
            return Err(BookError::Full);
        }
        let block = self.blocks.take(size as usize - 1).ok_or(BookError::Full)?;
        let old = at.range(side);
        let base = block as usize * BLOCK;
        self.rungs.copy_within(old.clone(), base);
        if !self.queues.is_empty() {
            self.queues.copy_within(old.clone(), base);
        }
        self.give_back(at, side);
        at.base[side as usize] = base as u32;
        at.size[side as usize] = size;
        Ok(())
    }

    fn give_back(&mut self, at: &Book, side: Side) {
        let size = at.size[side as usize];
        if size > 0 {
            self.blocks
                .give(at.base[side as usize] / BLOCK as u32, size as usize - 1);
        }
    }

    /// Sets a level of a by-price feed; a quantity of 0 removes it. Quantity and orders it had before.
    pub(crate) fn set(
        &mut self,
        at: &mut Book,
        side: Side,
        key: i64,
        qty: u64,
        orders: u32,
    ) -> Result<(u64, u32), BookError> {
        if qty > QTY_MAX {
            return Err(BookError::QtyRange);
        }
        let sums = qty << COUNT_BITS | (orders as u64).min(COUNT_MAX);
        let position = match (self.search(at, side, key), qty) {
            (Ok(position), _) => position,
            (Err(_), 0) => return Err(BookError::UnknownLevel),
            (Err(position), _) => {
                self.insert(at, side, position, Rung { key, sums })?;
                return Ok((0, 0));
            }
        };
        let old = Rung {
            key,
            sums: *self.sums(at, side, position),
        };
        if qty == 0 {
            self.remove(at, side, position);
        } else {
            *self.sums(at, side, position) = sums;
            let rank = at.range(side).end - 1 - position;
            self.log.note(ChangeKind::Changed, side, rank, Rung { key, sums });
        }
        Ok((old.qty(), old.orders()))
    }

    /// Removes every level of a side and gives its block back.
    pub(crate) fn clear(&mut self, at: &mut Book, side: Side) {
        self.give_back(at, side);
        at.set_top(side, nothing(side));
        at.len[side as usize] = 0;
        at.size[side as usize] = 0;
    }

    /// The levels of a side, best first.
    pub(crate) fn levels(&self, at: &Book, side: Side) -> impl ExactSizeIterator<Item = Level> + '_ {
        self.levels_from(at, side, 0)
    }

    /// The levels from a rank on, 0 the best. None of those before it is looked at.
    #[inline]
    pub(crate) fn levels_from(
        &self,
        at: &Book,
        side: Side,
        first: usize,
    ) -> impl ExactSizeIterator<Item = Level> + '_ {
        let (top, all) = (at.top(side), &self.rungs[at.range(side)]);
        let left = &all[..all.len().saturating_sub(first)];
        left.iter().rev().enumerate().map(move |(nth, behind)| {
            let rung = if first + nth == 0 { top } else { *behind };
            Level {
                price: crate::price_of(side, rung.key),
                qty: Volume(rung.qty()),
                orders: rung.orders(),
            }
        })
    }

    /// The first order of a level, [`NONE`] if there is no such level or no queue.
    pub(crate) fn first(&self, at: &Book, side: Side, key: i64) -> u32 {
        self.search(at, side, key)
            .ok()
            .and_then(|position| self.queues.get(position))
            .map_or(NONE, |q| q.head)
    }

    /// The first order of the `nth` level from the worst.
    pub(crate) fn first_of(&self, at: &Book, side: Side, nth: usize) -> u32 {
        self.queues[at.range(side)][nth].head
    }

    /// Changes one order's share of a level in place.
    pub(crate) fn change(
        &mut self,
        at: &mut Book,
        side: Side,
        key: i64,
        old: u32,
        new: u32,
    ) -> Result<(), BookError> {
        if let Ok(position) = self.search(at, side, key) {
            let sums = self.sums(at, side, position);
            let without = *sums - ((old as u64) << COUNT_BITS);
            *sums = without
                .checked_add((new as u64) << COUNT_BITS)
                .ok_or(BookError::Full)?;
            let (sums, rank) = (*sums, at.range(side).end - 1 - position);
            self.log.note(ChangeKind::Changed, side, rank, Rung { key, sums });
        }
        Ok(())
    }

    /// Appends order `index` to the queue of the level at `position`.
    #[inline]
    pub(crate) fn enqueue(&mut self, orders: &mut OrderIndex, position: usize, index: u32) {
        let queue = &mut self.queues[position];
        let Queue { head, tail } = *queue;
        orders.slot_mut(index).links[PREV] = tail;
        *queue = Queue {
            head: if tail == NONE { index } else { head },
            tail: index,
        };
        orders.link(tail, NEXT, index);
    }

    /// Takes the order of this slot out of its queue and out of its level, whose place is looked for once.
    /// What is different.
    #[inline(always)]
    pub(crate) fn leave(
        &mut self,
        orders: &mut OrderIndex,
        at: &mut Book,
        index: u32,
        order: Slot,
    ) -> UpdateFlags {
        let (side, key) = (order.side(), order.key);
        let beside = orders.last_links(index);
        // Each of its neighbours gets the other one.
        orders.tie(beside, beside);
        let range = at.range(side);
        let is_best = key == at.key[side as usize];
        let position = match is_best {
            true => Ok(range.end - 1),
            false => self.search_behind(range.start, range.end - 1, key),
        };
        let Ok(position) = position else {
            return UpdateFlags::DEPTH;
        };
        self.queues[position].set_ends(beside, beside);
        self.take_at(at, side, position, is_best, order.qty, true)
    }

    /// Order `index` has got another slot number, this one: its neighbours, or its level, are told.
    pub(crate) fn renumber(&mut self, orders: &mut OrderIndex, at: &Book, index: u32) {
        let order = *orders.slot(index);
        let beside = order.links;
        orders.tie(beside, [index; 2]);
        if beside.contains(&NONE)
            && let Ok(position) = self.search(at, order.side(), order.key)
        {
            self.queues[position].set_ends(beside, [index; 2]);
        }
    }

    /// Fetches the levels right behind the best ones of a book, and the ends of their queues.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: &Book) {
        let behind = Side::BOTH.map(|side| at.range(side).end.saturating_sub(2));
        behind
            .iter()
            .for_each(|&last| prefetch::fetch_near(&self.rungs, last));
        if !self.queues.is_empty() {
            behind
                .iter()
                .for_each(|&last| prefetch::fetch_near(&self.queues, last));
        }
    }
}

/// Stands for the best level of an empty side: no quantity, at price 0.
#[inline(always)]
fn nothing(side: Side) -> Rung {
    Rung {
        key: crate::key_of(side, Price::ZERO),
        sums: 0,
    }
}

/// The quantity of a side's best level is different.
#[inline(always)]
fn best_qty(side: Side) -> UpdateFlags {
    UpdateFlags(UpdateFlags::BEST_BID.0 << side as u8)
}

/// The price of a side's best level is different.
#[inline(always)]
fn best_price(side: Side) -> UpdateFlags {
    UpdateFlags(UpdateFlags::BEST_BID.with(UpdateFlags::BEST_BID_PRICE).0 << side as u8)
}

/// Adds to a level's sums; neither of them may overflow.
#[inline(always)]
fn join(sums: &mut u64, added: u64) -> Result<(), BookError> {
    if *sums & COUNT_MAX == COUNT_MAX {
        return Err(BookError::Full);
    }
    *sums = sums.checked_add(added).ok_or(BookError::Full)?;
    Ok(())
}

/// Moves `items[from..to]` one place up. Mostly one to four items: a loop is faster than a call.
#[inline(always)]
fn shift_up<T: Copy>(items: &mut [T], from: usize, to: usize) {
    if to - from > SHORT {
        items.copy_within(from..to, from + 1);
        return;
    }
    let items = &mut items[from..=to];
    for i in (1..items.len()).rev() {
        items[i] = items[i - 1];
    }
}

/// Moves `items[from + 1..to]` one place down.
#[inline(always)]
fn shift_down<T: Copy>(items: &mut [T], from: usize, to: usize) {
    if to - from > SHORT {
        items.copy_within(from + 1..to, from);
        return;
    }
    let items = &mut items[from..to];
    for i in 1..items.len() {
        items[i - 1] = items[i];
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
