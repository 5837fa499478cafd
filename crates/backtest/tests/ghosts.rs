//! Ghost replay: an order out of a recording is entered a second time as ours, right behind which the real one stands; it must get the real
//! one's fills, one by one. Thousands of orders, on a day of the exchange simulator that an independent decoder has read.

use std::collections::BTreeMap;

use tickwire_backtest::{Backtest, BacktestConfig};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::generate_itch;
use tickwire_feed::{
    ArbiterConfig, Channel, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, SoupConfig, Start,
};
use tickwire_market::{
    BookState, Cause, ClientOrderId, EventFlags, EventKind, MarketEvent, Nanos, OrderId, OrderIntent,
    OrderType, Price, Qty, Side, TimeInForce,
};
use tickwire_trading::strategy::{ConductorConfig, Strategy, Subscription};

/// It does nothing: the orders are put in from outside.
struct Nobody;

impl Strategy for Nobody {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::All]
    }
}

/// The events of a generated day.
fn day(seed: u64, messages: u64) -> Vec<MarketEvent> {
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: 64,
        ..ItchConfig::default()
    });
    let arbiter = ArbiterConfig {
        start: Start::Here,
        snapshot: false,
        ..ArbiterConfig::default()
    };
    let mut channel = ItchChannel::new(ItchFeed::new(arbiter, decoder), SoupConfig::default());
    let mut events = Vec::new();
    let mut time = 0;
    generate_itch(seed, messages, 20, &mut |message: &[u8]| {
        time += 1_000;
        channel.on_message(Nanos(time), message, &mut |event: &MarketEvent| {
            events.push(*event)
        });
    });
    events
}

#[test]
fn a_ghost_of_every_recorded_order_gets_its_real_fills() {
    let mut ghosts = 0;
    let mut filled = 0;
    for seed in 1..=4 {
        let events = day(seed, 150_000);
        // What really was executed of each order, at its own price, until it was replaced.
        let mut real: BTreeMap<OrderId, u64> = BTreeMap::new();
        for event in &events {
            let is_own_price = !event.flags.has(EventFlags::AT_OTHER_PRICE);
            if event.kind == EventKind::Execute && is_own_price {
                *real.entry(event.order_id).or_default() += event.qty.0;
            }
        }
        let config = BooksConfig {
            depth: Depth::ByOrder,
            instruments: 64,
            orders: 1 << 17,
            levels: 1 << 20,
            initial: BookState::Live,
            ..BooksConfig::default()
        };
        // One ghost at a time in a level: one whose order was cancelled in part would take what is the next one's.
        for part in 0..4_usize {
            let conductor = ConductorConfig {
                instrument_bits: 6,
                max_orders: 1,
                ..ConductorConfig::default()
            };
            let mut test = Backtest::new(
                Nobody,
                vec![Books::new(config)],
                BacktestConfig {
                    conductor,
                    ..BacktestConfig::default()
                },
            );
            // The real order of each ghost that is open, by level.
            let mut open: BTreeMap<(u32, bool, Price), (OrderId, ClientOrderId)> = BTreeMap::new();
            let mut expected: Vec<(OrderId, ClientOrderId)> = Vec::new();
            for (number, event) in events.iter().enumerate() {
                let key = (event.instrument.0, event.side == Side::Bid, event.price);
                let is_wanted =
                    event.kind == EventKind::Add && number % 4 == part && !open.contains_key(&key);
                if is_wanted {
                    let id = ClientOrderId(number as u64 + 1);
                    test.inject(&OrderIntent::New {
                        id,
                        instrument: event.instrument,
                        side: event.side,
                        order_type: OrderType::Limit,
                        price: event.price,
                        qty: Qty(event.qty.0 as u32),
                        time_in_force: TimeInForce::Day,
                        cause: Cause::default(),
                    });
                    open.insert(key, (event.order_id, id));
                    expected.push((event.order_id, id));
                }
                test.on_event(0, event);
                // The ghost goes when its order does.
                let touches = [event.order_id, OrderId(event.ref_id)];
                let gone: Vec<_> = open
                    .iter()
                    .filter(|(_, (order, _))| {
                        touches.contains(order) && test.books(0).order(*order).is_none()
                    })
                    .map(|(key, (_, id))| (*key, *id))
                    .collect();
                for (key, target) in gone {
                    open.remove(&key);
                    test.inject(&OrderIntent::Cancel {
                        id: ClientOrderId(u64::MAX),
                        target,
                        venue_id: None,
                        instrument: event.instrument,
                        side: event.side,
                        qty: Qty::ZERO,
                        cause: Cause::default(),
                    });
                }
            }
            let doubts = test.finish().doubts;
            assert_eq!(doubts.took_recorded, 0, "no ghost took: its order had rested");
            let mut by_order: BTreeMap<ClientOrderId, u64> = BTreeMap::new();
            for fill in test.fills() {
                *by_order.entry(fill.order).or_default() += u64::from(fill.qty.0);
            }
            for (order, id) in expected {
                let really = real.get(&order).copied().unwrap_or(0);
                let got = by_order.get(&id).copied().unwrap_or(0);
                if got != really {
                    let fill = test.fills().iter().find(|fill| fill.order == id);
                    let at = fill.map(|fill| fill.at).unwrap_or_default();
                    let near = events
                        .iter()
                        .filter(|e| e.recv_ts == at || e.order_id == order || e.ref_id == order.0);
                    let near: Vec<String> = near
                        .map(|e| {
                            format!(
                                "{:?} {} {:?} {} at {} ref {} flags {:x}",
                                e.kind, e.order_id.0, e.side, e.qty, e.price, e.ref_id, e.flags.0
                            )
                        })
                        .collect();
                    panic!(
                        "seed {seed}: order {} was filled {really}, its ghost {got}: {fill:?}; {near:#?}",
                        order.0
                    );
                }
                ghosts += 1;
                filled += u64::from(really > 0);
            }
        }
    }
    assert!(ghosts >= 5_000, "{ghosts} ghosts");
    assert!(filled >= 500, "{filled} of {ghosts} ghosts were filled");
    println!("{ghosts} ghosts, {filled} of them filled as the real order was");
}
