//! The engine against the naive engine: same answers, same events, same books, on seeded command streams.

use tickwire_exchange::{
    CrossFill, Engine, EngineConfig, Execution, Listener, NaiveEngine, NewOrder, Order, Owner, StateHash,
};
use tickwire_market::{InstrumentId, OrderId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus};
use tickwire_testdata::Rng;

/// Everything said, as one hash.
#[derive(Default)]
struct Heard {
    hash: StateHash,
    executions: u64,
}

impl Heard {
    fn say(&mut self, what: u64, order: &Order) {
        self.hash.word(what);
        self.hash.order(order);
    }
}

impl Listener for Heard {
    fn accepted(&mut self, order: &Order) {
        self.say(1, order);
    }
    fn rested(&mut self, order: &Order) {
        self.say(2, order);
    }
    fn executed(&mut self, e: &Execution) {
        self.executions += 1;
        self.say(3, &e.maker);
        self.say(e.match_number, &e.taker);
        self.hash.word(u64::from(e.qty.0) ^ e.price.raw() as u64);
    }
    fn cross_filled(&mut self, f: &CrossFill) {
        self.say(9 + f.match_number, &f.order);
        self.hash
            .word(u64::from(f.qty.0) << 32 | u64::from(f.from_book.0));
    }
    fn reduced(&mut self, order: &Order, by: Qty) {
        self.say(4 + u64::from(by.0), order);
    }
    fn deleted(&mut self, order: &Order) {
        self.say(5, order);
    }
    fn expired(&mut self, order: &Order) {
        self.say(6, order);
    }
    fn replaced(&mut self, old: &Order, new: &Order, rests: bool) {
        self.say(7, old);
        self.say(u64::from(rests), new);
    }
    fn status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        self.hash.word(u64::from(instrument.0) << 8 | status as u64);
    }
    fn completed(&mut self, instrument: InstrumentId) {
        self.hash.word(8 << 32 | u64::from(instrument.0));
    }
}

struct Pair {
    fast: Engine,
    naive: NaiveEngine,
    heard: (Heard, Heard),
}

macro_rules! both {
    ($pair:ident . $call:ident ( $($arg:expr),* )) => {{
        let a = $pair.fast.$call($($arg,)* &mut $pair.heard.0);
        let b = $pair.naive.$call($($arg,)* &mut $pair.heard.1);
        assert_eq!(a, b, concat!("answers of ", stringify!($call)));
        a
    }};
}

fn random_order(rng: &mut Rng, instruments: u32) -> NewOrder {
    let side = if rng.chance(1, 2) { Side::Bid } else { Side::Ask };
    // Bids mostly below 100.00, asks above, overlapping by three cents; now and then something invalid.
    let offset = rng.below(18) as i64 - 3;
    let cents = 10_000 + if side == Side::Bid { -offset } else { offset };
    let raw = cents * 10_000_000 + if rng.chance(1, 100) { 1 } else { 0 };
    NewOrder {
        instrument: InstrumentId(rng.below(u64::from(instruments) + 1) as u32 + u32::from(rng.chance(9, 10))),
        side,
        order_type: if rng.chance(1, 20) {
            OrderType::Market
        } else {
            OrderType::Limit
        },
        price: if rng.chance(1, 200) {
            Price::from_raw(-raw)
        } else {
            Price::from_raw(raw)
        },
        qty: Qty(rng.below(6) as u32 * 100 + rng.below(3) as u32),
        time_in_force: match rng.below(10) {
            0 => TimeInForce::ImmediateOrCancel,
            1 => TimeInForce::FillOrKill,
            _ => TimeInForce::Day,
        },
        hidden: rng.chance(1, 8),
        improvement: Price::from_4dp(if rng.chance(1, 10) { 100 } else { 0 }),
        owner: Owner(rng.below(4) as u32),
        ..NewOrder::limit(InstrumentId(1), side, Price::ZERO, Qty(1))
    }
}

fn run(seed: u64, commands: u64, config: EngineConfig, hash_every: u64) -> u64 {
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut pair = Pair {
        fast: Engine::new(config),
        naive: NaiveEngine::new(config),
        heard: Default::default(),
    };
    for i in 1..=config.instruments {
        both!(pair.set_status(InstrumentId(i), TradingStatus::Trading)).unwrap();
    }
    let mut last_id = 1;
    for step in 0..commands {
        let id = OrderId(last_id + 2 - rng.below(last_id.min(60) + 3).min(last_id + 2));
        match rng.below(100) {
            0..55 => {
                let order = random_order(&mut rng, config.instruments);
                if let Ok(id) = both!(pair.submit(&order)) {
                    last_id = id.0;
                }
            }
            55..80 => {
                let _ = both!(pair.cancel(id));
            }
            80..87 => {
                let by = Qty(rng.below(300) as u32);
                let _ = both!(pair.reduce(id, by));
            }
            87..99 => {
                let to = random_order(&mut rng, config.instruments);
                if let Ok(id) = both!(pair.replace(id, to.price, to.qty)) {
                    last_id = last_id.max(id.0);
                }
            }
            _ => {
                let instrument = InstrumentId(rng.below(u64::from(config.instruments) + 2) as u32);
                let status = if rng.chance(2, 3) {
                    TradingStatus::Trading
                } else {
                    TradingStatus::Halted
                };
                let _ = both!(pair.set_status(instrument, status));
            }
        }
        assert_eq!(
            pair.heard.0.hash, pair.heard.1.hash,
            "events differ at step {step} of seed {seed}"
        );
        if step % hash_every == 0 {
            assert_eq!(
                pair.fast.state_hash(),
                pair.naive.state_hash(),
                "books differ at step {step} of seed {seed}"
            );
        }
    }
    assert_eq!(
        pair.fast.state_hash(),
        pair.naive.state_hash(),
        "books differ at the end of seed {seed}"
    );
    pair.heard.0.executions
}

#[test]
fn equals_the_naive_engine_after_every_command_of_small_runs() {
    let config = EngineConfig {
        instruments: 2,
        max_orders: 64,
        max_levels: 16,
    };
    let traded: u64 = (0..40).map(|seed| run(seed, 5_000, config, 1)).sum();
    assert!(traded > 10_000, "the streams trade: {traded}");
}

#[test]
fn equals_the_naive_engine_on_two_million_commands() {
    let config = EngineConfig {
        instruments: 3,
        max_orders: 300,
        max_levels: 40,
    };
    run(0xE4C4A96E, 2_000_000, config, 1_000);
}

#[test]
fn equals_the_naive_engine_when_its_capacities_are_exhausted() {
    let config = EngineConfig {
        instruments: 1,
        max_orders: 6,
        max_levels: 3,
    };
    for seed in 100..110 {
        run(seed, 20_000, config, 1);
    }
}

fn trading(instruments: u32) -> Engine {
    let mut engine = Engine::new(EngineConfig {
        instruments,
        max_orders: 100,
        max_levels: 10,
    });
    for i in 1..=instruments {
        engine
            .set_status(InstrumentId(i), TradingStatus::Trading, &mut ())
            .unwrap();
    }
    engine
}

const ONE: InstrumentId = InstrumentId(1);

fn cents(c: u32) -> Price {
    Price::from_4dp(c * 100)
}

#[derive(Default)]
struct Trades(Vec<(u64, u32, Price)>);

impl Listener for Trades {
    fn rested(&mut self, _: &Order) {}
    fn executed(&mut self, e: &Execution) {
        self.0.push((e.maker.id.0, e.qty.0, e.price));
    }
    fn cross_filled(&mut self, _: &CrossFill) {}
    fn reduced(&mut self, _: &Order, _: Qty) {}
    fn deleted(&mut self, _: &Order) {}
    fn expired(&mut self, _: &Order) {}
    fn replaced(&mut self, _: &Order, _: &Order, _: bool) {}
}

#[test]
fn trades_best_price_first_then_displayed_then_oldest() {
    let mut engine = trading(1);
    let ask = |price, qty| NewOrder::limit(ONE, Side::Ask, price, Qty(qty));
    engine.submit(&ask(cents(102), 10), &mut ()).unwrap();
    engine
        .submit(
            &NewOrder {
                hidden: true,
                ..ask(cents(101), 10)
            },
            &mut (),
        )
        .unwrap();
    engine.submit(&ask(cents(101), 10), &mut ()).unwrap();
    engine.submit(&ask(cents(101), 10), &mut ()).unwrap();
    let mut trades = Trades::default();
    engine
        .submit(&NewOrder::limit(ONE, Side::Bid, cents(102), Qty(35)), &mut trades)
        .unwrap();
    let c = cents;
    assert_eq!(
        trades.0,
        [(3, 10, c(101)), (4, 10, c(101)), (2, 10, c(101)), (1, 5, c(102))]
    );
}

#[test]
fn lowering_the_quantity_keeps_priority_and_raising_it_loses_it() {
    let mut engine = trading(1);
    let bid = NewOrder::limit(ONE, Side::Bid, cents(100), Qty(10));
    let [a, b, c] = [(); 3].map(|()| engine.submit(&bid, &mut ()).unwrap());
    assert_eq!(engine.replace(a, cents(100), Qty(5), &mut ()), Ok(a));
    let b2 = engine.replace(b, cents(100), Qty(11), &mut ()).unwrap();
    assert!(b2 != b && engine.order(b).is_none());
    let queue: Vec<_> = engine.queue(ONE, Side::Bid, 0).map(|o| (o.id, o.qty.0)).collect();
    assert_eq!(queue, [(a, 5), (c, 10), (b2, 11)]);
}

#[test]
fn an_improving_maker_gives_the_taker_a_better_price_and_the_book_keeps_its_own() {
    let mut engine = trading(1);
    let maker = NewOrder {
        improvement: cents(1),
        ..NewOrder::limit(ONE, Side::Ask, cents(105), Qty(10))
    };
    engine.submit(&maker, &mut ()).unwrap();
    let mut trades = Trades::default();
    engine
        .submit(&NewOrder::limit(ONE, Side::Bid, cents(105), Qty(4)), &mut trades)
        .unwrap();
    assert_eq!(trades.0, [(1, 4, cents(104))]);
    let best = engine.best(ONE, Side::Ask).unwrap();
    assert_eq!((best.price, best.qty.0), (cents(105), 6));
}
