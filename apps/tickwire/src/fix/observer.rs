//! The engine's voice in this program: the console, and a region that views read.

use std::fmt::Arguments;
use std::sync::Arc;

use tickwire_fixengine::{Level, Observer, Report, Row};

use super::stats::{self, Shown};

/// Says everything, by the thread of the console: nobody waits for whoever reads.
struct Console;

impl Observer for Console {
    fn line(&self, level: Level, text: Arguments<'_>) {
        match level {
            Level::Info => tickwire_console::say(text),
            Level::Note => tickwire_console::note(format_args!("note: {text}")),
            Level::Warning => tickwire_console::warn(text),
        }
    }
}

/// For stores beside an engine.
pub(crate) fn console() -> Arc<dyn Observer> {
    Arc::new(Console)
}

/// Says everything, shows sessions in a region if there is one.
pub(super) struct Watched {
    pub(super) shown: Option<Arc<Shown>>,
}

impl Observer for Watched {
    fn line(&self, level: Level, text: Arguments<'_>) {
        Console.line(level, text);
    }

    fn report(&self, report: &Report) {
        tickwire_console::say(format_args!("{}", stats::text(report)));
    }

    fn row(&self, name: &str) -> Option<Box<dyn Row>> {
        let row = self.shown.as_ref()?.row(name)?;
        Some(Box::new(row))
    }
}

/// Says nothing but warnings.
pub(super) struct Quiet;

impl Observer for Quiet {
    fn line(&self, level: Level, text: Arguments<'_>) {
        if level == Level::Warning {
            Console.line(level, text);
        }
    }
}

/// Before anything begins: what is wrong with a file stands above the failure that it causes.
pub(super) struct AtStart;

impl Observer for AtStart {
    fn line(&self, level: Level, text: Arguments<'_>) {
        match level {
            Level::Info => println!("{text}"),
            Level::Note => eprintln!("note: {text}"),
            Level::Warning => eprintln!("warning: {text}"),
        }
    }
}
