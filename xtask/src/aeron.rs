//! `cargo xtask aeron`: mirrors of a feed handler's memory over Aeron, on three hosts that are namespaces of
//! this machine.

use std::process::Command;
use std::process::ExitCode;

use crate::run::{cargo, python_with, target_dir};

const HELP: &str = "\
Builds the crate of `tickwire mirror` with Aeron's C driver and runs its tests on three hosts of one machine (network namespaces and a
bridge): a feed handler and its publisher on one, a mirror on each of two others, one packet of a hundred lost at each. Every event has to
arrive on both, once and in order, and books have to be equal; hosts join late, stand still, are killed, and so is the publisher; one test has no
multicast. It prints how many events a second went through, and asks for no speed. Then it builds the whole program with Aeron: exchange, feed
handler that receives with 1 % loss, publisher and mirror as processes, whose books have to end as the exchange's.

  cargo xtask aeron [--events N] [--rate N]

  --events N   of the test that loses packets (default 1000000; less than 1048576, so that the feed handler's own ring holds all of them)
  --rate N     so many a second (default 1000000; 0: as fast as they can be written)

Needs root for the namespaces (without it those tests are skipped and say so; with TICKWIRE_ROOT_TESTS=1 they fail), a C++ compiler,
libclang (Debian: clang libclang-dev libbsd-dev uuid-dev), and CMake 3.30 or later, which is taken from PyPI where the system's is older.
`sysctl net.core.rmem_max=4194304` before it gives sockets the room that the rate wants. What is built is below target/aeron. Not part of check.
Exit code 1: a test failed. 2: it could not begin.
";
const CMAKE: &str = "cmake==4.2.3";

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let (mut events, mut rate) = ("1000000", "1000000");
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match (*word, rest.next().copied()) {
            ("--events", Some(n)) if n.parse::<u32>().is_ok_and(|n| (1..1 << 20).contains(&n)) => events = n,
            ("--rate", Some(n)) if n.parse::<u64>().is_ok() => rate = n,
            ("--help" | "-h", _) => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            _ => {
                eprint!("{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    match tested(events, rate) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask aeron: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether the system's CMake is one that Aeron takes.
fn has_cmake() -> bool {
    let said = Command::new("cmake").arg("--version").output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let mut numbers = said.iter().flat_map(|text| text.split([' ', '.', '\n']));
    let mut number = || numbers.find_map(|word| word.parse::<u32>().ok());
    (number(), number()) >= (Some(3), Some(30))
}

fn tested(events: &str, rate: &str) -> Result<bool, String> {
    let folder = target_dir().join("aeron");
    let mut path = std::env::var("PATH").unwrap_or_default();
    if !has_cmake() {
        let python = python_with(CMAKE, &folder.join("venv"))?;
        let bin = python
            .parent()
            .map(|bin| bin.display().to_string())
            .unwrap_or_default();
        path = format!("{bin}:{path}");
    }
    let (mut passed, mut failed, mut is_right) = (0, 0, true);
    for (package, only) in [
        ("tickwire-aeron", &[][..]),
        ("tickwire-app", &["--test", "daemon", "a_mirror_of_a_daemon"]),
    ] {
        let mut command = cargo();
        // Optimised: what is measured on the way is what a user gets.
        command
            .args(["test", "--release", "--locked", "--package", package])
            .args(["--features", "aeron", "--target-dir"])
            .arg(&folder)
            .args(only)
            .args(["--", "--test-threads", "1", "--nocapture"])
            .env("PATH", &path)
            .env("TICKWIRE_AERON_EVENTS", events)
            .env("TICKWIRE_AERON_RATE", rate);
        let output = command
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|e| format!("{command:?}: {e}"))?;
        let counts = shown(&String::from_utf8_lossy(&output.stdout), output.status.success());
        (passed, failed) = (passed + counts.0, failed + counts.1);
        is_right &= output.status.success() && counts.0 > 0;
    }
    println!("{passed} passed, {failed} failed");
    Ok(is_right)
}

/// Prints of what tests said what is of interest, or all of it; how many passed and failed.
fn shown(text: &str, is_right: bool) -> (u32, u32) {
    let (mut passed, mut failed) = (0, 0);
    for line in text.lines() {
        // Programs that a test starts are this one again, and say that they passed, too.
        let is_own = !line.starts_with("host ");
        let count = |word: &str| -> u32 {
            let before = line.split(word).next().unwrap_or_default();
            before
                .rsplit([' ', ';', '.'])
                .find_map(|n| n.parse().ok())
                .unwrap_or(0)
        };
        if is_own && line.starts_with("test result:") {
            passed += count(" passed");
            failed += count(" failed");
        }
        let is_shown = (is_own && line.starts_with("kept:"))
            || line.contains(" events a second")
            || line.contains("panicked")
            || line.contains("not tested");
        if is_shown || !is_right {
            println!("{line}");
        }
    }
    (passed, failed)
}
