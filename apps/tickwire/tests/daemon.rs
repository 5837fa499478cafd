//! The daemon as a user and a service manager run it: real multicast, real shared memory, read as any other
//! process reads it.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Folder, Guard, free_ports, run, signal, text, tickwire};
use serde_json::Value;
use tickwire_market::{BookState, Price, Side, Symbol};
use tickwire_runtime::capture::{CaptureReader, PcapWriter};
use tickwire_runtime::shared::{Attachment, Followed, WriterHealth};
use tickwire_shm::{BookCopy, ReadWord, Reader, SourceState, SuperCopy};

/// How long anything may take on a machine that others use too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Price, quantity, orders of a side, best first.
type Levels = Vec<(Price, u64, u32)>;
/// By symbol and side.
type Books = BTreeMap<(Symbol, Side), Levels>;

/// Waits until `done` says so.
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

/// Three venues on loopback: ITCH, and PITCH in two units, with all their recovery.
fn config(folder: &Folder, session: &str, daemon: &str) -> PathBuf {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m] = free_ports();
    let text = format!(
        r#"
[[feed]]
venue = "nasdaq"
[[feed.channel]]
name = "1"
live = {{ a = "239.192.79.1:{a}", b = "239.192.79.2:{b}" }}
requests = "127.0.0.1:{c}"
snapshot_server = "127.0.0.1:{d}"

[[feed]]
venue = "bzx"
[[feed.channel]]
name = "1"
live = {{ a = "239.192.79.3:{e}", b = "239.192.79.4:{f}" }}
retransmission = {{ a = "239.192.79.5:{g}" }}
replay = "127.0.0.1:{h}"
snapshot_server = "127.0.0.1:{i}"
[[feed.channel]]
name = "2"
live = {{ a = "239.192.79.6:{j}", b = "239.192.79.7:{k}" }}
retransmission = {{ a = "239.192.79.8:{l}" }}
replay = "127.0.0.1:{h}0"
snapshot_server = "127.0.0.1:{m}"

[order_entry]
address = "127.0.0.1:0"
[receiver]
max_instruments = 256
max_orders = 65536
max_levels = 65536
{session}
{daemon}
"#
    );
    folder.file(
        "daemon.toml",
        text.replace(&format!("{h}0"), &free_ports::<1>()[0].to_string()),
    )
}

/// A running daemon with its folder and the service manager that listens to it.
struct Daemon {
    process: Guard,
    folder: PathBuf,
    manager: UnixDatagram,
}

impl Daemon {
    /// Starts one and waits until it is ready.
    fn start(home: &Folder, config: &Path, more: &[&str]) -> Daemon {
        let folder = home.0.join("region-folder");
        let socket = home.0.join(format!("notify-{}", free_ports::<1>()[0]));
        let manager = UnixDatagram::bind(&socket).expect("a socket");
        manager
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        let child = tickwire()
            .args([
                "feed",
                "-c",
                config.to_str().unwrap(),
                "--folder",
                folder.to_str().unwrap(),
            ])
            .args(more)
            .env("NOTIFY_SOCKET", &socket)
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(home.0.join("feed.out")).expect("a file"))
            .stderr(std::fs::File::create(home.0.join("feed.err")).expect("a file"))
            .spawn()
            .expect("the program starts");
        let daemon = Daemon {
            process: Guard(child),
            folder,
            manager,
        };
        let said = daemon.hear();
        let errors = std::fs::read_to_string(home.0.join("feed.err")).unwrap_or_default();
        assert!(said.starts_with("READY=1\nSTATUS="), "{said}\n{errors}");
        daemon
    }

    /// The next thing it tells the service manager.
    fn hear(&self) -> String {
        let mut buffer = [0; 256];
        let length = self.manager.recv(&mut buffer).expect("the daemon says something");
        text(&buffer[..length])
    }

    fn pid(&self) -> u32 {
        self.process.0.id()
    }

    fn attach(&self) -> Attachment {
        Attachment::attach(&self.folder).unwrap_or_else(|e| panic!("{e}"))
    }

    fn ask(&self, request: &str) -> Value {
        let mut stream = UnixStream::connect(self.folder.join("control")).expect("a control socket");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        writeln!(stream, "{request}").expect("the daemon reads");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    /// Asks it to end and waits for that.
    fn stop(&mut self) {
        assert_eq!(self.ask("{\"do\":\"stop\"}")["ok"], true);
        let status = self.process.wait(PATIENCE).expect("it ends");
        assert_eq!(status.code(), Some(0));
    }
}

/// Starts the exchange of a configuration; its books go into the home folder.
fn exchange(home: &Folder, config: &Path) -> Guard {
    let child = tickwire()
        .args([
            "exchange",
            "-c",
            config.to_str().unwrap(),
            "--results",
            home.0.to_str().unwrap(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Guard(child.expect("the program starts"))
}

/// The books that a venue of the exchange ended with; its first one is `exchange`.
fn books_of_exchange(home: &Folder, venue: &str) -> Books {
    let written =
        std::fs::read_to_string(home.0.join(format!("books-{venue}.txt"))).expect("the exchange's books");
    let mut books = Books::new();
    for line in written.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let side = if words[1] == "bid" { Side::Bid } else { Side::Ask };
        let symbol = Symbol::new(words[0].as_bytes()).expect("a symbol");
        let level = (
            words[3].parse().expect("a price"),
            words[4].parse().expect("a quantity"),
            words[5].parse().expect("orders"),
        );
        books.entry((symbol, side)).or_default().push(level);
    }
    books
}

/// The books of some sources in shared memory.
fn books_of_region(reader: &Reader<'_, ReadWord>, sources: &[u16]) -> Books {
    let (mut books, mut copy) = (Books::new(), BookCopy::default());
    for (slot, identity) in reader.books().filter(|(_, id)| sources.contains(&id.source)) {
        reader.read_book(slot, &mut copy).expect("nobody writes for long");
        for side in Side::BOTH {
            let levels: Levels = copy
                .side(side)
                .iter()
                .map(|level| (level.price, level.qty.0, level.orders))
                .collect();
            if !levels.is_empty() {
                books.insert((identity.symbol, side), levels);
            }
        }
    }
    books
}

/// The best `count` levels of every side.
fn top(books: &Books, count: usize) -> Books {
    let cut = |levels: &Levels| levels[..levels.len().min(count)].to_vec();
    books.iter().map(|(key, levels)| (*key, cut(levels))).collect()
}

fn states(reader: &Reader<'_, ReadWord>) -> Vec<SourceState> {
    (0..3).map(|source| reader.source_state(source)).collect()
}

const LOSSY: &str = "[exchange]\nsymbols = 40\nrate = 6000\nduration_s = 3.0\nlinger_s = 20\n\
                     line_a = { loss = 0.01 }\nline_b = { loss = 0.01 }\n";

/// Two processes, two feed threads and the one of consolidated books, 1 % loss on every line: shared memory
/// must end with the exchange's books on every channel.
#[test]
fn the_region_ends_with_the_books_of_the_exchange_over_bad_lines() {
    let home = Folder::new("daemon-live");
    let latency = home.0.join("latency");
    let config = config(
        &home,
        LOSSY,
        &format!(
            "[daemon]\nlatency_files = {latency:?}\n[[daemon.thread]]\nwait = \"poll\"\nfeeds = [\"nasdaq\"]\n[[daemon.thread]]\nwait = \"poll\"\nfeeds = [\"bzx\"]\n"
        ),
    );
    let mut daemon = Daemon::start(&home, &config, &[]);
    let attachment = daemon.attach();
    let mut exchange = exchange(&home, &config);
    let mut live_supers = 0;
    wait_for("the end of the session", || {
        let reader = attachment.reader();
        let mut copy = SuperCopy::default();
        for (slot, _) in reader.supers() {
            let is_whole = reader.read_super(slot, &mut copy).is_ok();
            live_supers += usize::from(is_whole && copy.feeds == 0b11 && copy.stale == 0);
        }
        states(&reader) == [SourceState::Ended; 3]
    });
    assert!(exchange.wait(PATIENCE).expect("it ends").success());
    assert!(live_supers > 0, "no consolidated book ever held both venues");
    let reader = attachment.reader();
    for (venue, sources) in [("exchange", &[0][..]), ("bzx", &[1, 2])] {
        let theirs = top(&books_of_exchange(&home, venue), 10);
        assert!(theirs.len() > 60, "{}", theirs.len());
        assert!(
            books_of_region(&reader, sources) == theirs,
            "{venue}: books differ"
        );
    }
    let recovered: u64 = (0..3)
        .map(|s| {
            reader
                .counters(s)
                .expect("one release")
                .get(tickwire_market::Counter::MessagesMissed)
        })
        .sum();
    assert!(recovered > 0, "nothing was lost, so nothing was shown");
    // Once a second the service manager hears how it is.
    assert!(daemon.hear().starts_with("STATUS="));
    daemon.stop();
    assert_eq!(attachment.health(), WriterHealth::Ended);
    for feed in ["nasdaq", "bzx"] {
        let file = std::fs::read_to_string(latency.join(format!("latency_{feed}.txt"))).expect("a file");
        assert!(file.starts_with("# tickwire latency 1\n"), "{file}");
        assert!(file.lines().any(|l| l.starts_with("all ")) && file.lines().any(|l| l.starts_with("super ")));
    }
}

/// The same of another host's memory, which a mirror keeps: daemon, publisher and mirror are programs of
/// their own. Run by `cargo xtask aeron`.
#[cfg(feature = "aeron")]
#[test]
fn a_mirror_of_a_daemon_ends_with_the_books_of_the_exchange() {
    let home = Folder::new("daemon-mirrored");
    let config = config(&home, LOSSY, "");
    let mut daemon = Daemon::start(&home, &config, &[]);
    let there = home.0.join("there");
    let [port] = free_ports();
    let channel = format!("aeron:udp?endpoint=224.20.30.41:{port}|interface=127.0.0.1/8");
    let side = |role: &str, folder: &Path| {
        let log = std::fs::File::create(home.0.join(format!("{role}.log"))).expect("a file");
        let child = tickwire()
            .args(["mirror", role, "--channel", &channel, "--folder"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn();
        Guard(child.expect("the program starts"))
    };
    let mut sides = [side("publish", &daemon.folder), side("receive", &there)];
    let mut attached = None;
    wait_for("a region on the other host", || {
        attached = Attachment::attach(&there).ok();
        attached.is_some()
    });
    let (here, there) = (daemon.attach(), attached.expect("it is there"));
    let mut exchange = exchange(&home, &config);
    wait_for("the end of the session on the other host", || {
        states(&there.reader()) == [SourceState::Ended; 3]
    });
    assert!(exchange.wait(PATIENCE).expect("it ends").success());
    let counters = |region: &Attachment| -> Vec<Vec<u64>> {
        let of = |source: u16| region.reader().counters(source).expect("one release");
        (0..3)
            .map(|source| of(source).iter().map(|(_, count)| count).collect())
            .collect()
    };
    wait_for("the last counters", || counters(&there) == counters(&here));
    for (venue, sources) in [("exchange", &[0][..]), ("bzx", &[1, 2])] {
        let theirs = top(&books_of_exchange(&home, venue), 10);
        assert!(theirs.len() > 60, "{}", theirs.len());
        assert!(
            books_of_region(&there.reader(), sources) == theirs,
            "{venue}: books differ"
        );
    }
    assert!(
        (0..3).any(|source| {
            let counters = there.reader().counters(source).expect("one release");
            counters.get(tickwire_market::Counter::MessagesMissed) > 0
        }),
        "nothing was lost, so nothing was shown"
    );
    // Consolidated books are mirrored, too.
    let best = |region: &Attachment| -> Vec<(Symbol, Vec<(Price, u64)>)> {
        let (reader, mut copy) = (region.reader(), SuperCopy::default());
        let mut all = Vec::new();
        for (slot, symbol) in reader.supers() {
            reader
                .read_super(slot, &mut copy)
                .expect("nobody writes for long");
            let levels = Side::BOTH.into_iter().filter_map(|side| copy.side(side).first());
            all.push((symbol, levels.map(|level| (level.price, level.qty.0)).collect()));
        }
        all
    };
    assert!(!best(&here).is_empty());
    assert_eq!(best(&there), best(&here));
    daemon.stop();
    wait_for("the word that the daemon has ended", || {
        there.health() == WriterHealth::Ended
    });
    for side in &mut sides {
        signal("TERM", side.0.id());
        assert_eq!(side.wait(PATIENCE).expect("it ends").code(), Some(130));
    }
}

/// A part of a session of every venue, as a capture that does not end.
fn unended_capture(home: &Folder, config: &Path) -> PathBuf {
    let whole = home.0.join("whole.pcap");
    let written = run(&[
        "exchange",
        "-c",
        config.to_str().unwrap(),
        "--write-capture",
        whole.to_str().unwrap(),
    ]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let frames = |each: &mut dyn FnMut(usize, tickwire_runtime::capture::Packet<'_>)| {
        let mut reader = CaptureReader::open(&whole).expect("a capture");
        let mut count = 0;
        while let Some(packet) = reader.next_packet().expect("whole") {
            each(count, packet);
            count += 1;
        }
        count
    };
    let count = frames(&mut |_, _| {});
    let part = home.0.join("part.pcap");
    let mut writer = None;
    frames(&mut |at, packet| {
        let writer = writer.get_or_insert_with(|| PcapWriter::create(&part, packet.link).expect("a file"));
        if at < count * 7 / 10 {
            writer
                .write_frame(packet.time.expect("a time"), packet.bytes)
                .expect("written");
        }
    });
    writer.expect("frames").finish().expect("written");
    part
}

/// The same capture through `replay`, which knows nothing of shared memory.
fn books_of_replay(config: &Path, capture: &Path, feeds: &[&str]) -> Books {
    let output = run(&[
        "replay",
        "-c",
        config.to_str().unwrap(),
        capture.to_str().unwrap(),
        "--json",
        "--book",
        "all",
        "--levels",
        "10",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    let mut books = Books::new();
    let named = |feed: &&Value| feeds.contains(&feed["name"].as_str().unwrap_or_default());
    for feed in result["feeds"].as_array().expect("feeds").iter().filter(named) {
        for (symbol, book) in feed["books"].as_object().expect("books") {
            for (side, name) in [(Side::Bid, "bids"), (Side::Ask, "asks")] {
                let level = |level: &Value| {
                    (
                        level["price"]
                            .as_str()
                            .expect("a price")
                            .parse()
                            .expect("a price"),
                        level["qty"].as_u64().expect("a quantity"),
                        level["orders"].as_u64().expect("orders") as u32,
                    )
                };
                let levels: Levels = book[name].as_array().expect("levels").iter().map(level).collect();
                if !levels.is_empty() {
                    let symbol = Symbol::new(symbol.as_bytes()).expect("a symbol");
                    books.insert((symbol, side), levels);
                }
            }
        }
    }
    books
}

/// Shares of a side as a naive merge of books says: best price first, at one price the lower feed first.
fn merged(venues: &[Books], symbol: Symbol, side: Side) -> Vec<(Price, u64, u32, u8)> {
    let mut shares = Vec::new();
    for (feed, books) in (0..).zip(venues) {
        let levels = books.get(&(symbol, side)).into_iter().flatten();
        shares.extend(levels.map(|&(price, qty, orders)| (price, qty, orders, feed)));
    }
    shares.sort_by(|a, b| match side {
        Side::Bid => (b.0, a.3).cmp(&(a.0, b.3)),
        Side::Ask => (a.0, a.3).cmp(&(b.0, b.3)),
    });
    shares
}

/// A mixed capture, twice, with consolidated books on the feed thread and on their own: books as `replay` has
/// them, consolidated books as a naive merge of these.
#[test]
fn a_replayed_capture_gives_the_books_of_replay_and_super_books_are_their_merge() {
    let threads = "[[daemon.thread]]\nfeeds = [\"nasdaq\"]\n[[daemon.thread]]\nfeeds = [\"bzx\"]\n";
    for (place, threads) in [("inline", ""), ("thread", threads)] {
        let home = Folder::new(&format!("daemon-replay-{place}"));
        let session = "[exchange]\nsymbols = 30\nrate = 5000\nduration_s = 1.0\n";
        let daemon = format!("[daemon]\nsuper_books = {place:?}\nbooks = 100\n{threads}");
        let config = config(&home, session, &daemon);
        let capture = unended_capture(&home, &config);
        let capture_arg = capture.to_str().unwrap();
        let more = ["--replay", capture_arg, "--speed", "max", "--loop", "2"];
        let mut daemon = Daemon::start(&home, &config, &more);
        let attachment = daemon.attach();
        let nasdaq = books_of_replay(&config, &capture, &["nasdaq"]);
        let bzx = books_of_replay(&config, &capture, &["bzx 1", "bzx 2"]);
        assert!(
            nasdaq.len() > 40 && bzx.len() > 40,
            "{} {}",
            nasdaq.len(),
            bzx.len()
        );
        let reader = attachment.reader();
        wait_for("the end of the capture", || {
            states(&reader) == [SourceState::Live; 3]
                && books_of_region(&reader, &[0]) == nasdaq
                && books_of_region(&reader, &[1, 2]) == bzx
        });
        // Both passes are counted in the places of the first one.
        wait_for("the second pass", || {
            reader.source(0).expect("a source").totals.books == 30
        });
        let (venues, mut copy) = ([nasdaq, bzx], SuperCopy::default());
        let mut compared = 0;
        wait_for("the last consolidated book", || {
            compared = 0;
            // Between two passes there is none, of which all are right.
            let are_there = reader.supers().count() == 30;
            are_there
                && reader.supers().all(|(slot, symbol)| {
                    reader.read_super(slot, &mut copy).is_ok()
                        && copy.feeds == 0b11
                        && copy.stale == 0
                        && Side::BOTH.iter().all(|&side| {
                            let naive = merged(&venues, symbol, side);
                            let ours = copy.side(side);
                            compared += ours.len();
                            // Only as deep as the books that were merged: ten levels of each.
                            naive.iter().zip(ours).take(10).all(|(naive, share)| {
                                *naive == (share.price, share.qty.0, share.orders, share.feed)
                            }) && ours.len() >= naive.len().min(10)
                        })
                })
        });
        assert_eq!(reader.supers().count(), 30);
        assert!(compared > 500, "{compared}");
        daemon.stop();
        assert!(!daemon.folder.join("control").exists());
    }
}

#[test]
fn a_replay_ends_by_itself_and_leaves_a_region_that_says_so() {
    let home = Folder::new("daemon-exit");
    let config = config(
        &home,
        "[exchange]\nsymbols = 10\nrate = 5000\nduration_s = 0.5\n",
        "",
    );
    let capture = unended_capture(&home, &config);
    let folder = home.0.join("region-folder");
    let output = run(&[
        "feed",
        "-c",
        config.to_str().unwrap(),
        "--folder",
        folder.to_str().unwrap(),
        "--replay",
        capture.to_str().unwrap(),
        "--speed",
        "max",
        "--exit",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    assert!(
        out.contains("nasdaq")
            && out.contains("pitch")
            && out.contains("consolidated books: on the feed thread"),
        "{out}"
    );
    let attachment = Attachment::attach(&folder).expect("it is still there");
    assert_eq!(attachment.health(), WriterHealth::Ended);
    assert!(attachment.reader().books_used() > 10);
}

/// One symbol at the start; others join and leave in mid-session.
#[test]
fn subscriptions_change_while_packets_come() {
    let home = Folder::new("daemon-subscriptions");
    let session = "[exchange]\nsymbols = 40\nrate = 4000\nduration_s = 6.0\nlinger_s = 20\n";
    let config = config(
        &home,
        session,
        "[daemon]\nsymbols = [\"AAPL\"]\n[[daemon.thread]]\nwait = \"poll\"\nfeeds = [\"nasdaq\", \"bzx\"]\n",
    );
    let mut daemon = Daemon::start(&home, &config, &[]);
    let attachment = daemon.attach();
    let reader = attachment.reader();
    let mut exchange = exchange(&home, &config);
    let seen = |source| {
        reader
            .counters(source)
            .expect("one release")
            .get(tickwire_market::Counter::Messages)
    };
    wait_for("the session", || {
        seen(0) > 6_000 && seen(1) > 1_000 && seen(2) > 1_000
    });
    let shown = |reader: &Reader<'_, ReadWord>| {
        let mut symbols: Vec<String> = reader.books().map(|(_, id)| id.symbol.to_string()).collect();
        symbols.sort();
        symbols.dedup();
        symbols
    };
    assert_eq!(shown(&reader), ["AAPL"]);
    let answer = daemon.ask("{\"do\":\"subscribe\",\"patterns\":[\"M*\"],\"feed\":null}");
    assert_eq!(answer["ok"], true, "{answer:#}");
    let entries = answer["subscriptions"].as_array().expect("a list");
    assert_eq!(entries.len(), 2, "{answer:#}");
    assert!(
        entries[0]["changed"].as_u64() > Some(0) && entries[0]["unchanged"] == 0,
        "{answer:#}"
    );
    assert!(answer["says"].as_str().expect("a sentence").contains("joining"));
    let again = daemon.ask("{\"do\":\"subscribe\",\"patterns\":[\"M*\"],\"feed\":\"nasdaq\"}");
    assert_eq!(again["subscriptions"][0]["changed"], 0, "{again:#}");
    // Their books come by snapshot, one symbol's or the feed's, while the others go on.
    let mut copy = BookCopy::default();
    wait_for("the books that joined", || {
        let mut joined = reader
            .books()
            .filter(|(_, id)| id.symbol.as_str().starts_with('M'))
            .peekable();
        joined.peek().is_some()
            && joined
                .all(|(slot, _)| reader.read_book(slot, &mut copy).is_ok() && copy.state == BookState::Live)
    });
    let left = daemon.ask("{\"do\":\"unsubscribe\",\"patterns\":[\"AAPL\"],\"feed\":null}");
    assert_eq!(left["ok"], true, "{left:#}");
    let unknown = daemon.ask("{\"do\":\"subscribe\",\"patterns\":[\"A\"],\"feed\":\"iex\"}");
    assert!(
        unknown["error"]
            .as_str()
            .expect("an error")
            .contains("there are nasdaq, bzx")
    );
    let bad = daemon.ask("{\"do\":\"subscribe\",\"patterns\":[\"\"]}");
    assert!(
        bad["error"].as_str().expect("an error").contains("empty"),
        "{bad}"
    );
    assert!(exchange.wait(PATIENCE).expect("it ends").success());
    wait_for("the end of the session", || {
        states(&reader) == [SourceState::Ended; 3]
    });
    for (venue, sources) in [("exchange", &[0][..]), ("bzx", &[1, 2])] {
        let mut wanted = top(&books_of_exchange(&home, venue), 10);
        wanted.retain(|(symbol, _), _| symbol.as_str().starts_with('M'));
        assert!(!wanted.is_empty());
        assert!(
            books_of_region(&reader, sources) == wanted,
            "{venue}: books differ"
        );
    }
    let list = daemon.ask("{\"do\":\"subscriptions\"}");
    let filtered = list["subscriptions"][0]["filtered"].as_u64().expect("a count");
    assert!(filtered > 1_000, "{list:#}");
    daemon.stop();
}

#[test]
fn signals_kills_and_second_instances_leave_readers_and_files_in_order() {
    let home = Folder::new("daemon-ends");
    let config = config(
        &home,
        "",
        "[[daemon.thread]]\nwait = \"poll\"\nfeeds = [\"nasdaq\", \"bzx\"]\n",
    );
    let mut daemon = Daemon::start(&home, &config, &[]);
    let mode = |name: &str| {
        let data = std::fs::metadata(daemon.folder.join(name)).expect("it is there");
        data.permissions().mode() & 0o777
    };
    assert_eq!(
        (mode("control"), mode("region"), mode("lock")),
        (0o600, 0o600, 0o600)
    );
    let mut attachment = daemon.attach();
    assert_eq!(attachment.reader().pid(), daemon.pid());
    // Its heart beats when it gets a processor, which on a busy machine may take longer than a reader waits.
    wait_for("a heartbeat", || attachment.health() == WriterHealth::Alive);

    let folder = daemon.folder.to_str().unwrap().to_string();
    let second = run(&["feed", "-c", config.to_str().unwrap(), "--folder", &folder]);
    assert_eq!(second.status.code(), Some(3));
    let said = text(&second.stderr);
    assert!(
        said.contains("in use") && said.contains(&daemon.pid().to_string()),
        "{said}"
    );

    signal("KILL", daemon.pid());
    daemon.process.wait(PATIENCE).expect("it ends");
    assert_eq!(attachment.health(), WriterHealth::Dead);

    let mut restarted = Daemon::start(&home, &config, &[]);
    assert_eq!(attachment.follow().expect("a new region"), Followed::Replaced);
    assert_eq!(attachment.reader().pid(), restarted.pid());

    signal("TERM", restarted.pid());
    let status = restarted.process.wait(PATIENCE).expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert_eq!(attachment.health(), WriterHealth::Ended);
    assert!(!restarted.folder.join("control").exists());
    let errors = std::fs::read_to_string(home.0.join("feed.err")).expect("what it said");
    assert!(errors.contains("terminated"), "{errors}");
}

/// A venue that says nothing any more is stale, in its row and in consolidated books, and comes back when it
/// speaks.
#[test]
fn a_silent_channel_is_stale_until_it_speaks_again() {
    let home = Folder::new("daemon-silence");
    let session = "[exchange]\nsymbols = 10\nrate = 2000\nduration_s = 60.0\n";
    let config = config(
        &home,
        session,
        "[daemon]\nsilence_ms = 2500\n[[daemon.thread]]\nwait = \"poll\"\nfeeds = [\"nasdaq\", \"bzx\"]\n",
    );
    let mut daemon = Daemon::start(&home, &config, &[]);
    let attachment = daemon.attach();
    let reader = attachment.reader();
    let exchange = exchange(&home, &config);
    let mut copy = SuperCopy::default();
    let mut all_supers = |feeds: u32, stale: u32| {
        let count = reader.supers().count();
        count == 10
            && reader.supers().all(|(slot, _)| {
                reader.read_super(slot, &mut copy).is_ok() && (copy.feeds, copy.stale) == (feeds, stale)
            })
    };
    wait_for("books of both venues", || {
        states(&reader) == [SourceState::Live; 3] && all_supers(0b11, 0)
    });
    signal("STOP", exchange.0.id());
    wait_for("silence", || states(&reader) == [SourceState::Stale; 3]);
    wait_for("consolidated books without anybody", || all_supers(0b11, 0b11));
    signal("CONT", exchange.0.id());
    wait_for("the venues' return", || {
        states(&reader) == [SourceState::Live; 3] && all_supers(0b11, 0)
    });
    daemon.stop();
}
