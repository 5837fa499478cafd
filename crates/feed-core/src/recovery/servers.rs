//! Which of the servers of one kind is asked.

/// Servers that say the same: asked until one fails.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    count: u8,
    at: u8,
    failures: u8,
    /// How often another one was taken.
    pub(super) changes: u64,
}

/// A server may be silent so often in a row before the other one is asked.
const SILENCES_MAX: u8 = 2;

impl Servers {
    pub(super) fn new() -> Servers {
        Servers {
            count: 1,
            at: 0,
            failures: 0,
            changes: 0,
        }
    }

    pub(super) fn set_count(&mut self, count: u8) {
        self.count = count.max(1);
        self.at = self.at.min(self.count - 1);
    }

    pub(super) fn at(&self) -> usize {
        usize::from(self.at)
    }

    pub(super) fn has_another(&self) -> bool {
        self.count > 1
    }

    /// It answered as it should.
    pub(super) fn good(&mut self) {
        self.failures = 0;
    }

    /// It did not answer.
    pub(super) fn silent(&mut self) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= SILENCES_MAX {
            self.bad();
        }
    }

    /// It refuses, or what it says cannot be right.
    pub(super) fn bad(&mut self) {
        self.failures = 0;
        if self.count > 1 {
            self.at = (self.at + 1) % self.count;
            self.changes += 1;
        }
    }
}
