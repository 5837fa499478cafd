//! What the exchange was last told of every quote, what it may be told, and which of the wanted prices differ
//! from that.

use super::ladder::{BLOCK, NO_ASK, NO_BID, Row};
use alloc::boxed::Box;
use alloc::vec;
use tickwire_market::MassQuoteEntry;

/// Which quotes of a block differ from what is live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Differences {
    /// A side is better for those who hit it than it should be: it must move now.
    pub(super) exposed: u64,
    /// Any difference, the exposed included.
    pub(super) changed: u64,
}

/// Quotes by their place in delta order, whole blocks; what lies beyond the last is never wanted.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) live_bids: Box<[u16]>,
    pub(super) live_asks: Box<[u16]>,
    /// The highest bid allowed, [`NO_BID`] for none.
    pub(super) bid_caps: Box<[u16]>,
    /// The lowest ask allowed, [`NO_ASK`] for none.
    pub(super) ask_floors: Box<[u16]>,
    /// Quotes whose last change was not answered yet, by block: not touched.
    pub(super) in_flight: Box<[u64]>,
}

impl Table {
    pub(super) fn new(quotes: usize) -> Table {
        let padded = quotes.next_multiple_of(BLOCK);
        Table {
            live_bids: vec![NO_BID; padded].into_boxed_slice(),
            live_asks: vec![NO_ASK; padded].into_boxed_slice(),
            bid_caps: vec![NO_BID; padded].into_boxed_slice(),
            ask_floors: vec![NO_ASK; padded].into_boxed_slice(),
            in_flight: vec![0; padded / BLOCK].into_boxed_slice(),
        }
    }

    pub(super) fn blocks(&self) -> usize {
        self.in_flight.len()
    }

    /// What the exchange should be told of a quote.
    #[inline]
    pub(super) fn wanted(&self, row: &Row<'_>, quote: usize) -> (u16, u16) {
        self.block(row, quote / BLOCK).of(quote % BLOCK)
    }

    /// What the exchange should be told of the quotes of a block.
    #[inline(always)]
    pub(super) fn block<'a>(&'a self, row: &Row<'a>, block: usize) -> Block<'a> {
        let at = block * BLOCK..(block + 1) * BLOCK;
        Block {
            bids: array(&row.bids[at.clone()]),
            asks: array(&row.asks[at.clone()]),
            caps: array(&self.bid_caps[at.clone()]),
            floors: array(&self.ask_floors[at]),
        }
    }

    /// Compares a block of a row with what is live. Without branches, in arrays, so that the compiler makes
    /// vectors of it.
    #[inline]
    pub(super) fn compare(&self, row: &Row<'_>, block: usize) -> Differences {
        let wanted = self.block(row, block);
        let at = block * BLOCK..(block + 1) * BLOCK;
        let live_bids = array(&self.live_bids[at.clone()]);
        let live_asks = array(&self.live_asks[at]);
        let (mut exposed, mut changed) = ([0_u8; BLOCK], [0_u8; BLOCK]);
        for i in 0..BLOCK {
            let (bid, ask) = wanted.of(i);
            exposed[i] = u8::from(bid < live_bids[i]) | u8::from(ask > live_asks[i]);
            changed[i] = u8::from(bid != live_bids[i]) | u8::from(ask != live_asks[i]);
        }
        let free = !self.in_flight[block];
        Differences {
            exposed: bits(&exposed) & free,
            changed: bits(&changed) & free,
        }
    }

    pub(super) fn set_in_flight(&mut self, quote: usize, is_in_flight: bool) {
        let bit = 1 << (quote % BLOCK);
        if is_in_flight {
            self.in_flight[quote / BLOCK] |= bit;
        } else {
            self.in_flight[quote / BLOCK] &= !bit;
        }
    }

    /// Marks the quotes of a message: each block's word is written once, not loaded again right behind its
    /// own store.
    #[inline]
    pub(super) fn set_all_in_flight(&mut self, entries: &[MassQuoteEntry]) {
        let (mut block, mut bits) = (0, 0);
        for entry in entries {
            let quote = usize::from(entry.quote);
            if quote / BLOCK != block {
                self.in_flight[block] |= bits;
                (block, bits) = (quote / BLOCK, 0);
            }
            bits |= 1 << (quote % BLOCK);
        }
        self.in_flight[block] |= bits;
    }

    pub(super) fn is_in_flight(&self, quote: usize) -> bool {
        self.in_flight[quote / BLOCK] & 1 << (quote % BLOCK) != 0
    }

    /// Nothing is live, nothing in flight.
    pub(super) fn clear(&mut self) {
        self.live_bids.fill(NO_BID);
        self.live_asks.fill(NO_ASK);
        self.in_flight.fill(0);
    }
}

/// See [`Table::block`].
pub(super) struct Block<'a> {
    bids: &'a [u16; BLOCK],
    asks: &'a [u16; BLOCK],
    caps: &'a [u16; BLOCK],
    floors: &'a [u16; BLOCK],
}

impl Block<'_> {
    /// The bid and the ask of a quote by its place in the block.
    #[inline(always)]
    pub(super) fn of(&self, place: usize) -> (u16, u16) {
        (
            self.bids[place].min(self.caps[place]),
            self.asks[place].max(self.floors[place]),
        )
    }
}

#[inline(always)]
pub(crate) fn array(slice: &[u16]) -> &[u16; BLOCK] {
    slice.try_into().expect("whole blocks")
}

/// The lowest bit of each byte, gathered: eight at a time by a multiplication that moves bit 8 i to bit 56 +
/// i.
#[inline(always)]
pub(crate) fn bits(flags: &[u8; BLOCK]) -> u64 {
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut all = 0;
    for (at, eight) in flags.chunks_exact(8).enumerate() {
        let word = u64::from_le_bytes(eight.try_into().expect("eight"));
        all |= (word.wrapping_mul(GATHER) >> 56) << (8 * at);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_block_is_compared_as_one_quote_at_a_time(
            row in proptest::collection::vec((0_u16..4, 65_532_u16..=65_535), BLOCK),
            live in proptest::collection::vec((0_u16..4, 65_532_u16..=65_535), BLOCK),
            caps in proptest::collection::vec((0_u16..4, 65_532_u16..=65_535), BLOCK),
            flying: u64,
        ) {
            let mut table = Table::new(BLOCK);
            let (bids, asks): (Vec<u16>, Vec<u16>) = row.into_iter().unzip();
            for quote in 0..BLOCK {
                (table.live_bids[quote], table.live_asks[quote]) = live[quote];
                (table.bid_caps[quote], table.ask_floors[quote]) = caps[quote];
                table.set_in_flight(quote, flying >> quote & 1 == 1);
            }
            let row = Row { bids: &bids, asks: &asks };
            let found = table.compare(&row, 0);
            for (quote, live) in live.iter().enumerate() {
                let (bid, ask) = table.wanted(&row, quote);
                let is_free = !table.is_in_flight(quote);
                let is_exposed = bid < live.0 || ask > live.1;
                prop_assert_eq!(found.exposed >> quote & 1 == 1, is_free && is_exposed);
                prop_assert_eq!(found.changed >> quote & 1 == 1, is_free && (bid, ask) != *live);
            }
        }
    }
}
