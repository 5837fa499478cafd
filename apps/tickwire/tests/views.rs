//! The views as a user runs them: against a region that the test writes with the daemon's own writers, in
//! pipes and in a terminal.

mod common;
#[path = "common/pty.rs"]
mod pty;
#[path = "common/region.rs"]
mod region;

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use common::{run, signal, text, tickwire};
use pty::InTerminal;
use region::{Fixture, NOW};
use serde_json::Value;

/// Runs a view of a fixture's folder, which beats meanwhile as a daemon does.
fn view(fixture: &Fixture, args: &[&str]) -> Output {
    let mut command = tickwire();
    command
        .args(args)
        .args(["--folder", fixture.folder.to_str().unwrap()]);
    let mut child = command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    while child.try_wait().expect("a child can be waited for").is_none() {
        fixture.beat();
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("its output")
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn ready(name: &str) -> Fixture {
    let mut fixture = Fixture::new(name);
    fixture.write(NOW);
    fixture
}

#[test]
fn a_book_is_printed_as_text_and_as_json() {
    let fixture = ready("once");
    let output = view(&fixture, &["book", "AAPL", "--once"]);
    let said = text(&output.stdout);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    for part in [
        "consolidated book of nasdaq, bzx",
        "187.2305",
        "nasdaq 900, bzx 300",
        "SIP national",
        "ask -0.0100",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert!(!said.contains('\x1b'), "no escapes in a pipe: {said:?}");
    let output = view(&fixture, &["book", "AAPL", "--feed", "bzx"]);
    let said = text(&output.stdout);
    assert!(
        said.contains("AAPL  bzx 1 (bzx)  live  trading") && said.contains("imbalance 200 to buy"),
        "{said}"
    );
    let output = view(&fixture, &["book", "AAPL", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["super"]["best"]["bid"]["price"], "187.24");
    assert_eq!(
        json["super"]["best"]["bid"]["feeds"],
        serde_json::json!(["nasdaq", "bzx"])
    );
    assert_eq!(json["books"][0]["bids"][1]["price"], "187.2305");
    assert_eq!(json["books"][1]["auction"]["side"], "bid");
}

#[test]
fn what_is_not_there_is_said_with_what_may_have_been_meant() {
    let fixture = ready("unknown");
    let output = view(&fixture, &["book", "APPL", "--once"]);
    let said = text(&output.stderr);
    assert!(
        code(&output) == 2 && said.contains("there are books of AAPL"),
        "{said}"
    );
    let output = view(&fixture, &["book", "AAPL", "--once", "--feed", "arca"]);
    let said = text(&output.stderr);
    assert!(
        code(&output) == 2 && said.contains("feeds are nasdaq, bzx"),
        "{said}"
    );
    let output = view(&fixture, &["book", "\u{e4}", "--once"]);
    assert_eq!(code(&output), 2);
    let nowhere = ["book", "AAPL", "--once", "--folder", "/nowhere/at/all"];
    let output = run(&nowhere);
    let said = text(&output.stderr);
    assert!(code(&output) == 4 && said.contains("tickwire feed"), "{said}");
    let output = run(&["stats", "--folder", "/nowhere/at/all"]);
    assert_eq!(code(&output), 4);
    let output = run(&["subscribe", "AAPL", "--folder", "/nowhere/at/all"]);
    assert_eq!(code(&output), 4);
}

#[test]
fn the_folder_comes_from_the_environment_too() {
    let fixture = ready("variable");
    let output = tickwire()
        .args(["stats", "--interval", "0"])
        .env("TICKWIRE_FOLDER", &fixture.folder)
        .output()
        .expect("the program starts");
    let said = text(&output.stdout);
    assert!(
        code(&output) == 0 && said.contains("nasdaq 1"),
        "{said}{}",
        text(&output.stderr)
    );
}

#[test]
fn stats_and_latency_show_every_source_and_type() {
    let fixture = ready("stats");
    let output = view(&fixture, &["stats", "--interval", "0.2"]);
    let said = text(&output.stdout);
    for part in [
        "2 feeds, 2 sources: 2 live",
        "packets/s",
        "bzx     0x21",
        "subscriptions not known",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let output = view(&fixture, &["stats", "--interval", "0", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["daemon"]["state"], "ready");
    assert_eq!(json["sources"][1]["counters"]["messages"], 42);
    assert_eq!(json["sources"][0]["types"][0]["filtered"], 7);
    let output = view(&fixture, &["latency", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["all"]["count"], 4);
    assert_eq!(json["all"]["mean"], 825);
    assert_eq!(json["feeds"][0]["types"]["A"]["max"], 150);
    let output = view(&fixture, &["top", "--once", "--interval", "0.1"]);
    assert!(
        text(&output.stdout).contains("tickwire feed  ready"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn nagios_answers_by_exit_code_and_performance_data() {
    let mut fixture = Fixture::new("nagios");
    let quick = ["check", "nagios", "--interval", "0"];
    let output = run(&[&quick[..], &["--folder", fixture.folder.to_str().unwrap()]].concat());
    let said = text(&output.stdout);
    assert!(
        code(&output) == 2 && said.starts_with("TICKWIRE CRITICAL - there is no"),
        "{said}"
    );
    fixture.start(NOW);
    let output = view(&fixture, &quick);
    assert!(code(&output) == 1 && text(&output.stdout).contains("still starting"));
    fixture.write(NOW);
    let output = view(&fixture, &quick);
    let said = text(&output.stdout);
    assert!(
        code(&output) == 0 && said.starts_with("TICKWIRE OK - 2 feeds, 2 sources | 'heartbeat'=0."),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
    let output = view(&fixture, &[&quick[..], &["-w", "age=5"]].concat());
    assert!(
        code(&output) == 1 && text(&output.stdout).contains("no packet for"),
        "{}",
        text(&output.stdout)
    );
    let output = view(&fixture, &[&quick[..], &["--feed", "arca"]].concat());
    assert!(code(&output) == 3 && text(&output.stdout).starts_with("TICKWIRE UNKNOWN"));
    for wrong in [&["-w", "speed=1"][..], &["--nonsense"], &["-c", "gaps=x"]] {
        assert_eq!(code(&view(&fixture, &[&quick[..], wrong].concat())), 3);
    }
    fixture.die();
    let output = run(&[&quick[..], &["--folder", fixture.folder.to_str().unwrap()]].concat());
    assert!(
        code(&output) == 2 && text(&output.stdout).contains("is dead"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn cacti_gets_pairs_of_name_and_number() {
    let mut fixture = ready("cacti");
    let output = view(&fixture, &["check", "cacti", "--feed", "bzx"]);
    let said = text(&output.stdout);
    assert_eq!((code(&output), said.lines().count()), (0, 1), "{said}");
    let pairs: Vec<(&str, &str)> = said
        .split_whitespace()
        .map(|pair| pair.split_once(':').unwrap())
        .collect();
    assert!(
        pairs.iter().all(|(_, value)| value.parse::<u64>().is_ok()),
        "{said}"
    );
    assert!(
        pairs.contains(&("up", "1"))
            && pairs.contains(&("sources", "1"))
            && pairs.contains(&("messages", "42"))
    );
    fixture.die();
    let output = run(&["check", "cacti", "--folder", fixture.folder.to_str().unwrap()]);
    assert!(
        text(&output.stdout).starts_with("up:0 sources:U"),
        "{}",
        text(&output.stdout)
    );
}

/// A live view of a fixture in a terminal.
fn live(fixture: &Fixture, args: &[&str]) -> InTerminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickwire"));
    command
        .args(args)
        .args(["--folder", fixture.folder.to_str().unwrap()]);
    InTerminal::start(command)
}

#[test]
fn a_live_book_follows_the_daemon_through_death_and_restart_and_q_quits() {
    let mut fixture = Fixture::new("live");
    let mut terminal = live(&fixture, &["book", "AAPL", "--interval", "0.1"]);
    terminal.wait_for("Waiting for it", || {});
    fixture.start(NOW);
    terminal.wait_for("still starting", || {});
    fixture.write(NOW);
    terminal.wait_for("consolidated book of nasdaq, bzx", || fixture.beat());
    terminal.press(b"\t");
    terminal.wait_for("nasdaq 1 (nasdaq)", || fixture.beat());
    terminal.resize(40, 10);
    // Cut at the right edge.
    terminal.wait_for("…", || fixture.beat());
    fixture.die();
    terminal.wait_for("THE DAEMON IS DEAD", || {});
    terminal.wait_for("", || {});
    terminal.resize(100, 40);
    fixture.write(NOW + 1);
    terminal.wait_for("nasdaq 1 (nasdaq)", || fixture.beat());
    terminal.press(b"\x1b[Z");
    terminal.wait_for("consolidated book of nasdaq, bzx", || fixture.beat());
    terminal.press(b"q");
    let (status, restored) = terminal.end();
    assert!(status.success() && restored, "{status} {:?}", terminal.output);
}

#[test]
fn ctrl_c_and_signals_leave_the_terminal_as_it_was() {
    let fixture = ready("interrupt");
    let mut terminal = live(&fixture, &["top"]);
    terminal.wait_for("2 feeds, 2 sources", || fixture.beat());
    terminal.press(b"\x03");
    let (status, restored) = terminal.end();
    assert!(
        status.code() == Some(130) && restored,
        "{status} {:?}",
        terminal.output
    );
    for name in ["INT", "TERM"] {
        let mut terminal = live(&fixture, &["book", "AAPL"]);
        terminal.wait_for("consolidated book", || fixture.beat());
        signal(name, terminal.id());
        let (status, restored) = terminal.end();
        assert!(
            status.code() == Some(130) && restored,
            "{name} {status} {:?}",
            terminal.output
        );
    }
}

/// Processor time of a process in clock ticks, of which there are 100 a second on every Linux.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process lives");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // proc(5): utime and stime are fields 14 and 15; the list here begins with field 3.
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_live_view_costs_a_few_percent_of_a_core_at_most() {
    let fixture = ready("cost");
    let mut terminal = live(&fixture, &["book", "AAPL"]);
    terminal.wait_for("consolidated book", || fixture.beat());
    let (began, before) = (Instant::now(), ticks(terminal.id()));
    while began.elapsed() < Duration::from_secs(2) {
        fixture.beat();
        terminal.read();
    }
    let used = ticks(terminal.id()) - before;
    println!("{used} ticks of 10 ms in 2 s");
    assert!(
        used <= 20,
        "{used} ticks of 10 ms in 2 s: more than 10 % of a core, even without optimisation"
    );
    terminal.press(b"q");
    assert!(terminal.end().0.success());
}

/// Two venues and the consolidated feed, small; a session of 20 s.
fn session(metrics: u16, program: &str) -> String {
    let channel = |venue: &str, group: u8, port: u16| {
        format!(
            "[[feed]]\nvenue = \"{venue}\"\n[[feed.channel]]\nname = \"1\"\n\
             live = {{ a = \"239.192.90.{group}:{port}\", b = \"239.192.91.{group}:{port}\" }}\n"
        )
    };
    let feeds = [
        channel("nasdaq", 1, 28401),
        channel("bzx", 2, 28402),
        channel("uqdf", 3, 28403),
    ]
    .concat();
    format!(
        "{feeds}[receiver]\nmax_instruments = 64\nmax_orders = 65536\nmax_levels = 65536\n\
         [exchange]\nsymbols = 20\nrate = 3000\nduration_s = 20.0\n\
         [daemon]\nbooks = 128\nsuper_slots = 64\nring_records = 1024\nmetrics = \"127.0.0.1:{metrics}\"\nprograms = [\"{program}\"]\n"
    )
}

/// Runs a view until it says what is waited for.
fn until(what: &str, mut view: impl FnMut() -> Option<Value>) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = view() {
            return found;
        }
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A page of the daemon as it comes over the network.
fn scrape(port: u16, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("the daemon serves metrics");
    let accept = "Accept: application/openmetrics-text";
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{accept}\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, page) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    page.to_string()
}

/// The value of a sample that begins so.
fn sample(page: &str, begins: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(begins));
    let line = line.unwrap_or_else(|| panic!("no {begins} in {page}"));
    line.rsplit(' ').next().unwrap().parse().expect("a number")
}

#[test]
fn every_view_reads_a_daemon_that_plays_a_simulated_session() {
    let folder = common::Folder::new("attached");
    let [metrics] = common::free_ports();
    // A FIX engine beside it, whose region the page shows, too.
    let engine = folder.0.join("engine");
    let program = engine.to_str().unwrap();
    let config = folder.file("session.toml", session(metrics, program));
    let settings = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fix/acceptor.cfg");
    let settings = std::fs::read_to_string(settings).expect("the example");
    let [port] = common::free_ports();
    let settings = folder.file("acceptor.cfg", settings.replace("9878", &port.to_string()));
    let acceptor = tickwire()
        .args([
            "fix",
            "acceptor",
            "-c",
            settings.to_str().unwrap(),
            "--folder",
            program,
        ])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    let _acceptor = common::Guard(acceptor);
    let (config, day, place) = (
        config.to_str().unwrap(),
        folder.0.join("day.pcap"),
        folder.0.join("region"),
    );
    let (day, place) = (day.to_str().unwrap(), place.to_str().unwrap());
    let made = run(&["exchange", "-c", config, "--write-capture", day]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let daemon = tickwire()
        .args(["feed", "-c", config, "--folder", place, "--replay", day])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut daemon = common::Guard(daemon);
    let ask = |args: &[&str]| run(&[args, &["--folder", place]].concat());
    let json = |args: &[&str]| serde_json::from_slice::<Value>(&ask(args).stdout).ok();

    // Both venues and the consolidated feed are in the consolidated book.
    let book = until(
        "a consolidated book of both venues with the national best",
        || {
            let book = json(&["book", "AAPL", "--json"])?;
            let feeds = book["super"]["feeds"].as_array()?;
            let whole = ["nasdaq", "bzx"]
                .iter()
                .all(|&venue| feeds.contains(&venue.into()))
                && book["super"]["national"]["bid"].is_object()
                && book["super"]["best"]["bid"].is_object();
            whole.then_some(book)
        },
    );
    let sources: Vec<&str> = book["books"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|b| b["feed"].as_str())
        .collect();
    assert!(
        sources.contains(&"nasdaq") && sources.contains(&"bzx"),
        "{sources:?}"
    );
    let said = text(&ask(&["book", "AAPL", "--once"]).stdout);
    assert!(
        said.contains("consolidated book of") && said.contains("SIP national"),
        "{said}"
    );

    // Every source counts, and the metrics page counts the same, a little later.
    let stats = until("messages of every source", || {
        let stats = json(&["stats", "--interval", "0.5", "--json"])?;
        let all = stats["sources"].as_array()?;
        let counted = |s: &Value| s["counters"]["messages"].as_u64() > Some(0) && s["state"] == "live";
        (all.len() == 3 && all.iter().all(counted)).then_some(stats)
    });
    assert_eq!(stats["daemon"]["state"], "ready");
    assert_eq!(stats["subscriptions"], serde_json::json!(["*"]));
    assert!(
        stats["sources"][0]["latency_ns"]["count"].as_u64() > Some(0),
        "{stats}"
    );
    let page = scrape(metrics, "/metrics");
    for source in stats["sources"].as_array().unwrap() {
        let name = source["source"].as_str().unwrap();
        let feed = source["feed"].as_str().unwrap();
        let now = sample(
            &page,
            &format!("tickwire_messages_total{{feed=\"{feed}\",source=\"{name}\""),
        );
        assert!(now >= source["counters"]["messages"].as_f64().unwrap(), "{name}");
    }
    assert!(page.ends_with("# EOF\n"));
    assert_eq!(
        sample(&page, "tickwire_daemon_state{tickwire_daemon_state=\"ready\"}"),
        1.0
    );

    let programs = until("the FIX engine on the page", || {
        let said: Value = serde_json::from_str(&scrape(metrics, "/api/programs")).ok()?;
        said[0]["sources"].is_array().then_some(said)
    });
    assert_eq!(programs[0]["folder"], program);
    assert_eq!(programs[0]["sources"][0]["protocol"], "fix");

    // Healthy, and the other views have something to say.
    let output = ask(&["check", "nagios", "--interval", "0.5"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&ask(&["check", "cacti"]).stdout).starts_with("up:1 sources:3 live:3"));
    assert!(text(&ask(&["latency"]).stdout).contains("all feeds"));
    assert!(text(&ask(&["top", "--once", "--interval", "0.2"]).stdout).contains("subscribed to *"));

    // Subscriptions go over the socket and are seen by every view.
    let output = ask(&["unsubscribe", "*", "--feed", "bzx"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = ask(&["subscribe", "AAPL", "MS*", "--feed", "bzx"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let list = json(&["subscriptions", "--json", "--feed", "bzx"]).expect("JSON");
    let patterns = &list["subscriptions"][0]["patterns"];
    assert!(patterns.as_array().unwrap().contains(&"AAPL".into()), "{list}");
    assert!(text(&ask(&["subscriptions"]).stdout).contains("AAPL"));
    let output = ask(&["subscribe", "X", "--feed", "arca"]);
    assert!(
        output.status.code() == Some(2) && text(&output.stderr).contains("arca"),
        "{}",
        text(&output.stderr)
    );

    // Its end is told.
    signal("TERM", daemon.0.id());
    daemon.wait(Duration::from_secs(30)).expect("it ends");
    assert!(text(&ask(&["book", "AAPL", "--once"]).stdout).contains("THE DAEMON HAS ENDED"));
    let output = ask(&["check", "nagios", "--interval", "0"]);
    assert!(
        output.status.code() == Some(2) && text(&output.stdout).contains("has ended"),
        "{}",
        text(&output.stdout)
    );
    assert!(text(&ask(&["check", "cacti"]).stdout).starts_with("up:0"));
}
