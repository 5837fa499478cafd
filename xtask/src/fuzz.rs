//! Fuzzing on stable: starts the runner of `crates/fuzzing`, which holds the targets, the mutator and the
//! corpus.

use crate::run::{Context, Outcome, build_as_tested, cargo, root, target_dir};
use std::process::{Command, ExitCode};

/// A fixed number of inputs a target from a fixed seed: the same on every machine.
pub(crate) fn smoke(ctx: &Context) -> Outcome {
    let built = build_as_tested(ctx, &["--bin", "tickwire-fuzzing", "--example", "region"]);
    if built.failed > 0 {
        return built;
    }
    let mut runner = Command::new(target_dir().join("debug/tickwire-fuzzing"));
    ctx.check(runner.args(["--seed", "1", "--inputs", "2000"]))
}

/// `cargo xtask fuzz …`: the arguments are the runner's.
pub(crate) fn hunt(args: &[&str]) -> ExitCode {
    match runner().args(args).current_dir(root()).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: cannot run cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The runner alone, built like the tests: optimised, with assertions and overflow checks.
fn runner() -> Command {
    let mut command = cargo();
    command.args([
        "run",
        "--quiet",
        "--locked",
        "--profile",
        "test",
        "--package",
        "tickwire-fuzzing",
        "--",
    ]);
    command
}
