//! A strategy with its orders, positions and limits.

use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use tickwire_book::Books;
use tickwire_market::{
    BookState, BookUpdate, Cause, ClientOrderId, Counter, Counters, EventFlags, EventKind, Instrument,
    InstrumentId, MarketEvent, Nanos, OrderIntent, Price, Side, Symbol, TradingStatus, UpdateFlags,
};

use super::config::ConductorConfig;
use super::context::{NOTES, State};
use super::quotes::{NAMES, Quotes};
use super::reconciling::Reconciling;
use super::several::NUMBERS;
use super::{
    BookChange, Context, Markets, Note, OrderEvent, OrderPort, Strategy, Subscription, TIMERS, TimerId, Trade,
};
use crate::{Change, OrderReport, Orders, Positions, ReportError, ReportKind, Risk};

/// A subscribed instrument and what the strategy knows of its book.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) instrument: InstrumentId,
    symbol: Symbol,
    is_dirty: bool,
    changed: UpdateFlags,
    /// The top that the strategy was told last, at the place `told`, and beside it the next one.
    tops: [BookUpdate; 2],
    told: u8,
}

impl Watch {
    #[inline(always)]
    fn next(&mut self) -> &mut BookUpdate {
        &mut self.tops[usize::from(self.told & 1 ^ 1)]
    }

    #[inline(always)]
    pub(super) fn shown(&self) -> &BookUpdate {
        &self.tops[usize::from(self.told & 1)]
    }
}

fn sorted(mut symbols: Vec<Symbol>) -> Vec<Symbol> {
    symbols.sort_unstable();
    symbols.dedup();
    symbols
}

/// No watch.
const NONE: u32 = u32::MAX;

/// A strategy with its orders, positions and limits: what every host drives. One thread owns it.
#[derive(Debug)]
pub struct Conductor<S> {
    pub(super) strategy: S,
    pub(super) state: State,
    wanted: Vec<Symbol>,
    is_all: bool,
    /// Whose consolidated books it wants.
    consolidated: Vec<Symbol>,
    bits: u32,
    /// By instrument: its place among the watches.
    watch_of: Vec<u32>,
    pub(super) watches: Vec<Watch>,
    /// Books that the group of messages under way has changed.
    pub(super) dirty: Vec<u32>,
    /// The message that changed a book last.
    pub(super) last: Cause,
    /// The callback that runs, or ran last.
    callback: Cell<&'static str>,
    has_started: bool,
    /// How often an order was rehearsed.
    pub(super) rehearsals: usize,
    /// The events that come are rehearsed.
    pub(super) is_rehearsing: bool,
}

impl<S: Strategy> Conductor<S> {
    /// Asks the strategy for its subscriptions and takes all memory.
    pub fn new(strategy: S, config: &ConductorConfig) -> Conductor<S> {
        let bits = config.instrument_bits.min(24);
        let feeds = config.feeds.clamp(1, 128);
        let instruments = feeds << bits;
        let subscriptions = strategy.subscriptions();
        let is_all = subscriptions.contains(&Subscription::All);
        let symbols = subscriptions.iter().filter_map(|s| match s {
            Subscription::Symbol(symbol) | Subscription::Consolidated(symbol) => Some(*symbol),
            Subscription::All => None,
        });
        let wanted = sorted(symbols.collect());
        let consolidated = subscriptions.iter().filter_map(|s| match s {
            Subscription::Consolidated(symbol) => Some(*symbol),
            _ => None,
        });
        let consolidated = sorted(consolidated.collect());
        let watches = match is_all {
            true => instruments as usize,
            false => wanted.len() * feeds as usize,
        };
        Conductor {
            strategy,
            state: State {
                orders: Orders::new(config.max_orders).numbered_behind(config.last_id),
                quotes: Quotes::new(
                    instruments,
                    config.max_quotes,
                    config.last_id / NUMBERS * NUMBERS + NAMES,
                ),
                positions: Positions::new(instruments),
                risk: Risk::new(config.risk, instruments),
                reconciling: Reconciling::default(),
                execution: None,
                armed: None,
                counters: Counters::default(),
                feeds_trade: vec![true; feeds as usize],
                trades: vec![true; instruments as usize],
                watched: vec![false; instruments as usize],
                may_enter: vec![false; instruments as usize],
                timers: [Nanos::ZERO; TIMERS],
                next_timer: Nanos::ZERO,
                notes: Vec::with_capacity(NOTES),
                notes_lost: 0,
                is_stopping: false,
            },
            wanted,
            is_all,
            consolidated,
            bits,
            watch_of: vec![NONE; instruments as usize],
            watches: Vec::with_capacity(watches),
            dirty: Vec::with_capacity(watches),
            last: Cause::default(),
            callback: Cell::new("none"),
            has_started: false,
            rehearsals: 0,
            is_rehearsing: false,
        }
    }

    /// The symbols subscribed to; `None` for everything.
    pub fn symbols(&self) -> Option<&[Symbol]> {
        (!self.is_all).then_some(&*self.wanted)
    }

    /// The symbols whose consolidated books it subscribed to.
    pub fn consolidated(&self) -> &[Symbol] {
        &self.consolidated
    }

    /// Whether it subscribed to a symbol's consolidated book.
    #[inline]
    pub fn consolidates(&self, symbol: &Symbol) -> bool {
        self.consolidated.binary_search(symbol).is_ok()
    }

    /// Has the strategy do something that no callback is for: for hosts that know which one it is.
    pub fn act<T>(
        &mut self,
        now: Nanos,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
        does: impl FnOnce(&mut S, &mut Context<'_>) -> T,
    ) -> T {
        let mut done = None;
        self.call("act", now, Cause::default(), markets, port, |s, ctx| {
            done = Some(does(s, ctx));
        });
        done.expect("it was called")
    }

    /// The run begins.
    pub fn start(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) {
        self.has_started = true;
        self.call("on_start", now, Cause::default(), markets, port, |s, ctx| {
            s.on_start(ctx)
        });
    }

    /// A feed's directory has this instrument: `instrument.id` is its number on the feed. Whether it was
    /// subscribed to and is new, or was defined anew. `point` is what one unit of its price is worth, in 1e-9
    /// units of its currency.
    pub fn define(
        &mut self,
        now: Nanos,
        feed: usize,
        instrument: &Instrument,
        point: Option<i64>,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) -> bool {
        let is_wanted = self.wants(instrument);
        let id = markets.number(feed, instrument.id);
        if !is_wanted || id.index() >= self.watch_of.len() || instrument.id == InstrumentId::WHOLE_FEED {
            return false;
        }
        match self.watch_of[id.index()] {
            NONE if self.watches.len() == self.watches.capacity() => return false,
            NONE => {
                self.watch_of[id.index()] = self.watches.len() as u32;
                self.state.watched[id.index()] = true;
                self.state.review(self.bits, id.index()..id.index() + 1);
                self.watches.push(Watch {
                    instrument: id,
                    symbol: instrument.symbol,
                    is_dirty: false,
                    changed: UpdateFlags::NONE,
                    tops: [BookUpdate {
                        instrument: id,
                        ..BookUpdate::default()
                    }; 2],
                    told: 0,
                });
            }
            place => self.watches[place as usize].symbol = instrument.symbol,
        }
        if let Some(raw) = point {
            self.state.risk.controls_mut().set_point(id.index(), raw);
        }
        let known = Instrument {
            id,
            tick: super::tick_of(instrument, Price::MAX),
            ..*instrument
        };
        self.call("on_instrument", now, Cause::default(), markets, port, |s, ctx| {
            s.on_instrument(ctx, &known)
        });
        // The book may have been built before anybody asked for it.
        if let Some(book) = markets.book(id) {
            let place = self.watch_of[id.index()];
            *self.watches[place as usize].next() = BookUpdate {
                instrument: id,
                ..book.update()
            };
            self.touch(place, UpdateFlags::STATE);
            self.flush(now, feed, markets, port);
        }
        true
    }

    /// Whether an instrument was subscribed to.
    pub fn wants(&self, instrument: &Instrument) -> bool {
        self.is_all || self.wanted.binary_search(&instrument.symbol).is_ok()
    }

    /// Whether an instrument of a feed was subscribed to and is known.
    #[inline]
    pub fn watches(&self, feed: usize, local: InstrumentId) -> bool {
        let index = (feed << self.bits) | local.index();
        self.watch_of.get(index).is_some_and(|place| *place != NONE)
    }

    /// Whether [`Conductor::on_event`] would do anything with an event, where no consolidated book has
    /// changed: most are of instruments that nobody subscribed to.
    #[inline(always)]
    pub fn is_concerned(&self, feed: usize, event: &MarketEvent) -> bool {
        self.watches(feed, event.instrument)
            || !self.dirty.is_empty()
            || matches!(
                event.kind,
                EventKind::Status | EventKind::Clear | EventKind::Gap | EventKind::Recovered
            )
    }

    /// Takes an event that was just applied to the books of its feed. `is_grouped`: changes of books are told
    /// at the end of the venue's atomic group ([`EventFlags::LAST`]) rather than event by event, as CME's and
    /// MOEX's want it.
    #[inline]
    pub fn on_event(
        &mut self,
        feed: usize,
        event: &MarketEvent,
        applied: &Outcome,
        is_grouped: bool,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        let (top, hit) = match applied {
            Outcome::Update(top, hit) => (Some(top), *hit),
            Outcome::Other => (None, None),
        };
        self.on_applied(feed, event, top, hit, is_grouped, markets, port);
    }

    /// The same of an event that changed a book to `top`; of an execution, `hit` is price and side of the
    /// order that was hit.
    #[expect(
        clippy::too_many_arguments,
        reason = "what stands at the caller is borrowed: a struct of it would be written for each event"
    )]
    // One copy of the code, which rehearsals fetch.
    #[inline(never)]
    pub fn on_applied(
        &mut self,
        feed: usize,
        event: &MarketEvent,
        top: Option<&BookUpdate>,
        hit: Option<(Price, Side)>,
        is_grouped: bool,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        let index = (feed << self.bits) | event.instrument.index();
        let place = self.watch_of.get(index).copied().unwrap_or(NONE);
        // Of what is rehearsed nothing is told.
        let is_told = !self.is_rehearsing;
        if is_told && is_told_apart(event.kind) {
            self.on_apart(feed, event, hit, place, markets, port);
        }
        let is_over = !is_grouped || event.flags.has(EventFlags::LAST);
        if let Some(top) = top
            && place != NONE
        {
            let watch = &mut self.watches[place as usize];
            let instrument = watch.instrument;
            let next = watch.next();
            *next = *top;
            (next.instrument, next.recv_ts) = (instrument, event.recv_ts);
            if is_over && self.dirty.is_empty() {
                // Nothing else waits to be told: this change is all of it.
                self.change(event.recv_ts, place, top.changed, markets, port);
            } else if is_told {
                self.touch(place, top.changed);
            }
        }
        if is_told && is_over && (!self.dirty.is_empty() || markets.has_super_changes()) {
            self.flush(event.recv_ts, feed, markets, port);
        }
    }

    /// What is told beside a change of a book, or instead of it: trades, quotes, auctions, and what is about
    /// more than one book.
    #[inline(never)]
    pub(super) fn on_apart(
        &mut self,
        feed: usize,
        event: &MarketEvent,
        hit: Option<(Price, Side)>,
        place: u32,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        match event.kind {
            EventKind::Status | EventKind::Clear | EventKind::Gap | EventKind::Recovered => {
                self.on_whole(feed, event, markets, port)
            }
            _ if place == NONE => {}
            EventKind::Execute | EventKind::Trade => self.on_trade(event, hit, place, markets, port),
            _ => self.on_message(event, place, markets, port),
        }
    }

    /// A book has changed, and its group of messages goes on.
    fn touch(&mut self, place: u32, changed: UpdateFlags) {
        let watch = &mut self.watches[place as usize];
        watch.changed = watch.changed.with(changed);
        if !core::mem::replace(&mut watch.is_dirty, true) {
            self.dirty.push(place);
        }
    }

    /// Tells of a book that has changed: its next top is there.
    #[inline(always)]
    fn change(
        &mut self,
        now: Nanos,
        place: u32,
        changed: UpdateFlags,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        if self.is_rehearsing {
            return; // What the strategy was told last stays, and the next change is written over this one.
        }
        let watch = &mut self.watches[place as usize];
        watch.told ^= 1;
        let change = BookChange {
            instrument: watch.instrument,
            before: &watch.tops[usize::from(watch.told & 1 ^ 1)],
            after: &watch.tops[usize::from(watch.told & 1)],
            changed,
        };
        let cause = Cause {
            venue: change.after.venue,
            seq: change.after.seq,
            recv_ts: now,
        };
        let mut context = Context {
            now,
            cause,
            markets,
            live: match change.after.state {
                BookState::Live => change.instrument,
                _ => InstrumentId::WHOLE_FEED,
            },
            state: &mut self.state,
            port,
        };
        if change.before.state != change.after.state {
            tell_state(&mut self.strategy, &self.callback, &mut context, &change);
        }
        self.callback.set("on_book");
        self.strategy.on_book(&mut context, &change);
        // The price band is judged by the middle before this change: a book that jumps must not vouch for
        // itself.
        if !self.strategy.observes_markets() {
            self.state.risk.observe(change.after);
        }
        self.last = cause;
    }

    /// Tells of every book of a feed that has changed, then of every consolidated book that this feed has
    /// changed.
    #[inline(never)]
    fn flush(&mut self, now: Nanos, feed: usize, markets: Markets<'_>, port: &mut dyn OrderPort) {
        let mut kept = 0;
        for at in 0..self.dirty.len() {
            let place = self.dirty[at];
            let watch = &mut self.watches[place as usize];
            if watch.instrument.index() >> self.bits != feed {
                // Its own group is not over.
                self.dirty[kept] = place;
                kept += 1;
                continue;
            }
            watch.is_dirty = false;
            let changed = core::mem::replace(&mut watch.changed, UpdateFlags::NONE);
            self.change_later(now, place, changed, markets, port);
        }
        self.dirty.truncate(kept);
        for change in markets
            .super_changes()
            .iter()
            .filter(|change| change.feed == feed)
        {
            if self.consolidates(&change.symbol) {
                let cause = self.last;
                self.call("on_super_book", now, cause, markets, port, |s, ctx| {
                    s.on_super_book(ctx, change)
                });
            }
        }
    }

    /// [`Conductor::change`] out of line: where it is not the way of a single message.
    #[inline(never)]
    fn change_later(
        &mut self,
        now: Nanos,
        place: u32,
        changed: UpdateFlags,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        self.change(now, place, changed, markets, port);
    }

    /// What is about more than one event's book: a status, a gap, its end, a clear.
    #[cold]
    fn on_whole(&mut self, feed: usize, event: &MarketEvent, markets: Markets<'_>, port: &mut dyn OrderPort) {
        let (now, is_feed) = (event.recv_ts, event.instrument == InstrumentId::WHOLE_FEED);
        let id = markets.number(feed, event.instrument);
        if event.kind == EventKind::Status {
            let trades = matches!(event.status, TradingStatus::Trading | TradingStatus::Unknown);
            let place = match is_feed {
                true => self.state.feeds_trade.get_mut(feed),
                false => self.state.trades.get_mut(id.index()),
            };
            if let Some(place) = place {
                *place = trades;
                let of_feed = (feed << self.bits)..((feed + 1) << self.bits);
                let concerned = if is_feed {
                    of_feed
                } else {
                    id.index()..id.index() + 1
                };
                self.state.review(self.bits, concerned);
            }
            if is_feed || self.watches(feed, event.instrument) {
                let status = event.status;
                self.call("on_status", now, cause_of(event), markets, port, |s, ctx| {
                    s.on_status(ctx, id, status)
                });
            }
            return;
        }
        if !is_feed {
            return;
        }
        if event.kind == EventKind::Clear {
            // Everything that was heard is void: a venue that says nothing is taken to trade.
            let of_feed = (feed << self.bits)..((feed + 1) << self.bits);
            self.state.feeds_trade[feed] = true;
            self.state.trades[of_feed.clone()].fill(true);
            self.state.review(self.bits, of_feed);
        }
        for place in 0..self.watches.len() as u32 {
            let watched = self.watches[place as usize].instrument;
            if markets.local(watched).0 == feed
                && let Some(book) = markets.book(watched)
            {
                *self.watches[place as usize].next() = BookUpdate {
                    instrument: watched,
                    recv_ts: now,
                    seq: event.seq,
                    ..book.update()
                };
                self.touch(place, UpdateFlags::STATE);
            }
        }
        self.flush(now, feed, markets, port);
    }

    fn on_trade(
        &mut self,
        event: &MarketEvent,
        hit: Option<(Price, Side)>,
        place: u32,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        let (price, resting) = match (event.kind, hit) {
            (EventKind::Trade, _) => {
                let has_side = !event.flags.has(EventFlags::NO_SIDE);
                (event.price, has_side.then_some(event.side))
            }
            (_, Some((price, side))) => (price, Some(side)),
            _ => return,
        };
        if event.flags.has(EventFlags::NOT_PRINTABLE) {
            return;
        }
        let trade = Trade {
            instrument: self.watches[place as usize].instrument,
            price,
            qty: event.qty,
            resting,
            venue_ts: event.venue_ts,
            seq: event.seq,
        };
        self.call(
            "on_trade",
            event.recv_ts,
            cause_of(event),
            markets,
            port,
            |s, ctx| s.on_trade(ctx, &trade),
        );
    }

    fn on_message(
        &mut self,
        event: &MarketEvent,
        place: u32,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) {
        let told = MarketEvent {
            instrument: self.watches[place as usize].instrument,
            ..*event
        };
        let (now, cause) = (event.recv_ts, cause_of(event));
        match event.kind {
            EventKind::Quote => self.call("on_quote", now, cause, markets, port, |s, ctx| {
                s.on_quote(ctx, &told)
            }),
            _ => self.call("on_imbalance", now, cause, markets, port, |s, ctx| {
                s.on_imbalance(ctx, &told)
            }),
        }
    }

    /// The host's loop begins another turn.
    #[inline]
    pub fn on_turn(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) {
        self.call("on_turn", now, Cause::default(), markets, port, |s, ctx| {
            s.on_turn(ctx)
        });
    }

    /// The host's loop has time to spare.
    #[inline]
    pub fn on_idle(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) {
        self.call("on_idle", now, Cause::default(), markets, port, |s, ctx| {
            s.on_idle(ctx)
        });
    }

    /// A session that the strategy trades over is there, or is lost: [`Conductor::set_session`],
    /// [`Conductor::lose_session`] or [`Conductor::take_up_session`] has said so.
    pub fn on_session(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) {
        self.call("on_session", now, Cause::default(), markets, port, |s, ctx| {
            s.on_session(ctx)
        });
    }

    /// The venue has refused a message, or has said something that cannot be read. Whether the strategy has
    /// seen to it.
    pub fn on_distrust(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) -> bool {
        let mut is_seen_to = false;
        self.call("on_distrust", now, Cause::default(), markets, port, |s, ctx| {
            is_seen_to = s.on_distrust(ctx);
        });
        is_seen_to
    }

    /// A packet of a feed is over: what it has changed is told, even where the venue forgot to say that its
    /// group of messages is.
    #[inline]
    pub fn on_packet(&mut self, now: Nanos, feed: usize, markets: Markets<'_>, port: &mut dyn OrderPort) {
        self.end_group(now, feed, markets, port);
        self.call("on_packet", now, self.last, markets, port, |s, ctx| {
            s.on_packet(ctx, feed)
        });
    }

    /// The same, without a word of the packet: its end was reached otherwise than by receiving it.
    #[inline]
    pub fn end_group(&mut self, now: Nanos, feed: usize, markets: Markets<'_>, port: &mut dyn OrderPort) {
        if !self.dirty.is_empty() {
            self.flush(now, feed, markets, port);
        }
    }

    /// Time has passed: timers that are due are called, the soonest first.
    pub fn on_time(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) {
        if self.state.reconciling.due().is_some_and(|due| due <= now) {
            self.reconcile(now, markets, port);
        }
        while let Some(at) = self.state.next_timer().filter(|at| *at <= now) {
            let Some(timer) = self.state.timers.iter().position(|due| *due == at) else {
                return;
            };
            self.state.timers[timer] = Nanos::ZERO;
            self.state.next_timer = self.state.soonest();
            let timer = TimerId(timer as u8);
            self.call("on_timer", now, Cause::default(), markets, port, |s, ctx| {
                s.on_timer(ctx, timer)
            });
            if self.state.timers[usize::from(timer.0)] == at {
                // Set again to the same time: it would run for ever.
                return;
            }
        }
    }

    /// When [`Conductor::on_time`] is to be called.
    #[inline]
    pub fn next_timer(&self) -> Option<Nanos> {
        // Asked for at every event: an iterator's minimum was a call each time.
        match (self.state.next_timer(), self.state.reconciling.due()) {
            (Some(timer), Some(asking)) => Some(timer.min(asking)),
            (timer, asking) => timer.or(asking),
        }
    }

    /// An operator's word.
    pub fn on_command(&mut self, now: Nanos, words: &str, markets: Markets<'_>, port: &mut dyn OrderPort) {
        self.call("on_command", now, Cause::default(), markets, port, |s, ctx| {
            s.on_command(ctx, words)
        });
    }

    /// The run ends: everything open is cancelled, nothing more is sent.
    pub fn stop(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) {
        self.context(now, Cause::default(), markets, port).cancel_all();
        self.state.is_stopping = true;
        self.state.may_enter.fill(false);
        self.call("on_stop", now, Cause::default(), markets, port, |s, ctx| {
            s.on_stop(ctx)
        });
    }

    /// Cancels everything that is open; how many requests have left.
    pub fn cancel_all(&mut self, now: Nanos, markets: Markets<'_>, port: &mut dyn OrderPort) -> u32 {
        self.context(now, Cause::default(), markets, port).cancel_all()
    }

    /// Applies an execution report and tells the strategy. A fill or a broken trade that fits no order, other
    /// than a repeated one, means that the position is not known: the kill switch goes on. It does so too
    /// where a broken trade fits: the position is known, and is not what was decided on.
    pub fn on_report(
        &mut self,
        now: Nanos,
        report: &OrderReport,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
    ) -> Result<Change, ReportError> {
        // Looked at where it is: a change is large.
        let applied = self.state.apply(now, report);
        let change = match &applied {
            Ok(change) => change,
            Err(error) => {
                self.state.counters.bump(Counter::ReportsUnmatched);
                if report.kind.is_trade() && *error != ReportError::Duplicate {
                    self.state.risk.kill();
                }
                return applied;
            }
        };
        let counters = &mut self.state.counters;
        match report.kind {
            ReportKind::Accepted => counters.bump(Counter::OrdersAcked),
            ReportKind::Filled { .. } => counters.bump(Counter::Fills),
            ReportKind::Broken { .. } => {
                counters.bump(Counter::TradesBroken);
                self.state.risk.kill();
            }
            ReportKind::Cancelled => counters.bump(Counter::OrdersCancelled),
            ReportKind::Rejected | ReportKind::ReplaceRejected { .. } => {
                counters.bump(Counter::OrdersRejected)
            }
            ReportKind::Triggered | ReportKind::CancelRejected | ReportKind::Replaced { .. } => {}
        }
        let event = OrderEvent {
            order: change.order,
            kind: report.kind,
            filled: change.filled,
            replaced: matches!(report.kind, ReportKind::Replaced { .. }).then_some(report.id),
        };
        if let Some(old) = event.replaced
            && self
                .state
                .orders
                .get(old)
                .is_some_and(|old| old.is_cancel_requested)
        {
            // The venue replaced the order before the cancellation came, which named the one that is over.
            let _ = self
                .context(now, change.order.cause, markets, port)
                .cancel(change.order.id);
        }
        let cause = change.order.cause;
        self.call("on_order", now, cause, markets, port, |s, ctx| {
            s.on_order(ctx, &event)
        });
        applied
    }

    /// The session is lost, and with it every quote: the venue has none of them any more, whatever it has
    /// said. The strategy is not told. What traded of them may still be heard of.
    pub fn lose_session(&mut self) {
        self.set_session(false);
        for place in 0..self.state.quotes.count() {
            self.state.lose_quote(place);
        }
        self.state.quotes.cancelling = None;
    }

    /// The session is there again, and everything that the venue had said meanwhile was heard: orders that do
    /// not rest and have no end did not arrive, or were cancelled. The strategy is not told.
    pub fn take_up_session(&mut self, now: Nanos) {
        while let Some(id) = self.state.first_passing() {
            let over = OrderReport {
                id,
                venue_id: None,
                kind: ReportKind::Cancelled,
            };
            if self.state.apply(now, &over).is_err() {
                break;
            }
        }
        self.set_session(true);
    }

    /// Takes back an order that could not be sent: it ends as rejected. `false` if it is unknown or was
    /// answered.
    pub fn withdraw(&mut self, id: ClientOrderId) -> bool {
        self.state.take_back(id)
    }

    /// Stops every further order. Open ones live on: see [`Conductor::cancel_all`].
    pub fn kill(&mut self) {
        self.state.risk.kill();
    }

    /// Says whether an order entry session is logged on; assumed until told otherwise. When it is not,
    /// requests to cancel that were under way are forgotten: nothing says that the venue has them.
    pub fn set_session(&mut self, is_up: bool) {
        self.set_sessions(is_up, |_| true);
    }

    /// The same for several sessions: whether all of them are logged on, and over which instruments' session
    /// is not, where one is not.
    pub fn set_sessions(&mut self, are_up: bool, is_lost: impl Fn(InstrumentId) -> bool) {
        self.state.risk.set_session(are_up);
        if !are_up {
            self.state.reconciling.forget();
            let lost = self.state.quotes.iter_mut();
            lost.filter(|quote| is_lost(quote.instrument))
                .for_each(|quote| quote.cancel = None);
            self.state.orders.forget_cancels(is_lost);
        }
    }

    /// The next request to cancel an open order not asked for yet, for a host that sends it; call until
    /// `None` to cancel them all.
    pub fn cancel_next(&mut self, cause: Cause) -> Option<OrderIntent> {
        self.cancel_next_of(cause, |_| true)
    }

    /// The same, of the instruments that `is_meant` says.
    pub fn cancel_next_of(
        &mut self,
        cause: Cause,
        is_meant: impl Fn(InstrumentId) -> bool,
    ) -> Option<OrderIntent> {
        let open = self.state.orders.next_to_cancel_of(is_meant)?;
        self.cancel_one(cause, open)
    }

    /// The strategy.
    pub fn strategy(&self) -> &S {
        &self.strategy
    }

    /// The same to change: for hosts, and tests.
    pub fn strategy_mut(&mut self) -> &mut S {
        &mut self.strategy
    }

    /// The checks.
    pub fn risk(&self) -> &Risk {
        &self.state.risk
    }

    /// The checks, to lift the kill switch or set a reference.
    pub fn risk_mut(&mut self) -> &mut Risk {
        &mut self.state.risk
    }

    /// The orders.
    pub fn orders(&self) -> &Orders {
        &self.state.orders
    }

    /// The positions.
    pub fn positions(&self) -> &Positions {
        &self.state.positions
    }

    /// What happened how often.
    pub fn counters(&self) -> &Counters {
        &self.state.counters
    }

    /// Every instrument that was subscribed to and is known, with the top of its book as the strategy was
    /// told last.
    pub fn instruments(&self) -> impl Iterator<Item = (InstrumentId, Symbol, &BookUpdate)> + '_ {
        self.watches.iter().map(|w| (w.instrument, w.symbol, w.shown()))
    }

    /// What the strategy has noted since this was last called, and how many notes had no place.
    pub fn take_notes(&mut self, mut tell: impl FnMut(&Note)) -> u64 {
        self.state.notes.drain(..).for_each(|note| tell(&note));
        core::mem::take(&mut self.state.notes_lost)
    }

    /// The callback that runs; after a panic, the one that panicked.
    pub fn callback(&self) -> &'static str {
        self.callback.get()
    }

    pub(super) fn context<'a>(
        &'a mut self,
        now: Nanos,
        cause: Cause,
        markets: Markets<'a>,
        port: &'a mut dyn OrderPort,
    ) -> Context<'a> {
        Context {
            now,
            cause,
            markets,
            live: InstrumentId::WHOLE_FEED,
            state: &mut self.state,
            port,
        }
    }

    #[inline(always)]
    pub(super) fn call(
        &mut self,
        name: &'static str,
        now: Nanos,
        cause: Cause,
        markets: Markets<'_>,
        port: &mut dyn OrderPort,
        callback: impl FnOnce(&mut S, &mut Context<'_>),
    ) {
        self.callback.set(name);
        let mut context = Context {
            now,
            cause,
            markets,
            live: InstrumentId::WHOLE_FEED,
            state: &mut self.state,
            port,
        };
        callback(&mut self.strategy, &mut context);
    }
}

/// What applying an event came to, without a loan of the books.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// It changed a book, whose top is this now; of an execution, the price and side of the order that was
    /// hit.
    Update(BookUpdate, Option<(Price, Side)>),
    /// It did not.
    Other,
}

impl Outcome {
    /// Applies an event to the books of its feed.
    #[inline(always)]
    pub fn of(books: &mut Books, event: &MarketEvent) -> Outcome {
        let hit = Outcome::hit(books, event);
        Outcome::told(books.apply(event), event, hit)
    }
}

/// Whether an event of this kind is told by a callback other than `on_book`.
#[inline(always)]
fn is_told_apart(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Status
            | EventKind::Clear
            | EventKind::Gap
            | EventKind::Recovered
            | EventKind::Execute
            | EventKind::Trade
            | EventKind::Quote
            | EventKind::Imbalance
    )
}

/// A book may be trusted again, or not any more.
#[cold]
fn tell_state<S: Strategy>(
    strategy: &mut S,
    callback: &Cell<&'static str>,
    context: &mut Context<'_>,
    change: &BookChange<'_>,
) {
    if change.after.state == BookState::Live {
        callback.set("on_live");
        strategy.on_live(context, change.instrument);
    } else if change.before.state == BookState::Live {
        callback.set("on_stale");
        strategy.on_stale(context, change.instrument);
    }
}

fn cause_of(event: &MarketEvent) -> Cause {
    Cause {
        venue: event.venue,
        seq: event.seq,
        recv_ts: event.recv_ts,
    }
}
