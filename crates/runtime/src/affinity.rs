//! Cores: which there are, pinning a thread to one, priority, memory locking, and keeping idle cores awake.

use std::fs::File;
use std::io::{self, Write};

use crate::sys;

/// Why a thread could not be pinned or privileged.
#[derive(Debug, thiserror::Error)]
pub enum AffinityError {
    /// The core is not one of those this process may use.
    #[error("core {core} is not available to this process, which may use {available:?}; choose one of these")]
    NoSuchCore {
        /// The core wanted.
        core: usize,
        /// Those there are.
        available: Vec<usize>,
    },
    /// The system does not allow it.
    #[error("cannot {action}: {source}; run as root or with {capability}, or leave the option off")]
    NotPermitted {
        /// What was tried.
        action: &'static str,
        /// What would allow it.
        capability: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// The cores the calling thread may run on, ascending. Never empty.
pub fn available_cores() -> Vec<usize> {
    sys::affinity()
        .ok()
        .filter(|cores| !cores.is_empty())
        .unwrap_or_else(|| vec![0])
}

/// How many threads can run at the same time: available cores, or fewer where a container's processor quota is lower.
/// With 1, nothing may spin.
pub fn parallelism() -> usize {
    let quota = std::thread::available_parallelism().map_or(1, usize::from);
    quota.min(available_cores().len())
}

/// Pins the calling thread to `core`. Threads it starts afterwards inherit this.
///
/// # Errors
/// [`AffinityError::NoSuchCore`] with the cores there are.
pub fn pin(core: usize) -> Result<(), AffinityError> {
    sys::set_affinity(core).map_err(|_| AffinityError::NoSuchCore {
        core,
        available: available_cores(),
    })
}

/// The core the calling thread runs on now.
pub fn current_core() -> usize {
    sys::current_core()
}

/// Gives the calling thread the real-time policy `SCHED_FIFO` with a priority of 1 to 99. Only for a pinned thread with
/// another core left for everybody else; the kernel still takes 50 ms of every second unless told otherwise.
///
/// # Errors
/// [`AffinityError::NotPermitted`] without `CAP_SYS_NICE`.
pub fn set_realtime(priority: i32) -> Result<(), AffinityError> {
    let not_permitted = |source| AffinityError::NotPermitted {
        action: "set the real-time policy",
        capability: "CAP_SYS_NICE",
        source,
    };
    sys::set_fifo(priority).map_err(not_permitted)
}

/// Locks all memory of the process, present and future, so that no page fault reads a disk.
///
/// # Errors
/// [`AffinityError::NotPermitted`] beyond the `memlock` limit without `CAP_IPC_LOCK`.
pub fn lock_memory() -> Result<(), AffinityError> {
    let not_permitted = |source| AffinityError::NotPermitted {
        action: "lock memory",
        capability: "CAP_IPC_LOCK",
        source,
    };
    sys::lock_memory().map_err(not_permitted)
}

/// Keeps idle cores out of sleep states for as long as it lives: a sleeping receiver wakes 2 to 3 times sooner.
#[derive(Debug)]
pub struct AwakeCores {
    _request: File,
}

impl AwakeCores {
    /// Asks the kernel for a wake-up latency of 0 µs.
    ///
    /// # Errors
    /// [`AffinityError::NotPermitted`] without write access to `/dev/cpu_dma_latency`.
    pub fn hold() -> Result<AwakeCores, AffinityError> {
        let open = || -> io::Result<File> {
            let mut file = File::options().write(true).open("/dev/cpu_dma_latency")?;
            file.write_all(&0i32.to_ne_bytes())?;
            Ok(file)
        };
        let not_permitted = |source| AffinityError::NotPermitted {
            action: "keep cores awake",
            capability: "write access to /dev/cpu_dma_latency",
            source,
        };
        open()
            .map(|file| AwakeCores { _request: file })
            .map_err(not_permitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_on_its_core_and_nowhere_else() {
        let core = *available_cores().last().expect("never empty");
        std::thread::spawn(move || {
            pin(core).expect("available");
            assert_eq!((available_cores(), current_core()), (vec![core], core));
            assert_eq!(parallelism(), 1);
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_core_that_does_not_exist_is_refused_with_those_that_do() {
        for core in [1_023, 1_000_000] {
            let text = pin(core).expect_err("no such core").to_string();
            assert!(
                text.contains(&format!("core {core}")) && text.contains("[0"),
                "{text}"
            );
        }
    }
}
