//! Symbol and board together are the instrument: a fixed table from both to a position. Open addressing,
//! linear probing, at most half full.

use alloc::{boxed::Box, vec};
use core::hint::black_box;
use tickwire_market::Symbol;

/// A symbol of up to 16 and a board of up to 8 characters, padded with NUL.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key(u64, u64, u64);

/// Word by word: a key was made a moment ago, and loads wider than its stores would wait for them.
impl PartialEq for Key {
    #[inline(always)]
    fn eq(&self, other: &Key) -> bool {
        (self.0 ^ other.0) | (self.1 ^ other.1) | (self.2 ^ other.2) == 0
    }
}

impl Eq for Key {}

impl Key {
    /// `None` without a symbol, and for longer ones (the exchange's have at most 12 and 4 characters).
    #[inline(always)]
    pub(super) fn new(symbol: &[u8], board: &[u8]) -> Option<Key> {
        let (first, second) = match symbol.len() {
            1..=8 => (symbol, &[][..]),
            9..=16 => symbol.split_at(8),
            _ => return None,
        };
        (board.len() <= 8).then(|| Key(word(first), word(second), word(board)))
    }

    /// The board alone.
    pub(super) fn board(self) -> u64 {
        self.2
    }

    #[inline(always)]
    fn hash(self) -> u64 {
        let Key(a, b, c) = self;
        let mixed = (a ^ c.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b;
        mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }
}

/// A board as it stands in a [`Key`].
pub(super) fn board_word(board: &[u8]) -> u64 {
    word(board.get(..8).unwrap_or(board))
}

/// Up to eight bytes as a number; two loads that may overlap instead of a loop.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    if let Some(all) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*all);
    }
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(low), Some(high)) => {
            let high = u64::from(u32::from_le_bytes(*high));
            u64::from(u32::from_le_bytes(*low)) | high << (8 * (bytes.len() - 4))
        }
        _ => bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// Keys to positions from 1 on in order of appearance. Nothing is ever removed.
pub(super) struct Keys {
    /// Position 0 is an empty slot.
    slots: Box<[(Key, u32)]>,
    /// The answer given last: entries of one instrument come in runs.
    last: (Key, u32),
    len: u32,
    max: u32,
}

impl Keys {
    pub(super) fn new(max: u32) -> Keys {
        Keys {
            slots: vec![(Key::default(), 0); (max as usize * 2).next_power_of_two()].into(),
            last: (Key::default(), 0),
            len: 0,
            max,
        }
    }

    /// With room for one, whose position will be this, at least 1.
    pub(super) fn of_one(position: u32) -> Keys {
        Keys {
            len: position - 1,
            max: position,
            ..Keys::new(1)
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Its position, 0 if it has none.
    #[inline(always)]
    pub(super) fn find(&mut self, key: Key) -> u32 {
        if self.last.0 != key {
            self.last = (key, self.slots[self.probe(key)].1);
        }
        self.last.1
    }

    /// Reads where an instrument stands by what it is called, so that it is in the caches: for a thread that
    /// waits.
    pub(super) fn fetch(&self, name: &[u8], board: u64) {
        let symbol = name.split(|byte| *byte == b'@').next().unwrap_or(name);
        if let Some(key) = Key::new(symbol, b"") {
            black_box(self.slots[self.probe(Key(key.0, key.1, board))].1);
        }
    }

    /// A new position; `None` when all are taken.
    pub(super) fn enter(&mut self, key: Key) -> Option<u32> {
        if self.len == self.max {
            return None;
        }
        let slot = self.probe(key);
        self.len += 1;
        self.slots[slot] = (key, self.len);
        self.last = self.slots[slot];
        Some(self.len)
    }

    #[inline(always)]
    fn probe(&self, key: Key) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = key.hash() as usize & mask;
        while self.slots[slot].1 != 0 && self.slots[slot].0 != key {
            slot = (slot + 1) & mask;
        }
        slot
    }
}

/// What an instrument is called: its symbol, on boards other than the main one with the board behind an `@`.
pub(super) fn name(symbol: &[u8], board: &[u8], main_board: &[u8]) -> Option<Symbol> {
    if board == main_board || board.is_empty() {
        return Symbol::new(symbol);
    }
    let mut text = [0; 25];
    let length = symbol.len() + 1 + board.len();
    text.get_mut(..symbol.len())?.copy_from_slice(symbol);
    *text.get_mut(symbol.len())? = b'@';
    text.get_mut(symbol.len() + 1..length)?.copy_from_slice(board);
    Symbol::new(&text[..length])
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use tickwire_testdata::Rng;

    #[test]
    fn every_length_of_symbol_and_board_is_a_key_of_its_own() {
        let (text, mut seen) = (b"ABCDEFGHIJKLMNOP", BTreeMap::new());
        for symbol in 1..=16 {
            for board in 0..=8 {
                let key = Key::new(&text[..symbol], &text[..board]).unwrap();
                assert_eq!(seen.insert((key.0, key.1, key.2), (symbol, board)), None);
            }
        }
        assert_eq!(Key::new(b"", b"TQBR"), None);
        assert_eq!(Key::new(b"ABCDEFGHIJKLMNOPQ", b"TQBR"), None);
        assert_eq!(Key::new(b"A", b"ABCDEFGHI"), None);
    }

    #[test]
    fn positions_are_those_of_a_map_and_a_full_table_refuses() {
        let (mut keys, mut map, mut rng) = (Keys::new(50), BTreeMap::new(), Rng::new(3));
        for _ in 0..10_000 {
            let symbol = std::format!("S{}", rng.below(70));
            let board: &[u8] = if rng.chance(1, 2) { b"TQBR" } else { b"EQRP" };
            let key = Key::new(symbol.as_bytes(), board).unwrap();
            let words = (key.0, key.1, key.2);
            let known = map.get(&words).copied().unwrap_or(0);
            assert_eq!(keys.find(key), known);
            if known == 0 {
                let entered = keys.enter(key);
                assert_eq!(entered.is_some(), map.len() < 50);
                map.extend(entered.map(|position| (words, position)));
            }
        }
        assert_eq!(keys.len(), 50);
    }

    #[test]
    fn only_other_boards_are_in_the_name() {
        assert_eq!(name(b"SBER", b"TQBR", b"TQBR"), Symbol::new(b"SBER"));
        assert_eq!(name(b"SBER", b"EQRP", b"TQBR"), Symbol::new(b"SBER@EQRP"));
        assert_eq!(name(b"SBER", b"", b"TQBR"), Symbol::new(b"SBER"));
        assert_eq!(name(b"ABCDEFGHIJKLMNOP", b"ABCDEFGH", b""), None);
    }
}
