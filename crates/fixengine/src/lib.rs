//! A FIX engine as a library: QuickFIX's callbacks, settings files and conformance, without its printing.
//!
#![doc = include_str!("../README.md")]
//!
//! # How it is made
//! ```text
//!  file ─► settings ─► Engine ─ event ─► Handler ─► Application
//!                        │                  └─ send ─► session ─► socket
//!                        ├─► Observer: lines, reports, rows of a view
//!                        └─► files: stores, message logs, drop copies
//! ```
//! Sessions themselves are [`tickwire_fix::Session`], which does no input or output; sockets, clocks and
//! files are `tickwire_runtime`'s.
#![forbid(unsafe_code)]

mod application;
mod cfg;
mod dropcopy;
mod engine;
mod error;
pub mod executions;
mod hours;
mod limiter;
pub mod message;
mod messagefile;
mod msglog;
pub mod names;
mod observer;
pub mod quickfix;
mod report;
mod secure;
pub mod settings;
mod steps;
pub mod store;
mod users;

pub use application::{
    Application, Caller, Context, NotSent, Refusal, RejectLogon, Running, ToAdmin, run, start,
};
pub use engine::{Ended, Engine, Flow, Handler, Table, Way};
pub use error::Error;
pub use messagefile::MessageFile;
pub use observer::{Level, Observer, Row, Silent, Standing};
pub use report::{Report, SessionReport};
pub use steps::STEPS;
