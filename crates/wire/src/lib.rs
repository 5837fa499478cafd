//! Layouts, decoders and encoders of exchange protocols: one module per protocol, one struct per message.
//!
//! A message is read in place ([`layout::prefix`] behind each protocol's `parse`) and written by filling its struct
//! (`Struct::BLANK`, then `as_bytes()` of [`zerocopy::IntoBytes`]). Each protocol's page under `docs/protocols` lists its
//! messages and where we knowingly differ from the specification.
//!
//! **Invariant.** No state, no clock, no I/O, no allocation, no `unsafe`. Bytes of any content are either read or refused
//! with [`Malformed`]; nothing here panics on them. The one exception is FAST, whose messages refer to the ones before and
//! whose layouts come from files: [`fast`] keeps dictionaries and allocates, both only in what its `new` and `parse` make.
//! [`ilink3::MassQuoteTemplate`] keeps prepared bytes, made by its `new`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cqs;
pub mod dbn;
pub mod fast;
mod fix_text;
pub mod ilink3;
pub mod itch50;
pub mod layout;
mod malformed;
pub mod mdp3;
pub mod moex;
pub mod moldudp64;
pub mod openbook;
pub mod ouch50;
pub mod pitch;
pub mod sbe;
pub mod soupbintcp;
pub mod uqdf;
pub mod xdp;

pub use malformed::Malformed;
/// The crate whose traits the layouts implement: bring `IntoBytes` into scope to encode.
pub use zerocopy;
