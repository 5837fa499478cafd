//! Matching: what trades with what, at which price, and what is left.

use tickwire_market::{InstrumentId, Price, Qty, Side, TimeInForce, TradingStatus};

use crate::order::{CancelReason, Execution, Listener, Order, OrderPlace, SelfTrade, stays};
use crate::rules::OnBreach;

use super::{Engine, LADDERS, Rung, edge_of, key_of, price_of};

impl Engine {
    /// The request is done: its consequences.
    pub(super) fn settle(&mut self, instrument: InstrumentId, out: &mut impl Listener) {
        out.completed(instrument);
        while let Some(slot) = self.elected(instrument) {
            let (old, id) = (self.slots[slot as usize].order, self.next_id());
            self.unrest(slot);
            let new = Order {
                id,
                terms: old.terms.at(OrderPlace::Book),
                ..old
            };
            out.triggered(&old, &new);
            self.trade_in(new, out);
            out.completed(instrument);
        }
        if self.quotes.has_tripped() {
            self.withdraw_tripped(out);
        }
    }

    /// The next stop order that the last sale triggers: on each side the one whose trigger was passed first,
    /// then the oldest; between the sides the older one.
    fn elected(&self, instrument: InstrumentId) -> Option<u32> {
        let base = instrument.index() * LADDERS + 4;
        if self.ladders.depth(base) == 0 && self.ladders.depth(base + 1) == 0 {
            return None;
        }
        let listed = &self.listed[instrument.index()];
        if listed.status != TradingStatus::Trading || listed.last_sale == Price::ZERO {
            return None;
        }
        let first = |side: Side| {
            let ladder = base + side as usize;
            let slot = self.ladders.first(ladder)?;
            let trigger = price_of(!side, self.ladders.best(ladder));
            let is_passed = trigger == listed.last_sale || side.better(listed.last_sale, trigger);
            is_passed.then_some(slot)
        };
        match (first(Side::Bid), first(Side::Ask)) {
            (Some(bid), Some(ask)) => {
                let [bid_id, ask_id] = [bid, ask].map(|slot| self.slots[slot as usize].order.id);
                Some(if bid_id < ask_id { bid } else { ask })
            }
            (bid, ask) => bid.or(ask),
        }
    }

    /// Trades an order against the book; what is left rests or expires.
    pub(super) fn trade_in(&mut self, mut order: Order, out: &mut impl Listener) {
        let listed = &self.listed[order.instrument.index()];
        let own_limit = match order.is_market() {
            false => key_of(!order.side, order.price),
            true => i64::MIN,
        };
        let bands = listed.rules.bands;
        let edge = edge_of(&bands, listed.reference, listed.last_sale, order.side);
        let limit = edge.map_or(own_limit, |edge| own_limit.max(key_of(!order.side, edge)));
        if order.time_in_force == TimeInForce::FillOrKill && !self.can_fill(&order, limit) {
            return out.expired(&order);
        }
        self.sweep(&mut order, limit, out);
        if order.qty.is_zero() {
            return;
        }
        let is_breach = edge.is_some()
            && bands.on_breach == OnBreach::Pause
            && self
                .best_maker(order.instrument, !order.side, own_limit)
                .is_some();
        if order.is_market() || !stays(order.time_in_force) {
            out.expired(&order);
        } else if !self.has_level_room(&order, Price::ZERO) {
            out.cancelled(&order, CancelReason::NoRoom);
            out.expired(&order);
        } else {
            let order = order.sliced();
            self.rest(&order, Price::ZERO);
            out.rested(&order);
        }
        if is_breach {
            self.listed[order.instrument.index()].status = TradingStatus::Paused;
            out.status(order.instrument, TradingStatus::Paused);
        }
    }

    /// The ladder of a side's best level, displayed before hidden at the same price; `None` if nothing is
    /// within `limit`.
    pub(super) fn best_maker(&self, instrument: InstrumentId, side: Side, limit: i64) -> Option<usize> {
        let shown = instrument.index() * LADDERS + side as usize * 2;
        let best = |ladder: usize| self.ladders.best(ladder);
        let at = if best(shown + 1) > best(shown) {
            shown + 1
        } else {
            shown
        };
        // No price has the key i64::MIN, so an empty ladder never qualifies for a limit order; a market
        // order's limit is i64::MIN itself, hence the second condition.
        (best(at) >= limit && best(at) != i64::MIN).then_some(at)
    }

    pub(super) fn is_crossed(&self, instrument: InstrumentId) -> bool {
        let best = |side| {
            let ladder = self.best_maker(instrument, side, i64::MIN)?;
            Some(price_of(side, self.ladders.best(ladder)))
        };
        matches!((best(Side::Bid), best(Side::Ask)), (Some(bid), Some(ask)) if bid >= ask)
    }

    /// Whether the book can fill all of an order. One that minds trading with its firm cannot count on what
    /// stands behind an order of it, unless that would be cancelled out of the way.
    fn can_fill(&self, order: &Order, limit: i64) -> bool {
        let minds = order.self_trade() != SelfTrade::Allow;
        let mut wanted = order.leaves();
        for hidden in [false, true] {
            for rung in self.rungs(order.instrument, !order.side, hidden).iter().rev() {
                if rung.key < limit {
                    break;
                }
                let volume = if minds {
                    match self.volume_of_others(order, rung) {
                        Some(volume) => volume,
                        None => return false,
                    }
                } else {
                    self.volume(rung)
                };
                wanted = wanted.saturating_sub(volume);
                if wanted == 0 && !minds {
                    return true;
                }
            }
        }
        wanted == 0
    }

    /// Without the orders that `taker` minds; `None` if one of those would end it.
    fn volume_of_others(&self, taker: &Order, rung: &Rung) -> Option<u64> {
        let mut volume = 0;
        for maker in self.chain(self.ladders.queue_of(rung).head) {
            match taker.minds(maker) {
                false => volume += maker.leaves(),
                true if taker.self_trade() == SelfTrade::CancelOldest => {}
                true => return None,
            }
        }
        Some(volume)
    }

    /// With reserves.
    pub(super) fn volume(&self, rung: &Rung) -> u64 {
        let queue = self.ladders.queue_of(rung);
        match queue.icebergs {
            0 => queue.volume,
            _ => self.chain(queue.head).map(Order::leaves).sum(),
        }
    }

    fn sweep(&mut self, taker: &mut Order, limit: i64, out: &mut impl Listener) {
        while !taker.qty.is_zero() {
            let Some(ladder) = self.best_maker(taker.instrument, !taker.side, limit) else {
                return;
            };
            let Some(slot) = self.ladders.first(ladder) else {
                return;
            };
            let resting = self.slots[slot as usize].order;
            if taker.minds(&resting) {
                self.prevent(taker, slot, out);
                continue;
            }
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
            let execution = Execution {
                maker,
                taker: *taker,
                qty,
                price,
                match_number: self.last_match,
            };
            self.trades.keep(&execution);
            out.executed(&execution);
            if resting.is_quote() {
                self.count_against_quote(&resting, qty);
            }
            if taker.is_quote() {
                let before = Order {
                    qty: Qty(taker.qty.0 + qty.0),
                    ..*taker
                };
                self.count_against_quote(&before, qty);
            }
            if maker.qty.is_zero() && !maker.reserve.is_zero() {
                self.refresh(maker, out);
            }
        }
    }

    /// An iceberg shows its next slice.
    pub(super) fn refresh(&mut self, old: Order, out: &mut impl Listener) {
        let new = Order {
            id: self.next_id(),
            ..old
        }
        .sliced();
        out.refreshed(&old, &new);
        self.rest(&new, Price::ZERO);
        out.rested(&new);
    }

    /// An incoming order has met one of its firm. Ends with its quantity 0 if that was the end of it.
    fn prevent(&mut self, taker: &mut Order, slot: u32, out: &mut impl Listener) {
        const WHY: Option<CancelReason> = Some(CancelReason::SelfTrade);
        let mode = taker.self_trade();
        if matches!(mode, SelfTrade::CancelOldest | SelfTrade::CancelBoth) {
            self.remove(slot, WHY, out);
        }
        let by = match mode {
            SelfTrade::Decrement => {
                let leaves = self.slots[slot as usize].order.leaves();
                let by = Qty(leaves.min(taker.qty.0.into()) as u32);
                if u64::from(by.0) == leaves {
                    self.remove(slot, WHY, out);
                } else {
                    self.lower(slot, by, WHY, out);
                }
                by
            }
            _ => Qty::ZERO,
        };
        out_of_the_way(taker, mode, by, out);
    }
}

/// What becomes of the incoming order of a prevented trade.
fn out_of_the_way(taker: &mut Order, mode: SelfTrade, by: Qty, out: &mut impl Listener) {
    match mode {
        SelfTrade::CancelNewest | SelfTrade::CancelBoth => {
            out.cancelled(taker, CancelReason::SelfTrade);
            out.expired(taker);
            taker.qty = Qty::ZERO;
        }
        SelfTrade::Decrement => {
            taker.qty = Qty(taker.qty.0 - by.0);
            out.cancelled(taker, CancelReason::SelfTrade);
            out.decremented(taker, by);
            if taker.qty.is_zero() {
                out.expired(taker);
            }
        }
        SelfTrade::Allow | SelfTrade::CancelOldest => {}
    }
}

/// Tells that an order has left.
pub(super) fn leave(order: &Order, reason: Option<CancelReason>, out: &mut impl Listener) {
    if let Some(reason) = reason {
        out.cancelled(order, reason);
    }
    match order.is_waiting() {
        true => out.expired(order),
        false => out.deleted(order),
    }
}
