//! What a strategy asks for, as the message that says it.

use tickwire_market::{Nanos, OrderId, OrderIntent, OrderType, Symbol};

use crate::encode::Encoder;
use crate::message::{NewOrderSingle, OrderCancelReplaceRequest, OrderCancelRequest};
use crate::text::Id;
use crate::time::Stamp;

/// The message of a request: an order, another in its place, or its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderRequest {
    /// Order Single (35=D).
    New(NewOrderSingle),
    /// Order Cancel/Replace Request (35=G).
    Replace(OrderCancelReplaceRequest),
    /// Order Cancel Request (35=F).
    Cancel(OrderCancelRequest),
}

impl OrderRequest {
    /// Of a strategy's request: what its instrument is called, and when it is made.
    pub fn of(request: &OrderIntent, symbol: Symbol, now: Nanos) -> OrderRequest {
        let limit = |order_type, price| (order_type == OrderType::Limit).then_some(price);
        match *request {
            OrderIntent::New {
                id,
                instrument: _,
                side,
                order_type,
                price,
                stop,
                qty,
                time_in_force,
                cause,
            } => OrderRequest::New(NewOrderSingle {
                cl_ord_id: id.into(),
                symbol,
                side,
                transact_time: now,
                qty,
                order_type,
                price: limit(order_type, price),
                stop,
                time_in_force,
                cause: Some(cause),
            }),
            OrderIntent::Replace {
                id,
                target,
                venue_id,
                instrument: _,
                side,
                order_type,
                price,
                stop,
                qty,
                time_in_force,
                cause,
            } => OrderRequest::Replace(OrderCancelReplaceRequest {
                cl_ord_id: id.into(),
                orig_cl_ord_id: target.into(),
                order_id: number(venue_id),
                symbol,
                side,
                transact_time: now,
                qty,
                order_type,
                price: limit(order_type, price),
                stop,
                time_in_force,
                cause: Some(cause),
            }),
            OrderIntent::Cancel {
                id,
                target,
                venue_id,
                instrument: _,
                side,
                qty,
                cause,
            } => OrderRequest::Cancel(OrderCancelRequest {
                cl_ord_id: id.into(),
                orig_cl_ord_id: target.into(),
                order_id: number(venue_id),
                symbol,
                side,
                transact_time: now,
                qty,
                cause: Some(cause),
            }),
        }
    }

    /// MsgType (35).
    pub const fn msg_type(&self) -> &'static [u8] {
        match self {
            OrderRequest::New(_) => NewOrderSingle::MSG_TYPE,
            OrderRequest::Replace(_) => OrderCancelReplaceRequest::MSG_TYPE,
            OrderRequest::Cancel(_) => OrderCancelRequest::MSG_TYPE,
        }
    }

    /// Writes the fields after the header: what [`crate::Session::send`] asks for.
    pub fn encode(&self, e: &mut Encoder<'_>, stamp: &mut Stamp) {
        match self {
            OrderRequest::New(message) => message.encode(e, stamp),
            OrderRequest::Replace(message) => message.encode(e, stamp),
            OrderRequest::Cancel(message) => message.encode(e, stamp),
        }
    }
}

fn number(id: Option<OrderId>) -> Id {
    id.map_or(Id::EMPTY, |id| Id::from_number(id.0))
}
