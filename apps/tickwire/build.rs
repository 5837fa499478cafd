//! Which commit the program is built from, for `tickwire --version` and reports: from the environment
//! variable TICKWIRE_COMMIT, else from the repository's own files, without git. A source archive has neither:
//! the version then stands alone.
//!
//! Only optimised builds know it: in others every commit would build the whole program once more.

use std::fs;
use std::path::{Path, PathBuf};

/// As many digits as are unique in any repository of this size, and as can be read out.
const DIGITS: usize = 12;

fn main() {
    // Not `rerun-if-changed=build.rs`: the lab's program shares this script, and has no such file beside it;
    // Cargo would build both programs anew each time. A script that has changed is run again without it.
    println!("cargo::rerun-if-env-changed=TICKWIRE_COMMIT");
    let said = std::env::var("TICKWIRE_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty());
    let mut read = Vec::new();
    let found = said.or_else(|| {
        let is_optimised = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
        let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?).join("../..");
        is_optimised.then(|| commit_of(&root, &mut read)).flatten()
    });
    for path in read {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    // The folder of a build is named after its profile: OUT_DIR is PROFILE/build/PACKAGE/out.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let profile = out.ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.and_then(|name| name.to_str()).unwrap_or("unknown");
    // With a record of a training run, as `cargo xtask pgo` builds it, it is another program.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let trained = if flags.contains("profile-use") { "+pgo" } else { "" };
    println!("cargo::rustc-env=TICKWIRE_PROFILE={profile}{trained}");
    if profile == "dist" {
        // Cargo strips no program of a package that has settings of its own in the profile, as this one has.
        // `-s` alone would stand before what rustc says of debug information, and not hold.
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
        if has_rust_lld() {
            // Functions of the same instructions are there once. No function is told from another by its
            // address, which Rust does not promise anyway.
            println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        }
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    match found {
        Some(commit) => {
            println!("cargo::rustc-env=TICKWIRE_COMMIT={commit}");
            println!("cargo::rustc-env=TICKWIRE_VERSION={version} ({commit})");
        }
        None => println!("cargo::rustc-env=TICKWIRE_VERSION={version}"),
    }
}

/// Whether the linker is the one that comes with Rust, as it is on this target unless another one is asked
/// for: GNU's does not know what it is told here.
fn has_rust_lld() -> bool {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let flags = var("CARGO_ENCODED_RUSTFLAGS");
    let asks_for_another = !var("RUSTC_LINKER").is_empty()
        || ["linker", "fuse-ld", "link-self-contained"]
            .iter()
            .any(|word| flags.contains(word));
    if var("TARGET") != TARGET || var("HOST") != TARGET || asks_for_another {
        return false;
    }
    let asked = std::process::Command::new(var("RUSTC"))
        .args(["--print", "sysroot"])
        .output();
    let sysroot = asked.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    let linker = Path::new("lib/rustlib").join(TARGET).join("bin/gcc-ld/ld.lld");
    Path::new(&sysroot).join(linker).is_file()
}

/// The commit that is checked out in `root`, shortened; `read` gets the files that say so, and nothing that
/// is not there: cargo would build again and again for it.
pub(crate) fn commit_of(root: &Path, read: &mut Vec<PathBuf>) -> Option<String> {
    let mut text = |path: PathBuf| {
        let text = fs::read_to_string(&path).ok()?;
        read.push(path);
        Some(text)
    };
    let git = root.join(".git");
    // Of a work tree beside others, `.git` is a file that names the folder.
    let git = match git.is_dir() {
        true => git,
        false => root.join(text(git)?.trim().strip_prefix("gitdir:")?.trim()),
    };
    let head = text(git.join("HEAD"))?;
    let commit = match head.trim().strip_prefix("ref: ") {
        None => head.trim().to_owned(),
        Some(branch) => {
            // Branches are kept once for all work trees.
            let common = git
                .join("commondir")
                .is_file()
                .then(|| text(git.join("commondir")))
                .flatten();
            let common = common.map_or(git.clone(), |folder| git.join(folder.trim()));
            match text(common.join(branch)) {
                Some(commit) => commit.trim().to_owned(),
                None => packed(&text(common.join("packed-refs"))?, branch)?.to_owned(),
            }
        }
    };
    let is_hash = commit.len() >= DIGITS && commit.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash.then(|| commit[..DIGITS].to_owned())
}

/// The commit of a branch in git's list of packed references.
fn packed<'t>(list: &'t str, branch: &str) -> Option<&'t str> {
    let mut rows = list.lines().filter_map(|line| line.split_once(' '));
    rows.find(|(_, name)| *name == branch).map(|(commit, _)| commit)
}
