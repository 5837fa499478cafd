//! One event in some 16 bytes: what differs from what was to be expected.
//!
//! ```text
//! head (4 bytes)   a field for each that the head says, in the order of the head   rare fields
//! ```
//! The head says kind and side, of the common fields with how many bytes each follows, and which rare fields
//! do. Common fields are little-endian and read without a loop: eight bytes at their place, as many of them
//! as the head says. What is expected: the instrument, order, reference, flags and venue's time of the
//! channel's last event, the next message number, the time of the packet, and the instrument's last price.
//! Differences are zigzag. Rare numbers are LEB128.

use tickwire_market::{
    EventFlags, EventKind, InstrumentId, MarketEvent, Nanos, OrderId, Price, SeqNo, Side, TradingStatus,
    Venue, Volume,
};

/// The side's bit of the head, above the kind.
const SIDE: u32 = 1 << 5;
/// Where the lengths of common fields stand in the head: instrument and quantity two bits, the others three.
const INSTRUMENT: u32 = 6;
const VENUE_TS: u32 = 8;
const ORDER: u32 = 11;
const PRICE: u32 = 14;
/// The price is in 1e-9, not in 1e-4.
const FINE: u32 = 1 << 17;
const QTY: u32 = 18;
const REF: u32 = 20;
const FLAGS: u32 = 1 << 23;
const SEQ: u32 = 1 << 24;
const RECV_TS: u32 = 1 << 25;
const CODE: u32 = 1 << 26;
const STATUS: u32 = 1 << 27;
const COUNT: u32 = 1 << 28;
const QUOTE: u32 = 1 << 29;
const IMBALANCE: u32 = 1 << 30;
const VENUE: u32 = 1 << 31;
/// Rare fields.
const RARE: u32 = FLAGS | SEQ | RECV_TS | CODE | STATUS | COUNT | QUOTE | IMBALANCE | VENUE;
/// Rare fields that the event after it does not have by itself.
const OWN: u32 = CODE | STATUS | COUNT | QUOTE | IMBALANCE | VENUE;

/// Bytes of a field by the code of its length.
const LONG: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 8];
/// The same of instruments and quantities.
const SHORT: [u8; 4] = [0, 1, 2, 8];
/// Bytes of an event's head.
const HEAD: usize = 4;
/// Head and common fields at their longest, and what is read behind the last of them.
const WINDOW: usize = HEAD + 6 * 8 + 8;

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
    flags: EventFlags,
    /// The last event that was read. Rare fields that it has of its own are taken back before the next.
    event: MarketEvent,
    has_own: bool,
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
            flags: EventFlags::NONE,
            event: MarketEvent {
                venue,
                ..MarketEvent::default()
            },
            has_own: false,
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
        self.flags = EventFlags::NONE;
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.prices.fill((0, 0));
            self.epoch = 1;
        }
    }

    /// The next event does not have the rare fields of the last one.
    fn forget_own(&mut self) {
        let event = &self.event;
        self.event = MarketEvent {
            kind: event.kind,
            side: event.side,
            venue: self.venue,
            instrument: event.instrument,
            venue_ts: event.venue_ts,
            recv_ts: event.recv_ts,
            order_id: event.order_id,
            price: event.price,
            qty: event.qty,
            ref_id: event.ref_id,
            ..MarketEvent::default()
        };
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

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}

/// A difference as a number that is small where it is.
fn zigzag(from: u64, to: u64) -> u64 {
    let by = to.wrapping_sub(from) as i64;
    (by << 1 ^ by >> 63) as u64
}

#[inline(always)]
fn unzigzag(n: u64) -> u64 {
    n >> 1 ^ (n & 1).wrapping_neg()
}

/// The least code of a length that has room for a number.
fn code_of(lengths: &[u8], value: u64) -> u32 {
    let bytes = (64 - value.leading_zeros()).div_ceil(8) as u8;
    let at = lengths.iter().position(|length| *length >= bytes);
    at.map_or(0, |at| at as u32)
}

/// Adds an event of a packet that was received at `now`.
pub(crate) fn encode(out: &mut Vec<u8>, context: &mut Context, now: Nanos, e: &MarketEvent) {
    let head_at = out.len();
    out.extend([0; HEAD]);
    let mut head = u32::from(e.kind as u8) | if e.side == Side::Ask { SIDE } else { 0 };
    let id = e.instrument.0;
    let mut field = |out: &mut Vec<u8>, place: u32, lengths: &[u8], value: u64| {
        let code = code_of(lengths, value);
        head |= code << place;
        out.extend_from_slice(&value.to_le_bytes()[..usize::from(lengths[code as usize])]);
    };
    // One more than the number, so that 0 says that it is the last one's.
    let instrument = match id == context.instrument {
        true => 0,
        false => u64::from(id) + 1,
    };
    field(out, INSTRUMENT, &SHORT, instrument);
    field(out, VENUE_TS, &LONG, zigzag(context.venue_ts, e.venue_ts.0));
    field(out, ORDER, &LONG, zigzag(context.order, e.order_id.0));
    let last = context.price(id);
    let by = e.price.raw().wrapping_sub(*last);
    *last = e.price.raw();
    let is_fine = by % COARSE != 0;
    let by = if is_fine { by } else { by / COARSE };
    field(out, PRICE, &LONG, zigzag(0, by as u64));
    field(out, QTY, &SHORT, e.qty.0);
    field(out, REF, &LONG, zigzag(context.reference, e.ref_id));
    if is_fine {
        head |= FINE;
    }
    if e.flags != context.flags {
        head |= FLAGS;
        put(out, e.flags.0.into());
    }
    let next = context.seq.wrapping_add(1);
    if e.seq.0 != next {
        head |= SEQ;
        put_step(out, next, e.seq.0);
    }
    if e.recv_ts != now {
        head |= RECV_TS;
        put_step(out, now.0, e.recv_ts.0);
    }
    if e.code != [0; 8] {
        head |= CODE;
        out.extend(e.code);
    }
    if e.status != TradingStatus::Unknown {
        head |= STATUS;
        out.push(e.status as u8);
    }
    if e.order_count != 0 {
        head |= COUNT;
        put(out, e.order_count.into());
    }
    if (e.ask_price.raw(), e.ask_qty.0) != (0, 0) {
        head |= QUOTE;
        put_signed(out, e.ask_price.raw().wrapping_sub(e.price.raw()));
        put(out, e.ask_qty.0);
    }
    if (e.near_price.raw(), e.far_price.raw(), e.imbalance_qty.0) != (0, 0, 0) {
        head |= IMBALANCE;
        put_signed(out, e.near_price.raw());
        put_signed(out, e.far_price.raw());
        put(out, e.imbalance_qty.0);
    }
    if e.venue != context.venue {
        head |= VENUE;
        out.push(e.venue as u8);
    }
    out[head_at..head_at + HEAD].copy_from_slice(&head.to_le_bytes());
    context.instrument = id;
    context.seq = e.seq.0;
    context.venue_ts = e.venue_ts.0;
    context.order = e.order_id.0;
    context.reference = e.ref_id;
    context.flags = e.flags;
}

/// The field at `at`, of so many bytes, and where the next one is.
#[inline(always)]
fn field(window: &[u8; WINDOW], at: &mut usize, length: u8) -> u64 {
    let from = *at;
    *at += usize::from(length);
    let word = window[from..from + 8]
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word));
    match length {
        0 => 0,
        length => word & u64::MAX >> (64 - 8 * u32::from(length)),
    }
}

/// A packet's events with room behind them, so that fields are read as words wherever they end.
pub(crate) struct Padded {
    bytes: Box<[u8; PADDED + WINDOW]>,
    at: usize,
    end: usize,
}

/// The longest packet that is decoded so; longer ones are, but event by event.
const PADDED: usize = 4096;

impl Padded {
    pub(crate) fn new() -> Padded {
        Padded {
            bytes: Box::new([0; PADDED + WINDOW]),
            at: 0,
            end: 0,
        }
    }

    /// Takes events over, and gives back those that there is no room for.
    #[inline]
    pub(crate) fn fill<'a>(&mut self, events: &'a [u8]) -> &'a [u8] {
        let (own, rest) = match events.len() <= PADDED {
            true => (events, &[][..]),
            false => (&[][..], events),
        };
        self.bytes[..own.len()].copy_from_slice(own);
        (self.at, self.end) = (0, own.len());
        rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    /// The next event of a packet that was received at `now`; `None`: these bytes are none.
    #[inline]
    pub(crate) fn decode<'c>(&mut self, context: &'c mut Context, now: Nanos) -> Option<&'c MarketEvent> {
        let window = self.bytes.get(self.at..)?.first_chunk()?;
        let (head, used) = common(window, context)?;
        self.at += used;
        let mut bytes = Bytes(self.bytes.get(self.at..self.end)?);
        let whole = bytes.0.len();
        let event = finish(&mut bytes, head, context, now)?;
        self.at += whole - bytes.0.len();
        Some(event)
    }
}

/// The next event of a packet that was received at `now`; `None`: these bytes are none.
pub(crate) fn decode<'c>(
    bytes: &mut Bytes<'_>,
    context: &'c mut Context,
    now: Nanos,
) -> Option<&'c MarketEvent> {
    let (head, used) = match bytes.0.first_chunk() {
        Some(window) => common(window, context)?,
        None => at_the_end(bytes.0, context)?,
    };
    bytes.0 = bytes.0.get(used..)?;
    finish(bytes, head, context, now)
}

/// What stands behind the common fields, and what is expected of the next event.
#[inline]
fn finish<'c>(
    bytes: &mut Bytes<'_>,
    head: u32,
    context: &'c mut Context,
    now: Nanos,
) -> Option<&'c MarketEvent> {
    context.seq = context.seq.wrapping_add(1);
    context.event.recv_ts = now;
    if std::mem::take(&mut context.has_own) {
        context.forget_own();
    }
    if head & RARE != 0 {
        rare(bytes, head, context, now)?;
    }
    context.event.flags = context.flags;
    context.event.seq = SeqNo(context.seq);
    Some(&context.event)
}

/// The same, where a block ends: behind it is nothing.
#[cold]
fn at_the_end(bytes: &[u8], context: &mut Context) -> Option<(u32, usize)> {
    let mut window = [0; WINDOW];
    window.get_mut(..bytes.len())?.copy_from_slice(bytes);
    common(&window, context).filter(|(_, used)| *used <= bytes.len())
}

/// Head and common fields, into the context and its event; how many bytes they were.
#[inline(always)]
fn common(window: &[u8; WINDOW], context: &mut Context) -> Option<(u32, usize)> {
    let head = u32::from_le_bytes(*window.first_chunk()?);
    let long = |place: u32| LONG[(head >> place & 7) as usize];
    let short = |place: u32| SHORT[(head >> place & 3) as usize];
    context.event.kind = EventKind::from_u8(head as u8 & 0x1f)?;
    context.event.side = match head & SIDE {
        0 => Side::Bid,
        _ => Side::Ask,
    };
    let mut at = HEAD;
    let instrument = field(window, &mut at, short(INSTRUMENT));
    if instrument != 0 {
        context.instrument = u32::try_from(instrument - 1).ok()?;
    }
    context.event.instrument = InstrumentId(context.instrument);
    let by = unzigzag(field(window, &mut at, long(VENUE_TS)));
    context.venue_ts = context.venue_ts.wrapping_add(by);
    context.event.venue_ts = Nanos(context.venue_ts);
    let by = unzigzag(field(window, &mut at, long(ORDER)));
    context.order = context.order.wrapping_add(by);
    context.event.order_id = OrderId(context.order);
    let by = unzigzag(field(window, &mut at, long(PRICE))) as i64;
    let unit = if head & FINE == 0 { COARSE } else { 1 };
    let instrument = context.instrument;
    let last = context.price(instrument);
    *last = last.wrapping_add(by.wrapping_mul(unit));
    let price = *last;
    context.event.price = Price::from_raw(price);
    context.event.qty = Volume(field(window, &mut at, short(QTY)));
    let by = unzigzag(field(window, &mut at, long(REF)));
    context.reference = context.reference.wrapping_add(by);
    context.event.ref_id = context.reference;
    Some((head, at))
}

#[inline]
fn rare(bytes: &mut Bytes<'_>, head: u32, context: &mut Context, now: Nanos) -> Option<()> {
    if head & FLAGS != 0 {
        context.flags = EventFlags(u32::try_from(bytes.number()?).ok()?);
    }
    if head & SEQ != 0 {
        context.seq = bytes.step(context.seq)?;
    }
    if head & RECV_TS != 0 {
        context.event.recv_ts = Nanos(bytes.step(now.0)?);
    }
    if head & OWN != 0 {
        context.has_own = true;
        own(bytes, head, &mut context.event)?;
    }
    Some(())
}

fn own(bytes: &mut Bytes<'_>, head: u32, event: &mut MarketEvent) -> Option<()> {
    if head & CODE != 0 {
        event.code = *bytes.take(8)?.first_chunk()?;
    }
    if head & STATUS != 0 {
        event.status = TradingStatus::from_u8(bytes.byte()?)?;
    }
    if head & COUNT != 0 {
        event.order_count = u32::try_from(bytes.number()?).ok()?;
    }
    if head & QUOTE != 0 {
        event.ask_price = Price::from_raw(event.price.raw().wrapping_add(bytes.signed()?));
        event.ask_qty = Volume(bytes.number()?);
    }
    if head & IMBALANCE != 0 {
        event.near_price = Price::from_raw(bytes.signed()?);
        event.far_price = Price::from_raw(bytes.signed()?);
        event.imbalance_qty = Volume(bytes.number()?);
    }
    if head & VENUE != 0 {
        event.venue = venue(bytes.byte()?)?;
    }
    Some(())
}

/// The venue of a number.
pub(crate) fn venue(number: u8) -> Option<Venue> {
    Venue::ALL.into_iter().find(|venue| *venue as u8 == number)
}
