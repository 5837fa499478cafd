//! Previous values (FAST 1.1, section 6.3.1, "Dictionaries and Previous Values").
//!
//! A message either takes effect whole or not at all: each entry keeps the value it had before the current
//! message, so that a message found malformed half-way is taken back.

use alloc::boxed::Box;
use alloc::vec;

use super::plan::Plan;
use super::value::{Cell, Kind, Limits, Text};

const EPOCH: u32 = 32;
/// Kind and epoch, without the exponent.
const IDENTITY: u64 = 0xffff_ffff_0000_00ff;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    current: Cell,
    saved: Cell,
    /// The message that wrote `current`, and before which it was `saved`.
    written_by: u64,
}

/// What an entry holds, other than a value of the type asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Previous {
    /// A value of the type asked for.
    Assigned(Cell),
    /// Never written since the last reset.
    Undefined,
    /// The field was absent.
    Empty,
    /// A value of another type.
    Other,
}

/// The entries of all dictionaries of a plan, with the text that they refer to.
#[derive(Clone, Debug)]
pub(crate) struct Dictionary {
    entries: Box<[Entry]>,
    /// Entries of another epoch are undefined; a reset is a new epoch.
    epoch: u32,
    epoch_before: u32,
    message: u64,
    /// The other half of the text's semi-space.
    spare: Text,
    fixed: usize,
    mark: usize,
}

impl Dictionary {
    pub(crate) fn new(plan: &Plan, limits: &Limits) -> Dictionary {
        Dictionary {
            entries: vec![Entry::default(); plan.dict_len].into_boxed_slice(),
            epoch: 1,
            epoch_before: 1,
            message: 1,
            spare: Text::new(&plan.text, limits.text_bytes_max),
            fixed: plan.text.len(),
            mark: plan.text.len(),
        }
    }

    /// Everything becomes undefined.
    #[inline]
    pub(crate) fn reset(&mut self) {
        match self.epoch.checked_add(1) {
            Some(epoch) => self.epoch = epoch,
            None => self.restart_epochs(),
        }
    }

    /// Once in 2^32 resets: forgets the old epochs.
    #[cold]
    fn restart_epochs(&mut self) {
        for entry in &mut self.entries {
            entry.current = Cell::ABSENT;
        }
        self.epoch = 1;
    }

    /// A reset between messages, which also drops all text.
    #[inline]
    pub(crate) fn reset_all(&mut self, text: &mut Text) {
        self.reset();
        text.truncate(self.fixed);
    }

    /// Begins a message. Makes room for text when less than half of it is left.
    #[inline]
    pub(crate) fn begin(&mut self, text: &mut Text) {
        if text.used() - self.fixed > (text.capacity() - self.fixed) / 2 {
            self.compact(text);
        }
        self.mark = text.used();
        self.epoch_before = self.epoch;
    }

    /// Copies the texts that entries refer to into the other half and changes the halves.
    #[cold]
    fn compact(&mut self, text: &mut Text) {
        self.spare.truncate(self.fixed);
        for entry in &mut self.entries {
            let cell = entry.current;
            let live = (cell.meta >> EPOCH) as u32 == self.epoch && cell.kind().is_text();
            if live && cell.high() >= self.fixed {
                // Cannot fail: the live texts lie without overlap in an arena of the same size.
                entry.current.bits = self.spare.push(text.get(cell), &[]).unwrap_or(0);
            }
        }
        core::mem::swap(&mut self.spare, text);
    }

    /// The message takes effect.
    #[inline]
    pub(crate) fn commit(&mut self) {
        self.message += 1;
    }

    /// The message is taken back.
    #[cold]
    pub(crate) fn abort(&mut self, text: &mut Text) {
        for entry in &mut self.entries {
            if entry.written_by == self.message {
                entry.current = entry.saved;
                entry.written_by = 0;
            }
        }
        self.epoch = self.epoch_before;
        text.truncate(self.mark);
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: u16, kind: Kind) -> Previous {
        let cell = self
            .entries
            .get(usize::from(index))
            .map_or(Cell::ABSENT, |e| e.current);
        if cell.meta & IDENTITY == u64::from(self.epoch) << EPOCH | kind as u64 {
            return Previous::Assigned(cell);
        }
        self.not_assigned(cell)
    }

    fn not_assigned(&self, cell: Cell) -> Previous {
        if (cell.meta >> EPOCH) as u32 != self.epoch {
            Previous::Undefined
        } else if cell.is_absent() {
            Previous::Empty
        } else {
            Previous::Other
        }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, index: u16, cell: Cell) {
        let Some(entry) = self.entries.get_mut(usize::from(index)) else {
            return;
        };
        if entry.written_by != self.message {
            entry.saved = entry.current;
            entry.written_by = self.message;
        }
        let meta = cell.meta & 0xffff_ffff | u64::from(self.epoch) << EPOCH;
        entry.current = Cell {
            bits: cell.bits,
            meta,
        };
    }
}
