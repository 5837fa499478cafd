//! Where the ports of a channel are.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use tickwire_market::Port;

use crate::channels::InterfaceName;

/// The addresses of one channel.
#[derive(Clone, Debug)]
pub struct Ports {
    /// The network interface for multicast.
    pub interface: InterfaceName,
    /// Multicast groups, by port and line.
    pub groups: [[Option<SocketAddrV4>; 2]; Port::COUNT],
    /// The only sender that is heard of each group, by port and line; `None`: anybody.
    pub sources: [[Option<Ipv4Addr>; 2]; Port::COUNT],
    /// Servers, by port.
    pub servers: [Option<SocketAddrV4>; Port::COUNT],
    /// Their stand-ins, by port.
    pub backups: [Option<SocketAddrV4>; Port::COUNT],
}

impl Ports {
    /// Every server of a port, the first to be asked first.
    pub fn servers_of(&self, port: Port) -> Vec<SocketAddr> {
        let both = [self.servers[port as usize], self.backups[port as usize]];
        both.into_iter().flatten().map(SocketAddr::from).collect()
    }
}
