//! CME MDP 3.0: TCP replay of lost packets, the loops of books when nobody replays, by price and by order.

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::{
    Engine, EngineConfig, Listing, Mdp3Publisher, Mdp3PublisherConfig, Mdp3View, NewOrder, Publisher, Tape,
    listings,
};
use tickwire_feed::{ArbiterConfig, Channel, Line, Mdp3Channel, Mdp3Config, Mdp3Decoder, Mdp3Depth};
use tickwire_market::{BookState, Counter, MarketEvent, Nanos, Port, Price, Qty, Side, TradingStatus};
use tickwire_rig::{Outcome, RigConfig, START, run};

fn publisher(depth: Mdp3Depth, listings: &[Listing]) -> Mdp3Publisher {
    let config = Mdp3PublisherConfig {
        view: match depth {
            Mdp3Depth::ByPrice => Mdp3View::ByPrice,
            Mdp3Depth::ByOrder => Mdp3View::ByOrder,
        },
        loop_interval_ns: 100 * Nanos::MICRO,
        store_bytes: 64 << 20,
        store_packets: 1 << 16,
        ..Mdp3PublisherConfig::default()
    };
    Mdp3Publisher::new(config, listings)
}

fn channel(depth: Mdp3Depth, config: ArbiterConfig) -> Mdp3Channel {
    let decoder = Mdp3Decoder::new(Mdp3Config {
        depth,
        instruments_max: 64,
        orders_max: 1 << 16,
        ..Mdp3Config::default()
    });
    let replay = Mdp3Channel::replay_config(310, b"ME", b"PW");
    Mdp3Channel::new(config, decoder, replay, Nanos::SECOND)
}

fn books_of(depth: Mdp3Depth) -> Depth {
    match depth {
        Mdp3Depth::ByPrice => Depth::ByPrice,
        Mdp3Depth::ByOrder => Depth::ByOrder,
    }
}

fn day(config: &RigConfig, depth: Mdp3Depth) -> Outcome<Mdp3Channel> {
    let listings = listings(20);
    let books = books_of(depth);
    let outcome = run(
        config,
        &listings,
        Box::new(publisher(depth, &listings)),
        channel(depth, Mdp3Channel::arbiter_config()),
        books,
    );
    assert_eq!(outcome.counters.get(Counter::Malformed), 0);
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
    assert_eq!(outcome.channel.feed().decoder().unsound(), 0);
    outcome
}

const BOTH: [Mdp3Depth; 2] = [Mdp3Depth::ByPrice, Mdp3Depth::ByOrder];

#[test]
fn a_day_without_trouble_needs_no_recovery() {
    for depth in BOTH {
        let outcome = day(&RigConfig::default(), depth);
        assert_eq!(outcome.counters.get(Counter::Gaps), 0);
        assert_eq!(outcome.counters.get(Counter::Snapshots), 0);
        assert!(outcome.connections.is_empty());
        assert_eq!(outcome.events["Definition"], 20, "{:?}", outcome.events);
        assert!(outcome.events["Trade"] > 100, "{:?}", outcome.events);
        let books = match depth {
            Mdp3Depth::ByPrice => "Level",
            Mdp3Depth::ByOrder => "Add",
        };
        assert!(outcome.events[books] > 1_000, "{:?}", outcome.events);
    }
}

#[test]
fn bad_lines_are_made_good_by_replay() {
    for depth in BOTH {
        let (mut replayed, mut connections) = (0, 0);
        for seed in 1..=5 {
            let outcome = day(&RigConfig::bad_lines(seed), depth);
            replayed += outcome.counters.get(Counter::PacketsRetransmit);
            connections += outcome.connections.get("replay").copied().unwrap_or(0);
            assert_eq!(outcome.counters.get(Counter::MessagesLost), 0);
            assert_eq!(outcome.counters.get(Counter::Snapshots), 0);
        }
        assert!(
            replayed > 0 && connections > 0,
            "some packet was lost on both lines"
        );
    }
}

#[test]
fn replays_are_read_however_they_are_cut() {
    let mut replayed = 0;
    for seed in 1..=5 {
        let config = RigConfig {
            read_max: 61,
            ..RigConfig::bad_lines(seed)
        };
        replayed += day(&config, Mdp3Depth::ByOrder)
            .counters
            .get(Counter::PacketsRetransmit);
    }
    assert!(replayed > 0);
}

#[test]
fn without_replay_the_loops_make_it_good() {
    for depth in BOTH {
        let mut snapshots = 0;
        for seed in 1..=5 {
            let outcome = day(
                &RigConfig {
                    connects: false,
                    ..RigConfig::bad_lines(seed)
                },
                depth,
            );
            snapshots += outcome.counters.get(Counter::Snapshots);
            assert!(outcome.connections.is_empty());
        }
        assert!(snapshots > 0);
    }
}

#[test]
fn late_joiners_learn_instruments_and_books_from_the_loops() {
    for depth in BOTH {
        for seed in 1..=5 {
            let outcome = day(
                &RigConfig {
                    joins_after_ms: 150,
                    ..RigConfig::bad_lines(seed)
                },
                depth,
            );
            assert!(outcome.counters.get(Counter::Snapshots) > 0);
            assert_eq!(outcome.events["Definition"], 20);
        }
    }
}

#[test]
fn a_channel_reset_restates_every_book() {
    for depth in BOTH {
        let listings = listings(3);
        let mut engine = Engine::new(EngineConfig {
            instruments: 3,
            max_orders: 1000,
            max_levels: 64,
        });
        let (mut publisher, mut channel) = (
            publisher(depth, &listings),
            channel(depth, Mdp3Channel::arbiter_config()),
        );
        let mut books = Books::new(BooksConfig {
            depth: books_of(depth),
            instruments: 64,
            initial: BookState::Building,
            ..BooksConfig::default()
        });
        publisher.open(START);
        for listing in &listings {
            publisher.define(listing);
            let known = engine.set_status(listing.id, TradingStatus::Trading, &mut publisher);
            assert_eq!(known, Ok(()));
        }
        let trade = |engine: &mut Engine, publisher: &mut Mdp3Publisher| {
            for n in 0..300_i64 {
                let listing = &listings[n as usize % 3];
                let side = Side::BOTH[n as usize / 3 % 2];
                // Every tenth order crosses the spread.
                let behind = if n % 10 == 0 { -2 } else { 1 + n * 7 % 23 };
                let up = if side == Side::Bid { -behind } else { behind };
                let price = Price::from_raw(listing.start.raw() + up * listing.tick().raw());
                let order = NewOrder::limit(listing.id, side, price, Qty(1 + n as u32 % 5));
                engine.submit(&order, publisher).expect("it fits");
            }
        };
        trade(&mut engine, &mut publisher);
        publisher.reset(&engine);
        trade(&mut engine, &mut publisher);
        let (mut clears, mut trades) = (0, 0);
        while let Some(datagram) = publisher.poll_datagram(START).filter(|d| d.port == Port::Live) {
            channel.on_datagram(
                START,
                Port::Live,
                Line::A,
                datagram.bytes,
                &mut |event: &MarketEvent| {
                    clears += u64::from(event.kind == tickwire_market::EventKind::Clear);
                    trades += u64::from(event.kind == tickwire_market::EventKind::Trade);
                    books.apply(event);
                },
            );
        }
        assert!(
            (clears, trades > 10) == (1, true),
            "{clears} clears, {trades} trades"
        );
        assert_eq!(books.counters().get(Counter::BookRejects), 0);
        for listing in &listings {
            let id = channel.find(&listing.symbol).expect("it is defined");
            let book = books.book(id).expect("there is room");
            assert_eq!(book.state(), BookState::Live);
            for side in Side::BOTH {
                let ours: Vec<_> = book.levels(side).collect();
                assert_eq!(ours, publisher.levels(&engine, listing.id, side));
                assert!(ours.len() > 5, "{ours:?}");
            }
        }
    }
}
