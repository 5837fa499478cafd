//! Lock files outside the workspace (fuzz targets, peers, the Python package): nothing builds them with every
//! change, so that a dependency that came or went in a crate is missed until `--locked` refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::run::root;
use crate::source::{files, read, shown};

/// What a package needs: dependencies that must be in a lock file, and those that may be.
#[derive(Debug, Default, PartialEq)]
struct Needs {
    must: BTreeSet<String>,
    may: BTreeSet<String>,
}

/// What a manifest says. Optional dependencies may be in a lock file; those of tests are, in the lock file of
/// the package itself alone.
fn needs(manifest: &toml::Table, is_own: bool) -> Needs {
    let mut needs = Needs::default();
    let mut take = |section: &toml::Table, is_of_tests: bool| {
        let of = |key: &str| section.get(key).and_then(toml::Value::as_table);
        let tables = [
            ("dependencies", true),
            ("build-dependencies", true),
            ("dev-dependencies", is_of_tests),
        ];
        for (key, counts) in tables {
            for (name, value) in of(key).into_iter().flatten() {
                let renamed = value.get("package").and_then(toml::Value::as_str);
                let name = renamed.unwrap_or(name).to_owned();
                let is_optional = value.get("optional").and_then(toml::Value::as_bool) == Some(true);
                match counts && !is_optional {
                    true => needs.must.insert(name),
                    false => needs.may.insert(name),
                };
            }
        }
    };
    take(manifest, is_own);
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    for section in targets.into_iter().flatten().filter_map(|(_, s)| s.as_table()) {
        take(section, is_own);
    }
    needs
}

/// Where a lock file's packages of ours differ from the manifests.
fn differences(lock: &toml::Table, manifests: &BTreeMap<String, toml::Table>, own: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let packages = lock.get("package").and_then(toml::Value::as_array);
    for package in packages.into_iter().flatten() {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str);
        let (Some(name), None) = (text("name"), text("source")) else {
            continue;
        };
        let Some(manifest) = manifests.get(name) else {
            findings.push(format!("{name} is in it, and no crate"));
            continue;
        };
        let needs = needs(manifest, name == own);
        let listed = package.get("dependencies").and_then(toml::Value::as_array);
        let listed = listed.into_iter().flatten().filter_map(toml::Value::as_str);
        // A name, and its version where the file has several.
        let listed: BTreeSet<String> = listed
            .filter_map(|entry| entry.split(' ').next().map(str::to_owned))
            .collect();
        let missing = needs.must.difference(&listed);
        findings
            .extend(missing.map(|dependency| format!("{name} needs {dependency}, which it does not have")));
        let unknown = listed
            .iter()
            .filter(|d| !needs.must.contains(*d) && !needs.may.contains(*d));
        findings.extend(unknown.map(|dependency| format!("{name} has {dependency} no longer")));
    }
    findings
}

/// Manifests of all packages of the project, by name.
fn all_manifests() -> BTreeMap<String, toml::Table> {
    let found = files("", "toml").into_iter();
    found
        .filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml"))
        .filter_map(|path| Some((name_of(&read(&path))?, read(&path).parse().ok()?)))
        .collect()
}

fn name_of(manifest: &str) -> Option<String> {
    let manifest: toml::Table = manifest.parse().ok()?;
    let name = manifest.get("package")?.get("name")?;
    name.as_str().map(str::to_owned)
}

/// Lock files that no longer say what the manifests do.
pub(crate) fn stale() -> Vec<String> {
    let manifests = all_manifests();
    let mut findings = Vec::new();
    let locks = files("", "lock").into_iter();
    let locks = locks.filter(|path| path.file_name().is_some_and(|name| name == "Cargo.lock"));
    for path in locks.filter(|path| path.parent() != Some(root())) {
        let manifest = path.parent().unwrap_or(Path::new("")).join("Cargo.toml");
        let own = name_of(&read(&manifest)).unwrap_or_default();
        let place = shown(&path);
        let lock: toml::Table = match read(&path).parse() {
            Ok(lock) => lock,
            Err(why) => {
                findings.push(format!("{place}: {why}"));
                continue;
            }
        };
        let again = format!("cargo update --workspace --manifest-path {}", shown(&manifest));
        let differences = differences(&lock, &manifests, &own);
        findings.extend(
            differences
                .into_iter()
                .map(|what| format!("{place}: {what}: {again}")),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_that_came_or_went_is_found_and_optional_ones_and_those_of_tests_are_not() {
        let manifest = |text: &str| text.parse::<toml::Table>().expect("TOML");
        let manifests = BTreeMap::from([
            (
                "ours".to_owned(),
                manifest(
                    "[dependencies]\nnew = '1'\nmaybe = { version = '1', optional = true }\n[dev-dependencies]\ntests = '1'\n[target.'cfg(unix)'.dependencies]\nother = { package = 'unix', version = '1' }",
                ),
            ),
            (
                "peer".to_owned(),
                manifest("[dependencies]\nours = { path = '..' }\n[dev-dependencies]\ntests = '1'"),
            ),
        ]);
        let lock = manifest(
            "[[package]]\nname = 'ours'\ndependencies = ['gone', 'unix 1.2.0']\n[[package]]\nname = 'peer'\ndependencies = ['ours', 'tests']\n[[package]]\nname = 'gone'\nsource = 'registry'",
        );
        assert_eq!(
            differences(&lock, &manifests, "peer"),
            [
                "ours needs new, which it does not have",
                "ours has gone no longer"
            ]
        );
    }
}
