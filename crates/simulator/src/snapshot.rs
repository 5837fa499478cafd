//! The state of a market in a file beside its journal, so that a restart replays only what came after it.
//!
//! ```text
//!  file:  "TWSNAP01"  u64 sum of the rest  u64 sum of version and configuration  u64 number  u64 place in the journal
//!         u64 sum of the journal's last 4,096 bytes before that place  u64 time of the last input  u64 state hash  u64 inputs before it
//!         state (see tickwire_persist)      (little-endian)
//! ```
//! Two files take turns, so that the one before is there while the next is written, and when that one is
//! damaged. A snapshot is taken in a turn of the exchange's loop in which nothing waits to be sent: its state
//! is copied into memory on that thread, and written by another one into a file beside its place, which is
//! then moved there. The journal keeps everything; a snapshot is never needed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use tickwire_console::warn;
use tickwire_exchange::Market;
use tickwire_market::Nanos;
use tickwire_persist::{Persist, PersistValue, StateReader};
use tickwire_runtime::files;

use crate::history::sum;

const MAGIC: &[u8; 8] = b"TWSNAP01";
/// Bytes before the state.
const HEAD: usize = 72;
/// Bytes of a journal before a place by which it is known: records have times in them.
const TAIL: u64 = 4096;

/// A snapshot that was found whole.
pub struct Snapshot {
    path: PathBuf,
    bytes: Vec<u8>,
    number: u64,
    /// Where in the journal the first record behind it begins.
    pub place: u64,
    /// What the journal is known by.
    pub tail: u64,
    /// The time of the last input in it.
    pub last: Nanos,
    hash: u64,
    /// Inputs before it.
    pub inputs: u64,
}

/// What is told of a market at a place of its journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalPosition {
    /// Where in the journal the next record begins.
    pub place: u64,
    /// What the journal is known by, see [`tail_of`].
    pub tail: u64,
    /// The time of the last input.
    pub last: Nanos,
    /// Inputs before it.
    pub inputs: u64,
}

/// What a journal is known by: the sum of its last bytes before a place.
///
/// # Errors
/// There are not so many; what the system says.
pub fn tail_of(journal: &File, place: u64) -> io::Result<u64> {
    let length = place.min(TAIL);
    let mut bytes = vec![0; length as usize];
    journal.read_exact_at(&mut bytes, place - length)?;
    Ok(sum(&bytes))
}

fn path_of(journal: &Path, number: u64) -> PathBuf {
    let mut path = journal.as_os_str().to_owned();
    path.push(format!(".snapshot-{}", number % 2));
    PathBuf::from(path)
}

/// The program, with the commit it was built from where that is known, and the configuration whose state a
/// snapshot is: another one's has other fields.
fn identity(configuration: &str) -> u64 {
    sum(format!("{}\n{configuration}", tickwire_console::version().text).as_bytes())
}

/// A snapshot's file.
fn bytes_of(configuration: &str, number: u64, at: JournalPosition, market: &Market, room: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(room);
    bytes.extend_from_slice(MAGIC);
    0_u64.save(&mut bytes);
    (identity(configuration), number).save(&mut bytes);
    (at.place, at.tail, at.last).save(&mut bytes);
    (market.state_hash(), at.inputs).save(&mut bytes);
    debug_assert_eq!(bytes.len(), HEAD);
    market.save(&mut bytes);
    let sum = sum(&bytes[16..]);
    bytes[8..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

impl Snapshot {
    /// Reads one; `Ok(None)` if there is none.
    fn read(path: PathBuf, configuration: &str) -> Result<Option<Snapshot>, String> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(format!("it cannot be read: {e}")),
        };
        let head = bytes
            .strip_prefix(MAGIC)
            .ok_or("it is no snapshot, or cut short")?;
        let mut reader = StateReader::new(head);
        let mut word = || u64::read(&mut reader).map_err(|_| "it is cut short");
        let (expected, of) = (word()?, word()?);
        let (number, place, tail) = (word()?, word()?, word()?);
        let (last, hash, inputs) = (word()?, word()?, word()?);
        if sum(&bytes[16..]) != expected {
            return Err("it is damaged".into());
        }
        if of != identity(configuration) {
            return Err("another version or configuration wrote it".into());
        }
        Ok(Some(Snapshot {
            path,
            bytes,
            number,
            place,
            tail,
            last: Nanos(last),
            hash,
            inputs,
        }))
    }

    /// Those of a journal that are whole, newest first; what is wrong with others is said.
    pub fn all(journal: &Path, configuration: &str) -> Vec<Snapshot> {
        let mut all = Vec::new();
        for number in 0..2 {
            let path = path_of(journal, number);
            match Snapshot::read(path.clone(), configuration) {
                Ok(found) => all.extend(found),
                Err(why) => warn(format_args!(
                    "snapshot {}: {why}; it is not used: an older one is, or the whole journal is replayed",
                    path.display()
                )),
            }
        }
        all.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.number));
        all
    }

    /// Snapshots of a journal are numbered as they are taken.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings a market that has done nothing yet to where it stood; whether it is the same. If not, the
    /// market is of no use.
    pub fn load(&self, market: &mut Market) -> bool {
        let mut reader = StateReader::new(&self.bytes[HEAD..]);
        let is_loaded = market.load(&mut reader).is_ok() && reader.is_empty();
        is_loaded && market.state_hash() == self.hash
    }
}

/// Writes snapshots, one at a time, on a thread of its own.
pub struct SnapshotWriter {
    journal: PathBuf,
    configuration: String,
    number: u64,
    writing: Option<JoinHandle<io::Result<()>>>,
    /// Snapshots that could not be written.
    failed: u64,
    /// Memory for the next one.
    room: usize,
}

impl SnapshotWriter {
    /// Of a journal; the next one gets the number after `before`, the newest that is there.
    pub fn new(journal: &Path, configuration: &str, before: Option<u64>) -> SnapshotWriter {
        SnapshotWriter {
            journal: journal.to_path_buf(),
            configuration: configuration.to_string(),
            number: before.map_or(0, |number| number + 1),
            writing: None,
            failed: 0,
            room: 0,
        }
    }

    /// Whether the one before is written, or could not be, which is said.
    pub fn is_ready(&mut self) -> bool {
        if self
            .writing
            .as_ref()
            .is_some_and(|writing| !writing.is_finished())
        {
            return false;
        }
        let written = self.writing.take().map(JoinHandle::join);
        if let Some(Ok(Err(e))) = written {
            self.failed += 1;
            warn(format_args!(
                "snapshot {} could not be written: {e}; the exchange goes on, a restart replays more of the journal; it is tried again",
                path_of(&self.journal, self.number.wrapping_sub(1)).display()
            ));
        }
        true
    }

    /// Takes one, after [`SnapshotWriter::is_ready`].
    pub fn take(&mut self, at: JournalPosition, market: &Market) {
        let bytes = bytes_of(&self.configuration, self.number, at, market, self.room);
        self.room = bytes.len() + bytes.len() / 8;
        let path = path_of(&self.journal, self.number);
        self.number += 1;
        let write = move || files::replace(&path, bytes, false);
        match tickwire_runtime::affinity::beside("snapshot", write) {
            Ok(writing) => self.writing = Some(writing),
            Err(e) => {
                self.failed += 1;
                warn(format_args!(
                    "no thread to write a snapshot: {e}; it is tried again"
                ));
            }
        }
    }

    /// Snapshots that could not be written.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        // The file in the making is worth waiting for: the next start is quick.
        if let Some(writing) = self.writing.take() {
            let _ = writing.join();
        }
    }
}

#[cfg(test)]
mod tests;
