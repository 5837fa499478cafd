//! What layouts of exchange protocols are made of: field types, table macros, readers, errors.
//!
//! ```
//! use tickwire_wire_core::layout::{Pod, U32, prefix};
//! let (n, rest) = prefix::<U32>(&[0, 0, 1, 0, 9]).unwrap();
//! assert_eq!((n.get(), n.as_bytes(), rest), (256, &[0, 0, 1, 0][..], &[9][..]));
//! ```
//!
//! A protocol is a module of tables ([`wire_struct!`], [`wire_enum!`]); [`layout`] has the field types and says how bytes are
//! read in place and written. The protocols themselves are in crates of their own, one for each family of venues, and
//! `tickwire-wire` has them all.
//!
//! **Invariant.** No state, no clock, no I/O, no allocation. Bytes of any content are either read or refused with
//! [`Malformed`]; nothing here panics on them. `unsafe` code is in `pod.rs` alone, with its proof.
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate alloc;

pub mod fix_text;
pub mod layout;
pub mod malformed;
pub mod nullable;
mod pod;

pub use malformed::Malformed;
