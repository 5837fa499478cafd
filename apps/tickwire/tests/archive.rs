//! `tickwire archive`: whatever is made of an archive is what is made of its recording; `-` is standard input
//! for whoever reads recordings.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use common::{Folder, run, text, tickwire};
use serde_json::Value;
use tickwire_testdata::workspace;

/// A capture of the simulator for an example, with the troubles that its file asks for.
fn capture(folder: &Folder, example: &str, packets: &str) -> (String, String) {
    let config = workspace()
        .join(format!("examples/{example}.toml"))
        .display()
        .to_string();
    let capture = folder.0.join(format!("{example}.pcap")).display().to_string();
    let made = run(&[
        "exchange",
        "-c",
        &config,
        "--write-capture",
        &capture,
        "--packets",
        packets,
    ]);
    assert!(made.status.success(), "{example}: {}", text(&made.stderr));
    (config, capture)
}

fn archive(args: &[&str]) -> String {
    let out = args.last().expect("the archive").to_string();
    let mut words = vec!["archive"];
    words.extend(&args[..args.len() - 1]);
    words.extend(["--out", &out]);
    let made = run(&words);
    assert!(
        made.status.code().is_some_and(|code| code < 2),
        "{args:?}: {}",
        text(&made.stderr)
    );
    out
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// What a replay says of every feed, but for how much there was to read.
fn feeds(replayed: &Output) -> Vec<String> {
    let json = json(replayed);
    let one = |feed: &Value| {
        let keys = ["name", "state", "state_hash", "next_sequence_number", "counters"];
        keys.map(|key| format!("{key} {}", feed[key])).join("\n")
    };
    let mut all: Vec<String> = json["feeds"].as_array().expect("feeds").iter().map(one).collect();
    all.sort();
    all
}

#[test]
fn replays_inspections_and_exports_of_an_archive_are_those_of_its_capture() {
    let folder = Folder::new("archive-same");
    for (example, by_order) in [
        ("nasdaq", true),
        ("bzx", true),
        ("nyse", true),
        ("cme", false),
        ("cqs", false),
        ("whole-market", true),
    ] {
        let (config, capture) = capture(&folder, example, "2500");
        let events = folder.0.join(format!("{example}.events")).display().to_string();
        let events = archive(&["-c", &config, &capture, &events]);
        let replayed = |args: &[&str]| {
            let mut words = vec!["replay", "--json"];
            words.extend(args);
            run(&words)
        };
        let (of_capture, of_archive) = (replayed(&["-c", &config, &capture]), replayed(&[&events]));
        assert_eq!(of_archive.status.code(), of_capture.status.code(), "{example}");
        assert_eq!(feeds(&of_archive), feeds(&of_capture), "{example}");
        if by_order {
            let csv = |name: &str, args: &[&str]| {
                let out = folder.0.join(name).display().to_string();
                let mut words = vec!["export", "--schema", "mbo", "--out", &out];
                words.extend(args);
                let done = run(&words);
                assert!(
                    done.status.code().is_some_and(|code| code < 2),
                    "{}",
                    text(&done.stderr)
                );
                std::fs::read_to_string(out).expect("rows")
            };
            let rows = csv("capture.csv", &["-c", &config, &capture]);
            assert!(rows.lines().count() > 100, "{example}");
            assert_eq!(csv("archive.csv", &[&events]), rows, "{example}");
        }
        let symbols = |args: &[&str]| {
            let mut words = vec!["inspect", "--json"];
            words.extend(args);
            let json = json(&run(&words));
            let mut all: Vec<String> = json["symbols"]
                .as_array()
                .expect("symbols")
                .iter()
                .map(|s| format!("{} {}", s["symbol"], s["events"]))
                .collect();
            all.sort();
            all
        };
        if !example.starts_with("whole") {
            assert_eq!(symbols(&[&events]), symbols(&[&capture]), "{example}");
        }
    }
}

#[test]
fn a_backtest_on_an_archive_is_the_one_on_its_capture() {
    let folder = Folder::new("archive-backtest");
    let config = folder.file(
        "exchange.toml",
        "[exchange]\nsymbols = 20\nrate = 20000\nduration_s = 1\n",
    );
    let capture = folder.0.join("day.pcap").display().to_string();
    let made = run(&[
        "exchange",
        "-c",
        &config.display().to_string(),
        "--write-capture",
        &capture,
    ]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let events = archive(&[&capture, &folder.0.join("day.events").display().to_string()]);
    let example = |name: &str| {
        workspace()
            .join("examples/strategies")
            .join(name)
            .display()
            .to_string()
    };
    let (file, settings) = (example("imbalance_taker.tw"), example("backtest.toml"));
    let tested = |recording: &str| {
        let words = [
            "strategy", "backtest", &file, "-c", &settings, "--json", recording,
        ];
        let mut value = json(&run(
            &[&words[..], &["--set", "tilt=55", "--set", "wide=100"]].concat()
        ));
        // How long it took.
        let took = value.as_object_mut().expect("an object");
        took.retain(|key, _| !key.contains("took") && !key.contains("second") && !key.contains("rate"));
        value
    };
    let of_capture = tested(&capture);
    assert!(of_capture["orders"].as_u64() > Some(0), "{of_capture:#}");
    assert_eq!(tested(&events), of_capture);
}

#[test]
fn of_an_archive_one_symbol_is_read_and_what_is_damaged_is_said() {
    let folder = Folder::new("archive-parts");
    let (config, capture) = capture(&folder, "nasdaq", "4000");
    let events = archive(&[
        "-c",
        &config,
        &capture,
        &folder.0.join("day.events").display().to_string(),
    ]);
    let found = json(&run(&["inspect", &events, "--json"]));
    let symbol = found["symbols"][0]["symbol"].as_str().expect("a symbol");
    let book = |args: &[&str]| {
        let mut words = vec!["replay", "--json", "--symbol", symbol, "--book", symbol];
        words.extend(args);
        json(&run(&words))["feeds"][0]["books"].clone()
    };
    let whole = book(&["-c", &config, &capture]);
    assert!(
        whole[symbol]["bids"]
            .as_array()
            .is_some_and(|bids| !bids.is_empty()),
        "{whole}"
    );
    assert_eq!(book(&[&events]), whole);
    // An archive that its recording is not to be mixed with, and options that it has no use for.
    let mixed = run(&["replay", &events, &capture]);
    assert_eq!(mixed.status.code(), Some(2), "{}", text(&mixed.stderr));
    assert_eq!(run(&["replay", "-c", &config, &events]).status.code(), Some(2));
    let bytes = std::fs::read(&events).expect("an archive");
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    for (name, bytes, says) in [
        ("changed", &changed[..], "damaged"),
        ("cut", &bytes[..bytes.len() - 100], "cut off"),
        ("short", &bytes[..20], "cut off"),
    ] {
        let path = folder.file(name, bytes).display().to_string();
        let replayed = run(&["replay", &path]);
        let said = text(&replayed.stderr);
        assert_eq!(replayed.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(says) && said.contains(name), "{name}: {said}");
    }
    let records = folder.file("AAPL_2012-06-21_message_10.csv", "34200.1,1,1,100,5853300,1\n");
    let refused = run(&[
        "archive",
        &records.display().to_string(),
        "--out",
        &folder.0.join("no").display().to_string(),
    ]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(!folder.0.join("no").exists());
}

#[test]
fn standard_input_is_read_as_a_file() {
    let folder = Folder::new("archive-input");
    let (_, capture) = capture(&folder, "nasdaq", "2000");
    let events = archive(&[&capture, &folder.0.join("day.events").display().to_string()]);
    let of_input = |words: &[&str], file: &str| {
        let child = tickwire()
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("the program starts");
        let bytes = std::fs::read(file).expect("a file");
        let mut input = child.stdin.take().expect("piped");
        let writing = std::thread::spawn(move || input.write_all(&bytes));
        let output = child.wait_with_output().expect("it ends");
        // Whoever refuses his arguments reads nothing.
        let _ = writing.join().expect("written");
        output
    };
    for file in [&capture, &events] {
        let (piped, named) = (
            of_input(&["inspect", "-", "--json"], file),
            run(&["inspect", file, "--json"]),
        );
        let without_files = |output: &Output| {
            let mut value = json(output);
            assert_ne!(value["files"].take(), Value::Null);
            value
        };
        assert_eq!(without_files(&piped), without_files(&named), "{file}");
    }
    let out = folder.0.join("rows.csv").display().to_string();
    let exported = of_input(&["export", "-", "--out", &out], &capture);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    let cut = folder
        .file("cut", &std::fs::read(&capture).expect("a capture")[..50_000])
        .display()
        .to_string();
    let inspected = of_input(&["inspect", "-"], &cut);
    assert_eq!(inspected.status.code(), Some(1));
    assert!(
        text(&inspected.stderr).contains("standard input is cut off"),
        "{}",
        text(&inspected.stderr)
    );
    let refused = of_input(
        &["export", "-", "--partition", "--format", "csv", "--out", &out],
        &capture,
    );
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(run(&["inspect", "-", "-"]).status.code(), Some(2));
}

#[test]
fn archives_are_played_together_in_order_of_time() {
    let folder = Folder::new("archive-together");
    let captures = ["nasdaq", "bzx"].map(|example| capture(&folder, example, "3000").1);
    let events = |name: &str| folder.0.join(name).display().to_string();
    let both = archive(&[&captures[0], &captures[1], &events("both")]);
    let one = archive(&[&captures[0], &events("one")]);
    let other = archive(&[&captures[1], &events("other")]);
    let replayed = |files: &[&str]| feeds(&run(&[&["replay", "--json"], files].concat()));
    assert_eq!(replayed(&[&one, &other]), replayed(&[&both]));
    // Rows of all in the order in which they happened.
    let rows = |name: &str, files: &[&str]| {
        let out = events(name);
        let words = ["export", "--schema", "cmbp-1", "--out", &out];
        let done = run(&[&words[..], files].concat());
        assert!(
            done.status.code().is_some_and(|code| code < 2),
            "{}",
            text(&done.stderr)
        );
        std::fs::read_to_string(out).expect("rows")
    };
    let of_both = rows("both.csv", &[&both]);
    assert!(of_both.lines().count() > 100);
    assert_eq!(rows("apart.csv", &[&one, &other]), of_both);

    let refused = run(&["replay", &one, &one]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("both have the channel"),
        "{}",
        text(&refused.stderr)
    );
}

/// A file of ITCH messages in which a number is a stock's.
fn directory_of(number: u16, stock: &[u8; 8]) -> Vec<u8> {
    let mut message = vec![b'R'];
    message.extend(number.to_be_bytes());
    message.extend([0; 8]);
    message.extend(stock);
    message.extend(b"QN\0\0\0\x64NCZ PN 1N\0\0\0\0N");
    assert_eq!(message.len(), 39);
    [&39_u16.to_be_bytes()[..], &message].concat()
}

#[test]
fn archives_and_tables_of_days_that_number_stocks_anew_are_refused() {
    let folder = Folder::new("archive-days");
    let day = |name: &str, stock: &[u8; 8]| {
        let path = folder.0.join(name);
        std::fs::write(&path, directory_of(7, stock)).unwrap();
        path.display().to_string()
    };
    let (monday, tuesday) = (day("monday", b"AAPL    "), day("tuesday", b"MSFT    "));
    let place = |name: &str| folder.0.join(name).display().to_string();
    let (events, table, partitions) = (place("days.events"), place("days.csv"), place("days"));
    for words in [
        &["archive", "--out", &events][..],
        &["export", "--schema", "definition", "--out", &table],
        &[
            "export",
            "--schema",
            "definition",
            "--format",
            "csv",
            "--partition",
            "--out",
            &partitions,
        ],
    ] {
        let made = |files: &[&str]| run(&[words, files].concat());
        let done = made(&[&monday, &monday]);
        assert!(done.status.success(), "{words:?}: {}", text(&done.stderr));
        for whole in [&events, &table] {
            let _ = std::fs::remove_file(whole);
        }
        let _ = std::fs::remove_dir_all(&partitions);
        let refused = made(&[&monday, &tuesday]);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{words:?}: {}",
            text(&refused.stderr)
        );
        assert!(
            text(&refused.stderr).contains("instrument 7 was AAPL and is MSFT now"),
            "{words:?}: {}",
            text(&refused.stderr)
        );
        assert!(!Path::new(&events).exists() && !Path::new(&table).exists());
    }
}

#[test]
fn books_of_an_archive_have_room_for_what_its_events_need() {
    let folder = Folder::new("archive-room");
    let (_, capture) = capture(&folder, "nyse", "3000");
    let events = archive(&[&capture, &folder.0.join("day.events").display().to_string()]);
    let room = |file: &str| {
        let replayed = run(&["replay", "--json", file]);
        let sum = |key: &str| -> u64 {
            let feeds = json(&replayed)["feeds"].as_array().expect("feeds").clone();
            feeds.iter().filter_map(|feed| feed["room"][key].as_u64()).sum()
        };
        (["instruments", "orders", "levels"].map(sum), feeds(&replayed))
    };
    let (of_capture, of_archive) = (room(&capture), room(&events));
    assert_eq!(of_archive.1, of_capture.1);
    for (archived, recorded) in of_archive.0.iter().zip(of_capture.0) {
        assert!(
            *archived > 0 && *archived < recorded,
            "{:?} of {:?}",
            of_archive.0,
            of_capture.0
        );
    }
}
