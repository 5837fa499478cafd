//! Layouts of the incremental feed: books by price and by order, trades, volume, statistics, limits.
//!
//! CME MDP 3.0, SBE schema 1 version 13 (`templates_FixBinary.xml`, 2023-04-11); every row is compared with
//! it in a test.

use super::block::{Optional, Price9, layouts};
use crate::layout::{Char, le};
use crate::wire_struct;

wire_struct! {
    /// Root block of `ChannelReset4` and of every other incremental message. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct EventRoot = "MDIncrementalRefresh", 9 {
        /// Nanoseconds since the Unix epoch, UTC.
        0 => transact_time: le::U64, "TransactTime";
        /// See [`indicator`](super::indicator).
        8 => indicator: u8, "MatchEventIndicator";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshVolume37`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct VolumeEntry = "NoMDEntries", 13 {
        0 => size: le::I32, "MDEntrySize";
        4 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        8 => rpt_seq: le::U32, "RptSeq";
        /// See [`UpdateAction`](super::UpdateAction).
        12 => action: u8, "MDUpdateAction";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshBook46`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct BookEntry = "NoMDEntries", 31 {
        0 => price: Optional<Price9>, "MDEntryPx";
        8 => size: Optional<le::I32>, "MDEntrySize";
        12 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        16 => rpt_seq: le::U32, "RptSeq";
        20 => orders: Optional<le::I32>, "NumberOfOrders";
        /// 1 is the best.
        24 => level: u8, "MDPriceLevel";
        /// See [`UpdateAction`](super::UpdateAction).
        25 => action: u8, "MDUpdateAction";
        /// See [`EntryType`](super::EntryType).
        26 => entry_type: Char, "MDEntryType";
        27 => tradeable_size: Optional<le::I32>, "TradeableSize";
    }
}

wire_struct! {
    /// Entry of `NoOrderIDEntries` in `MDIncrementalRefreshBook46`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct OrderEntry = "NoOrderIDEntries", 22 {
        0 => order_id: le::U64, "OrderID";
        /// Lower is executed first at the same price.
        8 => priority: Optional<le::U64>, "MDOrderPriority";
        16 => display_qty: Optional<le::I32>, "MDDisplayQty";
        /// Which entry of the message (from 1) says instrument, side and price.
        20 => reference_id: Optional<u8>, "ReferenceID";
        /// See [`OrderAction`](super::OrderAction).
        21 => action: u8, "OrderUpdateAction";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshOrderBook47`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct OrderBookEntry = "NoMDEntries", 34 {
        0 => order_id: Optional<le::U64>, "OrderID";
        /// Lower is executed first at the same price.
        8 => priority: Optional<le::U64>, "MDOrderPriority";
        16 => price: Optional<Price9>, "MDEntryPx";
        24 => display_qty: Optional<le::I32>, "MDDisplayQty";
        28 => security_id: le::I32, "SecurityID";
        /// See [`UpdateAction`](super::UpdateAction).
        32 => action: u8, "MDUpdateAction";
        /// See [`EntryType`](super::EntryType).
        33 => entry_type: Char, "MDEntryType";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshTradeSummary48`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct TradeEntry = "NoMDEntries", 30 {
        0 => price: Price9, "MDEntryPx";
        8 => size: le::I32, "MDEntrySize";
        12 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        16 => rpt_seq: le::U32, "RptSeq";
        20 => orders: le::I32, "NumberOfOrders";
        /// 0 none, 1 buy, 2 sell.
        24 => aggressor_side: Optional<u8>, "AggressorSide";
        /// See [`UpdateAction`](super::UpdateAction).
        25 => action: u8, "MDUpdateAction";
        26 => trade_entry_id: Optional<le::U32>, "MDTradeEntryID";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshTrade36`, before there were trade summaries. MDP 3.0
    /// SBE schema 1, versions 2 to 8.
    pub struct TradeEntry36 = "NoMDEntries", 30 {
        0 => price: Price9, "MDEntryPx";
        8 => size: le::I32, "MDEntrySize";
        12 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        16 => rpt_seq: le::U32, "RptSeq";
        20 => orders: Optional<le::I32>, "NumberOfOrders";
        24 => trade_id: le::I32, "TradeID";
        /// 0 none, 1 buy, 2 sell.
        28 => aggressor_side: Optional<u8>, "AggressorSide";
        /// See [`UpdateAction`](super::UpdateAction).
        29 => action: u8, "MDUpdateAction";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshTradeSummary42`: as [`TradeEntry`], but that the number
    /// of orders may be null. MDP 3.0 SBE schema 1, version 9.
    pub struct TradeEntry42 = "NoMDEntries", 30 {
        0 => price: Price9, "MDEntryPx";
        8 => size: le::I32, "MDEntrySize";
        12 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        16 => rpt_seq: le::U32, "RptSeq";
        20 => orders: Optional<le::I32>, "NumberOfOrders";
        /// 0 none, 1 buy, 2 sell.
        24 => aggressor_side: Optional<u8>, "AggressorSide";
        /// See [`UpdateAction`](super::UpdateAction).
        25 => action: u8, "MDUpdateAction";
        26 => trade_entry_id: Optional<le::U32>, "MDTradeEntryID";
    }
}

wire_struct! {
    /// Entry of `NoOrderIDEntries` in `MDIncrementalRefreshTradeSummary48`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct TradeOrderEntry = "NoOrderIDEntries", 12 {
        0 => order_id: le::U64, "OrderID";
        8 => last_qty: le::I32, "LastQty";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshDailyStatistics49`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct DailyStatisticsEntry = "NoMDEntries", 25 {
        0 => price: Optional<Price9>, "MDEntryPx";
        8 => size: Optional<le::I32>, "MDEntrySize";
        12 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        16 => rpt_seq: le::U32, "RptSeq";
        /// Days since the Unix epoch.
        20 => trading_reference_date: Optional<le::U16>, "TradingReferenceDate";
        22 => settl_price_type: u8, "SettlPriceType";
        /// See [`UpdateAction`](super::UpdateAction).
        23 => action: u8, "MDUpdateAction";
        /// See [`EntryType`](super::EntryType).
        24 => entry_type: Char, "MDEntryType";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshLimitsBanding50`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct LimitsEntry = "NoMDEntries", 32 {
        0 => high_limit: Optional<Price9>, "HighLimitPrice";
        8 => low_limit: Optional<Price9>, "LowLimitPrice";
        16 => max_price_variation: Optional<Price9>, "MaxPriceVariation";
        24 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        28 => rpt_seq: le::U32, "RptSeq";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshSessionStatistics51`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct SessionStatisticsEntry = "NoMDEntries", 23 {
        0 => price: Price9, "MDEntryPx";
        8 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        12 => rpt_seq: le::U32, "RptSeq";
        16 => open_close_settl_flag: Optional<u8>, "OpenCloseSettlFlag";
        /// See [`UpdateAction`](super::UpdateAction).
        17 => action: u8, "MDUpdateAction";
        /// See [`EntryType`](super::EntryType).
        18 => entry_type: Char, "MDEntryType";
        19 => size: Optional<le::I32>, "MDEntrySize";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshBookLongQty64`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct BookEntryLongQty = "NoMDEntries", 31 {
        0 => price: Optional<Price9>, "MDEntryPx";
        8 => size: Optional<le::U64>, "MDEntrySize";
        16 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        20 => rpt_seq: le::U32, "RptSeq";
        24 => orders: Optional<le::I32>, "NumberOfOrders";
        /// 1 is the best.
        28 => level: u8, "MDPriceLevel";
        /// See [`UpdateAction`](super::UpdateAction).
        29 => action: u8, "MDUpdateAction";
        /// See [`EntryType`](super::EntryType).
        30 => entry_type: Char, "MDEntryType";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshTradeSummaryLongQty65`. MDP 3.0 SBE schema 1, version
    /// 13 (2023-04-11).
    pub struct TradeEntryLongQty = "NoMDEntries", 34 {
        0 => price: Price9, "MDEntryPx";
        8 => size: le::U64, "MDEntrySize";
        16 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        20 => rpt_seq: le::U32, "RptSeq";
        24 => orders: le::I32, "NumberOfOrders";
        28 => trade_entry_id: le::U32, "MDTradeEntryID";
        /// 0 none, 1 buy, 2 sell.
        32 => aggressor_side: Optional<u8>, "AggressorSide";
        /// See [`UpdateAction`](super::UpdateAction).
        33 => action: u8, "MDUpdateAction";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshVolumeLongQty66`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct VolumeEntryLongQty = "NoMDEntries", 17 {
        0 => size: le::U64, "MDEntrySize";
        8 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        12 => rpt_seq: le::U32, "RptSeq";
        /// See [`UpdateAction`](super::UpdateAction).
        16 => action: u8, "MDUpdateAction";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `MDIncrementalRefreshSessionStatisticsLongQty67`. MDP 3.0 SBE schema 1,
    /// version 13 (2023-04-11).
    pub struct SessionStatisticsEntryLongQty = "NoMDEntries", 27 {
        0 => price: Price9, "MDEntryPx";
        8 => size: Optional<le::U64>, "MDEntrySize";
        16 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        20 => rpt_seq: le::U32, "RptSeq";
        24 => open_close_settl_flag: Optional<u8>, "OpenCloseSettlFlag";
        /// See [`UpdateAction`](super::UpdateAction).
        25 => action: u8, "MDUpdateAction";
        /// See [`EntryType`](super::EntryType).
        26 => entry_type: Char, "MDEntryType";
    }
}

layouts! {
    EventRoot;
    VolumeEntry;
    BookEntry [10 => 27];
    OrderEntry;
    OrderBookEntry;
    TradeEntry;
    TradeEntry36;
    TradeEntry42 [7 => 26];
    TradeOrderEntry;
    DailyStatisticsEntry;
    LimitsEntry;
    SessionStatisticsEntry [8 => 19];
    BookEntryLongQty;
    TradeEntryLongQty;
    VolumeEntryLongQty;
    SessionStatisticsEntryLongQty;
}
