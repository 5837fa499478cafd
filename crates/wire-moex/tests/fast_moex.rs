//! The typed views over Moscow Exchange messages: recorded packets, both template sets, our own templates.

use std::path::PathBuf;
use std::sync::Arc;

use tickwire_market::{Nanos, OrderId, Price, Side, Volume};
use tickwire_testdata::{captures, specs, unhex, workspace};
use tickwire_wire_moex::fast::{Decimal, Limits, Plan};
use tickwire_wire_moex::moex::{
    Action, Board, Decoder, Definition, Encoder, MessageKind, MoexError, OrderEntry, OrderKind,
    SnapshotHeader, Status, TradeEntry, preamble,
};

fn plan(path: PathBuf) -> Arc<Plan> {
    let xml = std::fs::read_to_string(&path).unwrap();
    Arc::new(Plan::parse(&xml).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

fn exchange(set: &str) -> Arc<Plan> {
    plan(specs(&format!("moex/templates-{set}.xml")))
}

fn ours() -> Arc<Plan> {
    plan(workspace().join("examples/moex-templates.xml"))
}

fn decoder(plan: Arc<Plan>) -> Decoder {
    Decoder::new(plan, Limits::default()).unwrap()
}

/// Since midnight: hours, minutes, seconds, microseconds.
fn at(h: u64, m: u64, s: u64, micros: u64) -> Option<Nanos> {
    Some(Nanos(((h * 60 + m) * 60 + s) * Nanos::SECOND + micros * 1_000))
}

fn price(text: &str) -> Option<Price> {
    Some(text.parse().unwrap())
}

fn packets(file: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(captures(&format!("moex-asts/{file}"))).unwrap();
    text.lines().map(unhex).collect()
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn the_first_recorded_currency_order_reads_as_worked_out_by_hand() {
    let mut decoder = decoder(exchange("2017-03"));
    let packet = &packets("packets-2017.hex")[0];
    assert_eq!(preamble(packet), Some(44_360));
    let message = decoder.packet(packet).unwrap();
    assert_eq!(
        (message.kind(), message.template_id(), message.seq()),
        (MessageKind::OrderLog, 3610, 44_360)
    );
    // 2017-05-14 07:16:54.583666 in Moscow.
    assert_eq!(message.sending_time(), Some(Nanos(1_494_735_414_583_666_000)));
    let entries: Vec<_> = message.orders().map(Result::unwrap).collect();
    let expected = OrderEntry {
        action: Action::Delete,
        kind: OrderKind::Order(Side::Ask),
        order_id: OrderId(14_234),
        symbol: b"USD000UTSTOM",
        board: b"CETS",
        rpt_seq: 18_494,
        price: price("59.955"),
        qty: None,
        date: None,
        time: at(7, 16, 54, 557_563),
        order_status: b"",
        session: b"N",
    };
    assert_eq!(entries, [expected]);
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn a_recorded_equities_packet_of_2021_has_ten_entries_and_copies_run_on_between_them() {
    let mut decoder = decoder(exchange("2020-11"));
    let packets = packets("packets-2020.hex");
    let packet = packets.iter().find(|p| preamble(p) == Some(234_681)).unwrap();
    let message = decoder.packet(packet).unwrap();
    assert_eq!(message.template_id(), 2620);
    assert_eq!(message.sending_time(), Some(Nanos(1_609_785_105_538_346_000)));
    let entries: Vec<_> = message.orders().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 10);
    let first = &entries[0];
    assert_eq!(
        (first.action, first.kind, first.order_id),
        (Action::Delete, OrderKind::Order(Side::Ask), OrderId(787_284))
    );
    assert_eq!(
        (first.symbol, first.board, first.rpt_seq),
        (&b"SU26234RMFS3"[..], &b"TQOB"[..], 812)
    );
    assert_eq!((first.price, first.qty), (price("98.796"), None));
    assert_eq!(first.time, at(21, 31, 45, 437_567));
    assert!(
        entries.iter().all(|e| e.price.is_some() && e.session == b"N"),
        "{entries:#?}"
    );
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn an_empty_book_is_one_entry_without_an_order() {
    let mut decoder = decoder(exchange("2017-03"));
    let packet = packets("packets-2017.hex").pop().unwrap();
    let message = decoder.packet(&packet).unwrap();
    assert_eq!(message.kind(), MessageKind::OrderSnapshot);
    let header = message.snapshot_header().unwrap();
    let expected = SnapshotHeader {
        symbol: b"MVID",
        board: b"TQBR",
        rpt_seq: 110,
        last_seq_processed: Some(169_635),
        first_fragment: true,
        last_fragment: true,
        session_status: Some(100),
        trading_status: Some(17),
        auction: None,
    };
    assert_eq!(header, expected);
    let entries: Vec<_> = message.orders().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].kind, entries[0].order_id, entries[0].symbol),
        (OrderKind::EmptyBook, OrderId(0), &b"MVID"[..])
    );
    assert_eq!(entries[0].rpt_seq, 110);
}

/// Every entry of every packet has a typed reading, and the order numbers, prices and sequence numbers agree
/// with what the exchange promises.
#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn every_recorded_packet_has_a_typed_reading() {
    let mut counts = [0; 4];
    for (file, set) in [("packets-2017.hex", "2017-03"), ("packets-2020.hex", "2020-11")] {
        let mut decoder = decoder(exchange(set));
        let mut last_rpt_seq = std::collections::BTreeMap::new();
        for packet in packets(file) {
            let Ok(message) = decoder.packet(&packet) else {
                continue;
            };
            match message.kind() {
                MessageKind::OrderLog | MessageKind::OrderSnapshot => {
                    for entry in message.orders() {
                        let entry = entry.unwrap();
                        counts[0] += 1;
                        if message.template_id() == 3610 {
                            let key = (entry.symbol.to_vec(), entry.board.to_vec());
                            last_rpt_seq.insert(key, entry.rpt_seq);
                        }
                        let is_order = entry.kind != OrderKind::EmptyBook;
                        assert!(
                            !is_order || (entry.price.is_some() && entry.order_id.0 > 0),
                            "{entry:?}"
                        );
                        assert!(
                            !is_order || entry.action == Action::Delete || entry.qty.is_some(),
                            "{entry:?}"
                        );
                    }
                }
                MessageKind::Trades => {
                    for trade in message.trades() {
                        let trade = trade.unwrap();
                        counts[1] += 1;
                        let (Some(p), Some(q)) = (trade.price, trade.qty) else {
                            panic!("{trade:?}")
                        };
                        assert!(
                            p > Price::from_raw(0) && q.0 > 0 && trade.trade_id > 0,
                            "{trade:?}"
                        );
                        assert!(trade.aggressor.is_some() && trade.value.is_some(), "{trade:?}");
                    }
                }
                MessageKind::Statistics | MessageKind::TradeSnapshot => {
                    counts[2] += message.statistics().map(Result::unwrap).count();
                }
                MessageKind::SecurityDefinition => {
                    let definition = message.definition();
                    assert!(!definition.symbol.is_empty(), "{definition:?}");
                    counts[3] += message.boards().count();
                }
                MessageKind::Heartbeat => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(set == "2020-11" || last_rpt_seq.len() > 10);
    }
    println!("orders, trades, statistics, boards: {counts:?}");
    assert!(counts.iter().all(|&n| n > 0), "{counts:?}");
}

#[tickwire_testdata::recorded_data("captures/moex-asts", "specs/moex")]
#[test]
fn the_same_identifier_has_another_layout_in_the_next_template_set() {
    let (mut right, mut wrong) = (decoder(exchange("2017-03")), decoder(exchange("2020-11")));
    let mut misread = 0;
    for packet in packets("packets-2017.hex") {
        let Ok(message) = right.packet(&packet) else {
            continue;
        };
        if message.template_id() != 3610 {
            continue;
        }
        let expected: Vec<_> = message.orders().collect();
        let same = wrong
            .packet(&packet)
            .is_ok_and(|m| m.orders().collect::<Vec<_>>() == expected);
        misread += u32::from(!same);
    }
    assert_eq!(
        misread, 313,
        "all order log packets need the template set of their time"
    );
}

#[test]
fn a_preamble_that_is_not_the_sequence_number_and_trailing_bytes_are_refused() {
    let mut decoder = decoder(ours());
    let mut encoder = Encoder::new(ours(), Limits::default()).unwrap();
    let log = encoder.template("X-OLR-DEMO").unwrap();
    let mut packet = vec![0; 256];
    let sent = Nanos(1_609_785_105_538_346_000);
    let len = encoder
        .order_log(log, 44_360, sent, &[order(2)], &mut packet)
        .unwrap();
    packet.truncate(len);
    assert!(decoder.packet(&packet).is_ok());
    packet[0] ^= 1;
    assert_eq!(
        decoder.packet(&packet).err(),
        Some(MoexError::Preamble {
            preamble: 44_361,
            seq: 44_360
        })
    );
    packet[0] ^= 1;
    packet.push(0x80);
    assert_eq!(
        decoder.packet(&packet).err(),
        Some(MoexError::Trailing { extra: 1 })
    );
    assert_eq!(decoder.packet(&packet[..3]).err(), Some(MoexError::Truncated));
    for len in 4..packet.len() - 1 {
        assert!(
            matches!(decoder.packet(&packet[..len]), Err(MoexError::Fast(_))),
            "{len}"
        );
    }
}

#[test]
fn a_template_file_without_a_needed_field_is_refused_at_start() {
    let xml = r#"<templates><template name="X-OLR-CURR" id="7">
        <string name="MessageType" id="35"><constant value="X"/></string>
        <uInt32 name="MsgSeqNum" id="34"/><uInt64 name="SendingTime" id="52"/>
        <sequence name="E"><length name="N" id="268"/><uInt32 name="MDUpdateAction" id="279"/></sequence>
        </template></templates>"#;
    let error = Decoder::new(Arc::new(Plan::parse(xml).unwrap()), Limits::default()).unwrap_err();
    assert_eq!((error.template, error.tag), (7, 269));
    assert_eq!(error.to_string(), "template 7 has no field with id 269");
}

fn order(n: u32) -> OrderEntry<'static> {
    OrderEntry {
        action: [Action::New, Action::Change, Action::Delete][n as usize % 3],
        kind: OrderKind::Order([Side::Bid, Side::Ask][n as usize / 3 % 2]),
        order_id: OrderId(1_000_000 + u64::from(n) * 7),
        symbol: [&b"SBER"[..], b"GAZP", b"USD000UTSTOM"][n as usize / 4 % 3],
        board: [&b"TQBR"[..], b"TQBR", b"CETS"][n as usize / 4 % 3],
        rpt_seq: n + 1,
        price: Some(Price::from_decimal(27_000 + i64::from(n % 9) * 5, 2).unwrap()),
        qty: (n % 3 != 2).then_some(Volume(u64::from(n % 5 + 1) * 100)),
        date: None,
        time: at(10, 0, n as u64 / 10 % 60, u64::from(n) * 37 % 1_000_000),
        order_status: if n % 3 == 2 { b"" } else { b"O" },
        session: b"N",
    }
}

/// Writes and reads every family with a template file; `market` is the suffix of the names.
fn round_trips(plan: Arc<Plan>, market: &str) {
    let mut encoder = Encoder::new(plan.clone(), Limits::default()).unwrap();
    let mut decoder = decoder(plan);
    let sent = Nanos(1_609_785_105_538_346_000);
    let mut out = [0; 4096];
    let template = |encoder: &Encoder, family: &str| encoder.template(&format!("{family}-{market}")).unwrap();

    let orders: Vec<_> = (0..40).map(order).collect();
    let log = template(&encoder, "X-OLR");
    let len = encoder.order_log(log, 77, sent, &orders, &mut out).unwrap();
    let message = decoder.packet(&out[..len]).unwrap();
    assert_eq!(
        (message.kind(), message.seq(), message.sending_time()),
        (MessageKind::OrderLog, 77, Some(sent))
    );
    assert_eq!(message.orders().map(Result::unwrap).collect::<Vec<_>>(), orders);

    let header = SnapshotHeader {
        symbol: b"SBER",
        board: b"TQBR",
        rpt_seq: 812,
        last_seq_processed: Some(76),
        first_fragment: true,
        last_fragment: false,
        session_status: Some(100),
        trading_status: Some(17),
        auction: None,
    };
    let resting: Vec<_> = (0..9)
        .map(|n| OrderEntry {
            symbol: b"SBER",
            board: b"TQBR",
            rpt_seq: 812,
            ..order(n * 3)
        })
        .collect();
    let snapshot = template(&encoder, "W-OLS");
    let len = encoder
        .order_snapshot(snapshot, 1, sent, &header, &resting, &mut out)
        .unwrap();
    let message = decoder.packet(&out[..len]).unwrap();
    assert_eq!(message.snapshot_header(), Ok(header));
    assert_eq!(message.orders().map(Result::unwrap).collect::<Vec<_>>(), resting);

    let trades: Vec<_> = (0..5)
        .map(|n| TradeEntry {
            trade_id: 9_000 + n,
            symbol: b"SBER",
            board: b"TQBR",
            rpt_seq: 5 + n as u32,
            aggressor: Some(if n % 2 == 0 { Side::Bid } else { Side::Ask }),
            price: price("271.35"),
            qty: Some(Volume(10 * (n + 1))),
            value: Some(Decimal::new(27_135, -1)),
            resting_order: Some(OrderId(1_000_007)),
            date: None,
            time: at(10, 0, 1, n),
            session: b"N",
        })
        .collect();
    let log = template(&encoder, "X-TLR");
    let len = encoder.trades(log, 3, sent, &trades, &mut out).unwrap();
    let message = decoder.packet(&out[..len]).unwrap();
    assert_eq!(message.trades().map(Result::unwrap).collect::<Vec<_>>(), trades);

    let snapshot = template(&encoder, "W-TLS");
    let len = encoder
        .trade_snapshot(snapshot, 4, sent, &header, &trades, &mut out)
        .unwrap();
    let message = decoder.packet(&out[..len]).unwrap();
    assert_eq!(
        (message.kind(), message.trades().count()),
        (MessageKind::TradeSnapshot, 5)
    );

    let definition = Definition {
        symbol: b"SBER",
        description: "Сбербанк".as_bytes(),
        currency: b"RUB",
        total_reports: Some(2),
        min_price_increment: price("0.01"),
        face_value: price("3"),
    };
    let board = |board| Board {
        board,
        session: b"N",
        trading_status: Some(17),
        round_lot: Some(10),
    };
    let boards = [board(&b"TQBR"[..]), board(b"EQRP")];
    let d = encoder.template("d").unwrap();
    let len = encoder
        .definition(d, 1, sent, &definition, &boards, &mut out)
        .unwrap();
    let message = decoder.packet(&out[..len]).unwrap();
    assert_eq!(message.definition(), definition);
    assert_eq!(message.boards().collect::<Vec<_>>(), boards);

    let status = Status {
        symbol: b"SBER",
        board: b"TQBR",
        session: b"N",
        trading_status: Some(18),
        ..Status::default()
    };
    let f = encoder.template("f").unwrap();
    let len = encoder.status(f, 2, sent, &status, &mut out).unwrap();
    assert_eq!(decoder.packet(&out[..len]).unwrap().status(), status);

    let status = Status {
        board: b"TQBR",
        session_status: Some(102),
        text: b"closed",
        ..Status::default()
    };
    let h = encoder.template("h").unwrap();
    let len = encoder.status(h, 3, sent, &status, &mut out).unwrap();
    assert_eq!(decoder.packet(&out[..len]).unwrap().status(), status);

    let heartbeat = encoder.template("0").unwrap();
    let len = encoder.heartbeat(heartbeat, 4, sent, &mut out).unwrap();
    assert_eq!(
        decoder.packet(&out[..len]).unwrap().kind(),
        MessageKind::Heartbeat
    );

    assert_eq!(
        encoder.heartbeat(h, 4, sent, &mut out),
        Err(MoexError::WrongTemplate)
    );
    assert_eq!(
        encoder.heartbeat(heartbeat, 4, sent, &mut [0; 3]),
        Err(MoexError::NoRoom)
    );
    assert!(matches!(
        encoder.heartbeat(heartbeat, 4, sent, &mut [0; 9]),
        Err(MoexError::Fast(_))
    ));
}

#[test]
fn every_family_is_written_and_read_with_our_templates() {
    round_trips(ours(), "DEMO");
}

#[tickwire_testdata::recorded_data("specs/moex")]
#[test]
fn every_family_is_written_and_read_with_either_template_set_of_the_exchange() {
    round_trips(exchange("2017-03"), "FOND");
    round_trips(exchange("2017-03"), "CURR");
    round_trips(exchange("2020-11"), "FOND");
    round_trips(exchange("2020-11"), "CURR");
}

#[test]
fn our_templates_name_every_family_once() {
    let plan = ours();
    let names: Vec<_> = plan.templates().map(|t| t.name()).collect();
    assert_eq!(
        names,
        [
            "X-OLR-DEMO",
            "W-OLS-DEMO",
            "X-TLR-DEMO",
            "W-TLS-DEMO",
            "d",
            "f",
            "h",
            "0",
            "A",
            "5"
        ]
    );
}
