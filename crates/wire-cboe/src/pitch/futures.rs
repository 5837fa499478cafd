//! What the feed of the Cboe Futures Exchange has in other layouts than equities: time with its epoch, short
//! messages without flags, definitions of instruments. Multicast PITCH for futures 1.1.6 and 1.1.12, as far
//! as PITCH 2.41.29 shares them and recordings show them. Long forms, executions and trades are not covered:
//! skip them by their length.

use super::{LongPrice, ShortPrice, pitch_family, pitch_layouts};
use crate::layout::le::{I32, U16, U32, U64};
use crate::layout::{Alpha, Char, prefix};
use crate::wire_struct;

pub use super::{DeleteOrder, EndOfSession, TradeBreak, UnitClear};

wire_struct! {
    /// One leg of a spread. PITCH for futures 1.1.6, "Futures Instrument Definition Message".
    pub struct FutureLeg = "FutureLeg", 10 {
        /// How many of it are bought; below 0: sold.
        0 => ratio: I32, "LegRatio";
        4 => symbol: Alpha<6>, "LegSymbol";
    }
}

/// The legs of a whole [`FutureInstrumentDefinition`] message: as many as it says and holds, from where it
/// says.
pub fn legs(message: &[u8]) -> impl Iterator<Item = &FutureLeg> {
    let (count, offset) = match message.get(38..40) {
        Some(&[count, offset]) if usize::from(offset) >= FutureInstrumentDefinition::SIZE => (count, offset),
        _ => (0, 0),
    };
    let mut rest = message.get(usize::from(offset)..).unwrap_or_default();
    (0..count).map_while(move |_| {
        let (leg, behind) = prefix::<FutureLeg>(rest).ok()?;
        rest = behind;
        Some(leg)
    })
}

pitch_layouts! {
    /// A future or a spread of futures; the [`legs`] of a spread and the terms of a variance future stand
    /// behind it. PITCH for futures 1.1.6, "Futures Instrument Definition Message".
    0xBB FutureInstrumentDefinition = "FutureInstrumentDefinition", 41 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<6>, "Symbol";
        /// Seconds since the Unix epoch.
        12 => unit_timestamp: U32, "UnitTimestamp";
        16 => report_symbol: Alpha<6>, "ReportSymbol";
        22 => flags: u8, "FuturesFlags";
        /// `YYYYMMDD` as a number.
        23 => expiration_date: U32, "ExpirationDate";
        27 => contract_size: U16, "ContractSize";
        29 => listing_state: Char, "ListingState";
        30 => price_increment: LongPrice, "PriceIncrement";
        38 => leg_count: u8, "LegCount";
        /// From the start of the message; 0: no legs.
        39 => leg_offset: u8, "LegOffset";
        /// From the start of the message; 0: no variance future.
        40 => variance_block_offset: u8, "VarianceBlockOffset";
    }

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

    /// Whether an instrument trades. PITCH for futures 1.1.6, "Trading Status Message".
    0x31 TradingStatus = "TradingStatus", 18 {
        2 => time_offset: U32, "TimeOffset";
        6 => symbol: Alpha<6>, "Symbol";
        12 => reserved1: Alpha<2>, "Reserved1";
        /// See [`Status`](super::Status).
        14 => status: Char, "TradingStatus";
        15 => reserved2: Alpha<3>, "Reserved2";
    }
}

pitch_family! {
    Time, UnitClear, AddOrderShort, ModifyOrderShort, DeleteOrder, TradeBreak, EndOfSession, TradingStatus,
    FutureInstrumentDefinition,
}
