//! What the benchmarks of quoter and eye share: a chain of options on an index future, their ladder, a market
//! maker's FIX session.

use std::hint::black_box;
use tickwire_fix::{CompId, Event, Precision, Role, Session, SessionConfig};
use tickwire_market::{BookState, BookUpdate, InstrumentId, Nanos, Price, SeqNo, Venue, Volume};
use tickwire_options::batch::{Engine, LANES_MAX, Listed, Strip};
use tickwire_options::{Kind, Terms, black76};
use tickwire_trading::{Ladder, Quoting};

/// The underlying.
pub(crate) const ID: InstrumentId = InstrumentId(1);
/// When the session began.
pub(crate) const START: Nanos = Nanos(1_767_623_400_000_000_000);
/// Bid plus ask of the future, in quarters of a point: 5000.
pub(crate) const MIDDLE: i64 = 40_000;
/// Rows of a ladder to each side of it.
pub(crate) const ROWS: i64 = 64;

/// Calls and puts around the money, 35 days: the most of delta first.
pub(crate) fn listed(count: usize) -> Vec<Listed> {
    let mut all: Vec<Listed> = (0..count)
        .map(|n| Listed {
            strike: 5_000.0 + 5.0 * (n as f64 / 2.0 - count as f64 / 4.0).trunc(),
            kind: if n % 2 == 0 { Kind::Call } else { Kind::Put },
            vol: 0.18,
        })
        .collect();
    let delta = |option: &Listed| {
        black76::greeks(&terms(option, 5_000.0))
            .expect("valued")
            .delta
            .abs()
    };
    all.sort_by(|a, b| delta(b).total_cmp(&delta(a)));
    all
}

/// Terms of an option at a price of the future.
pub(crate) fn terms(option: &Listed, forward: f64) -> Terms {
    Terms {
        forward,
        strike: option.strike,
        years: 35.0 / 365.0,
        vol: option.vol,
        rate: 0.04,
        kind: option.kind,
    }
}

/// The future's price, in points.
pub(crate) fn forward(half_tick: i64) -> f64 {
    half_tick as f64 / 8.0
}

/// A ladder around [`MIDDLE`] by the terms of each quote.
pub(crate) fn ladder(options: &[Listed], quoting: &Quoting) -> Box<Ladder> {
    let strip = Strip::new(5_000.0, 35.0 / 365.0, 0.04, options).expect("valued");
    let mut ladder = Box::new(Ladder::new(options.len(), 2 * ROWS as usize + 1));
    let mut theos = vec![0.0; options.len().next_multiple_of(LANES_MAX)];
    ladder.begin(1, MIDDLE - ROWS);
    for half_tick in MIDDLE - ROWS..=MIDDLE + ROWS {
        Engine::detect()
            .price(&strip, forward(half_tick), &mut theos)
            .expect("priced");
        ladder.push_row(&theos[..options.len()], quoting).expect("room");
    }
    ladder
}

/// A copy that stands in the caches, whatever was done since the update was put together: as it does when the
/// books of the same thread have just said it.
pub(crate) fn said_now(update: &BookUpdate) -> BookUpdate {
    *black_box(update)
}

/// The future's book with a bid and an ask a tick apart, or two.
pub(crate) fn update(seq: u64, half_tick: i64) -> BookUpdate {
    let quarter = Price::ONE_RAW / 4;
    let bid = (half_tick - 1).div_euclid(2);
    BookUpdate {
        seq: SeqNo(seq),
        recv_ts: Nanos(START.0 + seq * 100_000),
        venue: Venue::Cme,
        instrument: ID,
        state: BookState::Live,
        price: [bid, half_tick - bid].map(|ticks| Price::from_raw(ticks * quarter)),
        qty: [Volume(50); 2],
        ..BookUpdate::default()
    }
}

/// A logged-on market maker's session.
pub(crate) fn session() -> Session {
    let config = |role, sender: &[u8], target: &[u8]| SessionConfig {
        precision: Precision::Micros,
        latency_max_ns: 0,
        ..SessionConfig::new(
            role,
            CompId::new(sender).expect("short"),
            CompId::new(target).expect("short"),
        )
    };
    let mut maker = Session::new(config(Role::Initiator, b"MM1", b"XCH"));
    let mut venue = Session::new(config(Role::Acceptor, b"XCH", b"MM1"));
    maker.handle_connected(START);
    venue.handle_connected(START);
    let mut buf = [0; 4096];
    while let Some(bytes) = maker.poll_transmit(&mut buf) {
        assert_eq!(venue.handle_bytes(START, bytes), bytes.len());
    }
    while let Some(bytes) = venue.poll_transmit(&mut buf) {
        assert_eq!(maker.handle_bytes(START, bytes), bytes.len());
    }
    assert!(matches!(maker.poll_event(), Some(Event::LoggedOn { .. })));
    maker
}

/// Times in nanoseconds.
pub(crate) struct Figures(pub(crate) Vec<u64>);

impl Figures {
    /// A line of them.
    pub(crate) fn row(mut self) -> String {
        self.0.sort_unstable();
        let at = |part: f64| self.0[((self.0.len() - 1) as f64 * part) as usize];
        format!(
            "{:>6} {:>6} {:>6} {:>6} {:>7} {:>8}",
            self.0[0],
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            self.0[self.0.len() - 1]
        )
    }
}

/// Seeded (Knuth's linear congruential generator).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Walks memory, so that a tick finds nothing of the last one in the first two caches.
pub(crate) fn chill(memory: &mut [u64]) {
    for word in memory.iter_mut().step_by(8) {
        *word = word.wrapping_add(1);
    }
    black_box(memory);
}
