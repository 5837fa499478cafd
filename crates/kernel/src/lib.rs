//! The programs that Tickwire gives to the kernel: an assembler for BPF at run time ([`asm`]), the filter
//! that drops market data nobody wants before it is copied ([`filter`]), how the maps between program and
//! process are laid out ([`layout`]), frames ([`frame`]), and an interpreter in which all of it is tested
//! without root ([`interp`]). For orders that leave before the kernel knows: TCP segments ([`segment`]) and
//! the guard that keeps early answers for it ([`guard`]). For orders that leave before the process knows:
//! [`trigger`].
//!
//! Offsets of fields come from `tickwire-wire`, where bytes are described once; [`filter`] says what is
//! dropped and why nothing is lost. Loading, maps and sockets are system calls and live elsewhere: what is
//! here makes instructions and reads bytes.
//!
//! ```
//! use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
//! let spec = FilterSpec {
//!     channels: vec![ChannelSpec {
//!         framing: Framing::Itch,
//!         groups: vec![
//!             Group::new([233, 54, 12, 111], 26477),
//!             Group::new([233, 86, 230, 111], 26477),
//!         ],
//!         set: 0,
//!     }],
//!     ..FilterSpec::default()
//! };
//! let program = spec.program()?;
//! assert!(program.instructions().len() < 400);
//! # Ok::<(), tickwire_kernel::filter::SpecError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod asm;
pub mod filter;
pub mod frame;
pub mod guard;
pub mod interp;
pub mod layout;
pub mod segment;
pub mod trigger;
mod walk;
