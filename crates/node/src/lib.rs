//! How a trading thread runs: run to completion, from the packet to the order.
//!
//! - [`host`]: the loop around it, of trader, strategies and quoter: sockets, timers, order links.
//!   [`session`]: what a venue's session says, and how one that was lost is taken up again.
//! - [`trader`]: what a trader does beside: what happens when data is silent, a control stops it, or the
//!   operator.
//! - [`hot`]: one packet to an order, as calls in order. [`live`]: the strategies in the middle of it, the
//!   built-in rule as anybody's.
//! - [`answers`]: what a venue says of orders and quotes, to the strategies whose they are.
//! - [`link`]: the connection to the venue, lost and made again, for trader, strategies and quoter.
//! - [`controls`]: limits, kill file, clock accuracy, and the beat that [`watchdog`] reads from another
//!   process.
//! - [`record`]: what was traded, kept beyond the process in the [`fills`] of each session.
//! - [`settings`]: the configuration.
//!
//! ```
//! use tickwire_book::{Books, BooksConfig};
//! use tickwire_market::{
//!     BookState, EventFlags, EventKind, EventSink, InstrumentId, MarketEvent, OrderId, Price, Side, Symbol, Volume,
//! };
//! use tickwire_node::memory::strategy_path;
//! use tickwire_runtime::clock::Clock;
//! use tickwire_trading::strategy::{BookChange, Context, Strategy, Subscription};
//!
//! /// Buys 100 at every new best offer.
//! struct Taker(Symbol);
//!
//! impl Strategy for Taker {
//!     fn subscriptions(&self) -> Vec<Subscription> {
//!         vec![Subscription::Symbol(self.0)]
//!     }
//!
//!     fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
//!         if let Some(offer) = change.new_best_price(Side::Ask) {
//!             let _ = ctx.buy_now(change.instrument, 100, offer);
//!         }
//!     }
//! }
//!
//! let symbol = Symbol::new(b"AAPL").expect("a symbol");
//! let books = Books::new(BooksConfig {
//!     instruments: 2,
//!     orders: 64,
//!     levels: 64,
//!     initial: BookState::Live,
//!     ..BooksConfig::default()
//! });
//! // The trader's hot path with memory in the place of its sockets: a session that is logged on, instrument 1 is `symbol`.
//! let mut hot = strategy_path::<_, true>(Taker(symbol), books, symbol, Clock::calibrate())?;
//! // The order is sent at the second offer: before, there is no price that its own could be compared with.
//! for (id, side, price) in [(1, Side::Bid, 1_872_400), (2, Side::Ask, 1_872_600), (3, Side::Ask, 1_872_500)] {
//!     hot.on_event(&MarketEvent {
//!         kind: EventKind::Add,
//!         instrument: InstrumentId(1),
//!         order_id: OrderId(id),
//!         side,
//!         price: Price::from_4dp(price),
//!         qty: Volume(300),
//!         flags: EventFlags::LAST,
//!         ..MarketEvent::default()
//!     });
//! }
//! assert_eq!(hot.sessions[0].out.orders, 1, "a NewOrderSingle left");
//! # Ok::<(), tickwire_console::failure::Failure>(())
//! ```
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

/// Tests count what they allocate.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

pub mod answers;
pub mod controls;
pub mod departures;
pub mod entry_store;
pub mod fills;
mod gather;
pub mod host;
pub mod hot;
pub mod link;
pub mod live;
pub mod memory;
pub mod panics;
pub mod record;
pub mod session;
pub mod settings;
pub mod silence;
pub mod trader;
pub mod voice;
pub mod watchdog;
