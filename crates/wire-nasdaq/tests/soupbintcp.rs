//! SoupBinTCP: hand-made vectors, the digest's worked examples, streams cut anywhere, arbitrary bytes.

#[path = "../../wire-core/tests/support/mod.rs"]
mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{as_map, shown};
use tickwire_testdata::{self as testdata, hex, unhex};
use tickwire_wire_nasdaq::Malformed;
use tickwire_wire_nasdaq::soupbintcp::{
    self, LoginAccepted, LoginRejected, LoginRequest, Packet, RejectReason, split,
};

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    for vector in testdata::vectors("soupbintcp") {
        let mut decoded: BTreeMap<String, String>;
        match split(&vector.bytes) {
            Err(error) => decoded = [("error".to_string(), format!("{error:?}"))].into(),
            Ok(None) => decoded = [("packet".to_string(), "incomplete".to_string())].into(),
            Ok(Some((packet, consumed))) => {
                decoded = as_map(shown(|f| packet.visit(f)));
                decoded.insert("packet".to_string(), packet.name().to_string());
                decoded.insert("consumed".to_string(), consumed.to_string());
                assert_eq!(consumed, vector.bytes.len(), "{}", vector.name);
                assert!(vector.bytes.starts_with(&encode(&packet)), "{}", vector.name);
            }
        }
        assert_eq!(decoded, vector.expect, "{}", vector.name);
    }
}

/// From two recorded sessions (JNX OUCH 1.11, Nasdaq OUCH 5.0), worked out by hand in the digest.
#[test]
fn the_worked_examples_decode_and_encode_to_the_same_bytes() {
    let login = unhex(
        "002F 4C 757365722020 70617373776F72642020 20202020202020202020 2020202020202020202020202020202020202030",
    );
    let request = LoginRequest::new(b"user", b"password", b"", 0).unwrap();
    assert_eq!(split(&login), Ok(Some((Packet::LoginRequest(&request), 49))));
    assert_eq!(hex(&encode(&Packet::LoginRequest(&request))), hex(&login));
    assert_eq!(request.sequence.get(), Some(0));

    let accept = unhex("001F 41 31363839313932313231 2020202020202020202020202020202020313335");
    let accepted = LoginAccepted::new(b"1689192121", 135).unwrap();
    assert_eq!(split(&accept), Ok(Some((Packet::LoginAccepted(&accepted), 33))));
    assert_eq!(
        (accepted.session_id(), accepted.sequence.get()),
        (&b"1689192121"[..], Some(135))
    );

    assert_eq!(split(&unhex("0001 52")), Ok(Some((Packet::ClientHeartbeat, 3))));
    assert_eq!(split(&unhex("0001 48")), Ok(Some((Packet::ServerHeartbeat, 3))));
    let cancelled = unhex("0013 53 43 0000289B4D681317 00753A8D 00000028 55");
    assert_eq!(
        split(&cancelled),
        Ok(Some((Packet::Sequenced(&cancelled[3..]), 21)))
    );
    let cancel = unhex("000A 55 58 00752E71 00000000");
    assert_eq!(split(&cancel), Ok(Some((Packet::Unsequenced(&cancel[3..]), 12))));
}

#[test]
fn a_session_padded_on_either_side_is_the_same_session() {
    let mut accepted = LoginAccepted::new(b"SESS042", 1).unwrap();
    assert_eq!(
        (&accepted.session.0, accepted.session_id()),
        (b"   SESS042", &b"SESS042"[..])
    );
    accepted.session.0 = *b"SESS042   ";
    assert_eq!(accepted.session_id(), b"SESS042");
    accepted.session.0 = *b"          ";
    assert_eq!(accepted.session_id(), b"");
}

#[test]
fn texts_too_long_for_their_field_are_refused() {
    assert_eq!(LoginRequest::new(b"seven77", b"", b"", 1), None);
    assert_eq!(LoginRequest::new(b"", b"elevenchars", b"", 1), None);
    assert_eq!(LoginRequest::new(b"", b"", b"elevenchars", 1), None);
    assert_eq!(LoginAccepted::new(b"elevenchars", 1), None);
}

#[test]
fn a_refusal_says_why() {
    let rejected = LoginRejected::new(RejectReason::SessionNotAvailable);
    assert_eq!(hex(&encode(&Packet::LoginRejected(&rejected))), "00024A53");
    assert_eq!(
        RejectReason::from_wire(rejected.reason.get()),
        Some(RejectReason::SessionNotAvailable)
    );
    assert_eq!(RejectReason::from_wire(b'?'), None);
}

#[test]
fn a_packet_is_written_only_where_it_fits() {
    let mut buffer = vec![0; 3 + soupbintcp::PAYLOAD_SIZE_MAX];
    let largest = vec![7; soupbintcp::PAYLOAD_SIZE_MAX];
    assert_eq!(
        Packet::Sequenced(&largest).encode(&mut buffer),
        Some(buffer.len())
    );
    assert_eq!(
        split(&buffer),
        Ok(Some((Packet::Sequenced(&largest), buffer.len())))
    );
    assert_eq!(
        Packet::Sequenced(&[0; soupbintcp::PAYLOAD_SIZE_MAX + 1]).encode(&mut vec![0; 70_000]),
        None
    );
    assert_eq!(Packet::Sequenced(b"abc").encode(&mut [0; 5]), None);
    assert_eq!(Packet::ServerHeartbeat.encode(&mut [0; 2]), None);
    assert_eq!(
        Packet::LoginRejected(&LoginRejected::new(RejectReason::NotAuthorized)).encode(&mut [0; 3]),
        None
    );
}

#[test]
fn a_stream_gives_the_same_packets_wherever_it_is_cut() {
    let good = testdata::vectors("soupbintcp")
        .into_iter()
        .filter(|v| v.expect.contains_key("consumed"));
    let stream: Vec<u8> = good.flat_map(|v| v.bytes).collect();
    let whole = read_in_pieces(&stream, stream.len());
    assert!(whole.len() > 10);
    for piece in 1..80 {
        assert_eq!(read_in_pieces(&stream, piece), whole, "pieces of {piece} bytes");
    }
}

proptest! {
    #[test]
    fn any_stream_is_split_without_a_gap_until_it_is_corrupt(mut stream in prop::collection::vec(any::<u8>(), 0..200), small: bool) {
        if small {
            stream.iter_mut().for_each(|b| if *b > 128 { *b %= 8 });
        }
        let mut rest = &stream[..];
        loop {
            match split(rest) {
                Ok(Some((_, consumed))) => {
                    prop_assert!(consumed >= 3 && consumed <= rest.len());
                    prop_assert_eq!(consumed, 2 + usize::from(u16::from_be_bytes([rest[0], rest[1]])));
                    rest = &rest[consumed..];
                }
                Ok(None) => break,
                Err(Malformed::Length { kind: 0, expected: 1, have: 0 }) => break prop_assert_eq!(&rest[..2], [0, 0]),
                Err(Malformed::Length { kind, expected, have }) => break prop_assert!(kind == rest[2] && have < expected),
                Err(other) => break prop_assert!(false, "{other:?}"),
            }
        }
    }

    #[test]
    fn what_is_encoded_is_read_back(payload in prop::collection::vec(any::<u8>(), 0..300), kind in 0..9_usize) {
        let packet = match kind {
            0 => Packet::Debug(&payload),
            1 => Packet::Sequenced(&payload),
            2 => Packet::Unsequenced(&payload),
            3 => Packet::ServerHeartbeat,
            4 => Packet::ClientHeartbeat,
            5 => Packet::EndOfSession,
            6 => Packet::LogoutRequest,
            _ => Packet::Unknown(b'?'),
        };
        let bytes = encode(&packet);
        prop_assert_eq!(split(&bytes), Ok(Some((packet, bytes.len()))));
    }
}

fn encode(packet: &Packet<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 1000];
    let length = packet.encode(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

/// What a receiver sees that gets `piece` bytes at a time.
fn read_in_pieces(stream: &[u8], piece: usize) -> Vec<String> {
    let (mut pending, mut seen) = (Vec::new(), Vec::new());
    for bytes in stream.chunks(piece) {
        pending.extend_from_slice(bytes);
        while let Some((packet, consumed)) = split(&pending).unwrap() {
            seen.push(format!("{packet:?}"));
            pending.drain(..consumed);
        }
    }
    assert!(pending.is_empty());
    seen
}
