//! From fields to bytes, into memory of the caller. BodyLength and CheckSum are computed at the end; BodyLength has no
//! leading zeros, so the message may begin a few bytes into the buffer.

use crate::number::decimal;
use crate::scan::SOH;
use crate::version::Version;
use tickwire_market::Price;

/// The message did not fit the buffer, or a value was empty or held a separator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotEncodable;

/// `8=|9=`, five digits of BodyLength and its separator, beside BeginString.
const HEAD: usize = 5 + 5 + 1;

/// Writes one message: fields in the order of the calls, then [`Encoder::finish`].
#[derive(Debug)]
pub struct Encoder<'b> {
    buf: &'b mut [u8],
    begin_string: &'static [u8],
    /// Where MsgType begins.
    body: usize,
    at: usize,
    failed: bool,
}

impl<'b> Encoder<'b> {
    /// Begins a message. The first field must be MsgType.
    pub fn new(buf: &'b mut [u8], version: Version) -> Encoder<'b> {
        let begin_string = version.begin_string();
        let body = HEAD + begin_string.len();
        Encoder {
            failed: buf.len() < body,
            buf,
            begin_string,
            body,
            at: body,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        match self.buf.get_mut(self.at..self.at + bytes.len()) {
            Some(to) => {
                to.copy_from_slice(bytes);
                self.at += bytes.len();
            }
            None => self.failed = true,
        }
    }

    fn tag(&mut self, tag: u32) {
        let (digits, start) = decimal(tag as u64);
        self.push(&digits[start..]);
        self.push(b"=");
    }

    /// Text; must not be empty.
    pub fn text(&mut self, tag: u32, value: &[u8]) {
        self.failed |= value.is_empty() || value.contains(&SOH);
        self.tag(tag);
        self.push(value);
        self.push(&[SOH]);
    }

    /// A value of a received message as it is, even an empty one.
    pub fn copy(&mut self, tag: u32, value: &[u8]) {
        self.tag(tag);
        self.push(value);
        self.push(&[SOH]);
    }

    /// Text, left out when empty.
    pub fn text_if(&mut self, tag: u32, value: &[u8]) {
        if !value.is_empty() {
            self.text(tag, value);
        }
    }

    /// A single character.
    pub fn char(&mut self, tag: u32, value: u8) {
        self.text(tag, &[value]);
    }

    /// An unsigned number.
    pub fn unsigned(&mut self, tag: u32, value: u64) {
        let (digits, start) = decimal(value);
        self.text(tag, &digits[start..]);
    }

    /// A number that may be negative.
    pub fn signed(&mut self, tag: u32, value: i64) {
        let (mut digits, mut start) = decimal(value.unsigned_abs());
        if value < 0 {
            start -= 1; // 64 bits have at most 19 digits, and there is room for 20
            digits[start] = b'-';
        }
        self.text(tag, &digits[start..]);
    }

    /// A price: at least two decimals, as many as make it exact.
    pub fn price(&mut self, tag: u32, value: Price) {
        let (whole, fraction) = (
            value.raw().unsigned_abs() / 1_000_000_000,
            value.raw().unsigned_abs() % 1_000_000_000,
        );
        let (digits, start) = decimal(whole);
        let (mut decimals, _) = decimal(fraction);
        let mut end = 20;
        while end > 13 && decimals[end - 1] == b'0' {
            end -= 1;
        }
        decimals[10] = b'.'; // the nine decimals are at 11..20
        self.tag(tag);
        if value.raw() < 0 {
            self.push(b"-");
        }
        self.push(&digits[start..]);
        self.push(&decimals[10..end]);
        self.push(&[SOH]);
    }

    /// Fields already encoded, each with its separator: copied as they are.
    pub(crate) fn raw(&mut self, fields: &[u8]) {
        self.push(fields);
    }

    /// Puts BeginString, BodyLength and CheckSum; the whole message.
    pub fn finish(self) -> Result<&'b [u8], NotEncodable> {
        let (length, digits_at) = decimal((self.at - self.body) as u64);
        let digits = &length[digits_at..];
        if self.failed || digits.len() > 5 || self.buf.len() < self.at + 7 {
            return Err(NotEncodable);
        }
        let start = 5 - digits.len();
        let head = &mut self.buf[start..self.body];
        let mut at = 0;
        for part in [b"8=", self.begin_string, &[SOH, b'9', b'='], digits, &[SOH]] {
            head[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let sum = self.buf[start..self.at]
            .iter()
            .fold(0u32, |sum, &b| sum + b as u32);
        put_check_sum(&mut self.buf[self.at..self.at + 7], sum as u8);
        Ok(&self.buf[start..self.at + 7])
    }
}

/// `10=nnn` and its separator into seven bytes.
#[inline]
pub(crate) fn put_check_sum(to: &mut [u8], sum: u8) {
    to.copy_from_slice(&[
        b'1',
        b'0',
        b'=',
        b'0' + sum / 100,
        b'0' + sum / 10 % 10,
        b'0' + sum % 10,
        SOH,
    ]);
}
