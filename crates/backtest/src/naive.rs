//! The oracle of the simulated venue: one list of orders, recorded ones and ours, in the order in which they
//! trade. Slow and plain; it shares no code with the venue. For tests and fuzzing.

use std::collections::BTreeMap;

use tickwire_book::{Applied, Books, BooksConfig, Depth};
use tickwire_market::{
    BookState, Cause, ClientOrderId, EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId,
    OrderIntent, OrderType, Price, Qty, SeqNo, Side, TimeInForce, Volume,
};
use tickwire_trading::strategy::ConductorConfig;

use crate::{Backtest, BacktestConfig, FillModel, Nobody};

/// An order in the list.
#[derive(Clone, Debug)]
struct Item {
    /// Ours by its number, or a recorded one by its.
    own: Option<u64>,
    order: u64,
    side: Side,
    price: i64,
    /// What is left of it here, and in the recording.
    here: u64,
    recorded: u64,
}

/// A stop order of ours, which is in no list until a trade triggers it.
#[derive(Clone, Debug)]
struct Waiting {
    id: u64,
    side: Side,
    trigger: i64,
    limit: Option<i64>,
    qty: (u64, u64),
    life: TimeInForce,
}

/// A fill of ours: order, quantity, price, whether it rested.
type NaiveFill = (u64, u64, i64, bool);

/// See the module.
#[derive(Debug)]
pub struct NaiveVenue {
    is_matching: bool,
    /// Whether the recorded book is what the venue's was; on one that is not, nobody who comes is taken to
    /// meet ours.
    is_live: bool,
    /// Who trades first stands first, each side for itself.
    items: Vec<Item>,
    /// Filled of each of our open orders, and its quantity.
    open: BTreeMap<u64, (u64, u64)>,
    fills: Vec<NaiveFill>,
    /// Stop orders as they came, those that act next, and the last trade.
    waiting: Vec<Waiting>,
    next: Vec<Waiting>,
    last_sale: Option<i64>,
}

impl NaiveVenue {
    /// An empty book.
    pub fn new(is_matching: bool) -> NaiveVenue {
        NaiveVenue {
            is_matching,
            is_live: true,
            items: Vec::new(),
            open: BTreeMap::new(),
            fills: Vec::new(),
            waiting: Vec::new(),
            next: Vec::new(),
            last_sale: None,
        }
    }

    /// Time goes on: stop orders that were triggered act.
    pub fn act(&mut self) {
        for stop in std::mem::take(&mut self.next) {
            self.open.remove(&stop.id);
            self.enter(stop.id, stop.side, stop.limit, stop.qty, stop.life);
        }
    }

    /// Moves what the last trade triggers from those that wait to those that act: purchases from the lowest
    /// trigger up, sales from the highest down.
    fn trigger(&mut self) {
        let Some(price) = self.last_sale else { return };
        let reached = |stop: &Waiting| match stop.side {
            Side::Bid => stop.trigger <= price,
            Side::Ask => stop.trigger >= price,
        };
        let (mut met, rest): (Vec<Waiting>, Vec<Waiting>) =
            std::mem::take(&mut self.waiting).into_iter().partition(reached);
        self.waiting = rest;
        met.sort_by_key(|stop| match stop.side {
            Side::Bid => (false, stop.trigger),
            Side::Ask => (true, -stop.trigger),
        });
        self.next.append(&mut met);
    }

    fn wait(&mut self, stop: Waiting) {
        self.open.insert(stop.id, stop.qty);
        self.waiting.push(stop);
        self.trigger();
    }

    /// Takes a stop order out, whether it waits or is about to act.
    fn take_waiting(&mut self, id: u64) -> Option<Waiting> {
        let mut found = None;
        for list in [&mut self.waiting, &mut self.next] {
            if let Some(at) = list.iter().position(|stop| stop.id == id) {
                found = Some(list.remove(at));
            }
        }
        found
    }

    fn better(side: Side, a: i64, b: i64) -> bool {
        match side {
            Side::Bid => a > b,
            Side::Ask => a < b,
        }
    }

    /// Behind everybody of its price and better ones.
    fn insert(&mut self, item: Item) {
        let worse =
            |other: &Item| other.side == item.side && Self::better(item.side, item.price, other.price);
        let at = self.items.iter().position(worse).unwrap_or(self.items.len());
        self.items.insert(at, item);
    }

    fn find(&self, order: u64) -> Option<usize> {
        let is = |item: &Item| item.own.is_none() && item.order == order && item.recorded > 0;
        self.items.iter().position(is)
    }

    /// Recorded orders stand across each other, which they do before an opening or in an auction; then nobody
    /// who comes trades.
    fn is_auction(&self) -> bool {
        let is_recorded = |item: &&Item| item.own.is_none() && item.recorded > 0;
        let of = |side: Side| {
            let prices = self.items.iter().filter(is_recorded);
            prices
                .filter(move |item| item.side == side)
                .map(|item| item.price)
        };
        let best = (of(Side::Bid).max(), of(Side::Ask).min());
        matches!(best, (Some(bid), Some(ask)) if bid >= ask)
    }

    /// Whoever has nothing left, here or there, is no more.
    fn sweep(&mut self) {
        self.items.retain(|item| item.here > 0 || item.recorded > 0);
    }

    fn fill(&mut self, at: usize, qty: u64, price: i64, is_maker: bool) {
        let Some(own) = self.items[at].own else { return };
        self.items[at].here -= qty;
        self.fills.push((own, qty, price, is_maker));
        if let Some((filled, of)) = self.open.get_mut(&own) {
            *filled += qty;
            if filled == of {
                self.open.remove(&own);
            }
        }
    }

    /// Gives `left` to those of a side before `end` whom `has` lets have some; what remains.
    fn give(&mut self, side: Side, end: usize, mut left: u64, has: impl Fn(&Item) -> u64) -> u64 {
        for at in 0..end {
            if self.items[at].side != side {
                continue;
            }
            let part = has(&self.items[at]).min(left);
            if part == 0 {
                continue;
            }
            left -= part;
            match self.items[at].own {
                Some(_) => self.fill(at, part, self.items[at].price, true),
                None => self.items[at].here -= part,
            }
        }
        left
    }

    fn executed(&mut self, at: usize, qty: u64) {
        let (side, price) = (self.items[at].side, self.items[at].price);
        let spared = |item: &Item| match item.own {
            Some(_) => item.here,
            None => item.here.saturating_sub(item.recorded),
        };
        if !self.is_matching {
            self.give(side, at, qty, |item| match item.own {
                Some(_) => item.here,
                None => 0,
            });
            let item = &mut self.items[at];
            // What ours took of it is what was executed, before anything else of it is.
            let taken = (item.recorded - item.here).saturating_sub(qty);
            item.recorded -= qty;
            item.here = item.recorded - taken.min(item.recorded);
            return;
        }
        let left = self.give(side, at, qty, spared);
        let of_item = self.items[at].here.min(left);
        self.items[at].here -= of_item;
        self.items[at].recorded -= qty;
        let all = self.items.len();
        let within = |item: &Item| match Self::better(side, price, item.price) {
            true => 0,
            false => item.here,
        };
        self.give(side, all, left - of_item, within);
    }

    fn left(&mut self, at: usize, qty: u64) {
        let item = &mut self.items[at];
        if self.is_matching {
            item.recorded -= qty;
            item.here = match item.recorded {
                0 => 0,
                _ => item.here.saturating_sub(qty),
            };
        } else {
            let taken = (item.recorded - item.here).saturating_sub(qty);
            item.recorded -= qty;
            item.here = item.recorded - taken.min(item.recorded);
        }
    }

    /// A recorded order comes to the end of its queue with what it has here.
    fn join(&mut self, order: u64, side: Side, price: i64, recorded: u64, here: u64) {
        let mut item = Item {
            own: None,
            order,
            side,
            price,
            here,
            recorded,
        };
        if self.is_matching {
            // One that was executed in the recording, and not here, is shown again.
            let same = |item: &Item| item.own.is_none() && item.order == order;
            item.here += self
                .items
                .iter()
                .filter(|item| same(item))
                .map(|item| item.here)
                .sum::<u64>();
            self.items.retain(|item| !same(item));
            let (at, here) = (self.items.len(), item.here);
            self.items.push(item.clone());
            let is_auction = self.is_auction();
            self.items.truncate(at);
            let reaches = |other: &Item| !is_auction && !Self::better(side, other.price, price);
            item.here = self.give(!side, at, here, |other| match (reaches(other), other.own) {
                (false, _) => 0,
                (true, Some(_)) => other.here,
                (true, None) => other.here.saturating_sub(other.recorded),
            });
        }
        self.insert(item);
    }

    /// An event of the recording that a book takes.
    pub fn event(&mut self, event: &MarketEvent) {
        let (order, price, qty) = (event.order_id.0, event.price.raw(), event.qty.0);
        self.last_sale = match event.kind {
            EventKind::Trade => Some(price),
            EventKind::Execute if event.flags.has(EventFlags::AT_OTHER_PRICE) => Some(price),
            EventKind::Execute => self.find(order).map(|at| self.items[at].price).or(self.last_sale),
            _ => self.last_sale,
        };
        match event.kind {
            EventKind::Add => self.join(order, event.side, price, qty, qty),
            EventKind::Trade => {
                let all = self.items.len();
                self.give(event.side, all, qty, |item| {
                    match Self::better(event.side, item.price, price) {
                        true if item.own.is_some() => item.here,
                        true if self_is_spared(item) => item.here - item.recorded,
                        _ => 0,
                    }
                });
            }
            EventKind::Clear => self.items.retain(|item| item.own.is_some()),
            _ => {
                let Some(at) = self.find(order) else { return };
                let had = self.items[at].clone();
                let elsewhere = event.flags.has(EventFlags::AT_OTHER_PRICE) && price != had.price;
                match event.kind {
                    EventKind::Execute if elsewhere && self.is_matching => {
                        let item = &mut self.items[at];
                        item.here = item.here.saturating_sub(qty);
                        item.recorded -= qty;
                    }
                    EventKind::Execute if elsewhere => self.left(at, qty),
                    EventKind::Execute => self.executed(at, qty),
                    EventKind::Reduce => self.left(at, qty),
                    EventKind::Delete => _ = self.items.remove(at),
                    EventKind::Modify
                        if event.flags.has(EventFlags::KEEPS_PRIORITY)
                            && (event.side, price) == (had.side, had.price) =>
                    {
                        let item = &mut self.items[at];
                        item.recorded = qty;
                        item.here = match self.is_matching {
                            true => (qty + had.here).saturating_sub(had.recorded),
                            false => qty.saturating_sub(had.recorded - had.here),
                        };
                    }
                    EventKind::Modify | EventKind::Replace => {
                        self.items.remove(at);
                        let (id, side) = match event.kind {
                            EventKind::Modify => (order, event.side),
                            _ => (event.ref_id, had.side),
                        };
                        let here = match self.is_matching {
                            true => (qty + had.here).saturating_sub(had.recorded),
                            // It is another order, whose liquidity nobody has used.
                            false => qty,
                        };
                        self.join(id, side, price, qty, here);
                    }
                    _ => {}
                }
            }
        }
        self.sweep();
        let adds = matches!(
            event.kind,
            EventKind::Add | EventKind::Replace | EventKind::Modify
        );
        if adds && !self.is_matching && self.is_live && !self.is_auction() {
            self.meet();
        }
        self.trigger();
    }

    /// Ours, bids first, meet whoever is recorded at or through their prices.
    fn meet(&mut self) {
        for side in Side::BOTH {
            let ours: Vec<u64> = self
                .items
                .iter()
                .filter(|item| item.side == side)
                .filter_map(|item| item.own)
                .collect();
            for own in ours {
                for other in 0..self.items.len() {
                    let Some(at) = self.items.iter().position(|item| item.own == Some(own)) else {
                        break;
                    };
                    let (mine, its) = (&self.items[at], &self.items[other]);
                    let is_reached = !Self::better(!side, mine.price, its.price);
                    if its.side != side && its.own.is_none() && is_reached {
                        let part = mine.here.min(its.here);
                        let price = mine.price;
                        self.items[other].here -= part;
                        if part > 0 {
                            self.fill(at, part, price, true);
                        }
                    }
                }
            }
        }
        self.sweep();
    }

    /// A request of ours.
    pub fn request(&mut self, request: &OrderIntent) {
        match *request {
            OrderIntent::New {
                id,
                side,
                order_type,
                price,
                stop,
                qty,
                time_in_force,
                ..
            } => {
                let limit = (order_type == OrderType::Limit).then_some(price.raw());
                if let Some(trigger) = stop {
                    return self.wait(Waiting {
                        id: id.0,
                        side,
                        trigger: trigger.raw(),
                        limit,
                        qty: (0, qty.0.into()),
                        life: time_in_force,
                    });
                }
                self.enter(id.0, side, limit, (0, qty.0.into()), time_in_force);
            }
            OrderIntent::Cancel { target, .. } => {
                self.open.remove(&target.0);
                self.take_waiting(target.0);
                self.items.retain(|item| item.own != Some(target.0));
            }
            OrderIntent::Replace {
                id,
                target,
                price,
                stop,
                qty,
                ..
            } => {
                let qty = u64::from(qty.0);
                if qty > 0
                    && let Some(old) = self.take_waiting(target.0)
                {
                    self.open.remove(&target.0);
                    return self.wait(Waiting {
                        id: id.0,
                        trigger: stop.map_or(old.trigger, Price::raw),
                        limit: old.limit.map(|_| price.raw()),
                        qty: (0, qty),
                        ..old
                    });
                }
                let Some((filled, of)) = self.open.remove(&target.0).filter(|_| qty > 0) else {
                    return;
                };
                let at = self.items.iter().position(|item| item.own == Some(target.0));
                let Some(at) = at else { return };
                if qty <= filled {
                    self.items.remove(at);
                } else if price.raw() == self.items[at].price && qty <= of {
                    self.items[at].own = Some(id.0);
                    self.items[at].here = qty - filled;
                    self.open.insert(id.0, (filled, qty));
                } else {
                    let side = self.items.remove(at).side;
                    self.enter(id.0, side, Some(price.raw()), (filled, qty), TimeInForce::Day);
                }
            }
        }
    }

    fn enter(
        &mut self,
        id: u64,
        side: Side,
        limit: Option<i64>,
        (filled, of): (u64, u64),
        life: TimeInForce,
    ) {
        let mut wanted = of - filled;
        let is_auction = self.is_auction();
        let is_within = |item: &Item| {
            !is_auction
                && item.side != side
                && item.own.is_none()
                && limit.is_none_or(|limit| !Self::better(!side, limit, item.price))
        };
        let there: u64 = self
            .items
            .iter()
            .filter(|item| is_within(item))
            .map(|item| item.here)
            .sum();
        if life == TimeInForce::FillOrKill && there < wanted {
            return;
        }
        let mut of_levels: Vec<(i64, u64)> = Vec::new();
        for item in self.items.iter_mut().filter(|item| is_within(item)) {
            let part = item.here.min(wanted);
            item.here -= part;
            wanted -= part;
            match of_levels.last_mut().filter(|(price, _)| *price == item.price) {
                _ if part == 0 => {}
                Some((_, qty)) => *qty += part,
                None => of_levels.push((item.price, part)),
            }
        }
        let taken = of_levels.into_iter().map(|(price, qty)| (id, qty, price, false));
        self.fills.extend(taken);
        self.sweep();
        let Some(price) = limit.filter(|_| wanted > 0 && life.rests()) else {
            return;
        };
        self.open.insert(id, (of - wanted, of));
        self.insert(Item {
            own: Some(id),
            order: 0,
            side,
            price,
            here: wanted,
            recorded: 0,
        });
    }
}

fn self_is_spared(item: &Item) -> bool {
    item.own.is_none() && item.here > item.recorded
}

/// What was compared last.
#[derive(Debug)]
#[allow(dead_code, reason = "shown where the two differ")]
enum Asked {
    Of(OrderIntent),
    Happened(MarketEvent),
}

/// Plays a recording and orders of ours, as `choose` wants them (a number below its argument, until there is
/// none left), to a backtest and to the oracle, and compares every fill and what is open after each step. How
/// many fills there were, and how many events the book refused.
///
/// # Panics
/// When they differ.
pub fn agree(choose: &mut dyn FnMut(u32) -> Option<u32>, fill: FillModel) -> (u64, u64) {
    const ID: InstrumentId = InstrumentId(1);
    let config = BooksConfig {
        depth: Depth::ByOrder,
        instruments: 2,
        orders: 4096,
        levels: 4096,
        initial: BookState::Live,
        ..BooksConfig::default()
    };
    // Says which events a book refuses.
    let mut books = Books::new(config);
    let mut test = Backtest::new(
        Nobody,
        vec![Books::new(config)],
        BacktestConfig {
            fill,
            conductor: ConductorConfig {
                instrument_bits: 1,
                max_orders: 1,
                ..ConductorConfig::default()
            },
            ..BacktestConfig::default()
        },
    );
    let mut naive = NaiveVenue::new(fill == FillModel::Matching);
    let (mut next, mut seq, mut refused) = (0_u64, 0_u64, 0);
    let mut step = |test: &mut Backtest<Nobody>, naive: &mut NaiveVenue| -> Option<Asked> {
        let what = choose(20)?;
        let side = Side::BOTH[choose(2)? as usize];
        // Bids mostly below, offers above: now and then they cross.
        let units = match side {
            Side::Bid => 96 + i64::from(choose(6)?),
            Side::Ask => 100 + i64::from(choose(6)?),
        };
        let price = Price::from_raw(units * Price::ONE_RAW);
        let qty = u64::from(choose(9)?) + u64::from(what != 4);
        next += 1;
        if what >= 14 {
            let id = ClientOrderId(next);
            let nth = choose(64)? as usize;
            let targets: Vec<u64> = naive.open.keys().copied().collect();
            let target = ClientOrderId(*targets.get(nth % targets.len().max(1)).unwrap_or(&0));
            let trigger = Price::from_raw((97 + nth as i64 % 8) * Price::ONE_RAW);
            let request = match what {
                18 => OrderIntent::Cancel {
                    id,
                    target,
                    venue_id: None,
                    instrument: ID,
                    side,
                    qty: Qty::ZERO,
                    cause: Cause::default(),
                },
                19 => {
                    let own = naive.items.iter().find(|item| item.own == Some(target.0));
                    let stays = own.filter(|_| nth.is_multiple_of(2));
                    OrderIntent::Replace {
                        id,
                        target,
                        venue_id: None,
                        instrument: ID,
                        side: own.map_or(side, |own| own.side),
                        order_type: OrderType::Limit,
                        price: stays.map_or(price, |own| Price::from_raw(own.price)),
                        stop: (nth < 48).then_some(trigger),
                        qty: Qty(qty as u32),
                        time_in_force: TimeInForce::Day,
                        cause: Cause::default(),
                    }
                }
                _ => OrderIntent::New {
                    id,
                    instrument: ID,
                    side,
                    order_type: match nth {
                        0 | 1 | 12..=14 => OrderType::Market,
                        _ => OrderType::Limit,
                    },
                    price,
                    // Market orders among them: every sixteenth.
                    stop: matches!(nth, 0 | 8..=23).then_some(trigger),
                    qty: Qty(qty as u32 + 1),
                    time_in_force: match nth {
                        0..=7 => TimeInForce::ImmediateOrCancel,
                        8..=11 => TimeInForce::FillOrKill,
                        _ => TimeInForce::Day,
                    },
                    cause: Cause::default(),
                },
            };
            test.inject(&request);
            naive.request(&request);
            return Some(Asked::Of(request));
        }
        let nth = choose(256)? as usize;
        let known: Vec<&Item> = naive.items.iter().filter(|item| item.recorded > 0).collect();
        let of_side = known.iter().filter(|item| item.side == side);
        let best = of_side.clone().next().copied();
        let any = known.get(nth % known.len().max(1)).copied();
        let others: Vec<&Item> = naive.items.iter().filter(|item| item.own.is_none()).collect();
        let again = others.get(nth % others.len().max(1)).map_or(7, |item| item.order);
        let meant = match what {
            5..=8 if nth < 200 => best,
            _ => any,
        };
        let order_id = OrderId(meant.map_or(7, |item| item.order));
        let kept = meant.map_or((side, price), |item| (item.side, Price::from_raw(item.price)));
        let (kind, flags, place) = match what {
            0..=4 => (EventKind::Add, EventFlags::NONE, (side, price)),
            5..=7 => (EventKind::Execute, EventFlags::NONE, kept),
            8 if nth.is_multiple_of(2) => (EventKind::Execute, EventFlags::AT_OTHER_PRICE, kept),
            8 => (EventKind::Execute, EventFlags::AT_OTHER_PRICE, (kept.0, price)),
            9 => (EventKind::Reduce, EventFlags::NONE, kept),
            10 => (EventKind::Delete, EventFlags::NONE, kept),
            11 => (EventKind::Replace, EventFlags::NONE, (side, price)),
            12 if nth.is_multiple_of(2) => (EventKind::Modify, EventFlags::KEEPS_PRIORITY, kept),
            12 => (EventKind::Modify, EventFlags::NONE, (side, price)),
            _ if nth == 0 => (EventKind::Clear, EventFlags::NONE, (side, price)),
            _ => (EventKind::Trade, EventFlags::NONE, (side, price)),
        };
        seq += 1;
        let event = MarketEvent {
            kind,
            flags,
            instrument: match nth {
                1 if kind == EventKind::Clear => InstrumentId::WHOLE_FEED,
                _ => ID,
            },
            seq: SeqNo(seq),
            recv_ts: Nanos(seq),
            side: place.0,
            price: place.1,
            qty: Volume(qty),
            order_id: match kind {
                // Now and then one that is there already.
                EventKind::Add if nth > 8 => OrderId(1_000 + next),
                EventKind::Add => OrderId(again),
                _ => order_id,
            },
            ref_id: 1_000 + next,
            ..MarketEvent::default()
        };
        naive.act();
        test.on_event(0, &event);
        let is_refused = matches!(books.apply(&event), Applied::Rejected(_));
        refused += u64::from(is_refused);
        // What did not fit makes the book stale until it is cleared.
        naive.is_live = books.book(ID).is_some_and(|book| book.state() == BookState::Live);
        if !is_refused {
            naive.event(&event);
        }
        Some(Asked::Happened(event))
    };
    while let Some(last) = step(&mut test, &mut naive) {
        let fills: Vec<NaiveFill> = test
            .fills()
            .iter()
            .map(|f| (f.order.0, f.qty.0.into(), f.price.raw(), f.is_maker))
            .collect();
        assert_eq!(
            fills, naive.fills,
            "after {last:?}; the list is now {:#?}",
            naive.items
        );
        assert_eq!(test.resting(), naive.open.len(), "after {last:?}");
    }
    (naive.fills.len() as u64, refused)
}
