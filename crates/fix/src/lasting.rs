//! A store that outlives the process: sequence numbers and sent messages in words of memory that a file is
//! behind.
//!
//! ```text
//! words 0              512            1024                                             1024 + ring
//!       ┌──────────────┬──────────────┬──────────┬──────────┬─────┬──────────┬ ─ ─ ─ ─ ─┐
//!       │ head A       │ head B       │ record   │ record   │ ... │ record   │          │   a ring: the oldest give way
//!       └──────────────┴──────────────┴──────────┴──────────┴─────┴──────────┴ ─ ─ ─ ─ ─┘
//! head:   magic · words of the ring · identity · hash ‖ hash · generation · next_out · next_in · begin · end · period · given way
//! record: seq · length, check and hash · the message's bytes, padded to words
//! ```
//!
//! **What survives.** Each change of the numbers writes one of the two heads, in turn: it is marked as being
//! written, filled, and its hash put last. The process may be killed between any two stores: the other head
//! is whole, and says what was before. A record is whole before the head that counts it is written: its
//! message is in the store and will be sent again when the peer asks, or it is not and was never sent. Words
//! that reached memory survive the process, not the machine; for that, sync the file (the owner's part:
//! [`Words::settle`]).
//!
//! **Damage.** Both heads and every record have hashes, those of records over their position too, so that
//! nothing old is taken for something new. A store with one damaged head is opened by the other, and skips
//! one number that may have been used; with two it is refused: numbers are never guessed. Between records,
//! what is not whole is passed over to the next record that is, marked, and said ([`Recovery`]).
//!
//! **Finding a message.** Numbers ascend along the ring. Of each 512 words it is known where the first record
//! begins: two bytes for 4 KiB, so that every message is found that the ring holds, whatever its size.

mod earlier;
mod index;

use crate::store::{NotKept, Store, StoreFailed};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use index::BlockIndex;
use tickwire_market::Nanos;

pub use earlier::EarlierStore;

/// Memory that outlives the process.
pub trait Words {
    /// Its words, always the same ones.
    fn words(&self) -> &[AtomicU64];

    /// Words up to `end` are about to be written: memory that grows makes sure that they are there.
    ///
    /// # Errors
    /// There is no room for them.
    #[inline]
    fn reach(&self, _end: usize) -> Result<(), StoreFailed> {
        Ok(())
    }

    /// Why nothing that is written lasts any more, if so.
    #[inline]
    fn failure(&self) -> Option<StoreFailed> {
        None
    }

    /// Brings everything written to where it must be before a message may be sent.
    ///
    /// # Errors
    /// It cannot be brought there.
    #[inline]
    fn settle(&self) -> Result<(), StoreFailed> {
        Ok(())
    }
}

impl Words for Box<[AtomicU64]> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

const MAGIC: u64 = u64::from_le_bytes(*b"TWFIXST2");

/// Words of one head: a page of its own, so that what tears one leaves the other.
const HEAD_WORDS: usize = 512;
const RECORDS: usize = 2 * HEAD_WORDS;

// The part of a head that never changes.
const RING: usize = 1;
const IDENTITY: usize = 2;
const IDENTITY_WORDS: usize = 8;
const FIXED_HASH: usize = IDENTITY + IDENTITY_WORDS;

// The part that does: eight words from here on, one line of the processor's cache.
const STATE: usize = 16;
const STATE_WORDS: usize = 8;
/// In the place of a state's hash while the state is written. Hashes are odd.
const BEING_WRITTEN: u64 = u64::from_le_bytes(*b"written ");

/// Number and length of a record.
const RECORD_HEAD: usize = 2;
/// A word that was damaged, in the place of a record's number.
const PASSED_OVER: u64 = u64::MAX;
/// The fewest words of a ring: 4 KiB.
const RING_MIN: usize = 512;
/// The longest message kept.
const MESSAGE_MAX: usize = 64 << 10;
/// At most so many holes are told apart; what is behind the last of them is counted with it.
const HOLES_MAX: usize = 64;

/// Above every number and position that a session can reach, with room to add to it.
const NUMBER_MAX: u64 = 1 << 62;

/// Bytes of the two heads, in front of the ring.
pub const STORE_HEAD_BYTES: usize = RECORDS * 8;

/// Why memory is no store, or not this session's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreError {
    /// It holds something else.
    NotAStore,
    /// It is a store of the earlier format: [`EarlierStore`] reads it.
    Earlier,
    /// It is another session's.
    OtherSession,
    /// Both copies of its head are damaged: the sequence numbers are not known.
    Damaged,
    /// It ends within its head.
    CutShort {
        /// Bytes it has.
        bytes: usize,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NotAStore => f.write_str("holds something else than a FIX store"),
            StoreError::Earlier => f.write_str("is a store of an earlier format"),
            StoreError::OtherSession => f.write_str("is the store of another session"),
            StoreError::Damaged => f.write_str(
                "is damaged where its sequence numbers are, in both copies: they are not known, and not guessed",
            ),
            StoreError::CutShort { bytes } => write!(
                f,
                "is cut short: it has {bytes} bytes, and its sequence numbers need the first {STORE_HEAD_BYTES}"
            ),
        }
    }
}

impl core::error::Error for StoreError {}

/// Messages that may be missing between two that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hole {
    /// The number of the last message before it; 0 when it is the first.
    pub after: u64,
    /// The number of the first message behind it, or the next to be sent.
    pub before: u64,
    /// Bytes that were passed over.
    pub bytes: u64,
}

/// What opening a store found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// Messages that can be sent again.
    pub messages: u64,
    /// The number of the oldest of them, 0 without any.
    pub oldest: u64,
    /// Damaged places, oldest first, at most 64: the last stands for all behind it.
    pub holes: Vec<Hole>,
    /// A copy of the head was damaged, and the number that may have been used last is passed over.
    pub has_damaged_head: bool,
}

impl Recovery {
    /// Bytes that were passed over.
    pub fn damaged_bytes(&self) -> u64 {
        self.holes.iter().map(|hole| hole.bytes).sum()
    }
}

/// What the first words of a store say of the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreSize {
    /// Bytes of the whole store.
    pub bytes: usize,
    /// Bytes from its beginning that have been written.
    pub used: usize,
    /// The number of the next message to send.
    pub next_out: u64,
    /// One copy of the head is damaged, or was being written.
    pub is_half: bool,
}

/// The numbers that change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    /// Counts the changes; the head with an even one is A.
    generation: u64,
    next_out: u64,
    next_in: u64,
    /// Where the oldest record begins, in the endless stream of words.
    begin: u64,
    /// Where the newest ends.
    end: u64,
    period: u64,
    /// The highest number whose message has given way.
    given_way: u64,
}

impl State {
    const NEW: State = State {
        generation: 1,
        next_out: 1,
        next_in: 1,
        begin: 0,
        end: 0,
        period: 0,
        given_way: 0,
    };

    #[inline]
    fn words(&self) -> [u64; STATE_WORDS - 1] {
        [
            self.generation,
            self.next_out,
            self.next_in,
            self.begin,
            self.end,
            self.period,
            self.given_way,
        ]
    }

    #[inline]
    fn hash(&self) -> u64 {
        let mut hash = Hash::new(MAGIC, STATE_WORDS as u64);
        let words = self.words();
        words.iter().enumerate().for_each(|(n, word)| hash.take(n, *word));
        hash.finish() | 1
    }

    /// Where it is in the memory.
    #[inline]
    fn place(&self) -> usize {
        (self.generation & 1) as usize * HEAD_WORDS + STATE
    }

    fn is_possible(&self, ring: u64) -> bool {
        let numbers = [
            self.next_out,
            self.next_in,
            self.end,
            self.given_way,
            self.generation,
        ];
        numbers.into_iter().all(|n| n < NUMBER_MAX)
            && self.next_out > 0
            && self.next_in > 0
            && self.begin <= self.end
            && self.end - self.begin <= ring
    }

    /// The one in a copy of the head, if it is whole; whether the copy was being written otherwise.
    fn read(words: &[AtomicU64], copy: usize, ring: u64) -> Result<State, bool> {
        let load = |n: usize| words[copy * HEAD_WORDS + STATE + n].load(Ordering::Acquire);
        let hash = load(0);
        let state = State {
            generation: load(1),
            next_out: load(2),
            next_in: load(3),
            begin: load(4),
            end: load(5),
            period: load(6),
            given_way: load(7),
        };
        let is_whole =
            hash == state.hash() && state.place() == copy * HEAD_WORDS + STATE && state.is_possible(ring);
        is_whole.then_some(state).ok_or(hash == BEING_WRITTEN)
    }
}

/// What the heads of a store say.
#[derive(Clone, Copy)]
struct Heads {
    ring: u64,
    identity: [u64; IDENTITY_WORDS],
    state: State,
    has_damage: bool,
    /// One state is all there is, for whatever reason.
    is_half: bool,
}

impl Heads {
    fn read(words: &[AtomicU64]) -> Result<Heads, StoreError> {
        let load = |at: usize| words[at].load(Ordering::Acquire);
        let magics = || [0, HEAD_WORDS].map(|at| words.get(at).map(|w| w.load(Ordering::Acquire)));
        if magics()[0] == Some(earlier::MAGIC) {
            return Err(StoreError::Earlier);
        }
        if words.len() < RECORDS {
            return Err(match magics().contains(&Some(MAGIC)) || words.is_empty() {
                true => StoreError::CutShort {
                    bytes: words.len() * 8,
                },
                false => StoreError::NotAStore,
            });
        }
        let fixed = |copy: usize| {
            let at = copy * HEAD_WORDS;
            let is_whole = load(at) == MAGIC
                && load(at + FIXED_HASH) == fixed_hash((0..FIXED_HASH).map(|n| load(at + n)))
                && load(at + RING).is_power_of_two()
                && (RING_MIN as u64..NUMBER_MAX / 16).contains(&load(at + RING));
            let mut identity = [0; IDENTITY_WORDS];
            for (n, word) in identity.iter_mut().enumerate() {
                *word = load(at + IDENTITY + n);
            }
            is_whole.then(|| (load(at + RING), identity))
        };
        let fixed = [fixed(0), fixed(1)];
        let Some((ring, identity)) = fixed[0].or(fixed[1]) else {
            let is_zero = (0..RECORDS).all(|at| load(at) == 0);
            return Err(match magics().contains(&Some(MAGIC)) || is_zero {
                true => StoreError::Damaged,
                false => StoreError::NotAStore,
            });
        };
        let has_damage = fixed.contains(&None) || fixed[0] != fixed[1];
        let states = [0, 1].map(|copy| State::read(words, copy, ring));
        let is_half = has_damage || states.iter().any(Result::is_err);
        let (state, is_torn) = match states {
            [Ok(a), Ok(b)] if a.generation > b.generation => (a, false),
            [Ok(_), Ok(b)] => (b, false),
            [Ok(one), Err(is_written)] | [Err(is_written), Ok(one)] => (one, !is_written),
            [Err(_), Err(_)] => return Err(StoreError::Damaged),
        };
        Ok(Heads {
            ring,
            identity,
            state,
            has_damage: has_damage || is_torn,
            is_half,
        })
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

/// A hash of words: four independent lanes, as one would wait for its own multiplications. Word `n` goes to
/// lane `n % 4`.
struct Hash([u64; 4]);

impl Hash {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;

    #[inline]
    fn new(first: u64, second: u64) -> Hash {
        Hash([first ^ Hash::K, second.wrapping_mul(Hash::K), Hash::K, !Hash::K])
    }

    #[inline]
    fn take(&mut self, lane: usize, word: u64) {
        let lane = &mut self.0[lane % 4];
        *lane = (*lane ^ word).wrapping_mul(Hash::K).rotate_left(29);
    }

    #[inline]
    fn finish(self) -> u64 {
        self.0.into_iter().fold(0_u64, |all, lane| {
            (all.rotate_left(17) ^ lane).wrapping_mul(Hash::K)
        })
    }
}

fn fixed_hash(words: impl Iterator<Item = u64>) -> u64 {
    let mut hash = Hash::new(0, FIXED_HASH as u64);
    words.enumerate().for_each(|(n, word)| hash.take(n, word));
    hash.finish() | 1
}

/// A record's number and length, and what both are checked by before its message is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RecordHead {
    seq: u64,
    len: usize,
}

impl RecordHead {
    const LEN_BITS: u32 = 17;
    const CHECK_BITS: u32 = 15;

    /// Words of the whole record.
    #[inline]
    fn words(self) -> u64 {
        RECORD_HEAD as u64 + self.len.div_ceil(8) as u64
    }

    /// Of a record at this position: what is found in another place is another's, or of an earlier lap.
    #[inline]
    fn check(self, at: u64) -> u64 {
        let mixed = (self.seq ^ at.rotate_left(32) ^ (self.len as u64) << 48).wrapping_mul(Hash::K);
        mixed >> (64 - Self::CHECK_BITS)
    }

    #[inline]
    fn hash(self, at: u64) -> Hash {
        Hash::new(
            self.seq ^ at.wrapping_mul(Hash::K).rotate_left(31),
            self.len as u64,
        )
    }

    #[inline]
    fn second_word(self, at: u64, hash: Hash) -> u64 {
        self.len as u64 | self.check(at) << Self::LEN_BITS | hash.finish() >> 32 << 32
    }
}

/// Puts the words of a message into places for exactly as many, whole groups of four first; their hash goes
/// on.
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
        let word = word_of(bytes);
        place.store(word, Ordering::Release);
        hash.take(lane, word);
    }
}

/// Up to eight bytes as a word.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// See the module's description.
pub struct LastingStore<M> {
    memory: M,
    /// What the newest head says: read from here, so that memory that is lost does not change numbers.
    state: State,
    index: BlockIndex,
    /// A message as bytes.
    scratch: Box<[u8]>,
    /// Words of the ring, a power of two.
    ring: u64,
    /// A message or its number was put in since the memory was settled.
    is_unsettled: bool,
    recovery: Recovery,
}

impl<M: fmt::Debug> fmt::Debug for LastingStore<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastingStore")
            .field("memory", &self.memory)
            .finish()
    }
}

/// Bytes of a store whose ring has room for `bytes` of messages, or the next power of two from 4 KiB on.
pub const fn store_bytes(bytes: usize) -> usize {
    let words = bytes.div_ceil(8).next_power_of_two();
    RECORDS * 8 + 8 * if words < RING_MIN { RING_MIN } else { words }
}

/// What the first [`STORE_HEAD_BYTES`] of a store say of its size.
///
/// # Errors
/// They are no store's, or damaged.
pub fn store_size(head: &[u8]) -> Result<StoreSize, StoreError> {
    let words: Vec<AtomicU64> = head
        .chunks(8)
        .map(|bytes| AtomicU64::new(word_of(bytes)))
        .collect();
    let heads = match Heads::read(&words) {
        Err(StoreError::CutShort { .. }) => Err(StoreError::CutShort { bytes: head.len() }),
        heads => heads,
    }?;
    let used = heads.state.end.min(heads.ring) as usize;
    Ok(StoreSize {
        bytes: (RECORDS + heads.ring as usize) * 8,
        used: (RECORDS + used) * 8,
        next_out: heads.state.next_out,
        is_half: heads.is_half,
    })
}

/// The first bytes of a new store of `bytes` (see [`store_bytes`]).
pub fn new_store(identity: &[u8], bytes: usize) -> Vec<u8> {
    let ring = (bytes / 8).saturating_sub(RECORDS).max(RING_MIN).ilog2();
    let mut head = [0_u64; HEAD_WORDS];
    (head[0], head[RING]) = (MAGIC, 1 << ring);
    head[IDENTITY..FIXED_HASH].copy_from_slice(&identity_words(identity));
    head[FIXED_HASH] = fixed_hash(head[..FIXED_HASH].iter().copied());
    let mut words = Vec::with_capacity(RECORDS);
    for generation in 0..2 {
        let state = State {
            generation,
            ..State::NEW
        };
        head[STATE] = state.hash();
        head[STATE + 1..STATE + STATE_WORDS].copy_from_slice(&state.words());
        words.extend_from_slice(&head);
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl<M: Words> LastingStore<M> {
    /// Makes a new store in memory that holds nothing, and opens it.
    ///
    /// # Errors
    /// The memory has fewer words than the two heads and a ring of 4 KiB.
    pub fn begin(memory: M, identity: &[u8]) -> Result<LastingStore<M>, StoreError> {
        let words = memory.words();
        if words.len() < RECORDS + RING_MIN {
            return Err(StoreError::CutShort {
                bytes: words.len() * 8,
            });
        }
        let head = new_store(identity, words.len() * 8);
        for (word, bytes) in words.iter().zip(head.as_chunks::<8>().0) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Release);
        }
        LastingStore::open(memory, identity)
    }

    /// Opens what is there. Damage is marked in the memory.
    ///
    /// # Errors
    /// The memory holds something else, another session's store or one whose numbers are not known: nothing
    /// is changed then.
    pub fn open(memory: M, identity: &[u8]) -> Result<LastingStore<M>, StoreError> {
        let heads = Heads::read(memory.words())?;
        if heads.identity != identity_words(identity) {
            return Err(StoreError::OtherSession);
        }
        LastingStore::recovered(memory, heads)
    }

    /// Opens a copy of a store, whosever it is, to look at it. `later` is a copy of its first words that was
    /// made after the rest was copied, when somebody may have been writing meanwhile.
    ///
    /// # Errors
    /// The memory holds something else, or numbers that are not known.
    pub fn inspect(memory: M, later: Option<&[AtomicU64]>) -> Result<LastingStore<M>, StoreError> {
        let mut heads = Heads::read(memory.words())?;
        if let Some(later) = later {
            let later = Heads::read(later)?.state;
            let state = &mut heads.state;
            // What gave way meanwhile was overwritten, what came meanwhile was not copied.
            state.begin = state.begin.max(later.begin).min(state.end);
            (state.next_out, state.next_in) = (later.next_out, later.next_in);
            (state.given_way, state.period) = (later.given_way, later.period);
        }
        LastingStore::recovered(memory, heads)
    }

    fn recovered(memory: M, heads: Heads) -> Result<LastingStore<M>, StoreError> {
        let words = memory.words().len();
        if ((words - RECORDS) as u64) < heads.ring {
            return Err(StoreError::CutShort { bytes: words * 8 });
        }
        let mut store = LastingStore {
            memory,
            state: heads.state,
            index: BlockIndex::new(heads.ring),
            scratch: vec![0; MESSAGE_MAX].into_boxed_slice(),
            ring: heads.ring,
            is_unsettled: false,
            recovery: Recovery {
                has_damaged_head: heads.has_damage,
                ..Recovery::default()
            },
        };
        store.recover();
        if heads.has_damage {
            store.repair_heads(&heads);
        }
        Ok(store)
    }

    /// Hands out the messages that can be sent again, oldest first, with their numbers.
    pub fn for_each(&mut self, mut each: impl FnMut(u64, &[u8])) {
        let mut next = 0;
        while let Some((head, at)) = self.find(next) {
            if self.is_whole(head, at) {
                each(head.seq, self.read(head, at));
            }
            next = head.seq + 1;
        }
    }

    /// What opening it found.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Bytes of the ring that messages are in.
    pub fn bytes_used(&self) -> u64 {
        (self.state.end - self.state.begin) * 8
    }

    /// Bytes of the ring.
    pub fn bytes_max(&self) -> u64 {
        self.ring * 8
    }

    /// The memory behind it.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    #[inline]
    fn load(&self, at: u64) -> u64 {
        self.memory.words()[self.place(at)].load(Ordering::Relaxed)
    }

    /// Release: no earlier store of this thread comes after it, so a killed process leaves a prefix of its
    /// stores.
    #[inline]
    fn put(&self, place: usize, value: u64) {
        self.memory.words()[place].store(value, Ordering::Release);
    }

    /// The place of a position in the endless stream.
    #[inline]
    fn place(&self, at: u64) -> usize {
        RECORDS + (at & (self.ring - 1)) as usize
    }

    /// Writes the state into the older of the two heads.
    #[inline]
    fn commit(&mut self) {
        self.state.generation += 1;
        let first = self.state.place();
        let Some((hash, rest)) = self
            .memory
            .words()
            .get(first..first + STATE_WORDS)
            .and_then(<[AtomicU64]>::split_first)
        else {
            return;
        };
        hash.store(BEING_WRITTEN, Ordering::Release);
        for (place, word) in rest.iter().zip(self.state.words()) {
            place.store(word, Ordering::Release);
        }
        hash.store(self.state.hash(), Ordering::Release);
    }

    /// After a step of more than one: what the older head says would be more than a number behind, if the
    /// newer were damaged.
    #[cold]
    fn commit_to_both(&mut self) {
        self.commit();
    }

    /// The head of the record at a position, if there is one that ends before `end`.
    #[inline]
    fn head_at(&self, at: u64, end: u64) -> Option<RecordHead> {
        if at + RECORD_HEAD as u64 > end {
            return None;
        }
        let (seq, second) = (self.load(at), self.load(at + 1));
        let head = RecordHead {
            seq,
            len: (second & ((1 << RecordHead::LEN_BITS) - 1)) as usize,
        };
        let check = second >> RecordHead::LEN_BITS & ((1 << RecordHead::CHECK_BITS) - 1);
        let is_one = (1..=MESSAGE_MAX).contains(&head.len)
            && check == head.check(at)
            && seq < NUMBER_MAX
            && at + head.words() <= end;
        is_one.then_some(head)
    }

    /// Whether a record's message is the one that was put there.
    fn is_whole(&self, head: RecordHead, at: u64) -> bool {
        let mut hash = head.hash(at);
        for n in 0..head.words() - RECORD_HEAD as u64 {
            hash.take(n as usize, self.load(at + RECORD_HEAD as u64 + n));
        }
        self.load(at + 1) == head.second_word(at, hash)
    }

    fn read(&mut self, head: RecordHead, at: u64) -> &[u8] {
        for n in 0..head.len.div_ceil(8) {
            let word = self.load(at + (RECORD_HEAD + n) as u64).to_le_bytes();
            self.scratch[n * 8..n * 8 + 8].copy_from_slice(&word);
        }
        &self.scratch[..head.len]
    }

    // ---- opening ------------------------------------------------------------------------------------------------

    /// Finds every record; marks what is not whole.
    fn recover(&mut self) {
        self.take_what_follows();
        let (mut at, end) = (self.state.begin, self.state.end);
        let (mut last, mut hole) = (0, 0);
        while at < end {
            let whole = self
                .head_at(at, end)
                .filter(|head| head.seq > last && self.is_whole(*head, at));
            let Some(head) = whole else {
                if self.load(at) != PASSED_OVER {
                    self.put(self.place(at), PASSED_OVER);
                }
                hole += 1;
                at += 1;
                continue;
            };
            self.note_hole(last, head.seq, core::mem::take(&mut hole));
            self.index.note(at, head.words());
            if last == 0 {
                self.recovery.oldest = head.seq;
            }
            self.recovery.messages += 1;
            (last, at) = (head.seq, at + head.words());
        }
        self.state.next_out = self.state.next_out.max(last + 1);
        if self.recovery.has_damaged_head {
            // The number that may have been used is passed over, with a mark in the ring, so that it stays
            // known.
            self.state.next_out += 1;
            if self.state.end - self.state.begin < self.ring {
                self.put(self.place(end), PASSED_OVER);
                self.state.end += 1;
                hole += 1;
            }
        }
        self.note_hole(last, self.state.next_out, hole);
    }

    /// Records behind the end: the process or the machine ended before the head that counts them was written.
    fn take_what_follows(&mut self) {
        let (begin, end) = (self.state.begin, self.state.end);
        let limit = end + self.ring;
        while let Some(head) = self
            .head_at(self.state.end, limit)
            .filter(|head| head.seq >= self.state.next_out && self.is_whole(*head, self.state.end))
        {
            self.state.end += head.words();
            self.state.next_out = head.seq + 1;
        }
        let oldest = self.state.end.saturating_sub(self.ring);
        if oldest > begin {
            // What they overwrote has given way, up to the first that is whole.
            let whole = (oldest..self.state.end).find_map(|at| {
                let head = self.head_at(at, self.state.end)?;
                self.is_whole(head, at).then_some((head, at))
            });
            let (before, at) =
                whole.map_or((self.state.next_out, self.state.end), |(head, at)| (head.seq, at));
            self.state.begin = at;
            self.state.given_way = self.state.given_way.max(before.saturating_sub(1));
        }
        if self.state.end > end {
            self.commit();
        }
    }

    fn note_hole(&mut self, after: u64, before: u64, words: u64) {
        let holes = &mut self.recovery.holes;
        let bytes = words * 8;
        let is_full = holes.len() == HOLES_MAX;
        match holes.last_mut().filter(|_| is_full) {
            _ if words == 0 => {}
            Some(last) => {
                last.before = before;
                last.bytes += bytes;
            }
            None => holes.push(Hole { after, before, bytes }),
        }
    }

    /// Writes both heads anew.
    fn repair_heads(&mut self, heads: &Heads) {
        for copy in 0..2 {
            let at = copy * HEAD_WORDS;
            self.put(at, MAGIC);
            self.put(at + RING, heads.ring);
            for (n, word) in heads.identity.into_iter().enumerate() {
                self.put(at + IDENTITY + n, word);
            }
            let fixed = (0..FIXED_HASH).map(|n| self.memory.words()[at + n].load(Ordering::Relaxed));
            let hash = fixed_hash(fixed);
            self.put(at + FIXED_HASH, hash);
        }
        self.commit();
        self.commit();
    }

    // ---- the ring -----------------------------------------------------------------------------------------------

    /// The first record from a position on.
    #[inline]
    fn record_from(&self, mut at: u64) -> Option<(RecordHead, u64)> {
        let end = self.state.end;
        while at < end {
            if let Some(head) = self.head_at(at, end) {
                return Some((head, at));
            }
            // Behind damage: to the end of its block word by word, as records may begin there that the index
            // does not know.
            at = match (at + 1).is_multiple_of(index::BLOCK) {
                false => at + 1,
                true => self.index.first_from(at + 1, end)?,
            };
        }
        None
    }

    /// The first record with a number of at least `seq`.
    fn find(&self, seq: u64) -> Option<(RecordHead, u64)> {
        let (begin, end) = (self.state.begin, self.state.end);
        let from = self.index.search(begin, end, |at| self.load(at) <= seq);
        let mut next = self.record_from(from);
        while let Some((head, at)) = next {
            if head.seq >= seq {
                return next;
            }
            next = self.record_from(at + head.words());
        }
        None
    }

    /// Gives up the oldest messages until there is room for a record of so many words, and some more: the
    /// head need not be written for every one.
    #[cold]
    fn give_way(&mut self, words: u64) {
        let batch = (self.ring / 64).min(4096);
        let end = self.state.end;
        let goal = (end + words + batch).saturating_sub(self.ring).min(end);
        let mut next = self.record_from(self.state.begin);
        while let Some((head, at)) = next.filter(|(_, at)| *at < goal) {
            next = self.record_from(at + head.words());
        }
        // Up to the next that is kept, as there may be damage in between.
        let (before, begin) = next.map_or((self.state.next_out, end), |(head, at)| (head.seq, at));
        self.state.given_way = self.state.given_way.max(before - 1);
        self.state.begin = begin;
        self.commit();
    }

    /// Forgets the messages from a number on.
    #[cold]
    fn forget_from(&mut self, seq: u64) {
        let Some((_, end)) = self.find(seq) else { return };
        let mut forgotten = Vec::new();
        let mut next = self.record_from(end);
        while let Some((head, at)) = next {
            forgotten.push(at);
            next = self.record_from(at + head.words());
        }
        self.state.end = end;
        self.commit();
        // Or they would be taken for records that the head does not count yet; the newest first, so that none
        // is left behind one that is marked.
        while let Some(at) = forgotten.pop() {
            self.put(self.place(at), PASSED_OVER);
        }
        self.index.cut(end);
    }
}

impl<M: Words> Store for LastingStore<M> {
    #[inline]
    fn next_out(&self) -> u64 {
        self.state.next_out
    }

    #[inline]
    fn next_in(&self) -> u64 {
        self.state.next_in
    }

    /// A number that was used before forgets the messages from it on.
    #[inline]
    fn set_next_out(&mut self, seq: u64) {
        let is_next = seq == self.state.next_out + 1;
        let is_used = seq < self.state.next_out;
        self.state.next_out = seq;
        self.is_unsettled = true;
        if is_used {
            self.forget_from(seq);
        }
        self.commit();
        if !is_next {
            self.commit_to_both();
        }
    }

    #[inline]
    fn set_next_in(&mut self, seq: u64) {
        self.state.next_in = seq;
        self.commit();
        // Memory that grows does so from the first message that comes, before the first is sent. Nothing is
        // written there yet.
        let _ = self.memory.reach(self.place(self.state.end));
    }

    /// Fails for a message longer than 64 KiB or the whole ring, which can then not be sent.
    #[inline]
    fn append(&mut self, seq: u64, message: &[u8]) -> Result<(), StoreFailed> {
        let head = RecordHead {
            seq,
            len: message.len(),
        };
        let size = head.words();
        if message.is_empty() || message.len() > MESSAGE_MAX || size > self.ring {
            return Err(StoreFailed::TooLong);
        }
        if let Some(failed) = self.memory.failure() {
            return Err(failed);
        }
        let at = self.state.end;
        let first = self.place(at);
        let end = (first as u64 + size).min(RECORDS as u64 + self.ring) as usize;
        self.memory.reach(end)?;
        if at + size - self.state.begin > self.ring {
            self.give_way(size);
        }
        let mut hash = head.hash(at);
        let ring = &self.memory.words()[RECORDS..RECORDS + self.ring as usize];
        let body = self.place(at + RECORD_HEAD as u64) - RECORDS;
        match ring.get(body..body + size as usize - RECORD_HEAD) {
            Some(places) => put_words(places, message, &mut hash),
            None => {
                for (n, bytes) in message.chunks(8).enumerate() {
                    let word = word_of(bytes);
                    ring[(body + n) & (ring.len() - 1)].store(word, Ordering::Release);
                    hash.take(n, word);
                }
            }
        }
        self.put(first, seq);
        self.put(self.place(at + 1), head.second_word(at, hash));
        self.index.note(at, size);
        self.state.end = at + size;
        self.state.next_out = seq + 1;
        self.is_unsettled = true;
        self.commit();
        Ok(())
    }

    fn get(&mut self, seq: u64) -> Option<&[u8]> {
        let (head, at) = self.find(seq).filter(|(head, _)| head.seq == seq)?;
        self.is_whole(head, at).then(|| self.read(head, at))
    }

    fn next_kept(&mut self, from: u64) -> Option<u64> {
        let mut next = self.find(from);
        while let Some((head, at)) = next {
            if self.is_whole(head, at) {
                return Some(head.seq);
            }
            next = self.record_from(at + head.words());
        }
        None
    }

    fn not_kept(&self, from: u64, to: u64) -> Option<NotKept> {
        let given_way = NotKept::within(from, to, 0, self.state.given_way + 1);
        let holes = self.recovery.holes.iter();
        let holes = holes.filter_map(|hole| NotKept::within(from, to, hole.after, hole.before));
        given_way.into_iter().chain(holes).reduce(NotKept::and)
    }

    fn settle(&mut self) -> Result<(), StoreFailed> {
        if let Some(failed) = self.memory.failure() {
            return Err(failed);
        }
        if core::mem::take(&mut self.is_unsettled) {
            self.memory.settle()?;
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.index.clear();
        self.recovery.holes.clear();
        let State {
            generation,
            end,
            period,
            ..
        } = self.state;
        self.state = State {
            generation,
            begin: end,
            end,
            period,
            ..State::NEW
        };
        self.is_unsettled = true;
        self.commit();
        self.commit_to_both();
    }

    fn period(&self) -> Nanos {
        Nanos(self.state.period)
    }

    fn set_period(&mut self, start: Nanos) {
        self.state.period = start.0;
        self.commit();
    }
}

#[cfg(test)]
mod tests;
