//! Nasdaq's delivery: ITCH 5.0 over MoldUDP64, snapshots by GLIMPSE, SoupBinTCP and OUCH clients.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod itch;
mod itch_channel;
mod mold;
mod ouch;
mod snapshot;
mod soup;

pub use itch::{ItchConfig, ItchDecoder, ItchFeed};
pub use itch_channel::ItchChannel;
pub use mold::MoldUdp64;
pub use ouch::{OuchClient, OuchConfig, OuchEvent};
pub use snapshot::Glimpse;
pub use soup::{SoupClient, SoupConfig, SoupEvent};

// What the modules here share with every venue.
use tickwire_feed_core::{
    Channel, Content, FeedHandler, Filter, Frame, Framing, Line, MissingRange, Offers, STREAM_CHUNK_MAX,
    Seen, SessionId, SnapshotState, SoupFailure, Twin, decoder, framing, offer_id,
};
