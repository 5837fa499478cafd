//! `tickwire bench --feed`: what a message costs, feed by feed, on one core and in one run.
//!
//! For each protocol the simulator publishes one session in virtual time. Its live datagrams are then read by the wire
//! layer alone ([`crate::wirebench`]), and taken by the receiving channel: into nothing (decode → event), into books, and with nothing subscribed but the least active
//! instruments (filtered out). The books must be the venue's at every level, else no figure is shown.

use std::sync::Arc;

use tickwire_book::{Books, Depth};
use tickwire_exchange::{DayPhase, Exchange, NewOrder};
use tickwire_feed::{Channel, Line};
use tickwire_lab::{Histogram, Table, format_count};
use tickwire_market::{EventSink, Level, Nanos, Port, Price, Qty, Side, Symbol, Venue};
use tickwire_runtime::clock::{Clock, thread_cpu_ns, tsc};
use tickwire_wire::fast::Plan;

use crate::bench::{BooksOnly, Discard, answer, memory_path, walk};
use crate::cli::{BenchArgs, FeedChoice, Packing};
use crate::config::Config;
use crate::protocol::Protocol;
use crate::trader::books_config;
use crate::venue::{self, VIRTUAL_START};
use crate::wirebench;
use crate::wiring::{self, Reception, WithChannel};
use tickwire_console::failure::Failure;

/// Messages a second: with [`STEP_NS`] between polls, packets hold about as many as in a busy second.
const RATE: u32 = 100_000;
const STEP_NS: u64 = 200_000;
/// Messages a packet on recorded lines, with how many packets had so many: all different packets of ITCH 5.0 (10), PITCH (6), XDP (9),
/// OpenBook (4), CQS (7) and UQDF (2) in `captures/packets`, together because each alone is few. They were chosen by message type,
/// not by size.
const RECORDED: &[(u64, u32)] = &[(1, 30), (2, 5), (3, 1), (21, 1), (38, 1)];
/// The same of the 9 packets of MDP 3.0.
const RECORDED_MDP3: &[(u64, u32)] = &[(1, 2), (2, 2), (3, 1), (5, 2), (6, 1), (7, 1)];

/// From one poll of the publisher to the next, nanoseconds: all that was said meanwhile is in one packet if it fits.
struct Steps {
    packing: Packing,
    sizes: Vec<u64>,
    drawn: u64,
}

impl Steps {
    fn new(packing: Packing, protocol: Protocol) -> Steps {
        let recorded = match protocol {
            Protocol::Mdp3 => RECORDED_MDP3,
            _ => RECORDED,
        };
        let sizes = recorded
            .iter()
            .flat_map(|&(size, packets)| (0..packets).map(move |_| size));
        Steps {
            packing,
            sizes: sizes.collect(),
            drawn: 0,
        }
    }

    fn next_ns(&mut self) -> u64 {
        // Spread over the sizes evenly and in no order: the golden ratio's multiples.
        self.drawn = self.drawn.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let at = (u128::from(self.drawn) * self.sizes.len() as u128) >> 64;
        match self.packing {
            Packing::Busy => STEP_NS,
            Packing::Recorded => self.sizes[at as usize] * (Nanos::SECOND / u64::from(RATE)),
        }
    }
}

/// Packets that each move the best offer.
const WARM_PACKETS: u32 = 20_000;

/// A published session.
pub(crate) struct Session {
    pub(crate) config: Config,
    /// What came on other ports than the live one: definitions.
    pub(crate) before: Vec<(Port, Vec<u8>)>,
    /// Live datagrams, each behind its length.
    pub(crate) live: Vec<u8>,
    pub(crate) datagrams: u64,
    pub(crate) messages: u64,
    pub(crate) exchange: Exchange,
}

/// The configuration of a session of about so many messages.
fn config_of(protocol: Protocol, seed: u64, symbols: u32, messages: u64) -> Result<Config, Failure> {
    let usage = |e: String| Failure::config(format!("--symbols: {e}"));
    let mut config = Config::of_protocol(protocol);
    config.exchange.seed = seed;
    config.exchange.symbols = crate::config::Symbols::try_from(f64::from(symbols)).map_err(usage)?;
    config.exchange.rate = crate::config::Rate(RATE);
    // It is stopped at the number of messages; this sizes what the publisher keeps.
    config.exchange.duration_s = crate::config::DurationS(messages as f64 / f64::from(RATE) * 4.0 + 1.0);
    config.receiver.max_instruments = symbols + 2;
    Ok(config)
}

impl Session {
    pub(crate) fn publish(
        protocol: Protocol,
        seed: u64,
        messages: u64,
        symbols: u32,
        packing: Packing,
    ) -> Result<Session, Failure> {
        let mut steps = Steps::new(packing, protocol);
        let config = config_of(protocol, seed, symbols, messages)?;
        let exchange = venue::exchange_of(&config)?;
        let mut session = Session {
            config,
            before: Vec::new(),
            live: Vec::new(),
            datagrams: 0,
            messages: 0,
            exchange,
        };
        let mut now = VIRTUAL_START;
        session.exchange.open(now);
        while session.exchange.phase() != DayPhase::Ending {
            now = now.after(steps.next_ns());
            while session.exchange.on_time(now) && session.exchange.phase() != DayPhase::Ending {
                session.drain(now);
            }
            session.drain(now);
            if session.exchange.total() >= messages && session.exchange.phase() == DayPhase::Open {
                session.exchange.stop(now);
            }
        }
        session.drain(now);
        session.messages = session.exchange.total();
        Ok(session)
    }

    fn drain(&mut self, now: Nanos) {
        // One turn of a loop (definitions, snapshots) is enough.
        const LOOP_MAX: usize = 1 << 16;
        while let Some(datagram) = self.exchange.poll_datagram(0, now) {
            if datagram.port == Port::Live {
                self.datagrams += 1;
                self.live
                    .extend_from_slice(&(datagram.bytes.len() as u16).to_be_bytes());
                self.live.extend_from_slice(datagram.bytes);
            } else if datagram.port == Port::Definitions && self.before.len() < LOOP_MAX {
                self.before.push((datagram.port, datagram.bytes.to_vec()));
            }
        }
    }

    pub(crate) fn books(&self, depth: Depth) -> Books {
        // The sizes that ship: see `config_of`.
        Books::new(books_config(&self.config.receiver, Venue::Nasdaq, depth))
    }

    /// How many price levels of these books are not the venue's.
    fn differences<C: Channel>(&self, channel: &C, books: &Books) -> usize {
        let mut different = 0;
        for listing in self.exchange.listings() {
            for side in Side::BOTH {
                let outlet = &self.exchange.outlets()[0];
                let theirs = outlet.publisher.levels(self.exchange.engine(), listing.id, side);
                let book = channel.find(&listing.symbol).and_then(|id| books.book(id));
                let ours: Vec<Level> = book.map(|book| book.levels(side).collect()).unwrap_or_default();
                different += usize::from(theirs != ours);
            }
        }
        different
    }

    /// The least active percent of the instruments.
    fn quiet_symbols(&self) -> Vec<Symbol> {
        let listings = self.exchange.listings();
        let quiet = &listings[listings.len() - listings.len().div_ceil(100)..];
        quiet.iter().map(|l| l.symbol).collect()
    }
}

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

fn play<C: Channel, S: EventSink>(session: &Session, channel: &mut C, sink: &mut S) -> u64 {
    for (port, datagram) in &session.before {
        channel.on_datagram(VIRTUAL_START, *port, Line::A, datagram, sink);
    }
    let begin = thread_cpu_ns();
    for datagram in walk(&session.live) {
        channel.on_datagram(VIRTUAL_START, Port::Live, Line::A, datagram, sink);
    }
    thread_cpu_ns() - begin
}

/// Packet bytes → order bytes when every packet moves the best offer of one instrument.
struct WarmPath<'a> {
    config: &'a Config,
    clock: Clock,
    times: &'a mut Histogram,
}

impl WithChannel for WarmPath<'_> {
    type Output = Result<u64, Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Self::Output {
        let mut exchange = venue::exchange_of(self.config)?;
        let listing = exchange.listings()[0];
        let books = Books::new(books_config(&self.config.receiver, channel.venue(), depth));
        let mut hot = memory_path::<false>(books, 2, listing.symbol, self.clock.clone())?;
        let mut now = VIRTUAL_START;
        exchange.open(now);
        while exchange.phase() != DayPhase::Open {
            now = now.after(STEP_NS);
            exchange.on_time(now);
            while let Some(d) = exchange.poll_datagram(0, now) {
                channel.on_datagram(now, d.port, Line::A, d.bytes, &mut hot);
            }
        }
        if let Some(id) = channel.find(&listing.symbol) {
            hot.rule.watch(id);
        }
        // An offer one tick better than the best, and away again.
        let best = |exchange: &Exchange, side| exchange.engine().best(listing.id, side).map(|l| l.price);
        while let (Some(bid), Some(ask)) = (best(&exchange, Side::Bid), best(&exchange, Side::Ask))
            && ask.raw() - bid.raw() < 3 * listing.tick().raw()
        {
            // Room between the best bid and the best offer.
            let first = exchange
                .engine()
                .queue(listing.id, Side::Ask, 0)
                .next()
                .map(|o| o.id);
            let Some(first) = first else { break };
            let _ = exchange.trade(now, |engine, tape| engine.cancel(first, tape));
        }
        drain(&mut exchange, now, &mut channel, &mut hot);
        let mut orders = 0;
        for i in 0..WARM_PACKETS {
            let Some(ask) = best(&exchange, Side::Ask) else {
                break;
            };
            let better = Price::from_raw(ask.raw() - listing.tick().raw());
            let new = NewOrder::limit(listing.id, Side::Ask, better, Qty(100));
            now = now.after(1_000);
            let Ok(id) = exchange.trade(now, |engine, tape| engine.submit(&new, tape)) else {
                break;
            };
            let before = hot.out.orders;
            let mut took = 0;
            while let Some(d) = exchange.poll_datagram(0, now) {
                if d.port == Port::Live {
                    let begin = tsc();
                    channel.on_datagram(self.clock.nanos_at(begin), d.port, Line::A, d.bytes, &mut hot);
                    took += tsc() - begin;
                }
            }
            if hot.out.orders > before {
                orders += 1;
                if i > 1_000 {
                    self.times.record(self.clock.span_ns(took));
                }
                answer(&mut hot);
            }
            let _ = exchange.trade(now, |engine, tape| engine.cancel(id, tape));
            drain(&mut exchange, now, &mut channel, &mut hot);
            answer(&mut hot);
        }
        match orders {
            0 => Err(Failure::check(
                "no order was sent, so nothing was measured".to_string(),
            )),
            orders => Ok(orders),
        }
    }
}

fn drain<C: Channel, S: EventSink>(exchange: &mut Exchange, now: Nanos, channel: &mut C, sink: &mut S) {
    while let Some(d) = exchange.poll_datagram(0, now) {
        if d.port == Port::Live {
            channel.on_datagram(now, d.port, Line::A, d.bytes, sink);
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
    path: Histogram,
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
            args.symbols.min(1_000),
            Packing::Busy,
        )?;
        let templates = match session.config.feed[0].templates.last() {
            Some(path) => Some(crate::protocol::templates(path).map_err(Failure::config)?),
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
                path: Histogram::new(),
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

    fn warm_path(&mut self, args: &BenchArgs, clock: &Clock) -> Result<(), Failure> {
        let config = config_of(self.row.protocol, args.seed, 1, u64::from(WARM_PACKETS))?;
        let reception = Reception::new(&config.receiver);
        let warm = WarmPath {
            config: &config,
            clock: clock.clone(),
            times: &mut self.row.path,
        };
        wiring::with_channel(&config.feed[0], 0, &reception, warm)?.map(|_| ())
    }
}

/// Measures feeds in turns, so that a machine's bad moment does not hit one of them alone.
fn measure(protocols: &[Protocol], args: &BenchArgs, clock: &Clock) -> Result<Vec<Row>, Failure> {
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
            bench.round().map_err(named(bench.row.protocol))?;
        }
    }
    for bench in &mut benches {
        bench.warm_path(args, clock).map_err(named(bench.row.protocol))?;
    }
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

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let clock = Clock::calibrate();
    let chosen = chosen(&args.feed)?;
    let rows = measure(&chosen, args, &clock)?;
    let mut table = Table::new(
        &format!(
            "nanoseconds a message, processor time of one core, best of {} runs, warm; {} messages a feed",
            args.runs,
            format_count(args.messages)
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
    let times: Vec<(&str, &Histogram)> = names
        .iter()
        .map(String::as_str)
        .zip(rows.iter().map(|r| &r.path))
        .collect();
    println!(
        "{}",
        Table::latencies(
            "packet bytes -> order bytes, every packet moves the best offer (warm)",
            &times
        )
        .to_text(tickwire_console::terminal::width())
    );
    println!("every book equals the venue's at every level that the feed shows");
    for (name, value) in crate::report::host(&clock, None) {
        println!("{name}: {value}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwire_market::Counter;
    use tickwire_runtime::alloc::count_allocations;

    fn args() -> BenchArgs {
        BenchArgs {
            messages: 8_000,
            symbols: 20,
            seed: 5,
            core: None,
            runs: 1,
            feed: vec![FeedChoice::All],
            publish: false,
            packets: Vec::new(),
            write_session: None,
        }
    }

    #[test]
    fn every_feed_is_measured_and_its_books_are_right() {
        let clock = Clock::calibrate();
        let rows = measure(&wiring::PUBLISHED, &args(), &clock).unwrap_or_else(|f| panic!("{}", f.message));
        assert_eq!(rows.len(), wiring::PUBLISHED.len());
        for row in rows {
            let protocol = row.protocol;
            assert!(
                row.messages >= 8_000 && row.events > 4_000,
                "{protocol}: {}",
                row.events
            );
            assert!(row.wire_ns > 0.0 && row.wire_ns < f64::MAX, "{protocol}");
            assert!(row.path.count() > 10_000, "{protocol}: {}", row.path.count());
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
