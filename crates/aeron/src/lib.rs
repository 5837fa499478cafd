//! The shared memory of a feed handler on other hosts: `tickwire mirror`.
//!
//! ```text
//! host of the feed handler                                    every other host
//! region ─► Reader ─► Publisher ─► live, snapshot ─► Aeron ─► Mirror ─► region ─► Feed("…") in Rust, C, Python, views
//! ```
//! What programs read on the other hosts is the same shared memory, read by the same readers: books,
//! consolidated books, events, counters, latencies. [`Publisher`] and [`Mirror`] know no network: they make
//! frames and take them, and an [`Outlet`] of one's own carries them over anything that keeps their order.
//! With the feature `aeron` they go over Aeron (`links`), by multicast, by unicast, or to many by unicast
//! where there is no multicast (MDC).
//!
//! ```
//! use std::sync::atomic::AtomicU64;
//! use tickwire_aeron::{FeedHealth, Mirror, Offered, Outlet, Pace, Publisher, Stream, invitation};
//! use tickwire_market::{MarketEvent, Nanos, SeqNo};
//! use tickwire_shm::{Identity, Next, Record, Region, RegionConfig, RegionState};
//!
//! /// A network that loses nothing.
//! #[derive(Default)]
//! struct Wire(Vec<Vec<u8>>);
//! impl Outlet for Wire {
//!     fn offer(&mut self, _: Stream, frame: &[u8]) -> Offered {
//!         self.0.push(frame.to_vec());
//!         Offered::Taken
//!     }
//!     fn is_heard(&self, _: Stream) -> bool {
//!         true
//!     }
//! }
//! let memory = |config: &RegionConfig| -> Vec<AtomicU64> {
//!     let words = config.layout().expect("in range").words;
//!     (0..words).map(|_| AtomicU64::new(0)).collect()
//! };
//! let config = RegionConfig { rings: 1, ring_records: 64, ..RegionConfig::default() };
//! let identity = Identity { generation: Nanos(1), pid: 1 };
//! let here = memory(&config);
//! let region = Region::format(&here, &config, identity)?;
//! region.set_state(RegionState::Ready);
//! let mut publisher = Publisher::new(&region.reader(), 1, Pace::default());
//! let mut wire = Wire::default();
//! publisher.turn(&region.reader(), FeedHealth::Alive, 0, &mut wire);
//!
//! let invitation = wire.0.iter().find_map(|frame| invitation(frame, 0).ok()?).expect("the first turn has a beat");
//! let there = memory(&invitation.config);
//! let copy = Region::format(&there, &invitation.config, identity)?;
//! let mut mirror = Mirror::new(copy, &invitation, 0);
//! let mut ring = region.ring(0);
//! ring.event(0, &MarketEvent { seq: SeqNo(7), ..MarketEvent::default() });
//! for turn in 1..10 {
//!     publisher.turn(&region.reader(), FeedHealth::Alive, turn * 100_000_000, &mut wire);
//!     for frame in wire.0.drain(..) {
//!         mirror.frame(&frame, turn)?;
//!     }
//! }
//! assert!(mirror.is_ready());
//! let reader = copy.reader();
//! let mut cursor = reader.ring_from_oldest(0).expect("there is one");
//! let Next::Record(Record::Event(0, event)) = cursor.next(&reader) else { panic!("one was published") };
//! assert_eq!(event.seq, SeqNo(7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "aeron")]
#[macro_use]
extern crate tickwire_console;

mod args;
pub mod frame;
#[cfg(feature = "aeron")]
pub mod links;
mod mirror;
mod publish;
#[cfg(feature = "aeron")]
mod run;

pub use args::{MirrorCommand, PublishArgs, ReceiveArgs, run};
pub use frame::{FeedHealth, Stream};
pub use mirror::{Invitation, LOST_AFTER_NS, Mirror, Mirrored, Rejoin, SILENT_AFTER_NS, invitation};
pub use publish::{Offered, Outlet, Pace, Published, Publisher};
