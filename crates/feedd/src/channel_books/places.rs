//! What is known of each instrument's book on its way to shared memory.

use std::hint::select_unpredictable;
use tickwire_book::{Books, ChangeKind, SuperId};
use tickwire_market::{MessageType, Price, Side, UpdateFlags};
use tickwire_shm::BookSlot;

/// How a channel is heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hearing {
    /// Packets come, or none has come yet.
    Heard,
    /// None came for too long.
    Silent,
    /// Its session is over.
    Ended,
}

/// Whether a book can be shown: its slot is that of a symbol, and the symbol comes from the channel's
/// directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Naming {
    /// Nothing of it was to be shown yet, or its number was given to another symbol.
    Unnamed,
    /// It is named after the packet in hand.
    Waiting,
    /// Slot and consolidated book are those of its symbol, or it was refused them.
    Named,
    /// It was unsubscribed: whatever a clear of everything makes of it, it is not to be trusted.
    Left,
}

impl Naming {
    /// Whether its slot, if it has one, shows it.
    #[inline]
    pub(super) fn is_shown(self) -> bool {
        matches!(self, Naming::Named | Naming::Left)
    }

    /// It is wanted: named anew with what it says next.
    #[inline]
    pub(super) fn return_if_left(&mut self) {
        if *self == Naming::Left {
            *self = Naming::Unnamed;
        }
    }
}

/// What of a book has changed and is not shown yet.
#[derive(Clone, Copy)]
pub(super) struct Unshown {
    /// By side: the levels from this rank to that one, which is beyond.
    pub(super) first: [u8; 2],
    pub(super) end: [u8; 2],
    /// By side: the best price that changed, which has the first of these ranks. What is better stands where
    /// it stood.
    pub(super) best: [Price; 2],
    /// Levels, totals or the book's own state changed.
    pub(super) is_book: bool,
    pub(super) is_trade: bool,
    pub(super) is_status: bool,
    /// What the update of it will say.
    pub(super) changed: UpdateFlags,
}

/// The least and the largest price: the worst bid and the best, the best offer and the worst.
const LEAST: Price = Price::from_raw(i64::MIN);
const MOST: Price = Price::from_raw(i64::MAX);

impl Unshown {
    pub(super) const NOTHING: Unshown = Unshown {
        first: [u8::MAX; 2],
        end: [0; 2],
        best: [LEAST, MOST],
        is_book: false,
        is_trade: false,
        is_status: false,
        changed: UpdateFlags::NONE,
    };

    pub(super) const EVERYTHING: Unshown = Unshown {
        first: [0; 2],
        end: [u8::MAX; 2],
        best: [MOST, LEAST],
        is_book: true,
        is_trade: true,
        is_status: true,
        changed: UpdateFlags::NONE,
    };

    /// Adds what the last event did to a book.
    #[inline]
    pub(super) fn add(&mut self, books: &Books, changed: UpdateFlags) {
        self.is_book = true;
        self.changed = self.changed.with(changed);
        if books.is_rebuilt() {
            (self.first, self.end) = (Unshown::EVERYTHING.first, Unshown::EVERYTHING.end);
            self.best = Unshown::EVERYTHING.best;
        }
        for change in books.changes() {
            let (side, rank) = (change.side as usize, change.rank.min(u8::MAX.into()) as u8);
            self.first[side] = self.first[side].min(rank);
            let is_better = change.side.better(change.price, self.best[side]);
            self.best[side] = select_unpredictable(is_better, change.price, self.best[side]);
            // What is behind a new level, or one that is gone, has moved. Which it is nobody can foresee: no
            // branch.
            let has_moved = change.kind != ChangeKind::Changed;
            let end = select_unpredictable(has_moved, u8::MAX, rank.saturating_add(1));
            self.end[side] = self.end[side].max(end);
        }
    }

    /// The sides that changed.
    #[inline]
    pub(super) fn sides(&self) -> impl Iterator<Item = Side> {
        those_of([0, 1].map(|side| self.first[side] < self.end[side]))
    }
}

/// The sides that something is said of. Mostly it is one of them, and nobody can foresee which: no branch
/// tells them from each other.
#[inline(always)]
pub(crate) fn those_of(has: [bool; 2]) -> impl Iterator<Item = Side> {
    let [bids, asks] = has.map(usize::from);
    let sides = [[Side::Bid; 2], [Side::Bid; 2], [Side::Ask; 2], Side::BOTH][bids | asks << 1];
    sides.into_iter().take(bids + asks)
}

/// The place of an instrument's book in shared memory.
pub(super) struct BookPlace {
    pub(super) slot: Option<BookSlot>,
    pub(super) unshown: Unshown,
    /// The message that changed it last.
    pub(super) kind: MessageType,
    pub(super) naming: Naming,
    /// An event of the group in hand changed it.
    pub(super) is_pending: bool,
    pub(super) is_in_super: bool,
    /// The consolidated book that has its levels, if it is on this thread.
    pub(super) levels_in: Option<SuperId>,
}

impl BookPlace {
    pub(super) const NONE: BookPlace = BookPlace {
        slot: None,
        unshown: Unshown::NOTHING,
        kind: MessageType(0),
        naming: Naming::Unnamed,
        is_pending: false,
        is_in_super: false,
        levels_in: None,
    };
}
