//! MoldUDP64 1.00 (2009-07, reformatted 2024-08): numbered messages in UDP datagrams, downstream and
//! requests.
//!
//! ```text
//!  0 session[10]   10 sequence number u64   18 message count u16   20 blocks: u16 length, message; ...
//! ```
//! Big-endian. The sequence number is that of the first message in the packet; count 0 is a heartbeat and
//! 65535 the end of the session, both with the next number to expect. A request has the same 20 bytes and no
//! blocks.
//!
//! [`parse`] checks a datagram once and whole, so that the walk over its messages cannot fail.

use crate::layout::Pod;
use crate::layout::{Alpha, Fields, U16, U64, prefix};
use crate::{Malformed, wire_struct};
use tickwire_market::SeqNo;
use tickwire_wire_core::length;

/// The `MessageCount` that says end of session.
pub const END_OF_SESSION: u16 = 0xFFFF;
/// The most messages one packet can hold.
pub const MESSAGES_MAX: u16 = END_OF_SESSION - 1;

wire_struct! {
    /// The header of every packet, and all of a request. MoldUDP64 1.00, "Downstream Packet" and "Request
    /// Packet".
    pub struct Header = "DownstreamPacket", 20 {
        0 => session: Alpha<10>, "Session";
        /// Of the first message; in heartbeat and end of session the next to expect; in a request the first
        /// wanted.
        10 => sequence: U64, "SequenceNumber";
        /// 0 heartbeat, [`END_OF_SESSION`]; in a request how many are wanted.
        18 => count: U16, "MessageCount";
    }
}

/// A checked downstream packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Identifies the stream of numbers; never mix two of them.
    pub session: [u8; 10],
    /// Number of the first message, or the next to expect where there is none.
    pub seq: SeqNo,
    /// What it carries.
    pub payload: Payload<'a>,
    /// Bytes after the last message (padding, capture trailers): ignored, worth counting.
    pub trailing: u16,
}

/// What a packet carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload<'a> {
    /// Nothing: the sender is alive.
    Heartbeat,
    /// Nothing, and no number from the packet's on will ever be used.
    EndOfSession,
    /// One message or more.
    Messages(Blocks<'a>),
}

impl Packet<'_> {
    /// How many sequence numbers it uses.
    pub fn count(&self) -> u16 {
        match &self.payload {
            Payload::Heartbeat | Payload::EndOfSession => 0,
            Payload::Messages(blocks) => blocks.left,
        }
    }

    /// The number after its last message.
    pub fn next_seq(&self) -> SeqNo {
        self.seq.advance(self.count().into())
    }
}

/// Reads a downstream packet. An error means the packet is corrupt as a whole and none of its messages may be
/// used.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, Malformed> {
    let (header, rest) = prefix::<Header>(bytes)?;
    let (payload, rest) = match header.count.get() {
        0 => (Payload::Heartbeat, rest),
        END_OF_SESSION => (Payload::EndOfSession, rest),
        count => {
            let (blocks, rest) = Blocks::split(rest, count)?;
            (Payload::Messages(blocks), rest)
        }
    };
    Ok(Packet {
        session: header.session.0,
        seq: SeqNo(header.sequence.get()),
        payload,
        trailing: tickwire_wire_core::malformed::saturate(rest.len()),
    })
}

/// The messages of a packet in order: an iterator that has been checked to its end. A message may be empty;
/// it uses a number all the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocks<'a> {
    /// Exactly `left` blocks.
    bytes: &'a [u8],
    left: u16,
}

impl<'a> Blocks<'a> {
    /// The first `count` blocks of `bytes`, and what follows them.
    #[inline]
    pub fn split(bytes: &'a [u8], count: u16) -> Result<(Blocks<'a>, &'a [u8]), Malformed> {
        let mut end = 0;
        for _ in 0..count {
            end = block_end(bytes, end)?;
        }
        let (blocks, rest) = bytes.split_at(end);
        Ok((
            Blocks {
                bytes: blocks,
                left: count,
            },
            rest,
        ))
    }

    /// The blocks not yet walked, lengths included: [`Blocks::split`] reads them again.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Where the block at `start` ends; `start` is at most `bytes.len()`.
#[inline(always)]
fn block_end(bytes: &[u8], start: usize) -> Result<usize, Malformed> {
    let Some(length) = bytes[start..].first_chunk::<2>() else {
        return Err(Malformed::truncated(
            Header::SIZE + start + 2,
            Header::SIZE + bytes.len(),
        ));
    };
    let end = start + 2 + length::next_by(*length);
    if end > bytes.len() {
        return Err(Malformed::truncated(
            Header::SIZE + end,
            Header::SIZE + bytes.len(),
        ));
    }
    Ok(end)
}

impl<'a> Iterator for Blocks<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.bytes.split_first_chunk::<2>()?;
        let (message, rest) = rest.split_at_checked(length::next_by(*length))?;
        self.bytes = rest;
        self.left -= 1;
        Some(message)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.into(), Some(self.left.into()))
    }
}

impl ExactSizeIterator for Blocks<'_> {}
impl core::iter::FusedIterator for Blocks<'_> {}

/// Asks a re-request server for messages; it answers with ordinary packets to the sender's address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The session the numbers belong to.
    pub session: [u8; 10],
    /// The first message wanted.
    pub seq: SeqNo,
    /// How many; the answer may hold fewer, whatever fits one datagram.
    pub count: u16,
}

impl Request {
    /// Bytes on the wire.
    pub const SIZE: usize = Header::SIZE;

    /// Reads a request; bytes after it are refused.
    pub fn parse(bytes: &[u8]) -> Result<Request, Malformed> {
        match prefix::<Header>(bytes)? {
            (header, []) => Ok(Request {
                session: header.session.0,
                seq: SeqNo(header.sequence.get()),
                count: header.count.get(),
            }),
            (_, rest) => Err(Malformed::Trailing {
                extra: tickwire_wire_core::malformed::saturate(rest.len()),
            }),
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; Request::SIZE] {
        let mut bytes = [0; Request::SIZE];
        bytes.copy_from_slice(header(self.session, self.seq, self.count).as_bytes());
        bytes
    }
}

fn header(session: [u8; 10], seq: SeqNo, count: u16) -> Header {
    Header {
        session: Alpha(session),
        sequence: seq.0.into(),
        count: count.into(),
    }
}

/// Builds one packet in a caller's buffer, whose size is the limit of the packet.
#[derive(Debug)]
pub struct PacketBuilder<'b> {
    buffer: &'b mut [u8],
    length: usize,
    count: u16,
}

impl<'b> PacketBuilder<'b> {
    /// Starts a packet whose first message will have number `seq`. The buffer must hold at least a header.
    pub fn new(buffer: &'b mut [u8], session: [u8; 10], seq: SeqNo) -> PacketBuilder<'b> {
        let length = write_header(buffer, session, seq, 0);
        PacketBuilder {
            buffer,
            length,
            count: 0,
        }
    }

    /// Appends a message; `false`, and nothing changed, if it does not fit.
    #[must_use]
    pub fn push(&mut self, message: &[u8]) -> bool {
        let Ok(length) = u16::try_from(message.len()) else {
            return false;
        };
        let end = self.length + 2 + message.len();
        if self.count == MESSAGES_MAX || end > self.buffer.len() {
            return false;
        }
        self.buffer[self.length..self.length + 2].copy_from_slice(&length.to_be_bytes());
        self.buffer[self.length + 2..end].copy_from_slice(message);
        self.length = end;
        self.count += 1;
        true
    }

    /// Appends `count` messages that are framed already: blocks one behind the other. `false`, and nothing
    /// changed, if they do not all fit.
    #[must_use]
    #[inline]
    pub fn push_blocks(&mut self, count: u16, blocks: &[u8]) -> bool {
        let end = self.length + blocks.len();
        if count > MESSAGES_MAX - self.count || end > self.buffer.len() {
            return false;
        }
        self.buffer[self.length..end].copy_from_slice(blocks);
        self.length = end;
        self.count += count;
        true
    }

    /// Bytes that still fit, the lengths of messages included.
    pub fn room(&self) -> usize {
        self.buffer.len() - self.length
    }

    /// Messages so far.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// Completes the packet and gives its length. Without a message it is a heartbeat.
    pub fn finish(self) -> usize {
        self.buffer[18..Header::SIZE].copy_from_slice(&self.count.to_be_bytes());
        self.length
    }
}

/// Writes a heartbeat telling the next number; gives its length. The buffer must hold a header.
pub fn heartbeat(buffer: &mut [u8], session: [u8; 10], next: SeqNo) -> usize {
    write_header(buffer, session, next, 0)
}

/// Writes an end of session telling the next number; gives its length. The buffer must hold a header.
pub fn end_of_session(buffer: &mut [u8], session: [u8; 10], next: SeqNo) -> usize {
    write_header(buffer, session, next, END_OF_SESSION)
}

fn write_header(buffer: &mut [u8], session: [u8; 10], seq: SeqNo, count: u16) -> usize {
    assert!(
        buffer.len() >= Header::SIZE,
        "a packet buffer holds at least the {} bytes of {}",
        Header::SIZE,
        Header::NAME
    );
    buffer[..Header::SIZE].copy_from_slice(header(session, seq, count).as_bytes());
    Header::SIZE
}
