//! Where datagrams go: the address they were recorded with, or the one it is mapped to, through an interface
//! that stays on this machine unless the user has named another.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use tickwire_runtime::interface::Interface;
use tickwire_runtime::udp::{MulticastSender, UdpEndpoint};

use tickwire_console::failure::Failure;

/// `FROM=TO`: a recorded destination and where it goes. A port of `FROM` may be `*` (every port that has no
/// rule of its own), then that of `TO` too (stays as it was).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    from: (Ipv4Addr, Option<u16>),
    to: (Ipv4Addr, Option<u16>),
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Mapping, String> {
        let (from, to) = text
            .split_once('=')
            .ok_or("give FROM=TO, such as 239.1.1.1:3000=239.9.9.9:4000")?;
        let (from, to) = (end(from)?, end(to)?);
        if from.1.is_none() && to.1.is_some() {
            return Err(format!(
                "{text}: every port of {} would become one; give its port, or * on both sides",
                from.0
            ));
        }
        if from.1.is_some() && to.1.is_none() {
            return Err(format!("{text}: say which port {} becomes", from.0));
        }
        Ok(Mapping { from, to })
    }
}

fn end(text: &str) -> Result<(Ipv4Addr, Option<u16>), String> {
    let wrong = || format!("'{text}' is not ADDRESS:PORT (IPv4) or ADDRESS:*");
    let (address, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
    let address = address.parse().map_err(|_| wrong())?;
    match port {
        "*" => Ok((address, None)),
        port => Ok((address, Some(port.parse().map_err(|_| wrong())?))),
    }
}

impl Mapping {
    /// Where a destination goes, if this rule is about it.
    fn apply(&self, from: SocketAddrV4) -> Option<SocketAddrV4> {
        let fits = *from.ip() == self.from.0 && self.from.1.is_none_or(|port| port == from.port());
        fits.then(|| SocketAddrV4::new(self.to.0, self.to.1.unwrap_or(from.port())))
    }
}

enum Way {
    Multicast(MulticastSender),
    /// Which of the endpoints.
    Unicast(usize),
}

/// A destination.
pub(crate) struct Out {
    /// As recorded.
    pub from: SocketAddrV4,
    /// As sent.
    pub to: SocketAddrV4,
    way: Way,
    pub packets: u64,
    pub bytes: u64,
}

/// See the module's description.
pub(crate) struct Routes {
    mappings: Vec<Mapping>,
    /// As the user named it.
    named: Option<Interface>,
    ttl: u8,
    known: HashMap<SocketAddrV4, usize>,
    outs: Vec<Out>,
    /// One for each address that datagrams come from.
    endpoints: Vec<(Ipv4Addr, UdpEndpoint)>,
}

impl Routes {
    /// No destination yet. `interface` is a name, which is an explicit choice, or an address, which is not.
    pub(crate) fn new(mappings: &[Mapping], interface: Option<&str>, ttl: u8) -> Result<Routes, Failure> {
        let mut named = None;
        if let Some(wanted) = interface {
            let found = Interface::find(wanted).map_err(|e| Failure::system(e.to_string()))?;
            if found.name() != wanted && !found.is_local() {
                return Err(leaves(&found, &format!("the address {wanted}")));
            }
            named = Some(found);
        }
        // Rules about one port come before those about all.
        let mut mappings = mappings.to_vec();
        mappings.sort_by_key(|mapping| mapping.from.1.is_none());
        Ok(Routes {
            mappings,
            named,
            ttl,
            known: HashMap::new(),
            outs: Vec::new(),
            endpoints: Vec::new(),
        })
    }

    /// The destination's place, opened when it is new.
    pub(crate) fn place(&mut self, from: SocketAddrV4) -> Result<usize, Failure> {
        if let Some(&place) = self.known.get(&from) {
            return Ok(place);
        }
        let mapped = self.mappings.iter().find_map(|mapping| mapping.apply(from));
        let to = mapped.unwrap_or(from);
        let way = match to.ip().is_multicast() {
            true => Way::Multicast(self.multicast(to)?),
            false => Way::Unicast(self.unicast(to)?),
        };
        self.outs.push(Out {
            from,
            to,
            way,
            packets: 0,
            bytes: 0,
        });
        self.known.insert(from, self.outs.len() - 1);
        Ok(self.outs.len() - 1)
    }

    /// Loopback unless an interface was chosen.
    fn multicast(&self, to: SocketAddrV4) -> Result<MulticastSender, Failure> {
        let system = |e: tickwire_runtime::NetError| Failure::system(e.to_string());
        let interface = match &self.named {
            Some(named) => named.clone(),
            None => Interface::loopback().map_err(system)?,
        };
        MulticastSender::open(to, &interface, self.ttl).map_err(system)
    }

    fn unicast(&mut self, to: SocketAddrV4) -> Result<usize, Failure> {
        if to.ip().is_broadcast() || to.ip().is_unspecified() || to.port() == 0 {
            return Err(Failure::config(format!(
                "{to} cannot be sent to; map it with --map {to}=239.0.0.1:5000"
            )));
        }
        let way = match &self.named {
            Some(named) => named.clone(),
            None => Interface::towards(*to.ip())
                .ok_or_else(|| Failure::system(format!("there is no route to {to}")))?,
        };
        if self.named.is_none() && !way.is_local() {
            return Err(leaves(&way, &to));
        }
        let address = way.address().unwrap_or(Ipv4Addr::LOCALHOST);
        if let Some(place) = self.endpoints.iter().position(|endpoint| endpoint.0 == address) {
            return Ok(place);
        }
        let endpoint = UdpEndpoint::bind(SocketAddrV4::new(address, 0))
            .map_err(|e| Failure::system(format!("{e}, to send to {to}")))?;
        self.endpoints.push((address, endpoint));
        Ok(self.endpoints.len() - 1)
    }

    /// Sends a datagram, waiting while the socket is full.
    #[inline]
    pub(crate) fn send(&mut self, place: usize, payload: &[u8]) -> io::Result<()> {
        let out = &mut self.outs[place];
        match &out.way {
            Way::Multicast(sender) => sender.send(payload)?,
            Way::Unicast(endpoint) => {
                let to = out.to.into();
                while !self.endpoints[*endpoint].1.send_to(payload, to)? {
                    std::hint::spin_loop();
                }
            }
        }
        out.packets += 1;
        out.bytes += payload.len() as u64;
        Ok(())
    }

    /// Where a place leads.
    pub(crate) fn out(&self, place: usize) -> &Out {
        &self.outs[place]
    }

    /// Every destination, in order of appearance.
    pub(crate) fn outs(&self) -> &[Out] {
        &self.outs
    }
}

fn leaves(interface: &Interface, to: &dyn fmt::Display) -> Failure {
    let hint = match interface.address().map(IpAddr::V4) {
        Some(address) => format!("{} ({address})", interface.name()),
        None => interface.name().to_owned(),
    };
    Failure::config(format!(
        "{to} leaves this machine by {hint}; to send recorded packets there, name the interface: --interface {}",
        interface.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddrV4 {
        text.parse().unwrap()
    }

    #[test]
    fn a_rule_about_a_port_wins_over_one_about_all() {
        let rules = ["239.1.1.1:*=239.2.2.2:*", "239.1.1.1:30=239.3.3.3:40"].map(|r| r.parse().unwrap());
        let mut routes = Routes::new(&rules, None, 1).unwrap();
        for (from, to) in [
            ("239.1.1.1:30", "239.3.3.3:40"),
            ("239.1.1.1:31", "239.2.2.2:31"),
            ("239.1.1.2:30", "239.1.1.2:30"),
        ] {
            let place = routes.place(at(from)).unwrap();
            assert_eq!((routes.out(place).from, routes.out(place).to), (at(from), at(to)));
            assert_eq!(routes.place(at(from)).unwrap(), place);
        }
    }

    #[test]
    fn wrong_rules_are_explained() {
        let said = |text: &str| text.parse::<Mapping>().unwrap_err();
        assert!(said("239.1.1.1:30").contains("FROM=TO"));
        assert!(said("239.1.1.1=239.1.1.2").contains("'239.1.1.1' is not ADDRESS:PORT"));
        assert!(said("239.1.1.1:x=239.1.1.2:1").contains("239.1.1.1:x"));
        assert!(said("239.1.1.1:*=239.1.1.2:1").contains("would become one"));
        assert!(said("239.1.1.1:1=239.1.1.2:*").contains("which port"));
    }

    #[test]
    fn what_would_leave_the_machine_needs_a_named_interface() {
        let mut routes = Routes::new(&[], None, 1).unwrap();
        assert!(routes.place(at("127.0.0.1:5000")).is_ok());
        assert!(routes.place(at("239.1.1.1:5000")).is_ok(), "by loopback");
        assert!(routes.place(at("255.255.255.255:67")).is_err());
        // Where this machine has a way out that is no veth, it is not taken by default.
        if let Some(way) = Interface::towards(Ipv4Addr::new(192, 0, 2, 1))
            && !way.is_local()
        {
            let said = routes.place(at("192.0.2.1:5000")).err().unwrap().message;
            assert!(
                said.contains("--interface") && said.contains(way.name()),
                "{said}"
            );
            let address = way.address().unwrap().to_string();
            let said = Routes::new(&[], Some(&address), 1).err().unwrap().message;
            assert!(said.contains("--interface"), "{said}");
        }
    }
}
