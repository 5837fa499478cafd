//! Recordings without a feed handler: books and batches of rows, decoded beside the interpreter.

use crate::book::Book;
use crate::types::Trouble;
use clap::ValueEnum;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tickwire_console::failure::{Code, Failure};
use tickwire_export::Schema;
use tickwire_export::arrow::{CStream, Damage, Prices};
use tickwire_export::reader::{self, Ending, EndingSlot, Next, RecordedBook, Rows, Stream};
use tickwire_export::schema::{Column, Kind};
use tickwire_market::Nanos;
use tickwire_venues::protocol::Protocol;

/// How long a wait lasts before the interpreter may see signals.
const SLICE: Duration = Duration::from_millis(50);

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        let name = match failure.code {
            Code::System => "RecordingError",
            Code::Usage => "ConfigError",
            _ => "TickwireError",
        };
        Trouble::Named(name, failure.message)
    }
}

/// A name out of a list of values, or what there is.
pub(crate) fn value_of<T: ValueEnum>(what: &str, name: &str) -> PyResult<T> {
    T::from_str(name, false).map_err(|_| {
        let known = T::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value);
        let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
        PyValueError::new_err(format!("{what} {name:?}: give one of {}", known.join(", ")))
    })
}

fn prices_of(name: &str) -> PyResult<Prices> {
    match name {
        "decimal" => Ok(Prices::Decimal),
        "int" => Ok(Prices::Integer),
        _ => Err(PyValueError::new_err(format!(
            "prices {name:?}: give \"decimal\" or \"int\" (units of 1e-9)"
        ))),
    }
}

/// A capsule of a stream of Arrow, as the Arrow PyCapsule interface has it.
fn capsule(py: Python<'_>, stream: CStream) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// Files that make one recording, and what of it is wanted. Every call reads them anew.
#[pyclass(frozen, module = "tickwire._native")]
pub(crate) struct Reader {
    inner: reader::Recording,
    keeps_damaged: bool,
}

#[pymethods]
impl Reader {
    #[new]
    #[pyo3(signature = (files, *, symbols, span, date, config, protocol, templates, max_orders, batch_rows, keep_damaged))]
    #[expect(clippy::too_many_arguments, reason = "they are named")]
    fn new(
        files: Vec<PathBuf>,
        symbols: Vec<String>,
        span: (u64, u64),
        date: Option<&str>,
        config: Option<PathBuf>,
        protocol: Option<&str>,
        templates: Vec<PathBuf>,
        max_orders: Option<u32>,
        batch_rows: usize,
        keep_damaged: bool,
    ) -> PyResult<Reader> {
        let mut inner = reader::Recording::open(files)
            .map_err(Trouble::from)?
            .symbols(symbols)
            .between(Nanos(span.0), Nanos(span.1))
            .templates(templates)
            .batch_rows(batch_rows);
        if let Some(date) = date {
            inner = inner.date(date).map_err(Trouble::from)?;
        }
        if let Some(config) = config {
            inner = inner.config(config);
        }
        if let Some(protocol) = protocol {
            inner = inner.protocol(value_of::<Protocol>("protocol", protocol)?);
        }
        if let Some(orders) = max_orders {
            inner = inner.max_orders(orders);
        }
        Ok(Reader {
            inner,
            keeps_damaged: keep_damaged,
        })
    }

    /// The files.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.inner.files().to_vec()
    }

    /// Every state of the books in which the best `levels` of a side, or the trust in the book, changed.
    fn books(&self, levels: usize) -> PyResult<BookIterator> {
        let stream = self.inner.books(levels).map_err(Trouble::from)?;
        Ok(BookIterator(Reading::new(stream, self.keeps_damaged)))
    }

    /// Batches of rows of a schema.
    fn batches(&self, schema: &str, prices: &str) -> PyResult<Batches> {
        let stream = self.inner.rows(value_of::<Schema>("schema", schema)?);
        Ok(Batches {
            reading: Reading::new(stream.map_err(Trouble::from)?, self.keeps_damaged),
            prices: prices_of(prices)?,
        })
    }

    /// A stream of Arrow of a schema; it can be taken once.
    fn arrow(&self, schema: &str, prices: &str) -> PyResult<ArrowStream> {
        let (schema, prices) = (value_of::<Schema>("schema", schema)?, prices_of(prices)?);
        let rows = self.inner.rows(schema).map_err(Trouble::from)?;
        let ending = rows.ending_slot();
        let damage = match self.keeps_damaged {
            true => Damage::IsTheEnd,
            false => Damage::Fails,
        };
        Ok(ArrowStream {
            stream: Mutex::new(Some(CStream::reading(rows, &schema.columns(), prices, damage))),
            ending,
        })
    }
}

/// The names of the schemas.
#[pyfunction]
pub(crate) fn schemas() -> Vec<&'static str> {
    Schema::value_variants()
        .iter()
        .map(|schema| schema.name())
        .collect()
}

fn ending_of(py: Python<'_>, ending: Option<Ending>) -> PyResult<Option<Py<PyDict>>> {
    let Some(ending) = ending else { return Ok(None) };
    let dict = PyDict::new(py);
    dict.set_item("rows", ending.rows)?;
    dict.set_item("marked", ending.marked)?;
    dict.set_item("partial_books", ending.partial)?;
    dict.set_item("fault", ending.fault)?;
    dict.set_item("is_damaged", ending.is_damaged)?;
    dict.set_item("left_out", ending.left_out)?;
    dict.set_item("unknown_symbols", ending.unknown)?;
    Ok(Some(dict.unbind()))
}

/// What is being read, for an iterator of Python.
struct Reading<T> {
    stream: Mutex<Stream<T>>,
    ending: EndingSlot,
    keeps_damaged: bool,
}

impl<T: Send + 'static> Reading<T> {
    fn new(stream: Stream<T>, keeps_damaged: bool) -> Reading<T> {
        Reading {
            ending: stream.ending_slot(),
            stream: Mutex::new(stream),
            keeps_damaged,
        }
    }

    /// The next item; the interpreter is let go while there is none.
    fn next(&self, py: Python<'_>) -> PyResult<Option<T>> {
        // Mostly there are some, and letting the interpreter go costs more than taking one.
        let mut next = match self.stream.try_lock() {
            Ok(mut stream) => stream.next_within(Duration::ZERO),
            Err(_) => Next::Waits,
        };
        loop {
            match next {
                Next::Item(Ok(item)) => return Ok(Some(item)),
                Next::Item(Err(failure)) => return Err(Trouble::from(failure).into()),
                Next::End => return self.end(),
                Next::Waits => {}
            }
            py.check_signals()?;
            next = py.detach(|| {
                let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
                stream.next_within(SLICE)
            });
        }
    }

    fn end(&self) -> PyResult<Option<T>> {
        match self.ending.get() {
            Some(Ending {
                fault: Some(fault),
                is_damaged: true,
                ..
            }) if !self.keeps_damaged => Err(Trouble::Named("Damaged", fault).into()),
            _ => Ok(None),
        }
    }
}

/// The books of a recording, one state after the other.
#[pyclass(frozen, module = "tickwire._native")]
pub(crate) struct BookIterator(Reading<RecordedBook>);

#[pymethods]
impl BookIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Book>> {
        Ok(self.0.next(py)?.map(Book::recorded))
    }

    /// How the recording ended; None before its end.
    #[getter]
    fn ending(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        ending_of(py, self.0.ending.get())
    }
}

/// Batches of rows, one after the other.
#[pyclass(frozen, module = "tickwire._native")]
pub(crate) struct Batches {
    reading: Reading<Rows>,
    prices: Prices,
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let rows = self.reading.next(py)?;
        Ok(rows.map(|rows| Batch::new(rows, self.prices)))
    }

    /// How the recording ended; None before its end.
    #[getter]
    fn ending(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        ending_of(py, self.reading.ending.get())
    }
}

/// A stream of Arrow that is read while it is asked.
#[pyclass(frozen, module = "tickwire._native")]
pub(crate) struct ArrowStream {
    stream: Mutex<Option<CStream>>,
    ending: EndingSlot,
}

#[pymethods]
impl ArrowStream {
    /// Gives the stream away: the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer that cannot cast hands over its own schema, as the interface allows.
        drop(requested_schema);
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        let taken =
            || PyValueError::new_err("the stream was taken already: ask the recording for another one");
        capsule(py, stream.ok_or_else(taken)?)
    }

    /// How the recording ended; None before its end.
    #[getter]
    fn ending(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        ending_of(py, self.ending.get())
    }
}

/// Rows that are in memory, column by column.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Batch {
    rows: Rows,
    prices: Prices,
}

impl Batch {
    pub(crate) fn new(rows: Rows, prices: Prices) -> Batch {
        Batch { rows, prices }
    }

    fn column(&self, name: &str) -> Option<(&Column, &[u64])> {
        let columns = self.rows.batch.columns.iter().zip(&self.rows.batch.words);
        columns
            .map(|(column, words)| (column, words.as_slice()))
            .find(|(column, _)| column.name == name)
    }
}

/// The bytes of a column, each value so many bytes long.
fn narrowed(words: &[u64], bytes: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(words.len() * bytes);
    words
        .iter()
        .for_each(|word| all.extend_from_slice(&word.to_le_bytes()[..bytes]));
    all
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.rows.batch.rows()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        self.rows.batch.columns.iter().map(|column| column.name).collect()
    }

    /// A column as an array: prices in 1e-9, `NO_PRICE` where there is none.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let Some((column, words)) = self.column(name) else {
            let known = self.columns().join(", ");
            return Err(PyKeyError::new_err(format!("{name}: there are {known}")));
        };
        let (dtype, bytes) = match column.kind {
            Kind::Time | Kind::TimeOrNone => ("<M8[ns]", 8),
            Kind::Price | Kind::Signed(64) => ("<i8", 8),
            Kind::Unsigned(8) => ("u1", 1),
            Kind::Unsigned(16) => ("<u2", 2),
            Kind::Unsigned(32) | Kind::Symbol => ("<u4", 4),
            Kind::Unsigned(_) => ("<u8", 8),
            Kind::Signed(_) => ("<i4", 4),
            Kind::Char => ("S1", 1),
        };
        let numpy = py.import("numpy")?;
        let array = numpy.call_method1("frombuffer", (PyBytes::new(py, &narrowed(words, bytes)), dtype))?;
        if column.kind != Kind::Symbol {
            return Ok(array.unbind());
        }
        let symbols = numpy.call_method1("array", (self.rows.symbols.clone(), "U"))?;
        match words.is_empty() {
            true => Ok(symbols.unbind()),
            false => Ok(numpy.call_method1("take", (symbols, array))?.unbind()),
        }
    }

    /// The rows as a stream of one batch: the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let stream = CStream::of(&self.rows, self.prices);
        capsule(py, stream.map_err(PyValueError::new_err)?)
    }

    fn __repr__(&self) -> String {
        let columns = self.rows.batch.columns.len();
        format!("<Batch of {} rows, {columns} columns>", self.rows.batch.rows())
    }
}
