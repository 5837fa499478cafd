//! What a port's requests do to the engine and the ledger: entering, cancelling, reducing, replacing.

use alloc::vec::Vec;

use tickwire_fix::Id;
use tickwire_market::{InstrumentId, Nanos, Qty, TimeInForce, TradingStatus};
use tickwire_persist::persist;

use crate::breaks::Breaks;
use crate::broadcast::Broadcast;
use crate::engine::Engine;
use crate::flow::Flow;
use crate::order::{NewOrder, Owner, Reject};
use crate::rules::AuctionKind;
use crate::tape::{Tape, VenueTime};

use super::{Asked, Books, ClientOrder, Hearing, OrderNotice, Outcome, Refusal, Said};

/// What order entry acts on while it handles a request.
pub(crate) struct RequestContext<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) tape: &'a mut Broadcast,
    pub(crate) flow: &'a mut Flow,
    pub(crate) breaks: &'a mut Breaks,
    pub(crate) time: VenueTime,
    /// The auction whose orders cannot be cancelled now.
    pub(crate) no_cancel: Option<AuctionKind>,
    /// Whether new orders are taken.
    pub(crate) is_open: bool,
}

/// Whether an order can be cancelled or changed now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hold {
    /// It can.
    Free,
    /// It is in an auction that is about to take place: a cancel waits, it cannot be changed.
    Waits,
    /// It is for that auction: neither.
    Stays,
}

/// A cancel that waits for the end of an auction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WaitingCancel {
    pub(super) row: usize,
    pub(super) request: Id,
    pub(super) orig: Id,
}

/// What a port may do while it handles its bytes: the engine, the ledger and the clients.
pub(super) struct RequestScope<'a, 'f> {
    pub(super) books: &'a mut Books,
    pub(super) context: &'a mut RequestContext<'f>,
    pub(super) now: Nanos,
    /// What happened, in order, for whichever port it is.
    pub(super) said: &'a mut Vec<Said>,
}

impl RequestScope<'_, '_> {
    /// Enters an order and names it in the ledger. Everything about it is told, refusals too.
    pub(super) fn enter(&mut self, order: ClientOrder, new: NewOrder, is_enabled: bool) {
        let mut order = order;
        let refused = if self.books.find(order.route, &order.cl_ord_id).is_some() {
            Some(Refusal::Duplicate)
        } else if self.books.ledger.len() >= self.books.max_orders
            || !self
                .books
                .name(order.route, &order.cl_ord_id, self.books.ledger.len())
        {
            self.books.unrecorded += 1;
            Some(Refusal::NoRoom)
        } else {
            None
        };
        if let Some(refusal) = refused {
            // It has no row: a duplicate is no order.
            order.outcome = Outcome::Rejected;
            let saying = self.books.saying(&order, OrderNotice::Refused(refusal), self.now);
            return self.said.push(Said::Order(saying));
        }
        self.books.ledger.push(order);
        let row = self.books.ledger.len() - 1;
        let refused = if order.instrument == InstrumentId::WHOLE_FEED {
            Some(Refusal::UnknownSymbol)
        } else if !self.context.is_open {
            Some(Refusal::Closed)
        } else if !is_enabled {
            Some(Refusal::Disabled)
        } else {
            let new = NewOrder {
                owner: Owner(row as u32 + 1),
                firm: order.firm,
                ..new
            };
            let done = self.act(Asked::Nothing, |engine, out| engine.submit(&new, out));
            done.err().map(Refusal::Engine)
        };
        if let Some(refusal) = refused {
            self.books.ledger[row].outcome = Outcome::Rejected;
            let order = self.books.ledger[row];
            let saying = self.books.saying(&order, OrderNotice::Refused(refusal), self.now);
            self.said.push(Said::Order(saying));
        }
    }

    /// Cancels what is left of an order.
    pub(super) fn cancel(&mut self, row: usize, request: Id, orig: Id) -> Result<(), Reject> {
        let target = self.books.ledger[row].order_id;
        let asked = Asked::Order {
            row,
            request,
            orig,
            is_replace: false,
        };
        self.act(asked, |engine, out| engine.cancel(target, out))
    }

    /// Whether an order can be cancelled or changed now, see
    /// [`AuctionTimes::no_cancel_ns`](crate::AuctionTimes).
    pub(super) fn hold(&self, order: &ClientOrder) -> Hold {
        match (self.context.no_cancel, order.time_in_force) {
            (None, _) => Hold::Free,
            (Some(AuctionKind::Opening), TimeInForce::AtTheOpening)
            | (Some(AuctionKind::Closing), TimeInForce::AtTheClose) => Hold::Stays,
            _ if self.context.engine.trading_status(order.instrument) == Some(TradingStatus::Auction) => {
                Hold::Waits
            }
            _ => Hold::Free,
        }
    }

    /// Whether a cancel of it waits for the end of the auction.
    pub(super) fn is_cancel_waiting(&self, row: usize) -> bool {
        self.books.waiting_cancels.iter().any(|w| w.row == row)
    }

    /// Keeps a cancel until the auction is over; the port is told.
    pub(super) fn cancel_later(&mut self, row: usize, request: Id, orig: Id) {
        if !self.is_cancel_waiting(row) {
            let waiting = WaitingCancel { row, request, orig };
            self.books.waiting_cancels.push(waiting);
        }
        self.tell(row, OrderNotice::CancelPending, request, orig);
    }

    /// Tells the port of an order what becomes of a request about it.
    pub(super) fn tell(&mut self, row: usize, told: OrderNotice, request: Id, orig: Id) {
        let order = self.books.ledger[row];
        let mut saying = self.books.saying(&order, told, self.now);
        saying.request = Some((request, orig));
        self.said.push(Said::Order(saying));
    }

    /// Takes `by` from an order, which keeps its place.
    pub(super) fn reduce(&mut self, row: usize, by: Qty, request: Id, orig: Id) -> Result<(), Reject> {
        let target = self.books.ledger[row].order_id;
        let asked = Asked::Order {
            row,
            request,
            orig,
            is_replace: false,
        };
        self.act(asked, |engine, out| engine.reduce(target, by, out))
    }

    /// Gives an order another price, total quantity, fills included (broken ones too), and, as long as it
    /// waits for it, trigger under another identifier.
    pub(super) fn replace(&mut self, row: usize, changed: ClientOrder, orig: Id) -> Result<(), Reject> {
        let before = self.books.ledger[row];
        // What is filled already cannot be taken back.
        let remaining = Qty(changed.qty.0.saturating_sub(before.executed().0));
        self.books.ledger[row] = changed;
        let asked = Asked::Order {
            row,
            request: changed.cl_ord_id,
            orig,
            is_replace: true,
        };
        let told = self.said.len();
        let done = self.act(asked, |engine, out| {
            let id = before.order_id;
            match changed.stop.filter(|stop| before.stop != Some(*stop)) {
                Some(stop) => engine.replace_stop(id, stop, changed.price, remaining, out),
                None => engine.replace(id, changed.price, remaining, out),
            }
        });
        match done {
            // Nothing but the name changed: the engine had nothing to tell.
            Ok(_) if self.said.len() == told => {
                let mut saying = self.books.saying(&changed, OrderNotice::Replaced, self.now);
                saying.request = Some((changed.cl_ord_id, orig));
                self.said.push(Said::Order(saying));
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(e) => {
                self.books.ledger[row] = before;
                Err(e)
            }
        }
    }

    /// Whether a stop order has not been triggered yet.
    pub(super) fn is_waiting_for_trigger(&self, order: &ClientOrder) -> bool {
        self.context.engine.stop_price(order.order_id).is_some()
    }

    /// Cancels, for a client, every open order that fits and can be cancelled now; how many. Of those that
    /// are in an auction the cancel waits for its end.
    pub(super) fn sweep_for_client(&mut self, which: impl Fn(&ClientOrder) -> bool) -> u32 {
        if self.context.no_cancel.is_none() {
            return self.sweep(which);
        }
        let mut cancelled = 0;
        for row in 0..self.books.ledger.len() {
            let order = self.books.ledger[row];
            if order.outcome != Outcome::Open || !which(&order) {
                continue;
            }
            match self.hold(&order) {
                Hold::Free => {
                    let done = self.act(Asked::Sweep, |engine, out| engine.cancel(order.order_id, out));
                    cancelled += u32::from(done.is_ok());
                }
                Hold::Waits => self.cancel_later(row, order.cl_ord_id, order.cl_ord_id),
                Hold::Stays => {}
            }
        }
        cancelled
    }

    /// Cancels every open order that fits; how many.
    pub(super) fn sweep(&mut self, which: impl Fn(&ClientOrder) -> bool) -> u32 {
        let mut cancelled = 0;
        for row in 0..self.books.ledger.len() {
            let order = self.books.ledger[row];
            if order.outcome == Outcome::Open && which(&order) {
                let done = self.act(Asked::Sweep, |engine, out| engine.cancel(order.order_id, out));
                cancelled += u32::from(done.is_ok());
            }
        }
        cancelled
    }

    /// Does something to the engine while publisher and clients listen.
    pub(super) fn act<T>(
        &mut self,
        asked: Asked,
        request: impl FnOnce(&mut Engine, &mut (&mut Broadcast, &mut Hearing<'_>)) -> T,
    ) -> T {
        self.context.tape.set_time(self.context.time);
        self.context.engine.set_time(self.context.time);
        let mut hearing = Hearing {
            books: self.books,
            said: core::mem::take(self.said),
            now: self.now,
            asked,
            disturbed: None,
            reason: None,
        };
        let done = request(self.context.engine, &mut (&mut *self.context.tape, &mut hearing));
        *self.said = hearing.said;
        if let Some(instrument) = hearing.disturbed {
            self.context.flow.disturb(instrument, self.context.time);
        }
        self.context.breaks.draw(self.context.time, self.context.engine);
        done
    }
}

persist!(value struct WaitingCancel { row, request, orig });
