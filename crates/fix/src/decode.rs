//! From bytes to fields: framing, checksum, one pass that finds every field, typed access on demand.
//!
//! [`frame`] finds the first whole message of a byte stream; [`Index::decode`] checks its checksum and lists
//! its fields in place, with a table by tag; [`Message`] reads values. Nothing is copied or allocated.
//! Source: FIX 4.4 with errata 20030618, volume 2, "Message Integrity" and "Garbled Messages"; volume 1, "FIX
//! Message Format and Delivery".

use tickwire_persist::persist;

use crate::fields::{Field, Fields};
use crate::group::{Group, RepeatingGroup};
use crate::number::{ZEROS, load8, parse_unsigned, value8};
use crate::reject::Fault;
use crate::reject::SessionRejectReason::{EmbeddedSoh, InvalidTagNumber, Other, TagWithoutValue};
use crate::scan::{ENDS, Ends, SOH, STRETCH, Scanner};
use crate::tag;
use crate::time::Second;
use alloc::boxed::Box;
use alloc::vec;
use core::ops::{Deref, Range};

/// Why bytes are not a message. Garbled messages are skipped and counted, never answered (FIX 4.4, volume 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Garbled {
    /// Does not begin with `8=FIX`.
    NoBeginString,
    /// BodyLength is not the second field, or not a number.
    NoBodyLength,
    /// Longer than the receive buffer.
    TooLong,
    /// There is no CheckSum field where BodyLength says.
    NoCheckSum,
    /// The checksum is another one.
    CheckSum {
        /// What the message says.
        said: u8,
        /// What its bytes add up to.
        computed: u8,
    },
    /// MsgType is not the third field.
    NoMsgType,
}

impl core::fmt::Display for Garbled {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Garbled::NoBeginString => f.write_str("it does not begin with 8=FIX"),
            Garbled::NoBodyLength => f.write_str("BodyLength (9) is not the second field, or not a number"),
            Garbled::TooLong => f.write_str("it is longer than MaxMessageSize"),
            Garbled::NoCheckSum => f.write_str("CheckSum (10) is not where BodyLength (9) says"),
            Garbled::CheckSum { said, computed } => {
                write!(
                    f,
                    "CheckSum (10) says {said:03}, the bytes add up to {computed:03}"
                )
            }
            Garbled::NoMsgType => f.write_str("MsgType (35) is not the third field"),
        }
    }
}

/// The beginning of a byte stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A message of this many bytes; its checksum is not verified yet.
    Whole(usize),
    /// More bytes are needed.
    Partial,
    /// No message here; the next one can begin after this many bytes (at least 1).
    Garbled {
        /// How many bytes to drop.
        skip: usize,
        /// Why.
        why: Garbled,
    },
}

const BEGIN: &[u8] = b"8=FIX";
/// `10=nnn` and its separator.
const TRAILER: usize = 7;
/// Longest BeginString value admitted: `FIXT.1.1` has 8.
const BEGIN_STRING_MAX: usize = 12;

/// Finds the first message in `bytes`. Messages longer than `max` bytes are garbled.
#[inline]
pub fn frame(bytes: &[u8], max: usize) -> Frame {
    match usual_length(bytes) {
        Some(len) if len <= max => Frame::Whole(len),
        _ => frame_anything(bytes, max),
    }
}

/// The length of a whole message that begins as nearly all do, a word at a time.
#[inline]
fn usual_length(bytes: &[u8]) -> Option<usize> {
    const FIX: u64 = u64::from_le_bytes(*b"8=FIX\0\0\0");
    const TRAILER_FORM: u64 = u64::from_le_bytes(*b"\x0110=000\x01");
    if load8(bytes, 0)? & 0xff_ffff_ffff != FIX {
        return None;
    }
    // What follows `8=FIX` up to the separator has at most seven bytes.
    let begin = separators(load8(bytes, BEGIN.len())?);
    let body_length = BEGIN.len() + begin.trailing_zeros() as usize / 8 + 1;
    if begin == 0 || !bytes.get(body_length..)?.starts_with(b"9=") {
        return None;
    }
    let digits_at = body_length + 2;
    let word = load8(bytes, digits_at)?;
    let digits = separators(word).trailing_zeros() / 8;
    if !(1..=7).contains(&digits) {
        return None;
    }
    let body_len = value8(word << (64 - 8 * digits) | ZEROS >> (8 * digits))? as usize;
    let total = digits_at + digits as usize + 1 + body_len + TRAILER;
    let trailer = load8(bytes.get(..total)?, total - 8)?;
    // Three digits: the high halves of their bytes are those of '0', the low halves at most 9.
    let form =
        trailer & 0xfff0_f0f0_ffff_ffff | trailer.wrapping_add(0x0006_0606_0000_0000) & 0x00f0_f0f0_0000_0000;
    (form == TRAILER_FORM).then_some(total)
}

/// 0x80 in the lowest byte that is a separator; nothing below it is marked.
#[inline]
pub(crate) const fn separators(word: u64) -> u64 {
    let x = word ^ u64::from_le_bytes([SOH; 8]);
    x.wrapping_sub(0x0101_0101_0101_0101) & !x & 0x8080_8080_8080_8080
}

#[cold]
fn frame_anything(bytes: &[u8], max: usize) -> Frame {
    match frame_at_start(bytes, max) {
        Ok(Some(len)) => Frame::Whole(len),
        Ok(None) => Frame::Partial,
        Err((why, said)) => Frame::Garbled {
            skip: next_start(bytes, said),
            why,
        },
    }
}

/// The length of the message at the start; or why there is none, and how many bytes it says to have before
/// its CheckSum (1 if that is not known): other engines take a garbled message for as long as it says,
/// whatever that swallows.
fn frame_at_start(bytes: &[u8], max: usize) -> Result<Option<usize>, (Garbled, usize)> {
    let known = bytes.len().min(BEGIN.len());
    if bytes[..known] != BEGIN[..known] {
        return Err((Garbled::NoBeginString, 1));
    }
    let window = &bytes[..bytes.len().min(2 + BEGIN_STRING_MAX + 1)];
    let Some(end) = window.iter().position(|&b| b == SOH) else {
        return if window.len() == bytes.len() {
            Ok(None)
        } else {
            Err((Garbled::NoBeginString, 1))
        };
    };
    let rest = &bytes[end + 1..];
    let known = rest.len().min(2);
    if rest[..known] != b"9="[..known] {
        return Err((Garbled::NoBodyLength, 1));
    }
    let mut body_len = 0usize;
    // Eight digits say 99,999,999: longer than any buffer, short of any overflow.
    for (i, &b) in rest.iter().enumerate().skip(2).take(9) {
        match b {
            b'0'..=b'9' if i < 10 => body_len = body_len * 10 + (b - b'0') as usize,
            SOH if i > 2 => {
                let total = end + 1 + i + 1 + body_len + TRAILER;
                return check_trailer(bytes, total, max);
            }
            _ => return Err((Garbled::NoBodyLength, 1)),
        }
    }
    Ok(None)
}

fn check_trailer(bytes: &[u8], total: usize, max: usize) -> Result<Option<usize>, (Garbled, usize)> {
    if total > max {
        return Err((Garbled::TooLong, 1));
    }
    let Some(message) = bytes.get(..total) else {
        return Ok(None);
    };
    match message[total - TRAILER - 1..] {
        [SOH, b'1', b'0', b'=', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', SOH] => Ok(Some(total)),
        _ => Err((Garbled::NoCheckSum, total - TRAILER)),
    }
}

/// Offset (at least `from`) of the next place where a message could begin: `8=FIX`, or a beginning of it at
/// the very end.
fn next_start(bytes: &[u8], from: usize) -> usize {
    let could_begin = |at: &usize| {
        let rest = &bytes[*at..];
        let known = rest.len().min(BEGIN.len());
        rest[..known] == BEGIN[..known]
    };
    (from..bytes.len()).find(could_begin).unwrap_or(bytes.len())
}

/// Slots of the table by tag: a power of two. Tags that share one are found by looking at every field.
const SLOTS: usize = 1024;

/// No field yet; slots of tags of up to three digits that count data are taken for ever, so that a field is
/// asked whether it is one only when its slot is taken.
const EMPTY_TABLE: [u32; SLOTS] = {
    let mut table = [0; SLOTS];
    let mut tag = 0;
    while tag < 1_000 {
        if tag::is_data_length(tag as u32) {
            table[tag] = u32::MAX;
        }
        tag += 1;
    }
    table
};

/// Memory for the fields of one message at a time. Messages are mostly of few kinds that have the same fields
/// in the same order; some are kept, and of a message like one of them only the places of the fields are new.
#[derive(Clone, Debug)]
pub struct Index {
    /// Those kept, and behind them room for a message that is not.
    kinds: Box<[Kind; KEPT + 1]>,
    /// Of the message decoded last.
    latest: usize,
    /// How many messages were like none.
    unlike: u32,
    /// Where separators are in the stretch being read.
    ends: Box<Ends>,
    scanner: Scanner,
    /// Of SendingTime, of a message that was of a kind kept; times of the next ones mostly begin with it.
    second: Second,
}

/// How many kinds of messages are kept.
const KEPT: usize = 4;
/// Of the messages that are like none of those kept, one of so many is kept instead of another. It costs more
/// than one that is not, which is for nothing where every message is of another kind.
const KEPT_OF: u32 = 4;

/// A message of more fields is not kept.
const KNOWN_MAX: usize = 128;

/// A message's fields.
#[derive(Clone, Debug)]
struct Kind {
    fields: Box<[Field]>,
    /// `first` of the message plus the place of the first field whose tag has this slot. What is below
    /// `first` is of earlier messages: nothing is cleared between messages, and those of one kind have the
    /// same `first`.
    by_tag: Box<[u32; SLOTS]>,
    last: Last,
    beginnings: Box<[Beginning]>,
    /// How many fields a message of this kind has; `None`: no message is taken for one.
    known: Option<usize>,
    /// The place of its SendingTime.
    time: Option<u32>,
}

/// How a field begins: its tag and the `=`.
#[derive(Clone, Copy, Debug, Default)]
struct Beginning {
    /// The bytes; what the others are of the first eight does not matter.
    text: u64,
    mask: u64,
    /// How many bytes.
    width: u32,
}

impl Beginning {
    /// Of a tag of so many digits, one to seven.
    #[inline(always)]
    fn new(word: u64, digits: u32) -> Beginning {
        let mask = u64::MAX >> (56 - 8 * digits);
        Beginning {
            text: word & mask,
            mask,
            width: digits + 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Last {
    fields: usize,
    first: u32,
    shares: bool,
    fault: Option<Fault>,
    empty: Option<Fault>,
}

/// A message whose integrity is verified: its bytes and its fields. Values are read through [`Fields`], to
/// which it dereferences.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    all: Fields<'a>,
    by_tag: &'a [u32; SLOTS],
    first: u32,
    /// There are fields whose slot was taken.
    shares: bool,
    /// The first piece that is not `tag=value` nor `tag=`, if any.
    pub fault: Option<Fault>,
    /// The first field without a value, if any.
    pub empty: Option<Fault>,
}

impl Index {
    /// Room for messages of up to `max_fields` fields (at least 8); what a longer one has beyond is not
    /// indexed and makes its [`Message::fault`].
    pub fn new(max_fields: usize) -> Index {
        // Places of fields are 32-bit numbers, and there must be room for those of some messages.
        let max_fields = max_fields.clamp(8, 1 << 24);
        let kind = Kind {
            fields: vec![Field::default(); max_fields].into_boxed_slice(),
            by_tag: Box::new(EMPTY_TABLE),
            last: Last {
                fields: 0,
                first: 1,
                shares: false,
                fault: None,
                empty: None,
            },
            beginnings: vec![Beginning::default(); max_fields.min(KNOWN_MAX)].into_boxed_slice(),
            known: None,
            time: None,
        };
        Index {
            kinds: Box::new(core::array::from_fn(|_| kind.clone())),
            latest: 0,
            unlike: 0,
            ends: Box::new([0; ENDS]),
            scanner: Scanner::detect(),
            second: Second::FIRST,
        }
    }

    /// Verifies the checksum of a whole message, as [`frame`] found it, and lists its fields up to the
    /// CheckSum.
    pub fn decode<'a>(&'a mut self, message: &'a [u8]) -> Result<Message<'a>, Garbled> {
        let Some(body_end) = message.len().checked_sub(TRAILER) else {
            return Err(Garbled::NoCheckSum);
        };
        let first = &message[..body_end.min(STRETCH)];
        let (listed, sum) = self.scanner.list(first, 0, &mut self.ends);
        let ends = &self.ends[..listed];
        let mut kept = self.kinds[..KEPT].iter_mut();
        let sum = match kept.position(|kind| kind.known == Some(listed) && kind.reads(message, ends)) {
            Some(latest) => {
                self.latest = latest;
                let kind = &self.kinds[latest];
                if let Some(time) = kind.time.and_then(|at| kind.fields.get(at as usize)) {
                    self.second
                        .follow(&message[time.start as usize..time.end as usize]);
                }
                sum
            }
            None => self.decode_unlike(message, listed, sum),
        };
        check_sum(&message[body_end..], sum as u8)?;
        let kind = &self.kinds[self.latest];
        match kind.fields.get(2) {
            Some(f) if f.tag == tag::MSG_TYPE && kind.last.fields > 2 => Ok(self.again(message)),
            _ => Err(Garbled::NoMsgType),
        }
    }

    /// Reads a message that is like none of those kept, of whose first stretch these are the separators and
    /// the sum; the sum of all.
    #[inline(never)]
    fn decode_unlike(&mut self, message: &[u8], listed: usize, mut sum: u32) -> u32 {
        let body_end = message.len() - TRAILER;
        let is_kept = self.unlike.is_multiple_of(KEPT_OF) && body_end <= STRETCH;
        self.latest = match is_kept {
            true => (self.unlike / KEPT_OF) as usize % KEPT,
            false => KEPT,
        };
        self.unlike = self.unlike.wrapping_add(1);
        let kind = &mut self.kinds[self.latest];
        let mut reader = Reader {
            first: kind.next_first(),
            fields: &mut kind.fields,
            by_tag: &mut kind.by_tag,
            beginnings: match is_kept {
                true => &mut kind.beginnings,
                false => &mut [],
            },
            count: 0,
            start: 0,
            skip_to: 0,
            length: 0,
            is_particular: false,
            shares: false,
            fault: None,
            empty: None,
        };
        reader.read(message, &self.ends[..listed]);
        for (i, stretch) in message[..body_end].chunks(STRETCH).enumerate().skip(1) {
            let (listed, add) = self.scanner.list(stretch, (i * STRETCH) as u32, &mut self.ends);
            sum = sum.wrapping_add(add);
            reader.read(message, &self.ends[..listed]);
        }
        if reader.start as usize != body_end {
            // A data field's count leads beyond the message.
            reader.fault = reader.fault.or(Some(Fault::value(reader.length)));
        }
        let is_usual = is_kept && !reader.is_particular && reader.fault.is_none();
        kind.known = Some(reader.count).filter(|&count| is_usual && count <= reader.beginnings.len());
        let (first, fields) = (reader.first, &reader.fields[..reader.count]);
        let time = reader.by_tag[tag::SENDING_TIME as usize].checked_sub(first);
        kind.time = time.filter(|at| {
            fields
                .get(*at as usize)
                .is_some_and(|f| f.tag == tag::SENDING_TIME)
        });
        kind.last = Last {
            fields: reader.count,
            first: reader.first,
            shares: reader.shares,
            fault: reader.fault,
            empty: reader.empty,
        };
        sum
    }

    /// The message decoded last, whose bytes these are.
    #[inline]
    pub(crate) fn again<'a>(&'a self, message: &'a [u8]) -> Message<'a> {
        let kind = &self.kinds[self.latest];
        Message {
            all: Fields::new(message, &kind.fields[..kind.last.fields], &self.second),
            by_tag: &kind.by_tag,
            first: kind.last.first,
            shares: kind.last.shares,
            fault: kind.last.fault,
            empty: kind.last.empty,
        }
    }
}

impl Kind {
    /// The first place in the table's numbering for the next message.
    #[inline]
    fn next_first(&mut self) -> u32 {
        let next = self.last.first + self.last.fields as u32;
        if next > u32::MAX / 2 {
            return self.begin_table_anew();
        }
        next
    }

    #[cold]
    fn begin_table_anew(&mut self) -> u32 {
        *self.by_tag = EMPTY_TABLE;
        1
    }

    /// Reads a message that has as many separators as this kind has fields; whether it is of this kind.
    #[inline(never)]
    fn reads(&mut self, message: &[u8], ends: &[u32]) -> bool {
        let mut start = 0;
        let known = self.fields.iter_mut().zip(&*self.beginnings);
        for ((field, beginning), &end) in known.zip(ends) {
            // Asked by one comparison whether all eight bytes are there.
            let at = start as usize;
            let Some(word) = message.get(at..at + 8).and_then(<[u8]>::first_chunk) else {
                return false;
            };
            let value = start + beginning.width;
            let differs = (u64::from_le_bytes(*word) ^ beginning.text) & beginning.mask != 0;
            if differs || value >= end {
                return false;
            }
            (field.start, field.end) = (value, end);
            start = end + 1;
        }
        start as usize + TRAILER == message.len()
    }
}

/// From separators to fields.
struct Reader<'i> {
    fields: &'i mut [Field],
    by_tag: &'i mut [u32; SLOTS],
    /// Of a message that is not kept there is no room for any.
    beginnings: &'i mut [Beginning],
    first: u32,
    count: usize,
    /// Where the next field begins.
    start: u32,
    /// Separators before it are part of a data field, which ends there; 0: there is none.
    skip_to: usize,
    /// The field that says so.
    length: u32,
    /// There was something else than a usual field.
    is_particular: bool,
    /// A field's slot was taken.
    shares: bool,
    fault: Option<Fault>,
    empty: Option<Fault>,
}

impl Reader<'_> {
    /// Reads the fields that end at `ends`.
    #[inline]
    fn read(&mut self, message: &[u8], mut ends: &[u32]) {
        loop {
            let read = match self.beginnings.is_empty() {
                true => self.usual_fields::<false>(message, ends),
                false => self.usual_fields::<true>(message, ends),
            };
            let Some((&end, rest)) = ends.get(read..).and_then(<[u32]>::split_first) else {
                return;
            };
            self.any_field(message, end);
            ends = rest;
        }
    }

    /// Reads fields as long as there is nothing particular about them; how many. Everything else is left to
    /// [`Reader::any_field`], so that this loop has few things to keep in mind; nor is it inlined, to have
    /// all registers.
    #[inline(never)]
    fn usual_fields<const KEEPS: bool>(&mut self, message: &[u8], ends: &[u32]) -> usize {
        if self.skip_to != 0 {
            return 0;
        }
        let (mut start, first, by_tag) = (self.start, self.first, &mut *self.by_tag);
        let mut read = 0;
        // Where a field can begin at the latest: the CheckSum field follows every one. Asked by one
        // comparison, the reading itself is not asked again.
        let Some(last) = message.len().checked_sub(8) else {
            return 0;
        };
        let slots = self.fields[self.count..].iter_mut();
        for ((slot, &end), place) in slots.zip(ends).zip(first + self.count as u32..) {
            if start as usize > last {
                break;
            }
            let Some(word) = load8(message, start as usize) else {
                break;
            };
            let Some((tag, digits)) = usual_tag(word) else {
                break;
            };
            let value = start + digits + 1;
            if value >= end {
                break;
            }
            let known = &mut by_tag[tag as usize % SLOTS];
            if *known < first {
                *known = place;
            } else if tag::is_data_length(tag) {
                break;
            } else {
                self.shares = true;
            }
            *slot = Field {
                tag,
                start: value,
                end,
            };
            if KEEPS && let Some(beginning) = self.beginnings.get_mut((place - first) as usize) {
                *beginning = Beginning::new(word, digits);
            }
            start = end + 1;
            read += 1;
        }
        self.start = start;
        self.count += read;
        read
    }

    /// Reads the field that ends at `end`, if it does.
    #[cold]
    fn any_field(&mut self, message: &[u8], end: u32) {
        if (end as usize) < self.skip_to {
            return; // part of a data field
        }
        let counted = core::mem::take(&mut self.skip_to);
        self.is_particular = true;
        if counted != 0 && counted != end as usize {
            // The data does not end where its length says.
            self.fault = self.fault.or(Some(Fault::value(self.length)));
        }
        let (start, before) = (self.start as usize, self.count.checked_sub(1));
        self.start = end + 1;
        // Eight bytes are there: the CheckSum field follows every field.
        let Some((tag, digits)) = load8(message, start).and_then(parse_tag) else {
            let before = before.and_then(|at| self.fields.get(at)).map(|f| f.tag);
            let fault = no_field(&message[start..end as usize], before);
            self.fault = self.fault.or(Some(fault));
            return;
        };
        let field = Field {
            tag,
            start: start as u32 + digits + 1,
            end,
        };
        if field.start == end {
            self.empty = self.empty.or(Some(Fault::new(TagWithoutValue, tag)));
        }
        if tag::is_data_length(tag) {
            self.length = tag;
            match data_end(message, field) {
                Ok(data_end) => self.skip_to = data_end,
                Err(fault) => self.fault = self.fault.or(Some(fault)),
            }
        }
        let Some(slot) = self.fields.get_mut(self.count) else {
            self.fault = self.fault.or(Some(Fault::new(Other, tag)));
            return;
        };
        *slot = field;
        let place = &mut self.by_tag[tag as usize % SLOTS];
        if *place < self.first {
            *place = self.first + self.count as u32;
        } else {
            self.shares = true;
        }
        self.count += 1;
    }
}

fn check_sum(trailer: &[u8], computed: u8) -> Result<(), Garbled> {
    let &[b'1', b'0', b'=', a, b, c, SOH] = trailer else {
        return Err(Garbled::NoCheckSum);
    };
    let digit = |d: u8| d.wrapping_sub(b'0') as u32;
    let said = digit(a) * 100 + digit(b) * 10 + digit(c);
    if said == computed as u32 {
        Ok(())
    } else {
        Err(Garbled::CheckSum {
            said: said as u8,
            computed,
        })
    }
}

/// What is wrong with a piece that has no tag: no `=` in it, and it belongs to the value before; or what
/// stands before the `=` is no tag.
#[cold]
fn no_field(piece: &[u8], before: Option<u32>) -> Fault {
    let Some(equals) = piece.iter().position(|&b| b == b'=') else {
        return before.map_or(Fault::no_tag(InvalidTagNumber), |tag| {
            Fault::new(EmbeddedSoh, tag)
        });
    };
    let number = core::str::from_utf8(&piece[..equals]).ok();
    Fault {
        reason: InvalidTagNumber,
        tag: number.and_then(|n| n.parse().ok()),
    }
}

/// Tags from here on may be a counterparty's own, whatever the standard calls them.
const OWN_TAGS: u32 = 5_000;

/// Where the data field behind its length field ends; 0 if there is none and there need not be: nothing is
/// counted, or it is no length but a field of the counterparty's own.
#[cold]
fn data_end(message: &[u8], length: Field) -> Result<usize, Fault> {
    let (value, end) = (length.start as usize, length.end as usize);
    if value == end {
        return Ok(0); // empty, which is another fault
    }
    let count = parse_unsigned(message, value, end);
    let data = tag::data_of(length.tag);
    let next = load8(message, end + 1).and_then(parse_tag);
    match (next.filter(|(next, _)| *next == data), count) {
        //= FIX 4.4 vol 1, "Field Delimiter": the length field stands immediately before the data field.
        (None, Some(0)) => Ok(0),
        (None, _) if length.tag >= OWN_TAGS => Ok(0),
        (None, _) => Err(Fault::missing(data)),
        (Some(_), None) => Err(Fault::format(length.tag)),
        (Some((_, digits)), Some(count)) => {
            let begin = end + 1 + digits as usize + 1;
            Ok(begin.saturating_add(usize::try_from(count).unwrap_or(usize::MAX)))
        }
    }
}

/// The tag that a field's first eight bytes say and how many digits it has: one to seven, no leading zero,
/// then `=`.
#[inline(always)]
fn parse_tag(word: u64) -> Option<(u32, u32)> {
    match parse_short_tag(word as u32) {
        Some(short) => Some(short),
        None => parse_long_tag(word),
    }
}

/// The same of a tag that has up to three digits or counts no data.
#[inline(always)]
fn usual_tag(word: u64) -> Option<(u32, u32)> {
    match parse_short_tag(word as u32) {
        Some(short) => Some(short),
        None => parse_long_tag(word).filter(|(tag, _)| !tag::is_data_length(*tag)),
    }
}

/// A tag of one to three digits.
#[inline(always)]
fn parse_short_tag(word: u32) -> Option<(u32, u32)> {
    // The first digit becomes 0 to 8, others 0 to 9, the `=` 0: 0x77 and 0x76 do not carry them into the top
    // bit. What is below its '1', '0' or '=' has that bit, whatever it borrows from those behind it. Two
    // digits are the most common by far.
    let two = (word & 0xff_ffff).wrapping_sub(u32::from_le_bytes(*b"10=\0"));
    if (two.wrapping_add(0x7f_7677) | two) & 0x80_8080 == 0 {
        return Some(((two & 0xff) * 10 + (two >> 8) + 10, 2));
    }
    let three = word.wrapping_sub(u32::from_le_bytes(*b"100="));
    if (three.wrapping_add(0x7f76_7677) | three) & 0x8080_8080 == 0 {
        return Some((
            (three & 0xff) * 100 + (three >> 8 & 0xff) * 10 + (three >> 16) + 100,
            3,
        ));
    }
    let one = (word & 0xffff).wrapping_sub(u32::from_le_bytes(*b"1=\0\0"));
    (one < 9).then(|| (one + 1, 1))
}

/// A tag of four to seven digits.
#[inline(never)]
fn parse_long_tag(word: u64) -> Option<(u32, u32)> {
    let x = word ^ u64::from_le_bytes([b'='; 8]);
    let equals = x.wrapping_sub(0x0101_0101_0101_0101) & !x & 0x8080_8080_8080_8080;
    let digits = equals.trailing_zeros() / 8;
    if !(1..=7).contains(&digits) || word as u8 == b'0' {
        return None;
    }
    let shift = 8 * digits;
    let tag = value8((word << (64 - shift)) | (ZEROS >> shift))?;
    Some((tag as u32, digits))
}

impl<'a> Message<'a> {
    /// What is wrong with its form, if anything.
    #[inline]
    pub fn malformed(&self) -> Option<Fault> {
        self.fault.or(self.empty)
    }

    /// The first field with this tag, by the table.
    #[inline]
    pub fn find(&self, tag: u32) -> Option<Field> {
        let place = self.by_tag[tag as usize % SLOTS];
        let at = place.checked_sub(self.first)?;
        match self.fields().get(at as usize) {
            Some(&field) if field.tag == tag => Some(field),
            _ => self.all.find(tag), // another tag has the slot
        }
    }

    /// The first field whose tag has this tag's slot, if it is this tag's.
    #[inline(always)]
    pub(crate) fn listed(&self, tag: u32) -> Option<Field> {
        // What is of an earlier message is below `first`, and no place.
        let at = self.by_tag[tag as usize % SLOTS].wrapping_sub(self.first);
        self.fields().get(at as usize).copied().filter(|f| f.tag == tag)
    }

    /// The same if it is at one of these places.
    #[inline(always)]
    pub(crate) fn listed_within(&self, tag: u32, places: Range<u32>) -> Option<Field> {
        let at = self.by_tag[tag as usize % SLOTS].wrapping_sub(self.first);
        let field = self.fields().get(at as usize).copied()?;
        (places.contains(&at) && field.tag == tag).then_some(field)
    }

    /// Whether [`Message::listed`] has every field of certain tags: each is there once at most.
    #[inline(always)]
    pub(crate) fn lists_all(&self, is_asked: impl Fn(u32) -> bool) -> bool {
        let is_listed = |(f, place): (&Field, u32)| self.by_tag[f.tag as usize % SLOTS] == place;
        !self.shares
            || self
                .fields()
                .iter()
                .zip(self.first..)
                .all(|(f, place)| !is_asked(f.tag) || is_listed((f, place)))
    }

    /// MsgType (35).
    #[inline]
    pub fn msg_type(&self) -> &'a [u8] {
        self.value(self.fields()[2])
    }

    /// The entries of a repeating group; `None` if its count is not in the message.
    #[inline]
    pub fn group<G: RepeatingGroup>(&self) -> Option<Group<'a, G>> {
        let place = self.by_tag[G::COUNT as usize % SLOTS];
        let at = place.checked_sub(self.first)? as usize;
        match self.fields().get(at) {
            Some(field) if field.tag == G::COUNT => Some(Group::new(self.all, at)),
            _ => self.all.group(),
        }
    }
}

impl<'a> Deref for Message<'a> {
    type Target = Fields<'a>;

    #[inline]
    fn deref(&self) -> &Fields<'a> {
        &self.all
    }
}

persist!(value enum Garbled {
    0 => NoBeginString, 1 => NoBodyLength, 2 => TooLong, 3 => NoCheckSum, 4 => CheckSum { said, computed }, 5 => NoMsgType,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_begins_anew_when_its_numbers_are_used_up() {
        let fields = [(35, b"8".to_vec()), (34, b"7".to_vec()), (11, b"a".to_vec())];
        let messages = [0, 1, 2, 3].map(|n| {
            let account = core::iter::repeat_n((1, b"A".to_vec()), n);
            crate::naive::encode(&fields.iter().cloned().chain(account).collect::<vec::Vec<_>>())
        });
        let mut index = Index::new(8);
        for kind in index.kinds.iter_mut() {
            kind.last.first = u32::MAX / 2 - 20;
        }
        for turn in 0..200 {
            let bytes = &messages[turn / 9 % 4];
            let message = index.decode(bytes).expect("whole");
            for (tag, value) in fields.iter().map(|(tag, value)| (*tag, &value[..])) {
                assert_eq!(
                    message.listed(tag).map(|f| message.value(f)),
                    Some(value),
                    "{turn}"
                );
            }
            assert_eq!(message.find(9_999), None);
        }
        let of_room = index.kinds[KEPT].last.first;
        assert!(of_room < 1_000, "it began anew: {of_room}");
    }
}
