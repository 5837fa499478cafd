//! What a book says after an event.

use crate::{InstrumentId, Nanos, Price, SeqNo, Side, Venue, Volume};

/// One price level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Level {
    /// Its price.
    pub price: Price,
    /// The sum of its orders' remaining quantities, never 0.
    pub qty: Volume,
    /// How many orders it holds; 0 when the feed does not say.
    pub orders: u32,
}

/// Whether a book can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum BookState {
    /// Not complete yet: waits for its snapshot or the start of the session.
    #[default]
    Building = 0,
    /// Equal to the venue's book as of its sequence number.
    Live = 1,
    /// A gap lies before it: what it shows may be wrong. Never triggers an order.
    Stale = 2,
}

/// What changed, a bit set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct UpdateFlags(pub u8);

impl UpdateFlags {
    /// Nothing that a reader of the book could see.
    pub const NONE: UpdateFlags = UpdateFlags(0);
    /// Price or quantity of the best bid.
    pub const BEST_BID: UpdateFlags = UpdateFlags(1);
    /// Price or quantity of the best ask.
    pub const BEST_ASK: UpdateFlags = UpdateFlags(1 << 1);
    /// A level behind the best.
    pub const DEPTH: UpdateFlags = UpdateFlags(1 << 2);
    /// The book's state.
    pub const STATE: UpdateFlags = UpdateFlags(1 << 3);
    /// The price of the best bid itself changed (implies [`UpdateFlags::BEST_BID`]).
    pub const BEST_BID_PRICE: UpdateFlags = UpdateFlags(1 << 4);
    /// The price of the best ask itself changed (implies [`UpdateFlags::BEST_ASK`]).
    pub const BEST_ASK_PRICE: UpdateFlags = UpdateFlags(1 << 5);

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: UpdateFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline]
    pub const fn any(self, other: UpdateFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// With the bits of `other` set too.
    #[inline]
    pub const fn with(self, other: UpdateFlags) -> UpdateFlags {
        UpdateFlags(self.0 | other.0)
    }
}

/// The top of a book after an event, one cache line. A best quantity of 0 means that the side is empty.
///
/// ```text
///  0 seq          8 venue_ts    16 recv_ts    24 instrument 28 venue 29 state 30 changed 31 reserved
/// 32 price[bid]  40 price[ask]  48 qty[bid]   56 qty[ask]
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C, align(64))]
pub struct BookUpdate {
    /// Sequence number of the message that caused it.
    pub seq: SeqNo,
    /// The venue's time of that message.
    pub venue_ts: Nanos,
    /// When its packet was received here.
    pub recv_ts: Nanos,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The source.
    pub venue: Venue,
    /// Whether the book can be trusted.
    pub state: BookState,
    /// What changed.
    pub changed: UpdateFlags,
    /// Zero.
    pub reserved: u8,
    /// Best prices, indexed by [`Side`]; meaningless where the quantity is 0.
    pub price: [Price; 2],
    /// Quantities at the best prices, indexed by [`Side`].
    pub qty: [Volume; 2],
}

impl BookUpdate {
    /// Best price and quantity of a side, `None` when it is empty.
    #[inline]
    pub fn best(&self, side: Side) -> Option<(Price, Volume)> {
        let qty = self.qty[side as usize];
        (!qty.is_zero()).then_some((self.price[side as usize], qty))
    }
}

const _: () = {
    assert!(core::mem::size_of::<BookUpdate>() == 64);
    assert!(core::mem::offset_of!(BookUpdate, price) == 32);
};
