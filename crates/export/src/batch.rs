//! Rows by column: what is handed from the books to the writers of files.

use tickwire_market::{InstrumentId, Symbol};

use crate::schema::{Column, Kind, NO_PRICE, NO_TIME};

/// Rows of a batch: a row group of Parquet.
pub(crate) const ROWS: usize = 1 << 17;

/// Columns of words, all equally long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// What is in which column.
    pub columns: Vec<Column>,
    /// The words of every column; what a word means, its [`Kind`] says.
    pub words: Vec<Vec<u64>>,
}

impl Batch {
    /// Without a row.
    pub fn new(columns: Vec<Column>) -> Batch {
        let words = columns.iter().map(|_| Vec::new()).collect();
        Batch { columns, words }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.words.first().map_or(0, Vec::len)
    }

    /// One more row: a word of every column.
    pub fn push(&mut self, row: &[u64]) {
        assert_eq!(row.len(), self.words.len(), "a row has a word of every column");
        for (column, word) in self.words.iter_mut().zip(row) {
            column.push(*word);
        }
    }

    /// Takes the rows away; room stays.
    pub fn clear(&mut self) {
        self.words.iter_mut().for_each(Vec::clear);
    }
}

/// Symbols by channel and number.
#[derive(Clone, Default, Debug)]
pub struct Names(Vec<Vec<Option<Symbol>>>);

impl Names {
    /// An instrument has a name; another one that it had before.
    pub fn insert(&mut self, channel: usize, id: InstrumentId, symbol: Symbol) -> Option<Symbol> {
        if self.0.len() <= channel {
            self.0.resize(channel + 1, Vec::new());
        }
        let of = &mut self.0[channel];
        if of.len() <= id.index() {
            of.resize(id.index() + 1, None);
        }
        of[id.index()].replace(symbol).filter(|before| *before != symbol)
    }

    /// The symbol of an instrument, if it is known.
    pub(crate) fn symbol(&self, channel: usize, id: InstrumentId) -> Option<Symbol> {
        *self.0.get(channel)?.get(id.index())?
    }

    /// What stands for a symbol in a row.
    pub fn word(channel: usize, id: InstrumentId) -> u64 {
        (channel as u64) << 32 | u64::from(id.0)
    }

    /// The symbol of a word of [`Kind::Symbol`]: `#` and the number where the recording does not say.
    pub fn text(&self, word: u64) -> String {
        let (channel, number) = ((word >> 32) as usize, word as u32);
        let known = self
            .0
            .get(channel)
            .and_then(|of| of.get(number as usize)?.as_ref());
        known.map_or_else(|| format!("#{number}"), Symbol::to_string)
    }
}

/// A value of a table that was read: what it is equal to is the same in every format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A number or a time.
    Number(i128),
    /// A price in 1e-9; `None` is none.
    Price(Option<i64>),
    /// A character or a symbol.
    Text(String),
}

/// The value of a word.
pub fn value_of(kind: Kind, word: u64, names: &Names) -> Value {
    match kind {
        Kind::TimeOrNone if word == NO_TIME => Value::Text(String::new()),
        Kind::Time | Kind::TimeOrNone | Kind::Unsigned(_) => Value::Number(word.into()),
        Kind::Signed(_) => Value::Number((word as i64).into()),
        Kind::Price if word == NO_PRICE => Value::Price(None),
        Kind::Price => Value::Price(Some(word as i64)),
        Kind::Char => Value::Text(char::from(word as u8).to_string()),
        Kind::Symbol => Value::Text(names.text(word)),
    }
}
