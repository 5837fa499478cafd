//! What one event did to the levels of its book, and the sums of a book's sides.

use crate::ladder::Rung;
use crate::price_of;
use tickwire_market::{Level, Price, Side, Volume};

/// What became of a level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum ChangeKind {
    /// It is new: levels behind it are one rank further from the best.
    #[default]
    Inserted = 0,
    /// It has another quantity or another number of orders.
    Changed = 1,
    /// It is gone: levels behind it are one rank nearer to the best.
    Removed = 2,
}

/// One level's change.
// In this order: price and quantity are written one by one and read a moment later; side by side they would
// be read as one, which has to wait until both are in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Change {
    /// The level's price.
    pub price: Price,
    /// How many levels are better: where it is, or was.
    pub rank: u32,
    /// Its orders now; 0 when removed, or when the feed does not say.
    pub orders: u32,
    /// Its quantity now; 0 when removed.
    pub qty: Volume,
    /// The side.
    pub side: Side,
    /// What became of it.
    pub kind: ChangeKind,
}

/// The levels of one side of a book together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// How many levels.
    pub levels: u32,
    /// The sum of their quantities.
    pub qty: Volume,
    /// The sum of their orders; 0 when the feed does not say.
    pub orders: u64,
}

impl Totals {
    #[inline(always)]
    pub(crate) fn more(self, qty: u64, orders: u32) -> Totals {
        Totals {
            qty: Volume(self.qty.0 + qty),
            orders: self.orders + orders as u64,
            ..self
        }
    }

    #[inline(always)]
    pub(crate) fn less(self, qty: u64, orders: u32) -> Totals {
        Totals {
            qty: Volume(self.qty.0 - qty),
            orders: self.orders - orders as u64,
            ..self
        }
    }
}

impl FromIterator<Level> for Totals {
    fn from_iter<I: IntoIterator<Item = Level>>(levels: I) -> Totals {
        levels.into_iter().fold(Totals::default(), |sum, level| Totals {
            levels: sum.levels + 1,
            ..sum.more(level.qty.0, level.orders)
        })
    }
}

/// A quote takes away one level and sets one, on either side; nothing else does more.
const MOST: usize = 4;
/// Stands for the count when there is more to say than that, or nothing is written down.
const REBUILT: usize = MOST + 1;

/// What the event in hand did so far.
pub(crate) struct ChangeLog {
    items: [Change; MOST],
    count: usize,
    /// Where every event begins: at 0, or at [`REBUILT`] when nothing is to be written down.
    start: usize,
}

impl ChangeLog {
    pub(crate) fn new(tracked: bool) -> ChangeLog {
        let start = if tracked { 0 } else { REBUILT };
        ChangeLog {
            items: [Change::default(); MOST],
            count: start,
            start,
        }
    }

    /// A new event.
    #[inline(always)]
    pub(crate) fn start(&mut self) {
        self.count = self.start;
    }

    /// Writes one change down, if any is to be.
    #[inline(always)]
    pub(crate) fn note(&mut self, kind: ChangeKind, side: Side, what: impl FnOnce() -> (usize, Rung)) {
        if self.start != REBUILT {
            let (rank, rung) = what();
            self.write(kind, side, rank, rung);
        }
    }

    /// Not inlined: who does not want changes pays a branch for them and no room in the instruction cache.
    #[inline(never)]
    fn write(&mut self, kind: ChangeKind, side: Side, rank: usize, rung: Rung) {
        if let Some(item) = self.items.get_mut(self.count) {
            *item = Change {
                price: price_of(side, rung.key),
                qty: Volume(rung.qty()),
                rank: rank as u32,
                orders: rung.orders(),
                side,
                kind,
            };
            self.count += 1;
        } else {
            self.count = REBUILT;
        }
    }

    /// More happened than can be said.
    pub(crate) fn rebuild(&mut self) {
        self.count = REBUILT;
    }

    #[inline]
    pub(crate) fn changes(&self) -> &[Change] {
        self.items.get(..self.count).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn is_rebuilt(&self) -> bool {
        self.count == REBUILT
    }
}
