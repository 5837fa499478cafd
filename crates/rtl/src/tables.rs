//! The wire's layouts as SystemVerilog constants, from the tables by which the software reads and writes
//! them.

use std::fmt::Write;
use std::mem::offset_of;

use tickwire_wire_nasdaq::itch50::{
    self, AddOrder, AddOrderMpid, CrossTrade, OperationalHalt, OrderCancel, OrderDelete, OrderExecuted,
    OrderExecutedWithPrice, OrderReplace, StockTradingAction, SystemEvent, Trade,
};
use tickwire_wire_nasdaq::ouch50::EnterOrder;
use tickwire_wire_nasdaq::soupbintcp;

use crate::frame::{FRAME_SIZE, PAYLOAD_AT};

/// `itch50_pkg`: types, sizes and offsets of what the core reads.
pub fn itch50() -> String {
    let mut out = String::from(
        "// TotalView-ITCH 5.0: types, sizes and places of fields, written from the tables of tickwire-wire-nasdaq.\n\
         `default_nettype none\n\npackage itch50_pkg;\n\n",
    );
    let kinds: [(&str, u8); 12] = [
        ("ADD_ORDER", AddOrder::KIND),
        ("ADD_ORDER_MPID", AddOrderMpid::KIND),
        ("ORDER_EXECUTED", OrderExecuted::KIND),
        ("ORDER_EXECUTED_WITH_PRICE", OrderExecutedWithPrice::KIND),
        ("ORDER_CANCEL", OrderCancel::KIND),
        ("ORDER_DELETE", OrderDelete::KIND),
        ("ORDER_REPLACE", OrderReplace::KIND),
        ("TRADE", Trade::KIND),
        ("CROSS_TRADE", CrossTrade::KIND),
        ("STOCK_TRADING_ACTION", StockTradingAction::KIND),
        ("OPERATIONAL_HALT", OperationalHalt::KIND),
        ("SYSTEM_EVENT", SystemEvent::KIND),
    ];
    for (name, kind) in kinds {
        let size = itch50::message_size(kind).unwrap_or(0);
        let _ = writeln!(out, "  localparam logic [7:0] {name} = \"{}\";", char::from(kind));
        let _ = writeln!(out, "  localparam logic [7:0] {name}_SIZE = 8'd{size};");
    }
    out.push('\n');
    // One place stands for all messages that have the field there, which the assertions below hold to.
    const {
        assert!(offset_of!(AddOrder, order_ref) == offset_of!(OrderDelete, order_ref));
        assert!(offset_of!(AddOrder, order_ref) == offset_of!(OrderReplace, original_order_ref));
        assert!(offset_of!(AddOrder, order_ref) == offset_of!(OrderExecuted, order_ref));
        assert!(offset_of!(AddOrder, order_ref) == offset_of!(OrderExecutedWithPrice, order_ref));
        assert!(offset_of!(AddOrder, order_ref) == offset_of!(OrderCancel, order_ref));
        assert!(offset_of!(AddOrder, price) == offset_of!(AddOrderMpid, price));
        assert!(offset_of!(AddOrder, side) == offset_of!(AddOrderMpid, side));
        assert!(offset_of!(AddOrder, shares) == offset_of!(AddOrderMpid, shares));
        assert!(
            offset_of!(OrderExecuted, executed_shares) == offset_of!(OrderExecutedWithPrice, executed_shares)
        );
    }
    let places: [(&str, usize); 19] = [
        ("LOCATE", offset_of!(AddOrder, locate)),
        ("ORDER_REF", offset_of!(AddOrder, order_ref)),
        ("ADD_ORDER_SIDE", offset_of!(AddOrder, side)),
        ("ADD_ORDER_SHARES", offset_of!(AddOrder, shares)),
        ("ADD_ORDER_PRICE", offset_of!(AddOrder, price)),
        (
            "ORDER_EXECUTED_SHARES",
            offset_of!(OrderExecuted, executed_shares),
        ),
        (
            "ORDER_EXECUTED_WITH_PRICE_PRINTABLE",
            offset_of!(OrderExecutedWithPrice, printable),
        ),
        (
            "ORDER_EXECUTED_WITH_PRICE_PRICE",
            offset_of!(OrderExecutedWithPrice, execution_price),
        ),
        ("ORDER_CANCEL_SHARES", offset_of!(OrderCancel, cancelled_shares)),
        ("ORDER_REPLACE_NEW_REF", offset_of!(OrderReplace, new_order_ref)),
        ("ORDER_REPLACE_SHARES", offset_of!(OrderReplace, shares)),
        ("ORDER_REPLACE_PRICE", offset_of!(OrderReplace, price)),
        ("TRADE_SHARES", offset_of!(Trade, shares)),
        ("TRADE_PRICE", offset_of!(Trade, price)),
        ("CROSS_TRADE_SHARES", offset_of!(CrossTrade, shares)),
        ("CROSS_TRADE_PRICE", offset_of!(CrossTrade, cross_price)),
        (
            "STOCK_TRADING_ACTION_STATE",
            offset_of!(StockTradingAction, trading_state),
        ),
        (
            "OPERATIONAL_HALT_MARKET",
            offset_of!(OperationalHalt, market_code),
        ),
        ("OPERATIONAL_HALT_ACTION", offset_of!(OperationalHalt, action)),
    ];
    for (name, at) in places {
        let _ = writeln!(out, "  localparam int {name}_AT = {at};");
    }
    let _ = writeln!(
        out,
        "  localparam int SYSTEM_EVENT_EVENT_AT = {};",
        offset_of!(SystemEvent, event)
    );
    out.push_str("\nendpackage\n\n`default_nettype wire\n");
    out
}

/// `ouch50_pkg`: where in the frame of an order what is filled in.
pub fn ouch50() -> String {
    let message = PAYLOAD_AT + soupbintcp::HEADER_SIZE;
    let places: [(&str, usize); 5] = [
        ("FRAME_SIZE", FRAME_SIZE),
        ("USER_REF_PLACE", message + offset_of!(EnterOrder, user_ref_num)),
        ("SIDE_PLACE", message + offset_of!(EnterOrder, side)),
        ("QUANTITY_PLACE", message + offset_of!(EnterOrder, quantity)),
        ("PRICE_PLACE", message + offset_of!(EnterOrder, price)),
    ];
    let mut out = String::from(
        "// The frame of an order: OUCH 5.0 Enter Order in SoupBinTCP, written from the tables of tickwire-wire-nasdaq.\n\
         `default_nettype none\n\npackage ouch50_pkg;\n\n",
    );
    for (name, at) in places {
        let _ = writeln!(out, "  localparam int {name} = {at};");
    }
    out.push_str("  localparam logic [7:0] SIDE_BUY = \"B\";\n  localparam logic [7:0] SIDE_SELL = \"S\";\n");
    out.push_str("\nendpackage\n\n`default_nettype wire\n");
    out
}
