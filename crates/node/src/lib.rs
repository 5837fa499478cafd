//! How a trading thread runs: run to completion, from the packet to the order.
//!
//! - [`trader`]: the loop around it: sockets, timers, the order entry session, what happens when data is silent or the session is lost.
//! - [`hot`]: one packet to an order, as calls in order. [`live`]: the same with a strategy of one's own.
//! - [`link`]: the connection to the venue, lost and made again, for trader, strategies and quoter.
//! - [`controls`]: limits, kill file, clock accuracy, and the beat that [`watchdog`] reads from another process.
//! - [`settings`]: the configuration.
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

/// Tests count what they allocate.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

pub mod controls;
pub mod hot;
pub mod link;
pub mod live;
pub mod memory;
pub mod settings;
pub mod silence;
pub mod trader;
pub mod watchdog;
