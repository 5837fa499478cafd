//! nautilus_model's order books, from a session of ITCH 5.0 in memory: nanoseconds a message.
//!
//! ```text
//! tickwire-book-peers SESSION BOOKS orders|levels [best]
//! ```
//! `cargo xtask book-peers` builds and runs it. `orders`: books of orders (`L3_MBO`), to which every change
//! of an order is told. `levels`: books of levels (`L2_MBP`), to which the new sum of a level is told. With
//! `best` both sides' best prices are read after each message that changes a book.
//!
//! The books take changes, not messages, and want to be told side, price and what is left. So a piece of the
//! session is converted before its time is taken, with the orders and sums in maps of ours: decoding, looking
//! for the order and adding up are in our time and not in theirs. Memory is the system's allocator's, as in
//! the peer's own programs.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use nautilus_model::data::BookOrder;
use nautilus_model::enums::{BookAction, BookType, OrderSide};
use nautilus_model::identifiers::InstrumentId;
use nautilus_model::orderbook::{BookLevel, OrderBook};
use nautilus_model::types::fixed::FIXED_PRECISION;
use nautilus_model::types::price::PriceRaw;
use nautilus_model::types::quantity::QuantityRaw;
use nautilus_model::types::{Price, Quantity};
use tickwire_market::{EventKind, MarketEvent, Side};
use tickwire_runtime::clock::thread_cpu_ns;
use tickwire_runtime::files;

#[path = "../../../crates/book/tests/all/itch.rs"]
mod itch;

const USAGE: &str = "usage: tickwire-book-peers SESSION BOOKS orders|levels [best]";

/// Messages that are converted at a time: more bytes than the caches have.
const PIECE: usize = 200_000;
/// Digits of a price behind the point, in ITCH.
const PRICE_DIGITS: u8 = 4;
/// What is one share.
const SHARE: QuantityRaw = (10 as QuantityRaw).pow(FIXED_PRECISION as u32);

/// What a book is told.
struct Change {
    book: usize,
    action: BookAction,
    order: BookOrder,
    /// It is the last one of its message.
    is_last: bool,
}

/// An order as it is now.
#[derive(Clone, Copy)]
struct Order {
    side: Side,
    price: i64,
    qty: u64,
}

/// Makes changes of messages.
struct Converter {
    has_levels: bool,
    orders: HashMap<u64, Order>,
    /// Sums by book, side and price.
    levels: HashMap<(usize, bool, i64), u64>,
    changes: Vec<Change>,
}

impl Converter {
    fn convert(&mut self, event: &MarketEvent) {
        let (book, id) = (event.instrument.0 as usize, event.order_id.0);
        let known = |orders: &HashMap<u64, Order>| *orders.get(&id).expect("an order that is known");
        match event.kind {
            EventKind::Add => self.enter(book, id, event.side, event),
            EventKind::Replace => {
                let old = known(&self.orders);
                self.take(book, id, old, old.qty);
                self.enter(book, event.ref_id, old.side, event);
            }
            EventKind::Delete => {
                let old = known(&self.orders);
                self.take(book, id, old, old.qty);
            }
            EventKind::Execute | EventKind::Reduce => {
                let old = known(&self.orders);
                self.take(book, id, old, event.qty.0);
            }
            _ => return,
        }
        if let Some(change) = self.changes.last_mut() {
            change.is_last = true;
        }
    }

    /// An order is new.
    fn enter(&mut self, book: usize, id: u64, side: Side, event: &MarketEvent) {
        let order = Order {
            side,
            price: event.price.raw(),
            qty: event.qty.0,
        };
        self.orders.insert(id, order);
        self.tell(book, id, order, order.qty as i64, BookAction::Add);
    }

    /// So much of an order is gone.
    fn take(&mut self, book: usize, id: u64, old: Order, qty: u64) {
        let left = Order {
            qty: old.qty - qty,
            ..old
        };
        let action = match left.qty {
            0 => self.orders.remove(&id).map(|_| BookAction::Delete),
            _ => self.orders.insert(id, left).map(|_| BookAction::Update),
        };
        let action = action.expect("an order that is known");
        self.tell(book, id, left, -(qty as i64), action);
    }

    fn tell(&mut self, book: usize, id: u64, order: Order, change: i64, action: BookAction) {
        let (action, qty) = if self.has_levels {
            let key = (book, order.side == Side::Ask, order.price);
            let before = self.levels.get(&key).copied().unwrap_or(0);
            let sum = before.checked_add_signed(change).expect("a sum of a level");
            let action = match (before, sum) {
                (_, 0) => self.levels.remove(&key).map(|_| BookAction::Delete),
                (0, _) => self.levels.insert(key, sum).or(Some(0)).map(|_| BookAction::Add),
                _ => self.levels.insert(key, sum).map(|_| BookAction::Update),
            };
            (action.expect("a level that is known"), sum)
        } else {
            (action, order.qty)
        };
        let side = match order.side {
            Side::Bid => OrderSide::Buy,
            Side::Ask => OrderSide::Sell,
        };
        // A billionth is the unit of both, or theirs is a fraction of it.
        let price = order.price as PriceRaw * (10 as PriceRaw).pow(FIXED_PRECISION as u32 - 9);
        let price = Price::from_raw(price, PRICE_DIGITS);
        let size = Quantity::from_raw(qty as QuantityRaw * SHARE, 0);
        self.changes.push(Change {
            book,
            action,
            order: BookOrder::new(side, price, size, id),
            is_last: false,
        });
    }
}

/// The messages of a framed buffer.
struct Frames<'a>(&'a [u8]);

impl<'a> Iterator for Frames<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_first_chunk::<2>()?;
        let (message, rest) = rest.split_at_checked(u16::from_be_bytes(*head) as usize)?;
        self.0 = rest;
        Some(message)
    }
}

/// What is timed.
#[inline(never)]
fn apply(books: &mut [OrderBook], changes: &[Change], reads_best: bool, sequence: &mut u64) {
    for change in changes {
        let book = &mut books[change.book];
        let (number, time) = (*sequence, (*sequence).into());
        match change.action {
            BookAction::Add => book.add(change.order, 0, number, time),
            BookAction::Update => book.update(change.order, 0, number, time),
            _ => book.delete(change.order, 0, number, time),
        }
        if change.is_last {
            *sequence += 1;
            if reads_best {
                black_box((book.best_bid_price(), book.best_ask_price()));
            }
        }
    }
}

/// The best level of a side, with how many there are.
fn side<'a>(mut levels: impl Iterator<Item = &'a BookLevel>) -> (u64, u64, usize) {
    let unit = (10 as PriceRaw).pow((FIXED_PRECISION - PRICE_DIGITS) as u32);
    let Some(best) = levels.next() else {
        return (0, 0, 0);
    };
    let price = (best.price.value.raw / unit) as u64;
    (price, best.size_raw() / SHARE, 1 + levels.count())
}

fn run(words: &[&str]) -> Result<f64, String> {
    let (session, path, kind, reads_best) = match words {
        [session, books, kind] => (*session, *books, *kind, false),
        [session, books, kind, "best"] => (*session, *books, *kind, true),
        _ => return Err(USAGE.into()),
    };
    let (kind, has_levels) = match kind {
        "orders" => (BookType::L3_MBO, false),
        "levels" => (BookType::L2_MBP, true),
        _ => return Err(USAGE.into()),
    };
    let bytes = std::fs::read(session).map_err(|e| format!("{session}: {e}"))?;
    let mut converter = Converter {
        has_levels,
        orders: HashMap::new(),
        levels: HashMap::new(),
        changes: Vec::new(),
    };
    let locates =
        Frames(&bytes).filter_map(|message| Some(u16::from_be_bytes([*message.get(1)?, *message.get(2)?])));
    let last = locates.max().ok_or(format!("{session}: no message in it"))?;
    let name = |locate: u16| InstrumentId::from(format!("S{locate}.XNAS").as_str());
    let mut books: Vec<OrderBook> = (0..=last)
        .map(|locate| OrderBook::new(name(locate), kind))
        .collect();

    let (mut frames, mut messages, mut took, mut sequence) = (Frames(&bytes), 0u64, 0, 0);
    while !frames.0.is_empty() {
        converter.changes.clear();
        let before = messages;
        for message in frames.by_ref().take(PIECE) {
            if let Some(event) = itch::decode(message, messages) {
                converter.convert(&event);
            }
            messages += 1;
        }
        if messages == before {
            return Err(format!("{session}: its last message is not whole"));
        }
        let start = thread_cpu_ns();
        apply(&mut books, &converter.changes, reads_best, &mut sequence);
        took += thread_cpu_ns() - start;
    }
    let mut lines = String::new();
    for (locate, book) in books.iter().enumerate().skip(1) {
        let (bid, ask) = (side(book.bids(None)), side(book.asks(None)));
        lines += &format!(
            "{locate},{},{},{},{},{},{}\n",
            bid.0, bid.1, ask.0, ask.1, bid.2, ask.2
        );
    }
    files::write(Path::new(path), lines).map_err(|e| format!("{path}: {e}"))?;
    Ok(took as f64 / messages as f64)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(ns) => {
            println!("{ns:.3}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}
