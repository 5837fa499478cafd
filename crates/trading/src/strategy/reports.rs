//! What reports of the venue and statuses of the market change: orders, positions, limits, where orders may
//! be entered.

use tickwire_market::{ClientOrderId, InstrumentId, Nanos, Price, Side};

use super::context::State;
use crate::{Change, Order, OrderReport, OrderState, ReportError, ReportKind};

impl State {
    /// Which of these instruments orders may be entered in, as far as statuses say.
    pub(super) fn review(&mut self, bits: u32, instruments: core::ops::Range<usize>) {
        for index in instruments {
            let trades = self.feeds_trade.get(index >> bits).copied().unwrap_or(true);
            self.may_enter[index] = self.watched[index] && self.trades[index] && trades && !self.is_stopping;
        }
    }

    /// An open order that does not rest.
    pub(super) fn first_passing(&self) -> Option<ClientOrderId> {
        let mut open = self.orders.iter_open();
        let order = open.find(|order| !order.time_in_force.rests() && !order.is_waiting())?;
        Some(order.id)
    }

    /// Takes back an order that could not be sent.
    pub(super) fn take_back(&mut self, id: ClientOrderId) -> bool {
        let is_pending = |order: &Order| order.state == OrderState::PendingNew;
        let Some(order) = self.orders.get(id).copied().filter(is_pending) else {
            return false;
        };
        let report = match order.replaces {
            Some(old) => OrderReport {
                id: old,
                venue_id: None,
                kind: ReportKind::ReplaceRejected { by: id },
            },
            None => OrderReport {
                id,
                venue_id: None,
                kind: ReportKind::Rejected,
            },
        };
        self.apply(Nanos::ZERO, &report).is_ok()
    }

    /// An order has ended or moved: what is left decides which of our own prices must not be crossed.
    pub(super) fn count_resting(&mut self, instrument: InstrumentId, side: Side) {
        let (mut count, mut best) = (0, Price::ZERO);
        for order in self.orders.iter_open() {
            let rests = order.time_in_force.rests() && !order.is_waiting();
            if order.instrument == instrument && order.side == side && rests {
                if count == 0 || side.better(order.price, best) {
                    best = order.price;
                }
                count += 1;
            }
        }
        self.risk.resting(instrument, side, (count, best));
    }

    #[inline]
    pub(super) fn apply(&mut self, now: Nanos, report: &OrderReport) -> Result<Change, ReportError> {
        // Looked at where it is: a change is large.
        let applied = self.orders.apply(report);
        let Ok(change) = &applied else {
            return applied;
        };
        let order = &change.order;
        let (instrument, side) = (order.instrument, order.side);
        match report.kind {
            ReportKind::Filled { qty, price, .. } => {
                self.positions.on_fill(instrument, side, qty, price);
                self.risk.fill(now, instrument, (side, qty, price));
            }
            ReportKind::Broken { qty, price, .. } => {
                self.positions.on_broken(instrument, side, qty, price);
                self.risk.unfill(instrument, (side, qty, price));
            }
            _ => {}
        }
        if order.time_in_force.rests()
            && (!order.state.is_open()
                || order.stop.is_some()
                || matches!(
                    report.kind,
                    ReportKind::Replaced { .. } | ReportKind::ReplaceRejected { .. }
                ))
        {
            self.count_resting(instrument, side);
        }
        if !change.released.is_zero() {
            self.positions.on_released(instrument, side, change.released);
        }
        applied
    }
}
