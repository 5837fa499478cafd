//! Being asked to stop, by Ctrl-C, by `kill`, or by the parent's death.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::sys;

/// Set when somebody asks the process to stop. Clones share the flag.
#[derive(Clone, Debug)]
pub struct StopFlag {
    signal: Arc<AtomicUsize>,
    /// Set by the first signal; the second one then ends the process on the spot.
    _armed: Arc<AtomicBool>,
}

/// Why to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// SIGINT: Ctrl-C.
    Interrupted,
    /// SIGTERM: `kill`, or the parent died.
    Terminated,
}

impl StopReason {
    /// The exit code a shell gives to a process ended by the signal.
    pub fn exit_code(self) -> u8 {
        match self {
            StopReason::Interrupted => 130,
            StopReason::Terminated => 143,
        }
    }
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StopReason::Interrupted => "interrupted (Ctrl-C)",
            StopReason::Terminated => "terminated (SIGTERM)",
        })
    }
}

impl StopFlag {
    /// Catches SIGINT and SIGTERM from now on. A second signal ends the process at once, for when it does not listen.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn install() -> io::Result<StopFlag> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let signal = Arc::new(AtomicUsize::new(0));
        let armed = Arc::new(AtomicBool::new(false));
        for number in [SIGINT, SIGTERM] {
            // In this order: the first signal passes the check and arms it, the second one ends here.
            signal_hook::flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&armed))?;
            signal_hook::flag::register(number, Arc::clone(&armed))?;
            signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)?;
        }
        Ok(StopFlag {
            signal,
            _armed: armed,
        })
    }

    /// Whether to stop, and why. One relaxed load: cheap enough for a hot loop.
    #[inline]
    pub fn reason(&self) -> Option<StopReason> {
        match self.signal.load(Ordering::Relaxed) as i32 {
            0 => None,
            signal_hook::consts::SIGINT => Some(StopReason::Interrupted),
            _ => Some(StopReason::Terminated),
        }
    }

    /// Whether to stop.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }
}

/// Makes the kernel send SIGTERM to this process when the thread that started it ends, however that happens. `parent` is the
/// process id of the parent as it told its child: it may have died before this call.
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
