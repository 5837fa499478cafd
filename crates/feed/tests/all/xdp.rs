//! XDP: from messages to events, and through numbers that begin anew.

use tickwire_feed::{
    ArbiterConfig, FeedHandler, FeedState, Line, RefreshState, Start, XdpConfig, XdpDecoder, XdpFeed,
    XdpRefresh,
};
use tickwire_market::{
    Counter, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, SeqNo, Side, Symbol,
    TradingStatus, Venue, Volume,
};
use tickwire_testdata as testdata;
use tickwire_wire::layout::Char;
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::le::I32;
use tickwire_wire::xdp::{self, DeliveryFlag, PacketBuilder};

const NOW: Nanos = Nanos(1);
const SENT: Nanos = Nanos(1_700_000_000 * Nanos::SECOND);

fn feed(symbols: Option<Vec<Symbol>>) -> XdpFeed {
    let config = XdpConfig {
        venue: Venue::Arca,
        instruments_max: 100,
        symbols,
    };
    FeedHandler::new(ArbiterConfig::default(), XdpDecoder::new(config))
}

fn packet(flag: DeliveryFlag, seq: u32, sent: Nanos, messages: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![0; xdp::PACKET_SIZE_MAX];
    let mut builder = PacketBuilder::new(&mut bytes, flag, seq, sent);
    messages.iter().for_each(|m| assert!(builder.push(m)));
    let length = builder.finish();
    bytes.truncate(length);
    bytes
}

fn take(feed: &mut XdpFeed, line: Line, datagram: &[u8]) -> Vec<MarketEvent> {
    let mut events = Vec::new();
    feed.on_packet(NOW, line, datagram, &mut |e: &MarketEvent| events.push(*e));
    events
}

/// Events of messages in one packet that is next.
fn say(feed: &mut XdpFeed, messages: &[&[u8]]) -> Vec<MarketEvent> {
    let next = feed.next_seq().0 as u32;
    let events = take(
        feed,
        Line::A,
        &packet(DeliveryFlag::Original, next, SENT, messages),
    );
    events
        .into_iter()
        .filter(|e| e.kind != EventKind::Recovered)
        .collect()
}

fn mapping(index: u32, name: &[u8], scale: u8) -> xdp::SymbolIndexMapping {
    xdp::SymbolIndexMapping {
        symbol_index: index.into(),
        symbol: xdp::nul_padded(name).unwrap(),
        price_scale_code: scale,
        lot_size: 100.into(),
        ..xdp::SymbolIndexMapping::NEW
    }
}

fn second() -> xdp::SourceTimeReference {
    xdp::SourceTimeReference {
        source_time: 1_700_000_000.into(),
        ..xdp::SourceTimeReference::NEW
    }
}

fn add(index: u32, order: u64, price: i32) -> xdp::AddOrder {
    xdp::AddOrder {
        source_time_ns: 5.into(),
        symbol_index: index.into(),
        order_id: order.into(),
        price: price.into(),
        volume: 300.into(),
        side: Char(b'S'),
        firm_id: xdp::nul_padded(b"MAKR").unwrap(),
        ..xdp::AddOrder::NEW
    }
}

fn reset(source_time: u32) -> xdp::SequenceNumberReset {
    xdp::SequenceNumberReset {
        source_time: source_time.into(),
        ..xdp::SequenceNumberReset::NEW
    }
}

fn known() -> XdpFeed {
    let mut feed = feed(None);
    say(
        &mut feed,
        &[second().as_bytes(), mapping(7, b"WIRE", 6).as_bytes()],
    );
    feed
}

#[test]
fn an_order_lives_from_add_to_execution() {
    let mut feed = known();
    let modify = xdp::ModifyOrder {
        symbol_index: 7.into(),
        order_id: 70.into(),
        price: I32::new(12_350_000),
        volume: 200.into(),
        position_change: 1,
        side: Char(b'S'),
        ..xdp::ModifyOrder::NEW
    };
    let replace = xdp::ReplaceOrder {
        symbol_index: 7.into(),
        order_id: 70.into(),
        new_order_id: 71.into(),
        price: I32::new(12_360_000),
        volume: 150.into(),
        ..xdp::ReplaceOrder::NEW
    };
    let execution = xdp::OrderExecution {
        symbol_index: 7.into(),
        order_id: 71.into(),
        trade_id: 9.into(),
        price: I32::new(12_355_000),
        volume: 50.into(),
        trade_cond1: Char(b'@'),
        ..xdp::OrderExecution::NEW
    };
    let delete = xdp::DeleteOrder {
        symbol_index: 7.into(),
        order_id: 71.into(),
        ..xdp::DeleteOrder::NEW
    };
    let events = say(
        &mut feed,
        &[
            add(7, 70, 12_345_600).as_bytes(),
            modify.as_bytes(),
            replace.as_bytes(),
            execution.as_bytes(),
            delete.as_bytes(),
        ],
    );
    let kinds: Vec<EventKind> = events.iter().map(|e| e.kind).collect();
    use EventKind::*;
    assert_eq!(kinds, [Add, Modify, Replace, Execute, Delete]);
    let [added, modified, replaced, executed, deleted] = events[..] else {
        panic!("five events")
    };
    assert_eq!(
        (added.seq, added.venue, added.instrument),
        (SeqNo(3), Venue::Arca, InstrumentId(7))
    );
    assert_eq!(
        (added.order_id, added.side, added.qty),
        (OrderId(70), Side::Ask, Volume(300))
    );
    assert_eq!(
        (added.price, added.venue_ts, &added.code),
        ("12.3456".parse().unwrap(), SENT.after(5), b"MAKR\0\0\0\0")
    );
    assert_eq!(
        (modified.price, modified.qty, modified.flags),
        ("12.35".parse().unwrap(), Volume(200), EventFlags::NONE)
    );
    assert_eq!(
        (replaced.order_id, replaced.ref_id, replaced.qty),
        (OrderId(70), 71, Volume(150))
    );
    assert_eq!(
        (executed.price, executed.qty, executed.ref_id),
        ("12.355".parse().unwrap(), Volume(50), 9)
    );
    assert!(
        executed
            .flags
            .has(EventFlags::AT_OTHER_PRICE.with(EventFlags::NOT_PRINTABLE))
    );
    assert_eq!((deleted.order_id, deleted.flags), (OrderId(71), EventFlags::LAST));
}

#[test]
fn a_price_is_read_with_the_scale_its_instrument_has_at_that_moment() {
    let mut feed = known();
    let events = say(
        &mut feed,
        &[
            add(7, 1, 500_000_000).as_bytes(),
            mapping(7, b"WIRE", 4).as_bytes(),
            add(7, 2, 5_000_001).as_bytes(),
            mapping(7, b"WIRE", 9).as_bytes(),
            add(7, 3, i32::MAX).as_bytes(),
        ],
    );
    let prices: Vec<String> = events
        .iter()
        .filter(|e| e.kind == EventKind::Add)
        .map(|e| e.price.to_string())
        .collect();
    assert_eq!(prices, ["500.00", "500.0001", "2.147483647"]);
}

#[test]
fn an_order_that_cannot_be_read_makes_its_book_stale() {
    let mut feed = known();
    let no_side = xdp::AddOrder {
        side: Char(b'?'),
        ..add(7, 1, 1)
    };
    let cut = [20, 0, 100, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for message in [add(8, 1, 10).as_bytes(), no_side.as_bytes(), &cut] {
        let events = say(&mut feed, &[message]);
        assert_eq!(
            events.iter().map(|e| e.kind).collect::<Vec<_>>(),
            [EventKind::Gap]
        );
        assert_ne!(events[0].instrument, InstrumentId::WHOLE_FEED);
    }
    assert!(say(&mut feed, &[mapping(7, b"WIRE", 10).as_bytes()]).is_empty());
    assert!(say(&mut feed, &[add(100, 1, 1).as_bytes()]).is_empty());
    assert_eq!(feed.counters().get(Counter::Malformed), 5);
    assert!(say(&mut feed, &[&[4, 0, 0x39, 0x30]]).is_empty());
    assert_eq!(feed.counters().get(Counter::MessagesUnknown), 1);
    assert_eq!(say(&mut feed, &[add(7, 1, 10_000).as_bytes()]).len(), 1);
}

#[test]
fn trades_and_auctions_tell_what_a_trader_needs() {
    let mut feed = known();
    let trade = xdp::NonDisplayedTrade {
        symbol_index: 7.into(),
        trade_id: 5.into(),
        price: I32::new(10_000_000),
        volume: 10.into(),
        printable_flag: 1,
        trade_cond1: Char(b'@'),
        trade_cond4: Char(b'I'),
        ..xdp::NonDisplayedTrade::NEW
    };
    let cross = xdp::CrossTrade {
        symbol_index: 7.into(),
        cross_id: 6.into(),
        price: I32::new(10_000_000),
        volume: 1000.into(),
        cross_type: Char(b'6'),
        ..xdp::CrossTrade::NEW
    };
    let cancel = xdp::TradeCancel {
        symbol_index: 7.into(),
        trade_id: 5.into(),
        ..xdp::TradeCancel::NEW
    };
    let imbalance = xdp::Imbalance {
        source_time: 1_700_000_001.into(),
        symbol_index: 7.into(),
        reference_price: I32::new(10_000_000),
        paired_qty: 400.into(),
        total_imbalance_qty: 30.into(),
        imbalance_side: Char(b'S'),
        auction_type: Char(b'C'),
        continuous_book_clearing: I32::new(10_010_000),
        auction_interest_clearing: I32::new(10_020_000),
        ..xdp::Imbalance::NEW
    };
    let events = say(
        &mut feed,
        &[
            trade.as_bytes(),
            cross.as_bytes(),
            cancel.as_bytes(),
            imbalance.as_bytes(),
            xdp::RetailPriceImprovement::NEW.as_bytes(),
        ],
    );
    let [trade, cross, cancel, imbalance] = events[..] else {
        panic!("four events")
    };
    assert_eq!(
        (trade.kind, trade.qty, trade.ref_id, &trade.code[..4]),
        (EventKind::Trade, Volume(10), 5, &b"@  I"[..])
    );
    assert_eq!(trade.flags, EventFlags::NO_SIDE);
    assert_eq!(
        (cross.kind, cross.qty, cross.code[0]),
        (EventKind::Trade, Volume(1000), b'6')
    );
    assert_eq!((cancel.kind, cancel.ref_id), (EventKind::TradeBreak, 5));
    assert_eq!(
        (imbalance.side, imbalance.qty, imbalance.imbalance_qty),
        (Side::Ask, Volume(400), Volume(30))
    );
    assert_eq!(
        (imbalance.near_price, imbalance.far_price),
        ("10.01".parse().unwrap(), "10.02".parse().unwrap())
    );
    assert_eq!(
        (imbalance.code[0], imbalance.venue_ts),
        (b'C', SENT.after(Nanos::SECOND))
    );
    assert!(imbalance.flags.has(EventFlags::LAST));
}

#[test]
fn a_status_says_whether_the_instrument_trades_and_closed_empties_the_book() {
    let mut feed = known();
    let mut told = |status: u8, halt: u8, market: u8| {
        let status = xdp::SecurityStatus {
            symbol_index: 7.into(),
            security_status: Char(status),
            halt_condition: Char(halt),
            market_state: Char(market),
            ..xdp::SecurityStatus::NEW
        };
        let events = say(&mut feed, &[status.as_bytes()]);
        events.iter().map(|e| (e.kind, e.status)).collect::<Vec<_>>()
    };
    use TradingStatus::*;
    for (status, halt, market, expected) in [
        (b'4', b'D', b'O', Halted),
        (b'4', b'M', b'O', Paused),
        (b'5', b'~', b'P', PreOpen),
        (b'5', b'~', b'O', Trading),
        (b'6', b'~', b'O', Halted),
        (b'P', b'~', b'P', PreOpen),
        (b'O', b'~', b'O', Trading),
        (b'L', b'~', b'L', Trading),
    ] {
        assert_eq!(told(status, halt, market), [(EventKind::Status, expected)]);
    }
    assert_eq!(told(b'A', b'~', b'O'), []);
    assert_eq!(told(b'G', b'~', b'P'), []);
    assert_eq!(
        told(b'X', b'~', b'X'),
        [(EventKind::Clear, Unknown), (EventKind::Status, Closed)]
    );
    assert_eq!(told(b'?', b'~', b'X'), [(EventKind::Gap, Unknown)]);
}

#[test]
fn only_subscribed_symbols_pass_once_their_number_is_known() {
    let mut feed = feed(Some(vec![Symbol::new(b"WIRE").unwrap()]));
    let events = say(
        &mut feed,
        &[
            add(7, 1, 1).as_bytes(),
            mapping(7, b"WIRE", 6).as_bytes(),
            mapping(8, b"OTHER", 6).as_bytes(),
            add(7, 2, 1).as_bytes(),
            add(8, 3, 1).as_bytes(),
        ],
    );
    let kinds: Vec<EventKind> = events.iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [EventKind::Definition, EventKind::Add]);
    assert_eq!(feed.counters().get(Counter::MessagesFiltered), 2);
    assert_eq!(feed.filter().seen_of_type(100).filtered, 2);
    assert_eq!(
        feed.filter().find(&Symbol::new(b"OTHER").unwrap()),
        Some(InstrumentId(8))
    );
}

#[test]
fn a_reset_begins_anew_when_both_lines_say_so_and_the_slower_line_does_not_disturb() {
    let mut feed = known();
    say(&mut feed, &[add(7, 1, 1).as_bytes()]);
    let later = SENT.after(Nanos::SECOND);
    let first = packet(DeliveryFlag::SequenceReset, 1, later, &[reset(9).as_bytes()]);
    let events = take(&mut feed, Line::A, &first);
    let kinds: Vec<EventKind> = events.iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [EventKind::Clear, EventKind::Recovered]);
    assert_eq!((feed.next_seq(), feed.state()), (SeqNo(2), FeedState::Live));
    assert_eq!(feed.filter().instrument(InstrumentId(7)), None);
    let old = packet(
        DeliveryFlag::Original,
        4,
        SENT.after(1),
        &[add(7, 2, 1).as_bytes()],
    );
    assert!(take(&mut feed, Line::B, &old).is_empty());
    assert!(take(&mut feed, Line::B, &first).is_empty(), "the same reset");
    assert_eq!((feed.next_seq(), feed.state()), (SeqNo(2), FeedState::Live));
    let next = packet(
        DeliveryFlag::Original,
        2,
        later,
        &[mapping(7, b"WIRE", 6).as_bytes()],
    );
    assert_eq!(take(&mut feed, Line::B, &next).len(), 1);
    let again = packet(DeliveryFlag::Failover, 1, later.after(1), &[reset(10).as_bytes()]);
    // Both lines are heard now: one alone begins nothing.
    assert!(take(&mut feed, Line::B, &again).is_empty());
    assert_eq!((feed.next_seq(), feed.state()), (SeqNo(3), FeedState::Live));
    assert_eq!(take(&mut feed, Line::A, &again)[0].kind, EventKind::Clear);
    assert_eq!(feed.counters().get(Counter::SessionChanges), 2);
}

#[test]
fn a_retransmitted_reset_is_a_message_like_any_other() {
    let mut feed = known();
    let events = take(
        &mut feed,
        Line::Retransmit,
        &packet(DeliveryFlag::Retransmission, 1, SENT, &[reset(9).as_bytes()]),
    );
    assert!(events.is_empty());
    assert_eq!(feed.next_seq(), SeqNo(3));
}

#[test]
fn a_gap_is_told_asked_for_and_filled_by_a_retransmission() {
    let mut feed = known();
    let early = packet(DeliveryFlag::Original, 5, SENT, &[add(7, 3, 1).as_bytes()]);
    assert_eq!(take(&mut feed, Line::A, &early)[0].kind, EventKind::Gap);
    let due = feed.poll_timeout().unwrap();
    feed.handle_timeout(due, &mut |_: &MarketEvent| {});
    let range = feed.poll_missing().unwrap();
    assert_eq!((range.first, range.count), (SeqNo(3), 2));
    let unavailable = xdp::MessageUnavailable {
        begin_seq_num: 3.into(),
        end_seq_num: 4.into(),
        ..xdp::MessageUnavailable::NEW
    };
    let none = packet(DeliveryFlag::Unavailable, 3, SENT, &[unavailable.as_bytes()]);
    assert!(take(&mut feed, Line::Retransmit, &none).is_empty());
    let answer = packet(
        DeliveryFlag::Retransmission,
        3,
        SENT,
        &[add(7, 1, 1).as_bytes(), add(7, 2, 1).as_bytes()],
    );
    let events = take(&mut feed, Line::Retransmit, &answer);
    let orders: Vec<u64> = events
        .iter()
        .filter(|e| e.kind == EventKind::Add)
        .map(|e| e.order_id.0)
        .collect();
    assert_eq!((orders, feed.state()), (vec![1, 2, 3], FeedState::Live));
    assert_eq!(events.last().unwrap().kind, EventKind::Recovered);
}

#[tickwire_testdata::recorded_data("captures/packets/Nyse/IntegratedFeed.Pillar.v2.5")]
#[test]
fn recorded_packets_give_events_with_exact_prices() {
    let folder = testdata::captures("packets/Nyse/IntegratedFeed.Pillar.v2.5");
    let mut told = Vec::new();
    for file in testdata::files(&folder, "pcap") {
        let config = ArbiterConfig {
            start: Start::Here,
            ..ArbiterConfig::default()
        };
        let mut feed = XdpFeed::new(config, XdpDecoder::new(XdpConfig::default()));
        for index in [4966, 5530, 59083, 49086, 25118] {
            // The test network's mapping was not recorded; prices around 10 have scale 6.
            feed.decoder_mut().define(&mapping(index, b"ZVZZT", 6)).unwrap();
        }
        for datagram in testdata::pcap_payloads(&file) {
            for event in take(&mut feed, Line::A, &datagram) {
                told.push(format!("{:?} {} x {}", event.kind, event.price, event.qty.0));
            }
        }
        assert_eq!(feed.counters().get(Counter::MessagesUnknown), 0);
    }
    assert!(told.contains(&"Add 10.01 x 1200".to_string()), "{told:?}");
    assert!(told.contains(&"Execute 10.01 x 100".to_string()), "{told:?}");
}

fn header(last: u32) -> xdp::RefreshHeader {
    xdp::RefreshHeader {
        current_refresh_pkt: 1.into(),
        total_refresh_pkts: 1.into(),
        last_seq_num: last.into(),
        ..xdp::RefreshHeader::NEW
    }
}

fn resting(index: u32, order: u64) -> xdp::AddOrderRefresh {
    xdp::AddOrderRefresh {
        symbol_index: index.into(),
        order_id: order.into(),
        price: I32::new(10_000_000),
        volume: 100.into(),
        side: Char(b'B'),
        ..xdp::AddOrderRefresh::NEW
    }
}

/// A feed that was joined in mid-session and holds messages 10 to 13 back: adds of orders by that number, of
/// instruments 7 and 8 in turn.
fn joined_late() -> XdpFeed {
    let arbiter = ArbiterConfig {
        start: Start::Snapshot,
        snapshot: true,
        ..ArbiterConfig::default()
    };
    let mut feed = FeedHandler::new(
        arbiter,
        XdpDecoder::new(XdpConfig {
            instruments_max: 100,
            ..XdpConfig::default()
        }),
    );
    for seq in 10..14 {
        let message = add(7 + seq % 2, seq.into(), 10_000_000);
        let datagram = packet(DeliveryFlag::Original, seq, SENT, &[message.as_bytes()]);
        assert!(take(&mut feed, Line::A, &datagram).is_empty());
    }
    feed
}

/// Packets of a refresh that holds instrument 7 up to message 10 and 8 up to message 12.
fn refresh() -> [Vec<u8>; 2] {
    [
        packet(
            DeliveryFlag::RefreshStart,
            500,
            SENT,
            &[
                header(10).as_bytes(),
                mapping(7, b"ONE", 6).as_bytes(),
                resting(7, 10).as_bytes(),
            ],
        ),
        packet(
            DeliveryFlag::RefreshEnd,
            503,
            SENT,
            &[
                header(12).as_bytes(),
                mapping(8, b"TWO", 6).as_bytes(),
                resting(8, 11).as_bytes(),
            ],
        ),
    ]
}

#[test]
fn a_refresh_joins_the_live_stream_where_each_instrument_was_taken() {
    let mut feed = joined_late();
    let mut client = XdpRefresh::new(Nanos::SECOND, 100);
    assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
    assert_eq!(client.poll_ask(NOW, &mut feed), None);
    let mut events = Vec::new();
    let [start, end] = refresh();
    for datagram in [&end, &start, &start, &end, &end] {
        client.on_packet(NOW, datagram, &mut feed, &mut |e: &MarketEvent| events.push(*e));
    }
    assert_eq!(client.state(), RefreshState::Done(SeqNo(11)));
    assert_eq!((feed.state(), feed.next_seq()), (FeedState::Live, SeqNo(14)));
    let orders: Vec<(u64, u32, bool)> = events
        .iter()
        .filter(|e| e.kind == EventKind::Add)
        .map(|e| (e.order_id.0, e.instrument.0, e.flags.has(EventFlags::SNAPSHOT)))
        .collect();
    // Message 10 is in the refresh of 7 and 11 in that of 8; 12 (of 7) and 13 (of 8) are new.
    assert_eq!(
        orders,
        [(10, 7, true), (11, 8, true), (12, 7, false), (13, 8, false)]
    );
    let clears = events.iter().filter(|e| e.kind == EventKind::Clear);
    assert_eq!(clears.map(|e| e.instrument.0).collect::<Vec<_>>(), [0, 7, 8]);
    assert_eq!(client.poll_ask(NOW, &mut feed), None);
}

#[test]
fn a_refresh_with_a_hole_is_asked_for_again() {
    let mut feed = joined_late();
    let mut client = XdpRefresh::new(Nanos::SECOND, 100);
    let mut ignore = |_: &MarketEvent| {};
    assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
    let [start, end] = refresh();
    let mut late = end.clone();
    late[4] += 1;
    client.on_packet(NOW, &start, &mut feed, &mut ignore);
    client.on_packet(NOW, &late, &mut feed, &mut ignore);
    assert_eq!(
        client.state(),
        RefreshState::Failed,
        "others may have been in the hole"
    );
    assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
    assert_eq!(client.poll_timeout(&feed), Some(NOW.after(Nanos::SECOND)));
    assert_eq!(
        client.poll_ask(NOW.after(Nanos::SECOND), &mut feed),
        Some(0),
        "nothing came"
    );
    for datagram in [&start, &end] {
        client.on_packet(NOW, datagram, &mut feed, &mut ignore);
    }
    assert_eq!(client.state(), RefreshState::Done(SeqNo(11)));
}

/// A refresh of one instrument alone.
fn single(number: u32, index: u32, last: u32, name: &[u8]) -> Vec<u8> {
    packet(
        DeliveryFlag::Refresh,
        number,
        SENT,
        &[
            header(last).as_bytes(),
            mapping(index, name, 6).as_bytes(),
            resting(index, 100 + u64::from(index)).as_bytes(),
        ],
    )
}

#[test]
fn one_instrument_is_a_whole_channel_only_if_nothing_else_comes_twice() {
    let mut feed = joined_late();
    let mut client = XdpRefresh::new(Nanos::SECOND, 100);
    let mut ignore = |_: &MarketEvent| {};
    for (number, last, done) in [(600, 13, false), (603, 13, true)] {
        assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
        client.on_packet(NOW, &single(number, 7, last, b"ONE"), &mut feed, &mut ignore);
        assert_eq!(feed.wants_snapshot(), !done);
    }
    assert_eq!((feed.next_seq(), feed.state()), (SeqNo(14), FeedState::Live));
}

#[test]
fn what_a_refresh_lacks_is_asked_for_by_instrument() {
    let mut feed = known();
    let snapshots = ArbiterConfig {
        snapshot: true,
        request_attempts: 0,
        ..ArbiterConfig::default()
    };
    let config = XdpConfig {
        instruments_max: 100,
        ..XdpConfig::default()
    };
    feed = match feed.state() {
        FeedState::Live => FeedHandler::new(snapshots, XdpDecoder::new(config)),
        state => panic!("{state:?}"),
    };
    say(
        &mut feed,
        &[
            mapping(7, b"ONE", 6).as_bytes(),
            mapping(8, b"TWO", 6).as_bytes(),
            mapping(9, b"SIX", 6).as_bytes(),
        ],
    );
    // Message 4 is lost for good.
    let later = packet(DeliveryFlag::Original, 5, SENT, &[add(7, 5, 1).as_bytes()]);
    take(&mut feed, Line::A, &later);
    let mut ignore = |_: &MarketEvent| {};
    feed.handle_timeout(feed.poll_timeout().unwrap(), &mut ignore);
    assert!(feed.wants_snapshot());
    let mut client = XdpRefresh::new(Nanos::SECOND, 100);
    assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
    // The second of three packets is lost, and with it instrument 8.
    let part = |flag, number, index, name: &[u8]| {
        packet(
            flag,
            number,
            SENT,
            &[header(5).as_bytes(), mapping(index, name, 6).as_bytes()],
        )
    };
    let start = part(DeliveryFlag::RefreshStart, 500, 7, b"ONE");
    let end = part(DeliveryFlag::RefreshEnd, 504, 9, b"SIX");
    client.on_packet(NOW, &start, &mut feed, &mut ignore);
    client.on_packet(NOW, &end, &mut feed, &mut ignore);
    assert_eq!(
        client.state(),
        RefreshState::Failed,
        "of a known directory one is missing"
    );
    assert_eq!(client.poll_ask(NOW, &mut feed), Some(8));
    assert_eq!(client.poll_ask(NOW, &mut feed), None);
    client.on_packet(NOW, &single(506, 8, 5, b"TWO"), &mut feed, &mut ignore);
    assert_eq!(client.state(), RefreshState::Done(SeqNo(6)));
    assert_eq!((feed.next_seq(), feed.state()), (SeqNo(6), FeedState::Live));
}

#[test]
fn mappings_are_taken_from_the_refresh_group_at_any_time_and_empty_no_book() {
    let mut feed = known();
    let mut client = XdpRefresh::new(Nanos::SECOND, 100);
    let answer = packet(
        DeliveryFlag::Refresh,
        1,
        SENT,
        &[
            mapping(7, b"WIRE", 6).as_bytes(),
            mapping(9, b"NEW", 4).as_bytes(),
        ],
    );
    let mut kinds = Vec::new();
    client.on_packet(NOW, &answer, &mut feed, &mut |e: &MarketEvent| kinds.push(e.kind));
    assert_eq!(kinds, [EventKind::Definition, EventKind::Definition]);
    assert!(feed.filter().instrument(InstrumentId(9)).is_some());
}

#[test]
fn the_day_ends_when_every_instrument_has_closed_wanted_or_not() {
    let mut feed = feed(Some(vec![Symbol::new(b"ONE").unwrap()]));
    let status = |index: u32, status: u8| xdp::SecurityStatus {
        symbol_index: index.into(),
        security_status: Char(status),
        ..xdp::SecurityStatus::NEW
    };
    say(
        &mut feed,
        &[mapping(7, b"ONE", 6).as_bytes(), mapping(8, b"TWO", 6).as_bytes()],
    );
    for (index, code, ends) in [
        (7, b'X', false),
        (8, b'L', false),
        (8, b'X', true),
        (8, b'A', true),
        (7, b'P', false),
        (7, b'X', true),
    ] {
        say(&mut feed, &[status(index, code).as_bytes()]);
        assert_eq!(feed.state() == FeedState::Ended, ends, "{index} {}", code as char);
    }
    let ahead = packet(DeliveryFlag::Original, 30, SENT, &[status(7, b'X').as_bytes()]);
    take(&mut feed, Line::A, &ahead);
    assert_eq!(feed.state(), FeedState::Stale, "something is missing");
}

#[test]
fn a_quote_of_a_bbo_channel_is_the_top_of_its_book() {
    let mut feed = known();
    let quote = xdp::Quote {
        symbol_index: 7.into(),
        bid_price: I32::new(10_000_000),
        bid_volume: 200.into(),
        ask_price: I32::new(10_010_000),
        ask_volume: 100.into(),
        ..xdp::Quote::NEW
    };
    let events = say(&mut feed, &[quote.as_bytes()]);
    assert_eq!(
        (events[0].kind, events[0].price, events[0].qty),
        (EventKind::Quote, "10".parse().unwrap(), Volume(200))
    );
    assert_eq!(
        (events[0].ask_price, events[0].ask_qty),
        ("10.01".parse().unwrap(), Volume(100))
    );
}

/// One that ends beyond everything the lines have told of is of other numbers: taken, it would have every
/// message up to there count as old.
#[test]
fn a_refresh_from_beyond_the_lines_is_not_taken() {
    let mut feed = joined_late();
    let mut client = XdpRefresh::new(Nanos::SECOND, 100);
    let mut events = Vec::new();
    let whole = |number, last| {
        let both = [
            (DeliveryFlag::RefreshStart, number, 7, b"ONE"),
            (DeliveryFlag::RefreshEnd, number + 3, 8, b"TWO"),
        ];
        both.map(|(flag, number, index, name)| {
            let resting = resting(index, 100 + u64::from(index));
            let (header, mapping) = (header(last), mapping(index, name, 6));
            packet(
                flag,
                number,
                SENT,
                &[header.as_bytes(), mapping.as_bytes(), resting.as_bytes()],
            )
        })
    };
    for (number, last) in [(500, 5_000_000), (506, 13)] {
        client.poll_ask(NOW, &mut feed);
        for datagram in whole(number, last) {
            client.on_packet(NOW, &datagram, &mut feed, &mut |e: &MarketEvent| events.push(*e));
        }
    }
    let message = add(7, 14, 10_000_000);
    let datagram = packet(DeliveryFlag::Original, 14, SENT, &[message.as_bytes()]);
    let told = take(&mut feed, Line::A, &datagram);
    assert_eq!((feed.state(), feed.next_seq()), (FeedState::Live, SeqNo(15)));
    assert!(
        told.iter()
            .any(|e| e.kind == EventKind::Add && e.order_id.0 == 14)
    );
}
