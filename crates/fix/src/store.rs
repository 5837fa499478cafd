//! What was sent, for resends, and the sequence numbers: the trait, and a bounded store in memory.

use alloc::boxed::Box;
use alloc::vec;
use core::fmt;
use tickwire_market::Nanos;
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader, persist};

/// Why a store could not keep a message; the message has not been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreFailed {
    /// The message is longer than the store takes; the others are kept.
    TooLong,
    /// There is no room for the store to grow.
    NoRoom,
    /// The memory behind it is gone: its file was made shorter or removed while it was in use.
    Lost,
    /// It could not be brought to the disk.
    NotOnDisk,
}

impl StoreFailed {
    /// What it means, as the reason of a session's end.
    pub fn text(self) -> &'static str {
        match self {
            StoreFailed::TooLong => "a message is longer than the store takes",
            StoreFailed::NoRoom => "the store's file cannot grow: no room on the disk",
            StoreFailed::Lost => "the store's file was cut or removed in use",
            StoreFailed::NotOnDisk => "the store could not be brought to the disk",
        }
    }
}

impl fmt::Display for StoreFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Numbers whose messages a store no longer has, or may have had: messages of the session itself, which are
/// never kept, may be among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotKept {
    /// The lowest.
    pub first: u64,
    /// The highest.
    pub last: u64,
    /// How many.
    pub count: u64,
}

impl NotKept {
    /// The numbers from `from` on and below `to` that lie between two others.
    pub fn within(from: u64, to: u64, after: u64, before: u64) -> Option<NotKept> {
        let (first, end) = (from.max(after.saturating_add(1)), to.min(before));
        (first < end).then(|| NotKept {
            first,
            last: end - 1,
            count: end - first,
        })
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: NotKept) -> NotKept {
        NotKept {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            count: self.count.saturating_add(other.count),
        }
    }
}

/// Keeps sent application messages and both sequence numbers. Session messages are not kept: resends replace
/// them by a gap fill, as they do messages the store no longer has.
pub trait Store {
    /// Sequence number of the next message to send; 1 in a new store.
    fn next_out(&self) -> u64;
    /// Sequence number of the next message expected; 1 in a new store.
    fn next_in(&self) -> u64;
    /// The number that the peer's next Logon has at least: more than [`Store::next_in`] where messages that
    /// were taken once are asked for again. A Logon below it is too low, as the peer has begun its numbers
    /// anew.
    fn reached(&self) -> u64 {
        self.next_in()
    }
    /// Sets the first; called for every message sent that is not appended.
    fn set_next_out(&mut self, seq: u64);
    /// Sets the second; called for every message accepted.
    fn set_next_in(&mut self, seq: u64);
    /// Keeps a sent message, whole, under its number, which is `next_out`; `next_out` becomes the one after
    /// it.
    fn append(&mut self, seq: u64, message: &[u8]) -> Result<(), StoreFailed>;
    /// The message sent under this number, `None` if it was not appended or is no longer kept.
    fn get(&mut self, seq: u64) -> Option<&[u8]>;
    /// The lowest number from `from` on whose message is kept.
    fn next_kept(&mut self, from: u64) -> Option<u64> {
        (from..self.next_out()).find(|seq| self.get(*seq).is_some())
    }
    /// The numbers from `from` on and below `to` whose messages were kept and are not any more.
    fn not_kept(&self, _from: u64, _to: u64) -> Option<NotKept> {
        None
    }
    /// Everything put in so far is where it must be before a message may be sent. Called before bytes go out.
    ///
    /// # Errors
    /// It is not, and will not be: the session has to end.
    fn settle(&mut self) -> Result<(), StoreFailed> {
        Ok(())
    }
    /// Forgets all messages; both numbers become 1.
    fn reset(&mut self);
    /// When the session period began that the numbers belong to; zero when none is known.
    fn period(&self) -> Nanos;
    /// Sets it; a reset leaves it alone.
    fn set_period(&mut self, start: Nanos);
}

/// A store chosen at run time.
impl<T: Store + ?Sized> Store for Box<T> {
    fn next_out(&self) -> u64 {
        (**self).next_out()
    }

    fn next_in(&self) -> u64 {
        (**self).next_in()
    }

    fn reached(&self) -> u64 {
        (**self).reached()
    }

    fn set_next_out(&mut self, seq: u64) {
        (**self).set_next_out(seq);
    }

    fn set_next_in(&mut self, seq: u64) {
        (**self).set_next_in(seq);
    }

    fn append(&mut self, seq: u64, message: &[u8]) -> Result<(), StoreFailed> {
        (**self).append(seq, message)
    }

    fn get(&mut self, seq: u64) -> Option<&[u8]> {
        (**self).get(seq)
    }

    fn next_kept(&mut self, from: u64) -> Option<u64> {
        (**self).next_kept(from)
    }

    fn not_kept(&self, from: u64, to: u64) -> Option<NotKept> {
        (**self).not_kept(from, to)
    }

    #[inline]
    fn settle(&mut self) -> Result<(), StoreFailed> {
        (**self).settle()
    }

    fn reset(&mut self) {
        (**self).reset();
    }

    fn period(&self) -> Nanos {
        (**self).period()
    }

    fn set_period(&mut self, start: Nanos) {
        (**self).set_period(start);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    seq: u64,
    /// Position in the endless stream of bytes written; modulo the ring's size it is the offset.
    at: u64,
    len: u32,
}

/// The last messages sent, in memory of fixed size: the oldest give way to the newest.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    next_out: u64,
    next_in: u64,
    bytes: Box<[u8]>,
    slots: Box<[Slot]>,
    written: u64,
    period: Nanos,
    /// The highest number whose place another message took.
    given_way: u64,
}

impl MemoryStore {
    /// Keeps at most `messages` messages of at most `bytes` bytes together; both are rounded up to powers of
    /// two.
    pub fn new(messages: usize, bytes: usize) -> MemoryStore {
        MemoryStore {
            next_out: 1,
            next_in: 1,
            bytes: vec![0; bytes.max(1).next_power_of_two()].into_boxed_slice(),
            slots: vec![Slot::default(); messages.max(1).next_power_of_two()].into_boxed_slice(),
            written: 0,
            period: Nanos::ZERO,
            given_way: 0,
        }
    }

    /// Whether the bytes of a message are still its own.
    #[inline]
    fn has(&self, slot: &Slot) -> bool {
        slot.len > 0 && self.written <= slot.at + self.bytes.len() as u64
    }
}

impl Store for MemoryStore {
    #[inline]
    fn next_out(&self) -> u64 {
        self.next_out
    }

    #[inline]
    fn next_in(&self) -> u64 {
        self.next_in
    }

    #[inline]
    fn set_next_out(&mut self, seq: u64) {
        self.next_out = seq;
    }

    #[inline]
    fn set_next_in(&mut self, seq: u64) {
        self.next_in = seq;
    }

    /// Never fails: a message larger than the whole ring is not kept and will be gap-filled.
    #[inline]
    fn append(&mut self, seq: u64, message: &[u8]) -> Result<(), StoreFailed> {
        self.next_out = seq + 1;
        let mask = self.bytes.len() as u64 - 1;
        // A message lies in one piece: what does not fit before the end begins at the start.
        let fits = (self.written & mask) + message.len() as u64 <= mask + 1;
        let at = if fits {
            self.written
        } else {
            (self.written | mask) + 1
        };
        let offset = at & mask;
        if let Some(to) = self
            .bytes
            .get_mut(offset as usize..offset as usize + message.len())
        {
            to.copy_from_slice(message);
            self.written = at + message.len() as u64;
            let slot = seq as usize & (self.slots.len() - 1);
            self.given_way = self.given_way.max(self.slots[slot].seq);
            self.slots[slot] = Slot {
                seq,
                at,
                len: message.len() as u32,
            };
        } else {
            self.given_way = seq;
        }
        Ok(())
    }

    fn get(&mut self, seq: u64) -> Option<&[u8]> {
        let slot = self.slots[seq as usize & (self.slots.len() - 1)];
        let size = self.bytes.len() as u64;
        if slot.seq != seq || !self.has(&slot) {
            return None;
        }
        let offset = (slot.at & (size - 1)) as usize;
        self.bytes.get(offset..offset + slot.len as usize)
    }

    fn next_kept(&mut self, from: u64) -> Option<u64> {
        if self.get(from).is_some() {
            return Some(from);
        }
        let kept = self
            .slots
            .iter()
            .filter(|slot| slot.seq >= from && self.has(slot));
        kept.map(|slot| slot.seq).min()
    }

    fn not_kept(&self, from: u64, to: u64) -> Option<NotKept> {
        let overwritten = self.slots.iter().filter(|slot| !self.has(slot));
        let given_way = overwritten.map(|slot| slot.seq).fold(self.given_way, u64::max);
        NotKept::within(from, to, 0, given_way + 1)
    }

    fn reset(&mut self) {
        (self.next_out, self.next_in, self.given_way) = (1, 1, 0);
        self.slots.fill(Slot::default());
    }

    fn period(&self) -> Nanos {
        self.period
    }

    fn set_period(&mut self, start: Nanos) {
        self.period = start;
    }
}

persist!(value struct Slot { seq, at, len });
persist!(value struct NotKept { first, last, count });

/// What is kept, and which numbers were.
impl Persist for MemoryStore {
    fn save(&self, out: &mut Bytes) {
        (self.next_out, self.next_in).save(out);
        (self.written, self.period, self.given_way).save(out);
        let used = || self.slots.iter().enumerate().filter(|(_, slot)| slot.seq > 0);
        (used().count() as u64).save(out);
        for (at, slot) in used() {
            (at as u32, *slot).save(out);
            if self.has(slot) {
                let offset = (slot.at & (self.bytes.len() as u64 - 1)) as usize;
                out.extend_from_slice(&self.bytes[offset..offset + slot.len as usize]);
            }
        }
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        (self.next_out, self.next_in) = PersistValue::read(from)?;
        (self.written, self.period, self.given_way) = PersistValue::read(from)?;
        self.slots.fill(Slot::default());
        for _ in 0..u64::read(from)? {
            let (at, slot) = <(u32, Slot)>::read(from)?;
            if self.has(&slot) {
                let offset = (slot.at & (self.bytes.len() as u64 - 1)) as usize;
                let message = from.take(slot.len as usize)?;
                let to = self.bytes.get_mut(offset..offset + message.len());
                to.ok_or(Damaged)?.copy_from_slice(message);
            }
            *self.slots.get_mut(at as usize).ok_or(Damaged)? = slot;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    #[test]
    fn what_is_kept_is_what_was_sent_and_the_newest_always_is() {
        for size in [64, 100, 257] {
            let (mut store, mut sent) = (MemoryStore::new(8, size), BTreeMap::<u64, Vec<u8>>::new());
            let mut state = 7u64;
            for step in 1..20_000u64 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let seq = store.next_out();
                if state >> 60 == 0 {
                    store.set_next_out(seq + 1);
                    continue;
                }
                let message: Vec<u8> = (0..1 + (state >> 40) % 60).map(|i| (step + i) as u8).collect();
                store.append(seq, &message).unwrap();
                sent.insert(seq, message);
                assert_eq!(store.get(seq), Some(&sent[&seq][..]));
                for seq in seq.saturating_sub(20)..=seq + 2 {
                    if let Some(kept) = store.get(seq) {
                        assert_eq!(kept, &sent[&seq][..], "size {size} seq {seq}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_message_larger_than_the_ring_and_a_reset_leave_nothing_behind() {
        let mut store = MemoryStore::new(4, 16);
        store.append(1, &[1; 17]).unwrap();
        assert_eq!(store.get(1), None);
        assert_eq!(store.next_out(), 2);
        store.append(2, &[2; 16]).unwrap();
        assert_eq!(store.get(2), Some(&[2; 16][..]));
        store.reset();
        assert_eq!(store.get(2), None);
        assert_eq!((store.next_out(), store.next_in()), (1, 1));
    }
}
