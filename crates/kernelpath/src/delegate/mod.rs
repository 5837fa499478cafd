//! Delegated send: a segment of a TCP connection that the kernel keeps leaves by AF_XDP, past the kernel's
//! network stack, and is booked into the connection afterwards. The kernel retransmits it then, receives, and
//! ends the connection, as if it had sent it; the peer sees an ordinary connection.
//!
//! ```text
//!  launch ─► headers around the bytes ─► ring ─► wire        settle ─► TCP_REPAIR: booked as sent
//!                                 early answer ─► guard's slot ────────► TUN ─► kernel
//! ```
//! **Rules.** A message leaves so only if the connection is established, nothing that was written waits in
//! the kernel, congestion window and the peer's window have room for all of it, no loss is being mended, the
//! next hop's address is known and the send buffer has room; else it is written to the socket, the same
//! bytes, and the reason is counted ([`Reason`]). What was asked of the kernel is asked again when it is used
//! up, and once a second.
//!
//! **Nothing is lost or doubled.** Whatever left is booked before anything else is written. If there is no
//! room for it, the buffer is raised. If it cannot be booked all the same, the same bytes are written to the
//! socket: they get the same numbers, and the peer takes what comes twice for a retransmission; and if the
//! kernel does not take them either, the connection ends. What leaves and is lost on the way
//! the kernel sends again.
//!
//! **The end.** A process that is killed between sending and booking leaves a peer that has bytes which the
//! kernel does not know of, and closing in good order would fail for minutes. So the connection is set to end
//! by a reset when it is closed or the process ends: the peer is told at once, or, in that case, with its
//! next segment. [`Delegate::release`] goes back to an end in good order.
//!
//! **Answers that are early.** The kernel drops a segment that acknowledges what it has not sent, with the
//! data in it. So a program at the interface holds such segments back until the booking is done; see
//! [`tickwire_kernel::guard`].
//!
//! ```no_run
//! use std::time::Duration;
//! use tickwire_kernelpath::delegate::{Delegate, Way};
//! use tickwire_runtime::tcp::TcpStream;
//! let venue = "198.18.0.1:26404".parse()?;
//! let way = Way::towards(venue)?;
//! let mut stream = TcpStream::connect(venue, Duration::from_secs(5))?;
//! let mut delegate = Delegate::new(way, &stream).map_err(|refused| refused.why)?;
//! delegate.send(&mut stream, b"8=FIX.4.4...")?;
//! // Whenever there is nothing else to do:
//! delegate.tend(&mut stream)?;
//! println!("{}", delegate.counts());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arming;
mod counts;
mod guard;
mod lent;
mod stamps;
mod way;

pub use arming::ArmedCounts;
pub use counts::{Counts, Reason};
pub(crate) use guard::Guard;
pub use lent::Loan;
pub use way::Way;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tickwire_kernel::segment::{ETHERNET, Ends, HEADERS_MAX, Numbers, Template};
use tickwire_runtime::NetError;
use tickwire_runtime::clock::monotonic;
use tickwire_runtime::sent::SendStamps;
use tickwire_runtime::tcp::TcpStream;
use tickwire_runtime::trouble::Trouble;
use tickwire_runtime::xdp::XdpError;
use tickwire_runtime::xdp::delegate::{
    ESTABLISHED, Flight, RECOVERING, book, flight, force_send_buffer, neighbour, position, send_buffer,
};

use arming::Arming;
use guard::Watched;
use stamps::Stamps;

/// Bytes of a frame's place in a ring.
const FRAME: usize = 2048;
/// Of a frame with a train of segments: the longest packet of IPv4.
const TRAIN: usize = ETHERNET + u16::MAX as usize;
/// What leaves before it is booked, at most: more than a quoter's burst.
const UNBOOKED_BYTES_MAX: usize = 256 << 10;
/// The send buffer that is asked for, bytes; the kernel makes twice as much of it.
const SEND_BUFFER_BYTES: u32 = 8 << 20;
/// The largest that it is raised to when a booking finds no room.
const SEND_BUFFER_BYTES_MAX: u32 = 256 << 20;
/// What the kernel may take for one small segment that is not acknowledged, bytes.
const SEGMENT_COST: u64 = 4 << 10;
/// What was asked of the kernel is asked again after this time.
const PREPARED_NS: u64 = 1_000_000_000;
/// Or after this time, where it could not be asked.
const AGAIN_NS: u64 = 10_000_000;
/// And after so many bytes of the peer: the window that we tell it shrinks with them.
const PREPARED_BYTES: u64 = 16 << 10;

/// Why a connection cannot be delegated, each with what to do where that is known.
#[derive(Debug, thiserror::Error)]
pub enum DelegateError {
    /// Program, map or ring.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    /// The generator is at fault.
    #[error("the guard's program is wrong: {0}")]
    Program(String),
    /// An address of the other kind.
    #[error("delegated send is for IPv4; {0} is not")]
    NotIpv4(SocketAddr),
    /// There is no way.
    #[error("there is no route to {0}")]
    NoRoute(Ipv4Addr),
    /// The way leaves the machine by something else than Ethernet, or not at all.
    #[error(
        "{to} is reached by {interface}, which is no Ethernet interface: orders to it are sent by the kernel"
    )]
    NotEthernet {
        /// The peer.
        to: Ipv4Addr,
        /// The interface.
        interface: String,
    },
    /// The interface cannot be found.
    #[error(transparent)]
    Interface(#[from] NetError),
    /// The virtual interface by which held answers reach the kernel.
    #[error(
        "cannot make the virtual interface (TUN) by which early answers reach the kernel, for which CAP_NET_ADMIN, /dev/net/tun and a \
         writable /proc/sys are needed: {0}"
    )]
    Injector(io::Error),
    /// The guard is full.
    #[error("the guard of {0} knows as many connections as it can")]
    GuardFull(String),
    /// The connection's timestamps are of a kind that is not known.
    #[error(
        "the connection's timestamps are not milliseconds (the route's feature tcp_usec_ts): orders are sent by the kernel"
    )]
    Stamps,
    /// A system call.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
}

/// A connection that cannot be delegated.
#[derive(Debug)]
pub struct NotDelegated {
    /// The way, for another one.
    pub way: Way,
    /// Why.
    pub why: DelegateError,
}

/// What is learned of a connection once.
struct Begun {
    watched: Watched,
    ends: Ends,
    stamps: Option<Stamps>,
    send_buffer: u32,
}

impl Begun {
    fn new(way: &Way, stream: &TcpStream) -> Result<Begun, DelegateError> {
        let system = |what| move |error| DelegateError::System(what, error);
        let ours = stream.local_addr().map_err(system("ask for our address"))?;
        let (IpAddr::V4(from), IpAddr::V4(to)) = (ours.ip(), stream.peer().ip()) else {
            return Err(DelegateError::NotIpv4(stream.peer()));
        };
        let ends = Ends {
            hardware: [way.hardware(), way.neighbour()],
            addresses: [from.octets(), to.octets()],
            ports: [ours.port(), stream.peer().port()],
        };
        let send_buffer = force_send_buffer(stream, SEND_BUFFER_BYTES)
            .map_err(system("raise the send buffer, for which CAP_NET_ADMIN is needed"))?;
        let now = flight(stream).map_err(system("ask for the state of the connection"))?;
        let stamps = match now.has_stamps {
            true => {
                let learned = Stamps::learn(stream).map_err(system("ask for timestamps"))?;
                Some(learned.ok_or(DelegateError::Stamps)?)
            }
            false => None,
        };
        let watched = Watched::new(way.guard(), &ends);
        let watched = watched.ok_or_else(|| DelegateError::GuardFull(way.interface().to_owned()))?;
        Ok(Begun {
            watched,
            ends,
            stamps,
            send_buffer,
        })
    }
}

/// A connection's delegated sending. One thread sends, receives and tends.
#[derive(Debug)]
pub struct Delegate {
    way: Way,
    watched: Watched,
    ends: Ends,
    template: Template,
    numbers: Base,
    stamps: Option<Stamps>,
    room: Room,
    /// What left and is not booked, and in how many segments.
    unbooked: Vec<u8>,
    unbooked_segments: u32,
    send_buffer: u32,
    frame: Box<[u8; FRAME]>,
    /// Where a train is written as one frame; empty where it cannot leave so.
    train: Box<[u8]>,
    /// When the kernel was last asked for everything, nanoseconds, and what had been received then.
    prepared: (u64, u64),
    counts: Counts,
    /// Where a program may send an order of this connection.
    arming: Option<Box<Arming>>,
    /// Somebody else sends.
    is_lent: bool,
}

/// Where the connection's numbers begin: with the bytes written and read since it was made they give the
/// present ones.
#[derive(Clone, Copy, Default, Debug)]
struct Base {
    send: u32,
    receive: u32,
    receive_end: u32,
    scale: u8,
    /// The kernel has said all of them.
    is_known: bool,
}

/// What may leave before the kernel is asked again.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Why nothing may.
    refused: Option<Reason>,
    bytes: usize,
    segments: usize,
    /// Payload of a segment.
    segment_bytes: usize,
    /// Something was sent since the kernel was asked.
    is_stale: bool,
}

impl Delegate {
    /// Delegates a connection from here on; it may be under way.
    ///
    /// # Errors
    /// [`NotDelegated`]: the connection is as it was, the kernel sends, and the way is for another one.
    pub fn new(way: Way, stream: &TcpStream) -> Result<Delegate, Box<NotDelegated>> {
        let begun = match Begun::new(&way, stream) {
            Ok(begun) => begun,
            Err(why) => return Err(Box::new(NotDelegated { way, why })),
        };
        let train_bytes = if way.takes_trains() { TRAIN } else { 0 };
        let mut delegate = Delegate {
            way,
            train: vec![0; train_bytes].into_boxed_slice(),
            watched: begun.watched,
            template: Template::new(&begun.ends, begun.stamps.is_some()),
            ends: begun.ends,
            numbers: Base::default(),
            stamps: begun.stamps,
            room: Room {
                refused: Some(Reason::State),
                bytes: 0,
                segments: 0,
                segment_bytes: 1,
                is_stale: true,
            },
            unbooked: Vec::with_capacity(UNBOOKED_BYTES_MAX),
            unbooked_segments: 0,
            send_buffer: begun.send_buffer,
            frame: Box::new([0; FRAME]),
            prepared: (0, 0),
            counts: Counts::default(),
            arming: None,
            is_lent: false,
        };
        let prepared = delegate.prepare(stream);
        match prepared.and_then(|()| stream.set_reset_on_close(true)) {
            Ok(()) => Ok(delegate),
            Err(error) => Err(Box::new(NotDelegated {
                way: delegate.way,
                why: DelegateError::System("ask for the connection's numbers", error),
            })),
        }
    }

    /// Books what left, and has the connection end in good order when it is closed: for a session that is
    /// over. Until then more may be sent.
    ///
    /// # Errors
    /// What [`Delegate::settle`] says.
    pub fn release(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        self.disarm(stream)?;
        self.take_back(stream)?;
        stream.set_reset_on_close(false)
    }

    /// The way, for another connection to the same peer. This one is gone, or goes on by the kernel after
    /// [`Delegate::release`].
    pub fn into_way(self) -> Way {
        self.way
    }

    /// Sends all of `bytes`, and books them: [`Delegate::launch`], then [`Delegate::settle`].
    ///
    /// # Errors
    /// As [`TcpStream::send`].
    #[inline]
    pub fn send(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        self.launch(stream, bytes)?;
        self.settle(stream)
    }

    /// Puts `bytes` on the wire, as one segment or a train of them that leaves by one call;
    /// [`Delegate::settle`] is to follow at once. Several messages may be launched before. What cannot leave
    /// so is written to the socket.
    ///
    /// # Errors
    /// As [`TcpStream::send`]: the connection is lost.
    pub fn launch(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        if self.is_armed() {
            self.end_arming(stream)?;
        }
        if let Some(reason) = self.refusal(stream, bytes.len()) {
            return self.send_by_kernel(stream, bytes, reason);
        }
        let mut numbers = self.numbers(stream, self.next_seq(stream));
        numbers.seq = numbers.seq.wrapping_add(self.unbooked.len() as u32);
        if self.unbooked.is_empty() {
            self.watched.begin(numbers.seq);
        }
        let (mut sent, mut segments) = self.launch_trains(&mut numbers, bytes);
        for payload in bytes[sent..].chunks(self.room.segment_bytes) {
            let length = self.template.write(&mut self.frame[..], &numbers, payload);
            let Some(frame) = length.and_then(|length| self.frame.get(..length)) else {
                break;
            };
            if !self.way.put(frame) {
                break;
            }
            numbers.seq = numbers.seq.wrapping_add(payload.len() as u32);
            sent += payload.len();
            segments += 1;
        }
        // What does not leave now is sent by the kernel when nothing acknowledges it.
        if !self.way.kick(segments) {
            self.counts.not_started += 1;
        }
        self.unbooked.extend_from_slice(&bytes[..sent]);
        self.unbooked_segments += segments;
        self.room.bytes -= sent.min(self.room.bytes);
        self.room.segments -= (segments as usize).min(self.room.segments);
        self.counts.segments += u64::from(segments);
        if sent == 0 && self.unbooked.is_empty() {
            // Nothing has left: there is nothing to guard.
            self.watched.end();
        }
        if sent < bytes.len() {
            return self.send_by_kernel(stream, &bytes[sent..], Reason::Ring);
        }
        self.counts.delegated += 1;
        Ok(())
    }

    /// Writes a message as the first segment that [`Delegate::launch`] would put on the wire, into the same
    /// memory, and leaves it there: nothing leaves, nothing is counted, and the kernel is not asked. Does
    /// nothing while the connection is lent, something is armed, or bytes that have left wait to be booked.
    #[inline]
    pub fn rehearse(&mut self, stream: &TcpStream, bytes: &[u8]) {
        if self.is_lent || self.is_armed() || !self.unbooked.is_empty() {
            return;
        }
        let numbers = self.numbers(stream, self.next_seq(stream));
        let payload = &bytes[..bytes.len().min(self.room.segment_bytes)];
        std::hint::black_box(self.template.write(&mut self.frame[..], &numbers, payload));
    }

    /// Sends what is longer than a segment as frames with many, where the way takes them; how many bytes and
    /// segments have left so.
    #[inline]
    fn launch_trains(&mut self, numbers: &mut Numbers, bytes: &[u8]) -> (usize, u32) {
        let (segment, headers) = (self.room.segment_bytes, self.template.headers());
        let (mut sent, mut segments) = (0, 0);
        if bytes.len() <= segment || !self.way.takes_trains() {
            return (sent, segments);
        }
        let whole = (TRAIN - headers) / segment * segment;
        for payload in bytes.chunks(whole).filter(|payload| payload.len() > segment) {
            let length = self.template.write_train(&mut self.train, numbers, payload);
            let Some(frame) = length.and_then(|length| self.train.get(..length)) else {
                break;
            };
            if !self.way.put_train(frame, headers, segment) {
                break;
            }
            numbers.seq = numbers.seq.wrapping_add(payload.len() as u32);
            sent += payload.len();
            segments += payload.len().div_ceil(segment) as u32;
            self.counts.trains += 1;
        }
        (sent, segments)
    }

    /// Why a message of so many bytes cannot leave past the kernel; `None` if it can.
    #[inline]
    fn refusal(&mut self, stream: &TcpStream, bytes: usize) -> Option<Reason> {
        if stream.has_unsent() {
            return Some(Reason::Unsent);
        }
        if bytes > UNBOOKED_BYTES_MAX - self.unbooked.len() {
            return Some(Reason::Long);
        }
        let segments = bytes.div_ceil(self.room.segment_bytes);
        let has_room =
            |room: &Room| room.refused.is_none() && room.bytes >= bytes && room.segments >= segments;
        if has_room(&self.room) {
            return None;
        }
        self.look(stream);
        if self.room.refused.is_some() {
            return self.room.refused;
        }
        match (self.room.bytes >= bytes, has_room(&self.room)) {
            (_, true) => None,
            (false, _) => Some(Reason::PeerWindow),
            (true, false) => Some(Reason::CongestionWindow),
        }
    }

    /// The numbers of a segment that begins with `seq`.
    #[inline]
    fn numbers(&self, stream: &TcpStream, seq: u32) -> Numbers {
        let ack = self.numbers.receive.wrapping_add(stream.received() as u32);
        let room = self.numbers.receive_end.wrapping_sub(ack);
        let room = if room.cast_signed() < 0 { 0 } else { room };
        let stamps = match &self.stamps {
            Some(stamps) => (stamps.now(), self.watched.stamp()),
            None => (0, 0),
        };
        Numbers {
            seq,
            ack,
            window: u16::try_from(room >> self.numbers.scale).unwrap_or(u16::MAX),
            stamps,
        }
    }

    /// Writes to the socket; what left before is booked first.
    #[cold]
    fn send_by_kernel(&mut self, stream: &mut TcpStream, bytes: &[u8], reason: Reason) -> io::Result<()> {
        if self.is_lent {
            return Err(io::Error::other(
                "the connection is lent: it has to be taken back first",
            ));
        }
        self.settle(stream)?;
        self.counts.ordinary[reason as usize] += 1;
        // Perhaps not all of it is sent at once: the kernel is asked before anything passes it again.
        self.room.refused = Some(Reason::Unsent);
        self.room.is_stale = true;
        stream.send(bytes)
    }

    /// Books what has left, by one call, and gives the kernel what was answered meanwhile.
    ///
    /// # Errors
    /// The connection is lost: what the kernel says.
    #[inline]
    pub fn settle(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        if self.unbooked.is_empty() {
            return Ok(());
        }
        let booked = self.book_all(stream);
        match self.is_lent {
            true => self.watched.go_on(self.next_seq(stream)),
            false => self.watched.end(),
        }
        self.unbooked.clear();
        self.unbooked_segments = 0;
        self.room.is_stale = true;
        booked
    }

    fn book_all(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let mut done = 0;
        self.counts.booked += 1;
        while done < self.unbooked.len() {
            match book(stream, &self.unbooked[done..]) {
                Ok(booked) => done += booked,
                Err(error) => {
                    self.counts.booked_again += 1;
                    let is_full = matches!(Trouble::of(&error), Trouble::WouldBlock | Trouble::Resource);
                    let is_raised = is_full && self.raise_buffer(stream);
                    let is_refused = error.raw_os_error() == Some(PERMISSION);
                    if !(is_full || is_refused) {
                        return Err(error);
                    }
                    if !is_raised {
                        return self.write_again(stream, done);
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes what cannot be booked: the same bytes with the same numbers, which the peer has already. All of
    /// it has to be taken: acknowledgements of what the kernel does not know of free nothing.
    #[cold]
    fn write_again(&mut self, stream: &mut TcpStream, done: usize) -> io::Result<()> {
        self.counts.written_twice += 1;
        stream.send(&self.unbooked[done..])?;
        match stream.has_unsent() {
            true => Err(io::Error::new(
                io::ErrorKind::OutOfMemory,
                "the kernel has no room for what was sent past it: the connection cannot go on",
            )),
            false => Ok(()),
        }
    }

    /// Doubles the send buffer; `false` if it cannot grow.
    #[cold]
    fn raise_buffer(&mut self, stream: &TcpStream) -> bool {
        let before = send_buffer(stream).unwrap_or(SEND_BUFFER_BYTES_MAX);
        if before >= SEND_BUFFER_BYTES_MAX {
            return false;
        }
        // The kernel doubles what it is told.
        self.send_buffer = force_send_buffer(stream, before.max(SEND_BUFFER_BYTES)).unwrap_or(before);
        self.send_buffer > before
    }

    /// What the connection has room for now.
    fn look(&mut self, stream: &TcpStream) {
        let Ok(now) = flight(stream) else {
            self.room.refused = Some(Reason::State);
            return;
        };
        self.room = self.room_of(&now);
        self.counts.retransmissions = now.retransmissions.into();
    }

    fn room_of(&self, now: &Flight) -> Room {
        let headers = self.template.headers().max(HEADERS_MAX);
        let in_flight = u64::from(now.outstanding_bytes) + self.unbooked.len() as u64;
        let segments = u64::from(now.unacknowledged) + u64::from(self.unbooked_segments);
        let segment_bytes = (now.segment_bytes as usize).clamp(1, FRAME - headers);
        let refused = if !self.watched.is_guarded() {
            Some(Reason::Guard)
        } else if !self.way.is_resolved() {
            Some(Reason::Neighbour)
        } else if now.state != ESTABLISHED || !self.numbers.is_known {
            Some(Reason::State)
        } else if now.unsent_bytes > 0 {
            Some(Reason::Unsent)
        } else if now.congestion >= RECOVERING {
            Some(Reason::Loss)
        } else if 2 * in_flight + (segments + 1) * SEGMENT_COST > u64::from(self.send_buffer) {
            Some(Reason::Buffer)
        } else if self.is_lent {
            Some(Reason::Lent)
        } else {
            None
        };
        Room {
            refused,
            bytes: u64::from(now.peer_window).saturating_sub(in_flight) as usize,
            segments: u64::from(now.congestion_window).saturating_sub(segments) as usize,
            segment_bytes,
            is_stale: false,
        }
    }

    /// To be called when there is nothing else to do, at least once a second: books what was forgotten, asks
    /// the kernel what it has room for once something was sent, and for everything else once a second.
    ///
    /// # Errors
    /// As [`Delegate::settle`].
    #[inline]
    pub fn tend(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        self.settle(stream)?;
        if let Some(arming) = &self.arming
            && arming.has_happened()
        {
            self.end_arming(stream)?;
        }
        let (at, received) = self.prepared;
        if monotonic().0 >= at + PREPARED_NS || stream.received() - received >= PREPARED_BYTES {
            self.tend_all(stream);
            return self.keep_arming(stream);
        }
        if self.room.is_stale && !stream.has_unsent() {
            self.look(stream);
        }
        Ok(())
    }

    #[cold]
    fn tend_all(&mut self, stream: &TcpStream) {
        if let Some(stamps) = &mut self.stamps {
            stamps.follow(stream);
        }
        if self.prepare(stream).is_err() {
            // Nothing is sent with numbers of which nothing is known.
            self.numbers.is_known = false;
            self.room.refused = Some(Reason::State);
            self.prepared = (monotonic().0, stream.received());
        }
    }

    /// Asks for numbers, windows and the next hop's address; nothing is unbooked.
    fn prepare(&mut self, stream: &TcpStream) -> io::Result<()> {
        let hop = neighbour(self.way.interface(), self.way.hop())?;
        self.way.set_neighbour(hop);
        if let Some(hardware) = hop.filter(|hop| *hop != self.ends.hardware[1]) {
            self.ends.hardware[1] = hardware;
            self.template = Template::new(&self.ends, self.stamps.is_some());
        }
        let now = flight(stream)?;
        if now.unsent_bytes > 0 {
            // Under repair the kernel would take what waits for sent, if an acknowledgement came just then.
            self.room = self.room_of(&now);
            self.prepared = (
                monotonic().0.saturating_sub(PREPARED_NS - AGAIN_NS),
                stream.received(),
            );
            return Ok(());
        }
        let found = position(stream)?;
        let (taken, received) = (stream.taken() as u32, stream.received() as u32);
        self.numbers = Base {
            send: found.send.wrapping_sub(taken),
            receive: found.receive.wrapping_sub(found.unread).wrapping_sub(received),
            receive_end: found.receive_end,
            scale: now.receive_scale,
            is_known: true,
        };
        self.room = self.room_of(&now);
        self.prepared = (monotonic().0, stream.received());
        Ok(())
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        let [held, no_room, let_go] = self.watched.counts();
        Counts {
            held,
            no_room,
            let_go,
            injected: self.watched.injected,
            not_injected: self.watched.refused,
            pre_armed: self.armed_counts(),
            ..self.counts
        }
    }

    /// When segments leave: stamps of those that leave one by one from now on, whose numbers are told by
    /// [`Delegate::stamped`]. `None` where they leave by AF_XDP, of which only cards could tell, which are
    /// not asked; a train that leaves as one frame has none either.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn stamps(&mut self) -> io::Result<Option<SendStamps>> {
        self.way.stamps()
    }

    /// Segments that have left one by one since they are stamped, modulo 2^32. `None` where none are, and
    /// from the first one on that the interface did not take: whether it has a number is not known.
    #[inline]
    pub fn stamped(&self) -> Option<u32> {
        self.way.stamped()
    }

    /// How segments leave, for a line in a log.
    pub fn in_use(&self) -> String {
        self.way.in_use()
    }
}

/// `EPERM`: the rights were given up since.
const PERMISSION: i32 = 1;
