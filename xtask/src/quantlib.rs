//! `cargo xtask quantlib`: our option values beside QuantLib's, and their speed beside others'
//! (`peers/options`).

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::run::{cannot_start, cargo, must, python_with, root, target_dir};

const HELP: &str = "\
Compares Tickwire's option values with QuantLib's on random terms from a fixed seed: Black-76 with Greeks, far options, Bachelier,
implied volatility, American options on futures.

  cargo xtask quantlib
  cargo xtask quantlib --speed    price and four Greeks of 1024 options: ours, one loop with glibc's vector functions (libmvec), scalar,
                                  and QuantLib's BlackCalculator, by turns on one core; the least of all rounds counts

Needs Python 3 with venv and the network once: QuantLib 1.44 is installed from PyPI into target/quantlib. --speed needs g++, and
for QuantLib's C++ the package libquantlib0-dev, without which that row is left out. Not part of check.
Exit code 1: a difference is larger than allowed. 2: it could not begin.
";

/// Turns of ours and theirs.
const TURNS: usize = 5;

/// What is installed; another version may differ in its last digits.
const PACKAGE: &str = "QuantLib==1.44";

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    match words {
        [] => {}
        ["--speed"] => {
            return match speed() {
                Ok(()) => ExitCode::SUCCESS,
                Err(why) => {
                    eprintln!("xtask quantlib: {why}");
                    ExitCode::from(2)
                }
            };
        }
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
    let python = python_with(PACKAGE, &folder)?;
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

/// Ours and theirs by turns; nanoseconds an option and ratios.
fn speed() -> Result<(), String> {
    let (program, has_quantlib) = theirs()?;
    must(cargo().args([
        "bench",
        "--no-run",
        "--quiet",
        "--package",
        "tickwire-options",
        "--bench",
        "reprice",
    ]))?;
    let mut best: Vec<(String, f64)> = Vec::new();
    let mut note = |name: String, ns: f64| match best.iter_mut().find(|(known, _)| *known == name) {
        Some((_, least)) => *least = least.min(ns),
        None => best.push((name, ns)),
    };
    for _ in 0..TURNS {
        let ours = output(
            cargo()
                .args([
                    "bench",
                    "--quiet",
                    "--package",
                    "tickwire-options",
                    "--bench",
                    "reprice",
                    "--",
                ])
                .args(["--rounds", "20", "--only", "price and four Greeks"]),
        )?;
        for (name, ns) in ours.lines().filter_map(row) {
            note(name, ns);
        }
        for line in output(Command::new(&program).arg("20"))?.lines() {
            if let Some((name, ns)) = line.split_once(' ')
                && let Ok(ns) = ns.parse()
            {
                note(name.to_owned(), ns);
            }
        }
    }
    let first = best.first().map_or(1.0, |(_, ns)| *ns);
    println!(
        "{:<62} {:>9} {:>8}",
        "price and four Greeks, 1024 options", "ns/option", "x first"
    );
    for (name, ns) in &best {
        println!("{name:<62} {ns:>9.2} {:>8.1}", ns / first);
    }
    if !has_quantlib {
        println!("quantlib: not measured, libquantlib0-dev is not installed");
    }
    Ok(())
}

/// A line of our bench: name, nanoseconds, ratio.
fn row(line: &str) -> Option<(String, f64)> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let _ratio: f64 = words.pop()?.parse().ok()?;
    let ns = words.pop()?.parse().ok()?;
    Some((words.join(" "), ns))
}

/// Builds the program of the others; whether QuantLib is in it.
fn theirs() -> Result<(std::path::PathBuf, bool), String> {
    let program = target_dir().join("options-speed");
    let source = root().join("peers/options/speed.cpp");
    let has_quantlib = Path::new("/usr/include/ql/quantlib.hpp").exists();
    let mut command = Command::new("g++");
    command
        .args([
            "-O3",
            "-ffast-math",
            "-march=native",
            "-mprefer-vector-width=512",
            "-std=c++17",
        ])
        .arg(&source)
        .arg("-o")
        .arg(&program);
    if has_quantlib {
        command.args(["-DWITH_QUANTLIB", "-lQuantLib"]);
    }
    must(command.args(["-lmvec", "-lm"]))?;
    Ok((program, has_quantlib))
}

fn output(command: &mut Command) -> Result<String, String> {
    let program = Path::new(command.get_program()).to_owned();
    let done = command.output().map_err(|e| cannot_start(&program, &e))?;
    if done.status.success() {
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    } else {
        let says = String::from_utf8_lossy(&done.stderr);
        Err(format!("{command:?} failed: {}: {}", done.status, says.trim()))
    }
}
