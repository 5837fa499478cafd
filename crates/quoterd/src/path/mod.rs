//! From a packet to mass quotes, and from the venue's answers back to what is believed live: quoter and eye
//! as a strategy on the host of everybody's, without sockets.
//!
//! ```text
//! packet ─► Channel ─► QuotePath::on_event ─► HotPath: Books ─► Conductor ─► OptionQuoter (Eye, Quoter) ─► Context ─► session
//! bytes  ─► Session ─► QuotePath::answers ─► node's answers ─► Conductor ─► OptionQuoter
//! ```
//! What is here is what the quoter's process asks of the strategy: the operator's words, views, what it is
//! told of the session. Loop and session are the host's ([`tickwire_node::host`],
//! [`tickwire_node::session`]).
//!
//! One thread, calls in order. After it is made, nothing here allocates, locks or logs: `tests.rs` counts.

mod executions;
mod market;
mod operator;
mod session;

use tickwire_book::Books;
use tickwire_market::{Counter, Counters, InstrumentId, Nanos, PointValue, Price, Symbol};
use tickwire_node::hot::{EntrySession, HotPath, OrderOut};
use tickwire_node::live::{Live, QuotesAsOrders};
use tickwire_node::trader::Rule;
use tickwire_runtime::clock::Clock;
use tickwire_trading::strategy::{ConductorConfig, numbers_from};
use tickwire_trading::{
    Accounts, Controls, ControlsConfig, EyeConfig, MarketMaker, OptionQuoter, QuotedOption, QuoterConfig,
    RiskConfig, RiskReject, StrategyId,
};

pub(crate) use executions::Handed;
pub use executions::{Source, Traded, Trades};
pub(crate) use session::lasting_session;
pub use session::{VenueSession, decimals_of, session_of};

/// A market maker's session; its store may outlive the process.
pub type QuoteSession = EntrySession;

/// What a quoting session is made with.
pub struct QuoteSetup<'s> {
    /// Limits and sizes of the quoter.
    pub quoter: QuoterConfig,
    /// Those of an electronic eye over the same options; it is off until it is armed.
    pub eye: Option<EyeConfig>,
    /// What every quote and order passes last; `None` for tests and measurements of something else.
    pub controls: Option<ControlsConfig>,
    /// What a point of an option and of the underlying is worth, where money is limited.
    pub values: Option<[PointValue; 2]>,
    /// What the options are on.
    pub underlying: Symbol,
    /// Of the options, in the order of the quotes.
    pub instruments: &'s [InstrumentId],
    /// By quote, in the order of `instruments`.
    pub symbols: &'s [Symbol],
    /// Thousandths, in the same order.
    pub deltas: &'s [i32],
    /// The order entry session.
    pub session: QuoteSession,
    /// Quotes are orders, a bid and an offer each.
    pub by_orders: bool,
    /// When the process began: numbers of orders and requests begin above those of every process before it.
    pub started: Nanos,
}

/// The options, in the order of the quotes.
struct Options {
    ids: Box<[InstrumentId]>,
    symbols: Box<[Symbol]>,
    /// The places by symbol, sorted.
    by_symbol: Box<[(Symbol, u16)]>,
    tick: Price,
}

/// What the options are on.
struct Underlying {
    id: InstrumentId,
    symbol: Symbol,
    tick: Price,
}

/// The hot path with a quoter in its middle.
pub(crate) type QuotingHot<O, T> = HotPath<O, false, Quoters<T>>;

/// The quoter on the host of everybody's strategy.
pub(crate) type Quoters<T> = Live<OptionQuoter<Handed<T>>>;

/// Quoter and eye with their books and their session, as one quoting thread has them.
pub struct QuotePath<O, T> {
    hot: QuotingHot<O, T>,
    /// What is known of the session with the venue.
    pub session: VenueSession,
    options: Options,
    underlying: Underlying,
    values: Option<[PointValue; 2]>,
}

impl<O: OrderOut, T: Trades> QuotePath<O, T> {
    /// Quotes nothing until it has begun, is logged on and has a ladder. The session knows its peer: an
    /// initiator's.
    pub fn new(setup: QuoteSetup<'_>, books: Books, out: O, trades: T, clock: Clock) -> QuotePath<O, T> {
        let config = setup.quoter;
        let options: Vec<QuotedOption> = setup
            .symbols
            .iter()
            .zip(setup.deltas)
            .map(|(symbol, delta)| QuotedOption {
                symbol: *symbol,
                delta_milli: *delta,
            })
            .collect();
        let quoter = OptionQuoter::new(config, setup.underlying, options, Handed::new(trades));
        let quoter = match setup.eye {
            Some(eye) => quoter.with_eye(eye),
            None => quoter,
        };
        let last = setup.instruments.iter().map(|id| id.0).max().unwrap_or(0);
        let instruments = (last.max(config.underlying.0) + 1).next_power_of_two();
        let conductor = ConductorConfig {
            instrument_bits: instruments.trailing_zeros(),
            max_orders: 1 << 12,
            max_quotes: setup.symbols.len().max(1) as u32,
            last_id: numbers_from(0, setup.started),
            risk: no_limits_but_controls(),
            ..ConductorConfig::default()
        };
        let session = (setup.session, out);
        let mut hot = HotPath::of_one(quoter.once_it_trades(), &conductor, true, books, session, clock);
        let controls = setup.controls.unwrap_or(ControlsConfig::NONE);
        let risk = hot.rule.conductor_mut().risk_mut();
        risk.set_controls(Controls::new(controls, instruments));
        if setup.by_orders {
            hot.rule.quote_by_orders(QuotesAsOrders {
                tick: config.option_tick,
                // Fewer requests a second than this leaves room for.
                first: setup.started.0 / Nanos::MICRO / 16,
                answer_max_ns: config.answer_max_ns,
            });
        }
        // Until it is logged on.
        hot.rule.set_session(0, false);
        let mut by_symbol: Vec<(Symbol, u16)> = setup.symbols.iter().copied().zip(0..).collect();
        by_symbol.sort_unstable();
        QuotePath {
            hot,
            session: VenueSession::new(usize::from(config.quotes).max(64)),
            options: Options {
                ids: setup.instruments.into(),
                symbols: setup.symbols.into(),
                by_symbol: by_symbol.into_boxed_slice(),
                tick: config.option_tick,
            },
            underlying: Underlying {
                id: config.underlying,
                symbol: setup.underlying,
                tick: config.underlying_tick,
            },
            values: setup.values,
        }
    }

    /// Quoter and eye.
    pub fn maker(&self) -> &MarketMaker {
        self.quoter().maker()
    }

    /// The same to change.
    pub fn maker_mut(&mut self) -> &mut MarketMaker {
        self.hot.rule.conductor_mut().strategy_mut().maker_mut()
    }

    fn quoter(&self) -> &OptionQuoter<Handed<T>> {
        self.hot.rule.conductor().strategy()
    }

    /// The hot path.
    #[inline(always)]
    pub(crate) fn hot(&self) -> &QuotingHot<O, T> {
        &self.hot
    }

    /// The same to change.
    #[inline(always)]
    pub(crate) fn hot_mut(&mut self) -> &mut QuotingHot<O, T> {
        &mut self.hot
    }

    /// Where the bytes leave.
    pub fn out(&self) -> &O {
        &self.hot.sessions[0].out
    }

    /// The same to change.
    pub fn out_mut(&mut self) -> &mut O {
        &mut self.hot.sessions[0].out
    }

    /// The order entry session.
    pub fn fix(&self) -> &QuoteSession {
        &self.hot.sessions[0].fix
    }

    /// The same to change.
    pub fn fix_mut(&mut self) -> &mut QuoteSession {
        &mut self.hot.sessions[0].fix
    }

    /// Messages of quotes sent, and their bytes.
    #[inline]
    pub fn sent(&self) -> [u64; 2] {
        self.hot.sessions[0].gathered_in_all()
    }

    /// Orders of the eye sent.
    pub fn orders_sent(&self) -> u64 {
        self.hot.rule.conductor().counters().get(Counter::OrdersSent)
    }

    /// Who hears of trades.
    pub fn trades(&self) -> &T {
        &self.quoter().pricing().trades
    }

    /// The same to change.
    pub fn trades_mut(&mut self) -> &mut T {
        &mut self.hot.rule.conductor_mut().strategy_mut().pricing_mut().trades
    }

    /// Trades there was no room for; each pulls everything.
    pub fn trades_lost(&self) -> u64 {
        self.quoter().trades_lost()
    }

    /// Executions that were booked before, left out.
    pub fn repeated(&self) -> u64 {
        self.hot.sessions[0].once.repeated()
    }

    /// Answers about quotes that were compared with what we believe, and those that differed or did not come.
    pub fn reconciled(&self) -> [u64; 2] {
        let [compared, _] = self.hot.rule.conductor().reconciled_quotes();
        [compared, self.session.differences]
    }

    /// The control that has stopped quotes or eye last, while it has.
    pub fn stopped_by(&self) -> Option<RiskReject> {
        use tickwire_trading::strategy::NotSent;
        let stopped = self.hot.rule.conductor().risk().stopped();
        stopped.or(match self.quoter().last_stop() {
            Some(NotSent::Check(reason)) => Some(reason),
            _ => None,
        })
    }

    /// Everything counted by books, quoter, eye, session and checks.
    pub fn counters(&self) -> Counters {
        let mut all = self.hot.books[0].counters().clone();
        self.maker().count_into(&mut all);
        all.merge(self.fix().counters());
        let counted = self.hot.rule.conductor().counters();
        let reasons = RiskReject::ALL.into_iter().map(RiskReject::counter);
        for counter in reasons.chain([Counter::RiskRejects]) {
            all.add(counter, counted.get(counter));
        }
        all
    }
}

/// The quoter has limits of its own, and passes the controls: nothing else of the host's stops it.
fn no_limits_but_controls() -> RiskConfig {
    RiskConfig {
        max_open_orders: u32::MAX,
        max_position: u64::MAX,
        // A window without length has room for every message.
        max_orders_per_window: 1,
        window_ns: 0,
        accounts: Accounts {
            quotes: StrategyId::Quotes,
            orders: StrategyId::Eye,
        },
        ..RiskConfig::default()
    }
}
