//! CME's delivery: MDP 3.0, its loops and TCP replay.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod mdp3;

pub use mdp3::{
    LoopState, Mdp3, Mdp3Channel, Mdp3Config, Mdp3Decoder, Mdp3Depth, Mdp3Feed, Mdp3Kind, Mdp3Recovery,
    Mdp3Replay, Mdp3Terms, ReplayConfig, ReplayState,
};

// What the modules here share with every venue.
use tickwire_feed_core::{
    ArbiterConfig, Channel, FeedHandler, Filter, Line, MissingRange, Offers, RecoveryLimits, Rule, Seen,
    SessionId, Start, SubscriptionsFull, Twin, decoder, fixed_map, framing, offer_id,
};
