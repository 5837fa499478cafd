//! The same books with standard maps, in the obvious way: the oracle of the fast ones, never optimised. It
//! has no capacities, so it never answers [`BookError::Full`].

mod super_books;

pub use super_books::{NaiveSuper, NaiveSuperBooks};

use crate::books::{order_qty, worse};
use crate::{BookError, Depth, Digest};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use tickwire_market::{
    BookState, BookUpdate, EventFlags, EventKind, InstrumentId, Level, MarketEvent, OrderId, Price, Side,
    UpdateFlags, Venue, Volume,
};

/// [`crate::Applied`] by value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum NaiveApplied {
    Update(BookUpdate),
    Feed(BookState),
    None,
    Rejected(BookError),
}

/// A resting order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct NaiveOrder {
    pub instrument: InstrumentId,
    pub side: Side,
    pub price: Price,
    pub qty: u32,
}

#[derive(Clone, Default)]
struct NaiveLevel {
    qty: u64,
    orders: u32,
    queue: Vec<OrderId>,
}

struct NaiveBook {
    sides: [BTreeMap<Price, NaiveLevel>; 2],
    own: BookState,
    top: BookUpdate,
}

/// All books of one feed, the obvious way.
pub struct NaiveBooks {
    depth: Depth,
    orders: BTreeMap<OrderId, NaiveOrder>,
    books: Vec<NaiveBook>,
    feed: BookState,
    said: BookState,
    spoilt: bool,
}

impl NaiveBooks {
    /// Empty books for instruments below `instruments`.
    pub fn new(venue: Venue, depth: Depth, instruments: u32, initial: BookState) -> NaiveBooks {
        let book = |i| NaiveBook {
            sides: Default::default(),
            own: BookState::Live,
            top: BookUpdate {
                instrument: InstrumentId(i),
                venue,
                state: initial,
                ..BookUpdate::default()
            },
        };
        NaiveBooks {
            depth,
            orders: BTreeMap::new(),
            books: (0..instruments).map(book).collect(),
            feed: initial,
            said: initial,
            spoilt: false,
        }
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &MarketEvent) -> NaiveApplied {
        let mut touched = Vec::new();
        let before: Vec<[(Price, u64); 2]> = match self.book_of(event) {
            Some(book) => alloc::vec![self.tops(book)],
            None => Vec::new(),
        };
        match self.change(event, &mut touched) {
            Err(error) => {
                if error != BookError::Full
                    && self.feed != BookState::Building
                    && event.instrument != InstrumentId::WHOLE_FEED
                    && let Some(book) = self.books.get_mut(event.instrument.index())
                {
                    book.own = BookState::Stale;
                }
                NaiveApplied::Rejected(error)
            }
            Ok(NaiveApplied::Update(update)) => {
                NaiveApplied::Update(self.publish(event, update.instrument, before[0], &touched))
            }
            Ok(other) => other,
        }
    }

    /// The levels of a side, best first.
    pub fn levels(&self, instrument: InstrumentId, side: Side) -> Vec<Level> {
        let level = |(&price, l): (&Price, &NaiveLevel)| Level {
            price,
            qty: Volume(l.qty),
            orders: l.orders,
        };
        let levels = &self.books[instrument.index()].sides[side as usize];
        match side {
            Side::Bid => levels.iter().rev().map(level).collect(),
            Side::Ask => levels.iter().map(level).collect(),
        }
    }

    /// A level's orders in queue order.
    pub fn queue(&self, instrument: InstrumentId, side: Side, price: Price) -> Vec<(OrderId, u32)> {
        let level = self.books[instrument.index()].sides[side as usize].get(&price);
        level.map_or(Vec::new(), |l| {
            l.queue.iter().map(|id| (*id, self.orders[id].qty)).collect()
        })
    }

    /// A resting order.
    pub fn order(&self, id: OrderId) -> Option<&NaiveOrder> {
        self.orders.get(&id)
    }

    /// Every resting order by id.
    pub fn orders(&self) -> impl Iterator<Item = (&OrderId, &NaiveOrder)> {
        self.orders.iter()
    }

    /// As [`crate::Books::digest`].
    pub fn digest(&self, instrument: InstrumentId) -> u64 {
        let mut digest = Digest::default();
        self.digest_into(instrument, &mut digest);
        digest.finish()
    }

    /// As [`crate::Books::state_hash`].
    pub fn state_hash(&self) -> u64 {
        let mut digest = Digest::default();
        (0..self.books.len() as u32).for_each(|i| self.digest_into(InstrumentId(i), &mut digest));
        digest.finish()
    }

    /// As [`crate::BookRef::digest_queues_into`], over all books.
    pub fn queues_hash(&self) -> u64 {
        let mut digest = Digest::default();
        for i in (0..self.books.len() as u32).map(InstrumentId) {
            for side in Side::BOTH {
                for level in self.levels(i, side) {
                    for (id, qty) in self.queue(i, side, level.price) {
                        digest.order(id, Volume(qty as u64));
                    }
                }
            }
        }
        digest.finish()
    }

    fn digest_into(&self, instrument: InstrumentId, digest: &mut Digest) {
        if self.books[instrument.index()]
            .sides
            .iter()
            .all(BTreeMap::is_empty)
        {
            return;
        }
        digest.book(instrument);
        for side in Side::BOTH {
            self.levels(instrument, side)
                .iter()
                .for_each(|level| digest.level(side, level));
        }
    }

    fn change(
        &mut self,
        event: &MarketEvent,
        touched: &mut Vec<(Side, Price)>,
    ) -> Result<NaiveApplied, BookError> {
        let by_price = self.depth == Depth::ByPrice;
        let whole = event.instrument == InstrumentId::WHOLE_FEED;
        let instrument = match event.kind {
            EventKind::Add => {
                let instrument = self.known(event.instrument)?;
                let qty = order_qty(event.qty)?;
                if self.orders.contains_key(&event.order_id) {
                    return Err(BookError::DuplicateOrder);
                }
                if by_price {
                    return Err(BookError::Depth);
                }
                let order = NaiveOrder {
                    instrument,
                    side: event.side,
                    price: event.price,
                    qty,
                };
                self.rest(event.order_id, order, touched);
                instrument
            }
            EventKind::Delete => {
                let order = self.resting(event)?;
                self.remove(event.order_id, touched);
                order.instrument
            }
            EventKind::Reduce | EventKind::Execute => self.reduce(event, touched)?,
            EventKind::Replace => {
                let old = self.resting(event)?;
                let qty = order_qty(event.qty)?;
                let new_id = OrderId(event.ref_id);
                if new_id != event.order_id && self.orders.contains_key(&new_id) {
                    return Err(BookError::DuplicateOrder);
                }
                self.remove(event.order_id, touched);
                self.rest(
                    new_id,
                    NaiveOrder {
                        price: event.price,
                        qty,
                        ..old
                    },
                    touched,
                );
                old.instrument
            }
            EventKind::Modify => self.modify(event, touched)?,
            EventKind::Quote if event.code[0] != 0 => return Ok(NaiveApplied::None),
            EventKind::Level | EventKind::Quote if !by_price => return Err(BookError::Depth),
            EventKind::Level => {
                let instrument = self.known(event.instrument)?;
                self.set_level(instrument, event, touched)?;
                instrument
            }
            EventKind::Quote => {
                let instrument = self.known(event.instrument)?;
                if event.qty.0.max(event.ask_qty.0) > crate::ladder::QTY_MAX {
                    return Err(BookError::QtyRange);
                }
                self.set_quote(instrument, event);
                instrument
            }
            EventKind::Clear if whole => {
                self.orders.clear();
                for book in &mut self.books {
                    book.sides = Default::default();
                    book.own = BookState::Live;
                    let top = &mut book.top;
                    *top = BookUpdate {
                        seq: event.seq,
                        venue_ts: event.venue_ts,
                        recv_ts: event.recv_ts,
                        price: Default::default(),
                        qty: Default::default(),
                        changed: UpdateFlags::NONE,
                        ..*top
                    };
                }
                self.spoilt = false;
                return Ok(self.feed_is());
            }
            EventKind::Gap if whole && event.flags.has(EventFlags::UNUSABLE) => {
                self.spoilt = true;
                return Ok(self.feed_is());
            }
            EventKind::Gap if whole => {
                self.said = BookState::Stale;
                return Ok(self.feed_is());
            }
            EventKind::Recovered if whole => {
                self.said = BookState::Live;
                return Ok(self.feed_is());
            }
            EventKind::Clear => {
                let instrument = self.known(event.instrument)?;
                self.orders.retain(|_, order| order.instrument != instrument);
                for side in Side::BOTH {
                    touched.extend(self.levels(instrument, side).iter().map(|l| (side, l.price)));
                }
                let book = &mut self.books[instrument.index()];
                book.sides = Default::default();
                book.own = BookState::Live;
                instrument
            }
            EventKind::Gap => {
                let instrument = self.known(event.instrument)?;
                self.books[instrument.index()].own = BookState::Stale;
                instrument
            }
            EventKind::Recovered => {
                let instrument = self.known(event.instrument)?;
                self.books[instrument.index()].own = BookState::Live;
                instrument
            }
            _ => return Ok(NaiveApplied::None),
        };
        Ok(NaiveApplied::Update(BookUpdate {
            instrument,
            ..BookUpdate::default()
        }))
    }

    fn feed_is(&mut self) -> NaiveApplied {
        self.feed = if self.spoilt { BookState::Stale } else { self.said };
        NaiveApplied::Feed(self.feed)
    }

    fn reduce(
        &mut self,
        event: &MarketEvent,
        touched: &mut Vec<(Side, Price)>,
    ) -> Result<InstrumentId, BookError> {
        let order = self.resting(event)?;
        let left = match event.qty.0 {
            0 => return Err(BookError::QtyRange),
            qty => (order.qty as u64).checked_sub(qty).ok_or(BookError::Excess)?,
        };
        if left == 0 {
            self.remove(event.order_id, touched);
            return Ok(order.instrument);
        }
        self.set_qty(event.order_id, left as u32, touched);
        Ok(order.instrument)
    }

    fn modify(
        &mut self,
        event: &MarketEvent,
        touched: &mut Vec<(Side, Price)>,
    ) -> Result<InstrumentId, BookError> {
        let old = self.resting(event)?;
        let qty = order_qty(event.qty)?;
        let side = if event.flags.has(EventFlags::NO_SIDE) {
            old.side
        } else {
            event.side
        };
        if event.flags.has(EventFlags::KEEPS_PRIORITY) && (side, event.price) == (old.side, old.price) {
            self.set_qty(event.order_id, qty, touched);
        } else {
            self.remove(event.order_id, touched);
            self.rest(
                event.order_id,
                NaiveOrder {
                    side,
                    price: event.price,
                    qty,
                    ..old
                },
                touched,
            );
        }
        Ok(old.instrument)
    }

    fn set_qty(&mut self, id: OrderId, qty: u32, touched: &mut Vec<(Side, Price)>) {
        let order = self.orders.get_mut(&id).expect("the caller found it");
        let level = self.books[order.instrument.index()].sides[order.side as usize].get_mut(&order.price);
        let level = level.expect("an order's level exists");
        level.qty = level.qty - order.qty as u64 + qty as u64;
        order.qty = qty;
        touched.push((order.side, order.price));
    }

    fn set_level(
        &mut self,
        instrument: InstrumentId,
        event: &MarketEvent,
        touched: &mut Vec<(Side, Price)>,
    ) -> Result<(), BookError> {
        if event.qty.0 > crate::ladder::QTY_MAX {
            return Err(BookError::QtyRange);
        }
        let levels = &mut self.books[instrument.index()].sides[event.side as usize];
        if event.qty.is_zero() {
            levels.remove(&event.price).ok_or(BookError::UnknownLevel)?;
        } else {
            let orders = event.order_count.min(1_048_575);
            levels.insert(
                event.price,
                NaiveLevel {
                    qty: event.qty.0,
                    orders,
                    queue: Vec::new(),
                },
            );
        }
        touched.push((event.side, event.price));
        Ok(())
    }

    fn set_quote(&mut self, instrument: InstrumentId, event: &MarketEvent) {
        let quotes = [(event.price, event.qty), (event.ask_price, event.ask_qty)];
        for (levels, (price, qty)) in self.books[instrument.index()].sides.iter_mut().zip(quotes) {
            levels.clear();
            if !qty.is_zero() {
                levels.insert(
                    price,
                    NaiveLevel {
                        qty: qty.0,
                        orders: 0,
                        queue: Vec::new(),
                    },
                );
            }
        }
    }

    fn rest(&mut self, id: OrderId, order: NaiveOrder, touched: &mut Vec<(Side, Price)>) {
        let levels = &mut self.books[order.instrument.index()].sides[order.side as usize];
        let level = levels.entry(order.price).or_default();
        level.qty += order.qty as u64;
        level.orders += 1;
        level.queue.push(id);
        self.orders.insert(id, order);
        touched.push((order.side, order.price));
    }

    fn remove(&mut self, id: OrderId, touched: &mut Vec<(Side, Price)>) {
        let order = self.orders.remove(&id).expect("the caller found it");
        let levels = &mut self.books[order.instrument.index()].sides[order.side as usize];
        let level = levels.get_mut(&order.price).expect("an order's level exists");
        level.qty -= order.qty as u64;
        level.orders -= 1;
        level.queue.retain(|&other| other != id);
        if level.orders == 0 {
            levels.remove(&order.price);
        }
        touched.push((order.side, order.price));
    }

    fn resting(&self, event: &MarketEvent) -> Result<NaiveOrder, BookError> {
        let order = self.orders.get(&event.order_id).ok_or(BookError::UnknownOrder)?;
        if event.instrument != InstrumentId::WHOLE_FEED && event.instrument != order.instrument {
            return Err(BookError::Instrument);
        }
        Ok(*order)
    }

    fn known(&self, instrument: InstrumentId) -> Result<InstrumentId, BookError> {
        let known = instrument != InstrumentId::WHOLE_FEED && instrument.index() < self.books.len();
        if known {
            Ok(instrument)
        } else {
            Err(BookError::Instrument)
        }
    }

    /// The book an event may change.
    fn book_of(&self, event: &MarketEvent) -> Option<InstrumentId> {
        let of_order = self.orders.get(&event.order_id).map(|order| order.instrument);
        self.known(event.instrument).ok().or(of_order)
    }

    fn tops(&self, instrument: InstrumentId) -> [(Price, u64); 2] {
        Side::BOTH.map(|side| {
            self.levels(instrument, side)
                .first()
                .map_or((Price::ZERO, 0), |level| (level.price, level.qty.0))
        })
    }

    fn publish(
        &mut self,
        event: &MarketEvent,
        instrument: InstrumentId,
        before: [(Price, u64); 2],
        touched: &[(Side, Price)],
    ) -> BookUpdate {
        let after = self.tops(instrument);
        let book = &mut self.books[instrument.index()];
        let state = worse(self.feed, book.own);
        let mut changed = UpdateFlags::NONE;
        for (side, best, price) in [
            (Side::Bid, UpdateFlags::BEST_BID, UpdateFlags::BEST_BID_PRICE),
            (Side::Ask, UpdateFlags::BEST_ASK, UpdateFlags::BEST_ASK_PRICE),
        ] {
            let (old, new) = (before[side as usize], after[side as usize]);
            if old != new {
                changed = changed.with(best);
            }
            if old.0 != new.0 || (old.1 == 0) != (new.1 == 0) {
                changed = changed.with(price);
            }
            let is_top = |p: Price| (old.1 != 0 && p == old.0) || (new.1 != 0 && p == new.0);
            if touched.iter().any(|&(s, p)| s == side && !is_top(p)) {
                changed = changed.with(UpdateFlags::DEPTH);
            }
        }
        if state != book.top.state {
            changed = changed.with(UpdateFlags::STATE);
        }
        book.top = BookUpdate {
            seq: event.seq,
            venue_ts: event.venue_ts,
            recv_ts: event.recv_ts,
            state,
            changed,
            price: after.map(|top| top.0),
            qty: after.map(|top| Volume(top.1)),
            ..book.top
        };
        book.top
    }
}
