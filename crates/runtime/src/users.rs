//! Users of this machine: who is at the other end of a local socket, who owns what is read, and what they are
//! called.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use crate::sys;

/// The variable that names one more user whose regions and control sockets are trusted, beside our own and
/// root.
pub const OWNER_VARIABLE: &str = "TICKWIRE_OWNER";

/// The effective user of this process.
pub fn own_uid() -> u32 {
    sys::effective_user()
}

/// The number of a user by name, or by the number itself in digits.
pub fn uid_of(name: &str) -> Option<u32> {
    let number = || name.parse().ok();
    sys::user(Err(name)).map(|(uid, _)| uid).or_else(number)
}

/// The number of a group by name, or by the number itself in digits.
pub fn gid_of(name: &str) -> Option<u32> {
    let number = || name.parse().ok();
    sys::group(name).or_else(number)
}

/// What a user is called, with the number: `alice (uid 1000)`, or `uid 1000` of one without a name.
pub fn user_text(uid: u32) -> String {
    match sys::user(Ok(uid)) {
        Some((_, name)) => format!("{name} (uid {uid})"),
        None => format!("uid {uid}"),
    }
}

/// Whose regions and control sockets are trusted: our own user's and root's, and those of one more user who
/// was named.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Owners {
    also: Option<u32>,
}

impl Owners {
    /// Our own user and root alone.
    pub fn own() -> Owners {
        Owners::default()
    }

    /// One more user.
    pub fn and(uid: u32) -> Owners {
        Owners { also: Some(uid) }
    }

    /// As named, else as [`OWNER_VARIABLE`] says, else our own user and root alone.
    ///
    /// # Errors
    /// The name that is no user's.
    pub fn named(name: Option<&str>) -> Result<Owners, String> {
        let variable = std::env::var(OWNER_VARIABLE).ok().filter(|name| !name.is_empty());
        let Some(name) = name.map(str::to_owned).or(variable) else {
            return Ok(Owners::own());
        };
        let uid = uid_of(&name).ok_or_else(|| format!("no user of this machine is called {name:?}"))?;
        Ok(Owners::and(uid))
    }

    /// Whether a user is one of them.
    pub fn include(self, uid: u32) -> bool {
        uid == 0 || uid == own_uid() || self.also == Some(uid)
    }
}

/// A process at the other end of a local socket, as the kernel knows it (`SO_PEERCRED`): of a client when it
/// connected, of a server when it began to listen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// Its process id; it may be gone.
    pub pid: u32,
    /// The user's name, where there is one.
    pub name: Option<String>,
    groups: Vec<u32>,
}

impl Peer {
    /// Who is at the other end.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(stream: &UnixStream) -> io::Result<Peer> {
        let fd = stream.as_fd();
        let found: sys::PeerCredentials = sys::get_option(fd, libc::SOL_SOCKET, libc::SO_PEERCRED)?;
        Ok(Peer {
            uid: found.uid,
            gid: found.gid,
            pid: found.pid.unsigned_abs(),
            name: sys::user(Ok(found.uid)).map(|(_, name)| name),
            // Kernels before 4.13 do not say; the effective group is all that is known then.
            groups: sys::peer_groups(fd).unwrap_or_default(),
        })
    }

    /// This process itself, as others would see it.
    pub fn ourselves() -> Peer {
        let uid = own_uid();
        Peer {
            uid,
            gid: 0,
            pid: std::process::id(),
            name: sys::user(Ok(uid)).map(|(_, name)| name),
            groups: Vec::new(),
        }
    }

    /// Whether it is our own user or root.
    pub fn is_ours(&self) -> bool {
        self.uid == 0 || self.uid == own_uid()
    }

    /// Whether its process is of a group.
    pub fn is_of_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

impl fmt::Display for Peer {
    /// `alice (uid 1000, process 4242)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} (uid {}, process {})", self.uid, self.pid),
            None => write!(f, "uid {} (process {})", self.uid, self.pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_socket_are_ourselves() {
        let (one, other) = UnixStream::pair().unwrap();
        for end in [one, other] {
            let peer = Peer::of(&end).unwrap();
            assert_eq!((peer.uid, peer.pid), (own_uid(), std::process::id()));
            assert!(peer.is_ours() && peer.is_of_group(peer.gid), "{peer:?}");
            assert!(peer.to_string().contains(&format!("uid {}", peer.uid)), "{peer}");
        }
    }

    #[test]
    fn users_and_groups_are_found_by_name_and_by_number() {
        assert_eq!((uid_of("root"), gid_of("root")), (Some(0), Some(0)));
        assert_eq!((uid_of("4242"), gid_of("4242")), (Some(4242), Some(4242)));
        assert_eq!(uid_of("no such user"), None);
        assert!(user_text(0).contains("uid 0"));
        let owners = Owners::named(Some("4242")).unwrap();
        assert!(owners.include(0) && owners.include(own_uid()) && owners.include(4242));
        assert!(!owners.include(4243) && !Owners::own().include(4242));
        assert!(
            Owners::named(Some("no such user"))
                .unwrap_err()
                .contains("no such user")
        );
    }
}
