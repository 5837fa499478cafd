//! Keys of the configuration: what `tickwire config` prints is read by somebody.
//!
//! A field of a section is printed because it is there (`Serialize`), and no compiler says that nothing else
//! looks at it. The rule counts names: the fields called so in all sections together, and the places that
//! read one (`.name`, outside of tests and of the checks of the sections themselves). Whether a key does what
//! it says is for tests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::source::{files, production_only, read, shown};

/// Where sections are, and who reads them: everywhere but in these. They know no configuration, and names of
/// theirs would count as reads.
const LIBRARIES: &[&str] = &[
    "backtest", "bare", "book", "exchange", "feed", "fix", "fixgen", "fixmsg", "fuzzing", "market",
    "options", "persist", "recorded", "rig", "runtime", "shm", "testdata", "trading", "wire",
];
/// Fewer keys than this are found only where sections have moved to a place that the rule does not know.
const KEYS_MIN: usize = 200;

/// Sources that have sections or read them.
fn sources() -> Vec<PathBuf> {
    let is_library = |path: &PathBuf| {
        let place = shown(path);
        let name = place
            .strip_prefix("crates/")
            .and_then(|rest| rest.split('/').next());
        name.is_some_and(|name| LIBRARIES.contains(&name))
    };
    let mut found = files("apps", "rs");
    found.extend(files("crates", "rs").into_iter().filter(|path| !is_library(path)));
    found.retain(|path| shown(path).contains("/src/"));
    found
}

/// The rule.
pub(crate) fn unread() -> Vec<String> {
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut code = String::new();
    for path in sources() {
        let text = read(&path);
        for (line, section, field) in fields(&text) {
            let at = format!("{}:{line}: {section}.{field}", shown(&path));
            keys.entry(field).or_default().push(at);
        }
        if path.file_name().is_none_or(|name| name != "tests.rs") {
            code += &without_checks(&production_only(&text));
        }
    }
    let mut findings = Vec::new();
    let count: usize = keys.values().map(Vec::len).sum();
    if count < KEYS_MIN {
        findings.push(format!(
            "only {count} keys are found: sections lie where the rule does not look (xtask/src/keys.rs)"
        ));
    }
    for (field, places) in keys {
        if reads(&code, &field) < places.len() {
            let last = places.last().expect("a name has a place");
            findings.push(format!(
                "{last}: a key that is printed by `tickwire config` and read by nobody: obey it, or remove it"
            ));
        }
    }
    findings
}

/// Fields of configuration sections: structures that are read, and refuse what they do not know.
fn fields(text: &str) -> Vec<(usize, String, String)> {
    let code = production_only(text);
    let lines: Vec<(&str, &str)> = text.lines().zip(code.lines()).collect();
    let mut found = Vec::new();
    let (mut attributes, mut section) = (String::new(), None);
    for (at, (line, code)) in lines.iter().enumerate() {
        let bare = code.trim();
        if let Some(name) = &section {
            if code.starts_with('}') {
                section = None;
            } else if let Some((field, _)) = seen(bare).split_once(": ")
                && !field.starts_with('_')
                && field
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            {
                found.push((at + 1, String::clone(name), field.to_string()));
            }
            continue;
        }
        if bare.starts_with("#[") {
            attributes += line;
        } else if !bare.is_empty() {
            let is_section = attributes.contains("Deserialize") && attributes.contains("deny_unknown_fields");
            let name = seen(bare)
                .strip_prefix("struct ")
                .and_then(|rest| rest.strip_suffix(" {"));
            section = name.filter(|_| is_section).map(str::to_string);
            attributes.clear();
        }
    }
    found
}

/// A declaration without the word that says who sees it.
fn seen(code: &str) -> &str {
    let rest = code.strip_prefix("pub").unwrap_or(code);
    let rest = match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(')').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    rest.strip_prefix(' ').unwrap_or(code)
}

/// Code without the functions by which a section checks itself.
fn without_checks(code: &str) -> String {
    let mut kept = String::new();
    let mut inside: Option<usize> = None;
    for line in code.lines() {
        let indent = line.len() - line.trim_start().len();
        match inside {
            Some(outer) if indent == outer && line.trim() == "}" => inside = None,
            Some(_) => {}
            None if line.contains("fn check(&self") => inside = Some(indent),
            None => {
                kept += line;
                kept.push('\n');
            }
        }
    }
    kept
}

/// How often a field of this name is read.
fn reads(code: &str, field: &str) -> usize {
    let needle = format!(".{field}");
    code.match_indices(&needle)
        .filter(|(at, _)| {
            let rest = &code[at + needle.len()..];
            let next = rest.chars().next();
            let is_longer = next.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '(');
            let rest = rest.trim_start();
            let is_set = rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>");
            !is_longer && !is_set
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTION: &str = "/// Doc.\n#[derive(Clone, Deserialize, Serialize)]\n#[serde(deny_unknown_fields)]\npub(crate) struct S {\n    \
                           /// One.\n    pub(crate) one_ms: u32,\n    pub(crate) two: u32,\n}\n";

    #[test]
    fn fields_of_sections_are_found_and_those_of_other_structures_are_not() {
        let other = "#[derive(Deserialize)]\npub(crate) struct R {\n    pub(crate) three: u32,\n}\n";
        let found = fields(&format!("{SECTION}{other}"));
        let names: Vec<_> = found
            .iter()
            .map(|(line, s, f)| (*line, s.as_str(), f.as_str()))
            .collect();
        assert_eq!(names, [(6, "S", "one_ms"), (7, "S", "two")]);
        // In a library sections are open to all, in one file to nobody else.
        for seen in ["pub ", "pub(super) ", ""] {
            assert_eq!(fields(&SECTION.replace("pub(crate) ", seen)).len(), 2, "{seen}");
        }
    }

    #[test]
    fn a_key_is_read_by_its_name_and_neither_by_setting_nor_by_checking_it() {
        let code = "fn f(s: &S) {\n    s.one_ms = 1;\n    g(s.one_ms_max, s.one_ms());\n}\nfn check(&self) {\n    self.one_ms == 0\n}\n";
        assert_eq!(reads(&without_checks(code), "one_ms"), 0);
        assert_eq!(reads("s.one_ms == 0; f(s.one_ms)", "one_ms"), 2);
    }
}
