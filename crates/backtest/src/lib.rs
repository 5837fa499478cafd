//! A strategy on recorded market data, in virtual time.
//!
//! ```text
//!  recording ─► venue's book ─► Conductor (strategy, checks) ─► request ─ entry latency ─► SimVenue ─┐
//!                   │                    ▲                                                          │
//!                   └── own orders are markers in its queues ◄──────────────────────────────────────┤
//!                                        └──────────── report ◄─ response latency ◄─────────────────┘
//! ```
//! A [`Backtest`] is given events in the order of the recording's time; what the strategy sends is held back for the entry latency, matched against the
//! book as it is then by a [`FillModel`], and reported back after the response latency. There is one book, the recorded one: an order of ours
//! stands in it as a marker, whose place in the queue is known exactly where the feed says every order, and is estimated where it says levels.
//! Nothing is random but what a seed says: a run is a function of its inputs, and [`Backtest::hash`] is the same each time.
//!
//! What a backtest cannot know is counted as a [`Doubts`], not hidden.
#![forbid(unsafe_code)]

mod backtest;
mod latency;
mod result;
#[cfg(test)]
mod tests;
mod venue;

pub use backtest::{Backtest, BacktestConfig};
pub use latency::{Latency, LatencyConfig};
pub use result::{Doubts, Fees, Fill, HORIZONS, InstrumentResult, Summary};
pub use venue::FillModel;
