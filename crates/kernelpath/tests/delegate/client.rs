//! Our end of a delegated connection, which sends a pattern and checks the answers' bytes.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tickwire_kernelpath::delegate::{Counts, Delegate, Way};
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::tcp::{Received, TcpStream};
use tickwire_testdata::Rng;

use crate::harness::{Skip, namespaces};
use crate::network::{Habits, Kind, PORT, Peer, REPLY, pattern, start};

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const TALKING: Habits = Habits {
    replies: true,
    reads: true,
};

/// Our end of a connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) delegate: Delegate,
    pub(crate) sent: u64,
    pub(crate) heard: u64,
    pub(crate) is_closed: bool,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(peer: SocketAddr) -> Client {
        let way = Way::towards(peer).unwrap_or_else(|why| panic!("{why}"));
        let stream = TcpStream::connect(peer, Duration::from_secs(20)).expect("connected");
        Client::of(way, stream)
    }

    pub(crate) fn of(way: Way, stream: TcpStream) -> Client {
        let delegate = Delegate::new(way, &stream).map_err(|refused| refused.why);
        Client {
            delegate: delegate.unwrap_or_else(|why| panic!("{why}")),
            stream,
            sent: 0,
            heard: 0,
            is_closed: false,
            buffer: vec![0; 1 << 16],
        }
    }

    /// Before each message another one is rehearsed, of which the peer must never see a byte.
    pub(crate) fn launch(&mut self, length: u64) -> io::Result<()> {
        let message: Vec<u8> = (self.sent..self.sent + length).map(pattern).collect();
        self.delegate
            .rehearse(&self.stream, &[0; 3_000][..(length as usize).min(3_000)]);
        self.delegate.launch(&mut self.stream, &message)?;
        self.sent += length;
        Ok(())
    }

    pub(crate) fn send(&mut self, length: u64) -> io::Result<()> {
        self.launch(length)?;
        self.delegate.settle(&mut self.stream)
    }

    /// Messages whose answers come before they are booked, `wanted` of those that leave past the kernel: each
    /// is booked when the guard has its answer, however long the peer waits for a core.
    pub(crate) fn early_answers(&mut self, wanted: u64) {
        let began = Instant::now();
        let aim = self.delegate.counts().held + wanted;
        while self.delegate.counts().held < aim {
            let before = self.delegate.counts();
            self.launch(REPLY).expect("launched");
            while self.delegate.counts().delegated > before.delegated
                && self.delegate.counts().held == before.held
            {
                assert!(
                    began.elapsed() < PATIENCE,
                    "no answer: {}",
                    self.delegate.counts()
                );
                std::thread::sleep(Duration::from_micros(20));
            }
            self.delegate.settle(&mut self.stream).expect("booked");
            self.until("the answer", |own| own.heard == own.sent);
            assert!(began.elapsed() < PATIENCE, "{}", self.delegate.counts());
        }
    }

    /// Reads what has come, as the trading thread does.
    pub(crate) fn hear(&mut self) {
        loop {
            match self.stream.recv(&mut self.buffer) {
                Ok(Received::Bytes(bytes)) => {
                    for (offset, byte) in (self.heard..).zip(bytes) {
                        assert_eq!(*byte, pattern(offset), "the answers' byte at {offset}");
                    }
                    self.heard += bytes.len() as u64;
                }
                Ok(Received::Nothing) => break,
                Ok(Received::Closed) | Err(_) => {
                    self.is_closed = true;
                    return;
                }
            }
        }
        let tended = self.stream.flush().map(drop);
        let tended = tended.and_then(|()| self.delegate.tend(&mut self.stream));
        self.is_closed |= tended.is_err();
    }

    /// Messages of any length, with pauses.
    pub(crate) fn talk(&mut self, messages: u32, rng: &mut Rng) {
        for n in 0..messages {
            self.send(40 + rng.next_u64() % 400).expect("sent");
            self.hear();
            assert!(!self.is_closed, "the connection is lost");
            match rng.next_u64() % 8 {
                // Bursts, ordinary pauses, and now and then a longer one.
                0..4 => {}
                4..7 => pause(Duration::from_micros(60)),
                _ if n % 50 == 0 => pause(Duration::from_millis(3)),
                _ => pause(Duration::from_micros(300)),
            }
        }
    }

    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&Client) -> bool) {
        let began = Instant::now();
        while !done(self) {
            self.hear();
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: {} sent, {} heard, {}; of the kernel:\n{}",
                self.sent,
                self.heard,
                self.delegate.counts(),
                kernels_connections()
            );
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Until the peer has everything, and we all its answers, and nothing that was held back waits any more
    /// (the program may be writing a segment down while the last message is booked).
    pub(crate) fn finish(&mut self, peer: &Peer, replies: bool) -> Counts {
        let heard = if replies { self.sent / REPLY * REPLY } else { 0 };
        self.until("the end", |own| peer.received() == own.sent && own.heard == heard);
        self.until("what was held", |own| {
            let counts = own.delegate.counts();
            counts.held == counts.injected + counts.not_injected
        });
        let counts = self.delegate.counts();
        println!(
            "{counts}; the peer sent {} segments again",
            peer.retransmissions()
        );
        counts
    }
}

/// What the kernel knows of the connections of this namespace: windows, timers, what waits.
fn kernels_connections() -> String {
    let asked = Command::new("ss")
        .args(["--tcp", "--info", "--numeric", "--options"])
        .output();
    asked.map_or_else(
        |why| format!("cannot run ss: {why}"),
        |said| String::from_utf8_lossy(&said.stdout).into_owned(),
    )
}

pub(crate) fn pause(length: Duration) {
    let began = Instant::now();
    while began.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// A network of two hosts, its second one the peer.
pub(crate) fn direct(kind: Kind, habits: Habits) -> Result<(VethPair, Peer, SocketAddr), Skip> {
    let pair = namespaces()?;
    let peer = start(&pair, kind, habits);
    let address = (pair.address(1), PORT).into();
    Ok((pair, peer, address))
}

/// This program again, beside it in the namespace of end 0, with the venue's address in this variable; once
/// it has said this line.
pub(crate) fn child_that_says(line: &str, pair: &VethPair, (variable, venue): (&str, SocketAddr)) -> Child {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new("ip")
        .args(["netns", "exec", pair.name(0)])
        .arg(program)
        .env(variable, venue.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut said = String::new();
    BufReader::new(child.stdout.take().expect("piped"))
        .read_line(&mut said)
        .expect("a line");
    assert_eq!(said.trim(), line);
    child
}

/// Kills it.
pub(crate) fn kill(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("gone");
}
