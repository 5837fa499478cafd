//! Consolidated books on their way to shared memory: on the feed thread, or on a thread of their own behind a
//! ring per feed thread.
//!
//! ```text
//! ChannelBooks ─► Supers::take ─┬─ inline ──────────────────────────────────► SuperPublisher ─► SuperBooks ─► SuperOut ─► slot
//!                       └─ ring of MarketEvent (source and stamp in `reserved`) ─►┘
//! ```

#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::SyncSender;

use tickwire_book::super_books::{self, Market, SuperFlags};
use tickwire_book::{SourceId, SuperBooks, SuperConfig, SuperId, SuperRef, SuperSink, SuperUpdate, prefetch};
use tickwire_market::{EventFlags, InstrumentId, MarketEvent, Nanos, Side};
use tickwire_runtime::clock::{Clock, tsc};
use tickwire_runtime::spsc::{Consumer, Producer};
use tickwire_shm::layout::{SHARE_WORDS, super_book};
use tickwire_shm::{
    Difference, HistogramWriter, Ladder, LastTrade, National, Region, Share, SuperEdit, SuperSlot,
    SuperWriter, Touch,
};

use super::{Halt, Notice};
use crate::channel_books::those_of;
use tickwire_replay::tape::Stopping;

/// Events a ring between a feed thread and the thread of consolidated books holds: 8 MiB. When it is full the
/// feed thread waits, which is counted; packets wait in the socket meanwhile.
pub const RING_EVENTS: usize = 1 << 16;
/// Events of one ring taken before the next one has its turn.
const EVENTS_PER_TURN: usize = 64;
/// Empty looks at the rings after which a group is taken to be over: longer than a feed thread takes from one
/// of its events to the next.
const PATIENCE: u32 = 64;
/// The bits of a stamp that travel with an event: ticks of a day.
const STAMP_BITS: u32 = 48;
const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;

/// Ticks since a stamp, of which only the low bits may be there.
#[inline]
pub fn ticks_since(stamp: u64, now: u64) -> u64 {
    now.wrapping_sub(stamp) & STAMP_MASK
}

/// Where a feed thread's levels go.
pub enum Supers<'r> {
    /// Nowhere.
    Off,
    /// Into consolidated books on this thread.
    Inline(Box<SuperPublisher<'r>>),
    /// To the thread of consolidated books.
    Behind(HandOver),
}

/// The feed thread's end of a ring.
pub struct HandOver {
    /// The ring itself; see [`RING_EVENTS`] for its size and for what happens when it is full.
    pub ring: Producer<MarketEvent>,
    /// Ends the wait for room in the ring.
    pub halt: Halt,
    /// How often the ring was full.
    pub waits: u64,
}

impl Supers<'_> {
    /// An event of a source in the vocabulary of consolidated books, of a packet that was in memory at
    /// `stamp`.
    #[inline]
    pub fn take(&mut self, source: u16, stamp: u64, event: &MarketEvent) {
        match self {
            Supers::Off => {}
            Supers::Inline(books) => books.take(source, stamp, event),
            Supers::Behind(hand_over) => hand_over.push(MarketEvent {
                reserved: u64::from(source) << STAMP_BITS | stamp & STAMP_MASK,
                ..*event
            }),
        }
    }

    /// The consolidated book that an instrument of a source is in, if it is on this thread.
    pub fn find(&self, source: u16, instrument: InstrumentId) -> Option<SuperId> {
        match self {
            Supers::Inline(books) => books.books.find_of(SourceId(source), instrument),
            Supers::Off | Supers::Behind(_) => None,
        }
    }

    /// A venue's group is over: what it changed is shown. Behind a ring that is seen by the last event's
    /// flag, or when nothing more comes.
    #[inline]
    pub fn end_group(&mut self) {
        if let Supers::Inline(books) = self {
            books.show_pending();
        }
    }

    /// The same of a message that another one of its packet follows: when what it changed was visible is
    /// said at the end of the group.
    #[inline]
    pub fn end_message(&mut self) {
        if let Supers::Inline(books) = self {
            books.show_untimed();
        }
    }

    /// How often this thread had to wait for the one of consolidated books.
    pub fn waits(&self) -> u64 {
        match self {
            Supers::Behind(hand_over) => hand_over.waits,
            Supers::Off | Supers::Inline(_) => 0,
        }
    }
}

impl HandOver {
    #[inline]
    fn push(&mut self, event: MarketEvent) {
        if let Err(event) = self.ring.push(event) {
            self.wait(event);
        }
    }

    /// The ring is full: nothing is lost, the sender waits. Ends when everything does.
    #[cold]
    fn wait(&mut self, mut event: MarketEvent) {
        self.waits += 1;
        while let Err(again) = self.ring.push(event) {
            if self.halt.is_stopping() {
                return;
            }
            event = again;
            std::thread::yield_now();
        }
    }
}

/// Consolidated books and where they are shown. Belongs to one thread.
pub struct SuperPublisher<'r> {
    books: SuperBooks,
    out: SuperOut<'r>,
}

/// The slots of consolidated books.
struct SuperOut<'r> {
    writer: SuperWriter<'r, AtomicU64>,
    /// By number of the consolidated book.
    places: Vec<SuperPlace>,
    /// By source.
    latencies: Vec<Option<HistogramWriter<'r, AtomicU64>>>,
    clock: Clock,
    /// When the packet of the event in hand was in memory.
    stamp: u64,
    untimed: Untimed,
    /// Consolidated books that an event of the group in hand changed; each is in it once.
    pending: Vec<SuperId>,
    notices: SyncSender<Notice>,
}

/// Consolidated books that were shown and wait for a time.
#[derive(Clone, Copy, Default)]
struct Untimed {
    count: u64,
    /// Whose packet changed them, and when it was in memory.
    source: SourceId,
    stamp: u64,
}

/// In a line of memory of its own.
#[derive(Default)]
#[repr(align(64))]
struct SuperPlace {
    slot: Option<SuperSlot>,
    is_refused: bool,
    /// It is in [`SuperOut::pending`].
    is_pending: bool,
    unshown: Unshown,
}

/// What of a consolidated book has changed and is not shown yet.
#[derive(Clone, Copy)]
struct Unshown {
    changed: SuperFlags,
    /// By side: the shares from this rank to that one, which is beyond.
    first: [u32; 2],
    end: [u32; 2],
    /// Of the first change's packet.
    stamp: u64,
    /// Of the last change.
    recv_ts: Nanos,
    source: SourceId,
}

impl Default for Unshown {
    fn default() -> Unshown {
        Unshown {
            changed: SuperFlags::NONE,
            first: [u32::MAX; 2],
            end: [0; 2],
            stamp: 0,
            recv_ts: Nanos::ZERO,
            source: SourceId(0),
        }
    }
}

impl Unshown {
    /// Everything changed.
    fn fill(&mut self) {
        (self.changed, self.first, self.end) = (SuperFlags::ALL, [0; 2], [u32::MAX; 2]);
    }

    /// It is shown. The other fields are written by the next change before they are read.
    #[inline]
    fn clear(&mut self) {
        (self.changed, self.first, self.end) = (SuperFlags::NONE, [u32::MAX; 2], [0; 2]);
    }

    /// The ranks of a side that changed: from the first to the second, which is beyond.
    #[inline]
    fn ranks(&self, side: Side) -> (usize, usize) {
        (
            self.first[side as usize] as usize,
            self.end[side as usize] as usize,
        )
    }
}

impl<'r> SuperPublisher<'r> {
    /// Without any consolidated book yet; `latencies` are the histograms of the sources.
    pub fn new(
        config: SuperConfig,
        region: Region<'r, AtomicU64>,
        latencies: &[Option<u32>],
        clock: Clock,
        notices: SyncSender<Notice>,
    ) -> SuperPublisher<'r> {
        let symbols = config.symbols as usize;
        let places = (0..symbols).map(|_| SuperPlace::default()).collect();
        let histogram = |index: &Option<u32>| index.map(|index| region.histogram(index));
        SuperPublisher {
            books: SuperBooks::new(config),
            out: SuperOut {
                writer: region.supers(),
                places,
                latencies: latencies.iter().map(histogram).collect(),
                clock,
                stamp: 0,
                untimed: Untimed::default(),
                pending: Vec::with_capacity(symbols),
                notices,
            },
        }
    }

    /// A level of a consolidated book will change soon: its line, and that of its place, are asked for.
    #[inline]
    pub fn upcoming(&self, id: SuperId) {
        self.books.upcoming(id);
        prefetch::fetch(&self.out.places, id.0 as usize);
    }

    /// It changes next: what those lines name is asked for, its best shares and the lines of the slot that
    /// nearly every change writes.
    #[inline]
    pub fn approach(&self, id: SuperId) {
        self.books.approach(id);
        let place = self.out.places.get(id.0 as usize);
        let Some(slot) = place.and_then(|place| place.slot.as_ref()) else {
            return;
        };
        let words = self.out.writer.words(slot);
        let asks = super_book::WORDS + SHARE_WORDS * self.out.writer.shown();
        for word in [
            super_book::SEQUENCE,
            super_book::PRICE,
            super_book::RECV_TS,
            super_book::SHARES,
            super_book::WORDS,
            asks,
        ] {
            prefetch::fetch_near(words, word);
        }
    }

    /// What cannot be applied is counted by the books, and said once they have no room for a symbol.
    #[inline]
    pub fn take(&mut self, source: u16, stamp: u64, event: &MarketEvent) {
        self.out.stamp = stamp;
        // The reason is in the counters of the books.
        let _ = self.books.apply(SourceId(source), event, &mut self.out);
    }

    /// Shows what the group changed.
    #[inline(always)]
    pub fn show_pending(&mut self) {
        if !self.out.pending.is_empty() {
            self.show_each(true);
        }
        if self.out.untimed.count > 0 {
            self.out.time();
        }
    }

    /// The same of a message that another one of its packet follows.
    #[inline(always)]
    pub fn show_untimed(&mut self) {
        if !self.out.pending.is_empty() {
            self.show_each(false);
        }
    }

    #[inline(never)]
    fn show_each(&mut self, is_timed: bool) {
        let mut shown = 0;
        while let Some(&id) = self.out.pending.get(shown) {
            if let Some(book) = self.books.book(id) {
                self.out.show(&book, is_timed);
            }
            shown += 1;
        }
        self.out.pending.clear();
    }

    /// Empties rings in turns until they are empty and everything ends.
    pub fn run(mut self, mut rings: Vec<Consumer<MarketEvent>>, is_spinning: bool, halt: &Halt) {
        let mut idle = 0_u32;
        let mut is_whole = true;
        loop {
            let mut any = false;
            for ring in &mut rings {
                for _ in 0..EVENTS_PER_TURN {
                    let Some(event) = ring.pop() else { break };
                    any = true;
                    self.take((event.reserved >> STAMP_BITS) as u16, event.reserved, &event);
                    is_whole = event.flags.has(EventFlags::LAST);
                }
                if is_whole {
                    self.show_pending();
                }
            }
            idle = if any { 0 } else { idle.saturating_add(1) };
            if idle == PATIENCE {
                // Not every group ends with something that consolidated books hear of.
                self.show_pending();
            }
            match idle {
                0 => {}
                _ if halt.is_stopping() => return self.show_pending(),
                1..=256 => std::hint::spin_loop(),
                _ if is_spinning => std::hint::spin_loop(),
                _ => std::thread::sleep(std::time::Duration::from_micros(50)),
            }
        }
    }
}

impl SuperOut<'_> {
    /// The slot of a consolidated book, taken at its first change.
    #[cold]
    fn claim(&mut self, book: &SuperRef<'_>, index: usize) {
        match self.writer.claim(*book.symbol()) {
            Ok(slot) => {
                self.places[index].slot = Some(slot);
                self.places[index].unshown.fill();
            }
            Err(_) => {
                self.places[index].is_refused = true;
                let _ = self.notices.try_send(Notice::NoSuperSlot(*book.symbol()));
            }
        }
    }
}

impl SuperSink for SuperOut<'_> {
    // Inlined where a level has changed, so that the update need not be written to memory first.
    #[inline(always)]
    fn on_super(&mut self, _: &SuperRef<'_>, update: &SuperUpdate) {
        let Some(place) = self.places.get_mut(update.id.0 as usize) else {
            return;
        };
        if !place.is_pending {
            (place.is_pending, place.unshown.stamp) = (true, self.stamp);
            self.pending.push(update.id);
        }
        let unshown = &mut place.unshown;
        unshown.changed = unshown.changed.with(update.changed);
        for at in 0..Side::BOTH.len() {
            unshown.first[at] = unshown.first[at].min(update.first[at]);
            unshown.end[at] = unshown.end[at].max(update.end[at]);
        }
        (unshown.recv_ts, unshown.source) = (update.recv_ts, update.source);
    }
}

impl SuperOut<'_> {
    /// Shows what has changed in a consolidated book.
    #[inline]
    fn show(&mut self, book: &SuperRef<'_>, is_timed: bool) {
        let index = book.id().0 as usize;
        if self.places[index].slot.is_none() && !self.places[index].is_refused {
            self.claim(book, index);
        }
        let place = &mut self.places[index];
        place.is_pending = false;
        // Read where it stands, field by field as it was written a moment ago: a copy of more at once would
        // wait until that has reached the cache.
        let unshown = &mut place.unshown;
        let Some(slot) = &mut place.slot else {
            return unshown.clear();
        };
        let all = unshown.changed;
        let changed = |flags: SuperFlags| all.any(flags);
        let mut edit = self.writer.edit(slot);
        if changed(SuperFlags::FEEDS) {
            edit.feeds(book.feeds().0, book.away().0);
        }
        if changed(SuperFlags::MARKET) {
            edit.touch(match book.market() {
                Market::Locked => Touch::Locked,
                Market::Crossed => Touch::Crossed,
                Market::OneSided | Market::Normal => Touch::Apart,
            });
        }
        let parts = [
            (SuperFlags::BIDS, SuperFlags::BEST_BID),
            (SuperFlags::ASKS, SuperFlags::BEST_ASK),
        ];
        for side in those_of(parts.map(|(shares, best)| changed(shares.with(best)))) {
            edit.ladder(side, &ladder_of(book, side));
            if changed(parts[side as usize].0) {
                let (first, end) = unshown.ranks(side);
                match book.shares_between(side, first, end) {
                    Some(shares) => edit.shares_from(side, first, shares.map(share_of)),
                    None => show_those_present(&mut edit, book, side, first, end),
                }
            }
        }
        if changed(SuperFlags::NATIONAL) {
            let national = book.national().unwrap_or_default();
            let sides = national.sides.map(|side| National {
                price: side.price,
                qty: side.qty,
                participant: side.participant,
            });
            edit.national(&sides, national.venue_ts, national.recv_ts);
        }
        if changed(SuperFlags::DIFFERENCE) {
            edit.difference(&Side::BOTH.map(|side| {
                let theirs = book.difference(side);
                Difference {
                    price: -theirs.price.raw(),
                    since: theirs.since,
                }
            }));
        }
        if changed(SuperFlags::TRADE) {
            let last = book
                .last_trade()
                .map_or_else(LastTrade::default, |(last, _)| LastTrade {
                    price: last.price,
                    qty: last.qty,
                    venue_ts: last.venue_ts,
                });
            edit.trade(&last, book.volume(), book.trades());
        }
        let (source, stamp) = (unshown.source, unshown.stamp);
        if !is_timed {
            edit.publish(unshown.recv_ts, Nanos::ZERO);
            unshown.clear();
            return self.wait(source, stamp);
        }
        let ns = self.clock.span_ns(ticks_since(stamp, tsc()));
        edit.publish(unshown.recv_ts, unshown.recv_ts.after(ns));
        unshown.clear();
        let waited = match self.untimed.source == source {
            true => core::mem::take(&mut self.untimed).count,
            false => 0,
        };
        self.record(source, ns, 1 + waited);
    }

    /// A book was shown that waits for a time.
    #[inline]
    fn wait(&mut self, source: SourceId, stamp: u64) {
        if self.untimed.count > 0 && self.untimed.source != source {
            self.time();
        }
        self.untimed = Untimed {
            count: self.untimed.count + 1,
            source,
            stamp,
        };
    }

    /// What waits for a time is timed now: the last message of the packet showed nothing, or a book of
    /// another source.
    #[cold]
    fn time(&mut self) {
        let Untimed { count, source, stamp } = core::mem::take(&mut self.untimed);
        let ns = self.clock.span_ns(ticks_since(stamp, tsc()));
        self.record(source, ns, count);
    }

    #[inline]
    fn record(&mut self, source: SourceId, ns: u64, times: u64) {
        if let Some(Some(latency)) = self.latencies.get_mut(source.0 as usize) {
            latency.record_each(ns, times);
        }
    }
}

/// Shows shares of which some are of feeds that are out.
#[cold]
fn show_those_present(
    edit: &mut SuperEdit<'_, AtomicU64>,
    book: &SuperRef<'_>,
    side: Side,
    first: usize,
    end: usize,
) {
    let shares = book.shares_from(side, first).take(end.saturating_sub(first));
    edit.shares_from(side, first, shares.map(share_of));
}

/// Best price and sums of a side.
#[inline]
fn ladder_of(book: &SuperRef<'_>, side: Side) -> Ladder {
    let best = book.best(side).unwrap_or_default();
    let totals = book.totals(side);
    Ladder {
        price: best.price,
        qty: best.qty,
        feeds: best.feeds.0,
        shares: totals.shares,
        levels: totals.levels,
        total_qty: totals.qty,
    }
}

#[inline]
fn share_of(share: super_books::Share) -> Share {
    Share {
        price: share.price,
        qty: share.qty,
        feed: share.feed,
        orders: share.orders,
    }
}
