//! What an options desk edits and reads.
//!
//! - [`vol`]: `tickwire vol`: files of volatilities, edits that are checked for arbitrage, undone, logged.
//! - [`risk`]: `tickwire risk`: positions, Greeks, P&L explained, scenarios, mark-outs, as tables, CSV and a page.
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod risk;
pub mod vol;
