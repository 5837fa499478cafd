//! A small application of the trading subset: it reads the messages that have a type here, refuses others and
//! rejects what is wrong.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test program has this module and uses its part of it"
)]

use tickwire_fix::{
    Again, BusinessMessageReject, ExecutionReport, Fault, Message, NewOrderSingle, OrderCancelReject,
    OrderCancelReplaceRequest, OrderCancelRequest, SendError, Session, Store,
};
use tickwire_market::{Nanos, SeqNo};

/// A message of the subset.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Typed {
    Order(NewOrderSingle),
    Cancel(OrderCancelRequest),
    Replace(OrderCancelReplaceRequest),
    Report(ExecutionReport),
    CancelReject(OrderCancelReject),
    BusinessReject(BusinessMessageReject),
}

/// Reads the message; `Ok(None)` when its type is outside the subset.
pub fn read(m: &Message<'_>) -> Result<Option<Typed>, Fault> {
    Ok(Some(match m.msg_type() {
        NewOrderSingle::MSG_TYPE => Typed::Order(NewOrderSingle::decode(m)?),
        OrderCancelRequest::MSG_TYPE => Typed::Cancel(OrderCancelRequest::decode(m)?),
        OrderCancelReplaceRequest::MSG_TYPE => Typed::Replace(OrderCancelReplaceRequest::decode(m)?),
        ExecutionReport::MSG_TYPE => Typed::Report(ExecutionReport::decode(m)?),
        OrderCancelReject::MSG_TYPE => Typed::CancelReject(OrderCancelReject::decode(m)?),
        BusinessMessageReject::MSG_TYPE => Typed::BusinessReject(BusinessMessageReject::decode(m)?),
        _ => return Ok(None),
    }))
}

/// Takes the message of the last [`tickwire_fix::Event::Message`]: what is not of the subset is refused, what
/// is wrong is rejected.
pub fn take<S: Store>(session: &mut Session<S>, now: Nanos) -> Option<Typed> {
    let typed = read(&session.message().expect("the event is about it"));
    match typed {
        Ok(Some(typed)) => return Some(typed),
        Ok(None) => session.refuse(now),
        Err(fault) => session.reject(now, fault),
    }
    None
}

/// Sends it, kept for resends.
pub fn send<S: Store>(session: &mut Session<S>, now: Nanos, typed: &Typed) -> Result<SeqNo, SendError> {
    let again = Again::Resend;
    match typed {
        Typed::Order(m) => session.send(now, NewOrderSingle::MSG_TYPE, again, |e, stamp| {
            m.encode(e, stamp)
        }),
        Typed::Cancel(m) => session.send(now, OrderCancelRequest::MSG_TYPE, again, |e, stamp| {
            m.encode(e, stamp)
        }),
        Typed::Replace(m) => session.send(now, OrderCancelReplaceRequest::MSG_TYPE, again, |e, stamp| {
            m.encode(e, stamp)
        }),
        Typed::Report(m) => session.send(now, ExecutionReport::MSG_TYPE, again, |e, stamp| {
            m.encode(e, stamp)
        }),
        Typed::CancelReject(m) => session.send(now, OrderCancelReject::MSG_TYPE, again, |e, _| m.encode(e)),
        Typed::BusinessReject(m) => {
            session.send(now, BusinessMessageReject::MSG_TYPE, again, |e, _| m.encode(e))
        }
    }
}
