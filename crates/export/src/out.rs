//! Where rows go: one file, or a file for every date, venue and symbol.
//!
//! ```text
//! one file     rows ─► batch ─► a thread of its own: writer ─► .NAME.part ─► NAME
//! partitions   rows ─► a block for every partition ─► spool, a file without a name, blocks of a partition linked backwards
//!              at the end, partition by partition: blocks ─► batches ─► writer ─► date=…/venue=…/symbol=…/SCHEMA.EXT
//! ```
//! A file has its name only when it is whole and on the disk ([`files::Pending`]). Memory does not grow with
//! the recording: three batches (one is filled while one is written and one waits; then whoever fills waits),
//! and of partitions a block of a few KiB each. A folder of partitions says in
//! `.tickwire-export` what it is an export of; the same export begun again writes only the partitions that
//! are not there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use tickwire_console::failure::Failure;
use tickwire_market::{Date, Nanos, Venue};
use tickwire_replay::progress::Progress;
use tickwire_runtime::files::{self, Pending};
use tickwire_runtime::signal::StopFlag;

#[cfg(feature = "arrow")]
use crate::arrow::Ipc;
use crate::batch::{Batch, Names, ROWS};
use crate::csv;
use crate::dbn::Dbn;
use crate::lobster::Lobster;
#[cfg(feature = "tables")]
use crate::parquet::Parquet;
use crate::schema::Schema;

/// The form of the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// Text, a line a row
    Csv,
    /// Databento's binary encoding, version 3
    Dbn,
    /// Columns, compressed by zstd, with statistics
    Parquet,
    /// Arrow's own file, IPC: read without being decoded
    Arrow,
    /// Messages of LOBSTER, a file a symbol: of mbo
    Lobster,
}

impl Format {
    /// What a file's name ends with.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Dbn => "dbn",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Lobster => "csv",
        }
    }

    /// Whether this program writes a schema in it.
    pub(crate) fn check(self, schema: Schema) -> Result<(), Failure> {
        match self {
            Format::Lobster if schema != Schema::Mbo => Err(Failure::config(format!(
                "LOBSTER has orders, and no {}: give --schema mbo or another --format",
                schema.name()
            ))),
            Format::Parquet if cfg!(not(feature = "tables")) => Err(Failure::config(
                "this program was built without Parquet: build it with `--features tables`, or give --format csv",
            )),
            Format::Arrow if cfg!(not(feature = "arrow")) => Err(Failure::config(
                "this program was built without Arrow: build it with `--features tables`, or give --format csv",
            )),
            _ => Ok(()),
        }
    }
}

fn cannot(path: &Path, e: impl std::fmt::Display) -> Failure {
    Failure::system(format!("cannot write {}: {e}", path.display()))
}

enum Body {
    Csv(BufWriter<File>),
    Lobster(Box<Lobster<BufWriter<File>>>),
    Dbn(Box<Dbn>, BufWriter<File>),
    #[cfg(feature = "tables")]
    Parquet(Box<Parquet<BufWriter<File>>>),
    #[cfg(feature = "arrow")]
    Arrow(Box<Ipc<BufWriter<File>>>),
}

/// A file that is being written.
struct Table {
    path: PathBuf,
    pending: Pending,
    body: Body,
}

impl Table {
    fn create(path: &Path, format: Format, schema: Schema) -> Result<Table, Failure> {
        format.check(schema)?;
        let pending = Pending::create(path).map_err(|e| cannot(path, e))?;
        let mut out = BufWriter::with_capacity(1 << 20, pending.file().map_err(|e| cannot(path, e))?);
        let columns = schema.columns();
        let body = match format {
            Format::Csv => {
                csv::head(&mut out, &columns).map_err(|e| cannot(path, e))?;
                Body::Csv(out)
            }
            Format::Lobster => Body::Lobster(Box::new(Lobster::new(out))),
            Format::Dbn => {
                let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
                let body = files::nameless(folder.unwrap_or(Path::new("."))).map_err(|e| cannot(path, e))?;
                Body::Dbn(Box::new(Dbn::new(schema, &columns, body)), out)
            }
            #[cfg(feature = "tables")]
            Format::Parquet => Body::Parquet(Box::new(
                Parquet::new(out, &columns).map_err(|e| cannot(path, e))?,
            )),
            #[cfg(not(feature = "tables"))]
            Format::Parquet => unreachable!("it was checked"),
            #[cfg(feature = "arrow")]
            Format::Arrow => Body::Arrow(Box::new(Ipc::new(out, &columns).map_err(|e| cannot(path, e))?)),
            #[cfg(not(feature = "arrow"))]
            Format::Arrow => unreachable!("it was checked"),
        };
        Ok(Table {
            path: path.to_path_buf(),
            pending,
            body,
        })
    }

    fn rows(&mut self, batch: &Batch, names: &Names) -> Result<(), Failure> {
        if batch.rows() == 0 {
            return Ok(());
        }
        match &mut self.body {
            Body::Csv(out) => csv::rows(out, batch, names).map_err(|e| cannot(&self.path, e)),
            Body::Lobster(out) => out.rows(batch, names).map_err(|e| cannot(&self.path, e)),
            Body::Dbn(dbn, _) => dbn.rows(batch, names).map_err(|e| cannot(&self.path, e)),
            #[cfg(feature = "tables")]
            Body::Parquet(out) => out.rows(batch, names).map_err(|e| cannot(&self.path, e)),
            #[cfg(feature = "arrow")]
            Body::Arrow(out) => out.rows(batch, names).map_err(|e| cannot(&self.path, e)),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self.body {
            Body::Csv(mut out) => out.flush().map_err(|e| cannot(&self.path, e))?,
            Body::Lobster(out) => out.finish().map_err(|e| cannot(&self.path, e))?,
            Body::Dbn(dbn, mut out) => dbn.finish(&mut out).map_err(|e| cannot(&self.path, e))?,
            #[cfg(feature = "tables")]
            Body::Parquet(out) => out.finish().map_err(|e| cannot(&self.path, e))?,
            #[cfg(feature = "arrow")]
            Body::Arrow(out) => out.finish().map_err(|e| cannot(&self.path, e))?,
        }
        self.pending.finish().map_err(|e| cannot(&self.path, e))
    }
}

/// A table that a thread of its own writes, while the next rows are made.
struct Writer {
    path: PathBuf,
    full: Option<SyncSender<Order>>,
    /// Batches that were written, empty again.
    empty: Receiver<Batch>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

/// What the thread is told.
enum Order {
    Rows(Batch, Names),
    /// Nothing comes any more: the file takes its name.
    Finish,
}

impl Writer {
    fn new(mut table: Table) -> Result<Writer, Failure> {
        let (full, orders) = sync_channel(1);
        let (written, empty) = channel();
        let path = table.path.clone();
        let write = move || {
            for order in orders {
                match order {
                    Order::Rows(mut batch, names) => {
                        table.rows(&batch, &names)?;
                        batch.clear();
                        // Nobody wants it any more at the end.
                        let _ = written.send(batch);
                    }
                    Order::Finish => return table.finish(),
                }
            }
            // Given up: the file goes away without a name.
            Ok(())
        };
        let thread = tickwire_runtime::affinity::beside("export-writer", write);
        Ok(Writer {
            thread: Some(thread.map_err(|e| cannot(&path, e))?),
            path,
            full: Some(full),
            empty,
        })
    }

    /// Hands the rows of a batch over, and leaves an empty one.
    fn rows(&mut self, batch: &mut Batch, names: &Names) -> Result<(), Failure> {
        let next = match self.empty.try_recv() {
            Ok(batch) => batch,
            Err(_) => Batch::new(batch.columns.clone()),
        };
        let full = std::mem::replace(batch, next);
        self.tell(Order::Rows(full, names.clone()))
    }

    fn tell(&mut self, order: Order) -> Result<(), Failure> {
        let sent = self.full.as_ref().is_some_and(|full| full.send(order).is_ok());
        if sent { Ok(()) } else { self.join() }
    }

    /// Waits for the thread; what it failed at.
    fn join(&mut self) -> Result<(), Failure> {
        self.full = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            Some(Err(_)) => Err(cannot(&self.path, "the thread that writes it panicked")),
            None => Ok(()),
        }
    }

    fn finish(mut self, batch: &mut Batch, names: &Names) -> Result<(), Failure> {
        self.rows(batch, names)?;
        self.tell(Order::Finish)?;
        self.join()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A file that was given up is away before anybody is told so.
        let _ = self.join();
    }
}

/// Whose rows a block has: day since 1970-01-01, word of the symbol.
type Key = (u32, u64);

/// No block before this one.
const FIRST: u64 = u64::MAX;
/// Words of a block beside what it begins with: where the one before it is, and how many words it has.
const BLOCK_WORDS: usize = 510;

/// Rows of every partition, on the disk until their file is written.
struct Spool {
    file: File,
    at: u64,
    open: BTreeMap<Key, Block>,
}

struct Block {
    before: u64,
    words: Vec<u64>,
}

impl Spool {
    fn push(&mut self, key: Key, row: &[u64]) -> std::io::Result<()> {
        let block = self.open.entry(key).or_insert_with(|| Block {
            before: FIRST,
            words: Vec::new(),
        });
        if block.words.len() + row.len() > BLOCK_WORDS.max(row.len()) {
            let mut bytes = Vec::with_capacity((block.words.len() + 2) * 8);
            for word in [block.before, block.words.len() as u64]
                .iter()
                .chain(&block.words)
            {
                bytes.extend(word.to_le_bytes());
            }
            self.file.write_all_at(&bytes, self.at)?;
            block.before = self.at;
            self.at += bytes.len() as u64;
            block.words.clear();
        }
        block.words.extend_from_slice(row);
        Ok(())
    }

    /// The blocks of a partition that are on the disk, in the order in which they were written.
    fn places(&self, mut before: u64) -> std::io::Result<Vec<(u64, u64)>> {
        let mut all = Vec::new();
        while before != FIRST {
            let mut head = [0; 16];
            self.file.read_exact_at(&mut head, before)?;
            let word = |at: usize| {
                let bytes: [u8; 8] = head[at * 8..at * 8 + 8].try_into().unwrap_or_default();
                u64::from_le_bytes(bytes)
            };
            all.push((before + 16, word(1)));
            before = word(0);
        }
        all.reverse();
        Ok(all)
    }

    fn read(&self, (at, words): (u64, u64)) -> std::io::Result<Vec<u64>> {
        let mut bytes = vec![0; words as usize * 8];
        self.file.read_exact_at(&mut bytes, at)?;
        let words = bytes.chunks_exact(8).map(|b| {
            let word: [u8; 8] = b.try_into().unwrap_or_default();
            u64::from_le_bytes(word)
        });
        Ok(words.collect())
    }
}

enum Target {
    One(Option<Writer>, Batch),
    Partitions(PathBuf, Box<Spool>),
    Handed(Box<Hand>, Batch),
}

/// Who takes batches of rows instead of a file.
pub(crate) type Hand = dyn FnMut(&Batch, &Names) -> Result<(), Failure>;

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Done {
    /// Rows of the export, in files that were written now and in those that were there.
    pub rows: u64,
    /// Of these, rows of books that may be wrong.
    pub marked: u64,
    /// Files written now.
    pub files: u64,
    /// Files that were there already, whole.
    pub kept: u64,
}

/// See the module's description.
pub(crate) struct Out {
    schema: Schema,
    format: Format,
    stride: usize,
    flags_at: Option<usize>,
    target: Target,
    /// Rows of a batch.
    rows: usize,
    pub(crate) names: Names,
    /// By channel.
    pub(crate) venues: Vec<Venue>,
    span: [u64; 2],
    done: Done,
    /// Why nothing is taken any more.
    failed: Option<Failure>,
}

/// What a folder of partitions says of itself.
const MANIFEST: &str = ".tickwire-export";

impl Out {
    /// `what`: a text that is the same only for the same export.
    pub(crate) fn new(
        path: &Path,
        schema: Schema,
        (format, is_partitioned): (Format, bool),
        span: [u64; 2],
        what: &str,
    ) -> Result<Out, Failure> {
        format.check(schema)?;
        let columns = schema.columns();
        let target = match is_partitioned {
            false => {
                let writer = Writer::new(Table::create(path, format, schema)?)?;
                Target::One(Some(writer), Batch::new(columns))
            }
            true => Target::Partitions(path.to_path_buf(), Box::new(begin(path, what)?)),
        };
        Ok(Out::to(target, (schema, format), span, ROWS))
    }

    /// Rows that `hand` takes, so many at once.
    pub(crate) fn handed(schema: Schema, span: [u64; 2], rows: usize, hand: Box<Hand>) -> Out {
        let target = Target::Handed(hand, Batch::new(schema.columns()));
        Out::to(target, (schema, Format::Csv), span, rows)
    }

    fn to(target: Target, (schema, format): (Schema, Format), span: [u64; 2], rows: usize) -> Out {
        let columns = schema.columns();
        Out {
            schema,
            format,
            stride: columns.len(),
            flags_at: columns.iter().position(|c| c.name == "flags"),
            target,
            rows,
            names: Names::default(),
            venues: Vec::new(),
            span,
            done: Done::default(),
            failed: None,
        }
    }

    /// Why nothing is taken any more, if so.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Rows taken so far.
    pub(crate) fn rows(&self) -> u64 {
        self.done.rows
    }

    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failed.get_or_insert(failure);
    }

    /// Rows of a packet, one behind the other.
    pub(crate) fn take(&mut self, rows: &[u64]) {
        for row in rows.chunks_exact(self.stride) {
            let time = row[self.schema.time_column()];
            if self.failed.is_some() || time < self.span[0] || time >= self.span[1] {
                continue;
            }
            match &mut self.target {
                Target::One(_, batch) => batch.push(row),
                Target::Handed(hand, batch) => {
                    batch.push(row);
                    if batch.rows() == self.rows {
                        let taken = hand(batch, &self.names);
                        batch.clear();
                        self.failed = taken.err();
                    }
                }
                Target::Partitions(folder, spool) => {
                    let key = ((time / Nanos::DAY) as u32, row[self.stride - 1]);
                    if let Err(e) = spool.push(key, row) {
                        self.failed = Some(cannot(folder, e));
                    }
                }
            }
            self.count(row);
        }
        if let Target::One(Some(writer), batch) = &mut self.target
            && batch.rows() >= self.rows
            && let Err(failure) = writer.rows(batch, &self.names)
        {
            self.fail(failure);
        }
    }

    fn count(&mut self, row: &[u64]) {
        self.done.rows += 1;
        let bad = crate::schema::flags::MAYBE_BAD_BOOK;
        self.done.marked += u64::from(self.flags_at.is_some_and(|at| row[at] & bad != 0));
    }

    /// Nothing comes any more: files take their names.
    pub(crate) fn finish(&mut self, stop: &StopFlag) -> Result<Done, Failure> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        match &mut self.target {
            Target::One(writer, batch) => {
                if let Some(writer) = writer.take() {
                    writer.finish(batch, &self.names)?;
                    self.done.files = 1;
                }
            }
            Target::Handed(hand, batch) => {
                if batch.rows() > 0 {
                    hand(batch, &self.names)?;
                }
            }
            Target::Partitions(folder, spool) => {
                let open = std::mem::take(&mut spool.open);
                let mut used = BTreeMap::new();
                let (all, mut progress) = (open.len(), Progress::new("writing"));
                for (nth, ((day, word), block)) in open.into_iter().enumerate() {
                    progress.tell(|| format!("{}: {nth} of {all} tables", folder.display()));
                    if stop.is_set() {
                        return Err(Failure::interrupted(format!(
                            "{nth} of {all} tables are written; the same command goes on with the others"
                        )));
                    }
                    let venue = match self.venues.get((word >> 32) as usize) {
                        Some(venue) => venue.name(),
                        None => "consolidated",
                    };
                    let under = format!(
                        "date={}/venue={}/symbol={}",
                        Date::of_days(day),
                        venue,
                        escaped(&self.names.text(word))
                    );
                    // Two channels of a venue may have an instrument each of the same name.
                    let nth: &mut u32 = used.entry(under.clone()).or_default();
                    *nth += 1;
                    let suffix = if *nth == 1 {
                        String::new()
                    } else {
                        format!("-{nth}")
                    };
                    let name = format!("{}{suffix}.{}", self.schema.name(), self.format.extension());
                    let path = folder.join(under).join(name);
                    if path.exists() {
                        self.done.kept += 1;
                        continue;
                    }
                    let parent = path.parent().unwrap_or(folder);
                    files::create_folders(parent).map_err(|e| cannot(parent, e))?;
                    let mut table = Table::create(&path, self.format, self.schema)?;
                    let mut batch = Batch::new(self.schema.columns());
                    for place in spool.places(block.before).map_err(|e| cannot(folder, e))? {
                        let words = spool.read(place).map_err(|e| cannot(folder, e))?;
                        words.chunks_exact(self.stride).for_each(|row| batch.push(row));
                        if batch.rows() >= ROWS {
                            table.rows(&batch, &self.names)?;
                            batch.clear();
                        }
                    }
                    block
                        .words
                        .chunks_exact(self.stride)
                        .for_each(|row| batch.push(row));
                    table.rows(&batch, &self.names)?;
                    table.finish()?;
                    self.done.files += 1;
                }
            }
        }
        Ok(self.done)
    }
}

/// A folder for partitions: a new one, an empty one, or one of the same export.
fn begin(folder: &Path, what: &str) -> Result<Spool, Failure> {
    files::create_folders(folder).map_err(|e| cannot(folder, e))?;
    let manifest = folder.join(MANIFEST);
    match std::fs::read_to_string(&manifest) {
        Ok(before) if before == what => {}
        Ok(_) => {
            return Err(Failure::config(format!(
                "{} holds an export of something else (see {}); give another folder",
                folder.display(),
                manifest.display()
            )));
        }
        Err(_) => {
            let mut entries = std::fs::read_dir(folder).map_err(|e| cannot(folder, e))?;
            if entries
                .any(|entry| entry.is_ok_and(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")))
            {
                return Err(Failure::config(format!(
                    "{} is not empty, and no export that could be gone on with; give a new folder",
                    folder.display()
                )));
            }
            files::replace(&manifest, what, false).map_err(|e| cannot(&manifest, e))?;
        }
    }
    Ok(Spool {
        file: files::nameless(folder).map_err(|e| cannot(folder, e))?,
        at: 0,
        open: BTreeMap::new(),
    })
}

/// A symbol in a path, as Hive's partitions have it: what is no letter, digit, dot, dash or underscore as %
/// and its number.
fn escaped(symbol: &str) -> String {
    let mut all = String::new();
    for byte in symbol.bytes() {
        match byte {
            b'-' | b'_' | b'.' => all.push(char::from(byte)),
            b if b.is_ascii_alphanumeric() => all.push(char::from(b)),
            b => all += &format!("%{b:02X}"),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_gives_back_every_row_of_every_partition_in_order() {
        let folder = std::env::temp_dir();
        let mut spool = Spool {
            file: files::nameless(&folder).expect("a file"),
            at: 0,
            open: BTreeMap::new(),
        };
        let stride = 15;
        for n in 0..5000_u64 {
            let key = (0, n % 7);
            let row: Vec<u64> = (0..stride).map(|at| n * 100 + at).collect();
            spool.push(key, &row).expect("written");
        }
        for of in 0..7_u64 {
            let block = &spool.open[&(0, of)];
            let mut words = Vec::new();
            for place in spool.places(block.before).expect("read") {
                words.extend(spool.read(place).expect("read"));
            }
            words.extend(&block.words);
            let firsts: Vec<u64> = words.chunks(stride as usize).map(|row| row[0] / 100).collect();
            let expected: Vec<u64> = (0..5000).filter(|n| n % 7 == of).collect();
            assert_eq!(firsts, expected);
        }
    }

    #[test]
    fn symbols_with_odd_letters_stay_one_folder() {
        assert_eq!(escaped("BRK.B"), "BRK.B");
        assert_eq!(escaped("A/B C+"), "A%2FB%20C%2B");
    }
}
