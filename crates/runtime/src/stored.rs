//! Memory with a file behind it that lasts: what one process wrote, the next one finds.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use crate::sys;

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// Another process has it.
    #[error("{path} is in use by another process; two of them would overwrite each other")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A file as words of memory, ours alone for as long as this lives. What is stored survives the process at once, the machine
/// after the next [`Syncer::sync`].
#[derive(Debug)]
pub struct StoredWords {
    memory: sys::Mapping,
    file: File,
    path: PathBuf,
}

impl StoredWords {
    /// Opens the file, or makes it with `bytes` zeros (mode 0600), and folders on the way. A file that exists keeps its size.
    ///
    /// # Errors
    /// Another process has it; no room; no right to read and write it.
    pub fn open(path: &Path, bytes: usize) -> Result<StoredWords, StoredError> {
        let failed = |action| {
            move |source| StoredError::System {
                action,
                path: path.to_owned(),
                source,
            }
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed("open"))?;
        if !sys::lock(file.as_fd(), sys::Lock::Exclusive).map_err(failed("lock"))? {
            return Err(StoredError::InUse {
                path: path.to_owned(),
            });
        }
        let mut len = file.metadata().map_err(failed("look at"))?.len() as usize;
        if len == 0 {
            len = bytes.next_multiple_of(4096);
            sys::allocate(file.as_fd(), len).map_err(failed("make room for"))?;
        }
        let memory = sys::Mapping::writable(file.as_fd(), len).map_err(failed("map"))?;
        Ok(StoredWords {
            memory,
            file,
            path: path.to_owned(),
        })
    }

    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        self.memory.words()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A handle by which another thread brings what was stored to the disk.
    ///
    /// # Errors
    /// The process has too many open files.
    pub fn syncer(&self) -> io::Result<Syncer> {
        self.file.try_clone().map(Syncer)
    }
}

/// See [`StoredWords::syncer`].
#[derive(Debug)]
pub struct Syncer(File);

impl Syncer {
    /// Returns when everything stored before is on the disk.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn the_next_process_finds_what_was_stored_and_only_one_has_it_at_a_time() {
        let dir = std::env::temp_dir().join(format!("tickwire-stored-{}", std::process::id()));
        let path = dir.join("deep").join("words");
        let first = StoredWords::open(&path, 5000).unwrap();
        assert_eq!(first.words().len(), 1024);
        assert!(matches!(
            StoredWords::open(&path, 1),
            Err(StoredError::InUse { .. })
        ));
        first.words()[700].store(7, Ordering::Relaxed);
        first.syncer().unwrap().sync().unwrap();
        drop(first);
        let second = StoredWords::open(&path, 9999).unwrap();
        assert_eq!(second.words().len(), 1024);
        assert_eq!(second.words()[700].load(Ordering::Relaxed), 7);
        drop(second);
        fs::remove_dir_all(&dir).unwrap();
    }
}
