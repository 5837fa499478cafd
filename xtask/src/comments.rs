//! `cargo xtask comments`: no line of a comment is wider than the code may be; what is wider is wrapped.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::source::{files, read, shown};

const HELP: &str = "\
Finds lines of comments that are wider than rustfmt lets code be; rustfmt itself leaves comments as they are on stable.

  cargo xtask comments            how many there are, and where
  cargo xtask comments --write    wraps their paragraphs; tables, code and headings stay as they are
";

/// `max_width` of rustfmt.toml.
pub(crate) const WIDTH: usize = 110;

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    match words {
        [] => {
            let findings = too_wide();
            findings.iter().for_each(|line| println!("{line}"));
            println!("{} lines are too wide", findings.len());
            ExitCode::from(u8::from(!findings.is_empty()))
        }
        ["--write"] => {
            let mut count = 0;
            for path in sources() {
                let text = read(&path);
                let wrapped = wrapped(&text);
                if wrapped != text {
                    match std::fs::write(&path, wrapped) {
                        Ok(()) => count += 1,
                        Err(e) => {
                            eprintln!("xtask comments: cannot write {}: {e}", path.display());
                            return ExitCode::FAILURE;
                        }
                    }
                }
            }
            println!("{count} files changed");
            ExitCode::SUCCESS
        }
        _ => {
            print!("{HELP}");
            ExitCode::from(2)
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let folders = ["crates", "apps", "examples", "xtask", "bindings", "peers", "fuzz"];
    let all = folders.iter().flat_map(|dir| files(dir, "rs"));
    all.filter(|path| !path.is_symlink()).collect()
}

/// Lines of comments that could be narrower and are not.
pub(crate) fn too_wide() -> Vec<String> {
    let mut findings = Vec::new();
    for path in sources() {
        let text = read(&path);
        if text.lines().any(|line| mark(line).is_some() && is_wide(line)) && wrapped(&text) != text {
            let wide = text
                .lines()
                .enumerate()
                .filter(|(_, line)| mark(line).is_some() && is_wide(line));
            findings.extend(wide.map(|(at, _)| {
                format!(
                    "{}:{}: a comment is wider than {WIDTH}: `cargo xtask comments --write` wraps it",
                    shown(&path),
                    at + 1
                )
            }));
        }
    }
    findings
}

fn is_wide(line: &str) -> bool {
    line.chars().count() > WIDTH
}

/// The indentation of a line that is a comment, and what marks it: `//!`, `///` or `//`.
fn mark(line: &str) -> Option<(&str, &'static str)> {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    let mark = ["//!", "///", "//"]
        .into_iter()
        .find(|mark| text.starts_with(mark))?;
    let rest = &text[mark.len()..];
    (rest.is_empty() || rest.starts_with(' ')).then_some((indent, mark))
}

/// The text with the paragraphs wrapped that have a line too wide.
fn wrapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    let mut is_code = false;
    while at < lines.len() {
        let Some((indent, mark)) = mark(lines[at]) else {
            is_code = false;
            out += lines[at];
            out.push('\n');
            at += 1;
            continue;
        };
        let body = body_of(lines[at], indent, mark);
        if body.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code || !is_prose(body) {
            out += lines[at];
            out.push('\n');
            at += 1;
            continue;
        }
        let end = paragraph_end(&lines, at, (indent, mark));
        if lines[at..end].iter().any(|line| is_wide(line)) {
            wrap(&lines[at..end], (indent, mark), &mut out);
        } else {
            for line in &lines[at..end] {
                out += line;
                out.push('\n');
            }
        }
        at = end;
    }
    out
}

/// What stands behind the mark and one space.
fn body_of<'l>(line: &'l str, indent: &str, mark: &str) -> &'l str {
    let rest = &line[indent.len() + mark.len()..];
    rest.strip_prefix(' ').unwrap_or(rest)
}

/// Whether a line is one of a paragraph or of an item, that may be wrapped.
fn is_prose(body: &str) -> bool {
    let text = body.trim_start();
    let indented = body.len() - text.len();
    !text.is_empty()
        && indented < 4
        && !["|", "#", "```", ">", "[`"]
            .iter()
            .any(|start| text.starts_with(start) && !is_link(text))
        && !text.contains("  ")
        && !text.chars().any(|c| ('\u{2500}'..='\u{25ff}').contains(&c))
}

/// A line that begins with a link in the midst of prose, not with the definition of one.
fn is_link(text: &str) -> bool {
    text.starts_with("[`") && !text.contains("]: ")
}

/// How far text of an item is indented: `- `, `* `, `1. `.
fn item(body: &str) -> Option<usize> {
    let text = body.trim_start();
    let before = body.len() - text.len();
    if text.starts_with("- ") || text.starts_with("* ") {
        return Some(before + 2);
    }
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    (digits > 0 && text[digits..].starts_with(". ")).then_some(before + digits + 2)
}

/// Where the paragraph that begins at a line ends.
fn paragraph_end(lines: &[&str], start: usize, begun: (&str, &'static str)) -> usize {
    let first = body_of(lines[start], begun.0, begun.1);
    let margin = item(first).unwrap_or(first.len() - first.trim_start().len());
    let goes_on = |line: &str| {
        mark(line) == Some(begun) && {
            let body = body_of(line, begun.0, begun.1);
            let indented = body.len() - body.trim_start().len();
            // The proof of unsafe code begins a line of its own.
            !body.starts_with("SAFETY:")
                && is_prose_of(body, margin)
                && item(body).is_none()
                && (indented == margin || (item(first).is_some() && indented == 0))
        }
    };
    let more = lines[start + 1..].iter().take_while(|line| goes_on(line)).count();
    start + 1 + more
}

/// The same of a line that may be indented by an item's margin.
fn is_prose_of(body: &str, margin: usize) -> bool {
    let indented = body.len() - body.trim_start().len();
    is_prose(&body[indented.min(margin)..])
}

fn wrap(lines: &[&str], (indent, mark): (&str, &str), out: &mut String) {
    let first = body_of(lines[0], indent, mark);
    let lead = &first[..first.len() - first.trim_start().len()];
    let margin = " ".repeat(item(first).unwrap_or(lead.len()));
    let words = lines
        .iter()
        .flat_map(|line| line[indent.len() + mark.len()..].split(' '));
    let mut words = glued(words.filter(|word| !word.is_empty()));
    let mut line = format!("{indent}{mark} {lead}");
    let mut is_empty = true;
    for word in words.drain(..) {
        let width = line.chars().count() + usize::from(!is_empty) + word.chars().count();
        // What begins a line like this would be an item, a heading or a quotation.
        let may_begin = item(&format!("{word} ")).is_none()
            && !["#", ">", "|", "+", "-", "="]
                .iter()
                .any(|start| word.starts_with(start));
        if !is_empty && width > WIDTH && may_begin {
            out.push_str(line.trim_end());
            out.push('\n');
            line = format!("{indent}{mark} {margin}");
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Words, those within one pair of backticks as one: code is not torn apart.
fn glued<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in words {
        let ticks = word.matches('`').count();
        match all.last_mut().filter(|_| is_open) {
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => all.push(word.to_owned()),
        }
        is_open ^= ticks % 2 == 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_items_are_wrapped_and_nothing_else_is() {
        let long = "word ".repeat(30);
        let text = format!(
            "/// {long}\n/// end.\n///\n/// - {long}\n///   more\n/// | {long} |\n/// ```\n/// {long}\n/// ```\nlet a = 1; // {long}\n"
        );
        let wrapped = wrapped(&text);
        let narrow: Vec<&str> = wrapped.lines().collect();
        assert!(
            narrow[0].chars().count() <= WIDTH && narrow[1].ends_with("word end."),
            "{wrapped}"
        );
        assert!(
            narrow[3].starts_with("/// - word") && narrow[4].starts_with("///   word"),
            "{wrapped}"
        );
        assert!(narrow[4].ends_with("word more"), "{wrapped}");
        for kept in [
            format!("/// | {long} |"),
            format!("/// {long}"),
            format!("let a = 1; // {long}"),
        ] {
            assert!(wrapped.contains(&kept), "{kept} is not in {wrapped}");
        }
        assert_eq!(super::wrapped(&wrapped), wrapped);
    }

    #[test]
    fn code_is_not_torn_apart_and_no_line_begins_like_an_item() {
        let text = format!("// {} `a b c` - d\n", "x".repeat(100));
        assert_eq!(
            wrapped(&text),
            format!("// {}\n// `a b c` - d\n", "x".repeat(100))
        );
        let text = format!("// {} - d e f g h\n", "x".repeat(104));
        assert!(!wrapped(&text).contains("\n// -"), "{}", wrapped(&text));
    }

    #[test]
    fn words_are_kept_in_order() {
        let text = format!(
            "    /// One two three {} four `five six` seven.\n",
            "x".repeat(80)
        );
        let words = |text: &str| {
            text.replace("///", "")
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&text), words(&wrapped(&text)));
    }
}
