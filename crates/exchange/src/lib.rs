//! How a venue behaves: a matching engine, order flow, and everything that publishes and serves what its books did.
//!
//! ```text
//!  flow ──┐                        ┌─► ItchPublisher ─► MoldChannel ─► datagrams ─► Impair (per line) ─► line A, B
//!         ├─► Engine ─► Listener ──┤                        └─► retransmissions
//!  FIX  ──┘                        └─► execution reports
//! ```
//!
//! [`Engine`] matches and tells a [`Listener`]; [`NaiveEngine`] is its oracle. [`Flow`] acts on it like a market does,
//! [`ItchPublisher`] turns what happened into messages, [`MoldChannel`] keeps and packs them. [`Exchange`] is all of it
//! together, with order entry over FIX and snapshots over SoupBinTCP.
//!
//! **Invariant.** No socket, thread or clock: time is an argument, bytes come in and go out. One seed is one run.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod desk;
mod engine;
mod flow;
mod generate;
mod glimpse;
mod impair;
mod index;
mod listing;
mod mold;
mod naive;
mod order;
mod pace;
mod publish;
mod random;
mod session;
mod venue;
mod wheel;

pub use desk::{ClientOrder, DeskConfig, Outcome};
pub use engine::{Engine, EngineConfig, PRICE_MAX};
pub use flow::{Flow, FlowConfig};
pub use generate::generate_itch;
pub use glimpse::{GlimpseConfig, GlimpseLogin, GlimpseSession};
pub use impair::{Impair, ImpairConfig, Impaired};
pub use listing::listings;
pub use mold::{ChannelConfig, Datagram, LineSet, MessageStore, MoldChannel};
pub use naive::NaiveEngine;
pub use order::{
    Cross, Execution, Indication, Listener, Mpid, NO_MPID, NewOrder, Order, Owner, Reject, StateHash,
};
pub use pace::PaceConfig;
pub use publish::{
    ItchPublisher, Listing, MARKET_MAKERS, MessageSink, VenueTime, write_add, write_directory, write_status,
};
pub use venue::{DayPhase, Exchange, ExchangeConfig};
