//! Archives of events: what one says about itself is not believed.

use tickwire_archive::{Archive, ArchiveChannel, ChannelFacts, Packet, is_index, packets};
use tickwire_book::{Books, BooksConfig, Depth};
use tickwire_feed::{Channel, FeedState};
use tickwire_market::{Counter, Counters, EventSink, MarketEvent, Nanos, SeqNo, Upcoming, Venue};

struct Sink {
    books: Books,
    events: Vec<MarketEvent>,
}

impl EventSink for Sink {
    fn on_event(&mut self, event: &MarketEvent) {
        self.books.apply(event);
        self.events.push(*event);
    }

    fn upcoming(&mut self, next: Upcoming) {
        self.books.upcoming(next);
    }

    fn arriving(&mut self, next: Upcoming) {
        self.books.arriving(next);
    }
}

/// Plays packets, each of which is shown so many before it comes; what came of it.
fn play(facts: &ChannelFacts, all: &[Packet<'_>], ahead: usize) -> (Vec<MarketEvent>, Counters) {
    let mut channel = ArchiveChannel::new(facts.clone(), None);
    let mut sink = Sink {
        books: Books::new(BooksConfig {
            depth: Depth::ByOrder,
            instruments: 16,
            orders: 64,
            levels: 64,
            ..BooksConfig::default()
        }),
        events: Vec::new(),
    };
    let mut shown = 0;
    for (at, packet) in all.iter().enumerate() {
        channel.on_message(packet.now, packet.bytes, &mut sink);
        shown = shown.max(at + 1);
        while shown < all.len() && shown <= at + ahead {
            channel.preview(all[shown].now, all[shown].bytes, &mut sink);
            shown += 1;
        }
    }
    let last = all.last().map_or(Nanos::ZERO, |packet| packet.now);
    channel.handle_timeout(last, &mut sink);
    (sink.events, channel.counters())
}

/// As a file bytes are refused, or give blocks; as an index they are one or none; as a block its packets lie
/// within it, and events end, each of some bytes, in books that take them or refuse them, read ahead or not.
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
    let all: Vec<Packet<'_>> = packets(bytes, 2).collect();
    assert!(all.iter().all(|packet| packet.channel < 2));
    let taken: usize = all.iter().map(|packet| packet.bytes.len()).sum();
    let (events, counters) = play(&facts, &all, 0);
    // A head each.
    assert!(
        taken <= bytes.len() && events.len() * 4 <= taken,
        "{} of {taken}",
        events.len()
    );
    assert!(counters.get(Counter::Malformed) <= bytes.len() as u64);
    // What is read ahead is what is read when it comes.
    let ahead = play(&facts, &all, 16);
    assert!(
        ahead.0 == events && ahead.1.iter().eq(counters.iter()),
        "read ahead, it is other events"
    );
}
