//! Recovery of PITCH as transcripts: every file of vectors/scenarios/pitch is played against a unit.
//! `UPDATE=1 cargo test -p tickwire-feed --test all pitch_transcripts` rewrites the answers; read the diff.
//! The form is that of `transcripts.rs`; message `n` is the break of trade `n`. Commands:
//!
//! ```text
//! config KEY=VALUE ...                 a new feed of unit 5; the fields of ArbiterConfig, times in _us
//! a|b|rtx 1-3 5 ...                    datagrams with messages 1 to 3, then 5, on that line or on the gap response group
//! heartbeat a|b NEXT                   a datagram without messages
//! end a|b|rtx N                        a datagram with the end of the session, message N
//! bad a|b|rtx N                        a datagram with message N, a deletion that is too short to name its order
//! bytes a|b|rtx|proxy|spin HEX         bytes as they are
//! proxy connect|login|answer STATUS FIRST COUNT|closed               what the Gap Request Proxy does
//! spin connect|login|image N|answer STATUS N ORDERS|order N ...|finished N|closed   what the Spin server does
//! at TIME                              the clock says so; every timer is called
//! counters                             everything counted so far
//! ```

use crate::common;

use common::transcript::{self, number, parse_config};
use std::fmt::Write;
use tickwire_feed::{
    ArbiterConfig, GapEvent, GapProxy, Line, PitchConfig, PitchDecoder, PitchFeed, PitchLogin, PitchUnit,
    SnapshotState, Spin,
};
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos};
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::pitch::{self, *};

const UNIT: u8 = 5;

struct Player {
    feed: PitchFeed,
    proxy: GapProxy,
    spin: Spin,
    now: Nanos,
    events: Vec<MarketEvent>,
    told: SnapshotState,
}

fn login() -> PitchLogin {
    PitchLogin {
        session_sub_id: Alpha(*b"0001"),
        username: Alpha(*b"WIRE"),
        password: Alpha(*b"SECRET    "),
        ..PitchLogin::default()
    }
}

impl Player {
    fn with(config: ArbiterConfig) -> Player {
        let config = ArbiterConfig {
            session: Some(PitchUnit::session(UNIT)),
            ..config
        };
        Player {
            feed: PitchFeed::new(config, PitchDecoder::new(PitchConfig::default())),
            proxy: GapProxy::new(login()),
            spin: Spin::new(login()),
            now: Nanos(1_000_000),
            events: Vec::new(),
            told: SnapshotState::Idle,
        }
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

    fn proxy(&mut self, words: &[&str]) {
        let bytes = match words {
            ["connect"] => return self.proxy.handle_connected(self.now),
            ["closed"] => return self.proxy.handle_closed(),
            ["login"] => accepted(),
            ["answer", status, first, count] => block(
                0,
                &[GapResponse {
                    unit: UNIT,
                    sequence: (number(first) as u32).into(),
                    count: (number(count) as u16).into(),
                    status: Char(status.as_bytes()[0]),
                    ..GapResponse::BLANK_MESSAGE
                }],
            ),
            _ => panic!("no such proxy command: {words:?}"),
        };
        self.proxy.handle_bytes(self.now, &bytes);
    }

    fn spin(&mut self, words: &[&str]) {
        let sequence = |word: &str| (number(word) as u32).into();
        let bytes = match words {
            ["connect"] => return self.spin.handle_connected(self.now),
            ["closed"] => return self.spin.handle_closed(),
            ["login"] => accepted(),
            ["image", n] => block(
                0,
                &[SpinImageAvailable {
                    sequence: sequence(n),
                    ..SpinImageAvailable::BLANK_MESSAGE
                }],
            ),
            ["answer", status, n, orders] => block(
                0,
                &[SpinResponse {
                    sequence: sequence(n),
                    order_count: sequence(orders),
                    status: Char(status.as_bytes()[0]),
                    ..SpinResponse::BLANK_MESSAGE
                }],
            ),
            ["order", orders @ ..] => {
                let order = |n: &&str| AddOrderShort {
                    order_id: number(n).into(),
                    side: Char(b'B'),
                    qty: 100.into(),
                    symbol: Alpha(*b"WIRE  "),
                    ..AddOrderShort::BLANK_MESSAGE
                };
                block(0, &orders.iter().map(order).collect::<Vec<_>>())
            }
            ["finished", n] => block(
                0,
                &[SpinFinished {
                    sequence: sequence(n),
                    ..SpinFinished::BLANK_MESSAGE
                }],
            ),
            _ => panic!("no such spin command: {words:?}"),
        };
        let events = &mut self.events;
        self.spin
            .handle_bytes(self.now, &bytes, &mut self.feed, &mut |e: &MarketEvent| {
                events.push(*e)
            });
    }

    /// Events, requests, answers, state.
    fn answer(&mut self, out: &mut String) {
        let mut run: Option<(&str, Vec<String>)> = None;
        for event in self.events.drain(..).map(Some).chain([None]) {
            let told = event.map(|e| describe(&e));
            match (&mut run, told) {
                (Some((how, numbers)), Some((now, Some(n)))) if *how == now => {
                    numbers.push(n);
                    continue;
                }
                (_, told) => {
                    if let Some((how, numbers)) = run.take() {
                        writeln!(out, "{how} {}", numbers.join(" ")).unwrap();
                    }
                    match told {
                        Some((how, Some(n))) => run = Some((how, vec![n])),
                        Some((how, None)) => writeln!(out, "{how}").unwrap(),
                        None => {}
                    }
                }
            }
        }
        while let Some(event) = self.proxy.poll_event() {
            match event {
                GapEvent::Answered(m) => writeln!(
                    out,
                    "proxy answers {} to {} +{}",
                    m.status.0 as char,
                    m.sequence.get(),
                    m.count.get()
                ),
                other => writeln!(out, "proxy {other:?}"),
            }
            .unwrap();
        }
        while let Some(range) = self.feed.poll_missing() {
            let asked = self.proxy.ask(range);
            let not = if asked { "" } else { ", but the proxy is not there" };
            writeln!(out, "ask for {} +{}{not}", range.first, range.count).unwrap();
        }
        let mut buffer = [0; 64];
        while let Some(bytes) = self.proxy.poll_transmit(&mut buffer) {
            writeln!(out, "to proxy: {}", show(bytes)).unwrap();
        }
        while let Some(bytes) = self.spin.poll_transmit(&mut buffer) {
            writeln!(out, "to spin: {}", show(bytes)).unwrap();
        }
        if self.told != self.spin.state() {
            self.told = self.spin.state();
            writeln!(out, "snapshot {:?}", self.told).unwrap();
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

/// What a block that is sent holds.
fn show(bytes: &[u8]) -> String {
    match bytes {
        [_, _, 0, 0, 0, 0, 0, 0] => "heartbeat".to_string(),
        bytes => tickwire_testdata::hex(&bytes[8..]),
    }
}

/// What an event says, and its number where several of a kind make up a line.
fn describe(event: &MarketEvent) -> (&'static str, Option<String>) {
    let is_retransmitted = event.flags.has(EventFlags::RETRANSMITTED);
    match event.kind {
        EventKind::TradeBreak if is_retransmitted => ("deliver from rtx", Some(event.seq.to_string())),
        EventKind::TradeBreak => ("deliver", Some(event.seq.to_string())),
        EventKind::Add => ("snapshot order", Some(event.order_id.0.to_string())),
        EventKind::Gap if event.flags.has(EventFlags::UNUSABLE) => ("UNUSABLE", Some(event.seq.to_string())),
        EventKind::Status => ("end of session", Some(event.seq.to_string())),
        EventKind::Gap => ("GAP", Some(format!("{} up to {}", event.seq, event.ref_id))),
        EventKind::Recovered => ("RECOVERED, next", Some(event.seq.to_string())),
        EventKind::Clear => ("CLEAR", None),
        EventKind::Definition => ("definition", None),
        other => panic!("unexpected {other:?}"),
    }
}

fn block<M: Pod>(sequence: u32, messages: &[M]) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut builder = PacketBuilder::new(&mut bytes, UNIT, sequence);
    messages.iter().for_each(|m| assert!(builder.push(m.as_bytes())));
    let length = builder.finish();
    bytes.truncate(length);
    bytes
}

fn accepted() -> Vec<u8> {
    let status = Char(b'A');
    block(
        0,
        &[LoginResponse {
            status,
            ..LoginResponse::BLANK_MESSAGE
        }],
    )
}

impl transcript::Player for Player {
    fn new() -> Player {
        Player::with(parse_config(&[]))
    }

    fn play(&mut self, command: &str, out: &mut String) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words[..] {
            ["config", ref settings @ ..] => *self = Player::with(parse_config(settings)),
            [line @ ("a" | "b" | "rtx"), ref ranges @ ..] => {
                for range in ranges {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    let message = |n: u64| TradeBreak {
                        execution_id: n.into(),
                        ..TradeBreak::BLANK_MESSAGE
                    };
                    let messages: Vec<_> = (number(first)..=number(last)).map(message).collect();
                    self.take(line, &block(number(first) as u32, &messages));
                }
            }
            ["end", line, n] => {
                self.take(line, &block(number(n) as u32, &[EndOfSession::BLANK_MESSAGE]));
            }
            ["bad", line, n] => {
                let cut = b"\x0A\x29\0\0\0\0\x01\0\0\0";
                self.take(line, &block(number(n) as u32, &[*cut]));
            }
            ["bytes", "proxy", hex] => self.proxy.handle_bytes(self.now, &tickwire_testdata::unhex(hex)),
            ["bytes", "spin", hex] => {
                let (bytes, events) = (tickwire_testdata::unhex(hex), &mut self.events);
                self.spin
                    .handle_bytes(self.now, &bytes, &mut self.feed, &mut |e: &MarketEvent| {
                        events.push(*e)
                    });
            }
            ["bytes", line, hex] => self.take(line, &tickwire_testdata::unhex(hex)),
            ["heartbeat", line, next] => {
                let mut bytes = [0; 8];
                pitch::heartbeat(&mut bytes, UNIT, number(next) as u32);
                self.take(line, &bytes);
            }
            ["proxy", ref words @ ..] => self.proxy(words),
            ["spin", ref words @ ..] => self.spin(words),
            ["at", time] => {
                self.now = Nanos(number(time) * 1000);
                let events = &mut self.events;
                self.feed
                    .handle_timeout(self.now, &mut |e: &MarketEvent| events.push(*e));
                self.proxy.handle_timeout(self.now);
                self.spin.handle_timeout(self.now);
            }
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
}

#[test]
fn every_scenario_of_pitch_goes_as_its_transcript_says() {
    transcript::check::<Player>("pitch");
}
