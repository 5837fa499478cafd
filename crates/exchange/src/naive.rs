//! The matching engine as one would explain it: all orders in one list, searched anew for every question. The
//! oracle of [`crate::Engine`]; never optimised, and without a line of the engine: its rules are those of
//! `docs/exchange.md`.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, OrderId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus};

use crate::engine::EngineConfig;
use crate::order::{
    BreakReason, Broken, CancelReason, Execution, Firm, Listener, NO_MPID, NewOrder, Order, OrderPlace,
    Owner, Party, Reject, StateHash, Terms,
};
use crate::rules::{AuctionKind, MassCancel, Protection, QuoteEntry, Rules};

mod auction;
mod checks;
mod matching;
mod rules;

use matching::matches;
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
}

/// How good a limit is for the other side: larger is better.
fn eagerness(order: &Order) -> i64 {
    match order.side {
        Side::Bid => order.price.raw(),
        Side::Ask => -order.price.raw(),
    }
}
