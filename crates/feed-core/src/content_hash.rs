//! A hash of what a packet holds, of which a sender cannot foresee when two packets have the same.
//!
//! NH of UMAC (J. Black, S. Halevi, H. Krawczyk, T. Krovetz, P. Rogaway, "UMAC: Fast and Secure Message
//! Authentication", CRYPTO '99, section 4; RFC 4418, 5.2.2): words of 32 bits have secret words added and are
//! multiplied in pairs, and the products are summed up. Two different packets of one length have the same sum
//! for one secret in 2^32, whatever they are. No product waits for another, and the processor multiplies
//! several at a time. Every 256 bytes the sum is multiplied into one number by another secret.

use tickwire_wire_core::vectors::{self, Baseline, Chunk, Products, Secrets, Work};

/// Bytes that are taken at once.
const CHUNK: usize = 64;
/// So many chunks have secrets of their own.
const CHUNKS: usize = 4;

/// The secrets, by the bytes that they are for.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct ContentHash {
    /// For the last bytes of a packet, which are all of a short one: one cache line, and the three numbers
    /// behind it are in the next one.
    last: Secrets,
    /// For the sums.
    sums: [u64; 2],
    /// For the length in bytes.
    length: u64,
    /// So that the secrets behind it lie at a multiple of 16 bytes, and are read where they are used.
    _aligned: u64,
    /// For all others, over and over again.
    chunks: [Secrets; CHUNKS],
}

impl ContentHash {
    /// Secrets that come of one number.
    pub(crate) fn new(seed: u64) -> ContentHash {
        let mut state = seed;
        let mut next = || {
            // SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): every number once, in no order.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ mixed >> 31
        };
        ContentHash {
            last: secrets(&mut next),
            sums: core::array::from_fn(|_| next()),
            length: next(),
            _aligned: 0,
            chunks: core::array::from_fn(|_| secrets(&mut next)),
        }
    }

    /// The hash of these bytes and of how many they are.
    #[inline]
    pub(crate) fn of(&self, bytes: &[u8]) -> u32 {
        let state = match bytes.last_chunk() {
            Some(last) => vectors::run(Long {
                hash: self,
                bytes,
                last,
            }),
            None => {
                let mut sums = Baseline.none();
                Baseline.add(&mut sums, &short(bytes), &self.last);
                self.sum_up(self.begin(bytes), Baseline.total(sums))
            }
        };
        (state ^ state >> 32) as u32
    }

    /// The number that the first sum is multiplied with.
    #[inline(always)]
    fn begin(&self, bytes: &[u8]) -> u64 {
        self.length ^ bytes.len() as u64
    }

    /// The next number from the one before it and from a sum of products.
    #[inline(always)]
    fn sum_up(&self, state: u64, sum: u64) -> u64 {
        let product = u128::from(sum ^ self.sums[0]) * u128::from(state ^ self.sums[1]);
        product as u64 ^ (product >> 64) as u64
    }
}

/// A chunk of bytes and more.
struct Long<'a> {
    hash: &'a ContentHash,
    bytes: &'a [u8],
    /// The last chunk.
    last: &'a [u8; CHUNK],
}

impl Work for Long<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self, products: impl Products) -> u64 {
        let hash = self.hash;
        let mut state = hash.begin(self.bytes);
        let mut sums = products.none();
        let (chunks, _) = self.bytes.as_chunks::<CHUNK>();
        let (groups, rest) = chunks.as_chunks::<CHUNKS>();
        for group in groups {
            let mut sums = products.none();
            for (chunk, secrets) in group.iter().zip(&hash.chunks) {
                products.add(&mut sums, in_blocks(chunk), secrets);
            }
            state = hash.sum_up(state, products.total(sums));
        }
        for (chunk, secrets) in rest.iter().zip(&hash.chunks) {
            products.add(&mut sums, in_blocks(chunk), secrets);
        }
        // Those that fill no chunk; where there are none, the last chunk twice.
        products.add(&mut sums, in_blocks(self.last), &hash.last);
        hash.sum_up(state, products.total(sums))
    }
}

/// Every byte of less than a chunk. 16 bytes and more are four blocks that may overlap, two from the start
/// and two up to the end, so that no branch depends on the length of a packet of one message.
#[inline(always)]
fn short(bytes: &[u8]) -> Chunk {
    let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) else {
        let mut chunk = [[0; 16]; 4];
        chunk.as_flattened_mut()[..bytes.len()].copy_from_slice(bytes);
        return chunk;
    };
    let end = bytes.len() - 16;
    let at = |start: usize| bytes[start..].first_chunk().copied().unwrap_or_default();
    [*first, at(end.min(16)), at(end.saturating_sub(16)), *last]
}

/// A chunk by blocks.
#[inline(always)]
fn in_blocks(chunk: &[u8; CHUNK]) -> &Chunk {
    chunk.as_chunks().0.first_chunk().unwrap_or(&[[0; 16]; 4])
}

/// Secrets for a chunk.
fn secrets(next: &mut impl FnMut() -> u64) -> Secrets {
    core::array::from_fn(|_| core::array::from_fn(|_| next() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};
    use tickwire_testdata::Rng;

    /// Word by word, as the paper has it: the words of a chunk that are 16 bytes apart are a pair.
    fn by_hand(hash: &ContentHash, bytes: &[u8]) -> u32 {
        let pairs = |chunk: &[u8], secrets: &Secrets| {
            let word = |at: usize| {
                let word = u32::from_le_bytes(chunk[4 * at..4 * at + 4].try_into().unwrap());
                u64::from(word.wrapping_add(secrets[at / 4][at % 4]))
            };
            let of_pair = |first: usize| word(first).wrapping_mul(word(first + 4));
            (0..4).chain(8..12).map(of_pair).fold(0, u64::wrapping_add)
        };
        let times = |state: u64, sum: u64| {
            let product = u128::from(sum ^ hash.sums[0]) * u128::from(state ^ hash.sums[1]);
            (product % (1 << 64)) as u64 ^ (product >> 64) as u64
        };
        let mut state = hash.length ^ bytes.len() as u64;
        let mut sum = 0_u64;
        for (nth, chunk) in bytes.chunks_exact(64).enumerate() {
            sum = sum.wrapping_add(pairs(chunk, &hash.chunks[nth % 4]));
            if nth % 4 == 3 {
                (state, sum) = (times(state, sum), 0);
            }
        }
        let last: Vec<u8> = match bytes.len() {
            64.. => bytes[bytes.len() - 64..].to_vec(),
            // Two blocks from the start and two up to the end.
            len @ 16..64 => {
                let end = len - 16;
                let starts = [0, end.min(16), end.max(16) - 16, end];
                starts
                    .iter()
                    .flat_map(|&at| bytes[at..at + 16].to_vec())
                    .collect()
            }
            len => [bytes, &[0; 64][len..]].concat(),
        };
        let state = times(state, sum.wrapping_add(pairs(&last, &hash.last)));
        (state % (1 << 32)) as u32 ^ (state >> 32) as u32
    }

    #[test]
    fn the_hash_of_every_length_is_that_of_the_paper() {
        let (hash, mut rng) = (ContentHash::new(19), Rng::new(24));
        for len in 0..1_500 {
            let mut bytes: Vec<u8> = vec![0; len];
            rng.fill(&mut bytes);
            assert_eq!(hash.of(&bytes), by_hand(&hash, &bytes), "{len} bytes");
        }
    }

    #[test]
    fn secrets_are_of_the_seed_and_none_is_another() {
        let hash = ContentHash::new(7);
        let mut all: Vec<u32> = hash
            .last
            .iter()
            .chain(hash.chunks.iter().flatten())
            .flatten()
            .copied()
            .collect();
        let other = ContentHash::new(8);
        assert!(
            hash.last
                .as_flattened()
                .iter()
                .zip(other.last.as_flattened())
                .all(|(one, other)| one != other)
        );
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 16 * 5);
    }

    #[test]
    fn two_packets_of_one_length_have_the_same_hash_for_one_seed_in_many() {
        // One bit of difference, in the words that are multiplied with each other and in others.
        let (one, mut other) = ([0_u8; 40], [0_u8; 40]);
        (other[0], other[16]) = (1, 1);
        let same = (0..100_000)
            .filter(|&seed| ContentHash::new(seed).of(&one) == ContentHash::new(seed).of(&other))
            .count();
        assert!(same <= 2, "{same} of 100,000 seeds");
    }
}
