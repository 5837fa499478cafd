//! The book slot: one instrument of one source, its state, totals and best levels. Its feed thread writes it,
//! changing only what changed; anybody reads it whole.

use crate::layout::{LEVEL_WORDS, MAX_LEVELS, SectionPlace, book as at, header};
use crate::seqlock::{self, ATTEMPTS, Busy};
use crate::word::{text_to_words, words_to_bytes};
use crate::{Full, Reader, Region, Word, WriteWord};
use core::ops::Range;
use tickwire_market::{
    BookState, InstrumentId, Level, Nanos, Price, SeqNo, Side, Symbol, TradingStatus, Volume,
};

/// Which book a slot holds; fixed once claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BookIdentity {
    /// The source's number.
    pub source: u16,
    /// The instrument within its source.
    pub instrument: InstrumentId,
    /// Its symbol.
    pub symbol: Symbol,
}

/// The last trade of a book.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LastTrade {
    /// Its price.
    pub price: Price,
    /// Its quantity; 0 when there was no trade.
    pub qty: Volume,
    /// The venue's time of it.
    pub venue_ts: Nanos,
}

/// What a venue says about its next auction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Auction {
    /// The venue's letter for its type; 0 when none is announced.
    pub kind: u8,
    /// Reference price.
    pub reference: Price,
    /// Near indicative price.
    pub near: Price,
    /// Far indicative price.
    pub far: Price,
    /// Paired quantity.
    pub paired: Volume,
    /// Unpaired quantity.
    pub imbalance: Volume,
    /// Side of the unpaired quantity.
    pub side: Option<Side>,
}

/// A slot that this thread writes. Not to be copied: it has one writer.
#[derive(PartialEq, Eq, Debug)]
pub struct BookSlot(u32);

impl BookSlot {
    /// Its number, for readers.
    pub fn number(&self) -> u32 {
        self.0
    }
}

/// Writes books.
#[derive(Debug)]
pub struct BookWriter<'a, W> {
    words: &'a [W],
    place: SectionPlace,
    shown: usize,
    region: Region<'a, W>,
}

impl<'a, W: WriteWord> BookWriter<'a, W> {
    pub(crate) fn new(region: Region<'a, W>) -> BookWriter<'a, W> {
        BookWriter {
            words: region.words,
            place: region.layout.books,
            shown: region.layout.config.book_levels as usize,
            region,
        }
    }

    /// Levels per side that a slot shows.
    pub fn shown(&self) -> usize {
        self.shown
    }

    /// Takes a slot for a book, for good. It is empty and [`BookState::Building`].
    ///
    /// # Errors
    /// Every slot is taken: the book is not shown; count it with [`crate::SourceWriter::book_refused`].
    pub fn claim(&mut self, identity: &BookIdentity) -> Result<BookSlot, Full> {
        let slot = self.region.claim("books", header::BOOKS_CLAIMED, &self.place)?;
        let words = &self.words[self.place.slot(slot)];
        words[at::SOURCE].store(identity.source.into());
        words[at::INSTRUMENT].store(identity.instrument.0.into());
        let symbol: [u64; 3] = text_to_words(identity.symbol.as_bytes());
        for (word, value) in words[at::SYMBOL..].iter().zip(symbol) {
            word.store(value);
        }
        words[at::IMBALANCE_SIDE].store(side_word(None));
        // SYNC named: pairs with `Reader::book_identity`.
        seqlock::end(&words[at::SEQUENCE], 1);
        Ok(BookSlot(slot))
    }

    /// The words of a slot, to have them fetched before they are written.
    #[inline]
    pub fn words(&self, slot: &BookSlot) -> &'a [W] {
        &self.words[self.place.slot(slot.0)]
    }

    /// Begins to change a book. Readers wait, briefly, until [`BookEdit::publish`].
    #[inline]
    pub fn edit(&mut self, slot: &mut BookSlot) -> BookEdit<'a, W> {
        let words = &self.words[self.place.slot(slot.0)];
        let (fixed, levels) = words.split_first_chunk().expect("a slot has its fixed part");
        BookEdit {
            odd: seqlock::begin(&fixed[at::SEQUENCE]),
            fixed,
            levels,
            shown: self.shown,
        }
    }
}

/// A book being changed: what is not written stays as it was.
#[must_use = "readers wait until `publish`"]
#[derive(Debug)]
pub struct BookEdit<'a, W> {
    fixed: &'a [W; at::WORDS],
    levels: &'a [W],
    shown: usize,
    odd: u64,
}

impl<W: WriteWord> BookEdit<'_, W> {
    /// Which message changed it.
    #[inline]
    pub fn cause(&mut self, seq: SeqNo, venue_ts: Nanos, recv_ts: Nanos) {
        self.fixed[at::SEQ].store(seq.0);
        self.fixed[at::VENUE_TS].store(venue_ts.0);
        self.fixed[at::RECV_TS].store(recv_ts.0);
    }

    /// Whether the book alone can be trusted; its source's state comes on top.
    #[inline]
    pub fn state(&mut self, state: BookState) {
        self.fixed[at::STATE].store(state as u64);
    }

    /// Whether the instrument trades.
    #[inline]
    pub fn status(&mut self, status: TradingStatus) {
        self.fixed[at::STATUS].store(status as u64);
    }

    /// How much there is on a side of the whole book.
    #[inline]
    pub fn totals(&mut self, side: Side, levels: u32, qty: Volume, orders: u32) {
        self.fixed[at::LEVELS + side as usize].store(levels.into());
        self.fixed[at::QTY + side as usize].store(qty.0);
        self.fixed[at::ORDERS + side as usize].store(orders.into());
    }

    /// The level of a rank, 0 the best. Ranks beyond what a slot shows are ignored.
    #[inline]
    pub fn level(&mut self, side: Side, rank: usize, level: &Level) {
        if rank < self.shown {
            let first = LEVEL_WORDS * (self.shown * side as usize + rank);
            if let Some([price, qty, orders]) = self.levels[first..].first_chunk() {
                price.store(level.price.raw() as u64);
                qty.store(level.qty.0);
                orders.store(level.orders.into());
            }
        }
    }

    /// The levels from a rank on, best first, as many as the slot shows: what an inserted or removed level
    /// moved.
    #[inline]
    pub fn levels_from(&mut self, side: Side, rank: usize, levels: impl Iterator<Item = Level>) {
        self.levels_in(side, rank..self.shown, levels);
    }

    /// The levels of these ranks, best first, as many as there are and the slot shows.
    #[inline]
    pub fn levels_in(&mut self, side: Side, ranks: Range<usize>, levels: impl Iterator<Item = Level>) {
        let end = ranks.end.min(self.shown);
        let start = ranks.start.min(end);
        let side = LEVEL_WORDS * self.shown * side as usize;
        let words = &self.levels[side + LEVEL_WORDS * start..side + LEVEL_WORDS * end];
        let (words, _) = words.as_chunks::<LEVEL_WORDS>();
        for ([price, qty, orders], level) in words.iter().zip(levels) {
            price.store(level.price.raw() as u64);
            qty.store(level.qty.0);
            orders.store(level.orders.into());
        }
    }

    /// The last trade, and what was traded today.
    #[inline]
    pub fn trade(&mut self, last: &LastTrade, volume: Volume, trades: u64) {
        self.fixed[at::LAST_PRICE].store(last.price.raw() as u64);
        self.fixed[at::LAST_QTY].store(last.qty.0);
        self.fixed[at::LAST_TS].store(last.venue_ts.0);
        self.fixed[at::VOLUME].store(volume.0);
        self.fixed[at::TRADES].store(trades);
    }

    /// What is said about the next auction.
    pub fn auction(&mut self, auction: &Auction) {
        self.fixed[at::AUCTION].store(auction.kind.into());
        self.fixed[at::REFERENCE].store(auction.reference.raw() as u64);
        self.fixed[at::NEAR].store(auction.near.raw() as u64);
        self.fixed[at::FAR].store(auction.far.raw() as u64);
        self.fixed[at::PAIRED].store(auction.paired.0);
        self.fixed[at::IMBALANCE].store(auction.imbalance.0);
        self.fixed[at::IMBALANCE_SIDE].store(side_word(auction.side));
    }

    /// Ends the change: from here on readers see it, whole.
    #[inline]
    pub fn publish(self, now: Nanos) {
        self.fixed[at::PUBLISH_TS].store(now.0);
        seqlock::end(&self.fixed[at::SEQUENCE], self.odd);
    }
}

fn side_word(side: Option<Side>) -> u64 {
    side.map_or(2, |side| side as u64)
}

/// A copy of a book, whole as of one moment. Reused from read to read: reading allocates nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BookCopy {
    /// The source's number.
    pub source: u16,
    /// The instrument within its source.
    pub instrument: InstrumentId,
    /// Whether it can be trusted: the worse of the book's own state and its source's.
    pub state: BookState,
    /// Whether the instrument trades.
    pub status: TradingStatus,
    /// How often it was written.
    pub writes: u64,
    /// The last message that changed it.
    pub seq: SeqNo,
    /// The venue's time of that message.
    pub venue_ts: Nanos,
    /// When its packet was received.
    pub recv_ts: Nanos,
    /// When it was written; 0 where that was not looked at: another message of its packet followed.
    pub publish_ts: Nanos,
    /// Levels of the whole book, indexed by [`Side`].
    pub levels: [u32; 2],
    /// Quantity of the whole book, indexed by [`Side`].
    pub qty: [Volume; 2],
    /// Orders of the whole book, indexed by [`Side`]; 0 when the feed does not say.
    pub orders: [u32; 2],
    /// The last trade.
    pub last: LastTrade,
    /// Quantity traded today.
    pub volume: Volume,
    /// Trades today.
    pub trades: u64,
    /// What is said about the next auction.
    pub auction: Auction,
    shown: [usize; 2],
    top: [[Level; MAX_LEVELS]; 2],
}

impl Default for BookCopy {
    fn default() -> BookCopy {
        BookCopy {
            source: 0,
            instrument: InstrumentId::WHOLE_FEED,
            state: BookState::Building,
            status: TradingStatus::Unknown,
            writes: 0,
            seq: SeqNo(0),
            venue_ts: Nanos::ZERO,
            recv_ts: Nanos::ZERO,
            publish_ts: Nanos::ZERO,
            levels: [0; 2],
            qty: [Volume::ZERO; 2],
            orders: [0; 2],
            last: LastTrade::default(),
            volume: Volume::ZERO,
            trades: 0,
            auction: Auction::default(),
            shown: [0; 2],
            top: [[Level::default(); MAX_LEVELS]; 2],
        }
    }
}

impl BookCopy {
    /// The best levels of a side, best first.
    #[inline]
    pub fn side(&self, side: Side) -> &[Level] {
        &self.top[side as usize][..self.shown[side as usize]]
    }

    /// The best level of a side, `None` when it is empty.
    #[inline]
    pub fn best(&self, side: Side) -> Option<Level> {
        self.side(side).first().copied()
    }

    /// Takes over whatever the words hold; torn if they are being written.
    #[inline]
    fn load<W: Word>(&mut self, words: &[W], shown: usize) {
        let Some((w, levels)) = words.split_first_chunk::<{ at::WORDS }>() else {
            return;
        };
        let price = |word: usize| Price::from_raw(w[word].load() as i64);
        self.source = w[at::SOURCE].load() as u16;
        self.instrument = InstrumentId(w[at::INSTRUMENT].load() as u32);
        self.state = match w[at::STATE].load() {
            0 => BookState::Building,
            1 => BookState::Live,
            _ => BookState::Stale,
        };
        self.status = TradingStatus::from_u8(w[at::STATUS].load() as u8).unwrap_or_default();
        self.writes = w[at::SEQUENCE].load() / 2;
        self.seq = SeqNo(w[at::SEQ].load());
        self.venue_ts = Nanos(w[at::VENUE_TS].load());
        self.recv_ts = Nanos(w[at::RECV_TS].load());
        self.publish_ts = Nanos(w[at::PUBLISH_TS].load());
        self.last.price = price(at::LAST_PRICE);
        self.last.qty = Volume(w[at::LAST_QTY].load());
        self.last.venue_ts = Nanos(w[at::LAST_TS].load());
        self.volume = Volume(w[at::VOLUME].load());
        self.trades = w[at::TRADES].load();
        self.auction.kind = w[at::AUCTION].load() as u8;
        self.auction.reference = price(at::REFERENCE);
        self.auction.near = price(at::NEAR);
        self.auction.far = price(at::FAR);
        self.auction.paired = Volume(w[at::PAIRED].load());
        self.auction.imbalance = Volume(w[at::IMBALANCE].load());
        self.auction.side = match w[at::IMBALANCE_SIDE].load() {
            0 => Some(Side::Bid),
            1 => Some(Side::Ask),
            _ => None,
        };
        let (levels, _) = levels.as_chunks::<LEVEL_WORDS>();
        for side in 0..2 {
            self.levels[side] = w[at::LEVELS + side].load() as u32;
            self.qty[side] = Volume(w[at::QTY + side].load());
            self.orders[side] = w[at::ORDERS + side].load() as u32;
            let count = shown.min(self.levels[side] as usize).min(MAX_LEVELS);
            self.shown[side] = count;
            let words = &levels[shown * side..][..count];
            for ([price, qty, orders], level) in words.iter().zip(&mut self.top[side]) {
                level.price = Price::from_raw(price.load() as i64);
                level.qty = Volume(qty.load());
                level.orders = orders.load() as u32;
            }
        }
    }
}

impl<W: Word> Reader<'_, W> {
    /// Copies the book of a slot, whole as of one moment. Reading leaves no trace; a writer does not notice.
    ///
    /// # Errors
    /// The slot was being written at every attempt, is not in use, or there is none of that number. `copy` is
    /// then worthless.
    #[inline]
    pub fn read_book(&self, slot: u32, copy: &mut BookCopy) -> Result<(), Busy> {
        self.read_book_within(slot, copy, ATTEMPTS)
    }

    /// As [`Reader::read_book`], with so many attempts: 1 never waits.
    #[inline]
    pub fn read_book_within(&self, slot: u32, copy: &mut BookCopy, attempts: u32) -> Result<(), Busy> {
        let layout = self.layout();
        if slot >= layout.books.count {
            return Err(Busy);
        }
        let words = &self.words()[layout.books.slot(slot)];
        let shown = layout.config.book_levels as usize;
        let source = words[at::SOURCE].load() as u16;
        copy.state = self.trust(source, || {
            seqlock::read(&words[at::SEQUENCE], attempts, || copy.load(words, shown))?;
            Ok(copy.state)
        })?;
        Ok(())
    }

    /// Whose book a slot holds, `None` when it is not in use.
    pub fn book_identity(&self, slot: u32) -> Option<BookIdentity> {
        let layout = self.layout();
        if slot >= layout.books.count {
            return None;
        }
        let words = &self.words()[layout.books.slot(slot)];
        let named = words[at::SEQUENCE].load() != 0;
        // SYNC named: pairs with `BookWriter::claim`.
        W::acquire();
        named.then(|| BookIdentity {
            source: words[at::SOURCE].load() as u16,
            instrument: InstrumentId(words[at::INSTRUMENT].load() as u32),
            symbol: symbol_of([0, 1, 2].map(|word| words[at::SYMBOL + word].load())),
        })
    }

    /// How many book slots may be in use: all of them have lower numbers.
    pub fn books_used(&self) -> u32 {
        let claimed = self.words()[header::BOOKS_CLAIMED].load();
        claimed.min(self.layout().books.count.into()) as u32
    }

    /// Every book in use with its slot, in the order in which they were claimed.
    pub fn books(&self) -> impl Iterator<Item = (u32, BookIdentity)> + '_ {
        (0..self.books_used()).filter_map(|slot| Some((slot, self.book_identity(slot)?)))
    }

    /// The books of a symbol on all sources, with their slots.
    pub fn find(&self, symbol: Symbol) -> impl Iterator<Item = (u32, BookIdentity)> + '_ {
        self.books().filter(move |(_, book)| book.symbol == symbol)
    }
}

/// The symbol in three words; the empty one when they hold no symbol.
pub(crate) fn symbol_of(words: [u64; 3]) -> Symbol {
    Symbol::new(&words_to_bytes::<3, 24>(words)).unwrap_or_default()
}
