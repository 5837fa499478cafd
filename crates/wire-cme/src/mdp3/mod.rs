//! CME MDP 3.0: Globex futures, options, and spot FX and cash treasuries beside them. Simple Binary Encoding,
//! schema 1, version 13 (`templates_FixBinary.xml`, 2023-04-11), little-endian.
//!
//! ```text
//! packet:   0 packet number u32   4 sending time u64   12 messages ...
//! message:  0 size u16 (its own included)   2 block length u16   4 template u16   6 schema u16   8 version u16   10 root, groups
//! ```
//! The packet number counts packets, not messages, by channel and feed. Over TCP each packet stands behind
//! its length ([`tcp`]), conflated data behind a header of its own ([`conflated`]).
//!
//! [`parse_packet`] checks the sizes of a packet once, so that the walk over its messages cannot fail;
//! [`parse`] reads one message. Root blocks and entries are given by value: see [`block`] on why they are not
//! references into the packet.
//!
//! ```
//! use tickwire_wire_cme::mdp3::{self, Body, Book, BookEntry, EventRoot, PacketBuilder, EntryType, Price9, UpdateAction};
//! use tickwire_wire_cme::layout::Pod;
//! let mut packet = [0; 128];
//! let mut builder = PacketBuilder::new(&mut packet, 7, 1_000);
//! let best = BookEntry {
//!     price: Some(Price9::of("4500.25".parse().unwrap())).into(),
//!     size: Some(12.into()).into(),
//!     security_id: 532_259.into(),
//!     level: 1,
//!     action: UpdateAction::New as u8,
//!     entry_type: EntryType::Bid.into(),
//!     ..BookEntry::BLANK
//! };
//! assert!(builder.push(|buffer| Book::encode(buffer, &EventRoot::BLANK, [best], [])));
//! let length = builder.finish();
//!
//! let packet = mdp3::parse_packet(&packet[..length])?;
//! let message = mdp3::parse(packet.messages.clone().next().unwrap())?;
//! let Body::Book(mut book) = message.body else { panic!() };
//! assert_eq!((packet.seq, book.entries.next()), (7, Some(best)));
//! # Ok::<(), tickwire_wire_cme::Malformed>(())
//! ```

mod admin;
pub mod conflated;
mod definition;
mod incremental;
mod snapshot;
pub mod tcp;
mod tick;

pub use admin::*;
pub use block::{Block, Entries, MessageHeader, Optional, Price9, Qty4, Text, Visit};
pub use definition::*;
pub use incremental::*;
pub use snapshot::*;
pub use tick::TickRule;

/// What messages are made of, [`crate::sbe`].
pub use crate::sbe as block;
pub use crate::sbe::Template;

use crate::layout::Pod;
use crate::layout::{le, prefix};
use crate::sbe::table::messages;
use crate::{Malformed, wire_enum, wire_struct};
use block::{
    GroupSize, GroupSize8Byte, MessageBuilder, NoFields, SIZE, precedes, version_of, visit_entries,
    visit_root,
};
use tickwire_market::Side;

/// The schema version encoders write.
pub const NEWEST_VERSION: u16 = 13;

messages! {
    enum Body of schema 1 behind SIZE;
    4 ChannelReset = "ChannelReset4", EventRoot, 9, decimals 9 {
        entries: ChannelResetEntry, 2, GroupSize, since 0, "NoMDEntries";
    }
    12 AdminHeartbeat = "AdminHeartbeat12", NoFields, 0, decimals 9 {}
    15 AdminLogin = "AdminLogin15", AdminLoginRoot, 1, decimals 9 {}
    16 AdminLogout = "AdminLogout16", AdminLogoutRoot, 180, decimals 9 {}
    30 SecurityStatus = "SecurityStatus30", SecurityStatusRoot, 30, decimals 9 {}
    37 Volume = "MDIncrementalRefreshVolume37", EventRoot, 11, decimals 9 {
        entries: VolumeEntry, 16, GroupSize, since 0, "NoMDEntries";
    }
    39 QuoteRequest = "QuoteRequest39", QuoteRequestRoot, 35, decimals 9 {
        related: QuoteRequestEntry, 32, GroupSize, since 0, "NoRelatedSym";
    }
    46 Book = "MDIncrementalRefreshBook46", EventRoot, 11, decimals 9 {
        entries: BookEntry, 32, GroupSize, since 0, "NoMDEntries";
        orders: OrderEntry, 24, GroupSize8Byte, since 0, "NoOrderIDEntries";
    }
    47 OrderBook = "MDIncrementalRefreshOrderBook47", EventRoot, 11, decimals 9 {
        entries: OrderBookEntry, 40, GroupSize, since 0, "NoMDEntries";
    }
    48 TradeSummary = "MDIncrementalRefreshTradeSummary48", EventRoot, 11, decimals 9 {
        entries: TradeEntry, 32, GroupSize, since 0, "NoMDEntries";
        orders: TradeOrderEntry, 16, GroupSize8Byte, since 0, "NoOrderIDEntries";
    }
    49 DailyStatistics = "MDIncrementalRefreshDailyStatistics49", EventRoot, 11, decimals 9 {
        entries: DailyStatisticsEntry, 32, GroupSize, since 0, "NoMDEntries";
    }
    50 LimitsBanding = "MDIncrementalRefreshLimitsBanding50", EventRoot, 11, decimals 9 {
        entries: LimitsEntry, 32, GroupSize, since 0, "NoMDEntries";
    }
    51 SessionStatistics = "MDIncrementalRefreshSessionStatistics51", EventRoot, 11, decimals 9 {
        entries: SessionStatisticsEntry, 24, GroupSize, since 0, "NoMDEntries";
    }
    52 Snapshot = "SnapshotFullRefresh52", SnapshotRoot, 59, decimals 9 {
        entries: SnapshotEntry, 22, GroupSize, since 0, "NoMDEntries";
    }
    53 SnapshotOrders = "SnapshotFullRefreshOrderBook53", SnapshotOrdersRoot, 28, decimals 9 {
        entries: SnapshotOrderEntry, 29, GroupSize, since 0, "NoMDEntries";
    }
    54 Future = "MDInstrumentDefinitionFuture54", FutureRoot, 224, decimals 9 {
        events: EventEntry, 9, GroupSize, since 0, "NoEvents";
        feed_types: FeedTypeEntry, 4, GroupSize, since 0, "NoMDFeedTypes";
        attributes: AttributeEntry, 4, GroupSize, since 0, "NoInstAttrib";
        lot_type_rules: LotTypeRule, 5, GroupSize, since 0, "NoLotTypeRules";
    }
    55 OptionDefinition = "MDInstrumentDefinitionOption55", OptionRoot, 221, decimals 9 {
        events: EventEntry, 9, GroupSize, since 0, "NoEvents";
        feed_types: FeedTypeEntry, 4, GroupSize, since 0, "NoMDFeedTypes";
        attributes: AttributeEntry, 4, GroupSize, since 0, "NoInstAttrib";
        lot_type_rules: LotTypeRule, 5, GroupSize, since 0, "NoLotTypeRules";
        underlyings: Underlying, 24, GroupSize, since 0, "NoUnderlyings";
        related: RelatedInstrument, 24, GroupSize, since 0, "NoRelatedInstruments";
    }
    56 Spread = "MDInstrumentDefinitionSpread56", SpreadRoot, 255, decimals 9 {
        events: EventEntry, 9, GroupSize, since 0, "NoEvents";
        feed_types: FeedTypeEntry, 4, GroupSize, since 0, "NoMDFeedTypes";
        attributes: AttributeEntry, 4, GroupSize, since 0, "NoInstAttrib";
        lot_type_rules: LotTypeRule, 5, GroupSize, since 0, "NoLotTypeRules";
        legs: Leg, 18, GroupSize, since 0, "NoLegs";
    }
    57 FixedIncome = "MDInstrumentDefinitionFixedIncome57", FixedIncomeRoot, 338, decimals 9 {
        events: EventEntry, 9, GroupSize, since 0, "NoEvents";
        feed_types: FeedTypeEntry, 4, GroupSize, since 0, "NoMDFeedTypes";
        attributes: AttributeEntry, 4, GroupSize, since 0, "NoInstAttrib";
        lot_type_rules: LotTypeRule, 5, GroupSize, since 0, "NoLotTypeRules";
    }
    58 Repo = "MDInstrumentDefinitionRepo58", RepoRoot, 276, decimals 9 {
        events: EventEntry, 9, GroupSize, since 0, "NoEvents";
        feed_types: FeedTypeEntry, 4, GroupSize, since 0, "NoMDFeedTypes";
        attributes: AttributeEntry, 4, GroupSize, since 0, "NoInstAttrib";
        lot_type_rules: LotTypeRule, 5, GroupSize, since 0, "NoLotTypeRules";
        underlyings: RepoUnderlying, 118, GroupSize, since 0, "NoUnderlyings";
        related: RepoRelatedInstrument, 32, GroupSize, since 0, "NoRelatedInstruments";
        broken_dates: BrokenDate, 16, GroupSize, since 13, "NoBrokenDates";
    }
    59 TopOrders = "SnapshotRefreshTopOrders59", TopOrdersRoot, 13, decimals 9 {
        entries: TopOrderEntry, 29, GroupSize, since 0, "NoMDEntries";
    }
    60 Workup = "SecurityStatusWorkup60", WorkupRoot, 30, decimals 9 {
        orders: WorkupOrderEntry, 10, GroupSize, since 0, "NoOrderIDEntries";
    }
    61 TcpSnapshot = "SnapshotFullRefreshTCP61", TcpSnapshotRoot, 37, decimals 9 {
        entries: TcpSnapshotEntry, 26, GroupSize, since 0, "NoMDEntries";
    }
    62 CollateralMarketValue = "CollateralMarketValue62", EventRoot, 11, decimals 9 {
        entries: CollateralEntry, 40, GroupSize, since 0, "NoMDEntries";
    }
    63 Fx = "MDInstrumentDefinitionFX63", FxRoot, 337, decimals 9 {
        events: EventEntry, 9, GroupSize, since 0, "NoEvents";
        feed_types: FeedTypeEntry, 4, GroupSize, since 0, "NoMDFeedTypes";
        attributes: AttributeEntry, 4, GroupSize, since 0, "NoInstAttrib";
        lot_type_rules: FxLotTypeRule, 9, GroupSize, since 0, "NoLotTypeRules";
        trading_sessions: TradingSession, 18, GroupSize, since 0, "NoTradingSessions";
    }
    64 BookLongQty = "MDIncrementalRefreshBookLongQty64", EventRoot, 11, decimals 9 {
        entries: BookEntryLongQty, 32, GroupSize, since 0, "NoMDEntries";
        orders: OrderEntry, 24, GroupSize8Byte, since 0, "NoOrderIDEntries";
    }
    65 TradeSummaryLongQty = "MDIncrementalRefreshTradeSummaryLongQty65", EventRoot, 11, decimals 9 {
        entries: TradeEntryLongQty, 40, GroupSize, since 0, "NoMDEntries";
        orders: TradeOrderEntry, 16, GroupSize8Byte, since 0, "NoOrderIDEntries";
    }
    66 VolumeLongQty = "MDIncrementalRefreshVolumeLongQty66", EventRoot, 11, decimals 9 {
        entries: VolumeEntryLongQty, 24, GroupSize, since 0, "NoMDEntries";
    }
    67 SessionStatisticsLongQty = "MDIncrementalRefreshSessionStatisticsLongQty67", EventRoot, 11, decimals 9 {
        entries: SessionStatisticsEntryLongQty, 32, GroupSize, since 0, "NoMDEntries";
    }
    68 TcpSnapshotLongQty = "SnapshotFullRefreshTCPLongQty68", TcpSnapshotRoot, 37, decimals 9 {
        entries: SnapshotEntryLongQty, 23, GroupSize, since 0, "NoMDEntries";
    }
    69 SnapshotLongQty = "SnapshotFullRefreshLongQty69", SnapshotRoot, 59, decimals 9 {
        entries: SnapshotEntryLongQty, 23, GroupSize, since 0, "NoMDEntries";
    }
    // Of versions 2 to 9, prices with 7 decimals. The layouts are those of their successors unless there is
    // one of their own; fields that came with version 10 or later are not theirs.
    27 Future27 = "MDInstrumentDefinitionFuture27", FutureRoot, 216, decimals 7 {
        events: EventEntry, 9, GroupSize, since 0, "NoEvents";
        feed_types: FeedTypeEntry, 4, GroupSize, since 0, "NoMDFeedTypes";
        attributes: AttributeEntry, 4, GroupSize, since 0, "NoInstAttrib";
        lot_type_rules: LotTypeRule, 5, GroupSize, since 0, "NoLotTypeRules";
    }
    29 Spread29 = "MDInstrumentDefinitionSpread29", SpreadRoot, 195, decimals 7 {
        events: EventEntry, 9, GroupSize, since 0, "NoEvents";
        feed_types: FeedTypeEntry, 4, GroupSize, since 0, "NoMDFeedTypes";
        attributes: AttributeEntry, 4, GroupSize, since 0, "NoInstAttrib";
        lot_type_rules: LotTypeRule, 5, GroupSize, since 0, "NoLotTypeRules";
        legs: Leg, 18, GroupSize, since 0, "NoLegs";
    }
    32 Book32 = "MDIncrementalRefreshBook32", EventRoot, 11, decimals 7 {
        entries: BookEntry, 32, GroupSize, since 0, "NoMDEntries";
        orders: OrderEntry, 24, GroupSize8Byte, since 7, "NoOrderIDEntries";
    }
    33 DailyStatistics33 = "MDIncrementalRefreshDailyStatistics33", EventRoot, 11, decimals 7 {
        entries: DailyStatisticsEntry, 32, GroupSize, since 0, "NoMDEntries";
    }
    34 LimitsBanding34 = "MDIncrementalRefreshLimitsBanding34", EventRoot, 11, decimals 7 {
        entries: LimitsEntry, 32, GroupSize, since 0, "NoMDEntries";
    }
    35 SessionStatistics35 = "MDIncrementalRefreshSessionStatistics35", EventRoot, 11, decimals 7 {
        entries: SessionStatisticsEntry, 24, GroupSize, since 0, "NoMDEntries";
    }
    36 Trade36 = "MDIncrementalRefreshTrade36", EventRoot, 11, decimals 7 {
        entries: TradeEntry36, 32, GroupSize, since 0, "NoMDEntries";
    }
    38 Snapshot38 = "SnapshotFullRefresh38", SnapshotRoot, 59, decimals 7 {
        entries: SnapshotEntry, 22, GroupSize, since 0, "NoMDEntries";
    }
    41 Option41 = "MDInstrumentDefinitionOption41", OptionRoot, 213, decimals 7 {
        events: EventEntry, 9, GroupSize, since 0, "NoEvents";
        feed_types: FeedTypeEntry, 4, GroupSize, since 0, "NoMDFeedTypes";
        attributes: AttributeEntry, 4, GroupSize, since 0, "NoInstAttrib";
        lot_type_rules: LotTypeRule, 5, GroupSize, since 0, "NoLotTypeRules";
        underlyings: Underlying, 24, GroupSize, since 0, "NoUnderlyings";
        related: RelatedInstrument, 24, GroupSize, since 7, "NoRelatedInstruments";
    }
    42 TradeSummary42 = "MDIncrementalRefreshTradeSummary42", EventRoot, 11, decimals 7 {
        entries: TradeEntry42, 32, GroupSize, since 0, "NoMDEntries";
        orders: TradeOrderEntry, 16, GroupSize8Byte, since 0, "NoOrderIDEntries";
    }
    43 OrderBook43 = "MDIncrementalRefreshOrderBook43", EventRoot, 11, decimals 7 {
        entries: OrderBookEntry, 40, GroupSize, since 0, "NoMDEntries";
    }
    44 SnapshotOrders44 = "SnapshotFullRefreshOrderBook44", SnapshotOrdersRoot, 28, decimals 7 {
        entries: SnapshotOrderEntry, 29, GroupSize, since 0, "NoMDEntries";
    }
}

/// One message, in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// Its template and version.
    pub header: &'a MessageHeader,
    /// What it says.
    pub body: Body<'a>,
    /// What follows the last group we know: groups of later schema versions. Ignored.
    pub rest: &'a [u8],
}

/// Reads one message, from its header on (without the size before it). A template that is wanted quickly has
/// a `read` of its own.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let (header, body) = prefix::<MessageHeader>(bytes)?;
    if header.schema_id.get() != Body::SCHEMA {
        return Err(Malformed::BadValue {
            offset: 4,
            value: header.schema_id.get() as u8,
        });
    }
    let (body, rest) = Body::split(body, header)?;
    Ok(Message { header, body, rest })
}

/// The template of a message, without reading it further.
#[inline(always)]
pub fn template(message: &[u8]) -> Option<u16> {
    match message {
        [_, _, low, high, ..] => Some(u16::from_le_bytes([*low, *high])),
        _ => None,
    }
}

impl Message<'_> {
    /// Writes the message, size first, from its decoded fields, as its own schema version lays it out; its
    /// length, `None` if `buffer` is too small. Padding is zero, what is in `rest` is left out.
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        self.body.encode_again(buffer, *self.header)
    }

    /// Its name in the schema.
    pub fn name(&self) -> &'static str {
        self.body.name()
    }

    /// Its fields in wire order, named as in the schema. Fields that the sender's version lacks are null.
    pub fn visit(&self, f: &mut dyn FnMut(Visit<'_>)) {
        self.body.visit(f);
    }
}

wire_struct! {
    /// Before the messages of every packet. MDP 3.0, "Binary Packet Header".
    pub struct PacketHeader = "Packet", 12 {
        /// By channel and feed, plus 1 a packet; begins anew at 1 every week, and in every loop of a recovery
        /// feed.
        0 => seq: le::U32, "MsgSeqNum";
        /// Nanoseconds since the Unix epoch, UTC.
        4 => sending_time: le::U64, "SendingTime";
    }
}

/// A checked packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Its number.
    pub seq: u32,
    /// When it was sent, in nanoseconds since the Unix epoch, UTC.
    pub sending_time: u64,
    /// What it carries.
    pub messages: Messages<'a>,
}

/// Reads a packet. An error means that it is corrupt as a whole and none of its messages may be used.
#[inline]
pub fn parse_packet(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (header, rest) = prefix::<PacketHeader>(bytes)?;
    let messages = Messages::check(rest)?;
    Ok(Packet {
        seq: header.seq.get(),
        sending_time: header.sending_time.get(),
        messages,
    })
}

/// The messages of a packet in order, each from its header on: an iterator that has been checked to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Messages<'a> {
    bytes: &'a [u8],
}

/// The size of a message without root and groups, itself included.
const SIZE_MIN: usize = 2 + MessageHeader::SIZE;

impl<'a> Messages<'a> {
    /// The messages of a packet that [`parse_packet`] has found whole. Of any other the walk ends where it is
    /// broken.
    #[inline(always)]
    pub fn of_checked(packet: &'a [u8]) -> Messages<'a> {
        Messages {
            bytes: packet.get(PacketHeader::SIZE..).unwrap_or_default(),
        }
    }

    /// Messages back to back, all of `bytes`.
    #[inline]
    pub fn check(bytes: &'a [u8]) -> Result<Messages<'a>, Malformed> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let size = match rest {
                [low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
                _ => return Err(Malformed::truncated(2, rest.len())),
            };
            if size < SIZE_MIN {
                return Err(Malformed::length(0, SIZE_MIN, size));
            }
            rest = rest
                .get(size..)
                .ok_or_else(|| Malformed::truncated(size, rest.len()))?;
        }
        Ok(Messages { bytes })
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let size = self.bytes.first_chunk::<2>()?;
        let (message, rest) = self.bytes.split_at_checked(u16::from_le_bytes(*size).into())?;
        self.bytes = rest;
        message.get(2..)
    }
}

impl core::iter::FusedIterator for Messages<'_> {}

/// Builds one packet in a caller's buffer, whose size is the limit of the packet.
#[derive(Debug)]
pub struct PacketBuilder<'b> {
    buffer: &'b mut [u8],
    length: usize,
}

impl<'b> PacketBuilder<'b> {
    /// Starts a packet. The buffer must hold at least a header; the time is in nanoseconds since the Unix
    /// epoch, UTC.
    pub fn new(buffer: &'b mut [u8], seq: u32, sending_time: u64) -> PacketBuilder<'b> {
        let header = PacketHeader {
            seq: seq.into(),
            sending_time: sending_time.into(),
        };
        let length = PacketHeader::SIZE;
        assert!(
            buffer.len() >= length,
            "a packet buffer holds at least the {length} bytes of its header"
        );
        buffer[..length].copy_from_slice(header.as_bytes());
        PacketBuilder { buffer, length }
    }

    /// Appends what `encode` writes, a message with its size; `false`, and nothing changed, if it does not
    /// fit.
    #[must_use]
    pub fn push(&mut self, encode: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        match encode(&mut self.buffer[self.length..]) {
            Some(length) => {
                self.length += length;
                true
            }
            None => false,
        }
    }

    /// Completes the packet and gives its length.
    pub fn finish(self) -> usize {
        self.length
    }
}

/// Bits of `MatchEventIndicator`.
pub mod indicator {
    /// No trade of the event follows.
    pub const LAST_TRADE: u8 = 1;
    /// No volume of the event follows.
    pub const LAST_VOLUME: u8 = 1 << 1;
    /// No real book entry of the event follows.
    pub const LAST_QUOTE: u8 = 1 << 2;
    /// No statistic of the event follows.
    pub const LAST_STATISTICS: u8 = 1 << 3;
    /// No implied book entry of the event follows.
    pub const LAST_IMPLIED: u8 = 1 << 4;
    /// Sent to recover.
    pub const RECOVERY: u8 = 1 << 5;
    /// Nothing of the event follows.
    pub const END_OF_EVENT: u8 = 1 << 7;
}

/// Bits of `InstAttribValue`, those that matter to a book.
pub mod attribute {
    /// Traded electronically.
    pub const MATCH_ELIGIBLE: u32 = 1;
    /// May trade at negative prices.
    pub const NEGATIVE_PRICE: u32 = 1 << 10;
    /// Takes part in implied matching.
    pub const IMPLIED_MATCHING: u32 = 1 << 19;
    /// The lower price is the better bid.
    pub const INVERTED_BOOK: u32 = 1 << 22;
}

/// What an [`EventEntry`] of a definition dates. Schema, `EventType`.
pub mod event_type {
    /// The instrument's first day.
    pub const ACTIVATION: u8 = 5;
    /// Its last.
    pub const LAST_ELIGIBLE_TRADE_DATE: u8 = 7;
}

wire_enum! {
    /// What happens to a price level, an order of template 47, a statistic. Schema, `MDUpdateAction`.
    pub enum UpdateAction {
        /// Enters at its level; the levels behind move back by one.
        0 => New;
        /// Changes at its level, at the same price.
        1 => Change;
        /// Leaves; the levels behind move up.
        2 => Delete;
        /// All levels of the side leave.
        3 => DeleteThru;
        /// All levels from the best to this one leave.
        4 => DeleteFrom;
        /// Replaces what is at its level, the price too.
        5 => Overlay;
    }
}

wire_enum! {
    /// What happens to an order of template 46. Schema, `OrderUpdateAction`.
    pub enum OrderAction {
        /// Enters.
        0 => New;
        /// Has these values now.
        1 => Update;
        /// Leaves.
        2 => Delete;
    }
}

wire_enum! {
    /// What an entry is about. Schema, `MDEntryType` and the types derived from it.
    pub enum EntryType {
        /// A bid.
        b'0' => Bid;
        /// An offer.
        b'1' => Offer;
        /// A trade.
        b'2' => Trade;
        /// The opening price.
        b'4' => OpenPrice;
        /// The settlement price.
        b'6' => SettlementPrice;
        /// The session's highest trade.
        b'7' => HighTrade;
        /// The session's lowest trade.
        b'8' => LowTrade;
        /// The session's volume-weighted average price.
        b'9' => Vwap;
        /// Cleared volume.
        b'B' => ClearedVolume;
        /// Open interest.
        b'C' => OpenInterest;
        /// An implied bid.
        b'E' => ImpliedBid;
        /// An implied offer.
        b'F' => ImpliedOffer;
        /// All books of the channel are void.
        b'J' => BookReset;
        /// The session's highest bid.
        b'N' => HighestBid;
        /// The session's lowest offer.
        b'O' => LowestOffer;
        /// A fixing.
        b'W' => FixingPrice;
        /// The session's volume so far.
        b'e' => ElectronicVolume;
        /// Price limits.
        b'g' => Limits;
        /// The market's best offer (conflated FX).
        b'w' => MarketBestOffer;
        /// The market's best bid (conflated FX).
        b'x' => MarketBestBid;
    }
}

impl EntryType {
    /// The side of a book entry, and whether it is implied; `None` for what is not in a book.
    #[inline(always)]
    pub const fn book_side(self) -> Option<(Side, bool)> {
        match self {
            EntryType::Bid => Some((Side::Bid, false)),
            EntryType::Offer => Some((Side::Ask, false)),
            EntryType::ImpliedBid => Some((Side::Bid, true)),
            EntryType::ImpliedOffer => Some((Side::Ask, true)),
            _ => None,
        }
    }
}

wire_enum! {
    /// Whether an instrument trades. Schema, `SecurityTradingStatus` and `WorkupTradingStatus`.
    pub enum TradingStatusCode {
        /// Halted.
        2 => TradingHalt;
        /// Closed.
        4 => Close;
        /// An indicative price is formed.
        15 => NewPriceIndication;
        /// Trades.
        17 => ReadyToTrade;
        /// Not available.
        18 => NotAvailable;
        /// Unknown or invalid.
        20 => Unknown;
        /// Before the opening.
        21 => PreOpen;
        /// Before a cross.
        24 => PreCross;
        /// A cross.
        25 => Cross;
        /// After the close.
        26 => PostClose;
        /// As before.
        103 => NoChange;
        /// A workup between the parties of a trade.
        201 => PrivateWorkup;
        /// A workup open to all.
        202 => PublicWorkup;
    }
}
