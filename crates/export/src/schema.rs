//! The schemas: which columns a row has. Names, codes and units are those of DBN ("Schemas and data formats"
//! and "Common fields, enums and types" of Databento's documentation, version 3 of the encoding).

/// What the words of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nanoseconds since the Unix epoch, UTC.
    Time,
    /// The same, or [`NO_TIME`].
    TimeOrNone,
    /// A price in 1e-9 as the bits of an `i64`; [`NO_PRICE`] is none.
    Price,
    /// A number of so many bits, 8, 16, 32 or 64.
    Unsigned(u8),
    /// A number of so many bits with a sign, 32 or 64, as the bits of an `i64`.
    Signed(u8),
    /// One character of ASCII.
    Char,
    /// The instrument's symbol: channel in the upper 32 bits, number of the instrument in the lower ones.
    Symbol,
}

/// The word of a price that is none; the same number as in DBN.
pub const NO_PRICE: u64 = i64::MAX as u64;

/// The word of a time that is none; the same number as numpy's NaT.
pub const NO_TIME: u64 = 1 << 63;

/// A column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// DBN's name of it.
    pub name: &'static str,
    /// What is in it.
    pub kind: Kind,
}

/// What rows tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Schema {
    /// Market by order: every order event
    Mbo,
    /// Market by price: every change of the best level, and trades
    #[value(name = "mbp-1")]
    Mbp1,
    /// Market by price: every change of ten levels, and trades
    #[value(name = "mbp-10")]
    Mbp10,
    /// Every trade
    Trades,
    /// The best level and the last trade, at the end of every second in which one of them changed
    #[value(name = "bbo-1s")]
    Bbo1s,
    /// Open, high, low, close and volume of every second with a trade
    #[value(name = "ohlcv-1s")]
    Ohlcv1s,
    /// The same of every minute
    #[value(name = "ohlcv-1m")]
    Ohlcv1m,
    /// What the venue says of its instruments
    Definition,
    /// Halts, pauses, openings
    Status,
    /// Auctions
    Imbalance,
    /// Prices of the day that the venue says: of its opening and closing crosses, and what they would be
    Statistics,
    /// The best price over all venues of the recording, and whose it is: every change, and trades
    #[value(name = "cmbp-1")]
    Cmbp1,
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

const TS_RECV: Column = column("ts_recv", Kind::Time);
const TS_EVENT: Column = column("ts_event", Kind::Time);
const RTYPE: Column = column("rtype", Kind::Unsigned(8));
const PUBLISHER: Column = column("publisher_id", Kind::Unsigned(16));
const INSTRUMENT: Column = column("instrument_id", Kind::Unsigned(32));
const ACTION: Column = column("action", Kind::Char);
const SIDE: Column = column("side", Kind::Char);
const DEPTH: Column = column("depth", Kind::Unsigned(8));
const PRICE: Column = column("price", Kind::Price);
const SIZE: Column = column("size", Kind::Unsigned(32));
const FLAGS: Column = column("flags", Kind::Unsigned(8));
const DELTA: Column = column("ts_in_delta", Kind::Signed(32));
const SEQUENCE: Column = column("sequence", Kind::Unsigned(32));
const SYMBOL: Column = column("symbol", Kind::Symbol);

const MBO: &[Column] = &[
    TS_RECV,
    TS_EVENT,
    RTYPE,
    PUBLISHER,
    INSTRUMENT,
    ACTION,
    SIDE,
    PRICE,
    SIZE,
    column("channel_id", Kind::Unsigned(8)),
    column("order_id", Kind::Unsigned(64)),
    FLAGS,
    DELTA,
    SEQUENCE,
    SYMBOL,
];
/// Of `trades`, and what `mbp-1` and `mbp-10` begin with.
const TRADES: &[Column] = &[
    TS_RECV, TS_EVENT, RTYPE, PUBLISHER, INSTRUMENT, ACTION, SIDE, DEPTH, PRICE, SIZE, FLAGS, DELTA, SEQUENCE,
];
const BBO: &[Column] = &[
    TS_RECV, TS_EVENT, RTYPE, PUBLISHER, INSTRUMENT, SIDE, PRICE, SIZE, FLAGS, SEQUENCE,
];
const OHLCV: &[Column] = &[
    TS_EVENT,
    RTYPE,
    PUBLISHER,
    INSTRUMENT,
    column("open", Kind::Price),
    column("high", Kind::Price),
    column("low", Kind::Price),
    column("close", Kind::Price),
    column("volume", Kind::Unsigned(64)),
    FLAGS,
    SYMBOL,
];
const DEFINITION: &[Column] = &[
    TS_RECV,
    TS_EVENT,
    RTYPE,
    PUBLISHER,
    INSTRUMENT,
    column("min_price_increment", Kind::Price),
    column("min_lot_size_round_lot", Kind::Signed(32)),
    column("security_update_action", Kind::Char),
    SYMBOL,
];
const STATUS: &[Column] = &[
    TS_RECV,
    TS_EVENT,
    RTYPE,
    PUBLISHER,
    INSTRUMENT,
    column("action", Kind::Unsigned(16)),
    column("is_trading", Kind::Char),
    column("is_quoting", Kind::Char),
    SYMBOL,
];
const IMBALANCE: &[Column] = &[
    TS_RECV,
    TS_EVENT,
    RTYPE,
    PUBLISHER,
    INSTRUMENT,
    column("ref_price", Kind::Price),
    column("cont_book_clr_price", Kind::Price),
    column("auct_interest_clr_price", Kind::Price),
    column("paired_qty", Kind::Unsigned(32)),
    column("total_imbalance_qty", Kind::Unsigned(32)),
    column("auction_type", Kind::Char),
    SIDE,
    SYMBOL,
];
const STATISTICS: &[Column] = &[
    TS_RECV,
    TS_EVENT,
    RTYPE,
    PUBLISHER,
    INSTRUMENT,
    PRICE,
    column("quantity", Kind::Signed(64)),
    SEQUENCE,
    DELTA,
    column("stat_type", Kind::Unsigned(16)),
    column("update_action", Kind::Unsigned(8)),
    SYMBOL,
];
const CMBP1: &[Column] = &[
    TS_RECV,
    TS_EVENT,
    RTYPE,
    PUBLISHER,
    INSTRUMENT,
    ACTION,
    SIDE,
    PRICE,
    SIZE,
    FLAGS,
    DELTA,
    column("bid_px_00", Kind::Price),
    column("ask_px_00", Kind::Price),
    column("bid_sz_00", Kind::Unsigned(32)),
    column("ask_sz_00", Kind::Unsigned(32)),
    column("bid_pb_00", Kind::Unsigned(16)),
    column("ask_pb_00", Kind::Unsigned(16)),
    SYMBOL,
];
/// Names of the columns of ten levels.
const LEVELS: [[&str; 6]; 10] = [
    [
        "bid_px_00",
        "ask_px_00",
        "bid_sz_00",
        "ask_sz_00",
        "bid_ct_00",
        "ask_ct_00",
    ],
    [
        "bid_px_01",
        "ask_px_01",
        "bid_sz_01",
        "ask_sz_01",
        "bid_ct_01",
        "ask_ct_01",
    ],
    [
        "bid_px_02",
        "ask_px_02",
        "bid_sz_02",
        "ask_sz_02",
        "bid_ct_02",
        "ask_ct_02",
    ],
    [
        "bid_px_03",
        "ask_px_03",
        "bid_sz_03",
        "ask_sz_03",
        "bid_ct_03",
        "ask_ct_03",
    ],
    [
        "bid_px_04",
        "ask_px_04",
        "bid_sz_04",
        "ask_sz_04",
        "bid_ct_04",
        "ask_ct_04",
    ],
    [
        "bid_px_05",
        "ask_px_05",
        "bid_sz_05",
        "ask_sz_05",
        "bid_ct_05",
        "ask_ct_05",
    ],
    [
        "bid_px_06",
        "ask_px_06",
        "bid_sz_06",
        "ask_sz_06",
        "bid_ct_06",
        "ask_ct_06",
    ],
    [
        "bid_px_07",
        "ask_px_07",
        "bid_sz_07",
        "ask_sz_07",
        "bid_ct_07",
        "ask_ct_07",
    ],
    [
        "bid_px_08",
        "ask_px_08",
        "bid_sz_08",
        "ask_sz_08",
        "bid_ct_08",
        "ask_ct_08",
    ],
    [
        "bid_px_09",
        "ask_px_09",
        "bid_sz_09",
        "ask_sz_09",
        "bid_ct_09",
        "ask_ct_09",
    ],
];

impl Schema {
    /// DBN's name.
    pub fn name(self) -> &'static str {
        match self {
            Schema::Mbo => "mbo",
            Schema::Mbp1 => "mbp-1",
            Schema::Mbp10 => "mbp-10",
            Schema::Trades => "trades",
            Schema::Bbo1s => "bbo-1s",
            Schema::Ohlcv1s => "ohlcv-1s",
            Schema::Ohlcv1m => "ohlcv-1m",
            Schema::Definition => "definition",
            Schema::Status => "status",
            Schema::Imbalance => "imbalance",
            Schema::Statistics => "statistics",
            Schema::Cmbp1 => "cmbp-1",
        }
    }

    /// DBN's number of the record type.
    pub fn rtype(self) -> u8 {
        match self {
            Schema::Trades => 0x00,
            Schema::Mbp1 => 0x01,
            Schema::Mbp10 => 0x0A,
            Schema::Status => 0x12,
            Schema::Definition => 0x13,
            Schema::Imbalance => 0x14,
            Schema::Statistics => 0x18,
            Schema::Ohlcv1s => 0x20,
            Schema::Ohlcv1m => 0x21,
            Schema::Mbo => 0xA0,
            Schema::Cmbp1 => 0xB1,
            Schema::Bbo1s => 0xC3,
        }
    }

    /// Levels of a side that a row shows.
    pub fn depth(self) -> usize {
        match self {
            Schema::Mbp1 | Schema::Bbo1s => 1,
            Schema::Mbp10 => 10,
            _ => 0,
        }
    }

    /// The columns, in their order. `symbol` is the last.
    pub fn columns(self) -> Vec<Column> {
        let head = match self {
            Schema::Mbo => return MBO.to_vec(),
            Schema::Ohlcv1s | Schema::Ohlcv1m => return OHLCV.to_vec(),
            Schema::Definition => return DEFINITION.to_vec(),
            Schema::Status => return STATUS.to_vec(),
            Schema::Imbalance => return IMBALANCE.to_vec(),
            Schema::Statistics => return STATISTICS.to_vec(),
            Schema::Cmbp1 => return CMBP1.to_vec(),
            Schema::Trades | Schema::Mbp1 | Schema::Mbp10 => TRADES,
            Schema::Bbo1s => BBO,
        };
        let mut all = head.to_vec();
        for names in &LEVELS[..self.depth()] {
            for (name, kind) in names.iter().zip([
                Kind::Price,
                Kind::Price,
                Kind::Unsigned(32),
                Kind::Unsigned(32),
                Kind::Unsigned(32),
                Kind::Unsigned(32),
            ]) {
                all.push(column(name, kind));
            }
        }
        all.push(SYMBOL);
        all
    }

    /// Where the receive time stands, or the time that stands for it.
    pub(crate) fn time_column(self) -> usize {
        0
    }
}

/// Bits of `flags`. DBN, FlagSet.
pub mod flags {
    /// The last record of an event.
    pub const LAST: u64 = 1 << 7;
    /// From a snapshot, not from the live stream.
    pub const SNAPSHOT: u64 = 1 << 5;
    /// Messages before it are missing, or its beginning is: the book may be wrong.
    pub const MAYBE_BAD_BOOK: u64 = 1 << 2;
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_schema_has_the_name_that_it_is_asked_for_by_and_ends_with_the_symbol() {
        for schema in Schema::value_variants() {
            let value = schema.to_possible_value().expect("a name");
            assert_eq!(value.get_name(), schema.name());
            let columns = schema.columns();
            assert_eq!(columns.last().map(|c| c.kind), Some(Kind::Symbol));
            assert_eq!(columns[schema.time_column()].kind, Kind::Time);
            let mut names: Vec<_> = columns.iter().map(|c| c.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), columns.len(), "{schema:?}");
        }
        assert_eq!(Schema::Mbp10.columns().len(), 13 + 60 + 1);
    }
}
