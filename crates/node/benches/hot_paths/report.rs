//! What an execution report costs from its bytes to its fields, through the session: framed, checked,
//! sequenced, decoded; and an order out with its report back, through both sessions, but for the connection
//! between them. The answer is checked: what was read is what was written.

use std::hint::black_box;

use tickwire_fix::{
    Again, CompId, Event, ExecType, ExecutionReport, Id, OrdStatus, Precision, Reason, Role, Session,
    SessionConfig, tag,
};
use tickwire_market::{Nanos, OrderType, Price, Qty, Side, Symbol, TimeInForce};

const START: Nanos = Nanos(1_795_226_141_123_000_000);

/// Reads so many reports of so many written.
pub(crate) fn reports(whole: u64, done: u64) -> u64 {
    let [mut initiator, mut acceptor] = pair();
    let mut buffer = [0; 4096];
    let written: Vec<(ExecutionReport, Vec<u8>)> = (0..whole)
        .map(|n| {
            let report = execution(n);
            let sent = acceptor.send(
                START,
                ExecutionReport::MSG_TYPE,
                Again::Resend,
                |encoder, stamp| report.encode(encoder, stamp),
            );
            sent.expect("it is logged on");
            let bytes = acceptor.poll_transmit(&mut buffer).expect("it was sent");
            (report, bytes.to_vec())
        })
        .collect();
    for (report, bytes) in &written[..done as usize] {
        assert_eq!(initiator.handle_bytes(START, black_box(bytes)), bytes.len());
        let event = initiator.poll_event();
        assert!(matches!(event, Some(Event::Message { .. })), "{event:?}");
        let read = initiator
            .message()
            .map(|message| ExecutionReport::decode(&message));
        assert_eq!(read, Some(Ok(*report)));
    }
    done
}

/// Sends so many orders, each behind the report of the one before, with the fields of `tickwire fix bench`.
pub(crate) fn round_trips(_: u64, done: u64) -> u64 {
    let [mut initiator, mut acceptor] = pair();
    let mut buffer = [0; 4096];
    for n in 0..done {
        let report = execution(n);
        let sent = initiator.send(START, b"D", Again::Resend, |e, _| {
            e.text(tag::CL_ORD_ID, report.cl_ord_id.as_bytes());
            e.text(1, b"ACCOUNT-0042");
            e.char(21, b'1');
            e.unsigned(tag::ORDER_QTY, report.qty.0.into());
            e.char(tag::ORD_TYPE, b'2');
            e.price(tag::PRICE, report.avg_px);
            e.char(tag::SIDE, b'1');
            e.text(tag::SYMBOL, b"WIRE");
            e.char(tag::TIME_IN_FORCE, b'0');
            e.text(tag::TRANSACT_TIME, b"20261122-09:30:00.000");
            e.text(100, b"XNAS");
            e.text(207, b"XNAS");
        });
        sent.expect("it is logged on");
        let bytes = initiator.poll_transmit(&mut buffer).expect("it was sent");
        assert_eq!(acceptor.handle_bytes(START, black_box(bytes)), bytes.len());
        let event = acceptor.poll_event();
        assert!(matches!(event, Some(Event::Message { .. })), "{event:?}");
        let order = acceptor.message().expect("the event's");
        let text = |tag| order.find(tag).and_then(|f| Id::new(order.value(f)));
        let (cl_ord_id, symbol) = (text(tag::CL_ORD_ID), text(tag::SYMBOL));
        let (cl_ord_id, symbol) = cl_ord_id.zip(symbol).expect("both are there");
        let field = |tag| order.find(tag).expect("it is there");
        let qty = order.unsigned(field(tag::ORDER_QTY)).expect("a quantity");
        let price = order.price(field(tag::PRICE)).expect("a price");
        let side = order.char(field(tag::SIDE)).expect("a side");
        assert_eq!((qty, price), (report.qty.0.into(), report.avg_px));
        let sent = acceptor.send(START, b"8", Again::Resend, |e, _| {
            e.text(1, b"ACCOUNT-0042");
            e.price(tag::AVG_PX, price);
            e.text(tag::CL_ORD_ID, cl_ord_id.as_bytes());
            e.unsigned(tag::CUM_QTY, qty);
            e.text(tag::EXEC_ID, report.exec_id.as_bytes());
            e.price(tag::LAST_PX, price);
            e.unsigned(tag::LAST_QTY, qty);
            e.text(tag::ORDER_ID, report.order_id.as_bytes());
            e.unsigned(tag::ORDER_QTY, qty);
            e.char(tag::ORD_STATUS, b'2');
            e.char(tag::ORD_TYPE, b'2');
            e.price(tag::PRICE, price);
            e.char(tag::SIDE, side);
            e.text(tag::SYMBOL, symbol.as_bytes());
            e.char(tag::TIME_IN_FORCE, b'0');
            e.text(tag::TRANSACT_TIME, b"20261122-09:30:00.000");
            e.char(tag::EXEC_TYPE, b'F');
            e.unsigned(tag::LEAVES_QTY, 0);
            e.text(207, b"XNAS");
        });
        sent.expect("it is logged on");
        let bytes = acceptor.poll_transmit(&mut buffer).expect("it was sent");
        assert_eq!(initiator.handle_bytes(START, black_box(bytes)), bytes.len());
        let event = initiator.poll_event();
        assert!(matches!(event, Some(Event::Message { .. })), "{event:?}");
        let message = initiator.message().expect("the event's");
        let answered = message.find(tag::CL_ORD_ID).map(|f| message.value(f));
        assert_eq!(answered, Some(report.cl_ord_id.as_bytes()));
    }
    done
}

fn execution(n: u64) -> ExecutionReport {
    let qty = 100 + (n * 37 % 10_000) as u32;
    let last = 1 + (n * 11 % u64::from(qty)) as u32;
    let price = Price::from_4dp(1_000_000 + (n * 101 % 5_000_000) as u32);
    ExecutionReport {
        order_id: Id::from_number(5_000_000_000 + n),
        cl_ord_id: Id::from_number(1_000_000 + n),
        orig_cl_ord_id: Id::EMPTY,
        exec_id: Id::from_number(7_000_000_000 + n),
        exec_type: ExecType::Trade,
        is_working: false,
        ord_status: if last == qty {
            OrdStatus::Filled
        } else {
            OrdStatus::PartiallyFilled
        },
        ord_rej_reason: None,
        symbol: Symbol::new(b"WIRE").expect("a symbol"),
        side: Side::BOTH[n as usize % 2],
        qty: Qty(qty),
        order_type: OrderType::Limit,
        price: Some(price),
        stop: None,
        time_in_force: TimeInForce::Day,
        last_qty: Qty(last),
        last_px: Some(price),
        leaves_qty: Qty(qty - last),
        cum_qty: Qty(last),
        avg_px: price,
        transact_time: START,
        cause: None,
        text: Reason::EMPTY,
    }
}

/// Two sessions that are logged on to each other.
fn pair() -> [Session; 2] {
    let comp = |text: &[u8]| CompId::new(text).expect("a CompID");
    let session = |role, sender: &[u8], target: &[u8]| {
        let mut session = Session::new(SessionConfig {
            precision: Precision::Millis,
            latency_max_ns: 0,
            ..SessionConfig::new(role, comp(sender), comp(target))
        });
        session.handle_connected(START);
        session
    };
    let mut sessions = [
        session(Role::Initiator, b"TICKWIRE", b"EXCHANGE"),
        session(Role::Acceptor, b"EXCHANGE", b"TICKWIRE"),
    ];
    let mut buffer = [0; 4096];
    for turn in 0..4 {
        let [from, to] = &mut sessions;
        let (from, to) = if turn % 2 == 0 { (from, to) } else { (to, from) };
        while let Some(bytes) = from.poll_transmit(&mut buffer) {
            assert_eq!(to.handle_bytes(START, bytes), bytes.len());
        }
    }
    for session in &mut sessions {
        assert!(matches!(session.poll_event(), Some(Event::LoggedOn { .. })));
    }
    sessions
}
