//! The sockets of received channels: [`intake::Intake`] joins both lines, hears recovery groups, asks request servers and keeps recovery
//! connections. It knows addresses, not protocols.
//!
//! ```
//! use tickwire_receive::intake::Intake;
//! use tickwire_runtime::udp::MulticastSender;
//! use tickwire_runtime::wait::{WaitStrategy, Waiter};
//! use tickwire_venues::channels::FeedFile;
//!
//! let file = FeedFile::parse(
//!     r#"
//!     [[feed]]
//!     venue = "nasdaq"
//!     [[feed.channel]]
//!     name = "1"
//!     live = { a = "239.192.77.1:27701", b = "239.192.77.2:27702" }
//!     "#,
//! )?;
//! let feed = &file.feeds[0];
//! let mut waiter = Waiter::new(WaitStrategy::Poll);
//! let mut intake = Intake::join(&feed.channels[0].ports(&feed.interface), 1 << 20, &mut waiter)?;
//!
//! // A publisher on the same machine: multicast is on loopback unless the feed names another interface.
//! let line_b = MulticastSender::open("239.192.77.2:27702".parse()?, &feed.interface.find()?, 1)?;
//! line_b.send(b"a packet")?;
//!
//! let mut buffer = [0; 2048];
//! let datagram = loop {
//!     if let Some(datagram) = intake.receive(1, &mut buffer) {
//!         break datagram.bytes.to_vec();
//!     }
//!     waiter.wait(1_000_000);
//! };
//! assert_eq!(datagram, b"a packet");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`receiver::Receiver`] is a thread's channels, of any protocols, with their sockets, and the loop around them into one [`receiver::Consumer`].
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod intake;
pub mod receiver;
