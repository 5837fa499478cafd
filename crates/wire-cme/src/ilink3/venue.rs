//! Layouts of what the venue answers.
//!
//! iLink 3 SBE schema 8, version 9 (2025-11-04); `cargo xtask oracle` compares every row with an independent
//! dissector.

use super::{Date, Decimal64};
use crate::layout::{Char, le};
use crate::sbe::{Optional, Price9, Text, layouts};
use crate::wire_struct;

wire_struct! {
    /// Root block of `BusinessReject521`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct BusinessRejectRoot = "BusinessReject", 330 {
        /// By direction and UUID, from 1.
        0 => seq_num: le::U32, "SeqNum";
        /// Of the session: rises from week to week.
        4 => uuid: le::U64, "UUID";
        12 => text: Text<256>, "Text";
        268 => sender_id: Text<20>, "SenderID";
        288 => party_details_list_req_id: Optional<le::U64>, "PartyDetailsListReqID";
        /// Nanoseconds since the Unix epoch, UTC.
        296 => sending_time: le::U64, "SendingTimeEpoch";
        304 => business_reject_ref_id: Optional<le::U64>, "BusinessRejectRefID";
        312 => location: Text<5>, "Location";
        317 => ref_seq_num: Optional<le::U32>, "RefSeqNum";
        321 => ref_tag_id: Optional<le::U16>, "RefTagID";
        323 => business_reject_reason: le::U16, "BusinessRejectReason";
        325 => ref_msg_type: Text<2>, "RefMsgType";
        /// 1: sent before, perhaps.
        327 => poss_retrans_flag: u8, "PossRetransFlag";
        /// 0 automated, 1 manual.
        328 => manual_order_indicator: Optional<u8>, "ManualOrderIndicator";
        /// 0 split, 1 out of order, 2 behind one of these.
        329 => split_msg: Optional<u8>, "SplitMsg";
    }
}

wire_struct! {
    /// Root block of `ExecutionReportNew522`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct ExecutionReportNewRoot = "ExecutionReportNew", 226 {
        /// By direction and UUID, from 1.
        0 => seq_num: le::U32, "SeqNum";
        /// Of the session: rises from week to week.
        4 => uuid: le::U64, "UUID";
        12 => exec_id: Text<40>, "ExecID";
        52 => sender_id: Text<20>, "SenderID";
        72 => cl_ord_id: Text<20>, "ClOrdID";
        92 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        100 => order_id: le::U64, "OrderID";
        108 => price: Price9, "Price";
        116 => stop_price: Optional<Price9>, "StopPx";
        /// Nanoseconds since the Unix epoch, UTC.
        124 => transact_time: le::U64, "TransactTime";
        /// Nanoseconds since the Unix epoch, UTC.
        132 => sending_time: le::U64, "SendingTimeEpoch";
        140 => order_request_id: le::U64, "OrderRequestID";
        148 => cross_id: Optional<le::U64>, "CrossID";
        156 => host_cross_id: Optional<le::U64>, "HostCrossID";
        164 => location: Text<5>, "Location";
        169 => security_id: le::I32, "SecurityID";
        173 => order_qty: le::U32, "OrderQty";
        177 => min_qty: Optional<le::U32>, "MinQty";
        181 => display_qty: Optional<le::U32>, "DisplayQty";
        /// Days since the Unix epoch.
        185 => expire_date: Date, "ExpireDate";
        187 => delay_duration: Optional<le::U16>, "DelayDuration";
        /// See [`OrdType`](super::OrdType).
        189 => ord_type: Optional<Char>, "OrdType";
        /// 1 buy, 2 sell.
        190 => side: u8, "Side";
        /// 0 day, 1 good till cancel, 3 fill and kill, 4 fill or kill, 6 good till date, 99 session.
        191 => time_in_force: Optional<u8>, "TimeInForce";
        /// 0 automated, 1 manual.
        192 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// 1: sent before, perhaps.
        193 => poss_retrans_flag: u8, "PossRetransFlag";
        /// 0 split, 1 out of order, 2 behind one of these.
        194 => split_msg: Optional<u8>, "SplitMsg";
        195 => cross_type: Optional<u8>, "CrossType";
        /// Bit 0 all or none, 1 OB, 2 not held.
        196 => exec_inst: u8, "ExecInst";
        /// `A` aggressive, `P` passive.
        197 => execution_mode: Optional<Char>, "ExecutionMode";
        198 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        199 => managed_order: Optional<u8>, "ManagedOrder";
        /// 0 long sell, 1 to 3 kinds of short sale.
        200 => short_sale_type: Optional<u8>, "ShortSaleType";
        /// Nanoseconds since the Unix epoch, UTC: until when it was held back.
        201 => delay_to_time: Optional<le::U64>, "DelayToTime";
        209 => discretion_price: Optional<Price9>, "DiscretionPrice";
        217 => reservation_price: Optional<Price9>, "ReservationPrice";
        225 => priority_indicator: Optional<u8>, "PriorityIndicator";
    }
}

wire_struct! {
    /// Root block of `ExecutionReportReject523`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct ExecutionReportRejectRoot = "ExecutionReportReject", 483 {
        /// By direction and UUID, from 1.
        0 => seq_num: le::U32, "SeqNum";
        /// Of the session: rises from week to week.
        4 => uuid: le::U64, "UUID";
        12 => text: Text<256>, "Text";
        268 => exec_id: Text<40>, "ExecID";
        308 => sender_id: Text<20>, "SenderID";
        328 => cl_ord_id: Text<20>, "ClOrdID";
        348 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        356 => order_id: le::U64, "OrderID";
        364 => price: Optional<Price9>, "Price";
        372 => stop_price: Optional<Price9>, "StopPx";
        /// Nanoseconds since the Unix epoch, UTC.
        380 => transact_time: le::U64, "TransactTime";
        /// Nanoseconds since the Unix epoch, UTC.
        388 => sending_time: le::U64, "SendingTimeEpoch";
        396 => order_request_id: le::U64, "OrderRequestID";
        404 => cross_id: Optional<le::U64>, "CrossID";
        412 => host_cross_id: Optional<le::U64>, "HostCrossID";
        420 => location: Text<5>, "Location";
        425 => security_id: le::I32, "SecurityID";
        429 => order_qty: le::U32, "OrderQty";
        433 => min_qty: Optional<le::U32>, "MinQty";
        437 => display_qty: Optional<le::U32>, "DisplayQty";
        441 => ord_rej_reason: le::U16, "OrdRejReason";
        /// Days since the Unix epoch.
        443 => expire_date: Date, "ExpireDate";
        445 => delay_duration: Optional<le::U16>, "DelayDuration";
        /// See [`OrdType`](super::OrdType).
        447 => ord_type: Optional<Char>, "OrdType";
        /// 1 buy, 2 sell.
        448 => side: u8, "Side";
        /// 0 day, 1 good till cancel, 3 fill and kill, 4 fill or kill, 6 good till date, 99 session.
        449 => time_in_force: Optional<u8>, "TimeInForce";
        /// 0 automated, 1 manual.
        450 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// 1: sent before, perhaps.
        451 => poss_retrans_flag: u8, "PossRetransFlag";
        /// 0 split, 1 out of order, 2 behind one of these.
        452 => split_msg: Optional<u8>, "SplitMsg";
        453 => cross_type: Optional<u8>, "CrossType";
        /// Bit 0 all or none, 1 OB, 2 not held.
        454 => exec_inst: u8, "ExecInst";
        /// `A` aggressive, `P` passive.
        455 => execution_mode: Optional<Char>, "ExecutionMode";
        456 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        457 => managed_order: Optional<u8>, "ManagedOrder";
        /// 0 long sell, 1 to 3 kinds of short sale.
        458 => short_sale_type: Optional<u8>, "ShortSaleType";
        /// Nanoseconds since the Unix epoch, UTC: until when it was held back.
        459 => delay_to_time: Optional<le::U64>, "DelayToTime";
        467 => discretion_price: Optional<Price9>, "DiscretionPrice";
        475 => reservation_price: Optional<Price9>, "ReservationPrice";
    }
}

wire_struct! {
    /// Root block of `ExecutionReportElimination524`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct ExecutionReportEliminationRoot = "ExecutionReportElimination", 219 {
        /// By direction and UUID, from 1.
        0 => seq_num: le::U32, "SeqNum";
        /// Of the session: rises from week to week.
        4 => uuid: le::U64, "UUID";
        12 => exec_id: Text<40>, "ExecID";
        52 => sender_id: Text<20>, "SenderID";
        72 => cl_ord_id: Text<20>, "ClOrdID";
        92 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        100 => order_id: le::U64, "OrderID";
        108 => price: Price9, "Price";
        116 => stop_price: Optional<Price9>, "StopPx";
        /// Nanoseconds since the Unix epoch, UTC.
        124 => transact_time: le::U64, "TransactTime";
        /// Nanoseconds since the Unix epoch, UTC.
        132 => sending_time: le::U64, "SendingTimeEpoch";
        140 => order_request_id: le::U64, "OrderRequestID";
        148 => cross_id: Optional<le::U64>, "CrossID";
        156 => host_cross_id: Optional<le::U64>, "HostCrossID";
        164 => location: Text<5>, "Location";
        169 => security_id: le::I32, "SecurityID";
        173 => cum_qty: le::U32, "CumQty";
        177 => order_qty: le::U32, "OrderQty";
        181 => min_qty: Optional<le::U32>, "MinQty";
        185 => display_qty: Optional<le::U32>, "DisplayQty";
        /// Days since the Unix epoch.
        189 => expire_date: Date, "ExpireDate";
        /// See [`OrdType`](super::OrdType).
        191 => ord_type: Optional<Char>, "OrdType";
        /// 1 buy, 2 sell.
        192 => side: u8, "Side";
        /// 0 day, 1 good till cancel, 3 fill and kill, 4 fill or kill, 6 good till date, 99 session.
        193 => time_in_force: Optional<u8>, "TimeInForce";
        /// 0 automated, 1 manual.
        194 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// 1: sent before, perhaps.
        195 => poss_retrans_flag: u8, "PossRetransFlag";
        196 => cross_type: Optional<u8>, "CrossType";
        /// Bit 0 all or none, 1 OB, 2 not held.
        197 => exec_inst: u8, "ExecInst";
        /// `A` aggressive, `P` passive.
        198 => execution_mode: Optional<Char>, "ExecutionMode";
        199 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        200 => managed_order: Optional<u8>, "ManagedOrder";
        /// 0 long sell, 1 to 3 kinds of short sale.
        201 => short_sale_type: Optional<u8>, "ShortSaleType";
        202 => discretion_price: Optional<Price9>, "DiscretionPrice";
        210 => reservation_price: Optional<Price9>, "ReservationPrice";
        218 => priority_indicator: Optional<u8>, "PriorityIndicator";
    }
}

wire_struct! {
    /// Root block of `ExecutionReportTradeOutright525`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct ExecutionReportTradeOutrightRoot = "ExecutionReportTradeOutright", 293 {
        /// By direction and UUID, from 1.
        0 => seq_num: le::U32, "SeqNum";
        /// Of the session: rises from week to week.
        4 => uuid: le::U64, "UUID";
        12 => exec_id: Text<40>, "ExecID";
        52 => sender_id: Text<20>, "SenderID";
        72 => cl_ord_id: Text<20>, "ClOrdID";
        92 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        100 => last_price: Price9, "LastPx";
        108 => order_id: le::U64, "OrderID";
        116 => price: Price9, "Price";
        124 => stop_price: Optional<Price9>, "StopPx";
        /// Nanoseconds since the Unix epoch, UTC.
        132 => transact_time: le::U64, "TransactTime";
        /// Nanoseconds since the Unix epoch, UTC.
        140 => sending_time: le::U64, "SendingTimeEpoch";
        148 => order_request_id: le::U64, "OrderRequestID";
        156 => sec_exec_id: le::U64, "SecExecID";
        164 => cross_id: Optional<le::U64>, "CrossID";
        172 => host_cross_id: Optional<le::U64>, "HostCrossID";
        180 => location: Text<5>, "Location";
        185 => security_id: le::I32, "SecurityID";
        189 => order_qty: le::U32, "OrderQty";
        193 => last_qty: le::U32, "LastQty";
        197 => cum_qty: le::U32, "CumQty";
        201 => trade_entry_id: le::U32, "MDTradeEntryID";
        205 => side_trade_id: le::U32, "SideTradeID";
        209 => trade_link_id: Optional<le::U32>, "TradeLinkID";
        213 => leaves_qty: le::U32, "LeavesQty";
        /// Days since the Unix epoch.
        217 => trade_date: Date, "TradeDate";
        /// Days since the Unix epoch.
        219 => expire_date: Date, "ExpireDate";
        /// 1 partly filled, 2 filled.
        221 => ord_status: u8, "OrdStatus";
        /// See [`OrdType`](super::OrdType).
        222 => ord_type: Optional<Char>, "OrdType";
        /// 1 buy, 2 sell.
        223 => side: u8, "Side";
        /// 0 day, 1 good till cancel, 3 fill and kill, 4 fill or kill, 6 good till date, 99 session.
        224 => time_in_force: Optional<u8>, "TimeInForce";
        /// 0 automated, 1 manual.
        225 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// 1: sent before, perhaps.
        226 => poss_retrans_flag: u8, "PossRetransFlag";
        227 => aggressor_indicator: u8, "AggressorIndicator";
        228 => cross_type: Optional<u8>, "CrossType";
        /// Bit 0 all or none, 1 OB, 2 not held.
        229 => exec_inst: u8, "ExecInst";
        /// `A` aggressive, `P` passive.
        230 => execution_mode: Optional<Char>, "ExecutionMode";
        231 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        232 => managed_order: Optional<u8>, "ManagedOrder";
        /// 0 long sell, 1 to 3 kinds of short sale.
        233 => short_sale_type: Optional<u8>, "ShortSaleType";
        234 => ownership: u8, "Ownership";
        235 => discretion_price: Optional<Price9>, "DiscretionPrice";
        243 => trd_type: Optional<le::U16>, "TrdType";
        /// 100 disconnected, 103 and 107 self-match, 104 credit, 111 system.
        245 => exec_restatement_reason: Optional<u8>, "ExecRestatementReason";
        246 => settl_date: Date, "SettlDate";
        248 => maturity_date: Date, "MaturityDate";
        250 => calculated_ccy_last_qty: Decimal64, "CalculatedCcyLastQty";
        259 => gross_trade_amt: Decimal64, "GrossTradeAmt";
        268 => benchmark_price: Optional<Price9>, "BenchmarkPrice";
        276 => reservation_price: Optional<Price9>, "ReservationPrice";
        284 => priority_indicator: Optional<u8>, "PriorityIndicator";
        285 => display_limit_price: Optional<Price9>, "DisplayLimitPrice";
    }
}

wire_struct! {
    /// Entry of `NoFills` in `ExecutionReportTradeOutright525`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct FillEntry = "NoFills", 15 {
        0 => fill_price: Price9, "FillPx";
        8 => fill_qty: le::U32, "FillQty";
        12 => fill_exec_id: Text<2>, "FillExecID";
        14 => fill_yield_type: u8, "FillYieldType";
    }
}

wire_struct! {
    /// Entry of `NoOrderEvents` in `ExecutionReportTradeOutright525`. iLink 3 SBE schema 8, version 9
    /// (2025-11-04).
    pub struct OrderEventEntry = "NoOrderEvents", 41 {
        0 => order_event_price: Price9, "OrderEventPx";
        8 => order_event_text: Text<5>, "OrderEventText";
        13 => order_event_exec_id: le::U32, "OrderEventExecID";
        17 => order_event_qty: le::U32, "OrderEventQty";
        21 => order_event_type: Optional<u8>, "OrderEventType";
        22 => order_event_reason: u8, "OrderEventReason";
        23 => contra_gross_trade_amt: Decimal64, "ContraGrossTradeAmt";
        32 => contra_calculated_ccy_last_qty: Decimal64, "ContraCalculatedCcyLastQty";
    }
}

wire_struct! {
    /// Root block of `ExecutionReportCancel534`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct ExecutionReportCancelRoot = "ExecutionReportCancel", 247 {
        /// By direction and UUID, from 1.
        0 => seq_num: le::U32, "SeqNum";
        /// Of the session: rises from week to week.
        4 => uuid: le::U64, "UUID";
        12 => exec_id: Text<40>, "ExecID";
        52 => sender_id: Text<20>, "SenderID";
        72 => cl_ord_id: Text<20>, "ClOrdID";
        92 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        100 => order_id: le::U64, "OrderID";
        108 => price: Price9, "Price";
        116 => stop_price: Optional<Price9>, "StopPx";
        /// Nanoseconds since the Unix epoch, UTC.
        124 => transact_time: le::U64, "TransactTime";
        /// Nanoseconds since the Unix epoch, UTC.
        132 => sending_time: le::U64, "SendingTimeEpoch";
        140 => order_request_id: le::U64, "OrderRequestID";
        148 => cross_id: Optional<le::U64>, "CrossID";
        156 => host_cross_id: Optional<le::U64>, "HostCrossID";
        164 => location: Text<5>, "Location";
        169 => security_id: le::I32, "SecurityID";
        173 => order_qty: le::U32, "OrderQty";
        177 => cum_qty: le::U32, "CumQty";
        181 => min_qty: Optional<le::U32>, "MinQty";
        185 => display_qty: Optional<le::U32>, "DisplayQty";
        /// Days since the Unix epoch.
        189 => expire_date: Date, "ExpireDate";
        191 => delay_duration: Optional<le::U16>, "DelayDuration";
        /// See [`OrdType`](super::OrdType).
        193 => ord_type: Optional<Char>, "OrdType";
        /// 1 buy, 2 sell.
        194 => side: u8, "Side";
        /// 0 day, 1 good till cancel, 3 fill and kill, 4 fill or kill, 6 good till date, 99 session.
        195 => time_in_force: Optional<u8>, "TimeInForce";
        /// 0 automated, 1 manual.
        196 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// 1: sent before, perhaps.
        197 => poss_retrans_flag: u8, "PossRetransFlag";
        /// 0 split, 1 out of order, 2 behind one of these.
        198 => split_msg: Optional<u8>, "SplitMsg";
        /// 100 disconnected, 103 and 107 self-match, 104 credit, 111 system.
        199 => exec_restatement_reason: Optional<u8>, "ExecRestatementReason";
        200 => cross_type: Optional<u8>, "CrossType";
        /// Bit 0 all or none, 1 OB, 2 not held.
        201 => exec_inst: u8, "ExecInst";
        /// `A` aggressive, `P` passive.
        202 => execution_mode: Optional<Char>, "ExecutionMode";
        203 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        204 => managed_order: Optional<u8>, "ManagedOrder";
        /// 0 long sell, 1 to 3 kinds of short sale.
        205 => short_sale_type: Optional<u8>, "ShortSaleType";
        /// Nanoseconds since the Unix epoch, UTC: until when it was held back.
        206 => delay_to_time: Optional<le::U64>, "DelayToTime";
        214 => discretion_price: Optional<Price9>, "DiscretionPrice";
        222 => reservation_price: Optional<Price9>, "ReservationPrice";
        230 => priority_indicator: Optional<u8>, "PriorityIndicator";
        231 => orig_order_user: Text<8>, "OrigOrderUser";
        239 => cancel_text: Text<8>, "CancelText";
    }
}

wire_struct! {
    /// Root block of `OrderCancelReject535`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct OrderCancelRejectRoot = "OrderCancelReject", 409 {
        /// By direction and UUID, from 1.
        0 => seq_num: le::U32, "SeqNum";
        /// Of the session: rises from week to week.
        4 => uuid: le::U64, "UUID";
        12 => text: Text<256>, "Text";
        268 => exec_id: Text<40>, "ExecID";
        308 => sender_id: Text<20>, "SenderID";
        328 => cl_ord_id: Text<20>, "ClOrdID";
        348 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        356 => order_id: le::U64, "OrderID";
        /// Nanoseconds since the Unix epoch, UTC.
        364 => transact_time: le::U64, "TransactTime";
        /// Nanoseconds since the Unix epoch, UTC.
        372 => sending_time: le::U64, "SendingTimeEpoch";
        380 => order_request_id: le::U64, "OrderRequestID";
        388 => location: Text<5>, "Location";
        393 => cxl_rej_reason: le::U16, "CxlRejReason";
        395 => delay_duration: Optional<le::U16>, "DelayDuration";
        /// 0 automated, 1 manual.
        397 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// 1: sent before, perhaps.
        398 => poss_retrans_flag: u8, "PossRetransFlag";
        /// 0 split, 1 out of order, 2 behind one of these.
        399 => split_msg: Optional<u8>, "SplitMsg";
        400 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        /// Nanoseconds since the Unix epoch, UTC: until when it was held back.
        401 => delay_to_time: Optional<le::U64>, "DelayToTime";
    }
}

wire_struct! {
    /// Root block of `MassQuoteAck545`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct MassQuoteAckRoot = "MassQuoteAck", 352 {
        /// By direction and UUID, from 1.
        0 => seq_num: le::U32, "SeqNum";
        /// Of the session: rises from week to week.
        4 => uuid: le::U64, "UUID";
        12 => text: Text<256>, "Text";
        268 => sender_id: Text<20>, "SenderID";
        288 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        /// Nanoseconds since the Unix epoch, UTC; the request's `SendingTimeEpoch`.
        296 => request_time: le::U64, "RequestTime";
        /// Nanoseconds since the Unix epoch, UTC.
        304 => sending_time: le::U64, "SendingTimeEpoch";
        312 => quote_req_id: Optional<le::U64>, "QuoteReqID";
        320 => location: Text<5>, "Location";
        325 => quote_id: le::U32, "QuoteID";
        329 => quote_reject_reason: Optional<le::U16>, "QuoteRejectReason";
        331 => delay_duration: Optional<le::U16>, "DelayDuration";
        /// 0 accepted, 5 rejected.
        333 => quote_status: u8, "QuoteStatus";
        /// 0 automated, 1 manual.
        334 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// Entries accepted.
        335 => no_processed_entries: u8, "NoProcessedEntries";
        /// 1: quoting goes on after the venue's protection.
        336 => protection_reset: u8, "MMProtectionReset";
        /// 0 split, 1 out of order, 2 behind one of these.
        337 => split_msg: Optional<u8>, "SplitMsg";
        338 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        /// 0 long sell, 1 to 3 kinds of short sale.
        339 => short_sale_type: Optional<u8>, "ShortSaleType";
        340 => tot_no_quote_entries: Optional<u8>, "TotNoQuoteEntries";
        /// 1: sent before, perhaps.
        341 => poss_retrans_flag: u8, "PossRetransFlag";
        /// Nanoseconds since the Unix epoch, UTC: until when it was held back.
        342 => delay_to_time: Optional<le::U64>, "DelayToTime";
        350 => quote_entry_open: Optional<u8>, "QuoteEntryOpen";
        351 => quote_entry_control: Optional<u8>, "QuoteEntryControl";
    }
}

wire_struct! {
    /// Entry of `NoQuoteEntries` in `MassQuoteAck545`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct QuoteAckEntry = "NoQuoteEntries", 11 {
        /// The quote's place in the list of its sender; the venue gives it back with fills, as ClOrdID.
        0 => quote_entry_id: le::U32, "QuoteEntryID";
        4 => security_id: le::I32, "SecurityID";
        8 => quote_set_id: le::U16, "QuoteSetID";
        10 => quote_entry_reject_reason: u8, "QuoteEntryRejectReason";
    }
}

wire_struct! {
    /// Root block of `QuoteCancelAck563`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct QuoteCancelAckRoot = "QuoteCancelAck", 370 {
        /// By direction and UUID, from 1.
        0 => seq_num: le::U32, "SeqNum";
        /// Of the session: rises from week to week.
        4 => uuid: le::U64, "UUID";
        12 => text: Text<256>, "Text";
        268 => sender_id: Text<20>, "SenderID";
        288 => party_details_list_req_id: le::U64, "PartyDetailsListReqID";
        /// Nanoseconds since the Unix epoch, UTC; the request's `SendingTimeEpoch`.
        296 => request_time: le::U64, "RequestTime";
        /// Nanoseconds since the Unix epoch, UTC.
        304 => sending_time: le::U64, "SendingTimeEpoch";
        312 => cancelled_symbol: Text<6>, "CancelledSymbol";
        318 => location: Text<5>, "Location";
        323 => quote_id: le::U32, "QuoteID";
        327 => quote_reject_reason: Optional<le::U16>, "QuoteRejectReason";
        329 => delay_duration: Optional<le::U16>, "DelayDuration";
        /// 0 automated, 1 manual.
        331 => manual_order_indicator: u8, "ManualOrderIndicator";
        /// 1 instrument, 3 group, 4 all, 100 quote set cancelled, 5 rejected.
        332 => quote_status: u8, "QuoteStatus";
        /// Entries accepted.
        333 => no_processed_entries: le::U32, "NoProcessedEntries";
        /// 1: quoting goes on after the venue's protection.
        337 => protection_reset: u8, "MMProtectionReset";
        /// A to H, see `docs/protocols/ilink3.md`; null for the answer to a request.
        338 => unsolicited_cancel_type: Optional<Char>, "UnsolicitedCancelType";
        /// 0 split, 1 out of order, 2 behind one of these.
        339 => split_msg: Optional<u8>, "SplitMsg";
        340 => tot_no_quote_entries: Optional<u8>, "TotNoQuoteEntries";
        341 => liquidity_flag: Optional<u8>, "LiquidityFlag";
        /// 1: sent before, perhaps.
        342 => poss_retrans_flag: u8, "PossRetransFlag";
        /// Nanoseconds since the Unix epoch, UTC: until when it was held back.
        343 => delay_to_time: Optional<le::U64>, "DelayToTime";
        351 => orig_order_user: Text<8>, "OrigOrderUser";
        359 => cancel_text: Text<8>, "CancelText";
        367 => quote_entry_open: Optional<u8>, "QuoteEntryOpen";
        368 => cxl_linked_sessions: Optional<u8>, "CxlLinkedSessions";
        369 => quote_entry_control: Optional<u8>, "QuoteEntryControl";
    }
}

wire_struct! {
    /// Entry of `NoQuoteEntries` in `QuoteCancelAck563`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct QuoteCancelAckEntry = "NoQuoteEntries", 9 {
        /// The quote's place in the list of its sender; the venue gives it back with fills, as ClOrdID.
        0 => quote_entry_id: le::U32, "QuoteEntryID";
        4 => security_id: le::I32, "SecurityID";
        8 => quote_entry_reject_reason: u8, "QuoteEntryRejectReason";
    }
}

wire_struct! {
    /// Entry of `NoQuoteSets` in `QuoteCancelAck563`. iLink 3 SBE schema 8, version 9 (2025-11-04).
    pub struct QuoteCancelAckSet = "NoQuoteSets", 4 {
        0 => quote_set_id: le::U16, "QuoteSetID";
        2 => quote_error_code: le::U16, "QuoteErrorCode";
    }
}

layouts! {
    BusinessRejectRoot;
    ExecutionReportNewRoot [4 => 201, 6 => 209, 8 => 217];
    ExecutionReportRejectRoot [4 => 459, 6 => 467, 8 => 475];
    ExecutionReportEliminationRoot [6 => 202, 8 => 210];
    ExecutionReportTradeOutrightRoot [6 => 235, 8 => 276];
    FillEntry;
    OrderEventEntry;
    ExecutionReportCancelRoot [4 => 206, 6 => 214, 8 => 222];
    OrderCancelRejectRoot [4 => 401];
    MassQuoteAckRoot [2 => 341, 4 => 342, 8 => 350, 9 => 351];
    QuoteAckEntry;
    QuoteCancelAckRoot [8 => 351, 9 => 368];
    QuoteCancelAckEntry;
    QuoteCancelAckSet;
}
