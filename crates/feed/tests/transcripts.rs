//! Arbitration and recovery as transcripts: every file of vectors/scenarios is played against a feed and its answers are
//! compared line by line. `UPDATE=1 cargo test -p tickwire-feed --test transcripts` rewrites the answers; read the diff.
//!
//! A file is a sequence of blocks: commands, `----`, each command with its answer, an empty line. Lines with `#` explain. Times are
//! microseconds. Commands:
//!
//! ```text
//! config KEY=VALUE ...       a new feed; the fields of ArbiterConfig, times in _us, start=beginning|snapshot|here
//! session NAME               the session of the datagrams from here on
//! a|b|rtx 1-3 5 ...          datagrams with messages 1 to 3, then 5, on that line or from the retransmission server
//! heartbeat|end a|b NEXT     a datagram without messages
//! cut a|b 5                  a datagram with message 5 that is one byte short
//! at TIME                    the clock says so; the feed's timer is called
//! glimpse connect|login|order N ...|end N|close       what the snapshot server does
//! counters                   everything counted so far
//! ```

mod common;

use std::fmt::Write;
use tickwire_feed::{ArbiterConfig, Glimpse, ItchFeed, Line, SnapshotState, SoupConfig, Start};
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos};
use tickwire_wire::itch50::{AddOrder, EndOfSnapshot};
use tickwire_wire::layout::Char;
use tickwire_wire::soupbintcp::{LoginAccepted, Packet};
use tickwire_wire::zerocopy::IntoBytes;

struct Player {
    feed: ItchFeed,
    glimpse: Glimpse,
    snapshot: SnapshotState,
    session: [u8; 10],
    now: Nanos,
    events: Vec<MarketEvent>,
}

impl Player {
    fn new(config: ArbiterConfig) -> Player {
        Player {
            feed: common::feed(config),
            glimpse: Glimpse::new(SoupConfig::default()),
            snapshot: SnapshotState::Idle,
            session: common::SESSION,
            now: Nanos(1_000_000),
            events: Vec::new(),
        }
    }

    fn play(&mut self, command: &str, out: &mut String) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            ["config", ref settings @ ..] => *self = Player::new(parse_config(settings)),
            ["session", name] => {
                self.session = *format!("{name:<10}").as_bytes().first_chunk().unwrap();
                return;
            }
            [line @ ("a" | "b" | "rtx"), ref ranges @ ..] => {
                for range in ranges {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    self.take(line, &common::packet(self.session, number(first), number(last)));
                }
            }
            ["heartbeat", line, next] => self.take(line, &common::heartbeat(self.session, number(next))),
            ["end", line, next] => self.take(line, &common::end_of_session(self.session, number(next))),
            ["cut", line, n] => {
                let whole = common::packet(self.session, number(n), number(n));
                self.take(line, &whole[..whole.len() - 1]);
            }
            ["at", time] => {
                self.now = Nanos(number(time) * 1000);
                let events = &mut self.events;
                self.feed
                    .handle_timeout(self.now, &mut |e: &MarketEvent| events.push(*e));
                self.glimpse.handle_timeout(self.now);
            }
            ["glimpse", ref words @ ..] => self.glimpse(words, out),
            ["counters"] => {
                for (counter, n) in self.feed.counters().iter().filter(|(_, n)| *n > 0) {
                    writeln!(out, "{} {n}", counter.spec().id).unwrap();
                }
                return;
            }
            _ => panic!("no such command: {command}"),
        }
        self.answer(out);
    }

    fn take(&mut self, line: &str, datagram: &[u8]) {
        let line = match line {
            "a" => Line::A,
            "b" => Line::B,
            _ => Line::Retransmit,
        };
        let events = &mut self.events;
        self.feed
            .on_packet(self.now, line, datagram, &mut |e: &MarketEvent| events.push(*e));
    }

    fn glimpse(&mut self, words: &[&str], out: &mut String) {
        let mut buffer = [0; 128];
        match words {
            ["connect"] => self.glimpse.handle_connected(self.now),
            ["close"] => self.glimpse.handle_closed(),
            ["login"] => self.stream(Packet::LoginAccepted(&LoginAccepted::new(b"GLIMPSE", 1).unwrap())),
            ["order", orders @ ..] => {
                for n in orders {
                    let add = AddOrder {
                        order_ref: number(n).into(),
                        side: Char(b'B'),
                        shares: 100.into(),
                        ..AddOrder::at(1, 0)
                    };
                    self.stream(Packet::Sequenced(add.as_bytes()));
                }
            }
            ["end", next] => self.stream(Packet::Sequenced(EndOfSnapshot::at(number(next)).as_bytes())),
            _ => panic!("no such snapshot command: {words:?}"),
        }
        while let Some(bytes) = self.glimpse.poll_transmit(&mut buffer) {
            writeln!(out, "to glimpse: {}", bytes[2..].escape_ascii()).unwrap();
        }
    }

    fn stream(&mut self, packet: Packet<'_>) {
        let mut bytes = [0; 128];
        let len = packet.encode(&mut bytes).unwrap();
        let events = &mut self.events;
        self.glimpse
            .handle_bytes(self.now, &bytes[..len], &mut self.feed, &mut |e: &MarketEvent| {
                events.push(*e)
            });
    }

    /// Events, requests, state.
    fn answer(&mut self, out: &mut String) {
        let mut run: Option<(&str, Vec<u64>)> = None;
        for event in self.events.drain(..).map(Some).chain([None]) {
            let how = event
                .filter(common::delivered)
                .map(|e| match e.flags.has(EventFlags::RETRANSMITTED) {
                    true => "deliver from rtx",
                    false => "deliver",
                });
            match (&mut run, how) {
                (Some((kind, numbers)), Some(how)) if *kind == how => {
                    numbers.extend(event.map(|e| e.seq.0));
                    continue;
                }
                _ => {}
            }
            if let Some((kind, numbers)) = run.take() {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                writeln!(out, "{kind} {}", numbers.join(" ")).unwrap();
            }
            match (event, how) {
                (Some(event), Some(how)) => run = Some((how, vec![event.seq.0])),
                (Some(event), None) => writeln!(out, "{}", describe(&event)).unwrap(),
                (None, _) => {}
            }
        }
        let mut buffer = [0; 64];
        while let Some(bytes) = self.feed.poll_transmit(&mut buffer) {
            let request = tickwire_wire::moldudp64::Request::parse(bytes).unwrap();
            let session = String::from_utf8_lossy(&request.session).trim_end().to_string();
            writeln!(out, "request {} +{} of {session}", request.seq, request.count).unwrap();
        }
        if self.snapshot != self.glimpse.state() {
            self.snapshot = self.glimpse.state();
            writeln!(out, "snapshot {:?}", self.snapshot).unwrap();
        }
        write!(out, "{:?}, next {}", self.feed.state(), self.feed.next_seq()).unwrap();
        match (self.feed.arbiter().missing(), self.feed.arbiter().held()) {
            (0, 0) => {}
            (missing, held) => write!(out, ", {missing} missing, {held} packets held").unwrap(),
        }
        if let Some(time) = self.feed.poll_timeout() {
            write!(out, ", wakes at {}", time.0 / 1000).unwrap();
        }
        if self.feed.wants_snapshot() {
            write!(out, ", wants a snapshot").unwrap();
        }
        out.push('\n');
    }
}

fn describe(event: &MarketEvent) -> String {
    match event.kind {
        EventKind::Gap => format!(
            "GAP {} to {}",
            event.seq,
            event.ref_id - u64::from(event.ref_id > event.seq.0)
        ),
        EventKind::Recovered => format!("RECOVERED, next {}", event.seq),
        EventKind::Clear => "CLEAR".to_string(),
        EventKind::Add => format!("snapshot order {}", event.order_id.0),
        other => panic!("unexpected {other:?}"),
    }
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("not a number: {word}"))
}

/// Small values unless set, so that a transcript shows every limit it meets.
fn parse_config(settings: &[&str]) -> ArbiterConfig {
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

#[test]
fn every_scenario_goes_as_its_transcript_says() {
    let dir = tickwire_testdata::workspace().join("vectors/scenarios");
    let update = std::env::var_os("UPDATE").is_some();
    for path in tickwire_testdata::files(&dir, "txt") {
        let written = std::fs::read_to_string(&path).unwrap();
        let played = replay(&written);
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
fn replay(transcript: &str) -> String {
    let mut player = Player::new(parse_config(&[]));
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
