//! Recordings through `decode` and `replay`, as a user would: real ones, and a session that the exchange
//! writes.

mod common;

use common::{Folder, run, text};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tickwire_testdata::{captures, file_bytes, files, pcap_payloads, workspace};
use tickwire_wire::moldudp64::{self, Payload};

/// Every line of `decode` as JSON.
fn decoded(path: &std::path::Path) -> Vec<serde_json::Value> {
    let output = run(&["decode", path.to_str().unwrap()]);
    assert!(
        output.status.success(),
        "{}: {}",
        path.display(),
        text(&output.stderr)
    );
    text(&output.stdout)
        .lines()
        .map(|l| serde_json::from_str(l).expect(l))
        .collect()
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq")]
#[test]
fn every_itch_recording_decodes_without_an_error() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for folder in [
        "Nasdaq.Equities.TotalView.Itch.v5.0",
        "Nasdaq.Equities.TotalView.Itch.v5.0.20230822",
    ] {
        for file in files(&captures("packets/Nasdaq").join(folder), "pcap") {
            for message in decoded(&file) {
                assert!(message.get("Error").is_none(), "{message}");
                *counts
                    .entry(message["Message"].as_str().unwrap().to_string())
                    .or_default() += 1;
            }
        }
    }
    println!("{counts:?}");
    assert_eq!(counts.values().sum::<u64>(), 117);
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Nasdaq.Equities.TotalView.Itch.v5.0")]
#[test]
fn the_worked_example_prints_every_field_as_the_specification_names_it() {
    let file =
        captures("packets/Nasdaq/Nasdaq.Equities.TotalView.Itch.v5.0/AddOrderNoMpidAttributionMessage.pcap");
    let messages = decoded(&file);
    let m = messages
        .iter()
        .find(|m| m["SequenceNumber"] == 14_757_721)
        .expect("the worked example");
    for (field, value) in [
        ("Session", serde_json::json!("000010059B")),
        ("Message", "AddOrder".into()),
        ("MessageType", "A".into()),
        ("StockLocate", 5528.into()),
        ("TrackingNumber", 0.into()),
        ("Timestamp", 34_199_999_894_278_u64.into()),
        ("OrderReferenceNumber", 23_508_286.into()),
        ("Shares", 1600.into()),
        ("Stock", "IVOO".into()),
        ("Price", 87.39.into()),
    ] {
        assert_eq!(m[field], value, "{field} in {m}");
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Ise.OrderComboFeed.v1.1")]
#[test]
fn a_recording_of_another_protocol_is_said_to_be_one() {
    // ISE's feeds stand in MoldUDP64 too, and share some letters with ITCH 5.0.
    let file = captures("packets/Nasdaq/Ise.OrderComboFeed.v1.1/ComplexStrategyAuctionMessage.pcap");
    let output = run(&["decode", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("1 packets of no protocol known here: 233.")
            && said.contains("nothing in it is of a protocol that `decode` reads (itch50, pitch"),
        "{said}"
    );
    // Told to be ITCH, every message of it is an error that shows its bytes.
    let output = run(&["decode", file.to_str().unwrap(), "--protocol", "mdp3"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout).contains("\"Error\":"),
        "{}",
        text(&output.stdout)
    );
    assert!(text(&output.stderr).contains("nothing in it is mdp3"));
}

/// A session of some thousand messages that the exchange writes: the capture of its two lines, and its
/// messages in order.
fn session(folder: &Folder) -> (PathBuf, Vec<Vec<u8>>) {
    let pcap = folder.0.join("session.pcap");
    let config = workspace().join("examples/nasdaq.toml");
    let args = ["exchange", "-c", config.to_str().unwrap(), "--write-capture"];
    let output = run(&[&args[..], &[pcap.to_str().unwrap(), "--packets", "3000"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut messages = BTreeMap::new();
    for payload in pcap_payloads(&pcap) {
        let packet = moldudp64::parse(&payload).unwrap();
        if let Payload::Messages(blocks) = packet.payload {
            messages.extend((packet.seq.0..).zip(blocks.map(<[u8]>::to_vec)));
        }
    }
    (pcap, messages.into_values().collect())
}

#[test]
fn decode_limits_and_filters() {
    let folder = Folder::new("limits");
    let (pcap, _) = session(&folder);
    let output = run(&["decode", pcap.to_str().unwrap(), "--type", "D", "--limit", "5"]);
    assert!(output.status.success());
    let out = text(&output.stdout);
    assert_eq!(out.lines().count(), 5);
    assert!(out.lines().all(|l| l.contains("\"MessageType\":\"D\"")), "{out}");
}

/// The generated session comes with the top of every book at its end.
#[tickwire_testdata::recorded_data("captures/books/itch-synthetic")]
#[test]
fn a_replayed_file_ends_with_the_expected_books() {
    let file = captures("books/itch-synthetic/synth120k.itch");
    let output = run(&[
        "replay",
        file.to_str().unwrap(),
        "--json",
        "--book",
        "all",
        "--levels",
        "1000",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["counters"]["messages"], 120_001);
    assert_eq!(result["counters"]["book_rejects"], 0);
    // Locate to symbol, from the file's own directory.
    let mut symbols = BTreeMap::new();
    let bytes = file_bytes(&file);
    for m in tickwire_testdata::framed_messages(&bytes)
        .into_iter()
        .filter(|m| m[0] == b'R')
    {
        let locate = u16::from_be_bytes([m[1], m[2]]);
        symbols.insert(locate.to_string(), text(&m[11..19]).trim_end().to_string());
    }
    let expected = text(&file_bytes(&captures("books/itch-synthetic/expected_books.csv")));
    let mut checked = 0;
    for row in expected
        .lines()
        .filter(|l| l.starts_with(|c: char| c.is_ascii_digit()))
    {
        let [locate, bid, bid_qty, ask, ask_qty, bids, asks, _orders] =
            row.split(',').collect::<Vec<_>>()[..]
        else {
            panic!("{row}")
        };
        let book = &result["books"][&symbols[locate]];
        let best = |side: &str| {
            let level = &book[side][0];
            let price: f64 = level["price"].as_str().map_or(0.0, |p| p.parse().unwrap());
            ((price * 1e4).round() as u64, level["qty"].as_u64().unwrap_or(0))
        };
        assert_eq!(
            best("bids"),
            (bid.parse().unwrap(), bid_qty.parse().unwrap()),
            "{row}"
        );
        assert_eq!(
            best("asks"),
            (ask.parse().unwrap(), ask_qty.parse().unwrap()),
            "{row}"
        );
        let depth = |side: &str| book[side].as_array().unwrap().len().to_string();
        assert_eq!(
            (depth("bids"), depth("asks")),
            (bids.to_string(), asks.to_string()),
            "{row}"
        );
        checked += 1;
    }
    assert_eq!(checked, 300);
}

#[test]
fn the_same_session_in_packets_and_in_a_file_gives_the_same_books() {
    let folder = Folder::new("same");
    let (pcap, messages) = session(&folder);
    let output = run(&["replay", pcap.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let packets: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let framed: Vec<u8> = messages
        .iter()
        .flat_map(|m| [&(m.len() as u16).to_be_bytes()[..], m].concat())
        .collect();
    let file = folder.file("session.itch", framed);
    let output = run(&["replay", file.to_str().unwrap(), "--json"]);
    let file: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(packets["state_hash"], file["state_hash"]);
    assert_eq!(packets["counters"]["messages"], messages.len());
    assert_eq!(file["counters"]["messages"], messages.len());
    assert_eq!(packets["state"], "Live");
}

#[test]
fn a_paced_replay_takes_its_time_and_gives_the_same_books() {
    let folder = Folder::new("paced");
    let (pcap, _) = session(&folder);
    let hash = |args: &[&str]| {
        let mut all = vec!["replay", pcap.to_str().unwrap(), "--json"];
        all.extend(args);
        let output = run(&all);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["state_hash"].clone()
    };
    assert_eq!(hash(&["--speed", "1000"]), hash(&[]));
}

#[test]
fn filtered_symbols_never_reach_the_books() {
    let folder = Folder::new("filtered");
    let (pcap, messages) = session(&folder);
    let output = run(&["replay", pcap.to_str().unwrap(), "--json", "--symbol", "NONE"]);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        result["counters"]["messages_filtered"].as_u64() > Some(messages.len() as u64 * 8 / 10),
        "{}",
        result["counters"]
    );
    assert_eq!(result["counters"]["book_rejects"], 0);
}
