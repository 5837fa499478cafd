//! Recovery of MDP 3.0 as transcripts: every file of vectors/scenarios/mdp3 is played against a feed by
//! price. `UPDATE=1 cargo test -p tickwire-feed --test all mdp3_transcripts` rewrites the answers; read the
//! diff. The form is that of `transcripts.rs`; each packet holds one entry. Commands:
//!
//! ```text
//! config KEY=VALUE ...                 a new feed; the fields of ArbiterConfig, times in _us
//! a|b PACKET SECURITY RPTSEQ bid|ask new|change|delete LEVEL TICKS QTY
//! beat a|b PACKET ...                  heartbeats
//! snap SECURITY of TOTAL last PACKET rpt RPTSEQ bid|ask TICKS QTY ...       a packet of the snapshot loop
//! replay connect|login|packet N|logout|closed                               what the replay service does
//! at TIME                              the clock says so; the feed's timer is called
//! ```

use crate::common;

use common::transcript::{self, number, parse_config};
use std::fmt::Write;
use tickwire_feed::{
    ArbiterConfig, FeedHandler, Line, LoopState, Mdp3Config, Mdp3Decoder, Mdp3Feed, Mdp3Recovery, Mdp3Replay,
    ReplayConfig, ReplayState,
};
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos};
use tickwire_wire::mdp3::block::NoFields;
use tickwire_wire::mdp3::{self, *};

struct Player {
    feed: Mdp3Feed,
    recovery: Mdp3Recovery,
    replay: Mdp3Replay,
    now: Nanos,
    events: Vec<MarketEvent>,
    /// Every packet made so far, for the replay service.
    packets: Vec<(u64, Vec<u8>)>,
    told: (LoopState, ReplayState),
}

impl Player {
    fn with(config: ArbiterConfig) -> Player {
        let account = ReplayConfig {
            channel: 310,
            username: b"ME".into(),
            password: b"PW".into(),
            patience_ns: 500_000,
        };
        Player {
            feed: FeedHandler::new(
                config,
                Mdp3Decoder::new(Mdp3Config {
                    instruments_max: 8,
                    ..Mdp3Config::default()
                }),
            ),
            recovery: Mdp3Recovery::new(Nanos::SECOND),
            replay: Mdp3Replay::new(account),
            now: Nanos(1_000_000),
            events: Vec::new(),
            packets: Vec::new(),
            told: (LoopState::Idle, ReplayState::Idle),
        }
    }

    fn take(&mut self, line: &str, seq: u64, datagram: Vec<u8>) {
        let line = if line == "a" { Line::A } else { Line::B };
        let events = &mut self.events;
        self.feed
            .on_packet(self.now, line, &datagram, &mut |e: &MarketEvent| events.push(*e));
        self.packets.push((seq, datagram));
    }

    fn replay(&mut self, words: &[&str]) {
        let framed = |packet: &[u8]| {
            let mut bytes = vec![0; packet.len() + 2];
            tcp::frame(packet, &mut bytes).unwrap();
            bytes
        };
        let bytes = match words {
            ["connect"] => return self.replay.handle_connected(self.now),
            ["closed"] => return self.replay.handle_closed(),
            ["login"] => framed(&packet(1, |b| {
                AdminLogin::encode(b, &AdminLoginRoot { heart_bt_int: 30 })
            })),
            ["logout"] => framed(&packet(2, |b| AdminLogout::encode(b, &AdminLogoutRoot::BLANK))),
            ["packet", n] => framed(&packet(number(n) as u32, |b| {
                AdminHeartbeat::encode(b, &NoFields::BLANK)
            })),
            _ => panic!("no such replay command: {words:?}"),
        };
        let events = &mut self.events;
        self.replay
            .handle_bytes(self.now, &bytes, &mut self.feed, &mut |e: &MarketEvent| {
                events.push(*e)
            });
    }

    fn answer(&mut self, out: &mut String) {
        for event in self.events.drain(..) {
            writeln!(out, "{}", describe(&event)).unwrap();
        }
        while let Some(range) = self.feed.poll_missing() {
            let taken = if self.replay.ask(range) {
                ""
            } else {
                ", but replay is busy"
            };
            writeln!(out, "ask for {} +{}{taken}", range.first, range.count).unwrap();
        }
        let mut buffer = [0; tcp::REQUEST_SIZE_MAX];
        while let Some(bytes) = self.replay.poll_transmit(&mut buffer) {
            writeln!(
                out,
                "to replay: {}",
                String::from_utf8_lossy(bytes).replace('\x01', "|")
            )
            .unwrap();
        }
        if self.told.0 != self.recovery.state() {
            writeln!(out, "snapshots {:?}", self.recovery.state()).unwrap();
        }
        if self.told.1 != self.replay.state() {
            writeln!(out, "replay {:?}", self.replay.state()).unwrap();
        }
        self.told = (self.recovery.state(), self.replay.state());
        write!(out, "{:?}, next {}", self.feed.state(), self.feed.next_seq()).unwrap();
        if let Some(first) = self.feed.arbiter().first_held() {
            write!(out, ", held from {first}").unwrap();
        }
        if let Some(time) = self.feed.poll_timeout() {
            write!(out, ", wakes at {}", time.0 / 1000).unwrap();
        }
        if self.feed.wants_snapshot() {
            write!(out, ", wants snapshots").unwrap();
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
                line @ ("a" | "b"),
                seq,
                security,
                rpt,
                side,
                action,
                level,
                ticks,
                qty,
            ] => {
                let entry = BookEntry {
                    rpt_seq: (number(rpt) as u32).into(),
                    level: number(level) as u8,
                    security_id: (number(security) as i32).into(),
                    price: Some(Price9::of(ticks.parse().unwrap())).into(),
                    size: Some((number(qty) as i32).into()).into(),
                    action: action_of(action) as u8,
                    entry_type: side_of(side).into(),
                    ..BookEntry::BLANK
                };
                let root = EventRoot {
                    indicator: indicator::END_OF_EVENT,
                    ..EventRoot::BLANK
                };
                let datagram = packet(number(seq) as u32, |b| mdp3::Book::encode(b, &root, [entry], []));
                self.take(line, number(seq), datagram);
            }
            ["beat", line, ref packets @ ..] => {
                for seq in packets {
                    let datagram = packet(number(seq) as u32, |b| {
                        AdminHeartbeat::encode(b, &NoFields::BLANK)
                    });
                    self.take(line, number(seq), datagram);
                }
            }
            [
                "snap",
                security,
                "of",
                total,
                "last",
                last,
                "rpt",
                rpt,
                ref rows @ ..,
            ] => {
                let root = SnapshotRoot {
                    last_seq_processed: (number(last) as u32).into(),
                    total_reports: (number(total) as u32).into(),
                    security_id: (number(security) as i32).into(),
                    rpt_seq: (number(rpt) as u32).into(),
                    ..SnapshotRoot::BLANK
                };
                let mut levels = [0; 2];
                let entries: Vec<_> = rows
                    .chunks(3)
                    .map(|row| snapshot_entry(row, &mut levels))
                    .collect();
                let datagram = packet(1, |b| Snapshot::encode(b, &root, entries.iter().copied()));
                let events = &mut self.events;
                let sink = &mut |e: &MarketEvent| events.push(*e);
                self.recovery
                    .on_snapshots(self.now, &datagram, &mut self.feed, sink);
            }
            ["replay", ref words @ ..] => self.replay(words),
            ["at", time] => {
                self.now = Nanos(number(time) * 1000);
                let events = &mut self.events;
                self.feed
                    .handle_timeout(self.now, &mut |e: &MarketEvent| events.push(*e));
                self.replay.handle_timeout(self.now);
                self.recovery.handle_timeout(self.now);
            }
            _ => panic!("no such command: {command}"),
        }
        self.answer(out);
    }
}

fn packet(seq: u32, encode: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut bytes = vec![0; 1500];
    let mut builder = PacketBuilder::new(&mut bytes, seq, 0);
    assert!(builder.push(encode));
    let length = builder.finish();
    bytes.truncate(length);
    bytes
}

fn side_of(word: &str) -> EntryType {
    match word {
        "bid" => EntryType::Bid,
        "ask" => EntryType::Offer,
        _ => panic!("no such side: {word}"),
    }
}

fn action_of(word: &str) -> UpdateAction {
    match word {
        "new" => UpdateAction::New,
        "change" => UpdateAction::Change,
        "delete" => UpdateAction::Delete,
        _ => panic!("no such action: {word}"),
    }
}

fn snapshot_entry(row: &[&str], levels: &mut [i8; 2]) -> SnapshotEntry {
    let level = &mut levels[usize::from(row[0] == "ask")];
    *level += 1;
    SnapshotEntry {
        price: Some(Price9::of(row[1].parse().unwrap())).into(),
        size: Some((number(row[2]) as i32).into()).into(),
        level: Some(*level).into(),
        entry_type: side_of(row[0]).into(),
        ..SnapshotEntry::BLANK
    }
}

fn describe(event: &MarketEvent) -> String {
    let whole = event.instrument.0 == 0;
    let how = if event.flags.has(EventFlags::SNAPSHOT) {
        "snapshot "
    } else {
        ""
    };
    match event.kind {
        EventKind::Gap if whole => format!("GAP {} to {}", event.seq, event.ref_id.saturating_sub(1)),
        EventKind::Gap => format!("STALE instrument {}", event.instrument.0),
        EventKind::Recovered if !whole => format!("SOUND instrument {}", event.instrument.0),
        EventKind::Recovered => format!("RECOVERED, next {}", event.seq),
        EventKind::Clear if whole => "CLEAR".to_string(),
        EventKind::Clear => format!("{how}clear {}", event.instrument.0),
        EventKind::Level => {
            format!(
                "{how}level {} {:?} {} x {}",
                event.instrument.0, event.side, event.price, event.qty
            )
        }
        other => panic!("unexpected {other:?}"),
    }
}

#[test]
fn every_scenario_goes_as_its_transcript_says() {
    transcript::check::<Player>("mdp3");
}
