//! Subscriptions that change in mid-session, with a venue small enough to know what every book must be.

use std::collections::BTreeMap;

use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{
    ArbiterConfig, Channel, FeedState, ItchChannel, ItchConfig, ItchDecoder, ItchFeed, Line, Pattern,
    SoupConfig,
};
use tickwire_market::{
    BookState, Counter, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, Port, Symbol, Venue,
};
use tickwire_wire::itch50::{AddOrder, EndOfSnapshot, OrderDelete, StockDirectory};
use tickwire_wire::layout::{Char, Price4};
use tickwire_wire::moldudp64::PacketBuilder;
use tickwire_wire::soupbintcp::{LoginAccepted, Packet};
use tickwire_wire::zerocopy::IntoBytes;

const SYMBOLS: [&[u8]; 4] = [b"A", b"AB", b"B", b"BA"];
const PATTERNS: [&[u8]; 8] = [b"A", b"AB", b"B", b"BA", b"A*", b"?A", b"*B", b"*"];
const SESSION: [u8; 10] = *b"0000000001";

/// The venue: resting orders by number, with their instrument; and every message so far.
#[derive(Default)]
struct Venue4 {
    orders: BTreeMap<u64, u16>,
    messages: Vec<Vec<u8>>,
    ordered: u64,
}

impl Venue4 {
    fn new() -> Venue4 {
        let mut venue = Venue4::default();
        for (locate, symbol) in (1..).zip(SYMBOLS) {
            venue.messages.push(Venue4::directory(locate, symbol));
        }
        venue
    }

    fn directory(locate: u16, symbol: &[u8]) -> Vec<u8> {
        let mut message = StockDirectory::at(locate, 1);
        message.stock.0[..symbol.len()].copy_from_slice(symbol);
        message.as_bytes().to_vec()
    }

    fn add(order: u64, locate: u16) -> Vec<u8> {
        AddOrder {
            order_ref: order.into(),
            side: Char(b'B'),
            shares: 100.into(),
            price: Price4::new(10_000),
            ..AddOrder::at(locate, 1)
        }
        .as_bytes()
        .to_vec()
    }

    /// Something happens: an order comes, or one goes.
    fn happens(&mut self, choice: u8) {
        let locate = u16::from(choice % 4) + 1;
        let resting = self.orders.iter().find(|(_, of)| **of == locate);
        let gone = resting.map(|(&order, _)| order).filter(|_| choice & 4 != 0);
        let message = match gone {
            Some(order) => {
                self.orders.remove(&order);
                let message = OrderDelete {
                    order_ref: order.into(),
                    ..OrderDelete::at(locate, 1)
                };
                message.as_bytes().to_vec()
            }
            None => {
                self.ordered += 1;
                self.orders.insert(self.ordered, locate);
                Venue4::add(self.ordered, locate)
            }
        };
        self.messages.push(message);
    }

    fn next(&self) -> u64 {
        self.messages.len() as u64 + 1
    }

    fn datagram(&self, seq: u64) -> Vec<u8> {
        let mut buffer = [0; 128];
        let mut packet = PacketBuilder::new(&mut buffer, SESSION, tickwire_market::SeqNo(seq));
        assert!(packet.push(&self.messages[seq as usize - 1]));
        let length = packet.finish();
        buffer[..length].to_vec()
    }

    /// What a snapshot says of now.
    fn snapshot(&self) -> Vec<Vec<u8>> {
        let directory = (1..)
            .zip(SYMBOLS)
            .map(|(locate, symbol)| Venue4::directory(locate, symbol));
        let orders = self
            .orders
            .iter()
            .map(|(&order, &locate)| Venue4::add(order, locate));
        let end = EndOfSnapshot::at(self.next()).as_bytes().to_vec();
        directory.chain(orders).chain([end]).collect()
    }
}

/// Books, and who may be told of.
struct Told {
    books: Books,
    wanted: [bool; 5],
}

impl EventSink for Told {
    fn on_event(&mut self, event: &MarketEvent) {
        let marks = matches!(event.kind, EventKind::Clear | EventKind::Gap);
        let of_feed = event.instrument == InstrumentId::WHOLE_FEED;
        assert!(
            marks || of_feed || self.wanted[event.instrument.index()],
            "nobody wants {event:?}"
        );
        self.books.apply(event);
    }
}

/// An ITCH channel with GLIMPSE whose subscriptions change: each operation is a byte that says what, and one
/// that says of whom. At every moment at which all messages have come, a wanted book that is live is the
/// venue's.
pub fn subscriptions(bytes: &[u8]) {
    let arbiter = ArbiterConfig {
        snapshot: true,
        buffer_packets: 8,
        packet_bytes: 128,
        gaps: 4,
        join_bytes: 200,
        ..ArbiterConfig::default()
    };
    let decoder = ItchDecoder::new(ItchConfig {
        instruments_max: 5,
        ..ItchConfig::default()
    });
    let mut channel = ItchChannel::new(ItchFeed::new(arbiter, decoder), SoupConfig::default());
    let mut told = Told {
        books: Books::new(BooksConfig {
            venue: Venue::Nasdaq,
            depth: Depth::ByOrder,
            instruments: 5,
            orders: 1 << 12,
            levels: 1 << 10,
            initial: BookState::Building,
            ..BooksConfig::default()
        }),
        wanted: [true; 5],
    };
    let mut venue = Venue4::new();
    let (mut sent, mut now) = (1, Nanos(1));
    let mut server: Option<std::vec::IntoIter<Vec<u8>>> = None;
    for operation in bytes.chunks_exact(2) {
        let (what, choice) = (operation[0], operation[1]);
        now = now.after(100_000);
        match what % 8 {
            0..=2 => venue.happens(choice),
            // Everything sent comes, or the first of it is lost.
            3 => {
                let lost = u64::from(choice % 16 == 0);
                for seq in (sent + lost).min(venue.next())..venue.next() {
                    channel.on_datagram(now, Port::Live, Line::A, &venue.datagram(seq), &mut told);
                }
                sent = venue.next();
            }
            4 | 5 => {
                let pattern = Pattern::new(PATTERNS[usize::from(choice % 8)]).expect("a pattern");
                let wanted = choice & 8 == 0;
                let named = (1..)
                    .zip(SYMBOLS)
                    .filter(|(_, s)| Symbol::new(s).is_some_and(|s| pattern.matches(&s)));
                let named: Vec<usize> = named.map(|(locate, _)| locate).collect();
                if wanted {
                    named.iter().for_each(|&locate| told.wanted[locate] = true);
                    channel
                        .subscribe(now, &pattern, &mut told)
                        .expect("there is room");
                } else {
                    channel
                        .unsubscribe(now, &pattern, &mut told)
                        .expect("there is room");
                    named.iter().for_each(|&locate| told.wanted[locate] = false);
                }
            }
            // The connection: opened, some of the snapshot, or cut.
            6 if choice % 16 == 0 && server.take().is_some() => {
                channel.disconnected(now, Port::SnapshotServer, &mut told);
            }
            6 => serve(now, choice, &venue, &mut server, &mut channel, &mut told),
            _ => channel.handle_timeout(now, &mut told),
        }
        let mut buffer = [0; 64];
        while let Some(request) = channel.poll_request(&mut buffer) {
            let seq = u64::from_be_bytes(*request[10..].first_chunk().expect("a request is of 20 bytes"));
            if seq < venue.next() && choice & 1 == 0 {
                let again = venue.datagram(seq);
                channel.on_datagram(now, Port::Requests, Line::A, &again, &mut told);
            }
        }
        if server.is_some() && !channel.wants_connection(Port::SnapshotServer) {
            server = None;
            channel.disconnected(now, Port::SnapshotServer, &mut told);
        }
        check(&venue, &channel, &told);
    }
}

/// Opens the connection if one is wanted, or sends the next few messages of the snapshot that began then.
fn serve(
    now: Nanos,
    choice: u8,
    venue: &Venue4,
    server: &mut Option<std::vec::IntoIter<Vec<u8>>>,
    channel: &mut ItchChannel,
    told: &mut Told,
) {
    let mut buffer = [0; 256];
    let mut send = |packet: Packet<'_>, channel: &mut ItchChannel, told: &mut Told| {
        let length = packet.encode(&mut buffer).expect("it fits");
        channel.on_bytes(now, Port::SnapshotServer, &buffer[..length], told);
    };
    let Some(messages) = server else {
        if channel.wants_connection(Port::SnapshotServer) {
            channel.connected(now, Port::SnapshotServer);
            while channel
                .poll_transmit(Port::SnapshotServer, &mut [0; 64])
                .is_some()
            {}
            let accepted = LoginAccepted::new(&SESSION, 1).expect("a session");
            send(Packet::LoginAccepted(&accepted), channel, told);
            *server = Some(venue.snapshot().into_iter());
        }
        return;
    };
    for message in messages.take(usize::from(choice % 16)) {
        send(Packet::Sequenced(&message), channel, told);
    }
}

/// What is said to be right is right, and what nobody wants is not said to be.
fn check(venue: &Venue4, channel: &ItchChannel, told: &Told) {
    let counters = channel.counters();
    assert!(counters.get(Counter::JoinsDone) <= counters.get(Counter::JoinsBegun));
    let is_whole = channel.state() == FeedState::Live && channel.next_seq().0 == venue.next();
    for (locate, symbol) in (1_u16..).zip(SYMBOLS) {
        let id = InstrumentId(locate.into());
        let is_known = Symbol::new(symbol).is_some_and(|symbol| channel.find(&symbol).is_some());
        let Some(book) = told
            .books
            .book(id)
            .filter(|book| is_whole && is_known && book.state() == BookState::Live)
        else {
            continue;
        };
        let ours: u64 = book
            .levels(tickwire_market::Side::Bid)
            .map(|level| u64::from(level.orders))
            .sum();
        let theirs = venue.orders.values().filter(|of| **of == locate).count() as u64;
        if told.wanted[id.index()] {
            assert_eq!(ours, theirs, "book {locate}");
        } else {
            assert_eq!(ours, 0, "book {locate} is left");
        }
    }
}
