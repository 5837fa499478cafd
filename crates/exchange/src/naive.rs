//! The matching engine as one would explain it: all orders in one list, searched anew for every question. The oracle of
//! [`crate::Engine`]; never optimised.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, OrderId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus};

use crate::engine::{EngineConfig, PRICE_MAX};
use crate::order::{Execution, Listener, NewOrder, Order, Reject, StateHash};
use crate::rules::Rules;

/// The oracle. Same rules, same answers, same events as [`crate::Engine`] (without the closing cross).
pub struct NaiveEngine {
    config: EngineConfig,
    rules: Vec<Rules>,
    statuses: Vec<TradingStatus>,
    /// In order of arrival.
    orders: Vec<Order>,
    last_order_id: u64,
    last_match: u64,
}

impl NaiveEngine {
    /// See [`crate::Engine::new`].
    pub fn new(config: EngineConfig) -> NaiveEngine {
        let n = config.instruments as usize + 1;
        NaiveEngine {
            config,
            rules: alloc::vec![Rules::default(); n],
            statuses: alloc::vec![TradingStatus::PreOpen; n],
            orders: Vec::new(),
            last_order_id: 0,
            last_match: 0,
        }
    }

    /// See [`crate::Engine::set_rules`].
    pub fn set_rules(&mut self, instrument: InstrumentId, rules: Rules) {
        self.rules[instrument.index()] = rules;
    }

    /// See [`crate::Engine::set_status`].
    pub fn set_status(
        &mut self,
        instrument: InstrumentId,
        status: TradingStatus,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.check_known(instrument)?;
        self.statuses[instrument.index()] = status;
        out.status(instrument, status);
        out.completed(instrument);
        Ok(())
    }

    /// See [`crate::Engine::submit`].
    pub fn submit(&mut self, new: &NewOrder, out: &mut impl Listener) -> Result<OrderId, Reject> {
        let rests = new.order_type == OrderType::Limit && new.time_in_force == TimeInForce::Day;
        self.check_known(new.instrument)?;
        if self.statuses[new.instrument.index()] != TradingStatus::Trading {
            return Err(Reject::NotTrading);
        }
        if new.qty == Qty(0) {
            return Err(Reject::Quantity);
        }
        if new.order_type == OrderType::Limit {
            self.check_price(new.instrument, new.price, new.improvement)?;
        }
        if rests && self.orders.len() >= self.config.max_orders as usize {
            return Err(Reject::Full);
        }
        if rests && !self.level_fits(new.instrument, new.side, new.hidden, new.price) {
            return Err(Reject::Full);
        }
        self.last_order_id += 1;
        let limit = match new.order_type {
            OrderType::Limit => Some(new.price),
            OrderType::Market => None,
        };
        let mut order = Order {
            id: OrderId(self.last_order_id),
            ..new.entered_as(OrderId(0))
        };
        out.accepted(&order);
        let available: u64 = self
            .orders
            .iter()
            .filter(|maker| matches(maker, &order, limit))
            .map(|maker| u64::from(maker.qty.0))
            .sum();
        if new.time_in_force == TimeInForce::FillOrKill && available < u64::from(order.qty.0) {
            out.expired(&order);
            out.completed(order.instrument);
            return Ok(order.id);
        }
        self.trade(&mut order, limit, out);
        if order.qty > Qty(0) && rests {
            self.orders.push(order);
            out.rested(&order);
        } else if order.qty > Qty(0) {
            out.expired(&order);
        }
        out.completed(order.instrument);
        Ok(order.id)
    }

    /// See [`crate::Engine::cancel`].
    pub fn cancel(&mut self, id: OrderId, out: &mut impl Listener) -> Result<(), Reject> {
        let at = self.position(id)?;
        let order = self.orders.remove(at);
        out.deleted(&order);
        out.completed(order.instrument);
        Ok(())
    }

    /// See [`crate::Engine::reduce`].
    pub fn reduce(&mut self, id: OrderId, by: Qty, out: &mut impl Listener) -> Result<(), Reject> {
        let at = self.position(id)?;
        if by == Qty(0) {
            return Err(Reject::Quantity);
        }
        if by >= self.orders[at].qty {
            return self.cancel(id, out);
        }
        self.orders[at].qty = Qty(self.orders[at].qty.0 - by.0);
        out.reduced(&self.orders[at], by);
        out.completed(self.orders[at].instrument);
        Ok(())
    }

    /// See [`crate::Engine::replace`].
    pub fn replace(
        &mut self,
        id: OrderId,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let at = self.position(id)?;
        let old = self.orders[at];
        if self.statuses[old.instrument.index()] != TradingStatus::Trading {
            return Err(Reject::NotTrading);
        }
        self.check_price(old.instrument, price, old.improvement)?;
        if qty == Qty(0) {
            return Err(Reject::Quantity);
        }
        if price == old.price && qty == old.qty {
            out.completed(old.instrument);
            return Ok(id);
        }
        if price == old.price && qty < old.qty {
            self.reduce(id, Qty(old.qty.0 - qty.0), out)?;
            return Ok(id);
        }
        if !self.level_fits(old.instrument, old.side, old.hidden, price) {
            return Err(Reject::Full);
        }
        self.orders.remove(at);
        self.last_order_id += 1;
        let mut new = Order {
            id: OrderId(self.last_order_id),
            price,
            qty,
            ..old
        };
        let marketable = self.orders.iter().any(|maker| matches(maker, &new, Some(price)));
        out.replaced(&old, &new, !marketable);
        self.trade(&mut new, Some(price), out);
        if new.qty > Qty(0) {
            self.orders.push(new);
            if marketable {
                out.rested(&new);
            }
        }
        out.completed(new.instrument);
        Ok(new.id)
    }

    /// See [`crate::Engine::visit`].
    pub fn visit(&self, each: &mut impl FnMut(&Order)) {
        let mut sorted: Vec<&Order> = self.orders.iter().collect();
        // Stable: arrival order stays within equal keys.
        sorted.sort_by_key(|o| {
            let price = if o.side == Side::Bid {
                -o.price.raw()
            } else {
                o.price.raw()
            };
            (o.instrument, o.side, o.hidden, price)
        });
        sorted.into_iter().for_each(each);
    }

    /// See [`crate::Engine::state_hash`].
    pub fn state_hash(&self) -> u64 {
        let mut hash = StateHash::default();
        self.visit(&mut |order| hash.order(order));
        hash.value()
    }

    fn trade(&mut self, taker: &mut Order, limit: Option<Price>, out: &mut impl Listener) {
        while taker.qty > Qty(0) {
            let best = (0..self.orders.len())
                .filter(|&i| matches(&self.orders[i], taker, limit))
                .min_by_key(|&i| {
                    let maker = &self.orders[i];
                    let price = if maker.side == Side::Bid {
                        -maker.price.raw()
                    } else {
                        maker.price.raw()
                    };
                    (price, maker.hidden, i)
                });
            let Some(at) = best else { return };
            let qty = self.orders[at].qty.min(taker.qty);
            let price = self.orders[at].execution_price();
            taker.qty = Qty(taker.qty.0 - qty.0);
            self.orders[at].qty = Qty(self.orders[at].qty.0 - qty.0);
            let maker = self.orders[at];
            if maker.qty == Qty(0) {
                self.orders.remove(at);
            }
            self.last_match += 1;
            out.executed(&Execution {
                maker,
                taker: *taker,
                qty,
                price,
                match_number: self.last_match,
            });
        }
    }

    fn position(&self, id: OrderId) -> Result<usize, Reject> {
        self.orders
            .iter()
            .position(|o| o.id == id)
            .ok_or(Reject::UnknownOrder)
    }

    fn check_known(&self, instrument: InstrumentId) -> Result<(), Reject> {
        if instrument.0 == 0 || instrument.0 > self.config.instruments {
            return Err(Reject::UnknownInstrument);
        }
        Ok(())
    }

    fn check_price(&self, instrument: InstrumentId, price: Price, improvement: Price) -> Result<(), Reject> {
        if price <= Price::ZERO || price > PRICE_MAX || improvement < Price::ZERO || improvement >= price {
            return Err(Reject::PriceRange);
        }
        let tick = self.rules[instrument.index()].ticks.at(price).raw();
        if price.raw() % tick != 0 || improvement.raw() % tick != 0 {
            return Err(Reject::Tick);
        }
        Ok(())
    }

    fn level_fits(&self, instrument: InstrumentId, side: Side, hidden: bool, price: Price) -> bool {
        let mut prices: Vec<Price> = self
            .orders
            .iter()
            .filter(|o| o.instrument == instrument && o.side == side && o.hidden == hidden)
            .map(|o| o.price)
            .collect();
        prices.sort();
        prices.dedup();
        prices.contains(&price) || prices.len() < self.config.max_levels as usize
    }
}

/// Whether `maker` would trade with `taker`.
fn matches(maker: &Order, taker: &Order, limit: Option<Price>) -> bool {
    maker.instrument == taker.instrument
        && maker.side != taker.side
        && match (limit, taker.side) {
            (None, _) => true,
            (Some(limit), Side::Bid) => maker.price <= limit,
            (Some(limit), Side::Ask) => maker.price >= limit,
        }
}
