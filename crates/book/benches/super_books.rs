//! Level changes of several venues → merged ladders with the consolidated best, on one core. A regression
//! here means that a super book is behind its venues' books: a change costs a feed's thread this much more
//! where consolidated books are kept inline.
//!
//! `cargo bench -p tickwire-book --bench super_books` applies 4 million changes for each number of venues and
//! sweeps 8,500 symbols; under `cargo test` it does little of it. Every run checks that the final
//! consolidated books hold what the generator holds, share by share. Options after `--`: `--changes N`,
//! `--rounds N`.

use std::hint::black_box;
use std::time::Instant;
use tickwire_book::super_books::{Share, Source};
use tickwire_book::{SourceId, SuperBooks, SuperConfig, SuperId, SuperRef, SuperUpdate};
use tickwire_market::{EventKind, InstrumentId, MarketEvent, Nanos, Price, Side, Symbol, Volume};
use tickwire_testdata::Rng;

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

/// Price levels of a venue's side.
const LEVELS: usize = 20;

/// What every venue has, by venue, symbol, side and level: quantities, 0 for no level.
struct World {
    venues: usize,
    symbols: usize,
    qty: Vec<u64>,
}

/// A change: venue, symbol, side, level, quantity.
#[derive(Clone, Copy)]
struct Change {
    venue: u16,
    symbol: u32,
    side: Side,
    level: u16,
    qty: u64,
}

impl World {
    fn new(venues: usize, symbols: usize) -> World {
        World {
            venues,
            symbols,
            qty: vec![0; venues * symbols * 2 * LEVELS],
        }
    }

    fn at(&mut self, change: &Change) -> &mut u64 {
        let symbol = change.venue as usize * self.symbols + change.symbol as usize;
        &mut self.qty[(symbol * 2 + change.side as usize) * LEVELS + change.level as usize]
    }

    /// Every level of every venue, then changes that come mostly near the best: half of them new quantities,
    /// the rest levels that go and come back. Symbols are as unequal as on a real day.
    fn changes(&mut self, rng: &mut Rng, count: usize) -> Vec<Change> {
        let mut changes = Vec::with_capacity(count);
        for _ in 0..count {
            let skew = rng.below(self.symbols as u64) * rng.below(1024) / 1024;
            let (a, b) = (rng.below(LEVELS as u64), rng.below(LEVELS as u64));
            let mut change = Change {
                venue: rng.below(self.venues as u64) as u16,
                symbol: skew as u32,
                side: if rng.chance(1, 2) { Side::Bid } else { Side::Ask },
                level: (a * b / LEVELS as u64) as u16,
                qty: 1 + rng.below(900),
            };
            let held = self.at(&change);
            if *held != 0 && rng.chance(1, 4) {
                change.qty = 0;
            }
            *held = change.qty;
            changes.push(change);
        }
        changes
    }

    fn all(&mut self, rng: &mut Rng) -> Vec<Change> {
        let mut changes = Vec::with_capacity(self.qty.len());
        for symbol in 0..self.symbols as u32 {
            for venue in 0..self.venues as u16 {
                for (side, level) in Side::BOTH
                    .into_iter()
                    .flat_map(|s| (0..LEVELS as u16).map(move |l| (s, l)))
                {
                    let qty = 1 + rng.below(900);
                    let change = Change {
                        venue,
                        symbol,
                        side,
                        level,
                        qty,
                    };
                    *self.at(&change) = qty;
                    changes.push(change);
                }
            }
        }
        changes
    }

    /// The consolidated books must hold this and no more.
    fn check(&mut self, books: &SuperBooks) {
        for symbol in 0..self.symbols as u32 {
            let book = books.book(SuperId(symbol)).expect("every symbol is defined");
            for side in Side::BOTH {
                let mut expected = Vec::new();
                for level in 0..LEVELS as u16 {
                    for venue in 0..self.venues as u16 {
                        let qty = *self.at(&Change {
                            venue,
                            symbol,
                            side,
                            level,
                            qty: 0,
                        });
                        let share = Share {
                            price: price(symbol, side, level),
                            qty: Volume(qty),
                            orders: 1,
                            feed: venue as u8,
                        };
                        expected.extend((qty > 0).then_some(share));
                    }
                }
                assert!(book.shares(side).eq(expected), "{symbol} {side:?}");
            }
        }
    }
}

fn price(symbol: u32, side: Side, level: u16) -> Price {
    let middle = 100_000 + 10 * i64::from(symbol);
    let away = 1 + i64::from(level);
    Price::from_raw(
        (if side == Side::Bid {
            middle - away
        } else {
            middle + away
        }) * 10_000_000,
    )
}

fn fill(event: &mut MarketEvent, change: &Change, n: usize) {
    event.instrument = InstrumentId(change.symbol + 1);
    event.side = change.side;
    event.price = price(change.symbol, change.side, change.level);
    event.qty = Volume(change.qty);
    event.recv_ts = Nanos(n as u64);
}

fn super_books(venues: usize, symbols: usize) -> SuperBooks {
    let source = |feed| Source {
        feed,
        is_national: false,
    };
    let mut books = SuperBooks::new(SuperConfig {
        sources: (0..venues as u8).map(source).collect(),
        symbols: symbols as u32,
        members: (symbols * venues) as u32,
        shares: (symbols * venues * LEVELS * 2 * 4) as u32,
    });
    let mut ignored = |_: &SuperRef<'_>, _: &SuperUpdate| {};
    for venue in 0..venues as u16 {
        let live = MarketEvent {
            kind: EventKind::Recovered,
            ..MarketEvent::default()
        };
        books
            .apply(SourceId(venue), &live, &mut ignored)
            .expect("a source");
    }
    for symbol in 0..symbols as u32 {
        for venue in 0..venues as u16 {
            let name = Symbol::new(format!("S{symbol}").as_bytes()).expect("a short symbol");
            books
                .define(SourceId(venue), InstrumentId(symbol + 1), &name, &mut ignored)
                .expect("room for every symbol");
        }
    }
    books
}

#[inline(never)]
fn apply(books: &mut SuperBooks, changes: &[Change]) -> u64 {
    let mut event = MarketEvent {
        kind: EventKind::Level,
        order_count: 1,
        ..MarketEvent::default()
    };
    let mut told = 0;
    let mut sink = |book: &SuperRef<'_>, update: &SuperUpdate| {
        // Uses the answer, as a publisher would.
        black_box((book.best(Side::Bid), book.best(Side::Ask), update.changed));
        told += 1;
    };
    for (n, change) in changes.iter().enumerate() {
        fill(&mut event, change, n);
        let _ = books.apply(SourceId(change.venue), &event, &mut sink);
    }
    told
}

/// Time of every single change, timer included.
fn latency(books: &mut SuperBooks, changes: &[Change]) -> Vec<u32> {
    let mut event = MarketEvent {
        kind: EventKind::Level,
        order_count: 1,
        ..MarketEvent::default()
    };
    let mut sink = |book: &SuperRef<'_>, update: &SuperUpdate| {
        black_box((book.best(Side::Bid), book.best(Side::Ask), update.changed));
    };
    let mut took = Vec::with_capacity(changes.len());
    for (n, change) in changes.iter().enumerate() {
        fill(&mut event, change, n);
        let start = Instant::now();
        let _ = books.apply(SourceId(change.venue), &event, &mut sink);
        took.push(start.elapsed().as_nanos() as u32);
    }
    took.sort_unstable();
    took
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |name: &str, default: usize| {
        let at = args.iter().position(|a| a == name);
        at.and_then(|at| args.get(at + 1))
            .map_or(default, |v| v.parse().expect("a number"))
    };
    let bench = args.iter().any(|a| a == "--bench");
    let count = number("--changes", if bench { 4_000_000 } else { 20_000 });
    let rounds = number("--rounds", if bench { 3 } else { 1 });
    let symbols = if bench { 2_000 } else { 50 };
    println!("{symbols} symbols, {LEVELS} levels a side of a venue, {count} changes");
    println!(
        "venues   ns a change (min, median)   M/s    p50   p99  p99.9   (two clock reads: see the last line)"
    );
    for venues in [1, 4, 8] {
        let mut rng = Rng::new(7);
        let mut world = World::new(venues, symbols);
        let mut books = super_books(venues, symbols);
        apply(&mut books, &world.all(&mut rng));
        let mut times = Vec::new();
        for _ in 0..rounds {
            let changes = world.changes(&mut rng, count);
            let start = cpu_ns();
            let told = apply(&mut books, &changes);
            times.push((cpu_ns() - start) as f64 / count as f64);
            assert!(told > 0 && told <= count as u64);
        }
        let took = latency(&mut books, &world.changes(&mut rng, count / 4));
        world.check(&books);
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let at = |p: f64| took[((took.len() - 1) as f64 * p) as usize];
        println!(
            "{venues:>6}   {:>10.1} {median:>10.1} {:>13.1} {:>6} {:>5} {:>6}",
            times[0],
            1e3 / median,
            at(0.5),
            at(0.99),
            at(0.999)
        );
    }
    sweep(if bench { 8_500 } else { 100 });
    let mut floor: Vec<u32> = (0..100_000)
        .map(|_| Instant::now().elapsed().as_nanos() as u32)
        .collect();
    floor.sort_unstable();
    println!(
        "two clock reads with nothing between: {} ns",
        floor[floor.len() / 2]
    );
}

/// One of eight venues leaves all its consolidated books and comes back to them.
fn sweep(symbols: usize) {
    let (venues, mut rng) = (8, Rng::new(9));
    let mut world = World::new(venues, symbols);
    let mut books = super_books(venues, symbols);
    apply(&mut books, &world.all(&mut rng));
    for (kind, word) in [(EventKind::Gap, "leaves"), (EventKind::Recovered, "comes back")] {
        let event = MarketEvent {
            kind,
            ..MarketEvent::default()
        };
        let mut told = 0;
        let start = cpu_ns();
        let mut sink = |book: &SuperRef<'_>, update: &SuperUpdate| {
            black_box((book.best(Side::Bid), book.best(Side::Ask), update.changed));
            told += 1;
        };
        books.apply(SourceId(3), &event, &mut sink).expect("a source");
        let took = cpu_ns() - start;
        assert_eq!(told, symbols);
        println!(
            "a venue {word}: {symbols} consolidated books in {:.2} ms, {} ns each",
            took as f64 / 1e6,
            took / symbols as u64
        );
    }
    world.check(&books);
}

/// Time this thread has run, so that what else the machine does counts less.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live, writable timespec for the whole call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
