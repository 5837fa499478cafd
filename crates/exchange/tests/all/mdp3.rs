//! The servers of an MDP 3.0 channel: TCP replay refuses what it cannot serve and says why; events are cut to
//! packets.

use tickwire_exchange::{
    BreakReason, Engine, EngineConfig, Mdp3Publisher, Mdp3PublisherConfig, Mdp3ReplayConfig, NewOrder,
    Publisher, Tape, listings,
};
use tickwire_market::{InstrumentId, Nanos, Port, Price, Qty, SeqNo, Side, TradingStatus};
use tickwire_wire::mdp3::{self, Body, indicator, tcp};

const START: Nanos = Nanos(1_767_623_400 * Nanos::SECOND);

struct Venue {
    engine: Engine,
    publisher: Mdp3Publisher,
}

impl Venue {
    fn new(packet_max: usize, store_packets: usize) -> Venue {
        let listings = listings(2);
        let mut engine = Engine::new(EngineConfig {
            instruments: 2,
            max_orders: 4000,
            max_levels: 256,
        });
        let config = Mdp3PublisherConfig {
            packet_max,
            store_packets,
            replay: Mdp3ReplayConfig {
                username: b"ME".to_vec(),
                password: b"PW".to_vec(),
                connections: 1,
                ..Mdp3ReplayConfig::default()
            },
            ..Mdp3PublisherConfig::default()
        };
        let mut publisher = Mdp3Publisher::new(config, &listings);
        publisher.open(START);
        for listing in &listings {
            publisher.define(listing);
            let known = engine.set_status(listing.id, TradingStatus::Trading, &mut publisher);
            assert_eq!(known, Ok(()));
        }
        Venue { engine, publisher }
    }

    fn enter(&mut self, side: Side, ticks: i64, qty: u32) {
        let price = Price::from_4dp((1_000_000 + 100 * ticks) as u32);
        let order = NewOrder::limit(InstrumentId(1), side, price, Qty(qty));
        assert!(self.engine.submit(&order, &mut self.publisher).is_ok());
    }

    /// Every live packet not sent yet.
    fn packets(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        while let Some(datagram) = self.publisher.poll_datagram(START) {
            packets.push(datagram.bytes.to_vec());
        }
        packets
    }

    /// Says this on a new connection, in pieces; what the answers are.
    fn ask(&mut self, said: &[u8], piece: usize) -> Vec<String> {
        assert!(self.publisher.connect(Port::Replay, 0, START));
        let mut stream = Vec::new();
        for piece in said.chunks(piece) {
            self.publisher
                .handle_bytes(Port::Replay, 0, START, piece, &self.engine);
            let mut buffer = [0; 97];
            while let Some(bytes) = self.publisher.poll_transmit(Port::Replay, 0, START, &mut buffer) {
                stream.extend_from_slice(bytes);
            }
        }
        let (mut rest, mut answers) = (&stream[..], Vec::new());
        while let Some((packet, used)) = tcp::split(rest).expect("the server frames its packets") {
            rest = &rest[used..];
            answers.push(describe(packet));
        }
        assert!(rest.is_empty());
        answers
    }
}

fn describe(packet: &[u8]) -> String {
    let packet = mdp3::parse_packet(packet).expect("a whole packet");
    let first = packet.messages.clone().next().expect("a message");
    match mdp3::parse(first).expect("a known one").body {
        Body::AdminLogin(_) => "logon".into(),
        Body::AdminLogout(m) => String::from_utf8_lossy(m.root.get().text.trimmed()).into_owned(),
        _ => format!("packet {}", packet.seq),
    }
}

fn logon(username: &[u8], password: &[u8]) -> Vec<u8> {
    let mut buffer = [0; tcp::REQUEST_SIZE_MAX];
    let length = tcp::logon(&mut buffer, username, password).unwrap();
    buffer[..length].to_vec()
}

fn request(channel: u16, first: u32, last: u32) -> Vec<u8> {
    let mut buffer = [0; tcp::REQUEST_SIZE_MAX];
    let length = tcp::market_data_request(&mut buffer, channel, 1, first, last).unwrap();
    [logon(b"ME", b"PW"), buffer[..length].to_vec()].concat()
}

#[test]
fn a_replay_is_served_as_it_was_sent_and_ends_with_a_logout() {
    let mut venue = Venue::new(1400, 1 << 12);
    for n in 0..20 {
        venue.enter(Side::Bid, -n, 5);
        venue.packets();
    }
    for piece in [1, 7, 1000] {
        let said = venue.ask(&request(310, 2, 4), piece);
        assert_eq!(
            said,
            ["logon", "packet 2", "packet 3", "packet 4", "Replay complete"]
        );
        assert!(venue.publisher.wants_close(Port::Replay, 0));
        venue.publisher.disconnect(Port::Replay, 0);
    }
}

#[test]
fn what_cannot_be_served_is_refused_with_a_reason() {
    let mut venue = Venue::new(1400, 16);
    for n in 0..40 {
        venue.enter(Side::Bid, -n, 5);
        venue.packets();
    }
    let last = venue.publisher.next_seq().0 as u32 - 1;
    let again = [logon(b"ME", b"PW"), logon(b"ME", b"PW")].concat();
    for (said, answers) in [
        (logon(b"ME", b"NO"), &["Invalid username or password"][..]),
        (b"9=5\x0135=5\x0110=000\x01".to_vec(), &["Malformed request"]),
        (b"GET / HTTP/1.1\r\n".to_vec(), &["Malformed request"]),
        (again, &["logon", "Request out of order"]),
        (
            request(310, 1, 2)[logon(b"ME", b"PW").len()..].to_vec(),
            &["Request out of order"],
        ),
        (request(311, last, last), &["logon", "Unknown channel"]),
        (request(310, 0, 1), &["logon", "Invalid range"]),
        (request(310, last, last - 1), &["logon", "Invalid range"]),
        (
            request(310, 1, 2001),
            &["logon", "More than 2000 packets requested"],
        ),
        (request(310, last, last + 1), &["logon", "Packets not available"]),
        (request(310, 1, 2), &["logon", "Packets not available"]),
    ] {
        assert_eq!(venue.ask(&said, 11), answers, "{}", said.escape_ascii());
        assert!(venue.publisher.wants_close(Port::Replay, 0));
        // Nothing more is heard.
        venue
            .publisher
            .handle_bytes(Port::Replay, 0, START, &request(310, last, last), &venue.engine);
        assert_eq!(
            venue
                .publisher
                .poll_transmit(Port::Replay, 0, START, &mut [0; 64]),
            None
        );
    }
    assert!(!venue.publisher.connect(Port::Replay, 1, START));
    assert!(!venue.publisher.connect(Port::SnapshotServer, 0, START));
}

#[test]
fn a_client_that_says_nothing_is_hung_up_on() {
    let mut venue = Venue::new(1400, 16);
    assert!(venue.publisher.connect(Port::Replay, 0, START));
    let late = START.after(Mdp3ReplayConfig::default().silence_max_ns);
    venue.publisher.handle_timeout(late, &venue.engine);
    let mut buffer = [0; 512];
    let said = venue
        .publisher
        .poll_transmit(Port::Replay, 0, late, &mut buffer)
        .unwrap();
    assert_eq!(describe(tcp::split(said).unwrap().unwrap().0), "No request");
    assert!(venue.publisher.wants_close(Port::Replay, 0));
}

/// Every message of the packets, with what it says about its event.
fn messages(packets: &[Vec<u8>]) -> Vec<(&'static str, u8)> {
    let mut said = Vec::new();
    for packet in packets {
        for message in mdp3::parse_packet(packet).expect("a whole packet").messages {
            let message = mdp3::parse(message).expect("a known one");
            let indicator = match message.body {
                Body::Book(m) => m.root.get().indicator,
                Body::OrderBook(m) => m.root.get().indicator,
                Body::TradeSummary(m) => {
                    let orders: i32 = m.entries.map(|e| e.orders.get()).sum();
                    assert_eq!(orders as usize, m.orders.len(), "each trade has its orders");
                    m.root.get().indicator
                }
                Body::Volume(m) => m.root.get().indicator,
                _ => continue,
            };
            said.push((message.name(), indicator));
        }
    }
    said
}

#[test]
fn an_event_is_cut_into_messages_and_ends_once() {
    for packet_max in [576, 1400] {
        let mut venue = Venue::new(packet_max, 1 << 12);
        for n in 0..120 {
            venue.enter(Side::Ask, 1 + n % 12, 2);
        }
        venue.packets();
        venue.enter(Side::Bid, 12, 235);
        let packets = venue.packets();
        assert!(packets.iter().all(|packet| packet.len() <= packet_max));
        let said = messages(&packets);
        let last = said.len() - 1;
        for (n, (name, indicator)) in said.iter().enumerate() {
            assert_eq!(indicator & indicator::END_OF_EVENT != 0, n == last, "{said:?}");
            let is_last_trade = said[n + 1..].iter().all(|(other, _)| !other.contains("Trade"));
            if name.contains("Trade") {
                assert_eq!(indicator & indicator::LAST_TRADE != 0, is_last_trade, "{said:?}");
            }
        }
        let names: Vec<_> = said.iter().map(|(name, _)| *name).collect();
        for name in [
            "TradeSummary48",
            "RefreshVolume37",
            "RefreshBook46",
            "RefreshOrderBook47",
        ] {
            assert!(names.iter().any(|n| n.ends_with(name)), "{names:?}");
        }
    }
}

/// What an order takes at one price is one trade: of a broken execution it is changed, of the last one
/// deleted.
#[test]
fn a_broken_execution_is_taken_off_its_trade_and_off_the_volume() {
    let mut venue = Venue::new(1400, 64);
    for (ticks, qty) in [(1, 3), (1, 4), (1, 5), (2, 6)] {
        venue.enter(Side::Ask, ticks, qty);
    }
    venue.enter(Side::Bid, 2, 18);
    venue.packets();
    let mut told = |match_number: u64| {
        let Venue { engine, publisher } = &mut venue;
        assert_eq!(
            engine.break_trade(match_number, BreakReason::Consent, publisher),
            Ok(())
        );
        let mut said = Vec::new();
        for packet in venue.packets() {
            for message in mdp3::parse_packet(&packet).expect("a whole packet").messages {
                match mdp3::parse(message).expect("a known one").body {
                    Body::TradeSummary(m) => said.extend(m.entries.map(|e| {
                        let id = e.trade_entry_id.get().map_or(0, |id| id.get());
                        (
                            m.root.get().indicator,
                            e.action,
                            id,
                            e.size.get(),
                            e.rpt_seq.get(),
                        )
                    })),
                    Body::Volume(m) => said.extend(
                        m.entries
                            .map(|e| (m.root.get().indicator, e.action, 0, e.size.get(), e.rpt_seq.get())),
                    ),
                    other => panic!("the book does not change: {other:?}"),
                }
            }
        }
        said
    };
    let (trade, volume) = (
        indicator::LAST_TRADE,
        indicator::LAST_VOLUME | indicator::END_OF_EVENT,
    );
    let (change, delete) = (mdp3::UpdateAction::Change as u8, mdp3::UpdateAction::Delete as u8);
    let first = told(2);
    let rpt_seq = first[0].4;
    assert_eq!(
        first,
        [
            (trade, change, 1, 8, rpt_seq),
            (volume, change, 0, 14, rpt_seq + 1)
        ]
    );
    assert_eq!(
        told(4),
        [
            (trade, delete, 4, 6, rpt_seq + 2),
            (volume, change, 0, 8, rpt_seq + 3)
        ]
    );
    assert_eq!(
        told(1),
        [
            (trade, change, 1, 5, rpt_seq + 4),
            (volume, change, 0, 5, rpt_seq + 5)
        ]
    );
    assert_eq!(
        told(3),
        [
            (trade, delete, 1, 5, rpt_seq + 6),
            (volume, change, 0, 0, rpt_seq + 7)
        ]
    );
}

#[test]
fn a_silent_channel_sends_heartbeats_with_numbers_and_after_its_end_more_of_them() {
    let mut venue = Venue::new(1400, 64);
    venue.packets();
    let next = venue.publisher.next_seq();
    let later = START.after(Nanos::SECOND);
    let datagram = venue.publisher.poll_datagram(later).expect("a second has passed");
    assert_eq!((datagram.port, datagram.first), (Port::Live, next));
    assert_eq!(datagram.bytes.len(), 22);
    venue.publisher.end(later, 800 * Nanos::MILLI);
    let mut now = later;
    let mut count = 0;
    while !venue.publisher.is_over() {
        now = now.after(10 * Nanos::MILLI);
        count += u64::from(venue.publisher.poll_datagram(now).is_some());
    }
    assert!((6..=9).contains(&count), "{count}");
    assert_eq!(venue.publisher.next_seq(), SeqNo(next.0 + 1 + count));
}
