//! `cargo xtask pgo`: the programs that are handed on, built by what they do in a training run.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::command::{self, Findings};
use crate::run::{by_hand, cargo, copy, must, root, said, sysroot, target_dir};

const HELP: &str = "\
Builds tickwire, tickwire-lab and the C library of recordings with the profile dist, and with a record of which way their branches went in
a training run (profile-guided optimisation; the rustc book, \"Profile-guided Optimization\"): first programs that count, then the training,
then the programs. They go into target/pgo/programs, the record into target/pgo/tickwire.profdata.

  cargo xtask pgo                  all of it: half an hour on two cores that nothing else uses
  cargo xtask pgo --record FILE    with an earlier record of the same sources, in a third of the time

The training is benchmarks of every feed into books, shared memory and orders, a day of eight equity feeds, of CME and of Moscow written
and replayed, a backtest, FIX sessions, and the demonstrations of trader and quoter; its runs must end well. Nothing that it measures is
of use. Needs the component llvm-tools, which rustup adds. Not part of check. Exit code 2: it could not be done.
";

/// What is built: packages, and what each leaves.
const PACKAGES: [(&str, &str); 3] = [
    ("tickwire-app", "tickwire"),
    ("tickwire-lab-app", "tickwire-lab"),
    ("tickwire-capi", "libtickwire_recording.so"),
];

/// How they are built.
pub(crate) const BUILD: [&str; 6] = [
    "build",
    "--locked",
    "--profile",
    "dist",
    "--features",
    "tickwire-app/tables",
];

/// The packages, for Cargo.
pub(crate) fn packages() -> impl Iterator<Item = &'static str> {
    let packages = PACKAGES.iter();
    packages.flat_map(|(package, _)| ["--package", package])
}

/// The training: a program and its words; a word that begins with `@` is a file of the repository.
const TRAINING: [(&str, &[&str]); 16] = [
    ("tickwire-lab", &["bench", "--messages", "200000", "--runs", "1"]),
    (
        "tickwire-lab",
        &["bench", "--feed", "all", "--messages", "100000", "--runs", "1"],
    ),
    (
        "tickwire-lab",
        &["bench", "--publish", "--messages", "100000", "--runs", "1"],
    ),
    (
        "tickwire",
        &[
            "exchange",
            "-c",
            "@examples/equities.toml",
            "--write-capture",
            "equities.pcap",
            "--packets",
            "300000",
        ],
    ),
    (
        "tickwire",
        &[
            "exchange",
            "-c",
            "@examples/cme.toml",
            "--write-capture",
            "cme.pcap",
            "--packets",
            "100000",
        ],
    ),
    (
        "tickwire",
        &[
            "exchange",
            "-c",
            "@examples/moex.toml",
            "--write-capture",
            "moex.pcap",
            "--packets",
            "100000",
        ],
    ),
    (
        "tickwire",
        &[
            "feed",
            "-c",
            "@examples/equities.toml",
            "--replay",
            "equities.pcap",
            "--speed",
            "max",
            "--exit",
        ],
    ),
    (
        "tickwire",
        &["replay", "-c", "@examples/equities.toml", "equities.pcap"],
    ),
    ("tickwire", &["replay", "-c", "@examples/cme.toml", "cme.pcap"]),
    ("tickwire", &["replay", "-c", "@examples/moex.toml", "moex.pcap"]),
    (
        "tickwire",
        &[
            "decode",
            "-c",
            "@examples/equities.toml",
            "equities.pcap",
            "--limit",
            "20000",
        ],
    ),
    (
        "tickwire",
        &[
            "strategy",
            "backtest",
            "@examples/strategies/two_sided_quoter.tw",
            "-c",
            "@examples/strategies/backtest.toml",
            "equities.pcap",
        ],
    ),
    (
        "tickwire",
        &["fix", "bench", "--orders", "20000", "--rounds", "2"],
    ),
    ("tickwire", &["demo", "--seconds", "10"]),
    ("tickwire", &["demo", "--feed", "moex", "--seconds", "5"]),
    ("tickwire", &["demo", "quoter", "--seconds", "10"]),
];

/// What to do.
#[derive(Debug, PartialEq)]
struct Plan {
    record: Option<PathBuf>,
}

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    command::run("pgo", HELP, words, plan, |plan| {
        built(plan.record)?;
        Ok(Findings::default())
    })
}

fn plan(words: &[&str]) -> Result<Plan, String> {
    match words {
        [] => Ok(Plan { record: None }),
        ["--record", file] => Ok(Plan {
            record: Some(PathBuf::from(file)),
        }),
        [unknown, ..] => Err(format!("'{unknown}' is no option")),
    }
}

/// Builds them; the folder that they are in.
pub(crate) fn built(record: Option<PathBuf>) -> Result<PathBuf, String> {
    let began = Instant::now();
    let tell = |what: &str| println!("== pgo, {} s: {what}", began.elapsed().as_secs());
    let here = target_dir().join("pgo");
    let record = match record {
        Some(file) => root().join(file),
        None => {
            let merger = merger()?;
            let counts = here.join("counts");
            let _ = std::fs::remove_dir_all(&counts);
            tell("building the programs that count");
            let counting = build(
                &here.join("counting"),
                &format!("-Cprofile-generate={}", shown(&counts)?),
            )?;
            train(&counting, &here.join("training"), &tell)?;
            tell("merging what they have counted");
            let record = here.join("tickwire.profdata");
            must(
                Command::new(merger)
                    .arg("merge")
                    .arg("-o")
                    .arg(&record)
                    .arg(&counts),
            )?;
            record
        }
    };
    tell("building the programs");
    let folder = build(
        &here.join("guided"),
        &format!("-Cprofile-use={}", shown(&record)?),
    )?;
    let programs = here.join("programs");
    for (_, file) in PACKAGES {
        copy(&folder.join(file), &programs.join(file))?;
    }
    tell(&format!("they are in {}", programs.display()));
    Ok(programs)
}

/// A path for a flag, in which words end with a space.
fn shown(path: &Path) -> Result<&str, String> {
    path.to_str()
        .filter(|text| !text.contains(' '))
        .ok_or_else(|| format!("{}: a folder without spaces is needed", path.display()))
}

/// The program that merges what was counted: of the component `llvm-tools` of the toolchain that builds.
fn merger() -> Result<PathBuf, String> {
    let sysroot = sysroot().ok_or("rustc does not say where its files are")?;
    let program = sysroot.join(format!("lib/rustlib/{}/bin/llvm-profdata", host()?));
    if !program.exists() {
        must(Command::new("rustup").args(["component", "add", "llvm-tools"]))?;
    }
    match program.exists() {
        true => Ok(program),
        false => Err(format!(
            "{}: it is not there; add the component llvm-tools to the toolchain",
            program.display()
        )),
    }
}

/// The target of this machine.
fn host() -> Result<String, String> {
    crate::bare::host().ok_or_else(|| "rustc -vV does not name the host".into())
}

/// Builds the packages below a folder with a flag of the compiler; where they are. For a named target: the
/// flag is not for build scripts then.
fn build(target: &Path, flag: &str) -> Result<PathBuf, String> {
    let host = host()?;
    let mut build = cargo();
    build
        .args(BUILD)
        .args(["--target", &host])
        .args(packages())
        .env("CARGO_TARGET_DIR", target)
        .env("RUSTFLAGS", flag)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    must(build.current_dir(root()))?;
    Ok(target.join(host).join("dist"))
}

/// Has the programs of a folder do everything in another one.
fn train(programs: &Path, folder: &Path, tell: &dyn Fn(&str)) -> Result<(), String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for (program, words) in TRAINING {
        let words = words.iter().map(|word| match word.strip_prefix('@') {
            Some(file) => root().join(file).into_os_string(),
            None => word.into(),
        });
        let mut command = by_hand(programs.join(program));
        command.args(words).current_dir(folder);
        tell(&crate::run::words(&command));
        said(&mut command)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_training_reads_is_there() {
        for (program, words) in TRAINING {
            assert!(PACKAGES.iter().any(|(_, file)| *file == program), "{program}");
            for file in words.iter().filter_map(|word| word.strip_prefix('@')) {
                assert!(root().join(file).is_file(), "{file}");
            }
        }
    }

    #[test]
    fn words_are_a_plan_or_refused() {
        assert_eq!(plan(&[]), Ok(Plan { record: None }));
        let record = Some(PathBuf::from("one.profdata"));
        assert_eq!(plan(&["--record", "one.profdata"]), Ok(Plan { record }));
        assert!(plan(&["--record"]).is_err() && plan(&["--fast"]).is_err());
        assert_eq!(shown(Path::new("/of/one")), Ok("/of/one"));
        assert!(shown(Path::new("/of two")).is_err());
    }
}
