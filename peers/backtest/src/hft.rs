//! hftbacktest: order by order, first in first out, no time for the feed and 20 µs for an order each way.

use hftbacktest::backtest::assettype::LinearAsset;
use hftbacktest::backtest::data::DataSource;
use hftbacktest::backtest::models::{CommonFees, ConstantLatency, L3FIFOQueueModel, TradingValueFeeModel};
use hftbacktest::backtest::{Backtest, ExchangeKind, L3AssetBuilder};
use hftbacktest::prelude::*;
use tickwire_market::Side as OurSide;
use tickwire_runtime::clock::thread_cpu_ns;

use crate::Case;
use crate::flow::EVERY;
use crate::told::{Told, told};

/// The events of a case, by instrument.
pub(crate) struct Data(Vec<hftbacktest::backtest::data::Data<Event>>);

impl Data {
    /// Converts them.
    pub(crate) fn of(case: &Case) -> Data {
        let of_instrument = case.with_orders.iter().map(|events| {
            let mut rows = Vec::new();
            for (event, had) in events {
                let time = event.recv_ts.0 as i64;
                told(event, had.as_ref(), |what, id, side, price, qty| {
                    let (kind, qty) = match what {
                        Told::Add => (ADD_ORDER_EVENT, qty),
                        Told::Cancel => (CANCEL_ORDER_EVENT, qty),
                        Told::Modify(left) => (MODIFY_ORDER_EVENT, left),
                        Told::Fill => (FILL_EVENT, qty),
                    };
                    let of_side = match side {
                        OurSide::Bid => BUY_EVENT,
                        OurSide::Ask => SELL_EVENT,
                    };
                    rows.push(Event {
                        ev: kind | of_side | EXCH_EVENT | LOCAL_EVENT,
                        exch_ts: time,
                        local_ts: time,
                        px: price as f64 / 1e9,
                        qty: qty as f64,
                        order_id: id.0,
                        ival: 0,
                        fval: 0.0,
                    });
                });
            }
            hftbacktest::backtest::data::Data::from_data(&rows)
        });
        Data(of_instrument.collect())
    }

    /// One run: processor time in nanoseconds.
    pub(crate) fn run(&self, case: &Case, quotes: bool) -> u64 {
        let tick = case.tick as f64 / 1e9;
        let mut builder = Backtest::builder();
        for data in &self.0 {
            let asset = L3AssetBuilder::new()
                .data(vec![DataSource::Data(data.clone())])
                .latency_model(ConstantLatency::new(20_000, 20_000))
                .asset_type(LinearAsset::new(1.0))
                .fee_model(TradingValueFeeModel::new(CommonFees::new(0.0, 0.0)))
                .exchange(ExchangeKind::NoPartialFillExchange)
                .queue_model(L3FIFOQueueModel::new())
                .depth(move || HashMapMarketDepth::new(tick, 1.0))
                .build();
            builder = builder.add_asset(asset.expect("an asset"));
        }
        let mut test = builder.build().expect("a backtest");
        let begun = thread_cpu_ns();
        match quotes {
            false => _ = test.goto_end().expect("it takes every event"),
            true => {
                let mut open = [0_u64; 2];
                let mut next = 1;
                while test.elapse(EVERY as i64).expect("it takes every event") == ElapseResult::Ok {
                    for (own, is_bid) in open.iter_mut().zip([true, false]) {
                        quote(&mut test, own, &mut next, is_bid);
                    }
                    test.clear_inactive_orders(Some(0));
                }
            }
        }
        let took = thread_cpu_ns() - begun;
        for instrument in 1..=case.instruments {
            let depth = test.depth(instrument as usize - 1);
            let bids = case.levels(instrument, OurSide::Bid);
            let asks = case.levels(instrument, OurSide::Ask);
            let best = |levels: &[(i64, u64)]| levels.first().map(|(price, _)| price / case.tick);
            if let (Some(bid), Some(ask)) = (best(&bids), best(&asks)) {
                assert_eq!(
                    [depth.best_bid_tick(), depth.best_ask_tick()],
                    [bid, ask],
                    "hftbacktest's final book"
                );
            }
            for (price, qty) in bids {
                assert_eq!(
                    depth.bid_qty_at_tick(price / case.tick),
                    qty as f64,
                    "hftbacktest's final bids"
                );
            }
            for (price, qty) in asks {
                assert_eq!(
                    depth.ask_qty_at_tick(price / case.tick),
                    qty as f64,
                    "hftbacktest's final asks"
                );
            }
        }
        took
    }
}

/// Puts the order of a side at the best price, anew where there is none.
fn quote(test: &mut Backtest<HashMapMarketDepth>, own: &mut u64, next: &mut u64, is_bid: bool) {
    let depth = test.depth(0);
    let price = if is_bid {
        depth.best_bid()
    } else {
        depth.best_ask()
    };
    if price.is_nan() {
        return;
    }
    let order = test.orders(0).get(own);
    assert!(
        order.is_none_or(|order| order.status != Status::Rejected),
        "hftbacktest refused a request"
    );
    if order.is_some_and(|order| order.status == Status::New && order.req == Status::None) {
        test.modify(0, *own, price, 1.0, false).expect("it is taken");
        return;
    }
    *own = *next;
    *next += 1;
    let submitted = match is_bid {
        true => test.submit_buy_order(0, *own, price, 1.0, TimeInForce::GTC, OrdType::Limit, false),
        false => test.submit_sell_order(0, *own, price, 1.0, TimeInForce::GTC, OrdType::Limit, false),
    };
    submitted.expect("it is taken");
}
