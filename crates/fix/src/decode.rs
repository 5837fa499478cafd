//! From bytes to fields: framing, checksum, one pass that finds every field, typed access on demand.
//!
//! [`frame`] finds the first whole message of a byte stream; [`Index::decode`] checks its checksum and lists its
//! fields in place; [`Message`] reads values. Nothing is copied or allocated. Source: FIX 4.4 with errata 20030618,
//! volume 2, "Message Integrity" and "Garbled Messages"; volume 1, "FIX Message Format and Delivery".

use crate::number::{load_tail, load8, parse_unsigned, value8};
use crate::reject::Fault;
use crate::reject::SessionRejectReason::{
    EmbeddedSoh, IncorrectFormat, InvalidTagNumber, Other, TagWithoutValue,
};
use crate::scan::{SOH, scan};
use crate::tag;
use crate::text::Text;
use crate::time::parse_timestamp;
use alloc::boxed::Box;
use alloc::vec;
use tickwire_market::{Nanos, Price, Qty};

/// Why bytes are not a message. Garbled messages are skipped and counted, never answered (FIX 4.4, volume 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Garbled {
    /// Does not begin with `8=FIX`.
    NoBeginString,
    /// BodyLength is not the second field, or not a number.
    NoBodyLength,
    /// Longer than the receive buffer.
    TooLong,
    /// There is no CheckSum field where BodyLength says.
    NoCheckSum,
    /// The checksum is another one.
    CheckSum {
        /// What the message says.
        said: u8,
        /// What its bytes add up to.
        computed: u8,
    },
    /// MsgType is not the third field.
    NoMsgType,
}

/// The beginning of a byte stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A message of this many bytes; its checksum is not verified yet.
    Whole(usize),
    /// More bytes are needed.
    Partial,
    /// No message here; the next one can begin after this many bytes (at least 1).
    Garbled {
        /// How many bytes to drop.
        skip: usize,
        /// Why.
        why: Garbled,
    },
}

const BEGIN: &[u8] = b"8=FIX";
/// `10=nnn` and its separator.
const TRAILER: usize = 7;
/// Longest BeginString value admitted: `FIXT.1.1` has 8.
const BEGIN_STRING_MAX: usize = 12;

/// Finds the first message in `bytes`. Messages longer than `max` bytes are garbled.
pub fn frame(bytes: &[u8], max: usize) -> Frame {
    match frame_at_start(bytes, max) {
        Ok(Some(len)) => Frame::Whole(len),
        Ok(None) => Frame::Partial,
        Err((why, said)) => Frame::Garbled {
            skip: next_start(bytes, said),
            why,
        },
    }
}

/// The length of the message at the start; or why there is none, and how many bytes it says to have before its CheckSum
/// (1 if that is not known): other engines take a garbled message for as long as it says, whatever that swallows.
fn frame_at_start(bytes: &[u8], max: usize) -> Result<Option<usize>, (Garbled, usize)> {
    let known = bytes.len().min(BEGIN.len());
    if bytes[..known] != BEGIN[..known] {
        return Err((Garbled::NoBeginString, 1));
    }
    let window = &bytes[..bytes.len().min(2 + BEGIN_STRING_MAX + 1)];
    let Some(end) = window.iter().position(|&b| b == SOH) else {
        return if window.len() == bytes.len() {
            Ok(None)
        } else {
            Err((Garbled::NoBeginString, 1))
        };
    };
    let rest = &bytes[end + 1..];
    let known = rest.len().min(2);
    if rest[..known] != b"9="[..known] {
        return Err((Garbled::NoBodyLength, 1));
    }
    let mut body_len = 0usize;
    // Eight digits say 99,999,999: longer than any buffer, short of any overflow.
    for (i, &b) in rest.iter().enumerate().skip(2).take(9) {
        match b {
            b'0'..=b'9' if i < 10 => body_len = body_len * 10 + (b - b'0') as usize,
            SOH if i > 2 => {
                let total = end + 1 + i + 1 + body_len + TRAILER;
                return check_trailer(bytes, total, max);
            }
            _ => return Err((Garbled::NoBodyLength, 1)),
        }
    }
    Ok(None)
}

fn check_trailer(bytes: &[u8], total: usize, max: usize) -> Result<Option<usize>, (Garbled, usize)> {
    if total > max {
        return Err((Garbled::TooLong, 1));
    }
    let Some(message) = bytes.get(..total) else {
        return Ok(None);
    };
    match message[total - TRAILER - 1..] {
        [SOH, b'1', b'0', b'=', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', SOH] => Ok(Some(total)),
        _ => Err((Garbled::NoCheckSum, total - TRAILER)),
    }
}

/// Offset (at least `from`) of the next place where a message could begin: `8=FIX`, or a beginning of it at the very end.
fn next_start(bytes: &[u8], from: usize) -> usize {
    let could_begin = |at: &usize| {
        let rest = &bytes[*at..];
        let known = rest.len().min(BEGIN.len());
        rest[..known] == BEGIN[..known]
    };
    (from..bytes.len()).find(could_begin).unwrap_or(bytes.len())
}

/// One field of a message: its tag and where its value lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Field {
    /// The tag.
    pub tag: u32,
    start: u32,
    end: u32,
}

impl Field {
    /// Where the value begins, from the start of the message.
    #[inline]
    pub const fn offset(self) -> usize {
        self.start as usize
    }
}

/// Memory for the fields of one message at a time.
#[derive(Clone, Debug)]
pub struct Index {
    fields: Box<[Field]>,
    /// Of the message decoded last.
    last: Last,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    fields: usize,
    fault: Option<Fault>,
    empty: Option<Fault>,
}

/// A message whose integrity is verified: its bytes and its fields.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
    fields: &'a [Field],
    /// The first piece that is not `tag=value` nor `tag=`, if any.
    pub fault: Option<Fault>,
    /// The first field without a value, if any.
    pub empty: Option<Fault>,
}

impl Index {
    /// Room for messages of up to `max_fields` fields (at least 8); what a longer one has beyond is not indexed and
    /// makes its [`Message::fault`].
    pub fn new(max_fields: usize) -> Index {
        Index {
            fields: vec![Field::default(); max_fields.max(8)].into_boxed_slice(),
            last: Last::default(),
        }
    }

    /// Verifies the checksum of a whole message, as [`frame`] found it, and lists its fields up to the CheckSum.
    pub fn decode<'a>(&'a mut self, message: &'a [u8]) -> Result<Message<'a>, Garbled> {
        let Some(body_end) = message.len().checked_sub(TRAILER) else {
            return Err(Garbled::NoCheckSum);
        };
        // Locals, not a struct with methods: a call that is not inlined would put all of it in memory.
        let (mut count, mut start, mut skip_to, mut fault, mut empty) = (0_usize, 0, 0, None, None);
        let fields = &mut self.fields[..];
        let mut sum = 0u32;
        let (blocks, rest) = message[..body_end].as_chunks::<64>();
        let mut last = [0; 64]; // NUL adds nothing to the sum and separates nothing
        last[..rest.len()].copy_from_slice(rest);
        for (i, block) in blocks.iter().chain([&last]).enumerate() {
            let (mut separators, add) = scan(block);
            sum = sum.wrapping_add(add);
            while separators != 0 {
                let end = 64 * i + separators.trailing_zeros() as usize;
                separators &= separators - 1;
                if end < skip_to {
                    continue; // part of a data field
                }
                let (tag, digits) = parse_tag(message, start, end);
                let value = start + digits + 1;
                if tag == 0 {
                    let before = count.checked_sub(1).and_then(|at| fields.get(at)).map(|f| f.tag);
                    fault = fault.or(Some(no_field(&message[start..end], before)));
                } else {
                    if value == end {
                        empty = empty.or(Some(Fault::new(TagWithoutValue, tag)));
                    }
                    let field = Field {
                        tag,
                        start: value as u32,
                        end: end as u32,
                    };
                    if tag::is_data_length(tag) {
                        skip_to = data_end(message, field);
                    }
                    match fields.get_mut(count) {
                        Some(slot) => *slot = field,
                        None => fault = fault.or(Some(Fault::new(Other, tag))),
                    }
                    count += 1;
                }
                start = end + 1;
            }
        }
        if start != body_end {
            // A data field's count leads beyond the message.
            fault = fault.or(Some(Fault::no_tag(IncorrectFormat)));
        }
        check_sum(&message[body_end..], sum as u8)?;
        self.last = Last {
            fields: count.min(fields.len()),
            fault,
            empty,
        };
        match self.fields[..self.last.fields].get(2) {
            Some(f) if f.tag == tag::MSG_TYPE => Ok(self.again(message)),
            _ => Err(Garbled::NoMsgType),
        }
    }

    /// The message decoded last, whose bytes these are.
    pub(crate) fn again<'a>(&'a self, message: &'a [u8]) -> Message<'a> {
        Message {
            bytes: message,
            fields: &self.fields[..self.last.fields],
            fault: self.last.fault,
            empty: self.last.empty,
        }
    }
}

fn check_sum(trailer: &[u8], computed: u8) -> Result<(), Garbled> {
    let &[b'1', b'0', b'=', a, b, c, SOH] = trailer else {
        return Err(Garbled::NoCheckSum);
    };
    let digit = |d: u8| d.wrapping_sub(b'0') as u32;
    let said = digit(a) * 100 + digit(b) * 10 + digit(c);
    if said == computed as u32 {
        Ok(())
    } else {
        Err(Garbled::CheckSum {
            said: said as u8,
            computed,
        })
    }
}

/// What is wrong with a piece that has no tag: no `=` in it, and it belongs to the value before; or what stands before
/// the `=` is no tag.
#[cold]
fn no_field(piece: &[u8], before: Option<u32>) -> Fault {
    let Some(equals) = piece.iter().position(|&b| b == b'=') else {
        return before.map_or(Fault::no_tag(InvalidTagNumber), |tag| {
            Fault::new(EmbeddedSoh, tag)
        });
    };
    let number = core::str::from_utf8(&piece[..equals]).ok();
    Fault {
        reason: InvalidTagNumber,
        tag: number.and_then(|n| n.parse().ok()),
    }
}

/// Where the data field behind its length field ends at the earliest; 0 if there is none.
#[cold]
fn data_end(message: &[u8], length: Field) -> usize {
    let (value, end) = (length.start as usize, length.end as usize);
    let equals = message[end..].iter().take(9).position(|&b| b == b'=');
    match (parse_unsigned(message, value, end), equals) {
        (Some(len), Some(at)) => (end + at + 1).saturating_add(usize::try_from(len).unwrap_or(usize::MAX)),
        _ => 0,
    }
}

/// The tag of the field in `start..end` and how many digits it has: one to seven, no leading zero, then `=`. Tag 0 if
/// there is none.
#[inline]
fn parse_tag(bytes: &[u8], start: usize, end: usize) -> (u32, usize) {
    // Eight bytes are there: the CheckSum field follows every field.
    let word = load8(bytes, start).unwrap_or(0);
    // Two digits are the most common by far.
    let [a, b, c, ..] = word.to_le_bytes();
    let (tens, units) = (a.wrapping_sub(b'1') as u32, b.wrapping_sub(b'0') as u32);
    if c == b'=' && tens < 9 && units < 10 && start + 2 < end {
        return (tens * 10 + 10 + units, 2);
    }
    parse_any_tag(word, end - start)
}

#[inline]
fn parse_any_tag(word: u64, field_len: usize) -> (u32, usize) {
    let x = word ^ u64::from_le_bytes([b'='; 8]);
    let equals = x.wrapping_sub(0x0101_0101_0101_0101) & !x & 0x8080_8080_8080_8080;
    let digits = equals.trailing_zeros() as usize / 8;
    if digits == 0 || digits > 7 || digits >= field_len || word as u8 == b'0' {
        return (0, 0);
    }
    let shift = 8 * digits as u32;
    let aligned = (word << (64 - shift)) | (u64::from_le_bytes([b'0'; 8]) >> shift);
    (value8(aligned).unwrap_or(0) as u32, digits)
}

impl<'a> Message<'a> {
    /// What is wrong with its form, if anything.
    #[inline]
    pub fn malformed(&self) -> Option<Fault> {
        self.fault.or(self.empty)
    }

    /// All of its bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its fields in order, from BeginString to the last before CheckSum.
    #[inline]
    pub fn fields(&self) -> &'a [Field] {
        self.fields
    }

    /// The first field with this tag.
    pub fn find(&self, tag: u32) -> Option<Field> {
        self.fields.iter().copied().find(|f| f.tag == tag)
    }

    /// The bytes of a field's value. `field` must be one of this message's.
    #[inline]
    pub fn value(&self, field: Field) -> &'a [u8] {
        &self.bytes[field.start as usize..field.end as usize]
    }

    /// MsgType (35).
    #[inline]
    pub fn msg_type(&self) -> &'a [u8] {
        self.value(self.fields[2])
    }

    /// An unsigned number, leading zeros allowed.
    #[inline]
    pub fn unsigned(&self, field: Field) -> Result<u64, Fault> {
        parse_unsigned(self.bytes, field.start as usize, field.end as usize).ok_or(Fault::format(field.tag))
    }

    /// A quantity: a decimal without a fraction other than zeros, below 2^32.
    #[inline]
    pub fn qty(&self, field: Field) -> Result<Qty, Fault> {
        let (start, end) = (field.start as usize, field.end as usize);
        let units = match parse_unsigned(self.bytes, start, end) {
            Some(n) => n,
            None => {
                let raw = self.price(field)?.raw();
                let whole = raw / 1_000_000_000;
                if raw < 0 || raw % 1_000_000_000 != 0 {
                    return Err(Fault::value(field.tag));
                }
                whole as u64
            }
        };
        u32::try_from(units).map(Qty).map_err(|_| Fault::value(field.tag))
    }

    /// A price, exact in 1e-9 units.
    #[inline]
    pub fn price(&self, field: Field) -> Result<Price, Fault> {
        let (start, end) = (field.start as usize, field.end as usize);
        match short_price(self.bytes, start, end) {
            Some(price) => Ok(price),
            None => Price::parse(&self.bytes[start..end]).map_err(|_| Fault::format(field.tag)),
        }
    }

    /// A single character.
    #[inline]
    pub fn char(&self, field: Field) -> Result<u8, Fault> {
        match self.value(field) {
            &[c] => Ok(c),
            _ => Err(Fault::format(field.tag)),
        }
    }

    /// `Y` or `N`.
    pub fn boolean(&self, field: Field) -> Result<bool, Fault> {
        match self.value(field) {
            b"Y" => Ok(true),
            b"N" => Ok(false),
            _ => Err(Fault::format(field.tag)),
        }
    }

    /// A UTC timestamp.
    #[inline]
    pub fn timestamp(&self, field: Field) -> Result<Nanos, Fault> {
        parse_timestamp(self.value(field)).ok_or(Fault::format(field.tag))
    }

    /// A text of bounded length.
    #[inline]
    pub fn text<const N: usize>(&self, field: Field) -> Result<Text<N>, Fault> {
        Text::from_message(self.bytes, field.start as usize, field.end as usize)
            .ok_or(Fault::value(field.tag))
    }
}

/// A decimal of up to eight bytes with at most one point, without a sign: one word. `None` sends everything else to
/// the plain parser.
#[inline]
fn short_price(bytes: &[u8], start: usize, end: usize) -> Option<Price> {
    let len = end.checked_sub(start)?;
    if !(1..=8).contains(&len) {
        return None;
    }
    let word = load_tail(bytes, end, len)?;
    let x = word ^ u64::from_le_bytes([b'.'; 8]);
    let point = x.wrapping_sub(0x0101_0101_0101_0101) & !x & 0x8080_8080_8080_8080;
    if point == 0 {
        return Price::from_decimal(value8(word)? as i64, 0);
    }
    let bit = point.trailing_zeros() & !7; // of the point's byte
    let below = (1u64 << bit) - 1;
    let decimals = 7 - bit / 8;
    // What stands before the point moves over it; a '0' enters in front.
    let digits = (word & below) << 8 | word & !below & !(0xffu64 << bit) | b'0' as u64;
    if len == 1 {
        return None;
    }
    Price::from_decimal(value8(digits)? as i64, decimals as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_prices_agree_with_the_plain_parser() {
        let texts: [&[u8]; 16] = [
            b"0",
            b"7",
            b"87.39",
            b"187.25",
            b".5",
            b"5.",
            b"00023.23",
            b"1234.567",
            b"12345678",
            b"1.2.3",
            b"-1.5",
            b"1e5",
            b".",
            b"",
            b"0.000001",
            b"+1",
        ];
        for text in texts {
            let mut bytes = [b'9'; 32];
            bytes[10..10 + text.len()].copy_from_slice(text);
            let fast = short_price(&bytes, 10, 10 + text.len());
            if let Some(fast) = fast {
                assert_eq!(Price::parse(text), Ok(fast), "{text:?}");
            }
        }
        assert_eq!(
            short_price(b"8=FIX.4.87.39", 8, 13),
            Price::from_decimal(8_739, 2)
        );
    }
}
