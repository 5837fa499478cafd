//! Eight digits of each of several numbers, and what they add to the checksum.
//!
//! With SSE2, which every x86-64 processor has, two in one vector (`pmulhuw`, `psadbw`): 25 instructions for
//! two; elsewhere one after the other, 100. Prices of quotes, of which there are many at once, four in a
//! vector of AVX2 where the processor has it, put into their text by one instruction. All are compared with
//! each other. Why not left to the compiler: `docs/adr/0005-vectors-in-the-fix-codec.md`.

use crate::number::ZEROS;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
use crate::scan::x86::Avx2;

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) use one_by_one::digits8;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) use sse2::digits8;

/// Bytes of a text with two prices, [`BEGIN`].
pub(crate) const PRICES: usize = 32;
/// Where the prices of `132=000000.00|133=000000.00|134=` begin.
pub(crate) const BEGIN: [usize; 2] = [4, 18];

/// Where the digits of both prices go.
#[derive(Debug)]
pub(crate) struct Places {
    /// Digits before the point; as many more as make eight are behind it.
    whole: usize,
    /// By byte of the text: which of sixteen digits; with the highest bit, none.
    by_byte: [u8; PRICES],
}

impl Places {
    /// With so many digits before the point: 2, 4 or 6.
    pub(crate) const fn new(whole: usize) -> Places {
        assert!(matches!(whole, 2 | 4 | 6));
        let mut by_byte = [1 << 7; PRICES];
        let mut digit = 0;
        while digit < 16 {
            let behind_point = (digit % 8 >= whole) as usize;
            by_byte[BEGIN[digit / 8] + digit % 8 + behind_point] = digit as u8;
            digit += 1;
        }
        Places { whole, by_byte }
    }
}

/// Eight digits each of prices, and the sum of all of them, by the instructions of a processor.
pub(crate) trait PriceDigits: Copy {
    /// Sums of digits, in the lanes of a vector.
    type Sums: Copy;

    /// None yet.
    fn none(self) -> Self::Sums;

    /// The values of the digits of two times two numbers (below 10^8), most significant first in memory.
    fn of_two(self, numbers: [[u32; 2]; 2], to: [&mut [u64; 2]; 2], sums: &mut Self::Sums);

    /// Writes a text whose digits are zeros, with these digits.
    fn put(self, text: &[u8; PRICES], places: &Places, digits: &[u64; 2], out: &mut [u8; PRICES]);

    /// The sum of the values of all digits, modulo 256.
    fn total(self, sums: Self::Sums) -> u8;
}

/// A loop that is written over [`PriceDigits`]; `run` is `#[inline(always)]` in implementations.
pub(crate) trait Work {
    type Output;
    fn run(self, digits: impl PriceDigits) -> Self::Output;
}

/// The best way that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Wide(Avx2),
    Baseline,
}

impl Way {
    /// Asks the processor.
    pub(crate) fn detect() -> Way {
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(avx2) = Avx2::detect() {
            return Way::Wide(avx2);
        }
        Way::Baseline
    }

    /// Does some work in a function that is compiled for these instructions.
    #[inline(always)]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        match self {
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Way::Wide(avx2) => avx2::run(avx2, work),
            Way::Baseline => work.run(Baseline),
        }
    }
}

/// What every processor of the target has.
#[derive(Clone, Copy)]
struct Baseline;

impl PriceDigits for Baseline {
    type Sums = u8;

    #[inline(always)]
    fn none(self) -> u8 {
        0
    }

    #[inline(always)]
    fn of_two(self, numbers: [[u32; 2]; 2], to: [&mut [u64; 2]; 2], sums: &mut u8) {
        for (numbers, to) in numbers.into_iter().zip(to) {
            let (words, sum) = digits8(numbers);
            *to = words.map(|word| word ^ ZEROS);
            *sums = sums.wrapping_add(sum);
        }
    }

    #[inline(always)]
    fn put(self, text: &[u8; PRICES], places: &Places, digits: &[u64; 2], out: &mut [u8; PRICES]) {
        #[inline(always)]
        fn put<const WHOLE: usize>(digits: &[u64; 2], out: &mut [u8; PRICES]) {
            for (word, at) in digits.iter().zip(BEGIN) {
                let digits = (word ^ ZEROS).to_le_bytes();
                out[at..at + WHOLE].copy_from_slice(&digits[..WHOLE]);
                out[at + WHOLE + 1..at + 9].copy_from_slice(&digits[WHOLE..]);
            }
        }
        *out = *text;
        match places.whole {
            2 => put::<2>(digits, out),
            4 => put::<4>(digits, out),
            _ => put::<6>(digits, out),
        }
    }

    #[inline(always)]
    fn total(self, sums: u8) -> u8 {
        sums
    }
}

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

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod avx2 {
    #![allow(unsafe_code)]

    use super::{PRICES, Places, PriceDigits, Work};
    use crate::scan::x86::Avx2;
    use core::arch::x86_64::*;

    /// Does some work in a function that is compiled for AVX2.
    #[inline(always)]
    pub(super) fn run<W: Work>(avx2: Avx2, work: W) -> W::Output {
        #[target_feature(enable = "avx2,bmi1,popcnt")]
        fn compiled<W: Work>(avx2: Avx2, work: W) -> W::Output {
            work.run(avx2)
        }
        // SAFETY: the one condition for calling it is that the processor has these instructions, of which
        // `avx2` is the proof.
        unsafe { compiled(avx2, work) }
    }

    impl PriceDigits for Avx2 {
        type Sums = __m256i;

        #[inline(always)]
        fn none(self) -> __m256i {
            // SAFETY: `self` is proof of AVX2.
            unsafe { _mm256_setzero_si256() }
        }

        #[inline(always)]
        fn of_two(self, numbers: [[u32; 2]; 2], to: [&mut [u64; 2]; 2], sums: &mut __m256i) {
            /// As `sse2::digits8`, four numbers at once.
            #[inline]
            #[target_feature(enable = "avx2")]
            fn digits([[a, b], [c, d]]: [[u32; 2]; 2]) -> __m256i {
                let eights = _mm256_set_epi64x(d.into(), c.into(), b.into(), a.into());
                let high =
                    _mm256_srli_epi64::<45>(_mm256_mul_epu32(eights, _mm256_set1_epi64x(3_518_437_209)));
                let low = _mm256_sub_epi64(eights, _mm256_mul_epu32(high, _mm256_set1_epi64x(10_000)));
                let fours = _mm256_or_si256(high, _mm256_slli_epi64::<32>(low));
                let high = _mm256_srli_epi16::<4>(_mm256_mulhi_epu16(fours, _mm256_set1_epi16(10_486)));
                let low = _mm256_sub_epi16(fours, _mm256_mullo_epi16(high, _mm256_set1_epi16(100)));
                let twos = _mm256_or_si256(high, _mm256_slli_epi32::<16>(low));
                let high = _mm256_srli_epi16::<10>(_mm256_mullo_epi16(twos, _mm256_set1_epi16(103)));
                let low = _mm256_sub_epi16(twos, _mm256_mullo_epi16(high, _mm256_set1_epi16(10)));
                _mm256_or_si256(high, _mm256_slli_epi16::<8>(low))
            }
            let [first, second] = to;
            // SAFETY: `self` is proof of AVX2; 16 bytes are written at the address of each of two unique
            // references to two words of 64 bits, of any alignment.
            unsafe {
                let digits = digits(numbers);
                *sums = _mm256_add_epi64(*sums, _mm256_sad_epu8(digits, _mm256_setzero_si256()));
                _mm_storeu_si128(first.as_mut_ptr().cast(), _mm256_castsi256_si128(digits));
                _mm_storeu_si128(second.as_mut_ptr().cast(), _mm256_extracti128_si256::<1>(digits));
            }
        }

        #[inline(always)]
        fn put(self, text: &[u8; PRICES], places: &Places, digits: &[u64; 2], out: &mut [u8; PRICES]) {
            // SAFETY: `self` is proof of AVX2; 16 bytes are read and written at the addresses of references
            // to two words of 64 bits, and 32 at those of references to 32 bytes, of any alignment.
            unsafe {
                let digits = _mm256_broadcastsi128_si256(_mm_loadu_si128(digits.as_ptr().cast()));
                let placed = _mm256_shuffle_epi8(digits, _mm256_loadu_si256(places.by_byte.as_ptr().cast()));
                let text = _mm256_or_si256(placed, _mm256_loadu_si256(text.as_ptr().cast()));
                _mm256_storeu_si256(out.as_mut_ptr().cast(), text);
            }
        }

        #[inline(always)]
        fn total(self, sums: __m256i) -> u8 {
            // SAFETY: `self` is proof of AVX2.
            unsafe {
                let two = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
                _mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))) as u8
            }
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
    use super::*;
    use alloc::format;
    use alloc::string::String;

    /// Every half of eight digits, in each of its four places.
    fn pairs() -> impl Iterator<Item = [[u32; 2]; 3]> {
        let count = if cfg!(miri) { 20 } else { 10_000_u32 };
        (0..count).map(|n| {
            let far = n * 7_919 % 10_000;
            [
                [n, n * 10_000],
                [n * 10_000 + far, far],
                [far * 10_000 + n, 99_999_999 - n],
            ]
        })
    }

    #[test]
    fn numbers_at_once_are_as_one_after_the_other() {
        for pairs in pairs() {
            for numbers in pairs {
                assert_eq!(digits8(numbers), one_by_one::digits8(numbers), "{numbers:?}");
            }
            let [[a, b], [c, d], [e, f]] = pairs;
            let numbers = [a, b, c, d, e, f, d, a];
            assert_eq!(digits8(numbers), one_by_one::digits8(numbers), "{numbers:?}");
        }
    }

    /// Two texts with two prices each, and the sum of their digits' values.
    struct Texts<'a> {
        numbers: [[u32; 2]; 2],
        text: &'a [u8; PRICES],
        places: &'a Places,
    }

    impl Work for Texts<'_> {
        type Output = ([String; 2], u8);

        #[inline(always)]
        fn run(self, digits: impl PriceDigits) -> ([String; 2], u8) {
            let (mut sums, [mut one, mut other]) = (digits.none(), [[0; 2]; 2]);
            digits.of_two(self.numbers, [&mut one, &mut other], &mut sums);
            let texts = [one, other].map(|of| {
                let mut out = [0; PRICES];
                digits.put(self.text, self.places, &of, &mut out);
                String::from_utf8_lossy(&out).into_owned()
            });
            (texts, digits.total(sums))
        }
    }

    #[test]
    fn prices_in_their_text_are_what_formatting_says() {
        for pairs in pairs().step_by(7) {
            let [first, second, _] = pairs;
            for whole in [2, 4, 6] {
                let price = |n: u32| {
                    let digits = format!("{n:08}");
                    format!("{}.{}", &digits[..whole], &digits[whole..])
                };
                let said = |[bid, ask]: [u32; 2]| format!("132={}|133={}|134=", price(bid), price(ask));
                let empty = said([0, 0]);
                let texts = || Texts {
                    numbers: [first, second],
                    text: empty.as_bytes().try_into().expect("of this length"),
                    places: const { &[Places::new(2), Places::new(4), Places::new(6)] }
                        .get(whole / 2 - 1)
                        .expect("one of three"),
                };
                let all = [first, second];
                let values = all
                    .as_flattened()
                    .iter()
                    .flat_map(|n| format!("{n}").into_bytes());
                let sum = values.fold(0_u8, |sum, digit| sum.wrapping_add(digit - b'0'));
                let expected = ([said(first), said(second)], sum);
                assert_eq!(texts().run(Baseline), expected);
                assert_eq!(Way::detect().run(texts()), expected);
            }
        }
    }
}
