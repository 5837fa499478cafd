//! LOBSTER message files, of rows of `mbo`. Source: "LOBSTER: Limit Order Book System, The Efficient
//! Reconstructor", output structure.
//!
//! ```text
//! seconds after midnight, type, order, size, price in 0.0001, direction (1 buy, -1 sell)
//! ```
//! | row | message |
//! |---|---|
//! | `A` | 1 |
//! | `C` that is no execution's | 3 of the whole order, 2 of a part |
//! | `F` | 4 |
//! | `T` of no displayed order | 5; direction 1 where the venue does not say (ITCH: always) |
//! | `M` | 2 where it becomes less at its price, else 3 and 1 |
//! | `R` | 3 of every order |
//!
//! A file is of one symbol. LOBSTER has no sign for a book that may be wrong.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tickwire_market::Venue;

use crate::batch::{Batch, Names};
use crate::rows::{midnight_before, publisher, zone_of};
use crate::schema::NO_PRICE;

/// A unit of LOBSTER's prices, in 1e-9.
const UNIT: i64 = 100_000;

/// An order that stands.
#[derive(Clone, Copy)]
struct Standing {
    side: u64,
    price: i64,
    left: u64,
}

/// A file that is being written.
pub(crate) struct Lobster<W: Write> {
    out: W,
    orders: BTreeMap<u64, Standing>,
    symbol: Option<u64>,
    /// A trade, of which the next row says whether it was of a displayed order.
    traded: Option<[u64; 15]>,
    /// What an execution takes from this order comes as a `C` behind it.
    executed: Option<u64>,
    /// The last hour that was asked for, and the venue's midnight before it.
    midnight: (u64, u64),
}

fn wrong(what: String) -> io::Error {
    io::Error::other(what)
}

fn direction(side: u64) -> i8 {
    match side as u8 {
        b'A' => -1,
        _ => 1,
    }
}

impl<W: Write> Lobster<W> {
    pub(crate) fn new(out: W) -> Lobster<W> {
        Lobster {
            out,
            orders: BTreeMap::new(),
            symbol: None,
            traded: None,
            executed: None,
            midnight: (u64::MAX, 0),
        }
    }

    pub(crate) fn rows(&mut self, batch: &Batch, names: &Names) -> io::Result<()> {
        for at in 0..batch.rows() {
            let mut row = [0; 15];
            for (word, column) in row.iter_mut().zip(&batch.words) {
                *word = column[at];
            }
            if *self.symbol.get_or_insert(row[14]) != row[14] {
                let (one, other) = (names.text(self.symbol.unwrap_or_default()), names.text(row[14]));
                return Err(wrong(format!(
                    "a LOBSTER file is of one symbol, and the rows have {one} and {other}: give --symbol or --partition"
                )));
            }
            self.row(&row)?;
        }
        Ok(())
    }

    fn row(&mut self, row: &[u64; 15]) -> io::Result<()> {
        let [_, _, _, _, _, action, side, price, size, _, order, ..] = *row;
        let price = price as i64;
        let of_trade = self.traded.take();
        if let Some(trade) = of_trade
            && action as u8 != b'F'
        {
            self.message(&trade, 5, 0, (trade[8], trade[7] as i64), trade[6])?;
        }
        match action as u8 {
            b'T' => self.traded = Some(*row),
            b'F' => {
                self.executed = Some(order);
                self.message(row, 4, order, (size, price), side)?;
            }
            b'A' => {
                let left = size;
                self.orders.insert(order, Standing { side, price, left });
                self.message(row, 1, order, (size, price), side)?;
            }
            b'C' => {
                let is_execution = self.executed.take() == Some(order);
                let is_whole = match self.orders.get_mut(&order) {
                    Some(standing) => {
                        standing.left = standing.left.saturating_sub(size);
                        standing.left == 0
                    }
                    None => true,
                };
                if is_whole {
                    self.orders.remove(&order);
                }
                if !is_execution {
                    self.message(row, if is_whole { 3 } else { 2 }, order, (size, price), side)?;
                }
            }
            b'M' => {
                let before = self.orders.insert(
                    order,
                    Standing {
                        side,
                        price,
                        left: size,
                    },
                );
                match before {
                    Some(b) if (b.side, b.price) == (side, price) && b.left > size => {
                        self.message(row, 2, order, (b.left - size, price), side)?;
                    }
                    Some(b) => {
                        self.message(row, 3, order, (b.left, b.price), b.side)?;
                        self.message(row, 1, order, (size, price), side)?;
                    }
                    None => self.message(row, 1, order, (size, price), side)?,
                }
            }
            b'R' => {
                for (order, b) in std::mem::take(&mut self.orders) {
                    self.message(row, 3, order, (b.left, b.price), b.side)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn message(
        &mut self,
        row: &[u64; 15],
        kind: u8,
        order: u64,
        (size, price): (u64, i64),
        side: u64,
    ) -> io::Result<()> {
        if price as u64 == NO_PRICE || price % UNIT != 0 {
            return Err(wrong(format!(
                "order {order}: a price of {price} in 1e-9 has more than the four places of LOBSTER: give another --format"
            )));
        }
        let time = self.after_midnight(row[1], row[3]);
        let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
        let (price, direction) = (price / UNIT, direction(side));
        writeln!(
            self.out,
            "{seconds}.{nanos:09},{kind},{order},{size},{price},{direction}"
        )
    }

    /// A time as one of the venue's day.
    fn after_midnight(&mut self, time: u64, number: u64) -> u64 {
        const DAY: u64 = 86_400_000_000_000;
        if time < 2 * DAY {
            return time;
        }
        let hour = time / 3_600_000_000_000;
        if self.midnight.0 != hour {
            let of = |venue: &Venue| u64::from(publisher(*venue)) == number;
            let zone = zone_of(Venue::ALL.into_iter().find(of).unwrap_or_default());
            let midnight = midnight_before(tickwire_market::Nanos(time), zone);
            self.midnight = (hour, midnight.map_or(time - time % DAY, |at| at.0));
        }
        time.saturating_sub(self.midnight.1)
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        if let Some(trade) = self.traded.take() {
            self.message(&trade, 5, 0, (trade[8], trade[7] as i64), trade[6])?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the rows are: lines of six fields, or a sentence.
        #[test]
        fn rows_become_lines_of_six_fields_or_an_error(
            rows in proptest::collection::vec((0..7_usize, any::<[u64; 15]>(), any::<bool>()), 0..40)
        ) {
            let mut batch = Batch::new(Schema::Mbo.columns());
            for (action, mut row, is_wild) in rows {
                row[5] = b"ACFTMRx"[action].into();
                row[6] = if row[6] % 2 == 0 { b'A'.into() } else { b'B'.into() };
                row[14] = 1;
                if !is_wild {
                    row[7] = row[7] % 1000 * UNIT as u64;
                    row[10] %= 8;
                    row[8] %= 100;
                }
                batch.push(&row);
            }
            let mut text = Vec::new();
            let mut out = Lobster::new(&mut text);
            let is_written = out.rows(&batch, &Names::default()).is_ok() && out.finish().is_ok();
            let text = String::from_utf8(text).unwrap();
            for line in text.lines() {
                prop_assert_eq!(line.split(',').count(), 6);
                prop_assert!(line.ends_with(",1") || line.ends_with(",-1"));
            }
            prop_assert!(is_written || batch.rows() > 0);
        }
    }

    #[test]
    fn a_change_in_its_place_is_a_part_taken_away_and_any_other_one_a_new_order() {
        let row = |action: u8, order: u64, price: i64, size: u64| -> [u64; 15] {
            let price = (price * UNIT) as u64;
            [
                9,
                9,
                160,
                2,
                1,
                action.into(),
                b'B'.into(),
                price,
                size,
                0,
                order,
                0,
                0,
                1,
                1,
            ]
        };
        let mut batch = Batch::new(Schema::Mbo.columns());
        for row in [
            row(b'A', 1, 100, 50),
            row(b'M', 1, 100, 30),
            row(b'M', 1, 101, 40),
            row(b'T', 0, 102, 7),
            row(b'T', 0, 101, 10),
            row(b'F', 1, 101, 10),
            row(b'C', 1, 101, 10),
            row(b'R', 0, 0, 0),
        ] {
            batch.push(&row);
        }
        let mut text = Vec::new();
        let mut out = Lobster::new(&mut text);
        out.rows(&batch, &Names::default()).expect("rows");
        out.finish().expect("written");
        let lines = String::from_utf8(text).expect("text");
        let lines: Vec<&str> = lines
            .lines()
            .filter_map(|line| line.split_once(',').map(|l| l.1))
            .collect();
        assert_eq!(
            lines,
            [
                "1,1,50,100,1",
                "2,1,20,100,1",
                "3,1,30,100,1",
                "1,1,40,101,1",
                "5,0,7,102,1",
                "4,1,10,101,1",
                "3,1,30,101,1"
            ]
        );
    }
}
