//! The test programs of the workspace, up to [`LANES`] at a time: many of them wait for processes and sockets
//! more than they compute, and Cargo runs one after the other.
//!
//! Cargo builds them and says where they are; each is started in its package's folder, as Cargo does. Two
//! programs of one package do not run together, because they share the folder that Cargo gives a package's
//! tests (`CARGO_TARGET_TMPDIR`), but for those of the program, whose folders are named by process. Output is
//! kept by program, so that it reads as if they had come one by one.

use crate::run::{Context, Finished, cargo, root, target_dir, words};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Programs at a time, at most; each runs its own tests on as many threads as there are cores. One, until
/// ports are given out in one place: programs look for free ports each by itself, and two that look at the
/// same moment may find the same one.
const LANES: usize = 1;

/// What takes longest begins first, so that nothing long is left for the end; names of test targets.
const LONGEST: &[&str] = &[
    "pages",
    "days",
    "faults",
    "kernel_path",
    "demo",
    "replay",
    "feeds",
    "fix_acceptance",
];

/// What wants the machine for itself: it counts how often it was given a core.
const ALONE: &[&str] = &["delegate", "armed"];

/// Packages whose programs share nothing.
const APART: &[&str] = &["tickwire-app"];

/// A test program as Cargo describes it.
#[derive(Debug, PartialEq)]
struct Program {
    path: PathBuf,
    /// The target's name.
    name: String,
    /// Its package's name and version, and where its manifest is.
    package: String,
    version: String,
    folder: PathBuf,
    /// Its options that repeat it alone: `--lib`, `--test NAME`.
    target: String,
}

/// Which programs wait and which run.
#[derive(Default)]
struct Queue {
    waiting: Vec<Program>,
    running: Vec<(String, bool)>,
    finished: Vec<(Program, Finished)>,
}

impl Queue {
    /// The next one that may begin.
    fn next(&mut self) -> Option<Program> {
        let is_alone = |program: &Program| ALONE.contains(&program.name.as_str());
        if self.running.iter().any(|(_, alone)| *alone) {
            return None;
        }
        let at = self.waiting.iter().position(|program| {
            let package = &program.package;
            let is_running = self.running.iter().any(|(other, _)| other == package);
            let shares = is_running && !APART.contains(&package.as_str());
            !shares && (self.running.is_empty() || !is_alone(program))
        })?;
        let program = self.waiting.remove(at);
        self.running.push((program.package.clone(), is_alone(&program)));
        Some(program)
    }

    fn end(&mut self, program: Program, finished: Finished) {
        let of = |(package, _): &(String, bool)| *package == program.package;
        if let Some(at) = self.running.iter().position(of) {
            self.running.swap_remove(at);
        }
        self.finished.push((program, finished));
    }
}

/// Builds and runs every test program, then the examples of the documentation, each with these variables.
pub(crate) fn run(ctx: &Context, environment: &[(&str, &str)]) -> Finished {
    let built = ctx.execute(&mut build());
    if !built.success {
        return built;
    }
    let programs = match programs() {
        Ok(programs) => programs,
        Err(why) => return failed(built.output, &why),
    };
    let mut all = side_by_side(ctx, programs, environment);
    let mut examples = cargo();
    examples.args(["test", "--workspace", "--locked", "--no-fail-fast", "--doc"]);
    examples.args(crate::deadline::arguments());
    examples.envs(environment.iter().copied());
    let documented = ctx.execute(&mut examples);
    all.success &= documented.success;
    all.output.push_str(&documented.output);
    // The log has what the last command wrote: it is to have all of it.
    let log = target_dir().join("xtask").join(format!("{}.log", ctx.step));
    if let Err(error) = fs::write(&log, format!("{}{}", built.output, all.output)) {
        return failed(all.output, &format!("{}: {error}", log.display()));
    }
    all
}

fn failed(mut output: String, why: &str) -> Finished {
    output.push_str(why);
    output.push('\n');
    Finished {
        success: false,
        output,
    }
}

fn build() -> Command {
    let mut build = cargo();
    build.args(["test", "--workspace", "--locked", "--no-run"]);
    build.current_dir(root());
    build
}

/// What Cargo has built, the longest first.
fn programs() -> Result<Vec<Program>, String> {
    let mut list = build();
    list.args(["--quiet", "--message-format", "json"])
        .stdin(Stdio::null());
    let listed = list
        .output()
        .map_err(|error| format!("cannot run {}: {error}", words(&list)))?;
    let text = String::from_utf8_lossy(&listed.stdout);
    let mut programs: Vec<Program> = text.lines().filter_map(described).collect();
    if programs.is_empty() {
        let said = String::from_utf8_lossy(&listed.stderr);
        return Err(format!("{}: it names no test program: {said}", words(&list)));
    }
    let place = |program: &Program| {
        let names = ALONE.iter().chain(LONGEST);
        let mut names = names.enumerate();
        names
            .find(|(_, name)| **name == program.name)
            .map_or(usize::MAX, |(at, _)| at)
    };
    programs.sort_by_key(place);
    Ok(programs)
}

/// A line of Cargo's, if it is about a test program
/// (<https://doc.rust-lang.org/cargo/reference/external-tools.html#artifact-messages>).
fn described(line: &str) -> Option<Program> {
    let said: Value = serde_json::from_str(line).ok()?;
    if !said["profile"]["test"].as_bool()? {
        return None;
    }
    let manifest = Path::new(said["manifest_path"].as_str()?);
    let name = said["target"]["name"].as_str()?.to_owned();
    // `path+file:///…/crates/book#tickwire-book@0.1.0`, or without the name where the folder has it.
    let id = said["package_id"].as_str()?;
    let (at, version) = id.rsplit_once('#')?;
    let (package, version) = version
        .split_once('@')
        .unwrap_or((at.rsplit('/').next()?, version));
    let target = match said["target"]["kind"][0].as_str()? {
        kind @ ("test" | "bin" | "example" | "bench") => format!("--{kind} {name}"),
        _ => "--lib".into(),
    };
    Some(Program {
        path: said["executable"].as_str()?.into(),
        name,
        package: package.to_owned(),
        version: version.to_owned(),
        folder: manifest.parent()?.to_owned(),
        target,
    })
}

fn side_by_side(ctx: &Context, programs: Vec<Program>, environment: &[(&str, &str)]) -> Finished {
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    let queue = Mutex::new(Queue {
        waiting: programs,
        ..Queue::default()
    });
    let changed = Condvar::new();
    std::thread::scope(|scope| {
        for lane in 0..lanes.clamp(1, LANES) {
            let (queue, changed) = (&queue, &changed);
            scope.spawn(move || {
                while let Some(program) = taken(queue, changed) {
                    let finished = start(lane, &program, environment);
                    if ctx.verbose {
                        print!("{}", finished.output);
                    }
                    lock(queue).end(program, finished);
                    changed.notify_all();
                }
            });
        }
    });
    let finished = queue
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .finished;
    let mut all = Finished {
        success: true,
        output: String::new(),
    };
    let mut bad = String::new();
    for (program, one) in finished {
        all.success &= one.success;
        all.output.push_str(&one.output);
        if !one.success {
            bad.push_str(&format!("failed: -p {} {}\n", program.package, program.target));
        }
    }
    all.output.push_str(&bad);
    all
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for one that may begin; `None` when none is left.
fn taken(queue: &Mutex<Queue>, changed: &Condvar) -> Option<Program> {
    let mut queue = lock(queue);
    loop {
        if let Some(program) = queue.next() {
            return Some(program);
        }
        if queue.waiting.is_empty() {
            return None;
        }
        queue = changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Runs one to its end.
fn start(lane: usize, program: &Program, environment: &[(&str, &str)]) -> Finished {
    let shown = program.path.strip_prefix(root()).unwrap_or(&program.path);
    let head = format!(
        "     Running -p {} {} ({})\n",
        program.package,
        program.target,
        shown.display()
    );
    let run = || -> std::io::Result<Finished> {
        let path = target_dir().join("xtask").join(format!("lane-{lane}.out"));
        let mut file = File::create(&path)?;
        file.write_all(head.as_bytes())?;
        let status = Command::new(std::env::current_exe()?)
            .args(["within", &crate::deadline::SECONDS.to_string()])
            .arg(&program.path)
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .env("CARGO_PKG_NAME", &program.package)
            .env("CARGO_PKG_VERSION", &program.version)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .status()?;
        let output = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        fs::remove_file(&path)?;
        Ok(Finished {
            success: status.success(),
            output,
        })
    };
    run().unwrap_or_else(|error| failed(head.clone(), &format!("{}: {error}", shown.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(package: &str, name: &str) -> Program {
        Program {
            path: "p".into(),
            name: name.into(),
            package: package.into(),
            version: "1".into(),
            folder: "f".into(),
            target: format!("--test {name}"),
        }
    }

    #[test]
    fn a_program_is_read_from_cargos_line() {
        let line = r#"{"reason":"compiler-artifact","package_id":"path+file:///t/crates/book#tickwire-book@0.1.0",
            "manifest_path":"/t/crates/book/Cargo.toml","target":{"kind":["test"],"name":"days"},
            "profile":{"test":true},"executable":"/t/target/debug/deps/days-1"}"#;
        let found = described(&line.replace('\n', "")).expect("a program");
        assert_eq!(found.package, "tickwire-book");
        assert_eq!(
            (found.target.as_str(), found.version.as_str()),
            ("--test days", "0.1.0")
        );
        assert_eq!(found.folder, Path::new("/t/crates/book"));
        let same = line.replace('\n', "").replace("#tickwire-book@", "#");
        assert_eq!(described(&same).expect("a program").package, "book");
        assert_eq!(described(&line.replace('\n', "").replace("true", "false")), None);
        assert_eq!(described("   Compiling tickwire-book"), None);
    }

    #[test]
    fn a_packages_programs_come_one_by_one_and_some_alone() {
        let mut queue = Queue {
            waiting: vec![
                program("a", "one"),
                program("a", "two"),
                program("b", ALONE[0]),
                program("c", "three"),
            ],
            ..Queue::default()
        };
        let first = queue.next().expect("it may begin");
        assert_eq!(first.name, "one");
        let beside = queue.next().expect("of another package");
        assert_eq!(beside.name, "three");
        assert_eq!(
            queue.next(),
            None,
            "its package is running, and the other wants to be alone"
        );
        let done = || Finished {
            success: true,
            output: String::new(),
        };
        queue.end(first, done());
        let second = queue.next().expect("its package is free");
        queue.end(second, done());
        assert_eq!(queue.next(), None);
        queue.end(beside, done());
        queue
            .waiting
            .splice(0..0, [program(APART[0], "four"), program(APART[0], "five")]);
        let apart = queue.next().expect("nobody runs");
        let other = queue.next().expect("they share nothing");
        assert_eq!((apart.name.as_str(), other.name.as_str()), ("four", "five"));
        queue.end(apart, done());
        assert_eq!((queue.next(), queue.running.len()), (None, 1));
        queue.end(other, done());
        let last = queue.next().expect("nobody runs");
        assert_eq!(last.name, ALONE[0]);
        assert_eq!(queue.next(), None);
        assert!(queue.waiting.is_empty());
        queue.end(last, done());
        assert_eq!(queue.finished.len(), 6);
    }
}
