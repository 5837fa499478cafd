//! What CQS and UQDF share: instruments known by symbol alone, and quotes of many participants beside a national best.

use crate::decoder::Context;
use alloc::{boxed::Box, vec, vec::Vec};
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, Nanos, Price,
    SeqNo, Symbol, Venue, Volume,
};
use tickwire_wire::Malformed;
use tickwire_wire::layout::{Char, Scaled, WireInt};

/// `code[0]` of limit down and limit up prices.
const BAND: u8 = b'l';
/// `code[0]` of the best odd lots.
const ODD_LOTS: u8 = b'o';

/// What a decoder of a consolidated feed, [`CqsDecoder`](crate::CqsDecoder) or [`UqdfDecoder`](crate::UqdfDecoder), has to know.
///
/// Every quote becomes a [`EventKind::Quote`]. Whose it is, `code[0]` tells:
///
/// | `code[0]` | the quote is | the rest of `code` |
/// |---|---|---|
/// | NUL | the national best, the top of the instrument's book | `[1]` bid's participant, `[2]` ask's, `[3]` LULD state of the national best |
/// | a letter of the plan | that participant's | `[1]` quote condition (or status of a halt), `[2]` retail interest, `[3]` LULD state, `[4]` crossed or locked, `[5]` short sale restriction, `[6]` made by the SIP |
/// | `l` | the limit down and limit up prices, quantities 0 | `[1]` kind of band |
/// | `o` | the best odd lots of all participants | `[1]` bid's participant, `[2]` ask's |
///
/// What the venue leaves blank is NUL. A participant's quote that can be on neither side of the national best is
/// [`EventFlags::NOT_FIRM`].
#[derive(Clone, Debug)]
pub struct SipConfig {
    /// How many instruments there can be, default 16 384. An instrument too many is counted as [`Counter::BookFull`] and
    /// passed over.
    pub instruments_max: u32,
    /// What to let through; `None` (the default) is everything.
    pub symbols: Option<Vec<Symbol>>,
}

impl Default for SipConfig {
    fn default() -> SipConfig {
        SipConfig {
            instruments_max: 1 << 14,
            symbols: None,
        }
    }
}

/// One side of a quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Best {
    pub(crate) price: Price,
    pub(crate) qty: Volume,
    /// The plan's letter; 0: there is none.
    pub(crate) participant: u8,
}

impl Best {
    #[inline(always)]
    pub(crate) fn new<T: WireInt, const D: u8>(
        participant: Char,
        price: Scaled<T, D>,
        qty: impl Into<u64>,
    ) -> Result<Best, Malformed> {
        Ok(Best {
            price: price.checked_price().ok_or(Malformed::OutOfRange { offset: 0 })?,
            qty: Volume(qty.into()),
            participant: participant.0,
        })
    }
}

/// What is followed of an instrument.
#[derive(Clone, Copy, Default)]
struct Followed {
    national: [Best; 2],
    /// Bit by bit the participants, from `A` on, that have quoted.
    quoting: u32,
}

/// What a message says about quotes; checked whole before anything is told or kept.
#[derive(Clone, Copy, Default)]
pub(crate) struct Quoted {
    /// The participant's own quote.
    pub(crate) own: [Best; 2],
    /// `code` of the participant's quote without blanks, from the condition on.
    pub(crate) conditions: [Char; 6],
    /// Whether it can be on either side of the national best.
    pub(crate) firm: bool,
    /// The new national best by side, `None` where it is unchanged.
    pub(crate) national: [Option<Best>; 2],
    /// LULD state of the national best.
    pub(crate) national_luld: Char,
}

/// The state behind a decoder. All memory is taken at construction.
pub(crate) struct Sip {
    venue: Venue,
    /// Open addressing over the symbols: keys, 0 where free, and the number of each.
    keys: Box<[u128]>,
    numbers: Box<[u32]>,
    /// By number; 0 is the feed as a whole.
    instruments: Vec<Instrument>,
    followed: Box<[Followed]>,
    all: bool,
}

impl Sip {
    pub(crate) fn new(venue: Venue, config: &SipConfig) -> Sip {
        let most = config.instruments_max.clamp(1, 1 << 20) as usize;
        // A filter for few symbols is a small table: what is not wanted is dropped without a cache miss.
        let most = config
            .symbols
            .as_ref()
            .map_or(most, |symbols| symbols.len().clamp(1, most));
        // At most half full: a search ends soon.
        let slots = (2 * most).next_power_of_two();
        let mut instruments = Vec::with_capacity(most + 1);
        instruments.push(Instrument::default());
        let mut sip = Sip {
            venue,
            keys: vec![0; slots].into(),
            numbers: vec![0; slots].into(),
            instruments,
            followed: vec![Followed::default(); most + 1].into(),
            all: config.symbols.is_none(),
        };
        for symbol in config.symbols.iter().flatten() {
            if let Some(padded) = symbol.padded() {
                sip.enter(&padded);
            }
        }
        sip
    }

    pub(crate) fn venue(&self) -> Venue {
        self.venue
    }

    pub(crate) fn instrument(&self, id: InstrumentId) -> Option<&Instrument> {
        self.instruments.get(id.index()).filter(|i| !i.symbol.is_empty())
    }

    pub(crate) fn instruments(&self) -> impl Iterator<Item = &Instrument> {
        self.instruments[1..].iter()
    }

    /// The number of a symbol as it stands in a message.
    #[inline]
    pub(crate) fn find(&self, symbol: &[u8; 11]) -> Option<InstrumentId> {
        let slot = self.slot(key(symbol));
        (self.keys[slot] != 0).then(|| InstrumentId(self.numbers[slot]))
    }

    /// The number of a message's symbol: new symbols get the next one if everything is wanted. `None` is counted.
    #[inline]
    pub(crate) fn wanted(&mut self, symbol: &[u8; 11], counters: &mut Counters) -> Option<InstrumentId> {
        let found = self.find(symbol);
        if found.is_some() {
            return found;
        }
        if !self.all {
            counters.bump(Counter::MessagesFiltered);
            return None;
        }
        self.first_seen(symbol, counters)
    }

    #[cold]
    fn first_seen(&mut self, symbol: &[u8; 11], counters: &mut Counters) -> Option<InstrumentId> {
        let full = self.instruments.len() == self.followed.len();
        let entered = self.enter(symbol);
        if entered.is_none() {
            counters.bump(if full {
                Counter::BookFull
            } else {
                Counter::Malformed
            });
        }
        entered
    }

    /// Whether a message of this symbol can yield an event.
    #[inline]
    pub(crate) fn may_want(&self, symbol: &[u8; 11]) -> bool {
        self.all || self.find(symbol).is_some()
    }

    /// Gives a symbol the next number, unless it has one. `None` if there is no room, or it is no symbol.
    fn enter(&mut self, padded: &[u8; 11]) -> Option<InstrumentId> {
        let symbol = Symbol::new(padded).filter(|symbol| !symbol.is_empty())?;
        let slot = self.slot(key(padded));
        if self.keys[slot] != 0 {
            return Some(InstrumentId(self.numbers[slot]));
        }
        if self.instruments.len() == self.followed.len() {
            return None;
        }
        let id = InstrumentId(self.instruments.len() as u32);
        (self.keys[slot], self.numbers[slot]) = (key(padded), id.0);
        self.instruments.push(Instrument {
            id,
            venue: self.venue,
            symbol,
            ..Instrument::default()
        });
        Some(id)
    }

    /// Where a key is, or would be.
    #[inline(always)]
    fn slot(&self, key: u128) -> usize {
        let mask = self.keys.len() - 1;
        let mixed = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut slot = (mixed >> 32) as usize & mask;
        while self.keys[slot] != 0 && self.keys[slot] != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// The stream began anew: no quote holds. Numbers stay with their symbols.
    pub(crate) fn forget_quotes(&mut self) {
        self.followed.fill(Followed::default());
    }

    /// The directory says more about an instrument.
    pub(crate) fn define(&mut self, id: InstrumentId, lot: u32, is_test: bool) {
        if let Some(instrument) = self.instruments.get_mut(id.index()) {
            instrument.lot = tickwire_market::Qty(lot);
            instrument.is_test = is_test;
        }
    }

    /// Tells a participant's quote, then the national best if that changed. In place: a copied event costs more than the rest.
    #[inline(always)]
    pub(crate) fn tell_quote<S: EventSink>(
        &mut self,
        event: &mut MarketEvent,
        quoted: &Quoted,
        sink: &mut S,
    ) {
        let followed = &mut self.followed[event.instrument.index()];
        let participant = quoted.own[0].participant;
        followed.quoting |= bit(participant);
        let [condition, retail, luld, market, short_sale, sip] = quoted.conditions.map(without_blank);
        let changes = quoted.national[0].is_some() | quoted.national[1].is_some();
        let flags = event.flags;
        let firm = if quoted.firm {
            EventFlags::NONE
        } else {
            EventFlags::NOT_FIRM
        };
        set_quote(event, quoted.own);
        event.code = [participant, condition, retail, luld, market, short_sale, sip, 0];
        event.flags = if changes { without_last(flags) } else { flags }.with(firm);
        sink.on_event(event);
        if changes {
            for (best, new) in followed.national.iter_mut().zip(quoted.national) {
                *best = new.unwrap_or(*best);
            }
            event.flags = flags;
            set_national(event, followed.national, quoted.national_luld);
            sink.on_event(event);
        }
    }

    /// Tells limit down and limit up prices.
    pub(crate) fn tell_band<S: EventSink>(
        &self,
        event: &MarketEvent,
        band: [Best; 2],
        kind: Char,
        sink: &mut S,
    ) {
        let band = band.map(|side| Best {
            qty: Volume::ZERO,
            ..side
        });
        let mut event = quote(event, band);
        event.code[..2].copy_from_slice(&[BAND, kind.0]);
        sink.on_event(&event);
    }

    /// Tells the best odd lots.
    pub(crate) fn tell_odd_lots<S: EventSink>(&self, event: &MarketEvent, best: [Best; 2], sink: &mut S) {
        let mut event = quote(event, best);
        event.code[..3].copy_from_slice(&[ODD_LOTS, best[0].participant, best[1].participant]);
        sink.on_event(&event);
    }

    /// All quotes of a participant are void: tells it of every instrument that it quoted. Where it was the national best
    /// there is none on that side until the SIP says the next.
    pub(crate) fn wipe_out<S: EventSink>(&mut self, event: &MarketEvent, participant: u8, sink: &mut S) {
        for (number, followed) in (0..).zip(self.followed.iter_mut()) {
            if followed.quoting & bit(participant) == 0 {
                continue;
            }
            followed.quoting &= !bit(participant);
            let event = MarketEvent {
                instrument: InstrumentId(number),
                ..*event
            };
            let mut own = quote(&event, [Best::default(); 2]);
            own.code[0] = participant;
            own.flags = own.flags.with(EventFlags::NOT_FIRM);
            sink.on_event(&own);
            let held = followed.national.map(|best| best.participant == participant);
            for (best, _) in followed.national.iter_mut().zip(held).filter(|(_, held)| *held) {
                *best = Best::default();
            }
            if held.contains(&true) {
                let mut national = event;
                set_national(&mut national, followed.national, Char::SPACE);
                sink.on_event(&national);
            }
        }
    }

    /// Counts a message that could not be read. One about an instrument may have been a quote, which is then missing.
    #[cold]
    pub(crate) fn refuse<S: EventSink>(
        &self,
        context: Context,
        id: InstrumentId,
        malformed: Malformed,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        if matches!(malformed, Malformed::UnknownTemplate(_)) {
            return counters.bump(Counter::MessagesUnknown);
        }
        counters.bump(Counter::Malformed);
        if id != InstrumentId::WHOLE_FEED {
            let mut event = self.event(context, id, Nanos::ZERO);
            (event.kind, event.ref_id) = (EventKind::Gap, event.seq.next().0);
            sink.on_event(&event);
        }
    }

    /// What every event of a message has.
    #[inline(always)]
    pub(crate) fn event(&self, context: Context, id: InstrumentId, venue_ts: Nanos) -> MarketEvent {
        let Context { seq, received, flags } = context;
        MarketEvent {
            seq: SeqNo(seq.0),
            venue_ts,
            recv_ts: received,
            instrument: id,
            venue: self.venue,
            flags,
            ..MarketEvent::default()
        }
    }
}

/// The bytes of a symbol as one number; never 0, for a symbol is not empty.
#[inline(always)]
fn key(symbol: &[u8; 11]) -> u128 {
    let mut bytes = [0; 16];
    bytes[..11].copy_from_slice(symbol);
    bytes[15] = 1;
    u128::from_le_bytes(bytes)
}

/// A participant's bit; letters alone have one.
#[inline(always)]
const fn bit(participant: u8) -> u32 {
    match participant {
        b'A'..=b'Z' => 1 << (participant - b'A'),
        _ => 0,
    }
}

const fn without_last(flags: EventFlags) -> EventFlags {
    EventFlags(flags.0 & !EventFlags::LAST.0)
}

/// What the venue leaves blank is NUL.
#[inline(always)]
const fn without_blank(code: Char) -> u8 {
    match code.0 {
        b' ' => 0,
        code => code,
    }
}

#[inline(always)]
fn set_quote(event: &mut MarketEvent, [bid, ask]: [Best; 2]) {
    event.kind = EventKind::Quote;
    (event.price, event.qty) = (bid.price, bid.qty);
    (event.ask_price, event.ask_qty) = (ask.price, ask.qty);
}

#[inline(always)]
fn set_national(event: &mut MarketEvent, best: [Best; 2], luld: Char) {
    set_quote(event, best);
    let [bid, ask] = best.map(|side| side.participant);
    event.code = [0, bid, ask, without_blank(luld), 0, 0, 0, 0];
}

fn quote(event: &MarketEvent, sides: [Best; 2]) -> MarketEvent {
    let mut event = *event;
    set_quote(&mut event, sides);
    event
}
