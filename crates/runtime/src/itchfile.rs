//! Recorded messages without packets: each behind its length in two bytes, big-endian (Nasdaq's BinaryFILE).
//!
//! Also files in the wild whose length is always 0: there the message type tells, by a function the caller
//! gives (this crate knows no venue). A length of 0 at the very end marks the end of the session.

use std::io::Read;
use std::path::Path;

use crate::capture::{CaptureError, CaptureReader, Source};
use crate::recordfile::{LineFile, RecordFile};

/// The length of a message from its first byte, the type; `None` for an unknown type.
pub type MessageLen = fn(u8) -> Option<usize>;

/// A recorded message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// The message, from its type on.
    pub bytes: &'a [u8],
    /// Where its length field lies in the file (in the decompressed data).
    pub offset: u64,
}

/// Reads a file of messages.
pub struct ItchFile {
    source: Source,
    message_len: MessageLen,
    failed: bool,
    ahead: Ahead,
}

/// Messages behind the next one that were looked at already: how many, and how far they reach.
#[derive(Clone, Copy, Default)]
struct Ahead {
    messages: usize,
    bytes: usize,
}

impl ItchFile {
    /// Opens a file, plain or compressed with gzip or zstd.
    ///
    /// # Errors
    /// [`CaptureError::Open`], [`CaptureError::Read`].
    pub fn open(path: impl AsRef<Path>, message_len: MessageLen) -> Result<ItchFile, CaptureError> {
        Ok(ItchFile {
            source: Source::open(path.as_ref())?,
            message_len,
            failed: false,
            ahead: Ahead::default(),
        })
    }

    /// One more of the `most` messages that come next, if it is in memory whole; each is shown once. `None`:
    /// nothing more can be shown before the next message is taken.
    #[inline]
    pub fn ahead(&mut self, most: usize) -> Option<&[u8]> {
        if self.ahead.messages >= most {
            return None;
        }
        let rest = self.source.in_memory().get(self.ahead.bytes..)?;
        let (prefix, rest) = rest.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_be_bytes(*prefix));
        // A length of 0 is told by the type, when the message is taken.
        let message = rest.get(..len).filter(|message| !message.is_empty())?;
        self.ahead.messages += 1;
        self.ahead.bytes += 2 + len;
        Some(message)
    }

    /// The next message, `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`] with the byte offset: the file breaks off inside a message, or a type without a
    /// length is unknown. After an error there are no more messages.
    #[inline]
    pub fn next_message(&mut self) -> Result<Option<Message<'_>>, CaptureError> {
        if self.failed {
            return Ok(None);
        }
        let offset = self.source.offset();
        match self.locate().inspect_err(|_| self.failed = true)? {
            None => Ok(None),
            Some(len) => {
                self.ahead = match self.ahead.messages {
                    0 => Ahead::default(),
                    messages => Ahead {
                        messages: messages - 1,
                        bytes: self.ahead.bytes.saturating_sub(2 + len),
                    },
                };
                Ok(Some(Message {
                    bytes: &self.source.take(2 + len)[2..],
                    offset,
                }))
            }
        }
    }

    /// The length of the next message, which is whole in the buffer.
    #[inline]
    fn locate(&mut self) -> Result<Option<usize>, CaptureError> {
        let prefix = match *self.source.peek(2)? {
            [high, low] => usize::from(u16::from_be_bytes([high, low])),
            [] => return Ok(None),
            _ => return Err(self.source.truncated("message length", 2, 1)),
        };
        let len = match prefix {
            0 => match self.len_by_type()? {
                Some(len) => len,
                None => return Ok(None),
            },
            len => len,
        };
        let have = self.source.peek(2 + len)?.len();
        if have < 2 + len {
            return Err(self.source.truncated("message", 2 + len, have));
        }
        Ok(Some(len))
    }

    #[cold]
    fn len_by_type(&mut self) -> Result<Option<usize>, CaptureError> {
        let Some(&kind) = self.source.peek(3)?.get(2) else {
            return Ok(None);
        };
        match (self.message_len)(kind) {
            Some(len) => Ok(Some(len)),
            None => Err(self.source.garbled(format!(
                "a message has no length and its type {kind:#04x} ('{}') is not known",
                (kind as char).escape_default()
            ))),
        }
    }

    /// How far reading has come, in bytes of decompressed data.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }
}

impl std::fmt::Debug for ItchFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ItchFile")
            .field("offset", &self.offset())
            .finish()
    }
}

/// What a recording is a file of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordingKind {
    /// pcap or pcapng.
    Packets,
    /// Messages behind their length.
    Messages,
    /// DBN of a version.
    Records(u8),
    /// LOBSTER.
    Lines,
}

impl RecordingKind {
    /// Says of a file of this kind that only its header is there.
    pub fn nothing_in(self, name: &dyn std::fmt::Display) -> String {
        match self {
            RecordingKind::Packets => format!("{name} is a packet capture without a frame"),
            RecordingKind::Messages => format!("{name} is a file of ITCH messages without a message"),
            RecordingKind::Records(version) => {
                format!("{name} is a DBN file of version {version} without a record")
            }
            RecordingKind::Lines => format!("{name} is a LOBSTER file without a message"),
        }
    }
}

/// A recording of any kind, told by its first bytes.
#[derive(Debug)]
pub enum Recording {
    /// Packets: pcap or pcapng.
    Packets(CaptureReader),
    /// Messages behind their length.
    Messages(ItchFile),
    /// Records of DBN.
    Records(RecordFile),
    /// Lines of LOBSTER.
    Lines(LineFile),
}

impl Recording {
    /// What it is a file of.
    pub fn kind(&self) -> RecordingKind {
        match self {
            Recording::Packets(_) => RecordingKind::Packets,
            Recording::Messages(_) => RecordingKind::Messages,
            Recording::Records(file) => RecordingKind::Records(file.version()),
            Recording::Lines(_) => RecordingKind::Lines,
        }
    }

    /// Opens a file and finds out what it is. A file of messages is one whose first message has a known type
    /// and either the length of that type or none.
    ///
    /// # Errors
    /// [`CaptureError::Unrecognised`] when it is none of them, or cannot be opened or read.
    pub fn open(path: impl AsRef<Path>, message_len: MessageLen) -> Result<Recording, CaptureError> {
        Recording::new(Source::open(path.as_ref())?, message_len)
    }

    /// Reads from a pipe or from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn from_reader(
        name: &str,
        input: impl Read + Send + 'static,
        message_len: MessageLen,
    ) -> Result<Recording, CaptureError> {
        Recording::new(Source::new(name, Box::new(input))?, message_len)
    }

    fn new(mut source: Source, message_len: MessageLen) -> Result<Recording, CaptureError> {
        if CaptureReader::recognises(source.peek(4)?) {
            return CaptureReader::new(source).map(Recording::Packets);
        }
        if RecordFile::recognises(source.peek(4)?) {
            return RecordFile::new(source).map(Recording::Records);
        }
        if LineFile::recognises(source.peek(256)?) {
            return Ok(Recording::Lines(LineFile::new(source)));
        }
        let is_messages = match *source.peek(3)? {
            [high, low, kind] => {
                let prefix = usize::from(u16::from_be_bytes([high, low]));
                message_len(kind).is_some_and(|len| prefix == 0 || prefix == len)
            }
            _ => false,
        };
        if !is_messages {
            return Err(source.unrecognised("pcap, pcapng, DBN, LOBSTER message or length-framed message")?);
        }
        Ok(Recording::Messages(ItchFile {
            source,
            message_len,
            failed: false,
            ahead: Ahead::default(),
        }))
    }
}
