//! What commands that run for long begin and end with: the help, the plan made of the words, what was found,
//! and the exit code that says so.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use crate::run::{cannot_start, cargo, must, target_dir};

/// Runs a command: its help when that is asked for, else `plan` makes of the words what `work` then does.
/// Exit code 0: nothing was found. 1: something was. 2: the words are wrong, or the work could not begin.
pub(crate) fn run<'a, P>(
    name: &str,
    help: &str,
    words: &[&'a str],
    plan: impl FnOnce(&[&'a str]) -> Result<P, String>,
    work: impl FnOnce(P) -> Result<Findings, String>,
) -> ExitCode {
    if words.iter().any(|word| matches!(*word, "--help" | "-h")) {
        print!("{help}");
        return ExitCode::SUCCESS;
    }
    let plan = match plan(words) {
        Ok(plan) => plan,
        Err(why) => {
            eprintln!("xtask {name}: {why}; `cargo xtask {name} --help` says more");
            return ExitCode::from(2);
        }
    };
    match work(plan) {
        Ok(Findings { bad: 0, .. }) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask {name}: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command that compares, of a program that `--program FILE` names or of one that it builds: its help
/// when that is asked for, else `compare`. Exit codes as [`run`].
pub(crate) fn run_of_program(
    name: &str,
    help: &str,
    words: &[&str],
    compare: impl FnOnce(Option<PathBuf>) -> Result<bool, String>,
) -> ExitCode {
    let program = match words {
        ["--help" | "-h"] => {
            print!("{help}");
            return ExitCode::SUCCESS;
        }
        [] => None,
        ["--program", file] => Some(PathBuf::from(file)),
        _ => {
            eprint!("{help}");
            return ExitCode::from(2);
        }
    };
    match compare(program) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask {name}: {why}");
            ExitCode::from(2)
        }
    }
}

/// The program that is measured: the one that was named, else one that is built with the profile `dist`,
/// which takes ten minutes and more on two cores; `more` are words for that.
pub(crate) fn dist_program(named: Option<&Path>, more: &[&str]) -> Result<PathBuf, String> {
    if let Some(program) = named {
        return Ok(program.to_owned());
    }
    let words = [
        "build",
        "--locked",
        "--profile",
        "dist",
        "--package",
        "tickwire-app",
    ];
    must(cargo().args(words).args(more))?;
    Ok(target_dir().join("dist/tickwire"))
}

/// Runs a command of cargo that builds one program, with what it says shown; where the program is.
pub(crate) fn built(build: &mut Command) -> Result<PathBuf, String> {
    let output = build
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("{build:?}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{build:?} failed: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let executable = text
        .lines()
        .filter_map(|line| line.split_once("\"executable\":\"")?.1.split_once('"'))
        .next_back()
        .map(|(path, _)| PathBuf::from(path));
    executable.ok_or_else(|| format!("no program after {build:?}"))
}

/// Seconds of processor time that a command and its children take, user and system, in steps of 10 ms, and
/// what it printed; `cost` is a file for the shell's answer. A command may end with 1.
pub(crate) fn processor_time(words: &[String], cost: &Path) -> Result<(f64, String), String> {
    // `times` says last what children took; its file is not standard output, which is the program's.
    let script = "exec 3>\"$0\"; \"$@\"; code=$?; times >&3; exit $code";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(cost)
        .args(words)
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("sh: {e}"))?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("{words:?}: {}", output.status));
    }
    let said = std::fs::read_to_string(cost).map_err(|e| format!("{}: {e}", cost.display()))?;
    let children = said.lines().nth(1).unwrap_or_default();
    let seconds = |text: &str| {
        let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let sum: Option<f64> = children.split_whitespace().map(seconds).sum();
    let sum = sum.filter(|_| !children.is_empty());
    Ok((
        sum.ok_or(format!("sh said of its children's time {said:?}"))?,
        String::from_utf8_lossy(&output.stdout).into_owned(),
    ))
}

/// The number behind an option, which is the next one of the words.
pub(crate) fn number<'w, 'a: 'w>(
    option: &str,
    words: &mut impl Iterator<Item = &'w &'a str>,
) -> Result<u64, String> {
    let text = words
        .next()
        .ok_or_else(|| format!("{option} needs a number behind it"))?;
    text.parse()
        .map_err(|_| format!("{option}: '{text}' is no whole number"))
}

/// Processes beside what is run; they end with this value.
pub(crate) struct Load(Vec<Child>);

impl Load {
    pub(crate) fn start(commands: impl Iterator<Item = Command>) -> Result<Load, String> {
        let mut load = Load(Vec::new());
        for mut command in commands {
            let child = command.spawn();
            load.0
                .push(child.map_err(|e| cannot_start(Path::new(command.get_program()), &e))?);
        }
        Ok(load)
    }

    /// Whether one has ended already.
    pub(crate) fn has_ended(&mut self) -> bool {
        let mut children = self.0.iter_mut();
        children.any(|child| !matches!(child.try_wait(), Ok(None)))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that is gone already is what was wanted.
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// What a command counts: each of its parts is good or a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) good: usize,
    pub(crate) bad: usize,
}

impl Findings {
    /// A part is over: counts it and says how it went, in a line.
    pub(crate) fn count(&mut self, what: &str, began: Instant, is_good: bool) {
        let verdict = if is_good { "ok" } else { "FAILED" };
        println!("{verdict:<7} {what}   {:.0} s", began.elapsed().as_secs_f64());
        self.good += usize::from(is_good);
        self.bad += usize::from(!is_good);
    }

    /// The last line.
    pub(crate) fn sum_up(self) -> Findings {
        println!("{} passed, {} failed", self.good, self.bad);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(words: &[&str], work: Result<Findings, String>) -> String {
        let plan = |words: &[&str]| match words {
            [] => Ok(()),
            [other, ..] => Err(format!("'{other}' is no option")),
        };
        format!("{:?}", run("trial", "Does nothing.\n", words, plan, |()| work))
    }

    #[test]
    fn exit_codes_say_what_happened() {
        let code = |code| format!("{:?}", ExitCode::from(code));
        let (clean, found) = (Findings::default(), Findings { good: 1, bad: 1 });
        assert_eq!(exit(&[], Ok(clean)), code(0));
        assert_eq!(exit(&["--help"], Ok(found)), code(0));
        assert_eq!(exit(&[], Ok(found)), code(1));
        assert_eq!(exit(&["rain"], Ok(clean)), code(2));
        assert_eq!(exit(&[], Err("there is no compiler".into())), code(2));
    }

    #[test]
    fn parts_are_counted() {
        let mut findings = Findings::default();
        findings.count("one", Instant::now(), true);
        findings.count("two", Instant::now(), false);
        assert_eq!(findings.sum_up(), Findings { good: 1, bad: 1 });
    }
}
