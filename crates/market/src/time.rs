//! Time: an argument, never asked for outside the runtime.

/// A point in time in nanoseconds. For receive and transmit times: since the Unix epoch, UTC. For venue
/// times: since the epoch where the feed knows the date, else since the venue's midnight (ITCH files without
/// a date).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The epoch.
    pub const ZERO: Nanos = Nanos(0);
    /// One microsecond in nanoseconds.
    pub const MICRO: u64 = 1_000;
    /// One millisecond in nanoseconds.
    pub const MILLI: u64 = 1_000_000;
    /// One second in nanoseconds.
    pub const SECOND: u64 = 1_000_000_000;
    /// One day in nanoseconds.
    pub const DAY: u64 = 86_400 * Self::SECOND;

    /// The point `ns` nanoseconds later; stays at the end of time instead of wrapping.
    #[inline]
    pub const fn after(self, ns: u64) -> Nanos {
        Nanos(self.0.saturating_add(ns))
    }

    /// Nanoseconds from `earlier` to here; 0 if `earlier` is later (clocks step).
    #[inline]
    pub const fn since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
