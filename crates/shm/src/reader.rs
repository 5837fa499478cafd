//! The reader's side of the region: is this one, and can it be read.

use crate::layout::{self, Layout, RegionConfig, SectionPlace, header as at};
use crate::{RegionState, Word};
use tickwire_market::Nanos;

/// Why a region cannot be read, with what to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachError {
    /// Something else, or nothing at all.
    NotARegion,
    /// Made by another version.
    Version {
        /// The layout it has.
        found: u64,
    },
    /// Shorter than it says, or its header contradicts itself.
    Damaged {
        /// What is wrong.
        what: &'static str,
    },
    /// Its writer has not finished making it.
    NotReady,
}

impl core::fmt::Display for AttachError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotARegion => f.write_str(
                "this is not shared memory of Tickwire; give the folder that `tickwire feed` was started with",
            ),
            Self::Version { found } => write!(
                f,
                "the shared memory has layout version {found}, this program reads version {}; use programs of one release",
                layout::VERSION
            ),
            Self::Damaged { what } => write!(
                f,
                "the shared memory is damaged ({what}); stop `tickwire feed`, remove the file and start it again"
            ),
            Self::NotReady => f.write_str("the feed handler is still starting; try again in a moment"),
        }
    }
}

impl core::error::Error for AttachError {}

/// A region that somebody writes. Copies are free; none of them can disturb the writer.
#[derive(Debug)]
pub struct Reader<'a, W> {
    words: &'a [W],
    layout: Layout,
}

impl<W> Clone for Reader<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Reader<'_, W> {}

impl<'a, W: Word> Reader<'a, W> {
    /// Reads the header of a region. Whatever it holds, nothing that is read through the result panics or
    /// leaves the words.
    ///
    /// # Errors
    /// It is none, of another version, damaged, or not ready.
    pub fn attach(words: &'a [W]) -> Result<Reader<'a, W>, AttachError> {
        let damaged = |what| AttachError::Damaged { what };
        if words.first().is_none_or(|magic| magic.load() != layout::MAGIC) {
            return Err(AttachError::NotARegion);
        }
        let header = words
            .get(..at::WORDS)
            .ok_or(damaged("it is shorter than its header"))?;
        // SYNC magic: pairs with `Region::format`.
        W::acquire();
        match header[at::VERSION].load() {
            layout::VERSION => {}
            found => return Err(AttachError::Version { found }),
        }
        let layout = config_of(header)
            .and_then(|config| config.layout().ok())
            .ok_or(damaged("a size is out of range"))?;
        let holds = |(word, place): (usize, SectionPlace)| {
            [place.offset, place.stride, place.count as usize]
                .iter()
                .zip(&header[word..])
                .all(|(&value, word)| word.load() == value as u64)
        };
        if !layout.sections().into_iter().all(holds) || header[at::BYTES].load() != layout.bytes() as u64 {
            return Err(damaged("the section table contradicts the sizes"));
        }
        let words = words
            .get(..layout.words)
            .ok_or(damaged("it is shorter than it says"))?;
        let reader = Reader { words, layout };
        match reader.state() {
            Some(RegionState::Ready | RegionState::Ended) => Ok(reader),
            Some(RegionState::Starting) => Err(AttachError::NotReady),
            None => Err(damaged("its state is none")),
        }
    }

    /// A reader of words that were attached to before, with the layout found then: costs nothing. For a
    /// program that keeps the mapping and the layout side by side.
    ///
    /// # Panics
    /// When there are fewer words than the layout has.
    #[inline]
    pub fn with_layout(words: &'a [W], layout: &Layout) -> Reader<'a, W> {
        Reader {
            words: &words[..layout.words],
            layout: *layout,
        }
    }

    /// Where everything lies.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(crate) fn words(&self) -> &'a [W] {
        self.words
    }

    /// How far the writer is, `None` when the word says nothing this version knows.
    pub fn state(&self) -> Option<RegionState> {
        let state = self.words[at::STATE].load();
        // SYNC state: pairs with `Region::set_state`.
        W::acquire();
        match state {
            1 => Some(RegionState::Starting),
            2 => Some(RegionState::Ready),
            3 => Some(RegionState::Ended),
            _ => None,
        }
    }

    /// When the region was made: another one at the same place has another.
    pub fn generation(&self) -> Nanos {
        Nanos(self.words[at::GENERATION].load())
    }

    /// The writer's process id.
    pub fn pid(&self) -> u32 {
        self.words[at::PID].load() as u32
    }

    /// What stamps have on `CLOCK_MONOTONIC`, nanoseconds; `None` where the writer does not say it.
    pub fn stamp_epoch(&self) -> Option<u64> {
        Some(self.words[at::STAMP_EPOCH].load()).filter(|epoch| *epoch != 0)
    }

    /// The writer's `CLOCK_MONOTONIC`, renewed every 100 ms while it lives.
    pub fn heartbeat(&self) -> Nanos {
        Nanos(self.words[at::HEARTBEAT].load())
    }

    /// Slots asked for beyond what there was room for: histograms, books, consolidated books.
    pub fn refused(&self) -> [u64; 3] {
        [
            (at::HISTOGRAMS_CLAIMED, self.layout.histograms),
            (at::BOOKS_CLAIMED, self.layout.books),
            (at::SUPERS_CLAIMED, self.layout.supers),
        ]
        .map(|(word, place)| self.words[word].load().saturating_sub(place.count.into()))
    }
}

/// The sizes that a header gives, `None` when one is too large for its type.
fn config_of<W: Word>(header: &[W]) -> Option<RegionConfig> {
    let word = |at: usize| u32::try_from(header[at].load()).ok();
    Some(RegionConfig {
        feeds: word(at::FEEDS)?,
        sources: word(at::SECTION_SOURCES + 2)?,
        histograms: word(at::SECTION_HISTOGRAMS + 2)?,
        books: word(at::SECTION_BOOKS + 2)?,
        book_levels: word(at::BOOK_LEVELS)?,
        supers: word(at::SECTION_SUPERS + 2)?,
        super_shares: word(at::SUPER_SHARES)?,
        rings: word(at::SECTION_RINGS + 2)?,
        ring_records: word(at::RING_RECORDS)?,
    })
}
