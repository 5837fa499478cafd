//! Instruments subscribed to in mid-session: what comes of each is held until a snapshot says what was
//! before.
//!
//! ```text
//!  subscribed at message s        snapshot: holds everything up to L       told: Clear, Gap, the snapshot, what was held
//!  ───────────┬───────────────────────────────┬─────────────────────────── from L+1 on, Recovered
//!             └─ s, s+1, ... held ────────────┘    it counts if L+1 >= s
//! ```
//! An instrument that joins does not pass the filter, so that one that does pays nothing for it; its messages
//! are found on the way of those nobody wants. The numbers are whatever the venue's snapshot speaks of: the
//! channel's messages or packets, or the instrument's own updates.

use crate::join_round::Ids;
use alloc::{boxed::Box, collections::VecDeque, vec};
use tickwire_market::{InstrumentId, Nanos, SeqNo};

/// How many messages can be held. When there is one too many the oldest goes: its instrument then needs a
/// snapshot that holds it, the next one or the one after that.
const MESSAGES_MAX: usize = 1 << 14;
/// How many bytes they can have together.
const BYTES_MAX: usize = 1 << 20;

/// Marks the number of an instrument whose snapshot has been asked for.
const ASKED: u64 = 1 << 63;

/// A message held.
#[derive(Clone, Copy)]
pub struct Record {
    id: InstrumentId,
    /// The message's number.
    pub seq: SeqNo,
    /// When it came.
    pub received: Nanos,
    /// What the decoder has to know beside the bytes.
    pub note: u64,
    start: u32,
    length: u32,
}

/// Messages held, in the order they came. Without capacity until the first instrument joins would be cheaper,
/// but memory is taken at construction only.
#[derive(Default)]
pub struct HeldMessages {
    records: VecDeque<Record>,
    bytes: Box<[u8]>,
    messages_max: usize,
}

/// What came of joins since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JoinTally {
    /// Instruments whose books had to be made right.
    pub begun: u64,
    /// Instruments whose books were.
    pub done: u64,
    /// Times it had to be tried again: a snapshot that was refused, cut off, too old or had a hole behind it,
    /// or more held back than there is room for.
    pub failed: u64,
}

/// See the module's description. All memory is taken at construction.
pub struct Joins {
    /// What came of the joins so far.
    pub tally: JoinTally,
    /// Those of which the tally says that they have begun and not that they are done.
    unright: Ids,
    /// By instrument: from which number on everything was held; 0: it does not join.
    since: Box<[u64]>,
    count: u32,
    /// How many of them have not been asked for.
    unasked: u32,
    held: HeldMessages,
}

impl Joins {
    /// None, of instruments numbered below `instruments_max`.
    pub fn new(instruments_max: usize) -> Joins {
        Joins::with_room(instruments_max, instruments_max, MESSAGES_MAX, BYTES_MAX)
    }

    /// None, of instruments numbered below `instruments_max` of which nothing has to be held; snapshots are
    /// for those below `snapshots_max`.
    pub fn without_room(instruments_max: usize, snapshots_max: usize) -> Joins {
        Joins::with_room(instruments_max, snapshots_max, 0, 0)
    }

    fn with_room(instruments_max: usize, snapshots_max: usize, messages: usize, bytes: usize) -> Joins {
        Joins {
            tally: JoinTally::default(),
            unright: Ids::new(instruments_max),
            since: vec![0; snapshots_max].into(),
            count: 0,
            unasked: 0,
            held: HeldMessages {
                records: VecDeque::with_capacity(messages),
                bytes: vec![0; bytes].into(),
                messages_max: messages,
            },
        }
    }

    /// Whether nothing joins.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many join, and how many of them have not been asked for.
    pub fn counts(&self) -> (u32, u32) {
        (self.count, self.unasked)
    }

    /// Whether an instrument joins.
    #[inline(always)]
    pub fn has(&self, id: InstrumentId) -> bool {
        self.count != 0 && self.since.get(id.index()).is_some_and(|&since| since != 0)
    }

    /// An instrument joins: everything from `next` (above 0) on will be held. One that joined already does so
    /// anew.
    pub fn begin(&mut self, id: InstrumentId, next: u64) {
        self.expect(id);
        self.end(id);
        if let Some(since) = self.since.get_mut(id.index()) {
            *since = next.max(1);
            self.count += 1;
            self.unasked += 1;
        }
    }

    /// An instrument's book is not right, and nothing has to be held until it is.
    pub fn expect(&mut self, id: InstrumentId) {
        self.tally.begun += u64::from(self.unright.set(id, true));
    }

    /// An instrument's book is right: it joins no more.
    pub fn finish(&mut self, id: InstrumentId) {
        self.end(id);
        self.finish_book(id);
    }

    /// An instrument's book is right; it joins on, for what is beside the book.
    pub fn finish_book(&mut self, id: InstrumentId) {
        self.tally.done += u64::from(self.unright.set(id, false));
    }

    /// Nobody wants an instrument: it joins no more.
    pub fn leave(&mut self, id: InstrumentId) {
        self.end(id);
        self.unright.set(id, false);
    }

    /// Nothing is held of an instrument any more, whether its book is right or not. Whether anything was to
    /// be.
    pub fn end(&mut self, id: InstrumentId) -> bool {
        let Some(since) = self.since.get_mut(id.index()).filter(|since| **since != 0) else {
            return false;
        };
        self.unasked -= u32::from(*since & ASKED == 0);
        self.count -= 1;
        *since = 0;
        if self.count == 0 {
            self.held.records.clear();
        }
        true
    }

    /// Nothing joins any more: all books are made right otherwise. Tells who did.
    pub fn end_all(&mut self, mut each: impl FnMut(InstrumentId)) {
        self.tally.done += u64::from(self.unright.len());
        self.unright.clear();
        if self.count == 0 {
            return;
        }
        for (number, since) in (0..).zip(&mut self.since) {
            if core::mem::take(since) != 0 {
                each(InstrumentId(number));
            }
        }
        (self.count, self.unasked) = (0, 0);
        self.held.records.clear();
    }

    /// Nobody wants anything: nothing joins any more.
    pub fn leave_all(&mut self) {
        self.unright.clear();
        self.since.fill(0);
        (self.count, self.unasked) = (0, 0);
        self.held.records.clear();
    }

    /// Every instrument that joins.
    pub fn each(&self, mut each: impl FnMut(InstrumentId)) {
        let joining = (0..).zip(&self.since).filter(|(_, since)| **since != 0);
        joining
            .take(self.count as usize)
            .for_each(|(number, _)| each(InstrumentId(number)));
    }

    /// Keeps a message of an instrument that joins. Instruments of one message share its bytes.
    #[cold]
    pub fn hold(&mut self, record: (InstrumentId, SeqNo, Nanos, u64), message: &[u8]) {
        let (id, seq, received, note) = record;
        let room = self.held.bytes.len();
        let is_same = |last: &Record| (last.seq, last.received) == (seq, received);
        let last = self.held.records.back().copied();
        let mut start = last.map_or(0, |last| (last.start + last.length) as usize);
        match last {
            Some(last) if is_same(&last) && self.held.bytes(&last) == message => {
                if last.id == id {
                    return;
                }
                start = last.start as usize;
                while self.held.records.len() >= self.held.messages_max {
                    self.drop_oldest();
                }
            }
            _ => {
                if message.len() > room {
                    return self.miss(id, seq.0);
                }
                if start + message.len() > room {
                    // What lies behind is the oldest.
                    while self
                        .held
                        .records
                        .front()
                        .is_some_and(|r| r.start as usize >= start)
                    {
                        self.drop_oldest();
                    }
                    start = 0;
                }
                let end = start + message.len();
                let overlaps = |r: &Record| (r.start as usize) < end && start < (r.start + r.length) as usize;
                while self.held.records.front().is_some_and(overlaps)
                    || self.held.records.len() >= self.held.messages_max
                {
                    self.drop_oldest();
                }
                self.held.bytes[start..end].copy_from_slice(message);
            }
        }
        self.held.records.push_back(Record {
            id,
            seq,
            received,
            note,
            start: start as u32,
            length: message.len() as u32,
        });
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.held.records.pop_front() {
            self.miss(oldest.id, oldest.seq.0);
        }
    }

    /// A message of an instrument is not held: its snapshot must hold it.
    pub fn miss(&mut self, id: InstrumentId, seq: u64) {
        match self.since.get_mut(id.index()) {
            Some(since) if *since & !ASKED != 0 => {
                *since = (*since & !ASKED).max(seq + 1) | *since & ASKED;
            }
            _ => {}
        }
    }

    /// The channel goes on elsewhere, further on or before what it has said already: `next` is the first
    /// number of each instrument that will come. What lies before must be in the snapshots.
    pub fn go_on_at(&mut self, next: impl Fn(InstrumentId) -> u64) {
        self.held.records.clear();
        let joining = (0..).zip(&mut self.since).filter(|(_, since)| **since != 0);
        for (number, since) in joining.take(self.count as usize) {
            *since = next(InstrumentId(number)).max(1) | *since & ASKED;
        }
    }

    /// Whether a snapshot that holds everything up to `last` joins what is held of this instrument.
    pub fn covers(&self, id: InstrumentId, last: u64) -> bool {
        let since = self.since.get(id.index()).map_or(0, |since| since & !ASKED);
        since != 0 && last.saturating_add(1) >= since
    }

    /// The same, when that snapshot begins: one that does not is of no use to an instrument that joins, which
    /// is counted.
    pub fn is_met(&mut self, id: InstrumentId, last: u64) -> bool {
        let is_met = self.covers(id, last);
        self.tally.failed += u64::from(!is_met && self.has(id));
        is_met
    }

    /// The next instrument that has not been asked for: it has been, then.
    pub fn ask(&mut self) -> Option<InstrumentId> {
        if self.unasked == 0 {
            return None;
        }
        let waits = |since: &u64| *since != 0 && since & ASKED == 0;
        let at = self.since.iter().position(waits)?;
        self.since[at] |= ASKED;
        self.unasked -= 1;
        Some(InstrumentId(at as u32))
    }

    /// All have been asked for, or (`false`) none.
    pub fn set_asked(&mut self, asked: bool) {
        if self.count == 0 {
            return;
        }
        for since in self.since.iter_mut().filter(|since| **since != 0) {
            *since = *since & !ASKED | if asked { ASKED } else { 0 };
        }
        self.unasked = if asked { 0 } else { self.count };
    }

    /// Takes out what is held, to be told; give it back with [`Joins::give_back`].
    pub fn take_held(&mut self) -> HeldMessages {
        core::mem::take(&mut self.held)
    }

    /// See [`Joins::take_held`].
    pub fn give_back(&mut self, held: HeldMessages) {
        self.held = held;
        if self.count == 0 {
            self.held.records.clear();
        }
    }
}

impl HeldMessages {
    /// What is held of an instrument behind `last`, in the order it came.
    pub fn of(&self, id: InstrumentId, last: u64) -> impl Iterator<Item = (&Record, &[u8])> {
        let wanted = self.records.iter().filter(move |r| r.id == id && r.seq.0 > last);
        wanted.map(|record| (record, self.bytes(record)))
    }

    fn bytes(&self, record: &Record) -> &[u8] {
        &self.bytes[record.start as usize..(record.start + record.length) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use tickwire_testdata::Rng;

    fn numbers(joins: &mut Joins, id: u32, last: u64) -> Vec<u64> {
        let held = joins.take_held();
        let of: Vec<u64> = held
            .of(InstrumentId(id), last)
            .map(|(record, bytes)| {
                assert!(bytes.iter().all(|&byte| byte == record.seq.0 as u8), "{bytes:?}");
                record.seq.0
            })
            .collect();
        joins.give_back(held);
        of
    }

    fn hold(joins: &mut Joins, id: u32, seq: u64, length: usize) {
        let bytes = vec![seq as u8; length];
        joins.hold((InstrumentId(id), SeqNo(seq), Nanos(seq), 0), &bytes);
    }

    #[test]
    fn what_is_held_is_found_behind_the_snapshot() {
        let mut joins = Joins::new(10);
        joins.begin(InstrumentId(3), 5);
        joins.begin(InstrumentId(4), 5);
        for seq in 5..9 {
            hold(&mut joins, 3, seq, 20);
            hold(&mut joins, 4, seq, 20);
            hold(&mut joins, 4, seq, 20);
        }
        assert_eq!(numbers(&mut joins, 3, 6), [7, 8]);
        assert_eq!(numbers(&mut joins, 4, 4), [5, 6, 7, 8]);
        assert!(joins.covers(InstrumentId(3), 4) && !joins.covers(InstrumentId(3), 3));
        assert!(!joins.covers(InstrumentId(5), 100), "it does not join");
        assert!(joins.end(InstrumentId(3)) && !joins.end(InstrumentId(3)));
        assert!(joins.has(InstrumentId(4)) && !joins.has(InstrumentId(3)));
        joins.go_on_at(|_| 20);
        assert!(!joins.covers(InstrumentId(4), 18) && joins.covers(InstrumentId(4), 19));
        let mut ended = Vec::new();
        joins.end_all(|id| ended.push(id.0));
        assert_eq!((ended, joins.is_empty()), (vec![4], true));
        assert_eq!(numbers(&mut joins, 4, 0), [0; 0]);
    }

    #[test]
    fn everyone_is_asked_for_once_until_all_are_asked_for_again() {
        let mut joins = Joins::new(10);
        for id in [7, 2] {
            joins.begin(InstrumentId(id), 1);
        }
        assert_eq!(joins.ask(), Some(InstrumentId(2)));
        joins.begin(InstrumentId(1), 1);
        assert_eq!(
            (joins.ask(), joins.ask()),
            (Some(InstrumentId(1)), Some(InstrumentId(7)))
        );
        assert_eq!((joins.ask(), joins.counts()), (None, (3, 0)));
        joins.set_asked(false);
        joins.end(InstrumentId(7));
        assert_eq!(joins.counts(), (2, 2));
        joins.set_asked(true);
        assert!(joins.covers(InstrumentId(1), 0), "asked for or not");
        joins.end(InstrumentId(1));
        assert_eq!(joins.counts(), (1, 0));
    }

    /// Whatever is held or dropped: behind what a snapshot must hold, nothing is missing, and every byte is
    /// its own.
    #[test]
    fn what_has_no_room_must_be_in_the_snapshot() {
        for seed in 1..=20 {
            let mut rng = Rng::new(seed);
            let mut joins = Joins::with_room(4, 4, 16, 200);
            let mut came: [Vec<u64>; 4] = Default::default();
            for id in 1..4 {
                joins.begin(InstrumentId(id), 1);
            }
            for seq in 1..500 {
                let id = 1 + rng.below(3) as u32;
                let length = rng.below(if seq % 50 == 0 { 300 } else { 60 }) as usize;
                hold(&mut joins, id, seq, length);
                came[id as usize].push(seq);
                for id in 1..4 {
                    let covered = (0..=seq).find(|&last| joins.covers(InstrumentId(id), last));
                    let covered = covered.expect("a snapshot of now always joins");
                    let expected: Vec<u64> = came[id as usize]
                        .iter()
                        .copied()
                        .filter(|&s| s > covered)
                        .collect();
                    assert_eq!(
                        numbers(&mut joins, id, covered),
                        expected,
                        "seed {seed}, {id}, {seq}"
                    );
                }
            }
        }
    }
}
