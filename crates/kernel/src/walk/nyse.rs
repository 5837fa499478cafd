//! NYSE Integrated Feed (XDP on Pillar): the symbol index stands at one of two places, by message type. Types
//! that are not in the table are delivered: what defines instruments, resets numbers or says that the day is
//! over among them.

use crate::asm::{Cond, Op, Reg, Size};
use crate::filter::{Generator, PAYLOAD, stack};
use crate::frame::PAYLOAD_MAX;
use crate::layout;
use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R10};
use core::mem::offset_of;
use tickwire_wire::xdp::{
    AddOrder, CrossCorrection, CrossTrade, DeleteOrder, DeliveryFlag, Imbalance, ImbalanceXdp21, ModifyOrder,
    NonDisplayedTrade, OrderExecution, PacketHeader, Quote, ReplaceOrder, RetailPriceImprovement,
    StockSummary, TradeCancel,
};

pub(crate) const HEADER: i16 = PacketHeader::SIZE as i16;
const SIZE: i16 = offset_of!(AddOrder, msg_size) as i16;
const KIND: i16 = offset_of!(AddOrder, msg_type) as i16;

macro_rules! symbol_index {
    ($($message:ident,)*) => {
        &[$(($message::KIND, offset_of!($message, symbol_index)),)*]
    };
}

/// Types about one instrument, with the place of its index.
const TYPES: &[(u16, usize)] = symbol_index! {
    AddOrder, ModifyOrder, DeleteOrder, OrderExecution, ReplaceOrder, Imbalance, ImbalanceXdp21, NonDisplayedTrade,
    CrossTrade, TradeCancel, CrossCorrection, RetailPriceImprovement, Quote, StockSummary,
};

/// The place of the index by type, and the shortest size.
pub(crate) fn tables() -> ([u8; 256], [u8; 256]) {
    let (mut places, mut sizes) = ([0; 256], [0; 256]);
    for &(kind, offset) in TYPES {
        places[usize::from(kind)] = offset as u8;
        sizes[usize::from(kind)] = offset as u8 + 4;
    }
    (places, sizes)
}

pub(crate) fn header(g: &mut Generator<'_>) {
    let (plain, doubt, reset) = (g.exits.plain, g.exits.early_doubt, g.exits.reset);
    let a = &mut g.a;
    a.load(
        Size::H,
        R0,
        R7,
        PAYLOAD + offset_of!(PacketHeader, packet_size) as i16,
    );
    a.load(Size::D, R2, R10, stack::LIMIT);
    a.jump_if(Cond::Gt, R0, R2, doubt);
    a.jump_if_value(Cond::Lt, R0, HEADER.into(), doubt);
    a.store(Size::D, R10, stack::LIMIT, R0);
    a.load(
        Size::B,
        R2,
        R7,
        PAYLOAD + offset_of!(PacketHeader, delivery_flag) as i16,
    );
    a.jump_if_value(Cond::Eq, R2, DeliveryFlag::SequenceReset as i32, reset);
    a.jump_if_value(Cond::Ne, R2, DeliveryFlag::Original as i32, plain);
    a.load(
        Size::B,
        R2,
        R7,
        PAYLOAD + offset_of!(PacketHeader, number_msgs) as i16,
    );
    a.jump_if_value(Cond::Eq, R2, 0, plain);
    a.load(
        Size::W,
        R1,
        R7,
        PAYLOAD + offset_of!(PacketHeader, seq_num) as i16,
    );
}

pub(crate) fn walk(g: &mut Generator<'_>) {
    let (wanted, doubt) = (g.exits.wanted, g.exits.doubt);
    let done = g.a.label();
    g.a.load(Size::D, R2, R10, stack::COUNT);
    g.a.jump_if_value(Cond::Gt, R2, g.spec.messages_max.into(), wanted);
    g.a.set(R1, HEADER.into());
    g.a.set(R3, 0);
    let next = g.a.here();
    g.a.jump_if(Cond::Ge, R3, R2, done);
    g.a.jump_if_value(Cond::Gt, R1, PAYLOAD_MAX as i32, doubt);
    g.a.copy(R4, R7);
    g.a.alu(Op::Add, R4, R1);
    g.within(KIND + 2, doubt);
    g.a.load(Size::H, R0, R4, PAYLOAD + KIND);
    g.a.jump_if_value(Cond::Gt, R0, 255, wanted);
    g.a.copy(R5, R6);
    g.a.alu(Op::Add, R5, R0);
    // Both tables at once: the place and the size that reaches behind it.
    g.a.load(Size::B, R0, R5, layout::SIZES as i16);
    g.a.load(Size::B, R5, R5, layout::TYPES as i16);
    g.a.jump_if_value(Cond::Eq, R5, 0, wanted);
    g.a.alu(Op::Add, R5, R4);
    g.a.load(Size::H, R4, R4, PAYLOAD + SIZE);
    g.a.jump_if(Cond::Lt, R4, R0, doubt);
    g.a.alu(Op::Add, R1, R4);
    g.a.copy(R4, R5);
    g.within(4, doubt);
    g.a.load(Size::W, R0, R4, PAYLOAD);
    g.a.jump_if_value(Cond::Ge, R0, layout::BITS as i32, wanted);
    g.if_wanted(wanted);
    g.a.alu_value(Op::Add, R3, 1);
    g.a.jump(next);
    g.a.bind(done);
    g.a.load(Size::D, R0, R10, stack::LIMIT);
    g.a.jump_if(Cond::Gt, R1, R0, doubt);
    g.unwanted(HEADER, |g, over| {
        g.within(KIND + 2, over);
        // The place of the index, by the type, out of the set's table.
        g.a.load(Size::D, R0, R10, stack::SET);
        g.a.jump_if_value(Cond::Ge, R0, g.spec.sets.into(), over);
        g.a.alu_value(Op::Mul, R0, layout::SET_SIZE as i32);
        g.sets_address(R5);
        g.a.alu(Op::Add, R5, R0);
        g.a.load(Size::H, R0, R4, PAYLOAD + KIND);
        g.a.jump_if_value(Cond::Gt, R0, 255, over);
        g.a.alu(Op::Add, R5, R0);
        g.a.load(Size::B, R0, R5, layout::TYPES as i16);
        g.a.load(Size::H, R5, R4, PAYLOAD + SIZE);
        g.a.alu(Op::Add, R1, R5);
        g.a.alu(Op::Add, R4, R0);
        g.within(4, over);
        g.a.load(Size::W, R0, R4, PAYLOAD);
    });
}
