//! NYSE's delivery: XDP and OpenBook Ultra, the request server and refreshes.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod nyse;
mod openbook;
mod xdp;

pub use nyse::{
    NyseChannel, NyseDecoder, NyseProtocol, NyseRequests, REQUEST_SIZE_MAX, RefreshState, RequestConfig,
    RequestEvent, RequestProtocol, Say,
};
pub use openbook::{
    OpenBook, OpenBookChannel, OpenBookConfig, OpenBookDecoder, OpenBookFeed, OpenBookRefresh,
};
pub use xdp::{Xdp, XdpChannel, XdpConfig, XdpDecoder, XdpFeed, XdpRefresh};

// What the modules here share with every venue.
use tickwire_feed_core::{
    Channel, Decoder, FeedHandler, FeedState, Filter, Framing, Line, MissingRange, Offers, Seen, SessionId,
    Twin, decoder, framing, offer_id,
};
