//! A FIX engine: acceptors and initiators of FIX 4.0 to 4.4 and 5.0 (over FIXT 1.1), any number of sessions on one thread, with TLS, hours, stores
//! that survive `kill -9`, message logs, drop copies and counters, configured by QuickFIX's own files.
//!
//! ```text
//!  file ─► settings ─► Engine ─ event ─► Handler ─ send ─► session ─► socket
//!                        │
//!                        ├─► Observer: lines, reports, rows of a view
//!                        └─► files: stores, message logs, drop copies
//! ```
#![forbid(unsafe_code)]

mod cfg;
mod dropcopy;
mod engine;
mod error;
pub mod executions;
mod health;
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

pub use engine::{Ended, Engine, Flow, Handler, Table, Way};
pub use error::Error;
pub use messagefile::MessageFile;
pub use observer::{Level, Observer, Row, Silent, Standing};
pub use report::{Report, SessionReport};
pub use steps::STEPS;
