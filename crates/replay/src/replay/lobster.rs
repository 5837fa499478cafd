//! LOBSTER: a file of messages, and the order book that belongs to it, a row for each message.
//!
//! | type | book |
//! |---|---|
//! | 1 | adds an order |
//! | 2, 3, 4 | takes a part, all, or what was executed from an order; one that was entered before the file begins is not known: nothing changes, or what the row showed of it |
//! | 5, 6, 7 | none: executions of hidden orders, crosses, halts |
//!
//! The order book is read row by row beside the messages: the first row is the book to begin with, levels
//! that come into sight behind those shown before are taken from their row, and every row is compared with
//! the book.

use std::path::Path;

use tickwire_book::Books;
use tickwire_market::{
    Counter, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, Side, TradingStatus,
    Volume,
};
use tickwire_runtime::recordfile::LineFile;

use super::records::{Check, Records};
use crate::played::Follow;
use crate::tape::End;

/// Orders with ids from here on stand for what a row shows of orders never seen.
const UNSEEN: u64 = 1 << 62;
/// The only instrument of a LOBSTER file.
pub(super) const ONE: InstrumentId = InstrumentId(1);
/// What LOBSTER writes where there is no level.
const NO_LEVEL: i64 = 9_999_999_999;
/// 0.0001 in 1e-9.
const UNIT: i64 = 100_000;

/// The rows of a LOBSTER order book.
pub(super) struct Rows {
    file: LineFile,
    name: String,
    /// The row at hand: ask price, ask size, bid price, bid size, level by level.
    row: Vec<i64>,
    /// The row at hand was read already: it is the file's first.
    is_ahead: bool,
    /// By side: levels up to here are known from messages; `None`: all.
    known_to: [Option<i64>; 2],
    begun: bool,
    unseen: u64,
}

impl Rows {
    /// Reads up to the first row.
    pub(super) fn open(path: &Path) -> Result<Rows, End> {
        let mut rows = Rows {
            file: LineFile::open(path)?,
            name: path.display().to_string(),
            row: Vec::new(),
            is_ahead: false,
            known_to: [None; 2],
            begun: false,
            unseen: UNSEEN,
        };
        let first = rows.next();
        // It may begin with a line of names.
        let first = first.or_else(|error| {
            if rows.file.number() == 1 {
                rows.next()
            } else {
                Err(error)
            }
        });
        rows.is_ahead = first.map_err(End::Damaged)?;
        Ok(rows)
    }

    /// Goes on to the next row; whether there is one.
    fn next(&mut self) -> Result<bool, String> {
        if std::mem::take(&mut self.is_ahead) {
            return Ok(true);
        }
        self.row.clear();
        let Some((number, line)) = self.file.next_line().map_err(|e| e.to_string())? else {
            return Ok(false);
        };
        let text = std::str::from_utf8(line).unwrap_or_default();
        let mut is_row = true;
        for field in text.split(',') {
            match field.trim().parse() {
                Ok(number) => self.row.push(number),
                Err(_) => is_row = false,
            }
        }
        match is_row && !self.row.is_empty() && self.row.len().is_multiple_of(4) {
            true => Ok(true),
            false => Err(format!(
                "{}: line {number} is no row of a LOBSTER order book (ask price, ask size, bid price, bid size, level by level), \
                 and the file is no DBN file of mbp-10",
                self.name
            )),
        }
    }
}

impl<F: Follow> Records<F> {
    pub(super) fn lobster(&mut self, line: &[u8]) {
        let Some((kind, event)) = message(line) else {
            return self.counters.bump(Counter::Malformed);
        };
        self.counters.bump(Counter::Messages);
        self.to.record(event.venue_ts, Some(ONE));
        let is_first = matches!(&self.check, Check::Rows(rows) if !rows.begun);
        // The first row shows the book after the first message.
        self.touch(ONE, is_first);
        let event = MarketEvent {
            seq: self.next,
            ..event
        };
        self.next = self.next.next();
        match kind {
            _ if is_first => {}
            1 => self.tell(&MarketEvent {
                kind: EventKind::Add,
                ..event
            }),
            2..=4 => {
                let order_id = match self.to.order(event.order_id) {
                    Some(order) if (order.side, order.price) == (event.side, event.price) => Some(order.id),
                    _ => self.unseen_at(event.side, event.price),
                };
                match order_id {
                    Some(order_id) => self.tell(&MarketEvent {
                        kind: match kind {
                            4 => EventKind::Execute,
                            _ => EventKind::Reduce,
                        },
                        order_id,
                        ..event
                    }),
                    None => self.unseen += 1,
                }
            }
            // Executions of hidden orders, crosses and halts change no book.
            5 => self.tell(&MarketEvent {
                kind: EventKind::Trade,
                flags: EventFlags::NO_SIDE,
                ..event
            }),
            6 => {}
            // In the place of the price: -1 halted, 0 quoting, 1 trading.
            7 => self.tell(&MarketEvent {
                kind: EventKind::Status,
                status: match event.price.raw() {
                    UNIT => TradingStatus::Trading,
                    0 => TradingStatus::QuoteOnly,
                    _ => TradingStatus::Halted,
                },
                ..event
            }),
            _ => return self.counters.bump(Counter::Malformed),
        }
        if let Check::Rows(mut rows) = std::mem::replace(&mut self.check, Check::None) {
            match rows.next() {
                Ok(true) => self.row(&mut rows, &event),
                Ok(false) => {}
                Err(wrong) => {
                    self.checked.rows += 1;
                    self.checked.first.get_or_insert(wrong);
                }
            }
            self.check = Check::Rows(rows);
        }
    }

    /// The first order of a level that a row showed.
    fn unseen_at(&self, side: Side, price: Price) -> Option<OrderId> {
        if matches!(self.check, Check::None) {
            return None;
        }
        let mut found = None;
        self.to.look(&mut |books: &Books| {
            if let Some(book) = books.book(ONE) {
                let mut orders = book.orders(side, price);
                found = orders.find(|order| order.id.0 >= UNSEEN).map(|order| order.id);
            }
        });
        found
    }

    /// Prices, in units of 0.0001, and quantities of a side, the best first.
    fn levels(&self, side: Side) -> Vec<(i64, i64)> {
        let mut have = Vec::new();
        self.to.look(&mut |books: &Books| {
            if let Some(book) = books.book(ONE) {
                let levels = book.levels(side);
                have.extend(levels.map(|level| (level.price.raw() / UNIT, level.qty.0 as i64)));
            }
        });
        have
    }

    /// Compares the book with a row. A level that the row shows for the first time, behind all that were
    /// shown before, is taken from it; levels behind the row's last are forgotten, because messages of them
    /// need not be in the file.
    fn row(&mut self, rows: &mut Rows, message: &MarketEvent) {
        let mut is_equal = true;
        for side in Side::BOTH {
            let at = 2 * usize::from(side == Side::Bid);
            let shown = rows.row.chunks_exact(4).map(|level| (level[at], level[at + 1]));
            let shown: Vec<_> = shown.filter(|(price, _)| price.abs() != NO_LEVEL).collect();
            // The larger the worse.
            let rank = |price: i64| if side == Side::Bid { -price } else { price };
            let have = self.levels(side);
            let is_known =
                |price: i64| rows.begun && rows.known_to[side as usize].is_none_or(|to| rank(price) <= to);
            let expected: Vec<_> = shown.iter().filter(|level| is_known(level.0)).collect();
            let ours: Vec<_> = have
                .iter()
                .take(shown.len().max(expected.len()))
                .filter(|l| is_known(l.0))
                .collect();
            self.checked.levels += expected.len() as u64;
            let is_new = |level: &(i64, i64)| !have.contains(level);
            let mut taken: Vec<(i64, i64)> = shown.iter().copied().filter(is_new).collect();
            if expected != ours {
                is_equal = false;
                let row = self.checked.rows + 1;
                self.checked.first.get_or_insert_with(|| {
                    format!("row {row} {side:?}: the row has {shown:?}, the book {have:?}")
                });
                // From here on what the row shows.
                have.iter()
                    .for_each(|(price, _)| self.forget(side, *price, message));
                taken = shown.clone();
            }
            for (price, qty) in taken {
                let (Some(raw), Ok(qty)) = (price.checked_mul(UNIT), u64::try_from(qty)) else {
                    self.counters.bump(Counter::Malformed);
                    continue;
                };
                rows.unseen += 1;
                self.checked.taken += 1;
                self.tell(&MarketEvent {
                    kind: EventKind::Add,
                    order_id: OrderId(rows.unseen),
                    side,
                    price: Price::from_raw(raw),
                    qty: Volume(qty),
                    flags: EventFlags::SNAPSHOT,
                    ..of_row(message)
                });
            }
            let is_full = shown.len() == rows.row.len() / 4;
            let last = shown.last().map(|level| rank(level.0)).filter(|_| is_full);
            if let Some(last) = last {
                let behind = have
                    .iter()
                    .map(|level| level.0)
                    .filter(|price| rank(*price) > last);
                behind.for_each(|price| self.forget(side, price, message));
            }
            rows.known_to[side as usize] = last;
        }
        rows.begun = true;
        self.checked.rows += 1;
        self.checked.equal += u64::from(is_equal);
    }

    fn forget(&mut self, side: Side, price: i64, message: &MarketEvent) {
        let price = Price::from_raw(price.saturating_mul(UNIT));
        let mut orders: Vec<OrderId> = Vec::new();
        self.to.look(&mut |books: &Books| {
            if let Some(book) = books.book(ONE) {
                orders.extend(book.orders(side, price).map(|order| order.id));
            }
        });
        for order_id in orders {
            self.tell(&MarketEvent {
                kind: EventKind::Delete,
                order_id,
                side,
                price,
                ..of_row(message)
            });
        }
    }
}

/// What a row tells happens with its message.
fn of_row(message: &MarketEvent) -> MarketEvent {
    MarketEvent {
        instrument: ONE,
        seq: message.seq,
        venue_ts: message.venue_ts,
        recv_ts: message.recv_ts,
        ..MarketEvent::default()
    }
}

/// Type and event of a line; what kind of event the type says.
fn message(line: &[u8]) -> Option<(u8, MarketEvent)> {
    let text = std::str::from_utf8(line).ok()?;
    let mut fields = text.split(',').map(str::trim);
    let time = time_of(fields.next()?)?;
    let kind = fields.next()?.parse().ok()?;
    let order_id = OrderId(fields.next()?.parse().ok()?);
    let qty = fields.next()?.parse::<i64>().ok()?;
    let price = fields.next()?.parse::<i64>().ok()?;
    let direction = fields.next()?;
    let side = match direction {
        "1" => Side::Bid,
        "-1" => Side::Ask,
        _ => return None,
    };
    let event = MarketEvent {
        instrument: ONE,
        venue_ts: time,
        recv_ts: time,
        order_id,
        side,
        price: Price::from_raw(price.checked_mul(UNIT)?),
        qty: Volume(qty.max(0) as u64),
        ..MarketEvent::default()
    };
    Some((kind, event))
}

/// Seconds since midnight with up to nine decimals.
pub(super) fn time_of(text: &str) -> Option<Nanos> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.get(..9.min(fraction.len()))?;
    let nanos = match fraction {
        "" => 0,
        digits => digits.parse::<u64>().ok()? * 10_u64.pow(9 - digits.len() as u32),
    };
    let seconds = seconds.parse::<u64>().ok()?;
    Some(Nanos(seconds.checked_mul(Nanos::SECOND)?.checked_add(nanos)?))
}
