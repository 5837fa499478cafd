//! A strategy with a fault, for the test of what becomes of its orders: it leaves three orders in each book,
//! then panics.

use std::process::ExitCode;

use serde::Deserialize;
use tickwire::prelude::*;

#[derive(Deserialize)]
struct Faulty {
    after: u32,
    #[serde(skip)]
    books: u32,
}

impl Strategy for Faulty {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::symbol("AAPL")]
    }

    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        self.books += 1;
        ctx.note("books", i64::from(self.books));
        if self.books == self.after {
            let orders = ctx.open_orders().count();
            panic!("{orders} orders are open");
        }
        if self.books > self.after / 2
            && ctx
                .open_orders()
                .filter(|order| order.instrument == change.instrument)
                .count()
                < 3
            && let Some((bid, _)) = change.after.best(Side::Bid)
        {
            let _ = ctx.buy(change.instrument, 1, Price::from_raw(bid.raw() - 500_000_000));
        }
    }
}

fn main() -> ExitCode {
    tickwire::main::<Faulty>()
}
