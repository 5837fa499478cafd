//! Recovery of XDP and OpenBook Ultra as transcripts: every file of vectors/scenarios/xdp and
//! vectors/scenarios/openbook is played against a channel.
//! `UPDATE=1 cargo test -p tickwire-feed --test all nyse_transcripts` rewrites the answers; read the diff.
//! The form is that of `transcripts.rs`. Unit `n` is a change of instrument 7: of XDP the cancel of trade
//! `n`, of OpenBook Ultra a packet with its update `n`, one price set to `n` shares. Commands:
//!
//! ```text
//! config KEY=VALUE ...                       a new channel; the fields of ArbiterConfig, times in _us
//! a|b|rtx 1-3 5 ...                          datagrams with units 1 to 3, then 5, on that line or on the retransmission group
//! define a|b SEQ ID ...                      instruments, from unit SEQ on
//! close a|b SEQ ID ...                       they close for the day
//! reset a|b TIME                             the numbers begin anew, said at TIME
//! heartbeat a|b|rtx|refresh NEXT             a datagram without messages
//! refresh NUMBER start|part|end|sole ID@SEQ ...     whole books, each up to SEQ, in one packet; NUMBER % 100 is the link flag
//! torn NUMBER start|part|end|sole ID@SEQ n/m the n-th of m packets of one book
//! mapping NUMBER ID ...                      the answer to a request for mappings
//! connect, closed                            the request server's connection
//! answer accepted|refused CODE|heartbeat|nonsense   what the server says
//! raw a|b|rtx|refresh HEX                    any bytes
//! at TIME                                    the clock says so; every timer is called
//! counters                                   everything counted so far
//! ```

use crate::common;

use common::transcript::{self, number, parse_config};
use std::fmt::Write;
use tickwire_feed::{
    ArbiterConfig, Channel, FeedHandler, Line, NyseChannel, NyseProtocol, OpenBook, OpenBookConfig,
    OpenBookDecoder, RecoveryLimits, RequestConfig, Xdp, XdpConfig, XdpDecoder,
};
use tickwire_market::{EventFlags, EventKind, MarketEvent, Nanos, Port};
use tickwire_wire::layout::Char;
use tickwire_wire::layout::Pod;
use tickwire_wire::openbook::{self, DeltaHead, DeltaPoint, FullHead, FullPoint, RetransFlag};
use tickwire_wire::xdp::{self, DeliveryFlag, nul_padded};

/// A datagram of the refresh group.
#[derive(Clone, Copy)]
struct Refresh<'a> {
    number: u32,
    place: &'a str,
}

/// A book of a refresh: instrument, up to where, which packet of how many.
type Book = (u32, u32, u16, u16);

/// What the two protocols say in different bytes.
trait Wire: NyseProtocol {
    fn decoder() -> Self::Decoder;
    fn units(first: u32, count: u32, again: bool) -> Vec<Vec<u8>>;
    fn define(seq: u32, ids: &[u32]) -> Vec<Vec<u8>>;
    fn close(seq: u32, ids: &[u32]) -> Vec<Vec<u8>>;
    fn reset(time: u32) -> Vec<u8>;
    fn heartbeat(next: u32) -> Vec<u8>;
    fn books(refresh: Refresh<'_>, books: &[Book]) -> Vec<u8>;
    fn mapping(number: u32, ids: &[u32]) -> Vec<u8>;
    fn answer(refusal: Option<u8>) -> Vec<u8>;
}

fn name(id: u32) -> Vec<u8> {
    format!("SYM{id}").into_bytes()
}

fn xdp_packet(flag: DeliveryFlag, seq: u32, sent: Nanos, messages: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![0; xdp::PACKET_SIZE_MAX];
    let mut packet = xdp::PacketBuilder::new(&mut bytes, flag, seq, sent);
    messages.iter().for_each(|m| assert!(packet.push(m)));
    let length = packet.finish();
    bytes.truncate(length);
    bytes
}

fn xdp_mapping(id: u32) -> xdp::SymbolIndexMapping {
    xdp::SymbolIndexMapping {
        symbol_index: id.into(),
        symbol: nul_padded(&name(id)).unwrap(),
        price_scale_code: 6,
        ..xdp::SymbolIndexMapping::NEW
    }
}

fn slices<M: Pod>(messages: &[M]) -> Vec<&[u8]> {
    messages.iter().map(|m| m.as_bytes()).collect()
}

impl Wire for Xdp {
    fn decoder() -> XdpDecoder {
        XdpDecoder::new(XdpConfig {
            instruments_max: 100,
            ..XdpConfig::default()
        })
    }

    fn units(first: u32, count: u32, again: bool) -> Vec<Vec<u8>> {
        let messages: Vec<_> = (first..first + count)
            .map(|n| xdp::TradeCancel {
                symbol_index: 7.into(),
                trade_id: n.into(),
                ..xdp::TradeCancel::NEW
            })
            .collect();
        let flag = match again {
            false => DeliveryFlag::Original,
            true => DeliveryFlag::Retransmission,
        };
        vec![xdp_packet(flag, first, Nanos(1), &slices(&messages))]
    }

    fn define(seq: u32, ids: &[u32]) -> Vec<Vec<u8>> {
        let messages: Vec<_> = ids.iter().map(|id| xdp_mapping(*id)).collect();
        vec![xdp_packet(
            DeliveryFlag::Original,
            seq,
            Nanos(1),
            &slices(&messages),
        )]
    }

    fn close(seq: u32, ids: &[u32]) -> Vec<Vec<u8>> {
        let status = |id: &u32| xdp::SecurityStatus {
            symbol_index: (*id).into(),
            security_status: Char(b'X'),
            ..xdp::SecurityStatus::NEW
        };
        let messages: Vec<_> = ids.iter().map(status).collect();
        vec![xdp_packet(
            DeliveryFlag::Original,
            seq,
            Nanos(1),
            &slices(&messages),
        )]
    }

    fn reset(time: u32) -> Vec<u8> {
        let message = xdp::SequenceNumberReset {
            source_time: time.into(),
            ..xdp::SequenceNumberReset::NEW
        };
        let sent = Nanos(u64::from(time) * Nanos::SECOND);
        xdp_packet(DeliveryFlag::SequenceReset, 1, sent, &[message.as_bytes()])
    }

    fn heartbeat(next: u32) -> Vec<u8> {
        xdp_packet(DeliveryFlag::Heartbeat, next, Nanos(1), &[])
    }

    fn books(refresh: Refresh<'_>, books: &[Book]) -> Vec<u8> {
        let flag = match refresh.place {
            "start" => DeliveryFlag::RefreshStart,
            "part" => DeliveryFlag::RefreshPart,
            "end" => DeliveryFlag::RefreshEnd,
            _ => DeliveryFlag::Refresh,
        };
        let mut messages: Vec<Vec<u8>> = Vec::new();
        for &(id, last, packet, packets) in books {
            if packet == 1 {
                let header = xdp::RefreshHeader {
                    current_refresh_pkt: packet.into(),
                    total_refresh_pkts: packets.into(),
                    last_seq_num: last.into(),
                    ..xdp::RefreshHeader::NEW
                };
                messages.push(header.as_bytes().to_vec());
                messages.push(xdp_mapping(id).as_bytes().to_vec());
            } else {
                let header = xdp::RefreshContinuation {
                    current_refresh_pkt: packet.into(),
                    total_refresh_pkts: packets.into(),
                    ..xdp::RefreshContinuation::NEW
                };
                messages.push(header.as_bytes().to_vec());
            }
            let order = xdp::AddOrderRefresh {
                symbol_index: id.into(),
                order_id: u64::from(id * 10 + u32::from(packet)).into(),
                price: 10_000_000.into(),
                volume: 100.into(),
                side: Char(b'B'),
                ..xdp::AddOrderRefresh::NEW
            };
            messages.push(order.as_bytes().to_vec());
        }
        let messages: Vec<&[u8]> = messages.iter().map(|m| &m[..]).collect();
        xdp_packet(flag, refresh.number, Nanos(1), &messages)
    }

    fn mapping(number: u32, ids: &[u32]) -> Vec<u8> {
        let messages: Vec<_> = ids.iter().map(|id| xdp_mapping(*id)).collect();
        xdp_packet(DeliveryFlag::Refresh, number, Nanos(1), &slices(&messages))
    }

    fn answer(refusal: Option<u8>) -> Vec<u8> {
        let message = xdp::RequestResponse {
            status: Char(refusal.unwrap_or(b'0')),
            ..xdp::RequestResponse::NEW
        };
        xdp_packet(DeliveryFlag::Original, 1, Nanos(1), &[message.as_bytes()])
    }
}

fn openbook_packet(kind: u16, number: u32, flag: RetransFlag, link: u8, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; openbook::PACKET_SIZE_MAX];
    let header = openbook::PacketHeader {
        msg_type: kind.into(),
        seq_num: number.into(),
        send_time: 34_200_000.into(),
        retrans_flag: flag as u8,
        link_flag: link,
        ..openbook::PacketHeader::BLANK
    };
    let mut packet = openbook::PacketBuilder::new(&mut bytes, header);
    messages.iter().for_each(|m| assert!(packet.push(m)));
    let length = packet.finish();
    bytes.truncate(length);
    bytes
}

fn full(id: u32, seq: u32, status: u8, volume: u32) -> Vec<u8> {
    let head = FullHead {
        symbol_index: id.into(),
        symbol_seq_num: seq.into(),
        symbol: nul_padded(&name(id)).unwrap(),
        trading_status: Char(status),
        ..FullHead::BLANK
    };
    let point = FullPoint {
        side: Char(b'B'),
        price_numerator: (volume as i32).into(),
        volume: volume.into(),
        ..FullPoint::BLANK
    };
    let points = if volume > 0 { &[point][..] } else { &[] };
    let mut bytes = vec![0; FullHead::SIZE + size_of_val(points)];
    openbook::encode_full(&mut bytes, &head, points).unwrap();
    bytes
}

fn openbook_mapping(id: &u32) -> Vec<u8> {
    let message = openbook::SymbolIndexMapping {
        symbol: nul_padded(&name(*id)).unwrap(),
        symbol_index: (*id).into(),
        ..openbook::SymbolIndexMapping::BLANK
    };
    message.as_bytes().to_vec()
}

impl Wire for OpenBook {
    fn decoder() -> OpenBookDecoder {
        OpenBookDecoder::new(OpenBookConfig {
            instruments_max: 100,
            ..OpenBookConfig::default()
        })
    }

    fn units(first: u32, count: u32, again: bool) -> Vec<Vec<u8>> {
        let unit = |n: u32| {
            let head = DeltaHead {
                symbol_index: 7.into(),
                source_seq_num: n.into(),
                trading_status: Char(b'O'),
                ..DeltaHead::BLANK
            };
            let point = DeltaPoint {
                side: Char(b'B'),
                price_numerator: 1.into(),
                volume: n.into(),
                ..DeltaPoint::BLANK
            };
            let mut bytes = vec![0; DeltaHead::SIZE + DeltaPoint::SIZE];
            openbook::encode_delta(&mut bytes, &head, &[point]).unwrap();
            let flag = match again {
                false => RetransFlag::Original,
                true => RetransFlag::Retransmitted,
            };
            openbook_packet(DeltaHead::KIND, n, flag, 0, &[bytes])
        };
        (first..first + count).map(unit).collect()
    }

    fn define(seq: u32, ids: &[u32]) -> Vec<Vec<u8>> {
        let messages: Vec<_> = ids.iter().map(|id| full(*id, seq, b'O', 0)).collect();
        vec![openbook_packet(230, seq, RetransFlag::Original, 0, &messages)]
    }

    fn close(seq: u32, ids: &[u32]) -> Vec<Vec<u8>> {
        let messages: Vec<_> = ids.iter().map(|id| full(*id, seq, b'X', 0)).collect();
        vec![openbook_packet(230, seq, RetransFlag::Original, 0, &messages)]
    }

    fn reset(time: u32) -> Vec<u8> {
        let message = openbook::SequenceNumberReset {
            next_seq_number: 2.into(),
        };
        let mut bytes = openbook_packet(1, 1, RetransFlag::Original, 0, &[message.as_bytes().to_vec()]);
        bytes[8..12].copy_from_slice(&(34_200_000 + time * 1000).to_be_bytes());
        bytes
    }

    fn heartbeat(next: u32) -> Vec<u8> {
        openbook_packet(openbook::HEARTBEAT, next, RetransFlag::Original, 0, &[])
    }

    fn books(refresh: Refresh<'_>, books: &[Book]) -> Vec<u8> {
        let flag = match refresh.place {
            "end" | "sole" => RetransFlag::LastRefresh,
            _ => RetransFlag::Refresh,
        };
        let messages: Vec<_> = books
            .iter()
            .map(|&(id, seq, packet, _)| full(id, seq, b'O', id * 10 + u32::from(packet)))
            .collect();
        openbook_packet(230, refresh.number, flag, (refresh.number % 100) as u8, &messages)
    }

    fn mapping(number: u32, ids: &[u32]) -> Vec<u8> {
        let messages: Vec<_> = ids.iter().map(openbook_mapping).collect();
        openbook_packet(35, number, RetransFlag::LastRefresh, 1, &messages)
    }

    fn answer(refusal: Option<u8>) -> Vec<u8> {
        let message = openbook::RequestResponse {
            status: Char(if refusal.is_none() { b'A' } else { b'R' }),
            reject_reason: Char(refusal.unwrap_or(b'0')),
            ..openbook::RequestResponse::BLANK
        };
        openbook_packet(10, 1, RetransFlag::Original, 0, &[message.as_bytes().to_vec()])
    }
}

struct Player<P: Wire> {
    channel: NyseChannel<P>,
    now: Nanos,
    is_connected: bool,
    events: Vec<MarketEvent>,
}

impl<P: Wire> Player<P> {
    fn with(config: ArbiterConfig) -> Player<P> {
        let requests = RequestConfig {
            source_id: b"ME".into(),
            product: 11,
            channel: 1,
            queue: 4,
            refresh_patience_ns: Nanos::MILLI,
            ..RequestConfig::default()
        };
        Player {
            channel: NyseChannel::new(FeedHandler::new(config, P::decoder()), requests),
            now: Nanos(1_000_000),
            is_connected: false,
            events: Vec::new(),
        }
    }

    fn take(&mut self, line: &str, datagram: &[u8]) {
        let (port, line) = match line {
            "a" => (Port::Live, Line::A),
            "b" => (Port::Live, Line::B),
            "rtx" => (Port::Retransmission, Line::A),
            _ => (Port::Snapshot, Line::A),
        };
        let (now, events) = (self.now, &mut self.events);
        let mut sink = |e: &MarketEvent| events.push(*e);
        self.channel.on_datagram(now, port, line, datagram, &mut sink);
    }

    fn server_says(&mut self, bytes: &[u8]) {
        let mut ignore = |_: &MarketEvent| {};
        self.channel.on_bytes(self.now, Port::Replay, bytes, &mut ignore);
    }

    /// Events, requests, state.
    fn answer(&mut self, out: &mut String) {
        let mut run: Option<(&str, Vec<String>)> = None;
        for event in self.events.drain(..).map(Some).chain([None]) {
            let told = event.as_ref().and_then(describe);
            if event.is_some() && told.is_none() {
                continue;
            }
            if let (Some((how, all)), Some((now, text))) = (&mut run, &told)
                && how == now
            {
                all.push(text.clone());
                continue;
            }
            if let Some((how, all)) = run.take() {
                writeln!(out, "{how} {}", all.join(" ")).unwrap();
            }
            run = told.map(|(how, text)| (how, vec![text]));
        }
        let mut buffer = [0; 64];
        while let Some(bytes) = self.channel.poll_transmit(Port::Replay, &mut buffer) {
            writeln!(out, "to server: {}", tickwire_testdata::hex(&bytes[16..])).unwrap();
        }
        let feed = self.channel.feed();
        write!(
            out,
            "{:?}, next {}",
            self.channel.state(),
            self.channel.next_seq()
        )
        .unwrap();
        match (feed.arbiter().missing(), feed.arbiter().held()) {
            (0, 0) => {}
            (missing, held) => write!(out, ", {missing} missing, {held} packets held").unwrap(),
        }
        if let Some(time) = self.channel.poll_timeout().filter(|t| t.0 < Nanos::SECOND) {
            write!(out, ", wakes at {}", time.0 / 1000).unwrap();
        }
        if feed.wants_snapshot() {
            write!(out, ", wants a snapshot").unwrap();
        }
        if self.is_connected && !self.channel.wants_connection(Port::Replay) {
            write!(out, ", hangs up").unwrap();
        }
        if self.channel.refusals() > 0 {
            write!(out, ", {} refused", self.channel.refusals()).unwrap();
        }
        out.push('\n');
    }
}

/// What an event says; several of a kind make up a line.
fn describe(event: &MarketEvent) -> Option<(&'static str, String)> {
    let of = event.instrument.0;
    let snapshot = event.flags.has(EventFlags::SNAPSHOT);
    let again = event.flags.has(EventFlags::RETRANSMITTED);
    Some(match event.kind {
        EventKind::TradeBreak if again => ("deliver from rtx", event.ref_id.to_string()),
        EventKind::TradeBreak => ("deliver", event.ref_id.to_string()),
        EventKind::Level if snapshot => ("snapshot level", format!("{of}: {}", event.qty.0)),
        EventKind::Level if again => ("deliver from rtx", event.qty.0.to_string()),
        EventKind::Level => ("deliver", event.qty.0.to_string()),
        EventKind::Add => ("snapshot order", format!("{of}: {}", event.order_id.0)),
        EventKind::Gap if of > 0 => ("GAP of", of.to_string()),
        EventKind::Gap => ("GAP", format!("{} up to {}", event.seq, event.ref_id)),
        EventKind::Recovered => ("RECOVERED, next", event.seq.to_string()),
        EventKind::Clear => ("CLEAR", of.to_string()),
        EventKind::Definition => ("definition", of.to_string()),
        EventKind::Status if event.code[0] == b'X' => ("closed", of.to_string()),
        EventKind::Status => return None,
        other => panic!("unexpected {other:?}"),
    })
}

fn numbers(words: &[&str]) -> Vec<u32> {
    words.iter().map(|word| number(word) as u32).collect()
}

/// `ID@SEQ`.
fn book(word: &str) -> Book {
    let (id, seq) = word.split_once('@').expect("ID@SEQ");
    (number(id) as u32, number(seq) as u32, 1, 1)
}

/// Answered as the venue answers: all that was asked for.
fn of_nyse(config: ArbiterConfig) -> ArbiterConfig {
    ArbiterConfig {
        recovery: RecoveryLimits {
            deadline_ns: 0,
            backoff_ns: 0,
            backoff_max_ns: 0,
            ..RecoveryLimits::XDP
        },
        ..config
    }
}

impl<P: Wire> transcript::Player for Player<P> {
    fn new() -> Player<P> {
        Player::with(of_nyse(parse_config(&[])))
    }

    fn play(&mut self, command: &str, out: &mut String) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let mut ignore = |_: &MarketEvent| {};
        match words[..] {
            ["config", ref settings @ ..] => *self = Player::with(of_nyse(parse_config(settings))),
            [line @ ("a" | "b" | "rtx"), ref ranges @ ..] => {
                for range in ranges {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    let (first, last) = (number(first) as u32, number(last) as u32);
                    for datagram in P::units(first, last + 1 - first, line == "rtx") {
                        self.take(line, &datagram);
                    }
                }
            }
            [what @ ("define" | "close"), line, seq, ref ids @ ..] => {
                let make = if what == "define" { P::define } else { P::close };
                for datagram in make(number(seq) as u32, &numbers(ids)) {
                    self.take(line, &datagram);
                }
            }
            ["reset", line, time] => self.take(line, &P::reset(number(time) as u32)),
            ["heartbeat", line, next] => self.take(line, &P::heartbeat(number(next) as u32)),
            [what @ ("refresh" | "torn"), n, place, ref books @ ..] => {
                let refresh = Refresh {
                    number: number(n) as u32,
                    place,
                };
                let books: Vec<Book> = match (what, books) {
                    ("torn", [of, parts]) => {
                        let (packet, packets) = parts.split_once('/').expect("n/m");
                        let (id, seq, ..) = book(of);
                        vec![(id, seq, number(packet) as u16, number(packets) as u16)]
                    }
                    (_, books) => books.iter().map(|word| book(word)).collect(),
                };
                self.take("refresh", &P::books(refresh, &books));
            }
            ["mapping", n, ref ids @ ..] => {
                self.take("refresh", &P::mapping(number(n) as u32, &numbers(ids)))
            }
            ["connect"] => {
                self.is_connected = true;
                self.channel.connected(self.now, Port::Replay);
            }
            ["closed"] => {
                self.is_connected = false;
                self.channel.disconnected(self.now, Port::Replay, &mut ignore);
            }
            ["answer", "accepted"] => self.server_says(&P::answer(None)),
            ["answer", "refused", code] => self.server_says(&P::answer(Some(code.as_bytes()[0]))),
            ["answer", "heartbeat"] => self.server_says(&P::heartbeat(1)),
            ["answer", "nonsense"] => self.server_says(&[0; 4]),
            ["raw", line, hex] => self.take(line, &tickwire_testdata::unhex(hex)),
            ["at", time] => {
                self.now = Nanos(number(time) * 1000);
                let events = &mut self.events;
                let mut sink = |e: &MarketEvent| events.push(*e);
                self.channel.handle_timeout(self.now, &mut sink);
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

#[test]
fn every_scenario_of_xdp_goes_as_its_transcript_says() {
    transcript::check::<Player<Xdp>>("xdp");
}

#[test]
fn every_scenario_of_openbook_goes_as_its_transcript_says() {
    transcript::check::<Player<OpenBook>>("openbook");
}
