//! When a received datagram was where: one type from the receiver to everybody who takes what it received.
//!
//! ```text
//!   wire ──────────► hook ──────────────► user space                 by AF_XDP
//!   card's clock     CLOCK_MONOTONIC      time stamp counter
//!                    kernel's stack ────► user space                 by a socket
//!                    CLOCK_REALTIME       time stamp counter
//! ```
//! Every stamp is kept in the clock it was taken with. [`RxStamp::times`] puts them beside each other on one
//! [`Clock`]; what was not measured, or cannot be compared honestly, is absent and never 0.

use std::num::NonZeroU64;

use tickwire_market::Nanos;

use crate::clock::Clock;

/// When a datagram was where, each time in the clock it was taken with.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RxStamp {
    /// Here: the time stamp counter ([`crate::clock::tsc`]) when it was in this process's hands.
    pub tsc: u64,
    /// In the kernel's stack: nanoseconds of `CLOCK_REALTIME` (SO_TIMESTAMPNS); only of what came by a
    /// socket, where it was asked for.
    pub kernel_ns: Option<NonZeroU64>,
    /// At the hook of the driver: nanoseconds of `CLOCK_MONOTONIC`, when the program saw it; only of what
    /// came by AF_XDP.
    pub hook_ns: Option<NonZeroU64>,
    /// On the wire: nanoseconds of the network card's own clock, which may count from any time at any rate;
    /// `None` where card or driver do not say.
    pub wire_ns: Option<NonZeroU64>,
    /// The same moment on `CLOCK_MONOTONIC`; `None` where the card's clock is not compared with it
    /// ([`crate::card::CardClock`]).
    pub wire_monotonic_ns: Option<NonZeroU64>,
}

impl RxStamp {
    /// Of a datagram of which only is known that it is here.
    #[inline]
    pub const fn here(tsc: u64) -> RxStamp {
        RxStamp {
            tsc,
            kernel_ns: None,
            hook_ns: None,
            wire_ns: None,
            wire_monotonic_ns: None,
        }
    }

    /// All of it on one clock.
    #[inline]
    pub fn times(&self, clock: &Clock) -> RxTimes {
        let monotonic = |ns: NonZeroU64| clock.at_monotonic(Nanos(ns.get()));
        RxTimes {
            wire: self.wire_monotonic_ns.map(monotonic),
            hook: self.hook_ns.map(monotonic),
            kernel: self.kernel_ns.map(|ns| clock.at_wall(Nanos(ns.get()))),
            user: clock.nanos_at(self.tsc),
        }
    }

    /// UTC of the earliest stamp that the system took, nanoseconds since 1970: what a recording says of a
    /// datagram. `wall_ahead_ns` is what UTC is ahead of `CLOCK_MONOTONIC`. `None` if there is no such stamp.
    #[inline]
    pub fn arrived_utc(&self, wall_ahead_ns: u64) -> Option<NonZeroU64> {
        let at_hook = self.hook_ns.and_then(|ns| ns.checked_add(wall_ahead_ns));
        at_hook.or(self.kernel_ns)
    }
}

/// The times of a datagram on one [`Clock`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxTimes {
    /// On the wire.
    pub wire: Option<Nanos>,
    /// At the hook of the driver.
    pub hook: Option<Nanos>,
    /// In the kernel's stack.
    pub kernel: Option<Nanos>,
    /// In this process's hands.
    pub user: Nanos,
}

impl RxTimes {
    /// From the wire to the hook, nanoseconds. Stamps of two clocks may cross by the clocks' error; that
    /// counts as 0, here and below.
    #[inline]
    pub fn wire_to_hook(&self) -> Option<u64> {
        Some(self.hook?.since(self.wire?))
    }

    /// From the hook to user space, nanoseconds.
    #[inline]
    pub fn hook_to_user(&self) -> Option<u64> {
        Some(self.user.since(self.hook?))
    }

    /// From the kernel's stack to user space, nanoseconds.
    #[inline]
    pub fn kernel_to_user(&self) -> Option<u64> {
        Some(self.user.since(self.kernel?))
    }

    /// The earliest that is known, if anything but [`RxTimes::user`] is.
    #[inline]
    pub fn first(&self) -> Option<Nanos> {
        self.wire.or(self.hook).or(self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{monotonic, tsc, wall};

    #[test]
    fn what_was_not_measured_is_absent_and_never_zero() {
        let clock = Clock::calibrate();
        let times = RxStamp::here(tsc()).times(&clock);
        assert_eq!(
            (
                times.wire_to_hook(),
                times.hook_to_user(),
                times.kernel_to_user(),
                times.first()
            ),
            (None, None, None, None)
        );
        // A card's time that is not compared with ours makes no column.
        let foreign = RxStamp {
            wire_ns: NonZeroU64::new(1),
            hook_ns: NonZeroU64::new(monotonic().0),
            ..RxStamp::here(tsc())
        };
        let times = foreign.times(&clock);
        assert_eq!((times.wire_to_hook(), times.first()), (None, times.hook));
        assert!(times.hook_to_user().is_some());
    }

    #[test]
    fn stamps_of_all_clocks_stand_beside_each_other() {
        let mut clock = Clock::calibrate();
        clock.resync();
        let (now, real) = (monotonic().0, wall().0);
        let stamp = RxStamp {
            kernel_ns: NonZeroU64::new(real),
            hook_ns: NonZeroU64::new(now),
            wire_ns: NonZeroU64::new(77),
            wire_monotonic_ns: NonZeroU64::new(now - 700),
            ..RxStamp::here(clock.tsc_at(clock.at_monotonic(Nanos(now + 5_000))))
        };
        let times = stamp.times(&clock);
        assert_eq!(times.wire_to_hook(), Some(700));
        assert_eq!(times.first(), times.wire);
        // Ticks are nanoseconds to a tick.
        assert!(times.hook_to_user().is_some_and(|ns| ns.abs_diff(5_000) <= 2));
        let between = times
            .kernel
            .expect("asked for")
            .0
            .abs_diff(times.hook.expect("asked for").0);
        // The two were read one after the other on a machine that may have stood still in between.
        assert!(between < 1_000_000_000, "{between}");
        assert_eq!(stamp.arrived_utc(10), NonZeroU64::new(now + 10));
        let by_socket = RxStamp {
            hook_ns: None,
            ..stamp
        };
        assert_eq!(by_socket.arrived_utc(10), NonZeroU64::new(real));
    }

    #[test]
    fn clocks_that_cross_by_their_error_count_as_nothing_between() {
        let times = RxTimes {
            wire: Some(Nanos(105)),
            hook: Some(Nanos(100)),
            kernel: None,
            user: Nanos(90),
        };
        assert_eq!((times.wire_to_hook(), times.hook_to_user()), (Some(0), Some(0)));
    }
}
