//! A prepared NewOrderSingle of a session that is logged on: only what changes is written, the store included
//! or none behind it.

use std::hint::black_box;

use tickwire_fix::{
    Again, CompId, MemoryStore, NewOrder, OrderTemplate, Role, Session, SessionConfig, Store, StoreFailed,
    naive,
};
use tickwire_market::{Cause, ClientOrderId, Nanos, Price, Qty, SeqNo, Side, Symbol, TimeInForce, Venue};

use crate::messages::Order;
use crate::{Run, Task};

/// Counts and keeps nothing.
struct Nothing {
    next: [u64; 2],
}

impl Store for Nothing {
    fn next_out(&self) -> u64 {
        self.next[0]
    }
    fn next_in(&self) -> u64 {
        self.next[1]
    }
    fn set_next_out(&mut self, seq: u64) {
        self.next[0] = seq;
    }
    fn set_next_in(&mut self, seq: u64) {
        self.next[1] = seq;
    }
    fn append(&mut self, seq: u64, _: &[u8]) -> Result<(), StoreFailed> {
        self.next[0] = seq + 1;
        Ok(())
    }
    fn get(&mut self, _: u64) -> Option<&[u8]> {
        None
    }
    fn reset(&mut self) {
        self.next = [1; 2];
    }
    fn period(&self) -> Nanos {
        Nanos::ZERO
    }
    fn set_period(&mut self, _: Nanos) {}
}

fn config(role: Role, sender: &[u8], target: &[u8]) -> SessionConfig {
    let id = |text| CompId::new(text).expect("an identity");
    SessionConfig {
        latency_max_ns: 0,
        ..SessionConfig::new(role, id(sender), id(target))
    }
}

/// A session that is logged on at `now`, and its template.
fn session<S: Store>(now: Nanos, store: S) -> (Session<S>, OrderTemplate) {
    let mut ours = Session::with_store(config(Role::Initiator, b"TICKWIRE", b"EXCHANGE"), store);
    let mut theirs = Session::new(config(Role::Acceptor, b"EXCHANGE", b"TICKWIRE"));
    ours.handle_connected(now);
    theirs.handle_connected(now);
    let mut buf = [0; 4096];
    while let Some(bytes) = ours.poll_transmit(&mut buf) {
        assert_eq!(theirs.handle_bytes(now, bytes), bytes.len());
    }
    while let Some(bytes) = theirs.poll_transmit(&mut buf) {
        assert_eq!(ours.handle_bytes(now, bytes), bytes.len());
    }
    while ours.poll_event().is_some() {}
    let symbol = Symbol::new(b"WIRE").expect("a symbol");
    let template = OrderTemplate::new(&ours, symbol).expect("logged on");
    (ours, template)
}

fn of(order: &Order) -> (Nanos, NewOrder) {
    let new = NewOrder {
        id: ClientOrderId(order.seq),
        side: if order.side == b'1' { Side::Bid } else { Side::Ask },
        price: Price::from_raw(order.cents * 10_000_000),
        qty: Qty(order.qty),
        time_in_force: match order.time_in_force {
            b'3' => TimeInForce::ImmediateOrCancel,
            b'4' => TimeInForce::FillOrKill,
            _ => TimeInForce::Day,
        },
        cause: Cause {
            venue: Venue::Nasdaq,
            seq: SeqNo(order.seq),
            recv_ts: Nanos(order.time),
        },
    };
    (Nanos(order.time), new)
}

fn run<'a, S: Store + 'a>(orders: &'a [(Nanos, NewOrder)], store: S) -> Run<'a> {
    let (mut session, mut template) = session(orders[0].0, store);
    // What it writes is right: every value comes back from the naive codec.
    for (now, order) in orders {
        let message = template
            .send(&mut session, *now, order, Again::Resend)
            .expect("a message");
        let plain = naive::decode(message).expect("a FIX message");
        let value = |tag: u32| {
            let field = plain.iter().find(|(t, _)| *t == tag).expect("a field");
            String::from_utf8_lossy(&field.1).into_owned()
        };
        let number = |tag| value(tag).parse::<f64>().expect("a number");
        assert_eq!(number(38), f64::from(order.qty.0));
        assert!((number(44) - order.price.raw() as f64 / 1e9).abs() < 1e-9);
        assert_eq!(number(11), order.id.0 as f64);
    }
    Box::new(move || {
        let mut bytes = 0;
        for (now, order) in black_box(orders) {
            let message = template.send(&mut session, *now, order, Again::Resend);
            bytes += black_box(message.expect("a message")).len();
        }
        vec![bytes as u64]
    })
}

/// The same orders' values.
pub fn orders(orders: &[Order]) -> Vec<(Nanos, NewOrder)> {
    orders.iter().map(of).collect()
}

/// Ours without and with a store; `other` writes the whole message.
pub fn task<'a>(orders: &'a [(Nanos, NewOrder)], other: Option<(&'static str, Run<'a>)>) -> Task<'a> {
    let mut ours = run(orders, Nothing { next: [1; 2] });
    let expected = ours();
    let mut runs = vec![
        ("tickwire, prepared, no store", ours),
        (
            "tickwire, prepared, kept in memory",
            run(orders, MemoryStore::new(4096, 1 << 20)),
        ),
    ];
    if let Some((name, mut other)) = other {
        // Its message is another: it has checked its own length.
        let answer = expected.clone();
        let other: Run<'a> = Box::new(move || {
            other();
            answer.clone()
        });
        runs.push((name, other));
    }
    Task {
        name: "NewOrderSingle out, prepared",
        bytes: expected[0] as usize / orders.len(),
        expected,
        runs,
    }
}
