//! MDP 3.0 from packets to books: a small venue in virtual time, its lines losing packets, its loops and its
//! replay service, against what the venue itself holds. A failing run prints its seed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tickwire_book::naive::NaiveBooks;
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{
    ArbiterConfig, Channel, FeedHandler, FeedState, Line, LoopState, Mdp3Channel, Mdp3Config, Mdp3Decoder,
    Mdp3Depth, Mdp3Feed, Mdp3Recovery, Mdp3Replay, ReplayConfig, ReplayState,
};
use tickwire_market::{
    BookState, Counter, EventFlags, EventKind, EventSink, InstrumentId, Level, MarketEvent, Nanos, Port,
    Price, Side, Symbol, TradingStatus, Venue, Volume,
};
use tickwire_testdata::{self as testdata, Rng};
use tickwire_wire::mdp3::{self, *};

const INSTRUMENTS: i32 = 4;
const DEPTH: usize = 10;
const IMPLIED_DEPTH: usize = 2;
/// Security numbers are sparse.
const SECURITY: i32 = 500_000;
const STEP_NS: u64 = 100 * Nanos::MICRO;

fn price(n: i64) -> Price {
    Price::from_raw(n * 250_000_000)
}

fn wire_price(p: Price) -> Optional<Price9> {
    Some(Price9::of(p)).into()
}

/// Writes one message.
type Encode<'a> = &'a dyn Fn(&mut [u8]) -> Option<usize>;

fn packet(seq: u32, messages: &[Encode<'_>]) -> Vec<u8> {
    let mut bytes = vec![0; 1500];
    let mut builder = PacketBuilder::new(&mut bytes, seq, u64::from(seq) * 1000);
    for message in messages {
        assert!(builder.push(message));
    }
    let length = builder.finish();
    bytes.truncate(length);
    bytes
}

fn root(indicator: u8) -> EventRoot {
    EventRoot {
        transact_time: 77.into(),
        indicator,
    }
}

fn feed(depth: Mdp3Depth, config: ArbiterConfig) -> Mdp3Feed {
    let decoder = Mdp3Config {
        depth,
        instruments_max: 64,
        orders_max: 4096,
        ..Mdp3Config::default()
    };
    FeedHandler::new(config, Mdp3Decoder::new(decoder))
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Resting {
    security: i32,
    side: Side,
    price: Price,
    qty: u64,
    priority: u64,
}

/// One side's levels, best first, keyed so that the best is least: price (bids negated) to quantity and
/// orders.
type Ladder = BTreeMap<i64, (u64, u32)>;

/// The venue: what is true, and the messages that say so.
#[derive(Default)]
struct Exchange {
    seq: u32,
    rpt_seq: BTreeMap<i32, u32>,
    /// By security, side, implied.
    ladders: BTreeMap<(i32, Side, bool), Ladder>,
    orders: BTreeMap<u64, Resting>,
    priority: u64,
    /// Every packet sent, for replay.
    sent: Vec<Vec<u8>>,
}

fn key(side: Side, ticks: i64) -> i64 {
    if side == Side::Bid { -ticks } else { ticks }
}

fn entry_type(side: Side, implied: bool) -> EntryType {
    match (side, implied) {
        (Side::Bid, false) => EntryType::Bid,
        (Side::Ask, false) => EntryType::Offer,
        (Side::Bid, true) => EntryType::ImpliedBid,
        (Side::Ask, true) => EntryType::ImpliedOffer,
    }
}

impl Exchange {
    fn rpt(&mut self, security: i32) -> u32 {
        let n = self.rpt_seq.entry(security).or_default();
        *n += 1;
        *n
    }

    fn publish(&mut self, messages: &[Encode<'_>]) -> Vec<u8> {
        self.seq += 1;
        let bytes = packet(self.seq, messages);
        self.sent.push(bytes.clone());
        bytes
    }

    fn entry(
        &mut self,
        at: (i32, Side, bool),
        action: UpdateAction,
        level: usize,
        row: (i64, (u64, u32)),
    ) -> BookEntry {
        BookEntry {
            price: wire_price(price(key(at.1, row.0))),
            size: Some((row.1.0 as i32).into()).into(),
            security_id: at.0.into(),
            rpt_seq: self.rpt(at.0).into(),
            orders: if at.2 {
                Optional::NULL
            } else {
                Some((row.1.1 as i32).into()).into()
            },
            level: level as u8,
            action: action as u8,
            entry_type: entry_type(at.1, at.2).into(),
            ..BookEntry::BLANK
        }
    }

    /// Changes one side of one book and says how.
    fn level_entries(&mut self, rng: &mut Rng) -> Vec<BookEntry> {
        let side = Side::BOTH[rng.below(2) as usize];
        let at = (
            SECURITY + rng.below(INSTRUMENTS as u64) as i32,
            side,
            rng.chance(1, 4),
        );
        let depth = if at.2 { IMPLIED_DEPTH } else { DEPTH };
        let mut ladder = self.ladders.remove(&at).unwrap_or_default();
        let rows: Vec<_> = ladder.iter().map(|(k, v)| (*k, *v)).take(depth).collect();
        let mut entries = Vec::new();
        let value = (1 + rng.below(500), if at.2 { 0 } else { 1 + rng.below(9) as u32 });
        let middle = 4000 + i64::from(side == Side::Ask) * 20;
        match rng.below(20) {
            0 if !rows.is_empty() => {
                entries.push(self.entry(at, UpdateAction::DeleteThru, 1, rows[0]));
                ladder.clear();
            }
            1 if !rows.is_empty() => {
                let n = rng.below(rows.len() as u64) as usize;
                entries.push(self.entry(at, UpdateAction::DeleteFrom, n + 1, rows[n]));
                ladder.retain(|k, _| rows[..=n].iter().all(|(gone, _)| gone != k));
                entries.extend(self.refill(at, depth, rows.len() - n - 1, &ladder));
            }
            2..=7 if !rows.is_empty() => {
                let n = rng.below(rows.len() as u64) as usize;
                entries.push(self.entry(at, UpdateAction::Delete, n + 1, rows[n]));
                ladder.remove(&rows[n].0);
                entries.extend(self.refill(at, depth, rows.len() - 1, &ladder));
            }
            8..=12 if !rows.is_empty() => {
                let n = rng.below(rows.len() as u64) as usize;
                entries.push(self.entry(at, UpdateAction::Change, n + 1, (rows[n].0, value)));
                ladder.insert(rows[n].0, value);
            }
            13 if rows.len() == 1 && ladder.len() == 1 => {
                let ticks = key(side, middle + rng.below(30) as i64 - 15);
                entries.push(self.entry(at, UpdateAction::Overlay, 1, (ticks, value)));
                ladder = [(ticks, value)].into();
            }
            _ => {
                let ticks = key(side, middle + rng.below(30) as i64 - 15);
                if let Entry::Vacant(free) = ladder.entry(ticks) {
                    free.insert(value);
                    let n = ladder.keys().position(|k| *k == ticks).unwrap();
                    if n < depth {
                        entries.push(self.entry(at, UpdateAction::New, n + 1, (ticks, value)));
                    }
                }
            }
        }
        self.ladders.insert(at, ladder);
        entries
    }

    /// Levels that come into view after others have left.
    fn refill(
        &mut self,
        at: (i32, Side, bool),
        depth: usize,
        shown: usize,
        ladder: &Ladder,
    ) -> Vec<BookEntry> {
        let hidden: Vec<_> = ladder
            .iter()
            .map(|(k, v)| (*k, *v))
            .enumerate()
            .take(depth)
            .skip(shown)
            .collect();
        hidden
            .into_iter()
            .map(|(n, row)| self.entry(at, UpdateAction::New, n + 1, row))
            .collect()
    }

    fn price_packet(&mut self, rng: &mut Rng) -> Vec<u8> {
        let entries: Vec<_> = (0..1 + rng.below(3))
            .flat_map(|_| self.level_entries(rng))
            .collect();
        let security = SECURITY + rng.below(INSTRUMENTS as u64) as i32;
        let volume = VolumeEntry {
            security_id: security.into(),
            rpt_seq: self.rpt(security).into(),
            ..VolumeEntry::BLANK
        };
        self.publish(&[
            &|b| Book::encode(b, &root(indicator::LAST_QUOTE), entries.clone(), []),
            &|b| mdp3::Volume::encode(b, &root(indicator::END_OF_EVENT), [volume]),
        ])
    }

    /// Changes an order; some changes ride on a book message, the others stand alone.
    fn order_packet(&mut self, rng: &mut Rng) -> Vec<u8> {
        let known: Vec<u64> = self.orders.keys().copied().collect();
        let pick = |rng: &mut Rng| known[rng.below(known.len() as u64) as usize];
        let (id, action, order) = match rng.below(10) {
            0..=2 if !known.is_empty() => {
                let id = pick(rng);
                (id, OrderAction::Delete, self.orders.remove(&id).unwrap())
            }
            3..=5 if !known.is_empty() => {
                let id = pick(rng);
                let mut order = self.orders[&id];
                match rng.below(3) {
                    0 => (order.qty, order.priority) = (order.qty + 5, self.next_priority()),
                    1 => {
                        (order.price, order.priority) =
                            (price(4000 + rng.below(20) as i64), self.next_priority())
                    }
                    _ => order.qty = 1 + order.qty / 2,
                }
                self.orders.insert(id, order);
                (id, OrderAction::Update, order)
            }
            _ => {
                let order = Resting {
                    security: SECURITY + rng.below(INSTRUMENTS as u64) as i32,
                    side: Side::BOTH[rng.below(2) as usize],
                    price: price(4000 + rng.below(20) as i64),
                    qty: 1 + rng.below(50),
                    priority: self.next_priority(),
                };
                let id = 0x1_0000_0000 + self.priority;
                self.orders.insert(id, order);
                (id, OrderAction::New, order)
            }
        };
        let priority: Optional<_> = Some(order.priority.into()).into();
        let qty: Optional<_> = Some((order.qty as i32).into()).into();
        if rng.chance(1, 2) {
            let entry = OrderBookEntry {
                order_id: Some(id.into()).into(),
                priority,
                price: wire_price(order.price),
                display_qty: qty,
                security_id: order.security.into(),
                action: action as u8,
                entry_type: entry_type(order.side, false).into(),
            };
            return self.publish(&[&|b| OrderBook::encode(b, &root(indicator::END_OF_EVENT), [entry])]);
        }
        let level = BookEntry {
            price: wire_price(order.price),
            size: Some(1.into()).into(),
            security_id: order.security.into(),
            rpt_seq: self.rpt(order.security).into(),
            level: 1,
            action: UpdateAction::Change as u8,
            entry_type: entry_type(order.side, false).into(),
            ..BookEntry::BLANK
        };
        let order = OrderEntry {
            order_id: id.into(),
            priority,
            display_qty: qty,
            reference_id: Some(1).into(),
            action: action as u8,
        };
        self.publish(&[&|b| Book::encode(b, &root(indicator::END_OF_EVENT), [level], [order])])
    }

    fn next_priority(&mut self) -> u64 {
        self.priority += 1;
        self.priority
    }

    fn heartbeat(&mut self) -> Vec<u8> {
        self.publish(&[&|b| AdminHeartbeat::encode(b, &mdp3::block::NoFields::BLANK)])
    }

    /// The snapshot of one instrument as of now.
    fn snapshot(&self, depth: Mdp3Depth, nth: u32) -> Vec<Vec<u8>> {
        let security = SECURITY + nth as i32;
        match depth {
            Mdp3Depth::ByPrice => vec![self.price_snapshot(security, nth + 1)],
            Mdp3Depth::ByOrder => self.order_snapshot(security, nth + 1),
        }
    }

    fn price_snapshot(&self, security: i32, seq: u32) -> Vec<u8> {
        let root = SnapshotRoot {
            last_seq_processed: self.seq.into(),
            total_reports: (INSTRUMENTS as u32).into(),
            security_id: security.into(),
            rpt_seq: self.rpt_seq.get(&security).copied().unwrap_or(0).into(),
            trading_status: Some(17).into(),
            ..SnapshotRoot::BLANK
        };
        let mut entries = vec![SnapshotEntry {
            entry_type: EntryType::OpenPrice.into(),
            ..SnapshotEntry::BLANK
        }];
        for (at, ladder) in self.ladders.iter().filter(|(at, _)| at.0 == security) {
            let depth = if at.2 { IMPLIED_DEPTH } else { DEPTH };
            // Best last: the positions say where a row belongs, not their order.
            for (n, (k, v)) in ladder
                .iter()
                .take(depth)
                .enumerate()
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
            {
                entries.push(SnapshotEntry {
                    price: wire_price(price(key(at.1, *k))),
                    size: Some((v.0 as i32).into()).into(),
                    orders: if at.2 {
                        Optional::NULL
                    } else {
                        Some((v.1 as i32).into()).into()
                    },
                    level: Some(n as i8 + 1).into(),
                    entry_type: entry_type(at.1, at.2).into(),
                    ..SnapshotEntry::BLANK
                });
            }
        }
        packet(seq, &[&|b| Snapshot::encode(b, &root, entries.clone())])
    }

    fn order_snapshot(&self, security: i32, seq: u32) -> Vec<Vec<u8>> {
        let mut orders: Vec<_> = self
            .orders
            .iter()
            .filter(|(_, o)| o.security == security)
            .collect();
        orders.sort_by_key(|(_, o)| o.priority);
        let mut chunks: Vec<_> = orders.chunks(7).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        let packet_of = |(n, chunk): (usize, &&[(&u64, &Resting)])| {
            let root = SnapshotOrdersRoot {
                last_seq_processed: self.seq.into(),
                total_reports: (INSTRUMENTS as u32).into(),
                security_id: security.into(),
                chunks: (chunks.len() as u32).into(),
                current_chunk: (n as u32 + 1).into(),
                transact_time: 0.into(),
            };
            let entries = chunk.iter().map(|(id, o)| SnapshotOrderEntry {
                order_id: (**id).into(),
                priority: Some(o.priority.into()).into(),
                price: Price9::of(o.price),
                display_qty: (o.qty as i32).into(),
                entry_type: entry_type(o.side, false).into(),
            });
            packet(seq, &[&|b| SnapshotOrders::encode(b, &root, entries.clone())])
        };
        chunks.iter().enumerate().map(packet_of).collect()
    }

    /// What a book must show: prices with quantity and orders, best first.
    fn levels(&self, depth: Mdp3Depth, security: i32, side: Side) -> Vec<Level> {
        let mut sums = Ladder::new();
        if depth == Mdp3Depth::ByOrder {
            for o in self
                .orders
                .values()
                .filter(|o| (o.security, o.side) == (security, side))
            {
                let sum = sums.entry(key(side, o.price.raw())).or_default();
                *sum = (sum.0 + o.qty, sum.1 + 1);
            }
            let level = |(k, v): (&i64, &(u64, u32))| (Price::from_raw(key(side, *k)), *v);
            return sums
                .iter()
                .map(level)
                .map(|(price, v)| Level {
                    price,
                    qty: Volume(v.0),
                    orders: v.1,
                })
                .collect();
        }
        for implied in [false, true] {
            let visible = if implied { IMPLIED_DEPTH } else { DEPTH };
            for (k, v) in self
                .ladders
                .get(&(security, side, implied))
                .into_iter()
                .flatten()
                .take(visible)
            {
                let sum = sums.entry(*k).or_default();
                *sum = (sum.0 + v.0, sum.1 + v.1);
            }
        }
        sums.iter()
            .map(|(k, v)| Level {
                price: price(key(side, *k)),
                qty: Volume(v.0),
                orders: v.1,
            })
            .collect()
    }
}

/// Both kinds of book, fed with the same events.
struct Both {
    fast: Books,
    naive: NaiveBooks,
}

impl Both {
    fn new(depth: Mdp3Depth) -> Both {
        let depth = match depth {
            Mdp3Depth::ByPrice => Depth::ByPrice,
            Mdp3Depth::ByOrder => Depth::ByOrder,
        };
        let config = BooksConfig {
            venue: Venue::Cme,
            depth,
            instruments: 65,
            orders: 8192,
            levels: 1 << 14,
            initial: BookState::Building,
            tracked: false,
        };
        Both {
            fast: Books::new(config),
            naive: NaiveBooks::new(Venue::Cme, depth, 65, BookState::Building),
        }
    }
}

impl EventSink for Both {
    fn on_event(&mut self, event: &MarketEvent) {
        self.fast.on_event(event);
        self.naive.apply(event);
    }
}

/// A replay service that answers the client's bytes.
fn serve(
    replay: &mut Mdp3Replay,
    exchange: &Exchange,
    now: Nanos,
    feed: &mut Mdp3Feed,
    sink: &mut Both,
    rng: &mut Rng,
) {
    replay.handle_connected(now);
    let mut buffer = [0; tcp::REQUEST_SIZE_MAX];
    while let Some(request) = replay.poll_transmit(&mut buffer) {
        let text = String::from_utf8_lossy(request).into_owned();
        let tag = |tag: &str| {
            let field = text
                .split('\x01')
                .find_map(|f| f.strip_prefix(tag)?.strip_prefix('='));
            field.unwrap_or("0").parse::<usize>().unwrap_or(0)
        };
        let mut stream = Vec::new();
        let mut send = |packet: &[u8]| {
            let mut framed = vec![0; packet.len() + 2];
            tcp::frame(packet, &mut framed).unwrap();
            stream.extend(framed);
        };
        if text.contains("35=A\x01") {
            send(&packet(
                1,
                &[&|b| AdminLogin::encode(b, &AdminLoginRoot { heart_bt_int: 30 })],
            ));
        } else if text.contains("35=V\x01") {
            exchange.sent[tag("1182") - 1..tag("1183")]
                .iter()
                .for_each(|packet| send(packet));
            send(&packet(
                2,
                &[&|b| AdminLogout::encode(b, &AdminLogoutRoot::BLANK)],
            ));
        }
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + rng.below(rest.len() as u64) as usize);
            replay.handle_bytes(now, piece, feed, sink);
            rest = after;
        }
    }
    assert_eq!(replay.state(), ReplayState::Complete);
    replay.handle_closed();
}

fn run(seed: u64, depth: Mdp3Depth, loss_percent: u64) -> tickwire_market::Counters {
    println!("seed {seed}");
    let (mut rng, mut exchange, mut books) = (Rng::new(seed), Exchange::default(), Both::new(depth));
    let config = ArbiterConfig {
        snapshot: true,
        buffer_packets: 256,
        line_wait_ns: 2 * STEP_NS,
        request_timeout_ns: 4 * STEP_NS,
        request_attempts: 2,
        request_messages: 2000,
        ..ArbiterConfig::default()
    };
    let mut feed = feed(depth, config);
    let mut recovery = Mdp3Recovery::new(Nanos::SECOND);
    let account = ReplayConfig {
        channel: 310,
        username: b"ME".into(),
        password: b"PW".into(),
        patience_ns: Nanos::SECOND,
    };
    let mut replay = Mdp3Replay::new(account);
    let (mut now, mut turn) = (Nanos(0), 0);
    let mut late: Vec<(Line, Vec<u8>)> = Vec::new();
    for step in 0..2000 {
        now = now.after(STEP_NS);
        let quiet = step >= 1800;
        let datagram = match depth {
            _ if quiet => exchange.heartbeat(),
            Mdp3Depth::ByPrice => exchange.price_packet(&mut rng),
            Mdp3Depth::ByOrder => exchange.order_packet(&mut rng),
        };
        let both = rng.chance(loss_percent, 300) && !quiet; // a burst takes both lines
        for line in [Line::A, Line::B] {
            match rng.below(100) {
                n if !quiet && (both || n < loss_percent) => {}
                n if !quiet && n > 95 => late.push((line, datagram.clone())),
                _ => feed.on_packet(now, line, &datagram, &mut books),
            }
        }
        if rng.chance(1, 3) {
            late.drain(..)
                .for_each(|(line, datagram)| feed.on_packet(now, line, &datagram, &mut books));
        }
        feed.handle_timeout(now, &mut books);
        while let Some(range) = feed.poll_missing() {
            if rng.chance(1, 2) && replay.ask(range) {
                serve(&mut replay, &exchange, now, &mut feed, &mut books, &mut rng);
            }
        }
        for packet in exchange.snapshot(depth, turn) {
            if quiet || !rng.chance(loss_percent, 100) {
                recovery.on_snapshots(now, &packet, &mut feed, &mut books);
            }
        }
        turn = (turn + 1) % INSTRUMENTS as u32;
    }
    assert_eq!(
        (feed.state(), feed.next_seq().0),
        (FeedState::Live, u64::from(exchange.seq) + 1)
    );
    for security in SECURITY..SECURITY + INSTRUMENTS {
        let Some(id) = feed.decoder().instrument_of(security) else {
            panic!("{security} never seen")
        };
        let book = books.fast.book(id).unwrap();
        assert_eq!(book.state(), BookState::Live, "{security}");
        for side in Side::BOTH {
            let expected = exchange.levels(depth, security, side);
            assert_eq!(
                book.levels(side).collect::<Vec<_>>(),
                expected,
                "{security} {side:?}"
            );
            assert_eq!(
                books.naive.levels(id, side),
                expected,
                "{security} {side:?}, naive"
            );
            for level in expected.iter().filter(|_| depth == Mdp3Depth::ByOrder) {
                let mut queue: Vec<_> = exchange.orders.iter().collect();
                queue.retain(|(_, o)| (o.security, o.side, o.price) == (security, side, level.price));
                queue.sort_by_key(|(_, o)| o.priority);
                let queue: Vec<_> = queue.iter().map(|(id, o)| (**id, o.qty as u32)).collect();
                let ours = books.naive.queue(id, side, level.price);
                assert_eq!(
                    ours.iter().map(|(id, qty)| (id.0, *qty)).collect::<Vec<_>>(),
                    queue
                );
            }
        }
    }
    assert_eq!(books.fast.state_hash(), books.naive.state_hash());
    feed.counters()
}

#[test]
fn books_equal_the_venues_whatever_is_lost() {
    let mut snapshots = 0;
    for seed in 1..=12 {
        for depth in [Mdp3Depth::ByPrice, Mdp3Depth::ByOrder] {
            let counters = run(seed, depth, 2 * (seed % 6));
            snapshots += counters.get(Counter::Snapshots);
            assert_eq!(counters.get(Counter::Malformed), 0);
            if seed % 6 == 0 {
                assert_eq!(counters.get(Counter::MessagesLost), 0);
            }
        }
    }
    println!("{snapshots} snapshots");
    assert!(snapshots > 10);
}

#[test]
fn without_snapshots_books_are_learned_from_live_entries() {
    let (mut healed, mut checked) = (0, 0);
    for seed in 1..=8 {
        println!("seed {seed}");
        let (mut rng, mut exchange) = (Rng::new(seed), Exchange::default());
        let mut books = Both::new(Mdp3Depth::ByPrice);
        let config = ArbiterConfig {
            snapshot: false,
            request_attempts: 0,
            line_wait_ns: STEP_NS,
            ..ArbiterConfig::default()
        };
        let decoder = Mdp3Decoder::new(Mdp3Config {
            instruments_max: 64,
            natural_refresh: true,
            ..Mdp3Config::default()
        });
        let replay = Mdp3Channel::replay_config(310, b"ME", b"PW");
        let mut channel = Mdp3Channel::new(config, decoder, replay, Nanos::SECOND);
        let mut now = Nanos(0);
        for step in 0..4000 {
            now = now.after(STEP_NS);
            let datagram = exchange.price_packet(&mut rng);
            if step < 100 || !rng.chance(1, 200) {
                let mut sink = |e: &MarketEvent| {
                    healed += u32::from(e.kind == EventKind::Recovered && e.instrument.0 > 0);
                    books.on_event(e);
                };
                channel.on_datagram(now, Port::Live, Line::A, &datagram, &mut sink);
                channel.handle_timeout(now, &mut sink);
            }
            if u64::from(exchange.seq) + 1 != channel.next_seq().0 {
                continue;
            }
            for security in SECURITY..SECURITY + INSTRUMENTS {
                let Some(id) = channel.feed().decoder().instrument_of(security) else {
                    continue;
                };
                let book = books.fast.book(id).unwrap();
                if book.state() == BookState::Live {
                    checked += 1;
                    for side in Side::BOTH {
                        let ours: Vec<_> = book.levels(side).collect();
                        let theirs = exchange.levels(Mdp3Depth::ByPrice, security, side);
                        assert_eq!(ours, theirs, "step {step}, {security} {side:?}");
                    }
                }
            }
        }
        assert_eq!(books.fast.state_hash(), books.naive.state_hash());
    }
    println!("{healed} healed, {checked} books compared");
    assert!(healed > 100 && checked > 1000);
}

#[test]
fn the_end_of_an_event_that_comes_alone_is_told() {
    let mut feed = feed(Mdp3Depth::ByPrice, ArbiterConfig::default());
    let entry = BookEntry {
        price: wire_price(price(4000)),
        size: Some(1.into()).into(),
        security_id: 7.into(),
        rpt_seq: 1.into(),
        level: 1,
        action: 0,
        entry_type: EntryType::Bid.into(),
        ..BookEntry::BLANK
    };
    let ends = |b: &mut [u8]| Book::encode(b, &root(indicator::END_OF_EVENT), [], []);
    let open = packet(
        1,
        &[&|b| Book::encode(b, &root(indicator::LAST_QUOTE), [entry], [])],
    );
    let mut said = |datagram: &[u8]| {
        let out = events(&mut feed, datagram);
        out.iter()
            .map(|e| (e.kind, e.instrument.0, e.flags))
            .collect::<Vec<_>>()
    };
    assert_eq!(said(&open), [(EventKind::Level, 1, EventFlags::NONE)]);
    assert_eq!(
        said(&packet(2, &[&ends])),
        [(EventKind::EndOfGroup, 1, EventFlags::LAST)]
    );
    assert_eq!(said(&packet(3, &[&ends])), []);
    // Two events in one packet: each has its end.
    let next = |rpt_seq: u32| BookEntry {
        rpt_seq: rpt_seq.into(),
        size: Some((rpt_seq as i32).into()).into(),
        action: 1,
        ..entry
    };
    let both = packet(
        4,
        &[
            &|b| Book::encode(b, &root(indicator::END_OF_EVENT), [next(2)], []),
            &|b| Book::encode(b, &root(indicator::LAST_QUOTE), [next(3)], []),
            &ends,
        ],
    );
    assert_eq!(said(&both), [(EventKind::Level, 1, EventFlags::LAST); 2]);
}

/// Collects what comes out.
fn events(feed: &mut Mdp3Feed, datagram: &[u8]) -> Vec<MarketEvent> {
    let mut events = Vec::new();
    feed.on_packet(Nanos(1), Line::A, datagram, &mut |e: &MarketEvent| {
        events.push(*e)
    });
    events.retain(|e| e.kind != EventKind::Recovered);
    events
}

fn future(security: i32, symbol: &[u8], group: &[u8], total: u32) -> FutureRoot {
    FutureRoot {
        total_reports: Some(total.into()).into(),
        security_update_action: tickwire_wire::layout::Char(b'A'),
        security_group: Text::new(group).unwrap(),
        symbol: Text::new(symbol).unwrap(),
        security_id: security.into(),
        min_price_increment: Price9::of(price(1)),
        ..FutureRoot::BLANK
    }
}

#[test]
fn definitions_fill_the_directory_and_the_filter() {
    let config = Mdp3Config {
        symbols: Some(vec![Symbol::new(b"ESZ6").unwrap()]),
        ..Mdp3Config::default()
    };
    let mut feed: Mdp3Feed = FeedHandler::new(ArbiterConfig::default(), Mdp3Decoder::new(config));
    let mut recovery = Mdp3Recovery::new(1);
    let (es, nq) = (future(-9, b"ESZ6", b"ES", 2), future(1 << 30, b"NQZ6", b"NQ", 2));
    let mut seen = Vec::new();
    for (seq, definition) in [(1, es), (2, nq)] {
        assert_ne!(Mdp3Recovery::definitions(&feed), LoopState::Done(feed.next_seq()));
        let datagram = packet(seq, &[&|b| Future::encode(b, &definition, [], [], [], [])]);
        recovery.on_definitions(Nanos(1), &datagram, &mut feed, &mut |e: &MarketEvent| {
            seen.push((e.kind, e.instrument))
        });
    }
    assert_eq!(seen, [(EventKind::Definition, InstrumentId(1))]);
    assert_eq!(Mdp3Recovery::definitions(&feed), LoopState::Done(feed.next_seq()));
    let found = feed.filter().find(&Symbol::new(b"ESZ6").unwrap()).unwrap();
    assert_eq!(
        (found, feed.decoder().instrument_of(-9)),
        (InstrumentId(1), Some(InstrumentId(1)))
    );
    assert_eq!(feed.filter().instrument(found).unwrap().tick, price(1));

    let trade = |security: i32| TradeEntry {
        price: Price9::of(price(4000)),
        size: 3.into(),
        security_id: security.into(),
        rpt_seq: 1.into(),
        aggressor_side: Some(2).into(),
        trade_entry_id: Some(88.into()).into(),
        ..TradeEntry::BLANK
    };
    let datagram = packet(
        1,
        &[&|b| TradeSummary::encode(b, &root(0x81), [trade(1 << 30), trade(-9)], [])],
    );
    let out = events(&mut feed, &datagram);
    assert_eq!(out.len(), 1);
    let trade = &out[0];
    assert_eq!(
        (trade.kind, trade.instrument, trade.side),
        (EventKind::Trade, InstrumentId(1), Side::Ask)
    );
    assert_eq!(
        (trade.price, trade.qty, trade.ref_id),
        (price(4000), Volume(3), 88)
    );
    assert_eq!(
        (trade.flags, trade.seq.0, trade.venue_ts),
        (EventFlags::LAST, 1, Nanos(77))
    );
    assert_eq!(feed.counters().get(Counter::MessagesFiltered), 1);
}

#[test]
fn a_status_of_a_group_reaches_each_of_its_instruments() {
    let mut feed = feed(Mdp3Depth::ByPrice, ArbiterConfig::default());
    for (seq, definition) in [
        future(1, b"ESZ6", b"ES", 3),
        future(2, b"ESH7", b"ES", 3),
        future(3, b"NQZ6", b"NQ", 3),
    ]
    .iter()
    .enumerate()
    {
        let datagram = packet(
            seq as u32 + 1,
            &[&|b| Future::encode(b, definition, [], [], [], [])],
        );
        assert_eq!(events(&mut feed, &datagram)[0].kind, EventKind::Definition);
    }
    let halt = SecurityStatusRoot {
        security_group: Text::new(b"ES").unwrap(),
        trading_status: Some(2).into(),
        halt_reason: 1,
        indicator: indicator::END_OF_EVENT,
        ..SecurityStatusRoot::BLANK
    };
    let out = events(&mut feed, &packet(4, &[&|b| SecurityStatus::encode(b, &halt)]));
    let said: Vec<_> = out
        .iter()
        .map(|e| (e.instrument.0, e.status, e.code[0], e.flags))
        .collect();
    let halted = |id, flags| (id, TradingStatus::Halted, b'1', flags);
    assert_eq!(said, [halted(1, EventFlags::NONE), halted(2, EventFlags::LAST)]);
    let one = SecurityStatusRoot {
        security_id: Some(3.into()).into(),
        trading_status: Some(17).into(),
        ..halt
    };
    let out = events(&mut feed, &packet(5, &[&|b| SecurityStatus::encode(b, &one)]));
    assert_eq!(
        (out.len(), out[0].instrument.0, out[0].status),
        (1, 3, TradingStatus::Trading)
    );
    let unchanged = SecurityStatusRoot {
        trading_status: Some(103).into(),
        ..halt
    };
    assert_eq!(
        events(
            &mut feed,
            &packet(6, &[&|b| SecurityStatus::encode(b, &unchanged)])
        ),
        []
    );
}

#[test]
fn a_hole_in_an_instruments_numbers_makes_its_book_stale_and_no_other() {
    let mut feed = feed(Mdp3Depth::ByPrice, ArbiterConfig::default());
    let entry = |security: i32, rpt_seq: u32, level| BookEntry {
        price: wire_price(price(4000 - i64::from(level))),
        size: Some(1.into()).into(),
        security_id: security.into(),
        rpt_seq: rpt_seq.into(),
        level,
        action: 0,
        entry_type: EntryType::Bid.into(),
        ..BookEntry::BLANK
    };
    let mut take = |seq, entries: &[BookEntry]| {
        let datagram = packet(
            seq,
            &[&|b| Book::encode(b, &root(0x84), entries.iter().copied(), [])],
        );
        let out = events(&mut feed, &datagram);
        out.iter().map(|e| (e.kind, e.instrument.0)).collect::<Vec<_>>()
    };
    assert_eq!(
        take(1, &[entry(7, 1, 1), entry(8, 1, 1)]),
        [(EventKind::Level, 1), (EventKind::Level, 2)]
    );
    assert_eq!(
        take(2, &[entry(7, 3, 2)]),
        [(EventKind::Gap, 1), (EventKind::Level, 1)]
    );
    assert_eq!(
        take(3, &[entry(8, 2, 2), entry(8, 2, 2)]),
        [(EventKind::Level, 2)]
    );
    // A level behind one that is not there.
    assert_eq!(take(4, &[entry(8, 3, 9)]), [(EventKind::Gap, 2)]);
    assert_eq!(feed.counters().get(Counter::Malformed), 1);
}

#[test]
fn a_channel_reset_clears_everything() {
    let mut feed = feed(Mdp3Depth::ByPrice, ArbiterConfig::default());
    let reset = packet(
        1,
        &[&|b| ChannelReset::encode(b, &root(0x80), [ChannelResetEntry { appl_id: 310.into() }])],
    );
    let out = events(&mut feed, &reset);
    assert_eq!(
        (out.len(), out[0].kind, out[0].instrument),
        (1, EventKind::Clear, InstrumentId::WHOLE_FEED)
    );
}

#[tickwire_testdata::recorded_data("captures/packets/Cme/Mdp3.Sbe.v1.9")]
#[test]
fn recorded_packets_yield_events_of_a_feed_joined_in_mid_session() {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for file in testdata::files(&testdata::captures("packets/Cme/Mdp3.Sbe.v1.9"), "pcap") {
        let config = ArbiterConfig {
            start: tickwire_feed::Start::Here,
            ..ArbiterConfig::default()
        };
        for depth in [Mdp3Depth::ByPrice, Mdp3Depth::ByOrder] {
            let mut feed = feed(depth, config.clone());
            for payload in testdata::pcap_payloads(&file) {
                for e in events(&mut feed, &payload) {
                    assert!(e.venue_ts.0 > 1_536_000_000_000_000_000);
                    *kinds.entry(format!("{depth:?} {:?}", e.kind)).or_default() += 1;
                }
            }
            assert_eq!(feed.counters().get(Counter::MessagesUnknown), 0);
        }
    }
    println!("{kinds:?}");
    assert!(kinds["ByOrder Modify"] + kinds["ByOrder Add"] > 0 && kinds["ByPrice Trade"] == 2);
}

#[test]
fn corrupted_packets_and_snapshots_never_break_the_feed() {
    let vectors = testdata::vectors("mdp3");
    for depth in [Mdp3Depth::ByPrice, Mdp3Depth::ByOrder] {
        let (mut rng, mut feed) = (
            Rng::new(99),
            feed(
                depth,
                ArbiterConfig {
                    snapshot: true,
                    ..ArbiterConfig::default()
                },
            ),
        );
        let (mut recovery, mut books) = (Mdp3Recovery::new(1), Both::new(depth));
        for seq in 1..50_000_u32 {
            let mut bytes = vectors[rng.below(vectors.len() as u64) as usize].bytes.clone();
            let flips = rng.below(4);
            for _ in 0..flips {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            if let Some(number) = bytes.first_chunk_mut::<4>().filter(|_| rng.chance(9, 10)) {
                *number = seq.to_le_bytes();
            }
            match rng.below(3) {
                0 => recovery.on_snapshots(Nanos(seq.into()), &bytes, &mut feed, &mut books),
                1 => recovery.on_definitions(Nanos(seq.into()), &bytes, &mut feed, &mut books),
                _ => feed.on_packet(Nanos(seq.into()), Line::A, &bytes, &mut books),
            }
        }
        assert_eq!(books.fast.state_hash(), books.naive.state_hash(), "seed 99");
    }
}

/// What was said, in order.
#[derive(Default)]
struct Said(Vec<MarketEvent>);

impl EventSink for Said {
    fn on_event(&mut self, event: &MarketEvent) {
        self.0.push(*event);
    }
}

/// An offer enters a book that is full and pushes its last level out; when it leaves, that is sent again. By
/// order there are no levels.
#[test]
fn a_twin_has_a_book_that_is_full() {
    let (id, best) = (InstrumentId(3), Price::from_4dp(99_9800));
    for (depth, told) in [(Mdp3Depth::ByPrice, 2), (Mdp3Depth::ByOrder, 1)] {
        let decoder = Mdp3Decoder::new(Mdp3Config {
            depth,
            ..Mdp3Config::default()
        });
        let replay = Mdp3Channel::replay_config(310, b"ME", b"PW");
        let channel = Mdp3Channel::new(ArbiterConfig::default(), decoder, replay, Nanos::SECOND);
        let mut twin = channel.twin(id, Price::from_raw(i64::MAX)).expect("there is one");
        assert!(twin.play(Nanos(1), &mut Said::default()), "whatever the price");
        let mut twin = channel.twin(id, best).expect("there is one");
        for round in 0..10_000 {
            let mut said = Said::default();
            assert!(twin.play(Nanos(1 + round * 10_000), &mut said));
            let events = said.0;
            let is_first = round == 0 && told == 2;
            assert_eq!(
                events.len(),
                2 * told - usize::from(is_first),
                "round {round}: {events:?}"
            );
            if depth == Mdp3Depth::ByOrder {
                let kinds = [events[0].kind, events[1].kind];
                assert_eq!(kinds, [EventKind::Add, EventKind::Delete]);
                assert_eq!(events[0].order_id, events[1].order_id);
                continue;
            }
            assert!(
                events
                    .iter()
                    .all(|event| (event.instrument, event.side) == (id, Side::Ask))
            );
            let levels = events.iter().map(|event| (event.kind, event.price, event.qty.0));
            let level = |price, qty| (EventKind::Level, price, qty);
            let last = Price::from_raw(best.raw() + 2 * Price::from_4dp(500).raw());
            let all = [level(last, 0), level(best, 100), level(best, 0), level(last, 100)];
            assert!(
                levels.eq(all.into_iter().skip(usize::from(is_first))),
                "{events:?}"
            );
        }
        let counters = twin.channel().counters();
        let wrong = [Counter::Malformed, Counter::Gaps].map(|counter| counters.get(counter));
        assert_eq!(wrong, [0, 0], "{depth:?}");
        assert_eq!(twin.channel().state(), FeedState::Live);
    }
}

/// What a listener that forgets at a clear of the whole feed, as `Conductor` does, has of an instrument.
fn last_status_since_the_clear(events: &[MarketEvent], id: InstrumentId) -> Option<TradingStatus> {
    let is_clear = |e: &MarketEvent| e.kind == EventKind::Clear && e.instrument == InstrumentId::WHOLE_FEED;
    let from = events.iter().rposition(is_clear).map_or(0, |at| at + 1);
    let of_it = |e: &&MarketEvent| e.kind == EventKind::Status && e.instrument == id;
    events[from..].iter().rfind(of_it).map(|e| e.status)
}

#[test]
fn a_halt_that_lasts_is_said_again_behind_the_clear_of_a_snapshot() {
    let config = ArbiterConfig {
        start: tickwire_feed::Start::Snapshot,
        snapshot: true,
        request_attempts: 0,
        ..ArbiterConfig::default()
    };
    for depth in [Mdp3Depth::ByPrice, Mdp3Depth::ByOrder] {
        let (mut feed, mut recovery) = (feed(depth, config.clone()), Mdp3Recovery::new(1));
        let mut said = Vec::new();
        // A late start: the definition loop says that it is halted, before the snapshot loop begins.
        let halted = FutureRoot {
            trading_status: Some(2).into(),
            ..future(7, b"ESZ6", b"ES", 1)
        };
        let defined = packet(1, &[&|b| Future::encode(b, &halted, [], [], [], [])]);
        let mut sink = |e: &MarketEvent| said.push(*e);
        recovery.on_definitions(Nanos(1), &defined, &mut feed, &mut sink);
        let beat = packet(
            10,
            &[&|b| AdminHeartbeat::encode(b, &mdp3::block::NoFields::BLANK)],
        );
        feed.on_packet(Nanos(2), Line::A, &beat, &mut sink);
        let root = SnapshotRoot {
            last_seq_processed: 10.into(),
            total_reports: 1.into(),
            security_id: 7.into(),
            rpt_seq: 3.into(),
            trading_status: Some(2).into(),
            ..SnapshotRoot::BLANK
        };
        let of_price = packet(1, &[&|b| Snapshot::encode(b, &root, [])]);
        recovery.on_snapshots(Nanos(3), &of_price, &mut feed, &mut sink);
        if depth == Mdp3Depth::ByOrder {
            let root = SnapshotOrdersRoot {
                last_seq_processed: 10.into(),
                total_reports: 1.into(),
                security_id: 7.into(),
                chunks: 1.into(),
                current_chunk: 1.into(),
                transact_time: 0.into(),
            };
            let of_orders = packet(2, &[&|b| SnapshotOrders::encode(b, &root, [])]);
            recovery.on_snapshots(Nanos(4), &of_orders, &mut feed, &mut sink);
        }
        assert_eq!(feed.state(), FeedState::Live, "{depth:?}");
        assert_eq!(
            last_status_since_the_clear(&said, InstrumentId(1)),
            Some(TradingStatus::Halted),
            "{depth:?}"
        );
    }
}

#[test]
fn a_markets_best_offer_is_no_level_and_spoils_no_other_entry_of_its_message() {
    let mut feed = feed(Mdp3Depth::ByPrice, ArbiterConfig::default());
    let entry = |security: i32, rpt_seq: u32, entry_type: EntryType| BookEntry {
        price: wire_price(price(4000)),
        size: Some(1.into()).into(),
        security_id: security.into(),
        rpt_seq: rpt_seq.into(),
        level: 1,
        action: 0,
        entry_type: entry_type.into(),
        ..BookEntry::BLANK
    };
    let mut take = |seq, entries: &[BookEntry]| {
        let datagram = packet(
            seq,
            &[&|b| Book::encode(b, &root(0x84), entries.iter().copied(), [])],
        );
        let out = events(&mut feed, &datagram);
        out.iter().map(|e| (e.kind, e.instrument.0)).collect::<Vec<_>>()
    };
    assert_eq!(
        take(1, &[entry(7, 1, EntryType::Bid), entry(8, 1, EntryType::Bid)]),
        [(EventKind::Level, 1), (EventKind::Level, 2)]
    );
    assert_eq!(
        take(
            2,
            &[
                entry(7, 2, EntryType::MarketBestOffer),
                entry(8, 2, EntryType::Offer)
            ]
        ),
        [(EventKind::Level, 2)]
    );
    assert_eq!(take(3, &[entry(7, 3, EntryType::Offer)]), [(EventKind::Level, 1)]);
    assert_eq!(feed.counters().get(Counter::Malformed), 0);
}

/// Numbers begin anew at the weekend; the loop says last week's for a while. A snapshot that ends beyond
/// everything the lines have told of is none: taken, it would have every packet up to there count as old.
#[test]
fn a_snapshot_of_last_week_is_not_taken_for_this_one() {
    let config = ArbiterConfig {
        start: tickwire_feed::Start::Snapshot,
        snapshot: true,
        request_attempts: 0,
        ..ArbiterConfig::default()
    };
    for depth in [Mdp3Depth::ByPrice, Mdp3Depth::ByOrder] {
        let (mut feed, mut recovery) = (feed(depth, config.clone()), Mdp3Recovery::new(1));
        let mut books = Both::new(depth);
        let root_of = |last: u32, rpt_seq: u32| SnapshotRoot {
            last_seq_processed: last.into(),
            total_reports: 1.into(),
            security_id: 7.into(),
            rpt_seq: rpt_seq.into(),
            ..SnapshotRoot::BLANK
        };
        let mut load = |feed: &mut Mdp3Feed, books: &mut Both, now, last: u32, rpt_seq| {
            let root = root_of(last, rpt_seq);
            let snapshot = match depth {
                Mdp3Depth::ByPrice => packet(1, &[&|b| Snapshot::encode(b, &root, [])]),
                Mdp3Depth::ByOrder => {
                    let root = SnapshotOrdersRoot {
                        last_seq_processed: last.into(),
                        total_reports: 1.into(),
                        security_id: 7.into(),
                        chunks: 1.into(),
                        current_chunk: 1.into(),
                        transact_time: 0.into(),
                    };
                    packet(1, &[&|b| SnapshotOrders::encode(b, &root, [])])
                }
            };
            recovery.on_snapshots(now, &snapshot, feed, books);
        };
        let beat = |seq| {
            packet(
                seq,
                &[&|b| AdminHeartbeat::encode(b, &mdp3::block::NoFields::BLANK)],
            )
        };
        for line in [Line::A, Line::B] {
            feed.on_packet(Nanos(1), line, &beat(5_000_000), &mut books);
        }
        load(&mut feed, &mut books, Nanos(2), 5_000_000, 900);
        assert_eq!(feed.state(), FeedState::Live);
        let monday = Nanos(40 * 3600 * Nanos::SECOND);
        for seq in 1..=8 {
            for line in [Line::A, Line::B] {
                feed.on_packet(monday, line, &beat(seq), &mut books);
            }
        }
        assert!(
            feed.wants_snapshot(),
            "its first packets told that the numbers begin anew"
        );
        load(&mut feed, &mut books, monday, 5_000_000, 900);
        load(&mut feed, &mut books, monday, 8, 0);
        let bid = BookEntry {
            price: wire_price(price(4000)),
            size: Some(1.into()).into(),
            security_id: 7.into(),
            rpt_seq: 1.into(),
            level: 1,
            entry_type: EntryType::Bid.into(),
            ..BookEntry::BLANK
        };
        let order = OrderEntry {
            order_id: 70.into(),
            priority: Some(1.into()).into(),
            display_qty: Some(1.into()).into(),
            reference_id: Some(1).into(),
            action: OrderAction::New as u8,
        };
        let added = packet(9, &[&|b| Book::encode(b, &root(0x84), [bid], [order])]);
        for line in [Line::A, Line::B] {
            feed.on_packet(monday, line, &added, &mut books);
        }
        assert_eq!(
            (feed.state(), feed.next_seq().0),
            (FeedState::Live, 10),
            "{depth:?}"
        );
        let book = books.fast.book(InstrumentId(1)).unwrap();
        assert_eq!(
            book.best(Side::Bid).map(|level| level.qty),
            Some(Volume(1)),
            "{depth:?}"
        );
    }
}
