//! Three hosts of one machine, joined by a bridge: a feed handler and its publisher on one, a mirror on each
//! of two others, Aeron between them, one packet of a hundred lost at each. `cargo xtask aeron` runs it.
//!
//! Every program is this one again, in a namespace and with a role (see `play`). The hosts share a file
//! system, so that the test reads the regions of all three as a program on each would.
//!
//! Needs root; without it the tests say so and are counted, and with `TICKWIRE_ROOT_TESTS=1` they fail. No
//! test asks how fast: rates are printed (`--nocapture`). Without the feature there are none: a target that
//! Cargo refuses to build would end every command that asks for all of them.
#![cfg(feature = "aeron")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use tickwire_aeron::links::{Link, Streams};
use tickwire_aeron::{MirrorCommand, Offered, Outlet, Stream};
use tickwire_market::{
    BookState, EventKind, InstrumentId, Level, MarketEvent, Nanos, OrderId, Price, SeqNo, Side, Symbol,
    Venue, Volume,
};
use tickwire_runtime::clock::wall;
use tickwire_runtime::shared::{Attachment, SharedMemory, WriterHealth, monotonic};
use tickwire_runtime::signal::StopFlag;
use tickwire_shm::{
    BookCopy, BookIdentity, BookSlot, BookWriter, Identity, Next, Record, Region, RegionConfig, RegionState,
    RingCursor, SourceIdentity, SourceState,
};

const PATIENCE: Duration = Duration::from_secs(240);
/// What a program is, and with which arguments: a line each.
const ROLE: &str = "TICKWIRE_AERON_ROLE";
const BOOKS: u32 = 200;
/// No test writes as many records: a ring never writes over one, and what is missing was lost on the way.
const RECORDS: u32 = 1 << 20;
/// Multicast, and no host is left behind: the slowest decides.
const MULTICAST: &str = "aeron:udp?endpoint=224.20.30.41:40456|interface=10.77.0.0/24";

/// The entry of programs that a test starts: does nothing in the test itself.
#[test]
fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.lines().collect();
    match words[0] {
        "handler" => handler(Path::new(words[1])),
        "lead" => lead(Path::new(words[1]), words[2], words[3].parse().expect("a count")),
        "follow" => follow(Path::new(words[1]), words[2]),
        _ => {
            #[derive(Parser)]
            struct Line {
                #[command(subcommand)]
                command: MirrorCommand,
            }
            let line = Line::try_parse_from(std::iter::once("mirror").chain(words)).expect("a command line");
            let stop = StopFlag::install().expect("signals");
            if let Err(why) = tickwire_aeron::run(&line.command, &stop) {
                println!("ended: {why}");
            }
        }
    }
}

/// A feed handler whose books and events follow from their number. Obeys lines: `write N RATE` (so many a
/// second, 0: as fast as it can), `stale`, `live`, `end`; answers `done`.
fn handler(folder: &Path) {
    let config = RegionConfig {
        books: BOOKS,
        ring_records: RECORDS,
        ..RegionConfig::default()
    };
    let bytes = config.layout().expect("in range").bytes();
    let memory = SharedMemory::create(&folder.join("region"), bytes).expect("a region");
    let identity = Identity {
        generation: wall(),
        pid: std::process::id(),
    };
    let region = Region::format(memory.words(), &config, identity).expect("in range");
    let mut source = region.source(
        0,
        &SourceIdentity {
            name: "nasdaq 1".into(),
            feed_name: "nasdaq".into(),
            protocol: "itch50".into(),
            feed: 0,
            venue: Some(Venue::Nasdaq),
            ring: Some(0),
        },
    );
    let mut books: BookWriter<'_, _> = region.books();
    let mut slots: Vec<BookSlot> = (0..BOOKS)
        .map(|number| {
            let identity = BookIdentity {
                source: 0,
                instrument: InstrumentId(number),
                symbol: Symbol::new(format!("S{number}").as_bytes()).expect("a symbol"),
            };
            books.claim(&identity).expect("there is room")
        })
        .collect();
    let mut ring = region.ring(0);
    let mut n = 0u64;
    let mut step = |source: &mut tickwire_shm::SourceWriter<'_, _>| {
        n += 1;
        let at = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % slots.len();
        let recv_ts = wall();
        ring.event(
            0,
            &MarketEvent {
                seq: SeqNo(n),
                venue_ts: Nanos(34_200_000_000_000 + n * 900),
                recv_ts,
                instrument: InstrumentId(at as u32),
                venue: Venue::Nasdaq,
                kind: EventKind::Add,
                order_id: OrderId(1_000_000 + n * 3),
                price: Price::from_raw(100_000_000_000 + (n % 97) as i64 * 10_000_000),
                qty: Volume(100 * (1 + n % 9)),
                ..MarketEvent::default()
            },
        );
        let mut edit = books.edit(&mut slots[at]);
        edit.state(BookState::Live);
        edit.cause(SeqNo(n), Nanos(n * 900), recv_ts);
        for side in Side::BOTH {
            edit.totals(side, 10, Volume(n), 20);
            let level = Level {
                price: Price::from_raw(100_000_000_000 + (n % 97) as i64 * 10_000_000),
                qty: Volume(n),
                orders: 2,
            };
            edit.level(side, n as usize % 10, &level);
        }
        edit.publish(recv_ts);
        source.packet(SeqNo(n + 1), recv_ts);
        source.update(n % 5_000);
    };
    source.set_state(SourceState::Live);
    region.heartbeat(monotonic());
    region.set_state(RegionState::Ready);
    memory.publish().expect("published");
    println!("ready");
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        std::io::stdin()
            .lines()
            .map_while(Result::ok)
            .try_for_each(|line| tell.send(line))
    });
    loop {
        region.heartbeat(monotonic());
        let line = match told.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => line,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => continue,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
        };
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["write", count, rate] => {
                let (count, rate): (u64, u64) =
                    (count.parse().expect("a number"), rate.parse().expect("a number"));
                let begun = Instant::now();
                for done in 0..count {
                    if rate > 0 && done % 64 == 0 {
                        let due = Duration::from_nanos(done * 1_000_000_000 / rate);
                        while begun.elapsed() < due {
                            std::thread::sleep(Duration::from_micros(50));
                        }
                    }
                    step(&mut source);
                    if done % 4096 == 0 {
                        region.heartbeat(monotonic());
                    }
                }
                println!("done {} ns", begun.elapsed().as_nanos());
            }
            ["stale"] => {
                source.set_state(SourceState::Stale);
                println!("done");
            }
            ["live"] => {
                source.set_state(SourceState::Live);
                println!("done");
            }
            _ => {
                source.set_state(SourceState::Ended);
                region.set_state(RegionState::Ended);
                println!("done");
                return;
            }
        }
    }
}

/// Where entries of a journal go, and where it is said that they are kept.
const ENTRIES: &str = "aeron:udp?endpoint=224.20.30.43:40470|interface=10.77.0.0/24|term-length=1m";
const KEPT: &str = "aeron:udp?endpoint=10.77.0.1:40480|term-length=1m";
const ENTRY_BYTES: usize = 200;

/// A journal of one host: in memory only, written, or on the disk.
struct Journal {
    file: fs::File,
    keeps: String,
}

impl Journal {
    fn new(folder: &Path, keeps: &str) -> Journal {
        fs::create_dir_all(folder).expect("a folder");
        Journal {
            file: fs::File::create(folder.join("journal")).expect("a file"),
            keeps: keeps.into(),
        }
    }

    fn append(&mut self, entry: &[u8]) {
        if self.keeps != "memory" {
            self.file.write_all(entry).expect("written");
        }
        if self.keeps == "disk" {
            self.file.sync_data().expect("kept");
        }
    }
}

/// Sends entries one at a time: each is kept here and by one of two others before the next. Says how long
/// that took.
fn lead(folder: &Path, keeps: &str, count: usize) {
    let link = Link::open(&folder.join("aeron"), false).expect("a driver");
    let mut out = Streams::open(&link, ENTRIES, 7800).expect("a channel");
    let mut kept = link.subscription(KEPT, 7810).expect("a channel");
    let mut journal = Journal::new(folder, keeps);
    println!("leads");
    // By how many each entry is kept, told by its number; warm first.
    let warm = 2_000;
    let mut answers = vec![0_u8; warm + count];
    let mut took = Vec::with_capacity(count);
    let take = |answers: &mut Vec<u8>, frame: &[u8]| {
        let number = u64::from_le_bytes(*frame.first_chunk().expect("a number"));
        answers[number as usize] += 1;
    };
    wait_until("both others to listen", || out.is_heard(Stream::Live));
    for number in 0..warm + count {
        let mut entry = [0; ENTRY_BYTES];
        entry[..8].copy_from_slice(&(number as u64).to_le_bytes());
        let begin = Instant::now();
        while out.offer(Stream::Live, &entry) != Offered::Taken {}
        journal.append(&entry);
        while answers[number] == 0 {
            // Three hosts and their drivers share the cores of this machine.
            if !kept.poll(&mut answers, take).expect("the driver is there") {
                std::thread::yield_now();
            }
        }
        if number >= warm {
            took.push(begin.elapsed().as_nanos() as u64);
        }
    }
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!(
        "kept: {keeps}: an entry of {ENTRY_BYTES} bytes at two of three hosts, µs: min {:.1}, p50 {:.1}, p90 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1}, count {}",
        at(0.0),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0),
        took.len()
    );
}

/// Keeps entries and says so.
fn follow(folder: &Path, keeps: &str) {
    struct Follower {
        journal: Journal,
        back: Streams,
    }
    let link = Link::open(&folder.join("aeron"), false).expect("a driver");
    let mut entries = link.subscription(ENTRIES, 7800).expect("a channel");
    let mut follower = Follower {
        journal: Journal::new(folder, keeps),
        back: Streams::open(&link, KEPT, 7810).expect("a channel"),
    };
    println!("follows");
    let take = |follower: &mut Follower, entry: &[u8]| {
        follower.journal.append(entry);
        while follower.back.offer(Stream::Live, &entry[..8]) != Offered::Taken {}
    };
    loop {
        if !entries.poll(&mut follower, take).expect("the driver is there") {
            std::thread::yield_now();
        }
    }
}

/// A publisher's host and so many others, at 10.77.0.1 and on, joined by a bridge. Removed when dropped.
struct Hosts {
    prefix: String,
    count: usize,
    folder: PathBuf,
}

fn ip(words: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(words)
        .output()
        .map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "ip {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

impl Hosts {
    fn new(count: usize) -> Option<Hosts> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("twa{}x{made}", std::process::id());
        let folder = std::env::temp_dir().join(format!("tickwire-aeron-{prefix}"));
        let hosts = Hosts {
            prefix,
            count,
            folder,
        };
        match hosts.make() {
            Ok(()) => Some(hosts),
            Err(why) => {
                let must_run = std::env::var_os("TICKWIRE_ROOT_TESTS").is_some_and(|value| value == "1");
                assert!(!must_run, "{why}");
                tickwire_testdata::not_tested(format!("no network namespaces here: {why}"));
                None
            }
        }
    }

    fn name(&self, host: usize) -> String {
        format!("{}h{host}", self.prefix)
    }

    fn make(&self) -> Result<(), String> {
        let first = self.name(0);
        ip(&["netns", "add", &first])?;
        ip(&["-n", &first, "link", "set", "lo", "up"])?;
        ip(&[
            "-n",
            &first,
            "link",
            "add",
            "br0",
            "type",
            "bridge",
            "mcast_snooping",
            "0",
        ])?;
        ip(&["-n", &first, "addr", "add", "10.77.0.1/24", "dev", "br0"])?;
        ip(&["-n", &first, "link", "set", "br0", "up"])?;
        ip(&["-n", &first, "route", "add", "224.0.0.0/4", "dev", "br0"])?;
        for host in 1..=self.count {
            let (name, port) = (self.name(host), format!("p{host}"));
            ip(&["netns", "add", &name])?;
            ip(&[
                "-n", &first, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &name,
            ])?;
            ip(&["-n", &first, "link", "set", &port, "master", "br0", "up"])?;
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
            ip(&[
                "-n",
                &name,
                "addr",
                "add",
                &format!("10.77.0.{}/24", host + 1),
                "dev",
                "eth0",
            ])?;
            ip(&["-n", &name, "link", "set", "eth0", "up"])?;
            ip(&["-n", &name, "route", "add", "224.0.0.0/4", "dev", "eth0"])?;
        }
        Ok(())
    }

    fn folder(&self, host: usize) -> PathBuf {
        self.folder.join(format!("h{host}"))
    }

    /// A program on a host; `lost` of a hundred packets that it receives are lost.
    fn start(&self, host: usize, role: &[&str], lost: u32) -> Program {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.name(host)])
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", "play", "--nocapture"])
            .env(ROLE, role.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if lost > 0 {
            let args = format!(
                "rate={}|recv-msg-mask=0x2|seed={}",
                f64::from(lost) / 100.0,
                17 + host
            );
            command
                .env("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", "loss")
                .env("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS", args);
        }
        let mut child = command.spawn().expect("the program starts");
        let (tell, said) = std::sync::mpsc::channel();
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let what = format!("{host} {}", role[0]);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                println!("host {what}: {line}");
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Program { child, said }
    }

    fn handler(&self) -> Program {
        let folder = self.folder(0);
        let mut program = self.start(0, &["handler", &folder.display().to_string()], 0);
        program.expect("ready");
        program
    }

    fn publisher(&self, channel: &str, lost: u32) -> Program {
        let folder = self.folder(0).display().to_string();
        let mut program = self.start(0, &["publish", "--folder", &folder, "--channel", channel], lost);
        program.expect("publishes");
        program
    }

    fn mirror(&self, host: usize, channel: &str, lost: u32) -> Program {
        let folder = self.folder(host).display().to_string();
        let mut program = self.start(
            host,
            &["receive", "--folder", &folder, "--channel", channel],
            lost,
        );
        program.expect("listens");
        program
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in 0..=self.count {
            let _ = ip(&["netns", "del", &self.name(host)]);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A program that runs; killed when dropped.
struct Program {
    child: Child,
    said: std::sync::mpsc::Receiver<String>,
}

impl Program {
    /// Waits for a line that has a text.
    fn expect(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(line) if line.contains(text) => return line,
                Ok(_) => {}
                Err(why) => panic!("no line with {text:?}: {why}"),
            }
        }
    }

    fn tell(&mut self, line: &str) -> String {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").expect("told");
        self.expect("done")
    }

    fn signal(&self, signal: &str) {
        // `ip netns exec` becomes the program itself.
        let sent = Command::new("kill")
            .args([signal, &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn attached(folder: &Path) -> Attachment {
    let mut held = None;
    wait_until("a region to read", || {
        held = Attachment::attach(folder)
            .ok()
            .filter(|held| held.health() == WriterHealth::Alive);
        held.is_some()
    });
    held.expect("attached")
}

/// Every book of both is the same, and can be trusted in both.
fn books_are_equal(ours: &Attachment, theirs: &Attachment) -> bool {
    let (ours, theirs) = (ours.reader(), theirs.reader());
    let (mut a, mut b) = (BookCopy::default(), BookCopy::default());
    ours.books_used() == theirs.books_used()
        && ours.books().all(|(slot, identity)| {
            theirs.book_identity(slot) == Some(identity)
                && ours.read_book(slot, &mut a).is_ok()
                && theirs.read_book(slot, &mut b).is_ok()
                && a == b
                && (a.writes < 2 || a.state == BookState::Live)
        })
}

/// Reads a ring as a program does: the numbers of events have no hole.
struct Following {
    held: Attachment,
    cursor: RingCursor,
    next: Option<u64>,
    events: u64,
    missed: u64,
}

impl Following {
    fn new(folder: &Path) -> Following {
        let held = attached(folder);
        let cursor = held.reader().ring(0).expect("there is one");
        Following {
            held,
            cursor,
            next: None,
            events: 0,
            missed: 0,
        }
    }

    /// Whether there was nothing.
    fn read(&mut self) -> bool {
        let before = self.events;
        loop {
            match self.cursor.next(&self.held.reader()) {
                Next::Record(Record::Event(0, event)) => {
                    let seq = event.seq.0;
                    assert_eq!(*self.next.get_or_insert(seq), seq, "events in order, each once");
                    self.next = Some(seq + 1);
                    self.events += 1;
                }
                Next::Record(other) => panic!("{other:?}"),
                Next::Missed(n) => self.missed += n,
                Next::Empty => return self.events == before,
            }
        }
    }
}

/// So many events, at a rate, arrive on every host, all of them, and books are equal; what that took.
fn all_arrive(
    handler: &mut Program,
    followers: &mut [Following],
    home: &Path,
    count: u64,
    rate: u64,
) -> Duration {
    let begun = Instant::now();
    let mut took = Duration::ZERO;
    std::thread::scope(|scope| {
        let following: Vec<_> = followers
            .iter_mut()
            .map(|follower| {
                let target = follower.events + count;
                scope.spawn(move || {
                    wait_until("every event", || {
                        while !follower.read() {}
                        follower.events + follower.missed >= target
                    });
                    begun.elapsed()
                })
            })
            .collect();
        handler.tell(&format!("write {count} {rate}"));
        for thread in following {
            took = took.max(thread.join().expect("read"));
        }
    });
    let ours = attached(home);
    for follower in followers {
        assert_eq!(follower.missed, 0, "no event is lost");
        wait_until("equal books", || books_are_equal(&ours, &follower.held));
    }
    took
}

fn with_slowest(channel: &str) -> String {
    format!("{channel}|fc=min,t:60s")
}

#[test]
fn one_packet_of_a_hundred_is_lost_and_no_event_is() {
    let Some(hosts) = Hosts::new(2) else { return };
    let mut handler = hosts.handler();
    let _publisher = hosts.publisher(&with_slowest(MULTICAST), 0);
    let mirrors: Vec<Program> = (1..=2).map(|host| hosts.mirror(host, MULTICAST, 1)).collect();
    let mut followers: Vec<Following> = (1..=2).map(|host| Following::new(&hosts.folder(host))).collect();
    let events: u64 =
        std::env::var("TICKWIRE_AERON_EVENTS").map_or(300_000, |n| n.parse().expect("a number"));
    let rate: u64 = std::env::var("TICKWIRE_AERON_RATE").map_or(0, |n| n.parse().expect("a number"));
    assert!(events < u64::from(RECORDS), "the ring holds all of them");
    let took = all_arrive(&mut handler, &mut followers, &hosts.folder(0), events, rate);
    println!(
        "{events} events to two hosts, 1 % of packets lost at each: {:.0} events a second, 0 lost",
        events as f64 / took.as_secs_f64()
    );
    // A gap of the feed is one there too.
    handler.tell("stale");
    for follower in &followers {
        wait_until("stale books", || {
            follower.held.reader().source_state(0) == SourceState::Stale
        });
    }
    handler.tell("live");
    for follower in &followers {
        wait_until("live books", || {
            follower.held.reader().source_state(0) == SourceState::Live
        });
    }
    handler.tell("end");
    for follower in &followers {
        wait_until("the end", || follower.held.health() == WriterHealth::Ended);
    }
    drop(mirrors);
}

/// What a journal of several hosts would cost: no part of the product, and the figures of its design
/// (docs/adr/0019-a-journal-of-several-hosts.md).
#[test]
fn an_entry_is_kept_by_two_of_three_hosts() {
    let Some(hosts) = Hosts::new(2) else { return };
    for (keeps, count) in [("memory", "20000"), ("written", "20000"), ("disk", "2000")] {
        let folder = |host| hosts.folder(host).display().to_string();
        let mut others: Vec<Program> = (1..=2)
            .map(|host| hosts.start(host, &["follow", &folder(host), keeps], 0))
            .collect();
        others.iter_mut().for_each(|other| _ = other.expect("follows"));
        let mut leader = hosts.start(0, &["lead", &folder(0), keeps, count], 0);
        println!("{}", leader.expect("kept:"));
    }
}

#[test]
fn a_host_that_joins_late_has_every_book_and_all_events_from_then_on() {
    let Some(hosts) = Hosts::new(2) else { return };
    let mut handler = hosts.handler();
    let _publisher = hosts.publisher(&with_slowest(MULTICAST), 0);
    let _first = hosts.mirror(1, MULTICAST, 1);
    let mut followers = vec![Following::new(&hosts.folder(1))];
    all_arrive(&mut handler, &mut followers, &hosts.folder(0), 20_000, 100_000);
    let _late = hosts.mirror(2, MULTICAST, 1);
    let late = Following::new(&hosts.folder(2));
    assert!(
        books_are_equal(&attached(&hosts.folder(0)), &late.held),
        "as soon as there is a region"
    );
    followers.push(late);
    all_arrive(&mut handler, &mut followers, &hosts.folder(0), 20_000, 100_000);
}

#[test]
fn a_cloud_without_multicast_has_the_same() {
    let Some(hosts) = Hosts::new(2) else { return };
    let mut handler = hosts.handler();
    let publish = with_slowest("aeron:udp?control=10.77.0.1:40456|control-mode=dynamic");
    let _publisher = hosts.publisher(&publish, 0);
    let mirrors: Vec<Program> = (1..=2)
        .map(|host| {
            let address = host + 1;
            let channel = format!(
                "aeron:udp?endpoint=10.77.0.{address}:40457|control=10.77.0.1:40456|control-mode=dynamic"
            );
            hosts.mirror(host, &channel, 1)
        })
        .collect();
    let mut followers: Vec<Following> = (1..=2).map(|host| Following::new(&hosts.folder(host))).collect();
    all_arrive(&mut handler, &mut followers, &hosts.folder(0), 20_000, 100_000);
    drop(mirrors);
}

#[test]
fn a_killed_mirror_and_a_killed_publisher_come_back() {
    let Some(hosts) = Hosts::new(2) else { return };
    let mut handler = hosts.handler();
    let mut publisher = hosts.publisher(MULTICAST, 0);
    let mut first = hosts.mirror(1, MULTICAST, 0);
    let mut second = hosts.mirror(2, MULTICAST, 0);
    let mut followers: Vec<Following> = (1..=2).map(|host| Following::new(&hosts.folder(host))).collect();
    all_arrive(&mut handler, &mut followers, &hosts.folder(0), 5_000, 50_000);

    first.kill();
    wait_until("its death", || followers[0].held.health() == WriterHealth::Dead);
    all_arrive(&mut handler, &mut followers[1..], &hosts.folder(0), 5_000, 50_000);
    let _first = hosts.mirror(1, MULTICAST, 0);
    followers[0] = Following::new(&hosts.folder(1));
    all_arrive(&mut handler, &mut followers, &hosts.folder(0), 5_000, 50_000);

    publisher.kill();
    for follower in &followers {
        wait_until("stale books", || {
            follower.held.reader().source_state(0) == SourceState::Stale
        });
    }
    let _publisher = hosts.publisher(MULTICAST, 0);
    for (at, follower) in followers.iter_mut().enumerate() {
        wait_until("a new region", || follower.held.health() != WriterHealth::Alive);
        *follower = Following::new(&hosts.folder(at + 1));
    }
    all_arrive(&mut handler, &mut followers, &hosts.folder(0), 5_000, 50_000);
    second.signal("-INT");
    second.expect("ended: ");
}

/// A host that stands still does not hold up the others (`fc=max`, Aeron's own choice for multicast), and is
/// right again when it goes on: it has either caught up, or joined anew.
#[test]
fn a_host_that_stands_still_holds_up_nobody() {
    let Some(hosts) = Hosts::new(2) else { return };
    let mut handler = hosts.handler();
    let _publisher = hosts.publisher(&format!("{MULTICAST}|fc=max"), 0);
    let _fast = hosts.mirror(1, MULTICAST, 0);
    let slow = hosts.mirror(2, MULTICAST, 0);
    let mut followers: Vec<Following> = (1..=2).map(|host| Following::new(&hosts.folder(host))).collect();
    all_arrive(&mut handler, &mut followers, &hosts.folder(0), 5_000, 50_000);
    slow.signal("-STOP");
    all_arrive(
        &mut handler,
        &mut followers[..1],
        &hosts.folder(0),
        200_000,
        100_000,
    );
    slow.signal("-CONT");
    let home = attached(&hosts.folder(0));
    wait_until("equal books on the slow host", || {
        Attachment::attach(&hosts.folder(2))
            .is_ok_and(|held| held.health() == WriterHealth::Alive && books_are_equal(&home, &held))
    });
}
