//! What a strategy wants done, and why.

use crate::{InstrumentId, Nanos, OrderId, Price, Qty, SeqNo, Side, Venue};

/// The market data message that caused an order: carried on the wire with it, so that tick-to-trade can be
/// matched per order, inside and outside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Cause {
    /// Where the message came from.
    pub venue: Venue,
    /// Its sequence number.
    pub seq: SeqNo,
    /// When its packet was received.
    pub recv_ts: Nanos,
}

/// Our own number of an order: counts up from 1 within a trading session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct ClientOrderId(pub u64);

/// How long an order lives. FIX TimeInForce (59).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum TimeInForce {
    /// Until the end of the session (59=0).
    #[default]
    Day = 0,
    /// Until it is cancelled, over sessions (59=1).
    GoodTillCancel = 1,
    /// In the opening auction or not at all (59=2).
    AtTheOpening = 2,
    /// What cannot trade at once is cancelled (59=3).
    ImmediateOrCancel = 3,
    /// All at once or nothing (59=4).
    FillOrKill = 4,
    /// In the closing auction or not at all (59=7).
    AtTheClose = 7,
}

impl TimeInForce {
    /// Whether an order may stay in the book.
    #[inline]
    pub const fn rests(self) -> bool {
        !matches!(self, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill)
    }

    /// Of the value of FIX TimeInForce (59); none of those that are not here (good till date, crossing, at
    /// the crossing).
    #[inline]
    pub const fn from_char(value: u8) -> Option<TimeInForce> {
        Some(match value {
            b'0' => TimeInForce::Day,
            b'1' => TimeInForce::GoodTillCancel,
            b'2' => TimeInForce::AtTheOpening,
            b'3' => TimeInForce::ImmediateOrCancel,
            b'4' => TimeInForce::FillOrKill,
            b'7' => TimeInForce::AtTheClose,
            _ => return None,
        })
    }
}

/// FIX OrdType (40).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum OrderType {
    /// At any price (40=1).
    Market = 1,
    /// At the price or better (40=2).
    #[default]
    Limit = 2,
}

/// A request to the market, before risk checks and encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderIntent {
    /// Enter an order.
    New {
        /// Our number for it.
        id: ClientOrderId,
        /// What to trade.
        instrument: InstrumentId,
        /// Buy is [`Side::Bid`].
        side: Side,
        /// At which price or better, or at any.
        order_type: OrderType,
        /// Limit price; of a market order the one that it was checked by.
        price: Price,
        /// Of a stop order the price at which a trade triggers it: until then it is in no book. FIX StopPx
        /// (99), OrdType (40) 3 and 4.
        stop: Option<Price>,
        /// How much.
        qty: Qty,
        /// How long.
        time_in_force: TimeInForce,
        /// What triggered it.
        cause: Cause,
    },
    /// Change price and quantity of an order; of a stop order that waits, its trigger too.
    Replace {
        /// Our number for the order as it is to be.
        id: ClientOrderId,
        /// Our number of the order as it is.
        target: ClientOrderId,
        /// The venue's number of it, if known yet.
        venue_id: Option<OrderId>,
        /// What it trades.
        instrument: InstrumentId,
        /// Its side: it stays.
        side: Side,
        /// At which price or better, or at any: it stays.
        order_type: OrderType,
        /// Limit price; of a market order the one that it was checked by.
        price: Price,
        /// The trigger of a stop order.
        stop: Option<Price>,
        /// How much altogether, with what has traded.
        qty: Qty,
        /// How long: it stays.
        time_in_force: TimeInForce,
        /// What triggered it.
        cause: Cause,
    },
    /// Cancel an order.
    Cancel {
        /// Our number for the request.
        id: ClientOrderId,
        /// Our number of the order to cancel.
        target: ClientOrderId,
        /// The venue's number of it, if known yet.
        venue_id: Option<OrderId>,
        /// What it trades.
        instrument: InstrumentId,
        /// Its side.
        side: Side,
        /// How much of it was ordered.
        qty: Qty,
        /// What triggered it.
        cause: Cause,
    },
}

/// An order as a request wants it to be, entered or in another's place: what everybody reads who takes
/// requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WantedOrder {
    /// Our number for it.
    pub id: ClientOrderId,
    /// Our number of the order whose place it takes; `None` of a new one.
    pub replaces: Option<ClientOrderId>,
    /// What to trade.
    pub instrument: InstrumentId,
    /// Buy is [`Side::Bid`].
    pub side: Side,
    /// At which price or better, or at any.
    pub order_type: OrderType,
    /// Limit price; of a market order the one that it was checked by.
    pub price: Price,
    /// The trigger of a stop order.
    pub stop: Option<Price>,
    /// How much; of one that takes another's place with what that one has traded.
    pub qty: Qty,
    /// How long.
    pub time_in_force: TimeInForce,
    /// What triggered the request.
    pub cause: Cause,
}

impl WantedOrder {
    /// The worst price that it may trade at; `None`: any.
    #[inline]
    pub const fn limit(&self) -> Option<Price> {
        match self.order_type {
            OrderType::Limit => Some(self.price),
            OrderType::Market => None,
        }
    }
}

impl OrderIntent {
    /// The order that it wants; `None` of a cancellation.
    #[inline]
    pub const fn order(&self) -> Option<WantedOrder> {
        let replaces = match *self {
            OrderIntent::Replace { target, .. } => Some(target),
            OrderIntent::New { .. } | OrderIntent::Cancel { .. } => None,
        };
        match *self {
            OrderIntent::New {
                id,
                instrument,
                side,
                order_type,
                price,
                stop,
                qty,
                time_in_force,
                cause,
            }
            | OrderIntent::Replace {
                id,
                instrument,
                side,
                order_type,
                price,
                stop,
                qty,
                time_in_force,
                cause,
                ..
            } => Some(WantedOrder {
                id,
                replaces,
                instrument,
                side,
                order_type,
                price,
                stop,
                qty,
                time_in_force,
                cause,
            }),
            OrderIntent::Cancel { .. } => None,
        }
    }

    /// What it trades.
    #[inline]
    pub const fn instrument(&self) -> InstrumentId {
        match self {
            OrderIntent::New { instrument, .. }
            | OrderIntent::Replace { instrument, .. }
            | OrderIntent::Cancel { instrument, .. } => *instrument,
        }
    }

    /// What triggered it.
    #[inline]
    pub const fn cause(&self) -> Cause {
        match self {
            OrderIntent::New { cause, .. }
            | OrderIntent::Replace { cause, .. }
            | OrderIntent::Cancel { cause, .. } => *cause,
        }
    }

    /// The same, of which nobody is told what triggered it.
    pub fn without_cause(&self) -> OrderIntent {
        let mut request = *self;
        match &mut request {
            OrderIntent::New { cause, .. }
            | OrderIntent::Replace { cause, .. }
            | OrderIntent::Cancel { cause, .. } => *cause = Cause::default(),
        }
        request
    }
}

/// One instrument's two-sided quote within a mass quote: replaces what the venue has of it. FIX MassQuote
/// (35=i), group NoQuoteEntries (295).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MassQuoteEntry {
    /// Place of the instrument in the quoter's list, below 65 536: QuoteEntryID (299) says it.
    pub quote: u16,
    /// BidPx (132) in ticks of the product; meaningless where the quantity is 0.
    pub bid_ticks: u16,
    /// OfferPx (133) in ticks of the product; meaningless where the quantity is 0.
    pub ask_ticks: u16,
    /// BidSize (134); 0 takes the bid away.
    pub bid_qty: Qty,
    /// OfferSize (135); 0 takes the offer away.
    pub ask_qty: Qty,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_wants_is_the_order_that_it_names_and_a_cancellation_wants_none() {
        let cause = Cause {
            venue: Venue::Nasdaq,
            seq: SeqNo(7),
            recv_ts: Nanos(8),
        };
        let order = WantedOrder {
            id: ClientOrderId(2),
            replaces: None,
            instrument: InstrumentId(3),
            side: Side::Ask,
            order_type: OrderType::Limit,
            price: Price::from_4dp(10_000),
            stop: Some(Price::from_4dp(9_000)),
            qty: Qty(5),
            time_in_force: TimeInForce::FillOrKill,
            cause,
        };
        let new = OrderIntent::New {
            id: order.id,
            instrument: order.instrument,
            side: order.side,
            order_type: order.order_type,
            price: order.price,
            stop: order.stop,
            qty: order.qty,
            time_in_force: order.time_in_force,
            cause,
        };
        assert_eq!(new.order(), Some(order));
        let target = ClientOrderId(1);
        let replacement = OrderIntent::Replace {
            id: order.id,
            target,
            venue_id: Some(OrderId(9)),
            instrument: order.instrument,
            side: order.side,
            order_type: OrderType::Market,
            price: order.price,
            stop: order.stop,
            qty: order.qty,
            time_in_force: order.time_in_force,
            cause,
        };
        let wanted = WantedOrder {
            replaces: Some(target),
            order_type: OrderType::Market,
            ..order
        };
        assert_eq!(replacement.order(), Some(wanted));
        assert_eq!((order.limit(), wanted.limit()), (Some(order.price), None));
        let cancel = OrderIntent::Cancel {
            id: order.id,
            target,
            venue_id: None,
            instrument: order.instrument,
            side: order.side,
            qty: order.qty,
            cause,
        };
        assert_eq!(cancel.order(), None);
    }
}
