//! Books whose every word follows from how often they were written: whoever reads two words of different
//! times sees it.

use tickwire_market::{
    BookState, InstrumentId, Level, Nanos, Price, SeqNo, Side, Symbol, TradingStatus, Venue, Volume,
};
use tickwire_shm::{
    Auction, BookCopy, BookIdentity, BookSlot, BookWriter, LastTrade, Region, SourceIdentity, SourceState,
    WriteWord,
};

/// Levels per side.
pub(crate) const LEVELS: u64 = 10;

/// Scrambles a number (the finish of splitmix64), so that words of neighbouring times differ everywhere.
pub(crate) fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ n >> 31
}

/// The level of a rank after write `n`. Write `n` rewrites the ranks from `n % LEVELS` on.
fn level(slot: u64, n: u64, side: Side, rank: u64) -> Level {
    let written = n - (n % LEVELS).saturating_sub(rank);
    let word = mixed(slot << 48 ^ written << 8 ^ rank << 1 ^ side as u64);
    Level {
        price: Price::from_raw(word as i64),
        qty: Volume(!word),
        orders: word as u32,
    }
}

fn last_trade(slot: u64, n: u64) -> LastTrade {
    LastTrade {
        price: Price::from_raw(mixed(slot ^ n) as i64),
        qty: Volume(n + 2),
        venue_ts: Nanos(n + 3),
    }
}

fn auction(n: u64) -> Auction {
    Auction {
        kind: n as u8,
        reference: Price::from_raw(n as i64),
        near: Price::from_raw(!n as i64),
        far: Price::from_raw(mixed(n) as i64),
        paired: Volume(n),
        imbalance: Volume(!n),
        side: [None, Some(Side::Bid), Some(Side::Ask)][n as usize % 3],
    }
}

/// A writer of such books, one source for all.
pub(crate) struct Patterned<'a, W> {
    books: BookWriter<'a, W>,
    slots: Vec<(BookSlot, u64)>,
}

impl<'a, W: WriteWord> Patterned<'a, W> {
    /// Claims so many slots, and writes each for the first time.
    pub(crate) fn new(region: &Region<'a, W>, count: u32) -> Patterned<'a, W> {
        let identity = SourceIdentity {
            name: "pattern 1".into(),
            feed_name: "pattern".into(),
            protocol: "none".into(),
            feed: 0,
            venue: Some(Venue::Nasdaq),
            ring: Some(0),
        };
        region.source(0, &identity).set_state(SourceState::Live);
        let mut books = region.books();
        let claim = |instrument| {
            let identity = BookIdentity {
                source: 0,
                instrument: InstrumentId(instrument),
                symbol: Symbol::new(format!("S{instrument}").as_bytes()).expect("a symbol"),
            };
            (books.claim(&identity).expect("room"), 0)
        };
        let slots = (0..count).map(claim).collect();
        let mut patterned = Patterned { books, slots };
        (0..count as usize).for_each(|slot| patterned.write(slot, 0));
        patterned
    }

    /// Writes a slot once more.
    pub(crate) fn update(&mut self, slot: usize) {
        self.slots[slot].1 += 1;
        let n = self.slots[slot].1;
        self.write(slot, n);
    }

    fn write(&mut self, at: usize, n: u64) {
        let slot = at as u64;
        let mut edit = self.books.edit(&mut self.slots[at].0);
        edit.cause(SeqNo(n), Nanos(!n), Nanos(mixed(n)));
        edit.state(BookState::Live);
        edit.status(TradingStatus::from_u8((n % 8) as u8).expect("eight"));
        for side in Side::BOTH {
            let from = n % LEVELS;
            edit.totals(
                side,
                LEVELS as u32 + n as u32 % 3,
                Volume(mixed(n ^ side as u64)),
                n as u32,
            );
            edit.levels_from(
                side,
                from as usize,
                (from..LEVELS).map(|rank| level(slot, n, side, rank)),
            );
        }
        edit.trade(&last_trade(slot, n), Volume(!n), n);
        edit.auction(&auction(n));
        edit.publish(Nanos(n));
    }
}

/// How often the book that was read had been written.
///
/// # Panics
/// When any word is of another time than the others.
pub(crate) fn check(slot: u32, copy: &BookCopy) -> u64 {
    let n = copy.seq.0;
    // Claiming a slot counts as a write, as does the first one.
    assert_eq!(copy.writes, n + 2, "slot {slot}: writes");
    assert_eq!(
        (copy.source, copy.instrument),
        (0, InstrumentId(slot)),
        "slot {slot} at {n}"
    );
    assert_eq!(
        (copy.state, copy.status as u64),
        (BookState::Live, n % 8),
        "slot {slot} at {n}"
    );
    let times = (copy.venue_ts, copy.recv_ts, copy.publish_ts);
    assert_eq!(
        times,
        (Nanos(!n), Nanos(mixed(n)), Nanos(n)),
        "slot {slot} at {n}: times"
    );
    for side in Side::BOTH {
        let totals = (
            copy.levels[side as usize],
            copy.qty[side as usize],
            copy.orders[side as usize],
        );
        let expected = (
            LEVELS as u32 + n as u32 % 3,
            Volume(mixed(n ^ side as u64)),
            n as u32,
        );
        assert_eq!(totals, expected, "slot {slot} at {n}: totals");
        assert_eq!(copy.side(side).len() as u64, LEVELS);
        for (rank, found) in copy.side(side).iter().enumerate() {
            let expected = level(slot.into(), n, side, rank as u64);
            assert_eq!(*found, expected, "slot {slot} at {n}: torn {side:?} {rank}");
        }
    }
    assert_eq!(
        (copy.last, copy.volume, copy.trades),
        (last_trade(slot.into(), n), Volume(!n), n)
    );
    assert_eq!(copy.auction, auction(n), "slot {slot} at {n}: auction");
    n
}
