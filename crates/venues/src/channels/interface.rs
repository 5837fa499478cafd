//! A network interface as users name it: `eth0`, or by its IPv4 address.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;
use tickwire_console::failure::Failure;
use tickwire_runtime::interface::Interface;

/// The longest name that Linux gives an interface (`IFNAMSIZ` less its zero).
const NAME_MAX: usize = 15;

/// The name or the IPv4 address of a network interface; looked up when sockets are opened, so that a file can
/// be checked on another machine.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct InterfaceName(String);

impl InterfaceName {
    /// The machine's own: nothing leaves it.
    pub fn loopback() -> InterfaceName {
        InterfaceName(Ipv4Addr::LOCALHOST.to_string())
    }

    /// The interface on this machine.
    ///
    /// # Errors
    /// There is none of that name or address; the sentence lists those there are.
    pub fn find(&self) -> Result<Interface, Failure> {
        Interface::find(&self.0).map_err(|e| Failure::system(e.to_string()))
    }
}

impl TryFrom<String> for InterfaceName {
    type Error = String;

    fn try_from(text: String) -> Result<InterfaceName, String> {
        let is_address_like = text.contains('.') && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let is_name = (1..=NAME_MAX).contains(&text.len())
            && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "/:".contains(c));
        if text.parse::<Ipv4Addr>().is_ok() || (is_name && !is_address_like) {
            return Ok(InterfaceName(text));
        }
        Err(format!(
            "{text:?} is neither the name of a network interface (as eth0, lo) nor an IPv4 address"
        ))
    }
}

impl From<InterfaceName> for String {
    fn from(name: InterfaceName) -> String {
        name.0
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_taken_and_what_is_neither_is_refused() {
        for good in ["lo", "eth0", "enp3s0f0np0", "bond0.17", "127.0.0.1", "10.0.0.7"] {
            assert_eq!(
                InterfaceName::try_from(good.to_owned()).unwrap().to_string(),
                good
            );
        }
        for bad in [
            "",
            "127.0.0.300",
            "10.0.0",
            "eth 0",
            "::1",
            "a/b",
            "a name of more than fifteen",
        ] {
            let why = InterfaceName::try_from(bad.to_owned()).unwrap_err();
            assert!(why.contains(&format!("{bad:?} is neither")), "{why}");
        }
    }

    #[test]
    fn the_name_and_the_address_of_loopback_are_the_same_interface() {
        let by_name = InterfaceName::try_from("lo".to_owned()).unwrap().find().unwrap();
        assert_eq!(by_name, InterfaceName::loopback().find().unwrap());
        let gone = InterfaceName::try_from("eth99".to_owned()).unwrap();
        let why = gone.find().unwrap_err().message;
        assert!(why.contains("eth99") && why.contains("lo (127.0.0.1)"), "{why}");
    }
}
