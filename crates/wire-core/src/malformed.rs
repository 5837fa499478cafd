//! Why bytes could not be read.

use core::fmt;

/// What is wrong with a packet or message. Small and `Copy`: it is counted, the bytes are dropped, nothing
/// else changes. Lengths that do not fit 16 bits are given as 65535.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Malformed {
    /// It ends too early.
    Truncated {
        /// Bytes the layout needs.
        need: u16,
        /// Bytes there are.
        have: u16,
    },
    /// A length field or the length of a message contradicts the layout.
    Length {
        /// The type of the message or packet, as on the wire; 0 for a protocol without types at this level.
        kind: u8,
        /// Bytes the layout has.
        expected: u16,
        /// Bytes the length field says, or that there are.
        have: u16,
    },
    /// A message type this protocol version does not have.
    UnknownType(u8),
    /// A message template this protocol version does not have (protocols with 16-bit types).
    UnknownTemplate(u16),
    /// A byte that its field does not allow.
    BadValue {
        /// Where, from the start of the message.
        offset: u16,
        /// The byte.
        value: u8,
    },
    /// Bytes after the last message of a packet, where the protocol allows none.
    Trailing {
        /// How many.
        extra: u16,
    },
    /// A number too large for its meaning.
    OutOfRange {
        /// Where, from the start of the message.
        offset: u16,
    },
    /// A checksum that is not the sum of the bytes.
    Checksum {
        /// Computed from the bytes.
        expected: u16,
        /// What the packet says.
        have: u16,
    },
}

impl Malformed {
    /// [`Malformed::Truncated`] from lengths in memory.
    #[cold]
    pub fn truncated(need: usize, have: usize) -> Malformed {
        Malformed::Truncated {
            need: saturate(need),
            have: saturate(have),
        }
    }

    /// [`Malformed::Length`] from lengths in memory.
    #[cold]
    pub fn length(kind: u8, expected: usize, have: usize) -> Malformed {
        Malformed::Length {
            kind,
            expected: saturate(expected),
            have: saturate(have),
        }
    }
}

/// A length or a count as errors carry it: 65 535 stands for everything above.
pub fn saturate(n: usize) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Malformed::Truncated { need, have } => write!(f, "truncated: needs {need} bytes, has {have}"),
            Malformed::Length { kind, expected, have } => {
                write!(
                    f,
                    "wrong length for type 0x{kind:02X}: {have} bytes instead of {expected}"
                )
            }
            Malformed::UnknownType(kind) => write!(f, "unknown message type 0x{kind:02X}"),
            Malformed::UnknownTemplate(id) => write!(f, "unknown message template {id}"),
            Malformed::BadValue { offset, value } => {
                write!(f, "impossible value 0x{value:02X} at offset {offset}")
            }
            Malformed::Trailing { extra } => write!(f, "{extra} bytes after the last message"),
            Malformed::OutOfRange { offset } => write!(f, "number out of range at offset {offset}"),
            Malformed::Checksum { expected, have } => {
                write!(f, "checksum is 0x{have:04X}, the bytes sum to 0x{expected:04X}")
            }
        }
    }
}

impl core::error::Error for Malformed {}
