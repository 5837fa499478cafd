//! CME MDP 3.0 incremental feeds: the security id of every entry of the first group. Templates that are not
//! in the table are delivered: definitions, status, resets, heartbeats, and what later versions bring.
//!
//! Packets are numbered, not messages. A book is whole at the end of a *match event*, which may lie packets
//! behind: once something wanted was delivered of an event that goes on, packets are delivered until it ends.

use crate::asm::{Cond, Op, Reg, Size};
use crate::filter::{Generator, PAYLOAD, stack};
use crate::frame::PAYLOAD_MAX;
use crate::layout;
use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R10};
use core::mem::offset_of;
use tickwire_wire::mdp3::block::{GroupSize, MessageHeader};
use tickwire_wire::mdp3::{
    Body, BookEntry, BookEntryLongQty, DailyStatisticsEntry, EventRoot, LimitsEntry, OrderBookEntry,
    PacketHeader, SessionStatisticsEntry, SessionStatisticsEntryLongQty, TradeEntry, TradeEntry36,
    TradeEntry42, TradeEntryLongQty, VolumeEntry, VolumeEntryLongQty, indicator,
};

pub(crate) const HEADER: i16 = PacketHeader::SIZE as i16;
/// Bytes of a message's size.
const FRAME: i16 = 2;
/// Bytes of the root block of every template of the table, checked by a test.
const ROOT: i16 = 11;
const BODY: i16 = FRAME + MessageHeader::SIZE as i16;
const GROUP: i16 = BODY + ROOT;
const ENTRIES: i16 = GROUP + GroupSize::SIZE as i16;
const SIZE_MIN: i32 = BODY as i32;

macro_rules! security_id {
    ($($entry:ident: $($id:literal)*;)*) => {
        &[$($(($id, offset_of!($entry, security_id)),)*)*]
    };
}

/// Templates whose first group says of each entry which security it is about, with the place.
const TEMPLATES: &[(u16, usize)] = security_id! {
    VolumeEntry: 37;
    BookEntry: 46 32;
    OrderBookEntry: 47 43;
    TradeEntry: 48;
    DailyStatisticsEntry: 49 33;
    LimitsEntry: 50 34;
    SessionStatisticsEntry: 51 35;
    BookEntryLongQty: 64;
    TradeEntryLongQty: 65;
    VolumeEntryLongQty: 66;
    SessionStatisticsEntryLongQty: 67;
    TradeEntry36: 36;
    TradeEntry42: 42;
};

/// By template the place of the security id in an entry plus 1, and the shortest entry.
pub(crate) fn tables() -> ([u8; 256], [u8; 256]) {
    let (mut places, mut sizes) = ([0; 256], [0; 256]);
    for &(id, offset) in TEMPLATES {
        places[usize::from(id)] = offset as u8 + 1;
        sizes[usize::from(id)] = offset as u8 + 4;
    }
    (places, sizes)
}

pub(crate) fn header(g: &mut Generator<'_>) {
    let plain = g.exits.plain;
    let a = &mut g.a;
    // Without a message it says nothing but that the venue is alive.
    a.load(Size::D, R2, R10, stack::LIMIT);
    a.jump_if_value(Cond::Eq, R2, HEADER.into(), plain);
    a.load(Size::W, R1, R7, PAYLOAD + offset_of!(PacketHeader, seq) as i16);
    a.set(R2, 1);
}

/// Places in a payload of at most [`PAYLOAD_MAX`] bytes are below this plus 1.
const PLACE_MASK: i32 = (1 << 14) - 1;
const _: () = assert!(PAYLOAD_MAX <= PLACE_MASK as usize);
/// Where the message ends that R1 is in.
const MESSAGE_END: i16 = stack::MESSAGE;
/// Bytes of an entry.
const BLOCK: i16 = stack::OFFSET;
/// The place of the security id in an entry.
const PLACE: i16 = stack::CODE;
/// The match event indicator of the latest message.
const INDICATOR: i16 = stack::INDEX;

pub(crate) fn walk(g: &mut Generator<'_>) {
    let (wanted, doubt) = (g.exits.wanted, g.exits.doubt);
    let (entry, done, unknown) = (g.a.label(), g.a.label(), g.a.label());
    g.a.store_value(Size::D, R10, MESSAGE_END, HEADER.into());
    g.a.store_value(Size::D, R10, INDICATOR, 0);
    g.a.store_value(Size::D, R10, BLOCK, 0);
    g.a.store_value(Size::D, R10, PLACE, 0);
    g.a.set(R1, HEADER.into());
    g.a.set(R2, 0);
    g.a.set(R3, 0);

    // R1 the place, R2 where the message's entries end, R3 steps so far. Places are below 2^14; masking them
    // makes every way through the loop alike to the verifier, which would follow each one otherwise: a
    // million steps and more.
    let next = g.a.here();
    g.a.jump_if_value(Cond::Ge, R3, g.spec.messages_max.into(), unknown);
    g.a.alu_value(Op::Add, R3, 1);
    g.a.alu_value(Op::And, R1, PLACE_MASK);
    g.a.alu_value(Op::And, R2, PLACE_MASK);
    g.a.jump_if(Cond::Lt, R1, R2, entry);

    g.a.load(Size::D, R1, R10, MESSAGE_END);
    g.a.jump_if_value(Cond::Gt, R1, PAYLOAD_MAX as i32, doubt);
    g.a.load(Size::D, R0, R10, stack::LIMIT);
    // Masked, the register is another number to the verifier: what it learns of it by comparison does not
    // grow from step to step.
    g.a.alu_value(Op::And, R0, PLACE_MASK);
    g.a.jump_if(Cond::Eq, R1, R0, done);
    g.a.copy(R4, R7);
    g.a.alu(Op::Add, R4, R1);
    g.within(BODY, doubt);
    g.a.load(Size::H, R5, R4, PAYLOAD);
    g.a.jump_if_value(Cond::Lt, R5, SIZE_MIN, doubt);
    g.a.alu(Op::Add, R5, R1);
    g.a.jump_if(Cond::Gt, R5, R0, doubt);
    g.a.alu_value(Op::And, R5, PLACE_MASK);
    g.a.store(Size::D, R10, MESSAGE_END, R5);
    let part = |offset: usize| PAYLOAD + FRAME + offset as i16;
    g.a.load(Size::H, R0, R4, part(offset_of!(MessageHeader, schema_id)));
    g.a.jump_if_value(Cond::Ne, R0, Body::SCHEMA.into(), unknown);
    g.a.load(Size::H, R0, R4, part(offset_of!(MessageHeader, template_id)));
    g.a.jump_if_value(Cond::Gt, R0, 255, unknown);
    g.a.copy(R5, R6);
    g.a.alu(Op::Add, R5, R0);
    g.a.load(Size::B, R0, R5, layout::TYPES as i16);
    g.a.jump_if_value(Cond::Eq, R0, 0, unknown);
    g.a.alu_value(Op::Sub, R0, 1);
    g.a.store(Size::D, R10, PLACE, R0);
    g.a.load(Size::B, R2, R5, layout::SIZES as i16);
    g.a.load(Size::H, R0, R4, part(offset_of!(MessageHeader, block_length)));
    g.a.jump_if_value(Cond::Ne, R0, ROOT.into(), unknown);
    g.within(ENTRIES, doubt);
    g.a.alu_value(Op::Add, R1, ENTRIES.into());
    g.a.load(Size::D, R5, R10, MESSAGE_END);
    g.a.alu_value(Op::And, R5, PLACE_MASK);
    g.a.jump_if(Cond::Gt, R1, R5, doubt);
    g.a.load(
        Size::B,
        R0,
        R4,
        PAYLOAD + BODY + offset_of!(EventRoot, indicator) as i16,
    );
    g.a.store(Size::D, R10, INDICATOR, R0);
    g.a.load(
        Size::H,
        R0,
        R4,
        PAYLOAD + GROUP + offset_of!(GroupSize, block_length) as i16,
    );
    g.a.jump_if(Cond::Lt, R0, R2, unknown);
    g.a.store(Size::D, R10, BLOCK, R0);
    g.a.load(
        Size::B,
        R2,
        R4,
        PAYLOAD + GROUP + offset_of!(GroupSize, count) as i16,
    );
    g.a.alu(Op::Mul, R2, R0);
    g.a.alu(Op::Add, R2, R1);
    g.a.jump_if(Cond::Gt, R2, R5, doubt);
    g.a.jump(next);

    // All of a message is walked, wanted or not: its end decides whether the event goes on.
    g.a.bind(entry);
    g.a.load(Size::D, R0, R10, PLACE);
    g.a.alu_value(Op::And, R0, 255);
    g.a.copy(R4, R7);
    g.a.alu(Op::Add, R4, R1);
    g.a.alu(Op::Add, R4, R0);
    g.a.load(Size::D, R0, R10, BLOCK);
    g.a.alu(Op::Add, R1, R0);
    g.within(4, doubt);
    g.a.load(Size::W, R0, R4, PAYLOAD);
    g.wanted_key();
    g.a.load(Size::D, R0, R10, stack::WANT);
    g.a.alu(Op::Or, R0, R4);
    g.a.store(Size::D, R10, stack::WANT, R0);
    g.a.jump(next);

    // Delivered, and whether its event goes on is not known.
    g.a.bind(unknown);
    g.a.store_value(Size::D, R10, stack::OPEN, 1);
    g.a.jump(wanted);

    g.a.bind(done);
    g.a.load(Size::D, R0, R10, INDICATOR);
    g.a.load(Size::D, R1, R10, stack::WANT);
    g.a.load(Size::D, R2, R10, stack::WORD);
    g.a.alu_value(Op::Rsh, R2, layout::OPEN.trailing_zeros() as i32);
    g.a.alu_value(Op::And, R2, 1);
    g.a.alu(Op::Or, R2, R1);
    if g.spec.statistics {
        let is_open = g.a.label();
        g.a.jump_if_value(Cond::Ne, R2, 0, is_open);
        g.unwanted_keys(true);
        g.a.bind(is_open);
    } else {
        let unwanted = g.exits.unwanted;
        g.a.jump_if_value(Cond::Eq, R2, 0, unwanted);
    }
    g.a.jump_if_value(Cond::Any, R0, indicator::END_OF_EVENT.into(), wanted);
    g.a.jump(unknown);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_of_the_table_has_the_root_and_the_group_that_the_walk_expects() {
        for &(id, offset) in TEMPLATES {
            let template = Body::TEMPLATES
                .iter()
                .find(|t| t.id == id)
                .expect("in the schema");
            assert_eq!(
                i16::try_from(template.block_length),
                Ok(ROOT),
                "{}",
                template.name
            );
            let (label, entry, since) = template.groups[0];
            assert_eq!((label, since), ("NoMDEntries", 0), "{}", template.name);
            assert!(offset + 4 <= usize::from(entry), "{}", template.name);
        }
    }
}
