//! `cargo xtask promtool`: what `/metrics` answers, judged by Prometheus's own programs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::run::{cannot_start, cargo, must, python_with, root, target_dir};

const HELP: &str = "\
Asks a daemon beside the simulated exchange for its metrics, in both formats: the text format 0.0.4 is judged by `promtool check
metrics`, OpenMetrics 1.0 by the parser of the package prometheus-client, which is the format's reference.

  cargo xtask promtool

Needs Go, Python 3 with venv and the network once; both tools go into target/promtool. Not part of check.
Exit code 1: one of them has an objection. 2: it could not begin.
";

/// What is installed.
const PROMTOOL: &str = "github.com/prometheus/prometheus/cmd/promtool";
const VERSION: &str = "v0.55.1";
const PACKAGE: &str = "prometheus-client==0.21.1";

/// Reads OpenMetrics, and refuses what the specification does.
const READER: &str = "\
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
print(len(families), 'families,', sum(len(f.samples) for f in families), 'samples')
";

/// How long the daemon may take to hear of books.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    if matches!(words, ["--help" | "-h"]) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match judged() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("xtask promtool: {why}");
            ExitCode::from(2)
        }
    }
}

/// A process that is ended when this goes.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn judged() -> Result<bool, String> {
    let folder = target_dir().join("promtool");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (promtool, python) = (promtool(&folder)?, python_with(PACKAGE, &folder.join("venv"))?);
    must(cargo().args(["build", "--quiet", "--locked", "--package", "tickwire-app"]))?;
    let program = target_dir().join("debug/tickwire");
    let config = folder.join("daemon.toml");
    let address = free_address()?;
    let text = std::fs::read_to_string(root().join("examples/daemon.toml")).map_err(|e| e.to_string())?;
    let text = text.replace(
        "# metrics = \"127.0.0.1:9464\"",
        &format!("metrics = \"{address}\""),
    );
    std::fs::write(&config, text).map_err(|e| format!("{}: {e}", config.display()))?;
    let start = |command: &str, more: &[&str]| {
        let mut child = Command::new(&program);
        child.arg(command).arg("-c").arg(&config).args(more);
        child.stdin(Stdio::null()).stdout(Stdio::null());
        child.spawn().map(Running).map_err(|e| cannot_start(&program, &e))
    };
    let region = folder.join("region");
    let _feed = start("feed", &["--folder", &region.display().to_string()])?;
    let _exchange = start("exchange", &[])?;
    let begun = Instant::now();
    let has_books = |text: &str| {
        let mut updates = text
            .lines()
            .filter(|line| line.starts_with("tickwire_book_updates_total{"));
        updates.any(|line| !line.ends_with(" 0"))
    };
    let plain = loop {
        match asked(address, "text/plain;version=0.0.4") {
            Ok(text) if has_books(&text) => break text,
            other if begun.elapsed() > PATIENCE => {
                return Err(format!("no book within {PATIENCE:?}; last: {:?}", other.err()));
            }
            _ => std::thread::sleep(Duration::from_millis(200)),
        }
    };
    let open = asked(address, "application/openmetrics-text;version=1.0.0")?;
    let text = fed(Command::new(&promtool).args(["check", "metrics"]), &plain)?;
    println!(
        "promtool check metrics, {} lines: {}",
        plain.lines().count(),
        verdict(text)
    );
    let openmetrics = fed(Command::new(&python).args(["-c", READER]), &open)?;
    println!(
        "{PACKAGE}, {} lines: {}",
        open.lines().count(),
        verdict(openmetrics)
    );
    Ok(text && openmetrics && open.ends_with("# EOF\n"))
}

fn verdict(is_right: bool) -> &'static str {
    match is_right {
        true => "no objection",
        false => "OBJECTIONS, above",
    }
}

/// Its path; built once, as a dependency of an empty module.
fn promtool(folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join("promtool");
    if program.exists() {
        return Ok(program);
    }
    let go = |words: &[&str]| {
        must(
            Command::new("go")
                .args(words)
                .current_dir(folder)
                .env("GOFLAGS", "-mod=mod"),
        )
    };
    if !folder.join("go.mod").exists() {
        go(&["mod", "init", "tools"])?;
    }
    go(&["get", &format!("{PROMTOOL}@{VERSION}")])?;
    go(&["build", "-o", "promtool", PROMTOOL])?;
    Ok(program)
}

fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    listener.local_addr().map_err(|e| e.to_string())
}

/// The body of an answer.
fn asked(address: SocketAddr, accept: &str) -> Result<String, String> {
    let text = |e: std::io::Error| e.to_string();
    let mut stream = TcpStream::connect(address).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n"
    )
    .map_err(text)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(text)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("an answer without a body")?;
    match head.starts_with("HTTP/1.1 200") {
        true => Ok(body.to_owned()),
        false => Err(head.to_owned()),
    }
}

/// Runs a command with this on standard input; whether it ends with 0.
fn fed(command: &mut Command, text: &str) -> Result<bool, String> {
    let program = PathBuf::from(command.get_program());
    let mut child = command
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|e| cannot_start(&program, &e))?;
    // Who ends before it has read everything says so by its exit code.
    let _ = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(text.as_bytes()));
    child
        .wait()
        .map(|status| status.success())
        .map_err(|e| e.to_string())
}
