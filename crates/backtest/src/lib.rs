//! A strategy on recorded market data, in virtual time.
//!
//! ```text
//!  recording ─► venue's book ─► Conductor (strategy, checks) ─► request ─ entry latency ─► SimVenue ─┐
//!                   │                    ▲                                                          │
//!                   └── own orders are markers in its queues ◄──────────────────────────────────────┤
//!                                        └──────────── report ◄─ response latency ◄─────────────────┘
//! ```
//! There are two clocks: that of the venue, which the recording's times are of, and that of the strategy,
//! which hears of an event after the feed's latency. With none they are one.
//!
//! A [`Backtest`] is given events in the order of the recording's time; what the strategy sends is held back
//! for the entry latency, matched against the book as it is then by a [`FillModel`], and reported back after
//! the response latency. There is one book, the recorded one: an order of ours stands in it as a marker,
//! whose place in the queue is known exactly where the feed says every order, and is estimated where it says
//! levels. Nothing is random but what a seed says: a run is a function of its inputs, and [`Backtest::hash`]
//! is the same each time.
//!
//! What a backtest cannot know is counted as a [`Doubts`], not hidden.
//!
//! ```
//! use tickwire_backtest::{Backtest, BacktestConfig, FillModel};
//! use tickwire_book::{Books, BooksConfig, Depth};
//! use tickwire_market::{
//!     BookState, EventKind, Instrument, InstrumentId, MarketEvent, Nanos, OrderId, Price, Side, Symbol, Volume,
//! };
//! use tickwire_trading::RiskConfig;
//! use tickwire_trading::strategy::{BookChange, ConductorConfig, Context, Strategy, Subscription};
//!
//! /// Buys 10 at every new best offer.
//! struct Taker;
//!
//! impl Strategy for Taker {
//!     fn subscriptions(&self) -> Vec<Subscription> {
//!         vec![Subscription::symbol("AAPL")]
//!     }
//!
//!     fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
//!         if let Some(offer) = change.new_best_price(Side::Ask) {
//!             let _ = ctx.buy_now(change.instrument, 10, offer);
//!         }
//!     }
//! }
//!
//! let books = Books::new(BooksConfig {
//!     depth: Depth::ByOrder,
//!     instruments: 2,
//!     orders: 64,
//!     levels: 64,
//!     initial: BookState::Live,
//!     ..BooksConfig::default()
//! });
//! let config = BacktestConfig {
//!     fill: FillModel::Queue,
//!     conductor: ConductorConfig {
//!         instrument_bits: 1,
//!         max_orders: 64,
//!         risk: RiskConfig { price_band_bp: 10_000, ..RiskConfig::default() },
//!         ..ConductorConfig::default()
//!     },
//!     ..BacktestConfig::default()
//! };
//! let mut test = Backtest::new(Taker, vec![books], config);
//! let aapl = Instrument {
//!     id: InstrumentId(1),
//!     symbol: Symbol::new(b"AAPL").expect("a symbol"),
//!     ..Instrument::default()
//! };
//! test.define(0, &aapl, None);
//! // The first order is sent at 188: before, there is no price that its own could be compared with.
//! for (n, side, dollars) in [(1, Side::Bid, 187), (2, Side::Ask, 189), (3, Side::Ask, 188), (4, Side::Bid, 186)] {
//!     test.on_event(0, &MarketEvent {
//!         kind: EventKind::Add,
//!         instrument: aapl.id,
//!         recv_ts: Nanos(n * Nanos::SECOND),
//!         order_id: OrderId(n),
//!         side,
//!         price: Price::from_4dp(dollars * 10_000),
//!         qty: Volume(100),
//!         ..MarketEvent::default()
//!     });
//! }
//! test.finish();
//! assert_eq!(test.fills().len(), 1);
//! assert_eq!(test.fills()[0].price, Price::from_4dp(1_880_000));
//! ```
#![forbid(unsafe_code)]

mod backtest;
mod ghost;
mod ids;
mod latency;
pub mod naive;
mod orders;
mod result;
#[cfg(test)]
mod tests;
mod venue;
mod world;

pub use backtest::{Backtest, BacktestConfig, Entrant};
pub use ghost::{Difference, GhostConfig, GhostResult, Ghosts, Nobody, Why};
pub use latency::{Latency, LatencyConfig, TimedLatency};
pub use orders::KeptOrder;
pub use result::{Doubts, Fees, Fill, HORIZONS, InstrumentResult, StrategyResult, Summary};
pub use venue::FillModel;
