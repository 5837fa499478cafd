//! Nasdaq OUCH 5.0 (document revision 2023-05): order entry, carried by [SoupBinTCP](crate::soupbintcp), from
//! the client in unsequenced, from the host in sequenced packets. The same on Nasdaq, BX and PSX.
//!
//! Messages of both directions share type bytes, so there are two of everything: [`Inbound`] (client to host)
//! with [`parse_inbound`], [`Outbound`] (host to client) with [`parse_outbound`]. A message is a layout of
//! fixed size, which most follow with an appendage of options:
//!
//! ```text
//!  0 layout   n appendage length u16 (of what follows)   n+2 { length u8 (of what follows), tag u8, value }*
//! ```
//! Integers are big-endian, times nanoseconds since midnight in New York. The layouts of mass cancel and of
//! disabling and enabling order entry, and options 26 to 30, came with later revisions and are from readings
//! of them, see `docs/protocols/ouch50.md`.
//!
//! ```
//! use tickwire_wire_nasdaq::{ouch50::{Appendage, CancelOrder, Inbound, encode, parse_inbound}, layout::Pod};
//! let cancel = CancelOrder { user_ref_num: 7_679_601.into(), ..CancelOrder::NEW };
//! let mut buffer = [0; 64];
//! let length = encode(cancel.as_bytes(), None, &mut buffer).unwrap();
//! assert_eq!(&buffer[..length], b"X\x00\x75\x2E\x71\x00\x00\x00\x00");
//! let (message, options) = parse_inbound(&buffer[..length]).unwrap();
//! assert_eq!((message, options.is_empty()), (Inbound::CancelOrder(&cancel), true));
//! ```

use crate::layout::Pod;
use crate::layout::{Alpha, Char, FieldValue, Fields, Scaled, U16, U32, U64, prefix};
use crate::{Malformed, wire_enum, wire_struct};
use tickwire_market::{Price, Side};
use tickwire_wire_core::malformed::saturate;

/// A price: unsigned 64 bits, 4 implied decimals.
pub type Price4Wide = Scaled<U64, 4>;

/// The price of an order for a cross at any price; [`MARKET_PRICE_ROUND`] means the same. OUCH 5.0, "Data
/// Types".
pub const MARKET_PRICE: Price4Wide = Scaled(U64::new(0x7FFF_FFFF));
/// 200,000.0000, the other price of an order at any price.
pub const MARKET_PRICE_ROUND: Price4Wide = Scaled(U64::new(2_000_000_000));
/// Quantities are below this. OUCH 5.0, "Enter Order".
pub const QUANTITY_MAX: u32 = 999_999;
/// The longest layout without its appendage ([`OrderReplaced`]).
pub const LAYOUT_SIZE_MAX: usize = 66;
/// Bytes that hold any message this module writes.
pub const MESSAGE_SIZE_MAX: usize = LAYOUT_SIZE_MAX + 2 + Appendage::SIZE_MAX;

/// Whether an appendage follows a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tail {
    /// Its length is always there, 0 without options.
    Always,
    /// It may be missing with its length: senders of the revision of 2023 have none here, later ones may.
    Maybe,
}

/// The table of one direction.
macro_rules! ouch_messages {
    (
        $(#[$enum_meta:meta])*
        $enum:ident, $parse:ident, $types:ident;
        $(
            $(#[$meta:meta])*
            $kind:literal $name:ident = $spec:literal, $size:literal, $tail:ident {
                $($(#[$row_meta:meta])* $offset:literal => $field:ident: $ty:ty, $label:literal;)*
            }
        )*
    ) => {
        $(
            wire_struct! {
                $(#[$meta])*
                pub struct $name = $spec, $size {
                    0 => kind: Char, "Type";
                    $($(#[$row_meta])* $offset => $field: $ty, $label;)*
                }
            }

            impl $name {
                /// The message type byte.
                pub const KIND: u8 = $kind;
                /// A message with its type set, all else blank.
                pub const NEW: $name = {
                    let mut new = $name::BLANK;
                    new.kind = Char($kind);
                    new
                };
            }
        )*

        $(#[$enum_meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $enum<'a> {
            $(#[doc = concat!("`", $spec, "`.")] $name(&'a $name),)*
        }

        /// Reads one whole message and its options.
        #[inline]
        pub fn $parse(bytes: &[u8]) -> Result<($enum<'_>, Options<'_>), Malformed> {
            let &[kind, ..] = bytes else { return Err(Malformed::truncated(1, 0)) };
            match kind {
                $($kind => {
                    let (message, rest) = prefix(bytes)?;
                    Ok(($enum::$name(message), Options::read($size, rest, Tail::$tail)?))
                })*
                unknown => Err(Malformed::UnknownType(unknown)),
            }
        }

        impl<'a> $enum<'a> {
            /// The bytes of its layout, without the appendage.
            pub fn as_bytes(self) -> &'a [u8] {
                match self {
                    $($enum::$name(m) => m.as_bytes(),)*
                }
            }

            /// Its name in the specification.
            pub fn name(self) -> &'static str {
                match self {
                    $($enum::$name(_) => $name::NAME,)*
                }
            }

            /// The message type byte.
            pub fn kind(self) -> u8 {
                match self {
                    $($enum::$name(_) => $kind,)*
                }
            }

            /// The fields of its layout in wire order, named as in the specification.
            pub fn visit(self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
                match self {
                    $($enum::$name(m) => m.visit(f),)*
                }
            }

            /// Whether the length of the appendage is on the wire even without options.
            pub fn always_has_appendage(self) -> bool {
                match self {
                    $($enum::$name(_) => matches!(Tail::$tail, Tail::Always),)*
                }
            }
        }

        /// Type byte, name and size (without appendage) of every message of this direction.
        pub const $types: &[(u8, &str, usize)] = &[$(($kind, $spec, $size),)*];
    };
}

ouch_messages! {
    /// One message of a client, in place.
    Inbound, parse_inbound, INBOUND_TYPES;

    /// A new order. OUCH 5.0, "Enter Order Message".
    b'O' EnterOrder = "EnterOrder", 45, Always {
        /// Unique on the port and strictly increasing through the day.
        1 => user_ref_num: U32, "UserRefNum";
        /// See [`OrderSide`].
        5 => side: Char, "Side";
        /// Shares, above 0 and at most [`QUANTITY_MAX`].
        6 => quantity: U32, "Quantity";
        10 => symbol: Alpha<8>, "Symbol";
        18 => price: Price4Wide, "Price";
        /// See [`TimeInForce`].
        26 => time_in_force: Char, "TimeInForce";
        /// See [`Display`].
        27 => display: Char, "Display";
        /// See [`Capacity`].
        28 => capacity: Char, "Capacity";
        /// `Y`, `N`.
        29 => iso_eligible: Char, "IntermarketSweepEligibility";
        /// See [`CrossType`].
        30 => cross_type: Char, "CrossType";
        /// Free text, echoed.
        31 => cl_ord_id: Alpha<14>, "ClOrdID";
    }

    /// An order in the place of another one; always loses its priority. OUCH 5.0, "Replace Order Request".
    b'U' ReplaceOrder = "ReplaceOrder", 38, Always {
        1 => orig_user_ref_num: U32, "OrigUserRefNum";
        5 => user_ref_num: U32, "UserRefNum";
        /// Shares of the whole chain, executed ones included.
        9 => quantity: U32, "Quantity";
        13 => price: Price4Wide, "Price";
        /// See [`TimeInForce`].
        21 => time_in_force: Char, "TimeInForce";
        /// See [`Display`].
        22 => display: Char, "Display";
        /// `Y`, `N`.
        23 => iso_eligible: Char, "IntermarketSweepEligibility";
        /// Free text, echoed.
        24 => cl_ord_id: Alpha<14>, "ClOrdID";
    }

    /// Less of an order, or none of it. OUCH 5.0, "Cancel Order Request".
    b'X' CancelOrder = "CancelOrder", 9, Maybe {
        1 => user_ref_num: U32, "UserRefNum";
        /// The new intended size, executed shares included; 0 cancels what is open.
        5 => quantity: U32, "Quantity";
    }

    /// Another side of selling, or less of an order, without loss of priority. OUCH 5.0, "Modify Order
    /// Request".
    b'M' ModifyOrder = "ModifyOrder", 10, Maybe {
        1 => user_ref_num: U32, "UserRefNum";
        /// `S` may become `E` or `T`, `E` may become `T`; see [`OrderSide`].
        5 => side: Char, "Side";
        /// The new intended size, executed shares included.
        6 => quantity: U32, "Quantity";
    }

    /// Cancels the orders of a firm, in one instrument or all. OUCH 5.0 after 2023-05, "Mass Cancel Request".
    b'C' MassCancel = "MassCancel", 17, Maybe {
        /// Unique on the port and strictly increasing through the day, like that of an order.
        1 => user_ref_num: U32, "UserRefNum";
        5 => firm: Alpha<4>, "Firm";
        /// Spaces: every instrument.
        9 => symbol: Alpha<8>, "Symbol";
    }

    /// Cancels nothing, but refuses new orders of a firm. OUCH 5.0 after 2023-05, "Disable Order Entry
    /// Request".
    b'D' DisableOrderEntry = "DisableOrderEntry", 9, Maybe {
        1 => user_ref_num: U32, "UserRefNum";
        5 => firm: Alpha<4>, "Firm";
    }

    /// Takes orders of a firm again. OUCH 5.0 after 2023-05, "Enable Order Entry Request".
    b'E' EnableOrderEntry = "EnableOrderEntry", 9, Maybe {
        1 => user_ref_num: U32, "UserRefNum";
        5 => firm: Alpha<4>, "Firm";
    }

    /// Asks for the next number to use. OUCH 5.0, "Account Query Request".
    b'Q' AccountQuery = "AccountQuery", 1, Maybe {
    }
}

ouch_messages! {
    /// One message of the host, in place.
    Outbound, parse_outbound, OUTBOUND_TYPES;

    /// A milestone of the day. OUCH 5.0, "System Event Message".
    b'S' SystemEvent = "SystemEvent", 10, Maybe {
        1 => timestamp: U64, "Timestamp";
        /// See [`EventCode`].
        9 => event: Char, "EventCode";
    }

    /// An order was accepted, perhaps with better terms than sent. OUCH 5.0, "Order Accepted Message".
    b'A' OrderAccepted = "OrderAccepted", 62, Always {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        /// See [`OrderSide`].
        13 => side: Char, "Side";
        14 => quantity: U32, "Quantity";
        18 => symbol: Alpha<8>, "Symbol";
        26 => price: Price4Wide, "Price";
        /// See [`TimeInForce`].
        34 => time_in_force: Char, "TimeInForce";
        /// See [`Display`].
        35 => display: Char, "Display";
        /// The host's number, the one of the market data feed for displayed orders.
        36 => order_ref_num: U64, "OrderReferenceNumber";
        /// See [`Capacity`].
        44 => capacity: Char, "Capacity";
        /// `Y`, `N`.
        45 => iso_eligible: Char, "IntermarketSweepEligibility";
        /// See [`CrossType`].
        46 => cross_type: Char, "CrossType";
        /// See [`OrderState`].
        47 => order_state: Char, "OrderState";
        48 => cl_ord_id: Alpha<14>, "ClOrdID";
    }

    /// An order stands in the place of another. OUCH 5.0, "Order Replaced Message".
    b'U' OrderReplaced = "OrderReplaced", 66, Always {
        1 => timestamp: U64, "Timestamp";
        9 => orig_user_ref_num: U32, "OrigUserRefNum";
        13 => user_ref_num: U32, "UserRefNum";
        /// See [`OrderSide`].
        17 => side: Char, "Side";
        /// What is open, without what the chain executed.
        18 => quantity: U32, "Quantity";
        22 => symbol: Alpha<8>, "Symbol";
        30 => price: Price4Wide, "Price";
        /// See [`TimeInForce`].
        38 => time_in_force: Char, "TimeInForce";
        /// See [`Display`].
        39 => display: Char, "Display";
        40 => order_ref_num: U64, "OrderReferenceNumber";
        /// See [`Capacity`].
        48 => capacity: Char, "Capacity";
        /// `Y`, `N`.
        49 => iso_eligible: Char, "IntermarketSweepEligibility";
        /// See [`CrossType`].
        50 => cross_type: Char, "CrossType";
        /// See [`OrderState`].
        51 => order_state: Char, "OrderState";
        52 => cl_ord_id: Alpha<14>, "ClOrdID";
    }

    /// Shares of an order were cancelled. OUCH 5.0, "Order Canceled Message".
    b'C' OrderCanceled = "OrderCanceled", 18, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        /// How many: an increment.
        13 => quantity: U32, "Quantity";
        /// See [`CancelReason`].
        17 => reason: Char, "Reason";
    }

    /// Shares were cancelled instead of matched with an order of the same firm. OUCH 5.0, "AIQ Canceled
    /// Message".
    b'D' AiqCanceled = "AIQCanceled", 32, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        /// How many: an increment.
        13 => decrement_shares: U32, "DecrementShares";
        /// `Q`.
        17 => reason: Char, "Reason";
        /// Shares that would have matched.
        18 => quantity_prevented: U32, "QuantityPreventedFromTrading";
        22 => execution_price: Price4Wide, "ExecutionPrice";
        30 => liquidity_flag: Char, "LiquidityFlag";
        /// See [`AiqStrategy`].
        31 => aiq_strategy: Char, "AIQStrategy";
    }

    /// Shares of an order were executed. OUCH 5.0, "Order Executed Message".
    b'E' OrderExecuted = "OrderExecuted", 34, Always {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        /// How many: an increment.
        13 => quantity: U32, "Quantity";
        17 => price: Price4Wide, "Price";
        /// See [`Liquidity`].
        25 => liquidity_flag: Char, "LiquidityFlag";
        /// The same on both sides of the trade.
        26 => match_number: U64, "MatchNumber";
    }

    /// An execution was broken. OUCH 5.0, "Broken Trade Message".
    b'B' BrokenTrade = "BrokenTrade", 36, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        13 => match_number: U64, "MatchNumber";
        /// See [`BrokenReason`].
        21 => reason: Char, "Reason";
        22 => cl_ord_id: Alpha<14>, "ClOrdID";
    }

    /// An order, or a replacement, was refused; its number is used up. OUCH 5.0, "Rejected Order Message".
    b'J' OrderRejected = "OrderRejected", 29, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        /// See [`reject`].
        13 => reason: U16, "Reason";
        15 => cl_ord_id: Alpha<14>, "ClOrdID";
    }

    /// An order for a cross will be cancelled after it. OUCH 5.0, "Cancel Pending Message".
    b'P' CancelPending = "CancelPending", 13, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
    }

    /// An order for a cross cannot be reduced. OUCH 5.0, "Cancel Reject Message".
    b'I' CancelReject = "CancelReject", 13, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
    }

    /// The book gave an order another place. OUCH 5.0, "Order Priority Update Message".
    b'T' OrderPriorityUpdate = "OrderPriorityUpdate", 30, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        13 => price: Price4Wide, "Price";
        /// See [`Display`].
        21 => display: Char, "Display";
        22 => order_ref_num: U64, "OrderReferenceNumber";
    }

    /// An order was modified. OUCH 5.0, "Order Modified Message".
    b'M' OrderModified = "OrderModified", 18, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        /// See [`OrderSide`].
        13 => side: Char, "Side";
        /// What is open.
        14 => quantity: U32, "Quantity";
    }

    /// What an order shows was renewed. OUCH 5.0, "Order Restated Message".
    b'R' OrderRestated = "OrderRestated", 14, Always {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        /// See [`RestatedReason`].
        13 => reason: Char, "Reason";
    }

    /// The orders of a mass cancel are being cancelled. OUCH 5.0 after 2023-05, "Mass Cancel Response".
    b'X' MassCancelResponse = "MassCancelResponse", 25, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        13 => firm: Alpha<4>, "Firm";
        17 => symbol: Alpha<8>, "Symbol";
    }

    /// New orders of a firm are refused. OUCH 5.0 after 2023-05, "Disable Order Entry Response".
    b'G' DisableOrderEntryResponse = "DisableOrderEntryResponse", 17, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        13 => firm: Alpha<4>, "Firm";
    }

    /// Orders of a firm are taken again. OUCH 5.0 after 2023-05, "Enable Order Entry Response".
    b'K' EnableOrderEntryResponse = "EnableOrderEntryResponse", 17, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => user_ref_num: U32, "UserRefNum";
        13 => firm: Alpha<4>, "Firm";
    }

    /// The next number to use. OUCH 5.0, "Account Query Response".
    b'Q' AccountQueryResponse = "AccountQueryResponse", 13, Maybe {
        1 => timestamp: U64, "Timestamp";
        9 => next_user_ref_num: U32, "NextUserRefNum";
    }
}

/// The options of a message, checked: every element lies within the appendage and has a tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    /// `rest` follows a layout of `at` bytes and ends with the message.
    fn read(at: usize, rest: &'a [u8], tail: Tail) -> Result<Options<'a>, Malformed> {
        let Some((length, rest)) = rest.split_first_chunk::<2>() else {
            return match (rest.len(), tail) {
                (0, Tail::Maybe) => Ok(Options(rest)),
                (have, _) => Err(Malformed::truncated(at + 2, at + have)),
            };
        };
        let length = usize::from(u16::from_be_bytes(*length));
        let Some(elements) = rest.get(..length) else {
            return Err(Malformed::truncated(at + 2 + length, at + 2 + rest.len()));
        };
        if rest.len() > length {
            return Err(Malformed::Trailing {
                extra: saturate(rest.len() - length),
            });
        }
        let mut walk = elements;
        while let [size, after @ ..] = walk {
            let offset = at + 2 + (elements.len() - walk.len());
            match after.get(usize::from(*size)..) {
                Some(next) if *size > 0 => walk = next,
                _ => {
                    return Err(Malformed::BadValue {
                        offset: saturate(offset),
                        value: *size,
                    });
                }
            }
        }
        Ok(Options(elements))
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The elements as they are on the wire, without the length of the appendage.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Tag and value of every option, in wire order.
    pub fn iter(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let (&[size, tag], _) = rest.split_first_chunk::<2>()?;
            let value = rest.get(2..1 + usize::from(size))?;
            rest = &rest[1 + usize::from(size)..];
            Some((tag, value))
        })
    }

    /// The value of the first option of this tag, whatever its size.
    pub fn get(self, tag: OptionTag) -> Option<&'a [u8]> {
        self.iter().find(|(t, _)| *t == tag as u8).map(|(_, value)| value)
    }

    /// The number of an option of four bytes; `None` if there is none, or of another size.
    pub fn u32(self, tag: OptionTag) -> Option<u32> {
        self.get(tag)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// The number of an option of two bytes.
    pub fn u16(self, tag: OptionTag) -> Option<u16> {
        self.get(tag)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// The character of an option of one byte.
    pub fn char(self, tag: OptionTag) -> Option<u8> {
        match self.get(tag)? {
            [c] => Some(*c),
            _ => None,
        }
    }

    /// The text of an option of four bytes.
    pub fn alpha4(self, tag: OptionTag) -> Option<Alpha<4>> {
        self.get(tag)?.try_into().ok().map(Alpha)
    }

    /// Every option by its name; one that is unknown, or has another size than its tag says, as bytes, tag
    /// first.
    pub fn visit(self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
        let mut rest = self.0;
        for (tag, value) in self.iter() {
            let element = &rest[1..2 + value.len()];
            rest = &rest[2 + value.len()..];
            match OptionTag::from_wire(tag) {
                Some(known) => known.show(value, element, f),
                None => f("Option", FieldValue::Bytes(element)),
            }
        }
    }
}

wire_enum! {
    /// Tags of options. OUCH 5.0, "Optional Appendage"; 26 to 30 after 2023-05.
    pub enum OptionTag {
        /// 8 bytes: the number of the displayed part of a reserve order.
        1 => SecondaryOrdRefNum;
        /// 4 characters: who enters the order.
        2 => Firm;
        /// 4 bytes: at least this many shares at once.
        3 => MinQty;
        /// `R` retail, `N` not.
        4 => CustomerType;
        /// 4 bytes: shares shown, the rest is reserve.
        5 => MaxFloor;
        /// `L` limit, `P` market peg, `R` primary peg, `M` midpoint, `Q` market maker, `m` midpoint.
        6 => PriceType;
        /// 4 bytes, signed, 4 decimals.
        7 => PegOffset;
        /// 8 bytes, 4 decimals.
        9 => DiscretionPrice;
        /// As [`OptionTag::PriceType`].
        10 => DiscretionPriceType;
        /// 4 bytes, signed, 4 decimals.
        11 => DiscretionPegOffset;
        /// `P` post only, `N`.
        12 => PostOnly;
        /// 4 bytes: the range of a random reserve.
        13 => RandomReserves;
        /// 4 characters.
        14 => Route;
        /// 4 bytes: seconds since midnight, below 86,400.
        15 => ExpireTime;
        /// `Y`, `N`.
        16 => TradeNow;
        /// `I`, `O`, `T`, `Q`, `B`, `D`, `R`.
        17 => HandleInst;
        /// One character: what the order did to the best price.
        18 => BboWeight;
        /// 4 bytes, [`OrderRestated`] only.
        22 => DisplayQuantity;
        /// 8 bytes, 4 decimals, [`OrderRestated`] only.
        23 => DisplayPrice;
        /// 2 bytes.
        24 => GroupId;
        /// `Y`, `N`.
        25 => SharesLocated;
        /// 4 characters.
        26 => LocateBroker;
        /// See [`OrderSide`].
        27 => Side;
        /// 1 byte: one of several series of numbers on a port.
        28 => UserRefIdx;
        /// See [`AiqStrategy`].
        29 => AiqStrategy;
        /// 2 characters: orders that must not match with each other.
        30 => AiqGroupId;
    }
}

impl OptionTag {
    /// The name in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            OptionTag::SecondaryOrdRefNum => "SecondaryOrdRefNum",
            OptionTag::Firm => "Firm",
            OptionTag::MinQty => "MinQty",
            OptionTag::CustomerType => "CustomerType",
            OptionTag::MaxFloor => "MaxFloor",
            OptionTag::PriceType => "PriceType",
            OptionTag::PegOffset => "PegOffset",
            OptionTag::DiscretionPrice => "DiscretionPrice",
            OptionTag::DiscretionPriceType => "DiscretionPriceType",
            OptionTag::DiscretionPegOffset => "DiscretionPegOffset",
            OptionTag::PostOnly => "PostOnly",
            OptionTag::RandomReserves => "RandomReserves",
            OptionTag::Route => "Route",
            OptionTag::ExpireTime => "ExpireTime",
            OptionTag::TradeNow => "TradeNow",
            OptionTag::HandleInst => "HandleInst",
            OptionTag::BboWeight => "BBOWeightIndicator",
            OptionTag::DisplayQuantity => "DisplayQuantity",
            OptionTag::DisplayPrice => "DisplayPrice",
            OptionTag::GroupId => "GroupID",
            OptionTag::SharesLocated => "SharesLocated",
            OptionTag::LocateBroker => "LocateBroker",
            OptionTag::Side => "OptionSide",
            OptionTag::UserRefIdx => "UserRefIdx",
            OptionTag::AiqStrategy => "OptionAIQStrategy",
            OptionTag::AiqGroupId => "AIQGroupID",
        }
    }

    /// Bytes of its value.
    pub const fn size(self) -> usize {
        match self {
            OptionTag::SecondaryOrdRefNum | OptionTag::DiscretionPrice | OptionTag::DisplayPrice => 8,
            OptionTag::Firm
            | OptionTag::MinQty
            | OptionTag::MaxFloor
            | OptionTag::PegOffset
            | OptionTag::DiscretionPegOffset
            | OptionTag::RandomReserves
            | OptionTag::Route
            | OptionTag::ExpireTime
            | OptionTag::DisplayQuantity
            | OptionTag::LocateBroker => 4,
            OptionTag::GroupId | OptionTag::AiqGroupId => 2,
            _ => 1,
        }
    }

    fn show(self, value: &[u8], element: &[u8], f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
        let shown = match (self, value) {
            (OptionTag::UserRefIdx, [index]) => FieldValue::Unsigned((*index).into()),
            (_, [c]) if self.size() == 1 => FieldValue::Char(*c),
            (OptionTag::GroupId, &[a, b]) => FieldValue::Unsigned(u16::from_be_bytes([a, b]).into()),
            (OptionTag::Firm | OptionTag::Route | OptionTag::LocateBroker, [_, _, _, _])
            | (OptionTag::AiqGroupId, [_, _]) => FieldValue::Text(value),
            (OptionTag::PegOffset | OptionTag::DiscretionPegOffset, &[a, b, c, d]) => FieldValue::Decimal {
                mantissa: i32::from_be_bytes([a, b, c, d]).into(),
                decimals: 4,
            },
            (_, &[a, b, c, d]) if self.size() == 4 => {
                FieldValue::Unsigned(u32::from_be_bytes([a, b, c, d]).into())
            }
            (_, &[a, b, c, d, e, g, h, i]) if self.size() == 8 => {
                let number = u64::from_be_bytes([a, b, c, d, e, g, h, i]);
                match self {
                    OptionTag::SecondaryOrdRefNum => FieldValue::Unsigned(number),
                    _ => FieldValue::Decimal {
                        mantissa: number.into(),
                        decimals: 4,
                    },
                }
            }
            _ => FieldValue::Bytes(element),
        };
        f(self.name(), shown);
    }
}

/// Options to be written, in the order added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appendage {
    bytes: [u8; Appendage::SIZE_MAX],
    length: u8,
}

impl Default for Appendage {
    fn default() -> Appendage {
        Appendage::EMPTY
    }
}

impl Appendage {
    /// Bytes of options that fit: more than every option once.
    pub const SIZE_MAX: usize = 144;
    /// No options.
    pub const EMPTY: Appendage = Appendage {
        bytes: [0; Appendage::SIZE_MAX],
        length: 0,
    };

    /// With one more option. One whose value has another size than its tag says, or that does not fit, is a
    /// bug of the encoder: it is left out, and asserted in debug builds.
    #[must_use]
    pub fn with(mut self, tag: OptionTag, value: &[u8]) -> Appendage {
        let start = usize::from(self.length);
        let room = self.bytes.get_mut(start..start + 2 + value.len());
        debug_assert!(room.is_some() && value.len() == tag.size(), "{}", tag.name());
        if let Some([size, at, room @ ..]) = room
            && value.len() == tag.size()
        {
            (*size, *at) = (value.len() as u8 + 1, tag as u8);
            room.copy_from_slice(value);
            self.length += 2 + value.len() as u8;
        }
        self
    }

    /// With an option of four bytes.
    #[must_use]
    pub fn with_u32(self, tag: OptionTag, value: u32) -> Appendage {
        self.with(tag, &value.to_be_bytes())
    }

    /// With an option of one character.
    #[must_use]
    pub fn with_char(self, tag: OptionTag, value: u8) -> Appendage {
        self.with(tag, &[value])
    }

    /// The elements.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// To be read like those of a message.
    pub fn options(&self) -> Options<'_> {
        Options(self.as_bytes())
    }
}

/// Writes a layout and, with `Some`, its appendage at the start of `buffer`; gives the length, `None` if it
/// does not fit. `None` in the place of an appendage is for messages that may be without one.
pub fn encode(layout: &[u8], appendage: Option<&Appendage>, buffer: &mut [u8]) -> Option<usize> {
    let end = layout.len();
    buffer.get_mut(..end)?.copy_from_slice(layout);
    let Some(appendage) = appendage else {
        return Some(end);
    };
    let options = appendage.as_bytes();
    let tail = buffer.get_mut(end..end + 2 + options.len())?;
    tail[..2].copy_from_slice(&(options.len() as u16).to_be_bytes());
    tail[2..].copy_from_slice(options);
    Some(end + 2 + options.len())
}

/// Whether a price says that the order trades at any price.
pub fn is_market(price: Price4Wide) -> bool {
    price == MARKET_PRICE || price == MARKET_PRICE_ROUND
}

/// The field for a price, `None` for one that is negative or has more than four decimals.
pub fn price_field(price: Price) -> Option<Price4Wide> {
    Scaled::from_price(price)
}

wire_enum! {
    /// `Side` of orders.
    pub enum OrderSide {
        /// Buy.
        b'B' => Buy;
        /// Sell.
        b'S' => Sell;
        /// Sell short.
        b'T' => SellShort;
        /// Sell short exempt.
        b'E' => SellShortExempt;
    }
}

impl OrderSide {
    /// The side of the book.
    pub const fn side(self) -> Side {
        match self {
            OrderSide::Buy => Side::Bid,
            _ => Side::Ask,
        }
    }

    /// The plain side of a side of the book.
    pub const fn of(side: Side) -> OrderSide {
        match side {
            Side::Bid => OrderSide::Buy,
            Side::Ask => OrderSide::Sell,
        }
    }
}

wire_enum! {
    /// `TimeInForce`.
    pub enum TimeInForce {
        /// Until the market closes.
        b'0' => Day;
        /// What does not trade at once is cancelled.
        b'3' => ImmediateOrCancel;
        /// Until the extended hours end.
        b'5' => ExtendedHours;
        /// Until [`OptionTag::ExpireTime`].
        b'6' => GoodTillTime;
        /// After hours.
        b'E' => AfterHours;
    }
}

wire_enum! {
    /// `Display`.
    pub enum Display {
        /// Shown without a name.
        b'Y' => Visible;
        /// Not shown.
        b'N' => Hidden;
        /// Shown with the firm's name.
        b'A' => Attributable;
        /// From the host only: conformant.
        b'Z' => Conformant;
    }
}

wire_enum! {
    /// `Capacity`.
    pub enum Capacity {
        /// Agency.
        b'A' => Agency;
        /// Principal.
        b'P' => Principal;
        /// Riskless principal.
        b'R' => Riskless;
        /// Other.
        b'O' => Other;
    }
}

wire_enum! {
    /// `CrossType`: where the order trades.
    pub enum CrossType {
        /// Continuous market.
        b'N' => Continuous;
        /// Opening cross.
        b'O' => Opening;
        /// Closing cross.
        b'C' => Closing;
        /// Cross of an IPO or after a halt.
        b'H' => HaltOrIpo;
        /// Supplemental order.
        b'S' => Supplemental;
        /// Retail (BX).
        b'R' => Retail;
        /// Extended life.
        b'E' => ExtendedLife;
        /// After-hours close.
        b'A' => AfterHoursClose;
    }
}

wire_enum! {
    /// `OrderState`.
    pub enum OrderState {
        /// In the market.
        b'L' => Live;
        /// Accepted and cancelled at once; nothing more follows.
        b'D' => Dead;
    }
}

wire_enum! {
    /// `EventCode` of [`SystemEvent`].
    pub enum EventCode {
        /// Orders are taken from now on.
        b'S' => StartOfDay;
        /// No more orders.
        b'E' => EndOfDay;
    }
}

wire_enum! {
    /// `Reason` of [`OrderCanceled`].
    pub enum CancelReason {
        /// Regulatory restriction.
        b'D' => Regulatory;
        /// Closed.
        b'E' => Closed;
        /// Post only, would have been slid by the national best price.
        b'F' => PostOnlyNms;
        /// Post only, would have traded or been slid.
        b'G' => PostOnly;
        /// Halted.
        b'H' => Halted;
        /// Immediate or cancel.
        b'I' => ImmediateOrCancel;
        /// Market collars.
        b'K' => Collars;
        /// Would have matched with an order of the same firm.
        b'Q' => SelfMatch;
        /// A supervisor.
        b'S' => Supervisory;
        /// Its time is over.
        b'T' => Timeout;
        /// By request.
        b'U' => User;
        /// Open protection.
        b'X' => OpenProtection;
        /// The host.
        b'Z' => System;
        /// Direct listing with capital raise.
        b'e' => DirectListing;
    }
}

wire_enum! {
    /// `Reason` of [`BrokenTrade`].
    pub enum BrokenReason {
        /// Clearly erroneous.
        b'E' => Erroneous;
        /// Both sides agreed.
        b'C' => Consent;
        /// A supervisor.
        b'S' => Supervisory;
        /// Another market.
        b'X' => External;
    }
}

wire_enum! {
    /// `Reason` of [`OrderRestated`].
    pub enum RestatedReason {
        /// The shown part of a reserve order was renewed.
        b'R' => ReserveRefresh;
        /// The displayed price changed.
        b'P' => DisplayedPrice;
    }
}

wire_enum! {
    /// `LiquidityFlag`; the list is not complete.
    pub enum Liquidity {
        /// Added.
        b'A' => Added;
        /// Removed.
        b'R' => Removed;
        /// Not displayed, added.
        b'J' => HiddenAdded;
        /// Midpoint, added.
        b'k' => MidpointAdded;
        /// Midpoint, removed.
        b'm' => MidpointRemoved;
        /// Opening cross.
        b'O' => OpeningCross;
        /// Closing cross.
        b'C' => ClosingCross;
        /// Halt or IPO cross.
        b'H' => HaltCross;
    }
}

wire_enum! {
    /// Of two orders of one firm that would match, what is cancelled. The values are ours: the list is not in
    /// our sources.
    pub enum AiqStrategy {
        /// Nothing: they match.
        b'N' => None;
        /// The smaller quantity, from both.
        b'D' => Decrement;
        /// The older order.
        b'O' => CancelOldest;
        /// The newer order.
        b'Y' => CancelNewest;
        /// Both.
        b'B' => CancelBoth;
    }
}

/// `Reason` of [`OrderRejected`]. OUCH 5.0, "Appendix C"; reasons this module has no use for are left out.
pub mod reject {
    /// No quote to price the order by.
    pub const QUOTE_UNAVAILABLE: u16 = 1;
    /// The market is closed.
    pub const CLOSED: u16 = 2;
    /// `Display` has no such value, or not for this order.
    pub const DISPLAY: u16 = 3;
    /// `MaxFloor` is out of range.
    pub const MAX_FLOOR: u16 = 4;
    /// The peg type is not supported.
    pub const PEG_TYPE: u16 = 5;
    /// Halted.
    pub const HALTED: u16 = 7;
    /// `Side` has no such value.
    pub const SIDE: u16 = 9;
    /// The host could not handle the order.
    pub const PROCESSING_ERROR: u16 = 10;
    /// The firm may not use this port.
    pub const FIRM: u16 = 12;
    /// `MinQty` is out of range.
    pub const MIN_QTY: u16 = 13;
    /// Anything else.
    pub const OTHER: u16 = 15;
    /// The shares of a cross cannot be cancelled now.
    pub const CANCEL_NOT_ALLOWED: u16 = 16;
    /// The order would cross where it must not.
    pub const CROSSED: u16 = 18;
    /// The quantity is 0 or too large.
    pub const QUANTITY: u16 = 19;
    /// Not as an order for a cross.
    pub const CROSS_ORDER: u16 = 20;
    /// The order cannot be replaced now.
    pub const REPLACE_NOT_ALLOWED: u16 = 21;
    /// No such instrument.
    pub const SYMBOL: u16 = 23;
    /// The price is out of range or not a multiple of the tick.
    pub const PRICE: u16 = 29;
    /// A risk limit of the port: order entry is disabled.
    pub const RISK: u16 = 32;
}
