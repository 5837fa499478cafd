//! Mass quotes that were sent and not answered yet.

use super::ENTRIES_MAX;
use alloc::boxed::Box;
use alloc::vec;
use tickwire_book::prefetch;
use tickwire_market::{MassQuoteEntry, Nanos};

/// A message under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// 0 is none.
    pub(super) id: u64,
    pub(super) sent: Nanos,
    pub(super) len: u8,
    pub(super) entries: [MassQuoteEntry; ENTRIES_MAX],
}

/// Messages under way, by number: bounded, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct Flights {
    /// As many as a power of two says, so that a number's place is found without a division.
    slots: Box<[Flight]>,
    /// How many numbers may be between the first under way and the last.
    most: u64,
    /// No number below it is under way.
    oldest: u64,
    next: u64,
}

impl Flights {
    pub(super) fn new(most: usize) -> Flights {
        let none = Flight {
            id: 0,
            sent: Nanos::ZERO,
            len: 0,
            entries: [MassQuoteEntry::default(); ENTRIES_MAX],
        };
        Flights {
            slots: vec![none; most.max(1).next_power_of_two()].into_boxed_slice(),
            most: most.max(1) as u64,
            oldest: 1,
            next: 1,
        }
    }

    #[inline]
    fn place(&self, id: u64) -> usize {
        id as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn slot(&mut self, id: u64) -> &mut Flight {
        let at = self.place(id);
        &mut self.slots[at]
    }

    /// A place for the next message; `None` when as many are under way as may be.
    #[inline]
    pub(super) fn reserve(&mut self) -> Option<&mut Flight> {
        let id = self.next;
        if let Some(last) = id.checked_sub(self.most)
            && last > 0
            && self.slot(last).id == last
        {
            return None;
        }
        Some(self.slot(id))
    }

    /// Takes the reserved place; the message's number.
    pub(super) fn depart(&mut self, now: Nanos, len: usize) -> u64 {
        let id = self.next;
        let flight = self.slot(id);
        (flight.id, flight.sent, flight.len) = (id, now, len as u8);
        self.next += 1;
        id
    }

    /// The number the next message will have.
    pub(super) fn next_id(&self) -> u64 {
        self.next
    }

    /// Fetches the place of the next message.
    pub(super) fn fetch_next(&self) {
        prefetch::fetch_value(&self.slots[self.place(self.next)]);
    }

    /// A number for a message that is not a mass quote.
    pub(super) fn number(&mut self) -> u64 {
        let id = self.next;
        // Its place in the ring is left out.
        self.next += 1;
        id
    }

    /// Ends a message's flight; `None` if it is not under way.
    pub(super) fn arrive(&mut self, id: u64) -> Option<Flight> {
        let flight = self.slot(id);
        if id == 0 || flight.id != id {
            return None;
        }
        let copy = *flight;
        flight.id = 0;
        self.settle();
        Some(copy)
    }

    /// When the oldest message under way was sent.
    pub(super) fn oldest_sent(&mut self) -> Option<Nanos> {
        self.settle();
        let oldest = self.oldest;
        (oldest < self.next).then(|| self.slot(oldest).sent)
    }

    /// How many are under way. A walk over those that may be: not for the hot path.
    pub(super) fn len(&self) -> usize {
        self.slots.iter().filter(|flight| flight.id != 0).count()
    }

    fn settle(&mut self) {
        while self.oldest < self.next && {
            let oldest = self.oldest;
            self.slot(oldest).id != oldest
        } {
            self.oldest += 1;
        }
    }

    pub(super) fn clear(&mut self) {
        self.slots.iter_mut().for_each(|flight| flight.id = 0);
        self.oldest = self.next;
    }

    /// What is under way.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &MassQuoteEntry> {
        let flying = self.slots.iter().filter(|flight| flight.id != 0);
        flying.flat_map(|flight| &flight.entries[..usize::from(flight.len)])
    }
}
