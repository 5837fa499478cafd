//! Recordings through the channels and books of every feed.
//!
//! - [`replay`]: `tickwire replay`: captures, raw ITCH files, DBN and LOBSTER, with a configuration or without one.
//! - [`played`]: one recorded channel with its books behind one call per packet ([`played::Play`]), for whoever reads recordings:
//!   a backtest, an export.
//! - [`tape`]: recordings at their own speed, a multiple of it, or as fast as they can be read.
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod played;
pub mod replay;
pub mod tape;
