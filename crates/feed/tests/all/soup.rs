//! The SoupBinTCP client against a stream cut anywhere.

use tickwire_feed::{STREAM_CHUNK_MAX, SoupClient, SoupConfig, SoupEvent, SoupFailure};
use tickwire_market::{Nanos, SeqNo};
use tickwire_wire::layout::{Alpha, Digits};
use tickwire_wire::soupbintcp::{LoginAccepted, LoginRejected, Packet, RejectReason};

const SECOND: u64 = Nanos::SECOND;

fn connected() -> SoupClient {
    let mut soup = SoupClient::new(SoupConfig::default());
    soup.handle_connected(Nanos::ZERO);
    soup
}

fn logged_in() -> SoupClient {
    let mut soup = connected();
    soup.handle_bytes(Nanos::ZERO, &accepted(135));
    assert_eq!(
        soup.poll_event(),
        Some(SoupEvent::LoggedIn {
            session: *b"1689192121",
            next: SeqNo(135)
        })
    );
    soup
}

fn bytes(packet: Packet<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 256];
    let len = packet.encode(&mut buffer).unwrap();
    buffer.truncate(len);
    buffer
}

fn accepted(next: u64) -> Vec<u8> {
    bytes(Packet::LoginAccepted(
        &LoginAccepted::new(b"1689192121", next).unwrap(),
    ))
}

fn sent(soup: &mut SoupClient) -> Vec<u8> {
    soup.poll_transmit(&mut [0; 64]).unwrap_or_default().to_vec()
}

fn fails_with(mut soup: SoupClient, stream: &[u8], failure: SoupFailure) {
    soup.handle_bytes(Nanos::ZERO, stream);
    assert_eq!(soup.poll_event(), Some(SoupEvent::Failed(failure)));
    assert_eq!(soup.poll_event(), None);
    assert_eq!((soup.poll_timeout(), soup.is_open()), (None, false));
    soup.handle_bytes(Nanos::ZERO, &accepted(1));
    assert_eq!(soup.poll_event(), None, "a session that is over hears nothing");
}

#[test]
fn the_login_request_is_the_recorded_one() {
    let mut soup = SoupClient::new(SoupConfig {
        username: Alpha::new(b"user").unwrap(),
        password: Alpha::new(b"password").unwrap(),
        sequence: 0,
        ..SoupConfig::default()
    });
    soup.handle_connected(Nanos::ZERO);
    assert_eq!(
        sent(&mut soup),
        b"\0\x2FLuser  password                               0"
    );
    assert_eq!(sent(&mut soup), b"");
    soup.ask_for(Alpha::new(b"1689192121").unwrap(), 140);
    soup.handle_connected(Nanos::ZERO);
    assert_eq!(
        sent(&mut soup),
        b"\0\x2FLuser  password  1689192121                 140"
    );
}

#[test]
fn messages_are_numbered_wherever_the_stream_is_cut() {
    let mut stream = accepted(135);
    for packet in [
        Packet::Debug(b"hello"),
        Packet::Sequenced(b"one"),
        Packet::ServerHeartbeat,
        Packet::Unsequenced(b"aside"),
        Packet::Unknown(b'?'),
        Packet::Sequenced(b""),
        Packet::EndOfSession,
    ] {
        stream.extend(bytes(packet));
    }
    for cut in 0..=stream.len() {
        let mut soup = connected();
        let mut said = Vec::new();
        for part in [&stream[..cut], &stream[cut..]] {
            soup.handle_bytes(Nanos::ZERO, part);
            while let Some(event) = soup.poll_event() {
                said.push(format!("{event:?}"));
            }
        }
        let expected = [
            format!(
                "{:?}",
                SoupEvent::LoggedIn {
                    session: *b"1689192121",
                    next: SeqNo(135)
                }
            ),
            format!(
                "{:?}",
                SoupEvent::Message {
                    seq: SeqNo(135),
                    bytes: b"one"
                }
            ),
            format!("{:?}", SoupEvent::Unsequenced(b"aside")),
            format!(
                "{:?}",
                SoupEvent::Message {
                    seq: SeqNo(136),
                    bytes: b""
                }
            ),
            format!("{:?}", SoupEvent::EndOfSession),
        ];
        assert_eq!(said, expected, "cut at {cut}");
        assert_eq!(soup.next_seq(), SeqNo(137));
    }
}

#[test]
fn it_says_that_it_lives_and_notices_when_the_server_does_not() {
    let mut soup = logged_in();
    sent(&mut soup);
    assert_eq!(soup.poll_timeout(), Some(Nanos(SECOND)));
    soup.handle_timeout(Nanos(SECOND));
    assert_eq!(sent(&mut soup), b"\0\x01R");
    soup.handle_bytes(Nanos(14 * SECOND), &bytes(Packet::ServerHeartbeat));
    soup.handle_timeout(Nanos(28 * SECOND));
    assert_eq!(soup.poll_event(), None);
    soup.handle_timeout(Nanos(29 * SECOND));
    assert_eq!(soup.poll_event(), Some(SoupEvent::Failed(SoupFailure::Silent)));
}

#[test]
fn every_failure_ends_the_session_once() {
    let rejected = LoginRejected::new(RejectReason::SessionNotAvailable);
    fails_with(
        connected(),
        &bytes(Packet::LoginRejected(&rejected)),
        SoupFailure::Rejected(b'S'),
    );
    fails_with(
        connected(),
        &bytes(Packet::Sequenced(b"early")),
        SoupFailure::NotLoggedIn,
    );
    fails_with(
        connected(),
        &bytes(Packet::EndOfSession),
        SoupFailure::NotLoggedIn,
    );
    let nameless = LoginAccepted {
        sequence: Digits([b' '; 20]),
        ..LoginAccepted::new(b"X", 1).unwrap()
    };
    let malformed = tickwire_wire::Malformed::OutOfRange { offset: 13 };
    fails_with(
        connected(),
        &bytes(Packet::LoginAccepted(&nameless)),
        SoupFailure::Malformed(malformed),
    );
    let empty = tickwire_wire::Malformed::Length {
        kind: 0,
        expected: 1,
        have: 0,
    };
    fails_with(logged_in(), &[0, 0], SoupFailure::Malformed(empty));
    fails_with(
        logged_in(),
        &vec![0xFF; 3 * STREAM_CHUNK_MAX],
        SoupFailure::Overflow,
    );
    let mut soup = logged_in();
    soup.handle_closed();
    assert_eq!(soup.poll_event(), Some(SoupEvent::Failed(SoupFailure::Closed)));
}

#[test]
fn after_a_goodbye_the_servers_closing_is_no_failure() {
    let mut soup = logged_in();
    sent(&mut soup);
    soup.log_out();
    assert_eq!(sent(&mut soup), b"\0\x01O");
    soup.handle_closed();
    assert_eq!(soup.poll_event(), None);
}
