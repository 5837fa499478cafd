//! The readers in other languages: the C header is generated and compared, C programs are compiled against it
//! and run, the Python package is put into an environment of its own and tested.
//!
//! Everything that is made lands below `target/bindings`. Python packages come from PyPI once; a run that
//! finds them there needs no network. Where the machine has no Python, or no way to PyPI, the package's tests
//! are skipped and counted, except where `CI` is set: there it is a failure.

use crate::run::{Context, Outcome, build_as_tested, copy, root, target_dir, words};
use crate::source::{files, read, shown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The header, as committed.
const HEADER: &str = "bindings/c/tickwire.h";
/// The header's text with the functions, which are written by hand.
const TEMPLATE: &str = "bindings/c/tickwire.in.h";
/// The configuration of the feed handler that the tests read.
const DAEMON: &str = "bindings/daemon.toml";
/// The line of [`TEMPLATE`] that stands for the generated definitions.
const MARK: &str = "/* @LAYOUT@ */";
/// What Python must bring.
pub(crate) const PROBE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// Flags of every C program: the standard's C, and no warning is too small.
const C_FLAGS: &[&str] = &[
    "-std=c11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wshadow",
    "-Werror",
];
/// The same as C++.
const CXX_FLAGS: &[&str] = &[
    "-std=c++17",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wshadow",
    "-Werror",
];

/// The whole step.
pub(crate) fn check(ctx: &Context) -> Outcome {
    let mut all = Outcome {
        again: "cargo xtask bindings".into(),
        ..Outcome::default()
    };
    let mut add = |outcome: Outcome| {
        all.passed += outcome.passed;
        all.failed += outcome.failed;
        all.notes.extend(outcome.notes);
        all.skipped.extend(outcome.skipped);
        if outcome.failed > 0 && !outcome.again.is_empty() {
            all.again = outcome.again;
        }
        outcome.failed == 0
    };
    let goes_on = add(header_is_fresh(ctx)) && add(programs(ctx)) && add(c(ctx));
    if goes_on {
        add(python(ctx));
    }
    all
}

/// `cargo xtask header`: writes the C header anew.
pub(crate) fn write_header(ctx: &Context) -> Outcome {
    match generated(ctx) {
        Ok(text) => match std::fs::write(root().join(HEADER), text) {
            Ok(()) => Outcome {
                passed: 1,
                ..Outcome::default()
            },
            Err(error) => failed(&format!("{HEADER}: {error}"), "cargo xtask header"),
        },
        Err(outcome) => outcome,
    }
}

fn header_is_fresh(ctx: &Context) -> Outcome {
    match generated(ctx) {
        Ok(text) if text == read(&root().join(HEADER)) => Outcome {
            passed: 1,
            ..Outcome::default()
        },
        Ok(_) => failed(
            &format!(
                "{HEADER} is not what layout and {TEMPLATE} say: run `cargo xtask header` and commit it"
            ),
            "cargo xtask header",
        ),
        Err(outcome) => outcome,
    }
}

/// The template with the layout's definitions, which the example `c_layout` of the shared memory crate
/// prints.
fn generated(ctx: &Context) -> Result<String, Outcome> {
    let built = build_as_tested(ctx, &["--example", "c_layout"]);
    if built.failed > 0 {
        return Err(built);
    }
    let program = target_dir().join("debug/examples/c_layout");
    let layout = match Command::new(&program).output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => {
            return Err(failed(
                &String::from_utf8_lossy(&output.stderr),
                "cargo xtask header",
            ));
        }
        Err(error) => {
            return Err(failed(
                &format!("{}: {error}", program.display()),
                "cargo xtask header",
            ));
        }
    };
    match read(&root().join(TEMPLATE)).split_once(MARK) {
        Some((head, tail)) => Ok(format!("{head}{}{tail}", layout.trim_end())),
        None => Err(failed(
            &format!("{TEMPLATE}: the line {MARK} is missing"),
            "cargo xtask header",
        )),
    }
}

/// What the tests of both languages run: a program that writes known books, the feed handler, and a recording
/// for it.
fn programs(ctx: &Context) -> Outcome {
    let built = build_as_tested(ctx, &["--example", "region", "--bin", "tickwire", "--lib"]);
    if built.failed > 0 {
        return built;
    }
    if let Some(dir) = capture().parent()
        && let Err(error) = std::fs::create_dir_all(dir)
    {
        return failed(&format!("{}: {error}", dir.display()), "");
    }
    let mut record = Command::new(tickwire());
    record
        .args(["exchange", "-c", DAEMON, "--write-capture"])
        .arg(capture());
    ctx.check(&mut record)
}

/// Rows of mbo of the capture, and the sum of their order numbers, as the program's own export has them.
fn exported(ctx: &Context) -> Result<[u64; 2], Outcome> {
    let out = target_dir().join("bindings/mbo.csv");
    let mut export = Command::new(tickwire());
    export
        .args(["export", "--schema", "mbo", "--out"])
        .arg(&out)
        .arg(capture());
    let outcome = ctx.check(&mut export);
    if outcome.failed > 0 {
        return Err(outcome);
    }
    let text = read(&out);
    let mut lines = text.lines();
    let names = lines.next().unwrap_or_default().split(',');
    let at = names
        .into_iter()
        .position(|name| name == "order_id")
        .unwrap_or_default();
    let orders = lines.map(|line| line.split(',').nth(at).and_then(|field| field.parse().ok()));
    let orders: Option<Vec<u64>> = orders.collect();
    match orders {
        Some(orders) if !orders.is_empty() => Ok([
            orders.len() as u64,
            orders.iter().fold(0, |sum, id| sum.wrapping_add(*id)),
        ]),
        _ => Err(failed(&format!("{}: no order numbers", out.display()), "")),
    }
}

/// The feed handler under test.
fn tickwire() -> PathBuf {
    target_dir().join("debug/tickwire")
}

/// What it plays.
fn capture() -> PathBuf {
    target_dir().join("bindings/day.pcap")
}

fn region_program() -> PathBuf {
    target_dir().join("debug/examples/region")
}

/// The C programs: as C, as C++ where there is a compiler, and the test run with each.
fn c(ctx: &Context) -> Outcome {
    let dir = target_dir().join("bindings/c");
    if let Err(error) = std::fs::create_dir_all(&dir) {
        return failed(&format!("{}: {error}", dir.display()), "");
    }
    let mut languages = vec![(compiler("CC", "cc"), C_FLAGS, "c")];
    let cxx = compiler("CXX", "c++");
    if answers(Command::new(&cxx).arg("--version")) {
        languages.push((cxx, CXX_FLAGS, "c++"));
    }
    let mut all = Outcome::default();
    if languages.len() == 1 {
        all.skipped
            .push("the C header is not tested from C++: no c++ on this machine".into());
    }
    for (compiler, flags, language) in languages {
        for source in ["examples/book.c", "tests/reader.c", "tests/recording.c"] {
            let program = dir.join(format!("{}-{language}", stem(source)));
            let mut compile = Command::new(&compiler);
            compile
                .args(flags)
                .args(["-x", language, "-I", "bindings/c"])
                .arg(format!("bindings/c/{source}"))
                .arg("-o")
                .arg(&program);
            if source == "tests/recording.c" {
                let folder = target_dir().join("debug");
                compile
                    .arg("-L")
                    .arg(&folder)
                    .arg("-ltickwire_recording")
                    .arg(format!("-Wl,-rpath,{}", folder.display()));
            }
            let outcome = ctx.check(&mut compile);
            if outcome.failed > 0 {
                return outcome;
            }
            all.passed += 1;
        }
        let mut test = Command::new(dir.join(format!("reader-{language}")));
        test.arg(region_program())
            .arg(dir.join(format!("book-{language}")));
        let [rows, orders] = match exported(ctx) {
            Ok(counts) => counts,
            Err(outcome) => return outcome,
        };
        let mut recording = Command::new(dir.join(format!("recording-{language}")));
        recording
            .arg(capture())
            .args([rows.to_string(), orders.to_string()]);
        let mut live = Command::new(dir.join(format!("reader-{language}")));
        live.arg("live")
            .arg(region_program())
            .arg(tickwire())
            .arg(DAEMON)
            .arg(capture());
        for command in [&mut test, &mut live, &mut recording] {
            let outcome = ctx.check(command);
            if outcome.failed > 0 {
                return outcome;
            }
            all.passed += 1;
        }
    }
    all
}

/// The Python package: types, stubs, tests.
fn python(ctx: &Context) -> Outcome {
    let python = compiler("PYTHON", "python3");
    if !answers(Command::new(&python).args(["-c", PROBE])) {
        return absent(
            "the Python package is not tested: no python3 of 3.10 or later with venv on this machine",
            "install python3 with its venv module, then cargo xtask bindings",
        );
    }
    let mut all = Outcome::default();
    let dir = target_dir().join("bindings");
    let environment = dir.join("venv");
    let inside = environment.join("bin/python");
    if let Err(outcome) = prepare(ctx, &python, &environment) {
        return outcome;
    }
    match install(&inside) {
        Ok(()) => all.passed += 1,
        Err(why) => return failed(&format!("the Python package is not installed: {why}"), ""),
    }
    // Hints against the code of the installed package, of its tests and its examples; stubs against the
    // module; then the tests.
    let config = ["-m", "mypy", "--config-file", "bindings/python/pyproject.toml"];
    let package = [&config[..], &["-p", "tickwire"]].concat();
    let programs = [
        &config[..],
        &["bindings/python/tests", "bindings/python/examples"],
    ]
    .concat();
    // What readers copy out of the pages is held against the package like any program.
    let snippets = match write_snippets(&dir.join("snippets")) {
        Ok(paths) => paths,
        Err(error) => return failed(&format!("the Python of the pages: {error}"), ""),
    };
    let pages: Vec<&str> = snippets.iter().map(String::as_str).collect();
    let pages = [&config[..], &pages].concat();
    let stubs = ["-m", "mypy.stubtest", "tickwire"].to_vec();
    let config = [
        "-m",
        "pytest",
        "--rootdir",
        "bindings/python",
        "-c",
        "bindings/python/pyproject.toml",
    ];
    let run = [&config[..], &["-p", "no:cacheprovider", "bindings/python/tests"]].concat();
    for args in [package, programs, pages, stubs, run] {
        let mut command = Command::new(&inside);
        command
            .args(args)
            .env("TICKWIRE_REGION_PROGRAM", region_program())
            .env("TICKWIRE_PROGRAM", tickwire())
            .env("TICKWIRE_CONFIG", root().join(DAEMON))
            .env("TICKWIRE_CAPTURE", capture())
            .env("MYPY_CACHE_DIR", dir.join("mypy"));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let finished = ctx.execute(&mut command);
        let (passed, failures) = pytest_tally(&finished.output);
        if !finished.success {
            return Outcome {
                passed: all.passed + passed,
                failed: failures.max(1),
                skipped: all.skipped,
                notes: finished.output.lines().map(str::to_owned).collect(),
                again: "cargo xtask bindings".into(),
                names: crate::run::last_words(&finished.output),
            };
        }
        all.passed += passed.max(1);
    }
    all
}

/// Puts the package, with the module that was built with everything else, where a wheel would put it. The
/// wheels themselves are made and tested by `cargo xtask wheels`.
fn install(python: &Path) -> Result<(), String> {
    let asked = Command::new(python)
        .args(["-c", "import sysconfig; print(sysconfig.get_path('platlib'))"])
        .output();
    let said = asked
        .map_err(|error| format!("{}: {error}", python.display()))?
        .stdout;
    let place = PathBuf::from(String::from_utf8_lossy(&said).trim()).join("tickwire");
    let _ = std::fs::remove_dir_all(&place);
    let package = root().join("bindings/python/python/tickwire");
    for file in files("bindings/python/python/tickwire", "") {
        // What Python compiled of them stays where it is.
        if file.extension().is_none_or(|ending| ending != "pyc") {
            copy(&file, &place.join(file.strip_prefix(&package).unwrap_or(&file)))?;
        }
    }
    let module = target_dir().join("debug/lib_native.so");
    copy(&module, &place.join("_native.abi3.so"))
}

/// Every block of Python of our pages as a file of its own, named by page and line.
fn write_snippets(folder: &Path) -> std::io::Result<Vec<String>> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    let mut paths = Vec::new();
    for page in files("", "md") {
        for (line, code) in python_of(&read(&page)) {
            let name: String = shown(&page)
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
                .collect();
            let path = folder.join(format!("{name}_line_{line}.py"));
            std::fs::write(&path, code)?;
            paths.push(path.display().to_string());
        }
    }
    if paths.is_empty() {
        return Err(std::io::Error::other("no page has any"));
    }
    Ok(paths)
}

/// The blocks of a page that are fenced as Python, with the line that each begins on.
fn python_of(page: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut is_python = false;
    for (line, text) in (1..).zip(page.lines()) {
        match text.trim_start().strip_prefix("```") {
            Some("python") => {
                is_python = true;
                blocks.push((line + 1, String::new()));
            }
            Some(_) => is_python = false,
            None if is_python => {
                if let Some((_, code)) = blocks.last_mut() {
                    code.push_str(text);
                    code.push('\n');
                }
            }
            None => {}
        }
    }
    blocks
}

/// An environment with what the tests need; made anew when the list or the interpreter changed.
fn prepare(ctx: &Context, python: &Path, environment: &Path) -> Result<(), Outcome> {
    let list = "bindings/python/requirements-test.txt";
    let version = Command::new(python).arg("--version").output();
    let version = version
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let wanted = format!("{version}{}", read(&root().join(list)));
    let stamp = environment.join("made-from");
    if read(&stamp) == wanted {
        return Ok(());
    }
    let _ = std::fs::remove_dir_all(environment);
    let inside = environment.join("bin/python");
    let mut make = Command::new(python);
    make.args(["-m", "venv"]).arg(environment);
    let mut install = Command::new(inside);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "2",
        "--only-binary",
        ":all:",
        "-r",
        list,
    ]);
    let outcome = ctx.check(&mut make);
    if outcome.failed > 0 {
        return Err(outcome);
    }
    // Its own log, so that what pip says of the network can be read; it says it on standard error.
    let installed = install.current_dir(root()).output();
    let (success, said) = match &installed {
        Ok(output) => (
            output.status.success(),
            [&output.stdout[..], &output.stderr].concat(),
        ),
        Err(error) => (false, error.to_string().into_bytes()),
    };
    let said = String::from_utf8_lossy(&said);
    if !success && is_offline(&said) {
        return Err(absent(
            "the Python package is not tested: PyPI, which has what its tests need, cannot be reached",
            "cargo xtask bindings, once with a network",
        ));
    }
    if !success {
        return Err(failed(&said, &words(&install)));
    }
    std::fs::write(&stamp, wanted).map_err(|error| failed(&format!("{}: {error}", stamp.display()), ""))
}

/// A part that cannot be tested on this machine: skipped and counted, but a failure where `CI` is set.
fn absent(why: &str, remedy: &str) -> Outcome {
    if std::env::var_os("CI").is_some_and(|value| !value.is_empty()) {
        return failed(why, remedy);
    }
    Outcome {
        skipped: vec![format!("{why}; {remedy}")],
        ..Outcome::default()
    }
}

/// Whether pip failed because it could not reach its index, by what it says (urllib3's words).
fn is_offline(said: &str) -> bool {
    [
        "connection broken by",
        "NewConnectionError",
        "NameResolutionError",
        "ConnectTimeoutError",
        "Network is unreachable",
        "ProxyError",
    ]
    .iter()
    .any(|words| said.contains(words))
}

fn failed(why: &str, again: &str) -> Outcome {
    Outcome {
        failed: 1,
        notes: why.lines().map(str::to_owned).collect(),
        again: again.to_owned(),
        ..Outcome::default()
    }
}

/// A program by its customary variable, else by its name.
fn compiler(variable: &str, name: &str) -> PathBuf {
    std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map_or_else(|| name.into(), PathBuf::from)
}

fn answers(command: &mut Command) -> bool {
    command
        .stdin(std::process::Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}

fn stem(path: &str) -> String {
    Path::new(path)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Passed and failed tests by pytest's last line: `2 failed, 31 passed in 4.20s`, behind a minute with
/// `(0:01:41)` at its end.
fn pytest_tally(output: &str) -> (usize, usize) {
    let last = output
        .lines()
        .rev()
        .find(|line| line.contains(" in ") && line.ends_with(['s', '=', ')']))
        .unwrap_or("");
    let count = |word: &str| {
        let before = last.split(word).next().filter(|before| before.len() < last.len());
        before
            .and_then(|before| before.trim_end().rsplit([' ', ',']).next()?.parse().ok())
            .unwrap_or(0)
    };
    (count(" passed"), count(" failed") + count(" error"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_python_of_a_page_is_found_with_its_line() {
        let page =
            "text\n```python\nimport tickwire\n```\n```\nnot this\n```\n```python\na = 1\nb = 2\n```\n";
        let expected = [
            (3, "import tickwire\n".to_owned()),
            (9, "a = 1\nb = 2\n".to_owned()),
        ];
        assert_eq!(python_of(page), expected);
    }

    #[test]
    fn a_machine_without_network_is_told_from_a_package_that_is_not_there() {
        let offline = "WARNING: Retrying (Retry(total=1)) after connection broken by 'NewConnectionError(...)': /simple/mypy/\n\
                       ERROR: No matching distribution found for mypy==1.19.0";
        assert!(is_offline(offline));
        assert!(!is_offline(
            "ERROR: No matching distribution found for mypy==99.0"
        ));
    }

    #[test]
    fn the_last_line_of_pytest_is_counted() {
        assert_eq!(pytest_tally("...\n31 passed in 4.20s\n"), (31, 0));
        assert_eq!(pytest_tally("...\n41 passed in 101.77s (0:01:41)\n"), (41, 0));
        assert_eq!(
            pytest_tally("x in y\n2 failed, 31 passed, 1 error in 4.20s\n"),
            (31, 3)
        );
        assert_eq!(
            pytest_tally("Success: no issues found in 4 source files\n"),
            (0, 0)
        );
    }
}
