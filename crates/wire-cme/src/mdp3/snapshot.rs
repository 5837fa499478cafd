//! Layouts of the market recovery feeds and of snapshots over TCP.
//!
//! CME MDP 3.0, SBE schema 1 version 13 (`templates_FixBinary.xml`, 2023-04-11); every row is compared with
//! it in a test.

use super::block::{Optional, Price9, layouts};
use crate::layout::{Char, le};
use crate::wire_struct;

wire_struct! {
    /// Root block of `SnapshotFullRefresh52`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct SnapshotRoot = "SnapshotFullRefresh", 59 {
        /// The last packet of the incremental feed that this snapshot contains.
        0 => last_seq_processed: le::U32, "LastMsgSeqNumProcessed";
        /// How many reports one loop has.
        4 => total_reports: le::U32, "TotNumReports";
        8 => security_id: le::I32, "SecurityID";
        /// Counts the entries of this instrument, whatever their message.
        12 => rpt_seq: le::U32, "RptSeq";
        /// Nanoseconds since the Unix epoch, UTC.
        16 => transact_time: le::U64, "TransactTime";
        24 => last_update_time: le::U64, "LastUpdateTime";
        /// Days since the Unix epoch.
        32 => trade_date: Optional<le::U16>, "TradeDate";
        /// See [`TradingStatusCode`](super::TradingStatusCode).
        34 => trading_status: Optional<u8>, "MDSecurityTradingStatus";
        35 => high_limit: Optional<Price9>, "HighLimitPrice";
        43 => low_limit: Optional<Price9>, "LowLimitPrice";
        51 => max_price_variation: Optional<Price9>, "MaxPriceVariation";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `SnapshotFullRefresh52`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct SnapshotEntry = "NoMDEntries", 22 {
        0 => price: Optional<Price9>, "MDEntryPx";
        8 => size: Optional<le::I32>, "MDEntrySize";
        12 => orders: Optional<le::I32>, "NumberOfOrders";
        /// 1 is the best.
        16 => level: Optional<i8>, "MDPriceLevel";
        /// Days since the Unix epoch.
        17 => trading_reference_date: Optional<le::U16>, "TradingReferenceDate";
        19 => open_close_settl_flag: Optional<u8>, "OpenCloseSettlFlag";
        20 => settl_price_type: u8, "SettlPriceType";
        /// See [`EntryType`](super::EntryType).
        21 => entry_type: Char, "MDEntryType";
    }
}

wire_struct! {
    /// Root block of `SnapshotFullRefreshOrderBook53`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct SnapshotOrdersRoot = "SnapshotFullRefreshOrderBook", 28 {
        /// The last packet of the incremental feed that this snapshot contains.
        0 => last_seq_processed: le::U32, "LastMsgSeqNumProcessed";
        /// How many reports one loop has.
        4 => total_reports: le::U32, "TotNumReports";
        8 => security_id: le::I32, "SecurityID";
        12 => chunks: le::U32, "NoChunks";
        16 => current_chunk: le::U32, "CurrentChunk";
        /// Nanoseconds since the Unix epoch, UTC.
        20 => transact_time: le::U64, "TransactTime";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `SnapshotFullRefreshOrderBook53`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct SnapshotOrderEntry = "NoMDEntries", 29 {
        0 => order_id: le::U64, "OrderID";
        /// Lower is executed first at the same price.
        8 => priority: Optional<le::U64>, "MDOrderPriority";
        16 => price: Price9, "MDEntryPx";
        24 => display_qty: le::I32, "MDDisplayQty";
        /// See [`EntryType`](super::EntryType).
        28 => entry_type: Char, "MDEntryType";
    }
}

wire_struct! {
    /// Root block of `SnapshotRefreshTopOrders59`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct TopOrdersRoot = "SnapshotRefreshTopOrders", 13 {
        /// Nanoseconds since the Unix epoch, UTC.
        0 => transact_time: le::U64, "TransactTime";
        /// See [`indicator`](super::indicator).
        8 => indicator: u8, "MatchEventIndicator";
        9 => security_id: le::I32, "SecurityID";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `SnapshotRefreshTopOrders59`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct TopOrderEntry = "NoMDEntries", 29 {
        0 => order_id: le::U64, "OrderID";
        /// Lower is executed first at the same price.
        8 => priority: le::U64, "MDOrderPriority";
        16 => price: Price9, "MDEntryPx";
        24 => display_qty: le::I32, "MDDisplayQty";
        /// See [`EntryType`](super::EntryType).
        28 => entry_type: Char, "MDEntryType";
    }
}

wire_struct! {
    /// Root block of `SnapshotFullRefreshTCP61`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct TcpSnapshotRoot = "SnapshotFullRefreshTCP", 37 {
        /// Nanoseconds since the Unix epoch, UTC.
        0 => transact_time: le::U64, "TransactTime";
        /// See [`indicator`](super::indicator).
        8 => indicator: u8, "MatchEventIndicator";
        9 => security_id: le::I32, "SecurityID";
        13 => high_limit: Optional<Price9>, "HighLimitPrice";
        21 => low_limit: Optional<Price9>, "LowLimitPrice";
        29 => max_price_variation: Optional<Price9>, "MaxPriceVariation";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `SnapshotFullRefreshTCP61`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct TcpSnapshotEntry = "NoMDEntries", 26 {
        0 => price: Optional<Price9>, "MDEntryPx";
        8 => size: Optional<le::I32>, "MDEntrySize";
        12 => tradeable_size: Optional<le::I32>, "TradeableSize";
        16 => orders: Optional<le::I32>, "NumberOfOrders";
        /// 1 is the best.
        20 => level: Optional<i8>, "MDPriceLevel";
        21 => open_close_settl_flag: Optional<u8>, "OpenCloseSettlFlag";
        /// See [`EntryType`](super::EntryType).
        22 => entry_type: Char, "MDEntryType";
        /// Days since the Unix epoch.
        23 => trading_reference_date: Optional<le::U16>, "TradingReferenceDate";
        25 => settl_price_type: u8, "SettlPriceType";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `SnapshotFullRefreshTCPLongQty68`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct SnapshotEntryLongQty = "NoMDEntries", 23 {
        0 => price: Optional<Price9>, "MDEntryPx";
        8 => size: Optional<le::U64>, "MDEntrySize";
        16 => orders: Optional<le::I32>, "NumberOfOrders";
        /// 1 is the best.
        20 => level: Optional<u8>, "MDPriceLevel";
        21 => open_close_settl_flag: Optional<u8>, "OpenCloseSettlFlag";
        /// See [`EntryType`](super::EntryType).
        22 => entry_type: Char, "MDEntryType";
    }
}

layouts! {
    SnapshotRoot;
    SnapshotEntry;
    SnapshotOrdersRoot;
    SnapshotOrderEntry;
    TopOrdersRoot;
    TopOrderEntry;
    TcpSnapshotRoot;
    TcpSnapshotEntry;
    SnapshotEntryLongQty;
}
