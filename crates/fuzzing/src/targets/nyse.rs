//! NYSE feeds: the receiving channel and the venue's request server.

use tickwire_exchange::{
    Engine, EngineConfig, Listener, Milestone, NewOrder, NysePublisherConfig, OpenBookPublisher, Publisher,
    XdpPublisher, listings,
};
use tickwire_feed::{
    ArbiterConfig, Channel, FeedHandler, Line, NyseChannel, NyseProtocol, OpenBook, OpenBookConfig,
    OpenBookDecoder, RequestConfig, Xdp, XdpConfig, XdpDecoder,
};
use tickwire_market::{InstrumentId, Nanos, Port, Price, Qty, Side};
use tickwire_wire::{openbook, xdp};

/// A channel with its connection: XDP, or OpenBook Ultra when the first byte is odd. Each operation is a
/// length, what takes the bytes, and the bytes.
pub fn nyse_feed(bytes: &[u8]) {
    match bytes {
        [first, rest @ ..] if first % 2 == 0 => {
            let decoder = XdpDecoder::new(XdpConfig {
                instruments_max: 1 << 13,
                ..XdpConfig::default()
            });
            feed_operations::<Xdp>(decoder, rest);
        }
        [_, rest @ ..] => {
            let decoder = OpenBookDecoder::new(OpenBookConfig {
                instruments_max: 1 << 13,
                ..OpenBookConfig::default()
            });
            feed_operations::<OpenBook>(decoder, rest);
        }
        [] => {}
    }
}

fn feed_operations<P: NyseProtocol>(decoder: P::Decoder, bytes: &[u8]) {
    let config = ArbiterConfig {
        buffer_packets: 4,
        packet_bytes: 256,
        gaps: 4,
        snapshot: true,
        ..ArbiterConfig::default()
    };
    let requests = RequestConfig {
        queue: 4,
        refresh_patience_ns: 300_000,
        ..RequestConfig::default()
    };
    let mut channel = NyseChannel::<P>::new(FeedHandler::new(config, decoder), requests);
    let (mut rest, mut now) = (bytes, Nanos(1));
    let mut buffer = [0; 9];
    while let [length, what, more @ ..] = rest {
        let (datagram, after) = more.split_at(more.len().min(usize::from(*length)));
        rest = after;
        now = now.after(100_000);
        let mut sink = super::ascending();
        match what % 16 {
            0..=6 => channel.on_datagram(now, Port::Live, Line::A, datagram, &mut sink),
            7 => channel.on_datagram(now, Port::Live, Line::B, datagram, &mut sink),
            8 => channel.on_datagram(now, Port::Retransmission, Line::A, datagram, &mut sink),
            9..=11 => channel.on_datagram(now, Port::Snapshot, Line::A, datagram, &mut sink),
            12 => channel.on_bytes(now, Port::Replay, datagram, &mut sink),
            13 => channel.connected(now, Port::Replay),
            14 => channel.disconnected(now, Port::Replay, &mut sink),
            _ => channel.handle_timeout(now, &mut sink),
        }
        while channel.poll_transmit(Port::Replay, &mut buffer).is_some() {}
        let _ = (
            channel.poll_timeout(),
            channel.state(),
            channel.wants_connection(Port::Replay),
        );
    }
}

/// A request server with three instruments, of which one has orders: XDP, or OpenBook Ultra when the first
/// byte is odd.
pub fn nyse_server(bytes: &[u8]) {
    let listings = listings(3);
    let config = NysePublisherConfig {
        store_bytes: 0,
        store_units: 64,
        connections: 2,
        ..NysePublisherConfig::default()
    };
    match bytes {
        [first, rest @ ..] if first % 2 == 0 => {
            let check = |packet: &[u8]| xdp::parse_packet(packet).is_ok_and(|packet| packet.trailing == 0);
            let cut = |stream: &[u8]| xdp::split(stream).expect("whole packets").map(|(_, used)| used);
            server_operations(XdpPublisher::new(config, &listings), rest, check, cut);
        }
        [_, rest @ ..] => {
            let check =
                |packet: &[u8]| openbook::parse_packet(packet).is_ok_and(|packet| packet.trailing == 0);
            let cut = |stream: &[u8]| {
                openbook::split(stream)
                    .expect("whole packets")
                    .map(|(_, used)| used)
            };
            server_operations(OpenBookPublisher::new(config, &listings), rest, check, cut);
        }
        [] => {}
    }
}

fn server_operations<P: Publisher + Listener>(
    mut publisher: P,
    bytes: &[u8],
    is_packet: impl Fn(&[u8]) -> bool,
    cut: impl Fn(&[u8]) -> Option<usize>,
) {
    let mut engine = Engine::new(EngineConfig {
        instruments: 3,
        max_orders: 256,
        max_levels: 256,
    });
    publisher.open(Nanos(Nanos::DAY));
    publisher.milestone(Milestone::StartOfMessages);
    for listing in listings(3) {
        publisher.define(&listing);
        let status = tickwire_market::TradingStatus::Trading;
        engine
            .set_status(listing.id, status, &mut publisher)
            .expect("it is listed");
    }
    let (mut rest, mut now) = (bytes, Nanos(Nanos::DAY + 1));
    let mut streams = [Vec::new(), Vec::new()];
    let mut buffer = [0; 13];
    while let [length, what, more @ ..] = rest {
        let (data, after) = more.split_at(more.len().min(usize::from(*length)));
        rest = after;
        now = now.after(Nanos::SECOND);
        let id = usize::from(what >> 7);
        match what % 8 {
            0 => {
                publisher.connect(Port::Replay, id, now);
                streams[id].clear();
            }
            1 => publisher.disconnect(Port::Replay, id),
            2 => {
                let order = NewOrder::limit(
                    InstrumentId(1),
                    Side::Bid,
                    Price::from_4dp(100 * u32::from(*length)),
                    Qty(100),
                );
                let _ = engine.submit(&order, &mut publisher);
            }
            3 => publisher.handle_timeout(now.after(60 * Nanos::SECOND), &engine),
            _ => publisher.handle_bytes(Port::Replay, id, now, data, &engine),
        }
        for (id, stream) in streams.iter_mut().enumerate() {
            while let Some(sent) = publisher.poll_transmit(Port::Replay, id, now, &mut buffer) {
                stream.extend_from_slice(sent);
            }
            while let Some(used) = cut(stream) {
                stream.drain(..used);
            }
            assert!(stream.is_empty(), "a packet is cut short");
        }
        while let Some(datagram) = publisher.poll_datagram(now) {
            assert!(is_packet(datagram.bytes), "{:?}", datagram.bytes);
            now = now.after(20_000);
        }
    }
}
