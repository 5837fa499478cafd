//! CTA Plan quotes and trades from SIAC: CQS Pillar Multicast Output Binary 2.10a (2025-06-06) and, as far as
//! this project reads them, the trade messages of CTS 2.11b. Blocks of 2018 (CQS and CTS 1.91) have the same
//! layouts.
//!
//! ```text
//! datagram = block: header[20] message ... [0x00 where the size would be odd]
//! message:          header[26] body    [best bid appendage] [best offer appendage]
//! ```
//! Big-endian, text is ASCII padded with spaces. [`parse_block`] checks a datagram once and whole, checksum
//! included, so that the walk over its messages cannot fail; [`parse`] reads one message with the national
//! best appended to it.
//!
//! An encoder fills structs and lets the [`BlockBuilder`] set lengths, numbers within the block, padding and
//! checksum:
//! ```
//! use tickwire_wire_sip::cqs::{BlockBuilder, BlockHeader, Control, ControlType, Feed, UnixTime, parse_block};
//! use tickwire_wire_sip::layout::Pod;
//! let mut buffer = [0; 1000];
//! let time = UnixTime::from_nanos(1_775_535_399_000_000_001);
//! let mut block = BlockBuilder::new(&mut buffer, BlockHeader::at(Feed::Quotes, 7, time));
//! assert!(block.push(&[Control::new(ControlType::LineIntegrity, time).as_bytes()]));
//! let size = block.finish();
//! assert_eq!(parse_block(&buffer[..size]).unwrap().header.seq.get(), 7);
//! ```

use crate::layout::{self, Pod};
use crate::layout::{Alpha, Char, Field, FieldValue, Fields, I64, Scaled, U16, U32, U64, prefix};
use crate::{Malformed, PaddedSymbol, wire_enum, wire_struct};

mod block;
mod snapshot;

pub use block::{
    Block, BlockBuilder, BlockHeader, Delivery, Feed, Header, Messages, SnapshotHeader, Transmission,
    parse_block, parse_snapshot_block,
};
pub use snapshot::{
    ConsolidatedSnapshot, FinraSnapshot, ParticipantSnapshot, SNAPSHOT_CATEGORY, SNAPSHOT_TYPES,
    SnapshotLineIntegrity, SnapshotMessage, SnapshotMessageHeader, SnapshotMwcbLevels, SnapshotReferenceData,
    snapshot_symbol,
};

/// The largest block, in bytes.
pub const BLOCK_SIZE_MAX: usize = 1000;
/// The most messages one block can hold.
pub const MESSAGES_MAX: u8 = u8::MAX;
/// The version of today's blocks.
pub const VERSION_PILLAR: u8 = 2;
/// The version of blocks before 2020; the layouts are the same.
pub const VERSION_LEGACY: u8 = 0;
/// The version of the snapshot stream's blocks, which have a [`SnapshotHeader`].
pub const VERSION_SNAPSHOT: u8 = 11;

/// 16 bits, 2 implied decimals: at most 655.35.
pub type PriceShort = Scaled<U16, 2>;
/// 64 bits, 6 implied decimals.
pub type PriceLong = Scaled<U64, 6>;
/// Signed 64 bits, 6 implied decimals: index levels.
pub type Level = Scaled<I64, 6>;

tickwire_wire_core::wire_layout! {
    /// A time as two 32-bit numbers, shown as nanoseconds since the Unix epoch, UTC.
    #[derive(PartialEq, Eq, Hash, Debug)]
    pub struct UnixTime {
        /// Seconds since the Unix epoch, UTC.
        pub seconds: U32,
        /// Nanoseconds of the second.
        pub nanos: U32,
    }
}

impl UnixTime {
    /// The time this many nanoseconds after the epoch; what lies beyond 2106 is cut.
    pub const fn from_nanos(nanos: u64) -> UnixTime {
        UnixTime {
            seconds: U32::new((nanos / 1_000_000_000) as u32),
            nanos: U32::new((nanos % 1_000_000_000) as u32),
        }
    }

    /// Nanoseconds since the epoch. Every content of the field fits.
    #[inline(always)]
    pub const fn as_nanos(self) -> u64 {
        self.seconds.get() as u64 * 1_000_000_000 + self.nanos.get() as u64
    }
}

impl Field for UnixTime {
    const BLANK: UnixTime = UnixTime::from_nanos(0);
    fn value(&self) -> FieldValue<'_> {
        FieldValue::Unsigned(self.as_nanos())
    }
}

const fn bad(offset: u16, value: u8) -> Malformed {
    Malformed::BadValue { offset, value }
}

wire_struct! {
    /// Before every message. CQS 2.10a, "Message Header".
    pub struct MessageHeader = "MessageHeader", 26 {
        /// Of the whole message, appendages included.
        0 => length: U16, "MessageLength";
        2 => category: Char, "MessageCategory";
        3 => kind: Char, "MessageType";
        /// See [`Participant`].
        4 => participant: Char, "ParticipantID";
        /// Of the participant's matching engine, or of the SIP where it is the source.
        5 => timestamp: UnixTime, "Timestamp1";
        /// From 1 on within the block.
        13 => message_id: u8, "MessageID";
        /// To be ignored.
        14 => transaction_id: U32, "TransactionID";
        /// The participant's own; opaque.
        18 => participant_reference: I64, "ParticipantReferenceNumber";
    }
}

/// The table of the protocol.
macro_rules! cta_messages {
    ($(
        $(#[$meta:meta])*
        $category:literal $kind:literal $name:ident = $spec:literal, $size:literal {
            $($(#[$row_meta:meta])* $offset:literal => $field:ident: $ty:ty, $label:literal;)*
        }
    )*) => {
        $(
            wire_struct! {
                $(#[$meta])*
                pub struct $name = $spec, $size {
                    0 => header: MessageHeader, "Header";
                    $($(#[$row_meta])* $offset => $field: $ty, $label;)*
                }
            }

            impl $name {
                /// Category and type.
                pub const KIND: [u8; 2] = [$category, $kind];

                /// A message with length, type, participant and time set, all else blank.
                pub const fn at(participant: u8, timestamp: UnixTime) -> $name {
                    $name {
                        header: MessageHeader::new($name::KIND, $size, participant, timestamp),
                        ..$name::BLANK
                    }
                }
            }
        )*

        /// The fixed part of a message, in place.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Body<'a> {
            $(#[doc = concat!("`", $spec, "`.")] $name(&'a $name),)*
            /// A control message.
            Control(ControlType, &'a Control),
        }

        impl<'a> Body<'a> {
            #[inline]
            fn read(kind: [u8; 2], message: &'a [u8]) -> Result<(Body<'a>, &'a [u8]), Malformed> {
                match kind {
                    $([$category, $kind] => part(kind, message).map(|(m, rest)| (Body::$name(m), rest)),)*
                    [b'C', control] => {
                        let control = ControlType::from_wire(control).ok_or_else(|| unknown(kind))?;
                        part(kind, message).map(|(m, rest)| (Body::Control(control, m), rest))
                    }
                    _ => Err(unknown(kind)),
                }
            }

            /// The bytes.
            pub fn as_bytes(self) -> &'a [u8] {
                match self {
                    $(Body::$name(m) => m.as_bytes(),)*
                    Body::Control(_, m) => m.as_bytes(),
                }
            }

            /// The name in the specification.
            pub fn name(self) -> &'static str {
                match self {
                    $(Body::$name(_) => $name::NAME,)*
                    Body::Control(control, _) => control.name(),
                }
            }

            /// The message header.
            pub fn header(self) -> &'a MessageHeader {
                match self {
                    $(Body::$name(m) => &m.header,)*
                    Body::Control(_, m) => &m.header,
                }
            }

            /// The fields in wire order, named as in the specification.
            pub fn visit(self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
                match self {
                    $(Body::$name(m) => m.visit(f),)*
                    Body::Control(_, m) => m.visit(f),
                }
            }
        }

        /// Category and type, name and size without appendages of every message but controls, which are
        /// headers alone.
        pub const TYPES: &[([u8; 2], &str, usize)] = &[$(([$category, $kind], $spec, $size)),*];
    };
}

cta_messages! {
    /// An instrument of the day. CQS 2.10a, "Symbol Reference Data".
    b'A' b'S' SymbolReferenceData = "SymbolReferenceData", 209 {
        26 => symbol: Alpha<11>, "Symbol";
        37 => prior_symbol: Alpha<11>, "PriorSymbol";
        48 => primary_listing: Char, "PrimaryListingMarket";
        49 => listing_close: PriceLong, "PrimaryListingPreviousClose";
        57 => consolidated_close: PriceLong, "ConsolidatedPreviousClose";
        /// Shares: 1, 10, 40, 100.
        65 => round_lot_size: U16, "RoundLotSize";
        67 => reserved1: Char, "Reserved1";
        /// `0` not subject, `1`, `2`.
        68 => luld_tier: Char, "LULDTier";
        /// 6 implied decimals.
        69 => luld_leverage: Scaled<U32, 6>, "LULDLeverage";
        73 => test: Char, "TestIndicator";
        74 => ipo: Char, "IPOIndicator";
        75 => financial_status: Char, "FinancialStatus";
        76 => short_sale_restriction: Char, "ShortSaleRestriction";
        77 => halt_reason: Char, "HaltReason";
        78 => instrument_type: Char, "InstrumentType";
        79 => reserved2: Char, "Reserved2";
        80 => reserved3: Char, "Reserved3";
        81 => reserved4: Alpha<128>, "Reserved4";
    }

    /// A participant's quote. CQS 2.10a, "Long Quote".
    b'Q' b'L' LongQuote = "LongQuote", 87 {
        26 => symbol: Alpha<11>, "Symbol";
        /// `0` equity, `1` local issue, `2` `3` bonds.
        37 => instrument_type: Char, "InstrumentType";
        /// See [`may_be_best`]; space when the status says more.
        38 => condition: Char, "QuoteCondition";
        /// See [`SecurityStatus`].
        39 => security_status: Char, "SecurityStatus";
        40 => bid_price: PriceLong, "BidPrice";
        /// Shares; before version 2.10 round lots.
        48 => bid_size: U32, "BidSize";
        52 => offer_price: PriceLong, "OfferPrice";
        /// Shares; before version 2.10 round lots.
        60 => offer_size: U32, "OfferSize";
        /// See [`RetailInterest`].
        64 => retail_interest: Char, "RetailInterest";
        /// Space, `A` cash, `B` next day.
        65 => settlement: Char, "SettlementCondition";
        /// Space, `A` crossed, `B` locked.
        66 => market_condition: Char, "MarketCondition";
        67 => finra_mmid: Alpha<4>, "FINRAMarketMakerID";
        /// Space, `A` no change, `B` none.
        71 => finra_bbo: Char, "FINRABBOIndicator";
        /// Of the FINRA facility; else 0.
        72 => timestamp2: UnixTime, "Timestamp2";
        /// Space, `A`, `C`, `D`, `E`.
        80 => short_sale_restriction: Char, "ShortSaleRestriction";
        81 => primary_listing: Char, "PrimaryListingMarket";
        82 => financial_status: Char, "FinancialStatus";
        /// Space, `S`: made by the SIP.
        83 => sip_generated: Char, "SIPGeneratedMessage";
        /// Space, `A` bid non-executable, `B` offer non-executable.
        84 => luld: Char, "LULDIndicator";
        /// See [`NationalLuld`].
        85 => national_luld: Char, "NationalBBOLULDIndicator";
        /// See [`effects`].
        86 => national_bbo: Char, "NationalBBOIndicator";
    }

    /// A participant's quote in few bytes. CQS 2.10a, "Short Quote". (The public dissector gives it a symbol
    /// of 11 bytes.)
    b'Q' b'Q' ShortQuote = "ShortQuote", 41 {
        26 => symbol: Alpha<5>, "Symbol";
        31 => bid_price: PriceShort, "BidPrice";
        33 => bid_size: U16, "BidSize";
        35 => offer_price: PriceShort, "OfferPrice";
        37 => offer_size: U16, "OfferSize";
        39 => primary_listing: Char, "PrimaryListingMarket";
        /// See [`effects`].
        40 => national_bbo: Char, "NationalBBOIndicator";
    }

    /// A quote of a FINRA market maker with the best of FINRA's. CQS 2.10a, "Special Long Quote".
    b'Q' b'S' SpecialLongQuote = "SpecialLongQuote", 120 {
        26 => symbol: Alpha<11>, "Symbol";
        /// `0` equity, `1` local issue, `2` `3` bonds.
        37 => instrument_type: Char, "InstrumentType";
        /// See [`may_be_best`].
        38 => condition: Char, "QuoteCondition";
        /// See [`SecurityStatus`].
        39 => security_status: Char, "SecurityStatus";
        40 => bid_price: PriceLong, "BidPrice";
        48 => bid_size: U32, "BidSize";
        52 => offer_price: PriceLong, "OfferPrice";
        60 => offer_size: U32, "OfferSize";
        /// See [`RetailInterest`].
        64 => retail_interest: Char, "RetailInterest";
        65 => settlement: Char, "SettlementCondition";
        66 => market_condition: Char, "MarketCondition";
        67 => finra_mmid: Alpha<4>, "FINRAMarketMakerID";
        71 => finra_bid_condition: Char, "FINRABestBidQuoteCondition";
        72 => finra_bid_price: PriceLong, "FINRABestBidPrice";
        80 => finra_bid_size: U32, "FINRABestBidSize";
        84 => finra_bid_mmid: Alpha<4>, "FINRABestBidMarketMakerID";
        88 => finra_offer_condition: Char, "FINRABestOfferQuoteCondition";
        89 => finra_offer_price: PriceLong, "FINRABestOfferPrice";
        97 => finra_offer_size: U32, "FINRABestOfferSize";
        101 => finra_offer_mmid: Alpha<4>, "FINRABestOfferMarketMakerID";
        105 => timestamp2: UnixTime, "Timestamp2";
        113 => short_sale_restriction: Char, "ShortSaleRestriction";
        114 => primary_listing: Char, "PrimaryListingMarket";
        115 => financial_status: Char, "FinancialStatus";
        116 => sip_generated: Char, "SIPGeneratedMessage";
        117 => luld: Char, "FINRABBOLULDIndicator";
        /// See [`NationalLuld`].
        118 => national_luld: Char, "NationalBBOLULDIndicator";
        /// See [`effects`].
        119 => national_bbo: Char, "NationalBBOIndicator";
    }

    /// Collars of a reopening auction. CQS 2.10a, "Auction Status".
    b'Q' b'A' AuctionStatus = "AuctionStatus", 128 {
        26 => symbol: Alpha<11>, "Symbol";
        37 => instrument_type: Char, "InstrumentType";
        38 => collar_reference: PriceLong, "AuctionCollarReferencePrice";
        46 => collar_upper: PriceLong, "AuctionCollarUpperThresholdPrice";
        54 => collar_lower: PriceLong, "AuctionCollarLowerThresholdPrice";
        62 => extensions: u8, "NumberOfExtensions";
        63 => short_sale_restriction: Char, "ShortSaleRestriction";
        64 => primary_listing: Char, "PrimaryListingMarket";
        65 => financial_status: Char, "FinancialStatus";
        66 => reserved: Alpha<62>, "Reserved";
    }

    /// Levels of the market-wide circuit breaker. CQS 2.10a, "MWCB Decline Level Status".
    b'M' b'K' MwcbDeclineLevels = "MWCBDeclineLevelStatus", 51 {
        26 => level1: Level, "MWCBLevel1";
        34 => level2: Level, "MWCBLevel2";
        42 => level3: Level, "MWCBLevel3";
        50 => reserved: Char, "Reserved";
    }

    /// A level of the circuit breaker was breached. CQS 2.10a, "MWCB Status".
    b'M' b'L' MwcbStatus = "MWCBStatus", 28 {
        26 => level: Char, "MWCBLevelIndicator";
        27 => reserved: Char, "Reserved";
    }

    /// A trade. CTS 2.11b, "Fractional Long Trade".
    b'T' b'R' FractionalLongTrade = "FractionalLongTrade", 76 {
        26 => symbol: Alpha<11>, "Symbol";
        37 => instrument_type: Char, "InstrumentType";
        38 => sale_condition: Alpha<4>, "SaleCondition";
        42 => price: PriceLong, "TradePrice";
        /// Shares, 6 implied decimals.
        50 => volume: Scaled<U64, 6>, "TradeVolume";
        58 => sellers_days: u8, "SellersSaleDays";
        59 => stop_stock: Char, "StopStockIndicator";
        60 => through_exempt: Char, "TradeThroughExempt";
        61 => trf_id: Char, "TradeReportingFacilityID";
        62 => timestamp2: UnixTime, "Timestamp2";
        70 => short_sale_restriction: Char, "ShortSaleRestriction";
        71 => primary_listing: Char, "PrimaryListingMarket";
        72 => financial_status: Char, "FinancialStatus";
        73 => held_trade: Char, "HeldTradeIndicator";
        74 => consolidated_hll: Char, "ConsolidatedHighLowLast";
        75 => participant_ohll: Char, "ParticipantOpenHighLowLast";
    }

    /// A trade of whole shares, until fractional ones took its place. CTS 2.9, "Long Trade".
    b'T' b'L' LongTrade = "LongTrade", 72 {
        26 => symbol: Alpha<11>, "Symbol";
        37 => instrument_type: Char, "InstrumentType";
        38 => sale_condition: Alpha<4>, "SaleCondition";
        42 => price: PriceLong, "TradePrice";
        50 => volume: U32, "TradeVolume";
        54 => sellers_days: u8, "SellersSaleDays";
        55 => stop_stock: Char, "StopStockIndicator";
        56 => through_exempt: Char, "TradeThroughExempt";
        57 => trf_id: Char, "TradeReportingFacilityID";
        58 => timestamp2: UnixTime, "Timestamp2";
        66 => short_sale_restriction: Char, "ShortSaleRestriction";
        67 => primary_listing: Char, "PrimaryListingMarket";
        68 => financial_status: Char, "FinancialStatus";
        69 => held_trade: Char, "HeldTradeIndicator";
        70 => consolidated_hll: Char, "ConsolidatedHighLowLast";
        71 => participant_ohll: Char, "ParticipantOpenHighLowLast";
    }

    /// Trading state, indications and bands on the trade feed. CTS 2.11b, "Trading Status".
    b'T' b'S' TradingStatus = "TradingStatus", 76 {
        26 => symbol: Alpha<11>, "Symbol";
        37 => instrument_type: Char, "InstrumentType";
        38 => last_price: PriceLong, "LastPrice";
        46 => high_or_upper: PriceLong, "HighIndicationPriceOrUpperLimitPriceBand";
        54 => low_or_lower: PriceLong, "LowIndicationPriceOrLowerLimitPriceBand";
        62 => buy_volume: U32, "BuyVolume";
        66 => sell_volume: U32, "SellVolume";
        70 => security_status: Char, "SecurityStatus";
        71 => halt_reason: Char, "HaltReason";
        72 => short_sale_restriction: Char, "ShortSaleRestriction";
        73 => primary_listing: Char, "PrimaryListingMarket";
        74 => financial_status: Char, "FinancialStatus";
        75 => luld: Char, "LULDIndicator";
    }
}

wire_struct! {
    /// A control message: a header alone, always alone in its block. CQS 2.10a, "Control Messages".
    pub struct Control = "Control", 26 {
        0 => header: MessageHeader, "Header";
    }
}

impl Control {
    /// A control message of the SIP.
    pub const fn new(control: ControlType, time: UnixTime) -> Control {
        Control {
            header: MessageHeader::new([b'C', control as u8], Control::SIZE as u16, b'S', time),
        }
    }
}

impl MessageHeader {
    const fn new(kind: [u8; 2], length: u16, participant: u8, timestamp: UnixTime) -> MessageHeader {
        MessageHeader {
            length: U16::new(length),
            category: Char(kind[0]),
            kind: Char(kind[1]),
            participant: Char(participant),
            timestamp,
            message_id: 1,
            ..MessageHeader::BLANK
        }
    }
}

wire_enum! {
    /// `MessageType` of [`Control`].
    pub enum ControlType {
        /// The line's first block, numbered 0; the first block of data is 1.
        b'A' => StartOfDay;
        /// FINRA's quotes end.
        b'C' => FinraClose;
        /// The number of this block is the new value of the counter: larger than before, or 1.
        b'L' => ResetSequence;
        /// FINRA's quotes begin.
        b'O' => FinraOpen;
        /// The backup site took over.
        b'P' => BackupSiteActive;
        /// Repeats the last number and uses none; at the latest every 10 s.
        b'T' => LineIntegrity;
        /// The line's last block; its number is one more than the last.
        b'Z' => EndOfDay;
    }
}

impl ControlType {
    /// The name in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            ControlType::StartOfDay => "StartOfDay",
            ControlType::FinraClose => "FINRAClose",
            ControlType::ResetSequence => "ResetBlockSequenceNumber",
            ControlType::FinraOpen => "FINRAOpen",
            ControlType::BackupSiteActive => "DisasterRecoveryDataCenterActivation",
            ControlType::LineIntegrity => "LineIntegrity",
            ControlType::EndOfDay => "EndOfDay",
        }
    }
}

wire_struct! {
    /// A side of the national best, after the quote that changed it. CQS 2.10a, "Best Bid Long Appendage" and
    /// "Best Offer Long Appendage".
    pub struct BestLong = "BestLong", 18 {
        /// See [`Participant`].
        0 => participant: Char, "ParticipantID";
        1 => condition: Char, "QuoteCondition";
        2 => price: PriceLong, "Price";
        10 => size: U32, "Size";
        14 => finra_mmid: Alpha<4>, "FINRAMarketMakerID";
    }
}

wire_struct! {
    /// A side of the national best in few bytes. CQS 2.10a, "Best Bid Short Appendage" and "Best Offer Short
    /// Appendage".
    pub struct BestShort = "BestShort", 5 {
        /// See [`Participant`].
        0 => participant: Char, "ParticipantID";
        1 => price: PriceShort, "Price";
        3 => size: U16, "Size";
    }
}

/// What a quote does to one side of the national best.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing.
    Unchanged,
    /// The quote is the best.
    Quote,
    /// There is no best any more.
    Gone,
    /// A [`BestShort`] says the best.
    Short,
    /// A [`BestLong`] says the best.
    Long,
}

/// What a `NationalBBOIndicator` says about bid and offer; `None` for a value without meaning. Space means
/// that the quote may not be the best, `A` that it might have been; neither changes it. CQS 2.10a, "National
/// BBO Indicator".
#[inline]
pub const fn effects(indicator: u8) -> Option<(Effect, Effect)> {
    use Effect::{Gone, Long, Quote, Short, Unchanged};
    Some(match indicator {
        b' ' | b'A' => (Unchanged, Unchanged),
        b'B' => (Unchanged, Quote),
        b'C' => (Unchanged, Short),
        b'D' => (Unchanged, Long),
        b'E' => (Unchanged, Gone),
        b'F' => (Quote, Unchanged),
        b'G' => (Quote, Quote),
        b'H' => (Quote, Short),
        b'I' => (Quote, Long),
        b'J' => (Quote, Gone),
        b'K' => (Gone, Unchanged),
        b'L' => (Gone, Quote),
        b'M' => (Gone, Short),
        b'N' => (Gone, Long),
        b'O' => (Gone, Gone),
        b'P' => (Short, Unchanged),
        b'Q' => (Long, Unchanged),
        b'R' => (Short, Quote),
        b'S' => (Long, Quote),
        b'T' => (Short, Short),
        b'U' => (Long, Long),
        b'V' => (Short, Gone),
        b'W' => (Long, Gone),
        _ => return None,
    })
}

/// What a message says about one side of the national best.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Best<'a> {
    /// Nothing.
    Unchanged,
    /// The quote itself is the best.
    Quote,
    /// There is none.
    Gone,
    /// It is this.
    Short(&'a BestShort),
    /// It is this.
    Long(&'a BestLong),
}

impl<'a> Best<'a> {
    #[inline]
    fn read(effect: Effect, kind: [u8; 2], rest: &'a [u8]) -> Result<(Best<'a>, &'a [u8]), Malformed> {
        match effect {
            Effect::Unchanged => Ok((Best::Unchanged, rest)),
            Effect::Quote => Ok((Best::Quote, rest)),
            Effect::Gone => Ok((Best::Gone, rest)),
            Effect::Short => part(kind, rest).map(|(best, rest)| (Best::Short(best), rest)),
            Effect::Long => part(kind, rest).map(|(best, rest)| (Best::Long(best), rest)),
        }
    }

    /// The appendage; empty if there is none.
    pub fn as_bytes(self) -> &'a [u8] {
        match self {
            Best::Unchanged | Best::Quote | Best::Gone => &[],
            Best::Short(best) => best.as_bytes(),
            Best::Long(best) => best.as_bytes(),
        }
    }

    fn visit(self, long: [&'static str; 5], f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
        let [participant, condition, price, size, mmid] = long;
        match self {
            Best::Unchanged | Best::Quote | Best::Gone => {}
            Best::Short(best) => named(best, [participant, price, size], f),
            Best::Long(best) => named(best, [participant, condition, price, size, mmid], f),
        }
    }
}

/// Shows a part's fields under other names: bid and offer share layouts.
fn named<T: Fields, const N: usize>(
    part: &T,
    names: [&'static str; N],
    f: &mut dyn FnMut(&'static str, FieldValue<'_>),
) {
    let mut names = names.into_iter();
    part.visit(&mut |own, value| f(names.next().unwrap_or(own), value));
}

/// One message with what is appended to it, in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// The fixed part.
    pub body: Body<'a>,
    /// What it says about the national best bid.
    pub best_bid: Best<'a>,
    /// What it says about the national best offer.
    pub best_offer: Best<'a>,
}

/// Reads one message, whose own length field says where it ends. Bytes between its last part and that end are
/// ignored.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let (header, _) = prefix::<MessageHeader>(bytes)?;
    let length = usize::from(header.length.get());
    let kind = [header.category.0, header.kind.0];
    let message = bytes
        .get(..length)
        .ok_or_else(|| Malformed::truncated(length, bytes.len()))?;
    let (body, rest) = Body::read(kind, message)?;
    let [best_bid, best_offer] = match body {
        Body::LongQuote(m) => appended(kind, m.national_bbo, 86, rest)?,
        Body::ShortQuote(m) => appended(kind, m.national_bbo, 40, rest)?,
        Body::SpecialLongQuote(m) => appended(kind, m.national_bbo, 119, rest)?,
        _ => [Best::Unchanged; 2],
    };
    Ok(Message {
        body,
        best_bid,
        best_offer,
    })
}

/// What the indicator at `offset` of a quote and the `rest` of the message say about bid and offer.
#[inline(always)]
fn appended(kind: [u8; 2], indicator: Char, offset: u16, rest: &[u8]) -> Result<[Best<'_>; 2], Malformed> {
    let (bid, offer) = effects(indicator.0).ok_or(bad(offset, indicator.0))?;
    let (best_bid, rest) = Best::read(bid, kind, rest)?;
    let (best_offer, _) = Best::read(offer, kind, rest)?;
    Ok([best_bid, best_offer])
}

/// The short way of the most frequent message: a long quote and what follows it, for
/// [`LongQuote::national_best`]. `None` for any other message, and for one whose length is not that of
/// `bytes`.
#[inline(always)]
pub fn long_quote(bytes: &[u8]) -> Option<(&LongQuote, &[u8])> {
    let (m, rest) = layout::split::<LongQuote>(bytes)?;
    let is_one = [m.header.category.0, m.header.kind.0] == LongQuote::KIND;
    (is_one && usize::from(m.header.length.get()) == bytes.len()).then_some((m, rest))
}

impl LongQuote {
    /// What it and the `rest` of its message say about bid and offer of the national best.
    #[inline(always)]
    pub fn national_best<'a>(&self, rest: &'a [u8]) -> Result<[Best<'a>; 2], Malformed> {
        match self.national_bbo.0 {
            b' ' | b'A' => Ok([Best::Unchanged; 2]),
            _ => appended(LongQuote::KIND, self.national_bbo, 86, rest),
        }
    }
}

/// The next part of a message; its length field is to blame if there is not enough.
#[inline(always)]
fn part<T>(kind: [u8; 2], bytes: &[u8]) -> Result<(&T, &[u8]), Malformed>
where
    T: Pod,
{
    match prefix(bytes) {
        Ok(found) => Ok(found),
        Err(_) => Err(Malformed::length(kind[1], size_of::<T>(), bytes.len())),
    }
}

#[cold]
fn unknown(kind: [u8; 2]) -> Malformed {
    Malformed::UnknownTemplate(u16::from_be_bytes(kind))
}

impl<'a> Message<'a> {
    /// The parts in wire order, for [`BlockBuilder::push`]; an appendage that is not there is empty.
    pub fn parts(&self) -> [&'a [u8]; 3] {
        [
            self.body.as_bytes(),
            self.best_bid.as_bytes(),
            self.best_offer.as_bytes(),
        ]
    }

    /// Its name in the specification.
    pub fn name(&self) -> &'static str {
        self.body.name()
    }

    /// Category and type.
    pub fn kind(&self) -> [u8; 2] {
        let header = self.body.header();
        [header.category.0, header.kind.0]
    }

    /// Its fields in wire order, appendages included.
    pub fn visit(&self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
        self.body.visit(f);
        self.best_bid.visit(
            [
                "BestBidParticipantID",
                "BestBidQuoteCondition",
                "BestBidPrice",
                "BestBidSize",
                "BestBidFINRAMarketMakerID",
            ],
            f,
        );
        self.best_offer.visit(
            [
                "BestOfferParticipantID",
                "BestOfferQuoteCondition",
                "BestOfferPrice",
                "BestOfferSize",
                "BestOfferFINRAMarketMakerID",
            ],
            f,
        );
    }
}

/// The instrument of a message that has not been parsed: a filter reads these bytes alone. `None` for
/// messages without one.
#[inline(always)]
pub fn symbol(message: &[u8]) -> Option<PaddedSymbol> {
    let &[_, _, category, kind] = message.first_chunk::<4>()?;
    let rest = message.get(MessageHeader::SIZE..)?;
    match (category, kind) {
        (b'Q', b'L' | b'S' | b'A') | (b'A', b'S') | (b'T', b'R' | b'L' | b'S') => {
            rest.first_chunk().map(PaddedSymbol::long)
        }
        (b'Q', b'Q') => rest.first_chunk().map(PaddedSymbol::short),
        _ => None,
    }
}

/// [`symbol`] of a long quote, as most messages are; `None` of any other message.
#[inline(always)]
pub fn long_quote_symbol(message: &[u8]) -> Option<PaddedSymbol> {
    let &[_, _, category, kind] = message.first_chunk::<4>()?;
    match [category, kind] {
        LongQuote::KIND => message
            .get(MessageHeader::SIZE..)?
            .first_chunk()
            .map(PaddedSymbol::long),
        _ => None,
    }
}

/// Whether bid and offer of a quote with this `QuoteCondition` may be the national best.
#[inline]
pub const fn may_be_best(condition: u8) -> (bool, bool) {
    match condition {
        b'A' | b'B' | b'H' | b'O' | b'R' | b'W' => (true, true),
        b'E' => (false, true),
        b'F' => (true, false),
        _ => (false, false),
    }
}

wire_enum! {
    /// `ParticipantID`. The UTP plan uses other letters for some of them.
    pub enum Participant {
        /// NYSE American.
        b'A' => American;
        /// Nasdaq Texas, formerly BX.
        b'B' => NasdaqTexas;
        /// NYSE National.
        b'C' => National;
        /// FINRA, Alternative Display Facility.
        b'D' => Finra;
        /// 24X National Exchange.
        b'G' => TwentyFourX;
        /// MIAX Pearl.
        b'H' => MiaxPearl;
        /// Nasdaq ISE.
        b'I' => Ise;
        /// Cboe EDGA.
        b'J' => Edga;
        /// Cboe EDGX.
        b'K' => Edgx;
        /// Long-Term Stock Exchange.
        b'L' => Ltse;
        /// NYSE Texas.
        b'M' => NyseTexas;
        /// New York Stock Exchange.
        b'N' => Nyse;
        /// NYSE Arca.
        b'P' => Arca;
        /// The SIP itself.
        b'S' => Sip;
        /// Nasdaq.
        b'T' => Nasdaq;
        /// MEMX.
        b'U' => Memx;
        /// Investors Exchange.
        b'V' => Iex;
        /// CBOE Stock Exchange.
        b'W' => Cbsx;
        /// Nasdaq PSX.
        b'X' => Psx;
        /// Cboe BYX.
        b'Y' => Byx;
        /// Cboe BZX.
        b'Z' => Bzx;
    }
}

/// What a `SecurityStatus` means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecurityStatus {
    /// Nothing said.
    None,
    /// Halted on all markets; the byte gives the reason.
    RegulatoryHalt,
    /// Halted on the participant alone.
    NonRegulatoryHalt,
    /// A trading range indication before an opening.
    RangeIndication,
    /// Trades again.
    Resume,
    /// Not a quote but a LULD band: its lower and upper prices stand as bid and offer, 0 where removed.
    PriceBand,
}

impl SecurityStatus {
    /// The meaning of the byte, `None` if the specification has none. Of the bands `0` is new and `9`
    /// repeated.
    #[inline]
    pub const fn from_wire(byte: u8) -> Option<SecurityStatus> {
        Some(match byte {
            b' ' => SecurityStatus::None,
            b'A' | b'C' | b'D' | b'E' | b'F' | b'M' | b'N' | b'O' | b'P' | b'V' | b'1' | b'2' | b'3' => {
                SecurityStatus::RegulatoryHalt
            }
            b'I' | b'X' | b'Y' => SecurityStatus::NonRegulatoryHalt,
            b'G' => SecurityStatus::RangeIndication,
            b'T' => SecurityStatus::Resume,
            b'0' | b'9' => SecurityStatus::PriceBand,
            _ => return None,
        })
    }
}

wire_enum! {
    /// `RetailInterest`: a participant has retail price improvement interest.
    pub enum RetailInterest {
        /// None.
        b' ' => None;
        /// On the bid.
        b'A' => Bid;
        /// On the offer.
        b'B' => Offer;
        /// On both.
        b'C' => Both;
    }
}

wire_enum! {
    /// `NationalBBOLULDIndicator`; the UTP plan uses the same values.
    pub enum NationalLuld {
        /// Not applicable.
        b' ' => NotApplicable;
        /// Both sides executable.
        b'A' => Executable;
        /// Bid non-executable: it is below the lower band.
        b'B' => BidNonExecutable;
        /// Offer non-executable: it is above the upper band.
        b'C' => OfferNonExecutable;
        /// Both sides non-executable.
        b'D' => BothNonExecutable;
        /// Bid in a limit state.
        b'E' => BidLimitState;
        /// Offer in a limit state.
        b'F' => OfferLimitState;
        /// Bid in a limit state, offer non-executable.
        b'G' => BidLimitStateOfferNonExecutable;
        /// Offer in a limit state, bid non-executable.
        b'H' => OfferLimitStateBidNonExecutable;
        /// Crossed; not in a limit state.
        b'I' => Crossed;
    }
}
