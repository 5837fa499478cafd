//! Where everything lies. Offsets and sizes are in words of 64 bits, little-endian; a section and each of its
//! slots begins at a cache line.
//!
//! ```text
//! word 0     header    4096 bytes: what this is, how large, who writes it, section table
//!            sources   a row per channel of a feed: name, state, counters, kinds of message
//!            histograms  latencies: claimed by sources as they need them
//!            books     a slot per source and instrument: state, totals, top levels
//!            supers    a slot per symbol: the merged book of all feeds
//!            rings     one per feed thread: its events and updates, as many as fit
//! ```
//!
//! The tables below are the definition: the constants that the code uses and [`SECTIONS`], from which the C
//! header and the documentation are made, come from the same lines, and the compiler checks that no line
//! overlaps another.

use core::ops::Range;
use tickwire_market::Counter;

/// The first word: `TICKWIRE`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TICKWIRE");
/// The version of this layout. A change that a reader of the older one would misread makes it a new version.
pub const VERSION: u64 = 2;
/// Says "no such thing" in a word that is an index.
pub const NONE: u64 = u64::MAX;
/// The most levels a side of a book slot can have.
pub const MAX_LEVELS: usize = 64;
/// The most shares a side of a consolidated book slot can have.
pub const MAX_SHARES: usize = 64;
/// The most feeds: one bit of a mask each.
pub const MAX_FEEDS: usize = 32;
/// The most kinds of message a source tells apart.
pub const MAX_KINDS: usize = 64;
/// The most counters a source has room for.
pub const MAX_COUNTERS: usize = 128;
/// Buckets of a histogram.
pub const BUCKETS: usize = 1152;
/// Words of a level: price, quantity, orders.
pub const LEVEL_WORDS: usize = 3;
/// Words of a share: price, quantity, feed and orders.
pub const SHARE_WORDS: usize = 3;

/// One field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name in the C header: lower case.
    pub name: &'static str,
    /// Where it begins within its section's slot, in words.
    pub offset: usize,
    /// How many words.
    pub words: usize,
    /// What it says, with unit and range.
    pub sentence: &'static str,
}

/// What one slot of a section holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// Its name in the C header: lower case.
    pub name: &'static str,
    /// Words of the fixed part of a slot.
    pub words: usize,
    /// What a slot is, and what follows the fixed part.
    pub sentence: &'static str,
    /// The fixed part.
    pub fields: &'static [Field],
}

/// Every section, in the order in which they lie in memory. The section table of the header has a row for
/// each but the first and the two that lie within another's slot (`kind`, `record`).
pub const SECTIONS: &[Section] = &[
    header::SECTION,
    source::SECTION,
    kind::SECTION,
    histogram::SECTION,
    book::SECTION,
    super_book::SECTION,
    ring::SECTION,
    record::SECTION,
];

macro_rules! section {
    ($module:ident $words:literal $sentence:literal
     $($constant:ident $name:literal $offset:literal $len:literal $says:literal)*) => {
        #[doc = $sentence]
        pub mod $module {
            use super::{Field, Section};
            $(#[doc = $says] pub const $constant: usize = $offset;)*
            /// Words of the fixed part.
            pub const WORDS: usize = $words;
            /// The section's table.
            pub const SECTION: Section = Section {
                name: stringify!($module),
                words: WORDS,
                sentence: $sentence,
                fields: &[$(Field { name: $name, offset: $offset, words: $len, sentence: $says }),*],
            };
            const _: () = super::assert_in_order(&SECTION);
        }
    };
}

/// Fields ascend, do not overlap, and end within the section.
const fn assert_in_order(section: &Section) {
    let (mut end, mut at) = (0, 0);
    while at < section.fields.len() {
        let field = &section.fields[at];
        assert!(field.offset >= end, "fields ascend and do not overlap");
        end = field.offset + field.words;
        at += 1;
    }
    assert!(end <= section.words, "fields end within their section");
}

section! { header 512 "The beginning of the region: what it is, who writes it, where its sections are."
    MAGIC "magic" 0 1 "The bytes `TICKWIRE`; written last when the region is made."
    VERSION "version" 1 1 "Version of the layout, 2."
    BYTES "bytes" 2 1 "Length of the whole region in bytes."
    GENERATION "generation" 3 1 "When this region was made, nanoseconds since the epoch: tells a new one from an old one."
    PID "pid" 4 1 "Process id of the writer."
    STATE "state" 5 1 "1 starting, 2 ready, 3 ended in an orderly way."
    HEARTBEAT "heartbeat" 6 1 "The writer's `CLOCK_MONOTONIC` in nanoseconds, renewed every 100 ms."
    FEEDS "feeds" 7 1 "How many feeds there are, at most 32; a feed's number is its bit in masks."
    BOOK_LEVELS "book_levels" 8 1 "Levels per side of a book slot, 1 to 64."
    SUPER_SHARES "super_shares" 9 1 "Shares per side of a consolidated book slot, 1 to 64."
    RING_RECORDS "ring_records" 10 1 "Records of a ring, a power of two."
    COUNTERS "counters" 11 1 "How many words of a source's counters are in use, in the order of the table of counters."
    STAMP_EPOCH "stamp_epoch" 12 1 "What every stamp of this region has on the writer's `CLOCK_MONOTONIC`, nanoseconds: ages are right by it whatever UTC is set to. 0: not said."
    SECTION_SOURCES "section_sources" 16 3 "Sources: first word, words from slot to slot, slots."
    SECTION_HISTOGRAMS "section_histograms" 19 3 "Histograms: first word, words from slot to slot, slots."
    SECTION_BOOKS "section_books" 22 3 "Books: first word, words from slot to slot, slots."
    SECTION_SUPERS "section_supers" 25 3 "Consolidated books: first word, words from slot to slot, slots."
    SECTION_RINGS "section_rings" 28 3 "Rings: first word, words from slot to slot, slots."
    HISTOGRAMS_CLAIMED "histograms_claimed" 64 1 "Histograms asked for; those beyond the section were refused."
    BOOKS_CLAIMED "books_claimed" 72 1 "Book slots asked for; those beyond the section were refused. A slot is named when its sequence is not 0."
    SUPERS_CLAIMED "supers_claimed" 80 1 "Consolidated book slots asked for; those beyond the section were refused. A slot is named when its sequence is not 0."
}

section! { source 416 "A channel of a feed. Written by its feed thread, each word on its own."
    NAME "name" 0 4 "Its name, such as `bzx 3`: text, padded with NUL."
    FEED_NAME "feed_name" 4 4 "Its feed's name: text, padded with NUL. No name: the row is not in use."
    PROTOCOL "protocol" 8 2 "Its protocol's name: text, padded with NUL."
    FEED "feed" 10 1 "Its feed's number, 0 to 31."
    VENUE "venue" 11 1 "Its venue, as numbered in the table of venues; 0 for none."
    RING "ring" 12 1 "The ring its events go to, all ones for none."
    LATENCY "latency" 13 1 "Histogram of its latency, packet in memory to book visible; all ones for none."
    SUPER_LATENCY "super_latency" 14 1 "Histogram of its latency, packet in memory to consolidated book visible; all ones for none."
    CHANGES "changes" 15 1 "How often the state was said. A book is stale if this changed while it was read."
    STATE "state" 16 1 "0 building, 1 live, 2 stale, 3 ended. Every book of a source that is not live is not live either."
    NEXT_SEQ "next_seq" 17 1 "Sequence number of the message it waits for."
    LAST_PACKET "last_packet" 18 1 "When its last packet was received, nanoseconds since the epoch."
    PACKETS "packets" 19 1 "Packets received on all lines."
    UPDATES "updates" 20 1 "Books written."
    BOOKS "books" 21 1 "Book slots that are its."
    REFUSED "refused" 22 1 "Books not shown because every slot was taken."
    KINDS "kinds" 23 1 "How many kinds of message follow."
    COUNTERS "counters" 24 128 "A word per counter, in the order of the table of counters."
    KERNEL_LATENCY "kernel_latency" 152 1 "Histogram of the kernel's receive time to packet in memory, when the daemon asks for that time; 0 or all ones for none."
    WIRE_LATENCY "wire_latency" 153 1 "Histogram of the way from the wire, by the network card's clock, to the hook of its driver, where lines come by AF_XDP; 0 or all ones for none."
    HOOK_LATENCY "hook_latency" 154 1 "Histogram of the way from the hook of the network driver to packet in memory, where lines come by AF_XDP; 0 or all ones for none."
    FIRST_KIND "first_kind" 160 256 "Kinds of message, 64 times 4 words: see `kind`."
}

section! { kind 4 "A kind of message of a source, within its row."
    TYPE "type" 0 1 "The venue's own message type."
    SEEN "seen" 1 1 "Messages of it."
    FILTERED "filtered" 2 1 "Of those, dropped before decoding because nobody subscribed."
    LATENCY "latency" 3 1 "Histogram of their latency, packet in memory to book visible; all ones for none."
}

section! { histogram 1160 "Latencies in nanoseconds: 32 steps to an octave, 1 ns to 2^40 ns. Each word on its own."
    COUNT "count" 0 1 "How many values."
    SUM "sum" 1 1 "Their sum."
    MIN "min" 2 1 "The least; 0 when there is none."
    MAX "max" 3 1 "The greatest."
    COUNTS "counts" 8 1152 "How many values in each bucket."
}

section! { book 32 "The book of one instrument of one source. Bids follow, then asks: `book_levels` times price, quantity, orders, best first."
    SEQUENCE "sequence" 0 1 "Twice the number of writes, odd during one; 0: the slot is not in use."
    SOURCE "source" 1 1 "The source's number; fixed."
    INSTRUMENT "instrument" 2 1 "The instrument's number within its source; fixed."
    SYMBOL "symbol" 3 3 "Its symbol: text, padded with NUL; fixed."
    STATE "state" 8 1 "Of the book alone: 0 building, 1 live, 2 stale. The source's state counts too."
    STATUS "status" 9 1 "Trading status: 0 unknown, 1 pre-open, 2 auction, 3 trading, 4 quotes only, 5 paused, 6 halted, 7 closed."
    SEQ "seq" 10 1 "Sequence number of the last message that changed it."
    VENUE_TS "venue_ts" 11 1 "The venue's time of that message, nanoseconds."
    RECV_TS "recv_ts" 12 1 "When its packet was received, nanoseconds since the epoch."
    PUBLISH_TS "publish_ts" 13 1 "When this was written, nanoseconds since the epoch; 0 where another message of its packet followed and the clock was read for that one alone."
    LEVELS "levels" 14 2 "Levels in the whole book, bid then ask; the slot holds the best of them, as many as fit."
    QTY "qty" 16 2 "Quantity in the whole book, bid then ask."
    ORDERS "orders" 18 2 "Orders in the whole book, bid then ask; 0 when the feed does not say."
    LAST_PRICE "last_price" 20 1 "Price of the last trade, 1e-9; meaningless when there was none."
    LAST_QTY "last_qty" 21 1 "Quantity of the last trade, 0 when there was none."
    LAST_TS "last_ts" 22 1 "The venue's time of the last trade, nanoseconds."
    VOLUME "volume" 23 1 "Quantity traded today."
    TRADES "trades" 24 1 "Trades today."
    AUCTION "auction" 25 1 "Type of the auction announced, the venue's letter; 0 when there is none."
    REFERENCE "reference" 26 1 "Its reference price, 1e-9."
    NEAR "near" 27 1 "Its near indicative price, 1e-9."
    FAR "far" 28 1 "Its far indicative price, 1e-9."
    PAIRED "paired" 29 1 "Its paired quantity."
    IMBALANCE "imbalance" 30 1 "Its unpaired quantity."
    IMBALANCE_SIDE "imbalance_side" 31 1 "Side of the unpaired quantity: 0 bid, 1 ask, 2 none."
}

section! { super_book 48 "The books of one symbol on all feeds, merged. Shares of bids follow, then of asks: `super_shares` times price, quantity, feed (low 32 bits) and orders (high 32 bits), best price first, at one price by feed."
    SEQUENCE "sequence" 0 1 "Twice the number of writes, odd during one; 0: the slot is not in use."
    SYMBOL "symbol" 1 3 "The symbol: text, padded with NUL; fixed."
    FEEDS "feeds" 4 1 "Feeds in it, a bit each."
    STALE "stale" 5 1 "Feeds left out because their book is not live, a bit each."
    TOUCH "touch" 6 1 "How the best bid and ask meet: 0 apart or a side is empty, 1 locked, 2 crossed."
    PUBLISH_TS "publish_ts" 7 1 "When this was written, nanoseconds since the epoch; 0 where another message of its packet followed and the clock was read for that one alone."
    PRICE "price" 8 2 "Best price, 1e-9, bid then ask; meaningless where the quantity is 0."
    QTY "qty" 10 2 "Quantity at the best price over all feeds, bid then ask; 0: the side is empty."
    AT_BEST "at_best" 12 2 "Feeds at the best price, a bit each, bid then ask."
    NATIONAL_PRICE "national_price" 14 2 "The consolidated feed's national best price, 1e-9, bid then ask."
    NATIONAL_QTY "national_qty" 16 2 "Its quantity, bid then ask; 0: none."
    NATIONAL_AT "national_at" 18 2 "The participant it names, a letter, bid then ask; 0: none."
    NATIONAL_VENUE_TS "national_venue_ts" 20 1 "The consolidated feed's time of it, nanoseconds."
    NATIONAL_RECV_TS "national_recv_ts" 21 1 "When its packet was received, nanoseconds since the epoch."
    DIFFERENCE "difference" 22 2 "Our best price less the national one, 1e-9, signed, bid then ask; 0 when either is missing."
    DIFFERENT_SINCE "different_since" 24 2 "Since when they differ, nanoseconds since the epoch, bid then ask; 0: they agree."
    LAST_PRICE "last_price" 26 1 "Price of the last trade on any feed, 1e-9; meaningless when there was none."
    LAST_QTY "last_qty" 27 1 "Quantity of the last trade, 0 when there was none."
    LAST_TS "last_ts" 28 1 "The venue's time of the last trade, nanoseconds."
    VOLUME "volume" 29 1 "Quantity traded today over all feeds."
    TRADES "trades" 30 1 "Trades today over all feeds."
    RECV_TS "recv_ts" 31 1 "When the packet that changed it last was received, nanoseconds since the epoch."
    SHARES "shares" 32 2 "Shares in the whole consolidated book, bid then ask; the slot holds the best of them, as many as fit."
    LEVELS "levels" 34 2 "Levels in the whole consolidated book, bid then ask."
    TOTAL_QTY "total_qty" 36 2 "Quantity in the whole consolidated book, bid then ask."
}

section! { ring 8 "What one feed thread said, newest over oldest. Records follow, `ring_records` times 16 words."
    HEAD "head" 0 1 "Records ever written."
}

section! { record 16 "A record of a ring: a market event word for word, or a book update in its first 8 words and zeros."
    BODY "body" 0 15 "The event without its reserved word."
    STAMP "stamp" 15 1 "Record number (its low 40 bits) << 24 | source << 8 | what << 1 | being written; what: 0 never written, 1 event, 2 update, 3 a record that a mirror never had."
}

const _: () = {
    assert!(header::WORDS * 8 == 4096 && header::WORDS.is_multiple_of(8));
    assert!(source::WORDS.is_multiple_of(8) && source::FIRST_KIND + MAX_KINDS * kind::WORDS == source::WORDS);
    assert!(
        Counter::ALL.len() <= MAX_COUNTERS && source::COUNTERS + MAX_COUNTERS <= source::FIRST_KIND,
        "a new counter needs room in a source's row"
    );
    assert!(histogram::WORDS.is_multiple_of(8) && histogram::COUNTS + BUCKETS == histogram::WORDS);
    assert!(
        book::WORDS.is_multiple_of(8) && super_book::WORDS.is_multiple_of(8) && ring::WORDS.is_multiple_of(8)
    );
    assert!(record::WORDS * 8 == size_of::<tickwire_market::MarketEvent>());
};

/// One section's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SectionPlace {
    /// Its first word.
    pub offset: usize,
    /// Words from one slot to the next.
    pub stride: usize,
    /// How many slots.
    pub count: u32,
}

impl SectionPlace {
    /// The words of a slot.
    #[inline]
    pub(crate) fn slot(&self, index: u32) -> Range<usize> {
        assert!(index < self.count, "slot {index} of {}", self.count);
        let first = self.offset + self.stride * index as usize;
        first..first + self.stride
    }
}

/// How much the region has room for. Every field is fixed when the region is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionConfig {
    /// Feeds, 0 to 32.
    pub feeds: u32,
    /// Channels of all feeds, at most 65,535.
    pub sources: u32,
    /// Latency histograms of 9,280 bytes: two a source, and one a kind of message of a source. When they run
    /// out, a kind is counted without one.
    pub histograms: u32,
    /// Book slots, one per source and instrument that somebody subscribed to. When they run out, a book is
    /// not shown and its source counts it as refused.
    pub books: u32,
    /// Levels per side of a book slot, 1 to 64.
    pub book_levels: u32,
    /// Consolidated book slots, one per symbol. When they run out, a consolidated book is not shown and its
    /// feed thread is told.
    pub supers: u32,
    /// Shares per side of a consolidated book slot, 1 to 64.
    pub super_shares: u32,
    /// Rings, one per feed thread that has one.
    pub rings: u32,
    /// Records of a ring, a power of two from 2 to 2^24; a reader that falls behind by more misses some and
    /// learns how many.
    pub ring_records: u32,
}

impl Default for RegionConfig {
    fn default() -> RegionConfig {
        RegionConfig {
            feeds: 1,
            sources: 1,
            histograms: 32,
            books: 1 << 10,
            book_levels: 10,
            supers: 1 << 10,
            super_shares: 32,
            rings: 1,
            ring_records: 1 << 16,
        }
    }
}

/// What is wrong with a configuration: a field and what it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayoutError {
    /// The field of [`RegionConfig`].
    pub field: &'static str,
    /// Its value.
    pub value: u32,
    /// What it may be.
    pub allowed: &'static str,
}

impl core::fmt::Display for LayoutError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{} = {} of the shared memory: must be {}",
            self.field, self.value, self.allowed
        )
    }
}

impl core::error::Error for LayoutError {}

/// The places of a region's sections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// What it was made from.
    pub config: RegionConfig,
    /// Rows of channels.
    pub sources: SectionPlace,
    /// Latency histograms.
    pub histograms: SectionPlace,
    /// Book slots.
    pub books: SectionPlace,
    /// Consolidated book slots.
    pub supers: SectionPlace,
    /// Rings.
    pub rings: SectionPlace,
    /// All words.
    pub words: usize,
}

impl RegionConfig {
    /// Where everything lies.
    ///
    /// # Errors
    /// A field out of its range.
    pub fn layout(&self) -> Result<Layout, LayoutError> {
        let checks = [
            ("feeds", self.feeds, self.feeds <= MAX_FEEDS as u32, "at most 32"),
            ("sources", self.sources, self.sources <= 0xffff, "at most 65,535"),
            (
                "histograms",
                self.histograms,
                self.histograms <= 1 << 20,
                "at most 1,048,576",
            ),
            ("books", self.books, self.books <= 1 << 24, "at most 16,777,216"),
            (
                "book_levels",
                self.book_levels,
                (1..=MAX_LEVELS as u32).contains(&self.book_levels),
                "1 to 64",
            ),
            (
                "supers",
                self.supers,
                self.supers <= 1 << 24,
                "at most 16,777,216",
            ),
            (
                "super_shares",
                self.super_shares,
                (1..=MAX_SHARES as u32).contains(&self.super_shares),
                "1 to 64",
            ),
            ("rings", self.rings, self.rings <= 1 << 10, "at most 1,024"),
            (
                "ring_records",
                self.ring_records,
                self.ring_records.is_power_of_two() && (2..=1 << 24).contains(&self.ring_records),
                "a power of two from 2 to 16,777,216",
            ),
        ];
        if let Some(&(field, value, _, allowed)) = checks.iter().find(|(_, _, good, _)| !good) {
            return Err(LayoutError {
                field,
                value,
                allowed,
            });
        }
        let mut next = header::WORDS;
        let mut place = |words: usize, count: u32| {
            let place = SectionPlace {
                offset: next,
                stride: words.next_multiple_of(8),
                count,
            };
            next += place.stride * count as usize;
            place
        };
        Ok(Layout {
            config: *self,
            sources: place(source::WORDS, self.sources),
            histograms: place(histogram::WORDS, self.histograms),
            books: place(
                book::WORDS + 2 * LEVEL_WORDS * self.book_levels as usize,
                self.books,
            ),
            supers: place(
                super_book::WORDS + 2 * SHARE_WORDS * self.super_shares as usize,
                self.supers,
            ),
            rings: place(
                ring::WORDS + record::WORDS * self.ring_records as usize,
                self.rings,
            ),
            words: next,
        })
    }
}

impl Layout {
    /// The sections with their words in the header.
    pub(crate) fn sections(&self) -> [(usize, SectionPlace); 5] {
        [
            (header::SECTION_SOURCES, self.sources),
            (header::SECTION_HISTOGRAMS, self.histograms),
            (header::SECTION_BOOKS, self.books),
            (header::SECTION_SUPERS, self.supers),
            (header::SECTION_RINGS, self.rings),
        ]
    }

    /// The length of the region in bytes.
    pub const fn bytes(&self) -> usize {
        self.words * 8
    }
}
