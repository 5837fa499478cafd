//! `cargo xtask mutants`: breaks one rule after the other in code that others rely on, and sees whether a
//! test notices. What is broken cargo-mutants says; one build holds all of it.

mod race;
mod switch;

use crate::command::{self, Findings};
use crate::run::{by_hand, root};
use race::Fate;
use std::collections::BTreeSet;
use std::process::{Command, ExitCode};

const HELP: &str = "\
Changes engine, books and arbiter in one place at a time, as cargo-mutants lists them (`cargo install cargo-mutants --locked`), in a copy
of the sources, and runs their tests each time. All changes stand in one build, each switched on by its number; those in what the
compiler works out (constants) are built one by one. A change that no test notices is looked up in docs/mutants.md,
where those that change nothing are listed with the reason; any other one is a finding. Tests that read recorded data are left out: a
mutant must die of what every clone has.

  cargo xtask mutants [NAME…] [--shard K/N] [--again] [--list]

  NAME         engine, book, super-books, arbiter (all)
  --shard K/N  only every Nth mutant, from the Kth on, 0 to N-1 (all)
  --again      only those that lived in the run before: for whoever has written tests since
  --list       says how many mutants each has and runs none

What became of each is written to target/mutants/NAME.tsv. Exit code 1: a mutant lives that docs/mutants.md does not judge. 2: the command
line, or there is no cargo-mutants.
";

/// What is broken and what has to notice.
struct Target {
    name: &'static str,
    package: &'static str,
    files: &'static [&'static str],
    /// Further packages whose tests count.
    tests_of: &'static [&'static str],
    /// The arguments of `cargo test`.
    tests: &'static [&'static str],
}

const TARGETS: &[Target] = &[
    Target {
        name: "engine",
        package: "tickwire-exchange",
        files: &["crates/exchange/src/engine.rs", "crates/exchange/src/engine/*.rs"],
        tests_of: &[],
        tests: &[
            "--lib",
            "--test",
            "engine_matches_oracle",
            "--test",
            "engine_edges",
        ],
    },
    Target {
        name: "book",
        package: "tickwire-book",
        files: &[
            "crates/book/src/books.rs",
            "crates/book/src/books/gone.rs",
            "crates/book/src/ladder.rs",
            "crates/book/src/ladder/behind.rs",
            "crates/book/src/ladder/window.rs",
            "crates/book/src/tick.rs",
            "crates/book/src/order_index.rs",
        ],
        tests_of: &[],
        tests: &["--lib", "--test", "all"],
    },
    Target {
        name: "super-books",
        package: "tickwire-book",
        files: &[
            "crates/book/src/super_books.rs",
            "crates/book/src/super_books/*.rs",
        ],
        tests_of: &[],
        tests: &["--lib", "--test", "all"],
    },
    Target {
        name: "arbiter",
        package: "tickwire-feed-core",
        files: &[
            "crates/feed-core/src/arbiter.rs",
            "crates/feed-core/src/arbiter/*.rs",
        ],
        tests_of: &["tickwire-feed-core", "tickwire-feed"],
        tests: &["--tests"],
    },
];

#[derive(Debug)]
struct Plan {
    targets: Vec<&'static str>,
    shard: Option<(usize, usize)>,
    /// Only those that lived.
    again: bool,
    only_lists: bool,
}

fn plan(words: &[&str]) -> Result<Plan, String> {
    let mut plan = Plan {
        targets: Vec::new(),
        shard: None,
        again: false,
        only_lists: false,
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--list" => plan.only_lists = true,
            "--again" => plan.again = true,
            "--shard" => {
                let text = *words.next().ok_or("--shard needs K/N behind it")?;
                let parts = text.split_once('/').and_then(|(k, n)| {
                    let (k, n): (usize, usize) = (k.parse().ok()?, n.parse().ok()?);
                    (k < n).then_some((k, n))
                });
                plan.shard =
                    Some(parts.ok_or_else(|| format!("--shard: '{text}' is no K/N with K below N"))?);
            }
            other => {
                let known = TARGETS.iter().find(|target| target.name == other);
                plan.targets.push(known.ok_or_else(|| unknown(other))?.name);
            }
        }
    }
    if plan.targets.is_empty() {
        plan.targets = TARGETS.iter().map(|target| target.name).collect();
    }
    Ok(plan)
}

fn unknown(word: &str) -> String {
    let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    format!("'{word}' is neither an option nor one of {}", known.join(", "))
}

/// The mutants that the document judges: what stands between back quotes at the start of an item.
fn judged(document: &str) -> BTreeSet<String> {
    let items = document.lines().filter_map(|line| line.strip_prefix("- `"));
    items
        .filter_map(|item| item.split_once('`').map(|(mutant, _)| mutant.to_owned()))
        .collect()
}

fn cargo_mutants(target: &Target) -> Command {
    let mut command = by_hand("cargo");
    command
        .current_dir(root())
        .args(["mutants", "--package", target.package, "--colors", "never"])
        .args(target.files.iter().flat_map(|file| ["--file", file]));
    command
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("mutants", HELP, words, plan, work)
}

fn work(plan: Plan) -> Result<Findings, String> {
    let version = by_hand("cargo").args(["mutants", "--version"]).output();
    if !version.is_ok_and(|output| output.status.success()) {
        return Err("no cargo-mutants: `cargo install cargo-mutants --locked`".into());
    }
    let document = std::fs::read_to_string(root().join("docs/mutants.md")).unwrap_or_default();
    let judged = judged(&document);
    let mut findings = Findings::default();
    for target in TARGETS
        .iter()
        .filter(|target| plan.targets.contains(&target.name))
    {
        let mut mutants = race::mutants_of(target)?;
        if plan.only_lists {
            println!("{:<12} {} mutants", target.name, mutants.len());
            continue;
        }
        let before = race::read(target, &mutants);
        if let Some((k, n)) = plan.shard {
            mutants = mutants.into_iter().skip(k).step_by(n).collect();
        }
        if plan.again {
            mutants.retain(|mutant| race::lived(&before, mutant));
        }
        println!("{:<12} {} mutants", target.name, mutants.len());
        let fates = race::race(target, mutants)?;
        let file = race::write(target, before, &fates)?;
        let of = |fate: Fate| fates.iter().filter(move |(_, is)| *is == fate);
        let lived: Vec<String> = of(Fate::Alive)
            .map(|(mutant, _)| mutant.known_as.clone())
            .collect();
        let noticed = fates.iter().filter(|(_, fate)| matches!(fate, Fate::Noticed(_)));
        let endless = fates.iter().filter(|(_, fate)| matches!(fate, Fate::Endless(_)));
        let (known, new): (Vec<_>, Vec<_>) = lived.iter().partition(|mutant| judged.contains(*mutant));
        println!(
            "{:<12} {} noticed, {} endless, {} not built, {} judged, {} new: {}",
            target.name,
            noticed.count(),
            endless.count(),
            of(Fate::NotBuilt).count(),
            known.len(),
            new.len(),
            file.display()
        );
        new.iter().for_each(|mutant| println!("  lives: {mutant}"));
        findings.good += known.len();
        findings.bad += new.len();
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_what_is_unknown_is_named() {
        let plan = plan(&["book", "--shard", "1/4"]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((plan.targets, plan.shard), (vec!["book"], Some((1, 4))));
        assert_eq!(super::plan(&[]).map(|plan| plan.targets.len()), Ok(TARGETS.len()));
        let said = |words: &[&str]| super::plan(words).err().unwrap_or_default();
        assert!(said(&["--shard", "4/4"]).contains("no K/N"));
        assert!(said(&["--shard"]).contains("needs K/N"));
        assert!(said(&["books"]).contains("'books'"));
    }

    #[test]
    fn what_stands_between_back_quotes_is_judged() {
        let name = "crates/book/src/books.rs: replace > with >= in Books::new";
        let document =
            format!("# Mutants\n\n- `{name}`: it is the same.\n- `x: y #2` (twice): so is this.\n");
        let judged = judged(&document);
        assert!(judged.contains(name) && judged.contains("x: y #2") && judged.len() == 2);
    }

    #[test]
    fn every_file_that_is_mutated_is_there() {
        for target in TARGETS {
            let (folders, files): (Vec<&str>, Vec<&str>) = target.files.iter().partition(|f| f.contains('*'));
            for file in files {
                assert!(root().join(file).is_file(), "{file}");
            }
            assert!(folders.len() < target.files.len(), "{}", target.name);
        }
    }
}
