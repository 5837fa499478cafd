//! What an order has to pass, sentence by sentence of `docs/exchange.md`.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Price, Qty, Side, TimeInForce};

use crate::order::{Order, OrderPlace, Reject};
use crate::rules::{OnBreach, PostOnly};

use super::matching::matches;
use super::rules::Goes;
use super::{NaiveEngine, rules};

impl NaiveEngine {
    pub(super) fn entry(
        &self,
        instrument: InstrumentId,
        kind: (TimeInForce, bool, bool),
    ) -> Result<Goes, Reject> {
        let listed = &self.listed[instrument.index()];
        rules::goes(listed.status, listed.auction, listed.rules.halted, kind).ok_or(Reject::NotTrading)
    }

    /// "never takes, hidden orders included: rejected, or entered one tick behind the best opposite price"
    pub(super) fn make_passive(&self, order: &mut Order) -> Result<(), Reject> {
        let would_take = |maker: &Order| matches(maker, order, Some(order.price));
        if !self.standing.iter().any(|s| would_take(&s.order)) {
            return Ok(());
        }
        let rules = &self.listed[order.instrument.index()].rules;
        let best = self.best(order.instrument, !order.side);
        let best = best.map_or(Price::ZERO, |at| self.standing[at].order.price);
        let behind = match order.side {
            Side::Bid => rules::price_below(&rules.ticks, best),
            Side::Ask => Some(rules::price_above(&rules.ticks, best)),
        };
        // What it would trade at, its improvement taken off, has to be a price still.
        let is_price =
            |price: &Price| (order.improvement.raw() + 1..=rules.price_max.raw()).contains(&price.raw());
        order.price = match (rules.post_only, behind.filter(is_price)) {
            (PostOnly::Reprice, Some(behind)) => behind,
            _ => return Err(Reject::PostOnly),
        };
        Ok(())
    }

    pub(super) fn check_known(&self, instrument: InstrumentId) -> Result<(), Reject> {
        if instrument.0 == 0 || instrument.0 > self.config.instruments {
            return Err(Reject::UnknownInstrument);
        }
        Ok(())
    }

    pub(super) fn check_qty(&self, instrument: InstrumentId, qty: Qty) -> Result<(), Reject> {
        if qty == Qty(0) {
            return Err(Reject::Quantity);
        }
        self.check_lot(instrument, qty)
    }

    pub(super) fn check_lot(&self, instrument: InstrumentId, qty: Qty) -> Result<(), Reject> {
        let lot = self.listed[instrument.index()].rules.lot.0;
        let lots = qty.0 / lot;
        if lots * lot == qty.0 {
            Ok(())
        } else {
            Err(Reject::Lot)
        }
    }

    pub(super) fn check_price(
        &self,
        instrument: InstrumentId,
        price: Price,
        improvement: Price,
    ) -> Result<(), Reject> {
        let rules = &self.listed[instrument.index()].rules;
        let is_in_range = (1..=rules.price_max.raw()).contains(&price.raw());
        if !is_in_range || !(0..price.raw()).contains(&improvement.raw()) {
            return Err(Reject::PriceRange);
        }
        let tick = rules::tick_at(&rules.ticks, price);
        let are_ticks = [price, improvement]
            .iter()
            .all(|p| p.raw() / tick * tick == p.raw());
        if are_ticks { Ok(()) } else { Err(Reject::Tick) }
    }

    pub(super) fn check_stop(&self, instrument: InstrumentId, stop: Price) -> Result<(), Reject> {
        let rules = &self.listed[instrument.index()].rules;
        if !(1..=rules.price_max.raw()).contains(&stop.raw()) {
            return Err(Reject::StopPrice);
        }
        let tick = rules::tick_at(&rules.ticks, stop);
        if stop.raw() / tick * tick == stop.raw() {
            Ok(())
        } else {
            Err(Reject::Tick)
        }
    }

    pub(super) fn check_band(
        &self,
        instrument: InstrumentId,
        side: Side,
        price: Price,
    ) -> Result<(), Reject> {
        let listed = &self.listed[instrument.index()];
        let bands = &listed.rules.bands;
        match rules::edge(bands, listed.reference, listed.last_sale, side) {
            Some(edge) if side.better(price, edge) && bands.on_breach == OnBreach::Reject => {
                Err(Reject::PriceBand)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn level_fits(&self, order: &Order, trigger: Price) -> bool {
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
