//! OUCH 5.0: vectors, recorded sessions, and a naive decoder driven by the digest's layout tables.

#[path = "../../wire-core/tests/support/mod.rs"]
mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{Shown, as_map, shown};
use tickwire_testdata::{self as testdata, hex};
use tickwire_wire_nasdaq::layout::Pod;
use tickwire_wire_nasdaq::ouch50::{
    self, Appendage, EnterOrder, INBOUND_TYPES, Inbound, MESSAGE_SIZE_MAX, OUTBOUND_TYPES, OptionTag,
    Options, Outbound, encode, parse_inbound, parse_outbound,
};
use tickwire_wire_nasdaq::soupbintcp::{Packet, split};
use tickwire_wire_nasdaq::{Malformed, layout::Alpha};

/// Name, fields, options, layout, and whether the length of the appendage is always there.
type Read<'a> = (&'static str, Shown, Options<'a>, &'a [u8], bool);

fn read(bytes: &[u8], is_inbound: bool) -> Result<Read<'_>, Malformed> {
    if is_inbound {
        let (m, options) = parse_inbound(bytes)?;
        let fields = shown(|f| m.visit(f));
        Ok((m.name(), fields, options, m.as_bytes(), m.always_has_appendage()))
    } else {
        let (m, options) = parse_outbound(bytes)?;
        let fields = shown(|f| m.visit(f));
        Ok((m.name(), fields, options, m.as_bytes(), m.always_has_appendage()))
    }
}

/// Written again from what was read.
fn written(read: &Read<'_>, had_appendage: bool) -> Vec<u8> {
    let mut bytes = read.3.to_vec();
    if read.4 || had_appendage {
        bytes.extend_from_slice(&(read.2.as_bytes().len() as u16).to_be_bytes());
        bytes.extend_from_slice(read.2.as_bytes());
    }
    bytes
}

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    for mut vector in testdata::vectors("ouch50") {
        let name = vector.name.clone();
        let is_inbound = vector.expect.remove("direction").as_deref() == Some("in");
        let read = read(&vector.bytes, is_inbound);
        if let Some(error) = vector.expect.get("error") {
            assert_eq!(&format!("{:?}", read.unwrap_err()), error, "{name}");
            continue;
        }
        let read = read.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(
            Some(read.0.to_string()),
            vector.expect.remove("message"),
            "{name}"
        );
        let mut fields = read.1.clone();
        fields.extend(shown(|f| read.2.visit(f)));
        assert_eq!(as_map(fields), vector.expect, "{name}");
        let had = vector.bytes.len() > read.3.len();
        assert_eq!(hex(&written(&read, had)), hex(&vector.bytes), "{name}");
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Nasdaq.Nsm.Ouch.v5.0")]
#[test]
fn recorded_sessions_decode_whole_and_encode_back_to_the_same_bytes() {
    let folder = testdata::captures("packets/Nasdaq/Nasdaq.Nsm.Ouch.v5.0");
    let mut seen = BTreeMap::new();
    for file in testdata::files(&folder, "pcap") {
        for segment in testdata::pcap_tcp_payloads(&file) {
            let mut rest = &segment[..];
            while let Some((packet, length)) = split(rest).unwrap() {
                rest = &rest[length..];
                let (message, is_inbound) = match packet {
                    Packet::Unsequenced(message) => (message, true),
                    Packet::Sequenced(message) => (message, false),
                    other => {
                        *seen.entry(other.name()).or_insert(0) += 1;
                        continue;
                    }
                };
                let read = read(message, is_inbound).unwrap();
                assert_eq!(hex(&written(&read, false)), hex(message));
                *seen.entry(read.0).or_insert(0) += 1;
            }
            assert!(rest.is_empty(), "{}", file.display());
        }
    }
    let expected = [
        ("CancelOrder", 1),
        ("ClientHeartbeat", 1),
        ("EnterOrder", 1),
        ("OrderAccepted", 1),
        ("OrderCanceled", 1),
        ("ServerHeartbeat", 1),
    ];
    assert_eq!(seen, expected.into());
}

/// Offset, length, kind.
type Row = (usize, usize, String);

/// Whether inbound, type, size and rows of every layout in the digest.
fn digest() -> Vec<(bool, u8, usize, Vec<Row>)> {
    let text = std::fs::read_to_string(testdata::specs("nasdaq-ouch50.md")).unwrap();
    let mut is_inbound = true;
    let mut layouts = Vec::new();
    for line in text.lines() {
        if line.starts_with("## ") {
            is_inbound = line.contains("Inbound");
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, kind, _, size, layout, _] = cells[..] else {
            continue;
        };
        let ([kind], Ok(size)) = (kind.as_bytes(), size.trim_end_matches('+').parse::<usize>()) else {
            continue;
        };
        let rows: Vec<_> = layout
            .split('·')
            .map(|cell| {
                let (place, name) = cell.trim().split_once(' ').unwrap();
                let parts: Vec<&str> = place.split(':').collect();
                let kind = if name == "AppendageLength" {
                    "tail"
                } else {
                    parts[2]
                };
                (
                    parts[0].parse().unwrap(),
                    parts[1].parse().unwrap(),
                    kind.to_string(),
                )
            })
            .collect();
        layouts.push((is_inbound, *kind, size, rows));
    }
    layouts
}

fn naive(bytes: &[u8], kind: &str) -> String {
    let number = bytes.iter().fold(0_u128, |n, b| n << 8 | u128::from(*b));
    match kind {
        "c" => bytes.escape_ascii().to_string(),
        "p8" => format!("{}.{:04}", number / 10_000, number % 10_000),
        text if text.starts_with('a') => {
            let end = bytes
                .iter()
                .rposition(|b| *b != b' ' && *b != 0)
                .map_or(0, |last| last + 1);
            bytes[..end].escape_ascii().to_string()
        }
        _ => number.to_string(),
    }
}

#[tickwire_testdata::recorded_data("specs/nasdaq-ouch50.md")]
#[test]
fn the_naive_decoder_agrees_on_every_field_of_every_type_for_any_bytes() {
    let layouts = digest();
    assert_eq!(layouts.iter().filter(|l| l.0).count(), 5);
    assert_eq!(layouts.iter().filter(|l| !l.0).count(), 14);
    let mut rng = testdata::Rng::new(50);
    for (is_inbound, kind, size, rows) in layouts {
        for _ in 0..200 {
            let mut bytes = vec![0; size];
            rng.fill(&mut bytes);
            bytes[0] = kind;
            let own: Vec<_> = rows.iter().filter(|row| row.2 != "tail").collect();
            if own.len() < rows.len() {
                bytes[size - 2..].fill(0);
            }
            let expected: Vec<String> = own
                .iter()
                .map(|(at, n, k)| naive(&bytes[*at..at + n], k))
                .collect();
            let (name, fields, options, ..) = read(&bytes, is_inbound).unwrap();
            let values: Vec<String> = fields.into_iter().map(|(_, value)| value).collect();
            assert_eq!(values, expected, "{name}");
            assert!(options.is_empty());
        }
    }
}

#[test]
fn every_option_is_written_read_and_shown_once() {
    let mut appendage = Appendage::EMPTY;
    for tag in OptionTag::ALL {
        appendage = appendage.with(*tag, &[b'A'; 8][..tag.size()]);
    }
    let order = EnterOrder {
        symbol: Alpha::new(b"WIRE").unwrap(),
        ..EnterOrder::NEW
    };
    let mut buffer = [0; MESSAGE_SIZE_MAX];
    let length = encode(order.as_bytes(), Some(&appendage), &mut buffer).unwrap();
    let (message, options) = parse_inbound(&buffer[..length]).unwrap();
    assert_eq!(message, Inbound::EnterOrder(&order));
    assert_eq!(options, appendage.options());
    let names: Vec<&str> = shown(|f| options.visit(f))
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let expected: Vec<&str> = OptionTag::ALL.iter().map(|tag| tag.name()).collect();
    assert_eq!(names, expected);
    assert_eq!(options.u32(OptionTag::MaxFloor), Some(0x4141_4141));
    assert_eq!(options.u16(OptionTag::GroupId), Some(0x4141));
    assert_eq!(options.char(OptionTag::PostOnly), Some(b'A'));
    assert_eq!(options.alpha4(OptionTag::Firm), Some(Alpha(*b"AAAA")));
    assert_eq!(options.u32(OptionTag::PostOnly), None);
    assert_eq!(encode(order.as_bytes(), Some(&appendage), &mut [0; 60]), None);
    assert_eq!(encode(order.as_bytes(), None, &mut [0; 44]), None);
}

#[tickwire_testdata::recorded_data("specs/nasdaq-ouch50.md")]
#[test]
fn types_are_unique_within_a_direction_and_the_sizes_those_of_the_digest() {
    for types in [INBOUND_TYPES, OUTBOUND_TYPES] {
        let kinds: BTreeMap<u8, usize> = types.iter().map(|(kind, _, size)| (*kind, *size)).collect();
        assert_eq!(kinds.len(), types.len());
        assert!(kinds.values().all(|size| *size <= ouch50::LAYOUT_SIZE_MAX));
    }
    for (is_inbound, kind, size, rows) in digest() {
        let types = if is_inbound { INBOUND_TYPES } else { OUTBOUND_TYPES };
        let tail = rows.iter().any(|row| row.2 == "tail");
        let own = types.iter().find(|t| t.0 == kind).unwrap().2;
        assert_eq!(own + if tail { 2 } else { 0 }, size, "{}", kind.escape_ascii());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_written_back_as_they_were(bytes in proptest::collection::vec(any::<u8>(), 0..90), kind in 0_usize..25) {
        let mut bytes = bytes;
        let is_inbound = kind < INBOUND_TYPES.len();
        let types = if is_inbound { INBOUND_TYPES } else { OUTBOUND_TYPES };
        if let Some(first) = bytes.first_mut() {
            *first = types[kind % types.len()].0;
        }
        if let Ok(read) = read(&bytes, is_inbound) {
            let had = bytes.len() > read.3.len();
            prop_assert_eq!(written(&read, had), bytes.clone());
            let _ = shown(|f| read.2.visit(f));
        }
        let _ = (parse_inbound(&bytes), parse_outbound(&bytes));
        let _: Option<Outbound<'_>> = None;
    }
}
