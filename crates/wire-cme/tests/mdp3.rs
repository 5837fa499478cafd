//! MDP 3.0: against the SBE schema by a second decoder that reads it at run time, recorded packets, hand-made
//! vectors.

#[path = "support/mdp3_schema.rs"]
mod mdp3_schema;

use mdp3_schema::{Message as SchemaMessage, Schema};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tickwire_testdata::{self as testdata, Rng, hex, unhex};
use tickwire_wire_cme::layout::Pod;
use tickwire_wire_cme::mdp3::block::{GroupSize, MessageBuilder, MessageHeader, Visit};
use tickwire_wire_cme::mdp3::{self, Body, Book, BookEntry, EventRoot, Optional, Price9, conflated, tcp};
use tickwire_wire_cme::{Malformed, layout::le};

/// Name and value of every field in wire order; fields of entries as `Group.0.Field`.
type Shown = Vec<(String, String)>;
/// Template name to number seen.
type Counts = BTreeMap<&'static str, usize>;

/// The templates of the exchange's schema, and those that have left it.
fn all_templates() -> Vec<SchemaMessage> {
    let (mut all, older) = (Schema::read().messages, Schema::older().messages);
    all.extend(older);
    all.sort_by_key(|m| m.id);
    all
}

/// The versions a message is tried with: from the one that brought it to one that is not known yet.
fn versions(message: &SchemaMessage) -> std::ops::RangeInclusive<u16> {
    message.since..=mdp3::NEWEST_VERSION + 1
}

fn shown(visit: impl FnOnce(&mut dyn FnMut(Visit<'_>))) -> Shown {
    let (mut fields, mut path) = (Shown::new(), String::new());
    visit(&mut |step| match step {
        Visit::Field(name, value) => fields.push((format!("{path}{name}"), value.to_string())),
        Visit::Enter(name, _, 0) => fields.push((name.to_string(), "0".to_string())),
        Visit::Enter(name, index, count) => {
            if index == 0 {
                fields.push((name.to_string(), count.to_string()));
            }
            path = format!("{name}.{index}.");
        }
        Visit::Leave => path.clear(),
    });
    fields
}

#[tickwire_testdata::recorded_data("specs/cme")]
#[test]
fn the_table_of_templates_is_that_of_the_schema() {
    let schema = all_templates();
    let mut ours = Body::TEMPLATES.to_vec();
    ours.sort_by_key(|t| t.id);
    assert_eq!(ours.len(), schema.len());
    for (ours, theirs) in ours.iter().zip(&schema) {
        assert_eq!(
            (ours.id, ours.name, ours.block_length),
            (theirs.id, &*theirs.name, theirs.block_length)
        );
        let groups: Vec<_> = theirs
            .groups
            .iter()
            .map(|g| (&*g.name, g.block_length, g.since))
            .collect();
        assert_eq!(ours.groups, groups, "{}", ours.name);
    }
}

#[tickwire_testdata::recorded_data("specs/cme")]
#[test]
fn the_schema_agrees_on_every_field_of_every_template_and_version_for_any_bytes() {
    let mut rng = Rng::new(13);
    let mut compared = 0;
    for message in &all_templates() {
        for version in versions(message) {
            for _ in 0..40 {
                let bytes = random_message(message, version, &mut rng);
                let expected = message.decode(&bytes);
                let parsed = mdp3::parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", message.name));
                assert_eq!(parsed.rest, b"", "{}", message.name);
                let mut ours = shown(|f| parsed.visit(f));
                if message.until != u16::MAX {
                    // Layouts that successors share have fields that the old template never had: always null.
                    let known = |name: &String| expected.iter().any(|(theirs, _)| theirs == name);
                    ours.retain(|(name, value)| known(name) || value != "null");
                }
                assert_eq!(ours, expected, "{} version {version}", message.name);
                compared += expected.len();
            }
        }
    }
    println!("{compared} fields compared");
}

#[tickwire_testdata::recorded_data("specs")]
#[test]
fn a_field_that_was_added_is_null_in_messages_of_every_version_before_whatever_lies_under_it() {
    let (mut fields, mut shown_null, mut shown_value) = (0, 0, 0);
    for message in &all_templates() {
        for (group, name, since, _, _) in message.added() {
            fields += 1;
            for version in versions(message) {
                for fill in [0, 0xA5] {
                    let bytes = filled_message(message, version, fill);
                    let parsed = mdp3::parse(&bytes).unwrap_or_else(|e| panic!("{}: {e}", message.name));
                    let path = group.map_or(name.to_string(), |group| format!("{group}.0.{name}"));
                    let all = shown(|f| parsed.visit(f));
                    let Some((_, value)) = all.iter().find(|(shown, _)| *shown == path) else {
                        // The group itself is newer than the message.
                        assert!(version < since, "{}.{path} of version {version}", message.name);
                        continue;
                    };
                    assert_eq!(
                        value == "null",
                        version < since,
                        "{}.{path} of version {version} over bytes of {fill:#04x}: {value}",
                        message.name
                    );
                    *(if version < since {
                        &mut shown_null
                    } else {
                        &mut shown_value
                    }) += 1;
                }
            }
        }
    }
    println!("{fields} added fields: {shown_null} times null, {shown_value} times a value");
    assert!(fields >= 20 && shown_null >= 80 && shown_value >= 200);
}

/// A message of one entry in each group, all of whose blocks are of this byte.
fn filled_message(message: &SchemaMessage, version: u16, fill: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for head in [message.block_length, message.id, 1, version] {
        bytes.extend(head.to_le_bytes());
    }
    bytes.extend(vec![fill; message.block_length.into()]);
    for group in message.groups_in(version) {
        bytes.extend(group.block_length.to_le_bytes());
        bytes.extend(vec![0; group.padding]);
        bytes.push(1);
        bytes.extend(vec![fill; group.block_length.into()]);
    }
    bytes
}

/// A message of random bytes: blocks as long as the schema says or longer, 0 to 3 entries a group, nulls
/// among the fields.
fn random_message(message: &SchemaMessage, version: u16, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    let block = |rng: &mut Rng, length: u16, nulls: &[(usize, Vec<u8>)]| {
        let mut block = vec![0; usize::from(length)];
        rng.fill(&mut block);
        for (offset, null) in nulls.iter().filter(|_| rng.below(4) == 0) {
            block[*offset..offset + null.len()].copy_from_slice(null);
        }
        block
    };
    let root_length = message.block_length + rng.below(4) as u16;
    for head in [root_length, message.id, 1, version] {
        bytes.extend(head.to_le_bytes());
    }
    bytes.extend(block(rng, root_length, &message.nulls()));
    for group in message.groups_in(version) {
        let (length, count) = (group.block_length + rng.below(4) as u16, rng.below(4) as u8);
        bytes.extend(length.to_le_bytes());
        bytes.extend(vec![0; group.padding]);
        bytes.push(count);
        (0..count).for_each(|_| bytes.extend(block(rng, length, &group.nulls())));
    }
    bytes
}

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    let mut seen = Counts::new();
    for mut vector in testdata::vectors("mdp3") {
        let name = vector.name.clone();
        let result = mdp3::parse_packet(&vector.bytes).and_then(|packet| {
            mdp3::parse(packet.messages.clone().next().unwrap_or(&[])).map(|m| (packet, m))
        });
        if let Some(error) = vector.expect.get("error") {
            assert_eq!(&format!("{:?}", result.unwrap_err()), error, "{name}");
            continue;
        }
        let (packet, message) = result.unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut take = |key: &str| {
            vector
                .expect
                .remove(key)
                .unwrap_or_else(|| panic!("{name}: no {key}"))
        };
        assert_eq!(
            (take("MsgSeqNum"), take("SendingTime")),
            (packet.seq.to_string(), packet.sending_time.to_string())
        );
        assert_eq!(take("message"), message.name(), "{name}");
        assert_eq!(
            shown(|f| message.visit(f))
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            vector.expect,
            "{name}"
        );
        assert_eq!(hex(&encode_again(&vector.bytes)), hex(&vector.bytes), "{name}");
        *seen.entry(message.name()).or_default() += 1;
    }
    for template in Body::TEMPLATES {
        assert!(seen.contains_key(template.name), "no vector of {}", template.name);
    }
}

/// The packet built anew from the decoded fields of its messages.
fn encode_again(packet: &[u8]) -> Vec<u8> {
    let parsed = mdp3::parse_packet(packet).unwrap();
    let mut bytes = vec![0xAA; packet.len()];
    let mut builder = mdp3::PacketBuilder::new(&mut bytes, parsed.seq, parsed.sending_time);
    for message in parsed.messages {
        let message = mdp3::parse(message).unwrap();
        assert!(builder.push(|buffer| message.encode(buffer)));
    }
    assert_eq!(builder.finish(), packet.len());
    bytes
}

#[tickwire_testdata::recorded_data("captures/packets/Cme")]
#[test]
fn recorded_packets_decode_whole_and_encode_back_to_the_same_bytes() {
    let mut counts = Counts::new();
    let mut packets = 0;
    for version in ["v1.5", "v1.8", "v1.9"] {
        let folder = testdata::captures("packets/Cme").join(format!("Mdp3.Sbe.{version}"));
        for file in testdata::files(&folder, "pcap") {
            for payload in testdata::pcap_payloads(&file) {
                packets += 1;
                let name = file.display();
                let packet = mdp3::parse_packet(&payload).unwrap_or_else(|e| panic!("{name}: {e}"));
                for message in packet.messages {
                    let message = mdp3::parse(message).unwrap_or_else(|e| panic!("{name}: {e}"));
                    assert_eq!(message.rest, b"", "{name}");
                    *counts.entry(message.name()).or_default() += 1;
                }
                assert_eq!(hex(&encode_again(&payload)), hex(&payload), "{name}");
            }
        }
    }
    println!("{packets} packets: {counts:?}");
    let expected = [
        ("MDIncrementalRefreshBook32", 7),
        ("MDIncrementalRefreshBook46", 8),
        ("MDIncrementalRefreshOrderBook47", 1),
        ("MDIncrementalRefreshSessionStatistics35", 1),
        ("MDIncrementalRefreshTradeSummary42", 2),
        ("MDIncrementalRefreshTradeSummary48", 2),
        ("MDIncrementalRefreshVolume37", 6),
        ("MDInstrumentDefinitionFuture27", 2),
        ("MDInstrumentDefinitionSpread29", 3),
    ];
    assert_eq!(counts, expected.into());
}

#[tickwire_testdata::recorded_data("captures/packets/Cme/Mdp3.Sbe.v1.12")]
#[test]
fn recorded_conflated_packets_decode_whole_and_encode_back_to_the_same_bytes() {
    let mut counts = Counts::new();
    for file in testdata::files(&testdata::captures("packets/Cme/Mdp3.Sbe.v1.12"), "pcap") {
        let (name, payload) = (file.display(), testdata::pcap_tcp_payloads(&file).remove(0));
        let packet = conflated::parse_packet(&payload).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut again = payload[..conflated::Header::SIZE].to_vec();
        for bytes in packet.messages {
            let mut buffer = [0; 1500];
            let (length, message) = match mdp3::parse(bytes) {
                Ok(message) => (message.encode(&mut buffer), message.name()),
                Err(_) => {
                    let (header, request) = conflated::parse(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
                    println!("{}: {:?}", request.name(), shown(|f| request.visit(f)));
                    (request.encode(&mut buffer, header), request.name())
                }
            };
            again.extend(&buffer[..length.unwrap()]);
            *counts.entry(message).or_default() += 1;
        }
        assert_eq!(hex(&again), hex(&payload), "{name}");
    }
    println!("{counts:?}");
    let expected = [
        ("MDIncrementalRefreshTradeSummaryLongQty65", 1),
        ("RequestAck206", 1),
        ("SecurityListRequest208", 1),
        ("SecurityStatusRequest209", 1),
        ("SnapshotFullRefreshTCPLongQty68", 1),
        ("SubscriberHeartbeat210", 1),
    ];
    assert_eq!(counts, expected.into());
}

/// `Mdp3.Sbe.v1.9/MdIncrementalRefreshOrderBook.pcap`, worked out by hand in the digest.
#[test]
fn the_worked_example_of_an_order_update_decodes_field_by_field() {
    let bytes = unhex(
        "A5E80D00 C15FAAF290AB5315 4000 0B00 2F00 0100 0900 FF9DFFEF90AB5315 84 0000 2800 01 D31D6AD911000000 \
         E4F23B2600000000 0068DACCF90A0000 04000000 231F0800 00 31 000000000000",
    );
    let mut packet = mdp3::parse_packet(&bytes).unwrap();
    assert_eq!(
        (packet.seq, packet.sending_time),
        (911_525, 1_536_760_536_898_363_329)
    );
    let message = mdp3::parse(packet.messages.next().unwrap()).unwrap();
    assert_eq!(packet.messages.next(), None);
    let Body::OrderBook(mut book) = message.body else {
        panic!("{}", message.name())
    };
    let root = book.root.get();
    assert_eq!(
        (root.transact_time.get(), root.indicator),
        (1_536_760_536_853_618_175, 0x84)
    );
    assert_eq!((book.root.block_length(), book.entries.len()), (11, 1));
    let entry = book.entries.next().unwrap();
    assert_eq!(entry.order_id.get(), Some(76_662_054_355.into()));
    assert_eq!(entry.priority.get(), Some(641_463_012.into()));
    assert_eq!(entry.price.price(), Some("12068".parse().unwrap()));
    assert_eq!(
        (entry.display_qty.get(), entry.security_id.get()),
        (Some(4.into()), 532_259)
    );
    assert_eq!((entry.action, entry.entry_type.0), (0, b'1'));
}

#[test]
fn a_field_newer_than_the_sender_is_null_even_where_padding_lies_under_it() {
    let entry = BookEntry {
        tradeable_size: Some(5.into()).into(),
        ..BookEntry::BLANK
    };
    for (version, expected) in [(9, None), (10, Some(5.into())), (13, Some(5.into()))] {
        let header = MessageHeader {
            block_length: 11.into(),
            template_id: Book::TEMPLATE.into(),
            schema_id: 1.into(),
            version: version.into(),
        };
        let mut bytes = [0; 128];
        let length = MessageBuilder::new(&mut bytes, header, &EventRoot::BLANK)
            .group::<GroupSize, BookEntry>(32, [entry])
            .group::<mdp3::block::GroupSize8Byte, mdp3::OrderEntry>(24, [])
            .finish()
            .unwrap();
        let Body::Book(book) = mdp3::parse(&bytes[2..length]).unwrap().body else {
            panic!()
        };
        assert_eq!(
            book.entries.get(0).unwrap().tradeable_size.get(),
            expected,
            "version {version}"
        );
        assert_eq!(book.entries.get(1), None);
    }
}

#[test]
fn prices_are_exact_and_null_is_no_price() {
    let price = "-37.63".parse().unwrap();
    assert_eq!(Optional(Price9::of(price)).price(), Some(price));
    assert_eq!(Optional::<Price9>::NULL.price(), None);
    assert_eq!(Optional::<Price9>::NULL.as_bytes(), unhex("FFFFFFFFFFFFFF7F"));
    assert_eq!(Optional::<le::U16>::from(None).0.get(), u16::MAX);
}

#[test]
fn every_cut_of_a_packet_is_refused_or_ends_between_messages() {
    for vector in testdata::vectors("mdp3")
        .iter()
        .filter(|v| !v.expect.contains_key("error"))
    {
        for end in 0..vector.bytes.len() {
            let cut = mdp3::parse_packet(&vector.bytes[..end]);
            assert_eq!(
                cut.is_ok(),
                end == mdp3::PacketHeader::SIZE,
                "{} cut to {end}",
                vector.name
            );
        }
        let message = mdp3::parse_packet(&vector.bytes)
            .unwrap()
            .messages
            .next()
            .unwrap();
        for end in 0..message.len() {
            assert!(
                mdp3::parse(&message[..end]).is_err(),
                "{} cut to {end}",
                vector.name
            );
        }
    }
}

#[test]
fn templates_outside_the_table_are_unknown() {
    for id in 0..=300_u16 {
        let mut bytes = [0; 2000];
        bytes[..2].copy_from_slice(&1000_u16.to_le_bytes());
        bytes[2..4].copy_from_slice(&id.to_le_bytes());
        bytes[4] = 1;
        let is_known = Body::TEMPLATES.iter().any(|t| t.id == id);
        assert_eq!(
            mdp3::parse(&bytes).err(),
            (!is_known).then_some(Malformed::UnknownTemplate(id))
        );
        assert_eq!(mdp3::template(&bytes), Some(id));
    }
    assert_eq!(mdp3::template(b"\0\0\0"), None);
}

#[test]
fn replay_requests_are_fix_without_begin_string() {
    let mut buffer = [0; tcp::REQUEST_SIZE_MAX];
    let text = |length: Option<usize>, buffer: &[u8]| {
        let bytes = &buffer[..length.unwrap()];
        let (body, trailer) = bytes.split_at(bytes.len() - 7);
        let sum = body.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b));
        assert_eq!(trailer, format!("10={sum:03}\x01").as_bytes());
        String::from_utf8_lossy(body).replace('\x01', "|")
    };
    let length = tcp::logon(&mut buffer, b"ME", b"SECRET");
    assert_eq!(text(length, &buffer), "9=23|35=A|553=ME|554=SECRET|");
    let length = tcp::market_data_request(&mut buffer, 310, 4, 1_000_000, 1_000_009);
    assert_eq!(
        text(length, &buffer),
        "9=46|35=V|1180=310|262=4|1182=1000000|1183=1000009|"
    );
    let length = tcp::logout(&mut buffer);
    assert_eq!(text(length, &buffer), "9=5|35=5|");
    assert_eq!(tcp::logon(&mut buffer[..30], b"ME", b"SECRET"), None);
}

#[test]
fn a_replay_stream_splits_into_packets_wherever_it_is_cut() {
    let mut packet = [0; 64];
    let mut builder = mdp3::PacketBuilder::new(&mut packet, 9, 1);
    assert!(
        builder.push(|buffer| mdp3::AdminLogin::encode(buffer, &mdp3::AdminLoginRoot { heart_bt_int: 30 }))
    );
    let length = builder.finish();
    let mut stream = [0; 64];
    let framed = tcp::frame(&packet[..length], &mut stream).unwrap();
    for end in 0..framed {
        assert_eq!(tcp::split(&stream[..end]), Ok(None));
    }
    assert_eq!(tcp::split(&stream), Ok(Some((&packet[..length], framed))));
    assert_eq!(
        tcp::split(&[4, 0, 1]),
        Err(Malformed::Length {
            kind: 0,
            expected: 12,
            have: 4
        })
    );
    assert_eq!(tcp::frame(&packet, &mut stream[..32]), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_in_place_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..600), known in any::<prop::sample::Index>(), version in 0_u16..16) {
        if let Some(template) = bytes.first_chunk_mut::<8>() {
            let t = known.get(Body::TEMPLATES);
            for (to, head) in template.chunks_mut(2).zip([t.block_length, t.id, 1, version]) {
                to.copy_from_slice(&head.to_le_bytes());
            }
        }
        if let Ok(message) = mdp3::parse(&bytes) {
            prop_assert!(bytes.ends_with(message.rest));
            shown(|f| message.visit(f));
            let mut again = vec![0; bytes.len() + 2];
            let length = message.encode(&mut again).unwrap();
            prop_assert_eq!(length - 2 + message.rest.len(), bytes.len());
            let reread = mdp3::parse(&again[2..length]).unwrap();
            prop_assert_eq!(shown(|f| reread.visit(f)), shown(|f| message.visit(f)));
        }
    }

    #[test]
    fn messages_of_any_checked_packet_fill_it(bytes in prop::collection::vec(any::<u8>(), 0..80), sizes in prop::collection::vec(10_u16..30, 0..4)) {
        let mut packet = vec![0; 12];
        for size in &sizes {
            packet.extend(size.to_le_bytes());
            packet.extend(vec![7; usize::from(*size) - 2]);
        }
        packet.extend(&bytes);
        if let Ok(parsed) = mdp3::parse_packet(&packet) {
            prop_assert_eq!(12 + parsed.messages.map(|m| m.len() + 2).sum::<usize>(), packet.len());
        }
    }
}
