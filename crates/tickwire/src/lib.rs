//! Tickwire: market data off the wire, books, a decision, an order back on the wire, and how fast that was.
//!
//! A trading rule of your own is a [`Strategy`](prelude::Strategy) and one line:
//! `tickwire::main::<MyStrategy>()`.
//!
//! ```no_run
//! use serde::Deserialize;
//! use std::process::ExitCode;
//! use tickwire::prelude::*;
//!
//! #[derive(Deserialize)]
//! struct Taker {
//!     symbol: String,
//!     lot: u32,
//! }
//!
//! impl Strategy for Taker {
//!     fn subscriptions(&self) -> Vec<Subscription> {
//!         vec![Subscription::symbol(&self.symbol)]
//!     }
//!
//!     fn on_book(&mut self, ctx: &mut Context<'_>, change: &BookChange) {
//!         if let Some(offer) = change.new_best_price(Side::Ask) {
//!             let _ = ctx.buy_now(change.instrument, self.lot, offer);
//!         }
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     tickwire::main::<Taker>()
//! }
//! ```
//! `docs/write-a-strategy.md` goes from nothing to a backtest.
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod config;
pub mod demo;
pub mod hosted;
mod identity;
pub mod jobs;
mod report;
pub mod sides;
pub mod strategy;

pub use strategy::main;

/// What a strategy is written with.
pub mod prelude {
    pub use tickwire_book::super_books::{SuperFlags, SuperLevel};
    pub use tickwire_book::{SuperId, SuperRef};
    pub use tickwire_market::{
        BookState, BookUpdate, ClientOrderId, Instrument, InstrumentId, Level, MarketEvent, Nanos, Price,
        Qty, Side, Symbol, TimeInForce, TradingStatus, Volume,
    };
    pub use tickwire_trading::strategy::{
        ArmEnd, ArmRefusal, ArmedEvent, Awaited, AwaitedEvent, BookChange, Context, Either, NotSent,
        OrderEvent, Strategy, Subscription, SuperChange, Ticket, TimerId, Trade,
    };
    pub use tickwire_trading::{Order, OrderState, Position, ReportKind, RiskReject};
}

#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;
