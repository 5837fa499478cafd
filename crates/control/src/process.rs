//! What this process holds alone: folders, files, cores; and whom it ends with.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tickwire_console::failure::Failure;
use tickwire_runtime::affinity::{self, Cores};
use tickwire_runtime::alloc;
use tickwire_runtime::files::{self, Folder, Sharing};
use tickwire_runtime::signal;

/// The file whose lock says that the folder is in use.
const LOCK_FILE: &str = "lock";

/// Holds the folder for this process: the lock goes with it, however it ends.
pub struct FolderLock {
    folder: Folder,
    /// Ours alone to open, so that nobody else can hold it.
    _lock: File,
}

impl FolderLock {
    /// Takes a folder, made if it is not there, that is ours alone to write.
    pub fn take(folder: &Path, sharing: Sharing) -> Result<FolderLock, Failure> {
        let folder = Folder::own(folder, sharing).map_err(|e| Failure::system(e.to_string()))?;
        let shown = folder.path().display().to_string();
        let lock = folder.lock(LOCK_FILE).map_err(|e| {
            Failure::system(format!(
                "cannot open the lock in {shown}: {e}; give another folder with --folder or daemon.folder"
            ))
        })?;
        let mut lock = lock.map_err(|holder| {
            Failure::system(format!(
                "{shown} is in use by another tickwire, process {holder}; end that one, or give another folder with --folder"
            ))
        })?;
        let _ = lock
            .set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        Ok(FolderLock { folder, _lock: lock })
    }

    /// The folder, held open once more.
    pub fn folder(&self) -> Result<Folder, Failure> {
        self.folder.again().map_err(|e| Failure::system(e.to_string()))
    }
}

/// Opens or makes a file, for this process alone as long as it is open.
///
/// # Errors
/// Another process has it, one of `others`; or the system does not let us.
pub fn open_alone(path: &Path, what: &str, others: &str) -> Result<File, Failure> {
    let place = path.display();
    let failed =
        |deed: &str, e: std::io::Error| Failure::system(format!("{what} {place}: {deed} failed: {e}"));
    let file = files::open_or_create(path).map_err(|e| failed("opening it", e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::config(format!(
            "{what} {place}: in use by another {others}"
        ))),
        Err(TryLockError::Error(e)) => Err(failed("locking it", e)),
    }
}

/// Heeds what the environment says of cores and of memory, and counts the cores, before any thread is pinned.
///
/// # Errors
/// It says nonsense.
pub fn heed_environment() -> Result<(), Failure> {
    affinity::cores_asked_for().map_err(Failure::config)?;
    alloc::prefault_asked_for().map_err(Failure::config)?;
    Cores::count();
    Ok(())
}

/// Pins the calling thread to the configured core; a negative one leaves it to the scheduler. The console's
/// threads are made before, so that they are not pinned with it.
///
/// # Errors
/// There is no such core for this process.
pub fn pin(core: i32) -> Result<(), Failure> {
    tickwire_console::start();
    match usize::try_from(core) {
        Ok(core) => Cores::count()
            .pin(core)
            .map_err(|e| Failure::system(e.to_string())),
        Err(_) => Ok(()),
    }
}

/// This process ends with the one that started it.
pub fn tie_to(parent: u32) -> Result<(), Failure> {
    signal::die_with_parent(parent)
        .map_err(|e| Failure::system(format!("cannot tie this process to its parent {parent}: {e}")))
}

/// A program that lies beside this one, by its name; `None` where there is none.
pub fn beside(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    // Of tests, programs are one folder up.
    let folder = own.parent()?;
    let folder = match folder.ends_with("deps") {
        true => folder.parent()?,
        false => folder,
    };
    Some(folder.join(name)).filter(|path| path.is_file())
}
