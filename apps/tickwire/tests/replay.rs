//! `replay`: with and without a configuration it gives the same books, whatever the simulator wrote.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use common::{Folder, run, text};
use serde_json::Value;
use tickwire_testdata::{captures, file_bytes, workspace};

/// Every protocol that the simulator publishes.
const FEEDS: [&str; 8] = [
    "itch50", "pitch", "xdp", "openbook", "cqs", "uqdf", "mdp3", "moex",
];

/// The result of a replay that shows every book whole.
fn replay(capture: &Path, more: &[&str]) -> (Option<i32>, Value, String) {
    let shown = ["--json", "--book", "all", "--levels", "1000"];
    let args = ["replay", capture.to_str().unwrap()];
    let output = run(&[&args[..], &shown, more].concat());
    let result = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), result, text(&output.stderr))
}

/// Every book that is not empty, by feed: in the order of their contents, because feeds found out have names
/// of their own.
fn books(result: &Value) -> BTreeSet<String> {
    let feeds = result["feeds"].as_array().expect("feeds");
    let of_feed = |feed: &Value| {
        let books = feed["books"].as_object().expect("books");
        let is_full = |book: &Value| ["bids", "asks"].iter().any(|side| book[side][0].is_object());
        let full = books.iter().filter(|(_, book)| is_full(book));
        let full: BTreeMap<_, _> = full.collect();
        (!full.is_empty()).then(|| serde_json::to_string(&full).unwrap())
    };
    feeds.iter().filter_map(of_feed).collect()
}

/// Counted over all feeds.
fn sum(result: &Value, counter: &str) -> u64 {
    let feeds = result["feeds"].as_array().expect("feeds");
    feeds
        .iter()
        .filter_map(|feed| feed["counters"][counter].as_u64())
        .sum()
}

/// Bytes of room that the books of all feeds were given: slots of orders in both tables, levels, books.
fn room(result: &Value) -> u64 {
    let feeds = result["feeds"].as_array().expect("feeds");
    let of = |feed: &Value, key: &str| feed["room"][key].as_u64().expect("room");
    feeds
        .iter()
        .map(|feed| of(feed, "orders") * 90 + of(feed, "levels") * 24 + of(feed, "instruments") * 64)
        .sum()
}

/// Plays a capture both ways and compares what comes out.
fn compare(name: &str, config: &Path, capture: &Path, more: &[&str]) -> (Value, Value) {
    let (code, with, said) = replay(capture, &["-c", config.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{name} with a configuration: {said}");
    let (code, without, said) = replay(capture, more);
    assert_eq!(code, Some(0), "{name} without a configuration: {said}");
    let (expected, found) = (books(&with), books(&without));
    assert!(!expected.is_empty(), "{name}: no book has an order");
    assert!(
        expected == found,
        "{name}: books differ, {} against {} feeds with books\n{:#}",
        expected.len(),
        found.len(),
        without["feeds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| format!("{} {} {}", f["name"], f["state"], f["destinations"]))
            .collect::<Vec<_>>()
            .join("\n")
    );
    for counter in ["book_rejects", "malformed", "messages_lost"] {
        assert_eq!(sum(&with, counter), sum(&without, counter), "{name}: {counter}");
    }
    assert!(
        room(&without) * 2 <= room(&with) * 3,
        "{name}: room for {} bytes, with a configuration {}",
        room(&without),
        room(&with)
    );
    // The first reading costs a known number of packets a stream, not all of them. MOEX says what a packet is
    // for in compressed fields only.
    let reading = &without["first_reading"];
    let streams = reading["streams"].as_u64().expect("streams");
    let looked_into = reading["packets_read_field_by_field"].as_u64().expect("packets");
    let most = 64 * streams + without["frames"].as_u64().expect("frames") / 256;
    assert!(
        name.contains("moex") || looked_into <= most,
        "{name}: {looked_into} packets of {streams} streams were read field by field"
    );
    (with, without)
}

/// What a replay without a configuration has to be told of: the templates of MOEX.
fn templates(config: &str) -> Vec<String> {
    let file = workspace().join("examples/moex-templates.xml");
    match config.contains("moex") {
        true => vec!["--templates".into(), file.to_str().unwrap().into()],
        false => Vec::new(),
    }
}

/// Writes a capture of a configuration.
fn write(config: &Path, capture: &Path, packets: &str) {
    let (config, capture) = (config.to_str().unwrap(), capture.to_str().unwrap());
    let written = run(&[
        "exchange",
        "-c",
        config,
        "--write-capture",
        capture,
        "--packets",
        packets,
    ]);
    assert!(written.status.success(), "{config}: {}", text(&written.stderr));
}

#[test]
fn every_example_of_the_simulator_gives_the_same_books_without_its_configuration() {
    let folder = Folder::new("examples");
    let mut examples: Vec<PathBuf> = std::fs::read_dir(workspace().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    examples.sort();
    assert!(examples.len() >= 17, "{examples:?}");
    for config in examples {
        let name = config.file_stem().unwrap().to_str().unwrap();
        let capture = folder.0.join(format!("{name}.pcap"));
        write(&config, &capture, "3000");
        let told = templates(&std::fs::read_to_string(&config).unwrap());
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        compare(name, &config, &capture, &told);
        std::fs::remove_file(&capture).unwrap();
    }
}

#[test]
fn bad_lines_are_told_to_be_two_lines_of_one_channel_for_every_feed() {
    for feed in FEEDS {
        let folder = Folder::new(&format!("bad-{feed}"));
        let printed = text(&run(&["config", "--feed", feed]).stdout);
        let bad = printed
            .replace("symbols = 200", "symbols = 20")
            .replace("\nloss = 0.0", "\nloss = 0.02")
            .replace("\nduplicate = 0.0", "\nduplicate = 0.01")
            .replace("\nreorder = 0.0", "\nreorder = 0.01");
        assert_ne!(bad, printed);
        let config = folder.file("feed.toml", &bad);
        let capture = folder.0.join("session.pcap");
        write(&config, &capture, "6000");
        let told = templates(feed);
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        let (_, without) = compare(feed, &config, &capture, &told);
        let [only] = &without["feeds"].as_array().unwrap()[..] else {
            panic!("{feed}: {} feeds", without["feeds"].as_array().unwrap().len())
        };
        let lines: Vec<_> = only["destinations"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|d| d["port"] == "live")
            .map(|d| d["line"].as_str().unwrap())
            .collect();
        assert_eq!(lines, ["a", "b"], "{feed}");
    }
}

/// Two venues number their units alike, and one of them appears late, with a few packets.
#[test]
fn a_venue_that_appears_late_and_seldom_has_its_own_books() {
    let folder = Folder::new("late");
    let early = folder.0.join("early.pcap");
    write(&workspace().join("examples/nasdaq.toml"), &early, "21000");
    let late = folder.0.join("late.pcap");
    write(&workspace().join("examples/bzx.toml"), &late, "600");
    let (_, alone, _) = replay(&late, &[]);
    let (code, both, said) = replay(&early, &[late.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        books(&both).is_superset(&books(&alone)),
        "the late venue's books are missing"
    );
    assert_eq!(both["packets_of_other_feeds"], alone["packets_of_other_feeds"]);
    assert!(sum(&both, "messages") > sum(&alone, "messages"));
}

#[test]
fn what_is_no_recording_is_refused_before_anything_is_printed() {
    let readme = workspace().join("README.md");
    let example = workspace().join("examples/nasdaq.toml");
    for more in [&[][..], &["-c", example.to_str().unwrap()]] {
        let output = run(&[&["replay", readme.to_str().unwrap()][..], more].concat());
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "");
        let said = text(&output.stderr);
        assert!(
            said.contains("README.md is not a") && said.lines().count() == 1,
            "{said}"
        );
    }
}

/// Runs a program that reads this on its standard input.
fn piped(mut command: std::process::Command, input: &[u8]) -> std::process::Output {
    use std::io::Write as _;
    let piped = std::process::Stdio::piped;
    let command = command.stdin(piped()).stdout(piped()).stderr(piped());
    let mut child = command.spawn().expect("the program starts");
    // It may refuse what it reads before it has read all.
    let _ = child.stdin.take().expect("piped").write_all(input);
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_recording_on_standard_input_gives_what_its_file_gives_and_leaves_no_file() {
    let folder = Folder::new("piped");
    let capture = folder.0.join("day.pcap");
    write(&workspace().join("examples/nasdaq.toml"), &capture, "2000");
    let (_, of_file, _) = replay(&capture, &[]);
    let here = folder.0.join("temporary");
    std::fs::create_dir(&here).unwrap();
    let with = |args: &[&str]| {
        let mut command = common::tickwire();
        command.arg("replay").args(args).env("TMPDIR", &here);
        command
    };
    let shown = ["-", "--json", "--book", "all", "--levels", "1000"];
    let output = piped(with(&shown), &std::fs::read(&capture).unwrap());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let of_pipe: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(books(&of_pipe), books(&of_file));
    assert_eq!(of_pipe["frames"], of_file["frames"]);
    assert_eq!(std::fs::read_dir(&here).unwrap().count(), 0);

    let output = piped(with(&["-"]), b"this is no recording at all\n");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("standard input is not a"), "{said}");
    for wrong in [&["-", "-"][..], &["-", "--step"]] {
        let output = piped(with(wrong), b"");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
}

/// Ctrl-C while a recording plays slowly, and while nothing comes on standard input.
#[test]
fn ctrl_c_ends_a_replay_and_what_it_shows_is_marked() {
    let folder = Folder::new("ctrl-c");
    let capture = folder.0.join("day.pcap");
    write(&workspace().join("examples/nasdaq.toml"), &capture, "2000");
    for (file, more) in [(capture.to_str().unwrap(), "0.0001"), ("-", "max")] {
        let piped = std::process::Stdio::piped;
        let mut child = common::tickwire()
            .args(["replay", file, "--json", "--speed", more])
            .stdin(piped())
            .stdout(piped())
            .stderr(piped())
            .spawn()
            .unwrap();
        // Held open: standard input has no end.
        let input = child.stdin.take();
        let catches = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
            let caught = u64::from_str_radix(caught.unwrap_or("0").trim(), 16).unwrap_or(0);
            caught & 0b10 != 0
        };
        for _ in 0..6_000 {
            if catches() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        common::signal("INT", child.id());
        let output = child.wait_with_output().unwrap();
        drop(input);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(said.contains("interrupted (Ctrl-C)"), "{said}");
        // Nothing is shown when it was still being looked through.
        if !output.stdout.is_empty() {
            let result: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(result["interrupted"], true);
        }
    }
}

/// Damage within a packet, and messages that all lines have lost: the reason is the last thing said.
#[test]
fn books_that_are_not_to_be_relied_on_are_an_error() {
    let folder = Folder::new("relied");
    let printed = text(&run(&["config", "--feed", "itch50"]).stdout);
    let lossy = printed
        .replace("symbols = 200", "symbols = 20")
        .replace("\nloss = 0.0", "\nloss = 0.2")
        .replace("answer_requests = 1.0", "answer_requests = 0.0");
    let config = folder.file("lossy.toml", &lossy);
    let capture = folder.0.join("lossy.pcap");
    write(&config, &capture, "3000");
    for more in [&[][..], &["-c", config.to_str().unwrap()]] {
        let output = run(&[&["replay", capture.to_str().unwrap()][..], more].concat());
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        let last = said.lines().last().unwrap_or_default();
        assert!(
            last.contains("not to be relied on") && last.contains("stale at the end"),
            "{said}"
        );
    }
}

#[test]
fn every_ladder_names_its_feed() {
    let folder = Folder::new("ladders");
    let capture = folder.0.join("day.pcap");
    write(&workspace().join("examples/nasdaq-texas.toml"), &capture, "2000");
    let output = run(&["replay", capture.to_str().unwrap(), "--book", "AAPL"]);
    let shown = text(&output.stdout);
    let ladders: Vec<_> = shown.lines().filter(|line| line.starts_with("AAPL ")).collect();
    assert_eq!(ladders.len(), 2, "{shown}");
    assert!(
        ladders.iter().all(|l| l.contains("itch50 239.")) && ladders[0] != ladders[1],
        "{shown}"
    );
}

/// A DBN file of version 3 without symbols.
fn dbn_file(schema: u16, records: &[u8]) -> Vec<u8> {
    let mut metadata = vec![0_u8; 100];
    metadata[..9].copy_from_slice(b"XNAS.ITCH");
    metadata[16..18].copy_from_slice(&schema.to_le_bytes());
    metadata[45..47].copy_from_slice(&71_u16.to_le_bytes());
    metadata.extend([0; 20]);
    let length = (metadata.len() as u32).to_le_bytes();
    [&b"DBN\x03"[..], &length, &metadata, records].concat()
}

/// Nanoseconds since midnight of a time such as `2025-07-17T08:05:03.360677248Z`; the day does not matter
/// here.
fn nanos(time: &str) -> u64 {
    let number = |range: std::ops::Range<usize>| time[range].parse::<u64>().unwrap();
    ((number(11..13) * 60 + number(14..16)) * 60 + number(17..19)) * 1_000_000_000 + number(20..29)
}

/// One stock's day at Nasdaq, the vendor's order events and the vendor's ten levels after every event: each
/// of the 3,881 rows after an order was added or taken away is a state of our book at that event.
#[tickwire_testdata::recorded_data("captures/books/xnas-mbo-mbp10")]
#[test]
fn the_books_of_dbn_orders_equal_the_vendors_ten_levels_at_every_event() {
    use tickwire_market::Price;
    use tickwire_wire::dbn::{Mbo, Mbp10, Px};
    use tickwire_wire::zerocopy::IntoBytes;
    let csv = |name: &str| {
        let text = text(&file_bytes(&captures("books/xnas-mbo-mbp10").join(name)));
        let mut lines = text
            .lines()
            .map(|l| l.split(',').map(str::to_string).collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let at = move |name: &str| {
            names
                .iter()
                .position(|n| n == name)
                .unwrap_or_else(|| panic!("{name}"))
        };
        (lines.collect::<Vec<_>>(), at)
    };
    let number = |field: &str| field.parse::<u64>().unwrap_or(0);
    let price = |field: &str| match field {
        "" => Px::NONE,
        price => Px::new(price.parse::<Price>().unwrap()),
    };
    let letter = |field: &str| tickwire_wire::layout::Char(field.as_bytes()[0]);
    let (rows, at) = csv("mbo.csv");
    let mut orders = Vec::new();
    for row in &rows {
        let get = |name: &str| row[at(name)].as_str();
        let record = Mbo {
            length: (Mbo::SIZE / 4) as u8,
            rtype: 0xA0,
            instrument_id: (number(get("instrument_id")) as u32).into(),
            ts_event: tickwire_wire::dbn::Stamp(nanos(get("ts_event")).into()),
            order_id: number(get("order_id")).into(),
            price: price(get("price")),
            size: (number(get("size")) as u32).into(),
            flags: number(get("flags")) as u8,
            action: letter(get("action")),
            side: letter(get("side")),
            sequence: (number(get("sequence")) as u32).into(),
            ..Mbo::BLANK
        };
        orders.extend_from_slice(record.as_bytes());
    }
    let (rows, at) = csv("mbp_actual.csv");
    let mut levels = Vec::new();
    for row in &rows {
        let get = |name: &str| row[at(name)].as_str();
        let mut record = Mbp10 {
            length: (Mbp10::SIZE / 4) as u8,
            rtype: 0x0A,
            instrument_id: (number(get("instrument_id")) as u32).into(),
            ts_event: tickwire_wire::dbn::Stamp(nanos(get("ts_event")).into()),
            action: letter(get("action")),
            side: letter(get("side")),
            sequence: (number(get("sequence")) as u32).into(),
            ..Mbp10::BLANK
        };
        let bytes = record.as_mut_bytes();
        for level in 0..10 {
            let base = 48 + level * 32;
            for (side, offset) in [("bid", 0), ("ask", 1)] {
                let field = |what: &str| get(&format!("{side}_{what}_{level:02}")).to_string();
                let (px, sz, ct) = (price(&field("px")), number(&field("sz")), number(&field("ct")));
                bytes[base + offset * 8..][..8].copy_from_slice(px.as_bytes());
                bytes[base + 16 + offset * 4..][..4].copy_from_slice(&(sz as u32).to_le_bytes());
                bytes[base + 24 + offset * 4..][..4].copy_from_slice(&(ct as u32).to_le_bytes());
            }
        }
        levels.extend_from_slice(record.as_bytes());
    }
    let folder = Folder::new("dbn");
    let orders = folder.file("orders.dbn", dbn_file(0, &orders));
    let levels_file = folder.file("levels.dbn", dbn_file(2, &levels));
    let (code, result, said) = replay(&orders, &["--check", levels_file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(result["check"]["equal"], 3_881, "{:#}", result["check"]);
    assert_eq!(result["check"]["rows"], 3_881);
    assert_eq!(
        (&result["state"], &result["counters"]["book_rejects"]),
        (&"Live".into(), &0.into())
    );
    // The levels alone make the book that the vendor shows last.
    let (code, by_price, said) = replay(&levels_file, &[]);
    assert_eq!(code, Some(0), "{said}");
    let ours = &result["books"]["#1"];
    for side in ["bids", "asks"] {
        let ten: Vec<_> = ours[side].as_array().unwrap().iter().take(10).collect();
        let shown: Vec<_> = by_price["books"]["#1"][side].as_array().unwrap().iter().collect();
        assert_eq!(ten, shown, "{side}");
    }
    // Of its 46 trades 35 have no fill: they were with hidden orders, and are trades all the same.
    let trades = folder.file("trades.csv", "");
    let words = [
        "export",
        orders.to_str().unwrap(),
        "--schema",
        "trades",
        "--out",
        trades.to_str().unwrap(),
    ];
    let exported = run(&words);
    assert_eq!(exported.status.code(), Some(0), "{}", text(&exported.stderr));
    assert_eq!(text(&file_bytes(&trades)).lines().count(), 1 + 46);
    // A row that no state of the book is like is an error.
    let mut wrong = levels;
    let size = 48 + 16;
    let last = wrong.len() - Mbp10::SIZE;
    wrong[last + size] ^= 1;
    wrong[last - Mbp10::SIZE + size] ^= 1;
    wrong[last - 2 * Mbp10::SIZE + size] ^= 1;
    let wrong = folder.file("wrong.dbn", dbn_file(2, &wrong));
    let (code, _, said) = replay(&orders, &["--check", wrong.to_str().unwrap()]);
    assert!(
        code == Some(1) && said.contains("rows differ from the books"),
        "{said}"
    );
}

/// Real files of orders, with their symbols from the metadata: the future's day from its snapshot on.
#[tickwire_testdata::recorded_data("captures/books/cme-mbo/esh4-glbx-mdp3-20231225.mbo.dbn.zst")]
#[test]
fn a_real_dbn_file_gives_a_live_book_with_its_symbol() {
    let file = captures("books/cme-mbo/esh4-glbx-mdp3-20231225.mbo.dbn.zst");
    let (code, result, said) = replay(&file, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&result["state"], &result["packets"]),
        (&"Live".into(), &68_792.into())
    );
    let book = &result["books"]["ESH4"];
    assert_eq!(book["bids"][0]["price"], "4810.00", "{:#}", result["counters"]);
    assert_eq!(book["asks"][0]["price"], "4810.25");
    assert_eq!(result["counters"]["book_rejects"], 0);
}

/// Every public file of every version and schema is read whole, and the records that are known here with all
/// their bytes.
#[tickwire_testdata::recorded_data("captures/dbn")]
#[test]
fn dbn_files_of_every_version_decode_to_the_last_byte() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut folders = vec![captures("dbn")];
    folders.extend(["GLBX.MDP3", "OPRA.PILLAR", "XNAS.ITCH"].map(|folder| captures("dbn").join(folder)));
    for folder in folders {
        for file in std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            let name = file.file_name().unwrap().to_str().unwrap().to_string();
            // Fragments have no metadata, the old form (.dbz) is another one.
            if !file.is_file() || name.contains(".frag") || name.ends_with(".dbz") {
                continue;
            }
            let output = run(&["decode", file.to_str().unwrap()]);
            // A day without a bar is a file without a record: nothing was decoded, which is no success.
            let is_empty = output.stdout.is_empty();
            assert_eq!(
                output.status.code(),
                Some(i32::from(is_empty)),
                "{name}: {}",
                text(&output.stderr)
            );
            assert!(!is_empty || name.contains("ohlcv"), "{name} is empty");
            for line in text(&output.stdout).lines() {
                let record: Value = serde_json::from_str(line).expect(line);
                let message = record["Message"].as_str().unwrap();
                let known = ["Mbo", "Mbp", "Trade", "InstrumentDef"];
                if known.iter().any(|known| message.starts_with(known)) {
                    assert!(record.get("UnreadBytes").is_none(), "{name}: {line}");
                }
                if message.starts_with("InstrumentDef") {
                    let symbol = record["raw_symbol"].as_str().unwrap();
                    assert!(!symbol.is_empty() && symbol.is_ascii(), "{name}: {line}");
                    let exchange = record["exchange"].as_str().unwrap();
                    assert!(
                        exchange.len() == 4 && exchange.bytes().all(|b| b.is_ascii_uppercase()),
                        "{name}: {line}"
                    );
                    let increment = &record["min_price_increment"];
                    assert!(
                        increment.is_null() || increment.as_f64().unwrap() >= 0.0,
                        "{name}: {line}"
                    );
                }
                *counts.entry(message.to_string()).or_default() += 1;
            }
        }
    }
    println!("{counts:?}");
    for message in [
        "MboMsg",
        "Mbp1Msg",
        "Mbp10Msg",
        "InstrumentDefMsgV1",
        "InstrumentDefMsgV2",
        "InstrumentDefMsg",
    ] {
        assert!(
            counts.get(message).is_some_and(|count| *count > 0),
            "{message}: {counts:?}"
        );
    }
}

/// LOBSTER's own order books, row by row, from `replay` itself.
#[tickwire_testdata::recorded_data("captures/books/lobster")]
#[test]
fn the_books_of_lobster_messages_equal_its_order_book_after_every_message() {
    for (stem, levels, rows) in [
        ("AAPL_first1000", 10, 998),
        ("AMZN_2012-06-21_34200000_57600000", 1, 57_515),
    ] {
        let file = |kind: &str| captures("books/lobster").join(format!("{stem}_{kind}_{levels}.csv"));
        let (code, result, said) = replay(
            &file("message"),
            &["--check", file("orderbook").to_str().unwrap()],
        );
        assert_eq!(code, Some(0), "{stem}: {said}");
        let check = &result["check"];
        assert!(check["rows"].as_u64() >= Some(rows), "{stem}: {check:#}");
        assert_eq!(check["rows"], check["equal"], "{stem}: {check:#}");
        let (follow, taken) = (
            check["levels_that_follow_from_events"].as_u64(),
            check["levels_taken_from_rows"].as_u64(),
        );
        assert!(follow > taken.map(|n| 4 * n), "{stem}: {check:#}");
        println!("{stem}: {check}");
        // Without the rows, events about orders entered before the file begins are counted, and the book is
        // said to be partial.
        let (_, alone, _) = replay(&file("message"), &[]);
        assert_eq!(alone["state"], "Building");
        assert!(alone["events_of_orders_before_the_recording"].as_u64() > Some(0));
        let decoded = run(&["decode", file("message").to_str().unwrap(), "--limit", "3"]);
        assert!(
            text(&decoded.stdout).contains("\"Message\":\""),
            "{}",
            text(&decoded.stderr)
        );
    }
}

/// `feed --replay … --exit` says what it played, and leaves nothing behind but its own folder.
#[test]
fn a_played_feed_ends_with_a_summary_and_writes_nothing_unasked() {
    let folder = Folder::new("feed-exit");
    let capture = folder.0.join("day.pcap");
    let config = workspace().join("examples/equities.toml");
    write(&config, &capture, "3000");
    let here = folder.0.join("here");
    std::fs::create_dir(&here).unwrap();
    let output = common::tickwire()
        .args(["feed", "-c", config.to_str().unwrap(), "--folder"])
        .arg(folder.0.join("region"))
        .arg("--replay")
        .arg(&capture)
        .args(["--speed", "max", "--exit"])
        .current_dir(&here)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("messages lost") && said.contains("bzx"), "{said}");
    assert!(
        said.lines()
            .last()
            .is_some_and(|last| last.contains("packets into") && last.contains("live")),
        "{said}"
    );
    let left: Vec<_> = std::fs::read_dir(&here)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Two frames of which the capture has only the beginning: what they carried is lost, whoever plays them.
#[test]
fn frames_that_cannot_be_read_are_named_and_are_an_error() {
    let folder = Folder::new("cut-frames");
    let capture = folder.0.join("day.pcap");
    let config = workspace().join("examples/equities.toml");
    write(&config, &capture, "3000");
    let mut bytes = std::fs::read(&capture).unwrap();
    let first = 24..40;
    for _ in 0..2 {
        // The header of the first record, but 20 bytes captured of a frame of 200.
        let times = bytes[first.start..first.start + 8].to_vec();
        bytes.extend(times);
        bytes.extend(20_u32.to_le_bytes());
        bytes.extend(200_u32.to_le_bytes());
        let head = bytes[first.end..first.end + 20].to_vec();
        bytes.extend(head);
    }
    std::fs::write(&capture, bytes).unwrap();
    let (capture, config) = (capture.to_str().unwrap(), config.to_str().unwrap());
    let region = folder.0.join("region");
    let region = region.to_str().unwrap();
    for args in [
        &["replay", capture][..],
        &["replay", capture, "-c", config],
        &[
            "feed", "-c", config, "--folder", region, "--replay", capture, "--speed", "max", "--exit",
        ],
    ] {
        let output = run(args);
        let (shown, said) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(
            shown.contains(", 2 cut off by the snap length"),
            "{args:?}: {shown}"
        );
        assert!(
            said.contains("2 of ") && said.contains("frames could not be read: 2 cut off"),
            "{args:?}: {said}"
        );
    }
    let (code, result, _) = replay(Path::new(capture), &[]);
    assert_eq!(code, Some(1));
    assert_eq!(result["frames_lost"], 2);
}

#[test]
fn a_recording_in_which_there_is_nothing_is_said_to_be_empty() {
    let folder = Folder::new("empty");
    let dbn = folder.file("empty.dbn", dbn_file(0, &[]));
    let mut header = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    header.extend([0; 8]);
    header.extend(65_535_u32.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    let pcap = folder.file("empty.pcap", header);
    for command in ["replay", "decode"] {
        for (file, kind) in [
            (&dbn, "is a DBN file of version 3 without a record"),
            (&pcap, "is a packet capture without a frame"),
        ] {
            let output = run(&[command, file.to_str().unwrap()]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{command}: {said}");
            assert!(
                said.contains(kind) && !said.contains("protocol"),
                "{command}: {said}"
            );
        }
    }
}
