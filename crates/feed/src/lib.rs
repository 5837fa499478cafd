//! Feed handling: from datagrams of two lines to one ordered stream of [`tickwire_market::MarketEvent`]s.
//! Each family of venues is a crate of its own, so that whoever receives one need not build the others; this
//! crate has them all.
//!
//! | crate | |
//! |---|---|
//! | `tickwire-feed-core` | [`FeedHandler`], [`Arbiter`], [`Channel`], [`Decoder`], [`Framing`], recovery, subscriptions |
//! | `tickwire-feed-nasdaq` | [`ItchChannel`], [`Glimpse`], [`SoupClient`], [`OuchClient`], [`MoldUdp64`] |
//! | `tickwire-feed-cboe` | [`PitchChannel`] |
//! | `tickwire-feed-nyse` | [`XdpChannel`], [`OpenBookChannel`] |
//! | `tickwire-feed-sip` | [`CqsChannel`], [`UqdfChannel`] |
//! | `tickwire-feed-cme` | [`Mdp3Channel`] |
//! | `tickwire-feed-moex` | [`MoexChannel`] |
//!
//! A packet enters through [`FeedHandler::on_packet`]. Its [`Framing`] gives session, number and messages;
//! the [`Arbiter`] says whether it is next, known, or early; the [`Decoder`] drops what nobody wants and
//! turns the rest into events, pushed into the caller's sink. What is missing is requested
//! ([`FeedHandler::poll_transmit`]), or comes with a snapshot ([`Glimpse`]). A venue adds a framing, a
//! decoder and vectors.
//!
//! ```
//! use tickwire_feed::{ArbiterConfig, ItchConfig, ItchDecoder, ItchFeed, Line};
//! use tickwire_market::{MarketEvent, Nanos};
//! let mut feed = ItchFeed::new(ArbiterConfig::default(), ItchDecoder::new(ItchConfig::default()));
//! let mut events = 0;
//! let mut count = |_: &MarketEvent| events += 1;
//! feed.on_packet(Nanos(1), Line::A, b"too short", &mut count);
//! assert_eq!((events, feed.counters().get(tickwire_market::Counter::Malformed)), (0, 1));
//! ```
//!
//! **Invariant.** No socket, no clock, no allocation after construction: bytes and `now` in, events and
//! requests out.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[doc(hidden)]
pub mod fuzzing;

#[doc(inline)]
pub use tickwire_feed_cboe::*;
#[doc(inline)]
pub use tickwire_feed_cme::*;
#[doc(hidden)]
pub use tickwire_feed_core::through_tables;
#[doc(inline)]
pub use tickwire_feed_core::{
    Answers, Arbiter, ArbiterConfig, BadPattern, Channel, Content, Context, DayUse, Decoder, FeedHandler,
    FeedState, Filter, Frame, Framing, HeldMessage, JoinRound, JoinTally, Line, MissingRange, NotedOrders,
    Offers, Pattern, Prefiltered, RecoveryLimits, Released, Restart, Rule, STREAM_CHUNK_MAX, Seen, SessionId,
    Situation, SnapshotGate, SnapshotState, SoupFailure, Start, StreamEvent, Subscriptions,
    SubscriptionsFull, Twin, Verdict, consolidated,
};
#[doc(inline)]
pub use tickwire_feed_moex::*;
#[doc(inline)]
pub use tickwire_feed_nasdaq::*;
#[doc(inline)]
pub use tickwire_feed_nyse::*;
#[doc(inline)]
pub use tickwire_feed_sip::*;
