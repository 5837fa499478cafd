//! Cboe PITCH to events: every message, a naive decoder on random orders, numbers that roll over, units, room
//! that runs out, and units that lose packets on both lines until the Gap Request Proxy and the Spin server
//! make them whole.

use std::collections::BTreeMap;
use tickwire_feed::{
    ArbiterConfig, FeedHandler, FeedState, Framing, GapEvent, GapProxy, Line, PitchConfig, PitchDecoder,
    PitchFeed, PitchLogin, PitchUnit, SnapshotState, Spin, Start,
};
use tickwire_market::{
    Counter, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Side, Symbol,
    TradingStatus, Volume,
};
use tickwire_testdata::Rng;
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::pitch::{self, *};

const UNIT: u8 = 5;
const LATE: Nanos = Nanos(9);

fn feed(decoder: PitchConfig) -> PitchFeed {
    FeedHandler::new(PitchUnit::arbiter_config(UNIT), PitchDecoder::new(decoder))
}

fn datagram<M: AsRef<[u8]>>(sequence: u32, messages: &[M]) -> Vec<u8> {
    let mut bytes = vec![0; 65_535];
    let mut builder = PacketBuilder::new(&mut bytes, UNIT, sequence);
    messages.iter().for_each(|m| assert!(builder.push(m.as_ref())));
    let length = builder.finish();
    bytes.truncate(length);
    bytes
}

/// What the feed pushes for a packet, without the feed's own words.
fn events(feed: &mut PitchFeed, datagram: &[u8]) -> Vec<MarketEvent> {
    let mut events = Vec::new();
    feed.on_packet(LATE, Line::A, datagram, &mut |e: &MarketEvent| events.push(*e));
    events.retain(|e| e.kind != EventKind::Recovered);
    events
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text.as_bytes()).unwrap()
}

fn dollars(text: &str) -> Price {
    text.parse().unwrap()
}

fn add(order_id: u64, side: u8, qty: u16, symbol: &str, cents: u16) -> Vec<u8> {
    AddOrderShort {
        time_offset: 7.into(),
        order_id: order_id.into(),
        side: Char(side),
        qty: qty.into(),
        symbol: Alpha::new(symbol.as_bytes()).unwrap(),
        price: tickwire_wire::layout::Scaled(cents.into()),
        ..AddOrderShort::BLANK_MESSAGE
    }
    .as_bytes()
    .to_vec()
}

fn long(price: u64) -> LongPrice {
    tickwire_wire::layout::Scaled(price.into())
}

fn delete(order_id: u64) -> Vec<u8> {
    let message = DeleteOrder {
        order_id: order_id.into(),
        ..DeleteOrder::BLANK_MESSAGE
    };
    message.as_bytes().to_vec()
}

fn executed(order_id: u64, qty: u32, execution_id: u64) -> Vec<u8> {
    let message = OrderExecuted {
        order_id: order_id.into(),
        executed_qty: qty.into(),
        execution_id: execution_id.into(),
        ..OrderExecuted::BLANK_MESSAGE
    };
    message.as_bytes().to_vec()
}

fn reduced(order_id: u64, qty: u16) -> Vec<u8> {
    let message = ReduceSizeShort {
        order_id: order_id.into(),
        cancelled_qty: qty.into(),
        ..ReduceSizeShort::BLANK_MESSAGE
    };
    message.as_bytes().to_vec()
}

fn modified(order_id: u64, qty: u16, cents: u16, flags: u8) -> Vec<u8> {
    let message = ModifyOrderShort {
        order_id: order_id.into(),
        qty: qty.into(),
        price: tickwire_wire::layout::Scaled(cents.into()),
        flags,
        ..ModifyOrderShort::BLANK_MESSAGE
    };
    message.as_bytes().to_vec()
}

fn executed_at(order_id: u64, qty: u32, remaining: u32, price: u64) -> Vec<u8> {
    let message = OrderExecutedAtPriceSize {
        order_id: order_id.into(),
        executed_qty: qty.into(),
        remaining_qty: remaining.into(),
        execution_id: 77.into(),
        price: long(price),
        ..OrderExecutedAtPriceSize::BLANK_MESSAGE
    };
    message.as_bytes().to_vec()
}

fn time(seconds: u32) -> Vec<u8> {
    let message = Time {
        seconds: seconds.into(),
        ..Time::BLANK_MESSAGE
    };
    message.as_bytes().to_vec()
}

#[test]
fn an_order_lives_through_every_message_about_it() {
    let midnight = Nanos(1_000_000_000_000);
    let mut feed = feed(PitchConfig {
        midnight,
        ..PitchConfig::default()
    });
    let packet = datagram(1, &[time(34_200), add(70, b'S', 900, "YANG", 1133)]);
    let [defined, added] = events(&mut feed, &packet)[..] else {
        panic!()
    };
    assert_eq!(
        (defined.kind, defined.instrument),
        (EventKind::Definition, InstrumentId(1))
    );
    assert!(!defined.flags.has(EventFlags::LAST) && added.flags.has(EventFlags::LAST));
    assert_eq!(feed.filter().instruments().next().unwrap().symbol, symbol("YANG"));
    let expected = MarketEvent {
        seq: SeqNo(2),
        venue_ts: midnight.after(34_200 * Nanos::SECOND + 7),
        recv_ts: LATE,
        instrument: InstrumentId(1),
        venue: tickwire_market::Venue::Bzx,
        kind: EventKind::Add,
        side: Side::Ask,
        order_id: OrderId(70),
        price: dollars("11.33"),
        qty: Volume(900),
        flags: EventFlags::LAST,
        ..MarketEvent::default()
    };
    assert_eq!(added, expected);
    let kept = datagram(3, &[modified(70, 800, 1130, 3)]);
    let [event] = events(&mut feed, &kept)[..] else {
        panic!()
    };
    assert_eq!(
        (event.kind, event.side, event.qty, event.price),
        (EventKind::Modify, Side::Ask, Volume(800), dollars("11.30"))
    );
    assert!(event.flags.has(EventFlags::KEEPS_PRIORITY));
    let [event] = events(&mut feed, &datagram(4, &[executed(70, 100, 55)]))[..] else {
        panic!()
    };
    assert_eq!(
        (event.kind, event.qty, event.ref_id, event.instrument),
        (EventKind::Execute, Volume(100), 55, InstrumentId(1))
    );
    let [event] = events(&mut feed, &datagram(5, &[reduced(70, 100)]))[..] else {
        panic!()
    };
    assert_eq!((event.kind, event.qty), (EventKind::Reduce, Volume(100)));
    // 600 are left: 200 of them at another price are told as they are.
    let [event] = events(&mut feed, &datagram(6, &[executed_at(70, 200, 400, 112_950)]))[..] else {
        panic!()
    };
    assert_eq!(
        (event.kind, event.qty, event.price),
        (EventKind::Execute, Volume(200), dollars("11.295"))
    );
    assert!(event.flags.has(EventFlags::AT_OTHER_PRICE) && event.flags.has(EventFlags::LAST));
    // 400 are left: 100 executed and 250 remaining are 350.
    let [changed, event] = events(&mut feed, &datagram(7, &[executed_at(70, 100, 250, 112_950)]))[..] else {
        panic!()
    };
    assert_eq!(
        (changed.kind, changed.qty, changed.price, changed.side),
        (EventKind::Modify, Volume(350), dollars("11.30"), Side::Ask)
    );
    assert!(!changed.flags.has(EventFlags::KEEPS_PRIORITY) && !changed.flags.has(EventFlags::LAST));
    assert_eq!((event.kind, event.qty), (EventKind::Execute, Volume(100)));
    let [event] = events(&mut feed, &datagram(8, &[delete(70)]))[..] else {
        panic!()
    };
    assert_eq!((event.kind, event.order_id), (EventKind::Delete, OrderId(70)));
    assert!(events(&mut feed, &datagram(9, &[delete(70)])).is_empty());
    assert_eq!(feed.counters().get(Counter::BookRejects), 1);
    let [event] = events(&mut feed, &datagram(10, &[add(70, b'B', 1, "YANG", 1)]))[..] else {
        panic!("the number may come again")
    };
    assert_eq!((event.kind, event.instrument), (EventKind::Add, InstrumentId(1)));
}

#[test]
fn trades_statuses_and_auctions_are_told() {
    let mut feed = feed(PitchConfig::default());
    let trade = TradeExpanded {
        side: Char(b'B'),
        qty: 300.into(),
        symbol: Alpha(*b"LONGNAME"),
        price: long(123_456),
        execution_id: (27 * 36_u64.pow(8) + 5).into(),
        ..TradeExpanded::BLANK_MESSAGE
    };
    let [defined, event] = events(&mut feed, &datagram(1, &[trade.as_bytes()]))[..] else {
        panic!()
    };
    assert_eq!(
        (defined.kind, event.kind, event.code[0]),
        (EventKind::Definition, EventKind::Trade, b'R')
    );
    assert_eq!((event.qty, event.price), (Volume(300), dollars("12.3456")));
    assert!(event.flags.has(EventFlags::NO_SIDE));
    for (seq, byte, expected) in [
        (2, b'A', TradingStatus::PreOpen),
        (3, b'T', TradingStatus::Trading),
        (4, b'H', TradingStatus::Halted),
        (5, b'Q', TradingStatus::QuoteOnly),
        (6, b'S', TradingStatus::Halted),
    ] {
        let status = pitch::TradingStatus {
            symbol: Alpha(*b"LONGNAME"),
            status: Char(byte),
            reg_sho: Char(b'1'),
            ..pitch::TradingStatus::BLANK_MESSAGE
        };
        let [event] = events(&mut feed, &datagram(seq, &[status.as_bytes()]))[..] else {
            panic!()
        };
        assert_eq!(
            (event.kind, event.status, &event.code[..2]),
            (EventKind::Status, expected, &[byte, b'1'][..])
        );
        assert_eq!(event.instrument, InstrumentId(1));
    }
    let update = AuctionUpdate {
        symbol: Alpha(*b"LONGNAME"),
        auction_type: Char(b'C'),
        reference_price: long(100_000),
        buy_shares: 500.into(),
        sell_shares: 900.into(),
        indicative_price: long(100_100),
        auction_only_price: long(100_200),
        ..AuctionUpdate::BLANK_MESSAGE
    };
    let summary = AuctionSummary {
        symbol: Alpha(*b"LONGNAME"),
        auction_type: Char(b'C'),
        price: long(100_100),
        shares: 700.into(),
        ..AuctionSummary::BLANK_MESSAGE
    };
    let packet = datagram(7, &[update.as_bytes(), summary.as_bytes()]);
    let [update, summary] = events(&mut feed, &packet)[..] else {
        panic!()
    };
    assert_eq!(
        (update.kind, update.side, update.qty, update.imbalance_qty),
        (EventKind::Imbalance, Side::Ask, Volume(500), Volume(400))
    );
    assert_eq!(
        (update.price, update.near_price, update.far_price),
        (dollars("10"), dollars("10.01"), dollars("10.02"))
    );
    assert_eq!(
        (summary.kind, summary.qty, summary.code[0]),
        (EventKind::Trade, Volume(700), b'C')
    );
    assert!(summary.flags.has(EventFlags::NOT_PRINTABLE));
    let broken = TradeBreak {
        execution_id: 9.into(),
        ..TradeBreak::BLANK_MESSAGE
    };
    let interest = RetailPriceImprovement {
        symbol: Alpha(*b"LONGNAME"),
        ..RetailPriceImprovement::BLANK_MESSAGE
    };
    let end = EndOfSession::BLANK_MESSAGE;
    let packet = datagram(
        9,
        &[
            broken.as_bytes(),
            interest.as_bytes(),
            UnitClear::BLANK_MESSAGE.as_bytes(),
            end.as_bytes(),
        ],
    );
    let [broken, clear, end] = events(&mut feed, &packet)[..] else {
        panic!()
    };
    assert_eq!((broken.kind, broken.ref_id), (EventKind::TradeBreak, 9));
    assert_eq!(
        (clear.kind, clear.instrument),
        (EventKind::Clear, InstrumentId::WHOLE_FEED)
    );
    assert_eq!((end.kind, end.status), (EventKind::Status, TradingStatus::Closed));
    assert!(end.flags.has(EventFlags::LAST));
}

#[test]
fn what_cannot_be_used_is_counted_and_spoils_its_book() {
    let mut feed = feed(PitchConfig {
        instruments_max: 2,
        orders_max: 2,
        ..PitchConfig::default()
    });
    events(
        &mut feed,
        &datagram(1, &[add(1, b'B', 1, "A", 1), add(2, b'B', 1, "B", 1)]),
    );
    let gap = |feed: &mut PitchFeed, seq, message: Vec<u8>| {
        let [event] = events(feed, &datagram(seq, &[message]))[..] else {
            panic!()
        };
        assert_eq!(
            (event.kind, event.seq.0, event.ref_id),
            (EventKind::Gap, u64::from(seq), u64::from(seq) + 1)
        );
        assert!(event.flags.has(EventFlags::UNUSABLE));
        event.instrument
    };
    assert_eq!(gap(&mut feed, 3, add(3, b'X', 1, "A", 1)), InstrumentId(1));
    // No room for a third instrument: it has no book that could be wrong.
    assert!(events(&mut feed, &datagram(4, &[add(3, b'B', 1, "C", 1)])).is_empty());
    assert_eq!(
        gap(&mut feed, 5, add(3, b'B', 1, "", 1)),
        InstrumentId::WHOLE_FEED
    );
    assert_eq!(
        gap(&mut feed, 6, add(3, b'B', 1, "A\x01", 1)),
        InstrumentId::WHOLE_FEED
    );
    let huge = ModifyOrderLong {
        order_id: 1.into(),
        price: long(u64::MAX),
        ..ModifyOrderLong::BLANK_MESSAGE
    };
    assert_eq!(gap(&mut feed, 7, huge.as_bytes().to_vec()), InstrumentId(1));
    let short = b"\x0A\x29\0\0\0\0\x01\0\0\0".to_vec();
    assert_eq!(gap(&mut feed, 8, short), InstrumentId::WHOLE_FEED);
    let full = (9..18).map(|n| {
        (
            n,
            events(&mut feed, &datagram(n, &[add(n.into(), b'B', 1, "B", 1)]))[0],
        )
    });
    let full: Vec<_> = full.filter(|(_, e)| e.kind == EventKind::Gap).collect();
    assert!(!full.is_empty() && full.iter().all(|(_, e)| e.instrument == InstrumentId(2)));
    let counters = feed.counters();
    assert_eq!(
        (
            counters.get(Counter::Malformed),
            counters.get(Counter::BookFull) as usize
        ),
        (5, 1 + full.len())
    );
    assert!(events(&mut feed, &datagram(18, &[b"\x06\x2E\0\0\0\0"])).is_empty());
    assert_eq!(feed.counters().get(Counter::MessagesUnknown), 1);
}

#[test]
fn blocks_of_other_units_and_messages_without_numbers_are_ignored() {
    let mut feed = feed(PitchConfig::default());
    events(&mut feed, &datagram(1, &[add(1, b'B', 1, "A", 1)]));
    assert!(events(&mut feed, &datagram(0, &[add(2, b'B', 1, "A", 1)])).is_empty());
    let mut other = datagram(2, &[add(3, b'B', 1, "A", 1)]);
    other[3] = UNIT + 1;
    assert!(events(&mut feed, &other).is_empty());
    let mut heartbeat = [0; 8];
    pitch::heartbeat(&mut heartbeat, UNIT, 0);
    assert!(events(&mut feed, &heartbeat).is_empty());
    assert_eq!((feed.next_seq(), feed.state()), (SeqNo(2), FeedState::Live));
    assert_eq!(feed.counters().get(Counter::PacketsIgnored), 2);
    pitch::heartbeat(&mut heartbeat, UNIT, 4);
    let [gap] = events(&mut feed, &heartbeat)[..] else {
        panic!()
    };
    assert_eq!((gap.kind, gap.seq, gap.ref_id), (EventKind::Gap, SeqNo(2), 4));
}

#[test]
fn numbers_go_on_where_the_wire_begins_again() {
    let config = ArbiterConfig {
        start: Start::Here,
        ..PitchUnit::arbiter_config(UNIT)
    };
    let mut feed = PitchFeed::new(config, PitchDecoder::new(PitchConfig::default()));
    let mut at = u32::MAX - 2;
    let first = u64::from(at);
    for n in 0..8 {
        let got = events(&mut feed, &datagram(at, &[add(n, b'B', 1, "A", 1)]));
        assert_eq!(got.last().unwrap().seq.0, first + n);
        at = pitch::after(at, 1);
    }
    assert_eq!((at, feed.next_seq().0), (6, first + 8));
    // Late packets from before, a gap across the end, and what is asked for.
    assert!(events(&mut feed, &datagram(u32::MAX, &[add(0, b'B', 1, "A", 1)])).is_empty());
    assert_eq!(
        PitchUnit::full_number(SeqNo(u32::MAX.into()), feed.next_seq()).0,
        u64::from(u32::MAX)
    );
    let cycle = u64::from(u32::MAX);
    let mut rng = Rng::new(32);
    for _ in 0..100_000 {
        let next = [1, cycle, 2 * cycle, 3 * cycle][rng.below(4) as usize] + rng.below(1 << 27);
        let first = (next + rng.below(1 << 28)).saturating_sub(1 << 27).max(1);
        let wire = (first - 1) % cycle + 1;
        assert_eq!(
            PitchUnit::full_number(SeqNo(wire), SeqNo(next)),
            SeqNo(first),
            "next {next}"
        );
    }
}

/// The obvious decoder: what became of every order, whatever is subscribed.
#[derive(Default)]
struct Naive {
    orders: BTreeMap<u64, (usize, Side, u32, u16)>,
}

/// Instrument by position in [`SYMBOLS`], kind, order, quantity.
type Expected = (usize, EventKind, u64, u64);

const SYMBOLS: [&str; 6] = ["AAA", "BB", "CCCCCC", "D", "EEEE", "FFFFF"];

/// One random message and the event it should give.
fn random_message(rng: &mut Rng, naive: &mut Naive, at: u64) -> (Vec<u8>, Option<Expected>) {
    let known = naive.orders.len() as u64;
    let order = match known {
        0 => None,
        _ => naive.orders.keys().nth(rng.below(known) as usize).copied(),
    };
    let (Some(id), 1..) = (order, rng.below(5)) else {
        let (which, qty, cents) = (
            rng.below(6) as usize,
            1 + rng.below(500) as u16,
            1 + rng.below(999) as u16,
        );
        let side = if rng.chance(1, 2) { Side::Bid } else { Side::Ask };
        let id = at * 64 + rng.below(64);
        naive.orders.insert(id, (which, side, qty.into(), cents));
        let message = add(id, pitch::side_char(side).0, qty, SYMBOLS[which], cents);
        return (message, Some((which, EventKind::Add, id, qty.into())));
    };
    let (which, _, qty, _) = naive.orders[&id];
    let part = 1 + rng.below(u64::from(qty)) as u32;
    let left = naive.orders.get_mut(&id).unwrap();
    let (message, kind, qty) = match rng.below(5) {
        0 => {
            left.2 = 0;
            (delete(id), EventKind::Delete, 0)
        }
        1 => {
            left.2 -= part;
            (executed(id, part, at), EventKind::Execute, part)
        }
        2 => {
            left.2 -= part;
            (reduced(id, part as u16), EventKind::Reduce, part)
        }
        3 => {
            left.2 -= part;
            (executed_at(id, part, qty - part, 5), EventKind::Execute, part)
        }
        _ => {
            left.2 = part;
            (modified(id, part as u16, 9, 0), EventKind::Modify, part)
        }
    };
    if left.2 == 0 {
        naive.orders.remove(&id);
    }
    (message, Some((which, kind, id, qty.into())))
}

#[test]
fn the_naive_decoder_agrees_on_random_orders_whatever_is_subscribed() {
    let seed = 2412;
    let mut rng = Rng::new(seed);
    for wanted in [None, Some(vec![symbol("BB"), symbol("D")]), Some(vec![])] {
        let mut naive = Naive::default();
        let mut feed = feed(PitchConfig {
            symbols: wanted.clone(),
            ..PitchConfig::default()
        });
        let passes = |which: usize| {
            wanted
                .as_ref()
                .is_none_or(|w| w.contains(&symbol(SYMBOLS[which])))
        };
        let mut at = 1;
        for _ in 0..20_000 {
            let (mut messages, mut expected) = (Vec::new(), Vec::new());
            for n in 0..1 + rng.below(6) {
                let (message, event) = random_message(&mut rng, &mut naive, at + n);
                messages.push(message);
                expected.extend(event.filter(|e| passes(e.0)).map(|e| (at + n, e)));
            }
            let got = events(&mut feed, &datagram(at as u32, &messages));
            let told: Vec<_> = got
                .iter()
                .filter(|e| e.kind != EventKind::Definition)
                .map(|e| {
                    let name = feed_symbol(&feed, e.instrument);
                    (e.seq.0, (name, e.kind, e.order_id.0, e.qty.0))
                })
                .collect();
            assert_eq!(told, expected, "seed {seed}, packet at {at}");
            let flagged = got.iter().filter(|e| e.flags.has(EventFlags::LAST)).count();
            let last = got.last().is_none_or(|e| e.flags.has(EventFlags::LAST));
            assert!(flagged <= 1 && last, "seed {seed}, packet at {at}");
            at += messages.len() as u64;
        }
    }
}

fn feed_symbol(feed: &PitchFeed, id: InstrumentId) -> usize {
    let name = feed.filter().instruments().nth(id.index() - 1).unwrap().symbol;
    SYMBOLS.iter().position(|s| symbol(s) == name).unwrap()
}

/// Blocks of one message each over a connection.
fn stream<M: AsRef<[u8]>>(messages: &[M]) -> Vec<u8> {
    messages.iter().flat_map(|m| datagram(0, &[m])).collect()
}

fn login() -> PitchLogin {
    PitchLogin {
        session_sub_id: Alpha(*b"0001"),
        username: Alpha(*b"WIRE"),
        password: Alpha(*b"SECRET    "),
        ..PitchLogin::default()
    }
}

fn accepted() -> Vec<u8> {
    LoginResponse {
        status: Char(b'A'),
        ..LoginResponse::BLANK_MESSAGE
    }
    .as_bytes()
    .to_vec()
}

#[test]
fn what_both_lines_lose_comes_once_and_in_order_by_way_of_the_proxy() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let config = ArbiterConfig {
            buffer_packets: 64,
            request_attempts: 50,
            ..PitchUnit::arbiter_config(UNIT)
        };
        let mut feed = PitchFeed::new(config, PitchDecoder::new(PitchConfig::default()));
        let mut proxy = GapProxy::new(login());
        let mut now = Nanos(1);
        proxy.handle_connected(now);
        let mut buffer = [0; 64];
        assert_eq!(proxy.poll_transmit(&mut buffer).unwrap().len(), 30);
        proxy.handle_bytes(now, &stream(&[accepted()]));
        assert_eq!(proxy.poll_event(), Some(GapEvent::LoggedIn));
        let message = |n: u64| {
            let message = TradeBreak {
                execution_id: n.into(),
                ..TradeBreak::BLANK_MESSAGE
            };
            message.as_bytes().to_vec()
        };
        let total = 3000;
        let mut delivered = Vec::new();
        let mut sent = 1;
        let mut late: Vec<Vec<u8>> = Vec::new();
        while delivered.len() < total || feed.state() != FeedState::Live {
            now = now.after(200_000);
            let mut arrived = Vec::new();
            if sent <= total as u64 {
                let count = (1 + rng.below(4)).min(total as u64 + 1 - sent);
                let packet: Vec<_> = (sent..sent + count).map(message).collect();
                let packet = datagram(sent as u32, &packet);
                sent += count;
                for line in [Line::A, Line::B] {
                    match rng.below(10) {
                        0..=1 => {}
                        2 => late.push(packet.clone()),
                        3 => arrived.extend([(line, packet.clone()), (line, packet.clone())]),
                        _ => arrived.push((line, packet.clone())),
                    }
                }
                if rng.chance(1, 4) && !late.is_empty() {
                    arrived.push((Line::A, late.remove(0)));
                }
            } else {
                let mut heartbeat = [0; 8];
                pitch::heartbeat(&mut heartbeat, UNIT, sent as u32);
                arrived.push((Line::A, heartbeat.to_vec()));
            }
            while let Some(range) = feed.poll_missing() {
                let _ = proxy.ask(range);
            }
            while let Some(bytes) = proxy.poll_transmit(&mut buffer) {
                let (packet, _) = pitch::split(bytes).unwrap().unwrap();
                for request in packet.messages {
                    let Ok(Message::GapRequest(request)) = pitch::parse(request) else {
                        panic!()
                    };
                    let (first, count) = (u64::from(request.sequence.get()), u64::from(request.count.get()));
                    assert!(request.unit == UNIT && first + count <= sent && count <= 100);
                    let answer: Vec<_> = (first..first + count).map(message).collect();
                    if rng.chance(4, 5) {
                        arrived.push((Line::Retransmit, datagram(first as u32, &answer)));
                    }
                }
            }
            for (line, packet) in arrived {
                feed.on_packet(now, line, &packet, &mut |e: &MarketEvent| {
                    if e.kind == EventKind::TradeBreak {
                        delivered.push((e.seq.0, e.ref_id));
                    }
                });
            }
            feed.handle_timeout(now, &mut |e: &MarketEvent| {
                assert_ne!(e.kind, EventKind::TradeBreak)
            });
            assert!(
                now < Nanos(100 * Nanos::SECOND),
                "seed {seed}: {} of {total}",
                delivered.len()
            );
        }
        let expected: Vec<_> = (1..=total as u64).map(|n| (n, n)).collect();
        assert_eq!(delivered, expected, "seed {seed}");
        assert_eq!(feed.counters().get(Counter::MessagesLost), 0);
    }
}

#[test]
fn the_proxy_is_asked_for_a_hundred_messages_at_most_and_sixteen_requests_wait() {
    let mut proxy = GapProxy::new(login());
    let range = tickwire_feed::MissingRange {
        session: PitchUnit::session(UNIT),
        first: SeqNo(7),
        count: 1000,
    };
    assert!(!proxy.ask(range), "not logged in");
    proxy.handle_connected(Nanos(1));
    proxy.handle_bytes(Nanos(1), &stream(&[accepted()]));
    assert_eq!(proxy.poll_event(), Some(GapEvent::LoggedIn));
    let mut buffer = [0; 64];
    let _ = proxy.poll_transmit(&mut buffer);
    let asked = (0..20).filter(|_| proxy.ask(range)).count();
    assert_eq!(asked, 16);
    for _ in 0..asked {
        let bytes = proxy.poll_transmit(&mut buffer).unwrap();
        assert_eq!(&bytes[8..], b"\x09\x03\x05\x07\0\0\0\x64\0");
    }
    assert_eq!(proxy.poll_transmit(&mut buffer), None);
    // How often it may be asked, the channel's limits say.
    let limits = PitchUnit::arbiter_config(UNIT).recovery;
    assert_eq!(
        (
            limits.requests_per_second,
            limits.requests_per_minute,
            limits.requests_per_day
        ),
        (320, 1500, 100_000)
    );
}

#[test]
fn a_refused_login_and_a_broken_stream_end_the_connection() {
    let refused = LoginResponse {
        status: Char(b'N'),
        ..LoginResponse::BLANK_MESSAGE
    };
    for (bytes, shown) in [
        (stream(&[refused.as_bytes()]), "Rejected(78)"),
        (
            b"\x07\0\0\0\0\0\0\0".to_vec(),
            "Malformed(Length { kind: 0, expected: 8, have: 7 })",
        ),
        (stream(&[time(1)]), "NotLoggedIn"),
    ] {
        let mut proxy = GapProxy::new(login());
        proxy.handle_connected(Nanos(1));
        proxy.handle_bytes(Nanos(1), &bytes);
        let Some(GapEvent::Failed(failure)) = proxy.poll_event() else {
            panic!("{shown}")
        };
        assert_eq!(
            (format!("{failure:?}"), proxy.poll_event(), proxy.poll_timeout()),
            (shown.to_string(), None, None)
        );
    }
    let mut proxy = GapProxy::new(login());
    proxy.handle_connected(Nanos(1));
    proxy.handle_timeout(Nanos(1).after(10 * Nanos::SECOND));
    assert_eq!(
        proxy.poll_event(),
        Some(GapEvent::Failed(tickwire_feed::SoupFailure::Silent))
    );
}

#[test]
fn a_snapshot_and_the_messages_behind_it_make_the_orders_of_the_unit() {
    for (seed, step) in [(1, 1), (2, 7), (3, 100_000)] {
        let mut rng = Rng::new(seed);
        let mut naive = Naive::default();
        let config = ArbiterConfig {
            start: Start::Snapshot,
            snapshot: true,
            ..PitchUnit::arbiter_config(UNIT)
        };
        let mut feed = PitchFeed::new(config, PitchDecoder::new(PitchConfig::default()));
        let mut book: BTreeMap<u64, u64> = BTreeMap::new();
        let mut sink = |e: &MarketEvent| match e.kind {
            EventKind::Clear => book.clear(),
            EventKind::Add | EventKind::Modify => _ = book.insert(e.order_id.0, e.qty.0),
            EventKind::Delete => _ = book.remove(&e.order_id.0).unwrap(),
            EventKind::Execute | EventKind::Reduce => {
                let left = book.get_mut(&e.order_id.0).unwrap();
                *left -= e.qty.0;
                if *left == 0 {
                    book.remove(&e.order_id.0);
                }
            }
            _ => {}
        };
        let live: Vec<Vec<u8>> = (1..=400)
            .map(|n| random_message(&mut rng, &mut naive, n).0)
            .collect();
        // The image is what the messages up to 250 make.
        let mut past = Naive::default();
        let mut rng = Rng::new(seed);
        (1..=250).for_each(|n| _ = random_message(&mut rng, &mut past, n));
        for n in 201..=300 {
            feed.on_packet(
                Nanos(n),
                Line::A,
                &datagram(n as u32, &[&live[n as usize - 1]]),
                &mut sink,
            );
        }
        assert!(feed.wants_snapshot());
        let orders: Vec<_> = past.orders.iter().collect();
        let mut said = vec![accepted()];
        said.push(image(150)); // does not reach to what is held
        said.push(image(250));
        said.push(response(b'A', 250, orders.len() as u32));
        said.push(time(34_200));
        said.extend(orders.iter().map(|&(&id, &(which, side, qty, cents))| {
            add(id, pitch::side_char(side).0, qty as u16, SYMBOLS[which], cents)
        }));
        said.push(image(260));
        let finished = SpinFinished {
            sequence: 250.into(),
            ..SpinFinished::BLANK_MESSAGE
        };
        said.push(finished.as_bytes().to_vec());
        let mut spin = Spin::new(login());
        spin.handle_connected(Nanos(301));
        for piece in stream(&said).chunks(step) {
            spin.handle_bytes(Nanos(302), piece, &mut feed, &mut sink);
        }
        let mut buffer = [0; 64];
        let mut sent = Vec::new();
        while let Some(bytes) = spin.poll_transmit(&mut buffer) {
            sent.push(bytes[8..].to_vec());
        }
        assert_eq!((sent.len(), &sent[1][..]), (2, &b"\x06\x81\xFA\0\0\0"[..]));
        assert_eq!(spin.state(), SnapshotState::Done(SeqNo(251)));
        for n in 301..=400 {
            feed.on_packet(
                Nanos(n),
                Line::B,
                &datagram(n as u32, &[&live[n as usize - 1]]),
                &mut sink,
            );
        }
        assert_eq!((feed.state(), feed.next_seq()), (FeedState::Live, SeqNo(401)));
        let expected: BTreeMap<u64, u64> = naive
            .orders
            .iter()
            .map(|(&id, order)| (id, order.2.into()))
            .collect();
        assert_eq!(book, expected, "seed {seed}");
        assert_eq!(feed.counters().get(Counter::BookRejects), 0);
    }
}

#[test]
fn a_snapshot_that_is_refused_short_or_cut_leaves_the_feed_wanting_one() {
    let config = ArbiterConfig {
        start: Start::Snapshot,
        snapshot: true,
        ..PitchUnit::arbiter_config(UNIT)
    };
    let mut feed = PitchFeed::new(config, PitchDecoder::new(PitchConfig::default()));
    events(&mut feed, &datagram(8, &[delete(1)]));
    let mut spin = Spin::new(login());
    let mut sink = |_: &MarketEvent| {};
    spin.handle_connected(Nanos(1));
    spin.handle_bytes(
        Nanos(2),
        &stream(&[accepted(), image(7), response(b'O', 7, 0)]),
        &mut feed,
        &mut sink,
    );
    assert_eq!(spin.state(), SnapshotState::Connecting);
    let finished = SpinFinished {
        sequence: 8.into(),
        ..SpinFinished::BLANK_MESSAGE
    };
    let short = stream(&[
        image(8),
        response(b'A', 8, 2),
        add(1, b'B', 1, "A", 1),
        finished.as_bytes().to_vec(),
    ]);
    spin.handle_bytes(Nanos(3), &short, &mut feed, &mut sink);
    assert!(matches!(spin.state(), SnapshotState::Failed(_)) && feed.wants_snapshot());
    spin.handle_connected(Nanos(4));
    spin.handle_bytes(
        Nanos(4),
        &stream(&[accepted(), image(8), response(b'A', 8, 2)]),
        &mut feed,
        &mut sink,
    );
    assert_eq!(spin.state(), SnapshotState::Loading);
    spin.handle_closed();
    assert!(matches!(spin.state(), SnapshotState::Failed(_)) && feed.wants_snapshot());
}

fn image(sequence: u32) -> Vec<u8> {
    SpinImageAvailable {
        sequence: sequence.into(),
        ..SpinImageAvailable::BLANK_MESSAGE
    }
    .as_bytes()
    .to_vec()
}

fn response(status: u8, sequence: u32, orders: u32) -> Vec<u8> {
    let response = SpinResponse {
        sequence: sequence.into(),
        order_count: orders.into(),
        status: Char(status),
        ..SpinResponse::BLANK_MESSAGE
    };
    response.as_bytes().to_vec()
}

#[test]
fn the_end_of_the_session_ends_the_feed_when_nothing_of_it_is_missing() {
    let mut feed = feed(PitchConfig::default());
    let end = EndOfSession::BLANK_MESSAGE;
    events(&mut feed, &datagram(1, &[add(1, b'B', 1, "A", 1)]));
    // The last packet comes, the one before is missing.
    events(&mut feed, &datagram(3, &[delete(1), end.as_bytes().to_vec()]));
    assert!(!feed.is_done());
    events(&mut feed, &datagram(2, &[reduced(9, 1)]));
    assert!(feed.is_done());
    assert_eq!(feed.counters().get(Counter::EndOfSession), 1);
    // Heartbeats and the other line say nothing new.
    events(&mut feed, &datagram::<Vec<u8>>(5, &[]));
    feed.on_packet(
        LATE,
        Line::B,
        &datagram(3, &[delete(1), end.as_bytes().to_vec()]),
        &mut |_: &MarketEvent| {},
    );
    assert!(feed.is_done());
    assert_eq!(feed.counters().get(Counter::EndOfSession), 1);
}

#[test]
fn an_end_that_a_snapshot_takes_the_place_of_ends_the_feed_too() {
    let config = ArbiterConfig {
        start: Start::Snapshot,
        snapshot: true,
        ..PitchUnit::arbiter_config(UNIT)
    };
    let mut feed = PitchFeed::new(config, PitchDecoder::new(PitchConfig::default()));
    let mut sink = |_: &MarketEvent| {};
    let end = EndOfSession::BLANK_MESSAGE;
    feed.on_packet(LATE, Line::A, &datagram(9, &[end.as_bytes()]), &mut sink);
    assert!(feed.wants_snapshot() && !feed.is_done());
    feed.begin_snapshot(LATE, &mut sink);
    feed.end_snapshot(LATE, SeqNo(10), &mut sink);
    assert!(feed.is_done());
}

/// A day that goes on past midnight, and snapshots on both sides of it.
#[test]
fn times_go_on_past_midnight_and_behind_a_snapshot() {
    let midnight = Nanos(1_767_589_200 * Nanos::SECOND);
    let mut feed = feed(PitchConfig {
        midnight,
        ..PitchConfig::default()
    });
    let mut seq = 0;
    let mut seconds_of = |feed: &mut PitchFeed, time_message: Option<u32>| {
        seq += 1;
        let order = add(u64::from(seq), b'B', 1, "A", 1);
        let packet = match time_message {
            Some(seconds) => {
                let packet = datagram(seq, &[time(seconds), order]);
                seq += 1;
                packet
            }
            None => datagram(seq, &[order]),
        };
        let event = *events(feed, &packet).last().unwrap();
        event.venue_ts.since(midnight) / Nanos::SECOND
    };
    let snapshot = |feed: &mut PitchFeed, seconds: u32| {
        let mut told = Vec::new();
        let next = feed.next_seq();
        let mut sink = |e: &MarketEvent| told.push(*e);
        feed.begin_snapshot(LATE, &mut sink);
        feed.on_snapshot_message(LATE, &time(seconds), &mut sink);
        feed.on_snapshot_message(LATE, &add(1_000, b'B', 1, "A", 1), &mut sink);
        feed.end_snapshot(LATE, next, &mut sink);
        let order = told.iter().find(|e| e.kind == EventKind::Add).unwrap();
        order.venue_ts.since(midnight) / Nanos::SECOND
    };
    assert_eq!(seconds_of(&mut feed, Some(86_300)), 86_300);
    assert_eq!(snapshot(&mut feed, 86_390), 86_390);
    assert_eq!(
        seconds_of(&mut feed, None),
        86_390,
        "the live stream's own second was not seen"
    );
    assert_eq!(seconds_of(&mut feed, Some(86_399)), 86_399);
    assert_eq!(seconds_of(&mut feed, Some(2)), 86_402);
    assert_eq!(snapshot(&mut feed, 86_000), 86_000, "an order of yesterday");
    assert_eq!(seconds_of(&mut feed, None), 86_402);
    assert_eq!(snapshot(&mut feed, 7), 86_407);
    assert_eq!(seconds_of(&mut feed, Some(9)), 86_409);
    assert_eq!(
        seconds_of(&mut feed, Some(8)),
        86_408,
        "what the venue says is told"
    );
}

/// A process that runs on: what the venue said of itself yesterday evening says nothing of today.
#[test]
fn a_unit_that_has_ended_its_session_trades_again_the_next_day() {
    use tickwire_book::super_books::Source;
    use tickwire_book::{Books, BooksConfig, InstrumentStates, Relay, SourceId, SuperBooks, SuperConfig};
    let config = BooksConfig {
        venue: tickwire_market::Venue::Bzx,
        instruments: 8,
        orders: 64,
        levels: 64,
        tracked: true,
        ..BooksConfig::default()
    };
    let (mut books, mut states) = (Books::new(config), InstrumentStates::new(8, 64));
    let mut supers = SuperBooks::new(SuperConfig {
        sources: vec![Source::default()],
        symbols: 4,
        members: 8,
        shares: 128,
    });
    let quiet = |_: &tickwire_book::SuperRef<'_>, _: &tickwire_book::SuperUpdate| ();
    let id = supers
        .define(SourceId(0), InstrumentId(1), &symbol("YANG"), &mut { quiet })
        .unwrap();
    let mut feed = FeedHandler::<PitchUnit, _>::new(
        PitchUnit::arbiter_config(UNIT),
        PitchDecoder::new(PitchConfig::default()),
    );
    let end = EndOfSession::BLANK_MESSAGE.as_bytes().to_vec();
    let clear = UnitClear::BLANK_MESSAGE.as_bytes().to_vec();
    let trading = pitch::TradingStatus {
        symbol: Alpha::new(b"YANG").unwrap(),
        status: Char(b'T'),
        ..pitch::TradingStatus::BLANK_MESSAGE
    };
    let day = [
        clear,
        trading.as_bytes().to_vec(),
        add(70, b'S', 900, "YANG", 1133),
    ];
    let night = Nanos(12 * 3600 * Nanos::SECOND);
    let evening = [
        (Nanos(1), datagram(1, &day)),
        (Nanos(2), datagram(4, &[delete(70), end])),
    ];
    // The numbers begin anew: both lines have to say so a few times, and what came before is sent again.
    let morning: Vec<_> = [datagram(1, &day)]
        .into_iter()
        .chain((4..10).map(|n| datagram(n, &[time(n)])))
        .map(|packet| (night, packet))
        .collect();
    let on_lines = evening
        .iter()
        .chain(&morning)
        .flat_map(|p| [(Line::A, p), (Line::B, p)]);
    let again = morning.iter().map(|p| (Line::Retransmit, p));
    for (line, (now, packet)) in on_lines.chain(again) {
        feed.on_packet(*now, line, packet, &mut |e: &MarketEvent| {
            let outcome = books.apply(e).outcome();
            states.note(e, None);
            books.relay(e, outcome, Relay::Levels, &mut |e: &MarketEvent| {
                let _ = supers.apply(SourceId(0), e, &mut { quiet });
            });
        });
    }
    assert_eq!(feed.state(), FeedState::Live);
    assert_eq!(
        books.book(InstrumentId(1)).unwrap().best(Side::Ask).unwrap().qty,
        Volume(900)
    );
    assert_eq!(states.venue_status(), TradingStatus::Unknown);
    let best = supers.book(id).unwrap().best(Side::Ask);
    assert_eq!(best.map(|level| level.qty), Some(Volume(900)), "{best:?}");
}
