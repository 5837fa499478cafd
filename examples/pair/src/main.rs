//! One instrument on two venues: buys where the offer is cheaper and sells where the bid is dearer, as soon
//! as the book over both crosses by an edge.

use std::process::ExitCode;

use serde::Deserialize;
use tickwire::prelude::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    /// What to trade.
    symbol: String,
    /// Shares of each leg, at most.
    lot: u32,
    /// What a share must bring, in 0.0001.
    edge: i64,
    /// Neither venue's position goes beyond this.
    position_max: i64,
    #[serde(skip)]
    count: Count,
}

#[derive(Default)]
struct Count {
    pairs: i64,
    hedges: i64,
}

impl Pair {
    /// One leg was filled and the other was not, or not whole: what is left over is traded away where that is
    /// best.
    fn hedge(&mut self, ctx: &mut Context<'_>, book: &SuperRef<'_>, net: i64) {
        let side = if net > 0 { Side::Ask } else { Side::Bid };
        if let Some((id, price, qty)) = best(ctx, book, !side) {
            let qty = net.unsigned_abs().min(qty.0).min(self.lot.into()) as u32;
            let hedge = Ticket::limit(side, id, qty, price).immediate_or_cancel();
            self.count.hedges += i64::from(ctx.submit(hedge).is_ok());
        }
    }
}

/// Who has most at the best price of a side.
fn best(ctx: &Context<'_>, book: &SuperRef<'_>, side: Side) -> Option<(InstrumentId, Price, Volume)> {
    ctx.best_member(&ctx.super_book(book.id())?, side)
}

impl Strategy for Pair {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::consolidated(&self.symbol)]
    }

    fn on_super_book(&mut self, ctx: &mut Context<'_>, change: &SuperChange) {
        let Some(book) = ctx.super_book(change.id) else {
            return;
        };
        // One pair at a time: what became of the last one is known first.
        if ctx.open_orders().next().is_some() {
            return;
        }
        let net: i64 = ctx.members(&book).map(|(id, _)| ctx.position(id).qty).sum();
        if net != 0 {
            return self.hedge(ctx, &book, net);
        }
        let (Some((there, bid, wanted)), Some((here, ask, offered))) =
            (best(ctx, &book, Side::Bid), best(ctx, &book, Side::Ask))
        else {
            return;
        };
        let room = [ctx.position(here).qty, -ctx.position(there).qty].map(|held| self.position_max - held);
        let qty = wanted.0.min(offered.0).min(self.lot.into()) as i64;
        let qty = qty.min(room[0]).min(room[1]);
        if here == there || qty <= 0 || bid.raw() < ask.raw() + self.edge * 100_000 {
            return;
        }
        // The first leg that a check stops stops the other.
        if ctx.buy_now(here, qty as u32, ask).is_ok() {
            let _ = ctx.sell_now(there, qty as u32, bid);
            self.count.pairs += 1;
        }
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        tell("pairs", self.count.pairs);
        tell("hedges", self.count.hedges);
    }
}

fn main() -> ExitCode {
    tickwire::main::<Pair>()
}
