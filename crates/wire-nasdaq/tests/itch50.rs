//! ITCH 5.0: against hand-made vectors, recorded packets, and a naive decoder driven by the digest's layout
//! table.

#[path = "../../wire-core/tests/support/mod.rs"]
mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use support::{Shown, as_map, shown};
use tickwire_testdata::{self as testdata, hex, unhex};
use tickwire_wire_nasdaq::itch50::{self, Message};
use tickwire_wire_nasdaq::layout::Pod;
use tickwire_wire_nasdaq::{Malformed, moldudp64};

/// Message type to number seen.
type Counts = BTreeMap<char, usize>;

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    let mut seen = Counts::new();
    for mut vector in testdata::vectors("itch50") {
        let name = &vector.name;
        let parsed = itch50::parse(&vector.bytes);
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
        *seen.entry(message.kind().into()).or_default() += 1;
    }
    for &(kind, name, _) in itch50::TYPES {
        assert!(seen.contains_key(&kind.into()), "no vector of {name}");
    }
}

#[tickwire_testdata::recorded_data("specs/nasdaq-itch50.md")]
#[test]
fn the_naive_decoder_agrees_on_every_field_of_every_type_for_any_bytes() {
    let digest = Digest::read();
    assert_eq!(digest.0.len(), 24);
    let mut rng = testdata::Rng::new(50);
    for (&kind, layout) in &digest.0 {
        for _ in 0..500 {
            let mut bytes = vec![0; layout.size];
            rng.fill(&mut bytes);
            bytes[0] = kind;
            digest.check(&bytes);
        }
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq", "specs/nasdaq-itch50.md")]
#[test]
fn recorded_packets_decode_whole_and_encode_back_to_the_same_bytes() {
    let digest = Digest::read();
    let mut counts = Counts::new();
    for folder in [
        "Nasdaq.Equities.TotalView.Itch.v5.0",
        "Nasdaq.Equities.TotalView.Itch.v5.0.20230822",
    ] {
        let folder = testdata::captures("packets/Nasdaq").join(folder);
        testdata::files(&folder, "pcap")
            .iter()
            .for_each(|file| check_capture(file, &digest, &mut counts));
    }
    println!("{counts:?}");
    let expected = [
        ('A', 42),
        ('C', 5),
        ('D', 7),
        ('E', 6),
        ('F', 7),
        ('H', 6),
        ('I', 6),
        ('J', 5),
        ('L', 6),
        ('P', 5),
        ('Q', 5),
        ('S', 1),
        ('U', 6),
        ('X', 5),
        ('Y', 5),
    ];
    assert_eq!(counts, expected.into());
}

#[tickwire_testdata::recorded_data("captures/books/itch-synthetic", "specs/nasdaq-itch50.md")]
#[test]
fn a_generated_session_in_mold_packets_decodes_whole() {
    let mut counts = Counts::new();
    check_capture(
        &testdata::captures("books/itch-synthetic/first3000_mold.pcap"),
        &Digest::read(),
        &mut counts,
    );
    println!("{counts:?}");
    assert_eq!(counts.values().sum::<usize>(), 3000);
}

#[tickwire_testdata::recorded_data(
    "captures/itch-files",
    "captures/books/itch-synthetic",
    "specs/nasdaq-itch50.md"
)]
#[test]
fn offline_files_decode_whole_and_encode_back_to_the_same_bytes() {
    let digest = Digest::read();
    let real = testdata::file_bytes(&testdata::captures("itch-files/real-head-1000.itch"));
    let generated = testdata::file_bytes(&testdata::captures("books/itch-synthetic/synth120k.itch"));
    for (file, messages, expected) in [("real", &real, 1000), ("generated", &generated, 120_001)] {
        let mut counts = Counts::new();
        for message in testdata::framed_messages(messages) {
            assert_eq!(digest.check(message).as_bytes(), message, "{}", hex(message));
            *counts.entry(message[0].into()).or_default() += 1;
        }
        println!("{file}: {counts:?}");
        assert_eq!(counts.values().sum::<usize>(), expected);
    }
}

#[tickwire_testdata::recorded_data("captures/itch-files", "specs/nasdaq-itch50.md")]
#[test]
fn a_file_whose_length_prefix_is_always_zero_can_be_read_by_the_sizes_of_the_types() {
    let digest = Digest::read();
    let bytes = testdata::file_bytes(&testdata::captures("itch-files/ex20101224.TEST_ITCH_50.gz"));
    let (mut rest, mut counts) = (&bytes[..], Counts::new());
    while let [0, 0, message @ ..] = rest {
        let size = digest.check(message).as_bytes().len();
        *counts.entry(message[0].into()).or_default() += 1;
        rest = &message[size..];
    }
    println!("{counts:?}");
    assert_eq!((rest.len(), counts.values().sum::<usize>() > 10_000), (0, true));
}

/// `Nasdaq.Equities.TotalView.Itch.v5.0/AddOrderNoMpidAttributionMessage.pcap`, worked out by hand in the
/// digest.
#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Nasdaq.Equities.TotalView.Itch.v5.0")]
#[test]
fn the_worked_example_of_an_add_order_decodes_field_by_field() {
    let packet = recorded("AddOrderNoMpidAttributionMessage.pcap");
    let packet = moldudp64::parse(&packet).unwrap();
    assert_eq!(
        (&packet.session, packet.seq.0, packet.trailing),
        (b"000010059B", 14_757_721, 0)
    );
    let moldudp64::Payload::Messages(mut blocks) = packet.payload else {
        panic!("no messages")
    };
    let Ok(Message::AddOrder(add)) = itch50::parse(blocks.next().unwrap()) else {
        panic!("no add order")
    };
    assert_eq!(
        (add.locate.get(), add.tracking.get(), add.timestamp.get()),
        (5528, 0, 34_199_999_894_278)
    );
    assert_eq!(
        (add.order_ref.get(), itch50::side(add.side)),
        (23_508_286, Some(tickwire_market::Side::Bid))
    );
    assert_eq!((add.shares.get(), add.stock.trimmed()), (1600, &b"IVOO"[..]));
    assert_eq!(add.price.price(), "87.39".parse().unwrap());
    assert_eq!(blocks.next(), None);
}

/// The digest's second example, an order replace on Nasdaq Texas.
#[test]
fn the_worked_example_of_an_order_replace_decodes_field_by_field() {
    let bytes = unhex("55 1032 0000 1F1ACECF3DA5 000000000024DB06 00000000003608C6 00000064 000DB3D0");
    let Ok(Message::OrderReplace(replace)) = itch50::parse(&bytes) else {
        panic!("no order replace")
    };
    assert_eq!(
        (replace.locate.get(), replace.original_order_ref.get()),
        (4146, 2_415_366)
    );
    assert_eq!(
        (replace.new_order_ref.get(), replace.shares.get()),
        (3_541_190, 100)
    );
    assert_eq!(replace.price.price(), "89.80".parse().unwrap());
}

#[test]
fn an_encoder_sets_type_instrument_and_time_and_leaves_the_rest_blank() {
    let halt = itch50::StockTradingAction {
        trading_state: itch50::TradingState::Halted.into(),
        ..itch50::StockTradingAction::at(7, 34_200_000_000_000)
    };
    assert_eq!(
        hex(halt.as_bytes()),
        "48000700001F1ACED9F000202020202020202048202020 2020".replace(' ', "")
    );
    assert_eq!(
        itch50::parse(halt.as_bytes()),
        Ok(Message::StockTradingAction(&halt))
    );
    let end = itch50::EndOfSnapshot::at(u64::MAX);
    assert_eq!(
        (end.as_bytes(), end.sequence.get()),
        (&b"G18446744073709551615"[..], Some(u64::MAX))
    );
}

#[test]
fn codes_outside_the_specification_mean_nothing() {
    for byte in 0..=u8::MAX {
        let is_known = b"OSQMEC".contains(&byte);
        assert_eq!(
            itch50::EventCode::from_wire(byte).map(|code| code as u8),
            is_known.then_some(byte)
        );
        assert_eq!(
            itch50::side(tickwire_wire_nasdaq::layout::Char(byte)).is_some(),
            b"BS".contains(&byte)
        );
    }
}

#[test]
fn instrument_and_order_are_found_without_parsing() {
    for vector in testdata::vectors("itch50")
        .iter()
        .filter(|v| v.expect.contains_key("MessageType"))
    {
        let field = |name: &str| vector.expect.get(name).map(|text| text.parse::<u64>().unwrap());
        assert_eq!(
            itch50::stock_locate(&vector.bytes).map(u64::from),
            field("StockLocate"),
            "{}",
            vector.name
        );
        let order = match vector.bytes[0] {
            b'P' => None, // a trade is about no displayed order
            _ => field("OrderReferenceNumber").or(field("OriginalOrderReferenceNumber")),
        };
        assert_eq!(itch50::order_reference(&vector.bytes), order, "{}", vector.name);
        assert_eq!(itch50::order_reference(&vector.bytes[..11]), None);
    }
    assert_eq!(
        (itch50::stock_locate(b"A\0"), itch50::order_reference(b"")),
        (None, None)
    );
}

#[test]
fn every_length_below_the_layout_is_truncated_and_every_other_type_unknown() {
    for &(kind, _, size) in itch50::TYPES {
        let mut bytes = vec![b' '; size];
        bytes[0] = kind;
        for have in 1..size {
            let expected = Malformed::Truncated {
                need: size as u16,
                have: have as u16,
            };
            assert_eq!(itch50::parse(&bytes[..have]), Err(expected));
        }
    }
    for kind in 0..=u8::MAX {
        let mut bytes = [0; 64];
        bytes[0] = kind;
        let is_known = itch50::TYPES.iter().any(|&(known, ..)| known == kind);
        assert_eq!(
            itch50::parse(&bytes).err(),
            (!is_known).then_some(Malformed::UnknownType(kind))
        );
    }
    assert_eq!(
        itch50::TYPES.iter().map(|&(_, _, size)| size).max(),
        Some(itch50::MESSAGE_SIZE_MAX)
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_in_place_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..64), known in any::<prop::sample::Index>(), valid: bool) {
        if let (true, Some(kind)) = (valid, bytes.first_mut()) {
            *kind = known.get(itch50::TYPES).0;
        }
        match itch50::parse(&bytes) {
            Ok(message) => {
                prop_assert!(bytes.starts_with(message.as_bytes()));
                prop_assert!(!shown(|f| message.visit(f)).is_empty());
            }
            Err(Malformed::Truncated { need, have }) => prop_assert!(need > have && usize::from(have) == bytes.len()),
            Err(Malformed::UnknownType(kind)) => prop_assert_eq!(kind, bytes[0]),
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }
}

fn recorded(file: &str) -> Vec<u8> {
    let folder = testdata::captures("packets/Nasdaq/Nasdaq.Equities.TotalView.Itch.v5.0");
    testdata::pcap_payloads(&folder.join(file)).remove(0)
}

fn check_capture(file: &Path, digest: &Digest, counts: &mut Counts) {
    for payload in testdata::pcap_payloads(file) {
        let name = file.display();
        let packet = moldudp64::parse(&payload).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(packet.trailing, 0, "{name}");
        let moldudp64::Payload::Messages(blocks) = packet.payload else {
            continue;
        };
        let mut buffer = vec![0; payload.len()];
        let mut builder = moldudp64::PacketBuilder::new(&mut buffer, packet.session, packet.seq);
        for block in blocks {
            let message = digest.check(block);
            assert_eq!(message.as_bytes(), block, "{name}: longer than the layout");
            assert!(builder.push(message.as_bytes()));
            *counts.entry(message.kind().into()).or_default() += 1;
        }
        assert_eq!(builder.finish(), payload.len(), "{name}");
        assert_eq!(hex(&buffer), hex(&payload), "{name}");
    }
}

/// The layout table of `specs/nasdaq-itch50.md`: type to size and rows of (offset, length, type).
struct Digest(BTreeMap<u8, Layout>);

struct Layout {
    size: usize,
    rows: Vec<(usize, usize, String)>,
}

impl Digest {
    fn read() -> Digest {
        let text = std::fs::read_to_string(testdata::specs("nasdaq-itch50.md")).unwrap();
        let table = text
            .split("## Messages")
            .nth(1)
            .unwrap()
            .split("## ")
            .next()
            .unwrap();
        let mut layouts: BTreeMap<u8, Layout> = table.lines().filter_map(Layout::of_table_line).collect();
        let snapshot_end = vec![row("0:1:c"), row("1:20:a20")];
        layouts.insert(
            b'G',
            Layout {
                size: 21,
                rows: snapshot_end,
            },
        );
        Digest(layouts)
    }

    /// Decodes with both decoders, compares field by field, and gives the message.
    fn check<'a>(&self, bytes: &'a [u8]) -> Message<'a> {
        let message = itch50::parse(bytes).unwrap_or_else(|e| panic!("{e}: {}", hex(bytes)));
        let layout = &self.0[&bytes[0]];
        assert_eq!(message.as_bytes().len(), layout.size, "{}", message.name());
        let fields: Shown = shown(|f| message.visit(f));
        assert_eq!(fields.len(), layout.rows.len(), "{}", message.name());
        for ((field, value), (offset, length, kind)) in fields.iter().zip(&layout.rows) {
            let naive = naive_value(&bytes[*offset..offset + length], kind);
            assert_eq!(value, &naive, "{} {field} in {}", message.name(), hex(bytes));
        }
        message
    }
}

impl Layout {
    /// From `| D | Order Delete | 19 | 11:8:u64 OrderRef |`; the prefix of all messages is added.
    fn of_table_line(line: &str) -> Option<(u8, Layout)> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, kind, _, size, layout, _] = cells[..] else {
            return None;
        };
        let size = size.parse().ok()?;
        let mut rows = vec![row("0:1:c"), row("1:2:u16"), row("3:2:u16"), row("5:6:u48")];
        rows.extend(
            layout
                .split('·')
                .map(|cell| row(cell.trim().split(' ').next().unwrap())),
        );
        let contiguous = rows.iter().fold(0, |end, (offset, length, _)| {
            assert_eq!(*offset, end, "{line}");
            end + length
        });
        assert_eq!(contiguous, size, "{line}");
        Some((kind.as_bytes()[0], Layout { size, rows }))
    }
}

fn row(text: &str) -> (usize, usize, String) {
    let parts: Vec<&str> = text.split(':').collect();
    (
        parts[0].parse().unwrap(),
        parts[1].parse().unwrap(),
        parts[2].to_string(),
    )
}

fn naive_value(bytes: &[u8], kind: &str) -> String {
    let number = bytes.iter().fold(0_u128, |n, b| n << 8 | u128::from(*b));
    let ascii = |bytes: &[u8]| bytes.escape_ascii().to_string();
    match kind {
        "c" => ascii(bytes),
        "p4" => format!("{}.{:04}", number / 10_000, number % 10_000),
        "p8" => format!("{}.{:08}", number / 100_000_000, number % 100_000_000),
        "u16" | "u32" | "u48" | "u64" => number.to_string(),
        text if text.starts_with('a') => {
            let end = bytes
                .iter()
                .rposition(|b| *b != b' ' && *b != 0)
                .map_or(0, |last| last + 1);
            ascii(&bytes[..end])
        }
        other => panic!("the digest has a type {other}"),
    }
}
