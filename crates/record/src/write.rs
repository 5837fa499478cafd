//! Chunks into files: order of time, rotation, and what happens when the disk does not take them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tickwire_market::Nanos;
use tickwire_runtime::capture::blocks;
use tickwire_runtime::clock::monotonic;
use tickwire_runtime::trouble::BackOff;

use crate::Plan;
use crate::receive::{Chunk, Frame, Queue, Shared, give_back};

/// How long the writer sleeps when there is nothing to write.
const IDLE: Duration = Duration::from_millis(5);
/// A file whose time is over waits so long for packets of its time that are on their way.
const LATE_NS: u64 = Nanos::SECOND;
/// Waits between attempts to write.
const RETRY: BackOff = BackOff {
    first_ns: 10 * Nanos::MILLI,
    most_ns: 500 * Nanos::MILLI,
    gives_up: false,
};

/// What a file has of one group.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GroupInFile {
    /// Packets.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Packets that the kernel dropped between those that it has and the one before them.
    pub lost: u64,
}

/// What a file has.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FileSummary {
    /// When its first packet was received.
    pub first: Nanos,
    /// When its last one was.
    pub last: Nanos,
    /// Bytes, as they were written.
    pub bytes: u64,
    /// By group, in the order of [`Plan::groups`].
    pub groups: Vec<GroupInFile>,
}

impl FileSummary {
    /// Packets of all groups.
    pub fn packets(&self) -> u64 {
        self.groups.iter().map(|group| group.packets).sum()
    }
}

/// Where files are put: [`crate::Folder`], or what else a program has. A call that fails is made again with
/// the same arguments until it works, or the recording ends.
pub trait Disk: Send {
    /// An open file.
    type File: Send;

    /// Begins a file, whose first packet was received then.
    ///
    /// # Errors
    /// What the system says.
    fn create(&mut self, first: Nanos) -> io::Result<Self::File>;

    /// Writes bytes at a place, which is where the last ones that were written end.
    ///
    /// # Errors
    /// What the system says. Some of the bytes may have been written.
    fn write(&mut self, file: &mut Self::File, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Nothing more is written to a file. It must not wait: syncing and compressing are for another thread.
    fn finished(&mut self, file: Self::File, summary: FileSummary);
}

/// What the writer tells the thread that watches.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// The disk does not take what there is at the moment.
    pub(crate) is_stuck: AtomicBool,
    /// By now it is not tried any more.
    pub(crate) gives_up: AtomicBool,
}

struct Open<F> {
    file: F,
    at: u64,
    /// From then on packets belong into the next one.
    until: u64,
    /// When it is done although no packet came to say so, by a clock that is never set.
    over: Nanos,
    summary: FileSummary,
}

/// The writing end. See the module's description.
pub(crate) struct Writer<D: Disk> {
    plan: Arc<Plan>,
    disk: D,
    progress: Arc<Progress>,
    head: Vec<u8>,
    scratch: Vec<u8>,
    open: Option<Open<D::File>>,
}

impl<D: Disk> Writer<D> {
    pub(crate) fn new(plan: Arc<Plan>, disk: D, progress: Arc<Progress>) -> Writer<D> {
        let mut head = Vec::new();
        let application = format!("tickwire record {}", env!("CARGO_PKG_VERSION"));
        let names: Vec<String> = plan.groups.iter().map(|group| group.label()).collect();
        blocks::begin(&mut head, &application, names.iter().map(String::as_str));
        Writer {
            plan,
            disk,
            progress,
            head,
            scratch: Vec::new(),
            open: None,
        }
    }

    /// Writes what comes until nobody sends any more; the disk is given back.
    pub(crate) fn run(mut self, mut queue: Queue, shared: &Shared) -> D {
        loop {
            match queue.filled.pop() {
                Some(mut chunk) => {
                    chunk.sort(&mut self.scratch);
                    self.write(&chunk, shared);
                    give_back(&mut queue, chunk);
                }
                // Whatever was sent before the other end went is waiting then.
                None if queue.filled.is_abandoned() => {
                    if queue.filled.waiting() == 0 {
                        break;
                    }
                }
                None => {
                    let is_over = |open: &Open<D::File>| monotonic() >= open.over;
                    if self.open.as_ref().is_some_and(is_over) {
                        self.close();
                    }
                    std::thread::sleep(IDLE);
                }
            }
        }
        self.close();
        self.disk
    }

    /// A chunk, cut where a file ends.
    fn write(&mut self, chunk: &Chunk, shared: &Shared) {
        let mut frames = &chunk.frames[..];
        while let Some(first) = frames.first() {
            let is_full = |open: &Open<D::File>| {
                let all: u64 = frames.iter().map(|frame| u64::from(frame.len)).sum();
                first.time >= open.until
                    || (self.plan.rotate_bytes > 0 && open.at + all > self.plan.rotate_bytes)
            };
            if self.open.as_ref().is_some_and(is_full) {
                self.close();
            }
            if self.open.is_none() && !self.begin(first.time) {
                return self.give_up(frames, shared);
            }
            let until = self.open.as_ref().map_or(u64::MAX, |open| open.until);
            let fit = frames.partition_point(|frame| frame.time < until).max(1);
            let (now, later) = frames.split_at(fit);
            let from = first.from as usize;
            let to = now.last().map_or(from, |last| (last.from + last.len) as usize);
            if !self.put(&chunk.bytes()[from..to]) {
                return self.give_up(frames, shared);
            }
            if let Some(open) = &mut self.open {
                note(&mut open.summary, now);
            }
            frames = later;
        }
    }

    /// Packets that cannot be written any more.
    #[cold]
    fn give_up(&self, frames: &[Frame], shared: &Shared) {
        for frame in frames {
            shared.groups[frame.group as usize]
                .unwritten
                .fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins a file; whether it worked before the end.
    fn begin(&mut self, first: u64) -> bool {
        let span = self.plan.rotate_ns;
        // At multiples of the span, so that files of an hour begin with the hour.
        let until = match span {
            0 => u64::MAX,
            span => (first / span + 1).saturating_mul(span),
        };
        let Some(file) = self.again("begin a file", |writer| writer.disk.create(Nanos(first))) else {
            return false;
        };
        self.open = Some(Open {
            file,
            at: 0,
            until,
            over: monotonic().after((until - first).saturating_add(LATE_NS)),
            summary: FileSummary {
                groups: vec![GroupInFile::default(); self.plan.groups.len()],
                ..FileSummary::default()
            },
        });
        let head = std::mem::take(&mut self.head);
        let is_written = self.put(&head);
        self.head = head;
        is_written
    }

    /// Bytes at the end of the open file; whether it worked before the end.
    fn put(&mut self, bytes: &[u8]) -> bool {
        let Some(mut open) = self.open.take() else {
            return false;
        };
        let written = self.again("write", |writer| {
            writer.disk.write(&mut open.file, bytes, open.at)
        });
        if written.is_some() {
            open.at += bytes.len() as u64;
            open.summary.bytes = open.at;
            self.progress
                .bytes
                .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        self.open = Some(open);
        written.is_some()
    }

    /// Makes a call until it works, or the end.
    fn again<T>(&mut self, deed: &str, mut call: impl FnMut(&mut Self) -> io::Result<T>) -> Option<T> {
        let mut failures = 0;
        loop {
            match call(self) {
                Ok(done) => {
                    if failures > 0 {
                        self.progress.is_stuck.store(false, Ordering::Relaxed);
                        tickwire_console::warn(format_args!(
                            "the disk takes the recording again, after {failures} attempts"
                        ));
                    }
                    return Some(done);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if failures == 0 {
                        self.progress.is_stuck.store(true, Ordering::Relaxed);
                        tickwire_console::warn(format_args!(
                            "cannot {deed}: {error}; it is tried again until it works. What comes waits in {} MiB of memory, then in the \
                             kernel's buffers, then it is lost and counted: make room",
                            self.plan.queue_bytes >> 20
                        ));
                    }
                    failures += 1;
                    if self.progress.gives_up.load(Ordering::Relaxed) {
                        return None;
                    }
                    std::thread::sleep(Duration::from_nanos(RETRY.after(failures)));
                }
            }
        }
    }

    /// The open file is done.
    fn close(&mut self) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let mut counts = Vec::new();
        for (at, group) in open.summary.groups.iter().enumerate() {
            blocks::statistics(
                &mut counts,
                at as u32,
                open.summary.last,
                group.packets,
                group.lost,
            );
        }
        // Without them the file is whole too.
        if self.disk.write(&mut open.file, &counts, open.at).is_ok() {
            open.summary.bytes += counts.len() as u64;
        }
        self.progress.files.fetch_add(1, Ordering::Relaxed);
        self.disk.finished(open.file, open.summary);
    }
}

fn note(summary: &mut FileSummary, frames: &[Frame]) {
    if summary.packets() == 0 {
        summary.first = frames.first().map_or(Nanos::ZERO, |frame| Nanos(frame.time));
    }
    for frame in frames {
        // At a border between two chunks the earliest and the latest may be of either.
        summary.first = Nanos(summary.first.0.min(frame.time));
        summary.last = Nanos(summary.last.0.max(frame.time));
        let group = &mut summary.groups[frame.group as usize];
        group.packets += 1;
        group.bytes += u64::from(frame.payload);
        group.lost += u64::from(frame.lost);
    }
}
