//! A thread that a pinned thread starts runs on its core, and takes it away from who was pinned to have it
//! alone: helpers are started beside it.

use std::path::PathBuf;

use crate::source::{code_only, is_of_tests, production_only, read, shown};

/// How a thread is started that inherits the core, each in two parts so that this file passes its rule.
const STARTS: [&str; 2] = [
    concat!("thread::Builder", "::new("),
    concat!("thread::", "spawn("),
];

/// Who may: where it is done rightly, who is started before any thread is pinned, who measures on cores that
/// it chooses, the feed daemon, whose threads are started by one that is never pinned, and Python, where the
/// caller's cores are the caller's to choose.
const MAY: [&str; 8] = [
    "bindings/",
    "crates/runtime/src/affinity.rs",
    "crates/console/",
    "crates/runtime/src/host/",
    "apps/tickwire-lab/",
    "crates/feedd/src/daemon.rs",
    "examples/",
    "xtask/",
];

/// Threads that inherit the core of who starts them.
pub(crate) fn inheriting(files: &[PathBuf]) -> Vec<String> {
    let mut findings = Vec::new();
    for path in files {
        let place = shown(path);
        let is_free = MAY.iter().any(|known| place.starts_with(known));
        if is_free || is_of_tests(&place) || place.contains("/examples/") {
            continue;
        }
        findings.extend(starts_in(&read(path)).into_iter().map(|line| {
            format!(
                "{place}:{line}: start it by tickwire_runtime::affinity::beside, or it runs on the core of the thread that starts it"
            )
        }));
    }
    findings
}

/// Lines of production code that start a thread.
fn starts_in(text: &str) -> Vec<usize> {
    let code = code_only(&production_only(text));
    let found = STARTS.iter().flat_map(|start| code.match_indices(start));
    let mut lines: Vec<usize> = found
        .map(|(at, _)| code[..at].matches('\n').count() + 1)
        .collect();
    lines.sort_unstable();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_starts_a_thread_where_he_stands_is_found_and_a_test_may() {
        let [builder, plain] = STARTS;
        let text = format!(
            "//! std::{plain}\nlet a = std::{builder});\nbeside(\"a\", run)?;\nstd::{plain}run);\n#[cfg(test)]\nmod tests {{ fn a() {{ std::{plain}run); }} }}\n"
        );
        assert_eq!(starts_in(&text), [2, 4]);
    }
}
