//! One event in some 12 bytes: what differs from what was to be expected.
//!
//! ```text
//! kind | side << 5   mask (2 bytes)   a field for each bit of the mask, in its order
//! ```
//! Numbers are LEB128, signed ones zigzag. What is expected: the instrument, order and venue's time of the
//! channel's last event, the next message number, the time of the packet, and the instrument's last price.

use tickwire_market::{
    EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Side, TradingStatus,
    Venue, Volume,
};

const INSTRUMENT: u16 = 1;
const SEQ: u16 = 1 << 1;
const VENUE_TS: u16 = 1 << 2;
const RECV_TS: u16 = 1 << 3;
const ORDER: u16 = 1 << 4;
const PRICE: u16 = 1 << 5;
/// The price is in 1e-9, not in 1e-4.
const FINE: u16 = 1 << 6;
const QTY: u16 = 1 << 7;
const REF: u16 = 1 << 8;
const FLAGS: u16 = 1 << 9;
const CODE: u16 = 1 << 10;
const STATUS: u16 = 1 << 11;
const COUNT: u16 = 1 << 12;
const QUOTE: u16 = 1 << 13;
const IMBALANCE: u16 = 1 << 14;
const VENUE: u16 = 1 << 15;

/// 1e-4 in the unit of prices.
const COARSE: i64 = 100_000;
/// Instruments whose last price is remembered; others share a place, which costs bytes only.
const PLACES: usize = 1 << 14;

/// What is expected of the next event of a channel. The same on both ends.
pub(crate) struct Context {
    venue: Venue,
    instrument: u32,
    seq: u64,
    venue_ts: u64,
    order: u64,
    reference: u64,
    /// Which beginning a price is of, and the price.
    prices: Box<[(u32, i64)]>,
    epoch: u32,
}

impl Context {
    pub(crate) fn new(venue: Venue) -> Context {
        Context {
            venue,
            instrument: 0,
            seq: 0,
            venue_ts: 0,
            order: 0,
            reference: 0,
            prices: vec![(0, 0); PLACES].into_boxed_slice(),
            epoch: 1,
        }
    }

    /// Nothing is known: a block begins.
    pub(crate) fn reset(&mut self) {
        (
            self.instrument,
            self.seq,
            self.venue_ts,
            self.order,
            self.reference,
        ) = (0, 0, 0, 0, 0);
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.prices.fill((0, 0));
            self.epoch = 1;
        }
    }

    #[inline]
    fn price(&mut self, instrument: u32) -> &mut i64 {
        let place = &mut self.prices[instrument as usize % PLACES];
        if place.0 != self.epoch {
            *place = (self.epoch, 0);
        }
        &mut place.1
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A signed number, small ones in few bytes.
fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, (value << 1 ^ value >> 63) as u64);
}

/// Unsigned numbers, for whoever writes around events.
pub(crate) fn put_number(out: &mut Vec<u8>, value: u64) {
    put(out, value);
}

/// The difference of two numbers.
pub(crate) fn put_step(out: &mut Vec<u8>, from: u64, to: u64) {
    put_signed(out, to.wrapping_sub(from) as i64);
}

/// Bytes that are read from their beginning; a number that is not whole is none.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(first.into());
        }
        self.long(u64::from(first & 0x7f))
    }

    fn long(&mut self, mut value: u64) -> Option<u64> {
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    #[inline]
    fn signed(&mut self) -> Option<i64> {
        let n = self.number()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    #[inline]
    pub(crate) fn step(&mut self, from: u64) -> Option<u64> {
        Some(from.wrapping_add(self.signed()? as u64))
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Adds an event of a packet that was received at `now`.
pub(crate) fn encode(out: &mut Vec<u8>, context: &mut Context, now: Nanos, e: &MarketEvent) {
    out.push(e.kind as u8 | (e.side as u8) << 5);
    let mask_at = out.len();
    out.extend([0, 0]);
    let mut mask = 0;
    let id = e.instrument.0;
    let mut step = |out: &mut Vec<u8>, bit: u16, expected: u64, value: u64| {
        if value != expected {
            mask |= bit;
            put_step(out, expected, value);
        }
    };
    step(out, INSTRUMENT, context.instrument.into(), id.into());
    step(out, SEQ, context.seq.wrapping_add(1), e.seq.0);
    step(out, VENUE_TS, context.venue_ts, e.venue_ts.0);
    step(out, RECV_TS, now.0, e.recv_ts.0);
    step(out, ORDER, context.order, e.order_id.0);
    let last = context.price(id);
    let price = e.price.raw();
    if price != *last {
        mask |= PRICE;
        match price.wrapping_sub(*last) {
            by if by % COARSE == 0 => put_signed(out, by / COARSE),
            by => {
                mask |= FINE;
                put_signed(out, by);
            }
        }
    }
    *last = price;
    if e.qty.0 != 0 {
        mask |= QTY;
        put(out, e.qty.0);
    }
    if e.ref_id != context.reference {
        mask |= REF;
        put_step(out, context.reference, e.ref_id);
    }
    if e.flags != EventFlags::NONE {
        mask |= FLAGS;
        put(out, e.flags.0.into());
    }
    if e.code != [0; 8] {
        mask |= CODE;
        out.extend(e.code);
    }
    if e.status != TradingStatus::Unknown {
        mask |= STATUS;
        out.push(e.status as u8);
    }
    if e.order_count != 0 {
        mask |= COUNT;
        put(out, e.order_count.into());
    }
    if (e.ask_price.raw(), e.ask_qty.0) != (0, 0) {
        mask |= QUOTE;
        put_signed(out, e.ask_price.raw().wrapping_sub(price));
        put(out, e.ask_qty.0);
    }
    if (e.near_price.raw(), e.far_price.raw(), e.imbalance_qty.0) != (0, 0, 0) {
        mask |= IMBALANCE;
        put_signed(out, e.near_price.raw());
        put_signed(out, e.far_price.raw());
        put(out, e.imbalance_qty.0);
    }
    if e.venue != context.venue {
        mask |= VENUE;
        out.push(e.venue as u8);
    }
    out[mask_at..mask_at + 2].copy_from_slice(&u16::to_le_bytes(mask));
    context.instrument = id;
    context.seq = e.seq.0;
    context.venue_ts = e.venue_ts.0;
    context.order = e.order_id.0;
    context.reference = e.ref_id;
}

/// The next event of a packet that was received at `now`; `None`: these bytes are none.
#[inline]
pub(crate) fn decode(bytes: &mut Bytes<'_>, context: &mut Context, now: Nanos) -> Option<MarketEvent> {
    let head = bytes.byte()?;
    let mask = u16::from_le_bytes(*bytes.take(2)?.first_chunk()?);
    let mut event = MarketEvent {
        kind: EventKind::from_u8(head & 0x1f)?,
        side: match head >> 5 {
            0 => Side::Bid,
            1 => Side::Ask,
            _ => return None,
        },
        venue: context.venue,
        ..MarketEvent::default()
    };
    if mask & INSTRUMENT != 0 {
        context.instrument = u32::try_from(bytes.step(context.instrument.into())?).ok()?;
    }
    event.instrument = InstrumentId(context.instrument);
    context.seq = context.seq.wrapping_add(1);
    if mask & SEQ != 0 {
        context.seq = bytes.step(context.seq)?;
    }
    event.seq = SeqNo(context.seq);
    if mask & VENUE_TS != 0 {
        context.venue_ts = bytes.step(context.venue_ts)?;
    }
    event.venue_ts = Nanos(context.venue_ts);
    event.recv_ts = match mask & RECV_TS {
        0 => now,
        _ => Nanos(bytes.step(now.0)?),
    };
    if mask & ORDER != 0 {
        context.order = bytes.step(context.order)?;
    }
    event.order_id = OrderId(context.order);
    let instrument = context.instrument;
    let last = context.price(instrument);
    if mask & PRICE != 0 {
        let by = bytes.signed()?;
        *last = last.wrapping_add(if mask & FINE == 0 {
            by.wrapping_mul(COARSE)
        } else {
            by
        });
    }
    let price = *last;
    event.price = Price::from_raw(price);
    if mask & QTY != 0 {
        event.qty = Volume(bytes.number()?);
    }
    if mask & REF != 0 {
        context.reference = bytes.step(context.reference)?;
    }
    event.ref_id = context.reference;
    if mask & (FLAGS | CODE | STATUS | COUNT | QUOTE | IMBALANCE | VENUE) != 0 {
        rare(bytes, mask, &mut event)?;
    }
    Some(event)
}

fn rare(bytes: &mut Bytes<'_>, mask: u16, event: &mut MarketEvent) -> Option<()> {
    if mask & FLAGS != 0 {
        event.flags = EventFlags(u32::try_from(bytes.number()?).ok()?);
    }
    if mask & CODE != 0 {
        event.code = *bytes.take(8)?.first_chunk()?;
    }
    if mask & STATUS != 0 {
        event.status = TradingStatus::from_u8(bytes.byte()?)?;
    }
    if mask & COUNT != 0 {
        event.order_count = u32::try_from(bytes.number()?).ok()?;
    }
    if mask & QUOTE != 0 {
        event.ask_price = Price::from_raw(event.price.raw().wrapping_add(bytes.signed()?));
        event.ask_qty = Volume(bytes.number()?);
    }
    if mask & IMBALANCE != 0 {
        event.near_price = Price::from_raw(bytes.signed()?);
        event.far_price = Price::from_raw(bytes.signed()?);
        event.imbalance_qty = Volume(bytes.number()?);
    }
    if mask & VENUE != 0 {
        event.venue = venue(bytes.byte()?)?;
    }
    Some(())
}

/// The venue of a number.
pub(crate) fn venue(number: u8) -> Option<Venue> {
    Venue::ALL.into_iter().find(|venue| *venue as u8 == number)
}
