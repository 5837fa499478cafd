//! What the latest packets held, as a hash of each: the lines of a feed carry the same bytes, and where they
//! do not one of them is false.
//!
//! The hash begins with a number that a sender does not know, so that he cannot make two packets of one hash;
//! 32 bits of it are kept, so that one forged packet in four thousand million passes unseen. Packets that
//! begin with the same message are compared. Where the lines have been cut into packets alike so far, a copy
//! with another number of messages differs too; lines that are cut differently are compared where they happen
//! to agree in that.

use alloc::{boxed::Box, vec};

/// By number of the first message, modulo the length: hash (32 bits), session (8), the number's next bits
/// (16), count (8). 0: nothing.
pub(crate) struct Contents {
    slots: Box<[u64]>,
    shift: u32,
    seed: u64,
    /// How often everything was forgotten, modulo 256: what an earlier count left is nothing.
    session: u8,
    /// Copies of this session that held the same.
    same: u32,
    /// The lines are cut into packets differently.
    cut_differently: bool,
}

/// So many copies alike show that the lines are cut alike.
const CUT_ALIKE: u32 = 64;

impl Contents {
    /// Of so many messages, rounded up to a power of two; 0: nothing is kept and nothing differs.
    pub(crate) fn new(messages: u32, seed: u64) -> Contents {
        let length = match messages {
            0 => 0,
            n => (n as usize).next_power_of_two(),
        };
        Contents {
            slots: vec![0; length].into(),
            shift: length.max(1).trailing_zeros(),
            seed,
            session: 0,
            same: 0,
            cut_differently: false,
        }
    }

    /// Keeps what a packet holds.
    #[inline]
    pub(crate) fn note(&mut self, first: u64, count: u32, bytes: &[u8]) {
        if self.slots.is_empty() {
            return;
        }
        let at = (first as usize) & (self.slots.len() - 1);
        self.slots[at] = self.entry(first, count, hash(self.seed, bytes));
    }

    /// Whether an earlier copy of a packet held something else.
    #[inline]
    pub(crate) fn differs(&mut self, first: u64, count: u32, bytes: &[u8]) -> bool {
        let at = (first as usize) & self.slots.len().wrapping_sub(1);
        let Some(&kept) = self.slots.get(at) else {
            return false;
        };
        let this = self.entry(first, count, hash(self.seed, bytes));
        if kept == this {
            self.same = self.same.saturating_add(1);
            return false;
        }
        kept != 0 && self.is_odd((kept ^ this) as u32)
    }

    /// Whether a copy that is not the same shows that one is false, by the difference of the lower halves.
    #[cold]
    fn is_odd(&mut self, difference: u32) -> bool {
        match (difference, difference >> 8) {
            (0, _) => true,
            // The same number, and another count.
            (_, 0) => {
                self.cut_differently |= self.same < CUT_ALIKE;
                !self.cut_differently
            }
            _ => false, // another packet's place
        }
    }

    /// Whether there is an earlier copy.
    pub(crate) fn has(&self, first: u64) -> bool {
        let at = (first as usize) & self.slots.len().wrapping_sub(1);
        let this = self.entry(first, 0, 0) as u32;
        let same = |kept: u64| kept != 0 && (kept as u32 ^ this) >> 8 == 0;
        self.slots.get(at).is_some_and(|&kept| same(kept))
    }

    /// The numbers begin anew.
    pub(crate) fn clear(&mut self) {
        (self.same, self.cut_differently) = (0, false);
        self.forget();
    }

    /// What was kept may be of packets that nobody has sent.
    pub(crate) fn forget(&mut self) {
        self.session = self.session.wrapping_add(1);
        if self.session == 0 {
            self.slots.fill(0);
        }
    }

    /// Session, number and count in the lower half, never 0 (a packet has a message), the hash in the upper.
    #[inline(always)]
    fn entry(&self, first: u64, count: u32, hash: u32) -> u64 {
        let turn = first >> self.shift & 0xFFFF;
        u64::from(hash) << 32 | u64::from(self.session) << 24 | turn << 8 | u64::from(count.min(255))
    }
}

/// Folded multiplications of 16 bytes each, as wyhash has them, in four lanes. What is multiplied depends on
/// the bytes and on keys that a sender does not know, not on the multiplication before, so that none waits
/// for another: a lane only turns and adds what comes out, and turning makes blocks that have changed places
/// differ. The last bytes are read together with some of those before them.
#[inline]
fn hash(seed: u64, bytes: &[u8]) -> u32 {
    let keys = Keys {
        low: seed ^ bytes.len() as u64,
        high: seed.rotate_left(32) ^ 0xA076_1D64_78BD_642F,
    };
    let mut lanes = LANES;
    if let Some(last) = bytes.last_chunk::<64>() {
        let (chunks, rest) = bytes.as_chunks::<64>();
        for chunk in chunks {
            keys.take(&mut lanes, chunk);
        }
        if !rest.is_empty() {
            keys.take(&mut lanes, last);
        }
    } else if let Some(last) = bytes.last_chunk::<16>() {
        let (blocks, rest) = bytes.as_chunks::<16>();
        for (lane, block) in lanes.iter_mut().zip(blocks) {
            *lane = keys.fold(*lane, block);
        }
        if !rest.is_empty() {
            lanes[3] = keys.fold(lanes[3], last);
        }
    } else {
        let mut block = [0; 16];
        block[..bytes.len()].copy_from_slice(bytes);
        lanes[0] = keys.fold(lanes[0], &block);
    }
    let [first, second, third, fourth] = lanes;
    let pairs = [
        product(first ^ keys.high, second ^ keys.low),
        product(third ^ keys.low, fourth ^ keys.high),
    ];
    let state = product(pairs[0] ^ LANES[1], pairs[1] ^ LANES[2]) ^ pairs[0].rotate_left(23);
    (state ^ state >> 32) as u32
}

/// What tells the four apart (wyhash's secrets).
const LANES: [u64; 4] = [
    0x2D35_8DCC_AA6C_78A5,
    0xE703_7ED1_A0B4_28DB,
    0x8EBC_6AF0_9C88_C6E3,
    0x5899_65CC_7537_4CC3,
];

/// What bytes are mixed with before they are multiplied; `low` is of the length, too.
#[derive(Clone, Copy)]
struct Keys {
    low: u64,
    high: u64,
}

impl Keys {
    #[inline(always)]
    fn take(self, lanes: &mut [u64; 4], chunk: &[u8; 64]) {
        let (blocks, _) = chunk.as_chunks();
        for (lane, block) in lanes.iter_mut().zip(blocks) {
            *lane = self.fold(*lane, block);
        }
    }

    /// The lane is turned, so that the order of blocks counts.
    #[inline(always)]
    fn fold(self, lane: u64, block: &[u8; 16]) -> u64 {
        let whole = u128::from_le_bytes(*block);
        let (low, high) = (whole as u64, (whole >> 64) as u64);
        lane.rotate_left(23)
            .wrapping_add(product(low ^ self.low, high ^ self.high))
    }
}

/// Both halves of a product in one.
#[inline(always)]
fn product(low: u64, high: u64) -> u64 {
    let product = u128::from(low) * u128::from(high);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use tickwire_testdata::Rng;

    #[test]
    fn a_copy_is_the_same_and_every_changed_bit_differs() {
        let mut rng = Rng::new(22);
        let mut contents = Contents::new(1000, 7);
        for length in [1, 15, 16, 17, 36, 63, 64, 65, 100, 128, 191, 1400] {
            let mut bytes: Vec<u8> = vec![0; length];
            rng.fill(&mut bytes);
            contents.note(5000, 3, &bytes);
            assert!(!contents.differs(5000, 3, &bytes) && contents.has(5000));
            for bit in 0..length * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(contents.differs(5000, 3, &bytes), "length {length}, bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            assert!(contents.differs(5000, 3, &bytes[1..]) || length == 1);
        }
    }

    #[test]
    fn blocks_that_have_changed_places_differ() {
        let mut bytes: Vec<u8> = vec![0; 200];
        Rng::new(23).fill(&mut bytes);
        let before = hash(7, &bytes);
        for (one, other) in (0..12).flat_map(|one| (0..one).map(move |other| (16 * one, 16 * other))) {
            let mut swapped = bytes.clone();
            (0..16).for_each(|at| swapped.swap(one + at, other + at));
            assert_ne!(hash(7, &swapped), before, "{one} and {other}");
        }
        let hashes: alloc::collections::BTreeSet<u32> =
            (0..300).map(|length| hash(7, &vec![0; length])).collect();
        assert_eq!(hashes.len(), 300, "nothing but zeros, by length");
    }

    #[test]
    fn what_was_cut_otherwise_or_is_too_old_is_not_compared() {
        let mut contents = Contents::new(16, 7);
        contents.note(3, 2, b"ab");
        assert!(
            contents.differs(3, 2, b"xy") && !contents.differs(3, 1, b"a") && !contents.differs(4, 2, b"xy")
        );
        assert!(!contents.differs(3 + 16, 2, b"xy"), "another turn");
        contents.note(3 + 16, 2, b"cd");
        assert!(!contents.differs(3, 2, b"xy"), "forgotten");
        contents.clear();
        assert!(!contents.has(3 + 16));
        let mut none = Contents::new(0, 7);
        none.note(3, 2, b"ab");
        assert!(!none.differs(3, 2, b"xy"));
    }

    #[test]
    fn where_the_lines_were_cut_alike_another_cut_differs() {
        let mut contents = Contents::new(1024, 7);
        for n in 0..70 {
            contents.note(3 * n, 3, b"abc");
            assert!(!contents.differs(3 * n, 3, b"abc"));
        }
        assert!(contents.differs(207, 1, b"a"));
        contents.clear();
        contents.note(3, 3, b"abc");
        assert!(!contents.differs(3, 1, b"a"), "nobody knows yet");
        for n in 10..100 {
            contents.note(3 * n, 3, b"abc");
            assert!(!contents.differs(3 * n, 3, b"abc"));
        }
        assert!(!contents.differs(30, 1, b"a"), "they are cut differently");
        assert!(contents.differs(30, 3, b"abx"));
        for _ in 0..300 {
            contents.clear();
            assert!(!contents.has(30) && !contents.differs(30, 3, b"xyz"));
        }
    }

    #[test]
    fn the_seed_decides_so_that_nobody_else_can_find_two_of_one_hash() {
        let (one, other) = (hash(1, b"0123456789abcdef0"), hash(2, b"0123456789abcdef0"));
        assert_ne!(one, other);
    }
}
