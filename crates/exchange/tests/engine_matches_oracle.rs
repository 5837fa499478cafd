//! The engine against the naive engine: same answers, same events, same states, on seeded streams of requests
//! of every kind. The ordinary run is small; millions:
//!
//! ```text
//! TICKWIRE_ORACLE_COMMANDS=5000000 cargo test --release -p tickwire-exchange --test engine_matches_oracle
//! TICKWIRE_ORACLE_SEED=7 ...          another stream; a failure prints its seed
//! ```

use std::collections::BTreeMap;

use tickwire_exchange::{
    AuctionKind, CancelReason, Cross, CrossFill, Engine, EngineConfig, Execution, Firm, Happened, Listener,
    MassCancel, NewOrder, Order, Owner, PostOnly, Protection, QuoteEntry, Reject, Rules, SelfTrade, Twin,
};
use tickwire_market::{InstrumentId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus};
use tickwire_testdata::Rng;

/// Says which stream it was when a comparison fails.
struct Rerun {
    seed: u64,
    commands: u64,
}

impl Drop for Rerun {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Rerun { seed, commands } = self;
            println!(
                "seed {seed}; again: TICKWIRE_ORACLE_SEED={seed} TICKWIRE_ORACLE_COMMANDS={commands} \
                 cargo test -p tickwire-exchange --test engine_matches_oracle"
            );
        }
    }
}

fn run(seed: u64, commands: u64, config: EngineConfig, hash_every: u64) -> Twin {
    let _rerun = Rerun { seed, commands };
    let mut rng = Rng::new(seed);
    let mut twin = Twin::new(config);
    for step in 1..=commands {
        twin.step(&mut |bound| Some(rng.below(u64::from(bound)) as u32));
        if step % hash_every == 0 {
            twin.check_states();
        }
    }
    twin.check_states();
    twin
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
    )
}

#[test]
fn equals_the_naive_engine_after_every_command_of_small_runs() {
    let config = EngineConfig {
        instruments: 2,
        max_orders: 64,
        max_levels: 16,
    };
    for seed in 0..20 {
        run(seed, 2_000, config, 1);
    }
}

#[test]
fn equals_the_naive_engine_on_long_streams_where_everything_happens() {
    let config = EngineConfig {
        instruments: 4,
        max_orders: 200,
        max_levels: 40,
    };
    let commands = number("TICKWIRE_ORACLE_COMMANDS").unwrap_or(120_000);
    let seed = number("TICKWIRE_ORACLE_SEED").unwrap_or(0xE4C4_A96E);
    let twin = run(seed, commands, config, 1_000);
    let seen: BTreeMap<Happened, u64> = twin.seen().iter().copied().collect();
    println!("seed {seed}, {commands} commands: {seen:?}");
    use Happened::*;
    let reasons = [
        CancelReason::MassCancel,
        CancelReason::SelfTrade,
        CancelReason::Protection,
        CancelReason::AuctionOver,
        CancelReason::DayOver,
        CancelReason::Requoted,
    ];
    let rejects = [
        Reject::UnknownInstrument,
        Reject::NotTrading,
        Reject::Tick,
        Reject::PriceRange,
        Reject::Quantity,
        Reject::Lot,
        Reject::Display,
        Reject::StopPrice,
        Reject::Instructions,
        Reject::PostOnly,
        Reject::PriceBand,
        Reject::Quote,
        Reject::Protected,
        Reject::NoFirm,
        Reject::UnknownOrder,
        Reject::UnknownTrade,
        Reject::BrokenTrade,
        Reject::AuctionTrade,
        Reject::Full,
    ];
    let events = [
        Executed,
        Broken,
        Expired,
        Parked,
        Reparked,
        Triggered,
        Refreshed,
        CrossFilled,
        Crossed,
        Indicated,
        Decremented,
        ReserveReduced,
        Reduced,
        Replaced,
        Protected,
        Paused,
    ];
    let all = events
        .into_iter()
        .chain(reasons.map(Cancelled))
        .chain(rejects.map(Rejected));
    let missing: Vec<_> = all.filter(|kind| !seen.contains_key(kind)).collect();
    assert!(missing.is_empty(), "never happened: {missing:?}");
}

#[test]
fn equals_the_naive_engine_when_its_capacities_are_exhausted() {
    let config = EngineConfig {
        instruments: 1,
        max_orders: 6,
        max_levels: 3,
    };
    let mut unroomed = 0;
    for seed in 100..110 {
        let twin = run(seed, 4_000, config, 1);
        let no_room = |(kind, _): &&(Happened, u64)| *kind == Happened::Cancelled(CancelReason::NoRoom);
        unroomed += twin.seen().iter().filter(no_room).count();
    }
    assert!(unroomed > 0, "a triggered stop order finds no level");
}

#[test]
fn one_seed_is_one_run() {
    let config = EngineConfig {
        instruments: 3,
        max_orders: 100,
        max_levels: 20,
    };
    let hash = |seed| run(seed, 5_000, config, 5_000).hash();
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
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

/// Everything told about orders and auctions, as text.
#[derive(Default)]
struct Log(Vec<String>);

impl Listener for Log {
    fn rested(&mut self, o: &Order) {
        self.0
            .push(format!("{} rests {}+{}", o.id.0, o.qty.0, o.reserve.0));
    }
    fn parked(&mut self, o: &Order) {
        self.0.push(format!("{} waits", o.id.0));
    }
    fn triggered(&mut self, old: &Order, new: &Order) {
        self.0.push(format!("{} triggered as {}", old.id.0, new.id.0));
    }
    fn refreshed(&mut self, old: &Order, new: &Order) {
        self.0.push(format!("{} goes on as {}", old.id.0, new.id.0));
    }
    fn executed(&mut self, e: &Execution) {
        let (maker, taker) = (e.maker.id.0, e.taker.id.0);
        self.0
            .push(format!("{taker} takes {} of {maker} at {}", e.qty.0, e.price));
    }
    fn cross_filled(&mut self, f: &CrossFill) {
        self.0.push(format!("{} crosses {}", f.order.id.0, f.qty.0));
    }
    fn crossed(&mut self, c: &Cross) {
        self.0.push(format!("{:?}: {} at {}", c.kind, c.qty, c.price));
    }
    fn cancelled(&mut self, o: &Order, reason: CancelReason) {
        self.0.push(format!("{} {reason:?}", o.id.0));
    }
    fn decremented(&mut self, o: &Order, by: Qty) {
        self.0.push(format!("{} less {}", o.id.0, by.0));
    }
    fn reduced(&mut self, o: &Order, by: Qty) {
        self.0.push(format!("{} reduced {}", o.id.0, by.0));
    }
    fn deleted(&mut self, o: &Order) {
        self.0.push(format!("{} leaves", o.id.0));
    }
    fn expired(&mut self, o: &Order) {
        self.0.push(format!("{} expires {}", o.id.0, o.qty.0));
    }
    fn replaced(&mut self, _: &Order, _: &Order, _: bool) {}
    fn protected(&mut self, firm: Firm, _: u32) {
        self.0.push(format!("firm {} protected", firm.0));
    }
}

/// What a request told.
fn told<T>(request: impl FnOnce(&mut Log) -> T) -> Vec<String> {
    let mut log = Log::default();
    request(&mut log);
    log.0
}

fn bid(price: u32, qty: u32) -> NewOrder {
    NewOrder::limit(ONE, Side::Bid, cents(price), Qty(qty))
}

fn ask(price: u32, qty: u32) -> NewOrder {
    NewOrder::limit(ONE, Side::Ask, cents(price), Qty(qty))
}

#[test]
fn an_iceberg_shows_slice_after_slice_each_at_the_tail() {
    let mut engine = trading(1);
    let iceberg = NewOrder {
        display: Qty(10),
        ..ask(100, 25)
    };
    engine.submit(&iceberg, &mut ()).unwrap();
    engine.submit(&ask(100, 10), &mut ()).unwrap();
    let taken = told(|log| engine.submit(&bid(100, 32), log));
    let expected = [
        "3 takes 10 of 1 at 1.00",
        "1 goes on as 4",
        "4 rests 10+5",
        "3 takes 10 of 2 at 1.00",
        "3 takes 10 of 4 at 1.00",
        "4 goes on as 5",
        "5 rests 5+0",
        "3 takes 2 of 5 at 1.00",
    ];
    assert_eq!(taken, expected);
}

#[test]
fn stops_go_off_in_the_order_in_which_their_triggers_were_passed() {
    let mut engine = trading(1);
    for price in [100, 101, 102, 103] {
        engine.submit(&ask(price, 10), &mut ()).unwrap();
    }
    let stop = |trigger| NewOrder {
        stop: Some(cents(trigger)),
        order_type: OrderType::Market,
        ..bid(0, 5)
    };
    engine.submit(&stop(102), &mut ()).unwrap();
    engine.submit(&stop(101), &mut ()).unwrap();
    engine.submit(&stop(101), &mut ()).unwrap();
    let taken = told(|log| engine.submit(&bid(101, 15), log));
    let expected = [
        "8 takes 10 of 1 at 1.00",
        "8 takes 5 of 2 at 1.01",
        "6 triggered as 9",
        "9 takes 5 of 2 at 1.01",
        "7 triggered as 10",
        "10 takes 5 of 3 at 1.02",
        "5 triggered as 11",
        "11 takes 5 of 3 at 1.02",
    ];
    assert_eq!(taken, expected);
}

#[test]
fn who_would_trade_with_himself_does_as_he_asked() {
    let meet = |self_trade, qty| {
        let mut engine = trading(1);
        let mine = |new| NewOrder { firm: Firm(7), ..new };
        engine.submit(&mine(ask(100, 10)), &mut ()).unwrap();
        engine.submit(&ask(100, 10), &mut ()).unwrap();
        let taker = NewOrder {
            self_trade,
            ..mine(bid(100, qty))
        };
        told(|log| engine.submit(&taker, log))
    };
    assert_eq!(meet(SelfTrade::Allow, 10), ["3 takes 10 of 1 at 1.00"]);
    assert_eq!(meet(SelfTrade::CancelNewest, 10), ["3 SelfTrade", "3 expires 10"]);
    let oldest = ["1 SelfTrade", "1 leaves", "3 takes 10 of 2 at 1.00"];
    assert_eq!(meet(SelfTrade::CancelOldest, 10), oldest);
    let both = ["1 SelfTrade", "1 leaves", "3 SelfTrade", "3 expires 10"];
    assert_eq!(meet(SelfTrade::CancelBoth, 10), both);
    let less = [
        "1 SelfTrade",
        "1 reduced 4",
        "3 SelfTrade",
        "3 less 4",
        "3 expires 0",
    ];
    assert_eq!(meet(SelfTrade::Decrement, 4), less);
}

/// Orders of a call phase and the price that must come out, after the examples in which exchanges explain
/// their auctions.
#[test]
fn an_auction_finds_the_price_by_volume_then_surplus_then_pressure_then_reference() {
    let price_of = |orders: &[NewOrder], reference: u32| {
        let mut engine = trading(1);
        engine.set_reference(ONE, cents(reference)).unwrap();
        engine.begin_auction(ONE, AuctionKind::Opening, &mut ()).unwrap();
        for order in orders {
            engine.submit(order, &mut ()).unwrap();
        }
        told(|log| engine.uncross(ONE, TradingStatus::Trading, log))
            .into_iter()
            .find(|line| line.starts_with("Opening"))
            .unwrap()
    };
    // One price has the most volume.
    assert_eq!(
        price_of(&[bid(200, 200), bid(201, 200), ask(198, 300), ask(200, 400)], 200),
        "Opening: 400 at 2.00"
    );
    // Two have the same volume; one leaves less over.
    assert_eq!(
        price_of(&[bid(202, 300), bid(201, 200), ask(199, 300), ask(198, 200)], 200),
        "Opening: 500 at 2.01"
    );
    // All equally good leave buyers: the highest; sellers: the lowest.
    assert_eq!(
        price_of(&[bid(202, 400), ask(199, 300)], 200),
        "Opening: 300 at 2.02"
    );
    assert_eq!(
        price_of(&[bid(202, 300), ask(199, 400)], 201),
        "Opening: 300 at 1.99"
    );
    // Nothing left over: the one nearest to the reference price.
    assert_eq!(
        price_of(&[bid(202, 300), ask(199, 300)], 200),
        "Opening: 300 at 1.99"
    );
    assert_eq!(
        price_of(&[bid(202, 300), ask(199, 300)], 201),
        "Opening: 300 at 2.02"
    );
    // Market orders alone: the reference price.
    let market = |new| NewOrder {
        order_type: OrderType::Market,
        ..new
    };
    assert_eq!(
        price_of(&[market(bid(0, 900)), market(ask(0, 800))], 200),
        "Opening: 800 at 2.00"
    );
    // No match.
    assert_eq!(
        price_of(&[bid(199, 300), ask(202, 300)], 200),
        "Opening: 0 at 2.00"
    );
}

#[test]
fn an_auction_fills_market_orders_first_and_cancels_what_waited_in_vain() {
    let mut engine = trading(1);
    engine.submit(&bid(99, 10), &mut ()).unwrap();
    let at_close = |new| NewOrder {
        time_in_force: TimeInForce::AtTheClose,
        ..new
    };
    let market = NewOrder {
        order_type: OrderType::Market,
        ..at_close(ask(0, 15))
    };
    let waiting = told(|log| {
        engine.submit(&at_close(bid(100, 10)), log).unwrap();
        engine.submit(&at_close(ask(98, 10)), log).unwrap();
        engine.submit(&market, log).unwrap();
    });
    assert_eq!(waiting, ["2 waits", "3 waits", "4 waits"]);
    let closed = told(|log| engine.close(ONE, log));
    let expected = [
        "2 crosses 10",
        "1 crosses 10",
        "4 crosses 15",
        "3 crosses 5",
        "Closing: 20 at 0.98",
        "3 AuctionOver",
        "3 expires 5",
    ];
    assert_eq!(closed, expected);
    assert_eq!(engine.submit(&bid(99, 10), &mut ()), Err(Reject::NotTrading));
}

#[test]
fn a_breach_pauses_until_an_auction() {
    let mut engine = trading(1);
    engine.set_rules(
        ONE,
        Rules {
            bands: tickwire_exchange::PriceBands {
                dynamic_ppm: 20_000,
                on_breach: tickwire_exchange::OnBreach::Pause,
                ..Default::default()
            },
            ..Rules::default()
        },
    );
    engine.set_reference(ONE, cents(100)).unwrap();
    for price in [102, 103] {
        engine.submit(&ask(price, 10), &mut ()).unwrap();
    }
    let swept = told(|log| engine.submit(&bid(103, 15), log));
    assert_eq!(swept, ["3 takes 10 of 1 at 1.02", "3 rests 5+0"]);
    assert_eq!(engine.trading_status(ONE), Some(TradingStatus::Paused));
    assert_eq!(engine.submit(&bid(99, 1), &mut ()), Err(Reject::NotTrading));
    let on = TradingStatus::Trading;
    assert_eq!(engine.set_status(ONE, on, &mut ()), Err(Reject::NotTrading));
    engine
        .begin_auction(ONE, AuctionKind::Resumption, &mut ())
        .unwrap();
    let resumed = told(|log| engine.uncross(ONE, on, log));
    assert_eq!(resumed, ["3 crosses 5", "2 crosses 5", "Resumption: 5 at 1.03"]);
}

#[test]
fn a_quote_is_replaced_as_a_whole_and_protected() {
    let mut engine = trading(2);
    let quote = |instrument, bid, ask| QuoteEntry {
        instrument: InstrumentId(instrument),
        owner: Owner(1),
        bid: cents(bid),
        bid_qty: Qty(10),
        ask: cents(ask),
        ask_qty: Qty(10),
    };
    let mut results = [Err(Reject::NoFirm); 2];
    let limits = Protection {
        window_ns: 1_000,
        contracts: 15,
        ..Protection::default()
    };
    engine.set_protection(Firm(7), 0, limits).unwrap();
    engine
        .mass_quote(
            Firm(7),
            &[quote(1, 99, 101), quote(2, 50, 49)],
            &mut results,
            &mut (),
        )
        .unwrap();
    assert_eq!(results, [Ok(()), Err(Reject::Quote)]);
    engine
        .mass_quote(Firm(7), &[quote(2, 48, 50)], &mut results, &mut ())
        .unwrap();
    let moved = told(|log| engine.mass_quote(Firm(7), &[quote(1, 99, 100)], &mut results, log));
    assert_eq!(moved, ["2 Requoted", "2 leaves", "5 rests 10+0"]);
    // Ten are no reason, twenty are; and a window later ten again would not be.
    engine.submit(&bid(100, 10), &mut ()).unwrap();
    let tripped = told(|log| engine.submit(&ask(99, 10), log));
    let expected = [
        "7 takes 10 of 1 at 0.99",
        "firm 7 protected",
        "3 Protection",
        "3 leaves",
        "4 Protection",
        "4 leaves",
    ];
    assert_eq!(tripped, expected);
    engine
        .mass_quote(Firm(7), &[quote(1, 99, 101)], &mut results, &mut ())
        .unwrap();
    assert_eq!(results[0], Err(Reject::Protected));
    assert!(engine.is_protected(Firm(7), 0) && engine.reset_protection(Firm(7), 0));
    engine
        .mass_quote(Firm(7), &[quote(1, 99, 101)], &mut results, &mut ())
        .unwrap();
    assert_eq!(results[0], Ok(()));
    engine.submit(&bid(101, 10), &mut ()).unwrap();
    engine.set_time(2_000);
    engine.submit(&ask(99, 10), &mut ()).unwrap();
    assert!(!engine.is_protected(Firm(7), 0));
    let all = MassCancel {
        quotes_only: true,
        ..MassCancel::default()
    };
    assert_eq!(engine.mass_cancel(&all, &mut ()), Ok(0));
}

#[test]
fn a_post_only_order_is_refused_or_priced_behind() {
    let mut engine = trading(1);
    engine.submit(&ask(100, 10), &mut ()).unwrap();
    let passive = NewOrder {
        post_only: true,
        ..bid(101, 5)
    };
    assert_eq!(engine.submit(&passive, &mut ()), Err(Reject::PostOnly));
    engine.set_rules(
        ONE,
        Rules {
            post_only: PostOnly::Reprice,
            ..Rules::default()
        },
    );
    let id = engine.submit(&passive, &mut ()).unwrap();
    assert_eq!(engine.order(id).map(|order| order.price), Some(cents(99)));
}
