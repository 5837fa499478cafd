//! Continuous trading, one search of all orders a step: `docs/exchange.md`, "Matching rules".

use tickwire_market::{InstrumentId, OrderType, Price, Qty, Side, TimeInForce, TradingStatus};

use crate::order::{CancelReason, Execution, Listener, Order, OrderPlace, SelfTrade};
use crate::rules::OnBreach;

use super::{NaiveEngine, Standing, eagerness, rules};

impl NaiveEngine {
    pub(super) fn settle(&mut self, instrument: InstrumentId, out: &mut impl Listener) {
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

    pub(super) fn trade_in(&mut self, mut order: Order, out: &mut impl Listener) {
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

    pub(super) fn trade(&mut self, taker: &mut Order, limit: Option<Price>, out: &mut impl Listener) {
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
            let price = rules::trade_price(&resting);
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

    pub(super) fn count(&mut self, quote: &Order, qty: Qty) {
        let group = self.listed[quote.instrument.index()].rules.group;
        let now = self.now;
        let mut guards = self.guards.iter_mut();
        let guard = guards.find(|g| quote.is_quote() && g.firm == quote.firm && g.group == group);
        if guard.is_some_and(|guard| guard.sees(now, quote, qty)) {
            self.tripped.push((quote.firm, group));
        }
    }

    pub(super) fn refresh(&mut self, old: Order, out: &mut impl Listener) {
        let mut new = rules::shown(old);
        new.id = self.next_id();
        out.refreshed(&old, &new);
        self.stand(new, Price::ZERO);
        out.rested(&new);
    }

    fn prevent(&mut self, taker: &mut Order, at: usize, out: &mut impl Listener) {
        let why = CancelReason::SelfTrade;
        let (mode, has) = (taker.self_trade(), self.standing[at].order.leaves());
        let (book, comes) = rules::prevented(mode, has, taker.qty.0.into());
        if book == has {
            self.remove(at, Some(why), out);
        } else if book > 0 {
            self.lower(at, Qty(book as u32), Some(why), out);
        }
        if comes == 0 {
            return;
        }
        // Who cancels an order says what it had, who makes it smaller what it has.
        let is_smaller = mode == SelfTrade::Decrement;
        if is_smaller {
            taker.qty = Qty(taker.qty.0 - comes as u32);
        }
        out.cancelled(taker, why);
        if is_smaller {
            out.decremented(taker, Qty(comes as u32));
        }
        if !is_smaller || taker.qty == Qty(0) {
            out.expired(taker);
            taker.qty = Qty(0);
        }
    }

    pub(super) fn remove(&mut self, at: usize, reason: Option<CancelReason>, out: &mut impl Listener) {
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

    pub(super) fn lower(
        &mut self,
        at: usize,
        by: Qty,
        reason: Option<CancelReason>,
        out: &mut impl Listener,
    ) {
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
}

/// Whether `maker` would trade with `taker`.
pub(super) fn matches(maker: &Order, taker: &Order, limit: Option<Price>) -> bool {
    maker.instrument == taker.instrument
        && !maker.is_waiting()
        && maker.side != taker.side
        && match (limit, taker.side) {
            (None, _) => true,
            (Some(limit), Side::Bid) => maker.price <= limit,
            (Some(limit), Side::Ask) => maker.price >= limit,
        }
}
