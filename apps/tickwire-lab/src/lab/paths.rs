//! The ways that market data and orders take through the machine: what a scenario's `backends` name.

use serde::{Deserialize, Serialize};
use tickwire_lab::scenario::{Network, RunSection, Wrong};
use tickwire_node::settings::SendWay;
use tickwire_venues::receiver::{Backend, ReceiverSection, XdpWay};

/// How market data comes to the trader, and how its orders leave.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Path {
    /// Both by sockets of the kernel.
    #[serde(rename = "socket")]
    Socket,
    /// Market data from the hook of the network driver, orders by the kernel.
    #[serde(rename = "xdp")]
    Xdp,
    /// Market data from the hook, orders past the kernel.
    #[serde(rename = "xdp+delegated")]
    Delegated,
    /// Market data from the hook, whose program sends an order that was prepared.
    #[serde(rename = "pre-armed")]
    PreArmed,
}

impl Path {
    /// As it is written in a scenario.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Path::Socket => "socket",
            Path::Xdp => "xdp",
            Path::Delegated => "xdp+delegated",
            Path::PreArmed => "pre-armed",
        }
    }

    /// In words, for a table.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Path::Socket => "sockets of the kernel",
            Path::Xdp => "AF_XDP in, TCP of the kernel out",
            Path::Delegated => "AF_XDP in, past the kernel out",
            Path::PreArmed => "the program at the hook sends",
        }
    }

    /// How orders leave.
    pub(crate) fn send(self) -> SendWay {
        match self {
            Path::Socket | Path::Xdp => SendWay::Kernel,
            Path::Delegated | Path::PreArmed => SendWay::Delegated,
        }
    }

    /// How market data comes. Between virtual interfaces the hook is behind the driver, where a frame that
    /// the program sends arrives without a program at the far end; elsewhere it is the first that works.
    pub(crate) fn receive_by(self, receiver: &mut ReceiverSection, is_virtual: bool) {
        if self == Path::Socket {
            return;
        }
        receiver.backend = Backend::Xdp;
        if is_virtual {
            receiver.xdp_mode = XdpWay::Generic;
        }
    }
}

/// Refuses ways that make no sense for a scenario: `without` has its reason beside each. Whatever is past the
/// kernel needs interfaces, which loopback has not.
pub(crate) fn check(paths: &[Path], without: &[(Path, &str)], run: &RunSection) -> Result<(), Wrong> {
    let wrong = |reason: String| Err(Wrong::new("settings.backends", reason));
    if paths.is_empty() {
        return wrong("give one or more, as [\"socket\"]".to_owned());
    }
    for (nth, path) in paths.iter().enumerate() {
        let name = path.name();
        if paths[..nth].contains(path) {
            return wrong(format!("\"{name}\" stands there twice"));
        }
        if let Some((_, why)) = without.iter().find(|(refused, _)| refused == path) {
            return wrong(format!("\"{name}\" is not for this scenario: {why}"));
        }
        if *path != Path::Socket && matches!(run.network, Network::Auto | Network::Loopback) {
            return wrong(format!(
                "\"{name}\" wants an interface for each side: give --namespaces (root), or run.network = \"given\" with run.exchange and \
                 run.trader"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_that_make_no_sense_are_refused_in_words() {
        let mut run = RunSection::default();
        let words = |paths: &[Path], run: &RunSection| {
            let without = [(Path::PreArmed, "FAST has no fields at fixed places")];
            check(paths, &without, run).map_err(|wrong| wrong.reason)
        };
        assert_eq!(words(&[Path::Socket], &run), Ok(()));
        let why = words(&[Path::Socket, Path::Xdp], &run).expect_err("loopback");
        assert!(
            why.contains("\"xdp\" wants an interface") && why.contains("--namespaces"),
            "{why}"
        );
        run.network = Network::Veth;
        assert_eq!(words(&[Path::Delegated, Path::Socket], &run), Ok(()));
        let why = words(&[Path::PreArmed], &run).expect_err("FAST");
        assert!(why.contains("fixed places"), "{why}");
        assert!(words(&[Path::Xdp, Path::Xdp], &run).is_err() && words(&[], &run).is_err());
    }
}
