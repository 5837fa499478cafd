//! What sessions sent and received, and what happened to them, written to files by a thread of its own.
//!
//! The loop of sessions copies bytes into a bounded ring and goes on; the thread puts messages together, masks passwords and
//! writes. When the ring is full the piece is dropped and counted: a session never waits for a disk. Files and lines are as
//! QuickFIX writes them: `BEGINSTRING-SENDER-TARGET.messages.current.log`, a time, ` : ` and the message.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_fix::{Precision, SessionId, Stamp};
use tickwire_market::Nanos;
use tickwire_runtime::spsc::{self, Consumer, Producer};

use super::engine::Way;
use super::message::{self, Framer};
use super::settings::Setup;
use crate::failure::Failure;

/// Pieces in the ring: 4 MiB.
const PIECES: usize = 1 << 13;
const PIECE_BYTES: usize = 488;
/// How long the thread sleeps when there is nothing to write.
const IDLE: Duration = Duration::from_millis(2);

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
pub(super) struct MessageLog {
    producer: Option<Producer<Piece>>,
    /// Whether a session is logged.
    wanted: Vec<bool>,
    dropped: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
    /// To the thread: the files of a session that was not there when it began.
    added: mpsc::Sender<Added>,
}

/// Files of a session that comes later.
struct Added {
    session: usize,
    files: Option<Files>,
}

/// The files of one session.
struct Files {
    messages: Option<BufWriter<File>>,
    events: Option<BufWriter<File>>,
    /// Application messages only.
    copy: Option<BufWriter<File>>,
    framers: [Framer; 2],
}

impl MessageLog {
    /// Opens the files of sessions with a FileLogPath, in the order of their numbers; `None` if none has one.
    /// Those of templates' sessions follow by [`MessageLog::add`].
    pub(super) fn open(setups: &[Setup], templates: &[Setup]) -> Result<Option<MessageLog>, Failure> {
        let files = setups.iter().map(|s| Files::open(s).transpose());
        let files: Vec<Option<Files>> = files.map(Option::transpose).collect::<Result<_, _>>()?;
        if files.iter().all(Option::is_none) && !templates.iter().any(Files::are_wanted) {
            return Ok(None);
        }
        let (added, additions) = mpsc::channel();
        let wanted = files.iter().map(Option::is_some).collect();
        let (producer, consumer) = spsc::ring(PIECES);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            consumer,
            files,
            additions,
            dropped: dropped.clone(),
            said: 0,
            stamp: Stamp::new(Precision::Nanos),
        };
        let writer = std::thread::Builder::new()
            .name("fix-log".into())
            .spawn(move || writer.run())
            .map_err(|e| Failure::system(format!("no thread to write the message log by: {e}")))?;
        Ok(Some(MessageLog {
            producer: Some(producer),
            wanted,
            dropped,
            writer: Some(writer),
            added,
        }))
    }

    /// A session that came later, or in the place of another.
    pub(super) fn add(&mut self, id: SessionId, setup: &Setup) -> Result<(), Failure> {
        let files = Files::open(setup)?;
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
    pub(super) fn bytes(&mut self, at: Nanos, id: SessionId, way: Way, bytes: &[u8]) {
        self.put(at, id, Kind::Bytes(way), bytes);
    }

    /// Something happened to a session.
    pub(super) fn event(&mut self, at: Nanos, id: SessionId, text: &str) {
        self.put(at, id, Kind::Event, text.as_bytes());
    }

    /// A session has lost its connection.
    pub(super) fn closed(&mut self, at: Nanos, id: SessionId) {
        self.put(at, id, Kind::Closed, b" ");
    }

    /// Pieces for which there was no room.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
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
                self.dropped.fetch_add(1, Ordering::Relaxed);
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

    fn open(setup: &Setup) -> Result<Option<Files>, Failure> {
        if !Files::are_wanted(setup) {
            return Ok(None);
        }
        let open = |path: PathBuf| {
            let cannot = |e| Failure::system(format!("cannot write {}: {e}", path.display()));
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(cannot)?;
            }
            open_append(&path).map_err(cannot)
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

    fn flush(&mut self) -> std::io::Result<()> {
        let all = [&mut self.messages, &mut self.events, &mut self.copy];
        all.into_iter().flatten().try_for_each(Write::flush)
    }
}

fn open_append(path: &Path) -> std::io::Result<BufWriter<File>> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    Ok(BufWriter::new(file))
}

/// The thread's end.
struct Writer {
    consumer: Consumer<Piece>,
    files: Vec<Option<Files>>,
    additions: mpsc::Receiver<Added>,
    dropped: Arc<AtomicU64>,
    /// Of these, so many have been told of.
    said: u64,
    stamp: Stamp,
}

impl Writer {
    fn run(mut self) {
        loop {
            let is_last = self.consumer.is_abandoned();
            let mut wrote = false;
            while let Some(piece) = self.consumer.pop() {
                wrote = true;
                // Files come before the first piece that is for them.
                self.add();
                if let Err(e) = self.write(&piece) {
                    // What is left is dropped and counted, as when the disk is slow.
                    eprintln!("warning: the message log ends: {e}");
                    return;
                }
            }
            if wrote {
                self.say_dropped();
                for files in self.files.iter_mut().flatten() {
                    let _ = files.flush();
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
                let _ = before.flush();
            }
        }
    }

    fn write(&mut self, piece: &Piece) -> std::io::Result<()> {
        let Some(Some(files)) = self.files.get_mut(piece.session as usize) else {
            return Ok(());
        };
        let time = self.stamp.format(piece.at);
        let bytes = &piece.bytes[..piece.len as usize];
        let line = |to: &mut Option<BufWriter<File>>, text: &[u8]| {
            let Some(to) = to else { return Ok(()) };
            to.write_all(time)?;
            to.write_all(b" : ")?;
            to.write_all(text)?;
            to.write_all(b"\n")
        };
        match piece.kind {
            Kind::Event => line(&mut files.events, bytes),
            Kind::Closed => {
                files.framers.iter_mut().for_each(Framer::clear);
                Ok(())
            }
            Kind::Bytes(way) => {
                let mut written = Ok(());
                let (messages, copy) = (&mut files.messages, &mut files.copy);
                files.framers[way as usize].take(bytes, |m| {
                    let mut own = m.to_vec();
                    message::mask(&mut own);
                    if written.is_ok() {
                        written = line(messages, &own);
                    }
                    if written.is_ok() && copy.is_some() && message::is_application(m) {
                        written = line(copy, m);
                    }
                });
                written
            }
        }
    }

    fn say_dropped(&mut self) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > self.said {
            let text = format!(
                "{} pieces were not logged: the disk is too slow\n",
                dropped - self.said
            );
            self.said = dropped;
            eprint!("warning: {text}");
            if let Some(events) = self.files.iter_mut().flatten().find_map(|f| f.events.as_mut()) {
                let _ = events.write_all(text.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_drops_and_counts_and_what_is_whole_is_written_masked() {
        let folder = std::env::temp_dir().join(format!("tickwire-msglog-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let files = Files {
            messages: open_append(&folder.join("m")).ok(),
            events: open_append(&folder.join("e")).ok(),
            copy: open_append(&folder.join("c")).ok(),
            framers: Default::default(),
        };
        let (added, additions) = mpsc::channel();
        let (producer, consumer) = spsc::ring(4);
        let dropped = Arc::new(AtomicU64::new(0));
        let mut log = MessageLog {
            producer: Some(producer),
            wanted: vec![true],
            dropped: dropped.clone(),
            writer: None,
            added,
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
            files: vec![Some(files)],
            additions,
            dropped,
            said: 0,
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
}
