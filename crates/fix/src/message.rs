//! The application messages of the subset, typed, `Copy` and of fixed size. FIX 4.4 with errata 20030618,
//! volume 4 (orders) and volume 2 (Business Message Reject).
//!
//! Fields outside the subset are ignored on receipt. A required field that is missing, twice, or not of its
//! type is a [`Fault`].

mod execution;

use crate::decode::Message;
use crate::encode::Encoder;
use crate::fields::Field;
use crate::reject::{Fault, SessionRejectReason};
use crate::tag;
use crate::text::{Id, MsgType, Reason};
use crate::time::Stamp;
use tickwire_market::{Cause, Nanos, OrderType, Price, Qty, SeqNo, Side, Symbol, TimeInForce, Venue};

macro_rules! char_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $char:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $char),* }

        impl $name {
            /// From its character, `None` outside the subset.
            #[inline]
            pub const fn from_char(c: u8) -> Option<$name> {
                match c { $($char => Some($name::$variant),)* _ => None }
            }
        }
    };
}

char_enum! {
    /// ExecType (150).
    ExecType {
        /// Accepted.
        New = b'0',
        /// Done for the day.
        DoneForDay = b'3',
        /// Cancelled.
        Canceled = b'4',
        /// Replaced.
        Replaced = b'5',
        /// A cancel request is being looked at.
        PendingCancel = b'6',
        /// A price is guaranteed.
        Stopped = b'7',
        /// Rejected.
        Rejected = b'8',
        /// Not traded for now.
        Suspended = b'9',
        /// Entered, not accepted yet.
        PendingNew = b'A',
        /// Done for the day, with its totals.
        Calculated = b'B',
        /// Its time is over.
        Expired = b'C',
        /// Changed by the venue without being asked.
        Restated = b'D',
        /// A replace request is being looked at.
        PendingReplace = b'E',
        /// Filled, in part or whole.
        Trade = b'F',
        /// A fill was cancelled.
        TradeCancel = b'H',
        /// An answer to a status request.
        OrderStatus = b'I',
        /// A stop order was triggered ("Triggered or Activated by the System"), since 5.0.
        /// Before, [`ExecutionReport::is_working`] says so.
        Triggered = b'L',
    }
}

char_enum! {
    /// OrdStatus (39).
    OrdStatus {
        /// Open, nothing filled.
        New = b'0',
        /// Open, some filled.
        PartiallyFilled = b'1',
        /// All filled.
        Filled = b'2',
        /// Done for the day.
        DoneForDay = b'3',
        /// Cancelled.
        Canceled = b'4',
        /// A cancel request is being looked at.
        PendingCancel = b'6',
        /// Rejected.
        Rejected = b'8',
        /// Entered, not accepted yet.
        PendingNew = b'A',
        /// Its time is over.
        Expired = b'C',
        /// A replace request is being looked at.
        PendingReplace = b'E',
    }
}

/// Values of OrdRejReason (103).
pub mod ord_rej_reason {
    /// Broker or exchange option.
    pub const EXCHANGE_OPTION: u16 = 0;
    /// Unknown symbol.
    pub const UNKNOWN_SYMBOL: u16 = 1;
    /// Exchange closed.
    pub const EXCHANGE_CLOSED: u16 = 2;
    /// Order exceeds limit.
    pub const EXCEEDS_LIMIT: u16 = 3;
    /// Duplicate order (ClOrdID).
    pub const DUPLICATE_ORDER: u16 = 6;
    /// Unsupported order characteristic.
    pub const UNSUPPORTED_CHARACTERISTIC: u16 = 11;
    /// Incorrect quantity.
    pub const INCORRECT_QUANTITY: u16 = 13;
    /// Other; the text says what.
    pub const OTHER: u16 = 99;
}

/// Values of CxlRejReason (102).
pub mod cxl_rej_reason {
    /// Too late to cancel.
    pub const TOO_LATE: u16 = 0;
    /// Unknown order.
    pub const UNKNOWN_ORDER: u16 = 1;
    /// Broker or exchange option.
    pub const EXCHANGE_OPTION: u16 = 2;
    /// A cancel or replacement of the order is pending already.
    pub const ALREADY_PENDING: u16 = 3;
    /// Duplicate ClOrdID.
    pub const DUPLICATE_CL_ORD_ID: u16 = 6;
}

/// Values of BusinessRejectReason (380).
pub mod business_reject_reason {
    /// Other; the text says what.
    pub const OTHER: u16 = 0;
    /// Unknown identifier.
    pub const UNKNOWN_ID: u16 = 1;
    /// Unknown security.
    pub const UNKNOWN_SECURITY: u16 = 2;
    /// Unsupported message type.
    pub const UNSUPPORTED_MESSAGE_TYPE: u16 = 3;
    /// Application not available.
    pub const APPLICATION_NOT_AVAILABLE: u16 = 4;
    /// A field required by the values of others is missing.
    pub const CONDITIONAL_FIELD_MISSING: u16 = 5;
    /// More messages than allowed; since 5.0 SP2.
    pub const THROTTLE_LIMIT_EXCEEDED: u16 = 8;
}

/// Order Single (35=D).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewOrderSingle {
    /// ClOrdID (11).
    pub cl_ord_id: Id,
    /// Symbol (55).
    pub symbol: Symbol,
    /// Side (54): buy is [`Side::Bid`].
    pub side: Side,
    /// TransactTime (60).
    pub transact_time: Nanos,
    /// OrderQty (38).
    pub qty: Qty,
    /// OrdType (40): what it is once it was triggered, of a stop order (3: market, 4: limit).
    pub order_type: OrderType,
    /// Price (44): `None` for market orders. A limit order without one is for the application to refuse.
    pub price: Option<Price>,
    /// StopPx (99), of stop orders only.
    pub stop: Option<Price>,
    /// TimeInForce (59), day when absent.
    pub time_in_force: TimeInForce,
    /// What caused the order (20001 to 20003), when all three are there.
    pub cause: Option<Cause>,
}

/// Order Cancel Request (35=F).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderCancelRequest {
    /// ClOrdID (11) of this request.
    pub cl_ord_id: Id,
    /// OrigClOrdID (41): the order to cancel.
    pub orig_cl_ord_id: Id,
    /// OrderID (37), empty when not known.
    pub order_id: Id,
    /// Symbol (55).
    pub symbol: Symbol,
    /// Side (54).
    pub side: Side,
    /// TransactTime (60).
    pub transact_time: Nanos,
    /// OrderQty (38) of the order.
    pub qty: Qty,
    /// What caused the request.
    pub cause: Option<Cause>,
}

/// Order Cancel/Replace Request (35=G).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderCancelReplaceRequest {
    /// ClOrdID (11): the order's new identifier.
    pub cl_ord_id: Id,
    /// OrigClOrdID (41): the order to replace.
    pub orig_cl_ord_id: Id,
    /// OrderID (37), empty when not known.
    pub order_id: Id,
    /// Symbol (55).
    pub symbol: Symbol,
    /// Side (54).
    pub side: Side,
    /// TransactTime (60).
    pub transact_time: Nanos,
    /// OrderQty (38): the new total quantity, fills included.
    pub qty: Qty,
    /// OrdType (40), as [`NewOrderSingle::order_type`].
    pub order_type: OrderType,
    /// Price (44): the new price.
    pub price: Option<Price>,
    /// StopPx (99): the new one of a stop order.
    pub stop: Option<Price>,
    /// TimeInForce (59).
    pub time_in_force: TimeInForce,
    /// What caused the request.
    pub cause: Option<Cause>,
}

/// Execution Report (35=8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExecutionReport {
    /// OrderID (37).
    pub order_id: Id,
    /// ClOrdID (11), empty for orders that were not entered by message.
    pub cl_ord_id: Id,
    /// OrigClOrdID (41), empty unless it answers a cancel or replace.
    pub orig_cl_ord_id: Id,
    /// ExecID (17).
    pub exec_id: Id,
    /// ExecType (150).
    pub exec_type: ExecType,
    /// OrdStatus (39).
    pub ord_status: OrdStatus,
    /// OrdRejReason (103), see [`ord_rej_reason`].
    pub ord_rej_reason: Option<u16>,
    /// Symbol (55).
    pub symbol: Symbol,
    /// Side (54).
    pub side: Side,
    /// OrderQty (38).
    pub qty: Qty,
    /// OrdType (40), as [`NewOrderSingle::order_type`].
    pub order_type: OrderType,
    /// Price (44).
    pub price: Option<Price>,
    /// StopPx (99), of stop orders.
    pub stop: Option<Price>,
    /// Whether a stop order has been triggered, and works in the book: WorkingIndicator (636), since 4.3;
    /// before, OrdType (40) is then that of an order without a trigger, and StopPx (99) stands beside it.
    pub is_working: bool,
    /// TimeInForce (59).
    pub time_in_force: TimeInForce,
    /// LastQty (32), 0 unless a fill.
    pub last_qty: Qty,
    /// LastPx (31), of a fill.
    pub last_px: Option<Price>,
    /// LeavesQty (151).
    pub leaves_qty: Qty,
    /// CumQty (14).
    pub cum_qty: Qty,
    /// AvgPx (6).
    pub avg_px: Price,
    /// TransactTime (60); [`Nanos::ZERO`] when absent (it is optional here).
    pub transact_time: Nanos,
    /// What caused the order, as the order said.
    pub cause: Option<Cause>,
    /// Text (58).
    pub text: Reason,
}

/// Which request an [`OrderCancelReject`] answers. CxlRejResponseTo (434).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum CancelKind {
    /// Order Cancel Request.
    Cancel = b'1',
    /// Order Cancel/Replace Request.
    Replace = b'2',
}

/// Order Cancel Reject (35=9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderCancelReject {
    /// OrderID (37), `NONE` when the order is unknown.
    pub order_id: Id,
    /// ClOrdID (11) of the request.
    pub cl_ord_id: Id,
    /// OrigClOrdID (41).
    pub orig_cl_ord_id: Id,
    /// OrdStatus (39).
    pub ord_status: OrdStatus,
    /// CxlRejResponseTo (434).
    pub response_to: CancelKind,
    /// CxlRejReason (102), see [`cxl_rej_reason`].
    pub reason: Option<u16>,
    /// Text (58).
    pub text: Reason,
}

/// Business Message Reject (35=j).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusinessMessageReject {
    /// RefSeqNum (45), 0 when absent.
    pub ref_seq: SeqNo,
    /// RefMsgType (372).
    pub ref_msg_type: MsgType,
    /// BusinessRejectRefID (379), empty when absent.
    pub ref_id: Id,
    /// BusinessRejectReason (380), see [`business_reject_reason`].
    pub reason: u16,
    /// Text (58).
    pub text: Reason,
}

/// Which fields of a message were there: one bit each.
#[derive(Clone, Copy, Default)]
struct Seen(u32);

impl Seen {
    #[inline]
    fn mark(&mut self, bit: u32, tag: u32) -> Result<(), Fault> {
        if self.0 >> bit & 1 == 1 {
            return Err(Fault::new(SessionRejectReason::TagTwice, tag));
        }
        self.0 |= 1 << bit;
        Ok(())
    }

    /// The fields of bits 0, 1, 2, ... must have been there.
    #[inline]
    fn require(self, tags: &[u32]) -> Result<(), Fault> {
        match (!self.0).trailing_zeros() as usize {
            first if first < tags.len() => Err(Fault::missing(tags[first])),
            _ => Ok(()),
        }
    }
}

/// The three fields of a [`Cause`], in any order.
#[derive(Clone, Copy, Default)]
struct CauseFields {
    venue: Option<Venue>,
    seq: Option<SeqNo>,
    recv_ts: Option<Nanos>,
}

impl CauseFields {
    fn read(&mut self, m: &Message<'_>, f: Field) -> Result<(), Fault> {
        let value = m.unsigned(f)?;
        match f.tag {
            tag::CAUSE_VENUE => {
                let venue = u8::try_from(value).ok().and_then(Venue::from_u8);
                self.venue = Some(venue.ok_or(Fault::value(f.tag))?);
            }
            tag::CAUSE_SEQ => self.seq = Some(SeqNo(value)),
            _ => self.recv_ts = Some(Nanos(value)),
        }
        Ok(())
    }

    fn cause(self) -> Option<Cause> {
        Some(Cause {
            venue: self.venue?,
            seq: self.seq?,
            recv_ts: self.recv_ts?,
        })
    }
}

pub(crate) fn put_cause(e: &mut Encoder<'_>, cause: &Option<Cause>) {
    if let Some(cause) = cause {
        e.unsigned(tag::CAUSE_VENUE, cause.venue as u64);
        e.unsigned(tag::CAUSE_SEQ, cause.seq.0);
        e.unsigned(tag::CAUSE_RECV_TS, cause.recv_ts.0);
    }
}

fn put_price(e: &mut Encoder<'_>, tag: u32, price: Option<Price>) {
    if let Some(price) = price {
        e.price(tag, price);
    }
}

fn small(m: &Message<'_>, f: Field) -> Result<u16, Fault> {
    u16::try_from(m.unsigned(f)?).map_err(|_| Fault::value(f.tag))
}

fn symbol(m: &Message<'_>, f: Field) -> Result<Symbol, Fault> {
    Symbol::new(m.value(f)).ok_or(Fault::value(f.tag))
}

fn side(m: &Message<'_>, f: Field) -> Result<Side, Fault> {
    // Not by a branch, which nobody could predict.
    let side = Side::BOTH.get(usize::from(m.char(f)?.wrapping_sub(b'1')));
    side.copied().ok_or(Fault::value(f.tag))
}

/// Side (54) as sent.
pub(crate) const fn side_char(side: Side) -> u8 {
    b'1' + side as u8
}

/// What an order is once it may trade, and whether it waits for a trigger until then.
fn order_type(m: &Message<'_>, f: Field) -> Result<(OrderType, bool), Fault> {
    match m.char(f)? {
        b'1' => Ok((OrderType::Market, false)),
        b'2' => Ok((OrderType::Limit, false)),
        b'3' => Ok((OrderType::Market, true)),
        b'4' => Ok((OrderType::Limit, true)),
        _ => Err(Fault::value(f.tag)),
    }
}

/// OrdType (40) as sent.
fn order_type_char(order_type: OrderType, stop: Option<Price>) -> u8 {
    b'0' + order_type as u8 + if stop.is_some() { 2 } else { 0 }
}

/// A stop order has its trigger; what others say of one is nothing.
fn trigger(is_stop: bool, stop: Option<Price>) -> Result<Option<Price>, Fault> {
    match (is_stop, stop) {
        (true, None) => Err(Fault::missing(tag::STOP_PX)),
        (is_stop, stop) => Ok(stop.filter(|_| is_stop)),
    }
}

fn time_in_force(m: &Message<'_>, f: Field) -> Result<TimeInForce, Fault> {
    TimeInForce::from_char(m.char(f)?).ok_or(Fault::value(f.tag))
}

impl NewOrderSingle {
    /// MsgType (35).
    pub const MSG_TYPE: &'static [u8] = b"D";

    /// Reads the fields of a message of type D.
    pub fn decode(m: &Message<'_>) -> Result<NewOrderSingle, Fault> {
        let mut out = NewOrderSingle {
            cl_ord_id: Id::EMPTY,
            symbol: Symbol::EMPTY,
            side: Side::Bid,
            transact_time: Nanos::ZERO,
            qty: Qty::ZERO,
            order_type: OrderType::Limit,
            price: None,
            stop: None,
            time_in_force: TimeInForce::Day,
            cause: None,
        };
        let (mut seen, mut cause) = (Seen::default(), CauseFields::default());
        let mut is_stop = false;
        for &f in m.fields() {
            #[rustfmt::skip]
            let bit = match f.tag {
                tag::CL_ORD_ID => { out.cl_ord_id = m.text(f)?; 0 }
                tag::SYMBOL => { out.symbol = symbol(m, f)?; 1 }
                tag::SIDE => { out.side = side(m, f)?; 2 }
                tag::TRANSACT_TIME => { out.transact_time = m.timestamp(f)?; 3 }
                tag::ORDER_QTY => { out.qty = m.qty(f)?; 4 }
                tag::ORD_TYPE => { (out.order_type, is_stop) = order_type(m, f)?; 5 }
                tag::PRICE => { out.price = Some(m.price(f)?); 6 }
                tag::TIME_IN_FORCE => { out.time_in_force = time_in_force(m, f)?; 7 }
                tag::CAUSE_VENUE => { cause.read(m, f)?; 8 }
                tag::CAUSE_SEQ => { cause.read(m, f)?; 9 }
                tag::CAUSE_RECV_TS => { cause.read(m, f)?; 10 }
                tag::STOP_PX => { out.stop = Some(m.price(f)?); 11 }
                _ => continue,
            };
            seen.mark(bit, f.tag)?;
        }
        seen.require(&[
            tag::CL_ORD_ID,
            tag::SYMBOL,
            tag::SIDE,
            tag::TRANSACT_TIME,
            tag::ORDER_QTY,
            tag::ORD_TYPE,
        ])?;
        out.stop = trigger(is_stop, out.stop)?;
        out.cause = cause.cause();
        Ok(out)
    }

    /// Writes the fields after the header: what [`crate::Session::send`] asks for.
    pub fn encode(&self, e: &mut Encoder<'_>, stamp: &mut Stamp) {
        e.text(tag::CL_ORD_ID, self.cl_ord_id.as_bytes());
        e.unsigned(tag::ORDER_QTY, self.qty.0 as u64);
        e.char(tag::ORD_TYPE, order_type_char(self.order_type, self.stop));
        put_price(e, tag::PRICE, self.price);
        e.char(tag::SIDE, side_char(self.side));
        put_price(e, tag::STOP_PX, self.stop);
        e.text(tag::SYMBOL, self.symbol.as_bytes());
        e.char(tag::TIME_IN_FORCE, b'0' + self.time_in_force as u8);
        e.timestamp(tag::TRANSACT_TIME, stamp, self.transact_time);
        put_cause(e, &self.cause);
    }
}

impl OrderCancelRequest {
    /// MsgType (35).
    pub const MSG_TYPE: &'static [u8] = b"F";

    /// Reads the fields of a message of type F.
    pub fn decode(m: &Message<'_>) -> Result<OrderCancelRequest, Fault> {
        let mut out = OrderCancelRequest {
            cl_ord_id: Id::EMPTY,
            orig_cl_ord_id: Id::EMPTY,
            order_id: Id::EMPTY,
            symbol: Symbol::EMPTY,
            side: Side::Bid,
            transact_time: Nanos::ZERO,
            qty: Qty::ZERO,
            cause: None,
        };
        let (mut seen, mut cause) = (Seen::default(), CauseFields::default());
        for &f in m.fields() {
            #[rustfmt::skip]
            let bit = match f.tag {
                tag::CL_ORD_ID => { out.cl_ord_id = m.text(f)?; 0 }
                tag::ORIG_CL_ORD_ID => { out.orig_cl_ord_id = m.text(f)?; 1 }
                tag::SYMBOL => { out.symbol = symbol(m, f)?; 2 }
                tag::SIDE => { out.side = side(m, f)?; 3 }
                tag::TRANSACT_TIME => { out.transact_time = m.timestamp(f)?; 4 }
                tag::ORDER_QTY => { out.qty = m.qty(f)?; 5 }
                tag::ORDER_ID => { out.order_id = m.text(f)?; 6 }
                tag::CAUSE_VENUE => { cause.read(m, f)?; 7 }
                tag::CAUSE_SEQ => { cause.read(m, f)?; 8 }
                tag::CAUSE_RECV_TS => { cause.read(m, f)?; 9 }
                _ => continue,
            };
            seen.mark(bit, f.tag)?;
        }
        seen.require(&[
            tag::CL_ORD_ID,
            tag::ORIG_CL_ORD_ID,
            tag::SYMBOL,
            tag::SIDE,
            tag::TRANSACT_TIME,
            tag::ORDER_QTY,
        ])?;
        out.cause = cause.cause();
        Ok(out)
    }

    /// Writes the fields after the header: what [`crate::Session::send`] asks for.
    pub fn encode(&self, e: &mut Encoder<'_>, stamp: &mut Stamp) {
        e.text(tag::CL_ORD_ID, self.cl_ord_id.as_bytes());
        e.text_if(tag::ORDER_ID, self.order_id.as_bytes());
        e.unsigned(tag::ORDER_QTY, self.qty.0 as u64);
        e.text(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id.as_bytes());
        e.char(tag::SIDE, side_char(self.side));
        e.text(tag::SYMBOL, self.symbol.as_bytes());
        e.timestamp(tag::TRANSACT_TIME, stamp, self.transact_time);
        put_cause(e, &self.cause);
    }
}

impl OrderCancelReplaceRequest {
    /// MsgType (35).
    pub const MSG_TYPE: &'static [u8] = b"G";

    /// Reads the fields of a message of type G.
    pub fn decode(m: &Message<'_>) -> Result<OrderCancelReplaceRequest, Fault> {
        let mut out = OrderCancelReplaceRequest {
            cl_ord_id: Id::EMPTY,
            orig_cl_ord_id: Id::EMPTY,
            order_id: Id::EMPTY,
            symbol: Symbol::EMPTY,
            side: Side::Bid,
            transact_time: Nanos::ZERO,
            qty: Qty::ZERO,
            order_type: OrderType::Limit,
            price: None,
            stop: None,
            time_in_force: TimeInForce::Day,
            cause: None,
        };
        let (mut seen, mut cause) = (Seen::default(), CauseFields::default());
        let mut is_stop = false;
        for &f in m.fields() {
            #[rustfmt::skip]
            let bit = match f.tag {
                tag::CL_ORD_ID => { out.cl_ord_id = m.text(f)?; 0 }
                tag::ORIG_CL_ORD_ID => { out.orig_cl_ord_id = m.text(f)?; 1 }
                tag::SYMBOL => { out.symbol = symbol(m, f)?; 2 }
                tag::SIDE => { out.side = side(m, f)?; 3 }
                tag::TRANSACT_TIME => { out.transact_time = m.timestamp(f)?; 4 }
                tag::ORDER_QTY => { out.qty = m.qty(f)?; 5 }
                tag::ORD_TYPE => { (out.order_type, is_stop) = order_type(m, f)?; 6 }
                tag::ORDER_ID => { out.order_id = m.text(f)?; 7 }
                tag::PRICE => { out.price = Some(m.price(f)?); 8 }
                tag::TIME_IN_FORCE => { out.time_in_force = time_in_force(m, f)?; 9 }
                tag::CAUSE_VENUE => { cause.read(m, f)?; 10 }
                tag::CAUSE_SEQ => { cause.read(m, f)?; 11 }
                tag::CAUSE_RECV_TS => { cause.read(m, f)?; 12 }
                tag::STOP_PX => { out.stop = Some(m.price(f)?); 13 }
                _ => continue,
            };
            seen.mark(bit, f.tag)?;
        }
        seen.require(&[
            tag::CL_ORD_ID,
            tag::ORIG_CL_ORD_ID,
            tag::SYMBOL,
            tag::SIDE,
            tag::TRANSACT_TIME,
            tag::ORDER_QTY,
            tag::ORD_TYPE,
        ])?;
        out.stop = trigger(is_stop, out.stop)?;
        out.cause = cause.cause();
        Ok(out)
    }

    /// Writes the fields after the header: what [`crate::Session::send`] asks for.
    pub fn encode(&self, e: &mut Encoder<'_>, stamp: &mut Stamp) {
        e.text(tag::CL_ORD_ID, self.cl_ord_id.as_bytes());
        e.text_if(tag::ORDER_ID, self.order_id.as_bytes());
        e.unsigned(tag::ORDER_QTY, self.qty.0 as u64);
        e.char(tag::ORD_TYPE, order_type_char(self.order_type, self.stop));
        e.text(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id.as_bytes());
        put_price(e, tag::PRICE, self.price);
        e.char(tag::SIDE, side_char(self.side));
        put_price(e, tag::STOP_PX, self.stop);
        e.text(tag::SYMBOL, self.symbol.as_bytes());
        e.char(tag::TIME_IN_FORCE, b'0' + self.time_in_force as u8);
        e.timestamp(tag::TRANSACT_TIME, stamp, self.transact_time);
        put_cause(e, &self.cause);
    }
}

/// ExecType (150); up to FIX 4.2 a fill was 1 or 2.
#[inline]
fn exec_type(c: u8) -> Option<ExecType> {
    match c {
        b'1' | b'2' => Some(ExecType::Trade),
        _ => ExecType::from_char(c),
    }
}

impl ExecutionReport {
    /// MsgType (35).
    pub const MSG_TYPE: &'static [u8] = b"8";

    /// What a report says that says nothing.
    const EMPTY: ExecutionReport = ExecutionReport {
        order_id: Id::EMPTY,
        cl_ord_id: Id::EMPTY,
        orig_cl_ord_id: Id::EMPTY,
        exec_id: Id::EMPTY,
        exec_type: ExecType::New,
        ord_status: OrdStatus::New,
        ord_rej_reason: None,
        symbol: Symbol::EMPTY,
        side: Side::Bid,
        qty: Qty::ZERO,
        order_type: OrderType::Limit,
        price: None,
        stop: None,
        is_working: false,
        time_in_force: TimeInForce::Day,
        last_qty: Qty::ZERO,
        last_px: None,
        leaves_qty: Qty::ZERO,
        cum_qty: Qty::ZERO,
        avg_px: Price::from_raw(0),
        transact_time: Nanos::ZERO,
        cause: None,
        text: Reason::EMPTY,
    };

    /// What is to be said of an order that has come, before its numbers (37, 17) are: it is new, and nothing
    /// of it has traded.
    pub fn of(order: &NewOrderSingle) -> ExecutionReport {
        ExecutionReport {
            order_id: Id::EMPTY,
            cl_ord_id: order.cl_ord_id,
            orig_cl_ord_id: Id::EMPTY,
            exec_id: Id::EMPTY,
            exec_type: ExecType::New,
            ord_status: OrdStatus::New,
            ord_rej_reason: None,
            symbol: order.symbol,
            side: order.side,
            qty: order.qty,
            order_type: order.order_type,
            price: order.price,
            stop: order.stop,
            is_working: false,
            time_in_force: order.time_in_force,
            last_qty: Qty::ZERO,
            last_px: None,
            leaves_qty: order.qty,
            cum_qty: Qty::ZERO,
            avg_px: Price::ZERO,
            transact_time: order.transact_time,
            cause: order.cause,
            text: Reason::EMPTY,
        }
    }

    /// Reads the fields of a message of type 8, of FIX 4.1 to 4.2 too: there ExecTransType (20) says that a
    /// fill is cancelled or that the report is only the status. A correction (20=2) is refused: it changes
    /// what was told before.
    #[inline]
    pub fn decode(m: &Message<'_>) -> Result<ExecutionReport, Fault> {
        let mut report = Ok(ExecutionReport::EMPTY);
        execution::read(m, &mut report);
        report
    }

    /// The same by one field after the other.
    #[inline(never)]
    fn of_any_fields(m: &Message<'_>) -> Result<ExecutionReport, Fault> {
        let mut out = ExecutionReport::EMPTY;
        let (mut seen, mut cause) = (Seen::default(), CauseFields::default());
        let mut is_stop = None;
        let mut transaction = None;
        for &f in m.fields() {
            #[rustfmt::skip]
            let bit = match f.tag {
                tag::ORDER_ID => { out.order_id = m.text(f)?; 0 }
                tag::EXEC_ID => { out.exec_id = m.text(f)?; 1 }
                tag::EXEC_TYPE => { out.exec_type = exec_type(m.char(f)?).ok_or(Fault::value(f.tag))?; 2 }
                tag::ORD_STATUS => { out.ord_status = OrdStatus::from_char(m.char(f)?).ok_or(Fault::value(f.tag))?; 3 }
                tag::SYMBOL => { out.symbol = symbol(m, f)?; 4 }
                tag::SIDE => { out.side = side(m, f)?; 5 }
                tag::LEAVES_QTY => { out.leaves_qty = m.qty(f)?; 6 }
                tag::CUM_QTY => { out.cum_qty = m.qty(f)?; 7 }
                tag::AVG_PX => { out.avg_px = m.price(f)?; 8 }
                tag::CL_ORD_ID => { out.cl_ord_id = m.text(f)?; 9 }
                tag::ORIG_CL_ORD_ID => { out.orig_cl_ord_id = m.text(f)?; 10 }
                tag::ORD_REJ_REASON => { out.ord_rej_reason = Some(small(m, f)?); 11 }
                tag::ORDER_QTY => { out.qty = m.qty(f)?; 12 }
                tag::ORD_TYPE => {
                    let (order_type, has_trigger) = order_type(m, f)?;
                    (out.order_type, is_stop) = (order_type, Some(has_trigger));
                    13
                }
                tag::PRICE => { out.price = Some(m.price(f)?); 14 }
                tag::TIME_IN_FORCE => { out.time_in_force = time_in_force(m, f)?; 15 }
                tag::LAST_QTY => { out.last_qty = m.qty(f)?; 16 }
                tag::LAST_PX => { out.last_px = Some(m.price(f)?); 17 }
                tag::TRANSACT_TIME => { out.transact_time = m.timestamp(f)?; 18 }
                tag::TEXT => { out.text = Reason::lossy(m.value(f)); 19 }
                tag::CAUSE_VENUE => { cause.read(m, f)?; 20 }
                tag::CAUSE_SEQ => { cause.read(m, f)?; 21 }
                tag::CAUSE_RECV_TS => { cause.read(m, f)?; 22 }
                tag::EXEC_TRANS_TYPE => { transaction = Some(m.char(f)?); 23 }
                tag::STOP_PX => { out.stop = Some(m.price(f)?); 24 }
                tag::WORKING_INDICATOR => { out.is_working = m.boolean(f)?; 25 }
                _ => continue,
            };
            seen.mark(bit, f.tag)?;
        }
        out.exec_type =
            execution::transacted(out.exec_type, transaction).ok_or(Fault::value(tag::EXEC_TRANS_TYPE))?;
        seen.require(&[
            tag::ORDER_ID,
            tag::EXEC_ID,
            tag::EXEC_TYPE,
            tag::ORD_STATUS,
            tag::SYMBOL,
            tag::SIDE,
            tag::LEAVES_QTY,
            tag::CUM_QTY,
            tag::AVG_PX,
        ])?;
        (out.stop, out.is_working) = execution::triggered(out.stop, is_stop, out.is_working);
        out.cause = cause.cause();
        Ok(out)
    }

    /// Writes the fields after the header: what [`crate::Session::send`] asks for.
    pub fn encode(&self, e: &mut Encoder<'_>, stamp: &mut Stamp) {
        e.price(tag::AVG_PX, self.avg_px);
        e.text_if(tag::CL_ORD_ID, self.cl_ord_id.as_bytes());
        e.unsigned(tag::CUM_QTY, self.cum_qty.0 as u64);
        e.text(tag::EXEC_ID, self.exec_id.as_bytes());
        put_price(e, tag::LAST_PX, self.last_px);
        if !self.last_qty.is_zero() {
            e.unsigned(tag::LAST_QTY, self.last_qty.0 as u64);
        }
        e.text(tag::ORDER_ID, self.order_id.as_bytes());
        e.unsigned(tag::ORDER_QTY, self.qty.0 as u64);
        e.char(tag::ORD_STATUS, self.ord_status as u8);
        e.char(tag::ORD_TYPE, order_type_char(self.order_type, self.stop));
        e.text_if(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id.as_bytes());
        put_price(e, tag::PRICE, self.price);
        e.char(tag::SIDE, side_char(self.side));
        e.text(tag::SYMBOL, self.symbol.as_bytes());
        put_price(e, tag::STOP_PX, self.stop);
        e.text_if(tag::TEXT, self.text.as_bytes());
        e.char(tag::TIME_IN_FORCE, b'0' + self.time_in_force as u8);
        e.timestamp(tag::TRANSACT_TIME, stamp, self.transact_time);
        if self.is_working {
            e.char(tag::WORKING_INDICATOR, b'Y');
        }
        if let Some(reason) = self.ord_rej_reason {
            e.unsigned(tag::ORD_REJ_REASON, reason as u64);
        }
        e.char(tag::EXEC_TYPE, self.exec_type as u8);
        e.unsigned(tag::LEAVES_QTY, self.leaves_qty.0 as u64);
        put_cause(e, &self.cause);
    }
}

impl OrderCancelReject {
    /// MsgType (35).
    pub const MSG_TYPE: &'static [u8] = b"9";

    /// Reads the fields of a message of type 9.
    pub fn decode(m: &Message<'_>) -> Result<OrderCancelReject, Fault> {
        let mut out = OrderCancelReject {
            order_id: Id::EMPTY,
            cl_ord_id: Id::EMPTY,
            orig_cl_ord_id: Id::EMPTY,
            ord_status: OrdStatus::New,
            response_to: CancelKind::Cancel,
            reason: None,
            text: Reason::EMPTY,
        };
        let mut seen = Seen::default();
        for &f in m.fields() {
            #[rustfmt::skip]
            let bit = match f.tag {
                tag::ORDER_ID => { out.order_id = m.text(f)?; 0 }
                tag::CL_ORD_ID => { out.cl_ord_id = m.text(f)?; 1 }
                tag::ORIG_CL_ORD_ID => { out.orig_cl_ord_id = m.text(f)?; 2 }
                tag::ORD_STATUS => { out.ord_status = OrdStatus::from_char(m.char(f)?).ok_or(Fault::value(f.tag))?; 3 }
                tag::CXL_REJ_RESPONSE_TO => {
                    out.response_to = match m.char(f)? {
                        b'1' => CancelKind::Cancel,
                        b'2' => CancelKind::Replace,
                        _ => return Err(Fault::value(f.tag)),
                    };
                    4
                }
                tag::CXL_REJ_REASON => { out.reason = Some(small(m, f)?); 5 }
                tag::TEXT => { out.text = Reason::lossy(m.value(f)); 6 }
                _ => continue,
            };
            seen.mark(bit, f.tag)?;
        }
        seen.require(&[
            tag::ORDER_ID,
            tag::CL_ORD_ID,
            tag::ORIG_CL_ORD_ID,
            tag::ORD_STATUS,
            tag::CXL_REJ_RESPONSE_TO,
        ])?;
        Ok(out)
    }

    /// Writes the fields after the header: what [`crate::Session::send`] asks for.
    pub fn encode(&self, e: &mut Encoder<'_>) {
        e.text(tag::CL_ORD_ID, self.cl_ord_id.as_bytes());
        e.text(tag::ORDER_ID, self.order_id.as_bytes());
        e.char(tag::ORD_STATUS, self.ord_status as u8);
        e.text(tag::ORIG_CL_ORD_ID, self.orig_cl_ord_id.as_bytes());
        e.text_if(tag::TEXT, self.text.as_bytes());
        if let Some(reason) = self.reason {
            e.unsigned(tag::CXL_REJ_REASON, reason as u64);
        }
        e.char(tag::CXL_REJ_RESPONSE_TO, self.response_to as u8);
    }
}

impl BusinessMessageReject {
    /// MsgType (35).
    pub const MSG_TYPE: &'static [u8] = b"j";

    /// Reads the fields of a message of type j.
    pub fn decode(m: &Message<'_>) -> Result<BusinessMessageReject, Fault> {
        let mut out = BusinessMessageReject {
            ref_seq: SeqNo(0),
            ref_msg_type: MsgType::EMPTY,
            ref_id: Id::EMPTY,
            reason: 0,
            text: Reason::EMPTY,
        };
        let mut seen = Seen::default();
        for &f in m.fields() {
            #[rustfmt::skip]
            let bit = match f.tag {
                tag::REF_MSG_TYPE => { out.ref_msg_type = m.text(f)?; 0 }
                tag::BUSINESS_REJECT_REASON => { out.reason = small(m, f)?; 1 }
                tag::REF_SEQ_NUM => { out.ref_seq = SeqNo(m.unsigned(f)?); 2 }
                tag::BUSINESS_REJECT_REF_ID => { out.ref_id = m.text(f)?; 3 }
                tag::TEXT => { out.text = Reason::lossy(m.value(f)); 4 }
                _ => continue,
            };
            seen.mark(bit, f.tag)?;
        }
        seen.require(&[tag::REF_MSG_TYPE, tag::BUSINESS_REJECT_REASON])?;
        Ok(out)
    }

    /// Writes the fields after the header: what [`crate::Session::send`] asks for.
    pub fn encode(&self, e: &mut Encoder<'_>) {
        if self.ref_seq.0 != 0 {
            e.unsigned(tag::REF_SEQ_NUM, self.ref_seq.0);
        }
        e.text_if(tag::TEXT, self.text.as_bytes());
        e.text(tag::REF_MSG_TYPE, self.ref_msg_type.as_bytes());
        e.text_if(tag::BUSINESS_REJECT_REF_ID, self.ref_id.as_bytes());
        e.unsigned(tag::BUSINESS_REJECT_REASON, self.reason as u64);
    }
}
