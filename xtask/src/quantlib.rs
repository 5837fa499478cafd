//! `cargo xtask quantlib`: our option values beside QuantLib's (`peers/options`).

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::run::{cargo, root, target_dir};

const HELP: &str = "\
Compares Tickwire's option values with QuantLib's on random terms from a fixed seed: Black-76 with Greeks, far options, Bachelier,
implied volatility, American options on futures.

  cargo xtask quantlib

Needs Python 3 with venv and the network once: QuantLib 1.44 is installed from PyPI into target/quantlib. Not part of check.
Exit code 1: a difference is larger than allowed. 2: it could not begin.
";

/// What is installed; another version may differ in its last digits.
const PACKAGE: &str = "QuantLib==1.44";

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    match words {
        [] => {}
        ["--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        [other, ..] => {
            eprintln!("xtask quantlib: unknown word '{other}'\n\n{HELP}");
            return ExitCode::from(2);
        }
    }
    match compared() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask quantlib: {why}");
            ExitCode::from(2)
        }
    }
}

fn compared() -> Result<bool, String> {
    let folder = target_dir().join("quantlib");
    let python = folder.join("bin/python");
    if !python.exists() {
        must(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    must(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        PACKAGE,
    ]))?;
    must(cargo().args([
        "build",
        "--release",
        "--package",
        "tickwire-options",
        "--example",
        "values",
    ]))?;
    let program = target_dir().join("release/examples/values");
    let script = root().join("peers/options/quantlib_compare.py");
    let status = Command::new(&python)
        .arg(script)
        .arg(&program)
        .status()
        .map_err(|e| cannot_start(&python, &e))?;
    Ok(status.success())
}

fn must(command: &mut Command) -> Result<(), String> {
    let program = Path::new(command.get_program()).to_owned();
    let status = command.status().map_err(|e| cannot_start(&program, &e))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} failed: {status}"))
    }
}

fn cannot_start(program: &Path, e: &std::io::Error) -> String {
    format!("{}: {e}; is it installed?", program.display())
}
