//! The symbols of both tapes: eleven bytes.

/// A symbol, padded with spaces, as two words: what a filter looks up. The bytes themselves, put together in
/// memory from a shorter form, would have to be in the cache before they can be read as words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaddedSymbol {
    head: u64,
    tail: u32,
}

/// Four spaces.
const SPACES: u32 = u32::from_le_bytes(*b"    ");
/// Three spaces behind the five bytes of a short form.
const BEHIND_SHORT: u64 = u64::from_le_bytes(*b"\0\0\0\0\0   ");

impl PaddedSymbol {
    /// The symbol of a long form.
    #[inline(always)]
    pub const fn long(&[a, b, c, d, e, f, g, h, i, j, k]: &[u8; 11]) -> PaddedSymbol {
        PaddedSymbol {
            head: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            tail: u32::from_le_bytes([h, i, j, k]),
        }
    }

    /// The symbol of a short form.
    #[inline(always)]
    pub fn short(&[a, b, c, d, e]: &[u8; 5]) -> PaddedSymbol {
        PaddedSymbol {
            head: BEHIND_SHORT | u64::from(e) << 32 | u64::from(u32::from_le_bytes([a, b, c, d])),
            tail: SPACES,
        }
    }

    /// The first eight bytes, and the last four, little-endian: the eighth is in both.
    #[inline(always)]
    pub const fn words(self) -> (u64, u32) {
        (self.head, self.tail)
    }

    /// The bytes.
    pub const fn bytes(self) -> [u8; 11] {
        let [a, b, c, d, e, f, g, h] = self.head.to_le_bytes();
        let [_, i, j, k] = self.tail.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j, k]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_the_same_whichever_form_it_comes_in() {
        assert_eq!(PaddedSymbol::short(b"ABCDE"), PaddedSymbol::long(b"ABCDE      "));
        assert_eq!(PaddedSymbol::short(b"Z    "), PaddedSymbol::long(b"Z          "));
        assert_eq!(PaddedSymbol::long(b"ABCDEFGHIJK").bytes(), *b"ABCDEFGHIJK");
        assert_ne!(
            PaddedSymbol::long(b"ABCDEFGHIJK"),
            PaddedSymbol::long(b"ABCDEFGHIJL")
        );
    }
}
