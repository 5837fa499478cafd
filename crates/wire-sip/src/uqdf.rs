//! UTP Plan quotes and trades (Nasdaq-listed instruments): UTP Data Feed Services 3.0c (2026-02), UQDF whole
//! and the trade reports of UTDF. It holds both generations of quotes: `QE QF QM`, and `QC QD QA QB` of the
//! odd-lot release.
//!
//! A message is a MoldUDP64 block and enters through [`parse`]. Big-endian, text is ASCII padded with spaces,
//! times are nanoseconds since the Unix epoch, UTC.
//!
//! ```text
//! message: header[29] body  [national best] [FINRA market makers] [best odd lots] [odd-lot level ...]
//! ```
//! Which parts follow a quote is said by indicators in its body, never by the message's length.
//!
//! An encoder fills structs and writes them one behind the other; a message that carries indicators carries
//! what they say:
//! ```
//! use tickwire_wire_sip::uqdf::{Control, ControlType, parse};
//! use tickwire_wire_sip::layout::Pod;
//! let message = Control::new(ControlType::QuoteWipeOut, b'K', 1_473_960_533_164_962_647);
//! assert_eq!(parse(message.as_bytes()).unwrap().name(), "QuoteWipeOut");
//! ```

use crate::layout::{self, Pod, slice_bytes};
use crate::layout::{Alpha, Char, FieldValue, Fields, Scaled, U16, U32, U64, prefix};
use crate::{Malformed, PaddedSymbol, wire_enum, wire_struct};

mod codes;

pub use codes::{Action, BandIndicator, Luld, NbboCondition, Originator};

/// The only `Version`.
pub const VERSION: u8 = b'1';

/// 16 bits, 2 implied decimals: at most 655.35.
pub type PriceShort = Scaled<U16, 2>;
/// 64 bits, 6 implied decimals.
pub type PriceLong = Scaled<U64, 6>;

wire_struct! {
    /// Before every message. UTP 3.0c, "Message Header".
    pub struct MessageHeader = "MessageHeader", 29 {
        /// [`VERSION`].
        0 => version: Char, "Version";
        1 => category: Char, "MessageCategory";
        2 => kind: Char, "MessageType";
        /// See [`Originator`].
        3 => originator: Char, "MarketCenterOriginatorID";
        /// The trade reporting facility, or space.
        4 => sub_market: Char, "SubMarketCenterID";
        /// Of the SIP.
        5 => sip_time: U64, "SIPTimestamp";
        /// Of the participant; 0 in what the SIP makes itself.
        13 => timestamp1: U64, "Timestamp1";
        /// To be ignored.
        21 => participant_token: U64, "ParticipantToken";
    }
}

/// The table of the protocol.
macro_rules! utp_messages {
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

                /// A message with type, originator and the SIP's time (nanoseconds since the Unix epoch) set,
                /// all else blank.
                pub const fn at(originator: u8, sip_time: u64) -> $name {
                    $name {
                        header: MessageHeader::new($name::KIND, originator, sip_time),
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
            fn read(kind: [u8; 2], bytes: &'a [u8]) -> Result<(Body<'a>, &'a [u8]), Malformed> {
                match kind {
                    $([$category, $kind] => prefix(bytes).map(|(m, rest)| (Body::$name(m), rest)),)*
                    [b'C', control] => {
                        let control = ControlType::from_wire(control).ok_or_else(|| unknown(kind))?;
                        prefix(bytes).map(|(m, rest)| (Body::Control(control, m), rest))
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

        /// Category and type, name and size of the fixed part of every message but controls, which are
        /// headers alone.
        pub const TYPES: &[([u8; 2], &str, usize)] = &[$(([$category, $kind], $spec, $size)),*];
    };
}

utp_messages! {
    /// A participant's quote in few bytes. UTP 3.0c, "UTP Participant BBO Quote Message Short Form".
    b'Q' b'E' QuoteShort = "QuoteShortForm", 48 {
        29 => symbol: Alpha<5>, "Symbol";
        34 => bid_price: PriceShort, "BidPrice";
        36 => bid_size: U16, "BidSize";
        38 => ask_price: PriceShort, "AskPrice";
        40 => ask_size: U16, "AskSize";
        /// See [`may_be_best`].
        42 => condition: Char, "QuoteCondition";
        /// Space, `E`: made by the SIP.
        43 => sip_generated: Char, "SIPGeneratedUpdate";
        /// See [`Luld`].
        44 => luld: Char, "LULDBBOIndicator";
        /// See [`RetailInterest`](crate::cqs::RetailInterest).
        45 => retail_interest: Char, "RetailInterestIndicator";
        /// See [`NbboIndicator`].
        46 => nbbo: Char, "NBBOAppendageIndicator";
        /// See [`NationalLuld`](crate::cqs::NationalLuld).
        47 => national_luld: Char, "LULDNationalBBOIndicator";
    }

    /// A participant's quote. UTP 3.0c, "UTP Participant BBO Quote Message Long Form".
    b'Q' b'F' QuoteLong = "QuoteLongForm", 79 {
        /// Of the FINRA facility; else 0.
        29 => timestamp2: U64, "Timestamp2";
        37 => symbol: Alpha<11>, "Symbol";
        48 => bid_price: PriceLong, "BidPrice";
        56 => bid_size: U32, "BidSize";
        60 => ask_price: PriceLong, "AskPrice";
        68 => ask_size: U32, "AskSize";
        /// See [`may_be_best`].
        72 => condition: Char, "QuoteCondition";
        73 => sip_generated: Char, "SIPGeneratedUpdate";
        /// See [`Luld`].
        74 => luld: Char, "LULDBBOIndicator";
        75 => retail_interest: Char, "RetailInterestIndicator";
        /// See [`NbboIndicator`].
        76 => nbbo: Char, "NBBOAppendageIndicator";
        77 => national_luld: Char, "LULDNationalBBOIndicator";
        /// See [`MpidIndicator`].
        78 => adf_mpid: Char, "FINRAADFMPIDAppendageIndicator";
    }

    /// The quote of one FINRA market maker. UTP 3.0c, "FINRA ADF Market Participant Quotation".
    b'Q' b'M' AdfQuote = "FINRAADFParticipantQuote", 77 {
        29 => timestamp2: U64, "Timestamp2";
        37 => symbol: Alpha<11>, "Symbol";
        48 => bid_price: PriceLong, "BidPrice";
        56 => bid_size: U32, "BidSize";
        60 => ask_price: PriceLong, "AskPrice";
        68 => ask_size: U32, "AskSize";
        72 => condition: Char, "QuoteCondition";
        73 => mpid: Alpha<4>, "MPID";
    }

    /// A participant's quote with its odd lots, in few bytes. UTP 3.0c, "Combined Quote Short Form".
    b'Q' b'C' CombinedShort = "CombinedQuoteShortForm", 52 {
        29 => symbol: Alpha<5>, "Symbol";
        34 => bid_price: PriceShort, "BidPrice";
        36 => bid_size: U16, "BidSize";
        38 => ask_price: PriceShort, "AskPrice";
        40 => ask_size: U16, "AskSize";
        /// See [`may_be_best`].
        42 => condition: Char, "QuoteCondition";
        43 => sip_generated: Char, "SIPGeneratedUpdate";
        /// See [`Luld`].
        44 => luld: Char, "LULDBBOIndicator";
        45 => retail_interest: Char, "RetailInterestIndicator";
        /// See [`NbboIndicator`].
        46 => nbbo: Char, "NBBOAppendageIndicator";
        47 => national_luld: Char, "LULDNationalBBOIndicator";
        /// See [`BoloIndicator`].
        48 => bolo: Char, "BOLOAppendageIndicator";
        /// See [`OddLotType`].
        49 => odd_lot_type: Char, "OddLotAppendageType";
        50 => odd_lot_count: U16, "OddLotAppendageCount";
    }

    /// A participant's quote with its odd lots. UTP 3.0c, "Combined Quote Long Form".
    b'Q' b'D' CombinedLong = "CombinedQuoteLongForm", 83 {
        29 => timestamp2: U64, "Timestamp2";
        37 => symbol: Alpha<11>, "Symbol";
        48 => bid_price: PriceLong, "BidPrice";
        56 => bid_size: U32, "BidSize";
        60 => ask_price: PriceLong, "AskPrice";
        68 => ask_size: U32, "AskSize";
        /// See [`may_be_best`].
        72 => condition: Char, "QuoteCondition";
        73 => sip_generated: Char, "SIPGeneratedUpdate";
        /// See [`Luld`].
        74 => luld: Char, "LULDBBOIndicator";
        75 => retail_interest: Char, "RetailInterestIndicator";
        /// See [`NbboIndicator`].
        76 => nbbo: Char, "NBBOAppendageIndicator";
        77 => national_luld: Char, "LULDNationalBBOIndicator";
        /// See [`MpidIndicator`].
        78 => adf_mpid: Char, "FINRAADFMPIDAppendageIndicator";
        /// See [`BoloIndicator`].
        79 => bolo: Char, "BOLOAppendageIndicator";
        /// See [`OddLotType`].
        80 => odd_lot_type: Char, "OddLotAppendageType";
        81 => odd_lot_count: U16, "OddLotAppendageCount";
    }

    /// A participant's odd lots alone, in few bytes. UTP 3.0c, "Odd Lot Quote Short Form".
    b'Q' b'A' OddLotQuoteShort = "OddLotQuoteShortForm", 39 {
        29 => symbol: Alpha<5>, "Symbol";
        34 => sip_generated: Char, "SIPGeneratedUpdate";
        /// See [`BoloIndicator`].
        35 => bolo: Char, "BOLOAppendageIndicator";
        /// See [`OddLotType`].
        36 => odd_lot_type: Char, "OddLotAppendageType";
        37 => odd_lot_count: U16, "OddLotAppendageCount";
    }

    /// A participant's odd lots alone. UTP 3.0c, "Odd Lot Quote Long Form".
    b'Q' b'B' OddLotQuoteLong = "OddLotQuoteLongForm", 53 {
        29 => timestamp2: U64, "Timestamp2";
        37 => symbol: Alpha<11>, "Symbol";
        48 => sip_generated: Char, "SIPGeneratedUpdate";
        /// See [`BoloIndicator`].
        49 => bolo: Char, "BOLOAppendageIndicator";
        /// See [`OddLotType`].
        50 => odd_lot_type: Char, "OddLotAppendageType";
        51 => odd_lot_count: U16, "OddLotAppendageCount";
    }

    /// Text for people follows. UTP 3.0c, "General Administrative Message".
    b'A' b'A' GeneralAdministrative = "GeneralAdministrative", 31 {
        29 => text_length: U16, "TextLength";
    }

    /// All markets halt, quote or trade. UTP 3.0c, "Cross SRO Trading Action".
    b'A' b'H' TradingAction = "CrossSROTradingAction", 59 {
        29 => symbol: Alpha<11>, "Symbol";
        /// See [`Action`].
        40 => action: Char, "Action";
        41 => action_seq: U32, "ActionSequenceNumber";
        45 => action_time: U64, "ActionTimestamp";
        /// As in ITCH: `T1`, `LUDP`, `MWC1`.
        53 => reason: Alpha<6>, "Reason";
    }

    /// One market halts or trades. UTP 3.0c, "Market Center Trading Action".
    b'A' b'K' MarketCenterAction = "MarketCenterTradingAction", 50 {
        29 => symbol: Alpha<11>, "Symbol";
        /// See [`Action`].
        40 => action: Char, "Action";
        41 => action_time: U64, "ActionTimestamp";
        /// See [`Originator`].
        49 => market_center: Char, "MarketCenterID";
    }

    /// An instrument of the day. UTP 3.0c, "Issue Symbol Directory".
    b'A' b'B' IssueDirectory = "IssueSymbolDirectory", 90 {
        29 => symbol: Alpha<11>, "Symbol";
        40 => old_symbol: Alpha<11>, "OldSymbol";
        51 => name: Alpha<30>, "IssueName";
        81 => issue_type: Char, "IssueType";
        82 => sub_type: Alpha<2>, "IssueSubType";
        84 => market_tier: Char, "MarketTier";
        /// `P` production, `T` test, `D`, `X`.
        85 => authenticity: Char, "Authenticity";
        86 => short_sale_threshold: Char, "ShortSaleThresholdIndicator";
        /// Shares: 1, 10, 40, 100.
        87 => round_lot_size: U16, "RoundLotSize";
        89 => financial_status: Char, "FinancialStatusIndicator";
    }

    /// Short sale restriction. UTP 3.0c, "Regulation SHO Short Sale Price Test Restricted Indicator".
    b'A' b'V' RegShoRestriction = "RegSHORestriction", 41 {
        29 => symbol: Alpha<11>, "Symbol";
        /// See `RegShoAction` of ITCH 5.0.
        40 => action: Char, "RegSHOAction";
    }

    /// Limit up and limit down prices. UTP 3.0c, "Limit Up Limit Down Price Band".
    b'A' b'P' PriceBand = "LULDPriceBand", 65 {
        29 => symbol: Alpha<11>, "Symbol";
        /// See [`BandIndicator`].
        40 => indicator: Char, "LULDPriceBandIndicator";
        41 => effective_time: U64, "LULDPriceBandEffectiveTime";
        49 => limit_down: PriceLong, "LimitDownPrice";
        57 => limit_up: PriceLong, "LimitUpPrice";
    }

    /// Levels of the market-wide circuit breaker. UTP 3.0c, "Market Wide Circuit Breaker Decline Level".
    b'A' b'C' MwcbDeclineLevels = "MWCBDeclineLevel", 53 {
        29 => level1: PriceLong, "MWCBLevel1";
        37 => level2: PriceLong, "MWCBLevel2";
        45 => level3: PriceLong, "MWCBLevel3";
    }

    /// A level of the circuit breaker was breached. UTP 3.0c, "Market Wide Circuit Breaker Status".
    b'A' b'D' MwcbStatus = "MWCBStatus", 30 {
        29 => level: Char, "MWCBStatusLevelIndicator";
    }

    /// Collars of a reopening auction. UTP 3.0c, "Auction Collar".
    b'A' b'E' AuctionCollar = "AuctionCollar", 69 {
        29 => symbol: Alpha<11>, "Symbol";
        40 => action_seq: U32, "TradingActionSequenceNumber";
        44 => reference: PriceLong, "CollarReferencePrice";
        52 => upper: PriceLong, "CollarUpPrice";
        60 => lower: PriceLong, "CollarDownPrice";
        68 => extension: Char, "CollarExtensionIndicator";
    }

    /// Closing quotes; those of each market follow. UTP 3.0c, "Session Close Recap".
    b'A' b'R' CloseRecap = "SessionCloseRecap", 77 {
        29 => symbol: Alpha<11>, "Symbol";
        40 => bid_market_center: Char, "NationalBestBidMarketCenter";
        41 => bid_price: PriceLong, "NationalBestBidPrice";
        49 => bid_size: U64, "NationalBestBidSize";
        57 => ask_market_center: Char, "NationalBestAskMarketCenter";
        58 => ask_price: PriceLong, "NationalBestAskPrice";
        66 => ask_size: U64, "NationalBestAskSize";
        74 => special_condition: Char, "SpecialCondition";
        75 => attachments: U16, "NumberOfMarketCenterAttachments";
    }

    /// A trade in few bytes. UTDF 3.0c, "Fractional Trade Report Short Form".
    b'T' b'M' TradeShort = "FractionalTradeShortForm", 67 {
        29 => timestamp2: U64, "Timestamp2";
        37 => symbol: Alpha<5>, "Symbol";
        /// Unique within originator, sub-market and symbol.
        42 => trade_id: U64, "TradeID";
        50 => price: PriceShort, "TradePrice";
        /// Shares, 6 implied decimals.
        52 => volume: Scaled<U64, 6>, "TradeVolume";
        60 => sale_condition: Alpha<4>, "SaleCondition";
        64 => through_exempt: Char, "TradeThroughExemptFlag";
        /// A digit: 1 last, 2 low, 4 high.
        65 => consolidated_change: Char, "ConsolidatedPriceChangeIndicator";
        66 => participant_change: Char, "ParticipantPriceChangeIndicator";
    }

    /// A trade. UTDF 3.0c, "Fractional Trade Report Long Form".
    b'T' b'N' TradeLong = "FractionalTradeLongForm", 81 {
        29 => timestamp2: U64, "Timestamp2";
        37 => symbol: Alpha<11>, "Symbol";
        /// Unique within originator, sub-market and symbol.
        48 => trade_id: U64, "TradeID";
        56 => price: PriceLong, "TradePrice";
        /// Shares, 6 implied decimals.
        64 => volume: Scaled<U64, 6>, "TradeVolume";
        72 => sale_condition: Alpha<4>, "SaleCondition";
        76 => through_exempt: Char, "TradeThroughExemptFlag";
        77 => sale_days: U16, "SellersSaleDays";
        79 => consolidated_change: Char, "ConsolidatedPriceChangeIndicator";
        80 => participant_change: Char, "ParticipantPriceChangeIndicator";
    }
}

wire_struct! {
    /// A control message: a header alone. UTP 3.0c, "Control Messages".
    pub struct Control = "Control", 29 {
        0 => header: MessageHeader, "Header";
    }
}

impl Control {
    /// A control message; `sip_time` in nanoseconds since the Unix epoch.
    pub const fn new(control: ControlType, originator: u8, sip_time: u64) -> Control {
        Control {
            header: MessageHeader::new([b'C', control as u8], originator, sip_time),
        }
    }
}

impl MessageHeader {
    const fn new(kind: [u8; 2], originator: u8, sip_time: u64) -> MessageHeader {
        MessageHeader {
            version: Char(VERSION),
            category: Char(kind[0]),
            kind: Char(kind[1]),
            originator: Char(originator),
            sip_time: U64::new(sip_time),
            ..MessageHeader::BLANK
        }
    }
}

wire_enum! {
    /// `MessageType` of [`Control`].
    pub enum ControlType {
        /// The first message of the day.
        b'I' => StartOfDay;
        /// The day ends.
        b'J' => EndOfDay;
        /// The session opens.
        b'O' => SessionOpen;
        /// The originator's session closes.
        b'C' => SessionClose;
        /// The last message.
        b'Z' => EndOfTransmissions;
        /// All quotes of the originator are void.
        b'P' => QuoteWipeOut;
    }
}

impl ControlType {
    /// The name in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            ControlType::StartOfDay => "StartOfDay",
            ControlType::EndOfDay => "EndOfDay",
            ControlType::SessionOpen => "MarketSessionOpen",
            ControlType::SessionClose => "MarketSessionClose",
            ControlType::EndOfTransmissions => "EndOfTransmissions",
            ControlType::QuoteWipeOut => "QuoteWipeOut",
        }
    }
}

/// The table of what follows a body.
macro_rules! appendages {
    ($(
        $(#[$meta:meta])*
        $name:ident = $spec:literal, $size:literal {
            $($(#[$row_meta:meta])* $offset:literal => $field:ident: $ty:ty, $label:literal;)*
        }
    )*) => {$(
        wire_struct! {
            $(#[$meta])*
            pub struct $name = $spec, $size {
                $($(#[$row_meta])* $offset => $field: $ty, $label;)*
            }
        }
    )*};
}

appendages! {
    /// The national best in few bytes. UTP 3.0c, "National BBO Appendage Short Form".
    NbboShort = "NBBOShortForm", 11 {
        /// See [`NbboCondition`].
        0 => condition: Char, "NBBOQuoteCondition";
        1 => bid_market_center: Char, "NationalBestBidMarketCenter";
        2 => bid_price: PriceShort, "NationalBestBidPrice";
        4 => bid_size: U16, "NationalBestBidSize";
        6 => ask_market_center: Char, "NationalBestAskMarketCenter";
        7 => ask_price: PriceShort, "NationalBestAskPrice";
        9 => ask_size: U16, "NationalBestAskSize";
    }

    /// The national best. UTP 3.0c, "National BBO Appendage Long Form".
    NbboLong = "NBBOLongForm", 27 {
        /// See [`NbboCondition`].
        0 => condition: Char, "NBBOQuoteCondition";
        1 => bid_market_center: Char, "NationalBestBidMarketCenter";
        2 => bid_price: PriceLong, "NationalBestBidPrice";
        10 => bid_size: U32, "NationalBestBidSize";
        14 => ask_market_center: Char, "NationalBestAskMarketCenter";
        15 => ask_price: PriceLong, "NationalBestAskPrice";
        23 => ask_size: U32, "NationalBestAskSize";
    }

    /// The market makers behind FINRA's quote. UTP 3.0c, "FINRA ADF MPID Appendage".
    AdfMpids = "FINRAADFMPID", 8 {
        0 => bid_mpid: Alpha<4>, "BidADFMPID";
        4 => ask_mpid: Alpha<4>, "AskADFMPID";
    }

    /// The best odd lots of all markets, in few bytes. UTP 3.0c, "BOLO Appendage Short Form".
    BoloShort = "BOLOShortForm", 10 {
        0 => bid_market_center: Char, "BOLOBidMarketCenter";
        1 => bid_price: PriceShort, "BOLOBidPrice";
        3 => bid_size: U16, "BOLOBidSize";
        5 => ask_market_center: Char, "BOLOAskMarketCenter";
        6 => ask_price: PriceShort, "BOLOAskPrice";
        8 => ask_size: U16, "BOLOAskSize";
    }

    /// The best odd lots of all markets. UTP 3.0c, "BOLO Appendage Long Form".
    BoloLong = "BOLOLongForm", 22 {
        0 => bid_market_center: Char, "BOLOBidMarketCenter";
        1 => bid_price: PriceLong, "BOLOBidPrice";
        9 => bid_size: U16, "BOLOBidSize";
        11 => ask_market_center: Char, "BOLOAskMarketCenter";
        12 => ask_price: PriceLong, "BOLOAskPrice";
        20 => ask_size: U16, "BOLOAskSize";
    }

    /// The best odd lots of all markets with FINRA's market makers. UTP 3.0c, "BOLO MPID Appendage".
    BoloMpid = "BOLOMPID", 30 {
        0 => best: BoloLong, "BOLO";
        22 => bid_mpid: Alpha<4>, "BOLOBidMPID";
        26 => ask_mpid: Alpha<4>, "BOLOAskMPID";
    }

    /// An odd-lot level in few bytes. UTP 3.0c, "Odd Lot Level Short Form".
    OddLotShort = "OddLotLevelShortForm", 6 {
        0 => market_center: Char, "OddLotMarketCenter";
        /// `B`, `A`.
        1 => side: Char, "OddLotSide";
        2 => price: PriceShort, "OddLotPrice";
        4 => size: U16, "OddLotSize";
    }

    /// An odd-lot level. UTP 3.0c, "Odd Lot Level Long Form".
    OddLotLong = "OddLotLevelLongForm", 12 {
        0 => market_center: Char, "OddLotMarketCenter";
        /// `B`, `A`.
        1 => side: Char, "OddLotSide";
        2 => price: PriceLong, "OddLotPrice";
        10 => size: U16, "OddLotSize";
    }

    /// An odd-lot level of one FINRA market maker. UTP 3.0c, "Odd Lot Level MPID".
    OddLotMpid = "OddLotLevelMPID", 16 {
        0 => level: OddLotLong, "OddLot";
        12 => mpid: Alpha<4>, "OddLotMPID";
    }

    /// One market's closing quote. UTP 3.0c, "Session Close Recap", "Market Center Close Recap Attachment".
    MarketCenterClose = "MarketCenterClose", 33 {
        0 => market_center: Char, "MarketCenterID";
        1 => bid_price: PriceLong, "MarketCenterBidPrice";
        9 => bid_size: U64, "MarketCenterBidSize";
        17 => ask_price: PriceLong, "MarketCenterAskPrice";
        25 => ask_size: U64, "MarketCenterAskSize";
    }
}

wire_enum! {
    /// `NBBOAppendageIndicator` of a quote.
    pub enum NbboIndicator {
        /// The quote does not change it.
        b'0' => Unchanged;
        /// None can be calculated any more.
        b'1' => Gone;
        /// [`NbboShort`] follows.
        b'2' => Short;
        /// [`NbboLong`] follows.
        b'3' => Long;
        /// The quote itself is both sides of it.
        b'4' => Quote;
    }
}

wire_enum! {
    /// `FINRAADFMPIDAppendageIndicator` of a quote.
    pub enum MpidIndicator {
        /// Not a quote of FINRA's.
        b' ' => NotApplicable;
        /// Unchanged.
        b'0' => Unchanged;
        /// There are none.
        b'1' => Gone;
        /// [`AdfMpids`] follows.
        b'2' => Follows;
    }
}

wire_enum! {
    /// `BOLOAppendageIndicator`: the best odd-lot order.
    pub enum BoloIndicator {
        /// Unchanged.
        b'0' => Unchanged;
        /// There is none any more.
        b'1' => Gone;
        /// [`BoloShort`] follows.
        b'2' => Short;
        /// [`BoloLong`] follows.
        b'3' => Long;
        /// [`BoloMpid`] follows.
        b'5' => Mpid;
    }
}

wire_enum! {
    /// `OddLotAppendageType`.
    pub enum OddLotType {
        /// No level follows.
        b'0' => None;
        /// [`OddLotShort`]s follow.
        b'2' => Short;
        /// [`OddLotLong`]s follow.
        b'3' => Long;
        /// [`OddLotMpid`]s follow.
        b'5' => Mpid;
    }
}

/// What a quote says about the national best.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nbbo<'a> {
    /// Nothing.
    Unchanged,
    /// There is none any more.
    Gone,
    /// It is this.
    Short(&'a NbboShort),
    /// It is this.
    Long(&'a NbboLong),
    /// The quote itself is both sides of it.
    Quote,
}

/// What a message says about the best odd lots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bolo<'a> {
    /// Nothing.
    Unchanged,
    /// There are none any more.
    Gone,
    /// They are these.
    Short(&'a BoloShort),
    /// They are these.
    Long(&'a BoloLong),
    /// They are these.
    Mpid(&'a BoloMpid),
}

/// A participant's odd-lot levels, all of one layout. Price and size 0 delete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OddLots<'a> {
    /// Nothing said.
    None,
    /// In few bytes.
    Short(&'a [OddLotShort]),
    /// With any price.
    Long(&'a [OddLotLong]),
    /// Of FINRA's market makers.
    Mpid(&'a [OddLotMpid]),
}

/// What follows the fixed part of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appendages<'a> {
    /// National best.
    pub nbbo: Nbbo<'a>,
    /// Market makers behind FINRA's quote.
    pub adf_mpids: Option<&'a AdfMpids>,
    /// Best odd lots.
    pub bolo: Bolo<'a>,
    /// Odd-lot levels.
    pub odd_lots: OddLots<'a>,
    /// Text of a [`GeneralAdministrative`].
    pub text: &'a [u8],
    /// Markets of a [`CloseRecap`].
    pub closes: &'a [MarketCenterClose],
}

impl Appendages<'_> {
    /// Nothing follows.
    pub const NONE: Appendages<'static> = Appendages {
        nbbo: Nbbo::Unchanged,
        adf_mpids: None,
        bolo: Bolo::Unchanged,
        odd_lots: OddLots::None,
        text: &[],
        closes: &[],
    };
}

/// One message with what is appended to it, in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// The fixed part.
    pub body: Body<'a>,
    /// What follows it.
    pub appendages: Appendages<'a>,
}

/// Reads one message. Bytes after its last part are ignored, as in MoldUDP64's other protocols.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
    let (header, _) = prefix::<MessageHeader>(bytes)?;
    if header.version.0 != VERSION {
        return Err(bad(0, header.version));
    }
    let (body, rest) = Body::read([header.category.0, header.kind.0], bytes)?;
    let mut tail = Tail { whole: bytes, rest };
    let appendages = match body {
        Body::QuoteShort(m) => Appendages {
            nbbo: tail.nbbo(46, m.nbbo)?,
            ..Appendages::NONE
        },
        Body::QuoteLong(m) => Appendages {
            nbbo: tail.nbbo(76, m.nbbo)?,
            adf_mpids: tail.adf_mpids(78, m.adf_mpid)?,
            ..Appendages::NONE
        },
        Body::CombinedShort(m) => m.appendages(bytes, rest)?,
        Body::CombinedLong(m) => m.appendages(bytes, rest)?,
        Body::OddLotQuoteShort(m) => m.appendages(bytes, rest)?,
        Body::OddLotQuoteLong(m) => m.appendages(bytes, rest)?,
        Body::GeneralAdministrative(m) => Appendages {
            text: tail.many(m.text_length)?,
            ..Appendages::NONE
        },
        Body::CloseRecap(m) => Appendages {
            closes: tail.many(m.attachments)?,
            ..Appendages::NONE
        },
        _ => Appendages::NONE,
    };
    Ok(Message { body, appendages })
}

/// The national best that a quote's indicator and the bytes behind its fixed part tell.
#[inline(always)]
pub fn nbbo(indicator: Char, rest: &[u8]) -> Result<Nbbo<'_>, Malformed> {
    Ok(match indicator.0 {
        b'0' => Nbbo::Unchanged,
        b'1' => Nbbo::Gone,
        b'2' => Nbbo::Short(prefix(rest)?.0),
        b'3' => Nbbo::Long(prefix(rest)?.0),
        b'4' => Nbbo::Quote,
        _ => return Err(bad(46, indicator)),
    })
}

/// The short way of a frequent message: a long quote and what follows it, for [`nbbo`]. `None` for any other
/// message, and for one that has more behind it than a national best.
#[inline(always)]
pub fn quote_long(bytes: &[u8]) -> Option<(&QuoteLong, &[u8])> {
    let (m, rest) = layout::split::<QuoteLong>(bytes)?;
    let is_one = [m.header.version.0, m.header.category.0, m.header.kind.0] == [VERSION, b'Q', b'F'];
    (is_one && matches!(m.adf_mpid.0, b' ' | b'0' | b'1')).then_some((m, rest))
}

/// The same of the other frequent message, the short quote.
#[inline(always)]
pub fn quote_short(bytes: &[u8]) -> Option<(&QuoteShort, &[u8])> {
    let (m, rest) = layout::split::<QuoteShort>(bytes)?;
    let is_one = [m.header.version.0, m.header.category.0, m.header.kind.0] == [VERSION, b'Q', b'E'];
    is_one.then_some((m, rest))
}

/// The four messages that carry odd lots, which are most of the feed since 2026.
pub trait WithOddLots: Pod {
    /// Category and type.
    const KIND: [u8; 2];

    /// The message header.
    fn header(&self) -> &MessageHeader;

    /// What the indicators say of `rest`, the bytes behind the fixed part of the message `bytes`.
    fn appendages<'a>(&self, bytes: &'a [u8], rest: &'a [u8]) -> Result<Appendages<'a>, Malformed>;
}

/// The short way of one of these: its fixed part and what follows it. `None` for any other message.
#[inline(always)]
pub fn with_odd_lots<M: WithOddLots>(bytes: &[u8]) -> Option<(&M, &[u8])> {
    let (m, rest) = layout::split::<M>(bytes)?;
    let header = m.header();
    let is_one = [header.category.0, header.kind.0] == M::KIND;
    (is_one && header.version.0 == VERSION).then_some((m, rest))
}

/// The table of the messages with odd lots: which parts their indicators tell of, and where these stand.
macro_rules! with_odd_lots {
    ($($name:ident { $($part:ident: $offset:literal $($field:ident)+;)* })*) => {$(
        impl WithOddLots for $name {
            const KIND: [u8; 2] = $name::KIND;

            #[inline(always)]
            fn header(&self) -> &MessageHeader {
                &self.header
            }

            #[inline(always)]
            fn appendages<'a>(&self, bytes: &'a [u8], rest: &'a [u8]) -> Result<Appendages<'a>, Malformed> {
                let mut tail = Tail { whole: bytes, rest };
                Ok(Appendages {
                    $($part: tail.$part($offset, $(self.$field),+)?,)*
                    ..Appendages::NONE
                })
            }
        }
    )*};
}

with_odd_lots! {
    CombinedShort {
        nbbo: 46 nbbo;
        bolo: 48 bolo;
        odd_lots: 49 odd_lot_type odd_lot_count;
    }
    CombinedLong {
        nbbo: 76 nbbo;
        adf_mpids: 78 adf_mpid;
        bolo: 79 bolo;
        odd_lots: 80 odd_lot_type odd_lot_count;
    }
    OddLotQuoteShort {
        bolo: 35 bolo;
        odd_lots: 36 odd_lot_type odd_lot_count;
    }
    OddLotQuoteLong {
        bolo: 49 bolo;
        odd_lots: 50 odd_lot_type odd_lot_count;
    }
}

/// What is left of a message. Its parts are read where they are wanted: what a call gave back would be
/// written to memory and waited for.
struct Tail<'a> {
    whole: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Tail<'a> {
    #[inline(always)]
    fn nbbo(&mut self, offset: u16, indicator: Char) -> Result<Nbbo<'a>, Malformed> {
        Ok(
            match NbboIndicator::from_wire(indicator.0).ok_or(bad(offset, indicator))? {
                NbboIndicator::Unchanged => Nbbo::Unchanged,
                NbboIndicator::Gone => Nbbo::Gone,
                NbboIndicator::Short => Nbbo::Short(self.one()?),
                NbboIndicator::Long => Nbbo::Long(self.one()?),
                NbboIndicator::Quote => Nbbo::Quote,
            },
        )
    }

    #[inline(always)]
    fn adf_mpids(&mut self, offset: u16, indicator: Char) -> Result<Option<&'a AdfMpids>, Malformed> {
        match MpidIndicator::from_wire(indicator.0).ok_or(bad(offset, indicator))? {
            MpidIndicator::NotApplicable | MpidIndicator::Unchanged | MpidIndicator::Gone => Ok(None),
            MpidIndicator::Follows => self.one().map(Some),
        }
    }

    #[inline(always)]
    fn bolo(&mut self, offset: u16, indicator: Char) -> Result<Bolo<'a>, Malformed> {
        Ok(
            match BoloIndicator::from_wire(indicator.0).ok_or(bad(offset, indicator))? {
                BoloIndicator::Unchanged => Bolo::Unchanged,
                BoloIndicator::Gone => Bolo::Gone,
                BoloIndicator::Short => Bolo::Short(self.one()?),
                BoloIndicator::Long => Bolo::Long(self.one()?),
                BoloIndicator::Mpid => Bolo::Mpid(self.one()?),
            },
        )
    }

    #[inline(always)]
    fn odd_lots(&mut self, offset: u16, indicator: Char, count: U16) -> Result<OddLots<'a>, Malformed> {
        Ok(
            match OddLotType::from_wire(indicator.0).ok_or(bad(offset, indicator))? {
                OddLotType::None => OddLots::None,
                OddLotType::Short => OddLots::Short(self.many(count)?),
                OddLotType::Long => OddLots::Long(self.many(count)?),
                OddLotType::Mpid => OddLots::Mpid(self.many(count)?),
            },
        )
    }

    #[inline(always)]
    fn one<T>(&mut self) -> Result<&'a T, Malformed>
    where
        T: Pod,
    {
        let (part, rest) = layout::split::<T>(self.rest).ok_or_else(|| self.cut(size_of::<T>()))?;
        self.rest = rest;
        Ok(part)
    }

    #[inline(always)]
    fn many<T>(&mut self, count: U16) -> Result<&'a [T], Malformed>
    where
        T: Pod,
    {
        let count = usize::from(count.get());
        let (parts, rest) =
            layout::slice_prefix::<T>(self.rest, count).ok_or_else(|| self.cut(count * size_of::<T>()))?;
        self.rest = rest;
        Ok(parts)
    }

    #[cold]
    fn cut(&self, need: usize) -> Malformed {
        Malformed::truncated(self.whole.len() - self.rest.len() + need, self.whole.len())
    }
}

const fn bad(offset: u16, value: Char) -> Malformed {
    Malformed::BadValue {
        offset,
        value: value.0,
    }
}

#[cold]
fn unknown(kind: [u8; 2]) -> Malformed {
    Malformed::UnknownTemplate(u16::from_be_bytes(kind))
}

impl<'a> Message<'a> {
    /// The parts in wire order: written one behind the other they are the message. A part that is not there
    /// is empty.
    pub fn parts(&self) -> [&'a [u8]; 5] {
        let more = &self.appendages;
        [
            self.body.as_bytes(),
            match more.nbbo {
                Nbbo::Unchanged | Nbbo::Gone | Nbbo::Quote => &[],
                Nbbo::Short(best) => best.as_bytes(),
                Nbbo::Long(best) => best.as_bytes(),
            },
            more.adf_mpids.map_or(&[], |mpids| mpids.as_bytes()),
            match more.bolo {
                Bolo::Unchanged | Bolo::Gone => &[],
                Bolo::Short(best) => best.as_bytes(),
                Bolo::Long(best) => best.as_bytes(),
                Bolo::Mpid(best) => best.as_bytes(),
            },
            match (more.odd_lots, more.closes, more.text) {
                (OddLots::Short(levels), ..) => slice_bytes(levels),
                (OddLots::Long(levels), ..) => slice_bytes(levels),
                (OddLots::Mpid(levels), ..) => slice_bytes(levels),
                (OddLots::None, [], text) => text,
                (OddLots::None, closes, _) => slice_bytes(closes),
            },
        ]
    }

    /// Writes the message; its length, `None` if `buffer` is too small.
    pub fn encode(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut at = 0;
        for part in self.parts() {
            buffer.get_mut(at..at + part.len())?.copy_from_slice(part);
            at += part.len();
        }
        Some(at)
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

    /// Its fields in wire order, appendages included; levels and markets repeat their names.
    pub fn visit(&self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
        let more = &self.appendages;
        self.body.visit(f);
        match more.nbbo {
            Nbbo::Unchanged | Nbbo::Gone | Nbbo::Quote => {}
            Nbbo::Short(best) => best.visit(f),
            Nbbo::Long(best) => best.visit(f),
        }
        if let Some(mpids) = more.adf_mpids {
            mpids.visit(f);
        }
        match more.bolo {
            Bolo::Unchanged | Bolo::Gone => {}
            Bolo::Short(best) => best.visit(f),
            Bolo::Long(best) => best.visit(f),
            Bolo::Mpid(best) => best.visit(f),
        }
        match more.odd_lots {
            OddLots::None => {}
            OddLots::Short(levels) => levels.iter().for_each(|level| level.visit(f)),
            OddLots::Long(levels) => levels.iter().for_each(|level| level.visit(f)),
            OddLots::Mpid(levels) => levels.iter().for_each(|level| level.visit(f)),
        }
        if matches!(self.body, Body::GeneralAdministrative(_)) {
            f("Text", FieldValue::Text(more.text));
        }
        more.closes.iter().for_each(|close| close.visit(f));
    }
}

/// The instrument of a message that has not been parsed: a filter reads these bytes alone. `None` for
/// messages without one.
#[inline(always)]
pub fn symbol(message: &[u8]) -> Option<PaddedSymbol> {
    let &[_, category, kind] = message.first_chunk::<3>()?;
    let long = |at: usize| message.get(at..)?.first_chunk().map(PaddedSymbol::long);
    let short = |at: usize| message.get(at..)?.first_chunk().map(PaddedSymbol::short);
    match (category, kind) {
        (b'Q', b'F' | b'D' | b'B' | b'M') | (b'T', b'N') => long(37),
        (b'Q', b'E' | b'C' | b'A') => short(29),
        (b'T', b'M') => short(37),
        (b'A', b'H' | b'K' | b'B' | b'V' | b'P' | b'E' | b'R') => long(29),
        _ => None,
    }
}

/// Whether a quote with this `QuoteCondition` may be the national best.
#[inline]
pub const fn may_be_best(condition: u8) -> bool {
    matches!(condition, b'A' | b'B' | b'H' | b'O' | b'R' | b'Y')
}
