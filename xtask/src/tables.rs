//! `cargo xtask tables`: what `tickwire export` writes, read by DuckDB, Polars, pandas and Databento's
//! decoder, and the tests that need Parquet and Arrow built in.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::run::{cargo, must, python_with, root, target_dir};

const HELP: &str = "\
Exports a capture of the simulated exchange to CSV and to Parquet, as one file and by partitions, and has DuckDB, Polars and pandas
(pyarrow) count the rows and add up prices, sizes, order numbers and times: all of them have to agree, to the last digit. DBN files are
decoded by Databento's own package, record by record against the rows of CSV. Before it, the tests of the export that only a build with
Parquet and Arrow has: what a kill leaves behind, hostile and truncated files.

  cargo xtask tables [--program FILE]

  --program   a tickwire that was built with `--features tables`; without it one is built

Needs Python 3 with venv and the network once; the packages go into target/tables. Not part of check.
Exit code 1: they do not agree, or a test failed. 2: it could not begin.
";

/// What is installed, a package at a time.
const PACKAGES: [&str; 5] = [
    "duckdb==1.4.2",
    "polars==1.35.2",
    "pandas==2.3.3",
    "pyarrow==22.0.0",
    "databento-dbn==0.72.0",
];
/// Schemas of these that DBN files are written of.
const OF_DBN: [&str; 9] = [
    "mbo",
    "mbp-10",
    "trades",
    "bbo-1s",
    "ohlcv-1s",
    "definition",
    "cmbp-1",
    "statistics",
    "imbalance",
];
/// Schemas that are compared, each with a price and a quantity to add up.
const SCHEMAS: [(&str, &str, &str); 9] = [
    ("mbo", "price", "size"),
    ("mbp-10", "bid_px_00", "ask_sz_00"),
    ("trades", "price", "size"),
    ("bbo-1s", "ask_px_00", "bid_sz_00"),
    ("ohlcv-1s", "close", "volume"),
    ("definition", "min_price_increment", "min_lot_size_round_lot"),
    ("cmbp-1", "bid_px_00", "ask_sz_00"),
    ("statistics", "price", "quantity"),
    ("imbalance", "ref_price", "paired_qty"),
];

/// Four readings of a schema's tables; what each counted and added up.
const READER: &str = r#"
import decimal, glob, sys
import duckdb, pandas, polars, pyarrow.parquet

decimal.getcontext().prec = 60
folder, schema, price, size = sys.argv[1:]
time = "ts_event"
order = "order_id" if schema == "mbo" else "instrument_id"
one, text, parts, ipc = (f"{folder}/{schema}.{kind}" for kind in ("parquet", "csv", "parts", "arrow"))
many = f"{parts}/**/*.parquet"

def duck(source):
    row = duckdb.sql(
        f"SELECT count(*), coalesce(sum(CAST({price} AS DECIMAL(38, 9))), 0), sum({size}::HUGEINT), sum({order}::HUGEINT), "
        f"sum({time}::HUGEINT), count(DISTINCT symbol) FROM (SELECT * REPLACE ({stamp(source)} AS {time}) FROM {source})"
    ).fetchone()
    return tuple(decimal.Decimal(v) for v in row)

def stamp(source):
    return time if "csv" in source else f"epoch_ns({time})"

def frame(rows):
    prices = [v for v in rows[price] if v is not None]
    exact = sum((decimal.Decimal(v) for v in prices), decimal.Decimal(0))
    numbers = (sum(int(v) for v in rows[name]) for name in (size, order, time))
    return (decimal.Decimal(len(rows[size])), exact, *(decimal.Decimal(n) for n in numbers), decimal.Decimal(len(set(rows["symbol"]))))

def of_polars(table):
    return frame({name: table[name].cast(polars.Int64 if name == time else table[name].dtype).to_list()
                  for name in {price, size, order, time, "symbol"}})

def of_pandas(path):
    table = pandas.read_parquet(path)
    rows = {name: table[name].tolist() for name in {price, size, order, "symbol"}}
    rows[time] = table[time].astype("int64").tolist()
    return frame(rows)

csv_types = f"types={{'{price}': 'DECIMAL(18,9)', '{order}': 'UBIGINT', '{time}': 'UBIGINT', 'symbol': 'VARCHAR'}}"
found = {
    "duckdb, csv": duck(f"read_csv('{text}', header=true, {csv_types})"),
    "duckdb, parquet": duck(f"read_parquet('{one}')"),
    "duckdb, partitions": duck(f"read_parquet('{many}', hive_partitioning=true, hive_types_autocast=false)"),
    "polars, parquet": of_polars(polars.read_parquet(one)),
    "polars, partitions": of_polars(polars.read_parquet(many, hive_partitioning=True, try_parse_hive_dates=False)),
    "pandas, parquet": of_pandas(one),
    "polars, arrow": of_polars(polars.read_ipc(ipc)),
}
for who, sums in found.items():
    print(f"{schema:9} {who:19}", *sums)
kind = str(pyarrow.parquet.read_schema(one).field(price).type)
assert kind == "decimal128(18, 9)", kind
group = pyarrow.parquet.ParquetFile(one).metadata.row_group(0)
assert all(group.column(n).compression == "ZSTD" and group.column(n).statistics for n in range(group.num_columns))
if len(set(found.values())) != 1 or next(iter(found.values()))[0] == 0:
    sys.exit(f"{schema}: the readings do not agree")
"#;

/// Records of a DBN file against rows of CSV.
const DBN_READER: &str = r#"
import csv, decimal, sys
from databento_dbn import DBNDecoder

folder, schema, price, size = sys.argv[1:]
decoder = DBNDecoder()
with open(f"{folder}/{schema}.dbn", "rb") as file:
    decoder.write(file.read())
metadata, *records = decoder.decode()
dataset = "UNLISTED" if schema == "cmbp-1" else "XNAS.ITCH"
assert (metadata.version, metadata.dataset, str(metadata.schema)) == (3, dataset, schema), metadata
names = {int(interval["symbol"]): symbol for symbol, intervals in metadata.mappings.items() for interval in intervals}
with open(f"{folder}/{schema}.csv", newline="") as file:
    rows = list(csv.DictReader(file))

def value(record, name):
    if name[-3:] == "_00":
        record, name = record.levels[0], name[:-3]
    return getattr(record, name)

for row, record in zip(rows, records, strict=True):
    exact = None if value(record, price) == 2**63 - 1 else decimal.Decimal(value(record, price)).scaleb(-9)
    assert exact == (decimal.Decimal(row[price]) if row[price] else None), (row, record)
    assert value(record, size) == int(row[size]), (row, record)
    for name in ("ts_event", "instrument_id", "publisher_id"):
        assert getattr(record, name) == int(row[name]), (row, record)
    assert names[record.instrument_id] == row["symbol"], (row, record)
    if schema == "mbo":
        assert (record.order_id, record.sequence) == (int(row["order_id"]), int(row["sequence"])), (row, record)
        assert (str(record.action), str(record.side)) == (row["action"], row["side"]), (row, record)
print(f"{schema:9} databento-dbn       {len(records)} records, equal to the rows of CSV")
"#;

/// The command.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    crate::command::run_of_program("tables", HELP, words, compare)
}

fn compare(program: Option<PathBuf>) -> Result<bool, String> {
    let folder = target_dir().join("tables");
    let written = folder.join("written");
    let _ = std::fs::remove_dir_all(&written);
    std::fs::create_dir_all(&written).map_err(|e| format!("{}: {e}", written.display()))?;
    let mut python = PathBuf::new();
    for package in PACKAGES {
        python = python_with(package, &folder.join("venv"))?;
    }
    let program = match program {
        Some(program) => program,
        None => {
            must(cargo().args([
                "build",
                "--quiet",
                "--locked",
                "--package",
                "tickwire-app",
                "--features",
                "tables",
            ]))?;
            target_dir().join("debug/tickwire")
        }
    };
    // Features of its own: beside what the workspace builds, not in its place.
    let tests = cargo()
        .args([
            "test",
            "--locked",
            "--package",
            "tickwire-export",
            "--features",
            "tables",
        ])
        .arg("--target-dir")
        .arg(folder.join("tests"))
        .status();
    let mut agree = tests.map_err(|e| format!("cannot run the tests: {e}"))?.success();
    let capture = written.join("day.pcap");
    let example = root().join("examples/nasdaq.toml");
    must(
        Command::new(&program)
            .args(["exchange", "-c"])
            .arg(example)
            .arg("--write-capture")
            .arg(&capture)
            .args(["--packets", "30000"]),
    )?;
    for (schema, price, size) in SCHEMAS {
        for (name, more) in [
            ("csv", &[][..]),
            ("parquet", &[][..]),
            ("arrow", &[][..]),
            ("parts", &["--partition", "--format", "parquet"][..]),
        ] {
            export(
                &program,
                &capture,
                schema,
                &written.join(format!("{schema}.{name}")),
                more,
            )?;
        }
        let mut readers = vec![READER];
        if OF_DBN.contains(&schema) {
            let out = written.join(format!("{schema}.dbn"));
            export(&program, &capture, schema, &out, &[])?;
            readers.push(DBN_READER);
        }
        for text in readers {
            let mut reader = Command::new(&python);
            reader
                .args(["-c", text])
                .arg(&written)
                .args([schema, price, size]);
            let read = reader.status();
            agree &= read.map_err(|e| format!("{}: {e}", python.display()))?.success();
        }
    }
    Ok(agree)
}

fn export(program: &Path, capture: &Path, schema: &str, out: &Path, more: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command
        .arg("export")
        .arg(capture)
        .args(["--schema", schema, "--out"]);
    must(command.arg(out).args(more))
}
