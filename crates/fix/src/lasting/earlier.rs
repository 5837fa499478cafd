//! Stores of the earlier format, to be read once: one head without a hash, records whose hashes do not know
//! where they are.

use super::{Hash, IDENTITY_WORDS, MESSAGE_MAX, NUMBER_MAX, StoreError, identity_words};
use alloc::vec::Vec;
use tickwire_market::Nanos;

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"TWFIXST1");
const RECORDS: usize = 16;

/// What a store of the earlier format holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlierStore {
    /// The number of the next message to send.
    pub next_out: u64,
    /// The number of the next message expected.
    pub next_in: u64,
    /// The beginning of the session period that the numbers belong to.
    pub period: Nanos,
    /// Messages with their numbers, ascending.
    pub messages: Vec<(u64, Vec<u8>)>,
    /// Bytes of messages behind the last whole one.
    pub damaged_bytes: u64,
}

impl EarlierStore {
    /// Reads the bytes of a store; of any session without an identity.
    ///
    /// # Errors
    /// It is none, another session's, or its numbers cannot be right.
    pub fn read(bytes: &[u8], identity: Option<&[u8]>) -> Result<EarlierStore, StoreError> {
        let words = bytes.as_chunks::<8>().0;
        let load = |at: usize| u64::from_le_bytes(words[at]);
        if words.len() <= RECORDS || load(0) != MAGIC {
            return Err(StoreError::NotAStore);
        }
        let is_other = |own: [u64; IDENTITY_WORDS]| (0..IDENTITY_WORDS).any(|n| load(8 + n) != own[n]);
        if identity.is_some_and(|identity| is_other(identity_words(identity))) {
            return Err(StoreError::OtherSession);
        }
        let (next_out, next_in, begin, end) = (load(1), load(2), load(3), load(4));
        let ring = 1_u64 << (words.len() - RECORDS).ilog2();
        let is_possible = [next_out, next_in]
            .into_iter()
            .all(|n| (1..NUMBER_MAX).contains(&n))
            && begin <= end
            && end - begin <= ring;
        if !is_possible {
            return Err(StoreError::Damaged);
        }
        let mut read = EarlierStore {
            next_out,
            next_in,
            period: Nanos(load(6)),
            messages: Vec::new(),
            damaged_bytes: 0,
        };
        // Killed in the middle of a reset.
        if load(5) != 0 {
            (read.next_out, read.next_in) = (1, 1);
            return Ok(read);
        }
        let word = |at: u64| load(RECORDS + (at & (ring - 1)) as usize);
        let (mut at, mut last) = (begin, 0);
        while let Some((seq, message)) = record(&word, at, end).filter(|(seq, _)| *seq > last) {
            at += 2 + message.len().div_ceil(8) as u64;
            last = seq;
            read.messages.push((seq, message));
        }
        read.damaged_bytes = (end - at) * 8;
        read.next_out = read.next_out.max(last + 1);
        Ok(read)
    }
}

fn record(word: &impl Fn(u64) -> u64, at: u64, end: u64) -> Option<(u64, Vec<u8>)> {
    if at + 2 > end {
        return None;
    }
    let (seq, second) = (word(at), word(at + 1));
    let len = (second & 0xFFFF_FFFF) as usize;
    let words = len.div_ceil(8) as u64;
    if len == 0 || len > MESSAGE_MAX || at + 2 + words > end || seq >= NUMBER_MAX {
        return None;
    }
    let mut hash = Hash::new(seq, len as u64);
    let mut message = Vec::with_capacity(len + 8);
    for n in 0..words {
        let word = word(at + 2 + n);
        hash.take(n as usize, word);
        message.extend_from_slice(&word.to_le_bytes());
    }
    message.truncate(len);
    (second >> 32 == hash.finish() >> 32).then_some((seq, message))
}
