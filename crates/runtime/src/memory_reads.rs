//! What a read takes that no cache answers, looked at again and again while a benchmark runs: where a machine
//! shares its memory with others that changes by the minute, and a figure does not show it.

use crate::clock::{Clock, tsc};

/// A line of the caches, in words.
const LINE: usize = 16;
/// 64 MiB: more than the last cache that a core shares with others, on most machines.
const LINES: usize = 1 << 20;
/// Reads of one look: about a millisecond.
const READS: u32 = 10_000;

/// Memory whose lines are read in an order that nobody can foresee, each saying which one comes next, so that
/// no read begins before the one before it has ended.
#[derive(Debug)]
pub struct MemoryReads {
    /// In the first word of each line the next line.
    words: Vec<u32>,
    at: u32,
    /// Of every look, picoseconds a read.
    looks: Vec<u64>,
}

impl Default for MemoryReads {
    fn default() -> MemoryReads {
        MemoryReads::new()
    }
}

impl MemoryReads {
    /// Takes the memory, 64 MiB, and writes the order into it.
    pub fn new() -> MemoryReads {
        let mut order: Vec<u32> = (0..LINES as u32).collect();
        let mut random = 1_u64;
        // One circle through all lines: S. Sattolo, "An algorithm to generate a random cyclic permutation",
        // Information Processing Letters 22 (1986).
        for last in (1..LINES).rev() {
            random = random
                .wrapping_mul(0x5851_F42D_4C95_7F2D)
                .wrapping_add(0x1405_7B7E_F767_814F);
            order.swap(last, (random >> 33) as usize % last);
        }
        let mut words = vec![0; LINES * LINE];
        for (line, next) in words.chunks_exact_mut(LINE).zip(order) {
            line[0] = next;
        }
        MemoryReads {
            words,
            at: 0,
            looks: Vec::new(),
        }
    }

    /// Reads a few thousand lines. Not while something else is measured.
    pub fn look(&mut self, clock: &Clock) {
        let begin = tsc();
        for _ in 0..READS {
            self.at = self.words[self.at as usize * LINE];
        }
        let took = clock.span_ns(tsc().wrapping_sub(begin));
        self.looks.push(took * 1_000 / u64::from(READS));
    }

    /// The least and the most that a read took in any look, nanoseconds; `None` before the first one.
    pub fn range(&self) -> Option<(f64, f64)> {
        let [least, most] = [self.looks.iter().min()?, self.looks.iter().max()?];
        Some((*least as f64 / 1e3, *most as f64 / 1e3))
    }

    /// The same in words.
    pub fn said(&self) -> Option<String> {
        let (least, most) = self.range()?;
        let looks = self.looks.len();
        Some(format!(
            "{least:.0} to {most:.0} ns for one that no cache answers ({looks} looks in between)"
        ))
    }

    /// That memory has changed too much in between for figures that wait for it to be compared: by more than
    /// a quarter.
    pub fn warning(&self) -> Option<String> {
        let (least, most) = self.range()?;
        (most > 1.25 * least).then(|| {
            format!(
                "a read from memory took {:.1} times as long in one moment of this run as in another: figures that wait for memory hold for their moment",
                most / least
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_once_before_one_is_read_again() {
        let reads = MemoryReads::new();
        let mut seen = vec![false; LINES];
        let mut at = 0;
        for _ in 0..LINES {
            assert!(!std::mem::replace(&mut seen[at], true), "line {at} twice");
            at = reads.words[at * LINE] as usize;
        }
        assert_eq!(at, 0, "one circle");
    }

    #[test]
    fn looks_are_said_with_the_least_and_the_most_and_a_change_is_warned_of() {
        let mut reads = MemoryReads::new();
        assert_eq!((reads.said(), reads.warning()), (None, None));
        reads.look(&Clock::calibrate());
        assert!(
            reads
                .range()
                .is_some_and(|(least, most)| least > 0.0 && least == most)
        );
        assert_eq!(reads.warning(), None);
        reads.looks = vec![90_000, 112_000];
        assert_eq!(
            reads.said().as_deref(),
            Some("90 to 112 ns for one that no cache answers (2 looks in between)")
        );
        assert_eq!(reads.warning(), None);
        reads.looks.push(180_000);
        assert!(
            reads
                .warning()
                .is_some_and(|warning| warning.contains("2.0 times as long"))
        );
    }
}
