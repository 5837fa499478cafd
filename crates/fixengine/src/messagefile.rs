//! Messages in files: stores, message logs, anything with messages in its lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tickwire_fix::Store;

use crate::error::Error;
use crate::message::Framer;

/// A file with messages, and how far it was read: a store, or lines.
#[derive(Debug)]
pub struct MessageFile(Source);

/// A file and how far it was read.
#[derive(Debug)]
enum Source {
    Store {
        path: PathBuf,
        /// The next message's number, as the file said.
        next: u64,
        /// The next one to be shown.
        shown: u64,
    },
    /// A message log, or anything with messages in it.
    Text {
        path: PathBuf,
        reader: BufReader<File>,
        lines: Lines,
    },
}

/// Hands out every message of a store, a message log, or a file with messages in its lines.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn messages(path: &Path, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
    MessageFile::open(path)?.read(&mut |_, bytes| each(bytes))
}

fn cannot_read(path: &Path, e: &io::Error) -> Error {
    Error::system(format!("cannot read {}: {e}", path.display()))
}

impl MessageFile {
    /// Opens one; whose it is does not matter, and its session may go on.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path) -> Result<MessageFile, Error> {
        let mut file = File::open(path).map_err(|e| cannot_read(path, &e))?;
        let mut magic = [0; 8];
        let is_store =
            file.read_exact(&mut magic).is_ok() && (magic == *b"TWFIXST1" || magic == *b"TWFIXST2");
        file.seek(SeekFrom::Start(0)).map_err(|e| cannot_read(path, &e))?;
        let path = path.to_owned();
        Ok(MessageFile(match is_store {
            true => Source::Store {
                path,
                next: 0,
                shown: 0,
            },
            false => Source::Text {
                path,
                reader: BufReader::new(file),
                lines: Lines::default(),
            },
        }))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.0 {
            Source::Store { path, .. } | Source::Text { path, .. } => path,
        }
    }

    /// Hands out what is new, with the time of its line if it has one.
    ///
    /// # Errors
    /// The file cannot be read, or is no store any more.
    pub fn read(&mut self, each: &mut dyn FnMut(Option<&str>, &[u8])) -> Result<(), Error> {
        match &mut self.0 {
            Source::Store { path, next, shown } => {
                let file = File::open(&*path).map_err(|e| cannot_read(path, &e))?;
                let (_, size) = crate::store::head_of(&file).map_err(|e| cannot_read(path, &e))?;
                let now = size.map(|size| size.next_out).unwrap_or(0);
                if now == *next && now > 0 {
                    return Ok(());
                }
                // Numbers that began anew are others.
                if now < *next {
                    *shown = 0;
                }
                *next = now;
                let mut store = crate::store::look_at(path)?;
                store.for_each(|seq, message| {
                    if seq >= *shown {
                        each(None, message);
                    }
                });
                *shown = store.next_out();
                Ok(())
            }
            Source::Text { path, reader, lines } => {
                lines.read(reader, each).map_err(|e| cannot_read(path, &e))
            }
        }
    }
}

/// Lines of a message log: a time, something, a message with real separators or bars.
#[derive(Debug, Default)]
struct Lines {
    framer: Framer,
    /// A line without an end yet.
    part: Vec<u8>,
}

impl Lines {
    fn read(
        &mut self,
        reader: &mut impl BufRead,
        each: &mut dyn FnMut(Option<&str>, &[u8]),
    ) -> io::Result<()> {
        while reader.read_until(b'\n', &mut self.part)? > 0 {
            // Data may hold line ends: then the message goes on.
            let is_whole = self.part.ends_with(b"\n");
            if !is_whole {
                return Ok(());
            }
            self.line(each);
        }
        Ok(())
    }

    fn line(&mut self, each: &mut dyn FnMut(Option<&str>, &[u8])) {
        let line = std::mem::take(&mut self.part);
        let begin = line.windows(5).position(|w| w == b"8=FIX").unwrap_or(line.len());
        let time = std::str::from_utf8(&line[..begin]).unwrap_or("");
        let time = time.split_whitespace().next().map(|t| t.trim_end_matches(':'));
        let time = time.filter(|t| t.len() >= 17 && t.as_bytes()[8] == b'-');
        let message = &line[begin..];
        if !message.contains(&1) {
            // Bars for separators: checksum and lengths are of the real ones.
            let message: Vec<u8> = message.iter().map(|b| if *b == b'|' { 1 } else { *b }).collect();
            return self.framer.take(&message, |m| each(time, m));
        }
        let mut found = false;
        self.framer.take(message, |m| {
            found = true;
            each(time, m);
        });
        // A masked message has another sum than it says, and is shown all the same; anything else on the line
        // is not.
        if found {
            self.framer.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_logs_are_read_with_bars_or_separators_and_in_pieces() {
        let message = tickwire_fix::naive::encode(&[(35, b"0".to_vec()), (34, b"7".to_vec())]);
        let with_bars = String::from_utf8(message.clone()).unwrap().replace('\x01', "|");
        let mut text = b"20261121-01:55:41.123 : ".to_vec();
        text.extend_from_slice(&message);
        text.extend_from_slice(format!("\nnothing here\n<20261121-01:55:42, in> {with_bars}\n").as_bytes());
        for cut in [1, 7, text.len()] {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            for piece in text.chunks(cut) {
                let mut each =
                    |time: Option<&str>, m: &[u8]| seen.push((time.map(str::to_string), m.to_vec()));
                lines.read(&mut &piece[..], &mut each).unwrap();
            }
            assert_eq!(seen.len(), 2, "cut {cut}");
            assert_eq!(seen[0], (Some("20261121-01:55:41.123".into()), message.clone()));
            assert_eq!(seen[1].1, message);
        }
    }
}
