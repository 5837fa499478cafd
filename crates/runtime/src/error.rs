//! What can go wrong with a socket, each with what to do about it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use crate::trouble::Trouble;

/// Why a socket could not be opened, joined, bound or connected.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// Somebody else has the port.
    #[error(
        "{protocol} port {port} on {address} is already in use by another program; stop that program or choose another port",
        port = address.port(), address = address.ip()
    )]
    PortInUse {
        /// "UDP" or "TCP".
        protocol: &'static str,
        /// The address wanted.
        address: SocketAddr,
    },
    /// The system does not allow it.
    #[error("not permitted to {action} ({address}); {advice}")]
    PermissionDenied {
        /// What was tried.
        action: &'static str,
        /// On which address.
        address: SocketAddr,
        /// What to do.
        advice: &'static str,
    },
    /// The group cannot be reached through the interface.
    #[error(
        "no multicast route to {group} through interface {interface} ({source}); bring the interface up \
         (`ip link set {interface} up`) or choose another interface"
    )]
    NoMulticastRoute {
        /// The group.
        group: SocketAddrV4,
        /// The interface's name.
        interface: String,
        /// What the system said.
        source: io::Error,
    },
    /// No such interface, by name or address.
    #[error(
        "no network interface '{wanted}'; this machine has {available}: choose one of them by name or address"
    )]
    NoInterface {
        /// What was asked for.
        wanted: String,
        /// What there is: `lo (127.0.0.1), eth0 (192.0.2.2)`.
        available: String,
    },
    /// The system does not say which interfaces there are.
    #[error("cannot list the network interfaces: {source}{advice}")]
    Interfaces {
        /// What the system said.
        source: io::Error,
        /// What to do, behind a semicolon; empty when that is not known.
        advice: &'static str,
    },
    /// The interface has no IPv4 address to send from.
    #[error(
        "interface {interface} has no IPv4 address; give it one (`ip addr add ... dev {interface}`) or choose another interface"
    )]
    NoAddress {
        /// The interface's name.
        interface: String,
    },
    /// The address is not a multicast group.
    #[error("{group} is not a multicast group; use an address between 224.0.0.0 and 239.255.255.255")]
    NotMulticast {
        /// The address.
        group: Ipv4Addr,
    },
    /// One socket cannot be a member of more groups.
    #[error(
        "cannot join {group}: too many multicast groups; raise the limit with `sysctl net.ipv4.igmp_max_memberships=200`"
    )]
    TooManyGroups {
        /// The group.
        group: SocketAddrV4,
    },
    /// The address to bind is not one of this machine's.
    #[error(
        "{address} is not an address of this machine; use one of its addresses, or 0.0.0.0 for all of them"
    )]
    NotLocal {
        /// The address.
        address: SocketAddr,
    },
    /// Nobody listens there.
    #[error(
        "nothing listens on {address}: connection refused; start the server first or correct the address"
    )]
    Refused {
        /// The address.
        address: SocketAddr,
    },
    /// No answer.
    #[error("no answer from {address} within {timeout_ms} ms; check the address, the route and firewalls")]
    TimedOut {
        /// The address.
        address: SocketAddr,
        /// How long was waited, in milliseconds.
        timeout_ms: u64,
    },
    /// No route to a unicast address.
    #[error("no route to {address} ({source}); check the address and `ip route`")]
    NoRoute {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot {action} ({address}): {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

impl NetError {
    /// What it means for what comes next.
    pub fn trouble(&self) -> Trouble {
        match self {
            NetError::Refused { .. } | NetError::TimedOut { .. } => Trouble::PeerGone,
            NetError::NoRoute { .. } | NetError::NoMulticastRoute { .. } => Trouble::Transient,
            NetError::TooManyGroups { .. } => Trouble::Resource,
            NetError::Io { source, .. } | NetError::Interfaces { source, .. } => Trouble::of(source),
            NetError::PortInUse { .. }
            | NetError::PermissionDenied { .. }
            | NetError::NoInterface { .. }
            | NetError::NoAddress { .. }
            | NetError::NotMulticast { .. }
            | NetError::NotLocal { .. } => Trouble::Configuration,
        }
    }

    /// The sentence for an error of listing interfaces.
    pub(crate) fn interfaces(source: io::Error) -> NetError {
        let advice = match source.raw_os_error() {
            Some(libc::EMFILE) => {
                "; raise the limit of open files (`ulimit -n`, `LimitNOFILE=` of a systemd unit)"
            }
            Some(libc::ENFILE) => "; the whole machine has no more open files (sysctl fs.file-max)",
            _ => "",
        };
        NetError::Interfaces { source, advice }
    }

    /// The sentence for an error of `bind`.
    pub(crate) fn bind(protocol: &'static str, address: SocketAddr, source: io::Error) -> NetError {
        match source.raw_os_error() {
            Some(libc::EADDRINUSE) => NetError::PortInUse { protocol, address },
            Some(libc::EADDRNOTAVAIL) => NetError::NotLocal { address },
            Some(libc::EACCES | libc::EPERM) => NetError::PermissionDenied {
                action: "bind a socket",
                address,
                advice: "ports below 1024 need root or CAP_NET_BIND_SERVICE: choose a higher port",
            },
            _ => NetError::Io {
                action: "bind a socket",
                address,
                source,
            },
        }
    }

    /// The sentence for an error of `connect`.
    pub(crate) fn connect(address: SocketAddr, timeout_ms: u64, source: io::Error) -> NetError {
        match source.kind() {
            io::ErrorKind::ConnectionRefused => NetError::Refused { address },
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => NetError::TimedOut { address, timeout_ms },
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                NetError::NoRoute { address, source }
            }
            io::ErrorKind::PermissionDenied => NetError::PermissionDenied {
                action: "connect",
                address,
                advice: "a firewall rule forbids it: allow the address",
            },
            _ => NetError::Io {
                action: "connect",
                address,
                source,
            },
        }
    }

    /// The sentence for an error of joining or sending to `group`.
    pub(crate) fn multicast(
        action: &'static str,
        group: SocketAddrV4,
        interface: &str,
        source: io::Error,
    ) -> NetError {
        match source.raw_os_error() {
            Some(
                libc::ENODEV | libc::ENETUNREACH | libc::EADDRNOTAVAIL | libc::EHOSTUNREACH | libc::ENETDOWN,
            ) => NetError::NoMulticastRoute {
                group,
                interface: interface.to_owned(),
                source,
            },
            Some(libc::ENOBUFS) => NetError::TooManyGroups { group },
            Some(libc::EACCES | libc::EPERM) => NetError::PermissionDenied {
                action,
                address: group.into(),
                advice: "a firewall rule or a missing capability forbids it: allow multicast on the interface",
            },
            _ => NetError::Io {
                action,
                address: group.into(),
                source,
            },
        }
    }
}
