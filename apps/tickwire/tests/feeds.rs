//! Every feed end to end: simulator → two bad lines on loopback → recovery → books equal; and the same
//! session as a capture.

mod common;

use common::{Folder, run, text};

/// Every protocol that the simulator publishes.
const FEEDS: [&str; 8] = [
    "itch50", "pitch", "xdp", "openbook", "cqs", "uqdf", "mdp3", "moex",
];

/// Two processes, real multicast, 1 % loss, duplication and reordering on both lines; the trader must end
/// with the exchange's books and every order accounted for, which is what exit code 0 says.
#[test]
fn every_feed_survives_bad_lines() {
    for feed in FEEDS {
        let folder = Folder::new(&format!("bad-lines-{feed}"));
        let output = run(&[
            "demo",
            "--feed",
            feed,
            "--seconds",
            "2",
            "--rate",
            "8000",
            "--symbols",
            "40",
            "--loss",
            "0.01",
            "--duplicate",
            "0.01",
            "--reorder",
            "0.01",
            "--dir",
            folder.0.to_str().unwrap(),
        ]);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{feed}: {said}");
        assert!(said.contains("books: equal"), "{feed}: {said}");
    }
}

/// A session written as a capture decodes without an error and replays to complete books.
#[test]
fn every_feed_can_be_written_as_a_capture_decoded_and_replayed() {
    for feed in FEEDS {
        let folder = Folder::new(&format!("capture-{feed}"));
        let printed = run(&["config", "--feed", feed]);
        assert!(printed.status.success(), "{feed}: {}", text(&printed.stderr));
        let shorter = text(&printed.stdout)
            .replace("duration_s = 15.0", "duration_s = 0.5")
            .replace("symbols = 200", "symbols = 20");
        let config = folder.file("feed.toml", shorter);
        let capture = folder.0.join("session.pcap");
        let (config, capture) = (config.to_str().unwrap(), capture.to_str().unwrap());
        let written = run(&["exchange", "-c", config, "--write-capture", capture]);
        assert!(written.status.success(), "{feed}: {}", text(&written.stderr));
        let decoded = run(&["decode", "-c", config, capture]);
        assert!(decoded.status.success(), "{feed}: {}", text(&decoded.stderr));
        let replayed = run(&["replay", "-c", config, capture, "--json"]);
        assert!(replayed.status.success(), "{feed}: {}", text(&replayed.stderr));
        let result: serde_json::Value = serde_json::from_str(&text(&replayed.stdout)).expect("JSON");
        assert_eq!(result["state"], "Ended", "{feed}: {result:#}");
        assert_eq!(result["counters"]["malformed"], 0, "{feed}");
        assert_eq!(result["counters"]["book_rejects"], 0, "{feed}");
    }
}
