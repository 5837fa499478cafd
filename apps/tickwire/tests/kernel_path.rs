//! The kernel path as users have it: `backend = "xdp"` between two network namespaces, an exchange in one,
//! feed daemon and trader in the other. Books and orders are the exchange's, by AF_XDP as by sockets.
//!
//! Needs root; without it the tests say so, and with `TICKWIRE_ROOT_TESTS=1` they fail.

mod common;
#[path = "common/hosts.rs"]
mod hosts;
#[path = "common/namespaces.rs"]
mod namespaces;

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, Guard, signal, text, tickwire};
use hosts::{PATIENCE, between, ended_well, exchange, path, results, said, start, trading, wait_for};
use namespaces::namespaces;
use tickwire_control::latency_file::{CARD, DRIVER, LatencyFile, SENT, WIRE_TO_WIRE};
use tickwire_feed::{OuchClient, OuchConfig, OuchEvent, SoupConfig};
use tickwire_kernelpath::delegate::{Counts, Delegate, Way};
use tickwire_market::{Counter, Level, Nanos, Price, Side};
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::shared::Attachment;
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_shm::{BookCopy, SourceState};
use tickwire_wire::layout::{Alpha, Char};
use tickwire_wire::ouch50::{Appendage, EnterOrder, Outbound, parse_outbound, price_field};

/// Four feeds of the example, and those of them that have books of their own: their sources, and what the
/// exchange calls their books.
const DAEMON: &str = include_str!("../../../examples/daemon.toml");
const BOOKS: [(&str, &[u16]); 2] = [("exchange", &[0]), ("bzx", &[1, 2])];
const TRADER: &str = include_str!("../../../examples/demo.toml");

/// The feeds that the example has not: their sources, and what the exchange calls their books.
const OTHERS: &str = r#"
[[feed]]
venue = "nyse"
protocol = "openbook"
interface = "127.0.0.1"

[[feed.channel]]
name = "1"
live = { a = "239.192.79.1:27501", b = "239.192.79.2:27502" }
retransmission = { a = "239.192.79.3:27503" }
snapshot = { a = "239.192.79.4:27504" }
replay = "127.0.0.1:27505"

[[feed]]
venue = "cme"
interface = "127.0.0.1"

[[feed.channel]]
name = "310"
live = { a = "239.192.79.11:27511", b = "239.192.79.12:27512" }
snapshot = { a = "239.192.79.13:27513" }
snapshot_by_order = { a = "239.192.79.14:27514" }
definitions = { a = "239.192.79.15:27515" }
replay = "127.0.0.1:27516"

[[feed]]
venue = "moex"
interface = "127.0.0.1"
templates = ["builtin"]

[[feed.channel]]
name = "OLR-FOND"
live = { a = "239.192.79.21:27521", b = "239.192.79.22:27522" }
snapshot = { a = "239.192.79.23:27523" }
definitions = { a = "239.192.79.24:27524" }
replay = "127.0.0.1:27525"

"#;
const OTHER_BOOKS: [(&str, u16); 3] = [("exchange", 0), ("cme", 1), ("moex", 2)];
/// Consolidated feeds, whose books are the exchange's where they are alone.
const CQS: &str = r#"
[[feed]]
venue = "cqs"
interface = "127.0.0.1"

[[feed.channel]]
name = "1"
live = { a = "239.192.79.31:27531", b = "239.192.79.32:27532" }
retransmission = { a = "239.192.79.33:27533" }
snapshot = { a = "239.192.79.34:27534" }

"#;
const UQDF: &str = r#"
[[feed]]
venue = "uqdf"
interface = "127.0.0.1"

[[feed.channel]]
name = "1"
live = { a = "239.192.79.41:27541", b = "239.192.79.42:27542" }
requests = "127.0.0.1:27543"

"#;
const OTHER_SETTINGS: &str = r#"
[receiver]
max_instruments = 1024
max_orders = 262144
max_levels = 262144
filter = true

[exchange]
seed = 1
symbols = 40
rate = 6000
duration_s = 12.0
linger_s = 8
line_a = { loss = 0.01 }
line_b = { loss = 0.01 }

[daemon]
symbols = ["AAPL", "M*"]
books = 4096
super_slots = 1024

[[daemon.thread]]
feeds = FEEDS
"#;

/// `price quantity orders` of the ten best levels, by symbol and side.
type Books = BTreeMap<String, Vec<String>>;

fn books_of_exchange(folder: &Folder, venue: &str) -> Books {
    let file = folder.0.join(format!("books-{venue}.txt"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| {
        let files = std::fs::read_dir(&folder.0).expect("a folder").flatten();
        let names: Vec<_> = files.map(|file| file.file_name()).collect();
        panic!("{}: {e}; there are {names:?}", file.display())
    });
    let mut books = Books::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let levels = books.entry(words[..2].join(" ")).or_default();
        if levels.len() < 10 {
            levels.push(words[3..].join(" "));
        }
    }
    books
}

fn books_of_region(attachment: &Attachment, sources: &[u16]) -> Books {
    let reader = attachment.reader();
    let (mut books, mut copy) = (Books::new(), BookCopy::default());
    for (slot, identity) in reader.books().filter(|(_, id)| sources.contains(&id.source)) {
        reader.read_book(slot, &mut copy).expect("nobody writes for long");
        for (side, name) in [(Side::Bid, "bid"), (Side::Ask, "ask")] {
            let level = |level: &Level| format!("{} {} {}", level.price, level.qty.0, level.orders);
            let levels: Vec<String> = copy.side(side).iter().map(level).collect();
            if !levels.is_empty() {
                books.insert(format!("{} {name}", identity.symbol), levels);
            }
        }
    }
    books
}

/// A session of four feeds with bad lines, received by either backend: the books are the exchange's.
#[test]
fn the_feed_daemon_has_the_books_of_the_exchange_by_either_backend() {
    let Some(pair) = namespaces("twpath") else { return };
    for backend in ["socket", "xdp"] {
        let folder = Folder::new(&format!("path-feed-{backend}"));
        let config = between(
            &pair,
            DAEMON,
            backend,
            &[
                ("rate = 20000", "rate = 6000"),
                ("duration_s = 30.0", "duration_s = 3.0\nlinger_s = 8"),
                ("symbols = 100", "symbols = 40"),
            ],
        );
        let config = folder.file("feed.toml", config);
        let region = folder.0.join("region");
        let mut daemon = start(
            &pair,
            1,
            &folder,
            "feed",
            &["feed", "-c", path(&config), "--folder", path(&region)],
        );
        let attachment = wait_for("the region", || Attachment::attach(&region).ok());
        let results = ["-c", path(&config), "--results", path(&folder.0)];
        let mut exchange = exchange(&pair, &folder, &results);
        wait_for("the end of the session", || {
            let reader = attachment.reader();
            let ended = (0..5).all(|source| reader.source_state(source) == SourceState::Ended);
            ended.then_some(())
        });
        ended_well(&mut exchange, &folder, "exchange.said");
        for (venue, sources) in BOOKS {
            let theirs = books_of_exchange(&folder, venue);
            assert!(theirs.len() > 60, "{venue}: {} sides", theirs.len());
            let ours = books_of_region(&attachment, sources);
            let differs = theirs.iter().zip(&ours).find(|(a, b)| a != b);
            assert!(ours == theirs, "{backend}: {venue}: {differs:?}");
        }
        let words = said(&folder, "feed");
        let is_by_ring = words.contains("receiving 10 groups on veth0 by AF_XDP: XDP ");
        assert_eq!(is_by_ring, backend == "xdp", "{words}");
        signal("INT", daemon.0.id());
        daemon.wait(PATIENCE).expect("it ends");
    }
}

/// Exchange and trader of a configuration, to their ends: what the trader has said. Every order is as the
/// exchange has it.
fn traded(pair: &VethPair, folder: &Folder, config: String) -> String {
    let config = folder.file("trade.toml", config);
    let options = ["-c", path(&config), "--results", path(&folder.0)];
    let mut exchange = exchange(pair, folder, &options);
    let trade = [&["trade"], &options[..]].concat();
    let mut trader = start(pair, 1, folder, "trade.said", &trade);
    let words = ended_well(&mut trader, folder, "trade.said");
    ended_well(&mut exchange, folder, "exchange.said");
    let orders = |name| results(&folder.0, name)["orders"].clone();
    let (theirs, ours) = (orders("exchange.json"), orders("trader.json"));
    let count = theirs.as_object().expect("orders").len();
    assert!(count > 20, "{count} orders: {words}");
    assert_eq!(theirs, ours, "{words}");
    words
}

/// The same for a trader: every order as the exchange has it.
#[test]
fn the_trader_trades_the_same_by_either_backend() {
    let Some(pair) = namespaces("twpath") else { return };
    for backend in ["socket", "xdp"] {
        let folder = Folder::new(&format!("path-trade-{backend}"));
        let words = traded(&pair, &folder, trading(&pair, TRADER, backend, (4, 40), &[]));
        let is_by_ring = words.contains("receiving 2 groups on veth0 by AF_XDP: XDP ");
        assert_eq!(is_by_ring, backend == "xdp", "{words}");
    }
}

/// Orders by the kernel and past it, market data by sockets and at the hook, whose program guards then: what
/// is traded is the same, and every order is as the exchange has it.
#[test]
fn the_trader_trades_the_same_whichever_way_its_orders_leave() {
    let Some(pair) = namespaces("twpath") else { return };
    for (backend, send) in [
        ("socket", "kernel"),
        ("socket", "delegated"),
        ("xdp", "delegated"),
    ] {
        let folder = Folder::new(&format!("path-send-{backend}-{send}"));
        let sent = format!("[trader]\nsend = {send:?}\nsend_stamps = true\n");
        let config = trading(&pair, TRADER, backend, (4, 40), &[("[trader]\n", &sent)]);
        let words = traded(&pair, &folder, config);
        stamped(&folder, &words, (backend, send));
        let counted = words.lines().find(|line| line.starts_with("order entry: "));
        match send {
            "kernel" => assert_eq!(counted, None),
            _ => {
                let counted = counted.unwrap_or_else(|| panic!("{words}"));
                println!("{backend}: {counted}");
                let delegated = counted.split(' ').nth(2).and_then(|n| n.parse::<u32>().ok());
                assert!(delegated.is_some_and(|n| n > 20), "{counted}");
                assert!(words.contains("and is booked afterwards"), "{words}");
            }
        }
    }
}

/// The driver between the namespaces stamps what leaves by the kernel, and by a packet socket: where market
/// data has the interface's only queue. A ring's frames have no stamps, and no part of the way is made up.
fn stamped(folder: &Folder, words: &str, (backend, send): (&str, &str)) {
    let line = words.lines().find(|line| line.contains(" is stamped "));
    let line = line.unwrap_or_else(|| panic!("{words}"));
    let file = std::fs::read_to_string(folder.0.join("latency_trader.txt")).expect("it was written");
    let file = LatencyFile::parse(&file).unwrap_or_else(|error| panic!("{error}: {file}"));
    let part = |name: &str| file.types.get(name);
    let sent = part(SENT).expect("orders were sent");
    assert!(
        part(CARD).is_none() && part(WIRE_TO_WIRE).is_none(),
        "there is no card"
    );
    if (backend, send) == ("socket", "delegated") {
        assert!(line.ends_with(" is stamped by nobody"), "{line}");
        assert!(part(DRIVER).is_none());
        return;
    }
    assert!(
        line.ends_with(" is stamped by the driver of veth0; its card stamps nothing"),
        "{line}"
    );
    let driver = part(DRIVER).unwrap_or_else(|| panic!("no stamps: {line}"));
    println!(
        "{backend}, {send}: {} of {} orders are stamped, at least {} ns until the driver and {} until sent",
        driver.count, sent.count, driver.min, sent.min
    );
    // A delegated line's first orders may leave by the kernel.
    assert!(
        driver.count * 10 > sent.count * 9,
        "{} {}",
        driver.count,
        sent.count
    );
}

const OUCH: &str = r#"
[[feed]]
venue = "nasdaq"
interface = "veth0"
[[feed.channel]]
name = "1"
live = { a = "239.192.81.1:27101", b = "239.192.81.2:27102" }
requests = "EXCHANGE:27103"
snapshot_server = "EXCHANGE:27104"
[order_entry]
address = "EXCHANGE:27105"
[order_entry.ouch]
address = "EXCHANGE:27106"
[[order_entry.ouch.user]]
username = "alice"
password = "secret"
firm_name = "FIRM"
firm = 2
[exchange]
symbols = 5
rate = 1000
duration_s = 3600.0
"#;

/// What an OUCH host says to the same 60 orders and 30 cancels: kind of message, order, quantity.
fn ouch_transcript(venue: SocketAddr, delegated: bool) -> (Vec<String>, Option<Counts>) {
    let way = delegated.then(|| Way::towards(venue).unwrap_or_else(|why| panic!("{why}")));
    let mut stream = TcpStream::connect(venue, Duration::from_secs(5)).expect("connected");
    let mut delegate = way.map(|way| {
        let delegate = Delegate::new(way, &stream).map_err(|refused| refused.why);
        delegate.unwrap_or_else(|why| panic!("{why}"))
    });
    let soup = SoupConfig {
        username: Alpha::new(b"alice").expect("short"),
        password: Alpha::new(b"secret").expect("short"),
        ..SoupConfig::default()
    };
    let mut client = OuchClient::new(OuchConfig {
        soup,
        ..OuchConfig::default()
    });
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
    let (mut transcript, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    let (mut entered, began, mut refused) = (0, Instant::now(), String::new());
    let mut first = u32::MAX;
    let now = || Nanos(began.elapsed().as_nanos() as u64);
    client.handle_connected(now());
    while transcript.len() < 90 {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{} answers {refused}",
            transcript.len()
        );
        while let Some(bytes) = client.poll_transmit(&mut buffer) {
            match &mut delegate {
                Some(delegate) => delegate.send(&mut stream, bytes).expect("sent"),
                None => stream.send(bytes).expect("sent"),
            }
        }
        match stream.recv(&mut buffer).expect("a connection") {
            Received::Bytes(bytes) => client.handle_bytes(now(), bytes),
            Received::Nothing => {
                if let Some(delegate) = &mut delegate {
                    delegate.tend(&mut stream).expect("a connection");
                }
                std::thread::sleep(Duration::from_micros(50));
            }
            Received::Closed => panic!("the exchange has closed after {} answers", transcript.len()),
        }
        client.handle_timeout(now());
        let mut is_ready = false;
        while let Some(event) = client.poll_event(now()) {
            match event {
                OuchEvent::Ready { .. } => is_ready = true,
                OuchEvent::Message { .. } => match parse_outbound(client.message()) {
                    Ok((Outbound::OrderAccepted(m), _)) => {
                        is_ready = entered < 60;
                        first = first.min(m.user_ref_num.get());
                        let number = m.user_ref_num.get() - first;
                        transcript.push(format!("accepted {number} {}", m.quantity.get()));
                    }
                    Ok((Outbound::OrderCanceled(m), _)) => {
                        let number = m.user_ref_num.get() - first;
                        transcript.push(format!("cancelled {number} {}", m.quantity.get()));
                    }
                    // Before the market opens; its number is used up.
                    Ok((Outbound::OrderRejected(m), _)) => {
                        assert!(transcript.is_empty(), "{m:?}");
                        (entered, is_ready, refused) = (0, true, format!("{m:?}"));
                        std::thread::sleep(Duration::from_millis(50));
                    }
                    Ok(_) => {}
                    Err(error) => panic!("{error}"),
                },
                other => panic!("{other:?}"),
            }
        }
        if is_ready {
            // Every second one is cancelled at once, behind its order.
            let number = client.enter(now(), &order, &Appendage::EMPTY).expect("room");
            entered += 1;
            if entered % 2 == 0 {
                assert!(client.cancel(now(), number, 0));
            }
        }
    }
    (transcript, delegate.map(|delegate| delegate.counts()))
}

/// OUCH past the kernel: the exchange says the same as by it.
#[test]
fn an_ouch_host_says_the_same_whichever_way_its_orders_come() {
    let Some(pair) = namespaces("twpath") else { return };
    let mut transcripts = Vec::new();
    for delegated in [false, true] {
        let folder = Folder::new(&format!("path-ouch-{delegated}"));
        let text = OUCH.replace("EXCHANGE", &pair.address(0).to_string());
        let config = folder.file("exchange.toml", text);
        let _exchange = exchange(&pair, &folder, &["-c", path(&config)]);
        let venue = (pair.address(0), 27_106).into();
        let (transcript, counts) = std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                pair.enter(1).expect("entered");
                ouch_transcript(venue, delegated)
            });
            client.join().expect("no panic")
        });
        if let Some(counts) = counts {
            println!("{counts}");
            assert!(counts.delegated > 40, "{counts}");
        }
        transcripts.push(transcript);
    }
    assert_eq!(transcripts[0], transcripts[1]);
}

/// A daemon that holds an interface, when a second one wants it, and after it was killed.
#[test]
fn a_second_program_is_refused_in_words_and_a_killed_one_leaves_nothing() {
    let Some(pair) = namespaces("twpath") else { return };
    let folder = Folder::new("path-second");
    let configured = |backend: &str| -> PathBuf {
        folder.file(&format!("{backend}.toml"), between(&pair, DAEMON, backend, &[]))
    };
    let (xdp, auto) = (configured("xdp"), configured("auto"));
    let begin = |name: &str, config: &Path| {
        let region = folder.0.join(format!("region-{name}"));
        let words = ["feed", "-c", path(config), "--folder", path(&region)];
        (start(&pair, 1, &folder, name, &words), region)
    };
    let programs = || {
        let shown = Command::new("ip")
            .args(["-n", pair.name(1), "link", "show", "veth0"])
            .output();
        text(&shown.expect("ip").stdout).contains("prog/xdp")
    };
    let (mut first, region) = begin("first", &xdp);
    wait_for("the first one", || Attachment::attach(&region).ok());
    assert!(programs(), "a program at the interface");

    let (mut second, _) = begin("second", &xdp);
    let ended = second.wait(PATIENCE).expect("it ends");
    let words = said(&folder, "second");
    assert_eq!(ended.code(), Some(3), "{words}");
    assert!(
        words.contains("interface veth0 has another XDP program"),
        "{words}"
    );

    let (third, region) = begin("third", &auto);
    wait_for("the third one, by sockets", || Attachment::attach(&region).ok());
    let words = said(&folder, "third");
    assert!(
        words.contains("receiving on veth0 by sockets: interface veth0 has another"),
        "{words}"
    );
    assert!(words.contains("is not heard by sockets"), "{words}");
    drop(third);

    first.0.kill().expect("killed");
    first.0.wait().expect("gone");
    wait_for("the program's end", || (!programs()).then_some(()));
    let (_fourth, region) = begin("fourth", &auto);
    wait_for("the fourth one", || Attachment::attach(&region).ok());
    let words = said(&folder, "fourth");
    assert!(words.contains("on veth0 by AF_XDP"), "{words}");
}

/// Without the rights: one line, with the remedy; sockets, unless AF_XDP was asked for.
#[test]
fn without_rights_the_words_name_what_is_missing() {
    let folder = Folder::new("path-rights");
    for backend in ["auto", "xdp"] {
        let text = DAEMON.replace("[receiver]", &format!("[receiver]\nbackend = {backend:?}"));
        let config = folder.file("feed.toml", text);
        let region = folder.0.join(backend);
        let said_to = File::create(folder.0.join("said")).expect("a file");
        let child = Command::new("setpriv")
            .args(["--bounding-set=-all", "--inh-caps=-all"])
            .arg(tickwire().get_program())
            .args(["feed", "-c", path(&config), "--folder", path(&region)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said_to)
            .spawn();
        let mut child = match child {
            Ok(child) => Guard(child),
            Err(why) => return tickwire_testdata::not_tested(format!("no setpriv (util-linux) here: {why}")),
        };
        if backend == "auto" {
            let attachment = wait_for("the region", || {
                let ended = child.0.try_wait().expect("a child").is_some();
                if ended {
                    Some(None)
                } else {
                    Attachment::attach(&region).ok().map(Some)
                }
            });
            if attachment.is_none() && said(&folder, "said").contains("setpriv") {
                return tickwire_testdata::not_tested("setpriv takes no capabilities away here");
            }
            assert!(attachment.is_some(), "{}", said(&folder, "said"));
        } else {
            let ended = child.wait(PATIENCE).expect("it ends");
            assert_eq!(ended.code(), Some(3), "{}", said(&folder, "said"));
        }
        let words = said(&folder, "said");
        assert!(
            words.contains("this process lacks CAP_BPF, CAP_NET_ADMIN"),
            "{words}"
        );
        assert!(words.contains("sudo setcap"), "{words}");
        assert_eq!(
            words.contains("receiving on lo by sockets:"),
            backend == "auto",
            "{words}"
        );
    }
}

/// Orders that cannot leave past the kernel: over loopback, and without the rights.
#[test]
fn orders_that_cannot_be_delegated_are_refused_in_words() {
    let folder = Folder::new("path-delegated");
    let changed = TRADER.replace("[trader]\n", "[trader]\nsend = \"delegated\"\n");
    let config = folder.file("trade.toml", changed);
    let run = |wrapper: &[&str]| {
        let mut command = match wrapper {
            [] => Command::new(tickwire().get_program()),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(tickwire().get_program());
                command
            }
        };
        command.args(["trade", "-c", path(&config)]).output()
    };
    let ended = run(&[]).expect("the program starts");
    let words = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{words}");
    assert!(
        words.contains("send = \"delegated\": 127.0.0.1 is reached by lo"),
        "{words}"
    );

    let Some(pair) = namespaces("twpath") else { return };
    let changed = between(
        &pair,
        TRADER,
        "socket",
        &[("[trader]\n", "[trader]\nsend = \"delegated\"\n")],
    );
    folder.file("trade.toml", changed);
    let ended = run(&[
        "ip",
        "netns",
        "exec",
        pair.name(1),
        "setpriv",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]);
    let ended = match ended {
        Ok(ended) => ended,
        Err(why) => return tickwire_testdata::not_tested(format!("no setpriv (util-linux) here: {why}")),
    };
    let words = text(&ended.stderr);
    if words.contains("setpriv:") {
        return tickwire_testdata::not_tested("setpriv takes no capabilities away here");
    }
    assert_eq!(ended.status.code(), Some(3), "{words}");
    assert!(
        words.contains("send = \"delegated\": the kernel path needs"),
        "{words}"
    );
    assert!(
        words.contains("lacks CAP_BPF") && words.contains("sudo setcap"),
        "{words}"
    );
}

/// Some instruments are wanted, more of them in mid-session, and packets without any are dropped at the hook:
/// the books are the exchange's all the same.
#[test]
fn books_behind_the_filter_are_the_exchanges_with_joins_in_mid_session() {
    let Some(pair) = namespaces("twpath") else { return };
    let folder = Folder::new("path-filter");
    let changes = [
        ("rate = 20000", "rate = 6000"),
        ("duration_s = 30.0", "duration_s = 6.0\nlinger_s = 8"),
        ("symbols = [\"*\"]", "symbols = [\"AAPL\", \"M*\"]"),
        ("[receiver]\n", "[receiver]\nfilter = true\n"),
    ];
    let config = folder.file("feed.toml", between(&pair, DAEMON, "xdp", &changes));
    let region = folder.0.join("region");
    let feed = ["feed", "-c", path(&config), "--folder", path(&region)];
    let mut daemon = start(&pair, 1, &folder, "feed", &feed);
    let attachment = wait_for("the region", || Attachment::attach(&region).ok());
    let results = ["-c", path(&config), "--results", path(&folder.0)];
    let mut exchange = exchange(&pair, &folder, &results);
    let counted = |source: u16, what: Counter| {
        attachment
            .reader()
            .counters(source)
            .expect("one release")
            .get(what)
    };
    wait_for("packets that the filter drops", || {
        let all = [0, 1, 2, 3, 4].map(|source| counted(source, Counter::HookFiltered));
        all.iter().all(|dropped| *dropped > 50).then_some(())
    });
    for pattern in ["A*", "T*"] {
        let told = tickwire()
            .args(["subscribe", pattern, "--folder", path(&region)])
            .output();
        let told = told.expect("the program starts");
        assert!(told.status.success(), "{}", text(&told.stderr));
    }
    wait_for("the end of the session", || {
        let reader = attachment.reader();
        let ended = (0..5).all(|source| reader.source_state(source) == SourceState::Ended);
        ended.then_some(())
    });
    ended_well(&mut exchange, &folder, "exchange.said");
    for (venue, sources) in BOOKS {
        let mut theirs = books_of_exchange(&folder, venue);
        let all = theirs.len();
        theirs.retain(|name, _| name.starts_with(['A', 'M', 'T']));
        assert!(
            theirs.len() > 10 && theirs.len() < all,
            "{venue}: {} of {all} sides",
            theirs.len()
        );
        let ours = books_of_region(&attachment, sources);
        let differs = theirs
            .iter()
            .find(|(name, levels)| ours.get(*name) != Some(levels));
        assert_eq!(
            differs,
            None,
            "{venue}: {:?}",
            differs.map(|(name, _)| ours.get(name))
        );
    }
    let words = said(&folder, "feed");
    assert!(words.contains("; 5 of 5 channels behind the filter"), "{words}");
    let counts = [
        Counter::HookFiltered,
        Counter::HookDuplicates,
        Counter::HookDoubts,
    ];
    println!(
        "{words}\nnasdaq {:?}, bzx {:?} and {:?}, nyse {:?}, uqdf {:?}",
        counts.map(|c| counted(0, c)),
        counts.map(|c| counted(1, c)),
        counts.map(|c| counted(2, c)),
        counts.map(|c| counted(3, c)),
        counts.map(|c| counted(4, c))
    );
    assert_eq!(counted(0, Counter::BookRejects), 0);
    signal("INT", daemon.0.id());
    daemon.wait(PATIENCE).expect("it ends");
}

/// The other feeds behind the filter (NYSE Integrated excepted, whose close empties the books): some
/// instruments are wanted, more of them in mid-session, and in between the daemon is killed and started
/// again. The books are the exchange's.
#[test]
fn books_of_the_other_feeds_behind_the_filter_are_the_exchanges_over_a_restart() {
    let Some(pair) = namespaces("twpath") else { return };
    let settings = |feeds: &str| OTHER_SETTINGS.replace("FEEDS", feeds);
    let others = [OTHERS, &settings("[\"nyse\", \"cme\", \"moex\"]")].concat();
    over_a_restart(&pair, &others, &OTHER_BOOKS);
    for (tape, venue) in [(CQS, "cqs"), (UQDF, "uqdf")] {
        let tape = [tape, &settings(&format!("[{venue:?}]"))].concat();
        over_a_restart(&pair, &tape, &[("exchange", 0)]);
    }
}

fn over_a_restart(pair: &VethPair, config: &str, books: &[(&str, u16)]) {
    let folder = Folder::new("path-others");
    let config = folder.file("feed.toml", between(pair, config, "xdp", &[]));
    let region = folder.0.join("region");
    let feed = ["feed", "-c", path(&config), "--folder", path(&region)];
    let attach = || wait_for("the region", || Attachment::attach(&region).ok());
    let mut daemon = start(pair, 1, &folder, "feed-1", &feed);
    let mut attachment = attach();
    let options = ["-c", path(&config), "--results", path(&folder.0)];
    let mut exchange = exchange(pair, &folder, &options);
    let count_of = |attachment: &Attachment, source: u16, what: Counter| {
        let counters = attachment.reader().counters(source);
        counters.map_or(0, |counters| counters.get(what))
    };
    // Of MOEX what is wanted is not told by instrument: while somebody wants one, copies are dropped alone.
    let drops = |attachment: &Attachment| {
        let dropped = |(_, source): &(&str, u16)| {
            let what = match source {
                2 => Counter::HookDuplicates,
                _ => Counter::HookFiltered,
            };
            count_of(attachment, *source, what) > 50
        };
        books.iter().all(dropped).then_some(())
    };
    wait_for("packets that the filter drops", || drops(&attachment));
    daemon.0.kill().expect("killed");
    daemon.wait(PATIENCE).expect("it is gone");
    let mut daemon = start(pair, 1, &folder, "feed-2", &feed);
    attachment = wait_for("the new region", || {
        let attachment = Attachment::attach(&region).ok()?;
        (attachment.reader().pid() == daemon.0.id()).then_some(attachment)
    });
    wait_for("packets that the filter drops again", || drops(&attachment));
    let told = tickwire()
        .args(["subscribe", "T*", "--folder", path(&region)])
        .output();
    let told = told.expect("the program starts");
    assert!(told.status.success(), "{}", text(&told.stderr));
    ended_well(&mut exchange, &folder, "exchange.said");
    for &(venue, source) in books {
        let mut theirs = books_of_exchange(&folder, venue);
        theirs.retain(|name, _| name.starts_with("AAPL ") || name.starts_with(['M', 'T']));
        assert!(theirs.len() > 8, "{venue}: {} sides", theirs.len());
        // What was on its way at the end is waited for.
        let began = Instant::now();
        loop {
            let ours = books_of_region(&attachment, &[source]);
            let differs = theirs
                .iter()
                .find(|(name, levels)| ours.get(*name) != Some(levels));
            let Some((name, levels)) = differs else { break };
            assert!(
                began.elapsed() < PATIENCE,
                "{venue}: {name}: {levels:?}, here {:?}",
                ours.get(name)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        println!("{venue}: {} sides", theirs.len());
    }
    let words = said(&folder, "feed-2");
    let all = format!("; {0} of {0} channels behind the filter", books.len());
    assert!(words.contains(&all), "{words}");
    signal("INT", daemon.0.id());
    daemon.wait(PATIENCE).expect("it ends");
}
