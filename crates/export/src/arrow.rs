//! Arrow: rows as record batches, handed over by the C stream interface, or written as an IPC file.
//!
//! Times are `timestamp[ns]` in UTC without the mark of a zone, as in Parquet; prices `decimal128(18, 9)` or
//! [whole numbers of 1e-9](Prices::Integer), null where there is none; numbers of their width; characters and
//! symbols `string`. Specification: "The Arrow C stream interface", "Arrow Columnar Format", 1.5.
//!
//! Nothing of the crates behind it is in a type here.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    Decimal128Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Int32Array, Int64Array, RecordBatch, RecordBatchReader,
    TimestampNanosecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema, SchemaRef, TimeUnit};

use crate::batch::{Batch, Names, Value};
use crate::reader::{Rows, Stream};
use crate::schema::{Column, Kind, NO_PRICE, NO_TIME};

/// Digits of a price, of them behind the point.
const DIGITS: (u8, i8) = (18, 9);
/// The largest price, in 1e-9, that 18 digits hold.
const PRICE_MAX: i64 = 999_999_999_999_999_999;

/// What prices are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Prices {
    /// `decimal128(18, 9)`, in units of the currency.
    #[default]
    Decimal,
    /// `int64`, in units of 1e-9 of the currency; the field's metadata has `scale` 9.
    Integer,
}

/// How a stream ends whose recording is damaged.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Damage {
    /// With an error, after the rows before it.
    #[default]
    Fails,
    /// As if the recording ended there; [`crate::reader::Ending`] says so.
    IsTheEnd,
}

fn said(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn type_of(kind: Kind, prices: Prices) -> DataType {
    match kind {
        Kind::Time | Kind::TimeOrNone => DataType::Timestamp(TimeUnit::Nanosecond, None),
        Kind::Price if prices == Prices::Integer => DataType::Int64,
        Kind::Price => DataType::Decimal128(DIGITS.0, DIGITS.1),
        Kind::Unsigned(8) => DataType::UInt8,
        Kind::Unsigned(16) => DataType::UInt16,
        Kind::Unsigned(32) => DataType::UInt32,
        Kind::Unsigned(_) => DataType::UInt64,
        Kind::Signed(32) => DataType::Int32,
        Kind::Signed(_) => DataType::Int64,
        Kind::Char | Kind::Symbol => DataType::Utf8,
    }
}

fn schema_of(columns: &[Column], prices: Prices) -> SchemaRef {
    let fields = columns.iter().map(|column| {
        let field = Field::new(
            column.name,
            type_of(column.kind, prices),
            matches!(column.kind, Kind::Price | Kind::TimeOrNone),
        );
        match (column.kind, prices) {
            (Kind::Price, Prices::Integer) => {
                field.with_metadata(HashMap::from([("scale".to_string(), "9".to_string())]))
            }
            _ => field,
        }
    });
    Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()))
}

/// One column. `text` says what a word of [`Kind::Symbol`] stands for.
fn array_of(
    column: &Column,
    words: &[u64],
    prices: Prices,
    text: &mut dyn FnMut(u64) -> String,
) -> Result<ArrayRef, String> {
    let narrow = || words.iter().map(|word| *word as i64);
    Ok(match column.kind {
        Kind::Time => {
            if let Some(late) = words.iter().find(|word| i64::try_from(**word).is_err()) {
                return Err(format!(
                    "{}: {late} ns lies beyond the year 2262, where times of Arrow end",
                    column.name
                ));
            }
            Arc::new(TimestampNanosecondArray::from_iter_values(narrow()))
        }
        Kind::TimeOrNone => {
            let known = words
                .iter()
                .map(|word| (*word != NO_TIME).then(|| i64::try_from(*word).unwrap_or(i64::MAX)));
            Arc::new(TimestampNanosecondArray::from_iter(known))
        }
        Kind::Price => {
            let known = words
                .iter()
                .map(|word| (*word != NO_PRICE).then_some(*word as i64));
            if prices == Prices::Integer {
                return Ok(Arc::new(Int64Array::from_iter(known)));
            }
            if let Some(large) = known
                .clone()
                .flatten()
                .find(|price| price.unsigned_abs() > PRICE_MAX as u64)
            {
                return Err(format!(
                    "{}: {large} in 1e-9 has more than the 18 digits of its decimal; take prices as integers",
                    column.name
                ));
            }
            let decimals = Decimal128Array::from_iter(known.map(|price| price.map(i128::from)));
            Arc::new(
                decimals
                    .with_precision_and_scale(DIGITS.0, DIGITS.1)
                    .map_err(said)?,
            )
        }
        Kind::Unsigned(8) => Arc::new(UInt8Array::from_iter_values(words.iter().map(|w| *w as u8))),
        Kind::Unsigned(16) => Arc::new(UInt16Array::from_iter_values(words.iter().map(|w| *w as u16))),
        Kind::Unsigned(32) => Arc::new(UInt32Array::from_iter_values(words.iter().map(|w| *w as u32))),
        Kind::Unsigned(_) => Arc::new(UInt64Array::from_iter_values(words.iter().copied())),
        Kind::Signed(32) => Arc::new(Int32Array::from_iter_values(words.iter().map(|w| *w as i32))),
        Kind::Signed(_) => Arc::new(Int64Array::from_iter_values(narrow())),
        Kind::Char => {
            let mut all = StringBuilder::with_capacity(words.len(), words.len());
            for word in words {
                all.append_value(char::from(*word as u8).encode_utf8(&mut [0; 4]));
            }
            Arc::new(all.finish())
        }
        Kind::Symbol => {
            let mut all = StringBuilder::with_capacity(words.len(), words.len() * 5);
            let mut last: Option<(u64, String)> = None;
            for word in words {
                let shown = match last.take() {
                    Some((before, shown)) if before == *word => shown,
                    _ => text(*word),
                };
                all.append_value(&shown);
                last = Some((*word, shown));
            }
            Arc::new(all.finish())
        }
    })
}

fn batch_of(
    batch: &Batch,
    schema: &SchemaRef,
    prices: Prices,
    text: &mut dyn FnMut(u64) -> String,
) -> Result<RecordBatch, String> {
    let columns = batch.columns.iter().zip(&batch.words);
    let arrays = columns.map(|(column, words)| array_of(column, words, prices, text));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    RecordBatch::try_new(schema.clone(), arrays).map_err(said)
}

/// `struct ArrowArrayStream` of the Arrow C stream interface, with its layout: who gets it by address takes
/// it over as that interface says, and it is released when it is dropped otherwise.
#[repr(transparent)]
#[derive(Debug)]
pub struct CStream(FFI_ArrowArrayStream);

impl CStream {
    /// Rows that are read while the stream is asked for them. `columns` are those of the rows.
    pub fn reading(rows: Stream<Rows>, columns: &[Column], prices: Prices, damage: Damage) -> CStream {
        let schema = schema_of(columns, prices);
        CStream(FFI_ArrowArrayStream::new(Box::new(Reader {
            rows,
            schema,
            prices,
            damage,
            is_over: false,
        })))
    }

    /// Rows that are there already, as one batch.
    ///
    /// # Errors
    /// A time beyond the year 2262, a price of more than 18 digits as a decimal.
    pub fn of(rows: &Rows, prices: Prices) -> Result<CStream, String> {
        let schema = schema_of(&rows.batch.columns, prices);
        let batch = in_batch(rows, &schema, prices)?;
        let all = arrow_array::RecordBatchIterator::new([Ok(batch)], schema);
        Ok(CStream(FFI_ArrowArrayStream::new(Box::new(all))))
    }
}

fn in_batch(rows: &Rows, schema: &SchemaRef, prices: Prices) -> Result<RecordBatch, String> {
    let text = |word: u64| rows.symbols.get(word as usize).cloned().unwrap_or_default();
    batch_of(&rows.batch, schema, prices, &mut { text })
}

/// Record batches of what is being read.
struct Reader {
    rows: Stream<Rows>,
    schema: SchemaRef,
    prices: Prices,
    damage: Damage,
    is_over: bool,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let wrong = |e: String| ArrowError::ExternalError(e.into());
        match self.rows.next() {
            Some(Ok(rows)) => Some(in_batch(&rows, &self.schema, self.prices).map_err(wrong)),
            Some(Err(failure)) => {
                self.is_over = true;
                Some(Err(wrong(failure.message)))
            }
            None => {
                self.is_over = true;
                let ending = self.rows.ending()?;
                let fails = ending.is_damaged && self.damage == Damage::Fails;
                fails.then(|| Err(wrong(ending.fault.unwrap_or_default())))
            }
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// An IPC file that is being written.
pub(crate) struct Ipc<W: Write> {
    file: FileWriter<W>,
    schema: SchemaRef,
}

impl<W: Write> Ipc<W> {
    pub(crate) fn new(out: W, columns: &[Column]) -> Result<Ipc<W>, String> {
        let schema = schema_of(columns, Prices::Decimal);
        let file = FileWriter::try_new(out, &schema).map_err(said)?;
        Ok(Ipc { file, schema })
    }

    pub(crate) fn rows(&mut self, batch: &Batch, names: &Names) -> Result<(), String> {
        let mut text = |word: u64| names.text(word);
        let batch = batch_of(batch, &self.schema, Prices::Decimal, &mut text)?;
        self.file.write(&batch).map_err(said)
    }

    pub(crate) fn finish(mut self) -> Result<(), String> {
        self.file.finish().map_err(said)?;
        self.file.get_mut().flush().map_err(said)
    }
}

/// Reads an IPC file back: its columns are those of a schema, its rows values.
///
/// # Errors
/// What is wrong with the file, or that it has other columns. The library behind it panics at some damaged
/// batches: that is such an error too.
pub fn read(path: &Path, columns: &[Column]) -> Result<Vec<Vec<Value>>, String> {
    let read = || read_all(path, columns);
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err("it is damaged: a batch cannot be read".into()))
}

fn read_all(path: &Path, columns: &[Column]) -> Result<Vec<Vec<Value>>, String> {
    let file = File::open(path).map_err(said)?;
    let reader = FileReader::try_new(BufReader::new(file), None).map_err(said)?;
    let expected = schema_of(columns, Prices::Decimal);
    if reader.schema().fields() != expected.fields() {
        return Err("it has other columns".into());
    }
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.map_err(said)?;
        let values = columns.iter().zip(batch.columns());
        let values: Vec<Vec<Value>> = values
            .map(|(column, array)| values_of(column, array))
            .collect::<Result<_, _>>()?;
        let mut each: Vec<_> = values.into_iter().map(Vec::into_iter).collect();
        for _ in 0..batch.num_rows() {
            rows.push(each.iter_mut().filter_map(Iterator::next).collect());
        }
    }
    Ok(rows)
}

fn values_of(column: &Column, array: &ArrayRef) -> Result<Vec<Value>, String> {
    if column.kind != Kind::Price && array.null_count() > 0 {
        return Err(format!("{}: there are rows without a value", column.name));
    }
    let numbers = |all: &mut dyn Iterator<Item = i128>| all.map(Value::Number).collect();
    Ok(match column.kind {
        Kind::Price => {
            let prices = array.as_primitive::<Decimal128Type>().iter();
            let price = |price: Option<i128>| {
                let price = price.map(i64::try_from).transpose();
                price
                    .map(Value::Price)
                    .map_err(|_| format!("{}: no price", column.name))
            };
            prices.map(price).collect::<Result<_, _>>()?
        }
        Kind::Time | Kind::TimeOrNone => {
            let times = array.as_primitive::<TimestampNanosecondType>().values();
            numbers(&mut times.iter().map(|n| i128::from(*n as u64)))
        }
        Kind::Unsigned(8) => numbers(
            &mut array
                .as_primitive::<UInt8Type>()
                .values()
                .iter()
                .map(|n| (*n).into()),
        ),
        Kind::Unsigned(16) => numbers(
            &mut array
                .as_primitive::<UInt16Type>()
                .values()
                .iter()
                .map(|n| (*n).into()),
        ),
        Kind::Unsigned(32) => numbers(
            &mut array
                .as_primitive::<UInt32Type>()
                .values()
                .iter()
                .map(|n| (*n).into()),
        ),
        Kind::Unsigned(_) => numbers(
            &mut array
                .as_primitive::<UInt64Type>()
                .values()
                .iter()
                .map(|n| (*n).into()),
        ),
        Kind::Signed(32) => numbers(
            &mut array
                .as_primitive::<Int32Type>()
                .values()
                .iter()
                .map(|n| (*n).into()),
        ),
        Kind::Signed(_) => numbers(
            &mut array
                .as_primitive::<Int64Type>()
                .values()
                .iter()
                .map(|n| (*n).into()),
        ),
        Kind::Char | Kind::Symbol => {
            let texts = array.as_string::<i32>().iter();
            texts
                .map(|text| Value::Text(text.unwrap_or_default().into()))
                .collect()
        }
    })
}
