//! How a venue behaves: a matching engine, order flow, and everything that publishes and serves what its books did.
//!
//! [`Engine`] matches and tells a [`Listener`]; [`NaiveEngine`] is its oracle.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod engine;
mod index;
mod naive;
mod order;

pub use engine::{Engine, EngineConfig, PRICE_MAX};
pub use naive::NaiveEngine;
pub use order::{
    Cross, Execution, Indication, Listener, Mpid, NO_MPID, NewOrder, Order, Owner, Reject, StateHash,
};
