//! NewOrderSingle of FIX 4.4 with every number of a fixed width: leading zeros are allowed (FIX 4.4, volume 1, "FIX
//! Field Data Types"), and where each digit lies then does not change from order to order.

use tickwire_fix::{Encoder, Precision, Stamp, Version, tag};
use tickwire_market::{Nanos, Qty, Side, Symbol};

use super::{Filled, PAYLOAD_AT};

/// The largest quantity that nine digits have room for.
pub const QTY_MOST: u32 = 999_999_999;
/// The highest price that five digits before and four behind the point have room for, in 1e-4.
pub const PRICE_MOST: u32 = 999_999_999;
/// The largest number of eight digits.
const NUMBER_MOST: u32 = 99_999_999;

/// What stands in every NewOrderSingle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FixText {
    /// SenderCompID (49).
    pub sender: String,
    /// TargetCompID (56).
    pub target: String,
    /// Account (1).
    pub account: String,
    /// What ClOrdID (11) begins with, before its eight digits.
    pub prefix: String,
    /// Symbol (55).
    pub symbol: Symbol,
    /// TradingSessionID (336): the board.
    pub board: String,
}

/// Where in the frame of an order what is filled in: the place of the first digit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixPlaces {
    /// Bytes of the frame without FCS.
    pub frame_size: usize,
    /// MsgSeqNum: 8 digits.
    pub message: usize,
    /// SendingTime's `HH:MM:SS.mmm`.
    pub sending: usize,
    /// ClOrdID's 8 digits.
    pub order: usize,
    /// Side: one.
    pub side: usize,
    /// TransactTime's `HH:MM:SS.mmm`.
    pub transact: usize,
    /// OrderQty: 9 digits.
    pub quantity: usize,
    /// Price: 5 digits, a point, 4 digits.
    pub price: usize,
    /// CheckSum: 3 digits.
    pub check_sum: usize,
}

const ACCOUNT: u32 = 1;
const TRADING_SESSION_ID: u32 = 336;
const NO_TRADING_SESSIONS: u32 = 386;

impl FixText {
    /// The message; `None` if a text is empty or has a separator, or a number has more digits than there are places.
    pub(super) fn message(&self, order: &Filled) -> Option<Vec<u8>> {
        let fits = order.user_ref <= NUMBER_MOST
            && order.message <= NUMBER_MOST
            && order.qty.0 <= QTY_MOST
            && order.price <= PRICE_MOST;
        if !fits {
            return None;
        }
        let mut buffer = vec![0; 1_024];
        let mut stamp = Stamp::new(Precision::Millis);
        let mut e = Encoder::new(&mut buffer, Version::Fix44);
        e.text(tag::MSG_TYPE, b"D");
        e.text(tag::SENDER_COMP_ID, self.sender.as_bytes());
        e.text(tag::TARGET_COMP_ID, self.target.as_bytes());
        e.text(tag::MSG_SEQ_NUM, format!("{:08}", order.message).as_bytes());
        e.timestamp(tag::SENDING_TIME, &mut stamp, order.time);
        e.text(tag::CL_ORD_ID, format!("{}{:08}", self.prefix, order.user_ref).as_bytes());
        e.text(ACCOUNT, self.account.as_bytes());
        e.char(NO_TRADING_SESSIONS, b'1');
        e.text(TRADING_SESSION_ID, self.board.as_bytes());
        e.text(tag::SYMBOL, self.symbol.as_bytes());
        let side = match order.side {
            Side::Bid => b'1',
            Side::Ask => b'2',
        };
        e.char(tag::SIDE, side);
        e.timestamp(tag::TRANSACT_TIME, &mut stamp, order.time);
        e.text(tag::ORDER_QTY, format!("{:09}", order.qty.0).as_bytes());
        e.char(tag::ORD_TYPE, b'2');
        let (whole, fraction) = (order.price / 10_000, order.price % 10_000);
        e.text(tag::PRICE, format!("{whole:05}.{fraction:04}").as_bytes());
        // Immediate or cancel.
        e.char(tag::TIME_IN_FORCE, b'3');
        e.finish().ok().map(<[u8]>::to_vec)
    }

    /// Where in the frame what is filled in; `None` if a text is empty or has a separator.
    pub fn places(&self) -> Option<FixPlaces> {
        let blank = Filled {
            sequence: 0,
            user_ref: 0,
            message: 0,
            time: Nanos::ZERO,
            side: Side::Bid,
            qty: Qty(0),
            price: 0,
        };
        let message = self.message(&blank)?;
        // Texts may hold what looks like a tag, but none holds a separator.
        let value = |tag: u32| {
            let wanted = format!("\u{1}{tag}=");
            let found = message.windows(wanted.len()).position(|bytes| bytes == wanted.as_bytes());
            found.map(|at| PAYLOAD_AT + at + wanted.len())
        };
        const DATE: usize = "YYYYMMDD-".len();
        Some(FixPlaces {
            frame_size: PAYLOAD_AT + message.len(),
            message: value(tag::MSG_SEQ_NUM)?,
            sending: value(tag::SENDING_TIME)? + DATE,
            order: value(tag::CL_ORD_ID)? + self.prefix.len(),
            side: value(tag::SIDE)?,
            transact: value(tag::TRANSACT_TIME)? + DATE,
            quantity: value(tag::ORDER_QTY)?,
            price: value(tag::PRICE)?,
            check_sum: value(tag::CHECK_SUM)?,
        })
    }
}
