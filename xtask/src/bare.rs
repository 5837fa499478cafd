//! The proof that the pure crates need no operating system: `crates/bare` calls each of them and is linked
//! without C library and start files, so that any symbol of an operating system is a link error. On Linux it
//! is also run.

use crate::run::{Context, Outcome, cargo, target_dir};
use std::process::Command;

/// Everything stays in the program (`link-dead-code`), so that unused functions are checked too; a fixed
/// address because nobody is there to relocate it.
const FLAGS: &str = "-D warnings -C relocation-model=static -C link-dead-code -C link-arg=-nostdlib -C link-arg=-nostartfiles -C link-arg=-static";

/// The whole step.
pub(crate) fn check(ctx: &Context) -> Outcome {
    let Some(host) = host() else {
        return Outcome {
            failed: 1,
            notes: vec!["rustc -vV does not name the host".into()],
            ..Outcome::default()
        };
    };
    // A named target keeps these flags away from build scripts and procedural macros; a directory of its own
    // keeps the ordinary builds from being redone.
    let dir = target_dir().join("bare");
    let mut build = cargo();
    build.args([
        "build",
        "--locked",
        "--package",
        "tickwire-bare",
        "--features",
        "freestanding",
        "--profile",
        "bare",
    ]);
    build
        .arg("--target")
        .arg(&host)
        .arg("--target-dir")
        .arg(&dir)
        .env("RUSTFLAGS", FLAGS);
    let mut outcome = ctx.check(&mut build);
    if outcome.failed == 0 && cfg!(target_os = "linux") {
        let run = ctx.check(&mut Command::new(
            dir.join(&host).join("bare").join("tickwire-bare"),
        ));
        outcome = Outcome {
            passed: outcome.passed + run.passed,
            again: "cargo xtask bare".into(),
            ..run
        };
    }
    outcome
}

/// The target of this machine.
pub(crate) fn host() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
}
