//! What is played: the datagrams of several captures, merged by time.
//!
//! Each file is read as a stream, one datagram ahead; the next one is the earliest of all, the file named
//! first where times are equal. Files are not shifted against each other: two captures of one day line up as
//! they were. With `--preload` every file is read into memory first, so that nothing is read or decompressed
//! between two packets.

use std::net::{SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

use tickwire_market::Nanos;
use tickwire_runtime::capture::{CaptureError, CaptureReader, Carried, Frames};

use tickwire_console::failure::Failure;

/// Bytes that a datagram adds to its payload as an Ethernet frame with IPv4, without the frame check
/// sequence: 14, 20, 8.
pub const FRAME_HEADERS: u32 = 42;

/// A datagram of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    /// When it was captured.
    pub time: Nanos,
    pub destination: SocketAddrV4,
    pub payload: &'a [u8],
    /// Its frame on the recorded wire, in bytes.
    pub frame_len: u32,
}

/// What was passed over, and why a file ended early.
#[derive(Clone, Default, Debug)]
pub(crate) struct Passed {
    /// Every frame, and what became of it.
    pub frames: Frames,
    /// Datagrams to IPv6 addresses, which are not played.
    pub ipv6: u64,
    /// The first damage met, whole sentence.
    pub damage: Option<String>,
}

/// A datagram that is kept.
struct Kept {
    time: Nanos,
    destination: SocketAddrV4,
    frame_len: u32,
    from: usize,
    len: usize,
}

/// A file that is being read, with its next datagram.
struct Reading {
    reader: Option<CaptureReader>,
    /// The time of the last frame: for those that say none.
    last: Nanos,
    next: Option<Kept>,
    payload: Vec<u8>,
}

enum Store {
    Streams(Vec<Reading>),
    Memory {
        kept: Vec<Kept>,
        bytes: Vec<u8>,
        at: usize,
    },
}

/// See the module's description.
pub(crate) struct Source {
    files: Vec<PathBuf>,
    store: Store,
    passed: Passed,
    /// Which stream gave the last datagram: it is read on before the next one is chosen.
    given: Option<usize>,
}

impl Source {
    /// Opens every file; with `preload`, reads them.
    pub(crate) fn open(files: &[PathBuf], preload: bool) -> Result<Source, Failure> {
        let mut source = Source {
            files: files.to_vec(),
            store: Store::Streams(Vec::new()),
            passed: Passed::default(),
            given: None,
        };
        source.open_all()?;
        if preload {
            let (mut kept, mut bytes) = (Vec::new(), Vec::new());
            while let Some(datagram) = source.next()? {
                kept.push(Kept {
                    time: datagram.time,
                    destination: datagram.destination,
                    frame_len: datagram.frame_len,
                    from: bytes.len(),
                    len: datagram.payload.len(),
                });
                bytes.extend_from_slice(datagram.payload);
            }
            source.store = Store::Memory { kept, bytes, at: 0 };
        }
        Ok(source)
    }

    fn open_all(&mut self) -> Result<(), Failure> {
        let mut streams = Vec::with_capacity(self.files.len());
        self.passed.frames.next_file();
        for file in &self.files {
            let mut reading = Reading::open(file, &mut self.passed)?;
            reading.advance(&mut self.passed)?;
            streams.push(reading);
        }
        self.given = None;
        self.store = Store::Streams(streams);
        Ok(())
    }

    /// The next datagram, `None` at the end of all files.
    pub(crate) fn next(&mut self) -> Result<Option<Datagram<'_>>, Failure> {
        match &mut self.store {
            Store::Streams(streams) => {
                if let Some(given) = self.given.take() {
                    streams[given].advance(&mut self.passed)?;
                }
                let times = streams.iter().enumerate();
                let first = times
                    .filter_map(|(at, s)| Some((s.next.as_ref()?.time, at)))
                    .min();
                let Some((_, at)) = first else { return Ok(None) };
                self.given = Some(at);
                let stream = &streams[at];
                Ok(stream.next.as_ref().map(|kept| kept.of(&stream.payload)))
            }
            Store::Memory { kept, bytes, at } => {
                let next = kept.get(*at);
                *at += 1;
                Ok(next.map(|kept| kept.of(bytes)))
            }
        }
    }

    /// Begins anew.
    pub(crate) fn rewind(&mut self) -> Result<(), Failure> {
        match &mut self.store {
            Store::Streams(_) => self.open_all(),
            Store::Memory { at, .. } => {
                *at = 0;
                Ok(())
            }
        }
    }

    /// What was passed over so far, all passes together.
    pub(crate) fn passed(&self) -> &Passed {
        &self.passed
    }
}

impl Kept {
    fn of<'a>(&self, bytes: &'a [u8]) -> Datagram<'a> {
        Datagram {
            time: self.time,
            destination: self.destination,
            payload: &bytes[self.from..self.from + self.len],
            frame_len: self.frame_len,
        }
    }
}

impl Reading {
    fn open(path: &Path, passed: &mut Passed) -> Result<Reading, Failure> {
        let mut reading = Reading {
            reader: None,
            last: Nanos::ZERO,
            next: None,
            payload: Vec::new(),
        };
        match CaptureReader::open(path) {
            Ok(reader) => reading.reader = Some(reader),
            Err(error) => note(error, passed)?,
        }
        Ok(reading)
    }

    /// Reads on to the next datagram. A file that breaks off gives what it has; that it is damaged is kept.
    fn advance(&mut self, passed: &mut Passed) -> Result<(), Failure> {
        self.next = None;
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        loop {
            let frame = match reader.next_frame(&mut passed.frames) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(error) => return note(error, passed),
            };
            let packet = frame.packet;
            self.last = packet.time.unwrap_or(self.last);
            let Ok(Carried::Udp(udp)) = frame.carried else {
                continue;
            };
            let SocketAddr::V4(destination) = udp.destination else {
                passed.ipv6 += 1;
                continue;
            };
            self.payload.clear();
            self.payload.extend_from_slice(udp.payload);
            self.next = Some(Kept {
                time: self.last,
                destination,
                frame_len: packet.original_len,
                from: 0,
                len: self.payload.len(),
            });
            return Ok(());
        }
    }
}

/// A file that cannot be opened or read ends the run; one that is damaged is played as far as it goes.
fn note(error: CaptureError, passed: &mut Passed) -> Result<(), Failure> {
    if error.is_unreadable() {
        return Err(Failure::system(error.to_string()));
    }
    passed.damage.get_or_insert(error.to_string());
    Ok(())
}
