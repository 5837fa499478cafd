//! What the FIX engine says, on the console of this program: its thread writes, and nobody waits for whoever
//! reads.

use std::fmt::Arguments;
use std::sync::Arc;

use tickwire_console::failure::Failure;
use tickwire_fixengine::{Error, Level, Observer};

/// Says everything.
#[derive(Debug)]
pub struct Console;

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
pub fn console() -> Arc<dyn Observer> {
    Arc::new(Console)
}

/// Says nothing but warnings.
#[derive(Debug)]
pub struct Quiet;

impl Observer for Quiet {
    fn line(&self, level: Level, text: Arguments<'_>) {
        if level == Level::Warning {
            Console.line(level, text);
        }
    }
}

/// Before anything begins: what is wrong with a file stands above the failure that it causes.
#[derive(Debug)]
pub struct AtStart;

impl Observer for AtStart {
    fn line(&self, level: Level, text: Arguments<'_>) {
        match level {
            Level::Info => println!("{text}"),
            Level::Note => eprintln!("note: {text}"),
            Level::Warning => eprintln!("warning: {text}"),
        }
    }
}

/// What a command ends with where the engine did.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::Config(message) => Failure::config(message),
        Error::System(message) => Failure::system(message),
        Error::Application(inner) => match inner.downcast::<Failure>() {
            Ok(own) => *own,
            Err(other) => Failure::check(other.to_string()),
        },
    }
}
