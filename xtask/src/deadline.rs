//! A test program that does not end is killed and named, so that `check` always says what happened: cargo
//! starts every test program by `xtask within SECONDS PROGRAM ARGUMENT…` (a runner,
//! <https://doc.rust-lang.org/cargo/reference/config.html#targettriplerunner>).

use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Seconds that one test program may take: about five times what the longest takes on two busy cores.
pub(crate) const SECONDS: u64 = 600;

/// How a line on the time that a program took begins: seconds, those of processors among them, and its path.
const TOOK: &str = "took: ";

/// Seconds of processors that the children of this process have used which have ended, theirs too; 0 where
/// Linux does not say.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold spaces: the state is the first field, cutime and cstime the 14th and
    // 15th, in hundredths (proc_pid_stat(5), USER_HZ).
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks = fields
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

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
    let mut command = Command::new(program);
    // A test that builds something builds it as anybody does.
    command.args(rest).env_remove(crate::lints::WRAPPER);
    let mut child = match command.spawn() {
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
                println!(
                    "{TOOK}{:.1} s {:.1} s {program}",
                    start.elapsed().as_secs_f64(),
                    processor_seconds()
                );
                return ExitCode::from(status.code().map_or(101, |code| code as u8));
            }
            Err(error) => {
                eprintln!("xtask: cannot wait for {program}: {error}");
                return ExitCode::from(101);
            }
        }
    }
}

/// The programs that took longest, one line each, and what all took together.
pub(crate) fn slowest(output: &str, count: usize) -> Vec<String> {
    let took = output.lines().filter_map(|line| {
        let mut parts = line.strip_prefix(TOOK)?.splitn(3, " s ");
        let mut seconds = || parts.next()?.parse::<f64>().ok();
        Some((seconds()?, seconds()?, parts.next()?))
    });
    let mut took: Vec<(f64, f64, &str)> = took.collect();
    took.sort_by(|a, b| b.0.total_cmp(&a.0));
    let name = |program: &str| {
        let file = program.rsplit('/').next().unwrap_or(program);
        file.rsplit_once('-').map_or(file, |(name, _)| name).to_owned()
    };
    let line = |seconds: f64, of_processors: f64, what: &str| {
        format!("{seconds:>7.1} s, {of_processors:>6.1} s of processors  {what}")
    };
    let slowest = took.iter().take(count);
    let mut lines: Vec<String> = slowest.map(|one| line(one.0, one.1, &name(one.2))).collect();
    if took.len() > count {
        let sum = took
            .iter()
            .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        lines.push(line(sum.0, sum.1, &format!("all {} programs", took.len())));
    }
    lines
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
        let output = "took: 1.5 s 0.2 s /t/deps/demo-0a\nnoise\ntook: 12.0 s 3.0 s /t/deps/fix_store-1b\n";
        let slow = "   12.0 s,    3.0 s of processors  fix_store";
        let quick = "    1.5 s,    0.2 s of processors  demo";
        assert_eq!(slowest(output, 5), [slow, quick]);
        assert_eq!(
            slowest(output, 1),
            [slow, "   13.5 s,    3.2 s of processors  all 2 programs"]
        );
    }
}
