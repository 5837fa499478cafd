//! How a venue behaves: a matching engine, order flow, and everything that publishes and serves what its
//! books did.
//!
//! ```text
//!  flow ──┐                        ┌─► Publisher (one per channel) ─► datagrams ─► Impair (per line) ─► line A, B
//!         ├─► Engine ─► Listener ──┤                └─► retransmissions, snapshots
//!  FIX  ──┘                        └─► execution reports
//! ```
//!
//! [`Engine`] matches and tells a [`Listener`]; [`NaiveEngine`] is its oracle. [`Flow`] acts on it like a
//! market does, a [`Publisher`] turns what happened into datagrams of its venue and serves recovery
//! ([`ItchPublisher`] is one). [`Exchange`] is all of it together, with order entry over FIX; a [`Market`] is
//! several of them with one price path and the consolidated feeds over all.
//!
//! **Invariant.** No socket, thread or clock: time is an argument, bytes come in and go out. One seed is one
//! run.
//!
//! ```
//! use tickwire_exchange::{Engine, EngineConfig, NewOrder};
//! use tickwire_market::{InstrumentId, Price, Qty, Side, TradingStatus};
//!
//! let mut engine = Engine::new(EngineConfig { instruments: 1, max_orders: 16, max_levels: 16 });
//! let (id, price) = (InstrumentId(1), Price::from_4dp(1_872_500));
//! // `()` listens to nothing; a publisher of a venue's feed listens to all of it.
//! engine.set_status(id, TradingStatus::Trading, &mut ())?;
//! engine.submit(&NewOrder::limit(id, Side::Ask, price, Qty(100)), &mut ())?;
//! engine.submit(&NewOrder::limit(id, Side::Bid, price, Qty(40)), &mut ())?;
//! let best = engine.best(id, Side::Ask).expect("60 are left");
//! assert_eq!((best.price, best.qty.0), (price, 60));
//! # Ok::<(), tickwire_exchange::Reject>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod breaks;
mod broadcast;
mod cqs;

mod displayed;
mod engine;
mod flow;
mod generate;
mod glimpse;
mod history;
mod impair;
mod index;
mod itch;
mod journal;
mod listing;
mod market;
mod mdp3;
mod moex;
mod mold;
mod naive;
mod nyse;
mod openbook;
mod order;
mod order_entry;
mod outbox;
mod pace;
mod pitch;
mod random;
mod reference;
mod rules;
mod secret;
mod session;
mod sip;
mod soup;
mod tape;
mod twin;
mod uqdf;
mod venue;
mod wheel;
mod xdp;

pub use breaks::BreaksConfig;
pub use broadcast::{Broadcast, PublishedChannel};
pub use cqs::{CqsLineConfig, CqsPublisher, CqsPublisherConfig, CqsReset};
pub use displayed::{DisplayedLevels, LevelChange};
pub use engine::{Engine, EngineConfig, PRICE_MAX, PROTECTIONS_MAX, TRADES_KEPT};
pub use flow::{Flow, FlowConfig, OrderKinds};
pub use generate::{LogEntry, generate_itch, generate_itch_of, generate_moex};
pub use glimpse::{GlimpseLogin, GlimpseSession};
pub use history::History;
pub use impair::{Impair, ImpairConfig, Impaired};
pub use itch::{ItchPublisher, ItchPublisherConfig, ItchWriter, MARKET_MAKERS};
pub use journal::{
    Applied, Input, JOURNAL_BYTES_MAX, JOURNAL_MAGIC, JOURNAL_MAGIC_BEFORE, JournalReader, JournalWriter,
    NotAJournal,
};
pub use listing::{listings, market_listings};
pub use market::Market;
pub use mdp3::{MDP3_PRICE_MAX, Mdp3Publisher, Mdp3PublisherConfig, Mdp3ReplayConfig, Mdp3View};
pub use moex::{MoexLog, MoexPublisher, MoexPublisherConfig, MoexReplayRules, MoexTemplates};
pub use mold::{ChannelConfig, MessageStore, MoldChannel};
pub use naive::NaiveEngine;
pub use nyse::{NysePublisher, NysePublisherConfig, RequestLimits};
pub use openbook::{OpenBookFormat, OpenBookPublisher, OpenBookWriter};
pub use order::{
    BreakReason, Broken, CancelReason, Cross, CrossFill, Execution, Firm, Indication, Listener, Mpid,
    NO_MPID, NewOrder, Order, Owner, Party, Reject, SelfTrade, StateHash, Terms,
};
pub use order_entry::{
    ClientEvent, ClientNotice, ClientOrder, ClientQuote, ClientState, FixPort, OrderEntryConfig, Origin,
    OuchPort, Outcome, Route,
};
pub use pace::PaceConfig;
pub use pitch::{PitchAccount, PitchPublisher, PitchPublisherConfig, PitchServiceConfig, UnitConfig};
pub use reference::Reference;
pub use rules::{
    AuctionKind, HaltedOrders, MassCancel, OnBreach, PostOnly, PriceBands, Protection, QuoteEntry, Rules,
    TICK_STEPS_MAX, TickTable, TradingAction,
};
pub use secret::{Credentials, FixMask, HIDDEN, Mask, OuchMask, WRONG};
pub use session::AuctionTimes;
pub use sip::{Outage, SipModel, SipPublisher};
pub use soup::{SoupLogin, SoupRequest, SoupServer, SoupServerConfig};
pub use tape::{
    Datagram, LineSet, Listing, MessageSink, Milestone, ParticipantQuote, Publisher, Tape, VenueTime,
};
pub use twin::{Happened, Twin};
pub use uqdf::{UqdfPublisher, UqdfPublisherConfig};
pub use venue::{DayPhase, Exchange, ExchangeConfig};
pub use xdp::{XdpFormat, XdpPublisher, XdpWriter};
