//! `tickwire inspect`: what it says of recordings, and the configuration that it writes.

mod common;

use common::{Folder, run, text};
use serde_json::Value;
use tickwire_testdata::workspace;

/// Every example of the simulator with a feed in it, and what `inspect` has to be told about it.
const EXAMPLES: [(&str, &[&str]); 17] = [
    ("arca", &["--venue", "arca"]),
    ("bzx", &[]),
    ("cboe", &[]),
    ("cme", &[]),
    ("cqs", &[]),
    ("daemon", &[]),
    ("demo", &[]),
    ("equities", &[]),
    ("exchange", &[]),
    ("moex", &["--templates", "examples/moex-templates.xml"]),
    ("nasdaq", &[]),
    ("nasdaq-texas", &["--venue", "nasdaq-texas"]),
    ("nyse", &[]),
    ("nyse-american", &["--venue", "american"]),
    ("options", &[]),
    ("uqdf", &[]),
    ("whole-market", &["--templates", "examples/moex-templates.xml"]),
];

fn json(args: &[&str]) -> Value {
    let output = run(args);
    let said = text(&output.stdout);
    serde_json::from_str(&said).unwrap_or_else(|e| panic!("{args:?}: {e}: {said}{}", text(&output.stderr)))
}

/// What books hold, feed by feed, without the names: they are told by hand in one file and by number in the
/// other.
fn books(config: &str, capture: &str) -> Vec<String> {
    let replayed = json(&["replay", "-c", config, capture, "--json"]);
    let feeds = replayed["feeds"].as_array().expect("feeds");
    let one = |feed: &Value| {
        let counters = &feed["counters"];
        format!(
            "{} {} {} messages, {} lost, {} malformed, {} rejected, next {}",
            feed["state"],
            feed["state_hash"],
            counters["messages"],
            counters["messages_lost"],
            counters["malformed"],
            counters["book_rejects"],
            feed["next_sequence_number"]
        )
    };
    let mut all: Vec<String> = feeds.iter().map(one).collect();
    all.sort();
    all
}

#[test]
fn the_configuration_written_for_every_example_gives_the_books_of_its_own() {
    let folder = Folder::new("inspect-examples");
    let mut wrong = Vec::new();
    let own = |name: &str| workspace().join("examples").join(name).display().to_string();
    for (example, words) in EXAMPLES {
        let config = own(&format!("{example}.toml"));
        let capture = folder.0.join(format!("{example}.pcap")).display().to_string();
        let written = folder.0.join(format!("{example}.toml")).display().to_string();
        // Units of four venues that have said nothing but the same beginning cannot be told apart: give each
        // more than that.
        let packets = match example {
            "whole-market" => "20000",
            _ => "3000",
        };
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
        let words = words.iter().map(|word| match word.strip_prefix("examples/") {
            Some(name) => own(name),
            None => word.to_string(),
        });
        let words: Vec<String> = words.collect();
        let mut args = vec!["inspect", &capture, "--json", "--write-config", &written];
        args.extend(words.iter().map(String::as_str));
        let found = json(&args);
        let text = std::fs::read_to_string(&written).unwrap_or_default();
        assert_eq!(found["configuration"], text.as_str(), "{example}");
        let (ours, theirs) = (books(&written, &capture), books(&config, &capture));
        if ours != theirs || theirs.is_empty() {
            wrong.push(format!(
                "{example}:\nwritten {ours:#?}\nits own {theirs:#?}\n{text}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_symbols_rates_and_gaps_of_a_capture_are_told_in_text_and_json() {
    let folder = Folder::new("inspect-capture");
    let config = workspace().join("examples/nasdaq.toml").display().to_string();
    let capture = folder.0.join("day.pcap").display().to_string();
    let made = run(&[
        "exchange",
        "-c",
        &config,
        "--write-capture",
        &capture,
        "--packets",
        "2000",
    ]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let found = json(&["inspect", &capture, "--json"]);
    let replayed = json(&["replay", "-c", &config, &capture, "--json"]);
    let channel = &found["channels"][0];
    for counter in [
        "messages",
        "packets_line_a",
        "packets_line_b",
        "packets_duplicate",
        "gaps",
    ] {
        assert_eq!(
            channel["counters"][counter], replayed["counters"][counter],
            "{counter}: {channel:#}"
        );
    }
    let lines: Vec<_> = channel["destinations"]
        .as_array()
        .expect("destinations")
        .iter()
        .map(|d| format!("{} {} {}", d["port"], d["line"], d["address"]).replace('"', ""))
        .collect();
    assert_eq!(lines, ["live a 239.1.1.1:26400", "live b 239.1.2.1:26400"]);
    assert_eq!(found["rates"]["messages"], channel["counters"]["messages"]);
    let span = |key: &str| found["rates"][key].as_u64().expect("a time");
    assert!(span("last_ns") > span("first_ns"));
    let peak = |key: &str| found["rates"][key]["messages"].as_u64().expect("a number");
    assert!(peak("peak_second") >= peak("peak_millisecond") && peak("peak_millisecond") > 0);
    let events = |s: &Value| s["events"].as_u64().expect("a number");
    let symbols = found["symbols"].as_array().expect("symbols");
    assert!(symbols.windows(2).all(|two| events(&two[0]) >= events(&two[1])) && !symbols.is_empty());
    let told: u64 = symbols.iter().map(events).sum();
    let messages = found["rates"]["messages"].as_u64().expect("a number");
    assert!(
        told <= messages && told * 10 > messages * 5,
        "{told} of {messages}"
    );
    let shown = text(&run(&["inspect", &capture, "--symbols", "3"]).stdout);
    for word in [
        "busiest second",
        "live a 239.1.1.1:26400",
        "symbols, by events",
        "dup packets",
        "--write-config",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    // A daemon reads it too.
    let written = folder.0.join("feeds.toml").display().to_string();
    let done = run(&["inspect", &capture, "--write-config", &written]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let region = folder.0.join("region").display().to_string();
    let played = run(&[
        "feed", "-c", &written, "--folder", &region, "--replay", &capture, "--speed", "max", "--exit",
    ]);
    assert!(
        played.status.success(),
        "{}{}",
        text(&played.stdout),
        text(&played.stderr)
    );
}

#[test]
fn damage_is_named_and_ends_with_code_1() {
    let folder = Folder::new("inspect-damage");
    let config = workspace().join("examples/nasdaq.toml").display().to_string();
    let capture = folder.0.join("day.pcap");
    let made = run(&[
        "exchange",
        "-c",
        &config,
        "--write-capture",
        &capture.display().to_string(),
        "--packets",
        "500",
    ]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let mut bytes = std::fs::read(&capture).expect("the capture");
    bytes.truncate(bytes.len() - 7);
    let cut = folder.0.join("cut.pcap");
    std::fs::write(&cut, bytes).expect("a file");
    let done = run(&["inspect", &cut.display().to_string()]);
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stdout));
    assert!(text(&done.stderr).contains("cut.pcap"), "{}", text(&done.stderr));
    let none = folder.0.join("none");
    let done = run(&["inspect", &none.display().to_string()]);
    assert_eq!(done.status.code(), Some(3), "{}", text(&done.stderr));
    let text_file = folder.file("notes.txt", "nothing of the kind");
    let done = run(&["inspect", &text_file.display().to_string()]);
    assert!(matches!(done.status.code(), Some(1..=3)), "{:?}", done.status);
}
