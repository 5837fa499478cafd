//! Doing something at a given moment: asleep while it is far, spinning on the clock over the last stretch.
//!
//! A sleeping thread is woken up to 100 µs late; a spinning one sees the moment within a reading of the
//! clock, about 20 ns, as long as nobody takes its core away. How late each moment really was is the caller's
//! to record: [`wait_until`] says when it returned.

use std::time::Duration;

use crate::clock::{Clock, tsc};

/// Over this stretch before the moment the thread spins, in nanoseconds.
pub const SPIN_NS: u64 = 200_000;
/// Longest sleep at a time: how long it takes until somebody who asks to stop is heard.
const NAP_NS: u64 = 5_000_000;

/// What became of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waited {
    /// The moment has come: the present in ticks, never before it.
    Until(u64),
    /// `is_stopping` said so before.
    Stopped,
}

/// Waits until the counter reads `due` ticks ([`tsc`]); at once if it does already. `is_stopping` is asked
/// about every 5 ms while asleep and never while spinning, which takes at most [`SPIN_NS`].
pub fn wait_until(clock: &Clock, due: u64, mut is_stopping: impl FnMut() -> bool) -> Waited {
    let spin = clock.span_ticks(SPIN_NS);
    let mut now = tsc();
    loop {
        // The counter does not wrap within the life of a machine: 100 years at 5 GHz are 2^63.9 ticks.
        let left = due.saturating_sub(now);
        if left <= spin {
            break;
        }
        if is_stopping() {
            return Waited::Stopped;
        }
        let nap = clock.span_ns(left - spin).min(NAP_NS);
        std::thread::sleep(Duration::from_nanos(nap));
        now = tsc();
    }
    while now < due {
        std::hint::spin_loop();
        now = tsc();
    }
    Waited::Until(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_returns_before_the_moment_and_at_once_after_it() {
        let clock = Clock::calibrate();
        for ahead_ns in [0, 1_000, 150_000, 700_000] {
            let due = tsc() + clock.span_ticks(ahead_ns);
            let Waited::Until(now) = wait_until(&clock, due, || false) else {
                panic!("nobody asked to stop");
            };
            assert!(now >= due);
        }
        assert!(matches!(
            wait_until(&clock, tsc() - 1_000, || panic!("not asked")),
            Waited::Until(_)
        ));
    }

    #[test]
    fn a_long_wait_ends_when_asked_to() {
        let clock = Clock::calibrate();
        let due = tsc() + clock.span_ticks(3_600_000_000_000);
        let mut asked = 0;
        let waited = wait_until(&clock, due, || {
            asked += 1;
            asked > 2
        });
        assert_eq!(waited, Waited::Stopped);
    }
}
