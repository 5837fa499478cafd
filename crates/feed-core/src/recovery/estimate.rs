//! What was measured: round trips, how many messages fit an answer, how fast a number grows.

use tickwire_market::Nanos;

/// The round trip of a request, smoothed, and how much it varies. RFC 6298, section 2, in whole nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RoundTrip {
    smooth_ns: u64,
    vary_ns: u64,
    is_known: bool,
}

impl RoundTrip {
    pub(super) fn sample(&mut self, ns: u64) {
        if !self.is_known {
            (self.smooth_ns, self.vary_ns, self.is_known) = (ns, ns / 2, true);
            return;
        }
        self.vary_ns = (3 * self.vary_ns + self.smooth_ns.abs_diff(ns)) / 4;
        self.smooth_ns = (7 * self.smooth_ns + ns) / 8;
    }

    pub(super) fn ns(&self) -> Option<u64> {
        self.is_known.then_some(self.smooth_ns)
    }

    /// After so long an answer is not to be waited for: between the bounds, and the upper one while nothing
    /// is known.
    pub(super) fn timeout_ns(&self, min: u64, max: u64) -> u64 {
        match self.is_known {
            true => self
                .smooth_ns
                .saturating_add(4 * self.vary_ns)
                .clamp(min.min(max), max),
            false => max,
        }
    }
}

/// How many messages fit one answer, and how much that varies, in sixteenths.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Fit {
    mean: u64,
    vary: u64,
}

impl Fit {
    /// An answer was full with so many; `is_full`: it would have held more had there been room.
    pub(super) fn sample(&mut self, messages: u64, is_full: bool) {
        let messages = messages << 4;
        match (self.mean, is_full) {
            (0, true) => (self.mean, self.vary) = (messages, messages / 16),
            (0, false) => {}
            (mean, true) => {
                self.vary = (7 * self.vary + mean.abs_diff(messages)) / 8;
                self.mean = (7 * mean + messages) / 8;
            }
            // At least so many fit.
            (mean, false) => self.mean = mean.max(messages),
        }
    }

    /// So many are in nearly every answer; `None` before anything is known.
    pub(super) fn sure(&self) -> Option<u64> {
        (self.mean > 0).then(|| (self.mean.saturating_sub(2 * self.vary) >> 4).max(1))
    }
}

/// The shortest time over which a rate is measured.
const RATE_NS: u64 = 10 * Nanos::MILLI;

/// How fast a number grows, smoothed.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Rate {
    since: Option<(Nanos, u64)>,
    per_s: Option<u64>,
}

impl Rate {
    /// The number is this much now. One that falls begins anew.
    pub(super) fn note(&mut self, now: Nanos, total: u64) {
        let Some((since, before)) = self.since else {
            self.since = Some((now, total));
            return;
        };
        let ns = now.since(since);
        if total < before {
            self.since = Some((now, total));
        } else if ns >= RATE_NS {
            let rate = u128::from(total - before) * u128::from(Nanos::SECOND) / u128::from(ns);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX) / 2;
            self.per_s = Some(match self.per_s {
                Some(smooth) => smooth / 2 + rate,
                None => rate.saturating_mul(2),
            });
            self.since = Some((now, total));
        }
    }

    pub(super) fn per_s(&self) -> Option<u64> {
        self.per_s
    }

    pub(super) fn forget(&mut self) {
        *self = Rate::default();
    }
}

/// Nanoseconds that so many take at a rate; `None`: for ever.
pub(super) fn time_at(count: u64, per_s: u64) -> Option<u64> {
    let ns = u128::from(count) * u128::from(Nanos::SECOND);
    u64::try_from(ns.checked_div(u128::from(per_s))?).ok()
}
