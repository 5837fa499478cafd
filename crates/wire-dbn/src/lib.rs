//! Databento's bytes, one module per protocol, one struct per message.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate alloc;

pub mod dbn;

use tickwire_wire_core::wire_struct;
pub use tickwire_wire_core::{Malformed, layout};
