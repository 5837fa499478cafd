//! Finds the folder of recorded data for the marks, and has them expanded anew when it changes.
//!
//! Cargo watches the folder where there is one. A folder that does not exist cannot be watched without
//! building every test on every run; `cargo xtask` touches this file when the folder has come, and a test of
//! `crates/testdata` fails until then.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TICKWIRE_SHARED");
    println!("cargo::rerun-if-env-changed=CI");
    let root = root();
    for part in ["captures", "specs", "fix"].map(|part| root.join(part)) {
        if part.exists() {
            println!("cargo::rerun-if-changed={}", part.display());
        }
    }
    println!("cargo::rustc-env=TICKWIRE_RECORDED_ROOT={}", root.display());
    let is_required = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    println!("cargo::rustc-env=TICKWIRE_RECORDED_REQUIRED={is_required}");
}

/// The folder that the variable names, seen from the workspace's root as cargo's tests see it; else
/// `../shared`.
fn root() -> PathBuf {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let workspace = here.ancestors().nth(2).unwrap_or(Path::new("."));
    match std::env::var_os("TICKWIRE_SHARED") {
        Some(root) => workspace.join(root),
        None => workspace.join("../shared"),
    }
}
