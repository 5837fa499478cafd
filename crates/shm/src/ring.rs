//! The broadcast ring: one thread writes, anybody reads at his own pace, nobody waits. When the ring is full
//! the oldest record is written over; a reader it was taken from learns how many records he missed.
//!
//! ```text
//!            16 words a record: the event's own 15, then the stamp
//!        ┌────┬────┬────┬────┬────┬────┬────┬────┐
//!        │ 16 │ 17 │ 18 │ 19*│ 12 │ 13 │ 14 │ 15 │      * being written over record 11; head = 19
//!        └────┴────┴────┴────┴────┴────┴────┴────┘
//! ```

use crate::layout::{record as at, ring as ring_at};
use crate::mirror::{NextWords, RecordWords};
use crate::{Reader, Region, Word, WriteWord};
use tickwire_market::{
    BookState, BookUpdate, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo,
    Side, TradingStatus, UpdateFlags, Venue, Volume,
};

/// The bits of a stamp that number its record.
pub(crate) const NUMBER_BITS: u32 = 40;
const EVENT: u64 = 1;
const UPDATE: u64 = 2;
/// What a mirror says of a record that it never had.
pub(crate) const LOST: u32 = 3;

/// More records than a ring is ever given: a head beyond it is none. Keeps places from running over.
const HEAD_MAX: u64 = 1 << 62;

/// The stamp of a record that is whole. Numbers are kept modulo 2^40, a day's work of a fast ring.
const fn stamp(number: u64, source: u16, what: u64) -> u64 {
    number << (64 - NUMBER_BITS) | (source as u64) << 8 | what << 1
}

/// How far record number `a` is ahead of `b`, both modulo 2^40; negative when it is behind.
const fn ahead(a: u64, b: u64) -> i64 {
    (a.wrapping_sub(b) << (64 - NUMBER_BITS)) as i64 >> (64 - NUMBER_BITS)
}

/// Writes a ring. Belongs to one thread.
#[derive(Debug)]
pub struct RingWriter<'a, W> {
    head: &'a W,
    records: &'a [[W; at::WORDS]],
    written: u64,
}

impl<'a, W: WriteWord> RingWriter<'a, W> {
    pub(crate) fn new(region: Region<'a, W>, ring: u32) -> RingWriter<'a, W> {
        let words = &region.words[region.layout.rings.slot(ring)];
        let (records, _) = words[ring_at::WORDS..].as_chunks();
        let records = &records[..region.layout.config.ring_records as usize];
        RingWriter {
            head: &words[ring_at::HEAD],
            records,
            written: 0,
        }
    }

    /// How many records were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The words of its head and of as many records as will be written next, to have them fetched before they
    /// are written.
    pub fn words_ahead(&self, records: usize) -> impl Iterator<Item = &'a [W]> + '_ {
        let ahead = (0..records).map(|nth| self.place(self.written.wrapping_add(nth as u64)));
        let records = ahead.map(|place| self.records[place].as_slice());
        core::iter::once(core::slice::from_ref(self.head)).chain(records)
    }

    /// Where a record of this number stands.
    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.records.len() - 1)
    }

    /// Writes an event of a source.
    #[inline]
    pub fn event(&mut self, source: u16, event: &MarketEvent) {
        self.write(source, EVENT, words_of_event(event));
    }

    /// Writes the top of a book of a source.
    #[inline]
    pub fn update(&mut self, source: u16, update: &BookUpdate) {
        self.write(source, UPDATE, words_of_update(update));
    }

    #[inline]
    fn write(&mut self, source: u16, what: u64, body: [u64; 15]) {
        let record = &self.records[self.place(self.written)];
        let stamp = stamp(self.written, source, what);
        record[at::STAMP].store(stamp | 1);
        // SYNC taken: a reader that saw any word written after this sees the new stamp behind its second
        // acquire.
        W::release();
        for (word, value) in record.iter().zip(body) {
            word.store(value);
        }
        // SYNC record: a reader that sees the stamp before its first acquire sees the body.
        W::release();
        record[at::STAMP].store(stamp);
        self.written += 1;
        self.head.store(self.written);
    }
}

/// What a ring holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// An event of a source.
    Event(u16, MarketEvent),
    /// The top of a book of a source.
    Update(u16, BookUpdate),
}

/// What reading a ring gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The next record.
    Record(Record),
    /// There is no newer record yet.
    Empty,
    /// So many records were written over before they were read, or are of a kind this version does not know.
    Missed(u64),
}

/// A reader's place in a ring. Owns no memory, so it can be kept beside the mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingCursor {
    ring: u32,
    next: u64,
}

impl RingCursor {
    /// Which ring.
    pub fn ring(&self) -> u32 {
        self.ring
    }

    /// The number of the record it reads next.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The next record. When records were written over, says how many and goes on an eighth of the ring after
    /// the oldest one left, so that a fast writer does not take that one too.
    #[inline]
    pub fn next<W: Word>(&mut self, reader: &Reader<'_, W>) -> Next {
        match self.step(reader) {
            NextWords::Record(record) => {
                record_of(record.what.into(), &record.body).map_or(Next::Missed(1), Next::Record)
            }
            NextWords::Empty => Next::Empty,
            NextWords::Missed(missed) => Next::Missed(missed),
        }
    }

    /// The next record as its words.
    #[inline]
    pub(crate) fn step<W: Word>(&mut self, reader: &Reader<'_, W>) -> NextWords {
        let Some((head, records)) = ring_of(reader, self.ring) else {
            return NextWords::Empty;
        };
        let record = &records[self.next as usize & (records.len() - 1)];
        let before = record[at::STAMP].load();
        // SYNC record: pairs with `RingWriter::write`.
        W::acquire();
        let distance = ahead(before >> (64 - NUMBER_BITS), self.next);
        if distance < 0 || distance == 0 && (before & 1 == 1 || before & 0xff == 0) {
            return NextWords::Empty;
        }
        if distance == 0 {
            let body = core::array::from_fn(|word| record[word].load());
            // SYNC taken: pairs with `RingWriter::write`.
            W::acquire();
            if record[at::STAMP].load() == before {
                self.next += 1;
                let what = before as u32 & 0xff_ffff;
                return NextWords::Record(RecordWords { what, body });
            }
        }
        self.skip(head_of(head), records.len() as u64)
    }

    /// Goes on behind what was written over.
    #[cold]
    fn skip(&mut self, head: u64, records: u64) -> NextWords {
        // The record numbered `head` may be half written, over the one numbered `head - records`.
        let oldest = (head + 1).saturating_sub(records) + records / 8;
        if head <= self.next {
            // The head is written after the record: it will be seen next time.
            return NextWords::Empty;
        }
        let missed = oldest.saturating_sub(self.next).max(1);
        self.next += missed;
        NextWords::Missed(missed)
    }
}

#[inline]
fn head_of<W: Word>(head: &W) -> u64 {
    head.load().min(HEAD_MAX)
}

#[inline]
fn ring_of<'a, W: Word>(reader: &Reader<'a, W>, ring: u32) -> Option<(&'a W, &'a [[W; at::WORDS]])> {
    let layout = reader.layout();
    if ring >= layout.rings.count {
        return None;
    }
    let words = &reader.words()[layout.rings.slot(ring)];
    let (records, _) = words[ring_at::WORDS..].as_chunks();
    Some((
        &words[ring_at::HEAD],
        records.get(..layout.config.ring_records as usize)?,
    ))
}

impl<W: Word> Reader<'_, W> {
    /// A place in ring `ring` from which everything is read that is written from now on; `None` when there is
    /// no such ring.
    pub fn ring(&self, ring: u32) -> Option<RingCursor> {
        let (head, _) = ring_of(self, ring)?;
        Some(RingCursor {
            ring,
            next: head_of(head),
        })
    }

    /// A place in ring `ring` at the oldest record that can still be read.
    pub fn ring_from_oldest(&self, ring: u32) -> Option<RingCursor> {
        let (head, records) = ring_of(self, ring)?;
        let next = (head_of(head) + 1).saturating_sub(records.len() as u64);
        Some(RingCursor { ring, next })
    }

    /// How many records ring `ring` was ever given; 0 when there is no such ring.
    pub fn ring_written(&self, ring: u32) -> u64 {
        ring_of(self, ring).map_or(0, |(head, _)| head.load())
    }
}

/// An event's words, as they lie in memory on a little-endian machine.
#[inline]
fn words_of_event(e: &MarketEvent) -> [u64; 15] {
    [
        e.seq.0,
        e.venue_ts.0,
        e.recv_ts.0,
        four(
            e.instrument,
            e.venue as u8,
            [e.kind as u8, e.side as u8, e.status as u8],
        ),
        e.order_id.0,
        e.price.raw() as u64,
        e.qty.0,
        e.ref_id,
        e.ask_price.raw() as u64,
        e.ask_qty.0,
        e.near_price.raw() as u64,
        e.far_price.raw() as u64,
        e.imbalance_qty.0,
        u64::from(e.order_count) | u64::from(e.flags.0) << 32,
        u64::from_le_bytes(e.code),
    ]
}

#[inline]
fn words_of_update(u: &BookUpdate) -> [u64; 15] {
    let mut words = [0; 15];
    words[..8].copy_from_slice(&[
        u.seq.0,
        u.venue_ts.0,
        u.recv_ts.0,
        four(u.instrument, u.venue as u8, [u.state as u8, u.changed.0, 0]),
        u.price[0].raw() as u64,
        u.price[1].raw() as u64,
        u.qty[0].0,
        u.qty[1].0,
    ]);
    words
}

/// The fourth word of both: instrument, venue, and three bytes.
#[inline]
fn four(instrument: InstrumentId, venue: u8, rest: [u8; 3]) -> u64 {
    u64::from(instrument.0)
        | u64::from(venue) << 32
        | u64::from(rest[0]) << 40
        | u64::from(rest[1]) << 48
        | u64::from(rest[2]) << 56
}

fn price(word: u64) -> Price {
    Price::from_raw(word as i64)
}

fn side(byte: u64) -> Option<Side> {
    Side::BOTH.into_iter().find(|&side| side as u64 == byte)
}

#[inline]
fn record_of(stamp: u64, words: &[u64; 15]) -> Option<Record> {
    let source = (stamp >> 8) as u16;
    let byte = |at: u32| words[3] >> at & 0xff;
    let venue = Venue::from_u8(byte(32) as u8)?;
    let (seq, venue_ts, recv_ts) = (SeqNo(words[0]), Nanos(words[1]), Nanos(words[2]));
    let instrument = InstrumentId(words[3] as u32);
    match stamp >> 1 & 0x7f {
        EVENT => Some(Record::Event(
            source,
            MarketEvent {
                seq,
                venue_ts,
                recv_ts,
                instrument,
                venue,
                kind: EventKind::from_u8(byte(40) as u8)?,
                side: side(byte(48))?,
                status: TradingStatus::from_u8(byte(56) as u8)?,
                order_id: OrderId(words[4]),
                price: price(words[5]),
                qty: Volume(words[6]),
                ref_id: words[7],
                ask_price: price(words[8]),
                ask_qty: Volume(words[9]),
                near_price: price(words[10]),
                far_price: price(words[11]),
                imbalance_qty: Volume(words[12]),
                order_count: words[13] as u32,
                flags: EventFlags((words[13] >> 32) as u32),
                code: words[14].to_le_bytes(),
                reserved: 0,
            },
        )),
        UPDATE => Some(Record::Update(
            source,
            BookUpdate {
                seq,
                venue_ts,
                recv_ts,
                instrument,
                venue,
                state: match byte(40) {
                    0 => BookState::Building,
                    1 => BookState::Live,
                    _ => BookState::Stale,
                },
                changed: UpdateFlags(byte(48) as u8),
                reserved: 0,
                price: [price(words[4]), price(words[5])],
                qty: [Volume(words[6]), Volume(words[7])],
            },
        )),
        _ => None,
    }
}
