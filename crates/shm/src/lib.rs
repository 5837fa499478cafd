//! Books, events and statistics in memory that other programs read: one writer, any number of readers that
//! can neither block nor disturb it.
//!
//! ```text
//! feed thread ─► SourceWriter    state, counters, kinds, latencies ─► sources, histograms ─►┐
//!             ─► BookWriter      one slot a book, seqlocked        ─► books              ─►│ Reader, in any
//!             ─► SuperWriter     one slot a symbol, seqlocked      ─► supers             ─►│ process, from a
//!             ─► RingWriter      events and updates, broadcast     ─► rings              ─►┘ read-only mapping
//! ```
//!
//! The region is 64-bit words and nothing else: no struct is laid over memory. [`layout`] says where every
//! field is, in one table that the code and the C header are both made from. All algorithms work on a slice
//! of [`Word`]s: atomics in a mapping, or those of a model checker. Files, mappings and whether the writer is
//! alive belong to `tickwire-runtime`.
//!
//! **Invariant.** A reader only loads. A writer never waits for a reader, nor for another writer. What a
//! reader returns was whole at one moment, or it says [`Busy`].
//!
//! ```
//! use std::sync::atomic::AtomicU64;
//! use tickwire_market::{MarketEvent, Nanos, SeqNo};
//! use tickwire_shm::{Identity, Next, Reader, Region, RegionConfig, RegionState};
//!
//! let config = RegionConfig { rings: 1, ..RegionConfig::default() };
//! // Atomics in a mapping of a file in a real program: `tickwire_runtime::shared`.
//! let words: Vec<AtomicU64> = (0..config.layout()?.words).map(|_| AtomicU64::new(0)).collect();
//! let identity = Identity { generation: Nanos(1), pid: std::process::id() };
//! let region = Region::format(&words, &config, identity)?;
//! let mut ring = region.ring(0);
//! region.set_state(RegionState::Ready);
//!
//! let reader = Reader::attach(&words)?;
//! let mut cursor = reader.ring(0).expect("there is one");
//! ring.event(0, &MarketEvent { seq: SeqNo(7), ..MarketEvent::default() });
//! let Next::Record(record) = cursor.next(&reader) else { panic!("one was written") };
//! println!("{record:?}");
//! assert!(matches!(cursor.next(&reader), Next::Empty));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod book;
mod histogram;
pub mod layout;
mod mirror;
mod reader;
mod region;
mod ring;
mod seqlock;
mod source;
mod super_book;
mod word;

pub use book::{Auction, BookCopy, BookEdit, BookIdentity, BookSlot, BookWriter, LastTrade};
pub use histogram::{Histogram, HistogramWriter, bounds_of, bucket_of};
pub use layout::{Layout, LayoutError, RegionConfig};
pub use mirror::{MirrorWriter, NextWords, RecordWords, RingMirror, Section};
pub use reader::{AttachError, Reader};
pub use region::{Full, Identity, Region, RegionState};
pub use ring::{Next, Record, RingCursor, RingWriter};
pub use seqlock::Busy;
pub use source::{Kind, OtherCounters, Source, SourceIdentity, SourceState, SourceWriter, Totals};
pub use super_book::{
    Difference, Ladder, National, Share, SuperCopy, SuperEdit, SuperSlot, SuperWriter, Touch,
};
pub use word::{ReadWord, Word, WriteWord};
