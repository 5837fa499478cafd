//! Which crate may import which: the table "Rooms" of ARCHITECTURE.md, held against the manifests.
//!
//! A row is `| name | its one reason to change | what it may import |`, with `–` for nothing and `all` for
//! everything. Every crate that has something to ship has a row; those for tests and tools (named in
//! [`BESIDE`]) have none, and nobody with a row may depend on them.

use std::collections::BTreeMap;

use crate::run::root;
use crate::source::{manifests, read, shown};

/// Crates for tests and tools: they may import what they like, and no crate of the table may import them.
const BESIDE: &[&str] = &["bare", "fixgen", "fuzzing", "recorded", "rig", "testdata"];
/// Rows that measure or show what the others do, and may use what is made for tests.
const MAY_USE_RIGS: &[&str] = &["apps/tickwire", "apps/tickwire-lab", "feedd", "node", "views"];

/// What the row of a crate says it may import; `None`: everything.
type Rooms = BTreeMap<String, Option<Vec<String>>>;

/// The table, by the names of its rows.
fn table(text: &str) -> Rooms {
    let mut rooms = Rooms::new();
    let rows = text.lines().skip_while(|line| *line != "## Rooms").skip(1);
    for row in rows.take_while(|line| !line.starts_with("## ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, imports] = cells[..] else { continue };
        let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else {
            continue;
        };
        let allowed = match imports {
            "all" => None,
            "–" => Some(Vec::new()),
            list => Some(list.split(',').map(|name| name.trim().to_owned()).collect()),
        };
        rooms.insert(name.to_owned(), allowed);
    }
    rooms
}

/// What a manifest's normal dependencies of the project break.
fn broken(rooms: &Rooms, room: &str, place: &str, manifest: &toml::Table) -> Vec<String> {
    let Some(row) = rooms.get(room) else {
        return vec![format!(
            "{place}: {room} has no row in the table \"Rooms\" of ARCHITECTURE.md: say its one reason to change and what it may import"
        )];
    };
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let ours = dependencies
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.get("optional").and_then(toml::Value::as_bool) != Some(true))
        .filter_map(|(name, _)| {
            name.strip_prefix("tickwire-")
                .or((name == "tickwire").then_some("tickwire"))
        });
    let mut findings = Vec::new();
    for import in ours {
        let is_tool = BESIDE.contains(&import);
        if is_tool && !MAY_USE_RIGS.contains(&room) {
            findings.push(format!(
                "{place}: {import} is for tests and tools; {room} may not ship with it"
            ));
        } else if !is_tool
            && row
                .as_ref()
                .is_some_and(|allowed| !allowed.iter().any(|a| a == import))
        {
            let allowed = row.as_ref().map(|allowed| allowed.join(", ")).unwrap_or_default();
            findings.push(format!(
                "{place}: {room} may import {allowed} (ARCHITECTURE.md, Rooms), not {import}; change the table and say why, or take the import out"
            ));
        }
    }
    findings
}

/// The rule.
pub(crate) fn check() -> Vec<String> {
    let rooms = table(&read(&root().join("ARCHITECTURE.md")));
    let mut findings = Vec::new();
    let mut seen = Vec::new();
    for (path, manifest) in manifests() {
        let folder = shown(&path);
        let place = format!("{folder}/Cargo.toml");
        let room = match folder.strip_prefix("crates/") {
            Some(name) if BESIDE.contains(&name) => continue,
            Some(name) => name.to_owned(),
            None if folder.starts_with("apps/") => folder.clone(),
            None => continue,
        };
        findings.extend(broken(&rooms, &room, &place, &manifest));
        seen.push(room);
    }
    let gone = rooms.keys().filter(|room| !seen.contains(room));
    findings.extend(
        gone.map(|room| format!("ARCHITECTURE.md: the table \"Rooms\" has {room}, which is no crate")),
    );
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "## Rooms\n| crate | why | may import |\n|---|---|---|\n| `market` | words | – |\n| `feed` | delivery | wire, market |\n| `apps/x` | the user | all |\n\n## Next\n| `no` | row | – |\n";

    #[test]
    fn an_import_that_the_table_does_not_have_is_found() {
        let rooms = table(TEXT);
        assert_eq!(rooms.len(), 3);
        let manifest = |deps: &str| format!("[dependencies]\n{deps}").parse::<toml::Table>().unwrap();
        let wrong = |room: &str, deps: &str| broken(&rooms, room, "p", &manifest(deps)).len();
        assert_eq!(
            wrong("feed", "tickwire-market = 1\ntickwire-wire = 1\nlibc = 1\n"),
            0
        );
        assert_eq!(wrong("feed", "tickwire-book = 1\n"), 1);
        assert_eq!(wrong("market", "tickwire-wire = 1\n"), 1);
        assert_eq!(wrong("feed", "tickwire-testdata = 1\n"), 1, "a tool");
        assert_eq!(wrong("apps/x", "tickwire-book = 1\ntickwire = 1\n"), 0);
        assert_eq!(wrong("new", ""), 1, "no row");
        assert_eq!(
            wrong("feed", "tickwire-book = { optional = true }\n"),
            0,
            "left out by default"
        );
    }
}
