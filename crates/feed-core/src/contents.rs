//! What the latest packets held, as a hash of each: the lines of a feed carry the same bytes, and where they
//! do not one of them is false.
//!
//! The hash begins with a number that a sender does not know, so that he cannot make two packets of one hash;
//! 32 bits of it are kept, so that one forged packet in four thousand million passes unseen. Packets that
//! begin with the same message are compared. Where the lines have been cut into packets alike so far, a copy
//! with another number of messages differs too; lines that are cut differently are compared where they happen
//! to agree in that.

use crate::content_hash::ContentHash;
use alloc::{boxed::Box, vec};
use core::hint::black_box;

/// By number of the first message, modulo the length: hash (32 bits), session (8), the number's next bits
/// (16), count (8). 0: nothing.
pub(crate) struct Contents {
    slots: Box<[u64]>,
    shift: u32,
    hash: ContentHash,
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
            hash: ContentHash::new(seed),
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
        self.slots[at] = self.entry(first, count, self.hash.of(bytes));
    }

    /// Whether an earlier copy of a packet held something else.
    #[inline]
    pub(crate) fn differs(&mut self, first: u64, count: u32, bytes: &[u8]) -> bool {
        let at = (first as usize) & self.slots.len().wrapping_sub(1);
        let Some(&kept) = self.slots.get(at) else {
            return false;
        };
        let this = self.entry(first, count, self.hash.of(bytes));
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

    /// Reads where a packet will be kept that begins with this message.
    pub(crate) fn fetch(&self, first: u64) {
        let at = (first as usize) & self.slots.len().wrapping_sub(1);
        black_box(self.slots.get(at).copied());
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use tickwire_testdata::Rng;

    fn hash(seed: u64, bytes: &[u8]) -> u32 {
        ContentHash::new(seed).of(bytes)
    }

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
