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
mod instruments;
mod join;
mod replay;
mod turn;

pub use channel::{MoexChannel, MoexChannelConfig};
pub use replay::{MoexReplay, MoexReplayConfig, MoexReplayState};

use crate::decoder::{Context, Decoder, StreamEvent};
use crate::framing::{Content, Frame, Framing};
use crate::{FeedHandler, Filter, Line, MissingRange, Seen, SessionId};
use alloc::sync::Arc;
use alloc::{boxed::Box, vec, vec::Vec};
use instruments::{Key, Keys, board_word, name};
use tickwire_market::{
    Counter, Counters, Currency, EventFlags, EventKind, EventSink, Instrument, InstrumentId, MarketEvent,
    MessageType, PointValue, Price, Qty, SeqNo, Symbol, TradingStatus, Venue,
};
use tickwire_wire_core::Malformed;
use tickwire_wire_moex::fast::{Fault, Limits, Plan};
use tickwire_wire_moex::moex::{
    self, Action, BookEntry, Message, MessageKind, MissingField, MoexError, OrderKind, PREAMBLE_LEN,
    TradeEntry, preamble,
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

/// What a unit of the price is worth for a lot, which quantities are counted in. Boards of bonds (`TQOB`,
/// `TQCB` and the like) have prices in percent of the face value, and accrued interest beside them: of those
/// nothing is said.
fn lot_value(currency: &[u8], board: &[u8], lot: Qty) -> Option<PointValue> {
    const BONDS: [&[u8]; 9] = [
        b"TQOB", b"TQCB", b"TQOD", b"TQOE", b"TQOY", b"TQIR", b"TQRD", b"EQOB", b"PSOB",
    ];
    if BONDS.contains(&board) {
        return None;
    }
    // The exchange still writes the rouble of before 1998.
    let currency = match currency {
        b"SUR" | b"RUR" => Currency::RUB,
        code => Currency::new(code.try_into().ok()?)?,
    };
    let units = Price::from_raw(i64::from(lot.0).checked_mul(Price::ONE_RAW)?);
    PointValue::of_contract(units, Price::from_raw(Price::ONE_RAW), currency)
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
        let max = config.instruments_max.clamp(1, 1 << 20);
        let places = max as usize + 1;
        Ok(MoexDecoder {
            wire: moex::Decoder::new(config.templates, config.limits)?,
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
        })
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

    /// Begins to take snapshots: only those that hold all packets before `floor` count. All books are void.
    pub(crate) fn begin_turn(&mut self, floor: SeqNo) {
        self.books.forget_numbers();
        self.books.turn.begin(floor.0);
    }

    /// Packets before `floor` are not held any more. Whether a snapshot already taken needs one of them, or
    /// no turn has begun: one must then begin anew.
    pub(crate) fn raise_floor(&mut self, floor: SeqNo) -> bool {
        let turn = &mut self.books.turn;
        turn.floor = turn.floor.max(floor.0);
        !turn.is_on || (turn.oldest != u64::MAX && turn.oldest.saturating_add(1) < floor.0)
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

    /// Entries of the order log.
    #[inline(always)]
    fn order_log<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        packet: &[u8],
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let mut orders = message.orders();
        let mut entry = orders.next_unread();
        while let Some(unread) = entry {
            entry = orders.next_unread();
            let Some(index) = self.enter(context, orders.instrument(&unread), counters, sink) else {
                continue;
            };
            if !self.passes(index, counters) {
                if self.filter.joins.has(InstrumentId(index as u32)) {
                    let order = orders.book_entry(&unread).ok();
                    self.hold(context, index, order.as_ref(), packet, sink);
                }
                continue;
            }
            match orders.book_entry(&unread) {
                Ok(order) => {
                    if entry.is_some() || self.held.pushed > 0 {
                        sink.upcoming(InstrumentId(index as u32), order.order_id);
                    }
                    self.order(context, index, order, counters, sink);
                }
                Err(_) => {
                    crate::decoder::count_bad_value(counters);
                    self.tear(context, index, sink);
                }
            }
        }
        self.held.finish(true, sink);
    }

    #[inline(always)]
    fn order<S: EventSink>(
        &mut self,
        context: Context,
        index: usize,
        order: BookEntry,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        if !self.accept(context, index, order.rpt_seq, counters, sink) {
            return;
        }
        let event = |kind| MarketEvent {
            venue_ts: order.time.unwrap_or_default(),
            order_id: order.order_id,
            ..about(context, kind, index)
        };
        let OrderKind::Order(side) = order.kind else {
            return self.held.push(event(EventKind::Clear), sink);
        };
        let (kind, flags) = match order.action {
            Action::New => (EventKind::Add, EventFlags::NONE),
            // ASTS has no amendment in place: what changes is what is left of the order.
            Action::Change => (EventKind::Modify, EventFlags::KEEPS_PRIORITY),
            Action::Delete => return self.held.push(event(EventKind::Delete), sink),
        };
        let Some(price) = order.price else {
            // A market order in an auction: it has no place among prices.
            return;
        };
        match order.qty {
            Some(qty) if !qty.is_zero() => self.held.push(
                MarketEvent {
                    side,
                    price,
                    qty,
                    flags: context.flags.with(flags),
                    ..event(kind)
                },
                sink,
            ),
            Some(_) if order.action == Action::Change => self.held.push(event(EventKind::Delete), sink),
            _ => {
                crate::decoder::count_bad_value(counters);
                self.tear(context, index, sink);
            }
        }
    }

    /// Whether an entry is new to its instrument. A hole in the numbers marks the book stale.
    #[inline(always)]
    fn accept<S: EventSink>(
        &mut self,
        context: Context,
        index: usize,
        rpt_seq: u32,
        counters: &mut Counters,
        sink: &mut S,
    ) -> bool {
        let followed = &mut self.followed[index];
        let next = followed.rpt_seq.wrapping_add(1);
        if rpt_seq == next {
            (followed.rpt_seq, followed.is_known) = (rpt_seq, true);
            return true;
        }
        self.out_of_number(context, index, rpt_seq, counters, sink)
    }

    #[cold]
    #[inline(never)]
    fn out_of_number<S: EventSink>(
        &mut self,
        context: Context,
        index: usize,
        rpt_seq: u32,
        counters: &mut Counters,
        sink: &mut S,
    ) -> bool {
        let followed = &mut self.followed[index];
        let last = followed.rpt_seq;
        let is_known = (followed.is_known || self.is_whole) && !core::mem::take(&mut followed.is_new);
        if rpt_seq == 0 {
            return true;
        }
        if is_known && rpt_seq <= last {
            counters.bump(Counter::MessagesDuplicate);
            return false;
        }
        (followed.rpt_seq, followed.is_known) = (rpt_seq, true);
        if is_known {
            counters.add(Counter::MessagesLost, u64::from(rpt_seq - last - 1));
            self.tear(context, index, sink);
        }
        true
    }

    /// A book, or all of them (0), is wrong from here on.
    #[cold]
    #[inline(never)]
    fn tear<S: EventSink>(&mut self, context: Context, index: usize, sink: &mut S) {
        self.is_torn = true;
        let gap = MarketEvent {
            ref_id: context.seq.0,
            ..about(context, EventKind::Gap, index)
        };
        self.held.push(gap, sink);
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

    /// A fragment of an instrument's snapshot. One missing leaves the instrument to the next cycle.
    fn snapshot<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let (number, stamp) = (message.seq(), message.sending_stamp());
        if self.turn.is_on {
            self.turn.note(number, stamp);
        }
        let Ok(header) = message.snapshot_header() else {
            crate::decoder::count_bad_value(counters);
            return self.turn.refuse();
        };
        let Some(index) = self.enter(context, (header.symbol, header.board), counters, sink) else {
            return self.turn.refuse();
        };
        self.say_status(context, index, stamp, header.trading_status, sink);
        let id = InstrumentId(index as u32);
        let joins = !self.turn.is_on && self.filter.joins.has(id);
        if joins {
            let ends = self.fragment(context, number, index, message, counters, sink);
            match ends {
                Ok(is_new) if is_new && header.last_fragment => {
                    let followed = &mut self.followed[index];
                    (followed.rpt_seq, followed.is_known) = (header.rpt_seq, true);
                    followed.fragments.next = 0;
                    self.joined = Some((id, followed.fragments.last_packet));
                }
                Ok(_) => {}
                Err(()) => self.followed[index].fragments.next = 0,
            }
            return self.held.finish(false, sink);
        }
        if !self.turn.is_on || self.followed[index].taken == self.turn.number {
            return self.held.finish(true, sink);
        }
        if !self.filter.has(InstrumentId(index as u32)) {
            // Which packets its snapshot holds does not matter.
            self.followed[index].taken = self.turn.number;
            self.turn.taken += 1;
            return self.held.finish(true, sink);
        }
        let ends = match self.fragment(context, number, index, message, counters, sink) {
            Ok(is_new) => is_new && header.last_fragment,
            Err(()) => {
                self.followed[index].fragments.next = 0;
                self.turn.refuse();
                false
            }
        };
        if ends {
            let followed = &mut self.followed[index];
            let last_packet = followed.fragments.last_packet;
            (followed.rpt_seq, followed.is_known) = (header.rpt_seq, true);
            (followed.taken, followed.fragments.next) = (self.turn.number, 0);
            self.turn.taken += 1;
            self.turn.oldest = self.turn.oldest.min(last_packet.into());
        }
        self.held.finish(ends, sink);
    }

    /// Takes a fragment; `Ok(false)` for a copy of one, `Err` for one that does not count.
    fn fragment<S: EventSink>(
        &mut self,
        context: Context,
        number: u32,
        index: usize,
        message: &Message<'_>,
        counters: &mut Counters,
        sink: &mut S,
    ) -> Result<bool, ()> {
        let header = message.snapshot_header().map_err(|_| ())?;
        let last_packet = header.last_seq_processed.ok_or(())?;
        let id = InstrumentId(index as u32);
        let joins = !self.turn.is_on;
        let is_old = match joins {
            true if header.first_fragment => !self.filter.joins.is_met(id, last_packet.into()),
            true => !self.filter.joins.covers(id, last_packet.into()),
            false => u64::from(last_packet) + 1 < self.turn.floor,
        };
        if is_old {
            return Err(());
        }
        let taking = &mut self.followed[index].fragments;
        let is_same = (taking.rpt_seq, taking.last_packet) == (header.rpt_seq, last_packet);
        if is_same && taking.next != 0 && (taking.first..taking.next).contains(&number) {
            return Ok(false);
        }
        if header.first_fragment {
            *taking = Fragments {
                first: number,
                next: number.saturating_add(1),
                rpt_seq: header.rpt_seq,
                last_packet,
            };
            self.held.push(about(context, EventKind::Clear, index), sink);
            if joins {
                self.held.push(about(context, EventKind::Gap, index), sink);
            }
        } else if taking.next == number && number != 0 && taking.rpt_seq == header.rpt_seq {
            taking.next = number.saturating_add(1);
        } else {
            return Err(());
        }
        let mut orders = message.orders();
        while let Some(unread) = orders.next_unread() {
            let Ok(order) = orders.book_entry(&unread) else {
                crate::decoder::count_bad_value(counters);
                return Err(());
            };
            let OrderKind::Order(side) = order.kind else {
                continue;
            };
            let (Some(price), Some(qty)) = (order.price, order.qty) else {
                continue;
            };
            let event = MarketEvent {
                venue_ts: order.time.unwrap_or_default(),
                order_id: order.order_id,
                side,
                price,
                qty,
                ..about(context, EventKind::Add, index)
            };
            self.held.push(event, sink);
        }
        Ok(true)
    }

    /// An instrument and its boards.
    fn define<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let definition = message.definition();
        if self.definitions_total != definition.total_reports {
            self.definitions_total = definition.total_reports;
            self.definitions.clear();
        }
        for board in message.boards() {
            let before = self.held.pushed;
            let Some(index) = self.enter(context, (definition.symbol, board.board), counters, sink) else {
                continue;
            };
            let Some(known) = self.filter.instrument_mut(InstrumentId(index as u32)) else {
                continue;
            };
            let entered = *known;
            known.tick = definition.min_price_increment.unwrap_or_default();
            known.lot = Qty(board.round_lot.unwrap_or(1));
            self.values[index] = lot_value(definition.currency, board.board, known.lot);
            let is_changed = entered != *known;
            let is_new = !core::mem::replace(&mut self.followed[index].is_defined, true);
            let is_told = self.held.pushed > before;
            if (is_new || is_changed) && !is_told && self.filter.has(entered.id) {
                self.held.push(about(context, EventKind::Definition, index), sink);
            }
            self.say_status(
                context,
                index,
                message.sending_stamp(),
                board.trading_status,
                sink,
            );
        }
        self.definitions.add(message.seq());
        self.held.finish(true, sink);
    }

    /// Whether every packet of the definition loop has come.
    fn is_defined(&self) -> bool {
        let total = self.definitions_total.filter(|&total| total > 0);
        total.is_some_and(|total| self.definitions.len() >= total)
    }

    /// The status of an instrument, or of a board where there is no symbol.
    fn status<S: EventSink>(
        &mut self,
        context: Context,
        message: &Message<'_>,
        counters: &mut Counters,
        sink: &mut S,
    ) {
        let (status, stamp) = (message.status(), message.sending_stamp());
        if message.kind() == MessageKind::SecurityStatus {
            if let Some(index) = self.enter(context, (status.symbol, status.board), counters, sink) {
                self.say_status(context, index, stamp, status.trading_status, sink);
            }
        } else if let Some(code) = status.session_status.and_then(board_status) {
            let board = board_word(status.board);
            for index in 1..=self.keys.len() as usize {
                if self.followed[index].board == board {
                    self.say_status(context, index, stamp, Some(code), sink);
                }
            }
        }
        self.held.finish(true, sink);
    }

    /// A `SecurityTradingStatus` that was sent at `stamp`: told if it is a new one.
    fn say_status<S: EventSink>(
        &mut self,
        context: Context,
        index: usize,
        stamp: u64,
        code: Option<i32>,
        sink: &mut S,
    ) {
        let followed = &mut self.followed[index];
        let Some(code) = code.filter(|_| stamp >= followed.status_stamp) else {
            return;
        };
        followed.status_stamp = stamp;
        let status = trading_status(code);
        let before = core::mem::replace(&mut followed.status, status);
        if status == before {
            return;
        }
        if before == TradingStatus::Closed {
            self.closed -= 1;
        } else if status == TradingStatus::Closed {
            self.closed += 1;
            self.closed_stamp = self.closed_stamp.max(stamp);
        }
        let id = InstrumentId(index as u32);
        if self.filter.has(id) || self.filter.joins.has(id) {
            let event = MarketEvent {
                status,
                code: digits(code),
                ..about(context, EventKind::Status, index)
            };
            self.held.push(event, sink);
        }
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

impl Decoder for MoexDecoder {
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
        // The handler marks the packet; what is marked here is its last event.
        let flags = EventFlags(context.flags.0 & !EventFlags::LAST.0);
        let context = Context { flags, ..context };
        let kind = message.kind();
        let template = MessageType(message.template_id() as u16);
        sink.on_message(template);
        books.filter.name_type(kind as usize, template);
        books.filter.of_type(kind as usize).seen += 1;
        (books.passed, books.dropped) = (false, false);
        if !in_snapshot {
            books.beat_stamp = 0;
            books.is_whole |= context.seq.0 == 1;
        }
        match (kind, in_snapshot) {
            (MessageKind::OrderLog, false) => books.order_log(context, &message, packet, counters, sink),
            (MessageKind::Trades, false) => books.trades(context, &message, counters, sink),
            (MessageKind::Heartbeat, false) => books.beat_stamp = message.sending_stamp(),
            (MessageKind::OrderSnapshot, true) => books.snapshot(context, &message, counters, sink),
            (MessageKind::SecurityDefinition, _) => books.define(context, &message, counters, sink),
            (MessageKind::SecurityStatus | MessageKind::SessionStatus, _) => {
                books.status(context, &message, counters, sink);
            }
            _ => {}
        }
        let is_filtered = books.dropped && !books.passed;
        books.filter.of_type(kind as usize).filtered += u64::from(is_filtered);
        if let Some((id, last_packet)) = books.joined.take() {
            self.end_join(context, id, last_packet, counters, sink);
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

    fn seen_of_instrument(&self, id: InstrumentId) -> Seen {
        self.books
            .followed
            .get(id.index())
            .map_or(Seen::default(), |followed| followed.seen)
    }
}

#[inline(always)]
fn about(context: Context, kind: EventKind, index: usize) -> MarketEvent {
    MarketEvent {
        seq: context.seq,
        recv_ts: context.received,
        instrument: InstrumentId(index as u32),
        venue: Venue::Moex,
        kind,
        flags: context.flags,
        ..MarketEvent::default()
    }
}

/// `SecurityTradingStatus` (326) with the meaning that FIX 5.0 SP2 gives it; the exchange's own codes are
/// unknown here.
fn trading_status(code: i32) -> TradingStatus {
    match code {
        3 | 17 | 23 => TradingStatus::Trading,
        1 | 2 | 4 => TradingStatus::Halted,
        5 | 22 | 24 | 25 => TradingStatus::Auction,
        21 => TradingStatus::PreOpen,
        18 | 19 | 26 => TradingStatus::Closed,
        _ => TradingStatus::Unknown,
    }
}

/// The `SecurityTradingStatus` that a board's `TradSesStatus` (340) implies for its instruments: of FIX's
/// values, halted and closed. 100, which the exchange sends while all is well, changes nothing.
fn board_status(code: i32) -> Option<i32> {
    match code {
        1 => Some(2),
        3 => Some(18),
        _ => None,
    }
}

/// A venue code in decimal.
fn digits(code: i32) -> [u8; 8] {
    let (mut text, mut rest) = ([0; 8], code.unsigned_abs().min(9_999_999));
    let mut length = 1;
    let mut power = 10;
    while rest >= power {
        length += 1;
        power *= 10;
    }
    for place in text[..length].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lot_is_worth_its_units_in_its_currency() {
        let money = |currency: &[u8], board: &[u8], lot: u32, price: &str, lots: i128| {
            let price: Price = price.parse().expect("a price");
            let value = lot_value(currency, board, Qty(lot))?;
            Some((value.money(lots * i128::from(price.raw())), value.currency()))
        };
        // Three lots of ten Sberbank shares at 285.31 roubles; two of a thousand dollars at 91.2275.
        assert_eq!(
            money(b"SUR", b"TQBR", 10, "285.31", 3),
            Some((8_559_300_000_000, Currency::RUB))
        );
        assert_eq!(
            money(b"RUB", b"CETS", 1_000, "91.2275", 2),
            Some((182_455_000_000_000, Currency::RUB))
        );
        let usd = money(b"USD", b"TQTD", 1, "12.5", 4);
        assert_eq!(usd, Some((50_000_000_000, Currency::USD)));
        // In percent of a face value, and without a currency: nothing is said.
        assert_eq!(money(b"SUR", b"TQOB", 1, "98.7", 1), None);
        assert_eq!(money(b"", b"TQBR", 10, "1", 1), None);
    }
}
