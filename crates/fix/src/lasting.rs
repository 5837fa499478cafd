//! A store that outlives the process: sequence numbers and sent messages in words of memory that a file is behind.
//!
//! ```text
//! words 0       8          16                                                     capacity
//!       ┌───────┬──────────┬──────────┬──────────┬─────┬──────────────┬ ─ ─ ─ ─ ─┐
//!       │ fixed │ identity │ record   │ record   │ ... │ record       │          │   a ring: the oldest give way
//!       └───────┴──────────┴──────────┴──────────┴─────┴──────────────┴ ─ ─ ─ ─ ─┘
//! fixed:  magic · next_out · next_in · head · tail · resetting · period (head, tail: positions in the endless stream of words)
//! record: seq · length and hash · the message's bytes, padded to words
//! ```
//!
//! **What survives.** Every store is one word, and they come in an order that makes each prefix of them a whole state:
//! space is given up (`head`), the record written, then `tail` moved, then `next_out`. The process may be killed between any
//! two: the message is in the store and will be sent again when the peer asks, or it is not and was never sent. Words that
//! reached memory survive the process, not the machine; for that, sync the file (the owner's part, on another thread).
//! After a crash of the machine the records are checked by their hashes, and what follows the first wrong one is cut.

use crate::store::{Store, StoreFailed};
use alloc::boxed::Box;
use alloc::vec;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use tickwire_market::Nanos;

/// Memory that outlives the process.
pub trait Words {
    /// Its words, always the same ones.
    fn words(&self) -> &[AtomicU64];
}

impl Words for Box<[AtomicU64]> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

const MAGIC: u64 = u64::from_le_bytes(*b"TWFIXST1");
const NEXT_OUT: usize = 1;
const NEXT_IN: usize = 2;
const HEAD: usize = 3;
const TAIL: usize = 4;
const RESETTING: usize = 5;
const PERIOD: usize = 6;
const IDENTITY: usize = 8;
const IDENTITY_WORDS: usize = 8;
const RECORDS: usize = IDENTITY + IDENTITY_WORDS;
/// Number and length of a record.
const RECORD_HEAD: usize = 2;
/// The fewest words a store can be made of: 4 KiB.
const WORDS_MIN: usize = 512;
/// The longest message kept.
const MESSAGE_MAX: usize = 64 << 10;

/// Above every number and position that a session can reach, with room to add to it.
const NUMBER_MAX: u64 = 1 << 62;

/// Why memory is no store, or not this session's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// It holds something else.
    NotAStore,
    /// It is another session's.
    OtherSession,
    /// Its sequence numbers or positions cannot be right: none of a session's life comes near 2^62.
    Damaged,
    /// It has fewer words than this.
    TooSmall {
        /// The fewest.
        words: usize,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NotAStore => f.write_str("holds something else than a FIX store"),
            StoreError::OtherSession => f.write_str("is the store of another session"),
            StoreError::Damaged => {
                f.write_str("has sequence numbers that cannot be right: they were overwritten")
            }
            StoreError::TooSmall { words } => write!(f, "is smaller than {} bytes", words * 8),
        }
    }
}

impl core::error::Error for StoreError {}

/// What opening a store found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// Messages that can be sent again.
    pub messages: u64,
    /// Words after the last whole record, which were cut.
    pub cut_words: u64,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    seq: u64,
    at: u64,
}

/// See the module's description.
pub struct LastingStore<M> {
    memory: M,
    /// Positions of records by their number, modulo the slots.
    slots: Box<[Slot]>,
    /// A message as bytes.
    scratch: Box<[u8]>,
    /// Words of the ring, a power of two.
    capacity: u64,
    recovery: Recovery,
}

impl<M: fmt::Debug> fmt::Debug for LastingStore<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastingStore")
            .field("memory", &self.memory)
            .finish()
    }
}

/// A session's identity as words: up to 64 bytes, the rest folded in.
fn identity_words(identity: &[u8]) -> [u64; IDENTITY_WORDS] {
    let mut words = [0_u64; IDENTITY_WORDS];
    for (at, byte) in identity.iter().enumerate() {
        let word = &mut words[at / 8 % IDENTITY_WORDS];
        *word = word.rotate_left(8) ^ u64::from(*byte);
    }
    words
}

/// A hash of a record: four independent lanes, as one would wait for its own multiplications. Word `n` goes to lane `n % 4`.
struct Hash([u64; 4]);

impl Hash {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;

    #[inline]
    fn new(seq: u64, len: u64) -> Hash {
        Hash([seq ^ Hash::K, len.wrapping_mul(Hash::K), Hash::K, !Hash::K])
    }

    #[inline]
    fn take(&mut self, lane: usize, word: u64) {
        let lane = &mut self.0[lane % 4];
        *lane = (*lane ^ word).wrapping_mul(Hash::K).rotate_left(29);
    }

    #[inline]
    fn finish(self) -> u32 {
        let all = self.0.into_iter().fold(0_u64, |all, lane| {
            (all.rotate_left(17) ^ lane).wrapping_mul(Hash::K)
        });
        (all >> 32) as u32
    }
}

fn hash(seq: u64, len: u64, words: impl Iterator<Item = u64>) -> u32 {
    let mut hash = Hash::new(seq, len);
    words.enumerate().for_each(|(n, word)| hash.take(n, word));
    hash.finish()
}

/// Puts the words of a message into places for exactly as many, whole groups of four first; their hash goes on.
#[inline]
fn put_words(places: &[AtomicU64], message: &[u8], hash: &mut Hash) {
    let (groups, rest) = message.as_chunks::<32>();
    let (of_groups, of_rest) = places.split_at(groups.len() * 4);
    for (places, group) in of_groups.as_chunks::<4>().0.iter().zip(groups) {
        for (lane, (place, word)) in places.iter().zip(group.as_chunks::<8>().0).enumerate() {
            let word = u64::from_le_bytes(*word);
            place.store(word, Ordering::Release);
            hash.take(lane, word);
        }
    }
    for (lane, (place, bytes)) in of_rest.iter().zip(rest.chunks(8)).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        place.store(word, Ordering::Release);
        hash.take(lane, word);
    }
}

impl<M: Words> LastingStore<M> {
    /// Opens what is there, or begins anew in memory of zeros. `messages` is how many of the newest can be found for a resend.
    ///
    /// # Errors
    /// The memory holds something else, or another session's store: nothing is changed then.
    pub fn open(memory: M, identity: &[u8], messages: usize) -> Result<LastingStore<M>, StoreError> {
        let words = memory.words();
        if words.len() < WORDS_MIN {
            return Err(StoreError::TooSmall { words: WORDS_MIN });
        }
        let own = identity_words(identity);
        let load = |at: usize| words[at].load(Ordering::Relaxed);
        match load(0) {
            MAGIC => {
                if (0..IDENTITY_WORDS).any(|n| load(IDENTITY + n) != own[n]) {
                    return Err(StoreError::OtherSession);
                }
            }
            0 => {
                for (n, word) in own.into_iter().enumerate() {
                    words[IDENTITY + n].store(word, Ordering::Release);
                }
                for at in [HEAD, TAIL] {
                    words[at].store(0, Ordering::Release);
                }
                for at in [NEXT_OUT, NEXT_IN] {
                    words[at].store(1, Ordering::Release);
                }
                words[0].store(MAGIC, Ordering::Release);
            }
            _ => return Err(StoreError::NotAStore),
        }
        LastingStore::recovered(memory, messages)
    }

    /// Opens a copy of a store, whosever it is, to look at it.
    ///
    /// # Errors
    /// The memory holds something else, or numbers that cannot be right.
    pub fn inspect(memory: M, messages: usize) -> Result<LastingStore<M>, StoreError> {
        let words = memory.words();
        if words.len() < WORDS_MIN || words[0].load(Ordering::Relaxed) != MAGIC {
            return Err(StoreError::NotAStore);
        }
        LastingStore::recovered(memory, messages)
    }

    fn recovered(memory: M, messages: usize) -> Result<LastingStore<M>, StoreError> {
        let load = |at: usize| memory.words()[at].load(Ordering::Relaxed);
        let numbers = [NEXT_OUT, NEXT_IN, HEAD, TAIL];
        if numbers.into_iter().any(|at| load(at) >= NUMBER_MAX) {
            return Err(StoreError::Damaged);
        }
        let room = memory.words().len() - RECORDS;
        let mut store = LastingStore {
            memory,
            slots: vec![Slot::default(); messages.max(1).next_power_of_two()].into_boxed_slice(),
            scratch: vec![0; MESSAGE_MAX].into_boxed_slice(),
            capacity: 1 << room.ilog2(),
            recovery: Recovery::default(),
        };
        store.recover();
        Ok(store)
    }

    /// Hands out the messages that can be sent again, oldest first, with their numbers.
    pub fn for_each(&mut self, mut each: impl FnMut(u64, &[u8])) {
        let next = self.next_out();
        for seq in next.saturating_sub(self.slots.len() as u64)..next {
            if let Some(message) = self.get(seq) {
                each(seq, message);
            }
        }
    }

    /// What opening it found.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// The memory behind it.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    #[inline]
    fn load(&self, at: usize) -> u64 {
        self.memory.words()[at].load(Ordering::Relaxed)
    }

    /// Release: no earlier store of this thread comes after it, so a killed process leaves a prefix of its stores.
    #[inline]
    fn put(&self, at: usize, value: u64) {
        self.memory.words()[at].store(value, Ordering::Release);
    }

    /// The place of a position in the endless stream.
    #[inline]
    fn place(&self, at: u64) -> usize {
        RECORDS + (at & (self.capacity - 1)) as usize
    }

    /// Number, length and words of the record at a position, if it is whole and ends before `end`.
    fn record(&self, at: u64, end: u64) -> Option<(u64, usize, u64)> {
        let size = RECORD_HEAD as u64;
        if at + size > end {
            return None;
        }
        let (seq, second) = (self.load(self.place(at)), self.load(self.place(at + 1)));
        let len = (second & 0xFFFF_FFFF) as usize;
        let words = len.div_ceil(8) as u64;
        if len == 0 || len > MESSAGE_MAX || at + size + words > end {
            return None;
        }
        let body = (0..words).map(|n| self.load(self.place(at + size + n)));
        ((second >> 32) as u32 == hash(seq, len as u64, body)).then_some((seq, len, size + words))
    }

    /// Finds every record; cuts what follows the first that is not whole.
    fn recover(&mut self) {
        if self.load(RESETTING) != 0 {
            self.reset();
        }
        let (mut at, tail) = (self.load(HEAD), self.load(TAIL));
        if at > tail || tail - at > self.capacity {
            // The words that say where records are cannot be right: none is kept.
            at = tail;
            self.put(HEAD, tail);
        }
        let mut last = 0;
        while at < tail {
            let Some((seq, _, words)) = self
                .record(at, tail)
                .filter(|&(seq, ..)| seq > last && seq < NUMBER_MAX)
            else {
                break;
            };
            self.remember(seq, at);
            (last, at) = (seq, at + words);
            self.recovery.messages += 1;
        }
        self.recovery.cut_words = tail - at;
        if at < tail {
            self.put(TAIL, at);
        }
        // Killed between the record and its number.
        let next = self.load(NEXT_OUT).max(last + 1).max(1);
        self.put(NEXT_OUT, next);
        if self.load(NEXT_IN) == 0 {
            self.put(NEXT_IN, 1);
        }
    }

    fn remember(&mut self, seq: u64, at: u64) {
        let slot = seq as usize & (self.slots.len() - 1);
        self.slots[slot] = Slot { seq, at };
    }
}

impl<M: Words> Store for LastingStore<M> {
    #[inline]
    fn next_out(&self) -> u64 {
        self.load(NEXT_OUT)
    }

    #[inline]
    fn next_in(&self) -> u64 {
        self.load(NEXT_IN)
    }

    #[inline]
    fn set_next_out(&mut self, seq: u64) {
        self.put(NEXT_OUT, seq);
    }

    #[inline]
    fn set_next_in(&mut self, seq: u64) {
        self.put(NEXT_IN, seq);
    }

    /// Fails for a message longer than 64 KiB or the whole ring, which can then not be sent.
    #[inline]
    fn append(&mut self, seq: u64, message: &[u8]) -> Result<(), StoreFailed> {
        let words = message.len().div_ceil(8) as u64;
        let size = RECORD_HEAD as u64 + words;
        if message.is_empty() || message.len() > MESSAGE_MAX || size > self.capacity {
            return Err(StoreFailed);
        }
        let tail = self.load(TAIL);
        let mut head = self.load(HEAD);
        if tail + size - head > self.capacity {
            while tail + size - head > self.capacity {
                let second = self.load(self.place(head + 1));
                head += RECORD_HEAD as u64 + (second & 0xFFFF_FFFF).div_ceil(8);
            }
            self.put(HEAD, head);
        }
        let mut hash = Hash::new(seq, message.len() as u64);
        let ring = &self.memory.words()[RECORDS..RECORDS + self.capacity as usize];
        let first = self.place(tail + RECORD_HEAD as u64) - RECORDS;
        let words = words as usize;
        match ring.get(first..first + words) {
            Some(places) => put_words(places, message, &mut hash),
            None => {
                // Over the end of the ring and on from its beginning.
                for (n, bytes) in message.chunks(8).enumerate() {
                    let mut word = [0; 8];
                    word[..bytes.len()].copy_from_slice(bytes);
                    let word = u64::from_le_bytes(word);
                    ring[(first + n) & (ring.len() - 1)].store(word, Ordering::Release);
                    hash.take(n, word);
                }
            }
        }
        self.put(self.place(tail), seq);
        let second = message.len() as u64 | u64::from(hash.finish()) << 32;
        self.put(self.place(tail + 1), second);
        self.put(TAIL, tail + size);
        self.put(NEXT_OUT, seq + 1);
        self.remember(seq, tail);
        Ok(())
    }

    fn get(&mut self, seq: u64) -> Option<&[u8]> {
        let slot = self.slots[seq as usize & (self.slots.len() - 1)];
        if slot.seq != seq || seq == 0 || slot.at < self.load(HEAD) {
            return None;
        }
        let (found, len, words) = self.record(slot.at, self.load(TAIL))?;
        if found != seq {
            return None;
        }
        for n in RECORD_HEAD as u64..words {
            let at = (n as usize - RECORD_HEAD) * 8;
            let word = self.load(self.place(slot.at + n)).to_le_bytes();
            self.scratch[at..at + 8].copy_from_slice(&word);
        }
        Some(&self.scratch[..len])
    }

    fn reset(&mut self) {
        self.slots.fill(Slot::default());
        let tail = self.load(TAIL);
        // Whoever opens the store of a process that was killed in between finishes it.
        self.put(RESETTING, 1);
        self.put(HEAD, tail);
        self.put(NEXT_OUT, 1);
        self.put(NEXT_IN, 1);
        self.put(RESETTING, 0);
    }

    fn period(&self) -> Nanos {
        Nanos(self.load(PERIOD))
    }

    fn set_period(&mut self, start: Nanos) {
        self.put(PERIOD, start.0);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    /// Memory that stops taking stores after some: the process was killed there.
    #[derive(Debug, Clone)]
    struct Image(Vec<u64>);

    fn memory(words: usize) -> Box<[AtomicU64]> {
        (0..words).map(|_| AtomicU64::new(0)).collect()
    }

    fn image(memory: &[AtomicU64]) -> Image {
        Image(memory.iter().map(|w| w.load(Ordering::Relaxed)).collect())
    }

    fn restored(image: &Image) -> Box<[AtomicU64]> {
        image.0.iter().map(|w| AtomicU64::new(*w)).collect()
    }

    fn message(seq: u64, len: usize) -> Vec<u8> {
        (0..len).map(|n| (seq as usize * 31 + n * 7) as u8).collect()
    }

    #[test]
    fn what_was_stored_is_there_after_opening_again() {
        let mut store = LastingStore::open(memory(2048), b"A>B", 64).unwrap();
        for seq in 1..=40 {
            store.append(seq, &message(seq, 1 + seq as usize * 5)).unwrap();
        }
        store.set_next_out(43);
        store.set_next_in(17);
        store.set_period(Nanos(1_795_226_141_000_000_000));
        let mut again = LastingStore::open(restored(&image(store.memory())), b"A>B", 64).unwrap();
        assert_eq!((again.next_out(), again.next_in()), (43, 17));
        assert_eq!(again.recovery().cut_words, 0);
        for seq in 1..=40 {
            let expected = store.get(seq).map(<[u8]>::to_vec);
            assert_eq!(again.get(seq).map(<[u8]>::to_vec), expected);
            if let Some(kept) = expected {
                assert_eq!(kept, message(seq, 1 + seq as usize * 5));
            }
        }
        assert!(again.recovery().messages > 20);
        again.reset();
        assert_eq!(again.period(), Nanos(1_795_226_141_000_000_000));
        assert_eq!(again.get(40), None);
        assert_eq!((again.next_out(), again.next_in()), (1, 1));
    }

    #[test]
    fn other_memory_is_refused_and_left_alone() {
        let store = LastingStore::open(memory(512), b"A>B", 8).unwrap();
        let other = restored(&image(store.memory()));
        assert_eq!(
            LastingStore::open(other, b"A>C", 8).unwrap_err(),
            StoreError::OtherSession
        );
        let foreign = memory(512);
        foreign[0].store(7, Ordering::Relaxed);
        assert_eq!(
            LastingStore::open(foreign, b"A>B", 8).unwrap_err(),
            StoreError::NotAStore
        );
        let overwritten = restored(&image(store.memory()));
        overwritten[NEXT_OUT].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(
            LastingStore::open(overwritten, b"A>B", 8).unwrap_err(),
            StoreError::Damaged
        );
        assert!(matches!(
            LastingStore::open(memory(16), b"A>B", 8).unwrap_err(),
            StoreError::TooSmall { .. }
        ));
    }

    proptest! {
        /// The words of the last few stores were torn by a crash of the machine: whatever they are now, what is found is
        /// what was stored, and nothing behind a hole.
        #[test]
        fn torn_words_are_never_taken_for_messages(
            lengths in prop::collection::vec(1_usize..200, 1..60),
            torn in prop::collection::vec((0_usize..512, any::<u64>()), 1..6),
        ) {
            let mut store = LastingStore::open(memory(512 + RECORDS), b"A>B", 64).unwrap();
            let mut sent = BTreeMap::new();
            for (n, len) in lengths.into_iter().enumerate() {
                let seq = n as u64 + 1;
                store.append(seq, &message(seq, len)).unwrap();
                sent.insert(seq, message(seq, len));
            }
            let mut image = image(store.memory());
            for (at, word) in torn {
                image.0[RECORDS + at] = word;
            }
            let mut again = LastingStore::open(restored(&image), b"A>B", 64).unwrap();
            prop_assert_eq!(again.next_out(), sent.len() as u64 + 1);
            for (seq, expected) in &sent {
                if let Some(found) = again.get(*seq) {
                    prop_assert_eq!(found, &expected[..]);
                }
            }
            // It goes on from there.
            let next = again.next_out();
            again.append(next, b"8=FIX").unwrap();
            prop_assert_eq!(again.get(next), Some(&b"8=FIX"[..]));
        }

        /// The process was killed between any two stores of a reset: the numbers are the old ones or both 1, never one of each,
        /// and no message of before is given for one of after.
        #[test]
        fn every_prefix_of_a_reset_is_a_whole_state(before in 1_u64..60, kill in 0_usize..6) {
            let mut store = LastingStore::open(memory(512 + RECORDS), b"A>B", 64).unwrap();
            for seq in 1..=before {
                store.append(seq, &message(seq, 40)).unwrap();
            }
            store.set_next_in(before + 7);
            store.set_period(Nanos(5));
            let mut killed = image(store.memory());
            let tail = killed.0[TAIL];
            let order = [(RESETTING, 1), (HEAD, tail), (NEXT_OUT, 1), (NEXT_IN, 1), (RESETTING, 0)];
            for (at, value) in order.into_iter().take(kill) {
                killed.0[at] = value;
            }
            let mut again = LastingStore::open(restored(&killed), b"A>B", 64).unwrap();
            let numbers = (again.next_out(), again.next_in());
            prop_assert_eq!(numbers, if kill == 0 { (before + 1, before + 7) } else { (1, 1) });
            prop_assert_eq!(again.period(), Nanos(5));
            for seq in 1..=before {
                prop_assert!(kill == 0 || again.get(seq).is_none());
            }
            again.append(again.next_out(), b"8=FIX").unwrap();
            store.reset();
            prop_assert_eq!((store.next_out(), store.next_in()), (1, 1));
        }

        /// The process was killed between any two stores of an append: the message is there with its number used, or not.
        #[test]
        fn every_prefix_of_an_append_is_a_whole_state(len in 1_usize..300, before in 1_u64..120, kill in 0_usize..64) {
            let mut store = LastingStore::open(memory(512 + RECORDS), b"A>B", 64).unwrap();
            for seq in 1..=before {
                store.append(seq, &message(seq, 40)).unwrap();
            }
            let old = image(store.memory());
            let next = before + 1;
            store.append(next, &message(next, len)).unwrap();
            let new = image(store.memory());
            // The stores in their order: what gives way, the record, where it ends, its number.
            let tail = old.0[TAIL];
            let place = |at: u64| RECORDS + (at & 511) as usize;
            let mut order: Vec<usize> = std::vec![HEAD];
            order.extend((tail + 2..new.0[TAIL]).map(place));
            order.extend([place(tail), place(tail + 1), TAIL, NEXT_OUT]);
            let mut killed = old.clone();
            for at in order.iter().take(kill) {
                killed.0[*at] = new.0[*at];
            }
            let mut again = LastingStore::open(restored(&killed), b"A>B", 64).unwrap();
            let is_there = again.get(next).map(<[u8]>::to_vec);
            prop_assert_eq!(again.next_out(), if is_there.is_some() { next + 1 } else { next });
            if let Some(found) = is_there {
                prop_assert_eq!(found, message(next, len));
            }
            prop_assert_eq!(again.recovery().cut_words, 0);
        }
    }
}
