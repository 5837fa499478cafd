//! One recording by the reader and in every format, and what becomes of recordings that are damaged or of
//! readers that leave early.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Parser;
use tickwire_export::batch::Value;
use tickwire_export::reader::{Recording, Rows};
use tickwire_export::{Done, ExportArgs, Schema, csv, export};
use tickwire_market::{BookState, Nanos, Side};
use tickwire_runtime::signal::StopFlag;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    export: ExportArgs,
}

/// A folder that goes when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tickwire-reader-{name}-{}", std::process::id()));
        tickwire_runtime::files::create_folder(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Orders that come, are executed in part, and go: as a LOBSTER message file.
fn recording(folder: &Path, orders: u64) -> PathBuf {
    let mut text = String::new();
    for n in 1..=orders {
        let bid = n % 97 < 48;
        let (time, price, side) = (
            34_200 + n / 1000,
            5_850_000 + n % 97 * 100,
            if bid { 1 } else { -1 },
        );
        let fraction = n % 1000 * 1_000_003 % 1_000_000_000;
        _ = writeln!(text, "{time}.{fraction:09},1,{n},100,{price},{side}");
        if n % 3 == 0 {
            _ = writeln!(text, "{time}.{fraction:09},4,{n},40,{price},{side}");
        }
        if n % 2 == 0 {
            let left = if n % 3 == 0 { 60 } else { 100 };
            _ = writeln!(text, "{time}.{fraction:09},3,{n},{left},{price},{side}");
        }
    }
    let path = folder.join("AAPL_2012-06-21_34200000_57600000_message_10.csv");
    std::fs::write(&path, text).expect("a file");
    path
}

/// Writes the table of a recording of that day: what was done.
fn written(file: &Path, out: &Path, more: &[&str]) -> Done {
    let [file, out] = [file, out].map(|path| path.display().to_string());
    let words = ["example", &file, "--date", "2012-06-21", "--out", &out];
    let args = Cli::try_parse_from([&words[..], more].concat()).expect("arguments");
    export(&args.export, &StopFlag::new()).expect("an export").0
}

fn exported(file: &Path, schema: Schema) -> Vec<Vec<Value>> {
    let out = file.with_file_name("rows.csv");
    written(file, &out, &["--schema", schema.name()]);
    let bytes = std::fs::read(&out).expect("the table");
    csv::read(&bytes[..], &schema.columns()).expect("CSV reads back")
}

fn values(batches: impl Iterator<Item = Rows>) -> Vec<Vec<Value>> {
    let rows = batches.flat_map(|rows| {
        let columns = rows.batch.columns.len();
        let row = move |row| {
            (0..columns)
                .filter_map(|column| rows.value(row, column))
                .collect()
        };
        let count = row_count(&row);
        (0..count).map(row).collect::<Vec<Vec<Value>>>()
    });
    rows.collect()
}

/// Rows of a batch, by asking for them.
fn row_count(row: &impl Fn(usize) -> Vec<Value>) -> usize {
    (0..).take_while(|at| !row(*at).is_empty()).count()
}

#[test]
fn batches_hold_what_an_export_writes_however_small_they_are() {
    let folder = Folder::new("same");
    let file = recording(&folder.0, 2000);
    let day = Recording::open([&file])
        .and_then(|day| day.date("2012-06-21"))
        .expect("a recording");
    for schema in [
        Schema::Mbo,
        Schema::Mbp1,
        Schema::Mbp10,
        Schema::Trades,
        Schema::Bbo1s,
        Schema::Ohlcv1s,
    ] {
        let expected = exported(&file, schema);
        for rows in [1, 7, 1 << 15] {
            let mut stream = day.clone().batch_rows(rows).rows(schema).expect("a thread");
            let have = values(stream.by_ref().map(|batch| batch.expect("rows")));
            assert!(have == expected, "{schema:?} by {rows}");
            let ending = stream.ending().expect("it has ended");
            assert_eq!(ending.rows, expected.len() as u64);
            assert_eq!((ending.fault, ending.unknown), (None, Vec::new()));
        }
    }
}

#[test]
fn books_are_those_of_the_levels_that_an_export_writes() {
    let folder = Folder::new("books");
    let file = recording(&folder.0, 2000);
    let day = Recording::open([&file])
        .and_then(|day| day.date("2012-06-21"))
        .expect("a recording");
    // Rows of mbp-1 but trades, which show the levels before them.
    let is_change = |row: &&Vec<Value>| row[5] != Value::Text("T".into());
    let rows = exported(&file, Schema::Mbp1);
    let expected: Vec<&Vec<Value>> = rows.iter().filter(is_change).collect();
    let books = day.books(1).expect("a thread").map(|book| book.expect("a book"));
    let books: Vec<_> = books.collect();
    assert_eq!(books.len(), expected.len());
    for (book, row) in books.iter().zip(&expected) {
        let level = |side: Side| match book.best(side) {
            Some(level) => (
                Value::Price(Some(level.price.raw())),
                Value::Number(level.qty.0.into()),
            ),
            None => (Value::Price(None), Value::Number(0)),
        };
        let (bid, ask) = (level(Side::Bid), level(Side::Ask));
        assert_eq!(
            (&bid.0, &ask.0, &bid.1, &ask.1),
            (&row[13], &row[14], &row[15], &row[16])
        );
        assert_eq!(Value::Number(book.recv_ts.0.into()), row[0]);
        assert_eq!(book.symbol.as_ref(), "AAPL");
        assert_eq!(book.state, BookState::Live);
    }
    let deep = day.books(50).expect("a thread").map(|book| book.expect("a book"));
    let last = deep.last().expect("a book");
    assert_eq!(last.sides[0].len() as u32, last.levels[0].min(50));
    let sum: u64 = last.sides[0].iter().map(|level| level.qty.0).sum();
    assert_eq!(sum, last.qty[0].0);
    assert!(last.trades > 0 && last.volume.0 == last.trades * 40);
}

#[test]
fn a_span_of_time_and_symbols_choose_and_what_is_not_there_is_said() {
    let folder = Folder::new("chosen");
    let file = recording(&folder.0, 3000);
    let day = Recording::open([&file])
        .and_then(|day| day.date("2012-06-21"))
        .expect("a recording");
    let all = exported(&file, Schema::Mbo);
    let second = 1_340_285_401_000_000_000;
    let inside = |row: &&Vec<Value>| match row[0] {
        Value::Number(at) => at >= second && at < second + 1_000_000_000,
        _ => false,
    };
    let chosen = day
        .clone()
        .between(Nanos(second as u64), Nanos(second as u64 + 1_000_000_000));
    let rows = chosen
        .rows(Schema::Mbo)
        .expect("a thread")
        .map(|batch| batch.expect("rows"));
    assert!(values(rows).iter().eq(all.iter().filter(inside)));

    let mut none = day.clone().symbols(["MSFT"]).rows(Schema::Mbo).expect("a thread");
    let said = none
        .next()
        .expect("an error")
        .expect_err("the file is of another symbol");
    assert!(said.message.contains("of AAPL"), "{said}");

    // A DBN file says its symbols, and is read by them.
    let dbn = file.with_file_name("rows.dbn");
    written(&file, &dbn, &[]);
    let day = Recording::open([&dbn]).expect("a recording");
    let count = |stream: &mut tickwire_export::reader::Stream<Rows>| -> usize {
        stream.map(|batch| batch.expect("rows").batch.rows()).sum()
    };
    for (symbols, rows, unknown) in [
        (vec!["AAPL"], true, vec![]),
        (vec!["MSFT"], false, vec!["MSFT"]),
        (vec!["AAPL", "MSFT"], true, vec!["MSFT"]),
    ] {
        let mut stream = day.clone().symbols(symbols).rows(Schema::Mbo).expect("a thread");
        assert_eq!(count(&mut stream) > 0, rows);
        assert_eq!(stream.ending().expect("the end").unknown, unknown);
    }
}

/// Executions of hidden orders, a cross in which nobody was, and what is not to be printed are no fills of
/// orders with a trade: a file of records says so by a trade without fills, and by fills without a trade.
#[test]
fn a_dbn_file_of_a_day_has_every_row_of_the_day() {
    let folder = Folder::new("again");
    let file = recording(&folder.0, 2000);
    let text = std::fs::read_to_string(&file).expect("the recording");
    let mut with_hidden = String::new();
    for (n, line) in text.lines().enumerate() {
        _ = writeln!(with_hidden, "{line}");
        let time = line.split(',').next().expect("a time");
        match n % 50 {
            7 => _ = writeln!(with_hidden, "{time},5,0,30,5850100,1"),
            8 => _ = writeln!(with_hidden, "{time},5,0,30,5850100,-1\n{time},5,0,70,5850200,-1"),
            _ => {}
        }
    }
    _ = writeln!(with_hidden, "34999,5,0,11,5850300,1");
    std::fs::write(&file, with_hidden).expect("a file");
    let dbn = file.with_file_name("again.dbn");
    written(&file, &dbn, &[]);
    for schema in [Schema::Mbo, Schema::Trades, Schema::Mbp1] {
        // The end of a match event comes by a record of its own, behind the rows of its execution: their last
        // bit is not compared.
        let flags = schema.columns().iter().position(|column| column.name == "flags");
        let exported = |file: &Path| {
            let mut rows = exported(file, schema);
            for row in &mut rows {
                if let Some(Value::Number(flags)) = flags.map(|at| &mut row[at]) {
                    *flags &= !128;
                }
            }
            rows
        };
        let (once, again) = (exported(&file), exported(&dbn));
        for (at, (one, other)) in once.iter().zip(&again).enumerate() {
            assert_eq!(one, other, "{schema:?}, row {at}");
        }
        assert_eq!(once.len(), again.len(), "{schema:?}");
        assert!(schema != Schema::Trades || once.len() > 700, "{}", once.len());
    }
}

#[test]
fn who_leaves_early_ends_the_thread_and_who_names_nothing_is_told_so() {
    let folder = Folder::new("early");
    let file = recording(&folder.0, 60_000);
    let day = Recording::open([&file]).expect("a recording");
    let mut rows = day.clone().batch_rows(1).rows(Schema::Mbo).expect("a thread");
    assert!(rows.next().is_some_and(|batch| batch.is_ok()));
    // Joins the thread, which waits for a place in the queue.
    drop(rows);
    let mut books = day.books(1).expect("a thread");
    assert!(books.next().is_some_and(|book| book.is_ok()));
    drop(books);
    drop(day.books(5).expect("a thread"));

    assert!(day.books(0).is_err());
    let missing = Recording::open([folder.0.join("nowhere.pcap")]).expect_err("it is not there");
    assert!(missing.message.contains("nowhere.pcap"), "{missing}");
    assert!(Recording::open([&folder.0]).is_err_and(|e| e.message.contains("folder")));
    assert!(Recording::open(Vec::<PathBuf>::new()).is_err());
    let strange = folder.0.join("strange.bin");
    std::fs::write(&strange, [7_u8; 100]).expect("a file");
    let mut rows = Recording::open([&strange])
        .and_then(|day| day.rows(Schema::Mbo))
        .expect("a thread");
    let said = rows.next().expect("an error").expect_err("it is no recording");
    assert!(said.message.contains("strange.bin"), "{said}");
    assert!(rows.next().is_none() && rows.ending().is_none());
}

#[test]
fn what_stands_before_the_damage_is_handed_over_and_the_damage_is_said_with_its_place() {
    let folder = Folder::new("damaged");
    let file = recording(&folder.0, 500);
    let dbn = file.with_file_name("rows.dbn");
    written(&file, &dbn, &[]);
    let whole = std::fs::read(&dbn).expect("the file");
    std::fs::write(&dbn, &whole[..whole.len() - 30]).expect("a file");
    let day = Recording::open([&dbn]).expect("a recording");
    let mut rows = day.rows(Schema::Mbo).expect("a thread");
    let count: usize = rows.by_ref().map(|batch| batch.expect("rows").batch.rows()).sum();
    let ending = rows.ending().expect("the end");
    assert!(count > 500 && ending.rows == count as u64);
    assert!(ending.is_damaged, "{ending:?}");
    let fault = ending.fault.unwrap_or_default();
    assert!(fault.contains("rows.dbn") && fault.contains("byte"), "{fault}");
}

#[test]
fn a_lobster_file_of_a_lobster_file_is_the_same_text() {
    let folder = Folder::new("lobster");
    let file = recording(&folder.0, 3000);
    let out = folder.0.join("AAPL_2012-06-21_message_again.csv");
    written(&file, &out, &[]);
    let (before, after) = (std::fs::read_to_string(&file), std::fs::read_to_string(&out));
    assert!(before.expect("the recording") == after.expect("the file"));
    let words = [
        "example",
        &file.display().to_string(),
        "--schema",
        "trades",
        "--out",
        &out.display().to_string(),
    ];
    let said = export(&Cli::parse_from(words).export, &StopFlag::new()).expect_err("LOBSTER has orders");
    assert!(said.message.contains("no trades"), "{said}");
}

#[test]
fn dbn_files_of_every_schema_have_whole_records() {
    let folder = Folder::new("dbn");
    let file = recording(&folder.0, 3000);
    for (schema, bytes) in [
        (Schema::Mbo, 56),
        (Schema::Mbp1, 80),
        (Schema::Mbp10, 368),
        (Schema::Trades, 48),
        (Schema::Bbo1s, 80),
        (Schema::Ohlcv1s, 56),
        (Schema::Definition, 520),
        (Schema::Status, 40),
        (Schema::Imbalance, 112),
        (Schema::Statistics, 80),
        (Schema::Cmbp1, 80),
    ] {
        let out = folder.0.join("rows.dbn");
        let done = written(&file, &out, &["--schema", schema.name()]);
        let table = std::fs::read(&out).expect("the file");
        let head = 8 + u32::from_le_bytes(table[4..8].try_into().expect("four bytes")) as usize;
        assert_eq!(table.len() - head, done.rows as usize * bytes, "{schema:?}");
        for record in table[head..].chunks(bytes) {
            assert_eq!(
                (usize::from(record[0]) * 4, record[1]),
                (bytes, schema.rtype()),
                "{schema:?}"
            );
        }
    }
}

#[test]
fn of_one_venue_the_consolidated_best_is_its_own() {
    let folder = Folder::new("consolidated");
    let file = recording(&folder.0, 2000);
    let (alone, together) = (exported(&file, Schema::Mbp1), exported(&file, Schema::Cmbp1));
    let is_change = |row: &&Vec<Value>| row[5] != Value::Text("T".into());
    let alone: Vec<[&Value; 5]> = alone
        .iter()
        .filter(is_change)
        .map(|row| [&row[0], &row[13], &row[14], &row[15], &row[16]])
        .collect();
    let together: Vec<[&Value; 5]> = together
        .iter()
        .filter(is_change)
        .map(|row| [&row[0], &row[11], &row[12], &row[13], &row[14]])
        .collect();
    assert_eq!(alone.len(), together.len());
    assert!(alone == together);
}
