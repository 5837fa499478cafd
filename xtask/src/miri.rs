//! `cargo xtask miri`: the tests of every crate with `unsafe` code, interpreted by Miri, which sees reads of
//! what is not there, races, and broken aliasing rules.

use crate::command::{self, Findings};
use crate::run::{by_hand, root, target_dir};
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
Runs the tests of the crates with unsafe code under Miri, with a nightly toolchain (`rustup toolchain install nightly --component
miri,rust-src`): what a test does with system calls that Miri does not know, and what loom drives by stacks of its own, is left out.

  cargo xtask miri [CRATE…]

Exit code 1: a test failed or Miri found something. 2: there is no nightly toolchain with Miri.
";

/// What is interpreted: crate and the arguments of `cargo miri test`.
const RUNS: &[(&str, &[&str])] = &[
    ("shm", &["--lib"]),
    ("shm", &["--test", "arbitrary"]),
    ("shm", &["--test", "histogram"]),
    ("shm", &["--test", "region"]),
    ("shm", &["--test", "stress"]),
    ("book", &["--lib"]),
    ("runtime", &["--lib", "--", "spsc"]),
    ("fix", &["--lib", "--", "digits", "scan"]),
    ("options", &["--lib"]),
    ("wire-core", &["--lib"]),
    ("wire-core", &["--test", "layout"]),
];

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("miri", HELP, words, plan, work)
}

/// The crates that were named; none: all.
fn plan<'a>(words: &[&'a str]) -> Result<Vec<&'a str>, String> {
    let unknown = words.iter().find(|w| RUNS.iter().all(|(name, _)| name != *w));
    match unknown {
        Some(unknown) => Err(format!("no crate '{unknown}' with unsafe code is known here")),
        None => Ok(words.to_vec()),
    }
}

fn work(words: Vec<&str>) -> Result<Findings, String> {
    let known = by_hand("cargo").args(["+nightly", "miri", "--version"]).output();
    if !known.is_ok_and(|o| o.status.success()) {
        return Err("no Miri: `rustup toolchain install nightly --component miri,rust-src`".into());
    }
    let wanted = |name: &&str| words.is_empty() || words.contains(name);
    let mut findings = Findings::default();
    for (name, arguments) in RUNS.iter().filter(|(name, _)| wanted(name)) {
        let began = Instant::now();
        let mut command = by_hand("cargo");
        command
            .current_dir(root())
            .args(["+nightly", "miri", "test", "--locked", "--quiet"])
            .args(["--package", &format!("tickwire-{name}")])
            .arg("--target-dir")
            .arg(target_dir().join("miri"))
            .args(*arguments)
            // The stable toolchain's own variables would send the nightly one to the wrong compiler.
            .env_remove("RUSTC")
            .env_remove("RUSTDOC")
            .env_remove("RUSTUP_TOOLCHAIN")
            .env("PROPTEST_CASES", "2")
            .env(
                "MIRIFLAGS",
                "-Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation",
            );
        let is_good = command.status().is_ok_and(|status| status.success());
        let what = format!("tickwire-{name} {}", arguments.join(" "));
        findings.count(&what, began, is_good);
    }
    Ok(findings.sum_up())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every crate that may hold unsafe code is interpreted, or it is said why not.
    #[test]
    fn no_crate_with_unsafe_code_is_forgotten() {
        // Stands in for the C library and the start files; runs machine code that it has made: nothing that
        // Miri could interpret. `capi` opens files and starts threads; what it does with C's memory is three
        // reads and two writes, which its own tests and those in C go through.
        let left_out = ["bare", "capi", "language-native"];
        let mut forgotten = Vec::new();
        for entry in std::fs::read_dir(root().join("crates")).expect("crates/") {
            let folder = entry.expect("an entry").path();
            let name = folder
                .file_name()
                .and_then(|n| n.to_str())
                .expect("a name")
                .to_owned();
            let lib = std::fs::read_to_string(folder.join("src/lib.rs"));
            let main = std::fs::read_to_string(folder.join("src/main.rs"));
            let is_safe = lib
                .or(main)
                .is_ok_and(|text| text.contains("forbid(unsafe_code)"));
            let is_known = RUNS.iter().any(|(known, _)| *known == name) || left_out.contains(&name.as_str());
            if !is_safe && !is_known {
                forgotten.push(name);
            }
        }
        assert!(forgotten.is_empty(), "{forgotten:?}");
    }
}
