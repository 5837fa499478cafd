//! A PITCH unit as its clients see it: logins, requests and images over connections cut anywhere.

use tickwire_exchange::{
    Engine, EngineConfig, Listing, Milestone, NewOrder, PitchAccount, PitchPublisher, PitchPublisherConfig,
    PitchServiceConfig, Publisher, Tape, UnitConfig, listings,
};
use tickwire_market::{InstrumentId, Nanos, Port, Price, Qty, Side, TradingStatus};
use tickwire_wire::layout::Alpha;
use tickwire_wire::pitch::{self, GapRequest, Login, Message, PacketBuilder, SpinRequest};
use tickwire_wire::zerocopy::IntoBytes;

const MORNING: u64 = 34_200 * Nanos::SECOND;

struct Venue {
    publisher: PitchPublisher,
    engine: Engine,
    now: Nanos,
}

fn second(n: u64) -> Nanos {
    Nanos(n * Nanos::SECOND)
}

/// A unit of instruments 3 and 4 of a venue that has four.
fn venue(account: Option<PitchAccount>) -> Venue {
    let all = listings(4);
    let config = PitchPublisherConfig {
        unit: UnitConfig {
            unit: 5,
            ..UnitConfig::default()
        },
        service: PitchServiceConfig {
            account,
            ..PitchServiceConfig::default()
        },
        order_base: 0,
        ..PitchPublisherConfig::default()
    };
    let mut venue = Venue {
        publisher: PitchPublisher::new(config, &all[2..]),
        engine: Engine::new(EngineConfig {
            instruments: 4,
            max_orders: 4096,
            max_levels: 64,
        }),
        now: second(1),
    };
    venue.publisher.set_time(MORNING);
    venue.publisher.milestone(Milestone::StartOfMessages);
    for listing in &all {
        venue.engine.set_rules(listing.id, listing.rules);
        let status = venue
            .engine
            .set_status(listing.id, TradingStatus::Trading, &mut ());
        status.unwrap();
    }
    venue
}

impl Venue {
    fn enter(&mut self, listing: &Listing, qty: u32) {
        let order = NewOrder::limit(listing.id, Side::Bid, Price::from_4dp(100_000), Qty(qty));
        let ours = listing.id >= InstrumentId(3);
        let entered = match ours {
            true => self.engine.submit(&order, &mut self.publisher),
            false => self.engine.submit(&order, &mut ()),
        };
        entered.unwrap();
    }

    /// Enters orders of both instruments and sends everything.
    fn fill(&mut self, orders: u32) {
        let all = listings(4);
        (0..orders).for_each(|n| self.enter(&all[2 + n as usize % 2], 100 + n));
        while self.publisher.poll_datagram(self.now).is_some() {}
    }

    /// Sends a message on a connection, `cut` bytes at a time; what comes back.
    fn say(&mut self, port: Port, id: usize, message: &[u8], cut: usize) -> Vec<String> {
        let mut block = [0; 64];
        let mut builder = PacketBuilder::new(&mut block, 0, 0);
        assert!(builder.push(message));
        let length = builder.finish();
        for part in block[..length].chunks(cut) {
            self.publisher
                .handle_bytes(port, id, self.now, part, &self.engine);
        }
        self.hear(port, id)
    }

    /// Everything the server sends, by name and fields; heartbeats are `beat`.
    fn hear(&mut self, port: Port, id: usize) -> Vec<String> {
        let (mut stream, mut buffer) = (Vec::new(), [0; 61]);
        while let Some(bytes) = self.publisher.poll_transmit(port, id, self.now, &mut buffer) {
            stream.extend_from_slice(bytes);
        }
        let (mut rest, mut heard) = (&stream[..], Vec::new());
        while let Some((packet, length)) = pitch::split(rest).unwrap() {
            assert_eq!(packet.sequence, 0, "blocks of a connection have no numbers");
            if packet.messages.len() == 0 {
                heard.push("beat".into());
            }
            heard.extend(
                packet
                    .messages
                    .map(|message| tell(pitch::parse(message).unwrap())),
            );
            rest = &rest[length..];
        }
        assert!(rest.is_empty(), "a block is cut off");
        heard
    }

    fn wait(&mut self, until: Nanos) {
        self.now = until;
        self.publisher.handle_timeout(until, &self.engine);
    }

    fn log_in(&mut self, port: Port, id: usize) {
        assert!(self.publisher.connect(port, id, self.now));
        let heard = self.say(port, id, login(b"0001", b"WIRE", b"SECRET    ").as_bytes(), 3);
        assert_eq!(heard[0], "LoginResponse A");
    }
}

fn tell(message: Message<'_>) -> String {
    let mut text = message.name().to_string();
    message.visit(&mut |name, value| {
        if !matches!(name, "Length" | "Type" | "Reserved1" | "Reserved2") {
            text += &format!(" {value}");
        }
    });
    text
}

fn login(session: &[u8; 4], username: &[u8; 4], password: &[u8; 10]) -> Login {
    Login {
        session_sub_id: Alpha(*session),
        username: Alpha(*username),
        password: Alpha(*password),
        ..Login::BLANK_MESSAGE
    }
}

fn gap(unit: u8, sequence: u32, count: u16) -> GapRequest {
    GapRequest {
        unit,
        sequence: sequence.into(),
        count: count.into(),
        ..GapRequest::BLANK_MESSAGE
    }
}

fn spin(sequence: u32) -> SpinRequest {
    SpinRequest {
        sequence: sequence.into(),
        ..SpinRequest::BLANK_MESSAGE
    }
}

const ACCOUNT: PitchAccount = PitchAccount {
    session_sub_id: *b"0001",
    username: *b"WIRE",
    password: *b"SECRET    ",
};

#[test]
fn a_login_is_refused_with_the_reason_and_the_connection_dropped() {
    let refused = [
        (login(b"0002", b"WIRE", b"SECRET    "), "LoginResponse S"),
        (login(b"0001", b"WIRF", b"SECRET    "), "LoginResponse N"),
        (login(b"0001", b"WIRE", b"secret    "), "LoginResponse N"),
    ];
    for port in [Port::Replay, Port::SnapshotServer] {
        let mut venue = venue(Some(ACCOUNT));
        venue.fill(1);
        for (login, answer) in refused {
            for cut in 1..30 {
                assert!(venue.publisher.connect(port, 0, venue.now));
                assert_eq!(venue.say(port, 0, login.as_bytes(), cut), [answer]);
                assert!(venue.publisher.wants_close(port, 0));
            }
        }
        venue.log_in(port, 0);
        assert!(venue.publisher.connect(port, 1, venue.now));
        let second = venue.say(port, 1, login(b"0001", b"WIRE", b"SECRET    ").as_bytes(), 9);
        assert_eq!(second, ["LoginResponse B"]);
        assert!(venue.publisher.wants_close(port, 1) && !venue.publisher.wants_close(port, 0));
        venue.publisher.disconnect(port, 0);
        venue.log_in(port, 1);
    }
    let mut venue = venue(None);
    assert!(!venue.publisher.connect(Port::Live, 0, venue.now));
    assert!(!venue.publisher.connect(Port::Replay, 4, venue.now));
}

#[test]
fn who_does_not_speak_the_protocol_is_hung_up_on() {
    for port in [Port::Replay, Port::SnapshotServer] {
        let mut venue = venue(None);
        for bytes in [
            &[0xFF; 5000][..],
            &[0, 0, 0, 0, 0, 0, 0, 0],
            b"\x0A\x00\x01\x00\0\0\0\0\x01\x01",
        ] {
            assert!(venue.publisher.connect(port, 0, venue.now));
            let Venue {
                publisher,
                engine,
                now,
            } = &mut venue;
            publisher.handle_bytes(port, 0, *now, bytes, engine);
            assert!(venue.publisher.wants_close(port, 0), "{bytes:02X?}");
        }
        // A request before the login.
        assert!(venue.publisher.connect(port, 0, venue.now));
        assert!(venue.say(port, 0, gap(5, 1, 1).as_bytes(), 5).is_empty());
        assert!(venue.publisher.wants_close(port, 0));
        // After it what is not understood, and what the other service is for, is skipped.
        venue.log_in(port, 0);
        assert!(venue.say(port, 0, b"\x04\x77\0\0", 1).is_empty());
        let other = match port {
            Port::Replay => venue.say(port, 0, spin(1).as_bytes(), 64),
            _ => venue.say(port, 0, gap(5, 1, 1).as_bytes(), 64),
        };
        assert!(other.is_empty() && !venue.publisher.wants_close(port, 0));
    }
}

#[test]
fn an_idle_server_beats_and_a_silent_client_is_dropped() {
    let mut venue = venue(None);
    venue.log_in(Port::Replay, 2);
    venue.wait(second(2));
    assert_eq!(venue.hear(Port::Replay, 2), ["beat"]);
    venue.wait(Nanos(second(3).0 - 1));
    assert!(venue.hear(Port::Replay, 2).is_empty());
    let heartbeat = [8, 0, 0, 0, 0, 0, 0, 0];
    venue.wait(second(9));
    venue
        .publisher
        .handle_bytes(Port::Replay, 2, second(9), &heartbeat, &venue.engine);
    venue.wait(second(18));
    assert!(!venue.publisher.wants_close(Port::Replay, 2));
    venue.hear(Port::Replay, 2);
    venue.wait(second(19));
    assert!(venue.publisher.wants_close(Port::Replay, 2));
}

#[test]
fn a_gap_request_is_answered_with_its_status_and_the_messages_on_their_group() {
    let mut venue = venue(None);
    venue.fill(150);
    venue.log_in(Port::Replay, 0);
    let next = venue.publisher.next_seq().0 as u32;
    for (request, status) in [
        (gap(6, 1, 1), 'I'),
        (gap(5, 1, 101), 'C'),
        (gap(5, next, 1), 'O'),
        (gap(5, next - 1, 2), 'O'),
        (gap(5, 0, 1), 'O'),
        (gap(5, 1, 0), 'O'),
        (gap(5, 1, 100), 'A'),
        (gap(5, next - 1, 1), 'A'),
    ] {
        let (unit, sequence, count) = (request.unit, request.sequence.get(), request.count.get());
        let answer = format!("GapResponse {unit} {sequence} {count} {status}");
        assert_eq!(venue.say(Port::Replay, 0, request.as_bytes(), 4), [answer]);
    }
    venue.wait(Nanos(venue.now.0 + 2 * Nanos::MILLI));
    let mut numbers = Vec::new();
    while let Some(datagram) = venue.publisher.poll_datagram(venue.now) {
        assert_eq!(datagram.port, Port::Retransmission);
        let packet = pitch::packet(datagram.bytes).unwrap();
        assert_eq!(packet.unit, 5);
        numbers.extend((packet.sequence..).take(packet.messages.len()));
    }
    assert_eq!(numbers, (1..=100).chain([next - 1]).collect::<Vec<_>>());
}

#[test]
fn who_asks_too_often_is_told_which_quota_is_used_up() {
    let mut venue = venue(None);
    venue.fill(1);
    venue.log_in(Port::Replay, 0);
    let status = |venue: &mut Venue| {
        let heard = venue.say(Port::Replay, 0, gap(5, 1, 1).as_bytes(), 64);
        heard.last().and_then(|text| text.chars().last()).unwrap()
    };
    let mut answered = Vec::new();
    for asked_in in 0..6 {
        venue.wait(second(10 + asked_in));
        venue.hear(Port::Replay, 0);
        answered.push((0..321).filter(|_| status(&mut venue) == 'A').count());
    }
    assert_eq!(answered, [320, 320, 320, 320, 220, 0], "1500 in a minute");
    assert_eq!(status(&mut venue), 'M');
    venue.log_in(Port::Replay, 1);
    let other = venue.say(Port::Replay, 1, gap(5, 1, 1).as_bytes(), 64);
    assert_eq!(other, ["GapResponse 5 1 1 A"], "a quota is of one connection");
    for at in [20, 28, 36, 44, 52, 60, 68, 70] {
        let heartbeat = [8, 0, 0, 0, 0, 0, 0, 0];
        venue.wait(second(at));
        venue
            .publisher
            .handle_bytes(Port::Replay, 0, second(at), &heartbeat, &venue.engine);
    }
    assert_eq!(status(&mut venue), 'A');
}

#[test]
fn an_image_holds_the_units_own_orders_and_says_how_many() {
    let mut venue = venue(None);
    let all = listings(4);
    venue.enter(&all[0], 7);
    venue.fill(500);
    venue.log_in(Port::SnapshotServer, 0);
    let last = venue.publisher.next_seq().0 as u32 - 1;
    let heard = venue.say(Port::SnapshotServer, 0, spin(last).as_bytes(), 2);
    assert_eq!(heard[0], format!("SpinResponse {last} 500 A"));
    assert_eq!(heard[1], "Time 34200");
    assert_eq!(heard[2], "TradingStatus 0 NVDA T 0");
    assert_eq!(heard[3], "TradingStatus 0 AMZN T 0");
    assert_eq!(heard[4], "AddOrderShort 0 2 B 100 NVDA 10.00 1");
    assert_eq!(*heard.last().unwrap(), format!("SpinFinished {last}"));
    assert_eq!(heard.len(), 1 + 3 + 500 + 1);
}

#[test]
fn an_image_is_announced_every_second_and_a_request_gets_the_next_later_one() {
    let mut venue = venue(None);
    venue.fill(2);
    assert!(venue.publisher.connect(Port::SnapshotServer, 0, venue.now));
    let said = venue.say(
        Port::SnapshotServer,
        0,
        login(b"    ", b"    ", b"          ").as_bytes(),
        64,
    );
    assert_eq!(said, ["LoginResponse A", "SpinImageAvailable 4"]);
    venue.wait(Nanos(second(2).0 - 1));
    assert!(venue.hear(Port::SnapshotServer, 0).is_empty());
    venue.fill(1);
    venue.wait(second(2));
    assert_eq!(venue.hear(Port::SnapshotServer, 0), ["SpinImageAvailable 5"]);
    let ask = |venue: &mut Venue, n| venue.say(Port::SnapshotServer, 0, spin(n).as_bytes(), 64);
    assert_eq!(ask(&mut venue, 6), ["SpinResponse 6 0 O"]);
    assert_eq!(ask(&mut venue, 2)[0], "SpinResponse 4 2 A", "rounded up");
    assert_eq!(ask(&mut venue, 5)[0], "SpinResponse 5 3 A");
    // What was published after the last image is in the next one.
    venue.fill(1);
    assert!(ask(&mut venue, 6).is_empty());
    assert_eq!(ask(&mut venue, 6), ["SpinResponse 6 0 S"], "one at a time");
    venue.wait(second(3));
    let image = venue.hear(Port::SnapshotServer, 0);
    assert_eq!(image[..2], ["SpinImageAvailable 6", "SpinResponse 6 4 A"]);
    assert_eq!(image.last().unwrap(), "SpinFinished 6");
}
