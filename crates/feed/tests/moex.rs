//! The Moscow Exchange's order and trade logs to events: recorded packets, both template sets, our own templates.

mod moex_common;

use moex_common::{Venue, day, exchange, ours, packets};
use std::collections::BTreeMap;
use tickwire_feed::{
    ArbiterConfig, FeedState, Line, MoexConfig, MoexDecoder, MoexFeed, Start,
};
use tickwire_market::{
    Counter, EventFlags, EventKind, MarketEvent, Nanos, OrderId, Price, Side, Symbol, TradingStatus, Volume,
};
use tickwire_testdata::unhex;
use tickwire_wire::moex::{Action, MessageKind};

fn feed(config: MoexConfig) -> MoexFeed {
    let arbiter = ArbiterConfig {
        start: Start::Here,
        ..ArbiterConfig::default()
    };
    MoexFeed::new(arbiter, MoexDecoder::new(config).unwrap())
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text.as_bytes()).unwrap()
}

/// The events of packets, each as if it were the next in sequence.
fn events(feed: &mut MoexFeed, packets: &[Vec<u8>]) -> Vec<MarketEvent> {
    let mut events = Vec::new();
    for packet in packets {
        feed.on_packet(Nanos(1), Line::A, packet, &mut |e: &MarketEvent| events.push(*e));
    }
    events
}

fn counted(events: &[MarketEvent]) -> BTreeMap<String, u32> {
    let mut kinds = BTreeMap::new();
    for event in events {
        *kinds.entry(format!("{:?}", event.kind)).or_default() += 1;
    }
    kinds
}

#[test]
fn the_first_recorded_packet_of_2017_deletes_an_offer() {
    let mut feed = feed(MoexConfig {
        main_board: b"CETS".into(),
        ..MoexConfig::new(exchange("2017-03"))
    });
    let events = events(&mut feed, &packets("packets-2017.hex")[..1]);
    let [defined, deleted] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(defined.kind, EventKind::Definition);
    assert_eq!(
        feed.decoder().find(&symbol("USD000UTSTOM")),
        Some(deleted.instrument)
    );
    assert_eq!(
        (deleted.kind, deleted.order_id, deleted.seq.0),
        (EventKind::Delete, OrderId(14_234), 44_360)
    );
    assert_eq!(
        deleted.venue_ts,
        Nanos((7 * 3600 + 16 * 60 + 54) * Nanos::SECOND + 557_563_000)
    );
    assert!(deleted.flags.has(EventFlags::LAST) && !defined.flags.has(EventFlags::LAST));
}

#[test]
fn every_recorded_packet_of_2017_gives_its_events() {
    let mut feed = feed(MoexConfig::new(exchange("2017-03")));
    // In the order of the file, which is that of the order log; the rest was recorded elsewhere.
    let (log, rest): (Vec<_>, Vec<_>) = packets("packets-2017.hex")
        .into_iter()
        .partition(|p| p[5..7] == [0x1c, 0x9a]);
    let log = events(&mut feed, &log[..312]);
    let kinds = counted(&log);
    assert_eq!(feed.decoder().seen(MessageKind::OrderLog), 312);
    assert_eq!(kinds.get("Gap"), None, "{kinds:?}");
    let orders: u32 = ["Add", "Modify", "Delete"]
        .iter()
        .filter_map(|kind| kinds.get(*kind))
        .sum();
    assert_eq!(
        kinds,
        BTreeMap::from(
            [("Add", 0), ("Delete", 0), ("Modify", 0), ("Definition", 0)].map(|(kind, n)| (kind.to_owned(), n))
        ),
        "{orders}"
    );
    let ends = log.iter().filter(|e| e.flags.has(EventFlags::LAST)).count();
    assert_eq!(ends, 312, "one a packet");
    let _ = rest;
}
