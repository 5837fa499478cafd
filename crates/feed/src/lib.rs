//! Feed handling: from datagrams of two lines to one ordered stream of [`tickwire_market::MarketEvent`]s.
//!
//! A packet enters through [`FeedHandler::on_packet`]. Its [`Framing`] gives session, number and messages; the
//! [`Arbiter`] says whether it is next, known, or early; the [`Decoder`] drops what nobody wants and turns the rest into
//! events, pushed into the caller's sink. What is missing is requested ([`FeedHandler::poll_transmit`]), or comes with a
//! snapshot ([`Glimpse`]). A venue adds a framing, a decoder and vectors.
//!
//! **Invariant.** No socket, no clock, no allocation after construction: bytes and `now` in, events and requests out.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod arbiter;
mod channel;
mod claim;
mod contents;
mod cqs;
mod decoder;
mod directory;
mod fixed_map;
mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod handler;
mod itch;
mod itch_channel;
mod join_round;
mod joins;
mod line;
mod mdp3;
mod missing;
mod moex;
mod nyse;
mod openbook;
mod ouch;
mod pattern;
mod pitch;
mod pitch_channel;
mod recovery;
mod reorder;
mod sip;
mod snapshot;
mod soup;
mod subscriptions;
mod symbology;
mod uqdf;
mod xdp;

pub use arbiter::{Arbiter, ArbiterConfig, FeedState, MissingRange, Released, Situation, Start, Verdict};
pub use channel::Channel;
pub use cqs::{Cqs, CqsChannel, CqsDecoder, CqsFeed, CqsSnapshot};
pub use decoder::{Context, Decoder};
pub use directory::Directory;
pub use framing::{Content, Frame, Framing, MoldUdp64, Restart};
pub use handler::{FeedHandler, ItchFeed};
pub use itch::{ItchConfig, ItchDecoder};
pub use itch_channel::ItchChannel;
pub use join_round::{HeldMessage, JoinRound};
pub use joins::JoinTally;
pub use line::{Line, SessionId};
pub use mdp3::{
    LoopState, Mdp3, Mdp3Channel, Mdp3Config, Mdp3Decoder, Mdp3Depth, Mdp3Feed, Mdp3Kind, Mdp3Recovery,
    Mdp3Replay, Mdp3Terms, ReplayConfig, ReplayState,
};
pub use moex::{
    Moex, MoexChannel, MoexChannelConfig, MoexConfig, MoexDecoder, MoexFeed, MoexReplay, MoexReplayConfig,
    MoexReplayState,
};
pub use nyse::{
    NyseChannel, NyseDecoder, NyseProtocol, NyseRequests, REQUEST_SIZE_MAX, RefreshState, RequestConfig,
    RequestEvent, RequestProtocol, Say,
};
pub use openbook::{
    OpenBook, OpenBookChannel, OpenBookConfig, OpenBookDecoder, OpenBookFeed, OpenBookRefresh,
};
pub use ouch::{OuchClient, OuchConfig, OuchEvent};
pub use pattern::{BadPattern, Pattern};
pub use pitch::{GapEvent, GapProxy, PitchConfig, PitchDecoder, PitchFeed, PitchLogin, PitchUnit, Spin};
pub use pitch_channel::{PitchChannel, PitchChannelConfig};
pub use recovery::{Answers, DayUse, RecoveryLimits, SnapshotGate};
pub use sip::SipConfig;
pub use snapshot::{Glimpse, SnapshotState};
pub use soup::{STREAM_CHUNK_MAX, SoupClient, SoupConfig, SoupEvent, SoupFailure};
pub use subscriptions::{Rule, Seen, Subscriptions, SubscriptionsFull};
pub use symbology::consolidated;
pub use uqdf::{UqdfChannel, UqdfDecoder, UqdfFeed};
pub use xdp::{Xdp, XdpChannel, XdpConfig, XdpDecoder, XdpFeed, XdpRefresh};
