//! `cargo xtask properties`: the property tests with many more cases than the ordinary tests draw, from a
//! seed of its own each time.

use crate::command::{self, Findings};
use crate::run::{by_hand, root};
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
Runs the property tests of every crate that has some, optimised, with many cases each and from a seed that is printed. `cargo xtask
check` draws few cases, from the same seed each time: it never fails by chance, and never finds what this command finds.

  cargo xtask properties [CRATE…] [--cases N] [--seed S]

  --cases N   cases a test, 1 or more (100000: some eight minutes on two cores)
  --seed S    0 or more (the time of day): a failure is repeated with the seed that was printed

Exit code 1: a test failed; its smallest failing input is printed. 2: the command line.
";

/// The variable from which proptest reads the seed of its cases.
pub(crate) const SEED: &str = "PROPTEST_RNG_SEED";

/// The crates with property tests.
const CRATES: &[&str] = &[
    "archive",
    "export",
    "fix",
    "fixmsg",
    "kernel",
    "options",
    "shm",
    "trading",
    "wire-cboe",
    "wire-cme",
    "wire-moex",
    "wire-nasdaq",
    "wire-nyse",
    "wire-sip",
];

struct Plan<'a> {
    crates: Vec<&'a str>,
    cases: u32,
    seed: u64,
}

fn plan<'a>(words: &[&'a str], now: u64) -> Result<Plan<'a>, String> {
    let mut plan = Plan {
        crates: Vec::new(),
        cases: 100_000,
        seed: now,
    };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--cases" => {
                plan.cases = u32::try_from(command::number(word, &mut words)?)
                    .ok()
                    .filter(|cases| *cases > 0)
                    .ok_or("--cases: from 1 to 4294967295")?;
            }
            "--seed" => plan.seed = command::number(word, &mut words)?,
            name if CRATES.contains(&name) => plan.crates.push(name),
            other => {
                let known = CRATES.join(", ");
                return Err(format!(
                    "no option, and no crate with property tests: '{other}' (there are {known})"
                ));
            }
        }
    }
    if plan.crates.is_empty() {
        plan.crates = CRATES.to_vec();
    }
    Ok(plan)
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
    command::run("properties", HELP, words, |words| plan(words, now), work)
}

fn work(plan: Plan<'_>) -> Result<Findings, String> {
    crate::recorded::freshen();
    println!("seed {}, {} cases a test", plan.seed, plan.cases);
    let mut findings = Findings::default();
    for name in &plan.crates {
        let began = Instant::now();
        let status = by_hand("cargo")
            .current_dir(root())
            .args(["test", "--release", "--locked", "--quiet", "--no-fail-fast"])
            .args(["--package", &format!("tickwire-{name}")])
            .env("PROPTEST_CASES", plan.cases.to_string())
            .env(SEED, plan.seed.to_string())
            // Cases that an assumption turns away are no failure, however many they are.
            .env("PROPTEST_MAX_GLOBAL_REJECTS", u32::MAX.to_string())
            // The seed repeats a failure; nothing is written into the sources.
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
            .status();
        let is_good = status.is_ok_and(|status| status.success());
        findings.count(&format!("tickwire-{name}"), began, is_good);
        if !is_good {
            println!(
                "        again: cargo xtask properties {name} --cases {} --seed {}",
                plan.cases, plan.seed
            );
        }
    }
    Ok(findings.sum_up())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_what_is_unknown_is_named() {
        let plan =
            plan(&["fix", "--cases", "7", "wire-sip", "--seed", "3"], 1).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            (plan.crates, plan.cases, plan.seed),
            (vec!["fix", "wire-sip"], 7, 3)
        );
        let said = |words: &[&str]| super::plan(words, 1).err().unwrap_or_default();
        assert!(said(&["--cases", "0"]).contains("from 1"));
        assert!(said(&["--cases"]).contains("needs a number"));
        assert!(said(&["--seed", "x"]).contains("'x' is no whole number"));
        assert!(said(&["book"]).contains("'book'"));
    }

    /// A crate with property tests is hunted in.
    #[test]
    fn no_crate_with_property_tests_is_forgotten() {
        let mut with = Vec::new();
        for home in ["crates", "apps"] {
            for entry in std::fs::read_dir(root().join(home)).expect("a folder of crates") {
                let folder = entry.expect("an entry").path();
                let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
                if manifest.lines().any(|line| line.starts_with("proptest")) {
                    with.push(folder.file_name().expect("a name").to_string_lossy().into_owned());
                }
            }
        }
        with.sort();
        assert_eq!(with, CRATES);
    }
}
