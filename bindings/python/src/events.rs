//! The rings as a Python iterator, record by record, and as arrays.

use crate::feed::{Attached, Feed};
use crate::types::{self, BOOK_STATE, EVENT, EVENT_KIND, SIDE, TRADING_STATUS, Trouble, UPDATE};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tickwire_market::{BookUpdate, MarketEvent, Nanos};
use tickwire_shm::{Next, Record, RingCursor};

/// How long the interpreter is left alone before it is asked for signals.
const SLICE: Duration = Duration::from_millis(50);
/// Pause between two looks at the rings.
const PAUSE: Duration = Duration::from_micros(100);

/// Where a reader begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    Now,
    Oldest,
}

impl Start {
    pub(crate) fn parse(text: &str) -> PyResult<Start> {
        match text {
            "now" => Ok(Start::Now),
            "oldest" => Ok(Start::Oldest),
            _ => Err(PyValueError::new_err(format!(
                "start={text:?}: \"now\" or \"oldest\""
            ))),
        }
    }
}

/// Which records are wanted; others are passed over.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) events: bool,
    pub(crate) updates: bool,
}

impl Wanted {
    fn takes(self, record: &Record) -> bool {
        match record {
            Record::Event(..) => self.events,
            Record::Update(..) => self.updates,
        }
    }
}

/// Places in rings of one writer.
pub(crate) struct Cursors {
    generation: Nanos,
    ring: Option<u32>,
    places: Vec<RingCursor>,
    /// Whose turn it is.
    turn: usize,
    /// Records missed so far.
    pub(crate) missed: u64,
}

impl Cursors {
    pub(crate) fn new(attached: &Attached, ring: Option<u32>, start: Start) -> Result<Cursors, Trouble> {
        let reader = attached.reader();
        let rings = reader.layout().rings.count;
        let place = |ring| match start {
            Start::Now => reader.ring(ring),
            Start::Oldest => reader.ring_from_oldest(ring),
        };
        let places: Vec<RingCursor> = match ring {
            Some(ring) => place(ring).into_iter().collect(),
            None => (0..rings).filter_map(place).collect(),
        };
        if let (Some(ring), true) = (ring, places.is_empty()) {
            return Err(Trouble::not_found(format!("no ring {ring}: there are {rings}")));
        }
        Ok(Cursors {
            generation: reader.generation(),
            ring,
            places,
            turn: 0,
            missed: 0,
        })
    }

    /// When another writer took over: says so once, and begins at its oldest records.
    pub(crate) fn follow(&mut self, attached: &Attached) -> Result<(), Trouble> {
        if attached.generation() == self.generation {
            return Ok(());
        }
        *self = Cursors {
            missed: self.missed,
            ..Cursors::new(attached, self.ring, Start::Oldest)?
        };
        let why = "the feed handler was started again: instruments, sources and records are counted anew; read on to get them";
        Err(Trouble::Named("Restarted", why.to_owned()))
    }

    /// The next record of any ring.
    fn next(&mut self, attached: &Attached, wanted: Wanted) -> Next {
        let reader = attached.reader();
        let mut idle = 0;
        while idle < self.places.len() {
            match self.places[self.turn].next(&reader) {
                Next::Record(record) if wanted.takes(&record) => return Next::Record(record),
                Next::Record(_) => idle = 0,
                Next::Missed(count) => {
                    self.missed += count;
                    return Next::Missed(count);
                }
                Next::Empty => {
                    idle += 1;
                    self.turn = (self.turn + 1) % self.places.len();
                }
            }
        }
        Next::Empty
    }

    /// Up to `max` records one after another, as arrays hold them.
    pub(crate) fn fill(&mut self, attached: &Attached, wanted: Wanted, max: usize, bytes: &mut Vec<u8>) {
        let mut left = max;
        while left > 0 {
            match self.next(attached, wanted) {
                Next::Record(Record::Event(source, event)) => put_event(bytes, source, &event),
                Next::Record(Record::Update(source, update)) => put_update(bytes, source, &update),
                Next::Missed(_) => continue,
                Next::Empty => return,
            }
            left -= 1;
        }
    }
}

fn put_event(bytes: &mut Vec<u8>, source: u16, e: &MarketEvent) {
    let small = [e.venue as u8, e.kind as u8, e.side as u8, e.status as u8];
    let words = [
        e.seq.0,
        e.venue_ts.0,
        e.recv_ts.0,
        u64::from(e.instrument.0) | u64::from(u32::from_le_bytes(small)) << 32,
        e.order_id.0,
        e.price.raw() as u64,
        e.qty.0,
        e.ref_id,
        e.ask_price.raw() as u64,
        e.ask_qty.0,
        e.near_price.raw() as u64,
        e.far_price.raw() as u64,
        e.imbalance_qty.0,
        u64::from(e.order_count) | u64::from(e.flags.0) << 32,
        u64::from_le_bytes(e.code),
        source.into(),
    ];
    put(bytes, &words);
}

fn put_update(bytes: &mut Vec<u8>, source: u16, u: &BookUpdate) {
    let small = [u.venue as u8, u.state as u8, u.changed.0, 0];
    let words = [
        u.seq.0,
        u.venue_ts.0,
        u.recv_ts.0,
        u64::from(u.instrument.0) | u64::from(u32::from_le_bytes(small)) << 32,
        u.price[0].raw() as u64,
        u.price[1].raw() as u64,
        u.qty[0].0,
        u.qty[1].0,
        source.into(),
    ];
    put(bytes, &words);
}

fn put(bytes: &mut Vec<u8>, words: &[u64]) {
    words
        .iter()
        .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
}

/// An iterator over records.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Events {
    feed: Py<Feed>,
    cursors: Mutex<Cursors>,
    wanted: Wanted,
    timeout: Option<Duration>,
    raises_missed: bool,
}

impl Events {
    pub(crate) fn new(
        feed: Py<Feed>,
        ring: Option<u32>,
        start: Start,
        wanted: Wanted,
        timeout: Option<f64>,
        on_missed: &str,
    ) -> PyResult<Events> {
        let raises_missed = match on_missed {
            "yield" => false,
            "raise" => true,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "on_missed={on_missed:?}: \"yield\" or \"raise\""
                )));
            }
        };
        let seconds = |seconds: f64| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| PyValueError::new_err(format!("timeout={seconds}: seconds, 0 or more, or None")))
        };
        let timeout = timeout.map(seconds).transpose()?;
        let cursors = feed.get().with(|attached| Cursors::new(attached, ring, start))?;
        Ok(Events {
            feed,
            cursors: Mutex::new(cursors),
            wanted,
            timeout,
            raises_missed,
        })
    }

    /// What comes next, after at most so long. Only when there is nothing is the writer asked for: what it
    /// left is read first.
    fn wait(&self, until: Instant) -> Result<(Next, Option<Arc<str>>), Trouble> {
        loop {
            let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
            let next = self.feed.get().with(|attached| {
                if attached.generation() == cursors.generation {
                    match cursors.next(attached, self.wanted) {
                        Next::Empty => attached.check(false)?,
                        found => {
                            let symbol = symbol_of(attached, &found);
                            return Ok((found, symbol));
                        }
                    }
                }
                cursors.follow(attached)?;
                Ok((Next::Empty, None))
            })?;
            drop(cursors);
            if next.0 != Next::Empty || Instant::now() >= until {
                return Ok(next);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn array(&self, py: Python<'_>, wanted: Wanted, max: usize) -> PyResult<Vec<u8>> {
        let bytes = py.detach(|| {
            let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
            self.feed.get().with(|attached| {
                let mut bytes = Vec::new();
                if attached.generation() == cursors.generation {
                    cursors.fill(attached, wanted, max, &mut bytes);
                }
                if bytes.is_empty() {
                    attached.check(false)?;
                    cursors.follow(attached)?;
                }
                Ok(bytes)
            })
        })?;
        Ok(bytes)
    }
}

#[pymethods]
impl Events {
    fn __iter__(this: Py<Events>) -> Py<Events> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let start = Instant::now();
        loop {
            let left = self
                .timeout
                .map(|timeout| timeout.saturating_sub(start.elapsed()));
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            let (next, symbol) = py.detach(|| self.wait(Instant::now() + slice))?;
            match next {
                Next::Record(Record::Event(source, event)) => {
                    let event = Event {
                        source,
                        symbol,
                        event: Box::new(event),
                    };
                    return Ok(Some(Py::new(py, event)?.into_any()));
                }
                Next::Record(Record::Update(source, update)) => {
                    let update = Update {
                        source,
                        symbol,
                        update: Box::new(update),
                    };
                    return Ok(Some(Py::new(py, update)?.into_any()));
                }
                Next::Missed(count) if self.raises_missed => return Err(Trouble::Missed(count).into()),
                Next::Missed(count) => return types::missed(py, count).map(Some),
                Next::Empty => py.check_signals()?,
            }
            if left.is_some_and(|left| left <= slice) {
                return Ok(None);
            }
        }
    }

    /// Up to `max` market events in one call, without waiting: a read-only array of `EVENT`. Updates on the
    /// way are passed over, missed records counted in `missed`.
    fn events_array(&self, py: Python<'_>, max: usize) -> PyResult<Py<PyAny>> {
        let wanted = Wanted {
            events: true,
            updates: false,
        };
        EVENT.array(py, &self.array(py, wanted, max)?)
    }

    /// Up to `max` updates in one call, without waiting: a read-only array of `UPDATE`. Events on the way are
    /// passed over.
    fn updates_array(&self, py: Python<'_>, max: usize) -> PyResult<Py<PyAny>> {
        let wanted = Wanted {
            events: false,
            updates: true,
        };
        UPDATE.array(py, &self.array(py, wanted, max)?)
    }

    /// Records missed so far.
    #[getter]
    fn missed(&self) -> u64 {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner).missed
    }
}

/// The symbol of a record's instrument.
fn symbol_of(attached: &mut Attached, next: &Next) -> Option<Arc<str>> {
    match next {
        Next::Record(Record::Event(source, event)) => attached.symbol(*source, event.instrument.0),
        Next::Record(Record::Update(source, update)) => attached.symbol(*source, update.instrument.0),
        Next::Missed(_) | Next::Empty => None,
    }
}

/// What a record is about, as it is shown.
fn about(symbol: Option<&Arc<str>>, instrument: u32) -> String {
    match symbol {
        Some(symbol) => symbol.to_string(),
        None => format!("instrument {instrument}"),
    }
}

/// One thing that happened on a market. Which fields carry meaning depends on `kind`.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Event {
    /// The source's number.
    #[pyo3(get)]
    source: u16,
    symbol: Option<Arc<str>>,
    /// On its own: it is aligned to a cache line, and Python aligns objects to 16 bytes.
    event: Box<MarketEvent>,
}

#[pymethods]
impl Event {
    /// The instrument's symbol; None where it has no book.
    #[getter]
    fn symbol(&self) -> Option<&str> {
        self.symbol.as_deref()
    }

    /// What happened.
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        EVENT_KIND.member(py, self.event.kind as u8)
    }

    /// The side.
    #[getter]
    fn side(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        SIDE.member(py, self.event.side as u8)
    }

    /// The trading status, of a STATUS.
    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        TRADING_STATUS.member(py, self.event.status as u8)
    }

    /// The venue's name.
    #[getter]
    fn venue(&self) -> &'static str {
        self.event.venue.name()
    }

    /// Sequence number of its message.
    #[getter]
    fn seq(&self) -> u64 {
        self.event.seq.0
    }

    /// The venue's time, nanoseconds.
    #[getter]
    fn venue_ts(&self) -> u64 {
        self.event.venue_ts.0
    }

    /// When its packet was received, nanoseconds since the epoch.
    #[getter]
    fn recv_ts(&self) -> u64 {
        self.event.recv_ts.0
    }

    /// The instrument's number within its source; 0: the whole feed.
    #[getter]
    fn instrument(&self) -> u32 {
        self.event.instrument.0
    }

    /// The order.
    #[getter]
    fn order_id(&self) -> u64 {
        self.event.order_id.0
    }

    /// The price, in 1e-9.
    #[getter]
    fn price(&self) -> i64 {
        self.event.price.raw()
    }

    /// The quantity.
    #[getter]
    fn qty(&self) -> u64 {
        self.event.qty.0
    }

    /// A second identifier: match number, new order, end of a gap.
    #[getter]
    fn ref_id(&self) -> u64 {
        self.event.ref_id
    }

    /// The ask of a QUOTE.
    #[getter]
    fn ask_price(&self) -> i64 {
        self.event.ask_price.raw()
    }

    /// The ask's size of a QUOTE.
    #[getter]
    fn ask_qty(&self) -> u64 {
        self.event.ask_qty.0
    }

    /// The near indicative price of an IMBALANCE.
    #[getter]
    fn near_price(&self) -> i64 {
        self.event.near_price.raw()
    }

    /// The far indicative price of an IMBALANCE.
    #[getter]
    fn far_price(&self) -> i64 {
        self.event.far_price.raw()
    }

    /// The unpaired quantity of an IMBALANCE.
    #[getter]
    fn imbalance_qty(&self) -> u64 {
        self.event.imbalance_qty.0
    }

    /// How many orders make up a LEVEL.
    #[getter]
    fn order_count(&self) -> u32 {
        self.event.order_count
    }

    /// Conditions, a bit set.
    #[getter]
    fn flags(&self) -> u32 {
        self.event.flags.0
    }

    /// A venue's code: attribution, reason, condition; without its padding.
    #[getter]
    fn code<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let code = &self.event.code;
        let length = code
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |last| last + 1);
        PyBytes::new(py, &code[..length])
    }

    fn __repr__(&self) -> String {
        let e = &self.event;
        let (kind, about, price) = (e.kind, about(self.symbol.as_ref(), e.instrument.0), e.price);
        format!(
            "<Event {} {kind:?} of {about} on {}: {price} x {}>",
            e.seq.0,
            e.venue.name(),
            e.qty.0
        )
    }
}

/// The top of a book after an event.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Update {
    /// The source's number.
    #[pyo3(get)]
    source: u16,
    symbol: Option<Arc<str>>,
    /// On its own, as the event.
    update: Box<BookUpdate>,
}

#[pymethods]
impl Update {
    /// The instrument's symbol; None where it has no book.
    #[getter]
    fn symbol(&self) -> Option<&str> {
        self.symbol.as_deref()
    }

    /// Whether the book can be trusted.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        BOOK_STATE.member(py, self.update.state as u8)
    }

    /// The venue's name.
    #[getter]
    fn venue(&self) -> &'static str {
        self.update.venue.name()
    }

    /// Sequence number of the message that caused it.
    #[getter]
    fn seq(&self) -> u64 {
        self.update.seq.0
    }

    /// The venue's time of that message, nanoseconds.
    #[getter]
    fn venue_ts(&self) -> u64 {
        self.update.venue_ts.0
    }

    /// When its packet was received, nanoseconds since the epoch.
    #[getter]
    fn recv_ts(&self) -> u64 {
        self.update.recv_ts.0
    }

    /// The instrument's number within its source.
    #[getter]
    fn instrument(&self) -> u32 {
        self.update.instrument.0
    }

    /// What changed, a bit set.
    #[getter]
    fn changed(&self) -> u8 {
        self.update.changed.0
    }

    /// Best bid price and quantity, None when there is none.
    #[getter]
    fn bid(&self) -> Option<(i64, u64)> {
        (!self.update.qty[0].is_zero()).then(|| (self.update.price[0].raw(), self.update.qty[0].0))
    }

    /// Best ask price and quantity, None when there is none.
    #[getter]
    fn ask(&self) -> Option<(i64, u64)> {
        (!self.update.qty[1].is_zero()).then(|| (self.update.price[1].raw(), self.update.qty[1].0))
    }

    fn __repr__(&self) -> String {
        let u = &self.update;
        let side = |at: usize| format!("{} x {}", u.price[at], u.qty[at].0);
        format!(
            "<Update {} of {} on {}: {} / {}>",
            u.seq.0,
            about(self.symbol.as_ref(), u.instrument.0),
            u.venue.name(),
            side(0),
            side(1)
        )
    }
}
