//! OpenBook Ultra: from packets to levels, and through numbers that begin anew.

use tickwire_feed::{
    ArbiterConfig, FeedHandler, FeedState, Line, OpenBookConfig, OpenBookDecoder, OpenBookFeed,
    OpenBookRefresh, RefreshState, Start,
};
use tickwire_market::{
    Counter, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, SeqNo, Side, Symbol, TradingStatus,
    Volume,
};
use tickwire_testdata as testdata;
use tickwire_wire::layout::Char;
use tickwire_wire::layout::Pod;
use tickwire_wire::openbook::{
    self, DeltaHead, DeltaPoint, FullHead, FullPoint, PacketBuilder, PacketHeader,
};
use tickwire_wire::xdp::nul_padded;

const NOW: Nanos = Nanos(1);

fn feed(start: Start, symbols: Option<Vec<Symbol>>) -> OpenBookFeed {
    let arbiter = ArbiterConfig {
        start,
        ..ArbiterConfig::default()
    };
    let config = OpenBookConfig {
        instruments_max: 1 << 16,
        midnight: Nanos(Nanos::DAY),
        symbols,
        ..OpenBookConfig::default()
    };
    FeedHandler::new(arbiter, OpenBookDecoder::new(config))
}

fn packet(kind: u16, seq: u32, sent: u32, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; openbook::PACKET_SIZE_MAX];
    let header = PacketHeader {
        msg_type: kind.into(),
        seq_num: seq.into(),
        send_time: sent.into(),
        product_id: 12,
        retrans_flag: 1,
        ..PacketHeader::BLANK
    };
    let mut builder = PacketBuilder::new(&mut bytes, header);
    messages.iter().for_each(|m| assert!(builder.push(m)));
    let length = builder.finish();
    bytes.truncate(length);
    bytes
}

fn full(index: u32, seq: u32, name: &[u8], points: &[(u8, i32, u32)]) -> Vec<u8> {
    let head = FullHead {
        symbol_index: index.into(),
        symbol_seq_num: seq.into(),
        symbol: nul_padded(name).unwrap(),
        price_scale_code: 4,
        trading_status: Char(b'O'),
        ..FullHead::BLANK
    };
    let points: Vec<FullPoint> = points
        .iter()
        .map(|&(side, price, volume)| FullPoint {
            side: Char(side),
            price_numerator: price.into(),
            volume: volume.into(),
            num_orders: 2.into(),
            ..FullPoint::BLANK
        })
        .collect();
    let mut bytes = vec![0; FullHead::SIZE + points.len() * FullPoint::SIZE];
    openbook::encode_full(&mut bytes, &head, &points).unwrap();
    bytes
}

fn delta(index: u32, seq: u32, points: &[(u8, i32, u32)]) -> Vec<u8> {
    let head = DeltaHead {
        symbol_index: index.into(),
        source_seq_num: seq.into(),
        source_time: 34_200_000.into(),
        source_time_micros: 7.into(),
        price_scale_code: 4,
        trading_status: Char(b'O'),
        ..DeltaHead::BLANK
    };
    let points: Vec<DeltaPoint> = points
        .iter()
        .map(|&(side, price, volume)| DeltaPoint {
            side: Char(side),
            price_numerator: price.into(),
            volume: volume.into(),
            num_orders: 3.into(),
            reason_code: Char(b'O'),
            ..DeltaPoint::BLANK
        })
        .collect();
    let mut bytes = vec![0; DeltaHead::SIZE + points.len() * DeltaPoint::SIZE];
    openbook::encode_delta(&mut bytes, &head, &points).unwrap();
    bytes
}

fn take(feed: &mut OpenBookFeed, line: Line, datagram: &[u8]) -> Vec<MarketEvent> {
    let mut events = Vec::new();
    feed.on_packet(NOW, line, datagram, &mut |e: &MarketEvent| events.push(*e));
    events.retain(|e| e.kind != EventKind::Recovered);
    events
}

fn say(feed: &mut OpenBookFeed, kind: u16, messages: &[Vec<u8>]) -> Vec<MarketEvent> {
    let next = feed.next_seq().0 as u32;
    take(feed, Line::A, &packet(kind, next, 34_200_000, messages))
}

fn kinds(events: &[MarketEvent]) -> Vec<EventKind> {
    events.iter().map(|e| e.kind).collect()
}

use EventKind::{Clear, Definition, Gap, Level, Status};

#[test]
fn a_full_update_replaces_the_book_and_deltas_change_it() {
    let mut feed = feed(Start::Beginning, None);
    let points = [(b'B', 1_234_500, 300), (b'S', 1_234_600, 100)];
    let events = say(&mut feed, 230, &[full(7, 1, b"WIRE", &points)]);
    assert_eq!(kinds(&events), [Definition, Status, Clear, Level, Level]);
    assert_eq!(events[1].status, TradingStatus::Trading);
    assert_eq!(
        (
            events[3].side,
            events[3].price,
            events[3].qty,
            events[3].order_count
        ),
        (Side::Bid, "123.45".parse().unwrap(), Volume(300), 2)
    );
    assert_eq!(events[3].flags, EventFlags::NONE);
    assert_eq!((events[4].side, events[4].flags), (Side::Ask, EventFlags::LAST));
    let events = say(
        &mut feed,
        231,
        &[
            delta(7, 2, &[(b'B', 1_234_500, 0)]),
            delta(7, 3, &[]),
            delta(7, 4, &[(b'S', 1, 5)]),
        ],
    );
    assert_eq!(kinds(&events), [Level, Level]);
    assert_eq!((events[0].qty, events[0].order_count), (Volume(0), 3));
    assert_eq!(
        (events[1].price, events[1].venue_ts),
        ("0.0001".parse().unwrap(), Nanos(Nanos::DAY + 34_200_000_007_000))
    );
    assert_eq!(
        feed.filter().find(&Symbol::new(b"WIRE").unwrap()),
        Some(InstrumentId(7))
    );
}

#[test]
fn the_second_part_of_a_full_update_adds_to_the_first() {
    let mut feed = feed(Start::Beginning, None);
    say(&mut feed, 230, &[full(7, 5, b"WIRE", &[(b'B', 1, 1)])]);
    let events = say(&mut feed, 230, &[full(7, 5, b"WIRE", &[(b'B', 2, 1)])]);
    assert_eq!(kinds(&events), [Level]);
    assert_eq!(kinds(&say(&mut feed, 230, &[full(7, 6, b"WIRE", &[])])), [Clear]);
}

#[test]
fn an_update_out_of_its_instruments_order_is_dropped_or_makes_the_book_stale() {
    let mut feed = feed(Start::Beginning, None);
    say(&mut feed, 230, &[full(7, 5, b"WIRE", &[])]);
    assert_eq!(kinds(&say(&mut feed, 231, &[delta(7, 5, &[(b'B', 1, 1)])])), []);
    let events = say(&mut feed, 231, &[delta(7, 7, &[(b'B', 1, 1)])]);
    assert_eq!(kinds(&events), [Gap, Level]);
    assert_eq!(events[0].instrument, InstrumentId(7));
    assert_eq!(kinds(&say(&mut feed, 230, &[full(7, 6, b"WIRE", &[])])), []);
    assert_eq!(kinds(&say(&mut feed, 230, &[full(7, 8, b"WIRE", &[])])), [Clear]);
}

#[test]
fn what_cannot_be_read_makes_the_book_stale() {
    let mut feed = feed(Start::Beginning, None);
    let mut part = delta(7, 1, &[(b'B', 1, 1)]);
    part.pop();
    let size = part.len() as u16;
    part[..2].copy_from_slice(&size.to_be_bytes());
    assert_eq!(kinds(&say(&mut feed, 231, &[part])), [Gap]);
    assert_eq!(
        kinds(&say(&mut feed, 231, &[delta(7, 2, &[(b'?', 1, 1)])])),
        [Status, Gap]
    );
    assert_eq!(
        kinds(&say(&mut feed, 231, &[delta(0, 2, &[]), delta(1 << 16, 2, &[])])),
        []
    );
    assert_eq!(feed.counters().get(Counter::Malformed), 4);
}

#[test]
fn only_subscribed_symbols_pass_once_their_number_is_known() {
    let mut feed = feed(Start::Beginning, Some(vec![Symbol::new(b"WIRE").unwrap()]));
    assert_eq!(kinds(&say(&mut feed, 231, &[delta(7, 1, &[(b'B', 1, 1)])])), []);
    assert_eq!(
        kinds(&say(&mut feed, 230, &[full(8, 1, b"OTHER", &[(b'B', 1, 1)])])),
        []
    );
    let mapping = openbook::SymbolIndexMapping {
        symbol: nul_padded(b"WIRE").unwrap(),
        symbol_index: 7.into(),
        ..openbook::SymbolIndexMapping::BLANK
    };
    say(&mut feed, 35, &[mapping.as_bytes().to_vec()]);
    assert_eq!(
        kinds(&say(&mut feed, 231, &[delta(7, 2, &[(b'B', 1, 1)])])),
        [Status, Level]
    );
    assert_eq!(feed.decoder().updates().filtered, 2);
}

#[test]
fn a_reset_begins_anew_when_both_lines_say_so_and_the_slower_line_does_not_disturb() {
    let mut feed = feed(Start::Beginning, None);
    say(&mut feed, 230, &[full(7, 1, b"WIRE", &[])]);
    say(&mut feed, 231, &[delta(7, 2, &[])]);
    let reset = openbook::SequenceNumberReset {
        next_seq_number: 2.into(),
    };
    let reset = |sent| packet(1, 1, sent, &[reset.as_bytes().to_vec()]);
    assert_eq!(kinds(&take(&mut feed, Line::A, &reset(34_300_000))), [Clear]);
    assert_eq!((feed.next_seq(), feed.state()), (SeqNo(2), FeedState::Live));
    let old = packet(231, 3, 34_200_001, &[delta(7, 3, &[])]);
    assert_eq!(kinds(&take(&mut feed, Line::B, &old)), []);
    assert_eq!(kinds(&take(&mut feed, Line::B, &reset(34_300_002))), []);
    assert_eq!((feed.next_seq(), feed.state()), (SeqNo(2), FeedState::Live));
    // Both lines are heard now: one alone begins nothing.
    assert_eq!(kinds(&take(&mut feed, Line::B, &reset(34_400_000))), []);
    assert_eq!((feed.next_seq(), feed.state()), (SeqNo(2), FeedState::Live));
    assert_eq!(kinds(&take(&mut feed, Line::A, &reset(34_400_003))), [Clear]);
    assert_eq!(kinds(&take(&mut feed, Line::B, &old)), []);
}

#[tickwire_testdata::recorded_data("captures/packets/Nyse/Nyse.Equities.OpenBook.Ultra.2.1.b")]
#[test]
fn recorded_packets_give_levels_with_exact_prices() {
    let folder = testdata::captures("packets/Nyse/Nyse.Equities.OpenBook.Ultra.2.1.b");
    let mut levels = Vec::new();
    for file in testdata::files(&folder, "pcap") {
        let mut feed = feed(Start::Here, None);
        for datagram in testdata::pcap_payloads(&file) {
            let events = take(&mut feed, Line::A, &datagram);
            levels.extend(events.into_iter().filter(|e| e.kind == Level));
        }
        assert_eq!(feed.counters().get(Counter::Malformed), 0, "{}", file.display());
    }
    assert!(levels.len() >= 21);
    let first = levels[0];
    assert_eq!(
        (first.instrument, first.side, first.qty, first.order_count),
        (InstrumentId(44_936), Side::Ask, Volume(8367), 4)
    );
    assert_eq!(first.price, "171.6".parse().unwrap());
}

/// A packet of the refresh group.
fn refreshed(link: u8, flag: u8, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut datagram = packet(230, 900 + u32::from(link), 34_200_000, messages);
    (datagram[13], datagram[15]) = (flag, link);
    datagram
}

/// A feed that was joined in mid-session and holds packets 10 to 12 back.
fn joined_late() -> OpenBookFeed {
    let arbiter = ArbiterConfig {
        start: Start::Snapshot,
        snapshot: true,
        ..ArbiterConfig::default()
    };
    let config = OpenBookConfig {
        instruments_max: 100,
        ..OpenBookConfig::default()
    };
    let mut feed = FeedHandler::new(arbiter, OpenBookDecoder::new(config));
    for (seq, message) in [
        (10, delta(7, 4, &[(b'B', 1, 1)])),
        (11, delta(7, 5, &[(b'B', 1, 2)])),
        (12, delta(8, 9, &[(b'B', 1, 3)])),
    ] {
        assert!(take(&mut feed, Line::A, &packet(231, seq, 34_200_000, &[message])).is_empty());
    }
    feed
}

#[test]
fn a_refresh_joins_the_live_stream_where_each_instrument_was_taken() {
    let mut feed = joined_late();
    let mut client = OpenBookRefresh::new(Nanos::SECOND, 100);
    assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
    assert_eq!(client.poll_ask(NOW, &mut feed), None);
    let first = refreshed(1, 5, &[full(7, 4, b"ONE", &[(b'B', 1, 1)])]);
    let second = refreshed(2, 5, &[full(7, 4, b"ONE", &[(b'S', 9, 1)])]);
    let last = refreshed(3, 6, &[full(8, 7, b"TWO", &[])]);
    let mut events = Vec::new();
    for datagram in [&first, &first, &second, &second, &first, &last, &last] {
        client.on_packet(NOW, datagram, &mut feed, &mut |e: &MarketEvent| events.push(*e));
    }
    assert_eq!(client.state(), RefreshState::Done(SeqNo(10)));
    assert_eq!((feed.state(), feed.next_seq()), (FeedState::Live, SeqNo(13)));
    let told: Vec<(EventKind, u32, u64)> = events
        .iter()
        .filter(|e| matches!(e.kind, Clear | Level | Gap) && e.instrument != InstrumentId::WHOLE_FEED)
        .map(|e| (e.kind, e.instrument.0, e.qty.0))
        .collect();
    // 7 goes on with its number 5; 8 lacks its number 8.
    assert_eq!(
        told,
        [
            (Clear, 7, 0),
            (Level, 7, 1),
            (Level, 7, 1),
            (Clear, 8, 0),
            (Level, 7, 2),
            (Gap, 8, 0),
            (Level, 8, 3)
        ]
    );
}

#[test]
fn a_refresh_with_a_hole_is_asked_for_again() {
    let mut feed = joined_late();
    let mut client = OpenBookRefresh::new(Nanos::SECOND, 100);
    let mut ignore = |_: &MarketEvent| {};
    assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
    for datagram in [
        refreshed(1, 5, &[full(7, 4, b"ONE", &[])]),
        refreshed(3, 6, &[full(8, 7, b"TWO", &[])]),
    ] {
        client.on_packet(NOW, &datagram, &mut feed, &mut ignore);
    }
    assert_eq!(client.state(), RefreshState::Failed);
    for number in [910, 920] {
        assert!(feed.wants_snapshot());
        assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
        let mut alone = refreshed(1, 6, &[full(7, 4, b"ONE", &[])]);
        alone[4..8].copy_from_slice(&u32::to_be_bytes(number));
        client.on_packet(NOW, &alone, &mut feed, &mut ignore);
    }
    assert_eq!(
        client.state(),
        RefreshState::Failed,
        "another one is in the directory by now"
    );
    assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
    for datagram in [
        refreshed(1, 5, &[full(7, 4, b"ONE", &[])]),
        refreshed(2, 6, &[full(8, 8, b"TWO", &[])]),
    ] {
        client.on_packet(NOW, &datagram, &mut feed, &mut ignore);
    }
    assert_eq!(client.state(), RefreshState::Done(SeqNo(10)));
}

#[test]
fn the_rest_of_a_torn_update_does_not_count() {
    let mut feed = joined_late();
    let mut client = OpenBookRefresh::new(Nanos::SECOND, 100);
    let mut ignore = |_: &MarketEvent| {};
    assert_eq!(client.poll_ask(NOW, &mut feed), Some(0));
    // The second packet, lost, began instrument 8; the third goes on with it.
    for datagram in [
        refreshed(1, 5, &[full(7, 4, b"ONE", &[])]),
        refreshed(
            3,
            5,
            &[full(8, 7, b"TWO", &[(b'B', 1, 1)]), full(9, 1, b"SIX", &[])],
        ),
        refreshed(4, 6, &[full(9, 1, b"SIX", &[(b'B', 1, 1)])]),
    ] {
        client.on_packet(NOW, &datagram, &mut feed, &mut ignore);
    }
    assert_eq!(client.state(), RefreshState::Failed);
    // 7 is torn as well: its last part may have been lost. Only 9 is there.
    assert_eq!(
        client.poll_ask(NOW, &mut feed),
        Some(0),
        "the directory may lack others"
    );
}

#[test]
fn the_day_ends_when_every_instrument_is_closed_wanted_or_not() {
    let mut feed = feed(Start::Beginning, Some(vec![Symbol::new(b"ONE").unwrap()]));
    let closed = |index, seq, name: &[u8], status: u8| {
        let mut message = full(index, seq, name, &[]);
        message[30] = status;
        message
    };
    say(
        &mut feed,
        230,
        &[closed(7, 1, b"ONE", b'O'), closed(8, 1, b"TWO", b'O')],
    );
    for (index, seq, name, status, ends) in [
        (8, 2, b"TWO", b'X', false),
        (7, 2, b"ONE", b'C', true),
        (8, 3, b"TWO", b'P', false),
        (8, 4, b"TWO", b'X', true),
    ] {
        say(&mut feed, 230, &[closed(index, seq, name, status)]);
        assert_eq!(feed.state() == FeedState::Ended, ends, "{index} {seq}");
    }
}
