//! The matching engine: price, display, time.
//!
//! Per instrument ten ladders: the book (bid and ask, displayed and hidden), and orders that wait (stops by
//! their trigger, orders for the opening and for the closing by their limit, bid and ask each). A ladder is
//! an array of price levels sorted so that the best stands last: nearly all changes happen there and move
//! little. The orders of a level are a doubly linked list through one slab. An order is found by number
//! through one hash table. Everything is allocated in [`Engine::new`]; what does not fit later is rejected
//! with [`Reject::Full`].
//!
//! Within a level numbers ascend: whatever loses its priority gets a new one.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Level, OrderId, Price, Qty, Side, TimeInForce, TradingStatus, Volume};
use tickwire_persist::{Bytes, Damaged, Persist, PersistValue, StateReader, load_each, persist, save_each};

use crate::index::OrderIndex;
use crate::order::{BreakReason, CancelReason, Listener, NewOrder, Order, OrderPlace, Reject, StateHash};
use crate::rules::{AuctionKind, HaltedOrders, PriceBands, Rules};

mod auction;
mod checks;
mod matching;
mod quotes;
mod trades;

use checks::is_for_auction;
use matching::leave;
pub use quotes::PROTECTIONS_MAX;
use quotes::Quotes;
pub use trades::TRADES_KEPT;
use trades::Trades;

/// The largest price of the ITCH family, 200,000.0000 (TotalView-ITCH 5.0, "Data Types"): that of instruments
/// whose [`Rules`](crate::Rules) say none other.
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
    /// How many of them may have a reserve.
    icebergs: u32,
}

/// A cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
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
    /// Of the call phase, if it is one.
    auction: AuctionKind,
    last_sale: Price,
    /// The static reference of price bands; 0 until there is one.
    reference: Price,
}

/// What is done with a new order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admission {
    /// It trades, then rests or expires.
    Match,
    /// It rests without trading.
    Collect,
    /// It waits outside the book.
    Wait(OrderPlace),
}

/// Ladders of an instrument: four of the book, six of waiting orders.
const LADDERS: usize = 10;
/// Levels of a ladder of waiting orders.
const WAITING_LEVELS_MAX: u32 = 64;

/// See the module's description.
pub struct Engine {
    config: EngineConfig,
    listed: Vec<Listed>,
    ladders: Vec<Ladder>,
    slots: Vec<Slot>,
    /// Of stop orders, by slot.
    triggers: Vec<Price>,
    quotes: Quotes,
    free: u32,
    live: u32,
    index: OrderIndex,
    last_order_id: u64,
    last_match: u64,
    trades: Trades,
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
                auction: AuctionKind::Opening,
                last_sale: Price::ZERO,
                reference: Price::ZERO,
            })
            .collect();
        let levels = |ladder| match ladder % LADDERS {
            0..4 => config.max_levels,
            _ => config.max_levels.min(WAITING_LEVELS_MAX),
        };
        Engine {
            config,
            listed,
            ladders: (0..instruments * LADDERS)
                .map(|ladder| Ladder(Vec::with_capacity(levels(ladder) as usize)))
                .collect(),
            slots,
            triggers: alloc::vec![Price::ZERO; config.max_orders as usize],
            quotes: Quotes::new(&config),
            free: if config.max_orders > 0 { 0 } else { NIL },
            live: 0,
            index: OrderIndex::new(config.max_orders as usize),
            last_order_id: 0,
            last_match: 0,
            trades: Trades::new(),
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

    /// Sets the static reference of an instrument's price bands, which is also what an auction of market
    /// orders alone goes by; every auction sets it anew. Above 0.
    pub fn set_reference(&mut self, instrument: InstrumentId, price: Price) -> Result<(), Reject> {
        let price_max = self.listing(instrument)?.rules.price_max;
        if price <= Price::ZERO || price > price_max {
            return Err(Reject::PriceRange);
        }
        self.listed[instrument.index()].reference = price;
        Ok(())
    }

    /// Changes the trading status. Orders stay. [`TradingStatus::Trading`] matches,
    /// [`TradingStatus::Auction`] collects (see [`Engine::begin_auction`]), halts and pauses do as
    /// [`Rules::halted`] says, [`TradingStatus::PreOpen`] takes orders at the opening and close, every other
    /// status none. A crossed book cannot go on trading: an auction comes first.
    pub fn set_status(
        &mut self,
        instrument: InstrumentId,
        status: TradingStatus,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.listing(instrument)?;
        if status == TradingStatus::Trading && self.is_crossed(instrument) {
            return Err(Reject::NotTrading);
        }
        self.listed[instrument.index()].status = status;
        out.status(instrument, status);
        self.settle(instrument, out);
        Ok(())
    }

    /// The trading status.
    pub fn trading_status(&self, instrument: InstrumentId) -> Option<TradingStatus> {
        self.listing(instrument).ok().map(|l| l.status)
    }

    /// Enters an order. Its number is given even if it traded or expired whole; a stop order that was
    /// triggered at once, and an iceberg that showed its next slice, have another one already, which
    /// [`Listener`] told.
    pub fn submit(&mut self, new: &NewOrder, out: &mut impl Listener) -> Result<OrderId, Reject> {
        let (entry, mut order) = self.admit(new)?;
        order.id = self.next_id();
        let id = order.id;
        out.accepted(&order);
        match entry {
            Admission::Match => self.trade_in(order, out),
            Admission::Collect => {
                let order = order.sliced();
                self.rest(order, Price::ZERO);
                out.rested(&order);
            }
            Admission::Wait(_) => {
                self.rest(order, new.stop.unwrap_or_default());
                out.parked(&order);
            }
        }
        self.settle(new.instrument, out);
        Ok(id)
    }

    /// Removes an order, reserve included.
    pub fn cancel(&mut self, id: OrderId, out: &mut impl Listener) -> Result<(), Reject> {
        let slot = self.index.get(id.0).ok_or(Reject::UnknownOrder)?;
        let instrument = self.slots[slot as usize].order.instrument;
        self.remove(slot, None, out);
        out.completed(instrument);
        Ok(())
    }

    /// Takes `by` from an order, which keeps its place; all of it removes the order. An iceberg loses its
    /// reserve first.
    pub fn reduce(&mut self, id: OrderId, by: Qty, out: &mut impl Listener) -> Result<(), Reject> {
        let slot = self.index.get(id.0).ok_or(Reject::UnknownOrder)?;
        let order = self.slots[slot as usize].order;
        if by.is_zero() {
            return Err(Reject::Quantity);
        }
        if u64::from(by.0) >= order.leaves() {
            return self.cancel(id, out);
        }
        self.check_lot(order.instrument, by)?;
        self.lower(slot, by, None, out);
        out.completed(order.instrument);
        Ok(())
    }

    /// Breaks a trade by its number, one of the last [`TRADES_KEPT`]. Orders and books stay as they are: what
    /// was executed does not return. What it set off (a last price, a triggered stop, a limit of market maker
    /// protection) stays too.
    pub fn break_trade(
        &mut self,
        match_number: u64,
        reason: BreakReason,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        let broken = self.trades.break_one(match_number, reason)?;
        out.broken(&broken);
        out.completed(broken.instrument);
        Ok(())
    }

    /// The number of the last trade or auction, 0 before the first.
    pub fn last_match_number(&self) -> u64 {
        self.last_match
    }

    /// Gives an order another price and remaining quantity (reserve included). Its number after that: the
    /// same when it kept its priority. A waiting order keeps its trigger; the price of a market order is
    /// ignored. Quotes are replaced by [`Engine::mass_quote`] only.
    pub fn replace(
        &mut self,
        id: OrderId,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let slot = self.index.get(id.0).ok_or(Reject::UnknownOrder)?;
        let old = self.slots[slot as usize].order;
        if old.is_waiting() {
            return self.replace_waiting(slot, self.triggers[slot as usize], price, qty, out);
        }
        if old.is_quote() {
            return Err(Reject::Quote);
        }
        let entry = self.entry(old.instrument, old.time_in_force, false, false)?;
        self.check_price(old.instrument, price, old.improvement)?;
        self.check_qty(old.instrument, qty)?;
        if price == old.price && u64::from(qty.0) <= old.leaves() {
            let by = Qty((old.leaves() - u64::from(qty.0)) as u32);
            if !by.is_zero() {
                self.lower(slot, by, None, out);
            }
            out.completed(old.instrument);
            return Ok(id);
        }
        self.check_band(old.instrument, old.side, price)?;
        let mut new = Order {
            price,
            qty,
            reserve: Qty::ZERO,
            ..old
        };
        if entry == Admission::Match && old.is_post_only() {
            self.make_passive(&mut new)?;
        }
        if !self.has_level_room(&new, Price::ZERO) {
            return Err(Reject::Full);
        }
        new.id = self.next_id();
        self.unrest(slot);
        let limit = key_of(!new.side, new.price);
        if entry == Admission::Collect || self.best_maker(new.instrument, !new.side, limit).is_none() {
            let rested = new.sliced();
            self.rest(rested, Price::ZERO);
            out.replaced(&old, &rested, true);
        } else {
            out.replaced(&old, &new, false);
            self.trade_in(new, out);
        }
        self.settle(new.instrument, out);
        Ok(new.id)
    }

    /// As [`Engine::replace`] for a waiting stop order, with another trigger.
    pub fn replace_stop(
        &mut self,
        id: OrderId,
        stop: Price,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let slot = self.index.get(id.0).ok_or(Reject::UnknownOrder)?;
        match self.slots[slot as usize].order.terms.place() {
            OrderPlace::Stop => self.replace_waiting(slot, stop, price, qty, out),
            _ => Err(Reject::UnknownOrder),
        }
    }

    fn replace_waiting(
        &mut self,
        slot: u32,
        stop: Price,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let (old, trigger) = (self.slots[slot as usize].order, self.triggers[slot as usize]);
        let price = if old.is_market() { old.price } else { price };
        let is_stop = old.terms.place() == OrderPlace::Stop;
        self.entry(old.instrument, old.time_in_force, old.is_market(), is_stop)?;
        if is_stop {
            self.check_stop(old.instrument, stop)?;
        }
        if !old.is_market() {
            self.check_price(old.instrument, price, Price::ZERO)?;
            self.check_band(old.instrument, old.side, price)?;
        }
        self.check_qty(old.instrument, qty)?;
        if (price, stop) == (old.price, trigger) && qty <= old.qty {
            if qty < old.qty {
                self.lower(slot, Qty(old.qty.0 - qty.0), None, out);
            }
            out.completed(old.instrument);
            return Ok(old.id);
        }
        let mut new = Order { price, qty, ..old };
        if !self.has_level_room(&new, stop) {
            return Err(Reject::Full);
        }
        new.id = self.next_id();
        self.unrest(slot);
        self.rest(new, stop);
        out.reparked(&old, &new);
        self.settle(new.instrument, out);
        Ok(new.id)
    }

    /// The last sale, else the static reference, else a best price, else 0: the reference of auctions.
    pub fn reference(&self, instrument: InstrumentId) -> Price {
        let Ok(listed) = self.listing(instrument) else {
            return Price::ZERO;
        };
        if listed.last_sale > Price::ZERO {
            return listed.last_sale;
        }
        if listed.reference > Price::ZERO {
            return listed.reference;
        }
        let best = self
            .best(instrument, Side::Bid)
            .or_else(|| self.best(instrument, Side::Ask));
        best.map_or(Price::ZERO, |level| level.price)
    }

    /// An order in the book, or one that waits.
    pub fn order(&self, id: OrderId) -> Option<&Order> {
        self.index.get(id.0).map(|slot| &self.slots[slot as usize].order)
    }

    /// The trigger of a stop order that waits.
    pub fn stop_price(&self, id: OrderId) -> Option<Price> {
        let slot = self.index.get(id.0)? as usize;
        (self.slots[slot].order.terms.place() == OrderPlace::Stop).then_some(self.triggers[slot])
    }

    /// How many orders rest or wait.
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

    /// The displayed orders of the level `nth` from the best, first in the queue first. Empty if there is
    /// none.
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

    /// All orders of the books in priority order: instrument, side, displayed then hidden, best price first,
    /// queue.
    pub fn visit(&self, each: &mut impl FnMut(&Order)) {
        for ladders in self.ladders.chunks_exact(LADDERS).skip(1) {
            self.visit_ladders(&ladders[..4], each);
        }
    }

    /// All orders that wait: instrument, kind (stops, for the opening, for the closing), side, the next one
    /// first.
    pub fn visit_parked(&self, each: &mut impl FnMut(&Order)) {
        for ladders in self.ladders.chunks_exact(LADDERS).skip(1) {
            self.visit_ladders(&ladders[4..], each);
        }
    }

    fn visit_ladders(&self, ladders: &[Ladder], each: &mut impl FnMut(&Order)) {
        for rung in ladders.iter().flat_map(|ladder| ladder.0.iter().rev()) {
            self.chain(rung.head).for_each(&mut *each);
        }
    }

    /// A hash over all orders, and what instruments remember.
    pub fn state_hash(&self) -> u64 {
        let mut hash = StateHash::default();
        self.visit(&mut |order| hash.order(order));
        self.visit_parked(&mut |order| {
            hash.order(order);
            hash.word(self.stop_price(order.id).unwrap_or_default().raw() as u64);
        });
        for listed in &self.listed[1..] {
            hash.word((listed.status as u64) << 8 | listed.auction as u64);
            hash.word(listed.last_sale.raw() as u64);
            hash.word(listed.reference.raw() as u64);
        }
        hash.word(self.trades.broken());
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
            Ok(_) => &self.ladders[instrument.index() * LADDERS + side as usize * 2 + usize::from(hidden)].0,
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

    /// What an instrument does now with an order of this kind.
    fn entry(
        &self,
        instrument: InstrumentId,
        time_in_force: TimeInForce,
        is_market: bool,
        is_stop: bool,
    ) -> Result<Admission, Reject> {
        let listed = self.listing(instrument)?;
        entry_of(
            listed.status,
            listed.auction,
            &listed.rules,
            (time_in_force, is_market, is_stop),
        )
    }

    fn next_id(&mut self) -> OrderId {
        self.last_order_id += 1;
        OrderId(self.last_order_id)
    }

    /// An order leaves.
    fn remove(&mut self, slot: u32, reason: Option<CancelReason>, out: &mut impl Listener) {
        let order = self.slots[slot as usize].order;
        self.unrest(slot);
        leave(&order, reason, out);
    }

    /// An order loses less than all it has, the reserve first, in its place.
    fn lower(&mut self, slot: u32, by: Qty, reason: Option<CancelReason>, out: &mut impl Listener) {
        let old = self.slots[slot as usize].order;
        if by <= old.reserve {
            let order = &mut self.slots[slot as usize].order;
            order.reserve = Qty(old.reserve.0 - by.0);
            let order = *order;
            if let Some(reason) = reason {
                out.cancelled(&order, reason);
            }
            return out.reserve_reduced(&order, by);
        }
        let shown = Qty(by.0 - old.reserve.0);
        self.slots[slot as usize].order.reserve = Qty::ZERO;
        let order = self.take(slot, shown);
        if let Some(reason) = reason {
            out.cancelled(&order, reason);
        }
        match order.is_waiting() {
            true => out.reparked(&old, &order),
            false => out.reduced(&order, shown),
        }
    }

    /// Takes less than all from an order (of an iceberg, from its slice) in its place.
    fn take(&mut self, slot: u32, qty: Qty) -> Order {
        let order = &mut self.slots[slot as usize].order;
        order.qty = Qty(order.qty.0 - qty.0);
        let order = *order;
        let (ladder, at) = self.rung_of(slot);
        self.ladders[ladder].0[at].volume -= u64::from(qty.0);
        order
    }

    fn rung_of(&self, slot: u32) -> (usize, usize) {
        let order = &self.slots[slot as usize].order;
        let ladder = ladder_of(order);
        let key = match order.is_waiting() {
            false => key_of(order.side, order.price),
            true => rung_key(order, self.triggers[slot as usize]),
        };
        let at = self.ladders[ladder].find(key);
        (ladder, at.expect("a resting order has its level"))
    }

    fn rest(&mut self, order: Order, trigger: Price) {
        let slot = self.free;
        assert_ne!(slot, NIL, "room was checked when the order was accepted");
        self.free = self.slots[slot as usize].next;
        self.live += 1;
        self.index.insert(order.id.0, slot);
        if order.is_waiting() {
            self.triggers[slot as usize] = trigger;
        }
        let ladder = &mut self.ladders[ladder_of(&order)];
        let key = rung_key(&order, trigger);
        let qty = u64::from(order.qty.0);
        let icebergs = u32::from(!order.display.is_zero());
        let prev = match ladder.find(key) {
            Ok(at) => {
                let rung = &mut ladder.0[at];
                let prev = rung.tail;
                rung.tail = slot;
                rung.volume += qty;
                rung.orders += 1;
                rung.icebergs += icebergs;
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
                        icebergs,
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
        let (ladder, at) = self.rung_of(slot);
        let Slot { order, prev, next } = self.slots[slot as usize];
        let ladder = &mut self.ladders[ladder];
        let rung = &mut ladder.0[at];
        rung.volume -= u64::from(order.qty.0);
        rung.orders -= 1;
        rung.icebergs -= u32::from(!order.display.is_zero());
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

/// What an instrument in this state does with an order: how long it lives, whether it is a market order,
/// whether it waits to be triggered.
fn entry_of(
    status: TradingStatus,
    auction: AuctionKind,
    rules: &Rules,
    (time_in_force, is_market, is_stop): (TimeInForce, bool, bool),
) -> Result<Admission, Reject> {
    use TimeInForce::*;
    use TradingStatus::*;
    let collects =
        status == Auction || matches!(status, Halted | Paused) && rules.halted == HaltedOrders::Collect;
    if status == Trading && !is_stop && !is_for_auction(time_in_force) {
        return Ok(Admission::Match);
    }
    match time_in_force {
        AtTheClose if collects || matches!(status, PreOpen | Trading) => {
            Ok(Admission::Wait(OrderPlace::Closing))
        }
        AtTheOpening if status == PreOpen || (status, auction) == (Auction, AuctionKind::Opening) => {
            Ok(Admission::Wait(OrderPlace::Opening))
        }
        AtTheOpening | AtTheClose => Err(Reject::NotTrading),
        _ if is_stop && (collects || status == Trading) => Ok(Admission::Wait(OrderPlace::Stop)),
        Day | GoodTillCancel if collects && !is_market => Ok(Admission::Collect),
        Day | GoodTillCancel if status == Auction => Ok(Admission::Wait(place_of(auction))),
        _ => Err(Reject::NotTrading),
    }
}

/// Where orders wait for an auction.
fn place_of(auction: AuctionKind) -> OrderPlace {
    match auction {
        AuctionKind::Closing => OrderPlace::Closing,
        AuctionKind::Opening | AuctionKind::Resumption => OrderPlace::Opening,
    }
}

/// The worst price at which an order of this side may trade; `None` without a band.
fn edge_of(bands: &PriceBands, reference: Price, last_sale: Price, side: Side) -> Option<Price> {
    if bands.static_ppm == 0 && bands.dynamic_ppm == 0 {
        return None;
    }
    let edge = |around: Price, ppm: u32| {
        let reach = (i128::from(around.raw()) * i128::from(ppm) / 1_000_000) as i64;
        let edge = match side {
            Side::Bid => around.raw().saturating_add(reach),
            Side::Ask => around.raw().saturating_sub(reach),
        };
        (around > Price::ZERO && ppm > 0).then_some(Price::from_raw(edge))
    };
    let last = if last_sale > Price::ZERO {
        last_sale
    } else {
        reference
    };
    let edges = [edge(reference, bands.static_ppm), edge(last, bands.dynamic_ppm)];
    // The narrower one: the worse price for the order.
    edges
        .into_iter()
        .flatten()
        .reduce(|a, b| if side.better(a, b) { b } else { a })
}

/// Waiting stop orders stand by their triggers, the first to be passed best; market orders before all others.
fn rung_key(order: &Order, trigger: Price) -> i64 {
    match order.terms.place() {
        OrderPlace::Book => key_of(order.side, order.price),
        OrderPlace::Stop => key_of(!order.side, trigger),
        OrderPlace::Opening | OrderPlace::Closing if order.is_market() => i64::MAX,
        OrderPlace::Opening | OrderPlace::Closing => key_of(order.side, order.price),
    }
}

fn ladder_of(order: &Order) -> usize {
    let base = order.instrument.index() * LADDERS;
    match order.terms.place() {
        OrderPlace::Book => base + order.side as usize * 2 + usize::from(order.hidden),
        waiting => base + 2 + waiting as usize * 2 + order.side as usize,
    }
}

persist!(value struct Rung { key, volume, head, tail, orders, icebergs });
persist!(value struct Slot { order, prev, next });
persist!(value struct Ladder(rungs));
persist!(value struct Listed { rules, status, auction, last_sale, reference });

/// Of the slots those that an order has, and the order in which the others are given out, in runs of
/// ascending numbers: there are many more than orders.
impl Persist for Engine {
    fn save(&self, out: &mut Bytes) {
        let Engine {
            config: _,
            listed,
            ladders,
            slots,
            triggers,
            quotes,
            free,
            live,
            index,
            last_order_id,
            last_match,
            trades,
        } = self;
        listed.save(out);
        save_each(ladders.iter(), out);
        index.save(out);
        for (_, slot) in index.iter() {
            (slots[slot as usize], triggers[slot as usize]).save(out);
        }
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let mut at = *free;
        while at != NIL {
            match runs.last_mut() {
                Some((first, length)) if *first + *length == at => *length += 1,
                _ => runs.push((at, 1)),
            }
            at = slots[at as usize].next;
        }
        runs.save(out);
        quotes.save(out);
        (*live, *last_order_id, *last_match).save(out);
        trades.save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), Damaged> {
        self.listed.load(from)?;
        load_each(self.ladders.iter_mut(), from)?;
        self.index.load(from)?;
        for (_, slot) in self.index.iter() {
            let slot = slot as usize;
            let (saved, trigger) = PersistValue::read(from)?;
            *self.slots.get_mut(slot).ok_or(Damaged)? = saved;
            self.triggers[slot] = trigger;
        }
        let runs = Vec::<(u32, u32)>::read(from)?;
        self.free = NIL;
        for (first, length) in runs.into_iter().rev() {
            let end = first.checked_add(length).ok_or(Damaged)?;
            if length > self.slots.len() as u32 {
                return Err(Damaged);
            }
            for at in (first..end).rev() {
                self.slots.get_mut(at as usize).ok_or(Damaged)?.next = self.free;
                self.free = at;
            }
        }
        self.quotes.load(from)?;
        (self.live, self.last_order_id, self.last_match) = PersistValue::read(from)?;
        self.trades.load(from)
    }
}
