//! What every player of transcripts shares: the form of the files, the comparison, the settings of the
//! arbiter.

use std::fmt::Write;
use tickwire_feed::{ArbiterConfig, RecoveryLimits, Start};

/// What a venue's transcripts are played against.
pub trait Player {
    fn new() -> Self;

    /// Obeys one command and appends what came of it, in whole lines.
    fn play(&mut self, command: &str, out: &mut String);
}

/// Plays every file of `vectors/scenarios` or of a folder below it, and compares line by line.
pub fn check<P: Player>(folder: &str) {
    let dir = tickwire_testdata::workspace()
        .join("vectors/scenarios")
        .join(folder);
    let update = std::env::var_os("UPDATE").is_some();
    for path in tickwire_testdata::files(&dir, "txt") {
        let written = std::fs::read_to_string(&path).unwrap();
        let played = replay::<P>(&written);
        if update {
            std::fs::write(&path, &played).unwrap();
        }
        for (at, (expected, got)) in written.lines().zip(played.lines()).enumerate() {
            assert!(
                update || expected == got,
                "{}:{}\nexpected: {expected}\n     got: {got}",
                path.display(),
                at + 1
            );
        }
        assert!(
            update || written == played,
            "{}: lengths differ; UPDATE=1 rewrites",
            path.display()
        );
    }
}

/// The transcript with the answers given now.
fn replay<P: Player>(transcript: &str) -> String {
    let mut player = P::new();
    let (mut out, mut answers, mut answering) = (String::new(), String::new(), false);
    for line in transcript.lines().chain([""]) {
        if line == "----" {
            answering = true;
            writeln!(out, "----\n{}", answers.trim_end()).unwrap();
            answers.clear();
        } else if line.is_empty() {
            if !out.ends_with("\n\n") && !out.is_empty() {
                out.push('\n');
            }
            answering = false;
        } else if !answering {
            writeln!(out, "{line}").unwrap();
            if !line.starts_with('#') {
                writeln!(answers, "> {line}").unwrap();
                player.play(line, &mut answers);
            }
        }
    }
    format!("{}\n", out.trim_end())
}

pub fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("not a number: {word}"))
}

/// Small values unless set, so that a transcript shows every limit it meets.
pub fn parse_config(settings: &[&str]) -> ArbiterConfig {
    let mut config = ArbiterConfig {
        buffer_packets: 8,
        packet_bytes: 256,
        gaps: 8,
        line_wait_ns: 100_000,
        request_messages: 10,
        request_timeout_ns: 1_000_000,
        request_attempts: 2,
        request_gap_max: 1000,
        confirm_packets: 4,
        recovery: RecoveryLimits {
            deadline_ns: 0,
            backoff_ns: 0,
            backoff_max_ns: 0,
            ..RecoveryLimits::MOLDUDP64
        },
        ..ArbiterConfig::default()
    };
    for setting in settings {
        let (key, value) = setting.split_once('=').expect("KEY=VALUE");
        let n = value.parse().unwrap_or(0);
        match key {
            "start" => {
                config.start = match value {
                    "beginning" => Start::Beginning,
                    "snapshot" => Start::Snapshot,
                    "here" => Start::Here,
                    _ => panic!("start={value}"),
                }
            }
            "snapshot" => config.snapshot = value == "true",
            "buffer_packets" => config.buffer_packets = n as u16,
            "gaps" => config.gaps = n as u16,
            "line_wait_us" => config.line_wait_ns = n * 1000,
            "request_messages" => config.request_messages = n as u16,
            "request_timeout_us" => config.request_timeout_ns = n * 1000,
            "request_attempts" => config.request_attempts = n as u8,
            "request_interval_us" => config.request_interval_ns = n * 1000,
            "request_gap_max" => config.request_gap_max = n,
            "jump_max" => config.jump_max = n,
            "confirm_packets" => config.confirm_packets = n as u32,
            "session_quiet_us" => config.session_quiet_ns = n * 1000,
            _ => panic!("no such setting: {key}"),
        }
    }
    config
}
