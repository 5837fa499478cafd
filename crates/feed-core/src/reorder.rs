//! The bounded buffer of packets that came before their turn: slots of equal size, kept in order of their
//! first message.

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
}

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
}

impl ReorderBuffer {
    /// Room for so many packets of so many bytes each.
    pub fn new(packets: u16, slot_bytes: usize) -> ReorderBuffer {
        let unused = Slot {
            first: 0,
            end: 0,
            len: 0,
            line: Line::A,
            received: Nanos::ZERO,
        };
        ReorderBuffer {
            bytes: vec![0; packets as usize * slot_bytes],
            slot_bytes,
            slots: vec![unused; packets as usize],
            free: (0..packets).rev().collect(),
            order: VecDeque::with_capacity(packets as usize),
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

    /// How many more packets can be held.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// How many places are kept for answers to requests.
    pub fn reserve(&self) -> usize {
        self.slots.len() / 16
    }

    /// Whether there is no room for another packet.
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Whether a packet is short enough.
    pub fn fits(&self, bytes: &[u8]) -> bool {
        bytes.len() <= self.slot_bytes
    }

    /// Holds a packet with messages `[first, end)`; false if there is no room for it.
    pub fn insert(&mut self, first: u64, end: u64, line: Line, received: Nanos, bytes: &[u8]) -> bool {
        if !self.fits(bytes) {
            return false;
        }
        let Some(slot) = self.free.pop() else { return false };
        let at = slot as usize * self.slot_bytes;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.slots[slot as usize] = Slot {
            first,
            end,
            len: bytes.len() as u32,
            line,
            received,
        };
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
            self.order.len() + self.free.len() == self.slots.len(),
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
        self.free.push(number);
        let Slot {
            first,
            len,
            line,
            received,
            ..
        } = self.slots[number as usize];
        let at = number as usize * self.slot_bytes;
        Some(HeldPacket {
            first,
            line,
            received,
            bytes: &self.bytes[at..at + len as usize],
        })
    }

    /// Drops packets that begin at `first` or behind.
    pub fn forget_from(&mut self, first: u64) {
        while let Some(&slot) = self.order.back() {
            if self.slots[slot as usize].first < first {
                return;
            }
            self.order.pop_back();
            self.free.push(slot);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        while self.pop_front().is_some() {}
    }
}
