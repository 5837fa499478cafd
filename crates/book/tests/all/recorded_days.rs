//! Recorded sessions with their orders, whole: a CME future from its snapshot on, and a stock's best prices
//! after every message of a day. Both books, the fast and the naive one, see everything; so do copies that
//! know only what the books say they changed.

use crate::dbn;
use crate::itch;
use crate::mirror;

use dbn::Mbo;
use tickwire_book::naive::{NaiveApplied, NaiveBooks};
use tickwire_book::{Applied, Books, BooksConfig, Depth, Digest, OrderView};
use tickwire_market::{
    BookState, Counter, EventFlags, EventKind, InstrumentId, Level, MarketEvent, OrderId, Price, SeqNo, Side,
    Venue, Volume,
};
use tickwire_testdata::{captures, file_bytes, framed_messages};

const ONE: InstrumentId = InstrumentId(1);

/// The fast books, the naive ones, and the copies.
struct Both {
    fast: Books,
    naive: NaiveBooks,
    mirror: mirror::Mirror,
}

impl Both {
    fn new(depth: Depth, instruments: u32) -> Both {
        let fast = Books::new(BooksConfig {
            depth,
            instruments,
            orders: 1 << 17,
            levels: 1 << 17,
            tracked: true,
            ..BooksConfig::default()
        });
        Both {
            mirror: mirror::Mirror::new(&fast),
            fast,
            naive: NaiveBooks::new(Venue::Nasdaq, depth, instruments, BookState::Live),
        }
    }

    /// Applies an event that must fit, and compares the book it touched.
    fn apply(&mut self, event: &MarketEvent) {
        let expected = self.naive.apply(event);
        let got = self.fast.apply(event);
        match (got, expected) {
            (Applied::Update(got), NaiveApplied::Update(expected)) => assert_eq!(*got, expected, "{event:?}"),
            other => panic!("{other:?} of {event:?}"),
        }
        let outcome = got.outcome();
        self.mirror.follow(&self.fast, event, outcome);
        let (a, b) = (
            self.fast.digest(event.instrument),
            self.naive.digest(event.instrument),
        );
        assert_eq!(a, b, "{event:?}");
    }

    fn best(&self, side: Side) -> Option<Level> {
        self.fast.book(ONE).unwrap().best(side)
    }

    fn check(&self) {
        self.mirror.check(&self.fast);
        assert_eq!(self.fast.state_hash(), self.naive.state_hash());
        assert_eq!(self.fast.counters().get(Counter::BookRejects), 0);
        if self.fast.config().depth == Depth::ByOrder {
            let mut digest = Digest::default();
            self.fast
                .iter()
                .for_each(|book| book.digest_queues_into(&mut digest));
            assert_eq!(digest.finish(), self.naive.queues_hash());
        }
    }
}

/// The event of a record that changes the book; fills and trades do not: the modification or the cancel after
/// them does.
fn event_of(record: &Mbo) -> Option<MarketEvent> {
    let kind = match record.action {
        b'A' => EventKind::Add,
        b'C' => EventKind::Reduce,
        b'M' => EventKind::Modify,
        b'F' | b'T' => return None,
        other => panic!("action {}", other as char),
    };
    Some(MarketEvent {
        kind,
        seq: SeqNo(record.sequence.into()),
        venue_ts: record.ts_event,
        instrument: ONE,
        order_id: record.order_id,
        side: record.side.expect("orders have a side"),
        price: record.price,
        qty: Volume(record.size.into()),
        flags: if record.flags & Mbo::SNAPSHOT != 0 {
            EventFlags::SNAPSHOT
        } else {
            EventFlags::NONE
        },
        ..MarketEvent::default()
    })
}

/// Christmas Day in ESH4: the snapshot of the evening before, then the opening and its first half hour. Every
/// one of the 68,792 records fits, and the market is never locked or crossed while it trades: fills and
/// trades that took from the book too would leave it so.
#[tickwire_testdata::recorded_data("captures/books/cme-mbo")]
#[test]
fn a_future_is_right_from_its_snapshot_through_every_order_and_fill() {
    let snapshot = dbn::mbo_records(&captures("books/cme-mbo/esh4-glbx-mdp3-20231224.mbo.dbn.zst"));
    let records = dbn::mbo_records(&captures("books/cme-mbo/esh4-glbx-mdp3-20231225.mbo.dbn.zst"));
    assert_eq!((snapshot.len(), records.len()), (8_725, 68_792));
    for depth in [Depth::ByOrder, Depth::Aggregated] {
        let mut books = Both::new(depth, 2);
        for record in &snapshot {
            books.apply(&event_of(record).expect("a snapshot is orders"));
        }
        let from_snapshot = books.fast.state_hash();
        let mut books = Both::new(depth, 2);
        let (mut fills, mut trading, mut compared) = (0, false, 0);
        for (n, record) in records.iter().enumerate() {
            if n == snapshot.len() {
                // The day begins with the evening's snapshot, said again.
                assert_eq!(books.fast.state_hash(), from_snapshot);
            }
            trading |= record.action == b'T';
            let Some(event) = event_of(record) else {
                fills += u32::from(record.action == b'F' && record.side.is_some());
                continue;
            };
            books.apply(&event);
            if trading && record.flags & Mbo::LAST != 0 {
                let (bid, ask) = (books.best(Side::Bid).unwrap(), books.best(Side::Ask).unwrap());
                assert!(bid.price < ask.price, "record {n} {record:?}: {bid:?} {ask:?}");
                compared += 1;
            }
        }
        books.check();
        let orders: u64 = books.fast.totals(ONE).iter().map(|side| side.orders).sum();
        assert_eq!((orders, fills), (11_217, 6_336));
        assert!(compared > 40_000, "{compared}");
        let best = Side::BOTH.map(|side| books.best(side).unwrap().price.to_string());
        assert_eq!(best, ["4810.00", "4810.25"]);
    }
}

/// LOBSTER's Amazon, the best prices after each of a day's 57,515 messages. The file has only what touched
/// the best prices: when a best level is used up, the next one comes from orders never seen, and is taken
/// from the row; every other row must follow from the messages.
#[tickwire_testdata::recorded_data("captures/books/lobster")]
#[test]
fn the_best_prices_of_amazons_day_equal_lobsters_after_every_message() {
    let text = |rel: &str| String::from_utf8(file_bytes(&captures(rel))).unwrap();
    let messages = text("books/lobster/AMZN_2012-06-21_34200000_57600000_message_1.csv");
    let rows = text("books/lobster/AMZN_2012-06-21_34200000_57600000_orderbook_1.csv");
    let mut day = Day {
        books: Both::new(Depth::ByOrder, 2),
        seeds: SEEDS,
        revealed: 0,
    };
    let mut rows_compared = 0;
    for (n, (message, row)) in messages.lines().zip(rows.lines()).skip(1).enumerate() {
        let row: Vec<i64> = row.split(',').map(|f| f.parse().unwrap()).collect();
        let message: Vec<&str> = message.split(',').collect();
        let [kind, id, qty, price, direction] = [1, 2, 3, 4, 5].map(|i| message[i].parse::<i64>().unwrap());
        let side = if direction == 1 { Side::Bid } else { Side::Ask };
        let shown = [(row[2], row[3]), (row[0], row[1])].map(|(price, qty)| Level {
            price: Price::from_4dp(price as u32),
            qty: Volume(qty as u64),
            orders: 0,
        });
        if n == 0 {
            Side::BOTH
                .iter()
                .for_each(|&side| day.reveal(side, shown[side as usize]));
        }
        let used_up = day.message(
            kind,
            OrderId(id as u64),
            side,
            Price::from_4dp(price as u32),
            qty as u64,
        );
        if used_up {
            day.revealed += 1;
            day.reveal(side, shown[side as usize]);
        }
        for side in Side::BOTH {
            let (best, shown) = (day.books.best(side).unwrap(), shown[side as usize]);
            assert_eq!(
                (best.price, best.qty),
                (shown.price, shown.qty),
                "row {n} {side:?}"
            );
        }
        rows_compared += 1;
    }
    day.books.check();
    // Of 115,030 best prices 101,077 follow from the messages.
    assert_eq!((rows_compared, day.revealed), (57_515, 13_953));
}

/// Ids from here on stand for orders never seen.
const SEEDS: u64 = 1 << 40;

struct Day {
    books: Both,
    seeds: u64,
    revealed: u64,
}

impl Day {
    /// Whether the message used up the best level.
    fn message(&mut self, kind: i64, id: OrderId, side: Side, price: Price, qty: u64) -> bool {
        let event = MarketEvent {
            instrument: ONE,
            order_id: id,
            side,
            price,
            qty: Volume(qty),
            ..MarketEvent::default()
        };
        let is_taken = match kind {
            1 => {
                self.books.apply(&event);
                false
            }
            2..=4 => {
                // An order never seen is part of what its level was when it was taken from a row.
                let queue: Vec<OrderView> = self.books.fast.book(ONE).unwrap().orders(side, price).collect();
                let known = queue.iter().find(|order| order.id == id);
                let order = known.or_else(|| queue.iter().find(|order| order.id.0 >= SEEDS));
                let kind = EventKind::Reduce;
                let order_id = order
                    .unwrap_or_else(|| panic!("{id:?} at {price} is not there"))
                    .id;
                self.books.apply(&MarketEvent {
                    kind,
                    order_id,
                    ..event
                });
                true
            }
            // A hidden order's execution.
            5 => false,
            other => panic!("type {other}"),
        };
        is_taken
            && self
                .books
                .fast
                .book(ONE)
                .unwrap()
                .levels(side)
                .all(|level| level.price != price)
    }

    /// Makes a level the only one of its side.
    fn reveal(&mut self, side: Side, level: Level) {
        let book = self.books.fast.book(ONE).unwrap();
        let levels: Vec<Level> = book.levels(side).collect();
        let orders: Vec<_> = levels
            .iter()
            .flat_map(|level| book.orders(side, level.price))
            .collect();
        for order in orders {
            self.books.apply(&MarketEvent {
                kind: EventKind::Delete,
                instrument: ONE,
                order_id: order.id,
                ..MarketEvent::default()
            });
        }
        self.seeds += 1;
        self.books.apply(&MarketEvent {
            instrument: ONE,
            order_id: OrderId(self.seeds),
            side,
            price: level.price,
            qty: level.qty,
            ..MarketEvent::default()
        });
    }
}

#[tickwire_testdata::recorded_data("captures/books/itch-synthetic")]
#[test]
fn the_synthetic_session_is_right_after_every_message() {
    let bytes = file_bytes(&captures("books/itch-synthetic/synth120k.itch"));
    for depth in [Depth::Aggregated, Depth::ByOrder] {
        let mut books = Both::new(depth, 512);
        for (seq, message) in framed_messages(&bytes).into_iter().enumerate() {
            if let Some(event) = itch::decode(message, seq as u64) {
                books.apply(&event);
            }
        }
        books.check();
    }
}
