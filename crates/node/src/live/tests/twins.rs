//! Packets of a channel's twin, of every feed, between the packets of a session.

use std::iter::once;

use super::*;
use tickwire_exchange::{Publisher, listings};
use tickwire_feed::Channel;
use tickwire_market::Port;
use tickwire_rig::feeds::{self, FEEDS, FeedVisitor, LiveDay};
use tickwire_venues::protocol::Protocol;

const INSTRUMENTS: u16 = 12;
const DATAGRAMS: usize = 6_000;

/// The datagram that is lost where one is: half of the day is over.
const LOST: usize = DATAGRAMS / 2;

type Hot = HotPath<MemoryOut, true, Live<Taker>>;

/// What came of a session.
#[derive(PartialEq, Debug)]
struct Outcome {
    /// Of the books.
    hash: u64,
    /// Of the feed and of each instrument.
    states: Vec<BookState>,
    sent: u64,
    /// Orders that have ended.
    ends: u64,
    counters: Counters,
}

struct Session {
    is_rehearsed: bool,
    loses_one: bool,
}

impl FeedVisitor for Session {
    type Output = Outcome;

    fn visit<C: Channel>(&mut self, publisher: Box<dyn Publisher>, mut channel: C, depth: Depth) -> Outcome {
        let listed = listings(INSTRUMENTS);
        let day = LiveDay::generate(&listed, publisher, DATAGRAMS);
        let books = Books::new(BooksConfig {
            venue: channel.venue(),
            depth,
            instruments: u32::from(INSTRUMENTS) + 1,
            orders: 1 << 14,
            levels: 1 << 14,
            initial: BookState::Live,
            tracked: true,
        });
        let (clock, symbol) = (Clock::calibrate(), listed[0].symbol);
        let mut hot =
            memory::path_of::<_, _, true>(MemoryOut::new(), Taker::new(symbol), books, clock.clone())
                .expect("it logs on");
        let began = clock.now();
        let mut twin = None;
        for (nth, datagram) in day.datagrams().iter().enumerate() {
            let now = began.after(1_000 * nth as u64);
            if twin.is_none() && memory::watch(&mut hot, &channel, &symbol) {
                twin = memory::twin_of(&hot, &channel);
                assert!(twin.is_some(), "{symbol} is known and wanted");
            }
            let said = |hot: &Hot| (hot.sessions[0].out.orders, hot.sessions[0].out.last().to_vec());
            let before = said(&hot);
            let ((), count) = count_allocations(|| {
                if self.is_rehearsed && twin.is_some() {
                    memory::idle(&mut hot, &channel, &mut twin, now);
                }
            });
            assert_eq!((count.allocations, count.releases), (0, 0), "{count:?}");
            assert_eq!(said(&hot), before, "an order was rehearsed, and left");
            if !(self.loses_one && nth == LOST) {
                channel.on_datagram(now, Port::Live, Line::A, datagram, &mut hot);
            }
            answer(&mut hot, now);
        }
        let rehearsed = twin.map_or(0, |twin| twin.channel().counters().get(Counter::PacketsA));
        assert_eq!(
            rehearsed > 2,
            self.is_rehearsed,
            "{rehearsed} packets of the twin"
        );
        let books = &hot.books[0];
        if !self.loses_one {
            day.compare(&listed, &channel, books);
        }
        let every = (1..=u32::from(INSTRUMENTS)).filter_map(|id| books.book(InstrumentId(id)));
        Outcome {
            hash: books.state_hash(),
            states: once(books.feed_state())
                .chain(every.map(|book| book.state()))
                .collect(),
            sent: hot.sessions[0].out.orders,
            ends: hot.rule.hosted[0].conductor.strategy().ends,
            counters: channel.counters(),
        }
    }
}

/// A datagram that is lost, too, leaves books stale with a twin's packets as it does without.
#[test]
fn of_no_feed_do_packets_of_a_twin_change_anything() {
    let listed = listings(INSTRUMENTS);
    for (feed, loses_one) in FEEDS.into_iter().flat_map(|feed| [(feed, false), (feed, true)]) {
        let [with, without] = [true, false].map(|is_rehearsed| {
            let mut session = Session {
                is_rehearsed,
                loses_one,
            };
            feeds::visit(feed, &listed, &mut session)
        });
        assert_eq!(with, without, "{feed}");
        assert!(with.sent > 10, "{feed}: {} orders", with.sent);
        let is_stale = with.states.contains(&BookState::Stale);
        assert_eq!(is_stale, loses_one, "{feed}: {:?}", with.states);
    }
}

/// How deep a feed's books are kept.
struct HowDeep;

impl FeedVisitor for HowDeep {
    type Output = Depth;

    fn visit<C: Channel>(&mut self, _: Box<dyn Publisher>, _: C, depth: Depth) -> Depth {
        depth
    }
}

/// Tests and benchmarks of all feeds keep the books that programs keep.
#[test]
fn the_books_of_the_rig_are_those_that_ship() {
    for feed in FEEDS {
        let protocol = Protocol::ALL.iter().find(|protocol| protocol.name() == feed);
        let shipped = protocol.expect("a protocol's name").depth();
        assert_eq!(feeds::visit(feed, &listings(1), &mut HowDeep), shipped, "{feed}");
    }
}
