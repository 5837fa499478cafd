//! The US tapes' bytes, one module per protocol, one struct per message.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

pub mod cqs;
mod symbol;
pub mod uqdf;

pub use symbol::PaddedSymbol;
pub use tickwire_wire_core::{Malformed, layout};
use tickwire_wire_core::{wire_enum, wire_struct};
