//! Recovery of the Moscow Exchange's order log as transcripts: every file of vectors/scenarios/moex is played
//! against a channel. `UPDATE=1 cargo test -p tickwire-feed --test all moex_transcripts` rewrites the
//! answers; read the diff. The form is that of `transcripts.rs`; each packet of the log holds one entry.
//! Commands:
//!
//! ```text
//! config KEY=VALUE ...                 a new channel; the fields of ArbiterConfig, times in _us
//! a|b|lost PACKET SYMBOL RPTSEQ new|change|delete ORDER bid|ask PRICE QTY
//!                                      lost: on both lines, so that only the replay service has it
//! beat a|b|lost PACKET ...             heartbeats
//! raw a|b HEX                          a datagram of the log as it is
//! snap a|b NUMBER SYMBOL last PACKET rpt RPTSEQ only|first|middle|final [ORDER bid|ask PRICE QTY ...]
//!                                      a packet of the snapshot loop; without orders: the book is empty
//! defined NUMBER of TOTAL SYMBOL CODE  a packet of the definition loop, with the SecurityTradingStatus
//! status SYMBOL CODE                   a change of status
//! replay connect|logon|packet N|logout REASON|heartbeat|closed|raw HEX      what the replay service does
//! at TIME                              the clock says so; the channel's timer is called
//! ```

use crate::common;
use crate::moex_common;

use common::transcript::{self, number, parse_config};
use moex_common::{Venue, order, ours};
use std::fmt::Write;
use tickwire_feed::{
    ArbiterConfig, Channel, Line, MoexChannel, MoexChannelConfig, MoexConfig, MoexReplayConfig,
    MoexReplayState,
};
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos, OrderId, Port, Side};
use tickwire_testdata::unhex;
use tickwire_wire::moex::{
    Action, Board, Definition, MessageKind, OrderEntry, OrderKind, SnapshotHeader, Status, replay,
};

struct Player {
    channel: MoexChannel,
    venue: Venue,
    now: Nanos,
    events: Vec<MarketEvent>,
    /// Every packet made so far, for the replay service.
    packets: Vec<(u64, Vec<u8>)>,
    replay: MoexReplayState,
}

impl Player {
    fn with(arbiter: ArbiterConfig) -> Player {
        let config = MoexChannelConfig {
            arbiter,
            decoder: MoexConfig {
                instruments_max: 8,
                ..MoexConfig::new(ours())
            },
            replay: MoexReplayConfig {
                sender: b"ME".into(),
                patience_ns: 500_000,
                ..MoexReplayConfig::default()
            },
        };
        Player {
            channel: MoexChannel::new(config).unwrap(),
            venue: Venue::new(ours(), ""),
            now: Nanos(1_000_000),
            events: Vec::new(),
            packets: Vec::new(),
            replay: MoexReplayState::Idle,
        }
    }

    fn take(&mut self, port: Port, line: &str, datagram: &[u8]) {
        let line = if line == "a" { Line::A } else { Line::B };
        let events = &mut self.events;
        self.channel
            .on_datagram(self.now, port, line, datagram, &mut |e: &MarketEvent| {
                events.push(*e)
            });
    }

    fn live(&mut self, line: &str, seq: u64, datagram: Vec<u8>) {
        if line != "lost" {
            self.take(Port::Live, line, &datagram);
        }
        self.packets.push((seq, datagram));
    }

    fn replay(&mut self, words: &[&str]) {
        let events = &mut self.events;
        let mut sink = |e: &MarketEvent| events.push(*e);
        let framed = |mut datagram: Vec<u8>| {
            replay::put_length(&mut datagram);
            datagram
        };
        let bytes = match words {
            ["connect"] => return self.channel.connected(self.now, Port::Replay),
            ["closed"] => return self.channel.disconnected(self.now, Port::Replay, &mut sink),
            ["logon"] => self.venue.session(MessageKind::Logon, 1, ""),
            ["logout", reason @ ..] => self.venue.session(MessageKind::Logout, 9, &reason.join(" ")),
            ["heartbeat"] => framed(self.venue.heartbeat(2)),
            ["raw", hex] => unhex(hex),
            ["packet", n] => {
                let packet = self.packets.iter().find(|(seq, _)| *seq == number(n));
                framed(packet.expect("a packet made before").1.clone())
            }
            _ => panic!("no such replay command: {words:?}"),
        };
        self.channel.on_bytes(self.now, Port::Replay, &bytes, &mut sink);
    }

    fn answer(&mut self, out: &mut String) {
        for event in self.events.drain(..) {
            writeln!(out, "{}", describe(&event)).unwrap();
        }
        let mut buffer = [0; 400];
        while let Some(bytes) = self.channel.poll_transmit(Port::Replay, &mut buffer) {
            let text = String::from_utf8_lossy(bytes).replace('\x01', "|");
            writeln!(out, "to replay: {text}").unwrap();
        }
        if self.replay != self.channel.replay_state() {
            self.replay = self.channel.replay_state();
            writeln!(out, "replay {:?}", self.replay).unwrap();
        }
        write!(
            out,
            "{:?}, next {}",
            self.channel.state(),
            self.channel.next_seq()
        )
        .unwrap();
        if let Some(first) = self.channel.feed().arbiter().first_held() {
            write!(out, ", held from {first}").unwrap();
        }
        if let Some(time) = self.channel.poll_timeout() {
            write!(out, ", wakes at {}", time.0 / 1000).unwrap();
        }
        if self.channel.feed().wants_snapshot() {
            write!(out, ", wants snapshots").unwrap();
        }
        if self.channel.wants_connection(Port::Replay) {
            write!(out, ", wants replay").unwrap();
        }
        out.push('\n');
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
            [
                line @ ("a" | "b" | "lost"),
                seq,
                symbol,
                rpt,
                action,
                id,
                side,
                price,
                qty,
            ] => {
                let action = match action {
                    "new" => Action::New,
                    "change" => Action::Change,
                    "delete" => Action::Delete,
                    _ => panic!("no such action: {action}"),
                };
                let (rpt, id, qty) = (number(rpt) as u32, number(id), number(qty));
                let entry = order(action, symbol, rpt, id, side_of(side), price, qty);
                let datagram = self.venue.orders(number(seq) as u32, &[entry]);
                self.live(line, number(seq), datagram);
            }
            ["beat", line, ref packets @ ..] => {
                for seq in packets {
                    let datagram = self.venue.heartbeat(number(seq) as u32);
                    self.live(line, number(seq), datagram);
                }
            }
            ["raw", line, hex] => self.take(Port::Live, line, &unhex(hex)),
            [
                "snap",
                line,
                seq,
                symbol,
                "last",
                last,
                "rpt",
                rpt,
                part,
                ref rows @ ..,
            ] => {
                let header = SnapshotHeader {
                    symbol: symbol.as_bytes(),
                    board: b"TQBR",
                    rpt_seq: number(rpt) as u32,
                    last_seq_processed: (last != "none").then(|| number(last) as u32),
                    first_fragment: matches!(part, "only" | "first"),
                    last_fragment: matches!(part, "only" | "final"),
                    session_status: Some(100),
                    trading_status: None,
                    auction: None,
                };
                let mut entries: Vec<OrderEntry<'_>> = rows
                    .chunks(4)
                    .map(|row| {
                        let (id, qty) = (number(row[0]), number(row[3]));
                        order(Action::New, symbol, 0, id, side_of(row[1]), row[2], qty)
                    })
                    .collect();
                if entries.is_empty() {
                    entries.push(OrderEntry {
                        kind: OrderKind::EmptyBook,
                        order_id: OrderId(0),
                        price: None,
                        qty: None,
                        ..order(Action::New, symbol, 0, 0, Side::Bid, "0", 0)
                    });
                }
                let datagram = self.venue.snapshot(number(seq) as u32, &header, &entries);
                self.take(Port::Snapshot, line, &datagram);
            }
            ["defined", seq, "of", total, symbol, code] => {
                let definition = Definition {
                    symbol: symbol.as_bytes(),
                    total_reports: Some(number(total) as u32),
                    min_price_increment: Some("0.01".parse().unwrap()),
                    ..Definition::default()
                };
                let board = Board {
                    board: b"TQBR",
                    session: b"N",
                    trading_status: Some(number(code) as i32),
                    round_lot: Some(1),
                };
                let datagram = self.venue.definition(number(seq) as u32, &definition, &[board]);
                self.take(Port::Definitions, "a", &datagram);
            }
            ["status", symbol, code] => {
                let status = Status {
                    symbol: symbol.as_bytes(),
                    board: b"TQBR",
                    trading_status: Some(number(code) as i32),
                    ..Status::default()
                };
                let datagram = self.venue.status(MessageKind::SecurityStatus, 1, &status);
                self.take(Port::Definitions, "a", &datagram);
            }
            ["replay", ref words @ ..] => self.replay(words),
            ["at", time] => {
                self.now = Nanos(number(time) * 1000);
                let events = &mut self.events;
                self.channel
                    .handle_timeout(self.now, &mut |e: &MarketEvent| events.push(*e));
            }
            _ => panic!("no such command: {command}"),
        }
        self.answer(out);
    }
}

fn side_of(word: &str) -> Side {
    match word {
        "bid" => Side::Bid,
        "ask" => Side::Ask,
        _ => panic!("no such side: {word}"),
    }
}

fn describe(event: &MarketEvent) -> String {
    let whole = event.instrument.0 == 0;
    let how = if event.flags.has(EventFlags::SNAPSHOT) {
        "snapshot "
    } else {
        ""
    };
    let order = || format!("{} order {}", event.instrument.0, event.order_id.0);
    match event.kind {
        EventKind::Gap if whole => format!("GAP {} to {}", event.seq, event.ref_id.saturating_sub(1)),
        EventKind::Gap => format!("STALE instrument {}", event.instrument.0),
        EventKind::Recovered => format!("RECOVERED, next {}", event.seq),
        EventKind::Clear if whole => "CLEAR".to_string(),
        EventKind::Clear => format!("{how}clear {}", event.instrument.0),
        EventKind::Definition => format!("definition {}", event.instrument.0),
        EventKind::Status => format!("status {} {:?}", event.instrument.0, event.status),
        EventKind::Delete => format!("delete {}", order()),
        EventKind::Add | EventKind::Modify => {
            let kind = if event.kind == EventKind::Add {
                "add"
            } else {
                "modify"
            };
            let (side, price, qty) = (event.side, event.price, event.qty);
            format!("{how}{kind} {} {side:?} {price} x {qty}", order())
        }
        other => panic!("unexpected {other:?}"),
    }
}

#[test]
fn every_scenario_goes_as_its_transcript_says() {
    transcript::check::<Player>("moex");
}
