//! What a mirror shows is what its publisher's region shows, whatever happens between: without a network, one
//! frame at a time.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;

use tickwire_aeron::frame::FRAME_MAX;
use tickwire_aeron::{
    FeedHealth, LOST_AFTER_NS, Mirror, Offered, Outlet, Pace, Publisher, Rejoin, SILENT_AFTER_NS, Stream,
    invitation,
};
use tickwire_market::{
    BookState, Counter, Counters, EventKind, InstrumentId, Level, MarketEvent, Nanos, OrderId, Price, SeqNo,
    Side, Symbol, Venue, Volume,
};
use tickwire_shm::{
    BookCopy, BookIdentity, BookSlot, BookWriter, Identity, Next, Reader, Record, Region, RegionConfig,
    RegionState, RingCursor, RingWriter, Section, SourceIdentity, SourceState, SourceWriter,
};

const CONFIG: RegionConfig = RegionConfig {
    feeds: 1,
    sources: 2,
    histograms: 8,
    books: 16,
    book_levels: 5,
    supers: 4,
    super_shares: 4,
    rings: 1,
    ring_records: 64,
};

fn memory(config: &RegionConfig) -> Vec<AtomicU64> {
    let words = config.layout().expect("in range").words;
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

fn formatted<'a>(words: &'a [AtomicU64], generation: u64) -> Region<'a, AtomicU64> {
    let identity = Identity {
        generation: Nanos(generation),
        pid: 1,
    };
    Region::format(words, &CONFIG, identity).expect("in range")
}

/// A network of so many frames; what is not read is not taken.
struct Wire {
    frames: VecDeque<(Stream, Vec<u8>)>,
    room: usize,
    is_snapshot_heard: bool,
    is_live_heard: bool,
}

impl Wire {
    fn new() -> Wire {
        Wire {
            frames: VecDeque::new(),
            room: usize::MAX,
            is_snapshot_heard: true,
            is_live_heard: true,
        }
    }
}

impl Outlet for Wire {
    fn offer(&mut self, stream: Stream, frame: &[u8]) -> Offered {
        assert!(frame.len() <= FRAME_MAX, "{} bytes", frame.len());
        if !self.is_heard(stream) {
            return Offered::Unheard;
        }
        if self.frames.len() >= self.room {
            return Offered::Full;
        }
        self.frames.push_back((stream, frame.to_vec()));
        Offered::Taken
    }

    fn is_heard(&self, stream: Stream) -> bool {
        match stream {
            Stream::Live => self.is_live_heard,
            Stream::Snapshot => self.is_snapshot_heard,
        }
    }
}

/// A feed handler of one source and a few books.
struct Handler<'a> {
    region: Region<'a, AtomicU64>,
    source: SourceWriter<'a, AtomicU64>,
    books: BookWriter<'a, AtomicU64>,
    slots: Vec<BookSlot>,
    ring: RingWriter<'a, AtomicU64>,
    writes: u64,
}

impl<'a> Handler<'a> {
    fn new(words: &'a [AtomicU64], generation: u64) -> Handler<'a> {
        let region = formatted(words, generation);
        let identity = SourceIdentity {
            name: "nasdaq 1".into(),
            feed_name: "nasdaq".into(),
            protocol: "itch50".into(),
            feed: 0,
            venue: Some(Venue::Nasdaq),
            ring: Some(0),
        };
        let source = region.source(0, &identity);
        let mut handler = Handler {
            region,
            source,
            books: region.books(),
            slots: Vec::new(),
            ring: region.ring(0),
            writes: 0,
        };
        region.set_state(RegionState::Ready);
        handler.claim(3);
        handler
    }

    fn claim(&mut self, books: u32) {
        for _ in 0..books {
            let number = self.slots.len() as u32;
            let identity = BookIdentity {
                source: 0,
                instrument: InstrumentId(number),
                symbol: Symbol::new(format!("S{number}").as_bytes()).expect("a symbol"),
            };
            self.slots
                .push(self.books.claim(&identity).expect("there is room"));
            self.source.book_claimed();
        }
    }

    /// One more write of a book, a record of it, and what counts it.
    fn step(&mut self) {
        self.writes += 1;
        let n = self.writes;
        let at = n as usize % self.slots.len();
        let event = MarketEvent {
            seq: SeqNo(n),
            venue_ts: Nanos(n * 1_000),
            recv_ts: Nanos(n * 1_000 + 7),
            instrument: InstrumentId(at as u32),
            venue: Venue::Nasdaq,
            kind: EventKind::Add,
            order_id: OrderId(n.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            price: Price::from_raw(-(n as i64)),
            qty: Volume(n),
            ..MarketEvent::default()
        };
        self.ring.event(0, &event);
        let mut edit = self.books.edit(&mut self.slots[at]);
        edit.state(BookState::Live);
        edit.cause(event.seq, event.venue_ts, event.recv_ts);
        let levels = 1 + n as u32 % 5;
        for side in Side::BOTH {
            edit.totals(side, levels, Volume(n), levels);
            for rank in 0..levels {
                let level = Level {
                    price: Price::from_raw((n + u64::from(rank)) as i64),
                    qty: Volume(n),
                    orders: 1,
                };
                edit.level(side, rank as usize, &level);
            }
        }
        edit.publish(Nanos(n));
        self.source.packet(SeqNo(n + 1), Nanos(n));
        self.source.update(n % 900);
    }
}

/// Publisher, network and mirror of one handler, by a clock that only the test moves.
struct Pair<'a> {
    publisher: Publisher,
    wire: Wire,
    mirror: Option<Mirror<'a, AtomicU64>>,
    copy: Region<'a, AtomicU64>,
    now: u64,
}

/// Every turn does everything.
const PACE: Pace = Pace {
    books_ns: 0,
    statistics_ns: 0,
    beat_ns: 0,
    frame_bytes: 1 << 10,
    records: 16,
    snapshot_frames: 1,
    pass_ns: 0,
};

impl<'a> Pair<'a> {
    fn new(handler: &Handler<'_>, there: &'a [AtomicU64], epoch: u64) -> Pair<'a> {
        Pair {
            publisher: Publisher::new(&handler.region.reader(), epoch, PACE),
            wire: Wire::new(),
            mirror: None,
            copy: formatted(there, 99),
            now: 0,
        }
    }

    fn publish(&mut self, handler: &Handler<'_>) {
        self.now += 1_000_000;
        self.publisher.turn(
            &handler.region.reader(),
            FeedHealth::Alive,
            self.now,
            &mut self.wire,
        );
    }

    fn receive(&mut self) -> Result<(), Rejoin> {
        while let Some((_, frame)) = self.wire.frames.pop_front() {
            let Some(mirror) = &mut self.mirror else {
                let invited = invitation(&frame, 0).expect("a frame");
                self.mirror = invited.map(|invited| Mirror::new(self.copy, &invited, self.now));
                continue;
            };
            mirror.frame(&frame, self.now)?;
        }
        match &mut self.mirror {
            Some(mirror) => mirror.look(self.now),
            None => Ok(()),
        }
    }

    fn turn(&mut self, handler: &Handler<'_>) -> Result<(), Rejoin> {
        self.publish(handler);
        self.receive()
    }

    fn join(&mut self, handler: &Handler<'_>) {
        for _ in 0..200 {
            self.turn(handler).expect("nothing is missing");
            if self.mirror.as_ref().is_some_and(Mirror::is_ready) {
                return;
            }
        }
        panic!("never ready: {:?}", self.publisher.published());
    }
}

/// Every book, row, histogram of both, and the state that a reader finds them in.
fn assert_equal(ours: &Reader<'_, AtomicU64>, theirs: &Reader<'_, AtomicU64>) {
    let (mut a, mut b) = (BookCopy::default(), BookCopy::default());
    assert_eq!(ours.books_used(), theirs.books_used());
    for (slot, identity) in ours.books() {
        assert_eq!(theirs.book_identity(slot), Some(identity));
        ours.read_book(slot, &mut a).expect("whole");
        theirs.read_book(slot, &mut b).expect("whole");
        assert_eq!(a, b, "book {slot}");
    }
    let sources = |reader: &Reader<'_, AtomicU64>| reader.sources().collect::<Vec<_>>();
    assert_eq!(sources(ours), sources(theirs));
    assert_eq!(ours.counters(0), theirs.counters(0));
    for index in 0..ours.slots_used(Section::Histograms) {
        let copy = |reader: &Reader<'_, AtomicU64>| {
            let mut words = vec![0; 1160];
            reader
                .copy_slot(Section::Histograms, index, &mut words)
                .expect("there is one");
            words
        };
        assert_eq!(copy(ours), copy(theirs), "histogram {index}");
    }
}

/// Numbers of the events that a cursor finds, and how many it missed.
fn read(cursor: &mut RingCursor, reader: &Reader<'_, AtomicU64>) -> (Vec<u64>, u64) {
    let (mut seqs, mut lost) = (Vec::new(), 0);
    loop {
        match cursor.next(reader) {
            Next::Record(Record::Event(0, event)) => seqs.push(event.seq.0),
            Next::Record(other) => panic!("{other:?}"),
            Next::Missed(n) => lost += n,
            Next::Empty => return (seqs, lost),
        }
    }
}

#[test]
fn a_late_host_has_everything_and_then_every_record() {
    let (here, there) = (memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    handler.source.set_state(SourceState::Live);
    (0..500).for_each(|_| handler.step());
    let mut counters = Counters::default();
    counters.add(Counter::ALL[3], 17);
    handler.source.counters(&counters);
    let mut pair = Pair::new(&handler, &there, 1);
    pair.join(&handler);
    assert_equal(&handler.region.reader(), &pair.copy.reader());

    let mut cursor = pair.copy.reader().ring(0).expect("there is one");
    let mut seqs = Vec::new();
    for round in 0..300 {
        handler.step();
        if round == 150 {
            handler.claim(2);
        }
        pair.turn(&handler).expect("nothing is missing");
        let (more, lost) = read(&mut cursor, &pair.copy.reader());
        assert_eq!(lost, 0);
        seqs.extend(more);
    }
    assert_eq!(seqs, (501..=800).collect::<Vec<_>>());
    assert_equal(&handler.region.reader(), &pair.copy.reader());
    assert_eq!(pair.publisher.published().missed, 0);
}

#[test]
fn what_was_before_a_host_joined_is_said_to_be_missed() {
    let (here, there) = (memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    (0..100).for_each(|_| handler.step());
    // Its ring has lost its beginning: it begins with the next record.
    let mut pair = Pair::new(&handler, &there, 1);
    pair.join(&handler);
    handler.step();
    pair.turn(&handler).expect("nothing is missing");
    let reader = pair.copy.reader();
    let mut cursor = reader.ring_from_oldest(0).expect("there is one");
    let (seqs, lost) = read(&mut cursor, &reader);
    assert_eq!((seqs, cursor.position()), (vec![101], 101));
    assert!(lost > 0);
}

#[test]
fn a_host_that_joins_while_everything_changes_is_right_when_it_is_ready() {
    let (here, there) = (memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    handler.claim(10);
    handler.source.set_state(SourceState::Live);
    let mut pair = Pair::new(&handler, &there, 1);
    let mut is_ready = false;
    for round in 0..400u64 {
        (0..round % 4).for_each(|_| handler.step());
        if round % 13 == 0 {
            let states = [SourceState::Stale, SourceState::Live];
            handler.source.set_state(states[(round / 13 % 2) as usize]);
        }
        pair.turn(&handler).expect("nothing is missing");
        is_ready |= pair.mirror.as_ref().is_some_and(Mirror::is_ready);
        if is_ready {
            assert_equal(&handler.region.reader(), &pair.copy.reader());
        }
    }
    assert!(is_ready);
}

#[test]
fn no_room_in_the_network_loses_nothing_but_what_the_ring_writes_over_and_says_it() {
    let (here, there) = (memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    handler.source.set_state(SourceState::Live);
    let mut pair = Pair::new(&handler, &there, 1);
    pair.join(&handler);
    pair.wire.is_snapshot_heard = false;
    let mut cursor = pair.copy.reader().ring(0).expect("there is one");
    // A little room: the turn goes on where it was.
    pair.wire.room = 2;
    let (mut seqs, mut lost) = (Vec::new(), 0);
    let mut collect = |pair: &Pair<'_>, seqs: &mut Vec<u64>, lost: &mut u64| {
        let (more, gone) = read(&mut cursor, &pair.copy.reader());
        seqs.extend(more);
        *lost += gone;
    };
    for _ in 0..50 {
        handler.step();
        pair.publish(&handler);
        pair.publish(&handler);
        pair.receive().expect("nothing is missing");
        collect(&pair, &mut seqs, &mut lost);
    }
    (0..20).for_each(|_| pair.turn(&handler).expect("nothing is missing"));
    collect(&pair, &mut seqs, &mut lost);
    assert_eq!((seqs.len(), lost), (50, 0));
    // No room for longer than the ring lasts.
    pair.wire.room = 0;
    for _ in 0..200 {
        handler.step();
        pair.publish(&handler);
    }
    pair.wire.room = usize::MAX;
    for _ in 0..60 {
        pair.turn(&handler).expect("nothing is missing");
        collect(&pair, &mut seqs, &mut lost);
    }
    let missed = pair.publisher.published().missed;
    assert!(missed > 0 && pair.publisher.published().full > 0);
    assert_eq!(lost, missed, "readers there are told of what is missing");
    assert_eq!(seqs.len() as u64 + lost, 250);
    assert!(seqs.is_sorted());
    assert_equal(&handler.region.reader(), &pair.copy.reader());
}

#[test]
fn a_missing_frame_ends_the_mirror_and_its_books_are_stale() {
    let (here, there, again) = (memory(&CONFIG), memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    handler.source.set_state(SourceState::Live);
    let mut pair = Pair::new(&handler, &there, 1);
    pair.join(&handler);
    assert_eq!(pair.copy.reader().source_state(0), SourceState::Live);
    handler.step();
    pair.publish(&handler);
    pair.wire.frames.pop_front();
    pair.publish(&handler);
    let why = pair.receive().expect_err("a frame is missing");
    assert!(matches!(why, Rejoin::Gap { missing: 1, .. }), "{why}");
    assert_eq!(pair.copy.reader().source_state(0), SourceState::Stale);
    pair.wire.frames.clear();
    pair.mirror = None;
    pair.copy = formatted(&again, 100);
    pair.join(&handler);
    assert_equal(&handler.region.reader(), &pair.copy.reader());
}

#[test]
fn silence_makes_books_stale_and_is_over_when_something_is_heard() {
    let (here, there) = (memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    handler.source.set_state(SourceState::Live);
    let mut pair = Pair::new(&handler, &there, 1);
    pair.join(&handler);
    pair.now += SILENT_AFTER_NS + 1;
    pair.receive().expect("not yet lost");
    assert_eq!(pair.copy.reader().source_state(0), SourceState::Stale);
    pair.turn(&handler).expect("heard");
    assert_eq!(pair.copy.reader().source_state(0), SourceState::Live);
    pair.now += LOST_AFTER_NS + 1;
    assert_eq!(pair.receive(), Err(Rejoin::Silence));
    assert_eq!(pair.copy.reader().source_state(0), SourceState::Stale);
}

/// The receiver's thread, and what receives for it, stand still for a minute; then both go on.
#[test]
fn a_time_in_which_the_receiver_stood_still_is_no_silence_and_silence_after_it_is_found() {
    let (here, there) = (memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    handler.source.set_state(SourceState::Live);
    let mut pair = Pair::new(&handler, &there, 1);
    pair.join(&handler);
    let state = |pair: &Pair<'_>| pair.copy.reader().source_state(0);
    let turn = |pair: &mut Pair<'_>, after: u64| {
        pair.now += after;
        let now = pair.now;
        pair.mirror.as_mut().expect("joined").turn(now);
        pair.receive()
    };
    for _ in 0..10 {
        assert_eq!(turn(&mut pair, 60_000_000_000), Ok(()));
        assert_eq!(state(&pair), SourceState::Live, "nothing could be heard yet");
        pair.publish(&handler);
        assert_eq!(turn(&mut pair, 1_000_000), Ok(()));
        assert_eq!(state(&pair), SourceState::Live);
    }
    assert_eq!(pair.mirror.as_ref().expect("joined").mirrored().silences, 0);
    // Once it turns again, or if it turns slowly all the while, silence is found.
    for pace in [10_000_000, 700_000_000] {
        let mut turns = 1;
        while state(&pair) == SourceState::Live {
            assert_eq!(turn(&mut pair, pace), Ok(()));
            turns += 1;
            assert!(turns < 200, "silence is not found at {pace} ns a turn");
        }
        let lost = (0..1_000).find_map(|_| turn(&mut pair, pace).err());
        assert_eq!(lost, Some(Rejoin::Silence));
        pair.publish(&handler);
        pair.receive().expect("heard");
        assert_eq!(state(&pair), SourceState::Live);
    }
}

#[test]
fn a_later_publisher_takes_over_and_an_earlier_one_is_not_heard() {
    let (here, there) = (memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    let mut pair = Pair::new(&handler, &there, 7);
    pair.join(&handler);
    let mut earlier = Publisher::new(&handler.region.reader(), 6, PACE);
    earlier.turn(&handler.region.reader(), FeedHealth::Alive, 1, &mut pair.wire);
    pair.receive().expect("passed over");
    assert!(
        pair.mirror
            .as_ref()
            .is_some_and(|mirror| mirror.mirrored().ignored > 0)
    );
    let mut later = Publisher::new(&handler.region.reader(), 8, PACE);
    later.turn(&handler.region.reader(), FeedHealth::Alive, 1, &mut pair.wire);
    assert_eq!(pair.receive(), Err(Rejoin::Publisher));
    handler.step();
}

#[test]
fn a_feed_handler_that_is_lost_or_ends_is_said_so() {
    let (here, there) = (memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    handler.source.set_state(SourceState::Live);
    let mut pair = Pair::new(&handler, &there, 1);
    pair.join(&handler);
    let reader = handler.region.reader();
    pair.now += 1;
    pair.publisher
        .turn(&reader, FeedHealth::Lost, pair.now, &mut pair.wire);
    pair.receive().expect("nothing is missing");
    assert_eq!(pair.copy.reader().source_state(0), SourceState::Stale);
    pair.turn(&handler).expect("it is back");
    assert_eq!(pair.copy.reader().source_state(0), SourceState::Live);
    (0..40).for_each(|_| handler.step());
    for _ in 0..10 {
        pair.now += 1;
        pair.publisher
            .turn(&reader, FeedHealth::Ended, pair.now, &mut pair.wire);
        pair.receive().expect("nothing is missing");
    }
    let copy = pair.copy.reader();
    assert_eq!(copy.state(), Some(RegionState::Ended));
    assert_eq!(
        copy.ring_written(0),
        handler.region.reader().ring_written(0),
        "the end comes behind the last record"
    );
}

/// A book that a reader of the mirror trusts was written while its source was live: in every order of gap,
/// books, recovery.
#[test]
fn no_book_is_trusted_that_could_not_be_trusted_at_home() {
    let (here, there) = (memory(&CONFIG), memory(&CONFIG));
    let mut handler = Handler::new(&here, 5);
    handler.source.set_state(SourceState::Live);
    let mut pair = Pair::new(&handler, &there, 1);
    pair.join(&handler);
    pair.wire.is_snapshot_heard = false;
    let mut copy = BookCopy::default();
    let mut doubtful = std::collections::HashSet::new();
    let mut random = 0x5EED_u64;
    let mut is_live = true;
    let mut checked = 0;
    for _ in 0..40_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        match random >> 60 {
            0 => {
                is_live = !is_live;
                // What is written in a gap is made right before it is over.
                if is_live {
                    (0..handler.slots.len()).for_each(|_| handler.step());
                }
                handler.source.set_state(if is_live {
                    SourceState::Live
                } else {
                    SourceState::Stale
                });
            }
            1..6 => {
                handler.step();
                if !is_live {
                    doubtful.insert(handler.writes);
                }
            }
            // Any part of a turn, then one frame.
            6..9 => {
                pair.wire.room = (random >> 50 & 3) as usize;
                pair.publish(&handler);
            }
            _ => {
                if let Some((_, frame)) = pair.wire.frames.pop_front() {
                    let mirror = pair.mirror.as_mut().expect("joined");
                    mirror.frame(&frame, pair.now).expect("nothing is missing");
                }
            }
        }
        let reader = pair.copy.reader();
        for slot in 0..reader.books_used() {
            reader.read_book(slot, &mut copy).expect("whole");
            if copy.state == BookState::Live {
                checked += 1;
                assert!(
                    !doubtful.contains(&copy.seq.0),
                    "book {slot} of message {} is trusted",
                    copy.seq.0
                );
            }
        }
    }
    assert!(
        checked > 1_000 && doubtful.len() > 1_000,
        "{checked} looks, {} doubtful",
        doubtful.len()
    );
}
