//! What a reader sees of a group of events, and of books that nobody wants any more.

use super::*;
use crate::command::{Command, Deed};
use crate::rehearsal::Room;
use crate::supers::SuperPublisher;
use crate::thread_books::ThreadBooks;
use std::sync::mpsc::sync_channel;
use tickwire_book::{BooksConfig, Depth, SuperConfig, super_books};
use tickwire_feed::{Line, Pattern};
use tickwire_market::{EventSink as _, Port, Price};
use tickwire_receive::receiver::{Received, Source};
use tickwire_shm::{BookCopy, Reader, RegionConfig, RegionState, SourceIdentity};
use tickwire_simulator::session::Packing;
use tickwire_simulator::session::Session;
use tickwire_simulator::venue::VIRTUAL_START;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::wiring;
use tickwire_venues::wiring::{Reception, WithChannel};

/// Half a session, then what the test says.
struct Shown<'a> {
    session: &'a Session,
    symbols: [Symbol; 2],
}

/// What a reader finds of a symbol: its state, and the levels of its bids.
fn seen(reader: &Reader<'_, AtomicU64>, symbol: Symbol) -> (BookState, usize) {
    let mut copy = BookCopy::default();
    let (slot, _) = reader.find(symbol).next().expect("it has a slot");
    reader.read_book(slot, &mut copy).expect("nobody writes");
    (copy.state, copy.side(Side::Bid).len())
}

impl WithChannel for Shown<'_> {
    type Output = ();

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) {
        let [kept, left] = self.symbols;
        let room = Room::of(RegionConfig {
            books: 100,
            supers: 1,
            ..RegionConfig::default()
        });
        let region = room.region();
        let row = region.source(
            0,
            &SourceIdentity {
                name: "1".into(),
                feed_name: "feed".into(),
                protocol: "mdp3".into(),
                feed: 0,
                venue: Some(channel.venue()),
                ring: Some(0),
            },
        );
        let books = Books::new(BooksConfig {
            venue: channel.venue(),
            tracked: true,
            ..*self.session.books(depth).config()
        });
        let (notices, _notices) = sync_channel(64);
        let shared = ThreadShared {
            ring: Some(region.ring(0)),
            content: RingContent::Both,
            latency_of: LatencyOf::Packets,
            supers: Supers::Off,
            clock: Clock::calibrate(),
            notices,
        };
        let mut source = Received::new(0, channel);
        let mut thread = ThreadBooks::new(shared, false);
        thread.add(ChannelBooks::new(region, row, books, None), 0, u64::MAX);
        region.set_state(RegionState::Ready);
        for (port, datagram) in &self.session.before {
            source.deliver(VIRTUAL_START, *port, Line::A, datagram, &mut thread);
        }
        let live: Vec<&[u8]> = tickwire_rig::recorded::walk(&self.session.live).collect();
        for datagram in &live[..live.len() / 2] {
            source.deliver(VIRTUAL_START, Port::Live, Line::A, datagram, &mut thread);
        }
        let reader = Reader::attach(room.words()).expect("it is ready");
        let (state, levels) = seen(&reader, kept);
        assert!(
            state == BookState::Live && levels > 1,
            "{state:?}, {levels} levels"
        );
        ask(&mut source, &mut thread, left, Deed::Unsubscribe);
        assert_eq!(seen(&reader, left), (BookState::Stale, 0));

        // A group: between its events a book is nobody's, and is not shown.
        let id = Source::<ThreadBooks<'_>>::find(&source, &kept).expect("it is known");
        let event = |kind, flags| MarketEvent {
            kind,
            flags,
            instrument: id,
            ..MarketEvent::default()
        };
        thread.on_event(&event(EventKind::Clear, EventFlags::NONE));
        assert_eq!(
            seen(&reader, kept),
            (BookState::Live, levels),
            "the group goes on"
        );
        thread.on_event(&event(EventKind::Gap, EventFlags::LAST));
        assert_eq!(seen(&reader, kept), (BookState::Stale, 0));

        // A clear of everything, as a reset of the channel is, makes books right: not those that nobody
        // keeps.
        let clear = MarketEvent {
            instrument: InstrumentId::WHOLE_FEED,
            ..event(EventKind::Clear, EventFlags::LAST)
        };
        thread.on_event(&clear);
        assert_eq!(seen(&reader, kept), (BookState::Live, 0));
        assert_eq!(seen(&reader, left), (BookState::Stale, 0));
        let level = MarketEvent {
            price: Price::from_4dp(100_0000),
            qty: Volume(5),
            ..event(EventKind::Level, EventFlags::LAST)
        };
        thread.on_event(&level);
        assert_eq!(seen(&reader, kept), (BookState::Live, 1));
        // Wanted again it is what its venue makes of it: a gap until its snapshot has come.
        ask(&mut source, &mut thread, left, Deed::Subscribe);
        assert_eq!(seen(&reader, left), (BookState::Stale, 0));
    }
}

/// Subscribes to a symbol, or no more, as somebody at the control socket does.
fn ask<'r>(
    source: &mut impl Source<ThreadBooks<'r>>,
    thread: &mut ThreadBooks<'r>,
    symbol: Symbol,
    deed: Deed,
) {
    let mut command = Command {
        deed,
        patterns: vec![Pattern::new(symbol.as_bytes()).expect("a symbol is a pattern")],
        feed: None,
        answers: Vec::new(),
    };
    thread.command(&mut command, |thread| source.visit(VIRTUAL_START, thread));
    assert_eq!(command.answers[0].changed, 1);
}

#[test]
fn a_book_never_looks_live_when_it_is_not() {
    let session = Session::publish(Protocol::Mdp3, 3, 4_000, 20, Packing::Recorded)
        .unwrap_or_else(|failure| panic!("{}", failure.message));
    let listings = session.exchange.listings();
    let shown = Shown {
        session: &session,
        symbols: [listings[0].symbol, listings[1].symbol],
    };
    let reception = Reception::recorded(1_000, 100_000, None);
    wiring::with_channel(&session.config.feed[0], 0, &reception, shown)
        .unwrap_or_else(|failure| panic!("{}", failure.message));
}

/// A session of full packets, then how often a latency was counted.
struct Counted<'a> {
    session: &'a Session,
    latency_of: LatencyOf,
}

/// Of the source, of each of its kinds, and of its consolidated books.
#[derive(PartialEq, Eq, Debug)]
struct Counts {
    all: u64,
    kinds: Vec<(u16, u64)>,
    supers: u64,
}

impl WithChannel for Counted<'_> {
    type Output = (Counts, [usize; 2]);

    fn run<C: Channel + 'static>(self, channel: C, depth: Depth) -> Self::Output {
        let room = Room::of(RegionConfig {
            books: 100,
            supers: 100,
            ..RegionConfig::default()
        });
        let region = room.region();
        let identity = SourceIdentity {
            name: "1".into(),
            feed_name: "feed".into(),
            protocol: "itch50".into(),
            feed: 0,
            venue: Some(channel.venue()),
            ring: None,
        };
        let row = region.source(0, &identity);
        let (notices, _notices) = sync_channel(64);
        let clock = Clock::calibrate();
        let supers = SuperPublisher::new(
            SuperConfig {
                sources: vec![super_books::Source {
                    feed: 0,
                    is_national: false,
                }],
                symbols: 100,
                members: 100,
                shares: 1 << 12,
            },
            region,
            &[row.super_latency()],
            clock.clone(),
            notices.clone(),
        );
        let books = Books::new(BooksConfig {
            venue: channel.venue(),
            tracked: true,
            ..*self.session.books(depth).config()
        });
        let shared = ThreadShared {
            ring: None,
            content: RingContent::Off,
            latency_of: self.latency_of,
            supers: Supers::Inline(Box::new(supers)),
            clock,
            notices,
        };
        let mut source = Received::new(0, channel);
        let mut thread = ThreadBooks::new(shared, false);
        let books = ChannelBooks::new(region, row, books, Some(Relay::Levels));
        thread.add(books, 0, u64::MAX);
        region.set_state(RegionState::Ready);
        let reader = Reader::attach(room.words()).expect("it is ready");
        for (port, datagram) in &self.session.before {
            source.deliver(VIRTUAL_START, *port, Line::A, datagram, &mut thread);
        }
        let count = |index: Option<u32>| {
            let histogram = index.and_then(|index| reader.histogram(index));
            histogram.expect("claimed").count
        };
        let stamps = || {
            let (mut stamped, mut copy) = ([0; 2], BookCopy::default());
            for (slot, _) in reader.books() {
                reader.read_book(slot, &mut copy).expect("nobody writes");
                let is_stamped = copy.publish_ts != Nanos::ZERO;
                assert!(!is_stamped || copy.publish_ts >= copy.recv_ts);
                stamped[usize::from(is_stamped)] += 1;
            }
            stamped
        };
        let live: Vec<&[u8]> = tickwire_rig::recorded::walk(&self.session.live).collect();
        let (mut updates, mut stamped) = (0, [0; 2]);
        for (nth, datagram) in live.iter().enumerate() {
            source.deliver(VIRTUAL_START, Port::Live, Line::A, datagram, &mut thread);
            // After every packet all that it wrote was counted.
            let row = reader.source(0).expect("it is there");
            assert_eq!(count(row.latency), row.totals.updates);
            assert_eq!(thread.visible_ns(0).is_some(), row.totals.updates > updates);
            updates = row.totals.updates;
            // At the close every book is shown anew.
            if nth == live.len() / 2 {
                stamped = stamps();
            }
        }
        let row = reader.source(0).expect("it is there");
        let kinds = reader.kinds(0).map(|kind| (kind.kind, count(kind.latency)));
        let counts = Counts {
            all: count(row.latency),
            kinds: kinds.collect(),
            supers: count(row.super_latency),
        };
        (counts, stamped)
    }
}

/// To read the clock once a packet loses no count, of no kind, and no stamp is made up.
#[test]
fn every_book_counts_whether_each_is_timed_or_each_packet() {
    let session = Session::publish(Protocol::Itch50, 5, 20_000, 20, Packing::Busy)
        .unwrap_or_else(|failure| panic!("{}", failure.message));
    let reception = Reception::recorded(1_000, 100_000, None);
    let [(each, of_each), (packets, of_packets)] =
        [LatencyOf::Messages, LatencyOf::Packets].map(|latency_of| {
            let counted = Counted {
                session: &session,
                latency_of,
            };
            wiring::with_channel(&session.config.feed[0], 0, &reception, counted)
                .unwrap_or_else(|failure| panic!("{}", failure.message))
        });
    assert_eq!(each, packets);
    assert!(each.all > 10_000 && each.supers > 10_000, "{each:?}");
    let [(0, stamped), (without, with)] = [of_each, of_packets].map(|[without, with]| (without, with)) else {
        panic!("a book without a stamp where each is timed");
    };
    assert!(without > 0 && with > 0 && without + with == stamped);
}
