//! Files of records that say their own length (Databento's DBN) and files of lines (LOBSTER).
//!
//! A DBN file: `DBN` and a version, the length of its metadata (4 bytes, little-endian), the metadata, then
//! records whose first byte is their length in words of 4 bytes. What metadata and records mean is the
//! caller's: this crate knows no venue.

use std::path::Path;

use crate::capture::{CaptureError, Compression, Source};

/// Metadata beyond this is damage: a file that maps every option of a day has 200 MB.
const METADATA_MAX: usize = 1 << 30;
/// A line beyond this is none.
const LINE_MAX: usize = 1 << 16;
/// What a record begins with at the least.
const HEADER: usize = 16;

/// A record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// The record, from its length on.
    pub bytes: &'a [u8],
    /// Where it lies in the file (in the decompressed data).
    pub offset: u64,
}

/// Reads a DBN file.
pub struct RecordFile {
    source: Source,
    version: u8,
    metadata: Vec<u8>,
    failed: bool,
}

impl RecordFile {
    /// Whether a file that begins so is one.
    pub(crate) fn recognises(start: &[u8]) -> bool {
        start.starts_with(b"DBN") && start.get(3).is_some_and(|version| (1..=9).contains(version))
    }

    /// Reads up to the first record.
    pub(crate) fn new(mut source: Source) -> Result<RecordFile, CaptureError> {
        let head = source.peek(8)?;
        let [_, _, _, version, length @ ..] = head else {
            let have = head.len();
            return Err(source.truncated("file header", 8, have));
        };
        let version = *version;
        let Some(length) = length.first_chunk().map(|l| u32::from_le_bytes(*l) as usize) else {
            let have = 4 + length.len();
            return Err(source.truncated("file header", 8, have));
        };
        if length > METADATA_MAX {
            return Err(source.garbled(format!("its metadata claims to have {length} bytes")));
        }
        source.take(8);
        let mut metadata = Vec::new();
        while metadata.len() < length {
            let step = source.peek((length - metadata.len()).min(1 << 16))?.len();
            if step == 0 {
                let have = metadata.len();
                return Err(source.truncated("metadata", length, have));
            }
            metadata.extend_from_slice(source.take(step));
        }
        Ok(RecordFile {
            source,
            version,
            metadata,
            failed: false,
        })
    }

    /// The version, as the file says it.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// Whether the file holds its records as they are.
    pub fn is_plain(&self) -> bool {
        self.source.compression() == Compression::None
    }

    /// The metadata.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// How far reading has come, in bytes of decompressed data.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// The next record, `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`] with the byte offset: the file breaks off inside a record, or a record's length is
    /// less than that of its header. After an error there are no more records.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        if self.failed {
            return Ok(None);
        }
        let offset = self.source.offset();
        match self.locate().inspect_err(|_| self.failed = true)? {
            None => Ok(None),
            Some(len) => Ok(Some(Record {
                bytes: self.source.take(len),
                offset,
            })),
        }
    }

    fn locate(&mut self) -> Result<Option<usize>, CaptureError> {
        let Some(&words) = self.source.peek(1)?.first() else {
            return Ok(None);
        };
        let len = usize::from(words) * 4;
        if len < HEADER {
            return Err(self
                .source
                .garbled(format!("a record claims to have {len} bytes")));
        }
        let have = self.source.peek(len)?.len();
        match have < len {
            true => Err(self.source.truncated("record", len, have)),
            false => Ok(Some(len)),
        }
    }
}

/// Reads a file of lines.
pub struct LineFile {
    source: Source,
    number: u64,
}

impl LineFile {
    /// Whether a file whose first line begins so is a LOBSTER message file: six columns (time of day in
    /// seconds, type, order, size, price, direction), with or without a line of their names.
    pub(crate) fn recognises(start: &[u8]) -> bool {
        let line = start
            .split(|b| *b == b'\n')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        if line.starts_with(b"Time,Type,") {
            return true;
        }
        let number = |field: &[u8]| {
            let digits = field.strip_prefix(b"-").unwrap_or(field);
            !digits.is_empty() && digits.iter().all(|b| b.is_ascii_digit() || *b == b'.')
        };
        let fields: Vec<&[u8]> = line.split(|b| *b == b',').collect();
        fields.len() == 6
            && fields.iter().all(|field| number(field))
            && fields[1].len() == 1
            && matches!(fields[5], b"1" | b"-1")
    }

    pub(crate) fn new(source: Source) -> LineFile {
        LineFile { source, number: 0 }
    }

    /// Opens a file of any lines, plain or compressed with gzip or zstd.
    ///
    /// # Errors
    /// [`CaptureError::Open`], [`CaptureError::Read`].
    pub fn open(path: impl AsRef<Path>) -> Result<LineFile, CaptureError> {
        Ok(LineFile::new(Source::open(path.as_ref())?))
    }

    /// Whether the file holds its lines as they are.
    pub fn is_plain(&self) -> bool {
        self.source.compression() == Compression::None
    }

    /// The number of the line that was read last, from 1; 0 before the first.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How far reading has come, in bytes of decompressed data.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// The next line that is not empty, without its end, and its number from 1; `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`]: reading failed, or a line is longer than 64 KiB.
    pub fn next_line(&mut self) -> Result<Option<(u64, &[u8])>, CaptureError> {
        let len = loop {
            let mut have = 0;
            let end = loop {
                let wanted = (have + 256).min(LINE_MAX);
                let peeked = self.source.peek(wanted)?;
                if let Some(end) = peeked[have..].iter().position(|b| *b == b'\n') {
                    break have + end + 1;
                }
                have = peeked.len();
                if have < wanted {
                    break have;
                }
                if have == LINE_MAX {
                    return Err(self
                        .source
                        .garbled(format!("a line is longer than {LINE_MAX} bytes")));
                }
            };
            if end == 0 {
                return Ok(None);
            }
            self.number += 1;
            if !self.source.peek(end)?.trim_ascii().is_empty() {
                break end;
            }
            self.source.take(end);
        };
        Ok(Some((self.number, self.source.take(len).trim_ascii())))
    }
}

impl std::fmt::Debug for RecordFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordFile")
            .field("version", &self.version)
            .field("offset", &self.offset())
            .finish()
    }
}

impl std::fmt::Debug for LineFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineFile").field("line", &self.number).finish()
    }
}
