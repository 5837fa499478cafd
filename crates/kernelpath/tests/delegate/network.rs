//! Two hosts and a line between them that loses and reorders frames, and two kinds of peers at its far end:
//! Linux, and another TCP (smoltcp).

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr, Ipv4Address};
use tickwire_kernel::segment::{Checksum, checksum, complete};
use tickwire_runtime::netns::VethPair;
use tickwire_runtime::tcp::{Received, TcpListener, TcpStream};
use tickwire_runtime::xdp::delegate::{PacketSocket, flight};
use tickwire_testdata::Rng;

use crate::harness::{Skip, namespaces};

pub(crate) const PORT: u16 = 26_404;
/// Hardware address of the far host.
const FAR: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0x18, 2]);

/// The byte of a stream at an offset: what is lost, doubled or out of order shows at once.
pub(crate) fn pattern(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// A thread in a namespace.
pub(crate) fn inside<T: Send>(pair: &VethPair, end: usize, what: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            pair.enter(end).expect("entered");
            what()
        });
        match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// What the line does, in both directions.
#[derive(Default)]
pub(crate) struct Faults {
    /// Frames of 1,000 that are lost.
    pub(crate) lost: AtomicU32,
    /// Frames of 1,000 that come after those behind them.
    pub(crate) late: AtomicU32,
    /// Nothing goes towards the near host.
    pub(crate) deaf: AtomicBool,
    /// No TCP goes away from it.
    pub(crate) mute: AtomicBool,
    /// So many segments were lost by that.
    pub(crate) muted: AtomicU32,
}

/// Two hosts with a line between.
pub(crate) struct Line {
    near: VethPair,
    far: VethPair,
    pub(crate) faults: Arc<Faults>,
    stop: Arc<AtomicBool>,
    relay: Option<JoinHandle<()>>,
}

impl Line {
    pub(crate) fn new(seed: u64) -> Result<Line, Skip> {
        let (near, far) = (namespaces()?, namespaces()?);
        let index = |pair: &VethPair, end| {
            inside(pair, end, || {
                let found = tickwire_runtime::interface::Interface::find("veth0").expect("it is there");
                found.index()
            })
        };
        for (pair, middle) in [(&near, 1), (&far, 0)] {
            // Frames of more than a segment would not get out again.
            for end in [0, 1] {
                let few = ["link", "set", "veth0", "gso_max_segs", "1"];
                pair.ip(end, &few).expect("iproute2 of 2018 or later");
            }
            pair.ip(middle, &["addr", "flush", "dev", "veth0"])
                .expect("the middle is no host");
        }
        let socket = |pair: &VethPair, end| {
            let index = index(pair, end);
            inside(pair, end, || PacketSocket::open(index, true).expect("opened"))
        };
        let ends = [socket(&near, 1), socket(&far, 0)];
        let (faults, stop) = (Arc::new(Faults::default()), Arc::new(AtomicBool::new(false)));
        let (own, ended) = (Arc::clone(&faults), Arc::clone(&stop));
        let relay = std::thread::spawn(move || relay(&ends, &own, &ended, seed));
        Ok(Line {
            near,
            far,
            faults,
            stop,
            relay: Some(relay),
        })
    }

    /// Something at the near host.
    pub(crate) fn near<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        inside(&self.near, 0, what)
    }

    /// Something at the far host.
    pub(crate) fn far<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        inside(&self.far, 1, what)
    }

    /// The far host's address.
    pub(crate) fn peer(&self) -> SocketAddr {
        (self.far.address(1), PORT).into()
    }

    /// Where a card of the near host puts frames on the line, past its kernel and the line's faults.
    pub(crate) fn card(&self) -> PacketSocket {
        inside(&self.far, 0, || {
            let found = tickwire_runtime::interface::Interface::find("veth0").expect("it is there");
            PacketSocket::open(found.index(), false).expect("opened")
        })
    }

    /// Starts a peer.
    pub(crate) fn start(&self, kind: Kind, habits: Habits) -> Peer {
        start(&self.far, kind, habits)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(relay) = self.relay.take() {
            let _ = relay.join();
        }
    }
}

/// Does what was left to a card.
fn whole(frame: &mut [u8]) {
    let Some(total) = frame.get(16..18) else { return };
    let end = 14 + usize::from(u16::from_be_bytes([total[0], total[1]]));
    if let Some(packet) = frame.get_mut(14..end)
        && checksum(packet) == Some(Checksum::Partial)
    {
        complete(packet);
    }
}

/// Carries frames until it is told to end.
fn relay(ends: &[PacketSocket; 2], faults: &Faults, stop: &AtomicBool, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut buffer = vec![0; 1 << 16];
    let mut late: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
    while !stop.load(Ordering::Relaxed) {
        let mut idle = true;
        for from in [0, 1] {
            let to = &ends[1 - from];
            while late[from].front().is_some_and(|(due, _)| *due <= Instant::now()) {
                if let Some((_, frame)) = late[from].pop_front() {
                    let _ = to.send(&frame);
                }
            }
            let Ok(Some(length)) = ends[from].recv(&mut buffer) else {
                continue;
            };
            idle = false;
            let frame = &mut buffer[..length];
            whole(frame);
            let of_thousand = |rng: &mut Rng| (rng.next_u64() % 1_000) as u32;
            let is_deaf = from == 1 && faults.deaf.load(Ordering::Relaxed);
            let is_mute = from == 0 && frame.get(23) == Some(&6) && faults.mute.load(Ordering::Relaxed);
            if is_mute {
                faults.muted.fetch_add(1, Ordering::SeqCst);
            }
            if is_deaf || is_mute || of_thousand(&mut rng) < faults.lost.load(Ordering::Relaxed) {
                continue;
            }
            if of_thousand(&mut rng) < faults.late.load(Ordering::Relaxed) {
                let due = Instant::now() + Duration::from_micros(200 + rng.next_u64() % 2_000);
                late[from].push_back((due, frame.to_vec()));
                continue;
            }
            let _ = to.send(frame);
        }
        if idle {
            std::thread::sleep(Duration::from_micros(30));
        }
    }
}

/// Whose TCP the peer's is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Linux,
    /// Linux without the option to acknowledge at once.
    SlowLinux,
    Smoltcp,
}

/// What the peer does.
#[derive(Clone, Copy)]
pub(crate) struct Habits {
    /// It answers every 64 bytes with as many.
    pub(crate) replies: bool,
    /// It reads from the start.
    pub(crate) reads: bool,
}

pub(crate) const REPLY: u64 = 64;

/// A peer, and what it has seen.
pub(crate) struct Peer {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    listens: AtomicBool,
    reads: AtomicBool,
    resets: AtomicBool,
    stop: AtomicBool,
    received: AtomicU64,
    /// The first offset at which a byte was not the stream's, plus one.
    wrong: AtomicU64,
    retransmissions: AtomicU64,
    /// The connection ended: 1 in good order, 2 by a reset.
    ended: AtomicU32,
}

impl Peer {
    pub(crate) fn received(&self) -> u64 {
        let wrong = self.seen.wrong.load(Ordering::SeqCst);
        assert_eq!(
            wrong,
            0,
            "the byte at {} is not the stream's",
            wrong.wrapping_sub(1)
        );
        self.seen.received.load(Ordering::SeqCst)
    }

    /// Segments that it had to send again.
    pub(crate) fn retransmissions(&self) -> u64 {
        self.seen.retransmissions.load(Ordering::SeqCst)
    }

    pub(crate) fn read(&self) {
        self.seen.reads.store(true, Ordering::SeqCst);
    }

    /// It resets the connection.
    pub(crate) fn reset(&self) {
        self.seen.resets.store(true, Ordering::SeqCst);
    }

    pub(crate) fn ended(&self) -> u32 {
        self.seen.ended.load(Ordering::SeqCst)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.seen.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn start(host: &VethPair, kind: Kind, habits: Habits) -> Peer {
    let seen = Arc::new(Seen::default());
    seen.reads.store(habits.reads, Ordering::SeqCst);
    let own = Arc::clone(&seen);
    if kind == Kind::Smoltcp {
        host.ip(1, &["addr", "flush", "dev", "veth0"])
            .expect("no other TCP there");
    }
    let (address, namespace) = (host.address(1), format!("/var/run/netns/{}", host.name(1)));
    let entered = Arc::new(std::sync::Barrier::new(2));
    let waits = Arc::clone(&entered);
    // `enter` borrows the pair, which the thread may outlive.
    let pair: &VethPair = host;
    let thread = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                pair.enter(1).expect("entered");
                // A thread begins in the namespace of the one that started it.
                std::thread::spawn(move || {
                    waits.wait();
                    match kind {
                        Kind::Linux => linux((address, PORT).into(), habits, &own),
                        Kind::SlowLinux => linux_slow((address, PORT).into(), &own),
                        Kind::Smoltcp => smoltcp(address, habits, &own),
                    }
                })
            })
            .join()
            .expect("started")
    });
    entered.wait();
    let began = Instant::now();
    while !seen.listens.load(Ordering::SeqCst) {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "no peer in {namespace}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    Peer {
        seen,
        thread: Some(thread),
    }
}

/// What both kinds do with what comes: how many bytes of replies they owe is told by what came.
fn take(seen: &Seen, bytes: &[u8]) {
    let from = seen.received.load(Ordering::SeqCst);
    for (offset, byte) in (from..).zip(bytes) {
        if *byte != pattern(offset) {
            let _ = seen
                .wrong
                .compare_exchange(0, offset + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }
    seen.received.store(from + bytes.len() as u64, Ordering::SeqCst);
}

/// Linux, which acknowledges at once and may reply.
fn linux(address: SocketAddr, habits: Habits, seen: &Seen) {
    let mut listener = TcpListener::bind(address).expect("bound");
    seen.listens.store(true, Ordering::SeqCst);
    let mut connection: Option<TcpStream> = None;
    let (mut buffer, mut replied) = (vec![0; 1 << 16], 0_u64);
    while !seen.stop.load(Ordering::SeqCst) {
        let Some(peer) = &mut connection else {
            connection = listener.accept().expect("it accepts");
            std::thread::sleep(Duration::from_micros(100));
            continue;
        };
        if seen.resets.swap(false, Ordering::SeqCst) {
            // With bytes unread, the kernel resets.
            connection = None;
            continue;
        }
        if !seen.reads.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        let mut is_idle = true;
        match peer.recv(&mut buffer) {
            Ok(Received::Nothing) => {}
            Ok(Received::Bytes(bytes)) => {
                is_idle = false;
                take(seen, bytes);
            }
            Ok(Received::Closed) => {
                let how = if peer.was_reset() { 2 } else { 1 };
                seen.ended.store(how, Ordering::SeqCst);
            }
            Err(_) => seen.ended.store(2, Ordering::SeqCst),
        }
        let owed = seen.received.load(Ordering::SeqCst) / REPLY * REPLY;
        if habits.replies && replied < owed && seen.ended.load(Ordering::SeqCst) == 0 {
            let reply: Vec<u8> = (replied..owed.min(replied + 1_024)).map(pattern).collect();
            match peer.send(&reply) {
                Ok(()) => replied += reply.len() as u64,
                Err(_) => seen.ended.store(2, Ordering::SeqCst),
            }
            is_idle = false;
        }
        if is_idle {
            // What found no room before.
            if peer.flush().is_err() {
                seen.ended.store(2, Ordering::SeqCst);
            }
            let flight = flight(peer).unwrap_or_default();
            seen.retransmissions
                .store(flight.retransmissions.into(), Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

/// Linux as it is: acknowledgements wait up to 40 ms for an answer that never comes.
fn linux_slow(address: SocketAddr, seen: &Seen) {
    use std::io::Read;
    let listener = std::net::TcpListener::bind(address).expect("bound");
    seen.listens.store(true, Ordering::SeqCst);
    let (mut peer, _) = listener.accept().expect("it accepts");
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = peer.read(&mut buffer) {
        take(seen, &buffer[..length]);
    }
    seen.ended.store(1, Ordering::SeqCst);
}

/// A device of smoltcp's over a packet socket.
struct Frames(PacketSocket);

struct Frame(Vec<u8>);

struct Sending<'a>(&'a PacketSocket);

impl RxToken for Frame {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, what: F) -> R {
        what(&self.0)
    }
}

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, what: F) -> R {
        let mut frame = vec![0; length];
        let result = what(&mut frame);
        let _ = self.0.send(&frame);
        result
    }
}

impl Device for Frames {
    type RxToken<'a> = Frame;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Frame, Sending<'_>)> {
        let mut frame = vec![0; 1 << 16];
        let length = self.0.recv(&mut frame).ok()??;
        frame.truncate(length);
        whole(&mut frame);
        Some((Frame(frame), Sending(&self.0)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Sending<'_>> {
        Some(Sending(&self.0))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1_514;
        capabilities
    }
}

fn smoltcp(address: std::net::Ipv4Addr, habits: Habits, seen: &Seen) {
    let found = tickwire_runtime::interface::Interface::find("veth0").expect("it is there");
    let mut device = Frames(PacketSocket::open(found.index(), true).expect("opened"));
    let now = || {
        let since = Instant::now().duration_since(*START.get_or_init(Instant::now));
        smoltcp::time::Instant::from_micros(since.as_micros() as i64)
    };
    let mut config = Config::new(HardwareAddress::Ethernet(FAR));
    config.random_seed = 7;
    let mut interface = Interface::new(config, &mut device, now());
    let [a, b, c, d] = address.octets();
    interface.update_ip_addrs(|all| {
        let own = IpCidr::new(Ipv4Address::new(a, b, c, d).into(), 24);
        all.push(own).expect("room for an address");
    });
    let buffer = || tcp::SocketBuffer::new(vec![0; 1 << 16]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    socket.listen(PORT).expect("it listens");
    let mut sockets = SocketSet::new(vec![]);
    let handle = sockets.add(socket);
    seen.listens.store(true, Ordering::SeqCst);
    let mut replied = 0_u64;
    while !seen.stop.load(Ordering::SeqCst) {
        interface.poll(now(), &mut device, &mut sockets);
        let socket = sockets.get_mut::<tcp::Socket>(handle);
        if seen.resets.swap(false, Ordering::SeqCst) {
            socket.abort();
        }
        let mut is_idle = true;
        if seen.reads.load(Ordering::SeqCst) && socket.can_recv() {
            is_idle = false;
            let taken = socket.recv(|bytes| {
                take(seen, bytes);
                (bytes.len(), ())
            });
            taken.expect("it can receive");
        }
        let owed = seen.received.load(Ordering::SeqCst) / REPLY * REPLY;
        if habits.replies && replied < owed && socket.can_send() {
            is_idle = false;
            let reply: Vec<u8> = (replied..owed.min(replied + 1_024)).map(pattern).collect();
            replied += socket.send_slice(&reply).unwrap_or(0) as u64;
        }
        if is_idle {
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
