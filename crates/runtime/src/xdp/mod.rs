//! The kernel path: programs at the hook of a network driver (XDP), and AF_XDP sockets that take frames from
//! there without the kernel's network stack. What programs do is made elsewhere; here they are loaded,
//! attached and given maps.
//!
//! Needs Linux 5.12 or later and the capabilities of [`Capability`]; nothing else, no compiler, no file. A
//! program stays at its interface as long as its [`Attached`] lives and goes with the process, however that
//! ends.
//!
//! ```no_run
//! use tickwire_runtime::interface::Interface;
//! use tickwire_runtime::xdp::{self, Program, SocketMap, XdpMode, XdpSocket, XdpSocketConfig};
//! let interface = Interface::find("eth0")?;
//! let at = (interface.name(), interface.index());
//! let sockets = SocketMap::create("example", 1)?;
//! let code: Vec<u64> = vec![/* made by an assembler, with `sockets.number()` in it */];
//! let program = Program::load("example", &code)?;
//! let (attached, mut socket) = xdp::attach(&program, at, 0, XdpSocketConfig::default(), &sockets)?;
//! println!("{}", xdp::in_use(&attached, &socket));
//! while let Some((meta, frame)) = socket.recv::<32>() {
//!     let _ = (meta, frame);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bpf;
mod btf;
pub mod caps;
pub mod delegate;
mod offers;
mod probe;
mod socket;
mod sys;

pub use bpf::{Attached, HashMap, Program, SharedMap, SocketMap, Tested};
pub use btf::kernel_function;
pub use caps::Capability;
pub use offers::{Offers, SocketOffers, card_clock, driver, offers, receive_queues, socket_offers};
pub use probe::{Way, probe};
pub use socket::{XdpDrops, XdpSocket, XdpSocketConfig};

use std::{fmt, io};

/// Where on the hot path a program stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XdpMode {
    /// In the driver, before the kernel makes a packet of what came.
    Native,
    /// Behind the driver, on any interface.
    Generic,
}

impl XdpMode {
    const fn flags(self) -> u32 {
        match self {
            XdpMode::Native => 1 << 2,
            XdpMode::Generic => 1 << 1,
        }
    }
}

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
        })
    }
}

/// Why the kernel path cannot be used, each with what to do.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// Capabilities are missing.
    #[error("{words}")]
    NotPermitted {
        /// What is missing and how to get it.
        words: String,
        /// What the system said.
        source: io::Error,
    },
    /// Another program stands at the interface.
    #[error(
        "interface {interface} has another XDP program, and there can be one only: `ip -d link show dev {interface}` names it; end the \
         program that it belongs to, or remove it with `ip link set dev {interface} xdp off`"
    )]
    Busy {
        /// The interface.
        interface: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program cannot be attached so.
    #[error("cannot attach a {mode} XDP program to interface {interface}: {source}")]
    Attach {
        /// The interface.
        interface: String,
        /// How.
        mode: XdpMode,
        /// What the system said.
        source: io::Error,
    },
    /// A map cannot be made.
    #[error("cannot make the BPF map {name}: {source}")]
    Map {
        /// Its name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The verifier does not accept the program.
    #[error(
        "the kernel does not accept the BPF program {name} ({source}); Linux 5.12 or later is needed. It says:\n{log}"
    )]
    Refused {
        /// Its name.
        name: String,
        /// The last lines of what the verifier wrote.
        log: String,
        /// What the system said.
        source: io::Error,
    },
    /// The socket cannot be opened.
    #[error("cannot {action} for queue {queue} of interface {interface}: {source}{advice}")]
    Socket {
        /// What was tried.
        action: &'static str,
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
        /// What the system said.
        source: io::Error,
        /// What to do, behind a semicolon; empty when that is not known.
        advice: &'static str,
    },
    /// The number of frames cannot be.
    #[error("{frames} frames cannot be: choose a power of two from 64 up")]
    Frames {
        /// What was asked for.
        frames: u32,
    },
}

impl XdpError {
    fn permission(source: io::Error) -> XdpError {
        let missing = caps::missing();
        let words = match missing.is_empty() {
            false => caps::explained(&missing),
            true => "the system forbids BPF to this process, though it has the capabilities: a user namespace does not count, and a \
                     container's seccomp or lockdown rules may forbid bpf(2)"
                .to_owned(),
        };
        XdpError::NotPermitted { words, source }
    }

    fn map(name: &str, source: io::Error) -> XdpError {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => XdpError::permission(source),
            _ => XdpError::Map {
                name: name.to_owned(),
                source,
            },
        }
    }

    fn attach(interface: &str, mode: XdpMode, source: io::Error) -> XdpError {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => XdpError::permission(source),
            Some(libc::EBUSY | libc::EEXIST) => XdpError::Busy { interface, source },
            _ => XdpError::Attach {
                interface,
                mode,
                source,
            },
        }
    }

    fn socket(action: &'static str, interface: &str, queue: u32, source: io::Error) -> XdpError {
        let advice = match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => return XdpError::permission(source),
            Some(libc::EBUSY) => "; another AF_XDP socket has the queue",
            Some(libc::EINVAL) => "; `ethtool -l` says how many queues the interface has",
            Some(libc::ENOBUFS | libc::ENOMEM) => {
                "; raise the limit of locked memory (`ulimit -l`, `LimitMEMLOCK=` of a systemd unit)"
            }
            Some(libc::EAFNOSUPPORT) => "; this kernel was built without AF_XDP (CONFIG_XDP_SOCKETS)",
            _ => "",
        };
        XdpError::Socket {
            action,
            interface: interface.to_owned(),
            queue,
            source,
            advice,
        }
    }
}

/// Attaches a program and opens a socket behind it, in the best way that the interface allows: in the driver
/// without a copy, in the driver with one, behind it.
///
/// # Errors
/// Of the last way, or at once what no other way would mend: permissions, another program, a queue that is
/// taken.
pub fn attach(
    program: &Program,
    interface: (&str, u32),
    queue: u32,
    config: XdpSocketConfig,
    sockets: &SocketMap,
) -> Result<(Attached, XdpSocket), XdpError> {
    let mut last = None;
    for mode in [XdpMode::Native, XdpMode::Generic] {
        match attach_as(program, interface, queue, config, sockets, mode) {
            Err(error @ (XdpError::Attach { .. } | XdpError::Socket { .. })) => last = Some(error),
            other => return other,
        }
    }
    Err(last.unwrap_or(XdpError::Frames {
        frames: config.frames,
    }))
}

/// The same in one mode.
///
/// # Errors
/// As [`attach`].
pub fn attach_as(
    program: &Program,
    interface: (&str, u32),
    queue: u32,
    config: XdpSocketConfig,
    sockets: &SocketMap,
    mode: XdpMode,
) -> Result<(Attached, XdpSocket), XdpError> {
    let attached = program.attach(interface, mode)?;
    let socket = XdpSocket::open(interface, queue, config, Some(sockets))?;
    Ok((attached, socket))
}

/// How packets are received, for a line in a log: `XDP native, AF_XDP with a copy, queue 0, huge pages`.
pub fn in_use(attached: &Attached, socket: &XdpSocket) -> String {
    in_use_by(attached, socket, socket)
}

/// The same by a socket for each queue, from the one of the first to that of the last: `queues 0 to 3`.
pub fn in_use_by(attached: &Attached, socket: &XdpSocket, last: &XdpSocket) -> String {
    let copy = if socket.is_zero_copy() { "without" } else { "with" };
    let pages = if socket.has_huge_pages() {
        "huge"
    } else {
        "ordinary"
    };
    let queues = match (socket.queue(), last.queue()) {
        (one, last) if one == last => format!("queue {one}"),
        (first, last) => format!("queues {first} to {last}"),
    };
    format!(
        "XDP {}, AF_XDP {copy} a copy, {queues}, {pages} pages",
        attached.mode()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do() {
        let of = |errno| io::Error::from_raw_os_error(errno);
        let busy = XdpError::attach("eth9", XdpMode::Native, of(libc::EBUSY)).to_string();
        assert!(
            busy.contains("eth9 has another XDP program") && busy.contains("xdp off"),
            "{busy}"
        );
        let native = XdpError::attach("eth9", XdpMode::Native, of(libc::EOPNOTSUPP)).to_string();
        assert!(
            native.contains("native XDP program to interface eth9"),
            "{native}"
        );
        let memory = XdpError::socket("bind", "eth9", 3, of(libc::ENOBUFS)).to_string();
        assert!(
            memory.contains("queue 3 of interface eth9") && memory.contains("ulimit -l"),
            "{memory}"
        );
        let frames = XdpSocket::open(
            ("lo", 1),
            0,
            XdpSocketConfig {
                frames: 100,
                ..XdpSocketConfig::default()
            },
            None,
        );
        assert!(
            frames
                .expect_err("100 is no power of two")
                .to_string()
                .contains("power of two")
        );
        let forbidden = XdpError::map("state", of(libc::EPERM)).to_string();
        assert!(
            forbidden.contains("CAP_BPF") || forbidden.contains("user namespace"),
            "{forbidden}"
        );
    }
}
