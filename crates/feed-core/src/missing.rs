//! The bounded, sorted list of missing ranges. What is asked for to fill them: `recovery`.

use alloc::vec::Vec;
use tickwire_market::Nanos;

/// Messages `[first, end)` are missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hole {
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// When to act on it: until then the other line may still fill it.
    pub(crate) due: Nanos,
    /// Given up, and counted as lost.
    pub(crate) lost: bool,
}

impl Hole {
    pub(crate) fn new(first: u64, end: u64, due: Nanos) -> Hole {
        Hole {
            first,
            end,
            due,
            lost: false,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.end - self.first
    }
}

/// Ascending, disjoint, none empty. Full: the arbiter lets the last hole grow instead of opening another.
pub(crate) struct Missing {
    holes: Vec<Hole>,
    capacity: usize,
}

impl Missing {
    pub(crate) fn new(capacity: u16) -> Missing {
        let capacity = capacity.max(2) as usize;
        // One more: putting a hole before all others is always possible.
        Missing {
            holes: Vec::with_capacity(capacity + 1),
            capacity,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.holes.is_empty()
    }

    /// Whether a packet that splits a hole and opens another might not be recorded.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.holes.len() + 2 > self.capacity
    }

    pub(crate) fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// The holes from the first on that reaches beyond `seq`.
    fn from(&self, seq: u64) -> &[Hole] {
        &self.holes[self.holes.partition_point(|h| h.end <= seq)..]
    }

    /// Whether any message of `[first, end)` is missing and not given up.
    pub(crate) fn has_any(&self, first: u64, end: u64) -> bool {
        let holes = self.from(first).iter();
        holes.take_while(|h| h.first < end).any(|h| !h.lost)
    }

    /// The first missing message from `first` on, and the end of the last one before `end`; given up ones do
    /// not count.
    pub(crate) fn bounds(&self, first: u64, end: u64) -> Option<(u64, u64)> {
        let holes = self.from(first).iter().take_while(|h| h.first < end);
        let mut holes = holes.filter(|h| !h.lost);
        let nearest = holes.next()?;
        let last = holes.last().unwrap_or(nearest);
        Some((nearest.first.max(first), last.end.min(end)))
    }

    /// Where the hole ends that a message is in.
    pub(crate) fn hole_end(&self, seq: u64) -> Option<u64> {
        self.from(seq).first().filter(|h| h.first <= seq).map(|h| h.end)
    }

    /// Gives `[first, end)` up; a hole that reaches beyond is cut where there is room on the list, and given
    /// up whole where there is none. Returns how many messages are newly given up.
    pub(crate) fn lose(&mut self, first: u64, end: u64) -> u64 {
        let mut lost = 0;
        let mut i = self.holes.partition_point(|h| h.end <= first);
        while i < self.holes.len() && self.holes[i].first < end {
            let hole = self.holes[i];
            i += 1;
            if hole.lost {
                continue;
            }
            // The room for one more is for holes before all others.
            let capacity = self.capacity;
            let cut_at = |at: u64, holes: &mut Vec<Hole>, i: usize| {
                let fits = at > hole.first && at < hole.end && holes.len() < capacity;
                if fits {
                    let whole = holes[i];
                    holes[i].end = at;
                    holes.insert(i + 1, Hole { first: at, ..whole });
                }
                fits
            };
            cut_at(end, &mut self.holes, i - 1);
            if cut_at(first, &mut self.holes, i - 1) {
                i += 1;
            }
            let given_up = &mut self.holes[i - 1];
            given_up.lost = true;
            lost += given_up.len();
        }
        self.check();
        lost
    }

    pub(crate) fn first(&self) -> Option<&Hole> {
        self.holes.first()
    }

    pub(crate) fn remove_first(&mut self) {
        self.holes.remove(0);
    }

    /// How many messages are missing altogether.
    pub(crate) fn messages(&self) -> u64 {
        self.holes.iter().fold(0, |sum, h| sum.saturating_add(h.len()))
    }

    /// How many messages of `[first, end)` are missing.
    pub(crate) fn overlap(&self, first: u64, end: u64) -> u64 {
        self.holes
            .iter()
            .map(|h| h.end.min(end).saturating_sub(h.first.max(first)))
            .sum()
    }

    /// Adds the range `[first, end)` behind all others: grows the last hole if it touches it or if the list
    /// is full. Returns how many messages are missing now that were not, and whether the range is a hole of
    /// its own.
    pub(crate) fn append(&mut self, first: u64, end: u64, due: Nanos) -> (u64, bool) {
        let full = self.holes.len() >= self.capacity;
        let grown = match self.holes.last_mut() {
            // One that was given up does not grow: what follows it has not been asked for.
            Some(last) if last.end == first && !last.lost || full => {
                let grown = end - last.end;
                last.end = end;
                (grown, false)
            }
            _ => {
                self.holes.push(Hole::new(first, end, due));
                (end - first, true)
            }
        };
        self.check();
        grown
    }

    /// Makes `[first, end)`, which lies at or before the first hole's start, one hole, swallowing those
    /// inside it. Returns how many messages were not missing before.
    pub(crate) fn prepend(&mut self, first: u64, end: u64, due: Nanos) -> u64 {
        let known = self.overlap(first, end);
        self.holes.retain(|h| h.end > end);
        match self.holes.first_mut() {
            Some(h) if h.first <= end => h.first = first,
            _ => self.holes.insert(0, Hole::new(first, end, due)),
        }
        self.check();
        (end - first) - known
    }

    /// `[first, end)` has arrived. What is left behind it is due at `due`, or when it was, if it came as an
    /// answer: the rest of a partial answer is asked for at once. Returns how many messages it fills, those
    /// that were given up and come after all too.
    pub(crate) fn fill(&mut self, first: u64, end: u64, due: Nanos, answered: bool) -> u64 {
        let mut filled = 0;
        let mut i = 0;
        while i < self.holes.len() && self.holes[i].first < end {
            let hole = self.holes[i];
            let (from, to) = (hole.first.max(first), hole.end.min(end));
            if from >= to {
                i += 1;
                continue;
            }
            filled += to - from;
            let before = Hole { end: from, ..hole };
            let mut after = Hole { first: to, ..hole };
            if !answered {
                after.due = due;
            }
            match (before.first < before.end, after.first < after.end) {
                (false, false) => {
                    self.holes.remove(i);
                    continue;
                }
                (true, false) => self.holes[i] = before,
                (false, true) => self.holes[i] = after,
                (true, true) => {
                    self.holes[i] = before;
                    self.holes.insert(i + 1, after);
                    i += 1;
                }
            }
            i += 1;
        }
        self.check();
        filled
    }

    /// `[first, end)` has arrived and could not be kept: asks anew at `due`.
    pub(crate) fn postpone(&mut self, first: u64, end: u64, due: Nanos) {
        for hole in self.holes.iter_mut().filter(|h| h.first < end && h.end > first) {
            hole.due = due;
        }
    }

    /// Forgets everything before `first`; what remains starts afresh. Returns how many messages that was,
    /// those before `joined` left out.
    pub(crate) fn forget_before(&mut self, first: u64, joined: u64, due: Nanos) -> u64 {
        let mut lost = 0;
        for hole in &mut self.holes {
            let cut = hole.end.min(first);
            lost += cut.saturating_sub(hole.first.max(joined));
            *hole = Hole::new(hole.first.max(first), hole.end, due);
        }
        self.holes.retain(|h| h.end > first);
        self.check();
        lost
    }

    /// Nothing from `end` on exists.
    pub(crate) fn forget_from(&mut self, end: u64) {
        self.holes.retain(|h| h.first < end);
        if let Some(last) = self.holes.last_mut() {
            last.end = last.end.min(end);
        }
        self.check();
    }

    pub(crate) fn clear(&mut self) {
        self.holes.clear();
    }

    /// What is said of the list.
    #[inline(always)]
    fn check(&self) {
        debug_assert!(
            self.holes.iter().all(|hole| hole.first < hole.end),
            "an empty hole"
        );
        debug_assert!(
            self.holes.windows(2).all(|pair| pair[0].end <= pair[1].first),
            "holes that overlap, or out of order"
        );
    }

    /// Whether the list needs more memory than was taken: the arbiter opens no hole that would.
    pub(crate) fn is_overfull(&self) -> bool {
        self.holes.len() > self.capacity + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_that_was_given_up_does_not_grow() {
        let mut missing = Missing::new(4);
        assert_eq!(missing.append(5, 8, Nanos(1)), (3, true));
        assert_eq!(missing.append(8, 9, Nanos(1)), (1, false), "one hole");
        missing.lose(5, 9);
        assert_eq!(
            missing.append(9, 12, Nanos(2)),
            (3, true),
            "what follows is asked for"
        );
        let lost: Vec<bool> = missing.holes().iter().map(|hole| hole.lost).collect();
        assert_eq!(lost, [true, false]);
    }
}
