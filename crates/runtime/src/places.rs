//! Where programs that run find each other, when nobody says so.
//!
//! ```text
//!  1 the option (--folder, --socket)     3 the key of the configuration (daemon.folder), for the program that writes
//!  2 TICKWIRE_FOLDER                     4 root: /run/tickwire      others: $XDG_RUNTIME_DIR/tickwire, else /run/user/UID/tickwire
//! ```
//! A reader looks at the folder of its own user first, then at /run/tickwire, where a daemon of the system
//! is.

use std::path::{Path, PathBuf};

use crate::shared::REGION_FILE;
use crate::users::own_uid;

/// The variable that says the folder of the daemon and of everybody who attaches to it.
pub const FOLDER_VARIABLE: &str = "TICKWIRE_FOLDER";
/// The variable of the XDG Base Directory Specification 0.8 for sockets and the like of one user, which
/// nobody else can write to.
const RUNTIME_VARIABLE: &str = "XDG_RUNTIME_DIR";
/// Where the folder of a daemon of the system is.
const SYSTEM: &str = "/run/tickwire";

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|v| !v.is_empty())
        .map(PathBuf::from)
}

/// The folder below which a user's sockets and regions are: `XDG_RUNTIME_DIR`, else /run for root and
/// /run/user/UID for others.
fn runtime_root(told: Option<PathBuf>, uid: u32) -> PathBuf {
    told.unwrap_or_else(|| match uid {
        0 => "/run".into(),
        uid => format!("/run/user/{uid}").into(),
    })
}

fn folder_of(told: Option<PathBuf>, uid: u32) -> PathBuf {
    match uid {
        0 => SYSTEM.into(),
        uid => runtime_root(told, uid).join("tickwire"),
    }
}

/// The folder of a program that writes and was not told another: /run/tickwire for root, whose services have
/// it; for other users `tickwire` in their own.
pub fn default_folder() -> PathBuf {
    folder_of(variable(RUNTIME_VARIABLE), own_uid())
}

/// The folder of a program that reads: the one it was told, else `TICKWIRE_FOLDER`, else the first of our own
/// and /run/tickwire that has a region, else our own.
pub fn reader_folder(told: Option<PathBuf>) -> PathBuf {
    let own = default_folder;
    let has_region = |folder: &PathBuf| folder.join(REGION_FILE).exists();
    told.or_else(|| variable(FOLDER_VARIABLE))
        .or_else(|| [own(), SYSTEM.into()].into_iter().find(has_region))
        .unwrap_or_else(own)
}

/// The folder of a program that writes: the one it was told, else `TICKWIRE_FOLDER`, else that of its
/// configuration, else the default.
pub fn writer_folder(told: Option<&Path>, configured: Option<&Path>) -> PathBuf {
    told.map(Path::to_owned)
        .or_else(|| variable(FOLDER_VARIABLE))
        .or_else(|| configured.map(expand))
        .unwrap_or_else(default_folder)
}

/// A path of a configuration whose first part may be `$XDG_RUNTIME_DIR`, as a shell would read it; where the
/// variable is not set it is /run for root and /run/user/UID for others.
pub fn expand(path: &Path) -> PathBuf {
    match path.strip_prefix("$XDG_RUNTIME_DIR") {
        Ok(rest) => runtime_root(variable(RUNTIME_VARIABLE), own_uid()).join(rest),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_folder_of_his_own_and_the_system_another() {
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(folder_of(None, 0), path("/run/tickwire"));
        assert_eq!(folder_of(Some(path("/run/user/0")), 0), path("/run/tickwire"));
        assert_eq!(folder_of(Some(path("/x")), 1000), path("/x/tickwire"));
        assert_eq!(folder_of(None, 1000), path("/run/user/1000/tickwire"));
        assert_eq!(runtime_root(None, 0), path("/run"));
        assert_eq!(expand(Path::new("/a/b")), path("/a/b"));
        assert!(expand(Path::new("$XDG_RUNTIME_DIR/quoter")).is_absolute());
        assert_eq!(reader_folder(Some(path("told"))), path("told"));
        assert_eq!(
            writer_folder(Some(Path::new("told")), Some(Path::new("key"))),
            path("told")
        );
    }
}
