//! Cboe Multicast PITCH: against hand-made vectors, recorded packets, and a naive decoder driven by the
//! digest's tables.

#[path = "../../wire-core/tests/support/mod.rs"]
mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{Shown, as_map, shown};
use tickwire_market::Side;
use tickwire_testdata::{self as testdata, hex, unhex};
use tickwire_wire_cboe::layout::Char;
use tickwire_wire_cboe::layout::Pod;
use tickwire_wire_cboe::pitch::{self, Message, PacketBuilder, complex, futures, options};
use tickwire_wire_cboe::{Malformed, pitch::UnitHeader};

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    let mut seen = BTreeMap::new();
    for mut vector in testdata::vectors("pitch") {
        let name = &vector.name;
        let parsed = pitch::parse(&vector.bytes);
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
        *seen.entry(message.kind()).or_insert(0) += 1;
    }
    for &(kind, name, _) in pitch::TYPES {
        assert!(seen.get(&kind) >= Some(&3), "too few vectors of {name}");
    }
}

#[test]
fn every_block_is_walked_as_its_vector_says_and_built_again() {
    for vector in testdata::vectors("pitch_unit") {
        let name = &vector.name;
        let parsed = pitch::packet(&vector.bytes);
        if let Some(error) = vector.expect.get("error") {
            assert_eq!(&format!("{:?}", parsed.unwrap_err()), error, "{name}");
            continue;
        }
        let packet = parsed.unwrap_or_else(|e| panic!("{name}: {e}"));
        let messages: Vec<&str> = packet
            .messages
            .clone()
            .map(|m| pitch::parse(m).unwrap().name())
            .collect();
        let found = [
            ("unit", packet.unit.to_string()),
            ("sequence", packet.sequence.to_string()),
            ("next_sequence", packet.next_sequence().to_string()),
            ("messages", messages.join(" ")),
            ("trailing", packet.trailing.to_string()),
        ];
        assert_eq!(
            found
                .map(|(key, value)| (key.to_string(), value))
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            vector.expect,
            "{name}"
        );
        let own = vector.bytes.len() - usize::from(packet.trailing);
        assert_eq!(rebuilt(&packet), vector.bytes[..own], "{name}");
    }
}

#[tickwire_testdata::recorded_data("specs/cboe-pitch.md")]
#[test]
fn the_naive_decoder_agrees_on_every_field_of_every_type_for_any_bytes() {
    let digest = Digest::read();
    assert_eq!(
        digest.0.keys().copied().collect::<Vec<u8>>(),
        sorted(pitch::TYPES.iter().map(|t| t.0))
    );
    let mut rng = testdata::Rng::new(241);
    for (&kind, layout) in &digest.0 {
        for _ in 0..500 {
            let mut bytes = vec![0; layout.size];
            rng.fill(&mut bytes);
            (bytes[0], bytes[1]) = (layout.size as u8, kind);
            digest.check(&bytes);
        }
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Cboe", "specs/cboe-pitch.md")]
#[test]
fn recorded_packets_decode_whole_and_encode_back_to_the_same_bytes() {
    let digest = Digest::read();
    let families: [(&str, &[&str], Reader); 4] = [
        ("equities", &["Byx.Equities.DepthOfBook.Pitch.v2.41"], |m| {
            pitch::parse(m).map(|m| (m.as_bytes(), m.name()))
        }),
        ("options", &["Options.DepthOfBook.Pitch.v2.39.4"], |m| {
            options::parse(m).map(|m| (m.as_bytes(), m.name()))
        }),
        ("complex", &["Options.ComplexDepthOfBook.Pitch.v2.1.18"], |m| {
            complex::parse(m).map(|m| (m.as_bytes(), m.name()))
        }),
        (
            "futures",
            &[
                "Futures.DepthOfBook.Pitch.v1.1.6",
                "Futures.DepthOfBook.Pitch.v1.1.12",
            ],
            |m| futures::parse(m).map(|m| (m.as_bytes(), m.name())),
        ),
    ];
    let mut counts = BTreeMap::new();
    for (family, folders, read) in families {
        for file in folders
            .iter()
            .flat_map(|folder| testdata::files(&testdata::captures("packets/Cboe").join(folder), "pcap"))
        {
            let name = file.display();
            for payload in testdata::pcap_payloads(&file) {
                let packet = pitch::packet(&payload).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(packet.trailing, 0, "{name}");
                if packet.messages.len() == 0 {
                    *counts.entry((family, "Heartbeat".to_string())).or_insert(0) += 1;
                }
                for message in packet.messages.clone() {
                    let (own, shown) = read(message).unwrap_or_else(|e| panic!("{name}: {e}"));
                    let legs = match shown {
                        "ComplexInstrumentDefinition" => complex::legs(message).count() * 13,
                        // Four bytes between are new in 1.1.12.
                        "FutureInstrumentDefinition" if message.len() > own.len() => {
                            4 + futures::legs(message).count() * 10
                        }
                        _ => 0,
                    };
                    assert!(message.starts_with(own), "{name}");
                    assert_eq!(message.len(), own.len() + legs, "{name}: longer than the layout");
                    if family == "equities" {
                        digest.check(message);
                    }
                    *counts.entry((family, shown.to_string())).or_insert(0) += 1;
                }
                assert_eq!(hex(&rebuilt(&packet)), hex(&payload), "{name}");
            }
        }
    }
    let counts: Vec<String> = counts
        .into_iter()
        .map(|((f, n), c)| format!("{f} {n}: {c}"))
        .collect();
    println!("{counts:#?}");
    assert_eq!(
        counts,
        [
            "complex AddOrderShort: 1",
            "complex AuctionCancel: 1",
            "complex AuctionNotification: 1",
            "complex AuctionUpdate: 1",
            "complex ComplexInstrumentDefinition: 1",
            "complex DeleteOrder: 2",
            "complex Heartbeat: 1",
            "complex ModifyShort: 1",
            "complex OrderExecuted: 1",
            "complex SymbolMapping: 1",
            "complex Time: 1",
            "equities AddOrderShort: 7",
            "equities ModifyShort: 1",
            "equities Time: 2",
            "futures AddOrderShort: 1",
            "futures DeleteOrder: 1",
            "futures FutureInstrumentDefinition: 2",
            "futures Heartbeat: 1",
            "futures ModifyShort: 2",
            "futures Time: 1",
            "futures TradingStatus: 16",
            "options AddOrderLong: 1",
            "options DeleteOrder: 1",
            "options Heartbeat: 1",
            "options ModifyLong: 1",
            "options Time: 3",
        ]
    );
}

/// `MultipleMessages.pcap`, worked out by hand in the digest.
#[test]
fn the_worked_example_decodes_field_by_field() {
    let bytes = unhex(
        "4200 03 1F 9E8B0000 0620 98850000 1A22 50810B00 D9C2CDC18AB20439 42 0820 59414E472020 6D04 01
         1A22 A0C70B00 DAC2CDC18AB20439 42 6400 5853564E2020 3B12 01",
    );
    let packet = pitch::packet(&bytes).unwrap();
    assert_eq!(
        (
            packet.unit,
            packet.sequence,
            packet.next_sequence(),
            packet.trailing
        ),
        (31, 35_742, 35_745, 0)
    );
    let messages: Vec<Message<'_>> = packet.messages.map(|m| pitch::parse(m).unwrap()).collect();
    let [
        Message::Time(time),
        Message::AddOrderShort(first),
        Message::AddOrderShort(second),
    ] = messages[..]
    else {
        panic!("{messages:?}")
    };
    assert_eq!(time.seconds.get(), 34_200);
    assert_eq!(
        (first.time_offset.get(), first.order_id.get(), first.qty.get()),
        (754_000, 4_108_605_069_095_453_401, 8200)
    );
    assert_eq!(
        (
            pitch::side(first.side),
            first.symbol.trimmed(),
            first.price.price()
        ),
        (Some(Side::Bid), &b"YANG"[..], "11.33".parse().unwrap())
    );
    assert_eq!(first.flags, pitch::add_flags::DISPLAYED);
    assert_eq!(
        (second.time_offset.get(), second.order_id.get(), second.qty.get()),
        (772_000, 4_108_605_069_095_453_402, 100)
    );
    assert_eq!(
        (second.symbol.trimmed(), second.price.price()),
        (&b"XSVN"[..], "46.67".parse().unwrap())
    );
}

/// The digest's second example, a modification that resets priority.
#[test]
fn the_worked_example_of_a_modification_decodes_field_by_field() {
    let bytes = unhex("1B00 01 0B F3DB0100 1328 480DC819 97EDCC44B2697C14 6400 E30A 01");
    let mut packet = pitch::packet(&bytes).unwrap();
    assert_eq!((packet.unit, packet.sequence), (11, 121_843));
    let Ok(Message::ModifyOrderShort(modify)) = pitch::parse(packet.messages.next().unwrap()) else {
        panic!("no modification")
    };
    assert_eq!(
        (modify.time_offset.get(), modify.order_id.get(), modify.qty.get()),
        (432_541_000, 1_476_170_992_250_056_087, 100)
    );
    assert_eq!(modify.price.price(), "27.87".parse().unwrap());
    assert_eq!(modify.flags & pitch::modify_flags::KEEPS_PRIORITY, 0);
}

#[test]
fn a_futures_time_message_tells_its_epoch() {
    let bytes = unhex("0A20 95EB0000 6513CA5C");
    let Ok(futures::Message::Time(time)) = futures::parse(&bytes) else {
        panic!("no time")
    };
    // 16:45:09 in Chicago on 2019-05-01 is 21:45:09 UTC.
    assert_eq!(
        (time.seconds.get(), time.epoch_seconds.get()),
        (60_309, 1_556_747_109)
    );
}

/// Types that equities do not have.
const ONLY_ELSEWHERE: [u8; 6] = [0x2E, 0x9A, 0xAD, 0xAE, 0xBB, 0xD1];

/// Recorded messages, read by hand.
#[test]
fn definitions_and_auctions_of_options_and_futures_show_their_fields() {
    type Show = fn(&[u8]) -> Shown;
    let of_options: Show = |m| shown(|f| options::parse(m).unwrap().visit(f));
    let of_complex: Show = |m| shown(|f| complex::parse(m).unwrap().visit(f));
    let of_futures: Show = |m| shown(|f| futures::parse(m).unwrap().visit(f));
    let cases: [(Show, &str, &str); 7] = [
        (
            of_options,
            "262E 303237777545 535058202020323030363139503030353030303030 4E 5350582020202020",
            "027wuE|SPX   200619P00500000|N|SPX",
        ),
        (
            of_complex,
            "339A 00000000 54303175566A 5350582020202020 4F 202020 02 30323146587A2020 01000000 4F
             3032314658762020 FFFFFFFF 4F",
            "0|T01uVj|SPX|O||2",
        ),
        (
            of_complex,
            "2FAD 08CE303A 5430324B4543 F2EA1DD12ED5983C 43 42 0000000000000000 01000000 4E 20202020 0898CB75
             20202020",
            "976277000|T02KEC|4366474235789306610|C|B|0.0000|1|N||1976277000|",
        ),
        (
            of_options,
            "0EAE 90E0C839 7416B1D02ED5983C",
            "969466000|4366474235782174324",
        ),
        (
            of_complex,
            "1328 1CE40600 F2EA1DD12ED5983C 0100 CFA9 01",
            "451612|4366474235789306610|1|-220.65|1",
        ),
        (
            of_options,
            "40D1 685DF120 5430323671 4C2020 47 0000000000000000 00000000 00000000 0000000000000000
             0000000000000000 20 0000000000000000 0000000000000000",
            "552689000|T026qL|G|0.0000|0|0|0.0000|0.0000| |0.0000|0.0000",
        ),
        (
            of_futures,
            "29BB 98829F22 303030325474 2D0BCA5C 5A56414F2020 00 AB3C3401 0100 54 F401000000000000 00 00 00",
            "580879000|0002Tt|1556745005|ZVAO|0|20200619|1|T|0.0500|0|0|0",
        ),
    ];
    for (show, bytes, expected) in cases {
        let fields = show(&unhex(bytes));
        let values: Vec<String> = fields[2..].iter().map(|(_, value)| value.clone()).collect();
        assert_eq!(values.join("|"), expected, "{bytes}");
    }
    let strategy = unhex(cases[1].1);
    let legs: Vec<_> = complex::legs(&strategy)
        .map(|leg| (leg.symbol.trimmed(), leg.ratio.get(), leg.security_type.0))
        .collect();
    assert_eq!(legs, [(&b"021FXz"[..], 1, b'O'), (b"021FXv", -1, b'O')]);
    let spread = unhex(
        "41BB E85D9D0D 30303034796A CFAA2560 5A414D423120 00 7D623401 3200 54 C409000000000000 02 2D 00 00000000
         FFFFFFFF 303030345239 01000000 30303034795A",
    );
    let legs: Vec<_> = futures::legs(&spread)
        .map(|leg| (leg.ratio.get(), leg.symbol.trimmed()))
        .collect();
    assert_eq!(legs, [(-1, &b"0004R9"[..]), (1, b"0004yZ")]);
    // Cut off, and counts that lie.
    assert_eq!(complex::legs(&strategy[..40]).count(), 1);
    assert_eq!(futures::legs(&spread[..60]).count(), 1);
    assert_eq!(complex::legs(b"").count() + futures::legs(b"").count(), 0);
}

#[test]
fn the_families_take_the_sizes_of_their_own_layouts() {
    for (types, expected) in [
        (
            options::TYPES,
            &[
                (0x2F, 45),
                (0x23, 27),
                (0x24, 39),
                (0x2A, 42),
                (0x2B, 34),
                (0x30, 44),
            ][..],
        ),
        (futures::TYPES, &[(0x20, 10), (0x22, 25), (0x28, 18)][..]),
    ] {
        for &(kind, name, size) in types {
            let Some(equities) = pitch::TYPES.iter().find(|t| t.0 == kind) else {
                assert!(ONLY_ELSEWHERE.contains(&kind), "{name}");
                continue;
            };
            assert_eq!(name, equities.1);
            let own = expected.iter().find(|t| t.0 == kind);
            assert_eq!(size, own.map_or(equities.2, |t| t.1), "{name}");
        }
    }
    let executed = unhex("1B23 803AB21A CBB6ADD02ED5983C 01000000 DCCE14E85A020000 66");
    let Ok(options::Message::OrderExecuted(executed)) = options::parse(&executed) else {
        panic!("no execution")
    };
    assert_eq!((executed.executed_qty.get(), executed.condition), (1, Char(b'f')));
}

#[test]
fn numbers_roll_over_without_a_zero() {
    assert_eq!(pitch::after(1, 0), 1);
    assert_eq!(pitch::after(u32::MAX, 0), u32::MAX);
    assert_eq!(pitch::after(u32::MAX, 1), 1);
    assert_eq!(pitch::after(u32::MAX - 1, 3), 2);
    assert_eq!(pitch::before(1), u32::MAX);
    assert_eq!(pitch::before(2), 1);
    let mut rng = testdata::Rng::new(8);
    for _ in 0..10_000 {
        let at = (rng.next_u64() as u32).max(1);
        assert_eq!(pitch::before(pitch::after(at, 1)), at);
        assert_eq!(pitch::after(pitch::after(at, 7), 250), pitch::after(at, 257));
    }
}

#[test]
fn execution_and_order_numbers_show_as_on_the_screens_of_the_venue() {
    assert_eq!(&pitch::base36::<12>(0x0B1D_568F_775B_4005), b"631WC4000005");
    assert_eq!(&pitch::base36::<9>(35), b"00000000Z");
    for (class, id) in [
        (b'0', 35),
        (b'1', 36_u64.pow(8)),
        (b'C', 12 * 36_u64.pow(8) + 7),
        (b'R', 27 * 36_u64.pow(8)),
    ] {
        assert_eq!(pitch::execution_class(id), Some(class));
        assert_eq!(pitch::base36::<9>(id)[0], class);
    }
    assert_eq!(pitch::execution_class(36_u64.pow(9)), None);
}

#[test]
fn order_and_symbol_are_found_without_parsing() {
    for vector in testdata::vectors("pitch") {
        let Ok(message) = pitch::parse(&vector.bytes) else {
            continue;
        };
        let fields: BTreeMap<_, _> = shown(|f| message.visit(f)).into_iter().collect();
        let key = pitch::symbol_key(&vector.bytes).map(u64::to_be_bytes);
        let symbol = key
            .as_ref()
            .map(|key| String::from_utf8_lossy(key).trim_end().to_string());
        assert_eq!(symbol.as_ref(), fields.get("Symbol"), "{}", vector.name);
        let is_trade = message.name().starts_with("Trade"); // the order of a trade is no resting one
        let order = fields
            .get("OrderId")
            .filter(|_| !is_trade)
            .map(|id| id.parse().unwrap());
        assert_eq!(pitch::order_id(&vector.bytes), order, "{}", vector.name);
        for short in 0..vector.bytes.len() {
            let _ = (
                pitch::symbol_key(&vector.bytes[..short]),
                pitch::order_id(&vector.bytes[..short]),
            );
        }
    }
}

#[test]
fn codes_outside_the_specification_mean_nothing() {
    for byte in 0..=u8::MAX {
        assert_eq!(pitch::side(Char(byte)).is_some(), b"BS".contains(&byte));
        assert_eq!(pitch::Status::from_wire(byte).is_some(), b"AHQST".contains(&byte));
        assert_eq!(
            pitch::AuctionType::from_wire(byte).is_some(),
            b"OCHIMPV".contains(&byte)
        );
        assert_eq!(
            pitch::GapStatus::from_wire(byte).is_some(),
            b"AODMSCIU".contains(&byte)
        );
        assert_eq!(
            pitch::LoginStatus::from_wire(byte).is_some(),
            b"ANBS".contains(&byte)
        );
        assert_eq!(
            pitch::SpinStatus::from_wire(byte).is_some(),
            b"AOS".contains(&byte)
        );
    }
    assert_eq!(pitch::side(pitch::side_char(Side::Ask)), Some(Side::Ask));
}

#[test]
fn every_other_type_is_unknown() {
    for kind in 0..=u8::MAX {
        let mut bytes = [0; 64];
        (bytes[0], bytes[1]) = (64, kind);
        let is_known = pitch::TYPES.iter().any(|&(known, ..)| known == kind);
        assert_eq!(
            pitch::parse(&bytes).err(),
            (!is_known).then_some(Malformed::UnknownType(kind))
        );
    }
    assert_eq!(
        pitch::TYPES.iter().map(|&(_, _, size)| size).max(),
        Some(pitch::MESSAGE_SIZE_MAX)
    );
}

#[test]
fn a_builder_refuses_what_does_not_fit_and_what_lies_about_its_length() {
    let message = pitch::Time {
        seconds: 34_200.into(),
        ..pitch::Time::BLANK_MESSAGE
    };
    let mut buffer = [0; 8 + 6 + 5];
    let mut builder = PacketBuilder::new(&mut buffer, 1, 7);
    assert!(!builder.push(b""));
    assert!(!builder.push(b"\x01"));
    assert!(!builder.push(b"\x05\x20\x00\x00\x00\x00"));
    assert!(builder.push(message.as_bytes()));
    assert!(!builder.push(message.as_bytes()));
    assert_eq!((builder.count(), builder.finish()), (1, 14));
    let mut buffer = [0; 4096];
    let mut builder = PacketBuilder::new(&mut buffer, 1, 7);
    let pushed = (0..300).filter(|_| builder.push(message.as_bytes())).count();
    assert_eq!(pushed, usize::from(pitch::MESSAGES_MAX));
    let length = builder.finish();
    assert_eq!(pitch::packet(&buffer[..length]).unwrap().messages.count(), pushed);
}

#[test]
fn a_stream_is_split_into_blocks_wherever_it_is_cut() {
    let blocks: Vec<Vec<u8>> = testdata::vectors("pitch_unit")
        .into_iter()
        .filter(|v| v.expect.get("trailing").is_some_and(|t| t == "0"))
        .map(|v| v.bytes)
        .collect();
    let stream = blocks.concat();
    for cut in 0..=stream.len() {
        let (mut at, mut found) = (0, 0);
        for end in [cut, stream.len()] {
            while let Some((packet, length)) = pitch::split(&stream[at..end]).unwrap() {
                assert_eq!(rebuilt(&packet), blocks[found]);
                (at, found) = (at + length, found + 1);
            }
        }
        assert_eq!((at, found), (stream.len(), blocks.len()));
    }
    assert!(pitch::split(b"\x07\x00\x00\x00\x00\x00\x00\x00").is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_in_place_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..64), known in any::<prop::sample::Index>(), valid: bool) {
        if let (true, [length, kind, ..]) = (valid, &mut bytes[..]) {
            let (of, _, size) = *known.get(pitch::TYPES);
            (*length, *kind) = (size as u8, of);
        }
        let _ = (options::parse(&bytes), futures::parse(&bytes), pitch::order_id(&bytes), pitch::symbol_key(&bytes));
        match pitch::parse(&bytes) {
            Ok(message) => {
                prop_assert!(bytes.starts_with(message.as_bytes()));
                prop_assert!(shown(|f| message.visit(f)).len() > 2);
            }
            Err(Malformed::Truncated { need, have }) => prop_assert!(need > have && usize::from(have) == bytes.len()),
            Err(Malformed::Length { expected, have, .. }) => prop_assert!(expected > have && have == bytes[0].into()),
            Err(Malformed::UnknownType(kind)) => prop_assert_eq!(kind, bytes[1]),
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn what_is_consumed_and_what_is_left_make_up_a_block(mut bytes in prop::collection::vec(0_u8..12, 0..96), fits: bool) {
        if let (true, true) = (fits, bytes.len() >= UnitHeader::SIZE) {
            bytes[0] = bytes.len() as u8;
            bytes[1] = 0;
        }
        if let Ok(packet) = pitch::packet(&bytes) {
            let count = packet.messages.len();
            let messages: Vec<&[u8]> = packet.messages.clone().collect();
            prop_assert_eq!(messages.len(), count);
            prop_assert_eq!(UnitHeader::SIZE + messages.concat().len() + usize::from(packet.trailing), bytes.len());
            prop_assert_eq!(rebuilt(&packet), &bytes[..bytes.len() - usize::from(packet.trailing)]);
            let (_, consumed) = pitch::split(&bytes).unwrap().unwrap();
            prop_assert_eq!(consumed + usize::from(packet.trailing), bytes.len());
        }
    }
}

type Reader = fn(&[u8]) -> Result<(&[u8], &'static str), Malformed>;

fn rebuilt(packet: &pitch::Packet<'_>) -> Vec<u8> {
    let mut bytes = vec![0; 65_535];
    let mut builder = PacketBuilder::new(&mut bytes, packet.unit, packet.sequence);
    packet
        .messages
        .clone()
        .for_each(|message| assert!(builder.push(message)));
    let length = builder.finish();
    bytes.truncate(length);
    bytes
}

fn sorted(kinds: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut kinds: Vec<u8> = kinds.collect();
    kinds.sort_unstable();
    kinds
}

/// The layout tables of `specs/cboe-pitch.md`: type to size and rows of (offset, length, type, name).
struct Digest(BTreeMap<u8, Layout>);

struct Layout {
    size: usize,
    rows: Vec<Row>,
}

struct Row {
    offset: usize,
    length: usize,
    kind: String,
    name: String,
}

impl Digest {
    fn read() -> Digest {
        let text = std::fs::read_to_string(testdata::specs("cboe-pitch.md")).unwrap();
        Digest(text.lines().filter_map(Layout::of_table_line).collect())
    }

    /// Decodes with both decoders, compares field by field, and gives the message.
    fn check<'a>(&self, bytes: &'a [u8]) -> Message<'a> {
        let message = pitch::parse(bytes).unwrap_or_else(|e| panic!("{e}: {}", hex(bytes)));
        let layout = &self.0[&bytes[1]];
        assert_eq!(message.as_bytes().len(), layout.size, "{}", message.name());
        let fields: Shown = shown(|f| message.visit(f));
        assert_eq!(fields.len(), layout.rows.len(), "{}", message.name());
        for ((field, value), row) in fields.iter().zip(&layout.rows) {
            assert_eq!(*field, row.name, "{}", message.name());
            let naive = naive_value(&bytes[row.offset..row.offset + row.length], &row.kind);
            assert_eq!(value, &naive, "{} {field} in {}", message.name(), hex(bytes));
        }
        message
    }
}

impl Layout {
    /// From `| 0x29 | Delete Order | 14 | 2:4:u32 TimeOffset · 6:8:u64 OrderId |`; length and type are added.
    fn of_table_line(line: &str) -> Option<(u8, Layout)> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, kind, _, size, layout, _] = cells[..] else {
            return None;
        };
        let kind = u8::from_str_radix(kind.strip_prefix("0x")?, 16).ok()?;
        let size = size.parse().ok()?;
        let cells = ["0:1:u8 Length", "1:1:u8 Type"]
            .into_iter()
            .chain(layout.split('·'));
        let rows: Vec<Row> = cells.map(|cell| Row::of(cell.trim())).collect();
        let contiguous = rows.iter().fold(0, |end, row| {
            assert_eq!(row.offset, end, "{line}");
            end + row.length
        });
        assert_eq!(contiguous, size, "{line}");
        Some((kind, Layout { size, rows }))
    }
}

impl Row {
    fn of(cell: &str) -> Row {
        let (layout, name) = cell.split_once(' ').unwrap();
        let parts: Vec<&str> = layout.split(':').collect();
        Row {
            offset: parts[0].parse().unwrap(),
            length: parts[1].parse().unwrap(),
            kind: parts[2].to_string(),
            name: name.to_string(),
        }
    }
}

fn naive_value(bytes: &[u8], kind: &str) -> String {
    let number = bytes.iter().rev().fold(0_u128, |n, b| n << 8 | u128::from(*b));
    let ascii = |bytes: &[u8]| bytes.escape_ascii().to_string();
    match kind {
        "c" => ascii(bytes),
        "ps2" => format!("{}.{:02}", number / 100, number % 100),
        "pl8" => format!("{}.{:04}", number / 10_000, number % 10_000),
        "u8" | "u16" | "u32" | "u64" | "bf" => number.to_string(),
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

/// The dissector of the recording's own version reads these bytes so (`cargo xtask oracle`).
#[tickwire_testdata::recorded_data("captures/packets/Cboe/Futures.DepthOfBook.Pitch.v1.1.6")]
#[test]
fn a_trading_status_of_futures_has_a_symbol_of_six_bytes() {
    let file = testdata::captures("packets/Cboe/Futures.DepthOfBook.Pitch.v1.1.6/TradingStatusMessage.pcap");
    let payload = testdata::pcap_payloads(&file).remove(0);
    let packet = pitch::packet(&payload).unwrap();
    let message = packet.messages.clone().next().unwrap();
    let futures::Message::TradingStatus(status) = futures::parse(message).unwrap() else {
        panic!("{}", hex(message));
    };
    assert_eq!(status.symbol.0, *b"0003Gc");
    assert_eq!((status.reserved1.0, status.reserved2.0), (*b"  ", *b"0  "));
}
