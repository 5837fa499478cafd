//! CQS and CTS: against vectors, recorded blocks, and a naive decoder driven by the digest's layout tables.

#[path = "support/digest.rs"]
mod digest;
#[path = "../../wire-core/tests/support/mod.rs"]
mod support;

use digest::Digest;
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{as_map, shown};
use tickwire_testdata::{self as testdata, hex, unhex};
use tickwire_wire_sip::Malformed;
use tickwire_wire_sip::cqs::{
    self, Best, BlockBuilder, BlockHeader, Body, Control, ControlType, Effect, Feed, MessageHeader,
    SnapshotMessage, SnapshotMessageHeader, UnixTime,
};
use tickwire_wire_sip::layout::Fields;
use tickwire_wire_sip::layout::{Pod, split_mut};

/// Message type to number seen.
type Counts = BTreeMap<String, usize>;

const CONTROLS: &[u8] = b"ACLOPTZ";

#[test]
fn every_vector_decodes_as_it_says_and_encodes_to_its_bytes() {
    let mut seen = Counts::new();
    for mut vector in testdata::vectors("cqs") {
        let name = vector.name.clone();
        let layer = vector.expect.remove("layer");
        let error = vector.expect.remove("error");
        let shows = match layer.as_deref() {
            Some("block") => cqs::parse_block(&vector.bytes).map(|block| {
                assert_eq!(
                    rebuilt(&block),
                    vector.bytes[..vector.bytes.len() - usize::from(block.trailing)]
                );
                as_map(shown(|f| block.header.visit(f)))
            }),
            Some("snapshot") => {
                cqs::parse_snapshot_block(&vector.bytes).map(|block| as_map(shown(|f| block.header.visit(f))))
            }
            Some("standing") => SnapshotMessage::parse(&vector.bytes).map(|message| {
                assert_eq!(message.as_bytes(), vector.bytes, "{name}");
                *seen.entry(text(message.kind())).or_default() += 1;
                let mut map = as_map(shown(|f| message.visit(f)));
                map.insert("message".to_string(), message.name().to_string());
                map
            }),
            Some(other) => panic!("{name}: no such layer: {other}"),
            None => cqs::parse(&vector.bytes).map(|message| {
                assert_eq!(message.parts().concat(), vector.bytes, "{name}");
                *seen.entry(kind(&vector.bytes)).or_default() += 1;
                let mut map = as_map(shown(|f| message.visit(f)));
                map.insert("message".to_string(), message.name().to_string());
                map
            }),
        };
        match (shows, error) {
            (Ok(map), None) => assert_eq!(map, vector.expect, "{name}"),
            (Err(got), Some(error)) => assert_eq!(format!("{got:?}"), error, "{name}"),
            (got, error) => panic!("{name}: {got:?} instead of {error:?}"),
        }
    }
    let controls = CONTROLS.iter().map(|c| format!("C{}", char::from(*c)));
    let types = cqs::TYPES.iter().chain(cqs::SNAPSHOT_TYPES);
    for kind in types.map(|(kind, ..)| text(*kind)).chain(controls) {
        assert!(seen.contains_key(&kind), "no vector of {kind}");
    }
}

#[tickwire_testdata::recorded_data("specs")]
#[test]
fn the_naive_decoder_agrees_on_every_field_of_every_type_for_any_bytes() {
    let digest = digest();
    let mut rng = testdata::Rng::new(210);
    for &(kind, name, size) in cqs::TYPES {
        let layout = &digest.0[&text(kind)];
        assert_eq!(layout.size, size, "{name}");
        for round in 0..500_usize {
            let mut bytes = vec![0; size + 36];
            rng.fill(&mut bytes);
            bytes[2..4].copy_from_slice(&kind);
            if kind[0] == b'Q' && kind[1] != b'A' {
                bytes[size - 1] = b" ABCDEFGHIJKLMNOPQRSTUVW"[round % 24];
            }
            set_length(&mut bytes);
            check(&digest, &bytes);
        }
    }
}

/// The digest's list of indicators, read as text.
#[tickwire_testdata::recorded_data("specs/siac-cqs.md")]
#[test]
fn every_indicator_of_the_national_best_means_what_the_digest_says() {
    let text = std::fs::read_to_string(testdata::specs("siac-cqs.md")).unwrap();
    let list = text.lines().find(|line| line.starts_with("`A` -/-")).unwrap();
    let mut listed = BTreeMap::from([(b' ', ('-', '-'))]);
    for entry in list.split(" · ").filter(|entry| entry.contains('/')) {
        let c: Vec<char> = entry.chars().collect();
        listed.insert(c[1] as u8, (c[4], c[6]));
    }
    assert_eq!(listed.len(), 24);
    let letter = |effect| match effect {
        Effect::Unchanged => '-',
        Effect::Quote => 'Q',
        Effect::Gone => '0',
        Effect::Short => 'S',
        Effect::Long => 'L',
    };
    for indicator in 0..=u8::MAX {
        let got = cqs::effects(indicator).map(|(bid, offer)| (letter(bid), letter(offer)));
        assert_eq!(got, listed.get(&indicator).copied(), "{}", char::from(indicator));
    }
}

#[tickwire_testdata::recorded_data("captures/packets/Siac", "specs/siac-cqs.md")]
#[test]
fn recorded_blocks_of_quotes_decode_whole_and_encode_back_to_the_same_bytes() {
    let (mut counts, mut unknown) = (Counts::new(), Counts::new());
    for folder in ["Cqs.Cta.v1.91", "Cqs.Cta.v2.10.a"] {
        check_folder(folder, b'Q', &mut counts, &mut unknown);
    }
    println!("{counts:?}");
    let expected = [
        ("AS", 2),
        ("CA", 1),
        ("CC", 1),
        ("CO", 1),
        ("CT", 1),
        ("CZ", 1),
        ("QL", 1),
    ];
    assert_eq!(counts, expected.map(|(kind, n)| (kind.to_string(), n)).into());
    assert_eq!(unknown, Counts::new());
}

/// Of the trade feed the project reads trades and trading status; the rest is named here so that nothing
/// hides.
#[tickwire_testdata::recorded_data("captures/packets/Siac", "specs/siac-cqs.md")]
#[test]
fn recorded_blocks_of_trades_decode_as_far_as_the_digest_goes() {
    let (mut counts, mut unknown) = (Counts::new(), Counts::new());
    for folder in [
        "Cts.Cta.v1.91",
        "Cts.Cta.v2.9",
        "Cts.Cta.v2.10",
        "Cts.Cta.v2.11.b",
    ] {
        check_folder(folder, b'T', &mut counts, &mut unknown);
    }
    println!("{counts:?}, not described: {unknown:?}");
    let expected = [
        ("AS", 2),
        ("CA", 1),
        ("CT", 3),
        ("CZ", 1),
        ("MK", 1),
        ("TL", 4),
        ("TR", 1),
        ("TS", 3),
    ];
    assert_eq!(counts, expected.map(|(kind, n)| (kind.to_string(), n)).into());
    let kinds: Vec<&str> = unknown.keys().map(String::as_str).collect();
    let expected = [
        "AA", "AB", "AC", "AD", "II", "MV", "PE", "PR", "SA", "SB", "SP", "ST", "TC", "TE", "TT",
    ];
    assert_eq!(kinds, expected);
}

/// `Cqs.Cta.v1.91/LongQuoteMessage.pcap`, worked out by hand in the digest.
#[tickwire_testdata::recorded_data("captures/packets/Siac/Cqs.Cta.v1.91")]
#[test]
fn the_worked_example_of_a_long_quote_decodes_field_by_field() {
    let file = testdata::captures("packets/Siac/Cqs.Cta.v1.91/LongQuoteMessage.pcap");
    let packet = testdata::pcap_payloads(&file).remove(0);
    let mut block = cqs::parse_block(&packet).unwrap();
    let header = block.header;
    assert_eq!(
        (header.version, header.size.get(), header.seq.get()),
        (0, 144, 19_878_165)
    );
    assert_eq!(header.time.as_nanos(), 1_540_480_512_526_727_191);
    assert_eq!(
        (header.checksum.get(), block.messages.len(), block.trailing),
        (0x1A82, 1, 0)
    );
    let message = cqs::parse(block.messages.next().unwrap()).unwrap();
    let Body::LongQuote(quote) = message.body else {
        panic!("no long quote")
    };
    assert_eq!(
        (quote.header.length.get(), quote.header.participant.0),
        (123, b'K')
    );
    assert_eq!(quote.header.timestamp.as_nanos(), 1_540_480_512_526_286_000);
    assert_eq!(
        (quote.symbol.trimmed(), quote.condition.0, quote.primary_listing.0),
        (&b"STOR"[..], b'R', b'N')
    );
    assert_eq!(quote.bid_price.checked_price(), Some("29.45".parse().unwrap()));
    assert_eq!(quote.offer_price.checked_price(), Some("29.47".parse().unwrap()));
    assert_eq!((quote.bid_size.get(), quote.offer_size.get()), (1, 1));
    assert_eq!((quote.national_luld.0, quote.national_bbo.0), (b'A', b'U'));
    let (Best::Long(bid), Best::Long(offer)) = (message.best_bid, message.best_offer) else {
        panic!("no long appendages")
    };
    assert_eq!(
        (bid.participant.0, bid.condition.0, bid.size.get()),
        (b'Z', b'R', 3)
    );
    assert_eq!(bid.price.checked_price(), Some("29.46".parse().unwrap()));
    assert_eq!((offer.participant.0, offer.size.get()), (b'Z', 2));
    assert_eq!(offer.price.checked_price(), Some("29.47".parse().unwrap()));
    assert_eq!(block.messages.next(), None);
}

/// The digest's second example: line integrity before the start of day.
#[test]
fn the_worked_example_of_a_line_integrity_message_is_what_the_builder_makes() {
    let expected = unhex(
        "02 002E 51 4F 00000000 01 69D48527 2B9F306E 0897 001A 43 54 53 69D485272B9F2994 01 00000000 0000000000000000",
    );
    let time = |nanos| UnixTime {
        seconds: 0x69D4_8527.into(),
        nanos: u32::into(nanos),
    };
    let mut buffer = [0xFF; 64];
    let mut block = BlockBuilder::new(&mut buffer, BlockHeader::at(Feed::Quotes, 0, time(0x2B9F_306E)));
    let control = Control::new(ControlType::LineIntegrity, time(0x2B9F_2994));
    assert!(block.push(&[control.as_bytes()]));
    let size = block.finish();
    assert_eq!(hex(&buffer[..size]), hex(&expected));
}

#[test]
fn one_wrong_byte_anywhere_in_a_block_is_noticed() {
    let vectors = testdata::vectors("cqs");
    let two = vectors.iter().find(|v| v.name == "block/two_quotes");
    let packet = two.expect("it is there").bytes.clone();
    for at in 0..packet.len() {
        let mut wrong = packet.clone();
        wrong[at] ^= 0x10;
        assert!(cqs::parse_block(&wrong).is_err(), "offset {at}");
        assert!(cqs::parse_block(&packet[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_message_shorter_than_its_parts_is_refused_and_every_other_type_unknown() {
    for &(kind, name, size) in cqs::TYPES {
        let mut bytes = vec![b' '; size];
        bytes[2..4].copy_from_slice(&kind);
        set_length(&mut bytes);
        assert!(cqs::parse(&bytes).is_ok(), "{name}");
        for have in MessageHeader::SIZE..size {
            let mut cut = bytes[..have].to_vec();
            assert_eq!(
                cqs::parse(&cut),
                Err(Malformed::Truncated {
                    need: size as u16,
                    have: have as u16
                })
            );
            set_length(&mut cut);
            assert_eq!(
                cqs::parse(&cut),
                Err(Malformed::Length {
                    kind: kind[1],
                    expected: size as u16,
                    have: have as u16
                })
            );
        }
    }
    for code in 0..=u16::MAX {
        let kind = code.to_be_bytes();
        let mut bytes = vec![b' '; 256];
        bytes[2..4].copy_from_slice(&kind);
        set_length(&mut bytes);
        let is_known = cqs::TYPES.iter().any(|&(known, ..)| known == kind)
            || kind[0] == b'C' && CONTROLS.contains(&kind[1]);
        assert_eq!(
            cqs::parse(&bytes).err(),
            (!is_known).then_some(Malformed::UnknownTemplate(code))
        );
    }
}

#[test]
fn the_instrument_is_found_without_parsing() {
    for vector in testdata::vectors("cqs")
        .iter()
        .filter(|v| v.expect.contains_key("message"))
    {
        let is_standing = vector
            .expect
            .get("layer")
            .is_some_and(|layer| layer == "standing");
        let (find, header): (fn(&[u8]) -> _, _) = match is_standing {
            true => (cqs::snapshot_symbol, SnapshotMessageHeader::SIZE),
            false => (cqs::symbol, MessageHeader::SIZE),
        };
        let symbol = find(&vector.bytes);
        let text = symbol.map(|s| s.bytes().escape_ascii().to_string().trim_end().to_string());
        assert_eq!(text.as_ref(), vector.expect.get("Symbol"), "{}", vector.name);
        assert_eq!(find(&vector.bytes[..header]), None);
    }
}

#[test]
fn a_block_takes_messages_up_to_its_limit_and_pads_to_an_even_size() {
    let (mut buffer, time) = ([0xFF; 2000], UnixTime::from_nanos(1));
    let quote = cqs::LongQuote::at(b'N', time);
    let mut block = BlockBuilder::new(&mut buffer, BlockHeader::at(Feed::Quotes, 1, time));
    assert!(!block.push(&[]) && !block.push(&[&[0; 25]]));
    let mut pushed = 0;
    while block.push(&[quote.as_bytes()]) {
        pushed += 1;
    }
    assert_eq!((pushed, block.count()), (11, 11)); // 20 + 11 * 87 = 977
    let size = block.finish();
    assert_eq!(size, 978);
    let parsed = cqs::parse_block(&buffer[..size + 3]).unwrap();
    assert_eq!((parsed.messages.len(), parsed.trailing), (11, 3));
    for (at, message) in parsed.messages.enumerate() {
        let Ok(cqs::Message {
            body: Body::LongQuote(quote),
            ..
        }) = cqs::parse(message)
        else {
            panic!("no quote")
        };
        assert_eq!(usize::from(quote.header.message_id), at + 1);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_in_place_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..300), known in any::<prop::sample::Index>(), best in any::<prop::sample::Index>(), valid: bool) {
        let &(kind, _, size) = known.get(cqs::TYPES);
        if valid && bytes.len() > size {
            bytes[2..4].copy_from_slice(&kind);
            bytes[size - 1] = *best.get(b" ABCDEFGHIJKLMNOPQRSTUVW");
            set_length(&mut bytes);
        }
        if let Ok(message) = cqs::parse(&bytes) {
            prop_assert!(bytes.starts_with(&message.parts().concat()));
            prop_assert!(shown(|f| message.visit(f)).len() >= 8);
        }
    }

    #[test]
    fn any_block_with_a_right_checksum_is_filled_by_its_messages_or_refused(sizes in prop::collection::vec(26_usize..90, 0..8), count: Option<u8>, cut in 0_usize..4) {
        let mut bytes = vec![0_u8; 20];
        for size in &sizes {
            bytes.extend((*size as u16).to_be_bytes());
            bytes.resize(bytes.len() + size - 2, b'x');
        }
        bytes.resize((bytes.len() + bytes.len() % 2).saturating_sub(cut).max(20), 0);
        let size = (bytes.len() as u16).to_be_bytes();
        bytes[..10].copy_from_slice(&[2, size[0], size[1], b'Q', b'O', 0, 0, 0, 1, count.unwrap_or(sizes.len() as u8)]);
        let sum = bytes.iter().fold(0_u16, |sum, b| sum.wrapping_add((*b).into()));
        bytes[18..20].copy_from_slice(&sum.to_be_bytes());
        if let Ok(block) = cqs::parse_block(&bytes) {
            let filled: usize = block.messages.clone().map(<[u8]>::len).sum();
            prop_assert_eq!((20 + filled).next_multiple_of(2), bytes.len());
            prop_assert_eq!(block.messages.len(), usize::from(block.header.messages));
            prop_assert_eq!(block.messages.count(), usize::from(block.header.messages));
        }
    }

    #[test]
    fn any_datagram_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (cqs::parse_block(&bytes), cqs::parse_snapshot_block(&bytes), cqs::symbol(&bytes));
    }
}

fn check_folder(folder: &str, feed: u8, counts: &mut Counts, unknown: &mut Counts) {
    let digest = digest();
    for file in testdata::files(&testdata::captures("packets/Siac").join(folder), "pcap") {
        for packet in testdata::pcap_payloads(&file) {
            let name = file.display();
            let block = cqs::parse_block(&packet).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!((block.header.feed.0, block.trailing), (feed, 0), "{name}");
            for message in block.messages.clone() {
                let kind = kind(message);
                let (_, known) = (cqs::symbol(message), digest.0.contains_key(&kind));
                if let Err(Malformed::UnknownTemplate(_)) = cqs::parse(message) {
                    assert!(!known, "{name}: {kind}");
                    *unknown.entry(kind).or_default() += 1;
                    continue;
                }
                check(&digest, message);
                let parsed = cqs::parse(message).unwrap();
                assert_eq!(hex(&parsed.parts().concat()), hex(message), "{name}");
                *counts.entry(kind).or_default() += 1;
            }
            assert_eq!(hex(&rebuilt(&block)), hex(&packet), "{name}");
        }
    }
}

/// The block as the builder makes it of the same messages, parsed to their parts where they are known.
fn rebuilt(block: &cqs::Block<'_>) -> Vec<u8> {
    let mut buffer = vec![0xFF; cqs::BLOCK_SIZE_MAX];
    let mut builder = BlockBuilder::new(&mut buffer, *block.header);
    for message in block.messages.clone() {
        assert!(match cqs::parse(message) {
            Ok(parsed) => builder.push(&parsed.parts()),
            Err(_) => builder.push(&[message]),
        });
    }
    let size = builder.finish();
    buffer.truncate(size);
    buffer
}

/// Decodes with both decoders and compares field by field.
fn check(digest: &Digest, bytes: &[u8]) {
    let message = cqs::parse(bytes).unwrap_or_else(|e| panic!("{e}: {}", hex(bytes)));
    let fields = shown(|f| message.visit(f));
    let kind = kind(bytes);
    let layout = match kind.as_bytes()[0] {
        b'C' => return assert_eq!((fields.len(), message.parts()[0].len()), (8, MessageHeader::SIZE)),
        _ => &digest.0[&kind],
    };
    let mut naive = layout.decode(bytes);
    let mut at = layout.size;
    if let b"QL" | b"QQ" | b"QS" = kind.as_bytes() {
        for effect in <[Effect; 2]>::from(cqs::effects(bytes[layout.size - 1]).unwrap()) {
            let appendage = match effect {
                Effect::Short => &digest.0["short"],
                Effect::Long => &digest.0["long"],
                _ => continue,
            };
            naive.extend(appendage.decode(&bytes[at..]));
            at += appendage.size;
        }
    }
    assert_eq!(message.parts().concat(), &bytes[..at]);
    let shown: Vec<String> = fields.into_iter().map(|(_, value)| value).collect();
    assert_eq!(shown, naive, "{kind}: {}", hex(bytes));
}

fn digest() -> Digest {
    let header = [
        "0:2:u16", "2:1:c", "3:1:c", "4:1:c", "5:8:time", "13:1:u8", "14:4:u32", "18:8:i64",
    ];
    Digest::read("siac-cqs.md", &header, |kind, name| match (kind, name) {
        ("u64", "Timestamp2") => Some("time"),
        ("u32", "LuldLeverage") => Some("leverage"),
        ("i64", "Level1" | "Level2" | "Level3") => Some("level"),
        _ => None,
    })
}

fn kind(message: &[u8]) -> String {
    text([message[2], message[3]])
}

fn text(kind: [u8; 2]) -> String {
    String::from_utf8_lossy(&kind).into_owned()
}

fn set_length(message: &mut [u8]) {
    let length = message.len() as u16;
    let (header, _) = split_mut::<MessageHeader>(message).unwrap();
    header.length = length.into();
}
