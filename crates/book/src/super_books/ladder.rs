//! Shares: for every side of every symbol an array of what each feed has at each price, sorted with the best
//! at the end, in blocks of one preallocated pool.
//!
//! The order of shares: the better price first; at one price the lower feed index first. A feed has at most
//! one share at a price. Shares of feeds that are away stay where they are and are passed over, so that they
//! are back at once.

use super::FeedMask;
use crate::buddies::{Buddies, CLASSES};
use crate::{prefetch, price_of, touched};
use alloc::vec::Vec;
use core::hint::select_unpredictable;
use tickwire_market::{Price, Side, Volume};

/// Shares of the smallest block: 192 bytes. The largest is 4,096 times that: 32,768 shares of one side.
const BLOCK: usize = 8;
/// Shares are counted from the best in strides of so many.
const STRIDE: usize = 8;
/// A share that is so many places further on lies in another line of memory.
const LINE_OF: usize = 3;
/// How many strides are counted before the rest is bisected.
const STRIDES: usize = 3;

/// What one feed has at one price.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// The price.
    pub price: Price,
    /// The quantity, never 0.
    pub qty: Volume,
    /// How many orders; 0 when the feed does not say.
    pub orders: u32,
    /// The feed's index.
    pub feed: u8,
}

/// The same as it is kept.
#[derive(Clone, Copy, Default)]
pub(super) struct Kept {
    pub(super) key: i64,
    pub(super) qty: u64,
    pub(super) orders: u32,
    pub(super) feed: u8,
}

const _: () = assert!(core::mem::size_of::<Kept>() == 24);

impl Kept {
    /// Whether it is the share of the same feed at the same price.
    #[inline(always)]
    fn is_at(&self, other: &Kept) -> bool {
        (self.key == other.key) & (self.feed == other.feed)
    }

    pub(super) fn share(&self, side: Side) -> Share {
        Share {
            price: price_of(side, self.key),
            qty: Volume(self.qty),
            orders: self.orders,
            feed: self.feed,
        }
    }
}

/// Where the shares of one side of a symbol are.
#[derive(Clone, Copy, Default)]
pub(super) struct Ladder {
    base: u32,
    len: u16,
    /// 0: no block yet; else class + 1.
    size: u8,
}

impl Ladder {
    #[inline(always)]
    fn range(&self) -> core::ops::Range<usize> {
        let base = self.base as usize;
        base..base + self.len as usize
    }

    fn capacity(&self) -> usize {
        ((BLOCK << self.size) >> 1) & !(BLOCK - 1)
    }
}

/// What setting a share did: how many shares stand before it, and the quantity that it had.
#[derive(Clone, Copy)]
pub(super) enum Set {
    Inserted(usize),
    Changed(usize, u64),
    Removed(usize, u64),
    /// To be removed and not there.
    Missing,
    /// No block is left.
    Full,
}

/// The shares of all symbols.
pub(super) struct Shares {
    kept: Vec<Kept>,
    blocks: Buddies,
}

impl Shares {
    pub(super) fn new(shares: usize) -> Shares {
        let blocks = shares.div_ceil(BLOCK);
        Shares {
            kept: touched(Kept::default(), blocks * BLOCK),
            blocks: Buddies::new(blocks),
        }
    }

    /// The shares of a side, worst first.
    #[inline(always)]
    pub(super) fn of(&self, ladder: &Ladder) -> &[Kept] {
        &self.kept[ladder.range()]
    }

    /// Asks for the lines of the best shares of a side, which [`Shares::set`] compares first.
    #[inline(always)]
    pub(super) fn fetch_best(&self, ladder: &Ladder) {
        let end = ladder.range().end;
        for nth in [1, 1 + LINE_OF, 1 + 2 * LINE_OF] {
            prefetch::fetch_near(&self.kept, end.wrapping_sub(nth));
        }
    }

    /// Sets a share; a quantity of 0 removes it.
    #[inline(always)]
    pub(super) fn set(&mut self, ladder: &mut Ladder, new: Kept) -> Set {
        let kept = &mut self.kept[ladder.range()];
        let before = ahead(kept, new.key, new.feed);
        // The place right below those that stand before it: its own, if it is there.
        let at = kept.len() - before;
        let Some(own) = kept[..at].last_mut().filter(|own| own.is_at(&new)) else {
            return match new.qty {
                0 => Set::Missing,
                _ if self.insert(ladder, at, new) => Set::Inserted(before),
                _ => Set::Full,
            };
        };
        if new.qty > 0 {
            return Set::Changed(before, core::mem::replace(own, new).qty);
        }
        let old = own.qty;
        close_up(&mut kept[at - 1..]);
        ladder.len -= 1;
        self.shorten(ladder);
        Set::Removed(before, old)
    }

    #[inline(always)]
    fn insert(&mut self, ladder: &mut Ladder, at: usize, new: Kept) -> bool {
        if ladder.len as usize == ladder.capacity() && !self.resize(ladder, ladder.size + 1) {
            return false;
        }
        ladder.len += 1;
        make_room(&mut self.kept[ladder.range()][at..], new);
        true
    }

    /// Removes every share of a feed; whether there was one.
    pub(super) fn remove_feed(&mut self, ladder: &mut Ladder, feed: u8) -> bool {
        let kept = &mut self.kept[ladder.range()];
        let mut left = 0;
        for i in 0..kept.len() {
            if kept[i].feed != feed {
                kept[left] = kept[i];
                left += 1;
            }
        }
        let found = left < kept.len();
        ladder.len = left as u16;
        if left == 0 {
            self.release(ladder);
        } else {
            self.shorten(ladder);
        }
        found
    }

    fn release(&mut self, ladder: &mut Ladder) {
        if ladder.size > 0 {
            self.blocks
                .give(ladder.base / BLOCK as u32, ladder.size as usize - 1);
        }
        *ladder = Ladder::default();
    }

    /// Gives room back that is less than an eighth full.
    fn shorten(&mut self, ladder: &mut Ladder) {
        while ladder.size > 1 && ladder.len as usize * 8 < ladder.capacity() {
            // A smaller block may be missing only if the pool is exhausted: then the shares stay where they
            // are.
            if !self.resize(ladder, ladder.size - 1) {
                return;
            }
        }
    }

    #[cold]
    fn resize(&mut self, ladder: &mut Ladder, size: u8) -> bool {
        if size as usize > CLASSES {
            return false;
        }
        let Some(block) = self.blocks.take(size as usize - 1) else {
            return false;
        };
        let base = block as usize * BLOCK;
        self.kept.copy_within(ladder.range(), base);
        let len = ladder.len;
        self.release(ladder);
        *ladder = Ladder {
            base: base as u32,
            len,
            size,
        };
        true
    }
}

/// Mostly no more shares than these stand before one that comes or goes: they are moved one by one, which
/// costs less than the call of a copy that looks at its length first.
const FEW: usize = 16;

/// Takes the first share away: those behind it move down, and the last place is free.
#[inline(always)]
fn close_up(kept: &mut [Kept]) {
    if kept.len() > FEW {
        return kept.copy_within(1.., 0);
    }
    for at in 1..kept.len() {
        kept[at - 1] = kept[at];
    }
}

/// Puts a share into the first place: those from there on move up, and the last place, which was free, is
/// taken.
#[inline(always)]
fn make_room(kept: &mut [Kept], new: Kept) {
    let end = kept.len() - 1;
    if end > FEW {
        kept.copy_within(..end, 1);
    } else {
        for at in (0..end).rev() {
            kept[at + 1] = kept[at];
        }
    }
    kept[0] = new;
}

/// Whether a feed that is there has a share at this price, that of `feed` aside; `before` shares stand before
/// its place.
#[inline(always)]
pub(super) fn has_company(kept: &[Kept], before: usize, key: i64, feed: u8, away: FeedMask) -> bool {
    let (worse, better) = kept.split_at(kept.len() - before);
    let is_near = |share: Option<&Kept>| share.is_some_and(|share| share.key == key);
    let worse = match worse {
        // Its own.
        [worse @ .., own] if own.key == key && own.feed == feed => worse,
        _ => worse,
    };
    // Mostly a price is one feed's.
    (is_near(worse.last()) | is_near(better.first())) && is_any_there(worse, better, key, away)
}

/// Whether one of the shares at this price is that of a feed that is there.
#[inline(never)]
fn is_any_there(worse: &[Kept], better: &[Kept], key: i64, away: FeedMask) -> bool {
    let near = worse.iter().rev().take_while(|share| share.key == key);
    let nearer = better.iter().take_while(|share| share.key == key);
    near.chain(nearer).any(|share| !away.has(share.feed))
}

/// How many shares stand nearer to the best than this one does or would.
#[inline(always)]
fn ahead(kept: &[Kept], key: i64, feed: u8) -> usize {
    let mut before = better(kept, key);
    // Those of lower feeds at its own price, of which there are few.
    while let Some(at) = (kept.len() - before).checked_sub(1)
        && kept[at].key == key
        && kept[at].feed < feed
    {
        before += 1;
    }
    before
}

/// How many shares have a better price.
#[inline(always)]
fn better(kept: &[Kept], key: i64) -> usize {
    // Where among the nearest a share stands nobody can foresee: a stride has no branch.
    let (_, strides) = kept.as_rchunks::<STRIDE>();
    let mut before = 0;
    for stride in strides.iter().rev().take(STRIDES) {
        let mut those = 0;
        for (nth, share) in stride.iter().rev().enumerate() {
            those = select_unpredictable(share.key > key, nth + 1, those);
        }
        before += those;
        if those < STRIDE {
            return before;
        }
    }
    let rest = &kept[..kept.len() - before];
    kept.len() - rest.partition_point(|share| share.key <= key)
}
