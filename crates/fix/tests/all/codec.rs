//! The codec beside its naive twin, on seeded streams of good and damaged messages. `SEED=n` repeats a run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use tickwire_fix::{
    Again, BusinessMessageReject, CancelKind, CompId, Encoder, Excess, ExecType, ExecutionReport, Fault,
    Frame, Garbled, Id, Index, MassQuoteTemplate, MsgType, NewOrder, NewOrderSingle, OrdStatus,
    OrderCancelReject, OrderCancelReplaceRequest, OrderCancelRequest, OrderTemplate, Precision, Reason, Role,
    SendError, Session, SessionConfig, Stamp, Store, Throttle, Version, frame, naive, tag,
};
use tickwire_market::{
    Cause, ClientOrderId, Nanos, OrderType, Price, Qty, SeqNo, Side, Symbol, TimeInForce, Venue,
};
use tickwire_testdata::Rng;

use crate::subset;

use subset::Typed;

const NOW: Nanos = Nanos(1_795_226_141_123_456_789);

pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}

fn text(rng: &mut Rng, max: u64) -> Vec<u8> {
    (0..1 + rng.below(max))
        .map(|_| b' ' + rng.below(95) as u8)
        .collect()
}

fn fields(rng: &mut Rng) -> Vec<(u32, Vec<u8>)> {
    const TAGS: [u32; 14] = [1, 9, 11, 34, 44, 49, 52, 58, 95, 96, 150, 354, 20_001, 9_999_999];
    let mut fields = vec![(tag::MSG_TYPE, text(rng, 2))];
    for _ in 0..rng.below(40) {
        let tag = TAGS[rng.below(14) as usize];
        let value = match tag {
            95 => {
                let data: Vec<u8> = (0..rng.below(20)).map(|_| rng.below(4) as u8).collect();
                fields.push((95, (data.len() + 1).to_string().into_bytes()));
                fields.push((96, [&data[..], b"."].concat()));
                continue;
            }
            354 => rng.below(9).to_string().into_bytes(),
            _ => text(rng, 90),
        };
        fields.push((tag, value));
    }
    fields
}

/// What the fast codec says, in the naive one's terms.
fn fast(index: &mut Index, message: &[u8]) -> Option<Vec<(u32, Vec<u8>)>> {
    if frame(message, 1 << 16) != Frame::Whole(message.len()) {
        return None;
    }
    let m = index.decode(message).ok()?;
    if m.malformed().is_some() {
        return None;
    }
    Some(m.fields().iter().map(|&f| (f.tag, m.value(f).to_vec())).collect())
}

#[test]
fn every_message_reads_as_the_naive_codec_reads_it() {
    let mut index = Index::new(256);
    for seed in seeds(20_000) {
        let mut rng = Rng::new(seed);
        let written = fields(&mut rng);
        let message = naive::encode(&written);
        let read = naive::decode(&message);
        assert!(
            fast(&mut index, &message) == read,
            "SEED={seed} {}",
            message.escape_ascii()
        );
        if written.iter().all(|(tag, _)| *tag != 354) {
            assert!(read.unwrap()[2..] == written, "SEED={seed}");
        }
    }
}

#[test]
fn damaged_messages_are_refused_as_the_naive_codec_refuses_them() {
    let mut index = Index::new(256);
    for seed in seeds(40_000) {
        let mut rng = Rng::new(seed);
        let mut message = naive::encode(&fields(&mut rng));
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(message.len() as u64) as usize;
            match rng.below(4) {
                0 => message[at] = rng.next_u64() as u8,
                1 => message[at] = b"\x01=0198|"[rng.below(7) as usize],
                2 => drop(message.remove(at)),
                _ => message.insert(at, b"\x01=0198|"[rng.below(7) as usize]),
            }
        }
        if rng.chance(1, 2) && message.len() > 40 {
            mend(&mut message); // so that damage inside the fields is reached
        }
        let both = catch_unwind(AssertUnwindSafe(|| {
            (fast(&mut index, &message), naive::decode(&message))
        }));
        let (fast, slow) = both.unwrap_or_else(|_| panic!("SEED={seed} {}", message.escape_ascii()));
        if let Some(fast) = fast {
            assert!(Some(fast) == slow, "SEED={seed} {}", message.escape_ascii());
        }
    }
}

/// Makes length and checksum right again.
fn mend(message: &mut Vec<u8>) {
    let Some(body) = message
        .iter()
        .enumerate()
        .filter(|&(_, &b)| b == 1)
        .map(|(at, _)| at + 1)
        .nth(1)
    else {
        return;
    };
    let end = message.len().saturating_sub(7);
    if body < end {
        let mut whole = format!("8=FIX.4.4\x019={}\x01", end - body).into_bytes();
        whole.extend_from_slice(&message[body..end]);
        let sum = whole.iter().fold(0u8, |sum, &b| sum.wrapping_add(b));
        whole.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        *message = whole;
    }
}

#[test]
fn every_reason_for_a_garbled_message_is_told() {
    let good = naive::encode(&[(35, b"0".to_vec()), (34, b"1".to_vec())]);
    let garbled = |bytes: &[u8]| match frame(bytes, 4096) {
        Frame::Garbled { why, skip } => (why, skip),
        other => panic!("{other:?} {}", bytes.escape_ascii()),
    };
    assert_eq!(frame(&good, 4096), Frame::Whole(good.len()));
    for cut in 0..good.len() {
        assert_eq!(frame(&good[..cut], 4096), Frame::Partial, "cut at {cut}");
    }
    assert_eq!(garbled(b"9=5\x018=FIX.4.4\x01"), (Garbled::NoBeginString, 4));
    assert_eq!(garbled(b"8=FIX.4.4.4.4.4.4.4.4.4"), (Garbled::NoBeginString, 23));
    assert_eq!(garbled(b"8=FIX.4.4\x0135=0\x018=F"), (Garbled::NoBodyLength, 15));
    assert_eq!(garbled(b"8=FIX.4.4\x019=x\x01").0, Garbled::NoBodyLength);
    assert_eq!(garbled(b"8=FIX.4.4\x019=\x01").0, Garbled::NoBodyLength);
    assert_eq!(garbled(b"8=FIX.4.4\x019=999999999\x01").0, Garbled::NoBodyLength);
    assert_eq!(garbled(b"8=FIX.4.4\x019=1000000\x01").0, Garbled::TooLong);
    let mut shifted = good.clone();
    shifted.insert(good.len() - 7, b'x');
    assert_eq!(
        garbled(&[&shifted[..], b"8=FIX"].concat()),
        (Garbled::NoCheckSum, shifted.len())
    );
    let mut index = Index::new(8);
    let at = good.len() - 10;
    let mut wrong = good.clone();
    wrong[at] = b'9';
    assert!(matches!(index.decode(&wrong), Err(Garbled::CheckSum { .. })));
    let untyped = naive::encode(&[(34, b"1".to_vec())]);
    assert_eq!(index.decode(&untyped).err(), Some(Garbled::NoMsgType));
    assert_eq!(index.decode(b"10=000").err(), Some(Garbled::NoCheckSum));
}

fn id(rng: &mut Rng) -> Id {
    Id::new(&text(rng, 23)).unwrap()
}

fn price(rng: &mut Rng) -> Price {
    match rng.below(4) {
        0 => Price::from_raw(rng.next_u64() as i64),
        1 => Price::from_raw(rng.below(1_000_000_000_000) as i64 * 10),
        _ => Price::from_4dp(rng.below(10_000_000) as u32),
    }
}

fn maybe<T>(rng: &mut Rng, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    if rng.chance(1, 2) { Some(make(rng)) } else { None }
}

fn cause(rng: &mut Rng) -> Cause {
    Cause {
        venue: Venue::ALL[rng.below(16) as usize],
        seq: SeqNo(rng.next_u64() >> rng.below(64)),
        recv_ts: Nanos(rng.next_u64() >> rng.below(64)),
    }
}

fn time(rng: &mut Rng) -> Nanos {
    Nanos(rng.below(16_000_000_000_000_000_000))
}

fn side(rng: &mut Rng) -> Side {
    Side::BOTH[rng.below(2) as usize]
}

fn qty(rng: &mut Rng) -> Qty {
    Qty((rng.next_u64() >> (32 + rng.below(32))) as u32)
}

fn symbol(rng: &mut Rng) -> Symbol {
    loop {
        let symbol = Symbol::new(&text(rng, 23)).unwrap();
        if !symbol.is_empty() {
            return symbol;
        }
    }
}

fn time_in_force(rng: &mut Rng) -> TimeInForce {
    [
        TimeInForce::Day,
        TimeInForce::GoodTillCancel,
        TimeInForce::AtTheOpening,
        TimeInForce::ImmediateOrCancel,
        TimeInForce::FillOrKill,
        TimeInForce::AtTheClose,
    ][rng.below(6) as usize]
}

fn order_type(rng: &mut Rng) -> OrderType {
    if rng.chance(1, 4) {
        OrderType::Market
    } else {
        OrderType::Limit
    }
}

fn reason(rng: &mut Rng) -> Reason {
    maybe(rng, |rng| Reason::new(&text(rng, 63)).unwrap()).unwrap_or(Reason::EMPTY)
}

fn code(rng: &mut Rng) -> u16 {
    (rng.next_u64() >> (48 + rng.below(16))) as u16
}

fn status(rng: &mut Rng) -> OrdStatus {
    [
        OrdStatus::New,
        OrdStatus::PartiallyFilled,
        OrdStatus::Filled,
        OrdStatus::Rejected,
    ][rng.below(4) as usize]
}

fn app(rng: &mut Rng) -> Typed {
    match rng.below(6) {
        0 => Typed::Order(NewOrderSingle {
            cl_ord_id: id(rng),
            symbol: symbol(rng),
            side: side(rng),
            transact_time: time(rng),
            qty: qty(rng),
            order_type: order_type(rng),
            price: maybe(rng, price),
            stop: maybe(rng, price),
            time_in_force: time_in_force(rng),
            cause: maybe(rng, cause),
        }),
        1 => Typed::Cancel(OrderCancelRequest {
            cl_ord_id: id(rng),
            orig_cl_ord_id: id(rng),
            order_id: maybe(rng, id).unwrap_or(Id::EMPTY),
            symbol: symbol(rng),
            side: side(rng),
            transact_time: time(rng),
            qty: qty(rng),
            cause: maybe(rng, cause),
        }),
        2 => Typed::Replace(OrderCancelReplaceRequest {
            cl_ord_id: id(rng),
            orig_cl_ord_id: id(rng),
            order_id: maybe(rng, id).unwrap_or(Id::EMPTY),
            symbol: symbol(rng),
            side: side(rng),
            transact_time: time(rng),
            qty: qty(rng),
            order_type: order_type(rng),
            price: maybe(rng, price),
            stop: maybe(rng, price),
            time_in_force: time_in_force(rng),
            cause: maybe(rng, cause),
        }),
        3 => {
            let stop = maybe(rng, price);
            Typed::Report(ExecutionReport {
                order_id: id(rng),
                cl_ord_id: maybe(rng, id).unwrap_or(Id::EMPTY),
                orig_cl_ord_id: maybe(rng, id).unwrap_or(Id::EMPTY),
                exec_id: id(rng),
                exec_type: [ExecType::New, ExecType::Trade, ExecType::Canceled][rng.below(3) as usize],
                ord_status: status(rng),
                ord_rej_reason: maybe(rng, code),
                symbol: symbol(rng),
                side: side(rng),
                qty: qty(rng),
                order_type: order_type(rng),
                price: maybe(rng, price),
                stop,
                is_working: stop.is_some() && rng.chance(1, 2),
                time_in_force: time_in_force(rng),
                last_qty: qty(rng),
                last_px: maybe(rng, price),
                leaves_qty: qty(rng),
                cum_qty: qty(rng),
                avg_px: price(rng),
                transact_time: time(rng),
                cause: maybe(rng, cause),
                text: reason(rng),
            })
        }
        4 => Typed::CancelReject(OrderCancelReject {
            order_id: id(rng),
            cl_ord_id: id(rng),
            orig_cl_ord_id: id(rng),
            ord_status: status(rng),
            response_to: if rng.chance(1, 2) {
                CancelKind::Cancel
            } else {
                CancelKind::Replace
            },
            reason: maybe(rng, code),
            text: reason(rng),
        }),
        _ => Typed::BusinessReject(BusinessMessageReject {
            ref_seq: SeqNo(rng.below(1000)),
            ref_msg_type: MsgType::new(&text(rng, 7)).unwrap(),
            ref_id: maybe(rng, id).unwrap_or(Id::EMPTY),
            reason: code(rng),
            text: reason(rng),
        }),
    }
}

/// An initiator that is logged on.
fn logged_on(precision: Precision) -> Session {
    logged_on_with(precision, None)
}

/// The same, which sends no more than this.
fn logged_on_with(precision: Precision, throttle_out: Option<Throttle>) -> Session {
    let comp = |text: &[u8]| CompId::new(text).unwrap();
    let mut session = Session::new(SessionConfig {
        precision,
        latency_max_ns: 0,
        throttle_out,
        ..SessionConfig::new(Role::Initiator, comp(b"US"), comp(b"THEM"))
    });
    session.handle_connected(NOW);
    let logon = [
        (35, &b"A"[..]),
        (34, b"1"),
        (49, b"THEM"),
        (52, b"20261121-01:55:41"),
        (56, b"US"),
        (98, b"0"),
        (108, b"30"),
    ];
    let logon = naive::encode(&logon.map(|(tag, value)| (tag, value.to_vec())));
    assert_eq!(session.handle_bytes(NOW, &logon), logon.len());
    while session.poll_transmit(&mut [0; 4096]).is_some() {}
    session
}

#[test]
fn every_typed_message_comes_back_from_the_wire() {
    let (mut session, mut index, mut buf) = (logged_on(Precision::Nanos), Index::new(64), vec![0; 4096]);
    for seed in seeds(20_000) {
        let sent = app(&mut Rng::new(seed));
        subset::send(&mut session, NOW, &sent).unwrap();
        let bytes = session.poll_transmit(&mut buf).unwrap();
        assert!(
            naive::decode(bytes).is_some(),
            "SEED={seed} {}",
            bytes.escape_ascii()
        );
        let read = subset::read(&index.decode(bytes).unwrap());
        assert_eq!(read, Ok(Some(sent)), "SEED={seed} {}", bytes.escape_ascii());
    }
}

/// Rehearsed as often as one likes, an order uses no number, no place in the rate and no room in the store;
/// where it could not be sent it is not rehearsed either.
#[test]
fn an_order_that_is_rehearsed_uses_nothing_of_its_session() {
    let throttle = Throttle {
        per_second: 1,
        burst: 2,
        excess: Excess::Reject,
    };
    let mut session = logged_on_with(Precision::Millis, Some(throttle));
    let mut template = OrderTemplate::new(&session, Symbol::new(b"WIRE").unwrap()).unwrap();
    let mut rng = Rng::new(1);
    let order = NewOrder {
        id: ClientOrderId(1),
        side: side(&mut rng),
        price: Price::from_4dp(1_0000),
        qty: Qty(5),
        time_in_force: time_in_force(&mut rng),
        cause: cause(&mut rng),
    };
    let known = |session: &Session| (session.store().next_out(), session.counters().clone());
    for sent in 0..2 {
        let before = known(&session);
        // Later than what follows: a session does not take its time from what is rehearsed.
        let later = NOW.after(3 * Nanos::SECOND);
        for _ in 0..10 {
            let rehearsed = template.rehearse(&mut session, later, &order);
            assert!(
                rehearsed.is_some_and(|message| message.starts_with(b"8=FIX")),
                "{sent}"
            );
        }
        assert_eq!(known(&session), before);
        let seq = session.store().next_out();
        let message = template.send(&mut session, NOW, &order, Again::Resend).unwrap();
        let message = message.to_vec();
        assert_eq!(session.store().clone().get(seq), Some(&*message), "after {sent}");
    }
    let beyond = template.send(&mut session, NOW, &order, Again::Resend);
    assert!(matches!(beyond, Err(SendError::Throttled { .. })), "{beyond:?}");
    session.handle_disconnected(NOW);
    assert_eq!(template.rehearse(&mut session, NOW, &order), None);
}

#[test]
fn an_order_from_the_template_says_what_one_from_the_general_encoder_says() {
    for precision in [
        Precision::Seconds,
        Precision::Millis,
        Precision::Micros,
        Precision::Nanos,
    ] {
        let mut session = logged_on(precision);
        let mut general = logged_on(precision);
        let mut passing = logged_on(precision);
        let mut passing_template = OrderTemplate::new(&passing, Symbol::new(b"WIRE").unwrap()).unwrap();
        let mut template = OrderTemplate::new(&session, Symbol::new(b"WIRE").unwrap()).unwrap();
        let (mut index, mut buf, mut now) = (Index::new(64), vec![0; 4096], NOW);
        for seed in seeds(20_000) {
            let mut rng = Rng::new(seed);
            now = now.after(rng.next_u64() >> (30 + rng.below(34)));
            let order = NewOrder {
                id: ClientOrderId(rng.next_u64() >> rng.below(64)),
                side: side(&mut rng),
                price: price(&mut rng),
                qty: qty(&mut rng),
                time_in_force: time_in_force(&mut rng),
                cause: cause(&mut rng),
            };
            let seq = session.store().next_out();
            let patched = template.send(&mut session, now, &order, Again::Resend).unwrap();
            let passed = passing_template
                .send(&mut passing, now, &order, Again::GapFill)
                .unwrap();
            assert_eq!(passed, patched, "SEED={seed}");
            let plain =
                naive::decode(patched).unwrap_or_else(|| panic!("SEED={seed} {}", patched.escape_ascii()));
            assert_eq!(
                session.store().clone().get(seq).unwrap(),
                template_bytes(&plain),
                "SEED={seed}"
            );
            let from_template = subset::read(&index.decode(&template_bytes(&plain)).unwrap()).unwrap();
            let message = Typed::Order(NewOrderSingle {
                cl_ord_id: order.id.into(),
                symbol: Symbol::new(b"WIRE").unwrap(),
                side: order.side,
                transact_time: now,
                qty: order.qty,
                order_type: OrderType::Limit,
                price: Some(order.price),
                stop: None,
                time_in_force: order.time_in_force,
                cause: Some(order.cause),
            });
            subset::send(&mut general, now, &message).unwrap();
            let bytes = general.poll_transmit(&mut buf).unwrap();
            let from_general = subset::read(&index.decode(bytes).unwrap()).unwrap();
            let without_zeros = |message| match message {
                Some(Typed::Order(m)) => {
                    assert_eq!(m.cl_ord_id.to_number(), Some(order.id.0), "SEED={seed}");
                    NewOrderSingle {
                        cl_ord_id: order.id.into(),
                        ..m
                    }
                }
                other => panic!("SEED={seed} {other:?}"),
            };
            assert_eq!(
                without_zeros(from_template),
                without_zeros(from_general),
                "SEED={seed}"
            );
        }
        // The same bytes and numbers, but nothing to send again.
        assert_eq!(passing.store().next_out(), session.store().next_out());
        let (sent, mut store) = (2..passing.store().next_out(), passing.store().clone());
        assert!(sent.end > 3 && sent.rev().all(|seq| store.get(seq).is_none()));
    }
}

/// The message of these fields as the template writes it: BodyLength as said, not recomputed.
fn template_bytes(fields: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let message = naive::encode(&fields[2..]);
    assert_eq!(naive::decode(&message).unwrap()[1], fields[1]);
    message
}

#[test]
fn a_prepared_mass_quote_is_a_message_of_the_session_and_is_not_sent_again() {
    use tickwire_fix::{MassQuoteHead, QuoteDecimals, QuotePrices};
    use tickwire_market::MassQuoteEntry;
    let now = Nanos(1_767_623_400_000_000_000);
    let config = |role, sender: &[u8], target: &[u8]| {
        SessionConfig::new(role, CompId::new(sender).unwrap(), CompId::new(target).unwrap())
    };
    let mut maker = Session::new(config(Role::Initiator, b"MM1", b"XCH"));
    let mut venue = Session::new(config(Role::Acceptor, b"XCH", b"MM1"));
    let prices = QuotePrices {
        tick: Price::from_4dp(500),
        decimals: QuoteDecimals::Two,
    };
    let symbols = [Symbol::new(b"ESZ6 C5000").unwrap()];
    let head = MassQuoteHead {
        id: 1,
        cause: Cause::default(),
        reset: false,
    };
    let entry = MassQuoteEntry {
        quote: 0,
        bid_ticks: 201,
        ask_ticks: 203,
        bid_qty: Qty(10),
        ask_qty: Qty(10),
    };
    let mut template = MassQuoteTemplate::new(&maker, &symbols, prices, 15).unwrap();
    assert!(
        template.send(&mut maker, now, &head, &[entry]).is_err(),
        "not logged on"
    );
    maker.handle_connected(now);
    venue.handle_connected(now);
    let mut buf = [0; 4096];
    let mut carry = |from: &mut Session, to: &mut Session| {
        let mut seen = Vec::new();
        while from.poll_event().is_some() {}
        while let Some(bytes) = from.poll_transmit(&mut buf) {
            assert_eq!(to.handle_bytes(now, bytes), bytes.len());
            seen.extend_from_slice(bytes);
        }
        String::from_utf8(seen).unwrap().replace('\x01', "|")
    };
    carry(&mut maker, &mut venue);
    carry(&mut venue, &mut maker);
    while maker.poll_event().is_some() || venue.poll_event().is_some() {}
    for id in 1..4 {
        // What was only rehearsed leaves nothing behind: no byte, no number, no value.
        let other = MassQuoteEntry {
            bid_ticks: 77,
            bid_qty: Qty(999),
            ..entry
        };
        let rehearsed = MassQuoteHead { id: 4_711, ..head };
        template.rehearse(&mut maker, now, &rehearsed, &[other; 3]);
        assert!(maker.poll_transmit(&mut [0; 4096]).is_none());
        let head = MassQuoteHead { id, ..head };
        let message = template.send(&mut maker, now, &head, &[entry]).unwrap();
        let text = String::from_utf8(message.to_vec()).unwrap().replace('\x01', "|");
        let wanted =
            "|304=01|295=01|299=0|55=ESZ6 C5000|132=000010.05|133=000010.15|134=000010|135=000010|10=";
        assert!(
            text.contains(&format!("|117={id:016}|")) && text.contains(wanted),
            "{text}"
        );
        // The second is lost.
        if id != 2 {
            assert_eq!(venue.handle_bytes(now, message), message.len());
        }
    }
    assert!(
        carry(&mut venue, &mut maker).contains("|35=2|"),
        "it was not asked for"
    );
    let again = carry(&mut maker, &mut venue);
    assert!(
        again.contains("|35=4|") && again.contains("|123=Y|") && again.contains("|36=5|"),
        "{again}"
    );
    assert!(
        !again.contains("|35=i|"),
        "a quote of the past was sent again: {again}"
    );
    assert!(template.send(&mut maker, now, &head, &[]).is_err());
    assert!(template.send(&mut maker, now, &head, &[entry]).unwrap().len() > 200);
}

/// Every length field with its data, by what their names are in the built-in dictionaries.
fn pairs() -> std::collections::BTreeSet<(u32, u32)> {
    use tickwire_fix::dict::{Dictionary, standard_names};
    let mut pairs = std::collections::BTreeSet::new();
    for version in standard_names() {
        let dictionary = Dictionary::standard(version).expect("it is built in");
        for field in dictionary.fields() {
            let name = |end| dictionary.field_named(&format!("{}{end}", field.name));
            if matches!(&*field.type_name, "DATA" | "XMLDATA")
                && let Some(length) = name("Len").or_else(|| name("Length"))
            {
                pairs.insert((length.tag, field.tag));
            }
        }
    }
    pairs
}

#[test]
fn data_whose_length_lies_is_malformed_for_every_pair_of_fields() {
    use tickwire_fix::{Fault, SessionRejectReason};
    let mut index = Index::new(64);
    let pairs = pairs();
    assert!(pairs.len() > 80, "{pairs:?}");
    for (length, data) in pairs {
        let fault_of = |index: &mut Index, body: &str| {
            let body = body
                .replace('L', &length.to_string())
                .replace('D', &data.to_string());
            let field = |field: &str| {
                let (tag, value) = field.split_once('=').expect("a field");
                (
                    tag.parse().expect("a tag"),
                    value.replace('~', "\x01").into_bytes(),
                )
            };
            let fields: Vec<(u32, Vec<u8>)> = body.split('|').map(field).collect();
            let message = naive::encode(&fields);
            let fault = index.decode(&message).expect("it is framed").malformed();
            assert_eq!(fault.is_none(), naive::decode(&message).is_some(), "{body}");
            fault
        };
        let lies = Some(Fault::value(length));
        for (body, fault) in [
            ("35=B|L=3|D=abc|58=x", None),
            ("35=B|L=5|D=a~b=c|58=x", None),
            ("35=B|L=3|D=a~b", None),
            // Too short: a separator in the data ends the field, and the rest is read as another.
            ("35=B|L=3|D=a~100=c|58=x", lies),
            ("35=B|L=2|D=abcdef|58=x", lies),
            ("35=B|L=2|D=abcdef", lies),
            ("35=B|L=0|D=a|58=x", lies),
            // Too long: up to the end of the next field, into it, beyond the message.
            ("35=B|L=4|D=ab|58=x", lies),
            ("35=B|L=99|D=ab|58=x", lies),
            ("35=B|L=4294967297|D=ab|58=x", lies),
            ("35=B|L=x|D=ab|58=x", Some(Fault::format(length))),
            ("35=B|L=-2|D=ab|58=x", Some(Fault::format(length))),
            ("35=B|L=0|58=x", None),
        ] {
            assert_eq!(fault_of(&mut index, body), fault, "{length} and {data}: {body}");
        }
        for alone in ["35=B|L=2|58=x|D=ab", "35=B|L=2|58=x", "35=B|58=x|L=2"] {
            let fault = fault_of(&mut index, alone);
            let missing = (length < 5_000).then(|| Fault::missing(data));
            assert_eq!(fault, missing, "{length} and {data}: {alone}");
            assert!(fault.is_none_or(|f| f.reason == SessionRejectReason::RequiredTagMissing));
        }
    }
}

/// OrdType 3 and 4 are stop orders, whose trigger is StopPx (99); FIX 4.2, 4.4 and 5.0 SP2, "New Order -
/// Single".
#[test]
fn stop_orders_are_ord_type_3_and_4_with_stop_px_in_every_version() {
    let mut rng = Rng::new(5);
    let stop = Some(Price::from_4dp(101_0000));
    for version in [Version::Fix42, Version::Fix44, Version::Fix50Sp2] {
        for (order_type, expected) in [(OrderType::Market, "40=3"), (OrderType::Limit, "40=4")] {
            let Typed::Order(order) = (loop {
                if let found @ Typed::Order(_) = app(&mut rng) {
                    break found;
                }
            }) else {
                unreachable!("it is one")
            };
            let limit = (order_type == OrderType::Limit).then_some(Price::from_4dp(102_0000));
            let message = NewOrderSingle {
                order_type,
                price: limit,
                stop,
                ..order
            };
            let mut buffer = [0; 1024];
            let mut e = Encoder::new(&mut buffer, version);
            e.text(tag::MSG_TYPE, b"D");
            message.encode(&mut e, &mut Stamp::new(Precision::Nanos));
            let bytes = e.finish().unwrap().to_vec();
            let shown = String::from_utf8_lossy(&bytes).replace('\x01', "|");
            assert!(
                shown.contains(&format!("|{expected}|")) && shown.contains("|99=101"),
                "{shown}"
            );
            let mut index = Index::new(64);
            let read = NewOrderSingle::decode(&index.decode(&bytes).unwrap()).unwrap();
            assert_eq!(
                (read.order_type, read.price, read.stop),
                (order_type, limit, stop)
            );
            // Without its trigger it is no stop order, and not another one either.
            let mut e = Encoder::new(&mut buffer, version);
            e.text(tag::MSG_TYPE, b"D");
            let plain = NewOrderSingle {
                stop: None,
                ..message
            };
            plain.encode(&mut e, &mut Stamp::new(Precision::Nanos));
            let plain = e.finish().unwrap().to_vec();
            let ord_type = naive::decode(&plain)
                .unwrap()
                .into_iter()
                .map(|(tag, value)| match tag {
                    40 => (tag, expected.as_bytes()[3..].to_vec()),
                    _ => (tag, value),
                });
            let fields: Vec<(u32, Vec<u8>)> = ord_type.collect();
            let bare = naive::encode(&fields[2..]);
            let refused = NewOrderSingle::decode(&index.decode(&bare).unwrap());
            assert_eq!(refused.err(), Some(Fault::missing(tag::STOP_PX)), "{version:?}");
        }
    }
}
