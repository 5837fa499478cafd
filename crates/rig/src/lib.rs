//! A test rig: a simulated venue and a receiving channel, joined by a network that loses, doubles and delays,
//! all in virtual time and without a socket. One seed, one run.
//!
//! ```text
//!  Exchange ─► Publisher ─► Impair (line A) ─► ┌─────────┐
//!      │          ▲   └───► Impair (line B) ─► │ Channel │ ─► Books
//!      │          └── requests, connections ─► └─────────┘      │
//!      └────────────── levels in the end  ══════ compared ══════┘
//! ```
//! [`run`] drives a whole day and checks, at every quiet moment it is asked to and in the end, that the
//! receiver's books are the venue's. Beside them go naive books, and copies that hear levels only: the same
//! after every event.
//!
//! ```
//! use tickwire_book::Depth;
//! use tickwire_exchange::{CqsPublisher, CqsPublisherConfig, listings};
//! use tickwire_feed::{CqsChannel, CqsDecoder, CqsFeed, SipConfig};
//! use tickwire_rig::{RigConfig, run};
//!
//! let listings = listings(5);
//! let publisher = CqsPublisher::new(CqsPublisherConfig::default(), &listings);
//! let feed = CqsFeed::new(CqsChannel::arbiter_config(), CqsDecoder::new(&SipConfig::default()));
//! let day = RigConfig { duration_ms: 50, ..RigConfig::default() };
//! // Panics, with the seed, if a book of the receiver is not the venue's in the end.
//! let outcome = run(&day, &listings, Box::new(publisher), CqsChannel::new(feed), Depth::ByPrice);
//! assert_eq!(outcome.events["Definition"], 5);
//! ```
#![forbid(unsafe_code)]

pub mod feeds;
mod forged;
mod moving_offer;
pub mod recorded;
mod subscriptions;
mod twin;

pub use forged::{Forger, Forgery, Numbers};
pub use moving_offer::MovingOffer;
pub use subscriptions::{Changed, Changes};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use subscriptions::{Guarded, Script};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_exchange::{
    AuctionTimes, BreaksConfig, DayPhase, Engine, Exchange, ExchangeConfig, FlowConfig, Impair, ImpairConfig,
    LineSet, Listener, Listing, NewOrder, OrderEntryConfig, OrderKinds, PaceConfig, PublishedChannel,
    Publisher,
};
use tickwire_feed::{Channel, FeedState, Line};
use tickwire_market::{
    BookState, Counter, Counters, EventKind, EventSink, InstrumentId, Level, MarketEvent, MessageType, Nanos,
    OrderType, Port, Price, Qty, Side, TimeInForce, TradingStatus, Transport, Upcoming,
};
use tickwire_testdata::Rng;

use twin::Twin;

/// 2026-01-05 14:30 UTC, 09:30 in New York.
pub const START: Nanos = Nanos(1_767_623_400 * Nanos::SECOND);

/// A day and its troubles.
#[derive(Clone, Debug)]
pub struct RigConfig {
    /// Of order flow and impairments.
    pub seed: u64,
    /// Messages per second over all channels.
    pub rate: u32,
    /// Length of continuous trading, milliseconds.
    pub duration_ms: u64,
    /// What happens to the datagrams of each line, of every multicast port. The seed is set per line.
    pub impair: ImpairConfig,
    /// Share of requests by datagram that are dropped, parts per million.
    pub requests_lost_ppm: u32,
    /// Whether the receiver may connect to the server of a stream port.
    pub connects: bool,
    /// Share of reads of a connection that find it cut, parts per million.
    pub cuts_ppm: u32,
    /// The receiver joins this long after the venue's opening, milliseconds.
    pub joins_after_ms: u64,
    /// From a request by datagram to its answer, and from wanting a connection to having it, nanoseconds.
    pub round_trip_ns: u64,
    /// Bytes of one read of a connection: small ones cut messages everywhere.
    pub read_max: usize,
    /// Resting orders of all instruments together.
    pub max_live: u32,
    /// Icebergs, post-only orders, stops and halts of the order flow.
    pub kinds: OrderKinds,
    /// Trades that the venue breaks.
    pub breaks: BreaksConfig,
    /// When auctions take place. In their call phases the rig enters orders that cross, icebergs and orders
    /// for the auction.
    pub auctions: AuctionTimes,
    /// The books are compared at the first quiet moment (everything published has been received) after every
    /// so many milliseconds, too: where the close empties them, the end alone proves little. 0: only in the
    /// end.
    pub compare_every_ms: u64,
    /// Somebody who sends to line A what the venue did not send.
    pub forger: Option<Forger>,
    /// Subscriptions change meanwhile. The books are then compared as far as they are wanted.
    pub changes: Option<Changes>,
    /// Whether what consolidated books hear of the channel is kept, in [`Outcome::relayed`].
    pub keeps_relayed: bool,
    /// Whether every event of the channel is kept, in [`Outcome::heard`].
    pub keeps_heard: bool,
}

impl Default for RigConfig {
    fn default() -> RigConfig {
        RigConfig {
            seed: 1,
            rate: 20_000,
            duration_ms: 500,
            impair: ImpairConfig::default(),
            requests_lost_ppm: 0,
            connects: true,
            cuts_ppm: 0,
            joins_after_ms: 0,
            round_trip_ns: 0,
            read_max: 4096,
            max_live: 20_000,
            kinds: OrderKinds::NONE,
            breaks: BreaksConfig::default(),
            auctions: AuctionTimes::default(),
            compare_every_ms: 0,
            forger: None,
            changes: None,
            keeps_relayed: false,
            keeps_heard: false,
        }
    }
}

impl RigConfig {
    /// A day with every kind of order, halts, broken trades, and auctions at the opening and the close. The
    /// books are compared all the time.
    pub fn every_kind(seed: u64) -> RigConfig {
        let at = |ms: u64| START.0 % Nanos::DAY + ms * Nanos::MILLI;
        RigConfig {
            seed,
            // The closing ends the day.
            duration_ms: 10_000,
            kinds: OrderKinds {
                icebergs_ppm: 100_000,
                post_only_ppm: 50_000,
                stops_ppm: 50_000,
                halts_ppm: 4_000,
            },
            breaks: BreaksConfig {
                share_ppm: 200_000,
                after_ns: 15 * Nanos::MILLI,
            },
            auctions: AuctionTimes {
                opening: Some(at(400)),
                closing: Some((at(750), at(800))),
                indicate_ns: 20 * Nanos::MILLI,
                ..AuctionTimes::default()
            },
            compare_every_ms: 10,
            ..RigConfig::default()
        }
    }

    /// 1 % loss, 0.5 % duplication and 0.5 % reordering on both lines.
    pub fn bad_lines(seed: u64) -> RigConfig {
        RigConfig {
            seed,
            impair: ImpairConfig {
                loss_ppm: 10_000,
                duplicate_ppm: 5_000,
                reorder_ppm: 5_000,
                reorder_depth: 3,
                ..ImpairConfig::default()
            },
            ..RigConfig::default()
        }
    }
}

/// What a run left behind.
pub struct Outcome<C> {
    /// The receiver.
    pub channel: C,
    /// The venue.
    pub exchange: Exchange,
    /// The receiver's books.
    pub books: Books,
    /// How many events of each kind the books were given.
    pub events: BTreeMap<EventKindName, u64>,
    /// Everything counted by channel and books.
    pub counters: Counters,
    /// How many live datagrams the venue sent, before the lines.
    pub datagrams: u64,
    /// How many connections the receiver opened, by port.
    pub connections: BTreeMap<&'static str, u64>,
    /// From the venue's opening until everything had been received, nanoseconds of virtual time.
    pub lasted_ns: u64,
    /// From joining until the receiver was live and had all that was published, nanoseconds; and how many
    /// messages there were when it joined. `None`: it never was before the close.
    pub live_after: Option<(u64, u64)>,
    /// How often the books were compared before the end.
    pub compared: u64,
    /// What came of the changes of subscriptions.
    pub changed: Changed,
    /// What was told of each instrument, gaps of the feed apart: a digest of the events.
    pub told: BTreeMap<u32, u64>,
    /// Messages announced before their events, by type.
    pub messages: BTreeMap<u16, u64>,
    /// Breaks of trades that the receiver had not heard of.
    pub breaks_unknown: u64,
    /// What consolidated books hear of the channel; empty unless it was to be kept.
    pub relayed: Vec<MarketEvent>,
    /// Every event of the channel; empty unless it was to be kept.
    pub heard: Vec<MarketEvent>,
}

/// The name of an event kind, as `Debug` has it.
pub type EventKindName = String;

struct Sink {
    books: Books,
    twin: Twin,
    kinds: [u64; 32],
    /// The last quote of each participant of a consolidated feed, by instrument and letter.
    quotes: BTreeMap<(u32, u8), [Level; 2]>,
    /// Instruments that nobody wants.
    refused: BTreeSet<u32>,
    /// Messages announced, by type.
    messages: BTreeMap<u16, u64>,
    told: BTreeMap<u32, u64>,
    /// Every event, when it is to be kept.
    heard: Option<Vec<MarketEvent>>,
}

impl Guarded for Sink {
    fn guard(&mut self, id: u32, is_refused: bool) {
        if is_refused {
            self.refused.insert(id);
            self.quotes.retain(|(instrument, _), _| *instrument != id);
        } else {
            self.refused.remove(&id);
        }
    }
}

impl Sink {
    /// A digest of everything told of an instrument that does not depend on when it came.
    fn note(&mut self, event: &MarketEvent) {
        let digest = self.told.entry(event.instrument.0).or_default();
        for word in [
            event.kind as u64,
            event.seq.0,
            event.order_id.0,
            event.ref_id,
            event.price.raw().cast_unsigned(),
            event.qty.0,
            event.ask_price.raw().cast_unsigned(),
            event.ask_qty.0,
        ] {
            *digest = (*digest ^ word).wrapping_mul(0x0100_0000_01B3).rotate_left(23);
        }
    }
}

impl EventSink for Sink {
    fn on_event(&mut self, event: &MarketEvent) {
        // That its book is not to be trusted is said again behind a clear of everything.
        assert!(
            event.kind == EventKind::Gap || !self.refused.contains(&event.instrument.0),
            "nobody wants {event:?}"
        );
        self.kinds[event.kind as usize] += 1;
        if let Some(heard) = &mut self.heard {
            heard.push(*event);
        }
        self.note(event);
        self.twin.apply(&mut self.books, event);
        let level = |price, qty| Level {
            price,
            qty,
            orders: 0,
        };
        match (event.kind, event.code[0]) {
            (EventKind::Clear, _) if event.instrument == InstrumentId::WHOLE_FEED => self.quotes.clear(),
            (EventKind::Quote, participant @ b'A'..=b'Z') => {
                let sides = [
                    level(event.price, event.qty),
                    level(event.ask_price, event.ask_qty),
                ];
                self.quotes.insert((event.instrument.0, participant), sides);
            }
            _ => {}
        }
    }

    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books.next_distrusted()
    }

    fn on_message(&mut self, kind: MessageType) {
        *self.messages.entry(kind.0).or_default() += 1;
    }

    fn upcoming(&mut self, next: Upcoming) {
        self.books.upcoming(next);
    }

    fn arriving(&mut self, next: Upcoming) {
        self.books.arriving(next);
    }
}

struct Net {
    forger: Option<Forger>,
    /// By port and line.
    lines: Vec<Impair>,
    requests: Impair,
    cuts: Rng,
    cuts_ppm: u32,
    read_max: usize,
    connected: [bool; Port::COUNT],
    retry: [Nanos; Port::COUNT],
    /// Since when a connection has been wanted that is not there yet.
    wanted: [Option<Nanos>; Port::COUNT],
    connections: BTreeMap<&'static str, u64>,
    datagrams: u64,
    round_trip_ns: u64,
    /// Answers to requests on their way, and when they are there.
    answers: VecDeque<(Nanos, Vec<u8>)>,
}

/// Runs a day of the channel at `published_channels[0]`; further published_channels are published to nobody.
/// Panics, with the seed, when the feed does not end whole or a book differs.
pub fn run<C: Channel>(
    config: &RigConfig,
    listings: &[Listing],
    publisher: Box<dyn Publisher>,
    channel: C,
    depth: Depth,
) -> Outcome<C> {
    let mut exchange = exchange_of(config, listings, publisher);
    let impair = |seed: u64, of: ImpairConfig| {
        Impair::new(ImpairConfig {
            seed: config.seed.wrapping_mul(1000).wrapping_add(seed),
            ..of
        })
    };
    let mut net = Net {
        lines: (0..Port::COUNT as u64 * 2)
            .map(|i| impair(i, config.impair))
            .collect(),
        requests: impair(
            99,
            ImpairConfig {
                loss_ppm: config.requests_lost_ppm,
                ..ImpairConfig::default()
            },
        ),
        cuts: Rng::new(config.seed ^ 0xC0),
        cuts_ppm: config.cuts_ppm,
        read_max: config.read_max,
        connected: [false; Port::COUNT],
        retry: [Nanos::ZERO; Port::COUNT],
        wanted: [None; Port::COUNT],
        connections: BTreeMap::new(),
        datagrams: 0,
        forger: config.forger,
        round_trip_ns: config.round_trip_ns,
        answers: VecDeque::new(),
    };
    let (mut behind, mut live_after) = (None, None);
    let mut crossing = Crossing::default();
    let mut channel = channel;
    let books = BooksConfig {
        venue: channel.venue(),
        depth,
        // Every comparison walks all of them, used or not.
        instruments: (listings.len() as u32 + 1).max(4_096),
        orders: config.max_live * 2,
        levels: config.max_live * 2,
        initial: BookState::Building,
        tracked: true,
    };
    let mut sink = Sink {
        books: Books::new(books),
        twin: Twin::new(&books, config.keeps_relayed),
        kinds: [0; 32],
        quotes: BTreeMap::new(),
        refused: BTreeSet::new(),
        messages: BTreeMap::new(),
        told: BTreeMap::new(),
        heard: config.keeps_heard.then(Vec::new),
    };
    exchange.open(START);
    let mut now = START;
    let joins = START.after(config.joins_after_ms * Nanos::MILLI);
    let (mut compared, mut compares_at) = (0, joins);
    let mut script = config
        .changes
        .map(|changes| Script::new(changes, config.seed, joins));
    let give_up = START.after((config.duration_ms + 60_000) * Nanos::MILLI);
    while !(channel.is_done() && matches!(exchange.phase(), DayPhase::Ending | DayPhase::Over)) {
        now = now.after(20_000);
        assert!(
            now < give_up,
            "seed {}: the feed does not end: {:?}, next {}, venue's next {}, {:?}, counters {}",
            config.seed,
            channel.state(),
            channel.next_seq(),
            exchange.published_channels()[0].publisher.next_seq(),
            exchange.phase(),
            counted(&channel.counters()),
        );
        exchange.on_time(now);
        crossing.enter(now, listings, &mut exchange);
        net.datagrams(now, joins <= now, &mut exchange, &mut channel, &mut sink);
        if joins <= now {
            if channel.poll_timeout().is_some_and(|t| t <= now) {
                channel.handle_timeout(now, &mut sink);
            }
            net.ask(now, &mut exchange, &mut channel, &mut sink);
            for port in [Port::Replay, Port::SnapshotServer] {
                net.connection(now, port, config.connects, &mut exchange, &mut channel, &mut sink);
            }
            if let Some(script) = script
                .as_mut()
                .filter(|_| !matches!(exchange.phase(), DayPhase::Ending | DayPhase::Over))
            {
                script.step(now, listings, &mut channel, &mut sink);
            }
        }
        let is_quiet = channel.state() == FeedState::Live
            && channel.next_seq() == exchange.published_channels()[0].publisher.next_seq();
        if joins <= now && live_after.is_none() {
            let behind = *behind.get_or_insert(exchange.published_channels()[0].publisher.next_seq().0);
            live_after = is_quiet.then(|| (now.since(joins), behind));
        }
        if config.compare_every_ms > 0 && compares_at <= now && is_quiet && exchange.phase() == DayPhase::Open
        {
            match &mut script {
                Some(script) => {
                    script.compare(config.seed, now, listings, &exchange, &channel, &sink.books);
                }
                None => compare(config.seed, listings, &exchange, &channel, &sink.books),
            }
            sink.twin.check(&sink.books);
            compared += 1;
            compares_at = now.after(config.compare_every_ms * Nanos::MILLI);
        }
        if exchange.phase() == DayPhase::Over
            && exchange.published_channels()[0]
                .publisher
                .poll_timeout()
                .is_none()
        {
            // Nothing more will be sent on its own; time goes on for what is still recovering.
            now = now.after(Nanos::MILLI);
        }
    }
    assert_eq!(channel.state(), FeedState::Ended, "seed {}", config.seed);
    match &mut script {
        Some(script) => script.compare(config.seed, now, listings, &exchange, &channel, &sink.books),
        None => {
            compare(config.seed, listings, &exchange, &channel, &sink.books);
            compare_quotes(config.seed, listings, &exchange, &channel, &sink.quotes);
        }
    }
    sink.twin.check(&sink.books);
    let mut counters = channel.counters();
    counters.merge(sink.books.counters());
    let kinds =
        (0..32_u8).filter_map(|k| EventKind::from_u8(k).map(|kind| (kind, sink.kinds[usize::from(k)])));
    Outcome {
        events: kinds
            .filter(|k| k.1 > 0)
            .map(|(kind, count)| (format!("{kind:?}"), count))
            .collect(),
        channel,
        exchange,
        books: sink.books,
        counters,
        datagrams: net.datagrams,
        connections: net.connections,
        lasted_ns: now.since(START),
        live_after,
        compared,
        changed: script.map(|script| script.changed).unwrap_or_default(),
        told: sink.told,
        messages: sink.messages,
        breaks_unknown: sink.twin.breaks_unknown,
        relayed: sink.twin.relayed.unwrap_or_default(),
        heard: sink.heard.unwrap_or_default(),
    }
}

/// The venue of such a day, with one channel.
pub fn exchange_of(config: &RigConfig, listings: &[Listing], publisher: Box<dyn Publisher>) -> Exchange {
    let first = listings.first().map_or(1, |l| l.id.0);
    let instruments = first..first + listings.len() as u32;
    Exchange::new(
        ExchangeConfig {
            listings: listings.to_vec(),
            max_orders: config.max_live * 2,
            max_levels: 512,
            flow: FlowConfig {
                seed: config.seed,
                max_live: config.max_live,
                kinds: config.kinds,
                ..FlowConfig::default()
            },
            auctions: config.auctions,
            breaks: config.breaks,
            pace: PaceConfig {
                rate: config.rate,
                ..PaceConfig::default()
            },
            order_entry: OrderEntryConfig {
                connections: 1,
                max_orders: 16,
                ..OrderEntryConfig::default()
            },
            duration_ns: config.duration_ms * Nanos::MILLI,
            linger_ns: 500 * Nanos::MILLI,
            ..ExchangeConfig::default()
        },
        vec![PublishedChannel {
            publisher,
            instruments,
        }],
    )
}

/// Enters orders into every call phase that is scheduled: the flow is silent then.
#[derive(Default)]
struct Crossing {
    is_done: bool,
}

impl Crossing {
    fn enter(&mut self, now: Nanos, listings: &[Listing], exchange: &mut Exchange) {
        let engine = exchange.engine();
        let is_call = |listing: &Listing| engine.trading_status(listing.id) == Some(TradingStatus::Auction);
        // All of them: one that was halted by the flow has its auction within a step.
        let is_begun = !listings.is_empty() && listings.iter().all(is_call);
        if !core::mem::replace(&mut self.is_done, is_begun) && is_begun {
            for listing in listings {
                exchange.trade(now, |engine, out| cross(listing, engine, out));
            }
        }
    }
}

fn cross(listing: &Listing, engine: &mut Engine, out: &mut impl Listener) {
    let touch = Side::BOTH.map(|side| engine.best(listing.id, side));
    let [Some(bid), Some(ask)] = touch else { return };
    let tick = listing.tick().raw();
    let price = |at: Level, ticks: i64| Price::from_raw(at.price.raw() + ticks * tick);
    let lots = |n: u32| Qty(n * listing.rules.lot.0);
    let limit = |side, at, qty| NewOrder::limit(listing.id, side, at, qty);
    let for_auction = |side, time_in_force| NewOrder {
        order_type: OrderType::Market,
        time_in_force,
        ..limit(side, Price::ZERO, lots(150))
    };
    for order in [
        limit(Side::Bid, price(ask, 2), lots(300)),
        limit(Side::Ask, price(bid, -1), lots(200)),
        NewOrder {
            display: lots(100),
            ..limit(Side::Ask, price(bid, 0), lots(450))
        },
        for_auction(Side::Bid, TimeInForce::AtTheOpening),
        for_auction(Side::Ask, TimeInForce::AtTheClose),
    ] {
        // What a price on the other side of a band or step makes of it does not matter.
        let _ = engine.submit(&order, out);
    }
}

/// The counters that are not 0.
fn counted(counters: &Counters) -> String {
    Counter::ALL
        .iter()
        .filter(|c| counters.get(**c) > 0)
        .map(|c| format!("{c:?} {} ", counters.get(*c)))
        .collect()
}

impl Net {
    fn datagrams<C: Channel>(
        &mut self,
        now: Nanos,
        is_joined: bool,
        exchange: &mut Exchange,
        channel: &mut C,
        sink: &mut Sink,
    ) {
        while let Some(datagram) = exchange.poll_datagram(0, now) {
            assert_eq!(datagram.port.transport(), Transport::Multicast);
            assert!(
                datagram.bytes.len() <= 1472,
                "a datagram of {} bytes",
                datagram.bytes.len()
            );
            self.datagrams += u64::from(datagram.port == Port::Live);
            if let Some(forger) = self.forger.filter(|_| datagram.port == Port::Live && is_joined)
                && let Some(forged) = forger.forge(self.datagrams, datagram.bytes)
            {
                channel.on_datagram(now, Port::Live, Line::A, &forged, sink);
            }
            for (line, set, index) in [(Line::A, LineSet::A, 0), (Line::B, LineSet::B, 1)] {
                if datagram.lines.has(set) {
                    let impair = &mut self.lines[datagram.port as usize * 2 + index];
                    impair.send(datagram.bytes, &mut |bytes: &[u8]| {
                        if is_joined {
                            channel.on_datagram(now, datagram.port, line, bytes, sink);
                        }
                    });
                }
            }
        }
    }

    fn ask<C: Channel>(&mut self, now: Nanos, exchange: &mut Exchange, channel: &mut C, sink: &mut Sink) {
        let (mut request, mut reply) = ([0; 256], [0; 2048]);
        while let Some(bytes) = channel.poll_request(&mut request) {
            let mut answered = None;
            self.requests.send(bytes, &mut |bytes: &[u8]| {
                answered = exchange.handle_request(0, now, bytes, &mut reply);
            });
            if let Some(length) = answered {
                let due = now.after(self.round_trip_ns);
                self.answers.push_back((due, reply[..length].to_vec()));
            }
        }
        while self.answers.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, answer)) = self.answers.pop_front() {
                channel.on_datagram(now, Port::Requests, Line::A, &answer, sink);
            }
        }
    }

    fn connection<C: Channel>(
        &mut self,
        now: Nanos,
        port: Port,
        connects: bool,
        exchange: &mut Exchange,
        channel: &mut C,
        sink: &mut Sink,
    ) {
        let at = port as usize;
        let wanted = channel.wants_connection(port);
        if !self.connected[at] {
            if !wanted || now < self.retry[at] {
                return;
            }
            if self.wanted[at].is_none() {
                self.wanted[at] = Some(now);
            }
            if self.wanted[at].is_some_and(|since| now.since(since) < self.round_trip_ns) {
                return;
            }
            self.wanted[at] = None;
            self.retry[at] = now.after(50 * Nanos::MILLI);
            let accepted = connects
                && exchange
                    .publisher_mut(0)
                    .is_some_and(|publisher| publisher.connect(port, 0, now));
            if !accepted {
                return channel.disconnected(now, port, sink);
            }
            *self.connections.entry(port.name()).or_default() += 1;
            self.connected[at] = true;
            channel.connected(now, port);
        }
        let mut buffer = vec![0; self.read_max];
        for _ in 0..64 {
            let mut moved = false;
            while let Some(bytes) = channel.poll_transmit(port, &mut buffer) {
                exchange.recovery_bytes(0, port, 0, now, bytes);
                moved = true;
            }
            let Some(publisher) = exchange.publisher_mut(0) else {
                return;
            };
            if let Some(bytes) = publisher.poll_transmit(port, 0, now, &mut buffer) {
                if self.cuts_ppm > 0 && self.cuts.below(1_000_000) < self.cuts_ppm.into() {
                    publisher.disconnect(port, 0);
                    self.connected[at] = false;
                    return channel.disconnected(now, port, sink);
                }
                channel.on_bytes(now, port, bytes, sink);
                moved = true;
            }
            if !moved {
                break;
            }
        }
        let Some(publisher) = exchange.publisher_mut(0) else {
            return;
        };
        if publisher.wants_close(port, 0) || !channel.wants_connection(port) {
            publisher.disconnect(port, 0);
            self.connected[at] = false;
            channel.disconnected(now, port, sink);
        }
    }
}

/// Every level of every book must be the venue's, and every book live.
fn compare<C: Channel>(seed: u64, listings: &[Listing], exchange: &Exchange, channel: &C, books: &Books) {
    for listing in listings {
        let symbol = listing.symbol;
        let id = channel
            .find(&symbol)
            .unwrap_or_else(|| panic!("seed {seed}: {symbol} is not known to the receiver"));
        let book = books
            .book(id)
            .unwrap_or_else(|| panic!("seed {seed}: no book of {symbol}"));
        assert_eq!(book.state(), BookState::Live, "seed {seed}: {symbol}");
        for side in Side::BOTH {
            let theirs =
                exchange.published_channels()[0]
                    .publisher
                    .levels(exchange.engine(), listing.id, side);
            let ours: Vec<Level> = book.levels(side).collect();
            assert_eq!(ours, theirs, "seed {seed}: {symbol} {side:?}");
        }
    }
}

/// The last quote heard of every participant of a consolidated feed must be the venue's; who has none is not
/// asked.
fn compare_quotes<C: Channel>(
    seed: u64,
    listings: &[Listing],
    exchange: &Exchange,
    channel: &C,
    heard: &BTreeMap<(u32, u8), [Level; 2]>,
) {
    for listing in listings {
        let Some(id) = channel.find(&listing.symbol) else {
            continue;
        };
        let theirs: BTreeMap<u8, [Level; 2]> = exchange.published_channels()[0]
            .publisher
            .participant_quotes(listing.id)
            .into_iter()
            .map(|quote| (quote.participant, quote.sides))
            .collect();
        for (participant, sides) in &theirs {
            let shown = |[bid, ask]: [Level; 2]| [(bid.price, bid.qty), (ask.price, ask.qty)];
            let ours = heard.get(&(id.0, *participant)).copied().unwrap_or_default();
            assert_eq!(
                shown(ours),
                shown(*sides),
                "seed {seed}: {} of {}",
                char::from(*participant),
                listing.symbol
            );
        }
        let first = (id.0, 0);
        for ((_, participant), sides) in heard.range(first..(id.0 + 1, 0)) {
            let is_empty = sides.iter().all(|side| side.qty.is_zero());
            assert!(
                is_empty || theirs.contains_key(participant),
                "seed {seed}: {} quotes {} no more",
                char::from(*participant),
                listing.symbol
            );
        }
    }
}
