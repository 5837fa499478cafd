//! Many orders at once: mass cancels, quotes, and what protects those who quote.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, OrderId, Price, Qty, Side, TimeInForce, TradingStatus};
use tickwire_persist::persist;

use super::{Engine, EngineConfig, LADDERS, NIL};
use crate::index::OrderIndex;
use crate::order::{CancelReason, Firm, Listener, NO_MPID, Order, Reject, Terms};
use crate::rules::{MassCancel, Protection, QuoteEntry};

/// The most pairs of firm and instrument that are ever quoted; fewer in an engine for fewer orders.
pub(crate) const QUOTES_MAX: u32 = 1 << 16;
/// The most protections that are set, pairs of firm and group.
pub const PROTECTIONS_MAX: usize = 1024;

/// A firm's quote of an instrument. Stays in the table, whatever became of its orders.
#[derive(Clone, Copy)]
struct Quote {
    firm: Firm,
    instrument: InstrumentId,
    /// The latest order of each side.
    orders: [OrderId; 2],
}

/// A protection and what counts towards it.
#[derive(Clone, Copy)]
pub(crate) struct Guard {
    pub(crate) firm: Firm,
    pub(crate) group: u32,
    pub(crate) limits: Protection,
    /// When the window began; nothing was counted before the first trade.
    pub(crate) since: Option<u64>,
    pub(crate) contracts: [u64; 2],
    pub(crate) trades: u32,
    pub(crate) percent: u64,
    pub(crate) is_tripped: bool,
}

impl Guard {
    pub(crate) fn new(firm: Firm, group: u32, limits: Protection) -> Guard {
        Guard {
            firm,
            group,
            limits,
            since: None,
            contracts: [0; 2],
            trades: 0,
            percent: 0,
            is_tripped: false,
        }
    }

    /// Counts a trade of `qty` against a quote as it was before; whether that reached a limit for the first
    /// time.
    pub(crate) fn count(&mut self, now: u64, quote: &Order, qty: Qty) -> bool {
        let is_over = |since: u64| now.saturating_sub(since) > self.limits.window_ns;
        if self.since.is_none_or(is_over) && !self.is_tripped {
            *self = Guard {
                since: Some(now),
                ..Guard::new(self.firm, self.group, self.limits)
            };
        }
        self.contracts[quote.side as usize] += u64::from(qty.0);
        self.trades = self.trades.saturating_add(1);
        self.percent += u64::from(qty.0) * 100 / u64::from(quote.qty.0.max(1));
        let limits = &self.limits;
        let reaches = |count: u64, limit: u64| limit > 0 && count >= limit;
        let is_reached = reaches(self.contracts[0] + self.contracts[1], limits.contracts)
            || reaches(self.trades.into(), limits.trades.into())
            || reaches(self.percent, limits.percent)
            || reaches(self.contracts[0].min(self.contracts[1]), limits.both_sides);
        is_reached && !core::mem::replace(&mut self.is_tripped, true)
    }
}

/// All quotes and protections.
pub(super) struct Quotes {
    quotes: Vec<Quote>,
    /// Firm and instrument → place in `quotes`.
    places: OrderIndex,
    guards: Vec<Guard>,
    /// Places of guards whose quotes are to be cancelled.
    tripped: Vec<u32>,
    now: u64,
}

impl Quotes {
    pub(super) fn new(config: &EngineConfig) -> Quotes {
        let quotes = config.max_orders.min(QUOTES_MAX) as usize;
        Quotes {
            quotes: Vec::with_capacity(quotes),
            places: OrderIndex::new(quotes),
            guards: Vec::with_capacity(PROTECTIONS_MAX),
            tripped: Vec::with_capacity(PROTECTIONS_MAX),
            now: 0,
        }
    }

    pub(super) fn has_tripped(&self) -> bool {
        !self.tripped.is_empty()
    }

    fn guard(&mut self, firm: Firm, group: u32) -> Option<(usize, &mut Guard)> {
        let mut guards = self.guards.iter_mut().enumerate();
        guards.find(|(_, guard)| (guard.firm, guard.group) == (firm, group))
    }

    fn is_tripped(&self, firm: Firm, group: u32) -> bool {
        let mut guards = self.guards.iter();
        guards.any(|guard| guard.is_tripped && (guard.firm, guard.group) == (firm, group))
    }

    fn has_room(&self, firm: Firm, instrument: InstrumentId) -> bool {
        self.quotes.len() < self.quotes.capacity() || self.places.get(key(firm, instrument)).is_some()
    }

    /// The place of a quote, a new one if it is the first.
    fn place(&mut self, firm: Firm, instrument: InstrumentId) -> usize {
        if let Some(place) = self.places.get(key(firm, instrument)) {
            return place as usize;
        }
        self.places
            .insert(key(firm, instrument), self.quotes.len() as u32);
        self.quotes.push(Quote {
            firm,
            instrument,
            orders: [OrderId(0); 2],
        });
        self.quotes.len() - 1
    }
}

/// Never 0: who quotes has a firm.
fn key(firm: Firm, instrument: InstrumentId) -> u64 {
    u64::from(firm.0) << 32 | u64::from(instrument.0)
}

impl Engine {
    /// The venue's time, for the windows of protections. Does not go back.
    pub fn set_time(&mut self, now_ns: u64) {
        self.quotes.now = self.quotes.now.max(now_ns);
    }

    /// Cancels all orders that match, instrument by instrument, each instrument's in the order of
    /// [`Engine::visit`], then those that wait. How many.
    pub fn mass_cancel(&mut self, which: &MassCancel, out: &mut impl Listener) -> Result<u32, Reject> {
        let instruments = match which.instrument {
            None => 1..=self.config.instruments,
            Some(one) => {
                self.listing(one)?;
                one.0..=one.0
            }
        };
        let mut count = 0;
        for instrument in instruments.map(InstrumentId) {
            let group = self.listed[instrument.index()].rules.group;
            if which.group.is_none_or(|wanted| wanted == group) {
                count += self.cancel_where(
                    instrument,
                    CancelReason::MassCancel,
                    |order| {
                        which.firm.is_none_or(|firm| firm == order.firm)
                            && which.side.is_none_or(|side| side == order.side)
                            && (!which.quotes_only || order.is_quote())
                    },
                    out,
                );
            }
        }
        Ok(count)
    }

    /// The end of an instrument's day for its orders: all leave that are not good till cancelled. How many.
    pub fn expire_day(&mut self, instrument: InstrumentId, out: &mut impl Listener) -> Result<u32, Reject> {
        self.listing(instrument)?;
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
        let mut count = 0;
        let base = instrument.index() * LADDERS;
        for ladder in base..base + LADDERS {
            // From the best level down: an emptied level moves only better ones, which were seen.
            for at in (0..self.ladders.depth(ladder)).rev() {
                let mut slot = self.ladders.queue_of(&self.ladders.of(ladder)[at]).head;
                while slot != NIL {
                    let next = self.links[slot as usize].next;
                    if which(&self.slots[slot as usize].order) {
                        self.remove(slot, Some(reason), out);
                        count += 1;
                    }
                    slot = next;
                }
            }
        }
        if count > 0 {
            out.completed(instrument);
        }
        count
    }

    /// Replaces quotes, entry by entry; each stands or falls for itself, and one that is rejected leaves the
    /// earlier quote as it was. A side with the same price and no more quantity keeps its priority. `results`
    /// gets what became of each.
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
        let sides = [(entry.bid, entry.bid_qty), (entry.ask, entry.ask_qty)];
        self.check_quote(firm, entry, sides)?;
        let place = self.quotes.place(firm, entry.instrument);
        let mut is_kept = [false; 2];
        for (side, (price, qty)) in Side::BOTH.into_iter().zip(sides) {
            let old = self.quotes.quotes[place].orders[side as usize];
            let Some(slot) = self.index.get(old.0) else {
                continue;
            };
            let old = self.slots[slot as usize].order;
            is_kept[side as usize] = !qty.is_zero() && price == old.price && qty <= old.qty;
            if !is_kept[side as usize] {
                self.remove(slot, Some(CancelReason::Requoted), out);
            } else if qty < old.qty {
                let by = Qty(old.qty.0 - qty.0);
                self.lower(slot, by, Some(CancelReason::Requoted), out);
            }
        }
        for (side, (price, qty)) in Side::BOTH.into_iter().zip(sides) {
            if qty.is_zero() || is_kept[side as usize] {
                continue;
            }
            let order = Order {
                id: self.next_id(),
                price,
                qty,
                instrument: entry.instrument,
                owner: entry.owner,
                mpid: NO_MPID,
                firm,
                side,
                terms: Terms::of_quote(),
                ..Order::default()
            };
            self.quotes.quotes[place].orders[side as usize] = order.id;
            out.accepted(&order);
            // The first side may have paused the instrument.
            if self.listed[entry.instrument.index()].status == TradingStatus::Trading {
                self.trade_in(order, out);
            } else {
                self.rest(&order, Price::ZERO);
                out.rested(&order);
            }
        }
        self.settle(entry.instrument, out);
        Ok(())
    }

    fn check_quote(&self, firm: Firm, entry: &QuoteEntry, sides: [(Price, Qty); 2]) -> Result<(), Reject> {
        let listed = self.listing(entry.instrument)?;
        let asked = Side::BOTH.into_iter().zip(sides);
        let asked = asked.filter(|(_, (_, qty))| !qty.is_zero());
        let count = asked.clone().count() as u32;
        if count > 0 && !matches!(listed.status, TradingStatus::Trading | TradingStatus::Auction) {
            return Err(Reject::NotTrading);
        }
        if count > 0 && self.quotes.is_tripped(firm, listed.rules.group) {
            return Err(Reject::Protected);
        }
        for (side, (price, qty)) in asked.clone() {
            self.check_lot(entry.instrument, qty)?;
            self.check_price(entry.instrument, price, Price::ZERO)?;
            self.check_band(entry.instrument, side, price)?;
        }
        if count == 2 && entry.bid >= entry.ask {
            return Err(Reject::Quote);
        }
        let has_levels = asked.into_iter().all(|(side, (price, _))| {
            let order = Order {
                instrument: entry.instrument,
                side,
                price,
                ..Order::default()
            };
            self.has_level_room(&order, Price::ZERO)
        });
        let has_room = self.live + count <= self.config.max_orders;
        match has_room && has_levels && self.quotes.has_room(firm, entry.instrument) {
            true => Ok(()),
            false => Err(Reject::Full),
        }
    }

    /// Sets the limits of a firm's quotes in a group of instruments, and begins counting anew.
    pub fn set_protection(&mut self, firm: Firm, group: u32, limits: Protection) -> Result<(), Reject> {
        if firm == Firm::NONE {
            return Err(Reject::NoFirm);
        }
        let new = Guard::new(firm, group, limits);
        let is_full = self.quotes.guards.len() >= PROTECTIONS_MAX;
        match self.quotes.guard(firm, group) {
            Some((_, guard)) => *guard = new,
            None if is_full => return Err(Reject::Full),
            None => self.quotes.guards.push(new),
        }
        Ok(())
    }

    /// Takes quotes again after the protection was triggered, and begins counting anew. Whether there is one.
    pub fn reset_protection(&mut self, firm: Firm, group: u32) -> bool {
        let guard = self.quotes.guard(firm, group);
        guard
            .map(|(_, guard)| *guard = Guard::new(firm, group, guard.limits))
            .is_some()
    }

    /// Whether a firm's quotes of the group are refused because its protection was triggered.
    pub fn is_protected(&self, firm: Firm, group: u32) -> bool {
        self.quotes.is_tripped(firm, group)
    }

    pub(super) fn count_against_quote(&mut self, quote: &Order, qty: Qty) {
        let group = self.listed[quote.instrument.index()].rules.group;
        let now = self.quotes.now;
        if let Some((at, guard)) = self.quotes.guard(quote.firm, group)
            && guard.count(now, quote, qty)
        {
            self.quotes.tripped.push(at as u32);
        }
    }

    /// Cancels all quotes of those whose protection was triggered, in the order in which they first quoted an
    /// instrument.
    pub(super) fn withdraw_tripped(&mut self, out: &mut impl Listener) {
        for nth in 0..self.quotes.tripped.len() {
            let Guard { firm, group, .. } = self.quotes.guards[self.quotes.tripped[nth] as usize];
            out.protected(firm, group);
            for at in 0..self.quotes.quotes.len() {
                let quote = self.quotes.quotes[at];
                let is_meant =
                    quote.firm == firm && self.listed[quote.instrument.index()].rules.group == group;
                if !is_meant {
                    continue;
                }
                let mut any = false;
                for id in quote.orders {
                    if let Some(slot) = self.index.get(id.0) {
                        self.remove(slot, Some(CancelReason::Protection), out);
                        any = true;
                    }
                }
                if any {
                    out.completed(quote.instrument);
                }
            }
        }
        self.quotes.tripped.clear();
    }
}

persist!(value struct Quote { firm, instrument, orders });
persist!(value struct Guard { firm, group, limits, since, contracts, trades, percent, is_tripped });
persist!(struct Quotes { quotes, places, guards, tripped, now });
