//! ITCH 5.0 over MoldUDP64 1.00: every message has its instrument's number at the same place,
//! [`StockDirectory`] is always delivered, as it names the instruments that later subscriptions may be about.

use crate::asm::{Cond, Op, Reg, Size};
use crate::filter::{Generator, PAYLOAD, stack};
use crate::frame::PAYLOAD_MAX;
use Reg::{R0, R1, R2, R3, R4, R7, R10};
use core::mem::offset_of;
use tickwire_wire::itch50::{StockDirectory, SystemEvent};
use tickwire_wire::moldudp64::{END_OF_SESSION, Header};

pub(crate) const HEADER: i16 = Header::SIZE as i16;
pub(crate) const SESSION: i16 = offset_of!(Header, session) as i16;
/// Bytes of a block's length.
const LENGTH: i16 = 2;
const KIND: i16 = LENGTH + offset_of!(SystemEvent, kind) as i16;
const LOCATE: i16 = LENGTH + offset_of!(SystemEvent, locate) as i16;
/// A shorter message names no instrument.
const LENGTH_MIN: i32 = offset_of!(SystemEvent, locate) as i32 + 2;

pub(crate) fn header(g: &mut Generator<'_>) {
    let plain = g.exits.plain;
    let a = &mut g.a;
    a.load(Size::D, R1, R7, PAYLOAD + offset_of!(Header, sequence) as i16);
    a.from_big_endian(R1, 64);
    a.load(Size::H, R2, R7, PAYLOAD + offset_of!(Header, count) as i16);
    a.from_big_endian(R2, 16);
    a.jump_if_value(Cond::Eq, R2, 0, plain);
    a.jump_if_value(Cond::Eq, R2, END_OF_SESSION.into(), plain);
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
    g.within(LOCATE + 2, doubt);
    g.a.load(Size::H, R0, R4, PAYLOAD);
    g.a.from_big_endian(R0, 16);
    g.a.jump_if_value(Cond::Lt, R0, LENGTH_MIN, doubt);
    g.a.alu(Op::Add, R1, R0);
    g.a.alu_value(Op::Add, R1, LENGTH.into());
    g.a.load(Size::B, R0, R4, PAYLOAD + KIND);
    g.a.jump_if_value(Cond::Eq, R0, StockDirectory::KIND.into(), wanted);
    g.a.load(Size::H, R0, R4, PAYLOAD + LOCATE);
    g.a.from_big_endian(R0, 16);
    g.if_wanted(wanted);
    g.a.alu_value(Op::Add, R3, 1);
    g.a.jump(next);
    g.a.bind(done);
    // The last message must end within what the sender says; bytes behind it are ignored.
    g.a.load(Size::D, R0, R10, stack::LIMIT);
    g.a.jump_if(Cond::Gt, R1, R0, doubt);
    g.unwanted(HEADER, |g, over| {
        g.within(LOCATE + 2, over);
        g.a.load(Size::H, R0, R4, PAYLOAD);
        g.a.from_big_endian(R0, 16);
        g.a.alu(Op::Add, R1, R0);
        g.a.alu_value(Op::Add, R1, LENGTH.into());
        g.a.load(Size::H, R0, R4, PAYLOAD + LOCATE);
        g.a.from_big_endian(R0, 16);
    });
}
