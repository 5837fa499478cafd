//! ITCH 5.0 messages to events: what is said, what is filtered, what is refused.

use crate::common;

use tickwire_feed::{
    ArbiterConfig, Channel, Context, Decoder, FeedHandler, FeedState, ItchChannel, ItchConfig, ItchDecoder,
    ItchFeed, Line, Rule, SoupConfig, StreamEvent,
};
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, OrderId, Price,
    Qty, SeqNo, Side, Symbol, TradingStatus, Upcoming, Venue, Volume,
};
use tickwire_wire::itch50::*;
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Alpha, Char, Price4};
use tickwire_wire::moldudp64::PacketBuilder;

const TIME: u64 = 34_199_999_894_278;

#[derive(Default)]
struct Heard {
    events: Vec<MarketEvent>,
    upcoming: Vec<(u32, u64)>,
}

impl EventSink for Heard {
    fn on_event(&mut self, event: &MarketEvent) {
        self.events.push(*event);
    }
    fn upcoming(&mut self, next: Upcoming) {
        self.upcoming.push((next.instrument.0, next.order_id.0));
    }
}

fn decoder(symbols: Option<&[&str]>) -> ItchDecoder {
    let symbols = symbols.map(|s| s.iter().map(|s| symbol(s)).collect());
    ItchDecoder::new(ItchConfig {
        symbols,
        instruments_max: 8,
        ..ItchConfig::default()
    })
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text.as_bytes()).unwrap()
}

fn context() -> Context {
    Context {
        seq: SeqNo(7),
        received: Nanos(99),
        flags: EventFlags::LAST,
    }
}

fn decode_with(decoder: &mut ItchDecoder, message: &[u8]) -> (Option<MarketEvent>, Counters) {
    let (mut heard, mut counters) = (Heard::default(), Counters::default());
    decoder.decode(context(), message, &mut counters, &mut heard);
    assert!(heard.events.len() <= 1);
    (heard.events.pop(), counters)
}

fn decode(message: impl Pod) -> Option<MarketEvent> {
    let (event, counters) = decode_with(&mut decoder(None), message.as_bytes());
    assert_eq!(counters, Counters::default());
    event
}

/// The fields every event of instrument 5 has.
fn about(kind: EventKind) -> MarketEvent {
    MarketEvent {
        seq: SeqNo(7),
        venue_ts: Nanos(TIME),
        recv_ts: Nanos(99),
        instrument: InstrumentId(5),
        venue: Venue::Nasdaq,
        kind,
        flags: EventFlags::LAST,
        ..MarketEvent::default()
    }
}

fn directory(locate: u16, stock: &str) -> StockDirectory {
    StockDirectory {
        stock: Alpha::new(stock.as_bytes()).unwrap(),
        round_lot_size: 100.into(),
        authenticity: Char(b'T'),
        ..StockDirectory::at(locate, TIME)
    }
}

fn add(locate: u16, order: u64) -> AddOrder {
    AddOrder {
        order_ref: order.into(),
        side: Char(b'S'),
        shares: 1600.into(),
        price: Price4::new(873_900),
        ..AddOrder::at(locate, TIME)
    }
}

#[test]
fn order_messages_become_book_events_with_exact_prices() {
    let price = Price::from_4dp(873_900);
    let added = MarketEvent {
        order_id: OrderId(23_508_286),
        side: Side::Ask,
        price,
        qty: Volume(1600),
        ..about(EventKind::Add)
    };
    assert_eq!(decode(add(5, 23_508_286)), Some(added));
    let attributed = AddOrderMpid {
        order_ref: 23_508_286.into(),
        side: Char(b'S'),
        shares: 1600.into(),
        price: Price4::new(873_900),
        attribution: Alpha(*b"GSC "),
        ..AddOrderMpid::at(5, TIME)
    };
    assert_eq!(
        decode(attributed),
        Some(MarketEvent {
            code: *b"GSC\0\0\0\0\0",
            ..added
        })
    );
    let executed = OrderExecuted {
        order_ref: 1.into(),
        executed_shares: 2.into(),
        match_number: 3.into(),
        ..OrderExecuted::at(5, TIME)
    };
    let execution = MarketEvent {
        order_id: OrderId(1),
        qty: Volume(2),
        ref_id: 3,
        ..about(EventKind::Execute)
    };
    assert_eq!(decode(executed), Some(execution));
    let at_price = |printable| OrderExecutedWithPrice {
        order_ref: 1.into(),
        executed_shares: 2.into(),
        match_number: 3.into(),
        printable: Char(printable),
        execution_price: Price4::new(873_900),
        ..OrderExecutedWithPrice::at(5, TIME)
    };
    let other = EventFlags::LAST.with(EventFlags::AT_OTHER_PRICE);
    assert_eq!(
        decode(at_price(b'Y')),
        Some(MarketEvent {
            price,
            flags: other,
            ..execution
        })
    );
    let flags = other.with(EventFlags::NOT_PRINTABLE);
    assert_eq!(
        decode(at_price(b'N')),
        Some(MarketEvent {
            price,
            flags,
            ..execution
        })
    );
    let cancel = OrderCancel {
        order_ref: 1.into(),
        cancelled_shares: 2.into(),
        ..OrderCancel::at(5, TIME)
    };
    assert_eq!(
        decode(cancel),
        Some(MarketEvent {
            ref_id: 0,
            kind: EventKind::Reduce,
            ..execution
        })
    );
    let delete = OrderDelete {
        order_ref: 1.into(),
        ..OrderDelete::at(5, TIME)
    };
    assert_eq!(
        decode(delete),
        Some(MarketEvent {
            order_id: OrderId(1),
            ..about(EventKind::Delete)
        })
    );
    let replace = OrderReplace {
        original_order_ref: 1.into(),
        new_order_ref: 3.into(),
        shares: 2.into(),
        price: Price4::new(873_900),
        ..OrderReplace::at(5, TIME)
    };
    assert_eq!(
        decode(replace),
        Some(MarketEvent {
            kind: EventKind::Replace,
            price,
            ..execution
        })
    );
}

#[test]
fn trades_breaks_and_imbalances_are_told() {
    let price = Price::from_4dp(10_000);
    let flags = EventFlags::LAST.with(EventFlags::NO_SIDE);
    let trade = Trade {
        side: Char(b'B'),
        shares: 2.into(),
        price: Price4::new(10_000),
        match_number: 3.into(),
        ..Trade::at(5, TIME)
    };
    let traded = MarketEvent {
        qty: Volume(2),
        price,
        ref_id: 3,
        flags,
        ..about(EventKind::Trade)
    };
    assert_eq!(decode(trade), Some(traded));
    let cross = CrossTrade {
        shares: (1 << 40).into(),
        cross_price: Price4::new(10_000),
        match_number: 3.into(),
        cross_type: Char(b'O'),
        ..CrossTrade::at(5, TIME)
    };
    let crossed = MarketEvent {
        qty: Volume(1 << 40),
        code: *b"O\0\0\0\0\0\0\0",
        ..traded
    };
    assert_eq!(decode(cross), Some(crossed));
    let broken = BrokenTrade {
        match_number: 3.into(),
        ..BrokenTrade::at(5, TIME)
    };
    assert_eq!(
        decode(broken),
        Some(MarketEvent {
            ref_id: 3,
            ..about(EventKind::TradeBreak)
        })
    );
    let noii = |direction| NetOrderImbalance {
        paired_shares: 1000.into(),
        imbalance_shares: 200.into(),
        direction: Char(direction),
        far_price: Price4::new(30_000),
        near_price: Price4::new(20_000),
        reference_price: Price4::new(10_000),
        cross_type: Char(b'C'),
        price_variation: Char(b'L'),
        ..NetOrderImbalance::at(5, TIME)
    };
    let imbalance = MarketEvent {
        side: Side::Ask,
        qty: Volume(1000),
        imbalance_qty: Volume(200),
        price,
        near_price: Price::from_4dp(20_000),
        far_price: Price::from_4dp(30_000),
        code: *b"CL\0\0\0\0\0\0",
        ..about(EventKind::Imbalance)
    };
    assert_eq!(decode(noii(b'S')), Some(imbalance));
    assert_eq!(
        decode(noii(b'N')),
        Some(MarketEvent {
            side: Side::Bid,
            flags,
            ..imbalance
        })
    );
}

#[test]
fn halts_and_the_phases_of_the_day_become_status() {
    let action = |state| StockTradingAction {
        trading_state: Char(state),
        reason: Alpha(*b"T1  "),
        ..StockTradingAction::at(5, TIME)
    };
    for (state, status) in [
        (b'H', TradingStatus::Halted),
        (b'P', TradingStatus::Paused),
        (b'Q', TradingStatus::QuoteOnly),
        (b'T', TradingStatus::Trading),
    ] {
        let expected = MarketEvent {
            status,
            code: *b"T1\0\0\0\0\0\0",
            ..about(EventKind::Status)
        };
        assert_eq!(decode(action(state)), Some(expected));
    }
    let operational = |market, action| OperationalHalt {
        market_code: Char(market),
        action: Char(action),
        ..OperationalHalt::at(5, TIME)
    };
    assert_eq!(
        decode(operational(b'Q', b'H')).map(|e| e.status),
        Some(TradingStatus::Halted)
    );
    assert_eq!(
        decode(operational(b'Q', b'T')).map(|e| e.status),
        Some(TradingStatus::Trading)
    );
    assert_eq!(
        decode(operational(b'X', b'H')),
        None,
        "another market's halt is not ours"
    );
    for (event, status) in [
        (b'O', TradingStatus::Unknown),
        (b'S', TradingStatus::PreOpen),
        (b'Q', TradingStatus::Trading),
        (b'M', TradingStatus::Closed),
        (b'E', TradingStatus::Closed),
        (b'C', TradingStatus::Closed),
    ] {
        let told = decode(SystemEvent {
            event: Char(event),
            ..SystemEvent::at(0, TIME)
        })
        .unwrap();
        assert_eq!(
            (told.instrument, told.status, told.code[0]),
            (InstrumentId::WHOLE_FEED, status, event)
        );
    }
}

/// The two are independent: the end of one is not the end of the other.
#[test]
fn a_stock_trades_when_neither_halt_holds() {
    let mut decoder = ItchDecoder::new(ItchConfig::default());
    let (mut counters, mut said) = (Counters::default(), Vec::new());
    let action = |state| StockTradingAction {
        trading_state: Char(state),
        ..StockTradingAction::at(5, TIME)
    };
    let operational = |action| OperationalHalt {
        market_code: Char(b'Q'),
        action: Char(action),
        ..OperationalHalt::at(5, TIME)
    };
    let messages = [
        action(b'T').as_bytes().to_vec(),
        operational(b'H').as_bytes().to_vec(),
        action(b'H').as_bytes().to_vec(),
        operational(b'T').as_bytes().to_vec(),
    ];
    for message in &messages {
        decoder.decode(context(), message, &mut counters, &mut |e: &MarketEvent| {
            said.push(e.status)
        });
    }
    assert_eq!(said.last(), Some(&TradingStatus::Halted), "{said:?}");
}

#[test]
fn messages_that_concern_no_book_yield_no_event() {
    assert_eq!(decode(RegShoRestriction::at(5, TIME)), None);
    assert_eq!(decode(MarketParticipantPosition::at(5, TIME)), None);
    assert_eq!(decode(MwcbDeclineLevel::at(0, TIME)), None);
    assert_eq!(decode(MwcbStatus::at(0, TIME)), None);
    assert_eq!(decode(IpoQuotingPeriodUpdate::at(5, TIME)), None);
    assert_eq!(decode(LuldAuctionCollar::at(5, TIME)), None);
    assert_eq!(decode(RetailInterest::at(5, TIME)), None);
    assert_eq!(decode(DirectListing::at(5, TIME)), None);
}

#[test]
fn a_known_date_makes_venue_times_absolute() {
    let midnight = Nanos(1_700_000_000 * Nanos::SECOND);
    let mut dated = ItchDecoder::new(ItchConfig {
        midnight,
        instruments_max: 8,
        ..ItchConfig::default()
    });
    let (event, _) = decode_with(&mut dated, add(5, 1).as_bytes());
    assert_eq!(event.unwrap().venue_ts, midnight.after(TIME));
}

#[test]
fn the_directory_knows_every_instrument_and_tells_of_those_wanted() {
    let mut decoder = decoder(Some(&["IVOO"]));
    let (defined, _) = decode_with(&mut decoder, directory(5, "IVOO").as_bytes());
    assert_eq!(defined, Some(about(EventKind::Definition)));
    assert_eq!(decode_with(&mut decoder, directory(6, "META").as_bytes()).0, None);
    let meta = decoder.filter().instrument(InstrumentId(6)).unwrap();
    assert_eq!(
        (meta.symbol, meta.lot, meta.is_test),
        (symbol("META"), Qty(100), true)
    );
    assert_eq!(decoder.filter().instruments().count(), 2);
    assert_eq!(decoder.filter().find(&symbol("META")), Some(InstrumentId(6)));
}

/// The numbers of the instruments of which a rule such as `+A*` changes whether they are wanted.
fn select(decoder: &mut ItchDecoder, rule: &str) -> Vec<u32> {
    let mut changed = Vec::new();
    let rule = Rule {
        pattern: rule[1..].parse().unwrap(),
        wanted: rule.starts_with('+'),
    };
    decoder.select(rule, &mut |id| changed.push(id.0)).unwrap();
    changed
}

#[test]
fn what_nobody_wants_is_counted_and_not_decoded() {
    let mut decoder = decoder(Some(&["IVOO"]));
    assert_eq!(
        decode_with(&mut decoder, add(5, 1).as_bytes()).0,
        None,
        "not in the directory yet"
    );
    decode_with(&mut decoder, directory(5, "IVOO").as_bytes());
    decode_with(&mut decoder, directory(6, "META").as_bytes());
    assert!(decode_with(&mut decoder, add(5, 1).as_bytes()).0.is_some());
    let (event, counters) = decode_with(&mut decoder, add(6, 2).as_bytes());
    assert_eq!((event, counters.get(Counter::MessagesFiltered)), (None, 1));
    assert_eq!(select(&mut decoder, "+M*"), [6]);
    assert!(decode_with(&mut decoder, add(6, 3).as_bytes()).0.is_some());
    assert_eq!(select(&mut decoder, "-IVOO"), [5]);
    assert_eq!(decode_with(&mut decoder, add(5, 4).as_bytes()).0, None);
    let adds = decoder.filter().seen_of_type(b'A'.into());
    assert_eq!((adds.seen, adds.filtered, adds.passed()), (5, 3, 2));
    let ivoo = decoder.seen_of_instrument(InstrumentId(5));
    assert_eq!((ivoo.seen, ivoo.filtered), (4, 2));
    // The whole feed's messages always pass.
    assert!(
        decode_with(
            &mut decoder,
            SystemEvent {
                event: Char(b'Q'),
                ..SystemEvent::at(0, 0)
            }
            .as_bytes()
        )
        .0
        .is_some()
    );
    decoder.on_stream(StreamEvent::Restarted);
    assert_eq!(decoder.filter().instruments().count(), 0);
    assert_eq!(
        decode_with(&mut decoder, add(6, 3).as_bytes()).0,
        None,
        "numbers of another day mean nothing"
    );
}

#[test]
fn bad_messages_are_counted_and_make_the_book_they_are_about_stale() {
    let refused = |message: &[u8]| {
        let (event, counters) = decode_with(&mut decoder(None), message);
        assert_eq!(counters.get(Counter::Malformed), 1, "{message:02X?}");
        event
    };
    let stale = MarketEvent {
        venue_ts: Nanos::ZERO,
        ref_id: 8,
        flags: EventFlags::LAST.with(EventFlags::UNUSABLE),
        ..about(EventKind::Gap)
    };
    assert_eq!(
        refused(&add(5, 1).as_bytes()[..35]),
        Some(stale),
        "one byte short"
    );
    assert_eq!(
        refused(
            AddOrder {
                side: Char(b'x'),
                ..add(5, 1)
            }
            .as_bytes()
        ),
        Some(stale)
    );
    assert_eq!(
        refused(OrderExecutedWithPrice::at(5, 0).as_bytes()),
        Some(stale),
        "neither printable nor not"
    );
    assert_eq!(
        refused(StockTradingAction::at(5, 0).as_bytes()),
        None,
        "a state that does not exist"
    );
    assert_eq!(
        refused(
            OperationalHalt {
                market_code: Char(b'Q'),
                ..OperationalHalt::at(5, 0)
            }
            .as_bytes()
        ),
        None
    );
    assert_eq!(refused(NetOrderImbalance::at(5, 0).as_bytes()), None);
    assert_eq!(refused(SystemEvent::at(0, 0).as_bytes()), None);
    assert_eq!(
        refused(
            StockDirectory {
                stock: Alpha([1; 8]),
                ..directory(5, "X")
            }
            .as_bytes()
        ),
        None
    );
    assert_eq!(
        refused(add(8, 1).as_bytes()),
        None,
        "an instrument beyond the configured number"
    );
    assert_eq!(refused(b"A"), None);
    let (event, counters) = decode_with(&mut decoder(None), b"?\x00\x05...");
    assert_eq!((event, counters.get(Counter::MessagesUnknown)), (None, 1));
    assert_eq!(
        decode_with(&mut decoder(None), b""),
        (None, Counters::default()),
        "an empty block says nothing"
    );
    let mut longer = add(5, 1).as_bytes().to_vec();
    longer.push(0);
    assert!(
        decode_with(&mut decoder(None), &longer).0.is_some(),
        "messages may grow"
    );
}

#[test]
fn a_packet_announces_its_orders_and_marks_its_last_event() {
    let mut feed: ItchFeed = FeedHandler::new(ArbiterConfig::default(), decoder(Some(&["IVOO"])));
    let mut heard = Heard::default();
    let mut bytes = [0; 1500];
    let mut packet = PacketBuilder::new(&mut bytes, common::SESSION, SeqNo(1));
    for message in [directory(5, "IVOO").as_bytes(), directory(6, "META").as_bytes()] {
        assert!(packet.push(message));
    }
    let len = packet.finish();
    feed.on_packet(Nanos(1), Line::A, &bytes[..len], &mut heard);
    heard.events.clear();
    let mut packet = PacketBuilder::new(&mut bytes, common::SESSION, SeqNo(3));
    let no_event = RegShoRestriction::at(5, 0);
    for message in [
        add(5, 10).as_bytes(),
        add(5, 11).as_bytes(),
        no_event.as_bytes(),
        b"",
        add(6, 12).as_bytes(),
    ] {
        assert!(packet.push(message));
    }
    let len = packet.finish();
    feed.on_packet(Nanos(2), Line::A, &bytes[..len], &mut heard);
    assert_eq!(heard.upcoming, [(5, 10), (5, 11)]);
    let told: Vec<_> = heard.events.iter().map(|e| (e.seq.0, e.flags)).collect();
    assert_eq!(told, [(3, EventFlags::NONE), (4, EventFlags::LAST)]);
    assert_eq!(feed.next_seq(), SeqNo(8));
}

#[test]
fn a_source_that_cannot_lose_needs_no_packets() {
    let mut feed: ItchFeed = FeedHandler::new(ArbiterConfig::default(), decoder(None));
    let mut heard = Heard::default();
    for order in 1..=3 {
        feed.on_message(Nanos(order), add(5, order).as_bytes(), &mut heard);
    }
    let kinds: Vec<_> = heard.events.iter().map(|e| (e.kind, e.seq.0)).collect();
    let add = EventKind::Add;
    assert_eq!(kinds, [(EventKind::Recovered, 1), (add, 1), (add, 2), (add, 3)]);
}

#[test]
fn a_recovery_connection_fills_a_gap_message_by_message() {
    let mut feed = common::feed(ArbiterConfig::default());
    let mut heard = Heard::default();
    let session = tickwire_feed::SessionId(common::SESSION);
    feed.on_packet(
        Nanos(1),
        Line::A,
        &common::packet(common::SESSION, 1, 1),
        &mut heard,
    );
    feed.on_packet(
        Nanos(1),
        Line::A,
        &common::packet(common::SESSION, 4, 4),
        &mut heard,
    );
    for n in 1..=3 {
        feed.on_recovered_message(
            Nanos(2),
            session,
            SeqNo(n),
            common::message(n).as_bytes(),
            &mut heard,
        );
    }
    let live: Vec<_> = heard
        .events
        .iter()
        .filter(|e| common::delivered(e))
        .map(|e| e.seq.0)
        .collect();
    assert_eq!(live, [1, 2, 3, 4]);
    feed.on_recovered_message(Nanos(2), session, SeqNo(5), &[0; 70_000], &mut heard);
    assert_eq!(feed.counters().get(Counter::Malformed), 1);
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Nasdaq.Equities.TotalView.Itch.v5.0")]
#[test]
fn recorded_nasdaq_packets_become_the_events_their_worked_example_says() {
    let dir = tickwire_testdata::captures("packets/Nasdaq/Nasdaq.Equities.TotalView.Itch.v5.0");
    let path = dir.join("AddOrderNoMpidAttributionMessage.pcap");
    let config = ArbiterConfig {
        start: tickwire_feed::Start::Here,
        ..ArbiterConfig::default()
    };
    let mut feed: ItchFeed = FeedHandler::new(config, ItchDecoder::new(ItchConfig::default()));
    let mut heard = Heard::default();
    for payload in tickwire_testdata::pcap_payloads(&path) {
        feed.on_packet(Nanos(1), Line::A, &payload, &mut heard);
    }
    let event = heard.events.first().expect("an add order");
    assert_eq!((event.seq, event.venue_ts), (SeqNo(14_757_721), Nanos(TIME)));
    assert_eq!(
        (event.instrument, event.order_id),
        (InstrumentId(5528), OrderId(23_508_286))
    );
    assert_eq!(
        (event.side, event.qty, event.price),
        (Side::Bid, Volume(1600), Price::from_4dp(873_900))
    );
}

/// For ever an offer enters and leaves, and no more is said, not even that its feed has begun.
#[test]
fn a_twin_tells_of_its_offers_and_of_nothing_else() {
    let config = ArbiterConfig {
        snapshot: true,
        session: Some(tickwire_feed::SessionId(*b"0000000001")),
        ..ArbiterConfig::default()
    };
    let channel = ItchChannel::new(ItchFeed::new(config, decoder(None)), SoupConfig::default());
    let (instrument, price) = (InstrumentId(5), Price::from_4dp(99_9800));
    let mut twin = channel.twin(instrument, price).expect("there is one");
    let mut last = OrderId(0);
    for round in 0..100_000 {
        let mut heard = Heard::default();
        let now = Nanos(1 + round * 10_000);
        twin.play(now, &mut heard);
        let [added, deleted] = heard.events[..] else {
            panic!("round {round}: {:?}", heard.events);
        };
        assert_eq!((added.kind, deleted.kind), (EventKind::Add, EventKind::Delete));
        assert_eq!((added.instrument, deleted.instrument), (instrument, instrument));
        assert_eq!((added.side, added.price, added.recv_ts), (Side::Ask, price, now));
        assert!(added.qty > Volume::ZERO && added.order_id == deleted.order_id);
        assert!(added.order_id > last, "no number twice");
        last = added.order_id;
    }
    let counters = twin.channel().counters();
    assert_eq!(counters.get(Counter::PacketsA), counters.get(Counter::Messages));
    assert_eq!(twin.channel().state(), FeedState::Live);
    assert_eq!(
        channel.counters().get(Counter::PacketsA),
        0,
        "the other one's are its own"
    );
    for (number, price) in [
        (1 << 16, price),
        (5, Price::from_raw(-1_000_000_000)),
        (5, Price::from_raw(1)),
    ] {
        assert!(
            channel.twin(InstrumentId(number), price).is_none(),
            "{number} {price}"
        );
    }
}
