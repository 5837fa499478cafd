//! Datagrams for tests: message `n` of a session is the deletion of order `n`, so that an event tells its
//! number twice.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its part")]

pub mod transcript;

use tickwire_feed::{ArbiterConfig, FeedHandler, ItchConfig, ItchDecoder, ItchFeed};
use tickwire_market::{EventKind, MarketEvent, SeqNo};
use tickwire_wire::itch50::OrderDelete;
use tickwire_wire::layout::Pod;
use tickwire_wire::moldudp64::{self, PacketBuilder};

pub const SESSION: [u8; 10] = *b"MONDAY    ";

pub fn feed(config: ArbiterConfig) -> ItchFeed {
    FeedHandler::new(
        config,
        ItchDecoder::new(ItchConfig {
            instruments_max: 64,
            ..ItchConfig::default()
        }),
    )
}

pub fn message(n: u64) -> OrderDelete {
    OrderDelete {
        order_ref: n.into(),
        ..OrderDelete::at(1, 0)
    }
}

/// Messages `first..=last` in one datagram.
pub fn packet(session: [u8; 10], first: u64, last: u64) -> Vec<u8> {
    let mut bytes = vec![0; 65_536];
    let mut builder = PacketBuilder::new(&mut bytes, session, SeqNo(first));
    for n in first..=last {
        assert!(builder.push(message(n).as_bytes()));
    }
    let len = builder.finish();
    bytes.truncate(len);
    bytes
}

pub fn heartbeat(session: [u8; 10], next: u64) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    moldudp64::heartbeat(&mut bytes, session, SeqNo(next));
    bytes
}

pub fn end_of_session(session: [u8; 10], next: u64) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    moldudp64::end_of_session(&mut bytes, session, SeqNo(next));
    bytes
}

/// Whether the event came from a live message (and not from the feed itself); checks its two numbers.
pub fn delivered(event: &MarketEvent) -> bool {
    if event.kind != EventKind::Delete {
        return false;
    }
    assert_eq!(
        event.seq.0, event.order_id.0,
        "an event carries the number of its message"
    );
    true
}
