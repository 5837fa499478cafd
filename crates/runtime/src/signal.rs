//! Being asked to stop, by Ctrl-C, by `kill`, or by the parent's death.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// Set when somebody asks the process to stop. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct StopFlag {
    interrupted: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
    asked: Arc<AtomicBool>,
}

/// Why to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// SIGINT: Ctrl-C.
    Interrupted,
    /// SIGTERM: `kill`, or the parent died.
    Terminated,
    /// The program itself wants it: [`StopFlag::stop`].
    Asked,
}

impl StopReason {
    /// The exit code a shell gives to a process ended by the signal; 0 without one.
    pub fn exit_code(self) -> u8 {
        match self {
            StopReason::Interrupted => 130,
            StopReason::Terminated => 143,
            StopReason::Asked => 0,
        }
    }
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StopReason::Interrupted => "interrupted (Ctrl-C)",
            StopReason::Terminated => "terminated (SIGTERM)",
            StopReason::Asked => "asked to stop",
        })
    }
}

impl StopFlag {
    /// Catches SIGINT and SIGTERM from now on. A second SIGINT ends the process at once, for when it does not
    /// listen; SIGTERM after SIGINT does not: Ctrl-C reaches a whole group of processes, whose parent then
    /// stops its children by SIGTERM.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn install() -> io::Result<StopFlag> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        // A signal that came between the handler and what it does would be taken by nobody, and lost.
        sys::with_signals_held(&[SIGINT, SIGTERM], || {
            let flag = StopFlag::new();
            // In this order: the first SIGINT passes the check and sets what the second one finds.
            let code = i32::from(StopReason::Interrupted.exit_code());
            signal_hook::flag::register_conditional_shutdown(SIGINT, code, Arc::clone(&flag.interrupted))?;
            signal_hook::flag::register(SIGINT, Arc::clone(&flag.interrupted))?;
            signal_hook::flag::register(SIGTERM, Arc::clone(&flag.terminated))?;
            Ok(flag)
        })?
    }

    /// One that no signal sets, for threads that their own program stops.
    #[must_use]
    pub fn new() -> StopFlag {
        StopFlag::default()
    }

    /// Sets it.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether to stop, and why. Three relaxed loads: cheap enough for a hot loop.
    #[inline]
    pub fn reason(&self) -> Option<StopReason> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Some(StopReason::Interrupted);
        }
        if self.terminated.load(Ordering::Relaxed) {
            return Some(StopReason::Terminated);
        }
        self.asked.load(Ordering::Relaxed).then_some(StopReason::Asked)
    }

    /// Whether to stop.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.reason().is_some()
    }
}

/// Set when somebody sends SIGUSR1, which asks for a report. Each one installed is set by every signal.
#[derive(Debug)]
pub struct ReportFlag(Arc<AtomicBool>);

impl ReportFlag {
    /// Catches SIGUSR1 from now on.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn install() -> io::Result<ReportFlag> {
        use signal_hook::consts::SIGUSR1;
        sys::with_signals_held(&[SIGUSR1], || {
            let flag = ReportFlag(Arc::default());
            signal_hook::flag::register(SIGUSR1, Arc::clone(&flag.0))?;
            Ok(flag)
        })?
    }

    /// Whether a report was asked for since the last call.
    #[inline]
    pub fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

/// Makes the kernel send SIGTERM to this process when the thread that started it ends, however that happens.
/// `parent` is the process id of the parent as it told its child: it may have died before this call.
///
/// # Errors
/// What the kernel says, or `NotFound` when the parent is gone already.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    match sys::signal_on_parent_death(libc::SIGTERM, parent)? {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the process that started this one is gone",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::with_signals_held;

    /// Of a thread that holds it back, a signal waits until the handler has something to do.
    #[test]
    fn a_signal_that_comes_while_its_handler_is_installed_is_not_lost() {
        use signal_hook::consts::SIGUSR2;
        let flag = Arc::new(AtomicBool::new(false));
        let seen = with_signals_held(&[SIGUSR2], || {
            // To this thread, which holds it.
            signal_hook::low_level::raise(SIGUSR2).expect("raised");
            signal_hook::flag::register(SIGUSR2, Arc::clone(&flag)).expect("installed");
            flag.load(Ordering::Relaxed)
        });
        assert!(!seen.expect("the kernel lets it"));
        assert!(flag.load(Ordering::Relaxed), "it was delivered behind it");
    }
}
