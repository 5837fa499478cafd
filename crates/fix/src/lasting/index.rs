//! Where records begin: of each block of the ring, the first. Two bytes for 4 KiB, of fixed size, whatever
//! messages come.

use alloc::boxed::Box;
use alloc::vec;

/// Words of a block.
pub(super) const BLOCK: u64 = 512;
/// No record begins in the block.
const NONE: u16 = u16::MAX;

/// See the module's description. Positions are those of the endless stream.
pub(super) struct BlockIndex {
    /// Offset of the first record that begins in each block of the ring.
    first: Box<[u16]>,
    /// The first block that no record is known to begin in.
    next: u64,
}

impl BlockIndex {
    /// Of a ring of so many words, a power of two and at least one block.
    pub(super) fn new(ring: u64) -> BlockIndex {
        BlockIndex {
            first: vec![NONE; (ring / BLOCK) as usize].into_boxed_slice(),
            next: 0,
        }
    }

    #[inline]
    fn slot(&self, block: u64) -> usize {
        (block & (self.first.len() as u64 - 1)) as usize
    }

    /// Where the first record of a block begins. What is there of a block that nothing was noted for yet is
    /// of a lap ago.
    fn start(&self, block: u64) -> Option<u64> {
        let offset = self.first[self.slot(block)];
        (offset != NONE && block < self.next).then(|| block * BLOCK + u64::from(offset))
    }

    /// A record of so many words begins here, behind all others.
    #[inline]
    pub(super) fn note(&mut self, at: u64, words: u64) {
        let block = at / BLOCK;
        if block >= self.next {
            // Damage may have taken all that began in the blocks between.
            for passed in self.next.max(block.saturating_sub(self.first.len() as u64))..block {
                let slot = self.slot(passed);
                self.first[slot] = NONE;
            }
            let slot = self.slot(block);
            self.first[slot] = (at % BLOCK) as u16;
            self.next = block + 1;
        }
        for spanned in block + 1..=(at + words - 1) / BLOCK {
            let slot = self.slot(spanned);
            self.first[slot] = NONE;
        }
    }

    /// No record is known any more.
    pub(super) fn clear(&mut self) {
        self.first.fill(NONE);
        self.next = 0;
    }

    /// No record begins from here on any more.
    pub(super) fn cut(&mut self, at: u64) {
        let block = at / BLOCK;
        let is_known = self.start(block).is_some_and(|start| start < at);
        self.next = self.next.min(block + u64::from(is_known));
    }

    /// The first known record from the beginning of a block on.
    pub(super) fn first_from(&self, at: u64, end: u64) -> Option<u64> {
        let blocks = at / BLOCK..=end.saturating_sub(1) / BLOCK;
        blocks.into_iter().find_map(|block| self.start(block))
    }

    /// From where to look for a record, of those between `begin` and `end`: the last known one that
    /// `is_before` says is not behind it, or `begin`.
    pub(super) fn search(&self, begin: u64, end: u64, is_before: impl Fn(u64) -> bool) -> u64 {
        // The block of `begin` may be that of `end` a lap ago: what is known of it is of the newer one.
        let (mut low, mut high) = (begin / BLOCK, end.saturating_sub(1) / BLOCK);
        let mut from = begin;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let known = (low + 1..=middle)
                .rev()
                .find_map(|block| Some((block, self.start(block)?)));
            match known {
                Some((_, at)) if is_before(at) => (low, from) = (middle, at),
                Some((block, _)) => high = block - 1,
                None => low = middle,
            }
        }
        from
    }
}
