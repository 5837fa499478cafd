//! The [`Eye`] alone as a [`Strategy`]: it takes what others quote too well, and quotes nothing.
//!
//! ```text
//! on_book ─► Eye ─► Context::submit ─► checks of the host ─► order session
//! on_order ─► Eye (fills are hedged at once) ─► Pricing::traded
//! on_turn ─► ladders of Pricing, the loop's pauses, timeouts, the session
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use tickwire_market::{
    BookUpdate, ClientOrderId, Counter, Instrument, InstrumentId, Nanos, Symbol, TradingStatus,
};

use super::known::Known;
use super::port::{Port, UnderWay};
use super::{LOOK, LOOK_NS, Ladders, NONE, Pricing, QuotedOption, QuoterTrade, Trade, TradeOf};
use crate::strategy::{
    BookChange, Context, LateExecution, OrderEvent, Strategy, Subscription, TimerId, is_name_of_quote,
};
use crate::{Eye, EyeConfig, EyeState, Ladder, NoQuotes, OrderReport, Silence, SilenceConfig, TwoLooks};

/// Takes what others quote too well in the options on one underlying, by ladders that are made elsewhere
/// ([`Ladders::eye`]). It is off until it is armed.
///
/// [`super::OptionQuoter::with_eye`] is an eye and a quoter over the same options in one strategy: they have
/// one set of limits there. Beside other strategies of one process, the host stops what could trade with an
/// order or a quote of theirs.
///
/// An operator's words ([`Strategy::on_command`]): `arm`, `disarm`, `heartbeat`, `pull` (off until
/// `resume`), `resume`.
pub struct OptionEye<P> {
    eye: Eye,
    config: EyeConfig,
    watch: Watch,
    pricing: P,
    options: Vec<QuotedOption>,
    known: Known,
    under_way: UnderWay,
    /// A ladder of quotes that came with the eye's: it goes back with the next.
    unused: Option<Box<Ladder>>,
    has_session: bool,
    trades_lost: u64,
}

/// What is watched of the host's loop and of market data, as a quoter does.
struct Watch {
    stall_ns: u64,
    turned: Option<Nanos>,
    /// Packets of a time that the loop stood still wait to be read, and whether one came in this turn.
    is_behind: bool,
    has_packet: bool,
    silence: Silence,
    /// How long the underlying may stay as it is, in nanoseconds, 0 for any time, and when it changed last.
    underlying_silence_ns: u64,
    changed: Option<Nanos>,
    /// At silence, one when each turn begins.
    looks: TwoLooks,
}

impl Watch {
    fn new() -> Watch {
        let like = crate::QuoterConfig::default();
        Watch {
            stall_ns: like.stall_ns,
            turned: None,
            is_behind: false,
            has_packet: false,
            silence: Silence::new(like.silence),
            underlying_silence_ns: like.underlying_silence_ns,
            changed: None,
            looks: TwoLooks::default(),
        }
    }

    /// A turn of the loop begins: whether what is known of the underlying may be long past.
    #[inline]
    fn turns(&mut self, now: Nanos) -> bool {
        let stood = self.turned.replace(now).map_or(0, |then| now.since(then));
        let has_packet = core::mem::replace(&mut self.has_packet, false);
        if self.stall_ns > 0 && stood > self.stall_ns {
            // Nobody listened meanwhile: that nothing was heard says nothing of the venue.
            self.silence.restart(now);
            self.changed = self.changed.map(|_| now);
            self.is_behind = true;
            return true;
        }
        self.is_behind &= has_packet;
        let unchanged = self.changed.map_or(0, |then| now.since(then));
        let is_unchanged = self.underlying_silence_ns > 0 && unchanged > self.underlying_silence_ns;
        let silent = match self.silence.is_silent(now) {
            true => Some(self.silence.heard()),
            false => self.changed.filter(|_| is_unchanged),
        };
        self.looks.confirm(silent)
    }
}

impl<P: Pricing> OptionEye<P> {
    /// Looks at `options`, at most 65 534 of them, once the feed has named them and a ladder has come.
    /// `config.underlying` means nothing: it is found by its symbol.
    pub fn new(
        config: EyeConfig,
        underlying: Symbol,
        mut options: Vec<QuotedOption>,
        pricing: P,
    ) -> OptionEye<P> {
        options.truncate(usize::from(NONE - 1));
        let count = options.len() as u16;
        // Where its orders go is found by the option's place.
        let places: Vec<InstrumentId> = (0..u32::from(count)).map(InstrumentId).collect();
        OptionEye {
            eye: Eye::new(config, &places),
            config,
            watch: Watch::new(),
            pricing,
            known: Known::new(underlying, count),
            options,
            // An order that is over may be broken or filled once more.
            under_way: UnderWay::new(0, config.open_max.max(1) as usize * 16),
            unused: None,
            has_session: false,
            trades_lost: 0,
        }
    }

    /// A turn of the loop that comes so many nanoseconds after the one before is a stall: what is known of
    /// the underlying is not trusted until it has been good for [`EyeConfig::calm_ns`]; 0 is no turn. Default
    /// 250 ms, as of quoters.
    pub fn with_stall(mut self, stall_ns: u64) -> OptionEye<P> {
        self.watch.stall_ns = stall_ns;
        self
    }

    /// Market data that is silent for longer than this, or an underlying that does not change for so many
    /// nanoseconds (0 for any time), is not trusted, until the underlying has changed again and been good for
    /// [`EyeConfig::calm_ns`]. Default as of quoters.
    pub fn with_silence(mut self, silence: SilenceConfig, underlying_ns: u64) -> OptionEye<P> {
        self.set_silence(silence, underlying_ns);
        self
    }

    /// The same of one that is hosted: what it has heard is forgotten.
    pub fn set_silence(&mut self, silence: SilenceConfig, underlying_ns: u64) {
        self.watch.silence = Silence::new(silence);
        self.watch.underlying_silence_ns = underlying_ns;
    }

    /// An option is traded in only once its status says that it trades, rather than until its status says
    /// that it does not.
    pub fn once_it_trades(mut self) -> OptionEye<P> {
        self.known.must_trade();
        self
    }

    /// What it takes, has under way and holds.
    pub fn eye(&self) -> &Eye {
        &self.eye
    }

    /// The same to change: for hosts that restore what was held before, and tests.
    pub fn eye_mut(&mut self) -> &mut Eye {
        &mut self.eye
    }

    /// Who makes ladders, and keeps positions.
    pub fn pricing(&self) -> &P {
        &self.pricing
    }

    /// The same to change.
    pub fn pricing_mut(&mut self) -> &mut P {
        &mut self.pricing
    }

    /// Trades that [`Pricing::traded`] had no room for; each has turned the eye off.
    pub fn trades_lost(&self) -> u64 {
        self.trades_lost
    }

    /// Turns it on for [`EyeConfig::armed_ns`]; options that it no longer watched because an order was
    /// rejected are watched again where they trade. `false`: it was pulled, and is to be resumed first.
    pub fn arm(&mut self, now: Nanos) -> bool {
        for (option, is_open) in (0..).zip(self.known.open()) {
            self.eye.set_watched(option, *is_open);
        }
        self.eye.arm(now)
    }

    #[inline]
    fn with<T>(
        &mut self,
        ctx: &mut Context<'_>,
        does: impl FnOnce(&mut Eye, Nanos, &mut Port<'_, '_, '_>) -> T,
    ) -> T {
        let now = ctx.now();
        let tick = self.config.option_tick;
        let mut port = Port::new(ctx, &mut self.under_way, &self.known, tick);
        does(&mut self.eye, now, &mut port)
    }

    /// Whether the session and the host's checks are there as they were.
    fn follow_host(&mut self, ctx: &Context<'_>) {
        let has_session = ctx.has_session();
        if has_session != self.has_session {
            self.has_session = has_session;
            match has_session {
                true => {
                    // An order that did not arrive is not sent again, and one that did has been answered.
                    self.eye.forget_open(ctx.now());
                    self.eye.on_logon();
                }
                false => self.eye.on_disconnect(),
            }
        }
        if ctx.is_stopped() {
            self.eye.kill();
        }
    }

    #[inline]
    fn look(&mut self, ctx: &mut Context<'_>, top: &BookUpdate) {
        self.with(ctx, |eye, now, port| eye.on_underlying(now, top, &NoQuotes, port));
    }

    fn take_ladders(&mut self, ctx: &mut Context<'_>) {
        while let Some(Ladders { quotes, eye, hedges }) = self.pricing.next() {
            for (option, delta) in (0..).zip(&hedges) {
                self.eye.set_delta(option, *delta);
            }
            let unused = self.unused.replace(quotes);
            let before = eye.and_then(|ladder| {
                self.with(ctx, |eye, now, port| {
                    eye.replace_ladder(now, ladder, &NoQuotes, port)
                })
            });
            if let Some(quotes) = unused {
                let eye = before;
                self.pricing.give_back(Ladders { quotes, eye, hedges });
            }
        }
    }

    /// Tells whoever keeps positions; what cannot be told turns the eye off.
    fn traded(&mut self, ctx: &Context<'_>, instrument: Option<InstrumentId>, trade: Trade) {
        let option = instrument.and_then(|id| self.known.quote_of(id));
        let is_hedge = instrument.is_some() && instrument == self.known.underlying();
        if option.is_none() && !is_hedge {
            return self.eye.kill();
        }
        let told = QuoterTrade {
            at: ctx.now(),
            of: match option {
                Some(_) => TradeOf::Eye,
                None => TradeOf::Hedge,
            },
            quote: option.unwrap_or(NONE),
            side: trade.side,
            is_broken: trade.is_broken,
            qty: trade.qty,
            price: trade.price,
            half_tick: self.known.half_tick(self.config.underlying_tick).unwrap_or(0),
            execution: ctx.execution(),
        };
        if !self.pricing.traded(&told) {
            self.trades_lost += 1;
            self.eye.kill();
        }
    }

    /// A trade as it is booked; `is_unknown`: no order of the eye's has it.
    fn booked(
        &mut self,
        ctx: &Context<'_>,
        instrument: Option<InstrumentId>,
        trade: Trade,
        is_unknown: bool,
    ) {
        self.traded(ctx, instrument, trade);
        if let (true, Some(option)) = (is_unknown, instrument.and_then(|id| self.known.quote_of(id))) {
            self.eye.hold(option, trade.signed());
        }
    }
}

impl<P: Pricing> Strategy for OptionEye<P> {
    fn subscriptions(&self) -> Vec<Subscription> {
        let symbols = self.options.iter().map(|option| option.symbol);
        let symbols = symbols.chain([self.known.symbol()]);
        symbols.map(Subscription::Symbol).collect()
    }

    fn on_start(&mut self, ctx: &mut Context<'_>) {
        for (option, is_open) in (0..).zip(self.known.open()) {
            self.eye.set_watched(option, *is_open);
        }
        self.follow_host(ctx);
        ctx.set_timer(LOOK, ctx.now());
    }

    fn on_instrument(&mut self, _: &mut Context<'_>, instrument: &Instrument) {
        self.known.name(instrument, &self.options);
    }

    #[inline]
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        if ctx.has_session() != self.has_session {
            self.follow_host(ctx);
        }
        if self.known.underlying() == Some(change.instrument) {
            self.watch.changed = Some(ctx.now());
            let top = self.known.show(change.after);
            self.look(ctx, &top);
        } else if let Some(option) = self.known.quote_of(change.instrument) {
            self.with(ctx, |eye, now, port| {
                eye.on_option(now, option, change.after, &NoQuotes, port)
            });
        }
    }

    fn on_status(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId, status: TradingStatus) {
        for option in 0..self.options.len() as u16 {
            if self.known.follow_status(ctx, option, instrument, status) {
                let is_open = self.known.is_open(option);
                self.eye.set_watched(option, is_open);
            }
        }
        if self.known.follow_underlying(ctx, instrument, status)
            && let Some(top) = self.known.top(ctx)
        {
            self.look(ctx, &top);
        }
    }

    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        let order = &event.order;
        let Some(own) = self.under_way.orders.own(order.id) else {
            return;
        };
        let report = OrderReport {
            id: ClientOrderId(own),
            venue_id: order.venue_id,
            kind: event.kind,
        };
        let is_unknown = self.with(ctx, |eye, now, port| eye.on_report(now, &report, port).is_err());
        let Some(trade) = Trade::of(order.side, &event.kind) else {
            return;
        };
        self.booked(ctx, Some(order.instrument), trade, is_unknown);
        if trade.is_broken {
            self.eye.kill();
        }
    }

    /// Of an order of a process, or a session, before this one. One that was not booked before turns the eye
    /// off: it was decided on what is not known here.
    fn on_late_execution(&mut self, ctx: &mut Context<'_>, late: &LateExecution) -> bool {
        let is_ours = late.number.is_some_and(|number| !is_name_of_quote(number));
        let is_known = late
            .instrument
            .is_some_and(|id| self.known.quote_of(id).is_some() || self.known.underlying() == Some(id));
        if !is_ours || !is_known {
            return false;
        }
        self.booked(ctx, late.instrument, Trade::of_late(late), true);
        if !late.is_again || late.is_broken {
            self.eye.kill();
        }
        true
    }

    #[inline]
    fn on_turn(&mut self, ctx: &mut Context<'_>) {
        let now = ctx.now();
        if self.watch.turns(now) {
            self.eye.distrust(now);
        }
        self.follow_host(ctx);
        self.take_ladders(ctx);
    }

    fn on_session(&mut self, ctx: &mut Context<'_>) {
        self.follow_host(ctx);
    }

    /// It may have been about its orders: it is off until it is resumed.
    fn on_distrust(&mut self, _: &mut Context<'_>) -> bool {
        self.eye.kill();
        true
    }

    #[inline]
    fn on_packet(&mut self, ctx: &mut Context<'_>, _: usize) {
        self.watch.has_packet = true;
        self.watch.silence.on_packet(ctx.now());
        if self.watch.is_behind {
            self.eye.distrust(ctx.now());
        }
    }

    /// What is due: timers come behind what the venue has said, and an answer that lies in the socket is not
    /// late.
    fn on_timer(&mut self, ctx: &mut Context<'_>, _: TimerId) {
        let now = ctx.now();
        self.follow_host(ctx);
        if self.eye.poll_timeout().is_some_and(|due| due <= now) {
            self.eye.handle_timeout(now);
        }
        ctx.set_timer(LOOK, now.after(LOOK_NS));
    }

    fn on_command(&mut self, ctx: &mut Context<'_>, words: &str) {
        match words.trim() {
            "arm" => _ = self.arm(ctx.now()),
            "disarm" => self.eye.disarm(),
            "heartbeat" => _ = self.eye.on_heartbeat(ctx.now()),
            "pull" => self.eye.kill(),
            "resume" if !ctx.is_stopped() => self.eye.revive(),
            _ => ctx.note("not a word of the eye's", words.len() as i64),
        }
    }

    fn on_stop(&mut self, _: &mut Context<'_>) {
        self.eye.kill();
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        let sent = self.eye.counters().get(Counter::OrdersSent);
        tell("orders of the eye", i64::try_from(sent).unwrap_or(i64::MAX));
        tell("contracts held", self.eye.net());
        let is_armed = matches!(self.eye.state(), EyeState::Armed(_));
        tell("armed", i64::from(is_armed));
    }
}
