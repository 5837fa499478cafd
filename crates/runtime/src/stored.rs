//! Memory with a file behind it that lasts: what one process wrote, the next one finds.
//!
//! ```text
//!  words  0 ─────────────── position ──────────── grown ─────────────────────────── all
//!         │ written         │ ahead: the file has it │ not in the file yet         │
//! ```
//! All of it is mapped at once, which costs addresses only. The file grows by steps, ahead of what is
//! written, by a thread that calls
//! [`Keeper::look`]: room is set aside in the file system and every new page touched before the writer may come there, so that a
//! store to memory is all that it does. A writer who is faster than that thread makes the room himself, and
//! it is counted.
//!
//! A file that is made shorter or removed in use is found by the keeper, or at once when a lost page is
//! touched: the memory is marked as lost, and the process goes on.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::files;
use crate::mapping::Mapping;
use crate::shared::is_same_file;
use crate::sys;

/// Words of a page.
const PAGE: usize = 512;
/// Words that are to be there ahead of what is written: 1 MiB.
const AHEAD: usize = 1 << 17;
/// Words behind the first bytes of a new file that are there when it is made: 64 KiB.
const AT_FIRST: usize = 1 << 13;

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

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> StoredError + 'a {
    move |source| StoredError::System {
        action,
        path: path.to_owned(),
        source,
    }
}

/// A file that is ours alone, not mapped yet.
#[derive(Debug)]
pub struct StoredFile {
    file: File,
    path: PathBuf,
    len: usize,
    is_new: bool,
}

impl StoredFile {
    /// Opens and locks a file, `None` if there is none.
    ///
    /// # Errors
    /// Another process has it; no right to read and write it.
    pub fn open(path: &Path) -> Result<Option<StoredFile>, StoredError> {
        let file = match files::open_own(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed("open", path)(e)),
        };
        if !sys::lock(file.as_fd()).map_err(failed("lock", path))? {
            return Err(StoredError::InUse {
                path: path.to_owned(),
            });
        }
        let len = file.metadata().map_err(failed("look at", path))?.len() as usize;
        Ok(Some(StoredFile {
            file,
            path: path.to_owned(),
            len,
            is_new: false,
        }))
    }

    /// Makes a file (mode 0600) that begins with `first` and will be `bytes` large, and folders on the way.
    /// It is at `path` whole or not at all. A file that is there is replaced with `replaces`, as another's
    /// otherwise.
    ///
    /// # Errors
    /// Another process makes it at the moment; no room; no right.
    pub fn create(
        path: &Path,
        first: &[u8],
        bytes: usize,
        replaces: bool,
    ) -> Result<StoredFile, StoredError> {
        if let Some(folder) = path.parent() {
            files::create_folders(folder).map_err(failed("make the folder of", path))?;
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = path.with_file_name(name);
        let in_use = || StoredError::InUse {
            path: path.to_owned(),
        };
        let mut file = files::open_or_create(&new).map_err(failed("make", &new))?;
        if !sys::lock(file.as_fd()).map_err(failed("lock", &new))? || !is_same_file(&file, &new) {
            return Err(in_use());
        }
        // Somebody was faster, between our look and our lock.
        if !replaces && path.exists() {
            let _ = fs::remove_file(&new);
            return Err(in_use());
        }
        let len = (first.len() / 8 + AT_FIRST).min(bytes / 8) * 8;
        let made = file
            .set_len(0)
            .and_then(|()| file.write_all(first))
            .and_then(|()| sys::allocate(file.as_fd(), 0, len))
            .map_err(failed("make room for", &new))
            .and_then(|()| fs::rename(&new, path).map_err(failed("make", path)));
        if let Err(e) = made {
            let _ = fs::remove_file(&new);
            return Err(e);
        }
        Ok(StoredFile {
            file,
            path: path.to_owned(),
            len,
            is_new: true,
        })
    }

    /// Its first bytes, at most `max`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn first(&self, max: usize) -> Result<Vec<u8>, StoredError> {
        let mut bytes = vec![0; self.len.min(max)];
        self.file
            .read_exact_at(&mut bytes, 0)
            .map_err(failed("read", &self.path))?;
        Ok(bytes)
    }

    /// Bytes it has.
    #[allow(
        clippy::len_without_is_empty,
        reason = "an empty file is one like others here"
    )]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Maps it as memory of `bytes`, of which the first `used` are there at once, and everything with
    /// `is_reserved`. The rest comes as it is needed.
    ///
    /// # Errors
    /// No room.
    pub fn map(self, bytes: usize, used: usize, is_reserved: bool) -> Result<StoredWords, StoredError> {
        let StoredFile {
            file,
            path,
            len,
            is_new,
        } = self;
        let there = match is_reserved {
            true => bytes,
            false => used.min(bytes),
        };
        if len < there {
            sys::allocate(file.as_fd(), len, there).map_err(failed("make room for", &path))?;
        }
        let memory = Mapping::growing(file.as_fd(), bytes).map_err(failed("map", &path))?;
        let grown = len.max(there).min(bytes) / 8;
        if is_new {
            touch(&memory, 0, grown);
        }
        Ok(StoredWords(Arc::new(Shared {
            memory,
            file,
            path,
            grown: AtomicUsize::new(grown),
            position: AtomicUsize::new(0),
            is_gone: AtomicBool::new(false),
            grown_by_writer: AtomicU64::new(0),
            kept: Mutex::new(Kept {
                // What was made now is warm.
                warm: if is_new { usize::MAX } else { 0 },
                ..Kept::default()
            }),
        })))
    }
}

/// Brings pages into memory to be written. An exchange of what is there for the same, so that a writer may be
/// there: the processor asks for the right to write, whether it then does or not. An addition of zero and its
/// like would not do: compilers know that they change nothing, and leave them out.
fn touch(memory: &Mapping, from: usize, to: usize) {
    for word in memory.words()[from..to].iter().step_by(PAGE) {
        let there = word.load(Ordering::Relaxed);
        // When somebody wrote meanwhile the page is there.
        let _ = word.compare_exchange(there, there, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// What is known by those who make room.
#[derive(Debug, Default)]
struct Kept {
    /// Where the writer was at the last look, and at the first.
    position: usize,
    begin: Option<usize>,
    /// Words from `begin` on, over the end to the beginning, that the writer has passed, and that were
    /// touched.
    passed: usize,
    warm: usize,
    /// The last attempt to make room failed.
    is_full: bool,
    /// How many times the writer made room himself, as was told.
    told: u64,
    is_told_gone: bool,
}

#[derive(Debug)]
struct Shared {
    memory: Mapping,
    file: File,
    path: PathBuf,
    /// Words that the file has.
    grown: AtomicUsize,
    /// Words up to the one that was written last, in the ring that they are.
    position: AtomicUsize,
    /// The file was found shorter than it has to be, or removed, or failed to reach the disk.
    is_gone: AtomicBool,
    grown_by_writer: AtomicU64,
    kept: Mutex<Kept>,
}

impl Shared {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn words(&self) -> usize {
        self.memory.words().len()
    }

    /// Makes room up to a word at least. The caller has the lock.
    fn grow(&self, to: usize) -> io::Result<()> {
        let grown = self.grown.load(Ordering::Acquire);
        let to = to.min(self.words());
        if to <= grown {
            return Ok(());
        }
        sys::allocate(self.file.as_fd(), grown * 8, to * 8)?;
        touch(&self.memory, grown, to);
        self.grown.store(to, Ordering::Release);
        Ok(())
    }

    fn is_lost(&self) -> bool {
        self.memory.is_lost() || self.is_gone.load(Ordering::Acquire)
    }
}

/// A file as words of memory, ours alone for as long as this lives. What is stored survives the process at
/// once, the machine after the next [`Syncer::sync`].
#[derive(Debug)]
pub struct StoredWords(Arc<Shared>);

impl StoredWords {
    /// Its words: all that it can have. Only those up to where [`StoredWords::reach`] has been may be
    /// touched.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.0.memory.words()
    }

    /// Words up to `end` are about to be written; whether they are there. Two relaxed memory accesses, unless
    /// the writer has overtaken the keeper.
    #[inline]
    #[must_use]
    pub fn reach(&self, end: usize) -> bool {
        self.0.position.store(end, Ordering::Relaxed);
        end <= self.0.grown.load(Ordering::Acquire) || self.make_room(end)
    }

    #[cold]
    fn make_room(&self, end: usize) -> bool {
        let shared = &*self.0;
        let kept = shared.kept();
        if end <= shared.grown.load(Ordering::Acquire) {
            return true;
        }
        shared.grown_by_writer.fetch_add(1, Ordering::Relaxed);
        let is_there = shared.grow(end + AHEAD).is_ok() || shared.grow(end).is_ok();
        drop(kept);
        is_there
    }

    /// Whether what is written goes nowhere: the file was made shorter or removed in use, or the disk failed.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Returns when everything stored before is on the disk. After a failure nothing is known to be there any
    /// more: the memory is lost.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sync(&self) -> io::Result<()> {
        let synced = self.0.file.sync_data();
        if synced.is_err() {
            self.0.is_gone.store(true, Ordering::Release);
        }
        synced
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Bytes that the file has now.
    pub fn grown(&self) -> usize {
        self.0.grown.load(Ordering::Acquire) * 8
    }

    /// A handle by which another thread brings what was stored to the disk.
    pub fn syncer(&self) -> Syncer {
        Syncer(Arc::downgrade(&self.0))
    }
}

/// The file is free at once: who makes room in it or brings it to the disk may have it open a little longer,
/// and changes nothing that is in it.
impl Drop for StoredWords {
    fn drop(&mut self) {
        // It is free when the last of them closes it, otherwise.
        let _ = sys::unlock(self.0.file.as_fd());
    }
}

/// See [`StoredWords::syncer`].
#[derive(Debug)]
pub struct Syncer(Weak<Shared>);

impl Syncer {
    /// Returns when everything stored before is on the disk; `false` when nobody has the memory any more.
    ///
    /// # Errors
    /// The disk failed, with the file's path.
    pub fn sync(&self) -> Result<bool, StoredError> {
        let Some(shared) = self.0.upgrade() else {
            return Ok(false);
        };
        let synced = shared.file.sync_data();
        synced.map_err(failed("bring to the disk", &shared.path))?;
        Ok(true)
    }
}

/// What a keeper found.
#[derive(Debug)]
pub enum Finding {
    /// The file system has no room for the file to grow; so many bytes are left in what it has.
    NoRoom {
        /// What the system said.
        error: io::Error,
        /// Bytes that can still be written.
        left: usize,
    },
    /// There is room again.
    RoomAgain,
    /// The writer was faster than the keeper, so many times since the last finding, and made room himself.
    Overtaken {
        /// How many times.
        times: u64,
    },
    /// The file was made shorter in use: it has so many bytes.
    Cut {
        /// Bytes it has.
        bytes: u64,
    },
    /// The file was removed in use: what is written goes with the process.
    Removed,
}

/// Makes room in files ahead of their writers, and looks whether they are whole. Clones share what they keep.
#[derive(Clone, Debug, Default)]
pub struct Keeper(Arc<Mutex<Vec<Weak<Shared>>>>);

impl Keeper {
    /// Looks after a file from now on, as long as its memory lives.
    pub fn keep(&self, words: &StoredWords) {
        self.files().push(Arc::downgrade(&words.0));
    }

    /// Looks no more after the file at a path: it is about to be removed.
    pub fn forget(&self, path: &Path) {
        self.files()
            .retain(|file| file.upgrade().is_some_and(|file| file.path != path));
    }

    fn files(&self) -> MutexGuard<'_, Vec<Weak<Shared>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room where it is needed: a few nanoseconds for a file that has enough. With `is_thorough` it
    /// also asks the system about each file. Call it every few milliseconds, thoroughly a few times a second.
    pub fn look(&self, is_thorough: bool, mut each: impl FnMut(&Path, Finding)) {
        let kept: Vec<Arc<Shared>> = {
            let mut files = self.files();
            files.retain(|file| file.strong_count() > 0);
            files.iter().filter_map(Weak::upgrade).collect()
        };
        for file in kept {
            file.look(is_thorough, &mut |finding| each(&file.path, finding));
        }
    }
}

impl Shared {
    fn look(&self, is_thorough: bool, each: &mut dyn FnMut(Finding)) {
        let position = self.position.load(Ordering::Relaxed);
        let mut kept = self.kept();
        if is_thorough && !kept.is_told_gone {
            self.look_at_file(&mut kept, each);
        }
        if position == 0 || (position == kept.position && !is_thorough) || self.is_lost() {
            return;
        }
        self.grow_ahead(position, &mut kept, each);
        self.warm_ahead(position, &mut kept);
        kept.position = position;
        let times = self.grown_by_writer.load(Ordering::Relaxed);
        if is_thorough && times > kept.told {
            each(Finding::Overtaken {
                times: times - kept.told,
            });
            kept.told = times;
        }
    }

    fn grow_ahead(&self, position: usize, kept: &mut Kept, each: &mut dyn FnMut(Finding)) {
        let grown = self.grown.load(Ordering::Acquire);
        if grown >= self.words() || position + AHEAD <= grown {
            return;
        }
        match self.grow((position + 2 * AHEAD).max(2 * grown)) {
            Ok(()) if kept.is_full => {
                kept.is_full = false;
                each(Finding::RoomAgain);
            }
            Ok(()) => {}
            Err(error) => {
                let left = grown.saturating_sub(position) * 8;
                // It may be enough for less.
                if self.grow(position + AHEAD).is_err() && !std::mem::replace(&mut kept.is_full, true) {
                    each(Finding::NoRoom { error, left });
                }
            }
        }
    }

    /// A file of an earlier process: its pages are brought into memory as the writer comes near, once.
    fn warm_ahead(&self, position: usize, kept: &mut Kept) {
        let words = self.words();
        let grown = self.grown.load(Ordering::Acquire);
        if kept.warm >= words {
            return;
        }
        let begin = *kept.begin.get_or_insert(position);
        if kept.position > 0 {
            kept.passed += (position + words - kept.position) % words;
        }
        let to = (kept.passed + AHEAD).min(words);
        let mut at = kept.warm;
        while at < to {
            let page = (begin + at) % words;
            if page < grown {
                touch(&self.memory, page, page + 1);
            }
            at += PAGE;
        }
        kept.warm = at;
    }

    fn look_at_file(&self, kept: &mut Kept, each: &mut dyn FnMut(Finding)) {
        let Ok(data) = self.file.metadata() else { return };
        let needed = self.grown.load(Ordering::Acquire) as u64 * 8;
        let finding = match () {
            () if data.len() < needed => Finding::Cut { bytes: data.len() },
            () if data.nlink() == 0 => Finding::Removed,
            () => return,
        };
        self.is_gone.store(true, Ordering::Release);
        kept.is_told_gone = true;
        each(finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tickwire-stored-{name}-{}", std::process::id()));
            Folder(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("deep").join("words")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const BYTES: usize = 16 << 20;

    fn new(folder: &Folder) -> StoredWords {
        let file = StoredFile::create(&folder.file(), &[1; 64], BYTES, true).unwrap();
        file.map(BYTES, 64, false).unwrap()
    }

    fn findings(keeper: &Keeper) -> Vec<String> {
        let mut all = Vec::new();
        keeper.look(true, |_, finding| all.push(format!("{finding:?}")));
        all
    }

    #[test]
    fn the_next_process_finds_what_was_stored_and_only_one_has_it_at_a_time() {
        let folder = Folder::new("next");
        assert!(StoredFile::open(&folder.file()).unwrap().is_none());
        let first = new(&folder);
        assert_eq!(first.words().len(), BYTES / 8);
        assert!(matches!(
            StoredFile::open(&folder.file()),
            Err(StoredError::InUse { .. })
        ));
        assert!(first.reach(701));
        first.words()[700].store(7, Ordering::Relaxed);
        assert!(first.syncer().sync().unwrap());
        let syncer = first.syncer();
        drop(first);
        assert!(!syncer.sync().unwrap());
        let second = StoredFile::open(&folder.file()).unwrap().unwrap();
        assert_eq!(second.first(8).unwrap(), [1; 8]);
        let second = second.map(BYTES, 5608, false).unwrap();
        assert_eq!(second.words()[700].load(Ordering::Relaxed), 7);
    }

    /// Pages that this thread had to wait for so far.
    fn faults() -> u64 {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, behind_name) = stat.rsplit_once(')').unwrap();
        behind_name.split_whitespace().nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn a_writer_waits_for_no_page_that_the_keeper_has_made_room_for() {
        let folder = Folder::new("touched");
        let words = new(&folder);
        let keeper = Keeper::default();
        keeper.keep(&words);
        assert!(words.reach(1));
        let looked = std::thread::spawn(move || findings(&keeper)).join();
        assert_eq!(looked.unwrap(), Vec::<String>::new());
        assert!(words.grown() >= AHEAD * 8);
        // What the measurement itself needs is there before it begins.
        faults();
        let before = faults();
        for word in words.words()[..AHEAD].iter().step_by(PAGE / 8) {
            word.store(1, Ordering::Relaxed);
        }
        let waited = faults() - before;
        // Of 256 pages; some are not this test's.
        assert!(waited < 16, "{waited} page faults");
    }

    #[test]
    fn a_file_is_free_at_once_though_a_keeper_has_it_open() {
        let folder = Folder::new("free");
        let words = new(&folder);
        let looking = words.syncer().0.upgrade().expect("it is there");
        assert!(matches!(
            StoredFile::open(&folder.file()),
            Err(StoredError::InUse { .. })
        ));
        drop(words);
        let again = StoredFile::open(&folder.file())
            .expect("it is free")
            .expect("it is there");
        let again = again.map(BYTES, 64, false).expect("a file");
        // And is not given back by whoever had it before.
        drop(looking);
        assert!(matches!(
            StoredFile::open(&folder.file()),
            Err(StoredError::InUse { .. })
        ));
        drop(again);
    }

    /// Room is there before the writer comes, by the keeper; a writer who is faster makes it, and that is
    /// told.
    #[test]
    fn a_file_grows_ahead_of_its_writer() {
        let folder = Folder::new("grows");
        let (words, keeper) = (new(&folder), Keeper::default());
        keeper.keep(&words);
        let at_first = words.grown();
        assert!(at_first < 128 << 10, "{at_first}");
        assert_eq!(findings(&keeper), [""; 0]);
        assert_eq!(words.grown(), at_first, "nobody writes");
        let mut place = 1000;
        while place < BYTES / 8 {
            assert!(words.reach(place));
            words.words()[place - 1].store(place as u64, Ordering::Relaxed);
            assert_eq!(findings(&keeper), [""; 0]);
            let ahead = words.grown() - place * 8;
            assert!(
                ahead >= AHEAD * 8 || words.grown() == BYTES,
                "{ahead} bytes at {place}"
            );
            place += AHEAD / 2;
        }
        assert_eq!(fs::metadata(folder.file()).unwrap().len(), BYTES as u64);
        drop(words);
        let words = new(&folder);
        keeper.keep(&words);
        assert!(words.reach(BYTES / 16));
        assert_eq!(findings(&keeper), ["Overtaken { times: 1 }"]);
    }

    #[test]
    fn a_file_that_is_cut_or_removed_in_use_is_told_of() {
        let folder = Folder::new("cut");
        let keeper = Keeper::default();
        for is_cut in [true, false] {
            let words = new(&folder);
            keeper.keep(&words);
            assert!(words.reach(2000) && !words.is_lost());
            match is_cut {
                true => fs::OpenOptions::new()
                    .write(true)
                    .open(folder.file())
                    .and_then(|file| file.set_len(100))
                    .unwrap(),
                false => fs::remove_file(folder.file()).unwrap(),
            }
            let expected = if is_cut { "Cut { bytes: 100 }" } else { "Removed" };
            assert_eq!(findings(&keeper), [expected]);
            assert!(words.is_lost());
            assert_eq!(findings(&keeper), [""; 0]);
            words.words()[1999].store(1, Ordering::Relaxed);
        }
    }
}
