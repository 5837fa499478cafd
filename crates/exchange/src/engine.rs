//! The matching engine: price, display, time.
//!
//! Per instrument ten ladders: the book (bid and ask, displayed and hidden), and orders that wait (stops by
//! their trigger, orders for the opening and for the closing by their limit, bid and ask each). A ladder is
//! an array of prices sorted so that the best stands last: nearly all changes happen there and move little.
//! The orders of a level are a doubly linked list through one slab, and each knows its level: one that leaves
//! is not searched for. An order is found by its number, without hashing while it is one of the latest few
//! million. Everything is allocated in [`Engine::new`]; what does not fit later is rejected with
//! [`Reject::Full`].
//!
//! Within a level numbers ascend: whatever loses its priority gets a new one.

use alloc::vec::Vec;
use core::ops::Range;

use tickwire_market::{InstrumentId, Level, OrderId, Price, Qty, Side, TimeInForce, TradingStatus, Volume};
use tickwire_persist::persist;

use crate::index::OrderWindow;
use crate::order::{BreakReason, Listener, NewOrder, Order, OrderPlace, Reject, StateHash};
use crate::rules::{AuctionKind, HaltedOrders, PriceBands, Rules};

mod auction;
mod checks;
mod ladders;
mod matching;
mod quotes;
mod resting;
mod state;
mod trades;

use checks::is_for_auction;
use ladders::{Ladders, Queue, Rung};
pub use quotes::PROTECTIONS_MAX;
use quotes::Quotes;
use resting::{Link, Slot, ladder_of, rung_key};
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
    ladders: Ladders,
    slots: Vec<Slot>,
    /// By slot, apart from the orders: who leaves touches its neighbours' only.
    links: Vec<Link>,
    /// Of stop orders, by slot.
    triggers: Vec<Price>,
    quotes: Quotes,
    free: u32,
    live: u32,
    index: OrderWindow,
    last_order_id: u64,
    last_match: u64,
    trades: Trades,
}

impl Engine {
    /// An engine without orders; every instrument has a tick of 0.01 and does not trade yet.
    pub fn new(config: EngineConfig) -> Engine {
        let instruments = config.instruments as usize + 1;
        let links = (0..config.max_orders)
            .map(|i| Link {
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
            0..4 => config.max_levels as usize,
            _ => config.max_levels.min(WAITING_LEVELS_MAX) as usize,
        };
        Engine {
            config,
            listed,
            ladders: Ladders::new((0..instruments * LADDERS).map(levels)),
            slots: alloc::vec![Slot { order: Order::default(), queue: NIL }; config.max_orders as usize],
            links,
            triggers: alloc::vec![Price::ZERO; config.max_orders as usize],
            quotes: Quotes::new(&config),
            free: if config.max_orders > 0 { 0 } else { NIL },
            live: 0,
            index: OrderWindow::new(config.max_orders as usize),
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
        let mut order = new.entered_as(OrderId(0));
        let entry = self.admit(new, &mut order)?;
        order.id = self.next_id();
        let id = order.id;
        out.accepted(&order);
        match entry {
            Admission::Match => self.trade_in(order, out),
            Admission::Collect => {
                let order = order.sliced();
                self.rest(&order, Price::ZERO);
                out.rested(&order);
            }
            Admission::Wait(_) => {
                self.rest(&order, new.stop.unwrap_or_default());
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
            self.rest(&rested, Price::ZERO);
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
        self.rest(&new, stop);
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
        let ladder = self.displayed(instrument, side)?;
        let queue = self.ladders.best_queue(ladder)?;
        Some(Level {
            price: price_of(side, self.ladders.best(ladder)),
            qty: Volume(queue.volume),
            orders: queue.orders,
        })
    }

    /// The displayed levels, best first. Empty for an unknown instrument.
    pub fn levels(
        &self,
        instrument: InstrumentId,
        side: Side,
    ) -> impl DoubleEndedIterator<Item = Level> + '_ {
        let rungs = self.rungs(instrument, side, false);
        rungs.iter().rev().map(move |rung| {
            let queue = self.ladders.queue_of(rung);
            Level {
                price: price_of(side, rung.key),
                qty: Volume(queue.volume),
                orders: queue.orders,
            }
        })
    }

    /// How many displayed levels a side has.
    pub fn depth(&self, instrument: InstrumentId, side: Side) -> usize {
        let ladder = self.displayed(instrument, side);
        ladder.map_or(0, |ladder| self.ladders.depth(ladder))
    }

    /// The displayed orders of the level `nth` from the best, first in the queue first. Empty if there is
    /// none.
    pub fn queue(
        &self,
        instrument: InstrumentId,
        side: Side,
        nth: usize,
    ) -> impl Iterator<Item = &Order> + '_ {
        let queue = self.nth(instrument, side, nth);
        self.chain(queue.map_or(NIL, |queue| queue.head))
    }

    /// The last order of the level `nth` from the best.
    pub fn last_in_queue(&self, instrument: InstrumentId, side: Side, nth: usize) -> Option<&Order> {
        let queue = self.nth(instrument, side, nth)?;
        Some(&self.slots[queue.tail as usize].order)
    }

    /// The displayed level `nth` from the best.
    fn nth(&self, instrument: InstrumentId, side: Side, nth: usize) -> Option<&Queue> {
        let ladder = self.displayed(instrument, side)?;
        if nth == 0 {
            return self.ladders.best_queue(ladder);
        }
        let rungs = self.ladders.of(ladder);
        let at = rungs.len().checked_sub(nth + 1)?;
        Some(self.ladders.queue_of(&rungs[at]))
    }

    /// The ladder of a side's displayed orders; `None` of an unknown instrument.
    fn displayed(&self, instrument: InstrumentId, side: Side) -> Option<usize> {
        self.listing(instrument).ok()?;
        Some(instrument.index() * LADDERS + side as usize * 2)
    }

    /// All orders of the books in priority order: instrument, side, displayed then hidden, best price first,
    /// queue.
    pub fn visit(&self, each: &mut impl FnMut(&Order)) {
        self.visit_ladders(0..4, each);
    }

    /// All orders that wait: instrument, kind (stops, for the opening, for the closing), side, the next one
    /// first.
    pub fn visit_parked(&self, each: &mut impl FnMut(&Order)) {
        self.visit_ladders(4..LADDERS, each);
    }

    fn visit_ladders(&self, which: Range<usize>, each: &mut impl FnMut(&Order)) {
        for instrument in 1..=self.config.instruments as usize {
            for ladder in which.clone() {
                for rung in self.ladders.of(instrument * LADDERS + ladder).iter().rev() {
                    self.chain(self.ladders.queue_of(rung).head).for_each(&mut *each);
                }
            }
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
            Ok(_) => self
                .ladders
                .of(instrument.index() * LADDERS + side as usize * 2 + usize::from(hidden)),
            Err(_) => &[],
        }
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

persist!(value struct Listed { rules, status, auction, last_sale, reference });
