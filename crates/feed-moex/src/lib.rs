//! Moscow Exchange's delivery: ASTS over FAST, its snapshots and TCP replay.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod moex;

pub use moex::{
    Moex, MoexChannel, MoexChannelConfig, MoexConfig, MoexDecoder, MoexFeed, MoexReplay, MoexReplayConfig,
    MoexReplayState,
};

// What the modules here share with every venue.
use tickwire_feed_core::{
    ArbiterConfig, Channel, FeedHandler, Filter, Line, MissingRange, Offers, RecoveryLimits, Seen, SessionId,
    Start, Twin, decoder, framing, offer_id,
};
