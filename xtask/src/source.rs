//! Reading the project's own files: walking, and Rust text without comments, strings and tests.

use crate::run::root;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold no source of ours.
const SKIPPED: &[&str] = &["target", ".git", "artifacts", "coverage", "node_modules"];

/// Every file below `dir` (relative to the root; "" is the root) whose name ends in `.ext`, sorted; absolute
/// paths.
pub(crate) fn files(dir: &str, ext: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&root().join(dir), &mut found);
    found.retain(|path| ext.is_empty() || path.extension().is_some_and(|e| e == ext));
    found.sort();
    found
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true if SKIPPED.iter().any(|s| entry.file_name() == *s) => {}
            true => walk(&path, found),
            false => found.push(path),
        }
    }
}

/// A file's text; not UTF-8 or unreadable counts as empty.
pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The path as findings print it.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Whether a file is of tests or benchmarks alone.
pub(crate) fn is_of_tests(place: &str) -> bool {
    ["/tests/", "/tests.rs", "/benches/"]
        .iter()
        .any(|part| place.contains(part))
}

/// Every member's directory name and manifest.
pub(crate) fn manifests() -> Vec<(PathBuf, toml::Table)> {
    let dirs = ["crates", "apps", "examples", "xtask"]
        .iter()
        .flat_map(|dir| files(dir, "toml"));
    let manifests = dirs.filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml"));
    manifests
        .filter_map(|path| Some((path.parent()?.to_owned(), read(&path).parse().ok()?)))
        .collect()
}

/// The text with comments and the contents of string and character literals blanked; lines stay where they
/// are.
pub(crate) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'/', b'/', ..] => find(bytes, at, b"\n"),
            [b'/', b'*', ..] => block_comment_end(bytes, at),
            [b'r', b'"' | b'#', ..] if !ident_before(bytes, at) => raw_string_end(bytes, at).unwrap_or(at),
            [b'"', ..] => string_end(bytes, at),
            [b'\'', ..] => char_end(bytes, at),
            _ => at,
        };
        for byte in &mut out[at..end.min(bytes.len())] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// [`code_only`], with every item under `#[cfg(test)]` blanked too.
pub(crate) fn production_only(text: &str) -> String {
    let mut code = code_only(text).into_bytes();
    while let Some(start) = position(&code, b"#[cfg(test)]") {
        let end = item_end(&code, start);
        for byte in &mut code[start..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Where the item that starts at `start` ends: after its braces, or after `;` when none open before.
fn item_end(code: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in code.iter().enumerate().skip(start + b"#[cfg(test)]".len()) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Lines (from 1) on which `needle` occurs as whole words: not inside a longer identifier.
pub(crate) fn lines_with<'a>(code: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.lines()
        .enumerate()
        .filter(move |(_, line)| has_word(line, needle))
        .map(|(at, _)| at + 1)
}

pub(crate) fn has_word(line: &str, needle: &str) -> bool {
    let is_ident = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let word = |edge: Option<char>, outside: Option<char>| !(is_ident(edge) && is_ident(outside));
    line.match_indices(needle).any(|(at, _)| {
        let (before, after) = (
            line[..at].chars().next_back(),
            line[at + needle.len()..].chars().next(),
        );
        word(needle.chars().next(), before) && word(needle.chars().next_back(), after)
    })
}

fn position(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn find(bytes: &[u8], from: usize, needle: &[u8]) -> usize {
    position(&bytes[from..], needle).map_or(bytes.len(), |at| from + at)
}

fn ident_before(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') && bytes[at - 1] != b'b'
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start + 1..].iter().take_while(|&&b| b == b'#').count();
    let open = start + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', hashes))
        .collect();
    Some(find(bytes, open + 1, &close) + close.len())
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// The end of a character literal; a lifetime is no literal and ends where it starts.
fn char_end(bytes: &[u8], start: usize) -> usize {
    match &bytes[start + 1..] {
        [b'\\', _, ..] => find(bytes, start + 3, b"'") + 1,
        [_, b'\'', ..] => start + 3,
        [first, ..] if !first.is_ascii() => find(bytes, start + 1, b"'") + 1,
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_blanked_and_lines_kept() {
        let text = "let a = \"std::net // \\\" x\"; // f64\nlet b: &'a u8 = b'\"'; /* f32 /* x */ */ f64\nr#\"un\"wrap\"# + '\\''";
        let code = code_only(text);
        assert_eq!(code.lines().count(), 3);
        assert!(!code.contains("std::net") && !code.contains("f32") && !code.contains("wrap"));
        assert_eq!(lines_with(&code, "f64").collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn test_modules_are_blanked_and_what_follows_is_not() {
        let code = production_only(
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { f64 } }\nfn c() { f32 }\n#[cfg(test)]\nextern crate std;\nu8",
        );
        assert!(
            !code.contains("f64") && !code.contains("std") && code.contains("f32") && code.contains("u8")
        );
    }

    #[test]
    fn words_are_not_found_inside_longer_words() {
        assert_eq!(
            lines_with("my_f64\nf64x\n(f64)\nprintln!(", "f64").collect::<Vec<_>>(),
            [3]
        );
        assert_eq!(
            lines_with("eprintln!(\nprintln!(", "println!").collect::<Vec<_>>(),
            [2]
        );
    }
}
