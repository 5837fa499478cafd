//! The simulated exchange as a process.
//!
//! [`settings::MarketConfig`] says what it is; [`venue::run`] publishes every feed by multicast, answers
//! retransmission requests, serves snapshots and takes orders by FIX and OUCH; [`journal`] is what came in,
//! on disk, and brings it back after `kill -9`; [`operator`] is how somebody halts, breaks and loses things;
//! [`recording`] writes what a session sends as a capture, in virtual time.
//!
//! ```
//! use tickwire_simulator::settings::MarketConfig;
//! use tickwire_simulator::venue::{VIRTUAL_START, market_of};
//!
//! let config = MarketConfig::parse("[exchange]\nsymbols = 4\nrate = 1000\nduration_s = 1.0\n").expect("a market");
//! let (mut market, _) = market_of(&config, None).expect("a market");
//! market.open(VIRTUAL_START);
//! assert_eq!(market.exchange(0).listings().len(), 4);
//! ```
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod channel_sockets;
pub mod entry;
pub mod history;
pub mod journal;
pub mod operator;
pub mod recording;
pub mod session;
pub mod settings;
pub mod snapshot;
pub mod strangers;
pub mod venue;
pub mod wiring;
