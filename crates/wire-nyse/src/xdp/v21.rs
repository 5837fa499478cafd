//! Messages that XDP 2.1 (2017, to 2.3) lays out otherwise than Pillar's 2.5, mostly at the same size:
//! numbers of parity splits and an execution id stand where sides, conditions and reserved bytes are now. All
//! other types are those of [`super`]. NYSE Integrated Feed Client Specification 2.1.

use super::split_head;
use crate::layout::Pod;
use crate::layout::le::{I32, U16, U32, U64};
use crate::layout::{Alpha, Char, FieldValue, Fields, prefix};
use crate::{Malformed, wire_struct};

xdp_messages! {
/// An order entered the book. XDP Integrated Feed 2.1, "Add Order Message".
100 AddOrder = "AddOrder", 39 {
    4 => source_time_ns: U32, "SourceTimeNS";
    8 => symbol_index: U32, "SymbolIndex";
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    24 => price: I32, "Price";
    28 => volume: U32, "Volume";
    32 => side: Char, "Side";
    33 => firm_id: Alpha<5>, "FirmID";
    38 => num_parity_splits: u8, "NumParitySplits";
}

/// Price and volume of an order are now these. XDP Integrated Feed 2.1, "Modify Order Message".
101 ModifyOrder = "ModifyOrder", 35 {
    4 => source_time_ns: U32, "SourceTimeNS";
    8 => symbol_index: U32, "SymbolIndex";
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    24 => price: I32, "Price";
    28 => volume: U32, "Volume";
    32 => position_change: u8, "PositionChange";
    33 => prev_price_parity_splits: u8, "PrevPriceParitySplits";
    34 => new_price_parity_splits: u8, "NewPriceParitySplits";
}

/// An order left the book. XDP Integrated Feed 2.1, "Delete Order Message".
102 DeleteOrder = "DeleteOrder", 25 {
    4 => source_time_ns: U32, "SourceTimeNS";
    8 => symbol_index: U32, "SymbolIndex";
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    24 => num_parity_splits: u8, "NumParitySplits";
}

/// Part or all of an order traded. XDP Integrated Feed 2.1, "Execution Message".
103 OrderExecution = "OrderExecution", 42 {
    4 => source_time_ns: U32, "SourceTimeNS";
    8 => symbol_index: U32, "SymbolIndex";
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    24 => trade_id: U32, "TradeID";
    28 => price: I32, "Price";
    32 => volume: U32, "Volume";
    36 => printable_flag: u8, "PrintableFlag";
    37 => num_parity_splits: u8, "NumParitySplits";
    38 => db_exec_id: U32, "DBExecID";
}

/// An order left the book and another one took its place. XDP Integrated Feed 2.1, "Replace Order Message".
104 ReplaceOrder = "ReplaceOrder", 42 {
    4 => source_time_ns: U32, "SourceTimeNS";
    8 => symbol_index: U32, "SymbolIndex";
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => order_id: U64, "OrderID";
    24 => new_order_id: U64, "NewOrderID";
    32 => price: I32, "Price";
    36 => volume: U32, "Volume";
    40 => prev_price_parity_splits: u8, "PrevPriceParitySplits";
    41 => new_price_parity_splits: u8, "NewPriceParitySplits";
}

/// An order of the book, in a refresh. XDP Integrated Feed 2.1, "Add Order Refresh Message".
106 AddOrderRefresh = "AddOrderRefresh", 43 {
    4 => source_time: U32, "SourceTime";
    8 => source_time_ns: U32, "SourceTimeNS";
    12 => symbol_index: U32, "SymbolIndex";
    16 => symbol_seq_num: U32, "SymbolSeqNum";
    20 => order_id: U64, "OrderID";
    28 => price: I32, "Price";
    32 => volume: U32, "Volume";
    36 => side: Char, "Side";
    37 => firm_id: Alpha<5>, "FirmID";
    42 => num_parity_splits: u8, "NumParitySplits";
}

/// A trade that touched no displayed order. XDP Integrated Feed 2.1, "Non-Displayed Trade Message".
110 NonDisplayedTrade = "NonDisplayedTrade", 33 {
    4 => source_time_ns: U32, "SourceTimeNS";
    8 => symbol_index: U32, "SymbolIndex";
    12 => symbol_seq_num: U32, "SymbolSeqNum";
    16 => trade_id: U32, "TradeID";
    20 => price: I32, "Price";
    24 => volume: U32, "Volume";
    28 => printable_flag: u8, "PrintableFlag";
    29 => db_exec_id: U32, "DBExecID";
}}
