//! The example beside a simulated market of two venues, with loss: every message of both is in its file, once
//! and in order.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tickwire::config::Config;
use tickwire::demo::{free_udp_port, take_free_ports};
use tickwire_market::{Port, Transport};
use tickwire_runtime::signal::StopFlag;
use tickwire_simulator::settings::Impairment;
use tickwire_venues::protocol::Protocol;
use tickwire_venues::values::{DurationS, Probability, Rate, Symbols};

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

/// A port that nobody has at the moment, by its transport.
fn free_port(port: Port) -> u16 {
    match port.transport() {
        Transport::Stream => {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.local_addr().expect("an address").port()
        }
        _ => free_udp_port().expect("a port"),
    }
}

fn market() -> Config {
    let mut config = Config::of_protocols(&[Protocol::Itch50, Protocol::Pitch]);
    config.exchange.duration_s = DurationS::try_from(2.0).expect("two seconds");
    config.exchange.symbols = Symbols::try_from(20.0).expect("20 symbols");
    config.exchange.rate = Rate::try_from(5_000.0).expect("a rate");
    config.exchange.linger_s = 60;
    let loss = Impairment {
        loss: Probability::try_from(0.02).expect("two percent"),
        ..Impairment::default()
    };
    (config.exchange.line_a, config.exchange.line_b) = (loss, loss);
    take_free_ports(&mut config).expect("free ports");
    for channel in config.feed.iter_mut().flat_map(|feed| &mut feed.channels) {
        for port in Port::ALL {
            if let Some(server) = channel.server_mut(port) {
                server.set_port(free_port(port));
            }
        }
    }
    config
}

#[test]
fn every_message_of_two_venues_is_recorded_once_and_in_order() {
    let folder = Folder(std::env::temp_dir().join(format!("tickwire-test-recorder-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let config = market();
    let [feeds, events] = ["feeds.toml", "events.csv"].map(|name| folder.0.join(name));
    std::fs::write(&feeds, config.to_toml()).expect("written");
    let recorder = Command::new(env!("CARGO_BIN_EXE_recorder"))
        .args([&feeds, &events])
        .stderr(Stdio::inherit())
        .spawn();
    let mut recorder = Guard(recorder.expect("the example starts"));
    // The exchange begins once somebody listens: the file is there before the groups are joined, which takes
    // no time.
    let begun = Instant::now();
    while !events.exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(500));
    let results = folder.0.clone();
    let exchange = std::thread::spawn(move || {
        tickwire_simulator::venue::run(&config.market(), Some(&results), false, &StopFlag::new())
    });
    assert!(recorder.0.wait().expect("it ends with the feeds").success());
    exchange.join().expect("no panic").expect("the session ends");
    let text = std::fs::read_to_string(&events).expect("the file");
    let mut numbers: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut symbols: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), 11, "{line}");
        match fields[4] {
            "Named" => symbols.entry(fields[0]).or_default().push(fields[10]),
            // What is said of the channel has the number of the next message.
            "Gap" | "Recovered" => {}
            _ => numbers
                .entry(fields[0])
                .or_default()
                .push(fields[1].parse().expect("a number")),
        }
    }
    assert_eq!(numbers.len(), 2, "both venues");
    let exchange: tickwire_control::results::ExchangeResults =
        tickwire_control::results::read_json(&folder.0.join("exchange.json")).expect("results");
    assert!(
        exchange.dropped.iter().all(|dropped| *dropped > 0),
        "both lines lost packets"
    );
    let last: u64 = numbers.values().filter_map(|numbers| numbers.last()).sum();
    assert_eq!(last, exchange.messages, "to the last message of each");
    for (source, mut numbers) in numbers {
        assert!(numbers.is_sorted(), "channel {source} in order");
        numbers.dedup();
        assert!(numbers.len() > 1_000, "channel {source}");
        // Named again where the venue says more of it.
        let named = symbols.get_mut(source).expect("a directory");
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len(), 20, "channel {source}: {named:?}");
    }
}

#[test]
fn a_file_that_is_missing_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_recorder"))
        .args(["nowhere.toml", "events.csv"])
        .output();
    let output = output.expect("the example runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere.toml"));
}
