//! Displayed volume by price, kept from what a [`crate::Listener`] hears: for channels that show levels or
//! the best quote instead of orders.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Level, Price, Qty, Side, Volume};
use tickwire_persist::persist;

use crate::order::{CrossFill, Execution, Order};

/// What became of a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LevelChange {
    /// Of which instrument.
    pub instrument: InstrumentId,
    /// On which side.
    pub side: Side,
    /// The level as it is now; no quantity and no orders when it is gone.
    pub level: Level,
    /// The position of the level, 0 is the best; of a level that is gone, the one it had.
    pub position: usize,
    /// It was not there before.
    pub is_new: bool,
}

#[derive(Clone, Copy)]
struct Rung {
    /// The better price has the smaller one.
    key: i64,
    qty: u64,
    orders: u32,
}

/// Levels of a side that there is room for from the beginning.
const LEVELS: usize = 64;

/// The displayed levels of a range of instruments. A side grows when it has more levels than ever before.
pub struct DisplayedLevels {
    first: u32,
    /// By instrument and side; the best last, where most changes are.
    sides: Vec<[Vec<Rung>; 2]>,
}

fn key_of(side: Side, price: Price) -> i64 {
    match side {
        Side::Bid => -price.raw(),
        Side::Ask => price.raw(),
    }
}

fn level_of(side: Side, rung: Rung) -> Level {
    let raw = match side {
        Side::Bid => -rung.key,
        Side::Ask => rung.key,
    };
    Level {
        price: Price::from_raw(raw),
        qty: Volume(rung.qty),
        orders: rung.orders,
    }
}

impl DisplayedLevels {
    /// Empty books of the instruments `first` to `first + count`, exclusive.
    pub fn new(first: InstrumentId, count: usize) -> DisplayedLevels {
        DisplayedLevels {
            first: first.0,
            sides: (0..count)
                .map(|_| [(); 2].map(|()| Vec::with_capacity(LEVELS)))
                .collect(),
        }
    }

    /// An order joined the book; `None` if it is hidden or not ours.
    pub fn rested(&mut self, order: &Order) -> Option<LevelChange> {
        self.change(order, order.price, i64::from(order.qty.0), 1)
    }

    /// A displayed order traded.
    pub fn executed(&mut self, execution: &Execution) -> Option<LevelChange> {
        let maker = &execution.maker;
        let orders = if maker.qty.0 == 0 { -1 } else { 0 };
        self.change(maker, maker.price, -i64::from(execution.qty.0), orders)
    }

    /// A displayed order traded in an auction; `None` also if it waited outside the book.
    pub fn cross_filled(&mut self, fill: &CrossFill) -> Option<LevelChange> {
        if fill.from_book.is_zero() {
            return None;
        }
        let orders = if fill.order.qty.is_zero() { -1 } else { 0 };
        self.change(
            &fill.order,
            fill.order.price,
            -i64::from(fill.from_book.0),
            orders,
        )
    }

    /// An order lost `by`.
    pub fn reduced(&mut self, order: &Order, by: Qty) -> Option<LevelChange> {
        self.change(order, order.price, -i64::from(by.0), 0)
    }

    /// An order left with all it had.
    pub fn deleted(&mut self, order: &Order) -> Option<LevelChange> {
        self.change(order, order.price, -i64::from(order.qty.0), -1)
    }

    /// The levels of a side, best first.
    pub fn levels(&self, instrument: InstrumentId, side: Side) -> impl Iterator<Item = Level> + '_ {
        let book = self
            .book_index(instrument)
            .map(|at| &self.sides[at][side as usize]);
        book.into_iter()
            .flat_map(|rungs| rungs.iter().rev())
            .map(move |rung| level_of(side, *rung))
    }

    /// The best level of a side.
    pub fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        self.levels(instrument, side).next()
    }

    fn book_index(&self, instrument: InstrumentId) -> Option<usize> {
        let at = instrument.0.checked_sub(self.first)? as usize;
        (at < self.sides.len()).then_some(at)
    }

    fn change(&mut self, order: &Order, price: Price, qty: i64, orders: i32) -> Option<LevelChange> {
        if order.hidden {
            return None;
        }
        let at = self.book_index(order.instrument)?;
        let book = &mut self.sides[at][order.side as usize];
        let key = key_of(order.side, price);
        let found = book.binary_search_by(|rung| key.cmp(&rung.key));
        let (Ok(at) | Err(at)) = found;
        if found.is_err() {
            let none = Rung {
                key,
                qty: 0,
                orders: 0,
            };
            book.insert(at, none);
        }
        let rung = &mut book[at];
        rung.qty = rung.qty.saturating_add_signed(qty);
        rung.orders = rung.orders.saturating_add_signed(orders);
        let now = *rung;
        let position = book.len() - 1 - at;
        if now.orders == 0 {
            book.remove(at);
        }
        Some(LevelChange {
            instrument: order.instrument,
            side: order.side,
            level: level_of(order.side, now),
            position,
            is_new: found.is_err(),
        })
    }
}

persist!(value struct Rung { key, qty, orders });
persist! { struct DisplayedLevels {} each { sides } not { first } }
