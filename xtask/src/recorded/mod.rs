//! Recorded data from the commands' side: whether it is there, having the marks of tests expanded anew when
//! it has come or gone, what to say about tests that were skipped for want of it, and fetching what of it is
//! public.

mod fetch;

pub(crate) use fetch::run as fetch;

use crate::run::{root, target_dir};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How the mark's reason begins, and a benchmark's line behind `skipped: `.
pub(crate) const REASON: &str = "needs recorded data: ";
/// Touched, it has the marks expanded anew: the build script of the crate that holds them.
const EXPANDER: &str = "crates/recorded/build.rs";

/// The folder of recorded data, there or not.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os("TICKWIRE_SHARED") {
        Some(folder) => root().join(folder),
        None => root().join("../shared"),
    }
}

/// Has the marks expanded anew if the folder has come or gone since the last command. Cargo sees for itself
/// what changes within a folder that is there.
pub(crate) fn freshen() {
    let now = format!("{} {}", folder().display(), parts(&folder()));
    let seen = target_dir().join("xtask/recorded-data");
    if fs::read_to_string(&seen).is_ok_and(|seen| seen == now) {
        return;
    }
    let touched = File::options()
        .append(true)
        .open(root().join(EXPANDER))
        .and_then(|file| file.set_modified(SystemTime::now()));
    // A source tree that cannot be written to has its tests built once: nothing is stale.
    if touched.is_ok() {
        let _ = fs::create_dir_all(target_dir().join("xtask"));
        let _ = fs::write(seen, now);
    }
}

/// Which parts of the folder are there.
fn parts(folder: &Path) -> String {
    let there = ["captures", "specs", "fix"]
        .into_iter()
        .filter(|part| folder.join(part).exists());
    there.collect::<Vec<_>>().join(" ")
}

/// The line on tests that were skipped for want of recorded data: what is missing, and how to get it.
pub(crate) fn explained(paths: &[&str], count: usize) -> String {
    let folder = folder();
    let shown = fs::canonicalize(&folder).unwrap_or(folder.clone());
    let what = if folder.exists() {
        let mut paths = paths.to_vec();
        paths.sort_unstable();
        paths.dedup();
        format!("{} under {}", paths.join(", "), shown.display())
    } else {
        "the folder ../shared (TICKWIRE_SHARED names another)".to_owned()
    };
    format!(
        "skipped {count} for want of recorded data: {what} is missing; `cargo xtask fetch-data` brings what is public, \
         CONTRIBUTING.md says what the rest is"
    )
}
