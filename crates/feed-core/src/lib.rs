//! Feed handling that every venue shares: from datagrams of two lines to one ordered stream of
//! [`tickwire_market::MarketEvent`]s.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arbiter;
mod channel;
mod claim;
mod content_hash;
mod contents;
pub mod decoder;
mod filter;
pub mod fixed_map;
pub mod framing;
mod handler;
pub mod join_round;
pub mod joins;
mod line;
mod missing;
mod noted;
mod pattern;
pub mod recovery;
pub mod reorder;
mod stream;
pub mod subscriptions;
mod symbology;
mod twin;

pub use arbiter::{Arbiter, ArbiterConfig, FeedState, MissingRange, Released, Situation, Start, Verdict};
pub use channel::Channel;
pub use decoder::{Context, Decoder, Early, Prefiltered, StreamEvent};
pub use filter::Filter;
pub use framing::{Content, Frame, Framing, Restart};
pub use handler::FeedHandler;
pub use join_round::{HeldMessage, JoinRound};
pub use joins::JoinTally;
pub use line::{Line, SessionId};
pub use noted::NotedOrders;
pub use pattern::{BadPattern, Pattern};
pub use recovery::{Answers, DayUse, RecoveryLimits, SnapshotGate};
pub use stream::{STREAM_CHUNK_MAX, SnapshotState, SoupFailure};
pub use subscriptions::{Rule, Seen, Subscriptions, SubscriptionsFull};
pub use symbology::consolidated;
pub use twin::{Offers, Twin, offer_id};
