//! The exchange as a user runs it: orders by FIX and OUCH over real sockets, killed in the middle of its work
//! again and again, and nothing that it acknowledged is lost.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::{Folder, Guard, free_ports, run, signal, text, tickwire};
use tickwire_feed::{OuchClient, OuchConfig, OuchEvent, SoupConfig};
use tickwire_fix::{Again, CompId, Event, MemoryStore, Role, Session, SessionConfig, Status, Version};
use tickwire_market::{Nanos, Price, SeqNo};
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::moldudp64::Request;
use tickwire_wire::ouch50::{Appendage, EnterOrder, Outbound, parse_outbound, price_field};

const PATIENCE: Duration = Duration::from_secs(60);
/// Orders a client has without an answer.
const IN_FLIGHT: usize = 200;

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Nanos(since.as_nanos() as u64)
}

fn config(folder: &Folder) -> PathBuf {
    let [a, b, c, d] = free_ports();
    let text = format!(
        r#"
[[feed]]
venue = "nasdaq"
[[feed.channel]]
name = "1"
live = {{ a = "239.192.81.1:{a}", b = "239.192.81.2:{b}" }}
requests = "127.0.0.1:{c}"
snapshot_server = "127.0.0.1:{d}"

[order_entry]
address = "127.0.0.1:0"
anyone = false
[[order_entry.session]]
comp_id = "MAKER"
version = "FIX.4.2"
firm = 1
[order_entry.ouch]
address = "127.0.0.1:0"
[[order_entry.ouch.user]]
username = "alice"
password = "secret"
firm_name = "FIRM"
firm = 2

[exchange]
symbols = 5
rate = 1000
duration_s = 3600.0
[exchange.journal]
file = "exchange.journal"
snapshot_s = 1
"#
    );
    folder.file("exchange.toml", text)
}

/// A running exchange.
struct Exchange {
    process: Guard,
    fix: u16,
    ouch: u16,
    /// What it said before it listened.
    said: Vec<String>,
}

impl Exchange {
    fn start(config: &Path) -> Exchange {
        Exchange::start_in(Path::new("."), config)
    }

    /// In a working folder of its own.
    fn start_in(folder: &Path, config: &Path) -> Exchange {
        let mut child = tickwire()
            .current_dir(folder)
            .args(["exchange", "-c"])
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut said = Vec::new();
        let ready = loop {
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("it ended: {said:?}"))
                .expect("text");
            if line.starts_with("listening:") {
                break line;
            }
            said.push(line);
        };
        std::thread::spawn(move || lines.for_each(drop));
        let port = |what: &str| -> u16 {
            let rest = ready
                .split(&format!("{what} on port "))
                .nth(1)
                .unwrap_or_else(|| panic!("{ready}"));
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().expect("a port")
        };
        Exchange {
            process: Guard(child),
            fix: port("order entry"),
            ouch: port("OUCH"),
            said,
        }
    }

    fn kill(mut self) {
        self.process.0.kill().expect("it can be killed");
        self.process.0.wait().expect("a child can be waited for");
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_nodelay(true).expect("an option of TCP");
    stream
        .set_read_timeout(Some(Duration::from_millis(1)))
        .expect("a time-out");
    stream
}

/// What there is to read; `false` when the connection is over.
fn receive(stream: &mut TcpStream, buffer: &mut [u8], mut take: impl FnMut(&[u8])) -> bool {
    match stream.read(buffer) {
        Ok(0) => false,
        Ok(n) => {
            take(&buffer[..n]);
            true
        }
        Err(e) => matches!(
            e.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        ),
    }
}

/// Orders by identifier: how much was filled as far as the client heard.
type Heard = BTreeMap<String, u64>;

struct Maker {
    session: Session<MemoryStore>,
    next: u32,
    heard: Heard,
    /// Orders that were refused.
    refused: BTreeSet<String>,
}

impl Maker {
    fn new() -> Maker {
        let id = |s: &str| CompId::new(s.as_bytes()).expect("short");
        let config = SessionConfig {
            ..SessionConfig::new(Role::Initiator, id("MAKER"), id("EXCHANGE")).of_version(Version::Fix42)
        };
        Maker {
            session: Session::new(config),
            next: 1,
            heard: Heard::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Orders sent that nothing was heard of.
    fn unanswered(&self) -> usize {
        self.next as usize - 1 - self.heard.len() - self.refused.len()
    }

    fn order(&mut self) {
        let id = format!("f{}", self.next);
        // Every third one takes.
        let (price, tif) = if self.next.is_multiple_of(3) {
            ("500", b'3')
        } else {
            ("1", b'0')
        };
        let sent = self.session.send(now(), b"D", Again::Resend, |e, _| {
            e.text(11, id.as_bytes());
            e.char(21, b'1');
            e.text(55, b"AAPL");
            e.char(54, b'1');
            e.text(60, b"20260105-14:30:00");
            e.unsigned(38, 7);
            e.char(40, b'2');
            e.text(44, price.as_bytes());
            e.char(59, tif);
        });
        if sent.is_ok() {
            self.next += 1;
        }
    }

    fn turn(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> bool {
        while let Some(bytes) = self.session.poll_transmit(buffer) {
            if stream.write_all(bytes).is_err() {
                return false;
            }
        }
        let mut all = Vec::new();
        let is_open = receive(stream, buffer, |bytes| all.extend_from_slice(bytes));
        let mut rest = &all[..];
        loop {
            let taken = self.session.handle_bytes(now(), rest);
            rest = &rest[taken..];
            while let Some(event) = self.session.poll_event() {
                if let Event::Message { .. } = event {
                    let message = self.session.message().expect("just told");
                    let value = |tag| message.find(tag).map(|f| message.value(f));
                    let id = || String::from_utf8(value(11).expect("required").to_vec()).expect("ASCII");
                    if message.msg_type() == b"8" && value(39) == Some(b"8") {
                        self.refused.insert(id());
                    } else if message.msg_type() == b"8" {
                        let id = id();
                        let cum = message.find(14).and_then(|f| message.unsigned(f).ok());
                        let heard = self.heard.entry(id).or_default();
                        *heard = (*heard).max(cum.expect("required"));
                    }
                }
            }
            if rest.is_empty() {
                return is_open;
            }
        }
    }
}

struct Alice {
    client: OuchClient,
    heard: Heard,
    accepted: u64,
}

impl Alice {
    fn new() -> Alice {
        let soup = SoupConfig {
            username: Alpha::new(b"alice").expect("short"),
            password: Alpha::new(b"secret").expect("short"),
            ..SoupConfig::default()
        };
        Alice {
            client: OuchClient::new(OuchConfig {
                soup,
                ..OuchConfig::default()
            }),
            heard: Heard::new(),
            accepted: 0,
        }
    }

    fn order(&mut self) {
        let order = EnterOrder {
            side: Char(b'B'),
            quantity: 5.into(),
            symbol: Alpha::new(b"MSFT").expect("short"),
            price: price_field(Price::from_4dp(20_000)).expect("four decimals"),
            time_in_force: Char(b'0'),
            display: Char(b'Y'),
            capacity: Char(b'P'),
            iso_eligible: Char(b'N'),
            cross_type: Char(b'N'),
            ..EnterOrder::NEW
        };
        self.client.enter(now(), &order, &Appendage::EMPTY);
    }

    fn turn(&mut self, stream: &mut TcpStream, buffer: &mut [u8]) -> bool {
        while let Some(bytes) = self.client.poll_transmit(buffer) {
            if stream.write_all(bytes).is_err() {
                return false;
            }
        }
        let client = &mut self.client;
        let is_open = receive(stream, buffer, |bytes| client.handle_bytes(now(), bytes));
        while let Some(event) = self.client.poll_event(now()) {
            match event {
                OuchEvent::Message { .. } => match parse_outbound(self.client.message()) {
                    Ok((Outbound::OrderAccepted(m), _)) => {
                        self.accepted += 1;
                        let before = self.heard.insert(m.user_ref_num.get().to_string(), 0);
                        assert_eq!(before, None, "accepted once");
                    }
                    Ok((Outbound::OrderExecuted(m), _)) => {
                        let id = m.user_ref_num.get().to_string();
                        *self.heard.get_mut(&id).expect("accepted before") += u64::from(m.quantity.get());
                    }
                    Ok(_) => {}
                    Err(e) => panic!("{e}"),
                },
                OuchEvent::Ready { .. } => {}
                OuchEvent::EndOfSession | OuchEvent::Failed(_) => return false,
            }
        }
        is_open
    }
}

/// Port and identifier to how much is filled, from the journal.
fn ledger(journal: &Path) -> BTreeMap<(String, String), u64> {
    let out = run(&["journal", journal.to_str().expect("text"), "--orders"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let rows = text(&out.stdout)
        .lines()
        .skip(1)
        .map(str::to_string)
        .collect::<Vec<_>>();
    rows.iter()
        .map(|row| {
            let cells: Vec<&str> = row.split(',').collect();
            (
                (cells[0].to_string(), cells[1].to_string()),
                cells[6].parse().expect("a number"),
            )
        })
        .collect()
}

/// A venue that waits for its first client gives its core back: what spins is never switched off by itself.
#[test]
fn an_exchange_with_nothing_to_do_sleeps() {
    let folder = Folder::new("exchange-idle");
    let path = config(&folder);
    let text = std::fs::read_to_string(&path).expect("written");
    std::fs::write(
        &path,
        text.replace("rate = 1000", "rate = 1000\nstart_on_logon = true"),
    )
    .expect("written");
    let exchange = Exchange::start(&path);
    let status = format!("/proc/{}/status", exchange.process.0.id());
    let naps = || -> u64 {
        let status = std::fs::read_to_string(&status).expect("it lives");
        let line = status
            .lines()
            .find(|line| line.starts_with("voluntary_ctxt_switches:"));
        let count = line.and_then(|line| line.split_whitespace().nth(1));
        count
            .and_then(|count| count.parse().ok())
            .expect("Linux counts them")
    };
    let (before, until) = (naps(), Instant::now() + PATIENCE);
    while naps() < before + 100 {
        assert!(Instant::now() < until, "it spins");
        std::thread::sleep(Duration::from_millis(10));
    }
    exchange.kill();
}

#[test]
fn no_acknowledged_order_is_lost_when_the_exchange_is_killed_under_load_again_and_again() {
    killed_under_load("process", common::times(5));
}

/// Before every acknowledgement the device has what it follows from: slower, and as whole. That every flush
/// waits for it is a test of `journal.rs`.
#[test]
fn nor_is_one_of_an_exchange_whose_journal_goes_to_the_disk_before_it_acknowledges() {
    killed_under_load("disk", common::times(3));
}

fn killed_under_load(durability: &str, rounds: u32) {
    let folder = Folder::new(&format!("exchange-kill-{durability}"));
    let config = config(&folder);
    let text_of = std::fs::read_to_string(&config).expect("just written");
    let whole = text_of + &format!("durability = \"{durability}\"\n");
    std::fs::write(&config, whole).expect("it can be written");
    // It holds a password.
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o600)).expect("ours");
    let journal = folder.0.join("exchange.journal");
    let (mut maker, mut alice) = (Maker::new(), Alice::new());
    let mut buffer = vec![0; 16 << 10];
    for round in 0..=rounds {
        let exchange = Exchange::start(&config);
        assert_eq!(exchange.said.is_empty(), round == 0, "{:?}", exchange.said);
        let mut fix = connect(exchange.fix);
        let mut ouch = connect(exchange.ouch);
        maker.session.handle_connected(now());
        alice.client.handle_connected(now());
        // Until both are in, then under load; in the last round until nothing is unanswered.
        let deadline = Instant::now() + PATIENCE;
        let mut loaded: Option<Instant> = None;
        let mut quiet = 0;
        loop {
            assert!(
                Instant::now() < deadline,
                "round {round}: {:?}, {} and {} orders without an answer",
                maker.session.status(),
                maker.unanswered(),
                alice.client.unanswered()
            );
            assert!(maker.turn(&mut fix, &mut buffer), "round {round}: FIX ended");
            assert!(alice.turn(&mut ouch, &mut buffer), "round {round}: OUCH ended");
            let is_on = maker.session.status() == Status::Active && alice.client.is_ready();
            if !is_on {
                continue;
            }
            let unanswered = maker.unanswered().max(alice.client.unanswered());
            if round == rounds {
                // Fills of what was accepted come with it.
                quiet = if unanswered == 0 { quiet + 1 } else { 0 };
                if quiet > 100 {
                    break;
                }
                continue;
            }
            // However slow the device: so many wait for it, not all that a second has room for.
            for _ in 0..if unanswered < IN_FLIGHT { 10 } else { 0 } {
                maker.order();
                alice.order();
            }
            let since = *loaded.get_or_insert_with(Instant::now);
            if since.elapsed() > Duration::from_millis(100 + 70 * u64::from(round % 8))
                && !maker.heard.is_empty()
            {
                break;
            }
        }
        if round < rounds {
            exchange.kill();
            maker.session.handle_disconnected(now());
            alice.client.handle_closed();
            while alice.client.poll_event(now()).is_some() {}
            if round + 1 == rounds {
                // A record that was being written.
                let mut file = std::fs::OpenOptions::new()
                    .append(true)
                    .open(&journal)
                    .expect("it is there");
                file.write_all(&[0x2a; 21]).expect("room");
            }
        } else {
            let mut exchange = exchange;
            signal("TERM", exchange.process.0.id());
            assert!(exchange.process.wait(PATIENCE).is_some());
        }
    }
    let ledger = ledger(&journal);
    let heard = maker
        .heard
        .iter()
        .map(|(id, n)| (("fix0".to_string(), id.clone()), *n));
    let heard = heard.chain(
        alice
            .heard
            .iter()
            .map(|(id, n)| (("ouch0".to_string(), id.clone()), *n)),
    );
    let mut compared = 0;
    for (key, filled) in heard {
        assert_eq!(ledger.get(&key), Some(&filled), "{key:?}");
        compared += 1;
    }
    println!(
        "{durability}: {compared} acknowledged orders, {} in the ledger, {rounds} kills",
        ledger.len()
    );
    assert!(compared > 200, "{compared}");
    assert!(maker.heard.values().any(|n| *n > 0), "some traded");
    let out = run(&["journal", journal.to_str().expect("text"), "--verify"]);
    let said = text(&out.stdout).to_string();
    assert!(
        out.status.success() && said.contains("noted hashes are the same"),
        "{said}"
    );
    let marks: u32 = said
        .split(" of ")
        .nth(1)
        .and_then(|s| s.split(' ').next())
        .expect("a count")
        .parse()
        .expect("a number");
    assert!(marks >= rounds, "{said}");
}

/// Passwords come by FIX and OUCH, right ones and wrong ones; no file has one, and what a restart makes of
/// the journal is what was.
#[test]
fn no_file_has_a_password_of_the_configuration_or_of_a_client() {
    let folder = Folder::new("exchange-secrets");
    let config = config(&folder);
    let whole = std::fs::read_to_string(&config).expect("just written");
    let whole = whole.replace("symbols = 5\n", "symbols = 5\ncontrol = \"desk\"\n");
    std::fs::write(&config, whole.replace("\"secret\"", "\"s3cr3t-ouc\"")).expect("room");
    let journal = folder.0.join("exchange.journal");
    let exchange = Exchange::start_in(&folder.0, &config);
    let login = |user: &[u8; 6], password: &[u8; 10], from: u8| {
        let mut packet = b"\0\x2fL".to_vec();
        packet.extend_from_slice(user);
        packet.extend_from_slice(password);
        packet.extend_from_slice(b"                             ");
        packet.push(from);
        packet
    };
    // The first packet that comes back: its length, then its type.
    let answer = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(PATIENCE)).expect("an option of TCP");
        let mut head = [0; 3];
        stream.read_exact(&mut head).expect("an answer");
        head[2]
    };
    let mut refused = connect(exchange.ouch);
    refused
        .write_all(&login(b"alice ", b"wr0ng-0uch", b'1'))
        .expect("it reads");
    assert_eq!(answer(&mut refused), b'J', "refused");
    let mut alice = connect(exchange.ouch);
    for byte in login(b"alice ", b"s3cr3t-ouc", b'1') {
        alice.write_all(&[byte]).expect("it reads");
    }
    assert_eq!(answer(&mut alice), b'A', "accepted, however it was cut");
    // A Logon of FIX 4.2 with a password, which this venue does not ask for.
    let body = "35=A\u{1}34=1\u{1}49=MAKER\u{1}56=EXCHANGE\u{1}52=20260101-00:00:00\u{1}98=0\u{1}108=30\u{1}96=s3cr3t-raw\u{1}554=s3cr3t-fix\u{1}";
    let text_of = format!("8=FIX.4.2\u{1}9={}\u{1}{body}", body.len());
    let sum = text_of.bytes().fold(0_u8, u8::wrapping_add);
    let mut maker = connect(exchange.fix);
    maker
        .write_all(format!("{text_of}10={sum:03}\u{1}").as_bytes())
        .expect("it reads");
    // Whatever it says to that, it has it.
    maker.set_read_timeout(Some(PATIENCE)).expect("an option of TCP");
    let _ = maker.read(&mut [0; 64]);
    exchange.kill();
    let secrets = ["s3cr3t-ouc", "wr0ng-0uch", "s3cr3t-raw", "s3cr3t-fix", "s3cr3t"];
    assert!(folder.holds_no_secret(&secrets, &[&config]) >= 1);
    // The same market again, and the password is still asked for.
    let again = Exchange::start_in(&folder.0, &config);
    let said = again.said.join("\n");
    assert!(said.contains("inputs replayed"), "{said}");
    assert!(
        said.contains("holds a password and others may read it (mode 0644)"),
        "{said}"
    );
    let mut refused = connect(again.ouch);
    refused
        .write_all(&login(b"alice ", b"*hidden*  ", b'1'))
        .expect("it reads");
    assert_eq!(answer(&mut refused), b'J', "what the journal says is no password");
    let mut alice = connect(again.ouch);
    alice
        .write_all(&login(b"ALICE ", b"S3CR3T-OUC", b'1'))
        .expect("it reads");
    assert_eq!(answer(&mut alice), b'A');
    again.kill();
    let verified = run(&["journal", journal.to_str().expect("text"), "--verify"]);
    assert!(verified.status.success(), "{}", text(&verified.stderr));
    let shown = run(&["config", config.to_str().expect("text")]);
    assert!(text(&shown.stdout).contains("*hidden*") && !text(&shown.stdout).contains("s3cr3t"));
    folder.holds_no_secret(&secrets, &[&config]);
}

/// Says something to the exchange whose control socket is in a folder: exit code and what came out.
fn tell(folder: &Path, words: &str) -> (Option<i32>, String) {
    let socket = folder.to_str().expect("text");
    let mut args = vec!["exchange", "--socket", socket, "--tell"];
    args.extend(words.split(' '));
    let out = run(&args);
    (
        out.status.code(),
        format!("{}{}", text(&out.stdout), text(&out.stderr)),
    )
}

fn status(folder: &Path) -> serde_json::Value {
    let (code, said) = tell(folder, "status");
    assert_eq!(code, Some(0), "{said}");
    serde_json::from_str(&said).expect("JSON")
}

/// Sends one order and waits for its answer: whether it was taken.
fn is_taken(maker: &mut Maker, stream: &mut TcpStream, buffer: &mut [u8]) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while maker.session.status() != Status::Active {
        assert!(
            maker.turn(stream, buffer) && Instant::now() < deadline,
            "no logon"
        );
    }
    let refused = maker.refused.len();
    maker.order();
    while maker.unanswered() > 0 {
        assert!(
            maker.turn(stream, buffer) && Instant::now() < deadline,
            "no answer"
        );
    }
    maker.refused.len() == refused
}

#[test]
fn an_operator_halts_resumes_breaks_loses_cuts_off_and_closes_and_a_restart_knows_what_was_done() {
    let folder = Folder::new("exchange-operator");
    let config = config(&folder);
    let whole = std::fs::read_to_string(&config).expect("just written");
    let whole = whole.replace("symbols = 5\n", "symbols = 5\ncontrol = \"desk\"\n");
    std::fs::write(&config, whole).expect("it can be written");
    let desk = folder.0.join("desk");
    let (code, said) = tell(&desk, "status");
    assert_eq!(
        (code, said.contains("tickwire exchange -c FILE")),
        (Some(4), true),
        "{said}"
    );

    let exchange = Exchange::start(&config);
    let mode = std::fs::metadata(desk.join("control"))
        .expect("it is there")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let deadline = Instant::now() + PATIENCE;
    while status(&desk)["day"] != "open" {
        assert!(Instant::now() < deadline, "{}", status(&desk));
    }
    let (mut maker, mut buffer) = (Maker::new(), vec![0; 16 << 10]);
    let mut fix = connect(exchange.fix);
    maker.session.handle_connected(now());
    assert!(is_taken(&mut maker, &mut fix, &mut buffer));

    assert_eq!(
        tell(&desk, "halt AAPL"),
        (Some(0), "AAPL is halted at nasdaq\n".into())
    );
    assert!(!is_taken(&mut maker, &mut fix, &mut buffer), "it is halted");
    assert_eq!(status(&desk)["halted"][0]["symbol"], "AAPL");
    for (words, why) in [
        ("halt AAPL", "AAPL cannot be halted at nasdaq (halted)"),
        ("halt NOBODY", "no instrument is called \"NOBODY\""),
        ("resume MSFT", "MSFT cannot be resumed at nasdaq (trading)"),
        ("break 999999999", "there is none"),
        ("lose 5 c", "lose PACKETS [a|b]"),
    ] {
        let (code, said) = tell(&desk, words);
        assert_eq!((code, said.contains(why)), (Some(2), true), "{words}: {said}");
    }
    assert_eq!(tell(&desk, "call AAPL").0, Some(0));
    assert_eq!(tell(&desk, "resume AAPL").0, Some(0));
    assert!(is_taken(&mut maker, &mut fix, &mut buffer));

    // The flow trades on; what is last when it is broken may be an auction's.
    let broken = loop {
        assert!(Instant::now() < deadline, "nothing trades");
        let trade = status(&desk)["last_trade"].as_u64().expect("a number");
        if tell(&desk, &format!("break {trade} supervisory")).0 == Some(0) {
            break trade;
        }
    };
    let (code, said) = tell(&desk, &format!("break {broken}"));
    assert_eq!((code, said.contains("broken already")), (Some(2), true), "{said}");
    let (code, said) = tell(&desk, "lose 5");
    assert_eq!((code, said.contains("on 2 lines")), (Some(0), true), "{said}");
    let (code, said) = tell(&desk, "lose 5 b");
    assert_eq!(
        (code, said.contains("on 1 line are lost")),
        (Some(0), true),
        "{said}"
    );
    assert_eq!(tell(&desk, "disconnect").0, Some(0));
    while maker.turn(&mut fix, &mut buffer) {
        assert!(Instant::now() < deadline, "still connected");
    }
    maker.session.handle_disconnected(now());

    // What was done outlives the process.
    assert_eq!(tell(&desk, "halt MSFT").0, Some(0));
    exchange.kill();
    let exchange = Exchange::start(&config);
    assert_eq!(status(&desk)["halted"][0]["symbol"], "MSFT");
    assert_eq!(
        tell(&desk, &format!("break {broken}")).0,
        Some(2),
        "broken before"
    );
    assert_eq!(tell(&desk, "close").0, Some(0));
    let mut exchange = exchange;
    let ended = exchange.process.wait(PATIENCE).expect("the day ends");
    assert!(ended.success(), "{ended}");
    let journal = folder.0.join("exchange.journal");
    let out = run(&["journal", journal.to_str().expect("text"), "--verify"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let out = run(&["journal", journal.to_str().expect("text")]);
    assert!(text(&out.stdout).contains("halted or resumed"));
}

/// Messages that memory has forgotten are sent again from the file beside the journal, the same bytes, after
/// a kill too.
#[test]
fn what_memory_has_forgotten_is_sent_again_from_the_disk() {
    let folder = Folder::new("exchange-history");
    let path = config(&folder);
    let small = std::fs::read_to_string(&path).expect("a configuration");
    let small = small.replace("rate = 1000", "rate = 20000\nkept_messages = 4096");
    std::fs::write(&path, &small).expect("written");
    let requests = small.split("requests = \"").nth(1).expect("an address");
    let requests = requests.split('"').next().expect("an address").to_string();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a time-out");
    let ask = |seq: u64| -> Vec<u8> {
        let request = Request {
            session: *b"TICKWIRE01",
            seq: SeqNo(seq),
            count: 30,
        };
        let started = Instant::now();
        let mut reply = [0; 2048];
        loop {
            assert!(started.elapsed() < PATIENCE, "no answer about {seq}");
            socket.send_to(&request.encode(), &requests).expect("sent");
            if let Ok(length) = socket.recv(&mut reply) {
                return reply[..length].to_vec();
            }
        }
    };
    let exchange = Exchange::start_in(&folder.0, &path);
    // So many are published.
    ask(100);
    let first = ask(1);
    assert!(first.len() > 500, "{} bytes", first.len());
    // Published: of 4,096 messages in memory the first is none now.
    ask(60_000);
    assert_eq!(ask(1), first);
    let later = ask(30_000);
    let file = folder.0.join("exchange.journal.history-0");
    let data = std::fs::metadata(&file).expect("a file beside the journal");
    assert_eq!(data.permissions().mode() & 0o777, 0o600);
    assert!(data.len() > 1_000_000, "{} bytes", data.len());
    exchange.kill();
    let exchange = Exchange::start_in(&folder.0, &path);
    assert_eq!((ask(1), ask(30_000)), (first, later));
    exchange.kill();
}

#[test]
fn a_journal_of_another_configuration_or_in_use_is_refused_with_what_to_do() {
    let folder = Folder::new("exchange-other");
    let config = config(&folder);
    let first = Exchange::start(&config);
    let second = run(&["exchange", "-c", config.to_str().expect("text")]);
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("in use by another exchange"));
    first.kill();
    // From another working folder it is the same one.
    let elsewhere = Exchange::start_in(&folder.0, Path::new("exchange.toml"));
    assert!(
        elsewhere.said.iter().any(|line| line.contains("inputs replayed")),
        "{:?}",
        elsewhere.said
    );
    elsewhere.kill();
    let changed = std::fs::read_to_string(&config)
        .expect("it is there")
        .replace("symbols = 5", "symbols = 6");
    let other = folder.file("other.toml", changed);
    let refused = run(&["exchange", "-c", other.to_str().expect("text")]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("written with another configuration"));
    let journal = folder.0.join("exchange.journal");
    let out = run(&["journal", journal.to_str().expect("text"), "--config"]);
    assert!(text(&out.stdout).contains("symbols = 5"));
    let out = run(&["journal", config.to_str().expect("text")]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("is not a journal"));
}

/// A market maker's session.
struct Quoter {
    session: Session<MemoryStore>,
    stream: TcpStream,
    said: Vec<String>,
}

impl Quoter {
    fn log_on(port: u16, version: Version) -> Quoter {
        let id = |s: &str| CompId::new(s.as_bytes()).expect("short");
        let config = SessionConfig {
            ..SessionConfig::new(Role::Initiator, id("QUOTER"), id("EXCHANGE")).of_version(version)
        };
        let mut quoter = Quoter {
            session: Session::new(config),
            stream: connect(port),
            said: Vec::new(),
        };
        quoter.session.handle_connected(now());
        let since = Instant::now();
        while quoter.session.status() != Status::Active {
            quoter.turn();
            assert!(since.elapsed() < PATIENCE, "no logon");
        }
        quoter
    }

    fn turn(&mut self) {
        let mut buffer = [0; 1 << 14];
        while let Some(bytes) = self.session.poll_transmit(&mut buffer) {
            self.stream.write_all(bytes).expect("it reads");
        }
        let mut all = Vec::new();
        assert!(receive(&mut self.stream, &mut buffer, |bytes| all
            .extend_from_slice(bytes)));
        let mut rest = &all[..];
        while !rest.is_empty() {
            let taken = self.session.handle_bytes(now(), rest);
            rest = &rest[taken..];
            while let Some(event) = self.session.poll_event() {
                if let Event::Message { .. } = event {
                    let message = self.session.message().expect("just told");
                    let fields = message.fields().iter();
                    let text = fields.map(|f| format!("|{}={}", f.tag, message.value(*f).escape_ascii()));
                    self.said.push(text.collect::<String>() + "|");
                }
            }
        }
    }

    /// The next message with all of these in it.
    fn wait_for(&mut self, parts: &[&str]) -> String {
        let since = Instant::now();
        loop {
            let has_all = |said: &String| parts.iter().all(|part| said.contains(part));
            if let Some(at) = self.said.iter().position(has_all) {
                return self.said.remove(at);
            }
            assert!(since.elapsed() < PATIENCE, "no {parts:?} among {:#?}", self.said);
            self.turn();
        }
    }

    /// An order for AAPL.
    fn order(&mut self, id: &str, side: u8, qty: u64, price: &str, time_in_force: u8) {
        let sent = self.session.send(now(), b"D", Again::Resend, |e, _| {
            e.text(11, id.as_bytes());
            e.text(55, b"AAPL");
            e.char(54, side);
            e.text(60, b"20260105-14:30:00");
            e.unsigned(38, qty);
            e.char(40, b'2');
            e.text(44, price.as_bytes());
            e.char(59, time_in_force);
        });
        sent.expect("logged on");
    }

    fn quote(&mut self, id: &str, bid: &str, offer: &str, resets: bool) {
        let sent = self.session.send(now(), b"i", Again::Resend, |e, _| {
            e.text(117, id.as_bytes());
            e.char(537, b'1');
            e.char(301, b'2');
            if resets {
                e.char(9773, b'Y');
            }
            e.text(296, b"1");
            e.text(302, b"1");
            e.text(304, b"2");
            e.text(295, b"2");
            for (entry, symbol, bid) in [("1", "AAPL", bid), ("2", "MSFT", "1")] {
                e.text(299, entry.as_bytes());
                e.text(55, symbol.as_bytes());
                e.text(132, bid.as_bytes());
                e.text(133, offer.as_bytes());
                e.text(134, b"10");
                e.text(135, b"10");
            }
        });
        sent.expect("logged on");
    }
}

#[test]
fn a_market_maker_quotes_over_its_session_is_filled_protected_and_swept_when_its_connection_is_lost() {
    let folder = Folder::new("exchange-quotes");
    let path = config(&folder);
    let whole = std::fs::read_to_string(&path).expect("it is there")
        + r#"
[[order_entry.session]]
comp_id = "QUOTER"
version = "FIX.5.0SP2"
firm = 7
cancel_on_disconnect = true
[[order_entry.protection]]
firm = 7
window_ms = 60000
trades = 1
"#;
    std::fs::write(&path, whole).expect("it can be written");
    let exchange = Exchange::start(&path);
    let mut quoter = Quoter::log_on(exchange.fix, Version::Fix50Sp2);

    // Until the market is open entries are refused.
    let since = Instant::now();
    loop {
        quoter.quote("far", "1", "900", false);
        let ack = quoter.wait_for(&["|35=b|", "|117=far|"]);
        if ack.contains("|297=0|") {
            assert!(ack.contains("|299=1|1167=0|299=2|1167=0|"), "{ack}");
            break;
        }
        assert!(since.elapsed() < PATIENCE && ack.contains("|368=2|"), "{ack}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let ask = |quoter: &mut Quoter, symbol: &str| {
        let sent = quoter.session.send(now(), b"a", Again::Resend, |e, _| {
            e.text(649, b"r");
            e.text(55, symbol.as_bytes());
        });
        sent.expect("logged on");
        quoter.wait_for(&["|35=AI|"])
    };
    let status = ask(&mut quoter, "AAPL");
    assert!(
        status.contains("|132=1.00|134=10|133=900.00|135=10|297=16|"),
        "{status}"
    );

    // A bid above the market trades, which is one trade too many: all quotes are gone until the reset.
    quoter.quote("near", "500", "900", false);
    let fill = quoter.wait_for(&["|35=8|", "|11=1|", "|150=F|"]);
    assert!(fill.contains("|54=1|") && fill.contains("|38=10|"), "{fill}");
    let removed = quoter.wait_for(&["|35=b|", "|9775=F|"]);
    assert!(removed.contains("|117=near|297=6|"), "{removed}");
    assert!(ask(&mut quoter, "MSFT").contains("|297=6|"));
    quoter.quote("refused", "1", "900", false);
    let refused = quoter.wait_for(&["|35=b|", "|117=refused|"]);
    assert!(
        refused.contains("|297=5|") && refused.contains("|368=98|"),
        "{refused}"
    );
    quoter.quote("again", "1", "900", true);
    let again = quoter.wait_for(&["|35=b|", "|117=again|"]);
    assert!(again.contains("|297=0|") && again.contains("|9773=Y|"), "{again}");

    // The connection is lost.
    let mut session = quoter.session;
    drop(quoter.stream);
    session.handle_disconnected(now());
    let mut quoter = Quoter {
        stream: connect(exchange.fix),
        session,
        said: Vec::new(),
    };
    quoter.session.handle_connected(now());
    let swept = quoter.wait_for(&["|35=b|", "|9775=A|"]);
    assert!(swept.contains("|299=1|") && swept.contains("|299=2|"), "{swept}");
    assert!(ask(&mut quoter, "AAPL").contains("|297=6|"));
    exchange.kill();

    // What is wrong in the configuration is named.
    let whole = std::fs::read_to_string(&path).expect("it is there");
    for (from, to, said) in [
        ("trades = 1", "", "has no limit"),
        ("window_ms = 60000", "window_ms = 0", "window_ms 0 is outside"),
    ] {
        let wrong = folder.file("wrong.toml", whole.replace(from, to));
        let refused = run(&["config", wrong.to_str().expect("text")]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(said), "{}", text(&refused.stderr));
    }
}

/// The value of a field of a message as [`Quoter`] keeps it.
fn value(said: &str, tag: u32) -> &str {
    let rest = said.split(&format!("|{tag}=")).nth(1);
    let value = rest.and_then(|rest| rest.split('|').next());
    value.unwrap_or_else(|| panic!("no {tag} in {said}"))
}

/// The time of day in TransactTime.
fn time_in(said: &str) -> String {
    let date_and_time = value(said, 60).split_once('-').expect("date and time");
    date_and_time.1.to_string()
}

/// A time of day as the configuration has it, and as TransactTime begins.
fn time_of_day(seconds: u64) -> String {
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[test]
fn a_scheduled_day_opens_with_an_auction_trades_and_ends_with_one() {
    // The day's times are the clock's: on a machine too slow for them it is tried again with more of it.
    let leads = [3, 6, 12, 24, 48];
    assert!(leads.into_iter().any(is_a_scheduled_day_kept), "always late");
}

/// Opening after `lead` seconds, the closing's call phase and the closing each after a third of it; `false`
/// when an order was too late for the phase it was meant for.
fn is_a_scheduled_day_kept(lead: u64) -> bool {
    const DAY_S: u64 = 86_400;
    let second = || now().0 / Nanos::SECOND % DAY_S;
    while second() + 3 * lead > DAY_S {
        // Times of day do not reach over midnight, UTC.
        std::thread::sleep(Duration::from_secs(1));
    }
    let folder = Folder::new("exchange-auctions");
    let path = config(&folder);
    let opening = second() + 1 + lead;
    let step = lead.div_ceil(3);
    let [opening, call, closing] = [opening, opening + 2 * step, opening + 3 * step].map(time_of_day);
    let whole = std::fs::read_to_string(&path).expect("it is there")
        + &format!(
            r#"
[[order_entry.session]]
comp_id = "QUOTER"
version = "FIX.5.0SP2"
firm = 7
[exchange.auctions]
opening = "{opening}"
closing_call = "{call}"
closing = "{closing}"
indicate_s = 1
"#
        );
    std::fs::write(&path, whole).expect("it can be written");
    let mut exchange = Exchange::start(&path);
    let mut client = Quoter::log_on(exchange.fix, Version::Fix50Sp2);

    // The opening's call phase: two orders that cross are collected, and meet at one price at the time that
    // was set. Until the books have their first orders the market takes none.
    let since = Instant::now();
    let mut number = 0;
    let first = loop {
        number += 1;
        let id = format!("buy{number}");
        client.order(&id, b'1', 30, "900", b'0');
        let said = client.wait_for(&["|35=8|", &format!("|11={id}|")]);
        if time_in(&said) >= opening {
            return false;
        }
        if value(&said, 39) == "0" {
            break id;
        }
        assert!(value(&said, 39) == "8" && since.elapsed() < PATIENCE, "{said}");
        std::thread::sleep(Duration::from_millis(5));
    };
    client.order("sell", b'2', 30, "1", b'0');
    let said = client.wait_for(&["|35=8|", "|11=sell|"]);
    if time_in(&said) >= opening {
        return false;
    }
    assert_eq!(value(&said, 39), "0", "collected: {said}");
    let bought = client.wait_for(&["|35=8|", &format!("|11={first}|"), "|150=F|"]);
    let sold = client.wait_for(&["|35=8|", "|11=sell|", "|150=F|"]);
    for fill in [&bought, &sold] {
        assert!(
            time_in(fill) >= opening && time_in(fill) < call,
            "at {opening}: {fill}"
        );
    }
    assert_eq!(value(&bought, 31), value(&sold, 31), "one price");

    // Continuous trading: what crosses trades at once. What is for the close waits.
    client.order("now", b'1', 5, "900", b'3');
    let said = client.wait_for(&["|35=8|", "|11=now|"]);
    if time_in(&said) >= call {
        return false;
    }
    if value(&said, 150) != "F" {
        client.wait_for(&["|35=8|", "|11=now|", "|150=F|"]);
    }
    client.order("late buy", b'1', 10, "900", b'7');
    client.order("late sell", b'2', 10, "1", b'7');
    for id in ["late buy", "late sell"] {
        let said = client.wait_for(&["|35=8|", &format!("|11={id}|")]);
        if time_in(&said) >= closing {
            return false;
        }
        assert_eq!(value(&said, 39), "0", "{said}");
    }
    let fills =
        ["late buy", "late sell"].map(|id| client.wait_for(&["|35=8|", &format!("|11={id}|"), "|150=F|"]));
    for fill in &fills {
        assert!(time_in(fill) >= closing, "at {closing}: {fill}");
    }
    assert_eq!(value(&fills[0], 31), value(&fills[1], 31), "one price");

    // The closing auction ends the day, and a replay of the journal makes the same one.
    let mut buffer = [0; 1 << 14];
    let since = Instant::now();
    while receive(&mut client.stream, &mut buffer, |_| {}) {
        assert!(since.elapsed() < PATIENCE, "the day does not end");
    }
    assert!(
        exchange
            .process
            .wait(PATIENCE)
            .is_some_and(|status| status.success())
    );
    let journal = folder.0.join("exchange.journal");
    let out = run(&["journal", journal.to_str().expect("text"), "--verify"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    true
}
