//! `tickwire export`: rows against what `replay` and `inspect` count, marks of stale books, partitions that
//! go on after a kill.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Folder, run, text, tickwire};
use tickwire_export::batch::Value;
use tickwire_export::{Schema, csv};
use tickwire_testdata::workspace;

/// A capture of an example.
fn capture(folder: &Folder, example: &str, packets: &str) -> String {
    let config = workspace().join(format!("examples/{example}.toml"));
    let capture = folder.0.join(format!("{example}.pcap"));
    let made = run(&[
        "exchange",
        "-c",
        &config.display().to_string(),
        "--write-capture",
        &capture.display().to_string(),
        "--packets",
        packets,
    ]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    capture.display().to_string()
}

type Row = HashMap<&'static str, Value>;

fn rows_of(path: &Path, schema: Schema) -> Vec<Row> {
    let columns = schema.columns();
    let bytes = std::fs::read(path).expect("the table");
    let rows = csv::read(&bytes[..], &columns).expect("it reads back");
    let named = |row: Vec<Value>| columns.iter().map(|c| c.name).zip(row).collect();
    rows.into_iter().map(named).collect()
}

fn export(folder: &Folder, file: &str, schema: Schema, words: &[&str]) -> Vec<Row> {
    let out = folder.0.join(format!("{}.csv", schema.name()));
    let out_text = out.display().to_string();
    let mut args = vec!["export", file, "--schema", schema.name(), "--out", &out_text];
    args.extend(words);
    let done = run(&args);
    assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
    rows_of(&out, schema)
}

fn number(row: &Row, name: &str) -> i128 {
    match &row[name] {
        Value::Number(n) => *n,
        other => panic!("{name}: {other:?}"),
    }
}

fn letter(row: &Row, name: &str) -> String {
    match &row[name] {
        Value::Text(t) => t.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

fn price(row: &Row, name: &str) -> Option<i64> {
    match &row[name] {
        Value::Price(p) => *p,
        other => panic!("{name}: {other:?}"),
    }
}

/// The levels that orders make: by symbol, side and price the quantity.
fn book_of(rows: &[Row]) -> BTreeMap<(String, String, i64), i128> {
    let mut orders: HashMap<i128, (String, String, i64, i128)> = HashMap::new();
    for row in rows {
        let id = number(row, "order_id");
        let size = number(row, "size");
        match &letter(row, "action")[..] {
            "A" | "M" => {
                let at = price(row, "price").expect("a price");
                orders.insert(id, (letter(row, "symbol"), letter(row, "side"), at, size));
            }
            "C" => {
                let order = orders.get_mut(&id).expect("an order that was added");
                assert_eq!(
                    price(row, "price"),
                    Some(order.2),
                    "a cancel has its order's price"
                );
                order.3 -= size;
                assert!(order.3 >= 0);
                if order.3 == 0 {
                    orders.remove(&id);
                }
            }
            "R" => {
                let symbol = letter(row, "symbol");
                orders.retain(|_, order| order.0 != symbol);
            }
            _ => {}
        }
    }
    let mut levels = BTreeMap::new();
    for (symbol, side, at, left) in orders.into_values() {
        *levels.entry((symbol, side, at)).or_default() += left;
    }
    levels
}

#[test]
fn orders_of_a_table_make_the_books_of_replay_and_levels_bars_and_trades_agree_with_them() {
    let folder = Folder::new("export-agrees");
    let file = capture(&folder, "nasdaq", "25000");
    let orders = export(&folder, &file, Schema::Mbo, &[]);
    let replayed = run(&["replay", &file, "--book", "all", "--levels", "100000", "--json"]);
    let replayed: serde_json::Value = serde_json::from_str(&text(&replayed.stdout)).expect("JSON");
    let mut expected = BTreeMap::new();
    for (symbol, book) in replayed["books"].as_object().expect("books") {
        for (side, letter) in [("bids", "B"), ("asks", "A")] {
            for level in book[side].as_array().expect("levels") {
                let at = tickwire_market::Price::parse(level["price"].as_str().expect("a price").as_bytes());
                let key = (symbol.clone(), letter.to_string(), at.expect("a price").raw());
                expected.insert(key, i128::from(level["qty"].as_u64().expect("a quantity")));
            }
        }
    }
    assert!(expected.len() > 100, "{}", expected.len());
    assert_eq!(book_of(&orders), expected);
    // Times come from 09:30 in New York, of the day on which the packets were received.
    for row in &orders {
        let (received, venue) = (number(row, "ts_recv"), number(row, "ts_event"));
        assert!((received - venue).abs() < 3_600_000_000_000, "{received} {venue}");
        assert_eq!(number(row, "flags") & 4, 0);
        assert_eq!(number(row, "publisher_id"), 2);
    }
    let levels = export(&folder, &file, Schema::Mbp10, &[]);
    let mut last: HashMap<String, &Row> = HashMap::new();
    levels
        .iter()
        .for_each(|row| _ = last.insert(letter(row, "symbol"), row));
    for (symbol, row) in &last {
        let best = |side: &str| {
            let of = expected
                .keys()
                .filter(|k| k.0 == *symbol && k.1 == side)
                .map(|k| k.2);
            if side == "B" { of.max() } else { of.min() }
        };
        assert_eq!(price(row, "bid_px_00"), best("B"), "{symbol}");
        assert_eq!(price(row, "ask_px_00"), best("A"), "{symbol}");
    }
    let trades = export(&folder, &file, Schema::Trades, &[]);
    let is_trade = |row: &&Row| letter(row, "action") == "T";
    assert_eq!(orders.iter().filter(is_trade).count(), trades.len());
    assert!(trades.len() > 10);
    let volume: i128 = trades.iter().map(|row| number(row, "size")).sum();
    for schema in [Schema::Ohlcv1s, Schema::Ohlcv1m] {
        let bars = export(&folder, &file, schema, &[]);
        assert_eq!(
            bars.iter().map(|row| number(row, "volume")).sum::<i128>(),
            volume,
            "{schema:?}"
        );
        for bar in &bars {
            let [open, high, low, close] =
                ["open", "high", "low", "close"].map(|n| price(bar, n).expect("a price"));
            assert!(low <= open.min(close) && high >= open.max(close));
        }
    }
    let best = export(&folder, &file, Schema::Mbp1, &[]);
    assert!(best.len() < levels.len() && !best.is_empty());
    assert!(!export(&folder, &file, Schema::Bbo1s, &[]).is_empty());
    let names: std::collections::HashSet<String> = export(&folder, &file, Schema::Definition, &[])
        .iter()
        .map(|row| letter(row, "symbol"))
        .collect();
    assert!(orders.iter().all(|row| names.contains(&letter(row, "symbol"))));
    assert!(!export(&folder, &file, Schema::Status, &[]).is_empty());
    // One symbol and a part of the time.
    let one = letter(&orders[orders.len() / 2], "symbol");
    let middle = number(&orders[orders.len() / 2], "ts_recv").to_string();
    let part = export(
        &folder,
        &file,
        Schema::Mbo,
        &["--symbol", &one, "--from", &middle],
    );
    let since = |row: &&Row| {
        letter(row, "symbol") == one && number(row, "ts_recv") >= middle.parse::<i128>().expect("a number")
    };
    assert_eq!(part.len(), orders.iter().filter(since).count());
    assert!(!part.is_empty());
}

#[test]
fn rows_behind_a_gap_are_marked_and_the_command_says_so() {
    let folder = Folder::new("export-gap");
    let file = capture(&folder, "nasdaq", "2000");
    // A copy without some packets in the middle of both lines.
    let cut = folder.0.join("cut.pcap");
    let mut reader = tickwire_runtime::capture::CaptureReader::open(&file).expect("the capture");
    let link = tickwire_runtime::capture::LinkType::ETHERNET;
    let mut writer = tickwire_runtime::capture::PcapWriter::create(&cut, link).expect("a capture");
    let mut nth = 0;
    while let Some(packet) = reader.next_packet().expect("a packet") {
        nth += 1;
        if !(1000..1040).contains(&nth) {
            writer
                .write_frame(packet.time.expect("a time"), packet.bytes)
                .expect("written");
        }
    }
    writer.finish().expect("written");
    for schema in [Schema::Mbo, Schema::Mbp10] {
        let out = folder.0.join("gap.csv");
        let done = run(&[
            "export",
            &cut.display().to_string(),
            "--schema",
            schema.name(),
            "--out",
            &out.display().to_string(),
        ]);
        assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
        assert!(
            text(&done.stderr).contains("maybe bad book"),
            "{}",
            text(&done.stderr)
        );
        let rows = rows_of(&out, schema);
        let first = rows
            .iter()
            .position(|row| number(row, "flags") & 4 != 0)
            .expect("a mark");
        assert!(first > 0, "what comes before the gap is right");
        assert!(rows[first..].iter().all(|row| number(row, "flags") & 4 != 0));
    }
}

/// A daemon's configuration with a ring of so many records.
fn with_ring(folder: &Folder, records: u32) -> String {
    let example = std::fs::read_to_string(workspace().join("examples/nasdaq.toml")).expect("an example");
    let more = format!(
        "\n[daemon]\nring_records = {records}\nsuper_books = \"off\"\n[[daemon.thread]]\nwait = \"poll\"\nfeeds = [\"nasdaq\"]\n"
    );
    folder.file("daemon.toml", example + &more).display().to_string()
}

/// The words of a daemon that plays a capture.
fn plays<'a>(config: &'a str, region: &'a str, file: &'a str) -> Vec<&'a str> {
    vec![
        "feed", "-c", config, "--folder", region, "--replay", file, "--speed", "max",
    ]
}

/// Reads lines of standard error until one begins so.
fn hear(child: &mut std::process::Child, begins: &str) {
    use std::io::BufRead;
    let said = child.stderr.as_mut().expect("piped");
    let mut line = String::new();
    let mut said = std::io::BufReader::with_capacity(1, said);
    while !line.starts_with(begins) {
        line.clear();
        assert!(
            said.read_line(&mut line).expect("text") > 0,
            "{begins} was not said"
        );
    }
}

/// Without the channel's number, which is of the exporter.
fn content(rows: &[Row]) -> Vec<BTreeMap<&'static str, Value>> {
    let of = |row: &Row| {
        let columns = row.iter().filter(|(name, _)| **name != "channel_id");
        columns.map(|(name, value)| (*name, value.clone())).collect()
    };
    rows.iter().map(of).collect()
}

/// What a daemon leaves in its rings, and what it says while it is read, are the rows of the capture that it
/// plays; killed and started again it is followed.
#[test]
fn rows_of_a_daemon_are_those_of_its_capture_and_go_on_after_its_death() {
    let folder = Folder::new("export-live");
    let file = capture(&folder, "nasdaq", "12000");
    let config = with_ring(&folder, 1 << 18);
    let region = folder.0.join("region-folder").display().to_string();
    let live = |schema: &str, out: &Path, more: &[&str]| {
        let out = out.display().to_string();
        let mut command = tickwire();
        command.args([
            "export", "--live", "--folder", &region, "--schema", schema, "--out", &out,
        ]);
        command.args(more).stderr(std::process::Stdio::piped());
        command
    };
    // The exporter is there first, the daemon comes, dies, and comes again.
    let out = folder.0.join("twice.csv");
    let mut exporter = common::Guard(live("mbo", &out, &[]).spawn().expect("the program starts"));
    hear(&mut exporter.0, "waiting for a feed handler");
    let quiet = |words: &[&str]| {
        let mut daemon = tickwire();
        daemon
            .args(words)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        common::Guard(daemon.spawn().expect("the program starts"))
    };
    let mut first = quiet(&plays(&config, &region, &file));
    hear(&mut exporter.0, "reading the feed handler");
    first.0.kill().expect("killed");
    first.0.wait().expect("it ended");
    let again = run(&[&plays(&config, &region, &file)[..], &["--exit"]].concat());
    assert!(again.status.success(), "{}", text(&again.stderr));
    hear(&mut exporter.0, "the feed handler was started again");
    let ended = exporter
        .wait(Duration::from_secs(60))
        .expect("it ends with the daemon");
    assert_eq!(ended.code(), Some(0));
    let both = rows_of(&out, Schema::Mbo);
    let of_file = export(&folder, &file, Schema::Mbo, &[]);
    let begun = both
        .len()
        .checked_sub(of_file.len())
        .expect("the second run's rows at least");
    assert_eq!(content(&both[begun..]), content(&of_file));
    assert_eq!(content(&both[..begun]), content(&of_file[..begun]));
    // What is left can be read as often as one likes.
    for schema in [Schema::Mbp10, Schema::Trades, Schema::Ohlcv1s] {
        let out = folder.0.join("left.csv");
        let done = live(schema.name(), &out, &[]).output().expect("the program runs");
        assert!(done.status.success(), "{}", text(&done.stderr));
        let of_file = export(&folder, &file, schema, &[]);
        assert_eq!(content(&rows_of(&out, schema)), content(&of_file), "{schema:?}");
    }
    let one = letter(&of_file[of_file.len() / 2], "symbol");
    let out = folder.0.join("one.csv");
    let done = live("mbo", &out, &["--symbol", &one])
        .output()
        .expect("the program runs");
    assert!(done.status.success(), "{}", text(&done.stderr));
    let of_one = export(&folder, &file, Schema::Mbo, &["--symbol", &one]);
    assert_eq!(content(&rows_of(&out, Schema::Mbo)), content(&of_one));
    let none = live("definition", &out, &[]).output().expect("the program runs");
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));
}

/// Where the ring has lost its beginning every row is marked, and that is said.
#[test]
fn rows_of_a_daemon_whose_ring_lost_its_beginning_are_marked() {
    let folder = Folder::new("export-live-late");
    let file = capture(&folder, "nasdaq", "4000");
    let config = with_ring(&folder, 16_384);
    let region = folder.0.join("region-folder").display().to_string();
    let played = run(&[&plays(&config, &region, &file)[..], &["--exit"]].concat());
    assert!(played.status.success(), "{}", text(&played.stderr));
    for schema in [Schema::Mbo, Schema::Mbp10] {
        let out = folder.0.join("late.csv");
        let out_text = out.display().to_string();
        let words = [
            "export",
            "--live",
            "--folder",
            &region,
            "--schema",
            schema.name(),
            "--out",
            &out_text,
        ];
        let done = run(&words);
        assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
        let said = text(&done.stderr);
        assert!(said.contains("ring_records"), "{said}");
        let rows = rows_of(&out, schema);
        assert!(!rows.is_empty() && rows.iter().all(|row| number(row, "flags") & 4 != 0));
    }
    // A daemon that never comes is waited for as long as was said.
    let nowhere = folder.0.join("nowhere").display().to_string();
    let out = folder.0.join("none.csv").display().to_string();
    let done = run(&[
        "export",
        "--live",
        "--folder",
        &nowhere,
        "--seconds",
        "1",
        "--out",
        &out,
    ]);
    assert_ne!(done.status.code(), Some(0));
    assert!(!Path::new(&out).exists(), "{}", text(&done.stderr));
}

fn tables(folder: &Path, ending: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(ending) && !name.starts_with('.') {
                let bytes = std::fs::read(&path).expect("a table");
                all.insert(path, bytes);
            }
        }
    }
    all
}

/// An export of a capture that is killed at points of its own making, again and again.
struct Killed {
    words: Vec<String>,
    seed: u64,
}

impl Killed {
    fn new(file: &str, format: &str, more: &[&str]) -> Killed {
        let words = ["export", file, "--schema", "mbo", "--format", format];
        let words = words.iter().chain(more).map(|word| word.to_string());
        Killed {
            words: words.collect(),
            seed: 0x9E37_79B9_7F4A_7C15,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed as usize % bound.max(1)
    }

    fn command(&self, out: &Path) -> std::process::Command {
        let mut command = tickwire();
        command.args(&self.words).arg("--out").arg(out);
        command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        command
    }

    fn whole(&self, out: &Path) {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let done = run(&[&words[..], &["--out", &out.display().to_string()]].concat());
        assert!(done.status.success(), "{}", text(&done.stderr));
    }

    /// Kills one run when it has come so far; whether it was over before.
    fn once(&self, out: &Path, has_come_far: impl Fn() -> bool) -> bool {
        let mut child = common::Guard(self.command(out).spawn().expect("the program starts"));
        loop {
            let is_over = child.0.try_wait().expect("a child can be waited for").is_some();
            if is_over || has_come_far() {
                child.0.kill().expect("killed, or over");
                child.0.wait().expect("it ended");
                return is_over;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Tables of a format, killed after any number of them: those that are there are whole, and stay; the same
/// command makes the others.
fn partitions_survive(folder: &Folder, file: &str, format: &str, ending: &str) {
    let mut killed = Killed::new(file, format, &["--partition"]);
    let whole = folder.0.join(format!("{format}-whole"));
    killed.whole(&whole);
    // The same place of the same table, in another folder.
    let under = |folder: &Path| -> BTreeMap<PathBuf, Vec<u8>> {
        let all = tables(folder, ending).into_iter();
        all.map(|(path, bytes)| (path.strip_prefix(folder).expect("below it").to_path_buf(), bytes))
            .collect()
    };
    let expected = under(&whole);
    assert!(expected.len() > 50, "{format}: {}", expected.len());
    let out = folder.0.join(format!("{format}-killed"));
    let (mut seen, mut kills) = (0, 0);
    // The first one is killed before it has written anything.
    let mut target = 0;
    while seen < expected.len() {
        let is_over = killed.once(&out, || tables(&out, ending).len() >= target);
        kills += usize::from(!is_over);
        let have = under(&out);
        for (path, bytes) in &have {
            assert_eq!(Some(bytes), expected.get(path), "{format}: {}", path.display());
        }
        assert!(have.len() >= seen, "{format}: what is there stays");
        assert!(
            !is_over || have.len() == expected.len(),
            "{format}: it goes on to its end"
        );
        seen = have.len();
        target = seen + 1 + killed.below(expected.len() / 3);
    }
    assert!(kills > 0, "{format}");
    killed.whole(&out);
    assert!(under(&out) == expected, "{format}");
}

/// One file of a format, killed while it is written: it has no name until it is whole.
fn one_file_survives(folder: &Folder, file: &str, format: &str, symbol: &str) {
    let mut killed = Killed::new(file, format, &["--symbol", symbol]);
    let whole = folder.0.join(format!("{format}.whole"));
    killed.whole(&whole);
    let expected = std::fs::read(&whole).expect("the table");
    let out = folder.0.join(format!("{format}.killed"));
    let part = folder.0.join(format!(".{format}.killed.part"));
    for round in 0..4 {
        let target = if round == 0 {
            0
        } else {
            killed.below(expected.len())
        };
        let is_over = killed.once(&out, || {
            std::fs::metadata(&part).is_ok_and(|about| about.len() >= target as u64)
        });
        match is_over {
            true => assert!(std::fs::read(&out).expect("the table") == expected, "{format}"),
            // It may have been whole at the moment of the kill.
            false => assert!(
                std::fs::read(&out).map_or(true, |bytes| bytes == expected),
                "{format}: half a table has the name"
            ),
        }
        let _ = std::fs::remove_file(&out);
    }
    killed.whole(&out);
    assert!(std::fs::read(&out).expect("the table") == expected, "{format}");
    assert!(!part.exists(), "{format}");
}

/// Formats that this program writes, with the ending of their files. `cargo test -p tickwire-app --features
/// tables --test export killed` has all of them.
const FORMATS: &[(&str, &str)] = &[
    ("csv", ".csv"),
    ("dbn", ".dbn"),
    ("lobster", ".csv"),
    #[cfg(feature = "tables")]
    ("parquet", ".parquet"),
    #[cfg(feature = "tables")]
    ("arrow", ".arrow"),
];

#[test]
fn an_export_that_is_killed_leaves_no_half_table_and_goes_on() {
    let folder = Folder::new("export-killed");
    let file = capture(&folder, "nasdaq", "6000");
    for (format, ending) in FORMATS {
        partitions_survive(&folder, &file, format, ending);
        one_file_survives(&folder, &file, format, "ZAABZ");
    }
    // Whole, it is not made again; and another export has no business there.
    let whole = folder.0.join("csv-whole").display().to_string();
    let again = |schema: &str| {
        run(&[
            "export",
            &file,
            "--schema",
            schema,
            "--format",
            "csv",
            "--partition",
            "--out",
            &whole,
        ])
    };
    let said = text(&again("mbo").stdout);
    assert!(said.contains("; 0 files written, "), "{said}");
    let other = again("trades");
    assert_eq!(other.status.code(), Some(2), "{}", text(&other.stderr));
}

#[test]
fn a_feed_without_orders_has_no_mbo_and_says_so() {
    let folder = Folder::new("export-levels");
    let file = capture(&folder, "cqs", "8000");
    let out = folder.0.join("rows.csv").display().to_string();
    let done = run(&["export", &file, "--out", &out]);
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("mbp-10") && !Path::new(&out).exists());
    let rows = export(&folder, &file, Schema::Mbp1, &[]);
    assert!(!rows.is_empty());
}

/// DBN that is written is read by `replay`, and gives the books of the capture; every record has the fields
/// of its row.
#[test]
fn dbn_gives_the_books_of_its_capture_and_the_values_of_the_rows() {
    let folder = Folder::new("export-dbn");
    let capture = capture(&folder, "nasdaq", "3000");
    let rows = export(&folder, &capture, Schema::Mbo, &[]);
    let dbn = |schema: &str| {
        let out = folder.0.join(format!("{schema}.dbn")).display().to_string();
        let done = run(&["export", &capture, "--schema", schema, "--out", &out]);
        assert!(done.status.success(), "{schema}: {}", text(&done.stderr));
        out
    };
    let out = dbn("mbo");
    let bytes = std::fs::read(&out).expect("a file");
    let word = |at: usize, len: usize| {
        bytes[at..at + len]
            .iter()
            .rev()
            .fold(0_i128, |sum, b| sum << 8 | i128::from(*b))
    };
    let records = 8 + word(4, 4) as usize;
    assert_eq!(
        (&bytes[..4], &bytes[8..18]),
        (&b"DBN\x03"[..], &b"XNAS.ITCH\0"[..])
    );
    assert_eq!(bytes.len() - records, rows.len() * 56);
    for (n, row) in rows.iter().enumerate() {
        let at = records + n * 56;
        assert_eq!((word(at, 1), word(at + 1, 1), word(at + 2, 2)), (14, 0xa0, 2));
        for (name, from, len) in [
            ("ts_event", 8, 8),
            ("order_id", 16, 8),
            ("size", 32, 4),
            ("flags", 36, 1),
            ("ts_recv", 40, 8),
            ("sequence", 52, 4),
        ] {
            assert_eq!(number(row, name), word(at + from, len), "{name} of row {n}");
        }
        assert_eq!(price(row, "price").unwrap_or(i64::MAX), word(at + 24, 8) as i64);
        assert_eq!(letter(row, "action").as_bytes(), &bytes[at + 38..at + 39]);
    }
    let books = |file: &str| {
        let replayed = run(&["replay", file, "--json", "--book", "all", "--levels", "5"]);
        let json: serde_json::Value = serde_json::from_slice(&replayed.stdout).expect("JSON");
        json["feeds"][0]["books"].clone()
    };
    let of_capture = books(&capture);
    assert!(of_capture.as_object().is_some_and(|books| books.len() > 3));
    assert_eq!(books(&out), of_capture);
    // Levels too, in books by price.
    let levels = dbn("mbp-10");
    let replayed = run(&["replay", &levels, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&replayed.stdout).expect("JSON");
    assert_eq!(
        json["feeds"][0]["counters"]["malformed"].as_u64().unwrap_or(0),
        0,
        "{json}"
    );
    dbn("trades");
    dbn("ohlcv-1s");
    dbn("bbo-1s");
    dbn("status");
    dbn("cmbp-1");
    // Definitions are read before the orders that they are about.
    let definitions = dbn("definition");
    let replayed = run(&[
        "replay",
        &definitions,
        &out,
        "--json",
        "--book",
        "all",
        "--levels",
        "5",
    ]);
    let json: serde_json::Value = serde_json::from_slice(&replayed.stdout).expect("JSON");
    assert_eq!(json["feeds"][0]["books"], of_capture);
    // One symbol of a file of records, which has no packets to be filtered.
    let one = letter(&rows[rows.len() / 2], "symbol");
    let again = export(&folder, &out, Schema::Mbo, &[]);
    let of_one = again.iter().filter(|row| letter(row, "symbol") == one).count();
    let chosen = export(&folder, &out, Schema::Mbo, &["--symbol", &one]);
    assert!(0 < of_one && of_one < again.len() && chosen.iter().all(|row| letter(row, "symbol") == one));
    assert_eq!(chosen.len(), of_one);
}

/// LOBSTER says prices, sizes and orders as the capture does: its book at the end is the capture's.
#[test]
fn a_lobster_file_gives_the_book_of_its_symbol_and_is_of_one() {
    let folder = Folder::new("export-lobster");
    let capture = capture(&folder, "nasdaq", "3000");
    let rows = export(&folder, &capture, Schema::Mbo, &[]);
    let one = letter(&rows[rows.len() / 2], "symbol");
    let out = folder
        .0
        .join(format!("{one}_2026-01-05_message_10.csv"))
        .display()
        .to_string();
    let several = run(&["export", &capture, "--format", "lobster", "--out", &out]);
    assert!(!several.status.success() && !Path::new(&out).exists());
    assert!(
        text(&several.stderr).contains("one symbol"),
        "{}",
        text(&several.stderr)
    );
    let done = run(&["export", &capture, "--symbol", &one, "--out", &out]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let levels = |file: &str, words: &[&str]| {
        let replayed = run(&[
            &["replay", file, "--json", "--book", "all", "--levels", "10"][..],
            words,
        ]
        .concat());
        let json: serde_json::Value = serde_json::from_slice(&replayed.stdout).expect("JSON");
        let books = json["feeds"][0]["books"].as_object().expect("books").clone();
        let book = books
            .into_iter()
            .find(|(_, book)| book["bids"].as_array().is_some_and(|b| !b.is_empty()));
        let (_, book) = book.expect("a book");
        (book["bids"].clone(), book["asks"].clone())
    };
    assert_eq!(levels(&out, &[]), levels(&capture, &["--symbol", &one]));
}
