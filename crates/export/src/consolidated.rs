//! `cmbp-1`: the best price of a symbol over all venues of the recording.
//!
//! ```text
//! channel: event ─► its book ─► [`Top`]s of the packet ─► at its end, when symbols are known: [`Consolidated`] ─► rows
//! ```
//! Sizes of venues are not added up: a side shows the venue that has the best price; of several, the one that
//! has had it longest. Venues of which one book may be wrong take part, and the row is marked. The tapes
//! (CQS, UQDF), which are consolidated themselves, take no part.

use std::collections::HashMap;

use tickwire_market::{InstrumentId, Side, Symbol};

use crate::batch::Names;
use crate::schema::{NO_PRICE, Schema, flags};

/// The channel of consolidated instruments in a word of a symbol: there are fewer of the recording's.
pub(crate) const CHANNEL: usize = u16::MAX as usize;

/// Price and quantity of the best level of a side, if there is one.
pub(crate) type Best = Option<(i64, u64)>;

/// What an event did to the top of a channel's book.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Top {
    pub(crate) instrument: InstrumentId,
    /// Received, and the venue's.
    pub(crate) times: [u64; 2],
    /// Action, side, price, size as the channel's own row has them.
    pub(crate) what: [u64; 4],
    /// The aggressor's side, price and size of a trade.
    pub(crate) traded: Option<[u64; 3]>,
    pub(crate) best: [Best; 2],
    /// Bits of the channel's own row.
    pub(crate) flags: u64,
}

/// The top of one venue.
#[derive(Clone, Copy, Debug)]
struct OfVenue {
    channel: usize,
    publisher: u64,
    best: [Best; 2],
    /// When a side came to its price, as a count.
    since: [u64; 2],
    is_bad: bool,
}

/// A symbol.
#[derive(Clone, Default, Debug)]
struct One {
    tops: Vec<OfVenue>,
    /// Price, size, publisher of each side, as the last row showed them.
    shown: [Option<(i64, u64, u64)>; 2],
    was_bad: bool,
}

/// All symbols, with what number each has.
#[derive(Default, Debug)]
pub(crate) struct Consolidated {
    by_name: HashMap<String, u32>,
    all: Vec<One>,
    /// By channel and instrument.
    known: HashMap<(usize, u32), u32>,
    count: u64,
}

impl Consolidated {
    /// What a packet of a channel did: rows are put behind `rows`, new symbols are named.
    pub(crate) fn take(
        &mut self,
        (channel, publisher): (usize, u64),
        tops: &[Top],
        names: &mut Names,
        rows: &mut Vec<u64>,
    ) {
        for top in tops {
            let number = self.number(channel, top.instrument, names);
            let first = rows.len();
            if let Some(traded) = top.traded {
                self.row(
                    number,
                    top,
                    (publisher, [u64::from(b'T'), traded[0], traded[1], traded[2]]),
                    rows,
                );
            }
            if self.changes(number, channel, publisher, top) {
                self.row(number, top, (publisher, top.what), rows);
            }
            if rows.len() > first {
                let at = rows.len() - COLUMNS + FLAGS_AT;
                rows[at] |= flags::LAST;
            }
        }
    }

    fn number(&mut self, channel: usize, id: InstrumentId, names: &mut Names) -> u32 {
        let key = (channel, id.0);
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        let name = match names.symbol(channel, id) {
            Some(symbol) => symbol.to_string(),
            // Without a name nobody knows what it would belong to.
            None => format!("#{channel}.{}", id.0),
        };
        let next = self.all.len() as u32 + 1;
        let number = *self.by_name.entry(name.clone()).or_insert(next);
        if number == next {
            self.all.push(One::default());
            if let Some(symbol) = Symbol::new(name.as_bytes()) {
                names.insert(CHANNEL, InstrumentId(number), symbol);
            }
        }
        if names.symbol(channel, id).is_some() {
            self.known.insert(key, number);
        }
        number
    }

    /// Takes a venue's top over; whether what is shown is another one.
    fn changes(&mut self, number: u32, channel: usize, publisher: u64, top: &Top) -> bool {
        self.count += 1;
        let count = self.count;
        let one = &mut self.all[number as usize - 1];
        let place = one.tops.iter().position(|of| of.channel == channel);
        let place = place.unwrap_or_else(|| {
            one.tops.push(OfVenue {
                channel,
                publisher,
                best: [None; 2],
                since: [0; 2],
                is_bad: false,
            });
            one.tops.len() - 1
        });
        let of = &mut one.tops[place];
        for side in 0..2 {
            if of.best[side].map(|best| best.0) != top.best[side].map(|best| best.0) {
                of.since[side] = count;
            }
        }
        of.best = top.best;
        of.is_bad = top.flags & flags::MAYBE_BAD_BOOK != 0;
        let shown = Side::BOTH.map(|side| {
            let of_side = one.tops.iter().filter_map(|of| {
                let (price, qty) = of.best[side as usize]?;
                Some((price, of.since[side as usize], qty, of.publisher))
            });
            let first = of_side.min_by_key(|(price, since, ..)| {
                let price = i128::from(*price);
                (if side == Side::Bid { -price } else { price }, *since)
            });
            first.map(|(price, _, qty, publisher)| (price, qty, publisher))
        });
        let is_bad = one.tops.iter().any(|of| of.is_bad);
        let is_other = shown != one.shown || is_bad != one.was_bad && shown != [None; 2];
        (one.shown, one.was_bad) = (shown, is_bad);
        is_other
    }

    fn row(&self, number: u32, top: &Top, (publisher, what): (u64, [u64; 4]), rows: &mut Vec<u64>) {
        let one = &self.all[number as usize - 1];
        let mut bits = top.flags & !(flags::LAST | flags::MAYBE_BAD_BOOK);
        if one.was_bad || top.flags & flags::MAYBE_BAD_BOOK != 0 {
            bits |= flags::MAYBE_BAD_BOOK;
        }
        let [bid, ask] = one.shown.map(|side| match side {
            Some((price, qty, publisher)) => [price as u64, qty, publisher],
            None => [NO_PRICE, 0, 0],
        });
        rows.extend(top.times);
        rows.extend([Schema::Cmbp1.rtype().into(), publisher, number.into()]);
        rows.extend(what);
        rows.extend([bits, 0, bid[0], ask[0], bid[1], ask[1], bid[2], ask[2]]);
        rows.push(Names::word(CHANNEL, InstrumentId(number)));
    }
}

/// Columns of a row, and which of them is `flags`; held against the schema by a test.
const COLUMNS: usize = 18;
const FLAGS_AT: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    fn top(instrument: u32, best: [Best; 2]) -> Top {
        Top {
            instrument: InstrumentId(instrument),
            times: [10, 9],
            what: [u64::from(b'A'), u64::from(b'B'), 1, 1],
            traded: None,
            best,
            flags: 0,
        }
    }

    /// Bid and ask of every row: price, size, publisher.
    fn sides(rows: &[u64]) -> Vec<[[u64; 3]; 2]> {
        let side = |row: &[u64], at: usize| [row[11 + at], row[13 + at], row[15 + at]];
        rows.chunks(COLUMNS)
            .map(|row| [side(row, 0), side(row, 1)])
            .collect()
    }

    #[test]
    fn rows_have_the_columns_of_the_schema() {
        let columns = Schema::Cmbp1.columns();
        assert_eq!((columns.len(), columns[FLAGS_AT].name), (COLUMNS, "flags"));
        let (mut all, mut names, mut rows) = (Consolidated::default(), Names::default(), Vec::new());
        all.take((0, 2), &[top(1, [Some((5, 6)), None])], &mut names, &mut rows);
        assert_eq!(rows.len(), COLUMNS);
        assert_eq!(rows[FLAGS_AT], flags::LAST);
    }

    #[test]
    fn the_best_price_wins_then_who_had_it_first_and_a_venue_that_leaves_gives_way() {
        let (mut all, mut names, mut rows) = (Consolidated::default(), Names::default(), Vec::new());
        let symbol = Symbol::new(b"AAPL").expect("a symbol");
        names.insert(0, InstrumentId(7), symbol);
        names.insert(1, InstrumentId(9), symbol);
        let none = [NO_PRICE, 0, 0];
        all.take(
            (0, 2),
            &[top(7, [Some((100, 5)), Some((110, 5))])],
            &mut names,
            &mut rows,
        );
        all.take(
            (1, 5),
            &[top(9, [Some((100, 50)), Some((109, 1))])],
            &mut names,
            &mut rows,
        );
        // The other venue's size changes behind the first one: nothing to show.
        all.take(
            (1, 5),
            &[top(9, [Some((100, 60)), Some((109, 1))])],
            &mut names,
            &mut rows,
        );
        all.take((0, 2), &[top(7, [Some((99, 5)), None])], &mut names, &mut rows);
        all.take((1, 5), &[top(9, [None, None])], &mut names, &mut rows);
        let expected = [
            [[100, 5, 2], [110, 5, 2]],
            [[100, 5, 2], [109, 1, 5]],
            [[100, 60, 5], [109, 1, 5]],
            [[99, 5, 2], none],
        ];
        assert_eq!(sides(&rows), expected);
        assert_eq!(names.text(rows[COLUMNS - 1]), "AAPL");
    }
}
