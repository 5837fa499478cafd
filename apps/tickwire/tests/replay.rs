//! `replay`: with and without a configuration it gives the same books, whatever the simulator wrote.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use common::{Folder, run, text};
use serde_json::Value;
use tickwire_testdata::workspace;

/// Every protocol that the simulator publishes.
const FEEDS: [&str; 8] = [
    "itch50", "pitch", "xdp", "openbook", "cqs", "uqdf", "mdp3", "moex",
];

/// The result of a replay that shows every book whole.
fn replay(capture: &Path, more: &[&str]) -> (Option<i32>, Value, String) {
    let shown = ["--json", "--book", "all", "--levels", "1000"];
    let args = ["replay", capture.to_str().unwrap()];
    let output = run(&[&args[..], &shown, more].concat());
    let result = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), result, text(&output.stderr))
}

/// Every book that is not empty, by feed: in the order of their contents, because feeds found out have names of their own.
fn books(result: &Value) -> BTreeSet<String> {
    let feeds = result["feeds"].as_array().expect("feeds");
    let of_feed = |feed: &Value| {
        let books = feed["books"].as_object().expect("books");
        let is_full = |book: &Value| ["bids", "asks"].iter().any(|side| book[side][0].is_object());
        let full = books.iter().filter(|(_, book)| is_full(book));
        let full: BTreeMap<_, _> = full.collect();
        (!full.is_empty()).then(|| serde_json::to_string(&full).unwrap())
    };
    feeds.iter().filter_map(of_feed).collect()
}

/// Counted over all feeds.
fn sum(result: &Value, counter: &str) -> u64 {
    let feeds = result["feeds"].as_array().expect("feeds");
    feeds
        .iter()
        .filter_map(|feed| feed["counters"][counter].as_u64())
        .sum()
}

/// Bytes of room that the books of all feeds were given: slots of orders in both tables, levels, books.
fn room(result: &Value) -> u64 {
    let feeds = result["feeds"].as_array().expect("feeds");
    let of = |feed: &Value, key: &str| feed["room"][key].as_u64().expect("room");
    feeds
        .iter()
        .map(|feed| of(feed, "orders") * 90 + of(feed, "levels") * 24 + of(feed, "instruments") * 64)
        .sum()
}

/// Plays a capture both ways and compares what comes out.
fn compare(name: &str, config: &Path, capture: &Path, more: &[&str]) -> (Value, Value) {
    let (code, with, said) = replay(capture, &["-c", config.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{name} with a configuration: {said}");
    let (code, without, said) = replay(capture, more);
    assert_eq!(code, Some(0), "{name} without a configuration: {said}");
    let (expected, found) = (books(&with), books(&without));
    assert!(!expected.is_empty(), "{name}: no book has an order");
    assert!(
        expected == found,
        "{name}: books differ, {} against {} feeds with books\n{:#}",
        expected.len(),
        found.len(),
        without["feeds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| format!("{} {} {}", f["name"], f["state"], f["destinations"]))
            .collect::<Vec<_>>()
            .join("\n")
    );
    for counter in ["book_rejects", "malformed", "messages_lost"] {
        assert_eq!(sum(&with, counter), sum(&without, counter), "{name}: {counter}");
    }
    assert!(
        room(&without) * 2 <= room(&with) * 3,
        "{name}: room for {} bytes, with a configuration {}",
        room(&without),
        room(&with)
    );
    (with, without)
}

/// What a replay without a configuration has to be told of: the templates of MOEX.
fn templates(config: &str) -> Vec<String> {
    let file = workspace().join("examples/moex-templates.xml");
    match config.contains("moex") {
        true => vec!["--templates".into(), file.to_str().unwrap().into()],
        false => Vec::new(),
    }
}

/// Writes a capture of a configuration.
fn write(config: &Path, capture: &Path, packets: &str) {
    let (config, capture) = (config.to_str().unwrap(), capture.to_str().unwrap());
    let written = run(&[
        "exchange",
        "-c",
        config,
        "--write-capture",
        capture,
        "--packets",
        packets,
    ]);
    assert!(written.status.success(), "{config}: {}", text(&written.stderr));
}

#[test]
fn every_example_of_the_simulator_gives_the_same_books_without_its_configuration() {
    let folder = Folder::new("examples");
    let mut examples: Vec<PathBuf> = std::fs::read_dir(workspace().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    examples.sort();
    assert!(examples.len() >= 17, "{examples:?}");
    for config in examples {
        let name = config.file_stem().unwrap().to_str().unwrap();
        let capture = folder.0.join(format!("{name}.pcap"));
        write(&config, &capture, "3000");
        let told = templates(&std::fs::read_to_string(&config).unwrap());
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        compare(name, &config, &capture, &told);
        std::fs::remove_file(&capture).unwrap();
    }
}

#[test]
fn bad_lines_are_told_to_be_two_lines_of_one_channel_for_every_feed() {
    for feed in FEEDS {
        let folder = Folder::new(&format!("bad-{feed}"));
        let printed = text(&run(&["config", "--feed", feed]).stdout);
        let bad = printed
            .replace("symbols = 200", "symbols = 20")
            .replace("\nloss = 0.0", "\nloss = 0.02")
            .replace("\nduplicate = 0.0", "\nduplicate = 0.01")
            .replace("\nreorder = 0.0", "\nreorder = 0.01");
        assert_ne!(bad, printed);
        let config = folder.file("feed.toml", &bad);
        let capture = folder.0.join("session.pcap");
        write(&config, &capture, "6000");
        let told = templates(feed);
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        let (_, without) = compare(feed, &config, &capture, &told);
        let [only] = &without["feeds"].as_array().unwrap()[..] else {
            panic!("{feed}: {} feeds", without["feeds"].as_array().unwrap().len())
        };
        let lines: Vec<_> = only["destinations"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|d| d["port"] == "live")
            .map(|d| d["line"].as_str().unwrap())
            .collect();
        assert_eq!(lines, ["a", "b"], "{feed}");
    }
}

/// Two venues number their units alike, and one of them appears late, with a few packets.
#[test]
fn a_venue_that_appears_late_and_seldom_has_its_own_books() {
    let folder = Folder::new("late");
    let early = folder.0.join("early.pcap");
    write(&workspace().join("examples/nasdaq.toml"), &early, "21000");
    let late = folder.0.join("late.pcap");
    write(&workspace().join("examples/bzx.toml"), &late, "600");
    let (_, alone, _) = replay(&late, &[]);
    let (code, both, said) = replay(&early, &[late.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        books(&both).is_superset(&books(&alone)),
        "the late venue's books are missing"
    );
    assert_eq!(both["packets_of_other_feeds"], alone["packets_of_other_feeds"]);
    assert!(sum(&both, "messages") > sum(&alone, "messages"));
}

#[test]
fn what_is_no_recording_is_refused_before_anything_is_printed() {
    let readme = workspace().join("README.md");
    let example = workspace().join("examples/nasdaq.toml");
    for more in [&[][..], &["-c", example.to_str().unwrap()]] {
        let output = run(&[&["replay", readme.to_str().unwrap()][..], more].concat());
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "");
        let said = text(&output.stderr);
        assert!(
            said.contains("README.md is not a") && said.lines().count() == 1,
            "{said}"
        );
    }
}

/// Damage within a packet, and messages that all lines have lost: the reason is the last thing said.
#[test]
fn books_that_are_not_to_be_relied_on_are_an_error() {
    let folder = Folder::new("relied");
    let printed = text(&run(&["config", "--feed", "itch50"]).stdout);
    let lossy = printed
        .replace("symbols = 200", "symbols = 20")
        .replace("\nloss = 0.0", "\nloss = 0.2")
        .replace("answer_requests = 1.0", "answer_requests = 0.0");
    let config = folder.file("lossy.toml", &lossy);
    let capture = folder.0.join("lossy.pcap");
    write(&config, &capture, "3000");
    for more in [&[][..], &["-c", config.to_str().unwrap()]] {
        let output = run(&[&["replay", capture.to_str().unwrap()][..], more].concat());
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        assert!(
            last.contains("not to be relied on") && last.contains("stale at the end"),
            "{said}"
        );
    }
}

#[test]
fn every_ladder_names_its_feed() {
    let folder = Folder::new("ladders");
    let capture = folder.0.join("day.pcap");
    write(&workspace().join("examples/nasdaq-texas.toml"), &capture, "2000");
    let output = run(&["replay", capture.to_str().unwrap(), "--book", "AAPL"]);
    let shown = text(&output.stdout);
    let ladders: Vec<_> = shown.lines().filter(|line| line.starts_with("AAPL ")).collect();
    assert_eq!(ladders.len(), 2, "{shown}");
    assert!(
        ladders.iter().all(|l| l.contains("itch50 239.")) && ladders[0] != ladders[1],
        "{shown}"
    );
}
