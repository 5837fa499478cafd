//! Price levels. Of every side of every book, the [`WINDOW`] prices around the best one have a place each in
//! an array, and a bit each that says whether there is a level: where a level is follows from its price,
//! nothing is searched for or moved, and the best is the highest bit. Levels that are further away, or
//! between two ticks, are in an array sorted by price.
//!
//! Every level of the window is better than every one behind it, and the best level is in the window. The
//! tick of a side is what its prices had in common so far. When the best price leaves the window, the window
//! is laid anew: levels that fall out of it go behind it, or come back.

mod behind;
mod window;

use crate::books::BookError;
use crate::buddies::Buddies;
use crate::changes::{ChangeKind, ChangeLog};
use crate::order_index::{NEXT, NONE, OrderIndex, PREV, Slot};
use crate::prefetch;
use crate::tick::Tick;
use crate::touched;
use alloc::vec::Vec;
use behind::{BLOCK, Block};
use core::hint::select_unpredictable;
use tickwire_market::{BookState, Level, Nanos, Price, SeqNo, Side, UpdateFlags, Volume};

/// How many prices around the best one have a place of their own: the bits of a word.
pub(crate) const WINDOW: usize = 64;
/// When the best level's place is below this one, the window is laid anew.
const LOW: u32 = 16;

/// Bits of the order count in a level's sums; the other 44 hold the quantity.
const COUNT_BITS: u32 = 20;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
/// The most orders of a level.
pub(crate) const ORDERS_MAX: u32 = COUNT_MAX as u32;
/// The largest quantity of a level: 1.7e13.
pub(crate) const QTY_MAX: u64 = (1 << (64 - COUNT_BITS)) - 1;

/// One level: its sort key, and its quantity and order count in one word, so that an order comes or goes with
/// one addition.
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

    /// As it is told.
    #[inline(always)]
    pub(crate) fn level(self, side: Side) -> Level {
        Level {
            price: crate::price_of(side, self.key),
            qty: Volume(self.qty()),
            orders: self.orders(),
        }
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
        self.head = select_unpredictable(before == NONE, follows, self.head);
        self.tail = select_unpredictable(after == NONE, precedes, self.tail);
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
/// One side of one book.
#[derive(Clone, Copy)]
pub(crate) struct BookSide {
    pub(crate) book: usize,
    pub(crate) side: Side,
}

impl BookSide {
    /// The number of a place of the window among those of all books.
    #[inline(always)]
    fn place(self, nth: u64) -> usize {
        (self.book * 2 + self.side as usize) * WINDOW + nth as usize
    }
}

/// A book: two cache lines that are fetched together, which are all of it that an event reads besides the
/// level it is about. The levels themselves are in [`LevelPool`].
///
/// ```text
///  0 key[2] 16 sums[2] 32 base[2] 48 bits[2]
/// 64 inverse[2] 80 size[2] 96 seq 104 venue_ts 112 len[2] 116 behind[2] 120 zeros[2] 122 own 123 shown 124 clears
/// ```
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub(crate) struct Book {
    /// The best levels, which are in the window, too; those of [`nothing`] where a side is empty.
    key: [i64; 2],
    sums: [u64; 2],
    /// The key of the window's lowest place.
    base: [i64; 2],
    /// By place of the window, whether there is a level.
    bits: [u64; 2],
    /// The ticks of the windows: see [`Tick`].
    inverse: [u64; 2],
    size: [u64; 2],
    /// Of the last event.
    pub(crate) seq: SeqNo,
    /// Of the last event.
    pub(crate) venue_ts: Nanos,
    /// How many levels there are.
    len: [u16; 2],
    /// How many of them are behind the window.
    behind: [u16; 2],
    zeros: [u8; 2],
    /// The book's own state, before that of the feed as a whole is taken into account.
    pub(crate) own: Own,
    /// The state last told.
    pub(crate) shown: BookState,
    /// How often it was cleared; counted where queues are not kept.
    pub(crate) clears: u32,
}

const _: () = assert!(core::mem::size_of::<Rung>() == 16 && core::mem::size_of::<Book>() == 128);

impl Book {
    pub(crate) fn new(shown: BookState) -> Book {
        let mut new = Book {
            key: [0; 2],
            sums: [0; 2],
            base: [0; 2],
            bits: [0; 2],
            inverse: [0; 2],
            size: [0; 2],
            seq: SeqNo(0),
            venue_ts: Nanos(0),
            len: [0; 2],
            behind: [0; 2],
            zeros: [0; 2],
            own: Own::Live,
            shown,
            clears: 0,
        };
        for side in Side::BOTH {
            new.set_top(side, nothing(side));
            new.set_tick(side, Tick::UNKNOWN);
        }
        new
    }

    /// Key and quantity of the best level; the key of price 0 and a quantity of 0 when the side is empty.
    #[inline(always)]
    pub(crate) fn best(&self, side: Side) -> (i64, u64) {
        (self.key[side as usize], self.sums[side as usize] >> COUNT_BITS)
    }

    /// The best level; no quantity at price 0 when the side is empty.
    #[inline(always)]
    pub(crate) fn top(&self, side: Side) -> Rung {
        let s = side as usize;
        Rung {
            key: self.key[s],
            sums: self.sums[s],
        }
    }

    #[inline(always)]
    fn set_top(&mut self, side: Side, rung: Rung) {
        self.key[side as usize] = rung.key;
        self.sums[side as usize] = rung.sums;
    }

    #[inline(always)]
    fn tick(&self, side: Side) -> Tick {
        Tick {
            size: self.size[side as usize],
            inverse: self.inverse[side as usize],
            zeros: self.zeros[side as usize],
        }
    }

    fn set_tick(&mut self, side: Side, tick: Tick) {
        self.size[side as usize] = tick.size;
        self.inverse[side as usize] = tick.inverse;
        self.zeros[side as usize] = tick.zeros;
    }

    /// Which place of the window is a key's: [`WINDOW`] or more if none is.
    #[inline(always)]
    fn nth(&self, side: Side, key: i64) -> u64 {
        let above = key.wrapping_sub(self.base[side as usize]) as u64;
        self.tick(side).count(above)
    }

    /// The key of a place of the window.
    #[inline(always)]
    fn key_of(&self, side: Side, nth: u64) -> i64 {
        let above = nth.wrapping_mul(self.size[side as usize]);
        self.base[side as usize].wrapping_add(above as i64)
    }

    /// How many levels a side has.
    #[inline(always)]
    pub(crate) fn len(&self, side: Side) -> usize {
        self.len[side as usize] as usize
    }

    /// How many levels are better than a place of the window.
    #[inline(always)]
    fn rank(&self, side: Side, nth: u64) -> usize {
        (self.bits[side as usize] >> nth >> 1).count_ones() as usize
    }
}

/// The levels of all books.
pub(crate) struct LevelPool {
    /// By book, side and place of the window, the sums of the level; 0 where there is none.
    places: Vec<[[u64; WINDOW]; 2]>,
    /// The levels behind the windows.
    rungs: Vec<Rung>,
    /// Where they are, by book and side.
    blocks: Vec<[Block; 2]>,
    free: Buddies,
    /// Empty unless queues are kept; else one for each place, then one for each rung.
    queues: Vec<Queue>,
    /// The tick that a side learnt last.
    latest: Tick,
    /// What the event in hand did.
    pub(crate) log: ChangeLog,
}

impl LevelPool {
    /// Windows of so many books, and room for `levels` behind them. `queues`: a level's orders are kept in a
    /// queue; `tracked`: changes are written down.
    pub(crate) fn new(books: usize, levels: usize, queues: bool, tracked: bool) -> LevelPool {
        let blocks = levels.div_ceil(BLOCK);
        let queued = books * 2 * WINDOW + blocks * BLOCK;
        LevelPool {
            places: touched([[0; WINDOW]; 2], books),
            rungs: touched(Rung::default(), blocks * BLOCK),
            blocks: touched([Block::default(); 2], books),
            free: Buddies::new(blocks),
            queues: touched(NO_QUEUE, if queues { queued } else { 0 }),
            latest: Tick::UNKNOWN,
            log: ChangeLog::new(tracked),
        }
    }

    /// Levels that a pool has to have for the same events to find room.
    pub(crate) fn needed(&self) -> usize {
        self.free.needed() * BLOCK
    }

    /// The sums of a place of the window.
    #[inline(always)]
    fn sums(&mut self, on: BookSide, nth: u64) -> &mut u64 {
        &mut self.places[on.book][on.side as usize][nth as usize % WINDOW]
    }

    /// Adds one order's quantity to a level, which is made when missing: where its queue is, and what is
    /// different.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        at: &mut Book,
        on: BookSide,
        key: i64,
        qty: u32,
    ) -> Result<(usize, UpdateFlags), BookError> {
        let added = (qty as u64) << COUNT_BITS | 1;
        let (side, s) = (on.side, on.side as usize);
        let mut nth = at.nth(side, key);
        if nth >= WINDOW as u64 {
            match self.make_place(at, on, key)? {
                Some(made) => nth = made,
                None => return Ok((self.add_behind(at, on, key, added)?, UpdateFlags::DEPTH)),
            }
        }
        let sums = self.sums(on, nth);
        join(sums, added)?;
        let sums = *sums;
        let over = at.bits[s] >> nth;
        at.bits[s] |= 1 << nth;
        at.key[s] = select_unpredictable(over == 0, key, at.key[s]);
        at.sums[s] = select_unpredictable(over <= 1, sums, at.sums[s]);
        at.len[s] += (over & 1 == 0) as u16;
        let kind = match over & 1 {
            0 => ChangeKind::Inserted,
            _ => ChangeKind::Changed,
        };
        self.log
            .note(kind, side, || (at.rank(side, nth), Rung { key, sums }));
        Ok((on.place(nth), touched_at(side, over, over == 0)))
    }

    /// Takes quantity from the level of a resting order, and one order from its count when the order is gone;
    /// an empty level goes too. What is different.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        at: &mut Book,
        on: BookSide,
        key: i64,
        qty: u32,
        gone: bool,
    ) -> UpdateFlags {
        let taken = (qty as u64) << COUNT_BITS | gone as u64;
        let (side, s) = (on.side, on.side as usize);
        let nth = at.nth(side, key);
        if nth >= WINDOW as u64 {
            self.take_behind(at, on, key, taken);
            return UpdateFlags::DEPTH;
        }
        let sums = self.sums(on, nth);
        debug_assert!(
            *sums >> COUNT_BITS >= taken >> COUNT_BITS && *sums & COUNT_MAX >= taken & COUNT_MAX,
            "more leaves a level than stands there"
        );
        *sums -= taken;
        let sums = *sums;
        let is_empty = sums & COUNT_MAX == 0;
        let over = at.bits[s] >> nth;
        at.bits[s] &= !((is_empty as u64) << nth);
        at.len[s] -= is_empty as u16;
        let kind = match is_empty {
            true => ChangeKind::Removed,
            false => ChangeKind::Changed,
        };
        self.log
            .note(kind, side, || (at.rank(side, nth), Rung { key, sums }));
        self.renew_best(at, on);
        touched_at(side, over, is_empty)
    }

    /// Sets a level of a by-price feed; a quantity of 0 removes it. Quantity and orders it had before.
    #[inline(always)]
    pub(crate) fn set(
        &mut self,
        at: &mut Book,
        on: BookSide,
        key: i64,
        qty: u64,
        orders: u32,
    ) -> Result<(u64, u32), BookError> {
        if qty > QTY_MAX {
            return Err(BookError::QtyRange);
        }
        let (side, s) = (on.side, on.side as usize);
        let sums = match qty {
            0 => 0,
            qty => qty << COUNT_BITS | (orders as u64).min(COUNT_MAX),
        };
        let mut nth = at.nth(side, key);
        if nth >= WINDOW as u64 {
            let made = match qty {
                0 => None,
                _ => self.make_place(at, on, key)?,
            };
            match made {
                Some(made) => nth = made,
                None => return self.set_behind(at, on, Rung { key, sums }),
            }
        }
        let stood = at.bits[s] >> nth & 1 != 0;
        if qty == 0 && !stood {
            return Err(BookError::UnknownLevel);
        }
        let old = core::mem::replace(self.sums(on, nth), sums);
        at.bits[s] = at.bits[s] & !(1 << nth) | ((qty != 0) as u64) << nth;
        at.len[s] = at.len[s] + (qty != 0) as u16 - stood as u16;
        let kind = match (stood, qty) {
            (false, _) => ChangeKind::Inserted,
            (true, 0) => ChangeKind::Removed,
            (true, _) => ChangeKind::Changed,
        };
        self.log
            .note(kind, side, || (at.rank(side, nth), Rung { key, sums }));
        self.renew_best(at, on);
        let old = Rung { key, sums: old };
        Ok((old.qty(), old.orders()))
    }

    /// Changes one order's share of a level in place.
    pub(crate) fn change(
        &mut self,
        at: &mut Book,
        on: BookSide,
        key: i64,
        old: u32,
        new: u32,
    ) -> Result<(), BookError> {
        let change = |sums: &mut u64| {
            let without = *sums - ((old as u64) << COUNT_BITS);
            let changed = without.checked_add((new as u64) << COUNT_BITS);
            *sums = changed.ok_or(BookError::Full)?;
            Ok(*sums)
        };
        let nth = at.nth(on.side, key);
        let (rank, sums) = if nth < WINDOW as u64 {
            (at.rank(on.side, nth), change(self.sums(on, nth))?)
        } else if let Ok(position) = self.find_behind(at, on, key) {
            let sums = change(&mut self.rungs[position].sums)?;
            (self.rank_behind(at, on, position), sums)
        } else {
            return Ok(());
        };
        if rank == 0 {
            at.sums[on.side as usize] = sums;
        }
        self.log
            .note(ChangeKind::Changed, on.side, || (rank, Rung { key, sums }));
        Ok(())
    }

    /// Removes every level of a side and gives its block back.
    pub(crate) fn clear(&mut self, at: &mut Book, on: BookSide) {
        self.give_back(on);
        for nth in window::places(core::mem::take(&mut at.bits[on.side as usize])) {
            self.take_place(on, nth);
        }
        at.set_top(on.side, nothing(on.side));
        (at.len[on.side as usize], at.behind[on.side as usize]) = (0, 0);
        at.set_tick(on.side, Tick::UNKNOWN);
    }

    /// The levels of a side, best first.
    #[inline]
    pub(crate) fn levels(&self, at: &Book, on: BookSide) -> Levels<'_> {
        let s = on.side as usize;
        Levels {
            places: &self.places[on.book][s],
            behind: &self.rungs[self.range(at, on)],
            bits: at.bits[s],
            base: at.base[s],
            tick: at.size[s],
            side: on.side,
        }
    }

    /// The same from a price on, this one or worse.
    #[inline]
    pub(crate) fn levels_from(&self, at: &Book, on: BookSide, key: i64) -> Levels<'_> {
        let nth = at.nth(on.side, key);
        let mut levels = self.levels(at, on);
        if nth < WINDOW as u64 {
            levels.bits &= (2_u64 << nth).wrapping_sub(1);
        } else {
            levels.skip_better(key);
        }
        levels
    }

    /// The first order of a level, [`NONE`] if there is no such level or no queue.
    pub(crate) fn first(&self, at: &Book, on: BookSide, key: i64) -> u32 {
        self.queue_of(at, on, key)
            .and_then(|queue| self.queues.get(queue))
            .map_or(NONE, |queue| queue.head)
    }

    /// The first order of the `nth` level from the worst.
    pub(crate) fn first_of(&self, at: &Book, on: BookSide, nth: usize) -> u32 {
        let behind = self.range(at, on);
        let queue = match nth.checked_sub(behind.len()) {
            None => self.queue_behind(behind.start + nth),
            Some(nth) => {
                let better = (0..nth).fold(at.bits[on.side as usize], |bits, _| bits & (bits - 1));
                on.place(better.trailing_zeros() as u64)
            }
        };
        self.queues[queue].head
    }

    /// Where a level's queue is, if there is such a level.
    #[inline(always)]
    fn queue_of(&self, at: &Book, on: BookSide, key: i64) -> Option<usize> {
        let nth = at.nth(on.side, key);
        if nth < WINDOW as u64 {
            return (at.bits[on.side as usize] >> nth & 1 != 0).then(|| on.place(nth));
        }
        let position = self.find_behind(at, on, key).ok()?;
        Some(self.queue_behind(position))
    }

    /// Appends order `index` to the queue of the level at `position`.
    #[inline]
    pub(crate) fn enqueue(&mut self, orders: &mut OrderIndex, position: usize, index: u32) {
        let queue = &mut self.queues[position];
        let Queue { head, tail } = *queue;
        orders.slot_mut(index).links[PREV] = tail;
        *queue = Queue {
            head: select_unpredictable(tail == NONE, index, head),
            tail: index,
        };
        orders.link(tail, NEXT, index);
    }

    /// Takes the order of this slot out of its queue and out of its level. What is different.
    #[inline(always)]
    pub(crate) fn leave(
        &mut self,
        orders: &mut OrderIndex,
        at: &mut Book,
        on: BookSide,
        index: u32,
        order: Slot,
    ) -> UpdateFlags {
        let beside = orders.last_links(index);
        // Each of its neighbours gets the other one.
        orders.tie(beside, beside);
        if let Some(queue) = self.queue_of(at, on, order.key) {
            self.queues[queue].set_ends(beside, beside);
        }
        self.take(at, on, order.key, order.qty, true)
    }

    /// Order `index` has got another slot number, this one: its neighbours, or its level, are told.
    pub(crate) fn renumber(&mut self, orders: &mut OrderIndex, at: &Book, book: usize, index: u32) {
        let order = *orders.slot(index);
        let beside = order.links;
        orders.tie(beside, [index; 2]);
        let side = order.side();
        if beside.contains(&NONE)
            && let Some(queue) = self.queue_of(at, BookSide { book, side }, order.key)
        {
            self.queues[queue].set_ends(beside, [index; 2]);
        }
    }

    /// Fetches the place of a key and the ends of its queue.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: &Book, on: BookSide, key: i64) {
        self.prefetch_place(on, at.nth(on.side, key) % WINDOW as u64);
    }

    /// Fetches the best levels of both sides of a book, and the ends of their queues.
    #[inline(always)]
    pub(crate) fn prefetch_best(&self, at: &Book, book: usize) {
        for side in Side::BOTH {
            let best = (at.bits[side as usize] | 1).ilog2() as u64;
            self.prefetch_place(BookSide { book, side }, best);
        }
    }

    /// Fetches the lines of the best levels, of a level that would be better by a tick, and of the worst
    /// levels of the windows, and where the levels behind the windows are: for a thread that waits. Of a
    /// venue that shows so many levels and no more, the worst one leaves when a better one enters.
    pub(crate) fn fetch(&self, at: &Book, book: usize) {
        prefetch::fetch(&self.blocks, book);
        for side in Side::BOTH {
            let bits = at.bits[side as usize];
            let (best, worst) = ((bits | 1).ilog2(), bits.trailing_zeros());
            for nth in [best, best + 1, worst] {
                self.prefetch_place(BookSide { book, side }, u64::from(nth) % WINDOW as u64);
            }
        }
    }

    #[inline(always)]
    fn prefetch_place(&self, on: BookSide, nth: u64) {
        let places = self.places.as_flattened();
        let first = on.book * 2 + on.side as usize;
        prefetch::fetch_in(places, first, nth as usize);
        if !self.queues.is_empty() {
            prefetch::fetch_near(&self.queues, on.place(nth));
        }
    }
}

/// The levels of a side, best first: see [`LevelPool::levels`].
pub(crate) struct Levels<'a> {
    places: &'a [u64; WINDOW],
    behind: &'a [Rung],
    bits: u64,
    base: i64,
    tick: u64,
    side: Side,
}

impl Levels<'_> {
    /// Leaves out what is better than a key that has no place.
    #[cold]
    fn skip_better(&mut self, key: i64) {
        while let Some(best) = self.bits.checked_ilog2()
            && self.key_of(best) > key
        {
            self.bits ^= 1 << best;
        }
        let left = self.behind.partition_point(|rung| rung.key <= key);
        self.behind = &self.behind[..left];
    }

    #[inline(always)]
    fn key_of(&self, nth: u32) -> i64 {
        let above = (nth as u64).wrapping_mul(self.tick) as i64;
        self.base.wrapping_add(above)
    }
}

impl Iterator for Levels<'_> {
    type Item = Level;

    #[inline]
    fn next(&mut self) -> Option<Level> {
        let rung = match self.bits.checked_ilog2() {
            Some(nth) => {
                self.bits ^= 1 << nth;
                Rung {
                    key: self.key_of(nth),
                    sums: self.places[nth as usize % WINDOW],
                }
            }
            None => {
                let (last, rest) = self.behind.split_last()?;
                self.behind = rest;
                *last
            }
        };
        Some(rung.level(self.side))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.bits.count_ones() as usize + self.behind.len();
        (len, Some(len))
    }
}

impl ExactSizeIterator for Levels<'_> {}

/// What is different after a level was touched that is better than all (`over` 0), the best (1) or behind it
/// (more); `whole`: it came or went.
#[inline(always)]
fn touched_at(side: Side, over: u64, whole: bool) -> UpdateFlags {
    let best = UpdateFlags::BEST_BID.0 | (UpdateFlags::BEST_BID_PRICE.0 * whole as u8);
    UpdateFlags(select_unpredictable(
        over <= 1,
        best << side as u8,
        UpdateFlags::DEPTH.0,
    ))
}

/// Stands for the best level of an empty side: no quantity, at price 0.
#[inline(always)]
fn nothing(side: Side) -> Rung {
    Rung {
        key: crate::key_of(side, Price::ZERO),
        sums: 0,
    }
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
