//! What an operator and the controls do, and what they are shown.

use tickwire_market::{Nanos, Price, Qty};
use tickwire_node::hot::OrderOut;
use tickwire_trading::strategy::Context;
use tickwire_trading::{NO_ASK, NO_BID, OptionQuoter};

use super::executions::Handed;
use super::{QuotePath, Trades};
use crate::account::{Off, Seen, View};

/// No quote.
const NONE: u16 = u16::MAX;

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// Has the strategy do something, and sends what came of it.
    fn act<R>(
        &mut self,
        now: Nanos,
        does: impl FnOnce(&mut OptionQuoter<Handed<T>>, &mut Context<'_>) -> R,
    ) -> R {
        let done = self.hot.act(now, does);
        self.hot.let_go();
        done
    }

    /// Turns the eye on ([`tickwire_trading::MarketMaker::arm_eye`]).
    pub fn arm_eye(&mut self, now: Nanos) -> bool {
        self.hot.rule.conductor_mut().strategy_mut().arm_eye(now)
    }

    /// An option is not traded: it is not quoted until its status says so.
    pub fn close(&mut self, now: Nanos, quote: u16) {
        self.act(now, |quoter, ctx| quoter.set_open(ctx, quote, false));
    }

    /// The kill switch: takes every quote away and turns the eye off, until [`QuotePath::resume`].
    pub fn pull(&mut self, now: Nanos) {
        self.act(now, |quoter, ctx| quoter.pull(ctx));
    }

    /// The same because more was lost than may be.
    pub fn pull_on_loss(&mut self, now: Nanos) {
        self.act(now, |quoter, ctx| quoter.pull_on_loss(ctx));
    }

    /// Quotes again, and the eye may be turned on again; while quotes are still being taken away, neither.
    pub fn resume(&mut self, now: Nanos) -> bool {
        self.hot.rule.conductor_mut().risk_mut().revive();
        self.act(now, |quoter, ctx| quoter.resume(ctx))
    }

    /// What is seen now: markets of the options and our quotes in them, in the order of the quotes, then the
    /// underlying's market.
    #[cold]
    pub fn look(&self, now: Nanos, view: &mut View) {
        view.at = now;
        view.seen.clear();
        view.seen.resize(self.options.ids.len() + 1, Seen::default());
        let tick = self.options.tick.raw();
        let quoter = &self.maker().quoter;
        for ((quote, instrument), seen) in (0_u16..).zip(&self.options.ids).zip(&mut view.seen) {
            let (bid, ask) = quoter.live(quote);
            let [bids, asks] = quoter.open(quote);
            let side = |ticks: u16, qty: u32| {
                (qty > 0).then(|| (Price::from_raw(tick * i64::from(ticks)), Qty(qty)))
            };
            let price =
                |ticks: u16, none: u16| (ticks != none).then(|| Price::from_raw(tick * i64::from(ticks)));
            let sides = |(bid, ask): (u16, u16)| [price(bid, NO_BID), price(ask, NO_ASK)];
            *seen = Seen {
                // Ours is no market: it would be marked by what we think ourselves.
                market: self.market(now, *instrument, quote),
                own: [side(bid, bids), side(ask, asks)],
                off: quoter.off_market(quote).map(|pulled| Off {
                    why: pulled.why,
                    wanted: sides(pulled.wanted),
                    market: sides(pulled.market),
                }),
            };
        }
        if let Some(underlying) = view.seen.last_mut() {
            underlying.market = self.market(now, self.underlying.id, NONE);
        }
    }

    /// Whether nothing of ours is under way.
    pub fn is_still(&self) -> bool {
        let session = &self.hot.sessions[0];
        session.is_active() && session.is_whole() && self.maker().is_still()
    }
}
