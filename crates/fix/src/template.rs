//! NewOrderSingle from a prepared buffer: only what changes is written, every field has a fixed width, so BodyLength is
//! a constant and the checksum is that of the constant bytes plus that of the patched ones.
//!
//! Leading zeros in numbers are allowed by FIX 4.4, volume 1, "FIX Field Data Types" (int: "may contain leading
//! zeros", float: the same and trailing zeros).

use crate::decode::{Frame, Index, frame};
use crate::encode::{Encoder, put_check_sum};
use crate::message::side_char;
use crate::number::{byte_sum, digits8};
use crate::tag;
use crate::time::{Precision, Stamp};
use alloc::boxed::Box;
use alloc::vec;
use tickwire_market::{Cause, ClientOrderId, Nanos, Price, Qty, Side, Symbol, TimeInForce};

/// What changes from order to order of one instrument. All limit orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewOrder {
    /// ClOrdID (11): our number.
    pub id: ClientOrderId,
    /// Side (54).
    pub side: Side,
    /// Price (44).
    pub price: Price,
    /// OrderQty (38).
    pub qty: Qty,
    /// TimeInForce (59).
    pub time_in_force: TimeInForce,
    /// What caused it (20001 to 20003).
    pub cause: Cause,
}

/// Offsets of the patched values. Widths: numbers of 8, 16 or 24 digits, prices 8 + point + 8, one character, a
/// timestamp of the session's precision.
#[derive(Clone, Copy, Debug)]
struct Slots {
    seq: usize,
    sending_time: usize,
    id: usize,
    qty: usize,
    price: usize,
    side: usize,
    time_in_force: usize,
    transact_time: usize,
    cause_venue: usize,
    cause_seq: usize,
    cause_recv_ts: usize,
}

/// A prepared NewOrderSingle of one instrument and session.
#[derive(Clone, Debug)]
pub struct OrderTemplate {
    /// `len` bytes are the message; the rest is memory for orders that do not fit the fixed widths.
    buf: Box<[u8]>,
    len: usize,
    slots: Slots,
    /// Sum of the bytes that no slot covers, up to the CheckSum field.
    constant_sum: u8,
    symbol: Symbol,
    stamp: Stamp,
    /// The last time written, in units of 100 ms, and its sum: consecutive orders share them.
    recv_high: u64,
    recv_high_sum: u8,
}

const E8: u64 = 100_000_000;
/// Identities, a symbol and every other field at its widest are below this.
const MESSAGE_MAX: usize = 512;

impl OrderTemplate {
    /// `header` writes MsgType and the header fields, with eight digits of MsgSeqNum and a SendingTime of `precision`.
    /// `None` if the identities or the symbol are empty.
    pub(crate) fn new(
        symbol: Symbol,
        precision: Precision,
        header: impl FnOnce(&mut Encoder<'_>, &[u8]),
    ) -> Option<OrderTemplate> {
        let mut stamp = Stamp::new(precision);
        let mut scratch = [0; MESSAGE_MAX];
        let mut e = Encoder::new(&mut scratch);
        let time = stamp.format(Nanos::ZERO);
        header(&mut e, time);
        e.text(tag::CL_ORD_ID, &[b'0'; 16]);
        e.text(tag::ORDER_QTY, &[b'0'; 8]);
        e.text(tag::ORD_TYPE, b"2");
        e.text(tag::PRICE, b"00000000.00000000");
        e.text(tag::SIDE, b"0");
        e.text(tag::SYMBOL, symbol.as_bytes());
        e.text(tag::TIME_IN_FORCE, b"0");
        e.text(tag::TRANSACT_TIME, time);
        e.text(tag::CAUSE_VENUE, b"00");
        e.text(tag::CAUSE_SEQ, &[b'0'; 16]);
        e.text(tag::CAUSE_RECV_TS, &[b'0'; 20]);
        let message = e.finish().ok()?;
        let len = message.len();
        if !matches!(frame(message, len), Frame::Whole(_)) {
            return None;
        }
        let mut index = Index::new(32);
        let decoded = index.decode(message).ok()?;
        let at = |tag| decoded.find(tag).map(|f| f.offset());
        let slots = Slots {
            seq: at(tag::MSG_SEQ_NUM)?,
            sending_time: at(tag::SENDING_TIME)?,
            id: at(tag::CL_ORD_ID)?,
            qty: at(tag::ORDER_QTY)?,
            price: at(tag::PRICE)?,
            side: at(tag::SIDE)?,
            time_in_force: at(tag::TIME_IN_FORCE)?,
            transact_time: at(tag::TRANSACT_TIME)?,
            cause_venue: at(tag::CAUSE_VENUE)?,
            cause_seq: at(tag::CAUSE_SEQ)?,
            cause_recv_ts: at(tag::CAUSE_RECV_TS)?,
        };
        let time = precision.width();
        // The price's point stays: its slot is two runs of eight.
        let patched = [
            (slots.seq, 8),
            (slots.sending_time, time),
            (slots.id, 16),
            (slots.qty, 8),
            (slots.price, 8),
            (slots.price + 9, 8),
            (slots.side, 1),
            (slots.time_in_force, 1),
            (slots.transact_time, time),
            (slots.cause_venue, 2),
            (slots.cause_seq, 16),
            (slots.cause_recv_ts, 20),
        ];
        let sum = |bytes: &[u8]| bytes.iter().fold(0u8, |sum, &b| sum.wrapping_add(b));
        let constant_sum = patched
            .iter()
            .fold(sum(&message[..len - 7]), |rest, &(at, width)| {
                rest.wrapping_sub(sum(&message[at..at + width]))
            });
        let mut buf = vec![0; len + MESSAGE_MAX].into_boxed_slice();
        buf[..len].copy_from_slice(message);
        Some(OrderTemplate {
            buf,
            len,
            slots,
            constant_sum,
            symbol,
            stamp,
            recv_high: u64::MAX,
            recv_high_sum: 0,
        })
    }

    /// The instrument.
    pub fn symbol(&self) -> Symbol {
        self.symbol
    }

    /// Patches the message; `false` if a value does not fit its width (sequence number or quantity of more than 8
    /// digits, identifiers of more than 16, a price that is negative, has nine decimals or more than 8 digits).
    #[inline]
    pub(crate) fn patch(&mut self, now: Nanos, seq: u64, order: &NewOrder) -> bool {
        let raw = order.price.raw();
        // 8 digits, point, 8 decimals: raw units of 1e-9 must be a multiple of ten and below 1e17.
        if seq >= E8
            || order.qty.0 as u64 >= E8
            || order.id.0 >= E8 * E8
            || order.cause.seq.0 >= E8 * E8
            || !(0..100_000_000_000_000_000).contains(&raw)
            || raw % 10 != 0
        {
            return false;
        }
        let Slots {
            seq: seq_at,
            sending_time,
            id,
            qty,
            price,
            side,
            time_in_force,
            transact_time,
            ..
        } = self.slots;
        let mut sum = self.constant_sum;
        let mut add = |n: u8| sum = sum.wrapping_add(n);
        let buf = &mut self.buf[..];
        add(put8(buf, seq_at, seq));
        add(put8(buf, id, order.id.0 / E8));
        add(put8(buf, id + 8, order.id.0 % E8));
        add(put8(buf, qty, order.qty.0 as u64));
        let units = raw as u64 / 10;
        add(put8(buf, price, units / E8));
        add(put8(buf, price + 9, units % E8));
        add(put1(buf, side, side_char(order.side)));
        add(put1(buf, time_in_force, b'0' + order.time_in_force as u8));
        let (text, time_sum) = self.stamp.format_summed(now);
        buf[sending_time..sending_time + text.len()].copy_from_slice(text);
        buf[transact_time..transact_time + text.len()].copy_from_slice(text);
        add(time_sum.wrapping_mul(2));
        let venue = order.cause.venue as u8;
        add(put1(buf, self.slots.cause_venue, b'0' + venue / 10));
        add(put1(buf, self.slots.cause_venue + 1, b'0' + venue % 10));
        add(put8(buf, self.slots.cause_seq, order.cause.seq.0 / E8));
        add(put8(buf, self.slots.cause_seq + 8, order.cause.seq.0 % E8));
        let (high, low) = (order.cause.recv_ts.0 / E8, order.cause.recv_ts.0 % E8);
        let at = self.slots.cause_recv_ts;
        if high != self.recv_high {
            // Twelve digits as 4 + 8: 2^64 / 1e8 has twelve.
            let four = put8(buf, at, high / E8 * 10_000);
            self.recv_high = high;
            self.recv_high_sum = four
                .wrapping_sub(4 * b'0')
                .wrapping_add(put8(buf, at + 4, high % E8));
        }
        add(self.recv_high_sum);
        add(put8(buf, at + 12, low));
        put_check_sum(&mut buf[self.len - 7..self.len], sum);
        true
    }

    /// The message as last patched.
    #[inline]
    pub(crate) fn message(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    /// Room behind the message for one of the general encoder; `None` if it is too long.
    pub(crate) fn copy_of(&mut self, message: &[u8]) -> Option<&[u8]> {
        let to = self.buf.get_mut(self.len..self.len + message.len())?;
        to.copy_from_slice(message);
        Some(to)
    }
}

/// Writes eight digits; what they add to the checksum.
#[inline]
fn put8(buf: &mut [u8], at: usize, n: u64) -> u8 {
    let word = digits8(n as u32);
    buf[at..at + 8].copy_from_slice(&word.to_le_bytes());
    byte_sum(word)
}

#[inline]
fn put1(buf: &mut [u8], at: usize, c: u8) -> u8 {
    buf[at] = c;
    c
}
