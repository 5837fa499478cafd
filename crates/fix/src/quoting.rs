//! MassQuote (35=i) from prepared buffers: a head per session and one entry per instrument, in which only
//! numbers are written.
//!
//! Every number has a fixed width, leading zeros included (FIX 4.4, volume 1, "FIX Field Data Types"), so
//! that an entry is copied with its prices' digits put into it, and the checksum is the sum of those of the
//! parts. FIX 4.4 and 5.0 SP2, volume 3 and "MassQuote".

use crate::decode::Index;
use crate::digits::{Places, PriceDigits, Way, Work, digits8};
use crate::encode::{Encoder, put_check_sum};
use crate::number::{self, byte_sum, over_power_of_ten, sum_of};
use crate::session::{Again, SendError, Session};
use crate::store::Store;
use crate::tag;
use crate::template::{DigitSlots, KeptDigits, Times};
use crate::time::{Precision, Stamp};
use crate::version::Version;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use tickwire_market::{Cause, MassQuoteEntry, Nanos, Price, Qty, Symbol};

/// What a mass quote says besides its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MassQuoteHead {
    /// QuoteID (117), below 10^16.
    pub id: u64,
    /// What caused it (20001 to 20003).
    pub cause: Cause,
    /// MMProtectionReset (9773=Y): quoting goes on after the venue's protection.
    pub reset: bool,
}

/// How a template writes prices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotePrices {
    /// What the ticks of the entries are, a whole number of the last decimal; 65 535 of them have at most
    /// eight digits.
    pub tick: Price,
    /// Digits behind the point.
    pub decimals: QuoteDecimals,
}

/// A quote as a prepared message says it ([`MassQuoteTemplate::prepare`]), at prices that need not be ticks
/// of one product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreparedQuote {
    /// The place that its instrument was prepared at.
    pub place: u16,
    /// Price and quantity by [`tickwire_market::Side`]; a side without quantity is taken away.
    pub sides: [(Price, Qty); 2],
}

/// Digits behind the point, and as many before it as make eight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuoteDecimals {
    /// 000123.45
    Two = 2,
    /// 0123.4567
    Four = 4,
    /// 12.345678
    Six = 6,
}

const E8: u64 = 100_000_000;
/// `132=000000.00|133=000000.00|134=000000|135=000000|`.
const NUMBERS: usize = 50;
/// Where the sizes begin.
const SIZES: [usize; 2] = [32, 43];
/// `299=` and a name of 15 digits, `55=` and a symbol, in whole vectors.
const NAMES: usize = 48;
/// Room for an entry.
const SLOT: usize = NAMES + NUMBERS;
const HEAD_MAX: usize = 512;
/// Digits of BodyLength.
const LENGTH_DIGITS: usize = 5;

/// An instrument's entry without its prices, with the sizes that were last sent. A pair of cache lines, which
/// processors fetch together.
#[derive(Clone, Debug)]
#[repr(align(128))]
struct Slot {
    /// What stands before the numbers, from the start; and how long that is: of what is not prepared, longer
    /// than there is room for.
    names: [u8; NAMES],
    names_len: u8,
    /// Prices of zeros, and sizes.
    numbers: [u8; NUMBERS],
    /// Of all of it, prices of zeros included, whose sixteen digits are a multiple of 256.
    sum: u8,
    /// Of the digits of both sizes.
    sums: [u8; 2],
    /// Of its prices.
    decimals: QuoteDecimals,
    qty: [u32; 2],
}

/// Everything before the entries, and room for them behind it.
#[derive(Clone, Debug)]
struct Head {
    buf: Box<[u8]>,
    len: usize,
    /// Where the body begins: BodyLength counts from here.
    body: usize,
    length: usize,
    /// The sequence number, QuoteID's low half, the low half of the cause's sequence number and the low third
    /// of its time.
    changing: DigitSlots<4>,
    /// The high halves of QuoteID and the cause's sequence number, the high and the middle third of its time.
    seldom: KeptDigits,
    cause_venue: usize,
    sending_time: usize,
    /// Of TotNoQuoteEntries and NoQuoteEntries.
    counts: [usize; 2],
    constant_sum: u8,
    times: Times,
}

/// An entry of the message that is being written.
#[derive(Clone, Copy, Default, Debug)]
struct Line {
    /// Of both prices.
    digits: [u64; 2],
    qty: [u32; 2],
    place: u16,
}

/// A prepared MassQuote of a session.
#[derive(Clone, Debug)]
pub struct MassQuoteTemplate {
    /// Without and with the reset of a protection.
    heads: [Head; 2],
    slots: Box<[Slot]>,
    /// Room for the entries of a message, an even number.
    lines: Box<[Line]>,
    /// Units of the last decimal.
    tick_units: u32,
    entries_max: usize,
    version: Version,
    way: Way,
}

impl MassQuoteTemplate {
    /// A prepared MassQuote for instruments by their place, up to `entries_max` of them a message (1 to 99).
    /// `None` if the peer is not known yet, a symbol is empty, there are no symbols or more than 65 536, the
    /// prices do not fit, or every message carries LastMsgSeqNumProcessed, whose width changes.
    pub fn new<S: Store>(
        session: &Session<S>,
        symbols: &[Symbol],
        prices: QuotePrices,
        entries_max: u8,
    ) -> Option<MassQuoteTemplate> {
        let header = session.prepared_header()?;
        let put = |e: &mut Encoder<'_>, time: &[u8]| header.put(e, b"i", time);
        MassQuoteTemplate::of(
            symbols,
            prices,
            entries_max,
            header.version(),
            header.precision(),
            put,
        )
    }

    fn of(
        symbols: &[Symbol],
        prices: QuotePrices,
        entries_max: u8,
        version: Version,
        precision: Precision,
        header: impl Fn(&mut Encoder<'_>, &[u8]),
    ) -> Option<MassQuoteTemplate> {
        if symbols.is_empty() || symbols.len() > 1 << 16 || !(1..100).contains(&entries_max) {
            return None;
        }
        let entries_max = usize::from(entries_max);
        let head = |reset| Head::new(reset, entries_max, version, precision, &header);
        let unit = 10_i64.pow(9 - prices.decimals as u32);
        let tick_units = u32::try_from(prices.tick.raw() / unit).ok()?;
        let most = u64::from(tick_units) * u64::from(u16::MAX);
        if prices.tick.raw() % unit != 0 || tick_units == 0 || most >= E8 {
            return None;
        }
        let slots: Option<Vec<Slot>> = symbols
            .iter()
            .enumerate()
            .map(|(quote, symbol)| Slot::new(quote as u64, *symbol, prices.decimals, version))
            .collect();
        Some(MassQuoteTemplate {
            heads: [head(false)?, head(true)?],
            slots: slots?.into_boxed_slice(),
            lines: lines(entries_max),
            tick_units,
            entries_max,
            version,
            way: Way::detect(),
        })
    }

    /// The same for instruments that are not known yet: room for so many of them.
    fn empty_of(
        room: u16,
        entries_max: u8,
        version: Version,
        precision: Precision,
        header: impl Fn(&mut Encoder<'_>, &[u8]),
    ) -> Option<MassQuoteTemplate> {
        if !(1..100).contains(&entries_max) {
            return None;
        }
        let entries_max = usize::from(entries_max);
        let head = |reset| Head::new(reset, entries_max, version, precision, &header);
        Some(MassQuoteTemplate {
            heads: [head(false)?, head(true)?],
            slots: vec![Slot::EMPTY; usize::from(room)].into_boxed_slice(),
            lines: lines(entries_max),
            tick_units: 1,
            entries_max,
            version,
            way: Way::detect(),
        })
    }

    /// Prepares an instrument at a place, where it is known by a name (QuoteEntryID, below 10^15); without
    /// allocating. `false` if there is no such place, or its symbol, name or tick cannot be written: a tick
    /// is a whole number of the sixth decimal.
    pub fn prepare(&mut self, place: u16, name: u64, symbol: Symbol, tick: Price) -> bool {
        let all = [QuoteDecimals::Two, QuoteDecimals::Four, QuoteDecimals::Six];
        let is_whole = |decimals: &QuoteDecimals| tick.raw() > 0 && tick.raw() % decimals.unit() == 0;
        let (Some(decimals), Some(slot)) = (
            all.into_iter().find(is_whole),
            self.slots.get_mut(usize::from(place)),
        ) else {
            return false;
        };
        if name >= 1_000_000_000_000_000 {
            return false;
        }
        let made = Slot::new(name, symbol, decimals, self.version);
        let is_made = made.is_some();
        *slot = made.unwrap_or(Slot::EMPTY);
        is_made
    }

    /// The message of prepared instruments; `None` as for [`MassQuoteTemplate::write`], and for a price that
    /// its instrument's digits cannot say.
    #[inline(never)]
    fn write_prepared(
        &mut self,
        now: Nanos,
        seq: u64,
        message: &MassQuoteHead,
        quotes: impl ExactSizeIterator<Item = PreparedQuote>,
    ) -> Option<&[u8]> {
        let lines = quotes.map(|quote| {
            let [(bid, bid_qty), (ask, ask_qty)] = quote.sides;
            (quote.place, [bid_qty.0, ask_qty.0], [bid, ask])
        });
        self.write_lines(now, seq, message, lines, |decimals, prices| {
            let [bid, ask] = prices.map(|price: Price| decimals.units(price));
            (bid < E8 && ask < E8).then_some([bid as u32, ask as u32])
        })
    }

    /// Whether the head can say this.
    #[inline(always)]
    fn is_good(&self, seq: u64, message: &MassQuoteHead, entries: usize) -> bool {
        seq < E8
            && message.id < E8 * E8
            && message.cause.seq.0 < E8 * E8
            && (1..=self.entries_max).contains(&entries)
    }

    /// Sends a mass quote: the bytes are for the caller to transmit at once. It is not kept, and a peer that
    /// asks for it again gets a gap fill: quotes of the past must not come to life.
    ///
    /// # Errors
    /// As [`Session::reserve`] and [`Reservation::commit`](crate::Reservation::commit); `NotEncodable` also
    /// for what does not fit: sizes of more than 6 digits, instruments and numbers of entries that it was not
    /// made for. Nothing was sent then.
    #[inline]
    pub fn send<S: Store>(
        &mut self,
        session: &mut Session<S>,
        now: Nanos,
        head: &MassQuoteHead,
        entries: &[MassQuoteEntry],
    ) -> Result<&[u8], SendError> {
        self.send_as(session, now, head, entries, false)
    }

    /// Writes a mass quote as it would be sent next and keeps nothing of it: no number is used and no byte
    /// given out. For a loop that has nothing else to do, so that the template and its code are in the caches
    /// when a message has to leave.
    pub fn rehearse<S: Store>(
        &mut self,
        session: &mut Session<S>,
        now: Nanos,
        head: &MassQuoteHead,
        entries: &[MassQuoteEntry],
    ) {
        let _ = self.send_as(session, now, head, entries, true);
    }

    // One copy of the code, so that a rehearsal brings into the caches what a message needs.
    #[inline(never)]
    fn send_as<S: Store>(
        &mut self,
        session: &mut Session<S>,
        now: Nanos,
        head: &MassQuoteHead,
        entries: &[MassQuoteEntry],
        is_rehearsal: bool,
    ) -> Result<&[u8], SendError> {
        let reserved = session.reserve_as(now, is_rehearsal)?;
        let message = self
            .write(reserved.time(), reserved.seq().0, head, entries)
            .ok_or(SendError::NotEncodable)?;
        reserved.commit(message, Again::GapFill)?;
        Ok(message)
    }

    /// A prepared MassQuote for up to `room` instruments, each of which [`MassQuoteTemplate::prepare`] adds
    /// later, up to `entries_max` of them a message (1 to 99). `None` as for [`MassQuoteTemplate::new`].
    pub fn empty<S: Store>(session: &Session<S>, room: u16, entries_max: u8) -> Option<MassQuoteTemplate> {
        let header = session.prepared_header()?;
        let put = |e: &mut Encoder<'_>, time: &[u8]| header.put(e, b"i", time);
        MassQuoteTemplate::empty_of(room, entries_max, header.version(), header.precision(), put)
    }

    /// Sends a mass quote of prepared instruments, as [`MassQuoteTemplate::send`] does.
    ///
    /// # Errors
    /// As there; `NotEncodable` also for a price that the digits of its instrument cannot say.
    #[inline]
    pub fn send_prepared<S: Store>(
        &mut self,
        session: &mut Session<S>,
        now: Nanos,
        head: &MassQuoteHead,
        quotes: impl ExactSizeIterator<Item = PreparedQuote>,
    ) -> Result<&[u8], SendError> {
        self.send_prepared_as(session, now, head, quotes, false)
    }

    /// The same as [`MassQuoteTemplate::rehearse`] of prepared instruments. The message is for rehearsing
    /// what follows alone, and never to be transmitted; `None` where it could not be sent.
    pub fn rehearse_prepared<S: Store>(
        &mut self,
        session: &mut Session<S>,
        now: Nanos,
        head: &MassQuoteHead,
        quotes: impl ExactSizeIterator<Item = PreparedQuote>,
    ) -> Option<&[u8]> {
        self.send_prepared_as(session, now, head, quotes, true).ok()
    }

    // One copy of the code for each kind of iterator.
    #[inline(never)]
    fn send_prepared_as<S: Store>(
        &mut self,
        session: &mut Session<S>,
        now: Nanos,
        head: &MassQuoteHead,
        quotes: impl ExactSizeIterator<Item = PreparedQuote>,
        is_rehearsal: bool,
    ) -> Result<&[u8], SendError> {
        let reserved = session.reserve_as(now, is_rehearsal)?;
        let message = self
            .write_prepared(reserved.time(), reserved.seq().0, head, quotes)
            .ok_or(SendError::NotEncodable)?;
        reserved.commit(message, Again::GapFill)?;
        Ok(message)
    }

    /// Writes the message; `None` if there are no entries or too many, one of an unknown instrument, or a
    /// value that does not fit its width: a sequence number of more than 8 digits, a QuoteID of more than 16,
    /// a size of more than 6.
    // One copy of the code, so that a rehearsal brings into the caches what a message needs.
    #[inline(never)]
    fn write(
        &mut self,
        now: Nanos,
        seq: u64,
        message: &MassQuoteHead,
        entries: &[MassQuoteEntry],
    ) -> Option<&[u8]> {
        let tick_units = self.tick_units;
        let lines = entries.iter().map(|entry| {
            (
                entry.quote,
                [entry.bid_qty.0, entry.ask_qty.0],
                [entry.bid_ticks, entry.ask_ticks],
            )
        });
        self.write_lines(now, seq, message, lines, |_, ticks| {
            Some(ticks.map(|ticks: u16| u32::from(ticks) * tick_units))
        })
    }

    /// Writes the message of entries: the place of each, its sizes, and what both of its prices are in units
    /// of the last decimal, below 10^8.
    #[inline(always)]
    fn write_lines<P: Copy + Default>(
        &mut self,
        now: Nanos,
        seq: u64,
        message: &MassQuoteHead,
        lines: impl ExactSizeIterator<Item = (u16, [u32; 2], [P; 2])>,
        units: impl Fn(QuoteDecimals, [P; 2]) -> Option<[u32; 2]>,
    ) -> Option<&[u8]> {
        let count = lines.len();
        if !self.is_good(seq, message, count) {
            return None;
        }
        let head = &mut self.heads[usize::from(message.reset)];
        let (at, sum) = self.way.run(Entries {
            slots: &mut self.slots,
            lines: &mut self.lines,
            buf: &mut head.buf,
            at: head.len,
            entries: lines,
            units,
        })?;
        let sum = sum.wrapping_add(head.patch(now, seq, message, count, at - head.body));
        put_check_sum(&mut head.buf[at..at + 7], sum);
        Some(&head.buf[..at + 7])
    }
}

/// Room for the entries of a message, in pairs.
fn lines(entries_max: usize) -> Box<[Line]> {
    vec![Line::default(); entries_max.next_multiple_of(2)].into_boxed_slice()
}

/// The entries of a message that are to be written: to where they end and what they add to the checksum.
struct Entries<'a, I, F> {
    slots: &'a mut [Slot],
    lines: &'a mut [Line],
    buf: &'a mut [u8],
    at: usize,
    entries: I,
    units: F,
}

impl<P: Copy + Default, I, F> Work for Entries<'_, I, F>
where
    I: Iterator<Item = (u16, [u32; 2], [P; 2])>,
    F: Fn(QuoteDecimals, [P; 2]) -> Option<[u32; 2]>,
{
    type Output = Option<(usize, u8)>;

    #[inline(always)]
    fn run(mut self, digits: impl PriceDigits) -> Option<(usize, u8)> {
        let mut sums = digits.none();
        let mut count = 0;
        // Nothing in this round waits for another, so that slots which are in no cache come all at once.
        for pair in self.lines.as_chunks_mut::<2>().0 {
            let mut numbers = [[0; 2]; 2];
            for (line, numbers) in pair.iter_mut().zip(&mut numbers) {
                let Some((place, qty, prices)) = self.entries.next() else {
                    break;
                };
                let slot = self.slots.get_mut(usize::from(place))?;
                slot.set_sizes(qty)?;
                let price = |side: usize| {
                    if qty[side] == 0 {
                        P::default()
                    } else {
                        prices[side]
                    }
                };
                *numbers = (self.units)(slot.decimals, [price(0), price(1)])?;
                (line.place, line.qty) = (place, qty);
                count += 1;
            }
            let [one, other] = pair;
            digits.of_two(numbers, [&mut one.digits, &mut other.digits], &mut sums);
            if count % 2 != 0 {
                break;
            }
        }
        let (mut at, mut sum) = (self.at, digits.total(sums));
        for line in self.lines.get(..count)? {
            let slot = self.slots.get_mut(usize::from(line.place))?;
            // Again, in case the message has an instrument twice.
            slot.set_sizes(line.qty)?;
            // Whole vectors: the next entry, or the checksum, is written over what is beyond this one.
            let out: &mut [u8; SLOT] = self.buf.get_mut(at..)?.first_chunk_mut()?;
            *out.first_chunk_mut()? = slot.names;
            let numbers: &mut [u8; NUMBERS] =
                out.get_mut(usize::from(slot.names_len)..)?.first_chunk_mut()?;
            let (text, sizes) = slot.numbers.split_first_chunk()?;
            let (prices, rest) = numbers.split_first_chunk_mut()?;
            digits.put(text, slot.decimals.places(), &line.digits, prices);
            rest.copy_from_slice(sizes);
            at += usize::from(slot.names_len) + NUMBERS;
            sum = sum.wrapping_add(slot.sum);
        }
        Some((at, sum))
    }
}

impl QuoteDecimals {
    /// One of the last decimal, in 1e-9.
    const fn unit(self) -> i64 {
        10_i64.pow(9 - self as u32)
    }

    /// A price in units of the last decimal; for one that is none of them, is below zero, or has more than
    /// eight digits, at least 10^8.
    #[inline(always)]
    fn units(self, price: Price) -> u64 {
        let raw = price.raw() as u64;
        match self {
            QuoteDecimals::Two => over_power_of_ten::<{ 9 - QuoteDecimals::Two as u32 }>(raw),
            QuoteDecimals::Four => over_power_of_ten::<{ 9 - QuoteDecimals::Four as u32 }>(raw),
            QuoteDecimals::Six => over_power_of_ten::<{ 9 - QuoteDecimals::Six as u32 }>(raw),
        }
    }

    /// Where the digits of both prices go.
    #[inline(always)]
    fn places(self) -> &'static Places {
        const PLACES: [Places; 3] = [Places::new(6), Places::new(4), Places::new(2)];
        match self {
            QuoteDecimals::Two => &PLACES[0],
            QuoteDecimals::Four => &PLACES[1],
            QuoteDecimals::Six => &PLACES[2],
        }
    }
}

impl Slot {
    /// Nothing is prepared.
    const EMPTY: Slot = Slot {
        names: [0; NAMES],
        names_len: u8::MAX,
        numbers: [0; NUMBERS],
        sum: 0,
        sums: [0; 2],
        decimals: QuoteDecimals::Two,
        qty: [0; 2],
    };

    fn new(name: u64, symbol: Symbol, decimals: QuoteDecimals, version: Version) -> Option<Slot> {
        if symbol.as_bytes().is_empty() {
            return None;
        }
        let mut scratch = [0; HEAD_MAX];
        let mut e = Encoder::new(&mut scratch, version);
        // The encoder wants a message; its one entry is cut out of it.
        e.text(tag::MSG_TYPE, b"i");
        e.unsigned(tag::QUOTE_ENTRY_ID, name);
        e.text(tag::SYMBOL, symbol.as_bytes());
        for tag in [tag::BID_PX, tag::OFFER_PX] {
            let mut zero = [b'0'; 9];
            zero[8 - decimals as usize] = b'.';
            e.text(tag, &zero);
        }
        for tag in [tag::BID_SIZE, tag::OFFER_SIZE] {
            e.text(tag, &[b'0'; 6]);
        }
        let message = e.finish().ok()?;
        let from = message.windows(5).position(|w| w == b"\x01299=")? + 1;
        let entry = message.get(from..message.len() - 7)?;
        let (said, numbers) = entry.split_last_chunk::<NUMBERS>()?;
        let mut names = [0; NAMES];
        names.get_mut(..said.len())?.copy_from_slice(said);
        Some(Slot {
            names,
            names_len: said.len() as u8,
            numbers: *numbers,
            sum: sum_of(entry),
            sums: [sum_of(&[b'0'; 6]); 2],
            decimals,
            qty: [0; 2],
        })
    }

    /// Writes sizes that differ from those before, which they seldom do; `None`, and nothing, for more than 6
    /// digits.
    #[inline(always)]
    fn set_sizes(&mut self, qty: [u32; 2]) -> Option<()> {
        if qty == self.qty {
            return Some(());
        }
        self.change_sizes(qty)
    }

    #[cold]
    #[inline(never)]
    fn change_sizes(&mut self, qty: [u32; 2]) -> Option<()> {
        if qty[0].max(qty[1]) >= 1_000_000 {
            return None;
        }
        for (side, at) in SIZES.into_iter().enumerate() {
            let word = number::digits8(qty[side]) >> 16;
            self.numbers[at..at + 6].copy_from_slice(&word.to_le_bytes()[..6]);
            let sum = byte_sum(word);
            self.sum = self.sum.wrapping_add(sum.wrapping_sub(self.sums[side]));
            self.sums[side] = sum;
        }
        self.qty = qty;
        Some(())
    }
}

impl Head {
    fn new(
        reset: bool,
        entries_max: usize,
        version: Version,
        precision: Precision,
        header: &impl Fn(&mut Encoder<'_>, &[u8]),
    ) -> Option<Head> {
        let mut stamp = Stamp::new(precision);
        let mut scratch = [0; HEAD_MAX];
        let mut e = Encoder::new(&mut scratch, version);
        let time = stamp.format(Nanos::ZERO);
        header(&mut e, time);
        e.text(tag::QUOTE_ID, &[b'0'; 16]);
        // Tradeable, and an answer to each.
        e.text(tag::QUOTE_TYPE, b"1");
        e.text(tag::QUOTE_RESPONSE_LEVEL, b"2");
        e.text(tag::CAUSE_VENUE, b"00");
        e.text(tag::CAUSE_SEQ, &[b'0'; 16]);
        e.text(tag::CAUSE_RECV_TS, &[b'0'; 24]);
        if reset {
            e.text(tag::MM_PROTECTION_RESET, b"Y");
        }
        e.text(tag::NO_QUOTE_SETS, b"1");
        e.text(tag::QUOTE_SET_ID, b"1");
        e.text(tag::TOT_NO_QUOTE_ENTRIES, b"00");
        e.text(tag::NO_QUOTE_ENTRIES, b"00");
        let message = e.finish().ok()?;
        // The encoder's BodyLength is as short as it can be: ours has room for the longest.
        let soh = |from: usize| Some(from + message.get(from..)?.iter().position(|b| *b == 1)? + 1);
        let after_begin = soh(0)?;
        let after_length = soh(after_begin)?;
        let body = after_begin + 2 + LENGTH_DIGITS + 1;
        let rest = message.get(after_length..message.len() - 7)?;
        let len = body + rest.len();
        let room = len + entries_max * SLOT + SLOT;
        if room - body >= 10_usize.pow(LENGTH_DIGITS as u32) {
            return None;
        }
        let mut buf = vec![0; room].into_boxed_slice();
        buf[..after_begin].copy_from_slice(&message[..after_begin]);
        buf[after_begin..after_begin + 2].copy_from_slice(b"9=");
        buf[after_begin + 2..body - 1].fill(b'0');
        buf[body - 1] = 1;
        buf[body..len].copy_from_slice(rest);
        let mut index = Index::new(64);
        let decoded = index.decode(message).ok()?;
        let at = |tag| decoded.find(tag).map(|f| f.offset() - after_length + body);
        let (id, cause_seq, recv) = (at(tag::QUOTE_ID)?, at(tag::CAUSE_SEQ)?, at(tag::CAUSE_RECV_TS)?);
        let mut head = Head {
            len,
            body,
            length: after_begin + 2,
            changing: DigitSlots::new([at(tag::MSG_SEQ_NUM)?, id + 8, cause_seq + 8, recv + 16])?,
            seldom: KeptDigits::new([id, cause_seq, recv, recv + 8])?,
            cause_venue: at(tag::CAUSE_VENUE)?,
            sending_time: at(tag::SENDING_TIME)?,
            counts: [at(tag::TOT_NO_QUOTE_ENTRIES)?, at(tag::NO_QUOTE_ENTRIES)?],
            constant_sum: 0,
            times: Times::new(stamp, precision),
            buf,
        };
        let eights = head.changing.at.into_iter().chain(head.seldom.places.at);
        let patched = [
            (head.length, LENGTH_DIGITS),
            (head.cause_venue, 2),
            (head.sending_time, precision.width()),
            (head.counts[0], 2),
            (head.counts[1], 2),
        ];
        head.constant_sum = eights
            .map(|at| (usize::from(at), 8))
            .chain(patched)
            .fold(sum_of(&head.buf[..len]), |rest, (at, width)| {
                rest.wrapping_sub(sum_of(&head.buf[at..at + width]))
            });
        Some(head)
    }

    /// Writes what changes but for the entries; the sum of the head.
    #[inline]
    fn patch(&mut self, now: Nanos, seq: u64, message: &MassQuoteHead, count: usize, length: usize) -> u8 {
        let (buf, cause) = (&mut self.buf[..self.len], message.cause);
        let (recv, venue) = (cause.recv_ts.0, cause.venue as u8);
        let numbers = [
            seq,
            message.id % E8,
            cause.seq.0 % E8,
            recv % E8,
            length as u64,
            count as u64,
            count as u64, // it is said twice
            Times::first_eight(now).into(),
        ];
        let seldom = [message.id / E8, cause.seq.0 / E8, recv / E8 / E8, recv / E8 % E8];
        let ([a, b, c, d, length, count, _, fraction], of_words) = digits8(numbers.map(|n| n as u32));
        self.changing.put(buf, [a, b, c, d]);
        let length_digits = &length.to_le_bytes()[8 - LENGTH_DIGITS..];
        buf[self.length..self.length + LENGTH_DIGITS].copy_from_slice(length_digits);
        for at in self.counts {
            buf[at..at + 2].copy_from_slice(&count.to_le_bytes()[6..]);
        }
        let venue = [b'0' + venue / 10, b'0' + venue % 10];
        buf[self.cause_venue..self.cause_venue + 2].copy_from_slice(&venue);
        // What the words hold and the message does not: zeros in front of the length and both counts.
        let zeros = b'0'.wrapping_mul(8 - LENGTH_DIGITS as u8 + 2 * 6);
        [
            self.constant_sum,
            of_words.wrapping_sub(zeros).wrapping_sub(byte_sum(fraction)),
            self.seldom.put(buf, seldom.map(|n| n as u32)),
            venue[0],
            venue[1],
            self.times.put(buf, [self.sending_time], now, fraction),
        ]
        .into_iter()
        .fold(0, u8::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Frame, frame};
    use proptest::prelude::*;
    use tickwire_market::{SeqNo, Venue};

    fn template(tick: i64, decimals: QuoteDecimals, entries_max: u8) -> MassQuoteTemplate {
        let symbols: Vec<Symbol> = (0..300)
            .map(|n| Symbol::new(alloc::format!("ESZ6 C{}", 5_000 + 5 * n).as_bytes()).unwrap())
            .collect();
        let version = Version::Fix44;
        let prices = QuotePrices {
            tick: Price::from_raw(tick),
            decimals,
        };
        MassQuoteTemplate::of(
            &symbols,
            prices,
            entries_max,
            version,
            Precision::Micros,
            |e, time| {
                e.text(tag::MSG_TYPE, b"i");
                e.text(tag::MSG_SEQ_NUM, b"00000000");
                e.text(tag::SENDER_COMP_ID, b"MM1");
                e.text(tag::SENDING_TIME, time);
                e.text(tag::TARGET_COMP_ID, b"XCH");
            },
        )
        .unwrap()
    }

    fn head(id: u64, reset: bool) -> MassQuoteHead {
        let cause = Cause {
            venue: Venue::Cme,
            seq: SeqNo(4_711),
            recv_ts: Nanos(1_767_623_400_000_000_123),
        };
        MassQuoteHead { id, cause, reset }
    }

    const CENT: i64 = 10_000_000;

    fn entry(quote: u16, bid_ticks: u16, ask_ticks: u16, qty: [u32; 2]) -> MassQuoteEntry {
        MassQuoteEntry {
            quote,
            bid_ticks,
            ask_ticks,
            bid_qty: Qty(qty[0]),
            ask_qty: Qty(qty[1]),
        }
    }

    #[test]
    fn the_message_is_what_the_standard_says_it_is() {
        let mut template = template(CENT, QuoteDecimals::Two, 15);
        let now = Nanos(1_767_623_401_000_250_000);
        let entries = [entry(0, 1_001, 1_003, [500, 400]), entry(299, 5, 0, [1, 0])];
        let message = template.write(now, 2, &head(77, false), &entries).unwrap();
        let text: alloc::string::String = message
            .iter()
            .map(|b| if *b == 1 { '|' } else { char::from(*b) })
            .collect();
        let wanted = "35=i|34=00000002|49=MM1|52=20260105-14:30:01.000250|56=XCH|117=0000000000000077|537=1|301=2|\
                      20001=VV|20002=0000000000004711|20003=000001767623400000000123|296=1|302=1|304=02|295=02|\
                      299=0|55=ESZ6 C5000|132=000010.01|133=000010.03|134=000500|135=000400|\
                      299=299|55=ESZ6 C6495|132=000000.05|133=000000.00|134=000001|135=000000|";
        let wanted = wanted.replace("VV", &alloc::format!("{:02}", Venue::Cme as u8));
        let body = text
            .split_once("|35=")
            .map(|(_, rest)| alloc::format!("35={rest}"))
            .unwrap();
        assert_eq!(&body[..wanted.len()], wanted);
        assert!(
            text.starts_with(&alloc::format!("8=FIX.4.4|9={:05}|", wanted.len())),
            "{text}"
        );
        assert!(matches!(frame(message, message.len()), Frame::Whole(len) if len == message.len()));
        let reset = template.write(now, 3, &head(78, true), &entries).unwrap();
        assert!(reset.windows(8).any(|w| w == b"\x019773=Y\x01"));
        assert!(matches!(frame(reset, reset.len()), Frame::Whole(_)));
        Index::new(200).decode(reset).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_refused_and_the_next_message_is_whole() {
        let mut template = template(CENT, QuoteDecimals::Two, 2);
        let good = entry(1, 100, 105, [10, 10]);
        for (seq, id, entries) in [
            (E8, 1, vec![good]),
            (1, E8 * E8, vec![good]),
            (1, 1, vec![]),
            (1, 1, vec![good; 3]),
            (1, 1, vec![entry(300, 1, 2, [1, 1])]),
            (1, 1, vec![good, entry(1, 1, 2, [1_000_000, 1])]),
        ] {
            assert!(
                template
                    .write(Nanos(0), seq, &head(id, false), &entries)
                    .is_none(),
                "{entries:?}"
            );
        }
        let message = template.write(Nanos(0), 1, &head(1, false), &[good; 2]).unwrap();
        Index::new(200).decode(message).unwrap();
        let none = |e: &mut Encoder<'_>, _: &[u8]| e.text(tag::MSG_TYPE, b"i");
        let (version, precision) = (Version::Fix44, Precision::Millis);
        let symbol = [Symbol::new(b"A").unwrap()];
        let made = |symbols: &[Symbol], tick: i64, entries| {
            let prices = QuotePrices {
                tick: Price::from_raw(tick),
                decimals: QuoteDecimals::Six,
            };
            MassQuoteTemplate::of(symbols, prices, entries, version, precision, none).is_some()
        };
        assert!(!made(&[], CENT, 1) && !made(&symbol, CENT, 0) && !made(&symbol, CENT, 100));
        // Not above 0, finer than the last decimal, eight digits passed.
        assert!(!made(&symbol, 0, 1) && !made(&symbol, 100, 1) && !made(&symbol, CENT, 1));
    }

    proptest! {
        #[test]
        fn every_message_frames_and_decodes_to_its_values(
            seq in 1..E8, id in 0..E8 * E8, time: u64, reset: bool, four: bool,
            values in proptest::collection::vec((0_u16..300, 1_u16.., 1_u16.., 0_u32..1_000_000, 0_u32..1_000_000), 1..40),
        ) {
            let (tick, decimals) = if four { (1_500_000, QuoteDecimals::Four) } else { (5 * CENT, QuoteDecimals::Two) };
            let mut template = template(tick, decimals, 40);
            let entries: Vec<MassQuoteEntry> =
                values.iter().map(|&(quote, bid, ask, b, a)| entry(quote, bid, ask, [b, a])).collect();
            // Twice: what the first one left behind must not show.
            for (seq, entries) in [(seq, &entries[..]), (seq / 2 + 1, &entries[..1]), (seq, &entries[..])] {
                let time = Nanos(time % (4_000_000_000 * Nanos::SECOND));
                // As a processor without vectors of this width writes it.
                let way = core::mem::replace(&mut template.way, Way::Baseline);
                let narrow = template.write(time, seq, &head(id, reset), entries).unwrap().to_vec();
                template.way = way;
                let message = template.write(time, seq, &head(id, reset), entries).unwrap();
                prop_assert_eq!(message, &narrow[..]);
                prop_assert!(matches!(frame(message, message.len()), Frame::Whole(_)));
                let mut index = Index::new(400);
                let decoded = index.decode(message).unwrap();
                let number = |tag| decoded.unsigned(decoded.find(tag).unwrap()).unwrap();
                prop_assert_eq!(number(tag::MSG_SEQ_NUM), seq);
                prop_assert_eq!(number(tag::QUOTE_ID), id);
                prop_assert_eq!(number(tag::NO_QUOTE_ENTRIES), entries.len() as u64);
                let all: Vec<(u32, &[u8])> = decoded.fields().iter().map(|f| (f.tag, decoded.value(*f))).collect();
                let of = |tag: u32| all.iter().filter(move |f| f.0 == tag).map(|f| core::str::from_utf8(f.1).unwrap());
                for (entry, (bid, qty)) in entries.iter().zip(of(132).zip(of(134))) {
                    let wanted = if entry.bid_qty.is_zero() { 0 } else { i64::from(entry.bid_ticks) * tick };
                    prop_assert_eq!(bid.parse::<Price>().unwrap().raw(), wanted);
                    prop_assert_eq!(qty.parse::<u32>().unwrap(), entry.bid_qty.0);
                }
                for (entry, (ask, qty)) in entries.iter().zip(of(133).zip(of(135))) {
                    let wanted = if entry.ask_qty.is_zero() { 0 } else { i64::from(entry.ask_ticks) * tick };
                    prop_assert_eq!(ask.parse::<Price>().unwrap().raw(), wanted);
                    prop_assert_eq!(qty.parse::<u32>().unwrap(), entry.ask_qty.0);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn units_of_a_price_are_what_division_says(
            raw in prop_oneof![any::<i64>(), 0_i64..2_000_000_000_000, (-1_000_i64..1 << 39).prop_map(|n| n * CENT)],
        ) {
            for decimals in [QuoteDecimals::Two, QuoteDecimals::Four, QuoteDecimals::Six] {
                let unit = decimals.unit();
                let is_good = raw % unit == 0 && (0..E8 as i64).contains(&(raw / unit));
                let units = Some(decimals.units(Price::from_raw(raw))).filter(|units| *units < E8);
                prop_assert_eq!(units, is_good.then(|| (raw / unit) as u64));
            }
        }
    }

    #[test]
    fn prepared_instruments_say_what_the_encoder_says_at_prices_of_any_tick() {
        let header = |e: &mut Encoder<'_>, time: &[u8]| {
            e.text(tag::MSG_TYPE, b"i");
            e.text(tag::SENDER_COMP_ID, b"MM1");
            e.text(tag::TARGET_COMP_ID, b"EXCH");
            e.text(tag::MSG_SEQ_NUM, b"00000000");
            e.text(tag::SENDING_TIME, time);
        };
        let mut template =
            MassQuoteTemplate::empty_of(4, 3, Version::Fix44, Precision::Millis, header).expect("heads fit");
        let symbol = |text: &[u8]| Symbol::new(text).unwrap();
        let raw = Price::from_raw;
        assert!(template.prepare(0, 900_000_000_001, symbol(b"ESZ6 C5000"), raw(250_000_000)));
        assert!(template.prepare(3, 900_000_000_002, symbol(b"AAPL"), raw(100_000)));
        assert!(template.prepare(1, 7, symbol(b"6EZ6 C1.1"), raw(5_000)));
        assert!(!template.prepare(4, 8, symbol(b"X"), raw(1_000)), "no such place");
        assert!(!template.prepare(2, 8, symbol(b"X"), raw(1)), "no such digits");
        assert!(!template.prepare(2, 10_u64.pow(15), symbol(b"X"), raw(1_000_000_000)));
        let quote = |place, bid: (i64, u32), ask: (i64, u32)| PreparedQuote {
            place,
            sides: [(raw(bid.0), Qty(bid.1)), (raw(ask.0), Qty(ask.1))],
        };
        let head = MassQuoteHead {
            id: 42,
            cause: Cause {
                venue: Venue::Cme,
                seq: SeqNo(9),
                recv_ts: Nanos(11),
            },
            reset: false,
        };
        let quotes = [
            quote(3, (187_240_100_000, 5), (0, 0)),
            quote(0, (12_500_000_000, 10), (12_750_000_000, 999_999)),
            quote(1, (1_100_005_000, 1), (1_100_010_000, 2)),
        ];
        let bytes = template
            .write_prepared(Nanos(1), 3, &head, quotes.iter().copied())
            .expect("it fits");
        let text = alloc::string::String::from_utf8_lossy(bytes).replace('\u{1}', "|");
        let entries = "299=900000000002|55=AAPL|132=0187.2401|133=0000.0000|134=000005|135=000000|\
            299=900000000001|55=ESZ6 C5000|132=000012.50|133=000012.75|134=000010|135=999999|\
            299=7|55=6EZ6 C1.1|132=01.100005|133=01.100010|134=000001|135=000002|10=";
        assert!(text.contains(entries), "{text}");
        assert_eq!(frame(bytes, 4096), Frame::Whole(bytes.len()), "{text}");
        assert!(
            Index::new(64).decode(bytes).is_ok(),
            "its checksum is right: {text}"
        );
        let mut fails = |wrong: PreparedQuote| {
            assert_eq!(
                template.write_prepared(Nanos(1), 3, &head, [wrong].into_iter()),
                None,
                "{wrong:?}"
            );
        };
        fails(quote(2, (0, 0), (0, 0)));
        fails(quote(2, (0, u32::MAX), (0, u32::MAX)));
        fails(quote(0, (12_501_000_000, 1), (13_000_000_000, 1)));
        fails(quote(0, (1_000_000_000_000_000, 1), (0, 0)));
        fails(quote(0, (-10_000_000, 1), (0, 0)));
        fails(quote(0, (10_000_000, 1_000_000), (0, 0)));
    }
}
