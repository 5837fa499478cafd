//! A bad network: loses, duplicates and reorders datagrams of one line. A wrapper over the link, seeded.

use alloc::vec;
use alloc::vec::Vec;

use crate::random::Random;

/// What goes wrong, in parts per million of the datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImpairConfig {
    /// One seed, one run; give each line its own.
    pub seed: u64,
    /// Never sent.
    pub loss_ppm: u32,
    /// Sent twice.
    pub duplicate_ppm: u32,
    /// Sent after up to `reorder_depth` later ones.
    pub reorder_ppm: u32,
    /// How many later datagrams may overtake, at most 64; 0 is no reordering.
    pub reorder_depth: u32,
}

/// Datagrams held back at once; when all places are taken the next one is sent at once.
const HELD_MAX: usize = 64;
/// The largest UDP payload of an Ethernet frame is 1,472 bytes; longer datagrams are never held back.
const DATAGRAM_MAX: usize = 2048;

struct DelayedDatagram {
    bytes: Vec<u8>,
    length: usize,
    /// 0: the place is free.
    wait: u32,
}

/// How often what went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Impaired {
    /// Datagrams offered.
    pub offered: u64,
    /// Lost.
    pub lost: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Held back.
    pub reordered: u64,
}

/// One line's trouble.
pub struct Impair {
    config: ImpairConfig,
    random: Random,
    held: Vec<DelayedDatagram>,
    /// Of the next ones, how many are lost whatever is drawn.
    lose: u32,
    counts: Impaired,
}

impl Impair {
    /// A line with this trouble.
    pub fn new(config: ImpairConfig) -> Impair {
        let places = if config.reorder_ppm > 0 && config.reorder_depth > 0 {
            HELD_MAX
        } else {
            0
        };
        Impair {
            config,
            random: Random::new(config.seed ^ 0x1111_0A17),
            held: (0..places)
                .map(|_| DelayedDatagram {
                    bytes: vec![0; DATAGRAM_MAX],
                    length: 0,
                    wait: 0,
                })
                .collect(),
            lose: 0,
            counts: Impaired::default(),
        }
    }

    /// Sends a datagram, or not, or twice, or later; and those held back whose time has come.
    pub fn send(&mut self, datagram: &[u8], out: &mut impl FnMut(&[u8])) {
        self.counts.offered += 1;
        if self.lose > 0 {
            self.lose -= 1;
            self.counts.lost += 1;
        } else if self.random.ppm(self.config.loss_ppm) {
            self.counts.lost += 1;
        } else if self.random.ppm(self.config.reorder_ppm) && self.hold(datagram) {
            self.counts.reordered += 1;
            return;
        } else {
            out(datagram);
            if self.random.ppm(self.config.duplicate_ppm) {
                self.counts.duplicated += 1;
                out(datagram);
            }
        }
        self.release(1, out);
    }

    /// Loses the next so many datagrams, besides what is drawn; those held back still come.
    pub fn lose(&mut self, next: u32) {
        self.lose = self.lose.saturating_add(next);
    }

    /// Sends all that is held back (the end of a session, a pause).
    pub fn flush(&mut self, out: &mut impl FnMut(&[u8])) {
        self.release(u32::MAX, out);
    }

    /// What happened so far.
    pub fn counts(&self) -> Impaired {
        self.counts
    }

    fn hold(&mut self, datagram: &[u8]) -> bool {
        let wait = 1 + self.random.below(u64::from(self.config.reorder_depth.min(64))) as u32;
        let Some(place) = self.held.iter_mut().find(|held| held.wait == 0) else {
            return false;
        };
        let Some(bytes) = place.bytes.get_mut(..datagram.len()) else {
            return false;
        };
        bytes.copy_from_slice(datagram);
        place.length = datagram.len();
        place.wait = wait;
        true
    }

    fn release(&mut self, passed: u32, out: &mut impl FnMut(&[u8])) {
        for held in self.held.iter_mut().filter(|held| held.wait > 0) {
            held.wait = held.wait.saturating_sub(passed);
            if held.wait == 0 {
                out(&held.bytes[..held.length]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    fn run(config: ImpairConfig) -> (Vec<u32>, Impaired) {
        let mut line = Impair::new(config);
        let mut seen = Vec::new();
        let mut out = |bytes: &[u8]| seen.push(u32::from_be_bytes(bytes.try_into().unwrap()));
        for i in 0..100_000_u32 {
            line.send(&i.to_be_bytes(), &mut out);
        }
        line.flush(&mut out);
        (seen, line.counts())
    }

    #[test]
    fn a_good_line_changes_nothing() {
        let (seen, _) = run(ImpairConfig::default());
        assert!(seen.into_iter().eq(0..100_000));
    }

    #[test]
    fn what_is_to_be_lost_is_lost_and_nothing_behind_it() {
        let mut line = Impair::new(ImpairConfig::default());
        let mut seen = Vec::new();
        for i in 0..10_u8 {
            if i == 3 || i == 4 {
                line.lose(2);
            }
            line.send(&[i], &mut |bytes: &[u8]| seen.push(bytes[0]));
        }
        assert_eq!((seen, line.counts().lost), (std::vec![0, 1, 2, 7, 8, 9], 4));
    }

    #[test]
    fn a_bad_line_loses_doubles_and_reorders_as_often_as_configured() {
        let config = ImpairConfig {
            seed: 1,
            loss_ppm: 10_000,
            duplicate_ppm: 20_000,
            reorder_ppm: 30_000,
            reorder_depth: 5,
        };
        let (mut seen, counts) = run(config);
        assert_eq!(run(config).0, seen, "one seed, one run");
        assert!((800..1_200).contains(&counts.lost), "{counts:?}");
        assert!((1_700..2_300).contains(&counts.duplicated), "{counts:?}");
        assert!((2_600..3_400).contains(&counts.reordered), "{counts:?}");
        assert!(!seen.is_sorted());
        let late = seen.iter().scan(0, |max, &i| {
            *max = i.max(*max);
            Some(*max - i)
        });
        assert!(
            late.max().unwrap() <= 5 + 64,
            "held back by a bounded number of later ones"
        );
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len() as u64, 100_000 - counts.lost);
    }
}
