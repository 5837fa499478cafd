//! Layouts of what clients send.
//!
//! iLink 3 SBE schema 8, version 9 (2025-11-04); `cargo xtask oracle` compares every row with an independent
//! dissector.

use super::Date;
use crate::layout::{Char, le};
use crate::sbe::{Optional, Price9, Text, layouts};
use crate::wire_struct;

wire_struct! {
    /// Root block of `NewOrderSingle514`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct NewOrderSingleRoot = "NewOrderSingle", 132 {
        0 => price: Optional<Price9>, "Price";
        8 => order_qty: le::U32, "OrderQty";
        12 => security_id: le::I32, "SecurityID";
        /// 1 buy, 2 sell.
        16 => side: u8, "Side";
        /// By direction and UUID, from 1.
        17 => seq_num: le::U32, "SeqNum";
        21 => sender_id: Text<20>, "SenderID";
        41 => cl_ord_id: Text<20>, "ClOrdID";
        61 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        69 => order_request_id: le::U64, "OrderRequestID";
        /// Nanoseconds since the Unix epoch, UTC.
        77 => sending_time: le::U64, "SendingTimeEpoch";
        85 => stop_price: Optional<Price9>, "StopPx";
        93 => location: Text<5>, "Location";
        98 => min_qty: Optional<le::U32>, "MinQty";
        102 => display_qty: Optional<le::U32>, "DisplayQty";
        /// Days since the Unix epoch.
        106 => expire_date: Date, "ExpireDate";
        /// See [`OrdType`](super::OrdType).
        108 => ord_type: Optional<Char>, "OrdType";
        /// 0 day, 1 good till cancel, 3 fill and kill, 4 fill or kill, 6 good till date, 99 session.
        109 => time_in_force: Optional<u8>, "TimeInForce";
        /// 0 automated, 1 manual.
        110 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// Bit 0 all or none, 1 OB, 2 not held.
        111 => exec_inst: u8, "ExecInst";
        /// `A` aggressive, `P` passive.
        112 => execution_mode: Optional<Char>, "ExecutionMode";
        113 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        114 => managed_order: Optional<u8>, "ManagedOrder";
        /// 0 long sell, 1 to 3 kinds of short sale.
        115 => short_sale_type: Optional<u8>, "ShortSaleType";
        116 => discretion_price: Optional<Price9>, "DiscretionPrice";
        124 => reservation_price: Optional<Price9>, "ReservationPrice";
    }
}

wire_struct! {
    /// Root block of `OrderCancelReplaceRequest515`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct OrderCancelReplaceRequestRoot = "OrderCancelReplaceRequest", 133 {
        0 => price: Optional<Price9>, "Price";
        8 => order_qty: le::U32, "OrderQty";
        12 => security_id: le::I32, "SecurityID";
        /// 1 buy, 2 sell.
        16 => side: u8, "Side";
        /// By direction and UUID, from 1.
        17 => seq_num: le::U32, "SeqNum";
        21 => sender_id: Text<20>, "SenderID";
        41 => cl_ord_id: Text<20>, "ClOrdID";
        61 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        69 => order_id: Optional<le::U64>, "OrderID";
        77 => stop_price: Optional<Price9>, "StopPx";
        85 => order_request_id: le::U64, "OrderRequestID";
        /// Nanoseconds since the Unix epoch, UTC.
        93 => sending_time: le::U64, "SendingTimeEpoch";
        101 => location: Text<5>, "Location";
        106 => min_qty: Optional<le::U32>, "MinQty";
        110 => display_qty: Optional<le::U32>, "DisplayQty";
        /// Days since the Unix epoch.
        114 => expire_date: Date, "ExpireDate";
        /// See [`OrdType`](super::OrdType).
        116 => ord_type: Optional<Char>, "OrdType";
        /// 0 day, 1 good till cancel, 3 fill and kill, 4 fill or kill, 6 good till date, 99 session.
        117 => time_in_force: Optional<u8>, "TimeInForce";
        /// 0 automated, 1 manual.
        118 => manual_order_indicator: u8, "ManualOrderIndicator";
        119 => ofm_override: u8, "OFMOverride";
        /// Bit 0 all or none, 1 OB, 2 not held.
        120 => exec_inst: u8, "ExecInst";
        /// `A` aggressive, `P` passive.
        121 => execution_mode: Optional<Char>, "ExecutionMode";
        122 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        123 => managed_order: Optional<u8>, "ManagedOrder";
        /// 0 long sell, 1 to 3 kinds of short sale.
        124 => short_sale_type: Optional<u8>, "ShortSaleType";
        125 => discretion_price: Optional<Price9>, "DiscretionPrice";
    }
}

wire_struct! {
    /// Root block of `OrderCancelRequest516`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct OrderCancelRequestRoot = "OrderCancelRequest", 96 {
        0 => order_id: Optional<le::U64>, "OrderID";
        8 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        /// 0 automated, 1 manual.
        16 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// By direction and UUID, from 1.
        17 => seq_num: le::U32, "SeqNum";
        21 => sender_id: Text<20>, "SenderID";
        41 => cl_ord_id: Text<20>, "ClOrdID";
        61 => order_request_id: le::U64, "OrderRequestID";
        /// Nanoseconds since the Unix epoch, UTC.
        69 => sending_time: le::U64, "SendingTimeEpoch";
        77 => location: Text<5>, "Location";
        82 => security_id: le::I32, "SecurityID";
        /// 1 buy, 2 sell.
        86 => side: u8, "Side";
        87 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        88 => orig_order_user: Text<8>, "OrigOrderUser";
    }
}

wire_struct! {
    /// Root block of `MassQuote517`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct MassQuoteRoot = "MassQuote", 123 {
        0 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        /// Nanoseconds since the Unix epoch, UTC.
        8 => sending_time: le::U64, "SendingTimeEpoch";
        /// 0 automated, 1 manual.
        16 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// By direction and UUID, from 1.
        17 => seq_num: le::U32, "SeqNum";
        21 => sender_id: Text<20>, "SenderID";
        41 => quote_req_id: Optional<le::U64>, "QuoteReqID";
        49 => location: Text<5>, "Location";
        54 => quote_id: le::U32, "QuoteID";
        58 => tot_no_quote_entries: u8, "TotNoQuoteEntries";
        /// 1: quoting goes on after the venue's protection.
        59 => protection_reset: u8, "MMProtectionReset";
        60 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        /// 0 long sell, 1 to 3 kinds of short sale.
        61 => short_sale_type: Optional<u8>, "ShortSaleType";
        62 => reserved: Text<30>, "Reserved";
        92 => reserved1: Text<30>, "Reserved1";
        122 => quote_entry_open: Optional<u8>, "QuoteEntryOpen";
    }
}

wire_struct! {
    /// Entry of `NoQuoteEntries` in `MassQuote517`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct QuoteEntry = "NoQuoteEntries", 38 {
        0 => bid_price: Optional<Price9>, "BidPx";
        8 => offer_price: Optional<Price9>, "OfferPx";
        /// The quote's place in the list of its sender; the venue gives it back with fills, as ClOrdID.
        16 => quote_entry_id: le::U32, "QuoteEntryID";
        20 => security_id: le::I32, "SecurityID";
        24 => bid_size: Optional<le::U32>, "BidSize";
        28 => offer_size: Optional<le::U32>, "OfferSize";
        32 => underlying_security_id: Optional<le::I32>, "UnderlyingSecurityID";
        36 => quote_set_id: le::U16, "QuoteSetID";
    }
}

wire_struct! {
    /// Root block of `QuoteCancel528`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct QuoteCancelRoot = "QuoteCancel", 61 {
        0 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        /// Nanoseconds since the Unix epoch, UTC.
        8 => sending_time: le::U64, "SendingTimeEpoch";
        /// 0 automated, 1 manual.
        16 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// By direction and UUID, from 1.
        17 => seq_num: le::U32, "SeqNum";
        21 => sender_id: Text<20>, "SenderID";
        41 => location: Text<5>, "Location";
        46 => quote_id: le::U32, "QuoteID";
        /// See [`QuoteCancelType`](super::QuoteCancelType).
        50 => quote_cancel_type: u8, "QuoteCancelType";
        51 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        52 => orig_order_user: Text<8>, "OrigOrderUser";
        60 => quote_entry_open: Optional<u8>, "QuoteEntryOpen";
    }
}

wire_struct! {
    /// Entry of `NoQuoteEntries` in `QuoteCancel528`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct QuoteCancelEntry = "NoQuoteEntries", 10 {
        0 => security_group: Text<6>, "SecurityGroup";
        6 => security_id: Optional<le::I32>, "SecurityID";
    }
}

wire_struct! {
    /// Entry of `NoQuoteSets` in `QuoteCancel528`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct QuoteCancelSet = "NoQuoteSets", 10 {
        0 => bid_size: Optional<le::U32>, "BidSize";
        4 => offer_size: Optional<le::U32>, "OfferSize";
        8 => quote_set_id: le::U16, "QuoteSetID";
    }
}

layouts! {
    NewOrderSingleRoot [6 => 116, 8 => 124];
    OrderCancelReplaceRequestRoot [6 => 125];
    OrderCancelRequestRoot [8 => 88];
    MassQuoteRoot [5 => 62, 8 => 92];
    QuoteEntry;
    QuoteCancelRoot [8 => 52];
    QuoteCancelEntry;
    QuoteCancelSet;
}
