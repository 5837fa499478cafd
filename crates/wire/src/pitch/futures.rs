//! What the feed of the Cboe Futures Exchange has in other layouts than equities: time with its epoch, short messages without
//! flags. Multicast PITCH for futures 1.1.6, as far as PITCH 2.41.29 shares it and recordings show it. Long forms,
//! executions, trades and instrument definitions are not covered: skip them by their length.

use super::{ShortPrice, pitch_family, pitch_layouts};
use crate::layout::le::{U16, U32, U64};
use crate::layout::{Alpha, Char};

pub use super::{DeleteOrder, EndOfSession, TradeBreak, TradingStatus, UnitClear};

pitch_layouts! {
    /// Seconds since midnight in Chicago, and since the Unix epoch. PITCH for futures 1.1.6, "Time Message".
    0x20 Time = "Time", 10 {
        2 => seconds: U32, "Seconds";
        /// Of the same instant, UTC.
        6 => epoch_seconds: U32, "EpochSeconds";
    }

    /// A visible order. PITCH for futures 1.1.6, "Add Order Message (short)".
    0x22 AddOrderShort = "AddOrderShort", 25 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => side: Char, "Side";
        15 => qty: U16, "Qty";
        17 => symbol: Alpha<6>, "Symbol";
        23 => price: ShortPrice, "Price";
    }

    /// New quantity and price of an order. PITCH for futures 1.1.6, "Modify Order Message (short)".
    0x28 ModifyOrderShort = "ModifyShort", 18 {
        2 => time_offset: U32, "TimeOffset";
        6 => order_id: U64, "OrderId";
        14 => qty: U16, "Qty";
        16 => price: ShortPrice, "Price";
    }
}

pitch_family! {
    Time, UnitClear, AddOrderShort, ModifyOrderShort, DeleteOrder, TradeBreak, EndOfSession, TradingStatus,
}
