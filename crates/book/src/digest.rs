//! One number for the contents of a book, the same for every implementation that holds the same levels.

use tickwire_market::{InstrumentId, Level, OrderId, Side, Volume};

/// A running 64-bit hash over levels or orders. Not for untrusted comparison: it finds differences, not
/// attackers.
///
/// A book's digest is: its instrument, then each side (bids, asks) with its levels best first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0x9E37_79B9_7F4A_7C15)
    }
}

impl Digest {
    /// Starts the part of one book.
    #[inline]
    pub fn book(&mut self, instrument: InstrumentId) {
        self.word(instrument.0 as u64 | 1 << 40);
    }

    /// Adds one level.
    #[inline]
    pub fn level(&mut self, side: Side, level: &Level) {
        self.word((side as u64) << 32 | level.orders as u64);
        self.word(level.price.raw() as u64);
        self.word(level.qty.0);
    }

    /// Adds one order of a queue.
    #[inline]
    pub fn order(&mut self, id: OrderId, qty: Volume) {
        self.word(id.0);
        self.word(qty.0);
    }

    /// Adds one number.
    #[inline]
    pub fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        self.0 = mixed ^ (mixed >> 32);
    }

    /// The digest so far.
    #[inline]
    pub fn finish(self) -> u64 {
        self.0
    }
}
