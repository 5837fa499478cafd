//! Which deliveries of a channel have been taken.

/// Deliveries of a channel, which the program numbers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Progress {
    /// The next delivery's number.
    next: u32,
    begun: bool,
    /// So many before it have not come: in another queue's ring still, or lost.
    missing: u32,
    /// As many at least were missing when [`Progress::settle`] looked last, without a late one since.
    overdue: u32,
}

/// What a delivery's number says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// All deliveries before this one have been taken.
    pub is_whole: bool,
    /// So many before it will not come any more.
    pub lost: u32,
}

impl Progress {
    /// A delivery comes. `in_order`: there is one ring, in which none overtakes another.
    #[inline]
    pub(crate) fn step(&mut self, number: u32, in_order: bool) -> Step {
        let ahead = match self.begun {
            true => number.wrapping_sub(self.next),
            // Before the socket was there, packets went to the ordinary ones.
            false => 0,
        };
        if ahead >= 1 << 31 {
            // Behind what was taken already: of another queue.
            self.missing = self.missing.saturating_sub(1);
            self.overdue = 0;
            return Step {
                is_whole: false,
                lost: 0,
            };
        }
        self.next = number.wrapping_add(1);
        self.begun = true;
        let lost = if in_order { ahead } else { 0 };
        if !in_order {
            self.missing = self.missing.saturating_add(ahead);
        }
        Step {
            is_whole: ahead == 0 && self.missing == 0,
            lost,
        }
    }

    /// Whether a delivery is to be taken now: it comes next, or there is nothing to wait for before it. While
    /// some are missing it is not waited for others.
    #[inline]
    pub(crate) fn is_due(&self, number: u32) -> bool {
        !self.begun || self.missing > 0 || number.wrapping_sub(self.next).cast_signed() <= 0
    }

    /// Whether this is the delivery that comes next.
    #[inline]
    pub(crate) fn is_next(&self, number: u32) -> bool {
        !self.begun && number == 0 || self.begun && self.next == number
    }

    /// How many were taken, if none is missing.
    pub(crate) fn taken(&self) -> Option<u32> {
        (self.missing == 0).then_some(self.next)
    }

    /// Gives up what has been missing since the call before, and says how many those are.
    pub(crate) fn settle(&mut self) -> u32 {
        let lost = self.overdue.min(self.missing);
        self.missing -= lost;
        self.overdue = self.missing;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Step = Step {
        is_whole: true,
        lost: 0,
    };
    const OPEN: Step = Step {
        is_whole: false,
        lost: 0,
    };

    #[test]
    fn in_one_ring_a_jump_is_a_loss() {
        let mut progress = Progress::default();
        assert_eq!(
            progress.step(u32::MAX, true),
            WHOLE,
            "the first may have any number"
        );
        assert_eq!(progress.step(0, true), WHOLE);
        assert_eq!(
            progress.step(3, true),
            Step {
                is_whole: false,
                lost: 2
            }
        );
        assert_eq!(progress.step(4, true), WHOLE);
        assert_eq!((progress.taken(), progress.settle()), (Some(5), 0));
    }

    /// What was said of a delivery behind a hole must not count until the hole is closed, whatever comes
    /// after it.
    #[test]
    fn over_several_rings_nothing_counts_while_one_is_missing() {
        let mut progress = Progress::default();
        assert_eq!(progress.step(0, false), WHOLE);
        assert_eq!(progress.step(2, false), OPEN);
        assert_eq!(progress.step(3, false), OPEN, "1 may wait in another ring");
        assert_eq!(progress.taken(), None);
        assert_eq!(
            progress.step(1, false),
            OPEN,
            "its own claim is older than what was taken"
        );
        assert_eq!((progress.step(4, false), progress.taken()), (WHOLE, Some(5)));
    }

    #[test]
    fn what_is_ahead_waits_until_something_is_missing() {
        let mut progress = Progress::default();
        assert!(progress.is_due(7), "the first may have any number");
        progress.step(u32::MAX, false);
        assert!(
            progress.is_due(0) && !progress.is_due(1),
            "0 may wait in another ring"
        );
        assert!(progress.is_due(u32::MAX - 1), "a late one");
        // Nobody waits longer: 0 is missing now.
        progress.step(1, false);
        assert!(progress.is_due(3));
        progress.step(0, false);
        assert!(progress.is_due(2) && !progress.is_due(3));
    }

    #[test]
    fn what_stays_missing_over_two_looks_is_lost() {
        let mut progress = Progress::default();
        progress.step(0, false);
        progress.step(3, false);
        assert_eq!(progress.settle(), 0, "it may be on its way");
        progress.step(1, false);
        assert_eq!(progress.settle(), 0, "some came: the rest may too");
        progress.step(5, false);
        assert_eq!(progress.settle(), 1, "2 has not come; 4 may");
        assert_eq!((progress.step(6, false), progress.taken()), (OPEN, None));
        assert_eq!(progress.settle(), 1);
        assert_eq!((progress.step(7, false), progress.taken()), (WHOLE, Some(8)));
    }
}
