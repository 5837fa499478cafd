//! Channels behind the kernel's filter, on bad lines, with subscriptions that change in mid-session: the
//! books are the venue's, as the rig checks at every quiet moment, though most packets never reach the
//! channel. The filter runs in its interpreter, in front of the live port; what owns it does what whoever
//! owns the sockets has to do.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use tickwire_book::Depth;
use tickwire_exchange::{
    ItchPublisher, ItchPublisherConfig, Listing, Mdp3Publisher, Mdp3PublisherConfig, Mdp3View,
    NysePublisherConfig, PitchPublisher, PitchPublisherConfig, Publisher, UnitConfig, XdpPublisher, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, DayUse, FeedState, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, Line,
    Mdp3Channel, Mdp3Config, Mdp3Decoder, Mdp3Depth, Pattern, PitchChannel, PitchChannelConfig, PitchConfig,
    PitchUnit, RecoveryLimits, RequestConfig, Rule, Seen, SoupConfig, Start, SubscriptionsFull, XdpChannel,
    XdpConfig, XdpDecoder, XdpFeed,
};
use tickwire_kernel::asm::{Program, action};
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group, MapKind};
use tickwire_kernel::frame;
use tickwire_kernel::interp::{Machine, Map};
use tickwire_kernel::layout::{self, Count, Meta, Sizes};
use tickwire_market::{
    Counter, Counters, DynSink, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, MessageType,
    Nanos, OrderId, Port, SeqNo, Symbol, Venue,
};
use tickwire_receive::filtering::{Filtering, Gate};
use tickwire_rig::{Changes, Outcome, RigConfig, run};

const UNIT: u8 = 7;
const LINES: [Group; 2] = [
    Group::new([233, 54, 12, 111], 26477),
    Group::new([233, 86, 230, 111], 26477),
];

/// The filter in front of a channel.
struct Filter {
    framing: Framing,
    program: Program,
    machine: Machine,
    sizes: Sizes,
    listings: Vec<Listing>,
    epoch: u16,
    deliveries: u32,
    /// Of the last packet, where packets have one.
    session: [u64; 2],
    /// The owner's part, as the programs have it, for the protocols that they filter.
    filtering: Option<Filtering>,
    /// Instruments whose books are not right yet.
    joining: BTreeSet<u32>,
    dropped: u64,
}

impl Filter {
    fn new(framing: Framing, listings: &[Listing]) -> Filter {
        let spec = FilterSpec {
            channels: vec![ChannelSpec {
                framing,
                groups: LINES.to_vec(),
                set: 0,
            }],
            ..FilterSpec::default()
        };
        let (state, sets) = spec.initial();
        let mut machine = Machine::new();
        for map in spec.maps() {
            let made = match map.kind {
                MapKind::Value if map.id == layout::STATE => Map::Value(state.clone()),
                MapKind::Value => Map::Value(sets.clone()),
                MapKind::Sockets => Map::Sockets(vec![true; map.entries as usize]),
                MapKind::Hash => Map::Hash {
                    key: map.key as usize,
                    value: map.value as usize,
                    room: map.entries as usize,
                    entries: BTreeMap::new(),
                },
            };
            machine.insert(map.id, made);
        }
        let mut filter = Filter {
            framing,
            program: spec.program().expect("a program"),
            machine,
            sizes: Sizes::of(&spec),
            listings: listings.to_vec(),
            epoch: 0,
            deliveries: 0,
            session: [u64::from(UNIT) * u64::from(framing == Framing::Pitch), 0],
            joining: BTreeSet::new(),
            filtering: matches!(framing, Framing::Itch | Framing::Nyse).then(|| Filtering::new(framing)),
            dropped: 0,
        };
        filter.put_session();
        if let Some(filtering) = filter.filtering.clone() {
            filtering.begin(&mut filter);
        }
        filter
    }

    fn state(&mut self) -> &mut [u8] {
        self.machine.value(layout::STATE)
    }

    fn word(&mut self) -> u64 {
        let at = layout::WORD;
        u64::from_ne_bytes(self.state()[at..at + 8].try_into().expect("eight"))
    }

    fn set_word(&mut self, word: u64) {
        self.state()[layout::WORD..layout::WORD + 8].copy_from_slice(&word.to_ne_bytes());
    }

    fn holds(&mut self) -> bool {
        self.state()[layout::HOLD] != 0
    }

    fn put_session(&mut self) {
        for (at, word) in self.session.into_iter().enumerate() {
            let at = layout::SESSION + 8 * at;
            self.state()[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
    }

    /// What the channel's rules amount to.
    fn want<C: Channel>(&mut self, channel: &C) {
        let mut rules = Vec::new();
        channel.subscriptions(&mut |rule: &Rule| rules.push(*rule));
        for listing in self.listings.clone() {
            let wanted = rules
                .iter()
                .rev()
                .find(|rule| rule.pattern.matches(&listing.symbol));
            let bit = match self.framing {
                Framing::Pitch => layout::key_bit(
                    layout::symbol_key(listing.symbol.as_bytes()).expect("at most eight bytes"),
                ),
                Framing::Mdp3 => {
                    let base = Mdp3PublisherConfig::default().security_base as u32;
                    layout::key_bit(u64::from(base + listing.id.0))
                }
                _ => listing.id.0 as usize,
            };
            let at = self.sizes.sets_at() + bit / 8;
            let byte = &mut self.machine.value(layout::SETS)[at];
            match wanted.is_some_and(|rule| rule.wanted) {
                true => *byte |= 1 << (bit % 8),
                false => *byte &= !(1 << (bit % 8)),
            }
        }
    }

    /// Orders that the program may not have seen.
    fn follow(&mut self, order: OrderId) {
        let Some(Map::Hash { entries, .. }) = self.machine.map(layout::ORDERS) else {
            return;
        };
        let mut key = vec![0; layout::ORDER_KEY];
        key[..8].copy_from_slice(&order.0.to_ne_bytes());
        entries.insert(key, vec![1]);
        let bit = layout::order_bit(order.0);
        self.machine.value(layout::SETS)[bit / 8] |= 1 << (bit % 8);
    }

    /// Armed while the channel is whole and its books are right; disarmed otherwise.
    fn settle<C: Channel>(&mut self, channel: &C) {
        // What ships, where it does.
        if let Some(filtering) = self.filtering.clone() {
            return filtering.settle(channel, self);
        }
        let is_whole = channel.state() == FeedState::Live && self.joining.is_empty();
        let is_armed = self.word() != 0 && !self.holds();
        if is_armed && !is_whole {
            self.set_word(0);
        }
        if is_whole && !is_armed && (self.framing != Framing::Itch || self.session[0] != 0) {
            self.want(channel);
            self.put_session();
            self.epoch += 1;
            self.state()[layout::HOLD..layout::HOLD + 4].fill(0);
            // A match event may be under way.
            let open = if self.framing == Framing::Mdp3 {
                layout::OPEN
            } else {
                0
            };
            let word = layout::word(self.epoch, channel.next_seq().0) | open;
            self.set_word(word);
        }
    }

    fn count(&mut self, what: Count) -> u64 {
        let at = layout::COUNTERS + what.offset();
        u64::from_ne_bytes(self.state()[at..at + 8].try_into().expect("eight"))
    }
}

impl Gate for Filter {
    fn drops(&mut self) -> bool {
        self.word() != 0 && !self.holds()
    }

    fn disarm(&mut self) {
        self.set_word(0);
    }

    fn want(&mut self, bit: usize, wanted: bool) {
        let at = self.sizes.sets_at() + bit / 8;
        let byte = &mut self.machine.value(layout::SETS)[at];
        match wanted {
            true => *byte |= 1 << (bit % 8),
            false => *byte &= !(1 << (bit % 8)),
        }
    }

    fn arm(&mut self, session: [u64; 2], next: u64) {
        self.session = session;
        self.put_session();
        self.epoch += 1;
        self.state()[layout::HOLD..layout::HOLD + 4].fill(0);
        self.set_word(layout::word(self.epoch, next));
    }
}

/// Hears what the channel says on its way to the books.
struct Ear<'a, S> {
    sink: &'a mut S,
    filter: &'a mut Filter,
}

impl<S: EventSink> EventSink for Ear<'_, S> {
    fn on_event(&mut self, event: &MarketEvent) {
        let id = event.instrument;
        match event.kind {
            EventKind::Add => self.filter.follow(event.order_id),
            EventKind::Gap if id != InstrumentId::WHOLE_FEED => _ = self.filter.joining.insert(id.0),
            EventKind::Recovered if id == InstrumentId::WHOLE_FEED => self.filter.joining.clear(),
            EventKind::Recovered => _ = self.filter.joining.remove(&id.0),
            _ => {}
        }
        self.sink.on_event(event);
    }

    fn on_message(&mut self, kind: MessageType) {
        self.sink.on_message(kind);
    }

    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.sink.upcoming(instrument, order_id);
    }
}

struct Filtered<C> {
    channel: C,
    filter: RefCell<Filter>,
}

impl<C: Channel> Filtered<C> {
    /// Calls the channel with an ear on what it says, then arms or disarms.
    fn with<S: EventSink, T>(&mut self, sink: &mut S, call: impl FnOnce(&mut C, &mut Ear<'_, S>) -> T) -> T {
        let filter = self.filter.get_mut();
        let result = call(&mut self.channel, &mut Ear { sink, filter });
        self.filter.get_mut().settle(&self.channel);
        result
    }
}

impl<C: Channel> Channel for Filtered<C> {
    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        let line_at = match (port, line) {
            (Port::Live, Line::A) => 0,
            (Port::Live, Line::B) => 1,
            _ => {
                return self.with(sink, |channel, ear| {
                    channel.on_datagram(now, port, line, bytes, ear)
                });
            }
        };
        let filter = self.filter.get_mut();
        let mut buffer = [0; 2048];
        let to = LINES[line_at];
        let length = frame::encode(&mut buffer, line_at, (to.address, to.port), bytes).expect("room");
        let outcome = filter
            .machine
            .run(&filter.program, &buffer[..length], 0)
            .expect("no fault");
        if outcome.action == action::DROP {
            filter.dropped += 1;
            self.channel.alive(now);
            // What whoever turns the loop asks now and then.
            let made = u32::from_ne_bytes(
                filter.state()[layout::DELIVERIES..layout::DELIVERIES + 4]
                    .try_into()
                    .expect("four"),
            );
            let word = filter.word();
            if filter.dropped.is_multiple_of(3) && made == filter.deliveries && word != 0 {
                self.channel.seen_up_to(now, SeqNo(word & layout::NEXT_MASK));
            }
            return;
        }
        let mut claim = None;
        if outcome.action == action::REDIRECT {
            let meta: &[u8; layout::META_SIZE] = outcome.meta.as_slice().try_into().expect("metadata");
            let meta = Meta::read(meta).expect("ours");
            assert_eq!(meta.delivery, filter.deliveries);
            filter.deliveries = filter.deliveries.wrapping_add(1);
            claim = meta.claim().filter(|(epoch, _)| *epoch == filter.epoch);
        }
        if filter.framing == Framing::Itch
            && let Some(session) = bytes.first_chunk::<10>()
        {
            let (a, b) = session.split_first_chunk::<8>().expect("ten bytes");
            filter.session = [u64::from_ne_bytes(*a), u16::from_ne_bytes([b[0], b[1]]).into()];
        }
        if let Some((_, next)) = claim {
            self.channel.seen_up_to(now, SeqNo(next));
        }
        let before = self.channel.next_seq();
        self.with(sink, |channel, ear| {
            channel.on_datagram(now, port, line, bytes, ear)
        });
        let moved = self.channel.next_seq() != before;
        let filter = self.filter.get_mut();
        if let Some(mut filtering) = filter.filtering.take() {
            filtering.note(bytes, moved);
            filter.filtering = Some(filtering);
        }
    }

    fn subscribe(
        &mut self,
        now: Nanos,
        pattern: &Pattern,
        sink: &mut dyn EventSink,
    ) -> Result<u32, SubscriptionsFull> {
        // Everything is delivered until the joining books are right.
        self.filter.get_mut().set_word(0);
        self.with(&mut DynSink(sink), |channel, ear| {
            channel.subscribe(now, pattern, ear)
        })
    }

    fn unsubscribe(
        &mut self,
        now: Nanos,
        pattern: &Pattern,
        sink: &mut dyn EventSink,
    ) -> Result<u32, SubscriptionsFull> {
        let filter = self.filter.get_mut();
        if filter.filtering.is_some() {
            filter.set_word(0);
        }
        let result = self.channel.unsubscribe(now, pattern, sink);
        let filter = self.filter.get_mut();
        if filter.filtering.is_some() {
            return result;
        }
        filter.want(&self.channel);
        // Nobody waits for its book any more.
        let mut rules = Vec::new();
        self.channel.subscriptions(&mut |rule: &Rule| rules.push(*rule));
        let listings = filter.listings.clone();
        for listing in listings {
            let wanted = rules
                .iter()
                .rev()
                .find(|rule| rule.pattern.matches(&listing.symbol));
            if !wanted.is_some_and(|rule| rule.wanted) {
                filter.joining.retain(|id| {
                    let symbol = self.channel.instrument(InstrumentId(*id)).map(|i| i.symbol);
                    symbol != Some(listing.symbol)
                });
            }
        }
        self.filter.get_mut().settle(&self.channel);
        result
    }

    fn on_message<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        self.with(sink, |channel, ear| channel.on_message(now, message, ear));
    }
    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.with(&mut DynSink(sink), |channel, ear| {
            channel.handle_timeout(now, ear)
        });
    }
    fn on_bytes(&mut self, now: Nanos, port: Port, bytes: &[u8], sink: &mut dyn EventSink) {
        self.with(&mut DynSink(sink), |channel, ear| {
            channel.on_bytes(now, port, bytes, ear)
        });
    }
    fn disconnected(&mut self, now: Nanos, port: Port, sink: &mut dyn EventSink) {
        self.with(&mut DynSink(sink), |channel, ear| {
            channel.disconnected(now, port, ear)
        });
    }
    fn venue(&self) -> Venue {
        self.channel.venue()
    }
    fn seen_up_to(&mut self, now: Nanos, next: SeqNo) {
        self.channel.seen_up_to(now, next);
    }
    fn alive(&mut self, now: Nanos) {
        self.channel.alive(now);
    }
    fn poll_timeout(&self) -> Option<Nanos> {
        self.channel.poll_timeout()
    }
    fn poll_request<'b>(&mut self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.channel.poll_request(buffer)
    }
    fn wants_connection(&self, port: Port) -> bool {
        self.channel.wants_connection(port)
    }
    fn connected(&mut self, now: Nanos, port: Port) {
        self.channel.connected(now, port);
    }
    fn poll_transmit<'b>(&mut self, port: Port, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        self.channel.poll_transmit(port, buffer)
    }
    fn server(&self, port: Port) -> usize {
        self.channel.server(port)
    }
    fn set_servers(&mut self, port: Port, count: u8) {
        self.channel.set_servers(port, count);
    }
    fn day_use(&self) -> DayUse {
        self.channel.day_use()
    }
    fn restore_day_use(&mut self, used: DayUse) {
        self.channel.restore_day_use(used);
    }
    fn is_given_up(&self) -> bool {
        self.channel.is_given_up()
    }
    fn state(&self) -> FeedState {
        self.channel.state()
    }
    fn is_done(&self) -> bool {
        self.channel.is_done()
    }
    fn next_seq(&self) -> SeqNo {
        self.channel.next_seq()
    }
    fn last_packet(&self) -> Nanos {
        self.channel.last_packet()
    }
    fn counters(&self) -> Counters {
        self.channel.counters()
    }
    fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.channel.instrument(id)
    }
    fn find(&self, symbol: &Symbol) -> Option<InstrumentId> {
        self.channel.find(symbol)
    }
    fn instruments(&self, each: &mut dyn FnMut(&Instrument)) {
        self.channel.instruments(each);
    }
    fn subscriptions(&self, each: &mut dyn FnMut(&Rule)) {
        self.channel.subscriptions(each);
    }
    fn kinds(&self, each: &mut dyn FnMut(MessageType, Seen)) {
        self.channel.kinds(each);
    }
    fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        self.channel.seen_of_instrument(id)
    }
}

/// The day has half a second, and connections are cut all the time: no long waits, no quota.
fn impatient(limits: RecoveryLimits) -> RecoveryLimits {
    RecoveryLimits {
        backoff_max_ns: limits.backoff_ns / 5,
        backoff_ns: limits.backoff_ns / 5,
        snapshots_per_minute: 0,
        ..limits
    }
}

fn itch() -> ItchChannel {
    let arbiter = ArbiterConfig {
        snapshot: true,
        recovery: impatient(RecoveryLimits::MOLDUDP64),
        ..ArbiterConfig::default()
    };
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: 1000,
        ..ItchConfig::default()
    });
    ItchChannel::new(ItchFeed::new(arbiter, decoder), SoupConfig::default())
}

fn pitch() -> PitchChannel {
    let arbiter = ArbiterConfig {
        start: Start::Snapshot,
        snapshot: true,
        recovery: impatient(RecoveryLimits::PITCH),
        ..PitchUnit::arbiter_config(UNIT)
    };
    let config = PitchChannelConfig {
        unit: UNIT,
        decoder: PitchConfig {
            instruments_max: 512,
            orders_max: 1 << 16,
            ..PitchConfig::default()
        },
        ..PitchChannelConfig::default()
    };
    PitchChannel::with_arbiter(arbiter, config)
}

fn nyse() -> XdpChannel {
    let decoder = XdpDecoder::new(XdpConfig {
        instruments_max: 1000,
        ..XdpConfig::default()
    });
    let arbiter = ArbiterConfig {
        start: Start::Beginning,
        snapshot: true,
        recovery: RecoveryLimits::XDP,
        ..ArbiterConfig::default()
    };
    let requests = RequestConfig {
        source_id: b"RIG".into(),
        product: 11,
        channel: 1,
        refresh_patience_ns: 10 * Nanos::MILLI,
        ..RequestConfig::default()
    };
    XdpChannel::new(XdpFeed::new(arbiter, decoder), requests)
}

fn mdp3(depth: Mdp3Depth) -> Mdp3Channel {
    let decoder = Mdp3Decoder::new(Mdp3Config {
        depth,
        instruments_max: 512,
        orders_max: 1 << 16,
        ..Mdp3Config::default()
    });
    let replay = Mdp3Channel::replay_config(310, b"ME", b"PW");
    Mdp3Channel::new(Mdp3Channel::arbiter_config(), decoder, replay, Nanos::SECOND)
}

/// A day, and how much of it the channel never saw.
fn day<C: Channel>(
    framing: Framing,
    config: &RigConfig,
    depth: Depth,
    channel: C,
    publisher: impl FnOnce(&[Listing]) -> Box<dyn Publisher>,
) -> Outcome<Filtered<C>> {
    let listings = listings(40);
    let filtered = Filtered {
        channel,
        filter: RefCell::new(Filter::new(framing, &listings)),
    };
    let outcome = run(config, &listings, publisher(&listings), filtered, depth);
    let mut filter = outcome.channel.filter.borrow_mut();
    println!(
        "{framing:?}, seed {}: {} packets, {} dropped as unwanted, {} as duplicates; {} gaps, {:?}",
        config.seed,
        filter.count(Count::Packets),
        filter.count(Count::Filtered),
        filter.count(Count::Duplicate),
        outcome.counters.get(Counter::Gaps),
        outcome.changed,
    );
    let dropped = filter.count(Count::Filtered);
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
    assert_eq!(outcome.counters.get(Counter::Malformed), 0);
    assert!(dropped > 0, "nothing was filtered");
    drop(filter);
    outcome
}

fn changing(seed: u64, lines: RigConfig) -> RigConfig {
    RigConfig {
        seed,
        compare_every_ms: 1,
        changes: Some(Changes {
            every_ms: 12,
            right_within_ms: None,
            pinned: 2,
            ..Changes::default()
        }),
        ..lines
    }
}

/// How many days; more are asked for with `SEEDS`.
fn seeds() -> u64 {
    let asked = std::env::var("SEEDS").ok();
    asked.and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
}

fn on_all(lines: impl Fn(u64) -> RigConfig) {
    for seed in 1..=seeds() {
        let config = changing(seed, lines(seed));
        day(Framing::Itch, &config, Depth::ByOrder, itch(), |listings| {
            Box::new(ItchPublisher::new(ItchPublisherConfig::default(), listings))
        });
        day(Framing::Nyse, &config, Depth::ByOrder, nyse(), |listings| {
            Box::new(XdpPublisher::new(NysePublisherConfig::default(), listings))
        });
        for (depth, mdp3_depth, view) in [
            (Depth::ByPrice, Mdp3Depth::ByPrice, Mdp3View::ByPrice),
            (Depth::ByOrder, Mdp3Depth::ByOrder, Mdp3View::ByOrder),
        ] {
            day(Framing::Mdp3, &config, depth, mdp3(mdp3_depth), |listings| {
                let config = Mdp3PublisherConfig {
                    view,
                    loop_interval_ns: 100 * Nanos::MICRO,
                    store_bytes: 64 << 20,
                    store_packets: 1 << 16,
                    ..Mdp3PublisherConfig::default()
                };
                Box::new(Mdp3Publisher::new(config, listings))
            });
        }
        // While a book joins everything is delivered: with longer pauses something is left to filter.
        let mut config = config.clone();
        if let Some(changes) = &mut config.changes {
            changes.every_ms = 80;
        }
        day(Framing::Pitch, &config, Depth::ByOrder, pitch(), |listings| {
            let config = PitchPublisherConfig {
                unit: UnitConfig {
                    unit: UNIT,
                    ..UnitConfig::default()
                },
                ..PitchPublisherConfig::default()
            };
            Box::new(PitchPublisher::new(config, listings))
        });
    }
}

#[test]
fn books_behind_the_filter_are_the_venues_on_good_lines() {
    on_all(|seed| RigConfig {
        seed,
        ..RigConfig::default()
    });
}

#[test]
fn books_behind_the_filter_are_the_venues_on_bad_lines() {
    on_all(RigConfig::bad_lines);
}

#[test]
fn a_late_joiner_behind_the_filter_becomes_right() {
    on_all(|seed| RigConfig {
        joins_after_ms: 100,
        ..RigConfig::bad_lines(seed)
    });
}
