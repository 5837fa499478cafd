//! How a running Tickwire process is asked, and what it leaves behind.
//!
//! - [`socket`]: the control socket, one JSON object a line in and one out, for whom [`access`] names;
//!   [`thread`] serves it beside a thread that trades; [`client`] asks.
//! - [`http`]: a small server of read-only pages, for metrics.
//! - [`process`]: folders and files that one process holds alone, cores, parents.
//! - [`notice`]: what a child tells its parent; [`notify`]: what a service manager is told.
//! - [`latency_file`]: latencies by message type, in text.
//! - [`summary`]: tables and facts that a run prints at its end.
//! - [`results`]: what each side of a run leaves behind as files, and how the two are compared.
//!
//! ```
//! use serde::Deserialize;
//! use serde_json::{Value, json};
//! use tickwire_control::access::AccessSection;
//! use tickwire_control::client;
//! use tickwire_control::socket::{Answer, ControlSocket};
//! use tickwire_runtime::users::Peer;
//! use tickwire_runtime::wait::{WaitStrategy, Waiter};
//!
//! /// What this process may be asked for.
//! #[derive(Deserialize)]
//! #[serde(tag = "do", rename_all = "lowercase")]
//! enum Request {
//!     Status {},
//! }
//!
//! struct Orders(u64);
//!
//! impl Answer for Orders {
//!     type Request = Request;
//!     const WHO: &'static str = "an example";
//!
//!     fn answer(&mut self, request: Request, _by: &Peer) -> Result<Value, String> {
//!         match request {
//!             Request::Status {} => Ok(json!({ "orders": self.0 })),
//!         }
//!     }
//! }
//!
//! let folder = std::env::temp_dir().join(format!("tickwire-example-{}", std::process::id()));
//! let mut waiter = Waiter::new(WaitStrategy::Poll);
//! let mut socket = ControlSocket::open(&folder, &AccessSection::default(), &mut waiter)?;
//! let place = folder.clone();
//! let asking = std::thread::spawn(move || client::ask_trader(&place, &json!({ "do": "status" })));
//! while !asking.is_finished() {
//!     socket.serve(&mut waiter, &mut Orders(3)); // never waits: a loop that trades may call it
//!     waiter.wait(1_000_000);
//! }
//! let answer = asking.join().expect("it ended")?;
//! assert_eq!((&answer["ok"], &answer["orders"]), (&json!(true), &json!(3)));
//! # std::fs::remove_dir_all(&folder).expect("it is there");
//! # Ok::<(), tickwire_console::failure::Failure>(())
//! ```
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
