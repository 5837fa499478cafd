//! Shared memory: a reader believes nothing that it finds there.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tickwire_market::{Nanos, Side, Symbol};
use tickwire_shm::{BookCopy, Identity, Next, Reader, Region, RegionConfig, RegionState, SuperCopy};

const CONFIG: RegionConfig = RegionConfig {
    feeds: 1,
    sources: 1,
    histograms: 1,
    books: 2,
    book_levels: 3,
    supers: 1,
    super_shares: 2,
    rings: 1,
    ring_records: 4,
};

/// An empty region that is ready.
fn region() -> Vec<AtomicU64> {
    let words = CONFIG.layout().expect("a good configuration").words;
    let words: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
    let identity = Identity {
        generation: Nanos(1),
        pid: 1,
    };
    let region = Region::format(&words, &CONFIG, identity).expect("a good configuration");
    region.set_state(RegionState::Ready);
    words
}

/// The bytes of an empty region.
pub(crate) fn region_bytes() -> Vec<u8> {
    region()
        .iter()
        .flat_map(|word| word.load(Relaxed).to_le_bytes())
        .collect()
}

/// The first byte chooses: the rest is the region, or words put into a good one, two bytes of place and eight
/// of value.
pub fn shared_region(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    if choice & 1 == 0 {
        let words = rest
            .as_chunks()
            .0
            .iter()
            .map(|&word| AtomicU64::new(u64::from_le_bytes(word)));
        return read_everything(&words.collect::<Vec<_>>());
    }
    let words = region();
    for [a, b, value @ ..] in rest.as_chunks::<10>().0 {
        let place = usize::from(u16::from_le_bytes([*a, *b])) % words.len();
        words[place].store(u64::from_le_bytes(*value), Relaxed);
    }
    read_everything(&words);
}

/// Asks a reader for all it has. Sections are small enough to be walked: the input has to hold them.
fn read_everything(words: &[AtomicU64]) {
    let Ok(reader) = Reader::attach(words) else { return };
    let layout = *reader.layout();
    for source in reader.sources() {
        assert!(reader.kinds(source.number).count() <= 64);
        // Another table of counters is refused.
        let _ = reader.counters(source.number);
    }
    for index in 0..=layout.histograms.count {
        if let Some(histogram) = reader.histogram(index) {
            assert!(histogram.at(500_000) <= histogram.max && histogram.mean() <= histogram.sum);
            assert!(histogram.since(&histogram).count == 0);
        }
    }
    let mut book = BookCopy::default();
    for slot in 0..=layout.books.count {
        reader.book_identity(slot);
        if reader.read_book_within(slot, &mut book, 2).is_ok() {
            let most = layout.config.book_levels as usize;
            assert!(Side::BOTH.iter().all(|&side| book.side(side).len() <= most));
        }
    }
    let mut merged = SuperCopy::default();
    for slot in 0..=layout.supers.count {
        if reader.read_super(slot, &mut merged).is_ok() {
            let most = layout.config.super_shares as usize;
            assert!(Side::BOTH.iter().all(|&side| merged.side(side).len() <= most));
        }
    }
    assert!(reader.books().count() <= layout.books.count as usize);
    assert!(reader.find(Symbol::EMPTY).count() <= layout.books.count as usize);
    reader.find_super(Symbol::EMPTY);
    reader.refused();
    reader.heartbeat();
    reader.generation();
    reader.pid();
    for ring in 0..layout.rings.count {
        for mut place in [reader.ring(ring), reader.ring_from_oldest(ring)]
            .into_iter()
            .flatten()
        {
            let mut steps = 0;
            while place.next(&reader) != Next::Empty {
                steps += 1;
                assert!(
                    steps <= 3 * layout.config.ring_records,
                    "the reader does not get on"
                );
            }
        }
    }
}
