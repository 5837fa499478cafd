//! The CSV files of `tickwire risk`: a header that names the columns, in any order, then a line per fill,
//! price or quote. No quotation marks: no value has a comma in it.

use std::collections::BTreeMap;

use tickwire_market::{Nanos, Price, Qty, Side};

use super::file::instant;

/// What a file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Fills,
    Marks,
    Quotes,
}

impl Kind {
    /// Its columns, and how many of them must be there.
    fn columns(self) -> (&'static [&'static str], usize) {
        match self {
            Kind::Fills => (
                &["time", "symbol", "side", "quantity", "price", "theo", "forward"],
                5,
            ),
            Kind::Marks => (&["time", "symbol", "bid", "ask", "last", "settle"], 2),
            Kind::Quotes => (
                &["time", "symbol", "bid", "bid_quantity", "ask", "ask_quantity"],
                6,
            ),
        }
    }
}

/// Something that happened to an instrument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Happened {
    pub at: Nanos,
    pub instrument: u32,
    pub what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// Its market: what is not said is as before.
    Marked {
        bid: Option<Price>,
        ask: Option<Price>,
        last: Option<Price>,
        settle: Option<Price>,
    },
    /// Our quote in it.
    Quoted {
        bid: Option<(Price, Qty)>,
        ask: Option<(Price, Qty)>,
    },
    /// We traded it.
    Filled {
        side: Side,
        qty: Qty,
        price: Price,
        theo: Option<Price>,
        forward: Option<Price>,
    },
}

/// Reads a file whole; the error names line and field.
pub(super) fn read(kind: Kind, text: &str, symbols: &BTreeMap<String, u32>) -> Result<Vec<Happened>, String> {
    let (columns, required) = kind.columns();
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(n, line)| (n + 1, line.trim_end_matches('\r')));
    let Some((_, header)) = lines.next() else {
        return Err(format!("line 1: no header; expected {}", columns.join(",")));
    };
    let mut places = vec![None; columns.len()];
    let header = header.trim_start_matches('\u{feff}');
    for (place, name) in header.split(',').map(str::trim).enumerate() {
        let Some(column) = columns.iter().position(|column| *column == name) else {
            return Err(format!(
                "line 1: no column {name:?} is known; these are: {}",
                columns.join(",")
            ));
        };
        if places[column].replace(place).is_some() {
            return Err(format!("line 1: the column {name} is there twice"));
        }
    }
    if let Some(missing) = (0..required).find(|&column| places[column].is_none()) {
        return Err(format!("line 1: the column {} is missing", columns[missing]));
    }
    let width = header.split(',').count();
    let mut all = Vec::new();
    for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        if cells.len() != width {
            return Err(format!("line {line}: {} values for {width} columns", cells.len()));
        }
        let row = Row {
            line,
            cells: &cells,
            columns,
            places: &places,
        };
        all.push(row.read(kind, symbols)?);
    }
    Ok(all)
}

struct Row<'r> {
    line: usize,
    cells: &'r [&'r str],
    columns: &'r [&'static str],
    places: &'r [Option<usize>],
}

impl Row<'_> {
    fn read(&self, kind: Kind, symbols: &BTreeMap<String, u32>) -> Result<Happened, String> {
        let at = instant(self.cell(0)).map_err(|e| self.wrong(0, &e))?;
        let symbol = self.cell(1);
        let instrument = *symbols
            .get(symbol)
            .ok_or_else(|| self.wrong(1, &format!("{symbol:?} is not in the portfolio file")))?;
        let what = match kind {
            Kind::Fills => What::Filled {
                side: match self.cell(2) {
                    "buy" => Side::Bid,
                    "sell" => Side::Ask,
                    other => return Err(self.wrong(2, &format!("{other:?} is neither buy nor sell"))),
                },
                qty: match self.qty(3)? {
                    Some(qty) if !qty.is_zero() => qty,
                    _ => return Err(self.wrong(3, "at least one contract")),
                },
                price: self
                    .price(4)?
                    .ok_or_else(|| self.wrong(4, "it has to be there"))?,
                theo: self.price(5)?,
                forward: self.price(6)?,
            },
            Kind::Marks => What::Marked {
                bid: self.price(2)?,
                ask: self.price(3)?,
                last: self.price(4)?,
                settle: self.price(5)?,
            },
            Kind::Quotes => What::Quoted {
                bid: self.price(2)?.zip(self.qty(3)?),
                ask: self.price(4)?.zip(self.qty(5)?),
            },
        };
        Ok(Happened { at, instrument, what })
    }

    /// A cell, empty if the column is not there.
    fn cell(&self, column: usize) -> &str {
        self.places[column]
            .and_then(|place| self.cells.get(place))
            .copied()
            .unwrap_or("")
    }

    fn wrong(&self, column: usize, what: &str) -> String {
        format!("line {}, {}: {what}", self.line, self.columns[column])
    }

    fn price(&self, column: usize) -> Result<Option<Price>, String> {
        match self.cell(column) {
            "" => Ok(None),
            text => match text.parse::<Price>() {
                Ok(price) => Ok(Some(price)),
                Err(e) => Err(self.wrong(column, &format!("{text:?} is no price: {e}"))),
            },
        }
    }

    fn qty(&self, column: usize) -> Result<Option<Qty>, String> {
        match self.cell(column) {
            "" => Ok(None),
            text => match text.parse::<u32>() {
                Ok(qty) => Ok(Some(Qty(qty))),
                Err(_) => Err(self.wrong(column, &format!("{text:?} is no number of contracts"))),
            },
        }
    }
}
