//! What layouts of exchange protocols are made of: field types, table macros, readers, errors.
//!
//! A protocol is a module of tables ([`wire_struct!`], [`wire_enum!`]); [`layout`] has the field types and
//! says how bytes are read in place and written. The protocols themselves are in crates of their own, one for
//! each family of venues, and `tickwire-wire` has them all.
//!
//! **Invariant.** No state, no clock, no I/O, no allocation. Bytes of any content are either read or refused
//! with [`Malformed`]; nothing here panics on them. `unsafe` code is in `pod.rs` and `vectors.rs` alone, with
//! its proofs.
#![doc = include_str!("../README.md")]
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate alloc;

pub mod fix_text;
pub mod layout;
pub mod length;
pub mod malformed;
pub mod nullable;
mod pod;
pub mod vectors;

pub use malformed::Malformed;
