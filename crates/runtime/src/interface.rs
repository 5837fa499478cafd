//! Network interfaces, found by name or by address.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;
use std::{fmt, fs};

use crate::{NetError, sys, xdp};

/// A network interface, where multicast is joined and sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    name: String,
    index: u32,
    address: Option<Ipv4Addr>,
    up: bool,
    loopback: bool,
}

impl Interface {
    /// The interface called `wanted`, or having `wanted` as its IPv4 address.
    ///
    /// # Errors
    /// [`NetError::NoInterface`], which lists those there are; [`NetError::Interfaces`] when the system does
    /// not say.
    pub fn find(wanted: &str) -> Result<Interface, NetError> {
        let all = Interface::every().map_err(NetError::interfaces)?;
        let by_address = wanted.parse::<Ipv4Addr>().ok();
        let found = all
            .iter()
            .find(|i| i.name == wanted || (by_address.is_some() && i.address == by_address));
        found.cloned().ok_or_else(|| NetError::NoInterface {
            wanted: wanted.to_owned(),
            available: list(&all),
        })
    }

    /// The loopback interface.
    ///
    /// # Errors
    /// [`NetError::NoInterface`] in the odd container without one.
    pub fn loopback() -> Result<Interface, NetError> {
        Interface::find("lo")
    }

    /// Every interface, one entry per IPv4 address; none where the system does not say.
    pub fn all() -> Vec<Interface> {
        Interface::every().unwrap_or_default()
    }

    fn every() -> std::io::Result<Vec<Interface>> {
        let mut all = Vec::new();
        for (name, flags, address) in sys::interface_addresses()? {
            // One that has gone since has no index.
            let Some(index) = sys::interface_index(&name)? else {
                continue;
            };
            all.push(Interface {
                name,
                index,
                address,
                up: flags & libc::IFF_UP as u32 != 0,
                loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
            });
        }
        Ok(all)
    }

    /// The interface that datagrams to `destination` leave by, as the routing table says now; for
    /// destinations of this machine, loopback. `None` where there is no route. Sends nothing.
    pub fn towards(destination: Ipv4Addr) -> Option<Interface> {
        if destination.is_loopback() {
            return Interface::loopback().ok();
        }
        // Connecting a datagram socket looks the route up and takes the address of its interface.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((destination, 9)).ok()?;
        let IpAddr::V4(ours) = socket.local_addr().ok()?.ip() else {
            return None;
        };
        match ours == destination {
            true => Interface::loopback().ok(),
            false => Interface::all().into_iter().find(|i| i.address == Some(ours)),
        }
    }

    /// The name, for example `eth0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's index, from 1.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The IPv4 address, if it has one.
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.address
    }

    /// Whether it is up.
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// How many receive queues it has: by its driver, which is asked in the network namespace of the calling
    /// thread, else as `/sys` shows; 1 where nobody says.
    pub fn receive_queues(&self) -> u32 {
        // `/sys` has the interfaces of the namespace that it was mounted in.
        if let Ok(queues @ 1..) = xdp::receive_queues(&self.name) {
            return queues;
        }
        let folder = Path::new("/sys/class/net").join(&self.name).join("queues");
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        let queues = names.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"rx-"));
        u32::try_from(queues.count()).unwrap_or(u32::MAX).max(1)
    }

    /// Whether what is sent there stays on this machine: loopback, or one end of a veth pair, which joins
    /// network namespaces and is told by its driver. A container's own `eth0` is such an end too.
    pub fn is_local(&self) -> bool {
        self.loopback || self.is_veth()
    }

    fn is_veth(&self) -> bool {
        xdp::driver(&self.name).is_ok_and(|driver| driver == "veth")
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{} ({address})", self.name),
            None => write!(f, "{} (no IPv4 address)", self.name),
        }
    }
}

fn list(all: &[Interface]) -> String {
    match all {
        [] => "none".to_owned(),
        all => all
            .iter()
            .map(Interface::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_loopback_by_name_and_by_address() {
        let by_name = Interface::find("lo").expect("lo exists");
        assert_eq!(Interface::find("127.0.0.1").expect("lo has it"), by_name);
        assert!(by_name.index() >= 1 && by_name.is_up() && by_name.is_local());
        assert_eq!(by_name.receive_queues(), 1);
    }

    #[test]
    fn the_way_to_this_machine_is_loopback() {
        let way = Interface::towards(Ipv4Addr::new(127, 3, 2, 1)).expect("there is a way");
        assert_eq!(way.name(), "lo");
    }

    #[test]
    fn an_unknown_interface_is_named_together_with_those_there_are() {
        let text = Interface::find("nosuch0")
            .expect_err("no such interface")
            .to_string();
        assert!(
            text.contains("'nosuch0'") && text.contains("lo (127.0.0.1)"),
            "{text}"
        );
    }
}
