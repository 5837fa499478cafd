//! Decimal digits eight at a time, within 64-bit words.
//!
//! Eight ASCII digits in memory order are one little-endian word; both directions are three multiplications.
//! The plain loops at the end of the file are the oracle and serve what is longer.

use crate::scan;

pub(crate) const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// Eight digits of `n` (below 10^8), most significant first in memory.
#[inline]
pub(crate) const fn digits8(n: u32) -> u64 {
    let n = n as u64;
    let halves = (n / 10_000) | ((n % 10_000) << 32);
    // x * 10486 >> 20 is x / 100 for x < 10_000; x * 103 >> 10 is x / 10 for x < 100.
    let hundreds = (halves * 10_486) >> 20 & 0x7f_0000_007f;
    let pairs = hundreds | (halves - 100 * hundreds) << 16;
    let tens = (pairs * 103) >> 10 & 0x000f_000f_000f_000f;
    (tens | (pairs - 10 * tens) << 8) + ZEROS
}

pub(crate) const E8: u64 = 100_000_000;

/// A number below 10^8 without leading zeros, and how many digits it has.
#[inline]
pub(crate) const fn short_number(value: u32) -> (u64, usize) {
    let digits = digits8(value);
    let leading = (digits ^ ZEROS | 1 << 56).trailing_zeros() & !7;
    (digits >> leading, 8 - leading as usize / 8)
}

/// The value of eight ASCII digits, `None` if one is not a digit.
#[inline(always)]
pub(crate) const fn value8(word: u64) -> Option<u64> {
    value_of(word ^ ZEROS)
}

/// The value of eight digits, each a byte of 0 to 9; `None` if one is more.
#[inline(always)]
pub(crate) const fn value_of(v: u64) -> Option<u64> {
    // What is not above 0x7f carries nowhere; what is has the top bit itself.
    if (v.wrapping_add(0x7676_7676_7676_7676) | v) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let v = v.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let v = v.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    Some(v.wrapping_mul(10_000 << 32 | 1) >> 32)
}

/// The sum of the eight bytes modulo 256: what they add to a checksum.
#[inline]
pub(crate) const fn byte_sum(word: u64) -> u8 {
    // Carries between lanes are multiples of 256 of the lane above; only the top lane is used.
    let even = word & 0x00ff_00ff_00ff_00ff;
    let odd = word >> 8 & 0x00ff_00ff_00ff_00ff;
    ((even + odd).wrapping_mul(0x0001_0001_0001_0001) >> 48) as u8
}

/// A multiple of ten to the `POWER` over that. Of every other number, and of a negative one's bits, at least
/// 2^63 over that, which no positive number of 63 bits comes to.
///
/// The power of ten is 2^n times 5^n: a multiple of it, times the inverse of 5^n modulo 2^64, rotated by n,
/// is the quotient (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", section
/// 9).
#[inline(always)]
pub(crate) const fn over_power_of_ten<const POWER: u32>(n: u64) -> u64 {
    n.wrapping_mul(const { inverse(5_u64.pow(POWER)) })
        .rotate_right(POWER)
}

/// What an odd number times itself makes 1 of, modulo 2^64.
const fn inverse(odd: u64) -> u64 {
    // Right in 3 bits, and in twice as many after each step (Newton).
    let (mut x, mut step) = (odd, 0);
    while step < 5 {
        x = x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}

/// The sum of bytes modulo 256: 64 at a time, then 8, then what is left of the last 8.
#[inline]
pub(crate) fn sum_of(bytes: &[u8]) -> u8 {
    let (blocks, rest) = bytes.as_chunks::<64>();
    let mut sum = scan::sum(blocks) as u8;
    let (words, last) = rest.as_chunks::<8>();
    for word in words {
        sum = sum.wrapping_add(byte_sum(u64::from_le_bytes(*word)));
    }
    let left = match bytes.last_chunk::<8>() {
        Some(word) => byte_sum(u64::from_le_bytes(*word).unbounded_shr(64 - 8 * last.len() as u32)),
        None => last.iter().fold(0u8, |sum, &b| sum.wrapping_add(b)),
    };
    sum.wrapping_add(left)
}

/// Eight bytes at an offset as a little-endian word.
#[inline]
pub(crate) fn load8(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk::<8>()
        .map(|eight| u64::from_le_bytes(*eight))
}

/// The last `len` (1 to 8) bytes before `end` right-aligned in a word, each less `'0'` as by XOR: of a digit
/// its value. What is in front is zeros. Needs eight bytes before `end`; every value in a message has them,
/// since the message begins with `8=FIX...`.
#[inline(always)]
pub(crate) fn digits_before(bytes: &[u8], end: usize, len: usize) -> Option<u64> {
    debug_assert!((1..=8).contains(&len));
    let word = u64::from_le_bytes(*bytes.get(end.checked_sub(8)?..end)?.first_chunk()?);
    let front = 64 - 8 * len as u32;
    Some((word ^ ZEROS) >> (front & 63) << (front & 63))
}

/// The unsigned number in `bytes[start..end]`; `None` if empty, not digits only, or beyond 64 bits.
#[inline]
pub(crate) fn parse_unsigned(bytes: &[u8], start: usize, end: usize) -> Option<u64> {
    let len = end.wrapping_sub(start);
    if len.wrapping_sub(1) < 8 && end >= 8 {
        // The last bytes of the word, and nothing in front of them.
        let word = u64::from_le_bytes(*bytes.get(end - 8..end)?.first_chunk()?);
        let front = 64 - 8 * len as u32;
        return value_of((word ^ ZEROS) >> (front & 63) << (front & 63));
    }
    parse_long(bytes, start, end)
}

#[inline(never)]
fn parse_long(bytes: &[u8], start: usize, end: usize) -> Option<u64> {
    match end.checked_sub(start)? {
        0 => None,
        9..=16 => {
            let high = parse_unsigned(bytes, start, end - 8)?;
            Some(high * 100_000_000 + value8(load8(bytes, end - 8)?)?)
        }
        17..=20 => {
            let high = parse_unsigned(bytes, start, end - 16)?;
            let middle = value8(load8(bytes, end - 16)?)?;
            let low = middle * 100_000_000 + value8(load8(bytes, end - 8)?)?;
            high.checked_mul(10_000_000_000_000_000)?.checked_add(low)
        }
        _ => parse_plain(bytes.get(start..end)?),
    }
}

/// The number a text spells, one digit at a time.
pub(crate) fn parse_plain(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |n, &b| {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            None
        } else {
            n.checked_mul(10)?.checked_add(digit as u64)
        }
    })
}

/// The decimal digits of `n` with zeros behind them, the first one lowest in the first word, and how many
/// they are.
#[inline]
pub(crate) const fn decimal(n: u64) -> ([u64; 3], usize) {
    let (high, low) = (n / E8, (n % E8) as u32);
    if high == 0 {
        let (first, width) = short_number(low);
        return ([first, 0, 0], width);
    }
    if high < E8 {
        let (first, width) = short_number(high as u32);
        let [first, second] = joined(first, width, digits8(low));
        return ([first, second, 0], width + 8);
    }
    let (first, width) = short_number((high / E8) as u32);
    let [first, second] = joined(first, width, digits8((high % E8) as u32));
    let [second, third] = joined(second, width, digits8(low));
    ([first, second, third], width + 16)
}

/// Eight bytes behind the lowest `width` (1 to 8) of a word, the others of which are zero.
#[inline(always)]
const fn joined(word: u64, width: usize, behind: u64) -> [u64; 2] {
    let bits = 8 * width as u32;
    [word | behind.unbounded_shl(bits), behind >> (64 - bits)]
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn eight_digits_agree_with_formatting_and_with_the_plain_parser() {
        for n in (0..100_000_000u32)
            .step_by(7_919)
            .chain([0, 9, 99, 9_999, 10_000, 99_999_999])
        {
            let text = format!("{n:08}");
            assert_eq!(digits8(n).to_le_bytes(), text.as_bytes());
            assert_eq!(value8(digits8(n)), Some(n as u64));
            let sum = text.bytes().fold(0u8, u8::wrapping_add);
            assert_eq!(byte_sum(digits8(n)), sum);
        }
        assert_eq!(byte_sum(u64::MAX), (255u32 * 8) as u8);
    }

    #[test]
    fn numbers_are_written_as_they_are_formatted() {
        let powers = (0..20).map(|power| 10_u64.pow(power));
        let edges = powers.flat_map(|power| [power - 1, power, power + 1, power / 2 * 3]);
        for n in edges.chain([u64::MAX - 1, u64::MAX]) {
            let (words, len) = decimal(n);
            let text = words.map(u64::to_le_bytes);
            let text = text.as_flattened();
            assert_eq!(text[..len], *format!("{n}").as_bytes());
            assert!(text[len..].iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn only_multiples_of_a_power_of_ten_have_a_quotient() {
        fn check<const POWER: u32>(n: i64) {
            let (power, quotient) = (10_i64.pow(POWER), over_power_of_ten::<POWER>(n as u64));
            match n >= 0 && n % power == 0 {
                true => assert_eq!(quotient, (n / power) as u64, "{n} over 10^{POWER}"),
                false => assert!(quotient >= (1 << 63) / power as u64, "{n} over 10^{POWER}"),
            }
        }
        let edges = [
            0,
            1,
            9,
            10,
            99_999,
            1_000_000_000,
            99_999_999_999_999_990,
            i64::MAX,
            i64::MIN,
        ];
        let all = (1..1_000).map(|n: i64| n.wrapping_mul(9_223_372_036_854_775_783));
        for n in edges.into_iter().chain(all) {
            for n in [
                n,
                n.wrapping_neg(),
                n.wrapping_add(1),
                n / 10_000_000 * 10_000_000,
            ] {
                check::<1>(n);
                check::<2>(n);
                check::<3>(n);
                check::<5>(n);
                check::<7>(n);
            }
        }
    }

    #[test]
    fn sums_agree_with_the_byte_loop() {
        let bytes: [u8; 300] = core::array::from_fn(|i| (i * 89 + 170) as u8);
        for len in 0..=300 {
            let plain = bytes[..len].iter().fold(0u8, |sum, &b| sum.wrapping_add(b));
            assert_eq!(sum_of(&bytes[..len]), plain, "{len}");
        }
    }

    #[test]
    fn a_byte_that_is_not_a_digit_is_found_at_every_position() {
        for at in 0..8 {
            for b in 0..=255u8 {
                let mut text = *b"12345678";
                text[at] = b;
                assert_eq!(value8(u64::from_le_bytes(text)), parse_plain(&text), "{text:?}");
            }
        }
    }

    #[test]
    fn numbers_of_every_length_agree_with_the_plain_parser() {
        for digits in [
            b"8=FIX.4.4\x010000018446744073709551616",
            b"8=FIX.4.4\x019999918446744073709551615",
        ] {
            for start in 10..=digits.len() {
                for end in start..=digits.len() {
                    let plain = parse_plain(&digits[start..end]);
                    assert_eq!(parse_unsigned(digits, start, end), plain, "{start}..{end}");
                }
            }
        }
    }
}
