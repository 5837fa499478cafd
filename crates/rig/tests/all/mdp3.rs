//! CME MDP 3.0: TCP replay of lost packets, the loops of books when nobody replays, by price and by order.

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::{
    Engine, EngineConfig, Listing, MDP3_PRICE_MAX, Mdp3Publisher, Mdp3PublisherConfig, Mdp3View, NewOrder,
    Publisher, Rules, Tape, TickTable, listings,
};
use tickwire_feed::{ArbiterConfig, Channel, Line, Mdp3Channel, Mdp3Config, Mdp3Decoder, Mdp3Depth};
use tickwire_market::{
    BookState, Contract, Counter, Currency, Date, EventKind, InstrumentId, MarketEvent, Nanos, Port, Price,
    PutCall, Qty, Side, Symbol, TradingStatus,
};
use tickwire_rig::{Forgery, Numbers, Outcome, RigConfig, START, run};

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
    told(depth, false, config)
}

fn told(depth: Mdp3Depth, executions: bool, config: ArbiterConfig) -> Mdp3Channel {
    let decoder = Mdp3Decoder::new(Mdp3Config {
        depth,
        executions,
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
    day_of(config, depth, channel(depth, Mdp3Channel::arbiter_config()))
}

fn day_of(config: &RigConfig, depth: Mdp3Depth, channel: Mdp3Channel) -> Outcome<Mdp3Channel> {
    let listings = listings(20);
    let books = books_of(depth);
    let publisher = Box::new(publisher(depth, &listings));
    let outcome = run(config, &listings, publisher, channel, books);
    assert_eq!(outcome.counters.get(Counter::Malformed), 0);
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
    assert_eq!(outcome.channel.feed().decoder().unsound(), 0);
    outcome
}

/// An index future, options on it of two strikes, and a currency pair, in Globex prices as CME has them: a
/// hundredth of a point is one, options go by VTT 4.
fn chain() -> Vec<Listing> {
    let price = |units: u32| Price::from_raw(i64::from(units) * Price::ONE_RAW);
    let expiry = Date {
        year: 2026,
        month: 3,
        day: 20,
    };
    let name = |text: &str| Symbol::new(text.as_bytes()).expect("a short name");
    let equity = |id: u32, text: &str, start| Listing::equity(InstrumentId(id), name(text), start);
    let hundredth = Price::from_4dp(100);
    let future = Listing {
        contract: Contract::Future {
            expiry,
            multiplier: 50,
        },
        rules: Rules {
            ticks: TickTable::uniform(price(25)),
            price_max: MDP3_PRICE_MAX,
            ..Rules::default()
        },
        display_factor: hundredth,
        ..equity(1, "ESH6", price(690_000))
    };
    let ticks = TickTable::stepped(price(5), &[(price(500), price(25))]).expect("they ascend");
    let option = |id, text: &str, strike, right, start| Listing {
        contract: Contract::Option {
            expiry,
            multiplier: 50,
            strike: price(strike),
            right,
            underlying: InstrumentId(1),
        },
        rules: Rules {
            ticks,
            price_max: MDP3_PRICE_MAX,
            ..Rules::default()
        },
        display_factor: hundredth,
        ..equity(id, text, price(start))
    };
    let pair = Listing {
        contract: Contract::Currency {
            base: *b"EUR",
            quote: *b"USD",
        },
        rules: Rules {
            ticks: TickTable::uniform(Price::from_4dp(1)),
            ..Rules::default()
        },
        ..equity(6, "EURUSD", Price::from_4dp(11_000))
    };
    vec![
        future,
        option(2, "ESH6 C690000", 690_000, PutCall::Call, 12_000),
        option(3, "ESH6 P690000", 690_000, PutCall::Put, 12_000),
        // Around the price where its tick changes.
        option(4, "ESH6 C750000", 750_000, PutCall::Call, 500),
        option(5, "ESH6 P600000", 600_000, PutCall::Put, 475),
        pair,
    ]
}

#[test]
fn futures_options_and_currencies_come_with_their_terms_and_their_books_are_rebuilt() {
    let listings = chain();
    let mut trades = 0;
    for depth in BOTH {
        // From the live channel, and from the loops.
        for joins_after_ms in [0, 150] {
            let config = RigConfig {
                joins_after_ms,
                ..RigConfig::bad_lines(3)
            };
            let outcome = run(
                &config,
                &listings,
                Box::new(publisher(depth, &listings)),
                channel(depth, Mdp3Channel::arbiter_config()),
                books_of(depth),
            );
            assert_eq!(outcome.counters.get(Counter::Malformed), 0);
            assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
            let feed = outcome.channel.feed();
            let (decoder, filter) = (feed.decoder(), feed.filter());
            for listing in &listings {
                let id = filter.find(&listing.symbol).expect("it is defined");
                let terms = decoder.terms(id).expect("it is defined");
                // Numbers of the venue are those of the listing, numbers of the feed are in the order of
                // coming.
                let underlying = listings[0].symbol;
                let contract = match listing.contract {
                    Contract::Option {
                        expiry,
                        multiplier,
                        strike,
                        right,
                        ..
                    } => {
                        let Some((_, name)) = terms.underlying else {
                            panic!("{terms:?}");
                        };
                        assert_eq!(name, underlying);
                        Contract::Option {
                            expiry,
                            multiplier,
                            strike,
                            right,
                            underlying: filter.find(&underlying).expect("it is defined"),
                        }
                    }
                    other => other,
                };
                assert_eq!(decoder.contract(id), Some(contract), "{terms:?}");
                assert_eq!(terms.display_factor, listing.display_factor);
                // Fifty dollars a point of the index, whose prices are hundredths: three contracts bought at
                // 6,900.25 (a call at 115.25, a put at 4.85) are worth 1,035,037.50 (17,287.50, 727.50)
                // dollars. A pair's price is dollars for a euro.
                let value = terms.point_value().expect("it is said");
                let (price, money) = match listing.contract {
                    Contract::Currency { .. } => ("1.1001", 3_300_300_000),
                    Contract::Option {
                        right: PutCall::Call, ..
                    } => ("11525", 17_287_500_000_000),
                    Contract::Option { .. } => ("485", 727_500_000_000),
                    _ => ("690025", 1_035_037_500_000_000),
                };
                let price: Price = price.parse().expect("a price");
                assert_eq!(
                    value.money(3 * i128::from(price.raw())),
                    money,
                    "{}",
                    listing.symbol
                );
                assert_eq!(value.currency(), Currency::USD, "{}", listing.symbol);
                for (price, tick) in [
                    (listing.start, listing.tick()),
                    (
                        Price::from_raw(listing.tick().raw()),
                        listing.rules.ticks.at(listing.tick()),
                    ),
                ] {
                    // At the bound itself both steps are right.
                    if price != Price::from_raw(500 * Price::ONE_RAW) {
                        assert_eq!(terms.tick_at(price), Some(tick), "{}", listing.symbol);
                    }
                }
                let is_option = matches!(listing.contract, Contract::Option { .. });
                assert_eq!(terms.tick_rule.map(|rule| rule.code), is_option.then_some(4));
                let book = outcome.books.book(id).expect("there is room");
                let depth = Side::BOTH.map(|side| book.levels(side).count());
                assert!(
                    depth.iter().all(|levels| *levels > 0),
                    "{}: {depth:?}",
                    listing.symbol
                );
            }
            trades += outcome.events.get("Trade").copied().unwrap_or(0);
        }
    }
    assert!(trades > 200, "{trades}");
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
fn icebergs_stops_halts_and_auctions_leave_the_books_what_they_are() {
    for depth in BOTH {
        let outcome = day(&RigConfig::every_kind(1), depth);
        assert!(outcome.compared > 20, "{}", outcome.compared);
        assert!(outcome.events["TradeBreak"] > 10, "{:?}", outcome.events);
        assert_eq!(outcome.breaks_unknown, 0);
    }
}

/// What traded, and the books, are the same whether trades are told or the executions of resting orders.
#[test]
fn executions_of_resting_orders_are_told_one_by_one_and_come_to_the_trades() {
    let traded = |outcome: &Outcome<Mdp3Channel>, kinds: &[EventKind]| -> u64 {
        let is_one = |event: &&MarketEvent| kinds.contains(&event.kind);
        outcome.heard.iter().filter(is_one).map(|event| event.qty.0).sum()
    };
    for config in [
        RigConfig::default(),
        RigConfig::every_kind(1),
        RigConfig::bad_lines(2),
        RigConfig {
            connects: false,
            ..RigConfig::bad_lines(3)
        },
    ] {
        let config = RigConfig {
            keeps_heard: true,
            ..config
        };
        let [plain, executed] = [false, true].map(|executions| {
            let channel = told(Mdp3Depth::ByOrder, executions, Mdp3Channel::arbiter_config());
            day_of(&config, Mdp3Depth::ByOrder, channel)
        });
        assert_eq!(plain.events.get("Execute"), None);
        assert!(executed.events["Execute"] > 50, "{:?}", executed.events);
        assert_eq!(plain.books.state_hash(), executed.books.state_hash());
        assert_eq!(
            traded(&plain, &[EventKind::Trade]),
            traded(&executed, &[EventKind::Trade, EventKind::Execute])
        );
        assert_eq!(executed.breaks_unknown, 0);
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

/// Sent before the venue's datagrams, on one line: whatever is shown as live is right, all the time, and in
/// the end too.
#[test]
fn forged_packets_on_one_line_make_no_false_book_live() {
    for forgery in [Forgery::Ahead(50_000_000), Forgery::Ahead(1000), Forgery::Content] {
        let outcome = day(&forgery.day(Numbers::MDP3), Mdp3Depth::ByOrder);
        forgery.was_noticed(&outcome);
    }
}
