//! What CQS and UQDF share: instruments known by symbol alone, and quotes of many participants beside a
//! national best.

mod join;
mod symbols;

use crate::decoder::{Context, Early};
use crate::{Filter, Rule, Seen, SubscriptionsFull};
use alloc::{boxed::Box, vec, vec::Vec};
use core::hint::black_box;
use core::ops::Range;
use symbols::{Standing as Known, Symbols};
use tickwire_market::{
    Counter, Counters, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent, MessageType,
    Nanos, Price, SeqNo, Side, Symbol, Venue, Volume,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_core::layout::{Char, Scaled, WireInt};
use tickwire_wire_sip::PaddedSymbol;

/// `code[0]` of limit down and limit up prices.
const BAND: u8 = b'l';
/// `code[0]` of the best odd lots.
const ODD_LOTS: u8 = b'o';

/// What a decoder of a consolidated feed, [`CqsDecoder`](crate::CqsDecoder) or
/// [`UqdfDecoder`](crate::UqdfDecoder), has to know.
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
/// What the venue leaves blank is NUL. A participant's quote that can be on neither side of the national best
/// is [`EventFlags::NOT_FIRM`].
#[derive(Clone, Debug)]
pub struct SipConfig {
    /// How many instruments there can be, default 16 384. An instrument too many is counted as
    /// [`Counter::BookFull`] and passed over.
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

/// What is followed of an instrument: a cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Followed {
    national: [Best; 2],
    /// Bit by bit the participants, from `A` on, that have quoted.
    quoting: u32,
    /// [`UNSURE`] by side, [`UNTOLD`], [`PARTIAL`], [`STOOD`].
    unsure: u8,
    /// How many messages about it passed the filter.
    passed: u64,
}

const _: () = assert!(core::mem::size_of::<Followed>() == 64);

/// The place of a message type in a table: category and type are capital letters; all others are in place 0.
#[inline(always)]
const fn place(category: u8, kind: u8) -> usize {
    match (category, kind) {
        (b'A'..=b'Z', b'A'..=b'Z') => ((category & 31) as usize) << 5 | (kind & 31) as usize,
        _ => 0,
    }
}

/// Where quotes are counted, of either plan.
pub(crate) const QUOTES: Range<usize> = place(b'Q', b'A')..place(b'Q', b'T');

/// The type at a place.
fn type_at(place: usize) -> MessageType {
    match place {
        0 => MessageType(0),
        _ => MessageType::of_letters(b'@' + (place >> 5) as u8, b'@' + (place & 31) as u8),
    }
}

/// Both sides of a national best may be others than the ones known: messages were lost. A bit a side.
const UNSURE: u8 = 0b011;
/// Nobody was told so yet.
const UNTOLD: u8 = 0b100;
/// Participants have quoted before it was subscribed to: what was not said since is not known.
const PARTIAL: u8 = 0b1000;
/// What a snapshot says of it beside quotes has been told since it was subscribed to.
const STOOD: u8 = 0b1_0000;

/// A participant's quote as it counts for the national best: no quantity where it may not.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Standing {
    price: [Price; 2],
    qty: [u32; 2],
    /// The message, modulo 2^32, since which the side has stood like that.
    since: [u32; 2],
}

/// Participants of a plan: capital letters.
const PARTICIPANTS: usize = 26;

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

/// The state behind a decoder. All memory is taken at construction, but for what is subscribed to later.
pub(crate) struct Sip {
    symbols: Symbols,
    followed: Box<[Followed]>,
    /// By participant, then instrument, where a participant's quotes can all be void at once; else none.
    standing: Box<[Standing]>,
    /// The quote told last: what a quote leaves blank stays blank. A copied event costs more than all the
    /// rest.
    event: MarketEvent,
    venue: Venue,
    /// Whether a symbol is wanted its slot in [`Symbols`] says, too. What came since a subscription stands,
    /// whatever the snapshot says: nothing is held of what joins; numbers are the line's.
    pub(crate) filter: Filter,
    /// Symbols never seen may be wanted: each is entered, wanted or muted, when it is first seen.
    learns: bool,
    /// Messages were lost in this session, and no snapshot has made up for them.
    has_lost: bool,
    /// The message from which on symbols never seen have been learnt; 0: from the first one on, or never.
    /// Those first seen later may have had quotes before.
    learns_since: u64,
    /// Whether they were before the last rule.
    did_learn: bool,
    instruments_max: usize,
}

impl Sip {
    /// `keeps_quotes`: participants' quotes are needed to calculate the national best.
    pub(crate) fn new(venue: Venue, config: &SipConfig, keeps_quotes: bool) -> Sip {
        let most = config.instruments_max.clamp(1, 1 << 20) as usize;
        // A filter for few symbols is a small table: what is not wanted is dropped without a cache miss.
        let room = config
            .symbols
            .as_ref()
            .map_or(most, |symbols| symbols.len().clamp(1, most));
        let standing = if keeps_quotes {
            (room + 1) * PARTICIPANTS
        } else {
            0
        };
        let mut sip = Sip {
            symbols: Symbols::new(room),
            followed: vec![Followed::default(); room + 1].into(),
            standing: vec![Standing::default(); standing].into(),
            event: MarketEvent {
                kind: EventKind::Quote,
                venue,
                ..MarketEvent::default()
            },
            venue,
            filter: Filter::new(venue, 1..most as u32 + 1, config.symbols.as_deref())
                .joining_at_once(if keeps_quotes { 0 } else { most + 1 })
                .naming_types(type_at),
            learns: config.symbols.is_none(),
            has_lost: false,
            learns_since: 0,
            did_learn: config.symbols.is_none(),
            instruments_max: most,
        };
        for symbol in config.symbols.iter().flatten() {
            if let Some(padded) = symbol.padded() {
                sip.enter(PaddedSymbol::long(&padded));
            }
        }
        sip
    }

    /// Of a twin, whose one instrument has this number, and whose one participant is the first of the plan.
    pub(crate) fn of_twin(venue: Venue, instrument: InstrumentId, keeps_quotes: bool) -> Sip {
        let config = SipConfig {
            instruments_max: 1,
            symbols: None,
        };
        let room = instrument.index() + 1;
        let standing = if keeps_quotes { room } else { 0 };
        let numbers = instrument.0..instrument.0.saturating_add(1);
        Sip {
            followed: vec![Followed::default(); room].into(),
            standing: vec![Standing::default(); standing].into(),
            filter: Filter::new(venue, numbers, None)
                .joining_at_once(0)
                .naming_types(type_at),
            instruments_max: instrument.index(),
            ..Sip::new(venue, &config, keeps_quotes)
        }
    }

    /// Adds a rule of what is wanted, and names the instruments of which it changes that. May allocate.
    pub(crate) fn select(
        &mut self,
        rule: Rule,
        changed: &mut dyn FnMut(InstrumentId),
    ) -> Result<(), SubscriptionsFull> {
        let symbols = &mut self.symbols;
        self.filter.select(rule, &mut |instrument| {
            if let Some(padded) = instrument.symbol.padded() {
                symbols.mute(PaddedSymbol::long(&padded), !rule.wanted);
            }
            changed(instrument.id);
        })?;
        self.did_learn = core::mem::replace(&mut self.learns, self.filter.subscriptions().has_patterns());
        if self.learns {
            self.grow_to(self.instruments_max + 1);
        }
        // A symbol is wanted, or remembered as left out, by its number.
        let literal = rule.pattern.literal().and_then(|symbol| symbol.padded());
        if let Some(padded) = literal.as_ref().map(PaddedSymbol::long) {
            if rule.wanted && self.symbols.known(padded) == 0 && self.numbers_used() == self.followed.len() {
                self.grow_to(self.followed.len() * 2);
            }
            let known = self.numbers_used();
            if rule.wanted && self.enter(padded).is_some_and(|id| id.index() == known) {
                changed(InstrumentId(known as u32));
            }
        }
        Ok(())
    }

    /// Numbers below this are given: 0 is the feed as a whole.
    fn numbers_used(&self) -> usize {
        self.filter
            .next_number()
            .map_or(self.instruments_max + 1, InstrumentId::index)
    }

    /// A message of this type was seen.
    #[inline(always)]
    pub(crate) fn count(&mut self, category: u8, kind: u8) {
        self.filter.of_type(place(category, kind)).seen += 1;
    }

    /// How many messages about an instrument passed the filter.
    pub(crate) fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        Seen {
            seen: self
                .followed
                .get(id.index())
                .map_or(0, |followed| followed.passed),
            filtered: 0,
        }
    }

    /// See [`Decoder::fetch`](crate::decoder::Decoder::fetch).
    pub(crate) fn fetch(&self, id: InstrumentId) {
        let entry = self.filter.instrument(id);
        if let Some(padded) = entry.and_then(|entry| entry.symbol.padded()) {
            black_box(self.symbols.known(PaddedSymbol::long(&padded)));
        }
        let followed = self.followed.get(id.index());
        let quoting = followed.map_or(0, |followed| followed.quoting);
        let columns = (0..PARTICIPANTS).filter(|column| quoting >> column & 1 != 0);
        for column in columns {
            let at = column * self.followed.len() + id.index();
            black_box(self.standing.get(at).map(|standing| standing.qty));
        }
    }

    /// That much room, up to the configured most.
    fn grow_to(&mut self, room: usize) {
        let room = room.min(self.instruments_max + 1);
        if room <= self.followed.len() {
            return;
        }
        let mut followed = vec![Followed::default(); room];
        followed[..self.followed.len()].copy_from_slice(&self.followed);
        if !self.standing.is_empty() {
            let mut standing = vec![Standing::default(); room * PARTICIPANTS];
            let old = self.standing.chunks(self.followed.len());
            for (new, old) in standing.chunks_mut(room).zip(old) {
                new[..old.len()].copy_from_slice(old);
            }
            self.standing = standing.into();
        }
        self.followed = followed.into();
    }

    /// The number of a message's symbol: new symbols get the next one if everything is wanted. `None` is
    /// counted.
    #[inline(always)]
    pub(crate) fn wanted(
        &mut self,
        (category, kind): (u8, u8),
        symbol: PaddedSymbol,
        counters: &mut Counters,
    ) -> Option<InstrumentId> {
        let id = match self.symbols.look_up(symbol) {
            Known::Wanted(number) => Some(InstrumentId(number)),
            Known::Unknown if self.learns => self.first_seen(symbol, counters),
            Known::Unknown | Known::Muted => None,
        };
        match id {
            Some(id) => self.followed[id.index()].passed += 1,
            None => {
                self.filter.of_type(place(category, kind)).filtered += 1;
                counters.bump(Counter::MessagesFiltered);
            }
        }
        id
    }

    /// The number of a symbol never seen before, if it is wanted. A muted one is just not wanted.
    #[cold]
    fn first_seen(&mut self, symbol: PaddedSymbol, counters: &mut Counters) -> Option<InstrumentId> {
        let full = self.numbers_used() == self.followed.len();
        let entered = self.enter(symbol);
        if entered.is_none() {
            if full {
                counters.bump(Counter::BookFull);
            } else {
                crate::decoder::count_bad_value(counters);
            }
        }
        entered.filter(|_| self.symbols.wanted(symbol) != 0)
    }

    /// Drops a message whose symbol nobody wants. What a symbol is to us no message of a packet can change,
    /// but that of one never seen, which is left to be entered.
    #[inline(always)]
    pub(crate) fn early(&mut self, (category, kind): (u8, u8), symbol: PaddedSymbol) -> Early {
        match self.symbols.look_up(symbol) {
            Known::Wanted(_) => Early::Kept,
            Known::Unknown if self.learns => Early::Kept,
            Known::Unknown | Known::Muted => {
                self.filter.of_type(place(category, kind)).drop_one();
                Early::Dropped
            }
        }
    }

    /// Whether a message of this symbol can yield an event.
    #[inline(always)]
    pub(crate) fn may_want(&self, symbol: PaddedSymbol) -> bool {
        match self.symbols.look_up(symbol) {
            Known::Wanted(_) => true,
            Known::Unknown => self.learns && self.would_want(symbol),
            Known::Muted => false,
        }
    }

    /// Whether a symbol not seen before will be wanted.
    #[cold]
    fn would_want(&self, symbol: PaddedSymbol) -> bool {
        Symbol::new(&symbol.bytes()).is_some_and(|symbol| self.filter.subscriptions().wants(&symbol))
    }

    /// Gives a symbol the next number, unless it has one. `None` if there is no room, or it is no symbol.
    fn enter(&mut self, padded: PaddedSymbol) -> Option<InstrumentId> {
        let symbol = Symbol::new(&padded.bytes()).filter(|symbol| !symbol.is_empty())?;
        match self.symbols.known(padded) {
            0 => {}
            number => return Some(InstrumentId(number)),
        }
        if self.numbers_used() == self.followed.len() {
            return None;
        }
        if self.symbols.is_full() {
            self.symbols.grow();
        }
        let id = self.filter.next_number()?;
        self.symbols.enter(padded, id.0);
        if self.has_lost || self.learns_since > 0 {
            self.followed[id.index()].unsure = UNSURE | UNTOLD | PARTIAL;
        }
        self.filter.enter(Instrument {
            id,
            venue: self.venue,
            symbol,
            ..Instrument::default()
        })?;
        self.symbols.mute(padded, !self.filter.has(id));
        if self.learns_since > 0 {
            self.filter.join(id, SeqNo(self.learns_since));
        }
        Some(id)
    }

    /// The stream began anew, or a snapshot follows: no quote holds. Numbers stay with their symbols.
    pub(crate) fn forget_quotes(&mut self) {
        self.has_lost = false;
        self.learns_since = 0;
        self.filter.open_all();
        for followed in &mut self.followed {
            *followed = Followed {
                passed: followed.passed,
                ..Followed::default()
            };
        }
        self.standing.fill(Standing::default());
    }

    /// Messages are lost for good, and there is no snapshot: every national best may be another one. Tells
    /// so; each book is right again once both sides of it have been said.
    pub(crate) fn lose<S: EventSink>(&mut self, seq: SeqNo, now: Nanos, sink: &mut S) {
        self.has_lost = true;
        let known = self.numbers_used();
        for (number, followed) in (0..).zip(&mut self.followed[..known]).skip(1) {
            followed.unsure = UNSURE | PARTIAL;
            sink.on_event(&MarketEvent {
                kind: EventKind::Gap,
                seq,
                recv_ts: now,
                instrument: InstrumentId(number),
                venue: self.venue,
                ref_id: seq.0,
                flags: EventFlags::LAST,
                ..MarketEvent::default()
            });
        }
    }

    /// The directory says more about an instrument.
    pub(crate) fn define(&mut self, id: InstrumentId, lot: u32, is_test: bool) {
        if let Some(instrument) = self.filter.instrument_mut(id) {
            instrument.lot = tickwire_market::Qty(lot);
            instrument.is_test = is_test;
        }
    }

    /// Tells a participant's quote, then the national best if that changed.
    #[inline(always)]
    pub(crate) fn tell_quote<S: EventSink>(
        &mut self,
        Context { seq, received, flags }: Context,
        id: InstrumentId,
        venue_ts: Nanos,
        quoted: &Quoted,
        sink: &mut S,
    ) {
        let participant = quoted.own[0].participant;
        if !self.standing.is_empty() {
            let at = column(participant) * self.followed.len() + id.index();
            stand(&mut self.standing[at], quoted, seq);
        }
        let followed = &mut self.followed[id.index()];
        followed.quoting |= bit(participant);
        let event = &mut self.event;
        (event.seq, event.recv_ts, event.instrument, event.venue_ts) = (seq, received, id, venue_ts);
        if followed.unsure & UNTOLD != 0 {
            followed.unsure &= !UNTOLD;
            let mut before = gap(event);
            before.flags = without_last(flags);
            sink.on_event(&before);
        }
        let [condition, retail, luld, market, short_sale, sip] = quoted.conditions.map(without_blank);
        let changes = quoted.national[0].is_some() | quoted.national[1].is_some();
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
            // Side by side and not in a loop, for which both would have to stand in memory.
            let ([bid, ask], [new_bid, new_ask]) = (followed.national, quoted.national);
            let national = [new_bid.unwrap_or(bid), new_ask.unwrap_or(ask)];
            followed.national = national;
            set_national(event, national, quoted.national_luld);
            let recovers = followed.unsure & UNSURE != 0 && is_sure_again(followed, quoted.national);
            event.flags = if recovers { without_last(flags) } else { flags };
            sink.on_event(event);
            if recovers {
                self.filter.joins.finish_book(id);
                sink.on_event(&recovered(event, flags));
            }
        }
    }

    /// Tells a national best that does not come with a quote, and its LULD state.
    pub(crate) fn tell_national<S: EventSink>(
        &mut self,
        event: &MarketEvent,
        best: [Best; 2],
        luld: Char,
        sink: &mut S,
    ) {
        let followed = &mut self.followed[event.instrument.index()];
        followed.national = best;
        let mut national = *event;
        set_national(&mut national, best, luld);
        if followed.unsure & UNSURE == 0 {
            return sink.on_event(&national);
        }
        if followed.unsure & UNTOLD != 0 {
            let mut before = gap(&national);
            before.flags = without_last(event.flags);
            sink.on_event(&before);
        }
        followed.unsure &= !(UNSURE | UNTOLD);
        national.flags = without_last(event.flags);
        sink.on_event(&national);
        self.filter.joins.finish_book(event.instrument);
        sink.on_event(&recovered(&national, event.flags));
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
    #[inline(always)]
    pub(crate) fn tell_odd_lots<S: EventSink>(
        &mut self,
        Context { seq, received, flags }: Context,
        id: InstrumentId,
        venue_ts: Nanos,
        best: [Best; 2],
        sink: &mut S,
    ) {
        let event = &mut self.event;
        (event.seq, event.recv_ts, event.instrument, event.venue_ts) = (seq, received, id, venue_ts);
        set_quote(event, best);
        let [bid, ask] = best.map(|side| side.participant);
        event.code = [ODD_LOTS, bid, ask, 0, 0, 0, 0, 0];
        event.flags = flags;
        sink.on_event(event);
    }

    /// All quotes of a participant are void: tells it of every instrument that it quoted. Where it was the
    /// national best, the best of the others is, by the rules of the plans: price, then size, then time.
    /// After a loss that is not sure.
    pub(crate) fn wipe_out<S: EventSink>(&mut self, event: &MarketEvent, participant: u8, sink: &mut S) {
        let room = self.followed.len();
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
            let at = number as usize;
            if let Some(own) = self.standing.get_mut(column(participant) * room + at) {
                *own = Standing::default();
            }
            let standing = || self.standing.iter().skip(at).step_by(room);
            let held = followed.national.map(|best| best.participant == participant);
            for side in Side::BOTH.into_iter().filter(|side| held[*side as usize]) {
                followed.national[side as usize] = best_of(standing(), side);
            }
            if held.contains(&true) {
                let mut national = event;
                set_national(&mut national, followed.national, Char::SPACE);
                sink.on_event(&national);
                if self.has_lost || followed.unsure & PARTIAL != 0 {
                    followed.unsure |= UNSURE;
                    sink.on_event(&gap(&national));
                }
            }
        }
    }

    /// Counts a message that could not be read. One about an instrument may have been a quote, which is then
    /// missing.
    #[cold]
    pub(crate) fn refuse<S: EventSink>(
        &mut self,
        context: Context,
        id: InstrumentId,
        malformed: Malformed,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        if matches!(malformed, Malformed::UnknownTemplate(_)) {
            return counters.bump(Counter::MessagesUnknown);
        }
        crate::decoder::count_malformed(counters, &malformed);
        if id != InstrumentId::WHOLE_FEED {
            self.followed[id.index()].unsure |= UNSURE;
            sink.on_event(&gap(&self.event(context, id, Nanos::ZERO)));
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

/// How far a twin's prices lie apart.
const PRICES_APART: i64 = Price::from_4dp(100).raw();

/// The prices of a twin as fields of a quote: a bid that stays, an offer at this price, and a worse one.
/// `None` where they cannot be written.
pub(crate) fn twin_prices<P>(price: Price, field: impl Fn(Price) -> Option<P>) -> Option<[P; 3]> {
    let apart = |by: i64| {
        price
            .raw()
            .checked_add(by)
            .and_then(|raw| field(Price::from_raw(raw)))
    };
    Some([apart(-PRICES_APART)?, apart(0)?, apart(PRICES_APART)?])
}

/// Keeps a participant's quote as it counts.
#[inline(always)]
fn stand(standing: &mut Standing, quoted: &Quoted, seq: SeqNo) {
    let luld = quoted.conditions[2].0;
    let executable = [!matches!(luld, b'A' | b'C'), !matches!(luld, b'B' | b'C')];
    for (side, (own, executable)) in quoted.own.iter().zip(executable).enumerate() {
        // Sizes have 32 bits at most.
        let qty = if quoted.firm & executable {
            own.qty.0 as u32
        } else {
            0
        };
        let is_same = (own.price == standing.price[side]) & (qty == standing.qty[side]);
        let since = if is_same {
            standing.since[side]
        } else {
            seq.0 as u32
        };
        (standing.price[side], standing.qty[side], standing.since[side]) = (own.price, qty, since);
    }
}

/// The best of the participants' quotes: by price, then size, then time.
fn best_of<'a>(standing: impl Iterator<Item = &'a Standing>, side: Side) -> Best {
    let at = side as usize;
    let quoting = (b'A'..).zip(standing).filter(|(_, s)| s.qty[at] > 0);
    let best = quoting.max_by_key(|(_, s)| {
        let price = match side {
            Side::Bid => s.price[at].raw(),
            Side::Ask => -s.price[at].raw(),
        };
        (price, s.qty[at], core::cmp::Reverse(s.since[at]))
    });
    best.map_or(Best::default(), |(participant, s)| Best {
        price: s.price[at],
        qty: Volume(s.qty[at].into()),
        participant,
    })
}

/// An instrument's quotes may not be the ones known.
#[cold]
fn gap(event: &MarketEvent) -> MarketEvent {
    MarketEvent {
        kind: EventKind::Gap,
        seq: event.seq,
        venue_ts: event.venue_ts,
        recv_ts: event.recv_ts,
        instrument: event.instrument,
        venue: event.venue,
        ref_id: event.seq.next().0,
        flags: event.flags,
        ..MarketEvent::default()
    }
}

/// Sides of a doubtful national best are said: whether both have been now.
#[cold]
fn is_sure_again(followed: &mut Followed, said: [Option<Best>; 2]) -> bool {
    for (side, _) in said.iter().enumerate().filter(|(_, said)| said.is_some()) {
        followed.unsure &= !(1 << side);
    }
    followed.unsure & UNSURE == 0
}

/// An instrument's national best is right again.
#[cold]
fn recovered(event: &MarketEvent, flags: EventFlags) -> MarketEvent {
    MarketEvent {
        kind: EventKind::Recovered,
        ref_id: 0,
        flags,
        ..gap(event)
    }
}

/// A participant's bit; letters alone have one.
#[inline(always)]
const fn bit(participant: u8) -> u32 {
    match participant {
        b'A'..=b'Z' => 1 << (participant - b'A'),
        _ => 0,
    }
}

/// Where a participant's quotes are kept.
#[inline(always)]
const fn column(participant: u8) -> usize {
    participant.wrapping_sub(b'A') as usize % PARTICIPANTS
}

const fn without_last(flags: EventFlags) -> EventFlags {
    EventFlags(flags.0 & !EventFlags::LAST.0)
}

/// Of an event of a message that has others behind it.
pub(crate) fn before_others(context: Context) -> Context {
    Context {
        flags: without_last(context.flags),
        ..context
    }
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
    event.code = [
        0,
        without_blank(Char(bid)),
        without_blank(Char(ask)),
        without_blank(luld),
        0,
        0,
        0,
        0,
    ];
}

fn quote(event: &MarketEvent, sides: [Best; 2]) -> MarketEvent {
    let mut event = *event;
    set_quote(&mut event, sides);
    event
}
