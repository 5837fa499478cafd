//! What is written into a region is what is read out of it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tickwire_market::{
    BookState, BookUpdate, Counter, Counters, EventFlags, EventKind, InstrumentId, Level, MarketEvent, Nanos,
    OrderId, Price, SeqNo, Side, Symbol, TradingStatus, UpdateFlags, Venue, Volume,
};
use tickwire_shm::*;

const CONFIG: RegionConfig = RegionConfig {
    feeds: 2,
    sources: 3,
    histograms: 5,
    books: 2,
    book_levels: 3,
    supers: 1,
    super_shares: 2,
    rings: 2,
    ring_records: 8,
};

fn memory(config: &RegionConfig) -> Vec<AtomicU64> {
    let layout = config.layout().expect("a good configuration");
    (0..layout.words).map(|_| AtomicU64::new(u64::MAX)).collect()
}

fn region(words: &[AtomicU64]) -> Region<'_, AtomicU64> {
    let identity = Identity {
        generation: Nanos(77),
        pid: 4711,
    };
    let region = Region::format(words, &CONFIG, identity).expect("a good configuration");
    region.set_state(RegionState::Ready);
    region
}

fn identity(name: &str, feed: u8) -> SourceIdentity {
    SourceIdentity {
        name: format!("{name} 1"),
        feed_name: name.into(),
        protocol: "pitch".into(),
        feed,
        venue: Some(Venue::Bzx),
        ring: Some(0),
    }
}

fn symbol(text: &str) -> Symbol {
    Symbol::new(text.as_bytes()).expect("a symbol")
}

fn level(price: i64, qty: u64, orders: u32) -> Level {
    Level {
        price: Price::from_raw(price),
        qty: Volume(qty),
        orders,
    }
}

/// Books that wait for a time are written already, and count with their kinds once the time is known.
#[test]
fn what_was_written_without_a_time_counts_with_the_next() {
    let words = memory(&CONFIG);
    let region = region(&words);
    let reader = Reader::attach(&words).expect("attaches");
    let mut source = region.source(1, &identity("bzx", 1));
    let all = source_latency(&reader);
    source.update_untimed(Some(0x21));
    source.update_untimed(Some(0x2e));
    source.update_untimed(Some(0x21));
    source.update_untimed(None);
    assert!(source.has_untimed());
    assert_eq!(reader.sources().next().expect("one").totals.updates, 4);
    assert_eq!(reader.histogram(all).expect("there").count, 0);
    source.time_untimed(40);
    assert!(!source.has_untimed());
    source.time_untimed(1_000);
    source.update(50);
    source.kind_latency(0x2e, 50);

    let figures = |index: u32| {
        let read = reader.histogram(index).expect("there");
        (read.count, read.sum, read.min, read.max)
    };
    assert_eq!(figures(all), (5, 4 * 40 + 50, 40, 50));
    let kinds = reader
        .kinds(1)
        .map(|kind| (kind.kind, figures(kind.latency.expect("claimed"))));
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        [(0x21, (2, 80, 40, 40)), (0x2e, (2, 90, 40, 50))]
    );
}

/// The histogram of the only source.
fn source_latency(reader: &Reader<'_, AtomicU64>) -> u32 {
    let source = reader.sources().next().expect("one");
    source.latency.expect("claimed")
}

#[test]
fn a_source_shows_what_its_thread_wrote() {
    let words = memory(&CONFIG);
    let region = region(&words);
    let reader = Reader::attach(&words).expect("attaches");
    let mut source = region.source(1, &identity("bzx", 1));
    source.set_state(SourceState::Live);
    source.packet(SeqNo(12), Nanos(99));
    source.packet(SeqNo(13), Nanos(100));
    source.update(250);
    source.book_claimed();
    source.kind(0x21, 10, 4);
    source.kind(0x2e, 3, 0);
    source.kind_latency(0x21, 300);
    let mut counters = Counters::default();
    // All of them: none lies in a word of something else.
    for (n, counter) in (3..).zip(Counter::ALL) {
        counters.add(*counter, n);
    }
    source.counters(&counters);

    let sources: Vec<Source> = reader.sources().collect();
    assert_eq!(sources.len(), 1);
    let seen = &sources[0];
    assert_eq!(
        (seen.number, &*seen.name, &*seen.feed_name, &*seen.protocol),
        (1, "bzx 1", "bzx", "pitch")
    );
    assert_eq!(
        (seen.feed, seen.venue, seen.ring, seen.state),
        (1, Some(Venue::Bzx), Some(0), SourceState::Live)
    );
    assert_eq!((seen.next_seq, seen.last_packet), (SeqNo(13), Nanos(100)));
    let totals = Totals {
        packets: 2,
        updates: 1,
        books: 1,
        refused: 0,
    };
    assert_eq!(seen.totals, totals);
    assert_eq!(reader.counters(1), Ok(counters));
    assert_eq!(reader.counters(2), Ok(Counters::default()));
    let kinds: Vec<(u16, u64, u64)> = reader
        .kinds(1)
        .map(|kind| (kind.kind, kind.seen, kind.filtered))
        .collect();
    assert_eq!(kinds, [(0x21, 10, 4), (0x2e, 3, 0)]);
    let histogram = |index: Option<u32>| reader.histogram(index.expect("claimed")).expect("there");
    assert_eq!(histogram(seen.latency).max, 250);
    let of_kind = reader.kinds(1).next().expect("two").latency;
    assert_eq!((histogram(of_kind).min, histogram(of_kind).count), (300, 1));
    assert_eq!(reader.generation(), Nanos(77));
    assert_eq!(reader.pid(), 4711);
}

#[test]
fn kinds_beyond_the_histograms_are_counted_without_one() {
    let words = memory(&CONFIG);
    let region = region(&words);
    let mut source = region.source(0, &identity("arca", 0));
    for kind in 0..70 {
        source.kind(kind, 1, 0);
        source.kind_latency(kind, 10);
    }
    let reader = Reader::attach(&words).expect("attaches");
    let kinds: Vec<Kind> = reader.kinds(0).collect();
    assert_eq!((kinds.len(), kinds[2].kind), (64, 2));
    assert!(kinds[2].latency.is_some() && kinds[3].latency.is_none() && kinds[3].seen == 1);
    assert_eq!(reader.refused(), [61, 0, 0]);
}

#[test]
fn a_book_shows_its_best_levels_and_only_what_changed_is_written() {
    let words = memory(&CONFIG);
    let region = region(&words);
    let reader = Reader::attach(&words).expect("attaches");
    let mut source = region.source(2, &identity("bzx", 1));
    source.set_state(SourceState::Live);
    let mut books = region.books();
    let mut copy = BookCopy::default();
    assert_eq!(reader.read_book(0, &mut copy), Err(Busy), "nobody's slot");
    let book = BookIdentity {
        source: 2,
        instrument: InstrumentId(9),
        symbol: symbol("ZVZZT"),
    };
    let mut slot = books.claim(&book).expect("two slots");
    assert_eq!(reader.find(symbol("ZVZZT")).collect::<Vec<_>>(), [(0, book)]);
    reader.read_book(0, &mut copy).expect("claimed");
    assert_eq!((copy.state, copy.best(Side::Bid)), (BookState::Building, None));

    let bids = [
        level(100, 5, 1),
        level(99, 6, 2),
        level(98, 7, 3),
        level(97, 8, 4),
    ];
    let mut edit = books.edit(&mut slot);
    edit.cause(SeqNo(5), Nanos(6), Nanos(7));
    edit.state(BookState::Live);
    edit.status(TradingStatus::Trading);
    edit.totals(Side::Bid, 4, Volume(26), 10);
    edit.levels_from(Side::Bid, 0, bids.into_iter());
    assert_eq!(reader.read_book(0, &mut copy), Err(Busy), "in the middle of it");
    edit.publish(Nanos(8));
    reader.read_book(0, &mut copy).expect("published");
    assert_eq!(
        copy.side(Side::Bid),
        &bids[..3],
        "three fit, the fourth is in the totals"
    );
    assert_eq!(
        (copy.levels, copy.qty[0], copy.orders[0]),
        ([4, 0], Volume(26), 10)
    );
    assert_eq!(
        (copy.state, copy.status),
        (BookState::Live, TradingStatus::Trading)
    );
    assert_eq!(
        (copy.seq, copy.venue_ts, copy.recv_ts, copy.publish_ts),
        (SeqNo(5), Nanos(6), Nanos(7), Nanos(8))
    );

    let mut edit = books.edit(&mut slot);
    edit.totals(Side::Ask, 1, Volume(9), 1);
    edit.level(Side::Ask, 0, &level(101, 9, 1));
    edit.levels_from(
        Side::Bid,
        2,
        [level(98, 1, 1), level(97, 8, 4), level(96, 1, 1)].into_iter(),
    );
    edit.level(Side::Bid, 3, &level(1, 1, 1));
    let last = LastTrade {
        price: Price::from_raw(100),
        qty: Volume(3),
        venue_ts: Nanos(1),
    };
    edit.trade(&last, Volume(30), 2);
    let auction = Auction {
        kind: b'C',
        reference: Price::from_raw(99),
        side: Some(Side::Ask),
        ..Auction::default()
    };
    edit.auction(&auction);
    edit.publish(Nanos(9));
    reader.read_book(0, &mut copy).expect("published");
    assert_eq!(copy.side(Side::Bid), [bids[0], bids[1], level(98, 1, 1)]);
    assert_eq!(copy.side(Side::Ask), [level(101, 9, 1)]);
    assert_eq!(
        (copy.last, copy.volume, copy.trades, copy.auction),
        (last, Volume(30), 2, auction)
    );

    assert_eq!(
        books.claim(&book).map(|slot| slot.number()),
        Ok(1),
        "the second slot"
    );
    let full = Full {
        section: "books",
        slots: 2,
    };
    assert_eq!(books.claim(&book), Err(full));
    assert_eq!((reader.books_used(), reader.books().count()), (2, 2));
}

#[test]
fn every_book_of_a_source_is_stale_with_it_at_once() {
    let words = memory(&CONFIG);
    let region = region(&words);
    let reader = Reader::attach(&words).expect("attaches");
    let mut source = region.source(0, &identity("bzx", 0));
    let mut books = region.books();
    let book = BookIdentity {
        source: 0,
        instrument: InstrumentId(1),
        symbol: symbol("A"),
    };
    let mut slot = books.claim(&book).expect("a slot");
    let mut copy = BookCopy::default();
    let mut seen = |reader: &Reader<AtomicU64>| {
        reader.read_book(0, &mut copy).expect("published");
        copy.state
    };
    let mut edit = books.edit(&mut slot);
    edit.state(BookState::Live);
    edit.publish(Nanos(1));
    assert_eq!(
        seen(&reader),
        BookState::Building,
        "the source has not said that it is live"
    );
    for (state, book) in [
        (SourceState::Live, BookState::Live),
        (SourceState::Stale, BookState::Stale),
        (SourceState::Building, BookState::Building),
        (SourceState::Ended, BookState::Stale),
    ] {
        source.set_state(state);
        assert_eq!(seen(&reader), book);
    }
    source.set_state(SourceState::Live);
    let mut edit = books.edit(&mut slot);
    edit.state(BookState::Stale);
    edit.publish(Nanos(1));
    assert_eq!(seen(&reader), BookState::Stale, "a gap of its own");
}

#[test]
fn a_super_book_shows_its_shares_and_the_national_best() {
    let words = memory(&CONFIG);
    let region = region(&words);
    let reader = Reader::attach(&words).expect("attaches");
    let mut supers = region.supers();
    let mut slot = supers.claim(symbol("A")).expect("a slot");
    assert_eq!(reader.find_super(symbol("A")), Some(0));
    assert_eq!(reader.find_super(symbol("B")), None);
    let share = |price: i64, feed: u8| Share {
        price: Price::from_raw(price),
        qty: Volume(4),
        feed,
        orders: 1 << 30,
    };
    let ladder = Ladder {
        price: Price::from_raw(-50),
        qty: Volume(8),
        feeds: 0b11,
        shares: 3,
        levels: 2,
        total_qty: Volume(12),
    };
    let national = National {
        price: Price::from_raw(-49),
        qty: Volume(1),
        participant: b'Z',
    };
    let difference = Difference {
        price: -1,
        since: Nanos(3),
    };
    let mut edit = supers.edit(&mut slot);
    edit.feeds(0b11, 0b100);
    edit.touch(Touch::Locked);
    edit.ladder(Side::Ask, &ladder);
    edit.shares_from(
        Side::Ask,
        0,
        [share(-50, 0), share(-50, 31), share(-49, 0)].into_iter(),
    );
    edit.national(&[National::default(), national], Nanos(1), Nanos(2));
    edit.difference(&[Difference::default(), difference]);
    edit.publish(Nanos(4), Nanos(5));
    let mut copy = SuperCopy::default();
    reader.read_super(0, &mut copy).expect("published");
    assert_eq!(copy.side(Side::Ask), [share(-50, 0), share(-50, 31)]);
    assert_eq!(copy.best(Side::Ask), Some((Price::from_raw(-50), Volume(8))));
    assert_eq!((copy.best(Side::Bid), copy.side(Side::Bid)), (None, &[][..]));
    assert_eq!(
        (copy.feeds, copy.stale, copy.touch, copy.ladders[1]),
        (0b11, 0b100, Touch::Locked, ladder)
    );
    assert_eq!((copy.national[1], copy.difference[1]), (national, difference));
    assert_eq!((copy.recv_ts, copy.publish_ts), (Nanos(4), Nanos(5)));
}

fn event(seq: u64) -> MarketEvent {
    MarketEvent {
        seq: SeqNo(seq),
        venue_ts: Nanos(2),
        recv_ts: Nanos(3),
        instrument: InstrumentId(0x0102_0304),
        venue: Venue::Moex,
        kind: EventKind::EndOfGroup,
        side: Side::Ask,
        status: TradingStatus::Closed,
        order_id: OrderId(u64::MAX),
        price: Price::from_raw(-7),
        qty: Volume(8),
        ref_id: 9,
        ask_price: Price::from_raw(10),
        ask_qty: Volume(11),
        near_price: Price::from_raw(12),
        far_price: Price::from_raw(i64::MIN),
        imbalance_qty: Volume(14),
        order_count: 15,
        flags: EventFlags(0x8000_0001),
        code: *b"CODE1234",
        reserved: 0,
    }
}

#[test]
fn a_ring_gives_every_record_as_it_was_and_says_how_many_were_missed() {
    let words = memory(&CONFIG);
    let region = region(&words);
    let reader = Reader::attach(&words).expect("attaches");
    let mut ring = region.ring(1);
    let mut place = reader.ring(1).expect("two rings");
    assert_eq!(place.next(&reader), Next::Empty);
    let update = BookUpdate {
        seq: SeqNo(1),
        venue_ts: Nanos(2),
        recv_ts: Nanos(3),
        instrument: InstrumentId(4),
        venue: Venue::Cqs,
        state: BookState::Stale,
        changed: UpdateFlags(0x3f),
        reserved: 0,
        price: [Price::from_raw(-1), Price::from_raw(1)],
        qty: [Volume(5), Volume(6)],
    };
    ring.event(3, &event(1));
    ring.update(0xffff, &update);
    assert_eq!(place.next(&reader), Next::Record(Record::Event(3, event(1))));
    assert_eq!(place.next(&reader), Next::Record(Record::Update(0xffff, update)));
    assert_eq!(place.next(&reader), Next::Empty);
    for seq in 2..22 {
        ring.event(1, &event(seq));
    }
    // 22 records were written, 8 fit; the oldest may be in the making, and one more is left alone.
    assert_eq!(place.next(&reader), Next::Missed(14));
    for seq in 16..22 {
        assert_eq!(place.next(&reader), Next::Record(Record::Event(1, event(seq))));
    }
    assert_eq!(place.next(&reader), Next::Empty);
    let mut late = reader.ring_from_oldest(1).expect("two rings");
    assert_eq!(late.next(&reader), Next::Record(Record::Event(1, event(15))));
    assert_eq!((reader.ring_written(1), reader.ring_written(0)), (22, 0));
    assert!(reader.ring(2).is_none());
}

/// Where in a region words are different from what they were, those of histograms' buckets aside.
fn changed(words: &[AtomicU64], before: &[u64]) -> Vec<usize> {
    let is_other = |at: &usize| words[*at].load(Relaxed) != before[*at];
    (0..words.len()).filter(is_other).collect()
}

/// The numbers of words that lie in a region.
fn numbers<'a>(words: &[AtomicU64], ahead: impl Iterator<Item = &'a [AtomicU64]>) -> BTreeSet<usize> {
    let first = words.as_ptr() as usize;
    let number = |word: &AtomicU64| (std::ptr::from_ref(word) as usize - first) / size_of::<u64>();
    ahead.flatten().map(number).collect()
}

#[test]
fn what_will_be_written_lies_where_it_was_said_to() {
    let words = memory(&CONFIG);
    let region = region(&words);
    let (mut ring, mut source) = (region.ring(1), region.source(1, &identity("bzx", 1)));
    source.kind_latency(0x21, 300);
    let now = || words.iter().map(|word| word.load(Relaxed)).collect::<Vec<_>>();
    // Around the end of the ring, too.
    for seq in (1..30).step_by(3) {
        let (before, ahead) = (now(), numbers(&words, ring.words_ahead(3)));
        (0..3).for_each(|nth| ring.event(1, &event(seq + nth)));
        let written = changed(&words, &before);
        assert!(
            written.len() >= 7 && written.iter().all(|at| ahead.contains(at)),
            "{seq}"
        );
    }
    let (before, ahead) = (now(), numbers(&words, source.words_ahead()));
    source.packet(SeqNo(13), Nanos(100));
    source.update(250);
    source.kind_latency(0x21, 310);
    let written = changed(&words, &before);
    let beside: Vec<_> = written.iter().filter(|at| !ahead.contains(at)).collect();
    assert_eq!(
        (written.len(), beside.len()),
        (13, 2),
        "a bucket of each histogram"
    );
}

#[test]
fn a_region_that_cannot_be_read_says_why() {
    let words = memory(&CONFIG);
    assert_eq!(Reader::attach(&words).err(), Some(AttachError::NotARegion));
    assert_eq!(
        Reader::<AtomicU64>::attach(&[]).err(),
        Some(AttachError::NotARegion)
    );
    let made = region(&words);
    assert!(Reader::attach(&words).is_ok());
    assert!(matches!(
        Reader::attach(&words[..500]).err(),
        Some(AttachError::Damaged { .. })
    ));
    assert!(matches!(
        Reader::attach(&words[..words.len() - 1]).err(),
        Some(AttachError::Damaged { .. })
    ));
    made.set_state(RegionState::Starting);
    assert_eq!(Reader::attach(&words).err(), Some(AttachError::NotReady));
    made.set_state(RegionState::Ended);
    assert!(Reader::attach(&words).is_ok());
    for (word, value) in [
        (layout::header::SECTION_BOOKS + 2, 1 << 40),
        (layout::header::RING_RECORDS, 7),
        (layout::header::BYTES, 1),
    ] {
        let good = words[word].swap(value, std::sync::atomic::Ordering::Relaxed);
        assert!(
            matches!(Reader::attach(&words).err(), Some(AttachError::Damaged { .. })),
            "word {word}"
        );
        WriteWord::store(&words[word], good);
    }
    let known = Counter::ALL.len() as u64;
    for found in [known - 1, known + 1] {
        WriteWord::store(&words[layout::header::COUNTERS], found);
        let reader = Reader::attach(&words).expect("books can be read all the same");
        let refused = reader.counters(0).expect_err("a word means another counter");
        assert_eq!(refused, OtherCounters { found });
        assert!(
            refused.to_string().contains("programs of one release"),
            "{refused}"
        );
    }
    let found = layout::VERSION + 1;
    WriteWord::store(&words[layout::header::VERSION], found);
    assert_eq!(Reader::attach(&words).err(), Some(AttachError::Version { found }));
}

#[test]
fn a_configuration_out_of_range_names_the_field() {
    let bad = |config: RegionConfig| config.layout().expect_err("out of range").field;
    let good = CONFIG;
    assert_eq!(bad(RegionConfig { feeds: 33, ..good }), "feeds");
    assert_eq!(
        bad(RegionConfig {
            book_levels: 0,
            ..good
        }),
        "book_levels"
    );
    assert_eq!(
        bad(RegionConfig {
            super_shares: 65,
            ..good
        }),
        "super_shares"
    );
    assert_eq!(
        bad(RegionConfig {
            ring_records: 12,
            ..good
        }),
        "ring_records"
    );
}
