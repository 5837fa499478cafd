//! A card in a machine: the simulated core behind a host's interface, a feed for it, and a host that has a
//! connection to the venue.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwire_corehost::Core;
use tickwire_cosim::{Cosim, Day, Live, feed};
use tickwire_kernelpath::delegate::{Delegate, Way};
use tickwire_market::InstrumentId;
use tickwire_rtl::Target;
use tickwire_rtl::setup::Limits;
use tickwire_runtime::tcp::TcpStream;
use tickwire_runtime::xdp::delegate::PacketSocket;

use crate::harness::Skip;
use crate::network::Line;

/// A core is simulated in a folder of its own, which is made once.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(crate) fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The core of an example.
pub(crate) fn cosim(name: &str, target: &Target) -> Cosim {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/hardware")
        .join(format!("{name}.tw"));
    let source = std::fs::read_to_string(path).expect("the example is there");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("venue-{name}"));
    let made = Cosim::new(&source, &|_| Err(String::new()), target, &folder);
    made.unwrap_or_else(|why| panic!("{why}"))
}

/// What becomes of the next frame that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Next {
    /// It goes to the wire and into the mirror.
    #[default]
    Both,
    /// The wire loses it.
    Lost,
    /// The mirror does not show it.
    Hidden,
    /// The mirror shows it after software has stood still.
    Late,
    /// The mirror shows another one.
    Garbled,
}

/// The card.
pub(crate) struct Card {
    live: Live,
    wire: PacketSocket,
    mirror: VecDeque<Vec<u8>>,
    late: VecDeque<Vec<u8>>,
    pub(crate) next: Next,
    /// The next datagram comes right before the next register is read.
    pub(crate) is_quick: bool,
    /// Datagrams of the feed that have not come.
    datagrams: VecDeque<Vec<u8>>,
}

impl Card {
    /// A card of the near host, to which nothing was written but its feed.
    pub(crate) fn new(cosim: &Cosim, line: &Line, day: &Day, base: u32) -> Card {
        let mut card = Card {
            live: cosim.live().unwrap_or_else(|why| panic!("{why}")),
            wire: line.card(),
            mirror: VecDeque::new(),
            late: VecDeque::new(),
            next: Next::default(),
            is_quick: false,
            datagrams: day.packets.iter().map(|packet| packet.bytes.clone()).collect(),
        };
        // The book is emptied after a reset.
        card.run(20_000);
        let first = day.packets.first().map_or(1, |packet| packet.seq);
        for (address, value) in feed(day, InstrumentId(7), base, first).writes() {
            card.write(address, value).expect("the core runs");
        }
        card
    }

    pub(crate) fn run(&mut self, clocks: u64) {
        self.live.run(clocks).expect("the core runs");
        self.leave();
    }

    /// The next datagrams come by both lines.
    pub(crate) fn market(&mut self, count: usize) {
        for _ in 0..count {
            let datagram = self.datagrams.pop_front().expect("the day goes on");
            for line in 0..2 {
                self.live.frame(line, &datagram).expect("the core runs");
            }
            self.run(400);
        }
    }

    /// The next datagram, which comes by no line.
    pub(crate) fn skip(&mut self) -> Vec<u8> {
        self.datagrams.pop_front().expect("the day goes on")
    }

    /// What was missing comes by software's line.
    pub(crate) fn late(&mut self, datagram: &[u8]) {
        self.live.frame(2, datagram).expect("the core runs");
        self.run(400);
    }

    /// What the core has sent goes to the wire and into the mirror.
    fn leave(&mut self) {
        while let Some(mut frame) = self.live.take_frame() {
            let next = std::mem::take(&mut self.next);
            if next != Next::Lost {
                assert!(self.wire.send(&frame.bytes).expect("the line is there"));
            }
            if next == Next::Garbled {
                // Its sequence number.
                frame.bytes[41] ^= 1;
            }
            match next {
                Next::Hidden => {}
                Next::Late => self.late.push_back(frame.bytes),
                Next::Both | Next::Lost | Next::Garbled => self.mirror.push_back(frame.bytes),
            }
        }
    }
}

impl Core for Card {
    fn write(&mut self, address: u8, value: u32) -> io::Result<()> {
        self.live.write(address, value)
    }

    fn read(&mut self, address: u8) -> io::Result<u32> {
        if std::mem::take(&mut self.is_quick) {
            // What was written before is in force then.
            self.run(200);
            self.market(1);
        }
        let value = self.live.read(address);
        self.leave();
        value
    }

    fn mirror(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        if self.mirror.is_empty() && !self.late.is_empty() {
            // The calling thread stands still when it has seen an empty mirror, for longer than the mirror is
            // given.
            self.mirror.append(&mut self.late);
            std::thread::sleep(Duration::from_millis(1_200));
            return Ok(None);
        }
        Ok(self.mirror.pop_front().map(|bytes| {
            frame[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        }))
    }
}

/// No limit that a test meets by chance.
pub(crate) const LIMITS: Limits = Limits {
    collar: (1, u32::MAX - 1),
    size: 1_000,
    position: 1_000_000,
    held: 0,
    tokens: 60_000,
    token_clocks: 1,
    orders: 100_000,
    watchdog: 0,
};

/// Connects, in the namespace of the calling thread, and delegates.
pub(crate) fn connected(venue: SocketAddr) -> (TcpStream, Delegate) {
    let stream = TcpStream::connect(venue, Duration::from_secs(20)).expect("connected");
    let way = Way::towards(venue).unwrap_or_else(|why| panic!("{why}"));
    let delegate = Delegate::new(way, &stream).map_err(|refused| refused.why);
    (stream, delegate.unwrap_or_else(|why| panic!("{why}")))
}

/// Two hosts, whose connections are without timestamps, or with them.
pub(crate) fn hosts(has_stamps: bool) -> Result<Line, Skip> {
    let line = Line::new(1)?;
    let value = if has_stamps { "1" } else { "0" };
    line.near(|| std::fs::write("/proc/sys/net/ipv4/tcp_timestamps", value))
        .expect("the namespace is ours");
    Ok(line)
}
