//! `cargo xtask fuzz`: runs the targets from a seed, keeps the input that failed and prints how to repeat it.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tickwire_fuzzing::{Budget, Crash, TARGETS, Target, crash, find, run};

const HELP: &str = "\
cargo xtask fuzz [target] [options]

  --seconds N    look for N seconds at each target (default 10)
  --inputs N     try N inputs at each target instead
  --seed S       start from this seed (default: from the clock; it is printed)
  --input FILE   try this file's bytes only; needs a target
  --list         the targets
";

struct Options {
    target: Option<&'static Target>,
    budget: Budget,
    seed: u64,
    input: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|a| a == "--help" || a == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    if args.iter().any(|a| a == "--list") {
        for target in TARGETS {
            println!("  {:<16} {}", target.name, target.about);
        }
        return ExitCode::SUCCESS;
    }
    match parse(&args) {
        Ok(options) => start(&options),
        Err(why) => {
            eprintln!("fuzz: {why}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn parse(args: &[String]) -> Result<Options, String> {
    let clock = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |t| t.as_nanos() as u64);
    let mut options = Options {
        target: None,
        budget: Budget::Time(Duration::from_secs(10)),
        seed: clock,
        input: None,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        let number = |text: &String| {
            text.parse::<u64>()
                .map_err(|_| format!("{arg} takes a whole number, not '{text}'"))
        };
        match arg.as_str() {
            "--seconds" => options.budget = Budget::Time(Duration::from_secs(number(value()?)?)),
            "--inputs" => options.budget = Budget::Inputs(number(value()?)?),
            "--seed" => options.seed = number(value()?)?,
            "--input" => options.input = Some(value()?.into()),
            name => {
                options.target = Some(
                    find(name).ok_or(format!("no target or option '{name}'; --list shows the targets"))?,
                )
            }
        }
    }
    Ok(options)
}

fn start(options: &Options) -> ExitCode {
    if let Some(path) = &options.input {
        return try_file(options.target, path);
    }
    let targets = TARGETS
        .iter()
        .filter(|t| options.target.is_none_or(|wanted| wanted.name == t.name));
    let failed = targets.filter(|target| !holds(target, options)).count();
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs one target and says how it went; whether that is how it should go.
fn holds(target: &Target, options: &Options) -> bool {
    let report = run(target, options.seed, options.budget);
    let (name, inputs) = (target.name, report.inputs);
    match &report.crash {
        None if target.must_fail => println!(
            "{name:<16} MISSED: failed for none of {inputs} inputs, but must (seed {})",
            options.seed
        ),
        None => println!("{name:<16} ok, {inputs} inputs (seed {})", options.seed),
        Some(_) if target.must_fail => println!(
            "{name:<16} ok, found after {inputs} inputs, as it must be (seed {})",
            options.seed
        ),
        Some(found) => tell(target, options.seed, inputs, found),
    }
    report.crash.is_some() == target.must_fail
}

fn tell(target: &Target, seed: u64, inputs: u64, found: &Crash) {
    let name = target.name;
    println!(
        "{name:<16} FAILED at input {inputs} (seed {seed}): {}",
        found.message
    );
    println!("  input: {}", tickwire_testdata::hex(&found.input));
    println!("  again: cargo xtask fuzz {name} --seed {seed} --inputs {inputs}");
    let path = tickwire_testdata::workspace()
        .join("target/fuzz")
        .join(format!("{name}-{seed}-{inputs}.bin"));
    let kept = std::fs::create_dir_all(path.parent().unwrap_or(&path))
        .and_then(|()| std::fs::write(&path, &found.input));
    match kept {
        Ok(()) => println!("  or:    cargo xtask fuzz {name} --input {}", path.display()),
        Err(error) => println!("  the input could not be kept in {}: {error}", path.display()),
    }
}

fn try_file(target: Option<&Target>, path: &PathBuf) -> ExitCode {
    let Some(target) = target else {
        eprintln!("fuzz: --input needs a target");
        return ExitCode::from(2);
    };
    let input = match std::fs::read(path) {
        Ok(input) => input,
        Err(error) => {
            eprintln!("fuzz: cannot read {}: {error}", path.display());
            return ExitCode::from(2);
        }
    };
    match crash(target, &input) {
        None => println!("{}: holds for {}", target.name, path.display()),
        Some(found) => println!("{}: FAILED: {}", target.name, found.message),
    }
    if crash(target, &input).is_some() == target.must_fail {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
