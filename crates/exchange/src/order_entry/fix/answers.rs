//! Answers to FIX clients: the messages and the words of what happened to their orders.

use tickwire_fix::{Encoder, Id, Message, Stamp, Version, ord_rej_reason, tag};
use tickwire_market::{Cause, Nanos, OrderType, SeqNo, Side, Symbol, Venue};
use tickwire_persist::persist;

use crate::order::{BreakReason, CancelReason, Reject};
use crate::order_entry::quotes::QuoteOut;
use crate::order_entry::{ClientOrder, OrderNotice, Outcome, Refusal, Saying, Why};

use super::{NO_ORDER, own};

/// Something to be sent.
pub(super) enum Out {
    Report(Saying),
    CancelReject {
        request: Id,
        orig: Id,
        order: Option<ClientOrder>,
        is_replace: bool,
        reason: u16,
        text: &'static str,
    },
    MassCancelled {
        id: Id,
        kind: u8,
        /// How many, or why not.
        result: Result<u32, u16>,
        symbol: Option<Symbol>,
        side: Option<Side>,
        report_id: u64,
    },
    UnknownOrder {
        id: Id,
        exec_id: u64,
        at: Nanos,
    },
    SecurityStatus {
        id: Id,
        symbol: Symbol,
        status: u64,
    },
    SessionStatus {
        id: Id,
        status: u64,
    },
    Quote(QuoteOut),
}

/// What caused an order or a quote, when all three fields are there and right.
pub(in crate::order_entry) fn cause(m: &Message<'_>) -> Option<Cause> {
    let number = |tag| m.find(tag).and_then(|f| m.unsigned(f).ok());
    Some(Cause {
        venue: Venue::from_u8(u8::try_from(number(tag::CAUSE_VENUE)?).ok()?)?,
        seq: SeqNo(number(tag::CAUSE_SEQ)?),
        recv_ts: Nanos(number(tag::CAUSE_RECV_TS)?),
    })
}

/// OrdRejReason (103) and text.
pub(super) fn wording(reject: Reject) -> (u16, &'static str) {
    match reject {
        Reject::UnknownInstrument => (ord_rej_reason::UNKNOWN_SYMBOL, "unknown symbol"),
        Reject::NotTrading => (ord_rej_reason::EXCHANGE_CLOSED, "instrument is not trading"),
        Reject::Tick => (ord_rej_reason::OTHER, "price is not a multiple of the tick"),
        Reject::PriceRange => (ord_rej_reason::EXCEEDS_LIMIT, "price out of range"),
        Reject::Quantity => (ord_rej_reason::INCORRECT_QUANTITY, "quantity is zero"),
        Reject::Lot => (
            ord_rej_reason::INCORRECT_QUANTITY,
            "quantity is not a multiple of the lot",
        ),
        Reject::Display => (
            ord_rej_reason::INCORRECT_QUANTITY,
            "displayed quantity must be below the quantity",
        ),
        Reject::StopPrice => (ord_rej_reason::EXCEEDS_LIMIT, "stop price out of range"),
        Reject::Instructions => (
            ord_rej_reason::UNSUPPORTED_CHARACTERISTIC,
            "instructions do not go together",
        ),
        Reject::PostOnly => (ord_rej_reason::EXCHANGE_OPTION, "post-only order would trade"),
        Reject::PriceBand => (ord_rej_reason::EXCEEDS_LIMIT, "beyond the price band"),
        Reject::Quote => (ord_rej_reason::OTHER, "not allowed for quotes"),
        Reject::Protected => (ord_rej_reason::EXCHANGE_OPTION, "protection triggered"),
        Reject::NoFirm => (ord_rej_reason::OTHER, "no firm"),
        Reject::UnknownOrder => (ord_rej_reason::OTHER, "unknown order"),
        Reject::UnknownTrade => (ord_rej_reason::OTHER, "unknown trade"),
        Reject::BrokenTrade => (ord_rej_reason::OTHER, "the trade is broken already"),
        Reject::AuctionTrade => (ord_rej_reason::OTHER, "an auction's trade is not broken"),
        Reject::Full => (ord_rej_reason::EXCHANGE_OPTION, "book full"),
    }
}

fn refusal(refusal: Refusal) -> (u16, &'static str) {
    match refusal {
        Refusal::Engine(reject) => wording(reject),
        Refusal::UnknownSymbol => (ord_rej_reason::UNKNOWN_SYMBOL, "unknown symbol"),
        Refusal::Closed => (ord_rej_reason::EXCHANGE_CLOSED, "market is closed"),
        Refusal::Duplicate => (ord_rej_reason::DUPLICATE_ORDER, "duplicate ClOrdID"),
        Refusal::NoRoom => (ord_rej_reason::EXCHANGE_OPTION, "no room for more orders today"),
        Refusal::Disabled => (ord_rej_reason::EXCHANGE_OPTION, "order entry is disabled"),
    }
}

pub(in crate::order_entry) fn why_text(why: Why) -> &'static str {
    match why {
        Why::Request | Why::TimeInForce => "",
        Why::Swept => "cancelled by a request for all orders",
        Why::Engine(reason) => match reason {
            CancelReason::MassCancel => "mass cancel",
            CancelReason::SelfTrade => "self-trade prevention",
            CancelReason::Protection => "market maker protection",
            CancelReason::AuctionOver => "the auction is over",
            CancelReason::DayOver => "the day is over",
            CancelReason::NoRoom => "book full",
            CancelReason::Requoted => "requoted",
        },
    }
}

fn break_text(reason: BreakReason) -> &'static str {
    match reason {
        BreakReason::Erroneous => "clearly erroneous",
        BreakReason::Consent => "broken by consent",
        BreakReason::Supervisory => "broken by a supervisor",
    }
}

/// OrdStatus (39) as it stands.
fn ord_status(order: &ClientOrder) -> u8 {
    match order.outcome {
        Outcome::Rejected => b'8',
        Outcome::Filled => b'2',
        Outcome::Cancelled => b'4',
        Outcome::Open if order.filled.is_zero() => b'0',
        Outcome::Open => b'1',
    }
}

impl Out {
    pub(super) fn msg_type(&self, version: Version) -> &'static [u8] {
        match self {
            Out::Report(_) | Out::UnknownOrder { .. } => b"8",
            Out::CancelReject { .. } => b"9",
            Out::MassCancelled { .. } => b"r",
            Out::SecurityStatus { .. } => b"f",
            Out::SessionStatus { .. } => b"h",
            Out::Quote(out) => out.msg_type(version),
        }
    }

    pub(super) fn encode(&self, e: &mut Encoder<'_>, version: Version, stamp: &mut Stamp) {
        match *self {
            Out::Report(ref saying) => report(e, version, stamp, saying),
            Out::CancelReject {
                request,
                orig,
                order,
                is_replace,
                reason,
                text,
            } => {
                let order_id = order.map_or(NO_ORDER, |order| Id::from_number(order.venue_id.0));
                e.text(tag::ORDER_ID, order_id.as_bytes());
                e.text(tag::CL_ORD_ID, request.as_bytes());
                if version >= Version::Fix41 {
                    e.text(tag::ORIG_CL_ORD_ID, orig.as_bytes());
                    e.char(tag::ORD_STATUS, order.as_ref().map_or(b'8', ord_status));
                }
                if version >= Version::Fix42 {
                    e.char(tag::CXL_REJ_RESPONSE_TO, if is_replace { b'2' } else { b'1' });
                }
                e.unsigned(tag::CXL_REJ_REASON, cancel_reason(version, reason));
                e.text_if(tag::TEXT, text.as_bytes());
            }
            Out::MassCancelled {
                id,
                kind,
                result,
                symbol,
                side,
                report_id,
            } => {
                e.text(tag::CL_ORD_ID, id.as_bytes());
                e.unsigned(tag::ORDER_ID, report_id);
                if version >= Version::Fix50Sp1 {
                    e.unsigned(own::MASS_ACTION_REPORT_ID, report_id);
                }
                e.char(tag::MASS_CANCEL_REQUEST_TYPE, kind);
                match result {
                    Ok(orders) => {
                        e.char(tag::MASS_CANCEL_RESPONSE, kind);
                        e.unsigned(own::TOTAL_AFFECTED_ORDERS, orders.into());
                    }
                    Err(reason) => {
                        e.char(tag::MASS_CANCEL_RESPONSE, b'0');
                        e.unsigned(own::MASS_CANCEL_REJECT_REASON, reason.into());
                    }
                }
                if let Some(symbol) = symbol {
                    e.text(tag::SYMBOL, symbol.as_bytes());
                }
                if let Some(side) = side {
                    e.char(tag::SIDE, b'1' + side as u8);
                }
            }
            Out::UnknownOrder { id, exec_id, at } => {
                e.text(tag::ORDER_ID, NO_ORDER.as_bytes());
                e.text(tag::CL_ORD_ID, id.as_bytes());
                e.unsigned(tag::EXEC_ID, exec_id);
                if version <= Version::Fix42 {
                    e.char(tag::EXEC_TRANS_TYPE, b'3');
                }
                if version >= Version::Fix41 {
                    e.char(
                        tag::EXEC_TYPE,
                        if version <= Version::Fix42 { b'8' } else { b'I' },
                    );
                }
                e.char(tag::ORD_STATUS, b'8');
                e.text(tag::SYMBOL, b"[N/A]");
                e.char(tag::SIDE, b'1');
                e.unsigned(tag::ORDER_QTY, 0);
                nothing_filled(e, version);
                e.timestamp(tag::TRANSACT_TIME, stamp, at);
                e.text(tag::TEXT, b"unknown order");
            }
            Out::SecurityStatus { id, symbol, status } => {
                e.text(own::SECURITY_STATUS_REQ_ID, id.as_bytes());
                e.text(tag::SYMBOL, symbol.as_bytes());
                e.unsigned(own::SECURITY_TRADING_STATUS, status);
            }
            Out::SessionStatus { id, status } => {
                e.text(own::TRAD_SES_REQ_ID, id.as_bytes());
                e.text(own::TRADING_SESSION_ID, b"1");
                e.unsigned(own::TRAD_SES_STATUS, status);
            }
            Out::Quote(ref out) => out.encode(e, version),
        }
    }
}

/// CxlRejReason (102) as far as the version has it.
fn cancel_reason(version: Version, reason: u16) -> u64 {
    let last = match version {
        Version::Fix40 | Version::Fix41 => 1,
        Version::Fix42 => 3,
        _ => u16::MAX,
    };
    // Too late is what remains of everything else.
    if reason <= last { reason.into() } else { 0 }
}

fn nothing_filled(e: &mut Encoder<'_>, version: Version) {
    e.unsigned(tag::LAST_QTY, 0);
    e.unsigned(tag::LAST_PX, 0);
    if version >= Version::Fix41 {
        e.unsigned(tag::LEAVES_QTY, 0);
    }
    e.unsigned(tag::CUM_QTY, 0);
    e.unsigned(tag::AVG_PX, 0);
}

/// ExecutionReport. Up to 4.2 it has ExecTransType (20), fills are ExecType 1 and 2, a broken one is
/// ExecTransType 1 with the order's state as ExecType, and a replaced order has OrdStatus 5; 4.0 has neither
/// ExecType nor LeavesQty.
fn report(e: &mut Encoder<'_>, version: Version, stamp: &mut Stamp, saying: &Saying) {
    let Saying {
        ref order,
        told,
        request,
        exec_id,
        at,
    } = *saying;
    let is_old = version <= Version::Fix42;
    let (id, orig) = request.unwrap_or((order.cl_ord_id, Id::EMPTY));
    let status = match told {
        OrderNotice::Replaced if is_old && order.outcome == Outcome::Open => b'5',
        OrderNotice::CancelPending => b'6',
        _ => ord_status(order),
    };
    // Whether it works in the book, and was a stop order.
    let works = order.outcome == Outcome::Open
        && matches!(
            told,
            OrderNotice::Triggered | OrderNotice::Status { is_triggered: true }
        );
    let exec_type = match told {
        OrderNotice::Accepted => b'0',
        OrderNotice::Refused(_) => b'8',
        OrderNotice::Filled { .. } if is_old => status,
        OrderNotice::Filled { .. } => b'F',
        OrderNotice::Broken { .. } if is_old => status,
        OrderNotice::Broken { .. } => b'H',
        OrderNotice::Cancelled { .. } => b'4',
        OrderNotice::Replaced => b'5',
        // Lowered by the venue, which before 4.2 could not be said.
        OrderNotice::Reduced { .. } if version >= Version::Fix42 => b'D',
        OrderNotice::Reduced { .. } => b'5',
        // The word came with 5.0, and before 4.2 there was none for what the venue changes by itself.
        OrderNotice::Triggered if version.is_fixt() => b'L',
        OrderNotice::Triggered if version >= Version::Fix42 => b'D',
        OrderNotice::Triggered => status,
        OrderNotice::CancelPending => b'6',
        OrderNotice::Refreshed { .. } | OrderNotice::CancelTooLate | OrderNotice::Status { .. } => {
            match is_old {
                true => status,
                false => b'I',
            }
        }
    };
    match order.venue_id.0 {
        0 => e.text(tag::ORDER_ID, NO_ORDER.as_bytes()),
        number => e.unsigned(tag::ORDER_ID, number),
    }
    e.text(tag::CL_ORD_ID, id.as_bytes());
    if version >= Version::Fix41 {
        e.text_if(tag::ORIG_CL_ORD_ID, orig.as_bytes());
    }
    e.unsigned(tag::EXEC_ID, exec_id);
    if is_old {
        let kind = match told {
            OrderNotice::Status { .. } => b'3',
            OrderNotice::Triggered if version <= Version::Fix41 => b'3',
            OrderNotice::Broken { .. } => b'1',
            _ => b'0',
        };
        e.char(tag::EXEC_TRANS_TYPE, kind);
    }
    if let OrderNotice::Broken { exec_id, .. } = told {
        e.unsigned(own::EXEC_REF_ID, exec_id);
    }
    if version >= Version::Fix41 {
        e.char(tag::EXEC_TYPE, exec_type);
    }
    e.char(tag::ORD_STATUS, status);
    let mut text = "";
    match told {
        OrderNotice::Refused(why) => {
            let (reason, words) = refusal(why);
            e.unsigned(tag::ORD_REJ_REASON, reject_reason(version, reason));
            text = words;
        }
        OrderNotice::Reduced { why, .. } => {
            if exec_type == b'D' {
                // ExecRestatementReason: 5 partial decline of OrderQty.
                e.unsigned(own::EXEC_RESTATEMENT_REASON, 5);
            }
            text = why_text(why);
        }
        OrderNotice::Triggered => {
            if exec_type == b'D' {
                // 8, the market's option; 4.2 has 4, the broker's.
                let reason = if version >= Version::Fix43 { 8 } else { 4 };
                e.unsigned(own::EXEC_RESTATEMENT_REASON, reason);
            }
            text = "triggered";
        }
        OrderNotice::Cancelled { why, .. } => text = why_text(why),
        OrderNotice::Broken { reason, .. } => text = break_text(reason),
        _ => {}
    }
    e.text(tag::SYMBOL, order.symbol.as_bytes());
    e.char(tag::SIDE, b'1' + order.side as u8);
    e.unsigned(tag::ORDER_QTY, order.qty.0.into());
    // Before there was WorkingIndicator (636) its type says what it is now.
    let ord_type = match works && is_old {
        true => b'0' + order.order_type as u8,
        false => order.own as u8,
    };
    e.char(tag::ORD_TYPE, ord_type);
    if order.order_type == OrderType::Limit {
        e.price(tag::PRICE, order.price);
    }
    if let Some(stop) = order.stop {
        e.price(tag::STOP_PX, stop);
    }
    if works && !is_old {
        e.char(tag::WORKING_INDICATOR, b'Y');
    }
    let is_on_close_type = matches!(order.own as u8, b'5' | b'B');
    if !is_on_close_type {
        e.char(tag::TIME_IN_FORCE, b'0' + order.time_in_force as u8);
    }
    if !order.display.is_zero() && version >= Version::Fix42 {
        let tag = if version.is_fixt() {
            own::DISPLAY_QTY
        } else {
            own::MAX_FLOOR
        };
        e.unsigned(tag, order.display.0.into());
    }
    match told {
        OrderNotice::Filled { qty, price, .. } | OrderNotice::Broken { qty, price, .. } => {
            e.unsigned(tag::LAST_QTY, qty.0.into());
            e.price(tag::LAST_PX, price);
        }
        _ if version <= Version::Fix41 => {
            e.unsigned(tag::LAST_QTY, 0);
            e.unsigned(tag::LAST_PX, 0);
        }
        _ => {}
    }
    if version >= Version::Fix41 {
        e.unsigned(tag::LEAVES_QTY, order.leaves().0.into());
    }
    e.unsigned(tag::CUM_QTY, order.filled.0.into());
    e.price(tag::AVG_PX, order.average());
    e.timestamp(tag::TRANSACT_TIME, stamp, at);
    if let Some(cause) = order.origin.cause {
        e.unsigned(tag::CAUSE_VENUE, cause.venue as u64);
        e.unsigned(tag::CAUSE_SEQ, cause.seq.0);
        e.unsigned(tag::CAUSE_RECV_TS, cause.recv_ts.0);
    }
    e.text_if(tag::TEXT, text.as_bytes());
}

/// OrdRejReason (103) as far as the version has it: 0, broker's option, for the rest.
fn reject_reason(version: Version, reason: u16) -> u64 {
    let last = match version {
        Version::Fix40 => 3,
        Version::Fix41 => 5,
        Version::Fix42 => 8,
        Version::Fix43 => 15,
        _ => u16::MAX,
    };
    if reason <= last { reason.into() } else { 0 }
}

persist!(value enum Out {
    0 => Report(saying),
    1 => CancelReject { request, orig, order, is_replace, reason, text },
    2 => MassCancelled { id, kind, result, symbol, side, report_id },
    3 => UnknownOrder { id, exec_id, at },
    4 => SecurityStatus { id, symbol, status },
    5 => SessionStatus { id, status },
    6 => Quote(out),
});
