//! XDP: against hand-made vectors, recorded packets, and a naive decoder driven by the digest's layout
//! tables.

#[path = "support/nyse.rs"]
mod nyse;
#[path = "../../wire-core/tests/support/mod.rs"]
mod support;

use nyse::{Layout, cell};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{as_map, shown};
use tickwire_market::{Nanos, Side};
use tickwire_testdata::{self as testdata, hex, unhex};
use tickwire_wire_nyse::layout::{Char, Fields};
use tickwire_wire_nyse::layout::{Pod, split_mut};
use tickwire_wire_nyse::xdp::{self, DeliveryFlag, Message, PacketBuilder, PacketHeader};
use tickwire_wire_nyse::{Malformed, layout};

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for mut vector in testdata::vectors("xdp") {
        let name = &vector.name;
        if let Some(names) = vector.expect.remove("packet") {
            check_packet(name, &vector.bytes, &names, vector.expect);
            continue;
        }
        let parsed = xdp::parse(&vector.bytes);
        if let Some(error) = vector.expect.get("error") {
            assert_eq!(&format!("{:?}", parsed.unwrap_err()), error, "{name}");
            continue;
        }
        let message = parsed.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(
            Some(message.name().to_string()),
            vector.expect.remove("message"),
            "{name}"
        );
        assert_eq!(as_map(shown(|f| message.visit(f))), vector.expect, "{name}");
        assert!(vector.bytes.starts_with(message.as_bytes()), "{name}");
        *seen.entry(message.name()).or_default() += 1;
    }
    for (_, name, _) in xdp::TYPES {
        assert!(seen.contains_key(name), "no vector of {name}");
    }
}

fn check_packet(name: &str, bytes: &[u8], names: &str, mut expect: BTreeMap<String, String>) {
    let parsed = xdp::parse_packet(bytes);
    if let Some(error) = expect.get("error") {
        return assert_eq!(&format!("{:?}", parsed.unwrap_err()), error, "{name}");
    }
    let packet = parsed.unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(
        expect.remove("trailing"),
        Some(packet.trailing.to_string()),
        "{name}"
    );
    assert_eq!(as_map(shown(|f| packet.header.visit(f))), expect, "{name}");
    let messages: Vec<&str> = packet.messages.map(|m| xdp::parse(m).unwrap().name()).collect();
    assert_eq!(messages.join(" "), names, "{name}");
}

/// The digest's tables and the layouts it gives in words.
fn digest() -> BTreeMap<(u16, usize), Layout> {
    let mut found: BTreeMap<(u16, usize), Layout> = BTreeMap::new();
    for (kind, mut layout) in nyse::layouts("nyse-xdp.md", "## Enumerations") {
        layout
            .cells
            .splice(0..0, [cell("0:2:u16 MsgSize"), cell("2:2:u16 MsgType")]);
        found.insert((kind.parse().unwrap(), layout.size), layout);
    }
    // Not of the integrated feed: BBO Feed 2.5.d, as the recorded packets of
    // `National.Equities.Bbo.Pillar.v2.5` have it.
    let quote = [
        "0:2:u16 MsgSize",
        "2:2:u16 MsgType",
        "4:4:u32 SourceTimeNS",
        "8:4:u32 SymbolIndex",
        "12:4:u32 SymbolSeqNum",
        "16:4:i32 AskPrice",
        "20:4:u32 AskVolume",
        "24:4:i32 BidPrice",
        "28:4:u32 BidVolume",
        "32:1:c QuoteCondition",
        "33:1:c RPIIndicator",
    ];
    let quote = Layout {
        size: 34,
        cells: quote.map(cell).into(),
    };
    found.insert((140, 34), quote);
    let head = |of: (u16, usize), size: usize| Layout {
        size,
        cells: found[&of]
            .cells
            .iter()
            .filter(|(offset, length, ..)| offset + length <= size)
            .cloned()
            .collect(),
    };
    let (short_refresh, old_imbalance) = (head((35, 16), 8), head((105, 73), 67));
    found.insert((35, 8), short_refresh);
    found.insert((105, 67), old_imbalance);
    found
}

#[tickwire_testdata::recorded_data("specs")]
#[test]
fn the_naive_decoder_agrees_on_every_field_of_every_type_for_any_bytes() {
    let digest = digest();
    let known: Vec<(u16, usize)> = xdp::TYPES.iter().map(|&(kind, _, size)| (kind, size)).collect();
    assert_eq!(known.len(), digest.len());
    let mut rng = testdata::Rng::new(2_005);
    for of in known {
        let layout = digest
            .get(&of)
            .unwrap_or_else(|| panic!("the digest has no {of:?}"));
        for _ in 0..200 {
            let mut bytes = vec![0; layout.size];
            rng.fill(&mut bytes);
            bytes[..2].copy_from_slice(&(layout.size as u16).to_le_bytes());
            bytes[2..4].copy_from_slice(&of.0.to_le_bytes());
            let message = xdp::parse(&bytes).unwrap();
            assert_eq!(message.as_bytes(), bytes);
            nyse::same(
                &shown(|f| message.visit(f)),
                &nyse::decode(&layout.cells, &bytes, true),
            );
            let field = |name: &str| -> Option<u64> {
                let naive = nyse::decode(&layout.cells, &bytes, true);
                naive
                    .iter()
                    .find(|(n, _)| n == name)
                    .map(|(_, v)| v.parse().unwrap())
            };
            if !matches!(of.0, 13 | 15) {
                assert_eq!(
                    xdp::symbol_index(&bytes).map(u64::from),
                    field("SymbolIndex"),
                    "{of:?}"
                );
            }
            assert_eq!(xdp::order_id(&bytes), field("OrderID"), "{of:?}");
        }
    }
}

/// Folder, then per packet: delivery flag and types. 140 is the quote of the BBO feed, which shares the
/// framing.
const RECORDED: &[(&str, &[&str])] = &[
    (
        "IntegratedFeed.Pillar.v2.5",
        &[
            "11: 100",
            "11: 111 110",
            "11: 102",
            "11: 105",
            "11: 103",
            "11: 104",
            "11: 34",
            "11: 2",
            "11: 223",
        ],
    ),
    (
        "National.Equities.Bbo.Pillar.v2.5",
        &["11: 140", "19: 35 3 34", "11: 34", "11: 2"],
    ),
    ("Bbo.Xdp.v2.3a", &["11: 140", "12: 1", "11: 3"]),
    ("ImbalancesFeed.Xdp.v2.1.f", &["11: 105", "12: 1"]),
];

#[tickwire_testdata::recorded_data("captures/packets/Nyse", "specs/nyse-xdp.md")]
#[test]
fn recorded_packets_decode_whole_and_encode_back_to_the_same_bytes() {
    let digest = digest();
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    for (folder, expected) in RECORDED {
        let files = testdata::files(&testdata::captures("packets/Nyse").join(folder), "pcap");
        let mut found = Vec::new();
        for file in files {
            for payload in testdata::pcap_payloads(&file) {
                let name = file.display();
                let packet = xdp::parse_packet(&payload).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(packet.trailing, 0, "{name}");
                let mut buffer = vec![0; payload.len()];
                let mut builder = PacketBuilder::new(
                    &mut buffer,
                    packet.flag().unwrap(),
                    packet.header.seq_num.get(),
                    packet.sent(),
                );
                let mut types = Vec::new();
                for bytes in packet.messages {
                    let kind = xdp::message_type(bytes).unwrap();
                    types.push(kind.to_string());
                    *counts.entry(kind).or_default() += 1;
                    let message = xdp::parse(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
                    // The quote of XDP 2.3a has four bytes more than the layout.
                    let own = message.as_bytes();
                    assert!(
                        own.len() == bytes.len() || (kind, bytes.len()) == (140, 38),
                        "{name}"
                    );
                    assert!(bytes.starts_with(own), "{name}");
                    nyse::same(
                        &shown(|f| message.visit(f)),
                        &nyse::decode(&digest[&(kind, own.len())].cells, bytes, true),
                    );
                    assert!(builder.push(bytes));
                }
                assert_eq!(builder.finish(), payload.len(), "{name}");
                assert_eq!(hex(&buffer), hex(&payload), "{name}");
                found.push(format!("{}: {}", packet.header.delivery_flag, types.join(" ")));
            }
        }
        assert_eq!(found, *expected, "{folder}");
    }
    println!("{counts:?}");
}

fn recorded(file: &str) -> Vec<u8> {
    let folder = testdata::captures("packets/Nyse/IntegratedFeed.Pillar.v2.5");
    testdata::pcap_payloads(&folder.join(file)).remove(0)
}

/// Worked out by hand in the digest.
#[tickwire_testdata::recorded_data("captures/packets/Nyse/IntegratedFeed.Pillar.v2.5")]
#[test]
fn the_worked_example_of_an_add_order_decodes_field_by_field() {
    let bytes = recorded("AddOrderMessage.pcap");
    let mut packet = xdp::parse_packet(&bytes).unwrap();
    assert_eq!(
        (bytes.len(), packet.flag(), packet.seq().0),
        (55, Some(DeliveryFlag::Original), 53_173)
    );
    assert_eq!(packet.sent(), Nanos(1_645_642_927_177_446_400));
    let Ok(Message::AddOrder(add)) = xdp::parse(packet.messages.next().unwrap()) else {
        panic!("no add order")
    };
    assert_eq!(
        (
            add.source_time_ns.get(),
            add.symbol_index.get(),
            add.symbol_seq_num.get()
        ),
        (177_431_552, 4966, 6)
    );
    assert_eq!(
        (add.order_id.get(), add.price.get(), add.volume.get()),
        (282_574_488_381_161, 10_010_000, 1200)
    );
    assert_eq!(
        (xdp::side(add.side), add.firm_id.trimmed()),
        (Some(Side::Bid), &b""[..])
    );
    assert_eq!(packet.messages.next(), None);
}

#[test]
fn the_worked_example_of_an_execution_decodes_field_by_field() {
    let bytes = unhex(
        "2A006700 0039B80C 9A150000 0B000000 8CB2000000010100 8B0C0100 90BD9800 64000000 01 00 40 20 20 20",
    );
    let Ok(Message::OrderExecution(execution)) = xdp::parse(&bytes) else {
        panic!("no execution")
    };
    assert_eq!(
        (execution.order_id.get(), execution.trade_id.get()),
        (282_574_488_384_140, 68_747)
    );
    assert_eq!(
        (
            execution.price.get(),
            execution.volume.get(),
            execution.printable_flag
        ),
        (10_010_000, 100, 1)
    );
    assert_eq!(execution.trade_cond1, Char(b'@'));
}

#[test]
fn an_encoder_sets_size_and_type_and_leaves_the_rest_blank() {
    let request = xdp::RetransmissionRequest {
        begin_seq_num: 10.into(),
        end_seq_num: 12.into(),
        source_id: xdp::nul_padded(b"ME").unwrap(),
        product_id: 11,
        channel_id: 3,
        ..xdp::RetransmissionRequest::NEW
    };
    assert_eq!(
        hex(request.as_bytes()),
        "18000A000A0000000C0000004D4500000000000000000B03"
    );
    assert_eq!(
        xdp::parse(request.as_bytes()),
        Ok(Message::RetransmissionRequest(&request))
    );
    assert_eq!(xdp::nul_padded::<3>(b"long"), None);
}

#[test]
fn a_stream_is_cut_into_packets_at_any_place() {
    let mut buffer = [0; 64];
    let len = xdp::heartbeat(&mut buffer, 7, Nanos(5 * Nanos::SECOND + 9));
    for have in 0..len {
        assert!(matches!(xdp::split(&buffer[..have]), Ok(None)), "{have}");
    }
    let Ok(Some((packet, used))) = xdp::split(&buffer) else {
        panic!("no packet")
    };
    assert_eq!(
        (used, packet.seq().0, packet.sent()),
        (16, 7, Nanos(5 * Nanos::SECOND + 9))
    );
    assert_eq!(packet.messages.len(), 0);
    assert!(
        matches!(
            xdp::split(&[15, 0]),
            Err(Malformed::Length {
                expected: 16,
                have: 15,
                ..
            })
        ),
        "a stream cannot go on behind a size that is none"
    );
}

#[test]
fn a_builder_refuses_what_does_not_fit_or_is_no_message() {
    let mut buffer = [0; PacketHeader::SIZE + xdp::DeleteOrder::SIZE];
    let mut builder = PacketBuilder::new(&mut buffer, DeliveryFlag::Original, 1, Nanos::ZERO);
    let message = xdp::DeleteOrder::NEW;
    assert!(!builder.push(&message.as_bytes()[..20]));
    assert!(builder.push(message.as_bytes()));
    assert!(!builder.push(message.as_bytes()));
    assert_eq!((builder.count(), builder.finish()), (1, 41));
}

#[test]
fn codes_outside_the_specification_mean_nothing() {
    for byte in 0..=u8::MAX {
        assert_eq!(xdp::side(Char(byte)).is_some(), b"BS".contains(&byte));
        assert_eq!(
            xdp::Status::from_wire(byte).is_some(),
            b"456ACDPBEOLXIG".contains(&byte)
        );
        assert_eq!(
            DeliveryFlag::from_wire(byte).is_some(),
            [1, 10, 11, 12, 13, 15, 17, 18, 19, 20, 21].contains(&byte)
        );
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_in_place_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..90), known in any::<prop::sample::Index>(), valid: bool) {
        if let (true, Some(head)) = (valid, bytes.get_mut(..4)) {
            let (kind, _, size) = *known.get(xdp::TYPES);
            head[..2].copy_from_slice(&(size as u16).to_le_bytes());
            head[2..].copy_from_slice(&kind.to_le_bytes());
        }
        let _ = (xdp::symbol_index(&bytes), xdp::order_id(&bytes));
        if let Ok(message) = xdp::parse(&bytes) {
            prop_assert!(bytes.starts_with(message.as_bytes()));
            prop_assert_eq!(xdp::message_type(&bytes), Some(message.kind()));
            prop_assert!(!shown(|f| message.visit(f)).is_empty());
        }
    }

    #[test]
    fn messages_and_trailing_bytes_make_up_the_packet(mut bytes in prop::collection::vec(any::<u8>(), 0..200), sizes in prop::collection::vec(4_u8..40, 0..6)) {
        if let Some(header) = bytes.get_mut(..16) {
            let (header, _) = split_mut::<PacketHeader>(header).unwrap();
            header.number_msgs = sizes.len() as u8;
            header.packet_size = layout::le::U16::new(16 + sizes.iter().map(|&s| u16::from(s)).sum::<u16>());
            let mut at = 16;
            for size in &sizes {
                if let Some(field) = bytes.get_mut(at..at + 2) {
                    field.copy_from_slice(&u16::from(*size).to_le_bytes());
                }
                at += usize::from(*size);
            }
        }
        if let Ok(packet) = xdp::parse_packet(&bytes) {
            let used: usize = packet.messages.clone().map(<[u8]>::len).sum();
            prop_assert_eq!(packet.messages.count(), usize::from(packet.header.number_msgs));
            prop_assert_eq!(PacketHeader::SIZE + used + usize::from(packet.trailing), bytes.len());
        }
        let _ = xdp::split(&bytes);
    }
}
