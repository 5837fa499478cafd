//! NYSE OpenBook Ultra: the type stands in the packet's header, the symbol index in every update. Packets are
//! numbered, not messages. An update that says that its instrument has closed is delivered, wanted or not:
//! the day is over when all have.

use crate::asm::{Cond, Op, Reg, Size};
use crate::filter::{Generator, PAYLOAD, stack};
use crate::frame::PAYLOAD_MAX;
use crate::layout;
use Reg::{R0, R1, R2, R3, R4, R5, R7, R10};
use core::mem::offset_of;
use tickwire_wire::openbook::{
    DeltaHead, FullHead, HEARTBEAT, MessageUnavailable, PacketHeader, RetransFlag, SequenceNumberReset,
    TradingStatusCode,
};

pub(crate) const HEADER: i16 = PacketHeader::SIZE as i16;
/// Bytes of the packet's size, which does not count itself.
const UNCOUNTED: i32 = 2;
const SIZE: i16 = offset_of!(FullHead, msg_size) as i16;
const INDEX: i16 = offset_of!(FullHead, symbol_index) as i16;
const _: () = assert!(offset_of!(DeltaHead, msg_size) as i16 == SIZE);
const _: () = assert!(offset_of!(DeltaHead, symbol_index) as i16 == INDEX);
const CLOSED: [TradingStatusCode; 2] = [TradingStatusCode::Closed, TradingStatusCode::ClosedOld];

pub(crate) fn header(g: &mut Generator<'_>) {
    let (plain, doubt, reset) = (g.exits.plain, g.exits.early_doubt, g.exits.reset);
    let a = &mut g.a;
    let part = |offset: usize| PAYLOAD + offset as i16;
    a.load(Size::H, R0, R7, part(offset_of!(PacketHeader, packet_size)));
    a.from_big_endian(R0, 16);
    a.alu_value(Op::Add, R0, UNCOUNTED);
    a.load(Size::D, R2, R10, stack::LIMIT);
    a.jump_if(Cond::Gt, R0, R2, doubt);
    a.jump_if_value(Cond::Lt, R0, HEADER.into(), doubt);
    a.store(Size::D, R10, stack::LIMIT, R0);
    a.load(Size::H, R0, R7, part(offset_of!(PacketHeader, msg_type)));
    a.from_big_endian(R0, 16);
    a.jump_if_value(Cond::Eq, R0, SequenceNumberReset::KIND.into(), reset);
    for unnumbered in [HEARTBEAT, MessageUnavailable::KIND] {
        a.jump_if_value(Cond::Eq, R0, unnumbered.into(), plain);
    }
    a.load(Size::B, R2, R7, part(offset_of!(PacketHeader, retrans_flag)));
    a.jump_if_value(Cond::Ne, R2, RetransFlag::Original as i32, plain);
    a.load(Size::W, R1, R7, part(offset_of!(PacketHeader, seq_num)));
    a.from_big_endian(R1, 32);
    a.set(R2, 1);
}

pub(crate) fn walk(g: &mut Generator<'_>) {
    let (wanted, doubt) = (g.exits.wanted, g.exits.doubt);
    let (full, delta, done) = (g.a.label(), g.a.label(), g.a.label());
    let part = |offset: usize| PAYLOAD + offset as i16;
    g.a.load(Size::B, R2, R7, part(offset_of!(PacketHeader, num_msgs)));
    g.a.jump_if_value(Cond::Gt, R2, g.spec.messages_max.into(), wanted);
    g.a.load(Size::H, R0, R7, part(offset_of!(PacketHeader, msg_type)));
    g.a.from_big_endian(R0, 16);
    g.a.jump_if_value(Cond::Eq, R0, DeltaHead::KIND.into(), delta);
    g.a.jump_if_value(Cond::Eq, R0, FullHead::KIND.into(), full);
    g.a.jump(wanted);
    for (label, size, status) in [
        (full, FullHead::SIZE, offset_of!(FullHead, trading_status)),
        (delta, DeltaHead::SIZE, offset_of!(DeltaHead, trading_status)),
    ] {
        g.a.bind(label);
        g.a.set(R1, HEADER.into());
        g.a.set(R3, 0);
        let next = g.a.here();
        g.a.jump_if(Cond::Ge, R3, R2, done);
        g.a.jump_if_value(Cond::Gt, R1, PAYLOAD_MAX as i32, doubt);
        g.a.copy(R4, R7);
        g.a.alu(Op::Add, R4, R1);
        g.within(size as i16, doubt);
        g.a.load(Size::H, R0, R4, PAYLOAD + SIZE);
        g.a.from_big_endian(R0, 16);
        g.a.jump_if_value(Cond::Lt, R0, size as i32, doubt);
        g.a.alu(Op::Add, R1, R0);
        g.a.load(Size::B, R5, R4, PAYLOAD + status as i16);
        for closed in CLOSED {
            g.a.jump_if_value(Cond::Eq, R5, closed as i32, wanted);
        }
        g.a.load(Size::W, R0, R4, PAYLOAD + INDEX);
        g.a.from_big_endian(R0, 32);
        g.a.jump_if_value(Cond::Ge, R0, layout::BITS as i32, wanted);
        g.if_wanted(wanted);
        g.a.alu_value(Op::Add, R3, 1);
        g.a.jump(next);
    }
    g.a.bind(done);
    // The last message must end within what the sender says; bytes behind it are ignored.
    g.a.load(Size::D, R0, R10, stack::LIMIT);
    g.a.jump_if(Cond::Gt, R1, R0, doubt);
    if g.spec.statistics {
        // Until here it was how many numbers the packet takes: one.
        g.a.store(Size::D, R10, stack::COUNT, R2);
    }
    g.unwanted(HEADER, |g, over| {
        g.within(INDEX + 4, over);
        g.a.load(Size::H, R0, R4, PAYLOAD + SIZE);
        g.a.from_big_endian(R0, 16);
        g.a.alu(Op::Add, R1, R0);
        g.a.load(Size::W, R0, R4, PAYLOAD + INDEX);
        g.a.from_big_endian(R0, 32);
    });
}
