//! The operating system, and the only crate that sees it: clocks, cores, memory, sockets, waiting, signals,
//! capture files.
//!
//! A datagram enters by [`udp::MulticastReceiver::recv`] with two stamps (the kernel's and the time stamp
//! counter's), an order leaves by [`tcp::TcpStream::send`]; between them the pure crates work on bytes and on
//! the `now` of [`clock::Clock::now`]. Recorded input takes the same way in: [`capture::CaptureReader`] reads
//! packets from pcap and pcapng files, [`itchfile::ItchFile`] length-framed messages, [`recordfile`] DBN and
//! LOBSTER.
//!
//! Unsafe code lives here in small wrapper types (`sys`, `mapping`, `alloc`, `clock`, the ring of `inbox`),
//! each block with its proof. Every error says what failed, where, and what to do about it.
//!
//! **Invariant.** Nothing here knows a venue, a protocol or a strategy.
//!
//! ```
//! use std::net::SocketAddrV4;
//! use tickwire_market::Nanos;
//! use tickwire_runtime::capture::{CaptureReader, LinkType, PcapWriter};
//!
//! let path = std::env::temp_dir().join(format!("tickwire-example-{}.pcap", std::process::id()));
//! let group: SocketAddrV4 = "239.192.1.1:30001".parse()?;
//! let mut capture = PcapWriter::create(&path, LinkType::ETHERNET)?;
//! capture.write_udp(Nanos(1_000), "10.0.0.1:5000".parse()?, group, b"a datagram")?;
//! capture.finish()?;
//!
//! let mut reader = CaptureReader::open(&path)?;
//! let mut packets = 0;
//! while let Some(packet) = reader.next_packet()? {
//!     assert_eq!(packet.time, Some(Nanos(1_000)));
//!     packets += 1;
//! }
//! assert_eq!(packets, 1);
//! std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod affinity;
pub mod alloc;
pub mod capture;
pub mod card;
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
pub mod memory_reads;
pub mod neighbours;
pub mod netns;
pub mod pace;
pub mod places;
pub mod recordfile;
pub mod sent;
pub mod shared;
pub mod signal;
pub mod spsc;
pub mod stamp;
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
pub mod xdp;

pub use error::NetError;
