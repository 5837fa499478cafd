//! What is live at the venue after a fault, asked from the venue: a trader that is killed by a word, a quoter that stands still with a watchdog
//! beside it and a venue that would wait for a minute.

mod common;

use common::{Folder, Guard, run, signal, tickwire};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

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

fn told(program: &str, socket: &Path, word: &str) -> Option<String> {
    let socket = socket.to_str().expect("a path of text");
    let said = run(&[program, "--tell", word, "--socket", socket]);
    said.status
        .success()
        .then(|| String::from_utf8_lossy(&said.stdout).into_owned())
}

fn status(program: &str, socket: &Path) -> Option<serde_json::Value> {
    serde_json::from_str(&told(program, socket, "status")?).ok()
}

/// Open orders and quoted sides of a client, as the exchange has them.
fn live(desk: &Path, client: &str) -> u64 {
    let said = status("exchange", desk).unwrap_or_default();
    let clients = said["clients"].as_array().cloned().unwrap_or_default();
    let own = clients.iter().find(|one| one["name"] == client);
    own.map_or(0, |own| {
        let count = |what: &str| own[what].as_u64().expect("a number");
        count("orders") + count("quoted_sides")
    })
}

fn start(folder: &Folder, word: &str, config: &Path) -> Guard {
    let complaints = std::fs::File::create(folder.0.join(format!("{word}-said"))).expect("a file");
    let child = tickwire()
        .args([word, "-c"])
        .arg(config)
        .stdout(Stdio::null())
        .stderr(complaints)
        .spawn();
    Guard(child.expect("the program starts"))
}

fn said(folder: &Folder, word: &str) -> String {
    std::fs::read_to_string(folder.0.join(format!("{word}-said"))).unwrap_or_default()
}

/// The configuration that a demonstration of a second leaves, for an hour, with a desk to ask the exchange at.
fn configured(folder: &Folder, words: &[&str], file: &str) -> toml::Table {
    let dir = folder.0.to_str().expect("a path of text");
    let words: Vec<&str> = words
        .iter()
        .copied()
        .chain(["--seconds", "1", "--dir", dir])
        .collect();
    run(&words);
    let left = std::fs::read_to_string(folder.0.join(file)).expect("the demonstration has left it");
    let mut config: toml::Table = left.parse().expect("a configuration");
    config["exchange"]["core"] = (-1).into();
    config["exchange"]["duration_s"] = 3600.0.into();
    let exchange = config["exchange"].as_table_mut().expect("a section");
    exchange.insert("control".into(), "desk".into());
    config
}

#[test]
fn a_killed_trader_has_nothing_open_and_sends_nothing_until_it_is_resumed() {
    let folder = Folder::new("kill-switch");
    let mut config = configured(&folder, &["demo", "--rate", "20000"], "trade.toml");
    config["trader"]["core"] = (-1).into();
    config["trader"]["wait"] = "poll".into();
    config["trader"]["time_in_force"] = "day".into();
    // More than is offered at a price: the rest stays in the book.
    config["trader"]["lot"] = 1000.into();
    let trader = config["trader"].as_table_mut().expect("a section");
    trader.insert("control".into(), "trader".into());
    let config = folder.file("faults.toml", config.to_string());
    let _exchange = start(&folder, "exchange", &config);
    let (desk, own) = (folder.0.join("desk"), folder.0.join("trader"));
    wait_for("the exchange", || status("exchange", &desk));
    let mut trader = start(&folder, "trade", &config);
    wait_for("an order that rests", || {
        (live(&desk, "TRADER") > 0).then_some(())
    });
    told("trade", &own, "kill").expect("it answers");
    wait_for("an empty book", || (live(&desk, "TRADER") == 0).then_some(()));
    let killed = wait_for("what it says of it", || {
        let status = status("trade", &own)?;
        (status["state"] == "killed" && status["open"] == 0).then_some(status)
    });
    assert_eq!(killed["differences"], 0, "{killed}");
    let messages = || status("exchange", &desk).expect("it answers")["messages"].as_u64();
    let before = messages().expect("a number");
    wait_for("more of the market", || {
        (messages()? > before + 10_000).then_some(())
    });
    let later = status("trade", &own).expect("it answers");
    assert_eq!(
        (&later["orders"], &later["open"]),
        (&killed["orders"], &killed["open"])
    );
    assert_eq!(live(&desk, "TRADER"), 0);
    let heard = said(&folder, "trade");
    assert!(heard.contains("cancels were sent within"), "{heard}");
    // A file kills as a word does, and nobody resumes while it is there.
    told("trade", &own, "resume").expect("it may");
    wait_for("orders again", || {
        (status("trade", &own)?["orders"].as_u64() > killed["orders"].as_u64()).then_some(())
    });
    let file = folder.file("tickwire.kill", String::new());
    wait_for("the kill", || {
        let status = status("trade", &own)?;
        (status["state"] == "killed" && status["open"] == 0).then_some(())
    });
    assert_eq!(told("trade", &own, "resume"), None, "the file is there");
    std::fs::remove_file(&file).expect("ours");
    // Ctrl-C leaves nothing behind either.
    told("trade", &own, "resume").expect("it may");
    wait_for("an order that rests", || {
        (live(&desk, "TRADER") > 0).then_some(())
    });
    signal("INT", trader.0.id());
    let ended = trader.wait(PATIENCE).expect("it ends");
    assert_eq!(ended.code(), Some(130), "{}", said(&folder, "trade"));
    assert_eq!(live(&desk, "TRADER"), 0, "{}", said(&folder, "trade"));
}

#[test]
fn the_watchdog_cancels_what_a_quoter_that_stands_still_or_is_gone_has_in_the_book() {
    let folder = Folder::new("watchdog");
    let words = ["demo", "quoter", "--symbols", "8", "--rate", "4000"];
    let mut config = configured(&folder, &words, "quote.toml");
    config["quoter"]["core"] = (-1).into();
    let controls = config["controls"].as_table_mut().expect("a section");
    controls.insert("beat".into(), "beat".into());
    let sessions = config["order_entry"]["session"].as_array_mut().expect("sessions");
    for session in sessions.iter_mut() {
        let session = session.as_table_mut().expect("a section");
        // The venue does nothing by itself for a minute and a half, and keeps what a lost connection leaves.
        session.insert("heartbeat_s".into(), 40.into());
        session.insert("cancel_on_disconnect".into(), false.into());
        session.insert("cancel_on_missed_heartbeats".into(), false.into());
    }
    let mut dog: toml::Table = "comp_id = \"WATCHDOG\"\nfirm = 1\ncancels_firm = true\nreset_on_logon = true"
        .parse()
        .expect("a session");
    dog.insert("version".into(), "FIX.4.4".into());
    sessions.push(toml::Value::Table(dog));
    let config = folder.file("faults.toml", config.to_string());
    let _exchange = start(&folder, "exchange", &config);
    let desk = folder.0.join("desk");
    wait_for("the exchange", || status("exchange", &desk));
    let _dog = start(&folder, "watchdog", &config);
    wait_for("the watchdog", || {
        status("exchange", &desk)?["clients"]
            .as_array()?
            .iter()
            .find(|one| one["name"] == "WATCHDOG" && one["logged_on"] == true)
            .map(|_| ())
    });
    let quoter = start(&folder, "quote", &config);
    wait_for("a quote", || (live(&desk, "QUOTER") > 0).then_some(()));
    for fault in ["STOP", "KILL"] {
        signal(fault, quoter.0.id());
        let begun = Instant::now();
        wait_for("an empty book", || (live(&desk, "QUOTER") == 0).then_some(()));
        eprintln!(
            "nothing is live {:.2} s after SIG{fault}; the venue waits for 96 s",
            begun.elapsed().as_secs_f64()
        );
        let heard = said(&folder, "watchdog");
        assert!(heard.contains("has not turned for"), "{heard}");
        if fault == "STOP" {
            signal("CONT", quoter.0.id());
            wait_for("quotes again", || (live(&desk, "QUOTER") > 0).then_some(()));
        }
    }
}
