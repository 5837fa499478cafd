//! Reading a consolidated book.

use super::SuperBooks;
use super::ladder::{Kept, Share};
use super::update::{
    Difference, FeedMask, LastTrade, Market, National, Presence, SourceId, SuperId, SuperLevel, SuperTotals,
};
use crate::price_of;
use tickwire_market::{InstrumentId, Side, Symbol, TradingStatus, Volume};

/// One consolidated book, for reading.
#[derive(Clone, Copy)]
pub struct SuperRef<'a> {
    books: &'a SuperBooks,
    index: usize,
}

/// What one feed says of a symbol beside its shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FeedView {
    /// The feed's index.
    pub feed: u8,
    /// Its source.
    pub source: SourceId,
    /// The instrument there.
    pub instrument: InstrumentId,
    /// Whether its shares are in the consolidated book.
    pub presence: Presence,
    /// The trading status: the venue's where that ends trading, else the instrument's.
    pub status: TradingStatus,
    /// Shares traded there.
    pub volume: Volume,
    /// How many trades that were.
    pub trades: u64,
}

impl<'a> SuperRef<'a> {
    pub(super) fn new(books: &'a SuperBooks, index: usize) -> SuperRef<'a> {
        SuperRef { books, index }
    }

    /// Its number.
    pub fn id(&self) -> SuperId {
        SuperId(self.index as u32)
    }

    /// The consolidated symbol.
    pub fn symbol(&self) -> &'a Symbol {
        &self.books.merged[self.index].symbol
    }

    /// The feeds that carry it, the consolidated (SIP) ones too.
    pub fn feeds(&self) -> FeedMask {
        self.books.merged[self.index].feeds
    }

    /// Of these, the feeds that are out: building, stale, ended, or without room.
    pub fn away(&self) -> FeedMask {
        self.books.merged[self.index].away
    }

    /// Of these, the feeds whose venue does not trade it now: their shares are shown and do not count for the
    /// best.
    pub fn idle(&self) -> FeedMask {
        self.books.merged[self.index].idle
    }

    /// Whether best bid and best offer are locked or crossed; the feeds that make it so are those of
    /// [`SuperRef::best`].
    pub fn market(&self) -> Market {
        self.books.merged[self.index].market
    }

    /// The consolidated best of a side: the best price of the feeds that are live and trade, and all they
    /// have at it.
    pub fn best(&self, side: Side) -> Option<SuperLevel> {
        let best = self.books.merged[self.index].best[side as usize];
        (!best.qty.is_zero()).then_some(best)
    }

    /// The shares of a side together.
    pub fn totals(&self, side: Side) -> SuperTotals {
        self.books.merged[self.index].totals[side as usize]
    }

    /// Every live feed's share of a side: the best price first, at one price the lower feed index first.
    pub fn shares(&self, side: Side) -> impl Iterator<Item = Share> + use<'a> {
        self.shares_from(side, 0)
    }

    /// The same from a rank on, 0 the first share.
    #[inline]
    pub fn shares_from(&self, side: Side, first: usize) -> impl Iterator<Item = Share> + use<'a> {
        self.kept_from(side, first).map(move |kept| kept.share(side))
    }

    /// Those of the ranks from `first` to `end`, which is beyond, while no feed is out: then nothing has to
    /// be looked at to be passed over. `None` while one is: [`SuperRef::shares_from`] tells the same.
    #[inline]
    pub fn shares_between(
        &self,
        side: Side,
        first: usize,
        end: usize,
    ) -> Option<impl Iterator<Item = Share> + use<'a>> {
        let merged = &self.books.merged[self.index];
        let all = self.books.shares.of(&merged.ladders[side as usize]);
        let from = all.len().saturating_sub(end);
        let those = &all[from..all.len().saturating_sub(first).max(from)];
        let shares = move || those.iter().rev().map(move |kept| kept.share(side));
        merged.away.is_empty().then(shares)
    }

    /// The shares of a side merged by price, best first.
    pub fn levels(&self, side: Side) -> impl Iterator<Item = SuperLevel> + use<'a> {
        let mut shares = self.kept_from(side, 0).peekable();
        core::iter::from_fn(move || {
            let first = shares.next()?;
            let mut level = SuperLevel {
                price: price_of(side, first.key),
                ..SuperLevel::default()
            };
            add(&mut level, first);
            while let Some(share) = shares.next_if(|share| share.key == first.key) {
                add(&mut level, share);
            }
            Some(level)
        })
    }

    /// The national best, `None` unless a consolidated feed that carries it is live.
    pub fn national(&self) -> Option<National> {
        let merged = &self.books.merged[self.index];
        merged
            .has_national(self.books.nationals)
            .then_some(merged.national)
    }

    /// How the national best of a side differs from ours, and since when.
    pub fn difference(&self, side: Side) -> Difference {
        self.books.merged[self.index].difference[side as usize]
    }

    /// The last trade and the feed that told it.
    pub fn last_trade(&self) -> Option<(LastTrade, u8)> {
        let merged = &self.books.merged[self.index];
        (!merged.trade.qty.is_zero()).then_some((merged.trade, merged.trade_feed))
    }

    /// What all feeds together have traded.
    pub fn volume(&self) -> Volume {
        Volume(self.books.merged[self.index].volume)
    }

    /// How many trades that were; a broken one counts no more.
    pub fn trades(&self) -> u64 {
        self.books.merged[self.index].trades
    }

    /// The feeds that carry it, each with what it says, in no order.
    pub fn members(&self) -> impl Iterator<Item = FeedView> + use<'a> {
        let books = self.books;
        books.members_of(self.index).map(move |member| FeedView {
            feed: member.feed,
            source: SourceId(member.source),
            instrument: member.instrument,
            presence: books.presence(member),
            status: books.status(member),
            volume: Volume(member.volume),
            trades: member.trades,
        })
    }

    /// One feed's part.
    pub fn member(&self, feed: u8) -> Option<FeedView> {
        self.members().find(|member| member.feed == feed)
    }

    #[inline]
    fn kept_from(&self, side: Side, first: usize) -> impl Iterator<Item = &'a Kept> + use<'a> {
        let merged = &self.books.merged[self.index];
        let away = merged.away;
        let all = self.books.shares.of(&merged.ladders[side as usize]);
        // Where no feed is out, nothing has to be looked at to be passed over.
        let (left, passed_over) = match away {
            FeedMask::NONE => (&all[..all.len().saturating_sub(first)], 0),
            _ => (all, first),
        };
        let present = left.iter().rev().filter(move |kept| !away.has(kept.feed));
        present.skip(passed_over)
    }
}

/// Adds a share to its level.
#[inline(always)]
pub(super) fn add(level: &mut SuperLevel, share: &Kept) {
    level.qty.0 += share.qty;
    level.orders += share.orders;
    level.feeds = level.feeds.with(FeedMask::one(share.feed));
}
