//! Orders that reached the venue, one by one, for who wants to look at each of them.

use std::collections::HashMap;

use tickwire_market::{
    ClientOrderId, InstrumentId, Nanos, OrderIntent, OrderType, Price, Qty, Side, TimeInForce,
};
use tickwire_trading::{OrderReport, OrderState, ReportKind};

/// An order that reached the venue. Quotes of mass quotes are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeptOrder {
    /// Our number.
    pub id: ClientOrderId,
    /// The order whose place it was to take.
    pub replaces: Option<ClientOrderId>,
    /// What it trades.
    pub instrument: InstrumentId,
    /// Buy is [`Side::Bid`].
    pub side: Side,
    /// At a limit or at any price.
    pub order_type: OrderType,
    /// Limit price; of a market order the one that it was checked by.
    pub price: Price,
    /// Of a stop order the price that triggers it.
    pub stop: Option<Price>,
    /// How much was ordered.
    pub qty: Qty,
    /// How long it was to live.
    pub time_in_force: TimeInForce,
    /// When the strategy's request reached the venue.
    pub arrived: Nanos,
    /// When the strategy heard that it was over; none of an order that was open at the end.
    pub ended: Option<Nanos>,
    /// How far it came, as the strategy heard it.
    pub state: OrderState,
    /// How much traded.
    pub filled: Qty,
}

/// The orders of a backtest, in the order in which they reached the venue.
#[derive(Default, Debug)]
pub(crate) struct KeptOrders {
    rows: Vec<KeptOrder>,
    by_id: HashMap<ClientOrderId, usize>,
}

impl KeptOrders {
    pub(crate) fn rows(&self) -> &[KeptOrder] {
        &self.rows
    }

    /// A request reaches the venue.
    pub(crate) fn arrive(&mut self, at: Nanos, request: &OrderIntent) {
        let Some(order) = request.order() else {
            return;
        };
        self.by_id.insert(order.id, self.rows.len());
        self.rows.push(KeptOrder {
            id: order.id,
            replaces: order.replaces,
            instrument: order.instrument,
            side: order.side,
            order_type: order.order_type,
            price: order.price,
            stop: order.stop,
            qty: order.qty,
            time_in_force: order.time_in_force,
            arrived: at,
            ended: None,
            state: OrderState::PendingNew,
            filled: Qty(0),
        });
    }

    /// The strategy hears of an order.
    pub(crate) fn hear(&mut self, at: Nanos, report: &OrderReport) {
        match report.kind {
            ReportKind::Accepted => self.turn(report.id, OrderState::New, at),
            ReportKind::Filled { cumulative, .. } => {
                let Some(row) = self.row(report.id) else { return };
                row.filled = cumulative;
                let state = match row.qty.0 <= cumulative.0 {
                    true => OrderState::Filled,
                    false => OrderState::PartiallyFilled,
                };
                self.turn(report.id, state, at);
            }
            ReportKind::Broken { cumulative, .. } => {
                if let Some(row) = self.row(report.id) {
                    row.filled = cumulative;
                }
            }
            ReportKind::Cancelled => self.turn(report.id, OrderState::Cancelled, at),
            ReportKind::Rejected => self.turn(report.id, OrderState::Rejected, at),
            ReportKind::Replaced { by, .. } => {
                self.turn(report.id, OrderState::Replaced, at);
                let filled = self.row(report.id).map_or(Qty(0), |row| row.filled);
                if let Some(row) = self.row(by) {
                    row.filled = filled;
                }
                let state = match filled.0 {
                    0 => OrderState::New,
                    _ => OrderState::PartiallyFilled,
                };
                self.turn(by, state, at);
            }
            ReportKind::ReplaceRejected { by } => self.turn(by, OrderState::Rejected, at),
            _ => {}
        }
    }

    fn row(&mut self, id: ClientOrderId) -> Option<&mut KeptOrder> {
        self.by_id.get(&id).map(|at| &mut self.rows[*at])
    }

    fn turn(&mut self, id: ClientOrderId, state: OrderState, at: Nanos) {
        if let Some(row) = self.row(id) {
            row.state = state;
            let is_open = matches!(
                state,
                OrderState::PendingNew | OrderState::New | OrderState::PartiallyFilled
            );
            row.ended = (!is_open).then_some(at);
        }
    }
}
