//! When the next snapshot may be begun: each waits longer than the one before it, and logins are counted.

use super::quota::{Day, Span};
use super::servers::Servers;
use super::{DayUse, RecoveryLimits};
use tickwire_market::Nanos;

/// How often a wait doubles at most.
const DOUBLINGS_MAX: u32 = 20;

/// The gate in front of the snapshot server of a channel.
#[derive(Clone, Debug)]
pub struct SnapshotGate {
    backoff_ns: u64,
    backoff_max_ns: u64,
    minute: Span,
    day: Day,
    /// Snapshots in a row, each soon after the other.
    streak: u32,
    last: Option<Nanos>,
    opens: Nanos,
    is_open: bool,
    began: Option<Nanos>,
    /// What a snapshot takes, from being wanted to being loaded, smoothed.
    takes_ns: Option<u64>,
    pub(super) servers: Servers,
}

impl SnapshotGate {
    pub(super) fn new(limits: &RecoveryLimits) -> SnapshotGate {
        SnapshotGate {
            backoff_ns: limits.backoff_ns,
            backoff_max_ns: limits.backoff_max_ns.max(limits.backoff_ns),
            minute: Span::new(60 * Nanos::SECOND, limits.snapshots_per_minute),
            day: Day::new(limits.snapshots_per_day),
            streak: 0,
            last: None,
            opens: Nanos::ZERO,
            is_open: true,
            began: None,
            takes_ns: None,
            servers: Servers::new(),
        }
    }

    /// Whether a snapshot may be begun, as of the last call with a time.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the quotas alone have room for another.
    pub fn has_room(&mut self, now: Nanos) -> bool {
        self.minute.left(now) > 0 && self.day.left(now) > 0
    }

    /// When it opens, if it is closed: call [`SnapshotGate::handle_timeout`] then.
    pub fn opens_at(&self) -> Option<Nanos> {
        (!self.is_open).then_some(self.opens)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if !self.is_open && self.opens <= now {
            self.opens = self
                .opens
                .max(self.minute.ready_at(now))
                .max(self.day.ready_at(now));
            self.is_open = self.opens <= now;
        }
    }

    /// A snapshot for the whole feed was begun: a login, or a request of a refresh.
    pub fn began(&mut self, now: Nanos) {
        let is_soon = |last: Nanos| now.since(last) < self.backoff_max_ns.saturating_mul(2);
        self.streak = match self.last.is_some_and(is_soon) {
            true => (self.streak + 1).min(DOUBLINGS_MAX),
            false => 0,
        };
        self.last = Some(now);
        self.began.get_or_insert(now);
        let wait = (self.backoff_ns << self.streak).min(self.backoff_max_ns);
        self.count(now);
        self.opens = self.opens.max(now.after(wait));
        self.is_open = self.opens <= now;
    }

    /// A snapshot was begun that is no attempt to make the whole feed right: it only counts.
    pub fn count(&mut self, now: Nanos) {
        self.minute.take(now);
        self.day.take(now);
        let ready = self.minute.ready_at(now).max(self.day.ready_at(now));
        self.opens = self.opens.max(ready);
        self.is_open &= ready <= now;
    }

    /// The snapshot was loaded whole.
    pub fn loaded(&mut self, now: Nanos) {
        if let Some(began) = self.began.take() {
            let took = now.since(began);
            self.takes_ns = Some(self.takes_ns.map_or(took, |before| (3 * before + took) / 4));
        }
        self.servers.good();
    }

    /// The snapshot was cut, refused, of no use, or could not be begun: the next one is another server's.
    pub fn failed(&mut self, now: Nanos) {
        self.began = None;
        self.servers.bad();
        if self.is_open {
            // It was not even begun: wait all the same.
            self.is_open = false;
            self.opens = now.after(self.backoff_ns);
        }
    }

    /// How long it would take until a snapshot is loaded, nanoseconds; `None`: the day has none left.
    pub(super) fn time(&mut self, now: Nanos, assumed_ns: u64) -> Option<u64> {
        if self.day.left(now) == 0 {
            return None;
        }
        let wait = match self.is_open {
            true => 0,
            false => self.opens.since(now),
        };
        Some(wait + self.takes_ns.unwrap_or(assumed_ns))
    }

    /// Snapshots begun today.
    pub(super) fn day_used(&self) -> (u32, u32) {
        self.day.used()
    }

    pub(super) fn restore(&mut self, used: DayUse) {
        self.day.restore(used.day, used.snapshots);
    }
}
