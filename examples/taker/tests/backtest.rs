//! The example as a user has it: a capture, a backtest, parameters that are wrong.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tickwire-test-taker-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn taker(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_taker")).args(arguments).output();
    output.expect("the example runs")
}

fn told(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn parameters() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("strategy.toml")
        .to_string_lossy()
        .into_owned()
}

fn backtest(capture: &str, more: &[&str]) -> Value {
    let config = parameters();
    let mut arguments = vec!["backtest", "-c", &config, "--json", capture];
    arguments.extend(more);
    let output = taker(&arguments);
    assert!(output.status.success(), "{}", told(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_backtest_is_the_same_each_time_and_obeys_parameters_limits_and_latency() {
    let folder = Folder::new("same");
    let capture = folder.file("sample.pcap");
    let sample = taker(&["sample", &capture]);
    assert!(sample.status.success(), "{}", told(&sample));
    let first = backtest(&capture, &[]);
    assert_eq!(first, backtest(&capture, &[]));
    let number = |value: &Value, name: &str| {
        value[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name} in {value:#}"))
    };
    assert!(number(&first, "fills") > 5, "{first:#}");
    assert_eq!(first["fault"], Value::Null);
    assert_eq!(first["instruments"][0]["symbol"], "AAPL");
    // Every order has an end, and none was refused by the checks or unknown.
    let counters = &first["counters"];
    assert_eq!(counters["orders_acked"], first["orders"]);
    assert_eq!(counters["reports_unmatched"].as_u64().unwrap_or(0), 0);
    let other = backtest(&capture, &["--set", "lot=10", "--set", "position_max=20"]);
    assert_ne!(first["hash"], other["hash"]);
    assert!(other["instruments"][0]["position"].as_i64().expect("a position") <= 30);
    // A limit stops what is larger, by its name.
    let stopped = backtest(&capture, &["--set", "lot=5000"]);
    assert_eq!(number(&stopped, "orders"), 0);
    assert!(number(&stopped["counters"], "risk_order_size") > 0, "{stopped:#}");
    // Every fill is in the file.
    let fills = folder.file("fills.csv");
    backtest(&capture, &["--fills", &fills]);
    let text = std::fs::read_to_string(&fills).expect("the file");
    assert_eq!(text.lines().count() as u64, 1 + number(&first, "fills"));
}

#[test]
fn a_sweep_is_every_combination_each_as_if_run_alone() {
    let folder = Folder::new("sweep");
    let capture = folder.file("sample.pcap");
    assert!(taker(&["sample", &capture, "--seconds", "0.5"]).status.success());
    let all = backtest(&capture, &["--sweep", "lot=10,100", "--sweep", "edge=1,100,1000"]);
    let rows = all.as_array().expect("rows");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let sets: Vec<String> = ["lot", "edge"]
            .iter()
            .map(|name| format!("{name}={}", row["parameters"][name].as_str().expect("a value")))
            .collect();
        let alone = backtest(&capture, &["--set", &sets[0], "--set", &sets[1]]);
        assert_eq!(alone["hash"], row["hash"], "{sets:?}");
    }
}

#[test]
fn every_feed_can_be_backtested_on() {
    for feed in ["itch50", "pitch", "xdp", "openbook", "cqs", "uqdf", "mdp3"] {
        let folder = Folder::new(feed);
        let capture = folder.file("sample.pcap");
        let sample = taker(&["sample", &capture, "--feed", feed, "--seconds", "1"]);
        assert!(sample.status.success(), "{feed}: {}", told(&sample));
        let config = parameters();
        let looked = taker(&[
            "backtest",
            "-c",
            &config,
            "--json",
            "--set",
            "symbol=\"AAPL\"",
            &capture,
        ]);
        let found: Value =
            serde_json::from_slice(&looked.stdout).unwrap_or_else(|_| panic!("{feed}: {}", told(&looked)));
        assert!(found["events"].as_u64() > Some(1_000), "{feed}: {found:#}");
        assert!(found["orders"].as_u64() > Some(0), "{feed}: {found:#}");
        assert!(found["fills"].as_u64() > Some(0), "{feed}: {found:#}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let folder = Folder::new("wrong");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.0.join(name), text).expect("written");
        folder.file(name)
    };
    let fails = |arguments: &[&str], code: i32, words: &str| {
        let output = taker(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", told(&output));
        assert!(told(&output).contains(words), "{words:?} in {}", told(&output));
    };
    let lacking = write("lacking.toml", "[strategy]\nsymbol = \"AAPL\"\n");
    fails(
        &["check", "-c", &lacking],
        2,
        "lacking.toml: [strategy]: missing field `lot`",
    );
    let misspelt = write(
        "misspelt.toml",
        "[strategy]\nsymbol = \"AAPL\"\nlot = 1\nposition_max = 1\nedge = 1\nlots = 2\n",
    );
    fails(&["check", "-c", &misspelt], 2, "unknown field `lots`");
    let venue = write("venue.toml", "[backtest]\nfill = \"always\"\n");
    fails(&["check", "-c", &venue], 2, "line 2");
    fails(&["backtest", "-c", "nowhere.toml", "x.pcap"], 2, "nowhere.toml");
    let text = write("text.pcap", "no capture");
    fails(&["backtest", "-c", &parameters(), &text], 1, "text.pcap");
    fails(
        &["backtest", "-c", &parameters(), "--set", "lot", &text],
        2,
        "lot=100",
    );
    let good = taker(&["check", "-c", &parameters()]);
    assert!(
        good.status.success() && told(&good).contains("subscribes to AAPL"),
        "{}",
        told(&good)
    );
}

#[test]
fn files_of_records_are_backtested_on_and_measured_latencies_are_drawn() {
    let folder = Folder::new("records");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.0.join(name), text).expect("written");
        folder.file(name)
    };
    // LOBSTER: time, type, order, quantity, price in 0.0001, side. Our bid of 100 stands behind 50; they
    // trade, then 30 behind ours.
    let lines = "34200.0,1,1,50,1000000,1\n34200.1,1,2,80,1000200,-1\n34200.2,1,3,80,1000100,-1\n34201.0,1,4,30,1000000,1\n\
                 34202.0,4,3,10,1000100,-1\n34203.0,1,5,10,999900,1\n";
    let file = write("AAPL_2012-06-21_34200000_57600000_message_10.csv", lines);
    let found = backtest(&file, &["--set", "lot=20"]);
    // The first offer has no middle to be judged by before; the better one is bought at once.
    assert_eq!(found["fills"], 1, "{found:#}");
    assert_eq!(
        found["books_partial"], 1,
        "LOBSTER begins in mid-session: {found:#}"
    );
    assert_eq!(found["instruments"][0]["symbol"], "AAPL");
    assert_eq!(found["instruments"][0]["bought"], 20);
    // Latencies from a file: half of the orders take 5 µs, half 2 s, by which this offer has changed.
    write(
        "slow.hgrm",
        "       Value     Percentile TotalCount 1/(1-Percentile)\n\n 2000000.0 1.000000000000 4\n#[Max = 2000000.0, Total count = 4]\n",
    );
    let config = write(
        "slow.toml",
        "[strategy]\nsymbol = \"AAPL\"\nlot = 80\nposition_max = 100\nedge = 100\n[backtest]\nentry_histogram = \"slow.hgrm\"\n",
    );
    let output = taker(&["backtest", "-c", &config, "--json", &file]);
    assert!(output.status.success(), "{}", told(&output));
    let slow: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        slow["instruments"][0]["bought"], 70,
        "ten of the eighty were gone two seconds later: {slow:#}"
    );
}

/// What `--ghosts` found.
fn ghosts(config: &str, more: &[&str], files: &[&str]) -> (bool, Value) {
    let arguments = [&["backtest", "-c", config, "--json"], more, files].concat();
    let output = taker(&arguments);
    let found = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told(&output)));
    (output.status.success(), found)
}

#[test]
fn on_every_feed_that_tells_orders_a_recorded_order_entered_again_as_ours_gets_its_fills() {
    let folder = Folder::new("ghosts");
    let matching = folder.file("matching.toml");
    std::fs::write(&matching, "[backtest]\nfill = \"matching\"\n").expect("written");
    let (mut all, mut filled) = (0, 0);
    // Moscow's order log needs its layouts.
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../moex-templates.xml");
    let templates = [
        "--protocol",
        "moex",
        "--templates",
        templates.to_str().expect("a path"),
    ];
    for feed in ["itch50", "pitch", "xdp", "moex"] {
        let capture = folder.file(&format!("{feed}.pcap"));
        let sample = taker(&["sample", &capture, "--feed", feed, "--seconds", "2"]);
        assert!(sample.status.success(), "{feed}: {}", told(&sample));
        let more: &[&str] = if feed == "moex" { &templates } else { &[] };
        for (config, every) in [(&parameters(), "--ghosts=4"), (&matching, "--ghosts=1")] {
            let (is_good, found) = ghosts(config, &[&[every], more].concat(), &[&capture]);
            assert!(is_good && found["different"] == 0, "{feed}: {found:#}");
            assert!(found["ghosts"].as_u64() > Some(500), "{feed}: {found:#}");
            assert!(found["filled"].as_u64() > Some(3), "{feed}: {found:#}");
            all += found["ghosts"].as_u64().unwrap_or(0);
            filled += found["filled"].as_u64().unwrap_or(0);
        }
    }
    println!("{all} ghosts, {filled} of them filled");
    assert!(all >= 5_000, "{all} ghosts");
}

/// Recordings of real venues: LOBSTER's Amazon, with its order book, and a CME future's day in DBN. Where a
/// venue trades out of the order of price and time the ghost and its order differ; few do, and of each the
/// recording itself shows that it is such a case.
#[tickwire_testdata::recorded_data("captures/books/lobster", "captures/books/cme-mbo")]
#[test]
fn ghosts_of_recorded_orders_get_their_fills_but_where_the_venue_had_another_order() {
    let recorded = |name: &str| {
        let path = tickwire_testdata::captures(&format!("books/{name}"));
        path.to_string_lossy().into_owned()
    };
    let lobster = |what: &str| recorded(&format!("lobster/AMZN_2012-06-21_34200000_57600000_{what}_1.csv"));
    let (messages, rows) = (lobster("message"), lobster("orderbook"));
    let future = recorded("cme-mbo/esh4-glbx-mdp3-20231225.mbo.dbn.zst");
    // Of Amazon's orders, four were passed by four. Of the future's, 110 left in the match event in which one
    // behind them was executed, 36 stood on; 156 were those who passed.
    let of_amazon = [("out_of_time", 4), ("passing", 4)];
    let of_future = [("left_together", 110), ("out_of_time", 36), ("passing", 156)];
    for (files, least, different, whys) in [
        (vec![messages.as_str(), &rows], [27_000, 3_400], 8, &of_amazon[..]),
        (vec![future.as_str()], [20_000, 4_700], 302, &of_future),
    ] {
        let (_, found) = ghosts(&parameters(), &["--ghosts=1"], &files);
        let number = |name: &str| {
            found[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name} in {found:#}"))
        };
        println!("{files:?}: {found}");
        assert_eq!(found["fault"], Value::Null, "{found:#}");
        assert!(
            number("ghosts") >= least[0] && number("filled") >= least[1],
            "{found:#}"
        );
        assert_eq!(number("different"), different, "{found:#}");
        let found_whys = found["whys"].as_object().expect("why they differ");
        for (why, count) in found_whys {
            let wanted = whys
                .iter()
                .find(|(wanted, _)| wanted == why)
                .map_or(0, |(_, n)| *n);
            assert_eq!(count.as_u64(), Some(wanted), "{why}: {found:#}");
        }
    }
}

#[test]
fn a_page_is_written_and_recorded_latencies_are_obeyed() {
    let folder = Folder::new("page");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.0.join(name), text).expect("written");
        folder.file(name)
    };
    let capture = folder.file("sample.pcap");
    assert!(taker(&["sample", &capture, "--seconds", "1"]).status.success());
    let page = folder.file("page.html");
    let here = backtest(&capture, &["--report", &page]);
    let text = std::fs::read_to_string(&page).expect("the page");
    for part in [
        "<svg",
        "Drawdown",
        "After fills",
        "Fills of AAPL",
        here["hash"].as_str().expect("a hash"),
    ] {
        assert!(text.contains(part), "{part:?} in the page");
    }
    let base = std::fs::read_to_string(parameters()).expect("the example's");
    let with = |line: &str| base.replace("fill = \"queue\"", &format!("{line}\nfill = \"queue\""));
    let run = |config: &str| {
        let output = taker(&["backtest", "-c", config, "--json", &capture]);
        assert!(output.status.success(), "{}", told(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    // The constants of the example, as if they had been measured.
    write(
        "same.csv",
        "time_ns,entry_ns,cancel_ns,response_ns\n0,20000,20000,20000\n",
    );
    let same = run(&write("same.toml", &with("recorded_latencies = \"same.csv\"")));
    assert_eq!(same["hash"], here["hash"]);
    write("slow.csv", "time_ns,entry_ns\n0,500000000\n");
    let slow = run(&write("slow.toml", &with("recorded_latencies = \"slow.csv\"")));
    assert_ne!(slow["hash"], here["hash"]);
    let late = run(&write("late.toml", &with("feed_ns = 50_000")));
    assert_ne!(late["hash"], here["hash"]);
    for (text, words) in [
        ("time,entry_ns\n", "\"time\" is no column"),
        ("time_ns,entry_ns\n1,2\n3,x\n", "line 3"),
        ("time_ns,entry_ns\n1\n", "line 2"),
    ] {
        write("wrong.csv", text);
        let config = write("wrong.toml", &with("recorded_latencies = \"wrong.csv\""));
        let output = taker(&["backtest", "-c", &config, &capture]);
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        assert!(told(&output).contains(words), "{words:?} in {}", told(&output));
    }
}

#[test]
fn a_sweep_that_was_cut_off_goes_on_and_takes_over_only_what_is_its_own() {
    let folder = Folder::new("resumed");
    let capture = folder.file("sample.pcap");
    assert!(taker(&["sample", &capture, "--seconds", "0.5"]).status.success());
    let kept = folder.file("sweep.jsonl");
    let sweep = [
        "--sweep",
        "lot=10,100",
        "--sweep",
        "edge=1,100",
        "--results",
        &kept,
    ];
    let first = backtest(&capture, &sweep);
    let text = std::fs::read_to_string(&kept).expect("the file");
    assert_eq!(text.lines().count(), 4);
    // Killed within the third result.
    let third = text.lines().nth(2).expect("a line");
    let cut: Vec<&str> = text.lines().take(2).chain([&third[..third.len() / 2]]).collect();
    std::fs::write(&kept, cut.join("\n")).expect("written");
    assert_eq!(backtest(&capture, &sweep), first);
    let text = std::fs::read_to_string(&kept).expect("the file");
    assert_eq!(
        text.lines().count(),
        5,
        "two that were there, one cut off, two more"
    );
    // Another configuration takes nothing over.
    let other = [&sweep[..], &["--set", "position_max=20"]].concat();
    assert_ne!(backtest(&capture, &other), first);
    assert_eq!(
        std::fs::read_to_string(&kept).expect("the file").lines().count(),
        9
    );
}
