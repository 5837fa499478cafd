//! The quoter of the example and the exchange of the example, two processes: what one says that it traded,
//! the other says too.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tickwire::config::Config;
use tickwire::demo::take_free_ports;
use tickwire_control::notice::Notice;
use tickwire_market::{Nanos, Port};
use tickwire_venues::values::{DurationS, Rate};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with the test, however that ends.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A market of 16 options on a future, and a quoter on it, for five seconds.
fn configuration() -> Config {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = Nanos(now.expect("after 1970").as_nanos() as u64);
    let text = tickwire_quoterd::demo_text(16, now).expect("16 options");
    let mut config = Config::parse(&text).expect("a configuration");
    config.exchange.duration_s = DurationS::try_from(5.0).expect("five seconds");
    config.exchange.rate = Rate::try_from(4_000.0).expect("a rate");
    config.exchange.start_on_logon = true;
    take_free_ports(&mut config).expect("free ports");
    config
}

/// Takes the ports on which the exchange listens into what the quoter is told.
fn take_ports(config: &mut Config, line: &str) {
    let Ok(Notice::Listening { order_entry, servers }) = serde_json::from_str(line) else {
        panic!("the exchange says first where it listens: {line}");
    };
    config.order_entry.address.set_port(order_entry);
    for (name, number) in servers {
        for port in Port::ALL.into_iter().filter(|port| port.name() == name) {
            if let Some(server) = config.feed[0].channels[0].server_mut(port) {
                server.set_port(number);
            }
        }
    }
}

#[test]
fn it_quotes_every_option_at_the_simulated_exchange_and_leaves_nothing_open() {
    let folder = Folder(std::env::temp_dir().join(format!("tickwire-test-quoter-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let mut config = configuration();
    let write = |name: &str, config: &Config| {
        let path = folder.0.join(name);
        std::fs::write(&path, config.to_toml()).expect("written");
        path
    };
    let venue = Command::new(env!("CARGO_BIN_EXE_options-venue"))
        .arg(write("venue.toml", &config))
        .arg(&folder.0)
        .stdout(Stdio::piped())
        .spawn();
    let mut venue = Guard(venue.expect("the exchange starts"));
    let mut lines = BufReader::new(venue.0.stdout.take().expect("piped")).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    take_ports(&mut config, &first);
    // What else it says is read, so that it never waits.
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    let output = Command::new(env!("CARGO_BIN_EXE_quoter"))
        .arg(write("quoter.toml", &config))
        .output()
        .expect("the example runs");
    let told = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{told}");
    assert!(venue.0.wait().expect("it ends").success());
    reader.join().expect("no panic");
    assert!(
        told.contains("quoting 16 options of 2 expiries on ESX6"),
        "{told}"
    );
    let exchange = std::fs::read_to_string(folder.0.join("exchange.json")).expect("the exchange's results");
    let exchange: Value = serde_json::from_str(&exchange).expect("JSON");
    let quotes = exchange["quotes"].as_array().expect("quotes");
    assert_eq!(quotes.len(), 16, "{exchange:#}");
    let traded = |quote: &Value, side: usize| quote["traded"][side].as_u64().expect("contracts");
    let all: u64 = quotes.iter().map(|q| traded(q, 0) + traded(q, 1)).sum();
    assert!(all > 0, "somebody trades with the quotes: {exchange:#}");
    for quote in quotes {
        assert_eq!(
            quote["open"],
            serde_json::json!([0, 0]),
            "everything was cancelled"
        );
    }
}

#[test]
fn a_file_that_is_missing_is_named() {
    for program in [env!("CARGO_BIN_EXE_quoter"), env!("CARGO_BIN_EXE_options-venue")] {
        let output = Command::new(program).args(["nowhere.toml", "."]).output();
        let output = output.expect("the example runs");
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere.toml"));
        let output = Command::new(program).output().expect("the example runs");
        assert_eq!(output.status.code(), Some(2));
    }
}
