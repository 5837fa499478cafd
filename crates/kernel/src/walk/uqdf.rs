//! UQDF of the UTP plan, over MoldUDP64 as ITCH is.

use super::itch;
use super::sip::{self, Kind, Messages};
use crate::asm::{Cond, Reg, Size};
use crate::filter::{Generator, stack};
use Reg::{R0, R1, R10};
use core::mem::offset_of;
use tickwire_wire::uqdf::{
    AdfQuote, CombinedLong, CombinedShort, MessageHeader, OddLotQuoteLong, OddLotQuoteShort, QuoteLong,
    QuoteShort,
};

/// Bytes of a block's length.
const LENGTH: i16 = 2;

macro_rules! quotes {
    ($($message:ident: $is_short:literal;)*) => {
        &[$((
            $message::KIND[1],
            LENGTH as usize + offset_of!($message, symbol),
            $message::SIZE,
            $is_short,
        ),)*]
    };
}

const KINDS: &[Kind] = quotes! {
    QuoteShort: true;
    QuoteLong: false;
    AdfQuote: false;
    CombinedShort: true;
    CombinedLong: false;
    OddLotQuoteShort: true;
    OddLotQuoteLong: false;
};

pub(crate) fn tables() -> ([u8; 256], [u8; 256]) {
    sip::tables(KINDS)
}

pub(crate) fn walk(g: &mut Generator<'_>) {
    let doubt = g.exits.doubt;
    sip::walk(
        g,
        &Messages {
            header: itch::HEADER,
            uncounted: LENGTH,
            category: LENGTH + offset_of!(MessageHeader, category) as i16,
            kind: LENGTH + offset_of!(MessageHeader, kind) as i16,
            least: MessageHeader::SIZE as i16,
        },
    );
    // The last message must end within what the sender says; bytes behind it are ignored.
    g.a.load(Size::D, R0, R10, stack::LIMIT);
    g.a.jump_if(Cond::Gt, R1, R0, doubt);
    g.unwanted_keys(false);
}
