//! How far reading has come, said while it goes on.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use tickwire_console::terminal;

/// Says how far reading has come: on a terminal in one line that changes, elsewhere now and then in a line of
/// its own.
pub(super) struct Progress {
    shown: Option<Instant>,
    begun: Instant,
    is_terminal: bool,
    what: &'static str,
}

impl Progress {
    pub(super) fn new(what: &'static str) -> Progress {
        Progress {
            shown: None,
            begun: Instant::now(),
            is_terminal: terminal::takes_movements(&std::io::stderr()),
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

    /// Call it now and then.
    pub(super) fn show(&mut self, file: &Path, frames: u64, bytes: u64) {
        let begun = self.begun.elapsed();
        if !Self::is_due(self.is_terminal, begun, self.shown.map(|shown| shown.elapsed())) {
            return;
        }
        self.shown = Some(Instant::now());
        let name = match file.starts_with("/proc/self/fd") {
            true => super::spool::NAME.into(),
            false => file.file_name().unwrap_or(file.as_os_str()).to_string_lossy(),
        };
        let (before, after) = if self.is_terminal {
            ("\r", "\x1b[K")
        } else {
            ("", "\n")
        };
        let _ = write!(
            std::io::stderr(),
            "{before}{} {name}: {:.1} MB, {:.2} million frames, {:.0} s{after}",
            self.what,
            bytes as f64 / 1e6,
            frames as f64 / 1e6,
            begun.as_secs_f64()
        );
    }

    /// Takes the line away again.
    pub(super) fn clear(&mut self) {
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
