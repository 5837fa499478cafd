//! `tickwire lab`: scenarios run, kept, shown and compared; what is wrong fails; the page draws its pictures
//! and loads nothing.

#[path = "../../tickwire/tests/common/mod.rs"]
mod common;
#[path = "common/runs.rs"]
mod runs;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tickwire_testdata::browser::headless;

use common::{Folder, Guard, free_ports, run, signal, text, tickwire, waited};
use runs::{FEW, cases, lab, manifest, measured};
use serde_json::Value;

const SMALL: [&str; 3] = ["run.samples=200", "run.repetitions=2", "settings.stall_every=50"];

#[test]
fn a_run_is_kept_whole_shown_again_and_compared_with_another() {
    let folder = Folder::new("lab-kept");
    let (kept, first) = measured(&folder, "selftest", &SMALL);
    for file in [
        "manifest.json",
        "scenario.toml",
        "report.txt",
        "report.md",
        "report.html",
        "histograms/01-open-loop.hlog",
        "samples/02-closed-loop.csv.gz",
    ] {
        assert!(first.join(file).exists(), "{file}");
    }
    let (cost, source) = (&kept["probe"]["cost_tenths_ns"][0], &kept["probe"]["source"]);
    assert!(cost.as_u64() > Some(0) && source.is_string(), "{}", kept["probe"]);
    let command = kept["command"].as_str().expect("a command");
    assert!(
        command.starts_with("tickwire lab run selftest") && command.contains("run.samples=200"),
        "{command}"
    );
    assert!(kept["host"].as_array().is_some_and(|facts| facts.len() > 5));
    // A build that is not the one that is handed on says so wherever its figures are shown.
    let built = Path::new(env!("CARGO_BIN_EXE_tickwire-lab"));
    let profile = built.parent().and_then(Path::file_name).expect("target/PROFILE");
    let built_with = env!("TICKWIRE_PROFILE");
    assert!(
        built_with.starts_with(profile.to_str().expect("text")),
        "{built_with}"
    );
    let sentence = format!("built with the profile `{built_with}`");
    let is_handed_on = built_with == "dist+pgo";
    for file in ["report.txt", "report.md", "report.html"] {
        let shown = std::fs::read_to_string(first.join(file)).expect("a report");
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_ne!(shown.contains(&sentence), is_handed_on, "{file}: {shown}");
    }
    assert_eq!(kept["cases"][0]["repetitions"][1]["summaries"][0]["count"], 200);
    let config = std::fs::read_to_string(first.join("scenario.toml")).expect("a file");
    assert!(
        config.contains("samples = 200") && config.contains("warm_up = 0"),
        "{config}"
    );

    // Shown again from the folder alone: as it was shown at first.
    let shown = run(&["lab", "report", first.to_str().unwrap(), "--format", "html"]);
    assert_eq!(
        text(&shown.stdout),
        std::fs::read_to_string(first.join("report.html")).expect("a page")
    );

    // The same system again, in a folder of its own; then one whose every answer takes thirty times as long.
    let (_, second) = lab(&folder, "selftest", &SMALL);
    assert_ne!(first, second);
    let compare = |a: &Path, b: &Path, more: &[&str]| {
        let mut args = vec!["lab", "compare", a.to_str().unwrap(), b.to_str().unwrap()];
        args.extend(more);
        run(&args)
    };
    let itself = compare(&first, &first, &["--fail-above", "1.0001", "--at", "p50"]);
    assert_eq!(itself.status.code(), Some(0));
    assert!(
        text(&itself.stdout).contains("no difference shown"),
        "{}",
        text(&itself.stdout)
    );
    let slow = [
        SMALL[0],
        "run.repetitions=3",
        "settings.stall_every=0",
        "settings.delay_us=600",
        "load.intervals_us=[1000]",
    ];
    let (_, third) = measured(&folder, "selftest", &slow);
    let regression = compare(&third, &third, &["--json"]);
    let rows: Value = serde_json::from_str(&text(&regression.stdout)).expect("JSON");
    assert!(
        rows["rows"]
            .as_array()
            .is_some_and(|rows| rows.len() == 8 && rows[0]["ratio"] == 1.0),
        "{rows}"
    );

    // Both runs of the same system as one of four repetitions; not with the slow one, whose cases have other
    // parameters.
    let join = |other: &Path| {
        let out = folder.0.join("joined");
        let [a, b, out] = [&first, other, &out].map(|path| path.to_str().unwrap());
        run(&["lab", "join", a, b, "--out", out])
    };
    let joined = join(&second);
    let said = text(&joined.stdout).to_string();
    assert_eq!(joined.status.code(), Some(0), "{}", text(&joined.stderr));
    let results = said.lines().find_map(|line| line.strip_prefix("results: "));
    let both = manifest(Path::new(results.expect("a folder")));
    let repetitions = both["cases"][0]["repetitions"].as_array().expect("a list");
    assert_eq!(
        (repetitions.len(), both["cases"].as_array().map(Vec::len)),
        (4, Some(2))
    );
    assert!(
        both["notes"][0]
            .as_str()
            .is_some_and(|note| note.contains("2 runs as one"))
    );
    let refused = join(&third);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stdout));
    assert!(
        text(&refused.stderr).contains("was measured with"),
        "{}",
        text(&refused.stderr)
    );

    let broken = compare(&first, folder.0.as_path(), &[]);
    assert_eq!(broken.status.code(), Some(3));
    assert!(
        text(&broken.stderr).contains("manifest.json"),
        "{}",
        text(&broken.stderr)
    );
}

#[test]
fn a_regression_is_an_exit_code() {
    // Written by hand, so that no machine's mood decides: the second run is the first one, one and a half
    // times as slow.
    let folder = Folder::new("lab-regression");
    let made = |name: &str, factor: u64| {
        use tickwire_lab::{Case, Measure, RunRecord, folder::FORMAT};
        let mut case = Case::new("case", Measure::new("latency", "From here to there."));
        for repetition in 0..6 {
            let mut recorder = case.recorder(10);
            (0..1_000u64).for_each(|i| {
                recorder.record(i, &[(10_000 + 13 * (i % 100) + repetition * 7) * factor / 2], &[])
            });
            case.repetitions.push(recorder.finish([]));
        }
        let record = RunRecord {
            format: FORMAT,
            cases: vec![case],
            ..RunRecord::default()
        };
        let path = folder.0.join(name);
        for (file, bytes) in record.files() {
            let to = path.join(file);
            std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
            std::fs::write(to, bytes).expect("written");
        }
        path.to_str().expect("a path").to_owned()
    };
    let (fast, slow) = (made("fast", 2), made("slow", 3));
    for (a, b, limit, code) in [
        (&fast, &slow, "1.05", 1),
        (&fast, &slow, "1.6", 0),
        (&slow, &fast, "1.05", 0),
    ] {
        let output = run(&["lab", "compare", a, b, "--fail-above", limit, "--at", "p99"]);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{} {}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
    let output = run(&["lab", "compare", &fast, &slow, "--fail-above", "1.05"]);
    assert!(
        text(&output.stderr).contains("slower than 1.05 times at p99: 'case' 1.5"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn what_a_system_under_test_does_wrong_fails_the_run_and_keeps_it() {
    let folder = Folder::new("lab-faults");
    let quick = ["run.repetitions=1", "load.timeout_ms=100"];
    let quadra = [
        "run.samples=250",
        "run.warm_up=0",
        "load.intervals_us=[300]",
        "settings.bare=false",
        "settings.legs=[]",
    ];
    let quadra = [
        &quadra[..],
        &["run.network=loopback", "settings.backends=[\"poll\"]"],
    ]
    .concat();
    for (scenario, fault, more) in [
        ("selftest", "lose-answer", &["run.samples=150"][..]),
        ("selftest", "wrong-answer", &["run.samples=150"][..]),
        ("quadra", "lose-order", &quadra),
        ("quadra", "wrong-order", &quadra),
    ] {
        let fault_set = format!("settings.fault={fault}");
        let set = [&quick[..], more, &[&fault_set]].concat();
        let (output, results) = lab(&folder, scenario, &set);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{scenario} {fault}: {said}");
        assert!(said.contains("checks failed"), "{said}");
        let report = std::fs::read_to_string(results.join("report.txt")).expect("it is kept");
        assert!(report.contains("CHECKS FAILED"), "{report}");
    }
}

/// A connection that breaks in one case is the end of that case: those behind it are measured, and the failed
/// one says why it has no figures.
#[test]
fn a_case_that_fails_leaves_the_others_run_and_is_a_failed_case() {
    let folder = Folder::new("lab-failed-case");
    let set = [
        "run.network=loopback",
        "settings.transports=[\"tcp\"]",
        "settings.backends=[\"poll\", \"epoll\"]",
        "settings.legs=[]",
        "settings.fault=floor-hangs-up",
    ];
    let (output, results) = lab(&folder, "quadra", &[&FEW[..], &set].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let kept = manifest(&results);
    let cases = cases(&kept);
    let names: Vec<&str> = cases.iter().filter_map(|case| case["name"].as_str()).collect();
    let wanted = [
        "tcp, 500 µs, poll",
        "bare tcp, 500 µs, poll",
        "tcp, 500 µs, epoll",
        "bare tcp, 500 µs, epoll",
    ];
    assert_eq!(names, wanted);
    for case in cases {
        let is_floor = case["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("bare "));
        let repetitions = case["repetitions"].as_array().map_or(0, Vec::len);
        if is_floor {
            assert_eq!(repetitions, 0, "{case}");
            assert!(
                case["unmeasured"].as_str().is_some_and(|why| !why.is_empty()),
                "{case}"
            );
        } else {
            assert_eq!(case["repetitions"][0]["summaries"][0]["count"], 20, "{case}");
            assert!(case["unmeasured"].is_null(), "{case}");
        }
    }
    let checks = kept["checks"].as_array().expect("checks");
    let failed: Vec<&str> = checks
        .iter()
        .filter(|check| check["passed"] == false)
        .filter_map(|check| check["name"].as_str())
        .collect();
    let wanted =
        ["poll", "epoll"].map(|backend| format!("bare tcp, 500 µs, {backend}, repetition 1: measured"));
    assert_eq!(failed, wanted, "{said}");
    let report = std::fs::read_to_string(results.join("report.txt")).expect("a report");
    assert!(report.contains("CHECKS FAILED"), "{report}");
}

#[test]
fn exchange_and_trader_answer_every_message_through_every_back_end() {
    let folder = Folder::new("lab-quadra");
    let set = [&FEW[..], &["run.network=loopback"]].concat();
    let (kept, results) = measured(&folder, "quadra", &set);
    let cases = cases(&kept);
    let spinning = common::cores() > 1;
    // Seven back ends and the floor of each, and two with the kernel's stamps, over two transports.
    assert_eq!(
        cases.len(),
        if spinning {
            2 * (7 * 2 + 2)
        } else {
            2 * (5 * 2 + 1)
        }
    );
    for case in cases {
        assert_eq!(
            case["repetitions"][0]["summaries"][0]["count"], 20,
            "{}",
            case["name"]
        );
        assert_eq!(case["repetitions"][0]["counts"]["lost"], 0);
    }
    // The legs of a round trip are no longer than it, and none is missing.
    let legs = cases
        .iter()
        .find(|case| case["name"] == "legs of tcp, 500 µs, poll")
        .expect("a case");
    let summaries = legs["repetitions"][0]["summaries"].as_array().expect("measures");
    assert_eq!(summaries.len(), 7);
    for summary in &summaries[1..] {
        assert_eq!(summary["count"], 20, "{legs}");
    }
    let report = std::fs::read_to_string(results.join("report.md")).expect("a report");
    for part in [
        "Feed over multicast: RTT/2, p50 (p99), by interval",
        "as a multiple of poll's",
        "bare ping-pong's",
        "Quadra, about 2013",
    ] {
        assert!(report.contains(part), "{part}");
    }
}

/// The trade by FIX, tiny: every message and order by our engine, checked by the naive rule; what is expected
/// wrongly fails it.
#[test]
fn a_trade_by_fix_is_checked_order_by_order_and_timed_leg_by_leg() {
    let folder = Folder::new("lab-fix");
    let set = [
        "run.warm_up=5",
        "run.samples_kept=1000",
        "settings.traders=[\"tickwire-blocking\"]",
        "settings.round_trip_rate=200",
        "settings.round_trip_s=0.5",
        "settings.burst_rate=2000",
        "settings.burst_s=0.5",
        "settings.sustained_rates=[500, 1000, 2000]",
        "settings.sustained_step_s=0.2",
        "settings.extended_rates=[500, 1000]",
        "settings.extended_step_s=0.2",
        "settings.extended_held_s=0.3",
    ];
    let (kept, results) = measured(&folder, "fix", &set);
    let cases = cases(&kept);
    assert_eq!(cases.len(), 4);
    for (case, messages) in cases.iter().zip([100, 1_000, 700, 600]) {
        let repetition = &case["repetitions"][0];
        let count = |name: &str| repetition["counts"][name].as_u64().unwrap_or(u64::MAX);
        assert_eq!(count("messages"), messages, "{}", case["name"]);
        let found = ["lost", "wrong", "recorded without legs"].map(count);
        assert_eq!(found, [0; 3], "{}: {repetition}", case["name"]);
        assert_eq!(count("recorded"), count("orders") - 5, "{}", case["name"]);
        waited(repetition, &["simulator", "trader"]);
        // No leg is missing.
        for summary in repetition["summaries"].as_array().expect("measures") {
            assert_eq!(
                summary["count"],
                count("recorded"),
                "{}: {repetition}",
                case["name"]
            );
        }
    }
    assert_eq!(
        cases[0]["repetitions"][0]["counts"]["orders"], 100,
        "one for each message"
    );
    let report = std::fs::read_to_string(results.join("report.md")).expect("a report");
    for part in [
        "FIX Antenna C++",
        "beside bare TCP",
        "By rate",
        "frequency distribution",
        "6 report back",
        "last eighth",
    ] {
        assert!(report.contains(part), "{part}");
    }
    for (fault, said) in [("lose-order", "never came"), ("wrong-price", "is due")] {
        let fault = format!("settings.fault={fault}");
        let set = [
            &set[..],
            &["settings.cycles=[\"burst\"]", "settings.order_every=3", &fault],
        ]
        .concat();
        let (output, _) = lab(&folder, "fix", &[&set[..], &["load.timeout_ms=500"]].concat());
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{shown}");
        assert!(shown.contains(said), "{shown}");
    }
    another_engine(&folder, &set);
}

/// More than any engine takes: it is sent no more once it is too far behind, what was sent is checked, and
/// the report says how far it came.
#[test]
fn a_trader_that_falls_too_far_behind_is_given_up_and_nothing_of_it_is_lost() {
    let folder = Folder::new("lab-fix-behind");
    let set = [
        "run.warm_up=0",
        "settings.traders=[\"tickwire-blocking\"]",
        "settings.cycles=[\"extended\"]",
        "settings.extended_rates=[1000, 10000000]",
        "settings.extended_step_s=2",
        "settings.extended_held_s=0",
        "settings.behind_max_s=1.5",
        "settings.order_every=100",
    ];
    let (kept, results) = measured(&folder, "fix", &set);
    let repetition = &kept["cases"][0]["repetitions"][0];
    let count = |name: &str| repetition["counts"][name].as_u64().unwrap_or(u64::MAX);
    assert!(
        (2_001..20_002_000).contains(&count("messages")),
        "the first step, and a part of the second: {repetition}"
    );
    assert_eq!(["lost", "wrong"].map(count), [0; 2], "{repetition}");
    let report = std::fs::read_to_string(results.join("report.md")).expect("a report");
    let report = report.replace('\u{202f}', " ");
    for part in [
        "given up at 10 000 000 messages a second, more than 1.5 s behind",
        "of 20 002 000 messages",
        "| given up |",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
}

/// Ended in the middle of a long cycle: the one before is whole, nothing is lost, and the report says that it
/// is less.
#[test]
fn an_interrupted_run_keeps_what_was_measured_and_says_so() {
    let folder = Folder::new("lab-interrupted");
    let mut command = tickwire();
    command.args(["lab", "run", "fix", "--out"]).arg(&folder.0);
    for value in [
        "run.warm_up=0",
        "run.samples_kept=1000",
        "settings.traders=[\"tickwire-blocking\"]",
        "settings.cycles=[\"round-trip\", \"burst\"]",
        "settings.round_trip_rate=200",
        "settings.round_trip_s=0.2",
        "settings.burst_rate=1000",
        "settings.burst_s=3600",
    ] {
        command.args(["--set", value]);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut lab = Guard(command.spawn().expect("it starts"));
    let mut lines = BufReader::new(lab.0.stderr.take().expect("a pipe")).lines();
    let mut said = Vec::new();
    while !said
        .last()
        .is_some_and(|line: &String| line.contains("burst, Tickwire"))
    {
        said.push(
            lines
                .next()
                .unwrap_or_else(|| panic!("it ended: {said:?}"))
                .expect("text"),
        );
    }
    signal("INT", lab.0.id());
    said.extend(lines.map(|line| line.expect("text")));
    let status = lab.wait(Duration::from_secs(60)).expect("it ends");
    assert_eq!(status.code(), Some(130), "{said:?}");
    assert!(
        said.iter()
            .any(|line| line.contains("what was measured until then is in")),
        "{said:?}"
    );
    let mut out = String::new();
    let mut stdout = lab.0.stdout.take().expect("a pipe");
    stdout.read_to_string(&mut out).expect("text");
    let path = out.lines().find_map(|line| line.strip_prefix("results: "));
    let results = PathBuf::from(path.unwrap_or_else(|| panic!("no results: {out}")));
    let kept = manifest(&results);
    let whole = &kept["cases"][0]["repetitions"][0];
    assert_eq!(whole["counts"]["orders"], 40, "{whole}");
    assert!(
        kept["notes"].to_string().contains("INTERRUPTED"),
        "{}",
        kept["notes"]
    );
    let report = std::fs::read_to_string(results.join("report.txt")).expect("a report");
    assert!(
        report.contains("INTERRUPTED") && report.contains("Order to report"),
        "{report}"
    );
    // It reads and shows like any other.
    let shown = run(&["lab", "report", results.to_str().expect("a path")]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
}

/// QuickFIX's trader in the same harness, where it was built.
fn another_engine(folder: &Folder, set: &[&str]) {
    let set = [
        set,
        &[
            "settings.traders=[\"quickfix-cpp\"]",
            "settings.cycles=[\"burst\"]",
        ],
    ]
    .concat();
    let (output, results) = lab(folder, "fix", &set);
    let said = text(&output.stderr);
    if output.status.code() == Some(2) && said.contains("cargo xtask lab-peers") {
        return tickwire_testdata::not_tested(format!("QuickFIX C++ beside ours: {said}"));
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let case = &manifest(&results)["cases"][0];
    assert_eq!(case["label"], "QuickFIX C++");
    assert_eq!(
        case["repetitions"][0]["counts"]["recorded without legs"], 0,
        "{case}"
    );
}

#[test]
fn between_two_namespaces_where_that_is_permitted() {
    let folder = Folder::new("lab-veth");
    let set = [
        "run.network=veth",
        "settings.backends=[\"epoll\"]",
        "settings.legs=[]",
    ];
    let set = [&FEW[..], &set].concat();
    let (output, results) = lab(&folder, "quadra", &set);
    if output.status.code() == Some(3) && text(&output.stderr).contains("needs root") {
        let said = text(&output.stderr);
        return tickwire_testdata::not_tested(format!("no network namespaces here: {said}"));
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = std::fs::read_to_string(results.join("report.txt")).expect("a report");
    assert!(
        report.contains("two network namespaces joined by veth"),
        "{report}"
    );
}

#[test]
fn an_exchange_and_a_trader_alone_find_each_other() {
    let folder = Folder::new("lab-alone");
    let ports = free_ports::<2>();
    let scenario = format!(
        "name = \"alone\"\nkind = \"quadra\"\n[load]\nintervals_us = [500, 700]\ntimeout_ms = 30000\n[run]\nsamples = 50\nwarm_up = 5\n\
         [settings]\ntransports = [\"tcp\"]\nbackends = [\"poll\"]\nexchange = \"same\"\nports = [{}, {}]\n",
        ports[0], ports[1]
    );
    let file = folder.file("alone.toml", scenario);
    let file = file.to_str().expect("a path");
    let mut exchange = tickwire();
    exchange.args(["exchange", "--venue", "quadra", "-c", file]);
    let mut exchange = Guard(exchange.stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut lines = BufReader::new(exchange.0.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("text");
    assert!(first.starts_with("quadra: orders to 127.0.0.1:"), "{first}");
    let trader = run(&["trade", "--venue", "quadra", "-c", file]);
    assert_eq!(trader.status.code(), Some(0), "{}", text(&trader.stderr));
    let rest: Vec<String> = lines.map(|line| line.expect("text")).collect();
    let count = |name: &str| {
        rest.iter()
            .any(|line| line.trim_start().starts_with(name) && line.ends_with(" 50"))
    };
    assert!(count("500 µs") && count("700 µs"), "{rest:?}");
    let status = exchange.wait(Duration::from_secs(60)).expect("it ends");
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_wrong_scenario_names_the_line_and_a_reserved_one_says_what_it_waits_for() {
    let folder = Folder::new("lab-wrong");
    let good =
        "name = \"x\"\nkind = \"quadra\"\n[load]\nintervals_us = [500]\n[settings]\nbackends = [\"poll\"]\n";
    for (from, to, place, what) in [
        ("\"poll\"", "\"kqueue\"", "line 6", "io-uring-spin"),
        ("[\"poll\"]", "[\"poll\", \"poll\"]", "line 6", "named twice"),
        ("[500]", "[]", "line 4", "at least one interval"),
        (
            "[settings]",
            "[cores]\nbroker = 0\n[settings]",
            "line 5",
            "the roles are exchange, trader",
        ),
        (
            "[settings]",
            "[cores]\ntrader = 999\n[settings]",
            "line 5",
            "not available",
        ),
        (
            "[settings]",
            "[settings]\ngroup = \"10.0.0.1\"",
            "line 6",
            "not a multicast group",
        ),
        (
            "[settings]",
            "[settings]\nlegs = [\"io-uring\"]",
            "line 6",
            "no room for timestamps",
        ),
        (
            "kind = \"quadra\"",
            "kind = \"quodra\"",
            "line 2",
            "the kinds are",
        ),
        (
            "[load]",
            "[load]\nshape = \"one-at-a-time\"",
            "line 4",
            "not measured so",
        ),
        ("[load]", "[laod]", "line 3", "unknown field"),
    ] {
        let file = folder.file("x.toml", good.replace(from, to));
        let output = run(&["lab", "run", file.to_str().unwrap(), "--print"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(place) && said.contains(what) && said.contains("x.toml"),
            "{said}"
        );
    }
    let printed = run(&[
        "lab",
        "run",
        folder.file("x.toml", good).to_str().unwrap(),
        "--print",
    ]);
    assert!(
        text(&printed.stdout).contains("timeout_ms = 1000"),
        "{}",
        text(&printed.stdout)
    );
    // Settings of the kinds that have checks of their own.
    for (scenario, set, what) in [
        ("fix", "settings.traders=[]", "name at least one"),
        ("fix", "settings.cycles=[\"burst\", \"burst\"]", "named twice"),
        ("fix", "settings.sustained_rates=[0]", "messages a second"),
        ("fix", "settings.burst_s=0.0", "seconds"),
        ("fix", "settings.entries=17", "give 1 to 16"),
        ("cep", "load.timeout_ms=60000", "load.timeout_ms"),
        ("cep", "settings.backends=[]", "give one or more"),
        (
            "cep",
            "settings.backends=[\"xdp\"]",
            "wants an interface for each side",
        ),
        (
            "cep",
            "settings.backends=[\"pre-armed\"]",
            "fields at fixed places",
        ),
        ("cep", "run.exchange=\"eth0\"", "is for run.network"),
        ("cep", "run.network=\"given\"", "wants both ends"),
        (
            "gati",
            "settings.backends=[\"xdp+delegated\"]",
            "nothing is ordered here",
        ),
        ("bts", "settings.backends=[\"pre-armed\"]", "cannot be prepared"),
        (
            "bts",
            "settings.backends=[\"xdp\"]",
            "wants an interface for each side",
        ),
        (
            "quadra",
            "settings.backends=[\"xdp\"]",
            "wants an interface for each side",
        ),
        ("bts", "settings.quotes=[15]", "even numbers"),
        ("bts", "load.intervals_us=[500, 1000]", "one interval"),
    ] {
        let output = run(&["lab", "run", scenario, "--set", set, "--print"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{scenario} {set}: {said}");
        assert!(said.contains(what) && said.contains("line"), "{said}");
    }
    let nothing = run(&["lab", "run", "nosuch"]);
    assert_eq!(nothing.status.code(), Some(2));
    let listed = text(&run(&["lab", "list", folder.0.to_str().unwrap()]).stdout);
    assert!(listed.contains("bts") && listed.contains("x.toml"), "{listed}");
}

#[test]
fn quotes_are_matched_by_what_caused_them_and_a_lost_one_fails_the_run() {
    let folder = Folder::new("lab-bts");
    let small = [
        "run.samples=40",
        "run.warm_up=5",
        "run.repetitions=1",
        "settings.quotes=[16, 64]",
    ];
    let (kept, results) = measured(&folder, "bts", &small);
    let cases = cases(&kept);
    assert_eq!(
        cases.len(),
        8,
        "in memory, edits, one thread, three; of 16 and 64 options"
    );
    for case in cases {
        let repetition = &case["repetitions"][0];
        // Where the machine is slow, an answer comes after the next packets, and quotes follow it instead of
        // them: between three threads that have no cores, hardly any packet may have quotes of its own.
        assert!(repetition["counts"]["mass quotes"].as_u64() > Some(0), "{case}");
        if case["name"].to_string().contains("in memory") {
            assert!(repetition["summaries"][0]["count"].as_u64() > Some(0), "{case}");
        }
    }
    let said = std::fs::read_to_string(results.join("report.txt")).expect("a report");
    assert!(
        said.contains("times faster") && said.contains("Published (2017)"),
        "{said}"
    );
    let wrong = [
        "run.samples=20",
        "run.warm_up=2",
        "run.repetitions=1",
        "settings.quotes=[16]",
        "settings.layouts=[]",
        "settings.fault=lose-quote",
    ];
    let (output, _) = lab(&folder, "bts", &wrong);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

/// A browser; without one that is said.
fn browser() -> Option<&'static str> {
    tickwire_testdata::browser::browser("the report in a browser")
}

/// What the page says of itself once it is drawn, written where `--dump-dom` shows it.
const INSPECT: &str = r#"<script>
addEventListener('load', () => {
  const luminance = (text) => {
    const c = text.match(/[\d.]+/g).slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
  };
  const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const style = getComputedStyle(document.body);
  const plots = [...document.querySelectorAll('svg')].map((svg) => {
    const box = svg.getBoundingClientRect();
    const shapes = [...svg.querySelectorAll('polyline,rect,circle,path')].filter((shape) => {
      const b = shape.getBoundingClientRect();
      return b.width + b.height > 0 && b.left >= box.left - 2 && b.right <= box.right + 2 && b.top >= box.top - 2 && b.bottom <= box.bottom + 2;
    });
    const texts = [...svg.querySelectorAll('text')];
    return { label: svg.getAttribute('aria-label'), width: box.width, height: box.height, shapes: shapes.length,
      of: svg.querySelectorAll('polyline,rect,circle,path').length,
      contrast: Math.min(...texts.map((t) => contrast(getComputedStyle(t).fill, getComputedStyle(svg.closest('figure')).backgroundColor))) };
  });
  const said = document.createElement('script');
  said.type = 'application/json'; said.id = 'said';
  said.textContent = JSON.stringify({ plots, loaded: performance.getEntriesByType('resource').map((r) => r.name),
    dark: matchMedia('(prefers-color-scheme: dark)').matches, contrast: contrast(style.color, style.backgroundColor),
    wide: document.documentElement.scrollWidth - innerWidth });
  document.body.append(said);
});
</script>"#;

/// A server for one page, which notes what it is asked for.
fn serve(page: String) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (noted, page) = (Arc::clone(&noted), page.clone());
            // A browser opens connections that it may never use: none of them keeps another waiting, or is a
            // question.
            std::thread::spawn(move || {
                let mut request = vec![0; 4_096];
                let len = stream.read(&mut request).unwrap_or(0);
                if len == 0 {
                    return;
                }
                let line = text(&request[..len]).lines().next().unwrap_or("").to_owned();
                noted.lock().expect("no panic").push(line);
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    page.len()
                );
                let _ = stream
                    .write_all(head.as_bytes())
                    .and_then(|()| stream.write_all(page.as_bytes()));
            });
        }
    });
    (port, asked)
}

/// What the page says of itself in a browser, and what was asked of its server; why not, if a busy machine's
/// browser gave up.
fn render(browser: &str, page: &str, scheme: &str, profile: &Path) -> Result<(String, Vec<String>), String> {
    let (port, asked) = serve(page.to_owned());
    let address = format!("http://127.0.0.1:{port}/report");
    let output = headless(browser, profile, "1100,900", scheme, &address)
        .args(["--virtual-time-budget=3000", "--dump-dom"])
        .output()
        .expect("the browser starts");
    let dom = text(&output.stdout);
    let said = dom
        .split("id=\"said\">")
        .nth(1)
        .and_then(|rest| rest.split("</script>").next());
    let asked = asked.lock().expect("no panic").clone();
    match said {
        Some(said) => Ok((said.to_owned(), asked)),
        None => Err(text(&output.stderr)),
    }
}

#[test]
fn the_page_draws_every_picture_in_a_browser_light_and_dark_and_asks_for_nothing() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("lab-browser");
    let (_, results) = measured(&folder, "selftest", &SMALL);
    let page = std::fs::read_to_string(results.join("report.html")).expect("a page");
    let pictures = page.matches("<svg").count();
    // Percentiles, distribution and histogram of the group; time series and heat map of both cases.
    assert_eq!(pictures, 3 + 2 * 2);
    draws_everything(browser, &folder, &page);
}

#[test]
fn the_page_of_a_portfolio_draws_every_picture_in_a_browser_too() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("risk-browser");
    let example = |name: &str| tickwire_testdata::workspace().join("examples/risk").join(name);
    // The command is of the program beside this one, which the tests of the workspace have built.
    let own = tickwire();
    let product = std::path::Path::new(own.get_program()).with_file_name("tickwire");
    assert!(
        product.is_file(),
        "build {} first: cargo build -p tickwire-app",
        product.display()
    );
    let mut command = Command::new(product);
    command.arg("risk").arg("-c").arg(example("portfolio.toml"));
    for (option, name) in [
        ("--fills", "fills.csv"),
        ("--marks", "marks.csv"),
        ("--quotes", "quotes.csv"),
    ] {
        command.arg(option).arg(example(name));
    }
    command.args(["--format", "html", "--out"]).arg(&folder.0);
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(folder.0.join("risk.html")).expect("a page");
    draws_everything(browser, &folder, &page);
}

/// A page's pictures are drawn whole and readable, light and dark, and nothing is asked for.
fn draws_everything(browser: &str, folder: &Folder, page: &str) {
    let pictures = page.matches("<svg").count();
    let inspected = page.replace("</body>", &format!("{INSPECT}</body>"));
    for (dark, scheme) in [(false, "1"), (true, "0")] {
        let profile = |attempt| folder.0.join(format!("profile-{scheme}-{attempt}"));
        let mut tries = (0..3).map(|attempt| render(browser, &inspected, scheme, &profile(attempt)));
        let (said, asked) = tries
            .find_map(|rendered| {
                rendered
                    .map_err(|why| eprintln!("the page did not load: {why}"))
                    .ok()
            })
            .expect("the page loads, at the third time at the latest");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["dark"], dark, "the browser was asked for this scheme");
        let plots = said["plots"].as_array().expect("a list");
        assert_eq!(plots.len(), pictures);
        for plot in plots {
            let of = |name: &str| plot[name].as_f64().unwrap_or(0.0);
            assert!(
                of("width") > 500.0 && of("height") > 150.0 && of("shapes") > 1.0,
                "{plot}"
            );
            assert_eq!(
                of("shapes"),
                of("of"),
                "a shape of no size or outside of its picture: {plot}"
            );
            assert!(of("contrast") > 3.0, "{plot}");
        }
        assert!(said["contrast"].as_f64() > Some(7.0), "{said}");
        assert!(
            said["wide"].as_f64() <= Some(0.0),
            "the page is wider than its window"
        );
        assert_eq!(
            said["loaded"],
            Value::Array(Vec::new()),
            "the page loaded something"
        );
        // A browser asks for a page's icon by itself; nothing else may be asked for.
        let others = asked
            .iter()
            .filter(|line| !line.contains(" /favicon.ico "))
            .collect::<Vec<_>>();
        assert_eq!(others, ["GET /report HTTP/1.1"]);
    }
}
