//! A region copied word for word: by one who reads it, for one who writes another like it somewhere else.
//!
//! ```text
//! region ─► Reader::copy_slot, RingCursor::next_words ─► … a network … ─► MirrorWriter ─► region of the same layout
//! ```
//! What is copied keeps what makes it safe to read: a book or consolidated book is taken whole and put whole,
//! with the number of its write, so that an older copy never replaces a newer one. States of sources are no
//! part of a copied row: who writes the mirror says them, because he knows what he has missed.

use crate::layout::{self, Layout, SectionPlace, header, ring as ring_at, source as source_at};
use crate::ring::{LOST, NUMBER_BITS, RingCursor};
use crate::seqlock::{self, Busy};
use crate::{Reader, Region, SourceState, Word, WriteWord};

/// A section whose slots are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Section {
    /// Rows of channels, without their state.
    Sources = 0,
    /// Latency histograms.
    Histograms = 1,
    /// Books.
    Books = 2,
    /// Consolidated books.
    Supers = 3,
}

impl Section {
    /// All of them.
    pub const ALL: [Section; 4] = [
        Section::Sources,
        Section::Histograms,
        Section::Books,
        Section::Supers,
    ];

    /// The section of a number, `None` when there is none.
    pub fn from_u8(number: u8) -> Option<Section> {
        Section::ALL.into_iter().find(|section| *section as u8 == number)
    }

    /// Whether its slots are written whole, by numbered writes.
    pub fn is_numbered(self) -> bool {
        matches!(self, Section::Books | Section::Supers)
    }

    /// Where it lies.
    pub fn place(self, layout: &Layout) -> SectionPlace {
        match self {
            Section::Sources => layout.sources,
            Section::Histograms => layout.histograms,
            Section::Books => layout.books,
            Section::Supers => layout.supers,
        }
    }

    /// The header's word that counts its slots in use; `None` where every slot may be.
    fn claimed(self) -> Option<usize> {
        match self {
            Section::Sources => None,
            Section::Histograms => Some(header::HISTOGRAMS_CLAIMED),
            Section::Books => Some(header::BOOKS_CLAIMED),
            Section::Supers => Some(header::SUPERS_CLAIMED),
        }
    }
}

/// A record of a ring as its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordWords {
    /// The stamp without its number: source and what it is.
    pub what: u32,
    /// The body.
    pub body: [u64; 15],
}

/// What reading a ring by words gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextWords {
    /// The next record.
    Record(RecordWords),
    /// There is no newer record yet.
    Empty,
    /// So many records were written over before they were read.
    Missed(u64),
}

impl RingCursor {
    /// As [`RingCursor::next`], the record as its words, of whatever kind it is.
    #[inline]
    pub fn next_words<W: Word>(&mut self, reader: &Reader<'_, W>) -> NextWords {
        self.step(reader)
    }
}

impl<W: Word> Reader<'_, W> {
    /// How many slots of a section may be in use: all of them have lower numbers.
    pub fn slots_used(&self, section: Section) -> u32 {
        let count = section.place(self.layout()).count;
        section
            .claimed()
            .map_or(count, |word| self.words()[word].load().min(count.into()) as u32)
    }

    /// The number of a slot's last write, odd while one goes on; 0: not in use, or of a section without
    /// numbers, or there is no such slot.
    #[inline]
    pub fn slot_write(&self, section: Section, index: u32) -> u64 {
        let place = section.place(self.layout());
        match section.is_numbered() && index < place.count {
            true => self.words()[place.offset + place.stride * index as usize].load(),
            false => 0,
        }
    }

    /// Copies the words of a slot; the number of the write that they are of, 0 where a section has none. `to`
    /// has at least the section's stride of words.
    ///
    /// # Errors
    /// The slot was being written at every attempt, is not in use, or there is none of that number, or `to`
    /// is too short.
    #[inline]
    pub fn copy_slot(&self, section: Section, index: u32, to: &mut [u64]) -> Result<u64, Busy> {
        let place = section.place(self.layout());
        if index >= place.count || to.len() < place.stride {
            return Err(Busy);
        }
        let words = &self.words()[place.slot(index)];
        let mut copy = || {
            for (to, word) in to.iter_mut().zip(words) {
                *to = word.load();
            }
        };
        if section.is_numbered() {
            seqlock::read(&words[0], seqlock::ATTEMPTS, copy)?;
            return Ok(to[0]);
        }
        copy();
        Ok(0)
    }

    /// How often the state of a source was said, and what it is. All that was written before the last time is
    /// seen by who reads it after this.
    #[inline]
    pub fn source_changes(&self, source: u16) -> (u64, SourceState) {
        let place = self.layout().sources;
        if u32::from(source) >= place.count {
            return (0, SourceState::Stale);
        }
        let row = &self.words()[place.slot(source.into())];
        let state = SourceState::from_word(row[source_at::STATE].load());
        // SYNC trust: pairs with `SourceWriter::set_state`.
        W::acquire();
        (row[source_at::CHANGES].load(), state)
    }

    /// Whether a row of a source is in use.
    #[inline]
    pub fn source_is_used(&self, source: u16) -> bool {
        let place = self.layout().sources;
        let is_used = u32::from(source) < place.count
            && self.words()[place.slot(source.into())][source_at::FEED_NAME].load() != 0;
        // SYNC row: pairs with `SourceWriter::new`.
        W::acquire();
        is_used
    }

    /// How many values a histogram has; 0 when there is none of that number.
    #[inline]
    pub fn histogram_count(&self, index: u32) -> u64 {
        let place = self.layout().histograms;
        match index < place.count {
            true => self.words()[place.offset + place.stride * index as usize].load(),
            false => 0,
        }
    }

    /// How many counters a source's row has, as the header says.
    pub fn counters_in_rows(&self) -> u64 {
        self.words()[header::COUNTERS].load()
    }
}

impl<'a, W: WriteWord> Region<'a, W> {
    /// Writes a copy of another region into this one, which has the same layout. One thread may, and nobody
    /// else writes.
    pub fn mirror(&self) -> MirrorWriter<'a, W> {
        MirrorWriter { region: *self }
    }
}

/// Writes what was copied of another region.
#[derive(Debug)]
pub struct MirrorWriter<'a, W> {
    region: Region<'a, W>,
}

impl<'a, W: WriteWord> MirrorWriter<'a, W> {
    /// How many counters a source's row has in the region that is copied.
    pub fn counters_in_rows(&self, counters: u64) {
        self.region.words[header::COUNTERS].store(counters);
    }

    /// How many slots of a section are in use there, beyond the section those that were refused.
    pub fn claimed(&self, section: Section, slots: u64) {
        if let Some(word) = section.claimed() {
            let word = &self.region.words[word];
            word.store(slots.max(word.load()));
        }
    }

    /// Puts the words of a slot, of write number `write`; false when it has that one or a newer one already,
    /// or when there is no such slot, or `words` are not as many as a slot has. Of a section without numbers
    /// the newest is put always.
    pub fn put_slot(&mut self, section: Section, index: u32, write: u64, words: &[u64]) -> bool {
        let place = section.place(&self.region.layout);
        if index >= place.count || words.len() != place.stride {
            return false;
        }
        let slot = &self.region.words[place.slot(index)];
        if section.is_numbered() {
            if write == 0 || write & 1 == 1 || write <= slot[0].load() {
                return false;
            }
            self.claimed(section, u64::from(index) + 1);
            slot[0].store(write - 1);
            let odd = seqlock::begin(&slot[0]);
            for (word, value) in slot.iter().zip(words).skip(1) {
                word.store(*value);
            }
            seqlock::end(&slot[0], odd);
            return true;
        }
        self.claimed(section, u64::from(index) + 1);
        for (at, (word, value)) in slot.iter().zip(words).enumerate() {
            let is_state = section == Section::Sources && matches!(at, source_at::CHANGES | source_at::STATE);
            if !is_state {
                word.store(*value);
            }
        }
        true
    }

    /// Says the state of a source, as [`crate::SourceWriter::set_state`] does.
    pub fn set_state(&mut self, source: u16, state: SourceState) {
        let place = self.region.layout.sources;
        if u32::from(source) >= place.count {
            return;
        }
        let row = &self.region.words[place.slot(source.into())];
        if row[source_at::STATE].load() == state as u64 {
            return;
        }
        // SYNC trust: as in `SourceWriter::set_state`.
        W::release();
        row[source_at::CHANGES].store(row[source_at::CHANGES].load().wrapping_add(1));
        W::release();
        row[source_at::STATE].store(state as u64);
    }

    /// Writes ring `ring` from record number `first` on: those before it are said to be lost to who asks for
    /// them. `None` when there is no such ring.
    pub fn ring_from(&self, ring: u32, first: u64) -> Option<RingMirror<'a, W>> {
        let layout = &self.region.layout;
        if ring >= layout.rings.count {
            return None;
        }
        let words = &self.region.words[layout.rings.slot(ring)];
        let mut mirror = RingMirror {
            head: &words[ring_at::HEAD],
            records: &words[ring_at::WORDS..][..layout::record::WORDS * layout.config.ring_records as usize],
            written: first.saturating_sub(layout.config.ring_records.into()),
        };
        mirror.lose(first - mirror.written);
        Some(mirror)
    }
}

/// Writes a ring with the numbers that its records have elsewhere.
#[derive(Debug)]
pub struct RingMirror<'a, W> {
    head: &'a W,
    records: &'a [W],
    written: u64,
}

impl<W: WriteWord> RingMirror<'_, W> {
    /// The number of the next record.
    pub fn next_number(&self) -> u64 {
        self.written
    }

    /// Writes the next record.
    #[inline]
    pub fn record(&mut self, record: &RecordWords) {
        self.put(record.what, Some(&record.body));
        self.head.store(self.written);
    }

    /// The next so many records are lost: readers that come to them are told.
    pub fn lose(&mut self, records: u64) {
        let kept = records.min((self.records.len() / layout::record::WORDS) as u64);
        self.written += records - kept;
        for _ in 0..kept {
            self.put(LOST << 1, None);
        }
        self.head.store(self.written);
    }

    #[inline]
    fn put(&mut self, what: u32, body: Option<&[u64; 15]>) {
        let places = self.records.len() / layout::record::WORDS;
        let place = self.written as usize & (places - 1);
        let Some(record) =
            self.records[place * layout::record::WORDS..].first_chunk::<{ layout::record::WORDS }>()
        else {
            return;
        };
        let stamp = self.written << (64 - NUMBER_BITS) | u64::from(what & 0xff_fffe);
        let word = &record[layout::record::STAMP];
        // SYNC taken, record: as in `RingWriter::write`.
        word.store(stamp | 1);
        W::release();
        if let Some(body) = body {
            for (word, value) in record.iter().zip(body) {
                word.store(*value);
            }
        }
        W::release();
        word.store(stamp);
        self.written += 1;
    }
}
