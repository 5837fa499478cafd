//! `cargo xtask backtest-peers`: our backtests beside hftbacktest's and nautilus_trader's, in one run
//! (`peers/backtest`).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::run::{cargo, must, python_of, root, target_dir};

const HELP: &str = "\
Runs the same recordings through Tickwire's backtest, hftbacktest 0.9.4 and nautilus_trader 1.231: one synthetic future, 500 synthetic shares,
and a DBN file of one future, whole and without its longest pause. Idle, and quoting every 100 ms. Prints processor time for an event.

  cargo xtask backtest-peers [--file FILE] [--events N] [--rounds N] [--patience SECONDS] [--python PATH | --without-nautilus-trader | --alone]

  --file FILE     market by order of the ES future of March 2024 (ESH4), .dbn or .dbn.zst: of the recorded data
                  captures/books/cme-mbo/esh4-glbx-mdp3-20231225.mbo.dbn.zst
  --events N      of each synthetic recording (default 2000000)
  --patience SECONDS  after which nautilus_trader is stopped in a run, and that is said (default 900)
  --rounds N      turns of which the least time counts (default 3)
  --python PATH   a Python of 3.12 or later that has nautilus_trader; without it, it is installed from PyPI into target/peers/nautilus_trader, by the first Python of
                  3.12 or later among python3, python3.12 to python3.14 and pyenv's (PYENV_ROOT, or ~/.pyenv)
  --without-nautilus-trader
                  Tickwire and hftbacktest alone, which need no Python
  --alone         Tickwire alone, on a file that others do not take (one with a clear in it, for hftbacktest)

Needs the network once. Not part of check.
Exit code 1: a contestant's final book is not the recording's, or it refused a request. 2: it could not begin.
";

/// What is installed.
const PACKAGE: &str = "nautilus_trader==1.231.0";

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    match compare(words) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("xtask backtest-peers: {why}");
            ExitCode::from(2)
        }
    }
}

/// What nautilus_trader needs.
const OLDEST: Version = (3, 12);

/// Where a Python may be.
fn pythons() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = ["python3", "python3.14", "python3.13", "python3.12"]
        .map(PathBuf::from)
        .to_vec();
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let versions = pyenv.and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let mut known: Vec<PathBuf> = versions
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin/python3")))
        .collect();
    known.sort();
    all.append(&mut known);
    all
}

/// A version, its first two numbers.
type Version = (u32, u32);

/// The first one that is new enough, or which there are.
fn new_enough(pythons: &[PathBuf], version_of: impl Fn(&Path) -> Option<Version>) -> Result<PathBuf, String> {
    let mut found = Vec::new();
    for python in pythons {
        let Some((major, minor)) = version_of(python) else {
            continue;
        };
        if (major, minor) >= OLDEST {
            return Ok(python.clone());
        }
        found.push(format!("{} is {major}.{minor}", python.display()));
    }
    let found = match found.is_empty() {
        true => "there is no python3 here".to_owned(),
        false => found.join(", "),
    };
    Err(wanted(&found))
}

/// One that was named, if it is new enough.
fn named(python: PathBuf, version: Option<Version>) -> Result<PathBuf, String> {
    match version {
        Some(version) if version >= OLDEST => Ok(python),
        Some((major, minor)) => Err(wanted(&format!("{} is {major}.{minor}", python.display()))),
        None => Err(wanted(&format!("{} does not start as one", python.display()))),
    }
}

/// What to do where there is no Python that is new enough. `found`: what there is.
fn wanted(found: &str) -> String {
    format!(
        "{PACKAGE} needs Python {}.{} or later, and {found}; name one with --python PATH (it must have {PACKAGE}), install one, or leave \
         nautilus_trader out with --without-nautilus-trader",
        OLDEST.0, OLDEST.1
    )
}

/// What a Python says of itself; none if it does not start.
fn version_of(python: &Path) -> Option<Version> {
    let said = Command::new(python)
        .args([
            "-c",
            "import sys; print(sys.version_info[0], sys.version_info[1])",
        ])
        .output()
        .ok()
        .filter(|said| said.status.success())?;
    let text = String::from_utf8_lossy(&said.stdout);
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn compare(words: &[&str]) -> Result<ExitCode, String> {
    let (mut passed, mut python, mut is_without) = (Vec::new(), None, false);
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value\n\n{HELP}"));
        match word {
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            "--file" | "--events" | "--rounds" | "--patience" => passed.extend([word, value()?]),
            "--python" => python = Some(PathBuf::from(value()?)),
            "--without-nautilus-trader" => is_without = true,
            "--alone" => {
                is_without = true;
                passed.push(word);
            }
            other => return Err(format!("unknown word '{other}'\n\n{HELP}")),
        }
    }
    let python = match python {
        _ if is_without => None,
        Some(python) => {
            let version = version_of(&python);
            Some(named(python, version)?)
        }
        None => {
            let folder = target_dir().join("peers/nautilus_trader");
            let own = version_of(&folder.join("bin/python"));
            if own.is_some_and(|version| version < OLDEST) {
                std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            }
            Some(python_of(&new_enough(&pythons(), version_of)?, PACKAGE, &folder)?)
        }
    };
    let manifest = root().join("peers/backtest/Cargo.toml");
    must(
        cargo()
            .args(["build", "--release", "--locked", "--manifest-path"])
            .arg(&manifest),
    )?;
    let mut command = cargo();
    command
        .args(["run", "--quiet", "--release", "--locked", "--manifest-path"])
        .arg(&manifest)
        .arg("--");
    command.args(passed);
    if let Some(python) = python {
        command.arg("--python").arg(python);
    }
    let status = command.status().map_err(|e| e.to_string())?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_is_missing_is_said_with_what_to_do() {
        let why = new_enough(&[PathBuf::from("no-such-python")], version_of).expect_err("there is none");
        assert!(why.contains("3.12 or later") && why.contains("--python"), "{why}");
        assert!(why.contains("there is no python3"), "{why}");
        assert!(why.contains("--without-nautilus-trader"), "{why}");
        let why = compare(&["--python", "no-such-python"]).expect_err("there is none");
        assert!(why.contains("no-such-python does not start"), "{why}");
        assert!(
            why.contains("3.12 or later") && why.contains("--without-nautilus-trader"),
            "{why}"
        );
    }

    #[test]
    fn a_python_that_is_too_old_is_said_with_its_version() {
        let version = |python: &Path| match python.to_str() {
            Some("old") => Some((2, 7)),
            Some("older-than-it-looks") => Some((3, 9)),
            Some("new") => Some((3, 12)),
            Some("next") => Some((4, 0)),
            _ => None,
        };
        let all = ["none", "old", "older-than-it-looks", "new", "next"].map(PathBuf::from);
        let why = new_enough(&all[..3], version).expect_err("all are too old");
        assert!(why.contains("old is 2.7, older-than-it-looks is 3.9;"), "{why}");
        assert!(why.contains("3.12 or later") && why.contains("--python"), "{why}");
        assert_eq!(new_enough(&all, version), Ok(all[3].clone()));
        for python in &all {
            let is_new_enough = ["new", "next"].iter().any(|new| python == Path::new(new));
            assert_eq!(
                named(python.clone(), version(python)).is_ok(),
                is_new_enough,
                "{python:?}"
            );
        }
        let why = named(all[1].clone(), version(&all[1])).expect_err("it is too old");
        assert!(
            why.contains("old is 2.7;") && why.contains("--without-nautilus-trader"),
            "{why}"
        );
    }
}
