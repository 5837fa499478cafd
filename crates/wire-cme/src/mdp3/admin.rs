//! Layouts of session messages, security status, quote requests and collateral values.
//!
//! CME MDP 3.0, SBE schema 1 version 13 (`templates_FixBinary.xml`, 2023-04-11); every row is compared with
//! it in a test.

use super::block::{Optional, Price9, Text, layouts};
use crate::layout::le;
use crate::wire_struct;

wire_struct! {
    /// Entry of `NoMDEntries` in `ChannelReset4`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct ChannelResetEntry = "NoMDEntries", 2 {
        0 => appl_id: le::I16, "ApplID";
    }
}

wire_struct! {
    /// Root block of `AdminLogin15`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct AdminLoginRoot = "AdminLogin", 1 {
        0 => heart_bt_int: i8, "HeartBtInt";
    }
}

wire_struct! {
    /// Root block of `AdminLogout16`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct AdminLogoutRoot = "AdminLogout", 180 {
        0 => text: Text<180>, "Text";
    }
}

wire_struct! {
    /// Root block of `SecurityStatus30`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct SecurityStatusRoot = "SecurityStatus", 30 {
        /// Nanoseconds since the Unix epoch, UTC.
        0 => transact_time: le::U64, "TransactTime";
        8 => security_group: Text<6>, "SecurityGroup";
        14 => asset: Text<6>, "Asset";
        20 => security_id: Optional<le::I32>, "SecurityID";
        /// Days since the Unix epoch.
        24 => trade_date: Optional<le::U16>, "TradeDate";
        /// See [`indicator`](super::indicator).
        26 => indicator: u8, "MatchEventIndicator";
        /// See [`TradingStatusCode`](super::TradingStatusCode).
        27 => trading_status: Optional<u8>, "SecurityTradingStatus";
        /// 0 to 7, see the schema.
        28 => halt_reason: u8, "HaltReason";
        29 => trading_event: u8, "SecurityTradingEvent";
    }
}

wire_struct! {
    /// Root block of `QuoteRequest39`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct QuoteRequestRoot = "QuoteRequest", 32 {
        /// Nanoseconds since the Unix epoch, UTC.
        0 => transact_time: le::U64, "TransactTime";
        8 => quote_req_id: Text<23>, "QuoteReqID";
        /// See [`indicator`](super::indicator).
        31 => indicator: u8, "MatchEventIndicator";
    }
}

wire_struct! {
    /// Entry of `NoRelatedSym` in `QuoteRequest39`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct QuoteRequestEntry = "NoRelatedSym", 30 {
        0 => symbol: Text<20>, "Symbol";
        20 => security_id: le::I32, "SecurityID";
        24 => order_qty: Optional<le::I32>, "OrderQty";
        28 => quote_type: i8, "QuoteType";
        29 => side: Optional<i8>, "Side";
    }
}

wire_struct! {
    /// Root block of `SecurityStatusWorkup60`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct WorkupRoot = "SecurityStatusWorkup", 30 {
        /// Nanoseconds since the Unix epoch, UTC.
        0 => transact_time: le::U64, "TransactTime";
        8 => price: Optional<Price9>, "MDEntryPx";
        16 => security_id: le::I32, "SecurityID";
        /// See [`indicator`](super::indicator).
        20 => indicator: u8, "MatchEventIndicator";
        /// Days since the Unix epoch.
        21 => trade_date: Optional<le::U16>, "TradeDate";
        23 => trade_link_id: le::U32, "TradeLinkID";
        /// See [`TradingStatusCode`](super::TradingStatusCode).
        27 => trading_status: u8, "SecurityTradingStatus";
        /// 0 to 7, see the schema.
        28 => halt_reason: u8, "HaltReason";
        29 => trading_event: u8, "SecurityTradingEvent";
    }
}

wire_struct! {
    /// Entry of `NoOrderIDEntries` in `SecurityStatusWorkup60`. MDP 3.0 SBE schema 1, version 13
    /// (2023-04-11).
    pub struct WorkupOrderEntry = "NoOrderIDEntries", 10 {
        0 => order_id: le::U64, "OrderID";
        8 => side: u8, "Side";
        9 => aggressor_indicator: Optional<u8>, "AggressorIndicator";
    }
}

wire_struct! {
    /// Entry of `NoMDEntries` in `CollateralMarketValue62`. MDP 3.0 SBE schema 1, version 13 (2023-04-11).
    pub struct CollateralEntry = "NoMDEntries", 38 {
        0 => underlying_security_alt_id: Text<12>, "UnderlyingSecurityAltID";
        12 => underlying_security_alt_id_source: Optional<u8>, "UnderlyingSecurityAltIDSource";
        13 => collateral_market_price: Price9, "CollateralMarketPrice";
        21 => dirty_price: Price9, "DirtyPrice";
        29 => underlying_instrument_guid: le::U64, "UnderlyingInstrumentGUID";
        37 => stream_id: Optional<u8>, "MDStreamID";
    }
}

layouts! {
    ChannelResetEntry [3 => 0];
    AdminLoginRoot;
    AdminLogoutRoot;
    SecurityStatusRoot;
    QuoteRequestRoot;
    QuoteRequestEntry;
    WorkupRoot;
    WorkupOrderEntry;
    CollateralEntry;
}
