//! Moscow Exchange ASTS, equities and currency, to [`MarketEvent`]s: the order log (`OLR`) or the trade log
//! (`TLR`) of a market, with the exchange's recovery ([`MoexChannel`]): snapshot loop, TCP replay, instrument
//! definitions and status.
//!
//! Datagrams hold one FAST message with a number of its own, heartbeats included, so a datagram is what the
//! [`Arbiter`](crate::Arbiter) counts and what the [`MoexDecoder`] gets as one message. Layouts come from the
//! exchange's template file. What comes out:
//!
//! | message | event |
//! |---|---|
//! | `X-OLR-*` | new order `Add`, changed one `Modify` (what is left after a fill or a reduction), gone one `Delete`; `J` `Clear` |
//! | `X-TLR-*` | `Trade` with the aggressor's side |
//! | `W-OLS-*` | in a snapshot: `Clear` of the instrument, then its orders; its `Status` |
//! | `d` | `Definition`, the instrument directory, `Status` of its boards |
//! | `f`, `h` | `Status` of an instrument, of all of a board |
//! | `0` | none |
//! | `X-MSR-*`, `W-TLS-*`, `*-Generic` | none: statistics, and trades that came before |
//!
//! An instrument is symbol and board together, numbered from 1 in order of appearance: in a definition, or
//! with its first order. Its entries are numbered by `RptSeq`, which guards its book: what a snapshot held
//! already is dropped, a hole marks the book stale. Order numbers are unique within a day. Times are since
//! midnight in Moscow.

mod channel;
mod definitions;
mod instruments;
mod join;
mod offers;
mod orders;
mod replay;
mod turn;

pub use channel::{MoexChannel, MoexChannelConfig};
pub use replay::{MoexReplay, MoexReplayConfig, MoexReplayState};

use crate::decoder::{Context, Decoder, Prefiltered, StreamEvent};
use crate::framing::{Content, Frame, Framing};
use crate::{FeedHandler, Filter, Line, MissingRange, Seen, SessionId};
use alloc::sync::Arc;
use alloc::{boxed::Box, vec, vec::Vec};
use core::hint::black_box;
use core::ops::Range;
use definitions::about;
use instruments::{Key, Keys, name};
use tickwire_market::{
    Counter, Counters, DynSink, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent,
    MessageType, Nanos, PointValue, Qty, SeqNo, Symbol, TradingStatus, Venue,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_moex::fast::{Fault, Limits, Plan};
use tickwire_wire_moex::moex::{
    self, Message, MessageKind, MissingField, MoexError, PREAMBLE_LEN, TradeEntry, preamble,
};
use turn::{Numbers, Turn};

/// A feed of the exchange.
pub type MoexFeed = FeedHandler<Moex, MoexDecoder>;

/// The framing: a datagram is one message of the feed, numbered by itself.
#[derive(Clone, Copy, Debug)]
pub enum Moex {}

impl Framing for Moex {
    type Messages<'a> = core::iter::Once<&'a [u8]>;

    const HEADER: usize = PREAMBLE_LEN;

    #[inline]
    fn parse(datagram: &[u8]) -> Result<Frame<Self::Messages<'_>>, Malformed> {
        let number = preamble(datagram).filter(|_| datagram.len() > PREAMBLE_LEN);
        let number = number.ok_or(Malformed::length(0, PREAMBLE_LEN + 1, datagram.len()))?;
        Ok(Frame {
            session: SessionId::NONE,
            first: SeqNo(number.into()),
            content: Content::Messages {
                count: 1,
                messages: core::iter::once(datagram),
            },
            trailing: 0,
        })
    }

    /// Packets are replayed over a connection: [`FeedHandler::poll_missing`] and [`MoexReplay`].
    fn request(_: MissingRange, _: &mut [u8]) -> Option<usize> {
        None
    }

    /// The number goes before the message.
    fn wrap(_: SessionId, seq: SeqNo, message: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let (head, rest) = buffer.split_first_chunk_mut::<PREAMBLE_LEN>()?;
        *head = u32::try_from(seq.0).ok()?.to_le_bytes();
        rest.get_mut(..message.len())?.copy_from_slice(message);
        Some(PREAMBLE_LEN + message.len())
    }
}

/// What a [`MoexDecoder`] has to know.
#[derive(Clone, Debug)]
pub struct MoexConfig {
    /// The templates, from the file of the day.
    pub templates: Arc<Plan>,
    /// The board whose instruments are called by their symbol alone; those of others have it behind an `@`
    /// (`SBER@EQRP`). Default `TQBR`, shares; of the currency market it is `CETS`.
    pub main_board: Vec<u8>,
    /// How many instruments a feed can have, default 16,384. An instrument too many is counted as
    /// [`Counter::BookFull`] and passed over.
    pub instruments_max: u32,
    /// What to let through; `None` (the default) is everything.
    pub symbols: Option<Vec<Symbol>>,
    /// Sizes of the FAST decoder.
    pub limits: Limits,
}

impl MoexConfig {
    /// The defaults, for these templates.
    pub fn new(templates: Arc<Plan>) -> MoexConfig {
        MoexConfig {
            templates,
            main_board: b"TQBR".into(),
            instruments_max: 1 << 14,
            symbols: None,
            limits: Limits::default(),
        }
    }

    /// What an instrument is called: its symbol, on boards other than the main one with the board behind an
    /// `@`. `None` when that is too long.
    pub fn symbol_of(&self, symbol: &[u8], board: &[u8]) -> Option<Symbol> {
        name(symbol, board, &self.main_board)
    }
}

/// What is followed of an instrument.
#[derive(Clone, Copy, Default)]
struct Followed {
    /// The last entry's number.
    rpt_seq: u32,
    /// Whether the next entry must have the number after it.
    is_known: bool,
    is_defined: bool,
    /// It was subscribed to in mid-session, and its first entry since has any number.
    is_new: bool,
    status: TradingStatus,
    /// The turn of the snapshot loop it was last taken in.
    taken: u32,
    /// When its status was said: `SendingTime`.
    status_stamp: u64,
    board: u64,
    fragments: Fragments,
    /// Entries of the order and trade logs.
    seen: Seen,
}

/// A snapshot in fragments that is being taken: the packets of the loop it came in so far, and what it is of.
#[derive(Clone, Copy, Default)]
struct Fragments {
    first: u32,
    /// The fragment wanted next; 0: none.
    next: u32,
    rpt_seq: u32,
    /// The live packet up to which it goes.
    last_packet: u32,
}

/// The decoder. All memory is taken at construction.
pub struct MoexDecoder {
    wire: moex::Decoder,
    books: Instruments,
}

/// Everything but the FAST engine, whose messages are looked at while this changes.
struct Instruments {
    main_board: Vec<u8>,
    /// Numbers of joins are packets; places of types are [`MessageKind`]s.
    filter: Filter,
    /// The one whose snapshot has just come whole, and the packet up to which it goes.
    joined: Option<(InstrumentId, u32)>,
    keys: Keys,
    followed: Box<[Followed]>,
    /// What a unit of the price is worth for one lot, by instrument.
    values: Box<[Option<PointValue>]>,
    turn: Turn,
    /// Definitions of the loop seen, by packet number, and how many a cycle has.
    definitions: Numbers,
    definitions_total: Option<u32>,
    /// The stream was followed from its first packet or from a complete snapshot: an instrument's first entry
    /// is number 1.
    is_whole: bool,
    /// A book is known to be wrong: only a snapshot helps.
    is_torn: bool,
    /// How many instruments have ended their session, and when the last of them did.
    closed: u32,
    closed_stamp: u64,
    /// `SendingTime` of the last packet, if that was a heartbeat.
    beat_stamp: u64,
    /// Of the message being read: an entry was of an instrument that is wanted, or not.
    passed: bool,
    dropped: bool,
    held: HeldEvents,
}

/// How many events may wait for those behind them.
const AHEAD: usize = 8;

/// The last events of a packet. They wait so that the sink hears early which orders come, and so that the
/// last one can be marked.
struct HeldEvents {
    events: [MarketEvent; AHEAD],
    pushed: usize,
}

impl HeldEvents {
    #[inline(always)]
    fn push<S: EventSink>(&mut self, event: MarketEvent, sink: &mut S) {
        let place = &mut self.events[self.pushed % AHEAD];
        if self.pushed >= AHEAD {
            sink.on_event(place);
        }
        *place = event;
        self.pushed += 1;
    }

    #[inline(always)]
    fn finish<S: EventSink>(&mut self, is_last: bool, sink: &mut S) {
        let end = core::mem::take(&mut self.pushed);
        if end == 0 {
            return;
        }
        if is_last {
            let last = &mut self.events[(end - 1) % AHEAD];
            last.flags = last.flags.with(EventFlags::LAST);
        }
        for at in end.saturating_sub(AHEAD)..end {
            sink.on_event(&self.events[at % AHEAD]);
        }
    }
}

impl MoexDecoder {
    /// What a unit of an instrument's price is worth for one lot, as far as its definition says it.
    pub fn point_value(&self, id: InstrumentId) -> Option<PointValue> {
        self.books.values.get(id.index()).copied().flatten()
    }

    /// A decoder that knows no instrument. An error: the templates lack what is needed.
    pub fn new(config: MoexConfig) -> Result<MoexDecoder, MissingField> {
        let wire = moex::Decoder::new(config.templates.clone(), config.limits)?;
        Ok(MoexDecoder::around(wire, config))
    }

    /// Around what reads the wire.
    fn around(wire: moex::Decoder, config: MoexConfig) -> MoexDecoder {
        let max = config.instruments_max.clamp(1, 1 << 20);
        let places = max as usize + 1;
        MoexDecoder {
            wire,
            books: Instruments {
                main_board: config.main_board,
                filter: Filter::new(Venue::Moex, 0..max + 1, config.symbols.as_deref()).joining_singly(),
                joined: None,
                keys: Keys::new(max),
                followed: vec![Followed::default(); places].into(),
                values: vec![None; places].into(),
                turn: Turn::new(),
                definitions: Numbers::new(),
                definitions_total: None,
                is_whole: false,
                is_torn: false,
                closed: 0,
                closed_stamp: 0,
                beat_stamp: 0,
                passed: false,
                dropped: false,
                held: HeldEvents {
                    events: [MarketEvent::default(); AHEAD],
                    pushed: 0,
                },
            },
        }
    }

    /// Messages of a kind so far, loops included.
    pub fn seen(&self, kind: MessageKind) -> u64 {
        self.books.filter.seen_of_type(kind as usize).seen
    }

    /// How many different packets of definitions have come, and how many a loop of them has.
    pub fn definitions(&self) -> (u32, Option<u32>) {
        (self.books.definitions.len(), self.books.definitions_total)
    }

    /// Whether the day is over: every instrument has ended its session and the feed is silent but for
    /// heartbeats since.
    pub fn is_over(&self) -> bool {
        let books = &self.books;
        let all = books.definitions_total.is_none_or(|_| books.is_defined());
        all && books.keys.len() > 0
            && books.closed == books.keys.len()
            && books.beat_stamp > books.closed_stamp
    }

    /// Whether a book is known to be wrong, so that a snapshot is needed; forgets it.
    pub(crate) fn take_torn(&mut self) -> bool {
        core::mem::take(&mut self.books.is_torn)
    }

    /// Whether instruments wait for their snapshots.
    pub(crate) fn joins(&self) -> bool {
        !self.books.filter.joins.is_empty()
    }

    /// Begins to take snapshots: only those that hold all packets before `floor` count. All books are void;
    /// statuses stand until a snapshot says another, and are told again behind the clear.
    pub(crate) fn begin_turn(&mut self, now: Nanos, floor: SeqNo, sink: &mut dyn EventSink) {
        self.books.forget_numbers();
        self.books.turn.begin(floor.0);
        let context = Context {
            seq: SeqNo(0),
            received: now,
            flags: EventFlags::SNAPSHOT,
        };
        self.books.say_statuses(context, &mut DynSink(sink));
    }

    /// Packets before `floor` are not held any more. Whether a snapshot already taken needs one of them, or
    /// no turn has begun: one must then begin anew.
    pub(crate) fn raise_floor(&mut self, floor: SeqNo) -> bool {
        let turn = &mut self.books.turn;
        turn.floor = turn.floor.max(floor.0);
        !turn.is_on || (turn.oldest != u64::MAX && turn.oldest.saturating_add(1) < floor.0)
    }

    /// No snapshot can hold what is sent behind this packet.
    pub(crate) fn set_ceiling(&mut self, ceiling: SeqNo) {
        self.books.turn.ceiling = ceiling.0;
    }

    /// On which line the next packet of the snapshot loop came.
    pub(crate) fn set_line(&mut self, line: Line) {
        self.books.turn.set_line(line);
    }

    /// Ends the turn if all was taken: the packet to go on from.
    pub(crate) fn end_turn(&mut self) -> Option<SeqNo> {
        let books = &mut self.books;
        let named = books.is_defined() && books.turn.taken == books.keys.len();
        if !books.turn.is_on || !(named || books.turn.is_round()) {
            return None;
        }
        books.turn.is_on = false;
        books.is_whole = true;
        Some(SeqNo(match books.turn.oldest {
            u64::MAX => books.turn.floor,
            oldest => oldest.saturating_add(1),
        }))
    }

    /// How many instruments were taken in the turn.
    pub fn taken(&self) -> u32 {
        self.books.turn.taken
    }

    /// Kind, number and `SendingTime` of a message without preamble.
    pub(crate) fn identify(&mut self, message: &[u8]) -> Option<(MessageKind, u32, u64)> {
        let message = self.wire.message(message).ok()?;
        Some((message.kind(), message.seq(), message.sending_stamp()))
    }
}

impl Instruments {
    /// The position of an instrument, entered if it is new; `None` if it has no room or no name.
    #[inline(always)]
    fn enter<S: EventSink>(
        &mut self,
        context: Context,
        instrument: (&[u8], &[u8]),
        counters: &mut Counters,
        sink: &mut S,
    ) -> Option<usize> {
        let key = Key::new(instrument.0, instrument.1);
        match key.map(|key| self.keys.find(key)) {
            None | Some(0) => self.enter_new(context, key, instrument, counters, sink),
            Some(position) => Some(position as usize),
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_new<S: EventSink>(
        &mut self,
        context: Context,
        key: Option<Key>,
        (symbol, board): (&[u8], &[u8]),
        counters: &mut Counters,
        sink: &mut S,
    ) -> Option<usize> {
        let called = name(symbol, board, &self.main_board).filter(|symbol| !symbol.is_empty());
        let (Some(key), Some(symbol)) = (key, called) else {
            crate::decoder::count_bad_value(counters);
            return None;
        };
        let Some(position) = self.keys.enter(key) else {
            counters.bump(Counter::BookFull);
            return None;
        };
        let (id, index) = (InstrumentId(position), position as usize);
        self.filter.enter(Instrument {
            id,
            venue: Venue::Moex,
            symbol,
            lot: Qty(1),
            ..Instrument::default()
        })?;
        self.followed[index].board = key.board();
        if self.filter.has(id) {
            self.held.push(about(context, EventKind::Definition, index), sink);
        }
        Some(index)
    }

    /// A message begins: it is counted, and its kind is told.
    #[inline(always)]
    fn begin<S: EventSink>(&mut self, context: Context, kind: MessageKind, template: u32, sink: &mut S) {
        let template = MessageType(template as u16);
        sink.on_message(template);
        self.filter.name_type(kind as usize, template);
        self.filter.of_type(kind as usize).seen += 1;
        (self.passed, self.dropped) = (false, false);
        if !context.flags.has(EventFlags::SNAPSHOT) {
            self.beat_stamp = 0;
            self.is_whole |= context.seq.0 == 1;
        }
    }

    /// It ends: nobody wanted it if it had entries and none was of an instrument that is wanted.
    #[inline(always)]
    fn end(&mut self, kind: MessageKind) {
        let is_filtered = self.dropped && !self.passed;
        self.filter.of_type(kind as usize).filtered += u64::from(is_filtered);
    }

    /// Whether an entry's instrument is wanted.
    #[inline(always)]
    fn passes(&mut self, index: usize, counters: &mut Counters) -> bool {
        let passes = self.filter.has(InstrumentId(index as u32));
        let seen = &mut self.followed[index].seen;
        seen.seen += 1;
        if passes {
            self.passed = true;
        } else if !self.filter.joins.has(InstrumentId(index as u32)) {
            self.dropped = true;
            seen.filtered += 1;
            counters.bump(Counter::MessagesFiltered);
        }
        passes
    }

    /// Entries of the trade log.
    fn trades<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        for trade in message.trades() {
            let Ok(trade) = trade else {
                crate::decoder::count_bad_value(counters);
                continue;
            };
            let Some(index) = self.enter(context, (trade.symbol, trade.board), counters, sink) else {
                continue;
            };
            if !self.passes(index, counters) {
                continue;
            }
            if self.accept(context, index, trade.rpt_seq, counters, sink) {
                self.trade(context, index, &trade, sink);
            }
        }
        self.held.finish(true, sink);
    }

    fn trade<S: EventSink>(&mut self, context: Context, index: usize, trade: &TradeEntry<'_>, sink: &mut S) {
        let (Some(price), Some(qty)) = (trade.price, trade.qty) else {
            return;
        };
        let flags = match trade.aggressor {
            Some(_) => EventFlags::NONE,
            None => EventFlags::NO_SIDE,
        };
        let event = MarketEvent {
            venue_ts: trade.time.unwrap_or_default(),
            side: trade.aggressor.unwrap_or_default(),
            price,
            qty,
            ref_id: trade.trade_id,
            flags: context.flags.with(flags),
            ..about(context, EventKind::Trade, index)
        };
        self.held.push(event, sink);
    }

    /// What is known of entries' numbers is void.
    fn forget_numbers(&mut self) {
        self.filter.open_all();
        self.joined = None;
        for followed in &mut self.followed {
            (followed.rpt_seq, followed.is_known) = (0, false);
            followed.fragments = Fragments::default();
        }
        self.is_whole = false;
        self.is_torn = false;
    }
}

impl Prefiltered for MoexDecoder {
    fn templates_of_instruments(&self, each: &mut dyn FnMut(u32)) {
        for (template, kind) in self.wire.templates() {
            if matches!(
                kind,
                MessageKind::OrderLog | MessageKind::Trades | MessageKind::Statistics
            ) {
                each(template);
            }
        }
    }
}

impl Decoder for MoexDecoder {
    const BUSY_TYPES: Range<usize> = 0..MessageKind::SecurityDefinition as usize;

    fn filter(&self) -> &Filter {
        &self.books.filter
    }

    fn filter_mut(&mut self) -> &mut Filter {
        &mut self.books.filter
    }

    fn has_ended(&self) -> bool {
        self.is_over()
    }

    /// `message` is a datagram.
    #[inline]
    fn decode<S: EventSink>(
        &mut self,
        context: Context,
        message: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let MoexDecoder { wire, books } = self;
        let in_snapshot = context.flags.has(EventFlags::SNAPSHOT);
        let packet = message;
        // The handler marks the packet; what is marked here is its last event.
        let flags = EventFlags(context.flags.0 & !EventFlags::LAST.0);
        let inner = Context { flags, ..context };
        if !in_snapshot && let Some(log) = wire.order_log(packet) {
            books.begin(inner, MessageKind::OrderLog, log.template_id(), sink);
            books.order_rows(inner, &log, packet, counters, sink);
            return books.end(MessageKind::OrderLog);
        }
        let message = match wire.packet(packet) {
            Ok(message) => message,
            Err(MoexError::Fast(e)) if e.fault == Fault::UnknownTemplate => {
                return counters.bump(Counter::MessagesUnknown);
            }
            Err(_) => {
                if !in_snapshot {
                    // What it held is not known: no book is certain any more.
                    books.tear(context, 0, sink);
                    books.held.finish(true, sink);
                }
                return crate::decoder::count_bad_value(counters);
            }
        };
        let (context, kind) = (inner, message.kind());
        books.begin(context, kind, message.template_id(), sink);
        match (kind, in_snapshot) {
            (MessageKind::OrderLog, false) => books.order_log(context, &message, packet, counters, sink),
            (MessageKind::Trades, false) => books.trades(context, &message, counters, sink),
            (MessageKind::Heartbeat, false) => books.beat_stamp = message.sending_stamp(),
            (MessageKind::OrderSnapshot, true) => {
                books.snapshot(context, &message, counters, &mut DynSink(sink))
            }
            (MessageKind::SecurityDefinition, _) => books.define(context, &message, counters, sink),
            (MessageKind::SecurityStatus | MessageKind::SessionStatus, _) => {
                books.status(context, &message, counters, sink);
            }
            _ => {}
        }
        books.end(kind);
        if let Some((id, last_packet)) = books.joined.take() {
            self.end_join(context, id, last_packet, counters, &mut DynSink(sink));
        }
    }

    /// Instruments stay: definitions come on a feed of their own.
    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Restarted => {
                self.books.forget_numbers();
                self.books.closed = 0;
                for followed in &mut self.books.followed {
                    followed.status = TradingStatus::Unknown;
                }
            }
            StreamEvent::SnapshotEnded(next) => self.books.filter.go_on_at(next),
            _ => {}
        }
    }

    fn is_followed(&self, id: InstrumentId) -> bool {
        let followed = self.books.followed.get(id.index());
        followed.is_some_and(|followed| followed.is_known) && self.books.filter.is_followed(id)
    }

    fn join(&mut self, id: InstrumentId, next: SeqNo) -> bool {
        self.books.begin_join(id, next)
    }

    fn fetch(&self, id: InstrumentId) {
        self.wire.fetch();
        let held = &self.books.held;
        black_box(held.events[held.pushed % AHEAD]);
        let (entry, followed) = (
            self.books.filter.instrument(id),
            self.books.followed.get(id.index()),
        );
        if let (Some(entry), Some(followed)) = (entry, followed) {
            self.books.keys.fetch(entry.symbol.as_bytes(), followed.board);
            black_box(*followed);
        }
    }

    fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        self.books
            .followed
            .get(id.index())
            .map_or(Seen::default(), |followed| followed.seen)
    }
}
