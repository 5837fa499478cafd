//! The `[access]` section: which other users of this machine may read the region, and ask what of a control
//! socket.
//!
//! Without it nobody but our own user and root may do either. With a group its members may read the region
//! (mode 0640) and connect to control sockets (0660, in a folder of 0750); what they may ask there is said
//! command by command, and nothing is allowed that is not named. Who asks is what the kernel says of the
//! connection (`SO_PEERCRED`), never what the request says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tickwire_runtime::files::Sharing;
use tickwire_runtime::users::{Peer, gid_of, uid_of};

use tickwire_console::failure::Failure;

/// Every command of every control socket.
const COMMANDS: &[&str] = &[
    // A feed handler's.
    "subscribe",
    "unsubscribe",
    "subscriptions",
    "status",
    "stop",
    // A quoter's.
    "vol",
    "pull",
    "resume",
    "heartbeat",
    "eye",
    "risk",
    // A trader's.
    "kill",
    // An exchange's.
    "halt",
    "call",
    "break",
    "lose",
    "disconnect",
    "close",
];
/// What stands for every command.
const EVERYTHING: &str = "*";

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSection {
    /// A group, by name or number: its members may read the region and connect to control sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// By command, or `*` for every one: users by name or number, groups with `@` before it, who may ask for
    /// it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub allow: BTreeMap<String, Vec<String>>,
}

impl AccessSection {
    /// Whether nobody but our own user and root may do anything.
    pub fn is_closed(&self) -> bool {
        *self == AccessSection::default()
    }

    /// Checks what does not depend on this machine's users.
    pub fn check(&self) -> Result<(), String> {
        let known = |command: &str| command == EVERYTHING || COMMANDS.contains(&command);
        if let Some(unknown) = self.allow.keys().find(|command| !known(command)) {
            return Err(format!(
                "access.allow: no control socket knows {unknown:?}; there are {}, and {EVERYTHING:?} for all of them",
                COMMANDS.join(", ")
            ));
        }
        match (&self.group, self.allow.is_empty()) {
            (None, false) => Err(
                "access.allow names others, who cannot reach a socket that is ours alone: name a group of theirs as access.group"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Who else may read what is made in a folder.
    ///
    /// # Errors
    /// There is no such group.
    pub fn sharing(&self) -> Result<Sharing, Failure> {
        match &self.group {
            None => Ok(Sharing::nobody()),
            Some(group) => group_of(group).map(Sharing::group),
        }
    }

    /// Who may ask what.
    ///
    /// # Errors
    /// There is no such user or group.
    pub fn gate(&self) -> Result<Gate, Failure> {
        let mut rules = Vec::new();
        for (command, who) in &self.allow {
            for name in who {
                let who = match name.strip_prefix('@') {
                    Some(group) => Who::Group(group_of(group)?),
                    None => Who::User(uid_of(name).ok_or_else(|| {
                        Failure::config(format!(
                            "access.allow.{command}: no user of this machine is called {name:?}"
                        ))
                    })?),
                };
                rules.push((command.clone(), who));
            }
        }
        Ok(Gate(rules))
    }
}

fn group_of(name: &str) -> Result<u32, Failure> {
    gid_of(name)
        .ok_or_else(|| Failure::config(format!("access: no group of this machine is called {name:?}")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    User(u32),
    Group(u32),
}

/// Who may ask what of a control socket.
#[derive(Clone, Debug, Default)]
pub struct Gate(Vec<(String, Who)>);

impl Gate {
    /// Whether somebody may ask for a command: our own user and root for everything, others for what they are
    /// named for.
    pub fn lets(&self, peer: &Peer, command: &str) -> bool {
        let is_named = |who: &Who| match *who {
            Who::User(uid) => peer.uid == uid,
            Who::Group(gid) => peer.is_of_group(gid),
        };
        let mut rules = self.0.iter().filter(|(of, _)| of == command || of == EVERYTHING);
        peer.is_ours() || rules.any(|(_, who)| is_named(who))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(text: &str) -> AccessSection {
        tickwire_console::settings::read(text).unwrap()
    }

    #[test]
    fn others_may_ask_for_what_they_are_named_for_and_nothing_else() {
        let mut other = Peer::ourselves();
        (other.uid, other.gid) = (4_242, 4_243);
        let gate = section(
            "group = \"4243\"\nallow = { status = [\"4242\"], pull = [\"@4243\"], vol = [\"4241\", \"@4244\"] }",
        )
        .gate()
        .unwrap();
        let may = ["status", "pull", "vol", "resume", "*"].map(|command| gate.lets(&other, command));
        assert_eq!(may, [true, true, false, false, false]);
        let all = section("group = \"4243\"\nallow = { \"*\" = [\"4242\"] }")
            .gate()
            .unwrap();
        assert!(all.lets(&other, "resume"));
        let nobody = AccessSection::default().gate().unwrap();
        assert!(!nobody.lets(&other, "status") && nobody.lets(&Peer::ourselves(), "stop"));
        other.uid = 0;
        assert!(nobody.lets(&other, "stop"), "root");
    }

    #[test]
    fn what_could_never_apply_is_refused() {
        let refused = |text: &str| section(text).check().unwrap_err();
        assert!(refused("allow = { status = [\"root\"] }").contains("access.group"));
        assert!(refused("group = \"root\"\nallow = { statsu = [\"root\"] }").contains("subscribe"));
        section("group = \"root\"\nallow = { status = [\"root\"] }")
            .check()
            .unwrap();
        let unknown = section("group = \"no such group\"").sharing().unwrap_err();
        assert!(unknown.message.contains("no such group"), "{unknown}");
        let unknown = section("group = \"0\"\nallow = { pull = [\"no such user\"] }")
            .gate()
            .unwrap_err();
        assert!(unknown.message.contains("access.allow.pull"), "{unknown}");
    }
}
