//! What is live at the venue after a fault, asked from the venue: a trader that is killed by a word, a quoter
//! that stands still with a watchdog beside it and a venue that would wait for a minute.

mod common;

use common::{Cable, Folder, Guard, run, signal, status, tickwire};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tickwire_runtime::netns::VethPair;

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

/// What the lines of a record of fills come to.
fn net(record: &str) -> i64 {
    let of = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let qty = |sign: i64| fields.get(5)?.parse::<i64>().ok().map(|qty| sign * qty);
        match (fields[0], fields.get(4)) {
            ("fill", Some(&"buy")) => qty(1),
            ("fill", Some(&"sell")) => qty(-1),
            _ => None,
        }
    };
    record.lines().filter_map(of).sum()
}

/// Open orders and quoted sides of a client, as the exchange has them.
fn live(desk: &Path, client: &str) -> u64 {
    let said = status(desk).unwrap_or_default();
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

/// The configuration that a demonstration of a second leaves, for an hour, with a desk to ask the exchange
/// at.
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
    // Nobody spins: a test waits for seconds, beside others.
    for section in ["exchange", "trader", "quoter"] {
        if let Some(section) = config.get_mut(section).and_then(toml::Value::as_table_mut) {
            section.insert("wait".into(), "poll".into());
        }
    }
    let exchange = config["exchange"].as_table_mut().expect("a section");
    exchange.insert("control".into(), "desk".into());
    config
}

#[test]
fn a_killed_trader_has_nothing_open_and_sends_nothing_until_it_is_resumed() {
    let folder = Folder::new("kill-switch");
    let mut config = configured(&folder, &["demo", "--rate", "20000"], "trade.toml");
    config["trader"]["core"] = (-1).into();
    config["trader"]["time_in_force"] = "day".into();
    // More than is offered at a price: the rest stays in the book.
    config["trader"]["lot"] = 1000.into();
    let trader = config["trader"].as_table_mut().expect("a section");
    trader.insert("control".into(), "trader".into());
    let config = folder.file("faults.toml", config.to_string());
    let _exchange = start(&folder, "exchange", &config);
    let (desk, own) = (folder.0.join("desk"), folder.0.join("trader"));
    wait_for("the exchange", || status(&desk));
    let mut trader = start(&folder, "trade", &config);
    wait_for("an order that rests", || {
        (live(&desk, "TRADER") > 0).then_some(())
    });
    told("trade", &own, "kill").expect("it answers");
    wait_for("an empty book", || (live(&desk, "TRADER") == 0).then_some(()));
    let killed = wait_for("what it says of it", || {
        let status = status(&own)?;
        (status["state"] == "killed" && status["open"] == 0).then_some(status)
    });
    assert_eq!(killed["differences"], 0, "{killed}");
    let messages = || status(&desk).expect("it answers")["messages"].as_u64();
    let before = messages().expect("a number");
    wait_for("more of the market", || {
        (messages()? > before + 10_000).then_some(())
    });
    let later = status(&own).expect("it answers");
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
        (status(&own)?["orders"].as_u64() > killed["orders"].as_u64()).then_some(())
    });
    let file = folder.file("tickwire.kill", String::new());
    wait_for("the kill", || {
        let status = status(&own)?;
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

/// A venue that keeps what a lost connection leaves is not traded at where that is asked for; else it is
/// said.
#[test]
fn a_venue_that_does_not_confirm_cancel_on_disconnect_is_refused_or_said() {
    for (word, words, section) in [
        (
            "trade",
            ["demo", "--symbols", "8", "--rate", "4000"].to_vec(),
            "trader",
        ),
        (
            "quote",
            ["demo", "quoter", "--symbols", "8", "--rate", "4000"].to_vec(),
            "quoter",
        ),
    ] {
        let folder = Folder::new(&format!("unconfirmed-{word}"));
        let name = format!("{word}.toml");
        let mut config = configured(&folder, &words, &name);
        config[section]["core"] = (-1).into();
        config["exchange"]["stop_on_client_loss"] = false.into();
        if word == "trade" {
            // Orders that rest.
            config["trader"]["time_in_force"] = "day".into();
            config["trader"]["lot"] = 1000.into();
        }
        let client = section.to_uppercase();
        let entry = config["order_entry"].as_table_mut().expect("a section");
        let session = |cancels: bool| {
            let text = format!(
                "comp_id = \"{client}\"\nversion = \"FIX.4.4\"\nfirm = 1\ncancel_on_disconnect = {cancels}\nreset_on_logon = true\nheartbeat_s = 1"
            );
            toml::Value::Table(text.parse().expect("a session"))
        };
        entry.insert("session".into(), vec![session(false)].into());
        let path = folder.file("faults.toml", config.to_string());
        let _exchange = start(&folder, "exchange", &path);
        let desk = folder.0.join("desk");
        wait_for("the exchange", || status(&desk));
        // Said once, and traded on.
        let warned = start(&folder, word, &path);
        wait_for("an order or a quote", || (live(&desk, &client) > 0).then_some(()));
        let heard = wait_for("what it says", || {
            Some(said(&folder, word)).filter(|said| said.contains("9001=N"))
        });
        assert_eq!(heard.matches("9001=N").count(), 1, "{heard}");
        drop(warned);
        let client_state = |what: &str| {
            let said = status(&desk).expect("it answers");
            let clients = said["clients"].as_array().expect("clients").clone();
            let own = clients
                .into_iter()
                .find(|one| one["name"] == *client)
                .expect("a session");
            own[what].clone()
        };
        wait_for("the end of it", || {
            (client_state("logged_on") == false).then_some(())
        });
        let orders = || status(&desk).expect("it answers")["orders"].as_u64();
        let sides = || client_state("quoted_sides").as_u64();
        let before = (orders(), sides());
        // Refused: nothing is sent.
        let controls = config["controls"].as_table_mut().expect("a section");
        controls.insert("venue_cancels".into(), "refuse".into());
        let strict = folder.file("strict.toml", config.to_string());
        let mut refused = start(&folder, word, &strict);
        let ended = refused.wait(PATIENCE).expect("it ends");
        let heard = said(&folder, word);
        assert_eq!(ended.code(), Some(2), "{heard}");
        assert!(
            heard.contains("nothing is sent") && heard.contains("venue_cancels"),
            "{heard}"
        );
        // What was left there trades on.
        assert!(orders() == before.0 && sides() <= before.1, "{before:?}: {heard}");
    }
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
    wait_for("the exchange", || status(&desk));
    let _dog = start(&folder, "watchdog", &config);
    wait_for("the watchdog", || {
        status(&desk)?["clients"]
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

/// What befalls a program that has orders or quotes at the venue.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    /// SIGSTOP.
    Stopped,
    /// SIGKILL: the kernel closes its connections.
    Killed,
    /// Every packet of both hosts vanishes, and nobody is told.
    CableCut,
    /// The same, and the program is killed: the venue holds a connection with nobody at its end.
    HalfOpen,
    /// Market data vanishes; the connection for orders is whole.
    SilentFeed,
    /// The connection for orders is reset.
    SessionReset,
    /// The disk of its files, stores and log is full.
    DiskFull,
    /// The machine's clock is set back by an hour.
    ClockBack,
    /// The machine's clock is set forward by an hour.
    ClockForward,
}

impl Fault {
    const ALL: [Fault; 9] = [
        Fault::Stopped,
        Fault::CableCut,
        Fault::SilentFeed,
        Fault::SessionReset,
        Fault::DiskFull,
        Fault::ClockBack,
        Fault::ClockForward,
        Fault::HalfOpen,
        Fault::Killed,
    ];

    /// Whether the program may be another one afterwards. Otherwise it takes its session up again.
    fn may_end_it(self, word: &str) -> bool {
        matches!(
            (self, word),
            (Fault::Killed | Fault::HalfOpen, _) | (Fault::DiskFull, "quote")
        )
    }

    /// Whether everything must go away. Otherwise the program goes on, and what it has is as much under its
    /// control as before: a trader keeps nothing on a disk, a quoter its fills.
    fn takes_everything_away(self, word: &str) -> bool {
        !matches!(
            (self, word),
            (Fault::DiskFull, "trade") | (Fault::ClockBack | Fault::ClockForward, _)
        )
    }
}

/// A venue and a trading program on hosts of their own, each with two networks: `veth0` for market data,
/// `veth1` for orders.
struct Arena {
    // What goes first is dropped first: a folder with a disk in it cannot be removed.
    _exchange: Guard,
    disk: Disk,
    folder: Folder,
    pair: VethPair,
    config: PathBuf,
    word: &'static str,
    client: &'static str,
    plan: PathBuf,
}

/// A disk of its own, so that it can be full.
struct Disk(PathBuf);

impl Disk {
    fn new(folder: &Folder) -> Disk {
        let at = folder.0.join("disk");
        std::fs::create_dir(&at).expect("a folder");
        let made = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs"])
            .arg(&at)
            .status();
        assert!(made.is_ok_and(|made| made.success()), "root mounts a tmpfs");
        Disk(at)
    }

    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.0.join("filler")).expect("room for a name");
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("filler")).expect("ours");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

impl Arena {
    /// `None`, and it is said, where namespaces cannot be made.
    fn new(
        name: &str,
        word: &'static str,
        client: &'static str,
        words: &[&str],
        file: &str,
    ) -> Option<Arena> {
        let pair = match VethPair::create("twfault") {
            Ok(pair) => pair,
            Err(why) => {
                tickwire_testdata::not_tested(format!("no network namespaces here: {why}"));
                return None;
            }
        };
        let (own, far) = (pair.name(0).to_string(), pair.name(1).to_string());
        let link = [
            "link", "add", "veth1", "type", "veth", "peer", "name", "veth1", "netns", &far,
        ];
        pair.ip(0, &link).expect("a second pair");
        for end in [0, 1] {
            let address = format!("198.19.0.{}/24", end + 1);
            pair.ip(end, &["addr", "add", &address, "dev", "veth1"])
                .expect("an address");
            pair.ip(end, &["link", "set", "veth1", "up"]).expect("up");
        }
        let folder = Folder::new(name);
        let disk = Disk::new(&folder);
        let mut config = configured(&folder, words, file);
        let port = |address: &toml::Value| {
            let address = address.as_str().expect("an address");
            address.rsplit(':').next().expect("a port").to_string()
        };
        let entry = format!("198.19.0.1:{}", port(&config["order_entry"]["address"]));
        config["order_entry"]["address"] = entry.into();
        config["order_entry"]["heartbeat_s"] = 1.into();
        config["exchange"]["start_on_logon"] = false.into();
        config["exchange"]["stop_on_client_loss"] = false.into();
        for feed in config["feed"].as_array_mut().expect("feeds") {
            feed["interface"] = "veth0".into();
        }
        match word {
            "trade" => {
                config["trader"]["core"] = (-1).into();
                config["trader"]["time_in_force"] = "day".into();
                config["trader"]["lot"] = 1000.into();
                let trader = config["trader"].as_table_mut().expect("a section");
                trader.insert("control".into(), "trader".into());
                trader.insert("reconnects_max".into(), 20.into());
                trader.insert("reconnect_ms".into(), 20.into());
            }
            _ => {
                config["quoter"]["core"] = (-1).into();
                let quoter = config["quoter"].as_table_mut().expect("a section");
                quoter.insert("state".into(), "disk/state".into());
                quoter.insert("control".into(), "trader".into());
            }
        }
        let text = config
            .to_string()
            .replace("127.0.0.1", &pair.address(0).to_string());
        let config = folder.file("faults.toml", text);
        let plan = folder.file("plan", "");
        let mut exchange = Command::new("ip");
        exchange
            .args([
                "netns",
                "exec",
                &own,
                env!("CARGO_BIN_EXE_tickwire"),
                "exchange",
                "-c",
            ])
            .arg(&config)
            .env("TICKWIRE_FAULTS", &plan)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.0.join("exchange-said")).expect("a file"));
        let exchange = Guard(exchange.spawn().expect("ip starts"));
        let desk = folder.0.join("desk");
        wait_for("the exchange", || status(&desk));
        Some(Arena {
            pair,
            folder,
            config,
            word,
            client,
            plan,
            _exchange: exchange,
            disk,
        })
    }

    /// Its own host, and its log on the disk that fills.
    fn start(&self) -> Guard {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.disk.0.join("said"))
            .expect("a file");
        let child = Command::new("ip")
            .args([
                "netns",
                "exec",
                self.pair.name(1),
                env!("CARGO_BIN_EXE_tickwire"),
                self.word,
                "-c",
            ])
            .arg(&self.config)
            .env("TICKWIRE_FAULTS", &self.plan)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Guard(child.expect("ip starts"))
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.disk.0.join("said")).unwrap_or_default()
            + "\nthe exchange: "
            + &said(&self.folder, "exchange")
    }

    fn live(&self) -> u64 {
        live(&self.folder.0.join("desk"), self.client)
    }

    /// An operator: what has stopped until somebody resumes it, as after an answer that a busy machine gave
    /// too late, is resumed, as often as it says so. `resumed`: how often it was.
    fn attend(&self, resumed: &mut usize) {
        let asks = format!("`tickwire {} --tell resume`", self.word);
        let asked = self.said().matches(&asks).count();
        if asked > *resumed && told(self.word, &self.folder.0.join("trader"), "resume").is_some() {
            *resumed = asked;
        }
    }

    fn vanish(&self, device: &str, is_gone: bool) {
        for end in [0, 1] {
            let action = if is_gone { "replace" } else { "del" };
            let mut words = vec!["qdisc", action, "dev", device, "root"];
            words.extend(is_gone.then_some("blackhole"));
            self.pair.tc(end, &words).expect("tc (iproute2) is there");
        }
    }

    /// Sets the clock of the machine, as both programs see it, and waits until both have noticed: a second
    /// step on top of one that only one of them has made would be a clock of its own for each.
    fn step(&mut self, word: &str) {
        let noticed = |said: String| said.matches("the system's clock was set").count();
        let own = self.disk.0.join("said");
        let read = || std::fs::read_to_string(&own).unwrap_or_default();
        let before = (noticed(read()), noticed(said(&self.folder, "exchange")));
        common::set_clocks(&self.plan, word);
        wait_for("both programs notice that the clock was set", || {
            let now = (noticed(read()), noticed(said(&self.folder, "exchange")));
            (now.0 > before.0 && now.1 > before.1).then_some(())
        });
    }

    fn befall(&mut self, fault: Fault, program: &mut Guard) {
        match fault {
            Fault::Stopped => signal("STOP", program.0.id()),
            Fault::Killed => signal("KILL", program.0.id()),
            Fault::CableCut => ["veth0", "veth1"].iter().for_each(|d| self.vanish(d, true)),
            Fault::HalfOpen => {
                ["veth0", "veth1"].iter().for_each(|d| self.vanish(d, true));
                signal("KILL", program.0.id());
            }
            Fault::SilentFeed => self.vanish("veth0", true),
            Fault::SessionReset => {
                let mut ss = Command::new("ip");
                ss.args([
                    "netns",
                    "exec",
                    self.pair.name(1),
                    "ss",
                    "-K",
                    "dst",
                    "198.19.0.1",
                ]);
                let done = ss.output().expect("ss (iproute2) is there");
                assert!(done.status.success(), "{done:?}");
            }
            Fault::DiskFull => self.disk.fill(),
            Fault::ClockBack => self.step("step=-3600"),
            Fault::ClockForward => self.step("step=3600"),
        }
    }

    fn heal(&mut self, fault: Fault, program: &mut Guard) {
        match fault {
            Fault::Stopped => signal("CONT", program.0.id()),
            Fault::CableCut | Fault::HalfOpen => {
                ["veth0", "veth1"].iter().for_each(|d| self.vanish(d, false))
            }
            Fault::SilentFeed => self.vanish("veth0", false),
            Fault::DiskFull => self.disk.make_room(),
            Fault::ClockBack | Fault::ClockForward => self.step("step=0"),
            Fault::Killed | Fault::SessionReset => {}
        }
    }

    /// Every fault; what is live at the venue is asked from the venue.
    fn run(mut self) {
        let mut program = self.start();
        let mut before = None::<Fault>;
        let mut resumed = 0;
        for fault in (0..common::times(1)).flat_map(|_| Fault::ALL) {
            let waited = Instant::now();
            while self.live() == 0 {
                assert!(
                    waited.elapsed() < PATIENCE,
                    "nothing is live before {fault:?}: {}\n{:?}\n{:?}",
                    self.said(),
                    status(&self.folder.0.join("trader")),
                    status(&self.folder.0.join("desk"))
                );
                if let Some(ended) = program.0.try_wait().expect("a child") {
                    let may_end = before.is_none_or(|before| before.may_end_it(self.word));
                    assert!(may_end, "after {before:?}: {ended} {}", self.said());
                    program = self.start();
                }
                self.attend(&mut resumed);
                std::thread::sleep(Duration::from_millis(20));
            }
            let begun = Instant::now();
            self.befall(fault, &mut program);
            if fault.takes_everything_away(self.word) {
                let mut now = 0;
                while begun.elapsed() < PATIENCE {
                    now = self.live();
                    if now == 0 {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                assert_eq!(now, 0, "{fault:?}: {}", self.said());
                eprintln!(
                    "{} | {fault:?} | nothing is live after {:.2} s",
                    self.word,
                    begun.elapsed().as_secs_f64()
                );
            } else {
                // Longer than a missed heartbeat takes to be noticed, and than a clock to be looked at.
                while begun.elapsed() < Duration::from_secs(4) {
                    let ended = program.0.try_wait().expect("a child");
                    assert!(ended.is_none(), "{fault:?}: {ended:?} {}", self.said());
                    std::thread::sleep(Duration::from_millis(20));
                }
                wait_for("something live beside it", || {
                    self.attend(&mut resumed);
                    (self.live() > 0).then_some(())
                });
                eprintln!("{} | {fault:?} | goes on", self.word);
            }
            self.heal(fault, &mut program);
            before = Some(fault);
        }
        drop(program);
    }
}

#[test]
fn whatever_befalls_a_trader_nothing_of_it_stays_at_the_venue() {
    let words = ["demo", "--rate", "20000"];
    if let Some(arena) = Arena::new("attacked-trader", "trade", "TRADER", &words, "trade.toml") {
        arena.run();
    }
}

#[test]
fn whatever_befalls_a_quoter_nothing_of_it_stays_at_the_venue() {
    let words = ["demo", "quoter", "--symbols", "8", "--rate", "4000"];
    if let Some(arena) = Arena::new("attacked-quoter", "quote", "QUOTER", &words, "quote.toml") {
        arena.run();
    }
}

/// A trader whose orders rest, and go by a cable, and the exchange's address.
fn on_a_cable(folder: &Folder, more: &str) -> (toml::Table, toml::Table, Cable) {
    let mut config = configured(folder, &["demo", "--rate", "20000"], "trade.toml");
    config["exchange"]["stop_on_client_loss"] = false.into();
    config["trader"]["core"] = (-1).into();
    config["trader"]["time_in_force"] = "day".into();
    config["trader"]["lot"] = 1000.into();
    config["trader"]["reconnects_max"] = 20.into();
    config["trader"]["reconnect_ms"] = 20.into();
    config["order_entry"]
        .as_table_mut()
        .expect("a section")
        .extend(more.parse::<toml::Table>().expect("keys"));
    let trader = config["trader"].as_table_mut().expect("a section");
    trader.insert("control".into(), "trader".into());
    let exchange = config.clone();
    let address = config["order_entry"]["address"].as_str().expect("an address");
    let port = address.rsplit(':').next().expect("a port");
    let cable = Cable::to(port.parse().expect("a port"));
    config["order_entry"]["address"] = format!("127.0.0.1:{}", cable.port).into();
    (exchange, config, cable)
}

/// Connections that are cut in the middle of trading, beside a venue that cancels what a lost one leaves and
/// one that does not: the same trader comes back, has nothing open that it does not know, and at the end both
/// have the same of every order.
#[test]
fn a_trader_that_is_cut_off_again_and_again_comes_back_and_agrees_with_the_venue() {
    for (cancels, version) in [(true, "FIX.4.4"), (false, "FIX.4.2")] {
        let folder = Folder::new("cut-trader");
        let session = format!(
            "session = [{{ comp_id = \"TRADER\", version = \"{version}\", firm = 1, cancel_on_disconnect = {cancels} }}]"
        );
        let (mut venue, config, cable) = on_a_cable(&folder, &session);
        let cuts = common::times(3);
        venue["exchange"]["duration_s"] = (6.0 + 2.0 * f64::from(cuts)).into();
        let venue = folder.file("venue.toml", venue.to_string());
        let config = folder.file("cut.toml", config.to_string());
        let begin = |word: &str, config: &Path| {
            let complaints = std::fs::File::create(folder.0.join(format!("{word}-said"))).expect("a file");
            let child = tickwire()
                .args([word, "--results"])
                .arg(&folder.0)
                .arg("-c")
                .arg(config)
                .stdout(Stdio::null())
                .stderr(complaints)
                .spawn();
            Guard(child.expect("the program starts"))
        };
        let mut exchange = begin("exchange", &venue);
        let (desk, own) = (folder.0.join("desk"), folder.0.join("trader"));
        wait_for("the exchange", || status(&desk));
        let mut trader = begin("trade", &config);
        for _ in 0..cuts {
            wait_for("an order that rests", || {
                let ended = trader.0.try_wait().expect("a child");
                assert!(
                    ended.is_none(),
                    "{ended:?} {}{}",
                    said(&folder, "trade"),
                    said(&folder, "exchange")
                );
                (live(&desk, "TRADER") > 0).then_some(())
            });
            let before = status(&own).expect("it answers");
            cable.cut();
            let after = wait_for("the session, and orders by it", || {
                let status = status(&own)?;
                let more = status["orders"].as_u64() > before["orders"].as_u64();
                let returned = said(&folder, "trade")
                    .matches("the order entry session goes on")
                    .count();
                (more && status["session"] == "up" && returned > 0).then_some(status)
            });
            assert_eq!(after["state"], "trading", "{after}");
        }
        let ended = trader.wait(PATIENCE).expect("it ends");
        let heard = said(&folder, "trade");
        assert_eq!(ended.code(), Some(0), "{heard}");
        assert_eq!(
            heard.matches("the order entry session goes on").count(),
            cuts as usize,
            "{heard}"
        );
        let ended = exchange.wait(PATIENCE).expect("it ends");
        assert_eq!(ended.code(), Some(0), "{}", said(&folder, "exchange"));
        let read = |name: &str| -> serde_json::Value {
            let text = std::fs::read_to_string(folder.0.join(name)).expect("results");
            serde_json::from_str(&text).expect("results are JSON")
        };
        let (there, here) = (read("exchange.json"), read("trader.json"));
        let there = there["orders"].as_object().expect("orders");
        let here = here["orders"].as_object().expect("orders");
        assert!(there.len() > cuts as usize, "{} orders", there.len());
        for (id, order) in there {
            assert_eq!(
                here.get(id),
                Some(order),
                "order {id}, cancels {cancels}\n{heard}"
            );
        }
        // What was under way when the cable was cut is not sent again: it is rejected here, and never was
        // there.
        for (id, order) in here.iter().filter(|(id, _)| !there.contains_key(*id)) {
            assert_eq!(
                (&order["status"], &order["filled"]),
                (&"8".into(), &0.into()),
                "order {id}"
            );
        }
    }
}

/// An exchange that is killed and started again from its journal: the trader goes on with the session, its
/// books are recovered, and both agree on what is held.
#[test]
fn a_trader_outlives_the_exchange() {
    let folder = Folder::new("outliving-trader");
    let (mut config, _, _) = on_a_cable(&folder, "");
    config["exchange"].as_table_mut().expect("a section").insert(
        "journal".into(),
        "file = \"journal\"".parse::<toml::Table>().expect("a key").into(),
    );
    let config = folder.file("outlive.toml", config.to_string());
    let dir = &folder.0;
    let begin = |at: usize| {
        let child = tickwire()
            .current_dir(dir)
            .args(["exchange", "--results"])
            .arg(dir)
            .arg("-c")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(dir.join(format!("exchange-{at}-said"))).expect("a file"))
            .spawn();
        Guard(child.expect("the program starts"))
    };
    let mut exchange = begin(0);
    let (desk, own) = (dir.join("desk"), dir.join("trader"));
    wait_for("the exchange", || status(&desk));
    let _trader = start(&folder, "trade", &config);
    for kill in 1..=common::times(2) as usize {
        let before = wait_for("orders, and one that rests", || {
            let status = status(&own)?;
            (live(&desk, "TRADER") > 0 && status["orders"].as_u64() > Some(5)).then_some(status)
        });
        exchange.0.kill().expect("it can be killed");
        exchange.0.wait().expect("a child can be waited for");
        wait_for("the loss", || (status(&own)?["session"] == "lost").then_some(()));
        exchange = begin(kill);
        wait_for("the session, and orders by it", || {
            let status = status(&own)?;
            let more = status["orders"].as_u64() > before["orders"].as_u64();
            (status["session"] == "up" && more).then_some(())
        });
    }
    told("trade", &own, "kill").expect("it answers");
    let last = wait_for("nothing open", || {
        let status = status(&own)?;
        (status["state"] == "killed" && status["open"] == 0).then_some(status)
    });
    assert_eq!(live(&desk, "TRADER"), 0, "{last}");
    signal("INT", exchange.0.id());
    exchange.wait(PATIENCE).expect("it ends");
    let text = std::fs::read_to_string(dir.join("exchange.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&text).expect("results are JSON");
    let rows = results["orders_traded"].as_array().expect("rows");
    let net: i64 = rows
        .iter()
        .map(|row| {
            let traded = |at: usize| row["traded"][at].as_i64().expect("a number");
            traded(0) - traded(1)
        })
        .sum();
    assert_eq!(last["position"].as_i64(), Some(net), "{}", said(&folder, "trade"));
    assert!(net > 0, "nothing was traded, so nothing was compared");
}

/// `kill -9` of a trader again and again, beside a venue that cancels what a lost connection leaves: each
/// process goes on with what the ones before it held, its limit counts that, and at the end the record of
/// what was traded, the trader and the venue agree. Where the venue has begun its numbers anew, nothing is
/// sent before a person has looked.
#[test]
fn a_trader_that_is_killed_goes_on_with_what_it_held() {
    let folder = Folder::new("killed-trader");
    let session = "session = [{ comp_id = \"TRADER\", firm = 1, cancel_on_disconnect = true }]";
    let (mut config, _, _cable) = on_a_cable(&folder, session);
    let journal: toml::Table = "file = \"journal\"".parse().expect("a key");
    let section = config["exchange"].as_table_mut().expect("a section");
    section.insert("journal".into(), journal.into());
    let trader = config["trader"].as_table_mut().expect("a section");
    trader.insert("state".into(), "state".into());
    let file = folder.file("kept.toml", config.to_string());
    let (desk, own) = (folder.0.join("desk"), folder.0.join("trader"));
    let mut exchange = start(&folder, "exchange", &file);
    wait_for("the exchange", || status(&desk));
    let is_up = |status: &serde_json::Value| status["session"] == "up";
    let position = |status: &serde_json::Value| status["position"].as_i64().expect("a number");
    let mut held = 0;
    for _ in 0..common::times(3) {
        let mut trader = start(&folder, "trade", &file);
        let more = wait_for("the position of before, and a fill", || {
            let status = status(&own)?;
            (is_up(&status) && position(&status) > held).then(|| position(&status))
        });
        trader.0.kill().expect("it can be killed");
        trader.0.wait().expect("a child can be waited for");
        held = more;
    }
    // What is held already is all that may be: not one lot more is bought.
    config["trader"]["lot"] = 100.into();
    let trader = config["trader"].as_table_mut().expect("a section");
    let risk: toml::Table = format!("max_position = {}", held + 99).parse().expect("a key");
    trader.insert("risk".into(), risk.into());
    let limited = folder.file("limited.toml", config.to_string());
    let mut trader = start(&folder, "trade", &limited);
    let last = wait_for("the position of before", || {
        let status = status(&own)?;
        (is_up(&status) && position(&status) >= held).then_some(status)
    });
    let messages = || status(&desk).and_then(|status| status["messages"].as_u64());
    let seen = wait_for("the market", messages);
    wait_for("more of the market", || {
        messages().filter(|now| *now > seen + 20_000)
    });
    let status_of = || status(&own).expect("it answers");
    assert_eq!(status_of()["orders"], 0, "{last}");
    assert_eq!(position(&status_of()), position(&last));
    signal("INT", trader.0.id());
    trader.wait(PATIENCE).expect("it ends");
    assert_eq!(live(&desk, "TRADER"), 0);

    // A venue that keeps no numbers of it: what traded behind the last line is not sent again.
    for (name, has_lines) in [("SECOND", true), ("THIRD", false)] {
        config["order_entry"]["trader_comp_id"] = name.into();
        let trader = config["trader"].as_table_mut().expect("a section");
        trader.insert("state".into(), name.into());
        trader.remove("risk");
        let file = folder.file(&format!("{name}.toml"), config.to_string());
        let fills = folder.0.join(name).join("order_entry/fills");
        let mut trader = start(&folder, "trade", &file);
        let is_written = || {
            let text = std::fs::read_to_string(&fills).ok()?;
            (net(&text) > 0).then_some(())
        };
        wait_for("a fill, and its line", is_written);
        trader.0.kill().expect("it can be killed");
        trader.0.wait().expect("a child can be waited for");
        if !has_lines {
            // As if it had been killed before it wrote the first one.
            std::fs::write(&fills, "").expect("the record");
        }
        let held = net(&std::fs::read_to_string(&fills).expect("the record"));
        let is_stopped = || {
            let status = status(&own)?;
            let is_stopped = is_up(&status) && status["state"] == "killed";
            (is_stopped && position(&status) == held && status["orders"] == 0).then_some(())
        };
        let mut trader = start(&folder, "trade", &file);
        wait_for("the kill switch", is_stopped);
        signal("INT", trader.0.id());
        trader.wait(PATIENCE).expect("it ends");
        // Started once more: that is nobody's word.
        let mut trader = start(&folder, "trade", &file);
        wait_for("the kill switch again", is_stopped);
        told("trade", &own, "resume").expect("it answers");
        wait_for("orders again", || {
            (status(&own)?["orders"].as_u64() > Some(0)).then_some(())
        });
        signal("INT", trader.0.id());
        trader.wait(PATIENCE).expect("it ends");
    }

    signal("INT", exchange.0.id());
    exchange.wait(PATIENCE).expect("it ends");
    let fills = folder.0.join("state/order_entry/fills");
    let text = std::fs::read_to_string(&fills).expect("the record");
    let ended = text.lines().last().is_some_and(|line| line.starts_with("ended,"));
    assert!(ended, "{text}");
    assert_eq!(position(&last), net(&text), "{}", said(&folder, "trade"));
    let journal = folder.0.join("journal");
    let [fills, journal] = [&fills, &journal].map(|path| path.to_str().expect("a path of text"));
    let agree = run(&[
        "reconcile",
        "--own",
        fills,
        "--venue",
        journal,
        "--session",
        "TRADER",
    ]);
    assert!(
        agree.status.success(),
        "{}",
        String::from_utf8_lossy(&agree.stdout)
    );
}

/// Exchange, daemon, trader and quoter for as long as `TICKWIRE_ATTACK_SECONDS` says, with 1 % of the packets
/// of both lines lost: none ends, and after the first tenth none has more memory of its own than a tenth
/// more. Then the day is reconciled from files.
#[test]
fn left_alone_nothing_ends_and_nothing_grows() {
    let seconds = std::env::var("TICKWIRE_ATTACK_SECONDS").map_or(4, |n| n.parse::<u64>().expect("seconds"));
    let folder = Folder::new("left-alone");
    let words = [
        "demo",
        "quoter",
        "--symbols",
        "8",
        "--rate",
        "4000",
        "--loss",
        "0.01",
    ];
    let mut config = configured(&folder, &words, "quote.toml");
    config["exchange"]["duration_s"] = (seconds as f64 + 3600.0).into();
    config["quoter"]["core"] = (-1).into();
    let quoter = config["quoter"].as_table_mut().expect("a section");
    quoter.insert("state".into(), "state".into());
    let journal: toml::Table = "file = \"exchange.journal\"".parse().expect("a section");
    let section = config["exchange"].as_table_mut().expect("a section");
    section.insert("journal".into(), journal.into());
    let config = folder.file("faults.toml", config.to_string());
    let exchange = start(&folder, "exchange", &config);
    let desk = folder.0.join("desk");
    wait_for("the exchange", || status(&desk));
    let region = folder.0.join("region");
    let feed = tickwire()
        .args(["feed", "-c"])
        .arg(&config)
        .arg("--folder")
        .arg(&region)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.0.join("feed-said")).expect("a file"))
        .spawn();
    let feed = Guard(feed.expect("the program starts"));
    let quoter = start(&folder, "quote", &config);
    wait_for("a quote", || (live(&desk, "QUOTER") > 0).then_some(()));
    let mut programs = [("exchange", exchange), ("feed", feed), ("quote", quoter)];
    let own_kib = |program: &Guard| -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
            .expect("the kernel says it")
    };
    let begun = Instant::now();
    let mut first: Option<Vec<u64>> = None;
    loop {
        let past = begun.elapsed().as_secs();
        for (word, program) in &mut programs {
            let ended = program.0.try_wait().expect("a child");
            assert!(
                ended.is_none(),
                "{word} ended after {past} s, {ended:?}: {}",
                said(&folder, word)
            );
        }
        let now: Vec<u64> = programs.iter().map(|(_, program)| own_kib(program)).collect();
        if past * 10 >= seconds && first.is_none() {
            first = Some(now.clone());
        }
        if past >= seconds {
            let first = first.expect("a tenth of the time is over");
            eprintln!(
                "exchange, feed, quote after {} s and {past} s, KiB: {first:?} {now:?}",
                seconds / 10
            );
            // What a process touches for the first time in its first seconds is no growth.
            for ((word, _), (first, now)) in programs.iter().zip(first.iter().zip(&now)) {
                assert!(
                    seconds < 600 || *now <= first + first / 10 + 1024,
                    "{word} has grown from {first} to {now} KiB in {past} s"
                );
            }
            break;
        }
        std::thread::sleep(Duration::from_millis(if seconds > 100 { 5_000 } else { 100 }));
    }
    wait_for("something traded", || {
        let fills = std::fs::read_to_string(folder.0.join("state/fills")).unwrap_or_default();
        (fills.lines().filter(|line| line.starts_with("fill,")).count() > 3).then_some(())
    });
    let [(_, mut exchange), _, (_, mut quoter)] = programs;
    for program in [&mut quoter, &mut exchange] {
        signal("INT", program.0.id());
        program.wait(PATIENCE).expect("it ends");
    }
    let (fills, journal) = (folder.0.join("state/fills"), folder.0.join("exchange.journal"));
    let reconcile = |own: &Path| {
        let file = |path: &Path| path.to_str().expect("a path of text").to_string();
        let (own, venue) = (file(own), file(&journal));
        let compared = run(&[
            "reconcile",
            "--own",
            &own,
            "--venue",
            &venue,
            "--session",
            "QUOTER",
        ]);
        let said = [&compared.stdout[..], &compared.stderr[..]]
            .map(String::from_utf8_lossy)
            .concat();
        (compared.status.code(), said)
    };
    let (code, told) = reconcile(&fills);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("they agree"), "{told}");
    // Without its first line our record lacks an execution.
    let all = std::fs::read_to_string(&fills).expect("it is there");
    let lines: Vec<&str> = all.split_inclusive('\n').collect();
    let first = lines
        .iter()
        .position(|line| line.starts_with("fill,"))
        .expect("a fill");
    let without: String = lines
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != first)
        .map(|(_, line)| *line)
        .collect();
    let (code, told) = reconcile(&folder.file("without", without));
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("we do not have it") && told.contains("DIFFERS"),
        "{told}"
    );
}
