//! Parquet: a row group a batch, zstd, statistics of every column. Times are `TIMESTAMP(NANOS)` in UTC
//! without the mark of a zone (DuckDB cuts times with one to microseconds), prices `DECIMAL(18, 9)` over 64
//! bits and null where there is none, numbers unsigned of their width, characters and symbols `STRING`.
//!
//! Nothing of the crates behind it is in a type here.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::batch::{Batch, Names, Value};
use crate::schema::{Column, Kind, NO_PRICE};

/// The largest price, in 1e-9, that 18 digits hold.
const PRICE_MAX: i64 = 999_999_999_999_999_999;

/// A file that is being written.
pub(crate) struct Parquet<W: Write + Send>(SerializedFileWriter<W>);

fn said(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// The type of the file's rows.
fn message(columns: &[Column]) -> String {
    let mut text = String::from("message rows {\n");
    for Column { name, kind } in columns {
        text += &match kind {
            Kind::Time | Kind::TimeOrNone => format!("required int64 {name} (TIMESTAMP(NANOS, false));\n"),
            Kind::Price => format!("optional int64 {name} (DECIMAL(18, 9));\n"),
            Kind::Unsigned(64) => format!("required int64 {name} (INTEGER(64, false));\n"),
            Kind::Unsigned(bits) => format!("required int32 {name} (INTEGER({bits}, false));\n"),
            Kind::Signed(32) => format!("required int32 {name} (INTEGER(32, true));\n"),
            Kind::Signed(_) => format!("required int64 {name} (INTEGER(64, true));\n"),
            Kind::Char | Kind::Symbol => format!("required binary {name} (STRING);\n"),
        };
    }
    text + "}"
}

impl<W: Write + Send> Parquet<W> {
    pub(crate) fn new(out: W, columns: &[Column]) -> Result<Parquet<W>, String> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(said)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(format!("tickwire {}", env!("CARGO_PKG_VERSION")));
        // What hardly repeats goes by differences, everything else by dictionary.
        for column in columns {
            if matches!(column.kind, Kind::Time | Kind::Unsigned(64)) || column.name == "sequence" {
                let path = ColumnPath::from(column.name);
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
        let schema = Arc::new(parse_message_type(&message(columns)).map_err(said)?);
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties.build())).map_err(said)?;
        Ok(Parquet(file))
    }

    pub(crate) fn rows(&mut self, batch: &Batch, names: &Names) -> Result<(), String> {
        let mut group = self.0.next_row_group().map_err(said)?;
        for (column, words) in batch.columns.iter().zip(&batch.words) {
            write_column(&mut group, column, words, names)?;
        }
        group.close().map_err(said)?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), String> {
        self.0.close().map_err(said).map(|_| ())
    }
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    words: &[u64],
    names: &Names,
) -> Result<(), String> {
    let writer = group.next_column().map_err(said)?;
    let mut writer = writer.ok_or_else(|| format!("{}: no such column", column.name))?;
    match column.kind {
        Kind::Time | Kind::TimeOrNone | Kind::Unsigned(64) | Kind::Signed(64) => {
            let values: Vec<i64> = words.iter().map(|w| *w as i64).collect();
            writer
                .typed::<Int64Type>()
                .write_batch(&values, None, None)
                .map_err(said)?;
        }
        Kind::Price => {
            let levels: Vec<i16> = words.iter().map(|w| i16::from(*w != NO_PRICE)).collect();
            let values: Vec<i64> = words
                .iter()
                .filter(|w| **w != NO_PRICE)
                .map(|w| *w as i64)
                .collect();
            if let Some(large) = values.iter().find(|v| v.unsigned_abs() > PRICE_MAX as u64) {
                return Err(format!(
                    "{}: {large} in 1e-9 has more than the 18 digits of a decimal of 64 bits",
                    column.name
                ));
            }
            writer
                .typed::<Int64Type>()
                .write_batch(&values, Some(&levels), None)
                .map_err(said)?;
        }
        Kind::Unsigned(_) | Kind::Signed(_) => {
            let values: Vec<i32> = words.iter().map(|w| *w as i32).collect();
            writer
                .typed::<Int32Type>()
                .write_batch(&values, None, None)
                .map_err(said)?;
        }
        Kind::Char | Kind::Symbol => {
            // Texts repeat: one of each, and a reference to it where it comes again. Neighbours are mostly of
            // one symbol or letter.
            let mut known: HashMap<u64, ByteArray> = HashMap::new();
            let mut last: Option<(u64, ByteArray)> = None;
            let mut values: Vec<ByteArray> = Vec::with_capacity(words.len());
            for word in words {
                if last.as_ref().is_none_or(|(before, _)| before != word) {
                    let text = known.entry(*word).or_insert_with(|| match column.kind {
                        Kind::Char => ByteArray::from(vec![*word as u8]),
                        _ => ByteArray::from(names.text(*word).into_bytes()),
                    });
                    last = Some((*word, text.clone()));
                }
                values.extend(last.as_ref().map(|(_, text)| text.clone()));
            }
            writer
                .typed::<ByteArrayType>()
                .write_batch(&values, None, None)
                .map_err(said)?;
        }
    }
    writer.close().map_err(said)
}

/// Reads a file back: its columns are those of a schema, its rows values.
///
/// # Errors
/// What is wrong with the file, or that it has other columns. The library behind it panics at some damaged
/// pages: that is such an error too.
pub fn read(path: &Path, columns: &[Column]) -> Result<Vec<Vec<Value>>, String> {
    let read = || read_all(path, columns);
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err("it is damaged: a page cannot be read".into()))
}

fn read_all(path: &Path, columns: &[Column]) -> Result<Vec<Vec<Value>>, String> {
    let file = File::open(path).map_err(said)?;
    let reader = SerializedFileReader::new(file).map_err(said)?;
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None).map_err(said)? {
        let row = row.map_err(said)?;
        let fields: Vec<(&String, &Field)> = row.get_column_iter().collect();
        if fields.len() != columns.len() || fields.iter().zip(columns).any(|(f, c)| f.0 != c.name) {
            return Err("it has other columns".into());
        }
        let values: Result<Vec<Value>, String> = fields
            .iter()
            .zip(columns)
            .map(|((_, field), column)| value(field, column))
            .collect();
        rows.push(values?);
    }
    Ok(rows)
}

fn value(field: &Field, column: &Column) -> Result<Value, String> {
    Ok(match (column.kind, field) {
        (Kind::Price, Field::Null) => Value::Price(None),
        (Kind::Price, Field::Decimal(decimal)) => {
            let bytes = decimal.data();
            let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
            let start = if negative { -1_i64 } else { 0 };
            Value::Price(Some(bytes.iter().fold(start, |sum, b| sum << 8 | i64::from(*b))))
        }
        (Kind::Char | Kind::Symbol, Field::Str(text)) => Value::Text(text.clone()),
        (_, Field::ULong(n)) => Value::Number((*n).into()),
        (_, Field::UInt(n)) => Value::Number((*n).into()),
        (_, Field::UShort(n)) => Value::Number((*n).into()),
        (_, Field::UByte(n)) => Value::Number((*n).into()),
        (_, Field::Int(n)) => Value::Number((*n).into()),
        // Times of this unit come as plain numbers.
        (Kind::Time, Field::Long(n)) => Value::Number((*n as u64).into()),
        (Kind::Signed(64), Field::Long(n)) => Value::Number((*n).into()),
        (_, other) => return Err(format!("{}: {other} is no {:?}", column.name, column.kind)),
    })
}
