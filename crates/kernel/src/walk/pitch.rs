//! Cboe PITCH 2.41: a symbol in what adds an order or stands alone, an order's number in what changes one.
//! Orders of wanted symbols are followed; every message of a packet is walked, wanted or not, so that no
//! order is missed.

use crate::asm::{Atomic, Cond, Op, Reg, Size, helper};
use crate::filter::{Generator, PAYLOAD, stack};
use crate::frame::PAYLOAD_MAX;
use crate::layout::{self, Count};
use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R9, R10};
use core::mem::offset_of;
use tickwire_wire::pitch::{
    AddOrderExpanded, AddOrderLong, AddOrderShort, AuctionSummary, AuctionUpdate, DeleteOrder, HEAD_SIZE,
    Head, ModifyOrderLong, ModifyOrderShort, OrderExecuted, OrderExecutedAtPriceSize, ReduceSizeLong,
    ReduceSizeShort, RetailPriceImprovement, TradeExpanded, TradeLong, TradeShort, TradingStatus, UnitHeader,
};

pub(crate) const HEADER: i16 = UnitHeader::SIZE as i16;
pub(crate) const UNIT: i16 = offset_of!(UnitHeader, unit) as i16;
const LENGTH: i16 = offset_of!(Head, length) as i16;
const KIND: i16 = offset_of!(Head, kind) as i16;
const ORDER: i16 = offset_of!(DeleteOrder, order_id) as i16;

/// What a type's byte says above the five bits of the place; 0: the message is delivered.
mod code {
    /// A symbol of six bytes.
    pub(super) const SHORT: u8 = 1;
    /// A symbol of eight bytes.
    pub(super) const LONG: u8 = 2;
    /// An order's number.
    pub(super) const ORDER: u8 = 3;
    /// An order's number, which ends with it.
    pub(super) const DELETE: u8 = 4;
    /// A new order with a symbol of six bytes.
    pub(super) const ADD_SHORT: u8 = 5;
    /// A new order with a symbol of eight bytes.
    pub(super) const ADD_LONG: u8 = 6;
}

macro_rules! kinds {
    ($($code:ident $field:ident: $($message:ident)*;)*) => {
        &[$($(($message::KIND, code::$code, offset_of!($message, $field), $message::SIZE),)*)*]
    };
}

/// Type, code, place of the field, size.
const TYPES: &[(u8, u8, usize, usize)] = kinds! {
    ADD_SHORT symbol: AddOrderLong AddOrderShort;
    ADD_LONG symbol: AddOrderExpanded;
    ORDER order_id: OrderExecuted OrderExecutedAtPriceSize ReduceSizeLong ReduceSizeShort ModifyOrderLong ModifyOrderShort;
    DELETE order_id: DeleteOrder;
    SHORT symbol: TradeLong TradeShort;
    LONG symbol: TradeExpanded TradingStatus AuctionUpdate AuctionSummary RetailPriceImprovement;
};

pub(crate) fn tables() -> ([u8; 256], [u8; 256]) {
    let (mut places, mut sizes) = ([0; 256], [0; 256]);
    for &(kind, code, offset, size) in TYPES {
        places[usize::from(kind)] = code << 5 | offset as u8;
        sizes[usize::from(kind)] = size as u8;
    }
    (places, sizes)
}

pub(crate) fn header(g: &mut Generator<'_>) {
    let (plain, doubt) = (g.exits.plain, g.exits.early_doubt);
    let a = &mut g.a;
    a.load(Size::H, R0, R7, PAYLOAD + offset_of!(UnitHeader, length) as i16);
    a.load(Size::D, R2, R10, stack::LIMIT);
    a.jump_if(Cond::Gt, R0, R2, doubt);
    a.jump_if_value(Cond::Lt, R0, HEADER.into(), doubt);
    a.store(Size::D, R10, stack::LIMIT, R0);
    a.load(Size::B, R2, R7, PAYLOAD + offset_of!(UnitHeader, count) as i16);
    a.jump_if_value(Cond::Eq, R2, 0, plain);
    a.load(Size::W, R1, R7, PAYLOAD + offset_of!(UnitHeader, sequence) as i16);
    // Messages without numbers.
    a.jump_if_value(Cond::Eq, R1, 0, plain);
}

pub(crate) fn walk(g: &mut Generator<'_>) {
    let (wanted, received) = (g.exits.wanted, g.exits.received);
    let (doubt, unread) = (g.exits.doubt, g.exits.unread);
    let (done, want, many, broken) = (g.a.label(), g.a.label(), g.a.label(), g.a.label());
    let short = g.a.label();
    let (by_order, symbol, key, add) = (g.a.label(), g.a.label(), g.a.label(), g.a.label());
    let order_bits = layout::ORDER_BITS.trailing_zeros() as i32;
    g.a.load(Size::D, R2, R10, stack::COUNT);
    g.a.jump_if_value(Cond::Gt, R2, g.spec.messages_max.into(), many);
    g.a.store(Size::D, R10, stack::COUNT, R2);
    g.a.store_value(Size::D, R10, stack::INDEX, 0);
    g.a.store_value(Size::D, R10, stack::OFFSET, HEADER.into());

    let next = g.a.here();
    g.a.load(Size::D, R3, R10, stack::INDEX);
    g.a.load(Size::D, R2, R10, stack::COUNT);
    g.a.jump_if(Cond::Ge, R3, R2, done);
    g.a.alu_value(Op::Add, R3, 1);
    g.a.store(Size::D, R10, stack::INDEX, R3);
    g.a.load(Size::D, R1, R10, stack::OFFSET);
    g.a.jump_if_value(Cond::Gt, R1, PAYLOAD_MAX as i32, broken);
    g.a.store(Size::D, R10, stack::MESSAGE, R1);
    g.a.copy(R4, R7);
    g.a.alu(Op::Add, R4, R1);
    g.within(HEAD_SIZE as i16, broken);
    g.a.load(Size::B, R0, R4, PAYLOAD + LENGTH);
    g.a.jump_if_value(Cond::Lt, R0, HEAD_SIZE as i32, broken);
    g.a.alu(Op::Add, R1, R0);
    g.a.store(Size::D, R10, stack::OFFSET, R1);
    g.a.load(Size::B, R5, R4, PAYLOAD + KIND);
    g.a.alu(Op::Add, R5, R6);
    g.a.load(Size::B, R2, R5, layout::SIZES as i16);
    g.a.load(Size::B, R3, R5, layout::TYPES as i16);
    g.a.jump_if_value(Cond::Eq, R3, 0, want);
    // A message shorter than its layout is for the decoder to refuse; which order it adds is not known.
    g.a.jump_if(Cond::Lt, R0, R2, short);
    g.a.copy(R2, R3);
    g.a.alu_value(Op::Rsh, R2, 5);
    g.a.store(Size::D, R10, stack::CODE, R2);
    g.a.alu_value(Op::And, R3, 31);
    g.a.alu(Op::Add, R4, R3);
    g.within(6, broken);
    for code in [code::ORDER, code::DELETE] {
        g.a.jump_if_value(Cond::Eq, R2, code.into(), by_order);
    }
    // The key is composed in a register: written to the stack in parts and read back it would cost a stall.
    g.a.load(Size::W, R0, R4, PAYLOAD);
    for code in [code::LONG, code::ADD_LONG] {
        g.a.jump_if_value(Cond::Eq, R2, code.into(), symbol);
    }
    g.a.load(Size::H, R3, R4, PAYLOAD + 4);
    g.a.alu_value(Op::Or, R3, 0x2020_0000);
    g.a.jump(key);
    g.a.bind(symbol);
    g.within(8, broken);
    g.a.load(Size::W, R3, R4, PAYLOAD + 4);
    g.a.bind(key);
    g.a.alu_value(Op::Lsh, R3, 32);
    g.a.alu(Op::Or, R0, R3);
    g.wanted_key();
    g.a.jump_if_value(Cond::Eq, R4, 0, next);
    g.a.load(Size::D, R2, R10, stack::CODE);
    g.a.jump_if_value(Cond::Ge, R2, code::ADD_SHORT.into(), add);
    g.a.bind(want);
    g.a.store_value(Size::D, R10, stack::WANT, 1);
    g.a.jump(next);

    // A new order of a wanted symbol.
    g.a.bind(add);
    g.a.load(Size::D, R1, R10, stack::MESSAGE);
    g.a.copy(R4, R7);
    g.a.alu(Op::Add, R4, R1);
    g.within(ORDER + 8, broken);
    g.a.load(Size::D, R0, R4, PAYLOAD + ORDER);
    g.a.store(Size::D, R10, stack::KEY, R0);
    g.hash(order_bits);
    order_word(g);
    g.a.set(R1, 1);
    g.a.alu(Op::Lsh, R1, R0);
    g.a.atomic(Atomic::Or, R4, 0, R1);
    g.a.store_value(Size::D, R10, stack::ONE, 1);
    g.a.map(R1, layout::ORDERS);
    key_and_value(g);
    g.a.set(R4, 0);
    g.a.call(helper::MAP_UPDATE);
    if g.spec.statistics {
        let full = g.a.label();
        g.a.jump_if_value(Cond::Ne, R0, 0, full);
        g.count(Count::OrdersEntered);
        g.a.jump(want);
        g.a.bind(full);
    } else {
        g.a.jump_if_value(Cond::Eq, R0, 0, want);
    }
    // No room: whatever comes of this order must be delivered.
    g.a.store_value(Size::W, R9, layout::FULL as i16, 1);
    g.a.bind(short);
    g.hold();
    g.a.jump(want);

    g.a.bind(by_order);
    g.within(8, broken);
    g.a.load(Size::D, R0, R4, PAYLOAD);
    g.a.store(Size::D, R10, stack::KEY, R0);
    g.hash(order_bits);
    order_word(g);
    g.a.load(Size::D, R4, R4, 0);
    g.a.alu(Op::Rsh, R4, R0);
    g.a.alu_value(Op::And, R4, 1);
    g.a.jump_if_value(Cond::Eq, R4, 0, next);
    g.a.map(R1, layout::ORDERS);
    key_and_value(g);
    g.a.call(helper::MAP_LOOKUP);
    g.a.jump_if_value(Cond::Eq, R0, 0, next);
    if g.spec.statistics {
        g.a.set(R1, 1);
        g.a.atomic(Atomic::Add, R0, 0, R1);
        g.count(Count::OrderMessages);
    }
    g.a.load(Size::D, R1, R10, stack::CODE);
    g.a.jump_if_value(Cond::Ne, R1, code::DELETE.into(), want);
    // A number may come again: only in sequence is it certain that this deletion is not of the order before.
    g.a.load(Size::D, R1, R10, stack::IN_SEQUENCE);
    g.a.jump_if_value(Cond::Eq, R1, 0, want);
    g.a.map(R1, layout::ORDERS);
    key_and_value(g);
    g.a.call(helper::MAP_DELETE);
    if g.spec.statistics {
        g.a.jump_if_value(Cond::Ne, R0, 0, want);
        g.count(Count::OrdersLeft);
    }
    g.a.jump(want);

    // More messages than are looked at, or a packet that cannot be walked: orders may have been missed.
    g.a.bind(many);
    g.hold();
    g.a.load(Size::D, R1, R10, stack::IN_SEQUENCE);
    g.a.jump_if_value(Cond::Eq, R1, 0, received);
    g.a.jump(wanted);
    g.a.bind(broken);
    g.hold();
    g.a.load(Size::D, R1, R10, stack::IN_SEQUENCE);
    g.a.jump_if_value(Cond::Eq, R1, 0, unread);
    g.a.jump(doubt);

    g.a.bind(done);
    g.a.load(Size::D, R1, R10, stack::OFFSET);
    g.a.load(Size::D, R0, R10, stack::LIMIT);
    g.a.jump_if(Cond::Ne, R1, R0, broken);
    g.a.load(Size::D, R1, R10, stack::WANT);
    let is_wanted = g.a.label();
    g.a.jump_if_value(Cond::Ne, R1, 0, is_wanted);
    g.unwanted_keys(false);
    g.a.bind(is_wanted);
    // What is not in sequence, or met the channel disarmed, was counted as that.
    g.a.load(Size::D, R1, R10, stack::IN_SEQUENCE);
    g.a.jump_if_value(Cond::Eq, R1, 0, received);
    g.a.jump(wanted);
}

/// R4 = address of the word with bit R0 of the orders' bits, R0 = the bit in it.
fn order_word(g: &mut Generator<'_>) {
    let a = &mut g.a;
    a.copy(R2, R0);
    a.alu_value(Op::Rsh, R2, 3);
    a.alu_value(Op::And, R2, (layout::ORDER_BITS / 8 - 8) as i32);
    a.map_value(R4, layout::SETS, 0);
    a.alu(Op::Add, R4, R2);
    a.alu_value(Op::And, R0, 63);
}

/// R2 and R3 = addresses of key and value.
fn key_and_value(g: &mut Generator<'_>) {
    let a = &mut g.a;
    a.copy(R2, R10);
    a.alu_value(Op::Add, R2, stack::KEY.into());
    a.copy(R3, R10);
    a.alu_value(Op::Add, R3, stack::ONE.into());
}
