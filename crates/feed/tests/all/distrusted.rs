//! A book that what came does not fit is marked, and made right by the venue's snapshot while all others go
//! on.

use crate::common;

use tickwire_book::{Books, BooksConfig};
use tickwire_feed::{ArbiterConfig, FeedState, Glimpse, ItchFeed, Line, SoupConfig};
use tickwire_market::{BookState, Counter, InstrumentId, Nanos, SeqNo, Side, Volume};
use tickwire_wire::itch50::{AddOrder, EndOfSnapshot, OrderDelete};
use tickwire_wire::layout::{Char, Price4};
use tickwire_wire::moldudp64::PacketBuilder;
use tickwire_wire::soupbintcp::{LoginAccepted, Packet};
use tickwire_wire::zerocopy::IntoBytes;

const NOW: Nanos = Nanos(1_000_000);

fn packet(seq: u64, message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    let mut builder = PacketBuilder::new(&mut bytes, common::SESSION, SeqNo(seq));
    assert!(builder.push(message));
    let len = builder.finish();
    bytes.truncate(len);
    bytes
}

fn add(instrument: u16, order: u64, shares: u32) -> AddOrder {
    AddOrder {
        order_ref: order.into(),
        side: Char(b'B'),
        shares: shares.into(),
        price: Price4::new(1_000_000),
        ..AddOrder::at(instrument, 0)
    }
}

/// A delete of an order that nobody has added.
fn unknown(instrument: u16) -> OrderDelete {
    OrderDelete {
        order_ref: 99.into(),
        ..OrderDelete::at(instrument, 0)
    }
}

struct Rig {
    feed: ItchFeed,
    books: Books,
    glimpse: Glimpse,
    next: u64,
}

impl Rig {
    fn new(snapshot: bool) -> Rig {
        Rig {
            feed: common::feed(ArbiterConfig {
                snapshot,
                ..ArbiterConfig::default()
            }),
            books: Books::new(BooksConfig {
                instruments: 64,
                orders: 64,
                levels: 64,
                initial: BookState::Building,
                ..BooksConfig::default()
            }),
            glimpse: Glimpse::new(SoupConfig::default()),
            next: 1,
        }
    }

    fn say(&mut self, message: &[u8]) {
        let datagram = packet(self.next, message);
        self.feed.on_packet(NOW, Line::A, &datagram, &mut self.books);
        self.next += 1;
    }

    fn snapshot(&mut self, orders: &[AddOrder]) {
        self.glimpse.handle_connected(NOW);
        self.stream(Packet::LoginAccepted(&LoginAccepted::new(b"GLIMPSE", 1).unwrap()));
        for order in orders {
            self.stream(Packet::Sequenced(order.as_bytes()));
        }
        self.stream(Packet::Sequenced(EndOfSnapshot::at(self.next).as_bytes()));
    }

    fn stream(&mut self, packet: Packet<'_>) {
        let mut bytes = [0; 128];
        let len = packet.encode(&mut bytes).unwrap();
        self.glimpse
            .handle_bytes(NOW, &bytes[..len], &mut self.feed, &mut self.books);
    }

    fn state(&self, instrument: u32) -> BookState {
        self.books.book(InstrumentId(instrument)).unwrap().state()
    }

    fn bid(&self, instrument: u32) -> Vec<Volume> {
        let book = self.books.book(InstrumentId(instrument)).unwrap();
        book.levels(Side::Bid).map(|level| level.qty).collect()
    }
}

#[test]
fn what_does_not_fit_marks_its_book_and_the_feed_makes_it_right() {
    let mut rig = Rig::new(true);
    rig.say(add(1, 7, 100).as_bytes());
    rig.say(add(2, 8, 100).as_bytes());
    assert_eq!((rig.state(1), rig.state(2)), (BookState::Live, BookState::Live));
    rig.say(unknown(1).as_bytes());
    assert_eq!((rig.state(1), rig.state(2)), (BookState::Stale, BookState::Live));
    assert_eq!(rig.feed.state(), FeedState::Live, "all others go on");
    assert!(rig.feed.wants_snapshot());
    // Said meanwhile of both: the one waits, the other is told.
    rig.say(add(1, 9, 50).as_bytes());
    rig.say(add(2, 10, 50).as_bytes());
    assert_eq!((rig.state(1), rig.bid(1)), (BookState::Stale, vec![]));
    assert_eq!(rig.bid(2), [Volume(150)]);
    rig.snapshot(&[add(1, 7, 100), add(1, 9, 50), add(2, 8, 1)]);
    assert_eq!((rig.state(1), rig.bid(1)), (BookState::Live, vec![Volume(150)]));
    assert_eq!(
        rig.bid(2),
        [Volume(150)],
        "the snapshot says nothing to those that are right"
    );
    rig.say(add(1, 11, 1).as_bytes());
    assert_eq!(rig.bid(1), [Volume(151)]);
    let count = |counter| rig.feed.counters().get(counter);
    assert_eq!(
        [
            Counter::BooksDistrusted,
            Counter::Snapshots,
            Counter::MessagesLost,
            Counter::Gaps
        ]
        .map(count),
        [1, 1, 0, 0]
    );
    assert_eq!(rig.books.counters().get(Counter::BookRejects), 1);
}

#[test]
fn a_message_that_cannot_be_read_marks_its_book_and_it_is_made_right_too() {
    let mut rig = Rig::new(true);
    rig.say(add(1, 7, 100).as_bytes());
    let mut junk = add(1, 8, 100);
    junk.side = Char(b'?');
    rig.say(junk.as_bytes());
    assert_eq!(rig.state(1), BookState::Stale);
    assert!(rig.feed.wants_snapshot());
    rig.snapshot(&[add(1, 7, 100)]);
    assert_eq!((rig.state(1), rig.bid(1)), (BookState::Live, vec![Volume(100)]));
}

#[test]
fn without_a_snapshot_it_stays_marked_and_hears_on() {
    let mut rig = Rig::new(false);
    rig.say(add(1, 7, 100).as_bytes());
    rig.say(unknown(1).as_bytes());
    rig.say(add(1, 8, 50).as_bytes());
    assert_eq!((rig.state(1), rig.bid(1)), (BookState::Stale, vec![Volume(150)]));
    assert!(!rig.feed.wants_snapshot());
}

#[test]
fn junk_for_every_instrument_marks_every_book_and_none_is_forgotten() {
    // More than can wait at once.
    let mut rig = Rig::new(true);
    rig.say(add(1, 7, 100).as_bytes());
    let mut bytes = vec![0; 4096];
    let mut builder = PacketBuilder::new(&mut bytes, common::SESSION, SeqNo(2));
    for i in 0..90 {
        assert!(builder.push(unknown(1 + i % 63).as_bytes()));
    }
    let len = builder.finish();
    rig.feed.on_packet(NOW, Line::A, &bytes[..len], &mut rig.books);
    rig.next += 90;
    for instrument in 1..64 {
        assert_eq!(rig.state(instrument), BookState::Stale, "{instrument}");
    }
    assert_eq!(rig.feed.counters().get(Counter::BooksDistrusted), 63);
    rig.snapshot(&[add(1, 7, 100)]);
    for instrument in 1..64 {
        assert_eq!(rig.state(instrument), BookState::Live, "{instrument}");
    }
}

/// A forger on line A sends a message 20 that nobody has sent; line A goes on without it. The true message
/// of that number differs, and neither line is false for that.
#[test]
fn the_true_message_of_a_refuted_number_is_no_copy_that_differs() {
    let mut rig = Rig::new(true);
    for line in [Line::A, Line::B] {
        rig.feed
            .on_packet(NOW, line, &packet(1, add(1, 1, 100).as_bytes()), &mut rig.books);
    }
    rig.feed.on_packet(
        NOW,
        Line::A,
        &packet(20, add(1, 66, 666).as_bytes()),
        &mut rig.books,
    );
    // The last two out of order: what comes in sequence on the first line is not compared.
    for order in (2..=18).chain([20, 19]) {
        let true_one = packet(order, add(1, order, 100).as_bytes());
        rig.feed.on_packet(NOW, Line::A, &true_one, &mut rig.books);
    }
    let counters = rig.feed.counters();
    assert_eq!(counters.get(Counter::NumbersRefuted), 1);
    assert_eq!(counters.get(Counter::LinesDiverged), 0);
    assert_eq!(
        (rig.feed.state(), rig.feed.next_seq()),
        (FeedState::Live, SeqNo(21))
    );
}
