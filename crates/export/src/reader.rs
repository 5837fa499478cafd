//! Recordings read by a program of one's own: books one after the other, or rows in batches.
//!
//! ```text
//! a thread:  files ─► [`tickwire_replay::replay::feed`]: channels, books ─► books or rows ─► bounded queue
//! the caller:                                                                [`Stream`] ◄───────┘
//! ```
//! Memory stays flat: the thread that reads waits while [`QUEUE`] batches wait to be taken. Who drops a
//! [`Stream`] ends its thread. No signal is caught and nothing is printed.
//!
//! ```
//! use tickwire_export::Schema;
//! use tickwire_export::reader::Recording;
//!
//! let folder = std::env::temp_dir();
//! let path = folder.join(format!("AAPL_reader_{}_message_10.csv", std::process::id()));
//! std::fs::write(&path, "34200.1,1,1,100,5853300,1\n34200.2,3,1,100,5853300,1\n")?;
//!
//! let day = Recording::open([&path])?.date("2012-06-21")?;
//! let mut books = day.books(10)?;
//! let first = books.next().expect("a book")?;
//! assert_eq!((&*first.symbol, first.sides[0][0].price.raw()), ("AAPL", 585_330_000_000));
//! assert!(books.next().expect("a book")?.sides[0].is_empty());
//! assert!(books.next().is_none());
//! assert_eq!(books.ending().map(|end| (end.rows, end.fault)), Some((2, None)));
//!
//! let rows: usize = day.rows(Schema::Mbo)?.map(|batch| batch.map_or(0, |b| b.batch.rows())).sum();
//! assert_eq!(rows, 2);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tickwire_console::failure::Failure;
use tickwire_market::{Nanos, Symbol};
use tickwire_runtime::signal::StopFlag;
use tickwire_venues::protocol::Protocol;

use crate::batch::{Batch, Names, Value, value_of};
use crate::looks::{Looking, Watch};
use crate::out::Out;
use crate::schema::{Kind, Schema};
use crate::{RecordingArgs, fill};

pub use crate::looks::RecordedBook;

/// Batches that wait to be taken; when there are so many, the thread that reads waits.
pub const QUEUE: usize = 2;
/// Rows of a batch, unless [`Recording::batch_rows`] says otherwise: 20 MB of `mbp-10`.
pub const ROWS_DEFAULT: usize = 1 << 15;
/// The most rows that a batch can have.
pub const ROWS_MAX: usize = 1 << 22;
/// Books that are handed over at once.
const BOOKS: usize = 256;

/// Files that make one recording, and what of it is wanted. Nothing is read until [`Recording::books`] or
/// [`Recording::rows`]; each of these reads the files anew.
#[derive(Clone, Debug)]
pub struct Recording {
    files: Vec<PathBuf>,
    symbols: Vec<String>,
    span: [u64; 2],
    date: Option<jiff::civil::Date>,
    how: RecordingArgs,
    rows: usize,
}

impl Recording {
    /// Captures (pcap, pcapng), raw ITCH 5.0 files, DBN files of mbo, LOBSTER message files, or archives of
    /// events; gzip and zstd are recognised.
    ///
    /// # Errors
    /// No file, or one that is not there or may not be read.
    pub fn open<P: Into<PathBuf>>(files: impl IntoIterator<Item = P>) -> Result<Recording, Failure> {
        let files: Vec<PathBuf> = files.into_iter().map(Into::into).collect();
        if files.is_empty() {
            return Err(Failure::config("give at least one file"));
        }
        for path in &files {
            std::fs::File::open(path)
                .and_then(|file| file.metadata())
                .map_err(|e| e.to_string())
                .and_then(|about| match about.is_dir() {
                    true => Err("it is a folder; give the files in it".into()),
                    false => Ok(()),
                })
                .map_err(|e| Failure::system(format!("cannot read {}: {e}", path.display())))?;
        }
        Ok(Recording {
            files,
            symbols: Vec::new(),
            span: [0, u64::MAX],
            date: None,
            how: RecordingArgs::default(),
            rows: ROWS_DEFAULT,
        })
    }

    /// Only these symbols; without any, all of them. The rest is dropped on its first bytes.
    #[must_use]
    pub fn symbols<S: Into<String>>(mut self, symbols: impl IntoIterator<Item = S>) -> Recording {
        self.symbols = symbols.into_iter().map(Into::into).collect();
        self
    }

    /// Only what was received from `from` on, and before `to`. Books are kept from the recording's beginning.
    #[must_use]
    pub fn between(mut self, from: Nanos, to: Nanos) -> Recording {
        self.span = [from.0, to.0];
        self
    }

    /// The day, in the venue's time zone, of files whose times have none (ITCH, LOBSTER): `2026-01-05`.
    ///
    /// # Errors
    /// It is no date.
    pub fn date(mut self, date: &str) -> Result<Recording, Failure> {
        self.date = Some(crate::date(date).map_err(Failure::config)?);
        Ok(self)
    }

    /// Feeds by group and port, from a configuration, instead of finding them out.
    #[must_use]
    pub fn config(mut self, path: impl Into<PathBuf>) -> Recording {
        self.how.config = Some(path.into());
        self
    }

    /// What the payloads are, where they would not be recognised.
    #[must_use]
    pub fn protocol(mut self, protocol: Protocol) -> Recording {
        self.how.protocol = Some(protocol);
        self
    }

    /// FAST template files of MOEX, or `builtin`.
    #[must_use]
    pub fn templates<P: Into<PathBuf>>(mut self, templates: impl IntoIterator<Item = P>) -> Recording {
        self.how.templates = templates.into_iter().map(Into::into).collect();
        self
    }

    /// Live orders of one channel to make room for, where the recording needs more than 4,194,304.
    #[must_use]
    pub fn max_orders(mut self, orders: u32) -> Recording {
        self.how.max_orders = Some(orders);
        self
    }

    /// Rows of a batch, from 1 to [`ROWS_MAX`].
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Recording {
        self.rows = rows.clamp(1, ROWS_MAX);
        self
    }

    /// The files.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Every state of the books in which the best `levels` of a side, or the trust in the book, differ from
    /// the state before, in the order of the recording. On feeds that tell groups (CME, MOEX, NYSE) a book
    /// is given at the end of its group, and not in the middle of a match.
    ///
    /// # Errors
    /// `levels` is 0, or no thread can be started. What is wrong with the files comes out of the iterator.
    pub fn books(&self, levels: usize) -> Result<Stream<RecordedBook>, Failure> {
        if levels == 0 {
            return Err(Failure::config("give at least one level of a side"));
        }
        let recording = self.clone();
        Stream::begin("tickwire-books", move |sender, stop| {
            let watch = Watch {
                levels,
                span: recording.span,
                date: recording.date,
                sender: Chunks::new(sender, stop.clone()),
            };
            let replayed = recording.how.replay(&recording.files, &recording.symbols);
            let mut make = Looking::new(watch);
            let fed = tickwire_replay::replay::feed(&replayed, &stop, &mut make)?;
            let (books, marked) = make.finish();
            Ok(Ending {
                rows: books,
                marked,
                unknown: unknown(&recording.symbols, &fed),
                partial: fed.partial,
                fault: fed.fault,
                is_damaged: fed.is_damaged,
                left_out: Vec::new(),
            })
        })
    }

    /// Rows of a schema, as `tickwire export` writes them, in batches.
    ///
    /// # Errors
    /// No thread can be started. What is wrong with the files comes out of the iterator.
    pub fn rows(&self, schema: Schema) -> Result<Stream<Rows>, Failure> {
        let recording = self.clone();
        Stream::begin("tickwire-rows", move |sender, stop| {
            let hand = {
                let stop = stop.clone();
                move |batch: &Batch, names: &Names| {
                    sender.send(Ok(vec![Rows::of(batch, names)])).map_err(|_| {
                        stop.stop();
                        Failure::interrupted("nobody takes the rows any more")
                    })
                }
            };
            let out = Out::handed(schema, recording.span, recording.rows, Box::new(hand));
            let replayed = recording.how.replay(&recording.files, &recording.symbols);
            let (done, read) = fill(&replayed, (schema, recording.date), out, &stop)?;
            Ok(Ending {
                rows: done.rows,
                marked: done.marked,
                unknown: unknown(&recording.symbols, &read.fed),
                partial: read.fed.partial,
                fault: read.fed.fault,
                is_damaged: read.fed.is_damaged,
                left_out: read.left_out,
            })
        })
    }
}

/// Symbols that were asked for and that no channel of the recording has.
fn unknown(symbols: &[String], fed: &tickwire_replay::replay::Fed) -> Vec<String> {
    let is_there = |name: &&String| {
        let symbol = Symbol::new(name.as_bytes());
        let has = |symbol| fed.channels.iter().any(|c| c.directory.contains_key(&symbol));
        symbol.is_some_and(has)
    };
    symbols.iter().filter(|name| !is_there(name)).cloned().collect()
}

/// How a recording ended that was read to its end.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ending {
    /// Rows, or books, that were handed over.
    pub rows: u64,
    /// Of these, such of a book that may be wrong.
    pub marked: u64,
    /// Why some of it is not to be relied on: damage with file and place, gaps, a beginning in mid-session.
    pub fault: Option<String>,
    /// The fault is damage of a file: what stands behind the place was not read.
    pub is_damaged: bool,
    /// Books of which the recording does not have the beginning.
    pub partial: usize,
    /// Channels that do not tell what was asked for, with why.
    pub left_out: Vec<String>,
    /// Symbols that were asked for and that the recording does not have.
    pub unknown: Vec<String>,
}

/// Rows of a schema. The symbols are in it: a word of [`Kind::Symbol`] is a place in `symbols`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// The columns and their words.
    pub batch: Batch,
    /// Every symbol of the batch, once.
    pub symbols: Vec<String>,
}

impl Rows {
    fn of(batch: &Batch, names: &Names) -> Rows {
        let mut rows = Rows {
            batch: batch.clone(),
            symbols: Vec::new(),
        };
        let mut places: HashMap<u64, u64> = HashMap::new();
        for (column, words) in rows.batch.columns.iter().zip(&mut rows.batch.words) {
            if column.kind != Kind::Symbol {
                continue;
            }
            for word in words {
                let symbols = &mut rows.symbols;
                *word = *places.entry(*word).or_insert_with(|| {
                    symbols.push(names.text(*word));
                    symbols.len() as u64 - 1
                });
            }
        }
        rows
    }

    /// The value of a column in a row, `None` outside of the batch.
    pub fn value(&self, row: usize, column: usize) -> Option<Value> {
        let kind = self.batch.columns.get(column)?.kind;
        let word = *self.batch.words.get(column)?.get(row)?;
        match kind {
            Kind::Symbol => self.symbols.get(word as usize).cloned().map(Value::Text),
            kind => Some(value_of(kind, word, &Names::default())),
        }
    }
}

type Handed<T> = Result<Vec<T>, Failure>;

/// Books on their way to the caller, several at once.
pub(crate) struct Chunks {
    sender: SyncSender<Handed<RecordedBook>>,
    stop: StopFlag,
    waiting: Vec<RecordedBook>,
}

impl Chunks {
    fn new(sender: SyncSender<Handed<RecordedBook>>, stop: StopFlag) -> Chunks {
        Chunks {
            sender,
            stop,
            waiting: Vec::with_capacity(BOOKS),
        }
    }

    pub(crate) fn push(&mut self, book: RecordedBook) {
        self.waiting.push(book);
        if self.waiting.len() == BOOKS {
            self.flush();
        }
    }

    pub(crate) fn flush(&mut self) {
        let chunk = std::mem::replace(&mut self.waiting, Vec::with_capacity(BOOKS));
        if !chunk.is_empty() && self.sender.send(Ok(chunk)).is_err() {
            // Nobody takes them any more.
            self.stop.stop();
        }
    }
}

/// Where the ending of a stream can be read after somebody else took the stream.
#[derive(Clone, Default, Debug)]
pub struct EndingSlot(Arc<Mutex<Option<Ending>>>);

impl EndingSlot {
    /// How it ended; `None` before the end.
    pub fn get(&self) -> Option<Ending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What is read, in the order of the recording. An error is the last item. When it is dropped, nothing more
/// is read.
pub struct Stream<T> {
    receiver: Option<Receiver<Handed<T>>>,
    stop: StopFlag,
    thread: Option<JoinHandle<Result<Ending, Failure>>>,
    taken: std::vec::IntoIter<T>,
    ending: EndingSlot,
}

/// What a wait for the next item came to.
#[derive(Debug)]
pub enum Next<T> {
    /// The next item.
    Item(Result<T, Failure>),
    /// There is none any more.
    End,
    /// There is none yet.
    Waits,
}

impl<T: Send + 'static> Stream<T> {
    fn begin(
        name: &str,
        read: impl FnOnce(SyncSender<Handed<T>>, StopFlag) -> Result<Ending, Failure> + Send + 'static,
    ) -> Result<Stream<T>, Failure> {
        let (sender, receiver) = sync_channel(QUEUE);
        let stop = StopFlag::new();
        let own = stop.clone();
        let thread = tickwire_runtime::affinity::beside(name, move || {
            tickwire_replay::progress::keep_quiet();
            read(sender, own)
        })
        .map_err(|e| Failure::system(format!("cannot start a thread that reads: {e}")))?;
        Ok(Stream {
            receiver: Some(receiver),
            stop,
            thread: Some(thread),
            taken: Vec::new().into_iter(),
            ending: EndingSlot::default(),
        })
    }

    /// The next item if it comes within this time: for callers that look at other things in between.
    ///
    /// # Panics
    /// As the thread that reads, if that panicked.
    pub fn next_within(&mut self, time: Duration) -> Next<T> {
        if let Some(item) = self.taken.next() {
            return Next::Item(Ok(item));
        }
        let Some(receiver) = &self.receiver else {
            return Next::End;
        };
        match receiver.recv_timeout(time) {
            Ok(Ok(items)) => {
                self.taken = items.into_iter();
                match self.taken.next() {
                    Some(item) => Next::Item(Ok(item)),
                    None => Next::Waits,
                }
            }
            Ok(Err(failure)) => self.over(Err(failure)),
            Err(RecvTimeoutError::Timeout) => Next::Waits,
            Err(RecvTimeoutError::Disconnected) => {
                let ended = match self.thread.take().map(JoinHandle::join) {
                    Some(Ok(ended)) => ended,
                    Some(Err(panic)) => std::panic::resume_unwind(panic),
                    None => return Next::End,
                };
                self.over(ended)
            }
        }
    }

    fn over(&mut self, ended: Result<Ending, Failure>) -> Next<T> {
        self.receiver = None;
        match ended {
            Ok(ending) => {
                *self.ending.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ending);
                Next::End
            }
            Err(failure) => Next::Item(Err(failure)),
        }
    }

    /// How the recording ended; `None` before the end, and after an error.
    pub fn ending(&self) -> Option<Ending> {
        self.ending.get()
    }

    /// Where the ending will be, for who hands the stream on.
    pub fn ending_slot(&self) -> EndingSlot {
        self.ending.clone()
    }
}

impl<T: Send + 'static> Iterator for Stream<T> {
    type Item = Result<T, Failure>;

    fn next(&mut self) -> Option<Result<T, Failure>> {
        loop {
            match self.next_within(Duration::from_secs(3600)) {
                Next::Item(item) => return Some(item),
                Next::End => return None,
                Next::Waits => {}
            }
        }
    }
}

impl<T> Drop for Stream<T> {
    fn drop(&mut self) {
        self.stop.stop();
        // The thread may be waiting for a place in the queue: without a receiver it ends.
        self.receiver = None;
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

impl<T> std::fmt::Debug for Stream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream")
            .field("ending", &self.ending.get())
            .finish_non_exhaustive()
    }
}
