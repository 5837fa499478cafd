//! Order logs by the short way and by the long one: the same entries, or none by the short one.

use std::path::PathBuf;
use std::sync::Arc;

use tickwire_market::{Nanos, OrderId, Price, Side, Volume};
use tickwire_testdata::{Rng, captures, specs, unhex, workspace};
use tickwire_wire_moex::fast::{Limits, Plan};
use tickwire_wire_moex::moex::{Action, Decoder, Encoder, MessageKind, OrderEntry, OrderKind};

fn plan(path: PathBuf) -> Arc<Plan> {
    let xml = std::fs::read_to_string(&path).unwrap();
    Arc::new(Plan::parse(&xml).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// How many entries a datagram has by the short way, if it is read by it: the long one then has the same.
fn short(decoder: &mut Decoder, datagram: &[u8]) -> Option<usize> {
    let log = decoder.order_log(datagram)?;
    let template = log.template_id();
    let short: Vec<_> = log
        .entries()
        .iter()
        .map(|row| {
            let (symbol, board) = log.instrument(row.instrument);
            (row.entry, symbol.to_vec(), board.to_vec())
        })
        .collect();
    let message = decoder
        .packet(datagram)
        .expect("what is read by the short way is right");
    assert_eq!(
        (message.kind(), message.template_id()),
        (MessageKind::OrderLog, template)
    );
    let mut orders = message.orders();
    let long: Vec<_> = std::iter::from_fn(|| {
        let entry = orders.next_unread()?;
        let (symbol, board) = orders.instrument(&entry);
        let (symbol, board) = (symbol.to_vec(), board.to_vec());
        Some((
            orders.book_entry(&entry).expect("every entry is right"),
            symbol,
            board,
        ))
    })
    .collect();
    assert_eq!(short, long);
    Some(long.len())
}

/// Packets of the recording, order logs among them, those that the short way reads, and their entries.
fn recorded(packets: &str, templates: &str) -> [usize; 4] {
    let mut decoder = Decoder::new(plan(specs(templates)), Limits::default()).unwrap();
    let text = std::fs::read_to_string(captures(packets)).unwrap();
    let mut counts = [0; 4];
    for packet in text.lines().map(unhex) {
        counts[0] += 1;
        let is_log = decoder
            .packet(&packet)
            .is_ok_and(|m| m.kind() == MessageKind::OrderLog);
        counts[1] += usize::from(is_log);
        let entries = short(&mut decoder, &packet);
        counts[2] += usize::from(entries.is_some());
        counts[3] += entries.unwrap_or(0);
        for end in 0..packet.len() {
            assert_eq!(
                decoder.order_log(&packet[..end]).map(|_| ()),
                None,
                "cut off at {end}"
            );
        }
    }
    counts
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn every_recorded_order_log_is_read_by_the_short_way() {
    let of_2017 = recorded("moex-asts/packets-2017.hex", "moex/templates-2017-03.xml");
    assert_eq!(of_2017, [330, 314, 314, 464]);
    let of_2020 = recorded("moex-asts/packets-2020.hex", "moex/templates-2020-11.xml");
    assert_eq!(of_2020, [4, 1, 1, 10]);
}

/// A number of up to so many bits, as often short as long.
fn short_or_long(rng: &mut Rng, bits: u64) -> u64 {
    let bits = rng.below(bits + 1);
    rng.below(1 << bits)
}

fn order(rng: &mut Rng) -> OrderEntry<'static> {
    let kind = match rng.below(12) {
        0 => OrderKind::EmptyBook,
        n => OrderKind::Order(Side::BOTH[n as usize % 2]),
    };
    let is_empty = kind == OrderKind::EmptyBook;
    let digits = rng.below(17) as u32;
    let action = [Action::New, Action::Change, Action::Delete][rng.below(3) as usize];
    OrderEntry {
        action,
        kind,
        order_id: OrderId(if is_empty {
            0
        } else {
            rng.below(10_u64.pow(digits)) + 1
        }),
        symbol: [
            &b"SBER"[..],
            b"A",
            b"USD000UTSTOM",
            b"EIGHTCHR",
            b"NINECHARS",
            b"ABCDEFGHIJKLMNOP",
        ][rng.below(6) as usize],
        board: [&b"TQBR"[..], b"CETS", b"B"][rng.below(3) as usize],
        rpt_seq: short_or_long(rng, 31) as u32,
        price: (!rng.chance(1, 9))
            .then(|| Price::from_decimal(rng.below(4_000_000) as i64 - 1000, rng.below(6) as u8).unwrap()),
        qty: (!rng.chance(1, 3)).then(|| Volume(short_or_long(rng, 40))),
        date: rng.chance(1, 5).then_some(20_201_102),
        time: (!rng.chance(1, 8)).then(|| Nanos(rng.below(86_400_000_000) * 1_000)),
        order_status: if rng.chance(1, 2) { b"" } else { b"O" },
        session: b"N",
    }
}

/// Messages of random orders with a file's order log, whole and with a byte changed: how many were read by
/// the short way of those that were whole, and of those that were not.
fn written(plan: &Arc<Plan>, template: &str, seed: u64, messages: usize) -> [usize; 2] {
    let mut encoder = Encoder::new(plan.clone(), Limits::default()).unwrap();
    let mut decoder = Decoder::new(plan.clone(), Limits::default()).unwrap();
    let template = encoder.template(template).unwrap();
    let (mut rng, mut out, mut counts) = (Rng::new(seed), [0; 4096], [0; 2]);
    for seq in 1..=messages as u32 {
        let orders: Vec<_> = (0..rng.below(6)).map(|_| order(&mut rng)).collect();
        let sent = Nanos(1_609_785_105_538_346_000 + u64::from(seq) * 1_000);
        let len = encoder.order_log(template, seq, sent, &orders, &mut out).unwrap();
        let whole = &mut out[..len];
        if let Some(entries) = short(&mut decoder, whole) {
            assert_eq!(entries, orders.len());
            counts[0] += 1;
        }
        for _ in 0..20 {
            let (at, bit) = (rng.below(len as u64) as usize, 1 << rng.below(8));
            whole[at] ^= bit;
            counts[1] += usize::from(short(&mut decoder, whole).is_some());
            whole[at] ^= bit;
        }
    }
    counts
}

#[test]
fn our_order_logs_are_read_by_the_short_way_and_damaged_ones_as_by_the_long_one() {
    let ours = plan(workspace().join("examples/moex-templates.xml"));
    let [whole, damaged] = written(&ours, "X-OLR-DEMO", 5, 2_000);
    assert_eq!(whole, 2_000);
    assert!(damaged > 10_000, "most changes are of a value: {damaged}");
}

#[tickwire_testdata::recorded_data("specs/moex")]
#[test]
fn order_logs_in_the_exchanges_templates_are_read_by_the_short_way() {
    for set in ["2017-03", "2020-11"] {
        let plan = plan(specs(&format!("moex/templates-{set}.xml")));
        for market in ["FOND", "CURR"] {
            let [whole, damaged] = written(&plan, &format!("X-OLR-{market}"), 6, 1_000);
            assert_eq!(whole, 1_000, "{market} of {set}");
            assert!(damaged > 5_000, "{market} of {set}: {damaged}");
        }
    }
}

/// A template with these fields of an entry.
fn template(fields: &[String]) -> Arc<Plan> {
    let xml = format!(
        r#"<templates><template name="X-OLR-TEST" id="7"><string name="MessageType" id="35"><constant value="X"/></string>
        <uInt32 name="MsgSeqNum" id="34"/><uInt64 name="SendingTime" id="52"/>
        <sequence name="Entries"><length name="NoMDEntries" id="268"/>{}</sequence></template></templates>"#,
        fields.concat()
    );
    Arc::new(Plan::parse(&xml).unwrap())
}

const FIELDS: [(&str, u32); 13] = [
    ("uInt32", 279),
    ("string", 269),
    ("string", 278),
    ("string", 55),
    ("int32", 83),
    ("decimal", 270),
    ("decimal", 271),
    ("uInt32", 272),
    ("uInt32", 273),
    ("uInt32", 9412),
    ("string", 10505),
    ("string", 336),
    ("uInt32", 64),
];

#[test]
fn fields_in_any_order_with_or_without_copies_are_read_alike() {
    let (mut rng, mut read) = (Rng::new(11), 0);
    for seed in 0..60 {
        let mut fields: Vec<_> = FIELDS.to_vec();
        for at in (1..fields.len()).rev() {
            fields.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let fields: Vec<_> = fields
            .iter()
            .map(|(kind, id)| {
                let copy = if rng.chance(2, 3) { "<copy/>" } else { "" };
                format!(r#"<{kind} name="F{id}" id="{id}" presence="optional">{copy}</{kind}>"#)
            })
            .collect();
        let [whole, _] = written(&template(&fields), "X-OLR-TEST", seed, 30);
        // Not of a template in which fields with and without a bit change places too often.
        assert!(whole == 0 || whole == 30, "{fields:?}");
        read += usize::from(whole == 30);
    }
    assert!(read > 15, "{read} of 60 templates");
}

#[test]
fn what_the_short_way_does_not_know_is_left_to_the_long_one() {
    let with = |id: u32, field: &str| {
        let fields: Vec<_> = FIELDS
            .iter()
            .map(|&(kind, other)| match other == id {
                true => field.to_string(),
                false => {
                    format!(r#"<{kind} name="F{other}" id="{other}" presence="optional"><copy/></{kind}>"#)
                }
            })
            .collect();
        written(&template(&fields), "X-OLR-TEST", 3, 50)[0]
    };
    assert_eq!(with(0, ""), 50);
    for (id, field) in [
        (
            83,
            r#"<int32 name="F" id="83" presence="optional"><increment/></int32>"#,
        ),
        (83, r#"<uInt32 name="F" id="83" presence="optional"/>"#),
        (
            270,
            r#"<decimal name="F" id="270" presence="optional"><delta/></decimal>"#,
        ),
        (
            279,
            r#"<uInt32 name="F" id="279" presence="optional"><default value="1"/></uInt32>"#,
        ),
        (
            336,
            r#"<string name="F" id="336" presence="optional"><copy value="TQBR"/></string>"#,
        ),
        (
            336,
            r#"<string name="F" id="336" presence="optional" charset="unicode"><copy/></string>"#,
        ),
        (
            10505,
            r#"<string name="F" id="10505" presence="optional"><tail/></string>"#,
        ),
    ] {
        assert_eq!(with(id, field), 0, "{field}");
    }
    let twice = r#"<decimal name="F" id="270" presence="optional"><copy/></decimal>
        <decimal name="G" id="270" presence="optional"><copy/></decimal>"#;
    assert_eq!(with(270, twice), 0, "a field that is there twice");
    // What nobody needs may be a constant or have a default.
    for (id, field) in [
        (64, r#"<uInt32 name="F" id="64"><constant value="5"/></uInt32>"#),
        (
            64,
            r#"<uInt32 name="F" id="64" presence="optional"><default/></uInt32>"#,
        ),
    ] {
        assert_eq!(with(id, field), 50, "{field}");
    }
}

#[test]
fn more_entries_or_bytes_than_a_record_has_room_for_are_refused_by_both_ways() {
    let ours = plan(workspace().join("examples/moex-templates.xml"));
    let mut encoder = Encoder::new(ours.clone(), Limits::default()).unwrap();
    let template = encoder.template("X-OLR-DEMO").unwrap();
    let mut rng = Rng::new(9);
    let orders: Vec<_> = (0..40).map(|_| order(&mut rng)).collect();
    let mut out = [0; 4096];
    let len = encoder
        .order_log(template, 1, Nanos(1_609_785_105_538_346_000), &orders, &mut out)
        .unwrap();
    for values_max in 470..500 {
        let limits = Limits {
            values_max,
            ..Limits::default()
        };
        let mut decoder = Decoder::new(ours.clone(), limits).unwrap();
        let is_read = decoder.packet(&out[..len]).is_ok();
        assert_eq!(
            short(&mut decoder, &out[..len]).is_some(),
            is_read,
            "{values_max} values"
        );
    }
    let limits = Limits {
        text_bytes_max: len - PREAMBLE - 1,
        ..Limits::default()
    };
    let mut decoder = Decoder::new(ours, limits).unwrap();
    assert_eq!(short(&mut decoder, &out[..len]), None);
}

const PREAMBLE: usize = tickwire_wire_moex::moex::PREAMBLE_LEN;
