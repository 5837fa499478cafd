//! The folder of a recording: files, and behind them a thread that brings them to the disk, compresses them
//! and keeps the index.
//!
//! `PREFIX-20260105T143000-000001.pcapng` is being written, or was when its recorder was killed. With
//! compression it becomes `….pcapng.zst`: made beside it, whole or not at all, before the plain one goes. The
//! index, `PREFIX.index.jsonl`, has a line for every file that is done, in the order in which they were done.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde::{Deserialize, Serialize};
use tickwire_console::failure::Failure;
use tickwire_market::Nanos;
use tickwire_runtime::capture::{CaptureReader, udp};
use tickwire_runtime::files::{self, Pending, Sharing};

use crate::Plan;
use crate::write::{Disk, FileSummary, GroupInFile};

/// Files that wait for the thread; the writer waits when there are more.
const WAITING: usize = 1 << 12;
/// Bytes that are compressed together: a frame of zstd, so that a reader may begin at any of them.
const FRAME_BYTES: usize = 1 << 20;
const ENDING: &str = ".pcapng";
const COMPRESSED: &str = ".zst";

/// A line of the index.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IndexLine {
    /// The file's name in the folder.
    pub file: String,
    /// First and last packet, nanoseconds since 1970.
    pub first_ns: u64,
    /// See `first_ns`.
    pub last_ns: u64,
    /// The same for people.
    pub first: String,
    /// See `first`.
    pub last: String,
    /// Packets of all groups.
    pub packets: u64,
    /// Bytes of the capture.
    pub bytes: u64,
    /// Bytes of the file, which may be compressed.
    pub stored_bytes: u64,
    /// Whether its recorder finished it; one that was killed did not, and what the kernel had by then is not
    /// in it.
    pub whole: bool,
    /// By group.
    pub groups: Vec<IndexGroup>,
}

/// Of one group in a line of the index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IndexGroup {
    /// Group and port.
    pub group: String,
    /// Packets.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Packets that were lost; `null` of a file that was not finished: its losses are at its packets.
    pub lost: Option<u64>,
}

struct Done {
    file: File,
    name: String,
    summary: FileSummary,
}

/// A folder for files of one recording. See the module's description.
pub struct Folder {
    folder: PathBuf,
    prefix: String,
    next: u64,
    done: Option<SyncSender<Done>>,
    finisher: Option<JoinHandle<Vec<String>>>,
    /// Holds the folder until this goes.
    _lock: File,
}

impl Folder {
    /// Opens a folder, made if it is not there (0700), and takes it for this recorder. Files of an earlier
    /// one that was killed are put into the index, and compressed with `compresses`, by the thread.
    ///
    /// # Errors
    /// It is another user's, others may write to it, or another recorder has it; what the system says.
    pub fn open(path: &Path, prefix: &str, compresses: bool, plan: &Plan) -> Result<Folder, Failure> {
        let own = files::Folder::own(path, Sharing::nobody()).map_err(|e| Failure::system(e.to_string()))?;
        let cannot = |e: io::Error| Failure::system(format!("cannot use {}: {e}", path.display()));
        let lock = own
            .lock(&format!(".{prefix}.lock"))
            .map_err(cannot)?
            .map_err(|_| {
                Failure::config(format!(
                    "another recorder writes {prefix}-* to {}; give another --out or --name",
                    path.display()
                ))
            })?;
        let finisher = Finisher {
            folder: path.to_path_buf(),
            prefix: prefix.to_owned(),
            compresses,
            groups: plan
                .groups
                .iter()
                .map(|group| group.address.to_string())
                .collect(),
            waiting: Vec::new(),
            said: Vec::new(),
        };
        let (next, left) = finisher.look().map_err(cannot)?;
        let (done, comes) = sync_channel(WAITING);
        let thread = tickwire_runtime::affinity::beside("record-finish", move || finisher.run(left, &comes))
            .map_err(cannot)?;
        Ok(Folder {
            folder: path.to_path_buf(),
            prefix: prefix.to_owned(),
            next,
            done: Some(done),
            finisher: Some(thread),
            _lock: lock,
        })
    }

    /// Waits until every file is brought to the disk, compressed and in the index; what could not be done.
    pub fn finish(mut self) -> Vec<String> {
        self.done = None;
        let ended = self.finisher.take().map(JoinHandle::join);
        match ended {
            Some(Ok(said)) => said,
            Some(Err(_)) => vec!["the thread that finishes files has ended early".to_owned()],
            None => Vec::new(),
        }
    }
}

/// A time as part of a file's name: 20260105T143000, UTC.
fn stamp(time: Nanos) -> String {
    timestamp(time).strftime("%Y%m%dT%H%M%S").to_string()
}

fn timestamp(time: Nanos) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(i128::from(time.0)).unwrap_or_default()
}

/// A file that is being written, with its name.
#[derive(Debug)]
pub struct Writing {
    file: File,
    name: String,
}

impl Disk for Folder {
    type File = Writing;

    fn create(&mut self, first: Nanos) -> io::Result<Writing> {
        loop {
            let name = format!("{}-{}-{:06}{ENDING}", self.prefix, stamp(first), self.next);
            match files::create_new(&self.folder.join(&name)) {
                Ok(file) => {
                    self.next += 1;
                    return Ok(Writing { file, name });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => self.next += 1,
                Err(e) => return Err(e),
            }
        }
    }

    fn write(&mut self, writing: &mut Writing, bytes: &[u8], at: u64) -> io::Result<()> {
        writing.file.write_all_at(bytes, at)
    }

    fn finished(&mut self, writing: Writing, summary: FileSummary) {
        if let Some(done) = &self.done {
            // It fails when the thread is gone, which `finish` says.
            let _ = done.send(Done {
                file: writing.file,
                name: writing.name,
                summary,
            });
        }
    }
}

/// Finishes files, on a thread of its own.
struct Finisher {
    folder: PathBuf,
    prefix: String,
    compresses: bool,
    groups: Vec<String>,
    /// Lines that could not be added to the index yet.
    waiting: Vec<String>,
    /// What could not be done.
    said: Vec<String>,
}

impl Finisher {
    /// The next file's number, and files of earlier recorders that are in no index.
    fn look(&self) -> io::Result<(u64, Vec<String>)> {
        let listed = match fs::read_to_string(self.index()) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(e),
        };
        let lines = listed
            .lines()
            .filter_map(|line| serde_json::from_str::<IndexLine>(line).ok());
        let listed: BTreeSet<String> = lines.map(|line| plain(&line.file).to_owned()).collect();
        let (mut next, mut left) = (1, BTreeSet::new());
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str().map(plain) else {
                continue;
            };
            let number = name
                .strip_prefix(&self.prefix)
                .and_then(|rest| rest.strip_prefix('-'))
                .and_then(|rest| rest.strip_suffix(ENDING))
                .and_then(|rest| rest.split_once('-'))
                .and_then(|(_, number)| number.parse::<u64>().ok());
            let Some(number) = number else { continue };
            next = next.max(number + 1);
            if !listed.contains(name) {
                left.insert(name.to_owned());
            }
        }
        Ok((next, left.into_iter().collect()))
    }

    fn index(&self) -> PathBuf {
        self.folder.join(format!("{}.index.jsonl", self.prefix))
    }

    fn run(mut self, left: Vec<String>, comes: &Receiver<Done>) -> Vec<String> {
        for name in left {
            match self.adopt(&name) {
                Ok(line) => self.list(&line),
                Err(e) => self.complain(format!("cannot read {name}, which a recorder left here: {e}")),
            }
        }
        while let Ok(done) = comes.recv() {
            let name = done.name.clone();
            match self.done(done) {
                Ok(line) => self.list(&line),
                Err(e) => self.complain(format!(
                    "cannot finish {name}: {e}; it is there, and not in the index"
                )),
            }
        }
        if !self.waiting.is_empty() {
            let count = self.waiting.len();
            self.complain(format!(
                "{count} files are not in the index; the next recorder here adds them"
            ));
        }
        self.said
    }

    fn complain(&mut self, text: String) {
        tickwire_console::warn(format_args!("{text}"));
        self.said.push(text);
    }

    fn done(&mut self, done: Done) -> io::Result<IndexLine> {
        done.file.sync_all()?;
        drop(done.file);
        let groups = self.groups.iter().zip(&done.summary.groups);
        let groups = groups
            .map(|(name, group)| index_group(name, *group, true))
            .collect();
        let line = line(&done.name, &done.summary, true, groups);
        Ok(self.compress(line))
    }

    /// A file of a recorder that was killed: what is in it.
    fn adopt(&mut self, name: &str) -> Result<IndexLine, Box<dyn std::error::Error>> {
        let path = self.folder.join(name);
        let compressed = self.folder.join(format!("{name}{COMPRESSED}"));
        let is_compressed = compressed.exists();
        let mut reader = CaptureReader::open(if is_compressed { &compressed } else { &path })?;
        let mut summary = FileSummary::default();
        let mut groups: Vec<(String, GroupInFile)> = Vec::new();
        // Damage at its end is what a killed recorder leaves.
        while let Ok(Some(packet)) = reader.next_packet() {
            let time = packet.time.unwrap_or_default();
            if summary.first == Nanos::ZERO {
                summary.first = time;
            }
            summary.last = Nanos(summary.last.0.max(time.0));
            let Ok(datagram) = udp(packet.link, packet.bytes) else {
                continue;
            };
            let name = datagram.destination.to_string();
            let at = groups
                .iter()
                .position(|(known, _)| *known == name)
                .unwrap_or_else(|| {
                    groups.push((name, GroupInFile::default()));
                    groups.len() - 1
                });
            groups[at].1.packets += 1;
            groups[at].1.bytes += datagram.payload.len() as u64;
        }
        summary.bytes = reader.offset();
        summary.groups = groups.iter().map(|(_, group)| *group).collect();
        let groups = groups
            .iter()
            .map(|(name, group)| index_group(name, *group, false))
            .collect();
        let mut line = line(name, &summary, false, groups);
        if is_compressed {
            // It was done but for its line, and perhaps for taking the plain one away.
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e.into()),
                _ => {}
            }
            line.stored_bytes = fs::metadata(&compressed)?.len();
            line.file.push_str(COMPRESSED);
            return Ok(line);
        }
        Ok(self.compress(line))
    }

    /// Compresses a file if that is wanted; one that cannot be stays as it is.
    fn compress(&mut self, mut line: IndexLine) -> IndexLine {
        if !self.compresses {
            return line;
        }
        let plain = self.folder.join(&line.file);
        let name = format!("{}{COMPRESSED}", line.file);
        match compress(&plain, &self.folder.join(&name)) {
            Ok(bytes) => {
                line.file = name;
                line.stored_bytes = bytes;
            }
            Err(e) => self.complain(format!("cannot compress {}: {e}; it stays as it is", line.file)),
        }
        line
    }

    /// Adds a line to the index, with those that could not be added before.
    fn list(&mut self, line: &IndexLine) {
        let Ok(text) = serde_json::to_string(line) else {
            return;
        };
        self.waiting.push(text);
        let all = self.waiting.join("\n") + "\n";
        let added = files::append(&self.index()).and_then(|mut index| {
            let before = index.metadata()?.len();
            index
                .write_all(all.as_bytes())
                .and_then(|()| index.sync_data())
                .inspect_err(|_| {
                    // Half a line would be read as none, and the next one with it.
                    let _ = index.set_len(before);
                })
        });
        match added {
            Ok(()) => self.waiting.clear(),
            Err(e) => tickwire_console::warn(format_args!("cannot add to {}: {e}", self.index().display())),
        }
    }
}

fn plain(name: &str) -> &str {
    name.strip_suffix(COMPRESSED).unwrap_or(name)
}

fn index_group(name: &str, group: GroupInFile, is_whole: bool) -> IndexGroup {
    IndexGroup {
        group: name.to_owned(),
        packets: group.packets,
        bytes: group.bytes,
        lost: is_whole.then_some(group.lost),
    }
}

fn line(name: &str, summary: &FileSummary, whole: bool, groups: Vec<IndexGroup>) -> IndexLine {
    IndexLine {
        file: name.to_owned(),
        first_ns: summary.first.0,
        last_ns: summary.last.0,
        first: timestamp(summary.first).to_string(),
        last: timestamp(summary.last).to_string(),
        packets: summary.packets(),
        bytes: summary.bytes,
        stored_bytes: summary.bytes,
        whole,
        groups,
    }
}

/// Compresses a file into another and removes it; the bytes of the other.
fn compress(from: &Path, to: &Path) -> io::Result<u64> {
    let plain = File::open(from)?;
    let pending = Pending::create(to)?;
    let mut out = BufWriter::new(pending.file()?);
    let (mut part, mut bytes) = (Vec::with_capacity(FRAME_BYTES), 0);
    loop {
        part.clear();
        if (&plain).take(FRAME_BYTES as u64).read_to_end(&mut part)? == 0 {
            break;
        }
        // From memory to memory: neither end can fail.
        let frame = compress_to_vec(&part[..], CompressionLevel::Fastest);
        bytes += frame.len() as u64;
        out.write_all(&frame)?;
    }
    out.flush()?;
    drop(out);
    pending.finish()?;
    fs::remove_file(from)?;
    Ok(bytes)
}
