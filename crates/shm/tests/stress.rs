//! One writer at full speed, several readers that check every word of all they read.

#[path = "common/pattern.rs"]
mod pattern;

use pattern::{LEVELS, Patterned, check, mixed};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tickwire_market::{BookUpdate, MarketEvent, Nanos, SeqNo, Volume};
use tickwire_shm::*;

const SLOTS: u32 = 8;
const READERS: usize = 3;
/// Under Miri a step takes microseconds, not nanoseconds.
const UPDATES: u64 = if cfg!(miri) { 60 } else { 1_000_000 };
const READS: u64 = if cfg!(miri) { 10 } else { 20_000 };
const PATIENCE: Duration = Duration::from_secs(60);

fn memory(config: &RegionConfig) -> Vec<AtomicU64> {
    let layout = config.layout().expect("a good configuration");
    (0..layout.words).map(|_| AtomicU64::new(0)).collect()
}

fn region<'a>(words: &'a [AtomicU64], config: &RegionConfig) -> Region<'a, AtomicU64> {
    let identity = Identity {
        generation: Nanos(1),
        pid: 1,
    };
    let region = Region::format(words, config, identity).expect("a good configuration");
    region.set_state(RegionState::Ready);
    region
}

#[test]
fn no_reader_ever_sees_a_torn_book() {
    let config = RegionConfig {
        books: SLOTS,
        book_levels: LEVELS as u32,
        supers: 0,
        ring_records: 2,
        histograms: 2,
        ..RegionConfig::default()
    };
    let words = memory(&config);
    let mut writer = Patterned::new(&region(&words, &config), SLOTS);
    let done = AtomicBool::new(false);
    let start = Barrier::new(READERS + 1);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                scope.spawn(|| {
                    let reader = Reader::attach(&words).expect("attaches");
                    let (mut copy, mut newest) = (BookCopy::default(), [0; SLOTS as usize]);
                    let (mut good, mut busy) = (0_u64, 0_u64);
                    start.wait();
                    while !done.load(Ordering::Relaxed) || good < READS {
                        for slot in 0..SLOTS {
                            match reader.read_book(slot, &mut copy) {
                                Ok(()) => {
                                    let n = check(slot, &copy);
                                    assert!(n >= newest[slot as usize], "time runs backwards");
                                    newest[slot as usize] = n;
                                    good += 1;
                                }
                                Err(Busy) => busy += 1,
                            }
                        }
                    }
                    (good, busy)
                })
            })
            .collect();
        start.wait();
        for n in 0..UPDATES {
            writer.update(mixed(n) as usize % SLOTS as usize);
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            let (good, busy) = reader.join().expect("no torn book");
            assert!(good >= READS, "{good} good, {busy} busy");
        }
    });
}

fn event(n: u64) -> MarketEvent {
    MarketEvent {
        seq: SeqNo(n),
        venue_ts: Nanos(!n),
        ref_id: mixed(n),
        imbalance_qty: Volume(mixed(!n)),
        code: n.to_le_bytes(),
        ..MarketEvent::default()
    }
}

fn update(n: u64) -> BookUpdate {
    BookUpdate {
        seq: SeqNo(n),
        qty: [Volume(mixed(n)), Volume(!n)],
        ..BookUpdate::default()
    }
}

/// A ring much too small for readers that dawdle: what is read is right and in order, and read plus missed is
/// written.
#[test]
fn readers_that_are_overrun_know_to_the_record_what_they_missed() {
    let config = RegionConfig {
        books: 0,
        supers: 0,
        histograms: 0,
        ring_records: 64,
        ..RegionConfig::default()
    };
    let words = memory(&config);
    let mut ring = region(&words, &config).ring(0);
    let done = AtomicBool::new(false);
    let start = Barrier::new(READERS + 1);
    std::thread::scope(|scope| {
        let (words, done, start) = (&words, &done, &start);
        let readers: Vec<_> = (0..READERS)
            .map(|dawdling| {
                scope.spawn(move || {
                    let reader = Reader::attach(words).expect("attaches");
                    let mut place = reader.ring(0).expect("one ring");
                    let (mut read, mut missed) = (0, 0);
                    start.wait();
                    loop {
                        let ended = done.load(Ordering::Acquire);
                        match place.next(&reader) {
                            Next::Record(record) => {
                                let n = read + missed;
                                match record {
                                    Record::Event(source, got) => {
                                        assert_eq!((source, got), (n as u16, event(n)));
                                    }
                                    Record::Update(source, got) => {
                                        assert_eq!((source, got), (n as u16, update(n)));
                                    }
                                }
                                read += 1;
                                (0..dawdling * 20).for_each(|_| std::hint::spin_loop());
                            }
                            Next::Missed(n) => missed += n,
                            Next::Empty if ended => break,
                            Next::Empty => std::thread::yield_now(),
                        }
                    }
                    (read, missed)
                })
            })
            .collect();
        start.wait();
        let started = Instant::now();
        for n in 0..UPDATES {
            match n % 3 {
                0 => ring.update(n as u16, &update(n)),
                _ => ring.event(n as u16, &event(n)),
            }
            assert!(n % 4096 != 0 || started.elapsed() < PATIENCE, "too slow at {n}");
        }
        done.store(true, Ordering::Release);
        for reader in readers {
            let (read, missed) = reader.join().expect("no torn record");
            assert_eq!(read + missed, UPDATES, "{read} read, {missed} missed");
        }
    });
}

/// Feed threads claim slots at once: each slot has one owner, and whoever sees it sees whose it is.
#[test]
fn threads_that_claim_at_once_share_nothing() {
    let config = RegionConfig {
        books: 100,
        supers: 0,
        sources: 4,
        histograms: 8,
        ..RegionConfig::default()
    };
    let words = memory(&config);
    let region = region(&words, &config);
    let start = Barrier::new(5);
    let (mut claimed, refused) = std::thread::scope(|scope| {
        let start = &start;
        let threads: Vec<_> = (0..4)
            .map(|source| {
                scope.spawn(move || {
                    let mut books = region.books();
                    start.wait();
                    let claim = |instrument| {
                        let identity = BookIdentity {
                            source,
                            instrument: tickwire_market::InstrumentId(instrument),
                            symbol: Default::default(),
                        };
                        books
                            .claim(&identity)
                            .map(|slot| (slot.number(), source, instrument))
                            .ok()
                    };
                    (0..40).map(claim).collect::<Vec<_>>()
                })
            })
            .collect();
        start.wait();
        for (_, book) in region.reader().books() {
            assert!(book.instrument.0 < 40 && book.source < 4);
        }
        let all = threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("claimed"));
        let all: Vec<_> = all.collect();
        let refused = all.iter().filter(|claim| claim.is_none()).count();
        (all.into_iter().flatten().collect::<Vec<_>>(), refused)
    });
    claimed.sort_unstable();
    let seen: Vec<_> = region
        .reader()
        .books()
        .map(|(slot, book)| (slot, book.source, book.instrument.0))
        .collect();
    assert_eq!(claimed, seen);
    assert_eq!((seen.len(), refused, region.reader().refused()[1]), (100, 60, 60));
}
