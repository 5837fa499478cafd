//! The interface of a trading rule: the same source in a backtest, against the simulator and live.
//!
//! ```
//! use tickwire_market::{Side, Symbol};
//! use tickwire_trading::strategy::{BookChange, Context, Strategy, Subscription};
//!
//! /// Buys 100 whenever the best offer has another price.
//! struct Taker;
//!
//! impl Strategy for Taker {
//!     fn subscriptions(&self) -> Vec<Subscription> {
//!         vec![Subscription::symbol("AAPL")]
//!     }
//!
//!     fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
//!         if let Some(offer) = change.new_best_price(Side::Ask) {
//!             // What became of it: the order's number, or the check that stopped it.
//!             let _ = ctx.buy_now(change.instrument, 100, offer);
//!         }
//!     }
//! }
//! ```
//!
//! A [`Conductor`] holds a strategy, its orders, positions and limits, and is told of market data and reports
//! by whoever hosts it. An order's path is: [`Context::submit`] → the checks of [`crate::Risk`] → the order
//! table → [`OrderPort::send`], all inside the callback.
//!
//! **Invariant.** No clock (`now` is an argument), no allocation after [`Strategy::on_start`], integers only.

mod arming;
mod conductor;
mod config;
mod consolidated;
mod context;
mod either;
mod executions;
mod quotes;
mod quoting;
mod reconciling;
mod rehearsing;
mod reports;
mod several;
#[cfg(test)]
mod tests;

pub use arming::{ArmEnd, ArmRefusal, ArmedEvent, ArmedOrder, Awaited, AwaitedEvent};
pub use conductor::{Conductor, Outcome};
pub use config::ConductorConfig;
pub use consolidated::{Consolidated, SuperChange};
pub use context::{Context, Markets, NotSent, Note, OrderPort, Rejected, TIMERS, Ticket, TimerId};
pub use either::Either;
pub use executions::{Execution, ExecutionId, LateExecution, Once};
pub use quotes::{
    MassQuoteEvent, OwnQuote, QUOTES_MAX, Quote, QuoteEntries, QuoteEntry, QuoteEvent, QuoteEventKind,
    QuoteIntent, QuoteReport, QuoteSide, QuoteTerms, Removal, is_name_of_quote, place_of,
};

pub use several::{NUMBERS, numbers_from, share, whose};

use alloc::boxed::Box;
use alloc::vec::Vec;
use tickwire_market::{
    BookState, BookUpdate, ClientOrderId, Instrument, InstrumentId, MarketEvent, Nanos, Price, Qty, SeqNo,
    Side, Symbol, TradingStatus, UpdateFlags, Venue, Volume,
};

use crate::{Order, ReportKind};

/// A trading rule. Every callback does nothing unless it is written; none is called from another thread.
pub trait Strategy {
    /// What it wants to hear of and trade. Asked for once, before anything else.
    fn subscriptions(&self) -> Vec<Subscription>;

    /// The run begins: the one callback that may allocate. No instrument is known yet.
    fn on_start(&mut self, ctx: &mut Context<'_>) {
        let _ = ctx;
    }

    /// The feed has named an instrument that was subscribed to: its number is what everything else says from
    /// now on; its tick is that of [`tick_of`]. Called again when the venue defines it anew.
    fn on_instrument(&mut self, ctx: &mut Context<'_>, instrument: &Instrument) {
        let _ = (ctx, instrument);
    }

    /// A book has changed; called once for each book that a message (on CME and MOEX: a match event) has
    /// changed, after all of it.
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        let _ = (ctx, change);
    }

    /// A consolidated book that was subscribed to ([`Subscription::Consolidated`]) has changed: one over all
    /// feeds that have its symbol. Called after [`Strategy::on_book`] of the book that made it change, and
    /// where a feed's part leaves it or comes back.
    fn on_super_book(&mut self, ctx: &mut Context<'_>, change: &SuperChange) {
        let _ = (ctx, change);
    }

    /// A trade at the venue, ours or another's. Before the change of the book that it makes.
    fn on_trade(&mut self, ctx: &mut Context<'_>, trade: &Trade) {
        let _ = (ctx, trade);
    }

    /// A quote of a feed without depth (CQS, UQDF): a participant's, or the national best.
    /// [`Strategy::on_book`] is told of the national best too.
    fn on_quote(&mut self, ctx: &mut Context<'_>, quote: &MarketEvent) {
        let _ = (ctx, quote);
    }

    /// The state of an auction: paired and missing quantity, indicative prices.
    fn on_imbalance(&mut self, ctx: &mut Context<'_>, imbalance: &MarketEvent) {
        let _ = (ctx, imbalance);
    }

    /// A trading status, of an instrument, or of the whole venue as [`InstrumentId::WHOLE_FEED`] of its feed.
    fn on_status(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId, status: TradingStatus) {
        let _ = (ctx, instrument, status);
    }

    /// A book may not be trusted any more: a gap lies before it. Orders on it are refused until
    /// [`Strategy::on_live`].
    fn on_stale(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        let _ = (ctx, instrument);
    }

    /// A book may be trusted, for the first time or again.
    fn on_live(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        let _ = (ctx, instrument);
    }

    /// Something has happened to one of our orders.
    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        let _ = (ctx, event);
    }

    /// The order that was armed ([`Context::arm`]) has left, or will not.
    fn on_armed(&mut self, ctx: &mut Context<'_>, event: &ArmedEvent) {
        let _ = (ctx, event);
    }

    /// Something has happened to a quote of ours ([`Context::mass_quote`]): the venue has answered, or it
    /// traded.
    fn on_own_quote(&mut self, ctx: &mut Context<'_>, event: &QuoteEvent) {
        let _ = (ctx, event);
    }

    /// A request about several quotes was answered as a whole, or the venue's protection took quotes away;
    /// after [`Strategy::on_own_quote`] of each of them.
    fn on_mass_quote(&mut self, ctx: &mut Context<'_>, event: &MassQuoteEvent<'_>) {
        let _ = (ctx, event);
    }

    /// The venue has sent an execution that no order and no quote of this process has: of a process or a
    /// session before this one. Whether the strategy has booked it; if not, its position is not known, and
    /// the kill switch goes on.
    fn on_late_execution(&mut self, ctx: &mut Context<'_>, late: &LateExecution) -> bool {
        let _ = (ctx, late);
        false
    }

    /// The loop of the thread that trades begins another turn, before anything is read in it: what other
    /// threads have handed over is taken here. Live as often as the loop turns, in a backtest with each
    /// timer.
    fn on_turn(&mut self, ctx: &mut Context<'_>) {
        let _ = ctx;
    }

    /// A thread that never sleeps has time to spare: what the next event might need is gone through, and
    /// forgotten. An order's way is rehearsed by the host behind it ([`Conductor::rehearse`]); this is for
    /// what the strategy does before it enters one. Live only, as often as is configured (`idle_us`), in
    /// turns that find no packet; nothing may be sent.
    fn on_idle(&mut self, ctx: &mut Context<'_>) {
        let _ = ctx;
    }

    /// An order session that it trades over is logged on and nothing of it is missing, or is lost:
    /// [`Context::has_session`] says whether all of them are there. Live only.
    fn on_session(&mut self, ctx: &mut Context<'_>) {
        let _ = ctx;
    }

    /// The venue has refused a message as a whole, or has said something that cannot be read: it may be about
    /// what is open. Whether the strategy has seen to it; if not, a message that was refused ends the run.
    /// Live only.
    fn on_distrust(&mut self, ctx: &mut Context<'_>) -> bool {
        let _ = ctx;
        false
    }

    /// A packet of a feed, by its place, was taken as a whole: whatever it changed has been told, and what
    /// was sent because of it leaves now. Live only.
    fn on_packet(&mut self, ctx: &mut Context<'_>, feed: usize) {
        let _ = (ctx, feed);
    }

    /// A time that was asked for by [`Context::set_timer`] has come.
    fn on_timer(&mut self, ctx: &mut Context<'_>, timer: TimerId) {
        let _ = (ctx, timer);
    }

    /// An operator's word, as typed.
    fn on_command(&mut self, ctx: &mut Context<'_>, words: &str) {
        let _ = (ctx, words);
    }

    /// The run ends. The host has cancelled, or cancels, what is open; nothing more is sent.
    fn on_stop(&mut self, ctx: &mut Context<'_>) {
        let _ = ctx;
    }

    /// Whether it says itself what the market of each instrument is that prices are held to
    /// ([`Context::observe`]), rather than that the whole book is: for who is most of the book.
    fn observes_markets(&self) -> bool {
        false
    }

    /// Whether it arms orders ([`Context::arm`]): the host makes a place for one then. Asked for once, before
    /// the run.
    fn pre_arms(&self) -> bool {
        false
    }

    /// Numbers of its own for the report at the end, by name.
    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        let _ = tell;
    }
}

/// Strategies of several kinds in one process: which one is meant is looked up at each callback.
impl<S: Strategy + ?Sized> Strategy for Box<S> {
    fn subscriptions(&self) -> Vec<Subscription> {
        (**self).subscriptions()
    }
    fn on_start(&mut self, ctx: &mut Context<'_>) {
        (**self).on_start(ctx);
    }
    fn on_instrument(&mut self, ctx: &mut Context<'_>, instrument: &Instrument) {
        (**self).on_instrument(ctx, instrument);
    }
    #[inline]
    fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
        (**self).on_book(ctx, change);
    }
    fn on_super_book(&mut self, ctx: &mut Context<'_>, change: &SuperChange) {
        (**self).on_super_book(ctx, change);
    }
    #[inline]
    fn on_trade(&mut self, ctx: &mut Context<'_>, trade: &Trade) {
        (**self).on_trade(ctx, trade);
    }
    fn on_quote(&mut self, ctx: &mut Context<'_>, quote: &MarketEvent) {
        (**self).on_quote(ctx, quote);
    }
    fn on_imbalance(&mut self, ctx: &mut Context<'_>, imbalance: &MarketEvent) {
        (**self).on_imbalance(ctx, imbalance);
    }
    fn on_status(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId, status: TradingStatus) {
        (**self).on_status(ctx, instrument, status);
    }
    fn on_stale(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        (**self).on_stale(ctx, instrument);
    }
    fn on_live(&mut self, ctx: &mut Context<'_>, instrument: InstrumentId) {
        (**self).on_live(ctx, instrument);
    }
    fn on_order(&mut self, ctx: &mut Context<'_>, event: &OrderEvent) {
        (**self).on_order(ctx, event);
    }
    fn on_armed(&mut self, ctx: &mut Context<'_>, event: &ArmedEvent) {
        (**self).on_armed(ctx, event);
    }
    fn on_own_quote(&mut self, ctx: &mut Context<'_>, event: &QuoteEvent) {
        (**self).on_own_quote(ctx, event);
    }
    fn on_mass_quote(&mut self, ctx: &mut Context<'_>, event: &MassQuoteEvent<'_>) {
        (**self).on_mass_quote(ctx, event);
    }
    fn on_late_execution(&mut self, ctx: &mut Context<'_>, late: &LateExecution) -> bool {
        (**self).on_late_execution(ctx, late)
    }
    #[inline]
    fn on_turn(&mut self, ctx: &mut Context<'_>) {
        (**self).on_turn(ctx);
    }
    fn on_idle(&mut self, ctx: &mut Context<'_>) {
        (**self).on_idle(ctx);
    }
    fn on_session(&mut self, ctx: &mut Context<'_>) {
        (**self).on_session(ctx);
    }
    fn on_distrust(&mut self, ctx: &mut Context<'_>) -> bool {
        (**self).on_distrust(ctx)
    }
    #[inline]
    fn on_packet(&mut self, ctx: &mut Context<'_>, feed: usize) {
        (**self).on_packet(ctx, feed);
    }
    fn on_timer(&mut self, ctx: &mut Context<'_>, timer: TimerId) {
        (**self).on_timer(ctx, timer);
    }
    fn on_command(&mut self, ctx: &mut Context<'_>, words: &str) {
        (**self).on_command(ctx, words);
    }
    fn on_stop(&mut self, ctx: &mut Context<'_>) {
        (**self).on_stop(ctx);
    }
    fn observes_markets(&self) -> bool {
        (**self).observes_markets()
    }
    fn pre_arms(&self) -> bool {
        (**self).pre_arms()
    }
    fn figures(&self, tell: &mut dyn FnMut(&str, i64)) {
        (**self).figures(tell);
    }
}

/// What a strategy wants to hear of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subscription {
    /// An instrument by the venue's symbol, on every feed that has it.
    Symbol(Symbol),
    /// The same, and one book over all of these feeds.
    Consolidated(Symbol),
    /// Everything that the feeds define.
    All,
}

impl Subscription {
    /// An instrument by its symbol.
    ///
    /// # Panics
    /// When it is no symbol: empty, longer than [`Symbol`] holds, or not printable ASCII.
    pub fn symbol(name: &str) -> Subscription {
        Subscription::Symbol(named(name))
    }

    /// An instrument by its symbol on every feed that has it, and its consolidated book.
    ///
    /// # Panics
    /// As [`Subscription::symbol`].
    pub fn consolidated(name: &str) -> Subscription {
        Subscription::Consolidated(named(name))
    }
}

fn named(name: &str) -> Symbol {
    Symbol::new(name.as_bytes()).expect("a symbol is printable ASCII")
}

/// The tick of an instrument at a price: the feed's, and for US equities, whose feeds do not say it, that of
/// rule 612 of Regulation NMS (17 CFR 242.612): 0.01, and 0.0001 below 1.00.
pub fn tick_of(instrument: &Instrument, price: Price) -> Price {
    match instrument.venue {
        _ if instrument.tick != Price::ZERO => instrument.tick,
        Venue::Cme | Venue::Moex => Price::from_raw(1),
        _ if price.raw() < Price::ONE_RAW => Price::from_4dp(1),
        _ => Price::from_4dp(100),
    }
}

/// A book before and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BookChange<'a> {
    /// Whose book. Walk it by [`Context::book`].
    pub instrument: InstrumentId,
    /// The top as the strategy was told last.
    pub before: &'a BookUpdate,
    /// The top as it is.
    pub after: &'a BookUpdate,
    /// Everything that changed on the way from one to the other.
    pub changed: UpdateFlags,
}

impl BookChange<'_> {
    /// The best price of a side, where it is another one than before, or the first.
    #[inline]
    pub fn new_best_price(&self, side: Side) -> Option<Price> {
        let after = self.after.best(side)?.0;
        let before = self.before.best(side).map(|best| best.0);
        (before != Some(after)).then_some(after)
    }

    /// The middle between both bests: rounded down to 1e-9; `None` unless both sides are there and apart.
    #[inline]
    pub fn mid(&self) -> Option<Price> {
        mid_of(self.after)
    }

    /// Whether the book may be trusted.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.after.state == BookState::Live
    }
}

/// The middle of a top of book.
pub(crate) fn mid_of(update: &BookUpdate) -> Option<Price> {
    let (bid, ask) = (update.best(Side::Bid)?.0, update.best(Side::Ask)?.0);
    (bid < ask).then(|| crate::risk::middle(bid, ask))
}

/// A trade at the venue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trade {
    /// What was traded.
    pub instrument: InstrumentId,
    /// At what price.
    pub price: Price,
    /// How much.
    pub qty: Volume,
    /// The side of the resting order that was hit, where the feed says it.
    pub resting: Option<Side>,
    /// The venue's time.
    pub venue_ts: Nanos,
    /// The message.
    pub seq: SeqNo,
}

/// What has happened to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderEvent {
    /// The order as it is now.
    pub order: Order,
    /// What the venue said.
    pub kind: ReportKind,
    /// How much was traded by it.
    pub filled: Qty,
    /// The order that it took the place of, when it was replaced.
    pub replaced: Option<ClientOrderId>,
}
