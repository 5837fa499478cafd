//! The wire's layouts as SystemVerilog constants, from the tables by which the software reads and writes
//! them.

use std::fmt::Write;
use std::mem::offset_of;

use tickwire_wire_moex::fast::{StreamField, StreamOperator, StreamType};
use tickwire_wire_nasdaq::itch50::{
    self, AddOrder, AddOrderMpid, CrossTrade, OperationalHalt, OrderCancel, OrderDelete, OrderExecuted,
    OrderExecutedWithPrice, OrderReplace, StockTradingAction, SystemEvent, Trade,
};
use tickwire_wire_nasdaq::ouch50::EnterOrder;
use tickwire_wire_nasdaq::soupbintcp;

use crate::Moex;
use crate::frame::{FixText, OUCH_FRAME_SIZE, PAYLOAD_AT};

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
        ("FRAME_SIZE", OUCH_FRAME_SIZE),
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

/// `fix44_pkg`: where in the frame of an order what is filled in. `None` if a text of it is empty.
pub fn fix44(text: &FixText) -> Option<String> {
    let places = text.places()?;
    let mut out = String::from(
        "// The frame of an order: FIX 4.4 NewOrderSingle. The place of each field's first digit, with texts as long as here.\n\
         `default_nettype none\n\npackage fix44_pkg;\n\n",
    );
    for (name, at) in [
        ("FRAME_SIZE", places.frame_size),
        ("MESSAGE_PLACE", places.message),
        ("SENDING_PLACE", places.sending),
        ("ORDER_PLACE", places.order),
        ("SIDE_PLACE", places.side),
        ("TRANSACT_PLACE", places.transact),
        ("QUANTITY_PLACE", places.quantity),
        ("PRICE_PLACE", places.price),
        ("CHECKSUM_PLACE", places.check_sum),
    ] {
        let _ = writeln!(out, "  localparam int {name} = {at};");
    }
    out.push_str("\nendpackage\n\n`default_nettype wire\n");
    Some(out)
}

/// A place of the stream: a field's token, of a decimal its first or second.
struct Slot {
    tag: u32,
    is_mantissa: bool,
    /// The bit of the presence map that says that it is there.
    bit: Option<u32>,
}

/// The fields of a segment as places, from a bit of its presence map on.
fn slots(fields: &[StreamField], mut bit: u32) -> (Vec<Slot>, u32) {
    let mut slots = Vec::new();
    for field in fields {
        let own = field.takes_bit.then_some(bit);
        bit += u32::from(field.takes_bit);
        if field.operator == StreamOperator::Constant {
            continue;
        }
        slots.push(Slot {
            tag: field.tag,
            is_mantissa: false,
            bit: own,
        });
        if field.kind == StreamType::Decimal {
            slots.push(Slot {
                tag: field.tag,
                is_mantissa: true,
                bit: own,
            });
        }
    }
    (slots, bit)
}

/// `slots` as the function from a presence map, whose first bit is bit 20, to those that are there.
fn mask(out: &mut String, name: &str, slots: &[Slot]) {
    let _ = writeln!(
        out,
        "  function automatic logic [SLOTS-1:0] {name}(input logic [20:0] map);\n    {name} = '0;"
    );
    for (n, slot) in slots.iter().enumerate() {
        let is_there = slot
            .bit
            .map_or("1'b1".to_string(), |bit| format!("map[{}]", 20 - bit));
        let part = if slot.is_mantissa { ", mantissa" } else { "" };
        let _ = writeln!(out, "    {name}[{n}] = {is_there};   // {}{part}", slot.tag);
    }
    out.push_str("  endfunction\n");
}

/// Characters as a token has them.
fn characters(text: &[u8]) -> String {
    let bits = text
        .iter()
        .fold(0_u128, |bits, byte| bits << 7 | u128::from(byte & 0x7f));
    format!("84'h{bits:021x}")
}

/// What a core reads of an entry.
const SYMBOL: u32 = 55;
const NUMBER: u32 = 83;
const COUNT: u32 = 268;
const ENTRY_TYPE: u32 = 269;
const PRICE: u32 = 270;
const SIZE: u32 = 271;
const ENTRY_ID: u32 = 278;
const ACTION: u32 = 279;
const BOARD: u32 = 336;

/// `fast_pkg`: the order log's template as places of the stream.
///
/// # Errors
/// What of the template the core cannot read.
pub fn fast(moex: &Moex, symbol: &[u8], board: &[u8]) -> Result<String, String> {
    let name = &moex.template;
    let template = moex
        .templates
        .template_named(name)
        .ok_or(format!("the template file has no {name}"))?;
    let header = template.stream();
    let sequence = template
        .sequence(COUNT)
        .ok_or(format!("{name} has no sequence of entries ({COUNT})"))?;
    let (length, entry) = moex.templates.entry_stream(&template, &sequence);
    // What makes it one that the core does not read.
    if header.last().map(|field| field.tag) != Some(length.tag)
        && header.last().map(|field| field.tag) != Some(COUNT)
    {
        return Err(format!("{name}: the entries are not the last of the message"));
    }
    if length.operator != StreamOperator::None || length.is_nullable {
        return Err(format!(
            "{name}: how many entries there are ({COUNT}) is not always sent"
        ));
    }
    let is_read = |field: &&StreamField| {
        matches!(field.operator, StreamOperator::Constant) || !matches!(field.kind, StreamType::Other)
    };
    let of_message = &header[..header.len() - 1];
    if let Some(field) = of_message.iter().chain(&entry).find(|field| !is_read(field)) {
        return Err(format!("{name}: field {} is not made of tokens", field.tag));
    }
    let find = |tag: u32, kinds: &[StreamType]| -> Result<StreamField, String> {
        let field = entry
            .iter()
            .find(|field| field.tag == tag)
            .ok_or(format!("{name}: an entry has no field {tag}"))?;
        let is_plain = matches!(field.operator, StreamOperator::None | StreamOperator::Copy);
        match kinds.contains(&field.kind) && is_plain {
            true => Ok(*field),
            false => Err(format!(
                "{name}: field {tag} is {:?} by the operator {:?}",
                field.kind, field.operator
            )),
        }
    };
    let integer = [StreamType::Unsigned, StreamType::Signed];
    let (action, number) = (find(ACTION, &integer)?, find(NUMBER, &integer)?);
    let (price, size) = (
        find(PRICE, &[StreamType::Decimal])?,
        find(SIZE, &[StreamType::Decimal])?,
    );
    for tag in [ENTRY_TYPE, ENTRY_ID, SYMBOL, BOARD] {
        find(tag, &[StreamType::Ascii])?;
    }
    let mut head = vec![Slot {
        tag: 0,
        is_mantissa: false,
        bit: Some(0),
    }];
    let (fields, header_bits) = slots(of_message, 1);
    head.extend(fields);
    head.push(Slot {
        tag: COUNT,
        is_mantissa: false,
        bit: None,
    });
    let (places, entry_bits) = slots(&entry, 0);
    if header_bits.max(entry_bits) > 21 || entry_bits == 0 {
        return Err(format!(
            "{name}: a presence map of {entry_bits} bits; 1 to 21 are read"
        ));
    }
    if places.iter().all(|slot| slot.bit.is_some()) {
        return Err(format!("{name}: an entry may have no field at all"));
    }
    let mut out = format!(
        "// The order log {name} in FAST as places of the stream, written from the template file by tickwire-wire-moex.\n\
         `default_nettype none\n\npackage fast_pkg;\n\n  localparam int TEMPLATE = {};\n  localparam int SLOTS = {};\n",
        template.id(),
        head.len().max(places.len()),
    );
    let at = |tag: u32, is_mantissa: bool| {
        places
            .iter()
            .position(|slot| (slot.tag, slot.is_mantissa) == (tag, is_mantissa))
            .unwrap_or(0)
    };
    for (name, tag, is_mantissa) in [
        ("ACTION", ACTION, false),
        ("TYPE", ENTRY_TYPE, false),
        ("ID", ENTRY_ID, false),
        ("SYMBOL", SYMBOL, false),
        ("BOARD", BOARD, false),
        ("NUMBER", NUMBER, false),
        ("PRICE_EXPONENT", PRICE, false),
        ("PRICE_MANTISSA", PRICE, true),
        ("SIZE_EXPONENT", SIZE, false),
        ("SIZE_MANTISSA", SIZE, true),
    ] {
        let _ = writeln!(out, "  localparam int SLOT_{name} = {};", at(tag, is_mantissa));
    }
    for (name, field) in [
        ("ACTION", action),
        ("NUMBER", number),
        ("PRICE", price),
        ("SIZE", size),
    ] {
        let _ = writeln!(
            out,
            "  localparam bit {name}_NULLABLE = 1'b{};",
            u8::from(field.is_nullable)
        );
    }
    // Decimals that may be NULL: then no mantissa follows.
    let exponents = entry
        .iter()
        .filter(|field| field.kind == StreamType::Decimal && field.is_nullable);
    let exponents = exponents.fold(0_u64, |bits, field| bits | 1 << at(field.tag, false));
    let _ = writeln!(
        out,
        "  localparam logic [SLOTS-1:0] EXPONENTS = SLOTS'(64'h{exponents:x});"
    );
    for (name, text) in [("SYMBOL", symbol), ("BOARD", board)] {
        if text.is_empty() || text.len() > 12 {
            return Err(format!(
                "{}: 1 to 12 characters are read",
                String::from_utf8_lossy(text)
            ));
        }
        let _ = writeln!(
            out,
            "  localparam logic [83:0] {name} = {};   // {}\n  localparam logic [3:0] {name}_LENGTH = 4'd{};",
            characters(text),
            String::from_utf8_lossy(text),
            text.len(),
        );
    }
    out.push_str(
        "\n  // Which fields of a message and of an entry are there, by their tags.\n  /* verilator lint_off UNUSEDSIGNAL */\n",
    );
    mask(&mut out, "header_mask", &head);
    mask(&mut out, "entry_mask", &places);
    out.push_str("  /* verilator lint_on UNUSEDSIGNAL */\n\nendpackage\n\n`default_nettype wire\n");
    Ok(out)
}
