//! Stores of sessions: opened for a session, kept by threads of their own, looked at by `tickwire fix store`.
//!
//! The keeper's thread makes room in every file ahead of its session and sees whether the files are whole.
//! Another brings stores to the disk every so many milliseconds; with `FileStoreSync=Y` the session itself
//! does, before it sends.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tickwire_fix::{
    EarlierStore, LastingStore, MemoryStore, STORE_HEAD_BYTES, Store, StoreError, StoreFailed, StoreSize,
    Words, new_store, store_bytes, store_size,
};
use tickwire_runtime::stored::{Finding, Keeper, StoredFile, StoredWords, Syncer};

use crate::error::Error;
use crate::observer::Observer;
use crate::settings::{Setup, StoreSetup};

/// How often the keeper makes room: at 200 MB/s of messages, 1 MiB ahead is enough.
const LOOK: Duration = Duration::from_millis(5);
/// Of so many looks one asks the system about each file.
const THOROUGH: u32 = 50;
/// How often a file that somebody writes is read before what it says is taken for damage.
const READS: u32 = 200;

/// A file as the memory of a store.
#[derive(Debug)]
pub(crate) struct FileWords {
    words: StoredWords,
    syncs_before_sending: bool,
}

impl Words for FileWords {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        self.words.words()
    }

    #[inline]
    fn reach(&self, end: usize) -> Result<(), StoreFailed> {
        match self.words.reach(end) {
            true => Ok(()),
            false => Err(StoreFailed::NoRoom),
        }
    }

    #[inline]
    fn failure(&self) -> Option<StoreFailed> {
        self.words.is_lost().then_some(StoreFailed::Lost)
    }

    #[inline]
    fn settle(&self) -> Result<(), StoreFailed> {
        match self.syncs_before_sending {
            true => self.words.sync().map_err(|_| StoreFailed::NotOnDisk),
            false => Ok(()),
        }
    }
}

/// What tells a store from another session's: version and both identities.
#[must_use]
pub fn identity(setup: &Setup) -> String {
    let c = &setup.config;
    let name = format!("{} {} {}", c.version.name(), c.sender, c.target);
    match c.qualifier.is_empty() {
        true => name,
        false => format!("{name} {}", c.qualifier),
    }
}

/// The keeper of all stores of this process; its thread begins with the first.
static KEEPER: LazyLock<Keeper> = LazyLock::new(|| {
    let keeper = Keeper::default();
    let own = keeper.clone();
    let run = move || {
        for n in 0_u32.. {
            std::thread::sleep(LOOK);
            own.look(n.is_multiple_of(THOROUGH), tell);
        }
    };
    if let Err(e) = tickwire_runtime::affinity::beside("fix-store", run) {
        warn_everybody(format_args!(
            "no thread to make room in stores by, so sessions do: {e}"
        ));
    }
    keeper
});

/// Who is told of the store of each path, by threads that look after all of them.
static OBSERVERS: Mutex<BTreeMap<PathBuf, Arc<dyn Observer>>> = Mutex::new(BTreeMap::new());

fn observers() -> MutexGuard<'static, BTreeMap<PathBuf, Arc<dyn Observer>>> {
    OBSERVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn warn_everybody(text: std::fmt::Arguments<'_>) {
    let all: Vec<Arc<dyn Observer>> = observers().values().cloned().collect();
    if let Some(first) = all.first() {
        first.warn(text);
    }
}

fn tell(path: &Path, finding: Finding) {
    let Some(observer) = observers().get(path).cloned() else {
        return;
    };
    let warn = |text: std::fmt::Arguments<'_>| observer.warn(text);
    let path = path.display();
    match finding {
        Finding::NoRoom { error, left } => warn(format_args!(
            "store {path} cannot grow: {error}; after {left} bytes more its session ends; make room on its disk (df)"
        )),
        Finding::RoomAgain => warn(format_args!("store {path} grows again")),
        Finding::Overtaken { times } => warn(format_args!(
            "store {path}: its session wrote faster than room was made and made it itself {times} times; FileStoreReserve=Y sets all \
             of it aside at the start"
        )),
        Finding::Cut { bytes } => warn(format_args!(
            "store {path} was cut to {bytes} bytes while it is in use: its session ends; `tickwire fix store` says what is left of it"
        )),
        Finding::Removed => warn(format_args!(
            "store {path} was removed while it is in use: its session ends; put it back, or start again without it"
        )),
    }
}

/// A store that is brought to the disk by a thread.
struct Synced {
    syncer: Syncer,
    every: Duration,
    /// When next.
    at: Instant,
    observer: Arc<dyn Observer>,
}

/// All of them.
static SYNCED: LazyLock<Mutex<Vec<Synced>>> = LazyLock::new(|| {
    let run = || {
        loop {
            std::thread::sleep(sync_all(Instant::now()));
        }
    };
    if let Err(e) = tickwire_runtime::affinity::beside("fix-store-sync", run) {
        warn_everybody(format_args!("no thread to bring stores to the disk: {e}"));
    }
    Mutex::default()
});

/// Brings to the disk what is due; how long until something is again.
fn sync_all(now: Instant) -> Duration {
    const IDLE: Duration = Duration::from_millis(100);
    let mut due = {
        let mut all = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
        let (due, later): (Vec<Synced>, Vec<Synced>) = all.drain(..).partition(|synced| synced.at <= now);
        *all = later;
        due
    };
    due.retain_mut(|synced| {
        synced.at = now + synced.every;
        synced.syncer.sync().unwrap_or_else(|e| {
            synced.observer.warn(format_args!("{e}"));
            true
        })
    });
    let mut all = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
    all.append(&mut due);
    let next = all
        .iter()
        .map(|synced| synced.at.saturating_duration_since(now))
        .min();
    next.unwrap_or(IDLE).clamp(Duration::from_millis(1), IDLE)
}

/// A store that was opened, and what is to be told of it.
pub(crate) struct OpenedStore {
    store: Box<dyn Store + Send>,
    /// What was found, of a file.
    found: Option<String>,
    /// What of it is damaged.
    damage: Vec<String>,
}

impl OpenedStore {
    /// Tells the observer what was found.
    pub(crate) fn told(self, observer: &Arc<dyn Observer>) -> Box<dyn Store + Send> {
        if let Some(found) = self.found {
            observer.say(format_args!("{found}"));
        }
        for line in self.damage {
            observer.warn(format_args!("{line}"));
        }
        self.store
    }
}

/// The store of a session, as configured; the observer is told what was found.
///
/// # Errors
/// The file cannot be opened, is another session's or in use, or is no store.
pub fn open(setup: &Setup, observer: &Arc<dyn Observer>) -> Result<Box<dyn Store + Send>, Error> {
    Ok(opened(setup, observer)?.told(observer))
}

/// The same; what was found is told later.
pub(crate) fn opened(setup: &Setup, observer: &Arc<dyn Observer>) -> Result<OpenedStore, Error> {
    let c = &setup.config;
    let Some(file) = &setup.store else {
        return Ok(OpenedStore {
            store: Box::new(MemoryStore::new(c.store_messages, c.store_bytes)),
            found: None,
            damage: Vec::new(),
        });
    };
    let store = open_file(file, &identity(setup), observer)?;
    let path = file.path.display();
    Ok(OpenedStore {
        found: Some(format!("store {path}: {}", summary(&store))),
        damage: damage(&store)
            .into_iter()
            .map(|line| format!("store {path}: {line}"))
            .collect(),
        store: Box::new(store),
    })
}

/// The store of a session that no QuickFIX file speaks of: room for `bytes` of messages when it is new.
///
/// # Errors
/// As of [`open`].
pub fn lasting(
    path: &Path,
    bytes: usize,
    identity: &str,
    observer: &Arc<dyn Observer>,
) -> Result<Box<dyn Store + Send>, Error> {
    let file = StoreSetup {
        path: path.to_path_buf(),
        bytes,
        is_reserved: false,
        syncs_before_sending: false,
        sync_every_ms: None,
    };
    let store = open_file(&file, identity, observer)?;
    for line in damage(&store) {
        observer.warn(format_args!("store {}: {line}", path.display()));
    }
    Ok(Box::new(store))
}

/// Removes the file of a store whose session never came to anything.
pub(crate) fn remove(path: &Path) {
    KEEPER.forget(path);
    observers().remove(path);
    // Whoever removed it before has done what was to be done.
    let _ = fs::remove_file(path);
}

fn summary<M: Words>(store: &LastingStore<M>) -> String {
    let recovery = store.recovery();
    let from = match recovery.messages {
        0 => String::new(),
        _ => format!(" ({} to {})", recovery.oldest, store.next_out() - 1),
    };
    format!(
        "next out {}, next in {}, {} messages can be sent again{from}, {} of {} KiB used",
        store.next_out(),
        store.next_in(),
        recovery.messages,
        store.bytes_used().div_ceil(1024),
        store.bytes_max() / 1024
    )
}

/// A line for everything that is damaged.
#[must_use]
pub fn damage<M: Words>(store: &LastingStore<M>) -> Vec<String> {
    let recovery = store.recovery();
    let head = recovery.has_damaged_head.then(|| {
        format!(
            "one of the two copies of its sequence numbers was damaged; the other is taken, and one number is passed over: next out {}",
            store.next_out()
        )
    });
    let holes = recovery.holes.iter().map(|hole| {
        let (first, last) = (hole.after + 1, hole.before - 1);
        match first <= last {
            true => format!(
                "{} bytes are damaged: messages {first} to {last} are missing and will be sent as gap fills",
                hole.bytes
            ),
            false => format!("{} bytes are damaged, without a message in them", hole.bytes),
        }
    });
    head.into_iter().chain(holes).collect()
}

/// Why a file is no store of this session's, and what to do.
fn refused(path: &Path, why: StoreError) -> Error {
    let advice = match why {
        StoreError::NotAStore | StoreError::OtherSession | StoreError::Earlier => {
            "move it away or name another one"
        }
        StoreError::Damaged | StoreError::CutShort { .. } => {
            "ask the counterparty which number it expects and which it sends next, move the file away, and set both: `tickwire fix store \
             -c FILE --session TARGETCOMPID --next-out N --next-in M`; where both sides reset, move it away"
        }
    };
    Error::config(format!("{} {why}; {advice}", path.display()))
}

fn open_file(
    setup: &StoreSetup,
    identity: &str,
    observer: &Arc<dyn Observer>,
) -> Result<LastingStore<FileWords>, Error> {
    let path = &setup.path;
    let system = |e: &dyn std::fmt::Display| Error::system(e.to_string());
    let mut file = StoredFile::open(path).map_err(|e| system(&e))?;
    if let Some(found) = &file
        && store_size(&found.first(STORE_HEAD_BYTES).map_err(|e| system(&e))?) == Err(StoreError::Earlier)
    {
        convert(setup, found, identity, observer)?;
        file = StoredFile::open(path).map_err(|e| system(&e))?;
    }
    let file = match file {
        Some(file) => file,
        None => {
            let bytes = store_bytes(setup.bytes);
            StoredFile::create(path, &new_store(identity.as_bytes(), bytes), bytes, false)
                .map_err(|e| system(&e))?
        }
    };
    let size = store_size(&file.first(STORE_HEAD_BYTES).map_err(|e| system(&e))?)
        .map_err(|why| refused(path, why))?;
    let words = file
        .map(size.bytes, size.used, setup.is_reserved)
        .map_err(|e| system(&e))?;
    observers().insert(path.clone(), observer.clone());
    KEEPER.keep(&words);
    if let Some(every_ms) = setup.sync_every_ms {
        let every = Duration::from_millis(every_ms);
        let mut synced = SYNCED.lock().unwrap_or_else(PoisonError::into_inner);
        synced.push(Synced {
            syncer: words.syncer(),
            every,
            at: Instant::now(),
            observer: observer.clone(),
        });
    }
    let words = FileWords {
        words,
        syncs_before_sending: setup.syncs_before_sending,
    };
    LastingStore::open(words, identity.as_bytes()).map_err(|why| refused(path, why))
}

/// Beside a file.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}

/// Puts a store of today's format in the place of one of the earlier format, which stays beside it.
fn convert(
    setup: &StoreSetup,
    file: &StoredFile,
    identity: &str,
    observer: &Arc<dyn Observer>,
) -> Result<(), Error> {
    let path = &setup.path;
    let system = |e: &dyn std::fmt::Display| Error::system(format!("store {}: {e}", path.display()));
    let bytes = file.first(file.len()).map_err(|e| system(&e))?;
    let earlier = EarlierStore::read(&bytes, Some(identity.as_bytes())).map_err(|why| refused(path, why))?;
    let (new, old) = (beside(path, ".converted"), beside(path, ".earlier"));
    let room = store_bytes(setup.bytes.max(file.len()));
    let made = StoredFile::create(&new, &new_store(identity.as_bytes(), room), room, true)
        .map_err(|e| system(&e))?;
    let words = FileWords {
        words: made.map(room, STORE_HEAD_BYTES, false).map_err(|e| system(&e))?,
        syncs_before_sending: false,
    };
    let mut store = LastingStore::open(words, identity.as_bytes()).map_err(|why| refused(path, why))?;
    for (seq, message) in &earlier.messages {
        store.append(*seq, message).map_err(|e| system(&e))?;
    }
    store.set_next_out(earlier.next_out);
    store.set_next_in(earlier.next_in);
    store.set_period(earlier.period);
    let synced = store.memory().words.sync();
    synced
        .and_then(|()| fs::hard_link(path, &old).or_else(|_| fs::copy(path, &old).map(drop)))
        .and_then(|()| fs::rename(&new, path))
        .map_err(|e| system(&e))?;
    observer.warn(format_args!(
        "store {} was of the earlier format and was converted: {} messages, next out {}, next in {}; {} bytes behind a damaged message were \
         not read; the old file is {}",
        path.display(),
        earlier.messages.len(),
        earlier.next_out,
        earlier.next_in,
        earlier.damaged_bytes,
        old.display()
    ));
    Ok(())
}

// ---- looking --------------------------------------------------------------------------------------------------------

/// What the head of a store says now, though somebody may be writing it.
pub(crate) fn head_of(file: &File) -> std::io::Result<(Vec<u8>, Result<StoreSize, StoreError>)> {
    let mut n = 0;
    loop {
        let head = read_up_to(file, STORE_HEAD_BYTES)?;
        let size = store_size(&head);
        n += 1;
        if n == READS || size.is_ok_and(|size| !size.is_half) {
            return Ok((head, size));
        }
    }
}

fn read_up_to(file: &File, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut read = vec![0; bytes];
    let mut len = 0;
    while len < bytes {
        match file.read_at(&mut read[len..], len as u64)? {
            0 => break,
            n => len += n,
        }
    }
    read.truncate(len);
    Ok(read)
}

fn words_of(bytes: &[u8], words: usize) -> Box<[AtomicU64]> {
    let all: Box<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
    for (word, bytes) in all.iter().zip(bytes.as_chunks::<8>().0) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
    all
}

/// A copy of a store, whosever it is, while its session may go on. The file is opened to be read only, and
/// not locked.
///
/// # Errors
/// The file cannot be read or is no store.
pub fn look_at(path: &Path) -> Result<LastingStore<Box<[AtomicU64]>>, Error> {
    let cannot = |e: std::io::Error| Error::system(format!("cannot read {}: {e}", path.display()));
    let file = File::open(path).map_err(cannot)?;
    let (head, size) = head_of(&file).map_err(cannot)?;
    let size = match size {
        Err(StoreError::Earlier) => {
            return look_at_earlier(&fs::read(path).map_err(cannot)?).map_err(|why| refused(path, why));
        }
        size => size.map_err(|why| refused(path, why))?,
    };
    let mut bytes = read_up_to(&file, size.bytes).map_err(cannot)?;
    bytes[..head.len()].copy_from_slice(&head);
    let (later, _) = head_of(&file).map_err(cannot)?;
    let later = words_of(&later, later.len() / 8);
    let words = words_of(&bytes, size.bytes / 8);
    LastingStore::inspect(words, Some(&later)).map_err(|why| refused(path, why))
}

/// What a store of the earlier format would be converted to.
fn look_at_earlier(bytes: &[u8]) -> Result<LastingStore<Box<[AtomicU64]>>, StoreError> {
    let earlier = EarlierStore::read(bytes, None)?;
    let mut store = LastingStore::begin(words_of(&[], store_bytes(bytes.len()) / 8), b"")?;
    for (seq, message) in &earlier.messages {
        // There is room for as many.
        let _ = store.append(*seq, message);
    }
    store.set_next_out(earlier.next_out);
    store.set_next_in(earlier.next_in);
    let words = store
        .memory()
        .iter()
        .map(|word| AtomicU64::new(word.load(Ordering::Relaxed)));
    LastingStore::inspect(words.collect(), None)
}

/// Sets the numbers of a session that is not running: the next one that it sends, the next one that it
/// expects. A store that is not there is made, when both are given. What is damaged in it is returned in
/// lines.
///
/// # Errors
/// The session is kept in memory only, its store cannot be opened or is in use, or what was set cannot be
/// brought to the disk.
pub fn set_numbers(
    setup: &Setup,
    next_out: Option<u64>,
    next_in: Option<u64>,
    observer: &Arc<dyn Observer>,
) -> Result<Vec<String>, Error> {
    let Some(file) = &setup.store else {
        return Err(Error::config(format!("{}: in memory only", identity(setup))));
    };
    let are_both = next_out.is_some() && next_in.is_some();
    if !are_both && !file.path.exists() {
        return Err(Error::config(format!(
            "{}: {} is not there yet; give --next-out and --next-in to make it with both",
            identity(setup),
            file.path.display()
        )));
    }
    let mut store = open_file(file, &identity(setup), observer)?;
    let lines = damage(&store);
    if let Some(seq) = next_out {
        store.set_next_out(seq);
    }
    if let Some(seq) = next_in {
        store.set_next_in(seq);
    }
    let synced = store.memory().words.sync();
    synced.map_err(|e| {
        Error::system(format!(
            "{} could not be brought to the disk: {e}",
            file.path.display()
        ))
    })?;
    Ok(lines)
}
