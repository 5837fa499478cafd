//! From the channel's events to the market maker: books, statuses, and the turns of the loop.

use tickwire_book::{Applied, Books};
use tickwire_market::{
    BookState, BookUpdate, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, Nanos, OrderId,
    Price, SeqNo, Side, TradingStatus, Venue,
};
use tickwire_node::hot::OrderOut;
use tickwire_trading::{Ladder, PullReason, Quoter, QuotingState};

use super::{NONE, QuotePath, Trades};

/// What the options are on.
pub(super) struct Underlying {
    pub(super) id: InstrumentId,
    pub(super) tick: Price,
    /// Its book as it stands; told to the quoter when its event is over.
    pub(super) top: BookUpdate,
    pub(super) is_new: bool,
    pub(super) status: TradingStatus,
}

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// A turn of the loop begins, before anything else is done in it: whether it comes in time, and market
    /// data does ([`Quoter::on_turn`]). For how long the loop stood still, in nanoseconds, if that was too
    /// long: everything is pulled.
    #[inline]
    pub fn turn(&mut self, now: Nanos) -> Option<u64> {
        self.wire.now = now;
        self.maker.on_turn(now, &mut self.wire)
    }

    /// Packets of a time that the loop stood still still wait to be read.
    #[cold]
    pub fn backlog(&mut self, now: Nanos) {
        self.maker.on_backlog(now);
    }

    /// After a pull that passes: looks at the underlying as it stands, in case that it does not change.
    pub fn look_up(&mut self, now: Nanos) {
        let state = self.maker.quoter.state();
        if self.wire.is_stopped()
            && !matches!(
                state,
                QuotingState::Pulling(PullReason::Control) | QuotingState::Halted(PullReason::Control)
            )
        {
            return self.pull_on_control(now);
        }
        if matches!(state, QuotingState::Halted(reason) if reason.is_passing())
            && self.underlying.top.state == BookState::Live
        {
            self.tick(now);
        }
    }

    /// A packet is over that was received now: market data is not silent, and what it changed is quoted.
    #[inline]
    pub fn packet(&mut self, now: Nanos) {
        self.maker.quoter.on_packet(now);
        self.settle(now);
    }

    /// A packet is over: what it changed is quoted, even where the venue forgot to say that its event is
    /// over.
    #[inline]
    pub fn settle(&mut self, now: Nanos) {
        if self.underlying.is_new {
            self.tick(now);
        }
        self.answer_idle(now);
        self.wire.out.let_go();
    }

    #[inline]
    pub(super) fn tick(&mut self, now: Nanos) {
        self.underlying.is_new = false;
        self.wire.now = now;
        if self.underlying.top.state == BookState::Live {
            let best = Side::BOTH.map(|side| self.underlying.top.best(side).map(|(price, _)| price));
            self.wire.observe(now, self.options.is_open.len(), best);
        }
        self.maker
            .on_underlying(now, &self.underlying.top, &mut self.wire);
        self.wire.out.let_go();
    }

    /// What the books say of the underlying, told anew: a state of the whole feed has changed.
    #[cold]
    pub(super) fn look_again(&mut self, event: &MarketEvent) {
        let (seq, recv_ts, venue) = (event.seq, event.recv_ts, self.underlying.top.venue);
        let known = self.books.book(self.underlying.id).map(|book| book.update());
        self.underlying.top = BookUpdate {
            seq,
            recv_ts,
            venue,
            ..known.unwrap_or_default()
        };
        if self.underlying.status != TradingStatus::Trading {
            self.underlying.top.state = BookState::Stale;
        }
        self.tick(event.recv_ts);
    }

    /// What quoter and eye know of the options' books, told anew; of those that are not live, nothing.
    #[cold]
    pub(super) fn look_at_options(&mut self, event: &MarketEvent) {
        let (now, venue) = (event.recv_ts, self.underlying.top.venue);
        self.wire.now = now;
        for (instrument, quote) in self.options.by_instrument.iter().enumerate() {
            if *quote == NONE {
                continue;
            }
            let known = self.books.book(InstrumentId(instrument as u32));
            let update = BookUpdate {
                seq: event.seq,
                recv_ts: now,
                venue,
                ..known.map(|book| book.update()).unwrap_or_default()
            };
            self.maker.on_option(now, *quote, &update, &mut self.wire);
            let others = others(
                &self.books,
                &self.maker.quoter,
                now,
                *quote,
                InstrumentId(instrument as u32),
            );
            let is_live = update.state == BookState::Live;
            if is_live {
                self.wire.observe(now, usize::from(*quote), others);
            }
            self.maker.on_market(now, *quote, is_live, others, &mut self.wire);
        }
    }

    #[cold]
    pub(super) fn status(&mut self, event: &MarketEvent) {
        let is_whole = event.instrument == InstrumentId::WHOLE_FEED;
        if is_whole || event.instrument == self.underlying.id {
            self.underlying.status = event.status;
            self.look_again(event);
        }
        if let Some(quote) = self.quote_of(event.instrument) {
            let trades = event.status == TradingStatus::Trading;
            self.wire.now = event.recv_ts;
            self.set_open(event.recv_ts, quote, trades);
        }
    }

    #[inline]
    pub(super) fn quote_of(&self, instrument: InstrumentId) -> Option<u16> {
        self.options
            .by_instrument
            .get(instrument.index())
            .copied()
            .filter(|quote| *quote != NONE)
    }

    /// What was known before quoting began: states of the instruments, the top of the underlying, and the
    /// channel's next message.
    pub fn begin(&mut self, now: Nanos, (venue, next_seq): (Venue, SeqNo), status: TradingStatus) {
        self.underlying.status = status;
        self.underlying.top.venue = venue;
        self.underlying.top.instrument = self.underlying.id;
        let event = MarketEvent {
            recv_ts: now,
            seq: next_seq,
            ..MarketEvent::default()
        };
        self.look_again(&event);
        self.look_at_options(&event);
        self.wire.out.let_go();
    }

    /// Bid plus ask of the underlying, in its ticks, when it is live and has both.
    pub fn half_tick(&self) -> Option<i64> {
        let tick = self.underlying.tick.raw().max(1);
        let best = |side| {
            self.underlying
                .top
                .best(side)
                .map(|(price, _)| price.raw() / tick)
        };
        let sum = best(Side::Bid)? + best(Side::Ask)?;
        (self.underlying.top.state == BookState::Live).then_some(sum)
    }

    /// A newer ladder of the eye: see [`QuotePath::replace_ladder`]. To be replaced before the quoter's.
    pub fn replace_eye_ladder(&mut self, now: Nanos, ladder: Box<Ladder>) -> Option<Box<Ladder>> {
        self.wire.now = now;
        self.maker.replace_eye_ladder(now, ladder, &mut self.wire)
    }

    /// Goes through what the next tick might cause and forgets it: for a loop that has nothing else to do
    /// ([`Quoter::rehearse`]).
    pub fn rehearse(&mut self, now: Nanos) {
        self.wire.now = now;
        self.maker.quoter.rehearse(now, &mut self.wire);
    }

    /// A newer ladder: quotes follow it at once. The one before comes back, to be filled again.
    pub fn replace_ladder(&mut self, now: Nanos, ladder: Box<Ladder>) -> Option<Box<Ladder>> {
        self.wire.now = now;
        let before = self.maker.replace_ladder(now, ladder, &mut self.wire);
        self.wire.out.let_go();
        before
    }
}

/// The best prices of an option, by side, that are not only ours.
#[inline]
pub(super) fn others(
    books: &Books,
    quoter: &Quoter,
    now: Nanos,
    quote: u16,
    instrument: InstrumentId,
) -> [Option<Price>; 2] {
    match books.book(instrument) {
        Some(book) => quoter.others(now, quote, &book),
        None => [None; 2],
    }
}

impl<O: OrderOut, T: Trades> EventSink for QuotePath<O, T> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        match self.books.apply(event) {
            Applied::Update(update) if event.instrument == self.underlying.id => {
                self.underlying.top = *update;
                if self.underlying.status != TradingStatus::Trading {
                    self.underlying.top.state = BookState::Stale;
                }
                self.maker.quoter.on_change(event.recv_ts);
                self.underlying.is_new = true;
            }
            Applied::Update(update) => {
                if let Some(quote) = self
                    .options
                    .by_instrument
                    .get(event.instrument.index())
                    .copied()
                    .filter(|quote| *quote != NONE)
                {
                    self.wire.now = event.recv_ts;
                    self.maker.on_option(event.recv_ts, quote, update, &mut self.wire);
                    let is_live = update.state == BookState::Live;
                    let now = event.recv_ts;
                    let others = others(&self.books, &self.maker.quoter, now, quote, event.instrument);
                    if is_live {
                        self.wire.observe(now, quote.into(), others);
                    }
                    self.maker.on_market(now, quote, is_live, others, &mut self.wire);
                }
            }
            Applied::Feed(_) => {
                self.look_again(event);
                self.look_at_options(event);
            }
            Applied::None if event.kind == EventKind::Status => self.status(event),
            Applied::None | Applied::Rejected(_) => {}
        }
        if self.underlying.is_new && event.flags.has(EventFlags::LAST) {
            self.tick(event.recv_ts);
        }
    }

    #[inline]
    fn upcoming(&mut self, instrument: InstrumentId, order_id: OrderId) {
        self.books.upcoming(instrument, order_id);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.books.next_distrusted()
    }
}
