//! The [`Quoter`] and the [`Eye`] as a [`Strategy`]: hosted as anybody's, live, against the simulator and in
//! a backtest.
//!
//! ```text
//! on_book ─► Eye ─► Context::submit ─────────┐
//!         └► Quoter ─► Context::mass_quote ──┴► checks of the host ─► order session
//! on_own_quote, on_mass_quote, on_order ─► Quoter, Eye ─► Pricing::traded
//! on_turn ─► ladders of Pricing, the loop's pauses, timeouts, the session
//! ```
//! Ladders come from outside ([`Pricing`]): pricing takes time and floating point, which have no place in a
//! callback. What was traded goes there.

mod callbacks;
mod eye;
mod known;
mod port;
mod pricing;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;
use tickwire_market::{
    BookState, BookUpdate, Cause, ClientOrderId, InstrumentId, Nanos, Price, Qty, Side, Symbol,
};

use crate::strategy::{Context, LateExecution, NotSent, OwnQuote, TimerId};
use crate::{
    Eye, EyeConfig, EyeFill, Fill, Ladder, MarketMaker, NO_ASK, NO_BID, PullReason, QuoteLive, Quoter,
    QuoterConfig, QuotingState, ReportKind,
};
pub use eye::OptionEye;
use known::Known;
use port::{Numbers, Port, UnderWay};
pub use pricing::{Difference, Ladders, Pricing, QuotedOption, QuoterTrade, TradeOf};

/// Between two looks at the underlying while quotes are pulled.
const LOOK_NS: u64 = Nanos::MILLI;
/// The timer of these.
const LOOK: TimerId = TimerId(0);
/// No option.
const NONE: u16 = u16::MAX;

/// Quotes the options on one underlying by mass quotes of a [`Context`], and takes what others quote too
/// well.
///
/// An operator's words ([`on_command`](crate::strategy::Strategy::on_command)): `pull`, `resume`,
/// `heartbeat`, `arm`, `disarm`.
pub struct OptionQuoter<P> {
    maker: MarketMaker,
    config: QuoterConfig,
    pricing: P,
    options: Vec<QuotedOption>,
    known: Known,
    under_way: UnderWay,
    watch: Watch,
    /// Quotes of the message that is being answered, of which something traded before.
    early: Vec<u16>,
    difference: Option<Difference>,
    trades_lost: u64,
    last_stop: Option<NotSent>,
}

/// What is known of the host and its loop.
#[derive(Debug, Default)]
struct Watch {
    has_session: bool,
    /// How long the loop stood still last, in nanoseconds, and whether nobody has asked for it yet.
    stood: u64,
    has_stood: bool,
    /// Packets of that time still wait to be read, and whether one came in this turn.
    is_behind: bool,
    has_packet: bool,
}

impl<P: Pricing> OptionQuoter<P> {
    /// Quotes `options`, at most `config.quotes` of them, in the order of their delta; nothing until the feed
    /// has named them and ladders have come. `config.underlying` means nothing: it is found by its symbol.
    pub fn new(
        config: QuoterConfig,
        underlying: Symbol,
        options: Vec<QuotedOption>,
        pricing: P,
    ) -> OptionQuoter<P> {
        let quotes = config.quotes.min(options.len().min(usize::from(NONE - 1)) as u16);
        let config = QuoterConfig { quotes, ..config };
        let in_flight = usize::from(config.in_flight_max).max(1);
        OptionQuoter {
            maker: MarketMaker::new(Quoter::new(config)),
            config,
            pricing,
            known: Known::new(underlying, quotes),
            options,
            under_way: UnderWay::new(in_flight, 1),
            watch: Watch::default(),
            early: Vec::with_capacity(crate::ENTRIES_MAX),
            difference: None,
            trades_lost: 0,
            last_stop: None,
        }
    }

    /// The same with an electronic eye over the same options; it is off until it is armed.
    /// `config.underlying` means nothing.
    pub fn with_eye(mut self, config: EyeConfig) -> OptionQuoter<P> {
        // Where its orders go is found by the option's place.
        let places: Vec<InstrumentId> = (0..u32::from(self.config.quotes)).map(InstrumentId).collect();
        // An order that is over may be broken or filled once more.
        self.under_way.orders = Numbers::new(config.open_max.max(1) as usize * 16);
        self.maker.set_eye(Eye::new(config, &places));
        self
    }

    /// An option is quoted only once its status says that it trades, rather than until its status says that
    /// it does not.
    pub fn once_it_trades(mut self) -> OptionQuoter<P> {
        self.known.must_trade();
        self
    }

    /// What is quoted, and what is believed live.
    pub fn quoter(&self) -> &Quoter {
        &self.maker.quoter
    }

    /// Quoter and eye.
    pub fn maker(&self) -> &MarketMaker {
        &self.maker
    }

    /// The same to change: for hosts that restore what was held before, and tests.
    pub fn maker_mut(&mut self) -> &mut MarketMaker {
        &mut self.maker
    }

    /// What stopped a message last: each but a rate pulls every quote until an operator resumes.
    pub fn last_stop(&self) -> Option<NotSent> {
        self.last_stop
    }

    /// How long the loop stood still last, in nanoseconds, when that pulled every quote.
    pub fn stood_ns(&self) -> u64 {
        self.watch.stood
    }

    /// Trades there was no room for; each has pulled everything.
    pub fn trades_lost(&self) -> u64 {
        self.trades_lost
    }

    /// The same, once: for whoever tells an operator.
    pub fn take_stood(&mut self) -> Option<u64> {
        core::mem::take(&mut self.watch.has_stood).then_some(self.watch.stood)
    }

    /// What the venue had of a quote otherwise, once: for whoever tells an operator.
    pub fn take_difference(&mut self) -> Option<Difference> {
        self.difference.take()
    }

    /// Whether nothing of ours is under way.
    pub fn is_still(&self) -> bool {
        self.maker.is_still()
    }

    /// Whether an option trades, as a host knows it from before: until its status says otherwise.
    pub fn set_open(&mut self, ctx: &mut Context<'_>, quote: u16, is_open: bool) {
        if self.known.set_open(quote, is_open) {
            self.follow_option(ctx, quote);
        }
    }

    /// The same of the underlying; what is decided on by its book as it stands follows this message.
    pub fn set_underlying_open(&mut self, ctx: &mut Context<'_>, is_open: bool, cause: Cause) {
        self.known.set_underlying_trades(is_open);
        self.known.set_cause(cause);
        self.look(ctx);
    }

    /// A newer ladder of the quotes; the one before comes back.
    pub fn replace_ladder(&mut self, ctx: &mut Context<'_>, ladder: Box<Ladder>) -> Option<Box<Ladder>> {
        self.with(ctx, |maker, now, port| maker.replace_ladder(now, ladder, port))
    }

    /// A newer ladder of the eye, to be replaced before that of the quotes.
    pub fn replace_eye_ladder(&mut self, ctx: &mut Context<'_>, ladder: Box<Ladder>) -> Option<Box<Ladder>> {
        self.with(ctx, |maker, now, port| {
            maker.replace_eye_ladder(now, ladder, port)
        })
    }

    /// Time has passed: what quoter and eye have to do by now.
    pub fn pass(&mut self, ctx: &mut Context<'_>) {
        self.with(ctx, |maker, now, port| maker.handle_timeout(now, port));
    }

    /// The kill switch: takes every quote away and turns the eye off, until [`OptionQuoter::resume`].
    pub fn pull(&mut self, ctx: &mut Context<'_>) {
        self.distrust(ctx);
    }

    /// The same because more was lost than may be.
    pub fn pull_on_loss(&mut self, ctx: &mut Context<'_>) {
        self.with(ctx, |maker, now, port| {
            maker.pull_by(|quoter| quoter.pull_on_loss(now, port));
        });
    }

    /// Turns the eye on ([`MarketMaker::arm_eye`]).
    pub fn arm_eye(&mut self, now: Nanos) -> bool {
        self.maker.arm_eye(now, self.known.open())
    }

    /// After a pull that passes: looks at the underlying as it stands, in case that it does not change.
    pub fn look_up(&mut self, ctx: &mut Context<'_>) {
        self.follow_host(ctx);
        if matches!(self.maker.quoter.state(), QuotingState::Halted(reason) if reason.is_passing())
            && self.known.is_underlying_live(ctx)
        {
            self.look(ctx);
        }
    }

    /// Who makes ladders, and keeps positions.
    pub fn pricing(&self) -> &P {
        &self.pricing
    }

    /// The same to change.
    pub fn pricing_mut(&mut self) -> &mut P {
        &mut self.pricing
    }

    /// Bid plus ask of the underlying, in its ticks, when its book is live and has both.
    pub fn half_tick(&self) -> Option<i64> {
        self.known.half_tick(self.config.underlying_tick)
    }

    /// Has quoter and eye do something with the context, then sees to what came of it.
    #[inline]
    fn with<T>(
        &mut self,
        ctx: &mut Context<'_>,
        does: impl FnOnce(&mut MarketMaker, Nanos, &mut Port<'_, '_, '_>) -> T,
    ) -> T {
        let now = ctx.now();
        let tick = self.config.option_tick;
        let mut port = Port::new(ctx, &mut self.under_way, &self.known, tick);
        let done = does(&mut self.maker, now, &mut port);
        if self.under_way.stopped_by.is_some() || self.under_way.cancelled.is_some() {
            self.conclude(ctx);
        }
        self.maker.follow_pull(now);
        done
    }

    /// A message was stopped, or there was nothing to cancel.
    #[cold]
    fn conclude(&mut self, ctx: &mut Context<'_>) {
        let now = ctx.now();
        for _ in 0..4 {
            let tick = self.config.option_tick;
            let mut port = Port::new(&mut *ctx, &mut self.under_way, &self.known, tick);
            let stopped_by = port.under_way.stopped_by.take();
            self.last_stop = stopped_by.or(self.last_stop);
            let is_pulled = |maker: &MarketMaker| {
                matches!(
                    maker.quoter.state(),
                    QuotingState::Pulling(PullReason::Control) | QuotingState::Halted(PullReason::Control)
                )
            };
            if stopped_by.is_some() && !is_pulled(&self.maker) {
                // What stops one stops all, until a person resumes: as the controls of a quoter do.
                self.maker
                    .pull_by(|quoter| quoter.pull_on_control(now, &mut port));
            }
            match port.under_way.cancelled.take() {
                Some(id) => self.maker.quoter.on_cancelled(now, id, true, &mut port),
                None if stopped_by.is_none() => return,
                None => {}
            }
        }
    }

    /// Whether the session and the host's checks are there as they were.
    fn follow_host(&mut self, ctx: &mut Context<'_>) {
        let has_session = ctx.has_session();
        if has_session != self.watch.has_session {
            self.watch.has_session = has_session;
            match has_session {
                true => self.maker.on_logon(ctx.now()),
                false => {
                    self.maker.on_disconnect();
                    (self.under_way.cancelling, self.under_way.cancelled) = (None, None);
                }
            }
        }
        let is_out = matches!(
            self.maker.quoter.state(),
            QuotingState::Pulling(PullReason::Control)
                | QuotingState::Halted(PullReason::Control | PullReason::BrokenTrade)
                | QuotingState::Pulling(PullReason::BrokenTrade)
        );
        if ctx.is_stopped() && !is_out {
            self.with(ctx, |maker, now, port| {
                maker.pull_by(|quoter| quoter.pull_on_control(now, port));
            });
        }
    }

    /// What cannot be booked, or is not known: everything is pulled.
    #[cold]
    fn distrust(&mut self, ctx: &mut Context<'_>) {
        self.with(ctx, |maker, now, port| {
            maker.pull_by(|quoter| quoter.pull(now, port));
        });
    }

    /// Whether an option may be quoted now.
    fn follow_option(&mut self, ctx: &mut Context<'_>, quote: u16) {
        let is_open = self.known.is_open(quote);
        self.with(ctx, |maker, now, port| maker.set_open(now, quote, is_open, port));
    }

    /// The underlying as it stands.
    fn look(&mut self, ctx: &mut Context<'_>) {
        if let Some(top) = self.known.top(ctx) {
            self.tick(ctx, &top);
        }
    }

    #[inline]
    fn tick(&mut self, ctx: &mut Context<'_>, top: &BookUpdate) {
        if top.state == BookState::Live
            && let Some(id) = self.known.underlying()
        {
            let best = Side::BOTH.map(|side| top.best(side).map(|(price, _)| price));
            ctx.observe(id, best);
        }
        self.with(ctx, |maker, now, port| maker.on_underlying(now, top, port));
    }

    /// Tells whoever keeps positions.
    fn traded(&mut self, ctx: &mut Context<'_>, (of, quote): (TradeOf, u16), trade: Trade) {
        let told = QuoterTrade {
            at: ctx.now(),
            of,
            quote,
            side: trade.side,
            is_broken: trade.is_broken,
            qty: trade.qty,
            price: trade.price,
            half_tick: self.half_tick().unwrap_or(0),
            execution: ctx.execution(),
        };
        if !self.pricing.traded(&told) {
            self.trades_lost += 1;
            self.distrust(ctx);
        }
    }

    fn fill_of(&self, quote: u16, side: Side, qty: Qty, price: Price) -> Option<Fill> {
        Some(Fill {
            quote,
            side,
            qty,
            ticks: u16::try_from(price.raw() / self.config.option_tick.raw().max(1)).ok()?,
            delta_milli: self.options.get(usize::from(quote))?.delta_milli,
        })
    }

    /// What contracts cost at a price, in ticks of the options times contracts.
    fn paid(&self, contracts: i64, price: Price) -> i64 {
        contracts.saturating_mul(price.raw() / self.config.option_tick.raw().max(1))
    }

    /// A quote traded, or that is taken back.
    fn quote_traded(&mut self, ctx: &mut Context<'_>, quote: u16, trade: Trade) {
        // As it traded.
        let side = if trade.is_broken { !trade.side } else { trade.side };
        let Some(fill) = self.fill_of(quote, side, trade.qty, trade.price) else {
            return self.distrust(ctx);
        };
        self.traded(ctx, (TradeOf::Quote, quote), trade);
        let has_session = self.watch.has_session;
        self.with(ctx, |maker, now, port| match trade.is_broken {
            true => maker.on_broken(now, &fill, port),
            // Of a session that was lost, heard of before the next one is whole.
            false if !has_session => maker.on_late_fill(&fill),
            // One that was not answered yet may trade already.
            false if maker.quoter.is_in_flight(quote) => maker.on_order_fill(now, &fill, port),
            false => maker.on_fill(now, &fill, port),
        });
    }

    /// A mass quote was answered as a whole.
    fn answered(
        &mut self,
        ctx: &mut Context<'_>,
        id: ClientOrderId,
        is_taken: bool,
        refused: &[InstrumentId],
    ) {
        let Some(own) = self.under_way.messages.own(id) else {
            return;
        };
        let mut places = [0_u16; crate::ENTRIES_MAX];
        let mut count = 0;
        for quote in refused.iter().filter_map(|id| self.known.quote_of(*id)) {
            if count < places.len() {
                places[count] = quote;
                count += 1;
            }
        }
        self.with(ctx, |maker, now, port| {
            let refused = is_taken.then_some(&places[..count]);
            maker.quoter.on_answer(now, own, refused, port);
        });
        while let Some(quote) = self.early.pop() {
            let own = self.known.id(quote).and_then(|id| ctx.own_quote(id));
            if let Some(own) = own {
                self.maker.quoter.on_left(quote, own.live.map(|side| side.left.0));
            }
        }
    }

    /// The only quote of a mass quote was answered side by side.
    fn settled(
        &mut self,
        ctx: &mut Context<'_>,
        id: ClientOrderId,
        instrument: InstrumentId,
        is_refused: bool,
    ) {
        let number = self.under_way.messages.own(id);
        let (Some(number), Some(quote)) = (number, self.known.quote_of(instrument)) else {
            return;
        };
        let Some(own) = ctx.own_quote(instrument) else {
            return;
        };
        let live = self.live_of(number, quote, own, is_refused);
        self.with(ctx, |maker, now, port| maker.on_orders(now, &live, port));
    }

    fn live_of(&self, id: u64, quote: u16, own: &OwnQuote, is_refused: bool) -> QuoteLive {
        let tick = self.config.option_tick.raw().max(1);
        let ticks = |side: Side, none: u16| {
            let live = own.live[side as usize];
            match live.left.is_zero() {
                true => none,
                false => u16::try_from(live.price.raw() / tick).unwrap_or(none),
            }
        };
        QuoteLive {
            id,
            quote,
            ticks: (ticks(Side::Bid, NO_BID), ticks(Side::Ask, NO_ASK)),
            open: own.live.map(|side| side.left.0),
            is_refused,
        }
    }

    /// An order of the eye traded, or that is taken back: `trade` as it is booked.
    fn eye_traded(
        &mut self,
        ctx: &mut Context<'_>,
        instrument: Option<InstrumentId>,
        (kind, is_live, is_unknown): (ReportKind, bool, bool),
        trade: Trade,
    ) {
        let Some(quote) = instrument.and_then(|id| self.known.quote_of(id)) else {
            if instrument.is_some() && instrument == self.known.underlying() {
                return self.traded(ctx, (TradeOf::Hedge, NONE), trade);
            }
            return self.distrust(ctx);
        };
        self.traded(ctx, (TradeOf::Eye, quote), trade);
        let contracts = trade.signed();
        let fill = EyeFill {
            option: quote,
            contracts,
            paid: self.paid(contracts, trade.price),
            counted: self.fill_of(quote, trade.side, trade.qty, trade.price),
        };
        self.with(ctx, |maker, now, port| {
            maker.on_eye_trade(now, (kind, is_live, is_unknown), &fill, port);
        });
    }

    /// The venue has a quote otherwise than we believed, or does not say.
    #[cold]
    fn differs(&mut self, ctx: &mut Context<'_>, quote: u16, venue: Option<[u32; 2]>) {
        ctx.note(
            "the venue has a quote otherwise: every quote is pulled",
            quote.into(),
        );
        self.difference = Some(Difference {
            quote,
            venue,
            ours: self.maker.quoter.open(quote),
        });
        self.distrust(ctx);
    }

    /// Newer ladders, the eye's first; those before go back.
    fn take_ladders(&mut self, ctx: &mut Context<'_>) {
        while let Some(made) = self.pricing.next() {
            let Ladders { quotes, eye, hedges } = made;
            self.maker.set_hedges(&hedges);
            let before = self.with(ctx, |maker, now, port| {
                let eye = eye.and_then(|ladder| maker.replace_eye_ladder(now, ladder, port));
                (maker.replace_ladder(now, quotes, port), eye)
            });
            if let (Some(quotes), eye) = before {
                self.pricing.give_back(Ladders { quotes, eye, hedges });
            }
        }
    }

    /// Quotes again, and the eye may be armed again.
    pub fn resume(&mut self, ctx: &mut Context<'_>) -> bool {
        let now = ctx.now();
        let is_quoting = self.maker.resume(now);
        if is_quoting {
            self.look(ctx);
        }
        is_quoting
    }
}

/// A trade as it is booked.
#[derive(Clone, Copy)]
struct Trade {
    side: Side,
    qty: Qty,
    price: Price,
    is_broken: bool,
}

impl Trade {
    fn new(side: Side, qty: Qty, price: Price) -> Trade {
        Trade {
            side,
            qty,
            price,
            is_broken: false,
        }
    }

    /// One that the venue takes back: what was bought is sold.
    fn taken_back(side: Side, qty: Qty, price: Price) -> Trade {
        Trade {
            is_broken: true,
            ..Trade::new(!side, qty, price)
        }
    }

    /// That of a report on an order of this side, if it is about one.
    fn of(side: Side, kind: &ReportKind) -> Option<Trade> {
        match *kind {
            ReportKind::Filled { qty, price, .. } => Some(Trade::new(side, qty, price)),
            ReportKind::Broken { qty, price, .. } => Some(Trade::taken_back(side, qty, price)),
            _ => None,
        }
    }

    fn of_late(late: &LateExecution) -> Trade {
        match late.is_broken {
            true => Trade::taken_back(late.side, late.qty, late.price),
            false => Trade::new(late.side, late.qty, late.price),
        }
    }

    fn signed(&self) -> i64 {
        match self.side {
            Side::Bid => i64::from(self.qty.0),
            Side::Ask => -i64::from(self.qty.0),
        }
    }
}

/// Whether a book may be trusted.
fn is_live(state: BookState) -> bool {
    state == BookState::Live
}
