//! Orders of ours in one instrument's book, and what they changed there.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use tickwire_book::{Books, OrderView};
use tickwire_market::{
    BookUpdate, ClientOrderId, EventFlags, EventKind, MarketEvent, OrderId, Price, Side, TimeInForce,
};

use crate::world::World;

/// Mixes one number: numbers of orders are the keys of every table here. A recording whose author chose them
/// to collide makes its own backtest slow, and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// A table by the number of an order.
pub(super) type ById<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// One of our orders in the book.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub(super) id: ClientOrderId,
    pub(super) side: Side,
    pub(super) price: Price,
    pub(super) qty: u32,
    pub(super) filled: u32,
    pub(super) time_in_force: TimeInForce,
    /// When it came to rest, in the order in which orders, ours and recorded ones, came to its level.
    pub(super) arrival: u64,
    /// What stands before it, of others.
    pub(super) ahead: u64,
    pub(super) ahead_at_entry: u64,
}

impl Own {
    /// An order that has just come, of which nothing is filled.
    pub(super) fn new(id: ClientOrderId, side: Side, price: Price, qty: u32, life: TimeInForce) -> Own {
        Own {
            id,
            side,
            price,
            qty,
            filled: 0,
            time_in_force: life,
            arrival: 0,
            ahead: 0,
            ahead_at_entry: 0,
        }
    }

    pub(super) fn leaves(&self) -> u32 {
        self.qty - self.filled
    }

    /// Whether it trades before another one of ours: by price, then by time. Of the two sides, which never
    /// meet, bids stand first.
    fn is_before(&self, other: &Own) -> bool {
        match (self.side as u8).cmp(&(other.side as u8)) {
            Ordering::Equal if self.price == other.price => self.arrival < other.arrival,
            Ordering::Equal => self.side.better(self.price, other.price),
            order => order == Ordering::Less,
        }
    }

    /// Whether a price of the other side is at or through its own.
    pub(super) fn is_reached_by(&self, price: Price) -> bool {
        match self.side {
            Side::Bid => price <= self.price,
            Side::Ask => price >= self.price,
        }
    }
}

/// A stop order of ours: in no book until a trade triggers it.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) own: Own,
    pub(super) trigger: Price,
    pub(super) limit: Option<Price>,
    /// A trade has: it acts when everything that happened at that time is told.
    pub(super) is_triggered: bool,
}

impl Waiting {
    pub(super) fn is_triggered_by(&self, price: Price) -> bool {
        match self.own.side {
            Side::Bid => price >= self.trigger,
            Side::Ask => price <= self.trigger,
        }
    }
}

/// A price as a number of which the better one is the smaller; never the two largest, which no price is.
#[inline(always)]
fn key_of(side: Side, price: Price) -> i64 {
    match side {
        Side::Bid => price.raw().saturating_neg(),
        Side::Ask => price.raw(),
    }
}

/// The prices between which orders of ours stand on a side: their keys, from the best to the worst.
#[derive(Clone, Copy, Debug)]
struct Span {
    best: i64,
    worst: i64,
}

/// Nothing of ours stands there.
const NOWHERE: Span = Span {
    best: i64::MAX,
    worst: i64::MIN,
};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct OwnBook {
    /// Who trades first first.
    pub(super) orders: Vec<Own>,
    spans: [Span; 2],
    /// Recorded orders that came to a level of ours while one of ours stood there, and when. One that is
    /// not here, or came earlier than an order of ours, stands before it. Entries of orders that left when
    /// nothing of ours stood there any more stay until the table is full, and then go.
    joined: ById<OrderId, u64>,
    /// What we took of recorded orders.
    pub(super) taken: ById<OrderId, u64>,
    /// What we took of levels, where no order is known.
    pub(super) taken_of_levels: BTreeMap<(Side, Price), u64>,
    /// Stop orders, as they came.
    pub(super) stops: Vec<Waiting>,
    /// The book with ours in it, of the matching model.
    pub(super) world: Option<Box<World>>,
}

impl Default for OwnBook {
    fn default() -> OwnBook {
        OwnBook {
            orders: Vec::new(),
            spans: [NOWHERE; 2],
            joined: ById::default(),
            taken: ById::default(),
            taken_of_levels: BTreeMap::new(),
            stops: Vec::new(),
            world: None,
        }
    }
}

impl OwnBook {
    /// Whether nothing of ours stands there, nor anything that ours changed.
    pub(super) fn is_over(&self) -> bool {
        self.orders.is_empty()
            && self.stops.is_empty()
            && self.world.is_none()
            // What was taken of recorded orders lives as long as they do.
            && self.taken.is_empty()
            && self.taken_of_levels.is_empty()
    }

    /// Makes it as a new one, with its memory.
    pub(super) fn reset(&mut self) {
        self.joined.clear();
        self.spans = [NOWHERE; 2];
    }

    /// Puts an order in its place among ours.
    pub(super) fn insert(&mut self, own: Own) {
        let at = self.orders.iter().position(|other| own.is_before(other));
        self.orders.insert(at.unwrap_or(self.orders.len()), own);
        self.measure();
    }

    pub(super) fn remove(&mut self, place: usize) -> Own {
        let own = self.orders.remove(place);
        self.measure();
        own
    }

    pub(super) fn place_of(&self, id: ClientOrderId) -> Option<usize> {
        self.orders.iter().position(|own| own.id == id)
    }

    /// Where ours stand has changed.
    fn measure(&mut self) {
        self.spans = Side::BOTH.map(|side| {
            let mut of_side = self.orders.iter().filter(|own| own.side == side);
            // The best stand first.
            match of_side.next() {
                None => NOWHERE,
                Some(first) => Span {
                    best: key_of(side, first.price),
                    worst: key_of(side, of_side.next_back().unwrap_or(first).price),
                },
            }
        });
    }

    /// Whether a level is among those of ours.
    #[inline(always)]
    fn is_among(&self, side: Side, price: Price) -> bool {
        let (span, key) = (self.spans[side as usize], key_of(side, price));
        span.best <= key && key <= span.worst
    }

    /// Whether the best price of a side is at or through one of ours of the other one.
    #[inline(always)]
    fn is_met(&self, now: &BookUpdate, side: Side) -> bool {
        let own = self.spans[!side as usize].best;
        own != i64::MAX
            && now.best(side).is_some_and(|(price, _)| match side {
                Side::Ask => price.raw() <= own.saturating_neg(),
                Side::Bid => price.raw() >= own,
            })
    }

    /// Whether an event that a book took may be of any concern to ours or to what they took: most are of
    /// levels where nothing of ours stands. `had`: the order that it names as it was before it. Where ours
    /// are matched in a book of their own every event is.
    #[inline(always)]
    pub(super) fn is_concerned(&self, event: &MarketEvent, had: Option<OrderView>, now: &BookUpdate) -> bool {
        if self.world.is_some() {
            return true;
        }
        let is_crossed = || self.is_met(now, Side::Bid) || self.is_met(now, Side::Ask);
        let adds = match event.kind {
            EventKind::Add => return self.is_among(event.side, event.price) || is_crossed(),
            EventKind::Level => {
                return self.is_among(event.side, event.price)
                    || !self.taken_of_levels.is_empty()
                    || is_crossed();
            }
            EventKind::Quote => return !self.taken_of_levels.is_empty() || is_crossed(),
            EventKind::Execute | EventKind::Reduce | EventKind::Delete => false,
            EventKind::Replace | EventKind::Modify => true,
            _ => return true,
        };
        let Some(had) = had else { return true };
        if !self.taken.is_empty() && self.taken.contains_key(&event.order_id) {
            return true;
        }
        if !adds {
            return match event.kind {
                // Whoever is executed at a price worse than ours has passed ours.
                EventKind::Execute => key_of(had.side, had.price) >= self.spans[had.side as usize].best,
                _ => self.is_among(had.side, had.price),
            };
        }
        let side = match event.kind {
            EventKind::Modify if !event.flags.has(EventFlags::NO_SIDE) => event.side,
            _ => had.side,
        };
        // What became less in its place may have been executed there.
        key_of(had.side, had.price) >= self.spans[had.side as usize].best
            || self.is_among(side, event.price)
            || is_crossed()
    }

    /// A recorded order has come to a level, behind everybody there.
    pub(super) fn join(&mut self, order: OrderId, side: Side, price: Price, arrival: u64, books: &Books) {
        if !self.is_among(side, price) {
            return;
        }
        let is_level = |own: &Own| own.side == side && own.price == price;
        if !self.orders.iter().any(is_level) {
            return;
        }
        if self.joined.len() == self.joined.capacity() {
            self.joined.retain(|order, _| books.order(*order).is_some());
            self.joined.reserve(self.joined.len().max(16));
        }
        self.joined.insert(order, arrival);
    }

    /// A recorded order is no more.
    pub(super) fn forget(&mut self, order: OrderId) {
        self.joined.remove(&order);
    }

    /// No recorded order is.
    pub(super) fn forget_all(&mut self) {
        self.joined.clear();
    }

    /// When a recorded order came to a level of ours; 0 if nothing of ours stood there then.
    pub(super) fn arrival_of(&self, order: OrderId) -> u64 {
        self.joined.get(&order).copied().unwrap_or(0)
    }
}
