//! Several captures at once, packet by packet in order of time: of both lines, or of several venues, each
//! recorded to a file of its own.
//!
//! A capture is opened when its first packet is due, so that a week of files, one a day, has one open at a
//! time. Of packets of one time, those of the file that was named first come first.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tickwire_market::Nanos;
use tickwire_runtime::capture::{CaptureError, CaptureReader};
use tickwire_runtime::itchfile::{Recording, RecordingKind};

use super::{LOOK, Progress, Replay};
use crate::tape::{End, Frame, Tape};

/// One of the captures that are played.
struct Reel {
    /// Its place among the files that were named.
    order: usize,
    path: PathBuf,
    reader: CaptureReader,
    /// Its next datagram.
    now: Nanos,
    destination: SocketAddr,
    payload: Vec<u8>,
}

impl Reel {
    /// Goes on to the next datagram; whether there is one.
    fn advance(&mut self, tape: &mut Tape) -> Result<bool, End> {
        while let Some(Frame { now, udp }) = tape.frame(&mut self.reader)? {
            if let Ok(udp) = udp {
                // A capture whose clock was set back is played on as it is.
                self.now = now.max(self.now);
                self.destination = udp.destination;
                self.payload.clear();
                self.payload.extend_from_slice(udp.payload);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether these are several captures.
pub(super) fn are_captures(files: &[PathBuf]) -> Result<bool, CaptureError> {
    let is_capture = |path: &PathBuf| -> Result<bool, CaptureError> {
        let recording = Recording::open(path, tickwire_wire::itch50::message_size)?;
        Ok(recording.kind() == RecordingKind::Packets)
    };
    if files.len() < 2 {
        return Ok(false);
    }
    for path in files {
        if !is_capture(path)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// When a capture's first packet was recorded; `None` of one without a packet.
fn beginning(path: &Path) -> Result<Option<Nanos>, CaptureError> {
    let mut reader = CaptureReader::open(path)?;
    let first = reader.next_packet()?;
    Ok(first.map(|packet| packet.time.unwrap_or(Nanos::ZERO)))
}

impl Replay<'_> {
    /// Plays captures together.
    pub(super) fn together(&mut self, files: &[PathBuf]) -> Result<(), End> {
        let mut waiting = Vec::new();
        for (order, path) in files.iter().enumerate() {
            match beginning(path) {
                Ok(Some(begins)) => waiting.push((begins, order, path)),
                Ok(None) => {
                    let nothing = RecordingKind::Packets.nothing_in(&path.display());
                    self.empty.push(nothing);
                }
                Err(e) => self.spoilt(e.into())?,
            }
        }
        waiting.sort_by_key(|(begins, order, _)| (*begins, *order));
        let mut waiting = waiting.into_iter().peekable();
        let mut playing: Vec<Reel> = Vec::new();
        let mut progress = Progress::new("playing");
        loop {
            let soonest = (0..playing.len()).min_by_key(|at| (playing[*at].now, playing[*at].order));
            let due = soonest.map(|at| playing[at].now);
            if let Some((_, order, path)) = waiting.next_if(|next| due.is_none_or(|now| next.0 <= now)) {
                let mut reel = Reel {
                    order,
                    path: path.clone(),
                    reader: CaptureReader::open(path).map_err(End::from)?,
                    now: Nanos::ZERO,
                    destination: SocketAddr::from(([0, 0, 0, 0], 0)),
                    payload: Vec::new(),
                };
                match reel.advance(&mut self.tape) {
                    Ok(true) => playing.push(reel),
                    Ok(false) => {}
                    Err(end) => self.spoilt(end)?,
                }
                continue;
            }
            let Some(at) = soonest else {
                return Ok(());
            };
            let reel = &mut playing[at];
            if self.tape.frames().is_multiple_of(LOOK) {
                progress.show(&reel.path, self.tape.frames(), reel.reader.offset());
            }
            if self.stop.is_set() {
                return Err(End::Interrupted);
            }
            self.datagram(reel.now, reel.destination, &reel.payload)?;
            match reel.advance(&mut self.tape) {
                Ok(true) => {}
                Ok(false) => _ = playing.remove(at),
                Err(end) => {
                    playing.remove(at);
                    self.spoilt(end)?;
                }
            }
        }
    }

    /// A damaged capture ends where the damage is, and is said; the others go on.
    pub(super) fn spoilt(&mut self, end: End) -> Result<(), End> {
        match end {
            End::Damaged(message) => {
                self.damage = Some(message);
                Ok(())
            }
            other => Err(other),
        }
    }
}
