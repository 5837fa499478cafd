//! What shared memory costs: the feed thread that writes books and events, and the programs that read them. A
//! regression in writing delays every message of every feed; one in reading, every decision.
//!
//! `cargo bench -p tickwire-shm` runs 1,000 rounds of 2,000 steps, each shorter than a time slice, so that
//! other programs on the machine disturb some rounds and not all; under `cargo test` one. Every round checks
//! what it read against what was written. Options after `--`: `--steps N`, `--rounds N`, `--only TEXT`.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tickwire_market::{
    BookState, InstrumentId, Level, MarketEvent, Nanos, Price, SeqNo, Side, Symbol, TradingStatus, Venue,
    Volume,
};
use tickwire_shm::*;

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const LEVELS: usize = 10;
const BOOKS: u32 = 64;
const RING: u32 = 1 << 12;
/// Reads that are timed together while the book is written.
const SLICE: u64 = 200;

/// What is measured: takes so many steps in fresh memory and returns how long they took, without preparations
/// and checks; `None` when the machine had no second core for it.
type Measure = fn(&[AtomicU64], u64) -> Option<Duration>;

const MEASURES: &[(&str, Measure)] = &[
    ("publish book: a level behind the best changed", |words, steps| {
        publish(words, steps, level_changed)
    }),
    ("publish book: best price of a side changed", |words, steps| {
        publish(words, steps, best_changed)
    }),
    ("publish book: rebuilt, every field", |words, steps| {
        publish(words, steps, rebuilt)
    }),
    ("publish event to ring", publish_event),
    ("read book of 10 levels, the same", |words, steps| {
        read_book(words, steps, 1)
    }),
    ("read book of 10 levels, 64 in turn", |words, steps| {
        read_book(words, steps, u64::from(BOOKS))
    }),
    ("read book of 10 levels, 64 written all the time", read_contended),
    ("read event from ring", read_ring),
    ("count a latency", count_latency),
];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        args.iter()
            .position(|arg| arg == name)
            .and_then(|at| args.get(at + 1))
    };
    let number = |name: &str, default| value(name).map_or(default, |text| text.parse().expect("a number"));
    // `cargo bench` passes --bench, `cargo test` does not.
    let bench = args.iter().any(|arg| arg == "--bench");
    let steps = number("--steps", 2_000);
    let rounds = number("--rounds", if bench { 1_000 } else { 1 });
    let only = value("--only").cloned().unwrap_or_default();

    // A mapping begins at a page, and every slot at a cache line: so it is here.
    let memory: Vec<AtomicU64> = (0..layout().words + 8).map(|_| AtomicU64::new(0)).collect();
    let words = &memory[memory.as_ptr().align_offset(64)..];
    println!(
        "{:<48} {:>8} {:>8} {:>8}",
        "ns a step, over rounds", "min", "p50", "p90"
    );
    for (name, measure) in MEASURES.iter().filter(|(name, _)| name.contains(&only)) {
        let once = |_| Some(measure(words, steps)?.as_nanos() as f64 / steps as f64);
        let mut times: Vec<f64> = (0..rounds).filter_map(once).collect();
        times.sort_by(f64::total_cmp);
        if times.is_empty() {
            println!("{name:<48} {:>8} {:>8} {:>8}", "-", "-", "-");
            continue;
        }
        let at = |per_cent: usize| times[(times.len() - 1) * per_cent / 100];
        println!("{name:<48} {:>8.1} {:>8.1} {:>8.1}", at(0), at(50), at(90));
    }
}

fn config() -> RegionConfig {
    RegionConfig {
        books: BOOKS,
        book_levels: LEVELS as u32,
        supers: 0,
        histograms: 3,
        ring_records: RING,
        ..RegionConfig::default()
    }
}

fn layout() -> Layout {
    config().layout().expect("a good configuration")
}

fn region(words: &[AtomicU64]) -> Region<'_, AtomicU64> {
    let identity = Identity {
        generation: Nanos(1),
        pid: 1,
    };
    let region = Region::format(words, &config(), identity).expect("a good configuration");
    region.set_state(RegionState::Ready);
    region
}

fn source<'a>(region: &Region<'a, AtomicU64>) -> SourceWriter<'a, AtomicU64> {
    let identity = SourceIdentity {
        name: "bzx 1".into(),
        feed_name: "bzx".into(),
        protocol: "pitch".into(),
        feed: 0,
        venue: Some(Venue::Bzx),
        ring: Some(0),
    };
    let mut source = region.source(0, &identity);
    source.set_state(SourceState::Live);
    source
}

/// Every book, with all levels of write 0.
fn books<'a>(region: &Region<'a, AtomicU64>) -> (BookWriter<'a, AtomicU64>, Vec<BookSlot>) {
    source(region);
    let mut books = region.books();
    let claim = |instrument| {
        let identity = BookIdentity {
            source: 0,
            instrument: InstrumentId(instrument),
            symbol: Symbol::new(b"ZVZZT").expect("a symbol"),
        };
        books.claim(&identity).expect("room")
    };
    let mut slots: Vec<BookSlot> = (0..BOOKS).map(claim).collect();
    for slot in &mut slots {
        let mut edit = books.edit(slot);
        rebuilt(&mut edit, 0);
        edit.publish(Nanos(0));
    }
    (books, slots)
}

fn level(n: u64, rank: usize) -> Level {
    Level {
        price: Price::from_raw(n as i64 - rank as i64),
        qty: Volume(n),
        orders: rank as u32,
    }
}

type Edit<'a> = BookEdit<'a, AtomicU64>;

fn level_changed(edit: &mut Edit<'_>, n: u64) {
    edit.cause(SeqNo(n), Nanos(n), Nanos(n));
    edit.totals(Side::Ask, LEVELS as u32, Volume(n), 30);
    edit.level(Side::Ask, 3, &level(n, 3));
}

fn best_changed(edit: &mut Edit<'_>, n: u64) {
    edit.cause(SeqNo(n), Nanos(n), Nanos(n));
    edit.totals(Side::Ask, LEVELS as u32, Volume(n), 30);
    edit.levels_from(Side::Ask, 0, (0..LEVELS).map(|rank| level(n, rank)));
}

fn rebuilt(edit: &mut Edit<'_>, n: u64) {
    edit.cause(SeqNo(n), Nanos(n), Nanos(n));
    edit.state(BookState::Live);
    edit.status(TradingStatus::Trading);
    for side in Side::BOTH {
        edit.totals(side, LEVELS as u32, Volume(n), 30);
        edit.levels_from(side, 0, (0..LEVELS).map(|rank| level(n, rank)));
    }
    let last = LastTrade {
        price: Price::from_raw(n as i64),
        qty: Volume(n),
        venue_ts: Nanos(n),
    };
    edit.trade(&last, Volume(n), n);
    edit.auction(&Auction::default());
}

fn publish(words: &[AtomicU64], steps: u64, change: impl Fn(&mut Edit<'_>, u64)) -> Option<Duration> {
    let region = region(words);
    let (mut books, mut slots) = books(&region);
    let started = Instant::now();
    for n in 1..=steps {
        let slot = &mut slots[(n % u64::from(BOOKS)) as usize];
        let mut edit = books.edit(slot);
        change(&mut edit, black_box(n));
        edit.publish(Nanos(n));
    }
    let took = started.elapsed();
    let mut copy = BookCopy::default();
    for n in steps.saturating_sub(u64::from(BOOKS)) + 1..=steps {
        region
            .reader()
            .read_book((n % u64::from(BOOKS)) as u32, &mut copy)
            .expect("nobody writes");
        assert_eq!(
            (copy.seq, copy.qty[1], copy.side(Side::Ask)[3]),
            (SeqNo(n), Volume(n), level(n, 3))
        );
    }
    Some(took)
}

fn event(n: u64) -> MarketEvent {
    MarketEvent {
        seq: SeqNo(n),
        venue_ts: Nanos(n),
        recv_ts: Nanos(n),
        instrument: InstrumentId(7),
        price: Price::from_raw(n as i64),
        qty: Volume(n),
        ..MarketEvent::default()
    }
}

fn publish_event(words: &[AtomicU64], steps: u64) -> Option<Duration> {
    let region = region(words);
    let mut ring = region.ring(0);
    let started = Instant::now();
    for n in 0..steps {
        ring.event(0, black_box(&event(n)));
    }
    let took = started.elapsed();
    let mut place = region.reader().ring_from_oldest(0).expect("one ring");
    let mut next = place.position();
    while let Next::Record(record) = place.next(&region.reader()) {
        assert_eq!(record, Record::Event(0, event(next)));
        next += 1;
    }
    assert_eq!(next, steps);
    Some(took)
}

fn read_book(words: &[AtomicU64], steps: u64, books_in_turn: u64) -> Option<Duration> {
    let region = region(words);
    books(&region);
    let reader = region.reader();
    let mut copy = BookCopy::default();
    let mut orders = 0;
    let started = Instant::now();
    for n in 0..steps {
        reader
            .read_book((n % books_in_turn) as u32, &mut copy)
            .expect("nobody writes");
        orders += u64::from(black_box(&copy).side(Side::Bid)[LEVELS - 1].orders);
    }
    let took = started.elapsed();
    assert_eq!(orders, steps * (LEVELS as u64 - 1));
    Some(took)
}

/// A book is read while a thread writes it and 63 more as fast as it can: this one every microsecond or so. A
/// book that is written again at once, for ever, cannot be read: a read takes longer than the pause.
fn read_contended(words: &[AtomicU64], steps: u64) -> Option<Duration> {
    let region = region(words);
    let (mut books, mut slots) = books(&region);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !done.load(Ordering::Relaxed) {
                n += 1;
                let mut edit = books.edit(&mut slots[(n % u64::from(BOOKS)) as usize]);
                best_changed(&mut edit, n);
                edit.publish(Nanos(n));
            }
        });
        let reader = region.reader();
        let mut copy = BookCopy::default();
        let (mut took, mut counted) = (Duration::ZERO, 0);
        let deadline = Instant::now() + Duration::from_millis(50);
        while counted < steps && Instant::now() < deadline {
            let (mut before, mut good) = (copy.seq, 0);
            while copy.seq == before && Instant::now() < deadline {
                // Until the writer has a core, too.
                let _ = reader.read_book(0, &mut copy);
            }
            before = copy.seq;
            let started = Instant::now();
            while good < SLICE {
                if reader.read_book(0, &mut copy).is_ok() {
                    good += 1;
                    let n = copy.seq.0;
                    assert!(copy.side(Side::Ask).iter().all(|level| level.qty.0 == n), "torn");
                }
            }
            if copy.seq.distance_from(before) >= SLICE / 4 {
                took += started.elapsed();
                counted += SLICE;
            }
        }
        done.store(true, Ordering::Relaxed);
        (took * steps as u32).checked_div(counted as u32)
    })
}

fn read_ring(words: &[AtomicU64], steps: u64) -> Option<Duration> {
    let region = region(words);
    let mut ring = region.ring(0);
    let reader = region.reader();
    let mut place = reader.ring(0).expect("one ring");
    let (mut took, mut next) = (Duration::ZERO, 0);
    while next < steps {
        let end = steps.min(next + u64::from(RING) / 2);
        (next..end).for_each(|n| ring.event(0, &event(n)));
        let started = Instant::now();
        let mut sum = 0;
        while let Next::Record(Record::Event(_, event)) = place.next(&reader) {
            sum += black_box(&event).seq.0;
        }
        took += started.elapsed();
        assert_eq!(sum, (next..end).sum());
        next = end;
    }
    Some(took)
}

fn count_latency(words: &[AtomicU64], steps: u64) -> Option<Duration> {
    let region = region(words);
    let mut source = source(&region);
    let started = Instant::now();
    for n in 0..steps {
        source.update(black_box(200 + n % 1_000));
    }
    let took = started.elapsed();
    let index = region
        .reader()
        .source(0)
        .and_then(|source| source.latency)
        .expect("claimed");
    assert_eq!(region.reader().histogram(index).expect("claimed").count, steps);
    Some(took)
}
