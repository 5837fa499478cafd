//! The Sequenced Unit Header and the messages behind it. Cboe Multicast PITCH 2.41.29, "Sequenced Unit
//! Header".
//!
//! On multicast a datagram is one block; on a TCP connection blocks follow each other. Numbers are per unit,
//! start at 1 every day and go from 4 294 967 295 to 1; 0 means that a block's messages have none.

use super::HEAD_SIZE;
use crate::layout::Pod;
use crate::layout::le::{U16, U32};
use crate::layout::{Fields, prefix};
use crate::{Malformed, wire_struct};

wire_struct! {
    /// The header of every block. PITCH 2.41.29, "Sequenced Unit Header".
    pub struct UnitHeader = "SequencedUnitHeader", 8 {
        /// Bytes of the block, header included.
        0 => length: U16, "HdrLength";
        /// Messages that follow; 0: a heartbeat.
        2 => count: u8, "HdrCount";
        3 => unit: u8, "HdrUnit";
        /// Of the first message; of a heartbeat the next to expect. 0: unsequenced.
        4 => sequence: U32, "HdrSequence";
    }
}

/// The most messages one block can hold.
pub const MESSAGES_MAX: u8 = u8::MAX;

/// The number `count` messages after `sequence`, which is not 0: skips 0 where it rolls over.
#[inline]
pub const fn after(sequence: u32, count: u32) -> u32 {
    // Numbers are 1 to 2^32 - 1: a cycle of that length.
    ((sequence as u64 - (sequence != 0) as u64 + count as u64) % u32::MAX as u64) as u32 + 1
}

/// The number before `sequence`, which is not 0.
#[inline]
pub const fn before(sequence: u32) -> u32 {
    after(sequence, u32::MAX - 1)
}

/// How many numbers there are before they come again.
const CYCLE: u64 = u32::MAX as u64;
/// A number this close behind the end of a cycle, or before its beginning, belongs to the cycle next to it.
const NEAR: u64 = 1 << 28;

/// The number on the wire of the day's `nth` message, counted from 1; 0 for 0.
#[inline]
pub const fn wire_sequence(nth: u64) -> u32 {
    match nth {
        0 => 0,
        n => ((n - 1) % CYCLE) as u32 + 1,
    }
}

/// Which message of the day a number on the wire means where `next` is the one expected; 0 for 0.
#[inline]
pub const fn full_sequence(sequence: u32, next: u64) -> u64 {
    let first = sequence as u64;
    if next < CYCLE - NEAR || first == 0 {
        return first;
    }
    let same = (next - 1) / CYCLE * CYCLE + first;
    if same + CYCLE <= next + NEAR {
        same + CYCLE
    } else if same > CYCLE && same + NEAR >= next + CYCLE {
        same - CYCLE
    } else {
        same
    }
}

/// A checked block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The matching unit it is about; 0 on some TCP connections.
    pub unit: u8,
    /// Number of the first message, or the next to expect where there is none; 0: its messages have no
    /// numbers.
    pub sequence: u32,
    /// The messages; none: a heartbeat.
    pub messages: Messages<'a>,
    /// Bytes after the block: ignored in a datagram, worth counting.
    pub trailing: u16,
}

impl Packet<'_> {
    /// The number after its last message; 0 if they have none.
    pub fn next_sequence(&self) -> u32 {
        match self.sequence {
            0 => 0,
            sequence => after(sequence, u32::from(self.messages.left)),
        }
    }
}

/// Reads a datagram. An error means that it is corrupt as a whole and none of its messages may be used.
#[inline]
pub fn packet(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (header, _) = prefix::<UnitHeader>(bytes)?;
    let length = usize::from(header.length.get());
    if length < UnitHeader::SIZE {
        return Err(Malformed::length(0, UnitHeader::SIZE, length));
    }
    let Some((block, rest)) = bytes.split_at_checked(length) else {
        return Err(Malformed::truncated(length, bytes.len()));
    };
    let mut end = UnitHeader::SIZE;
    for _ in 0..header.count {
        end = message_end(block, end)?;
    }
    if end != length {
        return Err(Malformed::length(0, end, length));
    }
    Ok(Packet {
        unit: header.unit,
        sequence: header.sequence.get(),
        messages: Messages {
            bytes: &block[UnitHeader::SIZE..],
            left: header.count,
        },
        trailing: tickwire_wire_core::malformed::saturate(rest.len()),
    })
}

/// Reads the block at the start of a TCP stream and gives its length too; `None` until it is there whole. An
/// error means that the stream cannot be followed any further.
pub fn split(stream: &[u8]) -> Result<Option<(Packet<'_>, usize)>, Malformed> {
    let Ok((header, _)) = prefix::<UnitHeader>(stream) else {
        return Ok(None);
    };
    let length = usize::from(header.length.get());
    match stream.get(..length.max(UnitHeader::SIZE)) {
        Some(block) => packet(block).map(|packet| Some((packet, length))),
        None => Ok(None),
    }
}

/// Where the message at `start` of a block ends; `start` is at most `block.len()`.
#[inline(always)]
fn message_end(block: &[u8], start: usize) -> Result<usize, Malformed> {
    let Some(&[length, kind]) = block[start..].first_chunk::<HEAD_SIZE>() else {
        return Err(Malformed::truncated(start + HEAD_SIZE, block.len()));
    };
    let end = start + usize::from(length);
    if usize::from(length) < HEAD_SIZE {
        return Err(Malformed::length(kind, HEAD_SIZE, length.into()));
    }
    if end > block.len() {
        return Err(Malformed::truncated(end, block.len()));
    }
    Ok(end)
}

/// The messages of a block in order, each with its head: an iterator that has been checked to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Messages<'a> {
    /// Exactly `left` messages.
    bytes: &'a [u8],
    left: u8,
}

impl<'a> Messages<'a> {
    /// The messages not yet walked.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(*self.bytes.first()?);
        let (message, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        self.left -= 1;
        Some(message)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.into(), Some(self.left.into()))
    }
}

impl ExactSizeIterator for Messages<'_> {}
impl core::iter::FusedIterator for Messages<'_> {}

/// Builds one block in a caller's buffer, whose size is the limit of the block.
#[derive(Debug)]
pub struct PacketBuilder<'b> {
    buffer: &'b mut [u8],
    length: usize,
    count: u8,
}

impl<'b> PacketBuilder<'b> {
    /// Starts a block whose first message will have number `sequence`, 0 for messages without. The buffer
    /// must hold at least a header.
    pub fn new(buffer: &'b mut [u8], unit: u8, sequence: u32) -> PacketBuilder<'b> {
        let length = heartbeat(buffer, unit, sequence);
        PacketBuilder {
            buffer,
            length,
            count: 0,
        }
    }

    /// Appends a message, whose first byte is its length; `false`, and nothing changed, if it does not fit or
    /// if that length is another.
    #[must_use]
    pub fn push(&mut self, message: &[u8]) -> bool {
        let end = self.length + message.len();
        let is_whole = message.len() >= HEAD_SIZE && usize::from(message[0]) == message.len();
        if !is_whole || self.count == MESSAGES_MAX || end > self.buffer.len() || end > usize::from(u16::MAX) {
            return false;
        }
        self.buffer[self.length..end].copy_from_slice(message);
        self.length = end;
        self.count += 1;
        true
    }

    /// Messages so far.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Completes the block and gives its length. Without a message it is a heartbeat.
    pub fn finish(self) -> usize {
        // `push` kept the length within 16 bits.
        self.buffer[..2].copy_from_slice(&(self.length as u16).to_le_bytes());
        self.buffer[2] = self.count;
        self.length
    }
}

/// Writes a heartbeat telling the next number, 0 where none is told; gives its length. The buffer must hold a
/// header.
pub fn heartbeat(buffer: &mut [u8], unit: u8, sequence: u32) -> usize {
    assert!(
        buffer.len() >= UnitHeader::SIZE,
        "a packet buffer holds at least the {} bytes of {}",
        UnitHeader::SIZE,
        UnitHeader::NAME
    );
    let header = UnitHeader {
        length: (UnitHeader::SIZE as u16).into(),
        count: 0,
        unit,
        sequence: sequence.into(),
    };
    buffer[..UnitHeader::SIZE].copy_from_slice(header.as_bytes());
    UnitHeader::SIZE
}
