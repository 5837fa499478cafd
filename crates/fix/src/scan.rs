//! Where the field separators of 64 bytes are, and what the bytes add to the checksum, in one reading.
//!
//! By 64-bit words, compared with a byte loop below. The intrinsics of SSE2 (`pmovmskb`, `psadbw`) would need unsafe
//! code, which this crate forbids.

/// The field separator.
pub(crate) const SOH: u8 = 1;

/// Bit `i` is set where byte `i` is a separator; and the sum of all bytes.
#[inline]
pub(crate) fn scan(block: &[u8; 64]) -> (u64, u32) {
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    const PAIRS: u64 = 0x00ff_00ff_00ff_00ff;
    // Shifts instead of the usual multiplication: the compiler makes vectors of them, and SSE2 has no 64-bit product.
    let (mut bits, mut sums) = (0u64, 0u64);
    let (words, _) = block.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let x = word ^ u64::from_le_bytes([SOH; 8]);
        let mut zero = !(((x & LOW) + LOW) | x | LOW) >> 7; // 1 in every byte of x that is zero, exact
        zero |= zero >> 7;
        zero |= zero >> 14;
        zero |= zero >> 28;
        bits |= (zero & 0xff) << (8 * i);
        sums += (word & PAIRS) + (word >> 8 & PAIRS); // four lanes of 16 bits; 16 bytes make 4080 at most in each
    }
    (bits, (sums.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(block: &[u8; 64]) -> (u64, u32) {
        let bits = block
            .iter()
            .enumerate()
            .fold(0, |bits, (i, &b)| bits | u64::from(b == SOH) << i);
        (bits, block.iter().map(|&b| b as u32).sum())
    }

    #[test]
    fn the_scan_agrees_with_the_byte_loop() {
        let mut state = 1u64;
        for round in 0..20_000u64 {
            let mut block = [0u8; 64];
            for b in &mut block {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let byte = (state >> 56) as u8;
                *b = if round % 3 == 0 { byte % 4 } else { byte };
            }
            assert_eq!(scan(&block), plain(&block));
        }
        assert_eq!(scan(&[255; 64]), plain(&[255; 64]));
    }
}
