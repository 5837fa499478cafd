//! What a [`Receiver`](super::Receiver) looks at in this turn, and up to which time everything has been read.
//!
//! A thread may stand still for milliseconds: the scheduler or the host of a virtual machine has its core.
//! When it goes on, the packet that a gap waits for lies in a socket or in a ring; a gap that is judged by
//! the clock alone would be given up before that packet is read. What is due is therefore judged by the time
//! up to which every line has been read.

use tickwire_market::Nanos;

use super::Taken;

/// How often a thread that never sleeps looks at recovery groups and connections: each look is a system call.
const RECOVERY_LOOK_NS: u64 = 50 * Nanos::MICRO;
/// How often a thread that never sleeps looks at the sockets of lines that come by AF_XDP: they hear only
/// what the program leaves to the kernel.
const PASSED_LOOK_NS: u64 = Nanos::MILLI;
/// For how long it looks at them at every call when the program has left something to the kernel in which a
/// datagram of theirs may be, such as a fragment: the kernel is on it.
const ASIDE_NS: u64 = 200 * Nanos::MICRO;
/// A thread that finds no end of what its lines hold in so many looks is overrun: nothing waits for that end
/// then. Looks and not a time, as the thread may have stood still for any.
const LOOKS_BEHIND_MAX: u32 = 10_000;

/// Times of the thread's looks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Pace {
    /// The thread never sleeps, whatever [`Receiver::wait`](super::Receiver::wait) is told.
    spins: bool,
    next_recovery: Nanos,
    next_passed: Nanos,
    /// What programs have left to the kernel, and until when it is looked for.
    aside: (u64, Nanos),
    /// When the kernel is asked next which sockets have input, where lines come by AF_XDP.
    next_asking: Nanos,
    /// When it was asked last.
    asked: Nanos,
    /// When something is due.
    due: Option<Nanos>,
    /// Looks in a row after which lines held more than was taken.
    behind: u32,
    /// Everything that came before has been read; `None` before the first look.
    read: Option<Nanos>,
}

impl Pace {
    pub(super) fn new(spins: bool) -> Pace {
        Pace {
            spins,
            ..Pace::default()
        }
    }

    /// Whether the thread never sleeps.
    #[inline]
    pub(super) fn spins(&self) -> bool {
        self.spins
    }

    /// Whether recovery groups and connections are looked at.
    #[inline]
    pub(super) fn is_thorough(&self, now: Nanos) -> bool {
        !self.spins || now >= self.next_recovery
    }

    /// Recovery connections have been looked at.
    #[inline]
    pub(super) fn recovered(&mut self, now: Nanos) {
        if self.is_thorough(now) {
            self.next_recovery = now.after(RECOVERY_LOOK_NS);
        }
    }

    /// Whether the sockets of lines that come by AF_XDP are looked at. `aside`: what programs have left to
    /// the kernel so far.
    #[inline]
    pub(super) fn looks_at_passed(&mut self, now: Nanos, aside: u64) -> bool {
        if aside != self.aside.0 {
            self.aside = (aside, now.after(ASIDE_NS));
        }
        let looks = !self.spins || now >= self.next_passed || now < self.aside.1 || self.is_due(now);
        if self.spins && looks {
            self.next_passed = now.after(PASSED_LOOK_NS);
        }
        looks
    }

    /// Whether something is due.
    #[inline]
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    fn is_overrun(&self) -> bool {
        self.behind > LOOKS_BEHIND_MAX
    }

    /// Lines were looked at from `now` on: `is_all` of them. `asks`: sockets were read only if the kernel had
    /// said, when it was asked last, that they have input.
    #[inline]
    pub(super) fn looked(&mut self, now: Nanos, taken: Taken, (is_all, asks): (bool, bool)) {
        let is_whole = taken != Taken::Part;
        self.behind = match is_whole {
            true => 0,
            false => self.behind.saturating_add(1),
        };
        let before = self.read.unwrap_or(Nanos::ZERO);
        let read = match is_all && is_whole || self.is_overrun() {
            true if asks => self.asked.min(now),
            true => now,
            false => before,
        };
        self.read = Some(read.max(before));
    }

    /// By which time is judged what is due.
    #[inline]
    pub(super) fn judged_by(&self, now: Nanos) -> Nanos {
        self.read.map_or(now, |read| read.min(now))
    }

    /// What is due next, everything that was due having been done.
    #[inline]
    pub(super) fn due_at(&mut self, due: Option<Nanos>) {
        self.due = due;
    }

    /// Whether a thread that spins asks the kernel which sockets have input. `every`: at each turn, as no
    /// line comes by AF_XDP; elsewhere asking is a system call, and what comes by AF_XDP needs none.
    #[inline]
    pub(super) fn asks(&mut self, now: Nanos, every: bool) -> bool {
        let asks = every || now >= self.next_asking || now < self.aside.1 || self.is_due(now);
        if asks {
            self.next_asking = now.after(RECOVERY_LOOK_NS);
            self.asks_now(now);
        }
        asks
    }

    /// The kernel is about to be asked.
    #[inline]
    pub(super) fn asks_now(&mut self, now: Nanos) {
        self.asked = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: (bool, bool) = (true, false);

    #[test]
    fn what_is_due_is_judged_by_what_was_read() {
        let mut pace = Pace::new(true);
        assert_eq!(pace.judged_by(Nanos(7)), Nanos(7), "nothing is read from lines");
        pace.looked(Nanos(10), Taken::All, ALL);
        assert_eq!(pace.judged_by(Nanos(50)), Nanos(10));
        pace.looked(Nanos(60), Taken::Part, ALL);
        assert_eq!(pace.judged_by(Nanos(90)), Nanos(10));
        // Sockets that were not looked at hold something, perhaps.
        pace.looked(Nanos(100), Taken::All, (false, true));
        assert_eq!(pace.judged_by(Nanos(110)), Nanos(10));
        // What the kernel was asked for lies before it was asked.
        pace.asks_now(Nanos(105));
        pace.looked(Nanos(120), Taken::Nothing, (true, true));
        assert_eq!(pace.judged_by(Nanos(130)), Nanos(105));
        // Time does not go back.
        pace.looked(Nanos(90), Taken::Nothing, ALL);
        assert_eq!(pace.judged_by(Nanos(130)), Nanos(105));
    }

    #[test]
    fn nobody_who_is_overrun_waits_for_an_end() {
        let mut pace = Pace::new(true);
        for at in 0..LOOKS_BEHIND_MAX {
            pace.looked(Nanos(u64::from(at) * Nanos::SECOND), Taken::Part, ALL);
        }
        let late = Nanos(Nanos::DAY);
        assert_eq!(pace.judged_by(late), Nanos::ZERO);
        pace.looked(late, Taken::Part, ALL);
        assert_eq!(pace.judged_by(late), late);
        pace.looked(late, Taken::All, ALL);
        pace.looked(late.after(1), Taken::Part, ALL);
        assert_eq!(pace.judged_by(late.after(1)), late, "it begins anew");
    }

    #[test]
    fn sockets_beside_rings_are_looked_at_seldom_and_in_time() {
        let mut pace = Pace::new(true);
        assert!(pace.looks_at_passed(Nanos(5), 0), "at first");
        let now = Nanos(1_000);
        assert!(!pace.looks_at_passed(now, 0), "seldom");
        assert!(pace.looks_at_passed(now, 1), "the kernel has something");
        let later = now.after(ASIDE_NS);
        assert!(pace.looks_at_passed(Nanos(later.0 - 1), 1) && !pace.looks_at_passed(later, 1));
        pace.due_at(Some(later.after(5)));
        assert!(!pace.looks_at_passed(later.after(4), 1));
        assert!(
            pace.looks_at_passed(later.after(5), 1),
            "before it counts as lost"
        );
        assert!(
            Pace::new(false).looks_at_passed(now, 0),
            "who sleeps looks each time"
        );
    }

    #[test]
    fn the_kernel_is_asked_when_something_is_due() {
        let mut pace = Pace::new(true);
        assert!(pace.asks(Nanos(5), false) && !pace.asks(Nanos(6), false) && pace.asks(Nanos(7), true));
        pace.due_at(Some(Nanos(9)));
        assert!(!pace.asks(Nanos(8), false) && pace.asks(Nanos(9), false));
        assert!(pace.asks(Nanos(9).after(RECOVERY_LOOK_NS), false));
    }
}
