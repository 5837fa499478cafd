//! Instruments, feeds, wanted instruments and readers of shared memory: what a message takes.

use std::sync::Barrier;
use std::time::Instant;

use tickwire_book::{Books, Depth};
use tickwire_console::failure::Failure;
use tickwire_feed::{Channel, Line};
use tickwire_lab::{Table, format_count};
use tickwire_market::{Port, Side, Symbol};
use tickwire_rig::recorded::{BooksOnly, walk};
use tickwire_runtime::affinity::Cores;
use tickwire_runtime::clock::{Clock, thread_cpu_ns};
use tickwire_simulator::session::{Packing, Session};
use tickwire_simulator::settings::MarketConfig;
use tickwire_simulator::venue::VIRTUAL_START;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::receiver::books_config;
use tickwire_venues::wiring::{self, Reception, WithChannel};

use super::books::measure;
use super::{End, bytes, decades, doublings, evenly, has_room, pin_to, resident};
use crate::cli::BenchArgs;
use crate::feedbench::{self, symbols_of};
use crate::publishbench;

/// Bytes of a feed's books, of the sizes that ship, with what its channel takes.
const FEED_BYTES: u64 = 400 << 20;

/// A session into books, once: nanoseconds of processor time, and memory. Books of who is wanted must be the
/// venue's, those of all others empty.
struct IntoBooks<'a> {
    session: &'a Session,
    /// `None`: all.
    wanted: Option<&'a [Symbol]>,
}

impl IntoBooks<'_> {
    /// Sides of books that the venue has and nobody wants.
    fn unwanted_sides(&self) -> usize {
        let exchange = &self.session.exchange;
        let publisher = &exchange.published_channels()[0].publisher;
        let listings = exchange.listings().iter();
        let unwanted = listings.filter(|listing| {
            self.wanted
                .is_some_and(|wanted| !wanted.contains(&listing.symbol))
        });
        let sides = unwanted.flat_map(|listing| Side::BOTH.map(|side| (listing.id, side)));
        sides
            .filter(|&(id, side)| !publisher.levels(exchange.engine(), id, side).is_empty())
            .count()
    }
}

impl WithChannel for IntoBooks<'_> {
    type Output = Result<(u64, u64), Failure>;

    fn run<C: Channel + 'static>(self, mut channel: C, depth: Depth) -> Self::Output {
        let before = resident();
        let mut sink = BooksOnly(self.session.books(depth));
        let took = feedbench::play(self.session, &mut channel, &mut sink);
        let (differing, unwanted) = (self.session.differences(&channel, &sink.0), self.unwanted_sides());
        match differing == unwanted {
            true => Ok((took, resident().saturating_sub(before))),
            false => Err(Failure::check(format!(
                "{differing} sides of books differ from the venue's, {unwanted} of instruments that nobody wants: the figures would \
                 mean nothing"
            ))),
        }
    }
}

fn into_books(session: &Session, symbols: Option<Vec<Symbol>>) -> Result<(u64, u64), Failure> {
    let mut reception = Reception::new(&session.config.receiver);
    reception.symbols.clone_from(&symbols);
    let wanted = symbols.as_deref();
    wiring::with_channel(
        &session.config.feed[0],
        0,
        &reception,
        IntoBooks { session, wanted },
    )?
}

/// The simulator publishes no more.
const PUBLISHED_MAX: u64 = 60_000;
/// Orders that rest where books are measured alone.
const ORDERS: u64 = 1_000_000;

pub(super) fn instruments(args: &BenchArgs, up_to: u64) -> Result<Table, Failure> {
    let mut table = Table::new(
        &format!(
            "instruments: one feed of XDP in full packets, {} messages or as many as the opening of so many takes, processor time of channel and books a message; and books alone, by price and by order, with {} orders at rest, nanoseconds a change in packets of 32 (least of {} runs)",
            format_count(args.messages),
            format_count(ORDERS),
            args.runs.max(1)
        ),
        &[
            "instruments",
            "messages",
            "ns a message",
            "memory",
            "by price",
            "by order",
        ],
    );
    for count in decades(10, up_to) {
        let mut row = vec![format_count(count)];
        if count <= PUBLISHED_MAX {
            let session = Session::publish(
                Protocol::Xdp,
                args.seed,
                args.messages,
                count as u32,
                Packing::Busy,
            )?;
            let (mut least, mut memory) = (u64::MAX, 0);
            for _ in 0..args.runs.max(1) {
                let (took, used) = into_books(&session, None)?;
                (least, memory) = (least.min(took), memory.max(used));
            }
            row.push(format_count(session.messages));
            row.push(format!("{:.1}", least as f64 / session.messages as f64));
            row.push(bytes(memory));
        } else {
            row.extend(["not published".into(), String::new(), String::new()]);
        }
        // Orders of few instruments would be longer queues and not more of them.
        let orders = ORDERS.min(args.messages.saturating_mul(10));
        for depth in [Depth::Aggregated, Depth::ByOrder] {
            row.push(format!("{:.1}", measure(args, count, orders, depth)?.packets));
        }
        table = table.row(row);
        eprintln!("  {} instruments", format_count(count));
    }
    Ok(table)
}

pub(super) fn subscriptions(args: &BenchArgs, up_to: u64) -> Result<Table, Failure> {
    const PROTOCOLS: [Protocol; 3] = [Protocol::Itch50, Protocol::Pitch, Protocol::Mdp3];
    let publish = |protocol| {
        let symbols = symbols_of(args);
        Session::publish(protocol, args.seed, args.messages, symbols, Packing::Busy)
    };
    let sessions: Vec<Session> = PROTOCOLS.into_iter().map(publish).collect::<Result<_, _>>()?;
    let mut table = Table::new(
        &format!(
            "share of {} instruments that are wanted, spread evenly over busy and quiet ones, full packets: nanoseconds of processor time a message of the feed, least of {} runs",
            symbols_of(args),
            args.runs.max(1)
        ),
        &["%", "itch50", "pitch", "mdp3"],
    );
    let points = [1, 2, 5, 10, 20, 50, 100];
    for percent in points.into_iter().filter(|percent| *percent <= up_to) {
        let mut row = vec![percent.to_string()];
        for session in &sessions {
            let mut least = u64::MAX;
            for _ in 0..args.runs.max(1) {
                let wanted = evenly(session.exchange.listings(), percent);
                let symbols = wanted.map(|listing| listing.symbol).collect();
                let symbols = Some(symbols).filter(|_| percent < 100);
                least = least.min(into_books(session, symbols)?.0);
            }
            row.push(format!("{:.1}", least as f64 / session.messages as f64));
        }
        table = table.row(row);
    }
    Ok(table)
}

/// The packets of a session, for every thread.
struct Packets<'a> {
    config: &'a MarketConfig,
    before: &'a [(Port, Vec<u8>)],
    live: &'a [u8],
}

/// So many feeds on one thread, a packet of each in turn; waits for the other threads between making them
/// and playing them.
fn play(session: &Packets<'_>, feeds: u64, ready: &Barrier) -> Result<(u64, Instant, Instant), Failure> {
    let mut made = Vec::new();
    for _ in 0..feeds {
        let reception = Reception::new(&session.config.receiver);
        let (channel, depth) = wiring::channel(&session.config.feed[0], 0, &reception)?;
        let sizes = books_config(&session.config.receiver, channel.venue(), depth);
        made.push((channel, BooksOnly(Books::new(sizes))));
    }
    for (channel, sink) in &mut made {
        for (port, datagram) in session.before {
            channel.on_datagram_dyn(VIRTUAL_START, *port, Line::A, datagram, sink);
        }
    }
    ready.wait();
    let (wall, begin) = (Instant::now(), thread_cpu_ns());
    for datagram in walk(session.live) {
        for (channel, sink) in &mut made {
            channel.on_datagram_dyn(VIRTUAL_START, Port::Live, Line::A, datagram, sink);
        }
    }
    let (took, end) = (thread_cpu_ns() - begin, Instant::now());
    let mut hashes = made.iter().map(|(_, sink)| sink.0.state_hash());
    let first = hashes.next();
    match hashes.all(|hash| Some(hash) == first) {
        true => Ok((took, wall, end)),
        false => Err(Failure::check(
            "two feeds of the same packets have other books: the figures would mean nothing",
        )),
    }
}

pub(super) fn feeds(args: &BenchArgs, up_to: u64) -> Result<Table, Failure> {
    let session = Session::publish(
        Protocol::Itch50,
        args.seed,
        args.messages,
        symbols_of(args),
        Packing::Busy,
    )?;
    into_books(&session, None)?;
    let packets = Packets {
        config: &session.config,
        before: &session.before,
        live: &session.live,
    };
    let cores = Cores::count();
    let mut table = Table::new(
        &format!(
            "feeds of ITCH, each with its own channel and books of the sizes that ship, a full packet of each in turn, through the channels' tables, on one thread and on two with a core each ({} cores here): processor time a message, and messages a second of all",
            cores.usable().len()
        ),
        &[
            "feeds",
            "one: ns",
            "one: million/s",
            "two: ns",
            "two: million/s",
            "two / one",
        ],
    );
    for feeds in doublings(up_to) {
        if !has_room(feeds * FEED_BYTES) {
            table = table.row([feeds.to_string(), "no room".into()]);
            continue;
        }
        let mut row = vec![feeds.to_string()];
        let mut rates = Vec::new();
        for threads in [1, 2_u64] {
            if feeds < threads || cores.usable().len() < threads as usize {
                continue;
            }
            let ready = Barrier::new(threads as usize);
            let done: Vec<_> = std::thread::scope(|scope| {
                let (ready, session) = (&ready, &packets);
                let started: Vec<_> = (0..threads)
                    .map(|nth| {
                        let share = feeds / threads + u64::from(nth < feeds % threads);
                        scope.spawn(move || {
                            if threads > 1 {
                                pin_to(if nth == 0 { End::First } else { End::Last })?;
                            }
                            play(session, share, ready)
                        })
                    })
                    .collect();
                started
                    .into_iter()
                    .map(|thread| thread.join().expect("its panic ends this one"))
                    .collect::<Result<_, Failure>>()
            })?;
            let messages = (session.messages * feeds) as f64;
            let took: u64 = done.iter().map(|(took, ..)| took).sum();
            let begin = done.iter().map(|(_, begin, _)| *begin).min();
            let end = done.iter().map(|(.., end)| *end).max();
            let wall = begin
                .zip(end)
                .map_or(0.0, |(begin, end)| (end - begin).as_secs_f64());
            rates.push(messages / wall / 1e6);
            row.push(format!("{:.1}", took as f64 / messages));
            row.push(format!("{:.1}", messages / wall / 1e6));
        }
        if let [one, two] = rates[..] {
            row.push(format!("{:.2}", two / one));
        }
        table = table.row(row);
        eprintln!("  {feeds} feeds");
    }
    Ok(table)
}

pub(super) fn readers(args: &BenchArgs, up_to: u64, clock: &Clock) -> Result<Table, Failure> {
    let cores = Cores::count();
    let mut table = Table::new(
        &format!(
            "readers of shared memory that copy any book without a pause, all of them on a core that the writer has not ({} cores here): ITCH, packets as full as recorded ones; of those of one message, packet in memory to book visible, nanoseconds; the run of {} with the least processor time",
            cores.usable().len(),
            args.runs.max(1)
        ),
        &[
            "readers",
            "packets",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "max",
            "ns a message",
            "copies",
            "torn and read again",
        ],
    );
    let mut points = vec![0];
    points.extend(doublings(up_to));
    for (readers, figures, read) in publishbench::beside_readers(args, &points, clock)? {
        let at = |per_million: u32| figures.singles.at(per_million).to_string();
        table = table.row([
            readers.to_string(),
            figures.singles.count.to_string(),
            at(500_000),
            at(900_000),
            at(990_000),
            at(999_000),
            figures.singles.max.to_string(),
            format!("{:.1}", figures.per_message),
            format_count(read.copies),
            format_count(read.again),
        ]);
    }
    Ok(table)
}
