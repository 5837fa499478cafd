//! Blocks: headers of the live lines and of the snapshot stream, checksum, the walk over messages, the
//! builder.

use super::{
    BLOCK_SIZE_MAX, MESSAGES_MAX, MessageHeader, SnapshotMessageHeader, UnixTime, VERSION_LEGACY,
    VERSION_PILLAR, VERSION_SNAPSHOT, bad,
};
use crate::layout::Pod;
use crate::layout::{Char, Fields, U16, U32, prefix};
use crate::{Malformed, wire_enum, wire_struct};
use tickwire_wire_core::{length, vectors};

wire_struct! {
    /// Before the messages of every block but the snapshot's. CQS 2.10a, "Block Header".
    pub struct BlockHeader = "BlockHeader", 20 {
        /// [`VERSION_PILLAR`], [`VERSION_LEGACY`].
        0 => version: u8, "Version";
        /// Of the whole block, padding included.
        1 => size: U16, "BlockSize";
        /// See [`Feed`].
        3 => feed: Char, "DataFeedIndicator";
        /// See [`Transmission`].
        4 => transmission: Char, "RetransmissionIndicator";
        /// Of the first message. Each message uses one number, but see [`ControlType`](super::ControlType).
        5 => seq: U32, "BlockSequenceNumber";
        9 => messages: u8, "MessagesInBlock";
        10 => time: UnixTime, "SIPBlockTimestamp";
        /// Low 16 bits of the sum of all other bytes.
        18 => checksum: U16, "BlockChecksum";
    }
}

wire_struct! {
    /// Before the messages of a block of the snapshot stream. CQS 2.10a, "Snapshot Service".
    pub struct SnapshotHeader = "SnapshotHeader", 24 {
        /// [`VERSION_SNAPSHOT`].
        0 => version: u8, "Version";
        /// Of the whole block, padding included.
        1 => size: U16, "BlockSize";
        /// Of the snapshot stream.
        3 => seq: U32, "BlockSequenceNumber";
        7 => messages: u8, "MessagesInBlock";
        /// See [`Delivery`].
        8 => delivery: u8, "DeliveryFlag";
        /// The last message of the live line whose effect the snapshot holds.
        9 => last_seq: U32, "LastSequenceNumber";
        13 => rollover: u8, "Rollover";
        14 => time: UnixTime, "SIPBlockTimestamp";
        /// Low 16 bits of the sum of all other bytes.
        22 => checksum: U16, "BlockChecksum";
    }
}

wire_enum! {
    /// `DataFeedIndicator` of [`BlockHeader`].
    pub enum Feed {
        /// CQS.
        b'Q' => Quotes;
        /// CTS.
        b'T' => Trades;
    }
}

wire_enum! {
    /// `RetransmissionIndicator` of [`BlockHeader`].
    pub enum Transmission {
        /// Sent for the first time.
        b'O' => Original;
        /// Sent again on request.
        b'V' => Retransmitted;
    }
}

wire_enum! {
    /// `DeliveryFlag` of [`SnapshotHeader`].
    pub enum Delivery {
        /// The first block of several.
        1 => First;
        /// Neither first nor last.
        2 => Middle;
        /// The last block.
        3 => Last;
        /// The only block.
        4 => Only;
    }
}

impl SnapshotHeader {
    /// A block whose first message is `seq`, holding the effect of every live message up to `last_seq`; the
    /// builder sets the rest.
    pub fn at(seq: u32, delivery: Delivery, last_seq: u32, rollover: u8, time: UnixTime) -> SnapshotHeader {
        SnapshotHeader {
            version: VERSION_SNAPSHOT,
            seq: seq.into(),
            delivery: delivery as u8,
            last_seq: last_seq.into(),
            rollover,
            time,
            ..SnapshotHeader::BLANK
        }
    }
}

impl BlockHeader {
    /// An original block whose first message is `seq`; the builder sets the rest.
    pub fn at(feed: Feed, seq: u32, time: UnixTime) -> BlockHeader {
        BlockHeader {
            version: VERSION_PILLAR,
            feed: feed.into(),
            transmission: Transmission::Original.into(),
            seq: seq.into(),
            time,
            ..BlockHeader::BLANK
        }
    }
}

/// A checked block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block<'a, H = BlockHeader> {
    /// Its header.
    pub header: &'a H,
    /// What it carries.
    pub messages: Messages<'a>,
    /// Bytes of the datagram after the block: ignored, worth counting.
    pub trailing: u16,
}

/// Reads a block. An error means that it is corrupt as a whole and none of its messages may be used.
#[inline]
pub fn parse_block(bytes: &[u8]) -> Result<Block<'_>, Malformed> {
    let (header, _) = prefix::<BlockHeader>(bytes)?;
    if !matches!(header.version, VERSION_PILLAR | VERSION_LEGACY) {
        return Err(bad(0, header.version));
    }
    if Feed::from_wire(header.feed.0).is_none() {
        return Err(bad(3, header.feed.0));
    }
    if Transmission::from_wire(header.transmission.0).is_none() {
        return Err(bad(4, header.transmission.0));
    }
    let block = own_bytes(bytes, BlockHeader::SIZE, header.size.get())?;
    verify(block, BlockHeader::SIZE, header.checksum.get())?;
    Ok(Block {
        header,
        messages: Messages::split::<BlockHeader>(block, header.messages)?,
        trailing: tickwire_wire_core::malformed::saturate(bytes.len() - block.len()),
    })
}

/// Reads a block of the snapshot stream.
pub fn parse_snapshot_block(bytes: &[u8]) -> Result<Block<'_, SnapshotHeader>, Malformed> {
    let (header, _) = prefix::<SnapshotHeader>(bytes)?;
    if header.version != VERSION_SNAPSHOT {
        return Err(bad(0, header.version));
    }
    if Delivery::from_wire(header.delivery).is_none() {
        return Err(bad(8, header.delivery));
    }
    let block = own_bytes(bytes, SnapshotHeader::SIZE, header.size.get())?;
    verify(block, SnapshotHeader::SIZE, header.checksum.get())?;
    Ok(Block {
        header,
        messages: Messages::split::<SnapshotHeader>(block, header.messages)?,
        trailing: tickwire_wire_core::malformed::saturate(bytes.len() - block.len()),
    })
}

/// The block within a datagram, which may have a trailer.
fn own_bytes(bytes: &[u8], header: usize, size: u16) -> Result<&[u8], Malformed> {
    let size = usize::from(size);
    if size < header {
        return Err(Malformed::length(0, header, size));
    }
    bytes
        .get(..size)
        .ok_or_else(|| Malformed::truncated(size, bytes.len()))
}

/// Compares a block, whose header of `header` bytes ends with the checksum, with its checksum.
fn verify(block: &[u8], header: usize, have: u16) -> Result<(), Malformed> {
    match checksum(block, header) {
        expected if expected == have => Ok(()),
        expected => Err(Malformed::Checksum { expected, have }),
    }
}

/// Low 16 bits of the sum of a block's bytes without the last two of its header.
fn checksum(block: &[u8], header: usize) -> u16 {
    let [skipped_low, skipped_high] = [block[header - 2], block[header - 1]];
    (vectors::sum(block) as u16)
        .wrapping_sub(skipped_low.into())
        .wrapping_sub(skipped_high.into())
}

/// The messages of a block in order: an iterator that has been checked to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Messages<'a> {
    /// Exactly `left` messages.
    bytes: &'a [u8],
    left: u8,
}

impl<'a> Messages<'a> {
    /// The messages that fill a block behind its header; one byte of padding follows if they end at an odd
    /// place.
    fn split<H: Header>(block: &'a [u8], count: u8) -> Result<Messages<'a>, Malformed> {
        let start = size_of::<H>();
        let mut end = start;
        for _ in 0..count {
            end = message_end(block, end, H::MESSAGE_HEADER)?;
        }
        match block.len() - end {
            left if left == end % 2 => Ok(Messages {
                bytes: &block[start..end],
                left: count,
            }),
            0 => Err(Malformed::truncated(end + 1, block.len())),
            left => Err(Malformed::Trailing {
                extra: tickwire_wire_core::malformed::saturate(left - end % 2),
            }),
        }
    }
}

/// Where the message at `start`, of at least so many bytes, ends; `start` is at most `block.len()`.
#[inline(always)]
fn message_end(block: &[u8], start: usize, least: usize) -> Result<usize, Malformed> {
    let Some(&[high, low, _, kind]) = block[start..].first_chunk::<4>() else {
        return Err(Malformed::truncated(start + least, block.len()));
    };
    let length = length::next_by([high, low]);
    if length < least {
        return Err(Malformed::length(kind, least, length));
    }
    match start + length {
        end if end > block.len() => Err(Malformed::truncated(end, block.len())),
        end => Ok(end),
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let length = length::next_by(*self.bytes.first_chunk()?);
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

/// What a [`BlockBuilder`] completes: the header of a live block, or of one of the snapshot stream.
pub trait Header: Fields + Pod {
    /// Bytes of the header of each message.
    const MESSAGE_HEADER: usize;
    /// Where in it the message's number within the block stands, if it has one.
    const MESSAGE_ID: Option<usize>;
    /// Sets size and number of messages.
    fn complete(&mut self, size: u16, messages: u8);
}

impl Header for BlockHeader {
    const MESSAGE_HEADER: usize = MessageHeader::SIZE;
    const MESSAGE_ID: Option<usize> = Some(core::mem::offset_of!(MessageHeader, message_id));

    fn complete(&mut self, size: u16, messages: u8) {
        (self.size, self.messages) = (size.into(), messages);
    }
}

impl Header for SnapshotHeader {
    const MESSAGE_HEADER: usize = SnapshotMessageHeader::SIZE;
    const MESSAGE_ID: Option<usize> = None;

    fn complete(&mut self, size: u16, messages: u8) {
        (self.size, self.messages) = (size.into(), messages);
    }
}

/// Builds one block in a caller's buffer; its size, or [`BLOCK_SIZE_MAX`] if that is less, is the limit of
/// the block.
#[derive(Debug)]
pub struct BlockBuilder<'b, H = BlockHeader> {
    buffer: &'b mut [u8],
    header: H,
    messages: u8,
    length: usize,
}

impl<'b, H: Header> BlockBuilder<'b, H> {
    /// Starts a block. The buffer must hold at least a header.
    pub fn new(buffer: &'b mut [u8], header: H) -> BlockBuilder<'b, H> {
        assert!(
            buffer.len() >= size_of::<H>(),
            "a block buffer holds at least the {} bytes of {}",
            size_of::<H>(),
            H::NAME
        );
        let limit = buffer.len().min(BLOCK_SIZE_MAX);
        BlockBuilder {
            buffer: &mut buffer[..limit],
            header,
            messages: 0,
            length: size_of::<H>(),
        }
    }

    /// Appends a message given as its parts (the struct, then appendages), and sets its length and its number
    /// within the block. `false`, and nothing changed, if it does not fit or has no message header.
    #[must_use]
    pub fn push(&mut self, parts: &[&[u8]]) -> bool {
        let size: usize = parts.iter().map(|part| part.len()).sum();
        let end = self.length + size;
        let padded = end + end % 2;
        let Ok(length) = u16::try_from(size) else {
            return false;
        };
        let headed = parts.first().is_some_and(|part| part.len() >= H::MESSAGE_HEADER);
        if !headed || self.messages == MESSAGES_MAX || padded > self.buffer.len() {
            return false;
        }
        self.messages += 1;
        let mut at = self.length;
        for part in parts {
            self.buffer[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.buffer[self.length..self.length + 2].copy_from_slice(&length.to_be_bytes());
        if let Some(id) = H::MESSAGE_ID {
            self.buffer[self.length + id] = self.messages;
        }
        self.length = end;
        true
    }

    /// Messages so far.
    pub fn count(&self) -> u8 {
        self.messages
    }

    /// Completes the block and gives its size.
    pub fn finish(mut self) -> usize {
        if self.length % 2 == 1 {
            self.buffer[self.length] = 0;
            self.length += 1;
        }
        let (block, header) = (&mut self.buffer[..self.length], size_of::<H>());
        self.header.complete(self.length as u16, self.messages); // at most BLOCK_SIZE_MAX
        block[..header].copy_from_slice(self.header.as_bytes());
        let sum = checksum(block, header);
        block[header - 2..header].copy_from_slice(&sum.to_be_bytes());
        self.length
    }
}
