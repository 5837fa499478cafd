//! Short texts of bounded length: identifiers, comp ids, reasons. `Copy`, no heap, never a field separator
//! inside.

use crate::number::{E8, ZEROS, decimal, digits8, parse_plain, value_of};
use core::fmt;
use tickwire_market::{ClientOrderId, ascii};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader};

/// Up to `8 * W - 1` bytes of printable ASCII, not padded, in `W` words; `W` is at most 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
// In words, so that it is moved in words: as bytes beside a length it was read again by words that overlap.
#[repr(C, align(8))]
pub struct Text<const W: usize> {
    /// The text, zeros, and its length as the last byte.
    bytes: [[u8; 8]; W],
}

/// ClOrdID, OrigClOrdID, OrderID, ExecID: up to 23 bytes (a 64-bit number has at most 20 digits).
pub type Id = Text<3>;
/// SenderCompID or TargetCompID: up to 31 bytes.
pub type CompId = Text<4>;
/// Text (58): what exceeds 63 bytes is cut on receipt.
pub type Reason = Text<8>;
/// MsgType (35) as it appears in RefMsgType (372).
pub type MsgType = Text<1>;

const _: () = assert!(size_of::<Id>() == 24 && align_of::<Id>() == 8, "whole words");

impl<const W: usize> Text<W> {
    /// The empty text.
    pub const EMPTY: Self = Text { bytes: [[0; 8]; W] };

    /// The bytes that a text may have: the last one is its length.
    const ROOM: usize = 8 * W - 1;

    /// A text, `None` if it is longer than it may be or has a byte that is not printable ASCII.
    #[inline]
    pub const fn new(text: &[u8]) -> Option<Self> {
        match ascii::printable(text) {
            Some(words) => Some(Text {
                bytes: ascii::bytes_of(words),
            }),
            None => None,
        }
    }

    #[inline(always)]
    const fn len(&self) -> usize {
        self.bytes[W - 1][7] as usize
    }

    /// [`Text::new`] of `bytes[start..end]`, a word at a time.
    #[inline(always)]
    pub(crate) fn from_message(bytes: &[u8], start: usize, end: usize) -> Option<Self> {
        let mut out = Self::EMPTY;
        out.read_message(bytes, start, end)?;
        Some(out)
    }

    /// The same, put down in place of an empty text; void if it is `None`.
    #[inline(always)]
    pub(crate) fn read_message(&mut self, bytes: &[u8], start: usize, end: usize) -> Option<()> {
        /// 64 bytes that are kept and as many that are not.
        const KEEP: [u8; 128] = {
            let mut keep = [0; 128];
            let mut i = 0;
            while i < 64 {
                keep[i] = 0xff;
                i += 1;
            }
            keep
        };
        let len = end.checked_sub(start)?;
        if len > Self::ROOM {
            return None;
        }
        let (Some(text), Some(keep), true) = (
            bytes.get(start..start + 8 * W),
            KEEP.get(64_usize.wrapping_sub(len)..),
            W <= 8,
        ) else {
            // At the end of its message, or with room for very long ones.
            *self = Text::new(bytes.get(start..end)?)?;
            return Some(());
        };
        let (texts, keeps) = (text.as_chunks::<8>().0, keep.as_chunks::<8>().0);
        let mut wrong = 0;
        for (at, ((to, text), keep)) in self.bytes.iter_mut().zip(texts).zip(keeps).enumerate() {
            let (mut word, not_printable) = printable(*text, *keep);
            wrong |= not_printable;
            if at == W - 1 {
                word |= (len as u64) << 56;
            }
            *to = word.to_le_bytes();
        }
        (wrong == 0).then_some(())
    }

    /// The beginning of a text, with `?` for what is not printable ASCII: for reasons meant for people.
    pub fn lossy(text: &[u8]) -> Self {
        let mut out = Self::EMPTY;
        let text = &text[..text.len().min(Self::ROOM)];
        for (to, &b) in out.bytes.as_flattened_mut().iter_mut().zip(text) {
            *to = if (b' '..=b'~').contains(&b) { b } else { b'?' };
        }
        out.bytes[W - 1][7] = text.len() as u8;
        out
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes.as_flattened()[..self.len()]
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).expect("only printable ASCII is admitted")
    }

    /// Whether there is nothing in it.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether two texts are the same; up to sixteen bytes are compared by their first and last words.
#[inline(always)]
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    #[inline(always)]
    fn ends<const N: usize>(text: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
        text.first_chunk().zip(text.last_chunk())
    }
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        4..8 => ends::<4>(a) == ends::<4>(b),
        8..=16 => ends::<8>(a) == ends::<8>(b),
        _ => a == b,
    }
}

/// Of eight bytes those that are kept, the others zero; and 0 if they are printable ASCII.
#[inline(always)]
fn printable(text: [u8; 8], keep: [u8; 8]) -> (u64, u64) {
    let [text, keep] = [text, keep].map(u64::from_le_bytes);
    (text & keep, ascii::unprintable(text, keep))
}

impl Id {
    /// A number without leading zeros.
    pub fn from_number(n: u64) -> Id {
        let (mut words, len) = decimal(n);
        words[2] |= (len as u64) << 56;
        Text {
            bytes: ascii::bytes_of(words),
        }
    }

    /// The number this text spells, leading zeros allowed; `None` if it is not one of 64 bits.
    pub fn to_number(&self) -> Option<u64> {
        /// The first digits of a word, as many as there are of a text from there on.
        fn digits(word: [u8; 8], len: usize) -> Option<u64> {
            value_of((u64::from_le_bytes(word) ^ ZEROS) << (64 - 8 * len))
        }
        const POWERS: [u64; 9] = {
            let mut powers = [1; 9];
            let mut i = 1;
            while i < 9 {
                powers[i] = 10 * powers[i - 1];
                i += 1;
            }
            powers
        };
        let [first, second, third] = self.bytes;
        match self.len() {
            len @ 1..=8 => digits(first, len),
            len @ 9..=16 => Some(digits(first, 8)? * POWERS[len - 8] + digits(second, len - 8)?),
            len @ 17..=20 => {
                let high = digits(first, 8)? * E8 + digits(second, 8)?;
                high.checked_mul(POWERS[len - 16])?
                    .checked_add(digits(third, len - 16)?)
            }
            _ => parse_plain(self.as_bytes()),
        }
    }
}

impl From<ClientOrderId> for Id {
    /// Sixteen digits, as [`OrderTemplate`](crate::OrderTemplate) writes them; more where they are needed. A
    /// venue compares texts: a cancel or a question that named the order by fewer digits would be about an
    /// order that nobody knows.
    fn from(id: ClientOrderId) -> Id {
        if id.0 >= E8 * E8 {
            return Id::from_number(id.0);
        }
        let halves = [id.0 / E8, id.0 % E8].map(|half| digits8(half as u32));
        Text {
            bytes: ascii::bytes_of([halves[0], halves[1], 16 << 56]),
        }
    }
}

impl<const W: usize> core::hash::Hash for Text<W> {
    #[inline]
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        state.write(self.bytes.as_flattened());
    }
}

impl<const W: usize> Default for Text<W> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Formats into the text; what exceeds it is cut.
impl<const W: usize> fmt::Write for Text<W> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let more = Self::lossy(s.as_bytes());
        let len = self.len();
        let more = &more.as_bytes()[..more.len().min(Self::ROOM - len)];
        self.bytes.as_flattened_mut()[len..][..more.len()].copy_from_slice(more);
        self.bytes[W - 1][7] = (len + more.len()) as u8;
        Ok(())
    }
}

impl<const W: usize> fmt::Display for Text<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const W: usize> fmt::Debug for Text<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl<const W: usize> Persist for Text<W> {
    fn save(&self, out: &mut Bytes) {
        (self.len() as u8).save(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        *self = Self::read(from)?;
        Ok(())
    }
}

impl<const W: usize> PersistValue for Text<W> {
    fn read(from: &mut StateReader<'_>) -> Result<Self, Damaged> {
        let length = usize::from(u8::read(from)?);
        Text::new(from.take(length)?).ok_or(Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_messages_are_the_same_a_word_at_a_time() {
        let mut bytes = [b'a'; 96];
        for len in 0..=25 {
            for at in 0..len.max(1) {
                for b in 0..=255 {
                    bytes[3 + at] = b;
                    // With as little behind it as there may be, too.
                    let read =
                        [bytes.len(), 3 + len + 8].map(|of| Id::from_message(&bytes[..of], 3, 3 + len));
                    assert_eq!(read, [Id::new(&bytes[3..3 + len]); 2], "{len} {at} {b}");
                    let (read, roomy) = (
                        Text::<10>::from_message(&bytes, 3, 3 + len),
                        Text::new(&bytes[3..3 + len]),
                    );
                    assert_eq!(read, roomy, "{len} {at} {b}");
                }
                bytes[3 + at] = b'a';
            }
        }
    }

    #[test]
    fn texts_are_the_same_when_every_byte_is() {
        let text: [u8; 24] = core::array::from_fn(|i| b'a' + i as u8);
        for len in 0..=text.len() {
            for other in 0..=text.len() {
                assert_eq!(is_same(&text[..len], &text[..other]), len == other);
            }
            for at in 0..len {
                let mut other = text;
                other[at] = b'-';
                assert!(!is_same(&text[..len], &other[..len]), "{len} {at}");
            }
        }
    }

    #[test]
    fn texts_refuse_what_would_break_a_message_and_numbers_come_back() {
        assert_eq!(Text::<1>::new(b"ABCDEFG").unwrap().as_str(), "ABCDEFG");
        assert_eq!(Text::<1>::new(b"ABCDEFGH"), None);
        assert_eq!(Text::<1>::new(b"A\x01"), None);
        assert_eq!(Text::<1>::lossy(b"a\x01cdefgh").as_str(), "a?cdefg");
        assert_eq!(Id::from_number(u64::MAX).to_number(), Some(u64::MAX));
        assert_eq!(
            Id::from(ClientOrderId(42)).as_bytes(),
            b"0000000000000042",
            "as the template does"
        );
        assert_eq!(Id::from(ClientOrderId(u64::MAX)).to_number(), Some(u64::MAX));
        assert_eq!(Id::new(b"00042").unwrap().to_number(), Some(42));
        assert_eq!(Id::new(b"4x").unwrap().to_number(), None);
        assert_eq!(Id::new(b"").unwrap().to_number(), None);
        let digits = *b"98765432101234567899876";
        for (len, at) in (1..=23).flat_map(|len| (0..=len).map(move |at| (len, at))) {
            for (byte, front) in [b'/', b'0', b'9', b':', b' ', b'~']
                .into_iter()
                .zip([b'0', b'1'].repeat(3))
            {
                let mut text = digits;
                text[0] = front;
                if at < len {
                    text[at] = byte;
                }
                let id = Id::new(&text[..len]).unwrap();
                assert_eq!(id.to_number(), parse_plain(id.as_bytes()), "{id}");
            }
        }
        assert_eq!(Id::new(b"18446744073709551616").unwrap().to_number(), None);
    }
}
