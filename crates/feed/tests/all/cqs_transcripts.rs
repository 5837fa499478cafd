//! Lines of CQS as transcripts: every file of vectors/scenarios/cqs is played and its answers are compared
//! line by line. `UPDATE=1 cargo test -p tickwire-feed --test all cqs_transcripts` rewrites the answers; read
//! the diff. Times are microseconds. Commands:
//!
//! ```text
//! config KEY=VALUE ...       a new feed; see the transcripts of the arbiter
//! a|b|rtx 1-3 5 ...          blocks of one-message quotes 1 to 3, then 5, on that line or retransmitted
//! start|integrity|end a|b N  a control message in a block with that number; `end rtx N` too
//! reset a|b N                the counter goes on at that number
//! old a|b 1-3                the same as `a 1-3`, sent by the SIP before anything else here
//! snapshot a|b first|middle|last|only N COVERED 2 5 ...
//!                            a block of the snapshot stream: its number, the last live number it holds, quotes
//! corrupt a|b 5              a block of quote 5 with one wrong bit
//! connection 5               quote 5 as a recovery connection brings it
//! at TIME                    the clock says so; the feed's timer is called
//! counters                   everything counted so far
//! ```

use crate::common;

use common::transcript::{self, number, parse_config};
use std::fmt::Write;
use tickwire_feed::{ArbiterConfig, Channel, CqsChannel, CqsDecoder, CqsFeed, Line, SessionId, SipConfig};
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos, Port, SeqNo};
use tickwire_wire::cqs::{
    BlockBuilder, BlockHeader, Control, ControlType, Delivery, Feed, Header, LongQuote, ParticipantSnapshot,
    SnapshotHeader, Transmission, UnixTime,
};
use tickwire_wire::layout::Pod;
use tickwire_wire::layout::{Alpha, Char};

struct Player {
    channel: CqsChannel,
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
            channel: CqsChannel::new(CqsFeed::new(config, CqsDecoder::new(&SipConfig::default()))),
            now: Nanos(1_000_000),
            events: Vec::new(),
        }
    }

    fn take(&mut self, line: &str, block: &[u8]) {
        let (port, line) = match line {
            "a" => (Port::Live, Line::A),
            "b" => (Port::Live, Line::B),
            _ => (Port::Retransmission, Line::A),
        };
        self.hear(port, line, block);
    }

    fn hear(&mut self, port: Port, line: Line, block: &[u8]) {
        let events = &mut self.events;
        self.channel
            .on_datagram(self.now, port, line, block, &mut |e: &MarketEvent| {
                events.push(*e)
            });
    }

    /// A block sent now.
    fn block(&self, seq: u64, transmission: Transmission, messages: &[&[u8]]) -> Vec<u8> {
        block(time(self.now), seq, transmission, messages)
    }

    fn control(&self, control: ControlType, seq: u64, transmission: Transmission) -> Vec<u8> {
        let message = Control::new(control, time(self.now));
        self.block(seq, transmission, &[message.as_bytes()])
    }

    /// Events, what to ask for, state.
    fn answer(&mut self, out: &mut String) {
        let mut run = String::new();
        for event in self.events.drain(..) {
            if event.kind == EventKind::Quote {
                let number = event.qty.0;
                if event.flags.has(EventFlags::SNAPSHOT) {
                    flush(&mut run, out);
                    writeln!(out, "snapshot: {number}").unwrap();
                    continue;
                }
                assert_eq!(event.seq.0, number, "an event carries the number of its message");
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
        while let Some(range) = self.channel.feed_mut().poll_missing() {
            writeln!(out, "ask for {} +{}", range.first, range.count).unwrap();
        }
        let feed = self.channel.feed();
        write!(out, "{:?}, next {}", feed.state(), feed.next_seq()).unwrap();
        if feed.wants_snapshot() {
            write!(out, ", wants a snapshot").unwrap();
        }
        match (feed.arbiter().missing(), feed.arbiter().held()) {
            (0, 0) => {}
            (missing, held) => write!(out, ", {missing} missing, {held} blocks held").unwrap(),
        }
        if let Some(time) = feed.poll_timeout() {
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
                    self.take(line, &quotes(time(self.now), range, line == "rtx"));
                }
            }
            ["old", line, ref ranges @ ..] => {
                for range in ranges {
                    self.take(line, &quotes(time(Nanos(0)), range, false));
                }
            }
            [word @ ("start" | "integrity" | "end" | "reset"), line, seq] => {
                let control = match word {
                    "start" => ControlType::StartOfDay,
                    "integrity" => ControlType::LineIntegrity,
                    "reset" => ControlType::ResetSequence,
                    _ => ControlType::EndOfDay,
                };
                let transmission = match line {
                    "rtx" => Transmission::Retransmitted,
                    _ => Transmission::Original,
                };
                self.take(line, &self.control(control, number(seq), transmission));
            }
            ["snapshot", line, delivery, seq, covered, ref numbers @ ..] => {
                let delivery = match delivery {
                    "first" => Delivery::First,
                    "middle" => Delivery::Middle,
                    "last" => Delivery::Last,
                    _ => Delivery::Only,
                };
                let messages: Vec<ParticipantSnapshot> =
                    numbers.iter().map(|n| standing(number(n))).collect();
                let bytes: Vec<&[u8]> = messages.iter().map(Pod::as_bytes).collect();
                let block = snapshot(self.now, delivery, number(seq), number(covered), &bytes);
                self.hear(Port::Snapshot, line_of(line), &block);
            }
            ["corrupt", line, n] => {
                let mut wrong = quotes(time(self.now), n, false);
                wrong[50] ^= 1;
                self.take(line, &wrong);
            }
            ["connection", n] => {
                let (n, events) = (number(n), &mut self.events);
                self.channel.feed_mut().on_recovered_message(
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
                self.channel
                    .handle_timeout(self.now, &mut |e: &MarketEvent| events.push(*e));
            }
            ["counters"] => {
                for (counter, n) in self.channel.counters().iter().filter(|(_, n)| *n > 0) {
                    writeln!(out, "{} {n}", counter.spec().id).unwrap();
                }
                return;
            }
            _ => panic!("no such command: {command}"),
        }
        self.answer(out);
    }
}

fn line_of(line: &str) -> Line {
    if line == "a" { Line::A } else { Line::B }
}

fn time(now: Nanos) -> UnixTime {
    UnixTime::from_nanos(1_775_535_399_000_000_001 + now.0)
}

/// Quote `n` bids for `n` shares, so that an event tells its number twice.
fn quote(n: u64) -> LongQuote {
    LongQuote {
        symbol: Alpha::new(b"WIRE").unwrap(),
        condition: Char(b'R'),
        bid_size: (n as u32).into(),
        national_bbo: Char(b'A'),
        ..LongQuote::at(b'N', time(Nanos(0)))
    }
}

/// The same as it stands.
fn standing(n: u64) -> ParticipantSnapshot {
    let quote = quote(n);
    ParticipantSnapshot {
        symbol: quote.symbol,
        condition: quote.condition,
        bid_size: quote.bid_size,
        ..ParticipantSnapshot::at(quote.header.participant.0)
    }
}

fn quotes(time: UnixTime, range: &str, again: bool) -> Vec<u8> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let messages: Vec<LongQuote> = (number(first)..=number(last)).map(quote).collect();
    let bytes: Vec<&[u8]> = messages.iter().map(Pod::as_bytes).collect();
    let transmission = match again {
        true => Transmission::Retransmitted,
        false => Transmission::Original,
    };
    block(time, number(first), transmission, &bytes)
}

fn block(time: UnixTime, seq: u64, transmission: Transmission, messages: &[&[u8]]) -> Vec<u8> {
    let header = BlockHeader {
        transmission: transmission.into(),
        ..BlockHeader::at(Feed::Quotes, seq as u32, time)
    };
    build(messages, |buffer| BlockBuilder::new(buffer, header))
}

fn snapshot(now: Nanos, delivery: Delivery, seq: u64, covered: u64, messages: &[&[u8]]) -> Vec<u8> {
    let header = SnapshotHeader::at(seq as u32, delivery, covered as u32, 0, time(now));
    build(messages, |buffer| BlockBuilder::new(buffer, header))
}

fn build<H: Header>(messages: &[&[u8]], begin: impl FnOnce(&mut [u8]) -> BlockBuilder<'_, H>) -> Vec<u8> {
    let mut buffer = vec![0; 1000];
    let mut builder = begin(&mut buffer);
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
