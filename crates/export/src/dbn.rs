//! DBN 3: records as Databento writes them, with the symbols of the file in its header. Source: the crate
//! `dbn`, `docs` of Databento, "Databento Binary Encoding".
//!
//! ```text
//! "DBN" 3, length (4)   metadata: dataset, schema, first and last time, symbols with their numbers   records
//! ```
//! The header stands first and is known last: records wait in a file without a name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use tickwire_market::{Date, Nanos};

use crate::batch::{Batch, Names};
use crate::schema::{Column, Schema};

/// Bytes of a symbol in version 3, NUL included.
const SYMBOL_BYTES: usize = 71;

/// Where a column stands in a record: place and bytes.
type Field = (usize, usize);

/// What is written of a schema: DBN's number of it, bytes of a record.
pub(crate) fn layout(schema: Schema) -> (u16, usize) {
    match schema {
        Schema::Mbo => (0, 56),
        Schema::Mbp1 => (1, 80),
        Schema::Mbp10 => (2, 368),
        Schema::Trades => (4, 48),
        Schema::Ohlcv1s => (5, 56),
        Schema::Ohlcv1m => (6, 56),
        Schema::Definition => (9, 520),
        Schema::Statistics => (10, 80),
        Schema::Status => (11, 40),
        Schema::Imbalance => (12, 112),
        Schema::Cmbp1 => (14, 80),
        Schema::Bbo1s => (18, 80),
    }
}

/// A record in which nothing is said: fields that no column fills have DBN's value for that.
fn blank(schema: Schema) -> Vec<u8> {
    let (_, len) = layout(schema);
    let mut record = vec![0; len];
    record[0] = (len / 4) as u8;
    let mut fill = |places: &[usize], value: &[u8]| {
        for at in places {
            record[*at..*at + value.len()].copy_from_slice(value);
        }
    };
    let (none, never) = (i64::MAX.to_le_bytes(), u64::MAX.to_le_bytes());
    match schema {
        Schema::Definition => {
            // Prices and steps; expiration and activation; whole numbers, and what is smaller.
            fill(&[24, 32, 56, 64, 72, 80, 88, 96, 104, 120, 128], &none);
            fill(&[40, 48], &never);
            fill(
                &[136, 144, 148, 160, 164, 168, 176, 180, 184],
                &i32::MAX.to_le_bytes(),
            );
            fill(&[152, 156, 172], &u32::MAX.to_le_bytes());
            fill(&[212], &i16::MAX.to_le_bytes());
            fill(&[214, 216], &u16::MAX.to_le_bytes());
            fill(&[489, 490, 491, 492, 494, 495, 496, 500], &[u8::MAX]);
            fill(&[498, 499], &[i8::MAX as u8]);
            // A stock where nothing else is known, matched first in, first out; no leg.
            fill(&[487, 488, 497, 502], b"K");
            fill(&[488], b"F");
            fill(&[497, 502], b"N");
        }
        Schema::Statistics => {
            fill(&[24], &never);
            fill(&[32, 40], &none);
        }
        Schema::Status => fill(&[30, 31, 32], b"~"),
        Schema::Imbalance => {
            fill(&[24, 40, 48, 56, 64, 72, 80], &none);
            fill(&[96, 100], &u32::MAX.to_le_bytes());
            fill(&[104], b"~");
            fill(&[105, 109], b"N");
            fill(&[110], b"~");
        }
        _ => {}
    }
    record
}

fn field(schema: Schema, name: &str) -> Option<Field> {
    let head = match name {
        "rtype" => Some((1, 1)),
        "publisher_id" => Some((2, 2)),
        "instrument_id" => Some((4, 4)),
        "ts_event" => Some((8, 8)),
        _ => None,
    };
    let own = || match (schema, name) {
        (Schema::Mbo, "order_id") => Some((16, 8)),
        (Schema::Mbo, "price") => Some((24, 8)),
        (Schema::Mbo, "size") => Some((32, 4)),
        (Schema::Mbo, "flags") => Some((36, 1)),
        (Schema::Mbo, "channel_id") => Some((37, 1)),
        (Schema::Mbo, "action") => Some((38, 1)),
        (Schema::Mbo, "side") => Some((39, 1)),
        (Schema::Mbo, "ts_recv") => Some((40, 8)),
        (Schema::Mbo, "ts_in_delta") => Some((48, 4)),
        (Schema::Mbo, "sequence") => Some((52, 4)),
        (Schema::Ohlcv1s | Schema::Ohlcv1m, "open") => Some((16, 8)),
        (Schema::Ohlcv1s | Schema::Ohlcv1m, "high") => Some((24, 8)),
        (Schema::Ohlcv1s | Schema::Ohlcv1m, "low") => Some((32, 8)),
        (Schema::Ohlcv1s | Schema::Ohlcv1m, "close") => Some((40, 8)),
        (Schema::Ohlcv1s | Schema::Ohlcv1m, "volume") => Some((48, 8)),
        (Schema::Definition | Schema::Status | Schema::Imbalance | Schema::Statistics, "ts_recv") => {
            Some((16, 8))
        }
        (Schema::Definition, "min_price_increment") => Some((24, 8)),
        (Schema::Definition, "min_lot_size_round_lot") => Some((168, 4)),
        (Schema::Definition, "security_update_action") => Some((493, 1)),
        (Schema::Status, "action") => Some((24, 2)),
        (Schema::Status, "is_trading") => Some((30, 1)),
        (Schema::Status, "is_quoting") => Some((31, 1)),
        (Schema::Imbalance, "ref_price") => Some((24, 8)),
        (Schema::Imbalance, "cont_book_clr_price") => Some((40, 8)),
        (Schema::Imbalance, "auct_interest_clr_price") => Some((48, 8)),
        (Schema::Imbalance, "paired_qty") => Some((88, 4)),
        (Schema::Imbalance, "total_imbalance_qty") => Some((92, 4)),
        (Schema::Imbalance, "auction_type") => Some((104, 1)),
        (Schema::Imbalance, "side") => Some((105, 1)),
        (Schema::Statistics, "price") => Some((32, 8)),
        (Schema::Statistics, "quantity") => Some((40, 8)),
        (Schema::Statistics, "sequence") => Some((48, 4)),
        (Schema::Statistics, "ts_in_delta") => Some((52, 4)),
        (Schema::Statistics, "stat_type") => Some((56, 2)),
        (Schema::Statistics, "update_action") => Some((60, 1)),
        (Schema::Cmbp1, "bid_pb_00") => Some((72, 2)),
        (Schema::Cmbp1, "ask_pb_00") => Some((76, 2)),
        (Schema::Bbo1s, "action" | "depth" | "ts_in_delta") => None,
        // Of bars DBN has no flags.
        (
            Schema::Mbo
            | Schema::Ohlcv1s
            | Schema::Ohlcv1m
            | Schema::Definition
            | Schema::Status
            | Schema::Imbalance
            | Schema::Statistics,
            _,
        ) => None,
        (_, "price") => Some((16, 8)),
        (_, "size") => Some((24, 4)),
        (_, "action") => Some((28, 1)),
        (_, "side") => Some((29, 1)),
        (_, "flags") => Some((30, 1)),
        (_, "depth") => Some((31, 1)),
        (_, "ts_recv") => Some((32, 8)),
        (_, "ts_in_delta") => Some((40, 4)),
        (_, "sequence") => Some((44, 4)),
        (_, level) => {
            let (what, number) = level.rsplit_once('_')?;
            let at = 48 + 32 * number.parse::<usize>().ok()?;
            let (by, bytes) = match what {
                "bid_px" => (0, 8),
                "ask_px" => (8, 8),
                "bid_sz" => (16, 4),
                "ask_sz" => (20, 4),
                "bid_ct" => (24, 4),
                "ask_ct" => (28, 4),
                _ => return None,
            };
            Some((at + by, bytes))
        }
    };
    head.or_else(own)
}

/// Databento's name of the data set whose publisher has this number.
fn dataset(publisher: u64) -> &'static str {
    match publisher {
        1 => "GLBX.MDP3",
        2 => "XNAS.ITCH",
        3 => "XBOS.ITCH",
        4 => "XPSX.ITCH",
        5 => "BATS.PITCH",
        6 => "BATY.PITCH",
        7 => "EDGA.PITCH",
        8 => "EDGX.PITCH",
        9 => "XNYS.PILLAR",
        10 => "XCIS.PILLAR",
        11 => "XASE.PILLAR",
        12 => "XCHI.PILLAR",
        43 => "ARCX.PILLAR",
        _ => "UNLISTED",
    }
}

/// A file that is being written.
pub(crate) struct Dbn {
    schema: u16,
    record: Vec<u8>,
    /// Where a record has its symbol, if it has.
    symbol_at: Option<usize>,
    /// Rows are of all feeds together.
    is_consolidated: bool,
    fields: Vec<Option<Field>>,
    /// Which column is the publisher.
    publisher_at: Option<usize>,
    body: BufWriter<File>,
    symbols: BTreeMap<u32, String>,
    last_symbol: Option<u64>,
    channel: Option<u64>,
    publisher: u64,
    span: Option<[u64; 2]>,
}

impl Dbn {
    /// `body` takes the records until the end.
    pub(crate) fn new(schema: Schema, columns: &[Column], body: File) -> Dbn {
        Dbn {
            schema: layout(schema).0,
            record: blank(schema),
            symbol_at: (schema == Schema::Definition).then_some(238),
            is_consolidated: schema == Schema::Cmbp1,
            fields: columns.iter().map(|column| field(schema, column.name)).collect(),
            publisher_at: columns.iter().position(|column| column.name == "publisher_id"),
            body: BufWriter::with_capacity(1 << 20, body),
            symbols: BTreeMap::new(),
            last_symbol: None,
            channel: None,
            publisher: 0,
            span: None,
        }
    }

    pub(crate) fn rows(&mut self, batch: &Batch, names: &Names) -> io::Result<()> {
        let Some(of_symbols) = batch.words.last() else {
            return Ok(());
        };
        for (row, &word_of_symbol) in of_symbols.iter().enumerate().take(batch.rows()) {
            for (column, field) in self.fields.iter().enumerate() {
                let Some((at, bytes)) = *field else { continue };
                // A price of none has the same number here and there.
                let word = batch.words[column][row].to_le_bytes();
                self.record[at..at + bytes].copy_from_slice(&word[..bytes]);
            }
            let word = word_of_symbol;
            if let Some(at) = self.symbol_at {
                let symbol = names.text(word);
                let room = &mut self.record[at..at + SYMBOL_BYTES];
                room.fill(0);
                let len = symbol.len().min(SYMBOL_BYTES - 1);
                room[..len].copy_from_slice(&symbol.as_bytes()[..len]);
            }
            self.body.write_all(&self.record)?;
            if self.last_symbol != Some(word) {
                self.last_symbol = Some(word);
                if *self.channel.get_or_insert(word >> 32) != word >> 32 {
                    return Err(io::Error::other(
                        "a DBN file is of one feed, and the recording has several: give --partition",
                    ));
                }
                self.symbols
                    .entry(word as u32)
                    .or_insert_with(|| names.text(word));
            }
            let time = batch.words[0][row];
            let span = self.span.get_or_insert([time, time]);
            *span = [span[0].min(time), span[1].max(time)];
        }
        if let (Some(at), true) = (self.publisher_at, batch.rows() > 0) {
            self.publisher = batch.words[at][0];
        }
        Ok(())
    }

    /// Writes header and records.
    pub(crate) fn finish(self, out: &mut impl Write) -> io::Result<()> {
        let metadata = self.metadata();
        out.write_all(b"DBN\x03")?;
        out.write_all(&(metadata.len() as u32).to_le_bytes())?;
        out.write_all(&metadata)?;
        let mut body = self.body.into_inner().map_err(io::IntoInnerError::into_error)?;
        body.seek(SeekFrom::Start(0))?;
        io::copy(&mut body, out)?;
        out.flush()
    }

    fn metadata(&self) -> Vec<u8> {
        let [first, last] = self.span.unwrap_or([0, 0]);
        let mut out = Vec::new();
        let padded = |out: &mut Vec<u8>, text: &str, bytes: usize| {
            let text = &text.as_bytes()[..text.len().min(bytes - 1)];
            out.extend(text);
            out.resize(out.len() + bytes - text.len(), 0);
        };
        let publisher = if self.is_consolidated { 0 } else { self.publisher };
        padded(&mut out, dataset(publisher), 16);
        out.extend(self.schema.to_le_bytes());
        out.extend(first.to_le_bytes());
        out.extend((last + 1).to_le_bytes()); // exclusive
        out.extend(0_u64.to_le_bytes()); // no limit
        out.extend([1, 0, 0]); // asked for by symbol, answered by number; no ts_out
        out.extend((SYMBOL_BYTES as u16).to_le_bytes());
        out.resize(100, 0);
        out.extend([0; 4]); // no definition of the schema
        out.extend((self.symbols.len() as u32).to_le_bytes());
        self.symbols
            .values()
            .for_each(|symbol| padded(&mut out, symbol, SYMBOL_BYTES));
        out.extend([0; 8]); // none found in part, none not found
        out.extend((self.symbols.len() as u32).to_le_bytes());
        let day = |time: u64| {
            let date = Date::of_days((time / Nanos::DAY) as u32);
            u32::from(date.year) * 10_000 + u32::from(date.month) * 100 + u32::from(date.day)
        };
        for (number, symbol) in &self.symbols {
            padded(&mut out, symbol, SYMBOL_BYTES);
            out.extend(1_u32.to_le_bytes());
            out.extend(day(first).to_le_bytes());
            out.extend(day(last.saturating_add(Nanos::DAY)).to_le_bytes()); // exclusive
            padded(&mut out, &number.to_string(), SYMBOL_BYTES);
        }
        out
    }
}
