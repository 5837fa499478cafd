//! The journal of a market: everything that came in, in order, so that the same can be done again.
//!
//! What a [`Market`] does depends on its configuration and on its [`Input`]s alone. Live, each input is put
//! into a [`JournalWriter`] and then [applied](Input::apply); the owner brings the bytes to a file **before**
//! it sends anything that follows from them. After a restart the inputs are read back ([`JournalReader`]) and
//! applied in the same order: books, ledger, FIX and OUCH sequence numbers, waiting reports and kept messages
//! are what they were.
//!
//! ```text
//!  file:    "TWJRNL02"  u32 length of the configuration  configuration, UTF-8  u32 sum of it  record*
//!  record:  u32 length of what follows the sum  u32 sum  u64 now  u8 kind  ...       (little-endian)
//!             1 open   2 time   3 stop   4 connect u16 id   5 disconnect u16 id   6 bytes u16 id, bytes
//!             7 transmit u16 id, u32 room   8 resume   9 mark u64 state hash
//!             10 break u16 venue, u64 match number, u8 reason: 0 erroneous, 1 consent, 2 supervisory
//!             11 trading action u16 venue, u32 instrument, u8 action: 0 halt, 1 call, 2 resume
//!             12 asked by u32 user id, u32 process id: whoever asked for what the operator does next
//! ```
//! Bytes of clients are those that a [`Mask`](crate::Mask) left: no password is in a file of this form. One
//! that begins with "TWJRNL01" is of the form before, with bytes as they came, and is read and gone on with
//! as it is. A record's sum covers its place in the file, its length and its bytes. The first record that is
//! cut short or whose sum is wrong ends the journal: a process that died while it wrote left it, and nothing
//! that follows from it was ever sent. Feeds are not journalled: their messages follow from the inputs too.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Nanos};

use crate::market::Market;
use crate::order::{BreakReason, Reject};
use crate::rules::TradingAction;

/// How a file begins.
pub const JOURNAL_MAGIC: [u8; 8] = *b"TWJRNL02";
/// How one of the form before begins, which has the bytes of clients as they came, with their passwords.
pub const JOURNAL_MAGIC_BEFORE: [u8; 8] = *b"TWJRNL01";
/// The longest piece of bytes in one record.
pub const JOURNAL_BYTES_MAX: usize = 1 << 16;
/// Length and sum of a record.
const HEAD: usize = 8;
/// Time and kind.
const FIXED: usize = 9;
/// The most that follows them: a connection's number and its bytes.
const BODY_MAX: usize = JOURNAL_BYTES_MAX + 2;

/// One thing that came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input<'a> {
    /// The day begins.
    Open,
    /// Time has passed: [`Market::on_time`].
    Time,
    /// The day is ended.
    Stop,
    /// An order entry connection is there.
    Connect(u16),
    /// It is gone.
    Disconnect(u16),
    /// Bytes of it, as they were offered.
    Bytes(u16, &'a [u8]),
    /// Bytes for it were taken out, with room for so many.
    Transmit(u16, u32),
    /// A new process goes on: connections are gone, the order flow makes no haste to catch up.
    Resume,
    /// The state hash at this place, to be compared; does nothing.
    Mark(u64),
    /// A trade is broken: the venue's place in the order, the match number and why. See
    /// [`Exchange::break_trade`](crate::Exchange::break_trade).
    Break(u16, u64, BreakReason),
    /// An instrument is halted or resumed: the venue's place in the order, the instrument and what is done.
    /// See [`Exchange::take_action`](crate::Exchange::take_action).
    Action(u16, InstrumentId, TradingAction),
    /// How far UTC is from the time of the inputs, nanoseconds: the system's clock was set. FIX is stamped by
    /// it.
    ClockSet(i64),
    /// Who asked for what follows, as the kernel of the machine said: user id and process id; does nothing.
    AskedBy(u32, u32),
}

impl Input<'_> {
    fn kind(&self) -> u8 {
        match self {
            Input::Open => 1,
            Input::Time => 2,
            Input::Stop => 3,
            Input::Connect(_) => 4,
            Input::Disconnect(_) => 5,
            Input::Bytes(..) => 6,
            Input::Transmit(..) => 7,
            Input::Resume => 8,
            Input::Mark(_) => 9,
            Input::Break(..) => 10,
            Input::Action(..) => 11,
            Input::AskedBy(..) => 12,
            Input::ClockSet(_) => 13,
        }
    }

    /// Does it. Order entry is the first venue's. A break at a venue that there is not is one of an unknown
    /// trade, an action there one with an unknown instrument. What a transmission gives is in `buffer`, which
    /// must have its room.
    pub fn apply(&self, now: Nanos, market: &mut Market, buffer: &mut [u8]) -> Applied {
        match *self {
            Input::Open => market.open(now),
            Input::Time => return Applied::More(market.on_time(now)),
            Input::Stop => market.stop(now),
            Input::Connect(id) => {
                return Applied::Admitted(market.exchange_mut(0).connect(id.into(), now));
            }
            Input::Disconnect(id) => market.exchange_mut(0).disconnect(id.into(), now),
            Input::Bytes(id, bytes) => {
                return Applied::Taken(market.exchange_mut(0).handle_bytes(id.into(), now, bytes));
            }
            Input::Transmit(id, room) => {
                let room = buffer.len().min(room as usize);
                let sent = market
                    .exchange_mut(0)
                    .poll_transmit(id.into(), &mut buffer[..room]);
                return Applied::Sent(sent.map_or(0, <[u8]>::len));
            }
            Input::Resume => market.resume(now),
            Input::Mark(_) | Input::AskedBy(..) => {}
            Input::ClockSet(offset_ns) => market.exchange_mut(0).set_wall_offset(offset_ns),
            Input::Break(venue, match_number, reason) => {
                let exchange = market.get_mut(venue.into());
                let done = exchange.map(|exchange| exchange.break_trade(now, match_number, reason));
                return Applied::Answered(done.unwrap_or(Err(Reject::UnknownTrade)));
            }
            Input::Action(venue, instrument, action) => {
                let exchange = market.get_mut(venue.into());
                let done = exchange.map(|exchange| exchange.take_action(now, instrument, action));
                return Applied::Answered(done.unwrap_or(Err(Reject::UnknownInstrument)));
            }
        }
        Applied::Done
    }
}

/// What an input gave back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// Nothing.
    Done,
    /// Whether more is due already.
    More(bool),
    /// Whether the connection was admitted.
    Admitted(bool),
    /// How many bytes were taken.
    Taken(usize),
    /// How many bytes there are to send.
    Sent(usize),
    /// Whether the operator's request was carried out, or why not.
    Answered(Result<(), Reject>),
}

/// Why a journal cannot be read at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAJournal {
    /// It does not begin like one.
    Magic,
    /// Its first part, with the configuration, is cut short or damaged: no input followed it.
    Head,
}

impl core::fmt::Display for NotAJournal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            NotAJournal::Magic => "is not a journal of an exchange",
            NotAJournal::Head => "is cut short before its first record",
        })
    }
}

/// Puts inputs into bytes.
#[derive(Debug)]
pub struct JournalWriter {
    out: Vec<u8>,
    /// Bytes of the file before `out`.
    place: u64,
}

impl JournalWriter {
    /// A new journal: the first bytes are its head.
    pub fn new(configuration: &str) -> JournalWriter {
        let mut out = Vec::with_capacity(1 << 16);
        out.extend_from_slice(&JOURNAL_MAGIC);
        out.extend_from_slice(&(configuration.len() as u32).to_le_bytes());
        out.extend_from_slice(configuration.as_bytes());
        out.extend_from_slice(&sum(0, configuration.as_bytes()).to_le_bytes());
        JournalWriter { out, place: 0 }
    }

    /// Goes on with one of so many bytes.
    pub fn after(place: u64) -> JournalWriter {
        JournalWriter {
            out: Vec::with_capacity(1 << 16),
            place,
        }
    }

    /// Adds an input. Bytes beyond [`JOURNAL_BYTES_MAX`] are a bug of the owner.
    pub fn put(&mut self, now: Nanos, input: &Input<'_>) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; HEAD]);
        self.out.extend_from_slice(&now.0.to_le_bytes());
        self.out.push(input.kind());
        match *input {
            Input::Open | Input::Time | Input::Stop | Input::Resume => {}
            Input::Connect(id) | Input::Disconnect(id) => self.out.extend_from_slice(&id.to_le_bytes()),
            Input::Bytes(id, bytes) => {
                debug_assert!(bytes.len() <= JOURNAL_BYTES_MAX, "the owner offers less at once");
                self.out.extend_from_slice(&id.to_le_bytes());
                self.out.extend_from_slice(bytes);
            }
            Input::Transmit(id, room) => {
                self.out.extend_from_slice(&id.to_le_bytes());
                self.out.extend_from_slice(&room.to_le_bytes());
            }
            Input::Mark(hash) => self.out.extend_from_slice(&hash.to_le_bytes()),
            Input::ClockSet(offset_ns) => self.out.extend_from_slice(&offset_ns.to_le_bytes()),
            Input::Break(venue, match_number, reason) => {
                self.out.extend_from_slice(&venue.to_le_bytes());
                self.out.extend_from_slice(&match_number.to_le_bytes());
                self.out.push(reason as u8);
            }
            Input::Action(venue, instrument, action) => {
                self.out.extend_from_slice(&venue.to_le_bytes());
                self.out.extend_from_slice(&instrument.0.to_le_bytes());
                self.out.push(action as u8);
            }
            Input::AskedBy(user, process) => {
                self.out.extend_from_slice(&user.to_le_bytes());
                self.out.extend_from_slice(&process.to_le_bytes());
            }
        }
        let length = (self.out.len() - start - HEAD) as u32;
        let sum = sum(self.place + start as u64, &self.out[start + HEAD..]);
        self.out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.out[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
    }

    /// What has not been brought to the file.
    pub fn pending(&self) -> &[u8] {
        &self.out
    }

    /// It has.
    pub fn written(&mut self) {
        self.place += self.out.len() as u64;
        self.out.clear();
    }
}

/// Reads inputs back.
#[derive(Clone, Debug)]
pub struct JournalReader<'a> {
    bytes: &'a [u8],
    configuration: &'a str,
    at: usize,
    /// Where the bytes begin in the file.
    base: u64,
}

impl<'a> JournalReader<'a> {
    /// A journal from its whole bytes.
    pub fn new(bytes: &'a [u8]) -> Result<JournalReader<'a>, NotAJournal> {
        let magic_length = bytes.len().min(JOURNAL_MAGIC.len());
        let begins = |magic: &[u8; 8]| bytes[..magic_length] == magic[..magic_length];
        if !begins(&JOURNAL_MAGIC) && !begins(&JOURNAL_MAGIC_BEFORE) {
            return Err(NotAJournal::Magic);
        }
        let length = word(bytes, 8).ok_or(NotAJournal::Head)? as usize;
        let text = bytes
            .get(12..)
            .and_then(|rest| rest.get(..length))
            .ok_or(NotAJournal::Head)?;
        let expected = word(bytes, 12 + length).ok_or(NotAJournal::Head)?;
        let configuration = core::str::from_utf8(text).map_err(|_| NotAJournal::Head)?;
        if sum(0, text) != expected {
            return Err(NotAJournal::Head);
        }
        Ok(JournalReader {
            bytes,
            configuration,
            at: 16 + length,
            base: 0,
        })
    }

    /// The records of a journal from a place on, of which these are all bytes: where another one ended, which
    /// a snapshot names.
    pub fn behind(place: u64, bytes: &'a [u8]) -> JournalReader<'a> {
        JournalReader {
            bytes,
            configuration: "",
            at: 0,
            base: place,
        }
    }

    /// Whether it is of the form before, which has the bytes of clients with their passwords.
    pub fn has_passwords(&self) -> bool {
        self.bytes.starts_with(&JOURNAL_MAGIC_BEFORE)
    }

    /// The configuration it was written with; empty where its beginning was not read.
    pub fn configuration(&self) -> &'a str {
        self.configuration
    }

    /// Where the next record begins: after the last, the length that the file has to be cut to.
    pub fn place(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Bytes behind the last whole record.
    pub fn torn(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    /// Where the next whole record begins behind one that is not: the journal was not cut short there but
    /// damaged, and what the damage took cannot be replayed. A sum covers a record's place, so that an old
    /// record in another place is not taken for one.
    pub fn whole_behind(&self) -> Option<u64> {
        let mut later = (self.at + 1..self.bytes.len()).filter(|at| {
            let length = word(self.bytes, *at).map_or(0, |length| length as usize);
            let body = || self.bytes.get(at + HEAD..)?.get(..length);
            let is_possible = (FIXED..=FIXED + BODY_MAX).contains(&length);
            is_possible
                && body()
                    .is_some_and(|body| word(self.bytes, at + 4) == Some(sum(self.base + *at as u64, body)))
        });
        later.next().map(|at| self.base + at as u64)
    }
}

impl<'a> Iterator for JournalReader<'a> {
    type Item = (Nanos, Input<'a>);

    /// The next input; `None` at the end, or at the first record that is not whole.
    fn next(&mut self) -> Option<(Nanos, Input<'a>)> {
        let length = word(self.bytes, self.at)? as usize;
        let expected = word(self.bytes, self.at + 4)?;
        let body = self.bytes.get(self.at + HEAD..)?.get(..length)?;
        if sum(self.place(), body) != expected {
            return None;
        }
        let now = Nanos(u64::from_le_bytes(*body.first_chunk()?));
        let rest = body.get(FIXED..)?;
        let id = || rest.first_chunk().map(|id| u16::from_le_bytes(*id));
        let input = match body[FIXED - 1] {
            1 => Input::Open,
            2 => Input::Time,
            3 => Input::Stop,
            4 => Input::Connect(id()?),
            5 => Input::Disconnect(id()?),
            6 => Input::Bytes(id()?, &rest[2..]),
            7 => Input::Transmit(id()?, word(rest, 2)?),
            8 => Input::Resume,
            9 => Input::Mark(u64::from_le_bytes(*rest.first_chunk()?)),
            10 => Input::Break(
                id()?,
                u64::from_le_bytes(*rest.get(2..)?.first_chunk()?),
                reason_of(*rest.get(10)?)?,
            ),
            11 => Input::Action(id()?, InstrumentId(word(rest, 2)?), action_of(*rest.get(6)?)?),
            12 => Input::AskedBy(word(rest, 0)?, word(rest, 4)?),
            13 => Input::ClockSet(i64::from_le_bytes(*rest.first_chunk()?)),
            _ => return None,
        };
        self.at += HEAD + length;
        Some((now, input))
    }
}

fn reason_of(code: u8) -> Option<BreakReason> {
    use BreakReason::*;
    [Erroneous, Consent, Supervisory].get(usize::from(code)).copied()
}

fn action_of(code: u8) -> Option<TradingAction> {
    use TradingAction::*;
    [Halt, Call, Resume].get(usize::from(code)).copied()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// FNV-1a over a place and bytes, eight at a time, folded; tells torn from whole, not friend from foe.
fn sum(place: u64, bytes: &[u8]) -> u32 {
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(23);
    let start = step(step(0xCBF2_9CE4_8422_2325, place), bytes.len() as u64);
    let hash = bytes.chunks(8).fold(start, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        step(hash, u64::from_le_bytes(word))
    });
    (hash ^ hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const INPUTS: [Input<'_>; 15] = [
        Input::Open,
        Input::Time,
        Input::Connect(3),
        Input::Bytes(3, b"8=FIX.4.4"),
        Input::Transmit(3, 4096),
        Input::Mark(0x0123_4567_89AB_CDEF),
        Input::Break(1, 77, BreakReason::Supervisory),
        Input::Disconnect(3),
        Input::Break(0, u64::MAX, BreakReason::Consent),
        Input::Action(1, InstrumentId(70_000), TradingAction::Halt),
        Input::AskedBy(1_000, 4_242),
        Input::ClockSet(-3_600_000_000_000),
        Input::Action(0, InstrumentId(3), TradingAction::Resume),
        Input::Resume,
        Input::Stop,
    ];

    fn journal() -> Vec<u8> {
        let mut writer = JournalWriter::new("[exchange]\nseed = 1\n");
        let mut file = Vec::new();
        for (at, input) in (0..).zip(&INPUTS) {
            writer.put(Nanos(100 + at), input);
            if at % 2 == 0 {
                file.extend_from_slice(writer.pending());
                writer.written();
            }
        }
        file.extend_from_slice(writer.pending());
        file
    }

    #[test]
    fn inputs_come_back_as_they_went_in_whoever_wrote_them() {
        let whole = journal();
        let mut reader = JournalReader::new(&whole).unwrap();
        assert_eq!(reader.configuration(), "[exchange]\nseed = 1\n");
        let expected: Vec<_> = (100..).map(Nanos).zip(INPUTS).collect();
        assert_eq!(reader.by_ref().collect::<Vec<_>>(), expected);
        assert_eq!((reader.place(), reader.torn()), (whole.len() as u64, 0));
        // Another process goes on.
        let mut writer = JournalWriter::after(reader.place());
        writer.put(Nanos(1), &Input::Time);
        let longer = [&whole[..], writer.pending()].concat();
        assert_eq!(JournalReader::new(&longer).unwrap().count(), INPUTS.len() + 1);
    }

    /// A flipped byte anywhere but in the last record: there are whole ones behind it, and they are not to be
    /// cut away.
    #[test]
    fn damage_in_the_midst_is_told_from_a_journal_that_was_cut() {
        let whole = journal();
        let mut reader = JournalReader::new(&whole).unwrap();
        let first = reader.place() as usize;
        let mut last = first;
        while let Some(place) = Some(reader.place()).filter(|_| reader.next().is_some()) {
            last = place as usize;
        }
        assert_eq!(reader.whole_behind(), None);
        for at in first..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            let mut damaged = JournalReader::new(&bytes).unwrap();
            damaged.by_ref().for_each(drop);
            assert_eq!(damaged.whole_behind().is_some(), at < last, "byte {at}");
            let mut cut = JournalReader::new(&whole[..at]).unwrap();
            cut.by_ref().for_each(drop);
            assert_eq!(cut.whole_behind(), None, "cut at {at}");
        }
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_inputs_that_are_whole() {
        let whole = journal();
        let places: Vec<u64> = {
            let mut reader = JournalReader::new(&whole).unwrap();
            let mut places = vec![reader.place()];
            while reader.next().is_some() {
                places.push(reader.place());
            }
            places
        };
        for cut in 0..whole.len() {
            match JournalReader::new(&whole[..cut]) {
                Err(e) => assert!(e == NotAJournal::Head && (cut as u64) < places[0], "{cut}"),
                Ok(mut reader) => {
                    let count = reader.by_ref().count();
                    assert_eq!(count, places.iter().filter(|p| **p <= cut as u64).count() - 1);
                    assert_eq!(reader.place(), places[count]);
                }
            }
        }
        assert_eq!(JournalReader::new(b"something").unwrap_err(), NotAJournal::Magic);
    }

    #[test]
    fn a_changed_byte_ends_the_journal_there_and_old_records_behind_it_do_not_count() {
        let whole = journal();
        let first = JournalReader::new(&whole).unwrap().place() as usize;
        for at in first..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            let read: Vec<_> = JournalReader::new(&damaged).unwrap().collect();
            assert!(read.len() < INPUTS.len());
            assert!(read.iter().zip(INPUTS).all(|(read, input)| read.1 == input));
        }
        // A record in another place is none.
        let moved = [&whole[..first], &whole[first + 17..]].concat();
        assert_eq!(JournalReader::new(&moved).unwrap().count(), 0);
    }
}
