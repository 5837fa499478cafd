//! Datagrams: multicast in with two timestamps, multicast out, and plain unicast for recovery requests.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::clock::tsc;
use crate::interface::Interface;
use crate::stamp::RxStamp;
use crate::trouble::Trouble;
use crate::{NetError, sys};

/// The largest payload of a UDP datagram over IPv4: a receive buffer of this size is never too small.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;

/// How the kernel's receive time is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stamping {
    /// Not at all: `recv`, the least work.
    Off,
    /// With every datagram, and the drop count too: `recvmsg`. Measured on a virtual machine (best of 60
    /// bursts): 0.98 µs per datagram of 100 bytes instead of 0.68, and each look at an empty socket takes
    /// longer as well.
    #[default]
    Kernel,
    /// On demand, of the last datagram: `recv`, and [`MulticastReceiver::last_kernel_ns`] afterwards, where
    /// it delays nothing (after the order is out).
    OnDemand,
}

/// What to receive, where.
#[derive(Clone, Debug)]
pub struct MulticastConfig {
    /// The group and port.
    pub group: SocketAddrV4,
    /// The interface to join on.
    pub interface: Interface,
    /// Accept this sender only (source-specific multicast); `None` accepts any.
    pub source: Option<Ipv4Addr>,
    /// The caller's number for the line (A = 0, B = 1, ...), given back by [`MulticastReceiver::line`].
    pub line: u8,
    /// Timestamps.
    pub stamping: Stamping,
    /// Receive buffer wanted, in bytes. Beyond `net.core.rmem_max` it takes `CAP_NET_ADMIN`; less is granted
    /// otherwise, see [`MulticastReceiver::receive_buffer_bytes`].
    pub receive_buffer_bytes: u32,
    /// How many datagrams one system call takes at most, up to [`BATCH_MAX`]; 0 and 1: each is taken by a
    /// call of its own. Not with [`Stamping::OnDemand`], which knows the stamp of the last one only: it takes
    /// one. Measured on a virtual machine, bursts of 16 datagrams of 100 bytes, one call each and 16 in one:
    /// 699 and 595 ns a datagram without stamps, 1,032 and 703 with [`Stamping::Kernel`].
    pub batch: u32,
}

/// The largest [`MulticastConfig::batch`].
pub const BATCH_MAX: u32 = 64;

impl MulticastConfig {
    /// Any sender, line 0, kernel timestamps, a buffer of 16 MiB, one datagram a call.
    pub fn new(group: SocketAddrV4, interface: Interface) -> MulticastConfig {
        MulticastConfig {
            group,
            interface,
            source: None,
            line: 0,
            stamping: Stamping::Kernel,
            receive_buffer_bytes: 16 << 20,
            batch: 1,
        }
    }

    /// With another line number.
    pub fn line(self, line: u8) -> MulticastConfig {
        MulticastConfig { line, ..self }
    }

    /// With or without kernel timestamps.
    pub fn stamping(self, stamping: Stamping) -> MulticastConfig {
        MulticastConfig { stamping, ..self }
    }
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'b> {
    /// The payload; only its beginning when `truncated`.
    pub bytes: &'b [u8],
    /// When it was where: in user space right after the receive call returned, and in the kernel's stack, the
    /// latter with [`Stamping::Kernel`] only.
    pub stamp: RxStamp,
    /// How many datagrams the kernel dropped for lack of buffer since the previous one; 0 unless
    /// [`Stamping::Kernel`].
    pub drops: u32,
    /// Whether the datagram was longer than the buffer.
    pub truncated: bool,
}

/// One multicast group on one interface.
#[derive(Debug)]
pub struct MulticastReceiver {
    socket: OwnedFd,
    config: MulticastConfig,
    receive_buffer_bytes: u32,
    /// Whoever runs the socket says how many datagrams it dropped.
    tells_drops: bool,
    /// The kernel's drop count as last told, which wraps around.
    drops_told: u32,
    /// Where several datagrams come by one call.
    batch: Option<Batch>,
}

/// Datagrams that one call took, and that are given one by one.
#[derive(Debug)]
struct Batch {
    messages: sys::MessageBatch,
    /// Those from `next` to `taken` are to be given.
    next: usize,
    taken: usize,
    /// When the call returned.
    tsc: u64,
}

impl MulticastReceiver {
    /// Joins the group. Several receivers on one machine may share a group and port; each gets every
    /// datagram.
    ///
    /// # Errors
    /// One sentence each for: not a group, port in use, no route, too many groups, not permitted.
    pub fn join(config: MulticastConfig) -> Result<MulticastReceiver, NetError> {
        let group = config.group;
        let name = config.interface.name();
        if !group.ip().is_multicast() {
            return Err(NetError::NotMulticast { group: *group.ip() });
        }
        let open = |source| NetError::Io {
            action: "open a UDP socket",
            address: group.into(),
            source,
        };
        let join = |source| NetError::multicast("join a multicast group", group, name, source);
        let socket = sys::udp_socket().map_err(open)?;
        let fd = socket.as_fd();
        sys::set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).map_err(open)?;
        // Without this, a group joined by any other socket of the machine is delivered here too.
        sys::set_option(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0).map_err(open)?;
        match config.stamping {
            Stamping::Off => {}
            Stamping::Kernel => {
                sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).map_err(open)?;
                count_drops(fd).map_err(open)?;
            }
            // The first question turns stamping on; there is no answer to it yet.
            Stamping::OnDemand => drop(sys::last_stamp(fd)),
        }
        let receive_buffer_bytes = grow_receive_buffer(fd, config.receive_buffer_bytes).map_err(open)?;
        // Bound to the group, not to any address: other groups on the port stay out.
        sys::bind(fd, group).map_err(|source| NetError::bind("UDP", group.into(), source))?;
        join_group(fd, &config).map_err(join)?;
        let tells_drops = memory(fd).is_ok();
        let is_batched = config.batch > 1 && config.stamping != Stamping::OnDemand;
        let batch = is_batched.then(|| Batch {
            messages: sys::MessageBatch::new(config.batch.min(BATCH_MAX) as usize),
            next: 0,
            taken: 0,
            tsc: 0,
        });
        Ok(MulticastReceiver {
            socket,
            config,
            receive_buffer_bytes,
            tells_drops,
            drops_told: 0,
            batch,
        })
    }

    /// The next datagram, `None` if there is none at the moment. Never waits. With a batch it may be one that
    /// an earlier call took: it is stamped with the end of that call, and lies in memory of the receiver's
    /// own instead of `buf`.
    ///
    /// # Errors
    /// What the kernel says, to be counted and tried again: see [`crate::trouble`].
    #[inline]
    pub fn recv<'b>(&'b mut self, buf: &'b mut [u8]) -> io::Result<Option<Datagram<'b>>> {
        if self.batch.is_some() {
            return self.recv_batched();
        }
        match self.config.stamping {
            Stamping::Off | Stamping::OnDemand => recv_plain(self.socket.as_fd(), buf),
            Stamping::Kernel => self.recv_stamped(buf),
        }
    }

    fn recv_batched(&mut self) -> io::Result<Option<Datagram<'_>>> {
        let Some(batch) = &mut self.batch else {
            return Ok(None);
        };
        if batch.next == batch.taken {
            // One that was not full has emptied the socket: there is nothing for now, which costs no call.
            let was_short = (1..batch.messages.most()).contains(&batch.taken);
            (batch.next, batch.taken) = (0, 0);
            if was_short {
                return Ok(None);
            }
            let stamped = self.config.stamping == Stamping::Kernel;
            match batch.messages.receive(self.socket.as_fd(), stamped) {
                Ok(taken) => (batch.taken, batch.tsc) = (taken, tsc()),
                Err(error) => return none_if_nothing(error),
            }
        }
        let (bytes, len, control) = batch.messages.get(batch.next);
        batch.next += 1;
        let stamps = parse_control(control);
        let told = stamps.drops_total.unwrap_or(self.drops_told);
        let drops = told.wrapping_sub(self.drops_told);
        self.drops_told = told;
        Ok(Some(Datagram {
            bytes,
            stamp: RxStamp {
                kernel_ns: stamps.kernel_ns,
                ..RxStamp::here(batch.tsc)
            },
            drops,
            truncated: len > bytes.len(),
        }))
    }

    /// Whether an earlier call took datagrams that were not given yet: the kernel no longer says that there
    /// is input for them.
    #[inline]
    pub fn holds_more(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.next < batch.taken)
    }

    #[inline]
    fn recv_stamped<'b>(&mut self, buf: &'b mut [u8]) -> io::Result<Option<Datagram<'b>>> {
        let mut control = sys::ControlBuffer([0; 128]);
        match sys::recv_message(self.socket.as_fd(), buf, &mut control) {
            Ok(header) => Ok(Some(self.stamped(buf, &header, &control))),
            Err(error) => none_if_nothing(error),
        }
    }

    /// The next datagram with its sender, `None` if there is none at the moment. Stamps and drops as with
    /// [`MulticastReceiver::recv`], for [`Stamping::Kernel`]. Never waits.
    ///
    /// # Errors
    /// As [`MulticastReceiver::recv`].
    #[inline]
    pub fn recv_from<'b>(&mut self, buf: &'b mut [u8]) -> io::Result<Option<(Datagram<'b>, SocketAddrV4)>> {
        let mut control = sys::ControlBuffer([0; 128]);
        match sys::recv_message_from(self.socket.as_fd(), buf, &mut control) {
            Ok((header, from)) => Ok(Some((self.stamped(buf, &header, &control), from))),
            Err(error) => none_if_nothing(error),
        }
    }

    #[inline]
    fn stamped<'b>(
        &mut self,
        buf: &'b [u8],
        header: &sys::MessageHeader,
        control: &sys::ControlBuffer,
    ) -> Datagram<'b> {
        let tsc = tsc();
        let stamps = parse_control(&control.0[..header.control_len]);
        let told = stamps.drops_total.unwrap_or(self.drops_told);
        let drops = told.wrapping_sub(self.drops_told);
        self.drops_told = told;
        Datagram {
            bytes: &buf[..header.len.min(buf.len())],
            stamp: RxStamp {
                kernel_ns: stamps.kernel_ns,
                ..RxStamp::here(tsc)
            },
            drops,
            truncated: header.len > buf.len(),
        }
    }

    /// When the kernel received the last datagram, nanoseconds of `CLOCK_REALTIME`; for
    /// [`Stamping::OnDemand`]. A system call.
    pub fn last_kernel_ns(&self) -> Option<NonZeroU64> {
        match self.config.stamping {
            Stamping::OnDemand => sys::last_stamp(self.socket.as_fd())
                .ok()
                .and_then(NonZeroU64::new),
            Stamping::Off | Stamping::Kernel => None,
        }
    }

    /// The caller's number for the line.
    pub fn line(&self) -> u8 {
        self.config.line
    }

    /// The group and port.
    pub fn group(&self) -> SocketAddrV4 {
        self.config.group
    }

    /// The receive buffer granted, in bytes of payload and bookkeeping: the kernel doubles what it is asked
    /// for.
    pub fn receive_buffer_bytes(&self) -> u32 {
        self.receive_buffer_bytes
    }

    /// A sentence when the kernel granted less receive buffer than asked for.
    pub fn buffer_warning(&self) -> Option<String> {
        let (wanted, granted) = (self.config.receive_buffer_bytes, self.receive_buffer_bytes / 2);
        (granted < wanted).then(|| {
            format!(
                "the receive buffer of {} is {granted} bytes instead of {wanted}: raise it with `sysctl \
                 net.core.rmem_max={wanted}`",
                self.config.group
            )
        })
    }

    /// A sentence when nobody says how many datagrams were dropped, which is so where the socket is not the
    /// kernel's (Onload).
    pub fn drops_warning(&self) -> Option<String> {
        (!self.tells_drops).then(|| {
            format!(
                "the socket of {} does not say how many datagrams it drops: they are counted as 0, and show as gaps",
                self.config.group
            )
        })
    }

    /// Everything there is to say about the socket at the start.
    pub fn warnings(&self) -> Vec<String> {
        [self.buffer_warning(), self.drops_warning()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Datagrams the kernel dropped for lack of buffer since the socket was opened, with any stamping; 0
    /// where [`MulticastReceiver::drops_warning`] says that nobody knows. A system call; not for the hot
    /// path.
    pub fn kernel_drops(&self) -> u32 {
        memory(self.socket.as_fd()).map_or(0, sys::SocketMemory::drops)
    }
}

fn memory(fd: BorrowedFd<'_>) -> io::Result<sys::SocketMemory> {
    sys::get_option(fd, libc::SOL_SOCKET, libc::SO_MEMINFO)
}

/// Has every datagram say how many were dropped before it, where the socket can.
fn count_drops(fd: BorrowedFd<'_>) -> io::Result<()> {
    match sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1) {
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(()),
        counted => counted,
    }
}

impl AsFd for MulticastReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Asks for a receive buffer, beyond the system's limit where permitted; what was granted.
fn grow_receive_buffer(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<u32> {
    let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
    if sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wanted).is_err() {
        sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, wanted)?;
    }
    sys::get_option::<i32>(fd, libc::SOL_SOCKET, libc::SO_RCVBUF).map(|granted| granted.max(0) as u32)
}

fn join_group(fd: BorrowedFd<'_>, config: &MulticastConfig) -> io::Result<()> {
    let group = config.group.ip().octets();
    let Some(source) = config.source else {
        let index = config.interface.index() as i32;
        let membership = sys::GroupOnInterface {
            group,
            address: [0; 4],
            index,
        };
        return sys::set_option(fd, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, membership);
    };
    // This option names the interface by address only.
    let interface = config
        .interface
        .address()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EADDRNOTAVAIL))?
        .octets();
    let membership = sys::GroupFromSource {
        group,
        interface,
        source: source.octets(),
    };
    sys::set_option(fd, libc::IPPROTO_IP, libc::IP_ADD_SOURCE_MEMBERSHIP, membership)
}

#[inline]
fn recv_plain<'b>(fd: BorrowedFd<'_>, buf: &'b mut [u8]) -> io::Result<Option<Datagram<'b>>> {
    let len = match sys::recv(fd, buf) {
        Ok(len) => len,
        Err(error) => return none_if_nothing(error),
    };
    let tsc = tsc();
    let truncated = len > buf.len();
    Ok(Some(Datagram {
        bytes: &buf[..len.min(buf.len())],
        stamp: RxStamp::here(tsc),
        drops: 0,
        truncated,
    }))
}

/// Nothing there, or interrupted: no datagram now, perhaps later.
fn none_if_nothing<T>(error: io::Error) -> io::Result<Option<T>> {
    match Trouble::of(&error) {
        Trouble::WouldBlock => Ok(None),
        _ => Err(error),
    }
}

/// What the control messages of a datagram say.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct ControlStamps {
    kernel_ns: Option<NonZeroU64>,
    drops_total: Option<u32>,
}

/// Walks control messages: `cmsghdr { len: usize, level: i32, type: i32 }`, data, padding to a multiple of 8
/// (cmsg(3)). `each` is told level, type and data, and of nothing behind one that is cut short.
#[inline]
pub(crate) fn each_control(mut control: &[u8], mut each: impl FnMut(i32, i32, &[u8])) {
    const HEADER: usize = 16;
    while let Some((header, _)) = control.split_first_chunk::<HEADER>() {
        let len = usize::from_ne_bytes(header[..8].try_into().expect("8 bytes"));
        let level = i32::from_ne_bytes(header[8..12].try_into().expect("4 bytes"));
        let kind = i32::from_ne_bytes(header[12..].try_into().expect("4 bytes"));
        let Some(data) = control.get(HEADER..len) else {
            return;
        };
        each(level, kind, data);
        control = control.get(len.next_multiple_of(8)..).unwrap_or(&[]);
    }
}

#[inline]
fn parse_control(control: &[u8]) -> ControlStamps {
    let mut stamps = ControlStamps::default();
    each_control(control, |level, kind, data| match (level, kind) {
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => stamps.kernel_ns = timespec_ns(data),
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
            stamps.drops_total = data.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        }
        _ => {}
    });
    stamps
}

/// The kernel's receive time among control messages.
#[inline]
pub(crate) fn control_stamp(control: &[u8]) -> Option<NonZeroU64> {
    parse_control(control).kernel_ns
}

/// A `timespec` of two 64-bit words in nanoseconds.
pub(crate) fn timespec_ns(data: &[u8]) -> Option<NonZeroU64> {
    let (seconds, rest) = data.split_first_chunk::<8>()?;
    let (nanos, _) = rest.split_first_chunk::<8>()?;
    let seconds = u64::from_ne_bytes(*seconds).checked_mul(1_000_000_000)?;
    NonZeroU64::new(seconds.checked_add(u64::from_ne_bytes(*nanos))?)
}

/// Sends to one multicast group through one interface.
#[derive(Debug)]
pub struct MulticastSender {
    socket: UdpSocket,
    group: SocketAddrV4,
}

impl MulticastSender {
    /// A sender. `ttl` is how many networks a datagram may cross (1: this one only); receivers on this
    /// machine get it too.
    ///
    /// # Errors
    /// One sentence each for: not a group, no route, interface without address, not permitted.
    pub fn open(group: SocketAddrV4, interface: &Interface, ttl: u8) -> Result<MulticastSender, NetError> {
        if !group.ip().is_multicast() {
            return Err(NetError::NotMulticast { group: *group.ip() });
        }
        let name = interface.name();
        let address = interface.address().ok_or_else(|| NetError::NoAddress {
            interface: name.to_owned(),
        })?;
        let failed = |source| NetError::multicast("send to a multicast group", group, name, source);
        let socket = sys::udp_socket().map_err(failed)?;
        let via = sys::GroupOnInterface {
            group: [0; 4],
            address: address.octets(),
            index: interface.index() as i32,
        };
        sys::set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_IF, via).map_err(failed)?;
        sys::set_option(
            socket.as_fd(),
            libc::IPPROTO_IP,
            libc::IP_MULTICAST_TTL,
            i32::from(ttl),
        )
        .map_err(failed)?;
        sys::set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP, 1).map_err(failed)?;
        let socket = UdpSocket::from(socket);
        // Connected: the kernel looks the route up once, not for every datagram, and a missing one is found
        // here.
        sys::connect_udp(&socket, group).map_err(failed)?;
        Ok(MulticastSender { socket, group })
    }

    /// Sends one datagram, waiting while the interface's queue is full.
    ///
    /// # Errors
    /// What the kernel says; the datagram is lost, as on any network, and the next one may go.
    #[inline]
    pub fn send(&self, payload: &[u8]) -> io::Result<()> {
        match sys::send(&self.socket, payload) {
            Ok(_) => Ok(()),
            Err(error) => self.send_again(payload, &error),
        }
    }

    /// A signal came, or the kernel told of an earlier datagram that found no listener instead of sending
    /// this one.
    #[cold]
    fn send_again(&self, payload: &[u8], error: &io::Error) -> io::Result<()> {
        /// A bound, so that what is told again and again is an error.
        const AGAIN: usize = 8;
        let mut last = io::Error::from(error.kind());
        if let Some(number) = error.raw_os_error() {
            last = io::Error::from_raw_os_error(number);
        }
        for _ in 0..AGAIN {
            if !matches!(Trouble::of(&last), Trouble::WouldBlock | Trouble::PeerGone) {
                return Err(last);
            }
            match sys::send(&self.socket, payload) {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The group and port.
    pub fn group(&self) -> SocketAddrV4 {
        self.group
    }

    /// The address and port datagrams come from.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// A unicast socket: a retransmission server, or its client.
#[derive(Debug)]
pub struct UdpEndpoint {
    socket: UdpSocket,
}

impl UdpEndpoint {
    /// Binds `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// One sentence each for: port in use, address not of this machine, not permitted.
    pub fn bind(address: SocketAddrV4) -> Result<UdpEndpoint, NetError> {
        let bind = |source| NetError::bind("UDP", address.into(), source);
        let socket = sys::udp_bound(address).map_err(bind)?;
        grow_receive_buffer(socket.as_fd(), 4 << 20).map_err(bind)?;
        Ok(UdpEndpoint { socket })
    }

    /// The next datagram and its sender, `None` if there is none at the moment. Never waits.
    ///
    /// # Errors
    /// What the kernel says, to be counted and tried again: see [`crate::trouble`].
    pub fn recv_from<'b>(&mut self, buf: &'b mut [u8]) -> io::Result<Option<(Datagram<'b>, SocketAddr)>> {
        let (len, from) = match sys::recv_from(&self.socket, buf) {
            Ok(received) => received,
            Err(error) => return none_if_nothing(error),
        };
        let datagram = Datagram {
            bytes: &buf[..len],
            stamp: RxStamp::here(tsc()),
            drops: 0,
            truncated: false,
        };
        Ok(Some((datagram, from)))
    }

    /// Sends one datagram; `false` when the socket's buffer is full, in which case it is lost as datagrams
    /// may be.
    ///
    /// # Errors
    /// What the kernel says; it may be about this address alone (`EINVAL` for port 0), and says nothing about
    /// the next datagram.
    pub fn send_to(&mut self, payload: &[u8], to: SocketAddr) -> io::Result<bool> {
        match sys::send_to(&self.socket, payload, to) {
            Ok(_) => Ok(true),
            Err(error) => none_if_nothing::<()>(error).map(|_| false),
        }
    }

    /// The address and port bound.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl AsFd for UdpEndpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cmsg(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    #[test]
    fn control_messages_give_time_and_drops_in_any_order_among_strangers() {
        let time: Vec<u8> = [1_700_000_000u64, 123_456_789]
            .iter()
            .flat_map(|v| v.to_ne_bytes())
            .collect();
        let time = cmsg(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time);
        let drops = cmsg(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &7u32.to_ne_bytes());
        let stranger = cmsg(libc::IPPROTO_IP, libc::IP_PKTINFO, &[1; 12]);
        let expected = ControlStamps {
            kernel_ns: NonZeroU64::new(1_700_000_000_123_456_789),
            drops_total: Some(7),
        };
        assert_eq!(
            parse_control(&[time.clone(), stranger.clone(), drops.clone()].concat()),
            expected
        );
        assert_eq!(parse_control(&[drops, stranger, time].concat()), expected);
    }

    #[test]
    fn inconsistent_control_messages_end_the_walk() {
        assert_eq!(parse_control(&[]), ControlStamps::default());
        assert_eq!(parse_control(&[0; 64]), ControlStamps::default());
        assert_eq!(parse_control(&[0xff; 64]), ControlStamps::default());
        let short = cmsg(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &[1, 2]);
        assert_eq!(parse_control(&short), ControlStamps::default());
    }
}
