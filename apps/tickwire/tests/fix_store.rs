//! Nothing lost: `tickwire fix acceptor` is killed in the middle of trading, again and again, and goes on
//! from its store.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tickwire_fix::{
    Again, CompId, Event, LastingStore, Role, STORE_HEAD_BYTES, Session, SessionConfig, Status, Store,
    StoreFailed, Words, new_store, store_bytes, store_size, tag,
};
use tickwire_market::Nanos;
use tickwire_runtime::stored::{Keeper, StoredFile, StoredWords};

mod common;
use common::{Acceptor, Folder, Guard, free_ports, run, text};

const ROUNDS: u32 = 8;

fn now() -> Nanos {
    Nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64)
}

/// The client's side: its session outlives its connections, as a trader's does.
struct Client {
    session: Session,
    /// Bytes of text in each order.
    padding: usize,
    sent: u64,
    /// How often each order was sent back, and how often of these as one that may have come before.
    echoes: BTreeMap<u64, (u32, u32)>,
    /// Orders that were sent again: the other side may answer them again.
    resent: BTreeSet<u64>,
}

fn value(message: &[u8], tag: &str) -> Option<String> {
    let text = String::from_utf8_lossy(message).into_owned();
    let prefix = format!("{tag}=");
    text.split('\x01')
        .find_map(|f| f.strip_prefix(&prefix).map(str::to_string))
}

impl Client {
    fn new() -> Client {
        Client::named("CLIENT")
    }

    fn named(name: &str) -> Client {
        let id = |name: &[u8]| CompId::new(name).unwrap();
        let config = SessionConfig {
            store_messages: 1 << 16,
            store_bytes: 32 << 20,
            heartbeat_s: 5,
            ..SessionConfig::new(Role::Initiator, id(name.as_bytes()), id(b"SERVER"))
        };
        Client {
            session: Session::new(config),
            padding: 0,
            sent: 0,
            echoes: BTreeMap::new(),
            resent: BTreeSet::new(),
        }
    }

    /// Trades on one connection until it is lost, the time is over, or (with `until_all`) every order was
    /// sent back.
    fn trade(&mut self, port: u16, orders: u64, span: Duration, until_all: bool) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            return;
        };
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        stream.set_nodelay(true).unwrap();
        self.session.handle_connected(now());
        let (begin, mut left, mut buffer) = (Instant::now(), orders, [0; 4096]);
        let mut is_up = true;
        while is_up && begin.elapsed() < span {
            if self.session.status() == Status::Active && left > 0 {
                let id = self.sent + 1;
                let padding = vec![b'x'; self.padding];
                let sent = self.session.send(now(), b"D", Again::Resend, |e, _| {
                    e.unsigned(tag::CL_ORD_ID, id);
                    e.unsigned(tag::ORDER_QTY, 100);
                    e.text_if(tag::TEXT, &padding);
                });
                if sent.is_ok() {
                    self.sent = id;
                    left -= 1;
                }
            }
            while is_up && let Some(bytes) = self.session.poll_transmit(&mut buffer) {
                let bytes = bytes.to_vec();
                self.note_resends(&bytes);
                is_up = stream.write_all(&bytes).is_ok();
            }
            match stream.read(&mut buffer) {
                Ok(0) => is_up = false,
                Ok(n) => {
                    let mut at = 0;
                    while at < n {
                        at += self.session.handle_bytes(now(), &buffer[at..n]);
                        self.events();
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => is_up = false,
            }
            if self.session.poll_timeout().is_some_and(|t| t <= now()) {
                self.session.handle_timeout(now());
            }
            self.events();
            is_up &= self.session.status() != Status::Closing;
            if until_all && left == 0 && self.echoes.len() as u64 == self.sent {
                break;
            }
        }
        self.session.handle_disconnected(now());
    }

    /// Which orders went out with PossDupFlag.
    fn note_resends(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for message in text.split("8=FIX").filter(|m| m.contains("\x0143=Y\x01")) {
            let id: Option<u64> = value(message.as_bytes(), "11").and_then(|id| id.parse().ok());
            self.resent.extend(id);
        }
    }

    fn events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Message { poss_dup, .. } => {
                    let message = self.session.message().unwrap();
                    let field = message.find(tag::CL_ORD_ID).unwrap();
                    let id = message.unsigned(field).unwrap();
                    let echo = self.echoes.entry(id).or_default();
                    echo.0 += 1;
                    echo.1 += u32::from(poss_dup);
                }
                Event::Disconnect { reason, text } => {
                    // Numbers never disagree: the only end is a lost connection.
                    panic!("the session ended: {reason:?} {text}");
                }
                Event::Rejected { text, .. } => panic!("rejected: {text}"),
                _ => {}
            }
        }
    }
}

fn configuration(dir: &Path) -> PathBuf {
    let path = dir.join("server.cfg");
    let cfg = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort=0\nUseDataDictionary=N\nFileStorePath=store\nFileStoreMegabytes=4\n\
                [SESSION]\nBeginString=FIX.4.4\nSenderCompID=SERVER\nTargetCompID=CLIENT\n";
    std::fs::write(&path, cfg).unwrap();
    path
}

#[test]
fn orders_survive_any_number_of_kills() {
    let dir = std::env::temp_dir().join(format!("tickwire-fix-store-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let config = configuration(&dir);
    let mut client = Client::new();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ u64::from(std::process::id());
    for round in 0..common::times(ROUNDS) {
        let acceptor = Acceptor::start(&config);
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let port = acceptor.port;
        let pause = Duration::from_millis(100 + (state >> 33) % 400);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(pause);
            acceptor.kill();
        });
        client.trade(port, u64::MAX, Duration::from_secs(60), false);
        killer.join().unwrap();
        println!(
            "round {round}: {} orders so far, {} sent back",
            client.sent,
            client.echoes.len()
        );
    }
    let acceptor = Acceptor::start(&config);
    client.trade(acceptor.port, 10, Duration::from_secs(60), true);
    acceptor.kill();
    assert!(
        client.sent > 100,
        "too few orders to prove anything: {}",
        client.sent
    );
    for id in 1..=client.sent {
        let (times, dups) = client.echoes.get(&id).copied().unwrap_or_default();
        assert!(times > 0, "order {id} of {} was lost", client.sent);
        let is_explained = times == 1 || dups > 0 || client.resent.contains(&id);
        assert!(is_explained, "order {id} came back {times} times without a word");
    }
    let show = Command::new(env!("CARGO_BIN_EXE_tickwire"))
        .args(["fix", "store", "-c"])
        .arg(&config)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&show.stdout).into_owned();
    assert!(
        show.status.success() && text.contains("FIX.4.4 SERVER CLIENT"),
        "{text}"
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

// ---- the file -------------------------------------------------------------------------------------------------------

fn sessions(folder: &Folder, rest: &str, names: &[&str]) -> PathBuf {
    let port = if rest.contains("SocketAcceptPort") {
        ""
    } else {
        "SocketAcceptPort=0\n"
    };
    let mut cfg = format!(
        "[DEFAULT]\nConnectionType=acceptor\n{port}UseDataDictionary=N\nBeginString=FIX.4.4\nSenderCompID=SERVER\n\
         FileLogPath=log\n{rest}\n"
    );
    for name in names {
        cfg += &format!("[SESSION]\nTargetCompID={name}\n");
    }
    folder.file("server.cfg", cfg)
}

fn events_of(folder: &Path, name: &str) -> String {
    let path = folder
        .join("log")
        .join(format!("FIX.4.4-SERVER-{name}.event.current.log"));
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Waits for something that another thread or process does.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn show(config: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let config = config.display().to_string();
    let done = run(&[&["fix", "store", "-c", &config], more].concat());
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

/// Somebody cuts the file of a session that trades: it ends with the reason, the process and the others go
/// on; begun again, it is refused with what to do, and numbers are set as the advice says.
#[test]
fn a_store_cut_in_use_ends_its_session_alone_and_is_refused_afterwards() {
    let folder = Folder::new("store-cut");
    let config = sessions(
        &folder,
        "FileStorePath=store\nFileStoreMegabytes=1",
        &["CLIENT", "OTHER"],
    );
    let file = folder.0.join("store").join("FIX.4.4-SERVER-CLIENT.store");
    let acceptor = Acceptor::start(&config);
    let mut client = Client::new();
    client.trade(acceptor.port, 20, Duration::from_secs(60), true);
    let cutter = std::thread::spawn({
        let file = file.clone();
        move || {
            std::thread::sleep(Duration::from_millis(200));
            std::fs::OpenOptions::new()
                .write(true)
                .open(file)
                .unwrap()
                .set_len(0)
                .unwrap();
        }
    });
    client.trade(acceptor.port, u64::MAX, Duration::from_secs(60), false);
    cutter.join().unwrap();
    until("the reason in the event log", || {
        events_of(&folder.0, "CLIENT").contains(StoreFailed::Lost.text())
    });
    let mut other = Client::named("OTHER");
    other.trade(acceptor.port, 10, Duration::from_secs(60), true);
    assert_eq!(other.echoes.len(), 10, "the other session goes on");
    acceptor.kill();
    let (code, _, why) = show(&config, &["--session", "CLIENT"]);
    assert!(
        code == Some(2) && why.contains("is cut short") && why.contains("--next-out N"),
        "{code:?} {why}"
    );
    let config_text = config.display().to_string();
    let refused = run(&["fix", "acceptor", "-c", &config_text]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(
        text(&refused.stderr).contains("which number it expects"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0, "nobody wrote to it");
    std::fs::remove_file(&file).unwrap();
    let set = ["--session", "CLIENT", "--next-out", "4711", "--next-in", "4000"];
    let (code, shown, why) = show(&config, &set);
    assert!(
        code == Some(0) && shown.contains("4711") && shown.contains("4000"),
        "{shown}{why}"
    );
    let (_, shown, _) = show(&config, &["--session", "CLIENT"]);
    assert!(shown.contains("4711"), "{shown}");
}

/// `fix store` beside a session that trades, then over a flipped byte: it shows, and changes nothing.
#[test]
fn inspection_writes_nothing_works_beside_a_session_and_says_what_is_missing() {
    let folder = Folder::new("store-look");
    let config = sessions(&folder, "FileStorePath=store\nFileStoreMegabytes=1", &["CLIENT"]);
    let file = folder.0.join("store").join("FIX.4.4-SERVER-CLIENT.store");
    let acceptor = Acceptor::start(&config);
    let port = acceptor.port;
    let trader = std::thread::spawn(move || {
        let mut client = Client::new();
        client.padding = 500;
        client.trade(port, 3000, Duration::from_secs(60), true);
        client
    });
    while !trader.is_finished() {
        let (code, shown, why) = show(&config, &[]);
        assert_eq!(code, Some(0), "{shown}{why}");
    }
    let mut client = trader.join().unwrap();
    assert_eq!(client.echoes.len(), 3000);
    // Numbers are not set under a session.
    let (code, _, why) = show(&config, &["--next-out", "1"]);
    assert!(code == Some(3) && why.contains("in use"), "{why}");
    acceptor.kill();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let (code, shown, why) = show(&config, &[]);
    assert_eq!(code, Some(1), "{shown}{why}");
    assert!(shown.contains("bytes are damaged: messages "), "{shown}");
    assert!(std::fs::read(&file).unwrap() == bytes, "inspection wrote");
    // The session goes on over it.
    let acceptor = Acceptor::start(&config);
    client.trade(acceptor.port, 10, Duration::from_secs(60), true);
    assert_eq!(client.echoes.len(), 3010);
}

/// A file of the earlier format is converted at the first start, and stays beside the new one. It is made
/// here by hand: numbers and no messages.
#[test]
fn a_store_of_the_earlier_format_is_converted() {
    let folder = Folder::new("store-earlier");
    let config = sessions(&folder, "FileStorePath=store\nFileStoreMegabytes=1", &["CLIENT"]);
    let file = folder.0.join("store").join("FIX.4.4-SERVER-CLIENT.store");
    let mut words = vec![0_u64; 8192];
    words[0] = u64::from_le_bytes(*b"TWFIXST1");
    (words[1], words[2]) = (91, 62);
    for (at, byte) in b"FIX.4.4 SERVER CLIENT".iter().enumerate() {
        let word = &mut words[8 + at / 8];
        *word = word.rotate_left(8) ^ u64::from(*byte);
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::create_dir_all(folder.0.join("store")).unwrap();
    std::fs::write(&file, &bytes).unwrap();
    let (code, shown, why) = show(&config, &[]);
    assert!(
        code == Some(0) && shown.contains("91") && shown.contains("62"),
        "{shown}{why}"
    );
    assert!(std::fs::read(&file).unwrap() == bytes, "inspection wrote");
    let old = folder.0.join("store").join("FIX.4.4-SERVER-CLIENT.store.earlier");
    let acceptor = Acceptor::start(&config);
    until("it is converted", || {
        old.exists() && std::fs::read(&file).is_ok_and(|now| now.starts_with(b"TWFIXST2"))
    });
    acceptor.kill();
    let (code, shown, why) = show(&config, &[]);
    assert!(
        code == Some(0) && shown.contains("91") && shown.contains("62"),
        "{shown}{why}"
    );
    assert!(std::fs::read(old).unwrap() == bytes, "the old file is kept");
}

/// A thousand configured sessions cost what they use, not what they may come to use.
#[test]
fn a_thousand_sessions_start_small() {
    let folder = Folder::new("store-many");
    let names: Vec<String> = (0..1000).map(|n| format!("C{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let config = sessions(&folder, "FileStorePath=store", &names);
    let begin = Instant::now();
    let acceptor = Acceptor::start(&config);
    until("every store is there", || {
        std::fs::read_dir(folder.0.join("store")).is_ok_and(|files| files.count() == 1000)
    });
    println!("1,000 sessions: {} ms", begin.elapsed().as_millis());
    let mut client = Client::named("C999");
    client.trade(acceptor.port, 10, Duration::from_secs(60), true);
    assert_eq!(client.echoes.len(), 10);
    println!("and traded: {} ms", begin.elapsed().as_millis());
    let status = std::fs::read_to_string(format!("/proc/{}/status", acceptor.process.0.id())).unwrap();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    println!("resident: {kib} KiB");
    // 64 GiB if all of it were there.
    assert!(kib < 1 << 20, "{kib} KiB");
}

/// Memory of a store, as the program has it.
struct FileWords(StoredWords);

impl Words for FileWords {
    fn words(&self) -> &[std::sync::atomic::AtomicU64] {
        self.0.words()
    }

    fn reach(&self, end: usize) -> Result<(), StoreFailed> {
        self.0.reach(end).then_some(()).ok_or(StoreFailed::NoRoom)
    }
}

const GROWING: &str = "TICKWIRE_TEST_GROWING_STORE";
const GROWING_BYTES: usize = 64 << 20;

fn growing_store(path: &Path) -> (LastingStore<FileWords>, Keeper) {
    let bytes = store_bytes(GROWING_BYTES);
    let file = match StoredFile::open(path).unwrap() {
        Some(file) => file,
        None => StoredFile::create(path, &new_store(b"GROWING", bytes), bytes, false).unwrap(),
    };
    let size = store_size(&file.first(STORE_HEAD_BYTES).unwrap()).unwrap();
    let words = file.map(size.bytes, size.used, false).unwrap();
    let keeper = Keeper::default();
    keeper.keep(&words);
    (LastingStore::open(FileWords(words), b"GROWING").unwrap(), keeper)
}

fn growing_message(seq: u64) -> Vec<u8> {
    (0..20_000 + seq % 3000)
        .map(|n| (seq * 31 + n * 7) as u8)
        .collect()
}

/// Not a test by itself: what the next one starts and kills. Writes as fast as it can beside a keeper that
/// does nothing else, and says each number once its message is stored.
#[test]
fn a_store_that_grows_until_it_is_killed() {
    let Ok(path) = std::env::var(GROWING) else { return };
    let (mut store, keeper) = growing_store(Path::new(&path));
    std::thread::spawn(move || {
        loop {
            keeper.look(true, |_, _| {});
        }
    });
    let mut out = std::io::stdout();
    loop {
        let seq = store.next_out();
        store.append(seq, &growing_message(seq)).unwrap();
        writeln!(out, "stored {seq}").unwrap();
        out.flush().unwrap();
    }
}

/// kill -9 at any point while the file grows: every message that was said to be stored is there.
#[test]
fn nothing_is_lost_when_a_store_is_killed_while_it_grows() {
    let folder = Folder::new("store-grow");
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ u64::from(std::process::id());
    for round in 0..10 {
        let path = folder.0.join(format!("growing-{}", round / 3));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_store_that_grows_until_it_is_killed", "--nocapture"])
            .env(GROWING, &path)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut child = Guard(child);
        let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let stored = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("stored ")?.parse().ok());
        let last: u64 = stored.take(1 + (state >> 33) as usize % 1200).last().unwrap();
        drop(child);
        let (mut store, _) = growing_store(&path);
        assert!(
            store.next_out() > last,
            "{last} was stored, next is {}",
            store.next_out()
        );
        assert_eq!(store.recovery().holes, []);
        let first = store.next_kept(1).unwrap();
        for seq in first..store.next_out() {
            assert_eq!(store.get(seq), Some(&growing_message(seq)[..]), "message {seq}");
        }
        let gone = store.not_kept(1, store.next_out()).map_or(0, |gone| gone.count);
        assert_eq!(gone, first - 1);
    }
}

/// The disk fills up under a session: it ends with the reason, and trades again when there is room. Nothing
/// is lost.
#[test]
fn a_store_on_a_full_disk_ends_its_session_until_there_is_room() {
    let folder = Folder::new("store-full");
    let config = sessions(&folder, "FileStorePath=store\nFileStoreMegabytes=8", &["CLIENT"]);
    let disk = folder.0.join("store");
    std::fs::create_dir_all(&disk).unwrap();
    let Some(acceptor) = Acceptor::on_small_disk(&config, &disk, 4 << 20) else {
        return;
    };
    // Less than the first step of growth is left.
    let fill = acceptor.sees(&disk).join("fill");
    let mut filled = std::fs::File::create(&fill).unwrap();
    while filled.write_all(&[1; 4096]).is_ok() {}
    let mut client = Client::new();
    client.padding = 2000;
    client.trade(acceptor.port, u64::MAX, Duration::from_secs(60), false);
    until("the reason in the event log", || {
        events_of(&folder.0, "CLIENT").contains(StoreFailed::NoRoom.text())
    });
    drop(filled);
    std::fs::remove_file(&fill).unwrap();
    let more = client.sent + 100;
    while client.sent < more || (client.echoes.len() as u64) < client.sent {
        client.trade(
            acceptor.port,
            more.saturating_sub(client.sent),
            Duration::from_secs(60),
            true,
        );
    }
}

/// The message log on a full disk goes on when there is room again, and says what it lost.
#[test]
fn a_message_log_on_a_full_disk_goes_on_and_says_what_is_missing() {
    let folder = Folder::new("log-full");
    let config = sessions(&folder, "", &["CLIENT"]);
    let disk = folder.0.join("log");
    std::fs::create_dir_all(&disk).unwrap();
    let Some(acceptor) = Acceptor::on_small_disk(&config, &disk, 4 << 20) else {
        return;
    };
    let seen = acceptor.sees(&disk);
    let log = || {
        std::fs::read_to_string(seen.join("FIX.4.4-SERVER-CLIENT.messages.current.log")).unwrap_or_default()
    };
    let mut client = Client::new();
    client.trade(acceptor.port, 10, Duration::from_secs(60), true);
    until("ten orders in the log", || log().contains("\x0111=10\x01"));
    let mut filled = std::fs::File::create(seen.join("fill")).unwrap();
    while filled.write_all(&[1; 4096]).is_ok() {}
    client.padding = 3000;
    client.trade(acceptor.port, 500, Duration::from_secs(60), true);
    assert_eq!(client.echoes.len(), 510, "sessions do not care");
    drop(filled);
    std::fs::remove_file(seen.join("fill")).unwrap();
    until("what was lost is said", || {
        log().contains(" lines were not written, from ")
    });
    client.padding = 0;
    client.trade(acceptor.port, 5, Duration::from_secs(60), true);
    until("it goes on", || log().contains("\x0111=515\x01"));
}

/// Nobody reads what the acceptor prints, and the pipe is full: its sessions do not notice.
#[test]
fn sessions_go_on_when_nobody_reads_what_is_printed() {
    let folder = Folder::new("unread");
    let [port] = free_ports();
    let config = sessions(&folder, &format!("SocketAcceptPort={port}"), &["CLIENT"]);
    // Nearly all of a pipe's 64 KiB is used before the program begins.
    let run = format!(
        "head -c 65500 /dev/zero; exec {} fix acceptor -c {}",
        env!("CARGO_BIN_EXE_tickwire"),
        config.display()
    );
    let child = Command::new("sh")
        .args(["-c", &run])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut acceptor = Guard(child);
    until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let mut client = Client::new();
    for order in 1..=300 {
        // A connection that comes before the end of the last one was seen is closed, and made again.
        while client.echoes.len() < order {
            let left = u64::from(client.sent < order as u64);
            client.trade(port, left, Duration::from_secs(60), true);
        }
    }
    // What it had to say is there for whoever reads at last.
    let mut out = acceptor.0.stdout.take().unwrap();
    common::signal("TERM", acceptor.0.id());
    let mut said = String::new();
    out.read_to_string(&mut said).unwrap();
    // More than the pipe had room for; how many lines there are of each kind is limited.
    assert!(
        said.len() > 1 << 16 && said.contains("CLIENT logged on"),
        "{}",
        said.trim_matches('\0')
    );
    assert!(acceptor.wait(Duration::from_secs(60)).is_some());
}
