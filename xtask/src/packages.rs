//! What holds for the manifests: what every member inherits, what a published crate says and has, and no
//! dependency that nothing uses.

use crate::source::{self, code_only, files, read, shown};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a published crate has beside its manifest: crates.io asks for none of it, those who use the crate do.
const BESIDE: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// Members that are not published: the workspace names them without a version.
const VERSIONLESS: &[&str] = &[
    "tickwire-testdata",
    "tickwire-rig",
    "tickwire-recorded",
    "tickwire-lab-app",
];

/// Dependencies that the sources do not name, and who does.
const NAMED_ELSEWHERE: &[(&str, &str)] = &[("crates/fixmsg", "tickwire-fix")];

/// Whether a member is on its way to a registry.
pub(crate) fn is_published(manifest: &toml::Table) -> bool {
    let publish = manifest.get("package").and_then(|package| package.get("publish"));
    publish.and_then(toml::Value::as_bool) != Some(false)
}

/// Every member inherits version, licence and lints, and says what it is; one that is published says it in
/// the registry's words too.
pub(crate) fn manifests() -> Vec<String> {
    let mut findings = Vec::new();
    for (dir, manifest) in source::manifests() {
        let place = shown(&dir);
        let finding = |what: &str| format!("{place}/Cargo.toml: {what}");
        let package = |key: &str| manifest.get("package").and_then(|p| p.get(key));
        let inherited = |key: &str| package(key).and_then(|v| v.get("workspace")).is_some();
        for key in ["version", "edition", "rust-version", "license"] {
            if !inherited(key) {
                findings.push(finding(&format!("{key}.workspace = true")));
            }
        }
        if package("description").is_none() {
            findings.push(finding("add a description: its one reason to change"));
        }
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if lints.is_none() {
            findings.push(finding("[lints] workspace = true"));
        }
        if !is_published(&manifest) {
            continue;
        }
        if !inherited("publish") {
            findings.push(finding(
                "publish.workspace = true, or publish = false for a tool of this repository",
            ));
        }
        for (key, max) in [("keywords", 5), ("categories", 5)] {
            let count = package(key).and_then(toml::Value::as_array).map_or(0, Vec::len);
            if count == 0 || count > max {
                findings.push(finding(&format!(
                    "{key} = [...], one to {max}, for those who look for it in a registry"
                )));
            }
        }
        // A version here would have the registry ask for the other crate first, and it may ask for this one.
        let versioned = names(&manifest, "dev-dependencies").into_iter().filter(|name| {
            let entry = &manifest["dev-dependencies"][*name];
            name.starts_with("tickwire") && entry.get("workspace").is_some() && !VERSIONLESS.contains(name)
        });
        findings.extend(versioned.map(|name| {
            finding(&format!(
                "{name} is for tests alone: name it by its path, which is left out of the package"
            ))
        }));
        let missing = BESIDE.iter().filter(|name| !dir.join(name).exists());
        findings.extend(
            missing.map(|name| format!("{place}/{name}: link it: ln -s ../../{name} {place}/{name}")),
        );
    }
    findings
}

/// The directory of the member that a file belongs to.
fn member(path: &Path) -> Option<&Path> {
    path.ancestors()
        .skip(1)
        .find(|dir| dir.join("Cargo.toml").is_file())
}

/// What a published crate includes while it is built lies in its own folder, or its package does not build.
pub(crate) fn files_outside() -> Vec<String> {
    let mut findings = Vec::new();
    for (dir, manifest) in source::manifests() {
        if !is_published(&manifest) {
            continue;
        }
        let sources = files(&shown(&dir), "rs");
        for path in sources
            .iter()
            .filter(|path| member(path) == Some(&dir) && is_built(&dir, path))
        {
            for (line, included) in includes(&read(path)) {
                let depth = path
                    .strip_prefix(&dir)
                    .map_or(0, |inner| inner.components().count() - 1);
                let ups = included.split('/').take_while(|part| *part == "..").count();
                if ups > depth {
                    findings.push(format!(
                        "{}:{line}: {included} is no part of the package: link the file into {}",
                        shown(path),
                        shown(&dir)
                    ));
                }
            }
        }
    }
    findings
}

/// Whether a source is compiled where the crate is a dependency.
fn is_built(dir: &Path, path: &Path) -> bool {
    let inner = path.strip_prefix(dir).unwrap_or(path);
    let is_test = path.file_name().is_some_and(|name| name == "tests.rs")
        || inner.components().any(|part| part.as_os_str() == "tests");
    (inner.starts_with("src") || inner == Path::new("build.rs")) && !is_test
}

/// Files that the program, not its tests, includes: line and path as written.
fn includes(text: &str) -> Vec<(usize, String)> {
    if !text.contains("include_") {
        return Vec::new();
    }
    let code = source::production_only(text);
    let mut found = Vec::new();
    for mark in ["include_str!(", "include_bytes!("] {
        for (at, _) in code.match_indices(mark) {
            // The text has its strings, the code the same places without.
            let path = text.get(at..).and_then(|rest| rest.split('"').nth(1));
            found.extend(path.map(|path| (text[..at].lines().count().max(1), path.to_owned())));
        }
    }
    found
}

/// A dependency that no source of the crate names costs everybody its build.
pub(crate) fn unused() -> Vec<String> {
    let mut findings = Vec::new();
    for (dir, manifest) in source::manifests() {
        let place = shown(&dir);
        let sources = files(&place, "rs");
        let own: Vec<&PathBuf> = sources.iter().filter(|path| member(path) == Some(&dir)).collect();
        let code = |wanted: &dyn Fn(&Path) -> bool| -> Vec<String> {
            let chosen = own.iter().filter(|path| wanted(path));
            chosen.map(|path| without_comments(&read(path))).collect()
        };
        let built = code(&|path| path.starts_with(dir.join("src")) || path == dir.join("build.rs"));
        let mut all = code(&|_| true);
        all.extend(
            own.iter()
                .flat_map(|path| borrowed(path))
                .map(|path| without_comments(&read(&path))),
        );
        let readme = read(&dir.join("README.md"));
        for (table, texts) in [
            ("dependencies", &built),
            ("build-dependencies", &built),
            ("dev-dependencies", &all),
        ] {
            for name in names(&manifest, table) {
                let word = name.replace('-', "_");
                let is_named =
                    |text: &String| text.contains(&word) && source::lines_with(text, &word).next().is_some();
                // Examples in documentation use them too.
                let in_example = || {
                    table == "dev-dependencies"
                        && (is_named(&readme) || own.iter().any(|path| is_named(&read(path))))
                };
                if !texts.iter().any(is_named)
                    && !in_example()
                    && !NAMED_ELSEWHERE.contains(&(place.as_str(), name))
                {
                    findings.push(format!("{place}/Cargo.toml: {name} stands in [{table}], and no source names {word}: remove it"));
                }
            }
        }
    }
    findings
}

/// Sources of others that a file has as modules of its own.
fn borrowed(path: &Path) -> Vec<PathBuf> {
    let text = read(path);
    let places = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"));
    let folder = path.parent().unwrap_or(Path::new(""));
    places.map(|place| folder.join(place)).collect()
}

fn names<'a>(manifest: &'a toml::Table, table: &str) -> Vec<&'a str> {
    let table = manifest.get(table).and_then(toml::Value::as_table);
    table.map_or_else(Vec::new, |table| table.keys().map(String::as_str).collect())
}

/// Lines without what stands behind `//`; names in attributes and macros stay.
fn without_comments(text: &str) -> String {
    let code = code_only(text);
    code.lines().fold(String::new(), |all, line| all + line + "\n")
}

/// Programs of one name lie over each other in `target/debug`: a test then starts the wrong one.
pub(crate) fn programs_alike() -> Vec<String> {
    let (mut names, mut findings) = (BTreeMap::<String, String>::new(), Vec::new());
    for (folder, manifest) in crate::source::manifests() {
        let bins = manifest.get("bin").and_then(toml::Value::as_array);
        let named = bins
            .into_iter()
            .flatten()
            .filter_map(|bin| bin.get("name")?.as_str());
        for name in named {
            let place = folder.display().to_string();
            if let Some(other) = names.insert(name.to_owned(), place.clone()) {
                findings.push(format!("{place}: the program {name} is also one of {other}"));
            }
        }
    }
    findings
}

/// Cargo does not strip the program of a package that has settings of its own in a profile: what is handed on
/// would have its symbols, unless its build script has the linker strip it.
pub(crate) fn programs_unstripped() -> Vec<String> {
    let text = crate::source::read(&crate::run::root().join("Cargo.toml"));
    let root: toml::Table = text.parse().expect("cargo has read it");
    let programs: Vec<String> = crate::source::manifests()
        .into_iter()
        .filter(|(_, manifest)| manifest.contains_key("bin"))
        .filter(|(folder, _)| {
            let script = std::fs::read_to_string(folder.join("build.rs")).unwrap_or_default();
            !script.contains("cargo::rustc-link-arg-bins=-Wl,--strip-all")
        })
        .filter_map(|(_, manifest)| Some(manifest.get("package")?.get("name")?.as_str()?.to_owned()))
        .collect();
    let own = root["profile"]["dist"]
        .get("package")
        .and_then(toml::Value::as_table);
    own.into_iter()
        .flat_map(toml::Table::keys)
        .filter(|name| programs.contains(name))
        .map(|name| {
            format!(
                "Cargo.toml: profile.dist.package.{name}: a program with settings of its own is not stripped"
            )
        })
        .collect()
}

/// What is handed on and measured does not take from the build that is to be quick what makes that quick.
pub(crate) fn profiles() -> Vec<String> {
    let text = crate::source::read(&crate::run::root().join("Cargo.toml"));
    let root: toml::Table = text.parse().expect("cargo has read it");
    let said = |profile: &str, key: &str| root["profile"][profile].get(key).map(ToString::to_string);
    let packages = |profile: &str| {
        root["profile"][profile]
            .get("package")
            .and_then(toml::Value::as_table)
    };
    let quick = packages("release").into_iter().flat_map(toml::Table::keys);
    let inherited = quick
        .filter(|name| packages("dist").is_none_or(|own| !own.contains_key(*name)))
        .map(|name| {
            format!("Cargo.toml: profile.dist.package.{name}: has to stand there, else it is what profile.release has")
        });
    [
        ("dist", "opt-level", "3"),
        ("dist", "lto", "\"fat\""),
        ("dist", "codegen-units", "1"),
        ("bench", "inherits", "\"dist\""),
    ]
    .into_iter()
    .filter(|(profile, key, wanted)| said(profile, key).as_deref() != Some(wanted))
    .map(|(profile, key, wanted)| {
        format!(
            "Cargo.toml: profile.{profile}: {key} = {wanted} has to stand there, else it is what profile.release has"
        )
    })
    .chain(inherited)
    .collect()
}

/// A build script that has Cargo watch a file which is not there is run, and its package built, at every
/// call of Cargo.
pub(crate) fn built_each_time() -> Vec<String> {
    let mut findings = Vec::new();
    for (folder, manifest) in source::manifests() {
        let said = manifest.get("package").and_then(|package| package.get("build"));
        let script = folder.join(said.and_then(toml::Value::as_str).unwrap_or("build.rs"));
        for watched in watched(&read(&script)) {
            if !folder.join(&watched).exists() {
                findings.push(format!(
                    "{}: its build script watches {watched}, which is not in this folder",
                    shown(&folder)
                ));
            }
        }
    }
    findings
}

/// The files that a build script names to be watched.
fn watched(script: &str) -> Vec<String> {
    let said = script.split("println!(\"cargo::rerun-if-changed=").skip(1);
    let names = said.filter_map(|rest| rest.split_once('"').map(|(name, _)| name.to_owned()));
    names.filter(|name| !name.contains('{')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_build_script_watches_is_found() {
        let script =
            "println!(\"cargo::rerun-if-changed=a.rs\");\nprintln!(\"cargo::rerun-if-changed={}\", path);";
        assert_eq!(watched(script), ["a.rs"]);
    }

    #[test]
    fn what_a_package_includes_is_found_and_what_its_tests_include_is_not() {
        let text = "//! include_str!(\"a\")\nconst A: &str = include_str!(\"../../x.toml\");\n#[cfg(test)]\nmod tests { const B: &str = include_str!(\"../../../y\"); }\n";
        assert_eq!(includes(text), [(2, "../../x.toml".to_owned())]);
    }

    #[test]
    fn a_tool_is_not_published_and_everything_else_is() {
        let published = |text: &str| is_published(&text.parse().unwrap());
        assert!(!published("[package]\npublish = false"));
        assert!(published("[package]\npublish.workspace = true"));
        assert!(published("[package]\nname = 'x'"));
    }
}
