//! Which test programs run one after the other, and which beside each other.
//!
//! Programs that start programs of ours mostly wait, for processes and sockets: two lanes of them use what a
//! third one leaves, in which tests compute. When one has ended, other steps of `check` take its place.

use std::collections::BTreeSet;
use std::path::Path;

use crate::source::{manifests, shown};

/// Test programs that run one after the other.
pub(crate) struct Lane {
    /// Also of its log.
    pub(crate) name: &'static str,
    /// So far does it step back behind the others.
    pub(crate) back: i8,
    /// What selects the targets of each call of cargo.
    pub(crate) calls: Vec<Vec<String>>,
}

/// The program with everything: its tests start it.
const PROGRAM: &str = "apps/tickwire";

/// Their tests make network namespaces or measure: one of them at a time.
const HOSTS: [&str; 4] = [
    "apps/tickwire-lab",
    "crates/kernelpath",
    "crates/receive",
    "crates/aeron",
];

/// The lanes, with every test target of the workspace in one of them.
pub(crate) fn lanes() -> [Lane; 3] {
    let packages = manifests()
        .into_iter()
        .map(|(folder, manifest)| (shown(&folder), targets(&folder, &manifest)));
    let [programs, hosts, computing] = dealt(&packages.collect::<Vec<_>>());
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let alone = |name, names: &BTreeSet<String>| Lane {
        name,
        back: 0,
        calls: vec![tests(names)],
    };
    [
        alone("programs", &programs),
        alone("hosts", &hosts),
        Lane {
            name: "computing",
            back: 5,
            calls: vec![
                words(&["--lib", "--bins", "--examples"]),
                words(&["--doc"]),
                tests(&computing),
            ],
        },
    ]
}

/// The options of cargo that select these.
fn tests(names: &BTreeSet<String>) -> Vec<String> {
    names
        .iter()
        .flat_map(|name| ["--test".to_owned(), name.clone()])
        .collect()
}

/// The names of a package's test programs.
fn targets(folder: &Path, manifest: &toml::Table) -> BTreeSet<String> {
    let declared = manifest.get("test").and_then(toml::Value::as_array);
    let declared = declared.into_iter().flatten();
    let named = declared.filter_map(|test| test.get("name")?.as_str().map(str::to_owned));
    let files = std::fs::read_dir(folder.join("tests"))
        .into_iter()
        .flatten()
        .flatten();
    let found = files.filter_map(|file| {
        let path = file.path();
        // A file, or a folder of several that are one program.
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let is_program = is_source || path.join("main.rs").exists();
        is_program.then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))?
    });
    named.chain(found).collect()
}

/// Packages' test programs dealt out. One name may be of several packages, and cargo runs them all: it goes
/// with the first of the lanes that has it.
fn dealt(packages: &[(String, BTreeSet<String>)]) -> [BTreeSet<String>; 3] {
    let of = |is: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
        let chosen = packages.iter().filter(|(folder, _)| is(folder));
        chosen.flat_map(|(_, names)| names.iter().cloned()).collect()
    };
    let program = of(&|folder| folder == PROGRAM);
    let half = program.iter().nth(program.len() / 2).cloned().unwrap_or_default();
    let (programs, later): (BTreeSet<_>, BTreeSet<_>) = program.into_iter().partition(|name| *name < half);
    let mut hosts = of(&|folder| HOSTS.contains(&folder));
    hosts.extend(later);
    hosts.retain(|name| !programs.contains(name));
    let mut computing = of(&|_| true);
    computing.retain(|name| !programs.contains(name) && !hosts.contains(name));
    [programs, hosts, computing]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{HOSTS, PROGRAM, lanes};

    #[test]
    fn every_test_program_runs_once() {
        let lanes = lanes();
        let names: Vec<&String> = lanes
            .iter()
            .flat_map(|lane| &lane.calls)
            .filter(|call| call.iter().any(|word| word == "--test"))
            .flatten()
            .filter(|word| *word != "--test")
            .collect();
        let once: BTreeSet<&String> = names.iter().copied().collect();
        assert_eq!(names.len(), once.len());
        let metadata = crate::supply::metadata().expect("cargo knows the workspace");
        let packages = metadata["packages"].as_array().expect("a list");
        let own = packages.iter().filter(|package| package["source"].is_null());
        let targets = own.flat_map(|package| package["targets"].as_array().expect("a list"));
        let tests = targets.filter(|target| target["kind"][0] == "test");
        let known: BTreeSet<String> = tests
            .map(|target| target["name"].as_str().expect("a name").to_owned())
            .collect();
        assert_eq!(once.into_iter().cloned().collect::<BTreeSet<String>>(), known);
        for folder in HOSTS.iter().chain([&PROGRAM]) {
            assert!(
                crate::run::root().join(folder).join("Cargo.toml").exists(),
                "{folder}"
            );
        }
    }
}
