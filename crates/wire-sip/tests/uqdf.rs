//! UQDF and UTDF: against vectors, recorded packets, and a naive decoder driven by the digest's layout
//! tables.

#[path = "support/digest.rs"]
mod digest;
#[path = "../../wire-core/tests/support/mod.rs"]
mod support;

use digest::Digest;
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::shown;
use tickwire_testdata::{self as testdata, hex, unhex};
use tickwire_wire_nasdaq::moldudp64;
use tickwire_wire_sip::Malformed;
use tickwire_wire_sip::uqdf::{
    self, Appendages, Body, CombinedLong, CombinedShort, MessageHeader, Nbbo, OddLotQuoteLong,
    OddLotQuoteShort, WithOddLots,
};

/// Message type to number seen.
type Counts = BTreeMap<String, usize>;

const CONTROLS: &[u8] = b"IJOCZP";

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    let mut seen = Counts::new();
    for mut vector in testdata::vectors("uqdf") {
        let name = vector.name.clone();
        let error = vector.expect.remove("error");
        match (uqdf::parse(&vector.bytes), error) {
            (Ok(message), None) => {
                let mut buffer = vec![0; vector.bytes.len()];
                assert_eq!(message.encode(&mut buffer), Some(buffer.len()), "{name}");
                assert_eq!(hex(&buffer), hex(&vector.bytes), "{name}");
                assert_eq!(message.encode(&mut buffer[1..]), None, "{name}");
                let mut map = numbered(shown(|f| message.visit(f)));
                map.insert("message".to_string(), message.name().to_string());
                assert_eq!(map, vector.expect, "{name}");
                *seen.entry(kind(&vector.bytes)).or_default() += 1;
            }
            (Err(got), Some(error)) => assert_eq!(format!("{got:?}"), error, "{name}"),
            (got, error) => panic!("{name}: {got:?} instead of {error:?}"),
        }
    }
    let controls = CONTROLS.iter().map(|c| format!("C{}", char::from(*c)));
    for kind in uqdf::TYPES.iter().map(|(kind, ..)| text(*kind)).chain(controls) {
        assert!(seen.contains_key(&kind), "no vector of {kind}");
    }
}

#[tickwire_testdata::recorded_data("specs")]
#[test]
fn the_naive_decoder_agrees_on_every_field_of_every_type_for_any_bytes() {
    let digest = digest();
    let mut rng = testdata::Rng::new(30);
    for &(kind, name, size) in uqdf::TYPES {
        assert_eq!(digest.0[&text(kind)].size, size, "{name}");
        for round in 0..500_usize {
            let mut bytes = vec![0; size + 200];
            rng.fill(&mut bytes);
            bytes[0] = uqdf::VERSION;
            bytes[1..3].copy_from_slice(&kind);
            choose(&digest, &text(kind), &mut bytes, round);
            check(&digest, &bytes);
        }
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Uqdf.Output.Utp.v1.5", "specs")]
#[test]
fn recorded_packets_decode_whole_and_encode_back_to_the_same_bytes() {
    let digest = digest();
    let mut counts = Counts::new();
    for file in testdata::files(&testdata::captures("packets/Nasdaq/Uqdf.Output.Utp.v1.5"), "pcap") {
        for payload in testdata::pcap_payloads(&file) {
            let name = file.display();
            let packet = moldudp64::parse(&payload).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(packet.trailing, 0, "{name}");
            let moldudp64::Payload::Messages(blocks) = packet.payload else {
                continue;
            };
            let mut buffer = vec![0; payload.len()];
            let mut builder = moldudp64::PacketBuilder::new(&mut buffer, packet.session, packet.seq);
            for block in blocks {
                check(&digest, block);
                let mut again = vec![0; block.len()];
                assert_eq!(
                    uqdf::parse(block).unwrap().encode(&mut again),
                    Some(block.len()),
                    "{name}"
                );
                assert!(builder.push(&again));
                *counts.entry(kind(block)).or_default() += 1;
            }
            assert_eq!(builder.finish(), payload.len(), "{name}");
            assert_eq!(hex(&buffer), hex(&payload), "{name}");
        }
    }
    println!("{counts:?}");
    let expected = [("AP", 1), ("QF", 1)];
    assert_eq!(counts, expected.map(|(kind, n)| (kind.to_string(), n)).into());
}

/// `QuoteLongFormMessage.pcap`, worked out by hand in the digest.
#[tickwire_testdata::recorded_data("captures/packets/Nasdaq/Uqdf.Output.Utp.v1.5")]
#[test]
fn the_worked_example_of_a_long_quote_decodes_field_by_field() {
    let file = testdata::captures("packets/Nasdaq/Uqdf.Output.Utp.v1.5/QuoteLongFormMessage.pcap");
    let payload = testdata::pcap_payloads(&file).remove(0);
    let packet = moldudp64::parse(&payload).unwrap();
    assert_eq!((&packet.session, packet.seq.0), (b"000007527Q", 19_969_935));
    let moldudp64::Payload::Messages(mut blocks) = packet.payload else {
        panic!("no messages")
    };
    let message = uqdf::parse(blocks.next().unwrap()).unwrap();
    let Body::QuoteLong(quote) = message.body else {
        panic!("no long quote")
    };
    assert_eq!(
        (quote.header.originator.0, quote.header.sip_time.get()),
        (b'K', 1_473_960_533_164_962_647)
    );
    assert_eq!(quote.header.timestamp1.get(), 1_473_960_533_164_774_000);
    assert_eq!(
        (quote.symbol.trimmed(), quote.condition.0, quote.national_luld.0),
        (&b"AMZN"[..], b'R', b'A')
    );
    assert_eq!(quote.bid_price.checked_price(), Some("767.25".parse().unwrap()));
    assert_eq!(quote.ask_price.checked_price(), Some("767.31".parse().unwrap()));
    assert_eq!(
        (quote.bid_size.get(), quote.ask_size.get(), quote.adf_mpid.0),
        (3, 2, b' ')
    );
    let Nbbo::Long(best) = message.appendages.nbbo else {
        panic!("no appendage")
    };
    assert_eq!(
        (
            best.condition.0,
            best.bid_market_center.0,
            best.ask_market_center.0
        ),
        (b'R', b'K', b'Z')
    );
    assert_eq!(best.bid_price.checked_price(), Some("767.25".parse().unwrap()));
    assert_eq!(best.ask_price.checked_price(), Some("767.26".parse().unwrap()));
    assert_eq!((best.bid_size.get(), best.ask_size.get()), (3, 1));
}

/// The digest's second example: recorded, and only there.
#[tickwire_testdata::recorded_data("specs")]
#[test]
fn the_worked_example_of_a_short_quote_decodes_field_by_field() {
    let bytes = unhex(
        "31 51 45 4B 20 14748F30D34785AA 14748F30D3449460 0000000000000000 414B414D20 1403 0001 1404 0001 52 20 20 20 30 41",
    );
    check(&digest(), &bytes);
    let message = uqdf::parse(&bytes).unwrap();
    let Body::QuoteShort(quote) = message.body else {
        panic!("no short quote")
    };
    assert_eq!(
        (quote.symbol.trimmed(), quote.bid_size.get(), quote.ask_size.get()),
        (&b"AKAM"[..], 1, 1)
    );
    assert_eq!(quote.bid_price.checked_price(), Some("51.23".parse().unwrap()));
    assert_eq!(quote.ask_price.checked_price(), Some("51.24".parse().unwrap()));
    assert_eq!(message.appendages, uqdf::Appendages::NONE);
}

#[tickwire_testdata::recorded_data("specs")]
#[test]
fn every_length_below_the_parts_is_truncated_and_every_other_type_unknown() {
    let digest = digest();
    for &(kind, ..) in uqdf::TYPES {
        for round in 0..5 {
            let mut bytes = vec![b' '; 400];
            bytes[0] = uqdf::VERSION;
            bytes[1..3].copy_from_slice(&kind);
            choose(&digest, &text(kind), &mut bytes, round);
            let size = uqdf::parse(&bytes).unwrap().parts().concat().len();
            for have in 0..size {
                check_short_way(&bytes[..have]);
                let got = uqdf::parse(&bytes[..have]);
                assert!(
                    matches!(got, Err(Malformed::Truncated { need, have: h }) if need > h && usize::from(h) == have)
                );
            }
            assert!(uqdf::parse(&bytes[..size]).is_ok());
        }
    }
    for code in 0..=u16::MAX {
        let kind = code.to_be_bytes();
        let mut bytes = [b'0'; 16_000];
        bytes[0] = uqdf::VERSION;
        bytes[1..3].copy_from_slice(&kind);
        let is_known = uqdf::TYPES.iter().any(|&(known, ..)| known == kind)
            || kind[0] == b'C' && CONTROLS.contains(&kind[1]);
        let got = uqdf::parse(&bytes).err() == Some(Malformed::UnknownTemplate(code));
        assert_eq!(got, !is_known, "{}", text(kind));
    }
}

#[test]
fn an_indicator_outside_the_specification_is_refused_where_it_stands() {
    let mut bytes = [b'0'; 100];
    bytes[0] = uqdf::VERSION;
    bytes[1..3].copy_from_slice(b"QF");
    bytes[76] = b'9';
    assert_eq!(
        uqdf::parse(&bytes),
        Err(Malformed::BadValue {
            offset: 76,
            value: b'9'
        })
    );
    bytes[0] = b'2';
    assert_eq!(
        uqdf::parse(&bytes),
        Err(Malformed::BadValue {
            offset: 0,
            value: b'2'
        })
    );
    for (kind, offsets) in [
        (*b"QC", &[46_u16, 48, 49][..]),
        (*b"QD", &[76, 78, 79, 80]),
        (*b"QA", &[35, 36]),
        (*b"QB", &[49, 50]),
    ] {
        for &offset in offsets {
            let mut bytes = [b'0'; 100];
            bytes[0] = uqdf::VERSION;
            bytes[1..3].copy_from_slice(&kind);
            bytes[usize::from(offset)] = b'9';
            let refused = Malformed::BadValue { offset, value: b'9' };
            assert_eq!(uqdf::parse(&bytes), Err(refused), "{}", text(kind));
            check_short_way(&bytes);
        }
    }
}

#[test]
fn the_instrument_is_found_without_parsing() {
    for vector in testdata::vectors("uqdf")
        .iter()
        .filter(|v| v.expect.contains_key("message"))
    {
        let text =
            uqdf::symbol(&vector.bytes).map(|s| s.bytes().escape_ascii().to_string().trim_end().to_string());
        assert_eq!(text.as_ref(), vector.expect.get("Symbol"), "{}", vector.name);
        assert_eq!(uqdf::symbol(&vector.bytes[..MessageHeader::SIZE]), None);
    }
}

proptest! {
    #[tickwire_testdata::recorded_data("specs")]
#[test]
    fn any_bytes_are_read_in_place_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..300), known in any::<prop::sample::Index>(), round in 0_usize..60, valid: bool) {
        let &(kind, _, size) = known.get(uqdf::TYPES);
        if valid && bytes.len() > size {
            bytes[0] = uqdf::VERSION;
            bytes[1..3].copy_from_slice(&kind);
            choose(&digest(), &text(kind), &mut bytes, round);
        }
        let _ = uqdf::symbol(&bytes);
        check_short_way(&bytes);
        if let Ok(message) = uqdf::parse(&bytes) {
            prop_assert!(bytes.starts_with(&message.parts().concat()));
            prop_assert!(shown(|f| message.visit(f)).len() >= 8);
        }
    }
}

/// Sets every indicator of a message to a value it has; `round` varies them.
fn choose(digest: &Digest, kind: &str, bytes: &mut [u8], round: usize) {
    for (at, _, _, name) in &digest.0[kind].rows {
        match name.as_str() {
            "NbboInd" => bytes[*at] = b"01234"[round % 5],
            "AdfMpidInd" => bytes[*at] = b" 012"[round % 4],
            "BoloInd" => bytes[*at] = b"01235"[round / 5 % 5],
            "OddLotType" => bytes[*at] = b"0235"[round / 25 % 4],
            "OddLotCount" | "TextLen" | "NumAttachments" => {
                bytes[*at..at + 2].copy_from_slice(&(round as u16 % 4).to_be_bytes());
            }
            _ => {}
        }
    }
}

/// Decodes with both decoders and compares field by field.
fn check(digest: &Digest, bytes: &[u8]) {
    check_short_way(bytes);
    let message = uqdf::parse(bytes).unwrap_or_else(|e| panic!("{e}: {}", hex(bytes)));
    let shown: Vec<String> = shown(|f| message.visit(f))
        .into_iter()
        .map(|(_, value)| value)
        .collect();
    let layout = &digest.0[&kind(bytes)];
    let mut naive = layout.decode(bytes);
    let mut at = layout.size;
    let field = |wanted: &str| {
        let row = layout.rows.iter().find(|(.., name)| name == wanted);
        row.map_or(0, |(at, length, ..)| {
            bytes[*at..at + length]
                .iter()
                .fold(0, |n, b| n << 8 | usize::from(*b))
        })
    };
    let mut append = |name: &str| {
        naive.extend(digest.0[name].decode(&bytes[at..]));
        at += digest.0[name].size;
    };
    for (indicator, letter) in [("NbboInd", 'N'), ("AdfMpidInd", 'M'), ("BoloInd", 'B')] {
        if let value @ (0x32 | 0x33 | 0x35) = field(indicator) {
            append(&format!("{letter}{}", value - 0x30));
        }
    }
    if let value @ (0x32 | 0x33 | 0x35) = field("OddLotType") {
        (0..field("OddLotCount")).for_each(|_| append(&format!("O{}", value - 0x30)));
    }
    if kind(bytes) == "AA" {
        let text = &bytes[at..at + field("TextLen")];
        naive.push(tickwire_wire_sip::layout::FieldValue::Text(text).to_string());
        at += text.len();
    }
    for _ in 0..field("NumAttachments") {
        naive.extend(digest.0["close"].decode(&bytes[at..]));
        at += 33;
    }
    assert_eq!(message.parts().concat(), &bytes[..at]);
    assert_eq!(shown, naive, "{}: {}", kind(bytes), hex(bytes));
}

/// The short way of a message with odd lots tells what the long one tells, or refuses it for the same reason;
/// it is that of no other message.
fn check_short_way(bytes: &[u8]) {
    fn of<M: WithOddLots>(bytes: &[u8]) -> Option<Result<Appendages<'_>, Malformed>> {
        uqdf::with_odd_lots::<M>(bytes).map(|(m, rest)| m.appendages(bytes, rest))
    }
    let whole = uqdf::parse(bytes);
    let ways = [
        of::<CombinedShort>(bytes),
        of::<CombinedLong>(bytes),
        of::<OddLotQuoteShort>(bytes),
        of::<OddLotQuoteLong>(bytes),
    ];
    match ways.into_iter().flatten().next() {
        Some(told) => assert_eq!(told, whole.map(|message| message.appendages), "{}", hex(bytes)),
        None => assert!(
            !whole.is_ok_and(|message| matches!(
                message.body,
                Body::CombinedShort(_)
                    | Body::CombinedLong(_)
                    | Body::OddLotQuoteShort(_)
                    | Body::OddLotQuoteLong(_)
            )),
            "{}",
            hex(bytes)
        ),
    }
}

fn digest() -> Digest {
    let header = [
        "0:1:c", "1:1:c", "2:1:c", "3:1:c", "4:1:c", "5:8:u64", "13:8:u64", "21:8:u64",
    ];
    let mut digest = Digest::read("utp-uqdf.md", &header, |_, _| None);
    // The attachments of AR are described in a sentence.
    let close =
        "| close | Close | 33 | 0:1:c MC · 1:8:pl8 Bid · 9:8:u64 BidSize · 17:8:pl8 Ask · 25:8:u64 AskSize |";
    let (name, layout) = digest::of_table_line(close, &[], |_, _| None).unwrap();
    digest.0.insert(name, layout);
    digest
}

/// Names that repeat get a number: `OddLotPrice.1` is the second.
fn numbered(fields: support::Shown) -> BTreeMap<String, String> {
    let (mut map, mut seen) = (BTreeMap::new(), Counts::new());
    for (name, value) in fields {
        let n = seen.entry(name.to_string()).or_default();
        let key = if *n == 0 {
            name.to_string()
        } else {
            format!("{name}.{n}")
        };
        *n += 1;
        map.insert(key, value);
    }
    map
}

fn kind(message: &[u8]) -> String {
    text([message[1], message[2]])
}

fn text(kind: [u8; 2]) -> String {
    String::from_utf8_lossy(&kind).into_owned()
}
