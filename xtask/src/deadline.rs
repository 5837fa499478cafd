//! A test program that does not end is killed and named, so that `check` always says what happened: cargo
//! starts every test program by `xtask within SECONDS PROGRAM ARGUMENT…` (a runner,
//! <https://doc.rust-lang.org/cargo/reference/config.html#targettriplerunner>).

use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Seconds that one test program may take: about five times what the longest takes on two busy cores.
pub(crate) const SECONDS: u64 = 600;

/// How a line on the time that a program took begins.
const TOOK: &str = "took: ";

/// The arguments that make cargo start test programs by [`run`].
pub(crate) fn arguments() -> [String; 2] {
    let own = std::env::current_exe().unwrap_or_default();
    let runner = format!(
        "target.'cfg(all())'.runner = [{:?}, \"within\", \"{SECONDS}\"]",
        own.display().to_string()
    );
    ["--config".into(), runner]
}

/// `xtask within SECONDS PROGRAM ARGUMENT…`: the program, killed when it takes longer.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    let [seconds, program, rest @ ..] = arguments else {
        eprintln!("xtask: within SECONDS PROGRAM ARGUMENT…");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    let limit = Duration::from_secs(seconds.parse().unwrap_or(SECONDS));
    let mut child = match Command::new(program).args(rest).spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("xtask: cannot start {program}: {error}");
            return ExitCode::from(2);
        }
    };
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(None) if start.elapsed() < limit => {
                sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(50));
            }
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                println!(
                    "\ntest {program} ... FAILED\ntest result: FAILED. 0 passed; 1 failed; it did not end within {seconds} s and was \
                     killed: the tests without a result above are those that were running"
                );
                return ExitCode::from(101);
            }
            Ok(Some(status)) => {
                println!("{TOOK}{:.1} s {program}", start.elapsed().as_secs_f64());
                return ExitCode::from(status.code().map_or(101, |code| code as u8));
            }
            Err(error) => {
                eprintln!("xtask: cannot wait for {program}: {error}");
                return ExitCode::from(101);
            }
        }
    }
}

/// The programs that took longest, one line each.
pub(crate) fn slowest(output: &str, count: usize) -> Vec<String> {
    let took = output
        .lines()
        .filter_map(|line| line.strip_prefix(TOOK)?.split_once(" s "));
    let mut took: Vec<(f64, &str)> = took
        .filter_map(|(seconds, program)| Some((seconds.parse().ok()?, program)))
        .collect();
    took.sort_by(|a, b| b.0.total_cmp(&a.0));
    let name = |program: &str| {
        let file = program.rsplit('/').next().unwrap_or(program);
        file.rsplit_once('-').map_or(file, |(name, _)| name).to_owned()
    };
    took.iter()
        .take(count)
        .map(|(seconds, program)| format!("{seconds:>7.1} s  {}", name(program)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_killed_and_fails() {
        let start = Instant::now();
        assert_eq!(run(&["0", "sleep", "3600"]), ExitCode::from(101));
        assert!(start.elapsed() < Duration::from_secs(3600));
        assert_eq!(run(&["60", "true"]), ExitCode::from(0));
        assert_eq!(run(&["60", "false"]), ExitCode::from(1));
        assert_eq!(run(&["60", "/there/is/no/such/program"]), ExitCode::from(2));
    }

    #[test]
    fn the_programs_that_took_longest_come_first() {
        let output = "took: 1.5 s /t/deps/demo-0a\nnoise\ntook: 12.0 s /t/deps/fix_store-1b\n";
        assert_eq!(slowest(output, 5), ["   12.0 s  fix_store", "    1.5 s  demo"]);
    }
}
