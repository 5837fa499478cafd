//! The file: blocks of packets, and behind them what is in them.
//!
//! ```text
//! "TICKWEVT" version (4)   blocks   index   place of the index (8) its length (4) its CRC (4) "TICKWEVT"
//! block:  packets, each: channel, step of its time, length, events
//! ```
//! Every block begins anew, so that one can be read without those before it. The index has, of each block:
//! its place, length, CRC, events, times, and the instruments in it; of each channel: what it is and what it
//! knew at the end.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use flate2::Crc;
use tickwire_book::Depth;
use tickwire_feed_core::FeedState;
use tickwire_market::{
    Counter, Counters, Currency, Instrument, InstrumentId, MarketEvent, Nanos, PointValue, Price, Qty, SeqNo,
    Symbol, Venue,
};

use crate::codec::{Bytes, Context, encode, put_number, put_step, venue};

/// What a file begins and ends with.
pub const MAGIC: &[u8; 8] = b"TICKWEVT";
/// The version that is written and read.
pub const VERSION: u32 = 2;
const HEAD: usize = 12;
const TAIL: usize = 24;
/// First byte of a packet: the channel knows nothing before it.
pub(crate) const BEGINS: u8 = 1;
/// First byte of a packet: told when nothing comes any more.
pub(crate) const END: u8 = 2;
/// A block is full with so many bytes.
const BLOCK_BYTES: usize = 1 << 18;
/// A block is never longer: one packet more than full.
const BLOCK_MAX: usize = 1 << 24;
/// Channels of one file.
const CHANNELS_MAX: usize = 4096;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The system fails to read or write it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It does not begin or end as one.
    #[error("it is no archive of events, or it is cut off: copy the file again")]
    NotOne,
    /// Its version is another one.
    #[error("it is of version {0}, and this program reads version 2: make it again from the recording")]
    Version(u32),
    /// Its index contradicts itself or its CRC.
    #[error("its index is damaged: copy the file again, or make it again from the recording")]
    Index,
    /// A block contradicts itself or its CRC.
    #[error(
        "its block {0} is damaged: copy the file again, or make it again from the recording; blocks before it are whole"
    )]
    Block(usize),
}

/// What is known of an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    /// What the venue says of it.
    pub instrument: Instrument,
    /// What a point of its price is worth, where that is known.
    pub point: Option<PointValue>,
}

/// A channel of an archive.
#[derive(Clone, PartialEq, Debug)]
pub struct ChannelFacts {
    /// Its name in reports.
    pub name: String,
    /// Its venue.
    pub venue: Venue,
    /// Its protocol's name.
    pub protocol: String,
    /// Which books it needs.
    pub depth: Depth,
    /// Instruments, orders and levels that books of its events need room for.
    pub room: [u32; 3],
    /// How far it could be trusted at the end.
    pub state: FeedState,
    /// The number that was to come next at the end.
    pub next: SeqNo,
    /// What it had counted.
    pub counters: Counters,
    /// Its instruments, in order of number.
    pub instruments: Vec<Known>,
}

/// A block of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockFacts {
    /// Where it is.
    pub place: u64,
    /// How long it is.
    pub bytes: u32,
    crc: u32,
    /// Events in it.
    pub events: u64,
    /// When its first packet was received.
    pub first: Nanos,
    /// When its last one was, or an earlier one with a later time.
    pub last: Nanos,
    /// Channels and instruments of its events, in order.
    pub holds: Vec<(u32, InstrumentId)>,
}

/// Writes an archive.
pub struct ArchiveWriter<W> {
    out: W,
    at: u64,
    block: Vec<u8>,
    packet: Vec<u8>,
    contexts: Vec<(Context, bool)>,
    facts: Vec<Option<ChannelFacts>>,
    blocks: Vec<BlockFacts>,
    holds: BTreeSet<(u32, u32)>,
    last_hold: (u32, u32),
    events: u64,
    first: Nanos,
    last: Nanos,
    time: u64,
}

impl<W: Write> ArchiveWriter<W> {
    /// Begins one.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(mut out: W) -> io::Result<ArchiveWriter<W>> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(ArchiveWriter {
            out,
            at: HEAD as u64,
            block: Vec::with_capacity(BLOCK_BYTES * 2),
            packet: Vec::new(),
            contexts: Vec::new(),
            facts: Vec::new(),
            blocks: Vec::new(),
            holds: BTreeSet::new(),
            last_hold: (u32::MAX, 0),
            events: 0,
            first: Nanos::ZERO,
            last: Nanos::ZERO,
            time: 0,
        })
    }

    /// One more channel, of this venue: its number.
    ///
    /// # Panics
    /// There are 4,096.
    pub fn add_channel(&mut self, venue: Venue) -> usize {
        assert!(
            self.contexts.len() < CHANNELS_MAX,
            "an archive has {CHANNELS_MAX} channels at most"
        );
        self.contexts.push((Context::new(venue), true));
        self.facts.push(None);
        self.contexts.len() - 1
    }

    /// Events of a packet of a channel that was received at `now`, in their order; of none, nothing.
    ///
    /// # Errors
    /// What the system says.
    pub fn packet(&mut self, channel: usize, now: Nanos, events: &[MarketEvent]) -> io::Result<()> {
        for part in events.chunks(1 << 14) {
            self.part(channel, now, part, 0)?;
        }
        Ok(())
    }

    /// The same of what a channel says when nothing comes any more, such as what it does not wait for any
    /// longer. A reader tells it when his time is over, and not before: once a channel, at the end.
    ///
    /// # Errors
    /// What the system says.
    pub fn last_words(&mut self, channel: usize, now: Nanos, events: &[MarketEvent]) -> io::Result<()> {
        match events {
            [] => Ok(()),
            events => self.part(channel, now, events, END),
        }
    }

    fn part(&mut self, channel: usize, now: Nanos, events: &[MarketEvent], head: u8) -> io::Result<()> {
        if self.block.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        if self.block.is_empty() {
            (self.first, self.last, self.time) = (now, now, 0);
            self.contexts.iter_mut().for_each(|(_, is_new)| *is_new = true);
        }
        let (context, is_new) = &mut self.contexts[channel];
        self.packet.clear();
        self.packet.push(head | if *is_new { BEGINS } else { 0 });
        if std::mem::take(is_new) {
            context.reset();
        }
        for event in events {
            encode(&mut self.packet, context, now, event);
            let hold = (channel as u32, event.instrument.0);
            if hold != self.last_hold {
                self.last_hold = hold;
                self.holds.insert(hold);
            }
        }
        put_number(&mut self.block, channel as u64);
        put_step(&mut self.block, self.time, now.0);
        put_number(&mut self.block, self.packet.len() as u64);
        self.block.extend_from_slice(&self.packet);
        self.time = now.0;
        self.last = self.last.max(now);
        self.events += events.len() as u64;
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.out.write_all(&self.block)?;
        let holds = std::mem::take(&mut self.holds).into_iter();
        self.blocks.push(BlockFacts {
            place: self.at,
            bytes: self.block.len() as u32,
            crc: crc(&self.block),
            events: std::mem::take(&mut self.events),
            first: self.first,
            last: self.last,
            holds: holds.map(|(channel, id)| (channel, InstrumentId(id))).collect(),
        });
        self.at += self.block.len() as u64;
        self.block.clear();
        self.last_hold = (u32::MAX, 0);
        Ok(())
    }

    /// What a channel was, and knew at the end.
    pub fn end_channel(&mut self, channel: usize, facts: ChannelFacts) {
        self.facts[channel] = Some(facts);
    }

    /// Events written so far.
    pub fn events(&self) -> u64 {
        self.blocks.iter().map(|block| block.events).sum::<u64>() + self.events
    }

    /// Writes the index: the archive is whole. Its bytes, and what it was written to.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Panics
    /// A channel was not ended.
    pub fn finish(mut self) -> io::Result<(u64, W)> {
        self.end_block()?;
        let mut index = Vec::new();
        put_number(&mut index, self.facts.len() as u64);
        for facts in &self.facts {
            put_channel(&mut index, facts.as_ref().expect("every channel is ended"));
        }
        put_number(&mut index, self.blocks.len() as u64);
        for block in &self.blocks {
            put_block(&mut index, block);
        }
        self.out.write_all(&index)?;
        self.out.write_all(&self.at.to_le_bytes())?;
        self.out.write_all(&(index.len() as u32).to_le_bytes())?;
        self.out.write_all(&crc(&index).to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        Ok((self.at + index.len() as u64 + TAIL as u64, self.out))
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend(text);
}

fn put_channel(out: &mut Vec<u8>, facts: &ChannelFacts) {
    put_text(out, facts.name.as_bytes());
    out.push(facts.venue as u8);
    put_text(out, facts.protocol.as_bytes());
    out.push(match facts.depth {
        Depth::Aggregated => 0,
        Depth::ByOrder => 1,
        Depth::ByPrice => 2,
    });
    facts
        .room
        .iter()
        .for_each(|room| put_number(out, u64::from(*room)));
    out.push(match facts.state {
        FeedState::Building => 0,
        FeedState::Live => 1,
        FeedState::Stale => 2,
        FeedState::Ended => 3,
    });
    put_number(out, facts.next.0);
    let counted: Vec<_> = facts.counters.iter().filter(|(_, count)| *count > 0).collect();
    put_number(out, counted.len() as u64);
    for (counter, count) in counted {
        put_text(out, counter.spec().id.as_bytes());
        put_number(out, count);
    }
    put_number(out, facts.instruments.len() as u64);
    for Known { instrument, point } in &facts.instruments {
        put_number(out, instrument.id.0.into());
        out.push(instrument.venue as u8);
        put_text(out, instrument.symbol.as_bytes());
        put_step(out, 0, instrument.tick.raw() as u64);
        put_number(out, instrument.lot.0.into());
        out.push(u8::from(instrument.is_test));
        put_number(out, point.map_or(0, |point| point.raw() as u64));
        let currency = point.map_or(Currency::NONE, |point| point.currency());
        out.extend(currency.as_str().as_bytes());
    }
}

fn channel_of(bytes: &mut Bytes<'_>) -> Option<ChannelFacts> {
    let text = |bytes: &mut Bytes<'_>| {
        let len = usize::try_from(bytes.number()?).ok()?;
        Some(String::from_utf8_lossy(bytes.take(len)?).into_owned())
    };
    let mut facts = ChannelFacts {
        name: text(bytes)?,
        venue: venue(bytes.byte()?)?,
        protocol: text(bytes)?,
        depth: match bytes.byte()? {
            0 => Depth::Aggregated,
            1 => Depth::ByOrder,
            2 => Depth::ByPrice,
            _ => return None,
        },
        room: [0; 3],
        state: FeedState::Building,
        next: SeqNo(0),
        counters: Counters::default(),
        instruments: Vec::new(),
    };
    for room in &mut facts.room {
        *room = u32::try_from(bytes.number()?).ok()?;
    }
    facts.state = match bytes.byte()? {
        0 => FeedState::Building,
        1 => FeedState::Live,
        2 => FeedState::Stale,
        3 => FeedState::Ended,
        _ => return None,
    };
    facts.next = SeqNo(bytes.number()?);
    for _ in 0..bytes.number()? {
        let (id, count) = (text(bytes)?, bytes.number()?);
        // A counter that a later version has: nobody here asks for it.
        if let Some(counter) = Counter::ALL.iter().find(|counter| counter.spec().id == id) {
            facts.counters.add(*counter, count);
        }
    }
    for _ in 0..bytes.number()? {
        let id = InstrumentId(u32::try_from(bytes.number()?).ok()?);
        let venue = venue(bytes.byte()?)?;
        let len = usize::try_from(bytes.number()?).ok()?;
        let symbol = Symbol::new(bytes.take(len)?)?;
        let tick = Price::from_raw(bytes.step(0)? as i64);
        let lot = Qty(u32::try_from(bytes.number()?).ok()?);
        let is_test = bytes.byte()? != 0;
        let raw = i64::try_from(bytes.number()?).ok()?;
        let currency = Currency::new(*bytes.take(3)?.first_chunk()?)?;
        facts.instruments.push(Known {
            instrument: Instrument {
                id,
                venue,
                symbol,
                tick,
                lot,
                is_test,
            },
            point: PointValue::new(raw, currency),
        });
    }
    Some(facts)
}

fn put_block(out: &mut Vec<u8>, block: &BlockFacts) {
    put_number(out, block.place);
    put_number(out, block.bytes.into());
    out.extend(block.crc.to_le_bytes());
    put_number(out, block.events);
    put_number(out, block.first.0);
    put_step(out, block.first.0, block.last.0);
    put_number(out, block.holds.len() as u64);
    let mut before = (0, 0);
    for (channel, id) in &block.holds {
        put_number(out, u64::from(channel - before.0));
        put_step(out, before.1, id.0.into());
        before = (*channel, id.0.into());
    }
}

fn block_of(bytes: &mut Bytes<'_>, channels: usize) -> Option<BlockFacts> {
    let mut block = BlockFacts {
        place: bytes.number()?,
        bytes: u32::try_from(bytes.number()?).ok()?,
        crc: u32::from_le_bytes(*bytes.take(4)?.first_chunk()?),
        events: bytes.number()?,
        first: Nanos(bytes.number()?),
        last: Nanos::ZERO,
        holds: Vec::new(),
    };
    block.last = Nanos(bytes.step(block.first.0)?);
    let mut before = (0_u64, 0);
    for _ in 0..bytes.number()? {
        before = (before.0.checked_add(bytes.number()?)?, bytes.step(before.1)?);
        if before.0 >= channels as u64 {
            return None;
        }
        block
            .holds
            .push((before.0 as u32, InstrumentId(u32::try_from(before.1).ok()?)));
    }
    Some(block)
}

/// A packet of an archive.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Which channel's.
    pub channel: usize,
    /// When it was received.
    pub now: Nanos,
    /// Its events, which [`crate::ArchiveChannel`] reads.
    pub bytes: &'a [u8],
}

/// Where an archive is.
#[derive(Debug)]
enum Place {
    File(File),
    Memory(Vec<u8>),
}

impl Place {
    fn len(&self) -> io::Result<u64> {
        match self {
            Place::File(file) => Ok(file.metadata()?.len()),
            Place::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Place::File(file) => file.read_exact_at(into, at),
            Place::Memory(bytes) => {
                let from = usize::try_from(at)
                    .ok()
                    .and_then(|at| bytes.get(at..)?.get(..into.len()));
                from.map(|from| into.copy_from_slice(from))
                    .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
            }
        }
    }
}

/// An archive, opened: its index is read.
#[derive(Debug)]
pub struct Archive {
    place: Place,
    channels: Vec<ChannelFacts>,
    blocks: Vec<BlockFacts>,
}

impl Archive {
    /// Whether a file begins as an archive does.
    pub fn recognises(file: &File) -> bool {
        let mut start = [0; 8];
        file.read_exact_at(&mut start, 0).is_ok() && start == *MAGIC
    }

    /// Opens one.
    ///
    /// # Errors
    /// [`ArchiveError`]: it is none, is cut off, is of another version, or its index is damaged.
    pub fn open(file: File) -> Result<Archive, ArchiveError> {
        Archive::at(Place::File(file))
    }

    /// Opens one that is in memory.
    ///
    /// # Errors
    /// As [`Archive::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Archive, ArchiveError> {
        Archive::at(Place::Memory(bytes))
    }

    fn at(file: Place) -> Result<Archive, ArchiveError> {
        let len = file.len()?;
        if len < (HEAD + TAIL) as u64 {
            return Err(ArchiveError::NotOne);
        }
        let mut head = [0; HEAD];
        file.read(&mut head, 0)?;
        let (magic, version) = head.split_at(8);
        if magic != MAGIC {
            return Err(ArchiveError::NotOne);
        }
        let version = version.first_chunk().copied().unwrap_or_default();
        match u32::from_le_bytes(version) {
            VERSION => {}
            other => return Err(ArchiveError::Version(other)),
        }
        let mut tail = [0; TAIL];
        let tail_at = len - TAIL as u64;
        file.read(&mut tail, tail_at)?;
        if tail[16..] != *MAGIC {
            return Err(ArchiveError::NotOne);
        }
        let word = |at: usize| u64::from_le_bytes(tail[at..at + 8].try_into().unwrap_or_default());
        let (place, size, sum) = (word(0), word(8) & 0xffff_ffff, (word(8) >> 32) as u32);
        if place.checked_add(size) != Some(tail_at) {
            return Err(ArchiveError::Index);
        }
        let mut index = vec![0; size as usize];
        file.read(&mut index, place)?;
        if crc(&index) != sum {
            return Err(ArchiveError::Index);
        }
        let (channels, blocks) = index_of(&index, place).ok_or(ArchiveError::Index)?;
        Ok(Archive {
            place: file,
            channels,
            blocks,
        })
    }

    /// Its channels.
    pub fn channels(&self) -> &[ChannelFacts] {
        &self.channels
    }

    /// Its blocks, in the order in which they were written.
    pub fn blocks(&self) -> &[BlockFacts] {
        &self.blocks
    }

    /// The bytes of a block, for [`packets`].
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn block<'b>(&self, number: usize, buffer: &'b mut Vec<u8>) -> Result<&'b [u8], ArchiveError> {
        let facts = self.blocks.get(number).ok_or(ArchiveError::Block(number))?;
        buffer.resize(facts.bytes as usize, 0);
        self.place.read(buffer, facts.place)?;
        match crc(buffer) == facts.crc {
            true => Ok(buffer),
            false => Err(ArchiveError::Block(number)),
        }
    }

    /// The first block that has something received at `time` or later; the number of blocks if none has.
    /// Books of it lack what was before: play from 0 for these.
    pub fn block_at(&self, time: Nanos) -> usize {
        let found = self.blocks.iter().position(|block| block.last >= time);
        found.unwrap_or(self.blocks.len())
    }
}

/// Whether bytes are the index of an archive whose blocks end there: for fuzzing, which does not guess a CRC.
#[doc(hidden)]
pub fn is_index(index: &[u8], end: u64) -> bool {
    index_of(index, end).is_some()
}

fn index_of(index: &[u8], end: u64) -> Option<(Vec<ChannelFacts>, Vec<BlockFacts>)> {
    let mut bytes = Bytes(index);
    let count = bytes.number().filter(|n| *n <= CHANNELS_MAX as u64)?;
    let channels: Vec<_> = (0..count)
        .map(|_| channel_of(&mut bytes))
        .collect::<Option<_>>()?;
    let mut blocks = Vec::new();
    let mut at = HEAD as u64;
    for _ in 0..bytes.number()? {
        let block = block_of(&mut bytes, channels.len())?;
        if block.place != at || block.bytes as usize > BLOCK_MAX {
            return None;
        }
        at = at.checked_add(block.bytes.into())?;
        blocks.push(block);
    }
    (bytes.is_empty() && at == end).then_some((channels, blocks))
}

/// Packets of a block; ends early, with [`Packets::is_damaged`], where bytes are none.
pub fn packets(block: &[u8], channels: usize) -> Packets<'_> {
    Packets {
        bytes: Bytes(block),
        channels,
        time: 0,
        is_damaged: false,
    }
}

/// Where reading an archive has come: its packets in order, a block in memory at a time.
#[derive(Debug)]
pub struct Cursor {
    archive: Archive,
    /// The block that is read next.
    next: usize,
    block: Vec<u8>,
    /// What of the block is still to be looked at, and the time of the last packet before it.
    at: usize,
    time: u64,
    packet: Located,
    /// Packets that were shown before they come, in a ring; counts of what was taken out and put in.
    shown: [Located; SHOWN_MAX],
    out: usize,
    put: usize,
}

/// A packet's place in its block.
#[derive(Clone, Copy, Default, Debug)]
struct Located {
    channel: usize,
    now: Nanos,
    from: usize,
    to: usize,
}

/// Packets that are shown before they come, at most.
const SHOWN_MAX: usize = 16;

impl Cursor {
    /// Before the first packet.
    pub fn new(archive: Archive) -> Cursor {
        Cursor {
            archive,
            next: 0,
            block: Vec::new(),
            at: 0,
            time: 0,
            packet: Located::default(),
            shown: [Located::default(); SHOWN_MAX],
            out: 0,
            put: 0,
        }
    }

    /// How far into the file reading has come.
    pub fn offset(&self) -> u64 {
        let block = self
            .next
            .checked_sub(1)
            .and_then(|at| self.archive.blocks.get(at));
        block.map_or(0, |block| block.place)
    }

    /// Reads the next block that `wants` wants, once the last one has no packet any more; whether there is
    /// one.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn read_block(&mut self, wants: impl Fn(&BlockFacts) -> bool) -> Result<bool, ArchiveError> {
        let found = self.archive.blocks[self.next..].iter().position(wants);
        let Some(found) = found else {
            self.next = self.archive.blocks.len();
            return Ok(false);
        };
        let number = self.next + found;
        self.archive.block(number, &mut self.block)?;
        (self.next, self.at, self.time) = (number + 1, 0, 0);
        (self.out, self.put) = (0, 0);
        Ok(true)
    }

    /// Looks at one more packet of the block.
    #[inline]
    fn locate(&mut self) -> Result<Option<Located>, ArchiveError> {
        let mut packets = Packets {
            bytes: Bytes(&self.block[self.at..]),
            channels: self.archive.channels.len(),
            time: self.time,
            is_damaged: false,
        };
        let Some(packet) = packets.next() else {
            return match packets.is_damaged {
                true => Err(ArchiveError::Block(self.next.saturating_sub(1))),
                false => Ok(None),
            };
        };
        let to = self.block.len() - packets.bytes.0.len();
        let located = Located {
            channel: packet.channel,
            now: packet.now,
            from: to - packet.bytes.len(),
            to,
        };
        (self.at, self.time) = (to, packet.now.0);
        Ok(Some(located))
    }

    /// Goes on to the next packet of the block; whether there is one.
    ///
    /// # Errors
    /// The block contradicts itself.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, ArchiveError> {
        if self.out < self.put {
            self.packet = self.shown[self.out % SHOWN_MAX];
            self.out += 1;
            return Ok(true);
        }
        let located = self.locate()?;
        self.packet = located.unwrap_or_default();
        Ok(located.is_some())
    }

    /// One more of the 16 packets behind the one that it came to, if the block has it; each is shown once.
    /// What is no packet is an error when it comes.
    #[inline]
    pub fn ahead(&mut self) -> Option<Packet<'_>> {
        if self.put - self.out >= SHOWN_MAX {
            return None;
        }
        let located = self.locate().ok()??;
        self.shown[self.put % SHOWN_MAX] = located;
        self.put += 1;
        Some(self.at(located))
    }

    /// The packet that it came to.
    #[inline]
    pub fn packet(&self) -> Packet<'_> {
        self.at(self.packet)
    }

    #[inline]
    fn at(&self, located: Located) -> Packet<'_> {
        Packet {
            channel: located.channel,
            now: located.now,
            bytes: &self.block[located.from..located.to],
        }
    }
}

/// See [`packets`].
pub struct Packets<'a> {
    bytes: Bytes<'a>,
    channels: usize,
    time: u64,
    is_damaged: bool,
}

impl Packets<'_> {
    /// Whether bytes were met that are no packet.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        if self.bytes.is_empty() {
            return None;
        }
        let mut next = || {
            let channel = usize::try_from(self.bytes.number()?)
                .ok()
                .filter(|n| *n < self.channels)?;
            self.time = self.bytes.step(self.time)?;
            let len = usize::try_from(self.bytes.number()?).ok()?;
            Some(Packet {
                channel,
                now: Nanos(self.time),
                bytes: self.bytes.take(len)?,
            })
        };
        let packet = next();
        if packet.is_none() {
            self.is_damaged = true;
            self.bytes = Bytes(&[]);
        }
        packet
    }
}
