//! Printable ASCII, eight bytes at a time: texts come with every message, and nobody can foresee how long the
//! next one is, so that a loop over their bytes ends where no processor expects it.

/// A text of up to `N` bytes with zeros behind it; `None` if it is longer, or if a byte of it is not
/// printable ASCII (0x20 to 0x7e).
#[inline]
pub const fn printable<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() > N {
        return None;
    }
    let mut bytes = [0; N];
    let (mut at, mut wrong) = (0, 0);
    while let Some(word) = text.split_at(at).1.first_chunk::<8>() {
        wrong |= unprintable(u64::from_le_bytes(*word), u64::MAX);
        bytes.split_at_mut(at).1.split_at_mut(8).0.copy_from_slice(word);
        at += 8;
    }
    match (text.last_chunk::<8>(), bytes.first_chunk_mut::<8>()) {
        // What is left of a longer text ends a word whose beginning was looked at already.
        (Some(word), _) => {
            wrong |= unprintable(u64::from_le_bytes(*word), u64::MAX);
            let end = bytes.split_at_mut(text.len() - 8).1;
            end.split_at_mut(8).0.copy_from_slice(word);
        }
        (None, Some(to)) => {
            let word = short_word(text);
            wrong |= unprintable(word, !(u64::MAX << (8 * text.len())));
            *to = word.to_le_bytes();
        }
        (None, None) => {
            wrong |= unprintable(short_word(text), !(u64::MAX << (8 * text.len())));
            bytes.split_at_mut(text.len()).0.copy_from_slice(text);
        }
    }
    match wrong {
        0 => Some(bytes),
        _ => None,
    }
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
        fn check<const N: usize>(text: &[u8]) {
            let plain = text.len() <= N && text.iter().all(|b| (b' '..=b'~').contains(b));
            let mut padded = [0; 40];
            padded[..text.len()].copy_from_slice(text);
            let expected = plain.then_some(&padded[..N]);
            assert_eq!(
                printable::<N>(text).as_ref().map(|bytes| &bytes[..]),
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
                    check::<3>(text);
                    check::<7>(text);
                    check::<8>(text);
                    check::<23>(text);
                    check::<24>(text);
                    check::<31>(text);
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
