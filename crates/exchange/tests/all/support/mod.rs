//! A book builder as the specification words it, for tests: maps and nothing clever.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::collections::BTreeMap;

use tickwire_exchange::{Engine, Order};
use tickwire_market::{InstrumentId, Price, Side};
use tickwire_wire::itch50::{Message, parse, side};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resting {
    pub locate: u32,
    pub side: Side,
    pub price: Price,
    pub qty: u32,
    /// Arrival, for the order within a level.
    pub place: u64,
}

/// Rebuilds displayed books from messages; panics on anything a venue must not send.
#[derive(Default)]
pub struct Builder {
    pub orders: BTreeMap<u64, Resting>,
    /// Quantity by locate, side, price.
    pub levels: BTreeMap<(u32, Side), BTreeMap<Price, u64>>,
    pub kinds: BTreeMap<char, u64>,
    pub names: BTreeMap<u32, String>,
    /// Not trading: books may be crossed.
    pub halted: std::collections::BTreeSet<u32>,
    pub messages: u64,
    pub last_time: u64,
    pub ended: bool,
}

impl Builder {
    pub fn apply(&mut self, bytes: &[u8]) {
        let message = parse(bytes).expect("a well-formed message");
        assert_eq!(message.as_bytes(), bytes, "exactly the layout's length");
        assert!(!self.ended, "nothing follows the end of messages");
        let time = u64::from_be_bytes([0, 0, bytes[5], bytes[6], bytes[7], bytes[8], bytes[9], bytes[10]]);
        assert!(
            time >= self.last_time,
            "time goes back at message {}",
            self.messages + 1
        );
        self.last_time = time;
        self.messages += 1;
        // A fill of a cross, which an ordinary minute has none of, counts apart.
        let kind = match &message {
            Message::OrderExecutedWithPrice(m) if m.printable.get() == b'N' => 'c',
            _ => bytes[0] as char,
        };
        *self.kinds.entry(kind).or_default() += 1;
        let locate = u32::from(u16::from_be_bytes([bytes[1], bytes[2]]));
        match message {
            Message::AddOrder(m) => {
                assert_eq!(self.names[&locate].as_bytes(), m.stock.trimmed());
                self.add(
                    m.order_ref.get(),
                    locate,
                    side(m.side).unwrap(),
                    m.price.price(),
                    m.shares.get(),
                );
            }
            Message::AddOrderMpid(m) => {
                assert_eq!(self.names[&locate].as_bytes(), m.stock.trimmed());
                self.add(
                    m.order_ref.get(),
                    locate,
                    side(m.side).unwrap(),
                    m.price.price(),
                    m.shares.get(),
                );
            }
            Message::OrderExecuted(m) => self.take(m.order_ref.get(), locate, m.executed_shares.get()),
            Message::OrderExecutedWithPrice(m) => {
                self.take(m.order_ref.get(), locate, m.executed_shares.get())
            }
            Message::OrderCancel(m) => {
                assert!(
                    m.cancelled_shares.get() < self.orders[&m.order_ref.get()].qty,
                    "a whole cancel is a delete"
                );
                self.take(m.order_ref.get(), locate, m.cancelled_shares.get());
            }
            Message::OrderDelete(m) => {
                let all = self.orders[&m.order_ref.get()].qty;
                self.take(m.order_ref.get(), locate, all);
            }
            Message::OrderReplace(m) => {
                let old = self.orders[&m.original_order_ref.get()];
                self.take(m.original_order_ref.get(), locate, old.qty);
                self.add(
                    m.new_order_ref.get(),
                    locate,
                    old.side,
                    m.price.price(),
                    m.shares.get(),
                );
            }
            Message::StockDirectory(m) => {
                let name = String::from_utf8(m.stock.trimmed().to_vec()).unwrap();
                assert!(
                    self.names.insert(locate, name).is_none(),
                    "one directory entry each"
                );
            }
            Message::StockTradingAction(m) if m.trading_state.get() == b'T' => {
                let crossed = self.best(locate, Side::Bid) >= self.best(locate, Side::Ask);
                let both = self.best(locate, Side::Bid).is_some() && self.best(locate, Side::Ask).is_some();
                assert!(!(crossed && both), "book {locate} trades and is crossed");
                self.halted.remove(&locate);
            }
            Message::StockTradingAction(_) => {
                self.halted.insert(locate);
            }
            Message::SystemEvent(m) => self.ended = m.event.get() == b'C',
            _ => {}
        }
    }

    fn add(&mut self, id: u64, locate: u32, side: Side, price: Price, qty: u32) {
        assert!(qty > 0 && price > Price::ZERO);
        let order = Resting {
            locate,
            side,
            price,
            qty,
            place: self.messages,
        };
        assert!(
            self.orders.insert(id, order).is_none(),
            "order {id} is added twice"
        );
        *self
            .levels
            .entry((locate, side))
            .or_default()
            .entry(price)
            .or_default() += u64::from(qty);
        let (bid, ask) = (self.best(locate, Side::Bid), self.best(locate, Side::Ask));
        if let (Some(bid), Some(ask)) = (bid, ask) {
            assert!(
                bid < ask || self.halted.contains(&locate),
                "book {locate} is crossed at message {}: {bid} {ask}",
                self.messages
            );
        }
    }

    fn take(&mut self, id: u64, locate: u32, qty: u32) {
        let order = self.orders.get_mut(&id).expect("a known order");
        assert_eq!(order.locate, locate, "the locate of the add");
        assert!(qty > 0 && qty <= order.qty, "no more than is there");
        let levels = self.levels.get_mut(&(locate, order.side)).unwrap();
        let level = levels.get_mut(&order.price).unwrap();
        *level -= u64::from(qty);
        if *level == 0 {
            levels.remove(&order.price);
        }
        order.qty -= qty;
        if order.qty == 0 {
            self.orders.remove(&id);
        }
    }

    pub fn best(&self, locate: u32, side: Side) -> Option<Price> {
        let levels = self.levels.get(&(locate, side))?;
        match side {
            Side::Bid => levels.last_key_value().map(|(price, _)| *price),
            Side::Ask => levels.first_key_value().map(|(price, _)| *price),
        }
    }

    /// Levels best first: price, quantity.
    pub fn book(&self, locate: u32, side: Side) -> Vec<(Price, u64)> {
        let mut levels: Vec<_> = self
            .levels
            .get(&(locate, side))
            .into_iter()
            .flatten()
            .map(|(p, q)| (*p, *q))
            .collect();
        if side == Side::Bid {
            levels.reverse();
        }
        levels
    }

    /// The engine's books are these books: every level, and every order in its place.
    pub fn assert_equals(&self, engine: &Engine) {
        for locate in 1..=engine.config().instruments {
            for side in Side::BOTH {
                let theirs: Vec<_> = engine
                    .levels(InstrumentId(locate), side)
                    .map(|level| (level.price, level.qty.0))
                    .collect();
                assert_eq!(self.book(locate, side), theirs, "{side:?} of {locate}");
            }
        }
        let mut mine: Vec<_> = self.orders.iter().collect();
        mine.sort_by_key(|(_, o)| {
            let price = if o.side == Side::Bid {
                -o.price.raw()
            } else {
                o.price.raw()
            };
            (o.locate, o.side, price, o.place)
        });
        let mine: Vec<_> = mine.into_iter().map(|(id, o)| (*id, o.qty)).collect();
        let mut theirs = Vec::new();
        engine.visit(&mut |o: &Order| {
            if !o.hidden {
                theirs.push((o.id.0, o.qty.0));
            }
        });
        assert!(mine == theirs, "orders in priority order");
    }
}
