//! Sockets whose errors are counted, said once, and survived: [`tickwire_runtime::trouble::Health`] with a name and a voice.

use std::fmt::Display;
use std::io;

use tickwire_market::{Counter, Counters};
use tickwire_runtime::clock::{Clock, monotonic};
use tickwire_runtime::tcp::{TcpListener, TcpStream};
use tickwire_runtime::trouble::{BackOff, Health, Trouble, Verdict};

use crate::queue::warn;

/// The counter of each class, in the order of [`Trouble::COUNTED`].
const COUNTERS: [Counter; Trouble::COUNTED.len()] = [
    Counter::NetErrorsNetwork,
    Counter::NetErrorsPeer,
    Counter::NetErrorsResources,
    Counter::NetErrorsConfig,
];

/// How the calls of one kind on one socket went, and what was said of them. The lines are written by the console's thread: saying never waits.
#[derive(Debug)]
pub struct SocketHealth {
    /// What is done on which address, for the line: `receiving line A of 239.1.1.1:5000`.
    deed: String,
    health: Health,
}

impl SocketHealth {
    /// For calls of one kind on one socket; `deed` is what they do and where.
    pub fn new(back_off: BackOff, deed: impl Into<String>) -> SocketHealth {
        SocketHealth {
            deed: deed.into(),
            health: Health::new(back_off),
        }
    }

    /// A call failed. Counts it, and says it if its class is new.
    #[cold]
    pub fn failed(&mut self, error: &io::Error) {
        self.troubled(Trouble::of(error), error);
    }

    /// The same where the class is known.
    #[cold]
    pub fn troubled(&mut self, trouble: Trouble, error: &dyn Display) {
        let deed = &self.deed;
        match self.health.failed(monotonic(), trouble) {
            Verdict::Failing(trouble) => warn(format_args!(
                "{deed} failed: {error}; it is tried again until it works: {}",
                trouble.advice()
            )),
            Verdict::Ended => warn(format_args!(
                "{deed} failed again and again: {error}; it is not tried any more. {}; then start again",
                trouble.advice()
            )),
            Verdict::StillFailing(_) => {}
        }
    }

    /// A call worked, or had nothing to do.
    #[inline]
    pub fn worked(&mut self) {
        self.health.worked();
    }

    /// Whether a call is to be made now: always while all is well.
    #[inline]
    pub fn may_try(&self) -> bool {
        !self.health.is_ill() || self.may_try_again()
    }

    #[cold]
    fn may_try_again(&self) -> bool {
        self.health.may_try(monotonic())
    }

    /// Says that it works again once it has done so for a second. For the slow part of a loop.
    pub fn settle(&mut self) {
        if self.health.is_ill()
            && let Some(errors) = self.health.healed(monotonic())
        {
            let plural = if errors == 1 { "" } else { "s" };
            warn(format_args!(
                "{} works again after {errors} error{plural}",
                self.deed
            ));
        }
    }

    /// Whether it is not tried any more.
    pub fn is_ended(&self) -> bool {
        self.health.is_ended()
    }

    /// Adds what it counted.
    pub fn count(&self, counters: &mut Counters) {
        for (counter, count) in COUNTERS.into_iter().zip(self.health.counts()) {
            counters.add(counter, count);
            counters.add(Counter::NetErrors, count);
        }
    }
}

/// The next connection, if there is one and none of the last attempts failed too recently.
pub fn accept(listener: &mut TcpListener, health: &mut SocketHealth) -> Option<TcpStream> {
    if !health.may_try() {
        return None;
    }
    match listener.accept() {
        Ok(accepted) => {
            health.worked();
            accepted
        }
        Err(e) => {
            health.failed(&e);
            None
        }
    }
}

/// Adds errors of waiting for sockets: the kernel's resources are short then.
pub fn count_waits(counters: &mut Counters, errors: u64) {
    counters.add(Counter::NetErrorsResources, errors);
    counters.add(Counter::NetErrors, errors);
}

/// As [`follow_clock`], at once, where the clock was set: before bytes of a peer are judged by their SendingTime. Its clock may be ours, and it may
/// have noticed before us.
#[inline]
pub fn follow_if_set(clock: &mut Clock, steps: &mut u64) -> bool {
    clock.is_set() && follow_clock(clock, steps)
}

/// Follows the kernel's clocks, and says and counts when the system's clock was set. For the slow part of a loop, once a second; whether it
/// was set.
pub fn follow_clock(clock: &mut Clock, steps: &mut u64) -> bool {
    let Some(step) = clock.resync() else {
        return false;
    };
    *steps += 1;
    let direction = if step < 0 { "back" } else { "forward" };
    warn(format_args!(
        "the system's clock was set {direction} by {:.3} s; timers go on as if it had not been, stamps and session hours follow it",
        step.unsigned_abs() as f64 / 1e9
    ));
    true
}
