//! `cargo xtask wheels`: the Python package as wheels for x86-64 and AArch64, tested in a clean environment;
//! `cargo xtask notebooks`: the examples run with it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::bindings::PROBE;
use crate::run::{must, python_with, root, sysroot, target_dir};
use crate::source::read;

const HELP: &str = "\
Builds the Python package as a wheel for each of x86-64 and AArch64, one for every CPython from 3.10 on (abi3), linked by zig against
glibc 2.28 so that older systems load it. The wheel of this machine is installed into a clean environment, outside of the repository,
and used there: books and tables of a recording, a backtest, the exchange. Of the other one tags, architecture and what it needs of the
system are looked at. They go into target/wheels.

  cargo xtask wheels [--only x86_64|aarch64]

Needs Python 3 with venv and the network once (maturin, zig and numpy of PyPI), and for AArch64 `rustup target add
aarch64-unknown-linux-gnu`. Not part of check: `cargo xtask bindings` tests the package there.
Exit code 1: a wheel does not do what it should. 2: it could not begin.
";

/// What is installed, a package at a time.
const PACKAGES: [&str; 3] = ["maturin==1.16.0", "ziglang==0.15.2", "auditwheel==6.8.2"];
/// The oldest glibc that is linked against: RHEL 8, Debian 10.
const COMPATIBILITY: &str = "manylinux_2_28";

/// What a wheel has to do, without anything of the repository: a LOBSTER file is written, and read.
const SMOKE: &str = r#"
import pathlib, sys, tempfile
import numpy, tickwire
from tickwire.testing import Exchange

folder = pathlib.Path(tempfile.mkdtemp())
file = folder / "AAPL_2012-06-21_34200000_57600000_message_10.csv"
lines = ["34200.1,1,1,100,5853300,1", "34200.2,1,2,50,5859400,-1", "34200.3,4,2,20,5859400,-1", "34201.0,3,1,100,5853300,1"]
file.write_text("\n".join(lines) + "\n")
day = tickwire.open(file, date="2012-06-21")
books = list(day.books())
assert [book.best_bid for book in books][0] == (585_330_000_000, 100), books
assert books[-1].bids.size == 0 and books[-1].best_ask == (585_940_000_000, 30)
rows = day.to_numpy("mbo")
assert rows["size"].sum() == 100 + 50 + 20 * 3 + 100 and set(rows["symbol"]) == {"AAPL"}, rows
assert rows["ts_recv"][0] == numpy.datetime64("2012-06-21T13:30:00.1")
config = folder / "backtest.toml"
config.write_text("[backtest]\nfill = \"queue\"\n")
assert tickwire.backtest(config, file, "two_sided_quoter").events == 4
with Exchange() as exchange:
    assert exchange.order_entry > 0 and exchange.is_running
assert "site-packages" in tickwire.__file__
print("books, rows, a backtest and the exchange of", tickwire.__version__, "on", sys.version.split()[0])
"#;

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let targets: Vec<&str> = match words {
        [] => vec!["x86_64", "aarch64"],
        ["--only", one @ ("x86_64" | "aarch64")] => vec![one],
        ["--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    finished("wheels", wheels(&targets))
}

fn finished(name: &str, done: Result<bool, String>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask {name}: {why}");
            ExitCode::from(2)
        }
    }
}

/// Whether this machine has a Python that can make environments.
pub(crate) fn has_python() -> bool {
    let probe = Command::new("python3").args(["-c", PROBE]).output();
    probe.is_ok_and(|output| output.status.success())
}

fn tools(folder: &Path) -> Result<PathBuf, String> {
    if !has_python() {
        return Err(
            "there is no python3 of 3.10 or later with venv: install python3 and python3-venv".into(),
        );
    }
    let mut python = PathBuf::new();
    for package in PACKAGES {
        python = python_with(package, &folder.join("venv"))?;
    }
    Ok(python)
}

/// Builds the wheel of an architecture.
fn build(python: &Path, arch: &str, out: &Path) -> Result<PathBuf, String> {
    let before = wheel_of(out, arch);
    if let Some(old) = before {
        std::fs::remove_file(&old).map_err(|e| format!("{}: {e}", old.display()))?;
    }
    let bin = python.parent().unwrap_or(Path::new(""));
    let path = std::env::var("PATH").unwrap_or_default();
    let target = format!("{arch}-unknown-linux-gnu");
    must(
        Command::new(bin.join("maturin"))
            .args([
                "build",
                "--profile",
                "dist",
                "--locked",
                "--quiet",
                "--zig",
                "--target",
                &target,
            ])
            .args(["--compatibility", COMPATIBILITY, "--manifest-path"])
            .arg(root().join("bindings/python/Cargo.toml"))
            .arg("--out")
            .arg(out)
            .env("CARGO_TARGET_DIR", target_dir().join("wheels/cargo"))
            .env("PATH", format!("{}:{path}", bin.display())),
    )?;
    wheel_of(out, arch).ok_or_else(|| format!("maturin left no wheel for {arch} in {}", out.display()))
}

fn wheel_of(folder: &Path, arch: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        name.starts_with("tickwire-") && name.ends_with(&format!("{arch}.whl"))
    })
}

fn wheels(targets: &[&str]) -> Result<bool, String> {
    let folder = target_dir().join("wheels");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let python = tools(&folder)?;
    for arch in targets {
        if *arch != std::env::consts::ARCH && !has_target(arch) {
            return Err(format!(
                "Rust has no standard library for {arch} here: rustup target add {arch}-unknown-linux-gnu"
            ));
        }
        let wheel = build(&python, arch, &folder)?;
        let bytes = std::fs::metadata(&wheel).map_or(0, |about| about.len());
        println!("{}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);
        let shown = Command::new(&python)
            .args(["-m", "auditwheel", "show"])
            .arg(&wheel)
            .output();
        let said = shown.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        println!("{}", said.unwrap_or_default().trim());
        if *arch == std::env::consts::ARCH {
            used(&wheel, &folder)?;
        } else {
            println!(
                "{arch}: built, and not run: this machine is {}",
                std::env::consts::ARCH
            );
        }
    }
    Ok(true)
}

fn has_target(arch: &str) -> bool {
    let libraries = format!("lib/rustlib/{arch}-unknown-linux-gnu/lib");
    sysroot().is_some_and(|sysroot| sysroot.join(libraries).is_dir())
}

/// Installs a wheel into a new environment, and uses it from there.
fn used(wheel: &Path, folder: &Path) -> Result<(), String> {
    let clean = folder.join("clean");
    let _ = std::fs::remove_dir_all(&clean);
    must(Command::new("python3").args(["-m", "venv"]).arg(&clean))?;
    let python = clean.join("bin/python");
    must(
        Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--only-binary",
                ":all:",
            ])
            .arg(wheel),
    )?;
    must(
        Command::new(&python)
            .args(["-I", "-c", SMOKE])
            .current_dir(std::env::temp_dir()),
    )
}

const NOTEBOOKS_HELP: &str = "\
Makes notebooks of the programs in examples/notebooks, runs them with the wheel of this machine (`cargo xtask wheels --only` it first,
or give one), and keeps what they print and draw. The capture that they read is one of the simulated exchange.

  cargo xtask notebooks [--wheel FILE] [--program FILE]

  --program   a tickwire; without it one is built

Needs Python 3 with venv and the network once (jupyter's nbclient, matplotlib, polars of PyPI). Not part of check.
Exit code 1: a cell failed. 2: it could not begin.
";

/// Makes a notebook of a program whose cells begin with `# %%`, and runs it.
const NOTEBOOK: &str = r##"
import pathlib, sys
import nbclient, nbformat

source, out = map(pathlib.Path, sys.argv[1:])
book = nbformat.v4.new_notebook()
for number, cell in enumerate(source.read_text().split("# %%")[1:]):
    head, _, body = cell.partition("\n")
    body = body.strip("\n")
    if "markdown" in head:
        made = nbformat.v4.new_markdown_cell("\n".join(line.removeprefix("# ").removeprefix("#") for line in body.splitlines()))
    else:
        made = nbformat.v4.new_code_cell(body)
    made.id = f"cell-{number}"
    book.cells.append(made)
book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
nbclient.NotebookClient(book, timeout=600, kernel_name="python3").execute()
for cell in book.cells:
    cell.metadata.pop("execution", None)
nbformat.write(book, out)
pictures = sum("image/png" in output.get("data", {}) for cell in book.cells for output in cell.get("outputs", []))
print(f"{out.name}: {len(book.cells)} cells, {pictures} pictures")
if pictures == 0:
    sys.exit("there is no picture")
"##;

/// The command `cargo xtask notebooks`.
pub(crate) fn run_notebooks(words: &[&str]) -> ExitCode {
    let (mut wheel, mut program) = (None, None);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match (*word, rest.next()) {
            ("--wheel", Some(file)) => wheel = Some(PathBuf::from(file)),
            ("--program", Some(file)) => program = Some(PathBuf::from(file)),
            ("--help" | "-h", _) => {
                print!("{NOTEBOOKS_HELP}");
                return ExitCode::SUCCESS;
            }
            _ => {
                eprint!("{NOTEBOOKS_HELP}");
                return ExitCode::from(2);
            }
        }
    }
    finished("notebooks", notebooks(wheel, program))
}

fn notebooks(wheel: Option<PathBuf>, program: Option<PathBuf>) -> Result<bool, String> {
    let folder = target_dir().join("notebooks");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let wheel = wheel.or_else(|| wheel_of(&target_dir().join("wheels"), std::env::consts::ARCH));
    let wheel = wheel.ok_or("there is no wheel in target/wheels: cargo xtask wheels, or --wheel FILE")?;
    let mut python = PathBuf::new();
    for package in [
        "nbclient",
        "nbformat",
        "ipykernel",
        "matplotlib",
        "polars",
        "numpy",
    ] {
        python = python_with(package, &folder.join("venv"))?;
    }
    must(
        Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--force-reinstall",
                "--no-deps",
            ])
            .arg(&wheel),
    )?;
    let program = match program {
        Some(program) => program,
        None => {
            must(crate::run::cargo().args([
                "build",
                "--quiet",
                "--locked",
                "--release",
                "--package",
                "tickwire-app",
            ]))?;
            target_dir().join("release/tickwire")
        }
    };
    let daemon = root().join("bindings/daemon.toml");
    for (name, config) in [
        ("book_of_a_day", "examples/nasdaq.toml"),
        ("latency_of_a_session", "bindings/daemon.toml"),
    ] {
        let capture = folder.join(format!("{name}.pcap"));
        must(
            Command::new(&program)
                .args(["exchange", "-c"])
                .arg(root().join(config))
                .arg("--write-capture")
                .arg(&capture)
                .args(["--packets", "60000"]),
        )?;
        let source = root().join(format!("examples/notebooks/{name}.py"));
        if read(&source).is_empty() {
            return Err(format!("{} cannot be read", source.display()));
        }
        let out = source.with_extension("ipynb");
        let ran = Command::new(&python)
            .args(["-c", NOTEBOOK])
            .args([&source, &out])
            .env("TICKWIRE_CAPTURE", &capture)
            .env("TICKWIRE_PROGRAM", &program)
            .env("TICKWIRE_CONFIG", &daemon)
            .current_dir(&folder)
            .status();
        if !ran.is_ok_and(|status| status.success()) {
            return Ok(false);
        }
    }
    Ok(true)
}
