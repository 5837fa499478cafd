//! The one way to print: `print!`, `println!`, `eprint!` and `eprintln!` of this crate.
//!
//! The standard library's macros of these names panic when the other end of a pipe has gone (`| head -c 1`)
//! or a disk is full (`> /dev/full`). These stand before every module of the program and take their place:
//! whoever reads our output and has seen enough is no error, and the program goes on with what it does;
//! anything else that keeps the output from being written is remembered, and [`failure`] makes it the end of
//! a command that would have succeeded.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

/// Nobody reads standard output any more, or it takes no more.
static ENDED: AtomicBool = AtomicBool::new(false);
/// The first error that was not a reader's leaving.
static ERROR: OnceLock<String> = OnceLock::new();

/// Writes to standard output. Takes the place of the standard library's, which panics when it cannot.
#[macro_export]
macro_rules! print {
    ($($text:tt)*) => { $crate::out::write(format_args!($($text)*)) };
}

/// Writes a line to standard output. Takes the place of the standard library's, which panics when it cannot.
#[macro_export]
macro_rules! println {
    () => { $crate::out::write(format_args!("\n")) };
    ($($text:tt)*) => { $crate::out::write(format_args!("{}\n", format_args!($($text)*))) };
}

/// Writes to standard error. Takes the place of the standard library's, which panics when it cannot.
#[macro_export]
macro_rules! eprint {
    ($($text:tt)*) => { $crate::out::complain(format_args!($($text)*)) };
}

/// Writes a line to standard error. Takes the place of the standard library's, which panics when it cannot.
#[macro_export]
macro_rules! eprintln {
    () => { $crate::out::complain(format_args!("\n")) };
    ($($text:tt)*) => { $crate::out::complain(format_args!("{}\n", format_args!($($text)*))) };
}

/// Writes to standard output.
pub fn write(text: fmt::Arguments<'_>) {
    if ENDED.load(Ordering::Relaxed) {
        return;
    }
    let mut out = io::stdout().lock();
    // Flushed at once: an error is found here and not when the process has ended.
    if let Err(error) = out.write_fmt(text).and_then(|()| out.flush()) {
        note(&error);
    }
}

/// Writes to standard error. When that takes nothing there is nowhere to say so.
pub fn complain(text: fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Remembers why standard output takes no more.
pub fn note(error: &io::Error) {
    ENDED.store(true, Ordering::Relaxed);
    if error.kind() != io::ErrorKind::BrokenPipe {
        let _ = ERROR.set(error.to_string());
    }
}

/// What a command that has otherwise succeeded ends with when its output could not be written.
pub fn failure() -> Option<Failure> {
    ERROR
        .get()
        .map(|error| Failure::system(format!("cannot write to standard output: {error}")))
}
