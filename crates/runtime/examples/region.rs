//! A region whose every word is known, for the tests of its readers in C and Python.
//!
//! ```text
//! region write FOLDER [LEVELS [SHARES [RECORDS]]]   makes it, says `ready`, and obeys lines on standard input:
//!     step N       every book is written N times more          state SOURCE N   a source's state, 0 to 3
//!     fast N       N writes in a row, without a pause          end              ends in an orderly way
//! region dump FOLDER                                prints all that the Rust reader sees
//! ```
//! Each line is answered by `ok`. What write number n of a book says is a function of n: see `write_book`.
//! The C and Python tests know the same function, and so find a copy that is made of two writes.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, SystemTime};
use tickwire_market::{
    BookState, BookUpdate, Counter, Counters, EventFlags, EventKind, InstrumentId, Level, MarketEvent, Nanos,
    OrderId, Price, SeqNo, Side, Symbol, TradingStatus, UpdateFlags, Venue, Volume,
};
use tickwire_runtime::shared::{Attachment, SharedMemory, monotonic};
use tickwire_shm::{
    Auction, BookCopy, BookIdentity, BookSlot, BookWriter, Difference, Identity, Ladder, LastTrade, National,
    Next, ReadWord, Reader, Record, Region, RegionConfig, RegionState, RingWriter, Share, SourceIdentity,
    SourceState, SourceWriter, SuperCopy, SuperSlot, SuperWriter, Touch,
};

type Failure = Box<dyn std::error::Error>;

/// Name, feed, venue and the symbols of its books.
const SOURCES: [(&str, &str, Venue, &[&str]); 3] = [
    ("nasdaq", "nasdaq", Venue::Nasdaq, &["AAPL", "MSFT"]),
    ("bzx 1", "bzx", Venue::Bzx, &["AAPL"]),
    ("bzx 2", "bzx", Venue::Bzx, &["ZVZZT"]),
];

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["write", folder, sizes @ ..] => {
            let size = |at: usize, default: u32| sizes.get(at).map_or(Ok(default), |text| text.parse());
            write(Path::new(folder), size(0, 10)?, size(1, 32)?, size(2, 1024)?)
        }
        ["dump", folder] => dump(Path::new(folder)),
        _ => Err("region write FOLDER [LEVELS [SHARES [RECORDS]]] | region dump FOLDER".into()),
    }
}

struct Known<'a> {
    sources: Vec<SourceWriter<'a, AtomicU64>>,
    books: BookWriter<'a, AtomicU64>,
    slots: Vec<(u16, InstrumentId, BookSlot)>,
    supers: SuperWriter<'a, AtomicU64>,
    super_slot: SuperSlot,
    ring: RingWriter<'a, AtomicU64>,
    writes: u64,
}

fn write(folder: &Path, book_levels: u32, super_shares: u32, ring_records: u32) -> Result<(), Failure> {
    let config = RegionConfig {
        feeds: 2,
        sources: 4,
        histograms: 16,
        books: 8,
        book_levels,
        supers: 4,
        super_shares,
        rings: 1,
        ring_records,
    };
    let memory = SharedMemory::create(&folder.join("region"), config.layout()?.bytes())?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let identity = Identity {
        generation: Nanos(now.as_nanos() as u64),
        pid: std::process::id(),
    };
    let region = Region::format(memory.words(), &config, identity)?;
    let mut known = Known::new(&region)?;
    known.step(3);
    region.heartbeat(monotonic());
    region.set_state(RegionState::Ready);
    memory.publish()?;
    println!("ready");

    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        io::stdin()
            .lines()
            .map_while(Result::ok)
            .try_for_each(|line| tell.send(line))
    });
    loop {
        region.heartbeat(monotonic());
        let line = match told.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["step", n] => known.step(n.parse()?),
            ["fast", n] => {
                // Answered before, so that the other side reads meanwhile.
                println!("ok");
                for n in 0..n.parse()? {
                    known.step(1);
                    if n % 4096 == 0 {
                        region.heartbeat(monotonic());
                    }
                }
            }
            ["state", source, state] => {
                let states = [
                    SourceState::Building,
                    SourceState::Live,
                    SourceState::Stale,
                    SourceState::Ended,
                ];
                known.sources[source.parse::<usize>()?].set_state(states[state.parse::<usize>()?]);
            }
            ["end"] => {
                region.set_state(RegionState::Ended);
                println!("ok");
                return Ok(());
            }
            other => return Err(format!("no such order: {other:?}").into()),
        }
        println!("ok");
    }
}

impl<'a> Known<'a> {
    fn new(region: &Region<'a, AtomicU64>) -> Result<Known<'a>, Failure> {
        let (mut books, mut supers) = (region.books(), region.supers());
        let (mut sources, mut slots) = (Vec::new(), Vec::new());
        for (number, (name, feed_name, venue, symbols)) in SOURCES.iter().enumerate() {
            let identity = SourceIdentity {
                name: (*name).to_owned(),
                feed_name: (*feed_name).to_owned(),
                protocol: "known".to_owned(),
                feed: u8::from(*feed_name == "bzx"),
                venue: Some(*venue),
                ring: Some(0),
            };
            let number = number as u16;
            let mut source = region.source(number, &identity);
            source.set_state(SourceState::Live);
            for (at, symbol) in symbols.iter().enumerate() {
                let symbol = Symbol::new(symbol.as_bytes()).ok_or("not a symbol")?;
                let instrument = InstrumentId(7 + at as u32);
                slots.push((
                    number,
                    instrument,
                    books.claim(&BookIdentity {
                        source: number,
                        instrument,
                        symbol,
                    })?,
                ));
                source.book_claimed();
            }
            sources.push(source);
        }
        let super_slot = supers.claim(Symbol::new(b"AAPL").ok_or("not a symbol")?)?;
        Ok(Known {
            sources,
            books,
            slots,
            supers,
            super_slot,
            ring: region.ring(0),
            writes: 0,
        })
    }

    /// Writes everything `times` times.
    fn step(&mut self, times: u64) {
        for _ in 0..times {
            self.writes += 1;
            let n = self.writes;
            for k in 0..self.slots.len() {
                self.write_book(k, n);
            }
            self.write_super(n);
            for (number, source) in self.sources.iter_mut().enumerate() {
                source.packet(SeqNo(n + 1), Nanos(n * 1000));
                source.kind(u16::from(b'A'), n * 3, n);
                source.kind(0x2e, n, 0);
                source.kind_latency(u16::from(b'A'), 200 + n % 100);
                let mut counters = Counters::default();
                counters.add(Counter::Messages, n * (number as u64 + 1));
                counters.add(Counter::Gaps, n / 10);
                source.counters(&counters);
            }
        }
    }

    /// Write number `n` of book `k`: every value follows from the two.
    fn write_book(&mut self, k: usize, n: u64) {
        let (source, instrument, slot) = &mut self.slots[k];
        let key = k as u64;
        let base = price_of(key, n);
        let mut edit = self.books.edit(slot);
        edit.cause(SeqNo(n), Nanos(n * 1000 + key), Nanos(n * 1000 + key + 1));
        edit.state(if n.is_multiple_of(64) {
            BookState::Stale
        } else {
            BookState::Live
        });
        edit.status(TradingStatus::Trading);
        for side in Side::BOTH {
            let levels = levels_of(key, n, side, self.books.shown() as u64);
            edit.totals(
                side,
                levels as u32,
                Volume(levels * 7 + n),
                (levels + n % 7) as u32,
            );
            edit.levels_from(side, 0, (0..levels).map(|rank| level_of(base, n, side, rank)));
        }
        let last = LastTrade {
            price: Price::from_raw(base),
            qty: Volume(n + 1),
            venue_ts: Nanos(n * 1000),
        };
        edit.trade(&last, Volume(n * 3), n);
        edit.auction(&Auction {
            kind: if n.is_multiple_of(2) { b'O' } else { 0 },
            reference: Price::from_raw(base),
            near: Price::from_raw(base - n as i64),
            far: Price::from_raw(base + n as i64),
            paired: Volume(n * 11),
            imbalance: Volume(n * 13),
            side: [Some(Side::Bid), Some(Side::Ask), None][n as usize % 3],
        });
        edit.publish(Nanos(n * 1000 + key + 500));
        self.sources[usize::from(*source)].update(100 + n % 1000);
        let event = MarketEvent {
            seq: SeqNo(n),
            venue_ts: Nanos(n * 1000 + key),
            recv_ts: Nanos(n * 1000 + key + 1),
            instrument: *instrument,
            venue: Venue::ALL[k % 16],
            kind: EventKind::from_u8(1 + (n % 17) as u8).unwrap_or_default(),
            side: Side::BOTH[n as usize % 2],
            status: TradingStatus::Trading,
            order_id: OrderId(n * 3),
            price: Price::from_raw(base),
            qty: Volume(n * 5),
            ref_id: n * 7,
            ask_price: Price::from_raw(-base),
            ask_qty: Volume(n * 9),
            near_price: Price::from_raw(base + 1),
            far_price: Price::from_raw(base + 2),
            imbalance_qty: Volume(n * 11),
            order_count: n as u32,
            flags: EventFlags::LAST,
            code: *b"KNOWN\0\0\0",
            reserved: 0,
        };
        self.ring.event(*source, &event);
        let update = BookUpdate {
            seq: SeqNo(n),
            venue_ts: Nanos(n * 1000 + key),
            recv_ts: Nanos(n * 1000 + key + 1),
            instrument: *instrument,
            venue: Venue::ALL[k % 16],
            state: BookState::Live,
            changed: UpdateFlags::BEST_BID,
            reserved: 0,
            price: [Price::from_raw(base - 1), Price::from_raw(base + 1)],
            qty: [Volume(n * 2), Volume(n * 3)],
        };
        self.ring.update(*source, &update);
    }

    /// Write number `n` of the consolidated book: shares as levels, alternating between the feeds.
    fn write_super(&mut self, n: u64) {
        let base = price_of(9, n);
        let mut edit = self.supers.edit(&mut self.super_slot);
        edit.feeds(0b11, if n.is_multiple_of(8) { 0b10 } else { 0 });
        edit.touch(Touch::Locked);
        for side in Side::BOTH {
            let shares = levels_of(9, n, side, self.supers.shown() as u64);
            let best = level_of(base, n, side, 0);
            edit.ladder(
                side,
                &Ladder {
                    price: best.price,
                    qty: best.qty,
                    feeds: 0b01,
                    shares: shares as u32,
                    levels: shares as u32,
                    total_qty: Volume(shares * 7 + n),
                },
            );
            edit.shares_from(
                side,
                0,
                (0..shares).map(|rank| {
                    let Level { price, qty, orders } = level_of(base, n, side, rank);
                    Share {
                        price,
                        qty,
                        feed: (rank % 2) as u8,
                        orders,
                    }
                }),
            );
        }
        let national = |letter, side| National {
            price: level_of(base, n, side, 1).price,
            qty: Volume(n * 100),
            participant: letter,
        };
        let best = [national(b'Q', Side::Bid), national(b'Z', Side::Ask)];
        edit.national(&best, Nanos(n * 1000), Nanos(n * 1000 + 1));
        edit.difference(&[
            Difference {
                price: 10_000_000,
                since: Nanos(n),
            },
            Difference {
                price: -10_000_000,
                since: Nanos(n),
            },
        ]);
        edit.trade(
            &LastTrade {
                price: Price::from_raw(base),
                qty: Volume(n + 1),
                venue_ts: Nanos(n * 1000),
            },
            Volume(n * 3),
            n,
        );
        edit.publish(Nanos(n * 1000 + 1), Nanos(n * 1000 + 500));
    }
}

/// The middle of book `k` after write `n`.
fn price_of(k: u64, n: u64) -> i64 {
    ((k + 1) * 100_000_000_000 + n % 1000 * 1_000_000) as i64
}

/// Levels of a side of book `k` after write `n`: from none to two more than a slot shows.
fn levels_of(k: u64, n: u64, side: Side, shown: u64) -> u64 {
    (n + k + side as u64) % (shown + 3)
}

fn level_of(base: i64, n: u64, side: Side, rank: u64) -> Level {
    let away = (rank as i64 + 1) * 10_000_000;
    Level {
        price: Price::from_raw(if side == Side::Bid {
            base - away
        } else {
            base + away
        }),
        qty: Volume(n * 100 + rank * 2 + side as u64 + 1),
        orders: ((n + rank) % 50 + 1) as u32,
    }
}

/// All that can be read, in a form that the C and the Python test write, too.
fn dump(folder: &Path) -> Result<(), Failure> {
    let attached = Attachment::attach(folder)?;
    let reader = attached.reader();
    let config = reader.layout().config;
    let mut out = io::stdout().lock();
    let state = reader.state().map_or(0, |state| state as u64);
    let (levels, shares, records) = (config.book_levels, config.super_shares, config.ring_records);
    let lives = attached.health().is_running();
    writeln!(
        out,
        "region {} {levels} {shares} {records} {state} {lives}",
        config.feeds
    )?;
    for s in reader.sources() {
        let index = |index: Option<u32>| index.map_or(-1, i64::from);
        let (t, venue) = (s.totals, s.venue.map_or(0, |venue| venue as u8));
        write!(
            out,
            "source {} [{}] [{}] [{}] {} {venue} ",
            s.number, s.name, s.feed_name, s.protocol, s.feed
        )?;
        write!(
            out,
            "{} {} {} ",
            index(s.ring),
            index(s.latency),
            index(s.super_latency)
        )?;
        write!(out, "{} {} {} ", s.state as u64, s.next_seq.0, s.last_packet.0)?;
        writeln!(out, "{} {} {} {}", t.packets, t.updates, t.books, t.refused)?;
        for (counter, value) in reader.counters(s.number)?.iter().filter(|(_, value)| *value > 0) {
            writeln!(out, "counter {} {} {value}", s.number, counter.spec().id)?;
        }
        for kind in reader.kinds(s.number) {
            writeln!(
                out,
                "kind {} {} {} {} {}",
                s.number,
                kind.kind,
                kind.seen,
                kind.filtered,
                index(kind.latency)
            )?;
            write_histogram(&mut out, &reader, kind.latency)?;
        }
        write_histogram(&mut out, &reader, s.latency)?;
        write_histogram(&mut out, &reader, s.super_latency)?;
    }
    write_books(&mut out, &reader)?;
    for ring in 0..config.rings {
        let mut cursor = reader.ring_from_oldest(ring).ok_or("no such ring")?;
        loop {
            let index = cursor.position();
            match cursor.next(&reader) {
                Next::Empty => break,
                Next::Missed(n) => writeln!(out, "missed {n}")?,
                Next::Record(Record::Event(source, e)) => {
                    write!(
                        out,
                        "event {ring} {index} {source} {} {} {} ",
                        e.seq.0, e.venue_ts.0, e.recv_ts.0
                    )?;
                    write!(out, "{} {} {} ", e.instrument.0, e.venue as u8, e.kind as u8)?;
                    write!(out, "{} {} {} ", e.side as u8, e.status as u8, e.order_id.0)?;
                    write!(out, "{} {} {} ", e.price.raw(), e.qty.0, e.ref_id)?;
                    write!(
                        out,
                        "{} {} {} ",
                        e.ask_price.raw(),
                        e.ask_qty.0,
                        e.near_price.raw()
                    )?;
                    write!(
                        out,
                        "{} {} {} ",
                        e.far_price.raw(),
                        e.imbalance_qty.0,
                        e.order_count
                    )?;
                    writeln!(out, "{} {}", e.flags.0, u64::from_le_bytes(e.code))?;
                }
                Next::Record(Record::Update(source, u)) => {
                    write!(
                        out,
                        "update {ring} {index} {source} {} {} {} ",
                        u.seq.0, u.venue_ts.0, u.recv_ts.0
                    )?;
                    write!(
                        out,
                        "{} {} {} {} ",
                        u.instrument.0, u.venue as u8, u.state as u8, u.changed.0
                    )?;
                    writeln!(
                        out,
                        "{} {} {} {}",
                        u.price[0].raw(),
                        u.price[1].raw(),
                        u.qty[0].0,
                        u.qty[1].0
                    )?;
                }
            }
        }
    }
    Ok(())
}

fn write_histogram(
    out: &mut impl Write,
    reader: &Reader<'_, ReadWord>,
    index: Option<u32>,
) -> io::Result<()> {
    let Some((index, h)) = index.and_then(|index| Some((index, reader.histogram(index)?))) else {
        return Ok(());
    };
    let [p50, p99, p999] = [500_000, 990_000, 999_000].map(|part| h.at(part));
    writeln!(
        out,
        "histogram {index} {} {} {} {} {p50} {p99} {p999}",
        h.count, h.sum, h.min, h.max
    )
}

fn write_books(out: &mut impl Write, reader: &Reader<'_, ReadWord>) -> Result<(), Failure> {
    let side_of = |side: Option<Side>| side.map_or(2, |side| side as u8);
    let mut book = BookCopy::default();
    for (slot, identity) in reader.books() {
        reader.read_book(slot, &mut book)?;
        let (b, a) = (&book, &book.auction);
        write!(
            out,
            "book {slot} {} {} {} ",
            identity.symbol, b.source, b.instrument.0
        )?;
        write!(
            out,
            "{} {} {} {} ",
            b.state as u8, b.status as u8, b.writes, b.seq.0
        )?;
        write!(out, "{} {} {} ", b.venue_ts.0, b.recv_ts.0, b.publish_ts.0)?;
        write!(
            out,
            "{} {} {} {} {} ",
            b.last.price.raw(),
            b.last.qty.0,
            b.last.venue_ts.0,
            b.volume.0,
            b.trades
        )?;
        write!(
            out,
            "{} {} {} {} ",
            a.kind,
            a.reference.raw(),
            a.near.raw(),
            a.far.raw()
        )?;
        writeln!(out, "{} {} {}", a.paired.0, a.imbalance.0, side_of(a.side))?;
        for side in Side::BOTH {
            let s = side as usize;
            writeln!(out, "side {s} {} {} {}", b.levels[s], b.qty[s].0, b.orders[s])?;
            for level in b.side(side) {
                writeln!(
                    out,
                    "level {} {} {}",
                    level.price.raw(),
                    level.qty.0,
                    level.orders
                )?;
            }
        }
    }
    let mut super_book = SuperCopy::default();
    for (slot, symbol) in reader.supers() {
        reader.read_super(slot, &mut super_book)?;
        let b = &super_book;
        write!(
            out,
            "super {slot} {symbol} {} {} {} {} ",
            b.writes, b.feeds, b.stale, b.touch as u64
        )?;
        write!(out, "{} {} ", b.publish_ts.0, b.recv_ts.0)?;
        write!(out, "{} {} ", b.national_venue_ts.0, b.national_recv_ts.0)?;
        writeln!(
            out,
            "{} {} {} {} {}",
            b.last.price.raw(),
            b.last.qty.0,
            b.last.venue_ts.0,
            b.volume.0,
            b.trades
        )?;
        for side in Side::BOTH {
            let (l, n, d) = (
                b.ladders[side as usize],
                b.national[side as usize],
                b.difference[side as usize],
            );
            write!(
                out,
                "side {} {} {} {} ",
                side as u8,
                l.price.raw(),
                l.qty.0,
                l.feeds
            )?;
            write!(out, "{} {} {} ", l.shares, l.levels, l.total_qty.0)?;
            writeln!(
                out,
                "{} {} {} {} {}",
                n.price.raw(),
                n.qty.0,
                n.participant,
                d.price,
                d.since.0
            )?;
            for share in b.side(side) {
                writeln!(
                    out,
                    "share {} {} {} {}",
                    share.price.raw(),
                    share.qty.0,
                    share.feed,
                    share.orders
                )?;
            }
        }
    }
    Ok(())
}
