//! FIX 4.4 for order entry: codec and session, for both sides, without sockets, threads or a clock.
//!
//! **The way of a message.** Bytes from a TCP connection go into [`Session::handle_bytes`]: [`frame`] cuts
//! them into messages, [`Index`] verifies the checksum and finds the fields in one pass, the session checks
//! identity, time and sequence, and tells of them by [`Session::poll_event`]; [`Session::message`] has the
//! one that was told of. Messages go out by [`Session::send`]; what somebody else writes, fastest from a
//! prepared [`OrderTemplate`] or [`MassQuoteTemplate`], by [`Session::reserve`] and [`Reservation::commit`].
//! What was sent is in a [`Store`] for resends.
//!
//! Follows FIX 4.4 with errata 20030618; what is left out is listed in `docs/protocols/fix.md`.
//!
//! **Invariants.** No allocation after construction. Every buffer is bounded by [`SessionConfig`]. No input
//! panics.
//!
//! ```
//! use tickwire_fix::{Again, CompId, Event, Role, Session, SessionConfig, Status, tag};
//! use tickwire_market::Nanos;
//!
//! let id = |text: &[u8]| CompId::new(text).expect("1 to 31 characters");
//! let config = |role, own, peer| SessionConfig::new(role, id(own), id(peer));
//! let mut trader = Session::new(config(Role::Initiator, b"TRADER", b"VENUE"));
//! let mut venue = Session::new(config(Role::Acceptor, b"VENUE", b"TRADER"));
//! let now = Nanos(1_767_623_400 * Nanos::SECOND);
//! trader.handle_connected(now);
//! venue.handle_connected(now);
//!
//! // Memory instead of a connection.
//! let mut buffer = [0; 4096];
//! let mut pump = |trader: &mut Session, venue: &mut Session| {
//!     for _ in 0..4 {
//!         while let Some(bytes) = trader.poll_transmit(&mut buffer) {
//!             venue.handle_bytes(now, bytes);
//!         }
//!         while let Some(bytes) = venue.poll_transmit(&mut buffer) {
//!             trader.handle_bytes(now, bytes);
//!         }
//!         while trader.poll_event().is_some() {}
//!     }
//! };
//! pump(&mut trader, &mut venue);
//! assert_eq!(trader.status(), Status::Active);
//!
//! while venue.poll_event().is_some() {}
//! trader
//!     .send(now, b"D", Again::Resend, |order, _| {
//!         order.text(tag::CL_ORD_ID, b"1");
//!         order.text(tag::SYMBOL, b"AAPL");
//!         order.char(tag::SIDE, b'1');
//!         order.unsigned(tag::ORDER_QTY, 100);
//!     })
//!     .expect("the session is logged on");
//! pump(&mut trader, &mut venue);
//! assert!(matches!(venue.poll_event(), Some(Event::Message { .. })));
//! let order = venue.message().expect("the event is about it");
//! assert!(order.bytes().starts_with(b"8=FIX.4.4\x01"));
//! ```
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod acceptor;
mod buffer;
mod config;
mod decode;
pub mod dict;
mod digits;
mod encode;
mod fields;
mod group;
mod header;
mod hosts;
mod lasting;
mod message;
pub mod naive;
mod number;
mod quote_answer;
mod quoting;
mod reject;
mod request;
mod scan;
mod schedule;
mod session;
mod store;
pub mod tag;
mod template;
mod text;
mod throttle;
mod time;
pub mod typed;
mod version;

pub use acceptor::{Acceptor, ConnectionId, Newcomer, Refusal, Refused, SessionId};
pub use config::{CancelOn, Credentials, Role, Secret, SessionConfig, SubIds};
pub use decode::{Frame, Garbled, Index, Message, frame};
pub use encode::{Encoder, NotEncodable, Prepared};
pub use fields::{Field, Fields};
pub use group::{Group, RepeatingGroup};
pub use header::{Identity, Opening, identify, is_header};
pub use hosts::{Attempt, HostOrder, Hosts, HostsConfig};
pub use lasting::{
    EarlierStore, Hole, LastingStore, Recovery, STORE_HEAD_BYTES, StoreError, StoreSize, Words, new_store,
    store_bytes, store_size,
};
pub use message::{
    BusinessMessageReject, CancelKind, ExecType, ExecutionReport, NewOrderSingle, OrdStatus,
    OrderCancelReject, OrderCancelReplaceRequest, OrderCancelRequest, business_reject_reason, cxl_rej_reason,
    ord_rej_reason,
};
pub use quote_answer::{
    QuoteAnswer, QuoteEntries, QuoteLine, QuoteSets, put_cancel_all_orders, put_cancel_all_quotes,
    put_cancel_quotes, put_mass_quote, put_quote_status_request, quote_status_answers, read_quote_answer,
};
pub use quoting::{MassQuoteHead, MassQuoteTemplate, PreparedQuote, QuoteDecimals, QuotePrices};
pub use reject::{Fault, SessionRejectReason};
pub use request::OrderRequest;
pub use schedule::{Hours, NotASchedule, Period, Schedule};
pub use session::{
    Again, CLOCK_SET_NS, DisconnectReason, Event, LogonRequest, PreparedHeader, Reservation, Rules,
    SendError, Session, Status,
};
pub use store::{MemoryStore, NotKept, Store, StoreFailed};
pub use template::{NewOrder, OrderTemplate};
pub use text::{CompId, Id, MsgType, Reason, Text};
pub use throttle::{Excess, Throttle};
pub use time::{Precision, Stamp, parse_timestamp};
pub use version::Version;
