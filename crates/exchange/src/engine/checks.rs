//! What an order has to pass before it is let in.

use tickwire_market::{InstrumentId, OrderType, Price, Qty, Side, TimeInForce};

use crate::order::{NewOrder, Order, Reject};
use crate::rules::{OnBreach, PostOnly, PriceBands};

use super::{Admission, Engine, NIL, WAITING_LEVELS_MAX, edge_of, key_of, ladder_of, price_of, rung_key};

impl Engine {
    /// Whether an order is taken, and what is done with it; `order`, which is it without a number yet, is
    /// changed to how it is entered.
    pub(super) fn admit(&self, new: &NewOrder, order: &mut Order) -> Result<Admission, Reject> {
        let listed = self.listing(new.instrument)?;
        check_instructions(new)?;
        let is_market = new.order_type == OrderType::Market;
        let entry = self.entry(new.instrument, new.time_in_force, is_market, new.stop.is_some())?;
        self.check_qty(new.instrument, new.qty)?;
        if !new.display.is_zero() {
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
            if listed.rules.bands != PriceBands::default() {
                self.check_band(new.instrument, new.side, new.price)?;
            }
        }
        match entry {
            Admission::Match if new.post_only => self.make_passive(order)?,
            Admission::Wait(place) => order.terms = order.terms.at(place),
            _ => {}
        }
        let stays = entry != Admission::Match || new.rests();
        let has_room = || self.free != NIL && self.has_level_room(order, new.stop.unwrap_or_default());
        if stays && !has_room() {
            return Err(Reject::Full);
        }
        Ok(entry)
    }

    pub(super) fn check_qty(&self, instrument: InstrumentId, qty: Qty) -> Result<(), Reject> {
        match qty {
            Qty::ZERO => Err(Reject::Quantity),
            _ => self.check_lot(instrument, qty),
        }
    }

    pub(super) fn check_lot(&self, instrument: InstrumentId, qty: Qty) -> Result<(), Reject> {
        let lot = self.listing(instrument)?.rules.lot.0;
        let is_multiple = lot == 1 || qty.0.is_multiple_of(lot);
        if is_multiple { Ok(()) } else { Err(Reject::Lot) }
    }

    pub(super) fn check_price(
        &self,
        instrument: InstrumentId,
        price: Price,
        improvement: Price,
    ) -> Result<(), Reject> {
        let price_max = self.listed[instrument.index()].rules.price_max;
        if price <= Price::ZERO || price > price_max || improvement < Price::ZERO || improvement >= price {
            return Err(Reject::PriceRange);
        }
        let tick = self.listing(instrument)?.rules.ticks.at(price).raw();
        if price.raw() % tick != 0 || improvement != Price::ZERO && improvement.raw() % tick != 0 {
            return Err(Reject::Tick);
        }
        Ok(())
    }

    pub(super) fn check_stop(&self, instrument: InstrumentId, stop: Price) -> Result<(), Reject> {
        if stop <= Price::ZERO || stop > self.listed[instrument.index()].rules.price_max {
            return Err(Reject::StopPrice);
        }
        let is_tick = self.listing(instrument)?.rules.ticks.has(stop);
        if is_tick { Ok(()) } else { Err(Reject::Tick) }
    }

    /// Where a band refuses instead of pausing, a limit is within it.
    pub(super) fn check_band(
        &self,
        instrument: InstrumentId,
        side: Side,
        price: Price,
    ) -> Result<(), Reject> {
        let listed = self.listing(instrument)?;
        let edge = edge_of(&listed.rules.bands, listed.reference, listed.last_sale, side);
        let is_beyond = edge.is_some_and(|edge| side.better(price, edge));
        if is_beyond && listed.rules.bands.on_breach == OnBreach::Reject {
            return Err(Reject::PriceBand);
        }
        Ok(())
    }

    /// Sees to it that a post-only order would not trade.
    pub(super) fn make_passive(&self, order: &mut Order) -> Result<(), Reject> {
        let limit = key_of(!order.side, order.price);
        let Some(ladder) = self.best_maker(order.instrument, !order.side, limit) else {
            return Ok(());
        };
        let rules = &self.listing(order.instrument)?.rules;
        let best = price_of(!order.side, self.ladders.best(ladder));
        let price = rules.ticks.behind(order.side, best);
        let is_price = price > Price::ZERO && price <= rules.price_max;
        match rules.post_only {
            PostOnly::Reprice if is_price && order.improvement < price => {
                order.price = price;
                Ok(())
            }
            _ => Err(Reject::PostOnly),
        }
    }

    /// Whether an order like this could rest where it would. Asked before anything happens, and conservative:
    /// levels that the order itself is about to leave still count.
    pub(super) fn has_level_room(&self, order: &Order, trigger: Price) -> bool {
        let levels_max = match order.is_waiting() {
            false => self.config.max_levels,
            true => self.config.max_levels.min(WAITING_LEVELS_MAX),
        };
        let ladder = ladder_of(order);
        self.ladders.depth(ladder) < levels_max as usize || self.ladders.has(ladder, rung_key(order, trigger))
    }
}

/// Instructions that go together. See "Matching rules" in `docs/exchange.md`.
fn check_instructions(new: &NewOrder) -> Result<(), Reject> {
    let is_plain = new.rests() && new.stop.is_none();
    let waits = !is_plain && (new.stop.is_some() || is_for_auction(new.time_in_force));
    let is_iceberg = !new.display.is_zero();
    let is_refused = is_iceberg && (!is_plain || new.hidden)
        || new.post_only && !is_plain
        || new.stop.is_some() && is_for_auction(new.time_in_force)
        || waits && (new.hidden || new.improvement != Price::ZERO);
    if is_refused {
        Err(Reject::Instructions)
    } else {
        Ok(())
    }
}

pub(super) fn is_for_auction(time_in_force: TimeInForce) -> bool {
    matches!(time_in_force, TimeInForce::AtTheOpening | TimeInForce::AtTheClose)
}
