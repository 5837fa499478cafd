//! A listening socket whose errors are counted, told once, and survived.

use std::fmt::Display;

use tickwire_market::{Counter, Counters};
use tickwire_runtime::clock::monotonic;
use tickwire_runtime::tcp::{TcpListener, TcpStream};
use tickwire_runtime::trouble::{BackOff, Health, Trouble, Verdict};

use crate::observer::Observer;

/// The counter of each class, in the order of [`Trouble::COUNTED`].
const COUNTERS: [Counter; Trouble::COUNTED.len()] = [
    Counter::NetErrorsNetwork,
    Counter::NetErrorsPeer,
    Counter::NetErrorsResources,
    Counter::NetErrorsConfig,
];

/// How accepting at one address went, and what was said of it.
#[derive(Debug)]
pub(crate) struct Accepting {
    /// For lines: `accepting connections at 127.0.0.1:9878`.
    deed: String,
    health: Health,
}

impl Accepting {
    pub(crate) fn new(deed: String) -> Accepting {
        Accepting {
            deed,
            health: Health::new(BackOff::SEND),
        }
    }

    /// The next connection. After an error it is tried again when its time has come.
    pub(crate) fn accept(
        &mut self,
        listener: &mut TcpListener,
        observer: &dyn Observer,
    ) -> Option<TcpStream> {
        if self.health.is_ill() && !self.health.may_try(monotonic()) {
            return None;
        }
        match listener.accept() {
            Ok(accepted) => {
                self.health.worked();
                accepted
            }
            Err(e) => {
                self.failed(Trouble::of(&e), &e, observer);
                None
            }
        }
    }

    /// Counts an error, and says it if its class is new.
    #[cold]
    pub(crate) fn failed(&mut self, trouble: Trouble, error: &dyn Display, observer: &dyn Observer) {
        let deed = &self.deed;
        match self.health.failed(monotonic(), trouble) {
            Verdict::Failing(trouble) => observer.warn(format_args!(
                "{deed} failed: {error}; it is tried again until it works: {}",
                trouble.advice()
            )),
            Verdict::Ended => observer.warn(format_args!(
                "{deed} failed again and again: {error}; it is not tried any more. {}; then start again",
                trouble.advice()
            )),
            Verdict::StillFailing(_) => {}
        }
    }

    /// Says that it works again once it has done so for a second.
    pub(crate) fn settle(&mut self, observer: &dyn Observer) {
        if self.health.is_ill()
            && let Some(errors) = self.health.healed(monotonic())
        {
            let plural = if errors == 1 { "" } else { "s" };
            observer.warn(format_args!(
                "{} works again after {errors} error{plural}",
                self.deed
            ));
        }
    }

    /// Adds what it counted.
    pub(crate) fn count(&self, counters: &mut Counters) {
        for (counter, count) in COUNTERS.into_iter().zip(self.health.counts()) {
            counters.add(counter, count);
            counters.add(Counter::NetErrors, count);
        }
    }
}

/// Adds errors of waiting for sockets: the kernel's resources are short then.
pub(crate) fn count_waits(counters: &mut Counters, errors: u64) {
    counters.add(Counter::NetErrorsResources, errors);
    counters.add(Counter::NetErrors, errors);
}

/// A line about the system's clock, which was set by `step` nanoseconds.
#[cold]
pub(crate) fn tell_clock_step(step: i64, observer: &dyn Observer) {
    let direction = if step < 0 { "back" } else { "forward" };
    observer.warn(format_args!(
        "the system's clock was set {direction} by {:.3} s; timers go on as if it had not been, stamps and session hours follow it",
        step.unsigned_abs() as f64 / 1e9
    ));
}
