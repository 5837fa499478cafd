//! Many orders at once: `docs/exchange.md`, "Mass cancel", "Mass quote" and "Market maker protection".

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, OrderId, Side, TimeInForce, TradingStatus};

use crate::order::{CancelReason, Firm, Listener, NewOrder, Reject};
use crate::rules::{MassCancel, Protection, QuoteEntry};

use super::rules::{self, Watch};
use super::sheet::Sheet;
use super::{Board, NaiveEngine};

impl NaiveEngine {
    /// See [`crate::Engine::mass_cancel`].
    pub fn mass_cancel(&mut self, which: &MassCancel, out: &mut impl Listener) -> Result<u32, Reject> {
        which.instrument.map_or(Ok(()), |one| self.known(one))?;
        let is_meant = |board: &Board, sheet: &Sheet| {
            let differs = [
                which.firm.is_some_and(|firm| firm != sheet.asked.firm),
                which.instrument.is_some_and(|one| one != sheet.instrument()),
                which.group.is_some_and(|group| group != board.rules.group),
                which.side.is_some_and(|side| side != sheet.side()),
                which.quotes_only && !sheet.is_quote,
            ];
            differs == [false; 5]
        };
        Ok(self.sweep(CancelReason::MassCancel, is_meant, out))
    }

    /// See [`crate::Engine::expire_day`].
    pub fn expire_day(&mut self, instrument: InstrumentId, out: &mut impl Listener) -> Result<u32, Reject> {
        self.known(instrument)?;
        let is_over = |_: &Board, sheet: &Sheet| {
            sheet.instrument() == instrument && sheet.asked.time_in_force != TimeInForce::GoodTillCancel
        };
        Ok(self.sweep(CancelReason::DayOver, is_over, out))
    }

    /// Takes away everything that is meant; how many orders.
    fn sweep(
        &mut self,
        reason: CancelReason,
        is_meant: impl Fn(&Board, &Sheet) -> bool,
        out: &mut impl Listener,
    ) -> u32 {
        let mut meant = self.in_order();
        meant.retain(|sheet| is_meant(self.board(sheet.instrument()), sheet));
        for of_one in meant.chunk_by(|a, b| a.instrument() == b.instrument()) {
            for sheet in of_one {
                self.withdraw(sheet.number, Some(reason), out);
            }
            out.completed(of_one[0].instrument());
        }
        meant.len() as u32
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

    /// "An entry replaces it as a whole: first the old sides leave (a side with the same price and no more
    /// quantity stays in its place), then bid and ask are entered, and trade if they can."
    fn quote(&mut self, firm: Firm, entry: &QuoteEntry, out: &mut impl Listener) -> Result<(), Reject> {
        let id = entry.instrument;
        self.known(id)?;
        let asked = [
            NewOrder::limit(id, Side::Bid, entry.bid, entry.bid_qty),
            NewOrder::limit(id, Side::Ask, entry.ask, entry.ask_qty),
        ];
        let sides: Vec<Sheet> = asked
            .into_iter()
            .map(|side| Sheet {
                is_quote: true,
                ..Sheet::of(NewOrder {
                    firm,
                    owner: entry.owner,
                    ..side
                })
            })
            .collect();
        self.check_quote(firm, &sides)?;
        let at = self
            .quotes
            .iter()
            .position(|(of, one, _)| (*of, *one) == (firm, id));
        let at = at.unwrap_or_else(|| {
            self.quotes.push((firm, id, [0; 2]));
            self.quotes.len() - 1
        });
        let mut coming = Vec::new();
        for (side, number) in sides.into_iter().zip(self.quotes[at].2) {
            match self.find(OrderId(number)) {
                Ok(old) if side.shown > 0 && side.price() == old.price() && side.shown <= old.shown => {
                    if side.shown < old.shown {
                        let by = old.shown - side.shown;
                        self.cut(number, by, Some(CancelReason::Requoted), out);
                    }
                }
                _ => {
                    self.withdraw(number, Some(CancelReason::Requoted), out);
                    coming.push(side);
                }
            }
        }
        for mut side in coming.into_iter().filter(|side| side.shown > 0) {
            side.number = self.next_number();
            self.quotes[at].2[side.side() as usize] = side.number;
            out.accepted(&side.told());
            // The bid may have paused the instrument.
            match self.board(id).status {
                TradingStatus::Trading => self.deal(side, out),
                _ => self.lay(side, out),
            }
        }
        self.follow_up(id, out);
        Ok(())
    }

    fn check_quote(&self, firm: Firm, sides: &[Sheet]) -> Result<(), Reject> {
        let id = sides[0].instrument();
        let Board { rules, status, .. } = self.board(id);
        let wanted: Vec<&Sheet> = sides.iter().filter(|side| side.shown > 0).collect();
        let is_open = [TradingStatus::Trading, TradingStatus::Auction].contains(status);
        if !wanted.is_empty() && !is_open {
            return Err(Reject::NotTrading);
        }
        if !wanted.is_empty() && self.is_protected(firm, rules.group) {
            return Err(Reject::Protected);
        }
        for side in &wanted {
            self.quotable(&side.asked)?;
        }
        if let [bid, ask] = wanted[..]
            && ask.price() <= bid.price()
        {
            return Err(Reject::Quote);
        }
        let is_known = self.quotes.iter().any(|(of, one, _)| (*of, *one) == (firm, id));
        let quotes_max = rules::QUOTES.min(self.config.max_orders as usize);
        let has_room = self.sheets.len() + wanted.len() <= self.config.max_orders as usize
            && (is_known || self.quotes.len() < quotes_max)
            && wanted.iter().all(|side| self.has_level(side));
        if has_room { Ok(()) } else { Err(Reject::Full) }
    }

    /// See [`crate::Engine::set_protection`].
    pub fn set_protection(&mut self, firm: Firm, group: u32, limits: Protection) -> Result<(), Reject> {
        if firm == Firm::NONE {
            return Err(Reject::NoFirm);
        }
        let others = self
            .watches
            .iter()
            .filter(|watch| (watch.firm, watch.group) != (firm, group));
        if others.count() >= rules::PROTECTIONS {
            return Err(Reject::Full);
        }
        self.watches
            .retain(|watch| (watch.firm, watch.group) != (firm, group));
        self.watches.push(Watch::new(firm, group, limits));
        Ok(())
    }

    /// See [`crate::Engine::reset_protection`].
    pub fn reset_protection(&mut self, firm: Firm, group: u32) -> bool {
        let mut watches = self.watches.iter_mut();
        let watch = watches.find(|watch| (watch.firm, watch.group) == (firm, group));
        watch.is_some_and(|watch| {
            *watch = Watch::new(firm, group, watch.limits);
            true
        })
    }

    /// See [`crate::Engine::is_protected`].
    pub fn is_protected(&self, firm: Firm, group: u32) -> bool {
        let mut watches = self.watches.iter();
        watches.any(|watch| (watch.firm, watch.group, watch.is_reached) == (firm, group, true))
    }
}
