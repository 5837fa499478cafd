//! What Cboe's complex options feed has in other layouts than single options: strategies, whose prices may be
//! below 0, so that every price but the reference price of an auction has a sign. Multicast PITCH for complex
//! options 2.1.18.
//!
//! A message of it is as long as the one of single options, of which nothing but this module's sign tells it:
//! what feed a packet is of has to be known, or found from the messages that only one of them has.

use super::{LongPrice, pitch_family, pitch_layouts};
use crate::layout::le::{I16, I32, I64, U16, U32, U64};
use crate::layout::{Alpha, Char, Scaled, prefix};
use crate::wire_struct;

pub use super::options::{AuctionCancel, OrderExecuted, SymbolMapping};
pub use super::{
    DeleteOrder, EndOfSession, ReduceSizeLong, ReduceSizeShort, Time, TradeBreak, TradingStatus, UnitClear,
};

/// A price of a strategy: 64 bits, signed, 4 implied decimals.
pub type SignedPrice = Scaled<I64, 4>;

/// A short price of a strategy: 16 bits, signed, 2 implied decimals, -327.68 to 327.67.
pub type SignedShortPrice = Scaled<I16, 2>;

wire_struct! {
    /// One leg of a strategy. PITCH for complex options 2.1.18, "Complex Instrument Definition".
    pub struct ComplexLeg = "ComplexInstrumentLeg", 13 {
        /// The feed symbol of a series, or an equity.
        0 => symbol: Alpha<8>, "LegSymbol";
        /// How many of it are bought; below 0: sold.
        8 => ratio: I32, "LegRatio";
        /// `O` option, `E` equity.
        12 => security_type: Char, "LegSecurityType";
    }
}

/// The legs of a whole [`ComplexInstrumentDefinition`] message: as many as it says and holds.
pub fn legs(message: &[u8]) -> impl Iterator<Item = &ComplexLeg> {
    let count = message.get(24).copied().unwrap_or(0);
    let mut rest = message
        .get(ComplexInstrumentDefinition::SIZE..)
        .unwrap_or_default();
    (0..count).map_while(move |_| {
        let (leg, behind) = prefix::<ComplexLeg>(rest).ok()?;
        rest = behind;
        Some(leg)
    })
}

pitch_layouts! {
    /// A visible order. PITCH for complex options 2.1.18, "Add Order Message (long)".
    0x21 AddOrderLong = "AddOrderLong", 34 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        /// `B`, `S`: see [`side`](super::side).
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<6>, "Symbol";
        25 => price: SignedPrice, "Price";
        /// See [`add_flags`](super::add_flags).
        33 => flags: u8, "AddFlags";
    }

    /// A visible order of at most 65 535 at a whole cent within 327. PITCH for complex options 2.1.18, "Add
    /// Order Message (short)".
    0x22 AddOrderShort = "AddOrderShort", 26 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        /// `B`, `S`: see [`side`](super::side).
        14 => side: Char, "Side";
        15 => qty: U16, "Qty";
        17 => symbol: Alpha<6>, "Symbol";
        23 => price: SignedShortPrice, "Price";
        /// See [`add_flags`](super::add_flags).
        25 => flags: u8, "AddFlags";
    }

    /// A visible order with attribution. PITCH for complex options 2.1.18, "Add Order Message (expanded)".
    0x2F AddOrderExpanded = "AddOrderExpanded", 45 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<8>, "Symbol";
        27 => price: SignedPrice, "Price";
        35 => flags: u8, "AddFlags";
        36 => participant_id: Alpha<4>, "ParticipantId";
        /// `N` not a customer, `C` customer.
        40 => customer: Char, "CustomerInd";
        41 => client_id: Alpha<4>, "ClientId";
    }

    /// Contracts of an order executed at another price. PITCH for complex options 2.1.18, "Order Executed at
    /// Price/Size Message".
    0x24 OrderExecutedAtPriceSize = "OrderExecutedAtPriceSize", 39 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => executed_qty: U32, "ExecQty";
        18 => remaining_qty: U32, "RemainingQty";
        22 => execution_id: U64, "ExecId";
        30 => price: SignedPrice, "Price";
        38 => condition: Char, "TradeCondition";
    }

    /// New quantity and price of an order. PITCH for complex options 2.1.18, "Modify Order Message (long)".
    0x27 ModifyOrderLong = "ModifyLong", 27 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => qty: U32, "Qty";
        18 => price: SignedPrice, "Price";
        /// See [`modify_flags`](super::modify_flags).
        26 => flags: u8, "ModifyFlags";
    }

    /// New quantity and price of an order. PITCH for complex options 2.1.18, "Modify Order Message (short)".
    0x28 ModifyOrderShort = "ModifyShort", 19 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => qty: U16, "Qty";
        16 => price: SignedShortPrice, "Price";
        /// See [`modify_flags`](super::modify_flags).
        18 => flags: u8, "ModifyFlags";
    }

    /// A trade that touches no visible order. PITCH for complex options 2.1.18, "Trade Message (long)".
    0x2A TradeLong = "TradeLong", 42 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<6>, "Symbol";
        25 => price: SignedPrice, "Price";
        33 => execution_id: U64, "ExecId";
        41 => condition: Char, "TradeCondition";
    }

    /// A trade that touches no visible order. PITCH for complex options 2.1.18, "Trade Message (short)".
    0x2B TradeShort = "TradeShort", 34 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => side: Char, "Side";
        15 => qty: U16, "Qty";
        17 => symbol: Alpha<6>, "Symbol";
        23 => price: SignedShortPrice, "Price";
        25 => execution_id: U64, "ExecId";
        33 => condition: Char, "TradeCondition";
    }

    /// A trade that touches no visible order. PITCH for complex options 2.1.18, "Trade Message (expanded)",
    /// whose table prints 41 where the condition is at 43.
    0x30 TradeExpanded = "TradeExpanded", 44 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<8>, "Symbol";
        27 => price: SignedPrice, "Price";
        35 => execution_id: U64, "ExecId";
        43 => condition: Char, "TradeCondition";
    }

    /// A strategy; behind it [`legs`]. PITCH for complex options 2.1.18, "Complex Instrument Definition
    /// (expanded)".
    0x9A ComplexInstrumentDefinition = "ComplexInstrumentDefinition", 25 {
        2 => time_offset: U32, "TimeOffset";
        6 => complex_instrument_id: Alpha<6>, "ComplexInstrumentId";
        12 => underlying: Alpha<8>, "ComplexInstrumentUnderlying";
        20 => complex_instrument_type: Char, "ComplexInstrumentType";
        21 => reserved: Alpha<3>, "Reserved";
        24 => leg_count: u8, "LegCount";
    }

    /// An auction of one order begins. PITCH for complex options 2.1.18, "Auction Notification".
    0xAD AuctionNotification = "AuctionNotification", 47 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<6>, "Symbol";
        12 => auction_id: U64, "AuctionId";
        20 => auction_type: Char, "AuctionType";
        21 => side: Char, "Side";
        22 => price: SignedPrice, "Price";
        30 => contracts: U32, "Contracts";
        /// `N` not a customer, `C` customer.
        34 => customer: Char, "CustomerIndicator";
        35 => participant_id: Alpha<4>, "ParticipantId";
        /// Nanoseconds, as the offset.
        39 => auction_end_offset: U32, "AuctionEndOffset";
        43 => client_id: Alpha<4>, "ClientId";
    }

    /// Prices and interest before an opening. PITCH for complex options 2.1.18, "Auction Update".
    0xD1 AuctionUpdate = "AuctionUpdate", 64 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<8>, "Symbol";
        /// `G` opening of global trading hours, `R` of regular ones, `H` halt.
        14 => auction_type: Char, "AuctionType";
        15 => reference_price: LongPrice, "ReferencePrice";
        23 => buy_contracts: U32, "BuyContracts";
        27 => sell_contracts: U32, "SellContracts";
        31 => indicative_price: SignedPrice, "IndicativePrice";
        39 => auction_only_price: SignedPrice, "AuctionOnlyPrice";
        47 => opening_condition: Char, "OpeningCondition";
        48 => composite_bid: SignedPrice, "CompositeMarketBidPrice";
        56 => composite_offer: SignedPrice, "CompositeMarketOfferPrice";
    }
}

pitch_family! {
    Time, UnitClear, AddOrderLong, AddOrderShort, AddOrderExpanded, OrderExecuted, OrderExecutedAtPriceSize,
    ReduceSizeLong, ReduceSizeShort, ModifyOrderLong, ModifyOrderShort, DeleteOrder, TradeLong, TradeShort, TradeExpanded,
    TradeBreak, EndOfSession, TradingStatus, SymbolMapping, ComplexInstrumentDefinition, AuctionNotification,
    AuctionCancel, AuctionUpdate,
}
