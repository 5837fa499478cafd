//! Whom an engine tells what happens: the library itself prints nothing.

use std::fmt::Arguments;

use tickwire_market::{Counters, Nanos, SeqNo};

use crate::report::Report;

/// How much a line matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// What an engine does: where it listens, who has logged on.
    Info,
    /// What it chose where a configuration left it open.
    Note,
    /// What somebody should look at.
    Warning,
}

/// Is told what happens in an engine, by its threads: that of the sessions, which must not wait for whoever
/// reads, and those of stores and logs.
pub trait Observer: Send + Sync {
    /// A line, without an end of line. Lines that whoever can reach a port can cause are bounded: ten at
    /// once, then one in ten seconds of each kind and session, with the number of those that were left out.
    fn line(&self, level: Level, text: Arguments<'_>);

    /// Somebody asked by SIGUSR1 ([`crate::Engine::with_report`]) what the sessions of a thread have done so
    /// far.
    fn report(&self, _report: &Report) {}

    /// A place where a session, or with a name like `connections at 127.0.0.1:9878` a door, is shown while it
    /// runs; asked for once each.
    fn row(&self, _name: &str) -> Option<Box<dyn Row>> {
        None
    }
}

impl dyn Observer + '_ {
    pub(crate) fn say(&self, text: Arguments<'_>) {
        self.line(Level::Info, text);
    }

    pub(crate) fn warn(&self, text: Arguments<'_>) {
        self.line(Level::Warning, text);
    }
}

/// Where a session stands, for a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It has not been logged on yet.
    Building,
    /// It is logged on.
    Live,
    /// It was logged on and is not.
    Stale,
    /// It is outside its hours.
    Ended,
}

/// One session in a view. Called by the thread of the session, which waits for it.
pub trait Row: Send {
    /// A message took `ns` nanoseconds for this step of [`crate::STEPS`].
    fn step(&mut self, step: usize, ns: u64);

    /// Ten times a second: where the session stands, the number it expects next, what it has counted.
    fn show(&mut self, now: Nanos, standing: Standing, next_in: SeqNo, counters: &Counters);
}

/// A closure hears the lines: one that takes a [`Level`] and `Arguments`.
impl<F: Fn(Level, Arguments<'_>) + Send + Sync> Observer for F {
    fn line(&self, level: Level, text: Arguments<'_>) {
        self(level, text);
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Silent;

impl Observer for Silent {
    fn line(&self, _: Level, _: Arguments<'_>) {}
}
