//! MoldUDP64: hand-made vectors, recorded heartbeats, what the builder writes read back, arbitrary bytes.

#[path = "../../wire-core/tests/support/mod.rs"]
mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use tickwire_market::SeqNo;
use tickwire_testdata::{self as testdata, hex};
use tickwire_wire_nasdaq::Malformed;
use tickwire_wire_nasdaq::moldudp64::{
    self, Blocks, Header, MESSAGES_MAX, Packet, PacketBuilder, Payload, Request,
};

const SESSION: [u8; 10] = *b"TICKWIRE01";

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    for vector in testdata::vectors("moldudp64") {
        let decoded = match vector.name.starts_with("request/") {
            true => Request::parse(&vector.bytes).map(|request| {
                assert_eq!(hex(&request.encode()), hex(&vector.bytes), "{}", vector.name);
                request_as_map(&request)
            }),
            false => moldudp64::parse(&vector.bytes).map(|packet| {
                let end = vector.bytes.len() - usize::from(packet.trailing);
                assert_eq!(
                    hex(&encode(&packet)),
                    hex(&vector.bytes[..end]),
                    "{}",
                    vector.name
                );
                packet_as_map(&packet)
            }),
        };
        let decoded = decoded.unwrap_or_else(|e| [("error".to_string(), format!("{e:?}"))].into());
        assert_eq!(decoded, vector.expect, "{}", vector.name);
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq")]
#[test]
fn a_recorded_heartbeat_tells_the_next_number() {
    for folder in ["Ise.OrderComboFeed.v1.1", "Ise.TopComboQuoteFeed.v1.0"] {
        let file = testdata::captures("packets/Nasdaq")
            .join(folder)
            .join("Heartbeat.pcap");
        for payload in testdata::pcap_payloads(&file) {
            let packet = moldudp64::parse(&payload).unwrap();
            assert_eq!((&packet.payload, packet.trailing), (&Payload::Heartbeat, 0));
            assert_eq!(packet.next_seq(), packet.seq);
            assert_eq!(encode(&packet), payload);
        }
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Nasdaq.Equities.TotalView.Itch.v5.0")]
#[test]
fn a_full_packet_of_38_messages_ends_where_the_digest_says() {
    let folder = testdata::captures("packets/Nasdaq/Nasdaq.Equities.TotalView.Itch.v5.0");
    let payload = &testdata::pcap_payloads(&folder.join("Multiple.Packets.pcap"))[1];
    let packet = moldudp64::parse(payload).unwrap();
    assert_eq!(
        (payload.len(), packet.seq, packet.count()),
        (1472, SeqNo(19_009_117), 38)
    );
    assert_eq!(packet.next_seq(), SeqNo(19_009_155));
    let Payload::Messages(blocks) = packet.payload else {
        panic!("no messages")
    };
    assert_eq!((blocks.len(), blocks.count()), (38, 38));
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_the_packet_as_it_was() {
    let mut buffer = [0; 30];
    let mut builder = PacketBuilder::new(&mut buffer, SESSION, SeqNo(5));
    assert!(builder.push(b"ABC"));
    assert!(!builder.push(b"DEFG"), "one byte too many");
    assert!(builder.push(b"DEF"));
    assert!(!builder.push(b""), "no room for a length");
    assert_eq!((builder.count(), builder.finish()), (2, 30));
    let packet = moldudp64::parse(&buffer).unwrap();
    let Payload::Messages(blocks) = packet.payload else {
        panic!("no messages")
    };
    assert_eq!(blocks.collect::<Vec<_>>(), [b"ABC", b"DEF"]);
}

#[test]
fn framed_messages_are_appended_together_or_not_at_all() {
    let mut buffer = [0; 34];
    let mut builder = PacketBuilder::new(&mut buffer, SESSION, SeqNo(5));
    assert!(builder.push(b"A"));
    assert!(
        !builder.push_blocks(3, b"\0\x01B\0\x03CDE\0\x02FG"),
        "one byte too many"
    );
    assert_eq!((builder.count(), builder.room()), (1, 11));
    assert!(builder.push_blocks(2, b"\0\x03BCD\0\x04EFGH"));
    assert_eq!((builder.count(), builder.room(), builder.finish()), (3, 0, 34));
    let packet = moldudp64::parse(&buffer).unwrap();
    let Payload::Messages(blocks) = packet.payload else {
        panic!("no messages")
    };
    assert_eq!(blocks.collect::<Vec<_>>(), [&b"A"[..], b"BCD", b"EFGH"]);
    let mut buffer = vec![0; 200_000];
    let mut builder = PacketBuilder::new(&mut buffer, SESSION, SeqNo(5));
    assert!(builder.push(b"") && !builder.push_blocks(MESSAGES_MAX, &[0; 131_068]));
    assert!(builder.push_blocks(MESSAGES_MAX - 1, &[0; 131_066]));
}

#[test]
fn a_packet_never_holds_so_many_messages_that_it_reads_as_end_of_session() {
    let mut buffer = vec![0; 200_000];
    let mut builder = PacketBuilder::new(&mut buffer, SESSION, SeqNo(1));
    let fitted = (0..70_000).filter(|_| builder.push(b"")).count();
    assert_eq!(fitted, usize::from(MESSAGES_MAX));
    let length = builder.finish();
    assert_eq!(moldudp64::parse(&buffer[..length]).unwrap().count(), MESSAGES_MAX);
    assert!(!PacketBuilder::new(&mut buffer, SESSION, SeqNo(1)).push(&[0; 65_536]));
}

#[test]
fn buffered_blocks_can_be_walked_again() {
    let mut buffer = [0; 64];
    let mut builder = PacketBuilder::new(&mut buffer, SESSION, SeqNo(1));
    assert!(["A", "BC", "D"].iter().all(|m| builder.push(m.as_bytes())));
    let length = builder.finish();
    let Payload::Messages(mut blocks) = moldudp64::parse(&buffer[..length]).unwrap().payload else {
        panic!()
    };
    blocks.next();
    let (again, rest) = Blocks::split(blocks.as_bytes(), blocks.len() as u16).unwrap();
    assert_eq!(
        (again.collect::<Vec<_>>(), rest),
        (vec![&b"BC"[..], b"D"], &b""[..])
    );
}

proptest! {
    #[test]
    fn any_bytes_are_checked_once_and_walked_without_a_gap(mut bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0..6_u16, small: bool) {
        if small && bytes.len() >= 20 {
            bytes[18..20].copy_from_slice(&count.to_be_bytes());
            bytes[20..].iter_mut().for_each(|b| *b %= 8);
        }
        match moldudp64::parse(&bytes) {
            Ok(packet) => {
                let walked = match &packet.payload {
                    Payload::Messages(blocks) => {
                        prop_assert_eq!(blocks.len(), blocks.clone().count());
                        blocks.clone().map(|m| 2 + m.len()).sum()
                    }
                    _ => 0,
                };
                prop_assert_eq!(Header::SIZE + walked + usize::from(packet.trailing), bytes.len());
            }
            Err(Malformed::Truncated { need, have }) => prop_assert!(need > have && usize::from(have) == bytes.len()),
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn what_the_builder_writes_is_read_back(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..40), seq in 1..u64::MAX, room in 20..1500_usize) {
        let mut buffer = vec![0; room];
        let mut builder = PacketBuilder::new(&mut buffer, SESSION, SeqNo(seq));
        let fitted = messages.iter().take_while(|m| builder.push(m)).count();
        let length = builder.finish();
        let packet = moldudp64::parse(&buffer[..length]).unwrap();
        prop_assert_eq!((packet.session, packet.seq, packet.trailing), (SESSION, SeqNo(seq), 0));
        let read: Vec<Vec<u8>> = match packet.payload {
            Payload::Messages(blocks) => blocks.map(<[u8]>::to_vec).collect(),
            _ => Vec::new(),
        };
        prop_assert_eq!(&read[..], &messages[..fitted]);
    }
}

fn encode(packet: &Packet<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let length = match packet.payload.clone() {
        Payload::Heartbeat => moldudp64::heartbeat(&mut buffer, packet.session, packet.seq),
        Payload::EndOfSession => moldudp64::end_of_session(&mut buffer, packet.session, packet.seq),
        Payload::Messages(blocks) => {
            let mut builder = PacketBuilder::new(&mut buffer, packet.session, packet.seq);
            blocks.for_each(|message| assert!(builder.push(message)));
            builder.finish()
        }
    };
    buffer.truncate(length);
    buffer
}

fn packet_as_map(packet: &Packet<'_>) -> BTreeMap<String, String> {
    let mut map: BTreeMap<String, String> = [
        ("session".to_string(), packet.session.escape_ascii().to_string()),
        ("seq".to_string(), packet.seq.to_string()),
        ("next_seq".to_string(), packet.next_seq().to_string()),
        ("trailing".to_string(), packet.trailing.to_string()),
    ]
    .into();
    let kind = match packet.payload.clone() {
        Payload::Heartbeat => "Heartbeat",
        Payload::EndOfSession => "EndOfSession",
        Payload::Messages(blocks) => {
            let text: Vec<String> = blocks
                .map(|m| if m.is_empty() { "-".to_string() } else { hex(m) })
                .collect();
            map.insert("messages".to_string(), text.join(" "));
            "Messages"
        }
    };
    map.insert("packet".to_string(), kind.to_string());
    map
}

fn request_as_map(request: &Request) -> BTreeMap<String, String> {
    [
        ("session".to_string(), request.session.escape_ascii().to_string()),
        ("seq".to_string(), request.seq.to_string()),
        ("count".to_string(), request.count.to_string()),
    ]
    .into()
}
