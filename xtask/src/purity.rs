//! The sans-I/O crates stay pure: no operating system, no clock, no global, no float, no allocation-happy
//! container on the path, imports one way only. Each finding names the replacement.

use crate::run::{Context, Outcome, root};
use crate::source::{self, lines_with, production_only, read, shown};
use std::path::Path;

/// The crates that hold no socket, thread, clock or global, and what of the project each may import. This is
/// the table of ARCHITECTURE: a crate not named here may import what it likes.
pub(crate) const PURE: &[(&str, &[&str])] = &[
    ("market", &[]),
    ("wire-core", &["market"]),
    ("wire-nasdaq", &["market", "wire-core"]),
    ("wire-cboe", &["market", "wire-core"]),
    ("wire-nyse", &["market", "wire-core"]),
    ("wire-sip", &["market", "wire-core"]),
    ("wire-cme", &["market", "wire-core"]),
    ("wire-moex", &["market", "wire-core"]),
    ("wire-dbn", &["market", "wire-core"]),
    (
        "wire",
        &[
            "wire-core",
            "wire-nasdaq",
            "wire-cboe",
            "wire-nyse",
            "wire-sip",
            "wire-cme",
            "wire-moex",
            "wire-dbn",
        ],
    ),
    ("feed-core", &["market", "wire-core"]),
    (
        "feed-nasdaq",
        &["market", "feed-core", "wire-core", "wire-nasdaq"],
    ),
    ("feed-cboe", &["market", "feed-core", "wire-core", "wire-cboe"]),
    ("feed-nyse", &["market", "feed-core", "wire-core", "wire-nyse"]),
    (
        "feed-sip",
        &["market", "feed-core", "feed-nasdaq", "wire-core", "wire-sip"],
    ),
    ("feed-cme", &["market", "feed-core", "wire-core", "wire-cme"]),
    ("feed-moex", &["market", "feed-core", "wire-core", "wire-moex"]),
    (
        "feed",
        &[
            "market",
            "feed-core",
            "feed-nasdaq",
            "feed-cboe",
            "feed-nyse",
            "feed-sip",
            "feed-cme",
            "feed-moex",
        ],
    ),
    ("book", &["market"]),
    ("shm", &["market"]),
    ("persist", &["market"]),
    ("fix", &["market", "persist"]),
    ("fixmsg", &["market", "fix"]),
    ("options", &["market"]),
    ("trading", &["market", "book", "options"]),
    ("language", &["market", "book", "trading"]),
    (
        "exchange",
        &["market", "wire", "book", "fix", "fixmsg", "persist"],
    ),
    ("kernel", &["wire"]),
];

/// Third-party crates a pure crate may depend on.
const PURE_DEPENDENCIES: &[&str] = &["cpufeatures", "libm", "roxmltree"];

/// Files that may hold unsafe code although their crate denies it, or is not one of the system's: native code
/// of strategy files is called by address.
const UNSAFE_FILES: &[&str] = &[
    "crates/book/src/prefetch.rs",
    "crates/language-native/src/lib.rs",
    "crates/fix/src/digits.rs",
    "crates/fix/src/scan.rs",
    "crates/options/src/simd.rs",
    "crates/wire-core/src/pod.rs",
    "crates/wire-core/src/vectors.rs",
];

/// Files of pure crates that may name an atomic type: the word of shared memory, over which everything else
/// is generic; and the words that a FIX store lasts in.
const ATOMIC_FILES: &[&str] = &[
    "crates/fix/src/lasting.rs",
    "crates/fix/src/lasting/tests.rs",
    "crates/shm/src/word.rs",
];

/// Files of pure crates, or folders, that may compute with floating point, and why it stays outside prices
/// and quantities: an option's value is a real number, and becomes a price by `options/src/edge.rs` alone,
/// rounded to a tick by name. The wanted quotes of a ladder are ticks, made from such values where they are
/// made. A portfolio's Greeks and what they explain of its gain are real numbers; its money is not.
const FLOAT_FILES: &[&str] = &[
    "crates/options/src/",
    "crates/trading/src/eye/tests.rs",
    "crates/trading/src/portfolio/mod.rs",
    "crates/trading/src/portfolio/risk.rs",
    "crates/trading/src/portfolio/tests.rs",
    "crates/trading/src/quoter/ladder.rs",
    "crates/trading/src/quoter/tests.rs",
];

/// What a pure crate must not say, and what it says instead.
const BANNED: &[(&str, &str)] = &[
    (
        "std::net",
        "take bytes as an argument; sockets live in tickwire-runtime",
    ),
    (
        "std::fs",
        "take bytes as an argument; files are read in tickwire-runtime",
    ),
    (
        "std::io",
        "take bytes, return bytes; I/O lives in tickwire-runtime",
    ),
    (
        "std::env",
        "take a config struct in `new`; the app reads the environment",
    ),
    ("std::process", "return an error; only the app ends the process"),
    (
        "std::thread",
        "run to completion on the caller's thread; threads are started in the app",
    ),
    ("std::sync", "own the state in a struct and take &mut self"),
    (
        "std::time",
        "take `now: Nanos` as an argument; clocks live in tickwire-runtime",
    ),
    (
        "Instant::now",
        "take `now: Nanos` as an argument; clocks live in tickwire-runtime",
    ),
    (
        "SystemTime",
        "take `now: Nanos` as an argument; clocks live in tickwire-runtime",
    ),
    ("std", "use core or alloc; `extern crate std` is for tests only"),
    (
        "print!",
        "return an event or bump market::Counters; the app prints",
    ),
    (
        "println!",
        "return an event or bump market::Counters; the app prints",
    ),
    (
        "eprintln!",
        "return an event or bump market::Counters; the app prints",
    ),
    ("dbg!", "remove it"),
    ("static mut", "own the state in a struct and take &mut self"),
    ("thread_local!", "own the state in a struct and take &mut self"),
    ("OnceLock", "own the state in a struct and take &mut self"),
    ("Mutex", "own the state in a struct and take &mut self"),
    (
        "AtomicU64",
        "bump market::Counters; shared memory is written by tickwire-shm",
    ),
    (
        "AtomicUsize",
        "bump market::Counters; shared memory is written by tickwire-shm",
    ),
    (
        "HashMap",
        "index an array by a dense id; BTreeMap in a naive oracle",
    ),
    (
        "HashSet",
        "index a bit set by a dense id; BTreeSet in a naive oracle",
    ),
    (
        ".unwrap()",
        "handle the case, or state the local invariant: .expect(\"why it cannot fail\")",
    ),
];

/// The whole step.
pub(crate) fn check(_: &Context) -> Outcome {
    let rules = [
        ("banned", banned()),
        ("float", floats()),
        ("header", headers()),
        ("unsafe", unsafe_files()),
        ("imports", imports()),
    ];
    Outcome::of_rules(&rules, "cargo xtask purity")
}

/// Every production file of the pure crates: shown path and code without comments, strings and tests.
fn pure_files() -> impl Iterator<Item = (String, String)> {
    let files = PURE
        .iter()
        .flat_map(|(name, _)| source::files(&format!("crates/{name}/src"), "rs"));
    files.map(|path| (shown(&path), production_only(&read(&path))))
}

fn banned() -> Vec<String> {
    let mut findings = Vec::new();
    for (path, code) in pure_files() {
        let mut lines: Vec<usize> = Vec::new();
        let may = |word: &str| word.starts_with("Atomic") && ATOMIC_FILES.contains(&path.as_str());
        for (word, instead) in BANNED.iter().filter(|(word, _)| !may(word)) {
            for line in lines_with(&code, word) {
                // `std::net` is also `std`: the most telling message comes first in the table.
                if !lines.contains(&line) {
                    lines.push(line);
                    findings.push(format!("{path}:{line}: `{word}` in a sans-I/O crate: {instead}"));
                }
            }
        }
    }
    findings
}

fn floats() -> Vec<String> {
    let mut findings = Vec::new();
    for (path, code) in pure_files().filter(|(path, _)| !may_float(path)) {
        for line in ["f64", "f32"].iter().flat_map(|word| lines_with(&code, word)) {
            findings.push(format!(
                "{path}:{line}: floating point: use market::Price, Qty, Volume or a ratio of integers; a file that must is \
                 listed in FLOAT_FILES of xtask/src/purity.rs"
            ));
        }
    }
    findings
}

fn may_float(path: &str) -> bool {
    FLOAT_FILES
        .iter()
        .any(|file| path == *file || file.ends_with('/') && path.starts_with(file))
}

fn headers() -> Vec<String> {
    let mut findings = Vec::new();
    for (name, _) in PURE {
        let path = format!("crates/{name}/src/lib.rs");
        let text = read(&root().join(&path));
        let has_listed_unsafe = UNSAFE_FILES
            .iter()
            .any(|file| file.starts_with(&format!("crates/{name}/")));
        if !text.contains("#![no_std]") {
            findings.push(format!("{path}: add #![no_std]"));
        }
        if !(text.contains("#![forbid(unsafe_code)]")
            || has_listed_unsafe && text.contains("#![deny(unsafe_code)]"))
        {
            findings.push(format!("{path}: add #![forbid(unsafe_code)]"));
        }
    }
    findings
}

fn unsafe_files() -> Vec<String> {
    let mut findings = Vec::new();
    for (path, code) in pure_files().filter(|(path, _)| !UNSAFE_FILES.contains(&path.as_str())) {
        for line in lines_with(&code, "unsafe") {
            findings.push(format!(
                "{path}:{line}: unsafe code: wire_struct! of tickwire-wire-core carries layout proofs, tickwire-runtime the system calls; a file \
                 that must is listed in UNSAFE_FILES of xtask/src/purity.rs"
            ));
        }
    }
    findings
}

/// Imports point one way, and no dependency may bring the operating system in.
fn imports() -> Vec<String> {
    let mut findings = Vec::new();
    for (name, allowed) in PURE {
        let manifest = format!("crates/{name}/Cargo.toml");
        let table: toml::Table = read(&root().join(&manifest)).parse().unwrap_or_default();
        let dependencies = table.get("dependencies").and_then(toml::Value::as_table);
        for dependency in dependencies.into_iter().flat_map(toml::Table::keys) {
            match dependency.strip_prefix("tickwire-") {
                Some(ours) if !allowed.contains(&ours) => {
                    findings.push(format!("{manifest}: {name} may import {allowed:?}, not {ours}"));
                }
                None if !PURE_DEPENDENCIES.contains(&dependency.as_str()) => findings.push(format!(
                    "{manifest}: pure crates depend on {PURE_DEPENDENCIES:?} only, not {dependency}; dev-dependencies are free"
                )),
                _ => {}
            }
        }
    }
    findings
}

/// Whether a path lies in a pure crate.
pub(crate) fn is_listed_unsafe(path: &Path) -> bool {
    UNSAFE_FILES.contains(&shown(path).as_str())
}
