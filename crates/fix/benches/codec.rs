//! Orders out and execution reports in, nanoseconds per message: the two ends of a trading session's hot
//! path. A regression here means that the template rewrites more than what changes, or that a message is read
//! more than once.
//!
//! `cargo bench -p tickwire-fix` prints the figures. Every message written is read back by the naive codec
//! and every value read is compared with the one written, so a wrong answer cannot be fast.

mod messages;

use std::hint::black_box;
use std::time::Instant;
use tickwire_fix::dict::{Dictionary, Validation, Validator};
use tickwire_fix::{
    Again, CompId, Event, ExecType, ExecutionReport, Frame, Id, Index, Message, NewOrder, NewOrderSingle,
    OrdStatus, OrderTemplate, Precision, Reason, Role, Session, SessionConfig, Stamp, frame, naive,
};
use tickwire_market::{
    Cause, ClientOrderId, Nanos, OrderType, Price, Qty, SeqNo, Side, Symbol, TimeInForce, Venue,
};
use tickwire_testdata::Rng;

/// What ships: large blocks on huge pages.
#[global_allocator]
static ALLOCATOR: tickwire_runtime::alloc::Allocator = tickwire_runtime::alloc::Allocator;

const START: Nanos = Nanos(1_795_226_141_123_456_789);
/// Messages per timed batch.
const BATCH: usize = 1024;

fn main() {
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let batches = if is_bench { 400 } else { 2 };
    let mut rng = Rng::new(1);
    report(is_bench, "NewOrderSingle out, general encoder", || {
        orders_out(batches)
    });
    let (reports, refreshes) = (messages::reports(), messages::refreshes());
    report(is_bench, "ExecutionReport in, checksum, 16 fields", || {
        read_in(batches, &reports, messages::sum_report)
    });
    report(is_bench, "MarketDataIncrementalRefresh in, 4 entries", || {
        read_in(batches, &refreshes, messages::sum_refresh)
    });
    report(is_bench, "ExecutionReport in, validated, 16 fields", || {
        validated_in(batches, &reports)
    });
    report(
        is_bench,
        "encode NewOrderSingle, template, ms time, store on",
        || template(&mut rng, batches, Precision::Millis),
    );
    report(
        is_bench,
        "encode NewOrderSingle, template, ns time, store on",
        || template(&mut rng, batches, Precision::Nanos),
    );
    report(is_bench, "encode NewOrderSingle, general, store on", || {
        general(&mut rng, batches)
    });
    report(is_bench, "frame + index + checksum of ExecutionReport", || {
        index_only(&mut rng, batches)
    });
    report(is_bench, "the same + all fields typed", || {
        decode(&mut rng, batches)
    });
    report(
        is_bench,
        "ExecutionReport through the session to its event",
        || receive(&mut rng, batches),
    );
}

fn report(print: bool, what: &str, mut run: impl FnMut() -> (Vec<f64>, usize)) {
    let (mut batches, bytes) = run();
    batches.sort_by(f64::total_cmp);
    let at = |share: f64| batches[((batches.len() - 1) as f64 * share) as usize];
    if print {
        println!(
            "{what}: p50 {:.1} ns, p90 {:.1} ns, p99 {:.1} ns, p99.9 {:.1} ns, best {:.1} ns ({bytes} bytes)",
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(0.0)
        );
    }
}

/// The messages that `peers/fix` compares codecs on.
fn orders_out(batches: usize) -> (Vec<f64>, usize) {
    let (orders, header) = (messages::orders(), messages::order_header());
    let (mut buf, mut stamp) = (vec![0; 512], Stamp::new(Precision::Millis));
    let mut bytes = 0;
    for order in &orders {
        let written = messages::encode_order(&mut buf, &header, &mut stamp, order);
        assert_eq!(written, messages::plain_order(order));
        bytes += written.len();
    }
    let times = (0..batches).map(|_| {
        let start = Instant::now();
        let mut written = 0;
        for order in black_box(&orders) {
            written += black_box(messages::encode_order(&mut buf, &header, &mut stamp, order)).len();
        }
        assert_eq!(written, bytes);
        start.elapsed().as_nanos() as f64 / orders.len() as f64
    });
    (times.collect(), bytes / orders.len())
}

/// Frames, checks and reads messages; `sum` must say what each was made with.
fn read_in(
    batches: usize,
    messages: &[(Vec<u8>, u64)],
    mut sum: impl FnMut(&Message<'_>) -> Option<u64>,
) -> (Vec<f64>, usize) {
    let (mut times, mut index) = (Vec::new(), Index::new(64));
    let expected = messages.iter().fold(0u64, |all, m| all.wrapping_add(m.1));
    for _ in 0..batches {
        let (start, mut all) = (Instant::now(), 0u64);
        for (bytes, _) in black_box(messages) {
            let Frame::Whole(len) = frame(bytes, 4096) else {
                panic!("whole messages")
            };
            let message = index.decode(&bytes[..len]).unwrap();
            all = all.wrapping_add(sum(&message).unwrap());
        }
        times.push(start.elapsed().as_nanos() as f64 / messages.len() as f64);
        assert_eq!(all, expected);
    }
    let bytes: usize = messages.iter().map(|m| m.0.len()).sum();
    (times, bytes / messages.len())
}

fn validated_in(batches: usize, reports: &[(Vec<u8>, u64)]) -> (Vec<f64>, usize) {
    let dictionary = Dictionary::standard("FIX.4.4").expect("it is built in");
    let mut validator = Validator::new(&dictionary, &dictionary);
    read_in(batches, reports, |m| {
        validator
            .check(&dictionary, &dictionary, m, Validation::default())
            .ok()?;
        messages::sum_report(m)
    })
}

fn comp(text: &[u8]) -> CompId {
    CompId::new(text).unwrap()
}

/// Two sessions logged on to each other.
fn pair(precision: Precision) -> (Session, Session) {
    let config = |role, sender: &[u8], target: &[u8]| SessionConfig {
        precision,
        latency_max_ns: 0,
        ..SessionConfig::new(role, comp(sender), comp(target))
    };
    let mut initiator = Session::new(config(Role::Initiator, b"TICKWIRE", b"EXCHANGE"));
    let mut acceptor = Session::new(config(Role::Acceptor, b"EXCHANGE", b"TICKWIRE"));
    initiator.handle_connected(START);
    acceptor.handle_connected(START);
    let mut buf = [0; 4096];
    for _ in 0..2 {
        while let Some(bytes) = initiator.poll_transmit(&mut buf) {
            assert_eq!(acceptor.handle_bytes(START, bytes), bytes.len());
        }
        while let Some(bytes) = acceptor.poll_transmit(&mut buf) {
            assert_eq!(initiator.handle_bytes(START, bytes), bytes.len());
        }
    }
    assert!(matches!(initiator.poll_event(), Some(Event::LoggedOn { .. })));
    assert!(matches!(acceptor.poll_event(), Some(Event::LoggedOn { .. })));
    (initiator, acceptor)
}

fn order(rng: &mut Rng, id: u64) -> NewOrder {
    NewOrder {
        id: ClientOrderId(id),
        side: if rng.chance(1, 2) { Side::Bid } else { Side::Ask },
        price: Price::from_4dp(1 + rng.below(5_000_000) as u32),
        qty: Qty(1 + rng.below(10_000) as u32),
        time_in_force: TimeInForce::ImmediateOrCancel,
        cause: Cause {
            venue: Venue::Nasdaq,
            seq: SeqNo(rng.below(1 << 32)),
            recv_ts: Nanos(START.0 + id * 20_000),
        },
    }
}

fn template(rng: &mut Rng, batches: usize, precision: Precision) -> (Vec<f64>, usize) {
    let (mut session, _) = pair(precision);
    let mut template = OrderTemplate::new(&session, Symbol::new(b"WIRE").unwrap()).unwrap();
    let (mut times, mut bytes, mut id) = (Vec::new(), 0, 0);
    let mut index = Index::new(64);
    for _ in 0..batches {
        let orders: Vec<NewOrder> = (0..BATCH)
            .map(|_| {
                id += 1;
                order(rng, id)
            })
            .collect();
        let start = Instant::now();
        for order in &orders {
            let now = Nanos(order.cause.recv_ts.0 + 900);
            black_box(template.send(&mut session, now, order, Again::Resend).unwrap());
        }
        times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
        let (first, last) = (id + 2 - BATCH as u64, id + 1); // number 1 was the Logon
        let mut kept = session.store().clone();
        for (seq, order) in (first..=last).zip(&orders) {
            let message = tickwire_fix::Store::get(&mut kept, seq).expect("the store keeps a batch");
            bytes = message.len();
            check(&mut index, message, seq, order, precision);
        }
    }
    (times, bytes)
}

fn check(index: &mut Index, message: &[u8], seq: u64, order: &NewOrder, precision: Precision) {
    let plain = naive::decode(message).unwrap_or_else(|| panic!("not a message: {}", message.escape_ascii()));
    assert_eq!(
        plain[3].1.iter().fold(0, |n, d| n * 10 + u64::from(d - b'0')),
        seq
    );
    assert_eq!(frame(message, message.len()), Frame::Whole(message.len()));
    let Ok(m) = NewOrderSingle::decode(&index.decode(message).unwrap()) else {
        panic!("not an order: {}", message.escape_ascii());
    };
    let unit = if precision == Precision::Nanos {
        1
    } else {
        1_000_000
    };
    let expected = NewOrderSingle {
        cl_ord_id: m.cl_ord_id,
        symbol: Symbol::new(b"WIRE").unwrap(),
        side: order.side,
        transact_time: Nanos((order.cause.recv_ts.0 + 900) / unit * unit),
        qty: order.qty,
        order_type: OrderType::Limit,
        price: Some(order.price),
        stop: None,
        time_in_force: order.time_in_force,
        cause: Some(order.cause),
    };
    assert_eq!(m, expected);
    assert_eq!(m.cl_ord_id.to_number(), Some(order.id.0));
}

fn general(rng: &mut Rng, batches: usize) -> (Vec<f64>, usize) {
    let (mut session, _) = pair(Precision::Millis);
    let (mut times, mut bytes, mut buf) = (Vec::new(), 0, vec![0; 1 << 20]);
    for _ in 0..batches {
        let orders: Vec<NewOrderSingle> = (0..BATCH as u64)
            .map(|i| {
                let o = order(rng, i);
                NewOrderSingle {
                    cl_ord_id: o.id.into(),
                    symbol: Symbol::new(b"WIRE").unwrap(),
                    side: o.side,
                    transact_time: START,
                    qty: o.qty,
                    order_type: OrderType::Limit,
                    price: Some(o.price),
                    stop: None,
                    time_in_force: o.time_in_force,
                    cause: Some(o.cause),
                }
            })
            .collect();
        let start = Instant::now();
        for order in &orders {
            bytes = session.poll_transmit(&mut buf).map_or(bytes, <[u8]>::len);
            let order = black_box(order);
            session
                .send(START, NewOrderSingle::MSG_TYPE, Again::Resend, |e, stamp| {
                    order.encode(e, stamp)
                })
                .unwrap();
        }
        times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
        bytes = session.poll_transmit(&mut buf).map_or(0, <[u8]>::len);
        assert!(naive::decode(&buf[..bytes]).is_some());
    }
    (times, bytes)
}

fn execution(rng: &mut Rng, i: u64) -> ExecutionReport {
    let qty = 100 + rng.below(10_000) as u32;
    let last = 1 + rng.below(u64::from(qty)) as u32;
    let price = Price::from_4dp(1_000_000 + rng.below(5_000_000) as u32);
    ExecutionReport {
        order_id: Id::from_number(5_000_000_000 + i),
        cl_ord_id: Id::from_number(1_000_000 + i),
        orig_cl_ord_id: Id::EMPTY,
        exec_id: Id::from_number(7_000_000_000 + i),
        exec_type: ExecType::Trade,
        ord_status: if last == qty {
            OrdStatus::Filled
        } else {
            OrdStatus::PartiallyFilled
        },
        ord_rej_reason: None,
        symbol: Symbol::new(b"WIRE").unwrap(),
        side: if rng.chance(1, 2) { Side::Bid } else { Side::Ask },
        qty: Qty(qty),
        order_type: OrderType::Limit,
        price: Some(price),
        stop: None,
        is_working: false,
        time_in_force: TimeInForce::Day,
        last_qty: Qty(last),
        last_px: Some(price),
        leaves_qty: Qty(qty - last),
        cum_qty: Qty(last),
        avg_px: price,
        transact_time: Nanos(START.0 / 1_000_000 * 1_000_000),
        cause: Some(Cause {
            venue: Venue::Nasdaq,
            seq: SeqNo(i),
            recv_ts: START,
        }),
        text: Reason::EMPTY,
    }
}

/// One batch of execution reports on the wire, each with what it says.
fn executions(rng: &mut Rng, acceptor: &mut Session) -> (Vec<ExecutionReport>, Vec<Vec<u8>>) {
    let mut buf = vec![0; 4096];
    (0..BATCH as u64)
        .map(|i| {
            let report = execution(rng, i);
            acceptor
                .send(START, ExecutionReport::MSG_TYPE, Again::Resend, |e, stamp| {
                    report.encode(e, stamp)
                })
                .unwrap();
            (report, acceptor.poll_transmit(&mut buf).unwrap().to_vec())
        })
        .unzip()
}

fn index_only(rng: &mut Rng, batches: usize) -> (Vec<f64>, usize) {
    let (_, mut acceptor) = pair(Precision::Millis);
    let (_, wire) = executions(rng, &mut acceptor);
    let expected: usize = wire.iter().map(|m| naive::decode(m).unwrap().len()).sum();
    let (mut times, mut index) = (Vec::new(), Index::new(64));
    for _ in 0..batches {
        let start = Instant::now();
        let mut fields = 0;
        for bytes in &wire {
            let Frame::Whole(len) = frame(black_box(bytes), 4096) else {
                panic!("whole messages")
            };
            fields += index.decode(&bytes[..len]).unwrap().fields().len();
        }
        times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
        assert_eq!(fields, expected);
    }
    (times, wire[0].len())
}

fn decode(rng: &mut Rng, batches: usize) -> (Vec<f64>, usize) {
    let (_, mut acceptor) = pair(Precision::Millis);
    let (reports, wire) = executions(rng, &mut acceptor);
    let (mut times, mut index) = (Vec::new(), Index::new(64));
    for _ in 0..batches {
        let start = Instant::now();
        for bytes in &wire {
            let Frame::Whole(len) = frame(black_box(bytes), 4096) else {
                panic!("whole messages")
            };
            black_box(ExecutionReport::decode(&index.decode(&bytes[..len]).unwrap()).unwrap());
        }
        times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
    }
    for (bytes, report) in wire.iter().zip(&reports) {
        assert_eq!(
            ExecutionReport::decode(&index.decode(bytes).unwrap()),
            Ok(*report)
        );
    }
    (times, wire[0].len())
}

fn receive(rng: &mut Rng, batches: usize) -> (Vec<f64>, usize) {
    let (mut initiator, mut acceptor) = pair(Precision::Millis);
    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..batches {
        let (reports, wire) = executions(rng, &mut acceptor);
        bytes = wire[0].len();
        let mut events = Vec::with_capacity(BATCH);
        let start = Instant::now();
        for bytes in &wire {
            assert_eq!(initiator.handle_bytes(START, bytes), bytes.len());
            let event = initiator.poll_event();
            let report = initiator.message().map(|m| ExecutionReport::decode(&m));
            events.push((event, report));
        }
        times.push(start.elapsed().as_nanos() as f64 / BATCH as f64);
        for (event, report) in events.iter().zip(&reports) {
            let (Some(Event::Message { .. }), Some(got)) = event else {
                panic!("not an execution report: {event:?}");
            };
            assert_eq!(*got, Ok(*report));
        }
    }
    (times, bytes)
}
