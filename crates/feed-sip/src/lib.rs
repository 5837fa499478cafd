//! The US tapes' delivery: CQS and UQDF.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cqs;
mod sip;
mod uqdf;

pub use cqs::{Cqs, CqsChannel, CqsDecoder, CqsFeed, CqsSnapshot};
pub use sip::SipConfig;
pub use uqdf::{UqdfChannel, UqdfDecoder, UqdfFeed};

// What the modules here share with every venue.
use tickwire_feed_core::{
    Answers, ArbiterConfig, Channel, FeedHandler, Filter, Line, MissingRange, Offers, RecoveryLimits, Rule,
    Seen, SessionId, Start, SubscriptionsFull, Twin, decoder, framing, reorder,
};
