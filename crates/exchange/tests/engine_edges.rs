//! What the seeded streams of `engine_matches_oracle.rs` do not come by: values at the very edge of a limit,
//! questions about the book beside its hash, and a state that is saved and taken up again. Each was found by
//! a change of the engine that no test noticed (`cargo xtask mutants`, docs/mutants.md).

use tickwire_exchange::{
    AuctionKind, CrossFill, Engine, EngineConfig, Execution, Firm, Listener, NaiveEngine, NewOrder, OnBreach,
    Order, PROTECTIONS_MAX, PostOnly, PriceBands, Protection, QuoteEntry, Reject, Rules, Twin,
};
use tickwire_market::{InstrumentId, OrderType, Price, Qty, Side, TradingStatus};
use tickwire_persist::{Persist, StateReader};
use tickwire_testdata::Rng;

const ONE: InstrumentId = InstrumentId(1);
const CONFIG: EngineConfig = EngineConfig {
    instruments: 1,
    max_orders: 4,
    max_levels: 4,
};

fn cents(cents: u32) -> Price {
    Price::from_4dp(cents * 100)
}

fn limit(side: Side, price: Price, qty: u32) -> NewOrder {
    NewOrder::limit(ONE, side, price, Qty(qty))
}

/// Both engines with these rules, trading.
fn both(config: EngineConfig, rules: Rules) -> (Engine, NaiveEngine) {
    let (mut engine, mut naive) = (Engine::new(config), NaiveEngine::new(config));
    engine.set_rules(ONE, rules);
    naive.set_rules(ONE, rules);
    engine.set_status(ONE, TradingStatus::Trading, &mut ()).unwrap();
    naive.set_status(ONE, TradingStatus::Trading, &mut ()).unwrap();
    (engine, naive)
}

#[test]
fn the_largest_price_is_a_price_and_the_next_one_is_not() {
    let rules = Rules {
        price_max: cents(500),
        ..Rules::default()
    };
    let (mut engine, mut naive) = both(CONFIG, rules);
    for (price, expected) in [(499, true), (500, true), (501, false), (900, false), (0, false)] {
        let expected = if expected { Ok(()) } else { Err(Reject::PriceRange) };
        assert_eq!(engine.set_reference(ONE, cents(price)), expected, "{price}");
        assert_eq!(naive.set_reference(ONE, cents(price)), expected, "{price}");
        let order = limit(Side::Ask, cents(price), 1);
        assert_eq!(engine.submit(&order, &mut ()).map(drop), expected, "{price}");
        assert_eq!(naive.submit(&order, &mut ()).map(drop), expected, "{price}");
    }
}

#[test]
fn an_improvement_is_not_negative_and_leaves_a_price() {
    let (mut engine, mut naive) = both(CONFIG, Rules::default());
    for (improvement, expected) in [(-1, false), (0, true), (99, true), (100, false), (101, false)] {
        let order = NewOrder {
            improvement: Price::from_raw(cents(1).raw() * improvement),
            ..limit(Side::Ask, cents(100), 1)
        };
        let expected = if expected { Ok(()) } else { Err(Reject::PriceRange) };
        assert_eq!(
            engine.submit(&order, &mut ()).map(drop),
            expected,
            "{improvement}"
        );
        assert_eq!(naive.submit(&order, &mut ()).map(drop), expected, "{improvement}");
    }
}

#[test]
fn a_post_only_order_is_not_priced_down_to_its_improvement() {
    let rules = Rules {
        post_only: PostOnly::Reprice,
        ..Rules::default()
    };
    for (improvement, expected) in [
        (98, Ok(())),
        (99, Err(Reject::PostOnly)),
        (100, Err(Reject::PostOnly)),
    ] {
        let (mut engine, mut naive) = both(CONFIG, rules);
        engine.submit(&limit(Side::Ask, cents(100), 1), &mut ()).unwrap();
        naive.submit(&limit(Side::Ask, cents(100), 1), &mut ()).unwrap();
        let order = NewOrder {
            post_only: true,
            improvement: cents(improvement),
            ..limit(Side::Bid, cents(101), 1)
        };
        // It would be priced at 99 cents.
        assert_eq!(
            engine.submit(&order, &mut ()).map(drop),
            expected,
            "{improvement}"
        );
        assert_eq!(naive.submit(&order, &mut ()).map(drop), expected, "{improvement}");
    }
}

#[test]
fn levels_queues_and_numbers_of_trades_are_told() {
    struct Last(u64);
    impl Listener for Last {
        fn rested(&mut self, _: &Order) {}
        fn cross_filled(&mut self, _: &CrossFill) {}
        fn reduced(&mut self, _: &Order, _: Qty) {}
        fn deleted(&mut self, _: &Order) {}
        fn expired(&mut self, _: &Order) {}
        fn replaced(&mut self, _: &Order, _: &Order, _: bool) {}
        fn executed(&mut self, execution: &Execution) {
            self.0 = execution.match_number;
        }
    }
    let (mut engine, _) = both(
        EngineConfig {
            max_orders: 9,
            ..CONFIG
        },
        Rules::default(),
    );
    assert_eq!((engine.depth(ONE, Side::Ask), engine.last_match_number()), (0, 0));
    let mut ids = Vec::new();
    for price in [101, 101, 102, 103, 103] {
        ids.push(
            engine
                .submit(&limit(Side::Ask, cents(price), 5), &mut ())
                .unwrap(),
        );
    }
    assert_eq!(engine.depth(ONE, Side::Ask), 3);
    let last = |nth| engine.last_in_queue(ONE, Side::Ask, nth).map(|order| order.id);
    assert_eq!(
        [0, 1, 2, 3].map(last),
        [Some(ids[1]), Some(ids[2]), Some(ids[4]), None]
    );
    let mut told = Last(0);
    engine
        .submit(&limit(Side::Bid, cents(102), 12), &mut told)
        .unwrap();
    assert!(told.0 > 1, "three trades");
    assert_eq!(engine.last_match_number(), told.0);
}

/// Sells to a quote of firm 1.
fn hit(engine: &mut Engine, now: u64) {
    engine.set_time(now);
    engine.submit(&limit(Side::Ask, cents(100), 1), &mut ()).unwrap();
}

#[test]
fn a_window_ends_after_its_last_nanosecond() {
    for (second, is_protected) in [(109, true), (110, true), (111, false)] {
        let (mut engine, _) = both(CONFIG, Rules::default());
        let limits = Protection {
            window_ns: 100,
            trades: 2,
            ..Protection::default()
        };
        engine.set_protection(Firm(1), 0, limits).unwrap();
        quote(&mut engine, Firm(1), 10).unwrap();
        hit(&mut engine, 10);
        hit(&mut engine, second);
        assert_eq!(engine.is_protected(Firm(1), 0), is_protected, "{second}");
    }
}

fn quote(engine: &mut Engine, firm: Firm, qty: u32) -> Result<(), Reject> {
    let entry = QuoteEntry {
        instrument: ONE,
        bid: cents(100),
        bid_qty: Qty(qty),
        ..QuoteEntry::default()
    };
    let mut results = [Ok(())];
    engine.mass_quote(firm, &[entry], &mut results, &mut ())?;
    results[0]
}

#[test]
fn quotes_and_protections_have_room_for_so_many_and_no_more() {
    let (mut engine, _) = both(CONFIG, Rules::default());
    for firm in 1..=CONFIG.max_orders {
        assert_eq!(quote(&mut engine, Firm(firm), 1), Ok(()));
        let shown = engine.last_in_queue(ONE, Side::Bid, 0).map(|order| order.mpid);
        assert_eq!(shown, Some(limit(Side::Bid, cents(1), 1).mpid), "it has no name");
        // Taken back, its place stays.
        assert_eq!(quote(&mut engine, Firm(firm), 0), Ok(()));
    }
    assert_eq!(
        quote(&mut engine, Firm(CONFIG.max_orders + 1), 1),
        Err(Reject::Full)
    );
    assert_eq!(quote(&mut engine, Firm(1), 1), Ok(()));
    let limits = Protection::default();
    for group in 0..PROTECTIONS_MAX as u32 {
        assert_eq!(engine.set_protection(Firm(1), group, limits), Ok(()));
    }
    assert_eq!(engine.set_protection(Firm(2), 0, limits), Err(Reject::Full));
    assert_eq!(engine.set_protection(Firm(1), 0, limits), Ok(()), "it has one");
}

#[test]
fn rules_and_the_number_of_orders_are_told() {
    let rules = Rules {
        group: 7,
        ..Rules::default()
    };
    let (mut engine, _) = both(CONFIG, rules);
    assert_eq!(engine.rules(ONE), Some(&rules));
    assert_eq!(engine.rules(InstrumentId(9)), None);
    for resting in 0..3 {
        assert_eq!(engine.live_orders(), resting);
        engine.submit(&limit(Side::Ask, cents(100), 1), &mut ()).unwrap();
    }
}

#[test]
fn a_static_band_alone_refuses() {
    let rules = Rules {
        bands: PriceBands {
            static_ppm: 100_000,
            on_breach: OnBreach::Reject,
            ..PriceBands::default()
        },
        ..Rules::default()
    };
    let (mut engine, mut naive) = both(CONFIG, rules);
    engine.set_reference(ONE, cents(100)).unwrap();
    naive.set_reference(ONE, cents(100)).unwrap();
    for (price, expected) in [(110, Ok(())), (111, Err(Reject::PriceBand))] {
        let order = limit(Side::Bid, cents(price), 1);
        assert_eq!(engine.submit(&order, &mut ()).map(drop), expected, "{price}");
        assert_eq!(naive.submit(&order, &mut ()).map(drop), expected, "{price}");
    }
}

#[test]
fn a_stop_is_at_most_the_largest_price() {
    let rules = Rules {
        price_max: cents(500),
        ..Rules::default()
    };
    let (mut engine, mut naive) = both(CONFIG, rules);
    for (stop, expected) in [
        (500, Ok(())),
        (501, Err(Reject::StopPrice)),
        (900, Err(Reject::StopPrice)),
    ] {
        let order = NewOrder {
            stop: Some(cents(stop)),
            ..limit(Side::Bid, cents(400), 1)
        };
        assert_eq!(engine.submit(&order, &mut ()).map(drop), expected, "{stop}");
        assert_eq!(naive.submit(&order, &mut ()).map(drop), expected, "{stop}");
    }
}

#[test]
fn a_post_only_order_is_not_priced_beyond_the_largest_price() {
    let rules = Rules {
        price_max: cents(500),
        post_only: PostOnly::Reprice,
        ..Rules::default()
    };
    let (mut engine, mut naive) = both(CONFIG, rules);
    let order = NewOrder {
        post_only: true,
        ..limit(Side::Ask, cents(400), 1)
    };
    let bid = limit(Side::Bid, cents(500), 1);
    engine.submit(&bid, &mut ()).unwrap();
    naive.submit(&bid, &mut ()).unwrap();
    let refused = Err(Reject::PostOnly);
    assert_eq!(engine.submit(&order, &mut ()), refused);
    assert_eq!(naive.submit(&order, &mut ()), refused);
}

/// The prices at which auctions traded.
#[derive(Default)]
struct Crosses(Vec<Price>);

impl Listener for Crosses {
    fn rested(&mut self, _: &Order) {}
    fn executed(&mut self, _: &Execution) {}
    fn reduced(&mut self, _: &Order, _: Qty) {}
    fn deleted(&mut self, _: &Order) {}
    fn expired(&mut self, _: &Order) {}
    fn replaced(&mut self, _: &Order, _: &Order, _: bool) {}
    fn cross_filled(&mut self, fill: &CrossFill) {
        self.0.push(fill.price);
    }
}

/// At which prices an opening auction of these orders traded, by both engines.
fn opened(reference: Option<Price>, orders: &[NewOrder]) -> [Vec<Price>; 2] {
    let (mut engine, mut naive) = both(CONFIG, Rules::default());
    let (mut ours, mut theirs) = (Crosses::default(), Crosses::default());
    if let Some(price) = reference {
        engine.set_reference(ONE, price).unwrap();
        naive.set_reference(ONE, price).unwrap();
    }
    engine
        .begin_auction(ONE, AuctionKind::Opening, &mut ours)
        .unwrap();
    naive
        .begin_auction(ONE, AuctionKind::Opening, &mut theirs)
        .unwrap();
    for order in orders {
        engine.submit(order, &mut ours).unwrap();
        naive.submit(order, &mut theirs).unwrap();
    }
    engine.uncross(ONE, TradingStatus::Trading, &mut ours).unwrap();
    naive.uncross(ONE, TradingStatus::Trading, &mut theirs).unwrap();
    [ours.0, theirs.0]
}

#[test]
fn an_auction_far_from_its_reference_is_at_the_price_at_which_it_trades() {
    let orders = Side::BOTH.map(|side| limit(side, cents(300), 5));
    let traded = vec![cents(300); 2];
    assert_eq!(opened(Some(cents(100)), &orders), [traded.clone(), traded]);
}

#[test]
fn without_limits_and_without_a_reference_an_auction_has_no_price() {
    let orders = Side::BOTH.map(|side| NewOrder {
        order_type: OrderType::Market,
        ..limit(side, Price::ZERO, 5)
    });
    assert_eq!(opened(None, &orders), [vec![], vec![]]);
    let traded = vec![cents(100); 2];
    assert_eq!(opened(Some(cents(100)), &orders), [traded.clone(), traded]);
}

#[test]
fn an_engine_without_an_order_is_saved_and_taken_up() {
    let (engine, _) = both(CONFIG, Rules::default());
    let mut again = Engine::new(CONFIG);
    assert_eq!(again.load(&mut StateReader::new(&saved(&engine))), Ok(()));
    for _ in 0..CONFIG.max_orders {
        again.submit(&limit(Side::Ask, cents(100), 1), &mut ()).unwrap();
    }
    let full = again.submit(&limit(Side::Ask, cents(100), 1), &mut ());
    assert_eq!(full, Err(Reject::Full));
}

fn saved(engine: &Engine) -> Vec<u8> {
    let mut bytes = Vec::new();
    engine.save(&mut bytes);
    bytes
}

#[test]
fn a_saved_engine_goes_on_as_the_one_it_was_saved_from() {
    let config = EngineConfig {
        instruments: 3,
        max_orders: 60,
        max_levels: 12,
    };
    for seed in 1..6 {
        let mut rng = Rng::new(seed);
        let mut twin = Twin::new(config);
        let mut choose = |bound: u32| Some(rng.below(u64::from(bound)) as u32);
        for _ in 0..1_000 {
            twin.step(&mut choose);
        }
        let bytes = saved(twin.engine());
        let mut again = Engine::new(config);
        assert_eq!(again.load(&mut StateReader::new(&bytes)), Ok(()));
        assert_eq!(again.state_hash(), twin.engine().state_hash(), "seed {seed}");
        assert_eq!(saved(&again), bytes, "seed {seed}: free places in their order");
        twin.replace_engine(again);
        for _ in 0..1_000 {
            twin.step(&mut choose);
        }
        twin.check_states();
    }
}

#[test]
fn a_damaged_state_is_refused() {
    let (mut engine, _) = both(CONFIG, Rules::default());
    engine.submit(&limit(Side::Ask, cents(100), 1), &mut ()).unwrap();
    let bytes = saved(&engine);
    for cut in 0..bytes.len() {
        let loaded = Engine::new(CONFIG).load(&mut StateReader::new(&bytes[..cut]));
        assert!(loaded.is_err(), "{cut} of {} bytes", bytes.len());
    }
}
