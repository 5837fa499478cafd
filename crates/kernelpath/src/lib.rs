//! Market data from the hook of the network driver: a filter of `tickwire-kernel` loaded and attached, AF_XDP
//! sockets of `tickwire-runtime` behind it, group memberships kept, and every delivered datagram with what
//! the filter says about it.
//!
//! The way out of orders is [`delegate`]: segments that leave before the kernel knows of them, and one that
//! the program sends by itself ([`Trigger`]).
//!
//! [`LoadedFilter`] is the program with its maps: what is wanted, arming, counters. [`KernelReceiver`] is the
//! whole way in: it joins the groups, attaches, and gives one [`Delivery`] after the other, in the order in
//! which the program made them.
//!
//! ```no_run
//! use tickwire_kernel::filter::{ChannelSpec, FilterSpec, Framing, Group};
//! use tickwire_kernelpath::{KernelReceiver, ReceiverConfig};
//! use tickwire_runtime::interface::Interface;
//! let spec = FilterSpec {
//!     channels: vec![ChannelSpec {
//!         framing: Framing::Itch,
//!         groups: vec![Group::new([233, 54, 12, 111], 26477)],
//!         set: 0,
//!     }],
//!     ..FilterSpec::default()
//! };
//! let mut receiver = KernelReceiver::open(spec, &Interface::find("eth0")?, &ReceiverConfig::default())?;
//! println!("{}", receiver.in_use());
//! // Everything is delivered until the channel is armed: the session, and the next message's number.
//! receiver.filter_mut().want(0, 17, true);
//! receiver.filter_mut().arm_itch(0, *b"S000000001", 1);
//! while let Some(delivery) = receiver.recv() {
//!     // Before the datagram goes to its channel: what was seen and not wanted is no gap.
//!     let _ = (delivery.seen_up_to, delivery.payload);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod card;
pub mod delegate;
mod loaded;
mod progress;
mod receiver;
mod trigger;

/// What a pre-armed order can wait for.
pub mod condition {
    pub use tickwire_kernel::trigger::{Condition, ConditionError, Field, Message, itch, nyse};
}

pub use card::Card;
pub use loaded::{FilterError, LoadedFilter, OrdersFull};
pub use receiver::{Delivery, KernelReceiver, ReceiverConfig, ReceiverError};
pub use trigger::{KillSwitch, NotArmed, Shooting, Trigger, Waits};
