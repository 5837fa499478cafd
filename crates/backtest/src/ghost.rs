//! Ghost replay: the proof of fills on any recording that tells every order.
//!
//! A recorded order is entered a second time, as ours, right before it comes: its ghost. Whatever becomes
//! less of the order without a trade becomes less of the ghost, and where the order leaves its queue the
//! ghost is cancelled. So the ghost has to get the fills that the order really had, each at its time and of
//! its size. A difference is either an error of the venue here or a trade out of the order of price and time
//! there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tickwire_book::OrderView;
use tickwire_market::{
    BookState, Cause, ClientOrderId, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId,
    OrderIntent, OrderType, Qty, Side, TimeInForce,
};
use tickwire_trading::strategy::{Strategy, Subscription};

use crate::Backtest;
use crate::venue::is_elsewhere;

/// It does nothing: orders are put in from outside.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Strategy for Nobody {
    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::All]
    }
}

/// Which orders get a ghost, and of what the feed tells.
#[derive(Clone, Debug)]
pub struct GhostConfig {
    /// Every how many-th order of a feed gets one. Default 1.
    pub every: u64,
    /// One at a time in each instrument, and what it changed forgotten after it: for
    /// [`FillModel::Matching`](crate::FillModel::Matching), in which ghosts would trade in each other's
    /// place. Default no.
    pub one_at_a_time: bool,
    /// Of those that go one at a time: after how many events of all feeds a ghost makes room for another.
    /// Default 500.
    pub patience: u64,
    /// By feed: as in [`BacktestConfig`](crate::BacktestConfig).
    pub less_is_executed: Vec<bool>,
}

impl Default for GhostConfig {
    fn default() -> GhostConfig {
        GhostConfig {
            every: 1,
            one_at_a_time: false,
            patience: 500,
            less_is_executed: Vec::new(),
        }
    }
}

/// A ghost that did not get what its order got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The recorded order.
    pub order: OrderId,
    /// Its instrument, as numbered over all feeds.
    pub instrument: InstrumentId,
    /// When the two were different first.
    pub at: Nanos,
    /// What the order had been filled until then.
    pub really: u64,
    /// What its ghost had.
    pub got: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct GhostResult {
    /// Orders that came to rest in the recording.
    pub orders: u64,
    /// Of these, orders that got a ghost.
    pub ghosts: u64,
    /// Orders that got none as they came while their book was not live, or crossed the other side: before an
    /// opening, in an auction.
    pub passed_over: u64,
    /// Ghosts that were filled at least once, and their fills.
    pub filled: [u64; 2],
    /// Ghosts that got other fills than their orders.
    pub different: u64,
    /// The first of them.
    pub first: Vec<Difference>,
}

/// Differences that are kept.
const KEPT: usize = 10;

#[derive(Clone, Copy, Debug)]
struct Ghost {
    order: OrderId,
    instrument: InstrumentId,
    side: Side,
    /// The number that it has now, and what it was entered for or changed to.
    id: ClientOrderId,
    first: ClientOrderId,
    qty: u64,
    really: u64,
    got: u64,
    is_different: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Ghosts {
    config: GhostConfig,
    open: BTreeMap<(usize, OrderId), Ghost>,
    /// By the number of the order here, the recorded one.
    orders: BTreeMap<ClientOrderId, (usize, OrderId)>,
    taken: BTreeSet<InstrumentId>,
    next: u64,
    events: u64,
    /// Ghosts that go one at a time, with when they came.
    since: VecDeque<(u64, (usize, OrderId), ClientOrderId)>,
    seen_fills: usize,
    result: GhostResult,
}

impl Ghosts {
    /// No ghost yet.
    pub fn new(config: GhostConfig) -> Ghosts {
        Ghosts {
            config,
            open: BTreeMap::new(),
            orders: BTreeMap::new(),
            taken: BTreeSet::new(),
            next: 0,
            events: 0,
            since: VecDeque::new(),
            seen_fills: 0,
            result: GhostResult::default(),
        }
    }

    /// The next event of a feed: instead of [`Backtest::on_event`].
    pub fn on_event<S: Strategy>(&mut self, test: &mut Backtest<S>, feed: usize, event: &MarketEvent) {
        self.events += 1;
        while let Some((at, key, id)) = self.since.front().copied()
            && self.events - at > self.config.patience
        {
            self.since.pop_front();
            // Its order may have ended, and its number come again.
            if self.open.get(&key).is_some_and(|ghost| ghost.first == id) {
                self.end(test, key);
            }
        }
        if event.kind == EventKind::Add && !event.flags.has(EventFlags::SNAPSHOT) {
            self.add(test, feed, event);
        }
        let had = test.books(feed).order(event.order_id);
        test.on_event(feed, event);
        let has = test.books(feed).order(event.order_id);
        if let (Some(had), true) = (had, self.open.contains_key(&(feed, event.order_id))) {
            self.follow(test, feed, event, had, has);
        }
        self.hear(test, event.recv_ts);
        if event.kind == EventKind::Clear {
            let books = test.books(feed);
            let gone = |(of, order): &&(usize, OrderId)| *of == feed && books.order(*order).is_none();
            let gone: Vec<_> = self.open.keys().filter(gone).copied().collect();
            gone.into_iter().for_each(|key| self.end(test, key));
        }
    }

    fn add<S: Strategy>(&mut self, test: &mut Backtest<S>, feed: usize, event: &MarketEvent) {
        self.result.orders += 1;
        let instrument = test.number(feed, event.instrument);
        let is_due = self.result.orders.is_multiple_of(self.config.every.max(1));
        let is_free = !self.config.one_at_a_time || !self.taken.contains(&instrument);
        let is_known = test.books(feed).order(event.order_id).is_some();
        let qty = u32::try_from(event.qty.0).unwrap_or(0);
        if !is_due || !is_free || is_known || qty == 0 {
            return;
        }
        let book = test.books(feed).book(event.instrument);
        let can_rest = book.is_some_and(|book| {
            let opposite = book.best(!event.side);
            book.state() == BookState::Live
                && opposite.is_none_or(|best| event.side.better(best.price, event.price))
        });
        if !can_rest {
            self.result.passed_over += 1;
            return;
        }
        self.next += 1;
        let id = ClientOrderId(self.next);
        test.inject(&OrderIntent::New {
            id,
            instrument,
            side: event.side,
            order_type: OrderType::Limit,
            price: event.price,
            stop: None,
            qty: Qty(qty),
            time_in_force: TimeInForce::Day,
            cause: Cause::default(),
        });
        self.result.ghosts += 1;
        if self.config.one_at_a_time {
            self.taken.insert(instrument);
            self.since.push_back((self.events, (feed, event.order_id), id));
        }
        self.orders.insert(id, (feed, event.order_id));
        self.open.insert(
            (feed, event.order_id),
            Ghost {
                order: event.order_id,
                instrument,
                side: event.side,
                id,
                first: id,
                qty: event.qty.0,
                really: 0,
                got: 0,
                is_different: false,
            },
        );
    }

    /// Something happened to an order that has a ghost.
    fn follow<S: Strategy>(
        &mut self,
        test: &mut Backtest<S>,
        feed: usize,
        event: &MarketEvent,
        had: OrderView,
        has: Option<OrderView>,
    ) {
        let key = (feed, event.order_id);
        let says_executions = !self
            .config
            .less_is_executed
            .get(feed)
            .copied()
            .unwrap_or_default();
        let has = has.filter(|has| (has.side, has.price) == (had.side, had.price));
        let stays = has.filter(|_| match event.kind {
            EventKind::Modify => event.flags.has(EventFlags::KEEPS_PRIORITY),
            kind => kind != EventKind::Replace,
        });
        let less = u64::from(had.qty.0).saturating_sub(stays.map_or(0, |has| has.qty.0.into()));
        let is_executed = match event.kind {
            EventKind::Execute => !is_elsewhere(event, had),
            EventKind::Modify => !says_executions && stays.is_some(),
            _ => false,
        };
        if let Some(ghost) = self.open.get_mut(&key)
            && is_executed
        {
            ghost.really += less;
        }
        self.hear(test, event.recv_ts);
        self.compare(key, event.recv_ts);
        let Some(ghost) = self.open.get(&key).copied() else {
            return;
        };
        match stays {
            None => self.end(test, key),
            Some(_) if is_executed || less == 0 => {}
            Some(has) => {
                // As much as its order.
                self.next += 1;
                let (id, qty) = (ClientOrderId(self.next), ghost.got + u64::from(has.qty.0));
                test.inject(&OrderIntent::Replace {
                    id,
                    target: ghost.id,
                    venue_id: None,
                    instrument: ghost.instrument,
                    side: ghost.side,
                    order_type: OrderType::Limit,
                    price: had.price,
                    stop: None,
                    qty: Qty(qty as u32),
                    time_in_force: TimeInForce::Day,
                    cause: Cause::default(),
                });
                self.orders.remove(&ghost.id);
                self.orders.insert(id, key);
                if let Some(ghost) = self.open.get_mut(&key) {
                    (ghost.id, ghost.qty) = (id, qty);
                }
            }
        }
    }

    /// Fills that are new go to their ghosts.
    fn hear<S: Strategy>(&mut self, test: &Backtest<S>, now: Nanos) {
        let fills = &test.fills()[self.seen_fills..];
        self.seen_fills += fills.len();
        for fill in fills.iter().copied() {
            let Some(key) = self.orders.get(&fill.order).copied() else {
                continue;
            };
            if let Some(ghost) = self.open.get_mut(&key) {
                self.result.filled[0] += u64::from(ghost.got == 0);
                self.result.filled[1] += 1;
                ghost.got += u64::from(fill.qty.0);
                // What its order did not have is a difference at once; what it still has to get is looked at
                // when its order has got it.
                if ghost.got > ghost.really {
                    self.compare(key, now);
                }
            }
        }
    }

    fn compare(&mut self, key: (usize, OrderId), at: Nanos) {
        let Some(ghost) = self.open.get_mut(&key) else {
            return;
        };
        if ghost.got != ghost.really && !std::mem::replace(&mut ghost.is_different, true) {
            self.result.different += 1;
            if self.result.first.len() < KEPT {
                self.result.first.push(Difference {
                    order: ghost.order,
                    instrument: ghost.instrument,
                    at,
                    really: ghost.really,
                    got: ghost.got,
                });
            }
        }
    }

    /// An order is no more where it was, and its ghost goes.
    fn end<S: Strategy>(&mut self, test: &mut Backtest<S>, key: (usize, OrderId)) {
        let Some(ghost) = self.open.remove(&key) else {
            return;
        };
        self.orders.remove(&ghost.id);
        if ghost.got < ghost.qty {
            self.next += 1;
            test.inject(&OrderIntent::Cancel {
                id: ClientOrderId(self.next),
                target: ghost.id,
                venue_id: None,
                instrument: ghost.instrument,
                side: ghost.side,
                qty: Qty::ZERO,
                cause: Cause::default(),
            });
        }
        if self.config.one_at_a_time {
            self.taken.remove(&ghost.instrument);
            test.forget(ghost.instrument);
        }
    }

    /// What came of it until now.
    pub fn result(&self) -> &GhostResult {
        &self.result
    }
}
