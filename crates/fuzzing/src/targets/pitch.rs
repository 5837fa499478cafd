//! The servers of a PITCH unit: whatever clients say.

use crate::Choices;
use tickwire_exchange::{
    Engine, EngineConfig, Milestone, NewOrder, PitchPublisher, PitchPublisherConfig, Publisher, Tape,
    UnitConfig, listings,
};
use tickwire_market::{Nanos, Port, Price, Qty, Side, TradingStatus};
use tickwire_wire::pitch;

/// Two connections of each service. Each operation is what happens, a length, and the bytes that a client
/// says.
pub fn pitch_servers(bytes: &[u8]) {
    let listings = listings(2);
    let config = PitchPublisherConfig {
        unit: UnitConfig {
            unit: 5,
            datagram_max: 100,
            store_bytes: 0,
            store_messages: 64,
            ..UnitConfig::default()
        },
        connections: 2,
        modified_orders: 4,
        ..PitchPublisherConfig::default()
    };
    let mut publisher = PitchPublisher::new(config, &listings);
    let mut engine = Engine::new(EngineConfig {
        instruments: 2,
        max_orders: 64,
        max_levels: 16,
    });
    publisher.milestone(Milestone::StartOfMessages);
    for listing in &listings {
        engine.set_rules(listing.id, listing.rules);
        let _ = engine.set_status(listing.id, TradingStatus::Trading, &mut publisher);
    }
    let (mut choices, mut now) = (Choices::new(bytes), Nanos(Nanos::SECOND));
    let mut streams = [const { Vec::new() }; 4];
    while let (Some(what), Some(length)) = (choices.byte(), choices.byte()) {
        let client = usize::from(what & 3);
        let (port, id) = match client {
            0 | 1 => (Port::Replay, client),
            _ => (Port::SnapshotServer, client - 2),
        };
        now = now.after(u64::from(length) * Nanos::MILLI);
        match what >> 2 & 7 {
            0 => {
                streams[client].clear();
                assert!(publisher.connect(port, id, now));
            }
            1 => publisher.disconnect(port, id),
            2 => {
                let order = NewOrder::limit(
                    listings[client % 2].id,
                    Side::Bid,
                    Price::from_4dp(10_000),
                    Qty(1),
                );
                let _ = engine.submit(&order, &mut publisher);
            }
            3 => {
                while let Some(datagram) = publisher.poll_datagram(now) {
                    assert!(datagram.bytes.len() <= 100 && pitch::packet(datagram.bytes).is_ok());
                }
            }
            4 => publisher.handle_timeout(now, &engine),
            _ => publisher.handle_bytes(port, id, now, choices.bytes(length.into()), &engine),
        }
        let mut buffer = [0; 33];
        while let Some(sent) = publisher.poll_transmit(port, id, now, &mut buffer) {
            streams[client].extend_from_slice(sent);
        }
        let mut rest = &streams[client][..];
        while let Some((_, length)) = pitch::split(rest).expect("a server's blocks are well formed") {
            rest = &rest[length..];
        }
        assert!(rest.is_empty(), "a block is sent to its end");
        streams[client].clear();
    }
}
