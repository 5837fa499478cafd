//! Cores: which there are, pinning a thread to one, priority, memory locking, and keeping idle cores awake.
//!
//! A thread that is pinned to one core may use one core: whoever counts then finds one, and decides that
//! nothing may spin. So cores are counted once for the whole process, before any thread is pinned: pinning is
//! a method of that count ([`Cores::pin`]), and a child process is given back every core
//! ([`crate::child::ChildGuard::spawn`]). A thread that a pinned one starts would run on that one's core, and
//! take it away from who was pinned to have it alone: helpers are started [`beside`] it.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

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

/// The environment's word on how many cores a program may count on, where it shares the machine with others
/// that need theirs: a number from 1 on. It decides what `wait = "auto"` does, and pins nothing.
pub const CORES_VARIABLE: &str = "TICKWIRE_CORES";

/// What [`CORES_VARIABLE`] says, `None` if it is not set.
///
/// # Errors
/// A sentence, if that is no number from 1 on. Whoever does not ask counts every core then.
pub fn cores_asked_for() -> Result<Option<usize>, String> {
    let Some(said) = std::env::var_os(CORES_VARIABLE) else {
        return Ok(None);
    };
    match said.to_str().and_then(|text| text.parse().ok()) {
        Some(cores @ 1..) => Ok(Some(cores)),
        _ => Err(format!(
            "{CORES_VARIABLE} is {}: it says how many cores this program may count on, a number from 1 on",
            said.display()
        )),
    }
}

/// The cores of this process as they were counted at its start, before any thread was pinned: the same in
/// every thread for as long as the process lives, wherever a thread is pinned meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cores(&'static Counted);

#[derive(PartialEq, Eq, Debug)]
struct Counted {
    /// Ascending, never empty.
    usable: Vec<usize>,
    /// How many threads a container's processor quota, or the environment, lets run at the same time.
    quota: usize,
}

impl Cores {
    /// Counts them, the first time; afterwards what was counted then. No thread is pinned without it, so the
    /// first time is always before that.
    pub fn count() -> Cores {
        static COUNTED: OnceLock<Counted> = OnceLock::new();
        Cores(COUNTED.get_or_init(|| {
            let quota = std::thread::available_parallelism().map_or(1, usize::from);
            let asked = cores_asked_for().ok().flatten();
            Counted {
                usable: sys::affinity()
                    .ok()
                    .filter(|cores| !cores.is_empty())
                    .unwrap_or_else(|| vec![0]),
                quota: asked.unwrap_or(quota).min(quota),
            }
        }))
    }

    /// The cores that this process may use, ascending. Never empty.
    pub fn usable(self) -> &'static [usize] {
        &self.0.usable
    }

    /// How many threads can run at the same time: usable cores, or fewer where a container's processor quota
    /// is lower or [`CORES_VARIABLE`] says so. With 1, nothing may spin.
    pub fn parallelism(self) -> usize {
        self.0.quota.min(self.0.usable.len())
    }

    /// Pins the calling thread to `core`. Threads it starts afterwards inherit this but those that are
    /// started [`beside`] it; processes do not, see [`crate::child::ChildGuard::spawn`].
    ///
    /// # Errors
    /// [`AffinityError::NoSuchCore`] with the cores there are.
    pub fn pin(self, core: usize) -> Result<(), AffinityError> {
        sys::set_affinity(&[core]).map_err(|_| AffinityError::NoSuchCore {
            core,
            available: self.0.usable.clone(),
        })?;
        if let Some(word) = PINNED.get(core / 64) {
            word.fetch_or(1 << (core % 64), Ordering::Relaxed);
        }
        Ok(())
    }

    /// The cores that no thread of this process was pinned to; all of them where that leaves none.
    fn free(self) -> Vec<usize> {
        let is_pinned = |core: &usize| {
            let word = PINNED
                .get(core / 64)
                .map_or(0, |word| word.load(Ordering::Relaxed));
            word >> (core % 64) & 1 == 1
        };
        let usable = self.usable().iter().copied();
        let free: Vec<usize> = usable.filter(|core| !is_pinned(core)).collect();
        match free.is_empty() {
            true => self.usable().to_vec(),
            false => free,
        }
    }

    /// Lets a command that is about to be started run on all of these, wherever the calling thread is pinned:
    /// a child process counts its own.
    pub(crate) fn give_to(self, command: &mut Command) {
        if sys::affinity().is_ok_and(|own| own == self.0.usable) {
            return;
        }
        let give = move || {
            // A child on fewer cores is slower, and says so itself.
            let _ = sys::set_affinity(&self.0.usable);
            Ok(())
        };
        // SAFETY: the closure runs between fork and exec: it makes one system call, reads memory that lives
        // for ever and allocates nothing.
        unsafe { command.pre_exec(give) };
    }
}

/// Cores that threads of this process were pinned to, a bit each.
static PINNED: [AtomicU64; 16] = [const { AtomicU64::new(0) }; 16];

/// Starts a thread of this name (15 bytes of it are shown) that helps others: wherever the calling thread is
/// pinned, it may run on every core of the process but those that threads were pinned to, as far as there are
/// others.
///
/// # Errors
/// Those of [`std::thread::Builder::spawn`].
pub fn beside<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let started = std::thread::Builder::new().name(name.to_owned());
    started.spawn(move || {
        let cores = Cores::count().free();
        if sys::affinity().is_ok_and(|own| own != cores) {
            // Where it is not let, it is as it was: slower, and in the way.
            let _ = sys::set_affinity(&cores);
        }
        work()
    })
}

/// The core the calling thread runs on now.
pub fn current_core() -> usize {
    sys::current_core()
}

/// Gives the calling thread the real-time policy `SCHED_FIFO` with a priority of 1 to 99. Only for a pinned
/// thread with another core left for everybody else; the kernel still takes 50 ms of every second unless told
/// otherwise.
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

/// Keeps idle cores out of sleep states for as long as it lives: a sleeping receiver wakes 2 to 3 times
/// sooner.
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
    fn a_pinned_thread_runs_on_its_core_and_still_knows_how_many_there_are() {
        let cores = Cores::count();
        let core = *cores.usable().last().expect("never empty");
        std::thread::spawn(move || {
            cores.pin(core).expect("available");
            assert_eq!(sys::affinity().expect("the kernel says"), [core]);
            assert_eq!(current_core(), core);
            // What a thread of its own counts, too: it inherits the one core.
            for count in [Cores::count, || {
                std::thread::spawn(Cores::count).join().expect("no panic")
            }] {
                assert_eq!(count(), cores);
                assert_eq!(count().parallelism(), cores.parallelism());
            }
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn who_is_started_beside_a_pinned_thread_leaves_it_its_core() {
        let cores = Cores::count();
        let core = *cores.usable().last().expect("never empty");
        std::thread::spawn(move || {
            cores.pin(core).expect("available");
            let own = || sys::affinity().expect("the kernel says");
            let helper = beside("helper", own).expect("it starts");
            let helper = helper.join().expect("no panic");
            match cores.usable().len() {
                1 => assert_eq!(helper, [core]),
                _ => assert!(!helper.is_empty() && !helper.contains(&core), "{helper:?}"),
            }
            // One that a helper starts, too.
            let again = beside("helper", move || {
                let inner = beside("inner", own).expect("it starts");
                inner.join().expect("no panic")
            });
            assert_eq!(again.expect("it starts").join().expect("no panic"), helper);
            assert_eq!(own(), [core], "the pinned one stays where it is");
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_core_that_does_not_exist_is_refused_with_those_that_do() {
        for core in [1_023, 1_000_000] {
            let text = Cores::count().pin(core).expect_err("no such core").to_string();
            assert!(
                text.contains(&format!("core {core}")) && text.contains("[0"),
                "{text}"
            );
        }
    }
}
