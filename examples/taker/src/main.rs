//! Buys one lot whenever the best offer has another price, and sells it again when the best bid is higher by
//! an edge.

use std::process::ExitCode;

use serde::Deserialize;
use tickwire::prelude::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Taker {
    /// What to trade.
    symbol: String,
    /// Shares of each order.
    lot: u32,
    /// Nothing more is bought beyond this position.
    position_max: i64,
    /// How much more than the last purchase a sale must bring, in 0.0001.
    edge: i64,
    #[serde(skip)]
    bought_at: Option<Price>,
}

impl Strategy for Taker {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::symbol(&self.symbol)]
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        let id = change.instrument;
        let held = ctx.position(id).qty;
        if let (Some((bid, _)), Some(paid)) = (change.after.best(Side::Bid), self.bought_at)
            && held > 0
            && bid.raw() >= paid.raw() + self.edge * 100_000
        {
            let _ = ctx.sell_now(id, held as u32, bid);
        } else if let Some(offer) = change.new_best_price(Side::Ask)
            && held < self.position_max
        {
            // What became of it: the order's number, or the check that stopped it.
            let _ = ctx.buy_now(id, self.lot, offer);
        }
    }

    fn on_order(&mut self, _: &mut Context<'_>, event: &OrderEvent) {
        if let ReportKind::Filled { price, .. } = event.kind
            && event.order.side == Side::Bid
        {
            self.bought_at = Some(price);
        }
    }
}

fn main() -> ExitCode {
    tickwire::main::<Taker>()
}
