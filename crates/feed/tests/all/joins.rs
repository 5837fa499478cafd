//! Instruments subscribed to in mid-session, step by step: what is told of the one that joins, and that
//! nothing else is told of the others. ITCH; the sequence is the same for PITCH.

use tickwire_feed::{
    ArbiterConfig, FeedHandler, ItchConfig, ItchDecoder, ItchFeed, Line, Pattern, PitchConfig,
};
use tickwire_feed::{PitchDecoder, PitchFeed, PitchUnit};
use tickwire_market::{Counter, EventSink, MarketEvent, MessageType, Nanos, SeqNo};
use tickwire_wire::itch50::{AddOrder, StockDirectory};
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Alpha, Char, Price4, Scaled};
use tickwire_wire::moldudp64::PacketBuilder;
use tickwire_wire::pitch::{self, AddOrderShort, DeleteOrder};

const NOW: Nanos = Nanos(1_000);

fn directory(locate: u16, stock: &str) -> Vec<u8> {
    let stock = Alpha::new(stock.as_bytes()).unwrap();
    let message = StockDirectory {
        stock,
        ..StockDirectory::at(locate, 1)
    };
    message.as_bytes().to_vec()
}

fn add(locate: u16, order: u64) -> Vec<u8> {
    let message = AddOrder {
        order_ref: order.into(),
        side: Char(b'B'),
        shares: 100.into(),
        price: Price4::new(10_000),
        ..AddOrder::at(locate, 1)
    };
    message.as_bytes().to_vec()
}

/// A feed of AAPL (1) and ZNGA (2), of which ZNGA is not wanted; two messages have been said.
struct Session {
    feed: ItchFeed,
    next: u64,
    session: [u8; 10],
    now: Nanos,
}

impl Session {
    fn new(join_bytes: usize) -> Session {
        let config = ArbiterConfig {
            snapshot: true,
            join_bytes,
            ..ArbiterConfig::default()
        };
        let decoder = ItchDecoder::new(ItchConfig {
            instruments_max: 8,
            ..ItchConfig::default()
        });
        let mut session = Session {
            feed: FeedHandler::new(config, decoder),
            next: 1,
            session: *b"0000000001",
            now: NOW,
        };
        session.unsubscribe("Z*");
        session.say(&directory(1, "AAPL"));
        session.say(&directory(2, "ZNGA"));
        session
    }

    fn heard(&mut self, act: impl FnOnce(&mut ItchFeed, &mut Words)) -> String {
        let mut words = Words::default();
        act(&mut self.feed, &mut words);
        words.0.join(" ")
    }

    /// The venue says it on its line.
    fn say(&mut self, message: &[u8]) -> String {
        let mut bytes = [0; 200];
        let mut packet = PacketBuilder::new(&mut bytes, self.session, SeqNo(self.next));
        assert!(packet.push(message));
        let length = packet.finish();
        self.next += 1;
        let now = self.now;
        self.heard(|feed, words| feed.on_packet(now, Line::A, &bytes[..length], words))
    }

    fn subscribe(&mut self, pattern: &str) -> String {
        let pattern: Pattern = pattern.parse().unwrap();
        self.heard(|feed, words| _ = feed.subscribe(NOW, &pattern, words).unwrap())
    }

    fn unsubscribe(&mut self, pattern: &str) -> String {
        let pattern: Pattern = pattern.parse().unwrap();
        self.heard(|feed, words| _ = feed.unsubscribe(NOW, &pattern, words).unwrap())
    }

    fn begin(&mut self) -> String {
        self.heard(|feed, words| feed.begin_snapshot(NOW, words))
    }

    fn load(&mut self, message: &[u8]) -> String {
        self.heard(|feed, words| feed.on_snapshot_message(NOW, message, words))
    }

    fn end(&mut self, next: u64) -> String {
        self.heard(|feed, words| feed.end_snapshot(NOW, SeqNo(next), words))
    }

    fn count(&self, counter: Counter) -> u64 {
        self.feed.counters().get(counter)
    }
}

/// Kind, instrument and order (or number) of every event; the type of every message before its first one.
#[derive(Default)]
struct Words(Vec<String>);

impl EventSink for Words {
    fn on_event(&mut self, event: &MarketEvent) {
        let what = if event.order_id.0 > 0 {
            event.order_id.0
        } else {
            event.seq.0
        };
        self.0
            .push(format!("{:?}:{}:{what}", event.kind, event.instrument.0));
    }

    fn on_message(&mut self, MessageType(kind): MessageType) {
        self.0.push(format!("{kind:x}"));
    }
}

#[test]
fn a_joining_book_is_loaded_and_the_others_go_on() {
    let mut s = Session::new(1000);
    assert_eq!(s.say(&add(2, 20)), "", "nobody wants it");
    assert_eq!(s.subscribe("ZNGA"), "Gap:2:4");
    assert!(s.feed.wants_snapshot());
    assert_eq!(s.say(&add(2, 21)), "", "held back");
    assert_eq!(s.say(&add(1, 10)), "41 Add:1:10");
    assert_eq!(s.begin(), "", "nothing changes for the others");
    assert_eq!(s.load(&directory(1, "AAPL")), "");
    assert_eq!(s.load(&add(1, 10)), "");
    assert_eq!(s.load(&add(2, 20)), "41 Add:2:20");
    assert_eq!(s.load(&add(2, 21)), "41 Add:2:21");
    // The snapshot is ahead of the lines: 21 and 22 are in it, 23 is not.
    assert_eq!(s.load(&add(2, 22)), "41 Add:2:22");
    assert_eq!(s.end(7), "");
    assert_eq!(s.say(&add(2, 22)), "Recovered:2:7");
    assert_eq!(s.say(&add(2, 23)), "41 Add:2:23");
    assert!(!s.feed.wants_snapshot());
    let counted = [Counter::JoinsBegun, Counter::JoinsDone, Counter::JoinsFailed].map(|c| s.count(c));
    assert_eq!(counted, [1, 1, 0]);
    let mut adds = (0, 0);
    s.feed.filter().seen_of_type(b'A'.into());
    s.feed.filter().kinds(&mut |kind, seen| {
        if kind == MessageType(b'A'.into()) {
            adds = (seen.seen, seen.filtered);
        }
    });
    assert_eq!(
        adds,
        (8, 3),
        "three of the snapshot; 20, and the two that it held already, were dropped"
    );
}

#[test]
fn what_came_behind_the_snapshot_follows_it() {
    let mut s = Session::new(1000);
    s.subscribe("ZNGA");
    s.say(&add(2, 21));
    s.begin();
    s.say(&add(2, 22));
    assert_eq!(s.load(&add(2, 21)), "41 Add:2:21");
    assert_eq!(s.end(4), "41 Add:2:22 Recovered:2:5");
}

#[test]
fn a_cut_connection_begins_again_with_an_empty_book() {
    let mut s = Session::new(1000);
    s.subscribe("ZNGA");
    s.begin();
    s.load(&add(2, 20));
    s.feed.lose_snapshot();
    assert!(s.feed.wants_snapshot() && s.count(Counter::JoinsFailed) == 1);
    assert_eq!(s.begin(), "Clear:2:3 Gap:2:3");
    assert_eq!(s.end(2), "", "older than what is held back");
    assert_eq!(s.count(Counter::JoinsFailed), 2);
    s.begin();
    assert_eq!(s.end(3), "Recovered:2:3");
}

#[test]
fn who_leaves_while_it_joins_is_not_loaded() {
    let mut s = Session::new(1000);
    s.subscribe("ZNGA");
    s.say(&add(2, 21));
    s.begin();
    assert_eq!(s.unsubscribe("*A"), "Clear:2:4 Gap:2:4");
    assert!(s.feed.is_snapshot_void() && !s.feed.wants_snapshot());
    assert_eq!((s.load(&add(2, 20)), s.end(5)), (String::new(), String::new()));
    assert_eq!(s.say(&add(2, 22)), "");
    let seen = s.feed.filter().seen_of_type(b'A'.into());
    assert_eq!((seen.seen, seen.filtered), (2, 2));
}

#[test]
fn who_comes_while_another_loads_is_next() {
    let mut s = Session::new(1000);
    s.unsubscribe("AAPL");
    s.subscribe("ZNGA");
    s.begin();
    assert_eq!(s.subscribe("AAPL"), "Gap:1:3");
    assert_eq!(s.say(&add(1, 10)), "", "not held: the next snapshot has it");
    assert_eq!(s.load(&add(1, 10)), "");
    assert_eq!(s.end(4), "Recovered:2:4");
    assert!(s.feed.wants_snapshot());
    assert_eq!(s.begin(), "Clear:1:4 Gap:1:4");
    assert_eq!(s.load(&add(1, 10)), "41 Add:1:10");
    assert_eq!(s.end(4), "Recovered:1:4");
}

#[test]
fn a_snapshot_of_the_whole_feed_and_a_new_session_take_in_who_joins() {
    let mut s = Session::new(1000);
    s.subscribe("ZNGA");
    s.say(&add(2, 21));
    s.begin();
    s.session = *b"0000000002";
    s.next = 1;
    s.now = Nanos(20 * Nanos::SECOND);
    let told = s.say(&directory(2, "ZNGA"));
    assert!(told.starts_with("Clear:0:"), "{told}");
    assert!(s.feed.is_snapshot_void(), "that of the session before");
    assert_eq!((s.load(&add(2, 20)), s.end(9)), (String::new(), String::new()));
    assert_eq!(s.say(&add(2, 99)), "41 Add:2:99");
    assert_eq!(s.count(Counter::JoinsDone), 1);
}

#[test]
fn too_much_held_back_begins_again() {
    let mut s = Session::new(150);
    s.subscribe("ZNGA");
    s.begin();
    for order in 21..24 {
        s.say(&add(2, order));
    }
    assert!(s.feed.is_snapshot_void() && s.feed.wants_snapshot());
    assert_eq!(s.end(6), "");
    s.begin();
    s.load(&add(2, 21));
    assert_eq!(s.end(5), "41 Add:2:23 Recovered:2:6");
    assert!(s.count(Counter::JoinsFailed) >= 1);
}

fn pitch_add(order: u64, symbol: &str) -> Vec<u8> {
    let message = AddOrderShort {
        order_id: order.into(),
        side: Char(b'B'),
        qty: 100.into(),
        symbol: Alpha::new(symbol.as_bytes()).unwrap(),
        price: Scaled(100.into()),
        ..AddOrderShort::BLANK_MESSAGE
    };
    message.as_bytes().to_vec()
}

/// Events wait for the next one, so that the last one is known; their messages are announced right before
/// them all the same.
#[test]
fn messages_are_announced_before_their_first_event_also_where_events_wait() {
    let mut feed = PitchFeed::new(
        PitchUnit::arbiter_config(1),
        PitchDecoder::new(PitchConfig::default()),
    );
    let mut bytes = [0; 500];
    let mut packet = pitch::PacketBuilder::new(&mut bytes, 1, 1);
    let delete = DeleteOrder {
        order_id: 1.into(),
        ..DeleteOrder::BLANK_MESSAGE
    };
    let time = pitch::Time {
        seconds: 34_200.into(),
        ..pitch::Time::BLANK_MESSAGE
    };
    for message in [
        &pitch_add(1, "AAPL")[..],
        time.as_bytes(),
        &pitch_add(2, "AAPL"),
        delete.as_bytes(),
    ] {
        assert!(packet.push(message));
    }
    let length = packet.finish();
    let mut words = Words::default();
    feed.on_packet(NOW, Line::A, &bytes[..length], &mut words);
    let told = words
        .0
        .iter()
        .filter(|word| !word.starts_with("Recovered"))
        .cloned();
    let told: Vec<String> = told.collect();
    assert_eq!(
        told.join(" "),
        "22 Definition:1:1 Add:1:1 22 Add:1:2 29 Delete:1:1"
    );
}
