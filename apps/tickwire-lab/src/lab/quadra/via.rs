//! The back ends of `quadra`: ways of waiting on sockets, and the ways past them.

use std::fmt;

use serde::{Deserialize, Serialize};
use tickwire_lab::scenario::{RunSection, Wrong};
use tickwire_runtime::inbox::Backend;

use super::message::Transport;
use crate::lab::paths::{self, Path};

/// A back end of the trader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) enum Via {
    /// Sockets, waited for in this way.
    By(Backend),
    /// The feed from the driver's hook, orders by the kernel or past it; it spins.
    Past(Path),
}

/// What goes past the sockets.
const PAST: [Path; 2] = [Path::Xdp, Path::Delegated];

impl Via {
    pub(super) fn name(self) -> &'static str {
        match self {
            Via::By(backend) => backend.name(),
            Via::Past(path) => path.name(),
        }
    }

    pub(super) fn spins(self) -> bool {
        match self {
            Via::By(backend) => backend.spins(),
            Via::Past(_) => true,
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<String> for Via {
    type Error = String;

    fn try_from(name: String) -> Result<Via, String> {
        let past = PAST.into_iter().find(|path| path.name() == name).map(Via::Past);
        let by = match name.as_str() {
            // As the other scenarios call it.
            "socket" => Some(Backend::Spin),
            name => Backend::by_name(name),
        };
        past.or(by.map(Via::By)).ok_or_else(|| {
            if name == Path::PreArmed.name() {
                return "\"pre-armed\" is not for this scenario: every order names the message that it answers, and cannot be prepared"
                    .to_owned();
            }
            let names = Backend::ALL.map(Backend::name).join(", ");
            let past = PAST.map(Path::name).join(", ");
            format!("there is no back end '{name}'; there are {names}, {past}")
        })
    }
}

impl From<Via> for String {
    fn from(via: Via) -> String {
        via.name().to_owned()
    }
}

/// Refuses what cannot be past the sockets.
pub(super) fn check(backends: &[Via], transports: &[Transport], run: &RunSection) -> Result<(), Wrong> {
    let past = backends.iter().filter_map(|via| match via {
        Via::Past(path) => Some(*path),
        Via::By(_) => None,
    });
    let past: Vec<Path> = past.collect();
    if past.is_empty() {
        return Ok(());
    }
    paths::check(&past, &[], run)?;
    match transports.contains(&Transport::Multicast) {
        true => Ok(()),
        false => Err(Wrong::new(
            "settings.transports",
            format!("\"{}\" receives datagrams: add \"multicast\"", past[0].name()),
        )),
    }
}
