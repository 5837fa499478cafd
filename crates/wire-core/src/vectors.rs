//! Two loops over all bytes of a datagram, in vectors: their sum, as checksums have it, and sums of products
//! for hashes.
//!
//! With AVX2 where the processor has it, or SSE2, which every x86-64 processor has. Other processors get
//! loops, and all are compared. What compilers make of the loops, what that costs, and why not AVX-512:
//! `docs/adr/0005-vectors-in-the-fix-codec.md`.

/// 64 bytes, in blocks of which the first two and the last two are multiplied with each other.
pub type Chunk = [[u8; 16]; 4];
/// What is added to the words of a chunk.
pub type Secrets = [[u32; 4]; 4];

/// Sums of products of 32 bits each, modulo 2^64, by the instructions of a processor.
pub trait Products: Copy {
    /// Sums, in the lanes of vectors.
    type Sums: Copy;

    /// None yet.
    fn none(self) -> Self::Sums;

    /// Adds eight products: each of the words of a chunk's first and third block, little-endian, with a
    /// secret added modulo 2^32, times the word 16 bytes further.
    fn add(self, sums: &mut Self::Sums, chunk: &Chunk, secrets: &Secrets);

    /// All of them together.
    fn total(self, sums: Self::Sums) -> u64;
}

/// A loop that is written over [`Products`]; `run` is `#[inline(always)]` in implementations.
pub trait Work {
    /// What it comes to.
    type Output;

    /// Does it.
    fn run(self, products: impl Products) -> Self::Output;
}

/// Does some work in a function that is compiled for the best instructions that this processor has.
#[inline(always)]
pub fn run<W: Work>(work: W) -> W::Output {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if let Some(avx2) = x86::Avx2::detect() {
        return avx2.run(work);
    }
    work.run(Baseline)
}

/// The sum of bytes.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    if let Some(avx2) = x86::Avx2::detect() {
        return avx2.sum(bytes);
    }
    Baseline.sum(bytes)
}

/// What every processor of the target has: for work that is not worth a call.
#[derive(Clone, Copy, Debug)]
pub struct Baseline;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod x86 {
    #![allow(unsafe_code)]

    use super::{Baseline, Chunk, Products, Secrets, Work};
    use core::arch::x86_64::*;

    cpufeatures::new!(has_avx2, "avx2");

    /// Proof that the processor and its operating system have AVX2.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Avx2(());

    impl Avx2 {
        /// Asks the processor.
        #[inline(always)]
        pub(super) fn detect() -> Option<Avx2> {
            has_avx2::get().then_some(Avx2(()))
        }

        #[inline(always)]
        pub(super) fn run<W: Work>(self, work: W) -> W::Output {
            #[target_feature(enable = "avx2")]
            fn compiled<W: Work>(avx2: Avx2, work: W) -> W::Output {
                work.run(avx2)
            }
            // SAFETY: the one condition for calling it is that the processor has these instructions, of which
            // `self` is the proof.
            unsafe { compiled(self, work) }
        }

        #[inline(always)]
        pub(super) fn sum(self, bytes: &[u8]) -> u64 {
            #[target_feature(enable = "avx2")]
            fn sum(bytes: &[u8]) -> u64 {
                /// 32 bytes from the n-th on have all bits in the last n.
                const LAST: [u8; 64] = {
                    let mut bytes = [0; 64];
                    let mut at = 32;
                    while at < 64 {
                        bytes[at] = u8::MAX;
                        at += 1;
                    }
                    bytes
                };
                let Some(last) = bytes.last_chunk() else {
                    return Baseline.sum(bytes);
                };
                let none = _mm256_setzero_si256();
                let (blocks, rest) = bytes.as_chunks::<32>();
                let there = LAST[rest.len()..].first_chunk().unwrap_or(&[0; 32]);
                // Those that fill no block are the last of the last 32.
                let left = _mm256_and_si256(half(last), half(there));
                let mut sums = [_mm256_sad_epu8(left, none), none];
                let (pairs, odd) = blocks.as_chunks::<2>();
                for pair in pairs {
                    for (sum, block) in sums.iter_mut().zip(pair) {
                        *sum = _mm256_add_epi64(*sum, _mm256_sad_epu8(half(block), none));
                    }
                }
                for block in odd {
                    sums[0] = _mm256_add_epi64(sums[0], _mm256_sad_epu8(half(block), none));
                }
                let [one, other] = sums;
                four(_mm256_add_epi64(one, other))
            }
            // SAFETY: as in `run`.
            unsafe { sum(bytes) }
        }
    }

    /// 32 bytes as a vector.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn half(bytes: &[u8; 32]) -> __m256i {
        // SAFETY: 32 bytes are read at the address of an array of 32; no alignment is asked for.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    /// The four numbers of a vector together.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn four(numbers: __m256i) -> u64 {
        both(_mm_add_epi64(
            _mm256_castsi256_si128(numbers),
            _mm256_extracti128_si256::<1>(numbers),
        ))
    }

    impl Products for Avx2 {
        /// Of the words at even places and of those at odd ones.
        type Sums = [__m256i; 2];

        #[inline(always)]
        fn none(self) -> [__m256i; 2] {
            // SAFETY: `self` is proof of AVX2.
            unsafe { [_mm256_setzero_si256(); 2] }
        }

        #[inline(always)]
        fn add(self, sums: &mut [__m256i; 2], chunk: &Chunk, secrets: &Secrets) {
            #[inline]
            #[target_feature(enable = "avx2")]
            fn add([even, odd]: [__m256i; 2], chunk: &Chunk, secrets: &Secrets) -> [__m256i; 2] {
                let masked = |first: usize| {
                    let (blocks, secrets) = (&chunk[first..first + 2], &secrets[first..first + 2]);
                    // SAFETY: 32 bytes are read at the addresses of slices of two times 16; no alignment is
                    // asked for.
                    unsafe {
                        _mm256_add_epi32(
                            _mm256_loadu_si256(blocks.as_ptr().cast()),
                            _mm256_loadu_si256(secrets.as_ptr().cast()),
                        )
                    }
                };
                let (first, last) = (masked(0), masked(2));
                let one = _mm256_permute2x128_si256::<0x20>(first, last);
                let other = _mm256_permute2x128_si256::<0x31>(first, last);
                let of_odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(one), _mm256_srli_epi64::<32>(other));
                [
                    _mm256_add_epi64(even, _mm256_mul_epu32(one, other)),
                    _mm256_add_epi64(odd, of_odd),
                ]
            }
            // SAFETY: `self` is proof of AVX2.
            *sums = unsafe { add(*sums, chunk, secrets) };
        }

        #[inline(always)]
        fn total(self, [even, odd]: [__m256i; 2]) -> u64 {
            // SAFETY: `self` is proof of AVX2.
            unsafe { four(_mm256_add_epi64(even, odd)) }
        }
    }

    impl Baseline {
        /// As [`super::sum`].
        #[inline(always)]
        pub(super) fn sum(self, bytes: &[u8]) -> u64 {
            let Some(last) = bytes.last_chunk() else {
                return super::by_bytes(bytes);
            };
            let (blocks, rest) = bytes.as_chunks::<16>();
            let (pairs, odd) = blocks.as_chunks::<2>();
            // Those that fill no block are the last of the last sixteen.
            let places = 8 * (16 - rest.len() as u32);
            let left = u128::from_le_bytes(*last).checked_shr(places).unwrap_or(0);
            // SAFETY: the one condition for these instructions is that the processor has SSE2; this module
            // exists only in builds for processors that have it.
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
    }

    impl Products for Baseline {
        /// Of the words at even places and of those at odd ones.
        type Sums = [__m128i; 2];

        #[inline(always)]
        fn none(self) -> [__m128i; 2] {
            // SAFETY: as in `sum`.
            unsafe { [_mm_setzero_si128(); 2] }
        }

        #[inline(always)]
        fn add(self, [even, odd]: &mut [__m128i; 2], chunk: &Chunk, secrets: &Secrets) {
            let (pairs, secrets) = (chunk.as_chunks::<2>().0, secrets.as_chunks::<2>().0);
            for ([one, other], secrets) in pairs.iter().zip(secrets) {
                // SAFETY: as in `sum`.
                unsafe {
                    let masked = |block: &[u8; 16], secrets: &[u32; 4]| {
                        let [a, b, c, d] = secrets.map(u32::cast_signed);
                        _mm_add_epi32(words(block), _mm_set_epi32(d, c, b, a))
                    };
                    let (one, other) = (masked(one, &secrets[0]), masked(other, &secrets[1]));
                    let high = |words| _mm_srli_epi64::<32>(words);
                    *even = _mm_add_epi64(*even, _mm_mul_epu32(one, other));
                    *odd = _mm_add_epi64(*odd, _mm_mul_epu32(high(one), high(other)));
                }
            }
        }

        #[inline(always)]
        fn total(self, [even, odd]: [__m128i; 2]) -> u64 {
            // SAFETY: as in `sum`.
            unsafe { both(_mm_add_epi64(even, odd)) }
        }
    }

    /// A block as a vector.
    #[inline(always)]
    fn words(block: &[u8; 16]) -> __m128i {
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
impl Baseline {
    fn sum(self, bytes: &[u8]) -> u64 {
        by_bytes(bytes)
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
impl Products for Baseline {
    type Sums = [u64; 4];

    #[inline(always)]
    fn none(self) -> [u64; 4] {
        Loops.none()
    }

    #[inline(always)]
    fn add(self, sums: &mut [u64; 4], chunk: &Chunk, secrets: &Secrets) {
        Loops.add(sums, chunk, secrets);
    }

    #[inline(always)]
    fn total(self, sums: [u64; 4]) -> u64 {
        Loops.total(sums)
    }
}

/// The same for other processors.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
#[derive(Clone, Copy)]
struct Loops;

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
impl Products for Loops {
    type Sums = [u64; 4];

    #[inline(always)]
    fn none(self) -> [u64; 4] {
        [0; 4]
    }

    #[inline(always)]
    fn add(self, sums: &mut [u64; 4], chunk: &Chunk, secrets: &Secrets) {
        let word = |block: usize, at: usize| {
            let (words, _) = chunk[block].as_chunks::<4>();
            u64::from(u32::from_le_bytes(words[at]).wrapping_add(secrets[block][at]))
        };
        for (at, sum) in sums.iter_mut().enumerate() {
            for block in [0, 2] {
                *sum = sum.wrapping_add(word(block, at).wrapping_mul(word(block + 1, at)));
            }
        }
    }

    #[inline(always)]
    fn total(self, sums: [u64; 4]) -> u64 {
        sums.into_iter().fold(0, u64::wrapping_add)
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

    /// The sum by each kind of instructions that this processor has.
    fn sums(bytes: &[u8]) -> Vec<u64> {
        let mut all = alloc::vec![sum(bytes), Baseline.sum(bytes)];
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        all.extend(x86::Avx2::detect().map(|avx2| avx2.sum(bytes)));
        all
    }

    #[test]
    fn the_sum_of_every_length_is_that_of_its_bytes_one_by_one() {
        let mut rng = Rng::new(5);
        for len in 0..1_600 {
            let mut bytes: Vec<u8> = alloc::vec![0; len];
            rng.fill(&mut bytes);
            let expected = by_bytes(&bytes);
            assert!(sums(&bytes).iter().all(|sum| *sum == expected), "{len} bytes");
            bytes.fill(u8::MAX);
            let expected = 255 * len as u64;
            assert!(
                sums(&bytes).iter().all(|sum| *sum == expected),
                "{len} bytes of ones"
            );
        }
    }

    #[derive(Clone, Copy)]
    struct Sum<'a>(&'a [(Chunk, Secrets)]);

    impl Work for Sum<'_> {
        type Output = u64;

        #[inline(always)]
        fn run(self, products: impl Products) -> u64 {
            let mut sums = products.none();
            for (chunk, secrets) in self.0 {
                products.add(&mut sums, chunk, secrets);
            }
            products.total(sums)
        }
    }

    #[test]
    fn products_are_those_of_words_one_by_one() {
        let mut rng = Rng::new(6);
        for round in 0..1_000 {
            // The highest words and secrets run over.
            let edge = |rng: &mut Rng| {
                if rng.chance(1, 4) {
                    u32::MAX
                } else {
                    rng.next_u64() as u32
                }
            };
            let chunks: Vec<(Chunk, Secrets)> = (0..round % 9)
                .map(|_| {
                    let mut chunk = [[0; 16]; 4];
                    rng.fill(chunk.as_flattened_mut());
                    (chunk, [[0; 4]; 4].map(|all| all.map(|_: u32| edge(&mut rng))))
                })
                .collect();
            let work = Sum(&chunks);
            let expected = work.run(Loops);
            let mut all = alloc::vec![run(work), work.run(Baseline)];
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            all.extend(x86::Avx2::detect().map(|avx2| avx2.run(work)));
            assert!(all.iter().all(|sum| *sum == expected), "round {round}");
        }
    }
}
