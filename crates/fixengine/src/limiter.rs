//! How often lines of a kind are written: whoever can reach a port can make them, so that without a bound
//! they would fill the disk.

use tickwire_market::Nanos;

/// What a line is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A peer has logged on.
    LoggedOn,
    /// A session has ended its connection.
    Ended,
    /// A connection was lost.
    Lost,
    /// A message that is none.
    Garbled,
    /// A logon was refused by name, password or address.
    Refused,
    /// A second connection of a session.
    Second,
    /// Nothing came before the Logon.
    Silent,
    /// No FIX.
    Garbage,
    /// Nobody's CompIDs.
    Unknown,
    /// Another version.
    Version,
    /// No place.
    NoRoom,
    /// An address that may not connect.
    Address,
}

impl Kind {
    const ALL: [(Kind, &'static str); 12] = [
        (Kind::LoggedOn, "logons"),
        (Kind::Ended, "ends of a session"),
        (Kind::Lost, "lost connections"),
        (Kind::Garbled, "garbled messages"),
        (Kind::Refused, "refused logons"),
        (Kind::Second, "second connections"),
        (Kind::Silent, "connections without a Logon"),
        (Kind::Garbage, "connections that spoke no FIX"),
        (Kind::Unknown, "connections with unknown CompIDs"),
        (Kind::Version, "connections of another version"),
        (Kind::NoRoom, "connections without a place"),
        (Kind::Address, "connections from other addresses"),
    ];
}

/// Lines of a kind at once, and how long until there is one more.
const BURST: u64 = 10;
const EVERY_NS: u64 = 10 * Nanos::SECOND;

/// Lines of one kind.
#[derive(Clone, Copy, Default, Debug)]
struct Bucket {
    used: u64,
    since: Nanos,
    held: u64,
}

impl Bucket {
    fn has_room(&mut self, now: Nanos) -> bool {
        let passed = now.since(self.since) / EVERY_NS;
        if passed >= self.used {
            (self.used, self.since) = (0, now);
        } else {
            self.used -= passed;
            self.since = self.since.after(passed * EVERY_NS);
        }
        self.used < BURST
    }
}

/// Bounds the lines about one session, or about whoever knocks.
#[derive(Clone, Default, Debug)]
pub(crate) struct Limiter([Bucket; Kind::ALL.len()]);

impl Limiter {
    /// Whether a line may be written: then how many of its kind were held back since the last one.
    pub(crate) fn admits(&mut self, kind: Kind, now: Nanos) -> Option<u64> {
        let bucket = &mut self.0[kind as usize];
        if !bucket.has_room(now) {
            bucket.held += 1;
            return None;
        }
        bucket.used += 1;
        Some(std::mem::take(&mut bucket.held))
    }

    /// What was held back and can be told of now, in a line for each kind; whether anything is left.
    pub(crate) fn settle(&mut self, now: Nanos, mut line: impl FnMut(std::fmt::Arguments<'_>)) -> bool {
        let mut is_left = false;
        for (bucket, (_, words)) in self.0.iter_mut().zip(Kind::ALL) {
            if bucket.held == 0 {
                continue;
            }
            if !bucket.has_room(now) {
                is_left = true;
                continue;
            }
            bucket.used += 1;
            let held = std::mem::take(&mut bucket.held);
            line(format_args!("{held} more {words} were not written one by one"));
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_some_lines_and_a_number() {
        let mut limiter = Limiter::default();
        let mut now = Nanos(1_000 * Nanos::SECOND);
        let written = (0..1_000_000).filter(|_| limiter.admits(Kind::Unknown, now).is_some());
        assert_eq!(written.count() as u64, BURST);
        // Another kind has lines of its own.
        assert_eq!(limiter.admits(Kind::Garbage, now), Some(0));
        let mut lines = Vec::new();
        assert!(
            limiter.settle(now, |line| lines.push(line.to_string())),
            "not yet"
        );
        now = now.after(EVERY_NS);
        assert!(!limiter.settle(now, |line| lines.push(line.to_string())));
        assert_eq!(
            lines,
            ["999990 more connections with unknown CompIDs were not written one by one"]
        );
        // A day of it is bounded.
        let mut day = 0;
        for _ in 0..86_400 {
            now = now.after(Nanos::SECOND);
            day += (0..100)
                .filter(|_| limiter.admits(Kind::Unknown, now).is_some())
                .count();
        }
        assert!(day <= 86_400 / 10 + BURST as usize, "{day}");
    }

    #[test]
    fn kinds_are_in_their_places() {
        for (at, (kind, _)) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at);
        }
    }
}
