//! What a Tickwire program says and how it ends.
//!
//! - [`print!`], [`println!`], [`eprint!`], [`eprintln!`]: the standard library's macros of these names panic
//!   when a reader has gone (`| head -c 1`) or a disk is full; with
//!   `#[macro_use] extern crate tickwire_console;` at a crate's root these take their place.
//! - [`say`], [`warn`], [`note`]: lines from threads that must never wait for a terminal or a pipe; [`run`]
//!   has them written before a program ends, or unwinds.
//! - [`failure`]: why a command ended, one sentence and an exit code.
//! - [`health`]: sockets whose errors are counted, said once and survived.
//! - [`version`](version()): what the program calls itself, in reports too.
//! - [`settings`]: the text of a configuration file becomes a value, and a value such a text.
//! - [`terminal`]: how wide it is, whether it takes colours.
//!
//! ```
//! use tickwire_console::failure::{Code, Failure};
//!
//! fn read(path: &str) -> Result<String, Failure> {
//!     std::fs::read_to_string(path).map_err(|e| Failure::system(format!("cannot read {path}: {e}")))
//! }
//!
//! let code = tickwire_console::run(|| {
//!     let failure = read("/no/such/file").unwrap_err();
//!     tickwire_console::warn(format_args!("{failure}"));
//!     failure.code
//! });
//! assert_eq!(code, Code::System);
//! ```
#![forbid(unsafe_code)]

#[macro_use]
pub mod out;

pub mod failure;
pub mod health;
mod queue;
pub mod random;
pub mod settings;
pub mod similar;
pub mod terminal;

mod version;

pub use queue::{note, run, say, start, warn};
pub use version::{Version, set_version, version};
