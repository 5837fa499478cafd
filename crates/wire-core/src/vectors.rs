//! Two loops over all bytes of a datagram, in vectors: their sum, as checksums have it, and sums of products
//! for hashes.
//!
//! With SSE2, which every x86-64 processor has. Other processors get loops, and both are compared. What
//! compilers make of the loops, and what that costs: `docs/adr/0005-vectors-in-the-fix-codec.md`.

pub use of_target::{Products, sum};

/// Sixteen bytes.
type Block = [u8; 16];

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod of_target {
    #![allow(unsafe_code)]

    use super::Block;
    use core::arch::x86_64::*;

    /// The sum of bytes.
    #[inline]
    pub fn sum(bytes: &[u8]) -> u64 {
        let Some(last) = bytes.last_chunk() else {
            return super::by_bytes(bytes);
        };
        let (blocks, rest) = bytes.as_chunks::<16>();
        let (pairs, odd) = blocks.as_chunks::<2>();
        // Those that fill no block are the last of the last sixteen.
        let places = 8 * (16 - rest.len() as u32);
        let left = u128::from_le_bytes(*last).checked_shr(places).unwrap_or(0);
        // SAFETY: the one condition for these instructions is that the processor has SSE2; this module exists
        // only in builds for processors that have it.
        unsafe {
            let none = _mm_setzero_si128();
            let mut sums = [
                _mm_sad_epu8(_mm_set_epi64x((left >> 64) as i64, left as i64), none),
                none,
            ];
            for pair in pairs {
                for (sum, block) in sums.iter_mut().zip(pair) {
                    *sum = _mm_add_epi64(*sum, _mm_sad_epu8(words(block), none));
                }
            }
            for block in odd {
                sums[0] = _mm_add_epi64(sums[0], _mm_sad_epu8(words(block), none));
            }
            let [one, other] = sums;
            both(_mm_add_epi64(one, other))
        }
    }

    /// Sums of products of 32 bits each, modulo 2^64.
    #[derive(Clone, Copy, Debug)]
    pub struct Products([__m128i; 2]);

    impl Products {
        /// None yet.
        #[inline(always)]
        pub fn none() -> Products {
            // SAFETY: as in `sum`.
            Products(unsafe { [_mm_setzero_si128(); 2] })
        }

        /// Adds four products: each of the four words of a block, little-endian, with a secret added modulo
        /// 2^32, times the one at the same place of the other block.
        #[inline(always)]
        pub fn add(&mut self, [one, other]: &[Block; 2], secrets: &[[u32; 4]; 2]) {
            let [even, odd] = &mut self.0;
            // SAFETY: as in `sum`.
            unsafe {
                let masked = |block: &Block, secrets: &[u32; 4]| {
                    let [a, b, c, d] = secrets.map(u32::cast_signed);
                    _mm_add_epi32(words(block), _mm_set_epi32(d, c, b, a))
                };
                let (one, other) = (masked(one, &secrets[0]), masked(other, &secrets[1]));
                let high = |words| _mm_srli_epi64::<32>(words);
                *even = _mm_add_epi64(*even, _mm_mul_epu32(one, other));
                *odd = _mm_add_epi64(*odd, _mm_mul_epu32(high(one), high(other)));
            }
        }

        /// All of them together.
        #[inline(always)]
        pub fn total(self) -> u64 {
            let [even, odd] = self.0;
            // SAFETY: as in `sum`.
            unsafe { both(_mm_add_epi64(even, odd)) }
        }
    }

    /// A block as a vector.
    #[inline(always)]
    fn words(block: &Block) -> __m128i {
        let [low, high] = [0, 8].map(|at| {
            block[at..]
                .first_chunk()
                .map_or(0, |half| i64::from_le_bytes(*half))
        });
        // SAFETY: as in `sum`.
        unsafe { _mm_set_epi64x(high, low) }
    }

    /// Both numbers of a vector together.
    #[inline(always)]
    fn both(numbers: __m128i) -> u64 {
        // SAFETY: as in `sum`.
        let sum = unsafe { _mm_cvtsi128_si64(_mm_add_epi64(numbers, _mm_unpackhi_epi64(numbers, numbers))) };
        sum.cast_unsigned()
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
use loops as of_target;

/// The same for other processors.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
#[cfg_attr(
    all(target_arch = "x86_64", target_feature = "sse2"),
    expect(unreachable_pub, reason = "exported where there is no SSE2")
)]
mod loops {
    use super::Block;

    /// The sum of bytes.
    pub fn sum(bytes: &[u8]) -> u64 {
        super::by_bytes(bytes)
    }

    /// Sums of products of 32 bits each, modulo 2^64.
    #[derive(Clone, Copy, Debug)]
    pub struct Products([u64; 4]);

    impl Products {
        /// None yet.
        #[inline(always)]
        pub fn none() -> Products {
            Products([0; 4])
        }

        /// Adds four products: each of the four words of a block, little-endian, with a secret added modulo
        /// 2^32, times the one at the same place of the other block.
        #[inline(always)]
        pub fn add(&mut self, [one, other]: &[Block; 2], secrets: &[[u32; 4]; 2]) {
            let (one, other) = (masked(one, &secrets[0]), masked(other, &secrets[1]));
            for (sum, (one, other)) in self.0.iter_mut().zip(one.into_iter().zip(other)) {
                *sum = sum.wrapping_add(u64::from(one).wrapping_mul(u64::from(other)));
            }
        }

        /// All of them together.
        #[inline(always)]
        pub fn total(self) -> u64 {
            self.0.into_iter().fold(0, u64::wrapping_add)
        }
    }

    #[inline(always)]
    fn masked(block: &Block, secrets: &[u32; 4]) -> [u32; 4] {
        let (words, _) = block.as_chunks::<4>();
        core::array::from_fn(|at| u32::from_le_bytes(words[at]).wrapping_add(secrets[at]))
    }
}

/// The sum, one by one.
fn by_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(*byte)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use tickwire_testdata::Rng;

    #[test]
    fn the_sum_of_every_length_is_that_of_its_bytes_one_by_one() {
        let mut rng = Rng::new(5);
        for len in 0..1_600 {
            let mut bytes: Vec<u8> = alloc::vec![0; len];
            rng.fill(&mut bytes);
            assert_eq!(sum(&bytes), loops::sum(&bytes), "{len} bytes");
            bytes.fill(u8::MAX);
            assert_eq!(sum(&bytes), 255 * len as u64, "{len} bytes of ones");
        }
    }

    #[test]
    fn products_are_those_of_words_one_by_one() {
        let mut rng = Rng::new(6);
        for round in 0..1_000 {
            let (mut vectors, mut words) = (Products::none(), loops::Products::none());
            for _ in 0..round % 9 {
                let mut blocks = [[0; 16]; 2];
                rng.fill(blocks.as_flattened_mut());
                // The highest words and secrets run over.
                let edge = |rng: &mut Rng| {
                    if rng.chance(1, 4) {
                        u32::MAX
                    } else {
                        rng.next_u64() as u32
                    }
                };
                let secrets = [[0; 4]; 2].map(|all| all.map(|_: u32| edge(&mut rng)));
                vectors.add(&blocks, &secrets);
                words.add(&blocks, &secrets);
            }
            assert_eq!(vectors.total(), words.total(), "round {round}");
        }
    }
}
