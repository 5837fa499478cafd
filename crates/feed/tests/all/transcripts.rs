//! Arbitration and recovery as transcripts: every file of vectors/scenarios is played against a feed and its
//! answers are compared line by line. `UPDATE=1 cargo test -p tickwire-feed --test all transcripts` rewrites
//! the answers; read the diff.
//!
//! A file is a sequence of blocks: commands, `----`, each command with its answer, an empty line. Lines with
//! `#` explain. Times are microseconds. Commands:
//!
//! ```text
//! config KEY=VALUE ...       a new feed; the fields of ArbiterConfig, times in _us, start=beginning|snapshot|here
//! session NAME               the session of the datagrams from here on
//! a|b|rtx 1-3 5 ...          datagrams with messages 1 to 3, then 5, on that line or from the retransmission server
//! heartbeat|end a|b NEXT     a datagram without messages
//! cut a|b 5                  a datagram with message 5 that is one byte short
//! forged a|b 5               a datagram with message 5 of another content
//! at TIME                    the clock says so; the feed's timer is called
//! glimpse connect|login|order N ...|end N|close       what the snapshot server does
//! counters                   everything counted so far
//! ```

use crate::common;

use common::transcript::{self, number, parse_config};
use std::fmt::Write;
use tickwire_feed::{ArbiterConfig, Glimpse, ItchFeed, Line, SnapshotState, SoupConfig};
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos};
use tickwire_wire::itch50::{AddOrder, EndOfSnapshot};
use tickwire_wire::layout::Char;
use tickwire_wire::layout::Pod;
use tickwire_wire::soupbintcp::{LoginAccepted, Packet};

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
            ["forged", line, n] => {
                let mut forged = common::packet(self.session, number(n), number(n));
                let time = forged.len() - 9; // before the order's number
                forged[time] ^= 1;
                self.take(line, &forged);
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

impl transcript::Player for Player {
    fn new() -> Player {
        Player::new(parse_config(&[]))
    }

    fn play(&mut self, command: &str, out: &mut String) {
        Player::play(self, command, out);
    }
}

#[test]
fn every_scenario_goes_as_its_transcript_says() {
    transcript::check::<Player>("");
}
