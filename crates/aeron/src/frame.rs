//! What goes over the network: frames of entries.
//!
//! ```text
//! frame   "TWMR"  version (2)  what it is (2)  epoch (8)  generation (8)  number (8)   then entries to its end
//! entry   tag (1)  a (1)  b (2)  length of what follows (4)   body
//! ```
//! Little-endian. `epoch` is when the publisher began, `generation` the feed handler's region: who has
//! another one has something else. `number` counts the frames of a stream of one publisher, one by one. An
//! entry of a tag that a reader does not know is passed over, so that later versions can say more.
//!
//! Records are written against the record before them in the same entry: a mask of the words that differ, and
//! each difference as a LEB128 number with its sign in the lowest bit. Slots leave out words that are zero.

use tickwire_shm::{RecordWords, RegionConfig, Section, SourceState};

/// The first four bytes.
pub const MAGIC: [u8; 4] = *b"TWMR";
/// The version of this format. What a reader of the older one would misread makes it a new version.
pub const VERSION: u16 = 1;
/// Bytes of a frame before its entries.
pub const HEADER: usize = 32;
/// Bytes of an entry before its body.
pub const ENTRY: usize = 8;
/// The longest frame, bytes: a histogram of which no word is zero fits, a book of 64 levels as well.
pub const FRAME_MAX: usize = 16 << 10;
/// The most bytes that one record takes: mask, what it is, 15 words of ten bytes.
pub const RECORD_MAX: usize = 2 + 4 + 15 * 10;

/// Which stream a frame is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Stream {
    /// What happens, as it happens.
    Live = 1,
    /// All that there is, over and over, while somebody listens to it.
    Snapshot = 2,
}

/// The beginning of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// Which stream it is of.
    pub stream: Stream,
    /// When its publisher began, nanoseconds since 1970 UTC.
    pub epoch: u64,
    /// The generation of the region that it is about.
    pub generation: u64,
    /// Its number in its stream, from 0.
    pub number: u64,
}

/// How the feed handler is, as its publisher sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FeedHealth {
    /// It runs.
    Alive = 0,
    /// It ended in an orderly way.
    Ended = 1,
    /// It is silent or dead: what is there is its last state.
    Lost = 2,
}

/// An entry of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry<'a> {
    /// Records of a ring.
    Records {
        /// The ring.
        ring: u16,
        /// The number of the first.
        first: u64,
        /// How many.
        count: u32,
        /// Their bytes, for [`RecordReader`].
        bytes: &'a [u8],
    },
    /// Records of a ring that the publisher has missed.
    Hole {
        /// The ring.
        ring: u16,
        /// The number of the first.
        first: u64,
        /// How many.
        count: u64,
    },
    /// The words of a slot.
    Slot {
        /// Its section.
        section: Section,
        /// Its number.
        index: u32,
        /// Which write of it, 0 where a section has none.
        write: u64,
        /// Its words, for [`words_of`].
        bytes: &'a [u8],
    },
    /// The state of a source.
    State {
        /// Which.
        source: u16,
        /// Its state from here on.
        state: SourceState,
        /// How many states the publisher has said of it.
        said: u64,
    },
    /// That the publisher lives, what the region is, how its feed handler is.
    Beat {
        /// How the feed handler is.
        health: FeedHealth,
        /// Sizes of the region.
        config: RegionConfig,
        /// Counters of a source's row.
        counters: u64,
        /// Slots in use: histograms, books, consolidated books.
        claimed: [u64; 3],
    },
    /// A pass over everything begins.
    Begin {
        /// Which.
        pass: u64,
        /// The number of the live frame that comes next.
        live: u64,
    },
    /// A pass over everything is over; states and places in rings are in the same frame before it.
    End {
        /// Which.
        pass: u64,
        /// The number of the live frame behind which this is true.
        live: u64,
    },
    /// The number of the record of a ring that the live stream says next.
    Place {
        /// The ring.
        ring: u16,
        /// The record.
        next: u64,
    },
    /// Of a tag that this version does not know.
    Unknown(u8),
}

const RECORDS: u8 = 1;
const HOLE: u8 = 2;
const SLOT: u8 = 3;
const STATE: u8 = 4;
const BEAT: u8 = 5;
const BEGIN: u8 = 6;
const END: u8 = 7;
const PLACE: u8 = 8;

/// Why bytes are no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// Something else, or cut off before the end of its header.
    #[error("{0} bytes are no frame of a mirror: another program publishes on this channel and stream")]
    NotAFrame(usize),
    /// Made by another version.
    #[error(
        "a frame of version {0}, this program reads version {VERSION}: use programs of one release on all hosts"
    )]
    Version(u16),
    /// Of no stream that there is.
    #[error("a frame of stream {0}, which there is not")]
    Stream(u16),
    /// An entry goes beyond the frame, or says what cannot be.
    #[error("a frame is damaged at byte {at}: {what}")]
    Damaged {
        /// Where.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
}

/// Writes a frame into memory that is reused.
#[derive(Debug)]
pub struct FrameWriter {
    bytes: Vec<u8>,
    open: Option<OpenRecords>,
}

#[derive(Clone, Copy, Debug)]
struct OpenRecords {
    at: usize,
    ring: u16,
    next: u64,
    count: u32,
    last: RecordWords,
}

impl Default for FrameWriter {
    fn default() -> Self {
        FrameWriter::new()
    }
}

impl FrameWriter {
    /// Memory for one frame.
    pub fn new() -> FrameWriter {
        FrameWriter {
            bytes: Vec::with_capacity(FRAME_MAX),
            open: None,
        }
    }

    /// Begins a frame, which has no number yet.
    pub fn begin(&mut self, stream: Stream, epoch: u64, generation: u64) {
        self.bytes.clear();
        self.open = None;
        self.bytes.extend_from_slice(&MAGIC);
        self.bytes.extend_from_slice(&VERSION.to_le_bytes());
        self.bytes.extend_from_slice(&(stream as u16).to_le_bytes());
        for word in [epoch, generation, 0] {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= HEADER
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Numbers it; its bytes.
    pub fn finish(&mut self, number: u64) -> &[u8] {
        self.close();
        if let Some(place) = self.bytes.get_mut(24..HEADER) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        &self.bytes
    }

    /// Its bytes, once it is finished.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn has_room(&self, bytes: usize, limit: usize) -> bool {
        self.bytes.len() + bytes <= limit.min(FRAME_MAX)
    }

    /// Ends the entry of records that is open.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let length = (self.bytes.len() - open.at - ENTRY) as u32;
        self.bytes[open.at + 4..open.at + 8].copy_from_slice(&length.to_le_bytes());
        self.bytes[open.at + 16..open.at + 20].copy_from_slice(&open.count.to_le_bytes());
    }

    fn entry(&mut self, tag: u8, a: u8, b: u16, words: &[u64]) {
        self.close();
        self.bytes.extend_from_slice(&[tag, a]);
        self.bytes.extend_from_slice(&b.to_le_bytes());
        self.bytes
            .extend_from_slice(&(8 * words.len() as u32).to_le_bytes());
        for word in words {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Adds record `number` of a ring; false when it has no room in a frame of `limit` bytes.
    pub fn record(&mut self, ring: u16, number: u64, record: &RecordWords, limit: usize) -> bool {
        let goes_on = self
            .open
            .is_some_and(|open| open.ring == ring && open.next == number);
        if !self.has_room(RECORD_MAX + if goes_on { 0 } else { ENTRY + 12 }, limit) {
            return false;
        }
        if !goes_on {
            self.close();
            let at = self.bytes.len();
            self.entry(RECORDS, 0, ring, &[number]);
            self.bytes.extend_from_slice(&[0; 4]);
            self.open = Some(OpenRecords {
                at,
                ring,
                next: number,
                count: 0,
                last: RecordWords::default(),
            });
        }
        let Some(open) = &mut self.open else { return false };
        put_record(&mut self.bytes, record, &open.last);
        open.last = *record;
        open.next += 1;
        open.count += 1;
        true
    }

    /// Adds that records of a ring are missed.
    pub fn hole(&mut self, ring: u16, first: u64, count: u64) {
        self.entry(HOLE, 0, ring, &[first, count]);
    }

    /// Adds a slot; false when it has no room in a frame of `limit` bytes, which holds any slot when it is
    /// empty.
    pub fn slot(&mut self, section: Section, index: u32, write: u64, words: &[u64], limit: usize) -> bool {
        let groups = words.len().div_ceil(64);
        let most = ENTRY + 16 + 8 * (groups + words.len());
        if !self.has_room(most, limit) && !self.is_empty() {
            return false;
        }
        self.entry(SLOT, section as u8, 0, &[write]);
        let at = self.bytes.len() - 8 - ENTRY;
        self.bytes.extend_from_slice(&index.to_le_bytes());
        for group in words.chunks(64) {
            let mask = group
                .iter()
                .enumerate()
                .fold(0u64, |mask, (bit, word)| mask | u64::from(*word != 0) << bit);
            self.bytes.extend_from_slice(&mask.to_le_bytes());
            for word in group.iter().filter(|word| **word != 0) {
                self.bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        let length = (self.bytes.len() - at - ENTRY) as u32;
        self.bytes[at + 4..at + 8].copy_from_slice(&length.to_le_bytes());
        true
    }

    /// Adds the state of a source.
    pub fn state(&mut self, source: u16, state: SourceState, said: u64) {
        self.entry(STATE, state as u8, source, &[said]);
    }

    /// Adds a beat.
    pub fn beat(&mut self, health: FeedHealth, config: &RegionConfig, counters: u64, claimed: [u64; 3]) {
        let c = config;
        let sizes = [
            c.feeds,
            c.sources,
            c.histograms,
            c.books,
            c.book_levels,
            c.supers,
            c.super_shares,
            c.rings,
            c.ring_records,
        ]
        .map(u64::from);
        let mut words = [0; 13];
        words[..9].copy_from_slice(&sizes);
        words[9] = counters;
        words[10..].copy_from_slice(&claimed);
        self.entry(BEAT, health as u8, 0, &words);
    }

    /// Adds that a pass begins.
    pub fn pass_begins(&mut self, pass: u64, live: u64) {
        self.entry(BEGIN, 0, 0, &[pass, live]);
    }

    /// Adds that a pass is over.
    pub fn pass_ends(&mut self, pass: u64, live: u64) {
        self.entry(END, 0, 0, &[pass, live]);
    }

    /// Adds a place in a ring.
    pub fn place(&mut self, ring: u16, next: u64) {
        self.entry(PLACE, 0, ring, &[next]);
    }
}

fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64) >> 63) as u64
}

fn unzigzag(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

fn put_record(bytes: &mut Vec<u8>, record: &RecordWords, last: &RecordWords) {
    let at = bytes.len();
    bytes.extend_from_slice(&[0; 2]);
    let mut mask = 0u16;
    if record.what != last.what {
        mask |= 1 << 15;
        bytes.extend_from_slice(&record.what.to_le_bytes());
    }
    for (bit, (word, before)) in record.body.iter().zip(&last.body).enumerate() {
        if word == before {
            continue;
        }
        mask |= 1 << bit;
        let mut rest = zigzag(word.wrapping_sub(*before));
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes[at..at + 2].copy_from_slice(&mask.to_le_bytes());
}

/// Reads the records of an entry one by one.
#[derive(Clone, Debug)]
pub struct RecordReader<'a> {
    bytes: &'a [u8],
    left: u32,
    last: RecordWords,
}

impl<'a> RecordReader<'a> {
    /// Of the bytes and the count of [`Entry::Records`].
    pub fn new(bytes: &'a [u8], count: u32) -> RecordReader<'a> {
        RecordReader {
            bytes,
            left: count,
            last: RecordWords::default(),
        }
    }

    fn read(&mut self) -> Option<RecordWords> {
        let (mask, mut rest) = self.bytes.split_first_chunk::<2>()?;
        let mask = u16::from_le_bytes(*mask);
        if mask >> 15 == 1 {
            let (what, after) = rest.split_first_chunk::<4>()?;
            self.last.what = u32::from_le_bytes(*what);
            rest = after;
        }
        for (bit, word) in self.last.body.iter_mut().enumerate() {
            if mask >> bit & 1 == 0 {
                continue;
            }
            let (mut number, mut shift) = (0u64, 0);
            loop {
                let (&byte, after) = rest.split_first()?;
                rest = after;
                number |= u64::from(byte & 0x7f).checked_shl(shift)?;
                if byte < 0x80 {
                    break;
                }
                shift += 7;
            }
            *word = word.wrapping_add(unzigzag(number));
        }
        self.bytes = rest;
        Some(self.last)
    }
}

impl Iterator for RecordReader<'_> {
    type Item = Result<RecordWords, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let record = self.read();
        if record.is_none() {
            self.left = 0;
        }
        Some(record.ok_or(FrameError::Damaged {
            at: 0,
            what: "a record ends beyond its entry",
        }))
    }
}

/// The words of a slot, into `to`, all of which are written.
///
/// # Errors
/// There are not as many as `to` has.
pub fn words_of(mut bytes: &[u8], to: &mut [u64]) -> Result<(), FrameError> {
    let damaged = FrameError::Damaged {
        at: 0,
        what: "a slot has not as many words as its section says",
    };
    for group in to.chunks_mut(64) {
        let (mask, rest) = bytes.split_first_chunk::<8>().ok_or(damaged)?;
        let mask = u64::from_le_bytes(*mask);
        bytes = rest;
        if group.len() < 64 && mask >> group.len() != 0 {
            return Err(damaged);
        }
        for (bit, word) in group.iter_mut().enumerate() {
            *word = 0;
            if mask >> bit & 1 == 1 {
                let (value, rest) = bytes.split_first_chunk::<8>().ok_or(damaged)?;
                *word = u64::from_le_bytes(*value);
                bytes = rest;
            }
        }
    }
    match bytes.is_empty() {
        true => Ok(()),
        false => Err(damaged),
    }
}

/// A frame that was received.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its beginning.
    pub header: FrameHeader,
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the beginning of a frame.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn new(bytes: &'a [u8]) -> Result<Frame<'a>, FrameError> {
        let header = bytes
            .first_chunk::<HEADER>()
            .filter(|header| header[..4] == MAGIC)
            .ok_or(FrameError::NotAFrame(bytes.len()))?;
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let word = |at: usize| word_at(header, at).unwrap_or(0);
        if half(4) != VERSION {
            return Err(FrameError::Version(half(4)));
        }
        let stream = match half(6) {
            1 => Stream::Live,
            2 => Stream::Snapshot,
            other => return Err(FrameError::Stream(other)),
        };
        Ok(Frame {
            header: FrameHeader {
                stream,
                epoch: word(8),
                generation: word(16),
                number: word(24),
            },
            bytes: &bytes[HEADER..],
        })
    }

    /// Its entries, in order. The first error ends them.
    pub fn entries(&self) -> Entries<'a> {
        Entries {
            bytes: self.bytes,
            at: 0,
        }
    }
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*word))
}

/// Goes through the entries of a frame.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let at = HEADER + self.at;
        let read = rest.split_first_chunk::<ENTRY>().and_then(|(head, rest)| {
            let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
            Some((head, rest.get(..length)?))
        });
        let Some((head, body)) = read else {
            self.at = self.bytes.len();
            let what = "an entry ends beyond the frame";
            return Some(Err(FrameError::Damaged { at, what }));
        };
        self.at += ENTRY + body.len();
        let entry = entry_of(*head, body);
        if entry.is_none() {
            self.at = self.bytes.len();
        }
        let what = "an entry is shorter than its kind, or says what there is not";
        Some(entry.ok_or(FrameError::Damaged { at, what }))
    }
}

fn entry_of(head: [u8; ENTRY], body: &[u8]) -> Option<Entry<'_>> {
    let b = u16::from_le_bytes([head[2], head[3]]);
    let word = |index: usize| word_at(body, 8 * index);
    Some(match head[0] {
        RECORDS => {
            let count = body.get(8..)?.first_chunk::<4>()?;
            Entry::Records {
                ring: b,
                first: word(0)?,
                count: u32::from_le_bytes(*count),
                bytes: body.get(12..)?,
            }
        }
        HOLE => Entry::Hole {
            ring: b,
            first: word(0)?,
            count: word(1)?,
        },
        SLOT => {
            let index = body.get(8..)?.first_chunk::<4>()?;
            Entry::Slot {
                section: Section::from_u8(head[1])?,
                write: word(0)?,
                index: u32::from_le_bytes(*index),
                bytes: body.get(12..)?,
            }
        }
        STATE => Entry::State {
            source: b,
            state: match head[1] {
                0 => SourceState::Building,
                1 => SourceState::Live,
                2 => SourceState::Stale,
                3 => SourceState::Ended,
                _ => return None,
            },
            said: word(0)?,
        },
        BEAT => {
            let size = |index: usize| u32::try_from(word(index)?).ok();
            Entry::Beat {
                health: match head[1] {
                    0 => FeedHealth::Alive,
                    1 => FeedHealth::Ended,
                    2 => FeedHealth::Lost,
                    _ => return None,
                },
                config: RegionConfig {
                    feeds: size(0)?,
                    sources: size(1)?,
                    histograms: size(2)?,
                    books: size(3)?,
                    book_levels: size(4)?,
                    supers: size(5)?,
                    super_shares: size(6)?,
                    rings: size(7)?,
                    ring_records: size(8)?,
                },
                counters: word(9)?,
                claimed: [word(10)?, word(11)?, word(12)?],
            }
        }
        BEGIN => Entry::Begin {
            pass: word(0)?,
            live: word(1)?,
        },
        END => Entry::End {
            pass: word(0)?,
            live: word(1)?,
        },
        PLACE => Entry::Place {
            ring: b,
            next: word(0)?,
        },
        other => Entry::Unknown(other),
    })
}
