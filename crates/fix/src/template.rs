//! NewOrderSingle from a prepared buffer: only what changes is written, every field has a fixed width, so
//! BodyLength is a constant and the checksum is that of the constant bytes plus that of the patched ones.
//!
//! Leading zeros in numbers are allowed by FIX 4.4, volume 1, "FIX Field Data Types" (int: "may contain
//! leading zeros", float: the same and trailing zeros).

use crate::decode::{Frame, Index, frame};
use crate::digits::two_of_digits8;
use crate::encode::{Encoder, put_check_sum};
use crate::message::{NewOrderSingle, side_char};
use crate::number::{byte_sum, digits8};
use crate::session::{Again, Reservation, SendError, Session};
use crate::store::Store;
use crate::tag;
use crate::time::{Precision, Stamp};
use alloc::boxed::Box;
use alloc::vec;
use tickwire_market::{
    Cause, ClientOrderId, Nanos, OrderIntent, OrderType, Price, Qty, Side, Symbol, TimeInForce,
};

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

impl NewOrder {
    /// What a decision to send a limit order says; `None` of every other.
    #[inline]
    pub fn of(intent: &OrderIntent) -> Option<NewOrder> {
        let &OrderIntent::New {
            id,
            side,
            order_type: OrderType::Limit,
            price,
            stop: None,
            qty,
            time_in_force,
            cause,
            ..
        } = intent
        else {
            return None;
        };
        Some(NewOrder {
            id,
            side,
            price,
            qty,
            time_in_force,
            cause,
        })
    }
}

/// Eight digits in the message and what they say now: written only when they change, which the leading halves
/// of identifiers and prices seldom do.
#[derive(Clone, Copy, Debug)]
struct Digits {
    at: usize,
    value: u64,
    sum: u8,
}

impl Digits {
    /// Eight zeros are there.
    fn new(at: usize) -> Digits {
        Digits {
            at,
            value: 0,
            sum: byte_sum(digits8(0)),
        }
    }

    /// Writes `n`, below 10^8; what the digits add to the checksum.
    #[inline]
    fn put(&mut self, buf: &mut [u8], n: u64) -> u8 {
        if n != self.value {
            let word = digits8(n as u32);
            buf[self.at..self.at + 8].copy_from_slice(&word.to_le_bytes());
            (self.value, self.sum) = (n, byte_sum(word));
        }
        self.sum
    }
}

/// Two runs of eight digits that tend to change together, made at once: which belong to one number does not
/// matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TwoDigits {
    at: [usize; 2],
    values: [u64; 2],
    sum: u8,
}

impl TwoDigits {
    /// Eight zeros are at each place.
    pub(crate) fn new(at: [usize; 2]) -> TwoDigits {
        TwoDigits {
            at,
            values: [0; 2],
            sum: byte_sum(digits8(0)).wrapping_mul(2),
        }
    }

    /// Where they are.
    pub(crate) fn at(&self) -> [usize; 2] {
        self.at
    }

    /// Writes both numbers, below 10^8; what the digits add to the checksum.
    #[inline(always)]
    pub(crate) fn put(&mut self, buf: &mut [u8], numbers: [u64; 2]) -> u8 {
        if numbers != self.values {
            let (words, sum) = two_of_digits8(numbers.map(|n| n as u32));
            for (at, word) in self.at.into_iter().zip(words) {
                buf[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            (self.values, self.sum) = (numbers, sum);
        }
        self.sum
    }
}

/// Where the patched values are. `low` is the last eight digits of a number, `high` those before them.
#[derive(Clone, Copy, Debug)]
struct Slots {
    seq_and_id_low: TwoDigits,
    /// Behind the point.
    price_and_cause_seq_low: TwoDigits,
    cause_recv_ts_low: TwoDigits,
    id_and_cause_seq_high: TwoDigits,
    /// Before the point.
    qty_and_price_high: TwoDigits,
    cause_recv_ts_high: Digits,
    side: usize,
    time_in_force: usize,
    cause_venue: usize,
    sending_time: usize,
    transact_time: usize,
}

/// One time, wherever it is said (SendingTime, TransactTime): the second is rewritten when it changes, else
/// the fraction.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    stamp: Stamp,
    precision: Precision,
    second: u64,
    /// In units of the precision.
    fraction: u32,
    sum: u8,
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
    times: Times,
}

const E8: u64 = 100_000_000;
/// Identities, a symbol and every other field at its widest are below this.
const MESSAGE_MAX: usize = 512;

impl OrderTemplate {
    /// A prepared NewOrderSingle for one instrument of a session. `None` if the symbol is empty, the peer not
    /// known yet, or every message carries LastMsgSeqNumProcessed, whose width changes.
    pub fn new<S: Store>(session: &Session<S>, symbol: Symbol) -> Option<OrderTemplate> {
        let header = session.prepared_header()?;
        let (version, precision) = (header.version(), header.precision());
        let mut stamp = Stamp::new(precision);
        let mut scratch = [0; MESSAGE_MAX];
        let mut e = Encoder::new(&mut scratch, version);
        let time = stamp.format(Nanos::ZERO);
        header.put(&mut e, NewOrderSingle::MSG_TYPE, time);
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
        e.text(tag::CAUSE_RECV_TS, &[b'0'; 24]);
        let message = e.finish().ok()?;
        let len = message.len();
        if !matches!(frame(message, len), Frame::Whole(_)) {
            return None;
        }
        let mut index = Index::new(32);
        let decoded = index.decode(message).ok()?;
        let at = |tag| decoded.find(tag).map(|f| f.offset());
        let (price, recv) = (at(tag::PRICE)?, at(tag::CAUSE_RECV_TS)?);
        let (id, cause_seq) = (at(tag::CL_ORD_ID)?, at(tag::CAUSE_SEQ)?);
        let slots = Slots {
            seq_and_id_low: TwoDigits::new([at(tag::MSG_SEQ_NUM)?, id + 8]),
            price_and_cause_seq_low: TwoDigits::new([price + 9, cause_seq + 8]),
            cause_recv_ts_low: TwoDigits::new([recv + 8, recv + 16]),
            id_and_cause_seq_high: TwoDigits::new([id, cause_seq]),
            qty_and_price_high: TwoDigits::new([at(tag::ORDER_QTY)?, price]),
            cause_recv_ts_high: Digits::new(recv),
            side: at(tag::SIDE)?,
            time_in_force: at(tag::TIME_IN_FORCE)?,
            cause_venue: at(tag::CAUSE_VENUE)?,
            sending_time: at(tag::SENDING_TIME)?,
            transact_time: at(tag::TRANSACT_TIME)?,
        };
        let time = precision.width();
        // The price's point stays: its slot is two runs of eight.
        let twos = [
            slots.seq_and_id_low,
            slots.price_and_cause_seq_low,
            slots.cause_recv_ts_low,
            slots.id_and_cause_seq_high,
            slots.qty_and_price_high,
        ];
        let patched = [
            (slots.cause_recv_ts_high.at, 8),
            (slots.side, 1),
            (slots.time_in_force, 1),
            (slots.cause_venue, 2),
            (slots.sending_time, time),
            (slots.transact_time, time),
        ];
        let sum = |bytes: &[u8]| bytes.iter().fold(0u8, |sum, &b| sum.wrapping_add(b));
        let constant_sum = twos
            .iter()
            .flat_map(|two| two.at.map(|at| (at, 8)))
            .chain(patched)
            .fold(sum(&message[..len - 7]), |rest, (at, width)| {
                rest.wrapping_sub(sum(&message[at..at + width]))
            });
        let mut buf = vec![0; len + MESSAGE_MAX].into_boxed_slice();
        buf[..len].copy_from_slice(message);
        let times = Times::new(stamp, precision);
        Some(OrderTemplate {
            buf,
            len,
            slots,
            constant_sum,
            symbol,
            times,
        })
    }

    /// The instrument.
    pub fn symbol(&self) -> Symbol {
        self.symbol
    }

    /// Sends an order: the bytes are for the caller to transmit at once. Refused while other bytes of the
    /// session wait to be transmitted. Values beyond the template's widths are written by the general
    /// encoder. TransactTime is SendingTime. An order that lives for a moment only (immediate or cancel, fill
    /// or kill) wants [`Again::GapFill`]: an order of the past must not come to life.
    ///
    /// # Errors
    /// As [`Session::reserve`] and [`Reservation::commit`](crate::Reservation::commit); nothing was sent
    /// then.
    pub fn send<S: Store>(
        &mut self,
        session: &mut Session<S>,
        now: Nanos,
        order: &NewOrder,
        again: Again,
    ) -> Result<&[u8], SendError> {
        self.send_as(session, now, order, again, false)
    }

    /// Writes an order as it would be sent next, and keeps nothing of it: no number is used and no byte given
    /// out. For a loop that has nothing else to do, so that the message and the code that writes it are in
    /// the caches when one has to leave.
    pub fn rehearse<S: Store>(&mut self, session: &mut Session<S>, now: Nanos, order: &NewOrder) {
        let _ = self.send_as(session, now, order, Again::GapFill, true);
    }

    // One copy of the code, so that a rehearsal brings into the caches what an order needs.
    #[inline(never)]
    fn send_as<S: Store>(
        &mut self,
        session: &mut Session<S>,
        now: Nanos,
        order: &NewOrder,
        again: Again,
        is_rehearsal: bool,
    ) -> Result<&[u8], SendError> {
        let reserved = session.reserve_as(now, is_rehearsal)?;
        if !self.patch(reserved.time(), reserved.seq().0, order) {
            // One that does not fit is written by the general encoder, which is not rehearsed.
            return match is_rehearsal {
                true => Err(SendError::NotEncodable),
                false => self.send_beyond(reserved, order, again),
            };
        }
        reserved.commit(self.message(), again)?;
        Ok(self.message())
    }

    #[cold]
    fn send_beyond<S: Store>(
        &mut self,
        mut reserved: Reservation<'_, S>,
        order: &NewOrder,
        again: Again,
    ) -> Result<&[u8], SendError> {
        let message = NewOrderSingle {
            cl_ord_id: order.id.into(),
            symbol: self.symbol,
            side: order.side,
            transact_time: reserved.time(),
            qty: order.qty,
            order_type: OrderType::Limit,
            price: Some(order.price),
            stop: None,
            time_in_force: order.time_in_force,
            cause: Some(order.cause),
        };
        let bytes = reserved.encoded(NewOrderSingle::MSG_TYPE, |e, stamp| message.encode(e, stamp))?;
        let copy = self.copy_of(bytes).ok_or(SendError::NotEncodable)?;
        reserved.commit(copy, again)?;
        Ok(copy)
    }

    /// Patches the message; `false` if a value does not fit its width (sequence number or quantity of more
    /// than 8 digits, identifiers of more than 16, a price that is negative, has nine decimals or more than 8
    /// digits).
    // One copy of the code, so that a rehearsal brings into the caches what an order needs.
    #[inline(never)]
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
            sending_time,
            transact_time,
            ..
        } = self.slots;
        let (buf, slots, cause) = (&mut self.buf[..self.len], &mut self.slots, order.cause);
        let (units, recv, venue) = (raw as u64 / 10, cause.recv_ts.0, cause.venue as u8);
        let sums = [
            self.constant_sum,
            slots.seq_and_id_low.put(buf, [seq, order.id.0 % E8]),
            slots
                .price_and_cause_seq_low
                .put(buf, [units % E8, cause.seq.0 % E8]),
            slots.cause_recv_ts_low.put(buf, [recv / E8 % E8, recv % E8]),
            slots
                .id_and_cause_seq_high
                .put(buf, [order.id.0 / E8, cause.seq.0 / E8]),
            slots
                .qty_and_price_high
                .put(buf, [order.qty.0 as u64, units / E8]),
            slots.cause_recv_ts_high.put(buf, recv / E8 / E8),
            put(buf, slots.side, side_char(order.side)),
            put(buf, slots.time_in_force, b'0' + order.time_in_force as u8),
            put(buf, slots.cause_venue, b'0' + venue / 10),
            put(buf, slots.cause_venue + 1, b'0' + venue % 10),
            self.times.put(buf, [sending_time, transact_time], now),
        ];
        let sum = sums.into_iter().fold(0u8, u8::wrapping_add);
        put_check_sum(&mut buf[self.len - 7..], sum);
        true
    }

    /// The message as last patched.
    #[inline]
    pub(crate) fn message(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    /// Room behind the message for one of the general encoder; `None` if it is too long.
    fn copy_of(&mut self, message: &[u8]) -> Option<&[u8]> {
        let to = self.buf.get_mut(self.len..self.len + message.len())?;
        to.copy_from_slice(message);
        Some(to)
    }
}

impl Times {
    /// Nothing is written yet.
    pub(crate) fn new(stamp: Stamp, precision: Precision) -> Times {
        Times {
            stamp,
            precision,
            second: u64::MAX,
            fraction: u32::MAX,
            sum: 0,
        }
    }

    /// Writes the time at all places; what they add to the checksum.
    #[inline]
    pub(crate) fn put<const N: usize>(&mut self, buf: &mut [u8], places: [usize; N], now: Nanos) -> u8 {
        let (second, nanos) = (now.0 / Nanos::SECOND, (now.0 % Nanos::SECOND) as u32);
        if second != self.second {
            self.second = second;
            self.put_whole(buf, places, now);
        }
        let fraction = match self.precision {
            Precision::Seconds => return self.sum.wrapping_mul(N as u8),
            Precision::Millis => nanos / 1_000_000,
            Precision::Micros => nanos / 1_000,
            Precision::Nanos => nanos,
        };
        if fraction != self.fraction {
            self.fraction = fraction;
            // The digits of 9 are 8 and 1; fewer are the first of 8.
            let (word, ninth) = (digits8(nanos / 10), b'0' + (nanos % 10) as u8);
            for at in places.map(|at| at + 18) {
                match self.precision {
                    Precision::Seconds => {}
                    Precision::Millis => buf[at..at + 3].copy_from_slice(&word.to_le_bytes()[..3]),
                    Precision::Micros => buf[at..at + 6].copy_from_slice(&word.to_le_bytes()[..6]),
                    Precision::Nanos => {
                        buf[at..at + 8].copy_from_slice(&word.to_le_bytes());
                        buf[at + 8] = ninth;
                    }
                }
            }
            self.sum = self.stamp.second_sum().wrapping_add(match self.precision {
                Precision::Seconds => 0,
                Precision::Millis => byte_sum(word & 0xff_ffff).wrapping_add(b'.'),
                Precision::Micros => byte_sum(word & 0xffff_ffff_ffff).wrapping_add(b'.'),
                Precision::Nanos => byte_sum(word).wrapping_add(ninth).wrapping_add(b'.'),
            });
        }
        self.sum.wrapping_mul(N as u8)
    }

    #[cold]
    fn put_whole<const N: usize>(&mut self, buf: &mut [u8], places: [usize; N], now: Nanos) {
        let text = self.stamp.format(now);
        for at in places {
            buf[at..at + text.len()].copy_from_slice(text);
        }
        self.sum = self.stamp.second_sum();
        self.fraction = u32::MAX; // of the second before
    }
}

/// Writes one character; what it adds to the checksum.
#[inline]
fn put(buf: &mut [u8], at: usize, c: u8) -> u8 {
    buf[at] = c;
    c
}
