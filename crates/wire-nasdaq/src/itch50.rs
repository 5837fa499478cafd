//! Nasdaq TotalView-ITCH 5.0 (document revision 2026-02-19; layouts unchanged since 2018) and the
//! end-of-snapshot message of GLIMPSE 5.0. The same on Nasdaq, Nasdaq Texas and PSX.
//!
//! Bytes enter through [`parse`] as one message (a MoldUDP64 block, a SoupBinTCP sequenced packet, a record
//! of an offline file) and leave as [`Message`], a reference to the bytes. Integers are unsigned and
//! big-endian, text is ASCII, padded with spaces on the right. Times are nanoseconds since midnight in New
//! York; the date is not on the wire.
//!
//! An encoder fills a struct and takes its bytes:
//! ```
//! use tickwire_wire_nasdaq::{itch50::OrderDelete, layout::Pod};
//! let message = OrderDelete { order_ref: 70_000.into(), ..OrderDelete::at(7, 34_200_000_000_000) };
//! assert_eq!(message.as_bytes(), b"D\x00\x07\x00\x00\x1F\x1A\xCE\xD9\xF0\x00\x00\x00\x00\x00\x00\x01\x11\x70");
//! ```

use crate::layout::Pod;
use crate::layout::{Alpha, Char, Digits, FieldValue, Fields, Price4, Price8, U16, U32, U48, U64, prefix};
use crate::{Malformed, wire_enum, wire_struct};
use tickwire_market::Side;

/// The longest message, in bytes ([`NetOrderImbalance`]).
pub const MESSAGE_SIZE_MAX: usize = 50;

/// The table of the protocol: every message starts with the same 11 bytes, given once here.
macro_rules! itch_messages {
    ($(
        $(#[$meta:meta])*
        $kind:literal $name:ident = $spec:literal, $size:literal {
            $($(#[$row_meta:meta])* $offset:literal => $field:ident: $ty:ty, $label:literal;)*
        }
    )*) => {
        $(
            wire_struct! {
                $(#[$meta])*
                pub struct $name = $spec, $size {
                    0 => kind: Char, "MessageType";
                    /// Index of the instrument, dense, valid for one day; 0 where no instrument is meant.
                    1 => locate: U16, "StockLocate";
                    /// Internal to Nasdaq.
                    3 => tracking: U16, "TrackingNumber";
                    /// Nanoseconds since midnight in New York.
                    5 => timestamp: U48, "Timestamp";
                    $($(#[$row_meta])* $offset => $field: $ty, $label;)*
                }
            }

            impl $name {
                /// The message type byte.
                pub const KIND: u8 = $kind;

                /// A message with its type, instrument and time (nanoseconds since midnight in New York,
                /// below 2^48) set, all else blank.
                #[inline]
                pub const fn at(locate: u16, timestamp: u64) -> $name {
                    $name {
                        kind: Char($kind),
                        locate: U16::new(locate),
                        timestamp: U48::new(timestamp),
                        ..$name::BLANK
                    }
                }
            }
        )*

        /// One message, in place.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Message<'a> {
            $(#[doc = concat!("`", $spec, "`.")] $name(&'a $name),)*
            /// `EndOfSnapshot`, GLIMPSE only.
            EndOfSnapshot(&'a EndOfSnapshot),
        }

        /// Reads one message. Bytes after the layout are ignored: the specification allows messages to grow.
        #[inline]
        pub fn parse(bytes: &[u8]) -> Result<Message<'_>, Malformed> {
            let &[kind, ..] = bytes else { return Err(Malformed::truncated(1, 0)) };
            match kind {
                $($kind => prefix(bytes).map(|(m, _)| Message::$name(m)),)*
                EndOfSnapshot::KIND => prefix(bytes).map(|(m, _)| Message::EndOfSnapshot(m)),
                unknown => Err(Malformed::UnknownType(unknown)),
            }
        }

        impl<'a> Message<'a> {
            /// The message's bytes, without any that followed the layout.
            pub fn as_bytes(self) -> &'a [u8] {
                match self {
                    $(Message::$name(m) => m.as_bytes(),)*
                    Message::EndOfSnapshot(m) => m.as_bytes(),
                }
            }

            /// Its name in the specification.
            pub fn name(self) -> &'static str {
                match self {
                    $(Message::$name(_) => $name::NAME,)*
                    Message::EndOfSnapshot(_) => EndOfSnapshot::NAME,
                }
            }

            /// The message type byte.
            pub fn kind(self) -> u8 {
                match self {
                    $(Message::$name(_) => $kind,)*
                    Message::EndOfSnapshot(_) => EndOfSnapshot::KIND,
                }
            }

            /// Its fields in wire order, named as in the specification.
            pub fn visit(self, f: &mut dyn FnMut(&'static str, FieldValue<'_>)) {
                match self {
                    $(Message::$name(m) => m.visit(f),)*
                    Message::EndOfSnapshot(m) => m.visit(f),
                }
            }
        }

        /// The size of a type's layout, `None` for a type this version does not have.
        #[inline]
        pub const fn message_size(kind: u8) -> Option<usize> {
            match kind {
                $($kind => Some($size),)*
                EndOfSnapshot::KIND => Some(EndOfSnapshot::SIZE),
                _ => None,
            }
        }

        /// Type byte, name and size of every message.
        pub const TYPES: &[(u8, &str, usize)] = &[
            $(($kind, $spec, $size),)*
            (EndOfSnapshot::KIND, EndOfSnapshot::NAME, EndOfSnapshot::SIZE),
        ];
    };
}

itch_messages! {
    /// A milestone of the day. TotalView-ITCH 5.0, "System Event Message".
    b'S' SystemEvent = "SystemEvent", 12 {
        /// See [`EventCode`].
        11 => event: Char, "EventCode";
    }

    /// An instrument of the day. TotalView-ITCH 5.0, "Stock Directory".
    b'R' StockDirectory = "StockDirectory", 39 {
        11 => stock: Alpha<8>, "Stock";
        /// See [`MarketCategory`]; space when not available.
        19 => market_category: Char, "MarketCategory";
        /// See [`FinancialStatus`]; space when not available.
        20 => financial_status: Char, "FinancialStatusIndicator";
        /// Shares.
        21 => round_lot_size: U32, "RoundLotSize";
        /// `Y`: only round lots are accepted; `N`: odd and mixed lots too.
        25 => round_lots_only: Char, "RoundLotsOnly";
        /// `A` depositary share, `B` bond, `C` common, `Q` other, `R` right, `U` unit, `W` warrant and
        /// others.
        26 => issue_classification: Char, "IssueClassification";
        /// One or two letters, for example `C` common, `E` ETF portfolio depositary receipt, `Z` not
        /// applicable.
        27 => issue_sub_type: Alpha<2>, "IssueSubType";
        /// `P` production, `T` test.
        29 => authenticity: Char, "Authenticity";
        /// `Y`, `N`, or space: not available.
        30 => short_sale_threshold: Char, "ShortSaleThresholdIndicator";
        /// `Y`, `N`, `Z` (new listing that is no IPO), or space.
        31 => ipo_flag: Char, "IPOFlag";
        /// `1`, `2`, or space: not applicable.
        32 => luld_tier: Char, "LULDReferencePriceTier";
        /// `Y`, `N`, or space.
        33 => etp_flag: Char, "ETPFlag";
        /// Cut to an integer.
        34 => etp_leverage: U32, "ETPLeverageFactor";
        /// `Y`, `N`.
        38 => inverse: Char, "InverseIndicator";
    }

    /// Trading state of an instrument. TotalView-ITCH 5.0, "Stock Trading Action".
    b'H' StockTradingAction = "StockTradingAction", 25 {
        11 => stock: Alpha<8>, "Stock";
        /// See [`TradingState`].
        19 => trading_state: Char, "TradingState";
        20 => reserved: Char, "Reserved";
        /// For example `T1  `, `LUDP`, `MWC1`; spaces when not available.
        21 => reason: Alpha<4>, "Reason";
    }

    /// Short sale restriction. TotalView-ITCH 5.0, "Reg SHO Short Sale Price Test Restricted Indicator".
    b'Y' RegShoRestriction = "RegSHORestriction", 20 {
        11 => stock: Alpha<8>, "Stock";
        /// See [`RegShoAction`].
        19 => action: Char, "RegSHOAction";
    }

    /// A market maker's standing. TotalView-ITCH 5.0, "Market Participant Position".
    b'L' MarketParticipantPosition = "MarketParticipantPosition", 26 {
        11 => mpid: Alpha<4>, "MPID";
        15 => stock: Alpha<8>, "Stock";
        /// `Y`, `N`.
        23 => primary: Char, "PrimaryMarketMaker";
        /// See [`MarketMakerMode`].
        24 => mode: Char, "MarketMakerMode";
        /// See [`ParticipantState`].
        25 => state: Char, "MarketParticipantState";
    }

    /// Levels of the market-wide circuit breaker, in index points. TotalView-ITCH 5.0, "MWCB Decline Level
    /// Message".
    b'V' MwcbDeclineLevel = "MWCBDeclineLevel", 35 {
        11 => level1: Price8, "Level1";
        19 => level2: Price8, "Level2";
        27 => level3: Price8, "Level3";
    }

    /// A level of the circuit breaker was breached. TotalView-ITCH 5.0, "MWCB Status Message".
    b'W' MwcbStatus = "MWCBStatus", 12 {
        /// `1`, `2`, `3`.
        11 => breached_level: Char, "BreachedLevel";
    }

    /// When an IPO will be released for quotation. TotalView-ITCH 5.0, "Quoting Period Update".
    b'K' IpoQuotingPeriodUpdate = "IPOQuotingPeriodUpdate", 28 {
        11 => stock: Alpha<8>, "Stock";
        /// Seconds since midnight in New York; 0 when cancelled.
        19 => release_time: U32, "IPOQuotationReleaseTime";
        /// See [`IpoQualifier`].
        23 => qualifier: Char, "IPOQuotationReleaseQualifier";
        24 => ipo_price: Price4, "IPOPrice";
    }

    /// Collars of a reopening auction. TotalView-ITCH 5.0, "Limit Up - Limit Down (LULD) Auction Collar".
    b'J' LuldAuctionCollar = "LULDAuctionCollar", 35 {
        11 => stock: Alpha<8>, "Stock";
        19 => reference_price: Price4, "AuctionCollarReferencePrice";
        23 => upper_price: Price4, "UpperAuctionCollarPrice";
        27 => lower_price: Price4, "LowerAuctionCollarPrice";
        /// How many times the auction was extended.
        31 => extension: U32, "AuctionCollarExtension";
    }

    /// One market halts or resumes an instrument for reasons of its own. TotalView-ITCH 5.0, "Operational
    /// Halt".
    b'h' OperationalHalt = "OperationalHalt", 21 {
        11 => stock: Alpha<8>, "Stock";
        /// See [`MarketCode`].
        19 => market_code: Char, "MarketCode";
        /// See [`HaltAction`].
        20 => action: Char, "OperationalHaltAction";
    }

    /// A displayed order without attribution. TotalView-ITCH 5.0, "Add Order - No MPID Attribution".
    b'A' AddOrder = "AddOrder", 36 {
        /// Unique within venue and day, not always increasing.
        11 => order_ref: U64, "OrderReferenceNumber";
        /// `B`, `S`: see [`side`].
        19 => side: Char, "BuySellIndicator";
        20 => shares: U32, "Shares";
        24 => stock: Alpha<8>, "Stock";
        32 => price: Price4, "Price";
    }

    /// A displayed order with attribution. TotalView-ITCH 5.0, "Add Order with MPID Attribution".
    b'F' AddOrderMpid = "AddOrderMPID", 40 {
        /// Unique within venue and day, not always increasing.
        11 => order_ref: U64, "OrderReferenceNumber";
        /// `B`, `S`: see [`side`].
        19 => side: Char, "BuySellIndicator";
        20 => shares: U32, "Shares";
        24 => stock: Alpha<8>, "Stock";
        32 => price: Price4, "Price";
        36 => attribution: Alpha<4>, "Attribution";
    }

    /// Shares of an order executed at its price. TotalView-ITCH 5.0, "Order Executed Message".
    b'E' OrderExecuted = "OrderExecuted", 31 {
        11 => order_ref: U64, "OrderReferenceNumber";
        19 => executed_shares: U32, "ExecutedShares";
        /// Unique within the day.
        23 => match_number: U64, "MatchNumber";
    }

    /// Shares of an order executed at another price. TotalView-ITCH 5.0, "Order Executed With Price Message".
    b'C' OrderExecutedWithPrice = "OrderExecutedWithPrice", 36 {
        11 => order_ref: U64, "OrderReferenceNumber";
        19 => executed_shares: U32, "ExecutedShares";
        /// Unique within the day.
        23 => match_number: U64, "MatchNumber";
        /// `Y`; `N`: must not count as volume, a cross trade reports it again.
        31 => printable: Char, "Printable";
        /// Never the price at which the rest of the order stands.
        32 => execution_price: Price4, "ExecutionPrice";
    }

    /// Part of an order was cancelled. TotalView-ITCH 5.0, "Order Cancel Message".
    b'X' OrderCancel = "OrderCancel", 23 {
        11 => order_ref: U64, "OrderReferenceNumber";
        /// How many are taken away.
        19 => cancelled_shares: U32, "CanceledShares";
    }

    /// An order left the book. TotalView-ITCH 5.0, "Order Delete Message".
    b'D' OrderDelete = "OrderDelete", 19 {
        11 => order_ref: U64, "OrderReferenceNumber";
    }

    /// An order was replaced and lost its place; side, stock and attribution carry over. TotalView-ITCH 5.0,
    /// "Order Replace Message".
    b'U' OrderReplace = "OrderReplace", 35 {
        11 => original_order_ref: U64, "OriginalOrderReferenceNumber";
        19 => new_order_ref: U64, "NewOrderReferenceNumber";
        /// All of the new order.
        27 => shares: U32, "Shares";
        31 => price: Price4, "Price";
    }

    /// A match against an order that was not displayed. TotalView-ITCH 5.0, "Trade Message (Non-Cross)".
    b'P' Trade = "Trade", 44 {
        /// 0 since 2010.
        11 => order_ref: U64, "OrderReferenceNumber";
        /// `B` since 2014, whatever the side.
        19 => side: Char, "BuySellIndicator";
        20 => shares: U32, "Shares";
        24 => stock: Alpha<8>, "Stock";
        32 => price: Price4, "Price";
        /// Unique within the day.
        36 => match_number: U64, "MatchNumber";
    }

    /// All of a cross at once. TotalView-ITCH 5.0, "Cross Trade Message".
    b'Q' CrossTrade = "CrossTrade", 40 {
        /// 64 bits wide; 0 when nothing crossed.
        11 => shares: U64, "Shares";
        19 => stock: Alpha<8>, "Stock";
        27 => cross_price: Price4, "CrossPrice";
        /// Unique within the day.
        31 => match_number: U64, "MatchNumber";
        /// See [`CrossType`].
        39 => cross_type: Char, "CrossType";
    }

    /// A trade was cancelled. TotalView-ITCH 5.0, "Broken Trade / Order Execution Message".
    b'B' BrokenTrade = "BrokenTrade", 19 {
        11 => match_number: U64, "MatchNumber";
    }

    /// Net order imbalance before a cross. TotalView-ITCH 5.0, "Net Order Imbalance Indicator (NOII)
    /// Message".
    b'I' NetOrderImbalance = "NOII", 50 {
        11 => paired_shares: U64, "PairedShares";
        19 => imbalance_shares: U64, "ImbalanceShares";
        /// See [`ImbalanceDirection`].
        27 => direction: Char, "ImbalanceDirection";
        28 => stock: Alpha<8>, "Stock";
        36 => far_price: Price4, "FarPrice";
        40 => near_price: Price4, "NearPrice";
        44 => reference_price: Price4, "CurrentReferencePrice";
        /// See [`CrossType`].
        48 => cross_type: Char, "CrossType";
        /// `L` below 1 %, `1`-`9` that percent, `A` 10-19.99 %, `B` 20-29.99 %, `C` 30 % and more, space:
        /// none.
        49 => price_variation: Char, "PriceVariationIndicator";
    }

    /// Retail interest on Nasdaq Texas. TotalView-ITCH 5.0, "Retail Price Improvement Indicator (RPII)".
    b'N' RetailInterest = "RPII", 20 {
        11 => stock: Alpha<8>, "Stock";
        /// See [`InterestFlag`].
        19 => interest: Char, "InterestFlag";
    }

    /// Price discovery of a direct listing. TotalView-ITCH 5.0, "Direct Listing with Capital Raise Price
    /// Discovery".
    b'O' DirectListing = "DirectListingWithCapitalRaise", 48 {
        11 => stock: Alpha<8>, "Stock";
        /// `Y`, `N`.
        19 => open_eligibility: Char, "OpenEligibilityStatus";
        20 => minimum_price: Price4, "MinimumAllowablePrice";
        24 => maximum_price: Price4, "MaximumAllowablePrice";
        28 => near_execution_price: Price4, "NearExecutionPrice";
        /// Nanoseconds since midnight in New York.
        32 => near_execution_time: U64, "NearExecutionTime";
        40 => lower_collar: Price4, "LowerPriceRangeCollar";
        44 => upper_collar: Price4, "UpperPriceRangeCollar";
    }
}

impl StockDirectory {
    /// An ordinary share: common stock of the Global Select Market in good standing, in round lots of 100,
    /// in production, of the first tier of Limit Up-Limit Down, with no restriction; no fund. Time as in
    /// [`StockDirectory::at`].
    pub const fn common_stock(locate: u16, timestamp: u64, stock: Alpha<8>) -> StockDirectory {
        StockDirectory {
            stock,
            market_category: Char(b'Q'),
            financial_status: Char(b'N'),
            round_lot_size: U32::new(100),
            round_lots_only: Char(b'N'),
            issue_classification: Char(b'C'),
            issue_sub_type: Alpha(*b"Z "),
            authenticity: Char(b'P'),
            short_sale_threshold: Char(b'N'),
            ipo_flag: Char(b'N'),
            luld_tier: Char(b'1'),
            etp_flag: Char(b'N'),
            inverse: Char(b'N'),
            ..StockDirectory::at(locate, timestamp)
        }
    }
}

wire_struct! {
    /// End of a snapshot; has no prefix. GLIMPSE 5.0, "End of Snapshot".
    pub struct EndOfSnapshot = "EndOfSnapshot", 21 {
        0 => kind: Char, "MessageType";
        /// The first live message to apply.
        1 => sequence: Digits<20>, "SequenceNumber";
    }
}

impl EndOfSnapshot {
    /// The message type byte.
    pub const KIND: u8 = b'G';

    /// The end of a snapshot after which the live message `sequence` is the next.
    pub const fn at(sequence: u64) -> EndOfSnapshot {
        // u64::MAX has exactly 20 digits
        let Some(sequence) = Digits::new(sequence) else {
            unreachable!()
        };
        EndOfSnapshot {
            kind: Char(EndOfSnapshot::KIND),
            sequence,
        }
    }
}

/// Where the instrument is in a message that has not been parsed: a filter reads these bytes alone. `None`
/// for [`EndOfSnapshot`] and for less than three bytes; any other type has it, also types of later versions.
#[inline(always)]
pub fn stock_locate(message: &[u8]) -> Option<u16> {
    match *message {
        [kind, high, low, ..] if kind != EndOfSnapshot::KIND => Some(u16::from_be_bytes([high, low])),
        _ => None,
    }
}

/// Which order a message that has not been parsed is about, for prefetching: the one added, executed,
/// cancelled, deleted or replaced.
#[inline(always)]
pub fn order_reference(message: &[u8]) -> Option<u64> {
    match message.first()? {
        b'A' | b'D' | b'U' | b'E' | b'X' | b'F' | b'C' => message
            .get(11..19)?
            .first_chunk()
            .map(|bytes| u64::from_be_bytes(*bytes)),
        _ => None,
    }
}

/// For looking ahead: whether a message is a new order, whether that buys, and its price in ten-thousandths.
/// Nothing is checked. Whether a message is a new order is what nobody can foresee, so that there is no
/// branch on it: of others, something else is read in the place of side and price. `None` of less than four
/// bytes.
#[inline(always)]
pub fn new_order_at(message: &[u8]) -> Option<(bool, bool, u32)> {
    let kind = *message.first()?;
    let last = message.len().checked_sub(4)?;
    let buys = *message.get(last.min(19))? == b'B';
    let price = message.get(last.min(32)..)?.first_chunk()?;
    let is_new = (kind == b'A') | (kind == b'F');
    Some((is_new, buys, u32::from_be_bytes(*price)))
}

/// The side of a `BuySellIndicator`.
#[inline(always)]
pub const fn side(indicator: Char) -> Option<Side> {
    Side::of_letter(indicator.0, *b"BS")
}

/// The `BuySellIndicator` of a side.
#[inline]
pub const fn side_char(side: Side) -> Char {
    match side {
        Side::Bid => Char(b'B'),
        Side::Ask => Char(b'S'),
    }
}

wire_enum! {
    /// `EventCode` of [`SystemEvent`].
    pub enum EventCode {
        /// The first message of the day.
        b'O' => StartOfMessages;
        /// Orders are accepted.
        b'S' => StartOfSystemHours;
        /// Regular trading begins.
        b'Q' => StartOfMarketHours;
        /// Regular trading ends.
        b'M' => EndOfMarketHours;
        /// No more orders; deletes and breaks may follow.
        b'E' => EndOfSystemHours;
        /// The last message of the day.
        b'C' => EndOfMessages;
    }
}

wire_enum! {
    /// `MarketCategory` of [`StockDirectory`]: the listing market.
    pub enum MarketCategory {
        /// Nasdaq Global Select Market.
        b'Q' => NasdaqGlobalSelect;
        /// Nasdaq Global Market.
        b'G' => NasdaqGlobal;
        /// Nasdaq Capital Market.
        b'S' => NasdaqCapital;
        /// New York Stock Exchange.
        b'N' => Nyse;
        /// NYSE American.
        b'A' => NyseAmerican;
        /// NYSE Arca.
        b'P' => NyseArca;
        /// NYSE Texas.
        b'M' => NyseTexas;
        /// Cboe BZX.
        b'Z' => Bzx;
        /// Investors Exchange.
        b'V' => Iex;
        /// Not available.
        b' ' => NotAvailable;
    }
}

wire_enum! {
    /// `FinancialStatusIndicator` of [`StockDirectory`].
    pub enum FinancialStatus {
        /// Normal.
        b'N' => Normal;
        /// Deficient.
        b'D' => Deficient;
        /// Delinquent.
        b'E' => Delinquent;
        /// Bankrupt.
        b'Q' => Bankrupt;
        /// Suspended.
        b'S' => Suspended;
        /// Deficient and bankrupt.
        b'G' => DeficientBankrupt;
        /// Deficient and delinquent.
        b'H' => DeficientDelinquent;
        /// Delinquent and bankrupt.
        b'J' => DelinquentBankrupt;
        /// Deficient, delinquent and bankrupt.
        b'K' => DeficientDelinquentBankrupt;
        /// Creations or redemptions of an exchange traded product are suspended.
        b'C' => CreationsSuspended;
        /// Not available.
        b' ' => NotAvailable;
    }
}

wire_enum! {
    /// `TradingState` of [`StockTradingAction`].
    pub enum TradingState {
        /// Halted on all US markets.
        b'H' => Halted;
        /// Paused on all US markets (limit up, limit down).
        b'P' => Paused;
        /// Quotation only, before a cross.
        b'Q' => QuotationOnly;
        /// Trading.
        b'T' => Trading;
    }
}

wire_enum! {
    /// `RegSHOAction` of [`RegShoRestriction`].
    pub enum RegShoAction {
        /// No restriction.
        b'0' => None;
        /// In effect because of a drop during the day.
        b'1' => InEffect;
        /// Still in effect from the day before.
        b'2' => RemainsInEffect;
    }
}

wire_enum! {
    /// `MarketMakerMode` of [`MarketParticipantPosition`].
    pub enum MarketMakerMode {
        /// Normal.
        b'N' => Normal;
        /// Passive.
        b'P' => Passive;
        /// Syndicate.
        b'S' => Syndicate;
        /// Pre-syndicate.
        b'R' => PreSyndicate;
        /// Penalty.
        b'L' => Penalty;
    }
}

wire_enum! {
    /// `MarketParticipantState` of [`MarketParticipantPosition`].
    pub enum ParticipantState {
        /// Active.
        b'A' => Active;
        /// Excused, withdrawn with permission.
        b'E' => Excused;
        /// Withdrawn.
        b'W' => Withdrawn;
        /// Suspended.
        b'S' => Suspended;
        /// Deleted.
        b'D' => Deleted;
    }
}

wire_enum! {
    /// `IPOQuotationReleaseQualifier` of [`IpoQuotingPeriodUpdate`].
    pub enum IpoQualifier {
        /// The release time is anticipated.
        b'A' => Anticipated;
        /// Cancelled or postponed: time and price are 0.
        b'C' => Cancelled;
    }
}

wire_enum! {
    /// `MarketCode` of [`OperationalHalt`].
    pub enum MarketCode {
        /// Nasdaq.
        b'Q' => Nasdaq;
        /// Nasdaq Texas, formerly BX.
        b'B' => NasdaqTexas;
        /// PSX.
        b'X' => Psx;
    }
}

wire_enum! {
    /// `OperationalHaltAction` of [`OperationalHalt`].
    pub enum HaltAction {
        /// Halted on this market.
        b'H' => Halted;
        /// Resumed on this market.
        b'T' => Resumed;
    }
}

wire_enum! {
    /// `CrossType` of [`CrossTrade`] and [`NetOrderImbalance`].
    pub enum CrossType {
        /// Opening cross.
        b'O' => Opening;
        /// Closing cross.
        b'C' => Closing;
        /// Cross of an IPO or after a halt.
        b'H' => HaltOrIpo;
        /// Extended trading close; imbalance messages only.
        b'A' => ExtendedTradingClose;
    }
}

wire_enum! {
    /// `ImbalanceDirection` of [`NetOrderImbalance`].
    pub enum ImbalanceDirection {
        /// More to buy.
        b'B' => Buy;
        /// More to sell.
        b'S' => Sell;
        /// None.
        b'N' => None;
        /// Too few orders to tell.
        b'O' => InsufficientOrders;
        /// Paused.
        b'P' => Paused;
    }
}

wire_enum! {
    /// `InterestFlag` of [`RetailInterest`].
    pub enum InterestFlag {
        /// Retail price improving interest to buy.
        b'B' => Buy;
        /// To sell.
        b'S' => Sell;
        /// On both sides.
        b'A' => Both;
        /// None.
        b'N' => None;
    }
}
