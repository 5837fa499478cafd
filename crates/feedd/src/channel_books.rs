//! From a channel's events to its books in shared memory, as calls in order: what `tickwire_node::hot` is to
//! trading.
//!
//! ```text
//! ThreadBooks ─► ChannelBooks::on_event ─► ring ─► Books::apply ─► InstrumentStates ─► book slot ─► Books::relay ─► consolidated books
//! ```
//! A book is shown when it is whole: after the last event of a message, or on MDP 3.0, whose match events
//! have several messages and packets, after the last one of those ([`EventFlags::LAST`]). What is between
//! (cleared, about to be marked) is nobody's book.
//!
//! Nothing here allocates, locks or calls the system after it is set up; the tests of `publishbench.rs` run
//! it for every feed with an armed allocator. A book has no slot until it has something to show: its name
//! comes from the channel's directory, which cannot be asked while the channel speaks, so that
//! [`ChannelBooks::settle`] does it after the packet.

mod places;
#[cfg(test)]
mod tests;
mod write;

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::SyncSender;

use tickwire_book::super_books::{define_event, end_event, undefine_event};
use tickwire_book::{Books, InstrumentStates, Outcome, Relay, SuperId, prefetch};
use tickwire_feed::{Channel, FeedState, consolidated};
use tickwire_market::{
    BookState, BookUpdate, Counters, EventFlags, EventKind, InstrumentId, MarketEvent, MessageType, Nanos,
    SeqNo, Side, Symbol, Upcoming, Venue, Volume,
};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::stamp::RxTimes;
use tickwire_shm::{BookIdentity, BookWriter, Region, RingWriter, SourceState, SourceWriter, layout};

use super::Notice;
use super::config::{LatencyOf, RingContent};
use super::supers::Supers;
use places::{BookPlace, Hearing, Naming, Unshown};

pub(crate) use places::those_of;
use write::{write_status, write_totals, write_trade};

/// No book became visible since the packet came.
const NOT_VISIBLE: u64 = u64::MAX;
/// Trades of a channel that can still be taken off its volume when the venue breaks them.
const TRADES_KEPT: u32 = 1 << 14;

/// Words of a cache line.
const LINE: usize = 8;

/// Records of the ring that a packet of one message needs: the event, or two of an order that is replaced,
/// and the book's update.
const RECORDS_AHEAD: usize = 3;

/// What the channels of one feed thread share.
pub struct ThreadShared<'r> {
    /// The ring of this thread's events and updates; `None` where there are no rings.
    pub ring: Option<RingWriter<'r, AtomicU64>>,
    /// What goes into the ring.
    pub content: RingContent,
    /// Whose latency is measured.
    pub latency_of: LatencyOf,
    /// Where levels go for the consolidated books.
    pub supers: Supers<'r>,
    /// Turns ticks of the processor into nanoseconds.
    pub clock: Clock,
    /// To the main thread, bounded; a notice that finds no room is dropped, and the counters say the same.
    pub notices: SyncSender<Notice>,
}

/// The stamps of an event.
#[derive(Clone, Copy, Default)]
struct Cause {
    seq: SeqNo,
    venue_ts: Nanos,
    recv_ts: Nanos,
}

/// Books of one channel and their places in shared memory.
pub struct ChannelBooks<'r> {
    source: u16,
    books: Books,
    states: InstrumentStates,
    relay: Option<Relay>,
    writer: BookWriter<'r, AtomicU64>,
    row: SourceWriter<'r, AtomicU64>,
    /// By instrument.
    places: Vec<BookPlace>,
    names: Vec<Symbol>,
    /// Instruments to be named after the packet; each is in it once.
    unnamed: Vec<InstrumentId>,
    /// Instruments that an event of the group in hand changed; each is in it once.
    pending: Vec<InstrumentId>,
    /// A group may go on in the next packet (MDP 3.0 §"Match Event Indicator").
    has_long_groups: bool,
    /// Orders of the packet in hand were announced: their slots have been fetched.
    is_announced: bool,
    hearing: Hearing,
    /// Instruments are being unsubscribed: none is to be named.
    is_unsubscribing: bool,
    /// The message in hand.
    kind: MessageType,
    /// Nanoseconds until the last book that the packet in hand changed was visible.
    packet_visible: u64,
    /// When the packet in hand was in memory, in ticks and since the epoch.
    stamp: u64,
    received: Nanos,
    /// Of the last event: what is said later is said with these stamps.
    cause: Cause,
}

impl<'r> ChannelBooks<'r> {
    /// `books` must be tracked. `relay`: what the source is to consolidated books, `None` for nothing.
    pub fn new(
        region: Region<'r, AtomicU64>,
        row: SourceWriter<'r, AtomicU64>,
        books: Books,
        relay: Option<Relay>,
    ) -> ChannelBooks<'r> {
        ChannelBooks::keeping(TRADES_KEPT, region, row, books, relay)
    }

    /// The same, of which so many trades can still be broken.
    pub(crate) fn keeping(
        trades: u32,
        region: Region<'r, AtomicU64>,
        row: SourceWriter<'r, AtomicU64>,
        books: Books,
        relay: Option<Relay>,
    ) -> ChannelBooks<'r> {
        let instruments = books.config().instruments as usize;
        ChannelBooks {
            source: row.number(),
            states: InstrumentStates::new(instruments as u32, trades),
            has_long_groups: books.config().venue == Venue::Cme,
            books,
            relay,
            writer: region.books(),
            row,
            places: (0..instruments).map(|_| BookPlace::NONE).collect(),
            names: vec![Symbol::EMPTY; instruments],
            unnamed: Vec::with_capacity(instruments),
            pending: Vec::with_capacity(instruments),
            is_announced: false,
            hearing: Hearing::Heard,
            is_unsubscribing: false,
            kind: MessageType::default(),
            packet_visible: NOT_VISIBLE,
            stamp: 0,
            received: Nanos::ZERO,
            cause: Cause::default(),
        }
    }

    /// A packet was in memory at `stamp`, which was `received`.
    #[inline]
    pub fn begin(&mut self, stamp: u64, received: Nanos) {
        (self.stamp, self.received) = (stamp, received);
        (self.is_announced, self.packet_visible) = (false, NOT_VISIBLE);
    }

    /// How the packet in hand came to memory, as far as that was measured.
    #[inline]
    pub fn note_arrival(&mut self, times: &RxTimes) {
        if let Some(ns) = times.kernel_to_user() {
            self.row.kernel_latency(ns);
        }
        if let Some(ns) = times.wire_to_hook() {
            self.row.wire_latency(ns);
        }
        if let Some(ns) = times.hook_to_user() {
            self.row.hook_latency(ns);
        }
    }

    /// A message of this kind begins.
    #[inline]
    pub fn on_message(&mut self, kind: MessageType, shared: &mut ThreadShared<'r>) {
        // What was said before is a message of its own, and whole, but on a venue whose groups are longer.
        if !self.has_long_groups {
            match shared.latency_of {
                LatencyOf::Messages => self.show_pending(shared),
                LatencyOf::Packets => self.show_untimed(shared),
            }
        }
        self.kind = kind;
    }

    /// The next instrument whose book is found to be wrong.
    #[inline]
    pub fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books.next_distrusted()
    }

    /// An order that the packet in hand is about: what it needs is fetched.
    #[inline]
    pub fn upcoming(&mut self, next: Upcoming, shared: &ThreadShared<'r>) {
        self.books.upcoming(next);
        self.is_announced = true;
        self.fetch(next.instrument);
        if let Supers::Inline(supers) = &shared.supers
            && let Some(id) = self.levels_in(next.instrument)
        {
            supers.upcoming(id);
        }
    }

    /// The order that a packet of one message is about: what is known of its place by now is fetched. The
    /// lines of its slot follow with the event, when the line that names them has come.
    #[inline]
    pub fn arriving(&mut self, next: Upcoming) {
        self.books.arriving(next);
        if next.instrument != InstrumentId::WHOLE_FEED {
            prefetch::fetch(&self.places, next.instrument.index());
        }
    }

    /// How long after the packet in hand was in memory its last book was visible, nanoseconds, if there is
    /// any.
    pub fn visible_ns(&self) -> Option<u64> {
        (self.packet_visible != NOT_VISIBLE).then_some(self.packet_visible)
    }

    /// The packet was taken: what it said of the channel is shown too.
    #[inline]
    pub fn settle<C: Channel>(&mut self, channel: &C, shared: &mut ThreadShared<'r>) {
        if !self.has_long_groups {
            self.show_pending(shared);
        }
        if !self.unnamed.is_empty() {
            self.name(channel, shared);
            shared.supers.end_group();
        }
        let has_ended = channel.state() == FeedState::Ended;
        if has_ended != (self.hearing == Hearing::Ended) {
            self.end(has_ended, shared);
        }
    }

    /// Notes a packet of the venue in the channel's row.
    #[inline]
    pub fn note_packet(&mut self, next_seq: SeqNo) {
        self.row.packet(next_seq, self.received);
    }

    /// What the channel says.
    pub fn on_event(&mut self, event: &MarketEvent, shared: &mut ThreadShared<'r>) {
        if !self.is_announced {
            self.books.approach(event.instrument);
            self.fetch(event.instrument);
        }
        if let Supers::Inline(supers) = &shared.supers
            && let Some(id) = self.levels_in(event.instrument)
        {
            supers.approach(id);
        }
        if let Some(ring) = &mut shared.ring
            && shared.content.has_events()
        {
            ring.event(self.source, event);
        }
        let says_state = says_state(event.kind);
        if says_state {
            self.states.approach(event);
        }
        let outcome = self.books.apply(event).outcome();
        self.cause = Cause {
            seq: event.seq,
            venue_ts: event.venue_ts,
            recv_ts: event.recv_ts,
        };
        if says_state {
            let executed_at = match event.kind {
                EventKind::TradeBreak => return self.follow_break(event, outcome, shared),
                EventKind::Execute => self.books.executed_at(event),
                _ => None,
            };
            self.states.note(event, executed_at);
        }
        self.follow(event, outcome, shared);
    }

    /// A broken trade's price and quantity are put into the event.
    #[cold]
    fn follow_break(&mut self, event: &MarketEvent, outcome: Outcome, shared: &mut ThreadShared<'r>) {
        let mut told = *event;
        self.states.apply(&mut told, None);
        self.follow(&told, outcome, shared);
    }

    /// Shows what an event did, or keeps it for the end of its group, and tells consolidated books.
    fn follow(&mut self, event: &MarketEvent, outcome: Outcome, shared: &mut ThreadShared<'r>) {
        match outcome {
            Outcome::Update(instrument, changed) => {
                let (places, books) = (&mut self.places, &self.books);
                if let Some(place) = places.get_mut(instrument.index()) {
                    place.unshown.add(books, changed);
                    place.unshown.is_trade |= event.kind == EventKind::Execute;
                    if !self.is_unsubscribing && !is_about_trust(event.kind) {
                        place.naming.return_if_left();
                    }
                }
                self.note(instrument);
            }
            Outcome::Feed(_) => self.show_feed(event, shared),
            // The book is stale from here on.
            Outcome::Rejected(_) => {
                self.note_state(event, shared);
                if let Some(place) = self.places.get_mut(event.instrument.index()) {
                    place.unshown = Unshown::EVERYTHING;
                }
                self.note(event.instrument);
            }
            Outcome::None => self.note_state(event, shared),
        }
        self.relay(event, outcome, shared);
        if event.flags.has(EventFlags::LAST) {
            self.show_pending(shared);
        }
    }

    /// What consolidated books hear of the event.
    #[inline]
    fn relay(&mut self, event: &MarketEvent, outcome: Outcome, shared: &mut ThreadShared<'r>) {
        let Some(relay) = self.relay else { return };
        let about = match outcome {
            Outcome::Update(instrument, _) => instrument,
            _ => event.instrument,
        };
        let is_known = about == InstrumentId::WHOLE_FEED
            || self
                .places
                .get(about.index())
                .is_some_and(|place| place.is_in_super);
        // A silent channel is out already, and says when it is back.
        let is_state = matches!(outcome, Outcome::Feed(_)) && event.kind != EventKind::Clear;
        if is_known && !(self.hearing == Hearing::Silent && is_state) {
            let (source, stamp) = (self.source, self.stamp);
            let supers = &mut shared.supers;
            let mut sink = |event: &MarketEvent| supers.take(source, stamp, event);
            self.books.relay(event, outcome, relay, &mut sink);
        }
    }

    /// The consolidated book that has an instrument's levels, if it is on this thread.
    #[inline]
    fn levels_in(&self, instrument: InstrumentId) -> Option<SuperId> {
        self.places.get(instrument.index())?.levels_in
    }

    /// Asks for the lines of a slot that nearly every change of its book writes.
    #[inline]
    fn fetch(&self, instrument: InstrumentId) {
        let place = self.places.get(instrument.index());
        let Some(slot) = place.and_then(|place| place.slot.as_ref()) else {
            return;
        };
        let words = self.writer.words(slot);
        let asks = layout::book::WORDS + layout::LEVEL_WORDS * self.writer.shown();
        for line in [0, LINE, 2 * LINE, layout::book::WORDS, asks] {
            prefetch::fetch(words, line);
        }
    }

    /// Asks for the lines that the next message will write, whichever instrument it is about: of the ring and
    /// of the channel's row. For a thread that waits.
    pub(crate) fn fetch_ahead(&self, shared: &ThreadShared<'r>) {
        let ring = shared
            .ring
            .iter()
            .flat_map(|ring| ring.words_ahead(RECORDS_AHEAD));
        for words in ring.chain(self.row.words_ahead()) {
            for line in (0..words.len()).step_by(LINE) {
                prefetch::fetch(words, line);
            }
        }
    }

    /// A book has something to show at the end of the group, if it has a slot to show it in; without one it
    /// is named after the packet, and shown as a whole then.
    #[inline]
    fn note(&mut self, instrument: InstrumentId) {
        let Some(place) = self.places.get_mut(instrument.index()) else {
            return;
        };
        if place.naming == Naming::Unnamed && !self.is_unsubscribing {
            place.naming = Naming::Waiting;
            // Room for every instrument was made at the start.
            self.unnamed.push(instrument);
        }
        place.kind = self.kind;
        if !place.is_pending {
            place.is_pending = true;
            self.pending.push(instrument);
        }
    }

    /// The message, or the group, is over: shows what it changed.
    #[inline(always)]
    pub fn show_pending(&mut self, shared: &mut ThreadShared<'r>) {
        // It is asked before and after every message, and mostly there is nothing the first time.
        if !self.pending.is_empty() {
            self.show_each(true, shared);
        }
        if self.row.has_untimed() {
            self.time(shared);
        }
        shared.supers.end_group();
    }

    /// The same of a message that another one of its packet follows: when what it changed was visible is
    /// said with the packet's last book.
    #[inline(always)]
    fn show_untimed(&mut self, shared: &mut ThreadShared<'r>) {
        if !self.pending.is_empty() {
            self.show_each(false, shared);
        }
        shared.supers.end_message();
    }

    #[inline(never)]
    fn show_each(&mut self, is_timed: bool, shared: &mut ThreadShared<'r>) {
        let mut shown = 0;
        while let Some(&instrument) = self.pending.get(shown) {
            self.show(instrument, is_timed, shared);
            shown += 1;
        }
        self.pending.clear();
    }

    /// The last message of the packet showed nothing: the books of those before it are timed now.
    #[cold]
    fn time(&mut self, shared: &ThreadShared<'r>) {
        let ns = since(self.stamp, &shared.clock);
        self.row.time_untimed(ns);
        self.packet_visible = ns;
    }

    /// Shows what has changed in a book, and says it in the ring.
    #[inline]
    fn show(&mut self, instrument: InstrumentId, is_timed: bool, shared: &mut ThreadShared<'r>) {
        let Some(place) = self.places.get_mut(instrument.index()) else {
            return;
        };
        // What is shown anew is no news.
        let is_news = core::mem::take(&mut place.is_pending);
        let Some(book) = self.books.book(instrument) else {
            return;
        };
        // Read where it stands, field by field as it was written a moment ago: a copy of more at once would
        // wait until that has reached the cache.
        let unshown = &mut place.unshown;
        if let Some(ring) = &mut shared.ring
            && is_news
            && unshown.is_book
            && shared.content.has_updates()
        {
            let update = BookUpdate {
                recv_ts: self.cause.recv_ts,
                changed: unshown.changed,
                ..book.update()
            };
            ring.update(self.source, &update);
        }
        let Some(slot) = place.slot.as_mut().filter(|_| place.naming.is_shown()) else {
            return *unshown = Unshown::NOTHING;
        };
        let mut edit = self.writer.edit(slot);
        if unshown.is_book {
            for side in unshown.sides() {
                let ranks = unshown.first[side as usize].into()..unshown.end[side as usize].into();
                edit.levels_in(side, ranks, book.levels_from(side, unshown.best[side as usize]));
            }
            write_totals(&mut edit, &self.books, instrument);
            edit.state(match place.naming {
                Naming::Left => BookState::Stale,
                _ => book.own_state(),
            });
        }
        if unshown.is_status {
            write_status(&mut edit, &self.states, instrument);
        }
        if unshown.is_trade {
            write_trade(&mut edit, &self.states, instrument);
        }
        *unshown = Unshown::NOTHING;
        edit.cause(self.cause.seq, self.cause.venue_ts, self.cause.recv_ts);
        if !is_timed {
            edit.publish(Nanos::ZERO);
            return self.row.update_untimed(is_news.then_some(place.kind.0));
        }
        // The stamp is taken right before the two stores that make the book visible.
        let ns = since(self.stamp, &shared.clock);
        edit.publish(self.received.after(ns));
        self.row.update(ns);
        if is_news {
            self.row.kind_latency(place.kind.0, ns);
        }
        if self.row.has_untimed() {
            self.row.time_untimed(ns);
        }
        self.packet_visible = ns;
    }

    /// Keeps what a message said that is not about the levels of a book.
    #[inline]
    fn note_state(&mut self, event: &MarketEvent, shared: &mut ThreadShared<'r>) {
        if event.kind == EventKind::Definition {
            // The number may be another symbol's from now on.
            if let Some(place) = self.places.get_mut(event.instrument.index())
                && place.slot.is_some()
            {
                if place.naming == Naming::Named {
                    place.naming = Naming::Unnamed;
                }
                if !self.is_unsubscribing {
                    place.naming.return_if_left();
                }
                place.unshown = Unshown::EVERYTHING;
                self.note(event.instrument);
            }
            return;
        }
        if !says_state(event.kind) {
            return;
        }
        if event.instrument == InstrumentId::WHOLE_FEED {
            self.show_all(shared);
            return;
        }
        if let Some(place) = self.places.get_mut(event.instrument.index()) {
            (place.unshown.is_status, place.unshown.is_trade) = (true, true);
            if !self.is_unsubscribing {
                place.naming.return_if_left();
            }
        }
        self.note(event.instrument);
    }

    /// Shows a book anew, with all that is known.
    fn show_whole(&mut self, instrument: InstrumentId, shared: &mut ThreadShared<'r>) {
        if let Some(place) = self.places.get_mut(instrument.index()) {
            place.unshown = Unshown {
                // Nothing has happened that an update could say.
                changed: place.unshown.changed,
                ..Unshown::EVERYTHING
            };
            self.show(instrument, true, shared);
        }
    }

    /// All books changed: their state is the channel's, so that one word says it; what was cleared is shown
    /// book by book.
    #[cold]
    fn show_feed(&mut self, event: &MarketEvent, shared: &mut ThreadShared<'r>) {
        if event.kind == EventKind::Clear {
            self.show_all(shared);
        }
        self.show_source();
    }

    /// Shows every book that has a slot anew.
    #[cold]
    fn show_all(&mut self, shared: &mut ThreadShared<'r>) {
        for index in 0..self.places.len() {
            let place = &self.places[index];
            if place.slot.is_some() && place.naming.is_shown() {
                self.show_whole(InstrumentId(index as u32), shared);
            }
        }
    }

    /// Shows the channel's state.
    fn show_source(&mut self) {
        let state = match self.books.feed_state() {
            _ if self.hearing == Hearing::Ended => SourceState::Ended,
            BookState::Live if self.hearing == Hearing::Silent => SourceState::Stale,
            state => state.into(),
        };
        self.row.set_state(state);
    }

    /// The channel has been without packets for too long, or is no longer.
    #[cold]
    pub fn set_silent(&mut self, is_silent: bool, shared: &mut ThreadShared<'r>) {
        if is_silent == self.is_silent() || self.hearing == Hearing::Ended {
            return;
        }
        self.hearing = match is_silent {
            true => Hearing::Silent,
            false => Hearing::Heard,
        };
        self.show_source();
        if self.books.feed_state() == BookState::Live {
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
                shared,
            );
        }
    }

    /// Whether it was said to be silent.
    pub fn is_silent(&self) -> bool {
        self.hearing == Hearing::Silent
    }

    /// The session is over, or begins anew.
    #[cold]
    pub fn end(&mut self, has_ended: bool, shared: &mut ThreadShared<'r>) {
        self.hearing = match has_ended {
            true => Hearing::Ended,
            false => Hearing::Heard,
        };
        self.show_source();
        let event = match self.books.feed_state() {
            _ if has_ended => end_event(),
            BookState::Live => MarketEvent {
                kind: EventKind::Recovered,
                ..MarketEvent::default()
            },
            BookState::Building | BookState::Stale => return,
        };
        self.say(&event, shared);
    }

    /// Says something of the whole channel to the consolidated books.
    fn say(&mut self, event: &MarketEvent, shared: &mut ThreadShared<'r>) {
        if self.relay.is_some() {
            let event = MarketEvent {
                venue: self.books.config().venue,
                seq: self.cause.seq,
                recv_ts: self.received,
                ..*event
            };
            shared.supers.take(self.source, self.stamp, &event);
            shared.supers.end_group();
        }
    }

    /// Finds slots and consolidated books for instruments that have something to show.
    #[cold]
    fn name<C: Channel>(&mut self, channel: &C, shared: &mut ThreadShared<'r>) {
        while let Some(id) = self.unnamed.pop() {
            let naming = &mut self.places[id.index()].naming;
            if *naming != Naming::Waiting {
                continue;
            }
            *naming = Naming::Unnamed;
            // Not known yet: it is asked again with its next event.
            let Some(instrument) = channel.instrument(id) else {
                continue;
            };
            let symbol = match instrument.symbol {
                Symbol::EMPTY => number_as_symbol(id),
                symbol => symbol,
            };
            self.place(id, symbol, shared);
            self.show_whole(id, shared);
            self.join(id, &symbol, shared);
        }
    }

    /// Shows an instrument under this name, whatever a channel's directory says: for rehearsals.
    pub(crate) fn show_alone(&mut self, id: InstrumentId, symbol: Symbol, shared: &mut ThreadShared<'r>) {
        self.place(id, symbol, shared);
        self.show_whole(id, shared);
        self.join(id, &symbol, shared);
    }

    /// A slot for a symbol: the one it has had, or a new one.
    fn place(&mut self, id: InstrumentId, symbol: Symbol, shared: &mut ThreadShared<'r>) {
        let index = id.index();
        self.places[index].naming = Naming::Named;
        if self.names[index] == symbol {
            return;
        }
        self.names[index] = symbol;
        if let Some(slot) = &mut self.places[index].slot {
            // Of the symbol that had the number before nothing comes any more.
            let mut edit = self.writer.edit(slot);
            for side in Side::BOTH {
                edit.totals(side, 0, Volume::ZERO, 0);
            }
            edit.state(BookState::Stale);
            edit.publish(self.received);
        }
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
                let _ = shared.notices.try_send(Notice::NoBookSlot(self.source, symbol));
                None
            }
        };
    }

    /// Tells consolidated books of an instrument and all that is known of it.
    fn join(&mut self, id: InstrumentId, symbol: &Symbol, shared: &mut ThreadShared<'r>) {
        let venue = self.books.config().venue;
        // What is not of the venue's convention has a book of its own and is in no consolidated book.
        let (Some(relay), Some(symbol)) = (self.relay, consolidated(venue, symbol)) else {
            return;
        };
        self.places[id.index()].is_in_super = true;
        let (source, stamp) = (self.source, self.stamp);
        let about = MarketEvent {
            seq: self.cause.seq,
            venue_ts: self.cause.venue_ts,
            recv_ts: self.received,
            venue,
            instrument: id,
            ..MarketEvent::default()
        };
        let define = MarketEvent {
            recv_ts: self.received,
            ..define_event(id, &symbol)
        };
        shared.supers.take(source, stamp, &define);
        // Quotes of a consolidated feed write other lines than levels do, and fewer.
        self.places[id.index()].levels_in = match relay {
            Relay::Levels => shared.supers.find(source, id),
            Relay::National => None,
        };
        let supers = &mut shared.supers;
        let mut sink = |event: &MarketEvent| supers.take(source, stamp, event);
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
    pub fn set_unsubscribing(&mut self, is_unsubscribing: bool) {
        self.is_unsubscribing = is_unsubscribing;
    }

    /// An instrument is no longer wanted: it leaves its consolidated book, and its book is marked until it is
    /// wanted again.
    pub fn leave(&mut self, id: InstrumentId, shared: &mut ThreadShared<'r>) {
        let Some(place) = self.places.get_mut(id.index()) else {
            return;
        };
        if place.slot.is_some() || place.naming == Naming::Named {
            // Named again when it is wanted again.
            place.naming = Naming::Left;
        }
        place.levels_in = None;
        if core::mem::take(&mut place.is_in_super) {
            shared.supers.take(self.source, self.stamp, &undefine_event(id));
        }
        self.show_whole(id, shared);
        shared.supers.end_group();
    }

    /// An instrument is wanted, again or still.
    pub fn welcome(&mut self, id: InstrumentId) {
        if let Some(place) = self.places.get_mut(id.index()) {
            place.naming.return_if_left();
        }
    }

    /// Shows counters and kinds of message. Not for the hot path.
    pub fn report<C: Channel>(&mut self, channel: &C, more: &Counters) {
        let mut counters = channel.counters();
        counters.merge(self.books.counters());
        counters.merge(more);
        self.row.counters(&counters);
        channel.kinds(&mut |kind, seen| self.row.kind(kind.0, seen.seen, seen.filtered));
    }

    /// Begins a day anew with other books: what is shown is empty until the channel fills it.
    pub fn restart(&mut self, books: Books, shared: &mut ThreadShared<'r>) {
        assert_eq!(books.config().instruments, self.books.config().instruments);
        self.states = InstrumentStates::new(books.config().instruments, TRADES_KEPT);
        self.books = books;
        self.hearing = Hearing::Heard;
        for kind in [EventKind::Clear, EventKind::Gap] {
            self.say(
                &MarketEvent {
                    kind,
                    ..MarketEvent::default()
                },
                shared,
            );
        }
        self.show_source();
        self.pending.clear();
        self.show_all(shared);
        for place in &mut self.places {
            *place = BookPlace {
                slot: place.slot.take(),
                is_in_super: place.is_in_super,
                levels_in: place.levels_in,
                naming: match place.naming {
                    Naming::Waiting => Naming::Waiting,
                    _ => Naming::Unnamed,
                },
                ..BookPlace::NONE
            };
        }
        shared.supers.end_group();
    }
}

/// Nanoseconds since a stamp.
#[inline(always)]
fn since(stamp: u64, clock: &Clock) -> u64 {
    clock.span_ns(tsc().wrapping_sub(stamp))
}

/// Whether an event says something that [`InstrumentStates`] keep.
#[inline]
fn says_state(kind: EventKind) -> bool {
    use EventKind::{Clear, Execute, Imbalance, Status, Trade, TradeBreak};
    matches!(kind, Clear | Execute | Imbalance | Status | Trade | TradeBreak)
}

/// Whether an event says only how far a book can be trusted: of one that was unsubscribed that is said, too.
#[inline]
fn is_about_trust(kind: EventKind) -> bool {
    matches!(kind, EventKind::Clear | EventKind::Gap)
}

/// What stands for the name of an instrument without one.
fn number_as_symbol(id: InstrumentId) -> Symbol {
    Symbol::new(format!("#{}", id.0).as_bytes()).unwrap_or_default()
}
