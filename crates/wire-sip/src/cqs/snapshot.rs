//! Messages of the snapshot stream: category `R`, with a header and layouts of their own. CQS Pillar Snapshot
//! 2.1 (2025-06-06). No recording of them is known: the layouts are those of the public dissector.

use super::{Level, PriceLong, part, unknown};
use crate::layout::Pod;
use crate::layout::{Alpha, Char, FieldValue, Fields, Scaled, U16, U32, prefix};
use crate::{Malformed, PaddedSymbol, wire_struct};

/// The category of every message of the stream.
pub const SNAPSHOT_CATEGORY: u8 = b'R';

wire_struct! {
    /// Before every message of the snapshot stream. There is no time and no number. CQS Snapshot 2.1,
    /// "Message Header".
    pub struct SnapshotMessageHeader = "SnapshotMessageHeader", 5 {
        /// Of the whole message.
        0 => length: U16, "MessageLength";
        /// [`SNAPSHOT_CATEGORY`].
        2 => category: Char, "MessageCategory";
        3 => kind: Char, "MessageType";
        /// See [`Participant`](super::Participant).
        4 => participant: Char, "ParticipantID";
    }
}

/// The table of the stream.
macro_rules! snapshot_messages {
    ($(
        $(#[$meta:meta])*
        $kind:literal $variant:ident($name:ident) = $spec:literal, $size:literal {
            $($(#[$row_meta:meta])* $offset:literal => $field:ident: $ty:ty, $label:literal;)*
        }
    )*) => {
        $(
            wire_struct! {
                $(#[$meta])*
                pub struct $name = $spec, $size {
                    0 => header: SnapshotMessageHeader, "Header";
                    $($(#[$row_meta])* $offset => $field: $ty, $label;)*
                }
            }

            impl $name {
                /// Category and type.
                pub const KIND: [u8; 2] = [SNAPSHOT_CATEGORY, $kind];

                /// A message with length, type and participant set, all else blank.
                #[allow(clippy::needless_update, reason = "a layout may have nothing but its header")]
                pub const fn at(participant: u8) -> $name {
                    $name {
                        header: SnapshotMessageHeader {
                            length: U16::new($size),
                            category: Char(SNAPSHOT_CATEGORY),
                            kind: Char($kind),
                            participant: Char(participant),
                        },
                        ..$name::BLANK
                    }
                }
            }
        )*

        /// A message of the snapshot stream, in place.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum SnapshotMessage<'a> {
            $(#[doc = concat!("`", $spec, "`.")] $variant(&'a $name),)*
        }

        impl<'a> SnapshotMessage<'a> {
            /// Reads one message, whose own length field says where it ends. Bytes between its last field and
            /// that end are ignored.
            pub fn parse(bytes: &'a [u8]) -> Result<SnapshotMessage<'a>, Malformed> {
                let (header, _) = prefix::<SnapshotMessageHeader>(bytes)?;
                let length = usize::from(header.length.get());
                let kind = [header.category.0, header.kind.0];
                let message = bytes
                    .get(..length)
                    .ok_or_else(|| Malformed::truncated(length, bytes.len()))?;
                match kind {
                    $([SNAPSHOT_CATEGORY, $kind] => part(kind, message).map(|(m, _)| SnapshotMessage::$variant(m)),)*
                    _ => Err(unknown(kind)),
                }
            }

            /// The bytes.
            pub fn as_bytes(self) -> &'a [u8] {
                match self {
                    $(SnapshotMessage::$variant(m) => m.as_bytes(),)*
                }
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(SnapshotMessage::$variant(_) => $name::NAME,)*
                }
            }

            /// Category and type.
            pub fn kind(self) -> [u8; 2] {
                match self {
                    $(SnapshotMessage::$variant(_) => $name::KIND,)*
                }
            }

            /// The fields in wire order.
            pub fn visit(self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
                match self {
                    $(SnapshotMessage::$variant(m) => m.visit(f),)*
                }
            }
        }

        /// Category and type, name and size of every message of the snapshot stream.
        pub const SNAPSHOT_TYPES: &[([u8; 2], &str, usize)] = &[$(($name::KIND, $spec, $size)),*];
    };
}

snapshot_messages! {
    /// The stream is alive; no part of a snapshot. CQS Snapshot 2.1, "Line Integrity".
    b'T' LineIntegrity(SnapshotLineIntegrity) = "LineIntegrity", 5 {}

    /// An instrument of the day: what [`SymbolReferenceData`](super::SymbolReferenceData) says, with a
    /// shorter end. CQS Snapshot 2.1, "Symbol Reference Data".
    b'S' SymbolReferenceData(SnapshotReferenceData) = "SymbolReferenceData", 61 {
        5 => symbol: Alpha<11>, "Symbol";
        16 => prior_symbol: Alpha<11>, "PriorSymbol";
        27 => primary_listing: Char, "PrimaryListingMarket";
        28 => listing_close: PriceLong, "PrimaryListingPreviousClose";
        36 => consolidated_close: PriceLong, "ConsolidatedPreviousClose";
        /// Shares: 1, 10, 40, 100.
        44 => round_lot_size: U16, "RoundLotSize";
        46 => reserved1: Char, "Reserved1";
        /// `0` not subject, `1`, `2`.
        47 => luld_tier: Char, "LULDTier";
        /// 6 implied decimals.
        48 => luld_leverage: Scaled<U32, 6>, "LULDLeverage";
        52 => test: Char, "TestIndicator";
        53 => ipo: Char, "IPOIndicator";
        54 => financial_status: Char, "FinancialStatus";
        55 => short_sale_restriction: Char, "ShortSaleRestriction";
        56 => halt_reason: Char, "HaltReason";
        57 => instrument_type: Char, "InstrumentType";
        58 => reserved2: Char, "Reserved2";
        59 => reserved3: Char, "Reserved3";
        60 => reserved4: Char, "Reserved4";
    }

    /// Levels of the market-wide circuit breaker. CQS Snapshot 2.1, "MWCB Decline Level Status".
    b'K' MwcbDeclineLevels(SnapshotMwcbLevels) = "MWCBDeclineLevelStatusSnapshot", 30 {
        5 => level1: Level, "MWCBLevel1";
        13 => level2: Level, "MWCBLevel2";
        21 => level3: Level, "MWCBLevel3";
        29 => reserved: Char, "Reserved";
    }

    /// What holds for an instrument whoever quotes it: limit prices, the auction's collars, the national
    /// best, a halt. CQS Snapshot 2.1, "Consolidated Snapshot".
    b'C' Consolidated(ConsolidatedSnapshot) = "ConsolidatedSnapshot", 100 {
        5 => symbol: Alpha<11>, "Symbol";
        /// `0` equity, `1` local issue, `2` `3` bonds.
        16 => instrument_type: Char, "InstrumentType";
        17 => lower_limit: PriceLong, "LowerLimitPriceBand";
        25 => upper_limit: PriceLong, "UpperLimitPriceBand";
        33 => collar_reference: PriceLong, "AuctionCollarReferencePrice";
        41 => collar_upper: PriceLong, "AuctionCollarUpperThresholdPrice";
        49 => collar_lower: PriceLong, "AuctionCollarLowerThresholdPrice";
        57 => extensions: u8, "NumberOfExtensions";
        /// See [`Participant`](super::Participant).
        58 => best_bid_participant: Char, "NationalBestBidParticipantID";
        59 => best_bid_condition: Char, "NationalBestBidQuoteCondition";
        60 => best_bid_price: PriceLong, "NationalBestBidPrice";
        /// Shares.
        68 => best_bid_size: U32, "NationalBestBidSize";
        72 => best_bid_mmid: Alpha<4>, "FINRABestBidMarketMakerID";
        /// See [`Participant`](super::Participant).
        76 => best_offer_participant: Char, "NationalBestOfferParticipantID";
        77 => best_offer_condition: Char, "NationalBestOfferQuoteCondition";
        78 => best_offer_price: PriceLong, "NationalBestOfferPrice";
        /// Shares.
        86 => best_offer_size: U32, "NationalBestOfferSize";
        90 => best_offer_mmid: Alpha<4>, "FINRABestOfferMarketMakerID";
        /// See [`NationalLuld`](super::NationalLuld).
        94 => national_luld: Char, "NationalBBOLULDIndicator";
        95 => primary_listing: Char, "PrimaryListingMarket";
        96 => financial_status: Char, "FinancialStatus";
        97 => short_sale_restriction: Char, "ShortSaleRestriction";
        /// Space: not halted.
        98 => halt_reason: Char, "HaltReason";
        99 => reserved: Char, "Reserved";
    }

    /// A participant's quote. CQS Snapshot 2.1, "Participant Snapshot".
    b'P' Participant(ParticipantSnapshot) = "ParticipantSnapshot", 62 {
        5 => symbol: Alpha<11>, "Symbol";
        /// See [`may_be_best`](super::may_be_best).
        16 => condition: Char, "QuoteCondition";
        17 => bid_price: PriceLong, "BidPrice";
        /// Shares.
        25 => bid_size: U32, "BidSize";
        29 => offer_price: PriceLong, "OfferPrice";
        /// Shares.
        37 => offer_size: U32, "OfferSize";
        /// See [`RetailInterest`](super::RetailInterest).
        41 => retail_interest: Char, "RetailInterest";
        42 => settlement: Char, "SettlementCondition";
        43 => market_condition: Char, "MarketCondition";
        /// Space, `A` bid non-executable, `B` offer non-executable.
        44 => luld: Char, "LULDIndicator";
        45 => high_indication: PriceLong, "HighIndicationPrice";
        53 => low_indication: PriceLong, "LowIndicationPrice";
        /// Space: not halted.
        61 => halt_reason: Char, "HaltReason";
    }

    /// The best of FINRA's market makers. CQS Snapshot 2.1, "FINRA Snapshot".
    b'F' Finra(FinraSnapshot) = "FINRASnapshot", 68 {
        5 => symbol: Alpha<11>, "Symbol";
        16 => bid_condition: Char, "FINRABestBidQuoteCondition";
        17 => bid_price: PriceLong, "FINRABestBidPrice";
        /// Shares.
        25 => bid_size: U32, "FINRABestBidSize";
        29 => bid_mmid: Alpha<4>, "FINRABestBidMarketMakerID";
        33 => offer_condition: Char, "FINRABestOfferQuoteCondition";
        34 => offer_price: PriceLong, "FINRABestOfferPrice";
        /// Shares.
        42 => offer_size: U32, "FINRABestOfferSize";
        46 => offer_mmid: Alpha<4>, "FINRABestOfferMarketMakerID";
        50 => luld: Char, "FINRABBOLULDIndicator";
        51 => high_indication: PriceLong, "HighIndicationPrice";
        59 => low_indication: PriceLong, "LowIndicationPrice";
        /// Space: not halted.
        67 => halt_reason: Char, "HaltReason";
    }
}

/// The instrument of a message of the stream that has not been parsed. `None` for messages without one.
pub fn snapshot_symbol(message: &[u8]) -> Option<PaddedSymbol> {
    let kind = message.get(2..4)?;
    let symbol = message.get(SnapshotMessageHeader::SIZE..)?.first_chunk()?;
    matches!(kind, b"RS" | b"RC" | b"RP" | b"RF").then(|| PaddedSymbol::long(symbol))
}
