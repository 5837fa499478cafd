//! The demo as a user runs it: two processes, real multicast, real orders; good ends and bad ones.

mod common;
#[path = "common/onload.rs"]
mod onload;

use common::{Cable, Folder, Guard, free_ports, lives, run, signal, status, text, tickwire};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tickwire_runtime::affinity::CORES_VARIABLE;

fn assert_good(output: &Output, folder: &Folder) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}\n{err}", output.status);
    assert!(out.starts_with("PASSED: "), "the result comes first\n{out}");
    assert!(
        out.contains("books: equal") && out.contains("every one accounted for"),
        "{out}"
    );
    let html = std::fs::read_to_string(folder.0.join("report.html")).expect("a report");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("<svg"));
    assert!(
        !html.contains("http://")
            || html
                .matches("http://")
                .all(|_| html.contains("http://www.w3.org/2000/svg"))
    );
}

#[test]
fn books_agree_and_orders_are_accounted_for_on_clean_lines() {
    let folder = Folder::new("clean");
    let mut demo = tickwire();
    demo.args(["demo", "--seconds", "2", "--dir", folder.0.to_str().unwrap()]);
    // As on a machine of its own, whatever other tests are told.
    let output = demo
        .env_remove(CORES_VARIABLE)
        .output()
        .expect("the program starts");
    assert_good(&output, &folder);
    let out = text(&output.stdout);
    for stage in [
        "receive", "decode", "book", "decide", "encode", "send", "total", "outside",
    ] {
        assert!(out.contains(stage), "no line for {stage}\n{out}");
    }
    assert!(!out.contains("packets_a"), "counters only with --verbose\n{out}");
    // Pinned before it chose: it still knows how many cores there are.
    let cores = common::cores();
    let how = if cores > 1 {
        "spins (auto: "
    } else {
        "sleeps in poll (auto: "
    };
    assert!(out.contains(how), "{cores} cores\n{out}");
}

/// Under Onload the sockets are another library's: what it does not know must not be needed.
#[test]
fn the_demo_needs_nothing_of_sockets_that_onload_does_not_know() {
    let folder = Folder::new("onload");
    let stand_in = match onload::StandIn::new(&folder.0) {
        Ok(stand_in) => stand_in,
        Err(why) => return tickwire_testdata::not_tested(&why),
    };
    let mut demo = tickwire();
    demo.args(["demo", "--seconds", "2", "--dir", folder.0.to_str().unwrap()]);
    let output = stand_in.before(&mut demo).output().expect("the program starts");
    assert_good(&output, &folder);
    assert!(
        stand_in.refused().contains("SO_MEMINFO"),
        "the library was not in front of the sockets"
    );
}

#[test]
fn books_agree_with_loss_duplication_and_reordering_on_both_lines() {
    for seed in ["11", "12"] {
        let folder = Folder::new(&format!("loss-{seed}"));
        let mut args = vec![
            "demo",
            "--seconds",
            "2",
            "--seed",
            seed,
            "--dir",
            folder.0.to_str().unwrap(),
        ];
        args.extend([
            "--verbose",
            "--loss",
            "0.05",
            "--duplicate",
            "0.02",
            "--reorder",
            "0.02",
        ]);
        let output = tickwire()
            .args(&args)
            .env(CORES_VARIABLE, "1")
            .output()
            .expect("the program starts");
        assert_good(&output, &folder);
        let how = "sleeps in poll (auto: there is no core for each of 2 busy threads, only 1 core)";
        assert!(text(&output.stdout).contains(how), "{}", text(&output.stdout));
        let recovered = text(&output.stdout).lines().any(|l| {
            let mut words = l.split_whitespace();
            words.next() == Some("messages_recovered") && words.next() != Some("0")
        });
        assert!(recovered, "no message was recovered\n{}", text(&output.stdout));
    }
}

#[test]
fn one_core_is_enough() {
    let folder = Folder::new("one-core");
    let output = Command::new("taskset")
        .args([
            "-c",
            "0",
            env!("CARGO_BIN_EXE_tickwire"),
            "demo",
            "--seconds",
            "2",
            "--loss",
            "0.01",
            "--dir",
        ])
        .arg(&folder.0)
        .output()
        .expect("taskset of util-linux is there");
    assert_good(&output, &folder);
}

/// Starts a demo that outlasts all patience; the process ids of demo, exchange and trader once both run.
fn long_demo(folder: &Folder) -> (Guard, [u32; 2], BufReader<std::process::ChildStderr>) {
    let mut child = tickwire()
        .args(["demo", "--seconds", "600", "--dir"])
        .arg(&folder.0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut err = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    err.read_line(&mut line).expect("the demo says what it starts");
    let pids: Vec<u32> = line
        .split("pid ")
        .skip(1)
        .filter_map(|s| s.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .collect();
    let pids = <[u32; 2]>::try_from(pids).unwrap_or_else(|_| panic!("two process ids in {line:?}"));
    std::thread::sleep(Duration::from_millis(1500));
    (Guard(child), pids, err)
}

/// What the demo said at its end, its exit code; nothing may be left running.
fn ended(mut demo: Guard, pids: [u32; 2], mut err: BufReader<std::process::ChildStderr>) -> (i32, String) {
    let status = demo.wait(PATIENCE).expect("the demo ends by itself");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut err, &mut said).expect("readable");
    all_end(pids);
    (status.code().unwrap_or(-1), said)
}

/// Both processes end. A trader that shares its core with other tests takes seconds for what takes
/// milliseconds alone.
fn all_end(pids: [u32; 2]) {
    let begun = Instant::now();
    while let Some(pid) = pids.into_iter().find(|pid| lives(*pid)) {
        assert!(begun.elapsed() < PATIENCE, "process {pid} is still running");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_exchange_ends_the_demo_with_a_reason() {
    let folder = Folder::new("kill-exchange");
    let (demo, pids, err) = long_demo(&folder);
    signal("KILL", pids[0]);
    let (code, said) = ended(demo, pids, err);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("the exchange ended early (killed by signal 9)")
            || said.contains("closed the order entry connection"),
        "{said}"
    );
}

#[test]
fn a_killed_trader_ends_the_demo_with_a_reason() {
    let folder = Folder::new("kill-trader");
    let (demo, pids, err) = long_demo(&folder);
    signal("KILL", pids[1]);
    let (code, said) = ended(demo, pids, err);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("the trade ended early (killed by signal 9)") || said.contains("connection was lost"),
        "{said}"
    );
}

#[test]
fn ctrl_c_ends_everything_cleanly() {
    let folder = Folder::new("ctrl-c");
    let (demo, pids, err) = long_demo(&folder);
    signal("INT", demo.0.id());
    let (code, said) = ended(demo, pids, err);
    assert_eq!(code, 130, "{said}");
    assert!(said.contains("interrupted"), "{said}");
}

#[test]
fn children_do_not_outlive_a_killed_demo() {
    let folder = Folder::new("kill-parent");
    let (mut demo, pids, _err) = long_demo(&folder);
    signal("KILL", demo.0.id());
    demo.wait(PATIENCE).expect("killed");
    all_end(pids);
}

/// Both sides on their own, from one file; no retransmission request is ever answered, so only a snapshot
/// helps.
#[test]
fn unanswered_requests_lead_to_a_snapshot_and_right_books() {
    let folder = Folder::new("snapshot");
    let [a, b, retransmission, snapshot, orders] = free_ports();
    let config = folder.file(
        "both.toml",
        format!(
            r#"
[[feed]]
venue = "nasdaq"
session = "SNAPSHOT01"
[[feed.channel]]
name = "1"
live = {{ a = "239.192.77.1:{a}", b = "239.192.77.2:{b}" }}
requests = "127.0.0.1:{retransmission}"
snapshot_server = "127.0.0.1:{snapshot}"
[receiver]
request_timeout_ms = 5
request_attempts = 2
[order_entry]
address = "127.0.0.1:{orders}"
[exchange]
duration_s = 3.0
rate = 10000
symbols = 50
start_on_logon = true
answer_requests = 0.0
line_a = {{ loss = 0.05 }}
line_b = {{ loss = 0.05 }}
"#
        ),
    );
    let side = |name: &str| {
        let child = tickwire()
            .args([name, "-c"])
            .arg(&config)
            .arg("--results")
            .arg(&folder.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        Guard(child)
    };
    let mut exchange = side("exchange");
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", orders)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the exchange does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut trader = side("trade");
    for (name, guard) in [("trader", &mut trader), ("exchange", &mut exchange)] {
        let status = guard
            .wait(Duration::from_secs(40))
            .unwrap_or_else(|| panic!("the {name} does not end"));
        let mut said = String::new();
        std::io::Read::read_to_string(&mut guard.0.stderr.take().expect("piped"), &mut said)
            .expect("readable");
        assert!(status.success(), "{name}: {status:?} {said}");
    }
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).expect(name);
    assert_eq!(
        read("books-exchange.txt"),
        read("books-trader.txt"),
        "the books differ"
    );
    let results: serde_json::Value = serde_json::from_str(&read("trader.json")).expect("JSON");
    assert!(
        results["counters"]["snapshots"].as_u64() > Some(0),
        "{}",
        results["counters"]
    );
    assert!(
        results["counters"]["messages_lost"].as_u64() > Some(0),
        "{}",
        results["counters"]
    );
}

#[test]
fn a_quoter_and_the_exchange_agree_on_what_traded() {
    agree_on_what_traded("mass-quotes");
}

#[test]
fn they_agree_where_quotes_are_orders() {
    agree_on_what_traded("orders");
}

fn agree_on_what_traded(entry: &str) {
    let folder = Folder::new(&format!("demo-quoter-{entry}"));
    let dir = folder.0.to_str().expect("a path of text");
    let verbose: &[&str] = if entry == "orders" { &["--verbose"] } else { &[] };
    let args = [
        "demo",
        "quoter",
        "--entry",
        entry,
        "--symbols",
        "16",
        "--rate",
        "4000",
        "--seconds",
        "5",
        "--dir",
        dir,
    ];
    let output = run(&[&args[..], verbose].concat());
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}{complained}");
    if said.contains("note: the eye came too late") {
        tickwire_testdata::not_tested("the eye of the demonstration, which came too late for everything");
    }
    assert!(
        said.contains("16 options quoted") && said.contains("positions and cash agree"),
        "{said}"
    );
    // The result is the first thing said; what was counted, and the positions, only when they are asked for.
    let first = said.lines().next().unwrap_or_default();
    let is_verbose = entry == "orders";
    assert!(
        first.starts_with("exchange: ") && first.contains("agree"),
        "{said}"
    );
    assert!(said.contains("P&L ") && said.contains("loss limit"), "{said}");
    for counted in ["quote messages", "ladders made", "\npositions"] {
        assert_eq!(said.contains(counted), is_verbose, "{counted}: {said}");
    }
}

/// Patience with a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// A quoter of its own, with a folder of what outlives it.
fn start_quoter(config: &Path, results: &Path) -> Guard {
    let child = tickwire()
        .args(["quote", "-c"])
        .arg(config)
        .arg("--results")
        .arg(results)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    Guard(child)
}

/// Fills that a file has, by what traded.
fn fills(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("fill,"));
    lines.map(str::to_string).collect()
}

/// Bought less sold, of a pair in a results file.
fn net(traded: &serde_json::Value) -> i64 {
    traded[0].as_i64().expect("a number") - traded[1].as_i64().expect("a number")
}

/// An exchange of options that trades for an hour, and a cable to its order entry.
struct Venue {
    exchange: Guard,
    cable: Cable,
    /// What a quoter of it is configured with, whose orders go by the cable.
    config: toml::Table,
    /// What it tells its terminal.
    complaints: PathBuf,
}

impl Venue {
    fn start(folder: &Folder) -> Venue {
        let dir = folder.0.to_str().expect("a path of text");
        // Its configuration: options of these days, ports that are free.
        run(&[
            "demo",
            "quoter",
            "--symbols",
            "8",
            "--rate",
            "4000",
            "--seconds",
            "1",
            "--dir",
            dir,
        ]);
        let left = folder.0.join("quote.toml");
        let left = std::fs::read_to_string(left).expect("the demonstration has left it");
        let mut config: toml::Table = left.parse().expect("a configuration");
        for section in ["exchange", "quoter"] {
            config[section]["core"] = (-1).into();
        }
        config["exchange"]["duration_s"] = 3600.0.into();
        config["exchange"]
            .as_table_mut()
            .expect("a section")
            .insert("control".into(), "desk".into());
        config["quoter"]
            .as_table_mut()
            .expect("a section")
            .insert("state".into(), "state".into());
        let venue_config = folder.file("venue.toml", config.to_string());
        let address = config["order_entry"]["address"].as_str().expect("an address");
        let port = address.rsplit(':').next().expect("a port");
        let cable = Cable::to(port.parse().expect("a port"));
        config["order_entry"]["address"] = format!("127.0.0.1:{}", cable.port).into();
        let complaints = folder.0.join("venue-complaints");
        let exchange = tickwire()
            .args(["exchange", "-c"])
            .arg(&venue_config)
            .arg("--results")
            .arg(&folder.0)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&complaints).expect("a file"))
            .spawn()
            .expect("the program starts");
        Venue {
            exchange: Guard(exchange),
            cable,
            config,
            complaints,
        }
    }

    /// What it told its terminal.
    fn said(&self) -> String {
        std::fs::read_to_string(&self.complaints).expect("what it said")
    }
}

#[test]
fn a_quoter_that_finds_no_way_back_ends_with_code_4_and_says_how_often_it_tried() {
    let folder = Folder::new("lost-quoter");
    let Venue {
        exchange: _exchange,
        cable,
        mut config,
        ..
    } = Venue::start(&folder);
    config["quoter"]["limits"]
        .as_table_mut()
        .expect("a section")
        .extend([
            ("reconnects_max".to_string(), 3.into()),
            ("reconnect_ms".to_string(), 10.into()),
        ]);
    let config = folder.file("lost.toml", config.to_string());
    let quoting = |complaints: &Path| {
        let complaints = std::fs::File::create(complaints).expect("a file");
        let child = tickwire()
            .args(["quote", "-c"])
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(complaints)
            .spawn();
        Guard(child.expect("the program starts"))
    };
    let complaints = folder.0.join("complaints");
    let mut quoter = quoting(&complaints);
    let kept = folder.0.join("state/fills");
    let begun = Instant::now();
    while fills(&kept).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "nothing was traded");
        if quoter.0.try_wait().expect("a child can be waited for").is_some() {
            // It came before the exchange listened.
            quoter = quoting(&complaints);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    cable.unplug();
    let status = quoter.wait(PATIENCE).expect("it ends");
    let said = std::fs::read_to_string(&complaints).expect("what it said");
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(
        said.contains("3 attempts to take the session up again failed"),
        "{said}"
    );
}

/// Waits until something is so.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A venue with a quoter that quotes, both to be asked.
struct Quoting {
    venue: Venue,
    quoter: Guard,
    desk: PathBuf,
    complaints: PathBuf,
    folder: Folder,
}

impl Quoting {
    fn start(name: &str) -> Quoting {
        let folder = Folder::new(name);
        let venue = Venue::start(&folder);
        let config = folder.file("quoting.toml", venue.config.to_string());
        let complaints = folder.0.join("complaints");
        let start = || {
            let complaints = std::fs::File::create(&complaints).expect("a file");
            let child = tickwire()
                .args(["quote", "-c"])
                .arg(&config)
                .stdout(Stdio::null())
                .stderr(complaints)
                .spawn();
            Guard(child.expect("the program starts"))
        };
        let mut quoting = Quoting {
            venue,
            quoter: start(),
            desk: folder.0.join("desk"),
            complaints: complaints.clone(),
            folder,
        };
        wait_for("a quote at the venue", || {
            if quoting.quoter.0.try_wait().expect("a child").is_some() {
                // It came before the exchange listened.
                quoting.quoter = start();
            }
            (quoting.of_quoter("quoted_sides") > 0).then_some(())
        });
        quoting
    }

    /// What the exchange says of the quoter's session.
    fn of_quoter(&self, what: &str) -> u64 {
        let status = status(&self.desk).unwrap_or_default();
        let clients = status["clients"].as_array().cloned().unwrap_or_default();
        let own = clients.iter().find(|client| client["name"] == "QUOTER");
        own.map_or(0, |own| own[what].as_u64().expect("a number"))
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.complaints).expect("what it said")
    }

    /// Ctrl-C; what it said in all.
    fn stop(mut self) -> String {
        signal("INT", self.quoter.0.id());
        let ended = self.quoter.wait(PATIENCE).expect("it ends");
        let said = self.said();
        assert_eq!(ended.code(), Some(130), "{said}");
        assert_eq!(self.of_quoter("quoted_sides"), 0, "{said}");
        // It left by itself: nobody is blamed for that.
        assert!(said.contains("every quote was cancelled"), "{said}");
        assert!(!said.contains("closed the connection"), "{said}");
        signal("INT", self.venue.exchange.0.id());
        self.venue.exchange.wait(PATIENCE).expect("it ends");
        said
    }
}

#[test]
fn a_quoter_that_is_stopped_has_nothing_live_and_says_why_when_it_goes_on() {
    let quoting = Quoting::start("stopped-quoter");
    signal("STOP", quoting.quoter.0.id());
    let begun = Instant::now();
    wait_for("an empty book", || {
        (quoting.of_quoter("quoted_sides") + quoting.of_quoter("orders") == 0).then_some(())
    });
    eprintln!(
        "nothing is live {:.2} s after the quoter was stopped; heartbeats are every second",
        begun.elapsed().as_secs_f64()
    );
    let heard = quoting.venue.said();
    assert!(
        heard.contains("client QUOTER: heartbeats missed") && heard.contains("quoted instruments cancelled"),
        "{heard}"
    );
    let traded = quoting.of_quoter("traded");
    let messages = |quoting: &Quoting| {
        status(&quoting.desk).expect("it answers")["messages"]
            .as_u64()
            .expect("a number")
    };
    let before = messages(&quoting);
    wait_for("more of the market", || {
        (messages(&quoting) > before + 4_000).then_some(())
    });
    assert_eq!(
        quoting.of_quoter("traded"),
        traded,
        "it traded while it was stopped"
    );
    signal("CONT", quoting.quoter.0.id());
    wait_for("quotes again", || {
        (quoting.of_quoter("quoted_sides") > 0).then_some(())
    });
    let said = wait_for("what it says of it", || {
        let said = quoting.said();
        (said.contains("Stall") && said.contains("connected again")).then_some(said)
    });
    assert!(said.contains("the quoting thread did not run for"), "{said}");
    let own = status(&quoting.folder.0).expect("it answers");
    assert!(own["pulls"]["Stall"].as_u64() >= Some(1), "{own}");
    quoting.stop();
}

#[test]
fn a_quoter_that_hears_no_market_data_pulls_waits_and_goes_on() {
    let quoting = Quoting::start("silent-venue");
    let own = || status(&quoting.folder.0).expect("it answers");
    signal("STOP", quoting.venue.exchange.0.id());
    let pulled = wait_for("a pull", || {
        let own = own();
        (own["pulls"]["Silence"].as_u64() >= Some(1) && own["state"] != "quoting").then_some(own)
    });
    // Where the quoter waits for a processor itself, it says that of the pull.
    let reasons = ["Silence", "NoSession", "Stall"];
    assert!(reasons.iter().any(|known| pulled["reason"] == *known), "{pulled}");
    let said = wait_for("what it says of it", || {
        let said = quoting.said();
        said.contains("Silence: no packet of the underlying's channel for")
            .then_some(said)
    });
    signal("CONT", quoting.venue.exchange.0.id());
    wait_for("quotes again", || {
        (own()["state"] == "quoting" && quoting.of_quoter("quoted_sides") > 0).then_some(())
    });
    assert!(!said.contains("not even a heartbeat"), "{said}");
    quoting.stop();
}

#[test]
fn a_quoter_that_is_cut_off_and_killed_again_and_again_holds_what_the_exchange_says() {
    let folder = Folder::new("killed-quoter");
    let dir = folder.0.to_str().expect("a path of text");
    let Venue {
        mut exchange,
        cable,
        mut config,
        ..
    } = Venue::start(&folder);
    let by_mass_quotes = folder.file("killed.toml", config.to_string());
    config["quoter"]
        .as_table_mut()
        .expect("a section")
        .insert("entry".into(), "orders".into());
    let by_orders = folder.file("killed-orders.toml", config.to_string());
    let read = |name: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(folder.0.join(name)).expect("results");
        serde_json::from_str(&text).expect("results are JSON")
    };
    let kept = folder.0.join("state/fills");
    let kills = common::times(4) as usize;
    for life in 0..=kills {
        let before = fills(&kept).len();
        let mut is_cut = false;
        let begun = Instant::now();
        // What one kind of process has traded, the other one takes up.
        let config = if life % 2 == 0 {
            &by_mass_quotes
        } else {
            &by_orders
        };
        let mut quoter = start_quoter(config, &folder.0);
        while fills(&kept).len() < before + 12 {
            if !is_cut && fills(&kept).len() >= before + 6 {
                cable.cut();
                is_cut = true;
            }
            assert!(begun.elapsed() < PATIENCE, "life {life}: nothing more was traded");
            if let Some(status) = quoter.0.try_wait().expect("a child can be waited for") {
                // It may have come before the exchange listened.
                assert!(life == 0, "life {life}: it ended: {status}");
                quoter = start_quoter(config, &folder.0);
            }
            // An answer that a busy machine gave too late is no end: an operator resumes.
            if status(&folder.0).is_some_and(|own| own["reason"] == "LateAnswer") {
                let _ = run(&["quote", "--tell", "resume", "--socket", dir]);
            }
            let _ = run(&["quote", "--tell", "eye-on", "--socket", dir]);
            std::thread::sleep(Duration::from_millis(20));
        }
        if life < kills {
            quoter.0.kill().expect("it can be killed");
            quoter.0.wait().expect("a child can be waited for");
        } else {
            let risk = run(&["risk", "--socket", dir, "--format", "text,csv,html", "--out", dir]);
            let (said, complained) = (text(&risk.stdout), text(&risk.stderr));
            assert_eq!(risk.status.code(), Some(0), "{said}{complained}");
            assert!(
                said.contains("Limits in use") && said.contains("Mark-outs"),
                "{said}"
            );
            let positions = std::fs::read_to_string(folder.0.join("positions.csv")).expect("a table");
            assert!(positions.lines().count() > 1, "{positions}");
            assert!(folder.0.join("risk.html").exists());
            signal("INT", quoter.0.id());
            let status = quoter.wait(PATIENCE).expect("it ends");
            assert_eq!(status.code(), Some(130), "every quote cancelled");
        }
    }
    signal("INT", exchange.0.id());
    exchange.wait(PATIENCE).expect("it ends");
    let (venue, own) = (read("exchange.json"), read("quoter.json"));
    let of = |rows: &serde_json::Value, symbol: &serde_json::Value| -> i64 {
        let rows = rows.as_array().expect("rows").iter();
        rows.filter(|row| row["firm"] == 1 && row["symbol"] == *symbol)
            .map(|row| net(&row["traded"]))
            .sum()
    };
    let mut total = 0;
    for (row, counted) in own["quotes"]
        .as_array()
        .expect("rows")
        .iter()
        .zip(own["priced"]["positions"].as_array().expect("positions"))
    {
        let quotes = of(&venue["quotes"], &row["symbol"]);
        let orders = of(&venue["orders_traded"], &row["symbol"]);
        let both = row["position"].as_i64().zip(row["eye"].as_i64());
        let both = both.map(|(quotes, eye)| quotes + eye);
        assert_eq!(both, Some(quotes + orders), "{}", row["symbol"]);
        assert_eq!(counted.as_i64(), Some(quotes + orders), "{}", row["symbol"]);
        total += quotes.abs() + orders.abs();
    }
    assert!(total > 0, "nothing was traded, so nothing was compared");
    let hedges = of(&venue["orders_traded"], &own["underlying"]);
    assert_eq!(own["priced"]["underlying"], hedges, "hedges");
    // Each once, whatever was sent again.
    let mut names: Vec<String> = fills(&kept)
        .iter()
        .map(|line| line.split(',').nth(9).expect("an ExecID").to_string())
        .collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}
