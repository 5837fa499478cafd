//! CQS of the CTA: blocks with a checksum, which is counted as the decoder does. Control messages stand alone
//! in their block: those by which numbers begin anew make the channel hold, line integrity uses no number.

use super::sip::{self, Kind, Messages};
use crate::asm::{Cond, Op, Reg, Size};
use crate::filter::{Generator, PAYLOAD, stack};
use Reg::{R0, R1, R2, R3, R4, R5, R7, R8, R10};
use core::mem::offset_of;
use tickwire_wire::cqs::{
    AuctionStatus, BLOCK_SIZE_MAX, BlockHeader, ControlType, Feed, LongQuote, MessageHeader, ShortQuote,
    SpecialLongQuote, Transmission, VERSION_LEGACY, VERSION_PILLAR,
};

pub(crate) const HEADER: i16 = BlockHeader::SIZE as i16;
const CATEGORY: i16 = offset_of!(MessageHeader, category) as i16;
const KIND: i16 = offset_of!(MessageHeader, kind) as i16;

macro_rules! quotes {
    ($($message:ident: $is_short:literal;)*) => {
        &[$(($message::KIND[1], offset_of!($message, symbol), $message::SIZE, $is_short),)*]
    };
}

const KINDS: &[Kind] = quotes! {
    LongQuote: false;
    ShortQuote: true;
    SpecialLongQuote: false;
    AuctionStatus: false;
};

pub(crate) fn tables() -> ([u8; 256], [u8; 256]) {
    sip::tables(KINDS)
}

pub(crate) fn header(g: &mut Generator<'_>) {
    let (plain, doubt, reset) = (g.exits.plain, g.exits.early_doubt, g.exits.reset);
    let (data, known) = (g.a.label(), g.a.label());
    let a = &mut g.a;
    let part = |offset: usize| PAYLOAD + offset as i16;
    a.load(Size::H, R0, R7, part(offset_of!(BlockHeader, size)));
    a.from_big_endian(R0, 16);
    a.load(Size::D, R2, R10, stack::LIMIT);
    a.jump_if(Cond::Gt, R0, R2, doubt);
    a.jump_if_value(Cond::Lt, R0, HEADER.into(), doubt);
    a.jump_if_value(Cond::Gt, R0, BLOCK_SIZE_MAX as i32, doubt);
    a.store(Size::D, R10, stack::LIMIT, R0);
    a.load(Size::B, R1, R7, part(offset_of!(BlockHeader, version)));
    a.jump_if_value(Cond::Eq, R1, VERSION_PILLAR.into(), known);
    a.jump_if_value(Cond::Ne, R1, VERSION_LEGACY.into(), doubt);
    a.bind(known);
    a.load(Size::B, R1, R7, part(offset_of!(BlockHeader, feed)));
    a.jump_if_value(Cond::Ne, R1, Feed::Quotes as i32, doubt);
    a.load(Size::B, R1, R7, part(offset_of!(BlockHeader, transmission)));
    a.jump_if_value(Cond::Ne, R1, Transmission::Original as i32, plain);
    a.load(Size::B, R2, R7, part(offset_of!(BlockHeader, messages)));
    a.jump_if_value(Cond::Eq, R2, 0, plain);
    a.copy(R1, R7);
    a.alu_value(Op::Add, R1, i32::from(PAYLOAD + HEADER + KIND + 1));
    a.jump_if(Cond::Gt, R1, R8, doubt);
    a.load(Size::B, R1, R7, PAYLOAD + HEADER + CATEGORY);
    a.jump_if_value(Cond::Ne, R1, b'C'.into(), data);
    a.load(Size::B, R1, R7, PAYLOAD + HEADER + KIND);
    a.jump_if_value(Cond::Eq, R1, ControlType::LineIntegrity as i32, plain);
    for begins in [ControlType::StartOfDay, ControlType::ResetSequence] {
        a.jump_if_value(Cond::Eq, R1, begins as i32, reset);
    }
    a.bind(data);
    a.load(Size::W, R1, R7, part(offset_of!(BlockHeader, seq)));
    a.from_big_endian(R1, 32);
}

pub(crate) fn walk(g: &mut Generator<'_>) {
    let doubt = g.exits.doubt;
    checksum(g);
    sip::walk(
        g,
        &Messages {
            header: HEADER,
            uncounted: 0,
            category: CATEGORY,
            kind: KIND,
            least: MessageHeader::SIZE as i16,
        },
    );
    // One byte of padding where the messages end at an odd place.
    g.a.copy(R0, R1);
    g.a.alu_value(Op::And, R0, 1);
    g.a.alu(Op::Add, R1, R0);
    g.a.load(Size::D, R0, R10, stack::LIMIT);
    g.a.jump_if(Cond::Ne, R1, R0, doubt);
    g.unwanted_keys(false);
}

/// Doubt if the block's checksum is not the sum of its bytes. Eight bytes at once, in four sums of 16 bits:
/// a block of [`BLOCK_SIZE_MAX`] bytes makes none of them overflow.
fn checksum(g: &mut Generator<'_>) {
    const EVERY_OTHER: u64 = 0x00FF_00FF_00FF_00FF;
    const _: () = assert!(BLOCK_SIZE_MAX / 8 * 2 * 255 + BLOCK_SIZE_MAX % 8 * 255 <= 0xFFFF);
    let doubt = g.exits.doubt;
    let (rest, end) = (g.a.label(), g.a.label());
    let a = &mut g.a;
    let at = |offset: usize| PAYLOAD + offset as i16;
    // From the end to the beginning: to the verifier all ways out of the loop are alike.
    a.load(Size::D, R3, R10, stack::LIMIT);
    a.jump_if_value(Cond::Gt, R3, BLOCK_SIZE_MAX as i32, doubt);
    a.set(R0, 0);
    let words = a.here();
    a.jump_if_value(Cond::Lt, R3, 8, rest);
    a.alu_value(Op::Sub, R3, 8);
    a.copy(R4, R7);
    a.alu(Op::Add, R4, R3);
    a.copy(R5, R4);
    a.alu_value(Op::Add, R5, i32::from(PAYLOAD) + 8);
    a.jump_if(Cond::Gt, R5, R8, doubt);
    a.load(Size::D, R2, R4, PAYLOAD);
    a.set_wide(R4, EVERY_OTHER);
    a.copy(R1, R2);
    a.alu_value(Op::Rsh, R1, 8);
    a.alu(Op::And, R1, R4);
    a.alu(Op::And, R2, R4);
    a.alu(Op::Add, R0, R1);
    a.alu(Op::Add, R0, R2);
    a.jump(words);
    a.bind(rest);
    let bytes = a.here();
    a.jump_if_value(Cond::Eq, R3, 0, end);
    a.alu_value(Op::Sub, R3, 1);
    a.copy(R4, R7);
    a.alu(Op::Add, R4, R3);
    a.copy(R5, R4);
    a.alu_value(Op::Add, R5, i32::from(PAYLOAD) + 1);
    a.jump_if(Cond::Gt, R5, R8, doubt);
    a.load(Size::B, R2, R4, PAYLOAD);
    a.alu(Op::Add, R0, R2);
    a.jump(bytes);
    a.bind(end);
    a.copy(R1, R0);
    a.copy(R2, R0);
    a.copy(R3, R0);
    a.alu_value(Op::Rsh, R1, 16);
    a.alu_value(Op::Rsh, R2, 32);
    a.alu_value(Op::Rsh, R3, 48);
    for part in [R1, R2, R3] {
        a.alu(Op::Add, R0, part);
    }
    // The sum is of all bytes but its own two.
    let own = at(offset_of!(BlockHeader, checksum));
    for byte in [own, own + 1] {
        a.load(Size::B, R1, R7, byte);
        a.alu(Op::Sub, R0, R1);
    }
    a.alu_value(Op::And, R0, 0xFFFF);
    a.load(Size::H, R1, R7, own);
    a.from_big_endian(R1, 16);
    a.jump_if(Cond::Ne, R0, R1, doubt);
}
