//! Delivery: the sequences of operations that the feed crate defines beside its state machines.

use tickwire_feed::{
    ArbiterConfig, GapProxy, Line, PitchConfig, PitchDecoder, PitchFeed, PitchLogin, PitchUnit, Spin, fuzzing,
};
use tickwire_market::Nanos;

/// Line arbitration and gap recovery alone.
pub fn feed_arbiter(bytes: &[u8]) {
    fuzzing::arbiter_operations(bytes);
}

/// A whole ITCH feed with its snapshot.
pub fn feed_handler(bytes: &[u8]) {
    fuzzing::feed_operations(bytes);
}

/// A SoupBinTCP stream, whole and byte by byte.
pub fn soup_stream(bytes: &[u8]) {
    fuzzing::soup_stream(bytes);
}

/// A unit with its connections. Each operation is a length, what takes the bytes, and the bytes.
pub fn pitch_feed(bytes: &[u8]) {
    let config = ArbiterConfig {
        buffer_packets: 4,
        packet_bytes: 256,
        gaps: 4,
        snapshot: true,
        ..PitchUnit::arbiter_config(5)
    };
    let decoder = PitchDecoder::new(PitchConfig {
        instruments_max: 4,
        orders_max: 8,
        ..PitchConfig::default()
    });
    let mut feed = PitchFeed::new(config, decoder);
    let mut spin = Spin::new(PitchLogin::default());
    let mut proxy = GapProxy::new(PitchLogin::default());
    let (mut rest, mut now) = (bytes, Nanos(1));
    let mut buffer = [0; 64];
    while let [length, what, more @ ..] = rest {
        let (datagram, after) = more.split_at(more.len().min(usize::from(*length)));
        rest = after;
        now = now.after(100_000);
        let mut sink = super::ascending();
        match what % 8 {
            0..=2 => feed.on_packet(now, Line::A, datagram, &mut sink),
            3 => feed.on_packet(now, Line::Retransmit, datagram, &mut sink),
            4 => spin.handle_bytes(now, datagram, &mut feed, &mut sink),
            5 => proxy.handle_bytes(now, datagram),
            6 => (spin.handle_connected(now), proxy.handle_connected(now)).0,
            _ => feed.handle_timeout(now, &mut sink),
        }
        while proxy.poll_event().is_some() || proxy.poll_transmit(&mut buffer).is_some() {}
        while spin.poll_transmit(&mut buffer).is_some() {}
        while let Some(range) = feed.poll_missing() {
            let _ = proxy.ask(range);
        }
    }
}
