//! How much one file and one struct may hold: what is longer has several jobs, and is cut by them.

use std::path::PathBuf;

use crate::source::{code_only, is_of_tests, production_only, read, shown};

/// Lines of code that a file may have: those that are not blank, no comment and not under `#[cfg(test)]`.
const LINES_MAX: usize = 800;
/// Fields that a struct may have. Layouts of the wire are tables, which the venue wrote, and do not count.
const FIELDS_MAX: usize = 20;

/// The keys of a section of the configuration are its fields, as the arguments of a command are.
const KEYS: &str = "keys of a file";
/// The fields are those of somebody else's table.
const TABLE: &str = "a table that is given";
/// Still to be cut.
const LATER: &str = "to be cut";
/// Structs that have more fields, by file, and why; nothing is added here without such a reason.
const WIDE: &[(&str, &str, &str)] = &[
    ("crates/fix/src/config.rs", "SessionConfig", KEYS),
    ("crates/fix/src/message.rs", "ExecutionReport", TABLE),
    ("crates/market/src/event.rs", "MarketEvent", TABLE),
    ("crates/player/src/lib.rs", "PlayArgs", KEYS),
    ("crates/quoterd/src/config.rs", "QuoterSection", KEYS),
    ("crates/quoterd/src/pricing/priced.rs", "Priced", LATER),
    ("crates/simulator/src/settings.rs", "ExchangeSection", KEYS),
    ("crates/trading/src/eye/config.rs", "EyeConfig", KEYS),
    ("crates/trading/src/quoter/config.rs", "QuoterConfig", KEYS),
    ("crates/wire-moex/src/moex/slots.rs", "Slots", TABLE),
    ("bindings/python/src/book.rs", "Book", TABLE),
    ("bindings/python/src/book.rs", "SuperBook", TABLE),
];

/// Files and structs beyond what they may hold.
pub(crate) fn beyond(files: &[PathBuf]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut wide = Vec::new();
    for path in files {
        let place = shown(path);
        if is_of_tests(&place) {
            continue;
        }
        let text = read(path);
        // Most files are short by any count.
        let lines = match text.lines().count() {
            all @ ..=LINES_MAX => all,
            _ => lines_of_code(&text),
        };
        if lines > LINES_MAX {
            findings.push(format!(
                "{place}: {lines} lines of code, {LINES_MAX} are allowed: cut it by its jobs"
            ));
        }
        if !text.contains("struct ") {
            continue;
        }
        for (name, fields) in structs(&production_only(&text)) {
            if fields <= FIELDS_MAX {
                continue;
            }
            if !WIDE
                .iter()
                .any(|(file, known, _)| (*file, *known) == (place.as_str(), name.as_str()))
            {
                findings.push(format!(
                    "{place}: {name} has {fields} fields, {FIELDS_MAX} are allowed: give what belongs together a struct of its own"
                ));
            }
            wide.push((place.clone(), name));
        }
    }
    findings.extend(no_longer(&wide));
    findings
}

/// Entries of the list that nothing is behind any more.
fn no_longer(wide: &[(String, String)]) -> Vec<String> {
    let narrow = WIDE.iter().filter(|(file, name, _)| {
        let is_it = |(place, found): &&(String, String)| place == file && found == name;
        !wide.iter().any(|entry| is_it(&entry))
    });
    let narrow = narrow.map(|(file, name, _)| {
        format!("{name} of {file} has at most {FIELDS_MAX} fields now: take it out of WIDE")
    });
    narrow.collect()
}

/// Lines that are not blank, no comment and not of tests. Lines of a long text count: they are read, too.
fn lines_of_code(text: &str) -> usize {
    let (code, production) = (code_only(text), production_only(text));
    let of_tests = |(code, production): (&str, &str)| !code.trim().is_empty() && production.trim().is_empty();
    text.lines()
        .zip(code.lines().zip(production.lines()))
        .filter(|(line, both)| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with("//") && !of_tests(*both)
        })
        .count()
}

/// Structs with named fields in a text without comments and strings, and how many fields each has.
fn structs(code: &str) -> Vec<(String, usize)> {
    let is_ident = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, word) in code.match_indices("struct ") {
        if code[..at].chars().next_back().is_some_and(is_ident) {
            continue;
        }
        let rest = &code[at + word.len()..];
        let name: String = rest.chars().take_while(|c| is_ident(*c)).collect();
        let head = rest.split(['{', ';']).next().unwrap_or_default();
        let is_table = head[name.len()..].trim_start().starts_with('=');
        if name.is_empty() || is_table || !rest[head.len()..].starts_with('{') {
            continue;
        }
        found.push((name, fields(&rest[head.len()..])));
    }
    found
}

/// Fields between the braces that `body` opens with.
fn fields(body: &str) -> usize {
    let (mut depth, mut count, mut is_open) = (0usize, 0, false);
    let mut before = ' ';
    for c in body.chars() {
        match c {
            '{' | '(' | '[' | '<' => depth += 1,
            '>' if before == '-' => {}
            '}' | ')' | ']' | '>' => depth -= 1,
            ':' if depth == 1 && before != ':' && !is_open => (count, is_open) = (count + 1, true),
            ',' if depth == 1 => is_open = false,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        before = c;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_no_code() {
        let text = "//! What.\n\nfn a() {\n    // why\n    \"\n text\n\"\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        assert_eq!(lines_of_code(text), 6);
    }

    #[test]
    fn fields_are_counted_and_types_and_tables_are_not() {
        let code = "pub struct A<T: Fn(u8) -> u8> where T: Copy {\n pub a: Vec<(u8, core::num::NonZeroU8)>,\n #[x(y: z)]\n b: fn(a: u8) -> [u8; 2],\n}\nstruct Unit;\nstruct Pair(u8, u8);\npub struct Table = , 20 { a: u8 }\nmystruct { }";
        assert_eq!(structs(code), [("A".to_owned(), 2)]);
    }
}
