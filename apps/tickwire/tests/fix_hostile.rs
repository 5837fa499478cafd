//! Peers that mean harm, over TCP: memory stays bounded, the log says what happened, other sessions go on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tickwire_fix::{Precision, Stamp, naive};
use tickwire_market::Nanos;

mod common;
use common::{Acceptor, Folder};

/// What the acceptor may grow by, in KiB.
const GROWTH_KIB: u64 = 32 << 10;

fn time() -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Stamp::new(Precision::Millis)
        .format(Nanos(now.as_nanos() as u64))
        .to_vec()
}

fn message(sender: &str, msg_type: &str, seq: u64, more: &[(u32, &str)]) -> Vec<u8> {
    let text = |text: &str| text.as_bytes().to_vec();
    let mut fields = vec![
        (35, text(msg_type)),
        (34, text(&seq.to_string())),
        (49, text(sender)),
        (52, time()),
        (56, text("VENUE")),
    ];
    fields.extend(more.iter().map(|(tag, value)| (*tag, text(value))));
    naive::encode(&fields)
}

struct Peer {
    stream: TcpStream,
    seq: u64,
    name: &'static str,
}

impl Peer {
    fn log_on(port: u16, name: &'static str) -> Peer {
        let mut peer = Peer {
            stream: connect(port),
            seq: 0,
            name,
        };
        peer.send("A", &[(98, "0"), (108, "30"), (141, "Y")]);
        assert!(peer.receive().contains("|35=A|"), "no answer to the Logon");
        peer
    }

    fn send(&mut self, msg_type: &str, more: &[(u32, &str)]) {
        self.seq += 1;
        let message = message(self.name, msg_type, self.seq, more);
        self.stream.write_all(&message).expect("the acceptor reads");
    }

    /// What comes next, bars for separators.
    fn receive(&mut self) -> String {
        let mut buffer = [0; 8192];
        let len = self.stream.read(&mut buffer).expect("something comes");
        String::from_utf8_lossy(&buffer[..len]).replace('\x01', "|")
    }

    /// An order comes back: the session is well.
    fn is_well(&mut self) {
        self.send("D", &[(11, "well"), (55, "AAPL")]);
        let echo = self.receive();
        assert!(echo.contains("|35=D|") && echo.contains("|11=well|"), "{echo}");
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the acceptor listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a time-out");
    stream.set_nodelay(true).expect("no delay");
    stream
}

/// Closed by the other side, without a word of FIX.
fn is_closed(mut stream: TcpStream) -> bool {
    let mut buffer = [0; 1024];
    !matches!(stream.read(&mut buffer), Ok(len) if len > 0)
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status
        .lines()
        .find(|l| l.starts_with("VmRSS:"))
        .expect("its memory");
    let number = line.split_whitespace().nth(1).expect("a number");
    number.parse().expect("a number")
}

#[test]
fn hostile_peers_harm_nobody_else() {
    let dir = Folder::new("fix-hostile");
    let config = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort=0\nUseDataDictionary=N\nSenderCompID=VENUE\nBeginString=FIX.4.4\n\
                  FileLogPath=log\n[SESSION]\nTargetCompID=GOOD\n[SESSION]\nTargetCompID=BAD\n[SESSION]\nTargetCompID=LATE\n";
    let acceptor = Acceptor::start(&dir.file("acceptor.cfg", config));
    let (port, pid) = (acceptor.port, acceptor.process.0.id());
    let mut good = Peer::log_on(port, "GOOD");
    good.is_well();
    let before = resident_kib(pid);

    // Slow peers take every place for a connection, a byte at a time; who comes to log on finds one all the
    // same.
    let mut slow: Vec<TcpStream> = (0..60).map(|_| connect(port)).collect();
    for byte in b"8=FIX.4.4\x019=" {
        // The oldest give way to the newest.
        slow.iter_mut().for_each(|s| drop(s.write(&[*byte])));
    }
    good.is_well();
    Peer::log_on(port, "LATE").is_well();

    // A gigabyte is announced, first by a stranger, then in a session.
    let mut stranger = connect(port);
    stranger
        .write_all(b"8=FIX.4.4\x019=1000000000\x0135=A\x01")
        .expect("it reads");
    assert!(is_closed(stranger));
    let mut bad = Peer::log_on(port, "BAD");
    let giant = [&b"8=FIX.4.4\x019=1000000000\x0135=D\x01"[..], &[b'x'; 4 << 20]].concat();
    bad.stream.write_all(&giant).expect("it reads");
    good.is_well();
    bad.is_well();

    // Ten thousand fields, and a message longer than the receive buffer.
    let many: Vec<(u32, &str)> = (0..10_000).map(|n| (5_000 + n % 1_000, "1")).collect();
    let mut lost = message("BAD", "D", bad.seq + 1, &many);
    bad.stream.write_all(&lost).expect("it reads");
    let few: Vec<(u32, &str)> = (0..600).map(|n| (5_000 + n, "1")).collect();
    lost = message("BAD", "D", bad.seq + 1, &few);
    bad.seq += 1;
    bad.stream.write_all(&lost).expect("it reads");
    let reject = bad.receive();
    assert!(reject.contains("|35=3|"), "{reject}");
    bad.is_well();
    good.is_well();

    // A flood of logons, of a session that is there and of nobody.
    for sender in ["GOOD", "NOBODY"] {
        for _ in 0..150 {
            let mut stream = connect(port);
            let logon = message(sender, "A", 1, &[(98, "0"), (108, "30")]);
            stream.write_all(&logon).expect("it reads");
            assert!(is_closed(stream), "{sender} was answered");
        }
    }
    good.is_well();
    let grown = resident_kib(pid).saturating_sub(before);
    assert!(grown < GROWTH_KIB, "{grown} KiB more than before");
    let _ = bad.stream.shutdown(Shutdown::Both);
    good.is_well();
}
