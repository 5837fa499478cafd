//! The loop of a thread that receives channels: both lines, recovery groups, request servers and recovery
//! connections of each, of any protocols, into one [`receiver::Consumer`].
//!
//! ```
//! use tickwire_market::{EventSink, MarketEvent, Nanos};
//! use tickwire_receive::receiver::{Consumer, Receiver, Taken};
//! use tickwire_runtime::clock::Clock;
//! use tickwire_runtime::stamp::RxStamp;
//! use tickwire_runtime::udp::MulticastSender;
//! use tickwire_runtime::wait::WaitStrategy;
//! use tickwire_venues::channels::FeedFile;
//! use tickwire_venues::receiver::ReceiverSection;
//!
//! /// Counts packets.
//! struct Packets {
//!     clock: Clock,
//!     count: u64,
//! }
//!
//! impl EventSink for Packets {
//!     fn on_event(&mut self, _: &MarketEvent) {}
//! }
//!
//! impl Consumer for Packets {
//!     type Successor = Packets;
//!
//!     fn now(&self) -> Nanos {
//!         self.clock.now()
//!     }
//!
//!     fn turn_to(&mut self, _source: usize) {}
//!
//!     fn begins(&mut self, stamp: &RxStamp) -> Nanos {
//!         self.count += 1;
//!         self.clock.nanos_at(stamp.tsc)
//!     }
//! }
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
//! let mut packets = Packets {
//!     clock: Clock::calibrate(),
//!     count: 0,
//! };
//! let mut receiver = Receiver::open(&file.feeds, &ReceiverSection::default(), WaitStrategy::Poll)?;
//!
//! // A publisher on the same machine: multicast is on loopback unless the feed names another interface.
//! let interface = file.feeds[0].interface.find()?;
//! let line_b = MulticastSender::open("239.192.77.2:27702".parse()?, &interface, 1)?;
//! line_b.send(b"a packet")?;
//!
//! while receiver.receive(&mut packets) == Taken::Nothing {
//!     receiver.wait(packets.now(), None);
//! }
//! assert_eq!(packets.count, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Live lines come by sockets or, with `backend = "xdp"` or `"auto"`, by AF_XDP from the hook of the network
//! driver ([`hook`]); the consumer sees no difference.
//!
//! It is the only receive loop there is: nobody else has a line's sockets, which `cargo xtask tidy` checks.
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod filtering;
pub mod hook;
mod intake;
pub mod receiver;

pub use intake::SocketOptions;
