//! How far long work has come: on a terminal in one line that changes, elsewhere now and then in a line of
//! its own.

use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use tickwire_console::terminal;

use crate::replay::SPOOLED;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// From now on this thread says nothing of its progress: it works for a program that did not ask for it.
pub fn keep_quiet() {
    IS_QUIET.set(true);
}

/// What is shown of one piece of work.
pub struct Progress {
    shown: Option<Instant>,
    begun: Instant,
    is_terminal: bool,
    is_quiet: bool,
    what: &'static str,
}

impl Progress {
    /// Nothing shown yet. `what` is done: reading, writing.
    pub fn new(what: &'static str) -> Progress {
        Progress {
            shown: None,
            begun: Instant::now(),
            is_terminal: terminal::takes_movements(&std::io::stderr()),
            is_quiet: IS_QUIET.get(),
            what,
        }
    }

    /// Whether it is time to say something: on a terminal from the first second on, elsewhere every ten
    /// seconds.
    fn is_due(is_terminal: bool, begun: Duration, shown: Option<Duration>) -> bool {
        match (is_terminal, shown) {
            (true, Some(shown)) => shown >= Duration::from_millis(250),
            (true, None) => begun >= Duration::from_secs(1),
            (false, shown) => shown.unwrap_or(begun) >= Duration::from_secs(10),
        }
    }

    /// Call it now and then; `text` is made when it is shown.
    pub fn tell(&mut self, text: impl FnOnce() -> String) {
        let begun = self.begun.elapsed();
        let shown = self.shown.map(|shown| shown.elapsed());
        if self.is_quiet || !Self::is_due(self.is_terminal, begun, shown) {
            return;
        }
        self.shown = Some(Instant::now());
        let (before, after) = match self.is_terminal {
            true => ("\r", "\x1b[K"),
            false => ("", "\n"),
        };
        let (what, seconds) = (self.what, begun.as_secs_f64());
        let _ = write!(
            std::io::stderr(),
            "{before}{what} {}, {seconds:.0} s{after}",
            text()
        );
    }

    /// How far a file was read.
    pub(crate) fn show(&mut self, file: &Path, frames: u64, bytes: u64) {
        self.tell(|| {
            let name = match file.starts_with("/proc/self/fd") {
                true => SPOOLED.into(),
                false => file.file_name().unwrap_or(file.as_os_str()).to_string_lossy(),
            };
            let (megabytes, millions) = (bytes as f64 / 1e6, frames as f64 / 1e6);
            format!("{name}: {megabytes:.1} MB, {millions:.2} million frames")
        });
    }

    /// Takes the line away again.
    pub fn clear(&mut self) {
        if self.shown.take().is_some() && self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_hears_of_progress_after_a_second_and_a_file_every_ten() {
        let s = Duration::from_secs;
        let due = Progress::is_due;
        assert!(!due(true, Duration::from_millis(900), None) && due(true, s(1), None));
        assert!(!due(true, s(5), Some(Duration::from_millis(100))) && due(true, s(5), Some(s(1))));
        assert!(!due(false, s(9), None) && due(false, s(10), None));
        assert!(!due(false, s(60), Some(s(9))) && due(false, s(60), Some(s(10))));
    }
}
