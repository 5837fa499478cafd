//! Running commands: output kept in a log, shown when it matters, tests counted; and the steps that are one
//! cargo call.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;

use crate::lanes::{Lane, lanes};

/// What a step may know.
pub(crate) struct Context {
    /// The step's name; also of its log.
    pub(crate) step: &'static str,
    verbose: bool,
    /// Who waits until a lane of tests has ended.
    waiting: Option<Sender<()>>,
}

/// How a step went.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Checks (or tests) that passed.
    pub(crate) passed: usize,
    /// Checks (or tests) that failed.
    pub(crate) failed: usize,
    /// Why checks (or tests) were skipped, one reason for each.
    pub(crate) skipped: Vec<String>,
    /// Lines for the reader.
    pub(crate) notes: Vec<String>,
    /// The command that repeats the failure.
    pub(crate) again: String,
    /// Names of the tests that failed, for the last lines.
    pub(crate) names: Vec<String>,
}

/// How a command went; by default it was not run.
#[derive(Default)]
pub(crate) struct Finished {
    /// Whether it exited with 0.
    pub(crate) success: bool,
    /// What it wrote: both streams, or standard output alone when the rest was shown at once.
    pub(crate) output: String,
}

/// Lines of a failed command's output shown at most; the whole is in the log.
const SHOWN_LINES: usize = 400;

impl Context {
    pub(crate) fn new(step: &'static str, verbose: bool) -> Context {
        Context {
            step,
            verbose,
            waiting: None,
        }
    }

    /// The same, telling somebody when a lane of tests has ended.
    pub(crate) fn tells(self, waiting: Sender<()>) -> Context {
        Context {
            waiting: Some(waiting),
            ..self
        }
    }

    /// Runs a command from the workspace root to its end.
    pub(crate) fn execute(&self, command: &mut Command) -> Finished {
        self.execute_as(self.step, command)
    }

    /// The same with a log of its own.
    fn execute_as(&self, log: &str, command: &mut Command) -> Finished {
        command.current_dir(root()).stdin(Stdio::null());
        let finished = if self.verbose {
            tee(command)
        } else {
            self.log(log, command)
        };
        finished.unwrap_or_else(|error| Finished {
            success: false,
            output: format!("cannot run {}: {error}\n", command.get_program().display()),
        })
    }

    /// The same into the log alone, for who reads all that it says.
    pub(crate) fn read(&self, command: &mut Command) -> Finished {
        let is_quiet = Context {
            verbose: false,
            waiting: None,
            step: self.step,
        };
        is_quiet.execute(command)
    }

    /// Runs a command that passes or fails as one check.
    pub(crate) fn check(&self, command: &mut Command) -> Outcome {
        let finished = self.execute(command);
        self.judged(command, &finished)
    }

    /// One check, by how its command went.
    pub(crate) fn judged(&self, command: &Command, finished: &Finished) -> Outcome {
        if finished.success {
            return Outcome {
                passed: 1,
                ..Outcome::default()
            };
        }
        Outcome {
            failed: 1,
            notes: self.shown(&finished.output),
            again: words(command),
            names: last_words(&finished.output),
            ..Outcome::default()
        }
    }

    /// Counts the results in what libtest wrote.
    fn count_tests(&self, finished: &Finished, again: String) -> Outcome {
        let (passed, failed) = tally(&finished.output);
        let mut skipped = ignored(&finished.output);
        // The harness takes them for passed.
        let untested = untested(&finished.output);
        let passed = passed.saturating_sub(untested.len());
        skipped.extend(untested.into_values());
        let slowest = crate::deadline::slowest(&finished.output, 5);
        if finished.success && failed == 0 {
            return Outcome {
                passed: passed.max(usize::from(skipped.is_empty())),
                skipped,
                notes: slowest,
                ..Outcome::default()
            };
        }
        Outcome {
            passed,
            failed: failed.max(1),
            skipped,
            notes: self.shown(&finished.output),
            again,
            names: failures_in_words(&finished.output),
        }
    }

    fn log(&self, name: &str, command: &mut Command) -> std::io::Result<Finished> {
        let path = log_path(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let log = File::create(&path)?;
        let status = command.stdout(log.try_clone()?).stderr(log).status()?;
        let output = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        Ok(Finished {
            success: status.success(),
            output,
        })
    }

    /// What of a failed command's output is worth showing here: nothing if the reader has seen it already.
    fn shown(&self, output: &str) -> Vec<String> {
        if self.verbose {
            return Vec::new();
        }
        let lines: Vec<&str> = output.lines().filter(|line| !line.ends_with("... ok")).collect();
        let skipped = lines.len().saturating_sub(SHOWN_LINES);
        let head = (skipped > 0).then(|| format!("… {skipped} lines more in target/xtask/{}.log", self.step));
        head.into_iter()
            .chain(lines[skipped..].iter().map(|line| (*line).to_owned()))
            .collect()
    }
}

impl Finished {
    /// Nothing was to be done, and that went well.
    fn of_nothing() -> Finished {
        Finished {
            success: true,
            output: String::new(),
        }
    }
}

impl Outcome {
    /// The outcome of rules that were checked here: one pass per rule without a finding.
    pub(crate) fn of_rules(rules: &[(&str, Vec<String>)], again: &str) -> Outcome {
        let mut outcome = Outcome {
            again: again.to_owned(),
            ..Outcome::default()
        };
        for (rule, findings) in rules {
            if findings.is_empty() {
                outcome.passed += 1;
            } else {
                outcome.failed += 1;
                outcome
                    .notes
                    .extend(findings.iter().map(|finding| format!("{rule}: {finding}")));
            }
        }
        outcome
    }
}

/// `cargo fmt --check` for the workspace, rustfmt alone for what are workspaces of their own.
pub(crate) fn fmt(ctx: &Context) -> Outcome {
    let workspace = ctx.check(cargo().args(["fmt", "--all", "--", "--check"]));
    let mut targets: Vec<PathBuf> = crate::source::files("fuzz", "rs");
    targets.extend(crate::source::files("peers", "rs"));
    if workspace.failed > 0 || targets.is_empty() {
        return workspace;
    }
    let mut outcome = ctx.check(
        Command::new("rustfmt")
            .args(["--check", "--edition", "2024"])
            .args(targets),
    );
    outcome.passed += workspace.passed;
    outcome
}

/// Clippy over every target.
pub(crate) fn clippy(ctx: &Context) -> Outcome {
    ctx.check(cargo().args([
        "clippy",
        "--keep-going",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

/// Rustdoc of our own crates.
pub(crate) fn docs(ctx: &Context) -> Outcome {
    ctx.check(cargo().env("RUSTDOCFLAGS", "-D warnings").args([
        "doc",
        "--no-deps",
        "--keep-going",
        "--workspace",
        "--locked",
    ]))
}

/// With 1, a test that needs root and has none fails; without it, it is skipped and says so.
const ROOT_TESTS: &str = "TICKWIRE_ROOT_TESTS";

/// How many cores a program may count on, for `wait = "auto"` (`tickwire_runtime::affinity`).
const CORES: &str = "TICKWIRE_CORES";

/// With 0, memory comes at the first touch (`tickwire_runtime::alloc`): tests start hundreds of programs, and
/// each begins 50 ms sooner.
const PREFAULT: &str = "TICKWIRE_PREFAULT";

/// Has this thread, and what it starts, step back behind others who want a processor, by so many steps of
/// `nice`. Where there is no `renice` it goes on as before.
pub(crate) fn step_back(by: i8) {
    let thread = fs::read_link("/proc/thread-self");
    let Some(id) = thread.as_deref().ok().and_then(Path::file_name) else {
        return;
    };
    let mut command = Command::new("renice");
    command.args(["-n", &by.to_string(), "-p"]).arg(id);
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Every test; those that read recorded data are skipped where there is none.
pub(crate) fn tests(ctx: &Context) -> Outcome {
    crate::recorded::freshen();
    let again = words(&test_command());
    let built = ctx.execute(test_command().arg("--no-run"));
    if !built.success {
        return ctx.count_tests(&built, again);
    }
    let lanes: Vec<Finished> = std::thread::scope(|scope| {
        let lanes = lanes().map(|lane| {
            scope.spawn(move || {
                step_back(lane.back);
                let finished = run_lane(ctx, &lane);
                if let Some(waiting) = &ctx.waiting {
                    // Who does not wait any more, or has gone, hears nothing.
                    let _ = waiting.send(());
                }
                finished
            })
        });
        lanes.map(|lane| lane.join().unwrap_or_default()).into()
    });
    let all = Finished {
        success: lanes.iter().all(|lane| lane.success),
        output: lanes.into_iter().map(|lane| lane.output).collect(),
    };
    if !ctx.verbose
        && let Err(error) = fs::write(log_path(ctx.step), &all.output)
    {
        eprintln!("xtask: {}: {error}", log_path(ctx.step).display());
    }
    ctx.count_tests(&all, again)
}

/// Builds the tests ahead of their step, which says what goes wrong in it.
pub(crate) fn build_tests() {
    crate::recorded::freshen();
    let mut build = test_command();
    build.args(["--no-run", "--quiet"]).current_dir(root());
    let quiet = build
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _ = quiet.status();
}

/// The calls of a lane, one after the other, whatever becomes of them.
fn run_lane(ctx: &Context, lane: &Lane) -> Finished {
    let finished = (1..).zip(&lane.calls).map(|(nth, targets)| {
        let log = format!("{}-{}-{nth}", ctx.step, lane.name);
        let mut command = test_command();
        // Exchange, trader and feed of a test share two cores with the tests beside them: whoever spins there
        // takes the time of all. Tests of spinning take it back.
        let are_programs = targets.iter().any(|word| word == "--test");
        if are_programs && std::env::var_os(CORES).is_none() {
            command.env(CORES, "1");
        }
        ctx.execute_as(&log, command.args(targets).args(crate::deadline::arguments()))
    });
    finished.fold(Finished::of_nothing(), |all, one| Finished {
        success: all.success && one.success,
        output: all.output + &one.output,
    })
}

fn test_command() -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    // What passed yesterday passes today: `cargo xtask properties` draws other cases.
    if std::env::var_os(crate::properties::SEED).is_none() {
        command.env(crate::properties::SEED, "1");
    }
    if std::env::var_os(PREFAULT).is_none() {
        command.env(PREFAULT, "0");
    }
    // Continuous integration is root, and skips nothing that needs it.
    let is_in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    if is_in_ci && std::env::var_os(ROOT_TESTS).is_none() {
        command.env(ROOT_TESTS, "1");
    }
    command
}

/// Builds programs as the tests have them: of the whole workspace and with an example, because that decides
/// which features their dependencies have. After the step `test` nothing is built again.
pub(crate) fn build_as_tested(ctx: &Context, targets: &[&str]) -> Outcome {
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--workspace", "--profile", "test"]);
    ctx.check(build.args(targets))
}

/// Every benchmark in its tiny form: without `--bench` on its command line it runs once and checks its
/// answer.
pub(crate) fn benches(ctx: &Context) -> Outcome {
    if bench_targets() == 0 {
        return Outcome {
            notes: vec!["no benchmark yet".into()],
            ..Outcome::default()
        };
    }
    crate::recorded::freshen();
    let mut command = cargo();
    command.args([
        "test",
        "--workspace",
        "--locked",
        "--no-fail-fast",
        "--bench",
        "*",
    ]);
    let again = words(&command);
    let finished = ctx.execute(command.args(crate::deadline::arguments()));
    let mut outcome = ctx.judged(&command, &finished);
    outcome.again = again;
    outcome.skipped = finished
        .output
        .lines()
        .filter_map(|line| line.strip_prefix("skipped: "))
        .map(str::to_owned)
        .collect();
    if outcome.failed == 0 {
        outcome.passed = bench_targets();
    }
    outcome
}

fn bench_targets() -> usize {
    crate::source::manifests()
        .iter()
        .map(|(_, manifest)| {
            manifest
                .get("bench")
                .and_then(toml::Value::as_array)
                .map_or(0, Vec::len)
        })
        .sum()
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut cargo = by_hand(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    crate::lints::add_to(&mut cargo);
    cargo
}

/// A program as if it was started by hand: what Cargo told us of our own package would make build scripts
/// that ask for it (that of ring) run again, and all that stands on them be built again.
pub(crate) fn by_hand(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if shown.starts_with("CARGO_PKG_") || shown.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// The workspace's root directory: of the sources that Cargo runs us from, which are not always those that we
/// were built from (a folder that was copied with its `target`).
pub(crate) fn root() -> &'static Path {
    static ROOT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    ROOT.get_or_init(|| {
        let told = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let told = told.filter(|folder| folder.ends_with("xtask"));
        let own = told.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        own.parent().map_or(PathBuf::from("."), Path::to_owned)
    })
}

/// Where the output of a step or a lane is kept.
pub(crate) fn log_path(name: &str) -> PathBuf {
    target_dir().join("xtask").join(format!("{name}.log"))
}

/// Where cargo builds.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// Runs a command with its output shown; what is wrong if it fails.
pub(crate) fn must(command: &mut Command) -> Result<(), String> {
    let program = Path::new(command.get_program()).to_owned();
    let status = command.status().map_err(|e| cannot_start(&program, &e))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?} failed: {status}"))
    }
}

/// What a program writes to standard output and standard error, if it succeeds.
pub(crate) fn said(command: &mut Command) -> Result<(String, String), String> {
    let program = Path::new(command.get_program()).to_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| cannot_start(&program, &e))?;
    let [out, error] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.success() {
        Ok((out, error))
    } else {
        Err(format!("{}: {}: {error}", words(command), output.status))
    }
}

/// Of a program that is not there, most often.
pub(crate) fn cannot_start(program: &Path, e: &std::io::Error) -> String {
    format!("{}: {e}; is it installed?", program.display())
}

/// Where the compiler that builds has its own files.
pub(crate) fn sysroot() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    Some(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Copies a file to a place whose folders are made.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let made = to.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::copy(from, to))
        .map(drop)
        .map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))
}

/// A Python of its own in a folder, with a package of PyPI: its path.
pub(crate) fn python_with(package: &str, folder: &Path) -> Result<PathBuf, String> {
    python_of("python3".as_ref(), package, folder)
}

/// The same, made by a Python that is named.
pub(crate) fn python_of(maker: &Path, package: &str, folder: &Path) -> Result<PathBuf, String> {
    let python = folder.join("bin/python");
    if !python.exists() {
        must(Command::new(maker).args(["-m", "venv"]).arg(folder))?;
    }
    must(Command::new(&python).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        package,
    ]))?;
    Ok(python)
}

/// The command as one would type it.
pub(crate) fn words(command: &Command) -> String {
    let mut text = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value.map(|value| value.to_string_lossy()) {
            let _ = write!(text, "{}='{value}' ", name.to_string_lossy());
        }
    }
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    text.push_str(&program.to_string_lossy());
    for arg in command.get_args().map(|arg| arg.to_string_lossy()) {
        let quoted = arg.contains([' ', '*', '\'']) || arg.is_empty();
        let _ = if quoted {
            write!(text, " \"{arg}\"")
        } else {
            write!(text, " {arg}")
        };
    }
    text
}

/// Shows the output while it comes; standard output is also kept.
fn tee(command: &mut Command) -> std::io::Result<Finished> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut output = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            output.push_str(&line);
            output.push('\n');
        }
    }
    Ok(Finished {
        success: child.wait()?.success(),
        output,
    })
}

/// Lines of what a failed test said that are shown with its name.
const SAID_LINES: usize = 8;

/// Names in libtest's `test NAME ... FAILED` lines.
fn failures(output: &str) -> impl Iterator<Item = &str> {
    let lines = output.lines().filter_map(|line| line.strip_suffix("... FAILED"));
    lines.filter_map(|line| line.strip_prefix("test ")).map(str::trim)
}

/// The tests that failed, by name, each followed by the first lines of what it said: who has the last lines
/// of a check alone knows why.
fn failures_in_words(output: &str) -> Vec<String> {
    let said = |name: &str| {
        let heading = format!("---- {name} stdout ----");
        let behind = output.lines().skip_while(move |line| *line != heading).skip(1);
        let lines = behind.take_while(|line| !line.starts_with("---- ") && *line != "failures:");
        let lines = lines.filter(|line| !line.trim().is_empty());
        lines.take(SAID_LINES).map(|line| format!("  {line}"))
    };
    failures(output)
        .flat_map(|name| std::iter::once(name.to_owned()).chain(said(name)))
        .collect()
}

/// The last lines of a check that failed as a whole, which say why for the same reason.
pub(crate) fn last_words(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(SAID_LINES)..];
    last.iter().map(|line| (*line).to_owned()).collect()
}

/// The reason of every test that the harness did not run: `test NAME ... ignored, REASON`. As many as its
/// results say, so that none is lost whose line another test's output has broken.
fn ignored(output: &str) -> Vec<String> {
    let lines = output.lines().filter(|line| line.starts_with("test "));
    let reasons = lines.filter_map(|line| line.split_once(" ... ignored").map(|(_, reason)| reason));
    let mut reasons: Vec<String> = reasons
        .map(|reason| reason.trim_start_matches(", ").to_owned())
        .collect();
    let results = output.lines().filter(|line| line.starts_with("test result:"));
    let all: usize = results.map(|line| number(line, " ignored")).sum();
    if all > reasons.len() {
        reasons.resize(all, String::new());
    }
    reasons
}

/// Tests that found out while they ran that there is nothing to test here (`tickwire_testdata::not_tested`):
/// `skipped: NAME: REASON`, on a line of its own or behind the name of the test that runs. Once each, by
/// name; those that failed all the same are none.
fn untested(output: &str) -> BTreeMap<String, String> {
    let failed: Vec<&str> = failures(output).collect();
    let lines = output.lines().filter_map(|line| {
        let rest = line.split_once(" ... ").map_or(line, |(_, rest)| rest);
        rest.strip_prefix("skipped: ")?.split_once(": ")
    });
    lines
        .filter(|(name, _)| !failed.contains(name))
        .map(|(name, reason)| (name.to_owned(), reason.to_owned()))
        .collect()
}

/// Sums libtest's `test result: ok. 3 passed; 0 failed; …` lines.
fn tally(output: &str) -> (usize, usize) {
    let results = output.lines().filter(|line| line.starts_with("test result:"));
    results.fold((0, 0), |(p, f), line| {
        (p + number(line, " passed"), f + number(line, " failed"))
    })
}

/// The number before a word of such a line.
fn number(line: &str, word: &str) -> usize {
    let before = line.split(word).next().unwrap_or("");
    before
        .trim_end()
        .rsplit([' ', ';'])
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_results_are_summed_over_every_binary() {
        let output = "test result: ok. 3 passed; 0 failed; 1 ignored\nnoise 9 passed\n\
                      test result: FAILED. 12 passed; 2 failed; 0 ignored\n";
        assert_eq!(tally(output), (15, 2));
        assert_eq!(tally("error: could not compile"), (0, 0));
    }

    #[test]
    fn every_test_that_was_not_run_is_counted_with_its_reason_and_never_as_passed() {
        let output = "test a ... ok\ntest b ... ignored, needs recorded data: captures/x\ntest c ... ignored\n\
                      test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n\
                      test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(tally(output), (1, 0));
        assert_eq!(ignored(output), ["needs recorded data: captures/x", "", ""]);
    }

    #[test]
    fn a_test_that_tested_nothing_is_counted_once_and_not_as_passed() {
        let output = "skipped: a::b: no root here\ntest a::b ... ok\nskipped: a::b: no root here\n\
                      test c ... skipped: c: no browser: none\nok\nskipped: d: no disk\ntest d ... FAILED\n\
                      test result: FAILED. 2 passed; 1 failed; 0 ignored\n";
        let found = untested(output);
        let found: Vec<_> = found
            .iter()
            .map(|(name, why)| (name.as_str(), why.as_str()))
            .collect();
        assert_eq!(found, [("a::b", "no root here"), ("c", "no browser: none")]);
    }

    #[test]
    fn failed_tests_are_named_with_what_they_said() {
        let output = "test a::b ... ok\ntest c::d ... FAILED\n\nfailures:\n\n---- c::d stdout ----\n\nthread 'c::d' panicked at x.rs:1:2:\n\
                      left is not right\n\nfailures:\n    c::d\n\ntest result: FAILED. 1 passed; 1 failed\n";
        let said = [
            "c::d",
            "  thread 'c::d' panicked at x.rs:1:2:",
            "  left is not right",
        ];
        assert_eq!(failures_in_words(output), said);
        assert_eq!(failures_in_words("test e ... FAILED\n"), ["e"]);
    }

    #[test]
    fn a_check_that_failed_says_why_in_its_last_lines() {
        let output = format!("{}\nreader.c:368: does not hold\n\n", "passed\n".repeat(20));
        let said = last_words(&output);
        assert_eq!(said.len(), SAID_LINES);
        assert_eq!(
            said.last().map(String::as_str),
            Some("reader.c:368: does not hold")
        );
        assert!(last_words("\n").is_empty());
    }

    #[test]
    fn a_command_reads_as_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command
            .env_remove("CARGO_MANIFEST_DIR")
            .env("RUSTDOCFLAGS", "-D warnings")
            .args(["test", "--bench", "*"]);
        assert_eq!(
            words(&command),
            "RUSTDOCFLAGS='-D warnings' cargo test --bench \"*\""
        );
    }
}
