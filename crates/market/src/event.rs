//! The one event of every feed.

use crate::{InstrumentId, Nanos, OrderId, Price, SeqNo, Side, Venue, Volume};

/// What happened. The fields of [`MarketEvent`] that carry meaning are listed with each kind; all others are
/// zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum EventKind {
    /// A visible order entered the book: `order_id side price qty`, `code` = attribution (market participant)
    /// if any.
    #[default]
    Add = 1,
    /// An order changed in place: `order_id side price qty` are its new values; priority kept if
    /// [`EventFlags::KEEPS_PRIORITY`].
    Modify = 2,
    /// Part of an order was cancelled: `order_id`, `qty` = how much is taken away.
    Reduce = 3,
    /// Part or all of an order was executed: `order_id`, `qty` = how much, `price` = execution price when
    /// [`EventFlags::AT_OTHER_PRICE`] (else the order's own), `ref_id` = match number; not
    /// [`EventFlags::NOT_PRINTABLE`] executions count as volume.
    Execute = 4,
    /// An order left the book: `order_id`.
    Delete = 5,
    /// An order was replaced and lost its priority: `order_id` = old, `ref_id` = new, `price qty` = new
    /// values; side and attribution carry over.
    Replace = 6,
    /// A trade that touches no displayed order: `price qty ref_id`, `side` unless [`EventFlags::NO_SIDE`];
    /// `code[0]` = the venue's sale condition or cross type.
    Trade = 7,
    /// Top of book of a feed without depth: bid in `price qty`, ask in `ask_price ask_qty`; a quantity of 0
    /// means no quote. A consolidated feed tells quotes of participants too: `code[0]` names whose it is (a
    /// capital letter) or says what it is instead (`l` limit down and limit up, `o` best odd lots); NUL is
    /// the top of the instrument's book, the national best.
    Quote = 8,
    /// A price level of a by-price feed: `side price`, `qty` = new volume (0 removes it), `order_count`.
    Level = 9,
    /// All orders or levels of the instrument (or of the whole feed) are gone.
    Clear = 10,
    /// Trading status changed: `status`, `code` = the venue's reason. Instrument 0: the whole venue.
    Status = 11,
    /// Auction or imbalance information: `price` = reference, `near_price`, `far_price`, `qty` = paired,
    /// `imbalance_qty`, `side` of the imbalance unless [`EventFlags::NO_SIDE`], `code[0]` = auction type.
    Imbalance = 12,
    /// An instrument became known: `instrument`; its [`crate::Instrument`] is in the feed's directory.
    Definition = 13,
    /// Messages `[seq, ref_id)` are missing. Instrument 0: every book behind the feed is stale until it is
    /// whole again, with [`EventFlags::UNUSABLE`] until it is cleared. Otherwise that book is stale until it,
    /// or everything, is cleared or its own `Recovered` comes.
    Gap = 14,
    /// The feed (instrument 0) or one book is whole again: `seq` is the next message; books with a gap of
    /// their own stay stale when the feed is whole again.
    Recovered = 15,
    /// A trade was cancelled: `ref_id` = match number.
    TradeBreak = 16,
    /// A venue's atomic group is over, said in a packet of its own: nothing changed, [`EventFlags::LAST`] is
    /// set. `instrument` is that of the group's last event.
    EndOfGroup = 17,
}

impl EventKind {
    /// The kind with this discriminant (shared memory and files hold the number).
    pub const fn from_u8(v: u8) -> Option<EventKind> {
        use EventKind::*;
        const ALL: [EventKind; 17] = [
            Add, Modify, Reduce, Execute, Delete, Replace, Trade, Quote, Level, Clear, Status, Imbalance,
            Definition, Gap, Recovered, TradeBreak, EndOfGroup,
        ];
        if v >= 1 && v <= ALL.len() as u8 {
            Some(ALL[v as usize - 1])
        } else {
            None
        }
    }
}

/// Conditions of an event, a bit set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct EventFlags(pub u32);

impl EventFlags {
    /// No condition.
    pub const NONE: EventFlags = EventFlags(0);
    /// The last event of a venue's atomic group (packet, transaction): the book is consistent after it.
    pub const LAST: EventFlags = EventFlags(1);
    /// Comes from a snapshot or a refresh, not from the live stream.
    pub const SNAPSHOT: EventFlags = EventFlags(1 << 1);
    /// Came by retransmission.
    pub const RETRANSMITTED: EventFlags = EventFlags(1 << 2);
    /// An execution that must not count as volume (it is reported again in a cross).
    pub const NOT_PRINTABLE: EventFlags = EventFlags(1 << 3);
    /// An execution at a price that is not the order's: `price` holds it.
    pub const AT_OTHER_PRICE: EventFlags = EventFlags(1 << 4);
    /// `side` carries no meaning.
    pub const NO_SIDE: EventFlags = EventFlags(1 << 5);
    /// A modification that keeps the order's time priority.
    pub const KEEPS_PRIORITY: EventFlags = EventFlags(1 << 6);
    /// An implied (calculated) level of a spread market.
    pub const IMPLIED: EventFlags = EventFlags(1 << 7);
    /// The order or quote may not be used for trading at the national best price (slow, manual, non-firm).
    pub const NOT_FIRM: EventFlags = EventFlags(1 << 8);
    /// A gap of a message that came and could not be used: no retransmission fills it, only a clear ends it.
    pub const UNUSABLE: EventFlags = EventFlags(1 << 9);

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: EventFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other` set too.
    #[inline]
    pub const fn with(self, other: EventFlags) -> EventFlags {
        EventFlags(self.0 | other.0)
    }
}

/// Whether an instrument, or a venue as a whole, trades.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum TradingStatus {
    /// Not said yet. Venues want this treated as halted.
    #[default]
    Unknown = 0,
    /// Before the opening: orders may rest, nothing trades.
    PreOpen = 1,
    /// An auction collects orders (opening, closing, volatility, IPO).
    Auction = 2,
    /// Continuous trading.
    Trading = 3,
    /// Quotes only, no trades.
    QuoteOnly = 4,
    /// Paused by a volatility mechanism (LULD).
    Paused = 5,
    /// Halted.
    Halted = 6,
    /// After the close.
    Closed = 7,
}

impl TradingStatus {
    /// The status with this discriminant.
    pub const fn from_u8(v: u8) -> Option<TradingStatus> {
        use TradingStatus::*;
        const ALL: [TradingStatus; 8] = [
            Unknown, PreOpen, Auction, Trading, QuoteOnly, Paused, Halted, Closed,
        ];
        if (v as usize) < ALL.len() {
            Some(ALL[v as usize])
        } else {
            None
        }
    }
}

/// One thing that happened on a market, the same for every venue: two cache lines, the first holds all that
/// an order book needs. Which fields carry meaning depends on the kind: see [`EventKind`].
///
/// ```text
///  0 seq          8 venue_ts    16 recv_ts     24 instrument 28 venue 29 kind 30 side 31 status
/// 32 order_id    40 price       48 qty         56 ref_id
/// 64 ask_price   72 ask_qty     80 near_price  88 far_price
/// 96 imbalance_qty             104 order_count 108 flags    112 code[8]    120 reserved
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C, align(64))]
pub struct MarketEvent {
    /// Sequence number of the message within its channel.
    pub seq: SeqNo,
    /// The venue's time of the event.
    pub venue_ts: Nanos,
    /// When the packet was received here.
    pub recv_ts: Nanos,
    /// The instrument, [`InstrumentId::WHOLE_FEED`] when not about one.
    pub instrument: InstrumentId,
    /// The source.
    pub venue: Venue,
    /// What happened.
    pub kind: EventKind,
    /// The side.
    pub side: Side,
    /// The trading status, for `Status`.
    pub status: TradingStatus,
    /// The order.
    pub order_id: OrderId,
    /// The price.
    pub price: Price,
    /// The quantity.
    pub qty: Volume,
    /// A second identifier: match number, new order id, end of a gap.
    pub ref_id: u64,
    /// The ask of a `Quote`.
    pub ask_price: Price,
    /// The ask's size of a `Quote`.
    pub ask_qty: Volume,
    /// The near indicative price of an `Imbalance`.
    pub near_price: Price,
    /// The far indicative price of an `Imbalance`.
    pub far_price: Price,
    /// The unpaired quantity of an `Imbalance`.
    pub imbalance_qty: Volume,
    /// How many orders make up a `Level`.
    pub order_count: u32,
    /// Conditions.
    pub flags: EventFlags,
    /// A venue code: attribution, reason, condition; ASCII, padded with NUL.
    pub code: [u8; 8],
    /// Zero.
    pub reserved: u64,
}

const _: () = {
    use core::mem::{align_of, offset_of, size_of};
    assert!(size_of::<MarketEvent>() == 128 && align_of::<MarketEvent>() == 64);
    assert!(offset_of!(MarketEvent, instrument) == 24 && offset_of!(MarketEvent, status) == 31);
    assert!(offset_of!(MarketEvent, order_id) == 32 && offset_of!(MarketEvent, ref_id) == 56);
    assert!(offset_of!(MarketEvent, ask_price) == 64 && offset_of!(MarketEvent, imbalance_qty) == 96);
    assert!(offset_of!(MarketEvent, flags) == 108 && offset_of!(MarketEvent, code) == 112);
};
