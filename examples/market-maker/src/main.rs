//! Makes a market in one instrument: a bid and an offer around the middle, moved against what it holds, at
//! most as often as a timer lets it.

use std::process::ExitCode;

use serde::Deserialize;
use tickwire::prelude::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Maker {
    /// What to trade.
    symbol: String,
    /// Shares of each side.
    lot: u32,
    /// From the middle to each side's price, in ticks.
    half_spread: i64,
    /// How far both prices go down for each lot held, in thousandths of a tick.
    skew: i64,
    /// No side is quoted that could bring more than this.
    position_max: i64,
    /// How often quotes may move, milliseconds.
    every_ms: u64,
    #[serde(skip)]
    state: State,
}

#[derive(Default)]
struct State {
    instrument: Option<(InstrumentId, i64)>,
    quotes: [Option<ClientOrderId>; 2],
    moves: i64,
}

const REQUOTE: TimerId = TimerId(0);

impl Maker {
    /// Prices of both sides, rounded to the tick away from the middle.
    fn prices(&self, mid: i64, tick: i64, held: i64) -> [Price; 2] {
        let lots = held * 1000 / i64::from(self.lot);
        let fair = mid - lots * self.skew * tick / 1_000_000;
        let bid = (fair - self.half_spread * tick).div_euclid(tick) * tick;
        let ask = -(-(fair + self.half_spread * tick)).div_euclid(tick) * tick;
        [Price::from_raw(bid), Price::from_raw(ask)]
    }
}

impl Strategy for Maker {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::symbol(&self.symbol)]
    }

    fn on_instrument(&mut self, ctx: &mut Context<'_>, instrument: &Instrument) {
        let tick = instrument.tick.raw().max(1);
        self.state.instrument = Some((instrument.id, tick));
        ctx.set_timer(REQUOTE, ctx.now());
    }

    fn on_timer(&mut self, ctx: &mut Context<'_>, _: TimerId) {
        ctx.set_timer(REQUOTE, ctx.now().after(self.every_ms.max(1) * Nanos::MILLI));
        let Some((id, tick)) = self.state.instrument else {
            return;
        };
        let Some(book) = ctx.book(id).filter(|book| book.state() == BookState::Live) else {
            return;
        };
        let (Some(bid), Some(ask)) = (book.best(Side::Bid), book.best(Side::Ask)) else {
            return;
        };
        let held = ctx.position(id).qty;
        let mid = (bid.price.raw() + ask.price.raw()) / 2;
        let prices = self.prices(mid, tick, held);
        // The side that moves away goes first: a quote must not meet our own.
        let is_up = self.state.quotes[0]
            .and_then(|id| ctx.order(id))
            .is_some_and(|order| prices[0] > order.price);
        let sides = if is_up { [Side::Ask, Side::Bid] } else { Side::BOTH };
        for side in sides {
            let more = match side {
                Side::Bid => held + i64::from(self.lot),
                Side::Ask => i64::from(self.lot) - held,
            };
            let quote = &mut self.state.quotes[side as usize];
            let open = quote
                .and_then(|id| ctx.order(id))
                .filter(|order| order.state.is_open())
                .copied();
            let price = prices[side as usize];
            match open {
                Some(order) if more > self.position_max => _ = ctx.cancel(order.id),
                Some(order) if order.price != price => {
                    if let Ok(id) = ctx.replace(order.id, order.filled.0 + order.remaining().0, price) {
                        (*quote, self.state.moves) = (Some(id), self.state.moves + 1);
                    }
                }
                Some(_) => {}
                None if more > self.position_max => {}
                None => *quote = ctx.submit(Ticket::limit(side, id, self.lot, price)).ok(),
            }
        }
    }

    fn on_stale(&mut self, ctx: &mut Context<'_>, _: InstrumentId) {
        ctx.cancel_all();
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        tell("quotes moved", self.state.moves);
    }
}

fn main() -> ExitCode {
    tickwire::main::<Maker>()
}
