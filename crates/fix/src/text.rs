//! Short texts of bounded length: identifiers, comp ids, reasons. `Copy`, no heap, never a field separator
//! inside.

use core::fmt;
use tickwire_market::{ClientOrderId, ascii};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader};

/// Up to `N` bytes of printable ASCII, not padded. `N` is at most 255.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    len: u8,
}

/// ClOrdID, OrigClOrdID, OrderID, ExecID: up to 23 bytes (a 64-bit number has at most 20 digits).
pub type Id = Text<23>;
/// SenderCompID or TargetCompID: up to 31 bytes.
pub type CompId = Text<31>;
/// Text (58): what exceeds 63 bytes is cut on receipt.
pub type Reason = Text<63>;
/// MsgType (35) as it appears in RefMsgType (372).
pub type MsgType = Text<7>;

impl<const N: usize> Text<N> {
    /// The empty text.
    pub const EMPTY: Self = Text {
        bytes: [0; N],
        len: 0,
    };

    /// A text, `None` if it is longer than `N` or has a byte that is not printable ASCII.
    #[inline]
    pub const fn new(text: &[u8]) -> Option<Self> {
        match ascii::printable(text) {
            Some(bytes) if text.len() <= 255 => Some(Text {
                bytes,
                len: text.len() as u8,
            }),
            _ => None,
        }
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
        if len > N {
            return None;
        }
        let (Some(text), Some(keep)) = (
            bytes.get(start..start + 8 * N.div_ceil(8)),
            KEEP.get(64_usize.wrapping_sub(len)..),
        ) else {
            // At the end of its message, or very long.
            *self = Text::new(bytes.get(start..end)?)?;
            return Some(());
        };
        self.len = len as u8;
        let (texts, keeps) = (text.as_chunks::<8>().0, keep.as_chunks::<8>().0);
        let (words, rest) = self.bytes.as_chunks_mut::<8>();
        let (last, mut wrong) = (words.len(), 0);
        for ((to, text), keep) in words.iter_mut().zip(texts).zip(keeps) {
            let (word, not_printable) = printable(*text, *keep);
            wrong |= not_printable;
            *to = word;
        }
        if let (false, Some(text), Some(keep)) = (rest.is_empty(), texts.get(last), keeps.get(last)) {
            let (word, not_printable) = printable(*text, *keep);
            wrong |= not_printable;
            rest.copy_from_slice(&word[..rest.len()]);
        }
        (wrong == 0).then_some(())
    }

    /// The beginning of a text, with `?` for what is not printable ASCII: for reasons meant for people.
    pub fn lossy(text: &[u8]) -> Self {
        let mut out = Self::EMPTY;
        for &b in text.iter().take(N.min(255)) {
            out.bytes[out.len as usize] = if (b' '..=b'~').contains(&b) { b } else { b'?' };
            out.len += 1;
        }
        out
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).expect("only printable ASCII is admitted")
    }

    /// Whether there is nothing in it.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
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
fn printable(text: [u8; 8], keep: [u8; 8]) -> ([u8; 8], u64) {
    let [text, keep] = [text, keep].map(u64::from_le_bytes);
    ((text & keep).to_le_bytes(), ascii::unprintable(text, keep))
}

impl Id {
    /// A number without leading zeros.
    pub fn from_number(n: u64) -> Id {
        let (text, len) = crate::number::decimal(n);
        let mut out = Id::EMPTY;
        out.bytes.copy_from_slice(&text[..23]);
        out.len = len as u8;
        out
    }

    /// The number this text spells, leading zeros allowed; `None` if it is not one of 64 bits.
    pub fn to_number(&self) -> Option<u64> {
        crate::number::parse_plain(self.as_bytes())
    }
}

impl From<ClientOrderId> for Id {
    /// Sixteen digits, as [`OrderTemplate`](crate::OrderTemplate) writes them; more where they are needed. A
    /// venue compares texts: a cancel or a question that named the order by fewer digits would be about an
    /// order that nobody knows.
    fn from(id: ClientOrderId) -> Id {
        let plain = Id::from_number(id.0);
        let Some(zeros) = 16_usize.checked_sub(plain.as_bytes().len()) else {
            return plain;
        };
        let mut padded = [b'0'; 16];
        padded[zeros..].copy_from_slice(plain.as_bytes());
        Id::new(&padded).expect("sixteen digits are an identifier")
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Formats into the text; what exceeds it is cut.
impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let more = Self::lossy(s.as_bytes());
        let more = &more.as_bytes()[..more.as_bytes().len().min(N.min(255) - self.len as usize)];
        self.bytes[self.len as usize..][..more.len()].copy_from_slice(more);
        self.len += more.len() as u8;
        Ok(())
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl<const N: usize> Persist for Text<N> {
    fn save(&self, out: &mut Bytes) {
        self.len.save(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        *self = Self::read(from)?;
        Ok(())
    }
}

impl<const N: usize> PersistValue for Text<N> {
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
        let mut bytes = [b'a'; 40];
        for len in 0..=25 {
            for at in 0..len.max(1) {
                for b in 0..=255 {
                    bytes[3 + at] = b;
                    // With as little behind it as there may be, too.
                    let read =
                        [bytes.len(), 3 + len + 8].map(|of| Id::from_message(&bytes[..of], 3, 3 + len));
                    assert_eq!(read, [Id::new(&bytes[3..3 + len]); 2], "{len} {at} {b}");
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
        assert_eq!(Text::<3>::new(b"ABC").unwrap().as_str(), "ABC");
        assert_eq!(Text::<3>::new(b"ABCD"), None);
        assert_eq!(Text::<3>::new(b"A\x01"), None);
        assert_eq!(Text::<3>::lossy(b"a\x01cd").as_str(), "a?c");
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
        assert_eq!(Id::new(b"18446744073709551616").unwrap().to_number(), None);
    }
}
