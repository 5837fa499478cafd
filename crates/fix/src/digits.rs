//! Eight digits of each of several numbers, and what they add to the checksum.
//!
//! With SSE2, which every x86-64 processor has, two in one vector (`pmulhuw`, `psadbw`): 25 instructions for
//! two; elsewhere one after the other, 100. Each is compared with the other. Why not left to the compiler,
//! and why not four in a vector of AVX2: `docs/adr/0005-vectors-in-the-fix-codec.md`.

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) use one_by_one::digits8;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) use sse2::digits8;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    #![allow(unsafe_code)]

    use core::arch::x86_64::*;

    /// Eight digits of each number (below 10^8), most significant first in memory; the sum of all digits as
    /// text, modulo 256. `N` is even.
    #[inline(always)]
    pub(crate) fn digits8<const N: usize>(numbers: [u32; N]) -> ([u64; N], u8) {
        const { assert!(N.is_multiple_of(2)) };
        // Not in a function that is compiled for SSE2: such a one is called, and its answer goes through
        // memory.
        // SAFETY: the one condition for these instructions is that the processor has SSE2; this module exists
        // only in builds for processors that have it.
        unsafe {
            let mut words = [0; N];
            let mut sums = _mm_setzero_si128();
            for (&[a, b], to) in numbers
                .as_chunks::<2>()
                .0
                .iter()
                .zip(words.as_chunks_mut::<2>().0)
            {
                // Each step halves the parts: of 8 digits, of 4, of 2, of 1; the higher part stays where it
                // is, the lower one goes above it. Zeros are put between the two so that the compiler knows
                // that they are there, and multiplies once.
                let eights = _mm_set_epi32(0, b as i32, 0, a as i32);
                // x * 3518437209 >> 45 is x / 10^4 for any 32 bits.
                let high = _mm_srli_epi64::<45>(_mm_mul_epu32(eights, _mm_set1_epi64x(3_518_437_209)));
                let low = _mm_sub_epi64(eights, _mm_mul_epu32(high, _mm_set1_epi64x(10_000)));
                let fours = _mm_or_si128(high, _mm_slli_epi64::<32>(low));
                // x * 10486 >> 20 is x / 100 for x < 10^4.
                let high = _mm_srli_epi16::<4>(_mm_mulhi_epu16(fours, _mm_set1_epi16(10_486)));
                let low = _mm_sub_epi16(fours, _mm_mullo_epi16(high, _mm_set1_epi16(100)));
                let twos = _mm_or_si128(high, _mm_slli_epi32::<16>(low));
                // x * 103 >> 10 is x / 10 for x < 100.
                let high = _mm_srli_epi16::<10>(_mm_mullo_epi16(twos, _mm_set1_epi16(103)));
                let low = _mm_sub_epi16(twos, _mm_mullo_epi16(high, _mm_set1_epi16(10)));
                let digits = _mm_or_si128(high, _mm_slli_epi16::<8>(low));
                sums = _mm_add_epi64(sums, _mm_sad_epu8(digits, _mm_setzero_si128()));
                let text = _mm_add_epi8(digits, _mm_set1_epi8(b'0' as i8));
                *to = [
                    _mm_cvtsi128_si64(text) as u64,
                    _mm_cvtsi128_si64(_mm_unpackhi_epi64(text, text)) as u64,
                ];
            }
            let sum = _mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums)));
            // Sixteen times '0' is a multiple of 256.
            (words, sum as u8)
        }
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod one_by_one {
    use crate::number::byte_sum;

    /// Eight digits of each number (below 10^8), most significant first in memory; the sum of all digits as
    /// text, modulo 256.
    #[inline]
    pub(crate) fn digits8<const N: usize>(numbers: [u32; N]) -> ([u64; N], u8) {
        let words = numbers.map(crate::number::digits8);
        let sum = words
            .iter()
            .fold(0, |sum: u8, word| sum.wrapping_add(byte_sum(*word)));
        (words, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::{digits8, one_by_one};

    /// Every half of eight digits, in each of its four places.
    #[test]
    fn numbers_at_once_are_as_one_after_the_other() {
        let count = if cfg!(miri) { 20 } else { 10_000_u32 };
        for n in 0..count {
            let far = n * 7_919 % 10_000;
            let pairs = [
                [n, n * 10_000],
                [n * 10_000 + far, far],
                [far * 10_000 + n, 99_999_999 - n],
            ];
            for numbers in pairs {
                assert_eq!(digits8(numbers), one_by_one::digits8(numbers), "{numbers:?}");
            }
            let [[a, b], [c, d], [e, f]] = pairs;
            let numbers = [a, b, c, d, e, f, d, a];
            assert_eq!(digits8(numbers), one_by_one::digits8(numbers), "{numbers:?}");
        }
    }
}
