//! What the market does to clients' orders, told to the port each came by.

use alloc::vec::Vec;

use tickwire_market::{InstrumentId, Nanos, OrderType, Price, Qty};

use crate::order::{Broken, CancelReason, CrossFill, Execution, Firm, Listener, Order, Owner, Party};

use super::fix::FixGateway;
use super::ouch::OuchGateway;
use super::quotes::is_quote;
use super::{Asked, Books, ClientOrder, Liquidity, OrderNotice, Outcome, Said, Why, deliver};

/// Keeps the ledger while the engine works, and notes what ports are to be told.
pub(super) struct Hearing<'a> {
    pub(super) books: &'a mut Books,
    pub(super) said: Vec<Said>,
    pub(super) now: Nanos,
    pub(super) asked: Asked,
    /// A client took liquidity here.
    pub(super) disturbed: Option<InstrumentId>,
    /// Why the order of the next event leaves.
    pub(super) reason: Option<CancelReason>,
}

impl Hearing<'_> {
    /// Changes a client's order and notes it. Not about one: nothing.
    fn tell(&mut self, owner: Owner, told: OrderNotice, change: impl FnOnce(&mut ClientOrder)) {
        let Some(row) = (owner.0 as usize).checked_sub(1) else {
            return;
        };
        let Some(order) = self.books.ledger.get_mut(row) else {
            return;
        };
        change(order);
        let order = *order;
        let mut saying = self.books.saying(&order, told, self.now);
        if let Asked::Order {
            row: about,
            request,
            orig,
            ..
        } = self.asked
            && about == row
            && matches!(
                told,
                OrderNotice::Replaced | OrderNotice::Cancelled { .. } | OrderNotice::Reduced { .. }
            )
        {
            saying.request = Some((request, orig));
        }
        self.said.push(Said::Order(saying));
    }

    fn fill(&mut self, order: &Order, qty: Qty, price: Price, match_number: u64, liquidity: Liquidity) {
        let told = OrderNotice::Filled {
            qty,
            price,
            match_number,
            liquidity,
        };
        let before = self.said.len();
        if is_quote(order.owner) {
            self.quote_filled(order, told, qty, price);
        } else {
            self.tell(order.owner, told, |order| {
                order.filled = Qty(order.filled.0 + qty.0);
                order.cost += price.notional(u64::from(qty.0));
                if order.executed() >= order.qty {
                    order.outcome = Outcome::Filled;
                }
            });
        }
        // Auctions are not broken.
        if liquidity != Liquidity::Auction && self.said.len() > before {
            self.books.keep_fill(match_number, order.id);
        }
    }

    /// A trade of a client was broken: what it had is taken off its order, which stays what it is.
    fn void(&mut self, party: &Party, broken: &Broken) {
        let &Broken {
            match_number,
            qty,
            price,
            reason,
            ..
        } = broken;
        let Some(exec_id) = self.books.find_fill(match_number, party.id) else {
            return;
        };
        let told = OrderNotice::Broken {
            qty,
            price,
            match_number,
            reason,
            exec_id,
        };
        if is_quote(party.owner) {
            return self.quote_broken(party, told, qty, price);
        }
        self.tell(party.owner, told, |order| {
            order.filled = Qty(order.filled.0.saturating_sub(qty.0));
            order.broken = Qty(order.broken.0.saturating_add(qty.0));
            order.cost -= price.notional(u64::from(qty.0));
            if order.outcome == Outcome::Filled {
                order.outcome = Outcome::Cancelled;
            }
        });
    }

    /// What is left of an order is gone.
    fn gone(&mut self, order: &Order, otherwise: Why) {
        if is_quote(order.owner) {
            return self.quote_lost(order, None);
        }
        let why = match (self.reason.take(), self.asked) {
            (Some(reason), _) => Why::Engine(reason),
            (None, Asked::Sweep) => Why::Swept,
            (None, Asked::Order { row, .. }) if order.owner == Owner(row as u32 + 1) => Why::Request,
            (None, _) => otherwise,
        };
        let row = (order.owner.0 as usize).checked_sub(1);
        let left = row
            .and_then(|row| self.books.ledger.get(row))
            .map_or(Qty::ZERO, ClientOrder::leaves);
        let told = OrderNotice::Cancelled { qty: left, why };
        self.tell(order.owner, told, |mine| mine.outcome = Outcome::Cancelled);
    }

    /// An order lost quantity and stays. What it lost in all is what the ledger has more: of an iceberg's
    /// slice and reserve only one is told.
    fn lost(&mut self, order: &Order, by: Qty) {
        if is_quote(order.owner) {
            return self.quote_lost(order, Some(by));
        }
        let row = (order.owner.0 as usize).checked_sub(1);
        let before = row.and_then(|row| self.books.ledger.get(row));
        let by = before.map_or(by, |mine| {
            Qty(u64::from(mine.leaves().0).saturating_sub(order.leaves()) as u32)
        });
        let is_replace = matches!(self.asked, Asked::Order { row, is_replace: true, .. }
            if order.owner == Owner(row as u32 + 1));
        match self.reason.take() {
            Some(reason) => {
                let why = Why::Engine(reason);
                self.tell(order.owner, OrderNotice::Reduced { by, why }, |mine| {
                    mine.qty = Qty(mine.qty.0.saturating_sub(by.0));
                });
            }
            None if is_replace => self.tell(order.owner, OrderNotice::Replaced, |_| {}),
            None => {
                let why = Why::Request;
                self.tell(order.owner, OrderNotice::Reduced { by, why }, |mine| {
                    mine.qty = Qty(mine.qty.0.saturating_sub(by.0));
                });
            }
        }
    }

    /// Where the order is found from now on.
    fn renumber(&mut self, new: &Order) {
        let row = (new.owner.0 as usize).checked_sub(1);
        if let Some(order) = row.and_then(|row| self.books.ledger.get_mut(row)) {
            order.order_id = new.id;
        }
    }
}

impl Listener for Hearing<'_> {
    fn accepted(&mut self, order: &Order) {
        if is_quote(order.owner) {
            return self.quoted(order);
        }
        self.tell(order.owner, OrderNotice::Accepted, |mine| {
            mine.venue_id = order.id;
            mine.order_id = order.id;
            if mine.order_type == OrderType::Limit {
                // A post-only order may have been given another one.
                mine.price = order.price;
            }
        });
    }

    fn rested(&mut self, _: &Order) {}

    fn executed(&mut self, execution: &Execution) {
        let Execution {
            maker,
            taker,
            qty,
            price,
            match_number,
        } = *execution;
        if taker.owner != Owner::HOUSE {
            self.disturbed = Some(taker.instrument);
        }
        self.fill(&maker, qty, price, match_number, Liquidity::Added);
        self.fill(&taker, qty, price, match_number, Liquidity::Removed);
    }

    fn cross_filled(&mut self, fill: &CrossFill) {
        let liquidity = Liquidity::Auction;
        self.fill(&fill.order, fill.qty, fill.price, fill.match_number, liquidity);
    }

    fn broken(&mut self, broken: &Broken) {
        self.void(&broken.maker, broken);
        self.void(&broken.taker, broken);
    }

    fn refreshed(&mut self, _: &Order, new: &Order) {
        self.renumber(new);
        self.tell(new.owner, OrderNotice::Refreshed { shown: new.qty }, |_| {});
    }

    fn triggered(&mut self, _: &Order, new: &Order) {
        self.renumber(new);
        self.tell(new.owner, OrderNotice::Triggered, |_| {});
    }

    fn cancelled(&mut self, _: &Order, reason: CancelReason) {
        self.reason = Some(reason);
    }

    fn protected(&mut self, firm: Firm, group: u32) {
        self.tripped(firm, group);
    }

    fn decremented(&mut self, order: &Order, by: Qty) {
        self.lost(order, by);
    }

    fn reserve_reduced(&mut self, order: &Order, by: Qty) {
        self.lost(order, by);
    }

    fn reduced(&mut self, order: &Order, by: Qty) {
        self.lost(order, by);
    }

    fn deleted(&mut self, order: &Order) {
        self.gone(order, Why::Request);
    }

    fn expired(&mut self, order: &Order) {
        self.gone(order, Why::TimeInForce);
    }

    fn replaced(&mut self, _: &Order, new: &Order, _: bool) {
        self.renumber(new);
        self.tell(new.owner, OrderNotice::Replaced, |_| {});
    }

    fn reparked(&mut self, old: &Order, new: &Order) {
        if old.id == new.id {
            // It kept its place: it has become smaller.
            return self.lost(new, Qty(old.qty.0.saturating_sub(new.qty.0)));
        }
        self.renumber(new);
        self.tell(new.owner, OrderNotice::Replaced, |_| {});
    }
}

/// Hears the market's own flow.
pub(crate) struct Reports<'a> {
    pub(super) hearing: Hearing<'a>,
    pub(super) fix: &'a mut FixGateway,
    pub(super) ouch: &'a mut OuchGateway,
}

impl Reports<'_> {
    /// Who listens.
    pub(crate) fn listener(&mut self) -> &mut impl Listener {
        &mut self.hearing
    }

    /// Tells the ports what was heard.
    pub(crate) fn deliver(mut self) {
        deliver(&mut self.hearing.said, self.fix, self.ouch);
    }
}
