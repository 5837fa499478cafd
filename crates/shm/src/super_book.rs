//! The consolidated book slot: one symbol on all feeds, merged, with the national best beside it. Seqlocked
//! as a book slot is.

use crate::book::symbol_of;
use crate::layout::{MAX_SHARES, SHARE_WORDS, SectionPlace, header, super_book as at};
use crate::seqlock::{self, ATTEMPTS, Busy};
use crate::word::text_to_words;
use crate::{Full, LastTrade, Reader, Region, Word, WriteWord};
use tickwire_market::{Nanos, Price, Side, Symbol, Volume};

/// What one feed has at one price.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// The price.
    pub price: Price,
    /// Its quantity there.
    pub qty: Volume,
    /// The feed's number.
    pub feed: u8,
    /// Its orders there; 0 when it does not say.
    pub orders: u32,
}

/// How the best bid meets the best ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u64)]
pub enum Touch {
    /// The bid is lower, or a side is empty.
    #[default]
    Apart = 0,
    /// They are equal.
    Locked = 1,
    /// The bid is higher.
    Crossed = 2,
}

/// The best price of a side over all feeds, and how much of it the slot shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ladder {
    /// The best price; meaningless when `qty` is 0.
    pub price: Price,
    /// Quantity at the best price over all feeds; 0: the side is empty.
    pub qty: Volume,
    /// Feeds at the best price, a bit each.
    pub feeds: u32,
    /// Shares of the whole side.
    pub shares: u32,
    /// Levels of the whole side.
    pub levels: u32,
    /// Quantity of the whole side.
    pub total_qty: Volume,
}

/// The consolidated feed's national best of a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct National {
    /// Its price; meaningless when `qty` is 0.
    pub price: Price,
    /// Its quantity; 0: none.
    pub qty: Volume,
    /// The participant it names, a letter; 0: none.
    pub participant: u8,
}

/// How far our best price of a side is from the national one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Difference {
    /// Ours less theirs, in 1e-9, signed; 0 when either is missing.
    pub price: i64,
    /// Since when they differ, since the epoch; 0: they agree.
    pub since: Nanos,
}

/// A slot that this thread writes. Not to be copied: it has one writer.
#[derive(PartialEq, Eq, Debug)]
pub struct SuperSlot(u32);

impl SuperSlot {
    /// Its number, for readers.
    pub fn number(&self) -> u32 {
        self.0
    }
}

/// Writes consolidated books.
#[derive(Debug)]
pub struct SuperWriter<'a, W> {
    words: &'a [W],
    place: SectionPlace,
    shown: usize,
    region: Region<'a, W>,
}

impl<'a, W: WriteWord> SuperWriter<'a, W> {
    pub(crate) fn new(region: Region<'a, W>) -> SuperWriter<'a, W> {
        SuperWriter {
            words: region.words,
            place: region.layout.supers,
            shown: region.layout.config.super_shares as usize,
            region,
        }
    }

    /// Shares per side that a slot shows.
    pub fn shown(&self) -> usize {
        self.shown
    }

    /// Takes a slot for a symbol, for good.
    ///
    /// # Errors
    /// Every slot is taken: the consolidated book is not shown.
    pub fn claim(&mut self, symbol: Symbol) -> Result<SuperSlot, Full> {
        let slot = self.region.claim("supers", header::SUPERS_CLAIMED, &self.place)?;
        let words = &self.words[self.place.slot(slot)];
        let text: [u64; 3] = text_to_words(symbol.as_bytes());
        for (word, value) in words[at::SYMBOL..].iter().zip(text) {
            word.store(value);
        }
        // SYNC named: pairs with `Reader::super_symbol`.
        seqlock::end(&words[at::SEQUENCE], 1);
        Ok(SuperSlot(slot))
    }

    /// The words of a slot, to have them fetched before they are written.
    #[inline]
    pub fn words(&self, slot: &SuperSlot) -> &'a [W] {
        &self.words[self.place.slot(slot.0)]
    }

    /// Begins to change a consolidated book. Readers wait, briefly, until [`SuperEdit::publish`].
    #[inline]
    pub fn edit(&mut self, slot: &mut SuperSlot) -> SuperEdit<'a, W> {
        let words = &self.words[self.place.slot(slot.0)];
        let (fixed, shares) = words.split_first_chunk().expect("a slot has its fixed part");
        SuperEdit {
            odd: seqlock::begin(&fixed[at::SEQUENCE]),
            fixed,
            shares,
            shown: self.shown,
        }
    }
}

/// A consolidated book being changed: what is not written stays as it was.
#[must_use = "readers wait until `publish`"]
#[derive(Debug)]
pub struct SuperEdit<'a, W> {
    fixed: &'a [W; at::WORDS],
    shares: &'a [W],
    shown: usize,
    odd: u64,
}

impl<W: WriteWord> SuperEdit<'_, W> {
    /// Which feeds are in it, and which are left out because their book is not live: a bit each.
    #[inline]
    pub fn feeds(&mut self, feeds: u32, stale: u32) {
        self.fixed[at::FEEDS].store(feeds.into());
        self.fixed[at::STALE].store(stale.into());
    }

    /// How the best bid and ask meet.
    #[inline]
    pub fn touch(&mut self, touch: Touch) {
        self.fixed[at::TOUCH].store(touch as u64);
    }

    /// The best price of a side and its totals.
    #[inline]
    pub fn ladder(&mut self, side: Side, ladder: &Ladder) {
        let side = side as usize;
        self.fixed[at::PRICE + side].store(ladder.price.raw() as u64);
        self.fixed[at::QTY + side].store(ladder.qty.0);
        self.fixed[at::AT_BEST + side].store(ladder.feeds.into());
        self.fixed[at::SHARES + side].store(ladder.shares.into());
        self.fixed[at::LEVELS + side].store(ladder.levels.into());
        self.fixed[at::TOTAL_QTY + side].store(ladder.total_qty.0);
    }

    /// The shares of a side from a rank on, as many as the slot shows: best price first, at one price by
    /// feed.
    #[inline]
    pub fn shares_from(&mut self, side: Side, rank: usize, shares: impl Iterator<Item = Share>) {
        if rank < self.shown {
            let side = SHARE_WORDS * self.shown * side as usize;
            let words = &self.shares[side + SHARE_WORDS * rank..side + SHARE_WORDS * self.shown];
            let (words, _) = words.as_chunks::<SHARE_WORDS>();
            for ([price, qty, who], share) in words.iter().zip(shares) {
                price.store(share.price.raw() as u64);
                qty.store(share.qty.0);
                who.store(u64::from(share.feed) | u64::from(share.orders) << 32);
            }
        }
    }

    /// The consolidated feed's national best, indexed by [`Side`].
    pub fn national(&mut self, best: &[National; 2], venue_ts: Nanos, recv_ts: Nanos) {
        for (side, national) in best.iter().enumerate() {
            self.fixed[at::NATIONAL_PRICE + side].store(national.price.raw() as u64);
            self.fixed[at::NATIONAL_QTY + side].store(national.qty.0);
            self.fixed[at::NATIONAL_AT + side].store(national.participant.into());
        }
        self.fixed[at::NATIONAL_VENUE_TS].store(venue_ts.0);
        self.fixed[at::NATIONAL_RECV_TS].store(recv_ts.0);
    }

    /// How far the best prices are from the national ones, indexed by [`Side`].
    #[inline]
    pub fn difference(&mut self, difference: &[Difference; 2]) {
        for (side, difference) in difference.iter().enumerate() {
            self.fixed[at::DIFFERENCE + side].store(difference.price as u64);
            self.fixed[at::DIFFERENT_SINCE + side].store(difference.since.0);
        }
    }

    /// The last trade on any feed, and what was traded today on all of them.
    pub fn trade(&mut self, last: &LastTrade, volume: Volume, trades: u64) {
        self.fixed[at::LAST_PRICE].store(last.price.raw() as u64);
        self.fixed[at::LAST_QTY].store(last.qty.0);
        self.fixed[at::LAST_TS].store(last.venue_ts.0);
        self.fixed[at::VOLUME].store(volume.0);
        self.fixed[at::TRADES].store(trades);
    }

    /// Ends the change: from here on readers see it, whole. `recv_ts`: when the packet that caused it was
    /// received.
    #[inline]
    pub fn publish(self, recv_ts: Nanos, now: Nanos) {
        self.fixed[at::RECV_TS].store(recv_ts.0);
        self.fixed[at::PUBLISH_TS].store(now.0);
        seqlock::end(&self.fixed[at::SEQUENCE], self.odd);
    }
}

/// A copy of a consolidated book, whole as of one moment. Reused from read to read: reading allocates
/// nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuperCopy {
    /// How often it was written.
    pub writes: u64,
    /// Feeds in it, a bit each.
    pub feeds: u32,
    /// Feeds left out because their book is not live, a bit each.
    pub stale: u32,
    /// How the best bid and ask meet.
    pub touch: Touch,
    /// Best price and totals, indexed by [`Side`].
    pub ladders: [Ladder; 2],
    /// The national best, indexed by [`Side`].
    pub national: [National; 2],
    /// The consolidated feed's time of it.
    pub national_venue_ts: Nanos,
    /// When its packet was received.
    pub national_recv_ts: Nanos,
    /// How far ours is from it, indexed by [`Side`].
    pub difference: [Difference; 2],
    /// The last trade on any feed.
    pub last: LastTrade,
    /// Quantity traded today over all feeds.
    pub volume: Volume,
    /// Trades today over all feeds.
    pub trades: u64,
    /// When the packet that changed it last was received.
    pub recv_ts: Nanos,
    /// When it was written; 0 where that was not looked at: another message of its packet followed.
    pub publish_ts: Nanos,
    shown: [usize; 2],
    top: [[Share; MAX_SHARES]; 2],
}

impl Default for SuperCopy {
    fn default() -> SuperCopy {
        SuperCopy {
            writes: 0,
            feeds: 0,
            stale: 0,
            touch: Touch::Apart,
            ladders: [Ladder::default(); 2],
            national: [National::default(); 2],
            national_venue_ts: Nanos::ZERO,
            national_recv_ts: Nanos::ZERO,
            difference: [Difference::default(); 2],
            last: LastTrade::default(),
            volume: Volume::ZERO,
            trades: 0,
            recv_ts: Nanos::ZERO,
            publish_ts: Nanos::ZERO,
            shown: [0; 2],
            top: [[Share::default(); MAX_SHARES]; 2],
        }
    }
}

impl SuperCopy {
    /// The best shares of a side: best price first, at one price by feed. A level is a run of equal prices.
    #[inline]
    pub fn side(&self, side: Side) -> &[Share] {
        &self.top[side as usize][..self.shown[side as usize]]
    }

    /// Best price and quantity of a side over all feeds, `None` when it is empty.
    #[inline]
    pub fn best(&self, side: Side) -> Option<(Price, Volume)> {
        let ladder = &self.ladders[side as usize];
        (!ladder.qty.is_zero()).then_some((ladder.price, ladder.qty))
    }

    /// Takes over whatever the words hold; torn if they are being written.
    #[inline]
    fn load<W: Word>(&mut self, words: &[W], shown: usize) {
        let Some((w, shares)) = words.split_first_chunk::<{ at::WORDS }>() else {
            return;
        };
        let price = |word: usize| Price::from_raw(w[word].load() as i64);
        let volume = |word: usize| Volume(w[word].load());
        let time = |word: usize| Nanos(w[word].load());
        self.writes = w[at::SEQUENCE].load() / 2;
        self.feeds = w[at::FEEDS].load() as u32;
        self.stale = w[at::STALE].load() as u32;
        self.touch = match w[at::TOUCH].load() {
            1 => Touch::Locked,
            2 => Touch::Crossed,
            _ => Touch::Apart,
        };
        self.national_venue_ts = time(at::NATIONAL_VENUE_TS);
        self.national_recv_ts = time(at::NATIONAL_RECV_TS);
        self.last.price = price(at::LAST_PRICE);
        self.last.qty = volume(at::LAST_QTY);
        self.last.venue_ts = time(at::LAST_TS);
        self.volume = volume(at::VOLUME);
        self.trades = w[at::TRADES].load();
        self.recv_ts = time(at::RECV_TS);
        self.publish_ts = time(at::PUBLISH_TS);
        let (shares, _) = shares.as_chunks::<SHARE_WORDS>();
        for side in 0..2 {
            self.ladders[side] = Ladder {
                price: price(at::PRICE + side),
                qty: volume(at::QTY + side),
                feeds: w[at::AT_BEST + side].load() as u32,
                shares: w[at::SHARES + side].load() as u32,
                levels: w[at::LEVELS + side].load() as u32,
                total_qty: volume(at::TOTAL_QTY + side),
            };
            self.national[side] = National {
                price: price(at::NATIONAL_PRICE + side),
                qty: volume(at::NATIONAL_QTY + side),
                participant: w[at::NATIONAL_AT + side].load() as u8,
            };
            self.difference[side] = Difference {
                price: w[at::DIFFERENCE + side].load() as i64,
                since: time(at::DIFFERENT_SINCE + side),
            };
            let count = shown.min(self.ladders[side].shares as usize).min(MAX_SHARES);
            self.shown[side] = count;
            let words = &shares[shown * side..][..count];
            for ([price, qty, who], share) in words.iter().zip(&mut self.top[side]) {
                let who = who.load();
                *share = Share {
                    price: Price::from_raw(price.load() as i64),
                    qty: Volume(qty.load()),
                    feed: who as u8,
                    orders: (who >> 32) as u32,
                };
            }
        }
    }
}

impl<W: Word> Reader<'_, W> {
    /// Copies the consolidated book of a slot, whole as of one moment. Reading leaves no trace; a writer does
    /// not notice.
    ///
    /// # Errors
    /// The slot was being written at every attempt, is not in use, or there is none of that number. `copy` is
    /// then worthless.
    #[inline]
    pub fn read_super(&self, slot: u32, copy: &mut SuperCopy) -> Result<(), Busy> {
        let layout = self.layout();
        if slot >= layout.supers.count {
            return Err(Busy);
        }
        let words = &self.words()[layout.supers.slot(slot)];
        let shown = layout.config.super_shares as usize;
        seqlock::read(&words[at::SEQUENCE], ATTEMPTS, || copy.load(words, shown))
    }

    /// Whose consolidated book a slot holds, `None` when it is not in use.
    pub fn super_symbol(&self, slot: u32) -> Option<Symbol> {
        let layout = self.layout();
        if slot >= layout.supers.count {
            return None;
        }
        let words = &self.words()[layout.supers.slot(slot)];
        let named = words[at::SEQUENCE].load() != 0;
        // SYNC named: pairs with `SuperWriter::claim`.
        W::acquire();
        named.then(|| symbol_of([0, 1, 2].map(|word| words[at::SYMBOL + word].load())))
    }

    /// How many consolidated book slots may be in use: all of them have lower numbers.
    pub fn supers_used(&self) -> u32 {
        let claimed = self.words()[header::SUPERS_CLAIMED].load();
        claimed.min(self.layout().supers.count.into()) as u32
    }

    /// Every consolidated book in use with its slot, in the order in which they were claimed.
    pub fn supers(&self) -> impl Iterator<Item = (u32, Symbol)> + '_ {
        (0..self.supers_used()).filter_map(|slot| Some((slot, self.super_symbol(slot)?)))
    }

    /// The slot of a symbol's consolidated book.
    pub fn find_super(&self, symbol: Symbol) -> Option<u32> {
        self.supers()
            .find(|(_, found)| *found == symbol)
            .map(|(slot, _)| slot)
    }
}
