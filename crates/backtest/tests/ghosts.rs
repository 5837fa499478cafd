//! Ghost replay: an order out of a recording is entered a second time as ours, right behind which the real
//! one stands; it must get the real one's fills, one by one. Thousands of orders, on a day of the exchange
//! simulator that an independent decoder has read.

use std::cell::RefCell;
use std::rc::Rc;

use tickwire_backtest::{Backtest, BacktestConfig, FillModel, GhostConfig, GhostResult, Ghosts, Nobody, Why};
use tickwire_book::{Books, BooksConfig, Depth, OrderView};
use tickwire_exchange::{Mdp3Publisher, Mdp3PublisherConfig, Mdp3View, OrderKinds, generate_itch, listings};
use tickwire_feed::{
    ArbiterConfig, Channel, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, Mdp3Channel, Mdp3Config,
    Mdp3Decoder, Mdp3Depth, SoupConfig, Start,
};
use tickwire_market::{BookState, Counter, Instrument, MarketEvent, Nanos, OrderId, PointValue};
use tickwire_replay::played::Follow;
use tickwire_replay::replay::play_records;
use tickwire_rig::{RigConfig, run};
use tickwire_trading::strategy::ConductorConfig;

#[path = "../benches/flow/told.rs"]
mod told;

/// Of the generated days. A test makes each of them once and plays it to every fill model.
const SEEDS: [u64; 2] = [1, 2];

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

fn sizes() -> BooksConfig {
    BooksConfig {
        depth: Depth::ByOrder,
        instruments: 64,
        orders: 1 << 17,
        levels: 1 << 20,
        initial: BookState::Live,
        ..BooksConfig::default()
    }
}

/// A recording with ghosts in it.
struct Haunted {
    test: Backtest<Nobody>,
    ghosts: Ghosts,
}

impl Haunted {
    fn new(fill: FillModel, is_grouped: bool) -> Haunted {
        let config = BacktestConfig {
            fill,
            is_grouped: vec![is_grouped],
            conductor: ConductorConfig {
                instrument_bits: 6,
                max_orders: 1,
                ..ConductorConfig::default()
            },
            ..BacktestConfig::default()
        };
        Haunted {
            test: Backtest::new(Nobody, vec![Books::new(sizes())], config),
            ghosts: Ghosts::new(GhostConfig {
                every: if fill == FillModel::Queue { 8 } else { 1 },
                one_at_a_time: fill == FillModel::Matching,
                ..GhostConfig::default()
            }),
        }
    }

    fn event(&mut self, event: &MarketEvent) {
        self.ghosts.on_event(&mut self.test, 0, event);
    }

    fn finish(&mut self) -> GhostResult {
        let result = self.ghosts.result().clone();
        let doubts = self.test.finish().doubts;
        assert_eq!(doubts.took_recorded, 0, "no ghost took: its order had rested");
        result
    }
}

fn replay(day: &[MarketEvent], fill: FillModel, is_grouped: bool) -> GhostResult {
    let mut haunted = Haunted::new(fill, is_grouped);
    day.iter().for_each(|event| haunted.event(event));
    haunted.finish()
}

/// The records of a DBN file go where the events of a channel go.
struct Records(Rc<RefCell<Haunted>>);

impl Follow for Records {
    const HEARS_EXECUTIONS: bool = true;

    fn event(&mut self, event: &MarketEvent) {
        self.0.borrow_mut().event(event);
    }

    fn defined(&mut self, _: &Instrument, _: Option<PointValue>) {}

    fn order(&self, order: OrderId) -> Option<OrderView> {
        self.0.borrow().test.books(0).order(order)
    }

    fn look(&self, at: &mut dyn FnMut(&Books)) {
        at(self.0.borrow().test.books(0));
    }
}

/// A day as a DBN file, whose fills are told apart from what becomes of the orders.
fn as_dbn(seed: u64, messages: u64) -> Vec<u8> {
    let mut books = Books::new(sizes());
    let with_order = |event: MarketEvent| {
        let had = books.order(event.order_id);
        books.apply(&event);
        (event, had)
    };
    let events: Vec<told::WithOrder> = day(seed, messages).into_iter().map(with_order).collect();
    told::dbn_file(&events)
}

#[test]
fn every_ghost_in_a_dbn_file_gets_the_fills_of_its_order() {
    let files = SEEDS.map(|seed| as_dbn(seed, 150_000));
    for (fill, least) in [
        (FillModel::Queue, [15_000, 500]),
        (FillModel::Matching, [5_000, 100]),
    ] {
        let mut all = GhostResult::default();
        for (seed, file) in SEEDS.iter().zip(&files) {
            let haunted = Rc::new(RefCell::new(Haunted::new(fill, true)));
            let counters = play_records(file.clone(), sizes(), Records(haunted.clone()));
            let counters = counters.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(
                counters.get(tickwire_market::Counter::BookRejects),
                0,
                "seed {seed}"
            );
            let result = haunted.borrow_mut().finish();
            assert_eq!(result.different, 0, "{fill:?}, seed {seed}: {:#?}", result.first);
            all.ghosts += result.ghosts;
            all.filled = [0, 1].map(|at| all.filled[at] + result.filled[at]);
        }
        println!(
            "{fill:?}: {} ghosts in DBN files, {} of them filled, by {} fills, each as its order",
            all.ghosts, all.filled[0], all.filled[1]
        );
        assert!(
            all.ghosts >= least[0] && all.filled[0] >= least[1],
            "{fill:?}: {all:?}"
        );
    }
}

/// A day of MDP 3.0 by order, as a channel tells it that was asked for executions.
fn mdp3_day(seed: u64, kinds: OrderKinds) -> Vec<MarketEvent> {
    let listings = listings(20);
    let publisher = Mdp3Publisher::new(
        Mdp3PublisherConfig {
            view: Mdp3View::ByOrder,
            ..Mdp3PublisherConfig::default()
        },
        &listings,
    );
    let decoder = Mdp3Decoder::new(Mdp3Config {
        depth: Mdp3Depth::ByOrder,
        executions: true,
        instruments_max: 64,
        orders_max: 1 << 16,
        ..Mdp3Config::default()
    });
    let account = Mdp3Channel::replay_config(310, b"ME", b"PW");
    let channel = Mdp3Channel::new(Mdp3Channel::arbiter_config(), decoder, account, Nanos::SECOND);
    let config = RigConfig {
        seed,
        rate: 50_000,
        duration_ms: 3_000,
        kinds,
        keeps_heard: true,
        ..RigConfig::default()
    };
    let outcome = run(&config, &listings, Box::new(publisher), channel, Depth::ByOrder);
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
    outcome.heard
}

#[test]
fn every_ghost_of_mdp3_by_order_gets_the_fills_of_its_order() {
    // With every kind of order there are two closings in which a trade without an aggressor is told at a
    // worse price than an order that stands: what waited for the closing traded, and nobody says whose the
    // parts are.
    let [plain, few] =
        [OrderKinds::NONE, OrderKinds::FEW].map(|kinds| SEEDS.map(|seed| mdp3_day(seed, kinds)));
    for (days, fill, least, hidden) in [
        (&plain, FillModel::Queue, [15_000, 500], 0),
        (&plain, FillModel::Matching, [5_000, 100], 0),
        (&few, FillModel::Queue, [15_000, 500], 2),
    ] {
        let mut all = GhostResult::default();
        for day in days {
            let result = replay(day, fill, true);
            all.ghosts += result.ghosts;
            all.filled = [0, 1].map(|at| all.filled[at] + result.filled[at]);
            all.whys = std::array::from_fn(|at| all.whys[at] + result.whys[at]);
            all.first.extend(result.first);
        }
        println!(
            "{fill:?}: {} ghosts of MDP 3.0 by order, {} of them filled, by {} fills, all but {hidden} each as its order",
            all.ghosts, all.filled[0], all.filled[1]
        );
        for why in Why::ALL {
            let expected = if why == Why::Hidden { hidden } else { 0 };
            assert_eq!(
                all.whys[why as usize], expected,
                "{fill:?}, {why:?}: {:#?}",
                all.first
            );
        }
        assert!(
            all.ghosts >= least[0] && all.filled[0] >= least[1],
            "{fill:?}: {all:?}"
        );
    }
}

#[test]
fn every_ghost_gets_the_fills_of_its_order() {
    // In one engine ghosts go one by one: the second would stand behind what the first one's order was
    // spared.
    let days = SEEDS.map(|seed| day(seed, 150_000));
    for (fill, least) in [
        (FillModel::Queue, [15_000, 500]),
        (FillModel::Matching, [5_000, 100]),
    ] {
        let mut all = GhostResult::default();
        for (seed, day) in SEEDS.iter().zip(&days) {
            let result = replay(day, fill, false);
            assert_eq!(result.different, 0, "{fill:?}, seed {seed}: {:#?}", result.first);
            all.ghosts += result.ghosts;
            all.filled = [0, 1].map(|at| all.filled[at] + result.filled[at]);
        }
        println!(
            "{fill:?}: {} ghosts, {} of them filled, by {} fills, each as its order",
            all.ghosts, all.filled[0], all.filled[1]
        );
        assert!(all.ghosts >= least[0], "{fill:?}: {} ghosts", all.ghosts);
        assert!(all.filled[0] >= least[1], "{fill:?}: {:?} filled", all.filled);
    }
}
