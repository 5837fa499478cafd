//! Which streams of a recording are two lines of one channel: those whose messages of the same number are the
//! same bytes.
//!
//! ```text
//! message (number, bytes) ─► every number at first, later every 16th
//!    ├─ finder: the same number and bytes on another stream?   ─► the two are compared from here on
//!    └─ the stream's own table, by number ─► each partner: the same bytes, or different ones?
//! ```
//! Streams of two venues may begin alike (the same symbols, the same states), so the same bytes alone do not
//! decide: what differs counts against a pair. Memory does not grow with the recording.

/// Messages of a stream of which every one is compared; of later ones every [`LATER`]th number.
const ALL_UNTIL: u64 = 4096;
const LATER: u64 = 16;
/// Numbers a stream remembers: how far one line may lag behind the other.
const REMEMBERED: usize = 1024;
/// Messages remembered over all streams, to find partners.
const FOUND_BITS: u32 = 15;
/// Streams that one stream is compared with at most.
const PARTNERS_MAX: usize = 8;

/// What a stream remembers of a message.
#[derive(Clone, Copy, Default)]
struct Seen {
    number: u64,
    /// Of its bytes; 0: the slot is empty.
    hash: u64,
    /// By partner: it has been compared with this one's message of the number.
    compared: u8,
}

/// Another stream that carried the same message once.
#[derive(Clone, Copy)]
struct Partner {
    stream: usize,
    same: u64,
    different: u64,
}

/// What one stream remembers.
#[derive(Default)]
struct Memory {
    samples: u64,
    seen: Vec<Seen>,
    partners: Vec<Partner>,
}

/// Compares streams. They are known by their index.
pub(super) struct Lines {
    streams: Vec<Memory>,
    /// Number and bytes hashed, and the last stream that carried them.
    found: Vec<(u64, u32)>,
}

/// What two streams have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Agreement {
    pub(super) same: u64,
    pub(super) different: u64,
}

impl Lines {
    pub(super) fn new() -> Lines {
        Lines {
            streams: Vec::new(),
            found: vec![(0, 0); 1 << FOUND_BITS],
        }
    }

    /// One more stream; its index.
    pub(super) fn add(&mut self) -> usize {
        self.streams.push(Memory::default());
        self.streams.len() - 1
    }

    /// Takes a message of a stream into account. `kind` tells streams apart that never are lines of one
    /// channel: protocol, session or unit.
    pub(super) fn note(&mut self, stream: usize, kind: u64, number: u64, message: &[u8]) {
        let memory = &mut self.streams[stream];
        if memory.samples >= ALL_UNTIL && !number.is_multiple_of(LATER) {
            return;
        }
        memory.samples += 1;
        if memory.seen.is_empty() {
            memory.seen = vec![Seen::default(); REMEMBERED];
        }
        let hash = hash(message).max(1);
        let slot = slot_of(number);
        let before = memory.seen[slot];
        let mut now = Seen {
            number,
            hash,
            // A copy on the same line is no second message.
            compared: if (before.number, before.hash) == (number, hash) {
                before.compared
            } else {
                0
            },
        };
        self.find(stream, mix(kind ^ mix(number) ^ hash));
        for at in 0..self.streams[stream].partners.len() {
            let other = self.streams[stream].partners[at].stream;
            let back = self.streams[other]
                .partners
                .iter()
                .position(|p| p.stream == stream)
                .unwrap_or_default();
            let Some(theirs) = self.streams[other].seen.get_mut(slot) else {
                continue;
            };
            if theirs.hash == 0 || theirs.number != number || theirs.compared & 1 << back != 0 {
                continue;
            }
            theirs.compared |= 1 << back;
            let is_same = theirs.hash == hash;
            // A different one may be of the turn before: then this turn's is still to come.
            now.compared |= u8::from(is_same) << at;
            for (of, at) in [(stream, at), (other, back)] {
                let partner = &mut self.streams[of].partners[at];
                partner.same += u64::from(is_same);
                partner.different += u64::from(!is_same);
            }
        }
        self.streams[stream].seen[slot] = now;
    }

    /// Looks for another stream that carried the same message, and remembers this one.
    fn find(&mut self, stream: usize, key: u64) {
        let entry = &mut self.found[(key >> (64 - FOUND_BITS)) as usize];
        let (last, other) = *entry;
        *entry = (key, stream as u32);
        let other = other as usize;
        if last != key || other == stream {
            return;
        }
        let is_known = self.streams[stream].partners.iter().any(|p| p.stream == other);
        let has_room = |s: usize| self.streams[s].partners.len() < PARTNERS_MAX;
        if is_known || !has_room(stream) || !has_room(other) {
            return;
        }
        for (of, partner) in [(stream, other), (other, stream)] {
            self.streams[of].partners.push(Partner {
                stream: partner,
                same: 0,
                different: 0,
            });
        }
    }

    /// How far two streams agree.
    #[cfg(test)]
    fn agreement(&self, one: usize, other: usize) -> Agreement {
        self.partners(one)
            .find(|(partner, _)| *partner == other)
            .map_or(Agreement::default(), |(_, agreement)| agreement)
    }

    /// The streams that one was compared with.
    pub(super) fn partners(&self, stream: usize) -> impl Iterator<Item = (usize, Agreement)> {
        self.streams[stream].partners.iter().map(|p| {
            let agreement = Agreement {
                same: p.same,
                different: p.different,
            };
            (p.stream, agreement)
        })
    }
}

impl Agreement {
    /// Whether they are lines of one channel. Numbers of a live line stand for one message all day: next to
    /// nothing may differ (a datagram damaged on its way). Those of a loop come again with every turn, and a
    /// lost packet of one line is then compared with the next turn's of the other.
    pub(super) fn is_one_channel(self, is_loop: bool) -> bool {
        let allowed = if is_loop { 4 } else { 1000 };
        self.same > 0 && self.different * allowed <= self.same
    }
}

fn slot_of(number: u64) -> usize {
    (mix(number) >> 32) as usize % REMEMBERED
}

/// Spreads the bits of a number (the finaliser of splitmix64).
pub(super) fn mix(mut n: u64) -> u64 {
    n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ n >> 31
}

/// A hash of bytes, eight at a time.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut tail = [0; 8];
    tail[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&tail]);
    words.fold(bytes.len() as u64, |sum, word| {
        mix(sum.rotate_left(5) ^ u64::from_le_bytes(*word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams that carry `message(stream, number)`, one after the other for every number.
    fn lines(numbers: u64, streams: usize, message: impl Fn(usize, u64) -> Option<u64>) -> Lines {
        let mut lines = Lines::new();
        (0..streams).for_each(|_| _ = lines.add());
        for number in 0..numbers {
            for stream in 0..streams {
                if let Some(message) = message(stream, number) {
                    lines.note(stream, 1, number, &message.to_le_bytes());
                }
            }
        }
        lines
    }

    #[test]
    fn two_lines_agree_whatever_each_has_lost() {
        let lines = lines(100_000, 2, |stream, number| {
            (number % 10 != stream as u64).then_some(number * 7)
        });
        let agreement = lines.agreement(0, 1);
        assert_eq!(agreement.different, 0, "{agreement:?}");
        assert!(
            agreement.same > 5_000 && agreement.is_one_channel(false),
            "{agreement:?}"
        );
    }

    #[test]
    fn streams_that_begin_alike_and_go_on_differently_are_two_channels() {
        let lines = lines(3_000, 2, |stream, number| {
            Some(if number < 2_990 {
                number
            } else {
                number * 10 + stream as u64
            })
        });
        let agreement = lines.agreement(0, 1);
        assert_eq!((agreement.same, agreement.different), (2_990, 10));
        assert!(!agreement.is_one_channel(false));
    }

    #[test]
    fn lines_of_a_loop_are_compared_turn_by_turn() {
        // 100 numbers a turn, contents change with every turn, one of twenty packets is lost.
        let mut lines = Lines::new();
        let (a, b) = (lines.add(), lines.add());
        for turn in 0_u64..50 {
            for number in 0..100 {
                for stream in [a, b] {
                    if mix(turn << 32 | number << 8 | stream as u64).is_multiple_of(20) {
                        continue;
                    }
                    lines.note(stream, 1, number, &(turn * 1000 + number).to_le_bytes());
                }
            }
        }
        let agreement = lines.agreement(a, b);
        assert!(agreement.is_one_channel(true), "{agreement:?}");
    }

    #[test]
    fn streams_with_nothing_in_common_are_never_compared() {
        let lines = lines(1_000, 3, |stream, number| Some(number * 3 + stream as u64));
        assert_eq!(lines.partners(0).count(), 0);
        assert!(!Agreement::default().is_one_channel(true));
    }

    #[test]
    fn a_hash_tells_lengths_and_every_byte_apart() {
        assert_ne!(hash(b""), hash(b"\0"));
        assert_ne!(hash(b"12345678"), hash(b"12345678\0"));
        assert_ne!(hash(b"12345678a"), hash(b"12345678b"));
    }
}
