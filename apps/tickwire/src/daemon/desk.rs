//! The way of an event into shared memory, as calls in order: what [`crate::hot`] is to trading.
//!
//! ```text
//! Channel ─► Sink::on_event ─► ring ─► Books::apply ─► InstrumentStates ─► book slot ─► Books::relay ─► super books
//! ```
//! Nothing here allocates, locks or calls the system after it is set up; the tests of `publishbench.rs` run it for every feed with an
//! armed allocator. A book has no slot until it has something to show: its name comes from the channel's directory, which cannot be
//! asked while the channel speaks, so that [`Desk::settle`] does it after the packet.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::SyncSender;

use tickwire_book::super_books::{define_event, end_event, undefine_event};
use tickwire_book::{Applied, BookError, Books, ChangeKind, InstrumentStates, Outcome, Relay};
use tickwire_feed::{Channel, FeedState, consolidated};
use tickwire_market::{
    BookState, Counters, EventFlags, EventKind, EventSink, InstrumentId, Level, MarketEvent, MessageType,
    Nanos, OrderId, SeqNo, Side, Symbol, TradingStatus, Volume,
};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_shm::{
    Auction, BookEdit, BookIdentity, BookSlot, BookWriter, LastTrade, Region, RingWriter, SourceState,
    SourceWriter,
};

use super::Notice;
use super::config::RingContent;
use super::supers::Supers;

/// No book became visible since the last message.
const NOT_VISIBLE: u64 = u64::MAX;
/// Trades of a channel that can still be taken off its volume when the venue breaks them.
const TRADES_KEPT: u32 = 1 << 14;

/// What the desks of one feed thread share.
pub(crate) struct Common<'r> {
    pub(crate) ring: Option<RingWriter<'r, AtomicU64>>,
    pub(crate) content: RingContent,
    pub(crate) supers: Supers<'r>,
    pub(crate) clock: Clock,
    pub(crate) notices: SyncSender<Notice>,
}

/// What is known of the place of an instrument's book in shared memory.
#[derive(Default)]
struct Place {
    slot: Option<BookSlot>,
    /// Slot and super book are those of its symbol, or it was refused them.
    is_named: bool,
    /// It is in [`Desk::unnamed`].
    is_waiting: bool,
    is_in_super: bool,
}

/// Books of one channel and their places in shared memory.
pub(crate) struct Desk<'r> {
    source: u16,
    books: Books,
    states: InstrumentStates,
    relay: Option<Relay>,
    writer: BookWriter<'r, AtomicU64>,
    row: SourceWriter<'r, AtomicU64>,
    /// By instrument.
    places: Vec<Place>,
    names: Vec<Symbol>,
    /// Instruments to be named after the packet; each is in it once.
    unnamed: Vec<InstrumentId>,
    is_silent: bool,
    has_ended: bool,
    /// Instruments are being unsubscribed: none is to be named.
    is_leaving: bool,
    /// The message in hand, and nanoseconds until the last book it changed was visible.
    kind: MessageType,
    visible: u64,
    /// When the packet in hand was in memory, in ticks and since the epoch.
    stamp: u64,
    received: Nanos,
    /// The last event: what is said later is said with its stamps.
    last: MarketEvent,
}

/// A desk and what its thread shares, while a channel speaks.
pub(crate) struct Sink<'a, 'r> {
    pub(crate) desk: &'a mut Desk<'r>,
    pub(crate) common: &'a mut Common<'r>,
}

impl EventSink for Sink<'_, '_> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self.desk.on_event(event, self.common);
    }

    #[inline]
    fn on_message(&mut self, kind: MessageType) {
        self.desk.end_message();
        self.desk.kind = kind;
    }

    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.desk.books.upcoming(instrument, order_id);
    }
}

impl<'r> Desk<'r> {
    /// `books` must be tracked. `relay`: what the source is to super books, `None` for nothing.
    pub(crate) fn new(
        region: Region<'r, AtomicU64>,
        row: SourceWriter<'r, AtomicU64>,
        books: Books,
        relay: Option<Relay>,
    ) -> Desk<'r> {
        let instruments = books.config().instruments as usize;
        Desk {
            source: row.number(),
            states: InstrumentStates::new(instruments as u32, TRADES_KEPT),
            books,
            relay,
            writer: region.books(),
            row,
            places: (0..instruments).map(|_| Place::default()).collect(),
            names: vec![Symbol::EMPTY; instruments],
            unnamed: Vec::with_capacity(instruments),
            is_silent: false,
            has_ended: false,
            is_leaving: false,
            kind: MessageType::default(),
            visible: NOT_VISIBLE,
            stamp: 0,
            received: Nanos::ZERO,
            last: MarketEvent::default(),
        }
    }

    /// A packet was in memory at `stamp`, which was `received`.
    #[inline]
    pub(crate) fn begin(&mut self, stamp: u64, received: Nanos) {
        (self.stamp, self.received) = (stamp, received);
    }

    /// The packet was taken: what it said of the channel is shown too.
    #[inline]
    pub(crate) fn settle<C: Channel>(&mut self, channel: &C, common: &mut Common<'r>) {
        self.end_message();
        if !self.unnamed.is_empty() {
            self.name(channel, common);
        }
        if (channel.state() == FeedState::Ended) != self.has_ended {
            self.end(!self.has_ended, common);
        }
    }

    /// Notes a packet of the venue in the channel's row.
    #[inline]
    pub(crate) fn note_packet(&mut self, next_seq: SeqNo) {
        self.row.packet(next_seq, self.received);
    }

    #[inline]
    fn end_message(&mut self) {
        if self.visible != NOT_VISIBLE {
            self.row.kind_latency(self.kind.0, self.visible);
            self.visible = NOT_VISIBLE;
        }
    }

    #[inline]
    fn on_event(&mut self, event: &MarketEvent, common: &mut Common<'r>) {
        if let Some(ring) = &mut common.ring
            && common.content.has_events()
        {
            ring.event(self.source, event);
        }
        let applied = self.books.apply(event);
        if let (Applied::Update(update), Some(ring)) = (&applied, &mut common.ring)
            && common.content.has_updates()
        {
            ring.update(self.source, update);
        }
        let outcome = applied.outcome();
        self.last = *event;
        let executed_at = match event.kind {
            EventKind::Execute => self.books.executed_at(event),
            _ => None,
        };
        if says_state(event.kind) {
            self.states.apply(&mut self.last, executed_at);
        }
        match outcome {
            Outcome::Update(instrument, _) => self.show(instrument, event.kind == EventKind::Execute, common),
            Outcome::Feed(_) => self.show_feed(event, common),
            Outcome::None => self.show_state(event, common),
            Outcome::Rejected(BookError::Full) => self.show_whole(event.instrument, common),
            Outcome::Rejected(_) => self.show_state(event, common),
        }
        self.relay(outcome, common);
    }

    /// What super books hear of the event.
    #[inline]
    fn relay(&mut self, outcome: Outcome, common: &mut Common<'r>) {
        let Some(relay) = self.relay else { return };
        let about = match outcome {
            Outcome::Update(instrument, _) => instrument,
            _ => self.last.instrument,
        };
        let is_known = about == InstrumentId::WHOLE_FEED
            || self
                .places
                .get(about.index())
                .is_some_and(|place| place.is_in_super);
        // A silent channel is out already, and says when it is back.
        let is_state = matches!(outcome, Outcome::Feed(_)) && self.last.kind != EventKind::Clear;
        if is_known && !(self.is_silent && is_state) {
            let (source, stamp) = (self.source, self.stamp);
            let supers = &mut common.supers;
            let mut sink = |event: &MarketEvent| supers.take(source, stamp, event);
            self.books.relay(&self.last, outcome, relay, &mut sink);
        }
    }

    /// The slot of an instrument, if it is to be written now; if it has none yet, it is named after the packet.
    #[inline]
    fn slot(&mut self, instrument: InstrumentId) -> Option<&mut BookSlot> {
        let place = self.places.get_mut(instrument.index())?;
        if !place.is_named {
            if !place.is_waiting && !self.is_leaving {
                place.is_waiting = true;
                // Room for every instrument was made at the start.
                self.unnamed.push(instrument);
            }
            return None;
        }
        place.slot.as_mut()
    }

    /// Shows what the event changed in a book.
    #[inline]
    fn show(&mut self, instrument: InstrumentId, is_trade: bool, common: &mut Common<'r>) {
        if self.slot(instrument).is_none() {
            return;
        }
        let Some(slot) = &mut self.places[instrument.index()].slot else {
            return;
        };
        let mut edit = self.writer.edit(slot);
        write_levels(&mut edit, &self.books, instrument);
        if is_trade {
            write_trade(&mut edit, &self.states, instrument);
        }
        self.publish(edit, common);
    }

    #[inline]
    fn publish(&mut self, mut edit: BookEdit<'r, AtomicU64>, common: &Common<'r>) {
        let last = &self.last;
        edit.cause(last.seq, last.venue_ts, last.recv_ts);
        // The stamp is taken right before the two stores that make the book visible.
        let ns = common.clock.span_ns(tsc().wrapping_sub(self.stamp));
        edit.publish(self.received.after(ns));
        self.row.update(ns);
        self.visible = ns;
    }

    /// Shows what a message said that is not about the levels of a book.
    #[inline]
    fn show_state(&mut self, event: &MarketEvent, common: &mut Common<'r>) {
        if event.kind == EventKind::Definition {
            // The number may be another symbol's from now on.
            if let Some(place) = self.places.get_mut(event.instrument.index())
                && place.slot.is_some()
            {
                place.is_named = false;
                self.slot(event.instrument);
            }
            return;
        }
        if !says_state(event.kind) {
            return;
        }
        if event.instrument == InstrumentId::WHOLE_FEED {
            self.show_all(common);
            return;
        }
        if self.slot(event.instrument).is_none() {
            return;
        }
        let Some(slot) = &mut self.places[event.instrument.index()].slot else {
            return;
        };
        let mut edit = self.writer.edit(slot);
        write_state(&mut edit, &self.states, event.instrument);
        write_trade(&mut edit, &self.states, event.instrument);
        self.publish(edit, common);
    }

    /// Shows a book anew, with all that is known.
    fn show_whole(&mut self, instrument: InstrumentId, common: &mut Common<'r>) {
        if self.slot(instrument).is_none() {
            return;
        }
        let Some(slot) = &mut self.places[instrument.index()].slot else {
            return;
        };
        let mut edit = self.writer.edit(slot);
        if let Some(book) = self.books.book(instrument) {
            for side in Side::BOTH {
                edit.levels_from(side, 0, book.levels(side));
            }
            write_sums(&mut edit, &self.books, instrument, book.own_state());
        }
        write_state(&mut edit, &self.states, instrument);
        write_trade(&mut edit, &self.states, instrument);
        self.publish(edit, common);
    }

    /// All books changed: their state is the channel's, so that one word says it; what was cleared is shown book by book.
    #[cold]
    fn show_feed(&mut self, event: &MarketEvent, common: &mut Common<'r>) {
        if event.kind == EventKind::Clear {
            self.show_all(common);
        }
        self.show_source();
    }

    /// Shows every book that has a slot anew.
    #[cold]
    fn show_all(&mut self, common: &mut Common<'r>) {
        for index in 0..self.places.len() {
            if self.places[index].is_named && self.places[index].slot.is_some() {
                self.show_whole(InstrumentId(index as u32), common);
            }
        }
    }

    /// Shows the channel's state.
    fn show_source(&mut self) {
        let state = match self.books.feed_state() {
            _ if self.has_ended => SourceState::Ended,
            BookState::Live if self.is_silent => SourceState::Stale,
            state => state.into(),
        };
        self.row.set_state(state);
    }

    /// The channel has been without packets for too long, or is no longer.
    #[cold]
    pub(crate) fn set_silent(&mut self, is_silent: bool, common: &mut Common<'r>) {
        if is_silent == self.is_silent {
            return;
        }
        self.is_silent = is_silent;
        self.show_source();
        if self.books.feed_state() == BookState::Live && !self.has_ended {
            let kind = if is_silent {
                EventKind::Gap
            } else {
                EventKind::Recovered
            };
            self.say(
                &MarketEvent {
                    kind,
                    ..MarketEvent::default()
                },
                common,
            );
        }
    }

    /// Whether it was said to be silent.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// The session is over, or begins anew.
    #[cold]
    pub(crate) fn end(&mut self, has_ended: bool, common: &mut Common<'r>) {
        self.has_ended = has_ended;
        self.show_source();
        let event = match self.books.feed_state() {
            _ if has_ended => end_event(),
            BookState::Live => MarketEvent {
                kind: EventKind::Recovered,
                ..MarketEvent::default()
            },
            BookState::Building | BookState::Stale => return,
        };
        self.say(&event, common);
    }

    /// Says something of the whole channel to the super books.
    fn say(&mut self, event: &MarketEvent, common: &mut Common<'r>) {
        if self.relay.is_some() {
            let event = MarketEvent {
                venue: self.books.config().venue,
                seq: self.last.seq,
                recv_ts: self.received,
                ..*event
            };
            common.supers.take(self.source, self.stamp, &event);
        }
    }

    /// Finds slots and super books for instruments that have something to show.
    #[cold]
    fn name<C: Channel>(&mut self, channel: &C, common: &mut Common<'r>) {
        while let Some(id) = self.unnamed.pop() {
            self.places[id.index()].is_waiting = false;
            // Not known yet: it is asked again with its next event.
            let Some(instrument) = channel.instrument(id) else {
                continue;
            };
            let symbol = match instrument.symbol {
                Symbol::EMPTY => number_as_symbol(id),
                symbol => symbol,
            };
            self.place(id, symbol, common);
            self.show_whole(id, common);
            self.join(id, &symbol, common);
        }
    }

    /// A slot for a symbol: the one it has had, or a new one.
    fn place(&mut self, id: InstrumentId, symbol: Symbol, common: &mut Common<'r>) {
        let index = id.index();
        self.places[index].is_named = true;
        if self.names[index] == symbol {
            return;
        }
        self.names[index] = symbol;
        let identity = BookIdentity {
            source: self.source,
            instrument: id,
            symbol,
        };
        self.places[index].slot = match self.writer.claim(&identity) {
            Ok(slot) => {
                self.row.book_claimed();
                Some(slot)
            }
            Err(_) => {
                self.row.book_refused();
                let _ = common.notices.try_send(Notice::NoBookSlot(self.source, symbol));
                None
            }
        };
    }

    /// Tells super books of an instrument and all that is known of it.
    fn join(&mut self, id: InstrumentId, symbol: &Symbol, common: &mut Common<'r>) {
        let venue = self.books.config().venue;
        // What is not of the venue's convention has a book of its own and is in no super book.
        let (Some(relay), Some(symbol)) = (self.relay, consolidated(venue, symbol)) else {
            return;
        };
        self.places[id.index()].is_in_super = true;
        let (source, stamp) = (self.source, self.stamp);
        let about = MarketEvent {
            seq: self.last.seq,
            venue_ts: self.last.venue_ts,
            recv_ts: self.received,
            venue,
            instrument: id,
            ..MarketEvent::default()
        };
        let supers = &mut common.supers;
        let mut sink = |event: &MarketEvent| supers.take(source, stamp, event);
        sink(&MarketEvent {
            recv_ts: self.received,
            ..define_event(id, &symbol)
        });
        match relay {
            Relay::Levels => self.books.relay_book(&about, id, &mut sink),
            Relay::National => {
                // A top of book is one level a side at most.
                if let Some(book) = self.books.book(id) {
                    let [bid, ask] = Side::BOTH.map(|side| book.best(side).unwrap_or_default());
                    sink(&MarketEvent {
                        kind: EventKind::Quote,
                        price: bid.price,
                        qty: bid.qty,
                        ask_price: ask.price,
                        ask_qty: ask.qty,
                        ..about
                    });
                    if book.own_state() == BookState::Stale {
                        sink(&MarketEvent {
                            kind: EventKind::Gap,
                            ..about
                        });
                    }
                }
            }
        }
        let Some(state) = self.states.get(id) else { return };
        sink(&MarketEvent {
            kind: EventKind::Status,
            status: state.status,
            code: state.reason,
            ..about
        });
        if state.volume != Volume::ZERO {
            sink(&MarketEvent {
                kind: EventKind::Trade,
                price: state.last.price,
                qty: state.volume,
                ref_id: state.last.match_id,
                flags: EventFlags::NO_SIDE,
                ..about
            });
        }
    }

    /// Begins and ends a time in which instruments are unsubscribed.
    pub(crate) fn set_leaving(&mut self, is_leaving: bool) {
        self.is_leaving = is_leaving;
    }

    /// An instrument is no longer wanted: it leaves its super book.
    pub(crate) fn leave(&mut self, id: InstrumentId, common: &mut Common<'r>) {
        if let Some(place) = self.places.get_mut(id.index())
            && place.is_in_super
        {
            place.is_in_super = false;
            // Named again when it is wanted again.
            place.is_named = false;
            common.supers.take(self.source, self.stamp, &undefine_event(id));
        }
    }

    /// Shows counters and kinds of message. Not for the way of a packet.
    pub(crate) fn report<C: Channel>(&mut self, channel: &C, more: &Counters) {
        let mut counters = channel.counters();
        counters.merge(self.books.counters());
        counters.merge(more);
        self.row.counters(&counters);
        channel.kinds(&mut |kind, seen| self.row.kind(kind.0, seen.seen, seen.filtered));
    }

    /// Begins a day anew with other books: what is shown is empty until the channel fills it.
    pub(crate) fn restart(&mut self, books: Books, common: &mut Common<'r>) {
        assert_eq!(books.config().instruments, self.books.config().instruments);
        self.states = InstrumentStates::new(books.config().instruments, TRADES_KEPT);
        self.books = books;
        (self.is_silent, self.has_ended) = (false, false);
        for kind in [EventKind::Clear, EventKind::Gap] {
            self.say(
                &MarketEvent {
                    kind,
                    ..MarketEvent::default()
                },
                common,
            );
        }
        self.show_source();
        self.show_all(common);
        self.places.iter_mut().for_each(|place| place.is_named = false);
        self.visible = NOT_VISIBLE;
    }
}

/// Whether an event says something that [`InstrumentStates`] keep.
#[inline]
fn says_state(kind: EventKind) -> bool {
    use EventKind::{Execute, Imbalance, Status, Trade, TradeBreak};
    matches!(kind, Execute | Imbalance | Status | Trade | TradeBreak)
}

/// What stands for the name of an instrument without one.
fn number_as_symbol(id: InstrumentId) -> Symbol {
    Symbol::new(format!("#{}", id.0).as_bytes()).unwrap_or_default()
}

/// The levels that the last event changed.
#[inline]
fn write_levels(edit: &mut BookEdit<'_, AtomicU64>, books: &Books, instrument: InstrumentId) {
    let Some(book) = books.book(instrument) else {
        return;
    };
    if books.is_rebuilt() {
        for side in Side::BOTH {
            edit.levels_from(side, 0, book.levels(side));
        }
    }
    for change in books.changes() {
        let rank = change.rank as usize;
        match change.kind {
            ChangeKind::Changed => edit.level(
                change.side,
                rank,
                &Level {
                    price: change.price,
                    qty: change.qty,
                    orders: change.orders,
                },
            ),
            // From the book as it is after all changes: later ones do no harm.
            ChangeKind::Inserted | ChangeKind::Removed => {
                edit.levels_from(change.side, rank, book.levels(change.side).skip(rank))
            }
        }
    }
    write_sums(edit, books, instrument, book.own_state());
}

#[inline]
fn write_sums(
    edit: &mut BookEdit<'_, AtomicU64>,
    books: &Books,
    instrument: InstrumentId,
    own_state: BookState,
) {
    let totals = books.totals(instrument);
    for side in Side::BOTH {
        let total = &totals[side as usize];
        edit.totals(
            side,
            total.levels,
            total.qty,
            total.orders.min(u32::MAX.into()) as u32,
        );
    }
    edit.state(own_state);
}

fn write_trade(edit: &mut BookEdit<'_, AtomicU64>, states: &InstrumentStates, instrument: InstrumentId) {
    if let Some(state) = states.get(instrument) {
        let last = LastTrade {
            price: state.last.price,
            qty: state.last.qty,
            venue_ts: state.last.venue_ts,
        };
        edit.trade(&last, state.volume, state.trades);
    }
}

fn write_state(edit: &mut BookEdit<'_, AtomicU64>, states: &InstrumentStates, instrument: InstrumentId) {
    if let Some(state) = states.get(instrument) {
        // The venue as a whole stands above the instrument where it ends trading.
        edit.status(match states.venue_status() {
            venue @ (TradingStatus::Paused | TradingStatus::Halted | TradingStatus::Closed) => venue,
            _ => state.status,
        });
        let auction = &state.auction;
        edit.auction(&Auction {
            kind: auction.kind,
            reference: auction.reference,
            near: auction.near,
            far: auction.far,
            paired: auction.paired,
            imbalance: auction.imbalance,
            side: auction.side,
        });
    }
}
