//! Every `cargo xtask` command that the pages and the script of CI show is one there is, with options that it
//! reads.

use std::fs;
use std::path::PathBuf;

use crate::run::root;
use crate::source::files;
use crate::{BARE, HEADER, STEPS};

/// Commands that are no step, and the source that reads their options.
const COMMANDS: &[(&str, &str)] = &[
    ("aarch64", "aarch64.rs"),
    ("aeron", "aeron.rs"),
    ("archives", "archives.rs"),
    ("attack", "attack.rs"),
    ("backtest-peers", "backtest_peers.rs"),
    ("book-peers", "book_peers.rs"),
    ("check", "main.rs"),
    ("cold", "cold.rs"),
    ("comments", "comments.rs"),
    ("counts", "counts.rs"),
    ("demo-soak", "soak.rs"),
    ("dist", "dist.rs"),
    ("disturbed", "disturbed.rs"),
    ("export-peers", "command.rs"),
    ("fetch-data", "recorded"),
    // The program that it starts reads them.
    ("fuzz", "../../crates/fuzzing/src/main.rs"),
    ("hardware", "hardware.rs"),
    ("interop", "interop.rs"),
    ("lab-peers", "interop.rs"),
    ("miri", "miri.rs"),
    ("mutants", "mutants.rs"),
    ("notebooks", "wheels.rs"),
    ("oracle", "oracle"),
    ("perf", "perf.rs"),
    ("pgo", "pgo.rs"),
    ("pictures", "pictures.rs"),
    ("promtool", "promtool.rs"),
    ("properties", "properties.rs"),
    ("publish", "publish.rs"),
    ("quantlib", "quantlib.rs"),
    ("ray", "command.rs"),
    ("supply", "supply.rs"),
    ("tables", "command.rs"),
    ("wheels", "wheels.rs"),
];

fn pages() -> Vec<PathBuf> {
    let mut pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", ".ci/run"]
        .map(|name| root().join(name))
        .to_vec();
    pages.extend(files("docs", "md"));
    pages
}

/// The sources of a command's options.
fn source(name: &str) -> String {
    let path = root().join("xtask/src").join(name);
    let files = if path.is_dir() {
        files(&format!("xtask/src/{name}"), "rs")
    } else {
        vec![path]
    };
    files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a source"))
        .collect()
}

/// What is wrong with the words behind `cargo xtask`.
fn wrong(words: &[&str]) -> Option<String> {
    let (&name, options) = words.split_first()?;
    if matches!(name, "--help" | "<step>...") {
        return None;
    }
    let is_step = STEPS.iter().chain([&HEADER, &BARE]).any(|step| step.name == name);
    let reads = COMMANDS.iter().find(|(command, _)| *command == name);
    let text = match (reads, is_step) {
        (Some((_, file)), _) => source(file),
        (None, true) => String::new(),
        (None, false) => return Some(format!("there is no step or command '{name}'")),
    };
    let unknown = options.iter().find(|word| {
        word.starts_with("--")
            && !matches!(**word, "--help" | "--verbose")
            && !text.contains(&format!("\"{word}\""))
    });
    unknown.map(|option| format!("{name} does not read {option}"))
}

/// The words of each command in a text: up to the end of the line, of the code in it, or of the words before
/// a remark.
fn commands(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .flat_map(|line| line.split("cargo xtask ").skip(1))
        .map(|rest| {
            let end = rest
                .find(['`', ';', '|', '&', ')', '"', '#'])
                .unwrap_or(rest.len());
            let end = rest.find("  ").map_or(end, |remark| remark.min(end));
            rest[..end].split_whitespace().collect::<Vec<&str>>()
        })
        .filter(|words| !words.is_empty())
        .collect()
}

#[test]
fn every_command_of_the_pages_is_one_there_is() {
    let (mut count, mut found) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page of text");
        for words in commands(&text) {
            count += 1;
            if let Some(why) = wrong(&words) {
                found.push(format!(
                    "{}: cargo xtask {}: {why}",
                    page.display(),
                    words.join(" ")
                ));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(count > 20, "only {count} commands were found");
}

#[test]
fn what_is_not_there_is_found() {
    let of = |line| commands(line).iter().filter_map(|words| wrong(words)).count();
    assert_eq!(
        of("`cargo xtask check`, and `cargo xtask fuzz engine --seconds 60`"),
        0
    );
    assert_eq!(of("cargo xtask lab-peers      once: it is no word"), 0);
    assert_eq!(of("cargo xtask chekc"), 1);
    assert_eq!(of("cargo xtask demo-soak --rnus 3; cargo xtask miri --fast"), 2);
}
