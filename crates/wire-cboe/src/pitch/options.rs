//! What Cboe's options feeds have in other layouts than equities: executions and trades say their condition,
//! attributed orders their client; and what equities do not have at all: series by their feed symbols,
//! auctions of single orders. Multicast PITCH for options 2.39.4. Strategies are a feed of their own,
//! [`complex`](super::complex).

use super::{LongPrice, ShortPrice, pitch_family, pitch_layouts};
use crate::layout::le::{U16, U32, U64};
use crate::layout::{Alpha, Char};

pub use super::{
    AddOrderLong, AddOrderShort, DeleteOrder, EndOfSession, ModifyOrderLong, ModifyOrderShort,
    ReduceSizeLong, ReduceSizeShort, Time, TradeBreak, TradingStatus, UnitClear,
};

pitch_layouts! {
    /// Which series a feed symbol stands for. PITCH for options 2.41.29 and complex options 2.1.18, "Symbol
    /// Mapping Message"; 2.39.4 has no underlying.
    0x2E SymbolMapping = "SymbolMapping", 38 {
        2 => feed_symbol: Alpha<6>, "FeedSymbol";
        /// Root, expiration `YYMMDD`, `C` or `P`, strike with 3 decimals.
        8 => osi_symbol: Alpha<21>, "OsiSymbol";
        /// `N` normal, `C` closing only.
        29 => condition: Char, "SymbolCondition";
        30 => underlying: Alpha<8>, "Underlying";
    }

    /// An auction of one order begins. PITCH for options 2.41.64, "Auction Notification".
    0xAD AuctionNotification = "AuctionNotification", 47 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<6>, "Symbol";
        12 => auction_id: U64, "AuctionId";
        20 => auction_type: Char, "AuctionType";
        21 => side: Char, "Side";
        22 => price: LongPrice, "Price";
        30 => contracts: U32, "Contracts";
        /// `N` not a customer, `C` customer.
        34 => customer: Char, "CustomerIndicator";
        35 => participant_id: Alpha<4>, "ParticipantId";
        /// Nanoseconds, as the offset.
        39 => auction_end_offset: U32, "AuctionEndOffset";
        43 => client_id: Alpha<4>, "ClientId";
    }

    /// An auction of one order ends without a trade. PITCH for complex options 2.1.18, "Auction Cancel".
    0xAE AuctionCancel = "AuctionCancel", 14 {
        2 => time_offset: U32, "TimeOffset";
        6 => auction_id: U64, "AuctionId";
    }

    /// Prices and interest before an opening. PITCH for options 2.41.64, "Auction Update".
    0xD1 AuctionUpdate = "AuctionUpdate", 64 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<8>, "Symbol";
        /// `G` opening of global trading hours, `R` of regular ones, `H` halt.
        14 => auction_type: Char, "AuctionType";
        15 => reference_price: LongPrice, "ReferencePrice";
        23 => buy_contracts: U32, "BuyContracts";
        27 => sell_contracts: U32, "SellContracts";
        31 => indicative_price: LongPrice, "IndicativePrice";
        39 => auction_only_price: LongPrice, "AuctionOnlyPrice";
        47 => opening_condition: Char, "OpeningCondition";
        48 => composite_bid: LongPrice, "CompositeMarketBidPrice";
        56 => composite_offer: LongPrice, "CompositeMarketOfferPrice";
    }

    /// A visible order with attribution. PITCH for options 2.39.4, "Add Order Message (expanded)".
    0x2F AddOrderExpanded = "AddOrderExpanded", 45 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<8>, "Symbol";
        27 => price: LongPrice, "Price";
        35 => flags: u8, "AddFlags";
        36 => participant_id: Alpha<4>, "ParticipantId";
        /// `N` not a customer, `C` customer.
        40 => customer: Char, "CustomerInd";
        41 => client_id: Alpha<4>, "ClientId";
    }

    /// Contracts of an order executed at its price. PITCH for options 2.39.4, "Order Executed Message".
    0x23 OrderExecuted = "OrderExecuted", 27 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => executed_qty: U32, "ExecQty";
        18 => execution_id: U64, "ExecId";
        26 => condition: Char, "TradeCondition";
    }

    /// Contracts of an order executed at another price. PITCH for options 2.39.4, "Order Executed at
    /// Price/Size Message".
    0x24 OrderExecutedAtPriceSize = "OrderExecutedAtPriceSize", 39 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => executed_qty: U32, "ExecQty";
        18 => remaining_qty: U32, "RemainingQty";
        22 => execution_id: U64, "ExecId";
        30 => price: LongPrice, "Price";
        38 => condition: Char, "TradeCondition";
    }

    /// A trade that touches no visible order. PITCH for options 2.39.4, "Trade Message (long)".
    0x2A TradeLong = "TradeLong", 42 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<6>, "Symbol";
        25 => price: LongPrice, "Price";
        33 => execution_id: U64, "ExecId";
        41 => condition: Char, "TradeCondition";
    }

    /// A trade that touches no visible order. PITCH for options 2.39.4, "Trade Message (short)".
    0x2B TradeShort = "TradeShort", 34 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => side: Char, "Side";
        15 => qty: U16, "Qty";
        17 => symbol: Alpha<6>, "Symbol";
        23 => price: ShortPrice, "Price";
        25 => execution_id: U64, "ExecId";
        33 => condition: Char, "TradeCondition";
    }

    /// A trade that touches no visible order. PITCH for options 2.39.4, "Trade Message (expanded)", whose
    /// table prints 41 where the condition is at 43.
    0x30 TradeExpanded = "TradeExpanded", 44 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => side: Char, "Side";
        15 => qty: U32, "Qty";
        19 => symbol: Alpha<8>, "Symbol";
        27 => price: LongPrice, "Price";
        35 => execution_id: U64, "ExecId";
        43 => condition: Char, "TradeCondition";
    }
}

pitch_family! {
    Time, UnitClear, AddOrderLong, AddOrderShort, AddOrderExpanded, OrderExecuted, OrderExecutedAtPriceSize,
    ReduceSizeLong, ReduceSizeShort, ModifyOrderLong, ModifyOrderShort, DeleteOrder, TradeLong, TradeShort, TradeExpanded,
    TradeBreak, EndOfSession, TradingStatus, SymbolMapping, AuctionNotification, AuctionCancel,
    AuctionUpdate,
}
