//! What compiler, Clippy and rustdoc say of every target, said while the tests are built.
//!
//! Called by themselves, `cargo clippy` and `cargo doc` first read every package, other people's too, that
//! the tests have compiled already: six minutes of processors. In `check`, cargo calls this program instead
//! of the compiler for our own packages (`RUSTC_WORKSPACE_WRAPPER`,
//! <https://doc.rust-lang.org/cargo/reference/environment-variables.html>): each target is compiled, then
//! read by Clippy, or where others link it by rustdoc, beside the packages that it was compiled against. What
//! they warn of is part of what cargo keeps of that target and says again.
//!
//! The code that is tested is the compiler's own: Clippy only reads it (what it compiles is optimised less
//! and lacks the checks of pointers).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use crate::run::{Context, Outcome, cannot_start, cargo, copy, log_path, target_dir};

/// How cargo is told of it.
pub(crate) const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// This program as cargo calls it, once it is wanted.
static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();

/// From now on every target of ours that [`cargo`] builds is read by Clippy and rustdoc, too.
///
/// The program is copied: cargo replaces the one that runs, as it is among what it builds.
pub(crate) fn begin() {
    PROGRAM.get_or_init(|| {
        let program = target_dir().join("xtask/compile-and-read");
        let own = std::env::current_exe().ok()?;
        // One that is the same is left: it may be running, and cargo would look at it anew.
        let is_the_same = std::fs::read(&own).ok()? == std::fs::read(&program).unwrap_or_default();
        if !is_the_same {
            let _ = std::fs::remove_file(&program);
            copy(&own, &program).ok()?;
        }
        Some(program)
    });
}

/// Has a cargo that is about to be called do so.
pub(crate) fn add_to(cargo: &mut Command) {
    if let Some(Some(program)) = PROGRAM.get() {
        cargo.env(WRAPPER, program);
    }
}

/// The step: what was warned of in any target, benchmarks too.
pub(crate) fn check(ctx: &Context) -> Outcome {
    begin();
    let again = "cargo xtask clippy docs".to_owned();
    if PROGRAM.get().is_none_or(Option::is_none) {
        return Outcome {
            failed: 1,
            notes: vec![format!("{} cannot be made", target_dir().join("xtask").display())],
            again,
            ..Outcome::default()
        };
    }
    let mut build = cargo();
    build.args(["test", "--workspace", "--all-targets", "--no-run", "--locked"]);
    let finished = ctx.read(&mut build);
    let mut outcome = ctx.judged(&build, &finished);
    let count = warnings(&finished.output);
    if outcome.failed == 0 && count > 0 {
        outcome = Outcome {
            failed: count,
            notes: vec![format!("{count} warnings: {}", log_path(ctx.step).display())],
            again,
            ..Outcome::default()
        };
        let lines = finished.output.lines();
        let said =
            lines.filter(|line| !line.starts_with("   Compiling ") && !line.starts_with("  Executable "));
        outcome.notes.extend(said.map(str::to_owned));
    }
    outcome
}

/// How many warnings cargo showed, without its own sums of them.
fn warnings(output: &str) -> usize {
    let lines = output
        .lines()
        .filter(|line| line.starts_with("warning: ") || line.starts_with("warning["));
    lines.filter(|line| !line.contains(") generated ")).count()
}

/// Whether cargo calls us as the compiler: the first word is the compiler's path.
pub(crate) fn is_compiler(word: &str) -> bool {
    std::env::var_os(WRAPPER).is_some() && Path::new(word).file_stem().is_some_and(|name| name == "rustc")
}

/// Who reads a target, besides the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Readers {
    /// Clippy, who says what the compiler says, too.
    clippy: bool,
    /// Rustdoc: it is a library or a program.
    rustdoc: bool,
}

/// Of what cargo compiles by these arguments, in a package. A library is read by Clippy with its own tests,
/// if it has some. `root`: where cargo runs the compiler, from which on it names sources.
fn readers_of(arguments: &[&str], root: &Path, package: &Path, has_tests: bool) -> Readers {
    let source = arguments.iter().find(|word| word.ends_with(".rs"));
    let (Some(name), Some(source)) = (behind(arguments, "--crate-name"), source) else {
        return Readers::default();
    };
    if name == "build_script_build" {
        return Readers::default();
    }
    let source = root.join(source);
    let is_aside = ["benches", "examples", "tests"]
        .iter()
        .any(|folder| source.starts_with(package.join(folder)));
    let is_test = is_aside || arguments.contains(&"--test");
    Readers {
        clippy: is_test || is_a_program(arguments) || !has_tests,
        rustdoc: !is_test,
    }
}

/// The word that follows an option.
fn behind<'a>(arguments: &[&'a str], option: &str) -> Option<&'a str> {
    let place = arguments.iter().position(|&word| word == option)?;
    arguments.get(place + 1).copied()
}

fn is_a_program(arguments: &[&str]) -> bool {
    behind(arguments, "--crate-type") == Some("bin")
}

/// Whether the library of a package is also compiled with its own tests, by the manifest.
fn has_tests(package: &Path) -> bool {
    let text = std::fs::read_to_string(package.join("Cargo.toml")).unwrap_or_default();
    let manifest = text.parse::<toml::Table>().ok();
    let said = manifest.and_then(|table| table.get("lib")?.get("test")?.as_bool());
    said.unwrap_or(true)
}

/// What cargo called us for: the compiler with its arguments, then who reads besides.
pub(crate) fn compile(rustc: &str, arguments: &[&str]) -> ExitCode {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    let root = std::env::current_dir().unwrap_or_default();
    let readers = readers_of(arguments, &root, &package, has_tests(&package));
    let mut compiler = Command::new(rustc);
    compiler.args(arguments);
    if readers.clippy {
        // Said once: by Clippy.
        compiler.args(["--cap-lints", "allow"]);
    }
    let mut calls = vec![compiler];
    let beside = |name: &str| Path::new(rustc).with_file_name(name);
    // This program lies in `target/xtask`.
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(Path::new("."));
    if readers.clippy {
        let mut clippy = Command::new(beside("clippy-driver"));
        clippy.arg(rustc).args(without_output(arguments));
        clippy
            .arg("--emit=metadata")
            .arg("--out-dir")
            .arg(folder.join("read"));
        calls.push(clippy);
    }
    if readers.rustdoc {
        let mut rustdoc = Command::new(beside("rustdoc"));
        // A program and its library have one name.
        let pages = match is_a_program(arguments) {
            true => folder.join("doc"),
            false => folder.with_file_name("doc"),
        };
        rustdoc
            .args(without_output(arguments))
            .arg("--out-dir")
            .arg(pages);
        calls.push(rustdoc);
    }
    for call in &mut calls {
        match call.status() {
            Ok(status) if status.success() => {}
            Ok(status) => return ExitCode::from(status.code().map_or(101, |code| code as u8)),
            Err(error) => {
                eprintln!("xtask: {}", cannot_start(Path::new(call.get_program()), &error));
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// The arguments without what is written where: nothing but what is said is of interest, and cargo does not
/// wait for the files of who only reads.
fn without_output(arguments: &[&str]) -> Vec<String> {
    let mut left = Vec::new();
    let mut words = arguments.iter();
    while let Some(&word) = words.next() {
        match word {
            "--out-dir" => drop(words.next()),
            _ if word.starts_with("--emit=") => {}
            _ => left.push(match word.strip_prefix("--json=") {
                Some(parts) => {
                    let kept = parts.split(',').filter(|&part| part != "artifacts");
                    format!("--json={}", kept.collect::<Vec<_>>().join(","))
                }
                None => word.to_owned(),
            }),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_by_clippy_once_and_what_others_link_is_documented() {
        let of = |package: &str, line: &str, has_tests| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let readers = readers_of(&words, Path::new("/w"), Path::new(package), has_tests);
            (readers.clippy, readers.rustdoc)
        };
        let book = "/w/crates/book";
        let library = "--crate-name tickwire_book --edition=2024 crates/book/src/lib.rs --crate-type lib --emit=dep-info,metadata,link";
        assert_eq!(of(book, library, true), (false, true));
        assert_eq!(of(book, library, false), (true, true));
        let with_tests = library.replace("--crate-type lib", "--test");
        assert_eq!(of(book, &with_tests, true), (true, false));
        let program = "--crate-name taker examples/taker/src/main.rs --crate-type bin";
        assert_eq!(of("/w/examples/taker", program, true), (true, true));
        for aside in ["benches/itch_books.rs", "examples/region.rs", "tests/all/main.rs"] {
            let line = format!("--crate-name aside crates/book/{aside} --crate-type bin");
            assert_eq!(of(book, &line, true), (true, false), "{aside}");
        }
        assert_eq!(
            of(book, "--crate-name build_script_build crates/book/build.rs", true),
            (false, false)
        );
        assert_eq!(
            of(book, "- --crate-name ___ --print=file-names", true),
            (false, false)
        );
    }

    #[test]
    fn what_only_reads_writes_where_nobody_waits() {
        let line = [
            "--json=diagnostic-short,artifacts,future-incompat",
            "--emit=dep-info,link",
            "--out-dir",
            "deps",
            "-C",
            "debuginfo=0",
        ];
        let left = ["--json=diagnostic-short,future-incompat", "-C", "debuginfo=0"];
        assert_eq!(without_output(&line), left);
    }

    #[test]
    fn warnings_are_counted_and_cargos_sums_of_them_are_not() {
        let output = "   Compiling a\nwarning: unused variable: `x`\n --> a.rs:1:1\nwarning[E0001]: other\nwarning: `a` (lib) generated 2 warnings\n";
        assert_eq!(warnings(output), 2);
        assert_eq!(
            warnings("    Finished `test` profile\n  Executable warning: x\n"),
            0
        );
    }
}
