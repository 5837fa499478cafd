//! `cargo xtask aarch64`: everything is compiled for AArch64, as far as that goes without linking.

use std::process::{Command, ExitCode};

use crate::run::{cargo, must, target_dir};

const HELP: &str = "\
Checks every crate, test and benchmark for AArch64 (`cargo check`): what C has without a sign there and with one on x86-64, and other differences
that no machine of one kind shows. Nothing is linked or run.

  cargo xtask aarch64

Needs the standard library of that target, which rustup brings, and a C compiler for it (apt-get install gcc-aarch64-linux-gnu). What is built is
below target/aarch64. Not part of check. Exit code 1: something does not compile. 2: it could not begin.
";
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    match words {
        ["--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        [] => {}
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    }
    if let Err(why) = must(Command::new("rustup").args(["target", "add", TARGET])) {
        eprintln!("xtask aarch64: {why}");
        return ExitCode::from(2);
    }
    let checked = cargo()
        .args([
            "check",
            "--workspace",
            "--all-targets",
            "--locked",
            "--target",
            TARGET,
        ])
        .arg("--target-dir")
        .arg(target_dir().join("aarch64"))
        .env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")
        .status();
    match checked {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask aarch64: cargo: {why}");
            ExitCode::from(2)
        }
    }
}
