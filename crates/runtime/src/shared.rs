//! Files that are memory: the writer's mapping of the shared region, readers' read-only mappings of it, and
//! whether the writer lives.
//!
//! ```text
//! writer   create ─► <path>.new, locked for life ─► format ─► publish: renamed to <path> ─► … ─► dies: the lock is free
//! reader   open <path> read-only ─► whose is it? ─► read ─► lock free? file replaced? ─► open <path> again
//! ```
//!
//! A restarted writer makes a new file, so a reader's old mapping stays what it was until he lets go of it.
//! The lock is the kernel's, of the writing kind and of the open file (`F_OFD_SETLK`, fcntl(2)): it is free
//! as soon as the writer is gone, however it went. Who may only read the file cannot take it, and asks for it
//! without taking anything, so that no reader can hold what a writer waits for, nor have a dead writer look
//! alive. It is taken while the file is ours alone and has no name that anybody knows.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tickwire_market::Nanos;
use tickwire_shm::{AttachError, Layout, ReadWord, Reader, RegionState};

pub use crate::clock::monotonic;
use crate::files::{Folder, FolderError, Sharing};
use crate::mapping::Mapping;
use crate::sys;
use crate::users::{OWNER_VARIABLE, Owners, user_text};

/// The file in the folder that holds the region.
pub const REGION_FILE: &str = "region";

/// A heartbeat older than this is one that stopped: the writer sends one every 100 ms.
pub const SILENT_AFTER_NS: u64 = Nanos::SECOND;

/// Why shared memory could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// Another writer has it.
    #[error("{path} is written by another feed handler; stop that one or choose another folder")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// There is no file: no writer was started here.
    #[error("there is no {path}; start `tickwire feed`, or give the folder that it was started with")]
    NoWriter {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {source}; {advice}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// The folder is not used.
    #[error("{0}")]
    Folder(#[from] FolderError),
    /// The file is another user's: what is in it may be anything.
    #[error(
        "{path} belongs to {owner}, not to you or root: who wrote it could show any book; give --owner or {OWNER_VARIABLE} if that user's \
         feed handler is the one you mean"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: String,
    },
    /// The file is no region that can be read.
    #[error("{path}: {source}")]
    Attach {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: AttachError,
    },
}

impl SharedError {
    /// Whether there is no writer, or one that has only begun: another look may find it.
    pub fn may_come(&self) -> bool {
        matches!(
            self,
            SharedError::NoWriter { .. }
                | SharedError::Attach {
                    source: AttachError::NotReady,
                    ..
                }
        )
    }
}

/// Says what a step was about.
fn failed<'a>(
    action: &'static str,
    path: &'a Path,
    advice: &'static str,
) -> impl FnOnce(io::Error) -> SharedError + 'a {
    move |source| SharedError::System {
        action,
        path: path.to_owned(),
        source,
        advice,
    }
}

const ROOM: &str = "make room in its file system or configure fewer slots (df shows what is left)";
const RIGHTS: &str = "check who owns it and its permissions";

/// Shared memory that this process writes.
#[derive(Debug)]
pub struct SharedMemory {
    memory: Mapping,
    /// Holds the lock: open for as long as this lives.
    file: File,
    folder: Folder,
    name: String,
    path: PathBuf,
    published: AtomicBool,
}

impl SharedMemory {
    /// As [`SharedMemory::create_in`], in the folder of `path`, which is made if it is not there and must be
    /// ours alone to write.
    ///
    /// # Errors
    /// Another writer lives at `path`; the folder is another's or open to others; no room; no right to write
    /// there.
    pub fn create(path: &Path, bytes: usize) -> Result<SharedMemory, SharedError> {
        let folder = Folder::own(path.parent().unwrap_or(Path::new(".")), Sharing::nobody())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        SharedMemory::create_in(folder, &name, bytes)
    }

    /// Makes `bytes` of zeroed memory that will be a file of this name in a folder, ours alone (mode 0600) or
    /// readable by the group that the folder is shared with (0640). All pages are there when this returns.
    /// Nobody sees it until [`SharedMemory::publish`].
    ///
    /// # Errors
    /// Another writer lives there; no room; no right to write there.
    pub fn create_in(folder: Folder, name: &str, bytes: usize) -> Result<SharedMemory, SharedError> {
        let path = folder.path_of(name);
        let new = SharedMemory::new_name(name);
        for name in [name, &new] {
            // Only who could write the file can have this lock: a reader keeps nobody out.
            let old = folder.open(name).ok().flatten();
            if old.is_some_and(|old| sys::is_locked_for_writing(old.as_fd()).unwrap_or(false)) {
                return Err(SharedError::InUse { path });
            }
        }
        let new_path = folder.path_of(&new);
        folder.remove(&new).map_err(failed("remove", &new_path, RIGHTS))?;
        let file = folder
            .create_new(&new)
            .map_err(failed("create", &new_path, RIGHTS))?;
        if !sys::lock_for_writing(file.as_fd()).map_err(failed("lock", &new_path, RIGHTS))? {
            return Err(SharedError::InUse { path });
        }
        // Readers built with an earlier `tickwire.h` ask for this lock.
        let _ = sys::lock(file.as_fd());
        folder.share(&file).map_err(failed(
            "give the group (access.group) the file",
            &new_path,
            RIGHTS,
        ))?;
        sys::allocate(file.as_fd(), 0, bytes).map_err(failed("reserve memory for", &new_path, ROOM))?;
        let memory = Mapping::writable(file.as_fd(), bytes).map_err(failed("map", &new_path, ROOM))?;
        Ok(SharedMemory {
            memory,
            file,
            folder,
            name: name.to_owned(),
            path,
            published: AtomicBool::new(false),
        })
    }

    /// What a file is called until it is published.
    fn new_name(name: &str) -> String {
        format!("{name}.new")
    }

    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        self.memory.words()
    }

    /// Puts the memory in its place, at once and whole; what was there before lives on for those who have it
    /// open.
    ///
    /// # Errors
    /// What the system says.
    pub fn publish(&self) -> Result<(), SharedError> {
        let new = SharedMemory::new_name(&self.name);
        // Somebody who began at the same moment may have made another one.
        if !self.folder.has(&self.file, &new) {
            return Err(SharedError::InUse {
                path: self.path.clone(),
            });
        }
        let published = self.folder.rename(&new, &self.name);
        published.map_err(failed("publish", &self.path, RIGHTS))?;
        self.published.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the file was made shorter: what is written reaches nobody any more. A system call.
    pub fn is_cut(&self) -> bool {
        let bytes = std::mem::size_of_val(self.words()) as u64;
        self.memory.is_lost() || self.file.metadata().is_ok_and(|data| data.len() < bytes)
    }

    /// Where it is published.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SharedMemory {
    /// What was published stays, for those who want to see how it ended; what was not is removed.
    fn drop(&mut self) {
        let new = SharedMemory::new_name(&self.name);
        if !self.published.load(Ordering::Relaxed) && self.folder.has(&self.file, &new) {
            let _ = self.folder.remove(&new);
        }
    }
}

/// Shared memory of another process, read-only: a store through it is not possible, and would be refused by
/// the processor.
#[derive(Debug)]
pub struct SharedView {
    memory: Mapping,
    file: File,
    path: PathBuf,
    owners: Owners,
}

impl SharedView {
    /// Maps the file that is at `path` now, of our own user or root.
    ///
    /// # Errors
    /// There is none, it is another's, or the system refuses.
    pub fn open(path: &Path) -> Result<SharedView, SharedError> {
        SharedView::open_of(path, Owners::own())
    }

    /// Maps the file that is at `path` now, if it is of a user who is trusted. No link is followed.
    ///
    /// # Errors
    /// As [`SharedView::open`].
    pub fn open_of(path: &Path, owners: Owners) -> Result<SharedView, SharedError> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => SharedError::NoWriter {
                path: path.to_owned(),
            },
            _ => failed("open", path, RIGHTS)(source),
        })?;
        let about = file.metadata().map_err(failed("look at", path, RIGHTS))?;
        if !owners.include(about.uid()) {
            return Err(SharedError::Foreign {
                path: path.to_owned(),
                owner: user_text(about.uid()),
            });
        }
        let bytes = about.len() as usize;
        let memory = Mapping::read_only(file.as_fd(), bytes).map_err(failed(
            "map",
            path,
            "give the folder that `tickwire feed` was started with",
        ))?;
        Ok(SharedView {
            memory,
            file,
            path: path.to_owned(),
            owners,
        })
    }

    /// Its words.
    pub fn words(&self) -> &[ReadWord] {
        self.memory.read_words()
    }

    /// Whether the file was made shorter: what is read is zeros, at least in part. A system call.
    pub fn is_cut(&self) -> bool {
        let bytes = std::mem::size_of_val(self.words()) as u64;
        self.memory.is_lost() || self.file.metadata().is_ok_and(|data| data.len() < bytes)
    }

    /// Whether the process that made it still holds its lock. A system call, which takes nothing.
    pub fn writer_is_alive(&self) -> bool {
        // Where the kernel does not say, nothing is known, and giving up a good writer would be worse.
        sys::is_locked_for_writing(self.file.as_fd()).unwrap_or(true)
    }

    /// Whether another file is at its path now. False when there is none.
    pub fn is_replaced(&self) -> bool {
        fs::metadata(&self.path).is_ok() && !is_same_file(&self.file, &self.path)
    }
}

/// Whether an open file is the one at a path.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let id = |data: fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(theirs)) => id(ours) == id(theirs),
        _ => false,
    }
}

/// How the writer of a region is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriterHealth {
    /// It runs.
    Alive,
    /// It runs but has not said so for as long: stopped, or starved of processor time.
    Silent {
        /// Nanoseconds since its last heartbeat.
        ns: u64,
    },
    /// It ended in an orderly way.
    Ended,
    /// It is gone, killed or crashed, and what can be read is the last it said, a book being written then
    /// stays busy; or its file was made shorter in use, and nothing there can be trusted.
    Dead,
}

impl WriterHealth {
    /// Whether what is read now may be traded on.
    pub fn is_alive(self) -> bool {
        self == WriterHealth::Alive
    }

    /// Whether its process is there, heard of lately or not.
    pub fn is_running(self) -> bool {
        matches!(self, WriterHealth::Alive | WriterHealth::Silent { .. })
    }
}

/// What [`Attachment::follow`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Followed {
    /// The same writer as before, in this health.
    Same(WriterHealth),
    /// A new writer; slots, sources and places in rings of the old one mean nothing any more.
    Replaced,
}

/// A reader's hold on the region of a folder, through deaths and restarts of its writer.
#[derive(Debug)]
pub struct Attachment {
    view: SharedView,
    layout: Layout,
}

impl Attachment {
    /// Attaches to the region in `folder`, of our own user or root.
    ///
    /// # Errors
    /// There is none, it is another user's, it is still being made, or it is not of this version: each says
    /// what to do.
    pub fn attach(folder: &Path) -> Result<Attachment, SharedError> {
        Attachment::attach_of(folder, Owners::own())
    }

    /// Attaches to the region in `folder`, of a user who is trusted.
    ///
    /// # Errors
    /// As [`Attachment::attach`].
    pub fn attach_of(folder: &Path, owners: Owners) -> Result<Attachment, SharedError> {
        Attachment::of_file(&folder.join(REGION_FILE), owners)
    }

    /// Attaches to the region in a file, of a user who is trusted.
    ///
    /// # Errors
    /// As [`Attachment::attach`].
    pub fn of_file(path: &Path, owners: Owners) -> Result<Attachment, SharedError> {
        let view = SharedView::open_of(path, owners)?;
        let layout = match Reader::attach(view.words()) {
            Ok(reader) => *reader.layout(),
            Err(source) => {
                return Err(SharedError::Attach {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        Ok(Attachment { view, layout })
    }

    /// The region. Free: call it whenever something is read.
    #[inline]
    pub fn reader(&self) -> Reader<'_, ReadWord> {
        Reader::with_layout(self.view.words(), &self.layout)
    }

    /// How the writer is. A system call or two: ask a few times a second, not for every book.
    pub fn health(&self) -> WriterHealth {
        if self.view.is_cut() {
            return WriterHealth::Dead;
        }
        if self.reader().state() == Some(RegionState::Ended) {
            return WriterHealth::Ended;
        }
        if !self.view.writer_is_alive() {
            return WriterHealth::Dead;
        }
        match monotonic().since(self.reader().heartbeat()) {
            ns if ns > SILENT_AFTER_NS => WriterHealth::Silent { ns },
            _ => WriterHealth::Alive,
        }
    }

    /// Attaches to the new region if there is one; call it a few times a second.
    ///
    /// # Errors
    /// There is a new one that cannot be read (yet): the old one stays attached. Call it again.
    pub fn follow(&mut self) -> Result<Followed, SharedError> {
        if !self.view.is_replaced() {
            return Ok(Followed::Same(self.health()));
        }
        *self = Attachment::of_file(&self.view.path, self.view.owners)?;
        Ok(Followed::Replaced)
    }
}
