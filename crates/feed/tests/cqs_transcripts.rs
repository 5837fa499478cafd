//! Lines of CQS as transcripts: every file of vectors/scenarios/cqs is played and its answers are compared line by line.
//! `UPDATE=1 cargo test -p tickwire-feed --test cqs_transcripts` rewrites the answers; read the diff. Times are microseconds.
//! Commands:
//!
//! ```text
//! config KEY=VALUE ...       a new feed; see the transcripts of the arbiter
//! a|b|rtx 1-3 5 ...          blocks of one-message quotes 1 to 3, then 5, on that line or retransmitted
//! start|integrity|end a|b N  a control message in a block with that number
//! corrupt a|b 5              a block of quote 5 with one wrong bit
//! connection 5               quote 5 as a recovery connection brings it
//! at TIME                    the clock says so; the feed's timer is called
//! counters                   everything counted so far
//! ```

mod common;

use common::transcript::{self, number, parse_config};
use std::fmt::Write;
use tickwire_feed::{ArbiterConfig, CqsDecoder, CqsFeed, Line, SessionId, SipConfig};
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos, SeqNo};
use tickwire_wire::cqs::{
    BlockBuilder, BlockHeader, Control, ControlType, Feed, LongQuote, Transmission, UnixTime,
};
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::zerocopy::IntoBytes;

struct Player {
    feed: CqsFeed,
    now: Nanos,
    events: Vec<MarketEvent>,
}

impl Player {
    fn with(config: ArbiterConfig) -> Player {
        let config = ArbiterConfig {
            packet_bytes: 1000,
            ..config
        };
        Player {
            feed: CqsFeed::new(config, CqsDecoder::new(&SipConfig::default())),
            now: Nanos(1_000_000),
            events: Vec::new(),
        }
    }

    fn take(&mut self, line: &str, block: &[u8]) {
        let line = match line {
            "a" => Line::A,
            "b" => Line::B,
            _ => Line::Retransmit,
        };
        let events = &mut self.events;
        self.feed
            .on_packet(self.now, line, block, &mut |e: &MarketEvent| events.push(*e));
    }

    /// Events, what to ask for, state.
    fn answer(&mut self, out: &mut String) {
        let mut run = String::new();
        for event in self.events.drain(..) {
            if event.kind == EventKind::Quote {
                assert_eq!(
                    event.seq.0, event.qty.0,
                    "an event carries the number of its message"
                );
                let how = match event.flags.has(EventFlags::RETRANSMITTED) {
                    true => "deliver from rtx",
                    false => "deliver",
                };
                match run.starts_with(&format!("{how}:")) {
                    true => write!(run, " {}", event.seq).unwrap(),
                    false => {
                        flush(&mut run, out);
                        write!(run, "{how}: {}", event.seq).unwrap();
                    }
                }
                continue;
            }
            flush(&mut run, out);
            match event.kind {
                EventKind::Gap => writeln!(out, "GAP {} to {}", event.seq, event.ref_id - 1).unwrap(),
                EventKind::Recovered => writeln!(out, "RECOVERED, next {}", event.seq).unwrap(),
                EventKind::Clear => writeln!(out, "CLEAR").unwrap(),
                EventKind::Status => writeln!(out, "{:?}", event.status).unwrap(),
                other => panic!("unexpected {other:?}"),
            }
        }
        flush(&mut run, out);
        while let Some(range) = self.feed.poll_missing() {
            writeln!(out, "ask for {} +{}", range.first, range.count).unwrap();
        }
        write!(out, "{:?}, next {}", self.feed.state(), self.feed.next_seq()).unwrap();
        match (self.feed.arbiter().missing(), self.feed.arbiter().held()) {
            (0, 0) => {}
            (missing, held) => write!(out, ", {missing} missing, {held} blocks held").unwrap(),
        }
        if let Some(time) = self.feed.poll_timeout() {
            write!(out, ", wakes at {}", time.0 / 1000).unwrap();
        }
        out.push('\n');
    }
}

fn flush(run: &mut String, out: &mut String) {
    if !run.is_empty() {
        writeln!(out, "{run}").unwrap();
        run.clear();
    }
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
                    self.take(line, &quotes(number(first), number(last), line == "rtx"));
                }
            }
            [word @ ("start" | "integrity" | "end"), line, seq] => {
                let control = match word {
                    "start" => ControlType::StartOfDay,
                    "integrity" => ControlType::LineIntegrity,
                    _ => ControlType::EndOfDay,
                };
                let message = Control::new(control, time());
                self.take(
                    line,
                    &block(number(seq), Transmission::Original, &[message.as_bytes()]),
                );
            }
            ["corrupt", line, n] => {
                let mut wrong = quotes(number(n), number(n), false);
                wrong[50] ^= 1;
                self.take(line, &wrong);
            }
            ["connection", n] => {
                let (n, events) = (number(n), &mut self.events);
                self.feed.on_recovered_message(
                    self.now,
                    SessionId::NONE,
                    SeqNo(n),
                    quote(n).as_bytes(),
                    &mut |e: &MarketEvent| events.push(*e),
                );
            }
            ["at", time] => {
                self.now = Nanos(number(time) * 1000);
                let events = &mut self.events;
                self.feed
                    .handle_timeout(self.now, &mut |e: &MarketEvent| events.push(*e));
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

fn time() -> UnixTime {
    UnixTime::from_nanos(1_775_535_399_000_000_001)
}

/// Quote `n` bids for `n` shares, so that an event tells its number twice.
fn quote(n: u64) -> LongQuote {
    LongQuote {
        symbol: Alpha::new(b"WIRE").unwrap(),
        condition: Char(b'R'),
        bid_size: (n as u32).into(),
        national_bbo: Char(b'A'),
        ..LongQuote::at(b'N', time())
    }
}

fn quotes(first: u64, last: u64, again: bool) -> Vec<u8> {
    let messages: Vec<LongQuote> = (first..=last).map(quote).collect();
    let bytes: Vec<&[u8]> = messages.iter().map(IntoBytes::as_bytes).collect();
    let transmission = match again {
        true => Transmission::Retransmitted,
        false => Transmission::Original,
    };
    block(first, transmission, &bytes)
}

fn block(seq: u64, transmission: Transmission, messages: &[&[u8]]) -> Vec<u8> {
    let header = BlockHeader {
        transmission: transmission.into(),
        ..BlockHeader::at(Feed::Quotes, seq as u32, time())
    };
    let mut buffer = vec![0; 1000];
    let mut builder = BlockBuilder::new(&mut buffer, header);
    messages
        .iter()
        .for_each(|message| assert!(builder.push(&[message])));
    let size = builder.finish();
    buffer.truncate(size);
    buffer
}

#[test]
fn every_scenario_goes_as_its_transcript_says() {
    transcript::check::<Player>("cqs");
}
