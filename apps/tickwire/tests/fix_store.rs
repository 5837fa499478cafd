//! Nothing lost: `tickwire fix acceptor` is killed in the middle of trading, again and again, and goes on from its store.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tickwire_fix::{CompId, Event, Role, Session, SessionConfig, Status, tag};
use tickwire_market::Nanos;

mod common;
use common::Acceptor;

const ROUNDS: u64 = 8;

fn now() -> Nanos {
    Nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64)
}

/// The client's side: its session outlives its connections, as a trader's does.
struct Client {
    session: Session,
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
        let id = |name: &[u8]| CompId::new(name).unwrap();
        let config = SessionConfig {
            any_message: true,
            store_messages: 1 << 16,
            store_bytes: 16 << 20,
            heartbeat_s: 5,
            ..SessionConfig::new(Role::Initiator, id(b"CLIENT"), id(b"SERVER"))
        };
        Client {
            session: Session::new(config),
            sent: 0,
            echoes: BTreeMap::new(),
            resent: BTreeSet::new(),
        }
    }

    /// Trades on one connection until it is lost, the time is over, or (with `until_all`) every order was sent back.
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
                let sent = self.session.send_any(now(), b"D", |e| {
                    e.unsigned(tag::CL_ORD_ID, id);
                    e.unsigned(tag::ORDER_QTY, 100);
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
    let text = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort=0\nUseDataDictionary=N\nFileStorePath=store\nFileStoreMegabytes=4\n\
                [SESSION]\nBeginString=FIX.4.4\nSenderCompID=SERVER\nTargetCompID=CLIENT\n";
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn orders_survive_any_number_of_kills() {
    let dir = std::env::temp_dir().join(format!("tickwire-fix-store-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let config = configuration(&dir);
    let mut client = Client::new();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ u64::from(std::process::id());
    for round in 0..ROUNDS {
        let acceptor = Acceptor::start(&config);
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let port = acceptor.port;
        let pause = Duration::from_millis(100 + (state >> 33) % 400);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(pause);
            acceptor.kill();
        });
        client.trade(port, u64::MAX, Duration::from_secs(10), false);
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
