//! What an operator and the controls do, and what they are shown.

use tickwire_fix::Status;
use tickwire_market::{BookState, InstrumentId, Nanos, Price, Qty};
use tickwire_node::hot::OrderOut;
use tickwire_trading::{MarketMaker, NO_ASK, NO_BID, StrategyId};

use super::market::others;
use super::{NONE, QuotePath, QuoteWire, Trades};
use crate::account::{Off, Seen, View};

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// Turns the eye on ([`MarketMaker::arm_eye`]).
    pub fn arm_eye(&mut self, now: Nanos) -> bool {
        self.maker.arm_eye(now, &self.options.is_open)
    }

    /// Whether an option trades.
    pub(super) fn set_open(&mut self, now: Nanos, quote: u16, is_open: bool) {
        if let Some(known) = self.options.is_open.get_mut(usize::from(quote)) {
            *known = is_open;
        }
        self.maker.set_open(now, quote, is_open, &mut self.wire);
    }

    /// An option is not traded: it is not quoted until its status says so.
    pub fn close(&mut self, now: Nanos, quote: u16) {
        self.wire.now = now;
        self.set_open(now, quote, false);
        self.wire.out.let_go();
    }

    /// The kill switch: takes every quote away and turns the eye off, until [`QuotePath::resume`].
    pub fn pull(&mut self, now: Nanos) {
        self.pull_by(now, |maker, wire| maker.pull_by(|quoter| quoter.pull(now, wire)));
    }

    /// The same because more was lost than may be.
    pub fn pull_on_loss(&mut self, now: Nanos) {
        self.pull_by(now, |maker, wire| {
            maker.pull_by(|quoter| quoter.pull_on_loss(now, wire))
        });
    }

    /// The same because one of the controls stopped the strategy.
    #[cold]
    pub(super) fn pull_on_control(&mut self, now: Nanos) {
        if self.wire.stopped_by.is_none()
            && let Some(controls) = &self.wire.controls
        {
            let mut strategies = [StrategyId::Quotes, StrategyId::Eye].into_iter();
            self.wire.stopped_by = strategies.find_map(|strategy| controls.stopped(strategy));
        }
        self.pull_by(now, |maker, wire| {
            maker.pull_by(|quoter| quoter.pull_on_control(now, wire));
        });
    }

    pub(super) fn pull_by(&mut self, now: Nanos, pull: impl FnOnce(&mut MarketMaker, &mut QuoteWire<O>)) {
        self.wire.now = now;
        pull(&mut self.maker, &mut self.wire);
        self.wire.out.let_go();
    }

    /// Quotes again, and the eye may be turned on again; while quotes are still being taken away, neither.
    pub fn resume(&mut self, now: Nanos) -> bool {
        self.wire.now = now;
        self.wire.stopped_by = None;
        if let Some(controls) = &mut self.wire.controls {
            controls.resume();
        }
        let is_quoting = self.maker.resume(now);
        if is_quoting && self.underlying.top.state == BookState::Live {
            self.tick(now);
        }
        is_quoting
    }

    /// What is seen now: markets of the options and our quotes in them, in the order of the quotes, then the
    /// underlying's market.
    #[cold]
    pub fn look(&self, now: Nanos, view: &mut View) {
        // Ours is no market: it would be marked by what we think ourselves.
        let market = |instrument: InstrumentId, quote: u16| {
            let book = self.books.book(instrument);
            match book.is_some_and(|book| book.state() == BookState::Live) {
                true => others(&self.books, &self.maker.quoter, now, quote, instrument),
                false => [None; 2],
            }
        };
        view.at = now;
        view.seen.clear();
        view.seen.resize(self.options.is_open.len() + 1, Seen::default());
        let tick = self.options.tick.raw();
        for (instrument, quote) in self.options.by_instrument.iter().enumerate() {
            let Some(seen) = view.seen.get_mut(usize::from(*quote)).filter(|_| *quote != NONE) else {
                continue;
            };
            let (bid, ask) = self.maker.quoter.live(*quote);
            let [bids, asks] = self.maker.quoter.open(*quote);
            let side = |ticks: u16, qty: u32| {
                (qty > 0).then(|| (Price::from_raw(tick * i64::from(ticks)), Qty(qty)))
            };
            let price =
                |ticks: u16, none: u16| (ticks != none).then(|| Price::from_raw(tick * i64::from(ticks)));
            let sides = |(bid, ask): (u16, u16)| [price(bid, NO_BID), price(ask, NO_ASK)];
            *seen = Seen {
                market: market(InstrumentId(instrument as u32), *quote),
                own: [side(bid, bids), side(ask, asks)],
                off: self.maker.quoter.off_market(*quote).map(|pulled| Off {
                    why: pulled.why,
                    wanted: sides(pulled.wanted),
                    market: sides(pulled.market),
                }),
            };
        }
        if let Some(underlying) = view.seen.last_mut() {
            underlying.market = market(self.underlying.id, NONE);
        }
    }

    /// Whether nothing of ours is under way.
    pub fn is_still(&self) -> bool {
        self.wire.session.status() == Status::Active && self.maker.is_still() && !self.session.is_catching_up
    }
}
