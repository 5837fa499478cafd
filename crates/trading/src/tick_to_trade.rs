//! Decision, checks, order state and position tied together.

use crate::{
    BestOfferTaker, Change, NewOrder, OrderReport, OrderState, Orders, Positions, ReportError, ReportKind,
    Risk, RiskConfig, RiskReject,
};
use tickwire_market::{
    BookUpdate, Cause, ClientOrderId, Counter, Counters, InstrumentId, Nanos, OrderIntent, OrderType, Qty,
    TimeInForce, TradingStatus,
};

/// What to trade, how, and within which limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TradingConfig {
    /// What to watch; [`InstrumentId::WHOLE_FEED`] until [`TickToTrade::watch`] names it.
    pub instrument: InstrumentId,
    /// The quantity of each order. Default 100.
    pub lot: Qty,
    /// How long an order lives. Default immediate or cancel.
    pub time_in_force: TimeInForce,
    /// Instruments are numbered below this. Default 65 536: every ITCH stock locate.
    pub max_instruments: u32,
    /// Places in the order table, rounded up to a power of two: ended orders stay readable until theirs is
    /// needed again. Default 65 536.
    pub max_orders: u32,
    /// The limits.
    pub risk: RiskConfig,
}

impl Default for TradingConfig {
    fn default() -> TradingConfig {
        TradingConfig {
            instrument: InstrumentId::WHOLE_FEED,
            lot: Qty(100),
            time_in_force: TimeInForce::ImmediateOrCancel,
            max_instruments: 1 << 16,
            max_orders: 1 << 16,
            risk: RiskConfig::default(),
        }
    }
}

/// From a changed book to an order, from a report to a position. One thread owns it; nothing allocates after
/// `new`.
#[derive(Clone, Debug)]
pub struct TickToTrade {
    taker: BestOfferTaker,
    risk: Risk,
    orders: Orders,
    positions: Positions,
    counters: Counters,
    time_in_force: TimeInForce,
    /// Whether the venue, and the instrument, are said to trade. A venue that says nothing is taken to trade.
    trades: [bool; 2],
    /// Of the last market data: executions are counted by it.
    now: Nanos,
}

impl TickToTrade {
    /// Everything empty.
    pub fn new(config: &TradingConfig) -> TickToTrade {
        TickToTrade {
            taker: BestOfferTaker::new(config.instrument, config.lot),
            risk: Risk::new(config.risk, config.max_instruments),
            orders: Orders::new(config.max_orders),
            positions: Positions::new(config.max_instruments),
            counters: Counters::default(),
            time_in_force: config.time_in_force,
            trades: [true; 2],
            now: Nanos::ZERO,
        }
    }

    /// Hears a trading status, of the venue as a whole or of an instrument. While either is said not to
    /// trade, no order is wanted: it would be rejected, or reach an exchange that has closed order entry.
    pub fn on_status(&mut self, instrument: InstrumentId, status: TradingStatus) {
        let trades = matches!(status, TradingStatus::Trading | TradingStatus::Unknown);
        if instrument == InstrumentId::WHOLE_FEED {
            self.trades[0] = trades;
        } else if self.watches(instrument) {
            self.trades[1] = trades;
        }
    }

    /// Everything that was heard is void, as when a snapshot or another session begins: a venue that says
    /// nothing is taken to trade.
    pub fn forget_statuses(&mut self) {
        self.trades = [true; 2];
    }

    /// Trades this instrument from now on.
    pub fn watch(&mut self, instrument: InstrumentId) {
        self.taker.watch(instrument);
    }

    /// Whether this is the instrument being traded.
    #[inline]
    pub fn watches(&self, instrument: InstrumentId) -> bool {
        self.taker.watches(instrument)
    }

    /// What a changed book makes us do: [`OrderIntent::New`], counted as sent, so it must be sent, or taken
    /// back with [`TickToTrade::withdraw`]. An order that a check stops is counted under the check's name.
    ///
    /// The price band is judged by the mid price before this update: a book that jumps must not vouch for
    /// itself.
    #[inline]
    pub fn on_update(&mut self, now: Nanos, update: &BookUpdate) -> Option<OrderIntent> {
        if !self.watches(update.instrument) {
            return None;
        }
        self.now = now;
        let wanted = self.taker.on_update(update).filter(|_| self.trades == [true; 2]);
        let intent = wanted.and_then(|order| self.enter(now, &order));
        self.risk.observe(update);
        intent
    }

    /// Applies an execution report. A fill or a broken trade that fits no order, other than a repeated one,
    /// means that we do not know our position: the kill switch goes on. It does so too where a broken trade
    /// fits: the position is known, and is not what was decided on.
    pub fn on_report(&mut self, report: &OrderReport) -> Result<Change, ReportError> {
        let change = self.apply(report).inspect_err(|error| {
            self.counters.bump(Counter::ReportsUnmatched);
            if report.kind.is_trade() && *error != ReportError::Duplicate {
                self.risk.kill();
            }
        })?;
        match report.kind {
            ReportKind::Accepted => self.counters.bump(Counter::OrdersAcked),
            ReportKind::Filled { .. } => self.counters.bump(Counter::Fills),
            ReportKind::Broken { .. } => {
                self.counters.bump(Counter::TradesBroken);
                self.risk.kill();
            }
            ReportKind::Cancelled => self.counters.bump(Counter::OrdersCancelled),
            ReportKind::Rejected => self.counters.bump(Counter::OrdersRejected),
            // It asks for no replacement.
            ReportKind::Triggered
            | ReportKind::CancelRejected
            | ReportKind::Replaced { .. }
            | ReportKind::ReplaceRejected { .. } => {}
        }
        Ok(change)
    }

    /// Takes back an order that could not be sent: it ends as rejected. `false` if it is unknown or was
    /// answered.
    pub fn withdraw(&mut self, id: ClientOrderId) -> bool {
        let is_pending = self
            .orders
            .get(id)
            .is_some_and(|order| order.state == OrderState::PendingNew);
        is_pending
            && self
                .apply(&OrderReport {
                    id,
                    venue_id: None,
                    kind: ReportKind::Rejected,
                })
                .is_ok()
    }

    /// The next request to cancel an open order not asked for yet; call until `None` to cancel them all.
    pub fn cancel_next(&mut self, cause: Cause) -> Option<OrderIntent> {
        let open = self
            .orders
            .iter_open()
            .find(|order| !order.is_cancel_requested)?
            .id;
        let order = self.orders.request_cancel(open)?;
        Some(OrderIntent::Cancel {
            id: self.orders.issue_id(),
            target: order.id,
            venue_id: order.venue_id,
            instrument: order.instrument,
            side: order.side,
            qty: order.qty,
            cause,
        })
    }

    /// Stops every further order. Open ones live on: see [`TickToTrade::cancel_next`].
    pub fn kill(&mut self) {
        self.risk.kill();
    }

    /// Says whether an order entry session is logged on; assumed until told otherwise. When it is not,
    /// requests to cancel that were under way are forgotten: nothing says that the venue has them.
    pub fn set_session(&mut self, is_up: bool) {
        self.risk.set_session(is_up);
        if !is_up {
            self.orders.forget_cancels(|_| true);
        }
    }

    /// The checks.
    pub fn risk(&self) -> &Risk {
        &self.risk
    }

    /// The checks, to lift the kill switch or set a reference.
    pub fn risk_mut(&mut self) -> &mut Risk {
        &mut self.risk
    }

    /// The orders.
    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    /// The positions.
    pub fn positions(&self) -> &Positions {
        &self.positions
    }

    /// What happened how often.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether its orders may stay in the book.
    fn rests(&self) -> bool {
        self.time_in_force.rests()
    }

    fn enter(&mut self, now: Nanos, order: &NewOrder) -> Option<OrderIntent> {
        let position = self.positions.get(order.instrument);
        let checked = self
            .risk
            .check(now, order, (self.orders.open(), self.rests()), &position);
        let entered = checked.and_then(|()| self.orders.insert(order).map_err(|_| RiskReject::OpenOrders));
        match entered {
            Ok(id) => Some(self.sent(id, order)),
            Err(reason) => {
                self.counters.bump(Counter::RiskRejects);
                self.counters.bump(reason.counter());
                None
            }
        }
    }

    fn sent(&mut self, id: ClientOrderId, order: &NewOrder) -> OrderIntent {
        self.positions.on_sent(order.instrument, order.side, order.qty);
        self.counters.bump(Counter::OrdersSent);
        let NewOrder {
            instrument,
            side,
            price,
            qty,
            cause,
        } = *order;
        OrderIntent::New {
            id,
            instrument,
            side,
            order_type: OrderType::Limit,
            price,
            stop: None,
            qty,
            time_in_force: self.time_in_force,
            cause,
        }
    }

    fn apply(&mut self, report: &OrderReport) -> Result<Change, ReportError> {
        let change = self.orders.apply(report)?;
        let (instrument, side) = (change.order.instrument, change.order.side);
        match report.kind {
            ReportKind::Filled { qty, price, .. } => {
                self.positions.on_fill(instrument, side, qty, price);
                self.risk.fill(self.now, instrument, (side, qty, price));
            }
            ReportKind::Broken { qty, price, .. } => {
                self.positions.on_broken(instrument, side, qty, price);
                self.risk.unfill(instrument, (side, qty, price));
            }
            _ => {}
        }
        // An order whose trade is taken back was over before, or goes on.
        if self.rests() && !change.order.state.is_open() && change.broken.is_zero() {
            self.risk.closed(instrument, side);
        }
        self.positions.on_released(instrument, side, change.released);
        Ok(change)
    }
}
