//! Fields where they lie, and their values read on demand: what a message and an entry of a repeating group
//! have in common.

use crate::group::{Group, RepeatingGroup};
use crate::number::{ZEROS, digits_before, load8, parse_unsigned, value_of, value8};
use crate::reject::Fault;
use crate::text::Text;
use crate::time::Second;
use tickwire_market::{Nanos, Price, Qty};

/// One field of a message: its tag and where its value lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Field {
    /// The tag.
    pub tag: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Field {
    /// Where the value begins, from the start of the message.
    #[inline]
    pub const fn offset(self) -> usize {
        self.start as usize
    }
}

/// A run of fields of one message: all of them, or those of one entry of a repeating group. Values are read
/// by where they begin and end, in functions that are always inlined: a field that was listed a moment ago
/// is copied whole only after what was written of it in parts has reached the cache.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// Of the whole message.
    bytes: &'a [u8],
    fields: &'a [Field],
    /// With which its times may begin.
    second: &'a Second,
}

impl<'a> Fields<'a> {
    pub(crate) const NONE: Fields<'static> = Fields::new(&[], &[], &Second::FIRST);

    #[inline]
    pub(crate) const fn new(bytes: &'a [u8], fields: &'a [Field], second: &'a Second) -> Fields<'a> {
        Fields {
            bytes,
            fields,
            second,
        }
    }

    /// Others of the same message.
    #[inline(always)]
    pub(crate) fn others(&self, fields: &'a [Field]) -> Fields<'a> {
        Fields { fields, ..*self }
    }

    /// The bytes of the whole message.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The fields in order; of a message from BeginString to the last before CheckSum.
    #[inline]
    pub fn fields(&self) -> &'a [Field] {
        self.fields
    }

    /// The first field with this tag, by looking at one after the other: for the few of a group's entry.
    /// [`Message::find`](crate::Message::find) has a table.
    #[inline]
    pub fn find(&self, tag: u32) -> Option<Field> {
        self.fields.iter().copied().find(|f| f.tag == tag)
    }

    /// The entries of a repeating group; `None` if its count is not here.
    #[inline]
    pub fn group<G: RepeatingGroup>(&self) -> Option<Group<'a, G>> {
        let at = self.fields.iter().position(|f| f.tag == G::COUNT)?;
        Some(Group::new(*self, at))
    }

    /// The bytes of a field's value. `field` must be of the same message.
    #[inline]
    pub fn value(&self, field: Field) -> &'a [u8] {
        &self.bytes[field.start as usize..field.end as usize]
    }

    /// An unsigned number, leading zeros allowed.
    #[inline(always)]
    pub fn unsigned(&self, field: Field) -> Result<u64, Fault> {
        parse_unsigned(self.bytes, field.start as usize, field.end as usize).ok_or(Fault::format(field.tag))
    }

    /// A number that may be negative, leading zeros allowed.
    #[inline]
    pub fn signed(&self, field: Field) -> Result<i64, Fault> {
        let (start, end) = (field.start as usize, field.end as usize);
        let is_negative = self.bytes.get(start) == Some(&b'-');
        let number = parse_unsigned(self.bytes, start + usize::from(is_negative), end);
        let signed = number.and_then(|n| match is_negative {
            true => 0i64.checked_sub_unsigned(n),
            false => i64::try_from(n).ok(),
        });
        signed.ok_or(Fault::format(field.tag))
    }

    /// A quantity: a decimal without a fraction other than zeros, below 2^32.
    #[inline(always)]
    pub fn qty(&self, field: Field) -> Result<Qty, Fault> {
        let (start, end) = (field.start as usize, field.end as usize);
        match parse_unsigned(self.bytes, start, end).map(u32::try_from) {
            Some(Ok(units)) => Ok(Qty(units)),
            Some(Err(_)) => Err(Fault::value(field.tag)),
            None => qty_of_decimal(self.bytes, start, end, field.tag),
        }
    }

    /// A price, exact in 1e-9 units.
    #[inline(always)]
    pub fn price(&self, field: Field) -> Result<Price, Fault> {
        price_of(self.bytes, field.start as usize, field.end as usize).ok_or(Fault::format(field.tag))
    }

    /// A single character.
    #[inline(always)]
    pub fn char(&self, field: Field) -> Result<u8, Fault> {
        match self.value(field) {
            &[c] => Ok(c),
            _ => Err(Fault::format(field.tag)),
        }
    }

    /// `Y` or `N`.
    #[inline(always)]
    pub fn boolean(&self, field: Field) -> Result<bool, Fault> {
        match self.value(field) {
            b"Y" => Ok(true),
            b"N" => Ok(false),
            _ => Err(Fault::format(field.tag)),
        }
    }

    /// A UTC timestamp.
    #[inline(always)]
    pub fn timestamp(&self, field: Field) -> Result<Nanos, Fault> {
        self.time(field.start as usize, field.end as usize)
            .ok_or(Fault::format(field.tag))
    }

    /// The UTC timestamp between two places; `None` if there is none.
    #[inline(always)]
    pub(crate) fn time(&self, start: usize, end: usize) -> Option<Nanos> {
        self.second.read(self.bytes.get(start..end)?)
    }

    /// A text of bounded length, in place of the empty one; `None` if it is none.
    #[inline(always)]
    pub(crate) fn text_to<const W: usize>(&self, field: Field, to: &mut Text<W>) -> Option<()> {
        to.read_message(self.bytes, field.start as usize, field.end as usize)
    }

    /// A text of bounded length.
    #[inline(always)]
    pub fn text<const W: usize>(&self, field: Field) -> Result<Text<W>, Fault> {
        Text::from_message(self.bytes, field.start as usize, field.end as usize)
            .ok_or(Fault::value(field.tag))
    }
}

/// A quantity with a point in it.
#[cold]
fn qty_of_decimal(bytes: &[u8], start: usize, end: usize, tag: u32) -> Result<Qty, Fault> {
    let raw = price_of(bytes, start, end).ok_or(Fault::format(tag))?.raw();
    let units = (raw % 1_000_000_000 == 0).then(|| u32::try_from(raw / 1_000_000_000));
    match units {
        Some(Ok(units)) => Ok(Qty(units)),
        _ => Err(Fault::value(tag)),
    }
}

/// The price in `bytes[start..end]`; `None` if it is none.
#[inline(always)]
fn price_of(bytes: &[u8], start: usize, end: usize) -> Option<Price> {
    match usual_price(bytes, start, end) {
        Some(price) => Some(price),
        None => any_price(bytes, start, end),
    }
}

#[cold]
fn any_price(bytes: &[u8], start: usize, end: usize) -> Option<Price> {
    Price::parse(bytes.get(start..end)?).ok()
}

/// A decimal as prices usually are: no sign, at most one point, at most eight digits before it and eight
/// behind. `None` sends everything else to the plain parser.
#[inline]
pub(crate) fn usual_price(bytes: &[u8], start: usize, end: usize) -> Option<Price> {
    match end.checked_sub(start)? {
        1..=8 => short_price(bytes, start, end),
        9..=17 => long_price(bytes, start, end),
        _ => None,
    }
}

/// 0x80 in the lowest byte that is a point; nothing below it is marked.
#[inline]
const fn points(word: u64) -> u64 {
    let x = word ^ u64::from_le_bytes([b'.'; 8]);
    x.wrapping_sub(0x0101_0101_0101_0101) & !x & 0x8080_8080_8080_8080
}

/// Up to eight bytes: one word.
#[inline]
fn short_price(bytes: &[u8], start: usize, end: usize) -> Option<Price> {
    /// What the last of eight digits stands for in 1e-9, by which of eight bytes is the point.
    const UNITS: [i64; 8] = {
        let mut units = [100; 8];
        let mut at = 1;
        while at < 8 {
            units[at] = units[at - 1] * 10;
            at += 1;
        }
        units
    };
    let len = end - start;
    let word = digits_before(bytes, end, len)?;
    let point = points(word ^ ZEROS);
    // Eight digits of whole units are below 10^17.
    if point == 0 {
        return Some(Price::from_raw(value_of(word)? as i64 * 1_000_000_000));
    }
    if len == 1 {
        return None;
    }
    let last = point & point.wrapping_neg(); // the last bit of the point's byte
    let (below, up_to) = ((last >> 7) - 1, last | (last - 1));
    // What stands before the point moves over it.
    let digits = (word & below) << 8 | word & !up_to;
    let unit = UNITS[(point.trailing_zeros() / 8) as usize % 8];
    Some(Price::from_raw(value_of(digits)? as i64 * unit))
}

/// 9 to 17 bytes: what stands before the point, and what stands behind it.
#[inline]
fn long_price(bytes: &[u8], start: usize, end: usize) -> Option<Price> {
    let last = load8(bytes, end - 8)?;
    let point = points(last);
    let (at, fraction) = if point == 0 {
        (end - 9, last)
    } else {
        let byte = point.trailing_zeros() / 8;
        // '0's behind the last digit: the fraction in units of 1e-8.
        let digits = last.unbounded_shr(8 * byte + 8) | ZEROS.unbounded_shl(56 - 8 * byte);
        (end - 8 + byte as usize, digits)
    };
    if bytes.get(at) != Some(&b'.') || !(1..=8).contains(&at.checked_sub(start)?) {
        return None;
    }
    let whole = value_of(digits_before(bytes, at, at - start)?)? as i64;
    Some(Price::from_raw(
        whole * 1_000_000_000 + value8(fraction)? as i64 * 10,
    ))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::String;

    fn agrees(text: &[u8]) {
        let mut bytes = [b'9'; 48];
        bytes[10..10 + text.len()].copy_from_slice(text);
        if let Some(fast) = usual_price(&bytes, 10, 10 + text.len()) {
            assert_eq!(Price::parse(text), Ok(fast), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn usual_prices_agree_with_the_plain_parser() {
        let texts: [&[u8]; 21] = [
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
            b"00000087.39000000",
            b"12345678.12345678",
            b"123456789",
            b"1234.56.78",
            b"1.123456789",
        ];
        texts.into_iter().for_each(agrees);
        assert_eq!(
            usual_price(b"8=FIX.4.87.39", 8, 13),
            Price::from_decimal(8_739, 2)
        );
        assert_eq!(
            usual_price(b"8=FIX.4.00000087.39000000", 8, 25),
            Price::from_decimal(8_739, 2)
        );
        assert_eq!(
            usual_price(b"8=FIX.4.1234567.5", 8, 17),
            Price::from_decimal(12_345_675, 1)
        );
    }

    proptest! {
        #[test]
        fn any_short_text_reads_as_the_plain_parser_reads_it(text in "[0-9.]{0,18}|[-+0-9.x]{0,18}") {
            agrees(String::as_bytes(&text));
        }
    }
}
