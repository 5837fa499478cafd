//! The example on recordings of two venues: in one capture, and in one for each venue, which are played
//! together in order of time.

use std::net::{SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tickwire::config::Config;
use tickwire_market::Nanos;
use tickwire_runtime::capture::{CaptureReader, Carried, Frames, LinkType, PcapWriter};
use tickwire_venues::protocol::Protocol;
use tickwire_venues::values::{DurationS, Symbols};

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tickwire-test-pair-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pair(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_pair")).args(arguments).output();
    let output = output.expect("the example runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {told}");
    output.stdout
}

fn backtest(captures: &[&Path], more: &[&str]) -> Value {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("strategy.toml");
    let mut arguments = vec![
        "backtest",
        "--json",
        "-c",
        config.to_str().expect("a path of text"),
    ];
    arguments.extend(more);
    arguments.extend(captures.iter().map(|path| path.to_str().expect("a path of text")));
    serde_json::from_slice(&pair(&arguments)).expect("JSON")
}

/// A venue's day of its own, recorded.
fn record(folder: &Folder, nth: usize) -> PathBuf {
    let mut config = Config::of_protocols(&[Protocol::Itch50, Protocol::Pitch]);
    config.feed = vec![config.feed.remove(nth)];
    config.exchange.seed = nth as u64 + 1;
    config.exchange.duration_s = DurationS::try_from(3.0).expect("three seconds");
    config.exchange.symbols = Symbols::try_from(20.0).expect("20 symbols");
    let [file, capture] = ["toml", "pcap"].map(|end| folder.0.join(format!("venue-{nth}.{end}")));
    std::fs::write(&file, config.to_toml()).expect("written");
    let text = |path: &Path| path.to_str().expect("a path of text").to_string();
    pair(&["exchange", "-c", &text(&file), "--write-capture", &text(&capture)]);
    capture
}

/// The datagrams of a capture with their times and where they go.
fn datagrams(capture: &Path) -> Vec<(Nanos, SocketAddrV4, Vec<u8>)> {
    let mut reader = CaptureReader::open(capture).expect("a capture");
    let mut frames = Frames::default();
    let mut all = Vec::new();
    while let Some(frame) = reader.next_frame(&mut frames).expect("a frame") {
        let Ok(Carried::Udp(udp)) = frame.carried else {
            panic!("the simulator writes datagrams");
        };
        let SocketAddr::V4(to) = udp.destination else {
            panic!("IPv4");
        };
        all.push((frame.packet.time.expect("a time"), to, udp.payload.to_vec()));
    }
    all
}

#[test]
fn it_trades_what_two_venues_differ_by_and_holds_nothing_over_both() {
    let folder = Folder::new("both");
    let files = [0, 1].map(|nth| record(&folder, nth));
    let found = backtest(&[&files[0], &files[1]], &[]);
    assert!(found["figures"]["pairs"].as_i64() > Some(5), "{found:#}");
    assert!(found["fills"].as_u64() > Some(10), "{found:#}");
    assert_eq!(found["fault"], Value::Null);
    assert_eq!(found["counters"]["reports_unmatched"].as_u64().unwrap_or(0), 0);
    let held: Vec<i64> = found["instruments"]
        .as_array()
        .expect("instruments")
        .iter()
        .map(|i| i["position"].as_i64().expect("a position"))
        .collect();
    assert_eq!(held.len(), 2, "AAPL of both venues: {found:#}");
    assert!(held.iter().all(|held| held.abs() <= 1000), "{found:#}");
    // A leg that was left over in the very end may not be hedged yet.
    assert!(held.iter().sum::<i64>().abs() <= 100, "{found:#}");
    for file in &files {
        let one = backtest(&[file], &[]);
        assert_eq!(one["orders"], 0, "nothing crosses on one venue: {one:#}");
    }
    // In one capture they are the same run.
    let mut all: Vec<_> = files.iter().flat_map(|file| datagrams(file)).collect();
    all.sort_by_key(|(time, ..)| *time);
    let both = folder.0.join("both.pcap");
    let mut writer = PcapWriter::create(&both, LinkType::ETHERNET).expect("it can be written");
    let from = SocketAddrV4::new([127, 0, 0, 1].into(), 20_000);
    for (time, to, payload) in all {
        writer.write_udp(time, from, to, &payload).expect("written");
    }
    writer.finish().expect("written");
    assert_eq!(backtest(&[&both], &[]), found);
}

#[test]
fn a_market_of_two_venues_is_recorded_as_one_and_they_touch_without_an_edge() {
    let folder = Folder::new("market");
    let both = folder.0.join("market.pcap");
    let file = both.to_str().expect("a path of text");
    pair(&[
        "sample",
        file,
        "--feed",
        "itch50",
        "--feed",
        "pitch",
        "--seconds",
        "2",
    ]);
    assert_eq!(
        backtest(&[&both], &[])["orders"],
        0,
        "prices of one market are no cent apart"
    );
    let touched = backtest(&[&both], &["--set", "edge=0"]);
    assert!(touched["figures"]["pairs"].as_i64() > Some(0), "{touched:#}");
    assert_eq!(touched, backtest(&[&both], &["--set", "edge=0"]));
}
