//! What sessions sent and received, and what happened to them, written to files by a thread of its own.
//!
//! The loop of sessions copies bytes into a bounded ring and goes on; the thread puts messages together,
//! masks passwords and writes. When the ring is full the piece is dropped and counted: a session never waits
//! for a disk. Files and lines are as QuickFIX writes them: `BEGINSTRING-SENDER-TARGET.messages.current.log`,
//! a time, ` : ` and the message.
//!
//! A file that cannot be written, because its disk is full, is tried again; up to 1 MiB of whole lines waits
//! for it, what comes then is lost and counted. When there is room again, a line says how many were lost,
//! from when to when and why.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tickwire_fix::{Precision, SessionId, Stamp};
use tickwire_market::Nanos;
use tickwire_runtime::files;
use tickwire_runtime::spsc::{self, Consumer, Producer};

use crate::engine::Way;
use crate::error::Error;
use crate::message::{self, Framer};
use crate::observer::Observer;
use crate::settings::Setup;

/// Pieces in the ring: 4 MiB.
const PIECES: usize = 1 << 13;
const PIECE_BYTES: usize = 488;
/// How long the thread sleeps when there is nothing to write.
const IDLE: Duration = Duration::from_millis(2);

/// Bytes that wait for a file that cannot be written.
const WAITING_MAX: usize = 1 << 20;
/// How often a file that could not be written is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// What a piece is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bytes(Way),
    /// A line of the event log.
    Event,
    /// The connection is gone: what is not whole will never be.
    Closed,
}

/// A piece of a session's bytes.
#[derive(Clone, Copy)]
struct Piece {
    at: Nanos,
    session: u32,
    kind: Kind,
    len: u16,
    bytes: [u8; PIECE_BYTES],
}

/// The loop's end. Ends the thread when it goes, after everything was written.
pub(crate) struct MessageLog {
    producer: Option<Producer<Piece>>,
    /// Whether a session is logged.
    wanted: Vec<bool>,
    dropped: Arc<Dropped>,
    writer: Option<JoinHandle<()>>,
    /// To the thread: the files of a session that was not there when it began.
    added: mpsc::Sender<Added>,
    observer: Arc<dyn Observer>,
}

/// Pieces for which the ring had no room.
#[derive(Default)]
struct Dropped {
    count: AtomicU64,
    /// When the last one came.
    last: AtomicU64,
}

/// Files of a session that comes later.
struct Added {
    session: usize,
    files: Option<Files>,
}

/// The files of one session.
struct Files {
    messages: Option<LogFile>,
    events: Option<LogFile>,
    /// Application messages only.
    copy: Option<LogFile>,
    framers: [Framer; 2],
}

impl MessageLog {
    /// Opens the files of sessions with a FileLogPath, in the order of their numbers; `None` if none has one.
    /// Those of templates' sessions follow by [`MessageLog::add`].
    pub(crate) fn open(
        setups: &[Setup],
        templates: &[Setup],
        observer: &Arc<dyn Observer>,
    ) -> Result<Option<MessageLog>, Error> {
        let files = setups.iter().map(|s| Files::open(s, observer).transpose());
        let files: Vec<Option<Files>> = files.map(Option::transpose).collect::<Result<_, _>>()?;
        if files.iter().all(Option::is_none) && !templates.iter().any(Files::are_wanted) {
            return Ok(None);
        }
        let (added, additions) = mpsc::channel();
        let wanted = files.iter().map(Option::is_some).collect();
        let (producer, consumer) = spsc::ring(PIECES);
        let dropped = Arc::new(Dropped::default());
        let writer = Writer {
            consumer,
            observer: observer.clone(),
            files,
            additions,
            dropped: dropped.clone(),
            said: 0,
            last: Nanos::ZERO,
            stamp: Stamp::new(Precision::Nanos),
        };
        let writer = tickwire_runtime::affinity::beside("fix-log", move || writer.run())
            .map_err(|e| Error::system(format!("no thread to write the message log by: {e}")))?;
        Ok(Some(MessageLog {
            producer: Some(producer),
            wanted,
            dropped,
            writer: Some(writer),
            added,
            observer: observer.clone(),
        }))
    }

    /// A session that came later, or in the place of another.
    pub(crate) fn add(&mut self, id: SessionId, setup: &Setup) -> Result<(), Error> {
        let files = Files::open(setup, &self.observer)?;
        if self.wanted.len() <= id.0 {
            self.wanted.resize(id.0 + 1, false);
        }
        self.wanted[id.0] = files.is_some();
        let session = id.0;
        // A thread that has ended has said why.
        let _ = self.added.send(Added { session, files });
        Ok(())
    }

    /// Bytes of a session. Never waits.
    #[inline]
    pub(crate) fn bytes(&mut self, at: Nanos, id: SessionId, way: Way, bytes: &[u8]) {
        self.put(at, id, Kind::Bytes(way), bytes);
    }

    /// Something happened to a session.
    pub(crate) fn event(&mut self, at: Nanos, id: SessionId, text: &str) {
        self.put(at, id, Kind::Event, text.as_bytes());
    }

    /// A session has lost its connection.
    pub(crate) fn closed(&mut self, at: Nanos, id: SessionId) {
        self.put(at, id, Kind::Closed, b" ");
    }

    /// Pieces for which there was no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.count.load(Ordering::Relaxed)
    }

    fn put(&mut self, at: Nanos, id: SessionId, kind: Kind, bytes: &[u8]) {
        let Some(producer) = self.producer.as_mut().filter(|_| self.wanted[id.0]) else {
            return;
        };
        for part in bytes.chunks(PIECE_BYTES) {
            let mut piece = Piece {
                at,
                session: id.0 as u32,
                kind,
                len: part.len() as u16,
                bytes: [0; PIECE_BYTES],
            };
            piece.bytes[..part.len()].copy_from_slice(part);
            if producer.push(piece).is_err() {
                self.dropped.last.store(at.0, Ordering::Relaxed);
                self.dropped.count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for MessageLog {
    fn drop(&mut self) {
        self.producer = None;
        if let Some(writer) = self.writer.take() {
            // It has said what went wrong.
            let _ = writer.join();
        }
    }
}

impl Files {
    fn are_wanted(setup: &Setup) -> bool {
        setup.log.is_some() || setup.drop_copy.is_some()
    }

    fn open(setup: &Setup, observer: &Arc<dyn Observer>) -> Result<Option<Files>, Error> {
        if !Files::are_wanted(setup) {
            return Ok(None);
        }
        let open = |path: PathBuf| {
            let cannot = |e| Error::system(format!("cannot write {}: {e}", path.display()));
            if let Some(folder) = path.parent() {
                files::create_folders(folder).map_err(cannot)?;
            }
            open_append(&path, observer).map_err(cannot)
        };
        let in_folder = |kind: &str| {
            let path = |folder: &PathBuf| folder.join(format!("{}.{kind}.current.log", setup.name()));
            setup.log.as_ref().map(path).map(open).transpose()
        };
        Ok(Some(Files {
            messages: in_folder("messages")?,
            events: in_folder("event")?,
            copy: setup.drop_copy.clone().map(open).transpose()?,
            framers: Default::default(),
        }))
    }

    fn all(&mut self) -> impl Iterator<Item = &mut LogFile> {
        let all = [&mut self.messages, &mut self.events, &mut self.copy];
        all.into_iter().flatten()
    }
}

fn open_append(path: &Path, observer: &Arc<dyn Observer>) -> io::Result<LogFile> {
    Ok(LogFile::new(path, files::append(path)?, observer.clone()))
}

/// Lines that were not written.
struct Lost {
    count: u64,
    first: Nanos,
    last: Nanos,
}

/// A file that lines are added to, whole ones only.
struct LogFile<W = File> {
    path: PathBuf,
    to: W,
    /// Lines that are not written yet; the first may have been begun.
    waiting: Vec<u8>,
    observer: Arc<dyn Observer>,
    /// Since it could not be written: why, when it is tried again, what was lost.
    trouble: Option<(io::Error, Instant)>,
    lost: Option<Lost>,
}

impl<W: Write> LogFile<W> {
    fn new(path: &Path, to: W, observer: Arc<dyn Observer>) -> LogFile<W> {
        LogFile {
            path: path.to_owned(),
            to,
            waiting: Vec::new(),
            observer,
            trouble: None,
            lost: None,
        }
    }

    fn line(&mut self, at: Nanos, stamp: &mut Stamp, text: &[u8]) {
        let is_full = self.trouble.is_some() && self.waiting.len() >= WAITING_MAX;
        if is_full || self.lost.is_some() {
            let lost = self.lost.get_or_insert(Lost {
                count: 0,
                first: at,
                last: at,
            });
            lost.count += 1;
            lost.last = at;
            return;
        }
        for part in [stamp.format(at), b" : ", text, b"\n"] {
            self.waiting.extend_from_slice(part);
        }
        if self.trouble.is_none() && self.waiting.len() >= 1 << 16 {
            self.flush(stamp, false);
        }
    }

    /// Writes what waits, as far as there is room. A file in trouble is tried now and then, at once with
    /// `is_last`.
    fn flush(&mut self, stamp: &mut Stamp, is_last: bool) {
        if self
            .trouble
            .as_ref()
            .is_some_and(|(_, at)| !is_last && Instant::now() < *at)
        {
            return;
        }
        if let Err(e) = self.write() {
            if self.trouble.is_none() {
                self.observer.warn(format_args!(
                    "{} cannot be written: {e}; it is tried again until it can, and what is lost meanwhile is counted",
                    self.path.display()
                ));
            }
            self.trouble = Some((e, Instant::now() + RETRY));
            return;
        }
        let trouble = self.trouble.take();
        if let (Some((why, _)), Some(lost)) = (&trouble, self.lost.take()) {
            let (first, last) = (text_of(stamp, lost.first), text_of(stamp, lost.last));
            let said = format!(
                "{} lines were not written, from {first} to {last}: {why}",
                lost.count
            );
            self.line(lost.last, stamp, said.as_bytes());
            self.observer
                .warn(format_args!("{}: {said}", self.path.display()));
            return self.flush(stamp, is_last);
        }
        if trouble.is_some() {
            self.observer.warn(format_args!(
                "{} is written again, nothing was lost",
                self.path.display()
            ));
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let mut written = 0;
        let result = loop {
            match self.to.write(&self.waiting[written..]) {
                _ if written == self.waiting.len() => break Ok(()),
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => written += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
            }
        };
        self.waiting.drain(..written);
        result
    }

    /// What never found room.
    fn give_up(&mut self, stamp: &mut Stamp) {
        let of_lost = |lost: &Lost| lost.count;
        let waiting = self.waiting.iter().filter(|b| **b == b'\n').count() as u64;
        let count = waiting + self.lost.as_ref().map_or(0, of_lost);
        if let (Some((why, _)), true) = (&self.trouble, count > 0) {
            let since = self.lost.as_ref().map(|lost| text_of(stamp, lost.first));
            let since = since.map_or(String::new(), |since| format!(", some of them since {since}"));
            self.observer.warn(format_args!(
                "{}: {count} lines were never written{since}: {why}",
                self.path.display()
            ));
        }
    }
}

fn text_of(stamp: &mut Stamp, at: Nanos) -> String {
    String::from_utf8_lossy(stamp.format(at)).into_owned()
}

/// The thread's end.
struct Writer {
    consumer: Consumer<Piece>,
    observer: Arc<dyn Observer>,
    files: Vec<Option<Files>>,
    additions: mpsc::Receiver<Added>,
    dropped: Arc<Dropped>,
    /// Of these, so many have been told of.
    said: u64,
    /// When the last piece came that was written.
    last: Nanos,
    stamp: Stamp,
}

impl Writer {
    fn run(mut self) {
        loop {
            let is_last = self.consumer.is_abandoned();
            let mut wrote = false;
            let before = self.last;
            while let Some(piece) = self.consumer.pop() {
                wrote = true;
                // Files come before the first piece that is for them.
                self.add();
                self.write(&piece);
                self.last = piece.at;
            }
            self.say_dropped(before);
            for file in self.files.iter_mut().flatten().flat_map(Files::all) {
                file.flush(&mut self.stamp, is_last);
                if is_last {
                    file.give_up(&mut self.stamp);
                }
            }
            match is_last {
                true => return,
                false if !wrote => std::thread::sleep(IDLE),
                false => {}
            }
        }
    }

    fn add(&mut self) {
        while let Ok(Added { session, files }) = self.additions.try_recv() {
            if self.files.len() <= session {
                self.files.resize_with(session + 1, || None);
            }
            if let Some(mut before) = std::mem::replace(&mut self.files[session], files) {
                for file in before.all() {
                    file.flush(&mut self.stamp, true);
                    file.give_up(&mut self.stamp);
                }
            }
        }
    }

    fn write(&mut self, piece: &Piece) {
        let Some(Some(files)) = self.files.get_mut(piece.session as usize) else {
            return;
        };
        let stamp = &mut self.stamp;
        let bytes = &piece.bytes[..piece.len as usize];
        let mut line = |to: &mut Option<LogFile>, text: &[u8]| {
            if let Some(to) = to {
                to.line(piece.at, stamp, text);
            }
        };
        match piece.kind {
            Kind::Event => line(&mut files.events, bytes),
            Kind::Closed => files.framers.iter_mut().for_each(Framer::clear),
            Kind::Bytes(way) => {
                let (messages, copy) = (&mut files.messages, &mut files.copy);
                files.framers[way as usize].take(bytes, |m| {
                    let mut own = m.to_vec();
                    message::mask(&mut own);
                    line(messages, &own);
                    if copy.is_some() && message::is_application(m) {
                        line(copy, m);
                    }
                });
            }
        }
    }

    /// Says how many pieces found no room in the ring, and when: after `before`, until the last of them came.
    fn say_dropped(&mut self, before: Nanos) {
        let dropped = self.dropped.count.load(Ordering::Relaxed);
        if dropped == self.said {
            return;
        }
        let last = Nanos(self.dropped.last.load(Ordering::Relaxed));
        let text = format!(
            "{} pieces were not logged, from {} to {}: the disk is too slow",
            dropped - self.said,
            text_of(&mut self.stamp, before),
            text_of(&mut self.stamp, last)
        );
        self.said = dropped;
        self.observer.warn(format_args!("{text}"));
        let mut events = self.files.iter_mut().flatten().filter_map(|f| f.events.as_mut());
        if let Some(events) = events.next() {
            events.line(last, &mut self.stamp, text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Silent;
    use std::fs;

    #[test]
    fn a_full_ring_drops_and_counts_and_what_is_whole_is_written_masked() {
        let folder = std::env::temp_dir().join(format!("tickwire-msglog-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let observer: Arc<dyn Observer> = Arc::new(Silent);
        let files = Files {
            messages: open_append(&folder.join("m"), &observer).ok(),
            events: open_append(&folder.join("e"), &observer).ok(),
            copy: open_append(&folder.join("c"), &observer).ok(),
            framers: Default::default(),
        };
        let (added, additions) = mpsc::channel();
        let (producer, consumer) = spsc::ring(4);
        let dropped = Arc::new(Dropped::default());
        let mut log = MessageLog {
            producer: Some(producer),
            wanted: vec![true],
            dropped: dropped.clone(),
            writer: None,
            added,
            observer: observer.clone(),
        };
        let password = vec![
            (35, b"A".to_vec()),
            (554, b"hidden".to_vec()),
            (58, vec![b'x'; 700]),
        ];
        let message = tickwire_fix::naive::encode(&password);
        log.bytes(Nanos(0), SessionId(0), Way::In, &message);
        log.event(Nanos(1), SessionId(0), "logged on");
        log.bytes(Nanos(2), SessionId(0), Way::Out, &[b'-'; 2 * PIECE_BYTES]);
        assert_eq!(log.dropped(), 1);
        drop(log);
        let writer = Writer {
            consumer,
            observer: observer.clone(),
            files: vec![Some(files)],
            additions,
            dropped,
            said: 0,
            last: Nanos::ZERO,
            stamp: Stamp::new(Precision::Nanos),
        };
        writer.run();
        let text = fs::read_to_string(folder.join("m")).unwrap();
        assert!(
            text.starts_with("19700101-00:00:00.000000000 : 8=FIX.4.4\x01"),
            "{text}"
        );
        assert!(
            text.contains("554=******\x01") && !text.contains("hidden"),
            "{text}"
        );
        let events = fs::read_to_string(folder.join("e")).unwrap();
        assert!(
            events.contains("logged on") && events.contains("1 pieces were not logged"),
            "{events}"
        );
        let copy = fs::read_to_string(folder.join("c")).unwrap();
        assert!(copy.is_empty(), "a Logon is no application message: {copy}");
        fs::remove_dir_all(&folder).unwrap();
    }

    /// A disk with room for so many bytes.
    struct Disk {
        written: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.room);
            if n == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= n;
            self.written.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The disk is full in the middle of a line, lines wait and are lost; with room again it goes on where it
    /// was and says what is missing.
    #[test]
    fn a_full_disk_costs_what_does_not_fit_and_the_log_goes_on() {
        let mut stamp = Stamp::new(Precision::Millis);
        let disk = Disk {
            written: Vec::new(),
            room: 100,
        };
        let mut log = LogFile::new(Path::new("m"), disk, Arc::new(Silent));
        let text = [b'x'; 1000];
        for n in 0..3000 {
            log.line(Nanos(n * 1_000_000_000), &mut stamp, &text);
            log.flush(&mut stamp, n < 5);
        }
        assert_eq!(log.to.written.len(), 100);
        let lost = log.lost.as_ref().unwrap().count;
        assert!((1500..2500).contains(&lost), "{lost}");
        log.to.room = usize::MAX;
        log.flush(&mut stamp, true);
        log.line(Nanos(3000 * 1_000_000_000), &mut stamp, b"8=FIX and so on");
        log.flush(&mut stamp, false);
        let written = String::from_utf8(log.to.written.clone()).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        let whole = 3000 - lost as usize;
        assert_eq!(lines.len(), whole + 2);
        assert!(
            lines[..whole].iter().all(|line| line.len() == 1000 + 24),
            "cut lines"
        );
        let first = text_of(&mut stamp, Nanos(whole as u64 * 1_000_000_000));
        let said = format!("{lost} lines were not written, from {first} to 19700101-00:49:59.000");
        assert!(lines[whole].contains(&said), "{}", lines[whole]);
        assert!(lines[whole + 1].ends_with(" : 8=FIX and so on"));
    }
}
