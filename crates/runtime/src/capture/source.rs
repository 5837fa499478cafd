//! Bytes of a file, decompressed, through a buffer of fixed size that never splits a record.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::ahead::Ahead;

/// The longest record taken for genuine: a longer one is a sign of a garbled file. The largest frame an
/// interface delivers (with segments merged) has 512 KiB.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// Twice the longest record, so that most reads are long.
const BUFFER_BYTES: usize = 2 * RECORD_BYTES_MAX;

/// Why a recording cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It cannot be opened.
    #[error("cannot open {file}: {source}; check the name and the permissions")]
    Open {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system fails to read it.
    #[error("cannot read {file} beyond byte {offset}: {source}")]
    Read {
        /// The file.
        file: String,
        /// How far reading came.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Its compressed data is damaged or incomplete.
    #[error(
        "{file} is damaged or cut off: its {compression} data ends after {offset} decompressed bytes ({source}); everything before \
         that was read, copy the file again for the rest"
    )]
    Decompress {
        /// The file.
        file: String,
        /// The compression.
        compression: Compression,
        /// How many decompressed bytes there are.
        offset: u64,
        /// What the decompressor said.
        source: io::Error,
    },
    /// It is something else.
    #[error(
        "{file} is not a {wanted} file: it begins with {start}; give one of these, plain or compressed with gzip or zstd"
    )]
    Unrecognised {
        /// The file.
        file: String,
        /// What it should be.
        wanted: &'static str,
        /// Its first bytes in hexadecimal.
        start: String,
    },
    /// It breaks off in the middle of a record.
    #[error(
        "{file} is cut off: the {record} at byte {offset} needs {need} bytes and {have} are left; everything before it was \
         read, copy the file again for the rest"
    )]
    Truncated {
        /// The file.
        file: String,
        /// What kind of record.
        record: &'static str,
        /// Where the record begins.
        offset: u64,
        /// How long it is.
        need: u64,
        /// How much of it there is.
        have: u64,
    },
    /// A record contradicts itself.
    #[error(
        "{file} is garbled at byte {offset}: {reason}; everything before that was read, get the file again from its source"
    )]
    Garbled {
        /// The file.
        file: String,
        /// Where the record begins.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// It cannot be written.
    #[error("cannot write {file}: {source}; check the permissions and the free space")]
    Write {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
}

impl CaptureError {
    /// Whether the system does not let the file be opened or read, so that nothing is known of what is in it.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, CaptureError::Open { .. } | CaptureError::Read { .. })
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip (RFC 1952), several members too.
    Gzip,
    /// Zstandard (RFC 8878), several frames too.
    Zstd,
}

impl Compression {
    /// From a file's first bytes.
    fn of(start: &[u8]) -> Compression {
        match start {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd, // a skippable frame comes first
            _ => Compression::None,
        }
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Compression::None => "uncompressed",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

/// The decompressed bytes of a file.
pub(crate) struct Source {
    file: String,
    compression: Compression,
    input: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    /// The bytes not taken yet: `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Where `start` lies in the decompressed data.
    offset: u64,
    at_end: bool,
    /// What stopped reading; told when the bytes before it have been used up.
    error: Option<io::Error>,
}

impl Source {
    /// A file; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Source, CaptureError> {
        if path.as_os_str() == "-" {
            return Source::new("standard input", Box::new(io::stdin()));
        }
        let file = path.display().to_string();
        let failed = |source| CaptureError::Open {
            file: file.clone(),
            source,
        };
        let input = File::open(path).map_err(failed)?;
        if input.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        Source::new(&file, Box::new(input))
    }

    pub(crate) fn new(file: &str, mut input: Box<dyn Read + Send>) -> Result<Source, CaptureError> {
        let mut start = Vec::with_capacity(4);
        let begun = input.by_ref().take(4).read_to_end(&mut start);
        begun.map_err(|source| CaptureError::Read {
            file: file.to_owned(),
            offset: 0,
            source,
        })?;
        let compression = Compression::of(&start);
        let whole = Cursor::new(start).chain(input);
        let input: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(whole),
            Compression::Gzip => ahead(MultiGzDecoder::new(BufReader::with_capacity(1 << 18, whole))),
            Compression::Zstd => ahead(ZstdFrames::new(BufReader::with_capacity(1 << 18, whole))),
        };
        Ok(Source {
            file: file.to_owned(),
            compression,
            input,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            offset: 0,
            at_end: false,
            error: None,
        })
    }

    /// The next `len` bytes without taking them, fewer only at the end of the file.
    ///
    /// # Errors
    /// Reading failed before `len` bytes.
    #[inline]
    pub(crate) fn peek(&mut self, len: usize) -> Result<&[u8], CaptureError> {
        if self.end - self.start < len {
            self.fill(len)?;
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + len)])
    }

    /// What is in memory of the bytes that are not taken yet.
    #[inline]
    pub(crate) fn in_memory(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes `len` bytes, which were peeked at before.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> &[u8] {
        let from = self.start;
        self.start += len;
        self.offset += len as u64;
        &self.buffer[from..self.start]
    }

    /// Passes over up to `len` bytes, however many; how many there were.
    pub(crate) fn skip(&mut self, len: u64) -> Result<u64, CaptureError> {
        let mut left = len;
        while left > 0 {
            let step = self.peek(left.min(BUFFER_BYTES as u64) as usize)?.len();
            if step == 0 {
                break;
            }
            self.take(step);
            left -= step as u64;
        }
        Ok(len - left)
    }

    #[cold]
    fn fill(&mut self, len: usize) -> Result<(), CaptureError> {
        assert!(
            len <= self.buffer.len(),
            "callers bound records by RECORD_BYTES_MAX"
        );
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < len && !self.at_end {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.at_end = true;
                    self.error = Some(error);
                }
            }
        }
        match self.error.take() {
            Some(source) if self.end < len => Err(self.read_error(source)),
            error => {
                self.error = error;
                Ok(())
            }
        }
    }

    fn read_error(&self, source: io::Error) -> CaptureError {
        let (file, offset) = (self.file.clone(), self.offset + self.end as u64);
        match self.compression {
            Compression::None => CaptureError::Read { file, offset, source },
            compression => CaptureError::Decompress {
                file,
                compression,
                offset,
                source,
            },
        }
    }

    /// The error for a record of `need` bytes that begins here and of which only `have` are there.
    pub(crate) fn truncated(&self, record: &'static str, need: usize, have: usize) -> CaptureError {
        self.truncated_at(self.offset, record, need as u64, have as u64)
    }

    /// The same for a record that began at `offset`.
    pub(crate) fn truncated_at(
        &self,
        offset: u64,
        record: &'static str,
        need: u64,
        have: u64,
    ) -> CaptureError {
        CaptureError::Truncated {
            file: self.file.clone(),
            record,
            offset,
            need,
            have,
        }
    }

    /// The error for a record that begins here.
    pub(crate) fn garbled(&self, reason: impl Into<String>) -> CaptureError {
        CaptureError::Garbled {
            file: self.file.clone(),
            offset: self.offset,
            reason: reason.into(),
        }
    }

    /// The error for a file that begins with something else.
    pub(crate) fn unrecognised(&mut self, wanted: &'static str) -> Result<CaptureError, CaptureError> {
        let bytes: Vec<String> = self.peek(4)?.iter().map(|byte| format!("{byte:02x}")).collect();
        let start = if bytes.is_empty() {
            "nothing (it is empty)".to_owned()
        } else {
            bytes.join(" ")
        };
        Ok(CaptureError::Unrecognised {
            file: self.file.clone(),
            wanted,
            start,
        })
    }

    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}

fn ahead(input: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(Ahead::new(Box::new(input)))
}

/// Zstandard data of any number of frames, skippable ones included (the library decodes one).
struct ZstdFrames<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(input: R) -> ZstdFrames<R> {
        ZstdFrames {
            input,
            decoder: FrameDecoder::new(),
            in_frame: false,
        }
    }

    /// Begins the next frame; `false` at the end of the data.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.input.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    /// Verifies the finished frame's checksum, where it has one.
    fn end_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        match (
            self.decoder.get_checksum_from_data(),
            self.decoder.get_calculated_checksum(),
        ) {
            (Some(told), Some(found)) if told != found => {
                Err(io::Error::other("the checksum does not match the data"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                self.in_frame = self.next_frame()?;
                if !self.in_frame {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let step = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder
                    .decode_blocks(&mut self.input, step)
                    .map_err(io::Error::other)?;
            }
            match self.decoder.read(buf)? {
                0 => self.end_frame()?,
                n => return Ok(n),
            }
        }
    }
}
