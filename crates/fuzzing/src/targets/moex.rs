//! The Moscow Exchange's channel and its replay server.

use std::sync::{Arc, OnceLock};

use tickwire_exchange::{
    Engine, EngineConfig, Listener, MoexPublisher, MoexPublisherConfig, Order, Publisher, Tape, listings,
};
use tickwire_feed::{ArbiterConfig, Channel, Line, MoexChannel, MoexChannelConfig, MoexConfig};
use tickwire_market::{Nanos, OrderId, Port, Price, Qty};
use tickwire_wire::fast::{Limits, Plan};
use tickwire_wire::moex::{Decoder, MessageKind, split_replay};

/// Our own templates.
pub(crate) fn templates() -> Arc<Plan> {
    static PLAN: OnceLock<Arc<Plan>> = OnceLock::new();
    let read = || {
        let path = tickwire_testdata::workspace().join("examples/moex-templates.xml");
        let xml = std::fs::read_to_string(path).expect("the file is part of the project");
        Arc::new(Plan::parse(&xml).expect("the templates are right"))
    };
    PLAN.get_or_init(read).clone()
}

const LIMITS: Limits = Limits {
    values_max: 1024,
    text_bytes_max: 4096,
    strict: true,
};

/// A channel with its loops and its connection. Each operation is a length, what takes the bytes, and the
/// bytes.
pub fn moex_feed(bytes: &[u8]) {
    let config = MoexChannelConfig {
        arbiter: ArbiterConfig {
            buffer_packets: 4,
            packet_bytes: 300,
            gaps: 4,
            ..MoexChannelConfig::arbiter()
        },
        ..MoexChannelConfig::new(MoexConfig {
            instruments_max: 4,
            limits: LIMITS,
            ..MoexConfig::new(templates())
        })
    };
    let mut channel = MoexChannel::new(config).expect("our templates have every field");
    let (mut rest, mut now) = (bytes, Nanos(1));
    let mut buffer = [0; 64];
    let mut decoder = Decoder::new(templates(), LIMITS).expect("our templates have every field");
    while let [length, what, more @ ..] = rest {
        let (bytes, after) = more.split_at(more.len().min(usize::from(*length)));
        rest = after;
        both_ways(&mut decoder, bytes);
        now = now.after(1_000_000);
        let mut sink = super::ascending();
        let line = if what & 8 == 0 { Line::A } else { Line::B };
        match what % 8 {
            0..=2 => channel.on_datagram(now, Port::Live, line, bytes, &mut sink),
            3 => channel.on_datagram(now, Port::Snapshot, line, bytes, &mut sink),
            4 => channel.on_datagram(now, Port::Definitions, line, bytes, &mut sink),
            5 => channel.on_bytes(now, Port::Replay, bytes, &mut sink),
            6 if what & 8 == 0 => channel.connected(now, Port::Replay),
            6 => channel.disconnected(now, Port::Replay, &mut sink),
            _ => channel.handle_timeout(now.after(4 * Nanos::SECOND), &mut sink),
        }
        while channel.poll_transmit(Port::Replay, &mut buffer).is_some() {}
        assert!(channel.poll_timeout().is_none_or(|t| t.0 < u64::MAX));
        assert!(channel.feed().filter().instruments().count() <= 4);
    }
}

/// An order log that is read by the short way has the entries that the long one finds.
fn both_ways(decoder: &mut Decoder, datagram: &[u8]) {
    let Some(log) = decoder.order_log(datagram) else {
        return;
    };
    let short: Vec<_> = log.entries().iter().map(|row| row.entry).collect();
    let message = decoder
        .packet(datagram)
        .expect("what is read by the short way is right");
    let mut orders = message.orders();
    for entry in short {
        let unread = orders
            .next_unread()
            .expect("both have the same number of entries");
        assert_eq!(orders.book_entry(&unread), Ok(entry));
    }
    assert!(orders.next_unread().is_none());
}

/// A replay connection with ten packets to ask for. The first byte cuts the stream; what is answered can be
/// read.
pub fn moex_replay_server(bytes: &[u8]) {
    let (Some(&cut), engine) = (
        bytes.first(),
        Engine::new(EngineConfig {
            instruments: 1,
            max_orders: 16,
            max_levels: 16,
        }),
    ) else {
        return;
    };
    let listings = listings(1);
    let config = MoexPublisherConfig {
        store_bytes: 0,
        store_messages: 16,
        entries_max: 1,
        limits: LIMITS,
        ..MoexPublisherConfig::default()
    };
    let mut publisher =
        MoexPublisher::new(config, templates(), &listings).expect("our templates have every field");
    let now = Nanos(1_767_596_400 * Nanos::SECOND);
    publisher.open(now);
    publisher.set_time(1);
    for id in 1..=10 {
        publisher.rested(&Order {
            id: OrderId(id),
            price: Price::from_4dp(10_000),
            qty: Qty(5),
            instrument: listings[0].id,
            ..Order::default()
        });
        assert!(publisher.poll_datagram(now).is_some());
    }
    assert!(publisher.connect(Port::Replay, 0, now));
    let (mut answer, mut buffer) = (Vec::new(), [0; 50]);
    for part in bytes[1..].chunks(usize::from(cut).max(1)) {
        publisher.handle_bytes(Port::Replay, 0, now, part, &engine);
        while let Some(bytes) = publisher.poll_transmit(Port::Replay, 0, now, &mut buffer) {
            answer.extend_from_slice(bytes);
        }
    }
    let mut decoder = Decoder::new(templates(), LIMITS).expect("our templates have every field");
    let (mut rest, mut replayed) = (&answer[..], 0);
    while let Some((message, used)) = split_replay(rest).expect("lengths are right") {
        let message = decoder.message(message).expect("what is answered can be read");
        replayed += u32::from(message.kind() == MessageKind::OrderLog);
        rest = &rest[used..];
    }
    assert!(rest.is_empty() && replayed <= 10);
}
