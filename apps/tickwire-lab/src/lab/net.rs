//! Where the two sides of a scenario stand: on loopback, in two network namespaces that the run makes, or at
//! interfaces that it is told.

use std::net::Ipv4Addr;

use tickwire_console::failure::Failure;
use tickwire_lab::scenario::{Network, RunSection, Wrong};
use tickwire_runtime::interface::Interface;
use tickwire_runtime::netns::{Namespace, VethPair};

use super::run::Run;

/// The end of the exchange.
pub(crate) const EXCHANGE: usize = 0;
/// The end of the trader.
pub(crate) const TRADER: usize = 1;

/// Where traffic goes.
pub(crate) enum Net {
    /// Both sides on this host's loopback.
    Loopback,
    /// Each in a network namespace of its own.
    Veth(VethPair),
    /// Each at an interface that there is: the exchange, the trader.
    Given([End; 2]),
}

/// Where one side of a given network stands.
pub(crate) struct End {
    /// As it was written.
    given: String,
    place: Place,
    /// Name of the interface; its address on another machine.
    interface: String,
    address: Ipv4Addr,
}

/// Where an interface is.
enum Place {
    /// In the namespace of this process.
    Own(Namespace),
    /// In another one of this machine.
    Named(Namespace),
    /// On another machine.
    Far,
}

impl Place {
    fn enter(&self) -> std::io::Result<()> {
        match self {
            // Who may not change namespaces has never left this one.
            Place::Own(own) => own.enter().or_else(|e| match e.kind() {
                std::io::ErrorKind::PermissionDenied => Ok(()),
                _ => Err(e),
            }),
            Place::Named(namespace) => namespace.enter(),
            Place::Far => Ok(()),
        }
    }
}

impl End {
    /// `INTERFACE`, `NAMESPACE/INTERFACE`, or the IPv4 address of an interface here or on another machine.
    fn find(given: &str, key: &str) -> Result<End, Failure> {
        let refused = |why: String| Failure::system(format!("run.{key} = \"{given}\": {why}"));
        let (space, name) = match given.split_once('/') {
            Some((space, name)) => (Some(space), name),
            None => (None, given),
        };
        let own = || {
            Namespace::own()
                .map(Place::Own)
                .map_err(|e| refused(e.to_string()))
        };
        let there = match space {
            Some(space) => Place::Named(Namespace::named(space).map_err(|e| {
                refused(format!(
                    "cannot open the network namespace '{space}': {e}; `ip netns` lists those there are"
                ))
            })?),
            None => own()?,
        };
        let back = own()?;
        there.enter().map_err(|e| refused(entering(&e)))?;
        let found = Interface::find(name);
        back.enter().map_err(|e| refused(entering(&e)))?;
        match (found, name.parse::<Ipv4Addr>()) {
            (Ok(interface), _) => Ok(End {
                given: given.to_owned(),
                place: there,
                address: interface
                    .address()
                    .ok_or_else(|| refused("the interface has no IPv4 address".to_owned()))?,
                interface: interface.name().to_owned(),
            }),
            (Err(_), Ok(address)) if space.is_none() => Ok(End {
                given: given.to_owned(),
                place: Place::Far,
                interface: name.to_owned(),
                address,
            }),
            (Err(e), _) => Err(refused(e.to_string())),
        }
    }
}

fn entering(e: &std::io::Error) -> String {
    format!("cannot enter the network namespace: {e}; it takes root")
}

impl Net {
    /// The address of the exchange (end 0) or the trader (end 1).
    pub(crate) fn address(&self, end: usize) -> Ipv4Addr {
        match self {
            Net::Loopback => Ipv4Addr::LOCALHOST,
            Net::Veth(pair) => pair.address(end),
            Net::Given(ends) => ends[end].address,
        }
    }

    /// The interface of an end, as a configuration names it.
    pub(crate) fn interface(&self, end: usize) -> &str {
        match self {
            Net::Loopback => "127.0.0.1",
            Net::Veth(_) => "veth0",
            Net::Given(ends) => &ends[end].interface,
        }
    }

    /// Whether an end is on this machine.
    pub(crate) fn is_here(&self, end: usize) -> bool {
        match self {
            Net::Loopback | Net::Veth(_) => true,
            Net::Given(ends) => !matches!(ends[end].place, Place::Far),
        }
    }

    /// Moves the calling thread to an end: what it opens and starts from now on is there.
    ///
    /// # Errors
    /// The end is on another machine, or the system refuses it.
    pub(crate) fn enter(&self, end: usize) -> Result<(), Failure> {
        let entered = match self {
            Net::Loopback => Ok(()),
            Net::Veth(pair) => pair.enter(end),
            Net::Given(ends) => match &ends[end].place {
                Place::Far => {
                    return Err(Failure::config(format!(
                        "{} is at no interface of this machine: this side is started there",
                        ends[end].given
                    )));
                }
                place => place.enter(),
            },
        };
        entered.map_err(|e| Failure::system(entering(&e)))
    }

    /// Does something at an end, on a thread of its own: what it opens and starts is there, and the calling
    /// thread stays where it is.
    ///
    /// # Errors
    /// As [`Net::enter`].
    pub(crate) fn at<T: Send>(&self, end: usize, what: impl FnOnce() -> T + Send) -> Result<T, Failure> {
        std::thread::scope(|scope| {
            let there = scope.spawn(|| self.enter(end).map(|()| what()));
            there.join().expect("it does not panic")
        })
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Net::Loopback => "loopback".to_owned(),
            Net::Veth(_) => "two network namespaces joined by veth".to_owned(),
            Net::Given([exchange, trader]) => {
                format!("exchange at {}, trader at {}", exchange.given, trader.given)
            }
        }
    }
}

/// Refuses a network that is half given.
pub(crate) fn check(run: &RunSection) -> Result<(), Wrong> {
    let is_given = run.network == Network::Given;
    for (key, end) in [("run.exchange", &run.exchange), ("run.trader", &run.trader)] {
        match (is_given, end.is_empty()) {
            (true, true) => {
                return Err(Wrong::new(
                    key,
                    "run.network = \"given\" wants both ends: INTERFACE, NAMESPACE/INTERFACE, or an address",
                ));
            }
            (false, false) => {
                return Err(Wrong::new(key, "is for run.network = \"given\""));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where traffic goes: as the scenario wants it, and as far as this machine permits. To be called on a thread
/// that is in no namespace of a side.
pub(crate) fn network(wanted: &RunSection, run: &mut Run<'_>) -> Result<Net, Failure> {
    let net = match wanted.network {
        Network::Loopback => Net::Loopback,
        Network::Given => given(wanted)?,
        Network::Veth | Network::Auto => match VethPair::create("twlab") {
            Ok(pair) => Net::Veth(pair),
            Err(e) if wanted.network == Network::Veth => return Err(no_namespaces(&e)),
            Err(e) => {
                run.note(format!(
                    "Traffic goes over loopback: network namespaces are not to be had here ({e})."
                ));
                Net::Loopback
            }
        },
    };
    run.fact("network", net.name());
    Ok(net)
}

/// The network that a scenario gives.
pub(crate) fn given(wanted: &RunSection) -> Result<Net, Failure> {
    Ok(Net::Given([
        End::find(&wanted.exchange, "exchange")?,
        End::find(&wanted.trader, "trader")?,
    ]))
}

pub(crate) fn no_namespaces(why: &std::io::Error) -> Failure {
    Failure::system(format!(
        "run.network = \"veth\" needs root, iproute2 and veth: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_given_whole_or_not_at_all() {
        let mut run = RunSection::default();
        assert!(check(&run).is_ok());
        run.network = Network::Given;
        run.exchange = "eth0".to_owned();
        let wrong = check(&run).expect_err("no trader");
        assert_eq!(wrong.key, "run.trader");
        run.trader = "b/eth1".to_owned();
        assert!(check(&run).is_ok());
        run.network = Network::Auto;
        assert!(check(&run).is_err());
    }

    #[test]
    fn an_end_is_an_interface_here_or_an_address_elsewhere() {
        let is_here = |end: &End| !matches!(end.place, Place::Far);
        let here = End::find("lo", "trader").expect("loopback");
        assert_eq!((here.address, is_here(&here)), (Ipv4Addr::LOCALHOST, true));
        let far = End::find("192.0.2.7", "trader").expect("an address");
        assert_eq!((far.address, is_here(&far)), (Ipv4Addr::new(192, 0, 2, 7), false));
        let wrong = End::find("no-such/eth0", "trader").map(|_| ()).expect_err("none");
        assert!(
            wrong.message.contains("run.trader = \"no-such/eth0\"") && wrong.message.contains("ip netns"),
            "{wrong}"
        );
    }
}
