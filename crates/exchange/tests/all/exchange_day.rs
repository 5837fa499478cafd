//! Whole days of the simulated venue in virtual time: what goes out on the lines rebuilds its books, whoever
//! trades and whatever the lines lose; clients hear the truth about their orders.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use support::Builder;
use tickwire_exchange::{
    AuctionTimes, BreaksConfig, ChannelConfig, ClientOrder, DayPhase, Exchange, ExchangeConfig, Firm,
    FixPort, FlowConfig, Impair, ImpairConfig, ItchPublisher, ItchPublisherConfig, OrderEntryConfig,
    OrderKinds, Outcome, PaceConfig, Protection, PublishedChannel, SelfTrade, listings,
};
use tickwire_fix::{
    Again, CompId, Encoder, Event, ExecType, ExecutionReport, Id, NewOrderSingle, OrdStatus,
    OrderCancelReject, OrderCancelReplaceRequest, OrderCancelRequest, Role, Session, SessionConfig, Stamp,
    Version, cxl_rej_reason, ord_rej_reason,
};
use tickwire_market::{
    Cause, InstrumentId, Nanos, OrderType, Port, Price, Qty, SeqNo, Side, Symbol, TimeInForce, TradingStatus,
    Venue,
};
use tickwire_testdata::Rng;
use tickwire_wire::moldudp64::{Payload, Request, parse};

/// 2026-01-05 14:30 UTC.
const START: Nanos = Nanos(1_767_623_400 * Nanos::SECOND);

fn config(seed: u64, duration_ms: u64) -> ExchangeConfig {
    println!("seed {seed}");
    ExchangeConfig {
        listings: listings(20),
        max_orders: 100_000,
        max_levels: 512,
        flow: FlowConfig {
            seed,
            max_live: 50_000,
            kinds: OrderKinds::FEW,
            ..FlowConfig::default()
        },
        pace: PaceConfig {
            rate: 20_000,
            ..PaceConfig::default()
        },
        order_entry: OrderEntryConfig {
            connections: 2,
            max_orders: 10_000,
            ..OrderEntryConfig::default()
        },
        duration_ns: duration_ms * Nanos::MILLI,
        linger_ns: 50 * Nanos::MILLI,
        ..ExchangeConfig::default()
    }
}

/// The venue with one Nasdaq channel.
fn exchange_of(config: ExchangeConfig) -> Exchange {
    let channel = ChannelConfig {
        store_bytes: 16 << 20,
        store_messages: 1 << 19,
        ..ChannelConfig::default()
    };
    let publisher = ItchPublisher::new(
        ItchPublisherConfig {
            channel,
            ..ItchPublisherConfig::default()
        },
        &config.listings,
    );
    let published_channel = PublishedChannel {
        publisher: Box::new(publisher),
        instruments: 0..u32::MAX,
    };
    Exchange::new(config, vec![published_channel])
}

fn connect(exchange: &mut Exchange, id: usize, now: Nanos) -> bool {
    let publisher = exchange.publisher_mut(0).expect("one channel");
    publisher.connect(Port::SnapshotServer, id, now)
}

fn transmit<'b>(exchange: &mut Exchange, id: usize, now: Nanos, buf: &'b mut [u8]) -> Option<&'b [u8]> {
    let publisher = exchange.publisher_mut(0).expect("one channel");
    publisher.poll_transmit(Port::SnapshotServer, id, now, buf)
}

/// Gets datagrams in any order, with holes, and gives messages in sequence.
#[derive(Default)]
struct Receiver {
    books: Builder,
    next: u64,
    early: BTreeMap<u64, Vec<u8>>,
    session: [u8; 10],
    highest: u64,
    ended: bool,
}

impl Receiver {
    fn on_datagram(&mut self, bytes: &[u8]) {
        let packet = parse(bytes).expect("a well-formed packet");
        assert_eq!(packet.trailing, 0);
        self.session = packet.session;
        self.next = self.next.max(1);
        self.highest = self.highest.max(packet.next_seq().0);
        match packet.payload {
            Payload::Heartbeat => {}
            Payload::EndOfSession => self.ended = true,
            Payload::Messages(blocks) => {
                for (i, message) in blocks.enumerate() {
                    self.early
                        .entry(packet.seq.0 + i as u64)
                        .or_insert_with(|| message.to_vec());
                }
            }
        }
        while let Some(message) = self.early.remove(&self.next) {
            self.books.apply(&message);
            self.next += 1;
        }
        self.early.retain(|seq, _| *seq >= self.next);
    }

    fn request(&self) -> Option<Request> {
        (self.next < self.highest).then(|| Request {
            session: self.session,
            seq: SeqNo(self.next.max(1)),
            count: (self.highest - self.next).min(1000) as u16,
        })
    }
}

/// Exchange, two bad lines, a receiver, FIX clients, all in virtual time.
struct World {
    now: Nanos,
    exchange: Exchange,
    lines: [Impair; 2],
    receiver: Receiver,
    clients: Vec<Client>,
}

struct Client {
    id: usize,
    session: Session,
    reports: Vec<ExecutionReport>,
    rejects: Vec<OrderCancelReject>,
    connected: bool,
}

impl World {
    fn new(config: ExchangeConfig, impair: ImpairConfig, clients: usize) -> World {
        let line = |seed| Impair::new(ImpairConfig { seed, ..impair });
        let mut exchange = exchange_of(config);
        let clients = (0..clients)
            .map(|id| {
                let name = CompId::new(format!("CLIENT{id}").as_bytes()).unwrap();
                let mut session = Session::new(SessionConfig {
                    reset_on_logon: true,
                    ..SessionConfig::new(Role::Initiator, name, CompId::new(b"EXCHANGE").unwrap())
                });
                assert!(exchange.connect(id, START));
                session.handle_connected(START);
                Client {
                    id,
                    session,
                    reports: Vec::new(),
                    rejects: Vec::new(),
                    connected: true,
                }
            })
            .collect();
        exchange.open(START);
        World {
            now: START,
            exchange,
            lines: [line(1), line(2)],
            receiver: Receiver::default(),
            clients,
        }
    }

    /// One turn of the loop an application would run.
    fn turn(&mut self, ns: u64) {
        self.now = self.now.after(ns);
        let now = self.now;
        self.exchange.on_time(now);
        self.exchange_bytes();
        let receiver = &mut self.receiver;
        while let Some(datagram) = self.exchange.poll_datagram(0, now) {
            assert!(datagram.bytes.len() <= 1400);
            for line in &mut self.lines {
                line.send(datagram.bytes, &mut |bytes| receiver.on_datagram(bytes));
            }
        }
        if let Some(request) = self.receiver.request() {
            let mut reply = [0; 2048];
            if let Some(length) = self
                .exchange
                .handle_request(0, self.now, &request.encode(), &mut reply)
            {
                self.receiver.on_datagram(&reply[..length]);
            }
        }
    }

    fn exchange_bytes(&mut self) {
        let mut buf = [0; 4096];
        for client in self.clients.iter_mut().filter(|c| c.connected) {
            loop {
                let mut moved = false;
                while let Some(bytes) = client.session.poll_transmit(&mut buf) {
                    assert_eq!(
                        self.exchange.handle_bytes(client.id, self.now, bytes),
                        bytes.len()
                    );
                    moved = true;
                }
                while let Some(bytes) = self.exchange.poll_transmit(client.id, &mut buf) {
                    assert_eq!(client.session.handle_bytes(self.now, bytes), bytes.len());
                    moved = true;
                    while let Some(event) = client.session.poll_event() {
                        if let Event::Message { .. } = event {
                            let message = client.session.message().expect("the event is about it");
                            match message.msg_type() {
                                ExecutionReport::MSG_TYPE => {
                                    client.reports.push(ExecutionReport::decode(&message).unwrap());
                                }
                                OrderCancelReject::MSG_TYPE => {
                                    client.rejects.push(OrderCancelReject::decode(&message).unwrap());
                                }
                                _ => client.session.refuse(self.now),
                            }
                        }
                    }
                }
                if !moved {
                    break;
                }
            }
        }
    }

    fn send(&mut self, client: usize, msg_type: &[u8], fields: impl FnOnce(&mut Encoder<'_>, &mut Stamp)) {
        let now = self.now;
        self.clients[client]
            .session
            .send(now, msg_type, Again::Resend, fields)
            .expect("logged on");
        self.exchange_bytes();
    }

    fn enter(&mut self, client: usize, order: NewOrderSingle) {
        self.send(client, NewOrderSingle::MSG_TYPE, |e, stamp| {
            order.encode(e, stamp)
        });
    }

    fn replace(&mut self, client: usize, replacement: OrderCancelReplaceRequest) {
        let msg_type = OrderCancelReplaceRequest::MSG_TYPE;
        self.send(client, msg_type, |e, stamp| replacement.encode(e, stamp));
    }

    fn cancel(&mut self, client: usize, request: OrderCancelRequest) {
        self.send(client, OrderCancelRequest::MSG_TYPE, |e, stamp| {
            request.encode(e, stamp)
        });
    }

    fn last_report(&self, client: usize) -> ExecutionReport {
        *self.clients[client].reports.last().expect("a report")
    }

    fn run_until(&mut self, phase: DayPhase) {
        for _ in 0..2_000_000 {
            if self.exchange.phase() == phase {
                return;
            }
            self.turn(20_000);
        }
        panic!("phase {phase:?} is never reached");
    }

    fn run_to_the_end(&mut self) {
        self.run_until(DayPhase::Over);
        for _ in 0..10_000 {
            self.turn(1_000);
        }
        assert!(self.receiver.ended, "an end-of-session packet arrived");
        assert_eq!(
            self.receiver.next,
            self.exchange.published_channels()[0].publisher.next_seq().0,
            "every message arrived"
        );
        self.receiver.books.assert_equals(self.exchange.engine());
    }
}

fn order(id: u64, symbol: &str, side: Side, price: Price, qty: u32, tif: TimeInForce) -> NewOrderSingle {
    NewOrderSingle {
        cl_ord_id: Id::from_number(id),
        symbol: Symbol::new(symbol.as_bytes()).unwrap(),
        side,
        transact_time: START,
        qty: Qty(qty),
        order_type: OrderType::Limit,
        price: Some(price),
        stop: None,
        time_in_force: tif,
        cause: Some(Cause {
            venue: Venue::Nasdaq,
            seq: SeqNo(id * 10),
            recv_ts: START,
        }),
    }
}

#[test]
fn a_day_on_good_lines_rebuilds_the_books_and_ends() {
    let mut world = World::new(config(21, 2_000), ImpairConfig::default(), 0);
    world.run_to_the_end();
    let messages = world.receiver.books.messages;
    assert!(
        (30_000..70_000).contains(&messages),
        "two seconds at 20,000/s and the opening: {messages}"
    );
}

#[test]
fn a_day_on_bad_lines_rebuilds_the_books_with_the_retransmission_server() {
    let impair = ImpairConfig {
        seed: 0,
        loss_ppm: 100_000,
        duplicate_ppm: 20_000,
        reorder_ppm: 50_000,
        reorder_depth: 8,
    };
    let mut world = World::new(config(22, 1_000), impair, 0);
    world.run_to_the_end();
    assert!(world.lines.iter().all(|line| line.counts().lost > 100));
}

#[test]
fn a_client_that_buys_every_millisecond_leaves_two_sided_books_and_every_order_accounted_for() {
    let impair = ImpairConfig {
        loss_ppm: 10_000,
        ..ImpairConfig::default()
    };
    let mut world = World::new(config(23, 1_500), impair, 1);
    world.run_until(DayPhase::Open);
    let mut sent = 0;
    let aapl = InstrumentId(1);
    while world.exchange.phase() == DayPhase::Open {
        for _ in 0..50 {
            world.turn(20_000);
        }
        if world.exchange.phase() != DayPhase::Open {
            break;
        }
        let ask = world.exchange.levels(aapl, Side::Ask).next().expect("an offer");
        let bid = world.exchange.levels(aapl, Side::Bid).next().expect("a bid");
        assert!(bid.price < ask.price);
        assert!(
            world.exchange.levels(aapl, Side::Ask).count() >= 5,
            "the offer side has depth"
        );
        sent += 1;
        let all = u32::try_from(ask.qty.0).unwrap();
        let passing = TimeInForce::ImmediateOrCancel;
        world.enter(0, order(sent, "AAPL", Side::Bid, ask.price, all, passing));
    }
    world.run_to_the_end();
    assert!(sent > 1_000, "{sent}");
    let ledger = world.exchange.ledger();
    assert_eq!(ledger.len() as u64, sent);
    assert!(
        ledger
            .iter()
            .all(|o| matches!(o.outcome, Outcome::Filled | Outcome::Cancelled))
    );
    assert!(ledger.iter().filter(|o| o.outcome == Outcome::Filled).count() as u64 > sent * 9 / 10);
    assert_reports_agree(&world.clients[0].reports, ledger);
    assert!(ledger.iter().all(|o| {
        o.origin
            .cause
            .is_some_and(|c| c.seq.0 == o.cl_ord_id.to_number().unwrap() * 10)
    }));
    assert_eq!(world.exchange.reports_lost(), 0);
}

/// What the reports add up to is what the ledger says.
fn assert_reports_agree(reports: &[ExecutionReport], ledger: &[ClientOrder]) {
    for row in ledger {
        let mine: Vec<_> = reports.iter().filter(|r| r.cl_ord_id == row.cl_ord_id).collect();
        let filled: u32 = mine.iter().map(|r| r.last_qty.0).sum();
        assert_eq!(filled, row.filled.0, "{row:?}");
        let last = mine.last().expect("a report of every order");
        assert_eq!(last.cum_qty, row.filled);
        assert_eq!(last.leaves_qty, Qty(0), "all orders are closed");
        assert_eq!(last.cause, row.origin.cause);
    }
}

#[test]
fn a_clients_order_rests_is_replaced_traded_with_by_the_market_and_cancelled() {
    let mut world = World::new(config(24, 0), ImpairConfig::default(), 1);
    world.run_until(DayPhase::Open);
    let msft = InstrumentId(2);
    let best = |world: &World, side| world.exchange.levels(msft, side).next().unwrap().price;

    // Rests at the best bid and is traded with sooner or later.
    let price = best(&world, Side::Bid);
    world.enter(0, order(1, "MSFT", Side::Bid, price, 50, TimeInForce::Day));
    assert_eq!(
        (world.last_report(0).exec_type, world.last_report(0).ord_status),
        (ExecType::New, OrdStatus::New)
    );
    for _ in 0..500_000 {
        world.turn(20_000);
        if world.last_report(0).ord_status == OrdStatus::Filled {
            break;
        }
    }
    let filled = world.last_report(0);
    assert_eq!(
        (filled.ord_status, filled.cum_qty, filled.avg_px),
        (OrdStatus::Filled, Qty(50), price)
    );

    // Rests far away: reduced, moved, cancelled.
    let far = Price::from_raw(best(&world, Side::Bid).raw() - 40 * 10_000_000);
    world.enter(0, order(2, "MSFT", Side::Bid, far, 300, TimeInForce::Day));
    let replace = |id, orig, price, qty| OrderCancelReplaceRequest {
        cl_ord_id: Id::from_number(id),
        orig_cl_ord_id: Id::from_number(orig),
        order_id: Id::EMPTY,
        symbol: Symbol::new(b"MSFT").unwrap(),
        side: Side::Bid,
        transact_time: START,
        qty: Qty(qty),
        order_type: OrderType::Limit,
        price: Some(price),
        stop: None,
        time_in_force: TimeInForce::Day,
        cause: None,
    };
    world.replace(0, replace(3, 2, far, 200));
    let reduced = world.last_report(0);
    assert_eq!(
        (reduced.exec_type, reduced.leaves_qty),
        (ExecType::Replaced, Qty(200))
    );
    let farther = Price::from_raw(far.raw() - 10_000_000);
    world.replace(0, replace(4, 3, farther, 250));
    let moved = world.last_report(0);
    assert_eq!(
        (moved.exec_type, moved.price, moved.leaves_qty),
        (ExecType::Replaced, Some(farther), Qty(250))
    );
    assert_eq!(
        (moved.cl_ord_id, moved.orig_cl_ord_id),
        (Id::from_number(4), Id::from_number(3))
    );
    let cancel = |id, orig| OrderCancelRequest {
        cl_ord_id: Id::from_number(id),
        orig_cl_ord_id: Id::from_number(orig),
        order_id: Id::EMPTY,
        symbol: Symbol::new(b"MSFT").unwrap(),
        side: Side::Bid,
        transact_time: START,
        qty: Qty(250),
        cause: None,
    };
    world.cancel(0, cancel(5, 4));
    let gone = world.last_report(0);
    assert_eq!(
        (gone.exec_type, gone.ord_status, gone.leaves_qty),
        (ExecType::Canceled, OrdStatus::Canceled, Qty(0))
    );
    assert_eq!(
        (gone.cl_ord_id, gone.orig_cl_ord_id),
        (Id::from_number(5), Id::from_number(4))
    );

    // Requests that come too late, twice, or about nothing.
    let reasons: Vec<_> = [(6, 4), (5, 1), (7, 99)]
        .into_iter()
        .map(|(id, orig)| {
            world.cancel(0, cancel(id, orig));
            match world.clients[0].rejects.last() {
                Some(reject) => reject.reason.unwrap(),
                None => panic!("no reject"),
            }
        })
        .collect();
    assert_eq!(
        reasons,
        [
            cxl_rej_reason::TOO_LATE,
            cxl_rej_reason::DUPLICATE_CL_ORD_ID,
            cxl_rej_reason::UNKNOWN_ORDER
        ]
    );

    world.exchange.stop(world.now);
    world.run_to_the_end();
}

#[test]
fn bad_orders_are_rejected_with_a_reason_and_change_nothing() {
    let mut world = World::new(config(25, 0), ImpairConfig::default(), 1);
    world.turn(1_000);
    let price = Price::from_4dp(1_000_000);
    let day = |id, symbol: &str, price, qty| order(id, symbol, Side::Bid, price, qty, TimeInForce::Day);
    let reason = |world: &mut World, message: NewOrderSingle| {
        let books = world.exchange.books_digest();
        world.enter(0, message);
        assert_eq!(world.exchange.books_digest(), books);
        let report = world.last_report(0);
        assert_eq!(report.ord_status, OrdStatus::Rejected);
        report.ord_rej_reason.unwrap()
    };
    assert_eq!(
        reason(&mut world, day(1, "AAPL", price, 1)),
        ord_rej_reason::EXCHANGE_CLOSED,
        "before the opening"
    );
    world.run_until(DayPhase::Open);
    assert_eq!(
        reason(&mut world, day(2, "NOSUCH", price, 1)),
        ord_rej_reason::UNKNOWN_SYMBOL
    );
    assert_eq!(
        reason(&mut world, day(3, "AAPL", Price::from_4dp(1), 1)),
        ord_rej_reason::OTHER,
        "tick"
    );
    assert_eq!(
        reason(&mut world, day(4, "AAPL", Price::ZERO, 1)),
        ord_rej_reason::EXCEEDS_LIMIT
    );
    assert_eq!(
        reason(&mut world, day(5, "AAPL", price, 0)),
        ord_rej_reason::INCORRECT_QUANTITY
    );
    assert_eq!(
        reason(&mut world, day(5, "AAPL", price, 1)),
        ord_rej_reason::DUPLICATE_ORDER
    );
    world.exchange.stop(world.now);
    assert_eq!(
        reason(&mut world, day(6, "AAPL", price, 1)),
        ord_rej_reason::EXCHANGE_CLOSED,
        "after the close"
    );
    assert_eq!(world.exchange.ledger().len(), 6, "a duplicate is no order");
    assert!(
        world
            .exchange
            .ledger()
            .iter()
            .all(|o| o.outcome == Outcome::Rejected)
    );
    world.run_to_the_end();
}

#[test]
fn open_orders_go_with_their_connection_and_with_the_day() {
    let mut world = World::new(config(26, 0), ImpairConfig::default(), 2);
    world.run_until(DayPhase::Open);
    let far = Price::from_4dp(1_700_000);
    for client in 0..2 {
        world.enter(client, order(1, "AAPL", Side::Bid, far, 100, TimeInForce::Day));
    }
    let outcomes = |world: &World| {
        world
            .exchange
            .ledger()
            .iter()
            .map(|o| o.outcome)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        outcomes(&world),
        [Outcome::Open, Outcome::Open],
        "the same ClOrdID of two clients is two orders"
    );
    world.clients[0].connected = false;
    world.exchange.disconnect(0, world.now);
    assert_eq!(outcomes(&world), [Outcome::Cancelled, Outcome::Open]);
    world.exchange.stop(world.now);
    world.exchange_bytes();
    assert_eq!(outcomes(&world), [Outcome::Cancelled, Outcome::Cancelled]);
    assert_eq!(world.last_report(1).ord_status, OrdStatus::Canceled);
    world.run_to_the_end();
}

#[test]
fn a_snapshot_in_mid_session_and_the_messages_after_it_make_the_books() {
    use tickwire_wire::soupbintcp::{LoginRequest, Packet, split};
    use tickwire_wire::zerocopy::IntoBytes;

    let mut world = World::new(config(27, 0), ImpairConfig::default(), 0);
    world.run_until(DayPhase::Open);
    for _ in 0..20_000 {
        world.turn(20_000);
    }
    assert!(connect(&mut world.exchange, 0, world.now));
    world.exchange.recovery_bytes(
        0,
        Port::SnapshotServer,
        0,
        world.now,
        LoginRequest::new(b"me", b"", b"", 1).unwrap().as_bytes(),
    );
    let (mut stream, mut buf) = (Vec::new(), [0; 1000]);
    while let Some(bytes) = transmit(&mut world.exchange, 0, world.now, &mut buf) {
        stream.extend_from_slice(bytes);
    }
    let (mut at, mut books, mut from) = (0, Builder::default(), None);
    while let Some((packet, length)) = split(&stream[at..]).unwrap() {
        match packet {
            Packet::Sequenced(message) if message[0] == b'G' => {
                from = Some(
                    std::str::from_utf8(&message[1..])
                        .unwrap()
                        .trim()
                        .parse::<u64>()
                        .unwrap(),
                );
            }
            Packet::Sequenced(message) => books.apply(message),
            Packet::LoginAccepted(_) => {}
            other => panic!("{other:?}"),
        }
        at += length;
    }
    assert_eq!(
        from,
        Some(world.exchange.published_channels()[0].publisher.next_seq().0)
    );
    books.assert_equals(world.exchange.engine());

    // The same by replay of the whole session over the stream.
    assert!(connect(&mut world.exchange, 1, world.now));
    let session = ChannelConfig::default().session;
    world.exchange.recovery_bytes(
        0,
        Port::SnapshotServer,
        1,
        world.now,
        LoginRequest::new(b"me", b"", &session, 1).unwrap().as_bytes(),
    );
    let (mut stream, mut replayed) = (Vec::new(), Builder::default());
    while let Some(bytes) = transmit(&mut world.exchange, 1, world.now, &mut buf) {
        stream.extend_from_slice(bytes);
        let mut at = 0;
        while let Some((packet, length)) = split(&stream[at..]).unwrap() {
            if let Packet::Sequenced(message) = packet {
                replayed.apply(message);
            }
            at += length;
        }
        stream.drain(..at);
    }
    replayed.assert_equals(world.exchange.engine());
}

#[test]
fn trades_that_the_venue_breaks_are_told_once_and_the_books_stay() {
    let breaks = BreaksConfig {
        share_ppm: 300_000,
        after_ns: 20 * Nanos::MILLI,
    };
    let config = ExchangeConfig {
        breaks,
        ..config(30, 400)
    };
    let mut world = World::new(config, ImpairConfig::default(), 1);
    world.run_until(DayPhase::Open);
    let mut sent = 0;
    while world.exchange.phase() == DayPhase::Open {
        let ask = world.exchange.levels(InstrumentId(1), Side::Ask).next().unwrap();
        sent += 1;
        let tif = TimeInForce::ImmediateOrCancel;
        world.enter(0, order(sent, "AAPL", Side::Bid, ask.price, 100, tif));
        (0..100).for_each(|_| world.turn(20_000));
    }
    world.run_to_the_end();
    // Executions and breaks of the whole market, and what the client was told of its own.
    let kinds = &world.receiver.books.kinds;
    let trades: u64 = ['E', 'C', 'P'].iter().filter_map(|kind| kinds.get(kind)).sum();
    let broken = kinds[&'B'];
    assert!(broken * 5 > trades && broken * 2 < trades, "{broken} of {trades}");
    let reports = &world.clients[0].reports;
    let (mut told, mut ended) = (0, 0);
    for row in world.exchange.ledger() {
        let mine = || reports.iter().filter(|r| r.cl_ord_id == row.cl_ord_id);
        let of = |kind| mine().filter(move |r| r.exec_type == kind).map(|r| r.last_qty.0);
        assert_eq!(of(ExecType::TradeCancel).sum::<u32>(), row.broken.0);
        assert_eq!(of(ExecType::Trade).sum::<u32>(), row.filled.0 + row.broken.0);
        assert_eq!(mine().next_back().map(|r| r.cum_qty), Some(row.filled));
        told += of(ExecType::TradeCancel).count() as u64;
        ended += u64::from(row.broken.0 > 0 && row.outcome == Outcome::Cancelled);
    }
    assert!(told > 20 && ended > 20, "{told} of {sent} orders, {ended}");
}

#[test]
fn one_seed_is_one_day_however_often_the_clock_is_looked_at() {
    for share_ppm in [0, 200_000] {
        let breaks = BreaksConfig {
            share_ppm,
            after_ns: 50 * Nanos::MILLI,
        };
        same_day_by_any_clock(ExchangeConfig {
            breaks,
            ..config(28, 0)
        });
    }
}

fn same_day_by_any_clock(config: ExchangeConfig) {
    let digest = |step: u64| {
        let mut world = World::new(config.clone(), ImpairConfig::default(), 0);
        while world.now < START.after(1_500 * Nanos::MILLI) {
            world.turn(step);
        }
        (
            world.exchange.published_channels()[0].publisher.next_seq(),
            world.exchange.books_digest(),
        )
    };
    assert_eq!(digest(100_000), digest(300_000));
}

#[test]
fn a_scheduled_day_opens_and_closes_with_auctions_that_clients_take_part_in() {
    let at = |ms: u64| START.0 % Nanos::DAY + ms * Nanos::MILLI;
    let auctions = AuctionTimes {
        opening: Some(at(600)),
        closing: Some((at(900), at(1_000))),
        indicate_ns: 20 * Nanos::MILLI,
        ..AuctionTimes::default()
    };
    let mut world = World::new(
        ExchangeConfig {
            auctions,
            ..config(29, 0)
        },
        ImpairConfig::default(),
        2,
    );
    world.run_until(DayPhase::Open);
    assert!(
        world.now < START.after(600 * Nanos::MILLI),
        "it waits for the opening"
    );
    for listing in world.exchange.listings() {
        let status = world.exchange.engine().trading_status(listing.id);
        assert_eq!(status, Some(TradingStatus::Auction), "no order is taken before");
    }
    let status = |world: &World| world.exchange.engine().trading_status(InstrumentId(1));
    for _ in 0..10_000 {
        world.turn(20_000);
        if world.now >= START.after(500 * Nanos::MILLI) {
            break;
        }
    }
    assert_eq!(status(&world), Some(TradingStatus::Auction));
    let best = |world: &World, side| world.exchange.levels(InstrumentId(1), side).next().unwrap().price;
    let (bid, ask) = (best(&world, Side::Bid), best(&world, Side::Ask));
    // Collected, though they cross.
    world.enter(0, order(1, "AAPL", Side::Bid, ask, 300, TimeInForce::Day));
    world.enter(1, order(1, "AAPL", Side::Ask, bid, 300, TimeInForce::Day));
    for client in 0..2 {
        assert_eq!(world.last_report(client).ord_status, OrdStatus::New);
    }
    let far = Price::from_raw(bid.raw() - 500_000_000);
    let close = |id, side, price| order(id, "AAPL", side, price, 100, TimeInForce::AtTheClose);
    world.enter(0, close(2, Side::Bid, Price::from_raw(ask.raw() + 500_000_000)));
    world.enter(1, close(2, Side::Ask, far));
    world.enter(1, close(3, Side::Bid, far));
    while world.now < START.after(620 * Nanos::MILLI) {
        world.turn(20_000);
    }
    assert_eq!(status(&world), Some(TradingStatus::Trading));
    let filled = |world: &World, client: usize, id: u64| -> (u32, BTreeSet<i64>) {
        let reports = world.clients[client].reports.iter();
        let fills = reports.filter(|r| r.cl_ord_id == Id::from_number(id) && r.exec_type == ExecType::Trade);
        let fills: Vec<_> = fills.collect();
        (
            fills.iter().map(|r| r.last_qty.0).sum(),
            fills.iter().filter_map(|r| r.last_px).map(|p| p.raw()).collect(),
        )
    };
    let (sold, prices) = filled(&world, 1, 1);
    assert_eq!((sold, prices.len()), (300, 1), "one price");
    assert_eq!(filled(&world, 0, 1).1, prices);
    // A call phase, then the close: who is filled is told, what did not trade goes, and so does the day.
    while world.now < START.after(950 * Nanos::MILLI) {
        world.turn(20_000);
    }
    assert_eq!(status(&world), Some(TradingStatus::Auction));
    assert_eq!(world.exchange.phase(), DayPhase::Open);
    world.run_to_the_end();
    // The typed client does not know orders at the close: the ledger does.
    let ledger = world.exchange.ledger();
    let at_close = ledger
        .iter()
        .filter(|o| o.time_in_force == TimeInForce::AtTheClose);
    let came_to: Vec<_> = at_close.map(|o| (o.side, o.filled.0, o.outcome)).collect();
    assert_eq!(
        came_to,
        [
            (Side::Bid, 100, Outcome::Filled),
            (Side::Ask, 100, Outcome::Filled),
            (Side::Bid, 0, Outcome::Cancelled)
        ]
    );
    assert!(
        world
            .exchange
            .ledger()
            .iter()
            .all(|order| order.outcome != Outcome::Open)
    );
}

#[test]
fn orders_at_the_close_take_part_in_a_close_that_nobody_scheduled() {
    let mut world = World::new(config(30, 0), ImpairConfig::default(), 2);
    world.run_until(DayPhase::Open);
    let high = Price::from_4dp(10_000_000);
    let low = Price::from_4dp(100);
    for (client, side, price) in [(0, Side::Bid, high), (1, Side::Ask, low)] {
        world.enter(
            client,
            order(1, "AAPL", side, price, 100, TimeInForce::AtTheClose),
        );
    }
    let outcomes = |world: &World| -> Vec<Outcome> {
        let ledger = world.exchange.ledger().iter();
        ledger.map(|order| order.outcome).collect()
    };
    assert_eq!(outcomes(&world), [Outcome::Open; 2]);
    world.exchange.stop(world.now);
    world.run_to_the_end();
    assert_eq!(outcomes(&world), [Outcome::Filled; 2]);
}

/// Whatever came of a day with a market maker in it.
#[derive(PartialEq, Eq, Debug)]
struct QuotedDay {
    /// Every datagram and every byte to the market maker, in the order they left.
    left: u64,
    /// Of engine, orders, sessions and quotes.
    state: u64,
    books: u64,
    /// Fills, trips of protection, quotes taken in a call phase.
    seen: [u32; 3],
}

/// Quotes of eight instruments in one message, around the best prices; now and then one that trades.
fn quote_eight(
    exchange: &Exchange,
    rng: &mut Rng,
    number: u64,
    resets: bool,
    e: &mut tickwire_fix::Encoder<'_>,
) {
    e.text(117, format!("q{number}").as_bytes());
    e.char(301, b'2');
    if resets {
        e.char(9773, b'Y');
    }
    e.unsigned(296, 1);
    e.text(302, b"s");
    e.unsigned(304, 8);
    e.unsigned(295, 8);
    for entry in 0..8 {
        let at = rng.below(20) as u32;
        let instrument = InstrumentId(1 + at);
        let best = |side| {
            exchange
                .levels(instrument, side)
                .next()
                .map(|level| level.price.raw())
        };
        let mid = best(Side::Bid)
            .zip(best(Side::Ask))
            .map_or(1_000_000_000_000, |(b, a)| (a + b) / 2);
        // In cents.
        let mid = mid / 10_000_000;
        let away = if rng.below(8) == 0 {
            -5
        } else {
            2 + rng.below(10) as i64
        };
        let price = |cents: i64| Price::from_raw(cents.max(1) * 10_000_000);
        e.unsigned(299, entry);
        e.text(55, listings(20)[at as usize].symbol.as_bytes());
        let (bid, ask) = if away < 0 {
            (mid - away, mid - 2 * away)
        } else {
            (mid - away, mid + away)
        };
        e.price(132, price(bid));
        e.price(133, price(ask));
        e.unsigned(134, 1 + rng.below(300));
        e.unsigned(135, 1 + rng.below(300));
    }
}

fn quoted_day(seed: u64) -> QuotedDay {
    let at = |ms: u64| START.0 % Nanos::DAY + ms * Nanos::MILLI;
    let name = CompId::new(b"QUOTER").unwrap();
    let port = FixPort {
        comp_id: name,
        version: Version::Fix44,
        firm: Firm(7),
        reset_on_logon: false,
        cancel_on_disconnect: true,
        cancel_on_missed_heartbeats: false,
        heartbeat_s_max: None,
        cancels_firm: false,
        self_trade: SelfTrade::CancelOldest,
    };
    let limits = Protection {
        window_ns: 50 * Nanos::MILLI,
        contracts: 1_000,
        ..Protection::default()
    };
    let mut exchange = exchange_of(ExchangeConfig {
        auctions: AuctionTimes {
            opening: Some(at(600)),
            closing: Some((at(1_400), at(1_500))),
            indicate_ns: 20 * Nanos::MILLI,
            ..AuctionTimes::default()
        },
        protections: vec![(Firm(7), 0, limits)],
        order_entry: OrderEntryConfig {
            connections: 1,
            max_orders: 10_000,
            sessions: vec![port],
            ..OrderEntryConfig::default()
        },
        ..config(seed, 0)
    });
    let mut session = Session::new(SessionConfig {
        receive_bytes: 64 << 10,
        fields_max: 4096,
        ..SessionConfig::new(Role::Initiator, name, CompId::new(b"EXCHANGE").unwrap())
    });
    assert!(exchange.connect(0, START));
    session.handle_connected(START);
    exchange.open(START);
    let (mut left, mut receiver) = (DefaultHasher::new(), Receiver::default());
    let (mut rng, mut now, mut number, mut is_protected) = (Rng::new(seed), START, 0, false);
    let (mut seen, mut after, mut buf) = ([0_u32; 3], 0, [0; 4096]);
    while after < 10_000 {
        after += u32::from(exchange.phase() == DayPhase::Over);
        now = now.after(20_000);
        exchange.on_time(now);
        if exchange.phase() == DayPhase::Open && now.0.is_multiple_of(2 * Nanos::MILLI) {
            number += 1;
            let resets = std::mem::take(&mut is_protected);
            let mut quotes =
                |e: &mut tickwire_fix::Encoder<'_>| quote_eight(&exchange, &mut rng, number, resets, e);
            session
                .send(now, b"i", Again::Resend, |e, _| quotes(e))
                .expect("logged on");
        }
        let is_call = exchange.engine().trading_status(InstrumentId(1)) == Some(TradingStatus::Auction);
        while let Some(bytes) = session.poll_transmit(&mut buf) {
            assert_eq!(exchange.handle_bytes(0, now, bytes), bytes.len());
        }
        while let Some(bytes) = exchange.poll_transmit(0, &mut buf) {
            bytes.hash(&mut left);
            assert_eq!(session.handle_bytes(now, bytes), bytes.len());
            while let Some(event) = session.poll_event() {
                let Event::Message { .. } = event else { continue };
                let message = session.message().expect("just told");
                let value = |tag| message.find(tag).map(|f| message.value(f));
                let is_trip = value(9775) == Some(b"F");
                is_protected |= is_trip;
                seen[0] += u32::from(value(150) == Some(b"F"));
                seen[1] += u32::from(is_trip);
                seen[2] += u32::from(is_call && value(35) == Some(b"b") && value(297) == Some(b"0"));
            }
        }
        while let Some(datagram) = exchange.poll_datagram(0, now) {
            datagram.bytes.hash(&mut left);
            receiver.on_datagram(datagram.bytes);
        }
    }
    assert!(receiver.ended);
    receiver.books.assert_equals(exchange.engine());
    QuotedDay {
        left: left.finish(),
        state: exchange.state_hash(),
        books: exchange.books_digest(),
        seen,
    }
}

#[test]
fn a_day_of_auctions_and_quotes_is_the_same_day_whenever_it_is_run() {
    let day = quoted_day(32);
    let [fills, trips, in_calls] = day.seen;
    println!("{fills} fills, {trips} trips, {in_calls} mass quotes taken in call phases");
    assert!(fills > 50 && trips > 2 && in_calls > 10, "{day:?}");
    assert_eq!(quoted_day(32), day);
    assert_ne!(quoted_day(33).left, day.left, "another seed is another day");
}
