//! Parquet and Arrow against CSV of the same export, and files that are no longer what they were.
#![cfg(feature = "tables")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Parser;
use tickwire_export::batch::Value;
use tickwire_export::schema::Column;
use tickwire_export::{ExportArgs, Schema, arrow, csv, export, parquet};
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
        let path = std::env::temp_dir().join(format!("tickwire-export-{name}-{}", std::process::id()));
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
        let (time, price, side) = (
            34_200 + n / 1000,
            5_850_000 + n % 97 * 100,
            if n % 97 < 48 { 1 } else { -1 },
        );
        let fraction = n % 1000 * 1_000_003 % 1_000_000_000;
        _ = writeln!(text, "{time}.{fraction:09},1,{n},100,{price},{side}");
        if n % 3 == 0 {
            _ = writeln!(text, "{time}.{fraction:09},4,{n},40,{price},{side}");
        }
        if n % 2 == 0 {
            _ = writeln!(
                text,
                "{time}.{fraction:09},3,{n},{},{price},{side}",
                if n % 3 == 0 { 60 } else { 100 }
            );
        }
    }
    let path = folder.join("AAPL_2012-06-21_34200000_57600000_message_10.csv");
    std::fs::write(&path, text).expect("a file");
    path
}

fn made(file: &Path, out: &Path, schema: Schema) -> u64 {
    let words = [
        "example",
        &file.display().to_string(),
        "--schema",
        schema.name(),
        "--out",
        &out.display().to_string(),
        "--date",
        "2012-06-21",
    ];
    let args = Cli::try_parse_from(words).expect("arguments");
    let stop = StopFlag::install().expect("signals");
    export(&args.export, &stop).expect("an export").0.rows
}

#[test]
fn parquet_arrow_and_csv_of_every_schema_hold_the_same_values() {
    let folder = Folder::new("same");
    for schema in [
        Schema::Mbo,
        Schema::Mbp10,
        Schema::Mbp1,
        Schema::Trades,
        Schema::Bbo1s,
        Schema::Ohlcv1s,
        Schema::Status,
    ] {
        let orders = if schema == Schema::Mbo { 60_000 } else { 3_000 };
        let file = recording(&folder.0, orders);
        let (text, columns) = (folder.0.join("rows.csv"), folder.0.join("rows.parquet"));
        let rows = made(&file, &text, schema);
        assert_eq!(made(&file, &columns, schema), rows);
        let ipc = folder.0.join("rows.arrow");
        assert_eq!(made(&file, &ipc, schema), rows);
        let bytes = std::fs::read(&text).expect("the table");
        let expected = csv::read(&bytes[..], &schema.columns()).expect("CSV reads back");
        let have = parquet::read(&columns, &schema.columns()).expect("Parquet reads back");
        assert_eq!(expected.len() as u64, rows, "{schema:?}");
        assert!(have == expected, "{schema:?}");
        let have = arrow::read(&ipc, &schema.columns()).expect("Arrow reads back");
        assert!(have == expected, "{schema:?}");
        assert!(rows > 0 || schema == Schema::Status);
        if schema == Schema::Mbo {
            // More than one row group, and midnight of the day in New York.
            assert!(rows > 1 << 17, "{rows}");
            let first = format!("{:?}", have[0][1]);
            assert_eq!(first, "Number(1340285400001000003)");
        }
    }
}

#[test]
fn a_parquet_file_that_was_cut_or_changed_is_an_error_or_a_table_and_never_a_panic() {
    hostile("parquet", parquet::read);
}

#[test]
fn an_arrow_file_that_was_cut_or_changed_is_an_error_or_a_table_and_never_a_panic() {
    hostile("arrow", arrow::read);
}

type Read = fn(&Path, &[Column]) -> Result<Vec<Vec<Value>>, String>;

fn hostile(ending: &str, read: Read) {
    let folder = Folder::new(&format!("hostile-{ending}"));
    let file = recording(&folder.0, 300);
    let table = folder.0.join(format!("rows.{ending}"));
    made(&file, &table, Schema::Trades);
    let whole = std::fs::read(&table).expect("the table");
    let columns = Schema::Trades.columns();
    let hostile = folder.0.join(format!("hostile.{ending}"));
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    // The length of the footer stands before the last four or six bytes, which say what the file is.
    for back in [8, 10] {
        for size in [0, 1, whole.len() as u32, 0x7FFF_FFFF, 0x8000_0000, u32::MAX] {
            let mut bytes = whole.clone();
            let at = bytes.len() - back;
            bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
            std::fs::write(&hostile, bytes).expect("a file");
            assert!(read(&hostile, &columns).is_err(), "{ending}: {size} at {back}");
        }
    }
    for round in 0..400 {
        let mut bytes = whole.clone();
        match round % 2 {
            0 => bytes.truncate(next() as usize % whole.len()),
            _ => {
                for _ in 0..=next() % 4 {
                    let at = next() as usize % bytes.len();
                    bytes[at] = next() as u8;
                }
            }
        }
        std::fs::write(&hostile, bytes).expect("a file");
        _ = read(&hostile, &columns);
    }
    assert!(read(&table, &Schema::Mbo.columns()).is_err(), "other columns");
}
