//! What a port is told of its client's orders, and the ledger's entry of one.

use tickwire_fix::Id;
use tickwire_market::{
    Cause, InstrumentId, Nanos, OrderId, OrderType, Price, Qty, Side, Symbol, TimeInForce,
};
use tickwire_persist::persist;

use crate::order::{BreakReason, CancelReason, Firm, Reject};

use super::quotes::QuoteOut;

/// What became of a client's order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Refused; it never was in the market.
    Rejected,
    /// In the book, or waiting for its trigger or auction.
    Open,
    /// All filled.
    Filled,
    /// Cancelled, by request, by its time in force, with its connection or at the end of the day, maybe after
    /// fills; or all filled, and a fill was broken then.
    Cancelled,
}

/// By which port an order came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Route {
    /// A FIX session, in the order of [`OrderEntryConfig::sessions`](super::OrderEntryConfig::sessions), then
    /// in the order of coming.
    Fix(usize),
    /// A user of OUCH, in the order of [`OrderEntryConfig::ouch`](super::OrderEntryConfig::ouch).
    Ouch(usize),
}

/// Where an order comes from, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The market data message that caused it, as the order says.
    pub cause: Option<Cause>,
    /// When its bytes were received.
    pub received: Nanos,
}

/// One row of the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientOrder {
    /// The port it came by.
    pub route: Route,
    /// Whose risk it is.
    pub firm: Firm,
    /// Its latest ClOrdID (replacements change it); of OUCH its UserRefNum.
    pub cl_ord_id: Id,
    /// The engine's first number of it: OrderID (37). 0 when rejected.
    pub venue_id: OrderId,
    /// The engine's present number of it, the one that market data shows.
    pub order_id: OrderId,
    /// The instrument; [`InstrumentId::WHOLE_FEED`] when its symbol was unknown.
    pub instrument: InstrumentId,
    /// As sent.
    pub symbol: Symbol,
    /// Its side.
    pub side: Side,
    /// Limit or market; of a stop order what it becomes.
    pub order_type: OrderType,
    /// Its limit, zero for market orders.
    pub price: Price,
    /// The price of its trigger.
    pub stop: Option<Price>,
    /// How much of it is shown; 0 is all.
    pub display: Qty,
    /// Its total quantity.
    pub qty: Qty,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// How much of it is filled, without what was broken.
    pub filled: Qty,
    /// How much of what was filled was broken: it does not return to the order.
    pub broken: Qty,
    /// Fills times prices, in raw price units.
    pub cost: i128,
    /// What became of it.
    pub outcome: Outcome,
    /// Where it came from.
    pub origin: Origin,
    /// What its port keeps about it: OrdType (40) as sent, or the row of OUCH's own terms.
    pub(crate) own: u32,
}

impl ClientOrder {
    pub(crate) fn leaves(&self) -> Qty {
        match self.outcome {
            Outcome::Open => Qty(self.qty.0.saturating_sub(self.executed().0)),
            _ => Qty::ZERO,
        }
    }

    /// What cannot be traded again: filled, or filled and broken.
    pub(crate) fn executed(&self) -> Qty {
        Qty(self.filled.0.saturating_add(self.broken.0))
    }

    pub(crate) fn average(&self) -> Price {
        match self.filled.0 {
            0 => Price::ZERO,
            filled => Price::from_raw((self.cost / i128::from(filled)) as i64),
        }
    }
}

/// How a fill came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Liquidity {
    Added,
    Removed,
    Auction,
}

/// Why an order left or lost quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// By a request about it.
    Request,
    /// What an order that does not rest could not trade.
    TimeInForce,
    /// Its connection is gone, or its client asked for all of its orders.
    Swept,
    /// See [`CancelReason`].
    Engine(CancelReason),
}

/// Why an order was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    Engine(Reject),
    UnknownSymbol,
    Closed,
    Duplicate,
    NoRoom,
    Disabled,
}

/// What a port is told about an order of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OrderNotice {
    Accepted,
    Refused(Refusal),
    Filled {
        qty: Qty,
        price: Price,
        match_number: u64,
        liquidity: Liquidity,
    },
    /// A fill of it was broken.
    Broken {
        qty: Qty,
        price: Price,
        match_number: u64,
        reason: BreakReason,
        /// What the fill was told with.
        exec_id: u64,
    },
    /// All that was left of it, so much.
    Cancelled {
        qty: Qty,
        why: Why,
    },
    /// It has lost `by`, and what it was asked to be is in the ledger.
    Reduced {
        by: Qty,
        why: Why,
    },
    /// It is as the ledger says.
    Replaced,
    Triggered,
    /// An iceberg shows its next slice of so much.
    Refreshed {
        shown: Qty,
    },
    /// Its cancel waits for the end of the auction.
    CancelPending,
    /// That cancel finds it gone.
    CancelTooLate,
    /// Nothing happened: its state was asked for.
    Status {
        /// It is a stop order that has been triggered.
        is_triggered: bool,
    },
}

/// What is said to a port: the order as it is now, and what happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Saying {
    pub(crate) order: ClientOrder,
    pub(crate) told: OrderNotice,
    /// The identifier of the request that this answers, and the one the order had before.
    pub(crate) request: Option<(Id, Id)>,
    /// Counts up over all ports.
    pub(crate) exec_id: u64,
    pub(crate) at: Nanos,
}

/// What is delivered to a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// About an order, or a quote's fill.
    Order(Saying),
    /// About quotes, to a FIX session.
    Quote {
        session: usize,
        at: Nanos,
        out: QuoteOut,
    },
}

persist!(value enum Outcome { 0 => Rejected, 1 => Open, 2 => Filled, 3 => Cancelled });

persist!(value enum Route { 0 => Fix(at), 1 => Ouch(at) });

persist!(value struct Origin { cause, received });
persist!(value struct ClientOrder {
    route, firm, cl_ord_id, venue_id, order_id, instrument, symbol, side, order_type, price, stop, display, qty, time_in_force, filled,
    broken, cost, outcome, origin, own,
});

persist!(value enum Liquidity { 0 => Added, 1 => Removed, 2 => Auction });

persist!(value enum Why { 0 => Request, 1 => TimeInForce, 2 => Swept, 3 => Engine(reason) });

persist!(value enum Refusal {
    0 => Engine(reject), 1 => UnknownSymbol, 2 => Closed, 3 => Duplicate, 4 => NoRoom, 5 => Disabled,
});

persist!(value enum OrderNotice {
    0 => Accepted,
    1 => Refused(refusal),
    2 => Filled { qty, price, match_number, liquidity },
    3 => Broken { qty, price, match_number, reason, exec_id },
    4 => Cancelled { qty, why },
    5 => Reduced { by, why },
    6 => Replaced,
    7 => Triggered,
    8 => Refreshed { shown },
    9 => CancelPending,
    10 => CancelTooLate,
    11 => Status { is_triggered },
});

persist!(value struct Saying { order, told, request, exec_id, at });
