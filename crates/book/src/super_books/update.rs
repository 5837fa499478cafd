//! What a consolidated book says: its words.

use core::fmt;
use tickwire_market::{Nanos, Price, Volume};

/// A stream of events of its own: one channel of a feed. Its place in
/// [`SuperConfig::sources`](super::SuperConfig::sources).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct SourceId(pub u16);

/// A consolidated book: numbered from 0 in the order in which symbols became known. A number is never given
/// to another symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct SuperId(pub u32);

/// A set of feeds: bit `n` is the feed with index `n`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct FeedMask(pub u32);

impl FeedMask {
    /// No feed.
    pub const NONE: FeedMask = FeedMask(0);

    /// One feed; its index must be below 32.
    #[inline]
    pub const fn one(feed: u8) -> FeedMask {
        FeedMask(1 << (feed & 31))
    }

    /// Whether a feed is in it.
    #[inline]
    pub const fn has(self, feed: u8) -> bool {
        self.0 & FeedMask::one(feed).0 != 0
    }

    /// The feeds of both.
    #[inline]
    pub const fn with(self, other: FeedMask) -> FeedMask {
        FeedMask(self.0 | other.0)
    }

    /// Those that are not in the other.
    #[inline]
    pub const fn without(self, other: FeedMask) -> FeedMask {
        FeedMask(self.0 & !other.0)
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The feeds' indices, rising.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..32).filter(move |&feed| self.has(feed))
    }
}

impl fmt::Debug for FeedMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// How a feed stands to one symbol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Presence {
    /// Its book is not complete yet.
    #[default]
    Building = 0,
    /// Its shares are in the consolidated book.
    Live = 1,
    /// A gap lies before it: its shares are out until it is whole again.
    Stale = 2,
    /// It is over: its shares are out until it begins anew.
    Ended = 3,
    /// There was no room for a share of it: all of them are out until its book is cleared.
    Full = 4,
}

/// How best bid and best offer stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Market {
    /// A side is empty.
    #[default]
    OneSided = 0,
    /// The best bid is below the best offer.
    Normal = 1,
    /// They are equal.
    Locked = 2,
    /// The best bid is above the best offer.
    Crossed = 3,
}

/// A price with all that is bid or offered at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SuperLevel {
    /// The price.
    pub price: Price,
    /// The quantity of all feeds.
    pub qty: Volume,
    /// The orders of the feeds that say; 0 when none does.
    pub orders: u32,
    /// The feeds that have something at this price.
    pub feeds: FeedMask,
}

/// A side of a consolidated book as a whole: the feeds that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SuperTotals {
    /// How many shares.
    pub shares: u32,
    /// How many prices.
    pub levels: u32,
    /// The sum of all quantities.
    pub qty: Volume,
}

/// One side of the national best.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NationalSide {
    /// The price; meaningless where the quantity is 0.
    pub price: Price,
    /// The quantity as the consolidated feed says it; 0 when there is none.
    pub qty: Volume,
    /// The plan's letter of the participant whose it is; 0 when not said.
    pub participant: u8,
}

/// The national best bid and offer as the consolidated feed (SIP) says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct National {
    /// By [`tickwire_market::Side`].
    pub sides: [NationalSide; 2],
    /// The venue's time of the quote that said so.
    pub venue_ts: Nanos,
    /// When its packet was received here.
    pub recv_ts: Nanos,
}

/// Who moved first when two bests came to differ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Mover {
    /// They do not differ, or are not compared.
    #[default]
    Nobody = 0,
    /// The consolidated best of the direct feeds.
    Direct = 1,
    /// The national best of the consolidated feed.
    National = 2,
}

/// How the national best price of a side differs from the consolidated one of the direct feeds. Compared
/// while the consolidated feed and at least one direct feed are live; a side that one of them does not have
/// differs from one that it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Difference {
    /// National less direct; zero when they agree, when either has nothing on this side, or when they are not
    /// compared.
    pub price: Price,
    /// Receive time of the event since which they differ; 0 when they do not.
    pub since: Nanos,
    /// Who moved then.
    pub mover: Mover,
    /// Who had moved first the last time that they agreed again.
    pub last_mover: Mover,
    /// How long they had differed then: how far the other was behind.
    pub last_ns: u64,
}

/// A trade.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastTrade {
    /// Its price.
    pub price: Price,
    /// Its quantity; 0 when there was none yet.
    pub qty: Volume,
    /// The venue's time.
    pub venue_ts: Nanos,
    /// When its packet was received here.
    pub recv_ts: Nanos,
}

/// What changed in a consolidated book, a bit set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct SuperFlags(pub u32);

impl SuperFlags {
    /// Nothing.
    pub const NONE: SuperFlags = SuperFlags(0);
    /// Price, quantity, orders or feeds of the best bid.
    pub const BEST_BID: SuperFlags = SuperFlags(1);
    /// Price, quantity, orders or feeds of the best offer.
    pub const BEST_ASK: SuperFlags = SuperFlags(1 << 1);
    /// Shares on the bid side: see [`SuperUpdate::first`].
    pub const BIDS: SuperFlags = SuperFlags(1 << 2);
    /// Shares on the ask side: see [`SuperUpdate::first`].
    pub const ASKS: SuperFlags = SuperFlags(1 << 3);
    /// Which feeds there are, which of them are away or do not count.
    pub const FEEDS: SuperFlags = SuperFlags(1 << 4);
    /// Whether the market is locked or crossed.
    pub const MARKET: SuperFlags = SuperFlags(1 << 5);
    /// The national best.
    pub const NATIONAL: SuperFlags = SuperFlags(1 << 6);
    /// How the national best differs from ours.
    pub const DIFFERENCE: SuperFlags = SuperFlags(1 << 7);
    /// The last trade or the volume.
    pub const TRADE: SuperFlags = SuperFlags(1 << 8);
    /// All of these.
    pub const ALL: SuperFlags = SuperFlags((1 << 9) - 1);

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: SuperFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline]
    pub const fn any(self, other: SuperFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// With the bits of `other` set too.
    #[inline]
    pub const fn with(self, other: SuperFlags) -> SuperFlags {
        SuperFlags(self.0 | other.0)
    }
}

/// What one event changed in one consolidated book: enough for a publisher to write nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct SuperUpdate {
    /// The venue's time of the event.
    pub venue_ts: Nanos,
    /// When its packet was received here.
    pub recv_ts: Nanos,
    /// The consolidated book.
    pub id: SuperId,
    /// The source of the event.
    pub source: SourceId,
    /// Its feed.
    pub feed: u8,
    /// Zero.
    pub reserved: u8,
    /// What changed.
    pub changed: SuperFlags,
    /// By side: the rank (0 best) of the first share that is different, [`u32::MAX`] when none is.
    pub first: [u32; 2],
    /// By side: the rank after the last share that is different; [`u32::MAX`]: all shares from `first` on
    /// moved; 0: none.
    pub end: [u32; 2],
}

/// Why an event or a definition was not applied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SuperError {
    /// No source has this number.
    Source,
    /// The source did not define this instrument, or it is not subscribed any more.
    Instrument,
    /// An order event: consolidated books know levels.
    Depth,
    /// A level to be removed is not there.
    UnknownLevel,
    /// A quantity beyond 44 bits.
    QtyRange,
    /// Another instrument of the same feed holds this symbol.
    Taken,
    /// A configured capacity is exhausted: symbols, members, or shares. When shares are, the feed's are out
    /// of this consolidated book, and it is marked there, until its book is cleared.
    Full,
}

impl fmt::Display for SuperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SuperError::Source => "no such source",
            SuperError::Instrument => "instrument not defined by the source",
            SuperError::Depth => "an order event: a consolidated book knows levels",
            SuperError::UnknownLevel => "no such level",
            SuperError::QtyRange => "quantity out of range",
            SuperError::Taken => "the symbol is held by another instrument of this feed",
            SuperError::Full => "capacity exhausted",
        })
    }
}

impl core::error::Error for SuperError {}
