//! Where the field separators of a message are, and what its bytes add to the checksum, in one reading.
//!
//! The same work with the instructions that a processor has: 64 bytes at a time with AVX-512 (VBMI2 writes
//! the places of a block's separators with one instruction) or with AVX2 and BMI, 16 at a time with SSE2,
//! which every x86-64 processor has, and by 64-bit words elsewhere. All are compared with a byte loop. Why
//! not left to the compiler: `docs/adr/0005-vectors-in-the-fix-codec.md`.

/// The field separator.
pub(crate) const SOH: u8 = 1;

/// Bytes scanned at a time; their separators are listed, then the fields between them read.
pub(crate) const STRETCH: usize = 1024;
/// Places of separators are written in groups, of which the last may reach past the end.
pub(crate) const ENDS: usize = STRETCH + 64;
/// Where the separators of a stretch are.
pub(crate) type Ends = [u32; ENDS];

/// 64 bytes at a time: where separators are in them, and what they add up to.
trait Scan: Copy {
    /// Sums so far, in lanes that do not overflow within a stretch.
    type Sums: Copy;
    fn none(self) -> Self::Sums;
    /// Bit `i` is set where byte `i` is a separator; adds all bytes to the sums.
    fn scan(self, block: &[u8; 64], sums: &mut Self::Sums) -> u64;
    fn total(self, sums: Self::Sums) -> u32;
}

/// The sum of all bytes.
#[inline]
pub(crate) fn sum(blocks: &[[u8; 64]]) -> u32 {
    let mut sums = Baseline.none();
    for block in blocks {
        Baseline.scan(block, &mut sums);
    }
    Baseline.total(sums)
}

/// The sum of bytes that come in words: of values as they are written, which reading them again would have to
/// wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordSum(<Baseline as Scan>::Sums);

impl WordSum {
    #[inline(always)]
    pub(crate) fn new() -> WordSum {
        WordSum(Baseline.none())
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, word: u64) {
        Baseline.add_word(word, &mut self.0);
    }

    /// Modulo 256.
    #[inline(always)]
    pub(crate) fn total(self) -> u8 {
        Baseline.total(self.0) as u8
    }
}

/// The best way that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scanner {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Compress(x86::Avx512),
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    Wide(x86::Avx2),
    Baseline,
}

impl Scanner {
    /// Asks the processor.
    pub(crate) fn detect() -> Scanner {
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        {
            if let Some(avx512) = x86::Avx512::detect() {
                return Scanner::Compress(avx512);
            }
            if let Some(avx2) = x86::Avx2::detect() {
                return Scanner::Wide(avx2);
            }
        }
        Scanner::Baseline
    }

    /// Lists where separators are in a stretch (of at most [`STRETCH`] bytes) that begins at `from` of its
    /// message: how many, and the sum of its bytes.
    #[inline]
    pub(crate) fn list(self, stretch: &[u8], from: u32, ends: &mut Ends) -> (usize, u32) {
        match self {
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Scanner::Compress(avx512) => avx512.list(stretch, from, ends),
            #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
            Scanner::Wide(avx2) => avx2.list(stretch, from, ends),
            Scanner::Baseline => list_with(Baseline, stretch, from, ends),
        }
    }
}

#[inline(always)]
fn list_with<S: Scan>(s: S, stretch: &[u8], from: u32, ends: &mut Ends) -> (usize, u32) {
    let (blocks, rest) = stretch.as_chunks::<64>();
    let mut last = [0; 64]; // NUL adds nothing to the sum and separates nothing
    last[..rest.len()].copy_from_slice(rest);
    let (mut listed, mut sums) = (0, s.none());
    for (i, block) in blocks.iter().chain([&last]).enumerate() {
        let bits = s.scan(block, &mut sums);
        // Most blocks have at most eight: writing all eight spares the branches that would be mispredicted.
        let Some(room) = ends[listed.min(STRETCH)..].first_chunk_mut::<64>() else {
            break; // not reached: a stretch has STRETCH separators at most
        };
        put_places(bits, from + 64 * i as u32, room);
        listed += bits.count_ones() as usize;
    }
    (listed, s.total(sums))
}

#[inline(always)]
fn put_places(mut bits: u64, from: u32, room: &mut [u32; 64]) {
    let many = bits.count_ones() > 8;
    for place in &mut room[..8] {
        *place = from + bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
    }
    if many {
        for place in &mut room[8..] {
            if bits == 0 {
                return;
            }
            *place = from + bits.trailing_zeros();
            bits &= bits - 1;
        }
    }
}

/// What every processor of the target has.
#[derive(Clone, Copy)]
struct Baseline;

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
impl Baseline {
    #[inline(always)]
    fn add_word(self, word: u64, sums: &mut u32) {
        *sums = sums.wrapping_add(crate::number::byte_sum(word).into());
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
impl Scan for Baseline {
    type Sums = u32;
    #[inline(always)]
    fn none(self) -> u32 {
        0
    }
    #[inline(always)]
    fn scan(self, block: &[u8; 64], sums: &mut u32) -> u64 {
        words::scan(block, sums)
    }
    #[inline(always)]
    fn total(self, sums: u32) -> u32 {
        sums
    }
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod x86 {
    #![allow(unsafe_code)]

    use super::{Baseline, Ends, SOH, STRETCH, Scan, list_with};
    use core::arch::x86_64::*;

    cpufeatures::new!(has_avx512, "avx512f", "avx512bw", "avx512vbmi2", "bmi1", "popcnt");
    cpufeatures::new!(has_avx2, "avx2", "bmi1", "popcnt");

    /// Proof that the processor and its operating system have AVX-512 with byte masks and VBMI2, BMI1 and
    /// POPCNT.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Avx512(());

    /// Proof that they have AVX2, BMI1 and POPCNT.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Avx2(());

    impl Avx512 {
        /// Asks the processor.
        pub(crate) fn detect() -> Option<Avx512> {
            has_avx512::get().then_some(Avx512(()))
        }

        /// As [`super::Scanner::list`].
        #[inline]
        pub(crate) fn list(self, stretch: &[u8], from: u32, ends: &mut Ends) -> (usize, u32) {
            // SAFETY: the one condition for calling it is that the processor has these instructions, of which
            // `self` is the proof.
            unsafe { compressed(stretch, from, ends) }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,popcnt")]
    fn compressed(stretch: &[u8], from: u32, ends: &mut Ends) -> (usize, u32) {
        const BYTES: [i8; 64] = {
            let mut bytes = [0; 64];
            let mut i = 0;
            while i < 64 {
                bytes[i] = i as i8;
                i += 1;
            }
            bytes
        };
        // SAFETY: 64 bytes are read at the address of an array of 64; no alignment is asked for.
        let places = unsafe { _mm512_loadu_epi8(BYTES.as_ptr()) };
        let (separator, zero) = (_mm512_set1_epi8(SOH as i8), _mm512_setzero_si512());
        let (mut listed, mut sums) = (0, zero);
        for (i, block) in stretch.chunks(64).enumerate() {
            let there = u64::MAX >> ((64 - block.len()) & 63);
            // SAFETY: of the 64 bytes from the block's address on, those that it has are read: `there` has a
            // bit for each, and the others are not touched.
            let bytes = unsafe { _mm512_maskz_loadu_epi8(there, block.as_ptr().cast()) };
            sums = _mm512_add_epi64(sums, _mm512_sad_epu8(bytes, zero));
            let bits = _mm512_cmpeq_epi8_mask(bytes, separator);
            let Some(room) = ends[listed.min(STRETCH)..].first_chunk_mut::<64>() else {
                break; // not reached: a stretch has STRETCH separators at most
            };
            let count = bits.count_ones() as usize;
            let packed = _mm512_maskz_compress_epi8(bits, places);
            let base = _mm512_set1_epi32((from + 64 * i as u32) as i32);
            let quarters = [
                _mm512_castsi512_si128(packed),
                _mm512_extracti32x4_epi32::<1>(packed),
                _mm512_extracti32x4_epi32::<2>(packed),
                _mm512_extracti32x4_epi32::<3>(packed),
            ];
            for (n, (to, quarter)) in room.as_chunks_mut::<16>().0.iter_mut().zip(quarters).enumerate() {
                if n > 0 && count <= 16 * n {
                    break;
                }
                let of_quarter = _mm512_add_epi32(_mm512_cvtepu8_epi32(quarter), base);
                // SAFETY: 64 bytes are written at the address of a unique reference to 16 words of 32 bits;
                // no alignment is asked for.
                unsafe { _mm512_storeu_epi32(to.as_mut_ptr().cast(), of_quarter) };
            }
            listed += count;
        }
        (listed, _mm512_reduce_add_epi64(sums) as u32)
    }

    impl Avx2 {
        /// Asks the processor.
        pub(crate) fn detect() -> Option<Avx2> {
            has_avx2::get().then_some(Avx2(()))
        }

        /// As [`super::Scanner::list`].
        #[inline]
        pub(crate) fn list(self, stretch: &[u8], from: u32, ends: &mut Ends) -> (usize, u32) {
            #[target_feature(enable = "avx2,bmi1,popcnt")]
            fn compiled(s: Avx2, stretch: &[u8], from: u32, ends: &mut Ends) -> (usize, u32) {
                list_with(s, stretch, from, ends)
            }
            // SAFETY: the one condition for calling it is that the processor has these instructions, of which
            // `self` is the proof.
            unsafe { compiled(self, stretch, from, ends) }
        }
    }

    impl Scan for Avx2 {
        type Sums = __m256i;

        #[inline(always)]
        fn none(self) -> __m256i {
            // SAFETY: `self` is proof of AVX2.
            unsafe { _mm256_setzero_si256() }
        }

        #[inline(always)]
        fn scan(self, block: &[u8; 64], sums: &mut __m256i) -> u64 {
            #[inline]
            #[target_feature(enable = "avx2")]
            fn scan(block: &[u8; 64], sums: &mut __m256i) -> u64 {
                let separator = _mm256_set1_epi8(SOH as i8);
                let mut bits = 0;
                for (i, half) in block.as_chunks::<32>().0.iter().enumerate() {
                    // SAFETY: 32 bytes are read at the address of a reference to 32 bytes; no alignment is
                    // asked for.
                    let bytes = unsafe { _mm256_loadu_si256(core::ptr::from_ref(half).cast()) };
                    let mask = _mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, separator)) as u32;
                    bits |= u64::from(mask) << (32 * i);
                    *sums = _mm256_add_epi64(*sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
                }
                bits
            }
            // SAFETY: `self` is proof of AVX2.
            unsafe { scan(block, sums) }
        }

        #[inline(always)]
        fn total(self, sums: __m256i) -> u32 {
            // SAFETY: `self` is proof of AVX2.
            let (low, high) = unsafe { (_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums)) };
            Baseline.total(low).wrapping_add(Baseline.total(high))
        }
    }

    impl Baseline {
        /// Adds the eight bytes of a word to the sums.
        #[inline(always)]
        pub(super) fn add_word(self, word: u64, sums: &mut __m128i) {
            #[inline]
            #[target_feature(enable = "sse2")]
            fn add(word: u64, sums: &mut __m128i) {
                let bytes = _mm_cvtsi64_si128(word as i64);
                *sums = _mm_add_epi64(*sums, _mm_sad_epu8(bytes, _mm_setzero_si128()));
            }
            // SAFETY: the processor has SSE2; this module exists only in builds for processors that have it.
            unsafe { add(word, sums) }
        }
    }

    impl Scan for Baseline {
        type Sums = __m128i;

        #[inline(always)]
        fn none(self) -> __m128i {
            // SAFETY: the processor has SSE2; this module exists only in builds for processors that have it.
            unsafe { _mm_setzero_si128() }
        }

        #[inline(always)]
        fn scan(self, block: &[u8; 64], sums: &mut __m128i) -> u64 {
            #[inline]
            #[target_feature(enable = "sse2")]
            fn scan(block: &[u8; 64], sums: &mut __m128i) -> u64 {
                let separator = _mm_set1_epi8(SOH as i8);
                let mut bits = 0;
                for (i, quarter) in block.as_chunks::<16>().0.iter().enumerate() {
                    // SAFETY: 16 bytes are read at the address of a reference to 16 bytes; no alignment is
                    // asked for.
                    let bytes = unsafe { _mm_loadu_si128(core::ptr::from_ref(quarter).cast()) };
                    let mask = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, separator)) as u64; // 16 bits
                    bits |= mask << (16 * i);
                    *sums = _mm_add_epi64(*sums, _mm_sad_epu8(bytes, _mm_setzero_si128()));
                }
                bits
            }
            // SAFETY: the processor has SSE2; this module exists only in builds for processors that have it.
            unsafe { scan(block, sums) }
        }

        #[inline(always)]
        fn total(self, sums: __m128i) -> u32 {
            // SAFETY: the processor has SSE2; this module exists only in builds for processors that have it.
            let lanes = unsafe { [sums, _mm_unpackhi_epi64(sums, sums)].map(|half| _mm_cvtsi128_si64(half)) };
            (lanes[0] + lanes[1]) as u32
        }
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod words {
    use super::SOH;

    /// Bit `i` is set where byte `i` is a separator; adds all bytes to the sum.
    #[inline]
    pub(crate) fn scan(block: &[u8; 64], sum: &mut u32) -> u64 {
        const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
        const PAIRS: u64 = 0x00ff_00ff_00ff_00ff;
        let (mut bits, mut sums) = (0u64, 0u64);
        let (words, _) = block.as_chunks::<8>();
        for (i, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let x = word ^ u64::from_le_bytes([SOH; 8]);
            let zero = !(((x & LOW) + LOW) | x | LOW) >> 7; // 1 in every byte of x that is zero, exact
            // The product's top byte has byte i of the word as its bit i.
            bits |= zero.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * i);
            sums += (word & PAIRS) + (word >> 8 & PAIRS); // four lanes of 16 bits; 16 bytes make 4080 at most in each
        }
        *sum += (sums.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32;
        bits
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// By 64-bit words, whatever this processor has.
    #[derive(Clone, Copy)]
    struct Words;

    impl Scan for Words {
        type Sums = u32;
        fn none(self) -> u32 {
            0
        }
        fn scan(self, block: &[u8; 64], sums: &mut u32) -> u64 {
            words::scan(block, sums)
        }
        fn total(self, sums: u32) -> u32 {
            sums
        }
    }

    fn listed(list: impl Fn(&mut Ends) -> (usize, u32)) -> (Vec<u32>, u32) {
        let mut ends = [0; ENDS];
        let (count, sum) = list(&mut ends);
        (ends[..count].to_vec(), sum)
    }

    /// Every way that this processor has finds what a byte loop does.
    fn agree(stretch: &[u8], from: u32) {
        let places = (from..)
            .zip(stretch)
            .filter(|&(_, &b)| b == SOH)
            .map(|(at, _)| at);
        let plain = (places.collect(), stretch.iter().map(|&b| u32::from(b)).sum());
        assert_eq!(listed(|ends| list_with(Words, stretch, from, ends)), plain);
        assert_eq!(listed(|ends| list_with(Baseline, stretch, from, ends)), plain);
        assert_eq!(listed(|ends| Scanner::detect().list(stretch, from, ends)), plain);
        // Miri has no AVX.
        #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
        if let Some(avx2) = x86::Avx2::detect().filter(|_| !cfg!(miri)) {
            assert_eq!(listed(|ends| avx2.list(stretch, from, ends)), plain);
        }
        let (blocks, _) = stretch.as_chunks::<64>();
        let plain: u32 = blocks.as_flattened().iter().map(|&b| u32::from(b)).sum();
        assert_eq!(sum(blocks), plain);
    }

    proptest! {
        #[test]
        fn all_ways_to_scan_agree(
            stretch in prop::collection::vec(prop_oneof![0u8..4, any::<u8>(), 254u8..], 0..=STRETCH),
            from in 0u32..1 << 20,
        ) {
            agree(&stretch, from);
        }
    }

    #[test]
    fn every_byte_is_seen_at_every_place() {
        let places: usize = if cfg!(miri) { 1 } else { 130 };
        for at in 0..places {
            for b in 0..=255 {
                for rest in [0, SOH, b'9', 255] {
                    let mut stretch = [rest; 130];
                    stretch[at] = b;
                    agree(&stretch, 0);
                }
            }
        }
    }

    #[test]
    fn stretches_of_every_length_are_read_to_their_end_and_no_further() {
        let bytes = vec![SOH; STRETCH];
        for len in 0..=STRETCH {
            agree(&bytes[..len], 7);
        }
    }
}
