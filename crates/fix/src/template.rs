//! NewOrderSingle from a prepared buffer: only what changes is written, every field has a fixed width, so
//! BodyLength is a constant and the checksum is that of the constant bytes plus that of the patched ones.
//!
//! Leading zeros in numbers are allowed by FIX 4.4, volume 1, "FIX Field Data Types" (int: "may contain
//! leading zeros", float: the same and trailing zeros).

use crate::decode::{Frame, Index, frame};
use crate::digits::digits8;
use crate::encode::{Encoder, put_check_sum};
use crate::message::{NewOrderSingle, side_char};
use crate::number::{byte_sum, over_power_of_ten};
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

/// Eight digits at each of some places, which are always written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DigitSlots<const N: usize> {
    pub(crate) at: [u16; N],
}

impl<const N: usize> DigitSlots<N> {
    /// `None` if a place is beyond 65 535.
    pub(crate) fn new(at: [usize; N]) -> Option<DigitSlots<N>> {
        let mut places = [0; N];
        for (to, at) in places.iter_mut().zip(at) {
            *to = u16::try_from(at).ok()?;
        }
        Some(DigitSlots { at: places })
    }

    /// Writes these digits.
    #[inline(always)]
    pub(crate) fn put(&self, buf: &mut [u8], words: [u64; N]) {
        for (at, word) in self.at.into_iter().zip(words) {
            let at = usize::from(at);
            buf[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Eight digits at each of four places and what they say now: written only when they change, which the high
/// parts of identifiers and times seldom do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptDigits {
    pub(crate) places: DigitSlots<4>,
    values: [u32; 4],
    sum: u8,
}

impl KeptDigits {
    /// Eight zeros are there.
    pub(crate) fn new(at: [usize; 4]) -> Option<KeptDigits> {
        Some(KeptDigits {
            places: DigitSlots::new(at)?,
            values: [0; 4],
            sum: 0, // four times eight times '0' is a multiple of 256
        })
    }

    /// Writes the numbers, below 10^8; what the digits add to the checksum.
    #[inline(always)]
    pub(crate) fn put(&mut self, buf: &mut [u8], numbers: [u32; 4]) -> u8 {
        if numbers != self.values {
            let (words, sum) = digits8(numbers);
            self.places.put(buf, words);
            (self.values, self.sum) = (numbers, sum);
        }
        self.sum
    }
}

/// Where the patched values are.
#[derive(Clone, Copy, Debug)]
struct Slots {
    /// The sequence number, ClOrdID's low half, the quantity, the price before and behind the point, the low
    /// half of the cause's sequence number and the low third of its time.
    changing: DigitSlots<7>,
    /// The high halves of ClOrdID and the cause's sequence number, the high and the middle third of its time.
    seldom: KeptDigits,
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
}

/// A prepared NewOrderSingle of one instrument and session.
#[derive(Clone, Debug)]
pub struct OrderTemplate {
    /// `len` bytes are the message.
    buf: Box<[u8; MESSAGE_MAX]>,
    /// Room for an order that does not fit the fixed widths.
    beyond: Box<[u8]>,
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
            changing: DigitSlots::new([
                at(tag::MSG_SEQ_NUM)?,
                id + 8,
                at(tag::ORDER_QTY)?,
                price,
                price + 9,
                cause_seq + 8,
                recv + 16,
            ])?,
            seldom: KeptDigits::new([id, cause_seq, recv, recv + 8])?,
            side: at(tag::SIDE)?,
            time_in_force: at(tag::TIME_IN_FORCE)?,
            cause_venue: at(tag::CAUSE_VENUE)?,
            sending_time: at(tag::SENDING_TIME)?,
            transact_time: at(tag::TRANSACT_TIME)?,
        };
        let time = precision.width();
        // The price's point stays: its slot is two runs of eight.
        let eights = slots.changing.at.into_iter().chain(slots.seldom.places.at);
        let patched = [
            (slots.side, 1),
            (slots.time_in_force, 1),
            (slots.cause_venue, 2),
            (slots.sending_time, time),
            (slots.transact_time, time),
        ];
        let sum = |bytes: &[u8]| bytes.iter().fold(0u8, |sum, &b| sum.wrapping_add(b));
        let constant_sum = eights
            .map(|at| (usize::from(at), 8))
            .chain(patched)
            .fold(sum(&message[..len - 7]), |rest, (at, width)| {
                rest.wrapping_sub(sum(&message[at..at + width]))
            });
        let mut buf = Box::new([0; MESSAGE_MAX]);
        buf[..len].copy_from_slice(message);
        let times = Times::new(stamp, precision);
        Some(OrderTemplate {
            buf,
            beyond: vec![0; MESSAGE_MAX].into_boxed_slice(),
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
    /// the caches when one has to leave. The message is for [rehearsing what follows](Self::send) alone, and
    /// never to be transmitted: its number is the next message's. `None` where the order could not be sent.
    pub fn rehearse<S: Store>(
        &mut self,
        session: &mut Session<S>,
        now: Nanos,
        order: &NewOrder,
    ) -> Option<&[u8]> {
        self.send_as(session, now, order, Again::GapFill, true).ok()
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
        let cause = order.cause;
        // 8 digits, point, 8 decimals: what is negative or no multiple of ten of 1e-9 comes to more.
        let units = over_power_of_ten::<1>(order.price.raw() as u64);
        if seq >= E8
            || order.qty.0 as u64 >= E8
            || order.id.0 >= E8 * E8
            || cause.seq.0 >= E8 * E8
            || units >= E8 * E8
        {
            return false;
        }
        let (buf, slots) = (&mut *self.buf, &mut self.slots);
        let (recv, venue) = (cause.recv_ts.0, cause.venue as u8);
        let numbers = [
            seq,
            order.id.0 % E8,
            order.qty.0 as u64,
            units / E8,
            units % E8,
            cause.seq.0 % E8,
            recv % E8,
            Times::first_eight(now).into(),
        ];
        let seldom = [order.id.0 / E8, cause.seq.0 / E8, recv / E8 / E8, recv / E8 % E8];
        let ([a, b, c, d, e, f, g, fraction], of_words) = digits8(numbers.map(|n| n as u32));
        slots.changing.put(buf, [a, b, c, d, e, f, g]);
        let sums = [
            self.constant_sum,
            of_words.wrapping_sub(byte_sum(fraction)),
            slots.seldom.put(buf, seldom.map(|n| n as u32)),
            put(buf, slots.side, side_char(order.side)),
            put(buf, slots.time_in_force, b'0' + order.time_in_force as u8),
            put(buf, slots.cause_venue, b'0' + venue / 10),
            put(buf, slots.cause_venue + 1, b'0' + venue % 10),
            self.times
                .put(buf, [slots.sending_time, slots.transact_time], now, fraction),
        ];
        let sum = sums.into_iter().fold(0u8, u8::wrapping_add);
        let at = self.len - 7;
        put_check_sum(&mut buf[at..at + 7], sum);
        true
    }

    /// The message as last patched.
    #[inline]
    pub(crate) fn message(&self) -> &[u8] {
        &self.buf[..self.len]
    }

    /// Room behind the message for one of the general encoder; `None` if it is too long.
    fn copy_of(&mut self, message: &[u8]) -> Option<&[u8]> {
        let to = self.beyond.get_mut(..message.len())?;
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
        }
    }

    /// The first eight digits of a second's fraction.
    #[inline(always)]
    pub(crate) fn first_eight(now: Nanos) -> u32 {
        (now.0 % Nanos::SECOND) as u32 / 10
    }

    /// Writes the time at all places; what they add to the checksum. `fraction` is the digits of
    /// [`Times::first_eight`].
    #[inline(always)]
    pub(crate) fn put<const N: usize>(
        &mut self,
        buf: &mut [u8],
        places: [usize; N],
        now: Nanos,
        fraction: u64,
    ) -> u8 {
        let second = now.0 / Nanos::SECOND;
        if second != self.second {
            self.second = second;
            self.put_whole(buf, places, now);
        }
        let of_fraction = match self.precision {
            Precision::Seconds => 0,
            Precision::Millis => put_first::<3, N>(buf, places, fraction),
            Precision::Micros => put_first::<6, N>(buf, places, fraction),
            Precision::Nanos => {
                let ninth = b'0' + (now.0 % 10) as u8;
                for at in places {
                    buf[at + FRACTION + 8] = ninth;
                }
                put_first::<8, N>(buf, places, fraction).wrapping_add(ninth)
            }
        };
        self.stamp
            .second_sum()
            .wrapping_add(of_fraction)
            .wrapping_mul(N as u8)
    }

    #[cold]
    fn put_whole<const N: usize>(&mut self, buf: &mut [u8], places: [usize; N], now: Nanos) {
        let text = self.stamp.format(now);
        for at in places {
            buf[at..at + text.len()].copy_from_slice(text);
        }
    }
}

/// Where the digits of a time's fraction begin, behind `YYYYMMDD-HH:MM:SS.`.
const FRACTION: usize = 18;

/// Writes the first digits of the fraction at all places; what they and the point before them add to the
/// checksum, of one place.
#[inline(always)]
fn put_first<const DIGITS: usize, const N: usize>(buf: &mut [u8], places: [usize; N], fraction: u64) -> u8 {
    for at in places {
        buf[at + FRACTION..at + FRACTION + DIGITS].copy_from_slice(&fraction.to_le_bytes()[..DIGITS]);
    }
    byte_sum(fraction & u64::MAX >> (64 - 8 * DIGITS)).wrapping_add(b'.')
}

/// Writes one character; what it adds to the checksum.
#[inline]
fn put(buf: &mut [u8], at: usize, c: u8) -> u8 {
    buf[at] = c;
    c
}
