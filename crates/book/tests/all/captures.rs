//! The books against recorded data: generated and real ITCH, LOBSTER's Apple, a vendor's ten-level Nasdaq
//! rows.

use crate::itch;

use std::collections::{HashMap, HashSet};
use tickwire_book::naive::NaiveBooks;
use tickwire_book::{Applied, Books, BooksConfig, Depth};
use tickwire_market::{
    BookState, Counter, EventFlags, EventKind, InstrumentId, Level, MarketEvent, OrderId, Price, Side, Venue,
    Volume,
};
use tickwire_testdata::{captures, file_bytes, framed_messages};

fn books(depth: Depth) -> Books {
    let small = BooksConfig {
        orders: 1 << 17,
        ..BooksConfig::default()
    };
    Books::new(BooksConfig {
        depth,
        instruments: 16_384,
        ..small
    })
}

fn text(rel: &str) -> String {
    std::fs::read_to_string(captures(rel)).unwrap_or_else(|e| panic!("{rel}: {e}"))
}

#[tickwire_testdata::recorded_data("captures/books/itch-synthetic")]
#[test]
fn the_synthetic_session_ends_in_its_expected_books() {
    let bytes = file_bytes(&captures("books/itch-synthetic/synth120k.itch"));
    for depth in [Depth::Aggregated, Depth::ByOrder] {
        let mut books = books(depth);
        for (seq, message) in framed_messages(&bytes).into_iter().enumerate() {
            if let Some(event) = itch::decode(message, seq as u64) {
                assert!(matches!(books.apply(&event), Applied::Update(_)), "{event:?}");
            }
        }
        let mut rows = 0;
        for row in text("books/itch-synthetic/expected_books.csv").lines().skip(2) {
            let field: Vec<u64> = row.split(',').map(|f| f.parse().unwrap()).collect();
            let book = books.book(InstrumentId(field[0] as u32)).unwrap();
            let top = |side| book.best(side).map_or((Price::ZERO, 0), |l| (l.price, l.qty.0));
            assert_eq!(
                top(Side::Bid),
                (Price::from_4dp(field[1] as u32), field[2]),
                "{row}"
            );
            assert_eq!(
                top(Side::Ask),
                (Price::from_4dp(field[3] as u32), field[4]),
                "{row}"
            );
            assert_eq!(book.levels(Side::Bid).len() as u64, field[5], "{row}");
            assert_eq!(book.levels(Side::Ask).len() as u64, field[6], "{row}");
            let orders = Side::BOTH.map(|s| book.levels(s).map(|l| l.orders as u64).sum::<u64>());
            assert_eq!(orders.iter().sum::<u64>(), field[7], "{row}");
            rows += 1;
        }
        assert_eq!(rows, 300);
        assert_eq!(books.counters().get(Counter::BookRejects), 0);
    }
}

#[tickwire_testdata::recorded_data("captures/itch-files")]
#[test]
fn the_head_of_a_real_session_gives_the_same_books_as_the_naive_ones() {
    let bytes = file_bytes(&captures("itch-files/real-head-1000.itch"));
    let mut fast = books(Depth::ByOrder);
    let mut naive = NaiveBooks::new(Venue::Nasdaq, Depth::ByOrder, 16_384, BookState::Live);
    for (seq, message) in framed_messages(&bytes).into_iter().enumerate() {
        if let Some(event) = itch::decode(message, seq as u64) {
            naive.apply(&event);
            fast.apply(&event);
        }
    }
    assert_eq!(fast.state_hash(), naive.state_hash());
}

/// The book of LOBSTER's Apple rows after every message. Orders from before the window are unknown: the first
/// row's levels are seeded as one order each, as are levels that enter the ten from below, and what such an
/// order loses is taken from the seed of its price.
#[tickwire_testdata::recorded_data("captures/books/lobster")]
#[test]
fn the_apple_book_equals_lobsters_six_best_levels_after_every_message() {
    let messages = text("books/lobster/AAPL_first1000_message_10.csv");
    let rows = text("books/lobster/AAPL_first1000_orderbook_10.csv");
    let rows: Vec<Vec<i64>> = rows
        .lines()
        .map(|r| r.split(',').map(|f| f.parse().unwrap()).collect())
        .collect();
    let mut books = books(Depth::ByOrder);
    let instrument = InstrumentId(1);
    let mut seeds = HashMap::new();
    let mut known = HashSet::new();
    let apply = |books: &mut Books, event: MarketEvent| {
        let event = MarketEvent { instrument, ..event };
        assert!(matches!(books.apply(&event), Applied::Update(_)), "{event:?}");
    };
    for (n, (message, row)) in messages.lines().zip(&rows).enumerate() {
        let f: Vec<&str> = message.split(',').collect();
        let [kind, id, qty, price, direction] = [1, 2, 3, 4, 5].map(|i| f[i].parse::<i64>().unwrap());
        let side = if direction == 1 { Side::Bid } else { Side::Ask };
        let order_id = OrderId(id as u64);
        let event = MarketEvent {
            order_id,
            side,
            price: Price::from_4dp(price as u32),
            qty: Volume(qty as u64),
            ..MarketEvent::default()
        };
        if n == 0 {
            assert_eq!(kind, 1);
            for (level, side) in (0..10).flat_map(|l| [(l, Side::Ask), (l, Side::Bid)]) {
                let at = level * 4 + side.ne(&Side::Ask) as usize * 2;
                if row[at] != price {
                    let seed = OrderId(1_000_000 + at as u64);
                    seeds.insert((side, row[at]), seed);
                    let (price, qty) = (Price::from_4dp(row[at] as u32), Volume(row[at + 1] as u64));
                    apply(
                        &mut books,
                        MarketEvent {
                            order_id: seed,
                            side,
                            price,
                            qty,
                            ..event
                        },
                    );
                }
            }
        }
        let target = if known.contains(&id) {
            Some(order_id)
        } else {
            seeds.get(&(side, price)).copied()
        };
        match (kind, target) {
            (1, _) => {
                known.insert(id);
                apply(&mut books, event);
            }
            (2..=4, Some(order_id)) => apply(
                &mut books,
                MarketEvent {
                    kind: EventKind::Reduce,
                    order_id,
                    ..event
                },
            ),
            // An order from before the window on a level beyond the ten of the first row; or hidden; or a
            // halt.
            (2..=4, None) | (5 | 7, _) => {}
            _ => panic!("row {n}: type {kind}"),
        }
        for (level, side) in (0..10).flat_map(|l| [(l, Side::Ask), (l, Side::Bid)]) {
            let at = level * 4 + side.ne(&Side::Ask) as usize * 2;
            let (price, qty) = (Price::from_4dp(row[at] as u32), Volume(row[at + 1] as u64));
            let held = books
                .book(instrument)
                .unwrap()
                .levels(side)
                .find(|l| l.price == price);
            if level < 6 {
                let nth = books.book(instrument).unwrap().levels(side).nth(level);
                let found = nth.map(|l| (l.price, l.qty));
                assert_eq!(
                    found,
                    Some((price, qty)),
                    "row {n} level {level} {side:?}: {message}"
                );
            } else if held.is_none() {
                // Came into LOBSTER's ten levels from below: its orders were never in the file.
                let order_id = OrderId(1_000_000_000 + (n * 40 + at) as u64);
                seeds.insert((side, row[at]), order_id);
                apply(
                    &mut books,
                    MarketEvent {
                        order_id,
                        side,
                        price,
                        qty,
                        ..MarketEvent::default()
                    },
                );
            }
        }
    }
    assert!(rows.len() > 990);
}

fn column(header: &str, name: &str) -> usize {
    header
        .split(',')
        .position(|c| c == name)
        .unwrap_or_else(|| panic!("no column {name}"))
}

/// The first ten levels of a vendor row: price text, size, count.
fn vendor_levels(header: &str, row: &[&str], side: &str) -> Vec<Level> {
    let at = column(header, &format!("{side}_px_00"));
    (0..10)
        .map(|level| at + level * 6)
        .take_while(|&at| !row[at].is_empty())
        .map(|at| Level {
            price: row[at].parse().unwrap(),
            qty: Volume(row[at + 1].parse().unwrap()),
            orders: row[at + 2].parse().unwrap(),
        })
        .collect()
}

/// Databento's market-by-order rows of one symbol, and the ten-level rows the vendor made of them. A vendor
/// row is right if the book passes through its state at the row's time and sequence number.
#[tickwire_testdata::recorded_data("captures/books/xnas-mbo-mbp10")]
#[test]
fn the_vendors_ten_level_rows_are_states_the_book_passes_through() {
    let (mbo, mbp) = (
        text("books/xnas-mbo-mbp10/mbo.csv"),
        text("books/xnas-mbo-mbp10/mbp_actual.csv"),
    );
    let mut books = books(Depth::ByOrder);
    let mut states: HashMap<(String, String), Vec<[Vec<Level>; 2]>> = HashMap::new();
    let mut lines = mbo.lines();
    let header = lines.next().unwrap();
    let [ts, action, side, price, size, order_id, sequence] = [
        "ts_event", "action", "side", "price", "size", "order_id", "sequence",
    ]
    .map(|c| column(header, c));
    for line in lines {
        let row: Vec<&str> = line.split(',').collect();
        let event = MarketEvent {
            instrument: InstrumentId(1),
            order_id: OrderId(row[order_id].parse().unwrap()),
            side: if row[side] == "B" { Side::Bid } else { Side::Ask },
            price: row[price].parse().unwrap_or(Price::ZERO),
            qty: Volume(row[size].parse().unwrap()),
            flags: EventFlags::NONE,
            ..MarketEvent::default()
        };
        // Trades and fills (T, F) are followed by the cancels that say what they took from the book.
        match row[action] {
            "A" => books.apply(&event),
            "C" => books.apply(&MarketEvent {
                kind: EventKind::Reduce,
                ..event
            }),
            "R" => books.apply(&MarketEvent {
                kind: EventKind::Clear,
                ..event
            }),
            "T" | "F" => Applied::None,
            other => panic!("action {other}"),
        };
        let book = books.book(InstrumentId(1)).unwrap();
        let state = Side::BOTH.map(|s| book.levels(s).take(10).collect::<Vec<_>>());
        states
            .entry((row[ts].into(), row[sequence].into()))
            .or_default()
            .push(state);
    }
    assert_eq!(books.counters().get(Counter::BookRejects), 0);
    let mut lines = mbp.lines();
    let header = lines.next().unwrap();
    let [ts, sequence] = ["ts_event", "sequence"].map(|c| column(header, c));
    let mut compared = 0;
    for line in lines {
        let row: Vec<&str> = line.split(',').collect();
        let expected = ["bid", "ask"].map(|side| vendor_levels(header, &row, side));
        let passed = &states[&(row[ts].to_string(), row[sequence].to_string())];
        assert!(
            passed.contains(&expected),
            "{line}\nbook passed through {passed:?}"
        );
        compared += 1;
    }
    assert_eq!(compared, 3_928);
}
