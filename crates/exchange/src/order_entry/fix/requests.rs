//! Requests of FIX clients: fields read into what the venue is asked to do.

use tickwire_fix::{Fault, Id, Message, Version, business_reject_reason, tag};
use tickwire_market::{Cause, OrderType, Price, Qty, Side, Symbol, TimeInForce};

use crate::order::SelfTrade;
use crate::order_entry::quotes;

use super::{Refused, Request, cause, own};

/// NewOrderSingle.
pub(super) struct New {
    pub(super) id: Id,
    pub(super) symbol: Symbol,
    pub(super) side: Side,
    pub(super) qty: Qty,
    pub(super) ord_type: u8,
    pub(super) order_type: OrderType,
    pub(super) price: Option<Price>,
    pub(super) stop: Option<Price>,
    pub(super) time_in_force: TimeInForce,
    pub(super) display: Qty,
    pub(super) post_only: bool,
    pub(super) self_trade: Option<SelfTrade>,
    pub(super) cause: Option<Cause>,
}

/// Reads a client's message.
pub(super) fn read(m: &Message<'_>, version: Version) -> Result<Request, Refused> {
    const UNSUPPORTED: Refused = Refused::Business(
        business_reject_reason::UNSUPPORTED_MESSAGE_TYPE,
        "not for a venue",
    );
    match m.msg_type() {
        b"D" => read_new(m).map(Request::New),
        b"F" => Ok(Request::Cancel {
            id: id_of(m, tag::CL_ORD_ID)?,
            orig: id_of(m, tag::ORIG_CL_ORD_ID)?,
        }),
        b"G" => {
            let ord_type = required(m, tag::ORD_TYPE, |m, f| m.char(f))?;
            Ok(Request::Replace {
                id: id_of(m, tag::CL_ORD_ID)?,
                orig: id_of(m, tag::ORIG_CL_ORD_ID)?,
                qty: required(m, tag::ORDER_QTY, |m, f| m.qty(f))?,
                price: optional(m, tag::PRICE, |m, f| m.price(f))?,
                stop: optional(m, tag::STOP_PX, |m, f| m.price(f))?,
                ord_type,
            })
        }
        b"H" => Ok(Request::Status {
            id: id_of(m, tag::CL_ORD_ID)?,
        }),
        b"q" if version >= Version::Fix43 => Ok(Request::MassCancel {
            id: id_of(m, tag::CL_ORD_ID)?,
            kind: required(m, tag::MASS_CANCEL_REQUEST_TYPE, |m, f| m.char(f))?,
            symbol: optional(m, tag::SYMBOL, symbol)?,
            side: optional(m, tag::SIDE, side)?,
        }),
        b"e" if version >= Version::Fix42 => Ok(Request::SecurityStatus {
            id: id_of(m, own::SECURITY_STATUS_REQ_ID)?,
            symbol: required(m, tag::SYMBOL, symbol)?,
        }),
        b"g" if version >= Version::Fix42 => Ok(Request::SessionStatus {
            id: id_of(m, own::TRAD_SES_REQ_ID)?,
        }),
        b"i" if version >= Version::Fix42 => quotes::read_mass_quote(m).map(Request::MassQuote),
        b"Z" if version >= Version::Fix42 => quotes::read_cancel(m).map(Request::QuoteCancel),
        b"a" if version >= Version::Fix42 => quotes::read_status(m).map(Request::QuoteStatus),
        b"j" => Ok(Request::Ignored),
        _ => Err(UNSUPPORTED),
    }
}

fn read_new(m: &Message<'_>) -> Result<New, Refused> {
    let conditional = |text| Refused::Business(business_reject_reason::CONDITIONAL_FIELD_MISSING, text);
    let ord_type = required(m, tag::ORD_TYPE, |m, f| m.char(f))?;
    let mut time_in_force = optional(m, tag::TIME_IN_FORCE, time_in_force)?.unwrap_or_default();
    let (order_type, is_stop) = match ord_type {
        b'1' => (OrderType::Market, false),
        b'2' => (OrderType::Limit, false),
        b'3' => (OrderType::Market, true),
        b'4' => (OrderType::Limit, true),
        // Market and limit on close, up to 4.2.
        b'5' => {
            time_in_force = TimeInForce::AtTheClose;
            (OrderType::Market, false)
        }
        b'B' => {
            time_in_force = TimeInForce::AtTheClose;
            (OrderType::Limit, false)
        }
        _ => return Err(Fault::value(tag::ORD_TYPE).into()),
    };
    let price = match order_type {
        OrderType::Limit => {
            let price = optional(m, tag::PRICE, |m, f| m.price(f))?;
            Some(price.ok_or(conditional("Price (44) of a limit order is missing"))?)
        }
        OrderType::Market => None,
    };
    let stop = match is_stop {
        true => {
            let stop = optional(m, tag::STOP_PX, |m, f| m.price(f))?;
            Some(stop.ok_or(conditional("StopPx (99) of a stop order is missing"))?)
        }
        false => None,
    };
    let shown = optional(m, own::DISPLAY_QTY, |m, f| m.qty(f))?;
    let shown = match shown {
        Some(qty) => Some(qty),
        None => optional(m, own::MAX_FLOOR, |m, f| m.qty(f))?,
    };
    let qty = required(m, tag::ORDER_QTY, |m, f| m.qty(f))?;
    let instructions = optional(m, own::EXEC_INST, |m, f| Ok(m.value(f)))?.unwrap_or_default();
    let self_trade = optional(m, own::SELF_MATCH_PREVENTION, |m, f| match m.unsigned(f)? {
        0 => Ok(SelfTrade::Allow),
        1 => Ok(SelfTrade::CancelNewest),
        2 => Ok(SelfTrade::CancelOldest),
        3 => Ok(SelfTrade::CancelBoth),
        4 => Ok(SelfTrade::Decrement),
        _ => Err(Fault::value(f.tag)),
    })?;
    Ok(New {
        id: id_of(m, tag::CL_ORD_ID)?,
        symbol: required(m, tag::SYMBOL, symbol)?,
        side: required(m, tag::SIDE, side)?,
        qty,
        ord_type,
        order_type,
        price,
        stop,
        time_in_force,
        // All of it shown is no iceberg.
        display: shown.filter(|shown| *shown < qty).unwrap_or(Qty::ZERO),
        post_only: instructions.split(|b| *b == b' ').any(|one| one == b"6"),
        self_trade,
        cause: cause(m),
    })
}

pub(in crate::order_entry) fn required<'m, T>(
    m: &Message<'m>,
    tag: u32,
    read: impl FnOnce(&Message<'m>, tickwire_fix::Field) -> Result<T, Fault>,
) -> Result<T, Refused> {
    let field = m.find(tag).ok_or(Fault::missing(tag))?;
    Ok(read(m, field)?)
}

pub(in crate::order_entry) fn optional<'m, T>(
    m: &Message<'m>,
    tag: u32,
    read: impl FnOnce(&Message<'m>, tickwire_fix::Field) -> Result<T, Fault>,
) -> Result<Option<T>, Refused> {
    match m.find(tag) {
        Some(field) => Ok(Some(read(m, field)?)),
        None => Ok(None),
    }
}

pub(in crate::order_entry) fn id_of(m: &Message<'_>, tag: u32) -> Result<Id, Refused> {
    required(m, tag, |m, f| m.text(f))
}

pub(in crate::order_entry) fn symbol(m: &Message<'_>, f: tickwire_fix::Field) -> Result<Symbol, Fault> {
    Symbol::new(m.value(f)).ok_or(Fault::value(f.tag))
}

/// 5 and 6, selling short, are sales here.
pub(super) fn side(m: &Message<'_>, f: tickwire_fix::Field) -> Result<Side, Fault> {
    match m.char(f)? {
        b'1' => Ok(Side::Bid),
        b'2' | b'5' | b'6' => Ok(Side::Ask),
        _ => Err(Fault::value(f.tag)),
    }
}

pub(super) fn time_in_force(m: &Message<'_>, f: tickwire_fix::Field) -> Result<TimeInForce, Fault> {
    TimeInForce::from_char(m.char(f)?).ok_or(Fault::value(f.tag))
}
