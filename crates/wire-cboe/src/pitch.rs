//! Cboe Multicast PITCH 2.41 (specification 2.41.29, 2022-04-20; layouts unchanged in 2.41.64): BZX, BYX,
//! EDGA and EDGX equities, with the messages of the Gap Request Proxy and of the Spin server.
//!
//! ```text
//! block    0 length u16   2 count u8   3 unit u8   4 sequence u32   8 messages ...       a datagram, or a part of a TCP stream
//! message  0 length u8    1 type u8    2 ...
//! ```
//! Little-endian and unsigned (but for prices of strategies, which have a sign), ASCII padded with spaces on
//! the right. [`packet`] or [`split`] checks a block once and whole; [`parse`] reads one of its messages,
//! which starts with its own length. Messages may grow at their end: what lies behind the layout is ignored.
//! Times are a number of nanoseconds after the last [`Time`] of the same unit.
//!
//! Cboe's options and futures feeds share most layouts and differ in some: [`options`], [`complex`],
//! [`futures`].
//!
//! ```
//! use tickwire_wire_cboe::{pitch::DeleteOrder, layout::Pod};
//! let message = DeleteOrder { time_offset: 1_000.into(), order_id: 70_000.into(), ..DeleteOrder::BLANK_MESSAGE };
//! assert_eq!(message.as_bytes(), b"\x0E\x29\xE8\x03\x00\x00\x70\x11\x01\x00\x00\x00\x00\x00");
//! ```

pub mod complex;
pub mod futures;
pub mod options;
mod unit;

pub use unit::{
    MESSAGES_MAX, Messages, Packet, PacketBuilder, UnitHeader, after, before, full_sequence, heartbeat,
    packet, split, wire_sequence,
};

use crate::layout::Pod;
use crate::layout::le::{U16, U32, U64};
use crate::layout::{Alpha, Char, Scaled};
use crate::{Malformed, wire_enum, wire_struct};
use tickwire_market::Side;

/// A short price: 16 bits, 2 implied decimals, at most 655.35.
pub type ShortPrice = Scaled<U16, 2>;
/// A long price: 64 bits, 4 implied decimals.
pub type LongPrice = Scaled<U64, 4>;

/// Bytes of [`Head`], with which every message begins.
pub const HEAD_SIZE: usize = 2;

wire_struct! {
    /// The beginning of every message. PITCH 2.41.29, "Message Format".
    pub struct Head = "MessageHeader", 2 {
        /// Bytes of the whole message, this one included.
        0 => length: u8, "Length";
        1 => kind: u8, "Type";
    }
}

/// Declares layouts that begin with [`Head`].
macro_rules! pitch_layouts {
    ($(
        $(#[$meta:meta])*
        $kind:literal $name:ident = $spec:literal, $size:literal {
            $($(#[$row_meta:meta])* $offset:literal => $field:ident: $ty:ty, $label:literal;)*
        }
    )*) => {$(
        $crate::wire_struct! {
            $(#[$meta])*
            pub struct $name = $spec, $size {
                0 => head: $crate::pitch::Head, "MessageHeader";
                $($(#[$row_meta])* $offset => $field: $ty, $label;)*
            }
        }

        impl $name {
            /// The message type byte.
            pub const KIND: u8 = $kind;

            /// A message with its length and type set, all else blank: encoders fill in the rest.
            pub const BLANK_MESSAGE: $name = $name {
                head: $crate::pitch::Head { length: $size, kind: $kind },
                ..$name::BLANK
            };
        }
    )*};
}
use pitch_layouts;

/// Declares which layout a type byte means in one family of feeds.
macro_rules! pitch_family {
    ($($name:ident,)*) => {
        /// One message, in place.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Message<'a> {
            $(#[doc = concat!("[`", stringify!($name), "`].")] $name(&'a $name),)*
        }

        /// Reads one message: as many bytes as its length says, of which those behind the layout are ignored.
        #[inline]
        pub fn parse(bytes: &[u8]) -> Result<Message<'_>, $crate::Malformed> {
            let message = $crate::pitch::bounded(bytes)?;
            match message[1] {
                $($name::KIND => $crate::pitch::layout(message).map(Message::$name),)*
                unknown => Err($crate::Malformed::UnknownType(unknown)),
            }
        }

        impl<'a> Message<'a> {
            /// The message's bytes, without any that followed the layout.
            pub fn as_bytes(self) -> &'a [u8] {
                match self { $(Message::$name(m) => $crate::layout::Pod::as_bytes(m),)* }
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Message::$name(_) => <$name as $crate::layout::Fields>::NAME,)* }
            }

            /// The message type byte.
            pub fn kind(self) -> u8 {
                match self { $(Message::$name(_) => $name::KIND,)* }
            }

            /// Its fields in wire order.
            pub fn visit(self, f: &mut dyn FnMut(&'static str, $crate::layout::FieldValue<'_>)) {
                match self { $(Message::$name(m) => $crate::layout::Fields::visit(m, f),)* }
            }
        }

        /// Type byte, name and size of every message.
        pub const TYPES: &[(u8, &str, usize)] = &[
            $(($name::KIND, <$name as $crate::layout::Fields>::NAME, $name::SIZE),)*
        ];
    };
}
use pitch_family;

/// The bytes that the message says are its own; at least its head.
#[inline(always)]
pub(crate) fn bounded(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let &[length, kind, ..] = bytes else {
        return Err(Malformed::truncated(HEAD_SIZE, bytes.len()));
    };
    match bytes.get(..usize::from(length)) {
        Some(message) if message.len() >= HEAD_SIZE => Ok(message),
        Some(_) => Err(Malformed::length(kind, HEAD_SIZE, length.into())),
        None => Err(Malformed::truncated(length.into(), bytes.len())),
    }
}

/// Reads a message bounded by its length as a `T`; a message that says it is shorter contradicts the layout.
#[inline(always)]
pub fn layout<T>(message: &[u8]) -> Result<&T, Malformed>
where
    T: Pod,
{
    match crate::layout::split(message) {
        Some((found, _)) => Ok(found),
        None => Err(Malformed::length(
            message.get(1).copied().unwrap_or(0),
            size_of::<T>(),
            message.len(),
        )),
    }
}

pitch_layouts! {
    /// Seconds since midnight in New York, for the offsets that follow. Sent before the first event of a
    /// second. PITCH 2.41.29, "Time Message".
    0x20 Time = "Time", 6 {
        2 => seconds: U32, "Seconds";
    }

    /// Every order of the unit is gone: at the start of the day, or after a failure. PITCH 2.41.29, "Unit
    /// Clear Message".
    0x97 UnitClear = "UnitClear", 6 {
        2 => time_offset: U32, "TimeOffset";
    }

    /// A visible order. PITCH 2.41.29, "Add Order Message (long)".
    0x21 AddOrderLong = "AddOrderLong", 34 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        /// `B`, `S`: see [`side`].
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<6>, "Symbol";
        25 => price: LongPrice, "Price";
        /// See [`add_flags`].
        33 => flags: u8, "AddFlags";
    }

    /// A visible order of at most 65 535 shares at a whole cent up to 655.35. PITCH 2.41.29, "Add Order
    /// Message (short)".
    0x22 AddOrderShort = "AddOrderShort", 26 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        /// `B`, `S`: see [`side`].
        14 => side: Char, "Side";
        15 => qty: U16, "Qty";
        17 => symbol: Alpha<6>, "Symbol";
        23 => price: ShortPrice, "Price";
        /// See [`add_flags`].
        25 => flags: u8, "AddFlags";
    }

    /// A visible order with a long symbol or with attribution. PITCH 2.41.29, "Add Order Message (expanded)".
    0x2F AddOrderExpanded = "AddOrderExpanded", 41 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        /// `B`, `S`: see [`side`].
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<8>, "Symbol";
        27 => price: LongPrice, "Price";
        /// See [`add_flags`].
        35 => flags: u8, "AddFlags";
        /// The member, `RTAL` for a retail order, or spaces.
        36 => participant_id: Alpha<4>, "ParticipantId";
        /// `R` on EDGX: retail priority. Otherwise a space.
        40 => customer: Char, "CustomerInd";
    }

    /// Shares of an order executed at its price. PITCH 2.41.29, "Order Executed Message".
    0x23 OrderExecuted = "OrderExecuted", 26 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => executed_qty: U32, "ExecQty";
        /// Unique within the day; see [`execution_class`].
        18 => execution_id: U64, "ExecId";
    }

    /// Shares of an order executed at another price, or with another remainder than its own. PITCH 2.41.29,
    /// "Order Executed at Price/Size Message".
    0x24 OrderExecutedAtPriceSize = "OrderExecutedAtPriceSize", 38 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => executed_qty: U32, "ExecQty";
        /// What the order has left; 0: it is gone.
        18 => remaining_qty: U32, "RemainingQty";
        /// Unique within the day; see [`execution_class`].
        22 => execution_id: U64, "ExecId";
        /// Of the execution; the order's limit stays.
        30 => price: LongPrice, "Price";
    }

    /// Part of an order was cancelled; it keeps its place. PITCH 2.41.29, "Reduce Size Message (long)".
    0x25 ReduceSizeLong = "ReduceSizeLong", 18 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => cancelled_qty: U32, "CanceledQty";
    }

    /// Part of an order was cancelled; it keeps its place. PITCH 2.41.29, "Reduce Size Message (short)".
    0x26 ReduceSizeShort = "ReduceSizeShort", 16 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => cancelled_qty: U16, "CanceledQty";
    }

    /// New quantity and price of an order. PITCH 2.41.29, "Modify Order Message (long)".
    0x27 ModifyOrderLong = "ModifyLong", 27 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => qty: U32, "Qty";
        18 => price: LongPrice, "Price";
        /// See [`modify_flags`].
        26 => flags: u8, "ModifyFlags";
    }

    /// New quantity and price of an order. PITCH 2.41.29, "Modify Order Message (short)".
    0x28 ModifyOrderShort = "ModifyShort", 19 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => qty: U16, "Qty";
        16 => price: ShortPrice, "Price";
        /// See [`modify_flags`].
        18 => flags: u8, "ModifyFlags";
    }

    /// An order left the book; its number may come again. PITCH 2.41.29, "Delete Order Message".
    0x29 DeleteOrder = "DeleteOrder", 14 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
    }

    /// A trade that touches no visible order. PITCH 2.41.29, "Trade Message (long)".
    0x2A TradeLong = "TradeLong", 41 {
        2 => time_offset: U32, "TimeOffset";
        /// Obfuscated.
        6 => order_id: U64, "OrderId";
        /// Always `B`.
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<6>, "Symbol";
        25 => price: LongPrice, "Price";
        /// Unique within the day; see [`execution_class`].
        33 => execution_id: U64, "ExecId";
    }

    /// A trade that touches no visible order. PITCH 2.41.29, "Trade Message (short)".
    0x2B TradeShort = "TradeShort", 33 {
        2 => time_offset: U32, "TimeOffset";
        /// Obfuscated.
        6 => order_id: U64, "OrderId";
        /// Always `B`.
        14 => side: Char, "Side";
        15 => qty: U16, "Qty";
        17 => symbol: Alpha<6>, "Symbol";
        23 => price: ShortPrice, "Price";
        /// Unique within the day; see [`execution_class`].
        25 => execution_id: U64, "ExecId";
    }

    /// A trade that touches no visible order, with a long symbol. PITCH 2.41.29, "Trade Message (expanded)".
    0x30 TradeExpanded = "TradeExpanded", 43 {
        2 => time_offset: U32, "TimeOffset";
        /// Obfuscated.
        6 => order_id: U64, "OrderId";
        /// Always `B`.
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<8>, "Symbol";
        27 => price: LongPrice, "Price";
        /// Unique within the day; see [`execution_class`].
        35 => execution_id: U64, "ExecId";
    }

    /// A trade or execution was cancelled. PITCH 2.41.29, "Trade Break Message".
    0x2C TradeBreak = "TradeBreak", 14 {
        2 => time_offset: U32, "TimeOffset";
        6 => execution_id: U64, "ExecId";
    }

    /// The unit has nothing more to say today. PITCH 2.41.29, "End of Session Message".
    0x2D EndOfSession = "EndOfSession", 6 {
        2 => time_offset: U32, "TimeOffset";
    }

    /// Whether an instrument trades. PITCH 2.41.29, "Trading Status Message".
    0x31 TradingStatus = "TradingStatus", 18 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<8>, "Symbol";
        /// See [`Status`].
        14 => status: Char, "TradingStatus";
        /// `0`, `1`: a short sale price test is in effect.
        15 => reg_sho: Char, "RegSho";
        16 => reserved1: Char, "Reserved1";
        17 => reserved2: Char, "Reserved2";
    }

    /// Prices and interest before an auction, BZX and BYX. PITCH 2.41.29, "Auction Update Message".
    0x95 AuctionUpdate = "AuctionUpdate", 47 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<8>, "Symbol";
        /// See [`AuctionType`].
        14 => auction_type: Char, "AuctionType";
        15 => reference_price: LongPrice, "ReferencePrice";
        /// On the buy side at the reference price.
        23 => buy_shares: U32, "BuyShares";
        27 => sell_shares: U32, "SellShares";
        /// Of auction and continuous book together; 0 for a periodic auction.
        31 => indicative_price: LongPrice, "IndicativePrice";
        /// Of auction orders alone; 0 for a periodic auction.
        39 => auction_only_price: LongPrice, "AuctionOnlyPrice";
    }

    /// The result of an auction, BZX and BYX. PITCH 2.41.29, "Auction Summary Message".
    0x96 AuctionSummary = "AuctionSummary", 27 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<8>, "Symbol";
        /// See [`AuctionType`].
        14 => auction_type: Char, "AuctionType";
        15 => price: LongPrice, "Price";
        23 => shares: U32, "Shares";
    }

    /// Retail interest, BYX. PITCH 2.41.29, "Retail Price Improvement Message".
    0x98 RetailPriceImprovement = "RetailPriceImprovement", 15 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<8>, "Symbol";
        /// See [`RetailInterest`].
        14 => interest: Char, "Rpi";
    }

    /// Logs in to the Gap Request Proxy or a Spin server. PITCH 2.41.29, "Login Message".
    0x01 Login = "Login", 22 {
        2 => session_sub_id: Alpha<4>, "SessionSubId";
        6 => username: Alpha<4>, "Username";
        10 => filler: Alpha<2>, "Filler";
        /// In clear text.
        12 => password: Alpha<10>, "Password";
    }

    /// Whether the login holds. PITCH 2.41.29, "Login Response Message".
    0x02 LoginResponse = "LoginResponse", 3 {
        /// See [`LoginStatus`].
        2 => status: Char, "Status";
    }

    /// Asks for messages, which come on the unit's gap response group. PITCH 2.41.29, "Gap Request Message".
    0x03 GapRequest = "GapRequest", 9 {
        2 => unit: u8, "Unit";
        /// The first message wanted.
        3 => sequence: U32, "Sequence";
        /// How many, at most 100; counted without the number 0 where the sequence rolls over.
        7 => count: U16, "Count";
    }

    /// Whether a gap request will be answered. PITCH 2.41.29, "Gap Response Message".
    0x04 GapResponse = "GapResponse", 10 {
        2 => unit: u8, "Unit";
        3 => sequence: U32, "Sequence";
        7 => count: U16, "Count";
        /// See [`GapStatus`].
        9 => status: Char, "Status";
    }

    /// A snapshot may be asked for, said every second. PITCH 2.41.29, "Spin Image Available Message".
    0x80 SpinImageAvailable = "SpinImageAvailable", 6 {
        /// The last message that the snapshot holds.
        2 => sequence: U32, "Sequence";
    }

    /// Asks for a snapshot. PITCH 2.41.29, "Spin Request Message".
    0x81 SpinRequest = "SpinRequest", 6 {
        /// Of an image available.
        2 => sequence: U32, "Sequence";
    }

    /// Whether a snapshot comes. PITCH 2.41.29, "Spin Response Message".
    0x82 SpinResponse = "SpinResponse", 11 {
        2 => sequence: U32, "Sequence";
        /// How many orders will be added.
        6 => order_count: U32, "OrderCount";
        /// See [`SpinStatus`].
        10 => status: Char, "Status";
    }

    /// The snapshot is complete. PITCH 2.41.29, "Spin Finished Message".
    0x83 SpinFinished = "SpinFinished", 6 {
        /// The last message that the snapshot holds.
        2 => sequence: U32, "Sequence";
    }
}

pitch_family! {
    Time, UnitClear, AddOrderLong, AddOrderShort, AddOrderExpanded, OrderExecuted, OrderExecutedAtPriceSize,
    ReduceSizeLong, ReduceSizeShort, ModifyOrderLong, ModifyOrderShort, DeleteOrder, TradeLong, TradeShort, TradeExpanded,
    TradeBreak, EndOfSession, TradingStatus, AuctionUpdate, AuctionSummary, RetailPriceImprovement,
    Login, LoginResponse, GapRequest, GapResponse, SpinImageAvailable, SpinRequest, SpinResponse, SpinFinished,
}

/// The longest message of the equities feeds, in bytes ([`AuctionUpdate`]).
pub const MESSAGE_SIZE_MAX: usize = 47;

/// What the Gap Request Proxy allows. PITCH 2.41.29, "Gap Request Limitations".
pub mod gap_limits {
    /// Messages of one request.
    pub const MESSAGES: u16 = 100;
    /// Requests in a second.
    pub const SECOND: u32 = 320;
    /// Requests in a minute.
    pub const MINUTE: u32 = 1500;
    /// Requests in a day.
    pub const DAY: u32 = 100_000;
    /// How many messages back one can ask.
    pub const HISTORY: u64 = 1_000_000;
    /// How long the server waits for requests to merge, in milliseconds.
    pub const MERGE_MS: u64 = 2;
}

/// Bits of `AddFlags`.
pub mod add_flags {
    /// Part of the quote that goes to the SIP.
    pub const DISPLAYED: u8 = 1;
}

/// Bits of `ModifyFlags`.
pub mod modify_flags {
    /// Part of the quote that goes to the SIP.
    pub const DISPLAYED: u8 = 1;
    /// The order keeps its place; otherwise it goes to the tail of its price.
    pub const KEEPS_PRIORITY: u8 = 2;
}

/// The side of a `Side` field.
#[inline(always)]
pub const fn side(code: Char) -> Option<Side> {
    Side::of_letter(code.0, *b"BS")
}

/// The `Side` field of a side.
#[inline]
pub const fn side_char(side: Side) -> Char {
    match side {
        Side::Bid => Char(b'B'),
        Side::Ask => Char(b'S'),
    }
}

/// Which order a message that has not been parsed is about: the one added, executed, reduced, modified or
/// deleted.
#[inline(always)]
pub fn order_id(message: &[u8]) -> Option<u64> {
    match message.get(1)? {
        0x21..=0x29 | 0x2F => message
            .get(6..14)?
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes)),
        _ => None,
    }
}

/// The symbol of a message that has not been parsed, padded with spaces to eight bytes and read as a
/// big-endian number: a key that needs no comparison of text. `None` for types without a symbol.
#[inline(always)]
pub fn symbol_key(message: &[u8]) -> Option<u64> {
    let short = |bytes: &[u8]| {
        let &[a, b, c, d, e, f] = bytes.first_chunk()?;
        Some(u64::from_be_bytes([a, b, c, d, e, f, b' ', b' ']))
    };
    let long = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
    match message.get(1)? {
        0x22 | 0x2B => short(message.get(17..)?),
        0x21 | 0x2A => short(message.get(19..)?),
        0x2F | 0x30 => long(message.get(19..)?),
        0x31 | 0x95 | 0x96 | 0x98 => long(message.get(6..)?),
        _ => None,
    }
}

/// What kind of execution an `ExecId` stands for: the first of its nine digits in base 36. `0` a match on the
/// book, `C` an auction, `M` market on close, `P` a periodic auction, `R` routed away; `None` if it has more
/// than nine digits.
#[inline]
pub const fn execution_class(execution_id: u64) -> Option<u8> {
    match execution_id / 36_u64.pow(8) {
        digit @ 0..=9 => Some(b'0' + digit as u8),
        letter @ 10..=35 => Some(b'A' + (letter - 10) as u8),
        _ => None,
    }
}

/// A number in base 36 with leading zeros, as Cboe's screens show execution numbers (9 digits) and order
/// numbers (12). Digits that do not fit are cut off on the left.
pub const fn base36<const DIGITS: usize>(number: u64) -> [u8; DIGITS] {
    let mut text = [b'0'; DIGITS];
    let (mut rest, mut at) = (number, DIGITS);
    while at > 0 {
        at -= 1;
        let digit = (rest % 36) as u8;
        text[at] = if digit < 10 {
            b'0' + digit
        } else {
            b'A' - 10 + digit
        };
        rest /= 36;
    }
    text
}

wire_enum! {
    /// `TradingStatus` of [`TradingStatus`].
    pub enum Status {
        /// Orders are accepted and queued.
        b'A' => Accepting;
        /// Halted.
        b'H' => Halted;
        /// Quotes only.
        b'Q' => QuoteOnly;
        /// Suspended by the exchange; what every symbol is at the start.
        b'S' => Suspended;
        /// Trading.
        b'T' => Trading;
    }
}

wire_enum! {
    /// `AuctionType` of [`AuctionUpdate`] and [`AuctionSummary`].
    pub enum AuctionType {
        /// Opening auction.
        b'O' => Opening;
        /// Closing auction.
        b'C' => Closing;
        /// Reopening after a halt.
        b'H' => Halt;
        /// Initial public offering.
        b'I' => Ipo;
        /// Cboe Market Close.
        b'M' => MarketClose;
        /// Periodic auction, BYX.
        b'P' => Periodic;
        /// Volatility auction (2.41.64).
        b'V' => Volatility;
    }
}

wire_enum! {
    /// `Rpi` of [`RetailPriceImprovement`].
    pub enum RetailInterest {
        /// To buy.
        b'B' => Buy;
        /// To sell.
        b'S' => Sell;
        /// On both sides.
        b'A' => Both;
        /// None.
        b'N' => None;
    }
}

wire_enum! {
    /// `Status` of [`LoginResponse`].
    pub enum LoginStatus {
        /// Accepted.
        b'A' => Accepted;
        /// Not authorised.
        b'N' => NotAuthorised;
        /// The session is in use.
        b'B' => InUse;
        /// No such session; the connection is dropped.
        b'S' => InvalidSession;
    }
}

wire_enum! {
    /// `Status` of [`GapResponse`].
    pub enum GapStatus {
        /// The messages come.
        b'A' => Accepted;
        /// Ahead of the feed, or further back than a million messages.
        b'O' => OutOfRange;
        /// Too much asked for in a day.
        b'D' => DailyQuota;
        /// Too much asked for in a minute.
        b'M' => MinuteQuota;
        /// Too much asked for in a second.
        b'S' => SecondQuota;
        /// More than 100 messages.
        b'C' => CountTooLarge;
        /// No such unit.
        b'I' => InvalidUnit;
        /// The unit is not available.
        b'U' => UnitUnavailable;
    }
}

wire_enum! {
    /// `Status` of [`SpinResponse`].
    pub enum SpinStatus {
        /// The snapshot comes.
        b'A' => Accepted;
        /// Ahead of the next image.
        b'O' => OutOfRange;
        /// One is under way.
        b'S' => InProgress;
    }
}
