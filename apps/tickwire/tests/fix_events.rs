//! What goes wrong with FIX connections is said in one line each, with the peer's address, its ids, the
//! reason and what to do, and counted: over real sockets, against the whole program.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tickwire_fix::{Precision, Stamp, naive};
use tickwire_market::Nanos;

mod common;
use common::{Folder, Guard, text, tickwire};

const PATIENCE: Duration = Duration::from_secs(60);

/// A program whose words go to a file.
struct Program {
    process: Guard,
    output: PathBuf,
}

impl Program {
    fn start(dir: &Folder, args: &[&str]) -> Program {
        let output = dir.0.join("output");
        let file = File::create(&output).expect("a file");
        let errors = file.try_clone().expect("the same file");
        let child = tickwire()
            .args(args)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn();
        Program {
            process: Guard(child.expect("the program starts")),
            output,
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// The first line with all of these in it, once there is one.
    fn line(&self, parts: &[&str]) -> String {
        let begin = Instant::now();
        loop {
            let said = self.said();
            let found = said
                .lines()
                .find(|line| parts.iter().all(|part| line.contains(part)));
            if let Some(line) = found {
                return line.to_string();
            }
            assert!(begin.elapsed() < PATIENCE, "no line with {parts:?} in\n{said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn port(&self) -> u16 {
        let line = self.line(&["listening on"]);
        line.rsplit(':')
            .next()
            .and_then(|port| port.parse().ok())
            .expect("a port")
    }

    /// Ends it; everything it said.
    fn end(mut self) -> String {
        common::signal("TERM", self.process.0.id());
        self.process.wait(PATIENCE).expect("it ends");
        self.said()
    }
}

const CONFIG: &str = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptPort=0\nUseDataDictionary=N\nSenderCompID=VENUE\nBeginString=FIX.4.4\n\
                      LogonTimeout=2\nFileLogPath=log\n[SESSION]\nTargetCompID=GOOD\n[SESSION]\nTargetCompID=OLD\nBeginString=FIX.4.2\n\
                      [SESSION]\nTargetCompID=USER\nUsername=ann\nPassword=open\n";

fn connect(port: u16) -> (TcpStream, String) {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the acceptor listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let at = stream.local_addr().expect("an address").to_string();
    (stream, at)
}

fn message(version: &str, sender: &str, kind: &str, seq: u64, more: &[(u32, &str)]) -> Vec<u8> {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    let time = Stamp::new(Precision::Millis)
        .format(Nanos(now.as_nanos() as u64))
        .to_vec();
    let field = |tag: u32, value: &str| (tag, value.as_bytes().to_vec());
    let mut fields = vec![
        field(35, kind),
        field(34, &seq.to_string()),
        field(49, sender),
        (52, time),
        field(56, "VENUE"),
    ];
    fields.extend(more.iter().map(|(tag, value)| field(*tag, value)));
    naive::encode_as(version, &fields)
}

fn logon(sender: &str) -> Vec<u8> {
    message("FIX.4.4", sender, "A", 1, &[(98, "0"), (108, "30"), (141, "Y")])
}

fn log_on(port: u16, sender: &str) -> (TcpStream, String) {
    let (mut stream, at) = connect(port);
    stream.write_all(&logon(sender)).expect("it reads");
    let mut buffer = [0; 1024];
    let len = stream.read(&mut buffer).expect("an answer");
    assert!(text(&buffer[..len]).contains("35=A"), "{}", text(&buffer[..len]));
    (stream, at)
}

fn is_closed(stream: &mut TcpStream) {
    let mut buffer = [0; 1024];
    while matches!(stream.read(&mut buffer), Ok(len) if len > 0) {}
}

/// Closes with an answer unread, at which the kernel resets the connection.
fn reset(mut stream: TcpStream) {
    stream
        .write_all(&message("FIX.4.4", "GOOD", "1", 2, &[(112, "T")]))
        .expect("it reads");
    assert!(stream.peek(&mut [0; 1]).expect("an answer") > 0);
}

#[test]
fn every_end_of_a_connection_is_a_line_and_a_number() {
    let dir = Folder::new("fix-events");
    let config = dir.file("acceptor.cfg", CONFIG).display().to_string();
    let region = dir.0.join("region").display().to_string();
    let args = ["fix", "acceptor", "-c", &config, "--stats", "--folder", &region];
    let acceptor = Program::start(&dir, &args);
    let port = acceptor.port();

    let (mut stream, at) = connect(port);
    stream.write_all(&logon("EVE")).expect("it reads");
    is_closed(&mut stream);
    acceptor.line(&[
        &at,
        "8=FIX.4.4 49=EVE 56=VENUE",
        "unknown CompIDs",
        "add a [SESSION] with SenderCompID=VENUE and TargetCompID=EVE",
    ]);

    let (mut stream, at) = connect(port);
    stream.write_all(&logon("OLD")).expect("it reads");
    is_closed(&mut stream);
    acceptor.line(&[
        &at,
        "49=OLD",
        "wrong BeginString",
        "speaks FIX.4.2",
        "correct BeginString",
    ]);

    let (mut stream, at) = connect(port);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: venue\r\n\r\n")
        .expect("it reads");
    is_closed(&mut stream);
    acceptor.line(&[&at, "no FIX message", "TLS"]);

    let (silent, at_silent) = connect(port);
    let (mut partial, at_partial) = connect(port);
    partial.write_all(b"8=FIX.4.4\x019=1").expect("it reads");
    let (gone, at_gone) = connect(port);
    drop(gone);
    acceptor.line(&[&at_gone, "ended before a Logon came", "closed by the peer"]);
    acceptor.line(&[&at_silent, "nothing came in time", "probe"]);
    acceptor.line(&[&at_partial, "13 bytes came in time, but no whole message"]);
    drop((silent, partial));

    let (mut stream, at) = connect(port);
    let wrong = [(98, "0"), (108, "30"), (553, "ann"), (554, "shut")];
    stream
        .write_all(&message("FIX.4.4", "USER", "A", 1, &wrong))
        .expect("it reads");
    is_closed(&mut stream);
    acceptor.line(&[&at, "USER", "refused: Invalid username or password"]);
    acceptor.line(&[&at, "VENUE -> USER", "the Logon was refused"]);

    let (mut good, at_good) = log_on(port, "GOOD");
    acceptor.line(&["GOOD logged on from", &at_good]);
    let (mut second, at) = connect(port);
    second.write_all(&logon("GOOD")).expect("it reads");
    is_closed(&mut second);
    acceptor.line(&[&at, "49=GOOD", "a second connection", &at_good, "peer runs twice"]);

    let mut bad = message("FIX.4.4", "GOOD", "0", 2, &[]);
    let end = bad.len() - 4;
    bad[end..end + 3].copy_from_slice(b"999");
    good.write_all(&bad).expect("it reads");
    acceptor.line(&[
        &at_good,
        "VENUE -> GOOD",
        "1 garbled message(s)",
        "CheckSum (10) says",
    ]);
    drop(good);
    acceptor.line(&[
        &at_good,
        "VENUE -> GOOD",
        "lost without a Logout",
        "closed by the peer",
        "it may log on again",
    ]);

    let (stream, at) = log_on(port, "GOOD");
    reset(stream);
    acceptor.line(&[&at, "VENUE -> GOOD", "lost without a Logout", "reset by the peer"]);

    // A message too low ends the session, with what to do.
    let (mut stream, at) = log_on(port, "GOOD");
    stream
        .write_all(&message("FIX.4.4", "GOOD", "0", 1, &[]))
        .expect("it reads");
    is_closed(&mut stream);
    acceptor.line(&[&at, "SequenceTooLow", "tickwire fix store"]);

    let done = common::run(&["stats", "--folder", &region, "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let counters = shown.to_string();
    for counter in [
        "fix_unknown_peers",
        "fix_wrong_versions",
        "fix_garbage",
        "fix_silent",
        "fix_second_conns",
        "fix_conns_lost",
        "fix_malformed",
        "fix_logons_refused",
    ] {
        let zero = format!("\"{counter}\":0");
        assert!(counters.contains(counter), "{counter} is not in {counters}");
        assert!(
            counters.matches(&format!("\"{counter}\":")).count() > counters.matches(&zero).count(),
            "{counter}: {counters}"
        );
    }
    assert!(counters.contains("connections at 127.0.0.1:"), "{counters}");
    let log = std::fs::read_to_string(dir.0.join("log/FIX.4.4-VENUE-GOOD.event.current.log")).expect("a log");
    assert!(
        log.contains("lost without a Logout") && log.contains("a second connection"),
        "{log}"
    );
    let said = acceptor.end();
    for line in [
        "connections that belonged to no session:",
        "  FIX unknown: 1",
        "  FIX versions: 1",
        "  FIX garbage: 1",
        "  FIX silent: 3",
        "  FIX second: 1",
        "  FIX lost: 2",
        "  FIX malformed: 1",
    ] {
        assert!(
            said.lines().any(|said| said == line),
            "{line:?} is not in\n{said}"
        );
    }
}

#[test]
fn a_flood_of_strangers_does_not_fill_the_disk() {
    let dir = Folder::new("fix-events-flood");
    let config = dir.file("acceptor.cfg", CONFIG).display().to_string();
    let acceptor = Program::start(&dir, &["fix", "acceptor", "-c", &config, "--stats"]);
    let port = acceptor.port();
    for _ in 0..300 {
        let (mut stream, _) = connect(port);
        stream.write_all(&logon("EVE")).expect("it reads");
        is_closed(&mut stream);
    }
    acceptor.line(&["more connections with unknown CompIDs were not written one by one"]);
    let said = acceptor.end();
    let lines = said.lines().filter(|line| line.contains("49=EVE")).count();
    // Ten at once, one each ten seconds.
    assert!((10..100).contains(&lines), "{lines} lines");
    assert!(said.contains("FIX unknown: 300"), "{said}");
}

#[test]
fn addresses_that_may_not_connect_are_closed_at_once() {
    let dir = Folder::new("fix-events-address");
    let config = CONFIG.replace("LogonTimeout=2", "AllowedRemoteAddresses=127.0.0.9,10.1.1.1");
    let config = dir.file("acceptor.cfg", config).display().to_string();
    let acceptor = Program::start(&dir, &["fix", "acceptor", "-c", &config, "--stats"]);
    let (mut stream, at) = connect(acceptor.port());
    is_closed(&mut stream);
    acceptor.line(&[&at, "not one of AllowedRemoteAddresses"]);
    assert!(acceptor.end().contains("FIX addresses: 1"));
}

#[test]
fn an_initiator_tells_of_a_host_that_says_nothing_and_of_one_that_leaves() {
    let dir = Folder::new("fix-events-initiator");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("an address").to_string();
    let port = at.rsplit(':').next().expect("a port");
    let config = format!(
        "[SESSION]\nConnectionType=initiator\nBeginString=FIX.4.4\nSenderCompID=US\nTargetCompID=VENUE\nHeartBtInt=30\nUseDataDictionary=N\n\
         SocketConnectHost=127.0.0.1\nSocketConnectPort={port}\nLogonTimeout=1\nReconnectInterval=1\n"
    );
    let config = dir.file("initiator.cfg", config).display().to_string();
    let script = dir
        .file("script", "timeout 50\nwait logon\n")
        .display()
        .to_string();
    let initiator = Program::start(
        &dir,
        &["fix", "initiator", "-c", &config, "--script", &script, "--stats"],
    );
    let (silent, _) = listener.accept().expect("it connects");
    initiator.line(&[&at, "US -> VENUE", "no Logon came in time"]);
    drop(silent);
    let (leaves, _) = listener.accept().expect("it connects again");
    drop(leaves);
    initiator.line(&[&at, "US -> VENUE", "ended before the logon was over"]);
    assert!(initiator.end().contains("FIX late logons: "));
}
