//! Readings made by hand, for the tests of the renderings.

use tickwire_market::{Counter, Counters, Level, Price, Side, TradingStatus, Volume};

use super::model::*;

/// 2026-11-21 14:30:00 UTC.
const NOW: u64 = 1_795_271_400_000_000_000;

fn source(name: &str, feed: &str, venue: &'static str, protocol: &str, scale: u64) -> Source {
    let mut counters = Counters::default();
    for (counter, value) in [
        (Counter::PacketsA, 1_000),
        (Counter::PacketsB, 990),
        (Counter::Messages, 12_000),
        (Counter::MessagesFiltered, 4_500),
    ] {
        counters.add(counter, value * scale);
    }
    let mut latency = Distribution::default();
    for ns in [127, 127, 191, 255, 4_095] {
        latency.record(ns);
    }
    let kind = |name: &str, seen, filtered| Kind {
        name: name.into(),
        seen,
        filtered,
        latency: latency.clone(),
    };
    Source {
        name: name.into(),
        feed: feed.into(),
        venue,
        protocol: protocol.into(),
        state: State::Live,
        next_seq: 12_001 * scale,
        last_packet_ns: NOW - 40_000_000,
        updates: 7_000 * scale,
        refused: 0,
        counters,
        super_latency: latency.clone(),
        arrivals: Default::default(),
        kinds: match protocol {
            "itch50" => vec![kind("A", 6_000, 2_500), kind("D", 5_000, 2_000), kind("R", 10, 0)],
            _ => vec![kind("0x21", 8_000, 4_000), kind("0x29", 4_000, 500)],
        },
        latency,
    }
}

/// A daemon with three sources of two feeds; two readings 2 s apart.
pub(crate) fn two_readings() -> (Reading, Reading) {
    let before = Reading {
        now_ns: NOW - 2_000_000_000,
        daemon: Daemon {
            folder: "/dev/shm/tickwire".into(),
            pid: 4_242,
            generation: NOW - 7_380_000_000_000,
            condition: Condition::Ready,
            heartbeat_age_ns: 34_000_000,
            memory_bytes: 61_130_000,
            books: Room { used: 812, of: 4_096 },
            super_books: Room { used: 402, of: 2_048 },
            rings: vec![Room {
                used: 1_234_567,
                of: 65_536,
            }],
        },
        sources: vec![
            source("nasdaq 1", "nasdaq", "nasdaq", "itch50", 3),
            source("bzx 1", "bzx", "bzx", "pitch", 1),
            source("bzx 2", "bzx", "bzx", "pitch", 2),
        ],
    };
    let mut after = before.clone();
    after.now_ns = NOW;
    for source in &mut after.sources {
        source.counters.add(Counter::PacketsA, 500);
        source.counters.add(Counter::PacketsB, 500);
        source.counters.add(Counter::Messages, 6_000);
        source.updates += 2_500;
        source.next_seq += 6_000;
        for ns in [159, 223, 959] {
            source.latency.record(ns);
        }
    }
    (before, after)
}

pub(crate) fn price(text: &str) -> Price {
    text.parse().expect("a price")
}

fn levels(list: &[(&str, u64, u32)]) -> Vec<Level> {
    list.iter()
        .map(|&(p, qty, orders)| Level {
            price: price(p),
            qty: Volume(qty),
            orders,
        })
        .collect()
}

fn shares(list: &[(&str, u64, u32, &str)]) -> Vec<Share> {
    list.iter()
        .map(|&(p, qty, orders, feed)| Share {
            price: price(p),
            qty,
            orders,
            feed: feed.into(),
        })
        .collect()
}

fn totals(levels: &[Vec<Level>; 2]) -> [Total; 2] {
    levels.each_ref().map(|side| Total {
        levels: side.len() as u64,
        qty: side.iter().map(|level| level.qty.0).sum(),
        orders: side.iter().map(|level| u64::from(level.orders)).sum(),
    })
}

fn book(source: &str, feed: &str, venue: &'static str, levels: [Vec<Level>; 2]) -> Book {
    Book {
        symbol: "AAPL".into(),
        source: source.into(),
        feed: feed.into(),
        venue,
        state: State::Live,
        status: TradingStatus::Trading,
        seq: 81_234,
        venue_ts: NOW - 12_400_000,
        recv_ts: NOW - 12_000_000,
        totals: totals(&levels),
        levels,
        last: Some(Trade {
            price: price("187.255"),
            qty: 100,
            venue_ts: NOW - 1_500_000_000,
        }),
        volume: 1_234_567,
        trades: 4_321,
        auction: None,
    }
}

/// AAPL on two venues and the SIP.
pub(crate) fn symbol() -> SymbolView {
    let nasdaq = [
        levels(&[("187.24", 900, 7), ("187.23", 2_400, 12), ("187.20", 100, 1)]),
        levels(&[("187.26", 300, 3), ("187.3001", 1_000, 9)]),
    ];
    let bzx = [
        levels(&[("187.24", 300, 2), ("187.22", 500, 4)]),
        levels(&[("187.27", 700, 5), ("187.3001", 500, 2)]),
    ];
    let best = |p: &str, qty, feeds: &[&str]| {
        Some(Best {
            price: price(p),
            qty,
            feeds: feeds.iter().map(|f| f.to_string()).collect(),
        })
    };
    let national = |p: &str, qty, participant| {
        Some(NationalBest {
            price: price(p),
            qty,
            participant,
        })
    };
    SymbolView {
        merged: Some(SuperBook {
            symbol: "AAPL".into(),
            contributing: vec!["nasdaq".into(), "bzx".into()],
            stale: vec![],
            crossing: Crossing::Apart,
            best: [
                best("187.24", 1_200, &["nasdaq", "bzx"]),
                best("187.26", 300, &["nasdaq"]),
            ],
            national: Some(National {
                best: [national("187.24", 1_200, b'Q'), national("187.27", 700, b'Z')],
                venue_ts: NOW - 14_000_000,
                recv_ts: NOW - 13_500_000,
                difference: [Some(Price::ZERO), Some(price("-0.01"))],
                differs_since: [0, NOW - 12_000_000],
            }),
            last: Some(Trade {
                price: price("187.255"),
                qty: 100,
                venue_ts: NOW - 1_500_000_000,
            }),
            volume: 2_345_678,
            trades: 8_642,
            shares: [
                shares(&[
                    ("187.24", 900, 7, "nasdaq"),
                    ("187.24", 300, 2, "bzx"),
                    ("187.23", 2_400, 12, "nasdaq"),
                    ("187.22", 500, 4, "bzx"),
                    ("187.20", 100, 1, "nasdaq"),
                ]),
                shares(&[
                    ("187.26", 300, 3, "nasdaq"),
                    ("187.27", 700, 5, "bzx"),
                    ("187.3001", 1_000, 9, "nasdaq"),
                    ("187.3001", 500, 2, "bzx"),
                ]),
            ],
        }),
        books: vec![
            book("nasdaq 1", "nasdaq", "nasdaq", nasdaq),
            book("bzx 1", "bzx", "bzx", bzx),
        ],
    }
}

/// The same with one venue stale and the other in an auction after a halt; best bid above best ask.
pub(crate) fn troubled_symbol() -> SymbolView {
    let mut view = symbol();
    let merged = view.merged.as_mut().expect("the example has one");
    merged.contributing = vec!["nasdaq".into()];
    merged.stale = vec!["bzx".into()];
    merged.crossing = Crossing::Crossed;
    merged.shares = merged
        .shares
        .clone()
        .map(|side| side.into_iter().filter(|share| share.feed == "nasdaq").collect());
    merged.best[Side::Bid as usize] = Some(Best {
        price: price("187.28"),
        qty: 100,
        feeds: vec!["nasdaq".into()],
    });
    merged.national = None;
    merged.last = None;
    view.books[0].status = TradingStatus::Halted;
    view.books[0].auction = Some(Auction {
        kind: b'H',
        reference: price("187.25"),
        near: price("187.2"),
        far: Price::ZERO,
        paired: 12_000,
        imbalance: 3_400,
        side: Some(Side::Ask),
    });
    view.books[1].state = State::Stale;
    view
}
