//! What a venue's protocol is made of, and how it is configured.
//!
//! - [`channels`]: the `[[feed]]` part of a configuration file: venue, protocol, addresses channel by
//!   channel, recovery limits.
//! - [`protocol`]: the protocols by name; reading any packet of one message by message, and recognising which
//!   one it is.
//! - [`wiring`]: the receiving side of a channel from its configuration, statically typed
//!   ([`wiring::WithChannel`]).
//! - [`ports`]: the addresses of a channel; [`receiver`]: sizes and patience; [`wait`]: spinning or sleeping.
//! - [`order_entry`]: sessions and users of order entry; [`values`] and [`texts`]: values that are checked
//!   while they are read.
//!
//! ```
//! use tickwire_venues::channels::FeedFile;
//!
//! let file = FeedFile::parse(
//!     r#"
//!     [[feed]]
//!     venue = "nasdaq"
//!     [[feed.channel]]
//!     name = "1"
//!     live = { a = "239.192.1.1:30001", b = "239.192.2.1:30001" }
//!     "#,
//! )
//! .expect("a feed");
//! assert_eq!(file.feeds[0].name(), "nasdaq");
//! ```
#![forbid(unsafe_code)]

pub mod channels;
pub mod json;
pub mod order_entry;
pub mod ports;
pub mod protocol;
pub mod receiver;
pub mod texts;
pub mod values;
pub mod wait;
pub mod wiring;
