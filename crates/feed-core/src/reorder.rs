//! The bounded buffer of packets that came before their turn: slots of equal size, kept in order of their
//! first message. A packet that is longer than a slot, such as a datagram that came in fragments, takes
//! several.

use crate::Line;
use alloc::{collections::VecDeque, vec, vec::Vec};
use tickwire_market::Nanos;

#[derive(Clone, Copy)]
struct Slot {
    first: u64,
    end: u64,
    len: u32,
    line: Line,
    received: Nanos,
    /// The slot in which the packet goes on.
    more: Option<u16>,
}

/// The longest datagram of UDP over IPv4, bytes.
const DATAGRAM_MAX: usize = 65_507;

/// A packet that was held back, as it came.
pub struct HeldPacket<'a> {
    /// Number of its first message.
    pub first: u64,
    /// Where it came from.
    pub line: Line,
    /// When it came.
    pub received: Nanos,
    /// The packet.
    pub bytes: &'a [u8],
}

/// Full: [`ReorderBuffer::insert`] refuses; the arbiter keeps the messages on its list of missing ones.
pub struct ReorderBuffer {
    bytes: Vec<u8>,
    slot_bytes: usize,
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Slot numbers by ascending `first`.
    order: VecDeque<u16>,
    /// How many slots hold the rest of a packet.
    rests: usize,
    /// A packet of several slots in one piece, while it is read.
    whole: Vec<u8>,
}

impl ReorderBuffer {
    /// Room for so many packets of so many bytes each, 1 at least; for fewer that are longer.
    pub fn new(packets: u16, slot_bytes: usize) -> ReorderBuffer {
        let slot_bytes = slot_bytes.max(1);
        let unused = Slot {
            first: 0,
            end: 0,
            len: 0,
            line: Line::A,
            received: Nanos::ZERO,
            more: None,
        };
        ReorderBuffer {
            bytes: vec![0; packets as usize * slot_bytes],
            slot_bytes,
            slots: vec![unused; packets as usize],
            free: (0..packets).rev().collect(),
            order: VecDeque::with_capacity(packets as usize),
            rests: 0,
            whole: vec![0; DATAGRAM_MAX.min(packets as usize * slot_bytes)],
        }
    }

    /// Whether no packet is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many packets are held.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// How many more packets can be held, if none is longer than a slot.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// How many places are kept for answers to requests.
    pub fn reserve(&self) -> usize {
        self.slots.len() / 16
    }

    /// How many slots a packet takes; `None` if it is longer than any datagram, or than the whole buffer.
    pub fn slots_of(&self, bytes: &[u8]) -> Option<usize> {
        (bytes.len() <= self.whole.len()).then(|| bytes.len().div_ceil(self.slot_bytes).max(1))
    }

    /// Holds a packet with messages `[first, end)`; false if there is no room for it.
    pub fn insert(&mut self, first: u64, end: u64, line: Line, received: Nanos, bytes: &[u8]) -> bool {
        let slots = self.slots_of(bytes).unwrap_or(usize::MAX);
        if slots > self.free.len() {
            return false;
        }
        // From the packet's end on, so that each slot knows the one behind it.
        let mut more = None;
        let pieces = (0..slots).rev().map(|nth| nth * self.slot_bytes);
        for begin in pieces {
            let piece = &bytes[begin..bytes.len().min(begin + self.slot_bytes)];
            let Some(slot) = self.free.pop() else { return false };
            let at = slot as usize * self.slot_bytes;
            self.bytes[at..at + piece.len()].copy_from_slice(piece);
            self.slots[slot as usize] = Slot {
                first,
                end,
                len: bytes.len() as u32,
                line,
                received,
                more,
            };
            more = Some(slot);
        }
        let Some(slot) = more else { return false };
        self.rests += slots - 1;
        // Packets mostly come in order, so the place is searched from the back.
        let after = self
            .order
            .iter()
            .rev()
            .take_while(|&&s| self.slots[s as usize].first > first)
            .count();
        let place = self.order.len() - after;
        self.order.insert(place, slot);
        debug_assert!(self.is_in_order(place), "a packet out of order");
        debug_assert!(
            self.order.len() + self.rests + self.free.len() == self.slots.len(),
            "a slot is lost"
        );
        true
    }

    /// Whether a packet stands between one that does not begin later and one that does not begin earlier.
    fn is_in_order(&self, place: usize) -> bool {
        let first = |at: usize| self.order.get(at).map(|&slot| self.slots[slot as usize].first);
        let before = place.checked_sub(1).and_then(first);
        before <= first(place) && first(place + 1).is_none_or(|after| first(place) <= Some(after))
    }

    /// The messages `[first, end)` of the earliest packet.
    pub fn front(&self) -> Option<(u64, u64)> {
        let slot = self.slots[*self.order.front()? as usize];
        Some((slot.first, slot.end))
    }

    /// Takes the earliest packet out. Its bytes stay readable until the next `insert`.
    pub fn pop_front(&mut self) -> Option<HeldPacket<'_>> {
        let number = self.order.pop_front()?;
        let Slot {
            first,
            len,
            line,
            received,
            more,
            ..
        } = self.slots[number as usize];
        let len = len as usize;
        let at = number as usize * self.slot_bytes;
        let bytes = match more {
            None => &self.bytes[at..at + len],
            Some(_) => {
                let mut slot = Some(number);
                for piece in self.whole[..len].chunks_mut(self.slot_bytes) {
                    let Some(of) = slot else { break };
                    let at = of as usize * self.slot_bytes;
                    piece.copy_from_slice(&self.bytes[at..at + piece.len()]);
                    slot = self.slots[of as usize].more;
                }
                &self.whole[..len]
            }
        };
        release(number, &self.slots, &mut self.free, &mut self.rests);
        Some(HeldPacket {
            first,
            line,
            received,
            bytes,
        })
    }

    /// Drops packets that begin at `first` or behind.
    pub fn forget_from(&mut self, first: u64) {
        while let Some(&slot) = self.order.back() {
            if self.slots[slot as usize].first < first {
                return;
            }
            self.order.pop_back();
            release(slot, &self.slots, &mut self.free, &mut self.rests);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        while self.pop_front().is_some() {}
    }
}

/// The slots of a packet that begins in this one are free.
fn release(slot: u16, slots: &[Slot], free: &mut Vec<u16>, rests: &mut usize) {
    free.push(slot);
    let mut more = slots[slot as usize].more;
    while let Some(slot) = more {
        free.push(slot);
        *rests -= 1;
        more = slots[slot as usize].more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of every length, in and out of order, come back as they were, and every slot is free again.
    #[test]
    fn packets_longer_than_a_slot_take_several() {
        let mut held = ReorderBuffer::new(16, 8);
        let packet = |first: u64, len: usize| -> Vec<u8> {
            (0..len).map(|nth| (first * 31 + nth as u64) as u8).collect()
        };
        for round in 0..200_u64 {
            let mut lengths = [0, 1, 7, 8, 9, 16, 17, 40].map(|length| (length + round as usize) % 41);
            lengths.reverse();
            let mut free = held.free();
            let mut inside = Vec::new();
            for (nth, length) in lengths.into_iter().enumerate() {
                let first = (nth as u64 * 5 + round) % 8;
                let needed = length.div_ceil(8).max(1);
                assert_eq!(held.slots_of(&packet(first, length)), Some(needed));
                let is_held = held.insert(first, first + 1, Line::B, Nanos(round), &packet(first, length));
                assert_eq!(
                    is_held,
                    needed <= free,
                    "round {round}, {length} bytes, {free} free"
                );
                if is_held {
                    free -= needed;
                    inside.push((first, length));
                }
                assert_eq!(held.free(), free);
            }
            inside.sort_by_key(|(first, _)| *first);
            if round % 3 == 0 {
                held.forget_from(6);
                inside.retain(|(first, _)| *first < 6);
            }
            assert_eq!(held.len(), inside.len());
            for (first, length) in inside {
                let found = held.pop_front().expect("one is held");
                assert_eq!(
                    (found.first, found.line, found.received),
                    (first, Line::B, Nanos(round))
                );
                assert_eq!(
                    found.bytes,
                    packet(first, length),
                    "round {round}, {length} bytes"
                );
            }
            assert!(held.is_empty() && held.pop_front().is_none());
            assert_eq!(held.free(), 16);
        }
    }

    #[test]
    fn what_is_longer_than_a_datagram_or_the_buffer_is_refused() {
        let mut held = ReorderBuffer::new(4, 8);
        assert_eq!(held.slots_of(&[0; 32]), Some(4));
        assert_eq!(held.slots_of(&[0; 33]), None);
        assert!(!held.insert(1, 2, Line::A, Nanos::ZERO, &[0; 33]));
        assert!(held.insert(1, 2, Line::A, Nanos::ZERO, &[0; 32]) && held.free() == 0);
        assert!(!held.insert(2, 3, Line::A, Nanos::ZERO, &[]));
        held.clear();
        let large = ReorderBuffer::new(64, 1_500);
        assert_eq!(large.slots_of(&[0; DATAGRAM_MAX]), Some(44));
        assert_eq!(large.slots_of(&[0; DATAGRAM_MAX + 1]), None);
        let none = ReorderBuffer::new(0, 1_500);
        assert_eq!(none.slots_of(&[0; 1]), None);
    }
}
