//! Moscow Exchange's bytes, one module per protocol, one struct per message.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod fast;
pub mod moex;

pub use tickwire_wire_core::{Malformed, layout};
