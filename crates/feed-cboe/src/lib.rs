//! Cboe's delivery: PITCH, gap requests, Spin.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod pitch;
mod pitch_channel;

pub use pitch::{GapEvent, GapProxy, PitchConfig, PitchDecoder, PitchFeed, PitchLogin, PitchUnit, Spin};
pub use pitch_channel::{PitchChannel, PitchChannelConfig};

// What the modules here share with every venue.
use tickwire_feed_core::{
    ArbiterConfig, Channel, FeedHandler, Filter, Line, MissingRange, NotedOrders, Offers, RecoveryLimits,
    STREAM_CHUNK_MAX, SessionId, SnapshotState, SoupFailure, Start, Twin, decoder, fixed_map, framing,
    offer_id,
};
