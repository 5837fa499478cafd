//! The writer's side of the region as a whole: laying it out, saying that it is ready and alive, handing out
//! slots.

use crate::layout::{self, Layout, LayoutError, RegionConfig, SectionPlace, header as at};
use crate::{
    BookWriter, HistogramWriter, Reader, RingWriter, SourceIdentity, SourceWriter, SuperWriter, WriteWord,
};
use tickwire_market::{Counter, Nanos};

/// Who writes the region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// When it was made, since the epoch; tells two regions at the same place apart.
    pub generation: Nanos,
    /// The writer's process id.
    pub pid: u32,
}

/// How far the region's writer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum RegionState {
    /// Slots are being laid out; nothing can be read.
    Starting = 1,
    /// Everything can be read.
    Ready = 2,
    /// The writer ended in an orderly way; what can be read is the last it said.
    Ended = 3,
}

/// Every slot is taken. Make the section larger in the configuration and start the writer again, or subscribe
/// to less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full {
    /// Which section.
    pub section: &'static str,
    /// How many slots it has.
    pub slots: u32,
}

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (section, slots) = (self.section, self.slots);
        write!(
            f,
            "all {slots} slots of `{section}` in shared memory are taken; configure more of them or subscribe to less"
        )
    }
}

impl core::error::Error for Full {}

/// A region that this process writes. Copies are handed to the threads that write parts of it.
#[derive(Debug)]
pub struct Region<'a, W> {
    pub(crate) words: &'a [W],
    pub(crate) layout: Layout,
}

impl<W> Clone for Region<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Region<'_, W> {}

impl<'a, W: WriteWord> Region<'a, W> {
    /// Lays out a region in memory that nobody reads yet, as [`RegionState::Starting`]. Every word is
    /// written, so that no page is taken from the system on the hot path.
    ///
    /// # Errors
    /// A configuration out of range.
    ///
    /// # Panics
    /// When there are fewer words than [`Layout::words`].
    pub fn format(words: &'a [W], config: &RegionConfig, identity: Identity) -> Result<Self, LayoutError> {
        let layout = config.layout()?;
        assert!(
            words.len() >= layout.words,
            "the region needs {} words, not {}",
            layout.words,
            words.len()
        );
        let words = &words[..layout.words];
        words.iter().for_each(|word| word.store(0));
        let fields = [
            (at::VERSION, layout::VERSION),
            (at::BYTES, layout.bytes() as u64),
            (at::GENERATION, identity.generation.0),
            (at::PID, identity.pid.into()),
            (at::STATE, RegionState::Starting as u64),
            (at::FEEDS, config.feeds.into()),
            (at::BOOK_LEVELS, config.book_levels.into()),
            (at::SUPER_SHARES, config.super_shares.into()),
            (at::RING_RECORDS, config.ring_records.into()),
            (at::COUNTERS, Counter::ALL.len() as u64),
        ];
        for (word, value) in fields {
            words[word].store(value);
        }
        for (word, place) in layout.sections() {
            words[word].store(place.offset as u64);
            words[word + 1].store(place.stride as u64);
            words[word + 2].store(place.count.into());
        }
        let region = Region { words, layout };
        // SYNC magic: pairs with the acquire of `Reader::attach`.
        W::release();
        words[at::MAGIC].store(layout::MAGIC);
        Ok(region)
    }

    /// Where everything lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Reads what this process writes, for views within it.
    pub fn reader(&self) -> Reader<'a, W> {
        Reader::with_layout(self.words, &self.layout)
    }

    /// Says how far the writer is. A reader attaches from [`RegionState::Ready`] on.
    pub fn set_state(&self, state: RegionState) {
        // SYNC state: pairs with the acquire of `Reader::attach`.
        W::release();
        self.words[at::STATE].store(state as u64);
    }

    /// Says what stamps have on `CLOCK_MONOTONIC`, nanoseconds: readers compute ages by it. Once, before the
    /// region is published.
    pub fn stamp_epoch(&self, epoch_ns: u64) {
        self.words[at::STAMP_EPOCH].store(epoch_ns);
    }

    /// Says that the writer lives: call it every 100 ms with `CLOCK_MONOTONIC`.
    pub fn heartbeat(&self, monotonic: Nanos) {
        self.words[at::HEARTBEAT].store(monotonic.0);
    }

    /// Gives a channel its row. One thread writes it from then on.
    ///
    /// # Panics
    /// When there is no row `source`.
    pub fn source(&self, source: u16, identity: &SourceIdentity) -> SourceWriter<'a, W> {
        SourceWriter::new(*self, source, identity)
    }

    /// Writes books. One for every feed thread; a slot belongs to the thread that claimed it.
    pub fn books(&self) -> BookWriter<'a, W> {
        BookWriter::new(*self)
    }

    /// Writes consolidated books. One for every thread that builds some; a slot belongs to the thread that
    /// claimed it.
    pub fn supers(&self) -> SuperWriter<'a, W> {
        SuperWriter::new(*self)
    }

    /// Writes ring `ring`. One thread may.
    ///
    /// # Panics
    /// When there is no such ring.
    pub fn ring(&self, ring: u32) -> RingWriter<'a, W> {
        RingWriter::new(*self, ring)
    }

    /// A histogram that nobody uses yet, and its number.
    ///
    /// # Errors
    /// None is left.
    pub fn claim_histogram(&self) -> Result<(u32, HistogramWriter<'a, W>), Full> {
        let index = self.claim("histograms", at::HISTOGRAMS_CLAIMED, &self.layout.histograms)?;
        Ok((index, HistogramWriter::new(self.words, &self.layout, index)))
    }

    /// Writes histogram `index`, which this process claimed: for a latency that another thread than its
    /// source's measures.
    ///
    /// # Panics
    /// When there is no such histogram.
    pub fn histogram(&self, index: u32) -> HistogramWriter<'a, W> {
        HistogramWriter::new(self.words, &self.layout, index)
    }

    /// Takes the next slot of a section for good; threads never get the same one.
    pub(crate) fn claim(
        &self,
        section: &'static str,
        claimed: usize,
        place: &SectionPlace,
    ) -> Result<u32, Full> {
        match self.words[claimed].fetch_add(1) {
            slot if slot < place.count.into() => Ok(slot as u32),
            _ => Err(Full {
                section,
                slots: place.count,
            }),
        }
    }
}
