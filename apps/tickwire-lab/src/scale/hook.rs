//! What a receiver of one instrument in a hundred takes of its processor, and how many packets a second it
//! takes: by sockets, by AF_XDP, and behind the filter at the hook, between two network namespaces.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tickwire_book::{Books, Depth};
use tickwire_console::failure::Failure;
use tickwire_feed::{Channel, Line};
use tickwire_kernel::frame;
use tickwire_lab::{Histogram, Table, format_count};
use tickwire_market::{
    Counter, Counters, EventSink, InstrumentId, MarketEvent, Nanos, OrderId, Port, Symbol,
};
use tickwire_receive::SocketOptions;
use tickwire_receive::receiver::{Consumer, Receiver};
use tickwire_rig::recorded::{BooksOnly, Recorded, walk};
use tickwire_runtime::clock::{Clock, thread_cpu_ns, tsc};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::stamp::RxStamp;
use tickwire_runtime::udp::Stamping;
use tickwire_runtime::wait::WaitStrategy;
use tickwire_runtime::xdp::delegate::PacketSocket;
use tickwire_venues::channels::FeedFile;
use tickwire_venues::receiver::{Backend, ReceiverSection, books_config};
use tickwire_venues::wiring::{self, Reception, WithChannel};

use super::{End, evenly, pin_to};
use crate::cli::BenchArgs;
use crate::feedbench::symbols_of;

/// The line: of the organisation's own scope.
const GROUP: (Ipv4Addr, u16) = (Ipv4Addr::new(239, 192, 91, 79), 26_979);
/// Messages of a packet, at most.
const MESSAGES_A_PACKET: u16 = 4;
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

    fn section(self, instruments: u16) -> ReceiverSection {
        ReceiverSection {
            backend: match self {
                Way::Sockets => Backend::Socket,
                Way::Ring | Way::Filter => Backend::Xdp,
            },
            filter: self == Way::Filter,
            max_instruments: u32::from(instruments) + 1,
            ..ReceiverSection::default()
        }
    }
}

/// The session that is sent.
struct Session {
    packets: Vec<u8>,
    /// Of these, so many come before the measured ones: until everybody is known, and some more.
    before: u64,
    count: u64,
    symbols: u16,
    wanted: Vec<Symbol>,
}

impl Session {
    fn generate(args: &BenchArgs) -> Session {
        let symbols = u16::try_from(symbols_of(args)).unwrap_or(u16::MAX);
        let packets = Recorded::generate(args.seed, args.messages, symbols).packets(MESSAGES_A_PACKET);
        let listings = tickwire_exchange::listings(symbols.into());
        Session {
            count: walk(&packets).count() as u64,
            packets,
            before: u64::from(symbols) / u64::from(MESSAGES_A_PACKET) + 100,
            symbols,
            wanted: evenly(&listings, PERCENT).map(|listing| listing.symbol).collect(),
        }
    }

    fn feed(&self) -> Result<FeedFile, Failure> {
        let (group, port) = GROUP;
        let text = format!(
            "[[feed]]\nvenue = \"nasdaq\"\ninterface = \"veth0\"\nsession = \"BENCHMARK0\"\n\
             [[feed.channel]]\nname = \"1\"\nlive = {{ a = \"{group}:{port}\" }}\n"
        );
        FeedFile::parse(&text).map_err(|e| Failure::config(e.to_string()))
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
        let section = Way::Sockets.section(self.0.symbols);
        let mut sink = BooksOnly(Books::new(books_config(&section, channel.venue(), depth)));
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

    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.books.upcoming(instrument, order_id);
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
    let mut buffer = vec![0; frame::HEADERS + frame::PAYLOAD_MAX];
    let mut packets = walk(&session.packets);
    let mut each = |count: u64, rate: u64, limit: Duration| -> Result<Sent, Failure> {
        let begin = Instant::now();
        let (mut sent, mut calls) = (0, 0);
        while sent < count && begin.elapsed() < limit {
            let due = (begin.elapsed().as_secs_f64() * rate as f64) as u64;
            // What is late is sent at once, up to a bound: a sender that cannot keep up is what is measured.
            for payload in packets.by_ref().take(due.saturating_sub(sent).min(64) as usize) {
                let to = (GROUP.0.octets(), GROUP.1);
                let length = frame::encode(&mut buffer, 0, to, payload).expect("room");
                let called = tsc();
                while !socket.send(&buffer[..length]).map_err(failed)? {
                    std::hint::spin_loop();
                }
                calls += tsc() - called;
                sent += 1;
                if sent == count {
                    break;
                }
            }
            std::hint::spin_loop();
        }
        Ok(Sent {
            packets: sent,
            seconds: begin.elapsed().as_secs_f64(),
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
    let (file, section) = (session.feed()?, way.section(session.symbols));
    let mut receiver: Receiver<Listener> = Receiver::empty(wait, 2);
    let facts = receiver.add(&file.feeds[0], (0, 0), &session.reception(&section))?;
    let mut listener = Listener {
        clock: Clock::calibrate(),
        books: Books::new(books_config(&section, facts.venue, facts.depth)),
        aged: Histogram::new(),
        has_hook: way != Way::Sockets,
        delivered: 0,
        counters: Counters::default(),
    };
    // As `Receiver::join` does, which says so each time.
    let options = SocketOptions {
        receive_buffer: section.receive_buffer,
        stamping: Stamping::OnDemand,
        batch: 1,
    };
    receiver.join_one(0, &file.feeds[0], options)?;
    receiver.hook(&section)?;
    between.is_open.store(true, Ordering::Release);
    let (mut began, mut ended) = (None, 0);
    let mut last = (0, Instant::now());
    receiver.run_until(&mut listener, |_, listener, _, is_slow| {
        if !is_slow {
            return None;
        }
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
    let section = way.section(session.symbols);
    let expected = wiring::with_channel(
        &session.feed()?.feeds[0],
        0,
        &session.reception(&section),
        InMemory(session, all),
    )?;
    let is_whole = received.seen == all && received.dropped == 0;
    if is_whole && (received.gaps > 0 || received.hash != expected) {
        return Err(Failure::check(format!(
            "{} at {rate} a second: every packet was taken, and {} gaps were found or books differ from those in memory: the figures would \
             mean nothing",
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
    let session = Session::generate(args);
    let mut table = Table::new(
        &format!(
            "a receiver of {PERCENT} % of {} instruments of ITCH, {MESSAGES_A_PACKET} messages a packet, channel and books, between two network namespaces; sender on the last core, receiver on the first one, {} s at each rate or {} packets: processor time of the receiver's thread a packet sent; time a packet in the sender's call, within which the kernel does its part of receiving here, the program at the hook included; and from the hook to the book, nanoseconds. One that sleeps at {} packets a second, in turns; one that never sleeps at rates up to the first with a drop, or that beyond which the sender cannot go",
            session.symbols,
            KEPT.as_secs(),
            format_count(session.count),
            format_count(COMPARED_AT)
        ),
        &[
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
    let missing = tickwire_runtime::xdp::caps::missing();
    let pair = match VethPair::create("twscale") {
        Ok(pair) if missing.is_empty() => pair,
        Ok(_) => return Ok(table.row([tickwire_runtime::xdp::caps::explained(&missing)])),
        Err(why) => return Ok(table.row([format!("no network namespaces here: {why}")])),
    };
    for _ in 0..args.runs.max(1) {
        for way in Way::ALL {
            let rate = COMPARED_AT.min(up_to);
            let of = point(&pair, &session, (way, WaitStrategy::Poll, rate))?;
            table = table.row(row(way, WaitStrategy::Poll, &of));
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
            table = table.row(row(way, WaitStrategy::Spin, &of));
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
    Ok(table)
}

fn row(way: Way, wait: WaitStrategy, (sent, received): &(Sent, Received)) -> Vec<String> {
    let is_asleep = wait == WaitStrategy::Poll;
    let a_packet = |ns: u64| format_count(ns / sent.packets.max(1));
    let at = |value: u64| match received.aged.is_empty() {
        true => String::new(),
        false => format_count(value),
    };
    vec![
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
