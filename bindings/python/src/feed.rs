//! The feed handler as a Python object: attaching, following a restart, finding books, reading them.

use crate::book::{Book, SuperBook};
use crate::events::{Cursors, Events, Start, Wanted};
use crate::source::{Histogram, Kind, Source};
use crate::types::{EVENT, Trouble, health};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tickwire_market::{Counters, Nanos, Symbol};
use tickwire_runtime::places;
use tickwire_runtime::shared::{Attachment, Followed, WriterHealth, monotonic};
use tickwire_runtime::users::Owners;
use tickwire_shm::{BookCopy, ReadWord, Reader, SuperCopy};

/// How often the writer is asked for while something is read.
const CHECK_EVERY_NS: u64 = 100 * Nanos::MILLI;
/// How long a slot may stay busy: longer than any write, and than the writer waits for a core.
const PATIENCE: Duration = Duration::from_millis(200);

/// What is known of a region; everything but the attachment is found anew after a restart.
pub(crate) struct Attached {
    attachment: Attachment,
    post_mortem: bool,
    checked: Nanos,
    /// Slots of a symbol, with their sources.
    books: HashMap<String, Vec<(u32, u16)>>,
    supers: HashMap<String, u32>,
    /// Symbols by source and instrument, of this many slots so far.
    symbols: HashMap<(u16, u32), Arc<str>>,
    symbols_of: u32,
    /// Names of sources and of their feeds, by number.
    sources: Vec<Option<(Arc<str>, Arc<str>)>>,
    feeds: Vec<String>,
    book: Box<BookCopy>,
    super_book: Box<SuperCopy>,
}

impl Attached {
    fn new(attachment: Attachment, post_mortem: bool) -> Attached {
        let mut attached = Attached {
            attachment,
            post_mortem,
            checked: Nanos::ZERO,
            books: HashMap::new(),
            supers: HashMap::new(),
            symbols: HashMap::new(),
            symbols_of: 0,
            sources: Vec::new(),
            feeds: Vec::new(),
            book: Box::default(),
            super_book: Box::default(),
        };
        attached.learn();
        attached
    }

    pub(crate) fn reader(&self) -> Reader<'_, ReadWord> {
        self.attachment.reader()
    }

    pub(crate) fn generation(&self) -> Nanos {
        self.reader().generation()
    }

    /// Forgets what belonged to the last writer.
    fn learn(&mut self) {
        self.books.clear();
        self.supers.clear();
        self.symbols.clear();
        self.symbols_of = 0;
        self.name_sources();
    }

    fn name_sources(&mut self) {
        self.sources.clear();
        self.feeds.clear();
        let rows: Vec<_> = self.attachment.reader().sources().collect();
        for row in rows {
            let (number, feed) = (usize::from(row.number), usize::from(row.feed));
            self.sources.resize(self.sources.len().max(number + 1), None);
            self.sources[number] = Some((row.name.into(), row.feed_name.as_str().into()));
            self.feeds.resize(self.feeds.len().max(feed + 1), String::new());
            self.feeds[feed] = row.feed_name;
        }
    }

    /// Asks for the writer, at most ten times a second unless it matters now.
    pub(crate) fn check(&mut self, now: bool) -> Result<(), Trouble> {
        let time = monotonic();
        if !now && time.since(self.checked) < CHECK_EVERY_NS {
            return Ok(());
        }
        match self.attachment.follow()? {
            Followed::Replaced => self.learn(),
            Followed::Same(WriterHealth::Dead) if !self.post_mortem => {
                let why = "the feed handler is gone without a word; Feed(folder, post_mortem=True) shows what it left";
                return Err(Trouble::Named("WriterDead", why.to_owned()));
            }
            Followed::Same(WriterHealth::Ended) if !self.post_mortem => {
                let why = "the feed handler has ended; Feed(folder, post_mortem=True) shows what it left";
                return Err(Trouble::not_running(why));
            }
            Followed::Same(_) => {}
        }
        self.checked = time;
        Ok(())
    }

    /// Takes in the books that were claimed since the last look; what a slot holds never changes.
    fn name_instruments(&mut self) {
        let used = self.reader().books_used();
        if used == self.symbols_of {
            return;
        }
        let reader = self.attachment.reader();
        let claimed = (self.symbols_of..used).map_while(|slot| reader.book_identity(slot));
        let mut named = 0;
        for book in claimed {
            let symbol = book.symbol.as_str().into();
            self.symbols.insert((book.source, book.instrument.0), symbol);
            named += 1;
        }
        self.symbols_of += named;
    }

    /// The symbol of an instrument of a source; `None` where it has no book.
    pub(crate) fn symbol(&mut self, source: u16, instrument: u32) -> Option<Arc<str>> {
        let key = (source, instrument);
        if !self.symbols.contains_key(&key) {
            self.name_instruments();
        }
        self.symbols.get(&key).cloned()
    }

    fn names(&self, source: u16) -> Option<(&Arc<str>, &Arc<str>)> {
        let names = self.sources.get(usize::from(source))?.as_ref()?;
        Some((&names.0, &names.1))
    }

    fn is_called(&self, source: u16, name: &str) -> bool {
        self.names(source)
            .is_some_and(|(own, feed)| &**own == name || &**feed == name)
    }

    /// The slot of a book. Without a source, the symbol must be on one source only.
    fn book_slot(&mut self, symbol: &str, source: Option<&str>) -> Result<u32, Trouble> {
        for found_before in [true, false] {
            if !found_before {
                self.name_sources();
                let wanted = symbol_of(symbol)?;
                let slots = self
                    .reader()
                    .find(wanted)
                    .map(|(slot, book)| (slot, book.source))
                    .collect();
                self.books.insert(symbol.to_owned(), slots);
            }
            let slots = self.books.get(symbol).map_or(&[][..], Vec::as_slice);
            let fits = |number: u16| source.is_none_or(|name| self.is_called(number, name));
            let mut fitting = slots.iter().filter(|(_, number)| fits(*number));
            match (fitting.next(), fitting.next(), source) {
                (Some(_), Some(_), None) => {
                    let names = slots.iter().filter_map(|(_, number)| self.names(*number));
                    let names: Vec<&str> = names.map(|(name, _)| &**name).collect();
                    return Err(Trouble::not_found(format!(
                        "{symbol} is on {}: say which",
                        names.join(", ")
                    )));
                }
                (Some((slot, _)), ..) => return Ok(*slot),
                _ => {}
            }
        }
        let place = source.map_or(String::new(), |name| format!(" on {name}"));
        Err(Trouble::not_found(format!(
            "no book of {symbol}{place}; is it subscribed?"
        )))
    }

    fn super_slot(&mut self, symbol: &str) -> Result<u32, Trouble> {
        if let Some(slot) = self.supers.get(symbol) {
            return Ok(*slot);
        }
        let missing = || {
            Trouble::not_found(format!(
                "no consolidated book of {symbol}; is it subscribed, and are consolidated books on?"
            ))
        };
        let slot = self.reader().find_super(symbol_of(symbol)?).ok_or_else(missing)?;
        self.supers.insert(symbol.to_owned(), slot);
        Ok(slot)
    }

    /// Numbers of the sources of this name, or of the feed of this name; all of them without one.
    fn numbers(&self, name: Option<&str>) -> Result<Vec<u16>, Trouble> {
        let reader = self.reader();
        let fits = |source: &tickwire_shm::Source| {
            name.is_none_or(|name| source.name == name || source.feed_name == name)
        };
        let numbers: Vec<u16> = reader
            .sources()
            .filter(fits)
            .map(|source| source.number)
            .collect();
        match name {
            Some(name) if numbers.is_empty() => {
                Err(Trouble::not_found(format!("no source or feed is called {name}")))
            }
            _ => Ok(numbers),
        }
    }
}

fn symbol_of(text: &str) -> Result<Symbol, Trouble> {
    Symbol::new(text.as_bytes())
        .ok_or_else(|| Trouble::not_found(format!("{text:?} is no symbol: at most 23 ASCII characters")))
}

/// The feed handler of a folder. Close it, or use it in a `with` statement.
#[pyclass(frozen, module = "tickwire")]
pub(crate) struct Feed {
    /// The folder.
    #[pyo3(get)]
    folder: PathBuf,
    attached: Mutex<Option<Attached>>,
    arrays: Mutex<Option<Cursors>>,
}

impl Feed {
    /// Does something with the region. Nothing in `work` may run Python code.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut Attached) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        work(attached.as_mut().ok_or(Trouble::Closed)?)
    }

    /// As [`Feed::with`], after a look at the writer.
    fn with_live<T>(&self, work: impl FnOnce(&mut Attached) -> Result<T, Trouble>) -> Result<T, Trouble> {
        self.with(|attached| {
            attached.check(false)?;
            work(attached)
        })
    }

    /// Reads until it is not busy, at first without letting go of the interpreter.
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl Fn(&mut Attached) -> Result<Option<T>, Trouble> + Sync,
    ) -> Result<T, Trouble> {
        if let Some(found) = self.with_live(&read)? {
            return Ok(found);
        }
        py.detach(|| {
            let start = Instant::now();
            loop {
                if let Some(found) = self.with(&read)? {
                    return Ok(found);
                }
                if start.elapsed() > PATIENCE {
                    self.with(|attached| attached.check(true))?;
                    return Err(Trouble::Named(
                        "Busy",
                        "the book stays half written; is the feed handler stopped?".to_owned(),
                    ));
                }
                std::thread::sleep(Duration::from_micros(50));
            }
        })
    }
}

#[pymethods]
impl Feed {
    /// Attaches to the feed handler of `folder`: by default the one that TICKWIRE_FOLDER names, else
    /// `tickwire` in XDG_RUNTIME_DIR or /run/tickwire, whichever has a region. It must be of our own user or
    /// root, or of `owner` (by default TICKWIRE_OWNER), a name or number in text. With `post_mortem`, what a
    /// writer left behind can be read, too.
    #[new]
    #[pyo3(signature = (folder=None, *, post_mortem=false, owner=None))]
    fn new(folder: Option<PathBuf>, post_mortem: bool, owner: Option<&str>) -> PyResult<Feed> {
        let folder = places::reader_folder(folder);
        let owners = Owners::named(owner).map_err(Trouble::other)?;
        let attachment = Attachment::attach_of(&folder, owners).map_err(Trouble::from)?;
        let mut attached = Attached::new(attachment, post_mortem);
        attached.check(true)?;
        Ok(Feed {
            folder,
            attached: Mutex::new(Some(attached)),
            arrays: Mutex::new(None),
        })
    }

    fn __enter__(this: Py<Feed>) -> Py<Feed> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    /// Ends the mapping; what was read stays. Closing twice does nothing.
    fn close(&self) {
        *self.attached.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How the feed handler is, asked for now.
    #[getter]
    fn health(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let found = self.with(|attached| Ok(attached.attachment.health()))?;
        let name = match found {
            WriterHealth::Alive => "alive",
            WriterHealth::Silent { .. } => "silent",
            WriterHealth::Ended => "ended",
            WriterHealth::Dead => "dead",
        };
        health(py, name)
    }

    /// Attaches anew if the feed handler was started again, and says whether it was. Every call does so by
    /// itself, within a tenth of a second.
    fn refresh(&self) -> PyResult<bool> {
        Ok(self.with(|attached| {
            let before = attached.generation();
            attached.check(true)?;
            Ok(attached.generation() != before)
        })?)
    }

    /// When this writer's region was made, nanoseconds since the epoch: another after a restart.
    #[getter]
    fn generation(&self) -> PyResult<u64> {
        Ok(self.with(|attached| Ok(attached.generation().0))?)
    }

    /// The writer's process id.
    #[getter]
    fn pid(&self) -> PyResult<u32> {
        Ok(self.with(|attached| Ok(attached.reader().pid()))?)
    }

    /// Levels per side that a book shows at most.
    #[getter]
    fn book_levels(&self) -> PyResult<u32> {
        Ok(self.with(|attached| Ok(attached.reader().layout().config.book_levels))?)
    }

    /// Shares per side that a consolidated book shows at most.
    #[getter]
    fn super_shares(&self) -> PyResult<u32> {
        Ok(self.with(|attached| Ok(attached.reader().layout().config.super_shares))?)
    }

    /// Records that a ring holds; a reader that falls behind by more misses some.
    #[getter]
    fn ring_records(&self) -> PyResult<u32> {
        Ok(self.with(|attached| Ok(attached.reader().layout().config.ring_records))?)
    }

    /// How many rings there are: one per feed thread that has one.
    #[getter]
    fn rings(&self) -> PyResult<u32> {
        Ok(self.with(|attached| Ok(attached.reader().layout().rings.count))?)
    }

    /// Every source.
    fn sources(&self) -> PyResult<Vec<Source>> {
        Ok(self.with_live(|attached| Ok(attached.reader().sources().map(Source::from).collect()))?)
    }

    /// Every book: symbol and source.
    fn books(&self) -> PyResult<Vec<(String, String)>> {
        Ok(self.with_live(|attached| {
            attached.name_sources();
            let reader = attached.reader();
            let name = |source: u16| {
                attached
                    .names(source)
                    .map_or(String::new(), |(name, _)| (**name).to_owned())
            };
            Ok(reader
                .books()
                .map(|(_, book)| (book.symbol.as_str().to_owned(), name(book.source)))
                .collect())
        })?)
    }

    /// Symbols of every consolidated book.
    fn super_symbols(&self) -> PyResult<Vec<String>> {
        Ok(self.with_live(|attached| {
            Ok(attached
                .reader()
                .supers()
                .map(|(_, symbol)| symbol.as_str().to_owned())
                .collect())
        })?)
    }

    /// The symbol of every instrument that has a book, by the source's number and the instrument's, as arrays
    /// of events have them.
    fn symbols(&self) -> PyResult<HashMap<(u16, u32), String>> {
        Ok(self.with_live(|attached| {
            attached.name_instruments();
            let named = attached.symbols.iter();
            Ok(named.map(|(key, symbol)| (*key, symbol.to_string())).collect())
        })?)
    }

    /// The book of `symbol` on the source, or the feed, called `source`; needed only when several have it.
    /// With `live`, `Stale` is raised when it cannot be trusted.
    #[pyo3(signature = (symbol, source=None, *, live=false))]
    fn book(&self, py: Python<'_>, symbol: &str, source: Option<&str>, live: bool) -> PyResult<Book> {
        let book = self.read(py, |attached| {
            let slot = attached.book_slot(symbol, source)?;
            let reader = attached.attachment.reader();
            if reader.read_book(slot, &mut attached.book).is_err() {
                return Ok(None);
            }
            let name = attached
                .names(attached.book.source)
                .map_or_else(|| "".into(), |(name, _)| name.clone());
            Ok(Some(Book::new(symbol_of(symbol)?, name, &attached.book)))
        })?;
        if live && !book.is_trusted() {
            return Err(Trouble::Named("Stale", book.complaint()).into());
        }
        Ok(book)
    }

    /// The books of `symbol` on all feeds, merged.
    fn super_book(&self, py: Python<'_>, symbol: &str) -> PyResult<SuperBook> {
        Ok(self.read(py, |attached| {
            let slot = attached.super_slot(symbol)?;
            let reader = attached.attachment.reader();
            if reader.read_super(slot, &mut attached.super_book).is_err() {
                return Ok(None);
            }
            let used = attached.super_book.feeds | attached.super_book.stale;
            if (u32::BITS - used.leading_zeros()) as usize > attached.feeds.len() {
                attached.name_sources();
            }
            Ok(Some(SuperBook::new(
                symbol_of(symbol)?,
                &attached.feeds,
                &attached.super_book,
            )))
        })?)
    }

    /// Counters by identifier: of a source, of a feed, or of everything. `counter_table()` says what each
    /// means.
    #[pyo3(signature = (source=None))]
    fn counters<'py>(&self, py: Python<'py>, source: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        let sum = self.with_live(|attached| {
            let mut sum = Counters::default();
            for number in attached.numbers(source)? {
                sum.merge(&attached.reader().counters(number).map_err(Trouble::other)?);
            }
            Ok(sum)
        })?;
        let counters = PyDict::new(py);
        for (counter, value) in sum.iter() {
            counters.set_item(counter.spec().id, value)?;
        }
        Ok(counters)
    }

    /// Kinds of message by the venue's own type: of a source, or of a feed.
    fn kinds(&self, py: Python<'_>, source: &str) -> PyResult<Vec<Kind>> {
        let kinds = self.with_live(|attached| {
            let reader = attached.reader();
            let mut kinds: BTreeMap<u16, (u64, u64, Option<tickwire_shm::Histogram>)> = BTreeMap::new();
            for kind in attached
                .numbers(Some(source))?
                .into_iter()
                .flat_map(|number| reader.kinds(number))
            {
                let (seen, filtered, latency) = kinds.entry(kind.kind).or_default();
                (*seen, *filtered) = (*seen + kind.seen, *filtered + kind.filtered);
                if let Some(one) = kind.latency.and_then(|index| reader.histogram(index)) {
                    latency.get_or_insert_default().add(&one);
                }
            }
            Ok(kinds)
        })?;
        let object =
            |(r#type, (seen, filtered, latency)): (u16, (u64, u64, Option<tickwire_shm::Histogram>))| {
                let latency = latency
                    .map(|latency| Py::new(py, Histogram::from(latency)))
                    .transpose()?;
                Ok(Kind {
                    r#type,
                    seen,
                    filtered,
                    latency,
                })
            };
        kinds.into_iter().map(object).collect()
    }

    /// Latency from packet in memory to book visible: of a source, of a feed, or of everything. With
    /// `super_book`, to super book visible.
    #[pyo3(signature = (source=None, *, super_book=false))]
    fn latency(&self, source: Option<&str>, super_book: bool) -> PyResult<Histogram> {
        let sum = self.with_live(|attached| {
            let reader = attached.reader();
            let mut sum = tickwire_shm::Histogram::default();
            for row in attached
                .numbers(source)?
                .into_iter()
                .filter_map(|number| reader.source(number))
            {
                let index = if super_book {
                    row.super_latency
                } else {
                    row.latency
                };
                if let Some(one) = index.and_then(|index| reader.histogram(index)) {
                    sum.add(&one);
                }
            }
            Ok(sum)
        })?;
        Ok(sum.into())
    }

    /// Records as they come: iterate over it. `ring` None: all of them in turn. `start` is "now" or "oldest".
    /// `timeout` is how many seconds without a record end the iteration, None for ever. Records written over
    /// before they were read are a `Missed`: yielded, or with `on_missed="raise"` raised.
    #[pyo3(signature = (ring=None, *, start="now", events=true, updates=true, timeout=None, on_missed="yield"))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python method")]
    fn events(
        this: Py<Feed>,
        ring: Option<u32>,
        start: &str,
        events: bool,
        updates: bool,
        timeout: Option<f64>,
        on_missed: &str,
    ) -> PyResult<Events> {
        Events::new(
            this,
            ring,
            Start::parse(start)?,
            Wanted { events, updates },
            timeout,
            on_missed,
        )
    }

    /// Up to `max` market events in one call, without waiting: a read-only array of `EVENT`, empty when
    /// nothing is new. The first call begins at the oldest record of every ring, each further one where the
    /// last ended. `missed` counts what was lost.
    fn events_array(&self, py: Python<'_>, max: usize) -> PyResult<Py<PyAny>> {
        let wanted = Wanted {
            events: true,
            updates: false,
        };
        let bytes = py.detach(|| {
            let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
            self.with_live(|attached| {
                let cursors = match &mut *arrays {
                    Some(cursors) => cursors,
                    none => none.insert(Cursors::new(attached, None, Start::Oldest)?),
                };
                cursors.follow(attached)?;
                let mut bytes = Vec::new();
                cursors.fill(attached, wanted, max, &mut bytes);
                Ok(bytes)
            })
        })?;
        EVENT.array(py, &bytes)
    }

    /// Records that `events_array` missed so far.
    #[getter]
    fn missed(&self) -> u64 {
        let arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        arrays.as_ref().map_or(0, |cursors| cursors.missed)
    }

    fn __repr__(&self) -> String {
        format!("<Feed {}>", self.folder.display())
    }
}
