//! What the program calls itself.

use std::sync::OnceLock;

static VERSION: OnceLock<Version> = OnceLock::new();

/// The version of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    /// As people read it, with the commit behind it where that is known.
    pub text: &'static str,
    /// The commit it was built from, shortened; `None` where nobody knows.
    pub commit: Option<&'static str>,
}

/// Says it, once, at the start of the program. Libraries do not know the commit: each commit would build all
/// of them once more.
pub fn set_version(version: Version) {
    let _ = VERSION.set(version);
}

/// What was said, else the version of these libraries.
pub fn version() -> Version {
    VERSION.get().copied().unwrap_or(Version {
        text: env!("CARGO_PKG_VERSION"),
        commit: None,
    })
}
