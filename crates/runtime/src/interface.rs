//! Network interfaces, found by name or by address.

use std::fmt;
use std::net::Ipv4Addr;

use crate::{NetError, sys};

/// A network interface, where multicast is joined and sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    name: String,
    index: u32,
    address: Option<Ipv4Addr>,
    up: bool,
}

impl Interface {
    /// The interface called `wanted`, or having `wanted` as its IPv4 address.
    ///
    /// # Errors
    /// [`NetError::NoInterface`], which lists those there are.
    pub fn find(wanted: &str) -> Result<Interface, NetError> {
        let all = Interface::all();
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

    /// Every interface, one entry per IPv4 address.
    pub fn all() -> Vec<Interface> {
        let addresses = sys::interface_addresses().unwrap_or_default();
        addresses
            .into_iter()
            .filter_map(|(name, flags, address)| {
                let index = sys::interface_index(&name)?;
                Some(Interface {
                    name,
                    index,
                    address,
                    up: flags & libc::IFF_UP as u32 != 0,
                })
            })
            .collect()
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
        assert!(by_name.index() >= 1 && by_name.is_up());
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
