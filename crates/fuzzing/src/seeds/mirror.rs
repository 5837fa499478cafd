//! Seeds of the target of mirrors.

use std::sync::atomic::AtomicU64;

use tickwire_aeron::{FeedHealth, Offered, Outlet, Pace, Publisher, Stream};
use tickwire_market::{InstrumentId, MarketEvent, Nanos, SeqNo, Symbol, Venue};
use tickwire_shm::{BookIdentity, Identity, Region, RegionConfig, RegionState, SourceIdentity, SourceState};

/// Frames as they were offered, each behind its length.
struct Lengths(Vec<u8>);

impl Outlet for Lengths {
    fn offer(&mut self, _: Stream, frame: &[u8]) -> Offered {
        self.0.extend_from_slice(&(frame.len() as u16).to_le_bytes());
        self.0.extend_from_slice(frame);
        Offered::Taken
    }

    fn is_heard(&self, _: Stream) -> bool {
        true
    }
}

/// A host that joins, a few events and books, a gap, and the end.
pub(crate) fn mirrors() -> Vec<Vec<u8>> {
    let config = RegionConfig {
        feeds: 1,
        sources: 1,
        histograms: 1,
        books: 2,
        book_levels: 1,
        supers: 1,
        super_shares: 1,
        rings: 1,
        ring_records: 8,
    };
    let Ok(layout) = config.layout() else {
        return super::none();
    };
    let words: Vec<AtomicU64> = (0..layout.words).map(|_| AtomicU64::new(0)).collect();
    let identity = Identity {
        generation: Nanos(1),
        pid: 1,
    };
    let Ok(region) = Region::format(&words, &config, identity) else {
        return super::none();
    };
    let named = SourceIdentity {
        name: "seed".into(),
        feed_name: "seed".into(),
        protocol: "itch50".into(),
        feed: 0,
        venue: Some(Venue::Nasdaq),
        ring: Some(0),
    };
    let mut source = region.source(0, &named);
    let mut books = region.books();
    let mut ring = region.ring(0);
    region.set_state(RegionState::Ready);
    let pace = Pace {
        books_ns: 0,
        statistics_ns: 0,
        beat_ns: 0,
        pass_ns: 0,
        ..Pace::default()
    };
    let mut publisher = Publisher::new(&region.reader(), 1, pace);
    let mut out = Lengths(Vec::new());
    let book = BookIdentity {
        source: 0,
        instrument: InstrumentId(1),
        symbol: Symbol::new(b"SEED").unwrap_or_default(),
    };
    let _ = books.claim(&book);
    for n in 0..12u64 {
        let event = MarketEvent {
            seq: SeqNo(n),
            ..MarketEvent::default()
        };
        (0..n).for_each(|_| ring.event(0, &event));
        source.set_state([SourceState::Live, SourceState::Stale][n as usize / 2 % 2]);
        let health = [FeedHealth::Alive, FeedHealth::Lost, FeedHealth::Ended][n as usize / 5];
        publisher.turn(&region.reader(), health, n, &mut out);
    }
    vec![out.0]
}
