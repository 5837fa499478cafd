//! Sockets whose errors are counted, said once, and survived: [`tickwire_runtime::trouble::NamedHealth`],
//! said on this console.

use std::fmt::Display;
use std::io;

use tickwire_market::Counters;
use tickwire_runtime::clock::Clock;
use tickwire_runtime::tcp::{TcpListener, TcpStream};
use tickwire_runtime::trouble::{BackOff, NamedHealth, Trouble, say_clock_step};

pub use tickwire_runtime::trouble::count_waits;

use crate::queue::warn;

/// How the calls of one kind on one socket went, and what was said of them. The lines are written by the
/// console's thread: saying never waits.
#[derive(Debug)]
pub struct SocketHealth(NamedHealth);

impl SocketHealth {
    /// For calls of one kind on one socket; `deed` is what they do and where.
    pub fn new(back_off: BackOff, deed: impl Into<String>) -> SocketHealth {
        SocketHealth(NamedHealth::new(back_off, deed))
    }

    /// A call failed. Counts it, and says it if its class is new.
    #[cold]
    pub fn failed(&mut self, error: &io::Error) {
        self.troubled(Trouble::of(error), error);
    }

    /// The same where the class is known.
    #[cold]
    pub fn troubled(&mut self, trouble: Trouble, error: &dyn Display) {
        self.0.failed(trouble, error, warn);
    }

    /// A call worked, or had nothing to do.
    #[inline]
    pub fn worked(&mut self) {
        self.0.worked();
    }

    /// Whether a call is to be made now: always while all is well.
    #[inline]
    pub fn may_try(&self) -> bool {
        self.0.may_try()
    }

    /// Says that it works again once it has done so for a second. For the slow part of a loop.
    pub fn settle(&mut self) {
        self.0.settle(warn);
    }

    /// Whether it is not tried any more.
    pub fn is_ended(&self) -> bool {
        self.0.is_ended()
    }

    /// Adds what it counted.
    pub fn count(&self, counters: &mut Counters) {
        self.0.count(counters);
    }
}

/// The next connection, if there is one and none of the last attempts failed too recently.
pub fn accept(listener: &mut TcpListener, health: &mut SocketHealth) -> Option<TcpStream> {
    health.0.accept(listener, warn)
}

/// As [`follow_clock`], at once, where the clock was set: before bytes of a peer are judged by their
/// SendingTime. Its clock may be ours, and it may have noticed before us.
#[inline]
pub fn follow_if_set(clock: &mut Clock, steps: &mut u64) -> bool {
    clock.is_set() && follow_clock(clock, steps)
}

/// Follows the kernel's clocks, and says and counts when the system's clock was set. For the slow part of a
/// loop, once a second; whether it was set.
pub fn follow_clock(clock: &mut Clock, steps: &mut u64) -> bool {
    let Some(step) = clock.resync() else {
        return false;
    };
    *steps += 1;
    say_clock_step(step, warn);
    true
}
