//! Archives of events: what one says about itself is not believed.

use tickwire_archive::{Archive, ArchiveChannel, ChannelFacts, is_index, packets};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{Channel, FeedState};
use tickwire_market::{Counter, Counters, EventSink, MarketEvent, Nanos, SeqNo, Venue};

struct Sink {
    books: Books,
    events: usize,
}

impl EventSink for Sink {
    fn on_event(&mut self, event: &MarketEvent) {
        self.books.apply(event);
        self.events += 1;
    }
}

/// As a file bytes are refused, or give blocks; as an index they are one or none; as a block its packets lie
/// within it, and events end, each of some bytes, in books that take them or refuse them.
pub fn archive(bytes: &[u8]) {
    if let Ok(archive) = Archive::from_bytes(bytes.to_vec()) {
        let mut buffer = Vec::new();
        for number in 0..archive.blocks().len() {
            let _ = archive.block(number, &mut buffer);
        }
    }
    is_index(bytes, 12);
    let facts = ChannelFacts {
        name: "fuzz".into(),
        venue: Venue::Nasdaq,
        protocol: "itch50".into(),
        depth: Depth::ByOrder,
        room: [16, 64, 64],
        state: FeedState::Live,
        next: SeqNo(0),
        counters: Counters::default(),
        instruments: Vec::new(),
    };
    let mut channel = ArchiveChannel::new(facts, None);
    let mut sink = Sink {
        books: Books::new(BooksConfig {
            depth: Depth::ByOrder,
            instruments: 16,
            orders: 64,
            levels: 64,
            ..BooksConfig::default()
        }),
        events: 0,
    };
    let (mut taken, mut last) = (0, Nanos::ZERO);
    for packet in packets(bytes, 2) {
        assert!(packet.channel < 2);
        taken += packet.bytes.len();
        last = packet.now;
        channel.on_message(packet.now, packet.bytes, &mut sink);
    }
    channel.handle_timeout(last, &mut sink);
    // A head each.
    assert!(
        taken <= bytes.len() && sink.events * 4 <= taken,
        "{} of {taken}",
        sink.events
    );
    assert!(channel.counters().get(Counter::Malformed) <= bytes.len() as u64);
}
