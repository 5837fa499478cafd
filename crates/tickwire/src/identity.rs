//! What results are of, as a number: the same of the same inputs, on every machine.

/// What an identity begins with.
pub(crate) const BEGIN: u64 = 0xCBF2_9CE4_8422_2325;

/// FNV-1a, of bytes.
pub(crate) fn mixed(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
