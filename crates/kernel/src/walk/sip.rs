//! What CQS and UQDF share: quotes name their symbol in eleven bytes, or in five; all other messages are
//! delivered.

use crate::asm::{Cond, Op, Reg, Size};
use crate::filter::{Generator, PAYLOAD, stack};
use crate::frame::PAYLOAD_MAX;
use crate::layout;
use Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R10};

/// The category of quotes.
const QUOTES: i32 = b'Q' as i32;
/// In a type's byte: the symbol has five bytes, not eleven.
pub(super) const SHORT: u8 = 0x80;
const BLANKS: u16 = u16::from_ne_bytes([b' '; 2]);

/// How messages follow each other, and where they say what they are. Offsets are those in a message with its
/// length in front.
pub(super) struct Messages {
    /// Behind the header.
    pub(super) header: i16,
    /// Bytes that the length does not count.
    pub(super) uncounted: i16,
    pub(super) category: i16,
    pub(super) kind: i16,
    /// The shortest message, by its length.
    pub(super) least: i16,
}

/// Ends with R1 behind the last message, where nothing wanted was in the packet.
pub(super) fn walk(g: &mut Generator<'_>, messages: &Messages) {
    let (wanted, doubt) = (g.exits.wanted, g.exits.doubt);
    let (done, short, key, over) = (g.a.label(), g.a.label(), g.a.label(), g.a.label());
    g.a.load(Size::D, R2, R10, stack::COUNT);
    g.a.jump_if_value(Cond::Gt, R2, g.spec.messages_max.into(), wanted);
    g.a.set(R1, messages.header.into());
    g.a.set(R3, 0);
    let next = g.a.here();
    g.a.jump_if(Cond::Ge, R3, R2, done);
    g.a.jump_if_value(Cond::Gt, R1, PAYLOAD_MAX as i32, doubt);
    g.a.copy(R4, R7);
    g.a.alu(Op::Add, R4, R1);
    g.within(messages.uncounted + messages.least, doubt);
    g.a.load(Size::H, R0, R4, PAYLOAD);
    g.a.from_big_endian(R0, 16);
    g.a.jump_if_value(Cond::Lt, R0, messages.least.into(), doubt);
    g.a.alu(Op::Add, R1, R0);
    g.a.alu_value(Op::Add, R1, messages.uncounted.into());
    g.a.store(Size::D, R10, stack::OFFSET, R1);
    g.a.load(Size::B, R5, R4, PAYLOAD + messages.category);
    g.a.jump_if_value(Cond::Ne, R5, QUOTES, wanted);
    g.a.load(Size::B, R5, R4, PAYLOAD + messages.kind);
    g.a.alu(Op::Add, R5, R6);
    g.a.load(Size::B, R1, R5, layout::SIZES as i16);
    g.a.jump_if(Cond::Lt, R0, R1, doubt);
    g.a.load(Size::B, R1, R5, layout::TYPES as i16);
    g.a.jump_if_value(Cond::Eq, R1, 0, wanted);
    g.a.copy(R0, R1);
    g.a.alu_value(Op::And, R1, i32::from(!SHORT));
    g.a.alu(Op::Add, R4, R1);
    g.a.jump_if_value(Cond::Any, R0, SHORT.into(), short);
    g.within(11, doubt);
    // Of a symbol of more than eight bytes there is no key.
    g.a.load(Size::H, R0, R4, PAYLOAD + 8);
    g.a.jump_if_value(Cond::Ne, R0, BLANKS.into(), wanted);
    g.a.load(Size::B, R0, R4, PAYLOAD + 10);
    g.a.jump_if_value(Cond::Ne, R0, b' '.into(), wanted);
    g.a.load(Size::W, R0, R4, PAYLOAD);
    g.a.load(Size::W, R5, R4, PAYLOAD + 4);
    g.a.jump(key);
    g.a.bind(short);
    g.within(5, doubt);
    g.a.load(Size::W, R0, R4, PAYLOAD);
    g.a.load(Size::B, R5, R4, PAYLOAD + 4);
    g.a.alu_value(Op::Or, R5, 0x2020_2000);
    g.a.bind(key);
    g.a.alu_value(Op::Lsh, R5, 32);
    g.a.alu(Op::Or, R0, R5);
    g.a.copy(R1, R0);
    g.hash(layout::BITS.trailing_zeros() as i32);
    g.wanted_bit();
    if g.spec.statistics {
        // Of a symbol without a bit it is looked up, too, whether it has a place: it is counted there.
        g.a.store(Size::D, R10, stack::CODE, R4);
        g.a.copy(R0, R1);
        g.wanted_key();
        g.a.load(Size::D, R0, R10, stack::CODE);
        g.a.alu(Op::And, R4, R0);
    } else {
        g.a.jump_if_value(Cond::Eq, R4, 0, over);
        g.a.copy(R0, R1);
        g.wanted_key();
    }
    g.a.jump_if_value(Cond::Ne, R4, 0, wanted);
    g.a.bind(over);
    g.a.load(Size::D, R1, R10, stack::OFFSET);
    g.a.alu_value(Op::Add, R3, 1);
    g.a.jump(next);
    g.a.bind(done);
}

/// Type, place of the symbol, size.
pub(super) type Kind = (u8, usize, usize, bool);

/// The tables of a set.
pub(super) fn tables(kinds: &[Kind]) -> ([u8; 256], [u8; 256]) {
    let (mut places, mut sizes) = ([0; 256], [0; 256]);
    for &(kind, symbol, size, is_short) in kinds {
        places[usize::from(kind)] = symbol as u8 | if is_short { SHORT } else { 0 };
        sizes[usize::from(kind)] = size as u8;
    }
    (places, sizes)
}
