//! What a receiver of one instrument in a hundred takes of its processor, and how many packets a second it
//! takes: by sockets, by AF_XDP, and behind the filter at the hook, between two network namespaces.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tickwire_book::{Books, Depth};
use tickwire_console::failure::Failure;
use tickwire_exchange::Listing;
use tickwire_feed::{Channel, Line};
use tickwire_kernel::frame;
use tickwire_lab::{Histogram, Table, format_count};
use tickwire_market::{Counter, Counters, EventSink, MarketEvent, Nanos, Port, Symbol, Upcoming};
use tickwire_receive::SocketOptions;
use tickwire_receive::receiver::{Consumer, Receiver};
use tickwire_rig::recorded::{BooksOnly, Recorded, SESSION, walk};
use tickwire_runtime::clock::{Clock, thread_cpu_ns, tsc};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::stamp::RxStamp;
use tickwire_runtime::udp::MulticastSender;
use tickwire_runtime::wait::WaitStrategy;
use tickwire_runtime::xdp::caps;
use tickwire_runtime::xdp::delegate::PacketSocket;
use tickwire_simulator::session::{Packing, Session as Published};
use tickwire_venues::channels::{FeedConfig, InterfaceName};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::{Backend, ReceiverSection, books_config};
use tickwire_venues::wiring::{self, Reception, WithChannel};

use super::{End, evenly, looked_into, paced, pin_to};
use crate::cli::BenchArgs;
use crate::feedbench::symbols_of;

/// Messages of a packet of ITCH, at most.
const MESSAGES_A_PACKET: u16 = 4;
/// The longest payload that an Ethernet frame holds.
const FRAMED_MAX: usize = 1_472;
/// Packets a second of every feed behind the filter.
const EACH_AT: u64 = 200_000;
/// Of a hundred instruments, so many are wanted.
const PERCENT: u64 = 1;
/// Packets a second at which what a packet takes is compared.
const COMPARED_AT: u64 = 100_000;
/// How long a rate is kept up, where the session has as many packets.
const KEPT: Duration = Duration::from_secs(2);
/// Packets a second until the receiver knows who is who.
const GENTLE: u64 = 20_000;
/// So long after the last packet nothing more comes.
const QUIET: Duration = Duration::from_millis(200);
/// What is waited for comes within this.
const PATIENCE: Duration = Duration::from_secs(20);
/// Thousands of packets a second.
const RATES: [u64; 11] = [50, 100, 150, 200, 250, 300, 350, 400, 500, 700, 1_000];

/// How packets are received.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Sockets,
    Ring,
    Filter,
}

impl Way {
    const ALL: [Way; 3] = [Way::Sockets, Way::Ring, Way::Filter];

    fn name(self) -> &'static str {
        match self {
            Way::Sockets => "sockets",
            Way::Ring => "AF_XDP",
            Way::Filter => "AF_XDP, filter",
        }
    }

    fn section(self, instruments_max: u32) -> ReceiverSection {
        ReceiverSection {
            backend: match self {
                Way::Sockets => Backend::Socket,
                Way::Ring | Way::Filter => Backend::Xdp,
            },
            filter: self == Way::Filter,
            max_instruments: instruments_max,
            ..ReceiverSection::default()
        }
    }
}

/// The session that is sent.
struct Session {
    name: String,
    feed: FeedConfig,
    instruments_max: u32,
    /// Definitions, which come another way.
    defined: Vec<(Port, Vec<u8>)>,
    packets: Vec<u8>,
    /// Of these, so many come before the measured ones: until most are known.
    before: u64,
    count: u64,
    /// Some are longer than a frame: they go by the sockets, and may be behind others.
    has_fragments: bool,
    wanted: Vec<Symbol>,
}

impl Session {
    fn new(
        name: String,
        feed: &FeedConfig,
        packets: Vec<u8>,
        listings: &[Listing],
    ) -> Result<Session, Failure> {
        let mut feed = feed.clone();
        feed.interface = InterfaceName::try_from("veth0".to_string()).map_err(Failure::config)?;
        for channel in &mut feed.channels {
            // Nobody answers.
            (channel.requests, channel.replay, channel.snapshot_server) = (None, None, None);
        }
        let count = walk(&packets).count() as u64;
        let has_fragments = walk(&packets).any(|payload| payload.len() > FRAMED_MAX);
        Ok(Session {
            name,
            feed,
            instruments_max: listings.len() as u32 + 2,
            defined: Vec::new(),
            before: (count / 20).max(400).min(count / 2),
            count,
            has_fragments,
            packets,
            wanted: evenly(listings, PERCENT).map(|listing| listing.symbol).collect(),
        })
    }

    /// ITCH, so many messages in each packet.
    fn even(args: &BenchArgs) -> Result<Session, Failure> {
        let symbols = u16::try_from(symbols_of(args)).unwrap_or(u16::MAX);
        let packets = Recorded::generate(args.seed, args.messages, symbols).packets(MESSAGES_A_PACKET);
        let mut feed = FeedConfig::on_loopback(Protocol::Itch50);
        feed.session = Some(String::from_utf8_lossy(SESSION).into_owned());
        let name = format!("{}, {MESSAGES_A_PACKET} a packet", Protocol::Itch50);
        Session::new(name, &feed, packets, &tickwire_exchange::listings(symbols))
    }

    /// Any feed, packets as full as recorded ones.
    fn recorded(args: &BenchArgs, protocol: Protocol) -> Result<Session, Failure> {
        let symbols = symbols_of(args);
        let published = Published::publish(protocol, args.seed, args.messages, symbols, Packing::Recorded)?;
        let feed = &published.config.feed[0];
        let listings = published.exchange.listings();
        let mut session = Session::new(protocol.to_string(), feed, published.live, listings)?;
        session.defined = published.before;
        Ok(session)
    }

    fn line(&self) -> SocketAddrV4 {
        self.feed.channels[0].live.a
    }

    fn reception(&self, section: &ReceiverSection) -> Reception {
        let mut reception = Reception::new(section);
        reception.symbols = Some(self.wanted.clone());
        reception
    }
}

/// The books of who is wanted after so many packets, in memory.
struct InMemory<'a>(&'a Session, u64);

impl WithChannel for InMemory<'_> {
    type Output = u64;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> u64 {
        let section = Way::Sockets.section(self.0.instruments_max);
        let mut sink = BooksOnly(Books::new(books_config(&section, channel.venue(), depth)));
        for (port, bytes) in &self.0.defined {
            channel.on_datagram(Nanos(1), *port, Line::A, bytes, &mut sink);
        }
        for payload in walk(&self.0.packets).take(self.1 as usize) {
            channel.on_datagram(Nanos(1), Port::Live, Line::A, payload, &mut sink);
        }
        sink.0.state_hash()
    }
}

/// Books, and how old what a packet changed in them is when it is there.
struct Listener {
    clock: Clock,
    books: Books,
    /// From the hook to the book, of packets that were delivered.
    aged: Histogram,
    has_hook: bool,
    delivered: u64,
    counters: Counters,
}

impl Listener {
    /// Packets that came to the hook, or to the socket, whatever became of them.
    fn seen(&self, way: Way) -> u64 {
        let of = |counter| self.counters.get(counter);
        match way {
            Way::Filter => of(Counter::HookPackets),
            Way::Sockets | Way::Ring => of(Counter::PacketsA) + of(Counter::KernelDrops),
        }
    }
}

impl EventSink for Listener {
    fn on_event(&mut self, event: &MarketEvent) {
        let _ = self.books.apply(event);
    }

    fn upcoming(&mut self, next: Upcoming) {
        self.books.upcoming(next);
    }

    fn arriving(&mut self, next: Upcoming) {
        self.books.arriving(next);
    }
}

impl Consumer for Listener {
    type Successor = Listener;

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn turn_to(&mut self, _: usize) {}

    fn begins(&mut self, stamp: &RxStamp) -> Nanos {
        self.delivered += 1;
        self.clock.nanos_at(stamp.tsc)
    }

    fn ends<C: Channel>(&mut self, _: &C, _: Port, stamp: impl FnOnce() -> Option<RxStamp>) {
        if !self.has_hook {
            return;
        }
        if let Some(hook) = stamp().and_then(|stamp| stamp.times(&self.clock).hook) {
            self.aged.record(self.clock.now().since(hook));
        }
    }

    fn looks<C: Channel>(&mut self, channel: &C, count: impl FnOnce(&mut Counters)) {
        self.counters = channel.counters();
        count(&mut self.counters);
    }
}

/// What both threads tell each other.
#[derive(Default)]
struct Between {
    /// The receiver listens.
    is_open: AtomicBool,
    /// It knows who is who: what is measured may come.
    is_ready: AtomicBool,
    /// So many packets were sent in all.
    sent: AtomicU64,
    is_over: AtomicBool,
}

impl Between {
    fn wait(flag: &AtomicBool, what: &str) -> Result<(), Failure> {
        let begin = Instant::now();
        while !flag.load(Ordering::Acquire) {
            if begin.elapsed() > PATIENCE {
                return Err(Failure::check(format!("{what} did not come to be")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Ends the other thread, whatever becomes of this one.
struct Ends<'a>(&'a Between);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        for flag in [&self.0.is_open, &self.0.is_ready, &self.0.is_over] {
            flag.store(true, Ordering::Release);
        }
    }
}

/// What was sent at the rate that is measured.
struct Sent {
    packets: u64,
    seconds: f64,
    /// Within the calls that send.
    calls_ns: u64,
}

fn send(session: &Session, rate: u64, between: &Between) -> Result<Sent, Failure> {
    let failed = |e: std::io::Error| Failure::system(format!("sending at veth0: {e}"));
    let _ends = Ends(between);
    let clock = Clock::calibrate();
    let interface = Interface::find("veth0").map_err(|e| Failure::system(e.to_string()))?;
    let socket = PacketSocket::open(interface.index(), false).map_err(failed)?;
    let large = MulticastSender::open(session.line(), &interface, 1);
    let large = large.map_err(|e| Failure::system(e.to_string()))?;
    let mut buffer = vec![0; frame::HEADERS + frame::PAYLOAD_MAX];
    let to = (session.line().ip().octets(), session.line().port());
    let mut packets = walk(&session.packets);
    let mut each = |count: u64, rate: u64, limit: Duration| -> Result<Sent, Failure> {
        let mut calls = 0;
        let (sent, took) = paced(rate, count, limit, || {
            let Some(payload) = packets.next() else {
                return Ok(());
            };
            let called = tsc();
            match frame::encode(&mut buffer, 0, to, payload).filter(|_| payload.len() <= FRAMED_MAX) {
                Some(length) => {
                    while !socket.send(&buffer[..length]).map_err(failed)? {
                        std::hint::spin_loop();
                    }
                }
                None => large.send(payload).map_err(|e| Failure::system(e.to_string()))?,
            }
            calls += tsc() - called;
            Ok(())
        })?;
        Ok(Sent {
            packets: sent,
            seconds: took.as_secs_f64(),
            calls_ns: clock.span_ns(calls),
        })
    };
    Between::wait(&between.is_open, "a receiver")?;
    let first = each(session.before, GENTLE, PATIENCE)?;
    between.sent.store(first.packets, Ordering::Release);
    Between::wait(&between.is_ready, "a receiver that knows who is who")?;
    let sent = each(session.count - session.before, rate, KEPT)?;
    between
        .sent
        .store(first.packets + sent.packets, Ordering::Release);
    Ok(sent)
}

/// What a receiver says at the end.
struct Received {
    cpu_ns: u64,
    aged: Histogram,
    delivered: u64,
    /// Packets that came to the hook, or to the socket.
    seen: u64,
    /// Packets that did not: lost in the virtual interface, as on a wire.
    lost: u64,
    /// Of those that came, there was no room for so many in the ring or the buffer.
    dropped: u64,
    gaps: u64,
    hash: u64,
}

fn receive(session: &Session, way: Way, wait: WaitStrategy, between: &Between) -> Result<Received, Failure> {
    let _ends = Ends(between);
    let section = way.section(session.instruments_max);
    let mut receiver: Receiver<Listener> = Receiver::empty(wait, 2);
    let facts = receiver.add(&session.feed, (0, 0), &session.reception(&section))?;
    let mut listener = Listener {
        clock: Clock::calibrate(),
        books: Books::new(books_config(&section, facts.venue, facts.depth)),
        aged: Histogram::new(),
        has_hook: way != Way::Sockets,
        delivered: 0,
        counters: Counters::default(),
    };
    // As `Receiver::join` does, which says so each time.
    receiver.join_one(0, &session.feed, SocketOptions::of(&section))?;
    for (port, bytes) in &session.defined {
        receiver.deliver(0, listener.now(), (*port, Line::A), bytes, &mut listener);
    }
    receiver.hook(&section)?;
    between.is_open.store(true, Ordering::Release);
    let (mut began, mut ended) = (None, 0);
    let mut last = (0, Instant::now());
    receiver.run_until(&mut listener, |_, listener, _, is_slow| {
        if !is_slow {
            return None;
        }
        // The hook has the kernel's clock: followed as closely as every loop follows it.
        listener.clock.resync();
        let sent = between.sent.load(Ordering::Acquire);
        let seen = listener.seen(way);
        let is_armed = way != Way::Filter || listener.counters.get(Counter::HookFiltered) > 0;
        if began.is_none() && sent > 0 && seen >= session.before && (is_armed || last.1.elapsed() > QUIET) {
            listener.aged = Histogram::new();
            listener.delivered = 0;
            began = Some(thread_cpu_ns());
            between.is_ready.store(true, Ordering::Release);
        }
        if seen != last.0 {
            last = (seen, Instant::now());
            ended = thread_cpu_ns();
        }
        (between.is_over.load(Ordering::Acquire) && last.1.elapsed() > QUIET).then_some(())
    });
    let (seen, hash) = (listener.seen(way), listener.books.state_hash());
    Ok(Received {
        cpu_ns: ended.saturating_sub(began.unwrap_or(ended)),
        aged: listener.aged,
        delivered: listener.delivered,
        seen,
        lost: 0,
        dropped: listener.counters.get(Counter::KernelDrops),
        gaps: listener.counters.get(Counter::Gaps),
        hash,
    })
}

fn point(
    pair: &VethPair,
    session: &Session,
    (way, wait, rate): (Way, WaitStrategy, u64),
) -> Result<(Sent, Received), Failure> {
    let between = Between::default();
    let system = |e: std::io::Error| Failure::system(e.to_string());
    let (sent, received) = std::thread::scope(|scope| {
        let between = &between;
        let sending = scope.spawn(move || {
            pair.enter(0).map_err(system)?;
            pin_to(End::Last)?;
            send(session, rate, between)
        });
        let receiving = scope.spawn(move || {
            pair.enter(1).map_err(system)?;
            pin_to(End::First)?;
            receive(session, way, wait, between)
        });
        (
            sending.join().expect("its panic ends this one"),
            receiving.join().expect("its panic ends this one"),
        )
    });
    let (received, sent) = (received?, sent?);
    let all = session.before + sent.packets;
    let section = way.section(session.instruments_max);
    let expected = wiring::with_channel(
        &session.feed,
        0,
        &session.reception(&section),
        InMemory(session, all),
    )?;
    let is_whole = received.seen == all && received.dropped == 0;
    let has_gaps = received.gaps > 0 && !session.has_fragments;
    if is_whole && (has_gaps || received.hash != expected) {
        return Err(Failure::check(format!(
            "{}, {} at {rate} a second: every packet was taken, and {} gaps were found or books differ from those in memory: the figures would \
             mean nothing",
            session.name,
            way.name(),
            received.gaps
        )));
    }
    Ok((
        sent,
        Received {
            lost: all.saturating_sub(received.seen),
            ..received
        },
    ))
}

pub(super) fn hook(args: &BenchArgs, up_to: u64) -> Result<Table, Failure> {
    let missing = caps::missing();
    let pair = match missing.is_empty() {
        true => VethPair::create("twscale").map_err(|why| format!("no network namespaces here: {why}")),
        false => Err(caps::explained(&missing)),
    };
    let pair = match pair {
        Ok(pair) => pair,
        Err(reason) => {
            let table = Table::new("a receiver of one instrument in a hundred", &["not measured"]);
            return Ok(table.row([reason]));
        }
    };
    let session = Session::even(args)?;
    let mut table = Table::new(
        &format!(
            "a receiver of {PERCENT} % of {} instruments, channel and books, between two network namespaces; sender on the last core, receiver on the first one, {} s at each rate or {} packets: processor time of the receiver's thread a packet sent; time a packet in the sender's call, within which the kernel does its part of receiving here, the program at the hook included; and from the hook to the book, nanoseconds. One that sleeps at {} packets a second, in turns; one that never sleeps at rates up to the first with a drop, or that beyond which the sender cannot go",
            symbols_of(args),
            KEPT.as_secs(),
            format_count(session.count),
            format_count(COMPARED_AT)
        ),
        &[
            "feed",
            "way",
            "waits",
            "sent a second",
            "receiver",
            "sender",
            "delivered",
            "lost before",
            "dropped",
            "hook to book: mean",
            "p50",
            "p99",
            "max",
        ],
    );
    for _ in 0..args.runs.max(1) {
        for way in Way::ALL {
            let rate = COMPARED_AT.min(up_to);
            let of = point(&pair, &session, (way, WaitStrategy::Poll, rate))?;
            table = table.row(row(&session, way, WaitStrategy::Poll, &of));
            eprintln!("  {}, asleep", way.name());
        }
    }
    for way in Way::ALL {
        for rate in RATES
            .map(|thousands| thousands * 1_000)
            .into_iter()
            .filter(|rate| *rate <= up_to)
        {
            let of = point(&pair, &session, (way, WaitStrategy::Spin, rate))?;
            table = table.row(row(&session, way, WaitStrategy::Spin, &of));
            eprintln!("  {}: {} a second", way.name(), format_count(rate));
            // A sender that does not keep up sends no more at a higher rate.
            let (sent, received) = &of;
            if received.lost + received.dropped > 0
                || (sent.packets as f64 / sent.seconds) < 0.75 * rate as f64
            {
                break;
            }
        }
    }
    // Every feed that is looked into: asleep, and awake at a rate that most of a core can take.
    for protocol in looked_into(args)? {
        let session = Session::recorded(args, protocol)?;
        for (wait, rate) in [(WaitStrategy::Poll, COMPARED_AT), (WaitStrategy::Spin, EACH_AT)] {
            let of = point(&pair, &session, (Way::Filter, wait, rate.min(up_to)))?;
            table = table.row(row(&session, Way::Filter, wait, &of));
        }
        eprintln!("  {protocol}");
    }
    Ok(table)
}

fn row(session: &Session, way: Way, wait: WaitStrategy, (sent, received): &(Sent, Received)) -> Vec<String> {
    let is_asleep = wait == WaitStrategy::Poll;
    let a_packet = |ns: u64| format_count(ns / sent.packets.max(1));
    let at = |value: u64| match received.aged.is_empty() {
        true => String::new(),
        false => format_count(value),
    };
    vec![
        session.name.clone(),
        way.name().to_string(),
        if is_asleep { "asleep" } else { "spinning" }.to_string(),
        format_count((sent.packets as f64 / sent.seconds) as u64),
        // One that never sleeps takes all of its core.
        if is_asleep {
            a_packet(received.cpu_ns)
        } else {
            String::new()
        },
        a_packet(sent.calls_ns),
        format_count(received.delivered),
        format_count(received.lost),
        format_count(received.dropped),
        at(received.aged.mean() as u64),
        at(received.aged.at_quantile(0.5)),
        at(received.aged.at_quantile(0.99)),
        at(received.aged.max()),
    ]
}
