//! Archives of events: what a recording tells, decoded once, in a file that is read many times.
//!
//! ```text
//! channel ─► events ─► [`ArchiveWriter`] ─► FILE ─► [`Archive`] ─► packets ─► [`ArchiveChannel`] ─► events
//! ```
//! Both lines are arbitrated, gaps recovered as far as the recording lets them be, messages decoded; an event
//! has some 16 bytes. Blocks have checksums and can be read alone; the index has their times and instruments.
//! A channel of an archive is a [`tickwire_feed_core::Channel`], so that whatever is written for venues'
//! channels reads archives.
//!
//! ```
//! use tickwire_archive::{Archive, ArchiveChannel, ArchiveWriter, ChannelFacts, packets};
//! use tickwire_book::Depth;
//! use tickwire_feed_core::{Channel, FeedState};
//! use tickwire_market::{Counters, EventSink, MarketEvent, Nanos, Price, SeqNo, Venue};
//!
//! let path = std::env::temp_dir().join(format!("tickwire-archive-{}", std::process::id()));
//! let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
//! let mut writer = ArchiveWriter::new(file)?;
//! let channel = writer.add_channel(Venue::Nasdaq);
//! let event = MarketEvent { price: Price::from_raw(585_330_000_000), ..MarketEvent::default() };
//! writer.packet(channel, Nanos(1_000), &[event])?;
//! writer.end_channel(channel, ChannelFacts {
//!     name: "nasdaq".into(),
//!     venue: Venue::Nasdaq,
//!     protocol: "itch50".into(),
//!     depth: Depth::Aggregated,
//!     room: [16, 16, 16],
//!     state: FeedState::Live,
//!     next: SeqNo(1),
//!     counters: Counters::default(),
//!     instruments: Vec::new(),
//! });
//! let (_, file) = writer.finish()?;
//!
//! #[derive(Default)]
//! struct Events(Vec<MarketEvent>);
//! impl EventSink for Events {
//!     fn on_event(&mut self, event: &MarketEvent) {
//!         self.0.push(*event);
//!     }
//! }
//! let archive = Archive::open(file)?;
//! let mut channel = ArchiveChannel::new(archive.channels()[0].clone(), None);
//! let (mut buffer, mut events) = (Vec::new(), Events::default());
//! for packet in packets(archive.block(0, &mut buffer)?, 1) {
//!     channel.on_message(packet.now, packet.bytes, &mut events);
//! }
//! assert_eq!(events.0, [event]);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod channel;
mod codec;
mod file;

pub use channel::ArchiveChannel;
#[doc(hidden)]
pub use file::is_index;
pub use file::{
    Archive, ArchiveError, ArchiveWriter, BlockFacts, ChannelFacts, Cursor, Known, MAGIC, Packet, Packets,
    VERSION, packets,
};
