//! Lengths by which messages follow each other.

/// A length of two bytes, big-endian, by which the next message is found. Walking a packet is a chain of such
/// reads, each waiting for the one before: a length below 256, as nearly all are, does not wait for its
/// higher byte.
#[inline(always)]
pub fn next_by(length: [u8; 2]) -> usize {
    match length {
        [0, low] => low.into(),
        _ => long(length),
    }
}

/// A call, so that the compiler does not make one calculation of both.
#[cold]
#[inline(never)]
fn long(length: [u8; 2]) -> usize {
    u16::from_be_bytes(length).into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn lengths_of_both_kinds_are_read() {
        for length in 0..=u16::MAX {
            assert_eq!(super::next_by(length.to_be_bytes()), usize::from(length));
        }
    }
}
