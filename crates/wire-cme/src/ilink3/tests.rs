//! Against recorded messages, worked examples of the digest, and bytes of any content.

use super::*;
use crate::layout::Char;
use crate::sbe::{Layout, Text};
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use proptest::prelude::*;
use tickwire_testdata::{self as testdata, Rng, unhex};

/// `cme-ilink3.md`, "Worked examples": recorded with schema version 5.
const QUOTE_CANCEL: &str = "5000FECA 3400 1002 0800 0500 0100000000000000 C49F9D2162080216 00 02000000 \
    5453000000000000000000000000000000000000 5553000000 64000000 04 FF 0A00 01 5B4E2F415D00 FFFFFF7F 0A00 00";
const SEQUENCE: &str = "1A00FECA 0E00 FA01 0800 0500 1FF3D7F74FA20500 03000000 01 00";

fn message(stream: &[u8]) -> Message<'_> {
    let (message, taken) = split(stream)
        .expect("good by construction")
        .expect("good by construction");
    assert_eq!(taken, stream.len());
    parse(message).expect("good by construction")
}

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut buffer = vec![0xAA; 1 << 16];
    let length = message.encode(&mut buffer).expect("good by construction");
    buffer[..length].to_vec()
}

fn shown(message: &Message<'_>) -> String {
    let mut text = String::new();
    message.visit(&mut |step| text.push_str(&format!("{step:?}\n")));
    text
}

#[test]
fn the_worked_examples_decode_field_by_field_and_encode_to_their_bytes() {
    let bytes = unhex(QUOTE_CANCEL);
    let read = message(&bytes);
    let Body::QuoteCancel(mut cancel) = read.body else {
        panic!("{}", read.name())
    };
    let root = cancel.root.get();
    assert_eq!(root.party_details_list_req_id, 1);
    assert_eq!(root.sending_time, 1_585_839_236_351_631_300);
    assert_eq!((root.manual_order_indicator, root.seq_num.get()), (0, 2));
    assert_eq!(
        (root.sender_id.trimmed(), root.location.trimmed()),
        (&b"TS"[..], &b"US"[..])
    );
    assert_eq!(
        (root.quote_id.get(), root.quote_cancel_type),
        (100, QuoteCancelType::All as u8)
    );
    // What version 5 lacks.
    assert_eq!(
        (root.liquidity_flag.get(), root.quote_entry_open.get()),
        (None, None)
    );
    assert_eq!(root.orig_order_user.trimmed(), b"");
    assert_eq!(cancel.entries.next(), Some(QuoteCancelEntry::ALL));
    assert_eq!((cancel.entries.next(), cancel.sets.next()), (None, None));
    assert_eq!(encoded(&read), bytes);

    let bytes = unhex(SEQUENCE);
    let read = message(&bytes);
    let Body::Sequence(sequence) = read.body else {
        panic!("{}", read.name())
    };
    let root = sequence.root.get();
    assert_eq!(
        (root.uuid.get(), root.next_seq_no.get()),
        (1_585_839_227_794_207, 3)
    );
    assert_eq!(
        (
            root.fault_tolerance_indicator.get(),
            root.keep_alive_interval_lapsed
        ),
        (Some(1), 0)
    );
    assert_eq!(encoded(&read), bytes);
}

#[tickwire_testdata::recorded_data("captures/packets/Cme/iLink3.Sbe.8.5")]
#[test]
fn recorded_messages_decode_whole_and_encode_back_to_the_same_bytes() {
    let mut seen = Vec::new();
    for file in testdata::files(&testdata::captures("packets/Cme/iLink3.Sbe.8.5"), "pcap") {
        for payload in testdata::pcap_tcp_payloads(&file) {
            let mut rest = &payload[..];
            while let Some((message, taken)) = split(rest).expect("good by construction") {
                let (own, behind) = rest.split_at(taken);
                rest = behind;
                match parse(message) {
                    Ok(read) => {
                        assert!(read.rest.is_empty(), "{}", read.name());
                        assert_eq!(encoded(&read), own, "{}", file.display());
                        seen.push(read.name());
                    }
                    // ExecutionReportStatus, which nobody asks for.
                    Err(error) => assert_eq!(error, Malformed::UnknownTemplate(532)),
                }
            }
            // The segment of acknowledgements ends within one.
            assert_eq!(split(rest), Ok(None), "{}", file.display());
        }
    }
    let acknowledged = ["QuoteCancelAck563"; 3];
    let wanted = [&["QuoteCancel528"][..], &acknowledged, &["Sequence506"]].concat();
    assert_eq!(seen, wanted);
}

#[test]
fn blocks_of_version_5_are_as_long_as_the_digest_says() {
    let lengths = [
        NewOrderSingleRoot::size_in(5),
        MassQuoteRoot::size_in(5),
        ExecutionReportNewRoot::size_in(5),
        ExecutionReportTradeOutrightRoot::size_in(5),
        QuoteCancelRoot::size_in(5),
        ExecutionReportCancelRoot::size_in(5),
        MassQuoteAckRoot::size_in(5),
        QuoteCancelAckRoot::size_in(5),
    ];
    assert_eq!(lengths, [116, 92, 209, 235, 52, 214, 350, 351]);
    let newer = [
        NegotiationResponseRoot::size_in(8),
        EstablishmentAckRoot::size_in(8),
        EstablishmentRejectRoot::size_in(8),
    ];
    assert_eq!(newer, [32, 38, 72]);
}

/// A message of a template with random contents: what the version has, and `padding` bytes more in every
/// block.
fn random(template: &Template, version: u16, padding: u16, entries: u8, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0xFE, 0xCA];
    let root = template.block_length + padding;
    for word in [root, template.id, Body::SCHEMA, version] {
        bytes.extend(word.to_le_bytes());
    }
    let mut fill = |bytes: &mut Vec<u8>, length: u16| {
        let start = bytes.len();
        bytes.resize(start + usize::from(length), 0);
        rng.fill(&mut bytes[start..]);
    };
    fill(&mut bytes, root);
    for (_, length, _) in template.groups {
        bytes.extend((length + padding).to_le_bytes());
        bytes.push(entries);
        (0..entries).for_each(|_| fill(&mut bytes, length + padding));
    }
    if matches!(template.id, 500 | 501 | 503) {
        bytes.extend(u16::from(entries).to_le_bytes());
        fill(&mut bytes, entries.into());
    }
    let length = bytes.len() as u16;
    bytes[..2].copy_from_slice(&length.to_le_bytes());
    bytes
}

#[test]
fn every_template_of_every_version_decodes_and_encodes_to_what_reads_the_same() {
    let mut rng = Rng::new(8);
    for template in Body::TEMPLATES {
        for version in 0..NEWEST_VERSION + 2 {
            for (padding, entries) in [(0, 0), (0, 3), (5, 2)] {
                let bytes = random(template, version, padding, entries, &mut rng);
                let read = message(&bytes);
                assert!(read.rest.is_empty(), "{}", template.name);
                assert_eq!(
                    (read.name(), read.header.template_id.get()),
                    (template.name, template.id)
                );
                let again = encoded(&read);
                assert_eq!(again.len(), bytes.len());
                if padding == 0 && version >= NEWEST_VERSION {
                    assert_eq!(again, bytes, "{}", template.name);
                }
                assert_eq!(shown(&message(&again)), shown(&read), "{}", template.name);
            }
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let sequence = unhex(SEQUENCE);
    for cut in 0..sequence.len() {
        assert_eq!(split(&sequence[..cut]), Ok(None), "{cut}");
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = sequence.clone();
        bytes[at] = byte;
        bytes
    };
    let bad = |offset, value| Malformed::BadValue { offset, value };
    assert_eq!(split(&with(2, 0)), Err(bad(2, 0)));
    assert_eq!(split(&with(3, 1)), Err(bad(3, 1)));
    assert_eq!(split(&with(2, 7)[..3]), Err(bad(2, 7)));
    let short = Malformed::length(0, 12, 11);
    assert_eq!(split(&with(0, 11)), Err(short));
    assert_eq!(parse(&with(8, 1)[4..]), Err(bad(4, 1)));
    assert_eq!(parse(&with(6, 0xFF)[4..]), Err(Malformed::UnknownTemplate(511)));
    // A block shorter than its layout, and one that the message does not hold.
    assert_eq!(parse(&with(4, 13)[4..]), Err(Malformed::length(0, 14, 13)));
    assert_eq!(parse(&with(4, 15)[4..]), Err(Malformed::truncated(15, 14)));
    let mut cancel = unhex(QUOTE_CANCEL);
    let count = 12 + 52 + 2;
    cancel[count] = 2;
    assert_eq!(parse(&cancel[4..]), Err(Malformed::truncated(20, 13)));
    cancel[count] = 1;
    cancel[count - 2] = 9;
    assert_eq!(parse(&cancel[4..]), Err(Malformed::length(0, 10, 9)));

    let mut buffer = [0; 256];
    let length =
        Negotiate::encode(&mut buffer, &NegotiateRoot::BLANK, b"secret").expect("good by construction");
    assert_eq!(length, 12 + 76 + 2 + 6);
    let Body::Negotiate(negotiate) = message(&buffer[..length]).body else {
        panic!()
    };
    assert_eq!(negotiate.credentials, b"secret");
    assert_eq!(
        parse(&buffer[4..length - 1]),
        Err(Malformed::truncated(6, 5)),
        "data are cut"
    );
    assert_eq!(
        Negotiate::encode(&mut buffer[..length - 1], &NegotiateRoot::BLANK, b"secret"),
        None
    );
}

/// `cme-ilink3.md`, "Session messages", rule 2.
#[test]
fn what_is_signed_is_one_field_a_line() {
    let negotiate = NegotiateRoot {
        uuid: 1_585_839_227_794_207.into(),
        request_timestamp: 1_585_839_227_794_207_000.into(),
        session: Text::new(b"ABC").expect("good by construction"),
        firm: Text::new(b"007").expect("good by construction"),
        ..NegotiateRoot::BLANK
    };
    let mut buffer = [0; 128];
    let length = negotiate
        .canonical_text(&mut buffer)
        .expect("good by construction");
    let lines = "1585839227794207000\n1585839227794207\nABC\n007";
    assert_eq!(&buffer[..length], lines.as_bytes());
    let establish = EstablishRoot {
        uuid: negotiate.uuid,
        request_timestamp: negotiate.request_timestamp,
        session: negotiate.session,
        firm: negotiate.firm,
        trading_system_name: Text::new(b"Quoter").expect("good by construction"),
        trading_system_version: Text::new(b"1.2").expect("good by construction"),
        trading_system_vendor: Text::new(b"Us").expect("good by construction"),
        next_seq_no: 17.into(),
        keep_alive_interval: 10_000.into(),
        ..EstablishRoot::BLANK
    };
    let length = establish
        .canonical_text(&mut buffer)
        .expect("good by construction");
    assert_eq!(
        &buffer[..length],
        format!("{lines}\nQuoter\n1.2\nUs\n17\n10000").as_bytes()
    );
    assert_eq!(establish.canonical_text(&mut buffer[..length - 1]), None);
}

#[test]
fn orders_and_cancellations_of_all_say_who_sends_them() {
    let identity = Identity {
        party_details_list_req_id: 9,
        sender_id: Text::new(b"TS").expect("good by construction"),
        location: Text::new(b"GB").expect("good by construction"),
    };
    let order = |qty, lives| {
        let price = "-37.63".parse().expect("good by construction");
        NewOrderSingleRoot::limit(&identity, 532_259, Side::Ask, price, Qty(qty), lives)
    };
    let root = order(5, TimeInForce::ImmediateOrCancel).expect("good by construction");
    assert_eq!(
        (root.side, root.time_in_force.get(), root.order_qty.get()),
        (2, Some(3), 5)
    );
    assert_eq!(
        root.price.price(),
        Some("-37.63".parse().expect("good by construction"))
    );
    assert_eq!(root.ord_type.get().map(Char::get), Some(b'2'));
    assert_eq!(
        (order(0, TimeInForce::Day), order(1, TimeInForce::AtTheClose)),
        (None, None)
    );
    let mut buffer = [0; 256];
    let length = NewOrderSingle::encode(&mut buffer, &root).expect("good by construction");
    let Body::NewOrderSingle(order) = message(&buffer[..length]).body else {
        panic!()
    };
    assert_eq!((length, order.root.get()), (144, root));
    let all = QuoteCancelRoot::all(&identity);
    let length =
        QuoteCancel::encode(&mut buffer, &all, [QuoteCancelEntry::ALL], []).expect("good by construction");
    let Body::QuoteCancel(mut cancel) = message(&buffer[..length]).body else {
        panic!()
    };
    assert_eq!(
        (cancel.root.get(), cancel.entries.next()),
        (all, Some(QuoteCancelEntry::ALL))
    );
}

#[test]
fn decimals_are_shown_by_their_exponents() {
    let shown = |mantissa: i64, exponent| {
        let decimal = Decimal64 {
            mantissa: Some(mantissa.into()).into(),
            exponent,
        };
        format!("{}", decimal.value())
    };
    assert_eq!(
        [shown(-125, -2), shown(7, 0), shown(7, 3)],
        ["-1.25", "7", "7000"]
    );
    assert_eq!(shown(1, 100), "010000000000000064");
    assert_eq!(Decimal64::BLANK.value(), FieldValue::Null);
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        template in 0..Body::TEMPLATES.len(), version in 0_u16..12,
    ) {
        let mut stream = bytes;
        let _ = split(&stream).map(|found| found.map(|(message, _)| parse(message).is_ok()));
        // With a head that is one.
        let head = [Body::TEMPLATES[template].block_length, Body::TEMPLATES[template].id, 8, version];
        stream.splice(..stream.len().min(8), head.map(u16::to_le_bytes).concat());
        if let Ok(read) = parse(&stream) {
            prop_assert_eq!(shown(&message(&encoded(&read))), shown(&read));
        }
    }
}
