//! How a running Tickwire process is asked, and what it leaves behind.
//!
//! - [`socket`]: the control socket, one JSON object a line in and one out, for whom [`access`] names; [`thread`] serves it beside a
//!   thread that trades; [`client`] asks.
//! - [`http`]: a small server of read-only pages, for metrics.
//! - [`process`]: folders and files that one process holds alone, cores, parents.
//! - [`notice`]: what a child tells its parent; [`notify`]: what a service manager is told.
//! - [`latency_file`]: latencies by message type, in text.
//! - [`summary`]: tables and facts that a run prints at its end.
//! - [`results`]: what each side of a run leaves behind as files, and how the two are compared.
#![forbid(unsafe_code)]

#[macro_use]
extern crate tickwire_console;

pub mod access;
pub mod client;
pub mod http;
pub mod latency_file;
pub mod notice;
pub mod notify;
pub mod process;
pub mod results;
pub mod socket;
pub mod summary;
pub mod thread;
