//! The row of a channel: written by its feed thread, every word on its own, so a reader may see one word
//! newer than the next.

use crate::layout::{self, MAX_KINDS, kind as kind_at, source as at};
use crate::word::{text_to_words, words_to_bytes};
use crate::{HistogramWriter, Reader, Region, Word, WriteWord};
use alloc::string::String;
use alloc::vec::Vec;
use tickwire_market::{BookState, Counter, Counters, Nanos, SeqNo, Venue};

/// What a channel is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceIdentity {
    /// Its name, such as `bzx 3`: up to 32 bytes, more is cut off.
    pub name: String,
    /// Its feed's name: up to 32 bytes.
    pub feed_name: String,
    /// Its protocol's name: up to 16 bytes.
    pub protocol: String,
    /// Its feed's number, 0 to 31.
    pub feed: u8,
    /// Its venue; `None` for what is no feed: a FIX session.
    pub venue: Option<Venue>,
    /// The ring its events go to.
    pub ring: Option<u32>,
}

/// Whether a channel's books can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u64)]
pub enum SourceState {
    /// Waits for the start of the session or a snapshot.
    #[default]
    Building = 0,
    /// Whole.
    Live = 1,
    /// A gap lies before it.
    Stale = 2,
    /// Its session is over, or its writer ended.
    Ended = 3,
}

impl SourceState {
    pub(crate) fn from_word(word: u64) -> SourceState {
        match word {
            0 => SourceState::Building,
            1 => SourceState::Live,
            3 => SourceState::Ended,
            // What a later version may add is nothing to trust a book by.
            _ => SourceState::Stale,
        }
    }

    /// What a book's state comes to behind a source of this state.
    pub fn limit(self, book: BookState) -> BookState {
        match (self, book) {
            (SourceState::Stale | SourceState::Ended, _) | (_, BookState::Stale) => BookState::Stale,
            (SourceState::Building, _) | (_, BookState::Building) => BookState::Building,
            (SourceState::Live, BookState::Live) => BookState::Live,
        }
    }
}

impl From<BookState> for SourceState {
    fn from(state: BookState) -> SourceState {
        match state {
            BookState::Building => SourceState::Building,
            BookState::Live => SourceState::Live,
            BookState::Stale => SourceState::Stale,
        }
    }
}

/// The writer counts by another table: it is of another version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OtherCounters {
    /// How many counters its table has.
    pub found: u64,
}

impl core::fmt::Display for OtherCounters {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "the shared memory has {} counters, this program knows {}; use programs of one release",
            self.found,
            Counter::ALL.len()
        )
    }
}

impl core::error::Error for OtherCounters {}

/// Writes a channel's row. Belongs to one feed thread.
#[derive(Debug)]
pub struct SourceWriter<'a, W> {
    region: Region<'a, W>,
    row: &'a [W; at::WORDS],
    source: u16,
    latency: Option<HistogramWriter<'a, W>>,
    super_latency: Option<u32>,
    kernel_latency: Option<HistogramWriter<'a, W>>,
    wire_latency: Option<HistogramWriter<'a, W>>,
    hook_latency: Option<HistogramWriter<'a, W>>,
    /// Books that were written and wait for a time.
    untimed: u64,
    /// The kinds whose messages wrote them, a bit each.
    untimed_kinds: u64,
    kinds: Vec<KindWriter<'a, W>>,
    /// Where a message type was found last, by its low bits: spares the search through `kinds`.
    hints: [u8; 256],
}

#[derive(Debug)]
struct KindWriter<'a, W> {
    kind: u16,
    words: &'a [W; kind_at::WORDS],
    latency: Option<HistogramWriter<'a, W>>,
    /// Of the books that wait for a time, those that its messages wrote.
    untimed: u64,
}

const _: () = assert!(MAX_KINDS <= u64::BITS as usize, "a kind has a bit");

impl<'a, W: WriteWord> SourceWriter<'a, W> {
    pub(crate) fn new(region: Region<'a, W>, source: u16, identity: &SourceIdentity) -> Self {
        let row: &[W; at::WORDS] = region.words[region.layout.sources.slot(source.into())]
            .first_chunk()
            .expect("a row has all its words");
        let put = |first: usize, words: &[u64]| {
            for (word, value) in row[first..].iter().zip(words) {
                word.store(*value);
            }
        };
        let (index, latency) = region.claim_histogram().ok().unzip();
        let (super_index, _) = region.claim_histogram().ok().unzip();
        put(at::NAME, &text_to_words::<4>(identity.name.as_bytes()));
        put(at::PROTOCOL, &text_to_words::<2>(identity.protocol.as_bytes()));
        put(at::FEED, &[identity.feed.into()]);
        put(at::VENUE, &[identity.venue.map_or(0, |venue| venue as u64)]);
        put(at::RING, &[identity.ring.map_or(layout::NONE, u64::from)]);
        put(at::LATENCY, &[index.map_or(layout::NONE, u64::from)]);
        put(at::SUPER_LATENCY, &[super_index.map_or(layout::NONE, u64::from)]);
        // SYNC row: a reader that sees the feed's name sees the rest; pairs with `Reader::source`.
        W::release();
        let feed_name = match identity.feed_name.is_empty() {
            true => "feed".as_bytes(),
            false => identity.feed_name.as_bytes(),
        };
        put(at::FEED_NAME, &text_to_words::<4>(feed_name));
        SourceWriter {
            region,
            row,
            source,
            latency,
            super_latency: super_index,
            kernel_latency: None,
            wire_latency: None,
            hook_latency: None,
            untimed: 0,
            untimed_kinds: 0,
            kinds: Vec::with_capacity(MAX_KINDS),
            hints: [0; 256],
        }
    }

    /// Its number, which books and ring records carry.
    pub fn number(&self) -> u16 {
        self.source
    }

    /// The words that every packet and every book is noted in, to have them fetched before they are written.
    pub fn words_ahead(&self) -> impl Iterator<Item = &'a [W]> + '_ {
        let latencies = self.kinds.iter().map(|kind| &kind.latency);
        let latencies = core::iter::once(&self.latency).chain(latencies).flatten();
        core::iter::once(&self.row[at::STATE..at::COUNTERS]).chain(latencies.map(HistogramWriter::words))
    }

    /// Says whether its books can be trusted: all of them change with it at once. Call it before books are
    /// written after a gap, and after they are right again.
    #[inline]
    pub fn set_state(&mut self, state: SourceState) {
        if self.row[at::STATE].load() == state as u64 {
            return;
        }
        // SYNC trust: who sees the new count, or the new state, sees books as they were made right before;
        // who sees a book written after this sees both. Pairs with `Reader::trust`.
        W::release();
        self.bump(at::CHANGES);
        W::release();
        self.row[at::STATE].store(state as u64);
    }

    /// A packet was received.
    #[inline]
    pub fn packet(&mut self, next_seq: SeqNo, recv_ts: Nanos) {
        self.row[at::NEXT_SEQ].store(next_seq.0);
        self.row[at::LAST_PACKET].store(recv_ts.0);
        self.bump(at::PACKETS);
    }

    /// A book was written, `latency_ns` after its packet was in memory.
    #[inline]
    pub fn update(&mut self, latency_ns: u64) {
        self.bump(at::UPDATES);
        if let Some(latency) = &mut self.latency {
            latency.record(latency_ns);
        }
    }

    /// A book was written, by a message of this kind if that is to be counted, and another message of its
    /// packet follows: both wait for [`SourceWriter::time_untimed`].
    #[inline]
    pub fn update_untimed(&mut self, kind: Option<u16>) {
        self.bump(at::UPDATES);
        self.untimed += 1;
        if let Some(at) = kind.and_then(|kind| self.place_of(kind)) {
            self.untimed_kinds |= 1 << at;
            self.kinds[at].untimed += 1;
        }
    }

    /// Whether there are books that were written and wait for a time.
    #[inline]
    pub fn has_untimed(&self) -> bool {
        self.untimed > 0
    }

    /// All of these were visible `latency_ns` after their packet was in memory, or before: they count so.
    #[inline(never)]
    pub fn time_untimed(&mut self, latency_ns: u64) {
        let untimed = core::mem::take(&mut self.untimed);
        if let Some(latency) = &mut self.latency {
            latency.record_each(latency_ns, untimed);
        }
        let mut kinds = core::mem::take(&mut self.untimed_kinds);
        while kinds != 0 {
            if let Some(kind) = self.kinds.get_mut(kinds.trailing_zeros() as usize) {
                let untimed = core::mem::take(&mut kind.untimed);
                if let Some(latency) = &mut kind.latency {
                    latency.record_each(latency_ns, untimed);
                }
            }
            kinds &= kinds - 1;
        }
    }

    /// Keeps a histogram of [`SourceWriter::kernel_latency`] from now on, if there is one left. Call it
    /// before the first packet.
    pub fn time_kernel(&mut self) {
        let (index, latency) = self.region.claim_histogram().ok().unzip();
        self.row[at::KERNEL_LATENCY].store(index.map_or(layout::NONE, u64::from));
        self.kernel_latency = latency;
    }

    /// A packet was in memory so long after the kernel had received it. Nothing without
    /// [`SourceWriter::time_kernel`].
    #[inline]
    pub fn kernel_latency(&mut self, latency_ns: u64) {
        if let Some(latency) = &mut self.kernel_latency {
            latency.record(latency_ns);
        }
    }

    /// Keeps histograms of [`SourceWriter::wire_latency`] and [`SourceWriter::hook_latency`] from now on, if
    /// there are some left. Call it before the first packet.
    pub fn time_hook(&mut self) {
        let (index, latency) = self.region.claim_histogram().ok().unzip();
        self.row[at::WIRE_LATENCY].store(index.map_or(layout::NONE, u64::from));
        self.wire_latency = latency;
        let (index, latency) = self.region.claim_histogram().ok().unzip();
        self.row[at::HOOK_LATENCY].store(index.map_or(layout::NONE, u64::from));
        self.hook_latency = latency;
    }

    /// A packet was at the hook of the network driver so long after it was on the wire. Nothing without
    /// [`SourceWriter::time_hook`].
    #[inline]
    pub fn wire_latency(&mut self, latency_ns: u64) {
        if let Some(latency) = &mut self.wire_latency {
            latency.record(latency_ns);
        }
    }

    /// A packet was in memory so long after it was at the hook of the network driver. Nothing without
    /// [`SourceWriter::time_hook`].
    #[inline]
    pub fn hook_latency(&mut self, latency_ns: u64) {
        if let Some(latency) = &mut self.hook_latency {
            latency.record(latency_ns);
        }
    }

    /// A book slot became its.
    pub fn book_claimed(&mut self) {
        self.bump(at::BOOKS);
    }

    /// A book could not be shown because every slot is taken.
    pub fn book_refused(&mut self) {
        self.bump(at::REFUSED);
    }

    /// The counters as they are now.
    pub fn counters(&mut self, counters: &Counters) {
        for (word, (_, value)) in self.row[at::COUNTERS..].iter().zip(counters.iter()) {
            word.store(value);
        }
    }

    /// How many messages of a kind there were, and how many of them nobody wanted. More than 64 kinds are not
    /// told apart.
    pub fn kind(&mut self, kind: u16, seen: u64, filtered: u64) {
        if let Some(found) = self.find_kind(kind) {
            found.words[kind_at::SEEN].store(seen);
            found.words[kind_at::FILTERED].store(filtered);
        }
    }

    /// A message of a kind was the last to change a book, visible `latency_ns` after its packet was in
    /// memory.
    #[inline]
    pub fn kind_latency(&mut self, kind: u16, latency_ns: u64) {
        if let Some(latency) = self.find_kind(kind).and_then(|found| found.latency.as_mut()) {
            latency.record(latency_ns);
        }
    }

    /// The histogram of its consolidated book latency, for the thread that measures it
    /// ([`Region::histogram`]); `None` when there was none left.
    pub fn super_latency(&self) -> Option<u32> {
        self.super_latency
    }

    #[inline]
    fn bump(&mut self, word: usize) {
        let word = &self.row[word];
        word.store(word.load().wrapping_add(1));
    }

    #[inline]
    fn find_kind(&mut self, kind: u16) -> Option<&mut KindWriter<'a, W>> {
        let at = self.place_of(kind)?;
        self.kinds.get_mut(at)
    }

    /// The place of a kind, a new one if there is room.
    #[inline]
    fn place_of(&mut self, kind: u16) -> Option<usize> {
        let hint = usize::from(kind as u8 ^ (kind >> 8) as u8);
        let at = usize::from(self.hints[hint]);
        if self.kinds.get(at).is_none_or(|found| found.kind != kind) {
            let at = self.search_kind(kind)?;
            self.hints[hint] = at as u8;
            return Some(at);
        }
        Some(at)
    }

    /// The same of a kind that is not where it was found last.
    #[cold]
    fn search_kind(&mut self, kind: u16) -> Option<usize> {
        if let Some(at) = self.kinds.iter().position(|known| known.kind == kind) {
            return Some(at);
        }
        let at = self.kinds.len();
        if at == MAX_KINDS {
            return None;
        }
        let words: &[W; kind_at::WORDS] = self.row[at::FIRST_KIND + kind_at::WORDS * at..]
            .first_chunk()
            .expect("a row has room for every kind");
        let (index, latency) = self.region.claim_histogram().ok().unzip();
        words[kind_at::TYPE].store(kind.into());
        words[kind_at::LATENCY].store(index.map_or(layout::NONE, u64::from));
        // SYNC kinds: pairs with `Reader::source`.
        W::release();
        self.row[at::KINDS].store(at as u64 + 1);
        self.kinds.push(KindWriter {
            kind,
            words,
            latency,
            untimed: 0,
        });
        Some(at)
    }
}

/// A channel's row, copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Its number.
    pub number: u16,
    /// Its name.
    pub name: String,
    /// Its feed's name.
    pub feed_name: String,
    /// Its protocol's name.
    pub protocol: String,
    /// Its feed's number: its bit in the masks of consolidated books.
    pub feed: u8,
    /// Its venue, `None` when it has none or this version does not know it.
    pub venue: Option<Venue>,
    /// The ring its events go to.
    pub ring: Option<u32>,
    /// Histogram of its latency, packet in memory to book visible.
    pub latency: Option<u32>,
    /// Histogram of its latency, packet in memory to consolidated book visible.
    pub super_latency: Option<u32>,
    /// Histogram of the kernel's receive time to packet in memory; `None` when that time is not asked for.
    pub kernel_latency: Option<u32>,
    /// Histogram of the way from the wire to the hook of the network driver; `None` when lines do not come
    /// from there. It is empty where the card does not say.
    pub wire_latency: Option<u32>,
    /// Histogram of the way from the hook to packet in memory; `None` when lines do not come from there.
    pub hook_latency: Option<u32>,
    /// Whether its books can be trusted.
    pub state: SourceState,
    /// The message it waits for.
    pub next_seq: SeqNo,
    /// When its last packet was received.
    pub last_packet: Nanos,
    /// What it did.
    pub totals: Totals,
}

/// What a channel did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Packets received on all lines.
    pub packets: u64,
    /// Books written.
    pub updates: u64,
    /// Book slots that are its.
    pub books: u64,
    /// Books not shown because every slot was taken.
    pub refused: u64,
}

/// A kind of message of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// The venue's own message type.
    pub kind: u16,
    /// Messages of it.
    pub seen: u64,
    /// Of those, dropped before decoding because nobody subscribed.
    pub filtered: u64,
    /// Histogram of their latency, packet in memory to book visible.
    pub latency: Option<u32>,
}

impl<'a, W: Word> Reader<'a, W> {
    /// The row of source `number`, `None` when it is not in use. Allocates.
    pub fn source(&self, number: u16) -> Option<Source> {
        let row = self.source_row(number)?;
        let text = |first: usize, words: usize| {
            let bytes = (first..first + words).flat_map(|at| words_to_bytes::<1, 8>([row[at].load()]));
            let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let index = |at: usize| u32::try_from(row[at].load()).ok();
        let feed_name = text(at::FEED_NAME, 4);
        // SYNC row: pairs with `SourceWriter::new`.
        W::acquire();
        (!feed_name.is_empty()).then(|| Source {
            number,
            name: text(at::NAME, 4),
            feed_name,
            protocol: text(at::PROTOCOL, 2),
            feed: row[at::FEED].load() as u8,
            venue: u8::try_from(row[at::VENUE].load()).ok().and_then(Venue::from_u8),
            ring: index(at::RING),
            latency: index(at::LATENCY),
            super_latency: index(at::SUPER_LATENCY),
            // The first histogram is the first source's own.
            kernel_latency: index(at::KERNEL_LATENCY).filter(|&index| index != 0),
            wire_latency: index(at::WIRE_LATENCY).filter(|&index| index != 0),
            hook_latency: index(at::HOOK_LATENCY).filter(|&index| index != 0),
            state: self.source_state(number),
            next_seq: SeqNo(row[at::NEXT_SEQ].load()),
            last_packet: Nanos(row[at::LAST_PACKET].load()),
            totals: Totals {
                packets: row[at::PACKETS].load(),
                updates: row[at::UPDATES].load(),
                books: row[at::BOOKS].load(),
                refused: row[at::REFUSED].load(),
            },
        })
    }

    /// Every source in use. Allocates.
    pub fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        (0..self.layout().sources.count as u16).filter_map(|number| self.source(number))
    }

    /// The counters of a source; all 0 when there is none of that number.
    ///
    /// # Errors
    /// The writer's table of counters has another length than this program's, so that their order says
    /// nothing.
    pub fn counters(&self, source: u16) -> Result<Counters, OtherCounters> {
        let found = self.words()[layout::header::COUNTERS].load();
        if found != Counter::ALL.len() as u64 {
            return Err(OtherCounters { found });
        }
        let mut counters = Counters::default();
        if let Some(row) = self.source_row(source) {
            for (word, &counter) in row[at::COUNTERS..].iter().zip(Counter::ALL) {
                counters.add(counter, word.load());
            }
        }
        Ok(counters)
    }

    /// The kinds of message of a source, in the order in which they were first seen.
    pub fn kinds(&self, source: u16) -> impl Iterator<Item = Kind> + 'a {
        let row = self.source_row(source);
        let count = row.map_or(0, |row| row[at::KINDS].load().min(MAX_KINDS as u64) as usize);
        // SYNC kinds: pairs with `SourceWriter::search_kind`.
        W::acquire();
        let words = row
            .into_iter()
            .flat_map(|row| row[at::FIRST_KIND..].chunks_exact(kind_at::WORDS));
        words.take(count).map(|words| Kind {
            kind: words[kind_at::TYPE].load() as u16,
            seen: words[kind_at::SEEN].load(),
            filtered: words[kind_at::FILTERED].load(),
            latency: u32::try_from(words[kind_at::LATENCY].load()).ok(),
        })
    }

    /// Whether the books of a source can be trusted; [`SourceState::Stale`] when there is none of that
    /// number.
    #[inline]
    pub fn source_state(&self, source: u16) -> SourceState {
        self.source_row(source).map_or(SourceState::Stale, |row| {
            SourceState::from_word(row[at::STATE].load())
        })
    }

    /// Reads a book that belongs to a source; its state, with its source's: stale if that changed meanwhile,
    /// since a gap may then have come and gone unseen.
    #[inline]
    pub(crate) fn trust<E>(
        &self,
        source: u16,
        read: impl FnOnce() -> Result<BookState, E>,
    ) -> Result<BookState, E> {
        let changes = || self.source_row(source).map_or(0, |row| row[at::CHANGES].load());
        let count = changes();
        // SYNC trust: pairs with `SourceWriter::set_state`, here and below.
        W::acquire();
        let before = self.source_state(source);
        let book = read()?;
        let after = self.source_state(source);
        W::acquire();
        Ok(match changes() == count {
            true => after.limit(before.limit(book)),
            false => BookState::Stale,
        })
    }

    #[inline]
    fn source_row(&self, source: u16) -> Option<&'a [W; at::WORDS]> {
        let sources = &self.layout().sources;
        if u32::from(source) < sources.count {
            self.words()[sources.slot(source.into())].first_chunk()
        } else {
            None
        }
    }
}
