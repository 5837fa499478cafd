//! `tickwire bench --feed`: what a message costs, feed by feed, on one core and in one run.
//!
//! For each protocol the simulator publishes one session in virtual time. Its live datagrams are then read by
//! the wire layer alone ([`crate::wirebench`]), and taken by the receiving channel: into nothing (decode →
//! event), into books, and with nothing subscribed but the least active instruments (filtered out). The books
//! must be the venue's at every level, else no figure is shown.

use std::sync::Arc;

use tickwire_book::{Books, Depth};
use tickwire_feed::{Channel, Line};
use tickwire_lab::{Histogram, Table, format_count, format_ns};
use tickwire_market::{EventSink, Port};
use tickwire_runtime::clock::{Clock, thread_cpu_ns, tsc};
use tickwire_runtime::memory_reads::MemoryReads;
use tickwire_runtime::neighbours::{Arrived, Neighbours, PAUSES};
use tickwire_wire::fast::Plan;

use crate::bench::{packets_of, rehearsed_ns, tell_host};
use crate::cli::{BenchArgs, FeedChoice};
use crate::wirebench;
use tickwire_console::failure::Failure;
use tickwire_node::memory::{MemoryOut, answer, idle, memory_path_to, twin_of, watch};
use tickwire_rig::MovingOffer;
use tickwire_rig::recorded::{BooksOnly, Discard, walk};
use tickwire_simulator::session::{Packing, SHORT_ROOM, Session, is_short};
use tickwire_simulator::settings::MarketConfig;
use tickwire_simulator::venue::{self, VIRTUAL_START};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::books_config;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

/// Packets that each move the best offer.
const WARM_PACKETS: u32 = 20_000;

/// What is done with a session.
#[derive(Clone, Copy, PartialEq)]
enum Into {
    Nothing,
    Books,
    Filter,
}

/// One measurement: nanoseconds, and events where nothing else takes them.
struct Pass<'a> {
    session: &'a Session,
    into: Into,
}

impl WithChannel for Pass<'_> {
    type Output = Result<(u64, u64), Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Self::Output {
        let session = self.session;
        match self.into {
            Into::Nothing | Into::Filter => {
                let mut sink = Discard(0);
                let ns = play(session, &mut channel, &mut sink);
                Ok((ns, sink.0))
            }
            Into::Books => {
                let mut sink = BooksOnly(session.books(depth));
                let ns = play(session, &mut channel, &mut sink);
                match session.differences(&channel, &sink.0) {
                    0 => Ok((ns, 0)),
                    n => Err(Failure::check(format!(
                        "{n} sides of books differ from the venue's: the figures would mean nothing"
                    ))),
                }
            }
        }
    }
}

/// Processor time of a session's live packets, nanoseconds.
pub(crate) fn play<C: Channel, S: EventSink>(session: &Session, channel: &mut C, sink: &mut S) -> u64 {
    for (port, datagram) in &session.before {
        channel.on_datagram(VIRTUAL_START, *port, Line::A, datagram, sink);
    }
    let begin = thread_cpu_ns();
    for datagram in walk(&session.live) {
        channel.on_datagram(VIRTUAL_START, Port::Live, Line::A, datagram, sink);
    }
    thread_cpu_ns() - begin
}

/// Packet bytes → order bytes when every packet moves the best offer of one instrument: one behind the other,
/// and behind each of [`PAUSES`], in which others have the caches and orders are rehearsed as shipped.
#[derive(Default)]
struct Path {
    /// Until the order's bytes are where a card would take them.
    order: Histogram,
    /// Until the thread takes the next packet.
    free: Histogram,
}

/// Measures them.
struct OrderPath<'a> {
    config: &'a MarketConfig,
    clock: Clock,
    neighbours: &'a mut Neighbours,
    /// How many packets of each.
    packets: [u32; 3],
    times: &'a mut [Path; 3],
}

impl WithChannel for OrderPath<'_> {
    type Output = Result<u64, Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Self::Output {
        let exchange = venue::exchange_of(self.config)?;
        let symbol = exchange.listings()[0].symbol;
        let books = Books::new(books_config(&self.config.receiver, channel.venue(), depth));
        let mut hot = memory_path_to::<_, false>(MemoryOut::new(), books, symbol, self.clock.clone())?;
        let mut venue = MovingOffer::open(exchange, VIRTUAL_START, |now, port, bytes| {
            channel.on_datagram(now, port, Line::A, bytes, &mut hot);
        });
        watch(&mut hot, &channel, &symbol);
        let mut twin = twin_of(&hot, &channel);
        let mut orders = 0;
        let way = |way: usize| (0..self.packets[way]).map(move |nth| (way, nth));
        for (way, nth) in (0..self.packets.len()).flat_map(way) {
            if !venue.enter() {
                break;
            }
            if way > 0 {
                let rehearse = |now| idle(&mut hot, &channel, &mut twin, now);
                self.neighbours
                    .work(&self.clock, PAUSES[way - 1].0, rehearsed_ns(), rehearse);
            }
            let before = hot.sessions[0].out.orders;
            let (mut order, mut free) = (0, 0);
            venue.live(|_, datagram| {
                let arrived = match way {
                    0 => Arrived::at_once(&self.clock, datagram),
                    _ => self.neighbours.receive(&self.clock, datagram),
                };
                let had_left = hot.sessions[0].out.orders > before;
                channel.on_datagram(arrived.now, Port::Live, Line::A, arrived.bytes, &mut hot);
                let end = tsc();
                free += end - arrived.at;
                // Of a change in several packets, up to the one that says enough.
                if !had_left {
                    order += hot.sessions[0].out.took(before, arrived.at, end);
                }
            });
            if hot.sessions[0].out.orders > before {
                orders += 1;
                // The first ones find nothing in the caches, and predict no branch.
                if way > 0 || nth > 1_000 {
                    self.times[way].order.record(self.clock.span_ns(order));
                    self.times[way].free.record(self.clock.span_ns(free));
                }
            }
            answer(&mut hot, venue.now());
            venue.leave();
            venue.live(|now, datagram| channel.on_datagram(now, Port::Live, Line::A, datagram, &mut hot));
            answer(&mut hot, venue.now());
        }
        match orders {
            0 => Err(Failure::check(
                "no order was sent, so nothing was measured".to_string(),
            )),
            orders => Ok(orders),
        }
    }
}

/// The figures of one feed.
struct Row {
    protocol: Protocol,
    messages: u64,
    events: u64,
    per_packet: f64,
    /// Nanoseconds a message in the wire layer alone.
    wire_ns: f64,
    /// Nanoseconds a message: into nothing, into books, filtered out.
    ns: [f64; 3],
    /// One behind the other, and behind each of [`PAUSES`].
    paths: [Path; 3],
}

/// A feed being measured.
struct Bench {
    session: Session,
    /// Of MOEX.
    templates: Option<Arc<Plan>>,
    row: Row,
}

impl Bench {
    fn new(protocol: Protocol, args: &BenchArgs) -> Result<Bench, Failure> {
        let session = Session::publish(
            protocol,
            args.seed,
            args.messages,
            symbols_of(args),
            Packing::Busy,
        )?;
        let templates = match session.config.feed[0].templates.last() {
            Some(path) => Some(tickwire_venues::protocol::templates(path).map_err(Failure::config)?),
            None => None,
        };
        Ok(Bench {
            templates,
            row: Row {
                protocol,
                messages: session.messages,
                events: 0,
                per_packet: session.messages as f64 / session.datagrams as f64,
                wire_ns: f64::MAX,
                ns: [f64::MAX; 3],
                paths: Default::default(),
            },
            session,
        })
    }

    /// One round; the least of all rounds is shown.
    fn round(&mut self) -> Result<(), Failure> {
        let session = &self.session;
        let feed = &session.config.feed[0];
        let (took, read) = wirebench::measure(feed.protocol(), &session.live, self.templates.as_ref())?;
        self.row.wire_ns = self.row.wire_ns.min(took as f64 / read as f64);
        for (at, into) in [Into::Nothing, Into::Books, Into::Filter].into_iter().enumerate() {
            let mut reception = Reception::new(&session.config.receiver);
            reception.symbols = (into == Into::Filter).then(|| session.quiet_symbols());
            let (took, seen) = wiring::with_channel(feed, 0, &reception, Pass { session, into })??;
            self.row.ns[at] = self.row.ns[at].min(took as f64 / session.messages as f64);
            if into == Into::Nothing {
                self.row.events = seen;
            }
        }
        Ok(())
    }

    fn order_path(
        &mut self,
        args: &BenchArgs,
        clock: &Clock,
        neighbours: &mut Neighbours,
    ) -> Result<(), Failure> {
        let [soon, late] = PAUSES.map(|(pause, _)| packets_of(args.messages, pause) as u32);
        let packets = [WARM_PACKETS, soon, late];
        let all = u64::from(packets.iter().sum::<u32>());
        let config = tickwire_simulator::session::config_of(self.row.protocol, args.seed, 1, all)?;
        let reception = Reception::new(&config.receiver);
        let path = OrderPath {
            config: &config,
            clock: clock.clone(),
            neighbours,
            packets,
            times: &mut self.row.paths,
        };
        wiring::with_channel(&config.feed[0], 0, &reception, path)?.map(|_| ())
    }
}

/// Measures feeds in turns, so that a machine's bad moment does not hit one of them alone.
fn measure(
    protocols: &[Protocol],
    args: &BenchArgs,
    clock: &Clock,
    reads: &mut MemoryReads,
) -> Result<Vec<Row>, Failure> {
    let named = |protocol: Protocol| {
        move |f: Failure| Failure {
            message: format!("{protocol}: {}", f.message),
            ..f
        }
    };
    let mut benches = Vec::new();
    for &protocol in protocols {
        eprintln!("{protocol}: publishing ...");
        benches.push(Bench::new(protocol, args).map_err(named(protocol))?);
    }
    for round in 0..args.runs.max(1) {
        eprintln!("run {} of {}", round + 1, args.runs.max(1));
        for bench in &mut benches {
            reads.look(clock);
            bench.round().map_err(named(bench.row.protocol))?;
        }
    }
    let mut neighbours = Neighbours::new();
    for bench in &mut benches {
        reads.look(clock);
        let done = bench.order_path(args, clock, &mut neighbours);
        done.map_err(named(bench.row.protocol))?;
    }
    reads.look(clock);
    Ok(benches.into_iter().map(|bench| bench.row).collect())
}

/// The protocols that were asked for.
pub(crate) fn chosen(choices: &[FeedChoice]) -> Result<Vec<Protocol>, Failure> {
    let protocols = choices.iter().flat_map(|choice| match choice {
        FeedChoice::All => wiring::PUBLISHED.to_vec(),
        FeedChoice::One(protocol) => vec![*protocol],
    });
    let protocols: Vec<Protocol> = protocols.collect();
    protocols
        .iter()
        .try_for_each(|protocol| wiring::check_published(*protocol))?;
    Ok(protocols)
}

/// Instruments of a session; one that the protocol does not take is refused when the session is made.
pub(crate) fn symbols_of(args: &BenchArgs) -> u32 {
    args.symbols.unwrap_or(1_000)
}

/// What is played, in words: also when it is too little to measure anything.
pub(crate) fn played(args: &BenchArgs) -> String {
    let messages = format_count(args.messages);
    let instruments = format_count(symbols_of(args).into());
    let mut words = format!("{messages} messages of {instruments} instruments a feed");
    if is_short(args.messages, symbols_of(args)) {
        let room = format_count(SHORT_ROOM.into());
        words +=
            &format!(", too few to measure: books have room for {room} orders, not for what they ship with");
    }
    words
}

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let clock = Clock::calibrate();
    let chosen = chosen(&args.feed)?;
    let mut reads = MemoryReads::new();
    let rows = measure(&chosen, args, &clock, &mut reads)?;
    let mut table = Table::new(
        &format!(
            "nanoseconds a message, processor time of one core, best of {} runs, warm; {}",
            args.runs,
            played(args)
        ),
        &[
            "feed",
            "messages",
            "per packet",
            "events",
            "decode only",
            "decode -> event",
            "million/s",
            "-> books",
            "filtered out",
            "filtered/booked",
        ],
    );
    for row in &rows {
        table = table.row([
            row.protocol.to_string(),
            row.messages.to_string(),
            format!("{:.1}", row.per_packet),
            row.events.to_string(),
            format!("{:.1}", row.wire_ns),
            format!("{:.1}", row.ns[0]),
            format!("{:.1}", 1e3 / row.ns[0]),
            format!("{:.1}", row.ns[1]),
            format!("{:.1}", row.ns[2]),
            format!("{:.2}", row.ns[2] / row.ns[1]),
        ]);
    }
    println!("{}", table.to_text(tickwire_console::terminal::width()));
    let names: Vec<String> = rows.iter().map(|row| row.protocol.to_string()).collect();
    let ways = ["(warm)", PAUSES[0].1, PAUSES[1].1];
    for (way, told) in ways.into_iter().enumerate() {
        let paths = rows.iter().map(|row| &row.paths[way].order);
        let times: Vec<(&str, &Histogram)> = names.iter().map(String::as_str).zip(paths).collect();
        let title = format!("packet bytes -> order bytes, every packet moves the best offer {told}");
        println!(
            "{}",
            Table::latencies(&title, &times).to_text(tickwire_console::terminal::width())
        );
    }
    let mut free = Table::new(
        "packet bytes -> the thread takes the next packet: what follows an order is in it, p50 and p99",
        &["feed", ways[0], ways[1], ways[2]],
    );
    for row in &rows {
        let both = |path: &Path| {
            let [half, most] = [0.5, 0.99].map(|q| format_ns(path.free.at_quantile(q)));
            format!("{half}, {most}")
        };
        let [warm, soon, late] = row.paths.each_ref().map(both);
        free = free.row([row.protocol.to_string(), warm, soon, late]);
    }
    println!("{}", free.to_text(tickwire_console::terminal::width()));
    println!(
        "In a pause others have the caches (the thread walks through memory), and orders are rehearsed every {}, as by a thread that never sleeps. A packet behind one is copied before it is timed, as a socket does; of packets one behind the other the next one's lines are asked for, as by the receive loop behind AF_XDP.",
        format_ns(rehearsed_ns())
    );
    println!("every book equals the venue's at every level that the feed shows");
    tell_host(&clock, Some(&reads));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_market::Counter;
    use tickwire_runtime::alloc::count_allocations;

    fn args() -> BenchArgs {
        BenchArgs {
            feed: vec![FeedChoice::All],
            ..BenchArgs::small()
        }
    }

    #[test]
    fn every_feed_is_measured_and_its_books_are_right() {
        let clock = Clock::calibrate();
        let mut reads = MemoryReads::new();
        let rows = measure(&wiring::PUBLISHED, &args(), &clock, &mut reads)
            .unwrap_or_else(|f| panic!("{}", f.message));
        assert!(
            reads.said().is_some_and(|said| said.contains("17 looks")),
            "two of each feed, and one"
        );
        assert_eq!(rows.len(), wiring::PUBLISHED.len());
        for row in rows {
            let protocol = row.protocol;
            assert!(
                row.messages >= 8_000 && row.events > 4_000,
                "{protocol}: {}",
                row.events
            );
            assert!(row.wire_ns > 0.0 && row.wire_ns < f64::MAX, "{protocol}");
            for path in &row.paths {
                assert!(path.order.max() <= path.free.max(), "{protocol}");
                assert_eq!(path.order.count(), path.free.count(), "{protocol}");
            }
            let [warm, soon, late] = row.paths.map(|path| path.order.count());
            assert!(
                warm > 10_000 && soon >= 20 && late > 0,
                "{protocol}: {warm} {soon} {late}"
            );
        }
    }

    /// Every group of datagrams comes with its first one late, on the other line.
    struct Armed<'a>(&'a Session);

    impl WithChannel for Armed<'_> {
        type Output = ();

        fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) {
            let session = self.0;
            let mut sink = BooksOnly(session.books(depth));
            let datagrams: Vec<&[u8]> = walk(&session.live).collect();
            let mut now = VIRTUAL_START;
            let mut request = [0; 256];
            let ((), count) = count_allocations(|| {
                for (port, datagram) in &session.before {
                    channel.on_datagram(now, *port, Line::A, datagram, &mut sink);
                }
                // The day's first datagrams come in order: without them some venues begin with a snapshot.
                let (first, rest) = datagrams.split_at(20);
                for datagram in first {
                    channel.on_datagram(now, Port::Live, Line::A, datagram, &mut sink);
                }
                for group in rest.chunks(20) {
                    for datagram in &group[1..] {
                        channel.on_datagram(now, Port::Live, Line::A, datagram, &mut sink);
                        now = now.after(1_000);
                    }
                    channel.on_datagram(now, Port::Live, Line::B, group[0], &mut sink);
                    channel.handle_timeout(now, &mut sink);
                    while channel.poll_request(&mut request).is_some() {}
                }
            });
            let name = channel.venue().name();
            assert_eq!((count.allocations, count.releases), (0, 0), "{name}: {count:?}");
            assert!(channel.counters().get(Counter::Gaps) > 10, "{name}");
            assert_eq!(session.differences(&channel, &sink.0), 0, "{name}");
        }
    }

    #[test]
    fn no_feed_allocates_after_start_up() {
        for protocol in wiring::PUBLISHED {
            let session = Session::publish(protocol, 6, 8_000, 20, Packing::Busy).unwrap();
            let reception = Reception::new(&session.config.receiver);
            wiring::with_channel(&session.config.feed[0], 0, &reception, Armed(&session)).unwrap();
        }
    }
}
