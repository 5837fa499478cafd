//! Where the field separators of 64 bytes are, and what the bytes add to the checksum, in one reading.
//!
//! With SSE2, which every x86-64 processor has, 26 instructions (`pcmpeqb`, `pmovmskb`, `psadbw`); elsewhere
//! by 64-bit words, 170. Both are compared with a byte loop. Why not left to the compiler:
//! `docs/adr/0005-vectors-in-the-fix-codec.md`.

/// The field separator.
pub(crate) const SOH: u8 = 1;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) use sse2::scan;
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) use words::scan;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2 {
    #![allow(unsafe_code)]

    use super::SOH;
    use core::arch::x86_64::{
        _mm_add_epi64, _mm_cmpeq_epi8, _mm_cvtsi128_si64, _mm_loadu_si128, _mm_movemask_epi8, _mm_sad_epu8,
        _mm_set1_epi8, _mm_setzero_si128, _mm_unpackhi_epi64,
    };

    /// Bit `i` is set where byte `i` is a separator; and the sum of all bytes.
    #[inline(always)]
    pub(crate) fn scan(block: &[u8; 64]) -> (u64, u32) {
        // SAFETY: the one condition for calling it is that the processor has SSE2; this module exists only in
        // builds for processors that have it.
        unsafe { scan_with_sse2(block) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn scan_with_sse2(block: &[u8; 64]) -> (u64, u32) {
        let (separator, zero) = (_mm_set1_epi8(SOH as i8), _mm_setzero_si128());
        let (mut bits, mut sums) = (0u64, zero);
        let (quarters, _) = block.as_chunks::<16>();
        for (i, quarter) in quarters.iter().enumerate() {
            // SAFETY: 16 bytes are read at the address of a reference to 16 bytes; no alignment is asked for.
            let bytes = unsafe { _mm_loadu_si128(core::ptr::from_ref(quarter).cast()) };
            let mask = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, separator)) as u64; // 16 bits
            bits |= mask << (16 * i);
            sums = _mm_add_epi64(sums, _mm_sad_epu8(bytes, zero));
        }
        let sum = _mm_cvtsi128_si64(sums) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums));
        (bits, sum as u32)
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod words {
    use super::SOH;

    /// Bit `i` is set where byte `i` is a separator; and the sum of all bytes.
    #[inline]
    pub(crate) fn scan(block: &[u8; 64]) -> (u64, u32) {
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
        (bits, (sums.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(block: &[u8; 64]) -> (u64, u32) {
        let separators = block.iter().enumerate().filter(|&(_, &b)| b == SOH);
        let bits = separators.fold(0, |bits, (i, _)| bits | 1u64 << i);
        (bits, block.iter().map(|&b| u32::from(b)).sum())
    }

    proptest! {
        #[test]
        fn all_ways_to_scan_agree(block in prop::collection::vec(prop_oneof![0u8..4, any::<u8>(), 254u8..], 64)) {
            let block: [u8; 64] = block.try_into().expect("64 bytes");
            prop_assert_eq!(scan(&block), plain(&block));
            prop_assert_eq!(words::scan(&block), plain(&block));
        }
    }

    #[test]
    fn every_byte_is_seen_at_every_place() {
        let places: usize = if cfg!(miri) { 1 } else { 64 };
        for at in 0..places {
            for b in 0..=255 {
                for rest in [0, SOH, b'9', 255] {
                    let mut block = [rest; 64];
                    block[at] = b;
                    assert_eq!(scan(&block), plain(&block));
                    assert_eq!(words::scan(&block), plain(&block));
                }
            }
        }
    }
}
