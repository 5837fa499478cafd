//! `tickwire jobs`: a plan is the same each time, a job that was killed is run again, and none twice.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use common::{Folder, Guard, run, text, tickwire};
use serde_json::Value;
use tickwire_testdata::workspace;

/// Captures of one market, of different lengths.
fn captures(folder: &Folder, packets: &[&str]) -> Vec<String> {
    let config = workspace().join("examples/nasdaq.toml").display().to_string();
    let one = |(n, packets): (usize, &&str)| {
        let path = folder.0.join(format!("day{n}.pcap")).display().to_string();
        let made = run(&[
            "exchange",
            "-c",
            &config,
            "--write-capture",
            &path,
            "--packets",
            packets,
        ]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        path
    };
    packets.iter().enumerate().map(one).collect()
}

fn lines(output: &std::process::Output) -> Vec<Value> {
    let said = text(&output.stdout);
    said.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// The results that are there, with the time at which each was made.
fn results(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_file() && !is_hidden {
            let time = std::fs::metadata(&path).and_then(|about| about.modified());
            all.insert(
                path.clone(),
                (std::fs::read(&path).expect("a result"), time.expect("a time")),
            );
        }
    }
    all
}

/// Plans exports of two schemas of each capture.
fn plan(folder: &Folder, files: &[String], out: &str) -> (PathBuf, Vec<Value>) {
    let out = folder.0.join(out).display().to_string();
    let mut words = vec!["jobs", "plan", "--out", &out, "--set", "schema=mbo,mbp-1"];
    words.extend(files.iter().map(String::as_str));
    words.extend([
        "--",
        "export",
        "{file}",
        "--schema",
        "{schema}",
        "--out",
        "{out}.csv",
    ]);
    let planned = run(&words);
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    assert_eq!(
        text(&planned.stdout),
        text(&run(&words).stdout),
        "a plan is the same each time"
    );
    let jobs = lines(&planned);
    let path = folder.0.join("jobs.jsonl");
    std::fs::write(&path, &planned.stdout).expect("written");
    (path, jobs)
}

#[test]
fn workers_that_are_killed_are_gone_on_with_and_nothing_is_done_twice() {
    let folder = Folder::new("jobs-killed");
    let files = captures(&folder, &["1500", "2500", "3500"]);
    let (whole, jobs) = plan(&folder, &files, "whole");
    assert_eq!(jobs.len(), 6);
    let done = run(&["jobs", "run", whole.to_str().expect("text")]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(
        lines(&done).iter().all(|line| line["state"] == "done"),
        "{}",
        text(&done.stdout)
    );
    let expected = results(&folder.0.join("whole"));
    assert_eq!(expected.len(), 6);
    // Two workers with the same jobs, killed when so many results are there, again and again.
    let (path, _) = plan(&folder, &files, "out");
    let out = folder.0.join("out");
    let worker = || {
        let mut command = tickwire();
        command
            .args(["jobs", "run"])
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        Guard(command.spawn().expect("the program starts"))
    };
    let mut seen = BTreeMap::new();
    for target in [0, 1, 2, 4] {
        let mut workers = [worker(), worker()];
        while results(&out).len() < target {
            let is_over = workers
                .iter_mut()
                .all(|one| one.0.try_wait().expect("a child").is_some());
            assert!(
                !is_over || results(&out).len() == 6,
                "a worker goes on to its end"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        for one in &mut workers {
            one.0.kill().expect("killed, or over");
            one.0.wait().expect("it ended");
        }
        let have = results(&out);
        for (place, before) in &seen {
            assert_eq!(have.get(place), Some(before), "{place:?} was made again");
        }
        seen = have;
    }
    let rest = run(&["jobs", "run", path.to_str().expect("text")]);
    assert!(rest.status.success(), "{}", text(&rest.stderr));
    let states: Vec<String> = lines(&rest)
        .iter()
        .map(|line| line["state"].to_string())
        .collect();
    assert!(
        states.iter().filter(|state| *state == "\"there\"").count() >= 4,
        "{states:?}"
    );
    let have = results(&out);
    for (place, before) in &seen {
        assert_eq!(have.get(place), Some(before), "{place:?} was made again");
    }
    // Names differ by nothing but the folder: a job's identity is of its command and its input.
    let bytes = |all: &BTreeMap<PathBuf, (Vec<u8>, SystemTime)>| -> Vec<(String, Vec<u8>)> {
        let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
        all.iter()
            .map(|(path, (bytes, _))| (name(path), bytes.clone()))
            .collect()
    };
    assert!(bytes(&have) == bytes(&expected));
    // A capture that has changed is another job.
    std::fs::copy(&files[0], &files[1]).expect("copied");
    let (_, changed) = plan(&folder, &files, "out");
    let same = changed
        .iter()
        .zip(&jobs)
        .filter(|(now, before)| now["id"] == before["id"])
        .count();
    assert_eq!(same, 4);
}

#[test]
fn what_a_command_prints_is_a_result_and_what_fails_is_said() {
    let folder = Folder::new("jobs-prints");
    let files = captures(&folder, &["800"]);
    let out = folder.0.join("out").display().to_string();
    let planned = run(&[
        "jobs", "plan", &files[0], "--out", &out, "--", "inspect", "{file}", "--json",
    ]);
    let jobs = lines(&planned);
    let place = PathBuf::from(jobs[0]["out"].as_str().expect("a path"));
    assert!(jobs[0]["prints"] == true && place.extension() == Some("json".as_ref()));
    let by_pipe = |words: &[&str], jobs: &[u8]| {
        use std::io::Write;
        let mut command: Command = tickwire();
        let command = command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        child.stdin.take().expect("piped").write_all(jobs).expect("read");
        child.wait_with_output().expect("it ends")
    };
    let done = by_pipe(&["jobs", "run"], &planned.stdout);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let inspected: Value = serde_json::from_slice(&std::fs::read(&place).expect("a result")).expect("JSON");
    assert_eq!(inspected["channels"][0]["protocol"], "itch50");
    // A job that fails leaves nothing, and says why.
    let bad = run(&[
        "jobs",
        "plan",
        &files[0],
        "--out",
        &out,
        "--",
        "replay",
        "{file}",
        "--protocol",
        "moex",
    ]);
    let failed = by_pipe(&["jobs", "run", "-"], &bad.stdout);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    let said = &lines(&failed)[0];
    assert!(
        said["state"] == "failed" && said["said"].as_str().is_some_and(|said| !said.is_empty()),
        "{said}"
    );
    assert_eq!(results(Path::new(&out)).len(), 1);
    for (words, says) in [
        (&["--", "export", "{file}", "--out", "{day}.csv"][..], "{day}"),
        (&["--", "export", "day.pcap"], "{file}"),
        (
            &["--", "export", "{file}", "--partition", "--out", "{out}"],
            "--partition",
        ),
    ] {
        let refused = run(&[&["jobs", "plan", &files[0], "--out", &out][..], words].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(says), "{}", text(&refused.stderr));
    }
    let garbage = by_pipe(&["jobs", "run"], b"{\"id\": 7}\n");
    assert_eq!(garbage.status.code(), Some(2), "{}", text(&garbage.stderr));
}
