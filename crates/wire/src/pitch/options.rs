//! What Cboe's options feeds have in other layouts than equities: executions and trades say their condition, attributed
//! orders their client. Multicast PITCH for options 2.39.4 and complex options 2.1.18, as far as PITCH 2.41.29 shares them;
//! definitions of series, auctions of complex orders and cancellations of them are not covered: skip them by their length.

use super::{LongPrice, ShortPrice, pitch_family, pitch_layouts};
use crate::layout::le::{U16, U32, U64};
use crate::layout::{Alpha, Char};

pub use super::{
    AddOrderLong, AddOrderShort, DeleteOrder, EndOfSession, ModifyOrderLong, ModifyOrderShort,
    ReduceSizeLong, ReduceSizeShort, Time, TradeBreak, TradingStatus, UnitClear,
};

pitch_layouts! {
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

    /// Contracts of an order executed at another price. PITCH for options 2.39.4, "Order Executed at Price/Size Message".
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

    /// A trade that touches no visible order. PITCH for options 2.39.4, "Trade Message (expanded)", whose table prints 41
    /// where the condition is at 43.
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
    TradeBreak, EndOfSession, TradingStatus,
}
