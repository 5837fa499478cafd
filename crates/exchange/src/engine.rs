//! The matching engine: price, display, time.
//!
//! Per instrument four ladders (bid and ask, displayed and hidden). A ladder is an array of price levels sorted so that
//! the best stands last: nearly all changes happen there and move little. The orders of a level are a doubly linked
//! list through one slab. An order is found by number through one hash table. Everything is allocated in
//! [`Engine::new`]; what does not fit later is rejected with [`Reject::Full`].

use alloc::vec::Vec;

use tickwire_market::{
    InstrumentId, Level, OrderId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus, Volume,
};

use crate::index::OrderIndex;
use crate::order::{Cross, Execution, Indication, Listener, NewOrder, Order, Reject, StateHash};
use crate::rules::{AuctionKind, Rules};

/// The largest price of the ITCH family, 200,000.0000 (TotalView-ITCH 5.0, "Data Types").
pub const PRICE_MAX: Price = Price::from_4dp(2_000_000_000);

/// Sizes of an [`Engine`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineConfig {
    /// Instruments are numbered 1 to this.
    pub instruments: u32,
    /// Resting orders of all instruments together.
    pub max_orders: u32,
    /// Price levels of one side of one instrument, separately for displayed and hidden orders.
    pub max_levels: u32,
}

impl Default for EngineConfig {
    fn default() -> EngineConfig {
        EngineConfig {
            instruments: 100,
            max_orders: 1 << 20,
            max_levels: 1024,
        }
    }
}

const NIL: u32 = u32::MAX;

/// A better level has a larger key, on both sides.
fn key_of(side: Side, price: Price) -> i64 {
    match side {
        Side::Bid => price.raw(),
        Side::Ask => -price.raw(),
    }
}

fn price_of(side: Side, key: i64) -> Price {
    match side {
        Side::Bid => Price::from_raw(key),
        Side::Ask => Price::from_raw(-key),
    }
}

#[derive(Clone, Copy)]
struct Rung {
    key: i64,
    volume: u64,
    head: u32,
    tail: u32,
    orders: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    order: Order,
    prev: u32,
    next: u32,
}

/// Levels in ascending order of their keys.
struct Ladder(Vec<Rung>);

impl Ladder {
    /// Where `key` is (`Ok`) or belongs (`Err`). Scans from the best: most changes are there.
    fn find(&self, key: i64) -> Result<usize, usize> {
        const SCAN: usize = 12;
        let near = self.0.len().saturating_sub(SCAN);
        for (at, rung) in self.0.iter().enumerate().skip(near).rev() {
            if rung.key <= key {
                return if rung.key == key { Ok(at) } else { Err(at + 1) };
            }
        }
        self.0[..near].binary_search_by_key(&key, |rung| rung.key)
    }
}

struct Listed {
    rules: Rules,
    status: TradingStatus,
    last_sale: Price,
    /// Shares waiting for the closing cross, by side; not part of the book.
    on_close: [u64; 2],
}

/// See the module's description.
pub struct Engine {
    config: EngineConfig,
    listed: Vec<Listed>,
    ladders: Vec<Ladder>,
    slots: Vec<Slot>,
    free: u32,
    live: u32,
    index: OrderIndex,
    last_order_id: u64,
    last_match: u64,
}

impl Engine {
    /// An engine without orders; every instrument has a tick of 0.01 and does not trade yet.
    pub fn new(config: EngineConfig) -> Engine {
        let instruments = config.instruments as usize + 1;
        let slots = (0..config.max_orders)
            .map(|i| Slot {
                order: Order::default(),
                prev: NIL,
                next: if i + 1 < config.max_orders { i + 1 } else { NIL },
            })
            .collect();
        let listed = (0..instruments)
            .map(|_| Listed {
                rules: Rules::default(),
                status: TradingStatus::PreOpen,
                last_sale: Price::ZERO,
                on_close: [0; 2],
            })
            .collect();
        Engine {
            config,
            listed,
            ladders: (0..instruments * 4)
                .map(|_| Ladder(Vec::with_capacity(config.max_levels as usize)))
                .collect(),
            slots,
            free: if config.max_orders > 0 { 0 } else { NIL },
            live: 0,
            index: OrderIndex::new(config.max_orders as usize),
            last_order_id: 0,
            last_match: 0,
        }
    }

    /// Sets an instrument's rules, before any order. The default is a tick of 0.01 and a lot of 1.
    ///
    /// # Panics
    /// If the instrument does not exist or the lot is 0: configuration is validated before.
    pub fn set_rules(&mut self, instrument: InstrumentId, rules: Rules) {
        assert!(rules.lot > Qty::ZERO, "a lot is above zero");
        self.listed[instrument.index()].rules = rules;
    }

    /// An instrument's rules.
    pub fn rules(&self, instrument: InstrumentId) -> Option<&Rules> {
        self.listing(instrument).ok().map(|listed| &listed.rules)
    }

    /// Changes the trading status. Orders stay; only [`TradingStatus::Trading`] takes new ones.
    pub fn set_status(
        &mut self,
        instrument: InstrumentId,
        status: TradingStatus,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.listing(instrument)?;
        self.listed[instrument.index()].status = status;
        out.status(instrument, status);
        out.completed(instrument);
        Ok(())
    }

    /// The trading status.
    pub fn trading_status(&self, instrument: InstrumentId) -> Option<TradingStatus> {
        self.listing(instrument).ok().map(|l| l.status)
    }

    /// Enters an order. Its number is given even if it traded or expired whole.
    pub fn submit(&mut self, new: &NewOrder, out: &mut impl Listener) -> Result<OrderId, Reject> {
        self.check_new(new)?;
        self.last_order_id += 1;
        let mut order = new.entered_as(OrderId(self.last_order_id));
        out.accepted(&order);
        let limit = match new.order_type {
            OrderType::Limit => key_of(!new.side, new.price),
            OrderType::Market => i64::MIN,
        };
        if new.time_in_force == TimeInForce::FillOrKill && !self.can_fill(&order, limit) {
            out.expired(&order);
            out.completed(order.instrument);
            return Ok(order.id);
        }
        self.sweep(&mut order, limit, out);
        match (order.qty.is_zero(), new.rests()) {
            (true, _) => {}
            (false, true) => {
                self.rest(order);
                out.rested(&order);
            }
            (false, false) => out.expired(&order),
        }
        out.completed(order.instrument);
        Ok(order.id)
    }

    /// Removes an order.
    pub fn cancel(&mut self, id: OrderId, out: &mut impl Listener) -> Result<(), Reject> {
        let slot = self.index.get(id.0).ok_or(Reject::UnknownOrder)?;
        let order = self.slots[slot as usize].order;
        self.unrest(slot);
        out.deleted(&order);
        out.completed(order.instrument);
        Ok(())
    }

    /// Takes `by` from an order, which keeps its place; all of it removes the order.
    pub fn reduce(&mut self, id: OrderId, by: Qty, out: &mut impl Listener) -> Result<(), Reject> {
        let slot = self.index.get(id.0).ok_or(Reject::UnknownOrder)?;
        if by.is_zero() {
            return Err(Reject::Quantity);
        }
        match self.slots[slot as usize].order.qty.checked_sub(by) {
            None | Some(Qty::ZERO) => self.cancel(id, out),
            Some(_) => {
                let order = self.take(slot, by);
                out.reduced(&order, by);
                out.completed(order.instrument);
                Ok(())
            }
        }
    }

    /// Gives an order another price and remaining quantity. Its number after that: the same when it kept its priority.
    pub fn replace(
        &mut self,
        id: OrderId,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let slot = self.index.get(id.0).ok_or(Reject::UnknownOrder)?;
        let old = self.slots[slot as usize].order;
        self.check_status(old.instrument)?;
        self.check_price(old.instrument, price, old.improvement)?;
        if qty.is_zero() {
            return Err(Reject::Quantity);
        }
        if price == old.price && qty <= old.qty {
            let by = Qty(old.qty.0 - qty.0);
            return if by.is_zero() {
                out.completed(old.instrument);
                Ok(id)
            } else {
                self.reduce(id, by, out).map(|()| id)
            };
        }
        if !self.has_level_room(&old, price) {
            return Err(Reject::Full);
        }
        self.last_order_id += 1;
        let mut new = Order {
            id: OrderId(self.last_order_id),
            price,
            qty,
            ..old
        };
        self.unrest(slot);
        let limit = key_of(!new.side, price);
        if self.best_maker(new.instrument, !new.side, limit).is_none() {
            self.rest(new);
            out.replaced(&old, &new, true);
            out.completed(new.instrument);
            return Ok(new.id);
        }
        out.replaced(&old, &new, false);
        self.sweep(&mut new, limit, out);
        if !new.qty.is_zero() {
            self.rest(new);
            out.rested(&new);
        }
        out.completed(new.instrument);
        Ok(new.id)
    }

    /// Adds shares to the closing cross of an instrument. They are not part of the book.
    pub fn add_on_close(&mut self, instrument: InstrumentId, side: Side, qty: Qty) -> Result<(), Reject> {
        self.listing(instrument)?;
        let waiting = &mut self.listed[instrument.index()].on_close[side as usize];
        *waiting = waiting.saturating_add(u64::from(qty.0));
        Ok(())
    }

    /// Tells what the closing cross would do now.
    pub fn indicate(&self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        let [buy, sell] = self.listing(instrument)?.on_close;
        out.indicated(&Indication {
            instrument,
            kind: AuctionKind::Closing,
            clearing: self.reference(instrument),
            paired: buy.min(sell),
            imbalance: buy.abs_diff(sell),
            side: if buy >= sell { Side::Bid } else { Side::Ask },
            price: self.reference(instrument),
        });
        out.completed(instrument);
        Ok(())
    }

    /// Closes an instrument: what is paired crosses at the reference price, the rest of the cross is void, displayed
    /// orders stay as they are and nothing trades any more.
    pub fn close(&mut self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        let [buy, sell] = self.listing(instrument)?.on_close;
        let price = self.reference(instrument);
        let listed = &mut self.listed[instrument.index()];
        listed.on_close = [0; 2];
        listed.status = TradingStatus::Closed;
        self.last_match += 1;
        out.crossed(&Cross {
            instrument,
            kind: AuctionKind::Closing,
            qty: buy.min(sell),
            price,
            match_number: self.last_match,
        });
        out.completed(instrument);
        Ok(())
    }

    /// The last sale, else a best price, else 0: the reference of the closing cross.
    pub fn reference(&self, instrument: InstrumentId) -> Price {
        let Ok(listed) = self.listing(instrument) else {
            return Price::ZERO;
        };
        if listed.last_sale > Price::ZERO {
            return listed.last_sale;
        }
        let best = self
            .best(instrument, Side::Bid)
            .or_else(|| self.best(instrument, Side::Ask));
        best.map_or(Price::ZERO, |level| level.price)
    }

    /// A resting order.
    pub fn order(&self, id: OrderId) -> Option<&Order> {
        self.index.get(id.0).map(|slot| &self.slots[slot as usize].order)
    }

    /// How many orders rest.
    pub fn live_orders(&self) -> u32 {
        self.live
    }

    /// The sizes it was made with.
    pub fn config(&self) -> EngineConfig {
        self.config
    }

    /// The best displayed level.
    pub fn best(&self, instrument: InstrumentId, side: Side) -> Option<Level> {
        self.levels(instrument, side).next()
    }

    /// The displayed levels, best first. Empty for an unknown instrument.
    pub fn levels(
        &self,
        instrument: InstrumentId,
        side: Side,
    ) -> impl DoubleEndedIterator<Item = Level> + '_ {
        let rungs = self.rungs(instrument, side, false);
        rungs.iter().rev().map(move |rung| Level {
            price: price_of(side, rung.key),
            qty: Volume(rung.volume),
            orders: rung.orders,
        })
    }

    /// How many displayed levels a side has.
    pub fn depth(&self, instrument: InstrumentId, side: Side) -> usize {
        self.rungs(instrument, side, false).len()
    }

    /// The displayed orders of the level `nth` from the best, first in the queue first. Empty if there is none.
    pub fn queue(
        &self,
        instrument: InstrumentId,
        side: Side,
        nth: usize,
    ) -> impl Iterator<Item = &Order> + '_ {
        let rungs = self.rungs(instrument, side, false);
        let rung = rungs.len().checked_sub(nth + 1).map(|at| &rungs[at]);
        self.chain(rung.map_or(NIL, |rung| rung.head))
    }

    /// The last order of the level `nth` from the best.
    pub fn last_in_queue(&self, instrument: InstrumentId, side: Side, nth: usize) -> Option<&Order> {
        let rungs = self.rungs(instrument, side, false);
        let rung = &rungs[rungs.len().checked_sub(nth + 1)?];
        Some(&self.slots[rung.tail as usize].order)
    }

    /// All orders in priority order: instrument, side, displayed then hidden, best price first, queue.
    pub fn visit(&self, each: &mut impl FnMut(&Order)) {
        for ladder in 4..self.ladders.len() {
            for rung in self.ladders[ladder].0.iter().rev() {
                self.chain(rung.head).for_each(&mut *each);
            }
        }
    }

    /// A hash over all books.
    pub fn state_hash(&self) -> u64 {
        let mut hash = StateHash::default();
        self.visit(&mut |order| hash.order(order));
        hash.value()
    }

    fn listing(&self, instrument: InstrumentId) -> Result<&Listed, Reject> {
        match instrument {
            InstrumentId::WHOLE_FEED => Err(Reject::UnknownInstrument),
            known => self.listed.get(known.index()).ok_or(Reject::UnknownInstrument),
        }
    }

    fn rungs(&self, instrument: InstrumentId, side: Side, hidden: bool) -> &[Rung] {
        match self.listing(instrument) {
            Ok(_) => &self.ladders[ladder_at(instrument, side, hidden)].0,
            Err(_) => &[],
        }
    }

    fn chain(&self, head: u32) -> impl Iterator<Item = &Order> + '_ {
        let mut at = head;
        core::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            at = slot.next;
            Some(&slot.order)
        })
    }

    fn check_new(&self, new: &NewOrder) -> Result<(), Reject> {
        self.check_status(new.instrument)?;
        let is_plain = new.stop.is_none() && new.display.is_zero() && !new.post_only;
        if !is_plain
            || matches!(
                new.time_in_force,
                TimeInForce::AtTheOpening | TimeInForce::AtTheClose
            )
        {
            return Err(Reject::Instructions);
        }
        if new.qty.is_zero() {
            return Err(Reject::Quantity);
        }
        if new.order_type == OrderType::Limit {
            self.check_price(new.instrument, new.price, new.improvement)?;
        }
        if new.rests() {
            let room = self.free != NIL && self.has_level_room(&new.entered_as(OrderId(0)), new.price);
            return if room { Ok(()) } else { Err(Reject::Full) };
        }
        Ok(())
    }

    fn check_status(&self, instrument: InstrumentId) -> Result<(), Reject> {
        match self.listing(instrument)?.status {
            TradingStatus::Trading => Ok(()),
            _ => Err(Reject::NotTrading),
        }
    }

    fn check_price(&self, instrument: InstrumentId, price: Price, improvement: Price) -> Result<(), Reject> {
        let tick = self.listing(instrument)?.rules.ticks.at(price).raw();
        if price <= Price::ZERO || price > PRICE_MAX || improvement < Price::ZERO || improvement >= price {
            return Err(Reject::PriceRange);
        }
        if price.raw() % tick != 0 || improvement.raw() % tick != 0 {
            return Err(Reject::Tick);
        }
        Ok(())
    }

    /// Whether an order like this could rest at `price`. Asked before anything happens, and conservative: levels that the
    /// order itself is about to leave still count.
    fn has_level_room(&self, order: &Order, price: Price) -> bool {
        let ladder = &self.ladders[ladder_at(order.instrument, order.side, order.hidden)];
        ladder.0.len() < self.config.max_levels as usize || ladder.find(key_of(order.side, price)).is_ok()
    }

    /// The ladder whose best level trades next with an order limited to levels of at least `limit`.
    fn best_maker(&self, instrument: InstrumentId, side: Side, limit: i64) -> Option<usize> {
        let shown = ladder_at(instrument, side, false);
        let best = |at: usize| self.ladders[at].0.last().map_or(i64::MIN, |rung| rung.key);
        let at = if best(shown + 1) > best(shown) {
            shown + 1
        } else {
            shown
        };
        // No price has the key i64::MIN, so an empty ladder never qualifies for a limit order; a market order's limit
        // is i64::MIN itself, hence the second condition.
        (best(at) >= limit && best(at) != i64::MIN).then_some(at)
    }

    fn can_fill(&self, order: &Order, limit: i64) -> bool {
        let mut wanted = u64::from(order.qty.0);
        for hidden in [false, true] {
            for rung in self.rungs(order.instrument, !order.side, hidden).iter().rev() {
                if rung.key < limit {
                    break;
                }
                if rung.volume >= wanted {
                    return true;
                }
                wanted -= rung.volume;
            }
        }
        false
    }

    fn sweep(&mut self, taker: &mut Order, limit: i64, out: &mut impl Listener) {
        while !taker.qty.is_zero() {
            let Some(ladder) = self.best_maker(taker.instrument, !taker.side, limit) else {
                return;
            };
            let Some(rung) = self.ladders[ladder].0.last() else {
                return;
            };
            let slot = rung.head;
            let resting = self.slots[slot as usize].order;
            let qty = resting.qty.min(taker.qty);
            taker.qty = Qty(taker.qty.0 - qty.0);
            let maker = if qty == resting.qty {
                self.unrest(slot);
                Order {
                    qty: Qty::ZERO,
                    ..resting
                }
            } else {
                self.take(slot, qty)
            };
            self.last_match += 1;
            let price = resting.execution_price();
            self.listed[taker.instrument.index()].last_sale = price;
            out.executed(&Execution {
                maker,
                taker: *taker,
                qty,
                price,
                match_number: self.last_match,
            });
        }
    }

    /// Takes less than all from an order in its place.
    fn take(&mut self, slot: u32, qty: Qty) -> Order {
        let order = &mut self.slots[slot as usize].order;
        order.qty = Qty(order.qty.0 - qty.0);
        let order = *order;
        let ladder = &mut self.ladders[ladder_at(order.instrument, order.side, order.hidden)];
        let at = ladder
            .find(key_of(order.side, order.price))
            .expect("a resting order has its level");
        ladder.0[at].volume -= u64::from(qty.0);
        order
    }

    fn rest(&mut self, order: Order) {
        let slot = self.free;
        assert_ne!(slot, NIL, "room was checked when the order was accepted");
        self.free = self.slots[slot as usize].next;
        self.live += 1;
        self.index.insert(order.id.0, slot);
        let ladder = &mut self.ladders[ladder_at(order.instrument, order.side, order.hidden)];
        let key = key_of(order.side, order.price);
        let qty = u64::from(order.qty.0);
        let prev = match ladder.find(key) {
            Ok(at) => {
                let rung = &mut ladder.0[at];
                let prev = rung.tail;
                rung.tail = slot;
                rung.volume += qty;
                rung.orders += 1;
                self.slots[prev as usize].next = slot;
                prev
            }
            Err(at) => {
                ladder.0.insert(
                    at,
                    Rung {
                        key,
                        volume: qty,
                        head: slot,
                        tail: slot,
                        orders: 1,
                    },
                );
                NIL
            }
        };
        self.slots[slot as usize] = Slot {
            order,
            prev,
            next: NIL,
        };
    }

    fn unrest(&mut self, slot: u32) {
        let Slot { order, prev, next } = self.slots[slot as usize];
        let ladder = &mut self.ladders[ladder_at(order.instrument, order.side, order.hidden)];
        let at = ladder
            .find(key_of(order.side, order.price))
            .expect("a resting order has its level");
        let rung = &mut ladder.0[at];
        rung.volume -= u64::from(order.qty.0);
        rung.orders -= 1;
        match prev {
            NIL => rung.head = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NIL => rung.tail = prev,
            next => self.slots[next as usize].prev = prev,
        }
        if rung.orders == 0 {
            ladder.0.remove(at);
        }
        self.index.remove(order.id.0);
        self.slots[slot as usize].next = self.free;
        self.free = slot;
        self.live -= 1;
    }
}

fn ladder_at(instrument: InstrumentId, side: Side, hidden: bool) -> usize {
    instrument.index() * 4 + side as usize * 2 + usize::from(hidden)
}
