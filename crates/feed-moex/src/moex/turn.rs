//! A turn of the snapshot loop: what has been taken of it, and when that is all.
//!
//! A loop's packets are numbered from 1 in every cycle; nothing says how many there are. All is taken when
//! every instrument that the definitions name was, or, where some are not in the loop, after two cycles in a
//! row of which no packet was missing and nothing was refused.

use crate::Line;
use alloc::{boxed::Box, vec};

/// Numbers that a cycle can have; the exchange's equities loop has some thousands.
const NUMBERS: u32 = 1 << 17;

/// A set of packet numbers.
pub(super) struct Numbers {
    bits: Box<[u64]>,
    len: u32,
}

impl Numbers {
    pub(super) fn new() -> Numbers {
        Numbers {
            bits: vec![0; NUMBERS as usize / 64].into(),
            len: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.bits.fill(0);
        self.len = 0;
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Adds a number; `false` if it was there, or is none that a cycle has.
    pub(super) fn add(&mut self, number: u32) -> bool {
        let bit = 1 << (number % 64);
        match self.bits.get_mut(number as usize / 64) {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                self.len += 1;
                true
            }
            _ => false,
        }
    }

    fn has(&self, number: u32) -> bool {
        let word = self.bits.get(number as usize / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 != 0)
    }
}

/// One line's cycle.
struct Cycle {
    seen: Numbers,
    high: u32,
    /// The latest `SendingTime`.
    newest: u64,
    /// Nothing of it was refused.
    is_clean: bool,
    /// How many in a row were whole.
    whole: u32,
}

impl Cycle {
    fn new() -> Cycle {
        Cycle {
            seen: Numbers::new(),
            high: 0,
            newest: 0,
            is_clean: true,
            whole: 0,
        }
    }

    /// A packet of the loop. It begins a cycle if its number came before and it was sent after everything
    /// seen so far; otherwise a number that came before is a copy.
    fn note(&mut self, number: u32, stamp: u64) {
        let begins = stamp > self.newest && (number <= 1 || self.seen.has(number));
        if begins {
            let is_whole = self.is_clean && self.high > 0 && self.seen.has(1) && self.seen.len() == self.high;
            self.whole = if is_whole && number <= 1 {
                self.whole + 1
            } else {
                0
            };
            self.seen.clear();
            (self.high, self.is_clean) = (0, true);
        }
        self.seen.add(number);
        self.high = self.high.max(number);
        self.newest = self.newest.max(stamp);
    }

    fn forget(&mut self) {
        self.seen.clear();
        (self.high, self.newest, self.is_clean, self.whole) = (0, 0, true, 0);
    }
}

/// See the module's description.
pub(super) struct Turn {
    /// Counts up; 0 before the first.
    pub(super) number: u32,
    /// Whether one is being taken.
    pub(super) is_on: bool,
    /// Live packets from here on are held: snapshots that end before it are too old.
    pub(super) floor: u64,
    /// Snapshots that end at this packet or behind it are of other numbers than the lines'.
    pub(super) ceiling: u64,
    /// Instruments taken.
    pub(super) taken: u32,
    /// The last live packet that the oldest snapshot taken holds; `u64::MAX` before the first.
    pub(super) oldest: u64,
    line: Line,
    cycles: [Cycle; 2],
}

impl Turn {
    pub(super) fn new() -> Turn {
        Turn {
            number: 0,
            is_on: false,
            floor: 0,
            ceiling: u64::MAX,
            taken: 0,
            oldest: u64::MAX,
            line: Line::A,
            cycles: [Cycle::new(), Cycle::new()],
        }
    }

    pub(super) fn begin(&mut self, floor: u64) {
        self.number += 1;
        self.is_on = true;
        (self.floor, self.taken, self.oldest) = (floor, 0, u64::MAX);
        self.cycles.iter_mut().for_each(Cycle::forget);
    }

    /// On which line the next packet came.
    pub(super) fn set_line(&mut self, line: Line) {
        self.line = line;
    }

    pub(super) fn note(&mut self, number: u32, stamp: u64) {
        self.cycle().note(number, stamp);
    }

    /// A snapshot cannot be used: this cycle does not give all.
    pub(super) fn refuse(&mut self) {
        self.cycle().is_clean = false;
    }

    /// Whether a line brought two whole cycles.
    pub(super) fn is_round(&self) -> bool {
        self.cycles.iter().any(|cycle| cycle.whole >= 2)
    }

    fn cycle(&mut self) -> &mut Cycle {
        &mut self.cycles[usize::from(self.line != Line::A)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_whole_cycles_in_a_row_are_all() {
        let mut turn = Turn::new();
        turn.begin(1);
        let mut stamp = 0;
        let mut cycle = |turn: &mut Turn, numbers: &[u32]| {
            for &number in numbers {
                stamp += 1;
                turn.note(number, stamp);
            }
            turn.is_round()
        };
        assert!(!cycle(&mut turn, &[4, 5]), "the middle of a cycle");
        assert!(!cycle(&mut turn, &[1, 2, 3, 4, 5]));
        assert!(!cycle(&mut turn, &[1, 2, 4, 3, 5]), "one was whole");
        assert!(cycle(&mut turn, &[1]), "two were");
        turn.begin(1);
        assert!(!turn.is_round());
        cycle(&mut turn, &[1, 2, 3]);
        cycle(&mut turn, &[1, 3]);
        assert!(!cycle(&mut turn, &[1, 2, 3]), "2 was missing");
        assert!(!cycle(&mut turn, &[1, 2, 3]));
        turn.refuse();
        assert!(!cycle(&mut turn, &[1, 2, 3]), "one was refused");
    }

    #[test]
    fn copies_begin_no_cycle() {
        let mut turn = Turn::new();
        turn.begin(1);
        for (number, stamp) in [(1, 10), (2, 11), (1, 10), (3, 12), (2, 11), (3, 12)] {
            turn.note(number, stamp);
        }
        assert_eq!((turn.cycles[0].high, turn.cycles[0].whole), (3, 0));
        turn.note(1, 13);
        assert_eq!((turn.cycles[0].high, turn.cycles[0].whole), (1, 1));
        turn.set_line(Line::B);
        turn.note(1, 13);
        assert_eq!(turn.cycles[1].whole, 0, "each line has its own");
    }
}
