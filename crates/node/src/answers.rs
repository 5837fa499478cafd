//! What a venue says of orders and quotes: from the message in a session to the strategies whose they are.
//! Trader, strategies and quoter have this one.

use tickwire_fix::{
    BusinessMessageReject, CancelKind, ExecType, ExecutionReport, Fault, Message, NewOrderSingle,
    OrderCancelReject, OrderCancelReplaceRequest, OrderCancelRequest, Reason, quote_status_answers,
    read_quote_answer,
};
use tickwire_market::{ClientOrderId, Nanos, OrderId, Price, Qty, SeqNo};
use tickwire_trading::strategy::{Execution, ExecutionId};
use tickwire_trading::{OrderReport, ReportError, ReportKind};

use crate::hot::{HotPath, OrderOut};
use crate::trader::{Rule, report_kind};
use tickwire_console::warn;

/// What became of a message.
#[derive(Clone, Debug)]
pub enum Heard {
    /// Whoever it concerns was told.
    Told,
    /// An execution that was booked before, left out.
    Repeated,
    /// The venue took a trade back.
    Broken {
        /// The order that had traded.
        order: ClientOrderId,
        /// How much.
        qty: Qty,
        /// At what price.
        price: Price,
    },
    /// The answer to the question what became of an order, for who asked.
    Status(ExecutionReport),
    /// The venue takes no request about quotes.
    NoQuotes(Reason),
    /// The venue refused another message as a whole.
    Refused(BusinessMessageReject),
    /// A request: only a venue is asked.
    Request,
    /// It is of another type than a venue's answers.
    Unknown,
    /// It cannot be read.
    Fault(Fault),
}

/// What a venue says of orders.
enum Answer {
    Report(ExecutionReport),
    CancelReject(OrderCancelReject),
    BusinessReject(BusinessMessageReject),
    /// What only a venue is asked.
    Request,
}

impl Answer {
    /// `None` of a message of another type.
    fn read(m: &Message<'_>) -> Result<Option<Answer>, Fault> {
        Ok(Some(match m.msg_type() {
            ExecutionReport::MSG_TYPE => Answer::Report(ExecutionReport::decode(m)?),
            OrderCancelReject::MSG_TYPE => Answer::CancelReject(OrderCancelReject::decode(m)?),
            BusinessMessageReject::MSG_TYPE => Answer::BusinessReject(BusinessMessageReject::decode(m)?),
            NewOrderSingle::MSG_TYPE => NewOrderSingle::decode(m).map(|_| Answer::Request)?,
            OrderCancelRequest::MSG_TYPE => OrderCancelRequest::decode(m).map(|_| Answer::Request)?,
            OrderCancelReplaceRequest::MSG_TYPE => {
                OrderCancelReplaceRequest::decode(m).map(|_| Answer::Request)?
            }
            _ => return Ok(None),
        }))
    }
}

/// Takes the message that a session has in hand. `is_again`: the venue says that it may have sent it before.
/// What it says of quotes then is of a connection that was lost, and its quotes with it: only executions
/// still count, and each of them once. `named` is room for the quotes that a message names.
pub fn hear<R: Rule, O: OrderOut, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, R>,
    session: usize,
    now: Nanos,
    (seq, is_again): (SeqNo, bool),
    named: &mut Vec<u64>,
) -> Heard {
    let Some(message) = hot.sessions[session].fix.message() else {
        return Heard::Told;
    };
    match read_quote_answer(&message, named) {
        Ok(Some(_)) if is_again => return Heard::Told,
        Ok(Some(answer)) => {
            let asked = quote_status_answers(&message);
            R::on_quotes(hot, session, now, &answer, (asked, named));
            return Heard::Told;
        }
        Ok(None) => {}
        Err(fault) => return Heard::Fault(fault),
    }
    match Answer::read(&message) {
        Ok(Some(Answer::Report(report))) => execution_report(hot, session, now, (seq, is_again), &report),
        Ok(Some(Answer::CancelReject(reject))) => {
            cancel_reject(hot, session, now, &reject);
            Heard::Told
        }
        Ok(Some(Answer::BusinessReject(reject))) => match reject.ref_msg_type.as_bytes() {
            b"i" | b"Z" => {
                R::on_quotes_unknown(hot, session, now);
                Heard::NoQuotes(reject.text)
            }
            _ => Heard::Refused(reject),
        },
        Ok(Some(Answer::Request)) => Heard::Request,
        Ok(None) => Heard::Unknown,
        Err(fault) => Heard::Fault(fault),
    }
}

/// A cancel or a replacement was refused.
fn cancel_reject<R: Rule, O: OrderOut, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, R>,
    session: usize,
    now: Nanos,
    reject: &OrderCancelReject,
) {
    let by = reject.cl_ord_id.to_number().unwrap_or(0);
    if R::on_quote_reject(hot, session, now, by) {
        return;
    }
    // Too late, or unknown: the order's own reports say which, or its status does.
    let kind = match reject.response_to {
        CancelKind::Cancel => ReportKind::CancelRejected,
        CancelKind::Replace => ReportKind::ReplaceRejected {
            by: ClientOrderId(by),
        },
    };
    let refused = OrderReport {
        id: ClientOrderId(reject.orig_cl_ord_id.to_number().unwrap_or(0)),
        venue_id: None,
        kind,
    };
    let _ = R::on_report(hot, session, now, &refused);
}

fn execution_report<R: Rule, O: OrderOut, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, R>,
    session: usize,
    now: Nanos,
    (seq, is_again): (SeqNo, bool),
    report: &ExecutionReport,
) -> Heard {
    if report.exec_type == ExecType::OrderStatus {
        return Heard::Status(*report);
    }
    let is_trade = matches!(report.exec_type, ExecType::Trade | ExecType::TradeCancel);
    if !is_trade {
        return told(hot, session, now, report);
    }
    let execution = Execution {
        seq,
        id: ExecutionId::new(report.exec_id.as_bytes()).unwrap_or(ExecutionId::NONE),
    };
    if !hot.sessions[session].once.is_new(&execution, is_again) {
        return Heard::Repeated;
    }
    hot.rule.set_execution(Some(execution));
    let (heard, was_said) = traded(hot, session, now, report, is_again);
    hot.rule.set_execution(None);
    if !was_said {
        let traded = (report.last_qty, report.last_px.unwrap_or_default());
        keep(hot, session, now, seq, report, traded);
    }
    heard
}

/// Has an execution kept beyond the process, where that is asked for. Where it cannot be, nothing more is
/// sent: the next process would not know what is held.
pub(crate) fn keep<R: Rule, O: OrderOut, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, R>,
    session: usize,
    now: Nanos,
    seq: SeqNo,
    report: &ExecutionReport,
    traded: (Qty, Price),
) {
    let Some(record) = &mut hot.sessions[session].record else {
        return;
    };
    let order = (named_order(report).0, seq);
    if !record.put(now, order, report, traded) && !hot.rule.is_killed() {
        hot.rule.kill();
        warn(format_args!(
            "ALERT: executions come faster than they are written: the kill switch goes on, for the next process would not know what is held"
        ));
    }
}

/// An execution that was not booked before; whether the venue had said it otherwise, so that it was booked
/// all the same.
fn traded<R: Rule, O: OrderOut, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, R>,
    session: usize,
    now: Nanos,
    report: &ExecutionReport,
    is_again: bool,
) -> (Heard, bool) {
    if R::on_quote_report(hot, session, now, report) {
        return (Heard::Told, false);
    }
    let is_known = hot.rule.order(session, named_order(report)).is_some();
    if !is_known && R::on_late(hot, session, now, report, is_again) {
        return (Heard::Told, false);
    }
    order_report(hot, session, now, report)
}

/// What a report says that is no trade.
fn told<R: Rule, O: OrderOut, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, R>,
    session: usize,
    now: Nanos,
    report: &ExecutionReport,
) -> Heard {
    match R::on_quote_report(hot, session, now, report) {
        true => Heard::Told,
        false => order_report(hot, session, now, report).0,
    }
}

/// An answer to a request about an order names the order by OrigClOrdID.
fn named_order(report: &ExecutionReport) -> ClientOrderId {
    let id = match report.orig_cl_ord_id.is_empty() {
        true => report.cl_ord_id,
        false => report.orig_cl_ord_id,
    };
    ClientOrderId(id.to_number().unwrap_or(0))
}

/// What a report says of an order; whether it had been said before.
fn order_report<R: Rule, O: OrderOut, const STAMPED: bool>(
    hot: &mut HotPath<O, STAMPED, R>,
    session: usize,
    now: Nanos,
    report: &ExecutionReport,
) -> (Heard, bool) {
    let replaced = (report.exec_type == ExecType::Replaced).then(|| ReportKind::Replaced {
        by: ClientOrderId(report.cl_ord_id.to_number().unwrap_or(0)),
        venue_id: report.order_id.to_number().map(OrderId),
    });
    let Some(kind) = replaced.or_else(|| report_kind(report)) else {
        return (Heard::Told, false);
    };
    let told = OrderReport {
        id: named_order(report),
        venue_id: report.order_id.to_number().map(OrderId),
        kind,
    };
    // What does not fit is counted as unmatched and stops trading where a fill is concerned.
    let done = R::on_report(hot, session, now, &told);
    let heard = match (&done, kind) {
        (Ok(change), ReportKind::Broken { qty, price, .. }) => Heard::Broken {
            order: change.order.id,
            qty,
            price,
        },
        _ => Heard::Told,
    };
    (heard, done == Err(ReportError::Duplicate))
}
