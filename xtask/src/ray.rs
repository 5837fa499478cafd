//! `cargo xtask ray`: jobs of `tickwire jobs plan` on Ray, with a worker that is killed.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::run::{cargo, must, python_with, root, target_dir};

const HELP: &str = "\
Plans exports of a few captures in several schemas, has `tickwire jobs run` do them here, and examples/ray/run_jobs.py on Ray, whose first
worker is killed as soon as it has done a job. Every job has to end once, and all results have to be the same bytes.

  cargo xtask ray [--program FILE]

  --program   a tickwire; without it one is built

Needs Python 3 with venv and the network once (ray of PyPI, 75 MB); it goes into target/ray. Not part of check.
Exit code 1: they are not the same. 2: it could not begin.
";

const PACKAGE: &str = "ray==2.60.0";

/// Runs them twice, kills a worker, compares.
const CHECK: &str = r#"
import json, os, pathlib, signal, subprocess, sys

program, runner, folder = sys.argv[1:]
folder = pathlib.Path(folder)
captures = sorted(map(str, folder.glob("*.pcap")))

def plan(out):
    words = [program, "jobs", "plan", *captures, "--out", str(folder / out), "--set", "schema=mbo,mbp-10,trades,ohlcv-1s"]
    words += ["--", "export", "{file}", "--schema", "{schema}", "--out", "{out}.csv"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout

jobs = plan("alone")
subprocess.run([program, "jobs", "run"], input=jobs, check=True, capture_output=True, text=True)
(folder / "jobs.jsonl").write_text(plan("ray"))
words = [sys.executable, runner, str(folder / "jobs.jsonl"), "--program", program]
running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
outcomes = []
for line in running.stdout:
    outcomes.append(json.loads(line))
    print(line, end="")
    if len(outcomes) == 1:
        os.kill(outcomes[0]["worker"], signal.SIGKILL)
assert running.wait() == 0, running.returncode
assert len(outcomes) == len(jobs.splitlines()) == len({outcome["id"] for outcome in outcomes})
assert all(outcome["state"] in ("done", "there") for outcome in outcomes)
results = [{path.name: path.read_bytes() for path in (folder / out).glob("*.csv")} for out in ("alone", "ray")]
if results[0] != results[1] or len(results[0]) != len(outcomes):
    sys.exit("the results are not the same")
workers = len({outcome["worker"] for outcome in outcomes})
print(f"{len(outcomes)} jobs by {workers} workers, one of them killed: the results are those of one machine")
"#;

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    crate::command::run_of_program("ray", HELP, words, compare)
}

fn compare(program: Option<PathBuf>) -> Result<bool, String> {
    let folder = target_dir().join("ray");
    let files = folder.join("files");
    let _ = std::fs::remove_dir_all(&files);
    std::fs::create_dir_all(&files).map_err(|e| format!("{}: {e}", files.display()))?;
    let python = python_with(PACKAGE, &folder.join("venv"))?;
    let program = match program {
        Some(program) => std::path::absolute(&program).map_err(|e| format!("{}: {e}", program.display()))?,
        None => {
            must(cargo().args(["build", "--quiet", "--locked", "--package", "tickwire-app"]))?;
            target_dir().join("debug/tickwire")
        }
    };
    for (day, packets) in ["8000", "12000", "16000", "20000"].into_iter().enumerate() {
        must(
            Command::new(&program)
                .args(["exchange", "-c"])
                .arg(root().join("examples/nasdaq.toml"))
                .arg("--write-capture")
                .arg(files.join(format!("day{day}.pcap")))
                .args(["--packets", packets]),
        )?;
    }
    let ran = Command::new(&python)
        .args(["-c", CHECK])
        .arg(&program)
        .arg(root().join("examples/ray/run_jobs.py"))
        .arg(&files)
        .status();
    Ok(ran.map_err(|e| format!("{}: {e}", python.display()))?.success())
}
