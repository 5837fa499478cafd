//! Channels behind the kernel's filter, on bad lines, with subscriptions that change in mid-session: the
//! books are the venue's, as the rig checks at every quiet moment, though most packets never reach the
//! channel. The filter runs in its interpreter, in front of the live port; what owns it does what whoever
//! owns the sockets has to do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use tickwire_book::Depth;
use tickwire_exchange::{
    CqsLineConfig, CqsPublisher, CqsPublisherConfig, CqsReset, ItchPublisher, ItchPublisherConfig, Listing,
    Mdp3Publisher, Mdp3PublisherConfig, Mdp3View, MoexPublisher, MoexPublisherConfig, NysePublisherConfig,
    OpenBookPublisher, PitchPublisher, PitchPublisherConfig, Publisher, UnitConfig, UqdfPublisher,
    UqdfPublisherConfig, XdpPublisher, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, CqsChannel, CqsDecoder, CqsFeed, DayUse, FeedState, ItchChannel, ItchConfig,
    ItchDecoder, ItchFeed, Line, Mdp3Channel, Mdp3Config, Mdp3Decoder, Mdp3Depth, MoexChannel,
    MoexChannelConfig, MoexConfig, OpenBookChannel, OpenBookConfig, OpenBookDecoder, OpenBookFeed, Pattern,
    PitchChannel, PitchChannelConfig, PitchConfig, PitchUnit, Prefiltered, RecoveryLimits, RequestConfig,
    Rule, Seen, SipConfig, SoupConfig, Start, SubscriptionsFull, UqdfChannel, UqdfDecoder, UqdfFeed,
    XdpChannel, XdpConfig, XdpDecoder, XdpFeed,
};
use tickwire_kernel::asm::{Program, action};
use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group, MapKind};
use tickwire_kernel::frame;
use tickwire_kernel::interp::{Machine, Map};
use tickwire_kernel::layout::{self, Count, Meta, Sizes};
use tickwire_market::{
    Counter, Counters, EventSink, Instrument, InstrumentId, MessageType, Nanos, OrderId, Port, SeqNo, Symbol,
    Venue,
};
use tickwire_receive::filtering::{FilterName, Filtering, Gate, NoRoom};
use tickwire_rig::{Changes, Outcome, RigConfig, run};
use tickwire_testdata::workspace;
use tickwire_wire::fast::Plan;

const UNIT: u8 = 7;
/// Orders that a filter can follow.
const ORDERS: u32 = 1 << 18;
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
    epoch: u16,
    /// Disarmed, and what had been seen until then is not told yet.
    last: Option<u64>,
    deliveries: u32,
    /// The owner's part, as the programs have it.
    filtering: Option<Filtering>,
    dropped: u64,
    /// Packets that were delivered.
    looks: u32,
    /// How often all resting orders were told anew.
    rebuilt: u32,
}

impl Filter {
    fn new(framing: Framing, orders_max: u32) -> Filter {
        let spec = FilterSpec {
            channels: vec![ChannelSpec {
                framing,
                groups: LINES.to_vec(),
                set: 0,
            }],
            orders_max,
            ..FilterSpec::default()
        };
        let (state, sets) = spec.initial();
        let mut machine = Machine::new();
        for map in spec.maps() {
            let made = match map.kind {
                MapKind::Value if map.id == layout::STATE => Map::Value(state.clone()),
                MapKind::Value if map.id == layout::SETS => Map::Value(sets.clone()),
                MapKind::Value => Map::Value(spec.initial_refused()),
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
            epoch: 0,
            last: None,
            deliveries: 0,
            filtering: Some(Filtering::new(framing)),
            dropped: 0,
            looks: 0,
            rebuilt: 0,
        };
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

    fn count(&mut self, what: Count) -> u64 {
        let at = layout::COUNTERS + what.offset();
        u64::from_ne_bytes(self.state()[at..at + 8].try_into().expect("eight"))
    }
}

impl Gate for Filter {
    fn is_armed(&mut self) -> bool {
        self.word() != 0
    }

    fn drops(&mut self) -> bool {
        self.word() != 0 && !self.holds()
    }

    fn disarm(&mut self) {
        let word = self.word();
        if word != 0 {
            self.last = Some(word & layout::NEXT_MASK);
        }
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

    fn want_all(&mut self, wanted: bool) {
        let at = self.sizes.sets_at();
        self.machine.value(layout::SETS)[at..at + layout::BITS / 8].fill(if wanted { 0xFF } else { 0 });
    }

    fn refuse(&mut self, key: u64) {
        let bucket = layout::refused_bucket(key);
        let (words, _) = self.machine.value(layout::REFUSED).as_chunks_mut::<8>();
        let words = &mut words[2 * bucket..2 * bucket + 2];
        let have = [words[0], words[1]].map(u64::from_ne_bytes);
        if let Some(at) = layout::refused_place(bucket, have, key) {
            words[at] = key.to_ne_bytes();
        }
    }

    fn refuse_none(&mut self) {
        let (words, _) = self.machine.value(layout::REFUSED).as_chunks_mut::<8>();
        for (at, word) in words.iter_mut().enumerate() {
            *word = layout::refused_empty(at / 2).to_ne_bytes();
        }
    }

    fn follow(&mut self, order: OrderId) -> Result<(), NoRoom> {
        let Some(Map::Hash { entries, room, .. }) = self.machine.map(layout::ORDERS) else {
            return Ok(());
        };
        let mut key = vec![0; layout::ORDER_KEY];
        key[..8].copy_from_slice(&order.0.to_ne_bytes());
        if entries.len() >= *room && !entries.contains_key(&key) {
            return Err(NoRoom);
        }
        entries.insert(key, vec![1]);
        let bit = layout::order_bit(order.0);
        self.machine.value(layout::SETS)[bit / 8] |= 1 << (bit % 8);
        Ok(())
    }

    fn follow_none(&mut self) {
        self.rebuilt += 1;
        if let Some(Map::Hash { entries, .. }) = self.machine.map(layout::ORDERS) {
            entries.clear();
        }
    }

    fn is_full(&mut self) -> bool {
        self.state()[layout::FULL] != 0
    }

    fn arm(&mut self, session: [u64; 2], next: u64) {
        for (at, word) in session.into_iter().enumerate() {
            let at = layout::SESSION + 8 * at;
            self.state()[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        self.epoch += 1;
        self.state()[layout::HOLD..layout::HOLD + 8].fill(0);
        // A match event may be under way.
        let open = if self.framing == Framing::Mdp3 {
            layout::OPEN
        } else {
            0
        };
        self.set_word(layout::word(self.epoch, next) | open);
    }
}

struct Filtered<C> {
    channel: C,
    /// When everything is subscribed to, where nothing is wanted at the beginning.
    wants_all_at: Option<Nanos>,
    filter: RefCell<Filter>,
}

/// While it drops anything, the program knows of everybody whom nobody wants, whenever he became known.
fn check_told(filtering: &Filtering, channel: &impl Channel, filter: &mut Filter) {
    let sets = filter.sizes.sets_at();
    channel.instruments(&mut |instrument| {
        let name = filtering.name_of(channel, instrument.id);
        if instrument.id != InstrumentId::WHOLE_FEED && !channel.wants(instrument.id) {
            match name {
                Some(FilterName::Bit(bit)) => {
                    let byte = filter.machine.value(layout::SETS)[sets + bit / 8];
                    assert_eq!(byte >> (bit % 8) & 1, 0, "{instrument:?} is delivered");
                }
                Some(FilterName::Key(key)) => {
                    let (words, _) = filter.machine.value(layout::REFUSED).as_chunks::<8>();
                    let words = &words[2 * layout::refused_bucket(key)..][..2];
                    let empty = layout::refused_empty(layout::refused_bucket(key)).to_ne_bytes();
                    // Of one bucket there may be more than it has room for.
                    let is_told = words.contains(&key.to_ne_bytes()) || !words.contains(&empty);
                    assert!(is_told, "{instrument:?} is delivered");
                }
                None => {}
            }
        }
    });
}

impl<C: Channel> Filtered<C> {
    fn new(mut channel: C, filter: Filter) -> Filtered<C> {
        if let Some(filtering) = &filter.filtering {
            filtering.prepare(&mut channel);
        }
        Filtered {
            channel,
            wants_all_at: None,
            filter: RefCell::new(filter),
        }
    }

    /// Disarms, and tells the channel what was seen until then.
    fn open(&mut self, now: Nanos) {
        let filter = self.filter.get_mut();
        filter.disarm();
        let last = filter.last.take();
        let filtering = filter.filtering.as_ref().expect("the owner's part");
        if let Some(next) = filtering.claim(last) {
            self.channel.seen_up_to(now, SeqNo(next));
        }
    }

    /// The slow part of a loop, which comes at any moment.
    fn settle(&mut self, now: Nanos) {
        let filter = self.filter.get_mut();
        if let Some(mut filtering) = filter.filtering.take() {
            let is_to_open = filtering.is_to_open(&self.channel, filter);
            let is_last_due = filter.last.is_some();
            filter.filtering = Some(filtering);
            if is_to_open || is_last_due {
                self.open(now);
            }
        }
        let filter = self.filter.get_mut();
        if let Some(mut filtering) = filter.filtering.take() {
            filtering.settle(&mut self.channel, filter);
            if filter.drops() {
                check_told(&filtering, &self.channel, filter);
            }
            filter.filtering = Some(filtering);
        }
    }

    /// Calls the channel, then disarms if need be, or arms.
    fn with<T>(&mut self, now: Nanos, call: impl FnOnce(&mut C) -> T) -> T {
        let result = call(&mut self.channel);
        self.settle(now);
        result
    }
}

impl<C: Channel> Channel for Filtered<C> {
    tickwire_feed::through_tables!();

    fn on_datagram<S: EventSink>(&mut self, now: Nanos, port: Port, line: Line, bytes: &[u8], sink: &mut S) {
        let mut rules = 0;
        self.channel.subscriptions(&mut |_| rules += 1);
        let at = *self.wants_all_at.get_or_insert(now.after(150 * Nanos::MILLI));
        if rules == 0 && now >= at {
            self.open(now);
            let joining = self.channel.subscribe(now, &Pattern::ALL, sink).expect("room");
            assert!(joining > 10, "{joining}");
        }
        let line_at = match (port, line) {
            (Port::Live, Line::A) => 0,
            (Port::Live, Line::B) => 1,
            _ => return self.channel.on_datagram(now, port, line, bytes, sink),
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
                let claim = filter.filtering.as_ref().expect("the owner's part");
                if let Some(next) = claim.claim(Some(word & layout::NEXT_MASK)) {
                    self.channel.seen_up_to(now, SeqNo(next));
                }
            }
            return;
        }
        let (mut claim, mut is_filtered) = (None, false);
        if outcome.action == action::REDIRECT {
            let meta: &[u8; layout::META_SIZE] = outcome.meta.as_slice().try_into().expect("metadata");
            let meta = Meta::read(meta).expect("ours");
            assert_eq!(meta.delivery, filter.deliveries);
            filter.deliveries = filter.deliveries.wrapping_add(1);
            claim = meta.claim().filter(|(epoch, _)| *epoch == filter.epoch);
            is_filtered = claim.is_some() && filter.drops();
        }
        // Disarmed since the packet before: what had been seen until then comes first.
        if let Some(next) = filter.last.take() {
            claim = claim.or(Some((filter.epoch, next)));
        }
        let mut filtering = self.filter.get_mut().filtering.take().expect("the owner's part");
        if let Some(next) = filtering.claim(claim.map(|(_, next)| next)) {
            self.channel.seen_up_to(now, SeqNo(next));
        }
        let before = self.channel.next_seq();
        let noted = filtering.noted(&mut self.channel);
        self.channel.on_datagram(now, port, line, bytes, sink);
        filtering.note(&mut self.channel, bytes, before, (noted, is_filtered));
        let filter = self.filter.get_mut();
        filtering.guard(&self.channel, filter);
        filter.filtering = Some(filtering);
        // Ten times a second in the programs; here at one packet in some.
        filter.looks += 1;
        if filter.looks.is_multiple_of(7) {
            self.settle(now);
        }
    }

    fn subscribe(
        &mut self,
        now: Nanos,
        pattern: &Pattern,
        sink: &mut dyn EventSink,
    ) -> Result<u32, SubscriptionsFull> {
        self.open(now);
        self.channel.subscribe(now, pattern, sink)
    }

    fn unsubscribe(
        &mut self,
        now: Nanos,
        pattern: &Pattern,
        sink: &mut dyn EventSink,
    ) -> Result<u32, SubscriptionsFull> {
        self.open(now);
        self.channel.unsubscribe(now, pattern, sink)
    }

    fn on_message<S: EventSink>(&mut self, now: Nanos, message: &[u8], sink: &mut S) {
        self.channel.on_message(now, message, sink);
    }
    fn handle_timeout(&mut self, now: Nanos, sink: &mut dyn EventSink) {
        self.with(now, |channel| channel.handle_timeout(now, sink));
    }
    fn on_bytes(&mut self, now: Nanos, port: Port, bytes: &[u8], sink: &mut dyn EventSink) {
        self.channel.on_bytes(now, port, bytes, sink);
    }
    fn disconnected(&mut self, now: Nanos, port: Port, sink: &mut dyn EventSink) {
        self.channel.disconnected(now, port, sink);
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
    fn changes(&self) -> u64 {
        self.channel.changes()
    }
    fn prefiltered(&self) -> &dyn Prefiltered {
        self.channel.prefiltered()
    }
    fn prefiltered_mut(&mut self) -> &mut dyn Prefiltered {
        self.channel.prefiltered_mut()
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

fn openbook() -> OpenBookChannel {
    let decoder = OpenBookDecoder::new(OpenBookConfig {
        instruments_max: 1000,
        ..OpenBookConfig::default()
    });
    let arbiter = ArbiterConfig {
        start: Start::Beginning,
        snapshot: true,
        recovery: RecoveryLimits::XDP,
        ..ArbiterConfig::default()
    };
    let requests = RequestConfig {
        source_id: b"RIG".into(),
        product: 12,
        channel: 1,
        refresh_patience_ns: 10 * Nanos::MILLI,
        ..RequestConfig::default()
    };
    OpenBookChannel::new(OpenBookFeed::new(arbiter, decoder), requests)
}

/// Of everything, or of some named beforehand and nobody else.
fn sip(named: &[Listing]) -> SipConfig {
    let symbols: Vec<Symbol> = named.iter().map(|listing| listing.symbol).collect();
    SipConfig {
        symbols: (!symbols.is_empty()).then_some(symbols),
        ..SipConfig::default()
    }
}

fn cqs(named: &[Listing]) -> CqsChannel {
    let decoder = CqsDecoder::new(&sip(named));
    CqsChannel::new(CqsFeed::new(CqsChannel::arbiter_config(), decoder))
}

fn cqs_publisher(listings: &[Listing], reset: Option<CqsReset>) -> Box<dyn Publisher> {
    let config = CqsPublisherConfig {
        line: CqsLineConfig {
            snapshot_ns: 20 * Nanos::MILLI,
            asked_again_ppm: 1_000_000,
            reset,
            ..CqsLineConfig::default()
        },
        ..CqsPublisherConfig::default()
    };
    Box::new(CqsPublisher::new(config, listings))
}

fn uqdf(named: &[Listing]) -> UqdfChannel {
    UqdfChannel::new(UqdfFeed::new(
        ArbiterConfig::default(),
        UqdfDecoder::new(&sip(named)),
    ))
}

fn plan() -> Arc<Plan> {
    let text = std::fs::read_to_string(workspace().join("examples/moex-templates.xml"));
    Arc::new(Plan::parse(&text.expect("templates")).expect("a plan"))
}

fn moex_day(config: &RigConfig, symbols: Option<Vec<Symbol>>) -> Outcome<Filtered<MoexChannel>> {
    let mut moex = MoexChannelConfig::new(MoexConfig {
        symbols,
        ..MoexConfig::new(plan())
    });
    // The day is short: with the exchange's one connection a second a gap would last longer than it does.
    moex.arbiter.recovery.timeout_min_ns = 20 * Nanos::MILLI;
    moex.arbiter.request_timeout_ns = 100 * Nanos::MILLI;
    moex.arbiter.recovery.requests_per_second = 50;
    let channel = MoexChannel::new(moex).expect("templates that fit");
    run_day(
        Framing::Moex,
        (config, ORDERS),
        Depth::ByOrder,
        channel,
        |listings| {
            let config = MoexPublisherConfig {
                snapshot_interval_ns: 100 * Nanos::MICRO,
                ..MoexPublisherConfig::default()
            };
            Box::new(MoexPublisher::new(config, plan(), listings).expect("templates that fit"))
        },
    )
}

/// Of MOEX the other line's copies are dropped, and what is about instruments while nobody wants any.
#[test]
fn a_channel_of_moex_is_filtered_as_a_whole() {
    for seed in 1..=seeds() {
        let config = changing(seed, RigConfig::bad_lines(seed));
        let outcome = moex_day(&config, None);
        let duplicates = outcome.channel.filter.borrow_mut().count(Count::Duplicate);
        assert!(duplicates > 500, "{duplicates}");
    }
    // Nobody wants anything, until somebody wants everything.
    let config = RigConfig {
        duration_ms: 300,
        ..RigConfig::bad_lines(5)
    };
    let outcome = moex_day(&config, Some(Vec::new()));
    let dropped = outcome.channel.filter.borrow_mut().count(Count::Filtered);
    assert!(dropped > 200, "{dropped}");
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

/// A day of which something is filtered.
fn day<C: Channel>(
    framing: Framing,
    of_day: (&RigConfig, u32),
    depth: Depth,
    channel: C,
    publisher: impl FnOnce(&[Listing]) -> Box<dyn Publisher>,
) -> Outcome<Filtered<C>> {
    let outcome = run_day(framing, of_day, depth, channel, publisher);
    let dropped = outcome.channel.filter.borrow_mut().count(Count::Filtered);
    assert!(dropped > 0, "nothing was filtered");
    outcome
}

/// A day, and how much of it the channel never saw.
fn run_day<C: Channel>(
    framing: Framing,
    (config, orders_max): (&RigConfig, u32),
    depth: Depth,
    channel: C,
    publisher: impl FnOnce(&[Listing]) -> Box<dyn Publisher>,
) -> Outcome<Filtered<C>> {
    let listings = listings(40);
    let filtered = Filtered::new(channel, Filter::new(framing, orders_max));
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
    assert_eq!(outcome.counters.get(Counter::BookRejects), 0);
    assert_eq!(outcome.counters.get(Counter::Malformed), 0);
    if config.impair.loss_ppm == 0 && config.joins_after_ms == 0 {
        // What the filter dropped is never taken for missing, however often it is armed anew.
        let gaps = outcome.counters.get(Counter::Gaps);
        assert_eq!(gaps, 0, "{framing:?}, seed {}", config.seed);
    }
    drop(filter);
    outcome
}

fn changing(seed: u64, lines: RigConfig) -> RigConfig {
    RigConfig {
        seed,
        duration_ms: 250,
        compare_every_ms: 3,
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
        day(
            Framing::Itch,
            (&config, ORDERS),
            Depth::ByOrder,
            itch(),
            |listings| Box::new(ItchPublisher::new(ItchPublisherConfig::default(), listings)),
        );
        day(
            Framing::Nyse,
            (&config, ORDERS),
            Depth::ByOrder,
            nyse(),
            |listings| Box::new(XdpPublisher::new(NysePublisherConfig::default(), listings)),
        );
        let of_nyse = (&config, ORDERS);
        day(
            Framing::OpenBook,
            of_nyse,
            Depth::ByPrice,
            openbook(),
            |listings| Box::new(OpenBookPublisher::new(NysePublisherConfig::default(), listings)),
        );
        for (depth, mdp3_depth, view) in [
            (Depth::ByPrice, Mdp3Depth::ByPrice, Mdp3View::ByPrice),
            (Depth::ByOrder, Mdp3Depth::ByOrder, Mdp3View::ByOrder),
        ] {
            day(
                Framing::Mdp3,
                (&config, ORDERS),
                depth,
                mdp3(mdp3_depth),
                |listings| {
                    let config = Mdp3PublisherConfig {
                        view,
                        loop_interval_ns: 100 * Nanos::MICRO,
                        store_bytes: 64 << 20,
                        store_packets: 1 << 16,
                        ..Mdp3PublisherConfig::default()
                    };
                    Box::new(Mdp3Publisher::new(config, listings))
                },
            );
        }
        for named in [&[][..], &listings(40)[..6]] {
            // What joins is right when both sides have been said, which takes its time, and all is delivered
            // meanwhile.
            let mut config = config.clone();
            if let Some(changes) = &mut config.changes {
                changes.every_ms = if named.is_empty() { 30 } else { 10_000 };
            }
            let of_tapes = (&config, ORDERS);
            day(Framing::Cqs, of_tapes, Depth::ByPrice, cqs(named), |listings| {
                cqs_publisher(listings, None)
            });
            day(Framing::Uqdf, of_tapes, Depth::ByPrice, uqdf(named), |listings| {
                Box::new(UqdfPublisher::new(UqdfPublisherConfig::default(), listings))
            });
        }
        // While a book joins everything is delivered: with longer pauses something is left to filter.
        let mut config = config.clone();
        if let Some(changes) = &mut config.changes {
            changes.every_ms = 80;
        }
        pitch_day(&config, ORDERS);
    }
}

fn pitch_day(config: &RigConfig, orders_max: u32) -> Outcome<Filtered<PitchChannel>> {
    let day_of = (config, orders_max);
    day(Framing::Pitch, day_of, Depth::ByOrder, pitch(), |listings| {
        let config = PitchPublisherConfig {
            unit: UnitConfig {
                unit: UNIT,
                ..UnitConfig::default()
            },
            ..PitchPublisherConfig::default()
        };
        Box::new(PitchPublisher::new(config, listings))
    })
}

/// Numbers that begin anew in the middle of the day, lower ones and higher ones: nothing that the filter said
/// of those before counts any more, and it is armed again behind them.
#[test]
fn numbers_that_begin_anew_behind_the_filter_make_no_book_wrong() {
    let mut snapshots = 0;
    for (seed, to) in [(1, 1), (2, 400), (3, 50_000)] {
        let config = RigConfig::bad_lines(seed);
        let of_day = (&config, ORDERS);
        let channel = cqs(&listings(40));
        let outcome = run_day(Framing::Cqs, of_day, Depth::ByPrice, channel, |listings| {
            cqs_publisher(listings, Some(CqsReset { after: 700, to }))
        });
        snapshots += outcome.counters.get(Counter::Snapshots);
        let mut filter = outcome.channel.filter.borrow_mut();
        assert!(
            filter.count(Count::Hold) > 0 && filter.epoch > 1,
            "{}",
            filter.epoch
        );
        assert!(filter.count(Count::Duplicate) > 1_000);
    }
    assert!(snapshots > 0);
}

/// A table of orders that is too small for what rests: the program opens the channel each time that it is
/// full, the owner tells it anew what rests, or leaves it open where that finds no room. No book is wrong.
#[test]
fn a_full_table_of_orders_makes_no_book_wrong() {
    for seed in 1..=seeds() {
        let mut config = changing(seed, RigConfig::bad_lines(seed));
        config.duration_ms = 500;
        if let Some(changes) = &mut config.changes {
            changes.every_ms = 80;
        }
        let outcome = pitch_day(&config, 2_000);
        let rebuilt = outcome.channel.filter.borrow().rebuilt;
        println!("told anew {rebuilt} times");
        assert!(rebuilt > 1, "{rebuilt}");
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
