//! OpenBook Ultra: against hand-made vectors, recorded packets, and a naive decoder driven by the digest's
//! layout tables.

#[path = "support/nyse.rs"]
mod nyse;
#[path = "../../wire-core/tests/support/mod.rs"]
mod support;

use nyse::Layout;
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{as_map, shown};
use tickwire_testdata::{self as testdata, hex};
use tickwire_wire_nyse::Malformed;
use tickwire_wire_nyse::layout::{Fields, I32};
use tickwire_wire_nyse::openbook::{self, Message, Packet, PacketBuilder, PacketHeader};

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for mut vector in testdata::vectors("openbook") {
        let name = &vector.name;
        let parsed = openbook::parse_packet(&vector.bytes);
        if let Some(error) = vector.expect.get("error") {
            assert_eq!(&format!("{:?}", parsed.unwrap_err()), error, "{name}");
            continue;
        }
        let packet = parsed.unwrap_or_else(|e| panic!("{name}: {e}"));
        if let Some(error) = vector.expect.get("message_error") {
            let bytes = packet.messages.clone().next().unwrap();
            let refused = openbook::parse(packet.kind(), bytes).unwrap_err();
            assert_eq!(&format!("{refused:?}"), error, "{name}");
            continue;
        }
        let mut fields = as_map(shown(|f| packet.header.visit(f)));
        let mut names = Vec::new();
        for (i, bytes) in packet.messages.clone().enumerate() {
            let message = openbook::parse(packet.kind(), bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
            names.push(message.name());
            *seen.entry(message.name()).or_default() += 1;
            for (path, value) in paths(&message) {
                assert_eq!(fields.insert(format!("{i}.{path}"), value), None, "{name}");
            }
        }
        assert_eq!(vector.expect.remove("messages"), Some(names.join(" ")), "{name}");
        assert_eq!(
            vector.expect.remove("trailing"),
            Some(packet.trailing.to_string()),
            "{name}"
        );
        assert_eq!(fields, vector.expect, "{name}");
        let own = vector.bytes.len() - usize::from(packet.trailing);
        assert_eq!(hex(&again(&packet, own)), hex(&vector.bytes[..own]), "{name}");
    }
    for (_, name, _) in openbook::TYPES {
        assert!(seen.contains_key(name), "no vector of {name}");
    }
}

/// Fields as `Field` or `0.Field`, the number being the price point's.
fn paths(message: &Message<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    message.visit(&mut |point, name, value| {
        let path = point.map_or(name.to_string(), |i| format!("{i}.{name}"));
        found.push((path, value.to_string()));
    });
    found
}

/// The packet written from its decoded messages.
fn again(packet: &Packet<'_>, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    let mut builder = PacketBuilder::new(&mut bytes, *packet.header);
    for own in packet.messages.clone() {
        let mut message = vec![0; own.len()];
        let read = openbook::parse(packet.kind(), own).unwrap();
        assert_eq!(read.encode(&mut message), Some(own.len()));
        assert_eq!(read.encode(&mut message[1..]), None, "no room");
        let mut message = vec![0; own.len()];
        read.encode(&mut message);
        assert!(builder.push(&message));
    }
    assert_eq!(builder.finish(), size);
    bytes
}

fn naive(digest: &BTreeMap<String, Layout>, kind: u16, bytes: &[u8]) -> Vec<(String, String)> {
    let head = &digest[&kind.to_string()];
    let mut fields = nyse::decode(&head.cells, bytes, false);
    if let Some(point) = digest.get(&format!("{kind}p")) {
        for (i, bytes) in bytes[head.size..].chunks(point.size).enumerate() {
            let of_point = nyse::decode(&point.cells, bytes, false);
            fields.extend(
                of_point
                    .into_iter()
                    .map(|(name, value)| (format!("{i}.{name}"), value)),
            );
        }
    }
    fields
}

#[tickwire_testdata::recorded_data("specs")]
#[test]
fn the_naive_decoder_agrees_on_every_field_of_every_type_for_any_bytes() {
    let digest = nyse::layouts("nyse-openbook-ultra.md", "## ArcaBook");
    assert_eq!(digest.len(), openbook::TYPES.len() + 2);
    let mut rng = testdata::Rng::new(231);
    for &(kind, _, size) in openbook::TYPES {
        let point = digest.get(&format!("{kind}p")).map_or(0, |p| p.size);
        for _ in 0..200 {
            let mut bytes = vec![0; size + point * rng.below(4) as usize];
            rng.fill(&mut bytes);
            if point > 0 {
                let size = bytes.len() as u16;
                bytes[..2].copy_from_slice(&size.to_be_bytes());
            }
            let message = openbook::parse(kind, &bytes).unwrap();
            assert_eq!(paths(&message), naive(&digest, kind, &bytes));
            let mut written = vec![0; bytes.len()];
            assert_eq!(message.encode(&mut written), Some(bytes.len()));
            assert_eq!(written, bytes);
        }
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Nyse/Nyse.Equities.OpenBook.Ultra.2.1.b", "specs")]
#[test]
fn recorded_packets_decode_whole_and_encode_back_to_the_same_bytes() {
    let digest = nyse::layouts("nyse-openbook-ultra.md", "## ArcaBook");
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    let folder = testdata::captures("packets/Nyse/Nyse.Equities.OpenBook.Ultra.2.1.b");
    for file in testdata::files(&folder, "pcap") {
        for payload in testdata::pcap_payloads(&file) {
            let packet = openbook::parse_packet(&payload).unwrap();
            assert_eq!(packet.trailing, 0, "{}", file.display());
            let entry = counts.entry(packet.kind()).or_default();
            *entry += packet.messages.len().max(1);
            for bytes in packet.messages.clone() {
                let message = openbook::parse(packet.kind(), bytes).unwrap();
                assert_eq!(paths(&message), naive(&digest, packet.kind(), bytes));
            }
            assert_eq!(
                hex(&again(&packet, payload.len())),
                hex(&payload),
                "{}",
                file.display()
            );
        }
    }
    println!("{counts:?}");
    assert_eq!(counts, [(1, 1), (2, 1), (230, 2), (231, 21)].into());
}

fn recorded(file: &str) -> Vec<u8> {
    let folder = testdata::captures("packets/Nyse/Nyse.Equities.OpenBook.Ultra.2.1.b");
    testdata::pcap_payloads(&folder.join(file)).remove(0)
}

/// Worked out by hand in the digest.
#[tickwire_testdata::recorded_data("captures/packets/Nyse/Nyse.Equities.OpenBook.Ultra.2.1.b")]
#[test]
fn the_worked_example_of_a_full_update_decodes_field_by_field() {
    let bytes = recorded("FullUpdateMessage.pcap");
    let packet = openbook::parse_packet(&bytes).unwrap();
    assert_eq!((bytes.len(), packet.kind(), packet.seq().0), (84, 230, 34));
    assert_eq!(packet.flag(), Some(openbook::RetransFlag::Original));
    assert_eq!(
        (packet.header.product_id, packet.header.send_time.get()),
        (12, 3_193_900)
    );
    let Ok(Message::FullUpdate(full)) = openbook::parse(230, packet.messages.clone().next().unwrap()) else {
        panic!("no full update")
    };
    assert_eq!((full.points.len(), full.head.symbol_index.get()), (0, 9053));
    assert_eq!(full.head.symbol.trimmed(), b"BSAC");
    assert_eq!(
        (full.head.source_time.get(), full.head.source_time_micros.get()),
        (3_193_900, 274)
    );
    assert_eq!(
        (
            full.head.price_scale_code,
            full.head.trading_status.0,
            full.head.mpv.get()
        ),
        (4, b'P', 1)
    );
}

#[tickwire_testdata::recorded_data("captures/packets/Nyse/Nyse.Equities.OpenBook.Ultra.2.1.b")]
#[test]
fn the_worked_example_of_a_delta_update_decodes_field_by_field() {
    let bytes = recorded("DeltaUpdateMessage.pcap");
    let mut packet = openbook::parse_packet(&bytes).unwrap();
    let Ok(Message::DeltaUpdate(delta)) = openbook::parse(231, packet.messages.next().unwrap()) else {
        panic!("no delta update")
    };
    assert_eq!(
        (delta.head.symbol_index.get(), delta.head.source_seq_num.get()),
        (44_936, 16_177)
    );
    assert_eq!(
        (delta.head.source_time.get(), delta.head.source_time_micros.get()),
        (34_220_576, 671)
    );
    let [point] = delta.points else {
        panic!("one price point")
    };
    let price = openbook::price(point.price_numerator, delta.head.price_scale_code);
    assert_eq!(price, "171.6".parse().ok());
    assert_eq!(
        (point.volume.get(), point.chg_qty.get(), point.num_orders.get()),
        (8367, 30, 4)
    );
    assert_eq!(
        (point.side.0, point.reason_code.0, point.link_id1.get()),
        (b'S', b'E', 1)
    );
}

#[test]
fn a_price_is_exact_at_any_scale_or_none() {
    assert_eq!(openbook::price(I32::new(-5), 9), "-0.000000005".parse().ok());
    assert_eq!(openbook::price(I32::new(5), 10), None);
    assert_eq!(openbook::price(I32::new(i32::MAX), 0), "2147483647".parse().ok());
    assert_eq!(openbook::price(I32::new(1), 255), None);
}

#[test]
fn a_stream_is_cut_into_packets_at_any_place() {
    let vectors = testdata::vectors("openbook");
    let heartbeat = vectors.iter().find(|v| v.name == "packets/heartbeat");
    let bytes = &heartbeat.expect("it is there").bytes;
    for have in 0..bytes.len() {
        assert!(matches!(openbook::split(&bytes[..have]), Ok(None)), "{have}");
    }
    let Ok(Some((packet, used))) = openbook::split(bytes) else {
        panic!("no packet")
    };
    assert_eq!((packet.kind(), used), (openbook::HEARTBEAT, 16));
    assert!(matches!(openbook::split(&[0, 13]), Err(Malformed::Length { .. })));
}

proptest! {
    #[test]
    fn any_bytes_are_read_in_place_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..90), known in any::<prop::sample::Index>()) {
        let (kind, ..) = *known.get(openbook::TYPES);
        if let Ok(message) = openbook::parse(kind, &bytes) {
            prop_assert!(!paths(&message).is_empty());
        }
        prop_assert!(openbook::parse(9999, &bytes).is_err());
    }

    #[test]
    fn messages_and_trailing_bytes_make_up_the_packet(mut bytes in prop::collection::vec(any::<u8>(), 0..200), known in any::<prop::sample::Index>(), count in 0_u8..4, size in 14_u16..120) {
        if bytes.len() > 18 {
            bytes[..2].copy_from_slice(&size.to_be_bytes());
            bytes[2..4].copy_from_slice(&known.get(openbook::TYPES).0.to_be_bytes());
            bytes[14] = count;
            bytes[16] = 0;
        }
        if let Ok(packet) = openbook::parse_packet(&bytes) {
            let used: usize = packet.messages.clone().map(<[u8]>::len).sum();
            prop_assert_eq!(PacketHeader::SIZE + used + usize::from(packet.trailing), bytes.len());
            prop_assert_eq!(packet.messages.clone().count(), usize::from(packet.header.num_msgs));
            for message in packet.messages.clone() {
                let _ = openbook::parse(packet.kind(), message);
            }
        }
        let _ = openbook::split(&bytes);
    }
}
