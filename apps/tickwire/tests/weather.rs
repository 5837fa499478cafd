//! The network and the clock as weather: whole programs live through every error of every socket call, routes
//! that go and come back, and clocks that are set.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, Guard, free_ports, run, text, tickwire};
use tickwire_market::{Counter, Counters};
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::shared::Attachment;
use tickwire_shm::SourceState;

const PATIENCE: Duration = Duration::from_secs(60);

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(
            Instant::now() < deadline,
            "{what} did not happen within {PATIENCE:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// ITCH with all its recovery between two addresses, and an exchange that goes on for an hour.
fn config(folder: &Folder, interface: &str, server: &str, exchange: &str) -> PathBuf {
    let [a, b, c, d, e] = free_ports();
    let group = std::process::id() % 200 + 1;
    let text = format!(
        r#"
[[feed]]
venue = "nasdaq"
interface = "{interface}"
[[feed.channel]]
name = "1"
live = {{ a = "239.192.{group}.91:{a}", b = "239.192.{group}.92:{b}" }}
requests = "{server}:{c}"
snapshot_server = "{server}:{d}"
[order_entry]
address = "{server}:{e}"
[receiver]
max_instruments = 64
max_orders = 65536
max_levels = 65536
[exchange]
symbols = 20
rate = 2000
duration_s = 3600.0
{exchange}
"#
    );
    folder.file("weather.toml", text)
}

/// A program with what it says in a file.
struct Program {
    process: Guard,
    complaints: PathBuf,
}

impl Program {
    fn start(mut command: Command, home: &Folder, name: &str) -> Program {
        let complaints = home.0.join(format!("{name}.err"));
        let child = command
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(home.0.join(format!("{name}.out"))).expect("a file"))
            .stderr(std::fs::File::create(&complaints).expect("a file"))
            .spawn()
            .expect("the program starts");
        Program {
            process: Guard(child),
            complaints,
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.complaints).unwrap_or_default()
    }

    fn must_live(&mut self, name: &str) {
        let ended = self.process.0.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "the {name} ended, {ended:?}: {}", self.said());
    }
}

fn command(program: &str, config: &Path, more: &[&str]) -> Command {
    let mut command = tickwire();
    command.args([program, "-c"]).arg(config).args(more);
    command
}

fn counters(region: &Attachment) -> Counters {
    region.reader().counters(0).expect("one release")
}

/// Every error of every call, again and again, in the exchange and the daemon: neither ends, both say each
/// kind of trouble and that it is over, and the feed is live afterwards.
#[test]
fn a_storm_of_every_error_of_every_call_ends_no_process() {
    let home = Folder::new("weather-storm");
    let config = config(
        &home,
        "lo",
        "127.0.0.1",
        "line_a = { loss = 0.02 }\nline_b = { loss = 0.02 }",
    );
    let faults = home.file("faults", "");
    let folder = home.0.join("region");
    let with_faults = |mut command: Command| {
        command.env("TICKWIRE_FAULTS", &faults);
        command
    };
    let of_daemon = ["--folder", folder.to_str().expect("text")];
    let mut exchange = Program::start(with_faults(command("exchange", &config, &[])), &home, "exchange");
    wait_for("the exchange listens", || exchange.said().contains("listening"));
    let mut daemon = Program::start(with_faults(command("feed", &config, &of_daemon)), &home, "feed");
    let mut region = None;
    wait_for("the daemon is ready", || {
        region = Attachment::attach(&folder).ok();
        region.is_some()
    });
    let region = region.expect("attached");
    let is_live = || region.reader().source_state(0) == SourceState::Live;
    wait_for("the feed is live", is_live);
    std::fs::write(&faults, "every=5 calls=all errno=all\n").expect("written");
    wait_for("many errors", || counters(&region).get(Counter::NetErrors) > 300);
    exchange.must_live("exchange");
    daemon.must_live("daemon");
    std::fs::write(&faults, "").expect("written");
    wait_for("the feed is live again", is_live);
    let messages = counters(&region).get(Counter::Messages);
    wait_for("messages", || counters(&region).get(Counter::Messages) > messages);
    wait_for("the end of the storm is said", || {
        [&exchange, &daemon]
            .iter()
            .all(|program| program.said().contains("works again after"))
    });
    exchange.must_live("exchange");
    daemon.must_live("daemon");
    // Once a kind until it heals, not once an error: a socket has at most four kinds and one end of it.
    for (name, program) in [("exchange", &exchange), ("daemon", &daemon)] {
        let said = program.said();
        let failures = said.lines().filter(|line| line.contains(" failed: ")).count();
        assert!((1..200).contains(&failures), "{name} said {failures}: {said}");
    }
    let counters = counters(&region);
    let classes = [
        Counter::NetErrorsNetwork,
        Counter::NetErrorsPeer,
        Counter::NetErrorsResources,
        Counter::NetErrorsConfig,
    ];
    assert!(
        classes.iter().all(|class| counters.get(*class) > 0),
        "{counters:?}"
    );
    let shown = run(&["stats", "--folder", folder.to_str().expect("text")]);
    let shown = text(&shown.stdout) + &text(&shown.stderr);
    assert!(
        shown.contains("net errors") || shown.contains("net_errors"),
        "{shown}"
    );
}

/// A route that goes while messages are missing, and comes back: requests are not sent for a while, and the
/// daemon goes on. Needs network namespaces, which is to say root.
#[test]
fn a_route_that_goes_and_comes_back_is_survived() {
    let pair = match VethPair::create("twroute") {
        Ok(pair) => pair,
        Err(why) => return tickwire_testdata::not_tested(format!("no network namespaces here: {why}")),
    };
    let home = Folder::new("weather-route");
    let server = pair.address(0).to_string();
    let config = config(
        &home,
        "veth0",
        &server,
        "line_a = { loss = 0.05 }\nline_b = { loss = 0.05 }",
    );
    let within = |end: usize, inner: Command| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", pair.name(end)]);
        command.arg(inner.get_program()).args(inner.get_args());
        command
    };
    let folder = home.0.join("region");
    let of_daemon = ["--folder", folder.to_str().expect("text")];
    let mut exchange = Program::start(within(0, command("exchange", &config, &[])), &home, "exchange");
    wait_for("the exchange listens", || exchange.said().contains("listening"));
    let mut daemon = Program::start(within(1, command("feed", &config, &of_daemon)), &home, "feed");
    let mut region = None;
    wait_for("the daemon is ready", || {
        region = Attachment::attach(&folder).ok();
        region.is_some()
    });
    let region = region.expect("attached");
    let is_live = || region.reader().source_state(0) == SourceState::Live;
    wait_for("the feed is live", is_live);
    // The way to the exchange's address goes; what the exchange multicasts still comes.
    pair.ip(1, &["route", "del", "198.18.0.0/24", "dev", "veth0"])
        .expect("a route to remove");
    wait_for("requests fail", || {
        counters(&region).get(Counter::NetErrorsNetwork) > 3
    });
    daemon.must_live("daemon");
    wait_for("it is said", || daemon.said().contains("Network is unreachable"));
    pair.ip(1, &["route", "add", "198.18.0.0/24", "dev", "veth0"])
        .expect("a route to put back");
    wait_for("the feed is live again", is_live);
    wait_for("it is said that requests work", || {
        daemon.said().contains("works again after")
    });
    let recovered = counters(&region).get(Counter::MessagesRecovered);
    wait_for("what is missing is recovered", || {
        counters(&region).get(Counter::MessagesRecovered) > recovered
    });
    exchange.must_live("exchange");
    daemon.must_live("daemon");
    let said = daemon.said();
    let unreachable = said
        .lines()
        .filter(|line| line.contains("retransmission request") && line.contains("unreachable"));
    assert_eq!(unreachable.count(), 1, "{said}");
}

/// At start-up the same errors are a wrong configuration: exit code 3, and what to do.
#[test]
fn at_start_an_address_of_another_host_or_a_port_in_use_is_an_error() {
    let home = Folder::new("weather-start");
    // RFC 5737: an address for documentation, which no machine has.
    let elsewhere = config(&home, "lo", "192.0.2.1", "");
    let output = run(&["exchange", "-c", elsewhere.to_str().expect("text")]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("is not an address of this machine; use one of its addresses"),
        "{said}"
    );
    let own = config(&home, "lo", "127.0.0.1", "");
    let mut exchange = Program::start(command("exchange", &own, &[]), &home, "exchange");
    wait_for("the exchange listens", || exchange.said().contains("listening"));
    let output = run(&["exchange", "-c", own.to_str().expect("text")]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("is already in use by another program; stop that program or choose another port"),
        "{said}"
    );
    exchange.must_live("exchange");
}

/// The system's clock is set by an hour, back and forward, as exchange, daemon and trader see it: each says
/// so once with the size, counts it, and goes on: gaps are recovered, counters move, the session of orders
/// lives.
#[test]
fn a_clock_that_is_set_by_an_hour_stops_nothing() {
    let home = Folder::new("weather-clock");
    let config = config(
        &home,
        "lo",
        "127.0.0.1",
        "line_a = { loss = 0.05 }\nline_b = { loss = 0.05 }",
    );
    let plan = home.file("faults", "");
    let folder = home.0.join("region");
    let of_daemon = ["--folder", folder.to_str().expect("text")];
    let with_plan = |mut command: Command| {
        command.env("TICKWIRE_FAULTS", &plan);
        command
    };
    let mut exchange = Program::start(with_plan(command("exchange", &config, &[])), &home, "exchange");
    wait_for("the exchange listens", || exchange.said().contains("listening"));
    let mut daemon = Program::start(with_plan(command("feed", &config, &of_daemon)), &home, "feed");
    let mut region = None;
    wait_for("the daemon is ready", || {
        region = Attachment::attach(&folder).ok();
        region.is_some()
    });
    let region = region.expect("attached");
    let mut trader = Program::start(with_plan(command("trade", &config, &[])), &home, "trade");
    wait_for("the trader logs on", || exchange.said().contains("logged on"));
    let recovered = || counters(&region).get(Counter::MessagesRecovered);
    for (step, says) in [
        ("step=-3600", "set back by 360"),
        ("step=0", "set forward by 360"),
    ] {
        wait_for("messages are recovered", || recovered() > 0);
        // Which of them notices first is left open.
        common::set_clocks(&plan, step);
        wait_for("all say it", || {
            [&exchange, &daemon, &trader]
                .iter()
                .all(|program| program.said().contains(says))
        });
        let before = recovered();
        wait_for("gaps are recovered afterwards", || recovered() > before + 5);
        for (name, program) in [
            ("exchange", &mut exchange),
            ("daemon", &mut daemon),
            ("trader", &mut trader),
        ] {
            program.must_live(name);
            assert_eq!(
                program.said().matches(says).count(),
                1,
                "{name}: {}",
                program.said()
            );
        }
    }
    assert_eq!(counters(&region).get(Counter::ClockSteps), 2);
    // By this, views of other processes compute ages: the clock of the stamps, not UTC.
    assert!(region.reader().stamp_epoch().is_some());
}
