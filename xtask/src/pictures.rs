//! `cargo xtask pictures`: the pictures of the README, each taken of the running program.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::run::{root, words};
use crate::soak;

const HELP: &str = "\
Takes the pictures in docs/pictures anew, of the running program:

  book.svg, top.svg   the views of a daemon that listens to the simulated exchange (examples/daemon.toml), drawn by --svg
  demo.png            the page that `tickwire demo` writes, drawn by Chromium; where there is none, that picture stays as it is

  cargo xtask pictures [--program FILE] [--only book|top|demo]

  --program   the program (default: target/release/tickwire, which is built first)

docs/pictures/architecture.svg is drawn by hand. Not part of check. Exit code 1: a picture could not be taken. 2: a wrong word.
";

/// Where Debian, Ubuntu and others put the browser.
const BROWSERS: &[&str] = &[
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];
/// What is shown of the demonstration's page, in pixels.
const WINDOW: &str = "--window-size=1000,1240";
/// Seen from the root, where the programs run: what they show has no path of this machine in it.
const SCRATCH: &str = "target/pictures";
/// The configuration of both sides.
const CONFIG: &str = "examples/daemon.toml";
/// Its books are full after this.
const WARM_UP: Duration = Duration::from_secs(8);
/// How long a moment is waited for at which every feed is live: on these lines packets are lost.
const PATIENCE: Duration = Duration::from_secs(15);

/// The command.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let (mut program, mut only) = (None, None);
    let mut rest = args.iter();
    while let Some(&word) = rest.next() {
        match (word, rest.next()) {
            ("--help" | "-h", _) => {
                print!("{HELP}");
                return ExitCode::SUCCESS;
            }
            ("--program", Some(file)) => program = Some(PathBuf::from(file)),
            ("--only", Some(&name)) if ["book", "top", "demo"].contains(&name) => only = Some(name),
            _ => {
                eprintln!("xtask pictures: '{word}' is no word of it, or lacks its value\n\n{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    match program
        .map_or_else(soak::build, |program| {
            std::path::absolute(program).map_err(|e| e.to_string())
        })
        .and_then(|program| take(&program, only))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask pictures: {why}");
            ExitCode::FAILURE
        }
    }
}

fn take(program: &Path, only: Option<&str>) -> Result<(), String> {
    let pictures = root().join("docs/pictures");
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    if is_wanted("book") || is_wanted("top") {
        views(program, &pictures, &is_wanted)?;
    }
    if is_wanted("demo") {
        demo(program, &pictures.join("demo.png"))?;
    }
    Ok(())
}

/// A process that is asked to end when it is no longer wanted.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Result<Running, String> {
        let quiet = command
            .current_dir(root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        quiet
            .spawn()
            .map(Running)
            .map_err(|e| format!("cannot start {}: {e}", words(command)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended by itself is what was wanted.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Runs a command to its end; what it said where it failed.
fn finish(command: &mut Command) -> Result<(), String> {
    let output = command.current_dir(root()).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("cannot start {}: {e}", words(command)))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{}: {}",
            words(command),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// The daemon and an exchange for it to listen to, and what the views show of them.
fn views(program: &Path, pictures: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Result<(), String> {
    let folder = Path::new(SCRATCH).join("daemon");
    let _ = std::fs::remove_dir_all(root().join(&folder));
    let command = |args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).env("TICKWIRE_FOLDER", &folder);
        command
    };
    let _daemon = Running::start(&mut command(&["feed", "-c", CONFIG]))?;
    wait_for("the daemon's region", || {
        root().join(&folder).join("region").exists()
    })?;
    let _exchange = Running::start(&mut command(&["exchange", "-c", CONFIG]))?;
    std::thread::sleep(WARM_UP);
    for (name, args) in [
        ("book", &["book", "AAPL", "--levels", "6"][..]),
        ("top", &["top"]),
    ] {
        if is_wanted(name) {
            let file = pictures.join(format!("{name}.svg"));
            let path = file.display().to_string();
            let whole = [args, &["--svg", &path]].concat();
            let mut failed = None;
            wait_for("a moment at which every feed is live", || {
                failed = finish(&mut command(&whole)).err();
                failed.is_some() || std::fs::read_to_string(&file).is_ok_and(|text| !text.contains("STALE"))
            })?;
            failed.map_or(Ok(()), Err)?;
            println!("{path}: of `tickwire {}`", args.join(" "));
        }
    }
    Ok(())
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) -> Result<(), String> {
    let began = Instant::now();
    while !is_there() {
        if began.elapsed() > PATIENCE {
            return Err(format!("{what} did not come within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// A demonstration, and its page as a browser draws it.
fn demo(program: &Path, picture: &Path) -> Result<(), String> {
    let Some(browser) = BROWSERS.iter().find(|path| Path::new(path).exists()) else {
        println!(
            "{}: stays as it is: there is no Chromium ({})",
            picture.display(),
            BROWSERS.join(", ")
        );
        return Ok(());
    };
    let folder = Path::new(SCRATCH).join("demo");
    let mut run = Command::new(program);
    run.args(["demo", "--seconds", "5", "--dir"]).arg(&folder);
    finish(&mut run)?;
    let mut draw = Command::new(browser);
    draw.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        WINDOW,
    ])
    .arg(format!("--screenshot={}", picture.display()))
    .arg(format!(
        "file://{}",
        root().join(&folder).join("report.html").display()
    ));
    finish(&mut draw)?;
    println!("{}: of `tickwire demo`", picture.display());
    Ok(())
}
