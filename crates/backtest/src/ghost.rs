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
use crate::ids::ById;
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

/// Why a ghost got other fills than its order, judged by the recording alone: by which order stood before
/// which as it was published, not by what the venue here made of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Why {
    /// Another order was executed that had been executed whole before and was shown again: an iceberg, whose
    /// new part stands elsewhere than it is published.
    ShownAgain,
    /// Another order was executed that stood behind it, and it left in the same match event, without a trade:
    /// it had been cancelled before.
    LeftTogether,
    /// Another order was executed that stood behind it at the same price.
    OutOfTime,
    /// Another order was executed that stood at a worse price.
    OutOfPrice,
    /// Somebody traded with a hidden order at a worse price.
    Hidden,
    /// An order came to rest at or through its price, and they did not trade.
    Crossed,
    /// It was executed before one that stood before it, whose ghost got the fill: the other half of such a
    /// difference.
    Passing,
    /// Nothing of these: a mistake here.
    Unexplained,
}

impl Why {
    /// Each of them, in order.
    pub const ALL: [Why; 8] = [
        Why::ShownAgain,
        Why::LeftTogether,
        Why::OutOfTime,
        Why::OutOfPrice,
        Why::Hidden,
        Why::Crossed,
        Why::Passing,
        Why::Unexplained,
    ];

    /// As reports have it.
    pub const fn name(self) -> &'static str {
        match self {
            Why::ShownAgain => "shown_again",
            Why::LeftTogether => "left_together",
            Why::OutOfTime => "out_of_time",
            Why::OutOfPrice => "out_of_price",
            Why::Hidden => "hidden",
            Why::Crossed => "crossed",
            Why::Passing => "passing",
            Why::Unexplained => "unexplained",
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
    /// The order whose event it was.
    pub by: OrderId,
    /// Why, as it seemed then; [`Why::LeftTogether`] is known later.
    pub why: Why,
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
    /// The same by why, in the order of [`Why::ALL`].
    pub whys: [u64; Why::ALL.len()],
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
    /// Why and in which match event, by the venue's time, its order got other fills first.
    different: Option<(Why, Nanos)>,
}

/// An order as it is after an event, if it has kept its place in its queue.
fn stays(event: &MarketEvent, had: OrderView, has: Option<OrderView>) -> Option<OrderView> {
    let has = has.filter(|has| (has.side, has.price) == (had.side, had.price));
    has.filter(|_| match event.kind {
        EventKind::Modify => event.flags.has(EventFlags::KEEPS_PRIORITY),
        kind => kind != EventKind::Replace,
    })
}

/// When recorded orders came to their queues, as it was published.
#[derive(Debug, Default)]
struct Queues {
    came: ById<OrderId, u64>,
    count: u64,
    /// Orders that were executed whole, and of these that came again.
    executed: ById<OrderId, ()>,
    again: ById<OrderId, ()>,
}

impl Queues {
    /// An event was applied to the book of its order, which was `had` and is `has`.
    fn follow(&mut self, event: &MarketEvent, had: Option<OrderView>, has: Option<OrderView>) {
        let order = match event.kind {
            EventKind::Replace => OrderId(event.ref_id),
            _ => event.order_id,
        };
        let stays = had.and_then(|had| stays(event, had, has));
        if event.kind == EventKind::Execute && has.is_none() {
            self.executed.insert(event.order_id, ());
        }
        if event.kind == EventKind::Add && self.executed.remove(&event.order_id).is_some() {
            self.again.insert(event.order_id, ());
        }
        if matches!(event.kind, EventKind::Add | EventKind::Replace)
            || (event.kind == EventKind::Modify && stays.is_none())
        {
            self.count += 1;
            self.came.insert(order, self.count);
        }
    }

    fn is_before(&self, one: OrderId, other: OrderId) -> bool {
        let came = |order| self.came.get(&order).copied().unwrap_or(0);
        came(one) < came(other)
    }

    /// Why an event filled a ghost, whose order stands there, and not its order. `had`: whom the event names,
    /// as he was before it.
    fn why(
        &self,
        event: &MarketEvent,
        had: Option<OrderView>,
        (order, its): (OrderId, Option<OrderView>),
    ) -> Why {
        let (Some(its), true) = (its, order != event.order_id) else {
            return Why::Unexplained;
        };
        let is_in_place = event.kind == EventKind::Execute || event.flags.has(EventFlags::KEEPS_PRIORITY);
        match (event.kind, had) {
            (EventKind::Execute | EventKind::Modify, Some(had)) if had.side == its.side && is_in_place => {
                let is_worse = its.side.better(its.price, had.price);
                let is_behind = its.price == had.price && self.is_before(order, event.order_id);
                match (is_worse, is_behind) {
                    (false, false) => Why::Unexplained,
                    _ if self.again.contains_key(&event.order_id) => Why::ShownAgain,
                    (true, _) => Why::OutOfPrice,
                    _ => Why::OutOfTime,
                }
            }
            (EventKind::Trade, _) if its.side.better(its.price, event.price) => Why::Hidden,
            (EventKind::Add | EventKind::Replace | EventKind::Modify, _) => {
                let side = had.map_or(event.side, |had| had.side);
                match side != its.side && !its.side.better(event.price, its.price) {
                    true => Why::Crossed,
                    false => Why::Unexplained,
                }
            }
            _ => Why::Unexplained,
        }
    }
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
    queues: Queues,
    /// The event that is being told, its feed, and whom it names as he was before it.
    told: (MarketEvent, usize, Option<OrderView>),
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
            queues: Queues::default(),
            told: (MarketEvent::default(), 0, None),
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
        self.told = (*event, feed, had);
        self.queues.follow(event, had, has);
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
                different: None,
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
        let stays = stays(event, had, has);
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
        self.compare(test, key, event.recv_ts);
        if !is_executed && less > 0 {
            self.left(key, event);
        }
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
                    self.compare(test, key, now);
                }
            }
        }
    }

    fn compare<S: Strategy>(&mut self, test: &Backtest<S>, key: (usize, OrderId), at: Nanos) {
        let Some(ghost) = self.open.get(&key) else {
            return;
        };
        if ghost.got == ghost.really || ghost.different.is_some() {
            return;
        }
        let (event, feed, had) = &self.told;
        let order = ghost.order;
        let why = match (order == event.order_id, had) {
            (true, Some(had)) => {
                let mut others = self.open.range((*feed, OrderId(0))..=(*feed, OrderId(u64::MAX)));
                let is_passed = |order: OrderId| {
                    let its = test.books(*feed).order(order);
                    let is_whole = its.is_some_and(|its| its.instrument == had.instrument);
                    is_whole && self.queues.why(event, Some(*had), (order, its)) != Why::Unexplained
                };
                match others.any(|((_, other), _)| is_passed(*other)) {
                    true => Why::Passing,
                    false => Why::Unexplained,
                }
            }
            _ => self
                .queues
                .why(event, *had, (order, test.books(*feed).order(order))),
        };
        let Some(ghost) = self.open.get_mut(&key) else {
            return;
        };
        ghost.different = Some((why, event.venue_ts));
        self.result.different += 1;
        self.result.whys[why as usize] += 1;
        if self.result.first.len() < KEPT {
            self.result.first.push(Difference {
                order: ghost.order,
                instrument: ghost.instrument,
                at,
                really: ghost.really,
                got: ghost.got,
                by: event.order_id,
                why,
            });
        }
    }

    /// An order has left, or become less, without a trade: in the match event in which its ghost was filled,
    /// the two happened the other way round.
    fn left(&mut self, key: (usize, OrderId), event: &MarketEvent) {
        let Some(ghost) = self.open.get_mut(&key) else {
            return;
        };
        if let Some((why @ (Why::OutOfTime | Why::OutOfPrice), at)) = ghost.different
            && at == event.venue_ts
        {
            ghost.different = Some((Why::LeftTogether, at));
            self.result.whys[why as usize] -= 1;
            self.result.whys[Why::LeftTogether as usize] += 1;
            let mut first = self.result.first.iter_mut();
            if let Some(first) = first.find(|first| first.order == ghost.order) {
                first.why = Why::LeftTogether;
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
