//! Runs of `tickwire lab`, and what they have left.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::common::{Folder, text, tickwire};

/// One trade after the other at one interval, few of them, of `quadra`.
pub(crate) const FEW: [&str; 4] = [
    "run.samples=20",
    "run.warm_up=2",
    "run.repetitions=1",
    "load.intervals_us=[500]",
];

/// Runs a scenario into a folder: what was said, and where its results are.
pub(crate) fn lab(folder: &Folder, scenario: &str, set: &[&str]) -> (Output, PathBuf) {
    let mut command = tickwire();
    command
        .args(["lab", "run", scenario, "--quiet", "--out"])
        .arg(&folder.0);
    // A busy machine may let any thread wait for seconds: that is no loss.
    for value in [&"load.timeout_ms=30000"].into_iter().chain(set) {
        command.args(["--set", value]);
    }
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    let said = text(&output.stdout);
    let path = said.lines().find_map(|line| line.strip_prefix("results: "));
    let path = PathBuf::from(path.unwrap_or_default());
    (output, path)
}

/// The same of one that must succeed: its manifest, and where its results are.
pub(crate) fn measured(folder: &Folder, scenario: &str, set: &[&str]) -> (Value, PathBuf) {
    let (output, results) = lab(folder, scenario, set);
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}{errors}");
    (manifest(&results), results)
}

/// What a run has left for programs.
pub(crate) fn manifest(results: &Path) -> Value {
    let json = std::fs::read_to_string(results.join("manifest.json")).expect("a manifest");
    serde_json::from_str(&json).expect("JSON")
}

/// The cases of a manifest.
pub(crate) fn cases(manifest: &Value) -> &[Value] {
    manifest["cases"].as_array().expect("cases")
}

/// One of them by its name.
pub(crate) fn case<'a>(manifest: &'a Value, name: &str) -> &'a Value {
    let found = cases(manifest).iter().find(|case| case["name"] == name);
    found.unwrap_or_else(|| panic!("no case '{name}'"))
}

/// What the first repetition of a case has measured so.
pub(crate) fn count(case: &Value, measure: usize) -> u64 {
    let summary = &case["repetitions"][0]["summaries"][measure];
    summary["count"].as_u64().unwrap_or(0)
}
