//! Ghost replay: an order out of a recording is entered a second time as ours, right behind which the real one stands; it must get the real
//! one's fills, one by one. Thousands of orders, on a day of the exchange simulator that an independent decoder has read.

use tickwire_backtest::{Backtest, BacktestConfig, FillModel, GhostConfig, GhostResult, Ghosts, Nobody};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::generate_itch;
use tickwire_feed::{
    ArbiterConfig, Channel, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, SoupConfig, Start,
};
use tickwire_market::{BookState, MarketEvent, Nanos};
use tickwire_trading::strategy::ConductorConfig;

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

fn replay(seed: u64, messages: u64, fill: FillModel) -> GhostResult {
    let books = Books::new(BooksConfig {
        depth: Depth::ByOrder,
        instruments: 64,
        orders: 1 << 17,
        levels: 1 << 20,
        initial: BookState::Live,
        ..BooksConfig::default()
    });
    let config = BacktestConfig {
        fill,
        conductor: ConductorConfig {
            instrument_bits: 6,
            max_orders: 1,
            ..ConductorConfig::default()
        },
        ..BacktestConfig::default()
    };
    let mut test = Backtest::new(Nobody, vec![books], config);
    let mut ghosts = Ghosts::new(GhostConfig {
        every: if fill == FillModel::Queue { 8 } else { 1 },
        one_at_a_time: fill == FillModel::Matching,
        ..GhostConfig::default()
    });
    for event in &day(seed, messages) {
        ghosts.on_event(&mut test, 0, event);
    }
    let result = ghosts.result().clone();
    let doubts = test.finish().doubts;
    assert_eq!(doubts.took_recorded, 0, "no ghost took: its order had rested");
    result
}

#[test]
fn every_ghost_gets_the_fills_of_its_order() {
    // In one engine ghosts go one by one: the second would stand behind what the first one's order was spared.
    for (fill, least) in [
        (FillModel::Queue, [15_000, 500]),
        (FillModel::Matching, [5_000, 100]),
    ] {
        let mut all = GhostResult::default();
        for seed in 1..=2 {
            let result = replay(seed, 150_000, fill);
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
