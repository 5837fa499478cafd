//! The very code of the region, over the words of a model checker: loom tries the orders in which threads can
//! take their steps and the older values that a processor may still show. The same models without fences must
//! fail: a checker that finds nothing there has proved nothing here.

use loom::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::atomic::{AtomicU64 as Native, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tickwire_market::{
    BookState, InstrumentId, Level, MarketEvent, Nanos, Price, SeqNo, Side, Symbol, Venue, Volume,
};
use tickwire_shm::layout::{SectionPlace, book, header, record, ring, source};
use tickwire_shm::*;

/// A word that the checker follows, or one that nobody writes while threads run: every step followed
/// multiplies the work.
struct Checked<const FENCED: bool> {
    fixed: Native,
    followed: Mutex<Option<Arc<AtomicU64>>>,
}

impl<const FENCED: bool> Checked<FENCED> {
    fn new() -> Checked<FENCED> {
        Checked {
            fixed: Native::new(0),
            followed: Mutex::new(None),
        }
    }

    fn follow(&self, yes: bool) {
        *self.followed.lock().expect("one at a time") = yes.then(|| Arc::new(AtomicU64::new(0)));
    }

    /// The checker's word. The lock is given back before a step is taken: another thread may come in between.
    fn followed(&self) -> Option<Arc<AtomicU64>> {
        self.followed.lock().expect("one at a time").clone()
    }
}

impl<const FENCED: bool> Word for Checked<FENCED> {
    fn load(&self) -> u64 {
        match self.followed() {
            Some(word) => word.load(Ordering::Relaxed),
            None => self.fixed.load(Relaxed),
        }
    }

    fn acquire() {
        if FENCED {
            fence(Ordering::Acquire);
        }
    }

    fn pause() {
        loom::thread::yield_now();
    }
}

impl<const FENCED: bool> WriteWord for Checked<FENCED> {
    fn store(&self, value: u64) {
        match self.followed() {
            Some(word) => word.store(value, Ordering::Relaxed),
            None => self.fixed.store(value, Relaxed),
        }
    }

    fn fetch_add(&self, n: u64) -> u64 {
        match self.followed() {
            Some(word) => word.fetch_add(n, Ordering::Relaxed),
            None => self.fixed.fetch_add(n, Relaxed),
        }
    }

    fn release() {
        if FENCED {
            fence(Ordering::Release);
        }
    }
}

const CONFIG: RegionConfig = RegionConfig {
    feeds: 1,
    sources: 1,
    histograms: 0,
    books: 2,
    book_levels: 1,
    supers: 0,
    super_shares: 1,
    rings: 1,
    ring_records: 2,
};

/// Runs a model on a region in which the checker follows these words. `preemptions`: how often a thread may
/// be stopped although it could go on; every known bug of such code shows with two.
fn check<const FENCED: bool>(
    preemptions: usize,
    followed: &[usize],
    model: impl Fn(Region<'static, Checked<FENCED>>) + Sync + Send + 'static,
) {
    let layout = CONFIG.layout().expect("a good configuration");
    // Leaked, once a test: threads of the checker want words that live for ever.
    let words: &'static [Checked<FENCED>] = (0..layout.words)
        .map(|_| Checked::new())
        .collect::<Vec<_>>()
        .leak();
    let followed = followed.to_vec();
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = Some(preemptions);
    checker.check(move || {
        followed.iter().for_each(|&word| words[word].follow(true));
        let identity = Identity {
            generation: Nanos(1),
            pid: 1,
        };
        let region = Region::format(words, &CONFIG, identity).expect("a good configuration");
        region.set_state(RegionState::Ready);
        model(region);
        followed.iter().for_each(|&word| words[word].follow(false));
    });
}

/// The word of a field of the first slot of a section.
fn word(section: impl Fn(&Layout) -> SectionPlace, field: usize) -> usize {
    section(&CONFIG.layout().expect("a good configuration")).offset + field
}

const IDENTITY: BookIdentity = BookIdentity {
    source: 0,
    instrument: InstrumentId(7),
    symbol: Symbol::EMPTY,
};

fn level(n: u64) -> Level {
    Level {
        price: Price::from_raw(n as i64),
        qty: Volume(n),
        orders: 1,
    }
}

/// A book whose price and quantity are the same number, changed twice; a reader sees both of one time, or
/// that it is being written.
fn seqlock<const FENCED: bool>() {
    let book_word = |field| word(|layout| layout.books, field);
    let followed = [
        book_word(book::SEQUENCE),
        book_word(book::WORDS),
        book_word(book::WORDS + 1),
    ];
    check::<FENCED>(3, &followed, |region| {
        let mut books = region.books();
        let mut slot = books.claim(&IDENTITY).expect("two slots");
        let mut edit = books.edit(&mut slot);
        edit.totals(Side::Bid, 1, Volume(0), 0);
        edit.publish(Nanos(0));
        let writing = loom::thread::spawn(move || {
            for n in 1..3 {
                let mut edit = books.edit(&mut slot);
                edit.level(Side::Bid, 0, &level(n));
                edit.publish(Nanos(0));
            }
        });
        let mut copy = BookCopy::default();
        if region.reader().read_book_within(0, &mut copy, 2).is_ok() {
            let best = copy.best(Side::Bid).expect("a level");
            assert_eq!(best.price.raw() as u64, best.qty.0, "torn");
            assert_eq!(copy.writes, 2 + best.qty.0, "not the book of this write");
        }
        writing.join().expect("written");
        region
            .reader()
            .read_book_within(0, &mut copy, 1)
            .expect("nobody writes");
        assert_eq!(copy.best(Side::Bid).expect("a level").qty, Volume(2));
    });
}

#[test]
fn a_book_is_never_torn() {
    seqlock::<true>();
}

#[test]
#[should_panic(expected = "not the book of this write")]
fn without_fences_the_checker_finds_another_book() {
    seqlock::<false>();
}

fn source_identity() -> SourceIdentity {
    SourceIdentity {
        name: String::new(),
        feed_name: String::new(),
        protocol: String::new(),
        feed: 0,
        venue: Some(Venue::Nasdaq),
        ring: None,
    }
}

/// What is written behind a gap is never seen as live.
fn trust<const FENCED: bool>() {
    let followed = [
        word(|layout| layout.sources, source::CHANGES),
        word(|layout| layout.sources, source::STATE),
        word(|layout| layout.books, book::SEQUENCE),
        word(|layout| layout.books, book::SEQ),
    ];
    check::<FENCED>(3, &followed, |region| {
        let mut source = region.source(0, &source_identity());
        source.set_state(SourceState::Live);
        let mut books = region.books();
        let mut slot = books.claim(&IDENTITY).expect("two slots");
        let mut edit = books.edit(&mut slot);
        edit.state(BookState::Live);
        edit.publish(Nanos(0));
        let writing = loom::thread::spawn(move || {
            source.set_state(SourceState::Stale);
            let mut edit = books.edit(&mut slot);
            edit.cause(SeqNo(1), Nanos(0), Nanos(0));
            edit.publish(Nanos(0));
        });
        let mut copy = BookCopy::default();
        if region.reader().read_book_within(0, &mut copy, 1).is_ok() {
            assert!(
                copy.seq == SeqNo(0) || copy.state == BookState::Stale,
                "trusted behind a gap"
            );
        }
        writing.join().expect("written");
    });
}

#[test]
fn a_book_written_behind_a_gap_is_never_trusted() {
    trust::<true>();
}

#[test]
#[should_panic(expected = "trusted behind a gap")]
fn without_fences_the_checker_finds_trust_behind_a_gap() {
    trust::<false>();
}

/// A gap comes and goes while a reader reads: what was written in between is never seen as live.
fn recovery<const FENCED: bool>() {
    let followed = [
        word(|layout| layout.sources, source::CHANGES),
        word(|layout| layout.sources, source::STATE),
        word(|layout| layout.books, book::SEQUENCE),
        word(|layout| layout.books, book::SEQ),
    ];
    check::<FENCED>(3, &followed, |region| {
        let mut source = region.source(0, &source_identity());
        source.set_state(SourceState::Live);
        let mut books = region.books();
        let mut slot = books.claim(&IDENTITY).expect("two slots");
        let mut edit = books.edit(&mut slot);
        edit.state(BookState::Live);
        edit.publish(Nanos(0));
        let writing = loom::thread::spawn(move || {
            source.set_state(SourceState::Stale);
            for seq in 1..3 {
                let mut edit = books.edit(&mut slot);
                edit.cause(SeqNo(seq), Nanos(0), Nanos(0));
                edit.publish(Nanos(0));
            }
            source.set_state(SourceState::Live);
        });
        let mut copy = BookCopy::default();
        if region.reader().read_book_within(0, &mut copy, 1).is_ok() {
            assert!(
                copy.seq != SeqNo(1) || copy.state == BookState::Stale,
                "live before it was right"
            );
        }
        writing.join().expect("written");
        region
            .reader()
            .read_book_within(0, &mut copy, 1)
            .expect("nobody writes");
        assert_eq!((copy.seq, copy.state), (SeqNo(2), BookState::Live));
    });
}

#[test]
fn a_gap_that_comes_and_goes_is_never_trusted() {
    recovery::<true>();
}

#[test]
#[should_panic(expected = "live before it was right")]
fn without_fences_the_checker_finds_an_old_book_live() {
    recovery::<false>();
}

fn event(n: u64) -> MarketEvent {
    MarketEvent {
        seq: SeqNo(n),
        qty: Volume(n),
        ..MarketEvent::default()
    }
}

/// Three records in a ring of two: what is read is whole and in its place, and what is not read is missed, to
/// the number.
fn broadcast<const FENCED: bool>() {
    let slot = |index: usize, field: usize| {
        let first = ring::WORDS + record::WORDS * index;
        word(|layout| layout.rings, first + field)
    };
    let mut followed = vec![word(|layout| layout.rings, ring::HEAD)];
    for index in 0..2 {
        // Sequence number, quantity, stamp.
        followed.extend([slot(index, 0), slot(index, 6), slot(index, record::STAMP)]);
    }
    check::<FENCED>(3, &followed, |region| {
        let mut writer = region.ring(0);
        let mut place = region.reader().ring(0).expect("one ring");
        let writing = loom::thread::spawn(move || {
            for n in 0..3 {
                writer.event(0, &event(n));
            }
        });
        let mut accounted = 0;
        let mut read = |region: &Region<'static, Checked<FENCED>>| match place.next(&region.reader()) {
            Next::Record(Record::Event(_, got)) => {
                assert_eq!((got.seq.0, got.qty.0), (accounted, accounted), "a torn record");
                accounted += 1;
                true
            }
            Next::Missed(n) => {
                accounted += n;
                true
            }
            Next::Empty => false,
            Next::Record(other) => panic!("{other:?}"),
        };
        read(&region);
        read(&region);
        writing.join().expect("written");
        while read(&region) {}
        assert_eq!(accounted, 3, "read and missed are what was written");
    });
}

#[test]
fn a_record_is_never_torn_and_what_is_missed_is_counted() {
    broadcast::<true>();
}

#[test]
#[should_panic(expected = "a torn record")]
fn without_fences_the_checker_finds_a_torn_record() {
    broadcast::<false>();
}

#[test]
fn two_threads_never_claim_one_slot_and_a_named_slot_has_its_name() {
    let book_word = |slot: usize, field| {
        let layout = CONFIG.layout().expect("a good configuration");
        layout.books.offset + slot * layout.books.stride + field
    };
    let mut followed = vec![header::BOOKS_CLAIMED];
    for slot in 0..2 {
        followed.extend([book_word(slot, book::SEQUENCE), book_word(slot, book::INSTRUMENT)]);
    }
    check::<true>(2, &followed, |region| {
        let claim = move |times: u64, instrument: u32| {
            let mut books = region.books();
            let identity = BookIdentity {
                instrument: InstrumentId(instrument),
                ..IDENTITY
            };
            (0..times)
                .filter_map(|_| books.claim(&identity).ok().map(|slot| slot.number()))
                .collect::<Vec<u32>>()
        };
        let other = loom::thread::spawn(move || claim(1, 5));
        let mut slots = claim(2, 6);
        for (slot, book) in region.reader().books() {
            let known = if slots.contains(&slot) { 6 } else { 5 };
            assert_eq!(book.instrument.0, known, "a slot without its name");
        }
        slots.extend(other.join().expect("claimed"));
        slots.sort_unstable();
        assert_eq!(slots, [0, 1], "two slots for three that ask");
        assert_eq!(region.reader().refused()[1], 1);
    });
}
