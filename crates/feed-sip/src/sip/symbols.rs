//! Symbols of 11 bytes to numbers: one slot of 24 bytes each, so that a look-up reads two words of the
//! message and, mostly, one cache line of the table.

use alloc::{boxed::Box, vec};
use tickwire_wire_sip::PaddedSymbol;

/// A symbol and its number; number 0: free.
#[derive(Clone, Copy)]
struct Slot {
    key: PaddedSymbol,
    number: u32,
}

const FREE: Slot = Slot {
    key: PaddedSymbol::long(&[0; 11]),
    number: 0,
};

/// Marks the number of a symbol that nobody wants any more.
const MUTED: u32 = 1 << 31;

/// Slots of 16 KiB.
const SPARSE: usize = 1024;

/// What is known of a symbol.
pub(super) enum Standing {
    Unknown,
    /// Wanted; its number.
    Wanted(u32),
    /// Known, and nobody wants it.
    Muted,
}

/// The table: open addressing, at most half full.
pub(super) struct Symbols {
    slots: Box<[Slot]>,
    len: usize,
}

impl Symbols {
    /// A table with room for this many. For few it is larger than it has to be, while it fits the first
    /// cache: most of what is looked up there is not in it, and ends at the first slot if that is free.
    pub(super) fn new(most: usize) -> Symbols {
        let most = most.max(1);
        let slots = (2 * most).max(SPARSE.min(32 * most));
        Symbols {
            slots: vec![FREE; slots.next_power_of_two()].into(),
            len: 0,
        }
    }

    /// Whether a further symbol needs a larger table.
    pub(super) fn is_full(&self) -> bool {
        self.len * 2 >= self.slots.len()
    }

    /// The number of a wanted symbol; 0: unknown, or muted.
    #[inline(always)]
    pub(super) fn wanted(&self, symbol: PaddedSymbol) -> u32 {
        let number = self.slots[self.place(symbol)].number;
        if number < MUTED { number } else { 0 }
    }

    /// What is known of a symbol, in one look.
    #[inline(always)]
    pub(super) fn look_up(&self, symbol: PaddedSymbol) -> Standing {
        match self.slots[self.place(symbol)].number {
            0 => Standing::Unknown,
            number if number < MUTED => Standing::Wanted(number),
            _ => Standing::Muted,
        }
    }

    /// The number of a symbol, muted or not; 0: unknown.
    pub(super) fn known(&self, symbol: PaddedSymbol) -> u32 {
        self.slots[self.place(symbol)].number & !MUTED
    }

    /// Gives a symbol a number above 0. There must be room, and it must have none.
    pub(super) fn enter(&mut self, symbol: PaddedSymbol, number: u32) {
        self.slots[self.place(symbol)] = Slot { key: symbol, number };
        self.len += 1;
    }

    /// Stops, or begins again, to want a known symbol; whether that is a change.
    pub(super) fn mute(&mut self, symbol: PaddedSymbol, is_muted: bool) -> bool {
        let slot = &mut self.slots[self.place(symbol)];
        let before = slot.number;
        if before != 0 {
            slot.number = before & !MUTED | if is_muted { MUTED } else { 0 };
        }
        slot.number != before
    }

    /// Twice the room. Not for the hot path.
    pub(super) fn grow(&mut self) {
        let mut larger = Symbols::new(self.slots.len());
        for slot in self.slots.iter().filter(|slot| slot.number != 0) {
            let at = larger.place(slot.key);
            larger.slots[at] = *slot;
        }
        larger.len = self.len;
        *self = larger;
    }

    /// Where a key is, or would be: half of the slots are free, so that the search ends.
    #[inline(always)]
    fn place(&self, key: PaddedSymbol) -> usize {
        let mask = self.slots.len() - 1;
        let (head, tail) = key.words();
        let mixed = (head ^ u64::from(tail) << 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut at = (mixed >> 32) as usize & mask;
        while self.slots[at].number != 0 && self.slots[at].key != key {
            at = (at + 1) & mask;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_that_differ_in_one_byte_have_their_own_numbers_and_a_grown_table_knows_them_all() {
        let mut symbols = Symbols::new(1);
        let of = |symbol: &[u8; 11]| PaddedSymbol::long(symbol);
        let all: alloc::vec::Vec<PaddedSymbol> = (0..11)
            .flat_map(|at| {
                (b'A'..=b'Z').map(move |letter| {
                    let mut symbol = *b"AAAAAAAAAAA";
                    symbol[at] = letter;
                    of(&symbol)
                })
            })
            .collect();
        let mut number = 0;
        for symbol in all {
            if symbols.known(symbol) == 0 {
                if symbols.is_full() {
                    symbols.grow();
                }
                number += 1;
                symbols.enter(symbol, number);
            }
        }
        assert_eq!(number, 11 * 25 + 1);
        assert_eq!(symbols.wanted(of(b"AAAAAAAAAAZ")), number);
        symbols.mute(of(b"AAAAAAAAAAZ"), true);
        symbols.grow();
        assert_eq!(
            (
                symbols.wanted(of(b"AAAAAAAAAAZ")),
                symbols.known(of(b"AAAAAAAAAAZ"))
            ),
            (0, number)
        );
        symbols.mute(of(b"AAAAAAAAAAZ"), false);
        assert_eq!(symbols.wanted(of(b"AAAAAAAAAAZ")), number);
        assert_eq!(symbols.wanted(of(&[0; 11])), 0);
        assert_eq!(symbols.wanted(of(b"           ")), 0);
    }
}
