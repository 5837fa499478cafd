//! Sources, counters and latencies as Python objects.

use crate::types::{BOOK_STATE, BUCKET, bytes_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tickwire_market::{Counter, Unit};

/// A channel of a feed, as it was when asked for.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Source {
    /// Its number, as records carry it.
    #[pyo3(get)]
    number: u16,
    /// Its name.
    #[pyo3(get)]
    name: String,
    /// Its feed's name.
    #[pyo3(get)]
    feed: String,
    /// Its feed's number, as shares of a consolidated book carry it.
    #[pyo3(get)]
    feed_number: u8,
    /// Its protocol's name.
    #[pyo3(get)]
    protocol: String,
    /// Its venue's name, None when this version does not know it.
    #[pyo3(get)]
    venue: Option<&'static str>,
    /// The ring its events go to, None when it has none.
    #[pyo3(get)]
    ring: Option<u32>,
    /// Sequence number of the message it waits for.
    #[pyo3(get)]
    next_seq: u64,
    /// When its last packet was received, nanoseconds since the epoch; 0 when there was none.
    #[pyo3(get)]
    last_packet: u64,
    /// Packets received on all lines.
    #[pyo3(get)]
    packets: u64,
    /// Books written.
    #[pyo3(get)]
    updates: u64,
    /// Books that it shows.
    #[pyo3(get)]
    books: u64,
    /// Books not shown because every slot was taken.
    #[pyo3(get)]
    refused: u64,
    state: u8,
}

impl From<tickwire_shm::Source> for Source {
    fn from(source: tickwire_shm::Source) -> Source {
        Source {
            number: source.number,
            name: source.name,
            feed: source.feed_name,
            feed_number: source.feed,
            protocol: source.protocol,
            venue: source.venue.map(|venue| venue.name()),
            ring: source.ring,
            next_seq: source.next_seq.0,
            last_packet: source.last_packet.0,
            packets: source.totals.packets,
            updates: source.totals.updates,
            books: source.totals.books,
            refused: source.totals.refused,
            state: source.state as u8,
        }
    }
}

#[pymethods]
impl Source {
    /// Whether its books can be trusted.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        BOOK_STATE.member(py, self.state)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Source {} {}, {} books, {} packets>",
            self.number, self.name, self.books, self.packets
        )
    }
}

/// A kind of message of a source.
#[pyclass(frozen, get_all, module = "tickwire")]
pub(crate) struct Kind {
    /// The venue's own message type.
    pub(crate) r#type: u16,
    /// Messages of it.
    pub(crate) seen: u64,
    /// Of those, dropped before decoding because nobody subscribed.
    pub(crate) filtered: u64,
    /// Their latency, packet in memory to book visible, None when it is not kept.
    pub(crate) latency: Option<Py<Histogram>>,
}

/// Latencies in nanoseconds; a value is known to about 3 %.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Histogram {
    inner: tickwire_shm::Histogram,
}

impl From<tickwire_shm::Histogram> for Histogram {
    fn from(inner: tickwire_shm::Histogram) -> Histogram {
        Histogram { inner }
    }
}

#[pymethods]
impl Histogram {
    /// How many values.
    #[getter]
    fn count(&self) -> u64 {
        self.inner.count
    }

    /// Their sum.
    #[getter]
    fn sum(&self) -> u64 {
        self.inner.sum
    }

    /// The least, 0 when there is none.
    #[getter]
    fn min(&self) -> u64 {
        self.inner.min
    }

    /// The greatest, 0 when there is none.
    #[getter]
    fn max(&self) -> u64 {
        self.inner.max
    }

    /// The mean, 0.0 when there is none.
    #[getter]
    fn mean(&self) -> f64 {
        if self.inner.count == 0 {
            0.0
        } else {
            self.inner.sum as f64 / self.inner.count as f64
        }
    }

    /// A value that this part of all do not exceed: 0.5 is the median, 0.999 the 99.9th percentile. 0 when
    /// there is none.
    fn quantile(&self, part: f64) -> PyResult<u64> {
        if !(0.0..=1.0).contains(&part) {
            return Err(PyValueError::new_err(format!(
                "{part} is no part of a whole: 0 to 1"
            )));
        }
        Ok(self.inner.at((part * 1e6).round() as u32))
    }

    /// Every bucket that holds something: a read-only array of `BUCKET`.
    fn buckets(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let words = self
            .inner
            .buckets()
            .flat_map(|(least, greatest, count)| [least, greatest, count]);
        BUCKET.array(py, &bytes_of(words))
    }

    fn __repr__(&self) -> String {
        let at = |part| self.inner.at(part);
        let (p50, p99, p999) = (at(500_000), at(990_000), at(999_000));
        format!(
            "<Histogram of {}: p50 {p50} ns, p99 {p99} ns, p99.9 {p999} ns>",
            self.inner.count
        )
    }
}

/// What a counter counts.
#[pyclass(frozen, get_all, module = "tickwire")]
pub(crate) struct CounterInfo {
    /// Stable identifier.
    id: &'static str,
    /// What a heading says.
    label: &'static str,
    /// What is counted: packets, messages, events or bytes.
    unit: &'static str,
    /// One sentence.
    sentence: &'static str,
}

/// The table of counters.
#[pyfunction]
pub(crate) fn counter_table() -> Vec<CounterInfo> {
    let rows = Counter::ALL.iter().map(|counter| counter.spec());
    let info = rows.map(|spec| CounterInfo {
        id: spec.id,
        label: spec.label,
        unit: match spec.unit {
            Unit::Packets => "packets",
            Unit::Messages => "messages",
            Unit::Events => "events",
            Unit::Bytes => "bytes",
        },
        sentence: spec.sentence,
    });
    info.collect()
}
