//! The example on recordings of two venues: in one capture, and in one for each venue, which are played together in order of time.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tickwire_runtime::capture::{CaptureReader, Carried, Frames, LinkType, PcapWriter};

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

fn backtest(captures: &[&Path]) -> Value {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("strategy.toml");
    let mut arguments = vec!["backtest", "--json", "-c", config.to_str().expect("a path of text")];
    arguments.extend(captures.iter().map(|path| path.to_str().expect("a path of text")));
    serde_json::from_slice(&pair(&arguments)).expect("JSON")
}

/// Puts what goes to the port numbers of one feed, which begin at 26,400 and 26,500, into files of their own.
fn apart(both: &Path, files: [&Path; 2]) {
    let mut writers = files.map(|file| PcapWriter::create(file, LinkType::ETHERNET).expect("it can be written"));
    let mut reader = CaptureReader::open(both).expect("a capture");
    let mut frames = Frames::default();
    while let Some(frame) = reader.next_frame(&mut frames).expect("a frame") {
        let Ok(Carried::Udp(udp)) = frame.carried else {
            panic!("the simulator writes datagrams");
        };
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (udp.source, udp.destination) else {
            panic!("IPv4");
        };
        let at = usize::from(to.port() >= 26_500);
        let time = frame.packet.time.expect("a time");
        writers[at].write_udp(time, from, to, udp.payload).expect("written");
    }
    writers.into_iter().for_each(|writer| writer.finish().expect("written"));
}

#[test]
fn it_trades_what_two_venues_differ_by_and_holds_nothing_over_both() {
    let folder = Folder::new("both");
    let both = folder.0.join("both.pcap");
    let file = both.to_str().expect("a path of text");
    pair(&["sample", file, "--feed", "itch50", "--feed", "pitch", "--seconds", "3"]);
    let found = backtest(&[&both]);
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
    // Recorded apart, they are played together: the same run, whichever file is named first.
    let files = ["a.pcap", "b.pcap"].map(|name| folder.0.join(name));
    apart(&both, [&files[0], &files[1]]);
    assert_eq!(backtest(&[&files[0], &files[1]]), found);
    let one = backtest(&[&files[0]]);
    assert_eq!(one["orders"], 0, "nothing crosses on one venue: {one:#}");
}
