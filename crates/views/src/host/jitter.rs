//! How steadily a core runs: a thread reads the clock without pause, and every reading that comes late is
//! time that something else took, the kernel or the host of a virtual machine. The method of `oslat`
//! (rt-tests).

use tickwire_lab::Histogram;
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::{Clock, tsc};

use tickwire_console::failure::Failure;

/// A gap as long as this was no instruction of ours, nanoseconds.
pub(super) const INTERRUPTED_NS: u64 = 1_000;

/// What was seen on one core.
pub(super) struct Jitter {
    pub(super) core: usize,
    /// Nanoseconds between two readings of the clock, of all readings.
    pub(super) gaps: Histogram,
    /// Interruptions of at least 1, 10, 100 and 1000 microseconds.
    pub(super) at_least: [u64; 4],
    /// Time taken away, of the time watched.
    pub(super) lost: f64,
}

/// Watches a core for so long. The calling thread stays on it.
pub(super) fn watch(core: usize, seconds: f64, clock: &Clock) -> Result<Jitter, Failure> {
    Cores::count()
        .pin(core)
        .map_err(|e| Failure::system(e.to_string()))?;
    let span = clock.span_ticks((seconds * 1e9) as u64);
    let late = clock.span_ticks(INTERRUPTED_NS);
    let (mut jitter, mut lost, mut short) = (Jitter::of(core), 0, 0);
    let begin = tsc();
    let mut before = begin;
    while before.wrapping_sub(begin) < span {
        let now = tsc();
        let gap = now.wrapping_sub(before);
        // Counted only: the loop must not be late by its own doing.
        if gap < late {
            short += 1;
        } else {
            jitter.note(clock.span_ns(gap));
            lost += gap;
        }
        before = now;
    }
    let watched = before.wrapping_sub(begin).max(1);
    jitter
        .gaps
        .record_n(clock.span_ns((watched - lost) / u64::max(short, 1)), short);
    jitter.lost = lost as f64 / watched as f64;
    Ok(jitter)
}

impl Jitter {
    fn of(core: usize) -> Jitter {
        Jitter {
            core,
            gaps: Histogram::new(),
            at_least: [0; 4],
            lost: 0.0,
        }
    }

    fn note(&mut self, ns: u64) {
        self.gaps.record(ns);
        for (count, limit) in self.at_least.iter_mut().zip([1_000, 10_000, 100_000, 1_000_000]) {
            *count += u64::from(ns >= limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptions_are_counted_by_their_length() {
        let mut jitter = Jitter::of(3);
        for ns in [1_000, 12_000, 150_000, 2_000_000, 2_000_000] {
            jitter.note(ns);
        }
        assert_eq!(jitter.at_least, [5, 4, 3, 2]);
        assert_eq!(jitter.gaps.count(), 5);
    }

    #[test]
    fn a_core_is_watched_as_long_as_asked() {
        let clock = Clock::calibrate();
        let core = Cores::count().usable()[0];
        let watched = std::thread::scope(|scope| scope.spawn(|| watch(core, 0.01, &clock)).join());
        let jitter = watched
            .expect("no panic")
            .unwrap_or_else(|f| panic!("{}", f.message));
        assert!(jitter.gaps.count() > 100, "{}", jitter.gaps.count());
        assert!((0.0..=1.0).contains(&jitter.lost));
        assert_eq!(jitter.core, core);
    }
}
