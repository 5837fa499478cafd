//! Moscow Exchange ASTS: a number, then one FAST message, whose fields cannot be told without all before
//! them. The template can: what is wanted is said by templates, so that of a channel of which nobody wants
//! any instrument only what is about the session is delivered. The other line's copies are dropped in any
//! case.

use crate::asm::{Cond, Op, Reg, Size};
use crate::filter::{Generator, PAYLOAD, stack};
use crate::layout;
use Reg::{R0, R1, R2, R3, R4, R7, R10};
use tickwire_wire::moex::PREAMBLE_LEN;

pub(crate) const HEADER: i16 = PREAMBLE_LEN as i16;
/// The last byte of a FAST field.
const STOP: i32 = 0x80;
/// In the first byte of the presence map: the template is named.
const NAMES_TEMPLATE: i32 = 0x40;
/// Bytes of a presence map that are looked at.
const MAP_MAX: i32 = 8;
/// Bytes of a template's number that are looked at: 21 bits.
const TEMPLATE_MAX: i32 = 3;

pub(crate) fn header(g: &mut Generator<'_>) {
    let a = &mut g.a;
    a.load(Size::W, R1, R7, PAYLOAD);
    a.set(R2, 1);
}

pub(crate) fn walk(g: &mut Generator<'_>) {
    let (wanted, unwanted, doubt) = (g.exits.wanted, g.exits.unwanted, g.exits.doubt);
    let (map_ends, named) = (g.a.label(), g.a.label());
    g.a.load(Size::D, R2, R10, stack::LIMIT);
    g.a.set(R1, HEADER.into());
    g.a.set(R3, 0);
    let map = g.a.here();
    byte(g);
    // Whether it is named the first byte says.
    let behind_first = g.a.label();
    g.a.jump_if_value(Cond::Ne, R3, 0, behind_first);
    g.a.copy(R4, R0);
    g.a.alu_value(Op::And, R4, NAMES_TEMPLATE);
    g.a.jump_if_value(Cond::Eq, R4, 0, wanted);
    g.a.bind(behind_first);
    g.a.jump_if_value(Cond::Any, R0, STOP, map_ends);
    g.a.alu_value(Op::Add, R3, 1);
    g.a.jump_if_value(Cond::Ge, R3, MAP_MAX, doubt);
    g.a.jump(map);

    g.a.bind(map_ends);
    g.a.store_value(Size::D, R10, stack::CODE, 0);
    g.a.set(R3, 0);
    let template = g.a.here();
    byte(g);
    g.a.load(Size::D, R4, R10, stack::CODE);
    g.a.alu_value(Op::Lsh, R4, 7);
    g.a.alu_value(Op::And, R4, (1 << 21) - 1);
    g.a.store(Size::D, R10, stack::INDEX, R0);
    g.a.alu_value(Op::And, R0, STOP - 1);
    g.a.alu(Op::Or, R4, R0);
    g.a.store(Size::D, R10, stack::CODE, R4);
    g.a.load(Size::D, R0, R10, stack::INDEX);
    g.a.jump_if_value(Cond::Any, R0, STOP, named);
    g.a.alu_value(Op::Add, R3, 1);
    g.a.jump_if_value(Cond::Ge, R3, TEMPLATE_MAX, wanted);
    g.a.jump(template);

    g.a.bind(named);
    g.a.load(Size::D, R0, R10, stack::CODE);
    g.a.jump_if_value(Cond::Ge, R0, layout::BITS as i32, wanted);
    g.if_wanted(wanted);
    g.a.jump(unwanted);
}

/// R0 = the byte at R1, which goes on; doubt where the message has ended. R2 is where; changes R4 and R5.
fn byte(g: &mut Generator<'_>) {
    let doubt = g.exits.doubt;
    g.a.jump_if(Cond::Ge, R1, R2, doubt);
    g.a.copy(R4, R7);
    g.a.alu(Op::Add, R4, R1);
    g.within(1, doubt);
    g.a.load(Size::B, R0, R4, PAYLOAD);
    g.a.alu_value(Op::Add, R1, 1);
}
