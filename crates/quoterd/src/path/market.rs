//! From the channel's events to the strategy, the turns of the loop, and ladders.

use tickwire_feed::{Channel, Twin};
use tickwire_market::{
    Cause, EventSink, Instrument, InstrumentId, MarketEvent, Nanos, Price, SeqNo, TradingStatus, Upcoming,
    Venue,
};
use tickwire_node::hot::OrderOut;
use tickwire_node::live::Live;
use tickwire_node::memory;
use tickwire_node::trader::Rule;
use tickwire_trading::Ladder;

use super::{QuotePath, Trades};

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// A turn of the loop begins, before anything else is done in it: whether it comes in time, and market
    /// data does; ladders that have come are taken ([`Trades::ladders`]). For how long the loop stood still,
    /// in nanoseconds, if that was too long: everything is pulled.
    #[inline]
    pub fn turn(&mut self, now: Nanos) -> Option<u64> {
        Live::on_turn(&mut self.hot, now);
        Live::settle(&mut self.hot, now);
        self.hot.rule.conductor_mut().strategy_mut().take_stood()
    }

    /// After a pull that passes: looks at the underlying as it stands, in case that it does not change.
    pub fn look_up(&mut self, now: Nanos) {
        self.hot.act(now, |quoter, ctx| quoter.look_up(ctx));
        self.hot.let_go();
    }

    /// A packet is over that was received now: market data is not silent, and what it changed is quoted.
    #[inline]
    pub fn packet(&mut self, now: Nanos) {
        self.hot.packet(now);
        Live::settle(&mut self.hot, now);
    }

    /// A packet is over: what it changed is quoted, even where the venue forgot to say that its event is
    /// over.
    #[inline]
    pub fn settle(&mut self, now: Nanos) {
        self.hot.end_group(now);
        Live::settle(&mut self.hot, now);
    }

    /// What was known before quoting began: the instruments, states of the underlying, and the channel's next
    /// message.
    pub fn begin(&mut self, now: Nanos, (venue, seq): (Venue, SeqNo), status: TradingStatus) {
        self.hot.start(now);
        let values = self.values.map_or([None; 2], |values| values.map(Some));
        let underlying = Instrument {
            id: self.underlying.id,
            symbol: self.underlying.symbol,
            venue,
            tick: self.underlying.tick,
            ..Instrument::default()
        };
        self.hot.define(now, &underlying, values[1]);
        for (id, symbol) in self.options.ids.iter().zip(&self.options.symbols) {
            let option = Instrument {
                id: *id,
                symbol: *symbol,
                venue,
                tick: self.options.tick,
                ..Instrument::default()
            };
            self.hot.define(now, &option, values[0]);
        }
        let quotes = self.options.ids.len() as u16;
        self.hot.act(now, |quoter, ctx| {
            (0..quotes).for_each(|quote| quoter.set_open(ctx, quote, true));
            // What is quoted before the underlying changes next follows the channel's next message.
            let cause = Cause {
                venue,
                seq,
                recv_ts: now,
            };
            quoter.set_underlying_open(ctx, status == TradingStatus::Trading, cause);
        });
        self.hot.let_go();
    }

    /// Bid plus ask of the underlying, in its ticks, when it is live and has both.
    pub fn half_tick(&self) -> Option<i64> {
        self.quoter().half_tick()
    }

    /// A newer ladder of the eye: see [`QuotePath::replace_ladder`]. To be replaced before the quoter's.
    pub fn replace_eye_ladder(&mut self, now: Nanos, ladder: Box<Ladder>) -> Option<Box<Ladder>> {
        self.hot
            .act(now, |quoter, ctx| quoter.replace_eye_ladder(ctx, ladder))
    }

    /// Goes through what the next tick might cause and forgets it, from a packet of the channel's twin on if
    /// there is one: for a loop that has nothing else to do ([`tickwire_trading::Quoter::rehearse`]).
    pub fn rehearse<C: Channel>(&mut self, now: Nanos, channel: &C, twin: &mut Option<Twin<C>>) {
        memory::idle(&mut self.hot, channel, twin, now);
    }

    /// A twin of the channel for [`QuotePath::rehearse`], if it can have one.
    pub fn twin_of<C: Channel>(&self, channel: &C) -> Option<Twin<C>> {
        memory::twin_of(&self.hot, channel)
    }

    /// Of which instrument packets can be rehearsed, an offer at which price: the underlying.
    pub fn rehearsed(&self) -> Option<(InstrumentId, Price)> {
        Live::rehearsed(&self.hot)
    }

    /// A newer ladder: quotes follow it at once. The one before comes back, to be filled again.
    pub fn replace_ladder(&mut self, now: Nanos, ladder: Box<Ladder>) -> Option<Box<Ladder>> {
        let before = self
            .hot
            .act(now, |quoter, ctx| quoter.replace_ladder(ctx, ladder));
        Live::settle(&mut self.hot, now);
        before
    }

    /// The best prices of an instrument, by side, that are not only ours.
    pub(super) fn market(&self, now: Nanos, instrument: InstrumentId, quote: u16) -> [Option<Price>; 2] {
        match self.hot.books[0].book(instrument) {
            Some(book) if book.state() == tickwire_market::BookState::Live => {
                self.maker().quoter.others(now, quote, &book)
            }
            _ => [None; 2],
        }
    }
}

impl<O: OrderOut, T: Trades> EventSink for QuotePath<O, T> {
    #[inline]
    fn on_event(&mut self, event: &MarketEvent) {
        self.hot.on_event(event);
    }

    #[inline]
    fn upcoming(&mut self, next: Upcoming) {
        self.hot.upcoming(next);
    }

    #[inline]
    fn arriving(&mut self, next: Upcoming) {
        self.hot.arriving(next);
    }

    #[inline]
    fn next_distrusted(&mut self) -> Option<InstrumentId> {
        self.hot.next_distrusted()
    }
}
