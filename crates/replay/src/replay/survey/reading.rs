//! The files of a first reading: every datagram of captures, and what files without packets hold.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tickwire_console::failure::Failure;
use tickwire_runtime::capture::CaptureReader;
use tickwire_runtime::itchfile::Recording;
use tickwire_runtime::recordfile::RecordFile;
use tickwire_runtime::signal::StopFlag;
use tickwire_wire::{dbn, itch50};

use super::super::ROOM_MAX;
use super::{Files, Stopped};
use crate::progress::Progress;
use crate::tape::{End, Frame, Speed, Tape};

/// Frames between two looks at the stop flag and the clock.
const LOOK: u64 = 1024;
/// More than any file holds.
const UNKNOWN: u64 = 1 << 40;
/// The shortest record that a book hears of, and the shortest line: `0,1,1,1,1,1` and its end.
const RECORD_MIN: u64 = 56;
const LINE_MIN: u64 = 12;

impl Files {
    /// Takes the header of a DBN file. Of one that does not say which records it has, all are looked at.
    fn records(&mut self, path: &Path, mut reader: RecordFile, look: Look<'_>) -> Result<(), Stopped> {
        let metadata = dbn::Metadata::parse(reader.version(), reader.metadata());
        if let Ok(metadata) = &metadata {
            let mut symbols = 0;
            // What cannot be read is said when the file is played.
            let _ = metadata.mappings(&mut |_, _| symbols += 1);
            self.symbols += symbols;
        }
        match metadata.ok().and_then(|metadata| metadata.is_by_order()) {
            Some(is_by_order) => {
                self.has_orders |= is_by_order;
                self.records += at_most(path, reader.is_plain(), RECORD_MIN);
            }
            None => {
                while let Ok(Some(record)) = reader.next_record() {
                    self.records += 1;
                    self.has_orders |= matches!(dbn::parse(record.bytes), Ok(dbn::Record::Mbo(_)));
                    look(self.records, reader.offset())?;
                }
            }
        }
        Ok(())
    }
}

/// Now and then: whether to stop, and how far it is.
type Look<'l> = &'l mut dyn FnMut(u64, u64) -> Result<(), Stopped>;

/// How many pieces of at least so many bytes a file can have.
fn at_most(path: &Path, is_plain: bool, least: u64) -> u64 {
    match std::fs::metadata(path) {
        Ok(file) if is_plain => file.len() / least + 1,
        _ => UNKNOWN,
    }
}

/// Hands every datagram of every capture to `each`; how many messages the files of messages hold. Every file
/// is opened before anything is read: one that is no recording is refused at once. What is damaged within a
/// file is said when it is played.
pub(super) fn read(
    files: &[PathBuf],
    stop: &StopFlag,
    mut each: impl FnMut(SocketAddr, &[u8]) -> Result<(), Failure>,
) -> Result<Files, Stopped> {
    let refused = |e: tickwire_runtime::capture::CaptureError| match End::from(e) {
        End::Failed(failure) => Stopped::Failed(failure),
        End::Damaged(message) => Stopped::Failed(Failure::check(message)),
        End::Interrupted => Stopped::Interrupted,
    };
    for file in files {
        Recording::open(file, itch50::message_size).map_err(refused)?;
    }
    let (mut progress, mut held) = (Progress::new("looking through"), Files::default());
    for file in files {
        match Recording::open(file, itch50::message_size).map_err(refused)? {
            Recording::Packets(reader) => packets(file, reader, stop, &mut progress, &mut each)?,
            Recording::Messages(mut reader) => {
                // More than the books get room for need not be counted.
                while held.messages < ROOM_MAX
                    && let Ok(Some(_)) = reader.next_message()
                {
                    held.messages += 1;
                    look(held.messages, file, reader.offset(), stop, &mut progress)?;
                }
            }
            Recording::Records(reader) => held.records(file, reader, &mut |n, offset| {
                look(n, file, offset, stop, &mut progress)
            })?,
            Recording::Lines(reader) => held.lines += at_most(file, reader.is_plain(), LINE_MIN),
        }
    }
    Ok(held)
}

/// Now and then: whether to stop, and how far it is.
fn look(n: u64, file: &Path, offset: u64, stop: &StopFlag, progress: &mut Progress) -> Result<(), Stopped> {
    if n.is_multiple_of(LOOK) {
        if stop.is_set() {
            return Err(Stopped::Interrupted);
        }
        progress.show(file, n, offset);
    }
    Ok(())
}

fn packets(
    file: &Path,
    mut reader: CaptureReader,
    stop: &StopFlag,
    progress: &mut Progress,
    each: &mut impl FnMut(SocketAddr, &[u8]) -> Result<(), Failure>,
) -> Result<(), Stopped> {
    let mut tape = Tape::new(Speed::Max);
    loop {
        look(tape.frames(), file, reader.offset(), stop, progress)?;
        match tape.frame(&mut reader) {
            Ok(Some(Frame { udp: Ok(udp), .. })) => {
                each(udp.destination, udp.payload).map_err(Stopped::Failed)?
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(End::Damaged(_)) => return Ok(()),
            Err(End::Interrupted) => return Err(Stopped::Interrupted),
            Err(End::Failed(failure)) => return Err(Stopped::Failed(failure)),
        }
    }
}
