//! `tickwire bench --publish`: from a packet in memory to its book visible in shared memory, feed by feed, in
//! one run.
//!
//! The sessions are those of [`crate::feedbench`]; the way is the daemon's own: channel, its books, book
//! slot, ring, consolidated book. Afterwards the books are read as any other process would read them and must
//! be the venue's, level by level, else no figure is shown. A regression here is one of every reader of
//! shared memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use tickwire_book::super_books::Source;
use tickwire_book::{Books, BooksConfig, Depth, Relay, SuperConfig};
use tickwire_feed::{Channel, FeedState, Line, consolidated};
use tickwire_lab::{Table, format_ns};
use tickwire_market::{BookState, EventSink, Level, MarketEvent, MessageType, Nanos, Port, Side, Venue};
use tickwire_runtime::clock::{Clock, thread_cpu_ns, tsc};
use tickwire_runtime::memory_reads::MemoryReads;
use tickwire_runtime::neighbours::{Neighbours, PAUSES};
use tickwire_shm::{
    BookCopy, Histogram, Identity, Reader, Region, RegionConfig, RegionState, SourceIdentity, SuperCopy,
};

use crate::bench::{packets_of, tell_host};
use crate::cli::BenchArgs;
use crate::feedbench::{self};
use crate::scale::{End, pin_to};
use tickwire_console::failure::Failure;
use tickwire_feedd::channel_books::{ChannelBooks, ThreadShared};
use tickwire_feedd::rehearsal::{Rehearsal, Rehearsed, Room};
use tickwire_feedd::supers::{SuperPublisher, Supers};
use tickwire_feedd::thread_books::ThreadBooks;
use tickwire_feedd::{DaemonSection, LatencyOf, RingContent};
use tickwire_receive::receiver::{Received, Source as Receives};
use tickwire_rig::recorded::walk;
use tickwire_simulator::session::Packing;
use tickwire_simulator::session::Session;
use tickwire_simulator::venue::VIRTUAL_START;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

/// Levels of a side in a slot, as the daemon has them by default.
const LEVELS: u32 = 10;
/// Shares of a side in a consolidated book's slot, as the daemon has them by default.
const SHARES: u32 = 32;
/// Readings of the clock to tell what one costs.
const READINGS: u64 = 1_000_000;

/// By pause: what was rehearsed, and what was not.
type Behind = [[Histogram; 2]; 2];

/// How a session is shown.
#[derive(Clone, Copy)]
struct Way {
    /// In consolidated books, too.
    with_supers: bool,
    latency_of: LatencyOf,
}

/// The clock is read as the daemon has it by default.
const SHIPPED: Way = Way {
    with_supers: false,
    latency_of: LatencyOf::Packets,
};
/// With consolidated books, too.
const MERGED: Way = Way {
    with_supers: true,
    ..SHIPPED
};
/// Every book is timed.
const TIMED: Way = Way {
    latency_of: LatencyOf::Messages,
    ..SHIPPED
};
const WAYS: [Way; 3] = [SHIPPED, MERGED, TIMED];

/// What a session cost.
#[derive(Clone)]
pub(crate) struct Figures {
    /// Processor time, nanoseconds a message.
    pub(crate) per_message: f64,
    /// Packet in memory → book visible.
    books: Histogram,
    /// The same of packets of one message alone: by packet, its last book.
    pub(crate) singles: Histogram,
    /// The same behind each of [`PAUSES`], in which others have the caches: rehearsed meanwhile, and not.
    behind: Behind,
    /// Packet in memory → consolidated book visible.
    supers: Histogram,
}

/// Looks through a session: where the datagram is that ends it (from then on a channel is no part of a
/// consolidated book), and how many messages each one before it holds.
struct Survey<'a>(&'a Session);

/// What a look through a session found.
#[derive(Default)]
struct Found {
    /// Bytes before the datagram that ends the session.
    end: usize,
    /// Messages with events, by datagram.
    sizes: Vec<u16>,
}

impl Found {
    fn is_single(&self, at: usize) -> bool {
        self.sizes.get(at) == Some(&1)
    }
}

/// Counts messages.
struct Messages(u64);

impl EventSink for Messages {
    fn on_event(&mut self, _: &MarketEvent) {}

    fn on_message(&mut self, _: MessageType) {
        self.0 += 1;
    }
}

impl WithChannel for Survey<'_> {
    type Output = Found;

    fn run<C: Channel + 'static>(self, mut channel: C, _: Depth) -> Found {
        let (session, mut sink) = (self.0, Messages(0));
        for (port, datagram) in &session.before {
            channel.on_datagram(VIRTUAL_START, *port, Line::A, datagram, &mut sink);
        }
        let mut found = Found::default();
        for datagram in walk(&session.live) {
            let before = sink.0;
            channel.on_datagram(VIRTUAL_START, Port::Live, Line::A, datagram, &mut sink);
            if channel.state() == FeedState::Ended {
                break;
            }
            found.end += 2 + datagram.len();
            found.sizes.push((sink.0 - before).min(u16::MAX.into()) as u16);
        }
        found
    }
}

/// Plays a session into shared memory.
struct Pass<'a> {
    session: &'a Session,
    found: &'a Found,
    protocol: Protocol,
    way: Way,
    clock: &'a Clock,
    play: Play,
    /// Threads that read meanwhile.
    readers: u32,
    /// Of packets of one message so many come behind each of [`PAUSES`].
    pauses: Option<&'a mut Pauses>,
}

/// Pauses before packets.
struct Pauses {
    neighbours: Neighbours,
    counts: [u64; 2],
}

/// Times of the packets of one message, by datagram.
struct Singles<'a> {
    found: &'a Found,
    clock: &'a Clock,
    pauses: Option<&'a mut Pauses>,
    /// The pause that was before the datagram under way, and whether nothing was rehearsed in it.
    paused: Option<[usize; 2]>,
    at_once: Histogram,
    behind: Behind,
}

impl Singles<'_> {
    /// This datagram comes next: perhaps behind a pause. The first half of the day fills the books.
    fn before<C: Channel + 'static>(
        &mut self,
        at: usize,
        source: &mut Received<C>,
        books: &mut ThreadBooks<'_>,
    ) {
        self.paused = None;
        if let Some(pauses) = &mut self.pauses
            && at >= self.found.sizes.len() / 2
            && self.found.is_single(at)
        {
            let mut ways = (0..PAUSES.len()).flat_map(|pause| [[pause, 0], [pause, 1]]);
            let is_wanted = |&[pause, way]: &[usize; 2]| self.behind[pause][way].count < pauses.counts[pause];
            self.paused = ways.find(is_wanted);
            if let Some([pause, way]) = self.paused {
                let every = if way == 0 { rehearsed_ns() } else { 0 };
                let rehearse = |now| {
                    if !books.rehearse(0, now, |books| source.rehearse(now, books)) {
                        source.look(books);
                    }
                    Receives::<ThreadBooks<'_>>::fetch(source);
                };
                pauses
                    .neighbours
                    .work(self.clock, PAUSES[pause].0, every, rehearse);
            }
        }
    }

    /// The datagram under way, behind a pause as a socket gives it.
    fn received<'b>(&'b mut self, datagram: &'b [u8]) -> &'b [u8] {
        match &mut self.pauses {
            Some(pauses) if self.paused.is_some() => pauses.neighbours.receive(self.clock, datagram).bytes,
            _ => datagram,
        }
    }

    /// So long after it was in memory its last book was visible, if it changed one.
    fn after(&mut self, at: usize, visible: Option<u64>) {
        match (visible, self.paused) {
            (Some(ns), Some([pause, way])) => self.behind[pause][way].record(ns),
            (Some(ns), None) if self.found.is_single(at) => self.at_once.record(ns),
            _ => {}
        }
    }
}

/// What readers did.
#[derive(Clone, Copy, Default)]
pub(crate) struct Read {
    /// Books copied.
    pub(crate) copies: u64,
    /// Copies that a write came into, so that they were made again.
    pub(crate) again: u64,
}

/// Copies one book after the other, in no order, until it is told to end.
fn read_on(words: &[AtomicU64], seed: u64, is_over: &AtomicBool) -> Read {
    let (mut read, mut copy, mut at) = (Read::default(), BookCopy::default(), seed);
    let Ok(reader) = Reader::attach(words) else {
        return read;
    };
    while !is_over.load(Ordering::Relaxed) {
        // Books that are defined while it reads are read, too.
        let books = reader.books().map(|(slot, _)| slot).collect::<Vec<_>>();
        for _ in 0..4_096_u32.min(books.len() as u32 * 64) {
            at = at
                .wrapping_mul(0x5851_F42D_4C95_7F2D)
                .wrapping_add(0x1405_7B7E_F767_814F);
            let slot = books[(at >> 33) as usize % books.len()];
            match reader.read_book(slot, &mut copy) {
                Ok(_) => read.copies += 1,
                Err(_) => read.again += 1,
            }
        }
    }
    read
}

/// How.
#[derive(Clone, Copy, PartialEq)]
enum Play {
    /// Every datagram in its turn.
    InOrder,
    /// Every group of datagrams with its first one late, on the other line; allocations are counted.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test that counts allocations"))]
    WithGaps,
    /// Every datagram in its turn, a rehearsal before each; allocations are counted.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test that counts allocations"))]
    Rehearsed,
}

/// What a pass gives: its figures, allocations where they were counted, and what readers did.
type Passed = Result<(Figures, u64, Read), Failure>;

impl WithChannel for Pass<'_> {
    type Output = Passed;

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Passed {
        let session = self.session;
        let symbols = session.config.exchange.symbols.0;
        let config = RegionConfig {
            histograms: 64,
            books: symbols + 1,
            book_levels: LEVELS,
            supers: symbols + 1,
            super_shares: SHARES,
            rings: 1,
            ..RegionConfig::default()
        };
        let layout = config.layout().map_err(|e| Failure::config(e.to_string()))?;
        let words: Vec<AtomicU64> = (0..layout.words).map(|_| AtomicU64::new(0)).collect();
        let identity = Identity {
            generation: VIRTUAL_START,
            pid: std::process::id(),
        };
        let region = Region::format(&words, &config, identity).map_err(|e| Failure::config(e.to_string()))?;
        let venue = channel.venue();
        let is_national = !self.protocol.has_depth();
        let row = region.source(
            0,
            &SourceIdentity {
                name: self.protocol.name().into(),
                feed_name: self.protocol.name().into(),
                protocol: self.protocol.name().into(),
                feed: 0,
                venue: Some(venue),
                ring: Some(0),
            },
        );
        let (notices, _notices) = sync_channel(64);
        let Way {
            with_supers,
            latency_of,
        } = self.way;
        let supers = match with_supers {
            false => Supers::Off,
            true => Supers::Inline(Box::new(SuperPublisher::new(
                SuperConfig {
                    sources: vec![Source { feed: 0, is_national }],
                    symbols: symbols + 1,
                    members: symbols + 1,
                    shares: symbols * 1024,
                },
                region,
                &[row.super_latency()],
                self.clock.clone(),
                notices.clone(),
            ))),
        };
        let relay = with_supers.then_some(match is_national {
            true => Relay::National,
            false => Relay::Levels,
        });
        let books = Books::new(BooksConfig {
            venue,
            tracked: true,
            ..*session.books(depth).config()
        });
        let shared = ThreadShared {
            ring: Some(region.ring(0)),
            content: RingContent::Both,
            latency_of,
            supers,
            clock: self.clock.clone(),
            notices,
        };
        let mut source = Received::new(0, channel);
        let room = Room::new(1, &config);
        let rehearsed = Rehearsed { venue, depth, relay };
        let rehearsal = Rehearsal::new(&shared, room.region(), &[rehearsed]);
        let mut books_of_thread = ThreadBooks::new(shared, false);
        books_of_thread.add(ChannelBooks::new(region, row, books, relay), 0, u64::MAX);
        books_of_thread.rehearse_with(rehearsal);
        region.set_state(RegionState::Ready);
        for (port, datagram) in &session.before {
            source.deliver(VIRTUAL_START, *port, Line::A, datagram, &mut books_of_thread);
        }
        let (day, close) = session.live.split_at(self.found.end);
        let mut singles = Singles {
            found: self.found,
            clock: self.clock,
            pauses: self.pauses,
            paused: None,
            at_once: Histogram::default(),
            behind: Default::default(),
        };
        let (allocations, ns, read) = beside(self.readers, &words, || {
            let begin = thread_cpu_ns();
            let timed = Some(&mut singles);
            let allocations = play(day, self.play, &mut source, &mut books_of_thread, timed);
            (allocations, thread_cpu_ns() - begin)
        })?;
        let reader = Reader::attach(&words).map_err(|e| Failure::check(e.to_string()))?;
        if with_supers && !is_national {
            check_supers(&reader, venue)?;
        }
        // A channel that has ended is no part of a consolidated book, and on some venues the close empties
        // the books.
        play(close, Play::InOrder, &mut source, &mut books_of_thread, None);
        check_books(session, &reader)?;
        let shown = reader.source(0).ok_or_else(|| Failure::check("no source"))?;
        let histogram = |index: Option<u32>| index.and_then(|index| reader.histogram(index));
        let figures = Figures {
            per_message: ns as f64 / session.messages as f64,
            books: histogram(shown.latency).unwrap_or_default(),
            singles: singles.at_once,
            behind: singles.behind,
            supers: histogram(shown.super_latency).unwrap_or_default(),
        };
        Ok((figures, allocations, read))
    }
}

/// Does it while so many threads read: they have the first core, this thread has the last one then.
fn beside(
    readers: u32,
    words: &[AtomicU64],
    write: impl FnOnce() -> (u64, u64),
) -> Result<(u64, u64, Read), Failure> {
    if readers == 0 {
        let (allocations, ns) = write();
        return Ok((allocations, ns, Read::default()));
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        let started: Vec<_> = (0..readers)
            .map(|nth| {
                scope.spawn(move || {
                    pin_to(End::First)?;
                    Ok::<Read, Failure>(read_on(words, nth.into(), is_over))
                })
            })
            .collect();
        let (allocations, ns) = write();
        is_over.store(true, Ordering::Relaxed);
        let mut all = Read::default();
        for thread in started {
            let read = thread.join().expect("its panic ends this one")?;
            (all.copies, all.again) = (all.copies + read.copies, all.again + read.again);
        }
        Ok((allocations, ns, all))
    })
}

/// What a session of ITCH takes beside so many readers, for each point: the fastest run.
pub(crate) fn beside_readers(
    args: &BenchArgs,
    points: &[u64],
    clock: &Clock,
) -> Result<Vec<(u64, Figures, Read)>, Failure> {
    // As much as readers must have beside them; on one core they share it.
    pin_to(End::Last)?;
    let args = BenchArgs {
        packets: vec![Packing::Recorded],
        ..args.clone()
    };
    let bench = benches(&[Protocol::Itch50], &args)?.swap_remove(0);
    let mut best: Vec<Option<(Figures, Read)>> = points.iter().map(|_| None).collect();
    for _ in 0..args.runs.max(1) {
        for (at, &readers) in points.iter().enumerate() {
            let readers = u32::try_from(readers).unwrap_or(u32::MAX);
            let (figures, _, read) = bench.pass(readers, SHIPPED, clock, (Play::InOrder, None))?;
            let kept = best[at].as_ref();
            if kept.is_none_or(|(kept, _)| figures.per_message < kept.per_message) {
                best[at] = Some((figures, read));
            }
        }
    }
    let best = points.iter().zip(best);
    Ok(best
        .filter_map(|(&readers, best)| best.map(|(figures, read)| (readers, figures, read)))
        .collect())
}

/// Plays a session; allocations, where they are counted. Datagrams in order are timed.
fn play<C: Channel + 'static>(
    live: &[u8],
    play: Play,
    source: &mut Received<C>,
    books: &mut ThreadBooks<'_>,
    mut timed: Option<&mut Singles<'_>>,
) -> u64 {
    let mut now = VIRTUAL_START;
    match play {
        Play::InOrder => {
            for (at, datagram) in walk(live).enumerate() {
                if let Some(singles) = &mut timed {
                    singles.before(at, source, books);
                }
                let datagram = match &mut timed {
                    Some(singles) => singles.received(datagram),
                    None => datagram,
                };
                source.deliver(now, Port::Live, Line::A, datagram, books);
                if let Some(singles) = &mut timed {
                    singles.after(at, books.visible_ns(0));
                }
            }
            0
        }
        Play::Rehearsed => {
            // The first one is missed, and its twin made off the way of a packet.
            books.rehearse(0, now, |books| source.rehearse(now, books));
            source.look(books);
            let (is_played, count) = tickwire_runtime::alloc::count_allocations(|| {
                walk(live).all(|datagram| {
                    source.deliver(now, Port::Live, Line::A, datagram, books);
                    books.rehearse(0, now, |books| source.rehearse(now, books))
                })
            });
            assert!(is_played, "there is a twin");
            count.allocations
        }
        Play::WithGaps => {
            let datagrams: Vec<&[u8]> = walk(live).collect();
            let ((), count) = tickwire_runtime::alloc::count_allocations(|| {
                // The day's first datagrams come in order: without them some venues begin with a snapshot.
                let (first, rest) = datagrams.split_at(20.min(datagrams.len()));
                for datagram in first {
                    source.deliver(now, Port::Live, Line::A, datagram, books);
                }
                for group in rest.chunks(20) {
                    now = now.after(Nanos::MICRO);
                    for datagram in &group[1..] {
                        source.deliver(now, Port::Live, Line::A, datagram, books);
                    }
                    source.deliver(now, Port::Live, Line::B, group[0], books);
                    source.timers(now, books);
                }
            });
            count.allocations
        }
    }
}

/// Reads every consolidated book back and compares it with the book it is made of.
fn check_supers(reader: &Reader<'_, AtomicU64>, venue: Venue) -> Result<(), Failure> {
    let (mut copy, mut merged) = (BookCopy::default(), SuperCopy::default());
    for (slot, identity) in reader.books() {
        // What is not of the venue's convention is in no consolidated book.
        let Some(symbol) = consolidated(venue, &identity.symbol) else {
            continue;
        };
        let is_read = reader.read_book(slot, &mut copy).is_ok();
        let merged_slot = reader.find_super(symbol);
        let is_merged = merged_slot.is_some_and(|slot| reader.read_super(slot, &mut merged).is_ok());
        let is_right = Side::BOTH.iter().all(|&side| {
            // A book that is not whole, because a gap is open, is no part.
            if copy.state != BookState::Live {
                return merged.side(side).is_empty();
            }
            let shares = merged.side(side).iter().take(LEVELS as usize);
            let levels = shares.map(|share| Level {
                price: share.price,
                qty: share.qty,
                orders: share.orders,
            });
            levels.eq(copy.side(side).iter().copied())
        });
        if !(is_read && is_merged && is_right) {
            return Err(Failure::check(format!(
                "the consolidated book of {symbol} in shared memory is not its only venue's book ({:?}, {:?} levels; {} and {} shares, feeds {:b}, out {:b}): the figures would mean nothing",
                copy.state,
                copy.levels,
                merged.side(Side::Bid).len(),
                merged.side(Side::Ask).len(),
                merged.feeds,
                merged.stale,
            )));
        }
    }
    Ok(())
}

/// Reads every book back and compares it with the venue's.
fn check_books(session: &Session, reader: &Reader<'_, AtomicU64>) -> Result<(), Failure> {
    let mut copy = BookCopy::default();
    let mut different = Vec::new();
    for listing in session.exchange.listings() {
        let slot = reader.find(listing.symbol).next();
        let is_read = slot.is_some_and(|(slot, _)| reader.read_book(slot, &mut copy).is_ok());
        for side in Side::BOTH {
            let published_channel = &session.exchange.published_channels()[0];
            let theirs = published_channel
                .publisher
                .levels(session.exchange.engine(), listing.id, side);
            let top = &theirs[..theirs.len().min(LEVELS as usize)];
            let ours: &[Level] = if is_read { copy.side(side) } else { &[] };
            let count = if is_read { copy.levels[side as usize] } else { 0 };
            if ours != top || count as usize != theirs.len() {
                different.push(format!(
                    "{} {side:?} ({} levels shown of {count}, {} at the venue)",
                    listing.symbol,
                    ours.len(),
                    theirs.len()
                ));
            }
        }
    }
    let source = reader.source(0).ok_or_else(|| Failure::check("no source"))?;
    match different.first() {
        Some(first) => Err(Failure::check(format!(
            "{} sides of books in shared memory differ from the venue's, the first is {first}: the figures would mean nothing",
            different.len()
        ))),
        None if source.totals.updates == 0 => Err(Failure::check(
            "no book was shown: the figures would mean nothing",
        )),
        None => Ok(()),
    }
}

/// One feed's sessions, measured in turns with the others'.
struct Bench {
    protocol: Protocol,
    session: Session,
    packing: Packing,
    found: Found,
    /// By [`WAYS`]; the fastest run of each.
    best: [Option<Figures>; WAYS.len()],
    /// Packets of one message behind pauses, the first run.
    behind: Behind,
}

impl Bench {
    fn round(&mut self, clock: &Clock, pauses: &mut Pauses) -> Result<(), Failure> {
        if self.behind[0][0].count == 0 && self.found.sizes.contains(&1) {
            let (figures, ..) = self.pass(0, SHIPPED, clock, (Play::InOrder, Some(pauses)))?;
            self.behind = figures.behind;
        }
        for (at, way) in WAYS.into_iter().enumerate() {
            let (figures, ..) = self.pass(0, way, clock, (Play::InOrder, None))?;
            let best = &mut self.best[at];
            if best
                .as_ref()
                .is_none_or(|best| figures.per_message < best.per_message)
            {
                *best = Some(figures);
            }
        }
        Ok(())
    }

    fn pass(
        &self,
        readers: u32,
        way: Way,
        clock: &Clock,
        (play, pauses): (Play, Option<&mut Pauses>),
    ) -> Passed {
        let pass = Pass {
            readers,
            pauses,
            session: &self.session,
            found: &self.found,
            protocol: self.protocol,
            way,
            clock,
            play,
        };
        wiring::with_channel(&self.session.config.feed[0], 0, &self.reception(), pass)?
    }

    /// Nobody answers, as behind a capture.
    fn reception(&self) -> Reception {
        let receiver = &self.session.config.receiver;
        Reception::recorded(receiver.max_instruments, receiver.max_orders, None)
    }
}

fn benches(protocols: &[Protocol], args: &BenchArgs) -> Result<Vec<Bench>, Failure> {
    let packings = match args.packets.is_empty() {
        true => vec![Packing::Recorded, Packing::Busy],
        false => args.packets.clone(),
    };
    let wanted = packings
        .iter()
        .flat_map(|&packing| protocols.iter().map(move |&protocol| (packing, protocol)));
    let made = wanted.map(|(packing, protocol)| {
        eprintln!("{protocol}: publishing ...");
        let mut bench = Bench {
            protocol,
            packing,
            session: Session::publish(
                protocol,
                args.seed,
                args.messages,
                feedbench::symbols_of(args),
                packing,
            )?,
            found: Found::default(),
            best: [const { None }; WAYS.len()],
            behind: Default::default(),
        };
        let feed = &bench.session.config.feed[0];
        bench.found = wiring::with_channel(feed, 0, &bench.reception(), Survey(&bench.session))?;
        Ok(bench)
    });
    made.collect()
}

/// How often a feed thread that never sleeps rehearses a packet, as shipped.
fn rehearsed_ns() -> u64 {
    u64::from(DaemonSection::default().rehearse_us) * Nanos::MICRO
}

/// What a reading of the clock costs, nanoseconds: it is part of every figure.
fn stamp_cost_ns() -> f64 {
    let begin = thread_cpu_ns();
    let sum = (0..READINGS).fold(0_u64, |sum, _| sum.wrapping_add(std::hint::black_box(tsc())));
    std::hint::black_box(sum);
    (thread_cpu_ns() - begin) as f64 / READINGS as f64
}

pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let clock = Clock::calibrate();
    let protocols = match args.feed.is_empty() {
        true => wiring::PUBLISHED.to_vec(),
        false => feedbench::chosen(&args.feed)?,
    };
    let mut benches = benches(&protocols, args)?;
    let mut pauses = Pauses {
        neighbours: Neighbours::new(),
        counts: PAUSES.map(|(pause, _)| packets_of(args.messages, pause)),
    };
    let mut reads = MemoryReads::new();
    for round in 0..args.runs.max(1) {
        eprintln!("run {} of {}", round + 1, args.runs.max(1));
        for bench in &mut benches {
            reads.look(&clock);
            bench.round(&clock, &mut pauses).map_err(|f| Failure {
                message: format!("{}: {}", bench.protocol, f.message),
                ..f
            })?;
        }
    }
    reads.look(&clock);
    for packing in [Packing::Recorded, Packing::Busy] {
        if let Some(table) = table(&benches, packing, args) {
            println!("{}", table.to_text(tickwire_console::terminal::width()));
        }
    }
    println!(
        "a reading of the clock costs {:.1} ns; each figure holds one for the packet and one for its last book, and counts for every book of the packet (daemon.latency_of = \"packets\"); \"every one timed\" holds one for each book it changed (\"messages\")",
        stamp_cost_ns()
    );
    println!(
        "In a pause others have the caches (the thread walks through memory), and packets are rehearsed every {}, as by a thread that never sleeps (daemon.rehearse_us). A packet behind one is copied before it is timed, as a socket does; of packets one behind the other the next one's lines are asked for, as by the receive loop behind AF_XDP.",
        format_ns(rehearsed_ns())
    );
    println!("every book read back from shared memory equals the venue's");
    tell_host(&clock, Some(&reads));
    Ok(())
}

/// What the sessions of a packing cost, `None` when there are none.
fn table(benches: &[Bench], packing: Packing, args: &BenchArgs) -> Option<Table> {
    let benches = || benches.iter().filter(|bench| bench.packing == packing);
    benches().next()?;
    let mut table = Table::new(
        &format!(
            "packet in memory -> visible in shared memory (10 levels, ring of events and updates), nanoseconds; fastest of {} runs; {}, packets {}",
            args.runs.max(1),
            feedbench::played(args),
            match packing {
                Packing::Recorded => "as full as on recorded lines",
                Packing::Busy => "of a busy second",
            }
        ),
        &[
            "feed",
            "per packet",
            "",
            "shown",
            "mean",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "max",
            "ns a message",
            "million/s",
        ],
    );
    let behind = PAUSES.map(|(_, pause)| {
        ["", ", not rehearsed"].map(|rehearsed| format!("book, packets of one message {pause}{rehearsed}"))
    });
    for bench in benches() {
        let [plain, merged, timed] = &bench.best;
        let per_packet = bench.session.messages as f64 / bench.session.datagrams.max(1) as f64;
        let rows = [
            (
                "book, packets of one message",
                plain.as_ref(),
                plain.as_ref().map(|f| &f.singles),
            ),
            ("book", plain.as_ref(), plain.as_ref().map(|f| &f.books)),
            (
                "book, with consolidated books",
                merged.as_ref(),
                merged.as_ref().map(|f| &f.books),
            ),
            (
                "consolidated book",
                merged.as_ref(),
                merged.as_ref().map(|f| &f.supers),
            ),
            (
                "book, every one timed",
                timed.as_ref(),
                timed.as_ref().map(|f| &f.books),
            ),
            (&behind[0][0], None, Some(&bench.behind[0][0])),
            (&behind[0][1], None, Some(&bench.behind[0][1])),
            (&behind[1][0], None, Some(&bench.behind[1][0])),
            (&behind[1][1], None, Some(&bench.behind[1][1])),
        ];
        for (what, figures, histogram) in rows {
            let Some(histogram) = histogram.filter(|h| h.count > 0) else {
                continue;
            };
            // Of a pause there is no throughput.
            let per_message = |shown: fn(f64) -> f64| {
                let shown = figures.map(|figures| format!("{:.1}", shown(figures.per_message)));
                shown.unwrap_or_default()
            };
            let at = |per_million: u32| histogram.at(per_million).to_string();
            table = table.row([
                bench.protocol.to_string(),
                format!("{per_packet:.1}"),
                what.to_string(),
                histogram.count.to_string(),
                histogram.mean().to_string(),
                at(500_000),
                at(900_000),
                at(990_000),
                at(999_000),
                histogram.max.to_string(),
                per_message(|ns| ns),
                per_message(|ns| 1e3 / ns),
            ]);
        }
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::FeedChoice;

    fn args() -> BenchArgs {
        BenchArgs {
            feed: vec![FeedChoice::All],
            publish: true,
            ..BenchArgs::small()
        }
    }

    #[test]
    fn the_clock_is_read_as_it_ships() {
        assert_eq!(SHIPPED.latency_of, DaemonSection::default().latency_of);
    }

    #[test]
    fn every_feed_is_shown_as_the_venue_has_it_and_measured() {
        let clock = Clock::calibrate();
        let mut pauses = Pauses {
            neighbours: Neighbours::new(),
            counts: [3, 1],
        };
        for mut bench in benches(&wiring::PUBLISHED, &args()).unwrap_or_else(|f| panic!("{}", f.message)) {
            let protocol = bench.protocol;
            bench
                .round(&clock, &mut pauses)
                .unwrap_or_else(|f| panic!("{protocol}: {}", f.message));
            let later = bench.found.sizes.len() / 2..bench.found.sizes.len();
            if later.filter(|at| bench.found.is_single(*at)).count() > 50 {
                let counts = bench.behind.map(|ways| ways.map(|way| way.count));
                assert_eq!(counts, [[3, 3], [1, 1]], "{protocol}");
            }
            let [plain, merged, timed] = bench.best.map(|figures| figures.expect("measured"));
            assert!(plain.books.count > 2_000, "{protocol}: {}", plain.books.count);
            assert_eq!(plain.books.count, merged.books.count, "{protocol}");
            assert_eq!(plain.books.count, timed.books.count, "{protocol}");
            // The simulator lists shares, and by CME's convention what is no future is in no consolidated
            // book.
            let expected = if protocol == Protocol::Mdp3 { 0 } else { 1_000 };
            assert!(
                merged.supers.count >= expected,
                "{protocol}: {}",
                merged.supers.count
            );
            assert_eq!(plain.supers.count, 0);
            if bench.packing == Packing::Recorded {
                assert!(plain.singles.count > 100, "{protocol}: {}", plain.singles.count);
            }
        }
    }

    #[test]
    fn nothing_is_allocated_in_a_rehearsal() {
        allocates_nothing(Play::Rehearsed);
    }

    #[test]
    fn nothing_is_allocated_from_packet_to_super_book_gaps_included() {
        allocates_nothing(Play::WithGaps);
    }

    fn allocates_nothing(play: Play) {
        let clock = Clock::calibrate();
        for bench in benches(&wiring::PUBLISHED, &args()).unwrap_or_else(|f| panic!("{}", f.message)) {
            let (_, allocations, _) = bench
                .pass(0, MERGED, &clock, (play, None))
                .unwrap_or_else(|f| panic!("{}: {}", bench.protocol, f.message));
            assert_eq!(allocations, 0, "{}", bench.protocol);
        }
    }
}
