//! Layouts, decoders and encoders of exchange protocols: one module per protocol, one struct per message.
//! Each family of venues is a crate of its own, so that whoever reads one protocol need not build the others;
//! this crate has them all.
//!
//! | crate | protocols |
//! |---|---|
//! | `tickwire-wire-core` | [`layout`], [`Malformed`], [`wire_struct!`], [`wire_enum!`] |
//! | `tickwire-wire-nasdaq` | [`itch50`], [`moldudp64`], [`soupbintcp`], [`ouch50`] |
//! | `tickwire-wire-cboe` | [`pitch`] |
//! | `tickwire-wire-nyse` | [`xdp`], [`openbook`] |
//! | `tickwire-wire-sip` | [`cqs`], [`uqdf`] |
//! | `tickwire-wire-cme` | [`sbe`], [`mdp3`], [`ilink3`] |
//! | `tickwire-wire-moex` | [`fast`], [`moex`] |
//! | `tickwire-wire-dbn` | [`dbn`] |
//!
//! A message is read in place ([`layout::prefix`] behind each protocol's `parse`) and written by filling its
//! struct (`Struct::BLANK`, then `as_bytes()` of [`layout::Pod`]). Each protocol's page under
//! `docs/protocols` lists its messages and where we knowingly differ from the specification.
//!
//! ```
//! use tickwire_wire::{itch50, layout::Pod, pitch};
//! let delete = itch50::OrderDelete { order_ref: 70_000.into(), ..itch50::OrderDelete::at(7, 34_200_000_000_000) };
//! assert_eq!(itch50::parse(delete.as_bytes()).unwrap().name(), "OrderDelete");
//! assert!(pitch::parse(delete.as_bytes()).is_err(), "another venue's bytes");
//! ```
//!
//! **Invariant.** No state, no clock, no I/O, no allocation; `unsafe` code in one file of
//! `tickwire-wire-core` only. Bytes of any content are either read or refused with [`Malformed`]; nothing
//! here panics on them. The one exception is FAST, whose messages refer to the ones before and whose layouts
//! come from files: [`fast`] keeps dictionaries and allocates, both only in what its `new` and `parse` make.
//! [`ilink3::MassQuoteTemplate`] keeps prepared bytes, made by its `new`.
#![no_std]
#![forbid(unsafe_code)]

#[doc(inline)]
pub use tickwire_wire_cboe::pitch;
#[doc(inline)]
pub use tickwire_wire_cme::{ilink3, mdp3, sbe};
#[doc(inline)]
pub use tickwire_wire_core::{Malformed, layout, wire_enum, wire_layout, wire_struct};
#[doc(inline)]
pub use tickwire_wire_dbn::dbn;
#[doc(inline)]
pub use tickwire_wire_moex::{fast, moex};
#[doc(inline)]
pub use tickwire_wire_nasdaq::{itch50, moldudp64, ouch50, soupbintcp};
#[doc(inline)]
pub use tickwire_wire_nyse::{openbook, xdp};
#[doc(inline)]
pub use tickwire_wire_sip::{PaddedSymbol, cqs, uqdf};

/// The name under which programs written before know [`layout::Pod`].
#[doc(hidden)]
pub mod zerocopy {
    pub use crate::layout::Pod as IntoBytes;
}
