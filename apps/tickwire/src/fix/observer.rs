//! The engine's voice in this program: the console, and a region that views read.

use std::fmt::Arguments;
use std::sync::Arc;

use tickwire_fixengine::{Level, Observer, Report, Row};

use tickwire_node::voice::Console;

use super::stats::{self, Shown};

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
