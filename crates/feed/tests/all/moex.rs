//! The Moscow Exchange's order and trade logs to events: recorded packets, both template sets, our own
//! templates.

use crate::moex_common;

use moex_common::{Venue, exchange, order, ours, packets};
use std::collections::BTreeMap;
use std::sync::Arc;
use tickwire_feed::{
    ArbiterConfig, Channel, Line, MoexChannel, MoexChannelConfig, MoexConfig, MoexDecoder, MoexFeed, Start,
};
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Port, Price, Side,
    Symbol, TradingStatus, Volume,
};
use tickwire_wire::fast::Plan;
use tickwire_wire::moex::{Action, Board, Definition, MessageKind, Status, TradeEntry};

fn feed(config: MoexConfig) -> MoexFeed {
    let arbiter = ArbiterConfig {
        start: Start::Here,
        request_attempts: 0,
        ..ArbiterConfig::default()
    };
    MoexFeed::new(arbiter, MoexDecoder::new(config).unwrap())
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text.as_bytes()).unwrap()
}

/// The events of packets; what is missing between them is given up at once.
fn events(feed: &mut MoexFeed, packets: &[Vec<u8>]) -> Vec<MarketEvent> {
    let mut events = Vec::new();
    for (at, packet) in packets.iter().enumerate() {
        let now = Nanos(at as u64 * Nanos::SECOND + 1);
        let mut sink = |e: &MarketEvent| events.push(*e);
        feed.on_packet(now, Line::A, packet, &mut sink);
        feed.handle_timeout(now.after(Nanos::MILLI), &mut sink);
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

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
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
        feed.filter().find(&symbol("USD000UTSTOM")),
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

fn kinds(counts: &[(&str, u32)]) -> BTreeMap<String, u32> {
    counts.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect()
}

/// The recorded run of one order log, and everything else in the file.
fn recorded_2017() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut log = packets("packets-2017.hex");
    let rest = log.split_off(311);
    (log, rest)
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn every_packet_of_the_recorded_order_log_gives_its_events() {
    let mut feed = feed(MoexConfig::new(exchange("2017-03")));
    let events = events(&mut feed, &recorded_2017().0);
    assert_eq!(feed.decoder().seen(MessageKind::OrderLog), 311);
    assert_eq!(feed.counters().get(Counter::Malformed), 0);
    let expected = [("Add", 152), ("Definition", 24), ("Delete", 300), ("Modify", 4)];
    assert_eq!(counted(&events), kinds(&expected));
    let ends = events.iter().filter(|e| e.flags.has(EventFlags::LAST)).count();
    assert_eq!(ends, 311, "one a packet");
    assert_eq!(events.last().map(|e| e.seq.0), Some(44_670));
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn every_other_recorded_packet_is_read_too() {
    let rest = recorded_2017().1;
    for (packets, set, unknown, expected) in [
        // Six packets are older than the templates.
        (
            rest,
            "2017-03",
            6,
            kinds(&[("Add", 5), ("Definition", 12), ("Delete", 3), ("Status", 3)]),
        ),
        (
            packets("packets-2020.hex"),
            "2020-11",
            0,
            kinds(&[
                ("Add", 5),
                ("Definition", 10),
                ("Delete", 4),
                ("Modify", 1),
                ("Trade", 2),
            ]),
        ),
    ] {
        let (mut all, mut live, mut looped) = (Vec::new(), Counters::default(), Counters::default());
        for packet in &packets {
            // Each is of another feed or day.
            let mut sink = |e: &MarketEvent| all.push(*e);
            let mut on_line = feed(MoexConfig::new(exchange(set)));
            on_line.on_packet(Nanos(1), Line::A, packet, &mut sink);
            live.merge(&on_line.counters());
            let mut in_loop = feed(MoexConfig::new(exchange(set)));
            in_loop.on_snapshot_message(Nanos(1), packet, &mut |_: &MarketEvent| ());
            looped.merge(&in_loop.counters());
        }
        for counters in [live, looped] {
            assert_eq!(counters.get(Counter::MessagesUnknown), unknown, "{set}");
            assert_eq!(counters.get(Counter::Malformed), 0, "{set}");
        }
        assert_eq!(counted(&all), expected, "{set}");
    }
}

fn changes(events: &[MarketEvent]) -> Vec<(EventKind, u32, u64, bool)> {
    let told = |e: &MarketEvent| {
        (
            e.kind,
            e.instrument.0,
            e.order_id.0,
            e.flags.has(EventFlags::LAST),
        )
    };
    events.iter().map(told).collect()
}

#[test]
fn new_changed_and_deleted_orders_are_told_with_exact_prices() {
    orders_are_told(ours());
}

#[tickwire_testdata::recorded_data("specs/moex")]
#[test]
fn new_changed_and_deleted_orders_are_told_with_exact_prices_by_the_exchanges_templates() {
    for plan in [exchange("2017-03"), exchange("2020-11")] {
        orders_are_told(plan);
    }
}

fn orders_are_told(plan: Arc<Plan>) {
    let (mut venue, mut feed) = (Venue::new(plan.clone(), "FOND"), feed(MoexConfig::new(plan)));
    let packet = venue.orders(
        7,
        &[
            order(Action::New, "SBER", 1, 70, Side::Bid, "271.35", 20),
            order(Action::New, "GAZP", 5, 71, Side::Ask, "-0.000000001", 3880),
            order(Action::Change, "SBER", 2, 70, Side::Bid, "271.35", 5),
            order(Action::Delete, "SBER", 3, 70, Side::Bid, "271.35", 0),
        ],
    );
    let events = events(&mut feed, &[packet]);
    let orders: Vec<_> = events
        .into_iter()
        .filter(|e| e.kind != EventKind::Definition)
        .collect();
    assert_eq!(
        changes(&orders),
        [
            (EventKind::Add, 1, 70, false),
            (EventKind::Add, 2, 71, false),
            (EventKind::Modify, 1, 70, false),
            (EventKind::Delete, 1, 70, true),
        ]
    );
    assert_eq!(orders[0].price.to_string(), "271.35");
    assert_eq!(
        (orders[1].price, orders[1].qty),
        (Price::from_raw(-1), Volume(3880))
    );
    assert_eq!((orders[1].side, orders[2].side), (Side::Ask, Side::Bid));
    assert!(orders[2].flags.has(EventFlags::KEEPS_PRIORITY));
    assert_eq!(orders[0].venue_ts, Nanos(36_000 * Nanos::SECOND + 70_000));
}

#[test]
fn a_packet_of_128_entries_gives_128_events_in_order() {
    let (mut venue, mut feed) = (Venue::new(ours(), ""), feed(MoexConfig::new(ours())));
    let entries: Vec<_> = (1..=128)
        .map(|n| {
            order(
                Action::New,
                "SBER",
                n,
                1000 + u64::from(n),
                Side::Bid,
                "271.35",
                1,
            )
        })
        .collect();
    let mut events = events(&mut feed, &[venue.orders(1, &entries)]);
    assert_eq!(events.remove(0).kind, EventKind::Recovered);
    let ids: Vec<_> = events.iter().map(|e| e.order_id.0).collect();
    let expected: Vec<_> = [0].into_iter().chain(1001..=1128).collect();
    assert_eq!(ids, expected, "the instrument, then its orders");
    assert!(events[..128].iter().all(|e| !e.flags.has(EventFlags::LAST)));
    assert!(events[128].flags.has(EventFlags::LAST));
}

#[test]
fn entries_nobody_wants_are_dropped_and_the_last_wanted_one_ends_the_packet() {
    let (mut venue, mut feed) = (
        Venue::new(ours(), ""),
        feed(MoexConfig {
            symbols: Some(vec![symbol("SBER"), symbol("GAZP@EQRP")]),
            ..MoexConfig::new(ours())
        }),
    );
    let entries = [
        order(Action::New, "SBER", 1, 70, Side::Bid, "271.35", 20),
        order(Action::New, "GAZP", 1, 71, Side::Ask, "150", 1),
    ];
    let repo = tickwire_wire::moex::OrderEntry {
        board: b"EQRP",
        ..entries[1]
    };
    let packets = [venue.orders(1, &entries), venue.orders(2, &[repo])];
    let events = events(&mut feed, &packets);
    let kinds = [
        (EventKind::Definition, 1, 0, false),
        (EventKind::Add, 1, 70, true),
        (EventKind::Definition, 3, 0, false),
        (EventKind::Add, 3, 71, true),
    ];
    let whole_feed = |e: &MarketEvent| e.instrument.0 == 0;
    let events: Vec<_> = events.into_iter().filter(|e| !whole_feed(e)).collect();
    assert_eq!(changes(&events), kinds);
    assert_eq!(feed.counters().get(Counter::MessagesFiltered), 1);
}

/// It goes the way of its instrument, by its name, on whatever board; before that is known it has its own.
#[test]
fn a_twin_is_called_as_its_instrument_is() {
    let arbiter = ArbiterConfig {
        start: Start::Here,
        ..MoexChannelConfig::arbiter()
    };
    let config = MoexChannelConfig {
        arbiter,
        ..MoexChannelConfig::new(MoexConfig::new(ours()))
    };
    let mut channel = MoexChannel::new(config).unwrap();
    let called = |channel: &MoexChannel, number| {
        let twin = channel.twin(InstrumentId(number), Price::from_4dp(99_9800));
        let mut twin = twin.expect("known or not");
        let mut offers = Vec::new();
        assert!(twin.play(Nanos(1), &mut |event: &MarketEvent| offers.push(*event)));
        let offers = changes(&offers);
        assert!(
            matches!(offers[..], [(EventKind::Add, at, ..), (EventKind::Delete, by, ..)] if (at, by) == (number, number)),
            "{offers:?}"
        );
        let name = twin.channel().instrument(InstrumentId(number));
        name.expect("its own").symbol
    };
    assert_eq!([1, 2].map(|it| called(&channel, it)), [symbol("REHEARSED"); 2]);
    let mut venue = Venue::new(ours(), "");
    let sber = order(Action::New, "SBER", 1, 70, Side::Bid, "271.35", 20);
    let gazp = tickwire_wire::moex::OrderEntry {
        board: b"EQRP",
        ..order(Action::New, "GAZP", 1, 71, Side::Ask, "150", 1)
    };
    let mut sink = |_: &MarketEvent| ();
    for (seq, entry) in [(1, sber), (2, gazp)] {
        channel.on_datagram(
            Nanos(u64::from(seq)),
            Port::Live,
            Line::A,
            &venue.orders(seq, &[entry]),
            &mut sink,
        );
    }
    let names = [1, 2].map(|it| called(&channel, it));
    assert_eq!(names, [symbol("SBER"), symbol("GAZP@EQRP")]);
}

#[test]
fn a_hole_in_an_instruments_numbers_marks_its_book_and_repeats_are_dropped() {
    let (mut venue, mut feed) = (Venue::new(ours(), ""), feed(MoexConfig::new(ours())));
    let add = |venue: &mut Venue, seq, rpt, id| {
        venue.orders(
            seq,
            &[order(Action::New, "SBER", rpt, id, Side::Bid, "271.35", 1)],
        )
    };
    let packets = [
        add(&mut venue, 5, 10, 1),
        add(&mut venue, 6, 10, 1),
        add(&mut venue, 7, 12, 3),
    ];
    let events = events(&mut feed, &packets);
    let events: Vec<_> = events.into_iter().filter(|e| e.instrument.0 == 1).collect();
    assert_eq!(
        changes(&events),
        [
            (EventKind::Definition, 1, 0, false),
            (EventKind::Add, 1, 1, true),
            (EventKind::Gap, 1, 0, false),
            (EventKind::Add, 1, 3, true),
        ]
    );
    assert_eq!(feed.counters().get(Counter::MessagesDuplicate), 1);
    assert_eq!(feed.counters().get(Counter::MessagesLost), 1);
}

#[test]
fn trades_are_told_with_the_aggressors_side() {
    trades_are_told(ours());
}

#[tickwire_testdata::recorded_data("specs/moex")]
#[test]
fn trades_are_told_with_the_aggressors_side_by_the_exchanges_templates() {
    trades_are_told(exchange("2020-11"));
}

fn trades_are_told(plan: Arc<Plan>) {
    let (mut venue, mut feed) = (Venue::new(plan.clone(), "FOND"), feed(MoexConfig::new(plan)));
    let trade = TradeEntry {
        trade_id: 9001,
        symbol: b"SBER",
        board: b"TQBR",
        rpt_seq: 1,
        aggressor: Some(Side::Ask),
        price: Some("271.35".parse().unwrap()),
        qty: Some(Volume(30)),
        value: None,
        resting_order: Some(OrderId(70)),
        date: None,
        time: Some(Nanos(36_000 * Nanos::SECOND)),
        session: b"N",
    };
    let nobody = TradeEntry {
        aggressor: None,
        rpt_seq: 2,
        ..trade
    };
    let events = events(&mut feed, &[venue.trades(1, &[trade, nobody])]);
    let trades: Vec<_> = events.iter().filter(|e| e.kind == EventKind::Trade).collect();
    assert_eq!(
        (trades[0].side, trades[0].qty, trades[0].ref_id),
        (Side::Ask, Volume(30), 9001)
    );
    assert!(trades[1].flags.has(EventFlags::NO_SIDE) && trades[1].flags.has(EventFlags::LAST));
}

#[test]
fn statuses_are_told_once_and_old_ones_not_at_all() {
    let (mut venue, mut feed) = (Venue::new(ours(), ""), feed(MoexConfig::new(ours())));
    let board = |status| Board {
        board: b"TQBR",
        session: b"N",
        trading_status: Some(status),
        round_lot: Some(10),
    };
    let definition = Definition {
        symbol: b"SBER",
        total_reports: Some(1),
        min_price_increment: Some("0.01".parse().unwrap()),
        ..Definition::default()
    };
    let status = |code| Status {
        symbol: b"SBER",
        board: b"TQBR",
        trading_status: Some(code),
        ..Status::default()
    };
    let closed = Status {
        board: b"TQBR",
        session_status: Some(3),
        ..Status::default()
    };
    let old = venue.status(MessageKind::SecurityStatus, 1, &status(18));
    let packets = [
        venue.definition(1, &definition, &[board(17)]),
        venue.definition(1, &definition, &[board(17)]),
        old,
        venue.status(MessageKind::SecurityStatus, 2, &status(2)),
        venue.status(MessageKind::SecurityStatus, 3, &status(118)),
        venue.status(MessageKind::SessionStatus, 4, &closed),
    ];
    let mut events = Vec::new();
    for packet in &packets {
        feed.on_snapshot_message(Nanos(1), packet, &mut |e: &MarketEvent| events.push(*e));
    }
    let told: Vec<_> = events.iter().map(|e| (e.kind, e.status, e.code)).collect();
    let code = |text: &str| {
        let mut code = [0; 8];
        code[..text.len()].copy_from_slice(text.as_bytes());
        code
    };
    assert_eq!(
        told,
        [
            (EventKind::Definition, TradingStatus::Unknown, [0; 8]),
            (EventKind::Status, TradingStatus::Trading, code("17")),
            (EventKind::Status, TradingStatus::Halted, code("2")),
            (EventKind::Status, TradingStatus::Unknown, code("118")),
            (EventKind::Status, TradingStatus::Closed, code("18")),
        ]
    );
    let known = feed.filter().instruments().next().unwrap();
    assert_eq!((known.tick.to_string(), known.lot.0), ("0.01".to_owned(), 10));
    assert_eq!(feed.decoder().definitions(), (1, Some(1)));
}

#[test]
fn what_cannot_be_read_marks_every_book() {
    let (mut venue, mut feed) = (Venue::new(ours(), ""), feed(MoexConfig::new(ours())));
    let mut packet = venue.orders(1, &[order(Action::New, "SBER", 1, 1, Side::Bid, "271.35", 1)]);
    packet.push(0x80);
    let unknown = [2, 0, 0, 0, 0xC0, 0x7F, 0xFF];
    let events = events(&mut feed, &[packet, unknown.to_vec(), vec![3, 0, 0, 0]]);
    assert!(
        events
            .iter()
            .any(|e| e.kind == EventKind::Gap && e.instrument.0 == 0),
        "{events:?}"
    );
    assert_eq!(
        feed.counters().get(Counter::Malformed),
        2,
        "trailing bytes, nothing"
    );
    assert_eq!(feed.counters().get(Counter::MessagesUnknown), 1);
}

/// What an instrument's status is to who forgets at a clear of the whole feed, as `Conductor` does.
#[test]
fn a_halt_that_lasts_is_said_again_behind_the_clear_of_a_snapshot() {
    let config = MoexChannelConfig {
        arbiter: ArbiterConfig {
            start: Start::Snapshot,
            snapshot: true,
            request_attempts: 0,
            ..MoexChannelConfig::arbiter()
        },
        ..MoexChannelConfig::new(MoexConfig::new(ours()))
    };
    let (mut channel, mut venue) = (MoexChannel::new(config).unwrap(), Venue::new(ours(), ""));
    let definition = Definition {
        symbol: b"SBER",
        total_reports: Some(1),
        ..Definition::default()
    };
    let board = Board {
        board: b"TQBR",
        session: b"N",
        trading_status: Some(2),
        round_lot: Some(1),
    };
    let header = tickwire_wire::moex::SnapshotHeader {
        symbol: b"SBER",
        board: b"TQBR",
        rpt_seq: 21,
        last_seq_processed: Some(10),
        first_fragment: true,
        last_fragment: true,
        session_status: Some(100),
        trading_status: Some(2),
        auction: None,
    };
    let packets = [
        (Port::Definitions, venue.definition(1, &definition, &[board])),
        (Port::Live, venue.heartbeat(10)),
        (
            Port::Snapshot,
            venue.snapshot(
                1,
                &header,
                &[order(Action::New, "SBER", 0, 70, Side::Bid, "271.35", 20)],
            ),
        ),
    ];
    let mut said = Vec::new();
    for (nth, (port, packet)) in (1..).zip(&packets) {
        let mut sink = |e: &MarketEvent| said.push(*e);
        channel.on_datagram(Nanos(nth), *port, Line::A, packet, &mut sink);
    }
    assert_eq!(channel.state(), tickwire_feed::FeedState::Live);
    let clear = said
        .iter()
        .rposition(|e| e.kind == EventKind::Clear && e.instrument == InstrumentId::WHOLE_FEED);
    let status = said[clear.expect("a snapshot clears")..]
        .iter()
        .rfind(|e| e.kind == EventKind::Status);
    assert_eq!(status.map(|e| e.status), Some(TradingStatus::Halted));
}

/// An order without a price is in no book: that it leaves says nothing to one.
#[test]
fn a_market_order_of_an_auction_comes_and_goes_and_the_book_stays_right() {
    use tickwire_book::{Books, BooksConfig, Depth};
    let (mut venue, mut feed) = (Venue::new(ours(), ""), feed(MoexConfig::new(ours())));
    let market = |action, rpt_seq, qty| tickwire_wire::moex::OrderEntry {
        price: None,
        ..order(action, "SBER", rpt_seq, 71, Side::Ask, "1", qty)
    };
    let mut books = Books::new(BooksConfig {
        venue: tickwire_market::Venue::Moex,
        depth: Depth::ByOrder,
        instruments: 8,
        orders: 64,
        levels: 64,
        ..BooksConfig::default()
    });
    for packet in [
        venue.orders(1, &[order(Action::New, "SBER", 1, 70, Side::Bid, "271.35", 20)]),
        venue.orders(2, &[market(Action::New, 2, 5)]),
        venue.orders(3, &[market(Action::Change, 3, 2)]),
        venue.orders(4, &[market(Action::Delete, 4, 0)]),
    ] {
        feed.on_packet(Nanos(1), Line::A, &packet, &mut books);
    }
    let book = books.book(InstrumentId(1)).unwrap();
    assert_eq!(book.state(), tickwire_market::BookState::Live);
    assert_eq!(books.counters().get(Counter::BookRejects), 0);
}

/// One that ends beyond everything the lines have told of is of another day: taken, it would have every
/// packet up to there count as old.
#[test]
fn a_snapshot_from_beyond_the_lines_is_not_taken() {
    let config = MoexChannelConfig {
        arbiter: ArbiterConfig {
            start: Start::Snapshot,
            snapshot: true,
            request_attempts: 0,
            ..MoexChannelConfig::arbiter()
        },
        ..MoexChannelConfig::new(MoexConfig::new(ours()))
    };
    let (mut channel, mut venue) = (MoexChannel::new(config).unwrap(), Venue::new(ours(), ""));
    let definition = Definition {
        symbol: b"SBER",
        total_reports: Some(1),
        ..Definition::default()
    };
    let board = Board {
        board: b"TQBR",
        session: b"N",
        trading_status: Some(17),
        round_lot: Some(1),
    };
    let header = |last, rpt_seq| tickwire_wire::moex::SnapshotHeader {
        symbol: b"SBER",
        board: b"TQBR",
        rpt_seq,
        last_seq_processed: Some(last),
        first_fragment: true,
        last_fragment: true,
        session_status: Some(100),
        trading_status: Some(17),
        auction: None,
    };
    let rests = order(Action::New, "SBER", 0, 70, Side::Bid, "271.35", 20);
    let packets = [
        (Port::Definitions, venue.definition(1, &definition, &[board])),
        (Port::Live, venue.heartbeat(10)),
        (
            Port::Snapshot,
            venue.snapshot(1, &header(5_000_000, 900), &[rests]),
        ),
        (Port::Snapshot, venue.snapshot(1, &header(10, 1), &[rests])),
        (
            Port::Live,
            venue.orders(
                11,
                &[order(Action::Delete, "SBER", 2, 70, Side::Bid, "271.35", 0)],
            ),
        ),
    ];
    let mut said = Vec::new();
    for (nth, (port, packet)) in (1..).zip(&packets) {
        let mut sink = |e: &MarketEvent| said.push(*e);
        channel.on_datagram(Nanos(nth), *port, Line::A, packet, &mut sink);
    }
    assert_eq!(channel.next_seq().0, 12);
    assert_eq!(said.iter().filter(|e| e.kind == EventKind::Delete).count(), 1);
}
