//! From fields to bytes, into memory of the caller. BodyLength and CheckSum are computed at the end;
//! BodyLength has no leading zeros, so the message may begin a few bytes into the buffer.
//!
//! A field is written in whole words, each over the unused end of the one before: the separator that ends a
//! value comes with the next tag. Tags that are constants cost nothing to render.

use crate::decode::separators;
use crate::number::{E8, ZEROS, byte_sum, decimal, digits8, over_power_of_ten, short_number, sum_of};
use crate::scan::{SOH, WordSum};
use crate::time::Stamp;
use crate::version::Version;
use tickwire_market::ascii::{bytes_of, short_word};
use tickwire_market::{Nanos, Price};

/// The message did not fit the buffer, or a value was empty or held a separator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotEncodable;

/// `8=|9=`, five digits of BodyLength and its separator, beside BeginString.
const HEAD: usize = 5 + 5 + 1;
/// `10=nnn` and its separator.
const TRAILER: usize = 7;

/// Writes one message: fields in the order of the calls, then [`Encoder::finish`].
#[derive(Debug)]
pub struct Encoder<'b> {
    buf: &'b mut [u8],
    begin_string: &'static [u8],
    /// Where the separator before MsgType is.
    body: u32,
    /// Where the next field's separator comes; 32 bits, so that nothing added to it overflows.
    at: u32,
    failed: bool,
    /// What values add to the checksum: they are summed as they are written.
    sum: WordSum,
    /// What tags and fields known before add to it, modulo 256.
    known_sum: u32,
}

/// Fields that are the same in many messages, already encoded.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// With the separator before the first and without the one behind the last.
    bytes: [u8; 64],
    len: usize,
    sum: u8,
}

impl Prepared {
    /// Fields in this order; `None` if a value is empty or has a separator, or if they are longer than 63
    /// bytes together.
    pub fn new(fields: &[(u32, &[u8])]) -> Option<Prepared> {
        Prepared::of(|e| fields.iter().for_each(|&(tag, value)| e.text(tag, value)))
    }

    /// The same of what is put.
    pub(crate) fn of(put: impl FnOnce(&mut Encoder<'_>)) -> Option<Prepared> {
        let mut bytes = [0; 64];
        let mut e = Encoder {
            buf: &mut bytes,
            begin_string: b"",
            body: 0,
            at: 0,
            failed: false,
            sum: WordSum::new(),
            known_sum: 0,
        };
        put(&mut e);
        let (failed, len) = (e.failed, e.at as usize);
        let sum = sum_of(&bytes[..len]);
        (!failed).then_some(Prepared { bytes, len, sum })
    }
}

impl<'b> Encoder<'b> {
    /// Begins a message. The first field must be MsgType.
    #[inline]
    pub fn new(buf: &'b mut [u8], version: Version) -> Encoder<'b> {
        let begin_string = version.begin_string();
        let body = (HEAD + begin_string.len() - 1) as u32;
        Encoder {
            failed: buf.len() < body as usize || buf.len() > u32::MAX as usize,
            buf,
            begin_string,
            body,
            at: body,
            sum: WordSum::new(),
            known_sum: 0,
        }
    }

    /// Lets [`Encoder::finish`] fail: what was to be written is wrong.
    #[inline]
    pub fn fail(&mut self) {
        self.failed = true;
    }

    /// Whether something did not fit or was wrong so far.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The first `len` (0 to 8) bytes of a word; the others are zero.
    #[inline(always)]
    fn put_word(&mut self, word: u64, len: usize) {
        self.sum.add(word);
        self.place_word(word, len);
    }

    /// The same, and the word's sum is known.
    #[inline(always)]
    fn put_known(&mut self, word: u64, len: usize) {
        self.known_sum = self.known_sum.wrapping_add(byte_sum(word).into());
        self.place_word(word, len);
    }

    #[inline(always)]
    fn place_word(&mut self, word: u64, len: usize) {
        let at = self.at as usize;
        match self.buf.get_mut(at..at + 8) {
            Some(to) => {
                to.copy_from_slice(&word.to_le_bytes());
                self.at += len as u32;
            }
            None => self.place(&word.to_le_bytes()[..len]),
        }
    }

    /// Bytes, for what is long.
    #[inline(always)]
    fn push(&mut self, bytes: &[u8]) {
        self.known_sum = self.known_sum.wrapping_add(sum_of(bytes).into());
        self.place(bytes);
    }

    /// Bytes that are in the sum, for what is long or near the buffer's end.
    #[inline(always)]
    fn place(&mut self, bytes: &[u8]) {
        // By value: were the encoder's address taken, all of it would have to be in memory.
        let end = copy_at(self.buf, self.at, bytes);
        self.failed |= end == 0;
        self.at = self.at.max(end);
    }

    /// The separator before a field, and its tag.
    #[inline(always)]
    fn tag(&mut self, tag: u32) {
        let (word, len) = tag_word(tag);
        self.put_known(word, len);
        if len == 8 && tag > 999_999 {
            self.put_known(b'=' as u64, 1);
        }
        self.failed |= len == 0;
    }

    /// A field whose value is the first `len` (0 to 8) bytes of a word, the others of which are zero.
    #[inline(always)]
    fn put_field(&mut self, tag: u32, value: u64, len: usize) {
        let (word, tag_len) = tag_word(tag);
        let at = self.at as usize;
        // One question whether there is room, for both words.
        match self
            .buf
            .get_mut(at..at + 16)
            .and_then(|to| to.first_chunk_mut::<16>())
        {
            Some(to) if (1..8).contains(&tag_len) => {
                to[..8].copy_from_slice(&word.to_le_bytes());
                to[tag_len..tag_len + 8].copy_from_slice(&value.to_le_bytes());
                self.known_sum = self.known_sum.wrapping_add(byte_sum(word).into());
                self.sum.add(value);
                self.at += (tag_len + len) as u32;
            }
            _ => {
                self.tag(tag);
                self.put_word(value, len);
            }
        }
    }

    /// A field of any bytes; whether there is a separator in its value.
    #[inline(always)]
    fn put_bytes(&mut self, tag: u32, value: &[u8]) -> bool {
        let (first, last) = ends_of(value);
        match value.len() {
            0..=8 => self.put_field(tag, first, value.len()),
            9..=16 => {
                self.put_field(tag, first, 8);
                self.put_word(last, value.len() - 8);
            }
            _ => {
                self.tag(tag);
                self.push(value);
            }
        }
        separators(first) | separators(last) != 0
    }

    /// Text; must not be empty.
    #[inline(always)]
    pub fn text(&mut self, tag: u32, value: &[u8]) {
        let has_separator = self.put_bytes(tag, value);
        self.failed |= value.is_empty() | has_separator;
    }

    /// A value of a received message as it is, even an empty one.
    #[inline]
    pub fn copy(&mut self, tag: u32, value: &[u8]) {
        self.put_bytes(tag, value);
    }

    /// Text, left out when empty.
    #[inline]
    pub fn text_if(&mut self, tag: u32, value: &[u8]) {
        if !value.is_empty() {
            self.text(tag, value);
        }
    }

    /// A single character.
    #[inline(always)]
    pub fn char(&mut self, tag: u32, value: u8) {
        let (word, len) = tag_word(tag);
        self.failed |= value == SOH;
        if len == 0 || len == 8 {
            self.tag(tag);
            return self.put_known(value as u64, 1);
        }
        self.known_sum = self
            .known_sum
            .wrapping_add(u32::from(byte_sum(word)) + u32::from(value));
        self.place_word(word | (value as u64) << (8 * len), len + 1);
    }

    /// An unsigned number.
    #[inline(always)]
    pub fn unsigned(&mut self, tag: u32, value: u64) {
        if value < E8 {
            let (word, len) = short_number(value as u32);
            return self.put_field(tag, word, len);
        }
        self.tag(tag);
        self.put_number(value);
    }

    /// A number that may be negative.
    #[inline]
    pub fn signed(&mut self, tag: u32, value: i64) {
        self.tag(tag);
        if value < 0 {
            self.put_known(b'-' as u64, 1);
        }
        self.put_number(value.unsigned_abs());
    }

    #[inline(always)]
    fn put_number(&mut self, value: u64) {
        if value < E8 {
            let (word, len) = short_number(value as u32);
            return self.put_word(word, len);
        }
        if value < E8 * E8 {
            let (word, len) = short_number((value / E8) as u32);
            self.put_word(word, len);
            return self.put_word(digits8((value % E8) as u32), 8);
        }
        let ([first, second, third], len) = decimal(value);
        self.put_word(first, 8);
        self.put_word(second, 8);
        self.put_word(third, len - 16);
    }

    /// A price: at least two decimals, as many as make it exact.
    #[inline(always)]
    pub fn price(&mut self, tag: u32, value: Price) {
        self.tag(tag);
        match short_price(value) {
            Some(words) => {
                for (word, width) in words {
                    self.put_word(word, width);
                }
            }
            None => {
                let (text, len) = any_price(value);
                self.push(&text[..len]);
            }
        }
    }

    /// A point in time, cut to the precision of `stamp`.
    #[inline(always)]
    pub fn timestamp(&mut self, tag: u32, stamp: &mut Stamp, at: Nanos) {
        self.tag(tag);
        let (words, width) = (stamp.whole(at), stamp.precision().width());
        self.known_sum = self.known_sum.wrapping_add(stamp.sum().into());
        let at = self.at as usize;
        match self.buf.get_mut(at..at + 32) {
            Some(to) => {
                for (to, word) in to.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                    *to = word.to_le_bytes();
                }
                self.at += width as u32;
            }
            None => self.place(&words.map(u64::to_le_bytes).as_flattened()[..width]),
        }
    }

    /// Fields that were encoded before.
    #[inline(always)]
    pub fn prepared(&mut self, fields: &Prepared) {
        self.known_sum = self.known_sum.wrapping_add(fields.sum.into());
        let at = self.at as usize;
        match self.buf.get_mut(at..at + fields.bytes.len()) {
            Some(to) => {
                to.copy_from_slice(&fields.bytes);
                self.at += fields.len as u32;
            }
            None => self.place(&fields.bytes[..fields.len]),
        }
    }

    /// Fields already encoded, each with its separator behind it: copied as they are.
    pub(crate) fn raw(&mut self, fields: &[u8]) {
        if let Some((_, fields)) = fields.split_last() {
            self.push(&[SOH]);
            self.push(fields);
        }
    }

    /// Puts BeginString, BodyLength and CheckSum; the whole message.
    #[inline]
    pub fn finish(self) -> Result<&'b [u8], NotEncodable> {
        match self.failed {
            true => Err(NotEncodable),
            false => {
                let sum = self.sum.total().wrapping_add(self.known_sum as u8);
                finish(
                    self.buf,
                    self.begin_string,
                    self.body as usize,
                    self.at as usize,
                    sum,
                )
            }
        }
    }
}

/// Copies bytes into the buffer; where they end, 0 if there is no room.
#[inline(never)]
fn copy_at(buf: &mut [u8], at: u32, bytes: &[u8]) -> u32 {
    let at = at as usize;
    match buf.get_mut(at..at + bytes.len()) {
        Some(to) => {
            to.copy_from_slice(bytes);
            (at + bytes.len()) as u32
        }
        None => 0,
    }
}

/// What stands around a body, from its separator at `body` to `at`, whose bytes add up to `sum`.
#[inline(never)]
fn finish<'b>(
    buf: &'b mut [u8],
    begin_string: &[u8],
    body: usize,
    at: usize,
    mut sum: u8,
) -> Result<&'b [u8], NotEncodable> {
    let body_len = at - body; // the separator before is not of it, the last one is still to come
    let end = at + 1 + TRAILER;
    if body_len > 99_999 || buf.len() < end {
        return Err(NotEncodable);
    }
    buf[at] = SOH;
    let (mut start, mut rest) = (body, body_len);
    while {
        start -= 1;
        let digit = b'0' + (rest % 10) as u8;
        buf[start] = digit;
        sum = sum.wrapping_add(digit);
        rest /= 10;
        rest != 0
    } {}
    buf[body] = SOH;
    // Known lengths: a copy of any length would be a call.
    match begin_string {
        [.., version] if begin_string.len() == 7 => {
            start -= 12;
            buf[start..start + 12].copy_from_slice(b"8=FIX.4.0\x019=");
            buf[start + 8] = *version;
            sum = sum.wrapping_add(const { byte_loop(b"8=FIX.4.\x019=\x01") }.wrapping_add(*version));
        }
        _ => {
            start -= 13;
            buf[start..start + 13].copy_from_slice(b"8=FIXT.1.1\x019=");
            sum = sum.wrapping_add(const { byte_loop(b"8=FIXT.1.1\x019=\x01") });
        }
    }
    debug_assert_eq!(sum, sum_of(&buf[start..=at]), "every byte is in the sum");
    put_check_sum(&mut buf[at + 1..end], sum);
    Ok(&buf[start..end])
}

/// The sum of bytes known when this is compiled, modulo 256.
const fn byte_loop(bytes: &[u8]) -> u8 {
    let (mut sum, mut at) = (0u8, 0);
    while at < bytes.len() {
        sum = sum.wrapping_add(bytes[at]);
        at += 1;
    }
    sum
}

/// The separator before a field, its tag and `=`, in a word, and how many bytes; without the `=` where the
/// tag has seven digits, and nothing where it has more, which no tag has.
#[inline(always)]
const fn tag_word(tag: u32) -> (u64, usize) {
    let digits = match tag {
        0..=9 => 1,
        10..=99 => 2,
        100..=999 => 3,
        1_000..=9_999 => 4,
        10_000..=99_999 => 5,
        100_000..=999_999 => 6,
        1_000_000..=9_999_999 => return (SOH as u64 | digits8(tag) >> 8 << 8, 8),
        _ => return (0, 0),
    };
    let text = digits8(tag) >> (64 - 8 * digits);
    (
        SOH as u64 | text << 8 | (b'=' as u64) << (8 + 8 * digits),
        digits + 2,
    )
}

/// The first eight bytes of a value, and those behind them when there are up to eight. Of a longer value,
/// words that have a separator if it has one.
#[inline]
fn ends_of(value: &[u8]) -> (u64, u64) {
    match (value.len(), value.first_chunk::<8>(), value.last_chunk::<8>()) {
        (8..=16, Some(first), Some(last)) => {
            let behind = value.len() as u32 - 8;
            let last = u64::from_le_bytes(*last).unbounded_shr(64 - 8 * behind);
            (u64::from_le_bytes(*first), last)
        }
        (0..8, ..) => (short_word(value), 0),
        _ => (if has_separator(value) { SOH as u64 } else { 0 }, 0),
    }
}

/// Whether there is a separator among eight bytes or more.
#[inline(always)]
fn has_separator(value: &[u8]) -> bool {
    let (words, _) = value.as_chunks::<8>();
    // What is left of a longer value ends a word.
    let all = words.iter().chain(value.last_chunk());
    all.fold(0, |found, word| found | separators(u64::from_le_bytes(*word))) != 0
}

/// Of a price that has up to eight digits before the point and seven behind it: those before it, the point
/// with those behind it, and how many bytes each are.
#[inline]
fn short_price(value: Price) -> Option<[(u64, usize); 2]> {
    let hundreds = over_power_of_ten::<2>(value.raw() as u64);
    if hundreds >= E8 * 10_000_000 {
        return None;
    }
    // Eight digits of the seven: the point takes the place of the first.
    let digits = digits8((hundreds % 10_000_000) as u32);
    let significant = 8 - (digits ^ ZEROS).leading_zeros() as usize / 8;
    let width = significant.max(3);
    let shown = digits ^ u64::from(b'0' ^ b'.');
    Some([
        short_number((hundreds / 10_000_000) as u32),
        (shown & u64::MAX >> (64 - 8 * width), width),
    ])
}

/// Any price.
#[cold]
fn any_price(value: Price) -> ([u8; 24], usize) {
    let (mut text, mut len) = ([0; 24], 0);
    let mut put = |part: &[u8]| {
        text[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    };
    if value.raw() < 0 {
        put(b"-");
    }
    let raw = value.raw().unsigned_abs();
    let (digits, width) = decimal(raw / 1_000_000_000);
    put(&bytes_of(digits).as_flattened()[..width]);
    // The point and nine decimals, after a digit that is there to be one.
    let mut decimals = bytes_of(decimal(1_000_000_000 + raw % 1_000_000_000).0);
    let decimals = decimals.as_flattened_mut();
    decimals[0] = b'.';
    let zeros = decimals[3..10]
        .iter()
        .rev()
        .take_while(|&&digit| digit == b'0')
        .count();
    put(&decimals[..10 - zeros]);
    (text, len)
}

/// `10=nnn` and its separator into seven bytes.
#[inline]
pub(crate) fn put_check_sum(to: &mut [u8], sum: u8) {
    // x * 41 >> 12 is x / 100 for x < 256; x * 103 >> 10 is x / 10 for x < 100.
    let sum = u64::from(sum);
    let hundreds = (sum * 41) >> 12;
    let rest = sum - 100 * hundreds;
    let tens = (rest * 103) >> 10;
    let ones = rest - 10 * tens;
    let digits = hundreds << 24 | tens << 32 | ones << 40;
    to.copy_from_slice(&(digits + const { u64::from_le_bytes(*b"10=000\x01\0") }).to_le_bytes()[..7]);
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::naive;
    use proptest::prelude::*;
    use std::format;
    use std::string::ToString;
    use std::vec;
    use std::vec::Vec;

    /// One call of the encoder.
    #[derive(Clone, Debug)]
    enum Put {
        Text(Vec<u8>),
        Char(u8),
        Unsigned(u64),
        Signed(i64),
        Price(i64),
        Prepared(Vec<u8>),
        Time(u64),
    }

    fn price_text(raw: i64) -> Vec<u8> {
        let sign = if raw < 0 { "-" } else { "" };
        let (whole, fraction) = (
            raw.unsigned_abs() / 1_000_000_000,
            raw.unsigned_abs() % 1_000_000_000,
        );
        let mut text = format!("{sign}{whole}.{fraction:09}");
        while text.ends_with('0') && text.len() - text.find('.').expect("a point") > 3 {
            text.pop();
        }
        text.into_bytes()
    }

    fn value(put: &Put) -> Vec<u8> {
        match put {
            Put::Text(text) | Put::Prepared(text) => text.clone(),
            Put::Char(c) => vec![*c],
            Put::Unsigned(n) => n.to_string().into_bytes(),
            Put::Signed(n) => n.to_string().into_bytes(),
            Put::Price(raw) => price_text(*raw),
            Put::Time(ns) => Stamp::new(Default::default()).format(Nanos(*ns)).to_vec(),
        }
    }

    fn put(e: &mut Encoder<'_>, tag: u32, what: &Put) {
        match what {
            Put::Text(text) => e.text(tag, text),
            Put::Char(c) => e.char(tag, *c),
            Put::Unsigned(n) => e.unsigned(tag, *n),
            Put::Signed(n) => e.signed(tag, *n),
            Put::Price(raw) => e.price(tag, Price::from_raw(*raw)),
            Put::Prepared(text) => e.prepared(&Prepared::new(&[(tag, text)]).expect("short enough")),
            Put::Time(ns) => e.timestamp(tag, &mut Stamp::new(Default::default()), Nanos(*ns)),
        }
    }

    fn puts() -> impl Strategy<Value = Put> {
        let text = |max| prop::collection::vec(b' '..=b'~', 1..max);
        let scaled = (any::<i64>(), 0u32..19)
            .prop_map(|(n, zeros)| n / 10i64.pow(zeros) * 10i64.pow(zeros.min(9)).min(1));
        prop_oneof![
            text(40).prop_map(Put::Text),
            (b' '..=b'~').prop_map(Put::Char),
            (any::<u64>(), 0u32..64).prop_map(|(n, shift)| Put::Unsigned(n >> shift)),
            (any::<i64>(), 0u32..64).prop_map(|(n, shift)| Put::Signed(n >> shift)),
            scaled.prop_map(Put::Price),
            (0i64..1_000_000_000, 0u32..10).prop_map(|(n, p)| Put::Price(n.saturating_mul(10i64.pow(p)))),
            text(40).prop_map(Put::Prepared),
            (0u64..4_000_000_000_000_000_000).prop_map(Put::Time),
        ]
    }

    proptest! {
        #[test]
        fn messages_are_those_of_the_naive_codec_in_every_buffer_that_holds_them(
            fields in prop::collection::vec((prop_oneof![1u32..100, 1u32..10_000_000, 11u32..1000], puts()), 0..20),
        ) {
            let mut plain = vec![(35, b"D".to_vec())];
            plain.extend(fields.iter().map(|(tag, what)| (*tag, value(what))));
            let expected = naive::encode(&plain);
            let mut buf = vec![b'x'; expected.len() + 5];
            // The head is five bytes longer than the least, of which BodyLength takes some.
            let digits = expected[12..].iter().take_while(|b| b.is_ascii_digit()).count();
            for room in [expected.len() + 4 - digits, expected.len() + 5 - digits, expected.len() + 5] {
                let mut e = Encoder::new(&mut buf[..room], Version::Fix44);
                e.text(35, b"D");
                fields.iter().for_each(|(tag, what)| put(&mut e, *tag, what));
                let fits = room >= expected.len() + 5 - digits;
                prop_assert_eq!(e.finish(), fits.then_some(&expected[..]).ok_or(NotEncodable));
            }
        }

        #[test]
        fn texts_with_a_separator_are_refused(mut text in prop::collection::vec(b' '..=b'~', 1..40), at in any::<prop::sample::Index>()) {
            let mut buf = [0; 256];
            let encodes = |text: &[u8], buf: &mut [u8]| {
                let mut e = Encoder::new(buf, Version::Fix50Sp2);
                e.text(35, b"D");
                e.text(58, text);
                e.finish().is_ok()
            };
            prop_assert!(encodes(&text, &mut buf));
            *at.get_mut(&mut text) = SOH;
            prop_assert!(!encodes(&text, &mut buf));
        }
    }

    #[test]
    fn what_is_empty_is_refused_unless_copied_and_every_version_has_its_head() {
        for version in Version::ALL {
            let mut buf = [0; 64];
            let mut e = Encoder::new(&mut buf, version);
            e.text(35, b"0");
            e.copy(112, b"");
            e.text_if(58, b"");
            let head = [b"8=", version.begin_string(), b"\x019=10\x0135=0\x01112=\x0110="].concat();
            assert!(e.finish().is_ok_and(|m| m.starts_with(&head)), "{version:?}");
            let mut e = Encoder::new(&mut buf, version);
            e.text(35, b"");
            assert_eq!(e.finish(), Err(NotEncodable));
        }
        assert!(Prepared::new(&[(49, &[b'x'; 61])]).is_none() && Prepared::new(&[(49, b"")]).is_none());
    }
}
