//! The operating system, and the only crate that sees it: clocks, cores, memory, sockets, waiting, signals, capture files.
//!
//! A datagram enters by [`udp::MulticastReceiver::recv`] with two stamps (the kernel's and the time stamp counter's), an
//! order leaves by [`tcp::TcpStream::send`]; between them the pure crates work on bytes and on the `now` of
//! [`clock::Clock::now`]. Recorded input takes the same way in: [`capture::CaptureReader`] reads packets from pcap and
//! pcapng files, [`itchfile::ItchFile`] length-framed messages, [`recordfile`] DBN and LOBSTER.
//!
//! Unsafe code lives here in small wrapper types (`sys`, `mapping`, `alloc`, `clock`, the ring of `inbox`), each block with its proof. Every error says
//! what failed, where, and what to do about it.
//!
//! **Invariant.** Nothing here knows a venue, a protocol or a strategy.

pub mod affinity;
pub mod alloc;
pub mod capture;
pub mod child;
pub mod clock;
mod error;
pub mod faults;
pub mod files;
pub mod host;
pub mod inbox;
pub mod interface;
pub mod itchfile;
mod mapping;
pub mod netns;
pub mod pace;
pub mod places;
pub mod recordfile;
pub mod shared;
pub mod signal;
pub mod spsc;
pub mod stored;
mod sys;
pub mod tcp;
pub mod timekeeping;
#[cfg(feature = "tls")]
pub mod tls;
pub mod trouble;
pub mod udp;
pub mod users;
pub mod wait;
pub mod wake;

pub use error::NetError;
