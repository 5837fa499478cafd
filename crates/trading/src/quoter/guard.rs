//! Quotes beside the markets of their options: what does not go with its market is not sent.

use super::ladder::BLOCK;
use super::pull::State;
use super::rehearsing::Rehearsed;
use super::{QuoteSink, Quoter, Row, places};
use tickwire_book::BookRef;
use tickwire_market::{Nanos, Price, Side, Volume};

impl Quoter {
    /// The market of an option changed: best prices of *others* ([`Quoter::is_own`]) by side, and whether its
    /// book is to be trusted. With [`QuoterConfig::market`](super::QuoterConfig::market), a quote that does
    /// not go with it is taken away.
    #[inline]
    pub fn on_market(
        &mut self,
        now: Nanos,
        quote: u16,
        is_live: bool,
        best: [Option<Price>; 2],
        sink: &mut impl QuoteSink,
    ) {
        let at = usize::from(quote);
        if !self.markets.is_on() || at >= self.exposed.open.len() {
            return;
        }
        self.markets.learn(at, is_live, best, self.config.option_tick);
        let (State::Quoting, Some(look)) = (self.pulls.state, self.trust.look) else {
            return;
        };
        let row = self.ladder.as_ref().and_then(|ladder| ladder.row(look.half_tick));
        let Some(wanted) = row.map(|row| (row.bids[at], row.asks[at])) else {
            return;
        };
        if !self.markets.is_outside(at, wanted) {
            return;
        }
        self.markets.see(at);
        if !self.markets.is_off(at) && self.options.is_quoted[at] {
            self.pull_option(now, at, wanted);
            self.decide(now, at / BLOCK..at / BLOCK + 1, sink);
        }
    }

    /// Whether a level of an option's book is a quote of ours, and nobody else's: its price is one that is
    /// live or was told within the last second, and it is no larger. The book may show a quote of ours some
    /// time after it was replaced.
    #[inline]
    pub fn is_own(&self, now: Nanos, quote: u16, side: Side, (price, qty): (Price, Volume)) -> bool {
        let at = usize::from(quote);
        let tick = self.config.option_tick.raw().max(1);
        let Some(open) = self.exposed.open.get(at).filter(|_| price.raw() % tick == 0) else {
            return false;
        };
        let Ok(ticks) = u16::try_from(price.raw() / tick) else {
            return false;
        };
        let live = match side {
            Side::Bid => self.table.live_bids[at],
            Side::Ask => self.table.live_asks[at],
        };
        (live == ticks && qty.0 <= u64::from(open[side as usize]))
            || self.markets.was_told(now, at, side, (ticks, qty))
    }

    /// The best prices of an option's book, by side, that are not only ours.
    #[inline]
    pub fn others(&self, now: Nanos, quote: u16, book: &BookRef<'_>) -> [Option<Price>; 2] {
        Side::BOTH.map(|side| {
            let mut levels = book.levels(side);
            let level = levels.find(|level| !self.is_own(now, quote, side, (level.price, level.qty)))?;
            Some(level.price)
        })
    }

    /// Takes an option out until its quote and its market go together again.
    #[cold]
    pub(super) fn pull_option(&mut self, now: Nanos, at: usize, wanted: (u16, u16)) {
        let why = self.markets.pull(now, at, wanted);
        self.counters.bump(why.counter());
        self.limit(at);
    }

    /// Pulls the quotes of a block that do not go with their markets.
    #[inline]
    pub(super) fn heed_markets(&mut self, now: Nanos, row: &Row<'_>, block: usize) {
        if !self.markets.is_on() || self.batch.rehearsed == Rehearsed::UpToMessage {
            return;
        }
        let outside = self.markets.look(row, block);
        if outside == 0 {
            return;
        }
        for at in places(block, outside) {
            if self.options.is_quoted.get(at).copied().unwrap_or(false) {
                self.pull_option(now, at, (row.bids[at], row.asks[at]));
            }
        }
    }
}
