//! What a request has to pass, in the order of "What is refused is named by the first of these" in
//! `docs/exchange.md`.

use tickwire_market::{InstrumentId, OrderType, Price, Qty, Side, TimeInForce};

use crate::order::{NewOrder, Reject};
use crate::rules::{OnBreach, PostOnly};

use super::rules::{self, Goes};
use super::sheet::{Pile, Sheet};
use super::{Board, NaiveEngine};

/// The first thing that is wrong.
fn first<const N: usize>(wrong: [Option<Reject>; N]) -> Result<(), Reject> {
    wrong.into_iter().flatten().next().map_or(Ok(()), Err)
}

fn wrong_if(is_wrong: bool, reject: Reject) -> Option<Reject> {
    is_wrong.then_some(reject)
}

impl NaiveEngine {
    /// A new order as it is entered, without a number, and where it goes.
    pub(super) fn entered(&self, new: &NewOrder) -> Result<(Goes, Sheet), Reject> {
        let id = new.instrument;
        self.known(id)?;
        if !rules::go_together(new) {
            return Err(Reject::Instructions);
        }
        let goes = self.goes(id, new.time_in_force, new.order_type, new.stop.is_some())?;
        let has_display = new.display.0 > 0;
        first([
            self.wrong_quantity(id, new.qty),
            wrong_if(has_display && !self.is_in_lots(id, new.display), Reject::Lot),
            wrong_if(has_display && new.display >= new.qty, Reject::Display),
            new.stop.and_then(|stop| self.wrong_trigger(id, stop)),
            self.wrong_limit(new),
            self.beyond_band(new),
        ])?;
        let mut sheet = Sheet::of(*new);
        match goes {
            Goes::Waits(pile) => sheet.pile = pile,
            Goes::Matched if new.post_only => self.make_passive(&mut sheet)?,
            _ => {}
        }
        let may_stay = goes != Goes::Matched || rules::is_left_standing(new.order_type, new.time_in_force);
        let is_full = self.sheets.len() as u64 + 1 > u64::from(self.config.max_orders);
        match may_stay && (is_full || !self.has_level(&sheet)) {
            true => Err(Reject::Full),
            false => Ok((goes, sheet)),
        }
    }

    /// Whether an order of the book may get another price and quantity, and what is done with it then.
    pub(super) fn replaceable(&self, old: &Sheet, price: Price, qty: Qty) -> Result<Goes, Reject> {
        if old.is_quote {
            return Err(Reject::Quote);
        }
        let id = old.instrument();
        let goes = self.goes(id, old.asked.time_in_force, OrderType::Limit, false)?;
        let asked = NewOrder { price, ..old.asked };
        first([self.wrong_limit(&asked), self.wrong_quantity(id, qty)])?;
        Ok(goes)
    }

    /// The same for one that loses its priority.
    pub(super) fn passes_once_replaced(&self, goes: Goes, new: &mut Sheet) -> Result<(), Reject> {
        first([self.beyond_band(&new.asked)])?;
        if goes == Goes::Matched && new.asked.post_only {
            self.make_passive(new)?;
        }
        first([wrong_if(!self.has_level(new), Reject::Full)])
    }

    /// Whether an order that waits may wait like this.
    pub(super) fn may_wait_instead(&self, new: &Sheet) -> Result<(), Reject> {
        let (id, asked) = (new.instrument(), &new.asked);
        let is_stop = new.pile == Pile::Stops;
        self.goes(id, asked.time_in_force, asked.order_type, is_stop)?;
        let trigger = asked.stop.filter(|_| is_stop);
        first([
            trigger.and_then(|stop| self.wrong_trigger(id, stop)),
            self.wrong_limit(asked),
            self.beyond_band(asked),
            self.wrong_quantity(id, asked.qty),
        ])
    }

    /// Whether a side of a quote may be entered.
    pub(super) fn quotable(&self, asked: &NewOrder) -> Result<(), Reject> {
        first([
            wrong_if(!self.is_in_lots(asked.instrument, asked.qty), Reject::Lot),
            self.wrong_limit(asked),
            self.beyond_band(asked),
        ])
    }

    pub(super) fn known(&self, instrument: InstrumentId) -> Result<(), Reject> {
        let is_known = (1..=self.config.instruments).contains(&instrument.0);
        first([wrong_if(!is_known, Reject::UnknownInstrument)])
    }

    fn goes(
        &self,
        instrument: InstrumentId,
        time_in_force: TimeInForce,
        order_type: OrderType,
        is_stop: bool,
    ) -> Result<Goes, Reject> {
        let Board {
            rules,
            status,
            auction,
            ..
        } = self.board(instrument);
        let kind = (time_in_force, order_type == OrderType::Market, is_stop);
        rules::goes(*status, *auction, rules.halted, kind).ok_or(Reject::NotTrading)
    }

    pub(super) fn is_price(&self, instrument: InstrumentId, price: Price) -> bool {
        (1..=self.board(instrument).rules.price_max.raw()).contains(&price.raw())
    }

    /// Whether it is a whole number of the ticks that hold at `at`.
    fn is_in_ticks(&self, instrument: InstrumentId, price: Price, at: Price) -> bool {
        let tick = rules::tick_at(&self.board(instrument).rules.ticks, at);
        price.raw() / tick * tick == price.raw()
    }

    pub(super) fn is_in_lots(&self, instrument: InstrumentId, qty: Qty) -> bool {
        let lot = self.board(instrument).rules.lot.0;
        qty.0 / lot * lot == qty.0
    }

    fn wrong_quantity(&self, instrument: InstrumentId, qty: Qty) -> Option<Reject> {
        match qty {
            Qty(0) => Some(Reject::Quantity),
            _ => wrong_if(!self.is_in_lots(instrument, qty), Reject::Lot),
        }
    }

    fn wrong_trigger(&self, instrument: InstrumentId, stop: Price) -> Option<Reject> {
        match self.is_price(instrument, stop) {
            false => Some(Reject::StopPrice),
            true => wrong_if(!self.is_in_ticks(instrument, stop, stop), Reject::Tick),
        }
    }

    /// An order without a limit has none that is wrong.
    fn wrong_limit(&self, asked: &NewOrder) -> Option<Reject> {
        let NewOrder {
            instrument: id,
            price,
            improvement,
            ..
        } = *asked;
        if asked.order_type == OrderType::Market {
            return None;
        }
        // An improvement leaves a price.
        if !self.is_price(id, price) || !(0..price.raw()).contains(&improvement.raw()) {
            return Some(Reject::PriceRange);
        }
        let are_ticks = [price, improvement].map(|one| self.is_in_ticks(id, one, price));
        wrong_if(are_ticks != [true; 2], Reject::Tick)
    }

    /// "A limit beyond the edge is rejected", where the band does not pause.
    fn beyond_band(&self, asked: &NewOrder) -> Option<Reject> {
        let board = self.board(asked.instrument);
        if asked.order_type == OrderType::Market || board.rules.bands.on_breach == OnBreach::Pause {
            return None;
        }
        let edge = rules::edge(&board.rules.bands, board.reference, board.last, asked.side)?;
        let is_beyond = match asked.side {
            Side::Bid => edge < asked.price,
            Side::Ask => asked.price < edge,
        };
        wrong_if(is_beyond, Reject::PriceBand)
    }

    /// "Never takes, hidden orders included: rejected, or entered one tick behind the best opposite price."
    fn make_passive(&self, sheet: &mut Sheet) -> Result<(), Reject> {
        if self.first_for(sheet, Some(sheet.price())).is_none() {
            return Ok(());
        }
        let rules = &self.board(sheet.instrument()).rules;
        let best = self.best_price(sheet.instrument(), !sheet.side());
        let behind = best.and_then(|best| match sheet.side() {
            Side::Bid => rules::price_below(&rules.ticks, best),
            Side::Ask => Some(rules::price_above(&rules.ticks, best)),
        });
        // What it would trade at, its improvement taken off, has to be a price still.
        let least = sheet.asked.improvement.raw() + 1;
        match (rules.post_only, behind) {
            (PostOnly::Reprice, Some(behind)) if (least..=rules.price_max.raw()).contains(&behind.raw()) => {
                sheet.asked.price = behind;
                Ok(())
            }
            _ => Err(Reject::PostOnly),
        }
    }

    /// "Capacities": whether there is a level for it, or room for another one. Displayed and hidden orders
    /// have levels of their own, and so has each pile; a stop's level is its trigger, and all that have no
    /// limit are one.
    pub(super) fn has_level(&self, sheet: &Sheet) -> bool {
        let ladder = |one: &Sheet| {
            let is_hidden = one.pile == Pile::Book && one.asked.hidden;
            (one.instrument(), one.side(), one.pile, is_hidden)
        };
        let level = |one: &Sheet| match one.pile {
            Pile::Stops => (true, one.trigger()),
            _ => (one.has_limit(), one.price()),
        };
        let mut levels: alloc::vec::Vec<_> = self
            .sheets
            .iter()
            .filter(|one| ladder(one) == ladder(sheet))
            .map(level)
            .collect();
        levels.push(level(sheet));
        levels.sort();
        levels.dedup();
        let most = match sheet.pile {
            Pile::Book => self.config.max_levels as usize,
            _ => rules::WAITING_LEVELS.min(self.config.max_levels as usize),
        };
        // One that is there already needs no room, however many there are.
        let is_there = self
            .sheets
            .iter()
            .any(|one| ladder(one) == ladder(sheet) && level(one) == level(sheet));
        is_there || levels.len() <= most
    }
}
