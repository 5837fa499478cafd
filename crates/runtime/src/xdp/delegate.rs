//! Segments that leave before the kernel knows of them: what the kernel says of a connection, and how what
//! was put on the wire is booked into it afterwards. Linux has no call for this; `TCP_REPAIR`, made for
//! moving connections between machines, does it: what is written to the send queue of a connection under
//! repair counts as sent, with number, retransmission queue and timer, and is not transmitted.
//!
//! Rules and their reasons are `tickwire_kernelpath::delegate`'s; here are the system calls.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::mem::size_of;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::sys::{self, OptionValue, check};
use crate::tcp::TcpStream;
use crate::trouble::Trouble;

/// Under repair; `tcp(7)` does not say it, Linux `include/uapi/linux/tcp.h` does.
const REPAIR_ON: libc::c_int = 1;
/// No longer, and the peer is not asked for its window.
const REPAIR_OFF: libc::c_int = -1;
const RECEIVE_QUEUE: libc::c_int = 1;
const SEND_QUEUE: libc::c_int = 2;

/// `struct tcp_repair_window`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct RepairWindow {
    send_update: u32,
    send_window: u32,
    max_window: u32,
    receive_window: u32,
    receive_update: u32,
}
// SAFETY: five integers of four bytes: no padding, every bit pattern valid.
unsafe impl OptionValue for RepairWindow {}

/// `struct tcp_info`, as far as it is read; newer kernels write more, older ones less, and zeros stay then.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct InfoBytes([u64; 30]);
// SAFETY: an array of integers: no padding, every bit pattern valid.
unsafe impl OptionValue for InfoBytes {}

impl InfoBytes {
    fn byte(&self, at: usize) -> u8 {
        self.0[at / 8].to_ne_bytes()[at % 8]
    }

    fn word(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[at / 8].to_ne_bytes()[at % 8..at % 8 + 4]);
        u32::from_ne_bytes(bytes)
    }
}

/// The state of a connection in [`Flight::state`] in which data may be sent; `TCP_ESTABLISHED`.
pub const ESTABLISHED: u8 = 1;
/// From this value of [`Flight::congestion`] on, lost segments are being sent again; `TCP_CA_Recovery`.
pub const RECOVERING: u8 = 3;

/// What the kernel says of a connection at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Flight {
    /// Its state: [`ESTABLISHED`] or another.
    pub state: u8,
    /// How congestion control sees it; from [`RECOVERING`] on it mends a loss.
    pub congestion: u8,
    /// Whether segments carry timestamps (RFC 7323).
    pub has_stamps: bool,
    /// By how many bits the window is shifted that we tell the peer.
    pub receive_scale: u8,
    /// Payload of the largest segment, bytes.
    pub segment_bytes: u32,
    /// Segments that were sent and are not acknowledged.
    pub unacknowledged: u32,
    /// Segments that may be on their way together.
    pub congestion_window: u32,
    /// Bytes that were written and not sent.
    pub unsent_bytes: u32,
    /// Bytes that the peer has room for behind what it has acknowledged.
    pub peer_window: u32,
    /// Bytes that were written and not acknowledged, sent or not.
    pub outstanding_bytes: u32,
    /// Segments that the kernel has sent again so far.
    pub retransmissions: u32,
}

/// Asks the kernel about a connection; two system calls.
///
/// # Errors
/// What the kernel says.
pub fn flight(stream: &TcpStream) -> io::Result<Flight> {
    let info: InfoBytes = sys::get_option(stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO)?;
    Ok(Flight {
        state: info.byte(0),
        congestion: info.byte(1),
        has_stamps: info.byte(5) & 1 != 0,
        receive_scale: info.byte(6) >> 4,
        segment_bytes: info.word(16),
        unacknowledged: info.word(24),
        congestion_window: info.word(80),
        retransmissions: info.word(100),
        unsent_bytes: info.word(144),
        peer_window: info.word(228),
        outstanding_bytes: queued(stream.as_fd(), libc::TIOCOUTQ)?,
    })
}

/// Where a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Position {
    /// The number of the next byte that is written.
    pub send: u32,
    /// The number of the next byte that is expected of the peer.
    pub receive: u32,
    /// The number behind the last byte that the peer was told there is room for.
    pub receive_end: u32,
    /// Bytes that have come and were not read.
    pub unread: u32,
}

/// Asks for a connection's numbers, which puts it under repair for a moment.
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN; what else the kernel says.
pub fn position(stream: &TcpStream) -> io::Result<Position> {
    let fd = stream.as_fd();
    let get = |name| sys::get_option::<libc::c_int>(fd, libc::IPPROTO_TCP, name);
    repaired(fd, || {
        set(fd, libc::TCP_REPAIR_QUEUE, SEND_QUEUE)?;
        let send = get(libc::TCP_QUEUE_SEQ)?.cast_unsigned();
        let window: RepairWindow = sys::get_option(fd, libc::IPPROTO_TCP, libc::TCP_REPAIR_WINDOW)?;
        set(fd, libc::TCP_REPAIR_QUEUE, RECEIVE_QUEUE)?;
        // In this order: what comes between the two counts as unread, and is not acknowledged too early.
        let receive = get(libc::TCP_QUEUE_SEQ)?.cast_unsigned();
        let unread = queued(fd, libc::FIONREAD)?;
        Ok(Position {
            send,
            receive,
            receive_end: window.receive_update.wrapping_add(window.receive_window),
            unread,
        })
    })
}

/// Books bytes that are on the wire already, as many as the kernel takes: they are sent for it from then on,
/// and it sends them again when they are lost. Five system calls.
///
/// The kernel counts as sent what it pushes, and it does not push a small segment while one that it has sent
/// itself waits in a queue of the interface (`net.ipv4.tcp_autocorking`): then the peer acknowledges what the
/// kernel does not know to be sent, which it takes for nonsense, and after a loss both send the same again
/// for ever. Asking for no delay, as the connection has it anyway, pushes whatever waits.
///
/// # Errors
/// `WouldBlock` when the send buffer is full, nothing is booked then; the end of the connection; what else
/// the kernel says.
pub fn book(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let booked = repaired(stream.as_fd(), || {
        set(stream.as_fd(), libc::TCP_REPAIR_QUEUE, SEND_QUEUE)?;
        let taken = stream.hand_over(bytes)?;
        set(stream.as_fd(), libc::TCP_NODELAY, 1)?;
        Ok(taken)
    })?;
    stream.note_taken(booked);
    Ok(booked)
}

/// Does something with a connection under repair, and ends the repair whatever comes of it: a connection
/// that is closed under repair ends without a word to the peer.
fn repaired<T>(fd: BorrowedFd<'_>, what: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    set(fd, libc::TCP_REPAIR, REPAIR_ON)?;
    let done = what();
    let ended = set(fd, libc::TCP_REPAIR, REPAIR_OFF);
    done.and_then(|done| ended.map(|()| done))
}

fn set(fd: BorrowedFd<'_>, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    sys::set_option(fd, libc::IPPROTO_TCP, name, value)
}

/// The timestamp that the kernel would write now: milliseconds with an offset of the connection's own. The
/// lowest bit is not told: it is 0, or 1 where timestamps are microseconds.
///
/// # Errors
/// What the kernel says.
pub fn stamp(stream: &TcpStream) -> io::Result<u32> {
    let stamp: libc::c_int = sys::get_option(stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_TIMESTAMP)?;
    Ok(stamp.cast_unsigned())
}

/// Raises the send buffer beyond the system's limit, and gives what the kernel made of it, bytes: twice what
/// was asked for.
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN.
pub fn force_send_buffer(stream: &TcpStream, bytes: u32) -> io::Result<u32> {
    let fd = stream.as_fd();
    let wanted = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX / 2);
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, wanted)?;
    send_buffer(stream)
}

/// The size of the send buffer, bytes.
///
/// # Errors
/// What the kernel says.
pub fn send_buffer(stream: &TcpStream) -> io::Result<u32> {
    let have: libc::c_int = sys::get_option(stream.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF)?;
    Ok(have.cast_unsigned())
}

/// Bytes in a queue of a socket.
fn queued(fd: BorrowedFd<'_>, which: libc::Ioctl) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: both requests write one int to the address given, a local that lives through the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), which, &raw mut bytes) })?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// A byte as C has it: with a sign on x86-64, without one on AArch64.
fn letter(byte: u8) -> libc::c_char {
    libc::c_char::from_ne_bytes([byte])
}

/// The byte of C's.
fn byte_of(letter: libc::c_char) -> u8 {
    letter.to_ne_bytes()[0]
}

/// A request about an interface by name.
fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: a structure of integers, arrays and a union of such and of pointers: zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = letter(byte);
    }
    Ok(request)
}

fn ask(fd: BorrowedFd<'_>, which: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the requests of this file read and write a `struct ifreq`, exclusively borrowed; where it
    // points to more, that is exclusively borrowed by [`ask_into`].
    check(unsafe { libc::ioctl(fd.as_raw_fd(), which, std::ptr::from_mut(request)) }).map(drop)
}

/// Asks about an interface by name what is answered into a structure of the caller's.
///
/// # Safety
/// The request reads and writes no more than a `T`.
pub(super) unsafe fn ask_into<T>(interface: &str, which: libc::Ioctl, answer: &mut T) -> io::Result<()> {
    let socket = sys::udp_socket()?;
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(answer).cast();
    ask(socket.as_fd(), which, &mut request)
}

/// The Ethernet address of an interface of the calling thread's network namespace; `None` if it is of another
/// kind: loopback, a tunnel.
///
/// # Errors
/// `ENODEV`: there is no such interface.
pub fn hardware_address(interface: &str) -> io::Result<Option<[u8; 6]>> {
    let socket = sys::udp_socket()?;
    let mut request = request(interface)?;
    ask(socket.as_fd(), libc::SIOCGIFHWADDR as libc::Ioctl, &mut request)?;
    // SAFETY: the request was answered, which fills this member; it is made of integers.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    Ok(ethernet(&address, libc::ARPHRD_ETHER))
}

/// The Ethernet address of a neighbour, as the kernel knows it now; `None` if it does not.
///
/// # Errors
/// What the kernel says.
pub fn neighbour(interface: &str, address: Ipv4Addr) -> io::Result<Option<[u8; 6]>> {
    let socket = sys::udp_socket()?;
    // SAFETY: a structure of integers and arrays of them: zeros are valid.
    let mut request: libc::arpreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.arp_dev.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, byte) in request.arp_dev.iter_mut().zip(interface.bytes()) {
        *to = letter(byte);
    }
    request.arp_pa = internet(address);
    // SAFETY: the request reads and writes a `struct arpreq`, exclusively borrowed.
    let answer = check(unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGARP as libc::Ioctl,
            &raw mut request,
        )
    });
    match answer {
        Ok(_) if request.arp_flags & libc::ATF_COM != 0 => Ok(ethernet(&request.arp_ha, libc::ARPHRD_ETHER)),
        Ok(_) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `struct sockaddr_in` as the general form: the address stands behind the port.
fn internet(address: Ipv4Addr) -> libc::sockaddr {
    let mut general = libc::sockaddr {
        sa_family: libc::AF_INET as libc::sa_family_t,
        sa_data: [0; 14],
    };
    for (to, byte) in general.sa_data[2..6].iter_mut().zip(address.octets()) {
        *to = letter(byte);
    }
    general
}

fn ethernet(address: &libc::sockaddr, kind: libc::c_ushort) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    for (to, byte) in bytes.iter_mut().zip(address.sa_data) {
        *to = byte_of(byte);
    }
    (address.sa_family == kind && bytes != [0; 6]).then_some(bytes)
}

/// The interface and next hop on the way to an address, by the main routing table of the calling thread's
/// network namespace; `None` if there is no route.
///
/// # Errors
/// The table cannot be read.
pub fn next_hop(to: Ipv4Addr) -> io::Result<Option<(String, Ipv4Addr)>> {
    let mut text = String::new();
    File::open("/proc/thread-self/net/route")?.read_to_string(&mut text)?;
    Ok(next_hop_of(&text, to))
}

fn next_hop_of(table: &str, to: Ipv4Addr) -> Option<(String, Ipv4Addr)> {
    let routes = table.lines().skip(1).filter_map(|line| Route::read(line, to));
    let best = routes.max_by_key(|route| (route.mask, std::cmp::Reverse(route.metric)))?;
    Some((best.interface, best.hop))
}

/// A route that leads to an address.
struct Route {
    mask: u32,
    metric: u32,
    interface: String,
    hop: Ipv4Addr,
}

impl Route {
    /// Reads a line of /proc/net/route; `None` if it does not lead there.
    fn read(line: &str, to: Ipv4Addr) -> Option<Route> {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Addresses are written as the machine's memory has them.
        let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
        let address = |at: usize| Some(Ipv4Addr::from(number(at)?.to_ne_bytes()));
        let (flags, mask) = (number(3)?, u32::from(address(7)?));
        let is_meant = u32::from(to) & mask == u32::from(address(1)?);
        let is_usable = flags & (ROUTE_UP | ROUTE_REJECT) == ROUTE_UP;
        (is_meant && is_usable).then_some(())?;
        Some(Route {
            mask,
            metric: words.get(6)?.parse().ok()?,
            interface: (*words.first()?).to_owned(),
            hop: if flags & ROUTE_GATEWAY != 0 {
                address(2)?
            } else {
                to
            },
        })
    }
}

/// Flags of a route. Linux `include/uapi/linux/route.h`.
const ROUTE_UP: u32 = 1;
const ROUTE_GATEWAY: u32 = 2;
const ROUTE_REJECT: u32 = 0x200;

/// A virtual interface (TUN) by which packets are given to the kernel as if they had come over a network. It
/// goes when this is dropped, or with the process.
#[derive(Debug)]
pub struct Injector {
    file: File,
    name: String,
}

/// The address of an [`Injector`] that needs one: of this link alone (RFC 3927), and nobody is asked about
/// it, as a point-to-point interface has no neighbours.
const INJECTOR_ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 84, 87);

impl Injector {
    /// Makes one in the calling thread's network namespace, `tickwire0` or the next free number.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_ADMIN, `ENOENT` without `/dev/net/tun`; `/proc/sys` cannot be written.
    pub fn create() -> io::Result<Injector> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        let mut made = request("tickwire%d")?;
        made.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        ask(file.as_fd(), libc::TUNSETIFF as libc::Ioctl, &mut made)?;
        let letters = made.ifr_name.iter().take_while(|letter| **letter != 0);
        let name: String = letters.map(|letter| char::from(byte_of(*letter))).collect();
        let setting = |kind: &str, what: &str| format!("/proc/sys/net/{kind}/conf/{name}/{what}");
        // Nothing is to be sent out here; where there is no IPv6 nothing is.
        let _ = std::fs::write(setting("ipv6", "disable_ipv6"), "1");
        let socket = sys::udp_socket()?;
        // Packets of the peer come by another interface than the route to it says, which is not looked at
        // here. The stricter of this setting and that of all interfaces holds, and the latter is left alone:
        // where it is strict, looking loosely is stricter in the kernel's order, and wants an address.
        let of_all = std::fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter")?;
        if of_all.trim() == "0" {
            std::fs::write(setting("ipv4", "rp_filter"), "0")?;
        } else {
            std::fs::write(setting("ipv4", "rp_filter"), "2")?;
            let mut own = request(&name)?;
            own.ifr_ifru.ifru_addr = internet(INJECTOR_ADDRESS);
            ask(socket.as_fd(), libc::SIOCSIFADDR as libc::Ioctl, &mut own)?;
        }
        let mut up = request(&name)?;
        ask(socket.as_fd(), libc::SIOCGIFFLAGS as libc::Ioctl, &mut up)?;
        // SAFETY: the request was answered, which fills this member, an integer.
        let flags = unsafe { up.ifr_ifru.ifru_flags };
        up.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
        ask(socket.as_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &mut up)?;
        Ok(Injector { file, name })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the kernel a packet, from the IP header on; `false` if it does not take it now.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn inject(&self, packet: &[u8]) -> io::Result<bool> {
        match (&self.file).write(packet) {
            Ok(written) => Ok(written == packet.len()),
            Err(error) => match Trouble::of(&error) {
                Trouble::WouldBlock | Trouble::Resource => Ok(false),
                _ => Err(error),
            },
        }
    }
}

/// Frames to and from an interface, past the kernel's protocols and past its queueing (`packet(7)`).
#[derive(Debug)]
pub struct PacketSocket {
    socket: std::os::fd::OwnedFd,
}

impl PacketSocket {
    /// Opens one at an interface, by index. One that hears gets every frame that comes there, its own
    /// excepted; one that does not is there to send.
    ///
    /// # Errors
    /// `EPERM` without CAP_NET_RAW.
    pub fn open(interface: u32, hears: bool) -> io::Result<PacketSocket> {
        use std::os::fd::{FromRawFd, OwnedFd};
        let protocol = if hears {
            (libc::ETH_P_ALL as u16).to_be()
        } else {
            0
        };
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers; a result that is not negative is a new descriptor that nobody else owns.
        let socket = unsafe {
            let fd = check(libc::socket(libc::AF_PACKET, kind, i32::from(protocol)))?;
            OwnedFd::from_raw_fd(fd)
        };
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol,
            sll_ifindex: interface.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: pointer and length describe a local address that lives through the call.
        check(unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })?;
        let option = |name| sys::set_option::<libc::c_int>(socket.as_fd(), libc::SOL_PACKET, name, 1);
        option(libc::PACKET_QDISC_BYPASS)?;
        if hears {
            option(libc::PACKET_IGNORE_OUTGOING)?;
            let buffer = 8 << 20;
            sys::set_option::<libc::c_int>(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer)?;
        }
        Ok(PacketSocket { socket })
    }

    /// Opens one that sends trains of TCP segments, each as one frame that the kernel or the card cuts
    /// ([`PacketSocket::send_train`]).
    ///
    /// # Errors
    /// As [`PacketSocket::open`].
    pub fn open_for_trains(interface: u32) -> io::Result<PacketSocket> {
        let opened = PacketSocket::open(interface, false)?;
        sys::set_option::<libc::c_int>(opened.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
        Ok(opened)
    }

    /// Sends a train of segments over a socket that is open for them: `frame` is one segment of TCP over IPv4
    /// without options of IP, with `headers` bytes in front of its payload and the checksum of the pseudo
    /// header, and is cut into segments with `segment` bytes of payload. `false` if there is no room, or the
    /// interface does not cut: nothing of it has left then.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn send_train(&self, frame: &[u8], headers: usize, segment: usize) -> io::Result<bool> {
        const ETHERNET: u16 = 14;
        const IP: u16 = 20;
        const CHECKSUM_AT: u16 = 16;
        const NEEDS_CHECKSUM: u8 = 1;
        const TCP_OVER_IPV4: u8 = 1;
        let too_long = || io::Error::from(io::ErrorKind::InvalidInput);
        let [headers, segment] = [headers, segment].map(u16::try_from);
        let (headers, segment) = (headers.map_err(|_| too_long())?, segment.map_err(|_| too_long())?);
        // `struct virtio_net_hdr` of linux/virtio_net.h, in the machine's order (packet(7)).
        let mut about = [0; 10];
        about[0] = NEEDS_CHECKSUM;
        about[1] = TCP_OVER_IPV4;
        about[2..4].copy_from_slice(&headers.to_ne_bytes());
        about[4..6].copy_from_slice(&segment.to_ne_bytes());
        about[6..8].copy_from_slice(&(ETHERNET + IP).to_ne_bytes());
        about[8..10].copy_from_slice(&CHECKSUM_AT.to_ne_bytes());
        let parts = [about.as_slice(), frame].map(|part| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast(),
            iov_len: part.len(),
        });
        // SAFETY: two parts, each a borrowed buffer with its length, which are only read.
        let sent = unsafe { libc::writev(self.socket.as_raw_fd(), parts.as_ptr(), 2) };
        sent_all(sent)
    }

    /// Sends a frame; `false` if there is no room for it now.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn send(&self, frame: &[u8]) -> io::Result<bool> {
        // SAFETY: pointer and length describe a borrowed buffer, which is only read.
        let sent = unsafe {
            libc::send(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                libc::MSG_DONTWAIT,
            )
        };
        sent_all(sent)
    }

    /// The next frame, cut to the buffer; `None` if there is none at the moment. Never waits.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn recv(&self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        match sys::receive(self.socket.as_fd(), frame, libc::MSG_DONTWAIT) {
            Ok(length) => Ok(Some(length)),
            Err(error) => match Trouble::of(&error) {
                Trouble::WouldBlock | Trouble::Resource => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// What a call that sends has said; `false` if there is no room now.
fn sent_all(sent: isize) -> io::Result<bool> {
    if sent >= 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match Trouble::of(&error) {
        Trouble::WouldBlock | Trouble::Resource => Ok(false),
        _ => Err(error),
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t010012C6\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        eth1\t00000000\t020012C6\t0003\t0\t0\t50\t00000000\t0\t0\t0\n\
        eth0\t000012C6\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        eth2\t0000000A\t00000000\t0201\t0\t0\t0\t000000FF\t0\t0\t0\n";

    #[test]
    fn the_longest_route_wins_then_the_lowest_metric() {
        let of = |address: [u8; 4]| next_hop_of(TABLE, Ipv4Addr::from(address));
        let near = Ipv4Addr::new(198, 18, 0, 9);
        assert_eq!(of([198, 18, 0, 9]), Some(("eth0".into(), near)));
        let gateway = Ipv4Addr::new(198, 18, 0, 2);
        assert_eq!(of([192, 0, 2, 7]), Some(("eth1".into(), gateway)));
        assert_eq!(next_hop_of("", near), None);
        assert_eq!(next_hop_of("Iface\nnonsense\n", near), None);
    }

    #[test]
    fn loopback_has_no_ethernet_address() {
        assert_eq!(hardware_address("lo").expect("it is there"), None);
        assert!(hardware_address("nosuch0").is_err());
        assert!(hardware_address("a-name-longer-than-any-interface").is_err());
    }
}
