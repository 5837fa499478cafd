//! The matching engine as one would explain it: all orders in one list, searched anew for every question. The
//! oracle of [`crate::Engine`]; never optimised, and without a line of the engine: its rules are those of
//! `docs/exchange.md`.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, OrderId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus};

use crate::engine::EngineConfig;
use crate::order::{
    BreakReason, Broken, CancelReason, Cross, CrossFill, Execution, Firm, Indication, Listener, NO_MPID,
    NewOrder, Order, OrderPlace, Owner, Party, Reject, SelfTrade, StateHash, Terms,
};
use crate::rules::{AuctionKind, MassCancel, OnBreach, PostOnly, Protection, QuoteEntry, Rules};

mod rules;

use rules::{Goes, Watch};

#[derive(Clone, Copy)]
struct Standing {
    order: Order,
    /// Of stop orders.
    trigger: Price,
}

#[derive(Clone)]
struct Listed {
    rules: Rules,
    status: TradingStatus,
    auction: AuctionKind,
    last_sale: Price,
    reference: Price,
}

/// The oracle. Same rules, same answers, same events as [`crate::Engine`].
pub struct NaiveEngine {
    config: EngineConfig,
    listed: Vec<Listed>,
    /// In order of arrival, in the book or waiting.
    standing: Vec<Standing>,
    /// Who quoted what, in order of the first quote, and the latest orders.
    quotes: Vec<(Firm, InstrumentId, [OrderId; 2])>,
    guards: Vec<Watch>,
    tripped: Vec<(Firm, u32)>,
    now: u64,
    last_order_id: u64,
    last_match: u64,
    /// Every trade, and whether it is broken; auctions without one.
    trades: Vec<(u64, Option<Execution>, bool)>,
}

impl NaiveEngine {
    /// See [`crate::Engine::new`].
    pub fn new(config: EngineConfig) -> NaiveEngine {
        let listed = Listed {
            rules: Rules::default(),
            status: TradingStatus::PreOpen,
            auction: AuctionKind::Opening,
            last_sale: Price::ZERO,
            reference: Price::ZERO,
        };
        NaiveEngine {
            config,
            listed: alloc::vec![listed; config.instruments as usize + 1],
            standing: Vec::new(),
            quotes: Vec::new(),
            guards: Vec::new(),
            tripped: Vec::new(),
            now: 0,
            last_order_id: 0,
            last_match: 0,
            trades: Vec::new(),
        }
    }

    /// See [`crate::Engine::set_rules`].
    pub fn set_rules(&mut self, instrument: InstrumentId, rules: Rules) {
        self.listed[instrument.index()].rules = rules;
    }

    /// See [`crate::Engine::set_time`].
    pub fn set_time(&mut self, now_ns: u64) {
        self.now = self.now.max(now_ns);
    }

    /// See [`crate::Engine::set_reference`].
    pub fn set_reference(&mut self, instrument: InstrumentId, price: Price) -> Result<(), Reject> {
        self.check_known(instrument)?;
        if price <= Price::ZERO || price > self.listed[instrument.index()].rules.price_max {
            return Err(Reject::PriceRange);
        }
        self.listed[instrument.index()].reference = price;
        Ok(())
    }

    /// See [`crate::Engine::set_status`].
    pub fn set_status(
        &mut self,
        instrument: InstrumentId,
        status: TradingStatus,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.check_known(instrument)?;
        let best = |side| {
            self.best(instrument, side)
                .map(|at| self.standing[at].order.price)
        };
        if let (Some(bid), Some(ask)) = (best(Side::Bid), best(Side::Ask))
            && bid >= ask
            && status == TradingStatus::Trading
        {
            return Err(Reject::NotTrading);
        }
        self.listed[instrument.index()].status = status;
        out.status(instrument, status);
        self.settle(instrument, out);
        Ok(())
    }

    /// See [`crate::Engine::begin_auction`].
    pub fn begin_auction(
        &mut self,
        instrument: InstrumentId,
        kind: AuctionKind,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.check_known(instrument)?;
        self.listed[instrument.index()].auction = kind;
        self.set_status(instrument, TradingStatus::Auction, out)
    }

    /// See [`crate::Engine::submit`].
    pub fn submit(&mut self, new: &NewOrder, out: &mut impl Listener) -> Result<OrderId, Reject> {
        self.check_known(new.instrument)?;
        if !rules::go_together(new) {
            return Err(Reject::Instructions);
        }
        let is_market = new.order_type == OrderType::Market;
        let kind = (new.time_in_force, is_market, new.stop.is_some());
        let entry = self.entry(new.instrument, kind)?;
        self.check_qty(new.instrument, new.qty)?;
        if new.display > Qty(0) {
            self.check_lot(new.instrument, new.display)?;
            if new.display >= new.qty {
                return Err(Reject::Display);
            }
        }
        if let Some(stop) = new.stop {
            self.check_stop(new.instrument, stop)?;
        }
        if !is_market {
            self.check_price(new.instrument, new.price, new.improvement)?;
            self.check_band(new.instrument, new.side, new.price)?;
        }
        let mut order = new.entered_as(OrderId(0));
        if let Goes::Waits(place) = entry {
            order.terms = order.terms.at(place);
        }
        if entry == Goes::Matched && new.post_only {
            self.make_passive(&mut order)?;
        }
        let trigger = new.stop.unwrap_or(Price::ZERO);
        if entry != Goes::Matched || rules::is_left_standing(new.order_type, new.time_in_force) {
            let is_full = self.standing.len() >= self.config.max_orders as usize;
            if is_full || !self.level_fits(&order, trigger) {
                return Err(Reject::Full);
            }
        }
        order.id = self.next_id();
        out.accepted(&order);
        match entry {
            Goes::Matched => self.trade_in(order, out),
            Goes::Collected => {
                let order = rules::shown(order);
                self.stand(order, Price::ZERO);
                out.rested(&order);
            }
            Goes::Waits(_) => {
                self.stand(order, trigger);
                out.parked(&order);
            }
        }
        self.settle(order.instrument, out);
        Ok(order.id)
    }

    /// See [`crate::Engine::cancel`].
    pub fn cancel(&mut self, id: OrderId, out: &mut impl Listener) -> Result<(), Reject> {
        let at = self.position(id)?;
        let instrument = self.standing[at].order.instrument;
        self.remove(at, None, out);
        out.completed(instrument);
        Ok(())
    }

    /// See [`crate::Engine::reduce`].
    pub fn reduce(&mut self, id: OrderId, by: Qty, out: &mut impl Listener) -> Result<(), Reject> {
        let at = self.position(id)?;
        let order = self.standing[at].order;
        if by == Qty(0) {
            return Err(Reject::Quantity);
        }
        if u64::from(by.0) >= order.leaves() {
            return self.cancel(id, out);
        }
        self.check_lot(order.instrument, by)?;
        self.lower(at, by, None, out);
        out.completed(order.instrument);
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
        let old = self.standing[at].order;
        if old.is_waiting() {
            return self.replace_waiting(at, self.standing[at].trigger, price, qty, out);
        }
        if old.is_quote() {
            return Err(Reject::Quote);
        }
        let entry = self.entry(old.instrument, (old.time_in_force, false, false))?;
        self.check_price(old.instrument, price, old.improvement)?;
        self.check_qty(old.instrument, qty)?;
        let leaves = old.leaves() as u32;
        if price == old.price && qty.0 <= leaves {
            if qty.0 < leaves {
                self.lower(at, Qty(leaves - qty.0), None, out);
            }
            out.completed(old.instrument);
            return Ok(id);
        }
        self.check_band(old.instrument, old.side, price)?;
        let mut new = Order {
            price,
            qty,
            reserve: Qty(0),
            ..old
        };
        if entry == Goes::Matched && old.is_post_only() {
            self.make_passive(&mut new)?;
        }
        if !self.level_fits(&new, Price::ZERO) {
            return Err(Reject::Full);
        }
        self.standing.remove(at);
        new.id = self.next_id();
        let is_marketable = self
            .standing
            .iter()
            .any(|maker| matches(&maker.order, &new, Some(new.price)));
        if entry == Goes::Matched && is_marketable {
            out.replaced(&old, &new, false);
            self.trade_in(new, out);
        } else {
            let rested = rules::shown(new);
            self.stand(rested, Price::ZERO);
            out.replaced(&old, &rested, true);
        }
        self.settle(new.instrument, out);
        Ok(new.id)
    }

    /// See [`crate::Engine::replace_stop`].
    pub fn replace_stop(
        &mut self,
        id: OrderId,
        stop: Price,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let at = self.position(id)?;
        if self.standing[at].order.terms.place() != OrderPlace::Stop {
            return Err(Reject::UnknownOrder);
        }
        self.replace_waiting(at, stop, price, qty, out)
    }

    fn replace_waiting(
        &mut self,
        at: usize,
        stop: Price,
        price: Price,
        qty: Qty,
        out: &mut impl Listener,
    ) -> Result<OrderId, Reject> {
        let Standing { order: old, trigger } = self.standing[at];
        let is_stop = old.terms.place() == OrderPlace::Stop;
        self.entry(old.instrument, (old.time_in_force, old.is_market(), is_stop))?;
        if is_stop {
            self.check_stop(old.instrument, stop)?;
        }
        let mut new = old;
        if !old.is_market() {
            self.check_price(old.instrument, price, Price::ZERO)?;
            self.check_band(old.instrument, old.side, price)?;
            new.price = price;
        }
        self.check_qty(old.instrument, qty)?;
        if new.price == old.price && stop == trigger && qty <= old.qty {
            if qty < old.qty {
                self.lower(at, Qty(old.qty.0 - qty.0), None, out);
            }
            out.completed(old.instrument);
            return Ok(old.id);
        }
        new.qty = qty;
        if !self.level_fits(&new, stop) {
            return Err(Reject::Full);
        }
        self.standing.remove(at);
        new.id = self.next_id();
        self.stand(new, stop);
        out.reparked(&old, &new);
        self.settle(new.instrument, out);
        Ok(new.id)
    }

    /// See [`crate::Engine::mass_cancel`].
    pub fn mass_cancel(&mut self, which: &MassCancel, out: &mut impl Listener) -> Result<u32, Reject> {
        if let Some(instrument) = which.instrument {
            self.check_known(instrument)?;
        }
        let mut count = 0;
        for instrument in (1..=self.config.instruments).map(InstrumentId) {
            let group = self.listed[instrument.index()].rules.group;
            if which.instrument.is_some_and(|one| one != instrument)
                || which.group.is_some_and(|g| g != group)
            {
                continue;
            }
            count += self.cancel_where(
                instrument,
                CancelReason::MassCancel,
                |order| {
                    which.firm.is_none_or(|firm| firm == order.firm)
                        && which.side.is_none_or(|side| side == order.side)
                        && (order.is_quote() || !which.quotes_only)
                },
                out,
            );
        }
        Ok(count)
    }

    /// See [`crate::Engine::expire_day`].
    pub fn expire_day(&mut self, instrument: InstrumentId, out: &mut impl Listener) -> Result<u32, Reject> {
        self.check_known(instrument)?;
        let is_over = |order: &Order| order.time_in_force != TimeInForce::GoodTillCancel;
        Ok(self.cancel_where(instrument, CancelReason::DayOver, is_over, out))
    }

    fn cancel_where(
        &mut self,
        instrument: InstrumentId,
        reason: CancelReason,
        which: impl Fn(&Order) -> bool,
        out: &mut impl Listener,
    ) -> u32 {
        let mut leaving = Vec::new();
        let mut note = |order: &Order| {
            if order.instrument == instrument && which(order) {
                leaving.push(order.id);
            }
        };
        self.visit(&mut note);
        self.visit_parked(&mut note);
        for id in &leaving {
            if let Ok(at) = self.position(*id) {
                self.remove(at, Some(reason), out);
            }
        }
        if !leaving.is_empty() {
            out.completed(instrument);
        }
        leaving.len() as u32
    }

    /// See [`crate::Engine::mass_quote`].
    pub fn mass_quote(
        &mut self,
        firm: Firm,
        entries: &[QuoteEntry],
        results: &mut [Result<(), Reject>],
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        if firm == Firm::NONE {
            return Err(Reject::NoFirm);
        }
        for (entry, result) in entries.iter().zip(results) {
            *result = self.quote(firm, entry, out);
        }
        Ok(())
    }

    fn quote(&mut self, firm: Firm, entry: &QuoteEntry, out: &mut impl Listener) -> Result<(), Reject> {
        self.check_known(entry.instrument)?;
        let mut orders = Vec::new();
        for (side, price, qty) in [
            (Side::Bid, entry.bid, entry.bid_qty),
            (Side::Ask, entry.ask, entry.ask_qty),
        ] {
            orders.push(Order {
                price,
                qty,
                instrument: entry.instrument,
                owner: entry.owner,
                mpid: NO_MPID,
                firm,
                side,
                terms: Terms::of_quote(),
                ..Order::default()
            });
        }
        let asked: Vec<Order> = orders
            .iter()
            .copied()
            .filter(|order| order.qty > Qty(0))
            .collect();
        let status = self.listed[entry.instrument.index()].status;
        if !asked.is_empty() && status != TradingStatus::Trading && status != TradingStatus::Auction {
            return Err(Reject::NotTrading);
        }
        let group = self.listed[entry.instrument.index()].rules.group;
        if !asked.is_empty() && self.is_protected(firm, group) {
            return Err(Reject::Protected);
        }
        for order in &asked {
            self.check_lot(entry.instrument, order.qty)?;
            self.check_price(entry.instrument, order.price, Price::ZERO)?;
            self.check_band(entry.instrument, order.side, order.price)?;
        }
        if asked.len() == 2 && entry.bid >= entry.ask {
            return Err(Reject::Quote);
        }
        let known = self
            .quotes
            .iter()
            .position(|q| (q.0, q.1) == (firm, entry.instrument));
        let quotes_max = (self.config.max_orders as usize).min(rules::QUOTES);
        if self.standing.len() + asked.len() > self.config.max_orders as usize
            || asked.iter().any(|order| !self.level_fits(order, Price::ZERO))
            || known.is_none() && self.quotes.len() >= quotes_max
        {
            return Err(Reject::Full);
        }
        let place = known.unwrap_or(self.quotes.len());
        if known.is_none() {
            self.quotes.push((firm, entry.instrument, [OrderId(0); 2]));
        }
        // First the old sides leave, or stay in their place; then the new ones come.
        let mut coming = Vec::new();
        for order in orders {
            let old = self.position(self.quotes[place].2[order.side as usize]);
            let Ok(at) = old else {
                coming.push(order);
                continue;
            };
            let old = self.standing[at].order;
            if order.qty == Qty(0) || order.price != old.price || order.qty > old.qty {
                self.remove(at, Some(CancelReason::Requoted), out);
                coming.push(order);
            } else if order.qty < old.qty {
                self.lower(
                    at,
                    Qty(old.qty.0 - order.qty.0),
                    Some(CancelReason::Requoted),
                    out,
                );
            }
        }
        for mut order in coming {
            if order.qty == Qty(0) {
                continue;
            }
            order.id = self.next_id();
            self.quotes[place].2[order.side as usize] = order.id;
            out.accepted(&order);
            if self.listed[entry.instrument.index()].status == TradingStatus::Trading {
                self.trade_in(order, out);
            } else {
                self.stand(order, Price::ZERO);
                out.rested(&order);
            }
        }
        self.settle(entry.instrument, out);
        Ok(())
    }

    /// See [`crate::Engine::set_protection`].
    pub fn set_protection(&mut self, firm: Firm, group: u32, limits: Protection) -> Result<(), Reject> {
        if firm == Firm::NONE {
            return Err(Reject::NoFirm);
        }
        let new = Watch::new(firm, group, limits);
        match self
            .guards
            .iter()
            .position(|g| g.firm == firm && g.group == group)
        {
            Some(at) => self.guards[at] = new,
            None if self.guards.len() >= rules::PROTECTIONS => return Err(Reject::Full),
            None => self.guards.push(new),
        }
        Ok(())
    }

    /// See [`crate::Engine::reset_protection`].
    pub fn reset_protection(&mut self, firm: Firm, group: u32) -> bool {
        match self
            .guards
            .iter()
            .position(|g| g.firm == firm && g.group == group)
        {
            Some(at) => {
                self.guards[at] = Watch::new(firm, group, self.guards[at].limits);
                true
            }
            None => false,
        }
    }

    /// See [`crate::Engine::is_protected`].
    pub fn is_protected(&self, firm: Firm, group: u32) -> bool {
        self.guards
            .iter()
            .any(|g| g.firm == firm && g.group == group && g.is_reached)
    }

    /// See [`crate::Engine::indicate`].
    pub fn indicate(&self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        self.check_known(instrument)?;
        let listed = &self.listed[instrument.index()];
        let kind = match listed.status {
            TradingStatus::Auction => listed.auction,
            _ => AuctionKind::Closing,
        };
        let (clearing, paired, mut surplus) = self.clearing(instrument, rules::waits_for(kind));
        if paired == 0 {
            let waiting = |side| -> i64 {
                let standing = self.standing.iter().map(|s| &s.order);
                standing
                    .filter(|o| {
                        o.instrument == instrument
                            && o.side == side
                            && o.terms.place() == rules::waits_for(kind)
                    })
                    .map(|o| i64::from(o.qty.0))
                    .sum()
            };
            surplus = waiting(Side::Bid) - waiting(Side::Ask);
        }
        out.indicated(&Indication {
            instrument,
            kind,
            paired,
            imbalance: surplus.unsigned_abs(),
            side: if surplus < 0 { Side::Ask } else { Side::Bid },
            clearing,
            price: self.reference(instrument),
        });
        out.completed(instrument);
        Ok(())
    }

    /// See [`crate::Engine::uncross`].
    pub fn uncross(
        &mut self,
        instrument: InstrumentId,
        next: TradingStatus,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        self.check_known(instrument)?;
        let Listed { status, auction, .. } = self.listed[instrument.index()];
        if status != TradingStatus::Auction {
            return Err(Reject::NotTrading);
        }
        self.cross(
            instrument,
            auction,
            self.clearing(instrument, rules::waits_for(auction)),
            out,
        );
        self.listed[instrument.index()].status = next;
        out.status(instrument, next);
        self.settle(instrument, out);
        Ok(())
    }

    /// See [`crate::Engine::close`].
    pub fn close(&mut self, instrument: InstrumentId, out: &mut impl Listener) -> Result<(), Reject> {
        self.check_known(instrument)?;
        let clearing = if self.listed[instrument.index()].status == TradingStatus::Halted {
            (Price::ZERO, 0, 0)
        } else {
            self.clearing(instrument, OrderPlace::Closing)
        };
        self.cross(instrument, AuctionKind::Closing, clearing, out);
        self.listed[instrument.index()].auction = AuctionKind::Closing;
        self.listed[instrument.index()].status = TradingStatus::Closed;
        out.completed(instrument);
        Ok(())
    }

    fn cross(
        &mut self,
        instrument: InstrumentId,
        kind: AuctionKind,
        (price, volume, _): (Price, u64, i64),
        out: &mut impl Listener,
    ) {
        let place = rules::waits_for(kind);
        self.last_match += 1;
        let cross = Cross {
            instrument,
            kind,
            qty: volume,
            price: if volume > 0 {
                price
            } else {
                self.reference(instrument)
            },
            match_number: self.last_match,
        };
        self.trades.push((cross.match_number, None, false));
        for side in Side::BOTH {
            // Market orders, then the better price; displayed, hidden, waiting; then the older one.
            let mut takes_part: Vec<(i64, u8, usize)> = Vec::new();
            for (at, Standing { order, .. }) in self.standing.iter().enumerate() {
                if self.is_in_auction(order, instrument, side, place) {
                    let rank = if order.is_market() {
                        i64::MIN
                    } else {
                        -eagerness(order)
                    };
                    let class = if order.is_waiting() {
                        2
                    } else {
                        u8::from(order.hidden)
                    };
                    takes_part.push((rank, class, at));
                }
            }
            takes_part.sort();
            let ids: Vec<OrderId> = takes_part.iter().map(|t| self.standing[t.2].order.id).collect();
            let mut left = volume;
            for id in ids {
                if left == 0 {
                    break;
                }
                let Ok(at) = self.position(id) else { continue };
                let before = self.standing[at].order;
                let qty = Qty(before.leaves().min(left) as u32);
                left -= u64::from(qty.0);
                let mut order = before;
                if qty >= before.qty {
                    order.reserve = Qty((before.leaves() - u64::from(qty.0)) as u32);
                    order.qty = Qty(0);
                    self.standing.remove(at);
                } else {
                    order.qty = Qty(before.qty.0 - qty.0);
                    self.standing[at].order = order;
                }
                let from_book = if before.is_waiting() {
                    Qty(0)
                } else {
                    qty.min(before.qty)
                };
                out.cross_filled(&CrossFill {
                    order,
                    qty,
                    from_book,
                    price,
                    match_number: cross.match_number,
                });
                if order.qty == Qty(0) && order.reserve > Qty(0) {
                    self.refresh(order, out);
                }
            }
        }
        if volume > 0 {
            self.listed[instrument.index()].last_sale = price;
            self.listed[instrument.index()].reference = price;
        }
        out.crossed(&cross);
        let mut over = Vec::new();
        self.visit_parked(&mut |order| {
            if order.instrument == instrument && order.terms.place() == place {
                over.push(order.id);
            }
        });
        for id in over {
            if let Ok(at) = self.position(id) {
                self.remove(at, Some(CancelReason::AuctionOver), out);
            }
        }
    }

    /// Price, volume, and surplus to buy.
    fn clearing(&self, instrument: InstrumentId, place: OrderPlace) -> (Price, u64, i64) {
        let volume = |side: Side, price: Price| -> u64 {
            let orders = self.standing.iter().map(|s| &s.order);
            orders
                .filter(|o| self.is_in_auction(o, instrument, side, place))
                .filter(|o| o.is_market() || o.price == price || side.better(o.price, price))
                .map(Order::leaves)
                .sum()
        };
        let reference = self.reference(instrument);
        let both = Side::BOTH;
        let mut candidates: Vec<Price> = Vec::new();
        for Standing { order, .. } in &self.standing {
            if both
                .iter()
                .any(|side| self.is_in_auction(order, instrument, *side, place))
                && !order.is_market()
            {
                candidates.push(order.price);
            }
        }
        if candidates.is_empty() && reference > Price::ZERO {
            candidates.push(reference);
        }
        candidates.sort();
        candidates.dedup();
        let at = |price: &Price| {
            let (demand, supply) = (volume(Side::Bid, *price), volume(Side::Ask, *price));
            (*price, demand.min(supply), demand as i64 - supply as i64)
        };
        let mut results: Vec<(Price, u64, i64)> = candidates.iter().map(at).collect();
        // The most volume.
        let most = results.iter().map(|r| r.1).max().unwrap_or(0);
        if most == 0 {
            return (Price::ZERO, 0, 0);
        }
        results.retain(|r| r.1 == most);
        // The least surplus.
        let least = results.iter().map(|r| r.2.abs()).min().unwrap_or(0);
        results.retain(|r| r.2.abs() == least);
        // Market pressure: all to buy, the highest price; all to sell, the lowest.
        if results.iter().all(|r| r.2 > 0) {
            return results[results.len() - 1];
        }
        if results.iter().all(|r| r.2 < 0) {
            return results[0];
        }
        // The nearest to the reference price; of two, the higher.
        let off = |r: &(Price, u64, i64)| r.0.raw().abs_diff(reference.raw());
        let nearest = results.iter().map(off).min().unwrap_or(0);
        results.retain(|r| off(r) == nearest);
        results[results.len() - 1]
    }

    fn is_in_auction(&self, order: &Order, instrument: InstrumentId, side: Side, place: OrderPlace) -> bool {
        let is_there = order.terms.place() == OrderPlace::Book || order.terms.place() == place;
        order.instrument == instrument && order.side == side && is_there
    }

    /// See [`crate::Engine::reference`].
    pub fn reference(&self, instrument: InstrumentId) -> Price {
        let listed = &self.listed[instrument.index()];
        if listed.last_sale > Price::ZERO {
            return listed.last_sale;
        }
        if listed.reference > Price::ZERO {
            return listed.reference;
        }
        let shown = |side| {
            let orders = self.standing.iter().map(|s| &s.order);
            let shown = orders.filter(|o| o.instrument == instrument && o.side == side && !o.hidden);
            shown
                .filter(|o| !o.is_waiting())
                .max_by_key(|o| eagerness(o))
                .map(|o| o.price)
        };
        shown(Side::Bid).or(shown(Side::Ask)).unwrap_or(Price::ZERO)
    }

    /// An order in the book, or one that waits.
    pub fn order(&self, id: OrderId) -> Option<&Order> {
        self.standing
            .iter()
            .map(|s| &s.order)
            .find(|order| order.id == id)
    }

    /// See [`crate::Engine::visit`].
    pub fn visit(&self, each: &mut impl FnMut(&Order)) {
        let book = self.standing.iter().filter(|s| !s.order.is_waiting());
        let mut sorted: Vec<&Order> = book.map(|s| &s.order).collect();
        // Stable: arrival order stays within equal keys.
        sorted.sort_by_key(|o| (o.instrument, o.side, o.hidden, -eagerness(o)));
        sorted.into_iter().for_each(each);
    }

    /// See [`crate::Engine::visit_parked`].
    pub fn visit_parked(&self, each: &mut impl FnMut(&Order)) {
        let mut sorted: Vec<&Standing> = self.standing.iter().filter(|s| s.order.is_waiting()).collect();
        sorted.sort_by_key(|s| {
            let rank = match (s.order.terms.place(), s.order.is_market(), s.order.side) {
                (OrderPlace::Stop, _, Side::Bid) => s.trigger.raw(),
                (OrderPlace::Stop, _, Side::Ask) => -s.trigger.raw(),
                (_, true, _) => i64::MIN,
                (_, false, _) => -eagerness(&s.order),
            };
            (
                s.order.instrument,
                s.order.terms.place() as u8,
                s.order.side,
                rank,
            )
        });
        sorted.into_iter().for_each(|s| each(&s.order));
    }

    /// See [`crate::Engine::state_hash`].
    pub fn state_hash(&self) -> u64 {
        let mut hash = StateHash::default();
        self.visit(&mut |order| hash.order(order));
        self.visit_parked(&mut |order| {
            hash.order(order);
            let is_stop = order.terms.place() == OrderPlace::Stop;
            let standing = self.standing.iter().find(|s| s.order.id == order.id);
            let trigger = standing.filter(|_| is_stop).map_or(0, |s| s.trigger.raw());
            hash.word(trigger as u64);
        });
        for listed in &self.listed[1..] {
            hash.word((listed.status as u64) << 8 | listed.auction as u64);
            hash.word(listed.last_sale.raw() as u64);
            hash.word(listed.reference.raw() as u64);
        }
        let broken = self.trades.iter().filter(|(_, _, is_broken)| *is_broken);
        hash.word(broken.count() as u64);
        hash.value()
    }

    fn next_id(&mut self) -> OrderId {
        self.last_order_id += 1;
        OrderId(self.last_order_id)
    }

    fn stand(&mut self, order: Order, trigger: Price) {
        self.standing.push(Standing { order, trigger });
    }

    fn settle(&mut self, instrument: InstrumentId, out: &mut impl Listener) {
        out.completed(instrument);
        while let Some(at) = self.elected(instrument) {
            let old = self.standing.remove(at).order;
            let new = Order {
                id: self.next_id(),
                terms: old.terms.at(OrderPlace::Book),
                ..old
            };
            out.triggered(&old, &new);
            self.trade_in(new, out);
            out.completed(instrument);
        }
        for (firm, group) in core::mem::take(&mut self.tripped) {
            out.protected(firm, group);
            for (quoting, instrument, orders) in self.quotes.clone() {
                if quoting != firm || self.listed[instrument.index()].rules.group != group {
                    continue;
                }
                let mut any = false;
                for id in orders {
                    if let Ok(at) = self.position(id) {
                        self.remove(at, Some(CancelReason::Protection), out);
                        any = true;
                    }
                }
                if any {
                    out.completed(instrument);
                }
            }
        }
    }

    fn elected(&self, instrument: InstrumentId) -> Option<usize> {
        let listed = &self.listed[instrument.index()];
        let last = listed.last_sale;
        if listed.status != TradingStatus::Trading || last == Price::ZERO {
            return None;
        }
        let first = |side: Side| {
            (0..self.standing.len())
                .filter(|&at| {
                    let Standing { order, trigger } = &self.standing[at];
                    let is_passed = match side {
                        Side::Bid => last >= *trigger,
                        Side::Ask => last <= *trigger,
                    };
                    let is_stop = order.terms.place() == OrderPlace::Stop;
                    order.instrument == instrument && order.side == side && is_stop && is_passed
                })
                .min_by_key(|&at| {
                    let trigger = self.standing[at].trigger.raw();
                    (if side == Side::Bid { trigger } else { -trigger }, at)
                })
        };
        let (bid, ask) = (first(Side::Bid), first(Side::Ask));
        // Between the sides the older one.
        bid.into_iter()
            .chain(ask)
            .min_by_key(|&at| self.standing[at].order.id)
    }

    fn trade_in(&mut self, mut order: Order, out: &mut impl Listener) {
        let own_limit = (!order.is_market()).then_some(order.price);
        let listed = &self.listed[order.instrument.index()];
        let bands = listed.rules.bands;
        let edge = rules::edge(&bands, listed.reference, listed.last_sale, order.side);
        let limit = match (own_limit, edge) {
            (Some(own), Some(edge)) if order.side.better(own, edge) => Some(edge),
            (Some(own), _) => Some(own),
            (None, edge) => edge,
        };
        if order.time_in_force == TimeInForce::FillOrKill {
            let mut within = self
                .standing
                .iter()
                .map(|s| s.order)
                .filter(|m| matches(m, &order, limit));
            let mode = order.self_trade();
            let would_end = within
                .clone()
                .any(|m| rules::is_prevented(&order, &m) && mode != SelfTrade::CancelOldest);
            let others = within.by_ref().filter(|m| !rules::is_prevented(&order, m));
            let available: u64 = others.map(|m| m.leaves()).sum();
            if would_end || available < order.leaves() {
                return out.expired(&order);
            }
        }
        self.trade(&mut order, limit, out);
        if order.qty == Qty(0) {
            return;
        }
        let goes_on = self
            .standing
            .iter()
            .any(|maker| matches(&maker.order, &order, own_limit));
        if order.is_market() || !rules::is_left_standing(OrderType::Limit, order.time_in_force) {
            out.expired(&order);
        } else if !self.level_fits(&order, Price::ZERO) {
            out.cancelled(&order, CancelReason::NoRoom);
            out.expired(&order);
        } else {
            let order = rules::shown(order);
            self.stand(order, Price::ZERO);
            out.rested(&order);
        }
        if edge.is_some() && bands.on_breach == OnBreach::Pause && goes_on {
            self.listed[order.instrument.index()].status = TradingStatus::Paused;
            out.status(order.instrument, TradingStatus::Paused);
        }
    }

    fn trade(&mut self, taker: &mut Order, limit: Option<Price>, out: &mut impl Listener) {
        while taker.qty > Qty(0) {
            let best = (0..self.standing.len())
                .filter(|&at| matches(&self.standing[at].order, taker, limit))
                .min_by_key(|&at| {
                    let maker = &self.standing[at].order;
                    (-eagerness(maker), maker.hidden, at)
                });
            let Some(at) = best else { return };
            let resting = self.standing[at].order;
            if rules::is_prevented(taker, &resting) {
                self.prevent(taker, at, out);
                continue;
            }
            let qty = resting.qty.min(taker.qty);
            let price = resting.execution_price();
            taker.qty = Qty(taker.qty.0 - qty.0);
            let mut maker = resting;
            maker.qty = Qty(resting.qty.0 - qty.0);
            self.standing[at].order = maker;
            if maker.qty == Qty(0) {
                self.standing.remove(at);
            }
            self.last_match += 1;
            self.listed[taker.instrument.index()].last_sale = price;
            let execution = Execution {
                maker,
                taker: *taker,
                qty,
                price,
                match_number: self.last_match,
            };
            self.trades.push((self.last_match, Some(execution), false));
            out.executed(&execution);
            let mut taken = *taker;
            taken.qty = Qty(taker.qty.0 + qty.0);
            for quote in [resting, taken] {
                self.count(&quote, qty);
            }
            if maker.qty == Qty(0) && maker.reserve > Qty(0) {
                self.refresh(maker, out);
            }
        }
    }

    /// See [`crate::Engine::break_trade`].
    pub fn break_trade(
        &mut self,
        match_number: u64,
        reason: BreakReason,
        out: &mut impl Listener,
    ) -> Result<(), Reject> {
        let is_clients = |trade: &Option<Execution>| {
            trade.is_some_and(|e| [e.maker, e.taker].iter().any(|order| order.owner != Owner::HOUSE))
        };
        let mut later = [0; 2];
        for (number, trade, is_broken) in self.trades.iter_mut().rev() {
            if *number > match_number {
                later[usize::from(is_clients(trade))] += 1;
                continue;
            }
            if *number < match_number || later[usize::from(is_clients(trade))] >= rules::TRADES {
                break;
            }
            let execution = trade.ok_or(Reject::AuctionTrade)?;
            if *is_broken {
                return Err(Reject::BrokenTrade);
            }
            *is_broken = true;
            let party = |order: &Order| Party {
                owner: order.owner,
                id: order.id,
                side: order.side,
            };
            let instrument = execution.taker.instrument;
            out.broken(&Broken {
                instrument,
                match_number,
                qty: execution.qty,
                price: execution.price,
                maker: party(&execution.maker),
                taker: party(&execution.taker),
                reason,
            });
            out.completed(instrument);
            return Ok(());
        }
        Err(Reject::UnknownTrade)
    }

    fn count(&mut self, quote: &Order, qty: Qty) {
        let group = self.listed[quote.instrument.index()].rules.group;
        let now = self.now;
        let mut guards = self.guards.iter_mut();
        let guard = guards.find(|g| quote.is_quote() && g.firm == quote.firm && g.group == group);
        if guard.is_some_and(|guard| guard.sees(now, quote, qty)) {
            self.tripped.push((quote.firm, group));
        }
    }

    fn refresh(&mut self, old: Order, out: &mut impl Listener) {
        let mut new = rules::shown(old);
        new.id = self.next_id();
        out.refreshed(&old, &new);
        self.stand(new, Price::ZERO);
        out.rested(&new);
    }

    fn prevent(&mut self, taker: &mut Order, at: usize, out: &mut impl Listener) {
        let why = Some(CancelReason::SelfTrade);
        let maker = self.standing[at].order;
        let mut by = Qty(0);
        match taker.self_trade() {
            SelfTrade::CancelOldest | SelfTrade::CancelBoth => self.remove(at, why, out),
            SelfTrade::Decrement if maker.leaves() <= u64::from(taker.qty.0) => {
                by = Qty(maker.leaves() as u32);
                self.remove(at, why, out);
            }
            SelfTrade::Decrement => {
                by = taker.qty;
                self.lower(at, by, why, out);
            }
            SelfTrade::Allow | SelfTrade::CancelNewest => {}
        }
        match taker.self_trade() {
            SelfTrade::CancelNewest | SelfTrade::CancelBoth => {
                out.cancelled(taker, CancelReason::SelfTrade);
                out.expired(taker);
                taker.qty = Qty(0);
            }
            SelfTrade::Decrement => {
                taker.qty = Qty(taker.qty.0 - by.0);
                out.cancelled(taker, CancelReason::SelfTrade);
                out.decremented(taker, by);
                if taker.qty == Qty(0) {
                    out.expired(taker);
                }
            }
            SelfTrade::CancelOldest | SelfTrade::Allow => {}
        }
    }

    fn remove(&mut self, at: usize, reason: Option<CancelReason>, out: &mut impl Listener) {
        let order = self.standing.remove(at).order;
        if let Some(reason) = reason {
            out.cancelled(&order, reason);
        }
        // Feeds hear of what was shown, or might have been.
        if order.terms.place() == OrderPlace::Book {
            out.deleted(&order);
        } else {
            out.expired(&order);
        }
    }

    fn lower(&mut self, at: usize, by: Qty, reason: Option<CancelReason>, out: &mut impl Listener) {
        let old = self.standing[at].order;
        let mut new = old;
        new.reserve = Qty(old.reserve.0.saturating_sub(by.0));
        let shown = Qty(by.0.saturating_sub(old.reserve.0));
        new.qty = Qty(old.qty.0 - shown.0);
        self.standing[at].order = new;
        if let Some(reason) = reason {
            out.cancelled(&new, reason);
        }
        if new.is_waiting() {
            out.reparked(&old, &new);
        } else if shown == Qty(0) {
            out.reserve_reduced(&new, by);
        } else {
            out.reduced(&new, shown);
        }
    }

    fn position(&self, id: OrderId) -> Result<usize, Reject> {
        self.standing
            .iter()
            .position(|s| s.order.id == id)
            .ok_or(Reject::UnknownOrder)
    }

    fn best(&self, instrument: InstrumentId, side: Side) -> Option<usize> {
        (0..self.standing.len())
            .filter(|&at| {
                let order = &self.standing[at].order;
                order.instrument == instrument && order.side == side && !order.is_waiting()
            })
            .max_by_key(|&at| eagerness(&self.standing[at].order))
    }

    fn entry(&self, instrument: InstrumentId, kind: (TimeInForce, bool, bool)) -> Result<Goes, Reject> {
        let listed = &self.listed[instrument.index()];
        rules::goes(listed.status, listed.auction, listed.rules.halted, kind).ok_or(Reject::NotTrading)
    }

    fn make_passive(&self, order: &mut Order) -> Result<(), Reject> {
        let Some(at) = self.best(order.instrument, !order.side) else {
            return Ok(());
        };
        let opposite = &self.standing[at].order;
        if !matches(opposite, order, Some(order.price)) {
            return Ok(());
        }
        let rules = &self.listed[order.instrument.index()].rules;
        let behind = rules.ticks.behind(order.side, opposite.price);
        let is_price = behind > Price::ZERO && behind <= rules.price_max && behind > order.improvement;
        if rules.post_only == PostOnly::Reject || !is_price {
            return Err(Reject::PostOnly);
        }
        order.price = behind;
        Ok(())
    }

    fn check_known(&self, instrument: InstrumentId) -> Result<(), Reject> {
        if instrument.0 == 0 || instrument.0 > self.config.instruments {
            return Err(Reject::UnknownInstrument);
        }
        Ok(())
    }

    fn check_qty(&self, instrument: InstrumentId, qty: Qty) -> Result<(), Reject> {
        if qty == Qty(0) {
            return Err(Reject::Quantity);
        }
        self.check_lot(instrument, qty)
    }

    fn check_lot(&self, instrument: InstrumentId, qty: Qty) -> Result<(), Reject> {
        if !qty.0.is_multiple_of(self.listed[instrument.index()].rules.lot.0) {
            return Err(Reject::Lot);
        }
        Ok(())
    }

    fn check_price(&self, instrument: InstrumentId, price: Price, improvement: Price) -> Result<(), Reject> {
        let price_max = self.listed[instrument.index()].rules.price_max;
        if price <= Price::ZERO || price > price_max || improvement < Price::ZERO || improvement >= price {
            return Err(Reject::PriceRange);
        }
        let tick = self.listed[instrument.index()].rules.ticks.at(price).raw();
        if price.raw() % tick != 0 || improvement.raw() % tick != 0 {
            return Err(Reject::Tick);
        }
        Ok(())
    }

    fn check_stop(&self, instrument: InstrumentId, stop: Price) -> Result<(), Reject> {
        if stop <= Price::ZERO || stop > self.listed[instrument.index()].rules.price_max {
            return Err(Reject::StopPrice);
        }
        if !self.listed[instrument.index()].rules.ticks.has(stop) {
            return Err(Reject::Tick);
        }
        Ok(())
    }

    fn check_band(&self, instrument: InstrumentId, side: Side, price: Price) -> Result<(), Reject> {
        let listed = &self.listed[instrument.index()];
        let bands = &listed.rules.bands;
        match rules::edge(bands, listed.reference, listed.last_sale, side) {
            Some(edge) if side.better(price, edge) && bands.on_breach == OnBreach::Reject => {
                Err(Reject::PriceBand)
            }
            _ => Ok(()),
        }
    }

    fn level_fits(&self, order: &Order, trigger: Price) -> bool {
        let level = |order: &Order, trigger: Price| match order.terms.place() {
            OrderPlace::Stop => (false, trigger),
            _ => (order.is_market(), order.price),
        };
        let mut levels: Vec<(bool, Price)> = self
            .standing
            .iter()
            .filter(|s| s.order.instrument == order.instrument && s.order.side == order.side)
            .filter(|s| s.order.terms.place() == order.terms.place())
            .filter(|s| s.order.is_waiting() || s.order.hidden == order.hidden)
            .map(|s| level(&s.order, s.trigger))
            .collect();
        levels.sort();
        levels.dedup();
        let levels_max = match order.is_waiting() {
            true => (self.config.max_levels as usize).min(rules::WAITING_LEVELS),
            false => self.config.max_levels as usize,
        };
        levels.contains(&level(order, trigger)) || levels.len() < levels_max
    }
}

/// How good a limit is for the other side: larger is better.
fn eagerness(order: &Order) -> i64 {
    match order.side {
        Side::Bid => order.price.raw(),
        Side::Ask => -order.price.raw(),
    }
}

/// Whether `maker` would trade with `taker`.
fn matches(maker: &Order, taker: &Order, limit: Option<Price>) -> bool {
    maker.instrument == taker.instrument
        && !maker.is_waiting()
        && maker.side != taker.side
        && match (limit, taker.side) {
            (None, _) => true,
            (Some(limit), Side::Bid) => maker.price <= limit,
            (Some(limit), Side::Ask) => maker.price >= limit,
        }
}
