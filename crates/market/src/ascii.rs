//! Printable ASCII, eight bytes at a time: texts come with every message, and nobody can foresee how long the
//! next one is, so that a loop over their bytes ends where no processor expects it.

/// A text of up to `8 * W - 1` bytes as words, its first byte the lowest of the first word: zeros behind it,
/// and its length in the last byte; `None` if it is longer, or if a byte of it is not printable ASCII (0x20
/// to 0x7e). `W` is 1 to 32.
///
/// Each word is made as a whole: a text is moved on at once, and what was written in parts that overlap
/// cannot be read again until all of them are in the cache.
#[inline]
pub const fn printable<const W: usize>(text: &[u8]) -> Option<[u64; W]> {
    const { assert!(0 < W && W <= 32, "a length is one byte") };
    let len = text.len();
    if len >= 8 * W {
        return None;
    }
    let (whole, rest) = text.as_chunks::<8>();
    // What is left of a longer text is the end of its last eight bytes.
    let last = match text.last_chunk::<8>() {
        Some(word) => u64::from_le_bytes(*word).unbounded_shr(64 - 8 * rest.len() as u32),
        None => short_word(rest),
    };
    let mut wrong = unprintable(last, !(u64::MAX << (8 * rest.len())));
    // As often for every text, so that no word has to be looked for in memory.
    let (mut words, mut at) = ([0; W], 0);
    while at < W {
        if at < whole.len() {
            words[at] = u64::from_le_bytes(whole[at]);
            wrong |= unprintable(words[at], u64::MAX);
        } else if at == whole.len() {
            words[at] = last;
        }
        at += 1;
    }
    words[W - 1] |= (len as u64) << 56;
    match wrong {
        0 => Some(words),
        _ => None,
    }
}

/// Words as the bytes that they are made of.
#[inline(always)]
pub const fn bytes_of<const W: usize>(words: [u64; W]) -> [[u8; 8]; W] {
    let (mut bytes, mut at) = ([[0; 8]; W], 0);
    while at < W {
        bytes[at] = words[at].to_le_bytes();
        at += 1;
    }
    bytes
}

/// 0 if the lowest bytes of a word, those that `keep` has, are printable ASCII.
#[inline(always)]
pub const fn unprintable(word: u64, keep: u64) -> u64 {
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    // 0x20 to 0x7e: the eighth bit is not set, neither by adding 1 nor by taking 0x20 away. The lowest byte
    // for which it is has nothing carried to it, and what is not kept is above it.
    let added = word.wrapping_add(u64::from_le_bytes([1; 8]));
    let taken = word.wrapping_sub(u64::from_le_bytes([b' '; 8]));
    (word | added | taken) & keep & HIGH
}

/// Up to seven bytes as the lowest of a word, the first one lowest; 0 for more.
#[inline(always)]
pub const fn short_word(text: &[u8]) -> u64 {
    let len = text.len();
    match (text.first_chunk::<4>(), text.last_chunk::<4>(), text) {
        (Some(first), Some(last), _) if len < 8 => {
            u32::from_le_bytes(*first) as u64 | (u32::from_le_bytes(*last) as u64) << (8 * (len - 4))
        }
        // Two or three: the one in the middle is the first or the second.
        (None, _, &[a, .., b]) => {
            let middle = text[len / 2] as u64;
            a as u64 | middle << (8 * (len / 2)) | (b as u64) << (8 * (len - 1))
        }
        (_, _, &[a]) => a as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_if_every_byte_is_printable_wherever_one_is_that_is_not() {
        fn check<const W: usize>(text: &[u8]) {
            let plain = text.len() < 8 * W && text.iter().all(|b| (b' '..=b'~').contains(b));
            let mut padded = [0; 40];
            padded[..text.len()].copy_from_slice(text);
            padded[8 * W - 1] = text.len() as u8;
            let expected = plain.then_some(&padded[..8 * W]);
            let made = printable::<W>(text).map(bytes_of);
            assert_eq!(
                made.as_ref().map(|made| made.as_flattened()),
                expected,
                "{text:?}"
            );
        }
        let letters: [u8; 32] = core::array::from_fn(|i| [b' ', b'~', b'A', b'0'][i % 4]);
        for len in 0..=letters.len() {
            for at in 0..len.max(1) {
                for byte in 0..=u8::MAX {
                    let mut text = letters;
                    text[at] = byte;
                    let text = &text[..len];
                    check::<1>(text);
                    check::<2>(text);
                    check::<3>(text);
                    check::<4>(text);
                    check::<5>(text);
                }
            }
        }
    }

    #[test]
    fn up_to_seven_bytes_are_a_word() {
        let text = b"abcdefgh";
        for len in 0..8 {
            let mut word = [0; 8];
            word[..len].copy_from_slice(&text[..len]);
            assert_eq!(short_word(&text[..len]), u64::from_le_bytes(word));
        }
        assert_eq!(short_word(text), 0);
    }
}
