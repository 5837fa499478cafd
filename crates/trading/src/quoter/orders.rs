//! Quotes as orders, a bid and an offer of each option: for venues, products and sessions that take no mass
//! quotes.
//!
//! ```text
//! Quoter ─► MassQuote of one entry ─► QuoteOrders ─► new · replace · cancel, a request a side at most ─► venue
//! Quoter ◄─ QuoteAnswer, what is live of the quote ◄─ QuoteOrders ◄─ reports ◄─ venue
//! ```
//! The quoter is the same, with [`crate::QuoterConfig::entries_max`] 1: a quote has one change under way, and
//! that is answered when both of its requests are. The side that gives way is asked for first, so that a
//! quote does not trade with itself. A replacement leaves what was asked for less what traded on its way
//! (FIX: OrderQty counts what was filled); one that comes too late for an order that is filled is no refusal:
//! the side is empty.
//!
//! **Assumed of the venue**: reports of an order come in the order of what happened to it; a mass cancel is
//! confirmed after, or before, each of its orders is reported, and nothing of them trades behind it.

use super::{MassQuote, NO_ASK, NO_BID};
use alloc::boxed::Box;
use alloc::vec;
use tickwire_market::{Cause, Side};

/// A request about one side of a quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SideRequest {
    /// Its number, from 1: reports name it.
    pub id: u64,
    /// What to do.
    pub kind: SideRequestKind,
    /// The option's place.
    pub quote: u16,
    /// A bid buys.
    pub side: Side,
    /// The order's price, in ticks; of one that is cancelled, its present one.
    pub ticks: u16,
    /// OrderQty: contracts to be filled in all, those that are filled already included; of a cancel, the
    /// order's own.
    pub qty: u32,
    /// The market data that it follows.
    pub cause: Cause,
}

/// What a [`SideRequest`] asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SideRequestKind {
    /// A limit order for the day.
    New,
    /// Other price and quantity for the order of this number.
    Replace(u64),
    /// The end of the order of this number.
    Cancel(u64),
}

/// Where requests leave. `false`: there was no room, and nothing was sent.
pub trait SideSink {
    /// Sends a request.
    fn request(&mut self, request: &SideRequest) -> bool;
}

/// What a venue reports about one of these orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SideReport {
    /// The option's place.
    pub quote: u16,
    /// Whose.
    pub side: Side,
    /// The number that the report names: that of the order, or of the request it answers.
    pub id: u64,
    /// What happened.
    pub kind: SideReportKind,
    /// Contracts that are left of the order (LeavesQty).
    pub leaves: u32,
    /// Contracts filled in all (CumQty).
    pub filled: u32,
}

/// See [`SideReport::kind`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SideReportKind {
    /// The new order rests.
    Accepted,
    /// The replacement was made.
    Replaced,
    /// The order was refused.
    Rejected,
    /// The order is gone: as asked for, or because the venue wants it so.
    Cancelled,
    /// The venue took a part of it away.
    Reduced,
    /// It traded.
    Filled,
    /// A replacement or a cancel was refused: the order is as it was, if there still is one.
    Refused,
}

/// What is live of a quote whose change was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuoteLive {
    /// Number of the mass quote.
    pub id: u64,
    /// The option's place.
    pub quote: u16,
    /// Prices in ticks, [`NO_BID`] and [`NO_ASK`] where there is none.
    pub ticks: (u16, u16),
    /// Contracts, by side.
    pub open: [u32; 2],
    /// A request was refused.
    pub is_refused: bool,
}

/// What a report means for the quoter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SideOutcome {
    /// Nothing yet.
    Nothing,
    /// The quote's change is answered.
    Answered(QuoteLive),
    /// The venue took a side away without being asked, or a part of it: so many contracts are left of it.
    Left(u32),
    /// It is of no order that there is.
    Unknown,
}

/// An order that rests; number 0 is none.
#[derive(Clone, Copy, Debug, Default)]
struct Resting {
    id: u64,
    ticks: u16,
    leaves: u32,
    filled: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Asked {
    #[default]
    Nothing,
    New,
    Replace,
    Cancel,
}

/// One side of a quote.
#[derive(Clone, Copy, Debug, Default)]
struct WorkingSide {
    order: Resting,
    asked: Asked,
    /// Number and price of what is asked for.
    id: u64,
    ticks: u16,
}

/// The change of a quote that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    /// Number of the mass quote; 0 is none.
    id: u64,
    is_refused: bool,
}

/// Turns mass quotes into orders and reports into answers. Nothing allocates after `new`.
#[derive(Clone, Debug)]
pub struct QuoteOrders {
    places: Box<[[WorkingSide; 2]]>,
    changes: Box<[Change]>,
    next: u64,
    /// Changes that needed no request: answered by [`QuoteOrders::poll_answer`].
    idle: u32,
}

impl QuoteOrders {
    /// No orders, of so many quotes.
    pub fn new(quotes: u16) -> QuoteOrders {
        QuoteOrders {
            places: vec![[WorkingSide::default(); 2]; quotes.into()].into_boxed_slice(),
            changes: vec![Change::default(); quotes.into()].into_boxed_slice(),
            next: 1,
            idle: 0,
        }
    }

    /// A number for a request that is about no side: a mass cancel.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Asks for what a mass quote of one entry says. `false`: nothing was sent, because there was no room, or
    /// because it has more entries or is of a quote that does not exist or whose last change is under way.
    pub fn quote(&mut self, quote: &MassQuote<'_>, sink: &mut impl SideSink) -> bool {
        let [entry] = quote.entries else { return false };
        let at = usize::from(entry.quote);
        let (Some(places), Some(change)) = (self.places.get_mut(at), self.changes.get_mut(at)) else {
            return false;
        };
        if change.id != 0 {
            return false;
        }
        let wanted = [
            (entry.bid_ticks, entry.bid_qty.0),
            (entry.ask_ticks, entry.ask_qty.0),
        ];
        // A bid that rises could meet the offer that is to rise too.
        let rises = wanted[0].1 > 0 && wanted[0].0 > places[0].order.ticks;
        let order = if rises {
            [Side::Ask, Side::Bid]
        } else {
            [Side::Bid, Side::Ask]
        };
        let (mut sent, mut failed) = (0, false);
        for side in order {
            let place = &mut places[side as usize];
            let (ticks, qty) = wanted[side as usize];
            let Some((asked, kind, request)) = place.asks(ticks, qty) else {
                continue;
            };
            let request = SideRequest {
                id: self.next,
                kind,
                quote: entry.quote,
                side,
                ticks: request.0,
                qty: request.1,
                cause: quote.cause,
            };
            if failed || !sink.request(&request) {
                failed = true;
                continue;
            }
            (place.asked, place.id, place.ticks) = (asked, self.next, ticks);
            self.next += 1;
            sent += 1;
        }
        if failed && sent == 0 {
            return false;
        }
        *change = Change {
            id: quote.id,
            is_refused: failed,
        };
        self.idle += u32::from(sent == 0);
        true
    }

    /// A change that needed no request, or all of whose requests are answered without a report.
    pub fn poll_answer(&mut self) -> Option<QuoteLive> {
        if self.idle == 0 {
            return None;
        }
        self.idle -= 1;
        (0..self.changes.len()).find_map(|at| self.answered(at))
    }

    /// The venue says something about one of the orders.
    pub fn on_report(&mut self, report: &SideReport) -> SideOutcome {
        let at = usize::from(report.quote);
        let Some(place) = self
            .places
            .get_mut(at)
            .map(|places| &mut places[report.side as usize])
        else {
            return SideOutcome::Unknown;
        };
        let is_asked = place.asked != Asked::Nothing && place.id == report.id;
        let is_order = place.order.id != 0 && place.order.id == report.id;
        let resting = |ticks: u16| Resting {
            id: report.id,
            ticks,
            leaves: report.leaves,
            filled: report.filled,
        };
        let (mut is_refused, mut is_less) = (false, false);
        match report.kind {
            SideReportKind::Accepted if is_asked && place.asked == Asked::New => {
                place.order = resting(place.ticks);
                place.asked = Asked::Nothing;
            }
            SideReportKind::Replaced if is_asked && place.asked == Asked::Replace => {
                place.order = resting(place.ticks);
                place.asked = Asked::Nothing;
            }
            SideReportKind::Rejected if is_asked && place.asked == Asked::New => {
                place.asked = Asked::Nothing;
                is_refused = true;
            }
            SideReportKind::Refused if is_asked => {
                place.asked = Asked::Nothing;
                // An order that was filled meanwhile cannot be changed: there is nothing that should not be
                // there.
                is_refused = place.order.id != 0;
            }
            SideReportKind::Cancelled if is_asked && place.asked == Asked::Cancel => {
                place.order = Resting::default();
                place.asked = Asked::Nothing;
            }
            SideReportKind::Cancelled if is_asked && place.asked == Asked::New => {
                // It was taken and taken away at once.
                place.asked = Asked::Nothing;
            }
            SideReportKind::Cancelled if is_order => {
                place.order = Resting::default();
                is_less = true;
            }
            SideReportKind::Reduced if is_order => {
                place.order.leaves = place.order.leaves.min(report.leaves);
                is_less = true;
            }
            SideReportKind::Filled if is_order || (is_asked && place.asked == Asked::New) => {
                // Reported before it was said to be taken: it was.
                if is_asked && place.asked == Asked::New {
                    place.order = resting(place.ticks);
                    place.asked = Asked::Nothing;
                }
                (place.order.leaves, place.order.filled) = (report.leaves, report.filled);
            }
            _ => return SideOutcome::Unknown,
        }
        if place.order.leaves == 0 {
            place.order = Resting::default();
        }
        let left = place.order.leaves;
        if let Some(change) = self.changes.get_mut(at) {
            change.is_refused |= is_refused;
        }
        match self.answered(at) {
            Some(live) => SideOutcome::Answered(live),
            None if is_less => SideOutcome::Left(left),
            None => SideOutcome::Nothing,
        }
    }

    /// The quote and the side that a request of this number is about: for answers that do not say. Not for
    /// the hot path.
    #[cold]
    pub fn find(&self, id: u64) -> Option<(u16, Side)> {
        let is_it = |place: &WorkingSide| place.asked != Asked::Nothing && place.id == id;
        (0_u16..).zip(&self.places).find_map(|(quote, places)| {
            let side = Side::BOTH
                .into_iter()
                .find(|side| is_it(&places[*side as usize]))?;
            Some((quote, side))
        })
    }

    /// The venue has none of the orders any more.
    pub fn clear(&mut self) {
        self.places.fill([WorkingSide::default(); 2]);
        self.changes.fill(Change::default());
        self.idle = 0;
    }

    /// What became of a change, if all of it is answered.
    fn answered(&mut self, at: usize) -> Option<QuoteLive> {
        let (places, change) = (self.places.get(at)?, self.changes.get_mut(at)?);
        if change.id == 0 || places.iter().any(|place| place.asked != Asked::Nothing) {
            return None;
        }
        let Change { id, is_refused } = core::mem::take(change);
        let [bid, ask] = places.map(|place| place.order);
        let ticks = |order: Resting, none: u16| if order.id == 0 { none } else { order.ticks };
        Some(QuoteLive {
            id,
            quote: at as u16,
            ticks: (ticks(bid, NO_BID), ticks(ask, NO_ASK)),
            open: [bid.leaves, ask.leaves],
            is_refused,
        })
    }
}

impl WorkingSide {
    /// What has to be asked for to have so many contracts at a price, with the price and OrderQty of the
    /// request.
    fn asks(&self, ticks: u16, qty: u32) -> Option<(Asked, SideRequestKind, (u16, u32))> {
        let order = self.order;
        match (order.id, qty) {
            (0, 0) => None,
            (0, _) => Some((Asked::New, SideRequestKind::New, (ticks, qty))),
            (id, 0) => {
                let total = order.filled.saturating_add(order.leaves);
                Some((Asked::Cancel, SideRequestKind::Cancel(id), (order.ticks, total)))
            }
            (_, _) if order.ticks == ticks && order.leaves == qty => None,
            (id, _) => {
                let total = order.filled.saturating_add(qty);
                Some((Asked::Replace, SideRequestKind::Replace(id), (ticks, total)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
