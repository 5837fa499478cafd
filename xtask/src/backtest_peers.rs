//! `cargo xtask backtest-peers`: our backtests beside hftbacktest's and nautilus_trader's, in one run
//! (`peers/backtest`).

use std::path::PathBuf;
use std::process::ExitCode;

use crate::run::{cargo, must, python_with, root, target_dir};

const HELP: &str = "\
Runs the same recordings through Tickwire's backtest, hftbacktest 0.9.4 and nautilus_trader 1.231: one synthetic future, 500 synthetic shares
(without nautilus_trader), and a DBN file of one future. Idle, and quoting every 100 ms. Prints processor time for an event.

  cargo xtask backtest-peers [--file FILE] [--events N] [--rounds N] [--python PATH]

  --file FILE     market by order of the ES future of March 2024 (ESH4), .dbn or .dbn.zst: of the recorded data
                  captures/books/cme-mbo/esh4-glbx-mdp3-20231225.mbo.dbn.zst
  --events N      of each synthetic recording (default 2000000)
  --rounds N      turns of which the least time counts (default 3)
  --python PATH   a Python that has nautilus_trader; without it, it is installed from PyPI into target/peers/nautilus_trader, which needs a python3
                  of 3.12 or later
  --without-nautilus-trader

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
            "--file" | "--events" | "--rounds" => passed.extend([word, value()?]),
            "--python" => python = Some(PathBuf::from(value()?)),
            "--without-nautilus-trader" => is_without = true,
            other => return Err(format!("unknown word '{other}'\n\n{HELP}")),
        }
    }
    let python = match python {
        _ if is_without => None,
        Some(python) => Some(python),
        None => Some(python_with(PACKAGE, &target_dir().join("peers/nautilus_trader"))?),
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
